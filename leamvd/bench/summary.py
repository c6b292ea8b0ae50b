"""What the bench's tables say: tables for figures and pages, and the numbers that pages paste."""

import numpy as np
import pandas as pd

from leamvd.bench import Tables
from leamvd.paper import claims, rules
from leamvd.paper.comparison import six_digits

LEAMVD, FULL = "leamvd", "pycma full"
"""Methods that are looked at alone, as the tables name them."""

SHARDS = {"1e9": 8, "1e10": 64, "1e11": 512}
"""Machines among which so many variables are divided on the book's page about them."""


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
    """Return the slopes of `leamvd.paper.rules.growth`, those of time and of memory side by side."""
    keys = ["method", "dtype", "sizes", "from n", "to n"]
    slope = rules.growth(optimizers).set_index([*keys, "cost"])["slope"]
    return slope.unstack(sort=False).rename_axis(columns=None).reset_index()


def baselines(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return each method's time and memory at the largest n at which LEA-MVD was measured in the same dtype.

    Returns
    -------
    DataFrame
        Columns method, dtype, n; seconds and megabytes; the time over that of NumPy's normal samples; and time and
        memory over LEA-MVD's. The fastest comes first.
    """
    rows = costs(optimizers)
    own = rows.loc[rows["method"] == LEAMVD, ["dtype", "n", "generation_seconds", "peak_bytes"]]
    both = rows.merge(own, on=["dtype", "n"], suffixes=("", "_own"))
    last = both.loc[both.groupby("label")["n"].idxmax()]
    columns = {
        "method": last["method"],
        "dtype": last["dtype"],
        "n": last["n"],
        "seconds": last["generation_seconds"],
        "MB": last["peak_bytes"] / 1e6,
        "time / normals": last["ratio_to_normal"],
        "time / LEA-MVD's": last["generation_seconds"] / last["generation_seconds_own"],
        "memory / LEA-MVD's": last["peak_bytes"] / last["peak_bytes_own"],
    }
    return pd.DataFrame(columns).sort_values(["time / LEA-MVD's", "method", "dtype"], ignore_index=True)


def ratios(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return `costs` at the n that most methods share, in order of `ratio_to_normal` at the largest."""
    rows = costs(optimizers)
    counts = rows.groupby("n")["label"].nunique()
    rows = rows[rows["n"].map(counts) > counts.max() / 2].sort_values("n")
    last = rows["label"].map(rows.groupby("label")["ratio_to_normal"].last())
    return rows.assign(last=last).sort_values(["last", "label", "n"]).drop(columns="last")


def full_matrix(optimizers: pd.DataFrame) -> pd.DataFrame:
    """Return n and bytes of CMA-ES with a full matrix where it stops: at its largest n, and with n^2 where it refuses.

    Empty where it was not run, or not refused.
    """
    rows = optimizers[optimizers["method"] == FULL].sort_values("n")
    done, refused = rows[rows["status"] == "ok"].tail(1), rows[rows["status"].str.startswith("refused")].head(1)
    if done.empty or refused.empty:
        return pd.DataFrame({"n": [], "bytes": []})
    n = pd.concat([done["n"], refused["n"]], ignore_index=True)
    return pd.DataFrame({"n": n, "bytes": done["peak_bytes"].item() * (n / n[0]) ** 2})


# ---- the rest


def parts(table: pd.DataFrame) -> pd.DataFrame:
    """Return what part of a generation each of its parts takes, in percent: a row for each n and dtype.

    Calls are what is left beside the two passes: the interpreter, the ranking, the power method on 4 x 4 numbers.
    """
    names = [f"n = {n:,}, {dtype}" for n, dtype in zip(table["n"], table["dtype"], strict=True)]
    seconds = table.set_index(pd.Index(names, name="generation", dtype=object))
    words, normals = seconds["words_seconds"], seconds["normals_seconds"]
    first, second, perturbation = (seconds[f"{name}_seconds"] for name in ("first_pass", "second_pass", "perturbation"))
    found = {
        "first pass": first,
        "random words": words,
        "normals from them": normals - words,
        "perturbation": perturbation,
        "rest of the second pass": second - normals - perturbation,
        "calls": seconds["generation_seconds"] - first - second,
    }
    return 100 * pd.DataFrame(found).div(seconds["generation_seconds"], axis=0)


def shares(split: pd.DataFrame) -> pd.DataFrame:
    """Return `split` with a generation's total seconds, and the percentage of them that is the optimizer's."""
    total = split["optimizer_seconds"] + split["objective_seconds"]
    return split.assign(total_seconds=total, percent=100 * split["optimizer_seconds"] / total)


def rates(objectives: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured of the objective: `label`, how and where it ran, and `rate`, operations a second."""
    rows = objectives[objectives["status"] == "ok"]
    place = _threads(rows["threads"]).where(rows["device"] == "cpu", rows["device"])
    label = rows["backend"] + " " + rows["precision"] + ", " + place
    return rows.assign(label=label, rate=rows["flop"] / rows["seconds"])


def epochs(training: pd.DataFrame) -> pd.DataFrame:
    """Return what was measured of an epoch, with `place`: the number of threads, in words."""
    return training.assign(place=_threads(training["threads"]))


def _threads(counts: pd.Series) -> pd.Series:
    return counts.map(lambda count: f"{count} thread{'s'[: count > 1]}")


def accuracies(probe: pd.DataFrame) -> pd.DataFrame:
    """Return the probe's test accuracies in percent, a row for each seed, a column for each trainer."""
    return 100 * probe.pivot_table(index="seed", columns="trainer", values="test_accuracy")


def machine(tables: Tables) -> pd.DataFrame:
    """Return what the numbers were measured on, a row for each property."""
    found = tables.machine
    versions = ", ".join(f"{name} {version}" for name, version in sorted(found["versions"].items()))
    rows = {
        "date": found["date"],
        "processor": f"{found['processor']}, {found['cores']} cores, {found['memory_bytes'] / 1e9:.1f} GB",
        "system": f"{found['system']}, Python {found['python']}",
        "versions": versions,
        "commit": found["commit"],
        "run": f"{found['profile']} profile, {found['seconds'] / 60:.1f} minutes, load {found['load']} before",
        "made by": f"leamvd bench --profile {found['profile']}",
        "not installed": ", ".join(found["left_out"]) or "–",
    }
    return pd.DataFrame({"measured on": rows})


# ---- numbers for pages


def numbers(tables: Tables) -> dict[str, float | str]:
    """Return what pages paste, by name; NaN where this run did not measure it."""
    answers: dict[str, float | str] = {}
    evidence = claims.evidence({"linear_cost": tables.optimizers})
    for claim, answer in claims.answers(evidence).loc[["C1", "C2"], "conclusion"].items():
        name, slopes = str(claim).lower(), evidence.loc[evidence["claim"] == claim, "effect"]
        answers |= {name: answer}
        answers |= {f"{name}-least": six_digits(slopes.min()), f"{name}-most": six_digits(slopes.max())}
    own = rates(tables.objectives).query("backend == 'numpy'")["fraction_of_products"]
    drawn = parts(tables.parts)[["random words", "normals from them"]].sum(axis=1)
    optimizer, scores = shares(tables.split)["percent"], accuracies(tables.probe).mean()
    found = {"parts-random-least": drawn.min(), "parts-random-most": drawn.max()}
    found |= {"split-least": optimizer.min(), "split-most": optimizer.max()}
    found |= {"objective-least": 100 * own.min(), "objective-most": 100 * own.max()}
    found |= {f"probe-{trainer}": scores.get(trainer) for trainer in (LEAMVD, "scikit-learn")}
    measured = {name: six_digits(np.nan if value is None else value) for name, value in found.items()}
    return answers | measured | _scale(tables)


def _scale(tables: Tables) -> dict[str, float]:
    """Return what the page on many machines takes: costs in float32 on one thread at the largest n, per variable.

    In nanoseconds and in bytes; seconds per generation of the `SHARDS`; and how many operations for each variable and
    individual take an objective as long as the optimizer.
    """
    rows = costs(tables.optimizers).query("method == @LEAMVD and dtype == 'float32'")
    last = rows[rows["n"] == rows["n"].max()]
    seconds = (last["generation_seconds"] / last["n"]).mean()
    rate = rates(tables.objectives).query("threads == 1 and precision == 'float32'")["rate"].max()
    values = {"n": last["n"].mean(), "nanoseconds": 1e9 * seconds, "bytes": (last["peak_bytes"] / last["n"]).mean()}
    values |= {"operations": seconds * rate / last["population_size"].mean()}
    values |= {f"seconds-{n}": seconds * float(n) / shards for n, shards in SHARDS.items()}
    return {f"scale-{name}": six_digits(value) for name, value in values.items()}
