"""Searches that go on where the paper's end: how far LEA-MVD comes beside CMA-ES, on functions and on an RBM."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from leamvd.campaign import archive
from leamvd.campaign.jobs import Job, Result, rows
from leamvd.campaign.run import run as compute
from leamvd.campaign.store import place
from leamvd.data.functions import FUNCTIONS
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments.methods import Method
from leamvd.experiments.searches import FunctionSearch, LayerSearch
from leamvd.networks.dbn import Training
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers.minimize import METHODS
from leamvd.optimizers.reading import Reading

RECORDED = "longer_searches"
"""Name of what is recorded."""

COMPARED = (*METHODS, "lea-mvd:reset=off")
"""What is run on each problem; the last, without item R13, was added after searches had been seen to stand still."""

SEEDS = tuple(range(10))

MARKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
"""Evaluations for each variable after which searches are looked at."""

RBM_1 = "RBM 1"
"""The problem that is the first RBM at 7 x 7 pixels, on 10,000 images of MNIST; others are functions."""

N_HIDDEN = 30
"""Of that RBM."""

PROBLEMS: dict[str, Sequence[float]] = {f"{name}, n = {n:,}": MARKS for n in (100, 1_000) for name in FUNCTIONS}
PROBLEMS[RBM_1] = MARKS[:5]
"""Marks of each problem: on the RBM, whose evaluations take long, searches end after ten for each variable."""

QUICK: dict[str, Sequence[float]] = {f"{name}, n = 20": MARKS[:6] for name in ("sphere", "rastrigin")}
"""Problems of the profile "quick", and their marks; three seeds each."""

COLUMNS = ["problem", "method", "seed", "mark", "evaluations", "best"]
"""Of a table of searches: `mark` is of `MARKS`, `evaluations` what had been made by then, `best` the lowest value."""


class Search(NamedTuple):
    """What the rows of a search are labeled with."""

    problem: str
    method: str
    seed: int


def images() -> Dataset:
    """Return what the RBM sees."""
    return load("mnist", side=7, n_train=10_000)


def jobs(
    data: Dataset | None,
    *,
    problems: Mapping[str, Sequence[float]] = PROBLEMS,
    methods: Sequence[str] = COMPARED,
    seeds: Sequence[int] = SEEDS,
) -> dict[Search, FunctionSearch | LayerSearch]:
    """Return the searches: all methods have LEA-MVD's population size, and are scored by their best point.

    On functions the start solutions are those of `leamvd.data.functions.problem`, and the first standard deviation is
    1; on the RBM one epoch of contrastive divergence and 0.1, as in the paper's experiments. A search that ends by
    itself, as pycma's may, keeps its best value.

    Parameters
    ----------
    data : Dataset or None
        What the RBM sees, see `images`; None where it is not among the problems.
    problems : mapping of str to sequence of float
        Evaluations for each variable after which a problem's searches are looked at.
    methods : sequence of str
        See `leamvd.experiments.methods.Method`.
    seeds : sequence of int
        Of problems and searches.
    """
    found: dict[Search, FunctionSearch | LayerSearch] = {}
    for name, marks in problems.items():
        for text in methods:
            method = Method.parse(text)
            own: dict[str, Any] = {"trainer": method.trainer, "training": method.training(Training())}
            own["reading"] = method.reading(Reading())
            for seed in seeds:
                if name == RBM_1 and data is not None:
                    budgets = _evaluations(marks, n_parameters(data.train.shape[1], N_HIDDEN))
                    given: dict[str, Any] = {
                        "images": Images.of(data),
                        "n_hidden": N_HIDDEN,
                        "marks": budgets,
                        "seed": seed,
                    }
                    found[Search(name, text, seed)] = LayerSearch(**own, **given)
                else:
                    function, _, size = name.partition(", n = ")
                    n_var = int(size.replace(",", ""))
                    found[Search(name, text, seed)] = FunctionSearch(
                        **own, function=function, n_var=n_var, marks=_evaluations(marks, n_var), seed=seed
                    )
    return found


def _evaluations(marks: Sequence[float], n_var: int) -> tuple[int, ...]:
    return tuple(round(mark * n_var) for mark in marks)


def on_page(profile: str, output: str | Path) -> pd.DataFrame:
    """Return the searches of a profile: read with "recorded", of all `PROBLEMS` with "paper", else of `QUICK`."""
    if profile == "recorded":
        return archive.read(RECORDED)
    if profile == "paper":
        return run(place(output))
    return run(place(output), problems=QUICK, seeds=SEEDS[:3])


def run(output: str | Path, *, n_jobs: int | None = 1, progress: bool = True, **chosen: Any) -> pd.DataFrame:
    """Run what `jobs` returns, and return a row for each search and mark, with `COLUMNS`."""
    problems = chosen.get("problems", PROBLEMS)
    data = images() if RBM_1 in problems else None
    searches = jobs(data, **chosen)
    found = compute(searches.values(), output, data=data, label="longer searches", n_jobs=n_jobs, progress=progress)
    return table(problems, searches, found)


def table(
    problems: Mapping[str, Sequence[float]], searches: Mapping[Search, Job], found: Mapping[Job, Result]
) -> pd.DataFrame:
    """Return a row for each search and mark, with `COLUMNS`."""
    joined = rows(searches, found)
    position = joined.groupby(list(Search._fields)).cumcount()
    joined["mark"] = [problems[name][at] for name, at in zip(joined["problem"], position, strict=True)]
    return joined[COLUMNS]
