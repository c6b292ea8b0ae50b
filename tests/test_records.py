import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numba
import numpy as np
import pandas as pd
import pytest

from leamvd.networks.dbn import Training, layer_seed, pretrain, propagate, train
from leamvd.networks.objective import reconstruction_errors
from leamvd.optimizers.reading import Reading
from leamvd.paper import records, studies
from leamvd.paper.datasets import load
from leamvd.paper.records import COLUMNS, fingerprint, run, stack
from leamvd.paper.studies import STUDIES, Study, Unit, images

TINY = Study(
    n_images=40,
    layers=(6, 5),
    methods=("lea-mvd", "cd", "cma-es", "lea-mvd:x0-excluded"),
    seeds=(3, 5),
    training=Training(n_elite=2, dtype="float64"),
    reading=Reading(n_gen=2, population_size=8),
)
SMALL = dataclasses.replace(TINY, methods=("cd", "lea-mvd"), seeds=(3,))

# The study in a process of its own; {hook} may make it kill itself.
PROGRAM = """
import dataclasses, os, pathlib, signal, sys
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.paper.records import run
from leamvd.paper.studies import Study
settings = {{"training": Training(n_elite=2, dtype="float64"), "reading": Reading(n_gen={n_gen}, population_size=8)}}
study = Study(n_images={n_images}, layers=(6, 5), methods=("cd", "lea-mvd"), seeds=(3,), **settings)
{hook}
print("started", flush=True)
run(study, sys.argv[1])
"""
KILL = """
replace, calls = pathlib.Path.replace, iter(range(100))
def stop_at(self, target):
    if next(calls) == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
pathlib.Path.replace = stop_at
"""


def without_seconds(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="seconds")


