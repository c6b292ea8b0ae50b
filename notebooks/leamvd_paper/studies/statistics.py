"""The statistics of all tables: runs summarized with an interval, and two groups of runs compared.

Intervals are Student's t or Welch's t, of 95 %. Ratios are compared by their logarithms. p is of
Wilcoxon's signed-rank test where runs are paired by their seeds, else of Mann and Whitney's.
"Between" two bounds is two one-sided tests, and counts the larger p: it is met where an effect is
shown to be small, not where nothing could be shown.

An effect also has the estimate of Hodges and Lehmann with the interval that belongs to its test
(Hollander, Wolfe and Chicken 2014, sections 3.2, 3.3, 4.2 and 4.3), and its standard error, from
which the test's power follows.
"""

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

LEVEL = 0.05  # of significance, for all tests of one table together


class Effect(NamedTuple):
    """An effect with its 95 % interval, the bounds that are asked about, and the p-value of the
    answer yes.
    """

    effect: float
    low: float
    high: float
    lower: float  # what the effect is to be above; -inf for no bound
    upper: float  # what it is to be below; inf for no bound
    unit: str  # "ratio", or that of a difference
    runs: int
    test: str
    p: float
    error: float = np.nan  # standard error of the effect, of a ratio's logarithm
    freedom: float = np.nan  # degrees of freedom of the error
    rank: float = np.nan  # estimate of Hodges and Lehmann
    rank_low: float = np.nan
    rank_high: float = np.nan


class Interval(NamedTuple):
    """A mean, or those of groups, and the ends of its 95 % interval."""

    mean: Any
    low: Any
    high: Any


def interval(runs: Any) -> Interval:
    """Return the mean of a Series, or of each group of a grouped one, and the ends of its 95 %
    interval, if any.
    """
    n = runs.count()
    mean = runs.mean()
    half = stats.t.ppf(0.975, n - 1) * runs.std() / np.sqrt(n)
    return Interval(mean, mean - half, mean + half)


def summarize(
    table: pd.DataFrame,
    value: str,
    by: Sequence[str],
    *,
    geometric: bool = False,
    mean: str = "mean",
) -> pd.DataFrame:
    """Return a row for each group of runs, in order of appearance: `by`, runs, mean, low, high (NaN
    for one run); the mean may have another name.
    """
    values = table[value]
    if geometric:
        values = np.log(values)
    groups = values.groupby([table[name] for name in by], sort=False)
    ends = pd.DataFrame(interval(groups)._asdict())
    if geometric:
        ends = ends.apply(np.exp)
    ends.insert(0, "runs", groups.count())
    return ends.rename(columns={"mean": mean}).reset_index()


def paired(
    a: pd.Series,
    b: pd.Series | float,
    unit: str = "ratio",
    *,
    lower: float = -np.inf,
    upper: float = np.inf,
) -> Effect:
    """Compare runs with others of the same seed; both are indexed by it, and seeds that one of them
    lacks are left out.

    The unit "ratio" compares a / b, of which the effect is the geometric mean; any other is that of
    the differences a - b. p tells whether the effect is above `lower`, below `upper` or between
    both; without bounds, whether there is one. It is 1 where there are no pairs, or where no pair
    differs from what is asked about.
    """
    pairs = (a / b).apply(np.log) if unit == "ratio" else a - b
    pairs = pairs.dropna()
    runs = len(pairs)
    p = []
    for side, bound in _asked(unit, lower, upper):
        off = pairs - bound
        if off.any():
            p.append(float(stats.wilcoxon(off, alternative=side).pvalue))
        else:
            p.append(1.0)
    test = "Wilcoxon, TOST" if len(p) > 1 else "Wilcoxon, paired"
    error = float(pairs.std()) / np.sqrt(max(runs, 1))
    x = pairs.to_numpy(dtype=float)
    first, second = np.triu_indices(runs)
    ranks = _rank_interval((x[first] + x[second]) / 2, _signed_ranks(runs))
    ends = np.array([*interval(pairs), *ranks])
    if unit == "ratio":
        ends = np.exp(ends)
    effect, low, high, *ranks = ends.tolist()
    return Effect(
        effect, low, high, lower, upper, unit, runs, test, max(p), error, runs - 1, *ranks
    )


