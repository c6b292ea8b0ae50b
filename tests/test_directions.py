from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import reference
from leamvd.optimizers import directions, selection
from leamvd.optimizers.directions import Products, Vectors

Array = NDArray[np.floating]
IR = np.array([3, 1, 7, 5])


def population(n: int, dtype: str = "float64") -> dict[str, Any]:
    """Return what `scan` takes: a population in mixed order, and the vectors of the generation
    before.
    """
    rng = np.random.default_rng(n)
    return {
        "X": rng.normal(size=(9, n)).astype(dtype),
        "order": rng.permutation(9),
        "weights": selection.fractional_tournament(9).astype(dtype),
        "ir": IR,
        "vectors": Vectors(*rng.normal(size=(5, n)).astype(dtype)),
    }


@pytest.mark.parametrize(
    "n",
    [1, 5, 1023, 1025, *(pytest.param(n, marks=pytest.mark.compiled) for n in (20_000, 600_001))],
)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 3e-5)])
def test_one_scan_yields_the_model_and_every_inner_product(
    n: int, dtype: str, tolerance: float
) -> None:
    """Of few columns and of more than 64 chunks; what is handed on is left as it is, so that a scan
    can be repeated.
    """
    a = population(n, dtype)
    before = [vector.copy() for vector in a["vectors"]]
    products = directions.scan(**a)
    best_first = a["X"][a["order"]].astype(np.float64)
    path, C, previous = (vector.astype(np.float64) for vector in before[2:])
    P = 0.1 * (best_first[0] - previous) + 0.9 * path
    weights = reference.esd(9, 1.5)
    mean = weights @ best_first
    std = np.sqrt(weights @ (best_first - mean) ** 2)
    np.testing.assert_allclose(a["vectors"].mean, mean, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(a["vectors"].std, std, rtol=tolerance)
    np.testing.assert_array_equal(a["vectors"][2:], before[2:])
    d = best_first - best_first[0]
    rows = d @ np.vstack([d[IR], P, C]).T
    want = Products(
        rows, P @ P, P @ C, C @ C, std @ std, std.max(), directions.RESOLUTION[np.dtype(dtype)]
    )
    for field in Products._fields:
        unit = (
            np.sqrt(P @ P * (C @ C))
            if field == "path_descent"
            else np.abs(getattr(want, field)).max()
        )
        np.testing.assert_allclose(
            getattr(products, field), getattr(want, field), rtol=0, atol=tolerance * unit
        )


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_path_is_an_average_of_steps_and_never_a_number_that_slows_arithmetic_down(
    dtype: str,
) -> None:
    """A thousand generations without a new best: in single precision its squares stay normal
    numbers, or are zero.
    """
    best, previous, path = np.random.default_rng(1).normal(size=(3, 200)).astype(dtype)
    expected, out = path.astype(np.float64), np.empty_like(path)
    for generation in range(1000):
        step = best.astype(np.float64) - (previous if generation == 0 else best)
        expected = 0.1 * step + 0.9 * expected
        directions.path_columns(best, previous if generation == 0 else best, path, out)
        path = out.copy()
        if dtype == "float32":
            assert not np.any((path != 0) & (np.square(path) < np.finfo(np.float32).tiny))
        tolerance = 1e-12 if dtype == "float64" else 1e-4
        large = np.abs(expected) > (0 if dtype == "float64" else 2.0**-62)
        np.testing.assert_allclose(path[large], expected[large], rtol=tolerance)
    assert np.any(path) == (dtype == "float64")


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rounding_alone_makes_no_direction(dtype: str, seed: int) -> None:
    """Where all columns of U are parallel to P except for rounding, C_ani only fades; one per cent
    is a direction.
    """
    n, rng = 5000, np.random.default_rng(seed)
    P = rng.normal(size=n)
    zero, ir, start = np.zeros(n, dtype), np.arange(1, 5), rng.normal(size=4)
    for noise in (0.0, 0.01):
        multiples = np.outer(rng.normal(size=4), P) + noise * rng.normal(size=(4, n))
        X = np.vstack([np.zeros(n), multiples]).astype(dtype)
        vectors = Vectors(zero.copy(), zero.copy(), (P / 7).astype(dtype), zero, zero.copy())
        products = directions.scan(X, np.arange(5), np.full(5, 0.2, dtype), ir, vectors)
        found = directions.descent(products, ir, start, oriented=True, fresh=0.1)
        assert found.row_weights.any() == (noise > 0)


def products_of(U: Array, P: Array, C: Array) -> Products:
    """Return the products of a population whose best is zero: the columns of U are minus the rows
    of X.
    """
    X = np.vstack([np.zeros(len(P)), -U.T])
    columns = np.vstack([X[1:], P, C])
    return Products(X @ columns.T, P @ P, P @ C, C @ C, 0.0, 0.0, 1e-14)


def vector(d: directions.Descent, U: Array, P: Array, C: Array) -> Array:
    return d.fresh * (U @ d.row_weights + d.path_weight * P) + 0.9 * C


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_c_ani_is_the_papers_power_method(scale: float) -> None:
    rng = np.random.default_rng(4)
    U, P, C = rng.normal(size=(12, 4)) * scale, rng.normal(size=12) * scale, rng.normal(size=12)
    ir = np.arange(1, 5)
    d = directions.descent(products_of(U, P, C), ir, rng.normal(size=4), oriented=True, fresh=0.1)
    c_hat = reference.power_method(U / scale, P / scale)
    c_hat *= np.sign((U.T @ c_hat).sum())
    got = vector(d, U, P, C)
    np.testing.assert_allclose(got, 0.1 * c_hat + 0.9 * C, rtol=0, atol=1e-12)
    np.testing.assert_allclose(d.projections, -U.T @ got, rtol=0, atol=1e-12 * scale)
    assert d.square == pytest.approx(got @ got, rel=1e-12)
    assert abs((got - 0.9 * C) @ P) < 1e-12 * scale


def test_the_power_method_keeps_what_it_cannot_tell_apart() -> None:
    for diagonal, start, expected in (
        ([2.0, 2, 1], [3.0, 4, 5], [0.6, 0.8, 0]),
        ([1.0, 0], [0.0, 2], [0, 1]),
    ):
        np.testing.assert_allclose(
            directions.power_method(np.diag(diagonal), np.array(start)), expected
        )


@pytest.mark.parametrize("case", ["identical", "parallel"])
def test_where_nothing_is_orthogonal_to_the_path_c_ani_only_fades(case: str) -> None:
    P, C = np.array([1.0, 2.0, 0.0]), np.array([0.0, 0.0, 1.0])
    U = np.zeros((3, 4)) if case == "identical" else np.outer(P, [1.0, -2.0, 3.0, 0.5])
    d = directions.descent(
        products_of(U, P, C), np.arange(1, 5), np.ones(4), oriented=True, fresh=0.1
    )
    np.testing.assert_allclose(vector(d, U, P, C), 0.9 * C, atol=1e-15)
    np.testing.assert_allclose(d.projections, -U.T @ (0.9 * C), atol=1e-15)
    assert d.square == pytest.approx(0.81)
