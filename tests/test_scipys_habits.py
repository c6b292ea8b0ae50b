"""Calls of `minimize` as users of SciPy, scikit-learn, PyTorch and pycma write them."""

import os
import warnings
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import cma
import numpy as np
import pandas as pd
import pytest
import scipy.optimize
from scipy.optimize import Bounds, OptimizeWarning

from leamvd import LEAMVD, Reading, minimize
from leamvd._support import checks
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.methods import METHODS, optimizer
from problems import sphere
from test_minimize import X0, never, point, run
from test_optimizers import assert_same

every_method = pytest.mark.parametrize("method", METHODS)


COLUMN: dict[str, Any] = {"fun": sphere, "vectorized": True}
TWO: dict[str, Any] = {"x0": None, "bounds": Bounds([0, -1], [1, 3])}
PAIRS: list[Any] = [[(0, 1), (-1, 3)], ((0, 1), [-1, 3]), np.array([[0, 1], [-1, 3]])]
SIX: dict[str, Any] = {"x0": None, "n_var": 6}
FORMS: list[Any] = [
    (-1, [1] * 6),
    [[-1.0] * 6, 1],
    np.array([-1, 1]),
    (np.full(6, -1), np.ones(6)),
    [(-1, 1)] * 6,
    Bounds(-1, 1),
    Bounds(np.full(6, -1), np.ones(6)),
]
SAME: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"x0": 3.0}, {"x0": [3.0]}),
    *((SIX | {"bounds": form}, SIX | {"bounds": (-1, 1)}) for form in FORMS),
    *((TWO | {"bounds": pairs}, TWO) for pairs in PAIRS),
    ({"n_gen": None, "maxiter": 4.0}, {"n_gen": 4}),
    ({"n_gen": None, "options": {"maxiter": 4, "target": -1.0}}, {"n_gen": 4}),
    *(({name: 6e1}, {"max_nfev": 60}) for name in ("max_nfev", "maxfev", "maxfun")),
    ({"seed": None, "rng": 1}, {}),
    ({"seed": None, "rng": [1, 2]}, {"seed": np.random.SeedSequence([1, 2])}),
    *(({"jac": jac, "hess": None}, {}) for jac in (False, np.False_)),
    # `max` has no signature
    *(({"callback": call}, {}) for call in (max, lambda x, *more, key=None: x)),
    ({"fun": lambda X: sphere(X)[:, None], "vectorized": True}, COLUMN),
    ({"fun": lambda X: [*map(Fraction, sphere(X).tolist())], "vectorized": True}, COLUMN),
    *(({"fun": lambda x, kind=kind: kind(point(x))}, {}) for kind in (Fraction, Decimal, np.array)),
    ({"fun": lambda x: np.array([[point(x)]])}, {}),
    ({"fun": lambda x: np.float32(point(x))}, {"fun": lambda x: float(np.float32(point(x)))}),
]


@every_method
@pytest.mark.parametrize(("given", "plain"), SAME)
def test_another_way_to_write_a_call_is_the_same_search(
    method: str, given: dict[str, Any], plain: dict[str, Any]
) -> None:
    options = {"method": method.upper(), **given.get("options", {})}
    assert_same(run(**given | {"options": options}), run(**plain, method=method))


