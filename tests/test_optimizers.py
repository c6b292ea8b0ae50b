"""What all optimizers share, method by method: a new one in `leamvd.optimizers.methods` is tested
here at once.
"""

import copy
import functools
import inspect
import itertools
import pickle
import re
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import Bounds, OptimizeWarning

from leamvd import Reading, minimize
from leamvd.optimizers.base import REASONS, Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.methods import CLASSES, METHODS, optimizer
from leamvd.optimizers.random_search import RandomSearch
from problems import ellipsoid, rastrigin, rosenbrock, sphere

X0 = np.linspace(-1, 1, 5)
KINDS: dict[str, dict[str, Any]] = {method: {"method": method} for method in METHODS} | {
    "printed": {"reading": Reading.printed(), "dtype": "float32"},
    "mixed": {
        "reading": Reading(step="sampled", reset="initial", limits="reflect"),
        "bounds": (-2, 2),
    },
    "random, float32": {"method": "random", "dtype": "float32", "bounds": (-2, 2)},
}
every_kind = pytest.mark.parametrize("options", KINDS.values(), ids=KINDS)
every_method = pytest.mark.parametrize("method", METHODS)


def made(options: dict[str, Any], **others: Any) -> Optimizer:
    given = {"method": "lea-mvd", "x0": X0, "seed": 8, "population_size": 8} | options | others
    return optimizer(given.pop("method"), given.pop("x0"), **given)


@pytest.mark.parametrize("create", CLASSES.values(), ids=CLASSES)
def test_a_constructor_names_its_options(create: Any) -> None:
    taken = inspect.signature(create).parameters.values()
    kinds = {option.kind for option in taken}
    assert inspect.Parameter.VAR_KEYWORD not in kinds, "those behind ** would be dropped"


def coarse(X: Any) -> Any:
    """A function with many ties, on which searches stagnate."""
    return np.round(sphere(np.asarray(X, np.float64)), 1)


def asked(opt: Optimizer, generations: int, fun: Any = coarse) -> list[Any]:
    """Return copies of the candidates of some generations."""
    seen = []
    for _ in range(generations):
        seen.append(opt.ask().copy())
        opt.tell(opt.ask(), fun(seen[-1]))
    return seen


def search(fun: Any = coarse, x0: Any = X0, **options: Any) -> Any:
    return minimize(fun, x0, **{"vectorized": True, "seed": 1, "n_gen": 12} | options)


def assert_same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(a.x, b.x)
    for one, other in zip(a.history, b.history, strict=True):
        np.testing.assert_array_equal(one, other)
    assert {k: v for k, v in a.items() if k not in ("x", "history")} == {
        k: v for k, v in b.items() if k not in ("x", "history")
    }


# ---- ask and tell


@every_kind
def test_candidates_have_the_shape_that_is_told_and_stay_until_they_are_told(
    options: dict[str, Any],
) -> None:
    opt, x0 = made(options), X0.copy()
    for generation in range(3):
        expected = opt.n_candidates
        X = opt.ask()
        assert X.shape == (expected, 5)
        assert opt.ask() is X
        assert X.dtype == opt.dtype
        with pytest.raises(ValueError, match="read-only"):
            X[0, 0] = 1
        for wrong, F in (
            (X[1:], np.zeros(len(X))),
            (X, np.zeros(len(X) - 1)),
            (X, np.full(len(X), -np.inf)),
        ):
            with pytest.raises(ValueError, match="must"):
                opt.tell(wrong, F)
        assert opt.generation == generation
        opt.tell(X.tolist(), coarse(X)[:, None].tolist())
        with pytest.raises(RuntimeError, match=r"call ask\(\)"):
            opt.tell(X, coarse(X))
    np.testing.assert_array_equal(X0, x0)
    assert opt.nfev >= 24 - 2 * 4


@every_method
def test_the_start_solution_is_the_first_candidate_unless_it_is_not_to_be(method: str) -> None:
    np.testing.assert_array_equal(made({"method": method}).ask()[0], X0)
    assert not np.any(made({"method": method}, x0_in_population=False).ask() == X0)


