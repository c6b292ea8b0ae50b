"""Runs of a section side by side: a sweep as a table and a figure; two on a page, with what differs and all figures."""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd

from leamvd._support import checks
from leamvd.analysis import comparison, intervals, statistics
from leamvd.book import reproduction, runs, sections
from leamvd.book.runs import Data, NoRunError, Run, read
from leamvd.book.sections import Section
from leamvd.campaign.jobs import digest
from leamvd.campaign.tables import write_table, write_whole
from leamvd.figures import comparison as draw
from leamvd.figures.style import save
from leamvd.studies import records, results


def sweep(
    section: Section, sets: Sequence[Mapping[str, object]], data: Sequence[Data], output: Path
) -> tuple[Path, pd.DataFrame]:
    """Put the final errors of several sets of values side by side; return the folder of the figure, and the table.

    What is to be compared is computed, see `leamvd.book.reproduction.compute`; `data` is that of each set.
    """
    swept, studies = sections.swept(sets), [reproduction.study(section, section.complete(values)) for values in sets]
    tables = [
        intervals.errors(records.stored(study, output)).assign(**{name: str(values[name]) for name in swept})
        for study, values in zip(studies, sets, strict=True)
        if study
    ]
    errors = pd.concat(tables, ignore_index=True)
    errors = errors[[*swept, *errors.columns.difference(swept, sort=False)]]
    values = sections.together(sets)
    about = section.about(values, "-".join(dict.fromkeys(one.checksum for one in data)))
    names = ",".join(dict.fromkeys(Path(one.name).name for one in data))
    folder = output / section.stem / runs.name(about, f"sweep-{section.label(values, names)}")
    folder.mkdir(parents=True, exist_ok=True)
    write_table(folder / runs.SUMMARY, errors)
    shown = ", ".join(dict.fromkeys(results.dataset(study) for study in studies if study))
    title = f"{shown} (bars: 95 % intervals over seeds)"
    save(draw.sweep(errors[errors["measure"] == "mean_field"], swept, title), "sweep", folder)
    write_whole(folder / runs.ABOUT, json.dumps(about, indent=2) + "\n")  # at last: now it is finished
    return folder, errors


def compare(a: Path, b: Path) -> Path:
    """Write a page that puts two runs of a section side by side, and return its path, beside the first run."""
    checks.needs("comparing runs", "book", "jinja2")
    import jinja2

    both = (read(a), read(b))
    folders, names = [run.folder for run in both], [run.about["section"] for run in both]
    if names[0] != names[1]:
        raise NoRunError(f"RUN_A and RUN_B must be runs of one section, got {' and '.join(names)}")
    if folders[0] == folders[1]:
        raise NoRunError(f"RUN_A and RUN_B must be two runs, got {folders[0]} twice")
    settings, origins = zip(*map(_described, both), strict=True)
    templates = jinja2.FileSystemLoader(Path(__file__).parent)
    environment = jinja2.Environment(loader=templates, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    of_one = folders[0].parts[-2:] == folders[1].parts[-2:]  # made twice
    shown = ["/".join(folder.parts[-3 if of_one else -2 :]) for folder in folders]
    text = environment.get_template("side_by_side.html").render(
        section=names[0],
        runs=dict(zip("AB", shown, strict=True)),
        differing={"Parameters": _differing(*settings), "Made with": _differing(*origins)},
        errors=_errors(both),
        figures=_figures(both),
    )
    elsewhere = folders[0].parent != folders[1].parent  # where a run of this name may be another one
    mark = "-" + digest(str(folders[1]).encode())[:8] if elsewhere else ""
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
    if not all(run.study() for run in runs):
        return {}
    tables = [run.table() for run in runs]
    errors = dict(zip("AB", map(intervals.errors, tables), strict=True))
    ratios = intervals.ratios(*tables).set_index(["measure", *comparison.GROUP])
    rows = {title: _rows(errors, ratios, measure) for measure, title in comparison.MEASURES.items()}
    drawn = pd.concat([table.assign(run=name) for name, table in errors.items()], ignore_index=True)
    figure = draw.sweep(drawn[drawn["measure"] == "mean_field"], ["run"], "mean-field errors (bars: 95 % intervals)")
    file = io.BytesIO()
    figure.savefig(file, format="png")
    plt.close(figure)
    return {"rows": rows, "figure": data_uri(file.getvalue())}


def _rows(errors: Mapping[str, pd.DataFrame], ratios: pd.DataFrame, measure: str) -> list[dict[str, Any]]:
    """Return a row for each cell: its name, both errors, their ratio and on how many pairs it rests."""
    rows = []
    counts = [table[table["measure"] == measure].set_index(comparison.GROUP)["runs"] for table in errors.values()]
    texts = intervals.side_by_side(errors, measure)
    for cell, columns in zip(texts.index.to_list(), texts.to_dict("records"), strict=True):
        row: dict[str, Any] = {"cell": cell} | {str(name): text for name, text in columns.items()}
        row["runs"] = [int(count.get(cell, 0)) for count in counts]
        if (measure, *cell) in ratios.index:
            found = ratios.loc[(measure, *cell)]
            row["ratio"] = statistics.text(found["ratio"], found["low"], found["high"], "{:.4g}".format)
            row |= {"paired": int(found["paired"]), "differs": bool(found["low"] > 1 or found["high"] < 1)}
        rows.append(row)
    return rows


def data_uri(png: bytes) -> str:
    """Return a picture as an address that holds it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _figures(runs: tuple[Run, Run]) -> list[dict[str, Any]]:
    """Return name, alternative text and both images of every figure that one of the runs has."""
    found = {
        label: {path.stem: data_uri(path.read_bytes()) for path in sorted(run.folder.glob("figures/*.png"))}
        for label, run in zip("AB", runs, strict=True)
    }
    texts = alt_texts(runs[1]) | alt_texts(runs[0])
    return [
        {
            "name": name,
            "alt": texts.get(name, name),
            "images": {label: own[name] for label, own in found.items() if name in own},
        }
        for name in {**found["A"], **found["B"]}
    ]


def alt_texts(run: Run) -> dict[str, str]:
    """Return the alternative texts of a run's figures, from its notebook."""
    texts = {}
    for path in run.folder.glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            about = cell["metadata"].get("mystnb", {})
            if name := about.get("figure", {}).get("name"):
                texts[name.removeprefix("fig-")] = about.get("image", {}).get("alt", "")
    return texts
