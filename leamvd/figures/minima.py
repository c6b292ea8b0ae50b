"""Figures of the section on local minima and architectures: shares of escapes, and errors of networks."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from leamvd.figures.style import (
    BLUE,
    band,
    bars,
    error_bars,
    groups,
    legend,
    line_style,
    logarithmic,
    new,
    parts,
    percent,
    plain,
    styled,
)

MARKERS = {"lea-mvd": "o", "sep-cma-es": "s", "random": "^", "mlp": "D"}
"""Of methods that train networks."""


@styled
def escapes(table: pd.DataFrame, title: str) -> Figure:
    """Plot the share of escapes in percent against the number of variables: a panel for each sigma0.

    The table has the columns sigma0, method, n_var, mean, low and high.
    """
    sigmas = list(table["sigma0"].unique())
    figure, axes = new(
        len(sigmas), 1, height=1.7 * len(sigmas) + 1.2, title=title, ylabel="searches that escape, %", sharex=True
    )
    for ax, (sigma0, own) in zip(axes[:, 0], groups(table, "sigma0"), strict=True):
        for method, line in groups(own, "method"):
            band(ax, percent(line), "n_var", method, line_style(method))
        ax.axhline(50, color="black", linewidth=0.8, linestyle=":")
        ax.set_title(f"sigma0 = {sigma0:g}")
        ax.set_ylim(-3, 103)
        logarithmic(ax.xaxis)
        ax.xaxis.set_major_locator(FixedLocator(sorted(table["n_var"].unique())))
        ax.xaxis.set_minor_locator(NullLocator())
    axes[-1, 0].set_xlabel("variables")
    legend(figure, *axes[:, 0])
    return figure


@styled
def networks(table: pd.DataFrame, title: str) -> Figure:
    """Plot the share of wrong test images in percent of each network, a marker for each method, and at the start.

    The table has the columns network, method, mean, low and high; the method "start" is drawn as a line.
    """
    names = list(table["network"].unique())
    methods = [method for method in table["method"].unique() if method != "start"]
    figure, axes = new(height=4.2, title=title)
    ax = axes[0, 0]
    for method, own in groups(percent(table), "method"):
        places = np.array([names.index(name) for name in own["network"]], dtype=float)
        if method == "start":
            ax.hlines(own["mean"], places - 0.4, places + 0.4, color="black", linewidth=1, label="start")
            continue
        offset = 0.15 * (methods.index(method) - (len(methods) - 1) / 2)
        look = (BLUE, "none") if method == "mlp" else (line_style(method)[0], "none")
        name, settings = parts(method)
        full = "none" if settings else "full"
        bars(ax, places + offset, own, method, look, marker=MARKERS[name], markersize=5, fillstyle=full)
    logarithmic(ax.yaxis)
    ax.set_xticks(range(len(names)), [name.replace(" ", "\n") for name in names])
    ax.set_ylabel("wrong test images, %")
    legend(figure, ax)
    return figure


@styled
def beside_preset(found: pd.DataFrame, title: str) -> Figure:
    """Plot `leamvd.analysis.longer.against_lea_mvd`: a row for each problem, a marker for each method.

    Left of 1 a method ends below the reading that it is compared with.
    """
    problems, methods = list(found["problem"].unique()), list(found["method"].unique())
    figure, axes = new(height=1.8 + 0.36 * len(problems), title=title)
    ax = axes[0, 0]
    for j in range(0, len(problems), 2):
        ax.axhspan(j - 0.5, j + 0.5, color="0.95", zorder=0)
    for method, own in groups(found, "method"):
        color, line = line_style(method)
        offset = 0.7 * ((methods.index(method) + 0.5) / len(methods) - 0.5)
        places = np.array([problems.index(name) for name in own["problem"]]) + offset
        look: dict[str, Any] = {"markersize": 4, "markerfacecolor": color if line == "-" else "none"}
        look |= {"fmt": MARKERS[parts(method)[0]], "color": color, "label": plain(method)}
        ax.errorbar(own["ratio"], places, xerr=error_bars(own, "ratio", "low", "high"), **look)
    ax.axvline(1, color="black", linewidth=0.8)
    logarithmic(ax.xaxis)
    ax.set_yticks(range(len(problems)), problems)
    ax.set(xlabel="best value over the preset's", ylim=(len(problems) - 0.5, -0.5))
    legend(figure, ax)
    return figure
