"""What `leamvd reproduce` does with a section: check it, say what it takes, compute its studies."""

import time
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leamvd.book import failures
from leamvd.book.parameters import ParameterError
from leamvd.book.sections import RunError, Section

if TYPE_CHECKING:
    from leamvd.book.expected import Expected
    from leamvd.paper.estimate import Estimate
    from leamvd.paper.studies import Study

STUDIED = ("mnist-7x7", "mnist-28x28", "error-measures", "readings", "classification")
"""Sections with studies, as `leamvd.paper.studies.STUDIES` has them; to import that takes long."""


def check(section: Section, parameters: Mapping[str, Any]) -> None:
    """Refuse what the section's experiments would refuse once they are reached."""
    try:
        for method in parameters.get("methods") or ():
            if ".." in Path(method.partition(":")[2]).parts:
                raise ValueError(f"methods must name a reading in this folder, or by its full path, got {method!r}")
        match section.name:
            case "directions":
                from leamvd.paper import search_directions

                plan = search_directions.plan(parameters["profile"], **search_directions.parameters(parameters))
                next(plan.run(plan.seeds[0]))
            case name if name in STUDIED:
                from leamvd.paper import alternatives, studies

                study, *_ = studies_of(section, parameters)
                if any(method.partition(":")[0] == "cma-es" for method in study.methods):
                    from leamvd.networks.rbm import n_parameters
                    from leamvd.optimizers.cma_es import check_memory

                    check_memory(max(n_parameters(*units) for units in pairwise([study.side**2, *study.layers])))
                if section.name == "readings" and not alternatives.pairs(study.methods):
                    raise ValueError(f"methods must hold an alternative and its default, got {study.methods!r}")
                studies.images(study)
            case "verdicts":
                from leamvd.paper.rules import Margins

                Margins.of(parameters)
    except (ImportError, MemoryError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise refused(section, error) from None


def refused(section: Section, error: Exception) -> ParameterError:
    """Return a section's error in the command line's words."""
    message = failures.sentence(str(error)).replace("n_train", "n_images")
    return ParameterError(f"{section.name}: {message}")


def studies_of(section: Section, parameters: Mapping[str, Any]) -> "list[Study]":
    """Return the studies that a section runs: one, or none."""
    if section.name not in STUDIED:
        return []
    from leamvd.paper import reruns

    about = {"section": section.name, "parameters": parameters}
    return [reruns.section_study(about)]


def compute(
    section: Section,
    parameters: Mapping[str, Any],
    output: Path,
    jobs: int | None,
    scheduler: str | None,
    deadline: float,
    estimates: "Iterable[Estimate]",
) -> str | None:
    """Compute what the section's studies have not stored, and return what is left if time is over."""
    for study, awaited in zip(studies_of(section, parameters), estimates, strict=True):
        from leamvd.paper import records, workers

        try:
            seconds = deadline - time.monotonic()
            left = records.compute(
                study, output, jobs=jobs, scheduler=scheduler, seconds=seconds, progress=True, awaited=awaited
            )
        except workers.WorkerError as error:
            raise RunError(str(error)) from None
        if left:
            return f"{len(left)} of {len(study.pieces())} units are left, and the notebook"
    return "the notebook is left" if time.monotonic() >= deadline else None


def expect(
    section: Section, parameters: Mapping[str, Any], measurements: tuple[int, float], output: Path, jobs: int | None
) -> "Expected":
    """Return what a run of the section takes; `measurements` are the bench's, their number and seconds."""
    from leamvd.book.expected import Row, expected

    measured = [Row("measurements", measurements[0], 0, measurements[1])] if measurements[0] else []
    return expected(section, parameters, studies_of(section, parameters), measured, output, jobs)
