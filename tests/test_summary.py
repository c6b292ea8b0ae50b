"""What a run ends with: its final errors, what has changed against what is recorded, its files."""

import dataclasses
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from quick_runs import SMALL, execute, leamvd, view

from leamvd.analysis import intervals, statistics
from leamvd.book import reproduction, runs, sections, summary
from leamvd.campaign import archive
from leamvd.campaign.tables import read_table
from leamvd.studies import catalog, records

PAPER = catalog.STUDIES["mnist-7x7", "paper"]
COMMAND = ("reproduce", *SMALL, "-p", "seeds=0-2", "--jobs", "1", "--output")


def test_errors_are_on_the_screen_before_the_notebook_and_stored_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no notebook")

    with monkeypatch.context() as patch:
        patch.setattr(sections, "_execute", fail)
        early = leamvd(*COMMAND, str(tmp_path))
    assert early.exit_code == 1
    monkeypatch.setattr(sections, "_execute", execute)
    late = leamvd(*COMMAND, str(tmp_path))
    place = view(tmp_path)
    table = read_table(place / "summary.csv")
    pd.testing.assert_frame_equal(table, intervals.errors(runs.read(place).table()), check_exact=True)
    assert summary.printed(table) in early.stdout
    assert summary.printed(table) in late.stdout
    files = ["03_mnist_7x7.ipynb", "summary.csv", "figures/mnist-7x7-mean-field.png"]
    assert late.stdout.endswith("\n".join([str(place), *(f"  {name}" for name in files), ""]))

    # again, in a process of its own: without the compiler, a kernel or the images
    program = (
        "import sys; from leamvd import cli; cli.main(sys.argv[1:], standalone_mode=False);"
        "print({'numba', 'papermill', 'sklearn', 'matplotlib'} & {*sys.modules})"
    )
    command = [sys.executable, "-c", program, *COMMAND, str(tmp_path)]
    again = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert summary.printed(table) in again
    assert again.endswith("set()\n")


def errors(*cells: tuple[str, int, str, float]) -> pd.DataFrame:
    """Return a summary of cells with their means, each of two runs, one below and one above it."""
    rows = [("mean_field", *cell, cell[-1] - 1, cell[-1] + 1, 2) for cell in cells]
    return pd.DataFrame(rows, columns=["measure", "inputs", "layer", "method", "mean", "low", "high", "runs"])


def test_errors_stand_by_method_and_layer() -> None:
    table = errors(("own", 1, "lea-mvd", 10), ("own", 2, "lea-mvd", 20), ("own", 1, "cd", 30))
    other = table.assign(measure="sampled", mean=99.0)
    heading, head, *rows = summary.printed(pd.concat([table, other])).splitlines()
    assert heading.startswith("mean-field errors per 10,000 images")
    assert heading.endswith(": 2")
    assert head.split() == ["inputs", "method", "RBM", "1", "RBM", "2"]
    told = [" ".join(row.split()) for row in rows[:2]]
    assert told == ["own lea-mvd 10 [9, 11] 20 [19, 21]", "own cd 30 [29, 31] –"]
    assert rows[2:] == ["no run with these settings is recorded"]


def test_what_is_recorded_of_the_same_settings_is_found() -> None:
    some = dataclasses.replace(PAPER, seeds=(3,), methods=("cd", "random"), inputs=("own",))
    assert reproduction._recorded(some) == "mnist_7x7"
    assert reproduction._recorded(dataclasses.replace(some, methods=("lea-mvd:sigma0=0.7",))) is None
    changes = {"n_images": 100, "dataset": "digits", "layers": (30,), "features": "bits"}
    training = dataclasses.replace(PAPER.training, sigma0=0.2)
    reading = dataclasses.replace(PAPER.reading, n_gen=49)
    changed = [{name: value} for name, value in changes.items()] + [{"training": training}, {"reading": reading}]
    assert {reproduction._recorded(dataclasses.replace(some, **one)) for one in changed} == {None}


@pytest.mark.parametrize("section", ["mnist-7x7", "mnist-28x28", "readings"])
def test_each_profile_is_compared_with_what_is_recorded_of_it(section: str) -> None:
    for profile in (profile for name, profile in catalog.STUDIES if name == section):
        study = dataclasses.replace(catalog.STUDIES[section, profile], seeds=(3,))
        assert reproduction._recorded(study) == catalog.ARCHIVED[section].get(profile), profile


def test_a_recorded_run_ends_with_its_errors_too_and_compares_them_with_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sections, "_execute", lambda section, values, work, store: shutil.copy(section.path, work))
    table = intervals.errors(archive.read("mnist_7x7"))
    shown = summary.printed(table, recorded=True)
    assert len(shown.splitlines()) == 2 + len(table.drop_duplicates(["inputs", "method"]))
    command = ("reproduce", "mnist-7x7", "--profile", "recorded", "--output", str(tmp_path))
    first, again = leamvd(*command).stdout, leamvd(*command).stdout
    assert f"{shown}\n03_mnist_7x7: executing" in first
    assert f"{shown}\n03_mnist_7x7: finished before" in again


def test_the_same_runs_have_not_changed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    rows = archive.read("mnist_7x7").query("seed < 4 and method in ['cd', 'lea-mvd'] and inputs == 'own'")
    monkeypatch.setattr(records, "stored", lambda *_: rows)
    found = reproduction.final_errors(PAPER, tmp_path)
    assert found is not None
    assert (found[["ratio", "ratio_low", "ratio_high"]] == 1).all(axis=None)
    assert set(found["paired"]) == {4}
    worse = rows.assign(mean_field=rows["mean_field"] * (1.1 + 0.01 * rows["seed"]))
    monkeypatch.setattr(records, "stored", lambda *_: worse)
    found = reproduction.final_errors(PAPER, tmp_path)
    assert found is not None
    row = found.query("measure == 'mean_field' and method == 'cd' and layer == 1").iloc[0]
    assert row["ratio"] == pytest.approx((1.1 * 1.11 * 1.12 * 1.13) ** (1 / 4))
    *_, told, _, changed, _ = summary.printed(found).splitlines()
    assert told.startswith("over those of the recorded run")
    assert told.endswith("seeds in common: 4")
    assert statistics.text(*row[["ratio", "ratio_low", "ratio_high"]], "{:.4g}".format) in changed


def test_a_study_of_what_stacks_are_worth_has_no_final_errors(tmp_path: Path) -> None:
    assert reproduction.final_errors(catalog.STUDIES["classification", "quick"], tmp_path) is None
    assert reproduction.final_errors(None, tmp_path) is None
