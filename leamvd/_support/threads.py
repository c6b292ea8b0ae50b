"""Threads: work on all of them, matrix products on one each, so that results keep their bits on any number."""

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

from leamvd._support import checks
from leamvd._support.numba_threads import numba_threads

_T = TypeVar("_T")


class Shared:
    """A setting of the whole process as a context: the first one in makes it, the last one out puts back what was.

    The contexts that `setting` returns would each, where they overlap, put back what another one has set.
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


class _Blas(NamedTuple):
    """The libraries that multiply matrices, by what it is that their number of threads is set for."""

    thread: ThreadpoolController  # the thread that sets it: MKL, and OpenBLAS that was built with OpenMP
    process: ThreadpoolController  # all others


@functools.cache
def _blas() -> _Blas:
    import scipy.linalg.cython_blas  # noqa: F401  # kernels multiply matrices by SciPy's library: load it before looking

    found = ThreadpoolController().select(user_api="blas")  # looks through what is loaded, which takes milliseconds
    by_process: tuple[list[str], list[str]] = [], []
    for library in found.info():
        openmp = (library["internal_api"], library.get("threading_layer")) == ("openblas", "openmp")
        by_process[not openmp and library["internal_api"] != "mkl"].append(library["filepath"])
    return _Blas(*(found.select(filepath=paths) for paths in by_process))


@contextmanager
def _process_on_one_blas_thread() -> Iterator[None]:
    # To threadpoolctl only the first thread that limits OpenBLAS may: it does nothing for others, without a word.
    forget_first = functools.partial(OpenBLASController.clear_controlling_thread, force=True)
    forget_first()
    limit = _blas().process.limit(limits=1)
    try:
        yield
    finally:
        forget_first()
        limit.restore_original_limits()
        forget_first()


_one_blas_thread = Shared(_process_on_one_blas_thread)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let a matrix product run on the thread that asks for it, this one or one of `workers`: its bits are fixed."""
    with _blas().thread.limit(limits=1), _one_blas_thread:
        yield


def workers(n_threads: int) -> ThreadPoolExecutor:
    """Return threads that ask for matrix products on themselves alone within `one_blas_thread`."""
    return ThreadPoolExecutor(n_threads, initializer=lambda: _blas().thread.limit(limits=1))


_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)  # by `limited_to`


def thread_count(n_threads: int | None) -> int:
    """Return `n_threads`, checked to be at least 1, or the number of processors that this thread may use.

    A container's share of processor time counts too: two processors' worth of it on 64 of them are 2.
    """
    if n_threads is not None:
        return checks.integer("n_threads", n_threads, at_least=1)
    if (allowed := _allowed.get()) is not None:
        return allowed
    from joblib import cpu_count  # as late as this, since it takes a while to import

    return int(cpu_count())


def in_threads(work: Callable[[Any], _T], items: Iterable[Any], n_threads: int | None) -> list[_T]:
    """Return ``work(item)`` for each of the items, in their order, computed on `n_threads` threads."""
    with workers(thread_count(n_threads)) as pool:
        return list(pool.map(work, items))


def in_halves(work: Callable[[slice], object], size: int, pool: Executor | None) -> None:
    """Call ``work`` for both halves of ``range(size)``, for the second one on a thread of the pool if there is one."""
    first, second = slice(0, size // 2), slice(size // 2, size)
    if pool is None:
        work(first)
        work(second)
        return
    other = pool.submit(copy_context().run, work, second)  # with this thread's way to treat overflow
    try:
        work(first)
    finally:
        other.result()  # also where the first half fails: nobody writes after the call


@contextmanager
def limited_to(n_threads: int) -> Iterator[None]:
    """Let this thread take so many threads within the block: one of several tasks at work, here or elsewhere.

    `thread_count` and numba go by it, in this thread alone. Matrix products run on one thread each, in the process's
    other threads too until the last of these blocks ends.
    """
    import numba  # as late as this, since it takes a while to import

    before, allowed = numba_threads(), _allowed.set(n_threads)
    numba.set_num_threads(min(n_threads, before))
    try:
        with one_blas_thread():
            yield
    finally:
        numba.set_num_threads(before)
        _allowed.reset(allowed)
