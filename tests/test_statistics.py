"""The statistics against known answers, at their margins, and by their error rates."""

import functools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd_paper.studies import statistics
from leamvd_paper.studies.statistics import (
    compared,
    components,
    holm,
    interval,
    paired,
    power,
    share,
    shares,
    summarize,
    unpaired,
)


def noisy(mean, n=30, scatter=0.01):
    return pd.Series(
        mean * np.exp(scatter * np.random.default_rng(int(mean * 7) % 1000).standard_normal(n))
    )


# ---- runs summarized


def test_an_interval_is_students() -> None:
    values = pd.Series([1.0, 1.5, 4.0])
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert interval(values) == pytest.approx((values.mean(), low, high))
    assert interval(pd.Series([2.0, 2.0])) == (2, 2, 2)
    assert np.isnan(interval(pd.Series([2.0]))[1:]).all(), "one run says nothing of others"


@pytest.mark.parametrize(("geometric", "mean"), [(False, 5.0), (True, 4.0)])
def test_groups_are_summarized_in_their_order(geometric: bool, mean: float) -> None:
    table = pd.DataFrame({"method": ["b", "a", "b"], "value": [2.0, 7.0, 8.0]})
    found = summarize(table, "value", ["method"], geometric=geometric)
    assert found[["method", "runs"]].values.tolist() == [["b", 2], ["a", 1]]
    assert found["mean"].tolist() == pytest.approx([mean, 7])
    log, exp = (np.log, np.exp) if geometric else (np.array, np.array)
    ends = exp(interval(pd.Series(log([2.0, 8.0])))[1:])
    assert found.loc[0, ["low", "high"]].tolist() == pytest.approx(ends.tolist())
    assert found.loc[1, ["low", "high"]].isna().all()


def test_runs_without_a_value_are_not_counted() -> None:
    table = pd.DataFrame({"method": "a", "value": [2.0, np.nan, 8.0]})
    counted = summarize(table, "value", ["method"])
    assert counted[["runs", "mean"]].to_numpy().tolist() == [[2, 5]]


# ---- runs of the same seed


def test_pairs_by_hand() -> None:
    """Of five pairs the second smallest difference is the wrong way round: W+ = 2, as in 3 of the
    32 sign patterns.
    """
    ratio = np.array([0.5, 1.2, 0.9, 0.6, 0.7])
    found = paired(pd.Series(ratio), pd.Series(np.ones(5)), upper=1)
    assert found.p == pytest.approx(3 / 32)  # rank sums of 0, 1 and 2
    # Student's t of four degrees of freedom
    half = 2.776445 * np.std(np.log(ratio), ddof=1) / np.sqrt(5)
    ends = np.exp(np.log(ratio).mean() + np.array([-half, 0, half]))
    assert (found.low, found.effect, found.high) == pytest.approx(tuple(ends), rel=1e-6)
    assert found.effect == pytest.approx((0.5 * 1.2 * 0.9 * 0.6 * 0.7) ** 0.2)
    assert (found.lower, found.upper, found.unit, found.runs) == (-np.inf, 1, "ratio", 5)
    assert paired(pd.Series(ratio), 1.0).p == pytest.approx(6 / 32), (
        "without a bound both sides count"
    )


def test_pairs_are_of_the_same_seed() -> None:
    a = pd.Series([1.0, 2.0, 3.0], [0, 1, 2])
    b = pd.Series([4.0, 2.0, 3.0], [2, 0, 5])
    assert paired(a, b).runs == paired(a, b, "difference").runs == 2
    assert paired(a, b).effect == pytest.approx(np.sqrt((3 / 4) * (1 / 2)))
    assert paired(a, b, "difference").effect == -1


def test_pairs_that_do_not_scatter() -> None:
    unmoved = paired(pd.Series(np.zeros(30)), 0.0, "%", lower=-1, upper=1)
    assert unmoved[:3] == (0, 0, 0)
    assert unmoved.p < 1e-6
    assert paired(pd.Series(np.full(30, 1.0)), 0.0, "%", lower=-1, upper=1).p == 1, (
        "on the bound is not within"
    )


# ---- runs of other seeds


def test_larger_by_hand() -> None:
    """All three of one network exceed all four of the other: one in 35 ways to deal seven ranks."""
    found = unpaired(pd.Series([5.0, 6, 7]), pd.Series([1.0, 2, 3, 4]), lower=1)
    assert found.p == pytest.approx(1 / 35)
    assert (found.runs, found.lower, found.upper) == (3, 1, np.inf)
    assert found.effect == pytest.approx(210 ** (1 / 3) / 24 ** (1 / 4))