@every_method
def test_the_first_step_size_may_be_set_until_the_first_generation(method: str) -> None:
    """Ten times as large, the first generation lies ten times as far around."""
    near, far, later = (made({"method": method}, sigma0=sigma0) for sigma0 in (0.01, 0.1, 0.01))
    later.sigma0 = 0.1
    np.testing.assert_allclose(far.ask() - X0, 10 * (near.ask() - X0), atol=1e-12)
    np.testing.assert_array_equal(later.ask(), far.ask())


@every_kind
def test_one_seed_one_result(options: dict[str, Any]) -> None:
    a, b, other = (asked(made(options, seed=seed), 4) for seed in (1, 1, 2))
    np.testing.assert_array_equal(np.concatenate(a), np.concatenate(b))
    assert not np.array_equal(a[1], other[1])
    assert made(options, seed=None).seed != made(options, seed=None).seed
    drawn = int(np.random.default_rng(7).integers(2**64, dtype=np.uint64))
    assert made(options, seed=np.random.default_rng(7)).seed == drawn
    asked(made(options, seed=2**64 - 1), 2)


@pytest.mark.compiled
@every_kind
@pytest.mark.parametrize(
    "copied", [copy.copy, lambda opt: pickle.loads(pickle.dumps(opt))], ids=["copy", "pickle"]
)
def test_a_copy_at_any_moment_continues_bit_for_bit_and_leaves_the_first_alone(
    options: dict[str, Any], copied: Any
) -> None:
    """After tell and after ask, through stagnation and a reset; candidates show all that an
    optimizer knows.
    """
    opt, expected = made(options), asked(made(options), 16)
    for generation in range(14):
        for _ in range(2):
            twin = copied(opt)
            np.testing.assert_array_equal(
                np.concatenate(asked(twin, 2)), np.concatenate(expected[generation:][:2])
            )
            twin.tell(twin.ask() + 1, np.zeros(len(twin.ask())))
            np.testing.assert_array_equal(opt.ask(), expected[generation])
        asked(opt, 1)


