"""What ask, tell, stop, result, pickles and states promise, whichever way the candidates come about."""

import copy
import doctest
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from problems import sphere
from scipy.optimize import Bounds
from test_lea_mvd import run_states, same

import leamvd.optimizers.lea_mvd
from leamvd import LEAMVD, Reading
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.random_search import RandomSearch

READINGS = [
    Reading(),
    Reading.printed(),
    Reading(step="sampled", descent_scale="normalized", reset="initial", limits="reflect", sigma_norm="spectral"),
]


def optimizer(**options: Any) -> LEAMVD:
    return LEAMVD(**{"n_var": 5, "bounds": (-1, 1), "seed": 8, "population_size": 8} | options)


def stagnating(X: Any) -> Any:
    return np.round(sphere(X), 1)


def through_pickle(opt: LEAMVD) -> LEAMVD:
    return pickle.loads(pickle.dumps(opt))  # type: ignore[no-any-return]


def through_state(opt: LEAMVD) -> LEAMVD:
    fresh = optimizer(reading=opt.reading, dtype=opt.dtype)
    fresh.state = pickle.loads(pickle.dumps(opt.state))
    return fresh


@pytest.mark.compiled
@pytest.mark.parametrize("reading", READINGS, ids=["default", "printed", "mixed"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, through_pickle, through_state])
def test_a_copy_after_any_generation_continues_bit_for_bit(
    copied: Callable[[LEAMVD], LEAMVD], dtype: str, reading: Reading
) -> None:
    opt = optimizer(reading=reading, dtype=dtype)
    for generation in range(18):
        if generation:
            twin = copied(opt)
            for _ in range(2):
                X, Y = copy.copy(opt).ask(), twin.ask()
                np.testing.assert_array_equal(X, Y)
            again = copied(opt)
            ahead = run_states(copy.copy(opt), stagnating, 2), run_states(again, stagnating, 2)
            assert all(same(a, b) for a, b in zip(*ahead, strict=True))
        X = opt.ask()
        opt.tell(X, stagnating(X))
    assert opt.stop() == copied(opt).stop() == {}


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, through_pickle])
def test_a_copy_between_ask_and_tell_continues_bit_for_bit(copied: Callable[[LEAMVD], LEAMVD]) -> None:
    opt = optimizer()
    for _ in range(3):
        X = opt.ask()
        twin = copied(opt)
        np.testing.assert_array_equal(twin.ask(), X)
        assert not twin.ask().flags.writeable
        for each in (opt, twin):
            each.tell(each.ask(), sphere(X))
        assert same(opt.state, twin.state)
        np.testing.assert_array_equal(opt.ask(), twin.ask())
        twin.tell(twin.ask() + 1, np.zeros(len(twin.ask())))  # the copy has a population of its own
        opt.tell(opt.ask(), sphere(opt.ask()))


