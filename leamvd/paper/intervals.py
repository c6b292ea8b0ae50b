"""Errors with 95 % intervals: over a run, at its end, and of two runs, paired over the seeds that they share."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from leamvd.paper.comparison import MEASURES, final, number, scaled, six_digits

CELL = ["inputs", "layer", "method"]
"""What tells one group of seeds from another in records."""


def interval(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return the mean of values, shape (n,), between the ends of its 95 % interval (Student's t), NaN where too few."""
    n = len(values)
    if n < 2:
        return np.nan, float(values[0]) if n else np.nan, np.nan
    mean = float(values.mean())
    half = float(stats.t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))
    return mean - half, mean, mean + half


def welch(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float, float]:
    """Return mean(y) - mean(x) of two samples between the ends of its 95 % interval (Welch's t)."""
    low, high = stats.ttest_ind(y, x, equal_var=False).confidence_interval(0.95)
    return float(low), float(y.mean() - x.mean()), float(high)


def bands(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the mean of a measure over runs, with its 95 % interval, by inputs, layer, method and iteration.

    Parameters
    ----------
    table : DataFrame
        Records.
    measure : str
        One of their columns; errors are per 10,000 images.

    Returns
    -------
    DataFrame
        Columns inputs, layer, method, iteration, passes, seconds (means), and mean, low and high; where there is one
        run both ends are its value.
    """
    groups = table.assign(value=scaled(table, measure)).groupby([*CELL, "iteration"], sort=False)
    n, mean, std = groups["value"].count(), groups["value"].mean(), groups["value"].std()
    half = std.mul(stats.t.ppf(0.975, n - 1)).div(np.sqrt(n)).fillna(0.0)
    columns = {name: groups[name].mean() for name in ("passes", "seconds")}
    return pd.DataFrame(columns | {"mean": mean, "low": mean - half, "high": mean + half}).reset_index()


def errors(table: pd.DataFrame, measures: Sequence[str] = tuple(MEASURES)) -> pd.DataFrame:
    """Return measures at the last iteration, errors per 10,000 images: means over seeds and their 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        Records.
    measures : sequence of str
        Which of their columns.

    Returns
    -------
    DataFrame
        A row for each measure, kind of inputs, layer and method: measure, inputs, layer, method, runs, mean, low, high.
    """
    last, rows = final(table), []
    for measure in measures:
        for cell, ends in scaled(last, measure).groupby([last[name] for name in CELL], sort=False):
            low, mean, high = interval(ends.to_numpy())
            rows.append((measure, *cell, len(ends), mean, low, high))
    return pd.DataFrame(rows, columns=["measure", *CELL, "runs", "mean", "low", "high"])


def ratios(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Compare the final errors of two runs, of as many images each.

    Parameters
    ----------
    a, b : DataFrame
        Records.

    Returns
    -------
    DataFrame
        A row for each measure, kind of inputs, layer and method that both have: `paired`, the number of seeds that they
        share; the geometric mean of `b`'s errors over `a`'s, `ratio`, and its 95 % interval, `low` and `high`. That is
        Student's t on logarithms: of the pairs where two seeds or more are shared, else Welch's of two samples, NaN
        where there are too few.
    """
    ends = [
        table.set_index([*CELL, "seed"])[list(MEASURES)].div(table.set_index([*CELL, "seed"])["n_images"], axis=0)
        for table in map(final, (a, b))
    ]
    rows = []
    for measure in MEASURES:
        ours, theirs = (np.log(end[measure]).groupby(level=CELL, sort=False) for end in ends)
        for cell, first in ours:
            if cell not in theirs.groups:
                continue
            x, y = (values.droplevel(CELL) for values in (first, theirs.get_group(cell)))
            rows.append((measure, *cell, len(x.index.intersection(y.index)), *np.exp(_difference(x, y))))
    return pd.DataFrame(rows, columns=["measure", *CELL, "paired", "low", "ratio", "high"])


def _difference(x: pd.Series, y: pd.Series) -> tuple[float, float, float]:
    """Return the mean of y - x between the ends of its interval; both are indexed by seed."""
    pairs = (y - x).dropna().to_numpy()
    if len(pairs) > 1 or min(len(x), len(y)) < 2:
        return interval(pairs if len(pairs) else np.array([y.mean() - x.mean()]))
    return welch(x.to_numpy(), y.to_numpy())


def text(mean: float, low: float, high: float, show: Callable[[float], str] = number) -> str:
    """Return a mean with its interval for reading; the mean alone where there is no interval."""
    return show(mean) if np.isnan(low) else f"{show(mean)} [{show(low)}, {show(high)}]"


def side_by_side(tables: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """Return `errors` of several runs for reading: a row for each cell, a column of texts for each run.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Of `errors`, by what the run is called.
    measure : str
        Which of the errors.
    """
    columns = {}
    for name, table in tables.items():
        own = table[table["measure"] == measure].set_index(CELL)
        columns[name] = own[["mean", "low", "high"]].apply(lambda row: text(*row), axis=1)
    order = dict.fromkeys(cell for column in columns.values() for cell in column.index)
    return pd.DataFrame(columns).reindex(pd.MultiIndex.from_tuples(list(order), names=CELL)).fillna("–")


def beside(table: pd.DataFrame) -> dict[str, float]:
    """Return errors over LEA-MVD's, on shared inputs, once as many candidates have been evaluated as LEA-MVD's.

    Returns
    -------
    dict of str to float
        "cd-error-3" is the geometric mean over runs in RBM 3, likewise other methods and RBMs; "evaluations" how many
        LEA-MVD has made, and "errors-interval" how far the widest of all 95 % intervals reaches, in percent.
    """
    shared = table[table["inputs"] == "shared"]
    evaluations = shared.loc[shared["method"] == "lea-mvd", "evaluations"].max()
    last = final(shared[shared["evaluations"] <= evaluations])
    logs = last.pivot_table("mean_field", ["layer", "seed"], "method").apply(np.log)
    found, widest = {"evaluations": float(evaluations)}, 0.0
    for method in logs.columns:
        for layer, log in logs[method].sub(logs["lea-mvd"]).groupby("layer"):
            low, ratio, high = np.exp(interval(log.to_numpy()))
            found[f"{method}-error-{layer}"] = six_digits(ratio)
            widest = max(widest, ratio / low - 1, high / ratio - 1)
    return found | {"errors-interval": six_digits(100 * widest)}
