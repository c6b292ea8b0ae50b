"""Algorithm 1 against `reference.Reference`, generation by generation, for every option of every
item.
"""

import dataclasses
import itertools
import json
import math
import pickle
import tracemalloc
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from leamvd import LEAMVD, Reading, State
from leamvd.optimizers.random_search import RandomSearch
from problems import rastrigin, rosenbrock, sphere
from reference import Reference

Array = NDArray[Any]
FIELDS = {  # of State, and what the reference calls them
    "population": "X",
    "fitness": "F",
    "mean": "mean",
    "std": "std",
    "path": "P",
    "descent": "C",
    "descent_rows": "ir",
    "descent_mean": "mu_ani",
    "descent_std": "sigma_ani",
    "beta1": "beta1",
    "beta2": "beta2",
    "stagnation": "count",
    "generation": "t",
}
# Every option that is not a default; n_gen is tested with the stop rules.
CHOICES: dict[str, tuple[Any, ...]] = {
    name: get_args(hint)
    for name, hint in get_type_hints(Reading).items()
    if get_origin(hint) is Literal
}
OTHERS: dict[str, tuple[Any, ...]] = {
    "perturbation_share": (0.3, 1.0),
    "population_size": (20,),
    "reset": (0.3, "initial", "off"),
    "x0_in_population": (False,),
    "exponent": (0.0, 3.0),
}
CHANGES: list[dict[str, Any]] = [
    {name: option}
    for name, options in (CHOICES | OTHERS).items()
    for option in options
    if option not in (getattr(Reading().complete(), name), None)
]
PRINTED = {
    name: value
    for name, value in vars(Reading.printed()).items()
    if value != getattr(Reading(), name)
}


def stagnating(X: Array) -> Array:
    """Improve for three values, then never again; many ties."""
    return np.maximum(np.floor(sphere(X)), 4.0)


def run_with_reference(
    opt: LEAMVD,
    fun: Any,
    tolerance: float,
    bounds: tuple[Any, Any] = (-1.0, 1.0),
    generations: int = 26,
) -> list[State]:
    """Run both, compare every field and every candidate, and return the states."""
    sigma0 = None if opt._x0 is None else opt.sigma0
    ref = Reference(opt.n_var, opt.seed, opt.reading, opt.population_size, opt.n_elite, sigma0)
    ref.low[:], ref.high[:] = bounds
    states = []
    for generation in range(generations):
        X = opt.ask()
        if generation:
            np.testing.assert_allclose(X, ref.ask(), rtol=tolerance, atol=tolerance)
        F = fun(X)
        opt.tell(X, F)
        state = opt.state
        ref.tell(X, F)
        for ours, theirs in FIELDS.items():
            expected = getattr(ref, theirs)
            np.testing.assert_allclose(
                getattr(state, ours), expected, rtol=tolerance, atol=tolerance, err_msg=ours
            )
        norm = np.linalg.norm(ref.std) if opt.reading.sigma_norm == "euclidean" else ref.std.max()
        assert opt.step_sizes == pytest.approx(
            (norm, ref.beta1, ref.beta2), rel=max(tolerance, 1e-12)
        )
        states.append(state)
    return states


def optimizer(n: int = 13, reading: Reading | None = None, **options: Any) -> LEAMVD:
    return LEAMVD(**{"n_var": n, "bounds": (-1, 1), "seed": 3, "reading": reading} | options)


@pytest.mark.compiled
@pytest.mark.parametrize("changes", [*CHANGES, PRINTED], ids=str)
def test_every_option_follows_the_equations_and_matters(changes: dict[str, Any]) -> None:
    # which decide when to stop, and on noise
    differs = not changes.keys().isdisjoint({"convergence", "elites"})
    for fun in (rastrigin, stagnating):
        states = run_with_reference(
            optimizer(reading=Reading(**changes), x0=np.full(13, -0.5)), fun, 1e-9
        )
        default = run_states(optimizer(x0=np.full(13, -0.5)), fun)
        differs |= not all(map(same, states, default))
    assert differs


