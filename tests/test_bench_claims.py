"""The fit of exponents on tables whose costs are powers of n, and the answers of the recorded run."""

import numpy as np
import pandas as pd
import pytest
from test_bench_summary import powers

from leamvd.analysis import claims
from leamvd.analysis.costs import growth, slopes
from leamvd.bench import read
from leamvd.book.sections import NOTEBOOKS


def test_slopes_are_the_exponents():
    exponents = {"leamvd": 1.0, "pycma full": 2.3, "evotorch SNES": 0.9}
    table = pd.concat(powers(method, time=time) for method, time in exponents.items())
    fits = slopes(table, ["method"], "generation_seconds").set_index("method")
    assert fits["slope"].to_dict() == pytest.approx(exponents)
    assert fits[["sizes", "from n", "to n"]].drop_duplicates().to_numpy().tolist() == [[3, 10**4, 10**6]]


def test_a_slope_is_fitted_by_least_squares_of_logarithms():
    table = powers(sizes=(10, 100, 1000))
    table["generation_seconds"] = [1.0, 10.0, 1000.0]
    assert slopes(table, ["method"], "generation_seconds")["slope"].item() == pytest.approx(1.5)


@pytest.mark.parametrize("nothing", [0.0, np.nan])
def test_a_cost_of_nothing_is_no_point_of_its_line(nothing):
    """A peak of 0 bytes, say: the allocator had them already."""
    table = powers(sizes=(10**4, 10**5, 10**6, 10**7)).assign(peak_bytes=[nothing, 1.0, 1e2, 1e4])
    (row,) = slopes(table, ["method", "dtype"], "peak_bytes").to_dict("records")
    assert (row["sizes"], row["from n"], row["to n"]) == (3, 10**5, 10**7)
    assert row["slope"] == pytest.approx(2)
    (row,) = slopes(table[:2], ["method", "dtype"], "peak_bytes").to_dict("records")
    assert np.isnan(row["slope"]), "one point has no slope"


def test_growth_leaves_out_small_n_threads_and_what_was_not_measured():
    extra = [
        powers(sizes=(1000,)).assign(generation_seconds=1.0),
        powers(sizes=(10**5,), threads=2).assign(generation_seconds=9.0),
        powers(sizes=(10**7,), status="died (signal 9)"),
    ]
    rows = growth(pd.concat([powers(), *extra]))
    assert rows["cost"].tolist() == ["time", "memory"]
    assert rows["slope"].tolist() == pytest.approx([1, 1])
    assert rows["sizes"].tolist() == [3, 3]


def test_the_recorded_run_answers_both():
    rows = claims.evidence({"linear_cost": read(NOTEBOOKS / "recorded" / "linear_cost").optimizers})
    assert claims.answers(rows).loc["C1"].tolist() == claims.answers(rows).loc["C2"].tolist() == ["reproduced"] * 2
    assert rows.loc[rows["claim"] == "C1", "effect"].between(0.97, 1.02).all()
