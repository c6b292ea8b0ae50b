"""Threads: work on all of them, matrix products on one each, so that results keep their bits on any
number.
"""

import functools
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from threadpoolctl import OpenBLASController, ThreadpoolController

from leamvd._support import checks

_T = TypeVar("_T")

_lock = threading.Lock()
_inside = 0  # blocks of `one_blas_thread` that run, in all threads
_process: Any = None  # the limit that the first of them has set
_allowed: ContextVar[int | None] = ContextVar("_allowed", default=None)  # threads, by `limited_to`


@functools.cache
def _blas() -> tuple[ThreadpoolController, ThreadpoolController]:
    """Return the BLAS libraries whose number of threads holds for the thread that sets it, and all
    others.
    """
    import scipy.linalg.cython_blas  # noqa: F401  # kernels multiply matrices by SciPy's library: load it before looking

    # looks through what is loaded, which takes milliseconds
    libraries = ThreadpoolController().select(user_api="blas")
    by_thread = []
    by_process = []
    for library in libraries.info():
        if library["internal_api"] == "mkl" or library.get("threading_layer") == "openmp":
            by_thread.append(library["filepath"])
        else:
            by_process.append(library["filepath"])
    return libraries.select(filepath=by_thread), libraries.select(filepath=by_process)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let a matrix product run on the thread that asks for it, this one or one of `workers`: its
    bits are fixed.

    A limit of the whole process is set by the first thread that comes here, and put back by the
    last one that leaves.
    """
    global _inside, _process
    by_thread, by_process = _blas()
    # to threadpoolctl only the first thread that limits OpenBLAS may: it does nothing for others,
    # without a word
    forget_first = functools.partial(OpenBLASController.clear_controlling_thread, force=True)
    with by_thread.limit(limits=1):
        with _lock:
            if _inside == 0:
                forget_first()
                _process = by_process.limit(limits=1)
            _inside += 1
        try:
            yield
        finally:
            with _lock:
                _inside -= 1
                if _inside == 0:
                    forget_first()
                    _process.restore_original_limits()
                    forget_first()


def workers(n_threads: int) -> ThreadPoolExecutor:
    """Return threads that ask for matrix products on themselves alone within `one_blas_thread`."""
    return ThreadPoolExecutor(n_threads, initializer=lambda: _blas()[0].limit(limits=1))


def thread_count(n_threads: int | None) -> int:
    """Return `n_threads`, checked to be at least 1, or the number of processors that this thread
    may use.

    A container's share of processor time counts too: two processors' worth of it on 64 of them are
    2.
    """
    if n_threads is not None:
        return checks.integer("n_threads", n_threads, at_least=1)
    allowed = _allowed.get()
    if allowed is not None:
        return allowed
    from joblib import cpu_count  # as late as this, since it takes a while to import

    return int(cpu_count())


def in_threads(work: Callable[[Any], _T], items: Iterable[Any], n_threads: int | None) -> list[_T]:
    """Return ``work(item)`` for each of the items, in their order, computed on
    `n_threads` threads.
    """
    with workers(thread_count(n_threads)) as pool:
        return list(pool.map(work, items))


def in_halves(work: Callable[[slice], object], size: int, pool: Executor | None) -> None:
    """Call ``work`` for both halves of ``range(size)``, for the second one on a thread of the pool
    if there is one.
    """
    first = slice(0, size // 2)
    second = slice(size // 2, size)
    if pool is None:
        work(first)
        work(second)
        return
    # with this thread's way to treat overflow
    other = pool.submit(copy_context().run, work, second)
    try:
        work(first)
    finally:
        other.result()  # also where the first half fails: nobody writes after the call


@functools.cache
def numba_with_threads() -> Any:
    """Return Numba, its threads started such that idle ones sleep, unless the environment says
    otherwise.

    By default OpenMP's spin: where other processes want the processors too, a generation took forty
    times as long. OpenMP reads the variable when it is loaded, which is now.
    """
    import numba  # as late as this, since it takes a while to import

    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        numba.get_num_threads()
        os.environ.pop("OMP_WAIT_POLICY", None)  # which another thread may have done
    return numba


@contextmanager
def limited_to(n_threads: int) -> Iterator[None]:
    """Let this thread take so many threads within the block: one of several tasks at work, here or
    elsewhere.

    `thread_count` and Numba go by it, in this thread alone; matrix products run on one thread each.
    """
    numba = numba_with_threads()
    before = numba.get_num_threads()
    allowed = _allowed.set(n_threads)
    numba.set_num_threads(min(n_threads, before))
    try:
        with one_blas_thread():
            yield
    finally:
        numba.set_num_threads(before)
        _allowed.reset(allowed)


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C come at the end of a block: within, it would be lost in LLVM's callbacks, or leave
    pycma half told.
    """
    handler = signal.getsignal(signal.SIGINT)
    came = []
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, lambda *told: came.append(told))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[0])
