"""CMA-ES through pycma (Hansen, Akimoto and Baudis), with a full or a diagonal
covariance matrix.
"""

import os
import warnings
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from leamvd._support import checks
from leamvd._support.compile import Array, Floats
from leamvd._support.threads import one_blas_thread, uninterrupted
from leamvd.optimizers import random_streams
from leamvd.optimizers.base import BoundsLike, Optimizer
from leamvd.optimizers.random_streams import SeedLike

# pycma's criteria that mean convergence: steps or differences of values so small that nothing
# changes any more.
_TOLERANCES = frozenset(
    {"tolx", "tolfun", "tolfunhist", "tolfunrel", "noeffectaxis", "noeffectcoord"}
)


class CMAES(Optimizer):
    """pycma's CMA-ES, with its defaults (item E9) except for what is given here.

    The result is the best point that was evaluated; the mean, which pycma also offers as a result,
    is not evaluated.

    Parameters
    ----------
    x0 : array_like, shape (n,), optional
        Start solution, the initial mean. Without it that is the center of `bounds`, which is not in
        the population.
    n_var : int, optional
        n; needed only where neither `x0` nor an array in `bounds` tells it.
    sigma0 : float
        Initial standard deviation, 0.1 by default as in LEA-MVD's initialization (B).
    diagonal : bool
        Separable CMA-ES (pycma's CMA_diagonal): O(n) memory.
    bounds : scipy.optimize.Bounds, n pairs (low, high), or pair of float or array_like, optional
        Search limits, enforced by pycma. Variables that they fix are not told to it.
    population_size, n_gen : int
        Candidates a generation (24, as LEA-MVD's), and generations.
    x0_in_population : bool
        Whether x0 itself is row 1 of the first generation, in the place of the sample that pycma
        has drawn.
    seed : int, generator of numpy.random, SeedSequence or sequence of int, optional
        In [0, 2**64), or what one is drawn from. NumPy's global generator is neither used nor
        changed.

    Raises
    ------
    ModuleNotFoundError
        Without pycma, which the extra `leamvd[cma]` brings.
    MemoryError
        If a full covariance matrix is larger than the memory of this machine.
    ValueError, TypeError
        If an argument is out of range, or `bounds` fix all variables.
    """

    def __init__(
        self,
        x0: ArrayLike | None = None,
        *,
        n_var: int | None = None,
        sigma0: float = 0.1,
        diagonal: bool = False,
        bounds: BoundsLike | None = None,
        population_size: int = 24,
        n_gen: int | None = None,
        x0_in_population: bool = True,
        seed: SeedLike = None,
    ) -> None:
        checks.needs("CMA-ES", "leamvd[cma]", "cma")
        super().__init__(
            x0,
            n_var=n_var,
            bounds=bounds,
            sigma0=sigma0,
            population_size=population_size,
            n_gen=n_gen,
            x0_in_population=x0_in_population,
            seed=seed,
        )
        if self._x0 is None:
            self._x0 = self._low / 2 + self._high / 2
            self._x0_in_population = False
        fixed = self._low == self._high
        if fixed.size and fixed.all():
            raise ValueError("bounds must leave a variable free for CMA-ES")
        self._free = np.flatnonzero(~fixed) if fixed.any() else slice(None)
        self.diagonal = checks.choice("diagonal", diagonal, (True, False))
        if not diagonal and hasattr(os, "sysconf"):
            # of C, its eigenvectors, and the decomposition's work space
            needed = 4 * 8 * self.n_var**2
            there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            if needed > there:
                raise MemoryError(
                    f"CMA-ES with a full covariance matrix of n={self.n_var} variables needs"
                    f" {needed:,} bytes, there are {there:,}: use method='sep-cma-es' (of CMAES:"
                    " diagonal=True)"
                )
        self._es: Any = None  # pycma's strategy, from the first generation on
        self._criteria: dict[str, Any] = {}
        self._highest = -np.inf  # of the finite values told

    @property
    def decomposition_gap(self) -> int:
        """Generations from one decomposition of the matrix to the next; 1 without a matrix.

        Known after an `ask`.
        """
        return 1 if self.diagonal else int(np.ceil(self._es.sm.lazy_update_gap))

    def ask(self) -> Floats:
        """Return the candidates of the next generation, see `Optimizer.ask`; Ctrl-C in pycma comes
        at the end.
        """
        with uninterrupted():
            return super().ask()

    def tell(self, X: ArrayLike, F: ArrayLike) -> None:
        """Take the values `F` of the candidates `X`, see `Optimizer.tell`; Ctrl-C in pycma comes at
        the end.
        """
        with uninterrupted():
            super().tell(X, F)

    def _sample(self) -> Floats:
        with one_blas_thread():  # so that its bits are fixed
            if self.generation == 0:
                self._es = self._strategy()
            X = np.tile(cast(Floats, self._x0), (self.population_size, 1))
            X[:, self._free] = self._es.ask()
        return X

    def _strategy(self) -> Any:
        import cma  # takes half a second, and only this method needs it

        # which pycma says of bounds by itself, and nobody can act on
        warnings.filterwarnings("ignore", r"elements of z2\[k\]", module=r"cma\.")
        start = cast(Floats, self._x0)[self._free]
        options = {
            "popsize": self.population_size,
            "CMA_diagonal": self.diagonal,
            "randn": _Normals(self.seed),
            "seed": np.nan,  # of NumPy's global generator, which `randn` replaces
            "verbose": -9,
            "verb_log": 0,
        }
        if self._low.size:
            options["bounds"] = [side[self._free].tolist() for side in (self._low, self._high)]
        # pycma 4 fails where it limits the step of one variable to its bounds
        if start.size == 1:
            options["maxstd_boundrange"] = np.inf
        return cma.CMAEvolutionStrategy(start, self.sigma0, options)

    def _learn(self, X: Floats, F: Array) -> None:
        finite = F[np.isfinite(F)]
        with one_blas_thread():
            # otherwise there is nothing to learn, and pycma would end on a flat function
            if finite.size:
                # pycma refuses infinite values: rank them last, and so far away that it sees no
                # flat function
                largest = float(np.max(finite))
                self._highest = max(self._highest, largest)
                worst = min(largest + max(1.0, abs(largest)), np.finfo(np.float64).max)
                values = np.where(np.isfinite(F), F, worst)
                self._es.tell(list(X[:, self._free]), values.tolist())
            self._criteria = dict(self._es.stop())  # which count how often they are asked

    def _converged(self) -> dict[str, Any]:
        if not self._criteria:
            return {}
        reason = "cma_stuck"
        if "maxiter" in self._criteria:
            reason = "cma_maxiter"
        # not on a flat function
        if not _TOLERANCES.isdisjoint(self._criteria) and self.best_fun < self._highest:
            reason = "cma"
        return {reason: self._criteria}


class _Normals:
    """The normals that pycma asks for, from a generator of our own."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(random_streams.child(seed, random_streams.CMA_ES))

    def __call__(self, *shape: int) -> Array:
        return self._generator.standard_normal(shape)