OPEN: list[Any] = [[(0, None), (None, 1), (0.1, 0.8)], Bounds([0, -np.inf, 0.1], [np.inf, 1, 0.8])]
NO_BOUNDS: list[Any] = [
    pd.DataFrame({0: [0.0], 1: [1.0]}),
    {0: 0, 1: 1},
    "ab",
    3,
    [(0, 1, 2)] * 6,
    [(0, 1), ("a", 1)],
    [(0, 1), 1, 2],
    np.zeros((2, 2, 2)),
    [[(0, 1)], [(0, 1)]],
]
ENDS = np.zeros(2), np.ones(2)
AMBIGUOUS: list[Any] = [
    ENDS,
    (ENDS[0].tolist(), ENDS[1]),
    (ENDS[0], ENDS[1].tolist()),
    tuple(map(pd.Series, ENDS)),
]
EITHER: list[Any] = [
    ([-5, -3], [3, 5]),
    ([0, 0], [1, 1]),
    ((0, 0), (1, 1)),
    ([0, 0], [None, None]),
    [[None, None], [0, 0]],
    np.array([[-5, -3], [3, 5]]),
    np.array([[0, 0], [1, 1]]),
    [[0, 1], [2, 3]],
    ([np.float64(0), 0], [1, np.inf]),
]
MISTYPED = {"exponnt": "exponent", "taget": "target", "MaxIter": "maxiter", "sgma0": "sigma0"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"x0": []}, "at least one variable"),
    ({"x0": None, "bounds": Bounds([], [])}, "at least one variable"),
    ({"x0": np.zeros((2, 3))}, r"must have shape \(n,\), got \(2, 3\)"),
    *(({"x0": None, "bounds": bounds}, "bounds must be finite without x0") for bounds in OPEN),
    ({"x0": [0.1], "bounds": Bounds(np.inf, np.inf)}, "between low and high, got inf and inf"),
    *(
        ({"bounds": bounds}, r"bounds must be scipy.*Bounds, .*pair.*\(low_i, high_i")
        for bounds in NO_BOUNDS
    ),
    *(({"bounds": bounds}, "pair.*of two variables could be") for bounds in AMBIGUOUS),
    *(
        ({"bounds": b, "x0": [9.0, 9.0]}, r"Bounds, or \[\(low, high\), \(low, high\)\] of tuples")
        for b in EITHER
    ),
    ({"sigma0": np.full(6, 0.1)}, "sigma0 must be a number, got"),
    *(
        ({"bounds": b}, "bounds must not be NaN")
        for b in ((0, np.nan), [(0, 1)] * 5 + [(np.nan, 1)])
    ),
    ({"bounds": [[0, np.nan], [1, 2]], "x0": [0.5, 0.5]}, "bounds must not be NaN"),
    (
        {"options": [("n_gen", 2)]},
        r"^options must be a dict of arguments, .* got \[\('n_gen', 2\)\]",
    ),
    *(
        ({"options": o}, "^options must be a dict of")
        for o in ("n_gen", [], {"options": {"n_gen": 2}})
    ),
    (
        {"seed": None, "rng": np.random},
        r"^rng \(seed\) must be an integer, a generator of numpy.random",
    ),
    *(
        ({"callback": call}, "callback must")
        for call in (3, lambda: None, lambda a, b: None, lambda *, x: None)
    ),
    ({"n_gen": None, "maxiter": 2.5}, r"^maxiter \(n_gen\) must be an integer, got 2.5"),
    ({"seed": None, "rng": -1}, r"^rng \(seed\) must be an integer"),
    ({"seed": None, "options": {"rng": [1, -1]}}, r"^rng \(seed\)\[1\] must be an integer"),
    ({"maxfun": 10}, r"^maxfun \(max_nfev\) must be at least 24"),
    ({"max_nfev": 10}, "^max_nfev must be at least 24"),
    # given twice
    *(({"maxiter": 3}, "n_gen"), ({"rng": 3}, "seed"), ({"options": {"n_gen": 3}}, "n_gen")),
    *(
        ({name: 1}, f"minimize has no argument '{name}'; did you mean '{close}'")
        for name, close in MISTYPED.items()
    ),
]


@every_method
@pytest.mark.parametrize(("given", "told"), REFUSED)
def test_what_cannot_be_meant_is_refused_before_work(
    method: str, given: dict[str, Any], told: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=told) as caught:
        run(never, method=method, **given)
    assert "__init__" not in str(caught.value)


# ---- bounds


@pytest.mark.parametrize("bounds", PAIRS)
def test_pairs_are_read_as_scipy_reads_them(bounds: Any) -> None:
    plain = run(**TWO | {"x0": [0.2, 0.3]}, sigma0=1)
    given: dict[str, Any] = {"method": minimize, "options": {"rng": 1, "n_gen": 5, "sigma0": 1}}
    assert_same(scipy.optimize.minimize(point, [0.2, 0.3], bounds=bounds, **given), plain)
    assert_same(run(x0=[0.2, 0.3], bounds=map(tuple, bounds), sigma0=1), plain)


ONE_READING: list[tuple[Any, list[Any]]] = [
    ([[0, 1], [0, 1]], [(0, 1), (0, 1)]),
    (([1, 1], [0, 0]), [(1, 1), (0, 0)]),
    ([(0, 0), (None, None)], [(0, 0), (-np.inf, np.inf)]),
    (((-5, -3), (3, 5)), [(-5, -3), (3, 5)]),
    (((-5, -3), [3, 5]), [(-5, -3), (3, 5)]),
    ([[0, 1], [1, 2]], [(0, 1), (1, 2)]),  # as pairs and as (low, high)
    ([[None, None], [None, None]], [(-np.inf, np.inf)] * 2),
]


