"""Random search: the floor that any optimizer should stay above."""

import numpy as np

from leamvd._support.compile import Array, Floats
from leamvd.optimizers import random_streams, sampling
from leamvd.optimizers.base import Optimizer


class RandomSearch(Optimizer):
    """Draw every generation as LEA-MVD draws its first: N(x0, sigma0), or uniform in `bounds` where
    x0 is None.

    Parameters
    ----------
    x0 : array_like, shape (n,), optional
        Start solution, the center of every generation.
    n_var, bounds, sigma0, population_size, n_gen, seed, dtype
        As of `leamvd.LEAMVD`; what is drawn around `x0` is clipped to `bounds`.
    x0_in_population : bool
        Whether `x0` is row 1 of the first generation.
    """

    def _sample(self) -> Floats:
        X = np.empty((self.population_size, self.n_var), self.dtype)
        # LEA-MVD's first population of the same seed is another draw
        stream = random_streams.child(self.seed, random_streams.RANDOM_SEARCH)
        key = stream.generate_state(1, np.uint64)[0]
        limits = "clip" if self._low.size else "first"
        off = sampling.PERTURBATIONS.index("off")
        index = sampling.LIMITS.index(limits)
        place = sampling.Place(key, self.generation + 1, off, index, 0.0)
        sampling.initialize(X, self._x0, self.sigma0, self._low, self._high, place)
        return X

    def _learn(self, X: Floats, F: Array) -> None:
        """Learn nothing."""
