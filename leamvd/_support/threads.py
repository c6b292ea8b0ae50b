"""Threads: work on all of them, matrix products on one each, so that results keep their bits on any number."""

import functools
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import numba
from threadpoolctl import ThreadpoolController

from leamvd._support import checks

_T = TypeVar("_T")


def kernel_threads(tasks: int) -> AbstractContextManager[None]:
    """Let parallel kernels use no more threads than there are tasks: idle ones would spin, and delay the busy one."""
    before = numba.get_num_threads()
    return nullcontext() if before <= tasks else _fewer_kernel_threads(max(1, tasks), before)


@contextmanager
def _fewer_kernel_threads(count: int, before: int) -> Iterator[None]:
    numba.set_num_threads(count)
    try:
        yield
    finally:
        numba.set_num_threads(before)


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which a matrix product runs on the thread that asks for it: its bits are then fixed."""
    context: AbstractContextManager[object] = _blas().limit(limits=1, user_api="blas")
    return context


@functools.cache
def _blas() -> ThreadpoolController:
    import scipy.linalg.cython_blas  # noqa: F401  # kernels multiply matrices by SciPy's library: load it before looking

    return ThreadpoolController()  # looks through the loaded libraries, which takes milliseconds


def thread_count(n_threads: int | None) -> int:
    """Return `n_threads`, checked to be at least 1, or the number of processors that this process may use."""
    if n_threads is not None:
        return checks.integer("n_threads", n_threads, at_least=1)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_threads(work: Callable[[Any], _T], items: Iterable[Any], n_threads: int | None) -> list[_T]:
    """Return ``work(item)`` for each of the items, in their order, computed on `n_threads` threads."""
    with ThreadPoolExecutor(thread_count(n_threads)) as pool:
        return list(pool.map(work, items))


def in_halves(work: Callable[[slice], object], size: int, pool: Executor | None) -> None:
    """Call ``work`` for both halves of ``range(size)``, for the second one on a thread of the pool if there is one."""
    first, second = slice(0, size // 2), slice(size // 2, size)
    if pool is None:
        work(first)
        work(second)
        return
    other = pool.submit(work, second)
    try:
        work(first)
    finally:
        other.result()  # also where the first half fails: nobody writes after the call