# ---- both

BETWEEN = {"lower": 0.5, "upper": 2}


@pytest.mark.parametrize(
    ("test", "known"),
    [(paired, stats.ttest_rel), (unpaired, functools.partial(stats.ttest_ind, equal_var=False))],
)
def test_intervals_errors_and_degrees_of_freedom_are_those_of_t_tests(test, known) -> None:
    """Of Welch's where runs are unpaired: both groups have their own scatter."""
    a, b = noisy(300, 12, scatter=0.5), noisy(100, 12, scatter=0.1)
    found, t = test(a, b), known(np.log(a), np.log(b))
    assert np.log(found[:3]) == pytest.approx(
        [t.statistic * found.error, *t.confidence_interval(0.95)]
    )
    assert found.freedom == pytest.approx(t.df)


@pytest.mark.parametrize("test", [paired, unpaired])
@pytest.mark.parametrize(("mean", "met"), [(180, True), (220, False), (53, True), (45, False)])
def test_a_number_within_a_factor(test, mean: float, met: bool) -> None:
    p = test(noisy(mean), noisy(100), **BETWEEN).p
    assert p < 1e-6 if met else p > 0.99


@pytest.mark.parametrize("test", [paired, unpaired])
@pytest.mark.parametrize("bounds", [{}, {"upper": 1}, BETWEEN])
def test_without_runs_nothing_is_shown(test, bounds) -> None:
    nothing = pd.Series(dtype=float)
    for a, b in ((nothing, nothing), (nothing, noisy(3))):
        found = test(a, b, **bounds)
        assert (found.runs, found.p) == (0, 1)
        assert np.isnan(found[:3]).all()


@pytest.mark.parametrize(
    "test",
    [
        lambda a, b: paired(a, b, upper=1).p,
        lambda a, b: paired(1.1 * a, b, upper=1.1).p,
        lambda a, b: paired(np.log(a / b) + 0.06, 0.0, "%", lower=-0.06, upper=0.06).p,
        lambda a, b: unpaired(a, b, lower=1).p,
        lambda a, b: unpaired(a, 2 * b, **BETWEEN).p,
    ],
)
def test_the_error_rate_at_the_edge_of_each_null_hypothesis_is_the_level(test) -> None:
    """Where the other margin is far: 5 % up to the steps of p with 12 runs, and four standard
    errors of 500 tries.
    """
    rng = np.random.default_rng(2)
    tries = [test(*map(pd.Series, np.exp(0.02 * rng.standard_normal((2, 12))))) for _ in range(500)]
    error = 4 * np.sqrt(0.05 * 0.95 / 500)
    assert 0.045 - error < np.mean(np.array(tries) < 0.05) < 0.05 + error


@pytest.mark.parametrize("test", [paired, unpaired])
def test_rank_intervals_invert_the_tests(test) -> None:
    """Each end is where the two-sided p passes 5 %; the estimate is the median of what lies between
    all pairs.
    """
    rng = np.random.default_rng(5)
    a, b = (pd.Series(np.exp(rng.standard_normal(n))) for n in (9, 9 if test is paired else 11))
    found = test(a, b)
    for end in (found.rank_low, found.rank_high):
        inside, outside = (
            test(a / (end * step), b).p for step in (1.001, 0.999)[:: 1 if end < found.rank else -1]
        )
        assert outside <= 0.05 < inside
    x, y = np.log(a).to_numpy(), np.log(b).to_numpy()
    first, second = np.triu_indices(9)
    between = (
        np.subtract.outer(x, y) if test is unpaired else ((x - y)[first] + (x - y)[second]) / 2
    )
    assert found.rank == pytest.approx(np.exp(np.median(between)))
    few = test(a[:3], b[:3])
    assert np.isnan(few.rank_low), "three runs cannot reach 5 %"


def test_a_rank_interval_leaves_out_what_the_test_refuses_at_exactly_its_level() -> None:
    """Of 40 values of the statistic that are equally likely the first and the
    last have 2.5 % each.
    """
    assert statistics._rank_interval(np.arange(40.0), np.ones(40)) == [19.5, 0, 39]
    assert statistics._rank_interval(np.arange(39.0), np.ones(39))[0] == 19
    assert np.isnan(statistics._rank_interval(np.arange(39.0), np.ones(39))[1:]).all()