@every_kind
@pytest.mark.parametrize("call", ["_sample", "_learn"])
def test_a_search_goes_on_after_an_interrupt(
    options: dict[str, Any], call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opt, plain, work = made(options), asked(made(options), 6), getattr(type(made(options)), call)

    def interrupted(*given: Any) -> Any:
        found = work(*given)
        signal.raise_signal(signal.SIGINT)
        return found

    asked(opt, 3)
    # which a background process does not have
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patch:
        patch.setattr(type(opt), call, interrupted)
        with pytest.raises(KeyboardInterrupt):
            asked(opt, 1)
    signal.signal(signal.SIGINT, before)
    rest = 6 - opt.generation  # CMA-ES has been told: in pycma's call an interrupt waits
    assert (rest == 2) == (call == "_learn" and isinstance(opt, CMAES))
    np.testing.assert_array_equal(
        np.concatenate(asked(opt, rest)), np.concatenate(plain[6 - rest :])
    )


@every_kind
def test_values_that_are_not_finite_rank_last_are_counted_and_end_a_search_that_has_no_others(
    options: dict[str, Any],
) -> None:
    opt = made(options)
    X, F = opt.ask().copy(), np.array([np.nan, 3, np.inf, 1, np.nan, 2, 5, 4])
    opt.tell(opt.ask(), F)
    assert (opt.result.n_nan, opt.result.n_inf, opt.result.fun, opt.stop()) == (2, 1, 1, {})
    np.testing.assert_array_equal(opt.result.x, X[3])
    opt.tell(opt.ask(), np.full(opt.n_candidates, np.inf))
    assert opt.stop() == {}
    opt.tell(opt.ask(), np.full(opt.n_candidates, np.nan))
    assert opt.stop() == {"nan": 3}
    assert (opt.result.success, opt.result.status, opt.result.reason) == (False, 3, "nan")
    assert np.isfinite(opt.ask()).all()
    nothing = search(lambda X: np.full(len(X), np.inf), **options, n_gen=3, x0=X0)
    assert (nothing.nit, nothing.reason, nothing.success) == (
        3,
        "n_gen",
        False,
    ), "nothing has converged"


@every_kind
def test_the_result_is_the_best_point_that_was_told(options: dict[str, Any]) -> None:
    opt = made(options, n_gen=4)
    empty = opt.result
    assert (empty.x, empty.fun, empty.nit, empty.success, empty.status) == (
        None,
        np.inf,
        0,
        False,
        -1,
    )
    told = np.concatenate(asked(opt, 4, sphere))
    result = opt.result
    assert (result.nit, result.nfev, result.reason, result.status, result.seed) == (
        4,
        len(told),
        "n_gen",
        1,
        8,
    )
    assert result.fun == pytest.approx(sphere(result.x[None])[0], rel=1e-6)
    if opt.n_candidates < 8 or "method" in options:
        assert result.fun == pytest.approx(sphere(told).min(), rel=1e-6)
    result.x[:] = 9
    assert opt.result.x[0] != 9
    other = made(options)
    X = other.ask().copy()
    other.tell(X, sphere(X))
    known = other.result.x
    X[:] = 9  # the caller's own array, which is overwritten
    np.testing.assert_array_equal(other.result.x, known)
    assert type(opt).__name__ in repr(opt)


@every_kind
def test_values_that_are_not_finite_are_counted_over_all_generations(
    options: dict[str, Any],
) -> None:
    opt = made(options)
    counts = []
    for n_nan, n_inf in ((2, 1), (0, 3), (1, 0)):
        F = np.arange(opt.n_candidates, dtype=float)
        F[:n_nan] = np.nan
        F[n_nan : n_nan + n_inf] = np.inf
        opt.tell(opt.ask(), F)
        counts.append((opt.result.n_nan, opt.result.n_inf))
    assert counts == [(2, 1), (2, 4), (3, 4)]


@every_kind
def test_an_optimizer_shows_where_it_is(options: dict[str, Any]) -> None:
    opt = made(options, n_gen=7)
    asked(opt, 2)
    told = dict(re.findall(r"(\w+)=([\w.+-]+(?: of \d+)?)", repr(opt)))
    best = told.pop("best_fun")
    assert float(best) == pytest.approx(opt.result.fun, rel=1e-5)
    assert told == {
        "n_var": "5",
        "population_size": "8",
        "generation": "2 of 7",
        "dtype": str(opt.dtype),
    }


@pytest.mark.parametrize("given", [{}, {"x0": None, "n_var": 5, "bounds": (-2, 2)}])
def test_random_search_draws_each_generation_anew(given: dict[str, Any]) -> None:
    drawn = np.concatenate(asked(made({"method": "random", "population_size": 50} | given), 4))
    assert len(np.unique(drawn)) == drawn.size
    steps = drawn[1:] - (X0 if not given else 0)
    deviation = 2 / np.sqrt(3) if given else 0.1
    for part in np.array_split(steps, 4):  # 250 numbers: five standard errors
        assert part.std() == pytest.approx(deviation, rel=5 / np.sqrt(2 * part.size))


# ---- bounds


@every_method
def test_a_start_solution_outside_of_bounds_is_clipped_with_a_warning(method: str) -> None:
    with pytest.warns(
        OptimizeWarning, match="Initial guess is not within the specified bounds"
    ) as caught:
        clipped = search(coarse, np.array([0, 0, 0, 0, 1.5]), bounds=(-1, 1), method=method)
    assert [warning.filename for warning in caught] == [__file__]
    assert_same(clipped, search(coarse, np.array([0, 0, 0, 0, 1.0]), bounds=(-1, 1), method=method))


@pytest.mark.parametrize(
    ("bounds", "low", "high"),
    [
        (Bounds([-1, -2], [3, 4]), [-1, -2], [3, 4]),
        (([-1, -2], 4), [-1, -2], [4, 4]),
        ([(-1, 3), (-2, 4), (0, 1)], [-1, -2, 0], [3, 4, 1]),
        ([(-1, 3)], [-1], [3]),
    ],
)
def test_limits_of_each_variable_reach_it(bounds: Any, low: list[int], high: list[int]) -> None:
    opt = RandomSearch(bounds=bounds, seed=1, population_size=400)
    np.testing.assert_allclose(opt.ask().min(axis=0), low, atol=0.1)
    np.testing.assert_allclose(opt.ask().max(axis=0), high, atol=0.1)


# ---- reasons to stop


@every_method
def test_reasons_to_stop(method: str) -> None:
    for limit in ({"n_gen": 1}, {"max_nfev": 60}, {"max_seconds": 1e-9}):
        over = search(**{"n_gen": None, "method": method} | limit)
        assert (over.reason, over.status, over.success) == (next(iter(limit)), 1, False)
    reached = search(method=method, target=20.0)
    assert (reached.reason, reached.status, reached.success, reached.nit) == ("target", 0, True, 1)
    worse = itertools.count()
    still = search(lambda X: sphere(X) + 1e3 * next(worse), method=method, max_stagnation=2)
    assert (still.reason, still.status, still.nit) == ("max_stagnation", 2, 3)


@every_method
def test_no_generation_brings_the_evaluations_above_their_limit(method: str) -> None:
    for max_nfev in (24, 43, 44, 71, 72, 100):
        sizes: list[int] = []
        result = search(
            lambda X, sizes=sizes: sizes.append(len(X)) or sphere(X),
            method=method,
            max_nfev=max_nfev,
        )
        assert result.nfev == sum(sizes) <= max_nfev < result.nfev + 24
    with pytest.raises(ValueError, match="max_nfev must be at least 24, got 23"):
        search(method=method, max_nfev=23)


@every_method
def test_the_default_budget_says_that_it_is_one(method: str) -> None:
    assert "default budget of 30" in search(sphere, method=method, n_gen=None).message
    assert "default" not in search(sphere, method=method, n_gen=30).message
    longer = search(sphere, method=method, n_gen=None, max_nfev=1000)
    assert (longer.reason, longer.nit > 30) == ("max_nfev", True)


WORDS = {
    "running": "not stopped",
    "target": "target value",
    "sigma_min": "standard deviations has fallen",
    "cma": "CMA-ES has converged",
    "n_gen": "^The number of generations",
    "max_nfev": "number of evaluations",
    "max_seconds": "time",
    "cma_maxiter": "its own number of generations",
    "max_stagnation": "not become better",
    "sigma_min_at_start": "from the start",
    "cma_stuck": "no use in going on",
    "nan": "NaN",
    "callback": "callback",
    "interrupted": "interrupted",
}


def test_each_reason_has_the_status_that_is_documented_and_a_message_of_what_it_is() -> None:
    documented: dict[str, int] = {}
    for names, status in re.findall(r'\(((?:"\w+"[,\s]*)+):\s*(-?\d)\)', minimize.__doc__ or ""):
        documented |= dict.fromkeys(re.findall(r"\w+", names), int(status))
    assert {name: status for name, (status, _) in REASONS.items()} == documented
    for name in REASONS:
        opt = made({}, n_gen=50)
        asked(opt, 1)
        if name != "running":
            opt.halt(name)
        result = opt.result
        assert (result.reason, result.status) == (name, documented[name])
        assert result.success == (documented[name] == 0)
        told = [word for word in WORDS if re.search(WORDS[word], result.message)]
        assert told == [name]


def test_stop_reasons_add_up_and_success_speaks_for_the_run() -> None:
    opt = made({}, n_gen=2)
    asked(opt, 1)
    opt.sigma_min = opt.step_sizes[0] / np.sqrt(5)  # type: ignore[attr-defined]
    opt.tell(np.tile(X0, (len(opt.ask()), 1)), np.zeros(4))
    opt.halt("interrupted")
    assert (list(opt.stop()), opt.result.reason) == (
        ["n_gen", "sigma_min", "interrupted"],
        "sigma_min",
    )
    opt.halt("target", 0.0)
    assert opt.result.reason == "target"
    opt.resume()
    assert (list(opt.stop()), opt.result.reason) == (["n_gen", "sigma_min"], "sigma_min")
    opt.tell(opt.ask(), np.zeros(4))  # still works
    assert opt.stop()["n_gen"] == 3


# ---- minimize: callbacks, errors, checkpoints


@every_method
def test_a_callback_sees_each_generation_and_may_stop(method: str) -> None:
    seen: list[Any] = []

    def stops(intermediate_result: Any) -> None:
        seen.append(intermediate_result)
        if len(seen) == 3:
            raise StopIteration

    result = search(method=method, callback=stops)
    assert (result.nit, result.reason, result.status) == (3, "callback", 4)
    assert [state.fun for state in seen] == result.history.best.tolist()
    points: list[Any] = []
    # what it returns is not used
    whole = search(method=method, callback=lambda x: points.append(x) or x)
    np.testing.assert_array_equal(points[2], result.x)
    assert_same(whole, search(method=method))


@every_method
def test_progress_goes_to_stderr_and_only_if_asked(
    method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    search(method=method)
    assert capfd.readouterr() == ("", "")
    search(method=method, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert f"{method}: 100%" in err


@every_method
def test_progress_goes_on_where_a_search_goes_on(
    method: str, capfd: pytest.CaptureFixture[str]
) -> None:
    opt = made({"method": method}, n_gen=6)
    asked(opt, 4)
    minimize(coarse, method=opt, vectorized=True, progress=True)
    err = capfd.readouterr().err
    assert "4/6" in err, "where it begins"
    assert "6/6" in err


def failing(error: BaseException, after: int) -> Any:
    calls: list[Any] = []

    def fun(X: Any) -> Any:
        calls.append(X)
        if len(calls) > after:
            raise error
        return coarse(X)

    return fun


@every_method
def test_an_exception_or_ctrl_c_keeps_the_best_so_far(method: str) -> None:
    plain = search(method=method, n_gen=3)
    with pytest.raises(ZeroDivisionError, match="one over nothing") as caught:
        search(failing(ZeroDivisionError("one over nothing"), 3), method=method)
    for result, reason in (
        (caught.value.result, "running"),  # type: ignore[attr-defined]
        (search(failing(KeyboardInterrupt(), 3), method=method), "interrupted"),
    ):
        np.testing.assert_array_equal(result.x, plain.x)
        np.testing.assert_array_equal(result.history.best, plain.history.best)
        assert (result.nit, result.nfev, result.reason) == (3, plain.nfev, reason)
    assert f"{plain.fun:.6g}" in caught.value.__notes__[0]
    nothing = search(failing(KeyboardInterrupt(), 0), method=method)
    assert (nothing.x, nothing.nfev, len(nothing.history.best)) == (None, 0, 0)


@pytest.mark.compiled
@every_kind
@pytest.mark.parametrize("every", [1, 3])
def test_a_search_that_was_killed_again_and_again_is_the_same(
    options: dict[str, Any], every: int, tmp_path: Path
) -> None:
    class Killed(BaseException):
        """An end without a word to anybody."""

    path, fun = (
        tmp_path / "run.npz",
        functools.partial(lambda X: np.round(rastrigin(np.asarray(X, np.float64)))),
    )
    plain = search(fun, **options, n_gen=20)
    for generations in (5, 1, 7, 4):
        calls: list[Any] = []

        def killed(X: Any, calls: list[Any] = calls, last: int = generations) -> Any:
            calls.append(X)
            if len(calls) > last:
                raise Killed
            return fun(X)

        with pytest.raises(Killed):
            search(
                functools.partial(killed),
                **options,
                n_gen=20,
                checkpoint=path,
                checkpoint_every=every,
            )
        assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    assert_same(search(fun, **options, n_gen=20, checkpoint=path, checkpoint_every=every), plain)
    again: list[Any] = []
    finished = search(
        functools.partial(lambda X: again.append(X) or fun(X)), **options, n_gen=20, checkpoint=path
    )
    assert len(again) == 1
    assert_same(finished, plain)


# ---- how far they come


@pytest.mark.compiled
@pytest.mark.parametrize("fun", [sphere, ellipsoid, rosenbrock, rastrigin])
def test_every_method_beats_random_search(fun: Any) -> None:
    given: dict[str, Any] = {"x0": np.zeros(10), "seed": 4, "n_gen": 150, "sigma0": 0.3}
    floor = search(fun, method="random", **given).fun
    assert floor <= fun(np.zeros((1, 10)))[0]
    assert all(
        search(fun, method=method, **given).fun < floor for method in CLASSES.keys() - {"random"}
    )
