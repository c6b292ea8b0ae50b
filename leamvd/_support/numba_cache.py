"""Compiled code on disk, and the private parts of numba that are used for it.

Numba stores what it has compiled of a function under the time of that function's file alone, so that a kernel would go
on calling an earlier version of one in another file. Here the name of what is stored has a digest of all kernels'
sources. It also says nothing while it compiles, swallows Ctrl-C there, and fails where it cannot write.
"""

import functools
import glob
import hashlib
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from leamvd._support.interrupts import uninterrupted


def compiled(function: Callable[..., object], options: dict[str, Any]) -> Any:
    """Return a function that numba compiles when it is first called, and stores on disk if it can."""
    dispatcher = numba.njit(**options)(function)
    # within, numba would swallow Ctrl-C, or keep half a kernel
    dispatcher.compile = uninterrupted()(dispatcher.compile)
    try:
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):  # numba finds no folder that it can write to
        _warn_of_no_cache()
    return dispatcher


@functools.cache
def _sources() -> str:
    """Return a digest of every source file that holds or calls kernels: what any compiled kernel depends on."""
    package = Path(__file__).parent.parent
    texts = [text for path in sorted(package.rglob("*.py")) if b"kernel(" in (text := path.read_bytes())]
    if not texts:
        raise OSError(f"there are no sources below {package}")  # in an archive, say: nothing tells versions apart
    return hashlib.sha256(b"\0".join(texts)).hexdigest()[:16]


class _Files(CompileResultCacheImpl):
    """Numba's way to store a compiled function, in files that are named after the sources of all kernels."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        return f"{super().get_filename_base(fullname, abiflags)}-{_sources()}"  # type: ignore[no-untyped-call]


class _Cache(FunctionCache):
    """Numba's cache of one function: numba itself compiles anew when its file changes, not when what it calls does."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load a compiled kernel, or say that it is going to be compiled."""
        found = None
        with suppress(OSError):  # the folder has gone, or it is another user's
            found = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if found is None:
            _announce()
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled kernel, and delete what other versions of the sources have left of it."""
        name = self._impl.filename_base.rsplit("-", 2)[0]  # without the line and the sources
        with suppress(OSError):
            for path in Path(self._cache_path).glob(f"{glob.escape(name)}-*.nb[ic]"):
                if _sources() not in path.name:
                    path.unlink()
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except OSError:  # or the disk is full
            _warn_of_no_cache()


@functools.cache
def _warn_of_no_cache() -> None:
    warnings.warn(
        f"compiled kernels cannot be stored: neither {Path(__file__).parent.parent} nor the user's cache folder can be "
        "written to, so every process compiles them anew, which takes up to a minute; "
        "set NUMBA_CACHE_DIR to a folder that can be written to",
        RuntimeWarning,
        stacklevel=2,
    )


@functools.cache
def _announce() -> None:
    """Say on a terminal why the first call takes long."""
    if sys.stderr is not None and sys.stderr.isatty():
        print("leamvd: compiling for this processor; this takes up to a minute, once", file=sys.stderr, flush=True)
