"""What `leamvd reproduce` does with a section before its notebook: check it, say what there is to do, compute it."""

import time
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd

from leamvd._support.memory import available
from leamvd._support.threads import thread_count
from leamvd.analysis.rules import Margins
from leamvd.book.parameters import ParameterError
from leamvd.book.sections import Section, swept
from leamvd.campaign.jobs import with_needs
from leamvd.campaign.store import Store
from leamvd.experiments import alternatives, costs, records, search_directions, studies
from leamvd.experiments.studies import STUDIES, Classification, Study
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers.cma_es import check_memory


def check(section: Section, parameters: Mapping[str, Any]) -> str:
    """Refuse what the section's experiments would refuse once they are reached; return a checksum of its data."""
    try:
        match section.name:
            case "directions":
                plan = search_directions.plan(parameters["profile"], **search_directions.parameters(parameters))
                next(plan.run(plan.seeds[0]))
            case "verdicts":
                Margins.of(parameters)
            case _ if own := study(section, parameters):
                return _checked_study(own)
    except (ImportError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise ParameterError(f"{section.name}: {str(error).replace('n_train', 'n_images')}") from None
    return ""


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
    if section.name not in {name for name, _ in STUDIES}:
        return None
    own = studies.study(section.name, parameters["profile"], **studies.parameters(parameters))
    return None if own.archived else own


def _checked_study(study: Study) -> str:
    if any(method.partition(":")[0] == "cma-es" for method in study.methods):
        check_memory(max(n_parameters(*units) for units in pairwise([study.side**2, *study.layers])))
    if study.section == "readings" and not alternatives.pairs(study.methods):
        raise ValueError(f"methods must hold an alternative and its default, got {study.methods!r}")
    return studies.images(study).checksum


def dry_run_table(study: Study | None, store: Path, n_jobs: int | None) -> str:
    """Return what a section's study computes, what of it is stored, and what the rest takes, as a table to be printed.

    Times are rough, see `leamvd.experiments.costs`; a job that would not fit in memory is named.
    """
    if study is None:
        return "the notebook alone\n"
    data, there = studies.images(study), Store(store)
    rows = []
    for job in with_needs(records.jobs(study, data)):
        stored, cost = job in there, costs.cost(job, data)
        minutes = 0.0 if stored else cost.seconds / 60
        rows.append((job.name.rpartition("-seed")[0], stored, minutes, 0 if stored else cost.memory))
    table = pd.DataFrame(rows, columns=["job", "stored", "minutes", "memory"])
    groups = table.groupby("job", sort=False)
    shown = groups.agg(jobs=("stored", "size"), stored=("stored", "sum"), minutes=("minutes", "sum")).round(1)
    processes = thread_count(None) if n_jobs is None else n_jobs
    where = f"on {processes} process{'es' * (processes > 1)}"
    lines = [shown.to_string(), f"about {table['minutes'].sum() / processes:.0f} minutes {where}"]
    memory = processes * table["memory"].max()
    if memory > available():
        largest = table["job"].iloc[int(table["memory"].argmax())]
        lines.append(f"{memory / 1e9:.1f} GB of memory, for {largest}, do not fit in {available() / 1e9:.1f} GB")
    return "\n".join(lines) + "\n"


def compute(study: Study | None, output: Path, jobs: int | None, scheduler: str | None, deadline: float) -> str | None:
    """Compute what a section's study, where it has one, has not stored; return what is left if time is over."""
    if study is not None:
        seconds = deadline - time.monotonic()
        if left := records.compute(study, output, n_jobs=jobs, scheduler=scheduler, seconds=seconds):
            return f"{len(left)} jobs are left, and the notebook"
    return "the notebook is left" if time.monotonic() >= deadline else None
