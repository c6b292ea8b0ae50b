"""Studies: (method, layer, inputs, seed) to a tidy record an iteration, with provenance, resumable at any point."""

import ast
import contextlib
import dataclasses
import functools
import hashlib
import io
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
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
from leamvd.paper.store import RECORDS, WEIGHTS, Address, DamageError, Store, address
from leamvd.paper.studies import READ, Study, Unit, images

_LABELS = ("section", "reading", "method", "inputs", "layer", "seed")  # of a unit in a study; not stored with it

COLUMNS = (
    *_LABELS, "iteration",
    *Errors._fields, *(f"test_{name}" for name in Errors._fields),
    "evaluations", "passes", "products", "seconds",
    "n_visible", "n_hidden", "n_var", "n_images", "n_test_images", "input_std",
)  # fmt: skip
"""Of a study's records.

Errors are sums over all images, of which there are `n_images` and `n_test_images`. Test images go up the same stack.
Ratios compare with the constant image that is the mean of the layer's training inputs, of test images too: what a layer
would predict that has learned the mean and nothing else. `input_std` is the mean standard deviation of these inputs.
"""

COMPUTING = (
    "_support", "optimizers", "networks",
    "paper/datasets.py", "paper/studies.py", "paper/store.py", "paper/records.py",
)  # fmt: skip
"""Folders and files of the package whose code decides on what a study records."""

PACKAGE = Path(__file__).parents[1]

# How pandas reads decimals to the last bit; from 3.1 it always does.
_EXACT: Any = {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}

TERMINAL = "LEAMVD_TERMINAL"
"""Environment variable that names the terminal where a notebook's studies show their progress."""

STORE = "LEAMVD_STORE"
"""Environment variable that names the folder where all studies store their units."""


def run(study: Study, output: str | Path, *, progress: bool = False) -> pd.DataFrame:
    """Run what of a study has not been run yet, and return its records.

    Every unit is stored once it is complete, whole, under an address that says everything the unit depends on, see
    `addresses`. So a study that was killed continues, and another study with units in common, more seeds say, takes
    them from there. Processes that run at the same time share the work. A stored unit that has been damaged is named on
    standard error, set aside and computed again.

    Parameters
    ----------
    study : Study
        What to run.
    output : path
        Folder for the study's provenance and, unless the environment variable `STORE` names another, for the store.
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
    Path(output).mkdir(parents=True, exist_ok=True)
    known = provenance(study, data) | {"units": {unit.name: at.name for unit, at in addresses(study, data).items()}}
    write(Path(output) / f"study-{fingerprint(study, data)}.json", json.dumps(known, indent=2))
    n_gen = {method: study.reading_of(method).n_gen for method in {unit.method for unit in study.units()}}
    with progress_bar(sum(n_gen[unit.method] for unit in study.units()), progress, "study", "iteration") as bar:
        return _records(study, _tables(study, data, _store(output), bar))


def _store(output: str | Path) -> Store:
    return Store(os.environ.get(STORE) or Path(output) / "store")


def _tables(study: Study, data: datasets.Dataset, store: Store, bar: Any) -> dict[Unit, pd.DataFrame]:
    """Return every unit's table; what is not stored is computed, unless another process does it meanwhile."""
    tables: dict[Unit, pd.DataFrame] = {}
    at, left = addresses(study, data), study.units()
    while left:
        for unit in left:
            if tables.keys() >= set(unit.below):
                with store.lock(at[unit]) as ours:
                    if ours:
                        bar.set_postfix_str(unit.name)
                        tables[unit] = _table(study, unit, data, store, at, bar)
        waiting = [unit for unit in left if unit not in tables]
        if waiting == left:
            bar.set_postfix_str(f"waiting for {left[0].name}, which another process computes")
            time.sleep(0.1)
        left = waiting
    return tables


