"""Properties that hold whatever is given: bounds, states, and readings against the reference."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from problems import rastrigin, sphere
from test_lea_mvd import CHOICES, run_states, run_with_reference, same

from leamvd import LEAMVD, Reading
from leamvd.optimizers.random_search import RandomSearch

READINGS = st.builds(
    Reading,
    exponent=st.floats(0, 4),
    reset=st.sampled_from(["initial", "off"]) | st.floats(0.01, 2),
    x0_in_population=st.booleans(),
    **{name: st.sampled_from(options) for name, options in CHOICES.items()},
)
N = 4
SIDES = arrays(np.float64, (2, N), elements=st.floats(-1e6, 1e6))
DTYPES = st.sampled_from(["float64", "float32"])


@pytest.mark.compiled
@settings(deadline=None)
@given(
    sides=SIDES, dtype=DTYPES, limits=st.sampled_from(["clip", "reflect"]), at=st.sampled_from([None, 0.0, 0.5, 1.0])
)
def test_no_point_lies_outside_the_bounds_that_are_given(sides: Any, dtype: str, limits: Any, at: float | None) -> None:
    """In double precision, also where single precision cannot hold them."""
    low, high = np.sort(sides, axis=0)
    high = np.maximum(high, low + np.maximum(1e-6, 1e-6 * abs(low)))  # a number of single precision between
    x0 = None if at is None else np.clip((1 - at) * low + at * high, low, high)
    options: dict[str, Any] = {"n_var": N, "bounds": (low, high), "sigma0": 1e5, "dtype": dtype, "seed": 1}
    for opt in (LEAMVD(x0, **options, reading=Reading(limits=limits)), RandomSearch(x0, **options)):
        for _ in range(4):
            X = opt.ask()
            assert X.dtype == dtype
            assert np.all((low <= X.astype(np.float64)) & (X.astype(np.float64) <= high))
            opt.tell(X, -X.sum(axis=1, dtype=np.float64))


@pytest.mark.compiled
@settings(deadline=None, max_examples=50)
@given(reading=READINGS, dtype=DTYPES, seed=st.integers(0, 2**64 - 1), generations=st.integers(1, 14))
def test_a_state_that_is_stored_and_set_goes_on_as_if_nothing_had_been(
    reading: Reading, dtype: str, seed: int, generations: int
) -> None:
    def coarse(X: Any) -> Any:  # stagnates, and is reset
        return np.floor(sphere(X.astype(np.float64)))

    options: dict[str, Any] = {"bounds": (-2, 2), "seed": seed, "dtype": dtype, "reading": reading}
    opt, twin = (LEAMVD(np.linspace(-1, 1, N), **options) for _ in range(2))
    run_states(opt, coarse, generations)
    twin.state = pickle.loads(pickle.dumps(opt.state))
    assert same(twin.state, opt.state)
    for a, b in zip(run_states(opt, coarse, 3), run_states(twin, coarse, 3), strict=True):
        assert same(a, b)


@pytest.mark.compiled
@settings(deadline=None, max_examples=30)
@given(reading=READINGS, seed=st.integers(0, 2**64 - 1), stagnating=st.booleans())
def test_any_reading_follows_the_equations(reading: Reading, seed: int, stagnating: bool) -> None:
    opt = LEAMVD(np.linspace(-0.8, 0.8, 7), bounds=(-1, 1), seed=seed, reading=reading)
    fun = (lambda X: np.floor(sphere(X))) if stagnating else rastrigin
    run_with_reference(opt, fun, 1e-9, generations=13)
