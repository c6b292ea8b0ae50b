"""Figures of the section on what the error measures: controls, weights that win, and what the paper may have run."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from leamvd.figures.style import (
    BLUE,
    COLORS,
    GREEN,
    VERMILION,
    error_bars,
    label_ends,
    legend,
    line_style,
    logarithmic,
    new,
    plain,
    styled,
)

STARTS = {"epochs": BLUE, "batch": VERMILION, "none": GREEN}
"""Colors of start solutions."""


@styled
def paths(table: pd.DataFrame, ends: pd.DataFrame, title: str) -> Figure:
    """Plot one measure against the other over the run: a row for each layer, a column for each kind of inputs.

    Parameters
    ----------
    table : DataFrame
        Of `leamvd.analysis.measures.paths`; a method's line starts with an open marker and ends with a filled one.
    ends : DataFrame
        Of `leamvd.analysis.intervals.errors`, of both measures: the intervals at the filled markers.
    title : str
        Names the data set.
    """
    kinds, layers = list(table["inputs"].unique()), sorted(table["layer"].unique())
    figure, axes = new(len(layers), len(kinds), height=1.3 + 2.1 * len(layers))
    measures, at = ("mean_field_ratio", "sampled_ratio"), ends.set_index(["inputs", "layer", "method", "measure"])
    for (kind, layer), cell in table.groupby(["inputs", "layer"], sort=False):
        ax = axes[layers.index(layer), kinds.index(str(kind))]
        for method, line in cell.groupby("method", sort=False):
            color, style = line_style(str(method))
            x, y = (line[measure].to_numpy() for measure in measures)
            last = [at.loc[[(kind, layer, method, measure)]] for measure in measures]
            bars = [error_bars(end, "mean", "low", "high") for end in last]
            ax.plot(x, y, style, color=color, linewidth=1.5, label=plain(str(method)))
            ax.plot(x[:1], y[:1], "o", color=color, fillstyle="none", markersize=5)
            ax.errorbar(x[-1:], y[-1:], bars[1], bars[0], fmt="o", color=color, markersize=5)
        for line in (ax.axhline, ax.axvline):
            line(1.0, color="black", linewidth=0.8)
        ax.set_title(f"RBM {layer}, {kind} inputs")
        ax.set(xscale="log", yscale="log")
        logarithmic(ax.xaxis, most=4)
        logarithmic(ax.yaxis)
    for ax in axes[-1]:
        ax.set_xlabel("mean-field ratio")
    figure.supylabel("sampled ratio: error / constant image's")
    figure.suptitle(title, wrap=True)
    legend(figure, axes[0, 0])
    return figure


@styled
def inputs(table: pd.DataFrame, title: str) -> Figure:
    """Plot last errors and those of the constant image, joined by a line: a column for each layer.

    Parameters
    ----------
    table : DataFrame
        Of `leamvd.analysis.measures.explained`.
    title : str
        Names the data set.
    """
    layers, methods = sorted(table["layer"].unique()), list(table["method"].unique())
    kinds = list(table["inputs"].unique())
    height = 1.5 + 0.22 * len(kinds) * len(methods)
    figure, axes = new(1, len(layers), height=height, sharey=True)
    for ax, layer in zip(axes[0], layers, strict=True):
        for kind, rows in table[table["layer"] == layer].groupby("inputs", sort=False):
            y = rows["method"].map(methods.index) + 0.36 * (kinds.index(str(kind)) - 0.5 * (len(kinds) - 1))
            look: dict[str, Any] = {"fillstyle": "full" if kind == "own" else "none", "markersize": 5}
            bars = error_bars(rows, "error", "low", "high").T[..., np.newaxis]
            for place, ends, row in zip(y, bars, rows.to_dict("records"), strict=True):
                color = line_style(row["method"])[0]
                ax.plot([row["error"], row["constant"]], [place, place], "-", color=color, linewidth=1.0)
                ax.plot(row["constant"], place, "|", color="black", markersize=9, label="constant image")
                ax.errorbar(row["error"], place, xerr=ends, fmt="o", color=color, label=f"{kind} inputs", **look)
        ax.set_title(f"RBM {layer}")
        ax.set(xscale="log")
        logarithmic(ax.xaxis, most=4)
        ax.set_yticks(range(len(methods)), [plain(method) for method in methods])
    axes[0, 0].invert_yaxis()
    axes[0, len(layers) // 2].set_xlabel("mean-field error per image")
    figure.suptitle(title, wrap=True)
    legend(figure, axes[0, 0])
    return figure


@styled
def collapse(table: pd.DataFrame, title: str) -> Figure:
    """Plot what RBM 2 scores, and what the features are worth, against the factor of RBM 1's weights.

    Parameters
    ----------
    table : DataFrame
        Of `leamvd.experiments.collapse.collapse`.
    title : str
        Names the data set.
    """
    figure, axes = new(3, 1, height=6.6, sharex=True)
    panels = {
        "RBM 2's error per image": {"bound": ("bound", ":", "black"), "error": ("constant RBM 2", "-", VERMILION),
                                    "cd error": ("RBM 2 by CD", "-", COLORS["cd"])},
        "error / constant image's": {"ratio": ("constant RBM 2", "-", VERMILION),
                                     "cd ratio": ("RBM 2 by CD", "-", COLORS["cd"])},
        "test accuracy of\na linear classifier": {"accuracy above": ("on the constant\nRBM 2", "-", VERMILION),
                                                 "accuracy": ("on RBM 1", "--", "black")},
    }  # fmt: skip
    for ax, (ylabel, lines) in zip(axes[:, 0], panels.items(), strict=True):
        for column, (label, style, color) in lines.items():
            ax.plot(table["scale"], table[column], style, color=color, marker=".", label=label)
        ax.set(ylabel=ylabel, xscale="log", yscale="linear" if "accuracy" in lines else "log")
    axes[2, 0].set(xlabel="factor of RBM 1's weights", ylim=(0, 1))
    axes[2, 0].invert_xaxis()
    for ax in axes[:, 0]:
        label_ends(ax)
    figure.suptitle(title, wrap=True)
    return figure


@styled
def combinations(rows: pd.DataFrame, numbers: Mapping[str, float], near: pd.DataFrame, title: str) -> Figure:
    """Plot each combination as a mark in each of the paper's numbers, a line; the nearest have rings.

    Parameters
    ----------
    rows, near : DataFrame
        Of `leamvd.analysis.forensics.distances` and `leamvd.analysis.forensics.nearest`.
    numbers : mapping of str to float
        Columns, and what the paper gives.
    title : str
        Names the data set.
    """
    keys = ["measure", "images", "inputs"]
    places = {key: place for place, (key, _) in enumerate(rows.groupby(keys, sort=False))}
    figure, axes = new(1, len(numbers), height=1.8 + 0.32 * len(places), sharey=True)
    for ax, (name, number) in zip(axes[0], numbers.items(), strict=True):
        ax.axvline(number, color="black", linewidth=1.0, label="the paper's number")
        for start, color in STARTS.items():
            own = rows[rows["start"] == start]
            y = [places[key] for key in zip(*(own[name] for name in keys), strict=True)]
            ax.plot(own[name], y, "|", color=color, markersize=8, label=f"start: {start}")
        for i, (_, row) in enumerate(near.iterrows()):
            look: dict[str, Any] = {"fillstyle": "none", "markersize": 9 + 4 * i, "label": f"nearest: {i + 1}"}
            ax.plot(row[name], places[tuple(row[keys])], "o", color="black", **look)
        ax.set_title("\n".join([*name.split(", "), f"{number:,.0f}"]))
        ax.set(xscale="log", xlabel="error", ylim=(len(places) - 0.5, -0.5))
        ax.xaxis.set_minor_formatter(NullFormatter())  # where an axis has hardly a decade, they would overlap
    axes[0, 0].set_yticks(list(places.values()), [f"{m}, {n:,}, {i}" for m, n, i in places])
    axes[0, 0].set_ylabel("measure, images, inputs")
    figure.suptitle(title, wrap=True)
    legend(figure, axes[0, 0])
    return figure
