"""Selection (Sec. 3.2): the empirical selection distribution and the normal
model that it weighs.
"""

import numpy as np
from numpy.typing import ArrayLike

from leamvd._support import checks
from leamvd._support.compile import Array, Floats, Integers, kernel


def fractional_tournament(population_size: int, exponent: float = 1.5) -> Array:
    """Return the weights G of the empirical selection distribution, best individual first (Eq. 1).

    G_k = (lambda - k + 1)^exponent / sum_j j^exponent for rank k = 1..lambda.

    Parameters
    ----------
    population_size : int
        lambda, at least 1.
    exponent : float
        At least 0: 0 selects nobody in particular, 1.5 is the paper's choice.

    Returns
    -------
    ndarray, shape (population_size,)
        Non-increasing weights that sum to 1.
    """
    size = checks.integer("population_size", population_size, at_least=1)
    power = checks.real("exponent", exponent, at_least=0)
    weights: Array = (np.arange(size, 0, -1) / size) ** power
    weights /= weights.sum()
    return weights


def tournament(population_size: int, size: int) -> Array:
    """Return the exact probabilities that a tournament is won by each rank, best individual first
    (item R19).

    `size` individuals are drawn with replacement and the best of them wins: rank k does with
    probability ((lambda - k + 1)^size - (lambda - k)^size) / lambda^size.

    Parameters
    ----------
    population_size : int
        lambda, at least 1.
    size : int
        Individuals in one tournament, at least 1. Two binary tournaments in a row are one of size
        4.

    Returns
    -------
    ndarray, shape (population_size,)
        Probabilities that sum to 1.
    """
    count = checks.integer("population_size", population_size, at_least=1)
    entrants = checks.integer("size", size, at_least=1)
    worse_or_equal = (np.arange(count, -1, -1) / count) ** entrants
    return worse_or_equal[:-1] - worse_or_equal[1:]


def mean_and_std(population: ArrayLike, weights: ArrayLike) -> tuple[Floats, Floats]:
    """Return the weighted mean and standard deviation of every variable (Eqs. 2 and 3).

    mu_i = sum_k G_k X_ki and sigma_i = sqrt(sum_k G_k (X_ki - mu_i)^2).

    Parameters
    ----------
    population : array_like, shape (population_size, n)
        Individuals, best first.
    weights : array_like, shape (population_size,)
        G, summing to 1.

    Returns
    -------
    mean, std : ndarray, shape (n,)
        In the dtype of the population (float32 stays float32).
    """
    given = np.asarray(population)
    X = checks.array("population", given, shape=(None, None), dtype=checks.precision(given))
    G = checks.array("weights", weights, shape=(len(X),), dtype=X.dtype)
    n = X.shape[1]
    mean = np.empty(n, X.dtype)
    std = np.empty(n, X.dtype)
    mean_std_columns(X, np.arange(len(X)), G, 0, n, mean, std)
    return mean, std


@kernel()
def mean_std_columns(
    X: Floats, order: Integers, G: Floats, start: int, stop: int, mean: Floats, std: Floats
) -> None:
    """Write mu and sigma of the columns start..stop; `order` names the rows of X best first."""
    mu = mean[start:stop]
    sigma = std[start:stop]
    mu[:] = 0
    sigma[:] = 0
    for k in range(order.size):
        x = X[order[k], start:stop]
        weight = G[k]
        for i in range(mu.size):
            mu[i] += weight * x[i]
    for k in range(order.size):
        x = X[order[k], start:stop]
        weight = G[k]
        for i in range(mu.size):
            # a name for the difference takes 5 % longer
            sigma[i] += weight * (x[i] - mu[i]) * (x[i] - mu[i])
    for i in range(sigma.size):
        sigma[i] = np.sqrt(sigma[i])
