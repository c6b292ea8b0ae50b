"""The main variance directions (Sec. 3.3): the path P, the descent C_ani, and the projections on
it.

One pass over the population yields the normal model and every inner product that the directions
need. All of them are built from differences d_k = x_k - x_1 to the best individual: the columns of
U are -d_k for the ranks in ir, so the power method runs on a matrix of abs(ir) x abs(ir) inner
products instead of on vectors of length n.

The pass leaves P and C_ani in memory as they were a generation before:
`leamvd.optimizers.sampling.regenerate` brings both up to date, in the pass that writes the new
individuals. A pass that is repeated gives the same numbers.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from leamvd._support.compile import Array, Floats, Integers, kernel
from leamvd.optimizers.random_streams import TILE
from leamvd.optimizers.selection import mean_std_columns

RATE = 0.1  # weight of the new direction; 1 - RATE of the old one (Sec. 3.3)

# Columns summed before partial sums meet: fixed, so that a sum has the same bits on any number of
# threads.
CHUNK = 8 * TILE

# The columns of U without P are rounding alone where their share of the squares is below this, by
# dtype.
RESOLUTION = {
    np.dtype(np.float32): 45 * float(np.finfo(np.float32).eps),
    np.dtype(np.float64): 1e-14,
}

# its square is the smallest number that float32 holds to full precision
_SMALLEST = np.float32(2.0**-63)


class Vectors(NamedTuple):
    """The vectors that generations are drawn from and hand on: arrays of shape (n,), written in
    place.
    """

    mean: Floats  # mu
    std: Floats  # sigma
    path: Floats  # P, of the generation before until this one's new individuals are written
    descent: Floats  # C_ani, as the path
    previous: Floats  # x_best of the generation before, as the path


class Products(NamedTuple):
    """Inner products of one generation, summed in double precision."""

    rows: Array  # (lambda, m + 2): <d_k, d_r> for r in ir, <d_k, P>, <d_k, C>
    path_path: float  # <P, P>
    path_descent: float  # <P, C>
    descent_descent: float  # <C, C>
    std_square: float  # ||sigma||^2
    std_max: float
    resolution: float  # of their dtype


class Descent(NamedTuple):
    """C_ani of one generation, as coefficients, and what the population's differences project to on
    it.
    """

    row_weights: Array  # (m,) of the columns x_1 - x_r of U in C_hat
    path_weight: float  # of P in C_hat
    fresh: float  # of C_hat in C_ani: RATE, or 1 in the first generation of one reading
    square: float  # <C_ani, C_ani>
    projections: Array  # (lambda - 1,) <x_k - x_1, C_ani>, k = 2..lambda
    mean: float  # of the projections
    std: float


@kernel(reassociate=True)
def _dot(a: Floats, b: Floats) -> float:
    """Return the inner product of two runs of the same length, summed in their own precision."""
    total: float = a[0] * b[0]
    for i in range(1, a.size):
        total += a[i] * b[i]
    return total


@kernel(reassociate=True)
def _project(x: Floats, y: Floats, best: Floats, basis: Floats, a: Array, b: Array) -> None:
    """Add the inner products of x - best and y - best with the six rows of `basis` to a and b, each
    of shape (6,).

    Sums are in the arrays' own precision. Two rows at a time, so that what is loaded is used twice.
    """
    b0 = basis[0]
    b1 = basis[1]
    b2 = basis[2]
    b3 = basis[3]
    b4 = basis[4]
    b5 = basis[5]
    p0 = p1 = p2 = p3 = p4 = p5 = q0 = q1 = q2 = q3 = q4 = q5 = x.dtype.type(0)
    for i in range(x.size):
        d = x[i] - best[i]
        e = y[i] - best[i]
        p0 += d * b0[i]
        p1 += d * b1[i]
        p2 += d * b2[i]
        p3 += d * b3[i]
        p4 += d * b4[i]
        p5 += d * b5[i]
        q0 += e * b0[i]
        q1 += e * b1[i]
        q2 += e * b2[i]
        q3 += e * b3[i]
        q4 += e * b4[i]
        q5 += e * b5[i]
    for total, sums in ((a, (p0, p1, p2, p3, p4, p5)), (b, (q0, q1, q2, q3, q4, q5))):
        for j in range(6):
            total[j] += sums[j]


@kernel(inline=True)
def path_entry(best: Any, previous: Any, path: Any) -> Any:
    """P = 0.1 (x_best - x_best of the generation before) + 0.9 P, in one column.

    In single precision a number whose square would be subnormal becomes zero. Hundreds of
    generations without a better best bring P there, and processors take a hundred times as long for
    numbers below the normal ones.
    """
    step = best - previous
    if isinstance(path, np.float32):  # decided when compiled
        entry = np.float32(RATE) * step + np.float32(1 - RATE) * path
        return entry if abs(entry) >= _SMALLEST else np.float32(0)
    return RATE * step + (1 - RATE) * path


@kernel()
def path_columns(best: Floats, previous: Floats, path: Floats, out: Floats) -> None:
    """Write P of the columns of one tile."""
    for i in range(path.size):
        out[i] = path_entry(best[i], previous[i], path[i])


@kernel()
def _differences(
    X: Floats, order: Integers, ir: Integers, vectors: Vectors, start: int, stop: int, basis: Floats
) -> None:
    """Write what population and vectors are projected on: d_r of the r in ir, up to four, then P
    and C.
    """
    width = stop - start
    best = X[order[0], start:stop]
    for j in range(ir.size):
        x = X[order[ir[j]], start:stop]
        d = basis[j]
        for i in range(width):
            d[i] = x[i] - best[i]
    path = vectors.path[start:stop]
    previous = vectors.previous[start:stop]
    path_columns(best, previous, path, basis[ir.size, :width])
    basis[ir.size + 1, :width] = vectors.descent[start:stop]


@kernel()
def _columns(
    X: Floats,
    order: Integers,
    ir: Integers,
    vectors: Vectors,
    start: int,
    stop: int,
    sums: Array,
    basis: Floats,
) -> None:
    """Sec. 3.3 for the columns start..stop of one tile, whose sigma is there; adds to `sums`
    (lambda + 3, 6).

    The columns of `sums` are for the rows of `basis`, see `_differences`.
    """
    _differences(X, order, ir, vectors, start, stop, basis)
    size = order.size
    best = X[order[0], start:stop]
    for k in range(1, size, 2):
        other = (k + 1) % size  # a last row that is alone goes with the best
        x = X[order[k], start:stop]
        y = X[order[other], start:stop]
        _project(x, y, best, basis, sums[k], sums[other])
    P = basis[ir.size, : best.size]
    C = basis[ir.size + 1, : best.size]
    sums[size, 0] += _dot(P, P)
    sums[size, 1] += _dot(P, C)
    sums[size + 1, 1] += _dot(C, C)
    sigma = vectors.std[start:stop]
    sums[size + 2, 0] += _dot(sigma, sigma)
    sums[size + 2, 1] = max(sums[size + 2, 1], np.float64(np.max(sigma)))


@kernel(parallel=CHUNK)
def _scan(X: Floats, order: Integers, G: Floats, ir: Integers, vectors: Vectors) -> Array:
    n = X.shape[1]
    chunks = (n + CHUNK - 1) // CHUNK
    sums = np.zeros((chunks, order.size + 3, 6))
    for c in prange(chunks):
        basis = np.zeros((6, TILE), X.dtype)
        first = c * CHUNK
        end = min(n, first + CHUNK)
        # Sec. 3.2, of a whole chunk: what is read first, and in longer runs, comes from memory in
        # less time
        mean_std_columns(X, order, G, first, end, vectors.mean, vectors.std)
        for start in range(first, end, TILE):
            _columns(X, order, ir, vectors, start, min(end, start + TILE), sums[c], basis)
    return _total(sums)


@kernel()
def _total(sums: Array) -> Array:
    """Add up the chunks one after the other; a parallel kernel would start its threads for each of
    these short sums.
    """
    std_max = np.max(sums[:, -1, 1])
    total: Array = sums[0]
    for c in range(1, len(sums)):
        total += sums[c]
    total[0] = 0.0  # d_1 is zero
    total[-1, 1] = std_max
    return total


def scan(X: Floats, order: Integers, weights: Floats, ir: Integers, vectors: Vectors) -> Products:
    """Estimate the normal model, and return the inner products for C_ani with this generation's P:
    one read of X.

    `order` (lambda,) has the rows of X (lambda, n) best first (ix), `weights` are G (Eq. 1) in X's
    dtype, and `ir` (m,) the ranks of the individuals in U, 0-based and not 0. Mean and std of
    `vectors` are written (Eqs. 2 and 3), the rest is read.
    """
    size = len(order)
    total = _scan(X, order, weights, ir, vectors)
    (path_path, path_descent), (_, descent_descent), (std_square, std_max) = total[
        size:, :2
    ].tolist()
    # contiguous for any number of ranks: kernels are compiled anew for another layout, for seconds
    rows = np.ascontiguousarray(total[:size, : len(ir) + 2])
    resolution = RESOLUTION[X.dtype]
    return Products(rows, path_path, path_descent, descent_descent, std_square, std_max, resolution)


@kernel()
def _times(A: Array, x: Array) -> Array:
    """Return A x: for matrices so small that a call of BLAS takes longer."""
    out = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            out[i] += A[i, j] * x[j]
    return out


@kernel()
def _sum_of_products(x: Array, y: Array) -> float:
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@kernel()
def power_method(matrix: Array, start: Array) -> Array:
    """Return the direction (m,) that repeated multiplication by a semidefinite matrix turns `start`
    to.

    The matrix (m, m) is squared until it has rank 1 to rounding, at most 40 times: 2^40 steps of
    the power method. With the inner products of vectors projected on the complement of P it is the
    paper's method, which removes the projection on P at each iteration, in coordinates of the
    columns of U. The direction has unit length; it is that of `start` (m,) where the matrix sends
    it to zero.
    """
    power = matrix / np.trace(matrix)
    squared = np.empty_like(power)
    for _ in range(40):
        for i in range(start.size):
            squared[i] = _times(power, power[i])  # of a symmetric matrix, rows are columns
        trace = np.trace(squared)  # the sum of squared eigenvalues, of eigenvalues that sum to 1
        power = squared / trace
        if trace > 1 - 1e-15:
            break
    out = _times(power, start)
    if _sum_of_products(out, out) == 0:
        out = start
    return out / math.sqrt(_sum_of_products(out, out))


def descent(
    products: Products,
    ir: Integers,
    start: Array,
    *,
    oriented: bool,
    fresh: float,
    orthogonal: bool = True,
) -> Descent:
    """Return C_ani = fresh C_hat + 0.9 C_ani(t - 1) in terms of U, P and the C_ani before, and the
    projections on it.

    C_hat is the unit vector on which the columns of U have the largest projections, orthogonal to P
    unless `orthogonal` says otherwise (C11); zero where they are all parallel to P (or all zero).
    `oriented` turns it so that the columns' summed projections on it are positive (R6). `start`
    (m,) begins the power method, in coordinates of U's columns; `fresh` is 0.1, or 1 (R8).
    """
    if not orthogonal:
        # projecting out a zero vector does nothing (R8)
        products = products._replace(path_path=0.0)
    a, p, square, projections = _combine(products, ir, start, oriented, fresh)
    return Descent(a, p, fresh, square, projections, *_mean_std(projections))


@kernel()
def _combine(
    products: Products, ir: Integers, start: Array, oriented: bool, fresh: float
) -> tuple[Array, float, float, Array]:
    """Return the first fields of `Descent`: row_weights, path_weight, square and projections."""
    rows = products.rows
    path_path = products.path_path
    m = ir.size
    old = 1 - RATE
    # U^T U, U^T P, U^T C(t - 1): u_j = -d_j
    gram = rows[ir][:, :m]
    path = -rows[ir, m]
    before = -rows[ir, m + 1]
    projected = gram - np.outer(path, path) / path_path if path_path > 0 else gram
    a = np.zeros(m)
    p = 0.0
    if np.trace(projected) > products.resolution * np.trace(gram):
        a = power_method(projected, start)
        image = _times(projected, a)
        square = _sum_of_products(a, image)
        a /= math.sqrt(square) if square > 0 else np.inf
        if oriented and image.sum() < 0:
            a = -a
        if path_path > 0:
            p = -_sum_of_products(path, a) / path_path
    new_square = fresh**2 if a.any() else 0.0  # of fresh C_hat
    overlap = _sum_of_products(before, a) + p * products.path_descent  # <C_hat, C(t - 1)>
    square = new_square + 2 * fresh * old * overlap + old**2 * products.descent_descent
    # <d_k, C_hat> = -sum_j a_j <d_k, d_j> + p <d_k, P>
    others = rows[1:]
    projections = others[:, m] * p - _times(others[:, :m], a)
    return a, p, square, fresh * projections + old * others[:, m + 1]


@kernel()
def _mean_std(values: Array) -> tuple[float, float]:
    mean = values.sum() / values.size
    squares = (values - mean) ** 2
    variance = squares.sum() / values.size
    return mean, variance**0.5
