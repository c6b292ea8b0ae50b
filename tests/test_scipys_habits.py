"""What those who know SciPy expect of `minimize`: success and status, names of arguments, options, generators."""

import re
from typing import Any

import numpy as np
import pytest
from problems import sphere
from prose import PAGES

from leamvd import LEAMVD, Reading, minimize
from leamvd.optimizers.base import REASONS
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.methods import METHODS
from leamvd.optimizers.random_search import RandomSearch

X0 = np.linspace(-1, 1, 6)
MINIMIZE: Any = minimize  # with names that its signature leaves to `options`


def search(fun: Any = sphere, **options: Any) -> Any:
    return MINIMIZE(fun, X0, **{"vectorized": True, "seed": 1} | options)


# ---- success, status and reason


def test_the_tables_of_reasons_are_those_of_the_results() -> None:
    expected: dict[int, set[str]] = {}
    for name, reason in REASONS.items():
        expected.setdefault(reason.status, set()).add(name)
    rows = re.findall(r"^\| (-?\d) \| (.+?) \|", PAGES["optimize"], re.MULTILINE)
    assert {int(status): {*re.findall(r"`(\w+)`", names)} for status, names in rows} == expected
    table = (minimize.__doc__ or "").split("======\n")[2]
    rows = re.findall(r"^ *(-?\d) ((?:.|\n {9,})+)", table, re.MULTILINE)
    assert {int(status): {*re.findall(r'"(\w+)"', names)} for status, names in rows} == expected


def test_success_is_a_target_or_convergence_and_has_the_status_zero() -> None:
    shrinking = search(n_gen=5, sigma_min=1e9)
    assert (shrinking.reason, shrinking.status, shrinking.success) == ("sigma_min", 0, True)
    reached = search(target=20.0, n_gen=1)
    assert (reached.reason, reached.status, reached.success) == ("target", 0, True), "though a budget is used up too"
    for limit in ({"n_gen": 1}, {"max_nfev": 30}, {"max_seconds": 1e-9}):
        over = search(**limit)
        assert (over.reason, over.status, over.success) == (next(iter(limit)), 1, False)
    flat = search(lambda X: np.ones(len(X)), max_stagnation=2)
    assert (flat.reason, flat.status, flat.success) == ("max_stagnation", 2, False)


def test_a_search_without_a_finite_value_has_not_converged() -> None:
    result = search(lambda X: np.full(len(X), np.inf), n_gen=3, sigma_min=1e9)
    assert (result.nit, result.reason, result.success) == (3, "n_gen", False)


@pytest.mark.parametrize(
    ("criteria", "reason"),
    [
        ({"tolfun": 1e-11, "maxiter": 3}, "cma"),
        ({"maxiter": 3}, "cma_maxiter"),
        ({"tolflatfitness": 1}, "cma_stuck"),
        ({"tolfacupx": 1000.0}, "cma_stuck"),
        ({"tolstagnation": 145}, "cma_stuck"),
    ],
)
def test_cma_es_succeeds_by_its_tolerances_alone(
    monkeypatch: pytest.MonkeyPatch, criteria: dict[str, Any], reason: str
) -> None:
    opt = CMAES(X0, seed=1)
    opt.tell(opt.ask(), sphere(opt.ask()))
    monkeypatch.setattr(opt._es, "stop", lambda: criteria)
    result = opt.result
    assert (list(opt.stop()), result.reason, result.success) == ([reason], reason, reason == "cma")
    assert result.message.endswith(f": {', '.join(criteria)}.")


@pytest.mark.parametrize("method", METHODS)
def test_the_default_budget_says_that_it_is_one(method: str) -> None:
    result = search(method=method)
    assert (result.nit, result.success) == (30, False)
    expected = "The default budget of 30 generations, the paper's, is used up: set n_gen or max_nfev for more."
    assert result.message == expected
    assert search(method=method, n_gen=2).message == "The number of generations has been reached."


@pytest.mark.parametrize("method", METHODS)
def test_another_budget_takes_the_place_of_the_default(method: str) -> None:
    result = search(method=method, max_nfev=1000)
    assert (result.reason, result.nit > 30) == ("max_nfev", True)
    assert search(method=method, max_nfev=1000, n_gen=3).nit == 3


def test_another_budget_leaves_the_generations_of_a_reading() -> None:
    assert search(max_nfev=5000, reading=Reading(n_gen=40)).nit == 40


# ---- names, options, generators