def _table(
    study: Study, unit: Unit, data: datasets.Dataset, store: Store, at: Mapping[Unit, Address], bar: Any
) -> pd.DataFrame:
    """Return the table of a unit that this process has locked."""
    try:
        files = store.read(at[unit]) if at[unit] in store else None
    except DamageError as error:
        store.set_aside(at[unit])
        line = f"warning: {error}: set aside in the store's folder damaged, and computed again"
        tqdm.write(line, file=sys.stderr if bar.disable else bar.fp)
        files = None
    if files is None:
        files = _compute(study, unit, _inputs(study, unit, data, store, at), bar)
        store.write(at[unit], files)
    else:
        bar.update(study.reading_of(unit.method).n_gen)
    return read_table(io.BytesIO(files[RECORDS]))


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


def _records(study: Study, tables: Mapping[Unit, pd.DataFrame]) -> pd.DataFrame:
    """Return the units' tables as one, with `COLUMNS`."""
    frames = []
    for unit, table in tables.items():
        method, _, name = unit.method.partition(":")
        reading = (name or "default") if method in READ else "none"
        labels = unit._asdict() | {"section": study.section, "reading": reading}
        for inputs in study.inputs:
            same = unit.layer == 1 or unit.method == "cd"
            if unit.method in study.methods and (inputs == unit.inputs or same):
                frames.append(table.assign(**(labels | {"inputs": inputs})))
    order = {method: i for i, method in enumerate(study.methods)}
    joined = pd.concat(frames, ignore_index=True)[list(COLUMNS)]
    return joined.sort_values(
        ["inputs", "layer", "method", "seed", "iteration"],
        key=lambda column: column.map(order) if column.name == "method" else column,
        ignore_index=True,
    )


def stack(study: Study, output: str | Path, method: str, seed: int, depth: int) -> list[RBM]:
    """Return the first `depth` layers that a method has trained on its own inputs, in a study that has been run."""
    at = addresses(study, images(study))
    return [_saved(_store(output), at[Unit(method, "own", layer, seed)]) for layer in range(1, depth + 1)]


class _Inputs(NamedTuple):
    """What a layer is trained and tested on: images, or what the layers below make of them."""

    train: Array
    test: Array


def _inputs(study: Study, unit: Unit, data: datasets.Dataset, store: Store, at: Mapping[Unit, Address]) -> _Inputs:
    below = [_saved(store, at[lower]) for lower in unit.below]
    return _Inputs(
        layer_input(below, data.train, features=study.features, seed=unit.seed),
        layer_input(below, data.test, features=study.features, seed=unit.seed, test=True),
    )


def _saved(store: Store, at: Address) -> RBM:
    with np.load(io.BytesIO(store.read(at)[WEIGHTS]), allow_pickle=False) as arrays:
        return RBM(arrays["W"], arrays["b"], arrays["c"])


def _compute(study: Study, unit: Unit, inputs: _Inputs, bar: Any) -> dict[str, bytes]:
    """Train one layer, and return the files of its records and its weights."""
    n_hidden = study.layers[unit.layer - 1]
    rows: list[tuple[Any, ...]] = []
    previous: Array | None = None
    V, seed, reading = inputs.train, layer_seed(unit.seed, unit.layer), study.reading_of(unit.method)
    n_var, input_std = n_parameters(V.shape[1], n_hidden), float(V.std(axis=0, dtype=np.float64).mean())
    sizes = V.shape[1], n_hidden, n_var, len(V), len(inputs.test), input_std
    for step in train(unit.trainer, V, n_hidden, training=study.training, reading=reading, seed=seed):
        flat = step.rbm.flat()
        if previous is None or not np.array_equal(flat, previous):
            errors = _errors(step.rbm, inputs, seed)
        previous = flat
        rows.append((step.iteration, *errors, *step[2:], *sizes))
        bar.update(step.iteration > 0)
    weights = io.BytesIO()
    np.savez(weights, W=step.rbm.W, b=step.rbm.b, c=step.rbm.c)
    table = pd.DataFrame(rows, columns=list(COLUMNS[len(_LABELS) :]))
    return {RECORDS: table.to_csv(index=False).encode(), WEIGHTS: weights.getvalue()}