def unpaired(
    a: pd.Series, b: pd.Series, *, lower: float = -np.inf, upper: float = np.inf
) -> Effect:
    """Compare runs with others that share no seed, by the ratio of their geometric means; otherwise
    as `paired`.

    Of the two numbers of runs, `runs` is the smaller one.
    """
    x = np.log(a)
    y = np.log(b)
    runs = min(len(x), len(y))
    asked = _asked("ratio", lower, upper)
    test = "Mann-Whitney, TOST" if len(asked) > 1 else "Mann-Whitney"
    p = []
    if runs:
        for side, bound in asked:
            p.append(float(stats.mannwhitneyu(x - bound, y, alternative=side).pvalue))
    low = high = error = freedom = np.nan
    if runs > 1:
        welch = stats.ttest_ind(x, y, equal_var=False)
        low, high = welch.confidence_interval(0.95)
        error = float(np.hypot(x.sem(), y.sem()))
        freedom = float(welch.df)
    differences = np.subtract.outer(x.to_numpy(dtype=float), y.to_numpy(dtype=float))
    ranks = _rank_interval(differences, _rank_sums(len(x), len(y)))
    logarithms = (x.mean() - y.mean(), low, high, *ranks)
    ends = [float(np.exp(end)) for end in logarithms]
    highest = max(p, default=1.0)
    return Effect(*ends[:3], lower, upper, "ratio", runs, test, highest, error, freedom, *ends[3:])


def share(successes: pd.Series, *, lower: float) -> Effect:
    """Test whether runs succeed more often than a share, by the exact binomial test, with Clopper
    and Pearson's ends.

    The error is that of a share that lies on the bound.
    """
    runs = len(successes)
    count = int(successes.sum())
    p = float(stats.binomtest(count, runs, lower, alternative="greater").pvalue)
    ends = [float(end) for end in stats.binomtest(count, runs).proportion_ci(0.95)]
    error = math.sqrt(lower * (1 - lower) / runs)
    effect = count / runs
    return Effect(effect, *ends, lower, np.inf, "share", runs, "binomial", p, error, np.inf)


def shares(table: pd.DataFrame, value: str, by: Sequence[str]) -> pd.DataFrame:
    """Return for each group of runs, in order of appearance, the share that succeeds, as
    `summarize` does of a mean.
    """
    rows = []
    for cell, successes in table.groupby(list(by), sort=False)[value]:
        effect = share(successes, lower=0)
        rows.append((*cell, effect.runs, *effect[:3]))
    return pd.DataFrame(rows, columns=[*by, "runs", "mean", "low", "high"])


def compared(
    table: pd.DataFrame,
    value: str,
    pairs: Sequence[tuple[str, str]],
    *,
    by: Sequence[str],
    names: str = "method",
    unit: str = "ratio",
    upper: float = np.inf,
) -> pd.DataFrame:
    """Compare groups of runs with their baselines, by seed, see `paired`, within each group of the
    columns `by`.

    `pairs` are names in the column `names`; those that are not both there are left out. `equal`
    counts the runs that are, to the last bit, `below` those below their baseline's; p is corrected
    by Holm over the whole table, NaN where all runs are equal or there is one.
    """
    rows = []
    for cell, group in table.groupby(list(by), sort=False):
        runs = dict(iter(group.set_index("seed").groupby(names, sort=False)[value]))
        for name, baseline in pairs:
            if name in runs and baseline in runs:
                a = runs[name]
                b = runs[baseline].reindex(a.index)
                test = paired(a, b, unit, upper=upper)
                equal = (a == b).sum()
                below = (a < b).sum()
                rows.append((*cell, name, baseline, test.runs, equal, below, *test[:3], test.p))
    result = pd.DataFrame(
        rows, columns=[*by, names, "baseline", "runs", "equal", "below", unit, "low", "high", "p"]
    )
    tested = result.eval("equal < runs and runs > 1")
    result["p"] = holm(result["p"].where(tested).to_numpy(dtype=float))
    return result


def by_ranks(rows: pd.DataFrame) -> pd.DataFrame:
    """Return effects as rows, those of rank tests by the estimate and interval that belong to the
    test.
    """
    rows = rows.copy()
    for name, rank in (("effect", "rank"), ("low", "rank_low"), ("high", "rank_high")):
        rows[name] = rows[rank].fillna(rows[name])
    return rows


def tested(effects: Mapping[Any, Effect]) -> pd.DataFrame:
    """Return tests as rows, each with the interval that belongs to it, p by Holm's method, and
    whether it is met.
    """
    rows = by_ranks(pd.DataFrame(effects.values(), pd.Index(effects), Effect._fields))
    p = holm(rows["p"].to_numpy())
    return rows.assign(p=p, met=p < LEVEL)