@pytest.mark.compiled
def test_what_is_added_has_the_first_populations_size_where_nothing_else_is_given() -> None:
    opt = optimizer(
        reading=Reading(perturbation="added"), bounds=(np.full(13, -1.0), np.linspace(-0.9, 50, 13))
    )
    run_with_reference(opt, sphere, 1e-9, bounds=(-1.0, np.linspace(-0.9, 50, 13)))
    late = optimizer(reading=Reading(perturbation="added"), x0=np.ones(13), sigma0=9.0)
    late.sigma0 = 0.3  # as `minimize` does where it measures one
    run_with_reference(late, sphere, 1e-9)


@pytest.mark.compiled
@pytest.mark.parametrize("preset", ["default", "recommended"])
@pytest.mark.parametrize("perturbation", ["entry", "column", "off", "added"])
def test_a_search_depends_on_the_origin_where_factors_act(preset: str, perturbation: Any) -> None:
    """Coordinates are multiples of 2^-20, so that moving them by 64 rounds nothing at the start."""
    reading = dataclasses.replace(Reading.named(preset), perturbation=perturbation, n_gen=60)
    x0 = np.round(np.random.default_rng(0).normal(size=30) * 2**20) / 2**20
    for start in ("x0", "bounds"):
        ends = []
        for c in (0.0, 64.0):
            given: dict[str, Any] = (
                {"x0": x0 + c} if start == "x0" else {"n_var": 30, "bounds": (c - 2, c + 2)}
            )
            opt = LEAMVD(**given, sigma0=0.25, sigma_min=0, seed=1, reading=reading)
            ends.append(
                [
                    state.population - c
                    for state in run_states(opt, lambda X, c=c: rosenbrock(X - c), 60)
                ]
            )
        difference = np.abs(np.subtract(*ends)).max()
        assert difference < 1e-9 if perturbation in ("off", "added") else difference > 1


@pytest.mark.compiled
@pytest.mark.parametrize("elites", ["keep", "reevaluate"])
def test_a_noisy_objective_follows_the_equations(elites: Any) -> None:
    """Elites that are evaluated again make the best value worse at times; line 17 asks whether it
    has changed.
    """
    rng = np.random.default_rng(0)
    opt = optimizer(reading=Reading(elites=elites), x0=np.full(13, 0.4))
    states = run_with_reference(opt, lambda X: sphere(X) * rng.uniform(0.2, 2, len(X)), 1e-9)
    best = np.array([state.fitness[0] for state in states])
    assert np.any(np.diff(best) > 0) is np.bool_(elites == "reevaluate")


def run_states(opt: LEAMVD, fun: Any, generations: int = 26) -> list[State]:
    states = []
    for _ in range(generations):
        X = opt.ask()
        opt.tell(X, fun(X))
        states.append(opt.state)
    return states


def same(a: State, b: State, but: tuple[str, ...] = ()) -> bool:
    return all(np.array_equal(getattr(a, f), getattr(b, f)) for f in State._fields if f not in but)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [1, 2, 3, 300])
def test_dimensions_from_one_follow_the_equations(n: int) -> None:
    """In one dimension nothing is orthogonal to P, once it is not zero."""
    opt = optimizer(n)
    if n > 1:
        run_with_reference(opt, sphere, 1e-9, generations=20)
        return
    states = run_states(opt, sphere)
    moved = next(i for i, s in enumerate(states) if s.path.any())
    for before, after in zip(states[moved - 1 :], states[moved:], strict=False):
        np.testing.assert_allclose(after.descent, 0.9 * before.descent, rtol=1e-14)


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("size", "n_elite", "rows"), [(5, 4, 4), (4, 3, 3), (5, 1, 4), (60, 30, 4)]
)
def test_any_population_follows_the_equations(size: int, n_elite: int, rows: int) -> None:
    opt = optimizer(reading=Reading(n_descent_rows=rows), population_size=size, n_elite=n_elite)
    run_with_reference(opt, rosenbrock, 1e-9)


