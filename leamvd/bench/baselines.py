"""LEA-MVD and its baselines at equal work: the same population, start, step and objective, a generation at a time.

Every method starts at x = (1, ..., 1) with step 0.1 and minimizes the sphere with 24 individuals. The seconds of a
generation are those of asking and telling. Where a package takes candidates and values, the objective lies outside the
clock. Where it calls the objective itself (evotorch, pypop7), the clock stands still while it does. Where the package
compiles the objective into its loop (evosax), the objective is timed alone on an array of the same shape, and its
median is subtracted.

LEA-MVD keeps 4 of its 24 individuals, with their values: a generation after the first writes 20 new ones.
"""

import functools
import importlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any

import numpy as np

from leamvd.bench.jobs import RefusalError
from leamvd.bench.timing import alternate, clocked, median
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.paper.versions import installed

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

    def close(self) -> None:  # noqa: B027  # most have nothing to end
        """End what it has running."""


def sphere(X: Any) -> Any:
    """Return the sum of squares of each row."""
    X = np.asarray(X)
    return np.einsum("ij,ij->i", X, X)


class AskTell(Search):
    """An optimizer that hands out candidates, one a row, and takes what an objective makes of them."""

    def __init__(
        self, ask: Callable[[], Any], tell: Callable[[Any, Any], object], objective: Callable[[Any], Any] | None = None
    ) -> None:
        self._ask, self._tell, self._objective = ask, tell, objective or sphere

    def generation(self) -> float:
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


class Calling(Search):
    """An optimizer that calls the objective itself, with one point at a time, for as long as it is let.

    It runs on a thread of its own, which waits, inside the objective and so with the clock standing still, at the end
    of each generation for the next to be asked for.
    """

    def __init__(self, optimize: Callable[[Callable[[Any], float]], object]) -> None:
        self._go: SimpleQueue[bool] = SimpleQueue()
        self._done: SimpleQueue[float | BaseException] = SimpleQueue()
        self._values: list[float] = []
        self._spent = self._returned = 0.0
        self._thread = Thread(target=self._run, args=(optimize,), daemon=True)
        self._thread.start()

    def generation(self) -> float:
        """Let the thread run until it has called the objective `POPULATION_SIZE` more times."""
        self._go.put(True)
        result = self._done.get()
        if isinstance(result, BaseException):
            raise result
        return result

    def close(self) -> None:
        """End the thread, and with it the optimizer."""
        self._go.put(False)
        self._thread.join()

    def _run(self, optimize: Callable[[Callable[[Any], float]], object]) -> None:
        try:
            self._wait()
            optimize(self._objective)
            raise RuntimeError("the search has ended by itself")
        except _Closed:
            pass
        except BaseException as error:  # whatever it is, it belongs to whoever asked for the generation
            self._done.put(error)

    def _objective(self, x: Any) -> float:
        self._spent += _clock() - self._returned
        self._values.append(float(sphere(x[None])[0]))
        value = self._values[-1]
        if len(self._values) == POPULATION_SIZE:
            self.best = min(self._values)
            self._done.put(self._spent)
            self._wait()
        self._returned = _clock()
        return value

    def _wait(self) -> None:
        if not self._go.get():
            raise _Closed
        self._values, self._spent, self._returned = [], 0.0, _clock()


class Periodic(Search):
    """An optimizer that does some of its work once in so many generations: each is taken for the mean of them all."""

    def __init__(self, search: Search, period: int) -> None:
        self._search, self._period = search, period

    def generation(self) -> float:
        """Run all generations of a period, and return the mean of their seconds."""
        seconds = [self._search.generation() for _ in range(self._period)]
        self.best, self.objective_seconds = self._search.best, self._search.objective_seconds
        return sum(seconds) / self._period


class _Closed(Exception):  # noqa: N818  # not an error: how a thread is told to end
    pass


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
        return Periodic(AskTell(full.ask, full.tell), full.decomposition_gap)
    import cma

    options = {"popsize": POPULATION_SIZE, "CMA_diagonal": True, "seed": seed + 1, "verbose": -9, "verb_log": 0}
    es = cma.CMAEvolutionStrategy(np.ones(n), STEP, options)
    return AskTell(es.ask, lambda X, F: es.tell(X, F.tolist()))


