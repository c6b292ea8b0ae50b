"""Controls of the reconstruction error."""

import pandas as pd
import pytest
from test_costs import bench

from leamvd.analysis import measures
from leamvd.analysis.statistics import interval


def runs(**columns):
    """Return records of one layer: contrastive divergence with 4 epochs, LEA-MVD with 3 generations of 10."""
    cd = pd.DataFrame({"method": "cd", "iteration": range(5), "evaluations": 0, "passes": range(5)})
    cd = cd.assign(products=5 * cd["passes"], mean_field=[800.0, 400, 300, 250, 200])
    lea = pd.DataFrame({"method": "lea-mvd", "iteration": range(4), "evaluations": [0, 2, 12, 22]})
    lea = lea.assign(passes=1 + lea["evaluations"], products=5 + 2 * lea["evaluations"])
    lea = lea.assign(mean_field=[400.0, 390, 380, 100])
    known = {"inputs": "own", "layer": 1, "seed": 0, "n_images": 100, "n_test_images": 10, "input_std": 0.2}
    table = pd.concat([cd, lea], ignore_index=True).assign(**(known | {"n_visible": 4, "n_hidden": 3} | columns))
    table["sampled"] = 1000 - table["mean_field"]
    return table.assign(mean_field_ratio=table["mean_field"] / 500, sampled_ratio=table["sampled"] / 500)


def test_explained_is_in_units_that_layers_share():
    found = measures.explained(runs()).set_index("method")
    lea = found.loc["lea-mvd"]
    assert (lea["input_std"], lea["constant"], lea["error"], lea["error per unit"]) == pytest.approx((0.2, 5, 1, 0.25))
    assert found["% explained"].tolist() == pytest.approx([60, 80])
    assert found[["low", "high"]].isna().all(axis=None), "of one run"
    several = pd.concat([runs(), runs(seed=1).assign(mean_field=300.0)], ignore_index=True)
    lea = measures.explained(several).set_index("method").loc["lea-mvd"]
    assert lea[["error", "low", "high"]].tolist() == pytest.approx(interval(pd.Series([1.0, 3.0])))
    assert found["% explained, sampled"].tolist() == pytest.approx([-60, -80]), "worse than the constant image"


def test_a_generation_takes_as_long_as_its_evaluations():
    bench_tables = bench([(784, 500)], {(784, 500): 3.0})  # an epoch takes three evaluations, a generation makes twenty
    assert measures.generation_in_epochs(*bench_tables) == pytest.approx(20 / 3, rel=1e-5)


def test_quoted_numbers_are_those_of_the_tables():
    upper = runs(layer=3)
    lea = upper["method"] == "lea-mvd"
    table = pd.concat([runs(), upper.assign(method=upper["method"].mask(lea, "lea-mvd:x0-excluded"))])
    won = pd.DataFrame({"error": [2.0, 1e-6], "cd error": [0.3, 0.1], "accuracy": [0.9, 0.8], "accuracy above": 0.1})
    found = measures.quoted(table, won)
    assert (found["x0-excluded-own-error"], found["x0-excluded-own-explained"]) == pytest.approx((1.0, 80.0))
    assert found["cd-own-sampled"] == pytest.approx(-60)
    assert not {"cd-shared-error", "lea-mvd-own-error"} & set(found), "not run"
    assert [found[f"won-{name}"] for name in ("error", "cd", "accuracy", "above")] == pytest.approx([1e-6, 0.3, 80, 10])
