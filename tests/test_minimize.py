import copy
import dataclasses
import doctest
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.optimize
from problems import sphere
from scipy.optimize import OptimizeResult

import leamvd
from leamvd import LEAMVD, minimize
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.methods import METHODS
from leamvd.optimizers.minimize import Generation

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
    assert (result.fun, result.nit, result.nfev, result.reason, result.success) == (
        opt.best_fun,
        5,
        104,
        "n_gen",
        False,
    )


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
    assert (result.reason, result.success, result.nit, result.n_nan) == ("nan", False, 1, 24)
    assert (result.history.mean[0], result.history.worst[0], result.history.best[0]) == (np.inf, np.inf, np.inf)


@pytest.mark.parametrize("answer", [True, np.True_, 1])
def test_a_callback_may_stop_with_a_true_value(answer: Any) -> None:
    seen = []

    def callback(x: Any) -> Any:
        seen.append(x.copy())
        return answer if len(seen) == 2 else None

    result = run(callback=callback)
    assert (result.nit, result.reason, result.success) == (2, "callback", False)
    np.testing.assert_array_equal(seen[-1], result.x)


def test_a_callback_may_stop_by_scipys_exception_and_see_the_result() -> None:
    def callback(*, intermediate_result: OptimizeResult) -> None:
        if intermediate_result.nit == 3:
            raise StopIteration

    result = run(callback=callback)
    assert (result.nit, result.reason) == (3, "callback")


def test_the_target_ends_the_run() -> None:
    everything = run(n_gen=20).history.best
    result = run(n_gen=20, target=everything[7])
    assert result.nit == np.flatnonzero(everything <= everything[7])[0] + 1
    assert (result.reason, result.message) == ("target", "The target value has been reached.")
    both = run(target=everything[0], max_seconds=1e-9, callback=lambda x: True)
    assert (both.reason, both.nit) == ("target", 1), "whatever else would have ended it"


@pytest.mark.parametrize("method", METHODS)
def test_no_generation_brings_the_evaluations_above_their_limit(method: str) -> None:
    sizes: list[int] = []

    def fun(X: Any) -> Any:
        sizes.append(len(X))
        return sphere(X)

    for max_nfev in (24, 43, 44, 71, 72, 100):
        sizes.clear()
        result = run(fun, method=method, max_nfev=max_nfev, vectorized=True)
        assert (result.reason, result.success, result.nfev) == ("max_nfev", False, sum(sizes))
        assert result.nfev <= max_nfev < result.nfev + (20 if method == "lea-mvd" else 24)
    assert run(method=method, max_nfev=1000).reason == "n_gen"
    everything: Any = run(fun, vectorized=True, max_nfev=71, reading=leamvd.Reading(elites="reevaluate"))
    assert everything.nfev == 48