def components(table: pd.DataFrame, value: str, rows: str, columns: str) -> pd.Series:
    """Return how much of the scatter of a value is between `rows`, between `columns` and neither.

    Both are random and crossed, with one run in each cell: the method of moments for two factors
    without replication (Searle, Casella and McCulloch 1992, section 4.7). Standard deviations in
    the unit of the value, those of variances estimated below zero as zero; `mean` is the grand
    mean, and `low` and `high` the ends of an interval of 95 % that covers other rows and other
    columns, with Satterthwaite's degrees of freedom.
    """
    cells = table.pivot(index=rows, columns=columns, values=value)
    a, b = cells.shape
    freedoms = np.array([a - 1, b - 1, (a - 1) * (b - 1)])
    mean = float(cells.to_numpy().mean())
    by_row = cells.mean(axis=1)
    by_column = cells.mean(axis=0)
    rest = cells.sub(by_row, axis=0).sub(by_column, axis=1) + mean
    of_rest = (rest**2).to_numpy().sum() / freedoms[2]
    squares = np.array([b * by_row.var(), a * by_column.var(), of_rest])
    weights = np.array([1, 1, -1]) / (a * b)  # of the mean's variance: both factors' and the rest's
    variance = max(float(weights @ squares), float(of_rest) / (a * b))
    freedom = variance**2 / float(((weights * squares) ** 2 / freedoms).sum())
    half = stats.t.ppf(0.975, freedom) * np.sqrt(variance)
    variances = [(squares[0] - of_rest) / b, (squares[1] - of_rest) / a, of_rest]
    scatter = np.sqrt(np.maximum(variances, 0))
    names = [rows, columns, "neither", "mean", "low", "high"]
    return pd.Series([*scatter, mean, mean - half, mean + half], names, dtype=float)


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values, shape (m,), corrected by Holm's step-down method; NaN is
    no test and stays.
    """
    tests = pd.Series(p).dropna().sort_values()
    adjusted = (tests * np.arange(len(tests), 0, -1)).cummax().clip(upper=1.0)
    return adjusted.reindex(range(len(p))).to_numpy()


def power(effect: Effect, level: float, smallest: float) -> float:
    """Return the probability of an answer yes, at a level, where there is no effect.

    Where no effect lies on a bound, it is that of the effect that is smallest of interest: a ratio
    of `smallest`, or of one over it. Of the rank tests it is an approximation, by the t-tests that
    they stand for; NaN without runs, and where more is asked for than no effect.
    """
    ratio = effect.unit == "ratio"  # 1 is no effect, as 0 is of a difference
    if not effect.lower <= ratio <= effect.upper:
        return math.nan
    needed = stats.t.isf(level, effect.freedom)
    chances = []
    for bound in (effect.lower, effect.upper):
        if np.isfinite(bound):
            room = smallest if bound == ratio else bound
            if ratio:
                room = math.log(room)
            excess = abs(room) / effect.error - needed
            chances.append(float(stats.t.cdf(excess, effect.freedom)))
    return float(np.maximum(0, sum(chances) - len(chances) + 1))  # NaN stays


def _rank_interval(values: NDArray[np.float64], counts: NDArray[np.float64]) -> list[float]:
    """Return the median of pairwise values, and the ends of the interval of 95 % that inverts their
    rank test.

    `counts` are, for each value of the test's statistic, in how many of the equally likely cases it
    takes it.
    """
    if values.size == 0:
        return [np.nan] * 3
    values = np.sort(values, axis=None)
    below = int(np.searchsorted(np.cumsum(counts) / counts.sum(), 0.025, side="right"))
    ends = [values[below - 1], values[-below]] if below else [np.nan, np.nan]
    return [float(np.median(values)), *ends]


@functools.cache
def _signed_ranks(n: int) -> NDArray[np.float64]:
    """Return how many of the 2^n signs of n ranks have each sum of positive ranks."""
    counts = np.eye(1, n * (n + 1) // 2 + 1)[0]
    for rank in range(1, n + 1):
        counts[rank:] += counts[:-rank]
    return counts


@functools.cache
def _rank_sums(m: int, n: int) -> NDArray[np.float64]:
    """Return how many of the orders of m and n values have each number of pairs
    in the wrong order.
    """
    least = m * (m + 1) // 2
    counts = np.zeros((m + 1, least + m * n + 1))  # of sets of ranks, by their size and sum
    counts[0, 0] = 1
    for rank in range(1, m + n + 1):
        counts[1:, rank:] += counts[:-1, :-rank]
    return counts[m, least:]


def _asked(unit: str, lower: float, upper: float) -> list[tuple[Any, float]]:
    """Return the alternative hypotheses, in SciPy's words, with the numbers that they are about."""
    asked = []
    for side, bound in (("greater", lower), ("less", upper)):
        if np.isfinite(bound):
            if unit == "ratio":
                bound = np.log(bound)
            asked.append((side, bound))
    return asked or [("two-sided", 0.0)]
