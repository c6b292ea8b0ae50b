"""Which readings matter: the effect of each alternative on the last error, and what C_ani does in whole runs."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from leamvd.analysis.comparison import last, quote
from leamvd.analysis.statistics import LEVEL, compared, summarize
from leamvd.experiments.methods import Method
from leamvd.studies.alternatives import default, pairs

TOGETHER = "functions"
"""The problem that stands for all functions: the geometric mean of what a seed reaches on each."""

QUOTED = (
    *("shift=printed", "path=off", "descent=off", "path=off+descent=off", "descent=free"),
    *("perturbation=column", "exponent=0", "exponent=1", "exponent=2", "exponent=3", "printed", "x0-excluded"),
    *("n_elite=1", "n_elite=12", "population_size=12+n_gen=125", "sigma0=0.03", "n_gen=30", "elites=reevaluate"),
    *("x0=none", "x0=none+limits=clip", "n_gen=44+n_elite=1", "n_gen=83+n_elite=12"),
)
"""Alternatives that prose speaks of."""

PROBLEMS = {TOGETHER: "", "RBM 1": "1", "RBM 2": "2", "RBM 3": "3"}
PROBLEMS |= {f"{name}, n = 100": name for name in ("rosenbrock", "rastrigin")}
"""Problems that prose speaks of, and their words."""


# ---- effects


def outcomes(table: pd.DataFrame, measure: str = "mean_field") -> pd.DataFrame:
    """Return a measure at a study's last iterations, on its first kind of inputs; a problem is a layer, "RBM 1"."""
    ends = last(table[table["inputs"] == table["inputs"].iloc[0]])
    return ends[["method", "seed"]].assign(problem="RBM " + ends["layer"].astype(str), error=ends[measure])


def function_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Return what runs on functions reached, likewise: each function and number of variables, and `TOGETHER`."""
    problem = table["function"] + ", n = " + table["n_var"].map("{:,}".format)
    each = table[["method", "seed"]].assign(problem=problem, error=table["best"])
    means = summarize(each, "error", ["method", "seed"], geometric=True).rename(columns={"mean": "error"})
    both: pd.DataFrame = pd.concat([each, means[["method", "seed", "error"]].assign(problem=TOGETHER)])
    return both.reset_index(drop=True)


def effects(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Compare each alternative with its default, on each problem, paired over seeds, see `compared`.

    `same` says whether all errors are equal to the last bit, and `different` whether p is below `LEVEL`.
    """
    there = pd.DataFrame(pairs(outcomes["method"].unique()), columns=["item", "method"])
    found = compared(outcomes, "error", [(method, default(method)) for method in there["method"]], by=["problem"])
    rows = there.merge(found, on="method")
    rows = rows.assign(same=rows["equal"] == rows["runs"], different=rows["p"] < LEVEL)
    return rows[["item", "method", "problem", "runs", "ratio", "low", "high", "same", "p", "different"]]