def same(a: pd.DataFrame, b: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(without_seconds(a), without_seconds(b), check_exact=True)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("study")


@pytest.fixture(scope="module")
def table(output: Path) -> pd.DataFrame:
    return run(TINY, output)


# ---- what is computed


def test_units_come_after_what_they_need() -> None:
    for kinds in (("own",), ("shared",), ("own", "shared")):
        for methods in (("lea-mvd",), ("cd", "lea-mvd"), ("lea-mvd", "cd", "cma-es")):
            study = dataclasses.replace(TINY, layers=(6, 5, 4), methods=methods, inputs=kinds)
            done: set[Unit] = set()
            for unit in study.units():
                below = "cd" if unit.inputs == "shared" else unit.method
                assert {Unit(below, "own", layer, unit.seed) for layer in range(1, unit.layer)} <= done
                done.add(unit)
            # every cell that `records` lists has its unit, and nothing is computed that neither it nor others need
            wanted = {
                Unit(method, "own" if layer == 1 or method == "cd" else inputs, layer, seed)
                for method in methods for inputs in kinds for layer in (1, 2, 3) for seed in (3, 5)
            }  # fmt: skip
            extra = {Unit("cd", "own", layer, seed) for layer in (1, 2, 3) for seed in (3, 5)}
            assert wanted <= done <= wanted | (extra if "shared" in kinds else set())


def test_a_record_for_each_iteration_of_each_cell(table: pd.DataFrame) -> None:
    assert tuple(table.columns) == COLUMNS
    keys = ["inputs", "layer", "method", "seed", "iteration"]
    assert len(table) == len(table[keys].drop_duplicates()) == 2 * 2 * 4 * 2 * 3
    assert list(table["method"].unique()) == list(TINY.methods)
    assert list(table["inputs"].unique()) == ["own", "shared"]
    pd.testing.assert_frame_equal(table, table.sort_values("layer", kind="stable").sort_values("inputs", kind="stable"))
    assert not table.isna().any().any()
    sizes = table.groupby("layer")[["n_visible", "n_hidden", "n_var", "n_images"]].first()
    assert sizes.to_numpy().tolist() == [[49, 6, 49 * 6 + 49 + 6, 40], [6, 5, 6 * 5 + 6 + 5, 40]]


def test_cells_that_are_the_same_in_both_chains_are_listed_in_both(table: pd.DataFrame) -> None:
    own, shared = (table[table["inputs"] == inputs].drop(columns="inputs") for inputs in ("own", "shared"))
    for part in ("layer == 1", "method == 'cd'"):
        pd.testing.assert_frame_equal(
            own.query(part).reset_index(drop=True), shared.query(part).reset_index(drop=True)
        )  # fmt: skip
    rest = "layer == 2 and method == 'lea-mvd'"
    assert not np.array_equal(own.query(rest)["mean_field"], shared.query(rest)["mean_field"])


@pytest.mark.parametrize("method", TINY.methods)
def test_own_chain_is_pretraining(table: pd.DataFrame, output: Path, method: str) -> None:
    name, reading = method.partition(":")[0], TINY.reading_of(method)
    V = images(TINY).train
    own = pretrain(V, TINY.layers, method=name, training=TINY.training, reading=reading, seed=5)
    saved = stack(TINY, output, method, 5, 2)
    for layer, (a, b) in enumerate(zip(own, saved, strict=True), start=1):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
        row = table.query(
            f"inputs == 'own' and layer == {layer} and method == @method and seed == 5 and iteration == 2"
        )
        errors = reconstruction_errors(a, V, seed=5)
        assert row[list(errors._fields)].to_numpy().tolist() == [list(errors)]
        assert row["input_std"].item() == pytest.approx(V.std(axis=0).mean(), rel=1e-12)
        V = propagate(a, V)
    (first,) = stack(TINY, output, method, 5, 1)
    assert np.array_equal(first.W, own[0].W)


def test_shared_chain_sees_the_features_of_contrastive_divergence(table: pd.DataFrame, output: Path) -> None:
    (cd,) = stack(TINY, output, "cd", 3, 1)
    V = propagate(cd, images(TINY).train)
    steps = list(train("lea-mvd", V, 5, training=TINY.training, reading=TINY.reading, seed=layer_seed(3, 2)))
    rows = table.query("inputs == 'shared' and layer == 2 and method == 'lea-mvd' and seed == 3")
    errors = [reconstruction_errors(step.rbm, V, seed=3).mean_field for step in steps]
    assert rows["mean_field"].tolist() == errors
    assert rows["evaluations"].tolist() == [step.evaluations for step in steps]


def test_bits_are_handed_on(tmp_path: Path) -> None:
    study = dataclasses.replace(SMALL, features="bits", inputs=("own",))
    run(study, tmp_path)
    bits = pretrain(
        images(study).train, study.layers, training=study.training, reading=study.reading, features="bits", seed=3
    )
    saved = stack(study, tmp_path, "cd", 3, 2)
    assert np.array_equal(saved[1].W, bits[1].W)


def test_one_layer_and_a_shared_chain_alone(tmp_path: Path) -> None:
    one = run(dataclasses.replace(SMALL, layers=(6,)), tmp_path)
    assert set(one["layer"]) == {1}
    shared = run(dataclasses.replace(SMALL, methods=("lea-mvd",), inputs=("shared",)), tmp_path)
    assert set(shared["inputs"]) == {"shared"}
    assert set(shared["method"]) == {"lea-mvd"}
    both = run(SMALL, tmp_path)
    wanted = both[(both["inputs"] == "shared") & (both["method"] == "lea-mvd")]
    same(shared, wanted.reset_index(drop=True))


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs a terminal")
def test_progress_reaches_the_terminal_that_a_notebook_is_run_from(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty()
    monkeypatch.setenv("LEAMVD_TERMINAL", os.ttyname(theirs))
    run(SMALL, tmp_path)
    shown = os.read(ours, 1 << 16).decode()
    os.close(ours)
    os.close(theirs)
    assert "study" in shown
    assert "iteration" in shown
    assert capfd.readouterr() == ("", ""), "a notebook's own output stays clean"


def test_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(SMALL, tmp_path, progress=True)
    run(SMALL, tmp_path, progress=True)  # resumed: nothing is left to do
    bars = capsys.readouterr().err.split("\n")
    assert sum("100%" in bar and "10/10" in bar for bar in bars) == 2
    run(dataclasses.replace(SMALL, layers=(6,)), tmp_path)
    assert capsys.readouterr() == ("", "")


# ---- resuming


def program(n_gen: int = 2, n_images: int = 40, hook: str = "") -> list[str]:
    return [sys.executable, "-c", PROGRAM.format(n_gen=n_gen, n_images=n_images, hook=hook)]


def test_killed_before_each_write_a_study_completes_to_the_same_records(tmp_path: Path) -> None:
    # Each start gets as far as its third write and is killed there: between weights and records, and before both.
    kills = 0
    while True:
        done = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/[!.]*.csv")}
        process = subprocess.run([*program(hook=KILL.format(at=2)), str(tmp_path)], capture_output=True, check=False)
        assert {path: path.stat().st_mtime_ns for path in done} == done, "a complete unit was computed again"
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr
        kills += 1
        assert kills <= 5
    assert kills >= 4
    (folder,) = tmp_path.iterdir()
    assert folder.name == f"study-{fingerprint(SMALL, images(SMALL))}"
    same(records.records(SMALL, folder), run(SMALL, tmp_path / "never killed"))


def test_killed_at_random_a_study_completes_to_the_same_records(tmp_path: Path) -> None:
    study = dataclasses.replace(SMALL, n_images=1000, reading=dataclasses.replace(SMALL.reading, n_gen=60))
    start = time.perf_counter()
    whole = run(study, tmp_path / "never killed")
    seconds = time.perf_counter() - start
    waits = np.random.default_rng(os.getpid()).uniform(0, seconds / 2, 3)
    for wait in waits:
        command = [*program(n_gen=60, n_images=1000), str(tmp_path / "killed")]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
    same(run(study, tmp_path / "killed"), whole)


def test_what_a_killed_write_left_is_no_result(tmp_path: Path) -> None:
    whole = run(SMALL, tmp_path / "whole")
    folder = tmp_path / "killed" / f"study-{fingerprint(SMALL, images(SMALL))}"
    folder.mkdir(parents=True)
    for unit in SMALL.units():
        (folder / f".{unit.name}.csv").write_text("method,inputs\ncd,ow")
        (folder / f".{unit.name}.npz").write_bytes(b"PK")
        (folder / f"{unit.name}.npz").write_bytes(b"PK")  # weights whose records were never written count for nothing
    (folder / ".provenance.json").write_text("{")
    same(run(SMALL, tmp_path / "killed"), whole)
    assert json.loads((folder / "provenance.json").read_text())["checksum"]


def test_complete_units_are_read_and_not_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(SMALL, tmp_path)

    def never(*arguments: object, **options: object) -> None:
        raise AssertionError("computed again")

    monkeypatch.setattr(records, "train", never)
    pd.testing.assert_frame_equal(run(SMALL, tmp_path), whole, check_exact=True)
    (removed,) = tmp_path.glob("*/lea-mvd-shared-layer2-seed3.csv")
    removed.unlink()
    with pytest.raises(AssertionError, match="computed again"):
        run(SMALL, tmp_path)


@pytest.mark.compiled
def test_threads_do_not_change_a_bit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = dataclasses.replace(
        SMALL, side=14, n_images=1200, layers=(30,), training=dataclasses.replace(SMALL.training, dtype="float32")
    )
    tables = []
    for n_threads in (1, 2):
        numba.set_num_threads(n_threads)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, n=n_threads: set(range(n)), raising=False)
        tables.append(run(study, tmp_path / str(n_threads)))
    same(*tables)


# ---- provenance


def test_provenance_says_what_a_record_must_be_read_with(output: Path, table: pd.DataFrame) -> None:
    (folder,) = output.iterdir()
    known = json.loads((folder / "provenance.json").read_text())
    assert known["checksum"] == load("digits").checksum
    assert known["data"].startswith("scikit-learn digits: 40 of 1437")
    assert known["study"]["dataset"] == "scikit-learn digits"
    assert known["study"]["reading"]["n_gen"] == 2
    assert known["study"]["seeds"] == [3, 5]
    assert set(known["methods"]) == set(TINY.methods)
    assert known["methods"]["lea-mvd:x0-excluded"]["reading"]["x0_in_population"] is False
    assert known["methods"]["lea-mvd"]["n_elite"] == 2
    assert known["methods"]["cd"] == {"n_gen": 2}
    cma_es = {"population_size": 8, "n_gen": 2, "sigma0": 0.1, "x0_in_population": True}
    assert known["methods"]["cma-es"] == cma_es
    assert known["versions"]["numpy"] == np.__version__
    assert set(known) == {
        "study", "methods", "data", "checksum", "code", "commit", "versions", "python", "machine",
    }  # fmt: skip


def test_folder_is_named_after_everything_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(TINY)
    training = dataclasses.replace(TINY.training, sigma0=0.2)
    studies = [
        TINY,
        dataclasses.replace(TINY, seeds=(3, 6)),
        dataclasses.replace(TINY, training=training),
        dataclasses.replace(TINY, features="bits"),
        dataclasses.replace(TINY, methods=("lea-mvd", "cd")),
    ]
    names = [fingerprint(study, data) for study in studies]
    names.append(fingerprint(TINY, data._replace(checksum="0" * 64)))
    monkeypatch.setattr(records, "_code", lambda package: "other")
    names.append(fingerprint(TINY, data))
    monkeypatch.setattr(records, "version", lambda package: "0")
    names.append(fingerprint(TINY, data))
    assert len(set(names)) == len(names)
    monkeypatch.setattr(records, "_commit", lambda: "another commit with the same code")
    assert fingerprint(TINY, data) == names[-1]


def test_a_readings_content_matters_and_not_only_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for exponent in (1.0, 2.0):
        Path("mine.json").write_text(Reading(exponent=exponent).to_json())
        study = dataclasses.replace(TINY, methods=("lea-mvd:mine.json",))
        names.append(fingerprint(study, images(study)))
    assert names[0] != names[1]


def test_code_digest_leaves_out_what_only_shows(tmp_path: Path) -> None:
    package = tmp_path / "leamvd"
    shutil.copytree(Path(records.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    code = records._code.__wrapped__
    before = code(package)
    for name in ("findings.py", "verdicts.py", "book.py", "figures/publish.py"):
        (package / name).write_text("# changed\n")
    assert code(package) == before
    for name in ("baselines/cma_es.py", "streams.py", "dbn.py"):
        (package / name).write_text("# changed\n")
        assert code(package) != before
        before = code(package)


def test_code_edited_during_a_run_is_not_the_code_that_runs(tmp_path: Path) -> None:
    (tmp_path / "streams.py").write_text("1")
    before = records._code(tmp_path)
    (tmp_path / "streams.py").write_text("2")
    assert records._code(tmp_path) == before


def test_commit_is_the_clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "__file__", str(tmp_path / "experiments.py"))
    assert records._commit() is None  # not a clone
    git = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e"]
    (tmp_path / "experiments.py").write_text("1")
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *command], check=True)
    commit = records._commit()
    assert commit
    head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout
    assert head.startswith(commit)
    (tmp_path / "experiments.py").write_text("2")
    assert records._commit() == f"{commit}+"