def _errors(rbm: RBM, inputs: _Inputs, seed: int) -> tuple[float, ...]:
    """Return the errors on the training images, and on the test images."""
    train_mean = inputs.train.mean(axis=0, dtype=np.float64)
    return (
        *reconstruction_errors(rbm, inputs.train, seed=seed),
        *reconstruction_errors(rbm, inputs.test, seed=seed, train_mean=train_mean),
    )


def addresses(study: Study, data: datasets.Dataset) -> dict[Unit, Address]:
    """Return where each unit of a study is stored: a digest of everything that its result depends on.

    That is its data, size, method, settings and seed, the layers below it, the code and the versions. Which other
    methods, seeds or layers above it are run, and what section and method are called, is not among it.
    """
    given = {
        "checksum": data.checksum,
        "images": data.description.removeprefix(f"{data.name}: "),
        "code": _code(PACKAGE),
    }
    methods = {unit.method: _method(study, unit.method) for unit in study.units()}
    found: dict[Unit, Address] = {}
    for unit in study.units():
        size = {"layer": unit.layer, "n_hidden": study.layers[unit.layer - 1], "seed": unit.seed}
        below = {"below": [found[lower].name for lower in unit.below], "features": study.features}
        depends_on = given | methods[unit.method] | size | (below if unit.below else {})
        found[unit] = address(f"{unit.trainer}-layer{unit.layer}-seed{unit.seed}", depends_on)
    return found


def _method(study: Study, method: str) -> dict[str, Any]:
    """Return what a unit depends on by its method: all of `Training` but for what the method does not see."""
    name, torch = method.partition(":")[0], study.training.backend == "torch" and method != "cd"
    unseen: tuple[str, ...] = ("n_elite", "sigma0")  # where a method has them, they are among its settings
    if method == "cd":
        unseen += ("x0", "x0_epochs", "x0_limit", *study.training.computation._fields)
    training = {setting: value for setting, value in _training(study).items() if setting not in unseen}
    return {"method": name, "settings": settings(study, method), "training": training, "versions": _versions(torch)}


def fingerprint(study: Study, data: datasets.Dataset) -> str:
    """Return the name of a study: a digest of everything that its results depend on."""
    known = provenance(study, data)
    known = {name: known[name] for name in ("study", "methods", "data", "checksum", "code", "versions")}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def provenance(study: Study, data: datasets.Dataset) -> dict[str, Any]:
    """Return what a record must be read with: study, what its methods ran, data checksum, versions, code, commit."""
    return {
        "study": dataclasses.asdict(study) | {"dataset": data.name, "training": _training(study)},
        "methods": {method: settings(study, method) for method in study.methods},
        "data": data.description,
        "checksum": data.checksum,
        "code": _code(PACKAGE),
        "commit": _commit(),
        "versions": _versions(study.training.backend == "torch"),
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


def _training(study: Study) -> dict[str, Any]:
    """Return the settings, the device, say, as this machine has it where the study leaves it open."""
    return dataclasses.asdict(study.training) | study.training.computation._asdict()


def _versions(torch: bool) -> dict[str, str]:
    packages = ["leamvd", "cma", "numba", "numpy", "pandas", "scikit-learn", "scipy", *["torch"] * torch]
    return {package: version(package) for package in packages}


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
    """Return a table of a run that ships with the notebooks: ``notebooks/recorded/NAME/TABLE.csv``, or ``.csv.xz``."""
    plain = recorded_folder(name) / f"{table}.csv"
    compressed = plain.with_suffix(".csv.xz")
    return read_table(compressed if compressed.is_file() else plain)


def recorded_folder(name: str) -> Path:
    """Return the folder of a run that ships with the notebooks."""
    return Path(str(files("leamvd.notebooks"))) / "recorded" / name


def read_table(source: Path | io.BytesIO) -> pd.DataFrame:
    """Read what `write_table` has written: the same numbers, to the last bit."""
    table: pd.DataFrame = pd.read_csv(source, **_EXACT)
    return table


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV so that it is there whole or not at all."""
    write(path, table.to_csv(index=False))


def write(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        temporary = Path(folder, path.name)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
