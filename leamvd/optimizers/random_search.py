"""Random search: the floor that any optimizer should stay above."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from leamvd._support import checks
from leamvd._support.compile import Array, Floats
from leamvd.optimizers import random_streams, sampling
from leamvd.optimizers.base import BoundsLike, Optimizer
from leamvd.optimizers.random_streams import SeedLike


class RandomSearch(Optimizer):
    """Draw every generation as LEA-MVD draws its first: N(x0, sigma0), or uniform in `bounds` where x0 is None.

    Parameters
    ----------
    x0 : array_like, shape (n,), optional
        Start solution, the center of every generation.
    n_var : int, optional
        n, where neither `x0` nor `bounds` tells it.
    bounds : scipy.optimize.Bounds, pair (low, high) of float or array_like, or n pairs (low_i, high_i), optional
        Search limits: of the uniform draw, and what is drawn around `x0` is clipped to.
    sigma0 : float
        Standard deviation around `x0`.
    population_size, n_gen : int
        Candidates a generation, and generations.
    x0_in_population : bool
        Whether `x0` itself is row 1 of the first generation.
    seed : int or numpy.random.Generator, optional
        In [0, 2**64), or a generator that one is drawn from.
    dtype : {"float64", "float32"}
        Of the candidates.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range.
    """

    def __init__(
        self,
        x0: ArrayLike | None = None,
        *,
        n_var: int | None = None,
        bounds: BoundsLike | None = None,
        sigma0: float = 0.1,
        population_size: int = 24,
        n_gen: int = 30,
        x0_in_population: bool = True,
        seed: SeedLike = None,
        dtype: DTypeLike = "float64",
    ) -> None:
        super().__init__(x0, n_var, bounds, sigma0, population_size, n_gen, seed, dtype)
        self._x0_in_population = checks.choice("x0_in_population", x0_in_population, (True, False))
        self._limits = sampling.LIMITS.index("first" if bounds is None else "clip")
        # LEA-MVD's first population of the same seed is another draw
        self._key = random_streams.child(self.seed, random_streams.RANDOM_SEARCH).generate_state(1, np.uint64)[0]

    def _sample(self) -> Floats:
        X = np.empty((self.population_size, self.n_var), self.dtype)
        place = sampling.Place(self._key, self.generation + 1, False, self._limits)
        kept = self.generation == 0 and self._x0_in_population
        sampling.initialize(X, self._x0, self.sigma0, kept, self._low, self._high, place)
        return X

    def _learn(self, X: Floats, F: Array) -> None:
        self._keep_best(X, F)
