"""Can LEA-MVD escape from where a trained RBM has ended (C13)? Its searches after contrastive divergence and L-BFGS."""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import optimize

from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.campaign import archive
from leamvd.campaign.jobs import Job, Step, Table
from leamvd.campaign.run import run_tables
from leamvd.campaign.store import place
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments.escapes import LBFGS, TOLERANCE
from leamvd.experiments.methods import Method
from leamvd.experiments.searches import generations
from leamvd.networks.dbn import EXPERIMENT, Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective, error_and_gradient

PLANS: dict[str, dict[str, Any]] = {
    "quick": {"dataset": "digits", "methods": ("lea-mvd",), "seeds": tuple(range(2))},
    "paper": {"dataset": "mnist", "methods": ("lea-mvd",), "seeds": tuple(range(30))},
}
"""Images, methods and seeds, by profile."""

N_IMAGES, N_HIDDEN, EPOCHS = 200, 5, 50
"""Of the RBMs; the last one is how long contrastive divergence trains them."""

ROUND = 2_000
"""Evaluations after which L-BFGS begins anew, until it gains less than the tolerance: weights would grow forever."""

STARTS = ("cd", "l-bfgs")
"""Where a search starts: where contrastive divergence has ended, or where L-BFGS ends from there."""

LABELS, LINE = ("method", "seed"), "start"
"""Columns that name a job, and its row."""

COLUMNS = [*LABELS, LINE, "n_var", "error", "gradient", "least", "most", "tolerance", "without", "best", "end"]
"""Of a table, see `EscapeFromTraining`."""


def curvatures(theta: Array, V: Array, n_hidden: int, step: float = 1e-4) -> Array:
    """Return the eigenvalues of that error's Hessian in ascending order, by central differences of gradients."""
    steps = step * np.eye(len(theta))
    after, before = (
        np.array([error_and_gradient(theta + sign * y, V, n_hidden)[1] for y in steps]) for sign in (1, -1)
    )
    H = (after - before) / (2 * step)
    return np.asarray(np.linalg.eigvalsh((H + H.T) / 2))


def descend(theta: Array, V: Array, n_hidden: int) -> tuple[Array, float]:
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
                lower, without = descend(theta, V, self.n_hidden)
            opt = training.optimizer(method.trainer, theta, reading=reading, seed=self.seed)
            for _generation in generations(opt, objective):
                pass
            with one_blas_thread():
                end = descend(opt.result.x, V, self.n_hidden)[1]
            rows.append(
                {LINE: start, "n_var": len(theta), "error": here, "gradient": float(np.linalg.norm(gradient)),
                 "least": values[0], "most": values[-1], "tolerance": TOLERANCE * here, "without": without,
                 "best": opt.best_fun, "end": end}
            )  # fmt: skip
            theta = lower
        yield Step(1, rows, {}, True)


def searches(data: Dataset, *, methods: Sequence[str], seeds: Sequence[int]) -> Table:
    """Return the searches."""
    given: dict[str, Any] = {"images": Images.of(data), "n_hidden": N_HIDDEN, "epochs": EPOCHS}
    jobs = {
        (method, seed): EscapeFromTraining(method=method, seed=seed, **given)
        for method, seed in product(methods, seeds)
    }
    return Table(LABELS, jobs, LINE, lambda rows: rows[COLUMNS])


def images(dataset: str) -> Dataset:
    """Return what the RBMs see."""
    return load(dataset, side=7, n_train=N_IMAGES, dtype="float64")


def on_page(profile: str, output: str | Path) -> pd.DataFrame:
    """Return the searches of a profile, with `COLUMNS`; with "recorded" they are read."""
    if profile == "recorded":
        return archive.read("local_minima", "rbms")
    plan = PLANS[profile]
    data = images(plan["dataset"])
    table = searches(data, methods=plan["methods"], seeds=plan["seeds"])
    return run_tables({"": table}, place(output), data=data, label="trained minima")[""]