@pytest.mark.parametrize(("bounds", "pairs"), ONE_READING)
def test_what_two_variables_can_mean_in_one_way_only_is_taken(
    bounds: Any, pairs: list[Any]
) -> None:
    low, high = zip(*pairs, strict=True)
    given: dict[str, Any] = {"x0": [0.5, 0.5], "sigma0": 9, "n_gen": 3}
    # of x0, which may lie outside
    with warnings.catch_warnings(action="ignore", category=OptimizeWarning):
        assert_same(run(**given, bounds=bounds), run(**given, bounds=Bounds(low, high)))
    with pytest.raises(ValueError, match=r"got \[\[-5, -3\], \[3, 5\]\]: those of two"):
        run(never, **given, bounds=iter(EITHER[0]))


@every_method
@pytest.mark.parametrize("bounds", OPEN)
def test_open_ends_are_taken_with_a_start_solution(method: str, bounds: Any) -> None:
    seen: list[Any] = []
    run(
        lambda X: seen.extend(X.copy()) or -X[:, 0] + X[:, 1],
        vectorized=True,
        x0=[0.1, 0.9, 0.5],
        bounds=bounds,
        method=method,
        n_gen=20,
        sigma0=0.6,
    )
    lowest, highest = np.min(seen, axis=0), np.max(seen, axis=0)
    assert (lowest >= [0, -np.inf, 0.1]).all()
    assert (highest <= [np.inf, 1, 0.8]).all()
    assert (lowest[2], highest[2]) == pytest.approx((0.1, 0.8), abs=1e-3)
    assert lowest[1] < 0
    assert highest[0] > 1


def test_what_is_reflected_at_one_end_is_mirrored_there() -> None:
    draws = LEAMVD(np.zeros(3), sigma0=5, seed=2).ask()
    reading = Reading(limits="reflect")
    for bounds, mirrored in (
        ((None, 0), -np.abs(draws)),
        ((0, None), np.abs(draws)),
        ((None, None), draws),
    ):
        opt = LEAMVD(np.zeros(3), sigma0=5, seed=2, bounds=bounds, reading=reading)
        np.testing.assert_array_equal(opt.ask(), mirrored)


@every_method
def test_one_variable_reaches_its_bound(method: str) -> None:
    for bounds, x0 in (((0, 5), 3.0), ([(0, 5), (2, 2)], [3.0, 2.0])):
        assert (
            run(lambda x: x[0], x0=x0, bounds=bounds, method=method, n_gen=40, sigma0=2).x[0] < 0.01
        )


@pytest.mark.parametrize("method", ["cma-es", "sep-cma-es"])
def test_pycma_is_quiet_about_bounds_and_what_fun_warns_of_is_told_once(method: str) -> None:
    run(method=method, n_gen=1)
    # "elements of z2[k] are larger"
    cma.transformations.DiagonalDecoding(1).update([np.full(3, 9.0)] * 2, [0.5, 0.5])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        run(
            lambda x: warnings.warn("mine", RuntimeWarning, stacklevel=1) or point(x), method=method
        )
    assert [str(warning.message) for warning in caught] == ["mine"]


@every_method
def test_variables_that_bounds_fix_are_kept(method: str) -> None:
    seen: list[Any] = []
    given: dict[str, Any] = {"vectorized": True, "method": method, "n_gen": 12}
    bounds = [(-3, 3)] * 4 + [(0.25, 0.25), (-3, 3)]
    for sigma0 in (0.3, "auto"):
        run(
            lambda X: seen.extend(X.copy()) or sphere(X),
            x0=np.full(6, 0.25),
            bounds=bounds,
            sigma0=sigma0,
            **given,
        )
    assert np.ptp(seen, axis=0).astype(bool).tolist() == [True] * 4 + [False, True]
    if method.endswith("cma-es"):
        five = run(sphere, x0=np.full(5, 0.25), bounds=(-3, 3), sigma0=0.3, **given)
        six = run(sphere, x0=np.full(6, 0.25), bounds=bounds, sigma0=0.3, **given)
        np.testing.assert_array_equal(np.delete(six.x, 4), five.x)
        with pytest.raises(ValueError, match="leave a variable free"):
            run(never, x0=np.zeros(6), bounds=[(0, 0)] * 6, sigma0="auto", method=method)


