"""Searches that go on where the paper's end: their means, and who has overtaken LEA-MVD."""

import pandas as pd

from leamvd.analysis.comparison import last, quote
from leamvd.analysis.statistics import LEVEL, compared, summarize


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the best values over seeds, with its 95 % interval.

    Returns
    -------
    DataFrame
        A row for each problem, method and mark: `mean`, `low` and `high`.
    """
    found = summarize(table.dropna(), "best", ["problem", "method", "mark"], geometric=True)
    return found.drop(columns="runs")


def against_lea_mvd(table: pd.DataFrame) -> pd.DataFrame:
    """Compare what each method has reached at each problem's last mark with what LEA-MVD has, paired over seeds.

    Returns
    -------
    DataFrame
        A row for each problem and method except LEA-MVD: `runs`; geometric means of the `best` values, those of LEA-MVD
        as `own`, and of their `ratio`, with its 95 % interval, `low` and `high`. Below 1 LEA-MVD has been overtaken: of
        that is `p`. (With ten pairs no two-sided test could be significant among so many.)
    """
    ends = last(table, "mark")
    pairs = [(method, "lea-mvd") for method in ends["method"].unique() if method != "lea-mvd"]
    found = compared(ends, "best", pairs, by=["problem"], upper=1)
    best = summarize(ends, "best", ["problem", "method"], geometric=True).rename(columns={"mean": "best"})
    best = best[["problem", "method", "best"]]
    own = best.set_axis(["problem", "baseline", "own"], axis=1)
    rows = found.merge(best, on=["problem", "method"]).merge(own, on=["problem", "baseline"])
    return rows[["problem", "method", "runs", "best", "own", "ratio", "low", "high", "p"]]


def quoted(found: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `against_lea_mvd`.

    Returns
    -------
    dict of str to float or str
        "longer-sphere-1000-cma-es-ratio" is of the sphere in 1,000 variables, "-best" and "-own" what it compares;
        likewise other functions, "longer-rbm-1", and methods, such as "lea-mvd-reset-off". "longer-cma-es-ahead" is on
        how many problems CMA-ES has overtaken LEA-MVD, p being below `LEVEL`, likewise other methods, "longer-problems"
        how many problems there are, and "longer-runs" how many runs of each method.
    """
    words = found["problem"].str.replace(", n = ", "-").str.replace(",", "")
    numbers = quote("longer", found.set_index([words, "method"])[["best", "own", "ratio"]])
    ahead = (found["p"] < LEVEL).groupby(found["method"]).sum()
    counts = {"longer-problems": found["problem"].nunique(), "longer-runs": int(found["runs"].max())}
    return numbers | quote("longer", ahead.to_frame("ahead")) | counts
