"""Studies: (method, layer, inputs, seed) to a tidy record an iteration, with provenance, resumable at any point."""

import ast
import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from tqdm import tqdm

from leamvd._support.compile import Array
from leamvd.networks.dbn import layer_input, layer_seed, train
from leamvd.networks.objective import Errors, reconstruction_errors
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.paper import datasets
from leamvd.paper.studies import READ, Study, Unit, images

COLUMNS = (
    "section", "reading", "method", "inputs", "layer", "seed", "iteration",
    *Errors._fields, *(f"test_{name}" for name in Errors._fields),
    "evaluations", "passes", "products", "seconds",
    "n_visible", "n_hidden", "n_var", "n_images", "n_test_images", "input_std",
)  # fmt: skip
"""Of a study's records.

Errors are sums over all images, of which there are `n_images` and `n_test_images`. Test images go up the same stack.
Ratios compare with the constant image that is the mean of the layer's training inputs, of test images too: what a layer
would predict that has learned the mean and nothing else. `input_std` is the mean standard deviation of these inputs.
"""

COMPUTING = ("_support", "optimizers", "networks", "paper/datasets.py", "paper/studies.py", "paper/records.py")
"""Folders and files of the package whose code decides on what a study records."""

PACKAGE = Path(__file__).parents[1]

# How pandas reads decimals to the last bit; from 3.1 it always does.
_EXACT: Any = {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}

TERMINAL = "LEAMVD_TERMINAL"
"""Environment variable that names the terminal where a notebook's studies show their progress."""


def run(study: Study, output: str | Path, *, progress: bool = False) -> pd.DataFrame:
    """Run what of a study has not been run yet, and return its records.

    Every unit is saved, atomically, once it is complete, in a folder of `output` that is named after everything the
    result depends on: the study, the data's checksum, this library's code and the versions of what it computes with.
    A study that was killed at any point continues with the first unit that is not there.

    Parameters
    ----------
    study : Study
        What to run.
    output : path
        Where the study's folder is, or will be.
    progress : bool
        Show a bar, one tick an iteration.

    Returns
    -------
    DataFrame
        One row for each iteration of each unit, with `COLUMNS`, sorted; where a layer is the same with own and shared
        inputs it is listed for both.

    Raises
    ------
    ValueError, MemoryError, leamvd.paper.datasets.DataError
        If the study cannot be run.
    """
    data = images(study)
    folder = Path(output) / f"study-{fingerprint(study, data)}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "provenance.json").exists():
        write(folder / "provenance.json", json.dumps(provenance(study, data), indent=2))
    units = study.units()
    n_gen = {unit.method: study.reading_of(unit.method).n_gen for unit in units}
    with progress_bar(sum(n_gen[unit.method] for unit in units), progress, "study", "iteration") as bar:
        for unit in units:
            bar.set_postfix_str(unit.name)
            if not (folder / f"{unit.name}.csv").exists():
                _compute(study, unit, _inputs(study, unit, data, folder), folder, bar)
            else:
                bar.update(n_gen[unit.method])
    return records(study, folder)


@contextlib.contextmanager
def progress_bar(total: int, progress: bool, name: str, unit: str) -> Iterator[Any]:
    """Yield a progress bar: on standard error if asked for, and in a notebook on the terminal that it is run from."""
    terminal = os.environ.get(TERMINAL)
    options: dict[str, Any] = {"position": 1, "leave": False} if terminal else {"disable": not progress}
    with (
        Path(terminal).open("w", encoding="utf-8") if terminal else contextlib.nullcontext(sys.stderr) as file,
        tqdm(total=total, desc=name, unit=unit, file=file, **options) as bar,
    ):
        yield bar


def records(study: Study, folder: Path) -> pd.DataFrame:
    """Return the records of a study that has been run in `folder`."""
    frames = []
    for unit in study.units():
        frame = read_table(folder / f"{unit.name}.csv")
        for inputs in study.inputs:
            same = unit.layer == 1 or unit.method == "cd"
            if unit.method in study.methods and (inputs == unit.inputs or same):
                frames.append(frame.assign(inputs=inputs))
    order = {method: i for i, method in enumerate(study.methods)}
    table = pd.concat(frames, ignore_index=True)
    return table.sort_values(
        ["inputs", "layer", "method", "seed", "iteration"],
        key=lambda column: column.map(order) if column.name == "method" else column,
        ignore_index=True,
    )


def stack(study: Study, output: str | Path, method: str, seed: int, depth: int) -> list[RBM]:
    """Return the first `depth` layers that a method has trained on its own inputs, in a study that has been run."""
    folder = Path(output) / f"study-{fingerprint(study, images(study))}"
    return [_saved(folder, Unit(method, "own", layer, seed)) for layer in range(1, depth + 1)]


class _Inputs(NamedTuple):
    """What a layer is trained and tested on: images, or what the layers below make of them."""

    train: Array
    test: Array


def _inputs(study: Study, unit: Unit, data: datasets.Dataset, folder: Path) -> _Inputs:
    method = "cd" if unit.inputs == "shared" else unit.method
    below = [_saved(folder, Unit(method, "own", layer, unit.seed)) for layer in range(1, unit.layer)]
    return _Inputs(
        layer_input(below, data.train, features=study.features, seed=unit.seed),
        layer_input(below, data.test, features=study.features, seed=unit.seed, test=True),
    )


def _saved(folder: Path, unit: Unit) -> RBM:
    with np.load(folder / f"{unit.name}.npz") as arrays:
        return RBM(arrays["W"], arrays["b"], arrays["c"])


