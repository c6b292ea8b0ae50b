"""Several values of a parameter: the runs of their product, and their final errors side by side."""

import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leamvd.book import runs
from leamvd.book.parameters import ParameterError
from leamvd.book.sections import Section, assign
from leamvd.campaign.tables import write_table


def plan(
    sections: Sequence[Section], settings: Sequence[tuple[str, str]]
) -> list[tuple[Section, list[dict[str, object]]]]:
    """Return each section with the sets of values that it is to be run with: one, or the product of those swept over.

    Parameters
    ----------
    sections : sequence of Section
        What is to be run.
    settings : sequence of (str, str)
        Names and texts, as `assign` takes them; where a parameter takes one value, a text may name several.

    Raises
    ------
    ParameterError
        As `assign` does, or when a section without final errors would be swept over.
    """
    parameters = {name: parameter for section in reversed(sections) for name, parameter in section.parameters.items()}
    assign(sections, [(name, text) for name, text in settings if name not in parameters or name == "output"])
    texts = [[(name, one) for one in parameters[name].alternatives(text)] for name, text in settings]
    every = zip(*(assign(sections, given) for given in itertools.product(*texts)), strict=True)
    planned = []
    for section, values in zip(sections, every, strict=True):
        different = {json.dumps(value, sort_keys=True): value for value in values}  # where a section lacks a parameter
        planned.append((section, list(different.values())))
        if len(different) > 1:
            _check(section, _swept(different.values()))
    return planned


def _check(section: Section, swept: Iterable[str]) -> None:
    from leamvd.experiments.studies import STUDIES, Classification  # brings numba, which takes long to import

    comparable = sorted({name for (name, _), study in STUDIES.items() if not isinstance(study, Classification)})
    if section.name not in comparable:
        raise ParameterError(
            f"{section.name} has no final errors to compare: give {', '.join(swept)} one value, "
            f"or sweep over {' or '.join(comparable)}"
        )


def _swept(values: Iterable[Mapping[str, object]]) -> list[str]:
    """Return the names of the parameters in which sets of values differ."""
    first, *others = values
    return [name for name in first if any(other[name] != first[name] for other in others)]


def labels(values: Sequence[Mapping[str, object]]) -> list[str]:
    """Return what tells each set of values from the others: "population_size=12", nothing where there is one set."""
    swept = _swept(values)
    return [", ".join(f"{name}={value[name]}" for name in swept) for value in values]


def compare(values: Sequence[Mapping[str, object]], places: Sequence[Path]) -> tuple[Path, Any]:
    """Put the final errors of a sweep's runs side by side, as tables and as a figure.

    Parameters
    ----------
    values : sequence of mapping
        The sets of values that the section was run with, see `plan`.
    places : sequence of Path
        The folders of these runs.

    Returns
    -------
    Path
        The folder with the table, ``errors.csv``, and the figure.
    DataFrame
        The mean-field errors, a column for each run, to be printed.
    """
    import pandas as pd

    from leamvd.analysis import intervals
    from leamvd.figures import comparison as draw
    from leamvd.figures.style import save

    swept, tables, columns, data = _swept(values), [], {}, []
    for value, label, run in zip(values, labels(values), map(runs.read, places), strict=True):
        if known := run.study():
            data.append(known["study"]["dataset"])
        errors = intervals.errors(run.table())
        tables.append(errors.assign(run=run.folder.name, **{name: str(value[name]) for name in swept}))
        columns[label] = errors
    errors = pd.concat(tables, ignore_index=True)
    errors = errors[["run", *swept, *errors.columns.difference(["run", *swept], sort=False)]]
    names = sorted(place.name for place in places)
    folder = places[0].parent / f"sweep-{hashlib.sha256(json.dumps(names).encode()).hexdigest()[:8]}"
    folder.mkdir(exist_ok=True)
    write_table(folder / "errors.csv", errors)
    title = f"{', '.join(dict.fromkeys(data))} (bars: 95 % intervals over seeds)"
    save(draw.sweep(errors[errors["measure"] == "mean_field"], swept, title), "sweep", folder)
    return folder, intervals.side_by_side(columns, "mean_field")
