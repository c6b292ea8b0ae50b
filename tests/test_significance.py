"""Each test against known answers, at its margins, and by its error rate."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.paper.significance import alike, below, hardest, larger, near, within


def noisy(mean, n=30, spread=0.01):
    return pd.Series(mean * np.exp(spread * np.random.default_rng(int(mean * 7) % 1000).standard_normal(n)))


def test_below_by_hand():
    """Of five pairs the second smallest difference is the wrong way round: W+ = 2, as in 3 of the 32 sign patterns."""
    ratio = np.array([0.5, 1.2, 0.9, 0.6, 0.7])
    test = below(pd.Series(ratio), pd.Series(np.ones(5)))
    assert test.p == pytest.approx(3 / 32)  # rank sums of 0, 1 and 2
    logs = np.log(ratio)
    half = 2.776445 * np.std(logs, ddof=1) / np.sqrt(5)  # Student's t of four degrees of freedom
    ends = np.exp([logs.mean() - half, logs.mean(), logs.mean() + half])
    assert (test.low, test.effect, test.high) == pytest.approx(tuple(ends), rel=1e-6)
    assert test.effect == pytest.approx((0.5 * 1.2 * 0.9 * 0.6 * 0.7) ** 0.2)
    assert (test.lower, test.upper, test.unit, test.runs) == (-np.inf, 1, "ratio", 5)


def test_below_is_one_sided_and_moves_with_its_bound():
    a, b = noisy(90), noisy(100)
    assert below(a, b).p == stats.wilcoxon(np.log(a / b), alternative="less").pvalue
    assert below(a, b).p < 1e-8
    assert below(b, a).p > 0.99
    assert below(a, a).p == 1
    assert below(b, a, 1.1).p > 0.99  # 100 / 90 is 1.11
    assert below(b, a, 1.12).p < 0.01
    assert below(b, a, 1.12)[:3] == below(b, a)[:3], "the effect is the same, whatever is asked about it"


def test_pairs_are_of_the_same_seed():
    a = pd.Series([1.0, 2.0, 3.0], [0, 1, 2])
    b = pd.Series([4.0, 2.0, 3.0], [2, 0, 5])
    assert below(a, b).runs == 2
    assert below(a, b).effect == pytest.approx(np.sqrt((3 / 4) * (1 / 2)))


def test_within_needs_both_bounds():
    x = pd.Series(np.random.default_rng(1).normal(0.5, 0.2, 30))
    assert within(x, -1, 1).p == max(
        stats.wilcoxon(x + 1, alternative="greater").pvalue, stats.wilcoxon(x - 1, alternative="less").pvalue
    )
    assert within(x, -1, 1).p < 1e-6
    assert within(x, -1, 0.5).p > 0.05
    assert within(x, 0.5, 1).p > 0.05
    unmoved = within(pd.Series(np.zeros(30)), -1, 1)
    assert (unmoved.effect, unmoved.low, unmoved.high) == (0, 0, 0)
    assert unmoved.p < 1e-6
    assert within(pd.Series(np.full(30, 1.0)), -1, 1).p == 1, "on the bound is not within"


def test_near_is_within_a_factor():
    assert near(noisy(180), 100, 2).p < 1e-6
    assert near(noisy(220), 100, 2).p > 0.99
    assert near(noisy(45), 100, 2).p > 0.99
    assert near(noisy(220), 100, 3).p < 1e-6
    test = near(noisy(150), 100, 2)
    assert test.low < test.effect < test.high
    assert test.effect == pytest.approx(1.5, rel=0.01)
    assert (test.lower, test.upper, test.unit) == (0.5, 2, "ratio")


def test_larger_by_hand():
    """All three of one network exceed all four of the other: one in 35 ways to deal seven ranks."""
    test = larger(pd.Series([5.0, 6, 7]), pd.Series([1.0, 2, 3, 4]))
    assert test.p == pytest.approx(1 / 35)
    assert (test.runs, test.lower, test.upper) == (3, 1, np.inf)
    assert test.effect == pytest.approx(210 ** (1 / 3) / 24 ** (1 / 4))


def test_two_networks_are_compared_unpaired():
    a, b = noisy(300, 12), noisy(100, 30)
    assert larger(a, b).p < 1e-6
    assert larger(b, a).p > 0.99
    low, high = np.exp(stats.ttest_ind(np.log(a), np.log(b), equal_var=False).confidence_interval())
    assert (larger(a, b).low, larger(a, b).high) == pytest.approx((low, high))
    assert alike(a, b, 2).p > 0.99
    assert alike(a, b, 4).p < 1e-6
    assert alike(noisy(190, 12), b, 2).p < 1e-5
    assert alike(noisy(53, 12), b, 2).p < 1e-5
    assert alike(noisy(45, 12), b, 2).p > 0.99


def test_the_hardest_of_several_counts_and_what_was_not_run_is_harder_than_what_failed():
    tests = [("a", below(noisy(90), noisy(100))), ("b", below(noisy(99.9), noisy(100))), ("c", below(*[noisy(9)] * 2))]
    assert hardest(tests[:2]) == tests[1]
    nothing = pd.Series(dtype=float)
    assert hardest([*tests, ("missing", below(nothing, nothing))])[0] == "missing"


@pytest.mark.parametrize("test", [below, larger, lambda a, b: within(a - b, 0, 9), lambda a, b: alike(a, b, 2)])
def test_without_runs_nothing_is_shown(test):
    nothing = pd.Series(dtype=float)
    for a, b in ((nothing, nothing), (nothing, noisy(3))):
        assert (test(a, b).runs, test(a, b).p) == (0, 1)
        assert np.isnan(test(a, b).effect)


@pytest.mark.parametrize(
    "test",
    [
        lambda a, b: below(a, b).p,
        lambda a, b: below(1.1 * a, b, 1.1).p,
        lambda a, b: within(np.log(a / b) + 0.06, -0.06, 0.06).p,
        lambda a, b: larger(a, b).p,
        lambda a, b: alike(a, 2 * b, 2).p,
        lambda a, b: hardest([("edge", below(a, b)), ("clear", below(0.5 * a, b))])[1].p,
    ],
)
def test_the_error_rate_at_the_edge_of_each_null_hypothesis_is_the_level(test):
    """Where the other margin is far: 5 % but for the steps of p with 12 runs, and four standard errors of 500 tries."""
    rng = np.random.default_rng(2)
    tries = [test(*map(pd.Series, np.exp(0.02 * rng.standard_normal((2, 12))))) for _ in range(500)]
    error = 4 * np.sqrt(0.05 * 0.95 / 500)
    assert 0.045 - error < np.mean(np.array(tries) < 0.05) < 0.05 + error