@every_method
def test_a_first_step_above_the_width_of_bounds_is_warned_of(method: str) -> None:
    with pytest.warns(OptimizeWarning, match="sigma0=0.1 is above the width of bounds") as caught:
        minimize(point, np.zeros(6), bounds=(-0.01, 0.01), method=method, n_gen=2)
    assert [warning.filename for warning in caught] == [__file__]
    with pytest.warns(OptimizeWarning, match="index 1: "):
        run(x0=np.zeros(3), bounds=[(0, 0), (0, 0.01), (0, None)], method=method, n_gen=2)
    run(x0=np.zeros(6), bounds=(-0.05, 0.05), method=method, n_gen=2)  # as wide as sigma0
    if method == "lea-mvd":
        run(x0=np.zeros(6), bounds=(-0.01, 0.01), limits="first", n_gen=2)
        run(x0=np.zeros(6), bounds=(-1e308, 1e308), n_gen=2)
    # which chooses a smaller one
    run(x0=np.full(6, 0.499), bounds=(0.48, 0.52), sigma0="auto", method=method)


# ---- what fun returns


def test_tensors_that_require_a_gradient_are_values() -> None:
    torch = pytest.importorskip("torch")

    def tensors(X: Any) -> Any:
        return ((torch.tensor(X, requires_grad=True) - 0.5) ** 2).sum(dim=-1)

    plain = run(lambda X: tensors(X).detach().numpy(), vectorized=True)
    for fun in (tensors, lambda X: [*tensors(X)]):
        assert_same(run(fun, vectorized=True), plain)
    assert run(tensors).fun == pytest.approx(plain.fun)


WRONG = ["1.5", b"1.5", 1j, np.complex64(1), None, np.ones(6), np.ma.masked, object(), -np.inf]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: type(wrong).__name__)
def test_text_complex_and_masked_values_are_refused_in_a_short_message(wrong: Any) -> None:
    for fun, vectorized in ((lambda x: wrong, False), (lambda X: [wrong] * len(X), True)):
        with pytest.raises((TypeError, ValueError), match="fun") as caught:
            run(fun, vectorized=vectorized)
        assert len(str(caught.value)) < 220
    assert len(checks.shown(np.zeros((300, 300)))) <= 100
    assert checks.shown("x" * 300).endswith("…")


# ---- SciPy's arguments


@pytest.mark.parametrize("vectorized", [False, True])
def test_of_a_function_with_its_gradient_the_value_counts(vectorized: bool) -> None:
    fun: Any = sphere if vectorized else point
    plain = run(fun, vectorized=vectorized)
    for jac in (True, np.True_):
        with pytest.warns(RuntimeWarning, match="jac is not used"):
            assert_same(run(lambda x: (fun(x), 2 * x), vectorized=vectorized, jac=jac), plain)


