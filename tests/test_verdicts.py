"""Verdicts: each test against known effects, its error rate, and each rule on records made for it."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.paper import claims, verdicts
from leamvd.paper.verdicts import FACTOR, LEVEL, alike, answers, below, evidence, larger, near, within

RNG = np.random.default_rng(0)


def noisy(mean, n=30, spread=0.01):
    return pd.Series(mean * np.exp(spread * np.random.default_rng(int(mean * 7) % 1000).standard_normal(n)))


def test_below_is_the_geometric_mean_of_the_ratio_and_wilcoxon_one_sided():
    a, b = noisy(90), noisy(100)
    test = below(a, b)
    ratio = np.log(a / b)
    assert test.effect == pytest.approx(stats.gmean(a / b), rel=1e-12)
    low, high = np.exp(stats.t.interval(0.95, 29, ratio.mean(), stats.sem(ratio)))
    assert (test.low, test.high) == pytest.approx((low, high), rel=1e-12)
    assert test.p == stats.wilcoxon(a, b, alternative="less").pvalue or test.p < 1e-8
    assert test.runs == 30
    assert below(b, a).p > 0.99
    assert below(a, a).p == 1


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
    assert near(noisy(100 * FACTOR * 0.9), 100).p < 1e-6
    assert near(noisy(100 * FACTOR * 1.1), 100).p > 0.99
    assert near(noisy(100 / FACTOR * 0.9), 100).p > 0.99
    test = near(noisy(150), 100)
    assert test.low < test.effect < test.high
    assert test.effect == pytest.approx(1.5, rel=0.01)


def test_two_networks_are_compared_unpaired():
    a, b = noisy(300, 12), noisy(100, 30)
    assert larger(a, b).p < 1e-6
    assert larger(b, a).p > 0.99
    assert larger(a, b).effect == pytest.approx(stats.gmean(a) / stats.gmean(b), rel=1e-12)
    assert larger(a, b).runs == 12
    assert alike(a, b).p > 0.99
    assert alike(noisy(190, 12), b).p < 1e-5
    assert alike(noisy(53, 12), b).p < 1e-5
    assert alike(noisy(45, 12), b).p > 0.99


@pytest.mark.parametrize("test", [below, lambda a, b: within(np.log(a / b) + 0.02, -0.02, 0.02)])
def test_no_test_rejects_more_often_than_its_level(test):
    """At the edge of its null hypothesis; 600 tries of 12 runs: 5 % and four standard errors."""
    rng = np.random.default_rng(2)
    tries = [
        test(pd.Series(np.exp(0.02 * x)), pd.Series(np.exp(0.02 * y))).p
        for x, y in zip(rng.standard_normal((600, 12)), rng.standard_normal((600, 12)), strict=True)
    ]
    assert np.mean(np.array(tries) < 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 600)


def records(errors, *, n_visible=49, runs=12, n_gen=50, n_images=10_000, constant=None):
    """Return records of `errors[inputs, layer, method]`: start, after one iteration, end; then straight to the end."""
    rows = []
    for (inputs, layer, method), (start, first, end) in errors.items():
        for seed in range(runs):
            rng = np.random.default_rng([seed, layer, len(method)])
            noise = rng.normal(1, 1e-4) * rng.normal(1, 1e-7, n_gen + 1)  # ties would take a slower test
            path = np.concatenate([[start], np.geomspace(first, end, n_gen - 20), np.full(20, end)]) * noise
            rows += [
                {
                    "inputs": inputs, "layer": layer, "method": method, "seed": seed, "iteration": t,
                    "mean_field": e, "mean_field_ratio": e / (constant or 1e5), "sampled": e,
                    "n_images": n_images, "n_visible": n_visible,
                }
                for t, e in enumerate(path)
            ]  # fmt: skip
    return pd.DataFrame(rows)


# What the paper reports, if it were so.
SMALL = {
    (inputs, layer, method): errors
    for inputs in ("own", "shared")
    for layer, method, errors in [
        (1, "cd", (900, 500, 500)), (1, "lea-mvd", (500, 500, 499)), (1, "cma-es", (500, 500, 500)),
        (2, "cd", (900, 500, 400)), (2, "lea-mvd", (500, 400, 100)), (2, "cma-es", (500, 400, 200)),
        (3, "cd", (900, 500, 400)), (3, "lea-mvd", (500, 400, 100)), (3, "cma-es", (500, 400, 200)),
    ]
}  # fmt: skip
LARGE = {
    (inputs, layer, method): errors
    for inputs in ("own", "shared")
    for layer, method, errors in [
        (1, "cd", (90_000, 8_100, 8_000)), (1, "lea-mvd", (9_000, 8_100, 8_000)),
        (2, "cd", (90_000, 60_000, 50_000)), (2, "lea-mvd", (50_000, 10_000, 5_000)),
        (3, "cd", (50_000, 49_000, 48_000)), (3, "lea-mvd", (5_000, 2_000, 900)),
    ]
}  # fmt: skip


def decided(small=None, large=None, **options):
    tables = records(SMALL | (small or {})), records(LARGE | (large or {}), n_visible=784)
    return answers(evidence(*tables, **options))


def test_the_papers_own_numbers_reproduce_its_claims():
    found = decided()
    assert list(found.index) == ["C3", "C4", "C5", "C6", "C7", "C8", "C9", "C10"]
    assert (found["as printed"] == "reproduced").all()
    assert (found["conclusion"].drop("C9") == "reproduced").all()
    assert found.loc["C9", "conclusion"] == "partly", "50,000 of 784 pixels is more a pixel than 400 of 49"


CHANGES = [
    ("C3", "both", {("own", 1, "cma-es"): (500, 500, 480)}, {}, "partly"),
    ("C3", "both", {("own", 1, m): (500, 500, 480) for m in ("cma-es", "lea-mvd")}, {}, "not reproduced"),
    ("C4", "as printed", {("own", 2, "cma-es"): (500, 500, 400)}, {}, "partly"),
    ("C4", "conclusion", {("shared", 2, "cma-es"): (500, 500, 410)}, {}, "partly"),
    ("C5", "as printed", {("own", 3, "lea-mvd"): (500, 400, 201)}, {}, "partly"),
    ("C6", "both", {}, {("own", 1, "cd"): (90_000, 9_000, 8_000)}, "partly"),
    ("C7", "as printed", {}, {("own", 2, "cd"): (90_000, 30_000, 20_000)}, "partly"),
    ("C7", "conclusion", {}, {("shared", 2, "lea-mvd"): (90_000, 60_000, 51_000)}, "partly"),
    ("C7", "conclusion", {}, {("shared", 2, "lea-mvd"): (900_000, 600_000, 510_000)}, "not reproduced"),
    ("C8", "as printed", {}, {("own", 3, "cd"): (50_000, 40_000, 30_000)}, "partly"),
    ("C8", "as printed", {}, {("own", 3, "lea-mvd"): (5_000, 3_000, 2_000)}, "partly"),
    ("C9", "as printed", {}, {("own", 1, "cd"): (900, 600, 400)}, "partly"),
]


@pytest.mark.parametrize(("claim", "view", "small", "large", "answer"), CHANGES)
def test_what_would_change_a_verdict(claim, view, small, large, answer):
    found = decided(small, large)
    for name in verdicts.VIEWS if view == "both" else [view]:
        assert found.loc[claim, name] == answer


def test_contrastive_divergence_that_still_falls_has_not_converged():
    table = records(SMALL)
    falling = (table["method"] == "cd") & (table["layer"] == 2)
    table.loc[falling, "mean_field"] *= 0.998 ** table.loc[falling, "iteration"]
    rows = evidence(table, records(LARGE, n_visible=784)).set_index(["claim", "part"])
    assert rows.loc[("C10", "RBM 2, cd"), "effect"] == pytest.approx(100 * 10 * np.log(0.998), rel=1e-6)
    assert list(rows.loc["C10", "met"]) == [True, False, True]


def test_too_few_runs_are_no_answer_and_seeds_can_be_left_out():
    few = answers(evidence(records(SMALL, runs=5), records(LARGE, n_visible=784, runs=5)))
    assert (few == "not testable").all(axis=None)
    rows = evidence(records(SMALL), records(LARGE, n_visible=784), without=(0, 1))
    assert set(rows["runs"]) == {10}


def test_p_is_corrected_over_all_tests():
    rows = evidence(records(SMALL), records(LARGE, n_visible=784))
    signed_rank = rows[rows["test"] == "Wilcoxon, paired"]
    assert signed_rank["p"].min() >= 20 * 2.0**-12, "the smallest p of twelve pairs is 2^-12"
    assert ((rows["p"] < LEVEL) == rows["met"]).all()


def test_the_page_of_rules_names_the_margins_and_every_claim():
    page = (Path(__file__).parent.parent / "book" / "rules.md").read_text(encoding="utf-8")
    rules = dict(re.findall(r"\* - (C\d+)\n(.*?)(?=\n\* - |\n:::)", page, re.DOTALL))
    assert list(rules) == [f"C{n}" for n in range(1, 11)]
    for claim, margin in {
        "C3": verdicts.UNCHANGED,
        "C6": verdicts.LITTLE,
        "C8": verdicts.LITTLE,
        "C10": verdicts.UNCHANGED,
    }.items():
        assert f"±{margin:g} %" in rules[claim]
    assert verdicts.FACTOR == 2
    assert all("a factor of 2" in rules[claim] for claim in ("C7", "C8", "C9"))
    assert f"below {LEVEL:g}" in page
    assert f"{verdicts.LAST}" == "10"
    assert "over the last ten epochs" in rules["C10"]
    for bounds, claim in ((claims.LINEAR, "C1"), (claims.QUADRATIC, "C2")):
        assert f"[{bounds[0]:g}, {bounds[1]:g}]" in rules[claim]
    for (_, layer), number in verdicts.PRINTED.items():
        assert f"{number:,.0f}" in rules[f"C{layer + 5}"]
