"""Threads: work on all of them, matrix products on one each, so that results keep their bits on any number."""

import functools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

from leamvd._support import checks

_T = TypeVar("_T")


class Shared:
    """A setting of the whole process as a context: the first one in makes it, the last one out puts back what was.

    Parameters
    ----------
    setting : callable
        Returns the context that makes the setting, and puts back at its end what it has found at its start. Contexts
        that overlap in several threads would each put back what another one has set.
    """

    def __init__(self, setting: Callable[[], AbstractContextManager[object]]) -> None:
        self._setting = setting
        self._lock = threading.Lock()
        self._inside = 0
        if hasattr(os, "register_at_fork"):  # a child would wait for a thread that it does not have
            os.register_at_fork(
                before=self._lock.acquire, after_in_parent=self._lock.release, after_in_child=self._lock.release
            )

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._made = self._setting()
                self._made.__enter__()
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._made.__exit__(None, None, None)


@functools.cache
def _blas() -> ThreadpoolController:
    import scipy.linalg.cython_blas  # noqa: F401  # kernels multiply matrices by SciPy's library: load it before looking

    return ThreadpoolController()  # looks through the loaded libraries, which takes milliseconds


_one_blas_thread = Shared(lambda: _blas().limit(limits=1, user_api="blas"))


def one_blas_thread() -> AbstractContextManager[object]:
    """Return a context in which a matrix product runs on the thread that asks for it: its bits are then fixed."""
    return _one_blas_thread


def thread_count(n_threads: int | None) -> int:
    """Return `n_threads`, checked to be at least 1, or the number of processors that this process may use.

    A container's share of processor time counts too: two processors' worth of it on 64 of them are 2.
    """
    if n_threads is not None:
        return checks.integer("n_threads", n_threads, at_least=1)
    from joblib import cpu_count  # as late as this, since it takes a while to import

    return int(cpu_count())


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
