"""What sections lead with: a recorded study, or the reader's own run in its place."""

import dataclasses
import json
import shutil
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from quick_runs import SMALL, execute, leamvd

from leamvd.book import sections
from leamvd.networks.torch_backend import Computation
from leamvd.paper import comparison, pictures, records, shown, studies

NUMPY = Computation("numpy", "cpu", "float32")
SHIPPED = records.recorded_folder("linear_cost")


def study() -> studies.Study:
    settings = {"methods": ("cd", "lea-mvd", "lea-mvd:x0-excluded"), "n_images": 40, "n_gen": 2, "n_elite": 2}
    return studies.study("mnist-7x7", "quick", layers=(6, 5), seeds=(0, 1), **settings)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of results with a run of `study`."""
    output = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_execute", execute)
        assert leamvd("reproduce", *SMALL, "-p", "seeds=0,1", "--jobs", "1", "--output", str(output)).exit_code == 0
    return output


@pytest.fixture
def recorded(output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Record that run in a folder that takes the place of what ships."""
    monkeypatch.setattr(records, "recorded_folder", lambda name: tmp_path / name)
    shutil.copytree(SHIPPED, tmp_path / "linear_cost")
    assert leamvd("record", str(output / "03_mnist_7x7")).exit_code == 0
    return tmp_path


def test_the_quick_run_leads_with_what_is_recorded(recorded: Path, output: Path) -> None:
    quick = studies.STUDIES["mnist-7x7", "quick"]
    lead = shown.lead(quick, pd.DataFrame(), "nowhere")
    assert (lead.recorded, lead.study) == ("mnist_7x7", study())
    assert lead.title == "scikit-learn digits, 40 images of 7 x 7, 2 runs"
    table = records.run(study(), output)
    pd.testing.assert_frame_equal(lead.table.drop(columns="seconds"), table.drop(columns="seconds"))
    bench = [records.recorded("linear_cost", name) for name in ("objectives", "training")]
    assert lead.table["seconds"].equals(comparison.timed(table, *bench)["seconds"]), "counted, whoever computed"
    assert lead.setting.loc["training images", "value"] == "40"


