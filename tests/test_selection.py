import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from leamvd.optimizers import selection

sizes, exponents = st.integers(1, 60), st.floats(0, 20)


@given(sizes, exponents)
def test_weights_are_the_papers(size: int, exponent: float) -> None:
    weights = selection.fractional_tournament(size, exponent)
    np.testing.assert_allclose(weights, reference.esd(size, exponent), rtol=1e-12)
    assert weights.sum() == pytest.approx(1, abs=1e-14)
    assert np.all(np.diff(weights) <= 0)


def test_default_exponent_is_the_papers() -> None:
    np.testing.assert_array_equal(
        selection.fractional_tournament(24), selection.fractional_tournament(24, 1.5)
    )


def test_limiting_exponents() -> None:
    np.testing.assert_allclose(selection.fractional_tournament(7, 0), np.full(7, 1 / 7), rtol=1e-15)
    np.testing.assert_allclose(
        selection.fractional_tournament(7, 1), np.arange(7, 0, -1) / 28, rtol=1e-15
    )
    np.testing.assert_allclose(
        selection.fractional_tournament(7, 1e4), [1, 0, 0, 0, 0, 0, 0], atol=1e-12
    )
    assert selection.fractional_tournament(1, 3) == 1


@pytest.mark.parametrize("size", [1, 2, 3])
def test_tournaments_by_counting_every_draw(size: int) -> None:
    winners = [min(entrants) for entrants in itertools.product(range(5), repeat=size)]
    expected = np.bincount(winners, minlength=5) / 5**size
    np.testing.assert_allclose(selection.tournament(5, size), expected, rtol=1e-14)


@pytest.mark.parametrize(
    ("dtype", "tolerance", "scale"),
    [
        ("float64", 1e-13, 1e-30),
        ("float64", 1e-13, 1.0),
        ("float64", 1e-13, 1e30),
        ("float32", 1e-5, 1.0),
    ],
)
def test_mean_and_std_are_the_papers(dtype: str, tolerance: float, scale: float) -> None:
    X = np.random.default_rng(1).normal(3, 1, (11, 40)).astype(dtype) * np.dtype(dtype).type(scale)
    G = reference.esd(11, 1.5)
    mean, std = selection.mean_and_std(X, G)
    assert mean.dtype == std.dtype == dtype
    for ours, theirs in zip((mean, std), reference.mean_std(X.astype(np.float64), G), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance)
    assert np.all(
        selection.mean_and_std(np.full((6, 3), 0.1), reference.esd(6, 1.5))[1] <= 1e-16
    ), "identical rows"
