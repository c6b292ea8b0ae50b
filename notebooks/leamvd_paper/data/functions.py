"""Test functions of any number of variables, which an experiment on images is held against."""

import contextlib
import functools
import tempfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from leamvd._support import checks
from leamvd._support.compile import Array

# takes points (m, n), returns their values (m,); lower is better
Objective = Callable[[Array], Array]


def sphere(X: Array) -> Array:
    """Return the sum of x_i^2 of every row."""
    return np.asarray((X**2).sum(axis=-1))


def ellipsoid(X: Array) -> Array:
    """Return the sum of 100^((i - 1)/(n - 1)) x_i^2 of every row: condition number 100."""
    return np.asarray((np.logspace(0, 2, X.shape[-1]) * X**2).sum(axis=-1))


def rosenbrock(X: Array) -> Array:
    """Return the sum of 100 (y_(i+1) - y_i^2)^2 + (1 - y_i)^2 of every row, y = x + 1: the optimum
    is zero.
    """
    Y = X + 1
    before = Y[..., :-1]
    terms = 100 * (Y[..., 1:] - before**2) ** 2 + (1 - before) ** 2
    return np.asarray(terms.sum(axis=-1))


def rastrigin(X: Array) -> Array:
    """Return the sum of x_i^2 + 10 (1 - cos 2 pi x_i) of every row: local
    optima near all integers.
    """
    terms = X**2 + 10 * (1 - np.cos(2 * np.pi * X))
    return np.asarray(terms.sum(axis=-1))


def ackley(X: Array) -> Array:
    """Return 20 (1 - exp(-0.2 sqrt(mean x_i^2))) + e - exp(mean cos 2 pi x_i) of every row."""
    far = 0.2 * np.sqrt((X**2).mean(axis=-1))
    near = np.cos(2 * np.pi * X).mean(axis=-1)
    return np.asarray(20 * (1 - np.exp(-far)) + np.e - np.exp(near))


FUNCTIONS: dict[str, Objective] = {
    f.__name__: f for f in (sphere, ellipsoid, rosenbrock, rastrigin, ackley)
}
"""All have their minimum, zero, at zero."""

# those that readings and longer searches are compared on
USUAL = ("sphere", "ellipsoid", "rosenbrock", "rastrigin")

BBOB = "bbob-f"  # how names of functions of the suite bbob-largescale begin

LIMIT = 5.0  # start solutions are drawn within [-5, 5]^n, optima within four fifths of that


def problem(name: str, n_var: int, seed: int) -> tuple[Array, Objective]:
    """Return a start solution, uniform in [-5, 5]^n, and a function whose optimum was moved into
    [-4, 4]^n.

    Both are the same for all methods of a seed. Zero is in their midst, so factors, which act in
    proportion to the distance from it, still have about the right size (item R17). "bbob-f10", say,
    is a function of COCO's suite bbob-largescale (Varelas et al. 2020), its instance seed + 1.
    """
    rng = np.random.default_rng([seed, n_var])
    x0 = rng.uniform(-LIMIT, LIMIT, n_var)
    optimum = rng.uniform(-0.8 * LIMIT, 0.8 * LIMIT, n_var)
    if name.startswith(BBOB):
        return x0, _bbob(int(name.removeprefix(BBOB)), n_var, seed + 1)
    objective = FUNCTIONS[checks.choice("name", name, [*FUNCTIONS])]
    return x0, lambda X: objective(X - optimum)


@functools.lru_cache(16)  # for all methods that search on it: COCO takes seconds
def _bbob(function: int, n_var: int, instance: int) -> Objective:
    checks.needs("functions of bbob-largescale", "leamvd-paper[coco]", "cocoex")
    import cocoex

    suite = cocoex.Suite("bbob-largescale", "", f"dimensions:{n_var}")
    coco = suite.get_problem_by_function_dimension_instance(function, n_var, instance)
    # COCO tells the optimum in a file alone
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        coco._best_parameter("print")
        least = coco(np.loadtxt("._bbob_problem_best_parameter.txt"))
    return lambda X: np.array([coco(x) for x in X]) - least