@pytest.mark.parametrize(
    ("unit", "bounds", "truth"),
    [
        ("ratio", {"upper": 0}, -0.05),
        ("ratio", {"lower": -0.05, "upper": 0.05}, 0),
        ("%", {"lower": -0.04}, 0),
    ],
)
def test_power_is_how_often_t_tests_say_yes(
    unit: str, bounds: dict[str, float], truth: float
) -> None:
    """Of 0.05, the smallest of interest, where a bound says that there is no effect; else where
    there is none.
    """
    scale = np.exp if unit == "ratio" else np.float64
    values, sides = (
        truth + 0.05 * np.random.default_rng(6).standard_normal((4_000, 12)),
        {"lower": "greater", "upper": "less"},
    )
    p = [
        stats.ttest_1samp(values, bound, axis=1, alternative=sides[name]).pvalue
        for name, bound in bounds.items()
    ]
    asked = {name: scale(bound) for name, bound in bounds.items()}
    known = paired(pd.Series(scale(values[0])), scale(0), unit, **asked)._replace(
        error=0.05 / np.sqrt(12)
    )
    assert power(known, 0.05, scale(0.05)) == pytest.approx(
        np.mean(np.max(p, axis=0) < 0.05), abs=0.03
    )
    assert np.isnan(power(known._replace(upper=-1), 0.05, 1.05)), (
        "more is asked for than that there be no effect"
    )


# ---- shares


def test_a_share_is_tested_by_the_binomial_distribution() -> None:
    found = share(pd.Series([True] * 9 + [False]), lower=0.75)
    assert found.p == pytest.approx(0.75**10 + 10 * 0.25 * 0.75**9)
    assert found.error == pytest.approx(np.sqrt(0.75 * 0.25 / 10))
    assert found.low == pytest.approx(stats.beta.ppf(0.025, 9, 2))
    assert found.high == pytest.approx(stats.beta.ppf(0.975, 10, 1))
    table = pd.DataFrame({"n": [2, 1, 1], "escaped": [True, True, False]})
    rows = shares(table, "escaped", ["n"])
    assert rows[["n", "runs", "mean"]].to_numpy().tolist() == [[2, 1, 1], [1, 2, 0.5]]
    assert rows["high"].tolist() == pytest.approx([1, stats.beta.ppf(0.975, 2, 1)])


# ---- tables


def test_holm() -> None:
    """The smallest p times the number of tests, the next times one less; rising, and at most 1."""
    assert holm(np.array([0.01, np.nan, 0.04, 0.03])) == pytest.approx(
        [0.03, np.nan, 0.06, 0.06], nan_ok=True
    )
    assert holm(np.array([0.7, 0.2, 0.6])) == pytest.approx([1, 0.6, 1])
    assert holm(np.array([])).size == 0


@pytest.mark.parametrize("unit", ["ratio", "difference"])
def test_a_table_compares_pairs_within_groups(unit: str) -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        [
            (layer, method, seed)
            for layer in (2, 1)
            for method in ("cd", "b", "same", "lone")
            for seed in range(12)
        ],
        columns=["layer", "method", "seed"],
    )
    rows["error"] = np.exp(rng.normal(0, 0.1, len(rows))) * rows["method"].map({"b": 1.5}).fillna(
        1.0
    )
    rows.loc[rows["method"] == "same", "error"] = rows.loc[
        rows["method"] == "cd", "error"
    ].to_numpy()
    rows = rows[(rows["method"] != "lone") | (rows["seed"] == 0)].sample(frac=1, random_state=0)
    rows = rows.sort_values(["layer"], ascending=False, kind="stable")
    pairs = [(name, "cd") for name in ("b", "same", "lone", "missing")]
    found = compared(rows, "error", pairs, by=["layer"], unit=unit, upper=1.4)
    assert found[["layer", "method"]].values.tolist() == [
        [n, m] for n in (2, 1) for m in ("b", "same", "lone")
    ]
    assert found["runs"].tolist() == [12, 12, 1] * 2
    assert found["equal"].tolist() == [0, 12, 0] * 2
    assert not found.loc[found["method"] == "same", "below"].any(), "what is equal is not below"
    assert found["p"].isna().tolist() == [False, True, True] * 2, (
        "nothing differs, or there is one pair"
    )
    raw = []
    for i, layer in ((0, 2), (3, 1)):
        own = rows[rows["layer"] == layer].pivot(index="seed", columns="method", values="error")
        one = paired(own["b"], own["cd"], unit, upper=1.4)
        assert found.loc[i, "below"] == (own["b"] < own["cd"]).sum()
        assert found.loc[i, [unit, "low", "high"]].tolist() == pytest.approx(list(one[:3]))
        raw.append(one.p)
    assert found["p"].dropna().tolist() == pytest.approx(holm(np.array(raw)))


