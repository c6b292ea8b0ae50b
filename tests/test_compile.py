"""The one decorator, and the caches that numba would keep too long."""

import os
from pathlib import Path

import numpy as np
import pytest

from leamvd.compile import drop_stale_caches, kernel


def test_stale_caches_are_dropped(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    for i, name in enumerate(("a.py", "sub/b.py", "stale.nbi", "sub/stale.nbi", "fresh.nbi", "other.txt")):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (i, i))
    os.utime(tmp_path / "sub" / "b.py", (3.5, 3.5))
    drop_stale_caches(tmp_path)
    assert sorted(p.name for p in tmp_path.rglob("*") if p.is_file()) == ["a.py", "b.py", "fresh.nbi", "other.txt"]
    drop_stale_caches(tmp_path)  # nothing left to do is no error


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
    assert free.targetoptions["fastmath"] == {"reassoc", "contract", "nsz"}, "not-a-number and infinity must survive"
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
