"""What longer searches say: geometric means, and who is overtaken."""

import numpy as np
import pandas as pd
import pytest

from leamvd.analysis import longer
from leamvd.analysis.statistics import interval
from leamvd.experiments.longer_searches import COLUMNS


def test_means_and_ratios_are_geometric_and_paired() -> None:
    rows = [
        ("p", method, seed, mark, 24 * mark, best * (3 - mark))
        for seed, pair in enumerate(((4.0, 1.0), (9.0, 3.0)))
        for method, best in zip(("lea-mvd", "random"), pair, strict=True)
        for mark in (1, 2)
    ]
    table = pd.DataFrame(rows, columns=COLUMNS)
    found = longer.means(table).set_index(["method", "mark"])
    assert found.loc[("lea-mvd", 2), "mean"] == pytest.approx(6)
    assert found.loc[("random", 1), "mean"] == pytest.approx(2 * np.sqrt(3))
    (row,) = longer.against_lea_mvd(table).to_dict("records")
    assert (row["problem"], row["method"], row["runs"]) == ("p", "random", 2)
    assert [row["best"], row["own"]] == pytest.approx([np.sqrt(3), 6])
    ends = np.exp(interval(pd.Series(np.log([1 / 4, 1 / 3]))))
    assert [row["ratio"], row["low"], row["high"]] == pytest.approx(ends.tolist())


def test_problems_end_at_their_own_last_marks() -> None:
    rows = [(name, m, 0, mark, mark, 1.0) for name, last in (("a", 2), ("b", 9)) for m in ("lea-mvd", "random")
            for mark in (1, last)]  # fmt: skip
    assert longer.against_lea_mvd(pd.DataFrame(rows, columns=COLUMNS))["problem"].tolist() == ["a", "b"]


def test_prose_quotes_ratios_and_counts_who_is_ahead() -> None:
    rows = [
        ("sphere, n = 1,000", "cma-es", 10, 3.0, 6.0, 0.5, 0.4, 0.6, 0.03),
        ("sphere, n = 1,000", "random", 10, 12.0, 6.0, 2.0, 1.5, 3.0, 1.0),
        ("RBM 1", "cma-es", 10, 9.0, 10.0, 0.9, 0.7, 0.99, 0.06),
        ("RBM 1", "lea-mvd:reset=off", 9, 8.0, 10.0, 0.8, 0.7, 0.9, 0.01),
    ]
    columns = ["problem", "method", "runs", "best", "own", "ratio", "low", "high", "p"]
    found = longer.quoted(pd.DataFrame(rows, columns=columns))
    assert found["longer-sphere-1000-random-ratio"] == 2
    assert (found["longer-rbm-1-cma-es-best"], found["longer-rbm-1-cma-es-own"]) == (9, 10)
    assert (found["longer-rbm-1-lea-mvd-reset-off-ratio"], found["longer-lea-mvd-reset-off-ahead"]) == (0.8, 1)
    assert (found["longer-cma-es-ahead"], found["longer-random-ahead"], found["longer-problems"]) == (1, 0, 2)
    assert found["longer-runs"] == 10


def test_who_is_ahead_is_asked_of_all_searches_together() -> None:
    """Ten pairs that all say so are enough for one test, 1 in 1,024, and not for sixty."""

    def ahead(problems: int) -> int:
        rows = [(f"p{i}", m, seed, 1, 24, best * (1 + seed)) for i in range(problems)
                for m, best in (("lea-mvd", 2.0), ("cma-es", 1.0 + 0.01 * i)) for seed in range(10)]  # fmt: skip
        found = longer.against_lea_mvd(pd.DataFrame(rows, columns=COLUMNS))
        assert (found["high"] < 1).all()
        return int(longer.quoted(found)["longer-cma-es-ahead"])

    assert (ahead(1), ahead(60)) == (1, 0)