# ---- studies


def test_profiles_are_the_papers_numbers_and_a_smaller_scale() -> None:
    for (section, profile), study in STUDIES.items():
        assert study == studies.study(section, profile)
        assert study.dataset == ("mnist" if profile == "paper" else "digits")
        assert study.inputs == ("own", "shared")
        if profile == "paper":
            assert study.n_images is None
            assert len(study.seeds) == 30
            assert study.reading == Reading(n_gen=50)
            assert (study.reading.population_size, study.training.n_elite, study.training.sigma0) == (24, 4, 0.1)
        sizes = (study.side**2, *study.layers)
        assert sizes == ((49, 30, 30, 120) if section == "mnist-7x7" else (784, 500, 500, 2000))


def test_changes_go_to_the_study_its_training_or_its_reading() -> None:
    changes = {"layers": [4], "seeds": [1, 2], "n_gen": 7, "exponent": 2.0, "dtype": "float32", "n_images": None}
    changed = studies.study("mnist-7x7", "quick", **changes)
    base = STUDIES["mnist-7x7", "quick"]
    training = dataclasses.replace(base.training, dtype="float32")
    reading = dataclasses.replace(base.reading, n_gen=7, exponent=2.0)
    assert changed == dataclasses.replace(base, layers=(4,), seeds=(1, 2), training=training, reading=reading)
    assert studies.study("mnist-7x7", "quick", layers=None) == base
    given = studies.study("mnist-7x7", "quick", reading=Reading(ties="newest"), training=Training(n_elite=2), n_gen=7)
    assert given.reading == Reading(ties="newest", n_gen=7)
    assert given.training == Training(n_elite=2)
    fields = [field.name for part in (Study, Training, Reading) for field in dataclasses.fields(part)]
    assert len(set(fields)) == len(fields), "a change must have one place to go to"


