"""Work on threads keeps its order, and matrix products stay on one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from threadpoolctl import threadpool_info

from leamvd._support.threads import in_halves, in_threads, one_blas_thread, thread_count


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_keep_the_order_of_the_items(n_threads: int) -> None:
    def work(i: int) -> tuple[int, int]:
        time.sleep(0.001 * (i % 3))
        return i, threading.get_ident()

    results = in_threads(work, range(20), n_threads)
    assert [i for i, _ in results] == list(range(20))
    assert len({ident for _, ident in results}) <= n_threads


def test_an_error_reaches_the_caller() -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda i: 1 // i, [1, 0], 2)


def test_blas_is_limited_inside_the_context_only() -> None:
    def threads() -> set[int]:
        return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

    before = threads()
    with one_blas_thread():
        assert threads() == {1}
    assert threads() == before


def test_thread_count() -> None:
    assert thread_count(3) == 3
    assert thread_count(None) >= 1
    with pytest.raises(ValueError, match="n_threads must be an integer >= 1, got 0"):
        thread_count(0)


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor(1)], ids=["one thread", "two"])
@pytest.mark.parametrize("size", [0, 1, 7])
def test_halves_make_the_whole(size: int, pool: ThreadPoolExecutor | None) -> None:
    done: list[tuple[int, int]] = []
    in_halves(lambda half: done.extend((i, threading.get_ident()) for i in range(half.start, half.stop)), size, pool)
    assert sorted(i for i, _ in done) == list(range(size))
    assert len({ident for _, ident in done}) == min(size, 1 if pool is None else 2)


@pytest.mark.parametrize("wrong", [0, 2])
def test_an_error_in_either_half_reaches_the_caller_after_both(wrong: int) -> None:
    ended: list[int] = []

    def work(half: slice) -> None:
        time.sleep(0.01 * (half.start > 0))
        ended.append(half.start)
        if half.start == wrong:
            raise ZeroDivisionError

    with ThreadPoolExecutor(1) as pool, pytest.raises(ZeroDivisionError):
        in_halves(work, 4, pool)
    assert sorted(ended) == [0, 2]
