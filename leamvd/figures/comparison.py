"""Figures of the sections on reconstruction: errors over the run and at its end, work, images, filters."""

import itertools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter
from numpy.typing import NDArray

from leamvd.figures.style import (
    COLORS,
    WIDTH,
    error_bars,
    label_ends,
    legend,
    line_style,
    logarithmic,
    new,
    plain,
    styled,
)

MARKERS = "os^vD<>pPX*h"
"""Of methods that share a color and a line style."""

LABELS = {
    "iteration": "epoch or generation",
    "own": "own inputs",
    "shared": "shared inputs",
}
"""Of axes and rows, by the names in the tables."""


@styled
def errors(
    bands: pd.DataFrame,
    runs: pd.DataFrame,
    title: str,
    ylabel: str,
    *,
    printed: Mapping[tuple[str, int], float] = MappingProxyType({}),
    constant: bool = False,
) -> Figure:
    """Plot a measure over the run, on a logarithmic scale: a row for each layer, a column for each kind of inputs.

    Lines begin with the first iteration: what contrastive divergence starts from is random, and off any scale.

    Parameters
    ----------
    bands : DataFrame
        Of `leamvd.analysis.intervals.bands`.
    runs : DataFrame
        Of `leamvd.analysis.comparison.runs`, drawn thin behind the means.
    title, ylabel : str
        The data set; the measure and its unit.
    printed : mapping of (str, int) to float
        Numbers that the paper prints, by method and layer: labeled lines, where inputs are its own.
    constant : bool
        Draw a line at 1, the ratio of the constant image.
    """
    kinds, layers = list(bands["inputs"].unique()), sorted(bands["layer"].unique())
    figure, axes = _grid(len(layers), len(kinds), sharex=True)
    bands, runs = _since_first(bands), _since_first(runs)
    for (kind, layer), cell in bands.groupby(["inputs", "layer"], sort=False):
        ax = axes[layers.index(layer), kinds.index(str(kind))]
        _thin(ax, runs[(runs["inputs"] == kind) & (runs["layer"] == layer)])
        for method, line in cell.groupby("method", sort=False):
            _band(ax, line, "iteration", str(method))
        for (method, at), value in printed.items():
            if (kind, layer) == ("own", at) and method in set(cell["method"]):
                _printed(ax, method, value)
        if constant:
            ax.axhline(1.0, color="black", linewidth=0.8)
        ax.set_title(f"RBM {layer}, {LABELS[str(kind)]}")
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        _logarithmic(ax)
    _named(figure, axes, [LABELS["iteration"]] * len(kinds), title, ylabel)
    for ax in axes[:, -1]:
        label_ends(ax)
    return figure


@styled
def work(bands: pd.DataFrame, title: str, ylabel: str) -> Figure:
    """Plot a measure on one kind of inputs against iterations, passes and seconds (item E10): a row for each layer.

    Parameters are as for `errors`, and lines begin with the first iteration; passes and seconds are on logarithmic
    scales.
    """
    layers, budgets = sorted(bands["layer"].unique()), ("iteration", "passes", "seconds")
    figure, axes = _grid(len(layers), len(budgets), sharey="row")
    for (layer, method), line in _since_first(bands).groupby(["layer", "method"], sort=False):
        for ax, budget in zip(axes[layers.index(layer)], budgets, strict=True):
            _band(ax, line, budget, str(method))
            _logarithmic(ax)
            if budget != "iteration":
                ax.set_xscale("log")
                ax.xaxis.set_minor_formatter(NullFormatter())
        kind = LABELS[str(line["inputs"].iloc[0])]
        axes[layers.index(layer), 0].set_title(f"RBM {layer}, {kind}", loc="left")
    _named(figure, axes, ["iterations", "passes", "seconds"], title, ylabel)
    legend(figure, axes[0, 0])
    return figure