def test_parameters_of_a_notebook() -> None:
    namespace = {
        "profile": "quick", "section": "mnist-7x7", "output": "results", "n_gen": 7, "seeds": [1], "dtype": "float32",
        "exponent": None, "np": np, "reading": Reading(), "x0_in_population": False,
    }  # fmt: skip
    found = studies.parameters(namespace)
    assert found == {"n_gen": 7, "seeds": [1], "dtype": "float32", "x0_in_population": False}
    changed = studies.study("mnist-7x7", "quick", **found)
    assert (changed.reading.n_gen, changed.reading.x0_in_population, changed.seeds) == (7, False, (1,))


def test_a_reading_of_its_own_wins_over_the_studys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text('{"population_size": 20, "n_gen": 30, "x0_in_population": true}')
    own = Reading(n_gen=4, exponent=2.0, ties="newest", x0_in_population=False, elites="reevaluate")
    study = dataclasses.replace(TINY, methods=("cd", "lea-mvd"), reading=own)
    for method in ("cd", "lea-mvd", "cma-es", "lea-mvd:default"):
        assert study.reading_of(method) == own
    assert study.reading_of("lea-mvd:x0-excluded") == own
    printed = dataclasses.replace(Reading.printed(), n_gen=4, exponent=2.0, ties="newest")
    assert study.reading_of("lea-mvd:printed") == printed
    mine = dataclasses.replace(own, population_size=20, n_gen=30, x0_in_population=True)
    assert study.reading_of("lea-mvd:mine.json") == mine
    assert study.reading_of("random:mine.json") == mine


