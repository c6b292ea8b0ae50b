"""Section 5: linear cost.

How do time and memory of a generation grow with the number of variables, beside other optimizers,
beside NumPy's normal samples, and beside the objective of the paper's experiments? (Claims C1 and
C2.)
"""

import ctypes
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from leamvd._support import checks
from leamvd._support.threads import limited_to
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD

from . import results
from .plots import COLORS, legend, panels, styled
from .results import Plan, Result, Table, delayed, read_recorded
from .words import named

# ---- settings

# of all methods, which start at x = (1, ..., 1)
POPULATION_SIZE = 24
SIGMA0 = 0.1
# drawn at once, or two rows of variables; more would take no less a time for each
NORMALS = 50_000_000
DTYPES = {"lea-mvd": ("float32", "float64"), "sep-cma-es": ("float64",), "cma-es": ("float64",)}
SIZES = {
    "quick": {
        "lea-mvd": (1_000, 10_000),
        "sep-cma-es": (1_000, 10_000),
        "cma-es": (100, 300, 1_000),
    },
    "paper": {
        "lea-mvd": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        "sep-cma-es": (1_000, 10_000, 100_000, 1_000_000),
        "cma-es": (100, 300, 1_000, 2_000, 4_000),
    },
}
COSTS = {"time": "generation_seconds", "memory": "peak_bytes"}
BESIDE = {f"{name} / LEA-MVD's": cost for name, cost in COSTS.items()}
RECORDED_AS = {
    "method": {"leamvd": "lea-mvd", "pycma separable": "sep-cma-es", "pycma full": "cma-es"}
}


class Tables(NamedTuple):
    """What is measured; all but the first are recorded ones in every profile."""

    # time and memory of a generation, by method, dtype and number of variables
    optimizers: Table
    parts: Table  # a generation of LEA-MVD taken apart
    # a generation in the layers of Sections 3 and 4: the optimizer and its objective
    split: Table


def tables(
    profile: str = "recorded",
    folder: str | Path = ".",
    *,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
) -> Tables:
    """Return the section's tables; `methods` and `sizes` of None are the profile's."""
    others = {name: read_recorded("linear_cost", name) for name in Tables._fields[1:]}
    if profile == "recorded":
        results.refuse({"methods": methods, "sizes": sizes})
        return Tables(read_recorded("linear_cost", "optimizers").replace(RECORDED_AS), **others)
    plan = planned(profile, methods, sizes)
    return Tables(**results.tables(plan, folder, label="linear cost"), **others)


def summary(measured: Tables, **_: Any) -> pd.DataFrame:
    """Return what each method takes at its largest n, over NumPy's normal samples, the population
    and LEA-MVD.
    """
    rows = relative(measured.optimizers)
    ends = rows.loc[rows.groupby("label")["n"].idxmax()].sort_values("time", ignore_index=True)
    names = {"time": "time / normals", "memory": "memory / population"}
    return ends[["method", "dtype", "n", *COSTS.values(), *names, *BESIDE]].rename(columns=names)


# ---- what is computed


def planned(
    profile: str, methods: Sequence[str] | None = None, sizes: Sequence[int] | None = None
) -> Plan:
    """Return a measurement for each method, dtype and number of variables."""
    usual = results.profile(profile, SIZES)
    if methods is None:
        methods = [*DTYPES]
    methods = checks.several("methods", methods, at_least=1, different=True)
    chosen = {checks.choice("methods", method, [*DTYPES]): usual[method] for method in methods}
    if sizes is not None:
        several = checks.several("sizes", sizes, at_least=1, different=True)
        asked = [checks.integer("sizes", n, at_least=1) for n in several]
        chosen = dict.fromkeys(chosen, asked)
    calls = {}
    for method, numbers in chosen.items():
        for dtype, n in product(DTYPES[method], numbers):
            calls[method, n, dtype] = delayed(measure)(method, n, dtype)
    return {"optimizers": (["method", "n", "dtype"], calls)}


