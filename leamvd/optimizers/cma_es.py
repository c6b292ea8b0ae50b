"""CMA-ES through pycma (Hansen, Akimoto and Baudis), with a full or a diagonal covariance matrix."""

import copy
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from leamvd._support import checks
from leamvd._support.compile import Array, Floats
from leamvd._support.threads import one_blas_thread
from leamvd.optimizers import random_streams
from leamvd.optimizers.base import BoundsLike, Optimizer
from leamvd.optimizers.random_streams import SeedLike

_KEPT = 32  # generations between copies of pycma's state, each of which takes up to a quarter of one's time

# pycma's criteria that mean convergence: steps or differences of values so small that nothing changes any more.
_TOLERANCES = frozenset({"tolx", "tolfun", "tolfunhist", "tolfunrel", "noeffectaxis", "noeffectcoord"})


class CMAES(Optimizer):
    """pycma's CMA-ES, with its defaults (item E9) except for what is given here.

    The result is the best point that was evaluated; the mean, which pycma also offers as a result, is not evaluated.

    Parameters
    ----------
    x0 : array_like, shape (n,)
        Start solution, the initial mean.
    sigma0 : float
        Initial standard deviation, 0.1 by default as in LEA-MVD's initialization (B).
    diagonal : bool
        Separable CMA-ES (pycma's CMA_diagonal): O(n) memory.
    bounds : scipy.optimize.Bounds, pair (low, high) of float or array_like, or n pairs (low_i, high_i), optional
        Search limits, enforced by pycma.
    population_size, n_gen : int
        Candidates a generation (24, as LEA-MVD's), and generations.
    x0_in_population : bool
        Whether x0 itself is row 1 of the first generation, in the place of the sample that pycma has drawn.
    seed : int or numpy.random.Generator, optional
        In [0, 2**64), or a generator that one is drawn from. NumPy's global generator is neither used nor changed.

    Raises
    ------
    ModuleNotFoundError
        Without pycma, which the extra `leamvd[paper]` brings.
    MemoryError
        If a full covariance matrix is larger than the memory of this machine.
    ValueError, TypeError
        If an argument is out of range.
    """

    def __init__(
        self,
        x0: ArrayLike,
        *,
        sigma0: float = 0.1,
        diagonal: bool = False,
        bounds: BoundsLike | None = None,
        population_size: int = 24,
        n_gen: int | None = None,
        x0_in_population: bool = True,
        seed: SeedLike = None,
    ) -> None:
        checks.needs("CMA-ES", "paper", "cma")
        if x0 is None:
            raise ValueError("x0 must be given for CMA-ES, got None")
        super().__init__(
            x0,
            bounds=bounds,
            sigma0=sigma0,
            population_size=population_size,
            n_gen=n_gen,
            x0_in_population=x0_in_population,
            seed=seed,
        )
        self.diagonal = checks.choice("diagonal", diagonal, (True, False))
        if not diagonal and hasattr(os, "sysconf"):
            needed = 6 * 8 * self.n_var**2  # of C, its eigenvectors, copies of both, and the decomposition's work space
            there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
            if needed > there:
                raise MemoryError(
                    f"CMA-ES with a full covariance matrix of n={self.n_var} variables needs {needed:,} bytes, there "
                    f"are {there:,}: use method='sep-cma-es' (of CMAES: diagonal=True)"
                )
        # pycma's strategy by the number of its calls, ask and tell in turn. It is taken out for the next call, so that
        # one that is interrupted leaves none: then it is made again from the copy and the values told since.
        self._strategies: dict[int, Any] = {}
        self._copy: Any = None
        self._told: tuple[Array, ...] = ()
        self._criteria: dict[str, Any] = {}

    @property
    def decomposition_gap(self) -> int:
        """Generations from one decomposition of the matrix to the next; 1 without a matrix. Known after an `ask`."""
        return 1 if self.diagonal else int(np.ceil(self._es.sm.lazy_update_gap))

    def _sample(self) -> Floats:
        with one_blas_thread():  # so that its bits are fixed
            es = self._taken(2 * self.generation)
            X = np.array(es.ask())
        self._strategies[2 * self.generation + 1] = es
        return X

    def _taken(self, calls: int) -> Any:
        """Return pycma's strategy after so many calls, which is not here any more."""
        if calls in self._strategies:
            return self._strategies.pop(calls)
        es = self._strategy() if self._copy is None else copy.deepcopy(self._copy)
        for F in self._told:
            _tell(es, np.array(es.ask()), F)
        if calls % 2:
            es.ask()
        return es

    def _strategy(self) -> Any:
        import cma  # takes half a second, and only this method needs it

        options: dict[str, Any] = {
            "popsize": self.population_size,
            "CMA_diagonal": self.diagonal,
            "randn": _Normals(self.seed),
            "seed": np.nan,  # of NumPy's global generator, which `randn` replaces
            "verbose": -9,
            "verb_log": 0,
        }
        if self._low.size:
            options["bounds"] = [self._low.tolist(), self._high.tolist()]
        return cma.CMAEvolutionStrategy(self._x0, self.sigma0, options)

    def _learn(self, X: Floats, F: Array) -> None:
        with one_blas_thread():
            es = self._taken(2 * self.generation - 1)
            self._criteria = _tell(es, X, F)
            if self.generation % _KEPT == 1 or X is not self._candidates:  # the first has x0, which pycma has not drawn
                self._copy, self._told = copy.deepcopy(es), ()
            else:
                self._told = (*self._told, F)
        self._strategies[2 * self.generation] = es

    def _converged(self) -> dict[str, Any]:
        if not (criteria := self._criteria):
            return {}
        converged, over = not _TOLERANCES.isdisjoint(criteria), "maxiter" in criteria
        return {"cma" if converged else "cma_maxiter" if over else "cma_stuck": criteria}


def _tell(es: Any, X: Floats, F: Array) -> dict[str, Any]:
    """Return the criteria that pycma's strategy meets once it has learned; some of them count generations."""
    finite = F[np.isfinite(F)]
    if finite.size:  # otherwise there is nothing to learn, and pycma would end on a flat function
        # pycma refuses infinite values: rank them last, and so far away that it sees no flat function
        largest = float(np.max(finite))
        worst = min(largest + max(1.0, abs(largest)), np.finfo(np.float64).max)
        es.tell(list(X), np.where(np.isfinite(F), F, worst).tolist())
    return dict(es.stop())


class _Normals:
    """The normals that pycma asks for, from a generator of our own."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(random_streams.child(seed, random_streams.CMA_ES))

    def __call__(self, *shape: int) -> Array:
        return self._generator.standard_normal(shape)
