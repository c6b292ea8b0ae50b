"""Where what a page shows comes from: the command that makes it again, and what a recorded study was made with."""

import json
import shlex
from collections.abc import Mapping

import pandas as pd
from IPython.display import HTML

from leamvd.book import sections
from leamvd.paper import records
from leamvd.paper.recording import PROVENANCE

_LISTED = 10
"""Methods that a table names; of more it has the number."""


def command(section: str, values: Mapping[str, object]) -> str:
    """Return the command that makes a section's page again.

    Parameters
    ----------
    section : str
        Its name, as `leamvd list` shows it.
    values : mapping
        Of its parameters, by name: a notebook's ``globals()``, before a cell assigns to one of them, or the parameters
        in a run's ``run.json``. Those that are the notebook's own, or are missing, are left out; other names are
        ignored, and so is `output`.

    Returns
    -------
    str
        One line for a shell.

    Raises
    ------
    leamvd.book.parameters.ParameterError
        If there is no such section.
    """
    (found,) = sections.choose(sections.load(), [section])
    words = ["leamvd", "reproduce", section]
    for name, parameter in found.parameters.items():
        value = values.get(name, parameter.default)
        if name != "output" and value != parameter.default:
            words += ["-p", f"{name}={','.join(map(str, value)) if isinstance(value, list) else value}"]
    return shlex.join(words)


def recorded(name: str) -> HTML:
    """Return what a recorded study was made with, and the commands that make it again and that rerun a sample.

    Parameters
    ----------
    name : str
        Of the folder in ``notebooks/recorded``; the record of a study, see `leamvd.paper.recording`.

    Returns
    -------
    HTML
        A table with a row for each property, none of which is cut.
    """
    known = json.loads((records.recorded_folder(name) / PROVENANCE).read_text(encoding="utf-8"))
    study, training = known["study"], known["study"]["training"]
    seeds, methods = study["seeds"], study["methods"]
    rows = {
        "study": f"{study['section']}: {', '.join(methods) if len(methods) <= _LISTED else f'{len(methods)} methods'}",
        "data": known["data"],
        "runs": f"{len(seeds)} of each method, seeds {seeds[0]} to {seeds[-1]}",
        "device": f"{training['backend']} on {training['device']} in {training['precision']}, {known['machine']}",
        "versions": ", ".join(f"{package} {version}" for package, version in sorted(known["versions"].items())),
        "commit": known["commit"] or "–",
        "made by": command(known["section"], known["parameters"]),
        "sample rerun by": shlex.join(["leamvd", "verify", name]),
    }
    with pd.option_context("display.max_colwidth", None):
        return HTML(pd.DataFrame({"recorded": rows}).to_html())  # type: ignore[no-untyped-call]
