"""Figures of the section on the directions: one generation in 2-D and 3-D, and runs over their generations."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leamvd._support.compile import Floats
from leamvd.figures.style import BLUE, GREEN, PURPLE, VERMILION, error_bars, groups, legend, new, styled

TOWARD, AWAY, PATH, MEAN = BLUE, VERMILION, GREEN, PURPLE
READINGS = {"1": (VERMILION, "-"), "initial": (PURPLE, "--"), "off": (BLUE, ":")}


def _arrow(axes: Axes, start: Any, step: Any, color: str, label: str) -> None:
    axes.annotate(
        "", xy=(start[0] + step[0], start[1] + step[1]), xytext=(start[0], start[1]),
        arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0},
    )  # fmt: skip
    axes.plot([start[0], start[0] + step[0]], [start[1], start[1] + step[1]], color=color, linewidth=1.8, label=label)


def _drawn(vectors: pd.DataFrame, name: str, radius: float) -> Floats:
    """Return one of the vectors at the length at which directions are drawn."""
    vector: Floats = vectors.loc[name].to_numpy(dtype=np.float64)
    length = float(np.linalg.norm(vector))
    return radius * vector / length if length > 0 else vector


@styled
def scene_2d(
    points: pd.DataFrame, vectors: pd.DataFrame, numbers: pd.Series, slices: pd.DataFrame, label: str
) -> Figure:
    """Draw a `Scene` of two variables: the population, the projections, the shift, and the objective along it."""
    figure, ((a, b), first, (c, d), second) = new(4, 2, height=8.0, height_ratios=(3, 1.6, 3, 1.6))
    mean_projection, std, radius = numbers[["mu_ani", "sigma_ani", "norm of sigma"]]
    best, mean = points[["x1", "x2"]].to_numpy()[0], vectors.loc["mean"].to_numpy()
    for row in points.itertuples(index=False):
        a.plot([row.x1, row.f1], [row.x2, row.f2], color="0.8", linewidth=0.8)
    a.plot(points["f1"], points["f2"], ".", color="0.6", markersize=3)
    a.scatter(points["x1"], points["x2"], c=points["rank"], cmap="viridis", s=24, zorder=3)
    drawn = points[points["in_u"]]
    a.scatter(drawn["x1"], drawn["x2"], s=90, facecolors="none", edgecolors="black", label="drawn for U", zorder=3)
    a.plot(*best, "*", color="black", markersize=11, label="best", zorder=4)
    a.plot(*mean, "+", color=MEAN, markersize=11, markeredgewidth=2, label="weighted mean", zorder=4)
    _arrow(a, best, _drawn(vectors, "P", radius), PATH, "direction of P")
    _arrow(a, best, _drawn(vectors, "toward", radius), TOWARD, "direction of $C_{ani}$")
    a.set(xlabel="$x_1$", ylabel="$x_2$", title=label)
    a.set_aspect("equal", adjustable="datalim")

    b.axhspan(
        mean_projection - std, mean_projection + std, color=MEAN, alpha=0.2,
        label="$\\mu_{ani} \\pm \\sigma_{ani}$",
    )  # fmt: skip
    b.axhline(mean_projection, color=MEAN)
    rest = points[points["rank"] > 1]
    b.scatter(rest["rank"], rest["projection"], c=rest["rank"], cmap="viridis", s=24)
    b.set(xlabel="rank (2 = second best)", ylabel="projection on $C_{ani}$", title="projections")

    zero = np.zeros(2)
    for name, color, text in (
        ("toward", TOWARD, "$|\\mu_{ani}|\\,C_{ani}$, toward the best"),
        ("away", AWAY, "$\\mu_{ani}\\,C_{ani}$, as printed"),
        ("P", PATH, "P"),
    ):
        _arrow(c, zero, vectors.loc[name].to_numpy(), color, text)
    for step, color, text in (("toward", TOWARD, "v, toward the best"), ("away", AWAY, "v, as printed")):
        ends = vectors.loc[[step, "P"]].to_numpy()
        c.plot(ends[:, 0], ends[:, 1], ":", color=color, linewidth=1)
        c.plot(*vectors.loc[f"v {step}"].to_numpy(), "o", color=color, fillstyle="none", label=text)
    c.set(xlabel="step in $x_1$", ylabel="step in $x_2$", title=f"the shift v, $\\beta_2$ = {numbers['beta_2']:.2g}")
    c.set_aspect("equal", adjustable="datalim")

    _slices(d, slices)
    for panel, below in zip((a, b, c, d), (*first, *second), strict=True):
        panel.locator_params(axis="x", nbins=3)
        _legend_of(panel, below)
    return figure


def _legend_of(panel: Axes, below: Axes) -> None:
    below.set_axis_off()
    below.legend(*panel.get_legend_handles_labels(), loc="upper center", borderaxespad=0)


def _slices(axes: Axes, slices: pd.DataFrame) -> None:
    axes.axhline(0, color="black", linewidth=0.8)
    for (direction, own), color in zip(groups(slices, "direction"), (PATH, TOWARD, AWAY), strict=True):
        axes.plot(own["distance"], 100 * own["change"], color=color, label=direction)
    axes.set(xlabel="distance from the mean", ylabel="change of f (%)", title="along the directions")


@styled
def scene_3d(points: pd.DataFrame, vectors: pd.DataFrame, numbers: pd.Series, label: str) -> Figure:
    """Draw a `Scene` of three variables: the same population and shifts in the two readings, side by side."""
    figure, axes = new(2, 2, height=4.4, title=label, height_ratios=(2, 1), subplot_kw={"projection": "3d"})
    mean = vectors.loc["mean"].to_numpy()
    for panel, below, name, color, reading, step in zip(
        *axes, ("toward", "away"), (TOWARD, AWAY), ("toward the best", "as printed"),
        ("$|\\mu_{ani}|\\,C_{ani}$", "$\\mu_{ani}\\,C_{ani}$"), strict=True,
    ):  # fmt: skip
        panel.scatter(points["x1"], points["x2"], points["x3"], c=points["rank"], cmap="viridis", s=14, alpha=0.6)
        panel.plot(*points[["x1", "x2", "x3"]].to_numpy()[:1].T, "*", color="black", markersize=11, label="best")
        panel.plot(*mean[:, None], "+", color=MEAN, markersize=11, markeredgewidth=2, label="weighted mean")
        for key, own, text, style in (("P", PATH, "P", "-"), (name, color, step, "-"), (f"v {name}", "0.3", "v", "--")):
            ends = np.array([mean, mean + _drawn(vectors, key, numbers["norm of sigma"])])
            length = float(np.sqrt((vectors.loc[key] ** 2).sum()))
            panel.plot(*ends.T, style, color=own, linewidth=2, label=f"{text}, length {length:.2g}")
            panel.plot(*ends[1:].T, "o", color=own, markersize=4)
        panel.set(xlabel="$x_1$", ylabel="$x_2$", zlabel="$x_3$", title=reading)
        panel.set_box_aspect(None, zoom=0.72)  # or the last label is cut
        panel.locator_params(nbins=3)
        _legend_of(panel, below)
    return figure


@styled
def orthogonality(trace: pd.DataFrame, label: str) -> Figure:
    """Draw the cosines with P and the length of C_ani that `trace` recorded, a line per seed."""
    figure, axes = new(1, 2, height=3.4, title=label)
    left, right = axes[0]
    for _, own in groups(trace, "seed"):
        left.plot(own["generation"], own["descent_path"], color=BLUE, linewidth=0.9, alpha=0.6, label="$C_{ani}$")
        left.plot(own["generation"], own["hat_path"], color=VERMILION, linewidth=1.6, label="$\\hat C_{ani}$")
        right.plot(own["generation"], own["descent_length"], color=BLUE, linewidth=0.9, alpha=0.6)
    right.axhline(1, color="black", linestyle="--", linewidth=1, label="unit length")
    left.set(xlabel="generation", ylabel="cosine with P", ylim=(-1, 1))
    right.set(xlabel="generation", ylabel="length of $C_{ani}$", ylim=(0, 1.05))
    legend(figure, left, right)
    return figure


@styled
def steps(trace: pd.DataFrame, label: str) -> Figure:
    """Draw one run of `trace`, the first seed's: best value, step sizes, successes, standard deviations."""
    figure, axes = new(3, 1, height=6.4, sharex=True)
    own = trace[trace["seed"] == trace["seed"].iloc[0]]
    best, beta, std = axes[:, 0]
    best.plot(own["generation"], own["best"], color=BLUE)
    best.set(ylabel="best value", yscale="log", title=f"{label}, seed {own['seed'].iloc[0]}")
    beta.plot(own["generation"], own["beta1"], color=PURPLE, label="$\\beta_1$")
    beta.plot(own["generation"], own["beta2"], color=GREEN, linestyle="--", label="$\\beta_2$")
    later = own[own["generation"] > 1]
    for success, marker, color in ((True, "^", BLUE), (False, "x", VERMILION)):
        marks = later[later["success"] == success]
        beta.plot(
            marks["generation"], np.full(len(marks), -0.2), marker, color=color, markersize=4, linestyle="none",
            label="success" if success else "failure",
        )  # fmt: skip
    beta.set(ylabel="step sizes", ylim=(-0.4, 3.2))
    beta.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.2)
    std.plot(own["generation"], own["std"], color=BLUE)
    for generation in own.loc[own["reset"], "generation"]:
        std.axvline(generation, color=VERMILION, linestyle=":", linewidth=1)
    std.set(xlabel="generation", ylabel="$\\|\\sigma\\| / \\sqrt{n}$", ylim=(0, None))
    return figure