def crossed(A, B, rest):
    cells = np.add.outer(A, B) + rest
    return pd.DataFrame(
        [(i, j, cell) for (i, j), cell in np.ndenumerate(cells)], columns=["set", "seed", "value"]
    )


@pytest.mark.parametrize(
    ("rows", "columns", "variances", "of_mean", "freedom"),
    [
        (3, 2, [6, 6, 6], 36 / 6, 36**2 / (18**2 / 2 + 24**2 / 1 + 6**2 / 2)),
        (1, 0, [0, 0, 6], 6 / 6, 6**2 / (2**2 / 2 + 6**2 / 2)),
    ],
)
def test_components_of_variance_by_hand(rows, columns, variances, of_mean, freedom) -> None:
    """The mean squares are 18, 24 and 6, or 2, 0 and 6; Satterthwaite's degrees are of the mean's
    variance.
    """
    rest = np.array([[1, -1], [-2, 2], [1, -1]])
    found = components(
        crossed(10 + rows * np.array([-1, 0, 1]), columns * np.array([-1, 1]), rest),
        "value",
        "set",
        "seed",
    )
    assert (found[["set", "seed", "neither"]] ** 2).tolist() == pytest.approx(variances)
    half = stats.t.ppf(0.975, freedom) * np.sqrt(of_mean)
    assert found[["low", "mean", "high"]].tolist() == pytest.approx([10 - half, 10, 10 + half])


def test_pairs_in_groups_of_two_columns_leave_out_seeds_that_the_baseline_lacks() -> None:
    rows = [
        (1, "x", "new", 3, 2.0),
        (1, "x", "old", 1, 4.0),
        (1, "x", "new", 1, 4.0),
        (1, "x", "old", 2, 2.0),
        (1, "x", "new", 2, 1.0),
        (1, "y", "new", 1, 5.0),  # without a baseline
        (2, "x", "old", 7, 1.0),
        (2, "x", "new", 7, 3.0),
        (2, "x", "new", 5, 0.5),
        (2, "x", "old", 5, 1.0),
    ]
    table = pd.DataFrame(rows, columns=["layer", "inputs", "kind", "seed", "error"])
    by = ["layer", "inputs"]
    found = compared(table, "error", [("new", "old")], by=by, names="kind")
    label = ["layer", "inputs", "kind", "baseline", "runs", "equal", "below"]
    assert found[label].to_numpy().tolist() == [
        [1, "x", "new", "old", 2, 1, 1],
        [2, "x", "new", "old", 2, 0, 1],
    ]
    assert [*found][7:] == ["ratio", "low", "high", "p"]
    assert found["ratio"].tolist() == pytest.approx([np.sqrt(1 * 0.5), np.sqrt(3 * 0.5)])
    half = stats.t.ppf(0.975, 1) * np.log([[2], [6]]) / 2
    ends = np.exp(np.log(found[["ratio"]].to_numpy()) + half * [-1, 1])
    np.testing.assert_allclose(found[["low", "high"]], ends)
    assert found["p"].tolist() == [1, 1]


def test_runs_of_groups_of_two_columns_are_summarized() -> None:
    rows = [("b", 2, 1.0), ("a", 2, 5.0), ("b", 1, 3.0), ("b", 2, 3.0), ("b", 2, 8.0)]
    table = pd.DataFrame(rows, columns=["kind", "layer", "error"])
    found = summarize(table, "error", ["kind", "layer"], mean="its error")
    assert [*found] == ["kind", "layer", "runs", "its error", "low", "high"]
    assert found.iloc[:, :4].to_numpy().tolist() == [["b", 2, 3, 4], ["a", 2, 1, 5], ["b", 1, 1, 3]]
    half = stats.t.ppf(0.975, 2) * np.std([1, 3, 8], ddof=1) / np.sqrt(3)
    assert found.loc[0, ["low", "high"]].tolist() == pytest.approx([4 - half, 4 + half])


def test_effects_say_which_test_they_are_of() -> None:
    a = noisy(100, 5)
    b = noisy(120, 5)
    for test, name in ((paired, "Wilcoxon"), (unpaired, "Mann-Whitney")):
        assert test(a, b, **BETWEEN).test == f"{name}, TOST"
        for bounds in ({}, {"upper": 2}, {"lower": 0.5}):
            found = test(a, b, **bounds)
            assert found.test == {"Wilcoxon": "Wilcoxon, paired"}.get(name, name)
            expected = {"lower": -np.inf, "upper": np.inf} | bounds
            assert {"lower": found.lower, "upper": found.upper} == expected
            assert (found.unit, found.runs) == ("ratio", 5)
    found = share(pd.Series([True, False, True, True]), lower=0.25)
    assert found[:1] + found[3:8] == (0.75, 0.25, np.inf, "share", 4, "binomial")
    assert found.freedom == np.inf
    assert np.isnan(found[-3:]).all()