def against_cd(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Compare LEA-MVD and each alternative with contrastive divergence; the lowest ratio of a problem comes first."""
    ours = outcomes.loc[outcomes["method"].str.startswith("lea-mvd"), "method"].unique()
    found = compared(outcomes, "error", [(method, "cd") for method in ours], by=["problem"])
    found = found.sort_values(["problem", "ratio"], kind="stable", ignore_index=True)
    return found[["problem", "method", "runs", "ratio", "low", "high"]]


def counts(effects: pd.DataFrame) -> pd.DataFrame:
    """Return for each problem how many alternatives changed nothing, lowered or raised the error, or show no effect."""
    kind = np.select(
        [effects["same"], ~effects["different"], effects["ratio"] < 1], ["same bits", "not shown", "lower"], "higher"
    )
    table = pd.crosstab(effects["problem"], kind)
    order = list(effects["problem"].unique())
    columns = ["same bits", "not shown", "lower", "higher"]
    return table.reindex(index=order, columns=columns, fill_value=0).rename_axis(columns=None)


def idle(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the alternatives that changed no bit on any problem, with the number of problems."""
    groups = effects.groupby(["item", "method"], sort=False)["same"]
    table = groups.agg(["all", "size"])
    found: pd.DataFrame = table[table["all"]]["size"].rename("problems").reset_index()
    return found


def sensitivity(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios of settings that LEA-MVD and CMA-ES both have, whatever their generations, on layers.

    A row for each setting and layer, a column for each of the two: how much its error depends on them (C12).
    """
    layers = effects[effects["problem"].str.startswith("RBM")]
    parsed = [Method.parse(method).without("n_gen") for method in layers["method"]]
    named = layers.assign(trainer=[own.trainer for own in parsed], setting=[own.own for own in parsed])
    rows = named[named["trainer"].isin(["lea-mvd", "cma-es"])]
    return rows.pivot_table("ratio", ["setting", "problem"], "trainer", aggfunc="first").dropna()


def quoted(effects: pd.DataFrame, against_cd: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `effects` and `against_cd`.

    "readings-path-off-ratio" is of the functions, "readings-path-off-3-ratio" of RBM 3, likewise other `PROBLEMS`;
    "readings-lowest-3" is the lowest ratio to contrastive divergence in RBM 3, and "-method" what reaches it. Counted
    are the tests, the pairs of a test, and the settings that are compared with contrastive divergence.
    """
    own, best = (
        table.assign(own=table["method"].str.removeprefix("lea-mvd:"), word=table["problem"].map(PROBLEMS))
        for table in (effects, against_cd.groupby("problem").head(1))
    )
    own = own[own["own"].isin(QUOTED) & own["word"].notna()].set_index(["own", "word"])
    best = best.assign(method=best["own"])[best["word"].notna()].set_index("word")
    found = quote("readings", own[["ratio", "low", "high", "p"]])
    found |= quote("readings-lowest", best[["ratio", "method", "low", "high"]].rename(columns={"ratio": ""}))
    counts = {"tests": effects["p"].count(), "runs": effects["runs"].max(), "settings": against_cd["method"].nunique()}
    return found | {f"readings-{name}": int(count) for name, count in counts.items()}


def drawn(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects that one figure holds: those on layers and on all functions together."""
    chosen: pd.DataFrame = effects[effects["problem"].str.startswith("RBM") | (effects["problem"] == TOGETHER)]
    return chosen


def direction_means(directions: pd.DataFrame) -> pd.DataFrame:
    """Return what C_ani does in whole runs: means over runs of each problem, and how many there are."""
    means = directions.drop(columns="seed").groupby("problem", sort=False).mean()
    means.insert(0, "runs", directions.groupby("problem", sort=False).size())
    return means


# ---- other data (items E3, E4, E6, E7, E11)


def on_data(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare LEA-MVD with contrastive divergence on several kinds of data, by name, paired over seeds.

    `cd` and `lea-mvd` are geometric means of the mean-field errors' ratios to the constant image's, by which errors on
    different data can be compared.
    """
    firsts = {data: table[table["inputs"] == table["inputs"].iloc[0]] for data, table in tables.items()}
    ends, by = pd.concat([last(table).assign(data=data) for data, table in firsts.items()]), ["data", "layer"]
    found = compared(ends, "mean_field_ratio", [("lea-mvd", "cd")], by=by)
    means = summarize(ends, "mean_field_ratio", [*by, "method"], geometric=True)
    wide = means.pivot(index=by, columns="method", values="mean").reindex(columns=["cd", "lea-mvd"])
    rows = found.join(wide, on=by)
    return rows[[*by, "runs", "cd", "lea-mvd", "ratio", "low", "high", "p"]]


def quoted_data(found: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `on_data`: "data-bits-3-ratio" is of RBM 3 where bits are handed on, and so on.

    In "data-above" of "data-rows" LEA-MVD's error is above that of contrastive divergence, p being below `LEVEL`.
    """
    above = (found["ratio"] > 1) & (found["p"] < LEVEL)
    numbers = quote("data", found.set_index(["data", "layer"])[["cd", "lea-mvd", "ratio", "low", "high"]])
    return numbers | {"data-rows": len(found), "data-above": int(above.sum())}
