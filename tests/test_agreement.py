"""Whether searches agree, on outcomes made by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.analysis.intervals import agreement

A = np.random.default_rng(0).uniform(50, 100, 12)


def table(**errors: Any) -> pd.DataFrame:
    """The final records of one method, by the search that made them."""
    rows = [
        {"search": search, "section": "s", "method": "m", "layer": 1, "seed": seed, "mean_field": error}
        for search, values in errors.items()
        for seed, error in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_each_search_is_compared_with_the_first() -> None:
    noise = np.random.default_rng(1).normal(size=(2, 12))
    others = {"b": A * np.exp(0.005 * noise[0] + 0.01), "c": A * np.exp(0.2 * noise[1])}
    rows = agreement(table(a=A, **others)).set_index("search")
    assert rows["equivalent"].to_dict() == {"b": True, "c": False}
    for search, errors in others.items():
        found, logs = rows.loc[search], np.log(errors / A)
        ends = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        assert found[["ratio", "low", "high"]].tolist() == pytest.approx(list(np.exp([logs.mean(), *ends])))
        assert (found["runs"], found["equal"]) == (12, 0)
        assert found["seeds"] == pytest.approx(np.log(A).std(ddof=1))


def test_equal_outcomes_need_no_test() -> None:
    (row,) = agreement(table(a=A, b=A)).itertuples()
    assert (row.ratio, row.low, row.high, row.equal, row.equivalent) == (1, 1, 1, 12, True)
    assert np.isnan(row.p)


@pytest.mark.parametrize("ratio", [1.1, 1 / 1.1])
def test_searches_that_differ_to_either_side_are_not_equivalent(ratio: float) -> None:
    (row,) = agreement(table(a=A, b=ratio * A)).itertuples()
    assert not row.equivalent
