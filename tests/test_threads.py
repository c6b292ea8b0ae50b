"""Work on threads keeps its order and its bits, settings are put back, and a fork goes on."""

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import leamvd
from leamvd._support.compile import kernel
from leamvd._support.threads import in_halves, in_threads, limited_to, one_blas_thread, thread_count
from leamvd.optimizers import directions, sampling
from problems import sphere


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_keep_the_order_of_the_items(n_threads: int) -> None:
    def work(i: int) -> tuple[int, int]:
        time.sleep(0.001 * (i % 3))
        return i, threading.get_ident()

    results = in_threads(work, range(20), n_threads)
    assert [i for i, _ in results] == list(range(20))
    assert len({ident for _, ident in results}) <= n_threads


def blas_threads() -> set[int]:
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}


with one_blas_thread():  # loads SciPy's library
    pass
needs_blas = pytest.mark.skipif(
    not blas_threads(), reason="threadpoolctl knows no library here, as of Apple's Accelerate"
)


@needs_blas
@pytest.mark.parametrize(
    "limited", [one_blas_thread, lambda: limited_to(1)], ids=["products", "a task"]
)
def test_contexts_that_overlap_in_two_threads_put_back_what_was(limited: Any) -> None:
    with threadpool_limits(2, user_api="blas"), ThreadPoolExecutor(1) as other:
        for _ in range(2):
            first, second = limited(), limited()
            first.__enter__()
            assert blas_threads() == {1}
            other.submit(second.__enter__).result()
            first.__exit__(None, None, None)
            assert blas_threads() == {1}, "the other thread is still inside"
            other.submit(second.__exit__, None, None, None).result()
            assert blas_threads() == {2}


def test_a_task_takes_its_part_of_the_threads_and_leaves_the_others_theirs() -> None:
    usual = thread_count(None), numba.get_num_threads()
    with ThreadPoolExecutor(1) as other, limited_to(3):
        with limited_to(1):
            assert (thread_count(None), numba.get_num_threads()) == (1, 1)
            assert thread_count(5) == 5
            assert (
                other.submit(lambda: (thread_count(None), numba.get_num_threads())).result()
                == usual
            )
        assert thread_count(None) == 3
    assert (thread_count(None), numba.get_num_threads()) == usual


@pytest.mark.compiled
def test_kernels_take_no_more_threads_than_they_have_work_for_and_give_them_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As on a machine with eight."""
    leamvd.minimize(sphere, np.ones(2 * directions.CHUNK), n_gen=1, vectorized=True)  # starts them
    eight = SimpleNamespace(get_num_threads=lambda: 8)
    monkeypatch.setattr("leamvd._support.compile.numba_with_threads", lambda: eight)
    asked: list[int] = []
    monkeypatch.setattr(numba, "set_num_threads", asked.append)
    for pieces, pairs in ((1, set()), (3, {(3, 8)}), (10, {(8, 8)})):
        asked.clear()
        x0 = np.ones(pieces * directions.CHUNK)
        leamvd.minimize(sphere, x0, n_gen=2, seed=1, vectorized=True)
        assert {*zip(asked[::2], asked[1::2], strict=True)} == pairs, "during, and after"


@pytest.mark.parametrize("pool", [None, ThreadPoolExecutor(1)], ids=["one thread", "two"])
@pytest.mark.parametrize("size", [0, 1, 7])
def test_halves_make_the_whole(size: int, pool: ThreadPoolExecutor | None) -> None:
    done: list[tuple[int, int]] = []
    in_halves(
        lambda half: done.extend((i, threading.get_ident()) for i in range(half.start, half.stop)),
        size,
        pool,
    )
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


# ---- numba's threads

SEARCH = """
import multiprocessing, os, re
from concurrent.futures import ThreadPoolExecutor
import numba, numpy as np
import leamvd

def search(n):
    opt = leamvd.LEAMVD(np.ones(n), seed=1)
    for _ in range(4):
        X = opt.ask()
        opt.tell(X, (X**2).sum(axis=1))
    return b"".join(np.asarray(value).tobytes() for value in opt.state)

