"""Workers change nothing but who calls the function: threads, processes, executors, whatever happens in them."""

import multiprocessing.pool
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import rastrigin, sphere

from leamvd import Reading, minimize
from leamvd.optimizers import evaluation
from leamvd.optimizers.evaluation import Evaluation
from leamvd.optimizers.methods import METHODS

X0 = np.linspace(-1, 1, 6)


def point(x: Any, shift: float = 0.0) -> float:
    return float(rastrigin(x[None])[0]) + shift


def slow_at_first(x: Any) -> float:
    """The first candidates take longest, so that they end last."""
    time.sleep(0.002 if x[0] < -0.95 else 0)
    return point(x)


class OddError(Exception):
    """One that pickle cannot restore."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(what)


def failing(x: Any) -> float:
    if x[0] > -0.9:
        raise ZeroDivisionError("one over nothing")
    return point(x)


def oddly_failing(x: Any) -> float:
    raise OddError("odd", 3)


def dying(x: Any) -> float:
    if x[0] > -0.9:
        os._exit(3)
    return point(x)


def identity(x: Any) -> float:
    return float(os.getpid())


def bad_shape(X: Any) -> Any:
    return np.zeros(7)


def run(fun: Any = point, **options: Any) -> Any:
    return minimize(fun, X0, **{"seed": 1, "n_gen": 8} | options)


def assert_same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.x, b.x)
    for one, other in zip(a.history, b.history, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.dtype == other.dtype
    assert {k: v for k, v in a.items() if k not in ("x", "history")} == {
        k: v for k, v in b.items() if k not in ("x", "history")
    }


@pytest.fixture(autouse=True)
def _no_process_is_left() -> Iterator[None]:
    before = set(multiprocessing.active_children())
    yield
    assert set(multiprocessing.active_children()) == before


class OnlyMap:
    def map(self, function: Callable[[Any], Any], items: Any) -> list[Any]:
        return [function(item) for item in items]


class OnlySubmit:
    """Runs what it is given when it is asked for it, the last first."""

    def __init__(self) -> None:
        self.submitted: list[Any] = []

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        future: Future[Any] = Future()
        self.submitted.append((future, function, arguments))
        if len(self.submitted) % 4 == 0:
            for each, call, given in reversed(self.submitted):
                each.set_result(call(*given))
            self.submitted.clear()
        return future


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("vectorized", [False, True])
def test_threads_and_executors_give_the_same_bits(method: str, vectorized: bool) -> None:
    fun = sphere if vectorized else point
    plain = run(fun, method=method, vectorized=vectorized)
    with ThreadPoolExecutor(3) as executor, multiprocessing.pool.ThreadPool(2) as pool:
        for workers in (executor, pool, OnlyMap(), OnlySubmit()):
            assert_same(run(fun, method=method, vectorized=vectorized, workers=workers), plain)
        assert executor.submit(abs, -3).result() == 3  # it is left open


def test_candidates_that_end_in_another_order_keep_their_values() -> None:
    with ThreadPoolExecutor(4) as executor:
        assert_same(run(slow_at_first, workers=executor), run())


def test_processes_give_the_same_bits() -> None:
    reading = Reading(elites="reevaluate", reset="initial")
    options: dict[str, Any] = {"dtype": "float32", "reading": reading, "args": (0.25,), "n_gen": 14}
    plain = run(**options)
    for workers in (1, 2):
        assert_same(run(**options, workers=workers), plain)
    in_parts = {"vectorized": True, "dtype": "float64"}
    assert_same(run(rastrigin, **in_parts, workers=2), run(rastrigin, **in_parts))


def test_the_number_of_processes_is_the_one_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation.threads, "thread_count", lambda n: 2)  # type: ignore[attr-defined]
    for workers, expected in ((1, {os.getpid()}), (2, 2), (-1, 2)):
        with Evaluation(identity, (), vectorized=False, workers=workers) as evaluate:
            found = set(evaluate(np.zeros((200, 2))).astype(int).tolist())
        if workers == 1:
            assert found == expected
        else:
            assert len(found) <= 2
            assert os.getpid() not in found


def test_an_executor_gets_as_many_parts_as_it_has_workers() -> None:
    sizes: list[int] = []

    def fun(X: Any) -> Any:
        sizes.append(len(X))
        return sphere(X)

    with ThreadPoolExecutor(3) as executor:
        run(fun, vectorized=True, workers=executor, n_gen=2)
    assert sorted(sizes) == [6, 7, 7, 8, 8, 8]
    sizes.clear()
    run(fun, vectorized=True, workers=OnlyMap(), n_gen=1)
    assert sizes == [1] * 24


def test_an_error_in_a_process_keeps_its_type_and_carries_the_best_so_far() -> None:
    with pytest.raises(ZeroDivisionError, match="one over nothing") as caught:
        run(failing, workers=2)
    with pytest.raises(ZeroDivisionError) as plain:
        run(failing)
    ours, theirs = caught.value.result, plain.value.result  # type: ignore[attr-defined]
    assert_same(ours, theirs)
    with pytest.raises(RuntimeError, match="fun raised OddError: odd"):
        run(oddly_failing, workers=2)


def test_a_worker_that_dies_is_one_error_with_the_best_so_far() -> None:
    with pytest.raises(BrokenExecutor) as caught:
        run(dying, workers=2)
    assert caught.value.result.nit == 0  # type: ignore[attr-defined]


def test_what_remains_of_a_generation_is_cancelled_after_an_error() -> None:
    called: list[Any] = []

    def fun(x: Any) -> float:
        called.append(x)
        time.sleep(0.005)
        raise ZeroDivisionError

    with ThreadPoolExecutor(1) as executor, pytest.raises(ZeroDivisionError):
        run(fun, workers=executor)
    assert len(called) < 24


@pytest.mark.parametrize("vectorized", [False, True])
def test_functions_that_cannot_be_sent_are_named_before_anything_runs(vectorized: bool) -> None:
    called: list[Any] = []

    def local(x: Any) -> float:
        called.append(x)
        return 0.0

    for fun in (local, lambda x: 0.0):
        with pytest.raises(
            TypeError, match="fun and args must be picklable where processes are the workers, got <func"
        ):
            run(fun, workers=2, vectorized=vectorized)
    with ProcessPoolExecutor(1) as pool, pytest.raises(TypeError, match="fun and args must be picklable"):
        run(local, workers=pool)
    assert called == []
    with pytest.raises(ValueError, match=r"fun's values must have shape \(12,\), got \(7,\)"):
        run(bad_shape, vectorized=True, workers=2)


def test_a_function_that_new_processes_cannot_import_is_named() -> None:
    program = (
        "import numpy as np, leamvd\n"
        "def fun(x): return float(x @ x)\n"
        "try: leamvd.minimize(fun, np.ones(4), seed=1, workers=2)\n"
        "except TypeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("fun must be a function that new processes can import: one of a module, or of")


SCRIPT = """
import os, signal, sys, time
import numpy as np
import leamvd

def fun(x):
    with open(sys.argv[1] + f"/{os.getpid()}", "w"):
        pass
    time.sleep(60)

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it for what runs in the background
    result = leamvd.minimize(fun, np.ones(4), seed=1, workers=2)
    print(result.reason, flush=True)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes where Linux lists them")
@pytest.mark.parametrize("how", ["SIGINT", "SIGKILL"])  # by name: Windows, where this is skipped, has but one of them
def test_processes_end_with_ctrl_c_and_with_the_one_that_started_them(how: str, tmp_path: Path) -> None:
    script, seen = tmp_path / "script.py", tmp_path / "seen"
    script.write_text(SCRIPT, encoding="utf-8")
    seen.mkdir()
    child = subprocess.Popen([sys.executable, str(script), str(seen)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_until(lambda: len(list(seen.iterdir())) == 2, 60)
    child.send_signal(signal.Signals[how])
    out, err = child.communicate(timeout=10)
    assert (out, err) == ((b"interrupted\n", b"") if how == "SIGINT" else (b"", err))
    wait_until(lambda: not any(alive(int(path.name)) for path in seen.iterdir()), 5)


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
