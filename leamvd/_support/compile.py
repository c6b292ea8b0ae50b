"""The one numba decorator: every compiler flag is decided here, how many threads a kernel takes, where it is stored."""

import functools
import glob
import hashlib
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import threading_layer  # type: ignore[attr-defined]
from numba.core import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numpy.typing import NDArray

from leamvd._support.interrupts import uninterrupted

_F = TypeVar("_F", bound=Callable[..., object])

# Arrays of any kind; and what kernels take: real arrays of either precision, row numbers, the random streams' words.
Array = NDArray[Any]
Floats = NDArray[np.floating]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


def kernel(
    *, parallel: int | None = None, reassociate: bool = False, contract: bool = False, inline: bool = False
) -> Callable[[_F], _F]:
    """Compile a function in nopython mode, cached on disk and free of the interpreter lock.

    Arithmetic is IEEE by default, so a formula gives the same bits wherever it runs. ``reassociate`` lets the compiler
    split one sum over several vector lanes and contract products into it; the order is then fixed by the length of the
    sum alone, so callers keep that length fixed (see `leamvd.optimizers.random_streams.TILE`), and thread counts do not
    change a bit.

    Parameters
    ----------
    parallel : int, optional
        Columns of the first argument that are worth a thread: `numba.prange` loops run on so many of numba's threads as
        have that many, without one where the calling thread is enough. Such a kernel is called from Python only.
    reassociate : bool
        Allow the order of a sum to change; never set where NaN must survive or where bits must agree between
        processors.
    contract : bool
        Let a product and a sum become one instruction, rounded once, on processors that have it.
    inline : bool
        Put the code into its callers whatever its length, so that their loops can become vector code.

    Returns
    -------
    Callable
        A decorator.

    Notes
    -----
    Run with ``NUMBA_DISABLE_JIT=1`` to step through, or to measure the coverage of, the same code uncompiled.
    """
    flags = {"reassoc", "contract", "nsz"} if reassociate else {"contract"} if contract else False
    options = {"nogil": True, "error_model": "numpy", "fastmath": flags, "forceinline": inline}

    def decorator(function: _F) -> _F:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        if parallel is None:
            return cast("_F", _compiled(function, options))
        return cast("_F", _on_threads(function, parallel, options))

    return decorator


def _compiled(function: Callable[..., object], options: dict[str, Any]) -> Any:
    """Return a function that numba compiles when it is first called, and stores on disk if it can."""
    dispatcher = numba.njit(**options)(function)
    # within, numba would swallow Ctrl-C, or keep half a kernel
    dispatcher.compile = uninterrupted()(dispatcher.compile)
    try:
        dispatcher._cache = _Cache(function)  # type: ignore[no-untyped-call]
    except (RuntimeError, OSError):  # numba finds no folder that it can write to
        _warn_of_no_cache()
    return dispatcher


# ---- threads


def _on_threads(function: Callable[..., object], columns: int, options: dict[str, Any]) -> Callable[..., object]:
    """Return a kernel that runs on the calling thread, or on one of numba's threads for each so many columns.

    It is compiled for either when first needed, to the same bits: numba's threads, once started, do not survive a fork,
    and idle ones spin, which delays the busy one.
    """
    parallel = _compiled(function, options | {"parallel": True})
    alone = types.FunctionType(function.__code__, function.__globals__, closure=function.__closure__)
    alone.__qualname__ = f"{function.__qualname__}_alone"  # numba names the compiled code and its file on disk after it
    serial = _compiled(alone, options)

    @functools.wraps(function)
    def call(X: Array, *arguments: Any) -> object:
        tasks = -(-X.shape[1] // columns)
        if tasks == 1 or _threads_are_lost:
            return serial(X, *arguments)
        allowed = numba.get_num_threads()  # starts them
        with _limited(min(tasks, allowed), allowed):
            return parallel(X, *arguments)

    return call


@contextmanager
def _limited(count: int, allowed: int) -> Iterator[None]:
    """Let parallel kernels of this thread use `count` of numba's threads, which are started, not all that it allows."""
    try:
        numba.set_num_threads(count)
        # numba's own scheduler ends the process when two threads of Python call it at once
        with _one_at_a_time if threading_layer() == "workqueue" else nullcontext():
            yield
    finally:
        numba.set_num_threads(allowed)


_one_at_a_time = threading.RLock()
_threads_are_lost = False  # in the child of a fork, where the parent had started them


def _after_fork() -> None:
    global _threads_are_lost
    with suppress(ValueError):  # they had not been started
        threading_layer()
        _threads_are_lost = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


# ---- compiled code on disk


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
