"""The key of a job: it changes with all that decides on the result, and with nothing else."""

import ast
import dataclasses
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import counting_jobs
import numpy as np
import pytest
from counting_jobs import ONE, Count
from hypothesis import given
from hypothesis import strategies as st

from leamvd.campaign import jobs as keys
from leamvd.campaign import versions
from leamvd.campaign.jobs import Job
from leamvd.data.images import Images
from leamvd.experiments import layers, searches, stacks
from leamvd.experiments.layers import TrainLayer
from leamvd.experiments.stacks import FineTune, Mistakes, Probe
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading

IMAGES = Images("checksum", "description")
LAYER = TrainLayer(
    images=IMAGES, trainer="lea-mvd", layer=1, n_hidden=5, seed=3, training=Training(), reading=Reading(n_gen=2)
)


def key(job: Job) -> str:
    """Return a key as another process would, which has seen no other job."""
    keys.key.cache_clear()
    return keys.key(job)


def test_a_key_says_what_it_is_of() -> None:
    assert key(LAYER).startswith("lea-mvd-layer1-seed3-")
    known = keys.depends_on(dataclasses.replace(LAYER, layer=2, below=(LAYER,)))
    assert known["job"] == "TrainLayer"
    assert known["training"]["sigma0"] == 0.1
    assert known["below"] == [key(LAYER)]
    assert {"numba", "numpy", "scipy"} <= known["versions"].keys()


numbers = st.integers(0, 2**70) | st.floats(allow_nan=False, allow_infinity=False)
counts = st.builds(
    Count, number=numbers, length=numbers, below=st.just(()) | st.tuples(st.builds(Count, number=numbers))
)


@given(counts, counts)
def test_jobs_are_equal_where_their_keys_are(a: Count, b: Count) -> None:
    otherwise = dataclasses.replace(a, number=float(a.number) if a.number < 2**53 else np.int64(a.number % 2**60))
    for other in (b, otherwise):
        assert (digested(a) == digested(other)) == (a == other)


def digested(job: Job) -> str:
    key(job)
    return json.dumps(keys.depends_on(job))


CHANGES: dict[str, Any] = {
    "images": Images("another", "description"), "trainer": "random", "layer": 2, "n_hidden": 6, "seed": 4,
    "features": "bits", "below": (LAYER,), "training": dataclasses.replace(LAYER.training, weight_decay=0.0),
    "reading": dataclasses.replace(LAYER.reading, exponent=2.0),
}  # fmt: skip


def test_every_field_counts() -> None:
    assert CHANGES.keys() == {field.name for field in dataclasses.fields(TrainLayer)}
    found = [key(dataclasses.replace(LAYER, **{name: value})) for name, value in CHANGES.items()]
    assert len({key(LAYER), *found}) == len(found) + 1


def test_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "packages", versions.packages.__wrapped__)
    before, cma_es = key(LAYER), dataclasses.replace(LAYER, trainer="cma-es")
    before_cma_es = key(cma_es)
    own = versions.version
    for package in ("numpy", "numba", "scipy"):
        monkeypatch.setattr(versions, "version", lambda name, p=package: "0" if name == p else own(name))
        assert key(LAYER) != before
    monkeypatch.setattr(versions, "version", lambda name: "0" if name == "cma" else own(name))
    assert key(LAYER) == before, "it does not use this one"
    assert key(cma_es) != before_cma_es


# ---- code


