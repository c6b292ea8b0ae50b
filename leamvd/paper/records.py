"""Studies: (method, layer, inputs, seed) to a tidy record an iteration, with provenance, resumable at any point."""

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
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from leamvd.networks.dbn import layer_seed, propagate, train
from leamvd.networks.objective import Errors, reconstruction_errors
from leamvd.networks.rbm import RBM
from leamvd.paper import datasets
from leamvd.paper.studies import READ, Study, Unit, images

COLUMNS = (
    "section", "reading", "method", "inputs", "layer", "seed", "iteration", *Errors._fields,
    "evaluations", "passes", "products", "seconds", "n_visible", "n_hidden", "n_var", "n_images", "input_std",
)  # fmt: skip
"""Of a study's records. Errors are sums over all images; `input_std` is the inputs' mean standard deviation."""

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
                _compute(study, unit, _input(study, unit, data, folder), folder, bar)
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
        frame = pd.read_csv(folder / f"{unit.name}.csv")
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


def _input(study: Study, unit: Unit, data: datasets.Dataset, folder: Path) -> NDArray[Any]:
    """Return what a unit is trained on: the images, or the features of the layers below."""
    V: NDArray[Any] = data.train
    below = "cd" if unit.inputs == "shared" else unit.method
    for layer in range(1, unit.layer):
        rbm = _saved(folder, Unit(below, "own", layer, unit.seed))
        V = propagate(rbm, V, features=study.features, seed=layer_seed(unit.seed, layer))
    return V


def _saved(folder: Path, unit: Unit) -> RBM:
    with np.load(folder / f"{unit.name}.npz") as arrays:
        return RBM(arrays["W"], arrays["b"], arrays["c"])


def _compute(study: Study, unit: Unit, V: NDArray[Any], folder: Path, bar: Any) -> None:
    """Train one layer, and save its weights and then its records."""
    n_hidden = study.layers[unit.layer - 1]
    method, _, name = unit.method.partition(":")
    labels = study.section, (name or "default") if method in READ else "none"
    rows: list[tuple[Any, ...]] = []
    previous: NDArray[Any] | None = None
    input_std = float(V.std(axis=0, dtype=np.float64).mean())
    steps = train(
        method,
        V,
        n_hidden,
        training=study.training,
        reading=study.reading_of(unit.method),
        seed=layer_seed(unit.seed, unit.layer),
    )
    for step in steps:
        flat = step.rbm.flat()
        if previous is None or not np.array_equal(flat, previous):
            errors = reconstruction_errors(step.rbm, V, seed=unit.seed)
        previous = flat
        rows.append(
            (*labels, *unit, step.iteration, *errors, *step[2:], V.shape[1], n_hidden, flat.size, len(V), input_std)
        )
        bar.update(step.iteration > 0)
    arrays = folder / f".{unit.name}.npz"
    np.savez(arrays, W=step.rbm.W, b=step.rbm.b, c=step.rbm.c)
    arrays.replace(folder / f"{unit.name}.npz")
    write(folder / f"{unit.name}.csv", pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(index=False))


def fingerprint(study: Study, data: datasets.Dataset) -> str:
    """Return the name of a study's folder: a digest of everything that its results depend on."""
    known = provenance(study, data)
    known = {name: known[name] for name in ("study", "methods", "data", "checksum", "code", "versions")}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def provenance(study: Study, data: datasets.Dataset) -> dict[str, Any]:
    """Return what a record must be read with: study, what its methods ran, data checksum, versions, code, commit."""
    # the device, say, as this machine has it where the study leaves it open
    training = dataclasses.asdict(study.training) | study.training.arithmetic._asdict()
    packages = ["leamvd", "cma", "numba", "numpy", "pandas", "scikit-learn", "scipy"]
    packages += ["torch"] * (training["backend"] == "torch")
    return {
        "study": dataclasses.asdict(study) | {"dataset": data.name, "training": training},
        "methods": {method: settings(study, method) for method in study.methods},
        "data": data.description,
        "checksum": data.checksum,
        "code": _code(Path(__file__).parent),
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
    """Return a digest of the package's source files, without those that only show results."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in (
            "backends.py",
            "bench",
            "book.py",
            "cli.py",
            "figures",
            "findings.py",
            "illustrations.py",
            "sections.py",
            "tournaments.py",
            "verdicts.py",
        ):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str | None:
    """Return the commit of the clone that the library runs from, None outside one; "+" marks uncommitted changes."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def write(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
