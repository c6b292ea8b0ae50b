"""Results of a study are the same whether they are computed or read; and which profiles of a section there are."""

import dataclasses
import json
import sys
from pathlib import Path

import pandas as pd
import pytest
from quick_runs import SMALL, execute, leamvd

from leamvd.analysis import claims, comparison
from leamvd.book import sections
from leamvd.campaign import archive
from leamvd.experiments.stacks import ORIGINAL
from leamvd.studies import catalog, records, results
from leamvd.studies.study import Study


def study() -> Study:
    settings = {"methods": ("cd", "lea-mvd", "lea-mvd:x0-excluded"), "n_images": 40, "n_gen": 2, "n_elite": 2}
    return catalog.study("mnist-7x7", "quick", layers=(6, 5), seeds=(0, 1), **settings)


@pytest.fixture(scope="module")
def computed(tmp_path_factory: pytest.TempPathFactory) -> tuple[results.Results, Path]:
    """Return the results of a small study, and the folder of the run that has computed them."""
    output = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_execute", execute)
        assert leamvd("reproduce", *SMALL, "-p", "seeds=0,1", "--jobs", "1", "--output", str(output)).exit_code == 0
    return results.run(study(), output), output


@pytest.fixture
def recorded(computed: tuple[results.Results, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Study:
    """Record that run in an archive of its own."""
    monkeypatch.setattr(archive, "folder", lambda name: tmp_path / name)
    done = leamvd("record", str(computed[1] / "03_mnist_7x7"), "--name", "small")
    assert done.exit_code == 0, done.output
    return dataclasses.replace(study(), archived="small")


def test_what_is_read_is_what_was_computed(
    computed: tuple[results.Results, Path], recorded: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leamvd.studies.study.load", None)
    read, own = results.run(recorded, "nowhere"), computed[0]
    assert (read.study, read.images, read.computation) == (recorded, own.images, own.computation)
    assert read.images == results.dataset(recorded) == "scikit-learn digits"
    pd.testing.assert_frame_equal(read.table, own.table)
    assert list(read.pictures) == list(own.pictures)
    assert all((read.pictures[name] == own.pictures[name]).all() for name in own.pictures)


def test_of_a_larger_record_the_rows_of_the_studys_inputs_are_read(recorded: Study) -> None:
    table = results.run(dataclasses.replace(recorded, inputs=("shared",)), "nowhere").table
    assert table["inputs"].unique().tolist() == ["shared"]


def test_what_torch_has_computed_is_read_without_it(
    recorded: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small" / "provenance.json"
    known = json.loads(path.read_text())
    computation = {"backend": "torch", "device": "cpu", "precision": "bfloat16"}
    known["parameters"] |= computation
    known["study"]["training"] |= computation
    path.write_text(json.dumps(known))
    monkeypatch.setitem(sys.modules, "torch", None)
    assert results.run(recorded, "nowhere").computation == ("torch", "cpu", "bfloat16")


def test_pictures_are_of_the_methods_asked_for(computed: tuple[results.Results, Path]) -> None:
    methods = ["lea-mvd", "cd"]
    assert list(computed[0].rows("filters", methods)) == ["cd", "lea-mvd"]
    named = [f"{method}, {depth}" for method in ("cd", "lea-mvd") for depth in ("RBM 1", "all 2")]
    assert list(computed[0].rows("reconstructions", methods)) == [ORIGINAL, *named]


# ---- profiles


@pytest.mark.parametrize("section", catalog.ARCHIVED)
def test_every_recorded_study_is_in_the_archive_with_its_settings(section: str) -> None:
    for profile, one in catalog.page(section, "recorded").items():
        known = json.loads((archive.folder(one.archived) / "provenance.json").read_text(encoding="utf-8"))["study"]
        own = {"layers": one.layers, "side": one.side, "pooling": one.pooling, "binarize": one.binarize}
        own |= {"features": one.features, "n_images": one.n_images}
        assert own == {name: tuple(v) if isinstance(v := known[name], list) else v for name in own}, profile
        assert set(one.inputs) <= set(known["inputs"])


def test_a_page_shows_all_that_is_recorded_or_one_study() -> None:
    assert [*catalog.page("mnist-28x28", "recorded")] == ["paper", "fewer", "variants"]
    lead, *_ = catalog.page("mnist-28x28", "recorded").values()
    assert lead == catalog.study("mnist-28x28", "recorded")
    assert dataclasses.replace(lead, archived="") == catalog.study("mnist-28x28", "paper")
    assert catalog.page("mnist-7x7", "quick", seeds=[4]) == {"quick": catalog.study("mnist-7x7", "quick", seeds=[4])}


def test_what_is_recorded_has_fixed_parameters(tmp_path: Path) -> None:
    refused = leamvd("reproduce", "mnist-7x7", "--profile", "recorded", "-p", "n_gen=3", "--output", str(tmp_path))
    assert (refused.exit_code, "n_gen=3 needs profile quick or paper" in refused.output) == (2, True)


# ---- what claims rest on


def test_only_a_registered_study_settles_claims() -> None:
    rows, paper = pd.DataFrame({"seed": [7]}), catalog.study("mnist-7x7", "paper")
    assert claims.settling(catalog.study("mnist-7x7", "recorded"), rows).keys() == claims.RECORDED.keys()
    for own in (paper, dataclasses.replace(paper, seeds=(7,))):
        ((name, table),) = claims.settling(own, rows).items()
        assert (name, table is rows) == ("mnist_7x7", True)
    for other in (dataclasses.replace(paper, n_images=1000), catalog.study("mnist-7x7", "quick")):
        assert claims.settling(other, rows) == {}


def test_claims_are_judged_by_the_archive_or_by_the_same_studies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert claims.judged("quick", tmp_path) == {}
    assert claims.judged("recorded", tmp_path).keys() == claims.RECORDED.keys()
    asked = []
    monkeypatch.setattr(claims.records, "run", lambda study, output: asked.append(study) or study.section)
    measured = records.Measured(*3 * [pd.DataFrame({"seed": [0]})])
    monkeypatch.setattr(claims.records, "measure", lambda study, output: asked.append(study) or measured)
    tables = claims.judged("paper", tmp_path)
    assert tables.keys() == claims.RECORDED.keys() - {"linear_cost"}
    assert len(tables["classification"]) == 2
    names = [(own.section, own.side) for own in asked]
    assert names == [
        ("mnist-7x7", 7),
        ("mnist-28x28", 28),
        ("readings", 7),
        ("classification", 7),
        ("classification", 28),
    ]
    assert all(own == catalog.study(own.section, "paper") for own in asked if own.side == 7)


def test_without_a_study_no_claim_is_answered() -> None:
    rows = claims.evidence({})
    assert rows.empty
    assert set(claims.answers(rows).to_numpy().flat) == {"not yet run", "not measured"}
    assert claims.quoted(rows)["c4-as-printed"] == "not yet run"
    assert claims.other_measurements({}).empty
    assert claims.other_margins({}).empty


# ---- tables of pages


def test_more_methods_than_a_figure_can_tell_apart_are_the_papers() -> None:
    table = pd.DataFrame({"method": [*comparison.PAPER, "lea-mvd:printed"]})
    assert comparison.drawn(table).equals(table)
    more = pd.concat([table, pd.DataFrame({"method": ["random"]})], ignore_index=True)
    assert comparison.drawn(more)["method"].tolist() == ["cd", "lea-mvd", "cma-es"]


def test_what_is_reached_at_equal_work_is_quoted(computed: tuple[results.Results, Path]) -> None:
    rows = computed[0].table
    table = rows.assign(seconds=rows["iteration"].astype(float))  # a busy machine may not come to a first iteration
    found = comparison.quoted(table)
    equal = comparison.equal(table).loc[("shared", 2, "passes"), "lea-mvd"]
    assert found["passes-lea-mvd-2"] == comparison.six_digits(equal)
    budgets = [key for key in found if key.partition("-")[0] in comparison.BUDGETS]
    assert len(budgets) == 3 * 3 * 2, "budgets, methods, layers"
