"""Figures of the section on why searches stay: step sizes of theory, and gains predicted and measured."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from leamvd.figures.style import (
    BLUE,
    GREEN,
    PURPLE,
    VERMILION,
    band,
    error_bars,
    groups,
    legend,
    logarithmic,
    new,
    styled,
)

LOOKS = ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"))
"""Colors and markers of layers, the first one first; a fourth one looks like the first."""

KINDS = {"predicted": "before", "retrodicted": "own inputs"}
"""What slope and curvature say: before any search, or of the inputs that the searches below have made."""

NEEDED: dict[bool, tuple[Any, str]] = {True: ("-", "to end below CD"), False: ("--", "for the paper's number")}
"""Line style and name of what is needed to end below contrastive divergence, or for something else."""


@styled
def step_sizes(table: pd.DataFrame, sigma0: float, title: str) -> Figure:
    """Plot the step size of theory against the one at which it was measured: a panel for each study.

    The table has the columns study, layer, sigma, mean, low and high.
    """
    studies = list(table["study"].unique())
    figure, axes = new(len(studies), 1, height=2.2 * len(studies) + 0.8, title=title)
    for ax, (study, own) in zip(axes[:, 0], groups(table, "study"), strict=True):
        for layer, line in groups(own, "layer"):
            band(ax, line, "sigma", f"RBM {layer}", (_look(layer)[0], "-"))
        ends = [own["sigma"].min(), own["sigma"].max()]
        ax.plot(ends, ends, color="black", linewidth=0.8, linestyle=":", label="as large as measured")
        ax.axvline(sigma0, color=PURPLE, linestyle="--", linewidth=1, label="the paper's sigma0")
        logarithmic(ax.xaxis)
        logarithmic(ax.yaxis)
        ax.set_title(_pixels(study))
        ax.set_ylabel("step size of theory")
    axes[-1, 0].set_xlabel("step size of the pairs")
    legend(figure, *axes[:, 0])
    return figure


@styled
def gains(rows: pd.DataFrame, needed: pd.DataFrame, title: str) -> Figure:
    """Plot measured against predicted falls of the error in percent, a point for each setting: a row for each study.

    `rows` are those of `leamvd.analysis.explanation.predicted_and_measured`; on the left is what was predicted, on the
    right what the searches' own inputs add. Filled markers are searches with the reset. Lines at the right end show
    what is `needed` for what the paper claims, in percent, by study and layer: to end "below" contrastive divergence,
    or a number.
    """
    studies = list(rows["study"].unique())
    figure, axes = new(len(studies), len(KINDS), height=2.6 * len(studies) + 1.4, title=title, sharey=True)
    most = 1.3 * float(np.nanmax([*rows[["measured", "high", *KINDS]].max(), needed["needed"].max()]))
    for (study, own), (kind, label) in product(groups(rows, "study"), KINDS.items()):
        ax = axes[studies.index(study), list(KINDS).index(kind)]
        ax.plot([0, most], [0, most], color="black", linewidth=0.8, linestyle=":")
        for (layer, reset), points in groups(own, ["layer", "reset"]):
            color, marker = _look(layer)
            ax.errorbar(
                points[kind], points["measured"], yerr=error_bars(points, "measured", "low", "high"), fmt=marker,
                color=color, fillstyle="full" if reset else "none", markersize=5, linewidth=0.8,
            )  # fmt: skip
        for layer, below, fall in needed.loc[needed["study"] == study, ["layer", "below", "needed"]].values:
            ax.axhline(fall, 0.85, color=_look(layer)[0], linestyle=NEEDED[below == "cd"][0], linewidth=1.2)
        for scale, limits in ((ax.set_xscale, ax.set_xlim), (ax.set_yscale, ax.set_ylim)):
            scale("symlog", linthresh=1)
            limits(-0.2, most)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_formatter("{x:g}")
        ax.set_title(f"{_pixels(study)}, {label}")
        ax.set_xlabel("predicted fall, %")
    for ax in axes[:, 0]:
        ax.set_ylabel("measured fall, %")
    handles = [
        Line2D([], [], color=_look(layer)[0], marker=_look(layer)[1], linestyle="", label=f"RBM {layer}")
        for layer in sorted(rows["layer"].unique())
    ]
    handles += [
        Line2D([], [], color="black", marker="o", linestyle="", label="with the reset"),
        Line2D([], [], color="black", marker="o", fillstyle="none", linestyle="", label="without"),
    ]
    for below_cd in (needed["below"] == "cd").drop_duplicates():
        handles.append(Line2D([], [], color="black", linestyle=NEEDED[below_cd][0], label=NEEDED[below_cd][1]))
    figure.legend(handles=handles, loc="outside lower center", ncols=3)
    return figure


@styled
def falls(rows: pd.DataFrame, title: str) -> Figure:
    """Plot falls of the error in percent against sigma0: a row for each layer, a column for each study.

    Lines with bands are measured, dotted lines predicted, and dashed ones with the searches' own inputs.
    """
    studies, layers = list(rows["study"].unique()), sorted(rows["layer"].unique())
    height, ylabel = 1.7 * len(layers) + 0.9, "fall of the error, %"
    figure, axes = new(len(layers), len(studies), height=height, title=title, ylabel=ylabel, sharex=True)
    for (study, layer), own in groups(rows, ["study", "layer"]):
        ax = axes[layers.index(layer), studies.index(study)]
        for reset, line in groups(own.sort_values(["reset", "sigma0"], ascending=[False, True]), "reset"):
            color, name = (VERMILION, "with the reset") if reset else (BLUE, "without the reset")
            band(ax, line.rename(columns={"measured": "mean"}), "sigma0", f"measured, {name}", (color, "-"))
            for (kind, label), style in zip(KINDS.items(), (":", "--"), strict=True):
                ax.plot(line["sigma0"], line[kind], color=color, linestyle=style, label=f"{label}, {name}")
        logarithmic(ax.xaxis, most=4)
        ax.set_title(f"{_pixels(study)}, RBM {layer}")
    for ax in axes[-1]:
        ax.set_xlabel("sigma0")
    legend(figure, *axes.flat)
    return figure


SCALING = {"measured": (BLUE, "-"), "predicted": (GREEN, ":"), "one gradient step": (VERMILION, "-")}
"""Color and line style of what is compared for layers of ever more hidden units."""


@styled
def scaling(falls: Mapping[str, pd.DataFrame], title: str) -> Figure:
    """Plot falls of the error in percent against the number of variables, see `leamvd.analysis.explanation.scaling`."""
    figure, axes = new(1, 1, height=3.4, title=title, ylabel="fall of the error, %")
    ax = axes[0, 0]
    for kind, rows in falls.items():
        band(ax, rows.reset_index(), "n_var", kind, SCALING[kind])
    logarithmic(ax.xaxis)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("variables")
    legend(figure, ax)
    return figure


def _look(layer: int) -> tuple[str, str]:
    return LOOKS[(layer - 1) % len(LOOKS)]


def _pixels(study: str) -> str:
    return f"{study.removeprefix('mnist-').replace('x', '×')} pixels"
