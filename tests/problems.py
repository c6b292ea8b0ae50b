"""The table of problems that every optimizer is run on: shifted, so that no optimum lies where a search starts."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


class Problem(NamedTuple):
    """A function of a whole generation, lower is better, with minimum 0 in `optimum`; started from zero."""

    name: str
    fun: Callable[[Array], Array]
    optimum: float


def sphere(X: Array) -> Array:
    return ((X - 0.5) ** 2).sum(axis=1)


def ellipsoid(X: Array) -> Array:
    return ((X - 0.5) ** 2 @ np.logspace(0, 4, X.shape[1])[:, None])[:, 0]


def rosenbrock(X: Array) -> Array:
    return (100 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1 - X[:, :-1]) ** 2).sum(axis=1)


def rastrigin(X: Array) -> Array:
    return (10 + (X - 0.7) ** 2 - 10 * np.cos(2 * np.pi * (X - 0.7))).sum(axis=1)


PROBLEMS = (
    Problem("sphere", sphere, 0.5),
    Problem("ellipsoid", ellipsoid, 0.5),
    Problem("rosenbrock", rosenbrock, 1.0),
    Problem("rastrigin", rastrigin, 0.7),
)
