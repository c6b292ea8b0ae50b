"""The figures of the section on verdicts: LEA-MVD against contrastive divergence, and every part of every claim."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from leamvd.figures.style import COLORS, GRAY, GREEN, VERMILION, error_bars, groups, logarithmic, new, plain, styled

LOOKS = {"met": (GREEN, "o"), "not met": (VERMILION, "x"), "too few runs to tell": (GRAY, "s")}
"""Color and marker of a part, by what it shows."""

VIEWS = {
    "as printed": ("each method on its own inputs, as in the paper", "none", 0.15),
    "conclusion": ("both methods on the same inputs", "full", -0.15),
    "both": ("the stacks, fine-tuned as classifiers", "bottom", 0.0),
}
"""Of each view, what it compares, and how its markers are filled and raised."""

TITLES = {"mnist_7x7": "7×7 pixels", "mnist_28x28": "28×28 pixels", "classification": "classifier"}
"""Names of studies that compare LEA-MVD with contrastive divergence."""

LEAST: dict[str, tuple[float, ...]] = {"ratio": (0.5, 2.0), "%": (-1.0, 1.0), "slope": ()}
"""Ends that every axis of a unit reaches at least."""


@styled
def against_cd(rows: pd.DataFrame) -> Figure:
    """Plot `leamvd.analysis.claims.against_cd`, errors of LEA-MVD over those of CD: a line for each comparison."""
    if rows.empty:
        return _nothing()
    parts = rows["part"].str.removesuffix(", lea-mvd / cd")
    names = rows["study"].map(TITLES) + ", " + parts.str.replace(r"mnist-(\d+)x\d+", r"\1×\1 pixels", regex=True)
    height = {name: -y for y, name in enumerate(names.unique())}
    figure, axes = new(width=5.2, height=0.42 * len(height) + 1.95)
    ax = axes[0, 0]
    for view, shown in groups(rows.assign(y=names.map(height)), "view"):
        label, filling, raised = VIEWS[view]
        ends = error_bars(shown, "effect", "low", "high")
        look: dict[str, Any] = {"fmt": "o", "fillstyle": filling, "color": "black", "label": label}
        ax.errorbar(shown["effect"], shown["y"] + raised, xerr=ends, **look)
    reach = max(2.0, 1.1 * rows["high"].max(), 1.1 / rows["low"].min())
    sides = {"lea-mvd": (1 / reach, "LEA-MVD\nbetter"), "cd": (reach, "contrastive\ndivergence better")}
    for method, (end, words) in sides.items():
        ax.axvspan(1, end, color=COLORS[method], alpha=0.15, linewidth=0)
        ax.text(np.sqrt(end), 0.45, words, ha="center", va="bottom", weight="bold")
    ax.axvline(1, color="black", linewidth=1)
    logarithmic(ax.xaxis)
    ax.set_xlim(1 / reach, reach)
    ax.set_ylim(0.45 - len(height), 1.2)
    ax.set_yticks(list(height.values()), [plain(name) for name in height])
    ax.grid(axis="y", visible=False)
    ax.set_xlabel("error of LEA-MVD / error of contrastive divergence", loc="right")
    figure.legend(loc="outside lower center")
    return figure


@styled
def effects(rows: pd.DataFrame) -> Figure:
    """Plot the effects of `leamvd.analysis.claims.evidence`, a panel for each claim and unit.

    Shaded is where a part is met. Rows without an effect are left out.
    """
    if rows.empty:
        return _nothing()
    panels = list(groups(rows[rows["effect"].notna()], ["claim", "unit"]))
    heights = [1.5 * len(panel) + 2.3 for _, panel in panels]
    figure, axes = new(len(panels), 1, height=0.22 * sum(heights) + 0.6, height_ratios=heights)
    for ax, ((claim, unit), panel) in zip(axes[:, 0], panels, strict=True):
        _panel(ax, panel.sort_values("view", kind="stable"), *_limits(panel, unit))
        ax.set_title(f"{claim}, {unit}")
        if unit == "ratio":
            logarithmic(ax.xaxis, most=5)
    handles = [Line2D([], [], color=color, marker=marker, label=name) for name, (color, marker) in LOOKS.items()]
    figure.legend(handles=handles, loc="outside lower center", ncols=len(handles))
    return figure


def _nothing() -> Figure:
    figure, axes = new(height=1.0)
    axes[0, 0].text(0.5, 0.5, "No claim is tested at this scale.", ha="center", va="center")
    axes[0, 0].set_axis_off()
    return figure


def _limits(panel: pd.DataFrame, unit: str) -> tuple[float, float]:
    """Return the ends of an axis on which every finite number of a panel lies, with some room."""
    values = panel[["effect", "low", "high", "lower", "upper"]].to_numpy(dtype=float).ravel()
    values = np.append(values[np.isfinite(values)], LEAST[unit])
    low, high = (np.log(values) if unit == "ratio" else values)[[values.argmin(), values.argmax()]]
    ends = 1.05 * low - 0.05 * high, 1.05 * high - 0.05 * low
    return tuple(np.exp(ends) if unit == "ratio" else ends)


def _panel(ax: Any, panel: pd.DataFrame, left: float, right: float) -> None:
    names = panel["met"].map({True: "met", False: "not met"}).fillna("too few runs to tell")
    labels = panel["part"].where(panel["view"] == "both", panel["view"] + ": " + panel["part"])
    height = np.arange(len(panel))[::-1]
    for y, name, row in zip(height, names, panel.to_dict("records"), strict=True):
        color, marker = LOOKS[name]
        met = np.clip([row["lower"], row["upper"]], left, right)
        ax.plot(met, [y, y], color=GREEN, alpha=0.15, linewidth=7, solid_capstyle="butt")
        bounds = [bound for bound in (row["lower"], row["upper"]) if np.isfinite(bound)]
        ax.plot(bounds, [y] * len(bounds), linestyle="", marker="|", markersize=7, color="black")
        ends = np.nan_to_num([[row["effect"] - row["low"]], [row["high"] - row["effect"]]])
        ax.errorbar(row["effect"], y, xerr=ends, color=color, marker=marker, markersize=5, linewidth=1.5, mew=1.5)
    for y, label in zip(height, labels, strict=True):  # above, or a phone's screen would be filled with names alone
        ax.text(0, y + 0.22, plain(label), transform=ax.get_yaxis_transform(), va="bottom")
    ax.set_xlim(left, right)
    ax.set_ylim(-0.5, len(panel) - 0.3)
    ax.set_yticks([])
    ax.grid(axis="y", visible=False)
