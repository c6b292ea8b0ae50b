"""Tests of one effect: below, larger, or within margins; each with the effect and its 95 % interval.

Errors are compared by the logarithm of their ratio. "Within" is two one-sided tests, and counts the larger p: it is met
where an effect is shown to be small, not where nothing could be shown.
"""

from collections.abc import Iterable
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from leamvd.paper.intervals import interval, welch


class Test(NamedTuple):
    """An effect with its 95 % interval, the bounds that are asked about, and the p-value of the answer yes."""

    effect: float
    low: float
    high: float
    lower: float  # what the effect is to be above; -inf for no bound
    upper: float  # what it is to be below; inf for no bound
    unit: str  # "ratio", "%" or "slope"
    runs: int
    test: str
    p: float


def below(a: pd.Series, b: pd.Series, bound: float = 1.0) -> Test:
    """Test whether errors are lower than `bound` times others of the same seed: geometric mean of a / b; Wilcoxon."""
    ratio = np.log((a / b).dropna().to_numpy(dtype=float))
    low, effect, high = np.exp(interval(ratio))
    p = _signed_rank(ratio - np.log(bound), "less")
    return Test(effect, low, high, -np.inf, bound, "ratio", len(ratio), "Wilcoxon, paired", p)


def within(values: pd.Series, lower: float, upper: float, unit: str = "%") -> Test:
    """Test whether values lie between two bounds in the mean, by two one-sided Wilcoxon tests."""
    x = values.dropna().to_numpy(dtype=float)
    p = max(_signed_rank(x - lower, "greater"), _signed_rank(x - upper, "less"))
    low, effect, high = interval(x)
    return Test(effect, low, high, lower, upper, unit, len(x), "Wilcoxon, TOST", p)


def near(values: pd.Series, number: float, factor: float) -> Test:
    """Test whether values are a number but for a factor: the geometric mean of values / number, tested as `within`."""
    test = within(np.log(values / number), -np.log(factor), np.log(factor), "ratio")
    effect, low, high = np.exp(test[:3])
    return test._replace(effect=effect, low=low, high=high, lower=1 / factor, upper=factor)


def larger(a: pd.Series, b: pd.Series) -> Test:
    """Test whether errors are larger than those of another network: ratio of geometric means; Mann and Whitney."""
    return _unpaired(a, b, 1.0, np.inf, "Mann-Whitney")


def alike(a: pd.Series, b: pd.Series, factor: float) -> Test:
    """Test whether errors are those of another network but for a factor: two one-sided tests of Mann and Whitney."""
    return _unpaired(a, b, 1 / factor, factor, "Mann-Whitney, TOST")


def hardest(tests: Iterable[tuple[str, Test]]) -> tuple[str, Test]:
    """Return, of tests with names, the one with the largest p: where it is met, all are (intersection-union)."""
    return max(tests, key=lambda named: (named[1].p, -named[1].runs))


def _unpaired(a: pd.Series, b: pd.Series, lower: float, upper: float, test: str) -> Test:
    x, y = np.log(a.to_numpy(dtype=float)), np.log(b.to_numpy(dtype=float))
    runs = min(len(x), len(y))
    if not runs:
        return Test(np.nan, np.nan, np.nan, lower, upper, "ratio", runs, test, 1.0)
    low, effect, high = np.exp(welch(y, x) if runs > 1 else (np.nan, x.mean() - y.mean(), np.nan))
    p = stats.mannwhitneyu(x - np.log(lower), y, alternative="greater").pvalue
    if np.isfinite(upper):
        p = max(p, stats.mannwhitneyu(x - np.log(upper), y, alternative="less").pvalue)
    return Test(effect, low, high, lower, upper, "ratio", runs, test, float(p))


def _signed_rank(x: NDArray[np.float64], alternative: Literal["less", "greater"]) -> float:
    return float(stats.wilcoxon(x, alternative=alternative).pvalue) if x.any() else 1.0
