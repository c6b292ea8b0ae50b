"""Where what a page shows comes from: the command that makes it again, and what a recorded study was made with."""

import html
import os
import shlex
from collections.abc import Mapping
from typing import Any

import pandas as pd
from IPython.display import HTML

from leamvd.book import reproduction, sections
from leamvd.campaign import archive
from leamvd.campaign.store import place

_NOTE = '<div class="admonition warning"><p class="admonition-title">Another run</p><p>{}</p>{}</div>'
_MADE = (
    "Figures, tables and numbers are of this run, a dash stands for what it lacks. The sentences are about the one "
    "that is recorded, and need not hold of it. Made by <code>{}</code>."
)
_BY_HAND = (
    "Figures and tables are of this run. The sentences are about the one that is recorded, and the numbers in them "
    "stay as they were; <code>{}</code> makes a notebook that quotes this run's."
)


def command(section: str, values: Mapping[str, object]) -> str:
    """Return the command that makes a section's page again, as one line for a shell.

    Values are those of its parameters, by name: a notebook's ``globals()``, before a cell assigns to one of them, or
    the parameters in a run's ``run.json``. Those that are missing are the notebook's own; other names are ignored.
    """
    (found,) = sections.choose(sections.load(), [section])
    return found.command({name: one.default for name, one in found.parameters.items()} | dict(values))


def note(section: str, values: Mapping[str, Any]) -> HTML:
    """Return what stands at the top of a page that shows another run than its text is about; else nothing.

    Where the notebook is run by hand, it says what its study will compute, and about how long that takes.
    """
    made, told, plan = command(section, values), _MADE, ""
    if made == command(section, {}):
        return HTML("")  # type: ignore[no-untyped-call]
    if sections.RUN not in os.environ:
        told, (found,) = _BY_HAND, sections.choose(sections.load(), [section])
        if study := reproduction.study(found, found.complete(values)):
            jobs = reproduction.dry_run_table(study, place(values["output"]), n_jobs=1)
            plan = f"<p>It computes these jobs, except those that are stored:</p><pre>{html.escape(jobs)}</pre>"
    return HTML(_NOTE.format(told.format(html.escape(made)), plan))  # type: ignore[no-untyped-call]


def recorded(name: str) -> HTML:
    """Return a table of what a recorded study was made with, and the commands that make it again and verify a sample.

    The name is that of its folder in ``notebooks/recorded``; of a study that is not recorded nothing is returned.
    """
    if not name:
        return HTML("")  # type: ignore[no-untyped-call]
    known = archive.provenance(name)
    study, training = known["study"], known["study"]["training"]
    seeds, methods = study["seeds"], study["methods"]
    rows = {
        "study": f"{study['section']}: {', '.join(methods) if len(methods) <= 10 else f'{len(methods)} methods'}",
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