def test_a_state_is_a_copy() -> None:
    opt = optimizer()
    run_states(opt, sphere, 2)
    before = opt.state
    for array in opt.state[:7]:
        array[:] = 0
    assert same(before, opt.state)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"population": np.zeros((8, 4))}, r"state.population must have shape \(8, 5\), got \(8, 4\)"),
        ({"population": np.ma.masked_equal(np.eye(8, 5), 1)}, r"state.population must not be masked"),
        ({"fitness": np.arange(8.0)[::-1]}, r"state.fitness must be values above -inf, best first"),
        ({"fitness": np.full(8, np.nan)}, r"state.fitness must be values above -inf, best first"),
        ({"fitness": np.full(8, -np.inf)}, r"state.fitness must be values above -inf, best first"),
        ({"fitness": np.zeros(7)}, r"state.fitness must have shape \(8,\), got \(7,\)"),
        ({"fitness": np.zeros(8, complex)}, r"state.fitness must be an array of real numbers"),
        ({"mean": np.zeros(4)}, r"state.mean must have shape \(5,\), got \(4,\)"),
        ({"std": np.full(5, np.inf)}, r"state.std must be finite, got inf at index \(0,\)"),
        ({"std": np.array([1, 1, -1e-9, 1, 1])}, r"state.std must be >= 0, got -1e-09 at index 2"),
        ({"path": np.full(5, np.nan)}, r"state.path must be finite"),
        ({"descent": None}, r"state.descent must be an array of numbers"),
        ({"descent_rows": np.arange(3)}, r"state.descent_rows must have shape \(4,\), got \(3,\)"),
        ({"descent_rows": np.arange(4)}, r"state.descent_rows must be distinct ranks from 1 to 7, got \[0, 1, 2, 3\]"),
        ({"descent_rows": [1, 2, 3, 8]}, r"state.descent_rows must be distinct ranks from 1 to 7, got \[1, 2, 3, 8\]"),
        ({"descent_rows": [1, 2, 3, 3]}, r"state.descent_rows must be distinct ranks from 1 to 7, got \[1, 2, 3, 3\]"),
        ({"descent_rows": [1, 2, 3, 4.5]}, r"state.descent_rows must be an array of integers"),
        ({"descent_mean": np.inf}, r"state.descent_mean must be a finite number, got inf"),
        ({"descent_std": -1.0}, r"state.descent_std must be a finite number >= 0, got -1.0"),
        ({"beta1": 0.0}, r"state.beta1 must be a finite number > 0 and <= 3, got 0.0"),
        ({"beta1": 3.1}, r"state.beta1 must be a finite number > 0 and <= 3, got 3.1"),
        ({"beta2": 1.1}, r"state.beta2 must be a finite number >= 0 and <= 1, got 1.1"),
        ({"beta2": "1"}, r"state.beta2 must be a number, got '1'"),
        ({"stagnation": None}, r"state.stagnation must be an integer, got None"),
        ({"stagnation": 10}, r"state.stagnation must be an integer >= 0 and <= 9, got 10"),
        ({"generation": 2.5}, r"state.generation must be an integer, got 2.5"),
        ({"generation": 0}, r"state.generation must be an integer >= 1"),
        ({"nfev": -1}, r"state.nfev must be an integer >= 1"),
        ({"n_nan": 99}, r"state.n_nan must be an integer >= 0 and <= 12, got 99"),
        ({"n_inf": 13}, r"state.n_inf must be an integer >= 0 and <= 12, got 13"),
        ({"initial_std": np.ones(5)}, r"state.initial_std must be None where reading.reset=1.0, got an array"),
        ({"std_norm": -1.0}, r"state.std_norm must be a finite number >= 0, got -1.0"),
        ({"descent_norm": None}, r"state.descent_norm must be a number, got None"),
    ],
    ids=str,
)
def test_a_state_that_does_not_fit_changes_nothing(change: dict[str, Any], message: str) -> None:
    opt = optimizer()
    run_states(opt, sphere, 2)
    before = opt.state
    with pytest.raises((TypeError, ValueError), match=message):
        opt.state = before._replace(**change)
    assert same(before, opt.state)


def test_a_state_belongs_to_its_reading() -> None:
    opt = optimizer(reading=Reading(reset="initial"))
    run_states(opt, sphere, 2)
    with pytest.raises(TypeError, match=r"state.initial_std must be an array of numbers, got array\(None"):
        opt.state = opt.state._replace(initial_std=None)
    with pytest.raises(ValueError, match=r"state.initial_std must be >= 0, got -1.0 at index 0"):
        opt.state = opt.state._replace(initial_std=-np.ones(5))
    with pytest.raises(TypeError, match=r"state must be a leamvd.State, got 3"):
        opt.state = 3  # type: ignore[assignment]
    long = optimizer(reading=Reading(reset="off"))
    run_states(long, lambda X: np.zeros(len(X)), 14)
    assert long.state.stagnation == 13
    long.state = long.state
    assert same(long.state, long.state)


def test_state_is_there_after_tell_only() -> None:
    opt = optimizer()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"state is defined after tell\(\) and before the next ask\(\)"):
            _ = opt.state
        opt.tell(opt.ask(), np.zeros(len(opt.ask())))
        assert opt.state.generation == opt.generation
        opt.ask()


def test_ask_twice_gives_the_same_read_only_candidates() -> None:
    opt = optimizer()
    first = opt.ask()
    assert opt.ask() is first
    with pytest.raises(ValueError, match="read-only"):
        first[0, 0] = 1


def test_ask_after_stop_still_works() -> None:
    opt = optimizer(n_gen=1)
    opt.tell(opt.ask(), np.zeros(8))
    assert opt.stop() == {"n_gen": 1}
    opt.tell(opt.ask(), np.zeros(4))
    assert opt.stop() == {"n_gen": 2}


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


