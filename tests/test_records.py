import ast
import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import numba
import numpy as np
import pandas as pd
import pytest
from nbclient import NotebookClient
from small_studies import SMALL, TINY, same

from leamvd.networks.dbn import Training, layer_input, layer_seed, pretrain, train
from leamvd.networks.objective import reconstruction_errors
from leamvd.optimizers.reading import Reading
from leamvd.paper import records, versions
from leamvd.paper.datasets import load
from leamvd.paper.pieces import Unit
from leamvd.paper.records import COLUMNS, fingerprint, run, stack
from leamvd.paper.studies import images


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
    sizes = table.groupby("layer")[["n_visible", "n_hidden", "n_var", "n_images", "n_test_images"]].first()
    assert sizes.to_numpy().tolist() == [[49, 6, 49 * 6 + 49 + 6, 40, 360], [6, 5, 6 * 5 + 6 + 5, 40, 360]]
    first = table[(table["iteration"] == 0) & (table["method"] != "cd")]
    assert set(first["passes"]) == {2}
    assert set(first["products"]) == {2 * (2 * 3 + 3)}, "two epochs of CD-3"


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
    data = images(TINY)
    settings = {"training": TINY.training, "reading": reading, "features": "bits"}
    own = pretrain(data.train, TINY.layers, method=name, seed=5, **settings)
    saved = stack(TINY, output, method, 5, 2)
    for layer, (a, b) in enumerate(zip(own, saved, strict=True), start=1):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))
        row = table.query(
            f"inputs == 'own' and layer == {layer} and method == @method and seed == 5 and iteration == 2"
        )
        V = layer_input(own[: layer - 1], data.train, features="bits", seed=5)
        T = layer_input(own[: layer - 1], data.test, features="bits", seed=5, test=True)
        errors = reconstruction_errors(a, V, seed=layer_seed(5, layer))
        assert row[list(errors._fields)].to_numpy().tolist() == [list(errors)]
        assert row["test_mean_field"].item() == pytest.approx(((T - a.reconstruct(T)) ** 2).sum(), rel=1e-12)
        constant = ((T - V.mean(axis=0)) ** 2).sum()
        for measure in ("mean_field", "sampled"):
            ratio = row[f"test_{measure}"].item() / constant
            assert row[f"test_{measure}_ratio"].item() == pytest.approx(ratio, rel=1e-12)
        assert row["input_std"].item() == pytest.approx(V.std(axis=0).mean(), rel=1e-12)
    (first,) = stack(TINY, output, method, 5, 1)
    assert np.array_equal(first.W, own[0].W)


def test_shared_chain_sees_the_features_of_contrastive_divergence(table: pd.DataFrame, output: Path) -> None:
    (cd,) = stack(TINY, output, "cd", 3, 1)
    V = layer_input([cd], images(TINY).train, features="bits", seed=3)
    steps = list(train("lea-mvd", V, 5, training=TINY.training, reading=TINY.reading, seed=layer_seed(3, 2)))
    rows = table.query("inputs == 'shared' and layer == 2 and method == 'lea-mvd' and seed == 3")
    errors = [reconstruction_errors(step.rbm, V, seed=layer_seed(3, 2)).mean_field for step in steps]
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
    assert "mnist-7x7: 5 of 5 units" in shown
    assert capfd.readouterr() == ("", ""), "a notebook's own output stays clean"


