"""Section 1: selection by weight.

Which exponents of the weights select as tournaments do (item R19), and how sharply does each method
select?
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import stats

from leamvd._support import checks
from leamvd.optimizers.selection import fractional_tournament, mean_and_std, tournament

from . import results
from .plots import BLUE, VERMILION, facets, legend, panels, shades, styled
from .results import Table

# ---- settings

PROFILES = {"recorded": 100_000, "quick": 100_000, "paper": 5_000_000}  # tournaments of each kind
CURVE = tuple(np.linspace(0, 4, 81).tolist())  # exponents at which selection pressure is drawn
BINARY = "binary tournament"
DOUBLE = "double binary tournament"
FOUR = "tournament of four"
STATED = {BINARY: 1.0, DOUBLE: 2.0}  # the exponents that the paper calls equivalent
FALSE_ALARMS = 0.01  # of all tests in one table together (Bonferroni)


class Tables(NamedTuple):
    """What is computed. It takes seconds, so nothing is recorded."""

    weights: Table  # of every rank, by method
    curves: Table  # the same for several population sizes and many exponents
    counts: Table  # how often each rank wins simulated tournaments
    population: Table  # points of the plane, the best one first


def tables(
    profile: str = "recorded",
    *,
    population_size: int = 24,
    exponents: Sequence[float] = (0.0, 1.0, 1.5, 2.0, 3.0),
    n_tournaments: int | None = None,
    population_sizes: Sequence[int] = (6, 12, 24, 48, 96),
    seed: int = 1,
) -> Tables:
    """Return the section's tables; `n_tournaments` of None takes the profile's number."""
    usual = results.profile(profile, PROFILES)
    exponents = checks.several("exponents", exponents, at_least=1, different=True)
    exponents = [checks.real("exponents", exponent, at_least=0) for exponent in exponents]
    population_sizes = checks.several(
        "population_sizes", population_sizes, at_least=1, different=True
    )
    checks.integer("population_size", population_size, at_least=2)  # of one, nothing is selected
    checks.integer("seed", seed, at_least=0, at_most=2**64 - 1)
    n = usual if n_tournaments is None else n_tournaments
    # so that the best rank expects five wins
    checks.integer("n_tournaments", n, at_least=5 * population_size)
    return Tables(
        weights([population_size], exponents),
        weights(population_sizes, CURVE),
        simulate(population_size, n, seed),
        population(population_size, seed),
    )


# ---- what is computed


def tournaments(population_size: int) -> dict[str, np.ndarray]:
    """Return the exact probability that each rank wins, by tournament, the best rank first.

    A double binary tournament holds one among the winners of lambda others. With probability
    1/lambda it draws one of them twice, who is the best of two; otherwise its winner is the best of
    four.
    """
    two = tournament(population_size, 2)
    four = tournament(population_size, 4)
    return {BINARY: two, DOUBLE: four + (two - four) / population_size, FOUR: four}


def weights(population_sizes: Sequence[int], exponents: Sequence[float]) -> pd.DataFrame:
    """Return the selection weight of every rank: Eq. 1 with each exponent, and the exact
    tournaments.
    """
    rows = []
    for size in population_sizes:
        methods = []
        for a in exponents:
            methods.append((f"exponent {a:g}", a, fractional_tournament(size, a)))
        for name, exact in tournaments(size).items():
            methods.append((name, np.nan, exact))
        for name, a, G in methods:
            for rank, weight in enumerate(G, start=1):
                rows.append((size, name, a, rank, weight))
    return pd.DataFrame(rows, columns=["population_size", "method", "exponent", "rank", "weight"])


def simulate(population_size: int, n_tournaments: int, seed: int) -> pd.DataFrame:
    """Return how often each rank wins tournaments held round by round: the share, its standard
    error, the exact one.
    """
    rng = np.random.default_rng(seed)
    draws = rng.integers(1, population_size, size=(2, n_tournaments, 2), endpoint=True)
    one, other = draws.min(axis=2)  # winners of two binary tournaments
    best = np.minimum(one, other)
    twice = rng.integers(population_size, size=n_tournaments) == 0  # one is drawn twice
    winners = {BINARY: one, DOUBLE: np.where(twice, one, best), FOUR: best}
    parts = []
    for name, exact in tournaments(population_size).items():
        wins = np.bincount(winners[name], minlength=population_size + 1)[1:]
        part = pd.DataFrame({"tournament": name, "rank": range(1, population_size + 1)})
        part["wins"] = wins
        part["share"] = wins / n_tournaments
        part["error"] = np.sqrt(exact * (1 - exact) / n_tournaments)
        part["exact"] = exact
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def population(population_size: int, seed: int) -> pd.DataFrame:
    """Return points from N(0, I), sorted by (x1 - 1)^2 + 4 (x2 - 1)^2."""
    X = np.random.default_rng(seed).standard_normal((population_size, 2))
    values = (X[:, 0] - 1) ** 2 + 4 * (X[:, 1] - 1) ** 2
    return pd.DataFrame(X[np.argsort(values, kind="stable")], columns=["x1", "x2"])


# ---- tables


def normal_models(points: pd.DataFrame, exponents: Sequence[float]) -> pd.DataFrame:
    """Return mean and standard deviation of a population by each exponent (Eqs. 2 and 3)."""
    X = np.ascontiguousarray(points)
    rows = []
    for a in exponents:
        mean, std = mean_and_std(X, fractional_tournament(len(X), a))
        rows.append((a, *mean, *std))
    return pd.DataFrame(
        rows, columns=["exponent", "mean of x1", "mean of x2", "std of x1", "std of x2"]
    )


def pressure(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the expected rank sum k G_k and the effective sample size 1 / sum G_k^2."""
    groups = ["population_size", "method", "exponent"]
    terms = rows[groups].copy()
    terms["expected rank"] = rows.eval("rank * weight")
    terms["effective size"] = rows["weight"] ** 2
    sums = terms.groupby(groups, sort=False, dropna=False).sum()
    sums["effective size"] = 1 / sums["effective size"]
    return sums.reset_index()


