"""Figures of the section on cost: growth, ratios, the split of a generation, the objective and its trainers."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from leamvd.paper.figures.style import COLORS, new

PACKAGES = {
    "leamvd": COLORS["lea-mvd"],
    "evosax": "#0072b2",
    "evotorch": "#009e73",
    "pypop7": "#cc79a7",
    "pycma": "#444444",
    "scikit-learn": "#56b4e9",
    "leamvd CD-1": "#a04000",
}
"""One color a package; its methods differ by marker."""

MARKERS = "osv^Dx"

BACKENDS = (PACKAGES["leamvd"], "#a04000", "#0072b2", "#56b4e9", "#009e73", "#999999")
"""Of the bars of an objective, in the order of the table."""

PARTS = ("#0072b2", "#d55e00", "#e69f00", "#f0e442", "#cc79a7", "0.75")
"""Of the parts of a generation, in the order of the table."""

_OWN = {"linewidth": 2.6, "markersize": 6, "zorder": 5}
_OTHER = {"linewidth": 1.1, "markersize": 4.5, "zorder": 3}


def growth(
    rows: pd.DataFrame,
    column: str,
    ylabel: str,
    references: Mapping[str, str],
    beyond: pd.DataFrame | None = None,
) -> Figure:
    """Plot a cost against the number of variables, both logarithmic: a panel for each dtype, a line for each method.

    Parameters
    ----------
    rows : DataFrame
        With columns method, dtype, n, the cost and the references.
    column : str
        The cost.
    ylabel : str
        The cost and its unit.
    references : mapping of str to str
        Columns to draw as thin lines, of the rows of LEA-MVD, and their names.
    beyond : DataFrame, optional
        With columns n and bytes: a line to where CMA-ES with a full matrix is refused.
    """
    dtypes, looks = sorted(rows["dtype"].unique()) or ["nothing measured"], _looks(rows["method"])
    figure, axes = new(1, len(dtypes), width=9.0, height=5.2, sharex=True, sharey=True)
    for ax, dtype in zip(axes[0], dtypes, strict=True):
        panel = rows[rows["dtype"] == dtype]
        for method, line in panel.groupby("method", sort=False):
            line = line.sort_values("n")
            ax.plot(line["n"], line[column], label=method, **looks[str(method)])
        own = panel[panel["method"] == "leamvd"].sort_values("n")
        for style, (name, label) in zip((":", "--"), references.items(), strict=False):
            ax.plot(own["n"], own[name], style, color="0.35", linewidth=1.0, label=label)
        if beyond is not None and "pycma full" in set(panel["method"]) and len(beyond):
            ax.plot(
                beyond["n"], beyond["bytes"], "-.", color=PACKAGES["pycma"], linewidth=1.0, label="$n^2$, refused at ×"
            )
            ax.plot(*beyond.iloc[-1], "x", color=PACKAGES["pycma"], markersize=10, markeredgewidth=2.5)
        ax.set(xscale="log", yscale="log", xlabel="variables $n$", title=f"{dtype}, one thread")
        ax.xaxis.set_minor_formatter(NullFormatter())
    axes[0, 0].set_ylabel(ylabel)
    _legend(figure, axes[0], [*looks])
    return figure


def _looks(methods: pd.Series) -> dict[str, dict[str, Any]]:
    """Return the color, marker and width of each method: LEA-MVD first, then by name."""
    looks: dict[str, dict[str, Any]] = {}
    for package in PACKAGES:
        own = sorted(method for method in methods.unique() if method.split()[0] == package)
        width = _OWN if package == "leamvd" else _OTHER
        for method, marker in zip(own, MARKERS, strict=False):
            looks[method] = {"color": PACKAGES[package], "marker": marker, **width}
    return looks


def _legend(figure: Figure, axes: Iterable[Axes], first: Sequence[str] = ()) -> None:
    """Put one legend below all panels, each name once, those in `first` before the others."""
    found = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    names = [*(name for name in first if name in found), *(name for name in found if name not in first)]
    lines = [found[name] for name in names]
    figure.legend(lines, names, loc="outside lower center", ncols=min(len(names), 4), frameon=False, fontsize="small")


def ratios(rows: pd.DataFrame) -> Figure:
    """Plot each method's time over that of NumPy's normal samples: a panel for each n, a line for each label.

    Parameters
    ----------
    rows : DataFrame
        With columns label, method, dtype, n and ratio_to_normal, in the order of the lines.
    """
    sizes, labels = sorted(rows["n"].unique()) or [0], list(rows["label"].unique())
    looks = _looks(rows["method"])
    figure, axes = new(1, len(sizes), width=9.0, height=1.2 + 0.27 * len(labels), sharex=True, sharey=True)
    for ax, n in zip(axes[0], sizes, strict=True):
        for row in rows[rows["n"] == n].to_dict("records"):
            look = looks[row["method"]]
            filled = look["color"] if row["dtype"] == "float32" else "white"
            y = labels.index(row["label"])
            ax.plot(row["ratio_to_normal"], y, linestyle="", **look | {"markersize": 7}, markerfacecolor=filled)
        ax.axvline(1.0, color="black", linewidth=0.8)
        ax.set(xscale="log", xmargin=0.12)
        ax.set_title(f"n = {n:,}", fontsize="medium")
        ax.xaxis.set_major_locator(LogLocator(numticks=10))
        ax.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes[0, 0].set_yticks(range(len(labels)), labels)
    axes[0, 0].invert_yaxis()
    for tick, label in zip(axes[0, 0].get_yticklabels(), labels, strict=True):
        tick.set_fontweight("bold" if label.startswith("leamvd") else "normal")
    figure.supxlabel("time of a generation / time of NumPy's normal samples", fontsize="medium")
    return figure


def parts(shares: pd.DataFrame) -> Figure:
    """Plot what part of a generation of LEA-MVD each of its parts takes, a bar for each n and dtype.

    Parameters
    ----------
    shares : DataFrame
        A row for each bar, a column for each part; one that was measured as less than nothing is drawn as nothing.
    """
    figure, axes = new(height=1.4 + 0.45 * max(1, len(shares)))
    ax, left = axes[0, 0], np.zeros(len(shares))
    for color, (name, percent) in zip(PARTS, shares.clip(lower=0).items(), strict=False):
        ax.barh(shares.index, percent, left=left, color=color, label=str(name))
        left = left + percent.to_numpy()
    ax.invert_yaxis()
    ax.set_xlabel("percent of a generation (ask and tell)")
    ax.grid(visible=False)
    _legend(figure, [ax])
    return figure


def split(rows: pd.DataFrame) -> Figure:
    """Plot what part of a generation is the optimizer's and what the objective's, a bar for each layer.

    Parameters
    ----------
    rows : DataFrame
        With columns section, layer, n, total_seconds and percent, that of the optimizer.
    """
    sections = list(rows["section"].unique()) or ["nothing measured"]
    figure, axes = new(len(sections), 1, height=1.2 + 0.42 * len(rows) + 0.4 * len(sections), sharex=True)
    for ax, section in zip(axes[:, 0], sections, strict=True):
        own = rows[rows["section"] == section]
        names = [f"RBM {layer}, n = {n:,}" for layer, n in zip(own["layer"], own["n"], strict=True)]
        ax.barh(names, own["percent"], color=PACKAGES["leamvd"], label="optimizer")
        ax.barh(names, 100 - own["percent"], left=own["percent"], color="0.85", label="objective")
        for y, (percent, total) in enumerate(zip(own["percent"], own["total_seconds"], strict=True)):
            text = f"optimizer {percent:.2g} % of {total:.2g} s"
            ax.text(50, y, text, ha="center", va="center", fontsize="small")
        ax.invert_yaxis()
        ax.set(title=section, xlim=(0, 100))
        ax.grid(visible=False)
    axes[-1, 0].set_xlabel("percent of a generation")
    _legend(figure, axes[:1, 0])
    return figure


def objective(rows: pd.DataFrame) -> Figure:
    """Plot the part of its matrix products' rate that NumPy's objective reaches, and the rate of every objective.

    Parameters
    ----------
    rows : DataFrame
        With columns n_visible, n_hidden, backend, label, fraction_of_products and rate, operations a second.
    """
    shapes = rows[["n_visible", "n_hidden"]].drop_duplicates()
    figure, ((left, right),) = new(1, 2, width=9.5, height=4.0)
    _bars(left, rows[rows["backend"] == "numpy"].assign(height=100 * rows["fraction_of_products"]), shapes)
    left.axhline(100, color="black", linewidth=0.8)
    left.set_ylabel("percent of the products' rate")
    _bars(right, rows.assign(height=rows["rate"] / 1e9), shapes)
    right.set_ylabel("GFLOP/s")
    _legend(figure, [right])
    return figure


def _bars(ax: Axes, rows: pd.DataFrame, shapes: pd.DataFrame) -> None:
    """Draw the heights, a group for each shape and a bar for each place."""
    labels, places = list(rows["label"].unique()), np.arange(len(shapes))
    width = 0.8 / max(1, len(labels))
    for j, label in enumerate(labels):
        own = rows[rows["label"] == label].set_index(["n_visible", "n_hidden"])["height"]
        heights = [own.get((v, h), np.nan) for v, h in zip(shapes["n_visible"], shapes["n_hidden"], strict=True)]
        x = places + (j - (len(labels) - 1) / 2) * width
        ax.bar(x, heights, 0.92 * width, color=BACKENDS[j % len(BACKENDS)], label=label)
    names = [f"{v}\n× {h}" for v, h in zip(shapes["n_visible"], shapes["n_hidden"], strict=True)]
    ax.set_xticks(places, names)
    ax.set_xlabel("visible × hidden units")
    ax.grid(visible=False, axis="x")
    ax.set_axisbelow(True)


def training(rows: pd.DataFrame, accuracies: pd.DataFrame) -> Figure:
    """Plot seconds for an epoch of each trainer, with its five products alone, and the probe's accuracy by seed.

    Parameters
    ----------
    rows : DataFrame
        With columns trainer, place, seconds and product_seconds.
    accuracies : DataFrame
        In percent of test images: a row for each seed, a column for each trainer.
    """
    figure, ((left, right),) = new(1, 2, width=9.0, height=3.6)
    names = rows["trainer"] + "\n" + rows["place"]
    left.bar(names, rows["seconds"], color=rows["trainer"].map(PACKAGES), width=0.6)
    left.hlines(
        rows["product_seconds"], np.arange(len(rows)) - 0.3, np.arange(len(rows)) + 0.3, color="black", linestyle="--",
        label="its five matrix products alone",
    )  # fmt: skip
    left.set_ylabel("seconds per epoch")
    left.grid(visible=False, axis="x")
    left.set_axisbelow(True)
    for marker, trainer in zip("osD", accuracies, strict=False):
        right.plot(
            accuracies.index,
            accuracies[trainer],
            marker,
            color=PACKAGES[str(trainer)],
            markersize=8,
            label=str(trainer),
        )
    right.set(xlabel="seed", ylabel="linear probe, % of test images", xticks=accuracies.index)
    _legend(figure, [left, right])
    return figure
