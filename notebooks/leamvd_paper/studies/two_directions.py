"""Section 2: the two directions, P and C_ani, along which LEA-MVD shifts what it samples.

Does C_ani lead toward better points, as the paper says, and is it orthogonal to P? What do the step
sizes and the reset do in whole runs?
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leamvd._support import checks
from leamvd.optimizers.directions import RATE
from leamvd.optimizers.methods import optimizer
from leamvd.optimizers.state import State
from leamvd_paper.data.functions import FUNCTIONS

from . import results
from .benchmarks import cosine, directions, generations
from .layers import with_changes
from .plots import (
    BLUE,
    GREEN,
    PURPLE,
    VERMILION,
    error_bars,
    facets,
    legend,
    log_scale,
    panels,
    shades,
    styled,
    typeset,
)
from .results import Integers, Table
from .statistics import shares

# ---- settings


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Runs of LEA-MVD on a function, from start solutions in N(0, I) unless they say otherwise."""

    function: str = "ellipsoid"  # of `leamvd_paper.data.functions.FUNCTIONS`
    n_var: int = 50  # this and the next six: as in `leamvd.LEAMVD` and `leamvd.Reading`
    n_gen: int = 60
    population_size: int = 24
    n_elite: int = 4
    exponent: float = 1.5
    shift: str = "toward_best"
    dtype: str = "float64"
    seeds: Integers = tuple(range(10))
    n_populations: int = 200  # on which the sign of a shift is tested
    start: float = 0.01  # standard deviation of start solutions where resets are compared

    def __post_init__(self) -> None:
        checks.choice("function", self.function, [*FUNCTIONS])
        checks.integer("n_populations", self.n_populations, at_least=1)
        checks.real("start", self.start, at_least=0)
        object.__setattr__(
            self, "seeds", checks.several("seeds", self.seeds, at_least=1, different=True)
        )

    def run(self, seed: int, *, reset: Any = 1.0, start: float = 1.0) -> Iterator[State]:
        """Yield the state after each generation, in double precision; the start solution is from
        N(0, start^2 I).
        """
        x0 = start * np.random.default_rng(seed).standard_normal(self.n_var)
        names = ("population_size", "n_elite", "n_gen", "dtype", "exponent", "shift")
        settings = {name: getattr(self, name) for name in names}
        opt = optimizer("lea-mvd", x0, sigma_min=0, seed=seed, reset=reset, **settings)
        for _ in generations(opt, FUNCTIONS[self.function]):
            arrays = ("population", "mean", "std", "path", "descent")
            yield opt.state._replace(
                **{name: getattr(opt.state, name).astype(np.float64) for name in arrays}
            )


PAPER = Settings(n_gen=300, seeds=tuple(range(30)), n_populations=2000)
PROFILES = {"recorded": Settings(), "quick": Settings(), "paper": PAPER}
# R13
RESETS = {
    "to 1": (1.0, VERMILION, "-"),
    "to the first": ("initial", PURPLE, "--"),
    "none": ("off", BLUE, ":"),
}
TOWARD = "C_ani, toward the best"
AWAY = "C_ani, as printed"
PATH = "P"
V_TOWARD = "v, toward the best"
V_AWAY = "v, as printed"


class Scene(NamedTuple):
    """One generation taken apart."""

    # x1, x2, ..., best first; their feet f1, f2, ... on C_ani's line through the best
    points: Table
    vectors: Table  # the mean, C_hat, C_ani, and what `steps` returns
    numbers: pd.Series
    # relative change of the objective along directions from the mean, up to one std (rms) away
    slices: Table


class Tables(NamedTuple):
    """What is computed. It takes seconds, so nothing is recorded."""

    flat: Scene  # in two variables
    solid: Scene  # in three
    trace: Table  # whole runs, a row for each generation
    resets: Table  # the same with three readings of the reset, close to the optimum
    shifts: Table  # the objective when the mean of a population is moved


