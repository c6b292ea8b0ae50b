"""LEA-MVD's variants on test functions, and what C_ani does there: whether an effect is one of images alone."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, cast

import pandas as pd

from leamvd._support import checks
from leamvd.campaign import archive
from leamvd.campaign.jobs import Job, Planned, Step, Table
from leamvd.campaign.run import run_tables
from leamvd.campaign.store import place
from leamvd.data.functions import FUNCTIONS, USUAL
from leamvd.data.images import Dataset, Images
from leamvd.experiments.layers import TrainLayer
from leamvd.experiments.methods import Method
from leamvd.experiments.search_directions import followed
from leamvd.experiments.searches import FunctionSearch, generations
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.reading import Reading
from leamvd.studies.study import Study, images

COLUMNS = ["function", "n_var", "method", "seed", "evaluations", "best"]
"""Of a table of runs: the values told, and the lowest."""

RECORDED = "readings_functions"
"""Name of what is recorded."""

PLANS: dict[str, dict[str, Any]] = {
    "quick": {"sizes": (20,), "budget": 600},
    "paper": {"sizes": (100, 1000), "budget": 10_000},
}
"""What is run, by profile, see `searches`; profiles without an entry run nothing."""


def applicable(methods: Sequence[str]) -> list[str]:
    """Return those of a study's methods that are LEA-MVD, with settings that can act on a function.

    The number of generations is that of the budget: a method that differs in it alone from another one is left out.
    """
    found: dict[Method, str] = {}
    for text in methods:
        method = Method.parse(text)
        names = {name for name, _ in method.settings}
        if method.trainer == "lea-mvd" and "x0_epochs" not in names and ("x0", "batch") not in method.settings:
            found.setdefault(method.without("n_gen"), text)
    return list(found.values())


def searches(study: Study, *, sizes: Sequence[int], budget: int, functions: Sequence[str] = USUAL) -> Table:
    """Return the searches by those of a study's methods that are `applicable`, with the study's seeds.

    They are in double precision. Sizes are numbers of variables, and the budget counts evaluations of a search.
    """
    checks.integer("budget", budget, at_least=study.reading.population_size)
    for n_var in sizes:
        checks.integer("sizes", n_var, at_least=2)
    for name in functions:
        checks.choice("functions", name, tuple(FUNCTIONS))
    given: dict[str, dict[str, Any]] = {}
    for text in applicable(study.methods):
        method, training, reading = study.settings_of(text)
        reading = dataclasses.replace(reading, n_gen=Reading.n_gen)
        given[text] = {"trainer": method.trainer, "training": training, "reading": reading, "marks": (budget,)}
    jobs = {
        (name, n_var, method, seed): FunctionSearch(function=name, n_var=n_var, seed=seed, **own)
        for n_var, name, (method, own), seed in product(sizes, functions, given.items(), study.seeds)
    }
    return Table(COLUMNS[:4], jobs, "n_var", lambda rows: rows[COLUMNS])


def chosen(profile: str, sizes: Sequence[int] | None = None, budget: int | None = None) -> dict[str, Any]:
    """Return the profile's plan of `PLANS` with what is given in its place; without sizes nothing is run."""
    given = {"sizes": sizes, "budget": budget}
    base: dict[str, Any] = PLANS.get(profile, {"sizes": (), "budget": PLANS["paper"]["budget"]})
    return base | {name: value for name, value in given.items() if value is not None}


def on_functions(
    study: Study, output: str | Path, profile: str, sizes: Sequence[int] | None = None, budget: int | None = None
) -> pd.DataFrame:
    """Return the `searches` that are `chosen`, with `COLUMNS`; of a study that is recorded, what is recorded."""
    if study.archived:
        archive.fixed(sizes=sizes, budget=budget)
        return archive.read(RECORDED)
    planned = chosen(profile, sizes, budget)
    if not planned["sizes"] or not applicable(study.methods):
        return pd.DataFrame(columns=COLUMNS).astype({"n_var": int, "seed": int, "best": float})
    return run_tables({"runs": searches(study, **planned)}, place(output), label="functions")["runs"]


# ---- what C_ani does in whole runs (C11)

LAYER = "RBM 1"
"""The problem that is the first layer."""

FOLLOWED = ["problem", "seed", "generations", "share", "none", "against"]
"""Of a table of runs, see `Follow`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Follow(Job):
    """A run of LEA-MVD, from the first generation on in which there is a path P.

    Its row has the number of generations; `share`, percent that the step along C_ani has of the lengths of both parts
    of v, (1 - beta_2) mu_ani C_ani and beta_2 P, in the mean over generations; `none`, percent of the generations whose
    beta_2 is 1, so that C_ani has no weight at all; and `against`, percent of the generations in which C_ani has a
    negative inner product with P. Only C_hat is orthogonal to P; C_ani averages it over generations whose P were others
    (item R9).
    """

    search: TrainLayer | FunctionSearch  # the run, of a first layer or on a function

    @property
    def name(self) -> str:
        """For a reader."""
        return f"follow-{self.search.name}"

    def steps(self, data: Any, *_: Any) -> Iterator[Step]:
        """Yield the run."""
        opt, objective = self.search.start(data)
        run = generations(cast(LEAMVD, opt), objective, getattr(self.search, "budget", math.inf))
        own = followed({self.search.seed: run})
        own = own[own["descent_path"].notna()]
        row = {
            "generations": len(own),
            "share": 100 * own["descent_share"].mean(),
            "none": 100 * (own["beta2"] == 1).mean(),
            "against": 100 * (own["descent_path"] < 0).mean(),
        }
        yield Step(1, [row], {}, True)


def followed_runs(study: Study, data: Dataset, **plan: Any) -> Table:
    """Return the runs of a study's LEA-MVD on its first layer, and on the functions of a plan, see `searches`."""
    given = Images.of(data)
    jobs: dict[tuple[Any, ...], Follow] = {
        (LAYER, seed): Follow(search=study.stack("lea-mvd", seed, given)[0]) for seed in study.seeds
    }
    if plan:
        alone = searches(dataclasses.replace(study, methods=("lea-mvd",)), **plan).jobs
        jobs |= {
            (f"{name}, n = {n:,}", seed): Follow(search=cast(FunctionSearch, job))
            for (name, n, _, seed), job in alone.items()
        }
    return Table(FOLLOWED[:2], jobs, "generations", lambda rows: rows[FOLLOWED])


def planned(study: Study, **plan: Any) -> list[Planned]:
    """Return what is recorded of a plan: "runs", and "directions" with functions of the first size."""
    data, smallest = images(study), {**plan, "sizes": plan["sizes"][:1]}
    tables = {"runs": searches(study, **plan), "directions": followed_runs(study, data, **smallest)}
    return [Planned(tables, data)]


def followed_on_page(study: Study, output: str | Path) -> pd.DataFrame:
    """Return the runs of a study on its first layer; of one that is recorded, what is recorded, functions too."""
    if study.archived:
        return archive.read(RECORDED, "directions")
    data = images(study)
    return run_tables({"": followed_runs(study, data)}, place(output), data=data, label="directions")[""]
