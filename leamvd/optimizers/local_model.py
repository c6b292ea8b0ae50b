"""What a search can find around a start solution, by two numbers that anyone can measure: no
derivatives, a few pairs.

Pairs x0 + sigma z and x0 - sigma z, z ~ N(0, I), are evaluated. To second order, half the
difference of a pair's values is sigma g'z, whose standard deviation is sigma norm(g); half their
sum, less f(x0), is sigma^2 z'Hz / 2, whose mean is sigma^2 tr(H) / 2. The theory of weighted
recombination takes z'Hz for its mean: then an isotropic step changes f by sigma norm(g) N + sigma^2
tr(H) / 2 with a normal N (Arnold 2005; Akimoto, Auger and Hansen 2020).
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from leamvd._support import checks
from leamvd._support.compile import Array, Floats
from leamvd.optimizers import random_streams

BATCH = 24  # points evaluated at a time: a population
# where normal densities are summed: exact to rounding by the trapezoidal rule
_GRID = np.linspace(-10, 10, 4001)


class LocalModel(NamedTuple):
    """Slope and curvature of an objective around a point, as seen at one step size."""

    sigma: float
    n_pairs: int
    value: float  # f(x0)
    slope: float  # norm(g)
    curvature: float  # tr(H)
    scatter: float  # standard deviation of z'Hz, which the theory takes for zero
    lower: float  # share of the 2 n_pairs points whose value is below f(x0)

    def step_size(self, population_size: int) -> float:
        """Return sigma* = 2 E[N_(lambda:lambda)] norm(g) / tr(H): there half of all generations
        gain.

        Infinite where the curvature is not above zero: then every step size gains.
        """
        size = checks.integer("population_size", population_size, at_least=1)
        largest = _expected(size, size)
        return float(2 * largest * self.slope / self.curvature) if self.curvature > 0 else math.inf

    def gain(self, factor: float) -> float:
        """Return factor norm(g)^2 / (2 tr(H)), the fall that a generation can expect at most by its
        `quality`.
        """
        return (
            float(factor * self.slope**2 / (2 * self.curvature)) if self.curvature > 0 else math.inf
        )


def measure(
    objective: Callable[[Array], Array],
    x0: ArrayLike,
    *,
    sigma: float,
    n_pairs: int = 30,
    seed: int = 0,
) -> LocalModel:
    """Measure slope and curvature of an objective around a point.

    Parameters
    ----------
    objective : callable
        Takes points, shape (m, n), and returns their values, shape (m,).
    x0 : array_like, shape (n,)
        The point; its dtype is that of the points. Where a value around it is not finite, slope and
        curvature are not.
    sigma : float
        Standard deviation of the steps, above 0.
    n_pairs : int
        At least 2; so many pairs are evaluated, and x0 once.
    seed : int
        In [0, 2**64). One seed has the same directions at every step size.

    Returns
    -------
    LocalModel
    """
    given = np.asarray(x0)
    dtype = checks.precision(given)
    point = checks.array("x0", given, shape=(None,), dtype=dtype)
    sigma = checks.real("sigma", sigma, above=0)
    n_pairs = checks.integer("n_pairs", n_pairs, at_least=2)
    seed = checks.integer("seed", seed, at_least=0)
    rng = np.random.default_rng(random_streams.child(seed, random_streams.PAIRS))
    value = float(objective(point[None])[0])
    above = np.empty(n_pairs)
    below = np.empty(n_pairs)
    for first in range(0, n_pairs, BATCH // 2):
        batch = slice(first, min(first + BATCH // 2, n_pairs))
        steps = dtype(sigma) * rng.standard_normal((batch.stop - first, len(point)), dtype)
        values = objective(np.concatenate([point + steps, point - steps]))
        above[batch], below[batch] = np.split(np.asarray(values, np.float64), 2)
    with np.errstate(over="ignore", invalid="ignore"):
        odd = (above - below) / 2
        even = (above + below) / 2 - value
        lower = np.concatenate([even + odd, even - odd]) < 0
        quadratic = 2 * even / sigma**2  # z'Hz
        slope = float(np.sqrt(np.mean(odd**2)) / sigma)
        curvature = float(quadratic.mean())
        scatter = float(quadratic.std(ddof=1))
    return LocalModel(sigma, n_pairs, value, slope, curvature, scatter, float(lower.mean()))


def order_statistics(population_size: int) -> Floats:
    """Return the expected values of so many draws from N(0, 1) in ascending order, shape
    (population_size,).
    """
    size = checks.integer("population_size", population_size, at_least=1)
    return np.array([_expected(rank, size) for rank in range(1, size + 1)])


def _expected(rank: int, size: int) -> float:
    """Return the expected value of one of so many draws from N(0, 1), the
    smallest having rank 1.
    """
    above = size - rank
    logs = (rank - 1) * special.log_ndtr(_GRID) + above * special.log_ndtr(-_GRID)
    logs -= _GRID**2 / 2
    densities = np.exp(logs - special.betaln(rank, above + 1)) / np.sqrt(2 * np.pi)
    return float((densities * _GRID).sum() * (_GRID[1] - _GRID[0]))


def quality(weights: ArrayLike) -> float:
    """Return kappa^2 mu_w: a generation of weighted recombination gains at most this times
    norm(g)^2 / (2 tr(H)).

    kappa is the sum of weights times expected values of ordered draws from N(0, 1), and mu_w the
    effective number of individuals, 1 / sum w^2.

    Parameters
    ----------
    weights : array_like, shape (population_size,)
        Best individual first; their scale does not matter.
    """
    w = checks.array("weights", weights, shape=(None,), dtype=np.float64)
    return float((w @ order_statistics(len(w))) ** 2 / (w @ w))
