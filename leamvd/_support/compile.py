"""The one Numba decorator: it decides on compiler flags, on where compiled code is kept, and on
threads.
"""

import functools
import os
import shutil
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import config, threading_layer  # type: ignore[attr-defined]
from numba.core.caching import FunctionCache, NullCache
from numba.core.compiler_lock import global_compiler_lock
from numpy.typing import NDArray

from leamvd._support import sources
from leamvd._support.threads import numba_with_threads, uninterrupted

_F = TypeVar("_F", bound=Callable[..., object])

# Arrays of any kind; and what kernels take: real arrays of either precision, row numbers, the
# random streams' words.
Array = NDArray[Any]
Floats = NDArray[np.floating]
Integers = NDArray[np.int64]
Words = NDArray[np.uint64]


def kernel(
    *,
    parallel: int | None = None,
    reassociate: bool = False,
    contract: bool = False,
    inline: bool = False,
) -> Callable[[_F], _F]:
    """Compile a function in nopython mode, cached on disk and free of the interpreter lock.

    Arithmetic is IEEE by default, so a formula gives the same bits wherever it runs. `contract`
    lets a product and a sum become one instruction, rounded once, on processors that have it.
    `reassociate` also splits a sum over vector lanes; its order is then fixed by its length alone,
    which callers keep fixed (`random_streams.TILE`). `inline` puts the code into its callers
    whatever its length, so that their loops can become vector code. `parallel` is the number of
    columns of the first argument that are worth a thread to `numba.prange` loops; such a kernel is
    called from Python only.
    """
    flags: Any = {"contract"} if contract else False
    if reassociate:
        flags = {"reassoc", "contract", "nsz"}
    options = {"nogil": True, "error_model": "numpy", "fastmath": flags, "forceinline": inline}

    def decorator(function: _F) -> _F:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        compiled = (
            _compiled(function, options)
            if parallel is None
            else _on_threads(function, parallel, options)
        )
        return cast("_F", compiled)

    return decorator


def _compiled(function: Callable[..., object], options: dict[str, Any]) -> Any:
    """Return a function that Numba compiles when it is first called, and keeps in our folder if
    there is one.
    """
    compiled: Any = numba.njit(**options)(function)
    compile_now = compiled.compile

    def compile_(signature: Any) -> Any:
        with global_compiler_lock, uninterrupted():
            compiled._cache = _kept(function)
            return compile_now(signature)

    compiled.compile = compile_
    return compiled


class _Kept(FunctionCache):
    """Compiled code on disk; what cannot be read or written is compiled anew, with a warning."""

    @contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:  # in which Numba loads and saves
        try:
            with super()._guard_against_spurious_io_errors():
                yield
        except Exception as error:  # a file that was cut raises any
            reason = error.strerror if isinstance(error, OSError) else str(error)
            _warn(reason)
            with suppress(OSError):
                self.flush()  # type: ignore[no-untyped-call]


@functools.cache  # once for each reason
def _warn(reason: str | None) -> None:
    told = (
        f"compiled kernels cannot be kept or read ({reason}): they are compiled anew;"
        " NUMBA_CACHE_DIR names a place"
    )
    warnings.warn(told, RuntimeWarning, stacklevel=2)


@functools.cache
def _kept(function: Callable[..., object]) -> Any:
    """Return the compiled code of a function in our folder; none, with a warning, where nothing can
    be written.
    """
    before = config.CACHE_DIR  # type: ignore[attr-defined]
    try:
        config.CACHE_DIR = folder = _folder()  # type: ignore[attr-defined]  # for ours, and for no others
        kept = _Kept(function)  # type: ignore[no-untyped-call]
        # not where Numba goes next, by the function's own file alone
        if kept.cache_path.startswith(folder):
            return kept
        _warn(f"{folder} cannot be written")
    except (OSError, RuntimeError) as error:  # or there is no home
        _warn(str(error))
    finally:
        config.CACHE_DIR = before  # type: ignore[attr-defined]
    return NullCache()


# of what runs, whatever is edited before the first call
_SOURCES = sources.read(Path(__file__).parent.parent)


@functools.cache
def _folder() -> str:
    """Return the folder of compiled code; one that nobody has used for a month goes.

    Numba looks at a function's own file alone, so a kernel would go on calling an earlier version
    of one in another file: the folder is named by a digest of all files with kernels and of what
    they import.
    """
    base = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or "~/.cache"  # type: ignore[attr-defined]
    kernels = [name for name, text in _SOURCES.items() if "@kernel" in text]
    digest = sources.digest(sources.with_imports(kernels, _SOURCES))
    folder = Path(base).expanduser() / f"leamvd-{digest[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in folder.parent.glob(f"leamvd-{'[0-9a-f]' * 16}"):
        with suppress(OSError):  # another process takes it, too
            if time.time() - other.stat().st_mtime > 30 * 86_400:
                shutil.rmtree(other, ignore_errors=True)
    return str(folder)


def _on_threads(
    function: Callable[..., object], columns: int, options: dict[str, Any]
) -> Callable[..., object]:
    """Return a kernel that runs on the calling thread, or on one of Numba's a number of columns, to
    the same bits.
    """
    parallel = _compiled(function, options | {"parallel": True})
    alone = types.FunctionType(
        function.__code__, function.__globals__, closure=function.__closure__
    )
    # which Numba names its code and file after
    alone.__qualname__ = f"{function.__qualname__}_alone"
    serial = _compiled(alone, options)

    @functools.wraps(function)
    def call(X: Array, *arguments: Any) -> object:
        tasks = -(-X.shape[1] // columns)
        if tasks == 1 or _threads_are_lost:
            return serial(X, *arguments)
        allowed = numba_with_threads().get_num_threads()
        # more of them would wait, and on a busy machine for long
        numba.set_num_threads(min(tasks, allowed))
        try:
            if threading_layer() != "workqueue":
                return parallel(X, *arguments)
            # Numba's own scheduler ends the process when two threads of Python call it at once
            with _one_at_a_time:
                return parallel(X, *arguments)
        finally:
            numba.set_num_threads(allowed)

    return call


_one_at_a_time = threading.RLock()
_threads_are_lost = False  # in the child of a fork, where the parent had started them


def _after_fork() -> None:
    global _threads_are_lost
    with suppress(ValueError):  # they had not been started
        threading_layer()
        _threads_are_lost = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
