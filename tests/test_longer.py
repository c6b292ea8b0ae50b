"""What longer searches say: geometric means, and who is overtaken."""

import numpy as np
import pandas as pd
import pytest

from leamvd.analysis import longer
from leamvd.analysis.statistics import interval
from leamvd.studies.longer_searches import COLUMNS


def test_means_and_ratios_are_geometric_paired_and_of_each_problems_last_mark() -> None:
    rows = [
        (problem, method, seed, mark, 24 * mark, best * (1 if mark == last else 2))
        for problem, last in (("p", 2), ("q", 9))
        for seed, pair in enumerate(((4.0, 1.0), (9.0, 3.0)))
        for method, best in zip(("lea-mvd", "random"), pair, strict=True)
        for mark in (1, last)
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    found = longer.means(table).set_index(["problem", "method", "mark"])["mean"]
    assert (found["p", "lea-mvd", 2], found["p", "random", 1]) == pytest.approx((6, 2 * np.sqrt(3)))
    found = longer.against_lea_mvd(table)
    assert found[["problem", "method", "runs"]].values.tolist() == [["p", "random", 2], ["q", "random", 2]]
    ends = np.exp(interval(pd.Series(np.log([1 / 4, 1 / 3]))))
    for row in found[["best", "own", "ratio", "low", "high"]].values.tolist():
        assert row == pytest.approx([np.sqrt(3), 6, *ends])


def test_a_score_weighs_problems_and_marks_alike_whatever_their_scale_and_seeds() -> None:
    factors = {"a": 2.0, "b": 1.0, "c": 0.5}
    rows = [
        (problem, method, seed, mark, 1, scale * factor ** (1 if problem == "p" else 2) * (1 + seed))
        for problem, scale, marks, n_seeds in (("p", 1.0, (1,), 2), ("q", 1e6, (1, 10), 3))
        for mark in marks
        for seed in range(n_seeds)
        for method, factor in factors.items()
    ]
    found = longer.scores(pd.DataFrame(rows, columns=COLUMNS))
    assert found.to_dict() == pytest.approx({name: factor ** (5 / 3) for name, factor in factors.items()})
    assert list(found.index) == ["c", "b", "a"]


def test_at_equal_time_a_method_that_takes_longer_is_seen_earlier() -> None:
    """Values fall with the square of the evaluations, a line by logarithms; the third method has no time."""
    rows = [("p", method, 0, mark, 100 * mark, mark**-2.0) for method in ("a", "b", "c") for mark in (1, 2, 5, 10)]
    table = pd.DataFrame(rows, columns=COLUMNS)
    for slower, of_a, of_b in (("a", 0.01, 0.01 * 1.9**2), ("b", 0.01, 0.01)):
        found = longer.at_equal_time(table, {"a": 1e-3, "b": 1.9e-3}, slower).set_index("method")["best"]
        assert found.to_dict() == pytest.approx({"a": of_a, "b": of_b})
    late = longer.at_equal_time(table, {"a": 1e-3, "b": 0.0101}, "a")
    assert late["method"].tolist() == ["a"], "the other has not come to its first mark"


def test_prose_quotes_ratios_and_counts_who_is_ahead() -> None:
    rows = [
        ("sphere, n = 1,000", "cma-es", 10, 3.0, 6.0, 0.5, 0.4, 0.6, 0.03),
        ("RBM 1", "cma-es", 10, 9.0, 10.0, 0.9, 0.7, 0.99, 0.06),
        ("RBM 1", "lea-mvd:reset=off", 9, 8.0, 10.0, 0.8, 0.7, 0.9, 0.01),
    ]
    columns = ["problem", "method", "runs", "best", "own", "ratio", "low", "high", "p"]
    assert longer.quoted(pd.DataFrame(rows, columns=columns)) == {
        "longer-sphere-1000-cma-es-best": 3, "longer-sphere-1000-cma-es-own": 6, "longer-sphere-1000-cma-es-ratio": 0.5,
        "longer-rbm-1-cma-es-best": 9, "longer-rbm-1-cma-es-own": 10, "longer-rbm-1-cma-es-ratio": 0.9,
        "longer-rbm-1-lea-mvd-reset-off-best": 8, "longer-rbm-1-lea-mvd-reset-off-own": 10,
        "longer-rbm-1-lea-mvd-reset-off-ratio": 0.8, "longer-cma-es-ahead": 1, "longer-lea-mvd-reset-off-ahead": 1,
        "longer-problems": 2, "longer-runs": 10,
    }  # fmt: skip


def test_who_is_ahead_is_asked_of_all_searches_together() -> None:
    """Five pairs that all say so are enough for one test, 1 in 32, and not for two."""

    def ahead(problems: int) -> int:
        rows = [(f"p{i}", m, seed, 1, 24, best * (1 + seed)) for i in range(problems)
                for m, best in (("lea-mvd", 2.0), ("cma-es", 1.0 + 0.01 * i)) for seed in range(5)]  # fmt: skip
        return int(longer.quoted(longer.against_lea_mvd(pd.DataFrame(rows, columns=COLUMNS)))["longer-cma-es-ahead"])

    assert (ahead(1), ahead(2)) == (1, 0)