@pytest.mark.parametrize(
    ("X", "F", "error", "message"),
    [
        (np.zeros((7, 5)), np.zeros(8), ValueError, r"X must have shape \(8, 5\), got \(7, 5\)"),
        (np.zeros(5), np.zeros(8), ValueError, r"X must have shape \(8, 5\), got \(5,\)"),
        (None, np.zeros(7), ValueError, r"F must have shape \(8,\), got \(7,\)"),
        (None, np.zeros((8, 1)), ValueError, r"F must have shape \(8,\), got \(8, 1\)"),
        (None, 0.0, ValueError, r"F must have shape \(8,\), got \(\)"),
        (np.full((8, 5), np.nan), np.zeros(8), ValueError, r"X must be finite, got nan at index \(0, 0\)"),
        (np.full((8, 5), np.inf), np.zeros(8), ValueError, r"X must be finite, got inf at index \(0, 0\)"),
        ("candidates", np.zeros(8), TypeError, r"X must be an array of numbers, got array\('candidates'"),
        (np.zeros((8, 5), complex), np.zeros(8), TypeError, r"X must be an array of real numbers, got array"),
        (np.ma.masked_equal(np.eye(8, 5), 1), np.zeros(8), TypeError, r"X must not be masked, got masked_array"),
        (None, np.zeros(8, complex), TypeError, r"F must be an array of real numbers, got array"),
        (None, np.ma.masked_equal(np.eye(8)[0], 1), TypeError, r"F must not be masked, got masked_array"),
        (None, [0, 0, -np.inf, 0, 0, 0, 0, 0], ValueError, r"F must be larger than -inf, got -inf at index 2"),
    ],
)
def test_a_wrong_tell_says_so_and_changes_nothing(X: Any, F: Any, error: type[Exception], message: str) -> None:
    opt = optimizer()
    candidates = opt.ask()
    with pytest.raises(error, match=message):
        opt.tell(candidates if X is None else X, F)
    assert (opt.generation, opt.nfev) == (0, 0)
    opt.tell(candidates, sphere(candidates))
    assert opt.nfev == 8


def test_tell_needs_ask() -> None:
    opt = optimizer()
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"tell needs candidates to be asked for first: call ask\(\)"):
            opt.tell(np.zeros((8, 5)), np.zeros(8))
        opt.tell(opt.ask(), np.zeros(len(opt.ask())))


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


def test_a_search_that_was_halted_may_be_resumed() -> None:
    opt = optimizer()
    opt.tell(opt.ask(), np.arange(8.0))
    opt.halt("interrupted")
    assert opt.result.status == "interrupted"
    opt.resume()
    assert (opt.stop(), opt.result.status) == ({}, "running")


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
    assert (result.success, result.status, result.n_nan, result.n_inf) == (False, "nan", 4, 8)
    assert result.message == "Every value of a generation was NaN."
    assert np.isfinite(opt.ask()).all()


def test_the_result_is_scipys() -> None:
    opt = optimizer(n_gen=2)
    empty = opt.result
    assert (empty.x, empty.fun, empty.nit, empty.success, empty.status) == (None, np.inf, 0, False, "running")
    run_states(opt, sphere, 2)
    result = opt.result
    assert (result.nit, result.nfev, result.success, result.status, result.seed) == (2, 12, True, "n_gen", 8)
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