def layer():
    try:
        return numba.threading_layer()
    except ValueError:
        return None

"""


def fresh(tmp_path: Path, program: str, **variables: str) -> str:
    """Run a program in a process with two of Numba's threads."""
    path = tmp_path / "program.py"  # Numba stores nothing of functions without a file
    path.write_text(SEARCH + program)
    environment = os.environ | {"NUMBA_NUM_THREADS": "2"} | variables
    done = subprocess.run(
        [sys.executable, path], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.compiled
def test_small_problems_start_no_threads(tmp_path: Path) -> None:
    program = """
leamvd.minimize(lambda x: x @ x, np.ones(50), n_gen=3)
for n in (50, 8192, 8193):
    search(n)
    print(layer() is not None)
"""
    assert fresh(tmp_path, program).split() == ["False", "False", "True"]


@pytest.mark.compiled
@pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform == "darwin",
    reason="no fork here that libraries survive",
)
@pytest.mark.parametrize("before", [50, 20_000], ids=["no threads yet", "threads"])
def test_a_forked_process_goes_on_whether_its_parent_has_threads_or_not(
    tmp_path: Path, before: int
) -> None:
    program = f"""
search({before})
with multiprocessing.get_context("fork").Pool(2) as pool:
    found = pool.map_async(search, [20_000] * 3).get(60)
print(set(found) == {{search(20_000)}})
"""
    assert fresh(tmp_path, program) == "True\n"


@pytest.mark.compiled
def test_two_threads_of_python_take_turns_on_numbas_own_scheduler(tmp_path: Path) -> None:
    """It ends the process when it is called by two at once."""
    program = """
expected = search(20_000)
with ThreadPoolExecutor(2) as pool:
    assert set(pool.map(search, [20_000] * 30)) == {expected}
print(layer())
"""
    assert fresh(tmp_path, program, NUMBA_THREADING_LAYER="workqueue") == "workqueue\n"


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("given", "policy"), [({}, "PASSIVE"), ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE")]
)
def test_idle_threads_sleep_unless_the_environment_says_otherwise(
    tmp_path: Path, given: dict[str, str], policy: str
) -> None:
    """Where they spin, each generation waits for them on a busy machine."""
    program = """
read, write = os.pipe()
os.dup2(write, 2)  # OpenMP tells there how it has been set
search(20_000)
told = os.read(read, 100_000).decode()
print(re.findall(r"OMP_WAIT_POLICY ?= ?'(.+)'", told), os.environ.get("OMP_WAIT_POLICY"))
"""
    shown = fresh(tmp_path, program, OMP_DISPLAY_ENV="TRUE", NUMBA_THREADING_LAYER="omp", **given)
    assert shown == f"['{policy}'] {given.get('OMP_WAIT_POLICY')}\n"


@pytest.mark.compiled
@pytest.mark.parametrize("n", [50, 8193, 100_000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kernels_on_one_thread_and_on_two_give_the_same_bits(
    dtype: str, n: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are compiled twice; here each way for every length."""
    reading = leamvd.Reading(step="sampled", limits="reflect")
    states: list[list[Any]] = []
    for columns in (1, n):
        for module, names in (
            (directions, ["_scan"]),
            (sampling, ["uniform", "normal", "regenerate"]),
        ):
            for name in names:
                again = kernel(parallel=columns)(getattr(module, name).__wrapped__)
                monkeypatch.setattr(module, name, again)
        states.append([])
        for start in ({"n_var": n}, {"x0": np.linspace(-1, 1, n)}):
            opt = leamvd.LEAMVD(**start, bounds=(-2, 2), seed=1, dtype=dtype, reading=reading)  # type: ignore[arg-type]
            for _ in range(4):
                X = opt.ask()
                opt.tell(X, sphere(X))
            states[-1].append(opt.state)
    for one, two in zip(*states, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(a, b)
