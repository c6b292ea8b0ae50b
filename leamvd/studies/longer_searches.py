"""Searches that go on where the paper's end: how far LEA-MVD comes beside CMA-ES, on functions and on an RBM."""

import time
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leamvd.campaign import archive
from leamvd.campaign.jobs import Planned, Table
from leamvd.campaign.run import run_planned
from leamvd.campaign.store import place
from leamvd.data.functions import BBOB, USUAL
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments.methods import Method
from leamvd.experiments.searches import FunctionSearch, LayerSearch
from leamvd.networks.dbn import Training
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers.methods import METHODS
from leamvd.optimizers.reading import Reading

COMPARED = (*METHODS, "lea-mvd:reset=off")
"""What is run on each problem; the last, without item R13, was added after searches had been seen to stand still."""

MARKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
"""Evaluations for each variable after which searches are looked at."""

RBM_1 = "RBM 1"
"""The problem that is the first RBM at 7 x 7 pixels, on 10,000 images of MNIST; others are functions."""

LARGE_RBM_1 = "RBM 1, 28×28"
"""The one at 28 x 28 pixels, on 1,000 images."""

RBMS = {RBM_1: 30, LARGE_RBM_1: 500}
"""Their hidden units."""

_LARGE = [f"{name}, n = {n:,}" for n in (100, 1_000) for name in USUAL]
PLANS: dict[str, dict[str, Any]] = {
    "quick": {
        "problems": dict.fromkeys(("sphere, n = 20", "rastrigin, n = 20"), MARKS[:6]),
        "methods": COMPARED,
        "seeds": tuple(range(3)),
    },
    "paper": {
        "problems": {**dict.fromkeys(_LARGE, MARKS), RBM_1: MARKS[:5]},
        "methods": COMPARED,
        "seeds": tuple(range(10)),
    },
}
"""Marks of each problem, methods and seeds, by profile; on the RBM, whose evaluations take long, searches end early."""

SEPARABLE = tuple(f"sep-cma-es:population_size={size}" for size in (6, 8, 12, 16, 24, 48))
"""Separable CMA-ES as it was tuned beside."""

CANDIDATES = (
    *(
        f"lea-mvd:population_size={size}+exponent={exponent}+reset={reset}"
        for size in (8, 12, 24)
        for exponent in (1.5, 3, 5)
        for reset in (1, "initial", "off")
    ),
    *SEPARABLE,
)
"""What the recommended preset was chosen from, and separable CMA-ES beside it."""

DEVELOPMENT: dict[str, Any] = {
    "problems": {
        f"{name}, n = {n:,}": marks
        for n, marks in {100: (1, 10, 100), 1_000: (1, 10), 10_000: (1,)}.items()
        for name in ("ellipsoid", "rosenbrock", "ackley")
    }
    | {RBM_1: (1, 10)},
    "methods": CANDIDATES,
    "seeds": (0, 1, 2),
    "dataset": "digits",
}
"""The problems that it was chosen on, see `PLANS`, and what the RBM sees."""

JUDGED: dict[str, Any] = {
    "problems": {
        f"{name}, n = {n:,}": MARKS[:last]
        for names, sizes in (
            (("sphere", "rastrigin"), {100: 8, 1_000: 5, 10_000: 2}),
            ([f"{BBOB}{number}" for number in (8, 10, 12, 15, 17, 24)], {160: 8, 640: 5}),
        )
        for n, last in sizes.items()
        for name in names
    }
    | {RBM_1: MARKS[:3], LARGE_RBM_1: (0.001, 0.0025)},
    "methods": ("lea-mvd:recommended", "lea-mvd", "lea-mvd:printed", *SEPARABLE[3:5], "random"),
    "seeds": tuple(range(5)),
}
"""The problems that the preset is judged on, none of which it was chosen on."""

COLUMNS = ["problem", "method", "seed", "mark", "evaluations", "best"]
"""Of a table of searches: `mark` is of `MARKS`, `evaluations` what had been made by then, `best` the lowest value."""


def images(problem: str, dataset: str = "mnist") -> Dataset:
    """Return what one of `RBMS` sees: of MNIST so many images, of another data set all."""
    side, n_train = (28, 1_000) if problem == LARGE_RBM_1 else (7, 10_000)
    return load(dataset, side=side, n_train=n_train if dataset == "mnist" else None)


def searches(
    data: Dataset | None, *, problems: Mapping[str, Sequence[float]], methods: Sequence[str], seeds: Sequence[int]
) -> Table:
    """Return the searches: all methods have LEA-MVD's population size, and are scored by their best point.

    On functions the start solutions are those of `leamvd.data.functions.problem`, and the first standard deviation is
    1; on the RBM one epoch of contrastive divergence and 0.1, as in the paper's experiments. A search that ends by
    itself, as pycma's may, keeps its best value. `data` is what the RBM sees, if it is among the problems.
    """
    jobs: dict[tuple[Any, ...], FunctionSearch | LayerSearch] = {}
    for (problem, marks), text, seed in product(problems.items(), methods, seeds):
        own = Method.parse(text)
        kind: type[FunctionSearch | LayerSearch] = FunctionSearch
        given: dict[str, Any] = {"trainer": own.trainer, "training": own.training(Training()), "seed": seed}
        if data is not None and problem in RBMS:
            n_var = n_parameters(data.train.shape[1], RBMS[problem])
            kind, given = LayerSearch, given | {"images": Images.of(data), "n_hidden": RBMS[problem]}
        else:
            function, _, size = problem.partition(", n = ")
            n_var = int(size.replace(",", ""))
            given |= {"function": function, "n_var": n_var}
        evaluations = tuple(round(mark * n_var) for mark in marks)
        jobs[problem, text, seed] = kind(**given, reading=own.reading(Reading()), marks=evaluations)

    def arranged(rows: pd.DataFrame) -> pd.DataFrame:
        position = rows.groupby(COLUMNS[:3]).cumcount()
        rows["mark"] = [problems[name][at] for name, at in zip(rows["problem"], position, strict=True)]
        return rows[COLUMNS]

    return Table(COLUMNS[:3], jobs, "mark", arranged)


def seconds(text: str, n_var: int) -> float:
    """Return the time that a method needs for an evaluation, without that of the function, over 100 generations."""
    method = Method.parse(text)
    training, reading = method.training(Training(dtype="float64")), method.reading(Reading(n_gen=100))
    opt = training.optimizer(method.trainer, np.zeros(n_var), reading=reading, seed=0)
    began = time.perf_counter()
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, X[:, 0])
    return (time.perf_counter() - began) / opt.nfev


def planned(*, problems: Mapping[str, Sequence[float]], dataset: str = "mnist", **plan: Any) -> list[Planned]:
    """Return the searches of a plan, see `PLANS`, "runs": those on the larger of `RBMS` apart from all others."""
    large = {name: marks for name, marks in problems.items() if name == LARGE_RBM_1}
    others = {name: marks for name, marks in problems.items() if name != LARGE_RBM_1}
    found = []
    for rbm, own in ((RBM_1, others), (LARGE_RBM_1, large)):
        data = images(rbm, dataset) if rbm in own else None
        if own:
            found.append(Planned({"runs": searches(data, problems=own, **plan)}, data))
    return found


def on_page(profile: str, output: str | Path) -> pd.DataFrame:
    """Return the searches of a profile, with `COLUMNS`; with "recorded" they are read."""
    if profile == "recorded":
        return archive.read("longer_searches")
    return run_planned(planned(**PLANS[profile]), place(output), label="longer searches")["runs"]
