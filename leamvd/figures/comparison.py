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
    band,
    bars,
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

MARKERS = "os^vD<>pPX*h"
"""Of methods that share a color and a line style."""


@styled
def learning_curves(
    bands: pd.DataFrame,
    runs: pd.DataFrame,
    title: str,
    ylabel: str,
    *,
    printed: Mapping[tuple[str, int], float] = MappingProxyType({}),
    constant: bool = False,
) -> Figure:
    """Plot `leamvd.analysis.intervals.bands` of a measure over the run, and behind them `comparison.runs`, thin.

    Lines begin with the first iteration: what contrastive divergence starts from is random, and off any scale.
    `printed`, by method and layer, are the paper's numbers, labeled lines where inputs are its own; `constant` is the
    line at 1, the ratio of the constant image.
    """
    bands, runs = bands[bands["iteration"] > 0], runs[runs["iteration"] > 0]
    figure, axes, cells = grid(bands, 2.2, sharex=True, title=title, ylabel=ylabel)
    for ax, kind, layer, cell in cells:
        thin = runs[(runs["inputs"] == kind) & (runs["layer"] == layer)]
        for (method, _), run in groups(thin, ["method", "seed"]):
            ax.plot(run["iteration"], run["value"], color=line_style(method)[0], linewidth=0.4, alpha=0.3)
        for method, line in groups(cell, "method"):
            band(ax, line, "iteration", method, line_style(method))
        for (method, at), value in printed.items():
            if (kind, layer) == ("own", at) and method in set(cell["method"]):
                ax.axhline(value, color=COLORS[method], linestyle=(0, (6, 2)), linewidth=1.0)
                where = ("axes fraction", "data"), "offset points"
                ax.annotate(f"paper: {value:,.0f}", (1, value), (-3, 2), *where, ha="right")
        if constant:
            ax.axhline(1.0, color="black", linewidth=0.8)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        logarithmic(ax.yaxis)
    for ax in axes[-1]:
        ax.set_xlabel("epoch or generation")
    for ax in axes[:, -1]:
        label_ends(ax)
    return figure


@styled
def work(bands: pd.DataFrame, title: str, ylabel: str) -> Figure:
    """Plot a measure on one kind of inputs against iterations, passes and seconds (item E10): a row for each layer."""
    layers, budgets = sorted(bands["layer"].unique()), ("iteration", "passes", "seconds")
    shape: dict[str, Any] = {"height": 1.2 + 2.2 * len(layers), "sharey": "row"}
    figure, axes = new(len(layers), len(budgets), title=title, ylabel=ylabel, **shape)
    for (layer, method), line in groups(bands[bands["iteration"] > 0], ["layer", "method"]):
        row = axes[layers.index(layer)]
        for ax, budget in zip(row, budgets, strict=True):
            band(ax, line, budget, method, line_style(method))
            logarithmic(ax.yaxis)
            if budget != "iteration":
                ax.set_xscale("log")
                ax.xaxis.set_minor_formatter(NullFormatter())
        row[0].set_title(f"RBM {layer}, {line['inputs'].iloc[0]} inputs", loc="left")
    for ax, label in zip(axes[-1], ("iterations", "passes", "seconds"), strict=True):
        ax.set_xlabel(label)
    legend(figure, axes[0, 0])
    return figure


@styled
def longer(bands: pd.DataFrame, title: str) -> Figure:
    """Plot `leamvd.analysis.longer.means`, best values against evaluations for each variable: a panel a problem."""
    problems = list(bands["problem"].unique())
    rows = (len(problems) + 1) // 2
    figure, axes = new(rows, 2, height=1.2 + 2.2 * rows, sharex=True, title=title, ylabel="best value")
    for ax in axes.flat[len(problems) :]:
        ax.set_axis_off()
    for ax, problem in zip(axes.flat, problems, strict=False):
        for method, line in groups(bands[bands["problem"] == problem], "method"):
            band(ax, line, "mark", method, line_style(method))
        ax.set_title(problem)
        logarithmic(ax.xaxis)
        logarithmic(ax.yaxis)
    for ax in axes[-1]:
        ax.set_xlabel("evaluations for each variable")
    legend(figure, axes[0, 0])
    return figure


