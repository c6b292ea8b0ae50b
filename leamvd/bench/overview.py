"""What the bench's tables say: tables for figures and pages, and the numbers that pages paste."""

import pandas as pd

from leamvd.analysis import claims
from leamvd.analysis.comparison import six_digits
from leamvd.analysis.costs import growth
from leamvd.bench import Tables

LEAMVD, FULL, SEPARABLE = "leamvd", "pycma full", "pycma separable"
"""Methods that are looked at alone, as the tables name them."""

RANDOM = ["second pass: random words", "second pass: normal samples from them"]
"""What drawing takes of a generation."""

SHARDS = {"1e9": 8, "1e10": 64, "1e11": 512}
"""Machines among which CONTRIBUTING.md divides so many variables."""


# ---- the optimizers


def costs(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured on one thread, with `label`: the method and its dtype."""
    rows = optimizers[(optimizers["status"] == "ok") & (optimizers["threads"] == 1)]
    return rows.assign(label=rows["method"] + ", " + rows["dtype"])


def gaps(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return what was tried and has no numbers, and the sentence that says why."""
    rows = optimizers[optimizers["status"] != "ok"]
    return rows[["method", "dtype", "threads", "n", "status"]].rename(columns={"status": "why"}).reset_index(drop=True)


def slopes(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return the slopes of `leamvd.analysis.costs.growth`, those of time and of memory side by side."""
    keys = ["method", "dtype", "sizes", "from n", "to n"]
    slope = growth(optimizers).set_index([*keys, "cost"])["slope"]
    return slope.unstack(sort=False).rename_axis(columns=None).reset_index()


def baselines(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return each method's time and memory at the largest n at which LEA-MVD was measured in the same dtype.

    Beside them stand the time over that of NumPy's normal samples, and both over LEA-MVD's. The fastest comes first.
    """
    both = _over_own(costs(optimizers))
    last = both.loc[both.groupby("label")["n"].idxmax()]
    columns = {
        "method": last["method"],
        "dtype": last["dtype"],
        "n": last["n"],
        "seconds": last["generation_seconds"],
        "MB": last["peak_bytes"] / 1e6,
        "time / normals": last["ratio_to_normal"],
        "time / LEA-MVD's": last["time_over_own"],
        "memory / LEA-MVD's": last["memory_over_own"],
    }
    return pd.DataFrame(columns).sort_values(["time / LEA-MVD's", "method", "dtype"], ignore_index=True)


def _over_own(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows at whose n and dtype LEA-MVD was measured, with time and memory over its own."""
    own = rows.loc[rows["method"] == LEAMVD, ["dtype", "n", "generation_seconds", "peak_bytes"]]
    both = rows.merge(own, on=["dtype", "n"], suffixes=("", "_own"))
    time, memory = (both[column] / both[f"{column}_own"] for column in ("generation_seconds", "peak_bytes"))
    return both.assign(time_over_own=time, memory_over_own=memory)


def quoted(optimizers: pd.DataFrame) -> dict[str, float | str]:
    """Return what the first page pastes of `baselines`: n and costs of pycma's methods and of the fastest other one."""
    rows = baselines(optimizers).set_index("method")
    names = {"sep-cma-es": SEPARABLE, "cma-es": FULL, "other": rows.index.drop([LEAMVD, FULL, SEPARABLE])[0]}
    found: dict[str, float | str] = {"other": names["other"]}
    for short, row in zip(names, rows.loc[list(names.values())].to_dict("records"), strict=True):
        found[f"{short}-n"] = row["n"]
        found |= {f"{short}-{cost}": six_digits(row[f"{cost} / LEA-MVD's"]) for cost in ("time", "memory")}
    return found


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
    rows = rows.assign(memory=rows["peak_bytes"] / rows["population_bytes"]).assign(
        **times.set_axis(["time", "low", "high"], axis=1)
    )
    last = rows["label"].map(rows.groupby("label")["time"].last())
    return rows.assign(last=last).sort_values(["last", "label", "n"])


def full_matrix(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return n and bytes of CMA-ES with a full matrix at its largest n and, with n^2, where it refuses; or no rows."""
    rows = optimizers[optimizers["method"] == FULL].sort_values("n")
    done, refused = rows[rows["status"] == "ok"].tail(1), rows[rows["status"].str.startswith("refused")].head(1)
    if done.empty or refused.empty:
        return pd.DataFrame({"n": [], "bytes": []})
    n = pd.concat([done["n"], refused["n"]], ignore_index=True)
    return pd.DataFrame({"n": n, "bytes": done["peak_bytes"].item() * (n / n[0]) ** 2})


# ---- the rest


def parts(table: pd.DataFrame) -> pd.DataFrame:
    """Return what each part of a generation takes of it, in percent: a column for each n and dtype.

    Calls are what is left after the two passes: the interpreter, the ranking, the power method on 4 x 4 numbers.
    """
    names = [f"n = {n:,}, {dtype}" for n, dtype in zip(table["n"], table["dtype"], strict=True)]
    seconds = table.set_index(pd.Index(names, dtype=object))
    words, normals = seconds["words_seconds"], seconds["normals_seconds"]
    first, second, perturbation = (seconds[f"{name}_seconds"] for name in ("first_pass", "second_pass", "perturbation"))
    found = {
        "first pass": first,
        RANDOM[0]: words,
        RANDOM[1]: normals - words,
        "second pass: perturbation": perturbation,
        "second pass: the rest": second - normals - perturbation,
        "calls": seconds["generation_seconds"] - first - second,
    }
    return 100 * pd.DataFrame(found).div(seconds["generation_seconds"], axis=0).T


def shares(split: pd.DataFrame) -> pd.DataFrame:
    """Return `split` with the percentage of a generation's seconds that is the optimizer's."""
    total = split["optimizer_seconds"] + split["objective_seconds"]
    return split.assign(percent=100 * split["optimizer_seconds"] / total)


def rates(objectives: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured of the objective: where it ran, its `GFLOP/s`, and how near it is to its products."""
    rows = objectives[objectives["status"] == "ok"].reset_index(drop=True)
    rows = rows.rename(columns={"n_visible": "visible", "n_hidden": "hidden"})
    rows["GFLOP/s"] = rows["flop"] / rows["seconds"] / 1e9
    rows["% of the products' rate"] = 100 * rows["fraction_of_products"]
    where = ["visible", "hidden", "backend", "precision", "device", "threads"]
    return rows[[*where, "seconds", "GFLOP/s", "% of the products' rate"]]


def epochs(training: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds of each trainer's epoch on most images, and of its five matrix products alone."""
    rows: pd.DataFrame = training[training["n_images"] == training["n_images"].max()]
    columns = {"seconds": "seconds of an epoch", "product_seconds": "seconds of its products"}
    return rows[["trainer", "threads", *columns]].rename(columns=columns)


def waiting(table: pd.DataFrame) -> pd.DataFrame:
    """Return the seconds of each command, a column for each version of the code that was measured."""
    ends = table.rename(columns={"table_seconds": "first table", "seconds": "end"})
    seconds = ends.pivot_table(index="what", columns="code", values=["first table", "end"], sort=False)
    return seconds.set_axis(seconds.columns.map(", ".join), axis=1)


def machine(tables: Tables) -> pd.DataFrame:
    """Return what the numbers were measured on, a row for each property."""
    found = tables.machine
    rows = {
        "date": found["date"],
        "processor": f"{found['processor']}, {found['cores']} cores, {found['memory_bytes'] / 1e9:.1f} GB",
        "system": f"{found['system']}, Python {found['python']}",
        "versions": ", ".join(f"{name} {version}" for name, version in sorted(found["versions"].items())),
        "commit": found["commit"],
        "run": f"{found['profile']} profile, {found['seconds'] / 60:.1f} minutes, load {found['load']} before",
        "made by": f"leamvd bench --profile {found['profile']}",
        "not installed": ", ".join(found["left_out"]) or "–",
    }
    return pd.DataFrame({"measured on": rows})


# ---- what pages paste


def tables(found: Tables) -> dict[str, pd.DataFrame]:
    """Return the tables behind the figures, and what takes the time of a generation, by name."""
    return {
        "bench-baselines": baselines(found.optimizers),
        "bench-slopes": slopes(found.optimizers),
        "bench-gaps": gaps(found.optimizers),
        "bench-parts": parts(found.parts),
        "bench-objectives": rates(found.objectives),
        "bench-training": epochs(found.training),
        "bench-waiting": waiting(found.waiting),
    }


def numbers(found: Tables) -> dict[str, float | str]:
    """Return what pages paste, by name, of columns the least and the most; NaN where this run did not measure it."""
    answers: dict[str, float | str] = {}
    evidence = claims.evidence({"linear_cost": found.optimizers})
    for claim, answer in claims.answers(evidence).loc[["C1", "C2"], "conclusion"].items():
        name, effects = str(claim).lower(), evidence.loc[evidence["claim"] == claim, "effect"]
        answers |= {name: answer, f"{name}-least": effects.min(), f"{name}-most": effects.max()}
    objective = rates(found.objectives).query("backend == 'numpy'")["% of the products' rate"]
    drawn = parts(found.parts).loc[RANDOM].sum(min_count=1)
    ranges = {"parts-random": drawn, "split": shares(found.split)["percent"], "objective": objective}
    for name, value in (_others(found.optimizers) | _scale(found) | ranges).items():
        ends = {f"{name}-least": value.min(), f"{name}-most": value.max()} if isinstance(value, pd.Series) else None
        answers |= ends or {name: value}
    return {name: value if isinstance(value, str) else six_digits(value) for name, value in answers.items()}


def _others(optimizers: pd.DataFrame) -> dict[str, float | pd.Series]:
    """Return how the other methods compare with LEA-MVD: slopes of time, costs over its own at the ends of `ratios`.

    "full-n" is the largest n that CMA-ES with a full matrix was measured at; it is not among the others.
    """
    slopes = growth(optimizers).query("cost == 'time' and method != @FULL")
    own = slopes["method"] == LEAMVD
    others = _over_own(ratios(optimizers)).query("method != @LEAMVD")
    small, large = others[others["n"] == others["n"].min()], others[others["n"] == others["n"].max()]
    return {
        "full-n": costs(optimizers).query("method == @FULL")["n"].max(),
        "own-slope": slopes.loc[own, "slope"],
        "others-slope": slopes.loc[~own, "slope"],
        "others-n": others["n"].max(),
        "others-time": large["time_over_own"],
        "others-memory": large["memory_over_own"],
        "others-small-n": others["n"].min(),
        "others-small-least": small["time_over_own"].min(),
    }


def _scale(found: Tables) -> dict[str, float]:
    """Return what one variable costs in float32, on one thread at the largest n.

    In nanoseconds and in bytes; seconds per generation of the `SHARDS`; and how many operations for each variable and
    individual take an objective as long as the optimizer.
    """
    rows = costs(found.optimizers).query("method == @LEAMVD and dtype == 'float32'")
    last = rows[rows["n"] == rows["n"].max()]
    seconds = (last["generation_seconds"] / last["n"]).mean()
    rate = 1e9 * rates(found.objectives).query("threads == 1 and precision == 'float32'")["GFLOP/s"].max()
    values = {"n": last["n"].mean(), "nanoseconds": 1e9 * seconds, "bytes": (last["peak_bytes"] / last["n"]).mean()}
    values |= {"operations": seconds * rate / last["population_size"].mean()}
    values |= {f"seconds-{n}": seconds * float(n) / shards for n, shards in SHARDS.items()}
    return {f"scale-{name}": value for name, value in values.items()}