@pytest.mark.compiled
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_any_scale_follows_the_equations(scale: float) -> None:
    reading = Reading(reset="off")
    opt = optimizer(9, reading, x0=np.full(9, scale), bounds=None, sigma0=0.1 * scale, sigma_min=0)
    ref = Reference(9, opt.seed, reading, sigma0=0.1 * scale)
    for generation in range(25):
        X = opt.ask()
        if generation:
            np.testing.assert_allclose(X, ref.ask(), rtol=0, atol=1e-9 * scale)
        F = sphere(X / scale)
        opt.tell(X, F)
        ref.tell(X, F)


@pytest.mark.compiled
@pytest.mark.parametrize("n", [13, 20_000])
def test_single_precision_stays_near_double(n: int) -> None:
    """From one population, one generation of both agrees to the rounding of single precision."""
    single, double = (optimizer(n, dtype=dtype) for dtype in ("float32", "float64"))
    for _ in range(12):
        X = single.ask()
        assert X.dtype == np.float32
        F = sphere(X.astype(np.float64))
        single.tell(X, F)
        double.ask()
        double.tell(X, F)
        a, b = single.state, double.state
        for field in ("mean", "std", "path", "descent"):
            unit = np.abs(getattr(b, field)).max()
            np.testing.assert_allclose(
                getattr(a, field), getattr(b, field), rtol=0, atol=2e-5 * unit, err_msg=field
            )
        np.testing.assert_array_equal(a.descent_rows, b.descent_rows)
        assert a.descent_mean == pytest.approx(b.descent_mean, rel=1e-3)
        assert a.std_norm == pytest.approx(b.std_norm, rel=1e-5)
        assert (a.beta1, a.beta2) == (b.beta1, b.beta2)


@pytest.mark.parametrize("elites", ["keep", "reevaluate"])
@pytest.mark.parametrize("ties", ["keep", "newest"])
def test_ties_keep_their_order_or_the_newest_goes_first(ties: Any, elites: Any) -> None:
    opt = optimizer(reading=Reading(ties=ties, elites=elites))
    first = opt.ask().copy()
    opt.tell(first, np.zeros(24))
    np.testing.assert_array_equal(opt.state.population, first)
    second = opt.ask()[-20:].copy()
    opt.tell(opt.ask(), np.zeros(opt.n_candidates))
    rows = [first[:4], second] if ties == "keep" else [second, first[:4]]
    np.testing.assert_array_equal(opt.state.population, np.concatenate(rows))


@pytest.mark.compiled
def test_beta_rules_at_their_edges() -> None:
    """beta_1: 1 -> 0.5 on failure, 1 -> 1.4 on success (R12), capped at 3 where above 1; beta_2
    stays in [0, 1].
    """
    generations = itertools.count()
    rises = run_states(optimizer(), lambda X: np.full(len(X), -float(next(generations))), 22)
    expected = [1.0, 1.4]
    while len(expected) < 22:
        expected.append(min(3.0, 1.1 * expected[-1]))
    np.testing.assert_allclose([s.beta1 for s in rises], expected, rtol=1e-15)
    np.testing.assert_allclose([s.beta2 for s in rises[:3]], [0.9, 1.0, 1.0])
    falls = run_states(optimizer(reading=Reading(reset="off")), lambda X: np.zeros(len(X)), 14)
    np.testing.assert_allclose(
        [s.beta1 for s in falls], [1.0, *(0.5 * 0.8**k for k in range(13))], rtol=1e-13
    )
    np.testing.assert_allclose(
        [s.beta2 for s in falls], np.maximum(0, 0.9 - 0.1 * np.arange(14)), atol=1e-15
    )
    falls_then_rises = itertools.chain([0.0, 0.0], itertools.count(-1, -1))
    rising = run_states(optimizer(), lambda X: np.full(len(X), next(falls_then_rises)), 4)
    np.testing.assert_allclose([s.beta1 for s in rising], [1, 0.5, 0.7, 0.98], rtol=1e-15)


