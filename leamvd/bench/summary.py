"""What the bench's tables say: how costs grow, the targets, the claims C1 and C2, a sentence for each figure."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from leamvd.bench import Tables
from leamvd.paper.claims import Verdict
from leamvd.paper.comparison import number

LEAMVD, FULL, SEPARABLE = "leamvd", "pycma full", "pycma separable"
"""Methods that the claims are about, as the tables name them."""

LARGE = 10_000
"""Variables from which growth is fitted: with fewer, what a call costs at any size tells."""

QUADRATIC_FROM = 1_000
"""Variables from which square matrices outweigh the rest of what CMA-ES holds."""

LINEAR, QUADRATIC = (0.95, 1.05), (1.8, 2.2)
"""Slopes in double logarithmic scale that count as O(n) and as O(n^2)."""

SIZES = 3
"""Numbers of variables on which a slope must rest to settle a claim."""

RATIO_LIMITS: dict[tuple[int, str], tuple[float, float | None]] = {
    (10_000, "float32"): (0.4, None),
    (100_000, "float32"): (0.4, None),
    (1_000_000, "float32"): (0.35, 0.2),
    (10_000_000, "float32"): (0.35, 0.2),
    (10_000, "float64"): (0.7, None),
    (100_000, "float64"): (0.7, None),
    (1_000_000, "float64"): (0.6, 0.4),
    (10_000_000, "float64"): (0.6, 0.4),
}
"""Target and stretch target of a generation's time over that of NumPy's normals."""

LARGE_SHAPES, SMALL_SHAPES = ((784, 500), (500, 500), (500, 2000)), ((49, 30), (30, 30), (30, 120))
"""Visible and hidden units at which matrix products, and at which elementwise functions, take most of the objective."""

SHARDS = {"1e9": 8, "1e10": 64, "1e11": 512}
"""Machines among which so many variables are divided on the book's page about them."""

_Row = tuple[str, str, str, str, str]


# ---- tables