def goodness(counts: pd.DataFrame) -> pd.DataFrame:
    """Test simulated tournaments against their formulas, and against the exponents that the paper
    states.
    """
    rows = []
    for name, ranks in counts.groupby("tournament", sort=False):
        pairs = {"its formula": ranks["exact"].to_numpy()}
        if name in STATED:
            pairs[f"exponent {STATED[name]:g}"] = fractional_tournament(len(ranks), STATED[name])
        wins = ranks["wins"].to_numpy()
        for against, p in pairs.items():
            expected = wins.sum() * p
            # the last ranks, which expect fewer wins, are counted together
            starts = np.flatnonzero(expected >= 5)
            test = stats.chisquare(np.add.reduceat(wins, starts), np.add.reduceat(expected, starts))
            rows.append((name, against, test.statistic, len(starts) - 1, test.pvalue))
    table = pd.DataFrame(
        rows, columns=["tournament", "against", "chi-square", "degrees of freedom", "p"]
    )
    table["rejected"] = table["p"] < FALSE_ALARMS / len(table)
    return table


def closest(population_size: int) -> pd.DataFrame:
    """Return for each tournament the exponent, to 0.001 and at most 8, whose weights are closest to
    it.

    Distances are total variation: the largest difference in the probability of any set of ranks.
    """
    rows = {}
    grid = np.linspace(0, 8, 8001)
    candidates = np.array([fractional_tournament(population_size, a) for a in grid])
    for name, exact in tournaments(population_size).items():
        distances = pd.Series(np.abs(candidates - exact).sum(axis=1) / 2, index=grid)
        stated = STATED.get(name, np.nan)
        rows[name] = stated, distances.get(stated), distances.idxmin(), distances.min()
    return pd.DataFrame.from_dict(
        rows,
        orient="index",
        columns=["stated exponent", "distance there", "closest exponent", "smallest distance"],
    ).rename_axis("tournament")


# ---- figures


