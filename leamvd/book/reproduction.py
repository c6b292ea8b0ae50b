"""What `leamvd reproduce` does with a section before its notebook: check it, plan it, compute it, sum it up."""

import dataclasses
import math
import textwrap
import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from leamvd._support.memory import available
from leamvd._support.threads import thread_count
from leamvd.analysis import comparison, intervals
from leamvd.analysis.rules import Margins
from leamvd.book.parameters import ParameterError
from leamvd.book.runs import NO_DATA, Data
from leamvd.book.sections import Section, swept
from leamvd.campaign import archive
from leamvd.campaign.jobs import with_needs
from leamvd.campaign.store import Store
from leamvd.experiments import search_directions, selection_pressure
from leamvd.experiments.methods import Method
from leamvd.networks.rbm import n_parameters
from leamvd.networks.torch_backend import Computation
from leamvd.optimizers.cma_es import check_memory
from leamvd.studies import alternatives, catalog, costs, functions, records
from leamvd.studies.catalog import STUDIES
from leamvd.studies.study import Classification, Study, images


def defaults(section: Section) -> pd.DataFrame:
    """Return a row for each parameter of a section: its value in each profile, what is allowed, and what it is."""
    profiles = [word for word in section.parameters["profile"].words if word != "recorded"]
    known = {profile: _resolved(section.name, profile) for profile in profiles}
    usual, rows = section.complete({}), {}
    for name, one in section.parameters.items():
        if name in usual and name != "profile":
            values = (known[profile].get(name) if usual[name] is None else usual[name] for profile in profiles)
            shown = ("–" if value is None else textwrap.shorten(one.written(value), 40) for value in values)
            rows[name] = [*shown, *one.description.partition(": ")[::2]]
    return pd.DataFrame.from_dict(rows, orient="index", columns=[*profiles, "allowed", "what it is"])


def _resolved(section: str, profile: str) -> Mapping[str, Any]:
    """Return what a profile has for the parameters that are left out."""
    match section:
        case "esd":
            return {"n_tournaments": selection_pressure.TOURNAMENTS[profile]}
        case "directions":
            return vars(search_directions.PLANS[profile])
        case _ if (section, profile) in STUDIES:
            study = STUDIES[section, profile]
            training = vars(study.training) | study.training.computation._asdict()
            return functions.chosen(profile) | vars(study.reading) | training | vars(study)
    return {}


