"""Functions of a whole generation, shifted, so that no optimum lies where a search starts."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating]


def sphere(X: Array) -> Array:
    return ((X - 0.5) ** 2).sum(axis=1)


def ellipsoid(X: Array) -> Array:
    return ((X - 0.5) ** 2 @ np.logspace(0, 4, X.shape[1])[:, None])[:, 0]


def rosenbrock(X: Array) -> Array:
    return (100 * (X[:, 1:] - X[:, :-1] ** 2) ** 2 + (1 - X[:, :-1]) ** 2).sum(axis=1)


def rastrigin(X: Array) -> Array:
    return (10 + (X - 0.7) ** 2 - 10 * np.cos(2 * np.pi * (X - 0.7))).sum(axis=1)