def test_what_torch_has_computed_is_shown_without_it(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = recorded / "mnist_7x7" / "provenance.json"
    known = json.loads(path.read_text())
    computation = {"backend": "torch", "device": "cpu", "precision": "bfloat16"}
    known["parameters"] |= computation
    known["study"]["training"] |= computation
    path.write_text(json.dumps(known))
    monkeypatch.setitem(sys.modules, "torch", None)
    lead = shown.recorded("mnist_7x7")
    assert lead.setting.loc["backend", "value"] == "torch on cpu in bfloat16"


def test_any_other_run_takes_its_place(recorded: Path, output: Path) -> None:
    table = records.run(study(), output)
    own, shipped = shown.lead(study(), table, output), shown.recorded("mnist_7x7")
    assert (own.recorded, own.title) == (None, shipped.title)
    assert own.table.equals(shipped.table)
    assert list(own.pictures) == list(shipped.pictures)
    assert all((own.pictures[name] == shipped.pictures[name]).all() for name in own.pictures)


def test_curves_and_pictures_of_a_recorded_study_are_those_of_the_papers_methods(recorded: Path, output: Path) -> None:
    shipped, own = shown.recorded("mnist_7x7"), shown.own(study(), records.run(study(), output), output)
    for lead, methods in ((shipped, ["cd", "lea-mvd"]), (own, ["cd", "lea-mvd", "lea-mvd:x0-excluded"])):
        bands, runs = lead.curves("sampled")
        assert bands["method"].unique().tolist() == runs["method"].unique().tolist() == methods
        assert lead.work["method"].unique().tolist() == methods
        assert lead.work["inputs"].unique().tolist() == ["shared"]
        assert list(lead.rows("filters")) == methods
        named = [f"{method}, {depth}" for method in methods for depth in ("RBM 1", "all 2")]
        assert list(lead.rows("reconstructions")) == [pictures.ORIGINAL, *named]
        errors, ends = lead.ends
        assert errors["method"].nunique() == 3
        assert list(ends) == ["mean_field", "test_mean_field"]
        assert {rows["iteration"].min() for rows in ends.values()} == {2}


def test_all_60000_images_lead_before_10000(recorded: Path) -> None:
    assert shown.shipped("mnist-28x28") is None
    for name in ("mnist_28x28_fewer", "mnist_28x28"):
        shutil.copytree(recorded / "mnist_7x7", recorded / name)
        lead = shown.shipped("mnist-28x28")
        assert lead is not None
        assert lead.recorded == name


def test_a_column_for_each_number_of_images(recorded: Path, output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lead = shown.own(study(), records.run(study(), output), output)
    assert shown.by_images(lead).columns.tolist() == ["40 training images"]
    table = lead.table.assign(n_images=60, test_mean_field=lead.table["n_test_images"] * 2.0)
    monkeypatch.setattr(shown, "LEADING", {"mnist-7x7": ["mnist_7x7", "linear_cost"]})
    both = {"mnist_7x7": lead, "linear_cost": lead._replace(table=table)}
    monkeypatch.setattr(shown, "recorded", both.__getitem__)
    columns = shown.by_images(lead)
    assert columns.columns.tolist() == ["40 training images", "60 training images"]
    assert set(columns["60 training images"]) == {"20,000 [20,000, 20,000]"}


def test_searches_that_end_below_their_start_are_counted_once(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lead = shown.own(study(), records.run(study(), output), output)
    table = lead.table.assign(mean_field=1.0)
    better = table.eval("method == 'lea-mvd' and inputs == 'shared' and seed == 1 and iteration == 2")
    table.loc[better, "mean_field"] = 0.5
    monkeypatch.setattr(shown, "shipped", lambda section: None)
    found = shown.quoted(lead._replace(table=table))
    assert (found["searches"], found["improved"]) == (6, 1), "RBM 1 has one kind of inputs"


def test_variants_are_compared_on_the_seeds_that_all_have(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        (inputs, layer, method, seed, iteration, error)
        for inputs in ("own", "shared") for method in ("cd", "lea-mvd") for layer in (1, 2) for seed in (0, 1, 2)
        for iteration, error in ((1, 30.0 if inputs == "own" else 1.0), (0, 40.0 + 20 * (seed == 2)))
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["inputs", "layer", "method", "seed", "iteration", "mean_field"])
    table["n_images"] = 5_000
    others = table[table["seed"] < 2].replace({"method": {"lea-mvd": "random"}})
    others.loc[others["seed"].eq(1) & others["iteration"].eq(1), "mean_field"] = 32.0
    recorded = dict(zip(shown.SETTINGS, (table, others), strict=True))
    monkeypatch.setattr(shown.records, "recorded", recorded.__getitem__)
    found = shown.variants()
    assert found.index.tolist() == [(1, "lea-mvd"), (1, "random"), (2, "lea-mvd"), (2, "random")]
    assert found["start"].tolist() == [80.0] * 4, "the third seed, and shared inputs, are left out"
    assert found["end"].tolist() == [60.0, 62.0, 60.0, 62.0]
    assert found["fallen, %"].tolist() == [25.0, 22.5, 25.0, 22.5]
    half = 12.706205 * np.std([25.0, 20.0], ddof=1) / np.sqrt(2)
    assert found["high"].tolist() == pytest.approx([25.0, 22.5 + half, 25.0, 22.5 + half])
    assert found["low"].tolist() == pytest.approx([25.0, 22.5 - half, 25.0, 22.5 - half])


def records_of(error: float) -> pd.DataFrame:
    """Return records of study A's methods where LEA-MVD ends at an error, and the others at 1."""
    rows = [
        (method, inputs, layer, seed, i, 10.0 if i == 0 else (error if method == "lea-mvd" else 1.0) + 0.01 * seed)
        for method in ("cd", "lea-mvd", "cma-es") for inputs in ("own", "shared") for layer in (1, 2, 3)
        for seed in range(3) for i in range(12)
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["method", "inputs", "layer", "seed", "iteration", "mean_field"])
    return table.assign(mean_field_ratio=table["mean_field"], n_images=10, n_visible=49)


def test_claims_rest_on_what_is_recorded_or_on_the_readers_own_seeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "recorded_folder", lambda name: tmp_path / name)
    (tmp_path / "mnist_7x7").mkdir()
    monkeypatch.setattr(records, "recorded", lambda name, table: records_of(0.5))
    paper = studies.STUDIES["mnist-7x7", "paper"]

    def effect(recorded: str | None, study: studies.Study) -> float:
        answers, tests = shown.answered(shown.Shown(recorded, study, "MNIST", NUMPY, records_of(0.25), {}))
        assert answers.index.tolist() == sorted(
            set(tests.index.get_level_values("claim")), key=shown.CLAIMS["mnist-7x7"].index
        )
        return float(tests.loc[("C5", "as printed", "RBM 2, lea-mvd / cd"), "effect"])

    assert effect("mnist_7x7", paper) == pytest.approx(0.5, rel=0.02)
    assert effect(None, dataclasses.replace(paper, seeds=(7, 8, 9))) == pytest.approx(0.25, rel=0.04)
    assert effect(None, dataclasses.replace(paper, n_images=1000)) == pytest.approx(0.5, rel=0.02)
    answers, tests = shown.answered(
        shown.Shown(None, studies.STUDIES["mnist-28x28", "quick"], "digits", NUMPY, records_of(1.0), {})
    )
    assert (set(answers.to_numpy().flat), len(tests)) == ({"not yet run"}, 0)


def test_prose_quotes_the_recorded_study_whatever_is_shown(recorded: Path) -> None:
    shipped = shown.recorded("mnist_7x7")
    other = shown.Shown(None, shipped.study, "others", NUMPY, shipped.table.assign(mean_field=0.0), {})
    found = shown.quoted(other)
    assert found["cd-2-error"] == comparison.quoted(shipped.table)["cd-2-error"] > 0
    assert (found["runs"], found["n-images"]) == (2, 40)
    equal = comparison.equal(shipped.table).loc[("shared", 2, "passes"), "lea-mvd"]
    assert found["passes-lea-mvd-2"] == comparison.six_digits(equal)
