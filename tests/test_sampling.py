"""Statistical tests run on fixed seeds; a correct sampler would fail each with probability below
1e-6.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import reference
from leamvd.optimizers import sampling
from leamvd.optimizers.directions import Vectors
from leamvd.optimizers.sampling import LIMITS, PERTURBATIONS, Combination, Place, Shift

Array = NDArray[np.floating]
SEED = 7
compiled = pytest.mark.compiled


def place(limits: str = "first", perturbation: str = "entry", generation: int = 2) -> Place:
    indices = PERTURBATIONS.index(perturbation), LIMITS.index(limits)
    return Place(np.uint64(SEED), generation, *indices, np.log(0.98))


def regenerated(
    n: int, rows: int = 20, n_elite: int = 4, limits: str = "first", **given: Any
) -> dict[str, Any]:
    """Return what `regenerate` was called with, after it; by default it samples standard normals,
    perturbed.
    """
    zero = np.zeros(n)
    a: dict[str, Any] = {
        "X": np.zeros((n_elite + rows, n)),
        "order": np.arange(n_elite + rows),
        "combination": Combination(np.array([1, 2]), np.zeros(2), np.float64(0), np.float64(0)),
        "shift": Shift(np.float64(0), np.zeros(rows)),
        "mean": zero,
        "std": np.ones(n),
        "path": zero.copy(),
        "descent": zero.copy(),
        "previous": zero.copy(),
        "perturbation": "entry",
        "added": np.ones(1),
        "drawn": np.zeros(1, np.int64),
    } | given
    vectors = Vectors(*(a[name] for name in Vectors._fields))
    low, high, last = (
        np.full(n, -1.0),
        np.full(n, 2.0),
        (place(limits, a["perturbation"]), a["drawn"]),
    )
    sampling.regenerate(
        a["X"], a["order"], vectors, a["combination"], a["shift"], low, high, a["added"], *last
    )
    return a


@pytest.mark.parametrize("generation", [1, 2])
@pytest.mark.parametrize("n", [1, 1500])
def test_initialization_a_is_uniform_between_the_limits(n: int, generation: int) -> None:
    X, low, high = np.empty((3, n)), np.linspace(-2, -1, n), np.linspace(-1, 5, n)
    sampling.uniform(X, low, high, place(generation=generation))
    for row, x in enumerate(X):
        np.testing.assert_allclose(
            x, low + (high - low) * reference.uniforms(SEED, generation, row, n), atol=1e-14
        )
        assert np.all((x >= low) & (x <= high))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_initialization_a_stays_between_limits_however_near_or_far(dtype: str) -> None:
    """Rounding neither leaves limits that are equal or a rounding apart, nor overflows between the
    largest numbers.
    """
    low = np.random.default_rng(1).uniform(-1, 1, 3000).astype(dtype)
    largest = np.finfo(dtype).max
    limits = [
        (low, low),
        (low, np.nextafter(low, 2)),
        (np.full_like(low, -largest), np.full_like(low, largest)),
    ]
    for below, above in limits:
        X = np.empty((24, 3000), dtype)
        sampling.uniform(X, below, above, place())
        assert np.all((below <= X) & (above >= X))
    assert X.min() < -0.9 * largest
    assert X.max() > 0.9 * largest


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("n", [1, 1500])
def test_initialization_b_is_normal_around_the_start_solution(n: int, dtype: str) -> None:
    X, center = np.empty((3, n), dtype), np.linspace(-2, 2, n).astype(dtype)
    sampling.normal(X, center, X.dtype.type(0.1), center, center, place(generation=1))
    for row, x in enumerate(X):
        z = reference.normals(SEED, 1, row, n, dtype=dtype)
        np.testing.assert_allclose(x, center + 0.1 * z, atol=8 * np.finfo(dtype).eps)


@pytest.mark.parametrize("perturbation", [*PERTURBATIONS, "added to each"])
@pytest.mark.parametrize("fresh", [0.1, 1.0])
@pytest.mark.parametrize("n", [3, 1500])
def test_new_rows_are_mean_plus_sigma_z_plus_shift_and_perturbed(
    n: int, fresh: float, perturbation: str
) -> None:
    """P and C_ani are brought up to date on the way."""
    rng = np.random.default_rng(n)
    mean, std, path, descent, previous = rng.normal(size=(5, n))
    std, steps, old, order = (
        np.abs(std),
        rng.normal(size=20),
        rng.normal(size=(24, n)),
        rng.permutation(24),
    )
    best, second, third = old[order[:3]]
    P = 0.1 * (best - previous) + 0.9 * path
    C = 0.9 * descent + fresh * (0.5 * (best - second) - 2 * (best - third) + 0.7 * P)
    given = {
        "mean": mean,
        "std": std,
        "path": path.copy(),
        "descent": descent.copy(),
        "previous": previous,
    }
    weights = Combination(
        np.array([1, 2]), np.array([0.5, -2.0]), np.float64(0.7), np.float64(fresh)
    )
    shift = Shift(np.float64(0.3), steps)
    given |= {"X": old.copy(), "order": order.copy(), "combination": weights, "shift": shift}
    added = rng.random(n) if perturbation == "added to each" else np.array([0.3])
    a = regenerated(n, **given, perturbation=perturbation.partition(" ")[0], added=added)
    np.testing.assert_allclose(a["path"], P, atol=1e-13)
    np.testing.assert_allclose(a["descent"], C, atol=1e-13)
    np.testing.assert_array_equal(a["previous"], best)
    np.testing.assert_array_equal(a["X"][:4], old[order[:4]])
    np.testing.assert_array_equal(a["order"], np.arange(24))
    assert a["drawn"] == 2
    for r in range(20):
        factors = reference.factors(SEED, 2, 24 if perturbation == "column" else 4 + r, n)
        x = std * reference.normals(SEED, 2, 4 + r, n) + mean + 0.3 * P + steps[r] * C
        if perturbation.startswith("added"):
            x = x + added * (factors - 1)
        elif perturbation != "off":
            x = x * factors
        np.testing.assert_allclose(a["X"][4 + r], x, atol=1e-13)


@compiled
def test_two_per_cent_of_the_entries_are_scaled_by_a_uniform_factor() -> None:
    n = 50_000
    factors = regenerated(n, mean=np.ones(n), std=np.zeros(n))["X"][4:]
    hit = factors != 1
    assert abs(hit.sum() - 0.02 * hit.size) < 5 * np.sqrt(0.02 * 0.98 * hit.size)
    assert stats.kstest(factors[hit], "uniform", args=(0.5, 1.0)).pvalue > 1e-6
    gaps = np.concatenate([np.diff(np.flatnonzero(row)) for row in hit])
    cells = np.bincount(np.minimum(gaps, 200), minlength=201)[1:]
    expected = 0.02 * 0.98 ** np.arange(200.0)
    expected[-1] = 0.98**199
    assert stats.chisquare(cells, expected * cells.sum()).pvalue > 1e-6
    columns = hit.reshape(20, -1, 50).sum(axis=(0, 1))  # no place in a tile is favored
    assert stats.chisquare(columns).pvalue > 1e-6
    by_row = np.corrcoef(hit)[np.triu_indices(20, 1)]
    assert np.abs(by_row).max() * np.sqrt(hit.shape[1]) < 6


@pytest.mark.parametrize("limits", LIMITS)
def test_limits_are_kept_as_the_reading_says(limits: str) -> None:
    free = regenerated(300, std=np.full(300, 5.0))["X"][4:]
    X = regenerated(300, limits=limits, std=np.full(300, 5.0))["X"][4:]
    low, high = np.full(300, -1.0), np.full(300, 2.0)
    expected = [reference.keep_inside(x, low, high, limits) for x in free]
    np.testing.assert_allclose(X, expected, atol=1e-13)
    assert np.any(free > 2)
    assert np.any(free < -1)
    if limits == "first":
        np.testing.assert_array_equal(X, free)
        return
    assert X.min() >= -1
    assert X.max() <= 2
    inside = X[0].copy()
    sampling.limit(inside, low, high, LIMITS.index(limits))
    np.testing.assert_array_equal(inside, X[0])
    sampling.limit(inside, low, low, LIMITS.index(limits))
    np.testing.assert_array_equal(inside, low)
