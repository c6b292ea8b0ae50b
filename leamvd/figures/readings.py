"""Figures of the section on readings: the effect of every alternative."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from leamvd.figures.style import PALETTE, groups, logarithmic, new, plain, styled

_ROW, _NAME = 0.32, 24
"""Inches of a row, and letters of a name in one line."""


@styled
def forest(effects: pd.DataFrame, title: str) -> Figure:
    """Plot the effects of all alternatives, a row for each, a color for each problem.

    Filled markers are significant after correction, hollow ones are not; a cross marks results that are the same to the
    last bit. Left of 1 the alternative ends lower than the default. An interval that is not there is not drawn.
    `effects` are rows of `leamvd.analysis.readings.effects`.
    """
    rows = effects[["item", "method"]].drop_duplicates().reset_index(drop=True)
    names = [_name(*row) for row in rows.itertuples(index=False)]
    heights = np.array([max(1.0, 0.6 * (1 + name.count("\n"))) for name in names])
    edges = np.concatenate([[0.0], np.cumsum(heights)]) - 0.5
    place = dict(zip(rows["method"], edges[:-1] + heights / 2, strict=True))
    figure, axes = new(height=1.6 + _ROW * heights.sum())
    ax = axes[0, 0]
    for j, (_, group) in enumerate(groups(rows, "item")):
        if j % 2:
            ax.axhspan(edges[group.index[0]], edges[group.index[-1] + 1], color="0.95", zorder=0)
    ax.axvline(1.0, color="black", linewidth=0.8)
    handles, count = [], effects["problem"].nunique()
    for j, (problem, own) in enumerate(groups(effects, "problem")):
        offset, color = 0.6 * ((j + 0.5) / count - 0.5), PALETTE[j % len(PALETTE)]
        handles.append(Line2D([], [], color=color, marker="o", label=problem))
        same, different = own["same"], ~own["same"] & own["different"]
        for shown, marker, face in ((same, "x", "none"), (different, "o", color), (~(same | different), "o", "none")):
            chosen = own[shown]
            y = chosen["method"].map(place).to_numpy(dtype=float) + offset
            for at, row in zip(y, chosen.to_dict("records"), strict=True):
                if not row["same"] and np.isfinite(row["low"]):
                    ax.plot([row["low"], row["high"]], [at, at], color=color, linewidth=1.2)
            ax.plot(chosen["ratio"], y, marker, color=color, markerfacecolor=face, markersize=4)
    logarithmic(ax.xaxis)
    ax.set_yticks(list(place.values()), names)
    ax.set(ylim=(edges[-1], edges[0]), xlabel="final error over the default's")
    ax.set_title(title)
    looks = {"significant": ("o", "0.3"), "not significant": ("o", "none"), "same bits": ("x", "none")}
    handles += [
        Line2D([], [], color="0.3", linestyle="", marker=marker, markerfacecolor=face, markersize=4, label=name)
        for name, (marker, face) in looks.items()
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=2)
    return figure


def _name(item: str, method: str) -> str:
    """Return what a row is called, with a line for each setting where it is long."""
    own = plain(method.removeprefix("lea-mvd:"))
    if len(own) > _NAME:
        own = own.replace("+", "\n+")
    return own if own == item else f"{item}   {own}"