def test_pairs_without_a_value_are_no_runs() -> None:
    a = pd.Series([2.0, np.nan, 8.0, 4.0])
    b = pd.Series([1.0, 1.0, np.nan, 8.0])
    found = paired(a, b, upper=3)
    assert found.runs == 2
    assert found.effect == pytest.approx(1)
    assert found.error == pytest.approx(np.log(2) * np.sqrt(2) / np.sqrt(2))
    assert (found.freedom, found.p) == (1, 0.25)  # both pairs are below 3: one in four
    one = paired(pd.Series([2.0]), pd.Series([1.0]))
    assert (one.runs, one.effect, one.rank, one.p) == (1, pytest.approx(2), pytest.approx(2), 1)
    assert np.isnan([one.low, one.high, one.error]).all()


def test_of_one_run_a_side_there_is_a_ratio_and_no_interval() -> None:
    found = unpaired(pd.Series([6.0]), pd.Series([1.0, 4.0]), lower=1)
    assert (found.runs, found.effect) == (1, pytest.approx(3))
    assert found.rank == pytest.approx(np.exp((np.log(6) + np.log(1.5)) / 2))
    assert np.isnan(found[1:3] + found[9:11]).all()
    assert found.p == pytest.approx(1 / 3)


def test_tests_are_rows_with_the_interval_that_belongs_to_them() -> None:
    """Those of ranks with Hodges and Lehmann's; p times as many as are not smaller."""
    ranks = paired(noisy(80, 9, scatter=0.3), noisy(100, 9, scatter=0.3))
    of_share = share(pd.Series([True] * 9 + [False]), lower=0.5)
    effects = {
        ("a", 1): ranks._replace(p=0.02),
        ("b", 2): of_share._replace(p=0.05),  # which is at the level, and not below it
        ("c", 3): ranks._replace(p=0.01),
    }
    found = statistics.tested(effects)
    assert [*found.index] == [*effects]
    assert found["p"].tolist() == pytest.approx([0.04, 0.05, 0.03])
    assert found["met"].tolist() == [True, False, True]
    columns = ["effect", "low", "high"]
    assert found.loc[[("a", 1)], columns].to_numpy().tolist() == [[*ranks[-3:]]]
    assert ranks.rank != ranks.effect
    assert found.loc[[("b", 2)], columns].to_numpy().tolist() == [[*of_share[:3]]]
    rows = pd.DataFrame([ranks])
    statistics.by_ranks(rows)
    assert rows.loc[0, "effect"] == ranks.effect, "the rows that are given stay"


def test_power_is_zero_where_a_bound_cannot_be_shown_and_unknown_without_runs() -> None:
    nothing = pd.Series(dtype=float)
    assert np.isnan(power(paired(nothing, nothing, upper=1), 0.05, 1.05))
    few = paired(pd.Series([1.0, 9.0, 0.2]), 1.0, lower=0.99, upper=1.01)
    assert power(few, 0.05, 1.05) == 0
    sharp = paired(noisy(100, 30), noisy(101, 30), lower=1)
    assert power(sharp, 0.05, 2) == pytest.approx(1)
    assert np.isnan(power(sharp._replace(lower=1.01), 0.05, 2))
    # where one is asked for, both sides of no effect are its room
    below = power(sharp._replace(lower=-np.inf, upper=1), 0.05, 1.004)
    expected = stats.t.cdf(np.log(1.004) / sharp.error - stats.t.isf(0.05, 29), 29)
    assert below == pytest.approx(expected)
    assert power(sharp, 0.05, 1.004) == pytest.approx(expected)
    assert 0.1 < expected < 0.95
    # of a difference zero is no effect, and 1 a bound as any other
    error = 0.5
    fall = paired(pd.Series([-1.0, 1.0]), 0.0, "%", lower=0)._replace(error=error, freedom=29)
    for bounded, room in ((fall, 1.5), (fall._replace(lower=-np.inf, upper=1), 1)):
        expected = stats.t.cdf(room / error - stats.t.isf(0.05, 29), 29)
        assert power(bounded, 0.05, 1.5) == pytest.approx(expected)


def test_no_tests_are_an_empty_table() -> None:
    assert {"effect", "p", "met"} <= {*statistics.tested({})}
