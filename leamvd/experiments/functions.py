"""LEA-MVD's variants on test functions, and what C_ani does there: whether an effect is one of images alone."""

import dataclasses
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import pandas as pd

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd.campaign import archive
from leamvd.campaign.jobs import Job, Result, Step, rows
from leamvd.campaign.run import run as compute
from leamvd.campaign.store import place
from leamvd.data.functions import FUNCTIONS
from leamvd.data.images import Dataset, Images
from leamvd.experiments.layers import TrainLayer
from leamvd.experiments.methods import Method
from leamvd.experiments.search_directions import followed
from leamvd.experiments.searches import FunctionSearch, generations
from leamvd.experiments.studies import Study, fixed, images
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.reading import Reading

COLUMNS = ["function", "n_var", "method", "seed", "evaluations", "best"]
"""Of a table of runs: the values told, and the lowest."""


RECORDED = "readings_functions"
"""Name of what is recorded."""

PLANS: dict[str, dict[str, Any]] = {
    "quick": {"sizes": (20,), "budget": 600},
    "paper": {"sizes": (100, 1000), "budget": 10_000},
}
"""What is run, by profile, see `run`; profiles without an entry run nothing."""


class Search(NamedTuple):
    """What the row of a search is labeled with."""

    function: str
    n_var: int
    method: str
    seed: int


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


def jobs(
    study: Study, *, sizes: Sequence[int], budget: int, functions: Sequence[str] = tuple(FUNCTIONS)
) -> dict[Search, FunctionSearch]:
    """Return the searches by those of a study's methods that are `applicable`, with the study's seeds.

    Parameters
    ----------
    study : Study
        Gives methods, with their readings and settings, and seeds; all searches are in double precision.
    sizes : sequence of int
        Numbers of variables.
    budget : int
        Evaluations of a search, at least those of a population.
    functions : sequence of str
        Of `leamvd.data.functions.FUNCTIONS`.
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
    return {
        Search(name, n_var, method, seed): FunctionSearch(function=name, n_var=n_var, seed=seed, **own)
        for n_var in sizes
        for name in functions
        for method, own in given.items()
        for seed in study.seeds
    }


def plan(profile: str, sizes: Sequence[int] | None = None, budget: int | None = None) -> dict[str, Any]:
    """Return the profile's plan of `PLANS` with what is given in its place; without sizes nothing is run."""
    given = {"sizes": sizes, "budget": budget}
    base: dict[str, Any] = PLANS.get(profile, {"sizes": (), "budget": PLANS["paper"]["budget"]})
    return base | {name: value for name, value in given.items() if value is not None}


def on_functions(
    study: Study, output: str | Path, profile: str, sizes: Sequence[int] | None = None, budget: int | None = None
) -> pd.DataFrame:
    """Run a study's methods on functions as the `plan` says, or read them where the study is recorded; see `run`."""
    if study.archived:
        fixed(sizes=sizes, budget=budget)
        return archive.read(RECORDED)
    planned = plan(profile, sizes, budget)
    if not planned["sizes"] or not applicable(study.methods):
        return pd.DataFrame(columns=COLUMNS).astype({"n_var": int, "seed": int, "best": float})
    return run(study, output, **planned)


def run(
    study: Study,
    output: str | Path,
    *,
    sizes: Sequence[int],
    budget: int,
    functions: Sequence[str] = tuple(FUNCTIONS),
    n_jobs: int | None = 1,
    progress: bool = True,
) -> pd.DataFrame:
    """Run what `jobs` returns, and return a row for each search, with `COLUMNS`."""
    searches = jobs(study, sizes=sizes, budget=budget, functions=functions)
    return table(searches, compute(searches.values(), output, label="functions", n_jobs=n_jobs, progress=progress))


def table(searches: Mapping[Search, Job], found: Mapping[Job, Result]) -> pd.DataFrame:
    """Return a row for each search, with `COLUMNS`."""
    return rows(searches, found)[COLUMNS]


# ---- what C_ani does in whole runs (C11)

LAYER = "RBM 1"
"""The problem that is the first layer."""

FOLLOWED = ["problem", "seed", "generations", "share", "none", "against"]
"""Of a table of runs, see `Follow`."""


class Followed(NamedTuple):
    """What the row of a run is labeled with."""

    problem: str
    seed: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Follow(Job):
    """A run of LEA-MVD, from the first generation on in which there is a path P.

    Its row has the number of generations; `share`, percent that the step along C_ani has of the lengths of both parts
    of v, (1 - beta_2) mu_ani C_ani and beta_2 P, in the mean over generations; `none`, percent of the generations whose
    beta_2 is 1, so that C_ani has no weight at all; and `against`, percent of the generations in which C_ani has a
    negative inner product with P. Only C_hat is orthogonal to P; C_ani averages it over generations whose P were others
    (item R9).

    Attributes
    ----------
    search : TrainLayer or FunctionSearch
        The run, of a first layer or on a function.
    """

    search: TrainLayer | FunctionSearch

    @property
    def name(self) -> str:
        """For a reader."""
        return f"follow-{self.search.name}"

    @property
    def iterations(self) -> int:
        """The whole run."""
        return 1

    def steps(self, data: Any, _: Sequence[Result], arrays: Mapping[str, Array] | None) -> Iterator[Step]:
        """Yield the run."""
        del arrays  # a run is followed in one go
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


def follow_jobs(study: Study, data: Dataset, *, n_var: int, budget: int) -> dict[Followed, Follow]:
    """Return the runs of a study's LEA-MVD on its first layer, and on each function of `n_var` variables."""
    given = Images.of(data)
    found = {Followed(LAYER, seed): Follow(search=study.stack("lea-mvd", seed, given)[0]) for seed in study.seeds}
    alone = dataclasses.replace(study, methods=("lea-mvd",))
    for label, search in jobs(alone, sizes=(n_var,), budget=budget, functions=tuple(FUNCTIONS)).items():
        found[Followed(f"{label.function}, n = {n_var:,}", label.seed)] = Follow(search=search)
    return found


def followed_on_page(study: Study, output: str | Path) -> pd.DataFrame:
    """Return the runs of a study on its first layer; of one that is recorded, what is recorded, functions too."""
    if study.archived:
        return archive.read(RECORDED, "directions")
    data = images(study)
    every = follow_jobs(study, data, n_var=2, budget=10**6)
    own = {label: job for label, job in every.items() if label.problem == LAYER}
    return rows(own, compute(own.values(), place(output), data=data, label="directions"))[FOLLOWED]


def follow(study: Study, output: str | Path, *, n_var: int, budget: int, **where: Any) -> pd.DataFrame:
    """Follow what `follow_jobs` returns, and return a row for each run: `FOLLOWED`."""
    data = images(study)
    labeled = follow_jobs(study, data, n_var=n_var, budget=budget)
    return rows(labeled, compute(labeled.values(), output, data=data, label="directions", **where))[FOLLOWED]
