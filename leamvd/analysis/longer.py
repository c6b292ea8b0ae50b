"""Searches that go on where the paper's end: their means, who has overtaken LEA-MVD, and which candidate is best."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from leamvd.analysis.comparison import last, quote
from leamvd.analysis.statistics import LEVEL, compared, summarize

_SEARCH = ["problem", "method", "seed"]


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the best values over seeds, by problem, method and mark, with its 95 % interval."""
    return summarize(table.dropna(), "best", ["problem", "method", "mark"], geometric=True).drop(columns="runs")


def against_lea_mvd(table: pd.DataFrame, reading: str = "lea-mvd") -> pd.DataFrame:
    """Compare what each method has reached at each problem's last mark with what LEA-MVD has, paired over seeds.

    Geometric means of the `best` values, those of LEA-MVD as `own`, and of their `ratio`. Below 1 LEA-MVD has been
    overtaken: of that is `p`. (With ten pairs no two-sided test could be significant among so many.)
    """
    ends = last(table, "mark")
    pairs = [(method, reading) for method in ends["method"].unique() if method != reading]
    found = compared(ends, "best", pairs, by=["problem"], upper=1)
    best = summarize(ends, "best", ["problem", "method"], geometric=True).set_index(["problem", "method"])["mean"]
    for name, method in (("best", "method"), ("own", "baseline")):
        found = found.join(best.rename(name), on=["problem", method])
    return found[["problem", "method", "runs", "best", "own", "ratio", "low", "high", "p"]]


def scores(table: pd.DataFrame) -> pd.Series:
    """Return how far methods come, over problems and marks with equal weights, the best one first.

    A score is the ratio of the best value to its geometric mean over all methods, in the geometric mean over problems,
    marks and seeds: below 1 a method is better than most.
    """
    logs = np.log(table["best"]).groupby([table[name] for name in ("method", "problem", "mark")]).mean().unstack(0)
    found: pd.Series = np.exp(logs.sub(logs.mean(axis=1), axis=0).mean()).sort_values().rename("score")
    return found


def at_equal_time(table: pd.DataFrame, seconds: Mapping[str, float], method: str) -> pd.DataFrame:
    """Return the best values of each search at the time that a method takes to a problem's last mark.

    `seconds` are those of an evaluation, by method; what has none is left out. Between two marks a value is
    interpolated, by the logarithms of values and evaluations; before the first one there is none. A search that is
    over by then has its last value.
    """
    timed = table.dropna(subset="best").assign(time=table["evaluations"] * table["method"].map(seconds))
    timed["end"] = timed["problem"].map(timed[timed["method"] == method].groupby("problem")["time"].max())
    found = []
    for search, run in timed.dropna(subset="time").groupby(_SEARCH, sort=False):  # rows are in the order of marks
        best = np.interp(np.log(run["end"].iloc[0]), np.log(run["time"]), np.log(run["best"]), left=np.nan)
        found.append((*search, run["mark"].max(), np.exp(best)))
    return pd.DataFrame(found, columns=[*_SEARCH, "mark", "best"]).dropna(subset="best")


def quoted(found: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `against_lea_mvd`: "longer-sphere-1000-cma-es-ratio", "-best", "-own" and so on.

    "longer-cma-es-ahead" is on how many of all "longer-problems" CMA-ES has overtaken LEA-MVD, p being below `LEVEL`,
    and "longer-runs" how many runs each method has.
    """
    words = found["problem"].str.replace(", n = ", "-").str.replace(",", "")
    numbers = quote("longer", found.set_index([words, "method"])[["best", "own", "ratio"]])
    ahead = (found["p"] < LEVEL).groupby(found["method"]).sum()
    counts = {"longer-problems": found["problem"].nunique(), "longer-runs": int(found["runs"].max())}
    return numbers | quote("longer", ahead.to_frame("ahead")) | counts