@pytest.mark.parametrize("method", METHODS)
def test_scipys_names_and_options_mean_the_same(method: str) -> None:
    plain = search(method=method, n_gen=4)
    others = [
        search(method=method, maxiter=4),
        search(method=method, seed=None, rng=1, options={"maxiter": 4}),
        search(options={"method": method, "n_gen": 4, "target": -1.0}),
    ]
    for other in others:
        np.testing.assert_array_equal(other.x, plain.x)
        assert other.nit == 4
    assert search(method=method, maxfev=60).nfev == search(method=method, max_nfev=60).nfev


@pytest.mark.parametrize("name", ["seed", "rng"])
def test_a_generator_gives_a_seed_that_the_result_names(name: str) -> None:
    rng = np.random.default_rng(7)
    expected = np.random.default_rng(7).integers(2**64, dtype=np.uint64, size=2).tolist()
    results = [search(n_gen=3, **{"seed": None, name: rng}) for _ in range(2)]
    assert [result.seed for result in results] == expected
    np.testing.assert_array_equal(results[1].x, search(n_gen=3, seed=expected[1]).x)
    auto = search(n_gen=2, sigma0="auto", **{"seed": None, name: np.random.default_rng(7)})
    assert auto.seed == expected[0], "one draw, however many optimizers are made"
    for make in (LEAMVD, CMAES, RandomSearch):
        assert make(X0, seed=np.random.default_rng(7)).seed == expected[0]


def test_a_warning_names_the_line_that_calls() -> None:
    with pytest.warns(RuntimeWarning, match="tol is not used: give sigma_min, target or max_stagnation") as caught:
        search(tol=1e-3, n_gen=1)
    assert [warning.filename for warning in caught] == [__file__]


# ---- fields of a reading


def test_fields_of_a_reading_may_be_given_one_by_one() -> None:
    reading = Reading(reset="off", exponent=3, shift="printed")
    whole = search(n_gen=20, reading=reading)
    for given in (
        {"reset": "off", "exponent": 3, "shift": "printed"},
        {"reading": Reading(reset="off", exponent=1), "exponent": 3, "shift": "printed"},
    ):
        np.testing.assert_array_equal(search(n_gen=20, **given).x, whole.x)
    assert np.any(search(n_gen=20).x != whole.x)
    small = search(reading=Reading(population_size=12), population_size=8, reset="off", n_gen=2)
    assert small.nfev == 12, "an argument of the optimizer's own means what it meant"


def test_fields_of_a_reading_leave_the_bounds_kept() -> None:
    for given, inside in (({"reset": "off"}, True), ({"limits": "first"}, False)):
        result = search(lambda X: -X.sum(axis=1), bounds=(-1, 1), n_gen=20, **given)
        assert (np.abs(result.x).max() <= 1) == inside


def test_fields_replace_those_of_the_reading_that_is_given_and_leave_its_others() -> None:
    given, whole, alone = (
        search(sphere, seed=1, n_gen=15, **options).x.tolist()
        for options in (
            {"reading": Reading(exponent=3.0), "reset": "off"},
            {"reading": Reading(exponent=3.0, reset="off")},
            {"reset": "off"},
        )
    )
    assert given == whole != alone


# ---- objectives that take columns


def columns(X: Any) -> Any:
    return (np.arange(1, len(X) + 1)[:, None] * X**2).sum(axis=0)


def of_six(X: Any) -> Any:
    return np.arange(6.0) @ X**2


def test_an_objective_of_columns_is_told_to_transpose() -> None:
    told = "generations are rows, so transpose them for what takes columns, lambda X: fun(X.T)"
    with pytest.raises(
        ValueError, match=r"fun's values must have shape \(24,\), .* got \(6,\), one a column: gener"
    ) as caught:
        search(columns)
    assert told in str(caught.value)
    with pytest.raises(
        ValueError, match=r"fun must take X of shape \(24, 6\), one point a row, got an error: gen"
    ) as caught:
        search(of_six)
    assert told in str(caught.value)
    assert "matmul" in str(caught.value.__cause__)
    for fun in (columns, of_six):
        assert search(lambda X, fun=fun: fun(X.T), n_gen=3).nit == 3


@pytest.mark.parametrize("n", [2, 3])
def test_the_shape_decides_and_not_that_there_is_an_error(n: int) -> None:
    def fun(X: Any) -> Any:
        if len(X) == 20:
            raise ZeroDivisionError
        return sphere(X)

    with pytest.raises(ZeroDivisionError):
        MINIMIZE(fun, np.ones(n), vectorized=True)
    with pytest.raises(ValueError, match="lambda X: fun"):
        MINIMIZE(lambda X: np.arange(n) @ X, np.ones(n), vectorized=True)
