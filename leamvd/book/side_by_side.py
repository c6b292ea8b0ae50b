"""Two runs on one page: what differs, errors with intervals, figures."""

import base64
import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leamvd._support import checks
from leamvd.book.runs import NoRunError, Run, read
from leamvd.campaign.tables import write_whole


def compare(a: Path, b: Path) -> Path:
    """Write a page that puts two runs of a section side by side, and return its path, beside the first run.

    Parameters
    ----------
    a, b : Path
        Folders of runs, see `leamvd.book.runs.read`.

    Raises
    ------
    leamvd.book.runs.NoRunError
        If one is no run, or both are the same, or of two sections.
    leamvd.campaign.store.DamageError, ValueError
        If units of a study, or what says which they are, are missing or damaged.
    ModuleNotFoundError
        Without the extra ``leamvd[book]``.
    """
    checks.needs("comparing runs", "book", "jinja2", "nbformat")
    import jinja2

    runs = (read(a), read(b))
    folders, sections = [run.folder for run in runs], [run.about["section"] for run in runs]
    if sections[0] != sections[1]:
        raise NoRunError(f"RUN_A and RUN_B must be runs of one section, got {' and '.join(sections)}")
    if folders[0] == folders[1]:
        raise NoRunError(f"RUN_A and RUN_B must be two runs, got {folders[0]} twice")
    settings, origins = zip(*map(_described, runs), strict=True)
    templates = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=templates, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    of_one = folders[0].parts[-2:] == folders[1].parts[-2:]  # made twice
    names = ["/".join(folder.parts[-3 if of_one else -2 :]) for folder in folders]
    text = environment.get_template("side_by_side.html").render(
        section=sections[0],
        runs=dict(zip("AB", names, strict=True)),
        differing={"Parameters": _differing(*settings), "Made with": _differing(*origins)},
        errors=_errors(runs),
        figures=_figures(runs),
    )
    elsewhere = folders[0].parent != folders[1].parent  # where a run of this name may be another one
    mark = "-" + hashlib.sha256(str(folders[1]).encode()).hexdigest()[:8] if elsewhere else ""
    page = folders[0].parent / f"compare-{folders[0].name}-{folders[1].name}{mark}.html"
    write_whole(page, text)
    return page


def _described(run: Run) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a run was given, its study's defaults too, and what it was made with."""
    given: dict[str, Any] = dict(run.about["parameters"])
    origin = run.about["made_with"] | {"notebook": run.about["notebook"][:16]}
    if known := run.study():
        study = dict(known["study"])
        given |= study.pop("training") | study.pop("reading") | study
        origin |= {"data": known["data"], "data's checksum": known["checksum"]}
    return given, origin


def _differing(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return name and both values of what differs, for reading."""
    return [(name, as_text(a.get(name)), as_text(b.get(name))) for name in {**a, **b} if a.get(name) != b.get(name)]


def as_text(value: Any) -> str:
    """Return a value as tables show it."""
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "–" if value is None else str(value)


def _errors(runs: tuple[Run, Run]) -> dict[str, Any]:
    """Return tables of the final errors, a list of rows for each measure, and their figure; nothing without a study."""
    import pandas as pd

    from leamvd.analysis import intervals
    from leamvd.analysis.comparison import GROUP, MEASURES
    from leamvd.figures import comparison as draw

    if not all(run.study() for run in runs):
        return {}
    tables = [run.table() for run in runs]
    errors = dict(zip("AB", map(intervals.errors, tables), strict=True))
    ratios = intervals.ratios(*tables).set_index(["measure", *GROUP])
    rows = {title: _rows(errors, ratios, measure) for measure, title in MEASURES.items()}
    drawn = pd.concat([table.assign(run=name) for name, table in errors.items()], ignore_index=True)
    figure = draw.sweep(drawn[drawn["measure"] == "mean_field"], ["run"], "mean-field errors (bars: 95 % intervals)")
    return {"rows": rows, "figure": _png(figure)}


def _rows(errors: Mapping[str, Any], ratios: Any, measure: str) -> list[dict[str, Any]]:
    """Return a row for each cell: its name, both errors, their ratio and on how many pairs it rests."""
    from leamvd.analysis import comparison, intervals

    rows = []
    runs = {name: table[table["measure"] == measure].set_index(comparison.GROUP) for name, table in errors.items()}
    texts = intervals.side_by_side(errors, measure)
    for cell, columns in zip(texts.index.to_list(), texts.to_dict("records"), strict=True):
        row: dict[str, Any] = {"cell": cell} | {str(name): text for name, text in columns.items()}
        row["runs"] = [int(run["runs"].get(cell, 0)) for run in runs.values()]
        if (measure, *cell) in ratios.index:
            found = ratios.loc[(measure, *cell)]
            row["ratio"] = intervals.text(found["ratio"], found["low"], found["high"], "{:.4g}".format)
            row |= {"paired": int(found["paired"]), "differs": bool(found["low"] > 1 or found["high"] < 1)}
        rows.append(row)
    return rows


def _png(figure: Any) -> str:
    import matplotlib.pyplot as plt

    file = io.BytesIO()
    figure.savefig(file, format="png")
    plt.close(figure)
    return data_uri(file.getvalue())


def data_uri(png: bytes) -> str:
    """Return a picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _figures(runs: tuple[Run, Run]) -> list[dict[str, Any]]:
    """Return name, alternative text and both images of every figure that one of the runs has."""
    found = {
        label: {path.stem: data_uri(path.read_bytes()) for path in sorted(run.folder.glob("figures/*.png"))}
        for label, run in zip("AB", runs, strict=True)
    }
    texts = alternatives(runs[1]) | alternatives(runs[0])
    return [
        {
            "name": name,
            "alt": texts.get(name, name),
            "images": {label: own[name] for label, own in found.items() if name in own},
        }
        for name in {**found["A"], **found["B"]}
    ]


def alternatives(run: Run) -> dict[str, str]:
    """Return the alternative texts of a run's figures, from its notebook."""
    import nbformat

    texts = {}
    for path in run.folder.glob("*.ipynb"):
        for cell in nbformat.read(path, as_version=4).cells:  # type: ignore[no-untyped-call]
            about = cell.metadata.get("mystnb", {})
            if name := about.get("figure", {}).get("name"):
                texts[name.removeprefix("fig-")] = about.get("image", {}).get("alt", "")
    return texts
