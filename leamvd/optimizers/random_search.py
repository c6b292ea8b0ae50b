"""Random search: the floor that any optimizer should stay above."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leamvd._support.compile import Array, Floats
from leamvd.optimizers import random_streams, sampling
from leamvd.optimizers.base import Optimizer


class RandomSearch(Optimizer):
    """Draw every generation as LEA-MVD draws its first: N(x0, sigma0), or uniform in `bounds` where x0 is None.

    Parameters
    ----------
    x0 : array_like, shape (n,), optional
        Start solution, the center of every generation.
    **options
        `n_var`, `bounds`, which what is drawn around `x0` is clipped to, `sigma0`, `population_size`, `n_gen`, `seed`
        and `dtype` as of `leamvd.LEAMVD`; and `x0_in_population`, whether `x0` is row 1 of the first generation.
    """

    def __init__(self, x0: ArrayLike | None = None, **options: Any) -> None:
        super().__init__(x0, **options)
        # LEA-MVD's first population of the same seed is another draw
        self._key = random_streams.child(self.seed, random_streams.RANDOM_SEARCH).generate_state(1, np.uint64)[0]

    def _sample(self) -> Floats:
        X = np.empty((self.population_size, self.n_var), self.dtype)
        limits = sampling.LIMITS.index("clip" if self._low.size else "first")
        place = sampling.Place(self._key, self.generation + 1, sampling.PERTURBATIONS.index("off"), limits)
        sampling.initialize(X, self._x0, self.sigma0, self._low, self._high, place)
        return X

    def _learn(self, X: Floats, F: Array) -> None:
        """Learn nothing."""