def test_every_kernel_line_follows_the_equations() -> None:
    """A short run for the uncompiled kernels."""
    reading = Reading(limits="reflect", step="sampled", descent_scale="normalized")
    run_with_reference(
        optimizer(3, reading, x0=np.ones(3), population_size=6), sphere, 1e-9, generations=3
    )


def test_identical_individuals_do_no_harm() -> None:
    opt = optimizer()
    for _ in range(3):
        opt.tell(np.full(opt.ask().shape, 0.3), np.zeros(len(opt.ask())))
        state = opt.state
        assert np.all(state.std < 1e-15)
        np.testing.assert_array_equal([state.path, state.descent], 0)
        assert (state.descent_mean, state.descent_std) == (0, 0)
    assert opt.stop() == {"sigma_min_at_start": opt.step_sizes[0]}


@pytest.mark.compiled
@pytest.mark.parametrize(
    ("reading", "limit"),
    [
        (Reading(), math.sqrt(13)),
        (Reading(convergence="unscaled"), 1),
        (Reading(sigma_norm="spectral"), math.sqrt(13)),
    ],
)
def test_the_search_stops_below_sigma_min(reading: Reading, limit: float) -> None:
    opt = optimizer(reading=reading)
    run_states(opt, sphere, 2)
    norm = (
        np.linalg.norm(opt.state.std) if reading.sigma_norm == "euclidean" else opt.state.std.max()
    )
    for factor, stops in ((1 + 1e-9, True), (1 - 1e-9, False)):
        opt.sigma_min = float(norm / limit * factor)
        assert (list(opt.stop()) == ["sigma_min"]) is stops


@pytest.mark.compiled
@pytest.mark.parametrize("start", ["bounds", "x0"])
def test_a_generation_makes_nothing_of_the_length_of_a_vector(start: str) -> None:
    n = 100_000
    given: dict[str, Any] = (
        {"x0": np.zeros(n)} if start == "x0" else {"n_var": n, "bounds": (-1, 1)}
    )
    opt = LEAMVD(**given, dtype="float32", seed=1)
    whole = len(pickle.dumps(opt))
    opt.tell(opt.ask(), np.arange(24.0))
    assert len(pickle.dumps(opt)) == pytest.approx(
        whole - (2 if start == "bounds" else 1) * 4 * n, abs=n
    ), "x0, limits"
    opt.tell(opt.ask(), np.arange(20.0))  # loads what is compiled
    tracemalloc.start()
    try:
        for _ in range(3):
            opt.tell(opt.ask(), np.arange(20.0))
        assert tracemalloc.get_traced_memory()[1] < n
    finally:
        tracemalloc.stop()


@pytest.mark.compiled
def test_only_the_order_of_values_matters() -> None:
    plain = run_states(optimizer(), rosenbrock)
    warped = run_states(optimizer(), lambda X: np.cbrt(rosenbrock(X)) * 1e-6 + 5)
    assert all(same(a, b, but=("fitness",)) for a, b in zip(plain, warped, strict=True))


# ---- states, and what is told


def test_a_state_is_a_read_only_copy_and_there_after_tell_only() -> None:
    opt = optimizer(reading=Reading(reset="initial"))
    ref = Reference(opt.n_var, opt.seed, opt.reading)
    for _ in range(2):
        with pytest.raises(
            RuntimeError, match=r"state is defined after tell\(\) and before the next ask\(\)"
        ):
            _ = opt.state
        X = opt.ask()
        opt.tell(X, sphere(X))
        ref.tell(X, sphere(X))
        for array in filter(np.ndim, opt.state):
            array[:] = 0
        for ours, theirs in (FIELDS | {"initial_std": "first_std"}).items():
            np.testing.assert_allclose(
                getattr(opt.state, ours), getattr(ref, theirs), rtol=1e-9, atol=1e-9
            )
        with pytest.raises(AttributeError):
            opt.state = opt.state  # type: ignore[misc]
        opt.ask()


