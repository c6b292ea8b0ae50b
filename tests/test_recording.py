"""A finished study in the form that ships."""

import dataclasses
import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from recorded_runs import Run, files

from leamvd.campaign import archive
from leamvd.campaign.jobs import key
from leamvd.campaign.store import FOLDER, DamageError
from leamvd.data.images import Images
from leamvd.studies import catalog, pictures, recording, records
from leamvd.studies.study import images

NAMES = {name: name.replace("-", "_") for name in ("mnist-7x7", "classification", "explanation")}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    output = tmp_path_factory.mktemp("results")
    return {NAMES[section]: Run.of(output, section) for section in NAMES}


@pytest.fixture(scope="module")
def made(runs: dict[str, Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all that is recorded, with the runs in it."""
    folder = tmp_path_factory.mktemp("recorded")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "folder", lambda name: folder / name)
        for name, run in runs.items():
            assert run.record(name) == folder / name
    return folder


@pytest.fixture
def recorded(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of it, which takes its place."""
    folder = shutil.copytree(made, tmp_path / "recorded")
    monkeypatch.setattr(archive, "folder", lambda name: folder / name)
    return folder


@pytest.fixture
def run(runs: dict[str, Run]) -> Run:
    return runs["mnist_7x7"]


@pytest.mark.parametrize("name", NAMES.values())
def test_what_is_recorded_is_the_study_and_what_it_takes_to_read_it(
    recorded: Path, runs: dict[str, Run], name: str
) -> None:
    known = archive.checked(name)
    provenance, tables = records.read(runs[name].folder)
    for table, rows in tables.items():
        pd.testing.assert_frame_equal(archive.read(name, table), rows, check_exact=True)
    assert {**known, "sha256": None} == {**runs[name].about, **provenance, "sha256": None}
    for file, checksum in known["sha256"].items():
        assert hashlib.sha256((recorded / name / file).read_bytes()).hexdigest() == checksum
    assert set(files(recorded / name)) == {*known["sha256"], "provenance.json"}
    assert catalog.section_study(known) == runs[name].study


def test_pictures_ship_in_the_place_of_weights(recorded: Path, run: Run) -> None:
    with np.load(recorded / "mnist_7x7" / "pictures.npz", allow_pickle=False) as file:
        shipped = dict(file)
    made = pictures.pictures(run.study, run.output / FOLDER, images(run.study))
    assert list(shipped) == list(made)
    assert all(np.array_equal(shipped[name], made[name]) for name in made)


@pytest.mark.parametrize("name", NAMES.values())
def test_the_same_study_gives_the_same_bytes_and_replaces_only_when_told(
    recorded: Path, runs: dict[str, Run], name: str
) -> None:
    content = files(recorded / name)
    with pytest.raises(FileExistsError, match=f"{name} is recorded already in .*: choose another name, or replace"):
        runs[name].record(name)
    (recorded / name / "old").touch()
    runs[name].record(name, replace=True)
    assert files(recorded / name) == files(runs[name].record("another")) == content
    assert {path.name for path in recorded.iterdir()} == {"another", *NAMES.values()}, "nothing is left beside them"


@pytest.mark.parametrize("which", ["mnist_7x7", "new"])
def test_an_interrupt_leaves_what_was_recorded(
    recorded: Path, run: Run, monkeypatch: pytest.MonkeyPatch, which: str
) -> None:
    before, rename = files(recorded / "mnist_7x7"), Path.rename

    def interrupted(self: Path, target: Path) -> Path:
        if self.name == which:
            raise KeyboardInterrupt
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run.record("mnist_7x7", replace=True)
    assert {path.name for path in recorded.iterdir()} == set(NAMES.values())
    assert files(recorded / "mnist_7x7") == before


# ---- in several runs


def part(run: Run, *seeds: int, **changes: object) -> Run:
    """Return a run of some of the seeds, whose jobs are the whole run's."""
    return Run.of(run.output, run.about["section"], seeds=list(seeds), **changes)


@pytest.mark.parametrize("name", ["mnist_7x7", "explanation"])
def test_a_study_in_several_runs_gives_the_bytes_of_the_whole(recorded: Path, runs: dict[str, Run], name: str) -> None:
    part(runs[name], 0).record("parts")
    for seeds in ((1,), (2, 3)):
        part(runs[name], *seeds).record("parts", extend=True)
    assert files(recorded / "parts") == files(recorded / name)


@pytest.mark.usefixtures("recorded")
def test_each_machine_of_several_runs_is_named_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read = records.read
    for seed, machine in enumerate(("abacus", "slide rule", "slide rule")):
        made = {"machine": machine}
        monkeypatch.setattr(records, "read", lambda folder, made=made: (read(folder)[0] | made, read(folder)[1]))
        part(run, seed).record("parts", extend=seed > 0)
    assert archive.checked("parts")["machine"] == "abacus, slide rule"


def test_the_profile_stands_for_its_seeds_once_all_are_there(
    recorded: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = dataclasses.replace(catalog.STUDIES["mnist-7x7", "quick"], seeds=(2, 3))
    part(run, 2).record("parts")
    monkeypatch.setitem(catalog.STUDIES, ("mnist-7x7", "quick"), usual)
    part(run, 3).record("parts", extend=True)
    known = archive.checked("parts")
    assert (known["study"]["seeds"], known["parameters"]["seeds"]) == ([2, 3], None)


def test_a_study_is_extended_by_later_seeds_of_the_same_study_and_data_alone(
    recorded: Path, runs: dict[str, Run], run: Run
) -> None:
    part(run, 2).record("parts")
    before = files(recorded / "parts")
    for other, message in (
        (part(run, 2, 3), "parts has the seed 2 already"),
        (part(run, 1), "parts has seeds up to 2, and can be extended by later ones alone, got 1"),
        (part(run, 4, sigma0=0.2), "parts can be extended by other seeds of the same study alone, and methods differs"),
        (part(run, 4, n_images=41), "alone, and data differs"),
        (runs["classification"], "parts measures stacks, and cannot be extended: replace it"),
    ):
        with pytest.raises(ValueError, match=message):
            other.record("parts", extend=True)
        assert files(recorded / "parts") == before
    with pytest.raises(DamageError, match=r"missing_one: provenance\.json or a file that it names is missing"):
        part(run, 4).record("missing_one", extend=True)


# ---- what is recorded of a table


def test_of_large_studies_some_iterations_and_the_last_are_recorded(
    recorded: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = archive.read("mnist_7x7")
    assert sorted(whole["iteration"].unique()) == [0, 1, 2]
    for every in (2, 3):
        monkeypatch.setattr(records, "EVERY", {"mnist-7x7": every})
        run.record("some", replace=True)
        expected = whole[whole["iteration"] != 1].reset_index(drop=True)
        pd.testing.assert_frame_equal(archive.read("some"), expected, check_exact=True)


@pytest.mark.parametrize("member", ["section", "methods", "data", "checksum", "code", "versions", "python"])
def test_a_study_is_extended_by_what_was_made_alike_alone(
    recorded: Path, run: Run, monkeypatch: pytest.MonkeyPatch, member: str
) -> None:
    known = archive.checked("mnist_7x7")
    monkeypatch.setattr(archive, "checked", lambda _: known | {member: "other"})
    with pytest.raises(ValueError, match=f"other seeds of the same study alone, and {member} differs"):
        run.record("mnist_7x7", extend=True)


# ---- what is refused


def test_what_is_incomplete_damaged_or_cannot_ship_is_refused(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, output = tmp_path / "recorded", tmp_path / "results"
    monkeypatch.setattr(archive, "folder", lambda name: folder / name)

    def refused(message: str, name: str = "mnist_7x7", **changes: object) -> None:
        about = json.loads(json.dumps(run.about))
        about |= {key: {**about[key], **value} if isinstance(value, dict) else value for key, value in changes.items()}
        with pytest.raises((ValueError, DamageError), match=message) as caught:
            recording.record(name, output / run.folder.name, about, output / "store")
        assert "\n" not in str(caught.value)
        assert not folder.exists() or not list(folder.iterdir())

    shutil.copytree(run.output, output)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recording, "LIMIT", 10_000)
        refused("all that is recorded must be at most 10,000 bytes")
    refused("must be run again", parameters={"seeds": [0, 1, 2, 3, 4]})
    refused("dataset must be digits or mnist in a study that is to be recorded", parameters={"dataset": str(tmp_path)})
    refused("must be a run of a section with a study", section="esd")
    refused("the name must be lower-case letters, digits and underscores, got '../x'", name="../x")
    (layer, _) = run.study.stack("lea-mvd", 0, Images.of(images(run.study)))
    job = output / "store" / key(layer)
    for damage, message in (
        (lambda: (job / "arrays.npz").write_bytes(b""), r"arrays\.npz is not what was stored"),
        (lambda: (job / "rows.csv").unlink(), r"rows\.csv is missing"),
        (lambda: shutil.rmtree(job), f"{job.name}: .* is missing"),
    ):
        damage()
        refused(message)
        shutil.copytree(run.output / "store" / job.name, job, dirs_exist_ok=True)
    next((output / run.folder.name).glob("study-*.csv.gz")).write_bytes(b"")
    refused(r"csv\.gz is not what was written")
    monkeypatch.setattr(recording.versions, "PACKAGE", tmp_path / "site-packages" / "leamvd")
    refused("recording needs a clone of the repository, got an installed package")


def test_everything_recorded_counts_toward_the_limit(recorded: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in set(NAMES.values()) - {"mnist_7x7"}:
        shutil.rmtree(recorded / name)
    size = sum(path.stat().st_size for path in recorded.rglob("*.*"))
    monkeypatch.setattr(recording, "LIMIT", 2 * size - 1)
    run.record("mnist_7x7", replace=True)
    with pytest.raises(ValueError, match=f"with second it is {2 * size:,}"):
        run.record("second")


def test_what_ships_is_what_was_recorded_and_small_enough() -> None:
    for place in archive.folder("").iterdir():
        if (place / "provenance.json").is_file() and "section" in json.loads((place / "provenance.json").read_text()):
            archive.checked(place.name)
    assert sum(path.stat().st_size for path in archive.folder("").rglob("*") if path.is_file()) <= recording.LIMIT