def check(section: Section, parameters: Mapping[str, Any], *, blank: bool = False) -> Data:
    """Refuse what the section's experiments would refuse once they are reached; return what images it rests on.

    With `blank` ones nothing is downloaded, see `leamvd.data.images.load`.
    """
    try:
        match section.name:
            case "directions":
                plan = search_directions.plan(parameters["profile"], **search_directions.parameters(parameters))
                next(plan.run(plan.seeds[0]))
            case "verdicts":
                Margins.of(parameters)
            case _ if own := study(section, parameters):
                return Data(own.dataset, _checked_study(own, blank))
    except (ImportError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(f"{section.name}: {str(error).replace('n_train', 'n_images')}") from None
    return NO_DATA


def check_sweep(section: Section, sets: Sequence[Mapping[str, object]]) -> None:
    """Refuse several sets of values for a section that has no final errors to compare."""
    comparable = sorted({name for (name, _), study in STUDIES.items() if not isinstance(study, Classification)})
    if len(sets) > 1 and section.name not in comparable:
        raise ParameterError(
            f"{section.name} has no final errors to compare: give {', '.join(swept(sets))} one value, "
            f"or sweep over {' or '.join(comparable)}"
        )


def study(section: Section, parameters: Mapping[str, Any]) -> Study | None:
    """Return the study of a section; None where it has none, or it is read."""
    own = asked(section, parameters)
    return None if own is None or own.archived else own


def asked(section: Section, parameters: Mapping[str, Any]) -> Study | None:
    """Return the study of a section, one that is read too; None where it has none."""
    if section.name not in {name for name, _ in STUDIES}:
        return None
    return catalog.study(section.name, parameters["profile"], **catalog.parameters(parameters))


def _checked_study(study: Study, blank: bool) -> str:
    if any(Method.parse(method).trainer == "cma-es" for method in study.methods):
        check_memory(max(n_parameters(*units) for units in pairwise(study.units)))
    if study.section == "readings" and not alternatives.pairs(study.methods):
        raise ValueError(f"methods must hold an alternative and its default, got {study.methods!r}")
    return images(study, blank=blank).checksum


def dry_run_table(study: Study | None, store: Path, n_jobs: int | None) -> str:
    """Return what a section's study computes, what of it is stored, and what the rest takes, as a table to be printed.

    Times are rough, see `leamvd.studies.costs`; a job that would not fit in memory is named.
    """
    if study is None:
        return "the notebook alone\n"
    data, there = images(study, blank=True), Store(store)
    rows = []
    for job in with_needs(records.jobs(study, data)):
        stored, cost = job in there, costs.cost(job, data)
        minutes = 0.0 if stored else cost.seconds / 60  # NaN where nobody can tell
        rows.append((job.name.rpartition("-seed")[0], stored, minutes, 0 if stored else cost.memory))
    table = pd.DataFrame(rows, columns=["job", "stored", "minutes", "memory"])
    groups = table.groupby("job", sort=False)
    shown = groups.agg(jobs=("stored", "size"), stored=("stored", "sum")).join(
        groups["minutes"].sum(min_count=1).round(1)
    )
    processes = thread_count(None) if n_jobs is None else n_jobs
    where = f"on {processes} process{'es' * (processes > 1)}"
    total, unknown = f"about {table['minutes'].sum() / processes:.0f} minutes {where}", table["minutes"].isna().sum()
    lines = [shown.to_string(na_rep="–"), f"{total}, without {unknown} jobs of unknown length" if unknown else total]
    memory = processes * table["memory"].max()
    if memory > available():
        largest = table["job"].iloc[int(table["memory"].argmax())]
        lines.append(f"{memory / 1e9:.1f} GB of memory, for {largest}, do not fit in {available() / 1e9:.1f} GB")
    return "\n".join(lines) + "\n"


def compute(study: Study | None, output: Path, jobs: int | None, scheduler: str | None, deadline: float) -> int:
    """Compute what a section's study, where it has one, has not stored; return how many jobs are then left."""
    if study is None:
        return 0
    seconds = deadline - time.monotonic()
    return len(records.compute(study, output, n_jobs=jobs, scheduler=scheduler, seconds=seconds))


def final_errors(study: Study | None, output: Path) -> pd.DataFrame | None:
    """Return the final errors of a study, with their intervals; None where it has none.

    Where it is computed, and the same is recorded, with whatever seeds, there are also the ratios of the errors to
    those that are recorded, and on how many seeds in common they rest.
    """
    if study is None or isinstance(study, Classification):
        return None
    if study.archived:
        return intervals.errors(archive.read(study.archived))
    table = records.stored(study, output)
    found = intervals.errors(table)
    if (name := _recorded(study)) is None:
        return found
    ratios = intervals.ratios(archive.read(name), table).rename(
        columns={end: f"ratio_{end}" for end in ("low", "high")}
    )
    return found.merge(ratios, how="left", on=["measure", *comparison.GROUP])


def _recorded(study: Study) -> str | None:
    """Return the name of what is recorded with the settings of a study, on whatever backend; None where nothing is.

    Of several it is what has most of the study's methods, on most of its inputs.
    """
    shared = {"": 0}
    for known in catalog.recorded(study.section).values():
        computed = {field: getattr(known.training, field) for field in Computation._fields}
        free = {field: getattr(known, field) for field in ("archived", "methods", "inputs", "seeds")}
        training = dataclasses.replace(study.training, **computed)
        if dataclasses.replace(study, training=training, **free) == known:
            both = ({*getattr(known, field)} & {*getattr(study, field)} for field in ("methods", "inputs"))
            shared[known.archived] = math.prod(map(len, both))
    return max(shared, key=lambda name: shared[name]) or None
