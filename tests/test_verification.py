"""A sample of what is recorded computed again: it comes out, and a number that was altered is found."""

import dataclasses
import json
import lzma
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from recorded_runs import Run, edit, rewrite
from small_studies import SMALL

from leamvd.campaign import archive, versions
from leamvd.campaign import run as campaign
from leamvd.campaign.store import DamageError
from leamvd.campaign.verify import COLUMNS
from leamvd.networks.dbn import Training
from leamvd.studies import backend_agreement, catalog, functions, longer_searches, recording, records
from leamvd.studies.recording import NotVerifiedError, verify

LONGER = {
    "problems": {"sphere, n = 3": [10, 20], "rastrigin, n = 4": [10, 20]}, "methods": ["lea-mvd", "random"],
    "seeds": [0, 1],
}  # fmt: skip
AGREEMENT = dataclasses.replace(
    SMALL, layers=(6,), methods=("random",), inputs=("own",), seeds=(3, 5), training=Training(n_elite=2)
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of all that is recorded: studies, and longer searches."""
    folder, output = tmp_path_factory.mktemp("recorded"), tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(archive, "folder", lambda name: folder / name)
        patch.setitem(longer_searches.PLANS, "paper", LONGER)
        Run.of(output, "mnist-7x7").record("mnist_7x7")
        Run.of(output, "classification").record("classification")
        recording.record_searches("longer_searches", output)
    return folder


@pytest.fixture
def recorded(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of it, which takes its place."""
    folder = shutil.copytree(made, tmp_path / "recorded")
    monkeypatch.setattr(archive, "folder", lambda name: folder / name)
    return folder


# ---- every kind of table


TABLES = [
    ("mnist_7x7", "runs", "mean_field", 1),
    ("mnist_7x7", "runs", "test_sampled_ratio", 1),
    ("mnist_7x7", "runs", "products", 1),
    ("classification", "runs", "loss", 1),
    ("classification", "probes", "features_std", 1),
    ("classification", "likelihoods", "log_z", 1),
    ("longer_searches", "runs", "best", 4),
]


@pytest.mark.parametrize(("name", "table", "column", "jobs"), TABLES)
def test_a_number_that_was_altered_is_found(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, name: str, table: str, column: str, jobs: int
) -> None:
    read = archive.read
    changed, found = verify(name, jobs=jobs)
    assert changed == []
    assert (found["digits"] == 16).all(), "the same machine gives the same bits"
    assert not found["drifts"].any()

    def altered(factor: float) -> Callable[..., pd.DataFrame]:
        def changed(name: str, which: str = "runs") -> pd.DataFrame:
            rows = read(name, which)
            return rows.assign(**{column: rows[column] * factor}) if which == table else rows

        return changed

    monkeypatch.setattr(archive, "read", altered(1 + 1e-5))
    found = verify(name, jobs=jobs).jobs
    assert found["drifts"].sum() == jobs
    (number,) = set(found[found["drifts"]]["number"].str.partition(",")[0])
    assert number == column
    monkeypatch.setattr(archive, "read", altered(1 + 5e-7))
    assert not verify(name, jobs=jobs).jobs["drifts"].any(), "the seventh digit"


def larger(name: str, column: str) -> None:
    """Change the fifth digit of a number in all rows of what is recorded of searches."""
    table = archive.read(name)
    table.assign(**{column: table[column] * (1 + 1e-5)}).to_csv(archive.folder(name) / "runs.csv", index=False)


def test_functions_and_their_directions(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"n_images": 40, "layers": (6, 5), "n_gen": 8, "n_elite": 2, "population_size": 8, "seeds": (0, 1)}
    study = catalog.study("mnist-7x7", "quick", methods=("cd", "lea-mvd", "lea-mvd:x0-excluded"), **given)
    monkeypatch.setitem(catalog.STUDIES, ("readings", "paper"), study)
    monkeypatch.setitem(functions.PLANS, "paper", {"sizes": [3, 5], "budget": 40})
    recording.record_searches("readings_functions", tmp_path)
    found = verify("readings_functions", jobs=2).jobs
    assert len(found) == 4
    assert not found["drifts"].any()
    larger("readings_functions", "best")
    assert verify("readings_functions", jobs=2).jobs["drifts"].tolist() == [True, True, False, False]


def test_agreement_of_backends(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    other = dataclasses.replace(AGREEMENT, section="mnist-28x28", n_images=41)
    monkeypatch.setattr(backend_agreement, "FIRST_LAYER", (AGREEMENT, other))
    recording.record_searches("backend_agreement", tmp_path)
    assert not verify("backend_agreement", jobs=3).jobs["drifts"].any()
    larger("backend_agreement", "mean_field")
    assert verify("backend_agreement", jobs=3).jobs["drifts"].tolist() == [True] * 6


# ---- what is sampled


def test_a_sample_is_one_job_of_each_kind_first_and_those_that_cost_least_first(recorded: Path) -> None:
    found = verify("mnist_7x7", jobs=12).jobs
    assert list(found.columns) == COLUMNS
    assert found["job"].is_unique
    kinds = found["job"].str.rpartition(" ")[0].value_counts()
    methods = ("cd", "lea-mvd", "lea-mvd:x0-excluded")
    every = {f"{method} own {layer}" for method in methods for layer in (1, 2)}
    every |= {f"{method} shared 2" for method in methods[1:]}
    assert set(kinds.index) == every, "own and shared inputs that are the same are computed once"
    twice = {*(f"{method} own 1" for method in methods), "cd own 2"}  # another seed; layers below count
    assert set(kinds[kinds == 2].index) == twice
    assert verify("mnist_7x7", jobs=1).jobs["job"].item().startswith("cd own 1 ")


def test_of_large_studies_the_iterations_that_are_recorded_are_verified(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "EVERY", {"mnist-7x7": 2})
    table = archive.read("mnist_7x7")
    rewrite("mnist_7x7", table[table["iteration"] != 1])
    assert not verify("mnist_7x7", jobs=2).jobs["drifts"].any()


# ---- elsewhere


def test_elsewhere_the_scatter_of_other_seeds_decides_where_digits_do_not(recorded: Path) -> None:
    known = edit_versions("mnist_7x7", numpy="0.1")
    changed, found = verify("mnist_7x7", jobs=3)
    assert changed == [f"numpy was 0.1 and is {known['versions']['numpy']}"]
    assert set(found["judged by"]) == {"digits"}
    table = archive.read("mnist_7x7")
    rewrite("mnist_7x7", table.assign(mean_field=table["mean_field"] * (1 + 1e-5)))
    found = verify("mnist_7x7", jobs=1).jobs
    assert (found["judged by"].item(), found["drifts"].item()) == ("other seeds", False)
    cd = (table["method"] == "cd") & (table["layer"] == 1)
    rewrite("mnist_7x7", table.assign(sampled=table["sampled"].where(~cd, 1e6 * table["sampled"])))
    found = verify("mnist_7x7", jobs=1).jobs
    assert (found["judged by"].item(), found["drifts"].item()) == ("other seeds", True)
    assert found["number"].item().startswith("sampled, ")


def edit_versions(name: str, **changes: str) -> dict[str, Any]:
    place = archive.folder(name) / "provenance.json"
    before: dict[str, Any] = json.loads(place.read_text())
    edit(place, versions=changes)
    return before


def test_what_rounding_depends_on_is_named_and_this_package_is_not(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit_versions("mnist_7x7", leamvd="0.0", torch="9")
    assert verify("mnist_7x7", jobs=1).changed == []
    training = {"backend": "torch", "device": "cuda:0", "precision": "float64"}
    known = json.loads((recorded / "mnist_7x7" / "provenance.json").read_text())
    edit(recorded / "mnist_7x7" / "provenance.json", study={"training": known["study"]["training"] | training})
    changed = ["backend was torch and is numpy", "device was cuda:0 and is cpu"]
    assert verify("mnist_7x7", jobs=1).changed == changed
    monkeypatch.setattr(versions, "get_host_cpu_name", lambda: "abacus")
    assert any(line.startswith("machine was ") for line in verify("mnist_7x7", jobs=1).changed)


# ---- what is refused


def test_what_is_not_what_was_recorded_is_named_before_anything_runs(
    recorded: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "run", lambda *_, **__: pytest.fail("ran"))
    folder = recorded / "mnist_7x7"
    content = (folder / "runs.csv.xz").read_bytes()
    table = lzma.decompress(content).replace(b"cd,own,1,0,1,", b"cd,own,1,0,1,9", 1)
    for changed in (lzma.compress(table), content[:-9], b""):
        (folder / "runs.csv.xz").write_bytes(changed)
        with pytest.raises(DamageError, match=r"^mnist_7x7: runs\.csv\.xz is not what was recorded$"):
            verify("mnist_7x7")
    (folder / "runs.csv.xz").unlink()
    for text in (None, "[]", "[" * 100_000):
        if text is not None:
            (folder / "provenance.json").write_text(text)
        with pytest.raises(DamageError, match=r"provenance\.json or a file that it names is missing"):
            verify("mnist_7x7")


def test_what_cannot_be_verified_says_why(recorded: Path) -> None:
    for name in ("linear_cost", ".hidden"):
        (recorded / name).mkdir()
    assert recording.names() == ["classification", "linear_cost", "longer_searches", "mnist_7x7"]
    with pytest.raises(NotVerifiedError, match="linear_cost: what it costs depends on the machine; `leamvd bench`"):
        verify("linear_cost")
    with pytest.raises(ValueError, match="name must be one of 'classification', 'linear_cost'"):
        verify("mnist")
    with pytest.raises(ValueError, match=r"^jobs must be an integer >= 1, got 0"):
        verify("mnist_7x7", jobs=0)
    place = recorded / "mnist_7x7" / "provenance.json"
    edit(place, parameters={"n_images": 5000})
    with pytest.raises(NotVerifiedError, match=r"mnist_7x7: .* must be at most the 1437 images"):
        verify("mnist_7x7")
    edit(place, parameters={"n_images": 40}, checksum="other")
    with pytest.raises(NotVerifiedError, match=r"mnist_7x7: it rests on scikit-learn digits: .* is another"):
        verify("mnist_7x7")


def test_data_that_are_missing_are_no_drift_and_a_mistake_in_the_code_is_no_lack(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def mistaken(*_: object, **__: object) -> None:
        raise TypeError("mistake")

    with monkeypatch.context() as patch:
        patch.setattr(recording, "compare", mistaken)
        with pytest.raises(TypeError, match="mistake"):
            verify("mnist_7x7", jobs=1)
    edit(recorded / "mnist_7x7" / "provenance.json", parameters={"dataset": "mnist"})
    monkeypatch.setenv("LEAMVD_DATA_DIR", str(tmp_path / "nowhere"))
    with pytest.raises(NotVerifiedError, match=r"mnist_7x7: .*nowhere"):
        verify("mnist_7x7")
