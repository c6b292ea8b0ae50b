"""Regenerating the population (Sec. 3.4), and the first one: one write of every new row, no
temporary of their size.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numba import prange

from leamvd._support.compile import Floats, Integers, Words, kernel
from leamvd.optimizers import random_streams
from leamvd.optimizers.directions import CHUNK, RATE, Vectors, path_columns
from leamvd.optimizers.random_streams import TILE

LIMITS = ("first", "clip", "reflect")  # what search limits do to a new individual (item R15)
PERTURBATIONS = ("entry", "column", "off", "added")  # what the perturbation is (item R17)
_FIRST = LIMITS.index("first")
_REFLECT = LIMITS.index("reflect")
_COLUMN = PERTURBATIONS.index("column")
_OFF = PERTURBATIONS.index("off")
_ADDED = PERTURBATIONS.index("added")
# counter blocks drawn at a time for the perturbation: two hits each, some 20 are needed for a tile
_RUN = 16


class Place(NamedTuple):
    """Where in the random streams a generation is, and how its rows are finished."""

    seed: np.uint64
    generation: int
    perturbation: int  # index in PERTURBATIONS
    limits: int  # index in LIMITS
    log_unperturbed: float  # log(1 - share), of the entries that are perturbed


class Combination(NamedTuple):
    """C_ani = fresh C_hat + 0.9 C_ani(t - 1) with C_hat = sum_j a_j (x_1 - x_r_j) + p P, in the
    dtype of X.
    """

    ir: Integers  # (m,), the ranks r_j
    row_weights: Floats  # (m,), a
    path_weight: np.floating  # p
    fresh: np.floating


class Shift(NamedTuple):
    """beta_1 v in terms of P and C_ani, in the dtype of X."""

    path: np.floating  # beta_1 beta_2
    descent: Floats  # (new rows,): beta_1 (1 - beta_2) step


class Perturbation(NamedTuple):
    """Working memory for the perturbation of one tile; each thread makes its own with
    `perturbation`.
    """

    words: Words  # (4, _RUN)
    gaps: Integers  # (2, _RUN): columns between hits
    factors: Floats  # (2, _RUN), float64


@kernel()
def perturbation() -> Perturbation:
    """Return the working memory of `perturb`."""
    words: Words = np.empty((4, _RUN), np.uint32)
    return Perturbation(words, np.empty((2, _RUN), np.int64), np.empty((2, _RUN)))


@kernel()
def _draw_hits(place: Place, row: int, block: np.uint64, p: Perturbation) -> None:
    """Draw gaps and factors of the next hits, two from a counter block: P(gap >= g) is
    (1 - share)^g.
    """
    random_streams.words_run(
        place.seed, random_streams.PERTURBATION, place.generation, row, block, p.words
    )
    for half in range(2):
        word = p.words[2 * half]
        factor = p.words[2 * half + 1]
        gap = p.gaps[half]
        u = p.factors[half]
        for i in range(word.size):
            log_u = random_streams.log((np.float64(word[i]) + 1.0) * 2.0**-32)
            gap[i] = np.int64(log_u / place.log_unperturbed)
            u[i] = np.float64(factor[i]) * 2.0**-32 + 0.5


@kernel()
def perturb(x: Floats, place: Place, row: int, tile: int, p: Perturbation, step: Floats) -> None:
    """Multiply a share of x, the columns of one tile, by U(0.5, 1.5): the gaps between hits are
    geometric.

    Or add `step`, of each column or one for all, times U(-0.5, 0.5).
    """
    column = -1
    block = np.uint64(tile) * np.uint64(TILE)
    while True:
        _draw_hits(place, row, block, p)
        for i in range(2 * _RUN):
            half = i % 2
            at = i // 2
            column += 1 + p.gaps[half, at]
            if column >= x.size:
                return
            factor = p.factors[half, at]
            if place.perturbation == _ADDED:
                x[column] += step[min(column, step.size - 1)] * (factor - 1)
            else:
                x[column] *= factor
        block += np.uint64(_RUN)


@kernel()
def limited(x: Any, low: Any, high: Any, limits: int) -> Any:
    """Return x clipped to [low, high], or reflected at them until it lies inside."""
    y = x
    if limits == _REFLECT and not low <= x <= high:
        width = high - low
        if width == math.inf:  # an end is open
            end = low if x < low else high
            y = end + (end - x)
        elif width > 0:
            far = math.fabs(x - low) % (2 * width)
            if far > width:
                far = 2 * width - far
            y = low + far
    return min(max(y, low), high)


@kernel()
def limit(x: Floats, low: Floats, high: Floats, limits: int) -> None:
    """Do the same with all of x; nothing where limits shape the start only."""
    if limits == _FIRST:
        return
    for i in range(x.size):
        x[i] = limited(x[i], low[i], high[i], limits)


@kernel(inline=True)
def between(low: Any, high: Any, u: Any) -> Any:
    """Return low + (high - low) u, which could overflow, in another way; whatever is rounded, in
    between them.
    """
    return max(low, min(low * (1 - u) + high * u, high))


@kernel(inline=True)
def _normals(place: Place, row: int, tile: int, s: random_streams.Scratch) -> None:
    random_streams.normal_tile(place.seed, random_streams.NORMAL, place.generation, row, tile, s)


@kernel(parallel=CHUNK)
def uniform(X: Floats, low: Floats, high: Floats, place: Place) -> None:
    """Draw initialization (A): X_ri = low_i + (high_i - low_i) u, u ~ U(0, 1)."""
    n = X.shape[1]
    for c in prange((n + TILE - 1) // TILE):
        s = random_streams.scratch(X)
        start = c * TILE
        stop = min(n, start + TILE)
        for r in range(X.shape[0]):
            x = X[r, start:stop]
            random_streams.uniform_tile(
                place.seed, random_streams.UNIFORM, place.generation, r, c, s
            )
            a = low[start:stop]
            b = high[start:stop]
            for i in range(x.size):
                x[i] = between(a[i], b[i], s.numbers[i])


@kernel(parallel=CHUNK)
def normal(
    X: Floats, center: Floats, sigma0: np.floating, low: Floats, high: Floats, place: Place
) -> None:
    """Draw initialization (B): X_ri = center_i + sigma0 z, z ~ N(0, 1)."""
    n = X.shape[1]
    for c in prange((n + TILE - 1) // TILE):
        s = random_streams.scratch(X)
        start = c * TILE
        stop = min(n, start + TILE)
        for r in range(X.shape[0]):
            x = X[r, start:stop]
            _normals(place, r, c, s)
            middle = center[start:stop]
            for i in range(x.size):
                x[i] = middle[i] + sigma0 * s.numbers[i]
            a = low[start:stop]
            b = high[start:stop]
            limit(x, a, b, place.limits)


def initialize(
    X: Floats, x0: Floats | None, sigma0: float, low: Floats, high: Floats, place: Place
) -> None:
    """Draw the first population: (A) without a start solution, otherwise (B)."""
    if x0 is None:
        uniform(X, low, high, place)
    else:
        normal(X, x0, X.dtype.type(sigma0), low, high, place)


@kernel()
def descent_columns(
    X: Floats,
    order: Integers,
    combination: Combination,
    path: Floats,
    descent: Floats,
    start: int,
    out: Floats,
) -> None:
    """Write C_ani of the columns start, start + 1, ... to `out`: of P and of C_ani(t - 1) there."""
    stop = start + out.size
    best = X[order[0], start:stop]
    old = path.dtype.type(1 - RATE)
    ir, row_weights, path_weight, fresh = combination
    path_share = fresh * path_weight
    for i in range(out.size):
        out[i] = old * descent[i] + path_share * path[i]
    for j in range(ir.size):
        x = X[order[ir[j]], start:stop]
        weight = fresh * row_weights[j]
        for i in range(out.size):
            out[i] += weight * (best[i] - x[i])


# ---- a tile of a generation: kernels that are put into `regenerate`, which calls would slow down


class Work(NamedTuple):
    """Working memory for one tile of a population; each thread makes its own with `_work`."""

    scratch: random_streams.Scratch
    hits: Perturbation
    center: Floats  # (TILE,), as the next two
    path: Floats  # P
    descent: Floats  # C_ani
    elite: Floats  # (elites, TILE)


@kernel(inline=True)
def _work(X: Floats, n_new: int) -> Work:
    dtype = X.dtype
    center = np.empty(TILE, dtype)
    path = np.empty(TILE, dtype)
    descent = np.empty(TILE, dtype)
    elite = np.empty((len(X) - n_new, TILE), dtype)
    return Work(random_streams.scratch(X), perturbation(), center, path, descent, elite)


@kernel(inline=True)
def _update(
    X: Floats,
    order: Integers,
    vectors: Vectors,
    combination: Combination,
    shift: Shift,
    start: int,
    stop: int,
    work: Work,
) -> None:
    """Bring P, C_ani and x_best of the columns start..stop up to date, and leave in `work` what new
    rows need.
    """
    P = work.path[: stop - start]
    C = work.descent[: stop - start]
    best = X[order[0], start:stop]
    previous = vectors.previous[start:stop]
    path = vectors.path[start:stop]
    descent = vectors.descent[start:stop]
    path_columns(best, previous, path, P)
    descent_columns(X, order, combination, P, descent, start, C)
    mean = vectors.mean[start:stop]
    center = work.center
    for i in range(mean.size):
        path[i] = P[i]
        descent[i] = C[i]
        previous[i] = best[i]
        center[i] = mean[i] + shift.path * P[i]


@kernel(inline=True)
def _move_elites(X: Floats, order: Integers, start: int, stop: int, elite: Floats) -> None:
    """Move the columns start..stop of the elites to the front, in their order."""
    width = stop - start
    for k in range(len(elite)):
        if order[k] != k:
            elite[k, :width] = X[order[k], start:stop]
    for k in range(len(elite)):
        if order[k] != k:
            X[k, start:stop] = elite[k, :width]


@kernel(inline=True)
def _draw_rows(
    X: Floats,
    sigma: Floats,
    shift: Shift,
    low: Floats,
    high: Floats,
    unit: Floats,
    place: Place,
    start: int,
    work: Work,
) -> None:
    """Write the new rows' columns of the tile that begins at `start`; the vectors are of these
    columns.
    """
    size = len(X)
    n_elite = size - shift.descent.size
    tile = start // TILE
    # unpacked once a tile: a look into `work` for each row takes 5 % longer
    s, hits, center, _, C, _ = work
    z = s.numbers
    for row in range(n_elite, size):
        x = X[row, start : start + sigma.size]
        step = shift.descent[row - n_elite]
        _normals(place, row, tile, s)
        for i in range(x.size):
            x[i] = z[i] * sigma[i] + (center[i] + step * C[i])
        if place.perturbation != _OFF:
            drawn_row = size if place.perturbation == _COLUMN else row
            perturb(x, place, drawn_row, tile, hits, unit)
        limit(x, low, high, place.limits)


@kernel(parallel=CHUNK)
def regenerate(
    X: Floats,
    order: Integers,
    vectors: Vectors,
    combination: Combination,
    shift: Shift,
    low: Floats,
    high: Floats,
    added: Floats,
    place: Place,
    drawn: Integers,
) -> None:
    """Write the rows that are not elites anew, move the elites to the front, and bring P, C_ani and
    x_best up to date.

    x = (mu + sigma z + beta_1 v) factor with v = beta_2 P + (1 - beta_2) step C_ani (Eqs. of Sec.
    3.4); `added`, (n,) or (1,), is the unit of what is added in place of a factor. Elites end in
    their order, and `order` at 0, 1, 2, ...; `drawn` (1,) then holds the generation: no
    interruption comes between.
    """
    size, n = X.shape
    for c in prange((n + CHUNK - 1) // CHUNK):
        work = _work(X, shift.descent.size)
        for start in range(c * CHUNK, min(n, (c + 1) * CHUNK), TILE):
            stop = min(n, start + TILE)
            sigma = vectors.std[start:stop]
            unit = added if added.size == 1 else added[start:stop]
            a = low[start:stop]
            b = high[start:stop]
            _update(X, order, vectors, combination, shift, start, stop, work)
            _move_elites(X, order, start, stop, work.elite)
            _draw_rows(X, sigma, shift, a, b, unit, place, start, work)
    for k in range(size):
        order[k] = k
    drawn[0] = place.generation
