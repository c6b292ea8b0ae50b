"""LEA-MVD and its baselines at equal work: the same population, start, step and objective, a generation at a time.

Every method starts at x = (1, ..., 1) with step 0.1 and minimizes the sphere with 24 individuals. The seconds of a
generation are those of asking and telling. Where a package takes candidates and values, the objective lies outside the
clock. Where it calls the objective itself (evotorch), the clock stands still while it does.

LEA-MVD keeps 4 of its 24 individuals, with their values: a generation after the first writes 20 new ones.
"""

import functools
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from leamvd.bench.cases import RefusalError
from leamvd.campaign.versions import installed
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD

POPULATION_SIZE = 24
STEP = 0.1

_clock = time.perf_counter


class Search(ABC):
    """An optimizer at work.

    Attributes
    ----------
    best : float
        Best value of the last generation.
    objective_seconds : float
        What the last generation spent on the objective; NaN where nobody clocks it.
    """

    best = math.inf
    objective_seconds = math.nan

    @abstractmethod
    def generation(self) -> float:
        """Run one generation and return the seconds that the optimizer needs for it, the objective excluded."""


def sphere(X: Any) -> Any:
    """Return the sum of squares of each row."""
    X = np.asarray(X)
    return np.einsum("ij,ij->i", X, X)


class AskTell(Search):
    """An optimizer that hands out candidates, one a row, and takes what an objective makes of them.

    One that does some of its work once in a period of generations runs a whole period at a time.
    """

    def __init__(
        self,
        ask: Callable[[], Any],
        tell: Callable[[Any, Any], object],
        objective: Callable[[Any], Any] | None = None,
        period: int = 1,
    ) -> None:
        self._ask, self._tell, self._objective, self._period = ask, tell, objective or sphere, period

    def generation(self) -> float:
        """Run the generations of a period, and return the mean of their seconds."""
        return sum(self._once() for _ in range(self._period)) / self._period

    def _once(self) -> float:
        """Ask and tell, with the clock standing still in between."""
        start = _clock()
        X = self._ask()
        asked = _clock()
        F = self._objective(X)
        evaluated = _clock()
        self._tell(X, F)
        told = _clock()
        self.best, self.objective_seconds = float(F.min()), evaluated - asked
        return asked - start + told - evaluated


# ---- packages that hand out candidates


def _leamvd(_: str, n: int, dtype: str, seed: int) -> Search:
    opt = LEAMVD(np.ones(n, dtype), sigma0=STEP, population_size=POPULATION_SIZE, seed=seed, dtype=dtype)
    return AskTell(opt.ask, opt.tell)


def _pycma(name: str, n: int, _: str, seed: int) -> Search:
    """Return pycma itself; with the full matrix, where copies of the population are nothing, through our own class.

    pycma decomposes its matrix once in many generations: a generation is the mean of so many.
    """
    if name == "full":
        try:
            full = CMAES(np.ones(n), sigma0=STEP, population_size=POPULATION_SIZE, seed=seed)
        except MemoryError as error:
            raise RefusalError(str(error)) from None
        return AskTell(full.ask, full.tell, period=full.decomposition_gap)
    import cma

    options = {"popsize": POPULATION_SIZE, "CMA_diagonal": True, "seed": seed + 1, "verbose": -9, "verb_log": 0}
    es = cma.CMAEvolutionStrategy(np.ones(n), STEP, options)
    return AskTell(es.ask, lambda X, F: es.tell(X, F.tolist()))


# ---- evosax: compiled by JAX, float32


