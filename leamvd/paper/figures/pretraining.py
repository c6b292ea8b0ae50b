"""Figures of the section on classification: test errors, errors of linear probes, log-likelihoods."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter, StrMethodFormatter

from leamvd.paper.figures.style import COLORS, new, plain

_RANDOM = ["C7", "C8", "C9", "C5", "C6"]
"""Colors of random weights, in their order."""


def test_errors(bands: pd.DataFrame, title: str) -> Figure:
    """Plot test errors in percent against epochs of fine-tuning, with intervals; a panel for each study.

    Parameters
    ----------
    bands : DataFrame
        Columns study, method, epoch, mean, low, high, as shares.
    title : str
        Names the data set.
    """
    figure, axes = _panels(bands, title, "test error after fine-tuning, %")
    for ax, (study, own) in zip(axes[0], bands.groupby("study", sort=False), strict=True):
        for method, line in own.groupby("method", sort=False):
            color = _color(str(method), bands)
            ax.plot(line["epoch"], 100 * line["mean"], color=color, label=plain(str(method)), linewidth=1.5)
            ax.fill_between(line["epoch"], 100 * line["low"], 100 * line["high"], color=color, alpha=0.2, linewidth=0)
        ax.set_title(f"stacks of {study}", fontsize="medium")
        ax.set_xlabel("epoch")
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        _percent(ax)
    return _legend(figure, axes)


def probe_errors(table: pd.DataFrame, title: str) -> Figure:
    """Plot test errors of linear probes in percent by layer, with intervals; a panel for each study.

    Parameters
    ----------
    table : DataFrame
        Columns study, method, layer (0: the images), mean, low, high, as shares.
    title : str
        Names the data set.
    """
    figure, axes = _panels(table, title, "test error of a linear probe, %")
    methods = list(table["method"].unique())
    for ax, (study, own) in zip(axes[0], table.groupby("study", sort=False), strict=True):
        for i, (method, points) in enumerate(own.groupby("method", sort=False)):
            places = points["layer"] + 0.3 * (i / len(methods) - 0.5)  # beside those of other methods
            _bars(ax, places, 100 * points[["mean", "low", "high"]], str(method), table, line="-")
        layers = sorted(own["layer"].unique())
        ax.set_xticks(layers, ["pixels", *(f"RBM {layer}" for layer in layers[1:])])
        ax.set_title(f"stacks of {study}", fontsize="medium")
        _percent(ax)
    return _legend(figure, axes)


def log_likelihoods(table: pd.DataFrame, independent: pd.Series, title: str) -> Figure:
    """Plot log-likelihoods of the first layers, with intervals; a panel for each study.

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
    for ax, (study, own) in zip(axes[0], table.groupby("study", sort=False), strict=True):
        for i, (_, point) in enumerate(own.iterrows()):
            _bars(ax, [i], point[["mean", "low", "high"]].to_frame().T, str(point["method"]), table, line="none")
        ax.axhline(independent[str(study)], color="black", linewidth=0.8)
        ax.set_xticks(range(len(own)), [plain(method) for method in own["method"]], rotation=20)
        ax.set_xlim(-0.5, len(own) - 0.5)
        ax.set_title(f"stacks of {study}", fontsize="medium")
    return figure


def _panels(table: pd.DataFrame, title: str, ylabel: str) -> tuple[Figure, Any]:
    count = table["study"].nunique()
    figure, axes = new(1, count, width=max(7.0, 1.0 + 4.0 * count), height=4.2)
    figure.supylabel(ylabel, fontsize="medium")
    figure.suptitle(title, fontsize="medium", wrap=True)
    return figure, axes


def _legend(figure: Figure, axes: Any) -> Figure:
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(len(labels), 5), frameon=False)
    return figure


def _color(method: str, table: pd.DataFrame) -> str:
    """Return a method's own color, or for random weights one by their place among them."""
    name = method.partition(":")[0]
    if name in COLORS:
        return COLORS[name]
    others = [other for other in table["method"].unique() if other.partition(":")[0] not in COLORS]
    return _RANDOM[others.index(method) % len(_RANDOM)]


def _bars(ax: Any, places: Any, points: pd.DataFrame, method: str, table: pd.DataFrame, *, line: str) -> None:
    values = points.to_numpy(dtype=float)
    ends = np.abs(np.nan_to_num(values[:, 1:] - values[:, :1])).T
    look = {"color": _color(method, table), "linestyle": line, "linewidth": 1.0, "marker": "o", "markersize": 4}
    ax.errorbar(places, values[:, 0], ends, label=plain(method), **look)


def _percent(ax: Any) -> None:
    ax.set_yscale("log")
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())