def tables(
    profile: str = "recorded",
    *,
    generation: int = 4,
    generations: Sequence[int] = (1, 5, 20),
    seed: int = 2,
    **changes: Any,
) -> Tables:
    """Return the section's tables; `changes` are fields of `Settings`, one that is None is none.

    A `generation` of the run `seed` is taken apart; shifts are tested in several.
    """
    settings = with_changes(results.profile(profile, PROFILES), (), changes)
    checks.integer("generation", generation, at_least=1)
    several = checks.several("generations", generations, at_least=1, different=True)
    generations = [checks.integer("generations", number, at_least=1) for number in several]
    checks.integer("seed", seed, at_least=0)
    scenes = [scene(settings, n_var, generation, seed) for n_var in (2, 3)]
    moved = []
    for function in dict.fromkeys(("sphere", "ellipsoid", settings.function)):
        moved.append(shifts(replace(settings, function=function), generations))
    return Tables(*scenes, trace(settings), resets(settings), pd.concat(moved))


# ---- one generation


def steps(state: State) -> dict[str, np.ndarray]:
    """Return the steps along C_ani and the shifts v (Eq. 4) in both readings of item R5, and P."""
    P = state.path
    beta2 = state.beta2
    toward = abs(state.descent_mean) * state.descent
    away = state.descent_mean * state.descent
    return {
        TOWARD: toward,
        AWAY: away,
        PATH: P,
        V_TOWARD: beta2 * P + (1 - beta2) * toward,
        V_AWAY: beta2 * P + (1 - beta2) * away,
    }


def scene(settings: Settings, n_var: int, generation: int, seed: int) -> Scene:
    """Return a generation of a run in `n_var` variables, taken apart."""
    *earlier, now = replace(settings, n_var=n_var, n_gen=generation).run(seed)
    C = now.descent
    X = now.population
    before = earlier[-1].descent if earlier else 0
    C_hat = (C - (1 - RATE) * before) / RATE
    places = range(1, n_var + 1)
    names = [f"x{i}" for i in places]
    found = {"mean": now.mean, "C_hat": C_hat, "C_ani": C, **steps(now)}
    vectors = pd.DataFrame(found, index=names).T
    line = _scaled(C)
    offsets = X - X[0]
    points = pd.DataFrame(X, columns=names)
    points["rank"] = range(1, len(X) + 1)
    points["projection"] = offsets @ C
    points["in_u"] = points.index.isin(now.descent_rows)  # drawn for U
    points[[f"f{i}" for i in places]] = X[0] + (offsets @ line)[:, None] * line
    furthest = float(np.sqrt(np.mean(now.std**2)))
    slices = pd.DataFrame({"distance": np.linspace(0, furthest, 41)})
    for name in (PATH, TOWARD, AWAY):
        line = now.mean + slices[["distance"]].to_numpy() * _scaled(vectors.loc[name].to_numpy())
        values = FUNCTIONS[settings.function](line)
        slices[name] = (values - values[0]) / abs(values[0])
    numbers = {"mu_ani": now.descent_mean, "sigma_ani": now.descent_std, "beta_2": now.beta2}
    numbers["norm of sigma"] = np.linalg.norm(now.std)
    numbers["part of P in v"] = now.beta2 * np.linalg.norm(now.path)
    numbers["part of C_ani in v"] = (1 - now.beta2) * np.linalg.norm(vectors.loc[TOWARD])
    name = f"{settings.function}, n = {n_var}, generation {now.generation}"
    return Scene(points, vectors, pd.Series(numbers, name=name), slices)


def _scaled(vector: np.ndarray, length: float = 1.0) -> np.ndarray:
    norm = float(np.linalg.norm(vector))
    return length * vector / norm if norm > 0 else vector


# ---- whole runs


