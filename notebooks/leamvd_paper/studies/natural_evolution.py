"""Two natural evolution strategies that studies compare with, SNES and CR-FM-NES; the library has
neither.

A generation moves the parameters of a normal distribution along the natural gradient of what its
points are worth by their ranks. Both strategies need O(n) time and memory, and look at ranks alone.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq

from leamvd._support.compile import Array, Floats
from leamvd.optimizers import random_streams
from leamvd.optimizers.base import Optimizer


def usual_population_size(method: str, n_var: int) -> int:
    """Return the population size that a strategy is usually given: 4 + 3 ln n, for CR-FM-NES made
    even.
    """
    size = 4 + int(3 * math.log(n_var))
    if method == "cr-fm-nes":
        size += size % 2
    return size


def rank_weights(population_size: int) -> Array:
    """Return the weights (m,) of a population's points, best first: they fall to zero in its midst,
    and sum to 1.
    """
    ranks = np.arange(1, population_size + 1)
    weights = np.maximum(0, math.log(population_size / 2 + 1) - np.log(ranks))
    return np.asarray(weights / weights.sum())


class SNES(Optimizer):
    """Separable natural evolution strategy (Schaul, Glasmachers and Schmidhuber 2011), with their
    learning rates.

    Parameters
    ----------
    x0 : array_like, shape (n,)
        Start solution, the first mean.
    options
        `sigma0`, `population_size`, `n_gen`, `x0_in_population` and `seed`, as of `leamvd.LEAMVD`.
    """

    def __init__(self, x0: ArrayLike, **options: Any) -> None:
        super().__init__(x0, **options)
        self._mean = np.array(x0, self.dtype)
        self._std = np.full(self.n_var, self.sigma0)
        self._rng = generator(self.seed)

    def _sample(self) -> Floats:
        z = self._rng.standard_normal((self.population_size, self.n_var))
        return np.asarray(self._mean + self._std * z)

    def _learn(self, X: Floats, F: Array) -> None:
        z = ((X - self._mean) / self._std)[np.argsort(F, kind="stable")]
        utilities = rank_weights(len(z)) - 1 / len(z)
        rate = (3 + math.log(self.n_var)) / (5 * math.sqrt(self.n_var))
        self._mean = self._mean + self._std * (utilities @ z)
        self._std = self._std * np.exp(rate / 2 * (utilities @ (z**2 - 1)))


class CRFMNES(Optimizer):
    """CR-FM-NES (Nomura and Ono 2022): the covariance matrix is sigma^2 D (I + v v^T) D, with a
    diagonal D.

    Every second point of a generation mirrors another one. All values that are told are of feasible
    points.

    Parameters
    ----------
    x0 : array_like, shape (n,)
        Start solution, the first mean.
    population_size : int
        An even number.
    options
        `sigma0`, `n_gen`, `x0_in_population` and `seed`, as of `leamvd.LEAMVD`.
    """

    def __init__(self, x0: ArrayLike, *, population_size: int, **options: Any) -> None:
        super().__init__(x0, population_size=population_size, **options)
        if self.population_size % 2:
            raise ValueError(
                f"population_size must be even for CR-FM-NES, got {self.population_size}"
            )
        self._rng = generator(self.seed)
        self._mean = np.array(x0, self.dtype)
        self._sigma = self.sigma0
        self._d = np.ones(self.n_var)
        self._v = self._rng.standard_normal(self.n_var) / math.sqrt(self.n_var)
        self._path_sigma = np.zeros(self.n_var)
        self._path_c = np.zeros(self.n_var)

        n = self.n_var
        m = self.population_size
        self._weights = rank_weights(m)
        mu_eff = 1 / float(self._weights @ self._weights)
        self._mu_eff = mu_eff
        self._c_sigma = (mu_eff + 2) / (n + mu_eff + 5)
        self._c_c = (4 + mu_eff / n) / (n + 4 + 2 * mu_eff / n)
        self._c_1 = 2 / ((n + 1.3) ** 2 + mu_eff) * (n - 5) / 6
        # of N(0, I), expected
        self._normal_length = math.sqrt(n) * (1 - 1 / (4 * n) + 1 / (21 * n**2))
        # how much the distance of a point counts while the distribution moves
        a = brentq(lambda a: (1 + a**2) * math.exp(a**2 / 2) / 0.24 - 10 - n, 0, 10, xtol=1e-13)
        self._alpha = a * min(1, math.sqrt(m / n))
        # learning rates: of sigma while the distribution stagnates and converges, and of v and D
        self._eta_stagnant = math.tanh((0.024 * m + 0.7 * n + 20) / (n + 12))
        self._eta_converging = 2 * math.tanh((0.025 * m + 0.75 * n + 10) / (n + 4))
        points = min(0.02 * m, 3 * math.log(n))
        self._eta_b = math.tanh((points + 5) / (0.23 * n + 25))

    def _sample(self) -> Floats:
        half = self._rng.standard_normal((self.population_size // 2, self.n_var))
        z = np.concatenate([half, -half])
        length = float(np.linalg.norm(self._v))
        unit = self._v / length
        stretch = math.sqrt(1 + length**2) - 1
        y = z + stretch * np.outer(z @ unit, unit)
        return np.asarray(self._mean + self._sigma * self._d * y)

    def _learn(self, X: Floats, F: Array) -> None:
        n = self.n_var
        m = self.population_size
        X = X[np.argsort(F, kind="stable")]
        length = float(np.linalg.norm(self._v))
        unit = self._v / length
        y = (X - self._mean) / (self._sigma * self._d)
        shrinkage = 1 / math.sqrt(1 + length**2) - 1
        z = y + shrinkage * np.outer(y @ unit, unit)

        # the path of the mean says how the search is going
        utilities = self._weights - 1 / m
        kept = math.sqrt(self._c_sigma * (2 - self._c_sigma) * self._mu_eff)
        self._path_sigma = (1 - self._c_sigma) * self._path_sigma + kept * (utilities @ z)
        traveled = float(np.linalg.norm(self._path_sigma)) / self._normal_length
        if traveled >= 1:
            distant = self._weights * np.exp(self._alpha * np.linalg.norm(z, axis=1))
            utilities = distant / distant.sum() - 1 / m
            eta_sigma = 1.0
        elif traveled >= 0.1:
            eta_sigma = self._eta_stagnant
        else:
            eta_sigma = self._eta_converging

        step = utilities @ (X - self._mean)
        kept = math.sqrt(self._c_c * (2 - self._c_c) * self._mu_eff)
        self._path_c = (1 - self._c_c) * self._path_c + kept * step / self._sigma
        self._mean = self._mean + step

        # the last row is the path's, for the update of rank one
        s, t = natural_gradients(np.vstack([y, self._path_c / self._d]), length, unit)
        weights = np.append(self._eta_b * utilities, self._c_1)
        self._v = self._v + weights @ t / length
        d = self._d * (1 + weights @ s)
        log_volume = np.log(d).sum() + math.log(1 + float(self._v @ self._v)) / 2
        self._d = d / math.exp(log_volume / n)
        slope = float(utilities @ (z**2 - 1).sum(axis=1))
        self._sigma = self._sigma * math.exp(eta_sigma / 2 * slope / n)


def natural_gradients(Y: Array, length: float, unit: Array) -> tuple[Array, Array]:
    """Return the natural gradients by D, relative to D, and by v, times its length, of the
    log-likelihoods of points.

    Rows of `Y`, (m, n), are points over sigma and D; v has a length and a unit vector. The
    equations are those of the VD-CMA-ES (Akimoto, Auger and Hansen 2014), on which CR-FM-NES rests:
    its Fisher matrix is approximated so that its inverse has a closed form.
    """
    squared = length**2
    gamma = 1 + squared
    unit_squared = unit**2
    most = float(unit_squared.max())
    root = math.sqrt(squared**2 + (2 * gamma - math.sqrt(gamma)) / most)
    alpha = min(1.0, root / (2 + squared))
    b = 2 * alpha**2 - (1 - alpha**2) * squared**2 / gamma
    inverse = 1 / (2 - (b + 2 * alpha**2) * unit_squared)

    along = (Y @ unit)[:, None]
    t = along * Y - (along**2 + gamma) / 2 * unit
    s = Y**2 - squared / gamma * along * Y * unit - 1
    crossed = squared * (t @ unit)[:, None] * unit_squared
    s = s - alpha / gamma * ((2 + squared) * t * unit - crossed)
    scaled = inverse * unit_squared
    weight = b / (1 + b * float(unit_squared @ scaled))
    correction = weight * (s @ scaled)[:, None] * scaled
    s = inverse * s - correction
    crossed = (s @ unit_squared)[:, None] * unit
    t = t - alpha * ((2 + squared) * s * unit - crossed)
    return s, t


def generator(seed: int) -> np.random.Generator:
    """Return the generator of a strategy's normals, which the library's methods
    do not draw from.
    """
    return np.random.default_rng(random_streams.child(seed, random_streams.NATURAL_EVOLUTION))


CLASSES: dict[str, Callable[..., Optimizer]] = {"snes": SNES, "cr-fm-nes": CRFMNES}
METHODS = tuple(CLASSES)