def _compute(study: Study, unit: Unit, inputs: _Inputs, folder: Path, bar: Any) -> None:
    """Train one layer, and save its weights and then its records."""
    n_hidden = study.layers[unit.layer - 1]
    method, _, name = unit.method.partition(":")
    labels = study.section, (name or "default") if method in READ else "none"
    rows: list[tuple[Any, ...]] = []
    previous: Array | None = None
    V, seed, reading = inputs.train, layer_seed(unit.seed, unit.layer), study.reading_of(unit.method)
    n_var, input_std = n_parameters(V.shape[1], n_hidden), float(V.std(axis=0, dtype=np.float64).mean())
    sizes = V.shape[1], n_hidden, n_var, len(V), len(inputs.test), input_std
    for step in train(method, V, n_hidden, training=study.training, reading=reading, seed=seed):
        flat = step.rbm.flat()
        if previous is None or not np.array_equal(flat, previous):
            errors = _errors(step.rbm, inputs, seed)
        previous = flat
        rows.append((*labels, *unit, step.iteration, *errors, *step[2:], *sizes))
        bar.update(step.iteration > 0)
    arrays = folder / f".{unit.name}.npz"
    np.savez(arrays, W=step.rbm.W, b=step.rbm.b, c=step.rbm.c)
    arrays.replace(folder / f"{unit.name}.npz")
    write_table(folder / f"{unit.name}.csv", pd.DataFrame(rows, columns=list(COLUMNS)))


def _errors(rbm: RBM, inputs: _Inputs, seed: int) -> tuple[float, ...]:
    """Return the errors on the training images, and on the test images."""
    train_mean = inputs.train.mean(axis=0, dtype=np.float64)
    return (
        *reconstruction_errors(rbm, inputs.train, seed=seed),
        *reconstruction_errors(rbm, inputs.test, seed=seed, train_mean=train_mean),
    )


def fingerprint(study: Study, data: datasets.Dataset) -> str:
    """Return the name of a study's folder: a digest of everything that its results depend on."""
    known = provenance(study, data)
    known = {name: known[name] for name in ("study", "methods", "data", "checksum", "code", "versions")}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def provenance(study: Study, data: datasets.Dataset) -> dict[str, Any]:
    """Return what a record must be read with: study, what its methods ran, data checksum, versions, code, commit."""
    # the device, say, as this machine has it where the study leaves it open
    training = dataclasses.asdict(study.training) | study.training.computation._asdict()
    packages = ["leamvd", "cma", "numba", "numpy", "pandas", "scikit-learn", "scipy"]
    packages += ["torch"] * (training["backend"] == "torch")
    return {
        "study": dataclasses.asdict(study) | {"dataset": data.name, "training": training},
        "methods": {method: settings(study, method) for method in study.methods},
        "data": data.description,
        "checksum": data.checksum,
        "code": _code(PACKAGE),
        "commit": _commit(),
        "versions": {package: version(package) for package in packages},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def settings(study: Study, method: str) -> dict[str, Any]:
    """Return what a method of a study ran: what its optimizer was built with, or contrastive divergence's epochs."""
    name, reading = method.partition(":")[0], study.reading_of(method)
    if name == "cd":
        return {"n_gen": reading.n_gen}
    options = study.training.options(name, reading)
    return options | ({"reading": dataclasses.asdict(reading)} if name == "lea-mvd" else {})


@functools.cache  # a source that is edited while a study runs does not change what runs
def _code(package: Path) -> str:
    """Return a digest of the code that computes results: its syntax, without comments and docstrings."""
    digest = hashlib.sha256()
    for path in computing(package):
        syntax = _WithoutDocstrings().visit(ast.parse(path.read_bytes()))
        digest.update(f"{path.relative_to(package).as_posix()}\n{ast.unparse(syntax)}\n".encode())
    return digest.hexdigest()[:16]


def computing(package: Path) -> list[Path]:
    """Return the package's source files that `COMPUTING` names."""
    found = (package / name for name in COMPUTING)
    return sorted(file for path in found for file in (path.rglob("*.py") if path.is_dir() else [path]))


class _WithoutDocstrings(ast.NodeTransformer):
    """Leaves out every string that stands alone, of attributes too."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr | None:
        alone = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if alone else node


def _commit() -> str | None:
    """Return the commit of the library's own clone, None outside one; "+" marks uncommitted changes."""
    try:
        _git("ls-files", "--error-unmatch", __file__)
        if Path(_git("rev-parse", "--show-toplevel")).resolve() != PACKAGE.parent.resolve():
            return None  # a clone of something else that the library lies in
        return _git("describe", "--always", "--dirty=+", "--abbrev=12")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


# ---- files


def recorded(name: str, table: str = "runs") -> pd.DataFrame:
    """Return a table of a run that ships with the notebooks: ``notebooks/recorded/NAME/TABLE.csv``."""
    return read_table(recorded_folder(name) / f"{table}.csv")


def recorded_folder(name: str) -> Path:
    """Return the folder of a run that ships with the notebooks."""
    return Path(str(files("leamvd.notebooks"))) / "recorded" / name


def read_table(path: Path) -> pd.DataFrame:
    """Read what `write_table` has written: the same numbers, to the last bit."""
    table: pd.DataFrame = pd.read_csv(path, **_EXACT)
    return table


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV so that it is there whole or not at all."""
    write(path, table.to_csv(index=False))


def write(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