def measure(method: str, n: int, dtype: str) -> Result:
    """Return time and peak memory of a generation on one thread, and the time of drawing as many
    normal samples.

    The time is that of `ask` and `tell`: while the objective is at work the clock stands still.
    """
    started = []

    def begin(n: int = n) -> None:
        started[:] = [optimizer(method, n, dtype)]
        for _ in range(3):
            generation(started[0])

    draws = min(POPULATION_SIZE, max(2, NORMALS // n))  # rows
    with limited_to(1):
        begin(min(n, 1_000_000))  # compiles
        started.clear()
        peak = peak_bytes(begin)
        numbers = np.empty((draws, n), dtype)
        rng = np.random.default_rng(0)

        def normals() -> float:
            start = time.perf_counter()
            rng.standard_normal(dtype=numbers.dtype.type, out=numbers)
            return (time.perf_counter() - start) * POPULATION_SIZE / draws

        seconds = alternate({"generation": lambda: generation(started[0]), "normals": normals})
    low, median, high = np.quantile(seconds["generation"], [0.25, 0.5, 0.75])
    row = {
        "generation_low": low,
        "generation_seconds": median,
        "generation_high": high,
        "status": "ok",
        "threads": 1,
        "normal_seconds": np.median(seconds["normals"]),
        "peak_bytes": peak,
        "population_bytes": POPULATION_SIZE * n * numbers.itemsize,
    }
    return Result(pd.DataFrame([row]))


def optimizer(method: str, n: int, dtype: str) -> Any:
    """Return an optimizer to `ask` and `tell`; separable CMA-ES is pycma itself, without our copies
    of populations.
    """
    start = {"sigma0": SIGMA0, "population_size": POPULATION_SIZE, "seed": 0}
    if method == "lea-mvd":
        return LEAMVD(np.ones(n, dtype), dtype=dtype, **start)
    if method == "cma-es":
        return CMAES(np.ones(n), **start)
    import cma

    options = {
        "popsize": POPULATION_SIZE,
        "CMA_diagonal": True,
        "seed": 1,
        "verbose": -9,
        "verb_log": 0,
    }
    return cma.CMAEvolutionStrategy(np.ones(n), SIGMA0, options)


def generation(opt: Any) -> float:
    """Run a generation on the sphere, and return the optimizer's seconds.

    CMA-ES decomposes its matrix once in a period of generations: all of a period are run, and the
    mean is returned.
    """
    period = 1
    done = 0
    seconds = 0.0
    while done < period:
        start = time.perf_counter()
        X = opt.ask()
        asked = time.perf_counter()
        A = np.asarray(X)
        F = np.einsum("ij,ij->i", A, A).tolist()
        del A  # or the next generation's would be held beside it
        told = time.perf_counter()
        opt.tell(X, F)
        seconds += time.perf_counter() - told + asked - start
        done += 1
        if isinstance(opt, CMAES):
            period = opt.decomposition_gap
    return seconds / period


def alternate(works: Mapping[str, Callable[[], float]], rounds: int = 7) -> dict[str, np.ndarray]:
    """Return the seconds that each work says it takes, by round; works take turns, so that they
    share what disturbs.

    A first call tells how often a work is repeated to fill ten milliseconds of each round, of which
    the mean is taken.
    """
    calls = {}
    for name, work in works.items():
        first = max(work(), 1e-9)
        calls[name] = max(1, int(np.ceil(0.01 / first)))
    seconds = {name: np.empty(rounds) for name in works}
    for i in range(rounds):
        for name, work in works.items():
            seconds[name][i] = np.mean([work() for _ in range(calls[name])])
    return seconds


def peak_bytes(work: Callable[[], object]) -> float:
    """Return by how much this process's memory peaks above what it is now while `work` runs; NaN
    except on Linux.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)  # memory that was freed and is used again would not count
        before = _memory("VmRSS")
        Path("/proc/self/clear_refs").write_text("5")  # forgets earlier peaks
    except (OSError, AttributeError, TypeError):
        work()
        return np.nan
    work()
    peak = _memory("VmHWM") - before
    return peak if peak > 0 else np.nan


def _memory(name: str) -> float:
    # it is in kB
    return 1024.0 * int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0])


# ---- tables


def costs(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured on one thread, with a `label` of method and dtype."""
    rows = optimizers.query("status == 'ok' and threads == 1")
    return rows.assign(label=rows["method"].map(named) + ", " + rows["dtype"])


def slopes(
    optimizers: pd.DataFrame, at_least: int = 10_000, *, last_decade: bool = False
) -> pd.DataFrame:
    """Return how time and memory of each method grow with n: the slopes of their logarithms by
    least squares.

    A slope of 1 is linear, of 2 quadratic. With fewer than `at_least` variables, what a call costs
    at any size tells.
    """
    rows = costs(optimizers[optimizers["n"] >= at_least])
    if last_decade:
        rows = rows[10 * rows["n"] >= rows.groupby("label")["n"].transform("max")]
    found = []
    for (method, dtype), line in rows.groupby(["method", "dtype"], sort=False):
        n = line["n"]
        if n.nunique() > 1:
            fits = [np.polyfit(np.log(n), np.log(line[cost]), 1)[0] for cost in COSTS.values()]
            found.append((method, dtype, len(line), n.min(), n.max(), *fits))
    return pd.DataFrame(found, columns=["method", "dtype", "sizes", "from n", "to n", *COSTS])


def relative(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return `costs` over what drawing NumPy's normal samples and holding the population takes, and
    over LEA-MVD's.

    `time` has the quartiles `low` and `high`; LEA-MVD's costs are those at the same n and dtype,
    NaN if not measured.
    """
    rows = costs(optimizers)
    seconds = rows[["generation_seconds", "generation_low", "generation_high"]]
    rows[["time", "low", "high"]] = seconds.div(rows["normal_seconds"], axis=0)
    rows["memory"] = rows.eval("peak_bytes / population_bytes")
    ours = rows.query("method == 'lea-mvd'")[["dtype", "n", *COSTS.values()]]
    both = rows.merge(ours, how="left", on=["dtype", "n"], suffixes=("", "_own"))
    for name, cost in BESIDE.items():
        both[name] = both[cost] / both[f"{cost}_own"]
    return both


# ---- figures


def _draw_growth(ax: Axes, lines: pd.DataFrame, cost: str) -> None:
    """Draw a cost against n; methods other than the paper's are thin and gray."""
    for (method, dtype), line in lines.groupby(["method", "dtype"]):
        look = {"color": "0.6", "label": "others", "linewidth": 0.8, "ms": 3}
        if method in COLORS:
            look = {"color": COLORS[method], "label": named(method), "linewidth": 1.8, "ms": 5}
            look["zorder"] = 3
        look["mfc"] = look["color"] if dtype == "float32" else "white"
        bars = None
        if cost == COSTS["time"]:
            bars = line[["generation_low", "generation_high"]].sub(line[cost], axis=0).abs().T
        ax.errorbar(line["n"], line[cost], bars, fmt="-o", **look)


@styled
def plot_growth(optimizers: pd.DataFrame) -> Figure:
    """Plot time and memory of a generation against n, a line for each method and dtype.

    Both scales are alike, so that a cost proportional to n rises at 45 degrees. A cross shows where
    CMA-ES is refused, at its largest measured peak extended in proportion to n^2.
    """
    figure, ((time,), (memory,)) = panels(2, 1, height=7.4)
    lines = costs(optimizers).sort_values("n")
    _draw_growth(time, lines, COSTS["time"])
    _draw_growth(memory, lines, COSTS["memory"])
    time.set_ylabel("time, seconds")
    memory.set_ylabel("memory, bytes")
    for ax in (time, memory):
        ax.set(xscale="log", yscale="log", xlabel="variables $n$")
        ax.set(adjustable="datalim", aspect="equal")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(LogLocator(numticks=20))
            axis.set_minor_locator(NullLocator())
    full = optimizers.query("method == 'cma-es'").sort_values("n")
    color = COLORS["cma-es"]
    for n in full.loc[full["status"].str.startswith("refused"), "n"].head(1):
        last = full.query("status == 'ok'").iloc[-1]
        peak = last["peak_bytes"] * (n / last["n"]) ** 2
        memory.plot([last["n"], n], [last["peak_bytes"], peak], ":", color=color)
        memory.plot(n, peak, "x", color=color, markersize=9, markeredgewidth=2.5)
        memory.annotate("refused", (n, peak), (8, -3), textcoords="offset points", color=color)
    legend(figure, ncols=2)
    return figure