@styled
def longer(bands: pd.DataFrame, title: str) -> Figure:
    """Plot the best value against evaluations for each variable, a panel for each problem, on logarithmic scales.

    Parameters
    ----------
    bands : DataFrame
        Of `leamvd.analysis.longer.means`.
    title : str
        What was run.
    """
    problems = list(bands["problem"].unique())
    figure, axes = _grid((len(problems) + 1) // 2, 2, sharex=True)
    for ax in axes.flat[len(problems) :]:
        ax.set_axis_off()
    for ax, problem in zip(axes.flat, problems, strict=False):
        for method, line in bands[bands["problem"] == problem].groupby("method", sort=False):
            _band(ax, line, "mark", str(method))
        ax.set(xscale="log", title=problem)
        logarithmic(ax.xaxis)
        _logarithmic(ax)
    _named(figure, axes, ["evaluations for each variable"] * 2, title, "best value")
    legend(figure, axes[0, 0])
    return figure


@styled
def ends(errors: pd.DataFrame, runs: Mapping[str, pd.DataFrame], title: str, xlabel: str) -> Figure:
    """Plot last errors of all methods, with their intervals: a row for each layer, a column for each kind of inputs.

    Parameters
    ----------
    errors : DataFrame
        Of `leamvd.analysis.intervals.errors`.
    runs : mapping of str to DataFrame
        Of `leamvd.analysis.comparison.runs`, for each measure in `errors`: the last iterations, drawn behind them.
    title, xlabel : str
        The data set; the measure and its unit.
    """
    kinds, layers, methods = (list(errors[name].unique()) for name in ("inputs", "layer", "method"))
    figure, axes = _grid(len(layers), len(kinds), height=0.25 * len(methods) + 0.7, sharey=True)
    for (kind, layer), panel in errors.groupby(["inputs", "layer"], sort=False):
        ax = axes[layers.index(layer), kinds.index(str(kind))]
        for i, (measure, points) in enumerate(panel.groupby("measure", sort=False)):
            dots = runs[str(measure)]
            dots = dots[(dots["inputs"] == kind) & (dots["layer"] == layer)]
            shift = 0.3 * (i - 0.5 * (len(runs) - 1))
            ax.plot(dots["value"], dots["method"].map(methods.index) + shift, "|", color="black", alpha=0.25)
            _points(ax, points, points["method"].map(methods.index) + shift, filled=i == 0)
        ax.set_title(f"RBM {layer}, {LABELS[str(kind)]}")
        ax.set_yticks(range(len(methods)), [plain(str(method)) for method in methods])
        ax.set_ylim(len(methods) - 0.5, -0.5)
        ax.set(xscale="log")
        logarithmic(ax.xaxis, most=3)
    figure.supxlabel(xlabel)
    figure.suptitle(title, wrap=True)
    return figure


@styled
def input_std(errors: pd.DataFrame, title: str) -> Figure:
    """Plot the standard deviation of each layer's inputs, a line for each method.

    Parameters
    ----------
    errors : DataFrame
        Of `leamvd.analysis.intervals.errors`, of the measure "input_std"; the first kind of inputs is shown.
    title : str
        Names the data set.
    """
    figure, axes = new(height=3.6)
    layers = sorted(errors["layer"].unique())
    for method, points in errors[errors["inputs"] == errors["inputs"].iloc[0]].groupby("method", sort=False):
        _bars(axes[0, 0], points["layer"], points, str(method))
    axes[0, 0].set_xticks(layers, [f"RBM {layer}" for layer in layers])
    axes[0, 0].set_ylim(bottom=0.0)
    axes[0, 0].set_ylabel("standard deviation of the inputs")
    label_ends(axes[0, 0])
    figure.suptitle(title, wrap=True)
    return figure


def _grid(rows: int, columns: int, *, height: float = 2.2, **options: Any) -> tuple[Figure, Any]:
    return new(rows, columns, height=1.2 + height * rows, **options)


def _named(figure: Figure, axes: Any, xlabels: Sequence[str], title: str, ylabel: str) -> None:
    """Name the axes of a grid."""
    for ax, label in zip(axes[-1], xlabels, strict=True):
        ax.set_xlabel(label)
    figure.supylabel(ylabel)
    figure.suptitle(title, wrap=True)


def _logarithmic(ax: Any) -> None:
    """Make the vertical axis logarithmic, with labels that are plain numbers."""
    ax.set(yscale="log")
    logarithmic(ax.yaxis)


def _since_first(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["iteration"] > 0]


def _thin(ax: Any, runs: pd.DataFrame) -> None:
    for (method, _), run in runs.groupby(["method", "seed"], sort=False):
        ax.plot(run["iteration"], run["value"], color=line_style(str(method))[0], linewidth=0.4, alpha=0.3)


def _printed(ax: Any, method: str, value: float) -> None:
    ax.axhline(value, color=COLORS[method], linestyle=(0, (6, 2)), linewidth=1.0)
    text = f"paper: {value:,.0f}"
    ax.annotate(text, (1, value), (-3, 2), ("axes fraction", "data"), "offset points", ha="right")


def _points(ax: Any, points: pd.DataFrame, places: Any, *, filled: bool) -> None:
    """Draw means with their intervals lying down; what is not `filled` is hollow."""
    for place, point in zip(places, points.to_dict("records"), strict=True):
        color, ends = line_style(point["method"])[0], [[point["mean"] - point["low"]], [point["high"] - point["mean"]]]
        face = color if filled else "white"
        ax.errorbar([point["mean"]], [place], xerr=ends, fmt="o", color=color, markerfacecolor=face, markersize=4)


def _band(ax: Any, line: pd.DataFrame, x: str, method: str) -> None:
    color, style = line_style(method)
    ax.plot(line[x], line["mean"], style, color=color, label=plain(method), linewidth=1.5)
    ax.fill_between(line[x], line["low"], line["high"], color=color, alpha=0.2, linewidth=0)


@styled
def sweep(errors: pd.DataFrame, swept: Sequence[str], title: str) -> Figure:
    """Plot last errors, with their intervals, against a parameter; a column of panels for each layer.

    Parameters
    ----------
    errors : DataFrame
        Of `leamvd.analysis.intervals.errors`, one measure, with a column of texts for each parameter in `swept`.
    swept : sequence of str
        The first one is the horizontal axis; each combination of the others has its rows, one for each kind of inputs.
    title : str
        Names the data set.
    """
    x, *others = swept
    ticks, layers, methods = (list(errors[name].unique()) for name in (x, "layer", "method"))
    rows, markers = errors.groupby(["inputs", *others], sort=False), _markers(methods)
    figure, axes = _grid(len(rows), len(layers), sharex=True, width=max(WIDTH, 0.5 + 2.5 * len(layers)))
    for line, ((kind, *values), row) in zip(axes, rows, strict=True):
        where = "".join(f"\n{name}={plain(str(value))}" for name, value in zip(others, values, strict=True))
        for ax, layer in zip(line, layers, strict=True):
            for i, (method, marker) in enumerate(zip(methods, markers, strict=True)):
                points = row[(row["layer"] == layer) & (row["method"] == method)]
                places = points[x].map(ticks.index) + 0.3 * (i / len(methods) - 0.5)  # a little apart for each method
                _bars(ax, places, points, method, marker)
            ax.set_title(f"RBM {layer}, {LABELS[str(kind)]}{where}")
            _logarithmic(ax)
            ax.set_xticks(range(len(ticks)), [plain(tick) for tick in ticks])
            ax.set_xlim(-0.5, len(ticks) - 0.5)
    _named(figure, axes, [x] * len(layers), title, "mean-field error per 10,000 images")
    legend(figure, axes[0, 0])
    return figure


def _markers(methods: Sequence[str]) -> list[str]:
    """Return a marker for each method: another one for each that would otherwise look like an earlier one."""
    looks = [line_style(method) for method in methods]
    return [MARKERS[looks[:i].count(look) % len(MARKERS)] for i, look in enumerate(looks)]


def _bars(ax: Any, places: Any, points: pd.DataFrame, method: str, marker: str = MARKERS[0]) -> None:
    color, style = line_style(method)
    ends = np.nan_to_num(error_bars(points, "mean", "low", "high"))
    drawn = {"color": color, "linestyle": style, "linewidth": 1.0, "marker": marker}
    ax.errorbar(places, points["mean"], ends, markersize=3, label=plain(method), **drawn)


@styled
def pictures(
    rows: Mapping[str, NDArray[Any]], title: str, columns: Sequence[str] = ("",), *, signed: bool = False
) -> Figure:
    """Show images in rows, each row with its name, and one below the other those of several runs.

    Parameters
    ----------
    rows : mapping of str to ndarray, shape (runs, k, side, side)
        In 0 to 255. A row of one run is the same for all.
    title : str
        Names the data set.
    columns : sequence of str
        Names of the runs.
    signed : bool
        Blue below 127.5, white there, red above, instead of gray levels.
    """
    colors, k = "RdBu_r" if signed else "gray_r", next(iter(rows.values())).shape[1]
    size = 0.35  # inches of an image
    shape = {"width": 1.6 + k * size, "height": 0.5 + 1.15 * size * len(rows) * len(columns)}
    figure, axes = new(len(rows) * len(columns), 1, **shape)
    blocks = itertools.product(range(len(columns)), rows.items())
    for ax, (run, (name, images)) in zip(axes[:, 0], blocks, strict=True):
        own = np.broadcast_to(images, (len(columns), *images.shape[1:]))[run]
        framed = np.pad(own.astype(float), ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)
        ax.imshow(np.hstack(list(framed)), cmap=colors, vmin=0, vmax=255, interpolation="nearest")
        ax.set_axis_off()
        ax.text(-0.01, 0.5, plain(name), transform=ax.transAxes, ha="right", va="center")
    for ax, column in zip(axes[:: len(rows), 0], columns, strict=True):
        ax.set_title(column)
    figure.suptitle(title, wrap=True)
    return figure
