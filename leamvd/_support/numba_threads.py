"""Numba's threads, started such that they leave the processors to others while they have no work."""

import os


def numba_threads() -> int:
    """Return how many of numba's threads this one may use; they are started where they are not.

    Idle ones sleep, unless the environment says otherwise. By default OpenMP's spin: where other processes want the
    processors too, that made a generation take forty times as long. OpenMP reads the variable when it is loaded: now.
    """
    import numba  # as late as this, since it takes a while to import

    given = os.environ.get("OMP_WAIT_POLICY")
    os.environ["OMP_WAIT_POLICY"] = given or "PASSIVE"
    try:
        return int(numba.get_num_threads())
    finally:
        if given is None:
            del os.environ["OMP_WAIT_POLICY"]
