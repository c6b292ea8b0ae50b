"""Promises of ask, tell, stop, result, pickles and states, whichever way the candidates come about."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from problems import sphere
from scipy.optimize import Bounds
from test_lea_mvd import run_states, same

from leamvd import LEAMVD, Reading
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.random_search import RandomSearch


def optimizer(**options: Any) -> LEAMVD:
    return LEAMVD(**{"n_var": 5, "bounds": (-1, 1), "seed": 8, "population_size": 8} | options)


def through_pickle(opt: Any) -> Any:
    return pickle.loads(pickle.dumps(opt))


def asked(opt: Optimizer, generations: int) -> list[Any]:
    """Return copies of the candidates of some generations, whose values stagnate, and then the best point."""
    seen = []
    for _ in range(generations):
        seen.append(opt.ask().copy())
        opt.tell(opt.ask(), np.round(sphere(seen[-1]), 1))
    return [*seen, opt.result.x]


@pytest.mark.compiled
@pytest.mark.parametrize(
    "make",
    [
        optimizer,
        lambda: optimizer(reading=Reading.printed(), dtype="float32"),
        lambda: optimizer(reading=Reading(step="sampled", reset="initial", limits="reflect", sigma_norm="spectral")),
        lambda: CMAES(np.linspace(-1, 1, 5), seed=3),
        lambda: RandomSearch(np.linspace(-1, 1, 5), seed=3),
    ],
    ids=["lea-mvd", "printed", "mixed", "cma-es", "random"],
)
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, through_pickle])
def test_a_copy_at_any_moment_continues_bit_for_bit_and_leaves_the_first_alone(make: Any, copied: Any) -> None:
    """After tell and after ask, through stagnation and a reset; candidates show all that an optimizer knows."""
    opt, expected = make(), asked(make(), 16)
    for generation in range(14):
        for _ in range(2):
            twin = copied(opt)
            assert isinstance(opt, CMAES | RandomSearch) or not twin.ask().flags.writeable
            for ours, theirs in zip(asked(twin, 2), expected[generation : generation + 2], strict=False):
                np.testing.assert_array_equal(ours, theirs)
            twin.tell(twin.ask() + 1, np.zeros(len(twin.ask())))
            np.testing.assert_array_equal(opt.ask(), expected[generation])
        asked(opt, 1)
    np.testing.assert_array_equal(asked(opt, 2)[-1], expected[-1])


def test_a_state_is_a_copy_and_there_after_tell_only() -> None:
    opt = optimizer()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"state is defined after tell\(\) and before the next ask\(\)"):
            _ = opt.state
        opt.tell(opt.ask(), sphere(opt.ask()))
        before = opt.state
        for array in opt.state[:7]:
            array[:] = 0
        assert same(before, opt.state)
        with pytest.raises(RuntimeError, match=r"call ask\(\)"):
            opt.tell(np.zeros((8, 5)), np.zeros(8))
        opt.ask()


@pytest.mark.parametrize("change", [{"mean": np.zeros(4)}, {"beta2": 1.1}, {"descent_norm": -1.0}], ids=str)
def test_a_state_that_does_not_fit_changes_nothing(change: dict[str, Any]) -> None:
    opt = optimizer()
    run_states(opt, sphere, 2)
    before = opt.state
    with pytest.raises(ValueError, match="state"):
        opt.state = before._replace(**change)
    assert same(before, opt.state)


def test_a_state_forgets_a_halt_and_stagnates_on_where_nothing_is_reset() -> None:
    opt = optimizer(reading=Reading(reset="off"))
    run_states(opt, lambda X: np.zeros(len(X)), 14)
    assert opt.state.stagnation == 13
    opt.halt("target", 0.0)
    opt.state = opt.state
    assert (opt.stop(), opt.state.stagnation) == ({}, 13)


def test_ask_twice_gives_the_same_read_only_candidates_whatever_is_told_wrong() -> None:
    opt = optimizer()
    first = opt.ask()
    assert opt.ask() is first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1
    for X, F in ((first[:7], np.zeros(8)), (first, np.zeros(7)), (first, np.full(8, -np.inf))):
        with pytest.raises(ValueError, match="must"):
            opt.tell(X, F)
    assert (opt.generation, opt.nfev) == (0, 0)
    opt.tell(first, sphere(first))
    assert opt.nfev == 8


def test_stop_reasons_add_up_and_the_target_speaks_for_the_run() -> None:
    opt = optimizer(n_gen=1, sigma_min=1e9)
    opt.tell(opt.ask(), np.zeros(8))
    opt.halt("target", 0.0)
    opt.halt("interrupted")
    assert list(opt.stop()) == ["n_gen", "sigma_min", "target", "interrupted"]
    assert opt.result.reason == "target"
    opt.resume()
    assert (list(opt.stop()), opt.result.reason) == (["n_gen", "sigma_min"], "sigma_min")
    opt.tell(opt.ask(), np.zeros(4))  # still works
    assert opt.stop()["n_gen"] == 2


def test_one_seed_one_run() -> None:
    a, b, other = (run_states(optimizer(seed=seed), sphere, 3) for seed in (1, 1, 2))
    assert all(same(x, y) for x, y in zip(a, b, strict=True))
    assert not same(a[0], other[0])
    assert optimizer(seed=None).seed != optimizer(seed=None).seed
    run_states(optimizer(seed=2**64 - 1), sphere, 2)


def test_what_is_told_becomes_the_population() -> None:
    """Candidates, an equal copy of them, repaired ones and lists are all welcome; the caller's array stays his."""
    own, copied, repaired = optimizer(), optimizer(), optimizer()
    for opt in (own, copied):
        X = opt.ask() if opt is own else opt.ask().copy()
        opt.tell(X, sphere(X))
    assert same(own.state, copied.state)
    X = np.abs(repaired.ask())
    before = X.copy()
    repaired.tell(X.tolist(), sphere(X).tolist())
    np.testing.assert_array_equal(repaired.state.population, X[np.argsort(sphere(X))])
    other = copy.deepcopy(repaired)
    Y = np.tile(np.full(5, 0.5), (4, 1))
    Y[2] = 9.0
    other.ask()
    other.tell(Y, sphere(Y))
    np.testing.assert_array_equal(other.result.x, np.full(5, 0.5))
    np.testing.assert_array_equal(X, before)
    reversed_ = repaired.ask()[::-1]  # overlaps the population itself
    expected = reversed_.copy()
    repaired.tell(reversed_, -np.arange(1.0, 5.0))
    np.testing.assert_array_equal(repaired.state.population[:4], expected[::-1])


