"""Figures of the section on classification: test errors, errors of linear probes, log-likelihoods."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leamvd.figures.style import COLORS, GRAY, error_bars, label_ends, line_style, logarithmic, new, plain, styled

_RANDOM = ("-", "--", ":", "-.")
"""Line styles of random weights, in their order; all have one color."""


@styled
def test_errors(bands: pd.DataFrame, title: str) -> Figure:
    """Plot test errors in percent against epochs of fine-tuning, with intervals; a row for each study.

    Parameters
    ----------
    bands : DataFrame
        Columns study, method, epoch, mean, low, high, as shares.
    title : str
        Names the data set.
    """
    figure, axes = _panels(bands, title, "test error after fine-tuning, %")
    for ax, (study, own) in zip(axes[:, 0], bands.groupby("study", sort=False), strict=True):
        for method, line in own.groupby("method", sort=False):
            color, style = _look(str(method), bands)
            ax.plot(line["epoch"], 100 * line["mean"], style, color=color, label=plain(str(method)), linewidth=1.5)
            ax.fill_between(line["epoch"], 100 * line["low"], 100 * line["high"], color=color, alpha=0.2, linewidth=0)
        ax.set_title(f"stacks of {study}")
        ax.set_xlabel("epoch")
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        _percent(ax)
        label_ends(ax)
    return figure


@styled
def probe_errors(table: pd.DataFrame, title: str) -> Figure:
    """Plot test errors of linear probes in percent by layer, with intervals; a row for each study.

    Parameters
    ----------
    table : DataFrame
        Columns study, method, layer (0: the images), mean, low, high, as shares.
    title : str
        Names the data set.
    """
    figure, axes = _panels(table, title, "test error of a linear probe, %")
    methods = list(table["method"].unique())
    for ax, (study, own) in zip(axes[:, 0], table.groupby("study", sort=False), strict=True):
        for i, (method, points) in enumerate(own.groupby("method", sort=False)):
            places = points["layer"] + 0.3 * (i / len(methods) - 0.5)  # a little apart for each method
            _bars(ax, places, 100 * points[["mean", "low", "high"]], str(method), table)
        layers = sorted(own["layer"].unique())
        ax.set_xticks(layers, ["pixels", *(f"RBM {layer}" for layer in layers[1:])])
        ax.set_title(f"stacks of {study}")
        _percent(ax)
        label_ends(ax)
    return figure


@styled
def log_likelihoods(table: pd.DataFrame, independent: pd.Series, title: str) -> Figure:
    """Plot log-likelihoods of the first layers, with intervals; a row for each study.

    Parameters
    ----------
    table : DataFrame
        Columns study, method, mean, low, high.
    independent : Series, indexed by study
        What independent pixels find: a line.
    title : str
        Names the data set.
    """
    figure, axes = _panels(table, title, "log-likelihood of a test image, nats")
    for ax, (study, own) in zip(axes[:, 0], table.groupby("study", sort=False), strict=True):
        for i, method in enumerate(own["method"]):
            _bars(ax, [i], own.iloc[[i]], method, table)
        ax.axhline(independent[str(study)], color="black", linewidth=0.8)
        ax.set_xticks(range(len(own)), [plain(method) for method in own["method"]], rotation=20)
        ax.set_xlim(-0.5, len(own) - 0.5)
        ax.set_title(f"stacks of {study}")
    return figure


def _panels(table: pd.DataFrame, title: str, ylabel: str) -> tuple[Figure, Any]:
    count = table["study"].nunique()
    figure, axes = new(count, 1, height=0.4 + 3.4 * count)
    figure.supylabel(ylabel)
    figure.suptitle(title, wrap=True)
    return figure, axes


def _look(method: str, table: pd.DataFrame) -> tuple[str, str]:
    """Return color and line style of a method, or of random weights by their place among them."""
    if method.partition(":")[0] in COLORS:
        return line_style(method)
    others = [other for other in table["method"].unique() if other.partition(":")[0] not in COLORS]
    return GRAY, _RANDOM[others.index(method) % len(_RANDOM)]


def _bars(ax: Any, places: Any, points: pd.DataFrame, method: str, table: pd.DataFrame) -> None:
    color, style = _look(method, table)
    ends = np.nan_to_num(error_bars(points, "mean", "low", "high"))
    look = {"color": color, "linestyle": style, "linewidth": 1.0, "marker": "o", "markersize": 4}
    ax.errorbar(places, points["mean"], ends, label=plain(method), **look)


def _percent(ax: Any) -> None:
    ax.set_yscale("log")
    logarithmic(ax.yaxis)
