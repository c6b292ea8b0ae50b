"""Figures of the section on classification: test errors, errors of linear probes, log-likelihoods.

Each takes a table with the columns study, method, mean, low and high, and draws a row for each study.
"""

from typing import Any

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leamvd.figures.style import (
    COLORS,
    GRAY,
    band,
    bars,
    groups,
    label_ends,
    line_style,
    logarithmic,
    new,
    parts,
    percent,
    plain,
    styled,
)

_RANDOM = ("-", "--", ":", "-.")
"""Line styles of random weights, in their order; all have one color."""


@styled
def test_errors(bands: pd.DataFrame, title: str) -> Figure:
    """Plot test errors, given as shares, in percent against the column epoch."""
    bands = percent(bands)
    figure, panels = _panels(bands, title, "test error after fine-tuning, %")
    for ax, _, own in panels:
        for method, line in groups(own, "method"):
            band(ax, line, "epoch", method, _look(method, bands))
        ax.set_xlabel("epoch")
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        logarithmic(ax.yaxis)
        label_ends(ax)
    return figure


@styled
def probe_errors(table: pd.DataFrame, title: str) -> Figure:
    """Plot test errors of linear probes, given as shares, in percent by the column layer, in which 0 is the images."""
    table = percent(table)
    figure, panels = _panels(table, title, "test error of a linear probe, %")
    methods = list(table["method"].unique())
    for ax, _, own in panels:
        for i, (method, points) in enumerate(groups(own, "method")):
            places = points["layer"] + 0.3 * (i / len(methods) - 0.5)  # a little apart for each method
            bars(ax, places, points, method, _look(method, table), marker="o", markersize=4)
        layers = sorted(own["layer"].unique())
        ax.set_xticks(layers, ["pixels", *(f"RBM {layer}" for layer in layers[1:])])
        logarithmic(ax.yaxis)
        label_ends(ax)
    return figure


@styled
def log_likelihoods(table: pd.DataFrame, independent: pd.Series, title: str) -> Figure:
    """Plot log-likelihoods of the first layers; a line is what `independent` pixels find, by study."""
    figure, panels = _panels(table, title, "log-likelihood of a test image, nats")
    for ax, study, own in panels:
        for i, (method, point) in enumerate(groups(own, "method")):
            bars(ax, [i], point, method, _look(method, table), marker="o", markersize=4)
        ax.axhline(independent[study], color="black", linewidth=0.8)
        ax.set_xticks(range(len(own)), [plain(method) for method in own["method"]], rotation=20)
        ax.set_xlim(-0.5, len(own) - 0.5)
    return figure


def _panels(table: pd.DataFrame, title: str, ylabel: str) -> tuple[Figure, list[tuple[Any, str, pd.DataFrame]]]:
    """Return a figure, and of each study a panel, its name and its rows."""
    count = table["study"].nunique()
    figure, axes = new(count, 1, height=0.4 + 3.4 * count, title=title, ylabel=ylabel)
    panels = []
    for ax, (study, own) in zip(axes[:, 0], groups(table, "study"), strict=True):
        ax.set_title(f"stacks of {study}")
        panels.append((ax, study, own))
    return figure, panels


def _look(method: str, table: pd.DataFrame) -> tuple[str, str]:
    """Return color and line style of a method, or of random weights by their place among them."""
    if parts(method)[0] in COLORS:
        return line_style(method)
    others = [other for other in table["method"].unique() if parts(other)[0] not in COLORS]
    return GRAY, _RANDOM[others.index(method) % len(_RANDOM)]
