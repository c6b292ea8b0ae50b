"""Numba's threads, started such that they leave the processors to others while they have no work."""

import functools
import os


def numba_threads() -> int:
    """Return how many of numba's threads this one may use; they are started where they are not."""
    import numba  # as late as this, since it takes a while to import

    _start()
    return int(numba.get_num_threads())


@functools.cache
def _start() -> None:
    """Start the threads, of which idle ones sleep unless the environment says otherwise.

    By default OpenMP's spin: where other processes want the processors too, that made a generation take forty times as
    long. OpenMP reads the variable when it is loaded, which is now. Two threads may come here at once.
    """
    import numba

    if "OMP_WAIT_POLICY" in os.environ:
        return
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    try:
        numba.get_num_threads()
    finally:
        os.environ.pop("OMP_WAIT_POLICY", None)