def test_later_stop_reasons_speak_for_the_run() -> None:
    opt = optimizer(n_gen=1, sigma_min=1e9)
    opt.tell(opt.ask(), np.zeros(8))
    opt.halt("target", 0.0)
    assert list(opt.stop()) == ["n_gen", "sigma_min", "target"]
    assert opt.result.status == "target"
    with pytest.raises(ValueError, match="reason must be one of"):
        opt.halt("bored")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"n_elite": 8}, ValueError, "n_elite=8 clashes with population_size=8"),
        ({"n_elite": 0}, ValueError, "n_elite must be an integer >= 1, got 0"),
        ({"population_size": 4, "n_elite": 2}, ValueError, "reading.n_descent_rows=4 clashes with population_size=4"),
        ({"population_size": 1}, ValueError, "population_size must be an integer >= 2"),
        (
            {"bounds": None, "x0": [0.0] * 5, "reading": Reading(limits="clip")},
            ValueError,
            "reading.limits='clip' clashes with bounds=None",
        ),
        ({"bounds": None}, ValueError, "x0 and bounds are both missing"),
        ({"x0": [1.0, 2.0]}, ValueError, r"n_var=5 and len\(x0\)=2 clash"),
        ({"bounds": ([0] * 4, 1)}, ValueError, r"n_var=5 and len\(low of bounds\)=4 clash"),
        ({"n_var": None}, ValueError, "n_var must be given where x0 is not, got None"),
        ({"bounds": (1, 0)}, ValueError, r"bounds must have low <= high, got 1.0 > 0.0 at index 0"),
        ({"bounds": (0, np.inf)}, ValueError, r"high of bounds must be a finite number, got inf"),
        ({"bounds": (0, [1, 1, np.nan, 1, 1])}, ValueError, r"high of bounds must be finite, got nan at index \(2,\)"),
        ({"bounds": 3}, ValueError, r"bounds must be a pair \(low, high\) of numbers or .*, got 3"),
        ({"bounds": [(0, 1)] * 4}, ValueError, r"n_var=5 and len\(low of bounds\)=4 and .* clash"),
        ({"bounds": [(0, 1, 2)] * 5}, ValueError, r"bounds must be a pair \(low, high\)"),
        ({"bounds": [(0, None)] * 5}, TypeError, r"high of bounds must be an array of numbers"),
        (
            {"bounds": [(-5, 5)] * 2, "n_var": 2},
            ValueError,
            r"bounds=.* of two variables .*: write scipy.optimize.Bounds",
        ),
        ({"bounds": Bounds(0, np.inf)}, ValueError, r"high of bounds must be a finite number, got inf"),
        ({"x0": np.full(5, np.nan)}, ValueError, r"x0 must be finite, got nan at index \(0,\)"),
        ({"x0": np.zeros((5, 1))}, ValueError, r"x0 must have shape \(any,\), got \(5, 1\)"),
        ({"sigma0": 0}, ValueError, "sigma0 must be a finite number > 0, got 0"),
        ({"sigma_min": -1}, ValueError, "sigma_min must be a finite number >= 0, got -1"),
        ({"n_gen": 0}, ValueError, "n_gen must be an integer >= 1, got 0"),
        ({"n_gen": 2.0}, TypeError, "n_gen must be an integer, got 2.0"),
        ({"seed": -1}, ValueError, "seed must be an integer >= 0"),
        ({"dtype": "float16"}, ValueError, "dtype must be float32 or float64, got float16"),
        ({"reading": "printed"}, TypeError, "reading must be a leamvd.Reading, got 'printed'"),
    ],
)
def test_arguments_that_are_wrong_or_clash_are_named(
    options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        optimizer(**options)


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
@pytest.mark.parametrize("make", [optimizer, RandomSearch, CMAES])
def test_bounds_may_be_scipys_or_a_pair_or_one_pair_a_variable(make: Any, bounds: Any) -> None:
    x0 = {"x0": np.full(5, 0.9)} if make is CMAES else {} if make is optimizer else {"n_var": 5}
    given, plain = (make(**x0, bounds=form, seed=1).ask() for form in (bounds, (-1, 1)))
    np.testing.assert_array_equal(given, plain)


@pytest.mark.parametrize("bounds", [Bounds([-1, -2], [3, 4]), ([-1, -2], 4), [(-1, 3), (-2, 4), (0, 1)], [(-1, 3)]])
def test_limits_of_each_variable_reach_it(bounds: Any) -> None:
    low, high = {2: ([-1, -2], [3, 4]), 3: ([-1, -2, 0], [3, 4, 1]), 1: ([-1], [3])}[
        n := 2 if isinstance(bounds, Bounds | tuple) else len(bounds)
    ]
    high = [4, 4] if isinstance(bounds, tuple) else high
    opt = RandomSearch(bounds=bounds, n_var=n, seed=1, population_size=400)
    np.testing.assert_allclose(opt.ask().min(axis=0), low, atol=0.1)
    np.testing.assert_allclose(opt.ask().max(axis=0), high, atol=0.1)
    assert opt.n_var == n


def test_the_length_of_the_bounds_tells_n() -> None:
    assert optimizer(n_var=None, bounds=([0] * 3, 1)).n_var == 3
    assert optimizer(n_var=None, bounds=[(0, 1)] * 4).n_var == 4
    assert optimizer(n_var=None, bounds=Bounds([0] * 6, 1)).n_var == 6


def test_an_optimizer_prints_where_it_is() -> None:
    opt = optimizer(dtype="float32")
    assert repr(opt) == "<LEAMVD: n_var=5, population_size=8, generation=0 of 30, dtype=float32, best_fun=inf>"
    opt.tell(opt.ask(), np.arange(8) + 0.125)
    assert repr(opt) == "<LEAMVD: n_var=5, population_size=8, generation=1 of 30, dtype=float32, best_fun=0.125>"


def test_methods_without_step_sizes_say_so() -> None:
    assert np.isnan(Optimizer.step_sizes.fget(optimizer())).all()  # type: ignore[attr-defined]


@pytest.mark.compiled
def test_the_example_runs() -> None:
    assert doctest.testmod(leamvd.optimizers.lea_mvd).failed == 0
    assert doctest.testmod(leamvd.optimizers.lea_mvd).attempted > 3