def test_time_that_is_up_ends_the_generation_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that shows one second more whenever the function is called."""
    clock = [100.0]
    monkeypatch.setattr("leamvd.optimizers.minimize.time.monotonic", lambda: clock[0])

    def fun(x: Any) -> float:
        clock[0] += 1
        return point(x)

    for seconds, evaluations in ((0.5, 24), (24, 24), (24.5, 44), (50, 64)):
        result = run(fun, max_seconds=seconds)
        assert (result.reason, result.success, result.nfev) == ("max_seconds", False, evaluations)
        assert result.message == "The time is used up."
    assert run(fun, max_seconds=105).reason == "n_gen"


@pytest.mark.parametrize("k", [1, 3])
def test_generations_without_a_better_best_end_the_run(k: int) -> None:
    def coarse(x: Any) -> float:
        return float(np.round(point(x)))

    best = run(coarse, n_gen=40).history.best
    expected = next(t for t in range(k, 40) if best[t] == best[t - k])
    result = run(coarse, n_gen=40, max_stagnation=k)
    assert (result.nit, result.reason, result.success) == (expected + 1, "max_stagnation", False)
    np.testing.assert_array_equal(result.history.best, best[: expected + 1])


def test_a_better_best_counts_even_where_the_last_is_worse() -> None:
    """Elites that are evaluated again may lose what they had."""
    generations = iter([5.0, 6.0, 4.0, 5.0, 5.0, 5.0, 5.0])

    def fun(X: Any) -> Any:
        return np.full(len(X), next(generations))

    result = run(fun, n_gen=7, vectorized=True, max_stagnation=3, reading=leamvd.Reading(elites="reevaluate"))
    assert result.nit == 6


def test_an_optimizer_that_is_there_goes_on() -> None:
    whole = run(n_gen=9)
    opt = LEAMVD(X0, seed=1, n_gen=9)
    for limits in ({"max_nfev": 60}, {"max_seconds": 1e-9}, {}):
        result: Any = minimize(point, method=opt, **limits)  # type: ignore[arg-type]
    np.testing.assert_array_equal(result.x, whole.x)
    np.testing.assert_array_equal(result.history.nfev, whole.history.nfev[3:])
    np.testing.assert_array_equal(result.history.best, whole.history.best[3:])
    assert (result.reason, result.nit, result.nfev) == ("n_gen", 9, 184)
    over: Any = minimize(failing(AssertionError(), 0), method=opt)
    assert (over.reason, over.nit, len(over.history.best)) == ("n_gen", 9, 0)
    other: Any = minimize(point, method=CMAES(X0, seed=1, n_gen=3))
    np.testing.assert_array_equal(other.x, run(method="cma-es", n_gen=3).x)


def test_an_optimizer_that_was_interrupted_goes_on() -> None:
    opt = LEAMVD(X0, seed=1, n_gen=5)
    assert minimize(failing(KeyboardInterrupt(), 50), method=opt)["reason"] == "interrupted"
    result: Any = minimize(point, method=opt)
    np.testing.assert_array_equal(result.x, run().x)
    again: Any = minimize(failing(AssertionError(), 0), method=copy.copy(opt), target=result.fun)
    assert (again.reason, again.nit) == ("target", 5)


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
    assert (result.reason, result.success, result.nit, result.nfev) == ("interrupted", False, 2, 44)
    assert result.fun == point(result.x)
    assert len(result.history.best) == 2
    nothing = run(failing(KeyboardInterrupt(), 3))
    assert (nothing.x, nothing.nfev, len(nothing.history.best)) == (None, 0, 0)


@pytest.mark.parametrize("error", [ZeroDivisionError("one over nothing"), StopIteration("enough")], ids=repr)
def test_an_exception_in_the_objective_carries_the_best_so_far(error: Exception) -> None:
    with pytest.raises(type(error)) as caught:
        run(failing(error, 30))
    result = caught.value.result
    assert (result.nit, result.nfev, result.fun) == (1, 24, point(result.x))
    np.testing.assert_array_equal(result.history.nfev, [24])
    np.testing.assert_array_equal(result.history.best, [result.fun])
    assert caught.value.__notes__ == [
        f"the best of 24 evaluations so far, {result.fun:.6g}, is in this error's `result`"
    ]


def test_an_exception_that_takes_no_attributes_stays_itself() -> None:
    @dataclasses.dataclass(frozen=True)
    class FrozenError(Exception):
        code: int

    class BareError(FrozenError):
        __slots__ = ()

    for error in (FrozenError(3), BareError(4)):
        with pytest.raises(FrozenError) as caught:
            run(failing(error, 30))
        assert caught.value is error


def test_an_error_after_a_generation_was_told_keeps_its_line_of_the_history() -> None:
    def callback(x: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError) as caught:
        run(callback=callback)
    result = caught.value.result  # type: ignore[attr-defined]
    assert (result.nit, len(result.history.best), result.history.best[-1]) == (1, 1, result.fun)


def test_a_point_may_be_kept_and_written_to_but_a_generation_is_a_view() -> None:
    kept, values = [], []

    def fun(x: Any) -> float:
        kept.append(x)
        values.append(point(x))
        return values[-1]

    plain = run()
    result = run(fun)
    np.testing.assert_array_equal(result.x, plain.x)
    assert [point(x) for x in kept] == values
    np.testing.assert_array_equal(run(lambda x: (point(x), x.fill(0))[0]).x, plain.x)
    with pytest.raises(ValueError, match="read-only"):
        run(lambda X: X.fill(0), vectorized=True)


@pytest.mark.parametrize("method", METHODS)
def test_bounds_are_kept_unless_limits_say_otherwise(method: str) -> None:
    """The best point lies far outside."""
    seen: list[Any] = []

    def fun(X: Any) -> Any:
        seen.append(X.copy())
        return -X.sum(axis=1)

    options: dict[str, Any] = {"bounds": (-1, 1), "vectorized": True, "method": method, "seed": 1, "n_gen": 20}
    minimize(fun, np.full(6, 0.8), **options)
    X = np.concatenate(seen)
    assert np.abs(X).max() <= 1
    assert np.any(X == 1) == ("cma" not in method), "clipped, not reflected; pycma has a way of its own"
    if method == "lea-mvd":
        for own, outside in (
            ({"reading": leamvd.Reading.recommended()}, False),
            ({"reading": leamvd.Reading(limits="reflect")}, False),
            ({"limits": "first"}, True),
            ({"reading": leamvd.Reading.recommended(), "limits": "first"}, True),
        ):
            seen.clear()
            minimize(fun, np.full(6, 0.8), **options | own)
            assert (np.abs(np.concatenate(seen)).max() > 1) == outside


def test_it_is_a_method_of_scipys_minimize() -> None:
    options = {"seed": 1, "n_gen": 5, "sigma0": 0.2}
    own = minimize(lambda x: point(x) + 3, X0, bounds=(-2, 2), **options)
    seen = []
    result = scipy.optimize.minimize(
        lambda x, shift: point(x) + shift,
        X0,
        args=3,
        method=minimize,
        bounds=[(-2, 2)] * 6,
        callback=lambda intermediate_result: seen.append(intermediate_result.fun),
        options=options,
    )
    np.testing.assert_array_equal(result.x, own.x)
    np.testing.assert_array_equal(seen, result.history.best)
    assert (result.status, result.nit) == (1, 5)
    again = scipy.optimize.minimize(point, X0, method=minimize, bounds=scipy.optimize.Bounds(-2, 2), options=options)
    np.testing.assert_array_equal(again.x, own.x)
    named = scipy.optimize.minimize(
        point, X0, method=minimize, bounds=(-2, 2), options={"maxiter": 5, "rng": 1, "sigma0": 0.2}
    )
    np.testing.assert_array_equal(named.x, own.x)
    constraint = {"type": "eq", "fun": point}
    for given in (constraint, [constraint], scipy.optimize.NonlinearConstraint(point, 0, 1)):
        with pytest.raises(ValueError, match="constraints must be empty, since no method here keeps any but bounds"):
            scipy.optimize.minimize(failing(AssertionError(), 0), X0, method=minimize, constraints=given)
    with pytest.warns(RuntimeWarning, match="jac is not used: no method here takes derivatives"):
        scipy.optimize.minimize(point, X0, method=minimize, jac=lambda x: x, options=options)
    with pytest.warns(RuntimeWarning, match="tol is not used: give sigma_min, target or max_stagnation"):
        scipy.optimize.minimize(point, X0, method=minimize, tol=1e-3, options=options)


@pytest.mark.parametrize("method", METHODS)
def test_the_first_step_size_has_one_name(method: str) -> None:
    """Ten times as large, the first generation lies ten times as far around."""
    first: dict[float, Any] = {}
    for sigma0 in (0.01, 0.1):
        first[sigma0] = []
        fun = remembering(first[sigma0])
        run(fun, method=method, sigma0=sigma0, vectorized=True, n_gen=1)
    np.testing.assert_allclose(first[0.1][0] - X0, 10 * (first[0.01][0] - X0), atol=1e-12)


def remembering(seen: list[Any]) -> Any:
    def fun(X: Any) -> Any:
        seen.append(X.copy())
        return sphere(X)

    return fun


def counted(fun: Any, told: list[Any]) -> Any:
    def count(X: Any) -> Any:
        told.extend(X.copy())
        return fun(X)

    return count


@pytest.mark.parametrize("method", METHODS)
def test_an_automatic_step_size_is_half_of_the_one_at_which_half_of_all_generations_gain(method: str) -> None:
    start, told = np.full(400, 1.5), []
    given: dict[str, Any] = {"vectorized": True, "method": method, "seed": 3, "n_gen": 4, "population_size": 12}
    result = minimize(counted(sphere, told), start, sigma0="auto", **given)
    # norm(g) = 2 norm(x0 - 0.5) = 40, tr(H) = 2 n; of 12 normal draws the largest is 1.629 in the mean
    assert result.sigma0 == pytest.approx(1.629 * 40 / 800, rel=0.3)
    assert result.nfev == len(told) == result.history.nfev[-1]
    by_hand = minimize(sphere, start, sigma0=result.sigma0, **given)
    assert result.nfev == by_hand.nfev + 61
    np.testing.assert_array_equal(result.x, by_hand.x)
    np.testing.assert_array_equal(result.history.nfev, by_hand.history.nfev + 61)
    np.testing.assert_array_equal(minimize(sphere, start, sigma0="auto", **given).x, result.x)


def test_an_automatic_step_size_keeps_to_the_budget_and_the_bounds() -> None:
    told: list[Any] = []
    given: dict[str, Any] = {"vectorized": True, "sigma0": "auto", "seed": 1, "bounds": (-1, 1.005)}
    result = minimize(counted(sphere, told), np.ones(50), max_nfev=130, **given)
    assert (result.nfev, result.reason) == (125, "max_nfev")  # 61, 24 and twice 20
    assert np.max(told[:61]) == 1.005
    assert np.min(told[:61]) == pytest.approx(0.995)
    told_why = "max_nfev must be at least 85, 61 for sigma0='auto' and a generation's candidates, got 80"
    with pytest.raises(ValueError, match=told_why):
        minimize(sphere, np.ones(50), max_nfev=80, **given)


def test_a_search_with_an_automatic_step_size_goes_on_with_the_one_it_has(tmp_path: Path) -> None:
    given: dict[str, Any] = {"vectorized": True, "sigma0": "auto", "checkpoint": tmp_path / "search.npz"}
    whole = minimize(sphere, np.ones(50), vectorized=True, sigma0="auto", seed=5, n_gen=8)
    minimize(sphere, np.ones(50), seed=5, n_gen=3, **given)
    told: list[Any] = []
    rest = minimize(counted(sphere, told), np.ones(50), n_gen=8, **given)
    assert (rest.sigma0, rest.nfev, len(told)) == (whole.sigma0, whole.nfev, 5 * 20)
    np.testing.assert_array_equal(rest.x, whole.x)


@pytest.mark.parametrize(
    ("fun", "needed"),
    [
        (lambda x: -((x - 2) ** 2).sum(), "a slope and upward curvature"),
        (lambda _: 3.0, "a slope and upward curvature"),
        (lambda x: (x**2).sum() if x[0] >= 1 else np.inf, "finite values"),
        (lambda x: np.nan if x[0] > 1 else (x**2).sum(), "finite values"),
        (lambda x: 1e200 * (x[0] > 1), "finite values"),
    ],
)  # fmt: skip
def test_where_nothing_can_be_measured_the_papers_step_size_is_taken(fun: Any, needed: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"needs {needed}.* at steps of 0.01 around x0: 0.1 is taken") as caught:
        result = minimize(fun, np.ones(6), sigma0="auto", seed=1, n_gen=2)
    assert [warning.filename for warning in caught] == [__file__]
    assert result.sigma0 == 0.1


def test_evaluations_that_raise_do_not_count_toward_an_automatic_step_size() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        minimize(lambda _: 1 / 0, X0, sigma0="auto")
    assert caught.value.result.nfev == 0


def test_an_automatic_step_size_needs_a_start_solution_and_no_optimizer() -> None:
    with pytest.raises(ValueError, match="x0 must be given for sigma0='auto', got None"):
        minimize(point, bounds=[(-1, 1)] * 6, sigma0="auto")
    with pytest.raises(ValueError, match="sigma0 must be left out where method is an optimizer"):
        minimize(point, method=LEAMVD(X0), sigma0="auto")


def test_an_array_of_one_number_is_a_number() -> None:
    plain = run(point)
    for wrapped in (lambda x: np.array([point(x)]), lambda x: np.array(point(x))):
        assert run(wrapped).fun == plain.fun


@pytest.mark.parametrize("module", ["minimize", "lea_mvd"])
def test_the_example_runs(module: str) -> None:
    found = doctest.testmod(sys.modules[f"leamvd.optimizers.{module}"])
    assert found.failed == 0
    assert found.attempted > 2
