"""Can LEA-MVD escape from local minima (C13)? Searches that start where L-BFGS-B has ended: on functions, of RBMs."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import optimize

from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.campaign import archive
from leamvd.campaign.jobs import Job, Planned, Result, Step, Table
from leamvd.campaign.run import run_planned
from leamvd.campaign.store import place
from leamvd.data import functions
from leamvd.data.functions import MULTIMODAL, Objective
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments.methods import Method
from leamvd.experiments.searches import generations
from leamvd.networks.dbn import EXPERIMENT, Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective, error_and_gradient
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.methods import optimizer, packages
from leamvd.optimizers.reading import Reading

PLANS: dict[str, dict[str, Any]] = {
    "quick": {
        "functions": ("rastrigin", "griewank"),
        "sizes": (2, 10),
        "methods": ("lea-mvd", "sep-cma-es", "random"),
        "sigmas": (0.1, 0.3),
        "seeds": tuple(range(2)),
        "rbms": {"dataset": "digits", "methods": ("lea-mvd",), "seeds": (0,)},
    },
    "paper": {
        "functions": tuple(MULTIMODAL),
        "sizes": (2, 5, 10, 20, 50),
        "methods": ("lea-mvd", "lea-mvd:printed", "lea-mvd:recommended", "cma-es", "sep-cma-es", "random"),
        "sigmas": (0.01, 0.1, 0.3),
        "seeds": tuple(range(30)),
        "rbms": {"dataset": "mnist", "methods": ("lea-mvd",), "seeds": tuple(range(30))},
    },
}
"""What is searched, by profile: functions, and RBMs with images of a data set."""

LBFGS = {"ftol": 0.0, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 40_000}
"""Options of SciPy's L-BFGS-B: it ends where rounding or the gradient stops it, not before."""

TOLERANCE = 1e-6
"""Part by which a search must end lower to have escaped: of a function's mean over its domain, or of an RBM's error."""


# ---- functions

EARLY, BUDGET = 1_000, 5_000
"""Evaluations of a search of the paper, about, and of the searches here."""

TRIES = 100
"""Points at most from which L-BFGS-B looks for a minimum that is not the global one."""

LABELS, LINE = ("function", "n_var", "method", "seed"), "sigma0"
"""Columns that name a job, and its row."""

COLUMNS = [*LABELS, LINE, "start", "tolerance", "early", "end", "best", "evaluations"]
"""Of a table of searches, see `Escape`."""


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
        """Those of the optimizer."""
        return packages(Method.parse(self.method).trainer)

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


# ---- RBMs

N_IMAGES, N_HIDDEN, EPOCHS = 200, 5, 50
"""Of the RBMs; the last one is how long contrastive divergence trains them."""

ROUND = 2_000
"""Evaluations after which L-BFGS begins anew, until it gains less than the tolerance: weights would grow forever."""

STARTS = ("cd", "l-bfgs")
"""Where a search starts: where contrastive divergence has ended, or where L-BFGS ends from there."""

RBM_COLUMNS = [
    "method", "seed", "start", "n_var", "error", "gradient", "least", "most", "tolerance", "without", "best", "end",
]  # fmt: skip
"""Of a table of RBMs, see `EscapeFromTraining`."""


def curvatures(theta: Array, V: Array, n_hidden: int) -> Array:
    """Return the eigenvalues of the error's Hessian in ascending order, by central differences of gradients."""
    step = 1e-4
    steps = step * np.eye(len(theta))
    after, before = (
        np.array([error_and_gradient(theta + sign * y, V, n_hidden)[1] for y in steps]) for sign in (1, -1)
    )
    H = (after - before) / (2 * step)
    return np.asarray(np.linalg.eigvalsh((H + H.T) / 2))


def descend_rbm(theta: Array, V: Array, n_hidden: int) -> tuple[Array, float]:
    """Return where L-BFGS ends from an RBM, and the error there."""
    before = np.inf
    while True:
        found = optimize.minimize(  # type: ignore[call-overload]  # its stubs know no further arguments
            error_and_gradient, theta, (V, n_hidden), jac=True, method="L-BFGS-B", options=LBFGS | {"maxfun": ROUND}
        )
        theta, now = found.x, float(found.fun)
        if now >= before - TOLERANCE * now:
            return theta, now
        before = now


@dataclasses.dataclass(frozen=True, kw_only=True)
class EscapeFromTraining(Job):
    """The paper's search of an RBM from each of `STARTS`.

    A row has the error there, the gradient's norm and the outer eigenvalues of the Hessian; the error `without` a
    search, which L-BFGS reaches from there; the `best` of the search, and the `end` that L-BFGS makes of it.
    """

    images: Images
    n_hidden: int
    epochs: int
    method: str
    seed: int

    @property
    def name(self) -> str:
        """For a reader."""
        return f"escape-{self.method.replace(':', '-')}-layer1-seed{self.seed}"

    def steps(self, data: Dataset, *_: Any) -> Iterator[Step]:
        """Yield both searches."""
        V = data.train.astype(np.float64)
        method, objective = Method.parse(self.method), ReconstructionObjective(V, self.n_hidden)
        training, reading = method.training(Training(dtype="float64")), method.reading(EXPERIMENT)
        trainer = training.contrastive_divergence(V, self.n_hidden, seed=layer_seed(self.seed, 1))
        trainer.fit(self.epochs)
        theta = trainer.rbm.flat()
        rows = []
        for start in STARTS:
            with one_blas_thread():
                here, gradient = error_and_gradient(theta, V, self.n_hidden)
                values = curvatures(theta, V, self.n_hidden)
                lower, without = descend_rbm(theta, V, self.n_hidden)
            opt = training.optimizer(method.trainer, theta, reading=reading, seed=self.seed)
            for _generation in generations(opt, objective):
                pass
            with one_blas_thread():
                end = descend_rbm(opt.result.x, V, self.n_hidden)[1]
            rows.append(
                {"start": start, "n_var": len(theta), "error": here, "gradient": float(np.linalg.norm(gradient)),
                 "least": values[0], "most": values[-1], "tolerance": TOLERANCE * here, "without": without,
                 "best": opt.best_fun, "end": end}
            )  # fmt: skip
            theta = lower
        yield Step(1, rows, {}, True)


def trained(data: Dataset, *, methods: Sequence[str], seeds: Sequence[int]) -> Table:
    """Return the searches of RBMs."""
    given: dict[str, Any] = {"images": Images.of(data), "n_hidden": N_HIDDEN, "epochs": EPOCHS}
    jobs = {
        (method, seed): EscapeFromTraining(method=method, seed=seed, **given)
        for method, seed in product(methods, seeds)
    }
    return Table(RBM_COLUMNS[:2], jobs, "start", lambda rows: rows[RBM_COLUMNS])


# ---- both


def planned(*, rbms: Mapping[str, Any], **plan: Any) -> list[Planned]:
    """Return the searches of a plan, see `PLANS`: "runs" on functions, and "rbms"."""
    data = load(rbms["dataset"], side=7, n_train=N_IMAGES, dtype="float64")
    of_rbms = trained(data, methods=rbms["methods"], seeds=rbms["seeds"])
    return [Planned({"runs": searches(**plan), "rbms": of_rbms}, data)]


def on_page(profile: str, output: str | Path) -> dict[str, pd.DataFrame]:
    """Return the tables that a profile has planned; with "recorded" they are read."""
    if profile == "recorded":
        return {table: archive.read("local_minima", table) for table in ("runs", "rbms")}
    return run_planned(planned(**PLANS[profile]), place(output), label="local minima")