def test_progress(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(SMALL, tmp_path, progress=True)
    run(SMALL, tmp_path, progress=True)  # resumed: nothing is left to do
    lines = capsys.readouterr().err.split("\n")
    assert sum("100%" in line and "5 of 5 units, done" in line for line in lines) == 2
    run(dataclasses.replace(SMALL, layers=(6,)), tmp_path)
    assert capsys.readouterr() == ("", "")


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
    (path,) = output.glob("study-*.json")
    known = json.loads(path.read_text())
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
    absent = records.provenance(dataclasses.replace(TINY, training=Training(x0="none", x0_limit=0.2)), load("digits"))
    assert absent["methods"]["lea-mvd"]["bounds"] == (-0.2, 0.2)
    assert absent["methods"]["cma-es"]["x0_in_population"] is False
    assert known["versions"]["numpy"] == np.__version__
    assert set(known) == {
        "study", "methods", "data", "checksum", "code", "commit", "versions", "python", "machine", "units",
    }  # fmt: skip
    assert list(known["units"]) == [unit.name for unit in TINY.units()]
    assert all((output / "store" / name / "manifest.json").exists() for name in known["units"].values())


def test_a_study_is_named_after_everything_that_matters(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(TINY)
    training = dataclasses.replace(TINY.training, sigma0=0.2)
    studies = [
        TINY,
        dataclasses.replace(TINY, seeds=(3, 6)),
        dataclasses.replace(TINY, training=training),
        dataclasses.replace(TINY, features="probabilities"),
        dataclasses.replace(TINY, methods=("lea-mvd", "cd")),
    ]
    names = [fingerprint(study, data) for study in studies]
    names.append(fingerprint(TINY, data._replace(checksum="0" * 64)))
    monkeypatch.setattr(versions, "code", lambda: "other")
    names.append(fingerprint(TINY, data))
    monkeypatch.setattr(versions, "version", lambda package: "0")
    names.append(fingerprint(TINY, data))
    assert len(set(names)) == len(names)
    monkeypatch.setattr(versions, "commit", lambda: "another commit with the same code")
    assert fingerprint(TINY, data) == names[-1]


def test_a_readings_content_matters_and_not_only_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names = []
    for exponent in (1.0, 2.0):
        Path("mine.json").write_text(Reading(exponent=exponent).to_json())
        study = dataclasses.replace(TINY, methods=("lea-mvd:mine.json",))
        names.append(fingerprint(study, images(study)))
    assert names[0] != names[1]


def imported(path: Path) -> set[Path]:
    """Return the package's files that a file of it imports, inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        names = [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        for name in names:
            parts = name.split(".")
            if parts[0] == "leamvd":
                stems = (versions.PACKAGE.parent.joinpath(*parts[:n]) for n in range(1, len(parts) + 1))
                files = (file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py"))
                found |= {file for file in files if file.exists()}
    return found


def test_computing_code_is_all_that_units_import() -> None:
    needed: set[Path] = set()
    new = {versions.PACKAGE / "paper" / "units.py"}
    while new:
        needed |= new
        new = set().union(*map(imported, new)) - needed
    assert len(needed) > 20
    # leamvd/__init__.py and leamvd/paper/__init__.py hand out names and compute nothing
    shells = {versions.PACKAGE / "__init__.py", versions.PACKAGE / "paper" / "__init__.py"}
    computing = set(versions.sources(versions.PACKAGE, versions.COMPUTING))
    assert needed - shells <= computing
    assert {path.name for path in computing - needed} <= {"__init__.py"}


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    package = tmp_path / "leamvd"
    shutil.copytree(versions.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_records_outlive_edits_of_figures_docstrings_and_comments(copied: Path) -> None:
    code = versions.code.__wrapped__
    before = code(copied)
    assert before == code(versions.PACKAGE)
    for path in (copied / "paper" / "figures").glob("*.py"):
        path.write_text("changed = True\n", encoding="utf-8")
    for name in (
        "paper/claims.py",
        "paper/comparison.py",
        "paper/studies.py",
        "paper/campaign.py",
        "cli.py",
        "bench/timing.py",
        "book/render.py",
    ):
        (copied / name).write_text("changed = True\n", encoding="utf-8")
    edit(copied / "_support" / "checks.py", "Checks of arguments", "Tests of arguments")
    edit(copied / "_support" / "checks.py", '    """Return `value` as an int', '    """Return it as an int')
    edit(copied / "networks" / "dbn.py", '"""What can train a layer."""', "")
    edit(copied / "networks" / "objective.py", "# OpenBLAS multiplies", "# It multiplies")
    assert code(copied) == before


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("networks/logistic.py", "np.float32(87)", "np.float32(86)"),
        ("networks/contrastive_divergence.py", "momentum * step[i]", "step[i]"),
        ("networks/torch_backend.py", "sigmoid_()", "tanh_()"),
        ("optimizers/cma_es.py", "warnings.simplefilter", "warnings.filterwarnings"),
        ("optimizers/minimize.py", "METHODS = (", "METHODS = (*(), "),
        ("_support/compile.py", "inline: bool = False", "inline: bool = True"),
        ("paper/datasets.py", "subset_rng, bits_rng = rng", "bits_rng, subset_rng = rng"),
        ("paper/units.py", "seed=seed", "seed=0"),
    ],
)
def test_an_edit_of_what_computes_voids_the_records(copied: Path, name: str, old: str, new: str) -> None:
    code = versions.code.__wrapped__
    before = code(copied)
    edit(copied / name, old, new)
    assert code(copied) != before


def test_code_edited_during_a_run_is_not_the_code_that_runs(copied: Path) -> None:
    before = versions.code(copied)
    edit(copied / "networks" / "logistic.py", "np.float32(87)", "np.float32(86)")
    assert versions.code(copied) == before


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_commit_is_the_clones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "clone" / "leamvd"
    source = package / "paper" / "versions.py"
    source.parent.mkdir(parents=True)
    source.write_text("1")
    monkeypatch.setattr(versions, "__file__", str(source))
    monkeypatch.setattr(versions, "PACKAGE", package)
    assert versions.commit() is None, "not a clone"
    git(package.parent, "init", "-q")
    (package.parent / "other").write_text("1")
    git(package.parent, "add", "other")
    git(package.parent, "commit", "-q", "-m", "m")
    assert versions.commit() is None, "a repository that does not hold the library"
    git(package.parent, "add", ".")
    git(package.parent, "commit", "-q", "-m", "m")
    commit = versions.commit()
    assert commit
    assert git(package, "rev-parse", "HEAD").startswith(commit)
    source.write_text("2")
    assert versions.commit() == f"{commit}+"


def test_commit_is_not_that_of_a_repository_that_encloses_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / ".venv" / "lib" / "site-packages" / "leamvd"
    source = package / "paper" / "versions.py"
    source.parent.mkdir(parents=True)
    source.write_text("1")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")  # even where somebody keeps the environment in the repository
    git(tmp_path, "commit", "-q", "-m", "m")
    monkeypatch.setattr(versions, "__file__", str(source))
    monkeypatch.setattr(versions, "PACKAGE", package)
    assert versions.commit() is None


# ---- files


def test_tables_are_read_back_to_the_bit(tmp_path: Path) -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 100_000, dtype=np.uint64)
    values = words.view(np.float64)
    small = (words >> np.uint64(12)).view(np.float64)  # denormals
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3]
    numbers = np.concatenate([values, small, special])
    assert (abs(small) < np.finfo(np.float64).tiny).all()
    table = pd.DataFrame({"number": numbers, "count": np.arange(len(numbers)), "method": "lea-mvd:printed"})
    records.write_table(tmp_path / "t.csv", table)
    read = records.read_table(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read, table, check_exact=True)
    ours, nan = read["number"].to_numpy(), np.isnan(numbers)
    assert np.array_equal(np.isnan(ours), nan)
    assert np.array_equal(ours.view(np.uint64)[~nan], numbers.view(np.uint64)[~nan]), "-0.0 is not 0.0"


def test_recorded_tables_ship_with_the_notebooks() -> None:
    folder = records.recorded_folder("backend_agreement")
    assert folder == versions.PACKAGE.parent / "notebooks" / "recorded" / "backend_agreement"
    table = records.recorded("backend_agreement")
    assert table.to_csv(index=False) == (folder / "runs.csv").read_text(encoding="utf-8")
    assert not records.recorded("linear_cost", "training").empty
    with pytest.raises(FileNotFoundError, match="nothing"):
        records.recorded("nothing")


def test_a_notebook_opened_by_hand_says_what_is_stored_and_shows_its_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    cells = ["import dataclasses\nfrom small_studies import SMALL\nfrom leamvd.paper import records"]
    cells += ["table = records.run(SMALL, 'results')"]
    cells += ["more = records.run(dataclasses.replace(SMALL, seeds=(3, 4)), 'results')", cells[1]]
    notebook = nbformat.v4.new_notebook(cells=list(map(nbformat.v4.new_code_cell, cells)))
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": tmp_path}}).execute()
    said = [[output.data["text/plain"] for output in cell.outputs] for cell in notebook.cells]
    first, second, third = (text for (text,) in said[1:])
    assert first.startswith("mnist-7x7: 0 of 5 units are stored; 5 are computed now, in about ")
    assert second.startswith("mnist-7x7: 5 of 10 units are stored; 5 are computed now, in about ")
    assert third == "mnist-7x7: 5 of 5 units are stored"
    assert not any("\n" in text for text in (first, second)), "no bar stays"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results"]
