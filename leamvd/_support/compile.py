"""The one numba decorator: every compiler flag is decided here, and how many threads a kernel takes."""

import functools
import os
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba import config, threading_layer  # type: ignore[attr-defined]
from numpy.typing import NDArray

from leamvd._support.numba_cache import compiled
from leamvd._support.numba_threads import numba_threads

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

    Arithmetic is IEEE by default, so a formula gives the same bits wherever it runs. `contract` lets a product and a
    sum become one instruction, rounded once, on processors that have it. `reassociate` also splits a sum over vector
    lanes; its order is then fixed by its length alone, which callers keep fixed (`random_streams.TILE`). `inline` puts
    the code into its callers whatever its length, so that their loops can become vector code.

    `parallel` is the number of columns of the first argument that are worth a thread to `numba.prange` loops; such a
    kernel is called from Python only.
    """
    flags = {"reassoc", "contract", "nsz"} if reassociate else {"contract"} if contract else False
    options = {"nogil": True, "error_model": "numpy", "fastmath": flags, "forceinline": inline}

    def decorator(function: _F) -> _F:
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return function
        if parallel is None:
            return cast("_F", compiled(function, options))
        return cast("_F", _on_threads(function, parallel, options))

    return decorator


# ---- threads


def _on_threads(function: Callable[..., object], columns: int, options: dict[str, Any]) -> Callable[..., object]:
    """Return a kernel that runs on the calling thread, or on one of numba's threads for each so many columns.

    It is compiled for either when first needed, to the same bits: numba's threads, once started, do not survive a fork.
    """
    parallel = compiled(function, options | {"parallel": True})
    alone = types.FunctionType(function.__code__, function.__globals__, closure=function.__closure__)
    alone.__qualname__ = f"{function.__qualname__}_alone"  # numba names the compiled code and its file on disk after it
    serial = compiled(alone, options)

    @functools.wraps(function)
    def call(X: Array, *arguments: Any) -> object:
        tasks = -(-X.shape[1] // columns)
        if tasks == 1 or _threads_are_lost:
            return serial(X, *arguments)
        allowed = numba_threads()
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