# ---- evosax: compiled by JAX, float32


def _evosax(name: str, n: int, _: str, seed: int) -> Search:
    strategy, bracket, _ = name.partition(" (compiled loop)")
    return _CompiledLoop(strategy, n, seed) if bracket else _evosax_by_calls(strategy, n, seed)


def _evosax_by_calls(name: str, n: int, seed: int) -> Search:
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


class _CompiledLoop(Search):
    """Many generations compiled into one loop; the objective alone, on ones, is subtracted."""

    def __init__(self, name: str, n: int, seed: int) -> None:
        import jax

        self._length = max(2, min(100, 1_000_000 // n))
        self._loop, strategy, params = _loop(name, n, self._length)
        start, key = jax.random.split(jax.random.key(seed))
        self._carry = key, strategy.init(start, jax.numpy.ones(n), params)
        self._wait, X = jax.block_until_ready, jax.block_until_ready(jax.numpy.ones((POPULATION_SIZE, n)))
        alone = alternate({"objective": clocked(lambda: self._wait(_jax_sphere()(X)))})
        self.objective_seconds = median(alone["objective"])

    def generation(self) -> float:
        """Run the loop once, and return its seconds for each of its generations."""
        start = _clock()
        self._carry, lowest = self._wait(self._loop(self._carry))
        seconds = _clock() - start
        self.best = float(lowest[-1])
        return max(0.0, seconds / self._length - self.objective_seconds)


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
def _loop(name: str, n: int, length: int) -> tuple[Any, Any, Any]:
    """Return `length` generations as one compiled function, the strategy and its parameters."""
    import jax

    strategy, params = _strategy(name, n)

    def generation(carry: Any, _: None) -> tuple[Any, Any]:
        key, state = carry
        key, ask, tell = jax.random.split(key, 3)
        X, state = strategy.ask(ask, state, params)
        F = _jax_sphere()(X)
        state, _ = strategy.tell(tell, X, F, state, params)
        return (key, state), F.min()

    return jax.jit(lambda carry: jax.lax.scan(generation, carry, length=length)), strategy, params


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


def _pypop7(name: str, n: int, _: str, seed: int) -> Search:
    """Return one of pypop7's optimizers; its differential evolution starts uniformly in 1 +- `STEP`."""
    package = {"CDE": "de", "SNES": "nes"}.get(name, "es")
    optimizer = getattr(importlib.import_module(f"pypop7.optimizers.{package}.{name.lower()}"), name)
    problem = {"ndim_problem": n, "lower_boundary": np.full(n, 1 - STEP), "upper_boundary": np.full(n, 1 + STEP)}
    options = {"n_individuals": POPULATION_SIZE, "mean": np.ones(n), "sigma": STEP, "seed_rng": seed}
    options |= {"verbose": 0, "is_restart": False}
    return Calling(lambda f: optimizer(problem | {"fitness_function": f}, options).optimize())


# ---- what is there


_MAKE: dict[str, Callable[[str, int, str, int], Search]] = {
    "leamvd": _leamvd, "pycma": _pycma, "evosax": _evosax, "evotorch": _Evotorch, "pypop7": _pypop7,
}  # fmt: skip
"""What makes a package's methods at work: of the method's name, n, dtype and seed."""

METHODS: dict[str, tuple[str, ...]] = {
    "leamvd": ("float32", "float64"),
    "pycma separable": ("float64",),
    "pycma full": ("float64",),
    "evosax Open_ES": ("float32",),
    "evosax Open_ES (compiled loop)": ("float32",),
    "evosax Sep_CMA_ES": ("float32",),
    "evosax CR_FM_NES": ("float32",),
    "evotorch SNES": ("float32",),
    "evotorch CMAES (separable)": ("float32",),
    "pypop7 CDE": ("float64",),
    "pypop7 LMCMA": ("float64",),
    "pypop7 SNES": ("float64",),
    "pypop7 SEPCMAES": ("float64",),
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