# ---- functions of many local minima, with their gradients


def griewank(X: Array) -> Array:
    """Return 1 + sum x_i^2 / 4000 - prod cos(x_i / sqrt(i)) of every row."""
    roots = np.sqrt(np.arange(1, X.shape[-1] + 1))
    product = np.cos(X / roots).prod(axis=-1)
    return np.asarray(1 + (X**2).sum(axis=-1) / 4000 - product)


def schwefel(X: Array) -> Array:
    """Return Schwefel's sum of -z_i sin sqrt(abs z_i), z = x + 420.97, of every row, continued
    beyond abs z_i = 500.

    There the function is mirrored, and (abs z_i - 500)^2 / (10,000 n) is added, as in the CEC 2014
    competition.
    """
    Z = X + _SCHWEFEL
    Y, beyond = _mirrored(Z)
    terms = Y * np.sin(np.sqrt(np.abs(Y))) - beyond**2 / (1e4 * X.shape[-1])
    return np.asarray((418.98288727243375 - terms).sum(axis=-1))


def _rastrigin_gradient(X: Array) -> Array:
    return np.asarray(2 * X + 20 * np.pi * np.sin(2 * np.pi * X))


def _ackley_gradient(X: Array) -> Array:
    length = np.sqrt((X**2).mean(axis=-1, keepdims=True))
    far = 4 * np.exp(-0.2 * length) * X / np.where(length > 0, length, 1)
    angles = 2 * np.pi * X
    near = 2 * np.pi * np.sin(angles) * np.exp(np.cos(angles).mean(axis=-1, keepdims=True))
    return np.asarray((far + near) / X.shape[-1])


def _griewank_gradient(X: Array) -> Array:
    roots = np.sqrt(np.arange(1, X.shape[-1] + 1))
    Y = X / roots
    product = np.cos(Y).prod(axis=-1, keepdims=True)
    return np.asarray(X / 2000 + product * np.tan(Y) / roots)


def _schwefel_gradient(X: Array) -> Array:
    Y, beyond = _mirrored(X + _SCHWEFEL)
    roots = np.sqrt(np.abs(Y))
    slope = np.sin(roots) + roots * np.cos(roots) / 2
    return np.asarray(beyond / (5e3 * X.shape[-1]) - np.where(beyond == 0, slope, -slope))


_SCHWEFEL = 420.9687462275036  # where Schwefel's function has its minimum


def _mirrored(Z: Array) -> tuple[Array, Array]:
    """Return where Schwefel's function is evaluated in the place of `Z`, and by how much `Z` is
    beyond its domain.
    """
    beyond = Z - np.clip(Z, -500, 500)
    inside = np.sign(Z) * (500 - np.mod(np.abs(Z), 500))
    return np.where(beyond == 0, Z, inside), beyond


class Multimodal(NamedTuple):
    """A function of many local minima, whose lowest value, zero, is at zero."""

    value: Objective
    gradient: Objective
    half: float  # of the side of its usual domain


MULTIMODAL = {
    "rastrigin": Multimodal(rastrigin, _rastrigin_gradient, 5.12),
    "ackley": Multimodal(ackley, _ackley_gradient, 32.768),
    "griewank": Multimodal(griewank, _griewank_gradient, 600.0),
    "schwefel": Multimodal(schwefel, _schwefel_gradient, 500.0),
}


def in_unit_cube(name: str, optimum: Array) -> tuple[Objective, Objective]:
    """Return a function of `MULTIMODAL` and its gradient on the unit cube, with its minimum at
    `optimum`, (n,).
    """
    value, gradient, half = MULTIMODAL[name]
    side = 2 * half

    def moved(U: Array) -> Array:
        return value(side * (U - optimum))

    def slope(U: Array) -> Array:
        return np.asarray(side * gradient(side * (U - optimum)))

    return moved, slope
