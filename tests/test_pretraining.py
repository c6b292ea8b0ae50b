"""Measurements of stacks as pieces of a study: addresses, the store, tables, the record and its verification."""

import dataclasses
import io
import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from quick_runs import execute, leamvd
from small_studies import SMALL, same

from leamvd.book import sections
from leamvd.paper import campaign, pretraining, records, studies, verification, versions
from leamvd.paper.figures import pretraining as draw
from leamvd.paper.figures.style import plotted
from leamvd.paper.pieces import Measurement
from leamvd.paper.pretraining import Measured
from leamvd.paper.store import MANIFEST
from leamvd.paper.studies import Classification, images

given = {field.name: getattr(SMALL, field.name) for field in dataclasses.fields(SMALL)}
given |= {"section": "classification", "inputs": ("own",), "seeds": (3, 4), "n_images": 60}
STUDY = Classification(**given, scales=("0.1",), epochs=2, n_chains=10, n_temperatures=5)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Measured]:
    """Return the folder of a study, and what was measured."""
    output = tmp_path_factory.mktemp("whole")
    return output, pretraining.run(STUDY, output)


# ---- the study


def test_measurements_come_after_their_stacks_seed_by_seed() -> None:
    pieces = STUDY.pieces()
    assert len(pieces) == len(set(pieces)) == 2 * (2 * 2 + 3 * 3)
    for i, piece in enumerate(pieces):
        assert set(piece.below) <= set(pieces[:i])
    assert [piece.seed for piece in pieces] == [3] * 13 + [4] * 13
    names = [piece.name for piece in pieces]
    assert "fine-tuning-random-0.1-layers2-seed4" in names
    assert len(set(names)) == len(names)
    assert SMALL.pieces() == SMALL.units()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scales": ("small",)}, "scales must be numbers >= 0 or 'glorot', got 'small'"),
        ({"scales": ("-1",)}, "scales must be numbers >= 0 or 'glorot', got '-1'"),
        ({"inputs": ("own", "shared")}, "inputs must be own"),
        ({"epochs": 0}, "epochs must be an integer >= 1"),
        ({"tuning_rate": 0.0}, "tuning_rate must be a finite number > 0"),
        ({"n_chains": 12}, "n_chains must be a multiple of 5, got 12"),
    ],
)
def test_bad_settings(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(STUDY, **changes)


def test_layers_have_the_addresses_that_they_have_without_measurements() -> None:
    data = images(STUDY)
    with_them, without = records.addresses(STUDY, data), records.addresses(STUDY.stacks, data)
    assert {unit: with_them[unit] for unit in without} == without


def test_addresses_depend_on_what_the_numbers_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(STUDY)
    before = records.addresses(STUDY, data)

    def changed(study: Classification) -> set[str]:
        return {piece.name.rpartition("-seed")[0] for piece, at in records.addresses(study, data).items()
                if before.get(piece) not in (None, at)}  # fmt: skip

    tuned = {f"fine-tuning-{method}-layers2" for method in ("cd", "lea-mvd", "random-0.1")}
    assert changed(dataclasses.replace(STUDY, epochs=3)) == tuned
    assert changed(dataclasses.replace(STUDY, tuning_rate=0.3)) == tuned
    likely = {name.replace("fine-tuning", "likelihood").replace("layers2", "layers1") for name in tuned}
    assert changed(dataclasses.replace(STUDY, n_temperatures=6)) == likely
    assert changed(dataclasses.replace(STUDY, n_chains=20)) == likely
    assert changed(dataclasses.replace(STUDY, scales=("0.1", "glorot"))) == set()
    sigma = dataclasses.replace(STUDY, training=dataclasses.replace(STUDY.training, sigma0=0.2))
    assert {name for name in changed(sigma) if "own" not in name} == {
        "likelihood-lea-mvd-layers1", "probe-lea-mvd-layers2", "fine-tuning-lea-mvd-layers2"
    }  # fmt: skip
    code = versions.code
    monkeypatch.setattr(versions, "MEASURING", ("paper/tasks.py",))
    assert versions.code() == code()
    assert all(
        ("own" in name) == (name not in changed(STUDY)) for name in {p.name.rpartition("-seed")[0] for p in before}
    )


def test_the_code_of_measurements_is_all_that_they_import() -> None:
    sources = versions.sources(versions.PACKAGE, versions.MEASURING)
    assert [path.name for path in sources] == ["classification.py", "likelihood.py"]
    named = {*versions.sources(versions.PACKAGE, versions.COMPUTING), *sources}
    for path in sources:
        lines = [line for line in path.read_text().splitlines() if line.startswith("from leamvd.paper import")]
        modules = {f"{name.strip()}.py" for line in lines for name in line.partition("import ")[2].split(",")}
        assert modules <= {path.name for path in named}


# ---- computed anywhere


def test_in_slices_the_same_comes_out(
    whole: tuple[Path, Measured], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign.Campaign.run, "__kwdefaults__", {"slice_seconds": 0})
    assert records.compute(STUDY, tmp_path, jobs=1) == []
    assert list((tmp_path / "store" / "unfinished").glob("*")) == []
    for ours, theirs in zip(pretraining.run(STUDY, tmp_path), whole[1], strict=True):
        same(ours, theirs)


def test_a_measurement_can_be_sent_to_another_process() -> None:
    for piece in STUDY.measurements():
        task = records.task(STUDY, piece)
        assert pickle.loads(pickle.dumps(task)) == task


def test_stored_stacks_are_used_and_nothing_is_measured_twice(whole: tuple[Path, Measured], tmp_path: Path) -> None:
    records.run(STUDY.stacks, tmp_path)
    left = records.expected(STUDY, tmp_path, jobs=1)
    assert set(left.seconds) == set(STUDY.measurements())
    assert min(left.seconds.values()) > 0
    assert min(left.total, left.memory, left.disk) > 0
    assert records.expected(STUDY, whole[0], jobs=1).seconds == {}


def test_what_is_done_keeps_no_weights(whole: tuple[Path, Measured]) -> None:
    places = list((whole[0] / "store").glob("fine-tuning-*"))
    assert len(places) == 6
    for place in places:
        assert json.loads((place / MANIFEST).read_text())["depends_on"]["measurement"] == "fine-tuning"
        with np.load(io.BytesIO((place / "weights.npz").read_bytes())) as file:
            assert list(file) == []


# ---- tables


def test_tables(whole: tuple[Path, Measured]) -> None:
    runs, probes, likelihoods = whole[1]
    for table in whole[1]:
        assert list(table.columns[:3]) == pretraining.KEY
        assert table["method"].unique().tolist() == ["cd", "lea-mvd", "random-0.1"]
        assert set(table["study"]) == {"mnist-7x7"}
    assert runs.groupby(pretraining.KEY)["epoch"].apply(list).tolist() == [[1, 2]] * 6
    assert probes.groupby(pretraining.KEY)["layer"].apply(list).tolist() == [[0, 1, 2]] * 6
    assert likelihoods.groupby(pretraining.KEY)["chains"].apply(list).tolist() == [[2, 4, 6, 8, 10]] * 6
    assert runs["test_error"].between(0, 1).all()
    pixels = probes[probes["layer"] == 0]
    assert pixels["test_error"].nunique() == 1, "the pixels are the same for every stack"


def made_up() -> pd.DataFrame:
    rows = [
        ("s", method, seed, epoch, error + 0.01 * seed + 0.1 / epoch)
        for method, error in (("cd", 0.1), ("lea-mvd", 0.3))
        for seed in range(3)
        for epoch in (1, 2)
    ]
    return pd.DataFrame(rows, columns=["study", "method", "seed", "epoch", "test_error"])


def test_means_and_pairs_of_known_numbers() -> None:
    table = pretraining.means(made_up(), "test_error", ["epoch"]).set_index(["method", "epoch"])
    assert table.loc[("cd", 1), "mean"] == pytest.approx(0.21)
    half = 4.302652729911275 * 0.01 / np.sqrt(3)  # Student's t of two degrees of freedom
    assert table.loc[("lea-mvd", 2), ["low", "high"]].tolist() == pytest.approx([0.36 - half, 0.36 + half])
    last = pretraining.final(made_up(), "epoch")
    assert last["epoch"].tolist() == [2] * 6
    uneven = last.assign(test_error=last["test_error"] + [0, 0, 0, 0.02, 0, -0.02])
    (pair,) = pretraining.paired(uneven, "test_error").itertuples(index=False)
    assert (pair.method, pair.baseline, pair.runs) == ("lea-mvd", "cd", 3)
    half = 4.302652729911275 * 0.02 / np.sqrt(3)
    assert [pair.difference, pair.low, pair.high] == pytest.approx([0.2, 0.2 - half, 0.2 + half])


def test_quoted_numbers_and_the_summary(whole: tuple[Path, Measured]) -> None:
    found = whole[1]
    quoted, table = pretraining.quoted(found), pretraining.summary(found)
    last = found.runs[(found.runs["epoch"] == 2) & (found.runs["method"] == "cd")]
    assert quoted["7x7-error-cd"] == pytest.approx(100 * last["test_error"].mean())
    assert quoted["7x7-error-random"] == quoted["7x7-error-random-0.1"]
    assert quoted["7x7-difference"] == pytest.approx(quoted["7x7-error-lea-mvd"] - quoted["7x7-error-cd"], abs=1e-9)
    assert quoted["7x7-seeds"] == 2
    assert table.loc[("mnist-7x7", "cd"), "fine-tuned, %"].startswith(f"{quoted['7x7-error-cd']:.2f} [")
    assert table["runs"].tolist() == [2, 2, 2]


def test_each_study_is_quoted_by_its_own_numbers(whole: tuple[Path, Measured]) -> None:
    other = Measured(*(table.assign(study="mnist-28x28") for table in whole[1]))
    other.runs["test_error"] /= 2
    quoted = pretraining.quoted(Measured(*(pd.concat(pair) for pair in zip(whole[1], other, strict=True))))
    assert quoted["28x28-error-cd"] == pytest.approx(quoted["7x7-error-cd"] / 2)
    assert quoted["28x28-probe-cd"] == quoted["7x7-probe-cd"]


def test_figures_show_the_tables() -> None:
    two = pd.concat([made_up(), made_up().assign(study="t"), made_up().assign(method="random-0.1")])
    curves = pretraining.means(two, "test_error", ["epoch"])
    first, second = plotted(draw.test_errors(curves, "title"))
    assert (first["title"], second["title"]) == ("stacks of s", "stacks of t")
    own = curves[(curves["study"] == "s") & (curves["method"] == "lea-mvd")]
    np.testing.assert_allclose(first["arrays"][1], np.column_stack([own["epoch"], 100 * own["mean"]]))
    assert len({look.split()[0] for look in first["looks"][:3]}) == 3, "a color for each method"
    layers = curves.rename(columns={"epoch": "layer"}).assign(layer=lambda table: table["layer"] - 1)
    (panel, _) = plotted(draw.probe_errors(layers, "title"))
    assert panel["ticks"][0] == ["pixels", "RBM 1"]
    bars = pretraining.means(pretraining.final(two, "epoch").assign(x=-1.0), "x")
    figure = draw.log_likelihoods(bars, pd.Series({"s": -2.0, "t": -3.0}), "title")
    assert [axes.lines[-1].get_ydata()[0] for axes in figure.axes] == [-2.0, -3.0]
    assert plotted(figure)[0]["ticks"][0] == ["cd", "lea-mvd", "random-0.1"]


# ---- recorded and verified


COMMAND = (
    "reproduce", "classification", "-p", "layers=6,5", "-p", "n_images=60", "-p", "n_gen=2", "-p", "scales=0.1",
    "-p", "epochs=2", "-p", "n_chains=10", "-p", "n_temperatures=5", "-p", "seeds=0-2", "--jobs", "1",
)  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the folder of a run, and that of its record."""
    output, folder = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_execute", execute)
        result = leamvd(*COMMAND, "--output", str(output))
        assert result.exit_code == 0, result.output
        assert "likelihood, 7 x 7" in leamvd(*COMMAND, "--output", str(output), "--dry-run").output
        (run,) = output.glob("08_classification/quick-*")
        patch.setattr(records, "recorded_folder", lambda name: folder / name)
        result = leamvd("record", str(run))
        assert result.exit_code == 0, result.output
    return run, folder


@pytest.fixture
def recorded(made: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(made[1], tmp_path / "recorded")
    monkeypatch.setattr(records, "recorded_folder", lambda name: folder / name)
    return folder / "classification"


def test_a_record_holds_what_was_measured(made: tuple[Path, Path], recorded: Path) -> None:
    names = ["likelihoods.csv.xz", "probes.csv.xz", "provenance.json", "runs.csv.xz"]
    assert sorted(path.name for path in recorded.iterdir()) == names
    about = json.loads((made[0] / "run.json").read_text())["parameters"]
    study = studies.study("classification", "quick", **studies.parameters(about))
    found = pretraining.recorded()
    assert found is not None
    assert isinstance(study, Classification)
    for ours, theirs in zip(found, pretraining.run(study, made[0].parents[1]), strict=True):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    shutil.rmtree(recorded)
    assert pretraining.recorded() is None


def test_a_record_is_verified(recorded: Path) -> None:
    changed, table = verification.verify("classification", units=5)
    assert changed == []
    assert list(table["method"]) == ["random-0.1"] * 3 + ["cd", "lea-mvd"]
    assert list(table["inputs"]) == ["likelihood", "probe", "fine-tuning", "likelihood", "likelihood"]
    assert not table["drifts"].any()
    assert table["difference"].max() < 1e-6


def test_a_record_that_was_altered_drifts(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = records.recorded

    def altered(name: str, table: str = "runs") -> pd.DataFrame:
        found = read(name, table)
        column = {"runs": "loss", "probes": "features_std", "likelihoods": "log_z"}[table]
        return found.assign(**{column: found[column] * (1 + 1e-5)})

    monkeypatch.setattr(records, "recorded", altered)
    _, table = verification.verify("classification", units=3)
    assert [str(number).partition(",")[0] for number in table["number"]] == ["log_z", "features_std", "loss"]
    assert table["drifts"].all()


def test_elsewhere_a_measurement_may_differ_by_what_seeds_scatter_by(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "_changed", lambda *_: ["another machine"])
    changed, table = verification.verify("classification", units=3)
    assert changed == ["another machine"]
    assert list(table["number"]) == ["log_likelihood", "test_error", "test_error"]
    assert not table["drifts"].any()
    read = records.recorded
    shift = {"runs": "test_error", "probes": "test_error", "likelihoods": "log_likelihood"}

    def altered(name: str, table: str = "runs") -> pd.DataFrame:
        found = read(name, table)
        scatter = found[shift[table]].std()
        return found.assign(**{shift[table]: found[shift[table]] + 1000 * (scatter + 1e-3)})

    monkeypatch.setattr(records, "recorded", altered)
    assert verification.verify("classification", units=3).units["drifts"].all()


def test_a_measurement_without_a_scale_has_a_stack() -> None:
    assert Measurement("probe", "random", 2, 0).scale is None, "random search"
    assert len(Measurement("probe", "random", 2, 0).below) == 2
    assert Measurement("probe", "random-glorot", 2, 0).scale == "glorot"
    assert Measurement("probe", "random-glorot", 2, 0).below == []
