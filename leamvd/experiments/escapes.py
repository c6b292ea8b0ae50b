"""Can LEA-MVD escape from local minima (C13)? Searches on functions that start where L-BFGS-B has ended."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize

from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.campaign import archive
from leamvd.campaign.jobs import Job, Result, Step, Table
from leamvd.campaign.run import run_tables
from leamvd.campaign.store import place
from leamvd.data import functions
from leamvd.data.functions import MULTIMODAL, Objective
from leamvd.experiments.methods import Method
from leamvd.experiments.searches import generations
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.methods import optimizer
from leamvd.optimizers.reading import Reading

TOLERANCE = 1e-6
"""By which part of a function's mean over its domain a search must end lower to have escaped."""

EARLY, BUDGET = 1_000, 5_000
"""Evaluations of a search of the paper, about, and of the searches here."""

TRIES = 100
"""Points at most from which L-BFGS-B looks for a minimum that is not the global one."""

PLANS: dict[str, dict[str, Any]] = {
    "quick": {
        "functions": ("rastrigin", "griewank"),
        "sizes": (2, 10),
        "methods": ("lea-mvd", "sep-cma-es", "random"),
        "sigmas": (0.1, 0.3),
        "seeds": tuple(range(4)),
    },
    "paper": {
        "functions": tuple(MULTIMODAL),
        "sizes": (2, 5, 10, 20, 50),
        "methods": ("lea-mvd", "lea-mvd:printed", "lea-mvd:recommended", "cma-es", "sep-cma-es", "random"),
        "sigmas": (0.01, 0.1, 0.3),
        "seeds": tuple(range(30)),
    },
}
"""What is searched, by profile."""

LABELS, LINE = ("function", "n_var", "method", "seed"), "sigma0"
"""Columns that name a job, and its row."""

COLUMNS = [*LABELS, LINE, "start", "tolerance", "early", "end", "best", "evaluations"]
"""Of a table of searches, see `Escape`."""

LBFGS = {"ftol": 0.0, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 40_000}
"""Options of SciPy's L-BFGS-B: it ends where rounding or the gradient stops it, not before."""


class Valley(NamedTuple):
    """A function on the unit cube, and a local minimum of it."""

    value: Objective
    gradient: Objective
    x: Array  # the minimum
    start: float  # its value
    tolerance: float

    def descend(self, x: Array) -> tuple[Array, float]:
        """Return where L-BFGS-B ends from a point, and the value there."""
        with one_blas_thread():
            found = optimize.minimize(  # type: ignore[call-overload]  # its stubs know no function of arrays
                self.value, x, jac=self.gradient, method="L-BFGS-B", bounds=[(0, 1)] * len(x), options=LBFGS
            )
        return found.x, float(found.fun)


def valley(function: str, n_var: int, seed: int) -> Valley | None:
    """Return a function of `MULTIMODAL`, its minimum moved, and the local minimum that the searches of a seed start at.

    That is where L-BFGS-B ends from a uniform point, the first from which it does not end at the global minimum; None
    where it ends there from all.
    """
    rng = np.random.default_rng([seed, n_var])
    value, gradient = functions.in_unit_cube(function, rng.uniform(0.1, 0.9, n_var))
    tolerance = TOLERANCE * float(value(rng.random((1_000, n_var))).mean())
    empty = Valley(value, gradient, np.empty(0), np.nan, tolerance)
    for _ in range(TRIES):
        x, start = empty.descend(rng.random(n_var))
        if start > tolerance:
            return empty._replace(x=x, start=start)
    return None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Escape(Job):
    """The searches of a method from a local minimum of a function, a row for each first standard deviation.

    `early` and `end` are what L-BFGS-B makes of the best points after `EARLY` and `BUDGET` evaluations; all are NaN
    where there is no local minimum to start from.
    """

    function: str  # of `leamvd.data.functions.MULTIMODAL`
    n_var: int
    method: str
    sigmas: tuple[float, ...]
    seed: int

    @property
    def name(self) -> str:
        """For a reader."""
        return f"escape-{self.method.replace(':', '-')}-{self.function}-{self.n_var}-seed{self.seed}"

    @property
    def iterations(self) -> int:
        """Searches."""
        return len(self.sigmas)

    @property
    def packages(self) -> tuple[str, ...]:
        """Those of CMA-ES."""
        return ("cma",) * self.method.endswith("cma-es")

    def steps(self, _data: Any, _needs: Sequence[Result], done: int, _arrays: Any) -> Iterator[Step]:
        """Yield the searches."""
        here = valley(self.function, self.n_var, self.seed)
        for number, sigma0 in enumerate(self.sigmas[done:], start=done + 1):
            row = dict.fromkeys(COLUMNS[len(LABELS) :], math.nan) | {LINE: sigma0}
            if here is not None:
                row |= self.search(here, sigma0)
            yield Step(number, [row], {}, number == len(self.sigmas))

    def search(self, here: Valley, sigma0: float) -> dict[str, float]:
        """Return what a search from a local minimum ends with."""
        opt, early = self.optimizer(here.x, sigma0), here.x
        for _ in generations(opt, here.value, BUDGET):
            early = opt.result.x if opt.nfev <= EARLY else early
        ends = {name: here.descend(x)[1] for name, x in (("early", early), ("end", opt.result.x))}
        known = {"start": here.start, "tolerance": here.tolerance}
        return known | ends | {"best": opt.best_fun, "evaluations": opt.nfev}

    def optimizer(self, x0: Array, sigma0: float) -> Optimizer:
        """Return the optimizer, in the unit cube and with its own population size: pycma's 4 + 3 ln n of CMA-ES."""
        method = Method.parse(self.method)
        own: dict[str, Any] = {}
        if method.trainer == "lea-mvd":
            own = {"reading": dataclasses.replace(method.reading(Reading()), limits="clip")}
        elif method.trainer.endswith("cma-es"):
            own = {"population_size": 4 + int(3 * math.log(self.n_var))}
        return optimizer(method.trainer, x0, bounds=(0, 1), sigma0=sigma0, n_gen=BUDGET, seed=self.seed, **own)


def searches(
    *,
    functions: Sequence[str],
    sizes: Sequence[int],
    methods: Sequence[str],
    sigmas: Sequence[float],
    seeds: Sequence[int],
) -> Table:
    """Return the searches; a job is those of a method and a seed, so that another method leaves the others stored."""
    jobs = {
        label: Escape(
            function=label[0], n_var=label[1], method=label[2], sigmas=tuple(map(float, sigmas)), seed=label[3]
        )
        for label in product(functions, sizes, methods, seeds)
    }
    return Table(LABELS, jobs, LINE, lambda rows: rows[COLUMNS])


def on_page(profile: str, output: str | Path) -> pd.DataFrame:
    """Return the searches of a profile, with `COLUMNS`; with "recorded" they are read."""
    if profile == "recorded":
        return archive.read("local_minima")
    return run_tables({"": searches(**PLANS[profile])}, place(output), label="local minima")[""]