def costs(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured on one thread, with `label`: the method and its dtype."""
    rows = _measured(optimizers)
    return rows.assign(label=rows["method"] + ", " + rows["dtype"])


def of(method: str, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of one method."""
    return rows[rows["method"] == method]


def gaps(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that have no numbers, and the sentence that says why."""
    rows = optimizers[optimizers["status"] != "ok"]
    return rows[["method", "dtype", "threads", "n", "status"]].rename(columns={"status": "why"})


def slopes(optimizers: pd.DataFrame, at_least: int = LARGE) -> pd.DataFrame:
    """Fit how time and peak memory of each method grow with n: least squares of their logarithms.

    Parameters
    ----------
    optimizers : DataFrame
        Of the bench.
    at_least : int
        Fewest variables that count.

    Returns
    -------
    DataFrame
        A row for each method and dtype measured at two or more such n: the number of sizes, the smallest and the
        largest, and the slopes of time and memory (1: linear, 2: quadratic).
    """
    rows = costs(optimizers)
    found = []
    for (method, dtype), group in rows[rows["n"] >= at_least].groupby(["method", "dtype"], sort=False):
        if len(group) > 1:
            n = group["n"]
            fits = (_slope(n, group["generation_seconds"]), _slope(n, group["peak_bytes"]))
            found.append((method, dtype, len(group), int(n.min()), int(n.max()), *fits))
    return pd.DataFrame(found, columns=["method", "dtype", "sizes", "from n", "to n", "time", "memory"])


def ratios(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return `costs` at the n that most methods share, in order of `ratio_to_normal` at the largest."""
    rows = costs(optimizers)
    counts = rows.groupby("n")["label"].nunique()
    rows = rows[rows["n"].map(counts) > counts.max() / 2].sort_values("n")
    last = rows["label"].map(rows.groupby("label")["ratio_to_normal"].last())
    return rows.assign(last=last).sort_values(["last", "label", "n"]).drop(columns="last")


def baselines(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return each baseline's time and peak memory over LEA-MVD's, at the largest n at which its dtype has both.

    Returns
    -------
    DataFrame
        Columns method, dtype, n, time, memory; the fastest first.
    """
    rows = costs(optimizers)
    keys, values = ["dtype", "n"], ["generation_seconds", "peak_bytes"]
    own = of(LEAMVD, rows)[keys + values]
    others = rows[rows["method"] != LEAMVD].merge(own, on=keys, suffixes=("", "_own"))
    others = others.assign(
        time=others["generation_seconds"] / others["generation_seconds_own"],
        memory=others["peak_bytes"] / others["peak_bytes_own"],
    )
    last = others.sort_values("n").groupby(["method", "dtype"], sort=False, as_index=False).tail(1)
    others = last[["method", *keys, "time", "memory"]]
    return others.sort_values(["time", "method"], ignore_index=True)


def full_matrix(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return the line on which CMA-ES with a full matrix stops: from its largest n with n^2 on to where it refuses.

    Returns
    -------
    DataFrame
        Columns n and bytes; empty where it was not run, or not refused.
    """
    rows = of(FULL, optimizers)
    done, refused = _measured(rows), rows[rows["status"].str.startswith("refused")]
    if done.empty or refused.empty:
        return pd.DataFrame({"n": [], "bytes": []})
    last = done.sort_values("n").iloc[-1]
    n = np.array([last["n"], refused["n"].min()])
    return pd.DataFrame({"n": n, "bytes": last["peak_bytes"] * (n / n[0]) ** 2})


def threads(counts: pd.Series) -> pd.Series:
    """Return numbers of threads in words."""
    return counts.map(lambda count: f"{count} thread{'s'[: count > 1]}")


def shares(split: pd.DataFrame) -> pd.DataFrame:
    """Return `split` with a generation's total seconds, and the percentage of them that is the optimizer's."""
    total = split["optimizer_seconds"] + split["objective_seconds"]
    return split.assign(total_seconds=total, percent=100 * split["optimizer_seconds"] / total)


def rates(objectives: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured of the objective: `place` (where it ran), `label`, its `limit`, operations a second."""
    rows = objectives[objectives["status"] == "ok"]
    place = threads(rows["threads"]).where(rows["device"] == "cpu", rows["device"])
    label = rows["backend"] + " " + rows["precision"] + ", " + place
    limit = [product_limit(*shape) for shape in zip(rows["n_visible"], rows["n_hidden"], strict=True)]
    return rows.assign(place=place, label=label, limit=limit, rate=rows["flop"] / rows["seconds"])


def product_limit(n_visible: int, n_hidden: int) -> float:
    """Return the part of the matrix products' rate that an objective of this shape should reach."""
    return 0.6 if (n_visible, n_hidden) in SMALL_SHAPES else 0.85


def epochs(training: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured of an epoch, with `place`: the number of BLAS threads, in words."""
    return training.assign(place=threads(training["threads"]))


def accuracies(probe: pd.DataFrame) -> pd.DataFrame:
    """Return the probe's test accuracies in percent, a row a seed, a column a trainer."""
    return 100 * probe.pivot_table(index="seed", columns="trainer", values="test_accuracy")


def scale(tables: Tables) -> dict[str, float]:
    """Return what the page on many machines takes from this run, by name.

    A variable's time in nanoseconds and its bytes, in float32 on one thread at the largest n; seconds a generation of
    the `SHARDS`; and how many operations for each variable and individual take an objective as long as the optimizer.
    NaN where it was not measured.
    """
    rows, objective = of(LEAMVD, costs(tables.optimizers)), rates(tables.objectives)
    rows = rows[rows["dtype"] == "float32"]
    last = rows[rows["n"] == rows["n"].max()]
    seconds = (last["generation_seconds"] / last["n"]).mean()
    rate = objective.loc[(objective["threads"] == 1) & (objective["precision"] == "float32"), "rate"].max()
    values = {"n": last["n"].mean(), "nanoseconds": 1e9 * seconds, "bytes": (last["peak_bytes"] / last["n"]).mean()}
    values |= {"operations": seconds * rate / last["population_size"].mean()}
    values |= {f"seconds-{n}": seconds * float(n) / shards for n, shards in SHARDS.items()}
    return {f"scale-{name}": float(value) for name, value in values.items()}


def _measured(optimizers: pd.DataFrame, threads: int = 1) -> pd.DataFrame:
    return optimizers[(optimizers["status"] == "ok") & (optimizers["threads"] == threads)]


def _slope(n: pd.Series, cost: pd.Series) -> float:
    return float(np.polyfit(np.log(n.to_numpy(float)), np.log(cost.to_numpy(float)), 1)[0])


# ---- targets


def targets(tables: Tables) -> pd.DataFrame:
    """Return the targets that these tables can settle.

    Parameters
    ----------
    tables : Tables
        Of the bench.

    Returns
    -------
    DataFrame
        Columns target, limit, reached, met ("yes", "no", or a dash where nothing was measured) and limited by. A
        target about several values is met when each of them meets it.
    """
    rows = [*_cost_targets(tables.optimizers), *_growth_targets(tables.optimizers)]
    rows += [*_objective_targets(tables.objectives), *_training_targets(tables.training), _probe_target(tables.probe)]
    return pd.DataFrame(rows, columns=["target", "limit", "reached", "met", "limited by"])


def _row(target: str, limit: str, within: tuple[float, float], values: pd.Series, form: str, cause: str) -> _Row:
    """Return one target; the index of `values` names them, `form` is how they are shown."""
    values = values.dropna()
    if values.empty:
        return target, limit, "–", "–", "–"
    shown = ", ".join(form.format(value) + f" ({name})" * bool(name) for name, value in values.items())
    return target, limit, shown, "yes" if values.between(*within).all() else "no", cause


def _own(optimizers: pd.DataFrame, n: int, threads: int = 1) -> pd.DataFrame:
    """Return what was measured of LEA-MVD at n, by dtype."""
    rows = of(LEAMVD, _measured(optimizers, threads))
    rows = rows[rows["n"] == n]
    return rows.set_index("dtype", drop=False).rename_axis(None)


def _cause(optimizers: pd.DataFrame, rows: pd.DataFrame) -> str:
    """Return where most of a generation's time goes, for the first of `rows`.

    To calls, where a variable costs over twice what it costs at the best n; to memory, where copying the population
    alone would take over half the time; otherwise to drawing numbers.
    """
    if rows.empty:
        return "–"
    row = rows.iloc[0]
    same = of(LEAMVD, _measured(optimizers, row["threads"]))
    same = same[same["dtype"] == row["dtype"]]
    if same["n"].nunique() == 1:  # nothing to tell calls from columns by
        return "–"
    columns = row["n"] * (same["generation_seconds"] / same["n"]).min() / row["generation_seconds"]
    if columns < 0.5:
        return f"interpreter (columns take {100 * columns:.0f} %)"
    copying = 1 / row["ratio_to_copy"]
    return f"{'memory traffic' if copying > 0.5 else 'random numbers'} (a copy takes {100 * copying:.0f} %)"


def _cost_targets(optimizers: pd.DataFrame) -> Iterator[_Row]:
    """Yield time against the clock and against NumPy's normals, and memory against the population's."""
    rows = _own(optimizers, 1_000)
    ms = 1e3 * rows["generation_seconds"]
    yield _row("ask + tell, n = 1,000", "≤ 0.10 ms", (0, 0.1), ms, "{:.3f} ms", _cause(optimizers, rows))
    for (n, dtype), (limit, stretch) in RATIO_LIMITS.items():
        rows = _own(optimizers, n)
        rows = rows[rows["dtype"] == dtype]
        text = f"≤ {limit:g}" + (f" (stretch {stretch:g})" if stretch else "")
        values = rows["ratio_to_normal"].set_axis([""] * len(rows))
        name = f"time / NumPy's normals, n = {n:,}, {dtype}"
        yield _row(name, text, (0, limit), values, "{:.3f}", _cause(optimizers, rows))
    for n in (1_000_000, 10_000_000, 100_000_000):
        rows = _own(optimizers, n)
        values = rows["peak_bytes"] / rows["population_bytes"]
        yield _row(f"peak memory / population, n = {n:,}", "≤ 1.35", (0, 1.35), values, "{:.2f}", "the population")


def _growth_targets(optimizers: pd.DataFrame) -> Iterator[_Row]:
    """Yield what a hundred million variables cost, the slope, and what a second thread gains."""
    name, limit = "slope of time, n = 1,000,000 to 100,000,000, float32", "≤ 1.05"
    asked = of(LEAMVD, optimizers).query("dtype == 'float32' and threads == 1")
    largest = asked[asked["n"] == 100_000_000]
    if (largest["status"] != "ok").any():
        yield name, limit, str(largest["status"].iloc[0]), "no", "–"
    else:
        ends = slopes(asked[asked["n"].isin([1_000_000, 100_000_000])], 1_000_000)
        values = ends["time"].set_axis([""] * len(ends))
        yield _row(name, limit, (0, 1.05), values, "{:.3f}", _cause(optimizers, largest))
    small = of(LEAMVD, slopes(optimizers[optimizers["n"] <= 10_000_000])).set_index("dtype")["time"]
    yield _row("slope of time, n = 10,000 to 10,000,000", "0.97 to 1.03", (0.97, 1.03), small, "{:.3f}", "–")
    for n in (100_000, 1_000_000, 10_000_000):
        one, two = _own(optimizers, n), _own(optimizers, n, threads=2)
        gains = one["generation_seconds"] / two["generation_seconds"]
        yield _row(f"two threads over one, n = {n:,}", "≥ 1.8", (1.8, np.inf), gains, "{:.2f}", _cause(optimizers, two))


def _products(parts: pd.Series) -> str:
    """Return what limits the work of which matrix products take these parts."""
    least = parts.min()
    return f"{'BLAS' if least > 0.5 else 'work beside the products'} (products take {100 * least:.0f} %)"


def _objective_targets(objectives: pd.DataFrame) -> Iterator[_Row]:
    """Yield how near NumPy's objective comes to its matrix products, and what it gains on the direct expression."""
    rows = rates(objectives[objectives["backend"] == "numpy"]).set_index("place")
    for v, h in (*LARGE_SHAPES, *SMALL_SHAPES):
        own, limit = rows[(rows["n_visible"] == v) & (rows["n_hidden"] == h)], product_limit(v, h)
        parts, gains = own["fraction_of_products"], own["speedup_over_direct"]
        name, cause = f"objective {v} × {h}", _products(parts)
        yield _row(
            f"{name} / its products", f"≥ {100 * limit:.0f} %", (100 * limit, np.inf), 100 * parts, "{:.0f} %", cause
        )
        if (v, h) in SMALL_SHAPES:
            yield _row(f"{name} over NumPy's expression", "≥ 3", (3, np.inf), gains, "{:.2g}", cause)


def _training_targets(training: pd.DataFrame) -> Iterator[_Row]:
    """Yield contrastive divergence against scikit-learn's, by the latter's threads, and against its own products."""
    rows = epochs(training).set_index("place")
    own, other = rows[rows["trainer"] == LEAMVD], rows[rows["trainer"] == "scikit-learn"]
    parts, cause = own["fraction_of_products"], _products(own["fraction_of_products"])
    gains = own["ratio_to_sklearn"].combine_first(other["seconds"] / own["seconds"].min())  # paired where it can be
    yield _row("contrastive divergence over scikit-learn", "≥ 2", (2, np.inf), gains, "{:.2f}", cause)
    yield _row("contrastive divergence / its products", "≥ 80 %", (80, np.inf), 100 * parts, "{:.0f} %", cause)


def _probe_target(probe: pd.DataFrame) -> _Row:
    """Return the mean difference of the probe's accuracies, paired by seed."""
    points = _points(probe)
    mean = pd.Series({f"{len(points)} seeds": points.mean()})
    cause = f"chance (standard deviation {points.std():.2f})"
    return _row("linear probe, points above scikit-learn's", "-0.3 to 0.3", (-0.3, 0.3), mean, "{:+.2f}", cause)


def _points(probe: pd.DataFrame) -> pd.Series:
    """Return by how many percentage points LEA-MVD's library is above scikit-learn, by seed."""
    table = accuracies(probe).reindex(columns=[LEAMVD, "scikit-learn"])
    return (table[LEAMVD] - table["scikit-learn"]).dropna()


# ---- claims


def _settled(method: str, fits: pd.DataFrame) -> pd.DataFrame:
    rows = of(method, fits)
    return rows[rows["sizes"] >= SIZES]


def c1(optimizers: pd.DataFrame) -> Verdict:
    """LEA-MVD needs O(n) operations and memory: both slopes are `LINEAR` in every dtype, from n = `LARGE` on."""
    fits = _settled(LEAMVD, slopes(optimizers))
    if fits.empty:
        return Verdict("C1", "open", f"A slope needs {SIZES} sizes from n = {LARGE:,} on, and this run has fewer.")
    parts = [
        f"{fit['dtype']} {fit['time']:.3f} and {fit['memory']:.3f} ({fit['sizes']} sizes up to n = {fit['to n']:,})"
        for fit in fits.to_dict("records")
    ]
    holds = all(fits[cost].between(*LINEAR).all() for cost in ("time", "memory"))
    text = f"Slopes of time and of peak memory in double logarithmic scale from n = {LARGE:,} on: {'; '.join(parts)}."
    return Verdict("C1", "holds" if holds else "does not hold", text)


def c2(optimizers: pd.DataFrame) -> Verdict:
    """CMA-ES needs O(n^2) memory and more: with a full matrix its slope is `QUADRATIC` from n = `QUADRATIC_FROM` on."""
    fits = _settled(FULL, slopes(optimizers, QUADRATIC_FROM))
    if fits.empty:
        few = f"A slope needs {SIZES} sizes from n = {QUADRATIC_FROM:,} on, and this run has fewer of the full matrix."
        return Verdict("C2", "open", few)
    (fit,) = fits.to_dict("records")
    text = (
        f"With a full matrix, from n = {fit['from n']:,} to {fit['to n']:,}, peak memory grows with slope "
        f"{fit['memory']:.2f} and time with {fit['time']:.2f}. {refusal(optimizers)} {separable(optimizers)}"
    )
    holds = QUADRATIC[0] <= fit["memory"] <= QUADRATIC[1]
    return Verdict("C2", "holds" if holds else "does not hold", text.strip())


def refusal(optimizers: pd.DataFrame) -> str:
    """Return where CMA-ES with a full matrix stops, and why."""
    rows = of(FULL, optimizers)
    rows = rows[rows["status"].str.startswith("refused")]
    if rows.empty:
        return ""
    row = rows.sort_values("n").iloc[0]
    return f"At n = {row['n']:,} it is {row['status']}."


def separable(optimizers: pd.DataFrame) -> str:
    """Return that CMA-ES with a diagonal matrix is linear too, and what it needs beside LEA-MVD."""
    fits = of(SEPARABLE, slopes(optimizers)).to_dict("records")
    rows = of(SEPARABLE, baselines(optimizers)).to_dict("records")
    if not fits or not rows:
        return ""
    return (
        f"The paper compares with the full matrix alone: with a diagonal one CMA-ES is linear too (slopes "
        f"{fits[0]['time']:.2f} and {fits[0]['memory']:.2f}), at {number(rows[0]['time'])} times LEA-MVD's time and "
        f"{number(rows[0]['memory'])} times its memory (n = {rows[0]['n']:,}, {rows[0]['dtype']})."
    )