def test_what_is_told_becomes_the_population() -> None:
    """Candidates, an equal copy of them, repaired ones and lists are all welcome; the caller's
    array stays his.
    """
    own, copied, repaired = (optimizer() for _ in range(3))
    for opt in (own, copied):
        X = opt.ask() if opt is own else opt.ask().copy()
        opt.tell(X, sphere(X))
    assert same(own.state, copied.state)
    X = np.abs(repaired.ask())
    before = X.copy()
    repaired.tell(X.tolist(), sphere(X).tolist())
    np.testing.assert_array_equal(repaired.state.population, X[np.argsort(sphere(X))])
    np.testing.assert_array_equal(X, before)
    reversed_ = repaired.ask()[::-1]  # overlaps the population itself
    expected = reversed_.copy()
    repaired.tell(reversed_, -np.arange(1.0, 21.0))
    np.testing.assert_array_equal(repaired.state.population[:20], expected[::-1])


# ---- whatever is given

READINGS = st.builds(
    Reading,
    exponent=st.floats(0, 4),
    perturbation_share=st.floats(1e-6, 1),
    reset=st.sampled_from(["initial", "off"]) | st.floats(0.01, 2),
    x0_in_population=st.booleans(),
    **{name: st.sampled_from(options) for name, options in CHOICES.items()},
)
SIDES = arrays(np.float64, (2, 4), elements=st.floats(-1e6, 1e6))
DTYPES = st.sampled_from(["float64", "float32"])


@pytest.mark.compiled
@given(
    sides=SIDES,
    dtype=DTYPES,
    limits=st.sampled_from(["clip", "reflect"]),
    at=st.sampled_from([None, 0.0, 0.5, 1.0]),
)
def test_no_point_lies_outside_the_bounds_that_are_given(
    sides: Any, dtype: str, limits: Any, at: float | None
) -> None:
    """In double precision, also where single precision cannot hold them."""
    low, high = np.sort(sides, axis=0)
    # a number of single precision between
    high = np.maximum(high, low + np.maximum(1e-6, 1e-6 * abs(low)))
    x0 = None if at is None else np.clip((1 - at) * low + at * high, low, high)
    options: dict[str, Any] = {
        "n_var": 4,
        "bounds": (low, high),
        "sigma0": 1e5,
        "dtype": dtype,
        "seed": 1,
    }
    for opt in (LEAMVD(x0, **options, reading=Reading(limits=limits)), RandomSearch(x0, **options)):
        for _ in range(4):
            X = opt.ask()
            assert X.dtype == dtype
            assert np.all((low <= X.astype(np.float64)) & (X.astype(np.float64) <= high))
            opt.tell(X, -X.sum(axis=1, dtype=np.float64))


@pytest.mark.compiled
@settings(max_examples=30)
@given(reading=READINGS, seed=st.integers(0, 2**64 - 1), stagnating=st.booleans())
def test_any_reading_follows_the_equations(reading: Reading, seed: int, stagnating: bool) -> None:
    opt = LEAMVD(np.linspace(-0.8, 0.8, 7), bounds=(-1, 1), seed=seed, reading=reading)
    fun = (lambda X: np.floor(sphere(X))) if stagnating else rastrigin
    run_with_reference(opt, fun, 1e-9, generations=13)


# ---- as before


KNOWN = json.loads((Path(__file__).parent / "known_searches.json").read_text(encoding="utf-8"))
"""The best values after 15 generations as they were when the preset changed, by options that are
not the default's.
"""


@pytest.mark.compiled
@pytest.mark.parametrize("option", KNOWN)
def test_searches_end_as_they_did_before(option: str) -> None:
    name, _, text = option.partition("=")
    value = next(value for change in CHANGES for value in [change.get(name)] if str(value) == text)
    opt = LEAMVD(
        np.linspace(-0.8, 0.8, 9), bounds=(-1, 1), seed=5, reading=Reading(**{name: value})
    )
    assert run_states(opt, rosenbrock, 15)[-1].fitness[0] == pytest.approx(KNOWN[option], rel=1e-6)
