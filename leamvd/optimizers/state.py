"""The state of LEA-MVD after a generation, and the checks of one that it is given."""

import math
from typing import Any, NamedTuple

import numpy as np

from leamvd._support import checks
from leamvd._support.compile import Array, Floats, Integers
from leamvd.optimizers.reading import Reading

STAGNATION = 10
"""Generations without a better best that end in a reset (line 9)."""


class State(NamedTuple):
    """The state of the optimizer after a generation: the values that its next `ask` will use.

    Attributes
    ----------
    population, fitness : ndarray, shape (population_size, n), (population_size,)
        X and F, best first; a value that was NaN is +inf.
    mean, std : ndarray, shape (n,)
        mu and Sigma (Eqs. 2 and 3), after a reset.
    path : ndarray, shape (n,)
        The path P. In float32 an entry below 2^-63 in size is zero: its square would be subnormal.
    descent : ndarray, shape (n,)
        C_ani.
    descent_rows : ndarray, shape (m,)
        ir as 0-based ranks, drawn from 1..population_size - 1.
    descent_mean, descent_std : float
        mu_ani and sigma_ani.
    beta1, beta2 : float
        Step sizes.
    stagnation : int
        Generations since the best value last changed or the last reset.
    generation : int
        t, counted from 1.
    nfev, n_nan, n_inf : int
        Values told so far, and those of them that were NaN or +inf.
    initial_std : ndarray, shape (n,), or None
        Standard deviations of the first population, where the reading resets to them.
    std_norm, descent_norm : float
        Norms of Sigma and C_ani, to the bit as the optimizer summed them.
    """

    population: Floats
    fitness: Floats
    mean: Floats
    std: Floats
    path: Floats
    descent: Floats
    descent_rows: Integers
    descent_mean: float
    descent_std: float
    beta1: float
    beta2: float
    stagnation: int
    generation: int
    nfev: int
    n_nan: int
    n_inf: int
    initial_std: Floats | None
    std_norm: float
    descent_norm: float


def checked(state: State, shape: tuple[int, int], dtype: np.dtype[np.floating], reading: Reading) -> State:
    """Return a copy of `state` in which every field has the type, the shape and the range of an optimizer's own.

    `shape` is that of its population. Where a field breaks its rule, a ValueError or TypeError names both.
    """
    if not isinstance(state, State):
        raise TypeError(f"state must be a leamvd.State, got {checks.shown(state)}")
    (size, n), values = shape, state._asdict()

    def array(name: str, *want: int) -> Array:
        return checks.array(f"state.{name}", values[name], shape=want, dtype=dtype).copy()

    def deviations(name: str) -> Array:
        std = array(name, n)
        if np.any(std < 0):
            i = int(np.argmax(std < 0))
            raise ValueError(f"state.{name} must be >= 0, got {std[i]} at index {i}")
        return std

    def integer(name: str, at_least: int, at_most: int | None = None) -> int:
        return checks.integer(f"state.{name}", values[name], at_least=at_least, at_most=at_most)

    def real(name: str, **limits: Any) -> float:
        return checks.real(f"state.{name}", values[name], **limits)

    if reading.reset != "initial" and state.initial_std is not None:
        raise ValueError(f"state.initial_std must be None where reading.reset={reading.reset!r}, got an array")
    nfev = integer("nfev", 1)
    n_nan = integer("n_nan", 0, nfev)
    return State(
        population=array("population", size, n),
        fitness=_fitness(state.fitness, size),
        mean=array("mean", n),
        std=deviations("std"),
        path=array("path", n),
        descent=array("descent", n),
        descent_rows=_ranks(state.descent_rows, reading.n_descent_rows, size),
        descent_mean=real("descent_mean"),
        descent_std=real("descent_std", at_least=0),
        beta1=real("beta1", above=0, at_most=3),
        beta2=real("beta2", at_least=0, at_most=1),
        stagnation=integer("stagnation", 0, None if reading.reset == "off" else STAGNATION - 1),
        generation=integer("generation", 1, 2**32 - 2),  # 32 bits of a counter name the next one
        nfev=nfev,
        n_nan=n_nan,
        n_inf=integer("n_inf", 0, nfev - n_nan),
        initial_std=deviations("initial_std") if reading.reset == "initial" else None,
        std_norm=real("std_norm", at_least=0),
        descent_norm=real("descent_norm", at_least=0),
    )


def _fitness(given: Array, size: int) -> Array:
    fitness = checks.numbers("state.fitness", given, shape=(size,), dtype=np.float64).copy()
    if not np.all(fitness[:-1] <= fitness[1:]) or not fitness[0] > -math.inf:
        raise ValueError(f"state.fitness must be values above -inf, best first, got {checks.shown(given)}")
    return fitness


def _ranks(given: Integers, count: int, size: int) -> Integers:
    ranks = checks.array("state.descent_rows", given, shape=(count,), dtype=np.int64).copy()
    if len(set(ranks.tolist())) < count or ranks.min() < 1 or ranks.max() >= size:
        raise ValueError(f"state.descent_rows must be distinct ranks from 1 to {size - 1}, got {ranks.tolist()}")
    return ranks