def trace(settings: Settings, *, reset: Any = 1.0, start: float = 1.0) -> pd.DataFrame:
    """Return what the directions and the step sizes do in each generation of each seed's run.

    `success` says whether there is a new best, `reset` whether line 10 of Algorithm 1 was reached;
    `std` is the norm of sigma over sqrt(n), `hat_path` the cosine of C_hat, recovered from two
    generations of C_ani, and P.
    """
    rows = []
    for seed in settings.seeds:
        C = np.zeros(settings.n_var)
        for state in settings.run(seed, reset=reset, start=start):
            C_hat = state.descent - (1 - RATE) * C  # times RATE
            C = state.descent
            row = {
                "seed": seed,
                "generation": state.generation,
                "best": state.fitness[0],
                "beta1": state.beta1,
            }
            row["std"] = state.std_norm / np.sqrt(len(C))
            row["hat_path"] = cosine(C_hat, state.path)
            row["stagnation"] = state.stagnation
            rows.append(row | directions(state))
    table = pd.DataFrame(rows)
    before = table[["best", "stagnation"]].shift().where(table["generation"] > 1)
    success = table["best"] < before["best"]
    return table.assign(
        success=success, reset=~success & (table["stagnation"] <= before["stagnation"])
    )


def step_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Return how often each run succeeds, and what that does to the step sizes, from generation 2
    on.

    In percent: `full`, that beta_2 is 1, where C_ani has no weight in v, and C_ani's share of the
    lengths of v's parts.
    """
    runs = table.query("generation > 1").assign(full=table["beta2"] == 1).groupby("seed")
    percent = 100 * runs[["success", "full", "descent_share"]].mean()
    beta1 = runs["beta1"].agg(["min", "max"]).add_prefix("beta1 ")
    return percent.join(beta1).assign(resets=runs["reset"].sum())


def resets(settings: Settings) -> pd.DataFrame:
    """Return the `trace` of runs from close to the optimum with each of `RESETS`, by `reading`.

    `relative` is the best value over that of generation 1.
    """
    runs = {}
    for name, (value, _, _) in RESETS.items():
        runs[name] = trace(settings, reset=value, start=settings.start)
    table = pd.concat(runs, names=["reading"]).reset_index("reading").reset_index(drop=True)
    first = table.groupby(["reading", "seed"])["best"].transform("first")
    return table.assign(relative=np.where(first > 0, table["best"] / first, 1.0))


def stuck(table: pd.DataFrame) -> pd.DataFrame:
    """Return for each reading how many runs never improved, and the median of the last best value
    over the first.
    """
    ends = table.groupby(["reading", "seed"], sort=False)["relative"].last()
    rows = pd.DataFrame({"runs": ends.groupby("reading").size()})
    rows["resets"] = table.groupby("reading")["reset"].sum()
    rows["never improved"] = (ends == 1).groupby("reading").sum()
    rows["last over first"] = ends.groupby("reading").median()
    return rows.loc[[*RESETS]]


# ---- the sign of the shift


def shifts(settings: Settings, chosen: Sequence[int]) -> pd.DataFrame:
    """Return the relative change of the objective when the mean of independent populations is
    moved.

    By the whole step along C_ani, by beta_1 P and by beta_1 v; `moved` says whether that is not
    zero.
    """
    rows = []
    objective = FUNCTIONS[settings.function]
    settings = replace(settings, n_gen=max(chosen))
    for seed in range(settings.n_populations):
        for state in settings.run(seed):
            if state.generation not in chosen:
                continue
            moves = steps(state)
            for name in (PATH, V_TOWARD, V_AWAY):
                moves[name] = state.beta1 * moves[name]
            moved = [state.mean + move for move in moves.values()]
            here, *there = objective(np.vstack([state.mean, *moved]))
            population = (settings.function, state.generation, seed)
            for (name, move), value in zip(moves.items(), there, strict=True):
                change = (value - here) / abs(here)
                rows.append((*population, name, change, bool(move.any())))
    return pd.DataFrame(
        rows, columns=["function", "generation", "seed", "shift", "change", "moved"]
    )


def signs(changes: pd.DataFrame) -> pd.DataFrame:
    """Return the percentage of populations, among those that a shift moves, in which it lowers the
    objective.
    """
    moved = changes[changes["moved"]]
    falls = moved.assign(falls=moved["change"] < 0)
    table = shares(falls, "falls", ["function", "generation", "shift"])
    return table.assign(**(100 * table[["mean", "low", "high"]]))


# ---- figures


@styled
def plot_flat(parts: Scene) -> Figure:
    """Plot a generation in two variables: the population, its projections, the shift, and the
    objective along it.
    """
    points, vectors, numbers, slices = parts
    figure, ((a, b), (c, d)) = panels(2, 2, height=7.0)
    _plane(a, parts)
    a.set(xlabel="$x_1$", ylabel="$x_2$", title=numbers.name)

    mu = numbers["mu_ani"]
    sigma = numbers["sigma_ani"]
    b.axhspan(
        mu - sigma, mu + sigma, color=PURPLE, alpha=0.2, label="$\\mu_{ani} \\pm \\sigma_{ani}$"
    )
    b.axhline(mu, color=PURPLE)
    others = points[1:]
    b.scatter(others["rank"], others["projection"], c=others["rank"], s=24)
    b.set(xlabel="rank (2 = second best)", title="projections on $C_{ani}$")

    d.axhline(0, color="black", linewidth=0.8)
    for name, color, v in (
        (TOWARD, BLUE, V_TOWARD),
        (AWAY, VERMILION, V_AWAY),
        (PATH, GREEN, None),
    ):
        d.plot(slices["distance"], 100 * slices[name], color=color)
        _arrow(c, np.zeros(2), vectors.loc[name].to_numpy(), color, name)
        if v:
            c.plot(*vectors.loc[[name, PATH]].to_numpy().T, ":", color=color, linewidth=1)
            c.plot(*vectors.loc[v], "o", color=color, fillstyle="none", label=v)
    c.set(
        xlabel="step in $x_1$",
        ylabel="step in $x_2$",
        title=f"the shift v, $\\beta_2$ = {numbers['beta_2']:.2g}",
    )
    d.set(xlabel="distance from the mean", title="change of f, %")
    for ax in (a, c):
        ax.set_aspect("equal", adjustable="datalim")
        ax.locator_params(axis="x", nbins=3)
    legend(figure, ncols=2)
    return figure


@styled
def plot_orthogonality(table: pd.DataFrame) -> Figure:
    """Plot the cosines with P and the length of C_ani, a line for each seed."""
    figure, ((left, right),) = panels(1, 2, height=3.4)
    for _, run in table.groupby("seed", sort=False):
        left.plot(
            run["generation"],
            run["descent_path"],
            color=BLUE,
            linewidth=0.9,
            alpha=0.6,
            label="$C_{ani}$",
        )
        left.plot(run["generation"], run["hat_path"], color=VERMILION, label="$\\hat C_{ani}$")
        right.plot(run["generation"], run["descent_length"], color=BLUE, linewidth=0.9, alpha=0.6)
    right.axhline(1, color="black", linestyle="--", linewidth=1, label="unit length")
    left.set(xlabel="generation", ylabel="cosine with P", ylim=(-1, 1))
    right.set(xlabel="generation", ylabel="length of $C_{ani}$", ylim=(0, 1.05))
    legend(figure)
    return figure


@styled
def plot_steps(table: pd.DataFrame) -> Figure:
    """Plot the first seed's run: best value, step sizes with successes and failures, standard
    deviations.
    """
    figure, axes = panels(3, 1, height=6.4, sharex=True)
    best, beta, std = axes[:, 0]
    seed = table["seed"].iloc[0]
    run = table.query("seed == @seed")
    best.plot(run["generation"], run["best"], color=BLUE)
    log_scale(best, "y")
    best.set(ylabel="best value", title=f"seed {seed}")
    beta.plot(run["generation"], run["beta1"], color=PURPLE, label="$\\beta_1$")
    beta.plot(run["generation"], run["beta2"], color=GREEN, linestyle="--", label="$\\beta_2$")
    later = run.query("generation > 1")
    for marks, look, color, label in (
        (later["success"], "^", BLUE, "success"),
        (~later["success"], "x", VERMILION, "failure"),
    ):
        x = later["generation"][marks]
        beta.plot(x, np.full(len(x), -0.2), look, color=color, markersize=4, label=label)
    beta.set(ylabel="step sizes", ylim=(-0.4, 3.2))
    beta.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=4, columnspacing=1.2)
    std.plot(run["generation"], run["std"], color=BLUE)
    std.set(xlabel="generation", ylabel="$\\|\\sigma\\| / \\sqrt{n}$", ylim=(0, None))
    return figure


@styled
def plot_resets(table: pd.DataFrame) -> Figure:
    """Plot the standard deviations of the first seed, and every run's best value, by reading of the
    reset.
    """
    figure, ((left, right),) = panels(1, 2, height=3.8)
    first = table["seed"].iloc[0]
    for (reading, seed), run in table.groupby(["reading", "seed"], sort=False):
        _, color, style = RESETS[reading]
        if seed == first:
            left.plot(run["generation"], run["std"], style, color=color, label=f"reset: {reading}")
        right.plot(run["generation"], run["relative"], style, color=color, linewidth=0.8, alpha=0.7)
    left.set(xlabel="generation", ylabel="$\\|\\sigma\\| / \\sqrt{n}$", title=f"seed {first}")
    right.set(xlabel="generation", ylabel="best value / first best value", title="all seeds")
    log_scale(left, "y")
    log_scale(right, "y")
    legend(figure)
    return figure


@styled
def plot_signs(tests: pd.DataFrame) -> Figure:
    """Plot the percentage of populations in which a shift descends, with its 95 % interval."""
    names = list(tests["shift"].unique())
    count = tests["generation"].nunique()
    colors = shades(count)
    columns = tests["function"].nunique()
    figure, parts = facets(tests, "function", 3.8, columns=columns, margin=0, sharey=True)
    for ax, function, tested in parts:
        for number, (generation, rows) in enumerate(tested.groupby("generation")):
            places = rows["shift"].map(names.index) + 0.2 * (number - (count - 1) / 2)
            label = f"generation {generation}"
            ax.errorbar(
                rows["mean"],
                places,
                xerr=error_bars(rows),
                label=label,
                fmt="os^Dv"[number % 5],
                color=colors[number],
                clip_on=False,
            )
        ax.axvline(50, color=VERMILION, linestyle="--", linewidth=1)
        ax.set_yticks(range(len(names)), [*map(typeset, names)])
        ax.set(xlabel="% in which f falls", xlim=(-2, 102), title=function)
    figure.axes[0].invert_yaxis()
    legend(figure)
    return figure


def _plane(ax: Axes, parts: Scene) -> None:
    """Draw the population, its projections and the steps along both directions from the best."""
    points, vectors, numbers, _ = parts
    ax.plot(points[["x1", "f1"]].T, points[["x2", "f2"]].T, color="0.8", linewidth=0.8)
    ax.plot(points["f1"], points["f2"], ".", color="0.6", markersize=3)
    at = points[["x1", "x2"]].to_numpy()
    ax.scatter(*at.T, c=points["rank"], s=20, alpha=0.8)
    ax.plot(*at[:1].T, "*", color="black", markersize=11, label="best")
    mean = vectors.loc[["mean"]].to_numpy()
    ax.plot(*mean.T, "+", color=PURPLE, markersize=11, label="weighted mean")
    ax.scatter(
        *at[points["in_u"]].T,
        s=90,
        facecolors="none",
        edgecolors="black",
        label="drawn for U",
        zorder=3,
    )
    for name, color in ((PATH, GREEN), (TOWARD, BLUE)):
        step = _scaled(vectors.loc[name].to_numpy(), numbers["norm of sigma"])
        _arrow(ax, at[0], step, color, name)


def _arrow(ax: Axes, start: np.ndarray, step: np.ndarray, color: str, label: str) -> None:
    look = {"arrowstyle": "-|>", "color": color, "linewidth": 1.8, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", start + step, start, arrowprops=look)
    ax.plot(*np.array([start, start + step]).T, color=color, linewidth=1.8, label=label)