def _evosax(name: str, n: int, _: str, seed: int) -> Search:
    """Return a strategy that is asked and told; random keys are split, as the objective, with the clock stopped."""
    import jax

    strategy, params = _strategy(name, n)
    keys = jax.random.split(jax.random.key(seed), 4)
    state = strategy.init(keys[3], jax.numpy.ones(n), params)

    def ask() -> Any:
        nonlocal state
        X, state = jax.block_until_ready(strategy.ask(keys[1], state, params))
        return X

    def objective(X: Any) -> Any:
        nonlocal keys
        F, keys = jax.block_until_ready((_jax_sphere()(X), tuple(jax.random.split(keys[0], 3))))
        return F

    def tell(X: Any, F: Any) -> None:
        nonlocal state
        state, _ = jax.block_until_ready(strategy.tell(keys[2], X, F, state, params))

    return AskTell(ask, tell, objective)


@functools.cache  # one object, so that a second optimizer of the same shape finds its code compiled
def _strategy(name: str, n: int) -> tuple[Any, Any]:
    """Return one of evosax's strategies, and its parameters with the step of all."""
    import jax.numpy as jnp
    import optax
    from evosax import algorithms

    schedule = {"std_schedule": optax.constant_schedule(STEP)} if name == "Open_ES" else {}
    strategy = getattr(algorithms, name)(population_size=POPULATION_SIZE, solution=jnp.zeros(n), **schedule)
    params = strategy.default_params
    return strategy, params if schedule else params.replace(std_init=STEP)


@functools.cache
def _jax_sphere() -> Any:
    import jax

    return jax.jit(lambda X: jax.numpy.einsum("ij,ij->i", X, X))


# ---- packages that call the objective themselves


class _Evotorch(Search):
    def __init__(self, name: str, n: int, dtype: str, seed: int) -> None:
        import torch
        from evotorch import Problem, algorithms

        real = getattr(torch, dtype)
        problem = Problem(
            "min", self._objective, solution_length=n, initial_bounds=(1 - STEP, 1 + STEP), vectorized=True,
            dtype=real, seed=seed,
        )  # fmt: skip
        algorithm, separable = name.partition(" (separable)")[:2]
        start = {"center_init": torch.ones(n, dtype=real), "stdev_init": STEP, "popsize": POPULATION_SIZE}
        self._search = getattr(algorithms, algorithm)(problem, **start, **({"separable": True} if separable else {}))

    def generation(self) -> float:
        """Run one step of the search; the objective's seconds are clocked, and subtracted."""
        self.objective_seconds = 0.0
        start = _clock()
        self._search.step()
        return _clock() - start - self.objective_seconds

    def _objective(self, X: Any) -> Any:
        import torch

        start = _clock()
        F = torch.einsum("ij,ij->i", X, X)
        self.best = float(F.min())
        self.objective_seconds += _clock() - start
        return F


# ---- what is there


_MAKE: dict[str, Callable[[str, int, str, int], Search]] = {
    "leamvd": _leamvd, "pycma": _pycma, "evosax": _evosax, "evotorch": _Evotorch,
}  # fmt: skip
"""What makes a package's methods at work: of the method's name, n, dtype and seed."""

METHODS: dict[str, tuple[str, ...]] = {
    "leamvd": ("float32", "float64"),
    "pycma separable": ("float64",),
    "pycma full": ("float64",),
    "evosax Open_ES": ("float32",),
    "evosax Sep_CMA_ES": ("float32",),
    "evosax CR_FM_NES": ("float32",),
    "evotorch SNES": ("float32",),
    "evotorch CMAES (separable)": ("float32",),
}
"""What is measured, and in which dtypes it can run."""


def package(method: str) -> str:
    """Return the package of a method."""
    return method.split()[0]


def version(method: str) -> str | None:
    """Return the version of a method's package, None where it is not installed."""
    return installed("cma" if package(method) == "pycma" else package(method))


def make(method: str, n: int, dtype: str, seed: int = 0) -> Search:
    """Return one of `METHODS`, whose package is installed, at work on the sphere.

    Raises
    ------
    RefusalError
        If the method itself says that it cannot do so many variables.
    """
    name, _, variant = method.partition(" ")
    return _MAKE[name](variant, n, dtype, seed)
