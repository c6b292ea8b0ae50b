"""Workers change nothing but who calls the function: threads, processes, executors, whatever
happens in them.
"""

import multiprocessing.pool
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leamvd import Reading, minimize
from leamvd._support import children, threads
from leamvd.optimizers import evaluation
from leamvd.optimizers.evaluation import Evaluation
from leamvd.optimizers.methods import METHODS
from problems import rastrigin, sphere
from test_optimizers import assert_same

X0 = np.linspace(-1, 1, 6)


def point(x: Any, shift: float = 0.0) -> float:
    return float(rastrigin(x[None])[0]) + shift


def run(fun: Any = point, **options: Any) -> Any:
    return minimize(fun, X0, **{"seed": 1, "n_gen": 6} | options)


@pytest.mark.parametrize(("count", "sizes"), [(2, [1, 1]), (7, [2, 2, 1, 1, 1]), (1, [1])])
def test_each_worker_gets_as_many_rows_as_others_and_none_an_empty_part(
    count: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "thread_count", lambda _: 5)
    parts: list[int] = []

    def fun(X: Any) -> Any:
        parts.append(len(X))
        return X.sum(axis=1)

    X = np.arange(3.0 * count).reshape(count, 3)
    values = Evaluation(fun, (), vectorized=True, workers=map)(X)
    assert (parts, values.tolist()) == (sizes, X.sum(axis=1).tolist())


@pytest.mark.parametrize(("workers", "expected"), [(1, None), (2, 2), (7, 7), (-1, 5)])
def test_as_many_processes_are_asked_for_as_are_given_or_there_are(
    workers: int, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "thread_count", lambda _: 5)
    seen: list[int] = []

    def in_processes(n_jobs: int, function: Any, items: Any) -> list[Any]:
        seen.append(n_jobs)
        return [function(item) for item in items]

    monkeypatch.setattr(evaluation, "_in_processes", in_processes)
    X = np.arange(24.0).reshape(8, 3)
    for vectorized in (True, False):
        values = Evaluation(lambda x: x.sum(axis=-1), (), vectorized=vectorized, workers=workers)(X)
        np.testing.assert_array_equal(values, X.sum(axis=1))
    assert seen == ([] if expected is None else [expected] * 2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("vectorized", [False, True])
def test_maps_and_executors_give_the_same_bits(method: str, vectorized: bool) -> None:
    fun = sphere if vectorized else point
    plain = run(fun, method=method, vectorized=vectorized)
    with ThreadPoolExecutor(3) as executor, multiprocessing.pool.ThreadPool(2) as pool:
        for workers in (map, executor, executor.map, pool):
            assert_same(run(fun, method=method, vectorized=vectorized, workers=workers), plain)
        assert executor.submit(abs, -3).result() == 3  # it is left open


def test_processes_give_the_same_bits_for_any_function(tmp_path: Path) -> None:
    """Functions of a notebook, too, and lambdas: what pickle does not take."""
    reading = Reading(elites="reevaluate", reset="initial")
    factor = np.pi
    for fun, options in (
        (point, {"args": (0.25,), "reading": reading, "dtype": "float32"}),
        (lambda x: factor * point(x), {"checkpoint": tmp_path / "run.npz"}),
        (lambda X: factor * rastrigin(X), {"vectorized": True}),
        (lambda x: (point(x), x.fill(0))[0], {}),
    ):
        plain = run(fun, **options)
        for workers in (2, -1):
            assert_same(run(fun, **options, workers=workers), plain)


def test_processes_are_others_and_as_many_as_are_asked_for() -> None:
    for workers, here in ((1, True), (2, False)):
        evaluate = Evaluation(
            lambda x: x.fill(0) or os.getpid(), (), vectorized=False, workers=workers
        )
        # large ones can be written to as well
        found = set(evaluate(np.zeros((20, 200_000))).astype(int).tolist())
        assert len(found) <= workers
        assert (os.getpid() in found) is here


def test_each_process_gets_some_rows() -> None:
    sizes = Evaluation(lambda X: np.full(len(X), len(X)), (), vectorized=True, workers=2)(
        np.zeros((7, 3))
    )
    assert sizes.tolist() == [4] * 4 + [3] * 3


def test_an_error_in_a_process_keeps_its_type_and_carries_the_best_so_far() -> None:
    first = run(n_gen=1)

    def failing(x: Any, best: float = first.fun) -> float:
        if x[0] < -1.3:
            raise ZeroDivisionError("one over nothing")
        return point(x)

    for workers in (1, 2):
        with pytest.raises(ZeroDivisionError, match="one over nothing") as caught:
            run(failing, workers=workers, n_gen=100)
        result = caught.value.result  # type: ignore[attr-defined]
        assert result.nit > 0
        assert result.fun == point(result.x)


def test_a_worker_that_dies_is_one_error_and_the_next_search_has_others() -> None:
    with pytest.raises(BrokenExecutor) as caught:
        run(lambda x: os._exit(3), workers=2)
    assert caught.value.result.nit == 0  # type: ignore[attr-defined]
    assert_same(run(workers=2), run())


SCRIPT = """
import os, signal, sys, time
import numpy as np
import leamvd

# a shell ignores it for what runs in the background
signal.signal(signal.SIGINT, signal.default_int_handler)

def fun(x):
    with open(sys.argv[1] + f"/{os.getpid()}", "w"):
        pass
    time.sleep(60)

result = leamvd.minimize(fun, np.ones(4), seed=1, workers=2)
print(result.reason, flush=True)
"""


@pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them"
)
# by name: Windows, where this is skipped, has but one of them
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])
def test_processes_end_with_ctrl_c_and_with_the_one_that_started_them(
    how: str, tmp_path: Path
) -> None:
    script, seen = tmp_path / "script.py", tmp_path / "seen"
    script.write_text(SCRIPT, encoding="utf-8")
    seen.mkdir()
    child = subprocess.Popen(
        [sys.executable, str(script), str(seen)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    wait_until(lambda: len(list(seen.iterdir())) == 2)
    child.send_signal(signal.Signals[how])
    out, _ = child.communicate(timeout=60)
    assert out == (b"interrupted\n" if how == "SIGINT" else b"")
    wait_until(lambda: not any(alive(int(path.name)) for path in seen.iterdir()))


def alive(pid: int) -> bool:
    try:
        return (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            != "Z"
        )
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("raised", "ended"), [(ProcessLookupError, True), (PermissionError, False), (None, False)]
)
def test_a_process_of_another_user_has_not_ended(
    monkeypatch: pytest.MonkeyPatch, raised: type[OSError] | None, ended: bool
) -> None:
    def kill(pid: int, signal: int) -> None:
        assert (pid, signal) == (12, 0)
        if raised is not None:
            raise raised

    monkeypatch.setattr(children.sys, "platform", "linux")
    monkeypatch.setattr(children.os, "kill", kill)
    assert children.ended(12) == ended
