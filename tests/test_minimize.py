from typing import Any

import numpy as np
import pytest
from problems import sphere
from scipy.optimize import OptimizeResult

import leamvd
from leamvd import LEAMVD, minimize
from leamvd.optimizers.minimize import METHODS, Generation

X0 = np.linspace(-1, 1, 6)


def point(x: Any) -> float:
    return float(sphere(x[None])[0])


def run(fun: Any = point, **options: Any) -> Any:
    return minimize(fun, X0, **{"seed": 1, "n_gen": 5} | options)


def test_it_is_ask_and_tell() -> None:
    opt = LEAMVD(X0, seed=1, n_gen=5)
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, sphere(X))
    result = run()
    np.testing.assert_array_equal(result.x, opt.result.x)
    assert (result.fun, result.nit, result.nfev, result.status, result.success) == (opt.best_fun, 5, 104, "n_gen", True)


@pytest.mark.parametrize("method", METHODS)
def test_one_point_or_a_generation_at_a_time_is_the_same_run(method: str) -> None:
    one, many = run(method=method), run(sphere, vectorized=True, method=method)
    np.testing.assert_allclose(one.x, many.x, rtol=1e-12)
    np.testing.assert_allclose(one.history.best, many.history.best, rtol=1e-12)


def test_the_history_has_a_value_a_generation() -> None:
    states, values = [], []

    def fun(X: Any) -> Any:
        values.append(sphere(X))
        values[-1][1] = np.nan if len(values) == 3 else values[-1][1]
        return values[-1]

    history = run(fun, vectorized=True, callback=lambda intermediate_result: states.append(intermediate_result)).history
    assert isinstance(history, Generation)
    np.testing.assert_array_equal(history.best, np.minimum.accumulate([np.nanmin(F) for F in values]))
    np.testing.assert_array_equal(history.best, [state.fun for state in states])
    np.testing.assert_allclose(history.mean, [np.nanmean(F) for F in values], rtol=1e-12)
    np.testing.assert_array_equal(history.worst, [F.max() if i != 2 else np.inf for i, F in enumerate(values)])
    np.testing.assert_array_equal(history.nfev, [24, 44, 64, 84, 104])
    opt = LEAMVD(X0, seed=1)
    for t in range(2):
        X = opt.ask()
        opt.tell(X, sphere(X))
        assert (history.std_norm[t], history.beta1[t], history.beta2[t]) == opt.step_sizes


def test_a_generation_without_a_finite_value_is_infinite_in_the_history() -> None:
    result = run(lambda x: np.nan)
    assert (result.status, result.success, result.nit, result.n_nan) == ("nan", False, 1, 24)
    assert (result.history.mean[0], result.history.worst[0], result.history.best[0]) == (np.inf, np.inf, np.inf)


@pytest.mark.parametrize("answer", [True, np.True_, 1])
def test_a_callback_may_stop_with_a_true_value(answer: Any) -> None:
    seen = []

    def callback(x: Any) -> Any:
        seen.append(x.copy())
        return answer if len(seen) == 2 else None

    result = run(callback=callback)
    assert (result.nit, result.status, result.success) == (2, "callback", True)
    np.testing.assert_array_equal(seen[-1], result.x)


def test_a_callback_may_stop_by_scipys_exception_and_see_the_result() -> None:
    def callback(*, intermediate_result: OptimizeResult) -> None:
        if intermediate_result.nit == 3:
            raise StopIteration

    result = run(callback=callback)
    assert (result.nit, result.status) == (3, "callback")


def test_the_target_ends_the_run() -> None:
    everything = run(n_gen=20).history.best
    result = run(n_gen=20, target=everything[7])
    assert result.nit == np.flatnonzero(everything <= everything[7])[0] + 1
    assert (result.status, result.message) == ("target", "The target value has been reached.")


def test_progress_goes_to_stderr_and_only_if_asked(capfd: pytest.CaptureFixture[str]) -> None:
    run()
    assert capfd.readouterr() == ("", "")
    run(progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "lea-mvd: 100%" in err
    assert "5/5" in err


def failing(error: BaseException, after: int) -> Any:
    calls: list[float] = []

    def fun(x: Any) -> float:
        calls.append(point(x))
        if len(calls) > after:
            raise error
        return calls[-1]

    return fun


def test_ctrl_c_returns_the_best_so_far() -> None:
    result = run(failing(KeyboardInterrupt(), 50))
    assert (result.status, result.success, result.nit, result.nfev) == ("interrupted", False, 2, 44)
    assert result.fun == point(result.x)
    assert len(result.history.best) == 2
    nothing = run(failing(KeyboardInterrupt(), 3))
    assert (nothing.x, nothing.nfev, len(nothing.history.best)) == (None, 0, 0)


def test_an_exception_in_the_objective_carries_the_best_so_far() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(failing(ZeroDivisionError("one over nothing"), 30))
    result = caught.value.result  # type: ignore[attr-defined]
    assert (result.nit, result.nfev, result.fun) == (1, 24, point(result.x))
    assert caught.value.__notes__ == [
        f"the best of 24 evaluations so far, {result.fun:.6g}, is in this error's `result`"
    ]


def test_wrong_arguments_are_named_before_the_first_call() -> None:
    fun = failing(AssertionError("called"), 0)
    with pytest.raises(TypeError, match="fun must be callable, got 3"):
        minimize(3, X0)  # type: ignore[arg-type]
    with pytest.raises(
        ValueError, match="method must be one of 'lea-mvd', 'cma-es', 'sep-cma-es', 'random', got 'cma'"
    ):
        run(fun, method="cma")
    with pytest.raises(ValueError, match="target must be a finite number, got nan"):
        run(fun, target=np.nan)
    with pytest.raises(TypeError, match="populationsize"):
        run(fun, populationsize=3)
    with pytest.raises(ValueError, match="x0 must be given for method='cma-es', got None"):
        minimize(fun, bounds=(0, 1), n_var=3, method="cma-es")


def test_bounds_and_a_wrong_value_reach_the_optimizer() -> None:
    result = minimize(point, bounds=(0, 1), n_var=4, seed=2, n_gen=2, reading=leamvd.Reading(limits="clip"))
    assert np.all((result.x >= 0) & (result.x <= 1))
    with pytest.raises(ValueError, match="F must be larger than -inf"):
        run(lambda x: -np.inf)