@pytest.mark.parametrize("elites", ["keep", "reevaluate"])
@pytest.mark.parametrize("make", [optimizer, RandomSearch, CMAES])
def test_the_number_of_candidates_is_known_before_they_are_asked_for(make: Any, elites: Any) -> None:
    own = {"reading": Reading(elites=elites)} if make is optimizer else {}
    opt = make(**({"x0": np.zeros(5)} if make is not optimizer else {}), population_size=8, seed=1, **own)
    for _ in range(3):
        expected = opt.n_candidates
        X = opt.ask()
        assert len(X) == expected == opt.n_candidates
        opt.tell(X, sphere(X))


def test_values_that_are_not_finite_rank_last_and_are_counted() -> None:
    opt = optimizer()
    X = opt.ask().copy()
    opt.tell(X, [np.nan, 3, np.inf, 1, np.nan, 2, 5, 4])
    np.testing.assert_array_equal(opt.state.fitness, [1, 2, 3, 4, 5, np.inf, np.inf, np.inf])
    np.testing.assert_array_equal(opt.state.population, X[[3, 5, 1, 7, 6, 0, 2, 4]])
    assert (opt.result.n_nan, opt.result.n_inf, opt.result.fun) == (2, 1, 1)
    assert opt.stop() == {}


def test_a_generation_of_nans_ends_the_run() -> None:
    opt = optimizer()
    opt.tell(opt.ask(), np.full(8, np.inf))
    assert opt.stop() == {}
    opt.tell(opt.ask(), np.full(4, np.nan))
    assert opt.stop() == {"nan": 2}
    result = opt.result
    assert (result.success, result.reason, result.n_nan, result.n_inf) == (False, "nan", 4, 8)
    assert result.message == "Every value of a generation was NaN."
    assert np.isfinite(opt.ask()).all()


def test_the_result_is_scipys() -> None:
    opt = optimizer(n_gen=2)
    empty = opt.result
    assert (empty.x, empty.fun, empty.nit, empty.success, empty.status) == (None, np.inf, 0, False, -1)
    run_states(opt, sphere, 2)
    result = opt.result
    assert (result.nit, result.nfev, result.success, result.reason, result.seed) == (2, 12, False, "n_gen", 8)
    assert result.fun == sphere(result.x[None])[0] == opt.state.fitness[0]
    result.x[:] = 9
    assert opt.result.x[0] != 9


@pytest.mark.compiled
def test_n_gen_counts_the_first_generation() -> None:
    for options, expected in (({}, 30), ({"n_gen": 3}, 3), ({"reading": Reading(n_gen=50)}, 50), ({"n_gen": 1}, 1)):
        opt = optimizer(**({"population_size": 24} | options))
        while not opt.stop():
            X = opt.ask()
            opt.tell(X, sphere(X))
        assert opt.stop() == {"n_gen": expected}
        assert opt.nfev == 24 + 20 * (expected - 1)


@pytest.mark.parametrize(
    "bounds",
    [
        (-1, [1] * 5),
        [[-1.0] * 5, 1],
        np.array([-1, 1]),
        (np.full(5, -1), np.ones(5)),
        [(-1, 1)] * 5,
        np.array([[-1, 1]] * 5),
        Bounds(-1, 1),
        Bounds(np.full(5, -1), np.ones(5)),
    ],
    ids=str,
)
def test_bounds_may_be_scipys_or_a_pair_or_one_pair_a_variable(bounds: Any) -> None:
    given, plain = (optimizer(bounds=form).ask() for form in (bounds, (-1, 1)))
    np.testing.assert_array_equal(given, plain)


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


def test_an_optimizer_prints_where_it_is() -> None:
    opt = optimizer(dtype="float32")
    assert repr(opt) == "<LEAMVD: n_var=5, population_size=8, generation=0 of 30, dtype=float32, best_fun=inf>"
    opt.tell(opt.ask(), np.arange(8) + 0.125)
    assert repr(opt) == "<LEAMVD: n_var=5, population_size=8, generation=1 of 30, dtype=float32, best_fun=0.125>"