@styled
def plot_weights(table: pd.DataFrame) -> Figure:
    """Plot weights against rank: exponents as lines, tournaments as markers."""
    figure, ((ax,),) = panels(1, 1, height=4.2)
    wide = table.pivot(index="rank", columns="method", values="weight")
    lines = table.dropna()["method"].unique()
    wide[lines].plot(ax=ax, color=shades(len(lines)))
    wide.drop(columns=lines).plot(ax=ax, style=["ko", "ks", "kx"], fillstyle="none")
    ax.set(xlabel="rank (1 = best)", ylabel="weight", ylim=(0, None))
    ax.set_title(f"probability to be selected, {len(wide)} individuals")
    return figure


@styled
def plot_differences(counts: pd.DataFrame, nearest: pd.DataFrame) -> Figure:
    """Plot, rank by rank, what is counted and what exponents weigh less the exact probability, in
    percentage points.
    """
    looks = {"stated": {"color": VERMILION, "linestyle": "--"}, "closest": {"color": BLUE}}
    figure, parts = facets(counts, "tournament", 2.0, margin=0.6, sharex=True)
    for ax, name, ranks in parts:
        ax.axhline(0, color="black", linewidth=0.8)
        for kind, look in looks.items():
            a = nearest.loc[name, f"{kind} exponent"]
            if pd.notna(a):
                values = 100 * (fractional_tournament(len(ranks), a) - ranks["exact"])
                ax.plot(ranks["rank"], values, label=f"{kind} exponent", **look)
        counted = ranks.eval("100 * (share - exact)")
        look = {"fmt": ".k", "markersize": 4, "linewidth": 1, "label": "simulation ± 2 s.e."}
        ax.errorbar(ranks["rank"], counted, 200 * ranks["error"], **look)
        ax.set_title(name)
    ax.set_xlabel("rank (1 = best)")
    figure.supylabel("less the exact probability (percentage points)")
    legend(figure)
    return figure


@styled
def plot_pressure(table: pd.DataFrame) -> Figure:
    """Plot selection pressure against the exponent; tournaments, of the largest population, as
    horizontal lines.
    """
    figure, axes = panels(1, 2, height=4.4)
    curves = table.dropna()
    largest = table["population_size"].max()
    levels = table[table["exponent"].isna() & (table["population_size"] == largest)]
    for ax, label in zip(axes[0], ("expected rank", "effective size"), strict=True):
        wide = curves.pivot(index="exponent", columns="population_size", values=label)
        wide = (wide / wide.columns).add_prefix("$\\lambda$ = ")
        wide.plot(ax=ax, color=shades(wide.shape[1]), legend=False)
        ax.set(ylabel=f"{label} / $\\lambda$", ylim=(0, None))
        heights = levels[label] / largest
        styles = (":", "--", "-.")
        for method, value, style in zip(levels["method"], heights, styles, strict=True):
            ax.axhline(value, color="k", linestyle=style, linewidth=1, label=method)
    legend(figure, ncols=2)
    return figure


@styled
def plot_models(points: pd.DataFrame, models: pd.DataFrame) -> Figure:
    """Plot the normal models, a panel for each exponent, with ellipses of one and two standard
    deviations.
    """
    columns = min(3, len(models))
    sharing = {"sharex": True, "sharey": True}
    figure, parts = facets(models, "exponent", 1.5, columns=columns, margin=0.6, **sharing)
    most = fractional_tournament(len(points), models["exponent"].max())[0]
    turn = np.linspace(0, 2 * np.pi, 100)
    for ax, a, model in parts:
        ((_, x1, x2, s1, s2),) = model.to_numpy()
        G = fractional_tournament(len(points), a)
        look = {"c": G, "cmap": "viridis_r", "s": 28, "vmin": 0, "vmax": most}
        dots = ax.scatter(points["x1"], points["x2"], **look)
        for k in (1, 2):
            right = x1 + k * s1 * np.cos(turn)
            up = x2 + k * s2 * np.sin(turn)
            ax.plot(right, up, color=VERMILION, linewidth=1.2)
        ax.plot(x1, x2, "+", color=VERMILION, markersize=10, markeredgewidth=2)
        ax.plot(1, 1, "*", color="black", markersize=9)
        ax.set(title=f"exponent {a:g}", aspect="equal")
    figure.supxlabel("$x_1$")
    figure.supylabel("$x_2$")
    figure.colorbar(dots, ax=figure.axes, label="weight", shrink=0.8)
    return figure
