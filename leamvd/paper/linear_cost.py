"""Section 5: linear cost.

How do time and memory of a generation grow with the number of variables, beside other optimizers, beside NumPy's normal
samples, and beside the objective of the paper's experiments? (Claims C1 and C2.)
"""

import ctypes
import dataclasses
import gc
import math
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from leamvd._support import checks
from leamvd._support.threads import limited_to
from leamvd.optimizers.cma_es import CMAES, SQUARE_MATRICES
from leamvd.optimizers.lea_mvd import LEAMVD

from . import results
from .plots import COLORS, error_bars, log_scale, panels, styled
from .results import Plan, Result, delayed, read_recorded

# ---- settings

POPULATION_SIZE, SIGMA0 = 24, 0.1  # of all methods, which start at x = (1, ..., 1)
ROUNDS = 7  # whose median and quartiles are kept
DTYPES = {"lea-mvd": ("float32", "float64"), "sep-cma-es": ("float64",), "cma-es": ("float64",)}
SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "quick": {"lea-mvd": (1_000, 10_000), "sep-cma-es": (1_000, 10_000), "cma-es": (100, 300, 1_000)},
    "paper": {
        "lea-mvd": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        "sep-cma-es": (1_000, 10_000, 100_000, 1_000_000),
        "cma-es": (100, 300, 1_000, 2_000, 4_000),
    },
}
RECORDED_AS = {"leamvd": "lea-mvd", "pycma separable": "sep-cma-es", "pycma full": "cma-es"}


@dataclasses.dataclass(frozen=True)
class Settings:
    """What is measured: numbers of variables by method."""

    sizes: Mapping[str, tuple[int, ...]]

    @classmethod
    def of(cls, profile: str, methods: Sequence[str] | None, sizes: Sequence[int] | None) -> "Settings":
        """Return a profile with other methods and sizes; with its own sizes CMA-ES is also tried where it refuses."""
        usual = dict(SIZES[checks.choice("profile", profile, [*SIZES])])
        usual["cma-es"] += (_refused(),)
        for n in sizes or ():
            checks.integer("sizes", n, at_least=1)
        chosen = [checks.choice("methods", method, [*DTYPES]) for method in methods or DTYPES]
        return cls({method: tuple(sizes or usual[method]) for method in chosen})


def _refused() -> int:
    """Return the first round number of variables whose matrices are larger than this machine's memory."""
    n = math.sqrt(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / (8 * SQUARE_MATRICES))
    step = 10 ** int(math.log10(n))
    return math.ceil(n / step) * step


class Tables(NamedTuple):
    """What is measured; all but the first are recorded ones in every profile."""

    optimizers: pd.DataFrame  # time and memory of a generation, by method, dtype and number of variables
    parts: pd.DataFrame  # a generation of LEA-MVD taken apart
    split: pd.DataFrame  # a generation in the layers of Sections 3 and 4: the optimizer and its objective
    objectives: pd.DataFrame  # the reconstruction error of a population
    training: pd.DataFrame  # an epoch of contrastive divergence


def tables(
    profile: str = "recorded",
    folder: str | Path = ".",
    *,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
) -> Tables:
    """Return the section's tables; `methods` and `sizes` of None are the profile's."""
    others = (read_recorded("linear_cost", name) for name in Tables._fields[1:])
    if profile == "recorded":
        if methods is not None or sizes is not None:
            raise ValueError("profile='recorded' has fixed settings; methods and sizes need profile quick or paper")
        own = read_recorded("linear_cost", "optimizers").replace({"method": RECORDED_AS})
        return Tables(own, *others)
    found = results.tables(plan(Settings.of(profile, methods, sizes)), folder, label="linear cost")
    return Tables(found["optimizers"], *others)


def summary(found: Tables, **_: Any) -> pd.DataFrame:
    """Return the costs of each method over those of NumPy's normal samples and of LEA-MVD."""
    return beside(found.optimizers)


# ---- what is computed