@styled
def ends(errors: pd.DataFrame, runs: Mapping[str, pd.DataFrame], title: str, xlabel: str) -> Figure:
    """Plot the last errors of all methods, of `leamvd.analysis.intervals.errors`, and behind them each run's.

    `runs` are `comparison.runs` for each measure in `errors`; the second measure is hollow.
    """
    methods = list(errors["method"].unique())
    figure, _, cells = grid(errors, 0.25 * len(methods) + 0.7, sharey=True, title=title)
    for ax, kind, layer, panel in cells:
        for i, (measure, points) in enumerate(groups(panel, "measure")):
            dots, shift = runs[measure], 0.3 * (i - 0.5 * (len(runs) - 1))
            dots = dots[(dots["inputs"] == kind) & (dots["layer"] == layer)]
            ax.plot(dots["value"], dots["method"].map(methods.index) + shift, "|", color="black", alpha=0.25)
            for _, point in groups(points, "method"):
                method, reach = point["method"].item(), error_bars(point, "mean", "low", "high")
                color = line_style(method)[0]
                look: dict[str, Any] = {"color": color, "markerfacecolor": "white" if i else color, "markersize": 4}
                ax.errorbar(point["mean"], [methods.index(method) + shift], xerr=reach, fmt="o", **look)
        ax.set_yticks(range(len(methods)), [plain(method) for method in methods])
        ax.set_ylim(len(methods) - 0.5, -0.5)
        logarithmic(ax.xaxis, most=3)
    figure.supxlabel(xlabel)
    return figure


@styled
def input_std(errors: pd.DataFrame, title: str) -> Figure:
    """Plot the measure "input_std" of each layer on the first kind of inputs, a line for each method."""
    figure, ((ax,),) = new(height=3.6, title=title)
    layers = sorted(errors["layer"].unique())
    for method, points in groups(errors[errors["inputs"] == errors["inputs"].iloc[0]], "method"):
        bars(ax, points["layer"], points, method, line_style(method), marker="o", markersize=3)
    ax.set_xticks(layers, [f"RBM {layer}" for layer in layers])
    ax.set_ylim(bottom=0.0)
    ax.set_ylabel("standard deviation of the inputs")
    label_ends(ax)
    return figure


@styled
def sweep(errors: pd.DataFrame, swept: Sequence[str], title: str) -> Figure:
    """Plot last errors of one measure against the parameter `swept[0]`: a column of panels for each layer.

    `errors` has a column of texts for each parameter; each combination of the other ones has its rows, one for each
    kind of inputs.
    """
    x, *others = swept
    ticks, layers, methods = (list(errors[name].unique()) for name in (x, "layer", "method"))
    rows, markers = errors.groupby(["inputs", *others], sort=False), _markers(methods)
    shape: dict[str, Any] = {"width": max(WIDTH, 0.5 + 2.5 * len(layers)), "height": 1.2 + 2.2 * len(rows)}
    ylabel = "mean-field error per 10,000 images"
    figure, axes = new(len(rows), len(layers), sharex=True, title=title, ylabel=ylabel, **shape)
    for line, ((kind, *values), row) in zip(axes, rows, strict=True):
        where = "".join(f"\n{name}={plain(str(value))}" for name, value in zip(others, values, strict=True))
        for ax, layer in zip(line, layers, strict=True):
            for i, (method, marker) in enumerate(zip(methods, markers, strict=True)):
                points = row[(row["layer"] == layer) & (row["method"] == method)]
                places = points[x].map(ticks.index) + 0.3 * (i / len(methods) - 0.5)  # a little apart for each method
                bars(ax, places, points, method, line_style(method), marker=marker, markersize=3)
            ax.set_title(f"RBM {layer}, {kind} inputs{where}")
            logarithmic(ax.yaxis)
            ax.set_xticks(range(len(ticks)), [plain(tick) for tick in ticks])
            ax.set_xlim(-0.5, len(ticks) - 0.5)
    for ax in axes[-1]:
        ax.set_xlabel(x)
    legend(figure, axes[0, 0])
    return figure


def _markers(methods: Sequence[str]) -> list[str]:
    """Return a marker for each method: another one for each that would otherwise look like an earlier one."""
    looks = [line_style(method) for method in methods]
    return [MARKERS[looks[:i].count(look) % len(MARKERS)] for i, look in enumerate(looks)]


@styled
def pictures(
    rows: Mapping[str, NDArray[Any]], title: str, columns: Sequence[str] = ("",), *, signed: bool = False
) -> Figure:
    """Show images in 0 to 255, shape (runs, k, side, side), in a row for each name, and the named runs one by one.

    A row of one run is the same for all. If `signed`, blue is below 127.5, white there, and red above.
    """
    colors, k = "RdBu_r" if signed else "gray_r", next(iter(rows.values())).shape[1]
    size = 0.35  # inches of an image
    shape = {"width": 1.6 + k * size, "height": 0.5 + 1.15 * size * len(rows) * len(columns)}
    figure, axes = new(len(rows) * len(columns), 1, title=title, **shape)
    blocks = itertools.product(range(len(columns)), rows.items())
    for ax, (run, (name, images)) in zip(axes[:, 0], blocks, strict=True):
        own = np.broadcast_to(images, (len(columns), *images.shape[1:]))[run]
        framed = np.pad(own.astype(float), ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)
        ax.imshow(np.hstack(list(framed)), cmap=colors, vmin=0, vmax=255, interpolation="nearest")
        ax.set_axis_off()
        ax.text(-0.01, 0.5, plain(name), transform=ax.transAxes, ha="right", va="center")
    for ax, column in zip(axes[:: len(rows), 0], columns, strict=True):
        ax.set_title(column)
    return figure
