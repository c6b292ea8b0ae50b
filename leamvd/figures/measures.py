"""Figures of the section on what the error measures: controls, weights that win, and what the paper may have run."""

from collections.abc import Mapping
from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from leamvd.figures.style import (
    BLUE,
    COLORS,
    GREEN,
    VERMILION,
    error_bars,
    grid,
    groups,
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
    """Plot the two ratios of `leamvd.analysis.measures.paths` against each other over the run.

    A method's line starts with an open marker and ends with a filled one, which has the intervals of `ends`, of
    `leamvd.analysis.intervals.errors`.
    """
    measures, at = ("mean_field_ratio", "sampled_ratio"), ends.set_index(["inputs", "layer", "method", "measure"])
    ylabel = "sampled ratio: error / constant image's"
    figure, axes, cells = grid(table, 2.1, margin=1.3, title=title, ylabel=ylabel)
    for ax, kind, layer, cell in cells:
        for method, line in groups(cell, "method"):
            color, style = line_style(method)
            x, y = (line[measure].to_numpy() for measure in measures)
            last = [at.loc[[(kind, layer, method, measure)]] for measure in measures]
            bars = [error_bars(end, "mean", "low", "high") for end in last]
            ax.plot(x, y, style, color=color, linewidth=1.5, label=plain(method))
            ax.plot(x[:1], y[:1], "o", color=color, fillstyle="none", markersize=5)
            ax.errorbar(x[-1:], y[-1:], bars[1], bars[0], fmt="o", color=color, markersize=5)
        for line_at in (ax.axhline, ax.axvline):
            line_at(1.0, color="black", linewidth=0.8)
        logarithmic(ax.xaxis, most=4)
        logarithmic(ax.yaxis)
    for ax in axes[-1]:
        ax.set_xlabel("mean-field ratio")
    legend(figure, axes[0, 0])
    return figure


@styled
def inputs(table: pd.DataFrame, title: str) -> Figure:
    """Plot `leamvd.analysis.measures.explained`, last errors and those of the constant image, joined by a line."""
    layers, methods = sorted(table["layer"].unique()), list(table["method"].unique())
    kinds = list(table["inputs"].unique())
    height = 1.5 + 0.22 * len(kinds) * len(methods)
    figure, axes = new(1, len(layers), height=height, sharey=True, title=title)
    for ax, layer in zip(axes[0], layers, strict=True):
        for (kind, method), row in groups(table[table["layer"] == layer], ["inputs", "method"]):
            place = [methods.index(method) + 0.36 * (kinds.index(kind) - 0.5 * (len(kinds) - 1))]
            color, ends = line_style(method)[0], error_bars(row, "error", "low", "high")
            look: dict[str, Any] = {"fillstyle": "full" if kind == "own" else "none", "markersize": 5, "color": color}
            ax.plot(row[["error", "constant"]].to_numpy()[0], place * 2, "-", color=color, linewidth=1.0)
            ax.plot(row["constant"], place, "|", color="black", markersize=9, label="constant image")
            ax.errorbar(row["error"], place, xerr=ends, fmt="o", label=f"{kind} inputs", **look)
        ax.set_title(f"RBM {layer}")
        logarithmic(ax.xaxis, most=4)
        ax.set_yticks(range(len(methods)), [plain(method) for method in methods])
    axes[0, 0].invert_yaxis()
    axes[0, len(layers) // 2].set_xlabel("mean-field error per image")
    legend(figure, axes[0, 0])
    return figure


@styled
def collapse(table: pd.DataFrame, title: str) -> Figure:
    """Plot `leamvd.experiments.collapse.collapse`, what RBM 2 scores and its features are worth, against the factor."""
    figure, axes = new(3, 1, height=6.6, sharex=True, title=title)
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
    return figure


@styled
def combinations(rows: pd.DataFrame, numbers: Mapping[str, float], near: pd.DataFrame, title: str) -> Figure:
    """Plot each combination of `leamvd.analysis.forensics.distances` as a mark in each of the paper's numbers, a line.

    `near`, of `leamvd.analysis.forensics.nearest`, have rings.
    """
    keys = ["measure", "images", "inputs"]
    places = {key: place for place, (key, _) in enumerate(groups(rows, keys))}
    figure, axes = new(1, len(numbers), height=1.8 + 0.32 * len(places), sharey=True, title=title)
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
    legend(figure, axes[0, 0])
    return figure