def plan(settings: Settings) -> Plan:
    """Return a measurement for each method, number of variables and dtype."""
    calls = {
        (method, n, dtype): delayed(measure)(method, n, dtype)
        for method, sizes in settings.sizes.items()
        for dtype in DTYPES[method]
        for n in sizes
    }
    return {"optimizers": (["method", "n", "dtype"], calls)}


def measure(method: str, n: int, dtype: str, rounds: int = ROUNDS) -> Result:
    """Return time and peak memory of a generation on one thread, and the time of drawing as many normal samples.

    The time is that of `ask` and `tell`: while the objective is at work the clock stands still. CMA-ES decomposes its
    matrix once in a period of generations: its time is the mean of a period.
    """
    about = {"threads": 1, "population_size": POPULATION_SIZE, "rounds": rounds}
    row: dict[str, Any] = about | {"population_bytes": float(POPULATION_SIZE * n * np.dtype(dtype).itemsize)}
    found: list[Any] = []

    def begin() -> None:
        found.append(optimizer(method, n, dtype))
        for _ in range(3):
            generation(found[0])

    with limited_to(1):
        generation(optimizer(method, min(n, 1_000), dtype))  # compiles
        try:
            row["peak_bytes"] = peak_bytes(begin)
        except MemoryError as error:
            nothing = dict.fromkeys(("peak_bytes", *SECONDS, "ratio_to_normal"), np.nan)
            return Result(pd.DataFrame([row | {"status": f"refused: {error}"} | nothing]))
        draws = min(POPULATION_SIZE, max(2, 50_000_000 // n))  # more would take no less a time for each
        numbers, rng = np.empty((draws, n), dtype), np.random.default_rng(0)

        def normals() -> float:
            start = time.perf_counter()
            rng.standard_normal(dtype=numbers.dtype.type, out=numbers)
            return (time.perf_counter() - start) * POPULATION_SIZE / draws

        seconds = alternate({"own": lambda: generation(found[0]), "normals": normals}, rounds)
    low, middle, high = np.quantile(seconds["own"], (0.25, 0.5, 0.75))
    times = dict(zip(SECONDS, (middle, low, high, np.median(seconds["normals"])), strict=True))
    ratio = float(np.median(seconds["own"] / seconds["normals"]))
    return Result(pd.DataFrame([row | {"status": "ok"} | times | {"ratio_to_normal": ratio}]))


SECONDS = ("generation_seconds", "generation_low", "generation_high", "normal_seconds")


def optimizer(method: str, n: int, dtype: str) -> Any:
    """Return an optimizer to `ask` and `tell`; separable CMA-ES is pycma itself, without our copies of populations."""
    start = {"sigma0": SIGMA0, "population_size": POPULATION_SIZE, "seed": 0}
    if method == "lea-mvd":
        return LEAMVD(np.ones(n, dtype), dtype=dtype, **start)
    if method == "cma-es":
        return CMAES(np.ones(n), **start)
    import cma

    options = {"popsize": POPULATION_SIZE, "CMA_diagonal": True, "seed": 1, "verbose": -9, "verb_log": 0}
    return cma.CMAEvolutionStrategy(np.ones(n), SIGMA0, options)


def generation(opt: Any) -> float:
    """Run the generations of a period on the sphere, and return the mean of the optimizer's seconds."""
    period, seconds = getattr(opt, "decomposition_gap", 1), 0.0
    for _ in range(period):
        start = time.perf_counter()
        X = opt.ask()
        asked = time.perf_counter()
        A = np.asarray(X)
        F = np.einsum("ij,ij->i", A, A).tolist()
        del A  # or the next generation's would be held beside it
        told = time.perf_counter()
        opt.tell(X, F)
        seconds += time.perf_counter() - told + asked - start
    return seconds / period


def alternate(works: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, np.ndarray]:
    """Return the seconds that each work says it takes, by round; works take turns, so that they share what disturbs.

    The round before them tells how often a work must be repeated to fill ten milliseconds, of which the mean is taken.
    """
    calls = {name: max(1, math.ceil(0.01 / max(work(), 1e-9))) for name, work in works.items()}
    seconds = [{name: sum(work() for _ in range(calls[name])) / calls[name] for name, work in works.items()}
               for _ in range(rounds)]  # fmt: skip
    return {name: np.array([one[name] for one in seconds]) for name in works}


def peak_bytes(work: Callable[[], object]) -> float:
    """Return by how much this process's memory peaks above what it is now while `work` runs; NaN except on Linux."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # memory that was freed and is used again would not count
        before = _kilobytes("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # forgets earlier peaks
    except (OSError, AttributeError, TypeError):
        work()
        return np.nan
    work()
    return 1024.0 * max(0, _kilobytes("VmHWM") - before)


def _kilobytes(name: str) -> int:
    return int(re.findall(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())[0])


# ---- tables


def costs(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured on one thread, with a `label` of method and dtype."""
    rows = optimizers[(optimizers["status"] == "ok") & (optimizers["threads"] == 1)]
    return rows.assign(label=rows["method"] + ", " + rows["dtype"])


def slopes(optimizers: pd.DataFrame, at_least: int = 10_000, *, last_decade: bool = False) -> pd.DataFrame:
    """Return how time and memory of each method grow with n: the slopes of their logarithms by least squares.

    A slope of 1 is linear, of 2 quadratic. With fewer than `at_least` variables, what a call costs at any size tells.
    """
    rows, found = costs(optimizers), []
    rows = rows[rows["n"] >= at_least]
    if last_decade:
        rows = rows[10 * rows["n"] >= rows.groupby("label")["n"].transform("max")]
    for (method, dtype), line in rows.groupby(["method", "dtype"], sort=False):
        if line["n"].nunique() > 1:
            logs = np.log(line[["n", "generation_seconds", "peak_bytes"]].to_numpy(dtype=float)).T
            (time, memory), _ = np.polyfit(logs[0], logs[1:].T, 1)
            found.append((method, dtype, len(line), line["n"].min(), line["n"].max(), time, memory))
    return pd.DataFrame(found, columns=["method", "dtype", "sizes", "from n", "to n", "time", "memory"])


def beside(optimizers: pd.DataFrame, n: int | None = None) -> pd.DataFrame:
    """Return each method's costs at the largest n, or at one, at which LEA-MVD was measured in the same dtype.

    They stand beside their ratios to NumPy's normal samples, to the population and to LEA-MVD's; the fastest first.
    """
    rows, cost = costs(optimizers), ["generation_seconds", "peak_bytes"]
    own = rows.loc[rows["method"] == "lea-mvd", ["dtype", "n", *cost]]
    both = rows.merge(own, on=["dtype", "n"], suffixes=("", "_own"))
    both = both.loc[both.groupby("label")["n"].idxmax()] if n is None else both[both["n"] == n]
    columns = {
        "method": both["method"],
        "dtype": both["dtype"],
        "n": both["n"],
        "seconds": both["generation_seconds"],
        "MB": both["peak_bytes"] / 1e6,
        "time / normals": both["ratio_to_normal"],
        "memory / population": both["peak_bytes"] / both["population_bytes"],
        "time / LEA-MVD's": both["generation_seconds"] / both["generation_seconds_own"],
        "memory / LEA-MVD's": both["peak_bytes"] / both["peak_bytes_own"],
    }
    return pd.DataFrame(columns).sort_values(["time / LEA-MVD's", "method", "dtype"], ignore_index=True)


def ratios(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return `costs` at the smallest and the largest n that most methods share, of methods that were measured at both.

    `time`, `low` and `high` are the median and the quartiles of a generation over the median of NumPy's normal samples,
    `memory` is the peak over the population. The fastest at the largest n comes first.
    """
    rows = costs(optimizers)
    counts = rows.groupby("n")["label"].nunique()
    shared = counts.index[counts > counts.max() / 2]
    rows = rows[rows["n"].isin([shared.min(), shared.max()])].sort_values("n")
    rows = rows[rows.groupby("label")["n"].transform("nunique") == rows["n"].nunique()]
    times = rows[["generation_seconds", "generation_low", "generation_high"]].div(rows["normal_seconds"], axis=0)
    rows = rows.assign(memory=rows["peak_bytes"] / rows["population_bytes"])
    rows[["time", "low", "high"]] = times
    last = rows["label"].map(rows.groupby("label")["time"].last())
    return rows.assign(last=last).sort_values(["last", "label", "n"])


def full_matrix(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return n and bytes of CMA-ES at its largest n and, in proportion to n^2, where it is refused; or no rows."""
    rows = optimizers[optimizers["method"] == "cma-es"].sort_values("n")
    done, refused = rows[rows["status"] == "ok"].tail(1), rows[rows["status"].str.startswith("refused")].head(1)
    if done.empty or refused.empty:
        return pd.DataFrame({"n": [], "bytes": []})
    n = pd.concat([done["n"], refused["n"]], ignore_index=True)
    return pd.DataFrame({"n": n, "bytes": done["peak_bytes"].item() * (n / n[0]) ** 2})


def shares(parts: pd.DataFrame) -> pd.DataFrame:
    """Return what each part of a generation of LEA-MVD takes of it, in percent: a column for each dtype.

    Calls are what is left after the two passes: the interpreter, the ranking, the power method on 4 x 4 numbers.
    """
    seconds = parts.set_index("dtype").filter(like="_seconds").rename(columns=lambda name: name[: -len("_seconds")])
    found = {
        "first pass": seconds["first_pass"],
        "second pass: random words": seconds["words"],
        "second pass: normal samples from them": seconds["normals"] - seconds["words"],
        "second pass: perturbation": seconds["perturbation"],
        "second pass: the rest": seconds["second_pass"] - seconds["normals"] - seconds["perturbation"],
        "calls": seconds["generation"] - seconds["first_pass"] - seconds["second_pass"],
    }
    return 100 * pd.DataFrame(found).div(seconds["generation"], axis=0).T


# ---- figures

NAMED = {"lea-mvd": "LEA-MVD", "cma-es": "CMA-ES,\nfull matrix", "sep-cma-es": "separable\nCMA-ES"}  # others are gray


@styled
def plot_growth(costs: pd.DataFrame, refused: pd.DataFrame) -> Figure:
    """Plot time and memory of a generation against n, a line for each method and dtype.

    Both scales are alike, so that a cost proportional to n rises at 45 degrees. `refused` is of `full_matrix`.
    """
    figure, ((time,), (memory,)) = panels(2, 1, height=7.4)
    for ax, column in ((time, "generation_seconds"), (memory, "peak_bytes")):
        for _, line in costs.sort_values("n").groupby("label"):
            method, single = line["method"].iloc[0], line["dtype"].iloc[0] == "float32"
            wide = {"linewidth": 1.8, "markersize": 5, "zorder": 3} if method in NAMED else {"linewidth": 0.8}
            look = {"color": COLORS.get(method, "0.6"), "markersize": 3} | wide
            ends = line.rename(columns={"generation_low": "low", "generation_high": "high"})
            bars = error_bars(ends, column) if ax is time else None
            (drawn, *_) = ax.errorbar(line["n"], line[column], yerr=bars, fmt="-o", **look)
            drawn.set_markerfacecolor(look["color"] if single else "white")
        ax.set(xscale="log", yscale="log", xlabel="variables $n$")
        ax.set_aspect("equal", adjustable="datalim")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(numticks=20))
            axis.set_minor_locator(NullLocator())
        _name(ax, costs, column)
    if len(refused):
        memory.plot(refused["n"], refused["bytes"], ":", color=COLORS["cma-es"])
        end = refused.iloc[-1]
        memory.plot(*end, "x", color=COLORS["cma-es"], markersize=9, markeredgewidth=2.5)
        memory.annotate("refused", end, (8, -3), textcoords="offset points", color=COLORS["cma-es"])
    time.set_ylabel("seconds of a generation")
    memory.set_ylabel("bytes of memory at the peak")
    return figure


def _name(ax: Axes, costs: pd.DataFrame, column: str) -> None:
    """Write the names of the methods next to their lines, and one for all gray ones."""
    for method, name in NAMED.items():
        offset = (16, -52) if method == "lea-mvd" else (-6, 4)  # in the free corner below all lines, or above their own
        for point in costs[costs["method"] == method].nlargest(1, "n").to_dict("records"):
            text = ax.annotate(name, (point["n"], point[column]), offset, textcoords="offset points", ha="right")
            text.set(color=COLORS[method], fontweight="bold")
    others = costs[~costs["method"].isin(NAMED)]
    for n, cluster in others[others["n"] == others["n"].min()].groupby("n"):
        at = (n, cluster[column].median())
        ax.annotate("others", at, (-7, -7), textcoords="offset points", ha="right", va="center", color="0.4")


@styled
def plot_ratios(ratios: pd.DataFrame) -> Figure:
    """Plot time over that of NumPy's normal samples, open at the smallest n, and memory over the population's."""
    sizes, labels = sorted(ratios["n"].unique(), reverse=True) or [0], list(ratios["label"].unique())
    figure, (axes,) = panels(1, 2, height=1.7 + 0.27 * len(labels), sharey=True)
    for ax, cost, n in [(axes[0], "time", n) for n in sizes] + [(axes[1], "memory", sizes[0])]:
        for label, row in ratios[ratios["n"] == n].groupby("label"):
            look = {"color": COLORS.get(row["method"].item(), "0.6"), "fillstyle": "full" if n == sizes[0] else "none"}
            bars = error_bars(row, "time") if cost == "time" else None
            ax.errorbar(row[cost], [labels.index(label)], xerr=bars, fmt="o", markersize=5, **look)
    for ax, cost, unit in zip(axes, ("time", "memory"), ("NumPy's normal samples", "the population"), strict=True):
        ax.axvline(1.0, color="black", linewidth=0.8)
        ax.set(xmargin=0.1, xlabel=f"{cost} /\n{unit}", title=cost)
        log_scale(ax, "x")
    axes[0].set_yticks(range(len(labels)), [label.replace(" (", "\n(") for label in labels])
    axes[0].invert_yaxis()
    marks = [Line2D([], [], color="black", marker="o", linestyle="", label=f"n = {n:,}") for n in sizes]
    for mark in marks[1:]:
        mark.set_fillstyle("none")
    figure.legend(handles=marks, loc="outside lower center", ncols=2)
    for tick, label in zip(axes[0].get_yticklabels(), labels, strict=True):
        tick.set_color(COLORS.get(label.partition(",")[0], "black"))
    return figure


@styled
def plot_split(split: pd.DataFrame) -> Figure:
    """Plot seconds of a generation, the optimizer's and its objective's, for each layer of the experiments."""
    figure, ((ax,),) = panels(1, 1, height=1.2 + 0.42 * len(split))
    places = np.arange(len(split))
    ax.hlines(places, split["optimizer_seconds"], split["objective_seconds"], color="0.8", zorder=1)
    for name, color in {"optimizer": COLORS["lea-mvd"], "objective": "0.3"}.items():
        own = split.rename(columns={f"{name}_low": "low", f"{name}_high": "high"})
        middle = own[f"{name}_seconds"]
        ax.errorbar(middle, places, xerr=error_bars(own, f"{name}_seconds"), fmt="o", color=color)
        where = {"textcoords": "offset points", "ha": "center", "color": color, "fontweight": "bold"}
        ax.annotate(name, (middle.iloc[0], 0), (0, 11), **where)
    for place, (seconds, percent) in enumerate(zip(split["optimizer_seconds"], split["percent"], strict=True)):
        where = {"textcoords": "offset points", "ha": "right", "va": "center"}
        ax.annotate(f"{percent:.2g} %", (seconds, place), (-8, 0), **where)
    names = "images of " + split["pixels"] + ", RBM " + split["layer"].astype(str)
    ax.set_yticks(places, names + "\nn = " + split["n"].map("{:,}".format))
    ax.set(xscale="log", xlabel="seconds of a generation", xmargin=0.2, ylim=(len(split) - 0.4, -0.9))
    return figure
