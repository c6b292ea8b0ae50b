"""LEA-MVD and its baselines at equal work: the same population, start, step and objective, a generation at a time.

Every method starts at x = (1, ..., 1) with step 0.1 and minimizes the sphere with 24 individuals. The seconds of a
generation are those of the optimizer: while the objective is at work, the clock stands still.

LEA-MVD keeps 4 of its 24 individuals, with their values: a generation after the first writes 20 new ones.
"""

import functools
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from leamvd.campaign.versions import installed
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD

POPULATION_SIZE = 24
STEP = 0.1

_clock = time.perf_counter


class Objective:
    """An objective that clocks itself, so that its seconds can be subtracted."""

    seconds = 0.0
    best = math.inf

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self._function = function

    def __call__(self, X: Any) -> Any:
        """Return the values of some candidates, of which the least becomes `best`."""
        start = _clock()
        F = self._function(X)
        self.best = float(F.min())
        self.seconds += _clock() - start
        return F


class Search:
    """An optimizer at work on an objective, of which `step` runs a generation.

    One that does some of its work once in a period of generations runs a whole period at a time.
    """

    def __init__(self, objective: Objective, step: Callable[[], object], period: int = 1) -> None:
        self.objective, self._step, self._period = objective, step, period

    def generation(self) -> float:
        """Run the generations of a period, and return the mean of the optimizer's seconds."""
        self.objective.seconds = 0.0
        start = _clock()
        for _ in range(self._period):
            self._step()
        return (_clock() - start - self.objective.seconds) / self._period


def ask_and_tell(opt: Any, objective: Objective, period: int = 1) -> Search:
    """Return the search of an optimizer that hands out candidates, and takes what the objective makes of them."""

    def step() -> None:
        X = opt.ask()
        opt.tell(X, objective(X))

    return Search(objective, step, period)


def sphere(X: Any) -> Any:
    """Return the sum of squares of each row."""
    X = np.asarray(X)
    return np.einsum("ij,ij->i", X, X)


# ---- what makes a package's method at work: of its name, n and dtype


def _leamvd(_: str, n: int, dtype: str) -> Search:
    opt = LEAMVD(np.ones(n, dtype), sigma0=STEP, population_size=POPULATION_SIZE, seed=0, dtype=dtype)
    return ask_and_tell(opt, Objective(sphere))


def _pycma(name: str, n: int, _: str) -> Search:
    """Return pycma itself; with the full matrix, where copies of the population are nothing, through our own class.

    pycma decomposes its matrix once in many generations: a generation is the mean of so many.
    """
    if name == "full":
        full = CMAES(np.ones(n), sigma0=STEP, population_size=POPULATION_SIZE, seed=0)
        return ask_and_tell(full, Objective(sphere), period=full.decomposition_gap)
    import cma

    options = {"popsize": POPULATION_SIZE, "CMA_diagonal": True, "seed": 1, "verbose": -9, "verb_log": 0}
    es = cma.CMAEvolutionStrategy(np.ones(n), STEP, options)
    objective = Objective(sphere)

    def step() -> None:
        X = es.ask()
        es.tell(X, objective(X).tolist())

    return Search(objective, step)


def _evosax(name: str, n: int, _: str) -> Search:
    """Return a strategy that JAX compiles; random keys are split, as the objective, with the clock stopped."""
    import jax

    strategy, params = _strategy(name, n)
    keys = jax.random.split(jax.random.key(0), 4)
    state = strategy.init(keys[3], jax.numpy.ones(n), params)

    def evaluate(X: Any) -> Any:
        nonlocal keys
        F, keys = jax.block_until_ready((_jax_sphere()(X), tuple(jax.random.split(keys[0], 3))))
        return F

    objective = Objective(evaluate)

    def step() -> None:
        nonlocal state
        X, state = jax.block_until_ready(strategy.ask(keys[1], state, params))
        F = objective(X)
        state, _ = jax.block_until_ready(strategy.tell(keys[2], X, F, state, params))

    return Search(objective, step)


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


def _evotorch(name: str, n: int, dtype: str) -> Search:
    """Return a search that calls the objective itself."""
    import torch
    from evotorch import Problem, algorithms

    real, objective = getattr(torch, dtype), Objective(lambda X: torch.einsum("ij,ij->i", X, X))
    problem = Problem(
        "min", objective, solution_length=n, initial_bounds=(1 - STEP, 1 + STEP), vectorized=True, dtype=real, seed=0
    )
    algorithm, separable = name.partition(" (separable)")[:2]
    start = {"center_init": torch.ones(n, dtype=real), "stdev_init": STEP, "popsize": POPULATION_SIZE}
    search = getattr(algorithms, algorithm)(problem, **start, **({"separable": True} if separable else {}))
    return Search(objective, search.step)


# ---- what is there


_MAKE: dict[str, Callable[[str, int, str], Search]] = {
    "leamvd": _leamvd, "pycma": _pycma, "evosax": _evosax, "evotorch": _evotorch,
}  # fmt: skip

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
"""What is measured, and in which dtypes it can run; the first word is the package."""


def version(method: str) -> str | None:
    """Return the version of a method's package, None where it is not installed."""
    package = method.split()[0]
    return installed("cma" if package == "pycma" else package)


def make(method: str, n: int, dtype: str) -> Search:
    """Return one of `METHODS`, whose package is installed, at work on the sphere."""
    name, _, variant = method.partition(" ")
    return _MAKE[name](variant, n, dtype)
