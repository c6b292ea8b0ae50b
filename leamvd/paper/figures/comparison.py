"""Figures of the sections on reconstruction: errors over the run and of several runs, images, filters."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from leamvd.paper.figures.style import COLORS, STYLES, logarithmic, new, plain

LABELS = {
    "iteration": "epoch or generation",
    "passes": "passes over the images",
    "seconds": "seconds",
    "own": "own inputs",
    "shared": "shared inputs",
}
"""Of axes and rows, by the names in the records."""


def errors(bands: pd.DataFrame, title: str, ylabel: str, *, x: str = "iteration", constant: bool = False) -> Figure:
    """Plot a measure over the run, on a logarithmic scale: a row for each kind of inputs, a column for each layer.

    Parameters
    ----------
    bands : DataFrame
        Of `leamvd.paper.comparison.bands`.
    title : str
        Names the data set.
    ylabel : str
        The measure and its unit.
    x : {"iteration", "passes", "seconds"}
        The horizontal axis; seconds on a logarithmic scale, passes on one that is linear below 1.
    constant : bool
        Draw a line at 1, the ratio of the constant image.
    """
    kinds, layers = list(bands["inputs"].unique()), sorted(bands["layer"].unique())
    width, height = max(5.0, 0.5 + 2.5 * len(layers)), 1.2 + 2.2 * len(kinds)
    figure, axes = new(len(kinds), len(layers), width=width, height=height, sharex=x != "seconds")
    for (kind, layer), cell in bands.groupby(["inputs", "layer"], sort=False):
        ax = axes[kinds.index(str(kind)), layers.index(layer)]
        for method, line in cell.groupby("method", sort=False):
            _band(ax, line, x, str(method))
        if constant:
            ax.axhline(1.0, color="black", linewidth=0.8)
        ax.set_title(f"RBM {layer}, {LABELS[str(kind)]}", fontsize="medium")
        _scales(ax, x)
    for ax in axes[-1]:
        ax.set_xlabel(LABELS[x])
    figure.supylabel(ylabel, fontsize="medium")
    figure.suptitle(title, fontsize="medium", wrap=True)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False)
    return figure


def _scales(ax: Any, x: str) -> None:
    if x == "iteration":
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    elif x == "passes":
        ax.set_xscale("symlog", linthresh=1.0)
    else:
        ax.set_xscale("log")
    _logarithmic(ax)


def _logarithmic(ax: Any) -> None:
    """Make the vertical axis logarithmic, with labels that are plain numbers."""
    ax.set_yscale("log")
    logarithmic(ax.yaxis)


def _band(ax: Any, line: pd.DataFrame, x: str, method: str) -> None:
    name, _, reading = method.partition(":")
    color, style = COLORS[name], STYLES.get(reading, "-.")
    ax.plot(line[x], line["mean"], style, color=color, label=plain(method), linewidth=1.5)
    ax.fill_between(line[x], line["low"], line["high"], color=color, alpha=0.2, linewidth=0)


def sweep(errors: pd.DataFrame, swept: Sequence[str], title: str) -> Figure:
    """Plot final errors, with their intervals, against a parameter; a column of panels for each layer.

    Parameters
    ----------
    errors : DataFrame
        Of `leamvd.paper.intervals.errors`, one measure, with a column of texts for each parameter in `swept`.
    swept : sequence of str
        The first one is the horizontal axis; each combination of the others has its rows, one for each kind of inputs.
    title : str
        Names the data set.
    """
    x, *others = swept
    ticks, layers, methods = (list(errors[name].unique()) for name in (x, "layer", "method"))
    rows = errors.groupby(["inputs", *others], sort=False)
    width, height = max(5.0, 0.5 + 2.5 * len(layers)), 1.2 + 2.2 * len(rows)
    figure, axes = new(len(rows), len(layers), width=width, height=height, sharex=True)
    for line, ((kind, *values), row) in zip(axes, rows, strict=True):
        where = "".join(f"\n{name}={plain(str(value))}" for name, value in zip(others, values, strict=True))
        for ax, layer in zip(line, layers, strict=True):
            for i, method in enumerate(methods):
                points = row[(row["layer"] == layer) & (row["method"] == method)]
                places = points[x].map(ticks.index) + 0.3 * (i / len(methods) - 0.5)  # beside those of other methods
                _bars(ax, places, points, method)
            ax.set_title(f"RBM {layer}, {LABELS[str(kind)]}{where}", fontsize="medium")
            _logarithmic(ax)
            ax.set_xticks(range(len(ticks)), [plain(tick) for tick in ticks])
            ax.set_xlim(-0.5, len(ticks) - 0.5)
    for ax in axes[-1]:
        ax.set_xlabel(x)
    figure.supylabel("mean-field error per image", fontsize="medium")
    figure.suptitle(title, fontsize="medium", wrap=True)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False)
    return figure


def _bars(ax: Any, places: Any, points: pd.DataFrame, method: str) -> None:
    name, _, reading = method.partition(":")
    ends = np.abs(points[["low", "high"]].sub(points["mean"], axis=0).fillna(0.0).to_numpy().T)
    look = {"color": COLORS[name], "linestyle": STYLES.get(reading, "-."), "linewidth": 1.0, "marker": "o"}
    ax.errorbar(places, points["mean"], ends, markersize=3, label=plain(method), **look)


def pictures(rows: Mapping[str, NDArray[Any]], title: str, *, signed: bool = False) -> Figure:
    """Show images in rows, each row with its name.

    Parameters
    ----------
    rows : mapping of str to ndarray, shape (k, side, side)
        In [0, 1], or in [-1, 1] where `signed`.
    title : str
        Names the data set.
    signed : bool
        Blue below zero, white at zero, red above, instead of gray levels.
    """
    columns = max(map(len, rows.values()))
    low, colors = (-1, "RdBu_r") if signed else (0, "gray_r")
    figure, axes = new(len(rows), columns, width=1.8 + 0.6 * columns, height=0.5 + 0.62 * len(rows))
    for ax in axes.flat:
        ax.set_axis_off()
    for line, (name, images) in zip(axes, rows.items(), strict=True):
        for ax, image in zip(line, images, strict=False):
            ax.imshow(image, cmap=colors, vmin=low, vmax=1, interpolation="nearest")
        line[0].text(-0.25, 0.5, plain(name), transform=line[0].transAxes, ha="right", va="center")
    figure.suptitle(title, fontsize="medium", wrap=True)
    return figure
