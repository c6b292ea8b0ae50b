"""A finished study in the form that ships, and a sample of it rerun."""

import dataclasses
import hashlib
import json
import lzma
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from quick_runs import SMALL, execute, leamvd, view

from leamvd.book import sections
from leamvd.paper import pictures, recording, records, studies, verification
from leamvd.paper.verification import NotRerunError, verify


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run."""
    output = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_execute", execute)
        command = ("reproduce", *SMALL, "-p", "seeds=0-3", "-p", "population_size=8", "--jobs", "1")
        assert leamvd(*command, "--output", str(output)).exit_code == 0
    return next(output.glob("03_mnist_7x7/quick-*"))


@pytest.fixture(scope="module")
def made(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all that is recorded, with the run in it."""
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "recorded_folder", lambda name: folder / name)
        result = leamvd("record", str(run))
        assert result.exit_code == 0, result.output
        assert result.output == f"{folder / 'mnist_7x7'}\n"
    return folder


@pytest.fixture
def recorded(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of it, which takes its place."""
    folder = shutil.copytree(made, tmp_path / "recorded")
    monkeypatch.setattr(records, "recorded_folder", lambda name: folder / name)
    return folder


def study() -> studies.Study:
    settings = {"methods": ("cd", "lea-mvd", "lea-mvd:x0-excluded"), "n_images": 40, "n_gen": 2, "n_elite": 2}
    return studies.study("mnist-7x7", "quick", layers=(6, 5), seeds=range(4), population_size=8, **settings)


# ---- record


@pytest.mark.parametrize("which", ["mnist_7x7", "new"])
def test_an_interrupt_leaves_the_earlier_record(
    recorded: Path, run: Path, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    before = {path.name: path.read_bytes() for path in (recorded / "mnist_7x7").iterdir()}

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == which:
            raise KeyboardInterrupt
        return rename(self, target)

    rename = Path.rename
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        assert leamvd("record", str(run), "--replace").exit_code != 0
    assert [path.name for path in recorded.iterdir()] == ["mnist_7x7"]
    assert {path.name: path.read_bytes() for path in (recorded / "mnist_7x7").iterdir()} == before


def test_a_record_holds_the_study_and_what_it_takes_to_read_it(recorded: Path, run: Path) -> None:
    table = records.recorded("mnist_7x7")
    again = records.run(study(), run.parents[1])
    pd.testing.assert_frame_equal(table, again, check_exact=True)
    known = json.loads((recorded / "mnist_7x7" / "provenance.json").read_text())
    about = json.loads((run / "run.json").read_text())
    assert {name: known[name] for name in ("section", "parameters", "readings")} == {
        name: about[name] for name in ("section", "parameters", "readings")
    }
    (provenance,) = about["studies"].values()
    assert {name: known[name] for name in provenance} == provenance
    for name, checksum in known["sha256"].items():
        assert hashlib.sha256((recorded / "mnist_7x7" / name).read_bytes()).hexdigest() == checksum
    assert sorted(path.name for path in (recorded / "mnist_7x7").iterdir()) == sorted(
        [*known["sha256"], "provenance.json"]
    )


def test_pictures_ship_in_the_place_of_weights(recorded: Path, run: Path) -> None:
    with np.load(recorded / "mnist_7x7" / "pictures.npz", allow_pickle=False) as file:
        shipped = dict(file)
    made = pictures.pictures(study(), run.parents[1], studies.images(study()))
    assert list(shipped) == list(made)
    assert all(np.array_equal(shipped[name], made[name]) for name in made)


def test_the_same_study_gives_the_same_bytes_and_replaces_only_when_told(recorded: Path, run: Path) -> None:
    content = {path.name: path.read_bytes() for path in (recorded / "mnist_7x7").iterdir()}
    result = leamvd("record", str(run))
    assert (result.exit_code, "mnist_7x7 is recorded already" in result.stderr) == (1, True)
    (recorded / "mnist_7x7" / "old").touch()
    assert leamvd("record", str(run), "--replace").exit_code == 0
    assert {path.name: path.read_bytes() for path in (recorded / "mnist_7x7").iterdir()} == content
    assert leamvd("record", str(run), "--name", "another").exit_code == 0
    assert {path.name: path.read_bytes() for path in (recorded / "another").iterdir()} == content
    assert sorted(path.name for path in recorded.iterdir()) == ["another", "mnist_7x7"], "nothing is left beside them"


SAME = "mnist_7x7", "parts"


def part(run: Path, seeds: str, *settings: str) -> Path:
    """Return a run of some of the seeds, whose units are the whole run's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_execute", execute)
        command = ("reproduce", *SMALL, "-p", f"seeds={seeds}", "-p", "population_size=8", *settings, "--jobs", "1")
        assert leamvd(*command, "--output", str(run.parents[1])).exit_code == 0
    return view(run.parents[1])


def test_a_study_in_parts_gives_the_bytes_of_the_whole(recorded: Path, run: Path) -> None:
    for name, option, seeds in (("parts", "--replace", "0"), ("parts", "--extend", "1"), ("parts", "--extend", "2-3")):
        result = leamvd("record", str(part(run, seeds)), "--name", name, option)
        assert result.exit_code == 0, result.output
    whole, parts = ({path.name: path.read_bytes() for path in (recorded / name).iterdir()} for name in SAME)
    assert parts == whole


def test_the_profile_stands_for_its_seeds_once_all_are_there(
    recorded: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = dataclasses.replace(studies.STUDIES["mnist-7x7", "quick"], seeds=(2, 3))
    leamvd("record", str(part(run, "2")), "--name", "parts")
    monkeypatch.setitem(studies.STUDIES, ("mnist-7x7", "quick"), usual)
    assert leamvd("record", str(part(run, "3")), "--name", "parts", "--extend").exit_code == 0
    known = recording.provenance("parts")
    assert (known["study"]["seeds"], known["parameters"]["seeds"]) == ([2, 3], None)


def test_of_large_studies_some_iterations_are_recorded_and_verified(
    recorded: Path, run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = records.recorded("mnist_7x7")
    assert sorted(whole["iteration"].unique()) == [0, 1, 2]
    for every, iterations in ((2, [0, 2]), (3, [0, 2])):
        monkeypatch.setattr(recording, "EVERY", {"mnist-7x7": every})
        assert leamvd("record", str(run), "--name", "some", "--replace").exit_code == 0
        some = records.recorded("some")
        assert sorted(some["iteration"].unique()) == iterations, "the last one always"
        pd.testing.assert_frame_equal(some, whole[whole["iteration"] != 1].reset_index(drop=True), check_exact=True)
    changed, table = verify("some", units=2)
    assert (changed, table["drifts"].any()) == ([], False)


def test_a_study_is_extended_by_later_seeds_alone(recorded: Path, run: Path) -> None:
    assert leamvd("record", str(part(run, "2")), "--name", "parts").exit_code == 0
    result = leamvd("record", str(part(run, "1")), "--name", "parts", "--extend")
    assert result.exit_code == 1
    assert "parts has seeds up to 2, and can be extended by later ones alone, got 1" in result.stderr
    assert recording.provenance("parts")["study"]["seeds"] == [2]


def test_an_installed_package_is_not_recorded_in(
    recorded: Path, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recording.versions, "PACKAGE", tmp_path / "site-packages" / "leamvd")
    result = leamvd("record", str(run), "--name", "parts")
    assert result.exit_code == 1
    assert "recording needs a clone of the repository, got an installed package" in result.stderr
    assert not (recorded / "parts").exists()


def test_parts_of_another_study_or_with_the_same_seeds_are_refused(recorded: Path, run: Path) -> None:
    content = {path.name: path.read_bytes() for path in (recorded / "mnist_7x7").iterdir()}

    def refused(message: str, *arguments: str, code: int = 1) -> None:
        result = leamvd("record", *arguments, "--extend")
        assert (result.exit_code, message in result.stderr) == (code, True), result.stderr
        assert {path.name: path.read_bytes() for path in (recorded / "mnist_7x7").iterdir()} == content

    refused("mnist_7x7 has the seed 0 already", str(run))
    refused("--replace clashes with --extend: give one of them", str(run), "--replace", code=2)
    other = str(part(run, "4", "-p", "sigma0=0.2"))
    refused("mnist_7x7 can be extended by other seeds of the same study alone, and methods differs", other)
    refused("missing_one: provenance.json or a file that it names is missing", str(run), "--name", "missing_one")


def test_tables_are_read_plain_and_compressed(recorded: Path) -> None:
    packed = recorded / "mnist_7x7" / "runs.csv.xz"
    table = records.recorded("mnist_7x7")
    (recorded / "plain").mkdir()
    (recorded / "plain" / "runs.csv").write_bytes(lzma.decompress(packed.read_bytes()))
    pd.testing.assert_frame_equal(records.recorded("plain"), table, check_exact=True)
    with pytest.raises(FileNotFoundError, match=r"more\.csv"):
        records.recorded("plain", "more")


def edit(path: Path, **changes: object) -> None:
    about = json.loads(path.read_text())
    for name, value in changes.items():
        about[name] = {**about[name], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(about))


def test_what_is_incomplete_damaged_or_cannot_ship_is_refused(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "recorded"
    monkeypatch.setattr(records, "recorded_folder", lambda name: folder / name)
    output = tmp_path / "results"

    def refused(message: str, *arguments: str) -> None:
        result = leamvd("record", str(place), *arguments)
        assert result.exit_code == 1, result.output
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
        assert not folder.exists() or not list(folder.iterdir())
        shutil.rmtree(output)
        shutil.copytree(run.parents[1], output)

    shutil.copytree(run.parents[1], output)
    place = output / run.relative_to(run.parents[1])
    known = json.loads(next(place.glob("study-*")).read_text())
    unit = output / "store" / known["units"]["lea-mvd-own-layer2-seed0"]
    (unit / "weights.npz").write_bytes(b"")
    refused("weights.npz is not what was stored")
    (unit / "records.csv").unlink()
    refused("records.csv is missing")
    shutil.rmtree(unit)
    refused(f"{unit.name} is not in the store")
    edit(next(place.glob("study-*")), units={"cd-own-layer1-seed0": unit.name})
    refused("must be run again")
    edit(place / "run.json", parameters={"seeds": [0, 1, 2, 3, 4]})
    refused("must be run again")
    edit(place / "run.json", parameters={"dataset": str(tmp_path)})
    refused("dataset must be digits or mnist in a study that is to be recorded")
    edit(place / "run.json", readings={str(tmp_path / "a.json"): "{}"})
    refused("readings must have relative names")
    edit(place / "run.json", section="esd")
    refused("must be a run of a section with a study")
    refused("the name must be lower-case letters, digits and underscores, got '../x'", "--name", "../x")
    monkeypatch.setattr(recording, "LIMIT", 10_000)
    refused("all that is recorded must be at most 10,000 bytes")


def test_other_records_count_toward_the_limit(recorded: Path, run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = sum(path.stat().st_size for path in recorded.rglob("*.*"))
    monkeypatch.setattr(recording, "LIMIT", 2 * size - 1)
    assert leamvd("record", str(run), "--replace").exit_code == 0
    result = leamvd("record", str(run), "--name", "second")
    assert (result.exit_code, f"with second it is {2 * size:,}" in result.stderr) == (1, True)


# ---- verify


def rewrite(folder: Path, table: pd.DataFrame | None = None, **changes: object) -> None:
    """Write another table, or another provenance, with the checksums that belong to it."""
    if table is not None:
        content = lzma.compress(table.to_csv(index=False).encode())
        (folder / "runs.csv.xz").write_bytes(content)
        changes |= {"sha256": {"runs.csv.xz": hashlib.sha256(content).hexdigest()}}
    edit(folder / "provenance.json", **changes)


def test_a_sample_is_one_of_each_cell_first_and_the_cheapest_first(recorded: Path) -> None:
    changed, table = verify("mnist_7x7", units=12)
    assert changed == []
    assert list(table.columns) == verification.COLUMNS
    assert not table["drifts"].any()
    assert (table["difference"] == 0).all(), "the same machine gives the same bits"
    cells = list(table[["method", "inputs", "layer"]].itertuples(index=False, name=None))
    every = {("cd", "own", 1), ("cd", "own", 2), ("lea-mvd", "own", 1), ("lea-mvd", "own", 2), ("lea-mvd", "shared", 2)}
    every |= {("lea-mvd:x0-excluded", inputs, layer) for _, inputs, layer in every if inputs == "shared" or layer}
    every -= {("lea-mvd:x0-excluded", "shared", 1)}
    assert len(set(cells[:8])) == len(every) == 8
    assert set(cells[:8]) == every
    assert cells[8:] == cells[:4], "then another seed of the same"
    assert not {(*cell, seed) for cell, seed in zip(cells[:4], table["seed"], strict=False)} & {
        (*cell, seed) for cell, seed in zip(cells[8:], table["seed"][8:], strict=True)
    }
    assert cells[0] == ("cd", "own", 1)
    assert (table["number"] == "mean_field, iteration 2").all()
    assert cells.index(("lea-mvd", "own", 1)) < cells.index(("lea-mvd", "own", 2)), "layers below count"


def test_the_seed_chooses(recorded: Path) -> None:
    chosen = [verification._sample(records.recorded("mnist_7x7"), 8, seed) for seed in (0, 0, 1)]
    assert chosen[0] == chosen[1] != chosen[2]
    assert [unit[:3] for unit in chosen[0]] == [unit[:3] for unit in chosen[2]]


@pytest.mark.parametrize("column", ["mean_field", "test_sampled_ratio", "products"])
def test_an_altered_number_is_found(recorded: Path, column: str) -> None:
    table = records.recorded("mnist_7x7")
    altered = table.index[(table["method"] == "cd") & (table["layer"] == 1) & (table["iteration"] == 1)]
    table[column] = table[column].astype(float)
    table.loc[altered, column] *= 1 + 1e-5
    rewrite(recorded / "mnist_7x7", table)
    result = leamvd("verify", "mnist_7x7", "--units", "1")
    assert result.exit_code == 1, result.output
    assert "mnist_7x7: compared by six digits" in result.output
    assert f"{column}, iteration 1" in result.output
    *_, unit, count = result.stdout.splitlines()
    assert (unit.split()[-1], count) == ("True", "1 of 1 compared")


def test_the_seventh_digit_is_not_a_drift_and_a_missing_row_is(recorded: Path) -> None:
    table = records.recorded("mnist_7x7")
    rewrite(recorded / "mnist_7x7", table.assign(sampled=table["sampled"] * (1 + 5e-7)))
    assert leamvd("verify", "--units", "2").exit_code == 0
    rewrite(recorded / "mnist_7x7", table[table["iteration"] != 1])
    assert leamvd("verify", "--units", "1").exit_code == 1


def test_elsewhere_the_scatter_between_seeds_decides(recorded: Path) -> None:
    folder, table = recorded / "mnist_7x7", records.recorded("mnist_7x7")
    known = json.loads((folder / "provenance.json").read_text())
    rewrite(folder, versions={"numpy": "0.1"}, machine="Darwin arm64")
    result = leamvd("verify", "mnist_7x7")
    assert result.exit_code == 0, result.output
    wanted = f"machine was Darwin arm64 and is {known['machine']}; numpy was 0.1 and is {known['versions']['numpy']}"
    assert f"mnist_7x7: compared by scatter between seeds, for {wanted}\n" in result.output
    table.loc[(table["method"] == "cd") & (table["layer"] == 1), "sampled"] *= 1000
    rewrite(folder, table)
    result = leamvd("verify", "mnist_7x7", "--units", "1")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[-2].split()[:5] == [
        "cd",
        "own",
        "1",
        result.stdout.splitlines()[-2].split()[3],
        "sampled",
    ]


@pytest.mark.parametrize(("factor", "drifts"), [(12.8, False), (13.1, True), (-12.8, False), (-13.1, True)])
def test_what_two_seeds_differ_by_in_all_but_one_of_a_thousand_cases(factor: float, drifts: bool) -> None:
    errors = [2.0, 3.0, 2.5, 2.2]  # Student's t with 3 degrees of freedom leaves 1 in 1000 beyond 12.92
    rows = [("cd", "own", 1, seed, 2, error, error, "a", "b", 0.0) for seed, error in enumerate(errors)]
    columns = [
        "method",
        "inputs",
        "layer",
        "seed",
        "iteration",
        "mean_field",
        "sampled",
        "section",
        "reading",
        "seconds",
    ]
    table, unit = pd.DataFrame(rows, columns=columns), ("cd", "own", 1, 2)
    away = np.exp(factor * np.sqrt(2) * np.log(errors).std(ddof=1))
    again = verification._rows(table, unit) * [1.0, away]
    name, recorded, rerun, difference, allowed, found = verification._scattered(
        verification._cell(table, unit), 2, again, np.log
    )
    assert (name, recorded, rerun, found) == ("sampled", 2.5, pytest.approx(2.5 * away), drifts)
    assert (difference > allowed) == drifts


def test_a_version_of_this_package_does_not_loosen_the_comparison(recorded: Path) -> None:
    rewrite(recorded / "mnist_7x7", versions={"leamvd": "0.0"})
    assert verify("mnist_7x7", units=1).changed == []
    rewrite(
        recorded / "mnist_7x7", study={"training": {"backend": "torch", "device": "cuda:0", "precision": "float64"}}
    )
    assert len(verify("mnist_7x7", units=1).changed) == 2


def test_one_seed_elsewhere_says_nothing(recorded: Path) -> None:
    folder = recorded / "mnist_7x7"
    rewrite(folder, versions={"numpy": "0.1"}, parameters={"seeds": [0]})
    with pytest.raises(NotRerunError, match=r"one seed has no scatter to compare with, and numpy was 0\.1"):
        verify("mnist_7x7")


def test_what_is_not_what_was_recorded_is_named_before_anything_runs(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "run", lambda *_: pytest.fail("ran"))
    folder = recorded / "mnist_7x7"
    content = (folder / "runs.csv.xz").read_bytes()
    table = lzma.decompress(content).replace(b"cd,own,1,0,1,", b"cd,own,1,0,1,9", 1)
    for changed in (lzma.compress(table), content[:-9], b""):
        (folder / "runs.csv.xz").write_bytes(changed)
        result = leamvd("verify")
        assert (result.exit_code, result.stderr) == (1, "Error: mnist_7x7: runs.csv.xz is not what was recorded\n")
    (folder / "runs.csv.xz").unlink()
    assert "provenance.json or a file that it names is missing" in leamvd("verify").stderr
    (folder / "provenance.json").write_text("[]")
    assert "provenance.json or a file that it names is missing" in leamvd("verify").stderr


def test_what_cannot_be_rerun_is_said_for_each(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("linear_cost", "backend_agreement", ".hidden"):
        (recorded / name).mkdir()
    result = leamvd("verify", "--units", "1")
    assert result.exit_code == 0, result.output
    first, second, third, *_ = result.stdout.splitlines()
    assert first.startswith("not rerun: backend_agreement: it is rerun as a whole")
    assert second.startswith("not rerun: linear_cost: what it costs depends on the machine; `leamvd bench`")
    assert third.startswith("mnist_7x7: ")
    result = leamvd("verify", "linear_cost")
    assert (result.exit_code, result.stderr.startswith("Error: linear_cost: ")) == (1, True)
    assert "name must be one of 'backend_agreement', 'linear_cost', 'mnist_7x7'" in leamvd("verify", "mnist").stderr
    rewrite(recorded / "mnist_7x7", parameters={"n_images": 5000})
    with pytest.raises(NotRerunError, match=r"mnist_7x7: .* must be at most the 1437 images"):
        verify("mnist_7x7")
    rewrite(recorded / "mnist_7x7", parameters={"n_images": 40}, checksum="other")
    result = leamvd("verify")
    assert result.exit_code == 1, "nothing was compared"
    *_, last, count = result.stdout.splitlines()
    assert last.startswith("not rerun: mnist_7x7: it rests on scikit-learn digits: ")
    assert count == "0 of 3 compared"


def test_what_ships_is_a_study_or_says_why_not() -> None:
    for name in verification.names():
        if name not in verification.NOT_RERUN:
            verification._provenance(name)
    assert verification.NOT_RERUN.keys() <= set(verification.names())
    shipped = sum(path.stat().st_size for path in records.recorded_folder("").rglob("*") if path.is_file())
    assert shipped <= recording.LIMIT
