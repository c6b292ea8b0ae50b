"""The one decorator, and the caches that numba would keep too long."""

from pathlib import Path

import numpy as np
import pytest

from leamvd._support.compile import kernel


@pytest.mark.compiled
def test_flags_are_decided_in_one_place() -> None:
    @kernel()
    def plain(x):  # type: ignore[no-untyped-def]
        return x + 1

    @kernel(reassociate=True)
    def free(x):  # type: ignore[no-untyped-def]
        return x + 1

    options = plain.targetoptions
    assert options["nopython"] is True
    assert options["nogil"] is True
    assert not options["fastmath"], "IEEE arithmetic is the default"
    assert free.targetoptions["fastmath"] == {"reassoc", "contract", "nsz"}, "NaN and infinity must survive"
    assert plain(1) == free(1) == 2


@pytest.mark.compiled
def test_division_by_zero_follows_ieee() -> None:
    @kernel()
    def divide(x):  # type: ignore[no-untyped-def]
        return 1.0 / x

    assert divide(0.0) == np.inf


def test_source_holds_no_other_decorator() -> None:
    package = Path(__file__).parent.parent / "leamvd"
    users = [p.name for p in package.rglob("*.py") if "njit" in p.read_text() or "numba.jit" in p.read_text()]
    assert users == ["compile.py"]
