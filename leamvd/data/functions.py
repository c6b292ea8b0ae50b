"""Test functions of any number of variables, which an experiment on images is held against."""

import contextlib
import tempfile
from collections.abc import Callable

import numpy as np

from leamvd._support import checks
from leamvd._support.compile import Array

Objective = Callable[[Array], Array]
"""Takes points (m, n), returns their values (m,); lower is better."""


def sphere(X: Array) -> Array:
    """Return the sum of x_i^2 of every row."""
    return np.asarray((X**2).sum(axis=-1))


def ellipsoid(X: Array) -> Array:
    """Return the sum of 100^((i - 1)/(n - 1)) x_i^2 of every row: condition number 100."""
    return np.asarray((np.logspace(0, 2, X.shape[-1]) * X**2).sum(axis=-1))


def rosenbrock(X: Array) -> Array:
    """Return the sum of 100 (y_(i+1) - y_i^2)^2 + (1 - y_i)^2 of every row, y = x + 1: the optimum is zero."""
    Y = X + 1
    return np.asarray((100 * (Y[..., 1:] - Y[..., :-1] ** 2) ** 2 + (1 - Y[..., :-1]) ** 2).sum(axis=-1))


def rastrigin(X: Array) -> Array:
    """Return the sum of x_i^2 + 10 (1 - cos 2 pi x_i) of every row: local optima near all integers."""
    return np.asarray((X**2 + 10 * (1 - np.cos(2 * np.pi * X))).sum(axis=-1))


def ackley(X: Array) -> Array:
    """Return Ackley's function of every row: local optima near all integers on a funnel that flattens outward."""
    bowl, waves = np.sqrt((X**2).mean(axis=-1)), np.cos(2 * np.pi * X).mean(axis=-1)
    return np.asarray(20 - 20 * np.exp(-0.2 * bowl) + np.e - np.exp(waves))


FUNCTIONS: dict[str, Objective] = {f.__name__: f for f in (sphere, ellipsoid, rosenbrock, rastrigin, ackley)}
"""All have their minimum, zero, at zero."""

USUAL = ("sphere", "ellipsoid", "rosenbrock", "rastrigin")
"""Those that readings and longer searches are compared on."""

BBOB = "bbob-f"
"""How names of functions of the suite bbob-largescale begin."""

LIMIT = 5.0
"""Start solutions are drawn within [-5, 5]^n, optima within four fifths of that."""


def problem(name: str, n_var: int, seed: int) -> tuple[Array, Objective]:
    """Return a start solution, uniform in [-5, 5]^n, and a function whose optimum was moved into [-4, 4]^n.

    Both are the same for all methods of a seed: so factors that shrink coordinates toward zero bring nothing.
    "bbob-f10", say, is a function of COCO's suite bbob-largescale (Varelas et al. 2018), its instance seed + 1.
    """
    rng = np.random.default_rng([seed, n_var])
    x0, optimum = rng.uniform(-LIMIT, LIMIT, n_var), rng.uniform(-0.8 * LIMIT, 0.8 * LIMIT, n_var)
    if name.startswith(BBOB):
        return x0, _bbob(int(name.removeprefix(BBOB)), n_var, seed + 1)
    return x0, lambda X: FUNCTIONS[name](X - optimum)


def _bbob(function: int, n_var: int, instance: int) -> Objective:
    checks.needs("functions of bbob-largescale", "bench", "cocoex")
    import cocoex

    own = cocoex.Suite("bbob-largescale", "", f"dimensions:{n_var}").get_problem_by_function_dimension_instance(
        function, n_var, instance
    )
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # COCO tells the optimum in a file alone
        own._best_parameter("print")
        least = own(np.loadtxt("._bbob_problem_best_parameter.txt"))
    return lambda X: np.array([own(x) for x in X]) - least
