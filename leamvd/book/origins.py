"""Where what a page shows comes from: the command that makes it again, and what a recorded study was made with."""

import html
import shlex
from collections.abc import Mapping

import pandas as pd
from IPython.display import HTML

from leamvd.book import sections
from leamvd.campaign import archive

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
    return found.command({name: one.default for name, one in found.parameters.items()} | dict(values))


def note(section: str, values: Mapping[str, object]) -> HTML:
    """Return what stands at the top of a page that shows another run than its text is about; else nothing.

    Parameters are those of `command`.
    """
    made = command(section, values)
    if made == command(section, {}):
        return HTML("")  # type: ignore[no-untyped-call]
    told = (
        "Figures, tables and numbers are of this run, a dash stands for what it lacks. The sentences are about the one"
    )
    told = f"{told} that is recorded, and need not hold of it. Made by <code>{html.escape(made)}</code>."
    title = '<p class="admonition-title">Another run</p>'
    shown = f'<div class="admonition warning">{title}<p>{told}</p></div>'
    return HTML(shown)  # type: ignore[no-untyped-call]


def recorded(name: str) -> HTML:
    """Return what a recorded study was made with, and the commands that make it again and that verify a sample.

    Parameters
    ----------
    name : str
        Of the folder in ``notebooks/recorded``, see `leamvd.experiments.recording`; empty for a study that is not
        recorded, of which nothing is returned.

    Returns
    -------
    HTML
        A table with a row for each property, none of which is cut.
    """
    if not name:
        return HTML("")  # type: ignore[no-untyped-call]
    known = archive.provenance(name)
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
