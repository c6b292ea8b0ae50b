"""Running a study: the table, what it is stored with, and that it is read as it was written."""

import dataclasses
import gzip
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest
from small_studies import MEASURED, SMALL, TINY, same

from leamvd.analysis import comparison
from leamvd.campaign import versions
from leamvd.campaign.store import FOLDER, STORE, DamageError
from leamvd.data.images import Dataset, Images, load
from leamvd.networks.dbn import Training, pretrain
from leamvd.optimizers.reading import Reading
from leamvd.studies import pictures, records
from leamvd.studies.records import Measured, measure, run
from leamvd.studies.study import COLUMNS, Classification, Study, images


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def table(output: Path) -> pd.DataFrame:
    return run(TINY, output)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Measured]:
    """Return the folder of a study that measures stacks, and what was measured."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, measure(MEASURED, folder)


# ---- tables


def test_a_row_for_each_iteration_of_each_layer_in_the_order_of_the_study(table: pd.DataFrame) -> None:
    assert tuple(table.columns) == COLUMNS
    keys = ["inputs", "layer", "method", "seed", "iteration"]
    expected = [
        (kind, layer, method, seed, iteration)
        for kind in TINY.inputs for layer in (1, 2) for method in TINY.methods for seed in TINY.seeds
        for iteration in (0, 1, 2)
    ]  # fmt: skip
    assert list(table[keys].itertuples(index=False, name=None)) == expected
    assert not table.isna().any().any()
    assert set(table["section"]) == {"mnist-7x7"}
    readings = table.groupby("method", sort=False)["reading"].unique().map(list)
    assert dict(readings) == {
        "lea-mvd": ["default"], "cd": ["none"], "cma-es": ["default"], "lea-mvd:x0-excluded": ["x0-excluded"]
    }  # fmt: skip


def test_the_last_rows_are_those_of_each_layers_last_iteration(table: pd.DataFrame) -> None:
    ends = comparison.last(table)
    assert len(ends) == 2 * 2 * 4 * 2
    assert set(ends["iteration"]) == {2}
    cut = table[(table["seed"] == 3) | (table["iteration"] < 2)]
    assert comparison.last(cut).groupby("seed")["iteration"].unique().map(list).to_dict() == {3: [2], 5: [1]}


def test_a_stack_is_what_was_trained(table: pd.DataFrame, output: Path) -> None:
    del table
    given = {"training": TINY.training, "reading": TINY.reading, "features": "bits", "seed": 5}
    own = pretrain(images(TINY).train, TINY.layers, method="lea-mvd", **given)
    for depth in (1, 2):
        for ours, theirs in zip(
            pictures.stack(TINY, output / FOLDER, images(TINY), "lea-mvd", 5, depth), own[:depth], strict=True
        ):
            assert all(np.array_equal(x, y) for x, y in zip(ours, theirs, strict=True))


def test_tables_of_what_was_measured(whole: tuple[Path, Measured]) -> None:
    runs, probes, likelihoods = whole[1]
    key = ["study", "method", "seed"]
    for found in whole[1]:
        assert list(found.columns[:3]) == key
        assert found["method"].unique().tolist() == ["cd", "lea-mvd", "random-0.1"]
        assert set(found["study"]) == {"mnist-7x7"}
    assert runs.groupby(key)["epoch"].apply(list).tolist() == [[1, 2]] * 6
    assert probes.groupby(key)["layer"].apply(list).tolist() == [[0, 1, 2]] * 6
    assert likelihoods.groupby(key)["chains"].apply(list).tolist() == [[2, 4, 6, 8, 10]] * 6
    assert runs["test_error"].between(0, 1).all()
    assert probes[probes["layer"] == 0]["test_error"].nunique() == 1, "the pixels are the same for every stack"


def test_a_study_stopped_at_every_iteration_has_the_same_tables(tmp_path: Path, whole: tuple[Path, Measured]) -> None:
    assert records.compute(MEASURED, tmp_path, n_jobs=1, checkpoint_seconds=0, progress=False) == []
    assert list((tmp_path / "store" / "checkpoints").glob("*")) == []
    for ours, theirs in zip(measure(MEASURED, tmp_path), whole[1], strict=True):
        same(ours, theirs)
    shared = dataclasses.replace(SMALL, methods=("lea-mvd",), inputs=("shared",))
    assert len(records.compute(shared, tmp_path, seconds=0, progress=False)) == 2, "what time was too short for"


def test_what_is_stored_is_read_whatever_study_asks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(STORE, str(tmp_path / "shared"))
    both = run(SMALL, tmp_path / "both")
    stored = sorted(path.name for path in (tmp_path / "shared").glob("*-seed*"))
    assert len(stored) == 5
    part = run(dataclasses.replace(SMALL, methods=("lea-mvd",), inputs=("shared",)), tmp_path / "part")
    assert sorted(path.name for path in (tmp_path / "shared").glob("*-seed*")) == stored
    wanted = both[(both["inputs"] == "shared") & (both["method"] == "lea-mvd")]
    pd.testing.assert_frame_equal(part, wanted.reset_index(drop=True), check_exact=True)


@pytest.mark.compiled
def test_threads_do_not_change_a_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = dataclasses.replace(SMALL.training, dtype="float32")
    study = dataclasses.replace(SMALL, side=14, n_images=1200, layers=(30,), training=training)
    tables = []
    for n_threads in (1, 2):
        numba.set_num_threads(n_threads)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=n_threads: set(range(n)), raising=False)
        tables.append(run(study, tmp_path / str(n_threads)))
    same(*tables)


# ---- provenance


def test_provenance_says_what_a_table_must_be_read_with(output: Path, table: pd.DataFrame) -> None:
    known, tables = records.read(output)
    pd.testing.assert_frame_equal(tables["runs"], table, check_exact=True)
    assert known["checksum"] == load("digits").checksum
    assert known["data"].startswith("scikit-learn digits: 40 of 1437")
    assert known["study"]["dataset"] == "scikit-learn digits"
    assert (known["study"]["reading"]["n_gen"], known["study"]["seeds"]) == (2, [3, 5])
    assert set(known["methods"]) == set(TINY.methods)
    assert known["methods"]["lea-mvd:x0-excluded"]["reading"]["x0_in_population"] is False
    assert known["methods"]["lea-mvd"]["n_elite"] == 2
    assert known["methods"]["cd"] == {"n_gen": 2}
    cma_es = {"population_size": 8, "n_gen": 2, "sigma0": 0.1, "x0_in_population": True}
    assert known["methods"]["cma-es"] == cma_es
    absent = records.provenance(dataclasses.replace(TINY, training=Training(x0="none", x0_limit=0.2)), load("digits"))
    assert absent["methods"]["lea-mvd"]["bounds"] == (-0.2, 0.2)
    assert absent["methods"]["cma-es"]["x0_in_population"] is False
    assert known["versions"]["numpy"] == np.__version__
    assert "cma" in known["versions"]
    assert set(known) == {
        "study", "methods", "data", "checksum", "code", "commit", "versions", "python", "machine", "sha256",
    }  # fmt: skip


def test_a_table_is_named_after_everything_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(TINY)

    def name(study: Study = TINY, data: Dataset = data) -> str:
        return records.fingerprint(records.provenance(study, data))

    names = [
        name(),
        name(dataclasses.replace(TINY, seeds=(3, 6))),
        name(dataclasses.replace(TINY, training=dataclasses.replace(TINY.training, sigma0=0.2))),
        name(dataclasses.replace(TINY, reading=Reading(n_gen=3, population_size=8, exponent=2.0))),
        name(dataclasses.replace(TINY, features="probabilities")),
        name(dataclasses.replace(TINY, methods=("lea-mvd", "cd"))),
        name(data=data._replace(checksum="0" * 64)),
    ]
    monkeypatch.setattr(versions, "code", lambda _: "other")
    names.append(name())
    monkeypatch.setattr(versions, "packages", lambda *_: {"numpy": "0"})
    names.append(name())
    assert len(set(names)) == len(names)
    monkeypatch.setattr(versions, "commit", lambda: "another commit with the same code")
    assert name() == names[-1]


# ---- files


def about(path: Path) -> Path:
    (found,) = path.parent.glob("study-*.json")
    return found


def altered(path: Path) -> None:
    text = gzip.decompress(path.read_bytes())
    path.write_bytes(gzip.compress(text.replace(b"mnist-7x7", b"mnist-7x8", 1), mtime=0))


def edited(member: str) -> Callable[[Path], object]:
    """Return what changes a member that the results depend on."""

    def damage(path: Path) -> None:
        known = json.loads(about(path).read_text())
        value = known[member]
        known[member] = {**value, "n_images": 41} if isinstance(value, dict) else f"{value}0"
        about(path).write_text(json.dumps(known))

    return damage


JUNK = ["", "3", "[]", "{}", "[" * 100_000]
ANOTHER = "its name is a digest of another content"
DAMAGES: list[tuple[Callable[[Path], object], str]] = [
    (altered, "is cut or altered: .*csv.gz is not what was written"),
    (lambda path: path.write_bytes(path.read_bytes()[:-9]), "csv.gz is not what was written"),
    (Path.unlink, "is cut or altered: .*No such file"),
    *((edited(member), ANOTHER) for member in ("study", "methods", "data", "checksum", "code", "versions")),
    *((lambda path, text=text: about(path).write_text(text), "is cut or altered: ") for text in JUNK),
    (lambda path: about(path).rename(path.parent / "study-0.json"), ANOTHER),
    (lambda path: about(path).unlink(), "must hold the file study-.*a sweep has none"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGES)
def test_what_is_not_what_was_written_is_refused(
    damage: Callable[[Path], object], message: str, tmp_path: Path, whole: tuple[Path, Measured]
) -> None:
    for path in whole[0].glob("study-*"):
        shutil.copy(path, tmp_path)
    for ours, theirs in zip(Measured(**records.read(tmp_path)[1]), whole[1], strict=True):
        pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
    damage(next(tmp_path.glob("study-*-probes.csv.gz")))
    with pytest.raises(DamageError, match=message):
        records.read(tmp_path)


def test_the_jobs_of_a_study_are_listed_once(table: pd.DataFrame) -> None:
    del table
    for study in (TINY, MEASURED):
        every = records.jobs(study, images(study))
        assert len(every) == len(set(every))
        labeled = set(study.jobs(Images.of(images(study))).values())
        measured = 3 * 3 * 2 if isinstance(study, Classification) else 0
        assert len(every) == len(labeled) + measured