@every_method
def test_a_summary_is_printed_once_if_asked(
    method: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(method=method, options={"disp": True})
    told = capsys.readouterr().out
    assert told.count(result.message) == 1
    assert all(f"{value:.6g}" in told for value in (result.fun, result.nit, result.nfev))
    lines = dict(line.split(": ") for line in told.splitlines() if line.count(": ") == 1)
    assert lines["best value"] == f"{result.fun:.6g}"
    assert (lines["generations"], lines["evaluations"]) == (str(result.nit), str(result.nfev))
    run(method=method, disp=False)
    assert capsys.readouterr().out == ""


def test_a_summary_of_an_optimizer_that_goes_on_is_of_all_its_generations(
    capsys: pytest.CaptureFixture[str],
) -> None:
    opt = LEAMVD(X0, seed=1, n_gen=7)
    for _ in range(3):
        opt.tell(opt.ask(), sphere(opt.ask()))
    result = minimize(sphere, method=opt, vectorized=True, disp=True)
    message, *told = capsys.readouterr().out.splitlines()
    assert message == result.message
    assert dict(line.split(": ") for line in told) == {
        "best value": f"{result.fun:.6g}",
        "generations": "7",
        "evaluations": str(24 + 6 * 20),
    }


def test_a_population_that_is_too_small_for_the_elites_is_named() -> None:
    for given in ({"population_size": 4}, {"reading": Reading(population_size=3)}):
        with pytest.raises(ValueError, match=r"^population_size=\d must be above n_elite=4"):
            run(never, **given)


@pytest.mark.parametrize("vectorized", [False, True])
def test_a_function_that_stops_an_iteration_ends_the_search_wherever_it_runs(
    vectorized: bool, tmp_path: Path
) -> None:
    def stops(x: Any) -> float:
        raise StopIteration("mine")

    saved: dict[str, Any] = {"checkpoint": tmp_path / "run.npz", "vectorized": vectorized}
    run(partial(sphere if vectorized else point), **saved)
    with pytest.raises(StopIteration, match="mine"):
        run(partial(stops), **saved)

    with ThreadPoolExecutor(2) as threads:
        for workers in (1, map, threads, lambda f, items: (f(item) for item in items)):
            with pytest.raises(StopIteration, match="mine") as caught:
                run(stops, workers=workers, vectorized=vectorized)
            assert caught.value.result.nit == 0  # type: ignore[attr-defined]


def test_an_error_of_fun_is_left_as_it_is() -> None:
    def fails(_: Any) -> float:
        raise ValueError("seed of my simulator")

    with pytest.raises(ValueError, match=r"^seed of my sim"):
        run(fails, seed=None, rng=1)


# ---- another method by the same call


@pytest.mark.parametrize("method", METHODS[1:])
def test_a_baseline_takes_from_a_reading_what_it_has_and_names_the_rest_once(method: str) -> None:
    reading = Reading(population_size=8, n_gen=7, x0_in_population=False, reset="off", exponent=3)
    given: dict[str, Any] = {"x0": X0, "seed": 1, "method": method}
    with pytest.warns(
        OptimizeWarning, match=f"{method} has no use for exponent, n_elite, reset, sigma_min"
    ) as caught:
        found = minimize(point, reading=reading, n_elite=3, sigma_min=1e-3, **given)
    assert [warning.filename for warning in caught] == [__file__]
    assert_same(found, minimize(point, population_size=8, n_gen=7, x0_in_population=False, **given))
    with pytest.warns(OptimizeWarning, match="no use for reset"):
        minimize(point, reset=Reading().reset, n_gen=2, **given)
    with pytest.warns(OptimizeWarning, match="no use for limits"):
        minimize(point, limits="clip", n_gen=2, **given)
    assert (
        minimize(
            point, reading=Reading(population_size=8), population_size=12, n_gen=2, **given
        ).nfev
        == 24
    )
    assert (
        minimize(point, reading=Reading(n_gen=4, limits="clip"), bounds=(-1, 1), **given).nit == 4
    )
    for limits in (
        {"limits": "reflect"},
        {"limits": "first"},
        {"reading": Reading(limits="reflect")},
    ):
        with pytest.raises(ValueError, match="limits must be 'clip' or None"):
            minimize(never, bounds=(-1, 1), **given, **limits)
    with pytest.raises(TypeError, match="reading must be a"):
        minimize(never, reading="printed", **given)


@every_method
def test_what_needs_a_start_solution_and_has_none_is_warned_of_where_it_is_given(
    method: str,
) -> None:
    given: dict[str, Any] = {
        "fun": point,
        "bounds": [(-1, 1)] * 6,
        "method": method,
        "n_gen": 2,
        "seed": 1,
    }
    names = "" if method.endswith("cma-es") else "sigma0 without x0, "
    told = f"^{method} has no use for {names}x0_in_population without x0$"
    with pytest.warns(OptimizeWarning, match=told) as caught:
        found = minimize(**given, x0_in_population=True, sigma0=0.1)
    assert_same(found, minimize(**given))
    assert [warning.filename for warning in caught] == [__file__]
    # a preset, say, has more than what is meant
    minimize(**given, reading=Reading(x0_in_population=False))


def test_a_period_of_a_checkpoint_without_one_is_warned_of() -> None:
    with pytest.warns(
        OptimizeWarning, match="no use for checkpoint_every without checkpoint"
    ) as caught:
        minimize(point, X0, n_gen=2, checkpoint_every=1)
    assert [warning.filename for warning in caught] == [__file__]


def test_only_pycma_has_no_use_for_a_dtype() -> None:
    assert run(method="random", dtype="float32").x.dtype == np.float32
    with pytest.warns(OptimizeWarning, match="sep-cma-es has no use for dtype"):
        assert run(method="sep-cma-es", dtype="float32").x.dtype == np.float64


@pytest.mark.parametrize("diagonal", [True, False])
def test_without_a_start_solution_cma_es_begins_at_the_center_of_bounds(diagonal: bool) -> None:
    low, high = np.arange(5.0), np.array([2.0, 5, 8, 11, 4.5])
    given: dict[str, Any] = {
        "bounds": Bounds(low, high),
        "seed": 1,
        "diagonal": diagonal,
        "sigma0": 1e-9,
    }
    X = CMAES(None, **given).ask()
    np.testing.assert_allclose(X, np.tile((low + high) / 2, (24, 1)), atol=1e-7)
    assert ((low + high) / 2 != X).all(), "the center is not in the population"
    np.testing.assert_array_equal(CMAES((low + high) / 2, x0_in_population=False, **given).ask(), X)
    np.testing.assert_allclose(
        CMAES(n_var=3, bounds=(0, 1), seed=1, sigma0=1e-9).ask(), 0.5, atol=1e-7
    )
    assert optimizer("random", n_var=3, bounds=(0, 1), seed=1).n_var == 3


def test_a_full_matrix_has_to_fit_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four matrices of float64 have to."""
    there = {"SC_PAGE_SIZE": 8, "SC_PHYS_PAGES": 4 * 100**2}
    monkeypatch.setattr(os, "sysconf", there.__getitem__)
    assert CMAES(np.ones(100), seed=1).n_var == 100
    there["SC_PHYS_PAGES"] -= 1
    with pytest.raises(MemoryError, match=r"needs 320,000 bytes, there are 319,992: use method="):
        CMAES(np.ones(100), seed=1)
    assert CMAES(np.ones(100), seed=1, diagonal=True).n_var == 100


@pytest.mark.parametrize("shift", [0.0, -1e3, 1e18])
def test_values_that_are_not_finite_are_to_pycma_the_worst_ones(shift: float) -> None:
    """Also where one is nothing beside the others."""
    plain, holes = (CMAES(X0, seed=1, population_size=8) for _ in "ab")
    for _ in range(3):
        F = np.array([9.0, 3, 7, 1, 8, 2, 6, 5]) * 1024 + shift
        worst = F.copy()
        worst[[0, 4]] = np.inf, np.nan
        F[[0, 4]] = F.max() * 4 + 1e6, F.max() * 4 + 2e6
        F[[0, 4]] = np.abs(F).max()
        plain.tell(plain.ask(), F)
        holes.tell(holes.ask(), worst)
        np.testing.assert_array_equal(holes.ask(), plain.ask())


# ---- how it ends


@pytest.mark.parametrize("method", ["cma-es", "sep-cma-es"])
def test_a_flat_function_is_no_convergence_and_pycmas_tolerances_are_named(method: str) -> None:
    flat = run(lambda _: 3.0, method=method, n_gen=300)
    assert (flat.reason, flat.success, flat.status) == ("cma_stuck", False, 2)
    found = run(method=method, n_gen=300)
    assert (found.reason, found.success, found.fun < 1e-10) == ("cma", True, True)
    assert found.message.endswith(": tolfun.")


@every_method
def test_the_message_says_that_no_better_point_was_found(method: str) -> None:
    told = "No better point than the start was found."
    assert (
        told
        in run(lambda X: (X**2).sum(axis=1), x0=np.zeros(6), vectorized=True, method=method).message
    )
    assert told not in run(sphere, vectorized=True, method=method).message
    assert (
        told
        not in run(sphere, x0=None, bounds=[(-1, 1)] * 6, vectorized=True, method=method).message
    )
    assert told not in run(lambda _: 3.0, x0=None, bounds=[(-1, 1)] * 6, method=method).message
    assert (
        told
        not in run(lambda _: 3.0, bounds=(-1, 1), x0_in_population=False, method=method).message
    )
    seen: list[str] = []
    run(
        lambda _: 3.0,
        method=method,
        callback=lambda intermediate_result: seen.append(intermediate_result.message),
    )
    assert seen[0] == "The search has not stopped yet." or method.endswith("cma-es")


def test_a_preset_that_has_not_moved_is_as_scipy_a_success() -> None:
    found = run(
        sphere, x0=np.full(6, 0.5), vectorized=True, n_gen=400, reading=Reading.recommended()
    )
    assert (found.success, found.reason, found.fun) == (True, "sigma_min", 0)
