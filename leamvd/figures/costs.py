"""Figures of the section on cost: growth, what other methods take, and the optimizer with its objective."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from leamvd.figures.style import COLORS, error_bars, logarithmic, new, styled

NAMES = {"leamvd": "LEA-MVD", "pycma full": "CMA-ES,\nfull matrix", "pycma separable": "separable\nCMA-ES"}
"""Methods that have a color and are named in the figures; the others are gray."""

_COLORS = dict(zip(NAMES, (COLORS["lea-mvd"], COLORS["cma-es"], COLORS["sep-cma-es"]), strict=True))
_OTHER = "0.6"
_NAMED, _GRAY = {"linewidth": 1.8, "markersize": 5, "zorder": 3}, {"linewidth": 0.8, "markersize": 3, "zorder": 2}
_UNITS = {"time": "NumPy's normal samples", "memory": "the population"}  # what each cost is divided by


@styled
def growth(rows: pd.DataFrame, refused: pd.DataFrame) -> Figure:
    """Plot time and memory of a generation against the number of variables, a line for each method and dtype.

    Both scales are logarithmic and alike, so that a cost proportional to n rises at 45 degrees. `refused` has n and
    bytes of a line to where CMA-ES with a full matrix is refused, or no rows.
    """
    figure, ((time,), (memory,)) = new(2, 1, height=7.4)
    for ax, column in ((time, "generation_seconds"), (memory, "peak_bytes")):
        for _, line in rows.sort_values("n").groupby("label"):
            method, hollow = line["method"].iloc[0], line["dtype"].iloc[0] == "float64"
            look, color = (_NAMED, _COLORS[method]) if method in NAMES else (_GRAY, _OTHER)
            bars = error_bars(line, column, "generation_low", "generation_high") if ax is time else None
            (drawn, *_) = ax.errorbar(line["n"], line[column], yerr=bars, fmt="-o", color=color, **look)
            drawn.set_markerfacecolor("white" if hollow else color)
        ax.set(xscale="log", yscale="log", xlabel="variables $n$")
        ax.set_aspect("equal", adjustable="datalim")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(numticks=20))
            axis.set_minor_locator(NullLocator())
        _name(ax, rows, column)
    if len(refused):
        end, color = refused.iloc[-1], _COLORS["pycma full"]
        memory.plot(refused["n"], refused["bytes"], ":", color=color)
        memory.plot(*end, "x", color=color, markersize=9, markeredgewidth=2.5)
        memory.annotate("refused", end, (8, -3), textcoords="offset points", color=color)
    time.set_ylabel("seconds of a generation")
    memory.set_ylabel("bytes of memory at the peak")
    return figure


def _name(ax: Axes, rows: pd.DataFrame, column: str) -> None:
    """Write the names of the methods next to their lines, and one for all gray ones."""
    for method, name in NAMES.items():
        offset = (16, -52) if method == "leamvd" else (-6, 4)  # in the free corner below all lines, or above their own
        for point in rows[rows["method"] == method].nlargest(1, "n").to_dict("records"):
            text = ax.annotate(name, (point["n"], point[column]), offset, textcoords="offset points", ha="right")
            text.set(color=_COLORS[method], fontweight="bold")
    others = rows[~rows["method"].isin(NAMES)]
    for n, cluster in others[others["n"] == others["n"].min()].groupby("n"):
        at = (n, cluster[column].median())
        ax.annotate("others", at, (-7, -7), textcoords="offset points", ha="right", va="center", color="0.4")


@styled
def ratios(rows: pd.DataFrame) -> Figure:
    """Plot what methods take over what drawing their normal samples and holding their population takes.

    Time is shown at the largest n and, with open markers, at the smallest; memory at the largest.
    """
    sizes, labels = sorted(rows["n"].unique(), reverse=True) or [0], list(rows["label"].unique())
    figure, (axes,) = new(1, 2, height=1.7 + 0.27 * len(labels), sharey=True)
    shown = [(axes[0], "time", n) for n in sizes] + [(axes[1], "memory", sizes[0])]
    for ax, column, n in shown:
        for label, row in rows[rows["n"] == n].groupby("label"):
            bars = error_bars(row, "time", "low", "high") if column == "time" else None
            look: dict[str, Any] = {
                "fillstyle": "full" if n == sizes[0] else "none",
                "color": _COLORS.get(row["method"].item(), _OTHER),
            }
            ax.errorbar(row[column], [labels.index(str(label))], xerr=bars, fmt="o", markersize=5, **look)
    for ax, column in zip(axes, _UNITS, strict=True):
        ax.axvline(1.0, color="black", linewidth=0.8)
        ax.set(xmargin=0.1, xlabel=f"{column} /\n{_UNITS[column]}", title=column)
        logarithmic(ax.xaxis, most=5)
    axes[0].set_yticks(range(len(labels)), [label.replace(" (", "\n(") for label in labels])
    axes[0].invert_yaxis()
    look = {"color": "black", "marker": "o", "linestyle": ""}
    marks = [Line2D([], [], label=f"n = {n:,}", **look) for n in sizes]
    for mark in marks[1:]:
        mark.set_fillstyle("none")
    figure.legend(handles=marks, loc="outside lower center", ncols=2)
    for tick, method in zip(axes[0].get_yticklabels(), rows.drop_duplicates("label")["method"], strict=True):
        tick.set_color(_COLORS.get(method, "black"))
    return figure


@styled
def split(rows: pd.DataFrame) -> Figure:
    """Plot seconds of a generation, the optimizer's and its objective's, for each layer of the experiments."""
    figure, ((ax,),) = new(height=1.2 + 0.42 * len(rows))
    names = [
        f"{section}, RBM {layer}\nn = {n:,}"
        for section, layer, n in zip(rows["section"], rows["layer"], rows["n"], strict=True)
    ]
    colors, places = {"optimizer": COLORS["lea-mvd"], "objective": "0.3"}, np.arange(len(rows))
    ax.hlines(places, rows["optimizer_seconds"], rows["objective_seconds"], color="0.8", zorder=1)
    for name, color in colors.items():
        bars = error_bars(rows, f"{name}_seconds", f"{name}_low", f"{name}_high")
        ax.errorbar(rows[f"{name}_seconds"], places, xerr=bars, fmt="o", color=color)
        for at in rows[f"{name}_seconds"].head(1):
            ax.annotate(name, (at, 0), (0, 11), textcoords="offset points", ha="center", color=color, fontweight="bold")
    for place, row in enumerate(rows.to_dict("records")):
        at, text = (row["optimizer_seconds"], place), f"{row['percent']:.2g} %"
        ax.annotate(text, at, (-8, 0), textcoords="offset points", ha="right", va="center")
    ax.set_yticks(places, names)
    ax.set(xscale="log", xlabel="seconds of a generation", xmargin=0.2, ylim=(len(rows) - 0.4, -0.9))
    return figure
