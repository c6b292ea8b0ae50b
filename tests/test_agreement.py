"""Whether searches agree, on outcomes made by hand."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.analysis.agreement import agreement


def table(**errors: Any) -> pd.DataFrame:
    """The final records of one method, by the search that made them."""
    rows = [
        {"search": search, "section": "s", "method": "m", "layer": 1, "seed": seed, "mean_field": error}
        for search, values in errors.items()
        for seed, error in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_paired_against_scipys_own_tests() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(50, 100, 12)
    b, c = a * np.exp(rng.normal(0.01, 0.005, 12)), a * np.exp(rng.normal(0, 0.2, 12))
    rows = agreement(table(a=a, b=b, c=c))
    assert rows["search"].tolist() == ["b", "c"]
    assert rows["equivalent"].tolist() == [True, False]
    raw = []
    for row, other in zip(rows.itertuples(), (b, c), strict=True):
        interval = stats.ttest_1samp(np.log(other / a), 0).confidence_interval(0.95)
        np.testing.assert_allclose([row.low, row.high], np.exp(interval), rtol=1e-12)
        assert row.ratio == pytest.approx(np.exp(np.log(other / a).mean()), rel=1e-12)
        assert (row.runs, row.equal) == (12, 0)
        assert row.seeds == pytest.approx(np.log(a).std(ddof=1), rel=1e-12)
        raw.append(stats.wilcoxon(np.log(other / a)).pvalue)
    assert sorted(rows["p"]) == pytest.approx([2 * min(raw), max(raw)])  # Holm's correction of two
    assert agreement(table(a=a, b=b), margin=0.005)["equivalent"].tolist() == [False]


def test_paired_by_seed_and_not_by_order() -> None:
    a = np.linspace(50, 100, 10)
    shuffled = table(a=a, b=1.001 * a).sample(frac=1, random_state=1).sort_values("search", kind="stable")
    (row,) = agreement(shuffled).itertuples()
    assert row.low == pytest.approx(row.high, rel=1e-12)
    assert row.ratio == pytest.approx(1.001, rel=1e-12)


def test_equal_outcomes_need_no_test() -> None:
    a = np.linspace(50, 100, 10)
    (row,) = agreement(table(a=a, b=a)).itertuples()
    assert (row.ratio, row.low, row.high, row.equal, row.equivalent) == (1, 1, 1, 10, True)
    assert np.isnan(row.p)
    with pytest.raises(ValueError, match="margin must be a finite number > 0, got 0"):
        agreement(table(a=a, b=a), margin=0)


@pytest.mark.parametrize("ratio", [1.1, 1 / 1.1])
def test_searches_that_differ_to_either_side_are_not_equivalent(ratio: float) -> None:
    a = np.linspace(50, 100, 10)
    (row,) = agreement(table(a=a, b=ratio * a)).itertuples()
    assert not row.equivalent