def test_a_file_that_gives_population_and_generations_is_run_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text(Reading(population_size=20, n_gen=30).to_json())
    methods = tuple(f"{method}:mine.json" for method in ("lea-mvd", "cma-es", "sep-cma-es", "random"))
    study = dataclasses.replace(TINY, layers=(3,), inputs=("own",), seeds=(3,), methods=("cd", "lea-mvd", *methods))
    table = run(study, tmp_path / "results")
    known = json.loads(next(tmp_path.glob("results/*/provenance.json")).read_text())["methods"]
    for method, rows in table.groupby("method"):
        size, n_gen = (20, 30) if ":" in str(method) else (8, 2)
        assert rows["iteration"].tolist() == list(range(n_gen + 1))
        if method != "cd":
            new = size - 2 if str(method).startswith("lea-mvd") else size  # two elites keep their values
            assert rows["evaluations"].tolist() == [0, *(size + new * i for i in range(n_gen))]
            assert known[method]["population_size"] == size
        assert known[method]["n_gen"] == n_gen


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": []}, "layers must be one or more values, got"),
        ({"layers": [3, 0]}, "layers must be an integer >= 1, got 0"),
        ({"methods": ["cd", "cd"]}, "methods must be one or more values, all different"),
        ({"methods": ["adam"]}, "methods must be one of 'cd'"),
        ({"methods": ["lea-mvd:unheard"]}, "reading must be"),
        ({"methods": ["cd:printed"]}, "'cd' has none"),
        ({"inputs": ["both"]}, "inputs must be one of"),
        ({"seeds": [-1]}, "seeds must be an integer >= 0"),
        ({"features": "both"}, "features must be one of"),
        ({"n_elite": 24}, "n_elite=24 clashes with population_size=24"),
        ({"population_size": 4, "n_elite": 1}, "n_descent_rows=4 clashes with population_size=4"),
        ({"dataset": "nowhere"}, "nowhere"),
        ({"n_images": 10_000}, "n_train must be at most the 1437 images"),
    ],
)
def test_errors_come_before_any_work(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises((ValueError, RuntimeError), match=message):
        run(studies.study("mnist-7x7", "quick", **changes), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="section must be one of"):
        studies.study("mnist-9x9", "quick")
    with pytest.raises(ValueError, match="profile must be one of 'quick', 'paper'"):
        studies.study("mnist-7x7", "slow")
    with pytest.raises(TypeError, match="n_layers"):
        studies.study("mnist-7x7", "quick", n_layers=3)


def test_readings_from_files_have_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").mkdir()
    for name in ("mine.json", "a/mine.json", "a-mine.json"):
        Path(name).write_text(Reading(exponent=2.0).to_json())
    methods = ("lea-mvd", "lea-mvd:mine.json", "lea-mvd:a/mine.json", "cma-es:mine.json")
    units = dataclasses.replace(TINY, methods=methods).units()
    names = {unit.name for unit in units}
    assert len(names) == len(units)
    assert "lea-mvd-a-mine-own-layer1-seed3" in names
    assert not any("/" in name or ":" in name for name in names)
    with pytest.raises(ValueError, match="differ in more than the signs"):
        dataclasses.replace(TINY, methods=("lea-mvd:a/mine.json", "lea-mvd:a-mine.json"))
