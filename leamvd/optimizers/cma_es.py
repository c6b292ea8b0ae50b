"""CMA-ES through pycma (Hansen, Akimoto and Baudis), with a full or a diagonal covariance matrix."""

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import OptimizeResult

from leamvd._support import checks, memory
from leamvd._support.compile import Array, Floats
from leamvd._support.interrupts import uninterrupted
from leamvd._support.threads import Shared, one_blas_thread
from leamvd.optimizers import random_streams
from leamvd.optimizers.base import BoundsLike, Optimizer
from leamvd.optimizers.random_streams import SeedLike

SQUARE_MATRICES = 4
"""Arrays of n x n doubles that pycma holds at its peak: C, its eigenvectors, and the decomposition's work space."""

_TOLERANCES = frozenset({"tolx", "tolfun", "tolfunhist", "tolfunrel", "noeffectaxis", "noeffectcoord"})
"""pycma's criteria that mean convergence: steps or differences of values so small that nothing changes any more."""


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
        If a full covariance matrix would not fit in the memory that is available.
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
        n_gen: int = 30,
        x0_in_population: bool = True,
        seed: SeedLike = None,
    ) -> None:
        if checks.choice("diagonal", diagonal, (True, False)):
            checks.needs("method='sep-cma-es'", "paper", "cma")
        else:
            checks.needs("method='cma-es'", "paper", "cma", "psutil")
        super().__init__(x0, None, bounds, sigma0, population_size, n_gen, seed, "float64")
        self._x0_in_population = checks.choice("x0_in_population", x0_in_population, (True, False))
        if not diagonal:
            check_memory(self.n_var)
        options: dict[str, Any] = {
            "popsize": self.population_size,
            "CMA_diagonal": diagonal,
            "randn": _Normals(self.seed),
            "seed": np.nan,  # of NumPy's global generator, which `randn` replaces
            "verbose": -9,
            "verb_log": 0,
        }
        if bounds is not None:
            if (same := self._low == self._high).any():
                i = int(np.argmax(same))
                raise ValueError(f"bounds must have low < high for CMA-ES, got {self._low[i]} for both at index {i}")
            options["bounds"] = [self._low.tolist(), self._high.tolist()]
        self._es = _quiet(_strategy, self._x0, self.sigma0, options)

    def ask(self) -> Floats:
        """Return the candidates of the next generation; Ctrl-C waits, since pycma's steps cannot be taken twice."""
        with uninterrupted():
            return super().ask()

    def tell(self, X: ArrayLike, F: ArrayLike) -> None:
        """Take the values `F` of the candidates `X`, and learn from them; Ctrl-C waits."""
        with uninterrupted():
            super().tell(X, F)

    @property
    def decomposition_gap(self) -> int:
        """Generations from one decomposition of the covariance matrix to the next, 1 / (10 n (c_1 + c_mu)) rounded up.

        Of a diagonal, which needs none, 1.
        """
        # pycma tells the gap nowhere else; the sampler of a diagonal has none
        return max(1, math.ceil(getattr(self._es.sm, "lazy_update_gap", 1)))

    def _sample(self) -> Floats:
        X = np.array(_quiet(self._es.ask))
        if self.generation == 0 and self._x0_in_population:
            X[0] = self._x0
        return X

    def _learn(self, X: Floats, F: Array) -> None:
        self._keep_best(X, F)
        finite = F[np.isfinite(F)]
        if finite.size:  # otherwise there is nothing to learn, and pycma would end on a flat function
            # pycma refuses infinite values: rank them last, and so far away that it sees no flat function
            largest = float(np.max(finite))
            worst = min(largest + max(1.0, abs(largest)), np.finfo(np.float64).max)
            _quiet(self._es.tell, list(X), np.where(np.isfinite(F), F, worst).tolist())

    @property
    def result(self) -> OptimizeResult:
        """The best point so far; the message names pycma's criteria where one has ended the search."""
        found = super().result
        if isinstance(criteria := self.stop().get(found["reason"]), dict):
            found["message"] = f"{found['message'].removesuffix('.')}: {', '.join(criteria)}."
        return found

    def _converged(self) -> dict[str, Any]:
        criteria = dict(_quiet(self._es.stop)) if self.generation else {}
        if not criteria:
            return {}
        converged, over = not _TOLERANCES.isdisjoint(criteria), "maxiter" in criteria
        return {"cma" if converged else "cma_maxiter" if over else "cma_stuck": criteria}


def check_memory(n: int) -> None:
    """Raise a MemoryError where a full covariance matrix of n variables would not fit in what is available."""
    needed, available = SQUARE_MATRICES * 8 * n**2, memory.available()
    if needed > available:
        raise MemoryError(
            f"CMA-ES with a full covariance matrix of n={n} variables needs {needed:,} bytes, "
            f"{available:,} are available: use method='sep-cma-es' (of CMAES: diagonal=True)"
        )


class _Normals:
    """The normals that pycma asks for, from a generator of our own."""

    def __init__(self, seed: int) -> None:
        self._generator = np.random.default_rng(random_streams.child(seed, random_streams.CMA_ES))

    def __call__(self, *shape: int) -> Array:
        return self._generator.standard_normal(shape)


def _strategy(*arguments: Any) -> Any:
    import cma  # takes half a second, and only this method needs it

    return cma.CMAEvolutionStrategy(*arguments)


def _quiet(function: Any, *arguments: Any) -> Any:
    """Call pycma without its warnings about injected solutions, on one BLAS thread so that its bits are fixed."""
    with _silence, one_blas_thread():
        return function(*arguments)


@contextmanager
def _without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


_silence = Shared(_without_warnings)  # searches in threads would put back each other's filters
