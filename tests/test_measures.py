"""Controls of the reconstruction error, and the proposition on weights that win by it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit

from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import constant_baseline
from leamvd.paper import datasets, intervals, measures, records

DATA = datasets.load("digits", side=7, dtype="float64", n_train=300)


@pytest.fixture(scope="module")
def first():
    cd = ContrastiveDivergence(DATA.train, 12, seed=0)
    for _ in range(5):
        cd.epoch()
    return cd.rbm


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


def test_paths_begin_with_the_epoch_that_optimizers_start_from():
    table = pd.concat([runs(), runs(seed=1).assign(mean_field_ratio=0.0)], ignore_index=True)
    found = measures.paths(table)
    assert found["iteration"].tolist() == [1, 2, 3, 4, 0, 1, 2, 3]
    assert np.allclose(found["mean_field_ratio"], np.array([400, 300, 250, 200, 400, 390, 380, 100]) / 1000)
    assert np.allclose(found["sampled_ratio"], np.array([600, 700, 750, 800, 600, 610, 620, 900]) / 500)


def test_explained_is_in_units_that_layers_share():
    found = measures.explained(runs()).set_index("method")
    lea = found.loc["lea-mvd"]
    assert (lea["input_std"], lea["constant"], lea["error"], lea["error per unit"]) == pytest.approx((0.2, 5, 1, 0.25))
    assert found["% explained"].tolist() == pytest.approx([60, 80])
    assert found[["low", "high"]].isna().all(axis=None), "of one run"
    several = pd.concat([runs(), runs(seed=1).assign(mean_field=300.0)], ignore_index=True)
    lea = measures.explained(several).set_index("method").loc["lea-mvd"]
    assert lea[["low", "error", "high"]].tolist() == pytest.approx(intervals.interval(np.array([1.0, 3.0])))
    assert found["% explained, sampled"].tolist() == pytest.approx([-60, -80]), "worse than the constant image"


def test_a_generation_takes_as_long_as_its_evaluations():
    objectives, training = (records.recorded("linear_cost", name) for name in ("objectives", "training"))
    first = "threads == 1 and n_visible == 784 and n_hidden == 500"
    evaluations = objectives.query(f"{first} and backend == 'numpy' and precision == 'float32'").iloc[0]
    epoch = training.query(f"{first} and trainer == 'leamvd'").iloc[0]
    generation = 20 * evaluations["seconds"] / evaluations["population_size"] / evaluations["n_images"]
    expected = generation / (epoch["seconds"] / epoch["n_images"])
    assert measures.generation_in_epochs(objectives, training) == pytest.approx(expected, rel=1e-5)


def test_what_is_not_recorded_yet_is_led_by_the_own_run(tmp_path, monkeypatch):
    monkeypatch.setattr(records, "recorded_folder", lambda name: tmp_path / name)
    (tmp_path / "there").mkdir()
    recorded = pd.concat([runs(seed=seed, n_visible=49, n_images=60_000) for seed in (0, 1)])
    recorded.to_csv(tmp_path / "there" / "runs.csv", index=False)
    own = runs()
    tables, titles, overview = measures.lead({"one": "there", "other": "missing"}, own, "digits")
    assert tables["other"] is own is tables["this run"]
    assert len(tables["one"]) == len(recorded)
    assert titles == {
        "one": "MNIST, 60,000 images of 7 x 7, 2 runs",
        "other": "digits, 100 images of 2 x 2, 1 run",
        "this run": "digits, 100 images of 2 x 2, 1 run",
    }
    assert overview["shown"].tolist() == ["recorded as there", "missing is not recorded yet: this run", "this run"]
    assert overview["runs"].tolist() == [2, 1, 1]


def test_quoted_numbers_are_those_of_the_tables():
    upper = runs(layer=3)
    lea = upper["method"] == "lea-mvd"
    table = pd.concat([runs(), upper.assign(method=upper["method"].mask(lea, "lea-mvd:x0-excluded"))])
    won = pd.DataFrame({"error": [2.0, 1e-6], "cd error": [0.3, 0.1], "accuracy": [0.9, 0.8], "accuracy above": 0.1})
    found = measures.quoted(table, won)
    assert (found["x0-excluded-own-error"], found["x0-excluded-own-explained"]) == pytest.approx((1.0, 80.0))
    assert (found["cd-own-sampled"], found["cd-own-passes"], found["x0-excluded-own-passes"]) == pytest.approx(
        (-60, 0.4, 0.78)
    )
    assert np.isnan([found["cd-shared-error"], found["lea-mvd-own-error"]]).all(), "not run"
    assert [found[f"won-{name}"] for name in ("error", "cd", "accuracy", "above")] == pytest.approx([1e-6, 0.3, 80, 10])


def test_reconstructions_have_a_row_for_each_stack(first):
    rows = measures.reconstructions(DATA, {"one": [first], "two": measures.collapsed(first, 1e-3, DATA.train, 4)})
    assert {name: V.shape for name, V in rows.items()} == dict.fromkeys(("original", "one", "two"), (1, 10, 7, 7))
    rows = {name: V[0] / 255 for name, V in rows.items()}
    assert [np.flatnonzero((DATA.test == V.ravel()).all(axis=1)).size > 0 for V in rows["original"]] == [True] * 10
    assert np.allclose(rows["one"].reshape(10, -1), first.reconstruct(rows["original"].reshape(10, -1)))
    assert np.ptp(rows["two"], axis=0).max() < 1e-12, "the same for all"


def test_the_collapsed_rbm_is_the_constant_image(first):
    lower, upper = measures.collapsed(first, 0.1, DATA.train, 8)
    H = lower.hidden_given_visible(DATA.train)
    assert np.allclose(H, expit(first.c + 0.1 * DATA.train @ first.W))
    assert np.allclose(upper.reconstruct(H), H.mean(axis=0), rtol=1e-12)
    assert upper.W.shape == (12, 8)
    assert not upper.W.any()
    assert ((H - upper.reconstruct(H)) ** 2).sum() == pytest.approx(constant_baseline(H), rel=1e-9)


def test_the_proposition(first):
    """The error is at most scale^2 / 16 trace(W^T Cov(v) W), and nearly so where biases are zero and weights small."""
    covariance = np.cov(DATA.train.T, bias=True)
    for scale in (3.0, 1.0, 0.1, 1e-3):
        own = measures.bound(first, scale, DATA.train)
        assert own == pytest.approx(scale**2 / 16 * np.trace(first.W.T @ covariance @ first.W))
        H = measures.collapsed(first, scale, DATA.train, 4)[0].hidden_given_visible(DATA.train)
        assert constant_baseline(H) / len(H) <= own
    free = first._replace(c=np.zeros_like(first.c))
    H = measures.collapsed(free, 1e-4, DATA.train, 4)[0].hidden_given_visible(DATA.train)
    assert constant_baseline(H) / len(H) == pytest.approx(measures.bound(free, 1e-4, DATA.train), rel=1e-3)


def test_collapse_wins_by_both_errors_and_loses_what_was_learned(first):
    table = measures.collapse(DATA, first, (1.0, 0.03, 1e-3), 12, epochs=3).set_index("scale")
    assert (table["error"] <= table["bound"]).all()
    assert table["error"].tolist() == pytest.approx(table["sampled"].tolist(), rel=1e-9), "no bit of it is used"
    assert table.loc[1e-3, "error"] < 1e-4 * table.loc[1.0, "cd error"]
    assert table["ratio"].tolist() == pytest.approx([1, 1, 1], rel=1e-9)
    assert table.loc[1.0, "cd ratio"] < 1 < table.loc[1e-3, "cd ratio"]
    assert table["accuracy"].min() > 0.75, "the features of RBM 1 hold what they held"
    assert table["accuracy above"].max() < 0.2
    H = measures.collapsed(first, 1.0, DATA.train, 12)[0].hidden_given_visible(DATA.train)
    cd = ContrastiveDivergence(H, 12, seed=0)
    for _ in range(3):
        cd.epoch()
    expected = ((H - cd.rbm.reconstruct(H)) ** 2).sum()
    assert table.loc[1.0, ["cd error", "cd ratio"]].tolist() == pytest.approx(
        [expected / len(H), expected / constant_baseline(H)]
    )


def test_accuracy_does_not_depend_on_the_scale_of_features():
    own = measures.accuracy(DATA.train, DATA.test, DATA)
    assert own == pytest.approx(measures.accuracy(1e-6 * DATA.train, 1e-6 * DATA.test, DATA), abs=1e-9)
    assert 0.85 < own < 1
