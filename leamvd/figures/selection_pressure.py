"""Figures of the section on selection: weights, simulated tournaments, selection pressure, the normal model."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leamvd.figures.style import BLUE, VERMILION, groups, legend, new, styled

MARKERS = {"binary tournament": "o", "double binary tournament": "s", "tournament of four": "x"}


@styled
def weights(table: pd.DataFrame) -> Figure:
    """Draw the table of `weights`: exponents as lines, exact tournaments as markers."""
    figure, ((axes,),) = new(height=4.2)
    size = int(table["rank"].max())
    exponents = table["exponent"].dropna().unique()
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(exponents)))
    for method, group in groups(table, "method"):
        exponent = group["exponent"].iloc[0]
        if pd.isna(exponent):
            style = {"marker": MARKERS[method], "fillstyle": "none", "markersize": 5, "color": "black", "linestyle": ""}
        else:
            style = {"color": shades[list(exponents).index(exponent)], "linewidth": 1.8}
        axes.plot(group["rank"], group["weight"], label=method, **style)
    axes.set(
        xlabel="rank (1 = best)",
        ylabel="weight, probability to be selected",
        title=f"selection methods, population of {size}",
        ylim=(0, None),
    )
    axes.legend()
    return figure


@styled
def differences(table: pd.DataFrame, closest: pd.DataFrame) -> Figure:
    """Draw the table of `differences`, a row per tournament; bars are two standard errors."""
    figure, axes = new(len(closest), 1, height=0.6 + 2.0 * len(closest), sharex=True)
    for panel, row in zip(axes[:, 0], closest.to_dict("records"), strict=True):
        own = table[table["method"] == row["tournament"]]
        panel.axhline(0, color="black", linewidth=0.8)
        if not np.isnan(row["stated"]):
            panel.plot(own["rank"], own["stated"], "--", color=VERMILION, label="exponent as stated")
        panel.plot(own["rank"], own["closest"], color=BLUE, label="closest exponent")
        panel.errorbar(
            own["rank"], own["simulated"], 2 * own["error"], fmt=".", color="black", markersize=4, linewidth=1,
            label="simulation ± 2 s.e.",
        )  # fmt: skip
        stated = "" if np.isnan(row["stated"]) else f", stated {row['stated']:g}"
        panel.set_title(f"{row['tournament']}: closest exponent {row['closest']:.3f}{stated}")
    axes[-1, 0].set_xlabel("rank (1 = best)")
    figure.supylabel("less the exact probability (percentage points)")
    legend(figure, *axes[:, 0])
    return figure


@styled
def pressure(table: pd.DataFrame) -> Figure:
    """Draw the table of `pressure` against the exponent: tournaments as horizontal lines."""
    figure, axes = new(1, 2, height=4.4)
    names = {"rank_share": "expected rank / $\\lambda$", "size_share": "effective sample size / $\\lambda$"}
    sizes = table["population_size"].unique()
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(sizes)))
    largest = table[(table["population_size"] == sizes.max()) & table["exponent"].isna()]
    for panel, (column, label) in zip(axes[0], names.items(), strict=True):
        curves = [
            panel.plot(own["exponent"], own[column], color=shade, label=f"$\\lambda$ = {size}")[0]
            for size, shade in zip(sizes, shades, strict=True)
            for own in [table[table["population_size"] == size].dropna(subset="exponent")]
        ]
        lines = [
            panel.axhline(value, color="black", linestyle=style, linewidth=1, label=method)
            for method, value, style in zip(largest["method"], largest[column], (":", "--", "-."), strict=True)
        ]
        panel.set(xlabel="exponent", ylabel=label, ylim=(0, None))
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
    axes[0, 0].legend(handles=curves, ncols=2, **below)
    axes[0, 1].legend(handles=lines, title=f"$\\lambda$ = {sizes.max()}", **below)
    return figure


@styled
def models(points: pd.DataFrame, rows: pd.DataFrame) -> Figure:
    """Draw the table of `normal_models`, a panel per exponent; ellipses of 1 and 2 sigma."""
    columns = min(3, len(rows))
    lines = -(-len(rows) // columns)
    figure, axes = new(lines, columns, height=0.6 + 1.7 * lines, sharex=True, sharey=True)
    turn = np.linspace(0, 2 * np.pi, 100)
    limits = {"vmin": 0, "vmax": points["weight"].max()}
    for panel, row in zip(axes.flat, rows.to_dict("records"), strict=False):
        own = points[points["exponent"] == row["exponent"]]
        dots = panel.scatter(own["x1"], own["x2"], c=own["weight"], cmap="viridis_r", s=28, **limits)
        for k in (1, 2):
            x, y = row["mean1"] + k * row["std1"] * np.cos(turn), row["mean2"] + k * row["std2"] * np.sin(turn)
            panel.plot(x, y, color=VERMILION, linewidth=1.2)
        panel.plot(row["mean1"], row["mean2"], "+", color=VERMILION, markersize=10, markeredgewidth=2)
        panel.plot(1, 1, "*", color="black", markersize=9)
        panel.set(title=f"exponent {row['exponent']:g}", aspect="equal")
    for panel in axes.flat[len(rows) :]:
        panel.set_axis_off()
    figure.supxlabel("$x_1$")
    figure.supylabel("$x_2$")
    figure.colorbar(dots, ax=axes, label="weight", shrink=0.8)
    return figure