@styled
def resets(table: pd.DataFrame, label: str) -> Figure:
    """Draw the table of `resets`: the standard deviations of the first seed, and every run's best."""
    figure, axes = new(1, 2, height=3.8, title=label)
    left, right = axes[0]
    first = table["seed"].iloc[0]
    for (reading, seed), own in groups(table, ["reading", "seed"]):
        color, style = READINGS[reading]
        if seed == first:
            left.plot(own["generation"], own["std"], style, color=color, label=f"reset = {reading}")
        right.plot(own["generation"], own["relative"], style, color=color, linewidth=0.8, alpha=0.7)
    left.set(xlabel="generation", ylabel="$\\|\\sigma\\| / \\sqrt{n}$", yscale="log", title=f"seed {first}")
    right.set(xlabel="generation", ylabel="best value / first best value", yscale="log", title="all seeds")
    legend(figure, left)
    return figure


@styled
def signs(table: pd.DataFrame, n_var: int) -> Figure:
    """Draw the table of `signs`: the share of populations in which a shift descends, with its 95 % interval."""
    figure, axes = new(1, table["function"].nunique(), height=3.8, sharey=True)
    names, generations = list(table["shift"].unique()), sorted(table["generation"].unique())
    shades = plt.get_cmap("viridis")(np.linspace(0.0, 0.85, len(generations)))
    for panel, (function, own) in zip(axes[0], groups(table, "function"), strict=True):
        for number, (generation, rows) in enumerate(own.groupby("generation")):
            offset = 0.2 * (number - (len(generations) - 1) / 2)
            places = [names.index(shift) + offset for shift in rows["shift"]]
            panel.errorbar(
                rows["lower"], places, xerr=error_bars(rows, "lower", "low", "high"), fmt="os^Dv"[number % 5],
                color=shades[number], clip_on=False, label=f"generation {generation}",
            )  # fmt: skip
        panel.axvline(50, color=VERMILION, linestyle="--", linewidth=1)
        panel.set_yticks(range(len(names)), [name.replace("C_ani", "$C_{ani}$") for name in names])
        panel.set(xlabel="% in which f falls", xlim=(-2, 102), title=f"{function}, n = {n_var}")
    axes[0, 0].invert_yaxis()
    legend(figure, axes[0, 0])
    return figure
