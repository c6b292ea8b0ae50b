"""C1 and C2 on tables whose costs are powers of n, and the fit of the exponents."""

import numpy as np
import pandas as pd
import pytest
from test_bench_summary import optimizers, powers

from leamvd.bench import read
from leamvd.book.sections import NOTEBOOKS
from leamvd.paper import claims
from leamvd.paper.comparison import slopes

FULL = (1000, 2000, 4000)


def test_slopes_are_the_exponents():
    exponents = {"leamvd": 1.0, "pycma full": 2.3, "pypop7 CDE": 0.9}
    table = pd.concat(powers(method, time=time) for method, time in exponents.items())
    fits = slopes(table, ["method"], "generation_seconds").set_index("method")
    assert fits["slope"].to_dict() == pytest.approx(exponents)
    assert fits[["sizes", "from n", "to n"]].drop_duplicates().to_numpy().tolist() == [[3, 10**4, 10**6]]


def test_a_slope_is_fitted_by_least_squares_of_logarithms():
    table = powers(sizes=(10, 100, 1000))
    table["generation_seconds"] = [1.0, 10.0, 1000.0]
    assert slopes(table, ["method"], "generation_seconds")["slope"].item() == pytest.approx(1.5)


def test_a_line_of_fewer_than_two_points_has_no_slope():
    table = powers(sizes=(10**4, 10**5)).assign(peak_bytes=[np.nan, 5.0])
    (row,) = slopes(table, ["method", "dtype"], "peak_bytes").to_dict("records")
    assert (row["sizes"], row["from n"], row["to n"]) == (1, 10**5, 10**5)
    assert np.isnan(row["slope"])


def test_growth_leaves_out_small_n_threads_and_what_was_not_measured():
    extra = [
        powers(sizes=(1000,)).assign(generation_seconds=1.0),
        powers(sizes=(10**5,), threads=2).assign(generation_seconds=9.0),
        powers(sizes=(10**7,), status="died (signal 9)"),
    ]
    rows = claims.growth(pd.concat([powers(), *extra]))
    assert rows["cost"].tolist() == ["time", "memory"]
    assert rows["slope"].tolist() == pytest.approx([1, 1])
    assert rows["sizes"].tolist() == [3, 3]


def c1(**dtypes):
    return claims.c1(pd.concat(powers(dtype=dtype, **changed) for dtype, changed in dtypes.items()))


def test_c1_needs_both_slopes_in_every_dtype():
    assert c1(float32={}, float64={}).answer == "holds"
    assert c1(float32={}, float64={"time": 1.06}).answer == "does not hold"
    assert c1(float32={"memory": 0.94}, float64={}).answer == "does not hold"
    claim = c1(float32={}, float64={"time": 1.06})
    assert claim.claim == "C1"
    judged = claim.evidence.set_index(["dtype", "cost"])["answer"]
    assert judged[judged == "does not hold"].index.tolist() == [("float64", "time")]
    assert len(judged) == 4


def test_c1_is_of_leamvd_alone():
    others = powers("pycma full", "float64", time=2, memory=2)
    assert claims.c1(pd.concat([powers(), others])).answer == "holds"


def test_c1_is_open_where_too_little_was_measured():
    assert c1(float32={"sizes": (1000, 10_000, 100_000)}).answer == "open"
    assert c1(float32={}, float64={"sizes": (10_000, 100_000)}).answer == "open"
    assert claims.c1(powers().assign(peak_bytes=np.nan)).answer == "open"
    assert claims.c1(optimizers().iloc[:0]).answer == "open"


@pytest.mark.parametrize(
    ("time", "memory", "answer"),
    [(1.0, 2.0, "holds"), (2.0, 1.5, "does not hold"), (2.0, 2.3, "does not hold"), (3.0, 1.9, "holds")],
)
def test_c2_is_decided_by_memory_alone(time, memory, answer):
    """Time is a square where memory is not, and the other way round."""
    claim = claims.c2(powers("pycma full", "float64", FULL, time=time, memory=memory))
    assert claim.answer == answer
    assert claim.evidence["cost"].tolist() == ["memory"]
    assert claim.evidence["slope"].item() == pytest.approx(memory)


def test_c2_is_of_the_full_matrix_alone_and_open_where_it_was_not_measured():
    linear = powers("pycma separable", "float64", FULL)
    square = powers("pycma full", "float64", FULL, time=2, memory=2)
    assert claims.c2(pd.concat([linear, square])).answer == "holds"
    assert claims.c2(linear).answer == "open"
    assert claims.c2(square.iloc[:2]).answer == "open"
    assert claims.c2(square.assign(peak_bytes=np.nan)).answer == "open"


def test_the_recorded_run_answers_both():
    table = read(NOTEBOOKS / "recorded" / "linear_cost").optimizers
    assert claims.c1(table)[:2] == ("C1", "holds")
    assert claims.c2(table)[:2] == ("C2", "holds")
    assert claims.c1(table).evidence["slope"].between(0.98, 1.03).all()