def test_a_key_names_the_code_of_its_job() -> None:
    assert keys.depends_on(LAYER)["code"] == versions.code(Path(layers.__file__))
    assert keys.depends_on(ONE)["code"] == versions.code(Path(counting_jobs.__file__))


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    package = tmp_path / "leamvd"
    shutil.copytree(versions.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


MODULES = ("layers", "stacks", "searches")


def codes(package: Path) -> dict[str, str]:
    """Return the code of the jobs of each module, read anew."""
    for function in (versions.code, versions.sources, versions._parsed):
        function.cache_clear()
    return {module: versions.code(package / f"experiments/{module}.py", package) for module in MODULES}


@pytest.fixture(scope="module")
def unedited() -> dict[str, str]:
    return codes(versions.PACKAGE)


def test_keys_outlive_edits_of_other_modules_docstrings_and_comments(copied: Path, unedited: dict[str, str]) -> None:
    assert codes(copied) == unedited
    modules = [copied / "experiments" / f"{name}.py" for name in MODULES]
    used = {path.relative_to(copied) for module in modules for path in versions.sources(module, copied)}
    others = {path.relative_to(copied) for path in copied.rglob("*.py")} - used
    rooms = {path.parts[0] for path in others}
    assert {"analysis", "bench", "book", "campaign", "cli.py", "experiments", "figures"} <= rooms
    for path in others:
        (copied / path).write_text("changed = True\n", encoding="utf-8")
    edit(copied / "_support" / "checks.py", "Checks of arguments", "Tests of arguments")
    edit(copied / "_support" / "checks.py", '    """Return `value` as an int', '    """Return it as an int')
    edit(copied / "networks" / "dbn.py", '"""The methods that can train a layer."""', "")
    edit(copied / "networks" / "objective.py", "# OpenBLAS multiplies", "# It multiplies")
    assert codes(copied) == unedited


@pytest.mark.parametrize(
    ("name", "old", "new", "modules"),
    [
        ("networks/logistic.py", "np.float32(87)", "np.float32(86)", "layers stacks searches"),
        ("networks/contrastive_divergence.py", "momentum * step[i]", "step[i]", "layers stacks searches"),
        ("networks/torch_backend.py", "sigmoid_()", "tanh_()", "layers stacks searches"),
        ("optimizers/cma_es.py", "warnings.simplefilter", "warnings.filterwarnings", "layers stacks searches"),
        ("_support/compile.py", "inline: bool = False", "inline: bool = True", "layers stacks searches"),
        ("data/images.py", "subset_rng, bits_rng = rng", "bits_rng, subset_rng = rng", "layers stacks searches"),
        ("campaign/jobs.py", "iteration > done and", "iteration >= done and", "layers stacks searches"),
        ("experiments/layers.py", "seed=seed", "seed=0", "layers"),
        ("networks/likelihood.py", "import numpy as np", "import numpy as np\nx = 1", "stacks"),
        ("data/functions.py", "import numpy as np", "import numpy as np\nx = 1", "searches"),
    ],
)
def test_an_edit_of_what_computes_changes_the_keys(
    copied: Path, unedited: dict[str, str], name: str, old: str, new: str, modules: str
) -> None:
    edit(copied / name, old, new)
    assert {module for module, code in codes(copied).items() if code != unedited[module]} == set(modules.split())


def test_code_edited_during_a_run_is_not_the_code_that_runs(copied: Path) -> None:
    before = codes(copied)
    edit(copied / "networks" / "logistic.py", "np.float32(87)", "np.float32(86)")
    assert versions.code(copied / "experiments/layers.py", copied) == before["layers"]


def test_packages_that_are_imported_in_functions_are_some_jobs_own() -> None:
    """One that is new has to be added to the `packages` of the jobs that use it, or to those that make no numbers."""
    no_numbers = versions._NO_NUMBERS | {"scikit-learn", "pooch", "requests"}  # images have a checksum
    for module, more in ((layers, set()), (stacks, set()), (searches, {"coco-experiment"})):
        assert late(Path(module.__file__)) - no_numbers == {"cma", "torch"} | more
    backend = object.__new__(Training)  # without PyTorch the constructor refuses it
    object.__setattr__(backend, "backend", "torch")
    stack: dict[str, Any] = {"images": IMAGES, "seed": 0, "stack": (LAYER,)}
    assert dataclasses.replace(LAYER, training=backend).packages == ("torch",)
    assert dataclasses.replace(LAYER, trainer="sep-cma-es").packages == ("cma",)
    on = {"trainer": "random", "training": Training(), "reading": Reading(), "seed": 0, "marks": (24,), "n_var": 20}
    assert searches.FunctionSearch(**on, function="bbob-f1").packages == ("coco-experiment",)
    assert searches.FunctionSearch(**on, function="sphere").packages == ()
    assert FineTune(**stack, epochs=1, learning_rate=0.1).packages == Probe(**stack).packages == ("scikit-learn",)


def test_what_a_result_was_made_with_is_also_what_it_needs() -> None:
    below = dataclasses.replace(LAYER, trainer="sep-cma-es")
    tuned = FineTune(images=IMAGES, seed=0, stack=(below,), epochs=1, learning_rate=0.1)
    made = keys.made_with([Mistakes(tuned=tuned)])
    assert {"cma", "scikit-learn"} <= made["versions"].keys()
    assert made["code"].split("-") == [versions.code(Path(module.__file__)) for module in (layers, stacks)]


def late(file: Path) -> set[str]:
    """Return the distributions that a source, and all that it imports, import in functions alone."""
    found = set()
    for path in versions.sources(file):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "import_module":
                names += [ast.literal_eval(node.args[0])]
            found |= {name.partition(".")[0] for name in names} - sys.stdlib_module_names - {"leamvd"}
    return {versions._DISTRIBUTIONS.get(name, name) for name in found} - versions.packages(file).keys()


# ---- commit


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def placed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the library lies: a folder in which only its source is."""
    package = tmp_path / "clone" / "leamvd"
    source = package / "campaign" / "versions.py"
    source.parent.mkdir(parents=True)
    source.write_text("1")
    monkeypatch.setattr(versions, "__file__", str(source))
    monkeypatch.setattr(versions, "PACKAGE", package)
    return package


def test_commit_is_the_clones(placed: Path) -> None:
    git(placed.parent.parent, "init", "-q")
    git(placed.parent.parent, "add", ".")  # even where somebody keeps the environment in the repository
    git(placed.parent.parent, "commit", "-q", "-m", "m")
    assert versions.commit() is None, "a repository that encloses the installation"
    git(placed.parent, "init", "-q")
    (placed.parent / "other").write_text("1")
    git(placed.parent, "add", "other")
    git(placed.parent, "commit", "-q", "-m", "m")
    assert versions.commit() is None, "a repository that does not hold the library"
    git(placed.parent, "add", ".")
    git(placed.parent, "commit", "-q", "-m", "m")
    commit = versions.commit()
    assert commit
    assert git(placed, "rev-parse", "HEAD").startswith(commit)
    (placed / "campaign" / "versions.py").write_text("2")
    assert versions.commit() == f"{commit}+"
