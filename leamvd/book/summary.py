"""What a run or a sweep ends with, as it is printed: its final errors, what has changed, and its files."""

from collections.abc import Callable
from pathlib import Path

import pandas as pd

from leamvd.analysis.statistics import number, texts
from leamvd.book.runs import SUMMARY
from leamvd.campaign.tables import read_table

_CELL = ["inputs", "layer", "method"]


def read(folder: Path) -> pd.DataFrame | None:
    """Return the summary in the folder of a run or a sweep; None where it has none."""
    path = folder / SUMMARY
    return read_table(path) if path.is_file() else None


def printed(summary: pd.DataFrame, *, recorded: bool = False) -> str:
    """Return a summary, as `leamvd.book.reproduction.final_errors` or a sweep makes it, as lines to be printed.

    A run's errors stand by method and layer, a sweep's, whose values are the columns in front, by cell and value. Those
    of the `recorded` run are compared with nothing.
    """
    errors = summary[summary["measure"] == "mean_field"]
    swept = [str(name) for name in errors.columns[: errors.columns.get_loc("measure")]]
    heading = f"mean-field errors per 10,000 images, with 95 % intervals; runs of each method: {errors['runs'].max()}"
    if swept:
        labels = [", ".join(f"{name}={row[name]}" for name in swept) for row in errors[swept].to_dict("records")]
        return f"{heading}\n{_table(errors.assign(label=labels), 'label', number)}"
    lines = [heading, _by_layer(errors, number)]
    if "ratio" in errors:
        ends = {"ratio": "mean", "ratio_low": "low", "ratio_high": "high"}
        changed = errors.drop(columns=list(ends.values())).rename(columns=ends).dropna(subset="mean")
        pairs = int(changed["paired"].min())
        lines += [f"over those of the recorded run, with 95 % intervals; seeds in common: {pairs}"]
        lines += [_by_layer(changed, "{:.4g}".format)]
    elif not recorded:
        lines += ["no run with these settings is recorded"]
    return "\n".join(lines)


def files(folder: Path) -> str:
    """Return the folder of a run or a sweep, and what a reader opens in it, each on a line."""
    found = [path for ending in ("*.ipynb", "*.csv", "figures/*.png") for path in sorted(folder.glob(ending))]
    return "\n".join([str(folder), *(f"  {path.relative_to(folder)}" for path in found)])


def _by_layer(errors: pd.DataFrame, show: Callable[[float], str]) -> str:
    return _table(errors.assign(layer="RBM " + errors["layer"].astype(str)), "layer", show)


def _table(errors: pd.DataFrame, column: str, show: Callable[[float], str]) -> str:
    """Return errors with their intervals as a table, with a column for each value of one of theirs."""
    rows = [name for name in _CELL if name != column]
    cells = errors.set_index([*rows, column]).pipe(lambda table: texts(table, show)).unstack(sort=False)
    return str(cells.fillna("–").rename_axis(columns=None).reset_index().to_string(index=False))
