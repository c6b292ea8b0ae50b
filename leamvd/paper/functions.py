"""Test functions of any number of variables, and LEA-MVD on them: what an experiment on networks is held against."""

import hashlib
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.paper import records, versions
from leamvd.paper.studies import Study
from leamvd.paper.units import read_table

Method = TypeVar("Method", bound=Optimizer)

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


FUNCTIONS: dict[str, Objective] = {f.__name__: f for f in (sphere, ellipsoid, rosenbrock, rastrigin)}
"""All have their minimum, zero, at zero."""

LIMIT = 5.0
"""Start solutions are drawn within [-5, 5]^n, optima within four fifths of that."""

WIDTH = 10.0
"""What the weights of a network are multiplied by for the size of a function's variables: sigma0 = 0.1 becomes 1."""

COLUMNS = ["function", "n_var", "method", "seed", "evaluations", "best"]
"""Of a table of runs: the values told, and the lowest."""

_ABSENT = ("x0=batch", "x0_epochs", "n_gen")
"""Settings that a function knows nothing of; the number of generations is that of its budget."""


def applicable(methods: Sequence[str]) -> list[str]:
    """Return those of a study's methods that are LEA-MVD, with settings that can act on a function."""
    return [
        method
        for method in methods
        if method.partition(":")[0] == "lea-mvd" and not method.partition(":")[2].startswith(_ABSENT)
    ]


def problem(name: str, n_var: int, seed: int) -> tuple[Array, Objective]:
    """Return a start solution, uniform in [-5, 5]^n, and a function whose optimum was moved into [-4, 4]^n.

    Both are the same for all methods of a seed: so factors that shrink coordinates toward zero bring nothing.
    """
    rng = np.random.default_rng([seed, n_var])
    x0, optimum = rng.uniform(-LIMIT, LIMIT, n_var), rng.uniform(-0.8 * LIMIT, 0.8 * LIMIT, n_var)
    return x0, lambda X: FUNCTIONS[name](X - optimum)


def search(study: Study, method: str, name: str, n_var: int, seed: int, budget: int) -> tuple[LEAMVD, Objective]:
    """Return the optimizer that a method of a study is on a function of `n_var` variables, and the `problem`.

    Initialization (A) draws in [-5, 5]^n.
    """
    x0, objective = problem(name, n_var, seed)
    training, reading = study.training_of(method), study.reading_of(method)
    start: dict[str, Any] = {"bounds": (-LIMIT, LIMIT), "n_var": n_var} if training.x0 == "none" else {"x0": x0}
    opt = LEAMVD(
        **start,
        sigma0=WIDTH * training.sigma0,
        n_elite=training.n_elite,
        n_gen=budget,
        seed=seed,
        reading=reading,
    )
    return opt, objective


def generations(opt: Method, objective: Objective, budget: float = math.inf) -> Iterator[Method]:
    """Yield an optimizer after each of its generations, until it stops or the next one would exceed the budget."""
    while not opt.stop() and opt.nfev + opt.n_candidates <= budget:
        X = opt.ask()
        opt.tell(X, objective(X))
        yield opt


def run(
    study: Study,
    output: str | Path,
    *,
    sizes: Sequence[int],
    budget: int,
    functions: Sequence[str] = tuple(FUNCTIONS),
    jobs: int = 1,
) -> pd.DataFrame:
    """Run those of a study's methods that can be, on functions, with the study's seeds.

    What is computed is stored in `output` for each function and number of variables and method, and not computed again.

    Parameters
    ----------
    study : Study
        Gives methods, with their readings and settings, and seeds; all runs are in double precision.
    output : path
        Folder.
    sizes : sequence of int
        Numbers of variables.
    budget : int
        Evaluations of a run, at least those of a population.
    functions : sequence of str
        Of `FUNCTIONS`.
    jobs : int
        Processes.

    Returns
    -------
    DataFrame
        A row for each run: `COLUMNS`.
    """
    checks.integer("budget", budget, at_least=study.reading.population_size)
    for n_var in sizes:
        checks.integer("sizes", n_var, at_least=2)
    for name in functions:
        checks.choice("functions", name, tuple(FUNCTIONS))
    depends_on = repr((study.training, study.reading, study.seeds, _code()))
    folder = Path(output) / f"functions-{hashlib.sha256(depends_on.encode()).hexdigest()[:16]}"
    folder.mkdir(parents=True, exist_ok=True)
    work = (
        joblib.delayed(_piece)(study, folder, name, n_var, method, budget)
        for n_var in sizes
        for name in functions
        for method in applicable(study.methods)
    )
    tables: list[pd.DataFrame] = joblib.Parallel(n_jobs=jobs)(work)
    return pd.concat(tables, ignore_index=True)


def _piece(study: Study, folder: Path, name: str, n_var: int, method: str, budget: int) -> pd.DataFrame:
    """Return the runs of one method on one function, from the folder where they are there."""
    own = re.sub(r"[^\w.=+-]+", "-", method)
    file = folder / f"{name}-{n_var}-{budget}-{own}.csv"
    if file.is_file():
        return read_table(file)
    rows = []
    for seed in study.seeds:
        opt, objective = search(study, method, name, n_var, seed, budget)
        for _ in generations(opt, objective, budget):
            pass
        rows.append((name, n_var, method, seed, opt.nfev, opt.result.fun))
    table = pd.DataFrame(rows, columns=COLUMNS)
    records.write_table(file, table)
    return table


def _code() -> str:
    return versions.code(versions.PACKAGE, ("_support", "optimizers", "paper/functions.py"))


def provenance(study: Study, *, sizes: Sequence[int], budget: int) -> str:
    """Return what a recorded table must be read with, as JSON."""
    known = {
        "methods": {method: records.settings(study, method) for method in applicable(study.methods)},
        "seeds": study.seeds,
        "sizes": list(sizes),
        "budget": budget,
        "code": _code(),
        "commit": versions.commit(),
        "versions": versions.packages(),
    }
    return json.dumps(known, indent=2) + "\n"
