"""Studies: (method, layer, inputs, seed) to a tidy record an iteration, with provenance, resumable at any point."""

import dataclasses
import hashlib
import io
import json
import os
import platform
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd
from llvmlite.binding import get_host_cpu_name

from leamvd.networks.dbn import Training
from leamvd.networks.rbm import RBM
from leamvd.optimizers.reading import Reading
from leamvd.paper import campaign, datasets, tasks, units, versions, workers
from leamvd.paper.classification import FineTuning, Likelihood, Probe, RandomWeights, StackTask
from leamvd.paper.estimate import Estimate, estimate
from leamvd.paper.pieces import BATCHES, Measurement, Piece, Unit
from leamvd.paper.progress import Progress, duration, read_by_someone
from leamvd.paper.store import WEIGHTS, Address, Store, address
from leamvd.paper.studies import READ, Classification, Study, images
from leamvd.paper.tasks import AnyTask
from leamvd.paper.units import Task, as_csv, read_table

_LABELS = ("section", "reading", "method", "inputs", "layer", "seed")  # of a unit in a study; not stored with it

COLUMNS = (*_LABELS, *units.COLUMNS)
"""Of a study's records: what names the unit, and `leamvd.paper.units.COLUMNS`."""

STORE = "LEAMVD_STORE"
"""Environment variable that names the folder where all studies store their units."""


def run(study: Study, output: str | Path, *, progress: bool = False) -> pd.DataFrame:
    """Run what of a study has not been run yet, in this process, and return its records.

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
        Show how far it is; a notebook that is open before a reader does in any case.

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
    found = pieces(study, output, progress=progress)
    return _records(study, {unit: found[unit] for unit in study.units()})


def pieces(study: Study, output: str | Path, *, progress: bool = False) -> dict[Piece, pd.DataFrame]:
    """Run a study as `run` does, and return the table of each piece of it, as it is stored."""
    data = images(study)
    at = addresses(study, data)
    Path(output).mkdir(parents=True, exist_ok=True)
    about = Path(output) / f"study-{fingerprint(study, data)}.json"
    if not about.exists():  # in a folder that is only to be read, say
        known = provenance(study, data) | {"units": {unit.name: at[unit].name for unit in at}}
        write(about, json.dumps(known, indent=2))
    where = store(output)
    awaited = _expected(study, data, where, 1) if read_by_someone() else None
    done = _computed(study, data, where, show=progress, awaited=awaited)
    return {piece: read_table(io.BytesIO(content)) for piece, content in done.items()}


def compute(
    study: Study,
    output: str | Path,
    *,
    jobs: int | None = None,
    scheduler: str | None = None,
    seconds: float = float("inf"),
    progress: bool = False,
    awaited: Estimate | None = None,
) -> list[Piece]:
    """Compute what of a study is not stored, wherever, and return the pieces that time has been too short for.

    Parameters
    ----------
    study, output, progress
        As for `run`, which then finds everything stored: the same records wherever they were computed. The store is in
        `output`, whatever the environment says.
    jobs, scheduler
        Where to, see `leamvd.paper.workers.start`.
    seconds : float
        No unit goes on after this time; it is stored as far as it is, and goes on from there when this is called again.
    awaited : Estimate, optional
        What `expected` has returned, for the time that is left by the progress that is shown.

    Raises
    ------
    ValueError, MemoryError, OSError, ModuleNotFoundError, leamvd.paper.datasets.DataError
        If the study cannot be run, or not there.
    leamvd.paper.workers.WorkerError
        If processes keep dying over a unit.
    """
    data = images(study)
    done = _computed(
        study,
        data,
        Store(Path(output) / "store"),
        show=progress,
        jobs=jobs,
        scheduler=scheduler,
        seconds=seconds,
        awaited=awaited,
    )
    return [piece for piece in study.pieces() if piece not in done]


def expected(study: Study, output: str | Path, *, jobs: int | None = None) -> Estimate:
    """Return what it takes to `compute` what of a study is not stored in `output`; nothing is written there."""
    return _expected(study, images(study), Store(Path(output) / "store"), jobs)


def _expected(study: Study, data: datasets.Dataset, where: Store, jobs: int | None) -> Estimate:
    stored = {unit for unit, at in addresses(study, data).items() if at in where}
    return estimate({piece: task(study, piece) for piece in study.pieces()}, stored, data, jobs=jobs)


def _computed(
    study: Study,
    data: datasets.Dataset,
    store: Store,
    *,
    show: bool,
    jobs: int | None = 1,
    scheduler: str | None = None,
    seconds: float = float("inf"),
    awaited: Estimate | None = None,
) -> dict[Piece, bytes]:
    work = {piece: task(study, piece) for piece in study.pieces()}
    iterations = {piece.name: tasks.iterations(one) for piece, one in work.items()}
    weights = awaited and {piece.name: awaited.share(piece) for piece in work}
    with (
        Progress(study.section, iterations, show=show, seconds=weights) as progress,
        workers.start(data, jobs=jobs, scheduler=scheduler) as there,
    ):
        if awaited:
            left = f"; {len(awaited.seconds)} are computed now, in about {duration(awaited.total)}"
            stored = f"{len(work) - len(awaited.seconds)} of {len(work)} units are stored"
            progress.note(f"{study.section}: {stored}{left if awaited.seconds else ''}")
        return campaign.Campaign(work, addresses(study, data), store, there, progress).run(seconds)


def task(study: Study, piece: Piece) -> AnyTask:
    """Return what is computed for a piece of a study."""
    return _layer(study, piece) if isinstance(piece, Unit) else _measurement(study, piece)


def _layer(study: Study, unit: Unit) -> Task:
    n_hidden, reading = study.layers[unit.layer - 1], study.reading_of(unit.method)
    training = study.training_of(unit.method)
    return Task(unit.trainer, unit.layer, n_hidden, unit.seed, study.features, training, reading)


def _measurement(study: Study, piece: Measurement) -> StackTask:
    assert isinstance(study, Classification)
    sizes = (study.side**2, *study.layers[: piece.layers])
    random = RandomWeights(sizes, piece.scale, study.training.dtype) if piece.scale else None
    match piece.what:
        case "likelihood":
            chains = {"n_chains": study.n_chains // BATCHES, "n_temperatures": study.n_temperatures}
            return Likelihood(iterations=BATCHES, seed=piece.seed, random=random, **chains)
        case "probe":
            return Probe(iterations=1 + piece.layers, seed=piece.seed, random=random)
        case _:
            return FineTuning(iterations=study.epochs, seed=piece.seed, random=random, learning_rate=study.tuning_rate)


def store(output: str | Path) -> Store:
    """Return the store of the studies in a folder."""
    return Store(os.environ.get(STORE) or Path(output) / "store")


def _records(study: Study, tables: Mapping[Unit, pd.DataFrame]) -> pd.DataFrame:
    """Return the units' tables as one, with `COLUMNS`."""
    frames = []
    for unit, table in tables.items():
        method, _, name = unit.method.partition(":")
        reading = name or ("default" if method in READ else "none")
        labels = unit._asdict() | {"section": study.section, "reading": reading}
        for inputs in study.inputs:
            same = unit.layer == 1 or unit.method == "cd"
            if unit.method in study.methods and (inputs == unit.inputs or same):
                frames.append(table.assign(**(labels | {"inputs": inputs})))
    return in_order(study, pd.concat(frames)[list(COLUMNS)])


def in_order(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """Return the records of a study in the order of its methods, and of seeds and iterations."""
    order = {method: i for i, method in enumerate(study.methods)}
    return table.sort_values(
        ["inputs", "layer", "method", "seed", "iteration"],
        key=lambda column: column.map(order) if column.name == "method" else column,
        ignore_index=True,
    )


def stack(study: Study, output: str | Path, method: str, seed: int, depth: int) -> list[RBM]:
    """Return the first `depth` layers that a method has trained on its own inputs, in a study that has been run."""
    alone = dataclasses.replace(study, methods=(method,), seeds=(seed,))  # of a large study, the rest takes seconds
    at = addresses(alone, images(alone))
    own = [Unit(method, "own", layer, seed) for layer in range(1, depth + 1)]
    return [units.layer(store(output).read(at[unit])[WEIGHTS]) for unit in own]


def addresses(study: Study, data: datasets.Dataset) -> dict[Piece, Address]:
    """Return where each piece of a study is stored: a digest of everything that its result depends on.

    That is its data, size, method, settings and seed, the layers below it, the code and the versions. Which other
    methods, seeds or layers above it are run, what is measured of it, and what section and method are called, is not
    among it.
    """
    images = data.description.removeprefix(f"{data.name}: ")
    given = {"checksum": data.checksum, "images": images, "code": versions.code()}
    packages = {torch: versions.packages(torch=torch) for torch in {False, study.training.backend == "torch"}}
    found: dict[Piece, Address] = {}
    for piece in study.pieces():
        if isinstance(piece, Unit):
            words = f"{piece.trainer}-layer{piece.layer}-seed{piece.seed}"
            depends_on = given | _depends_on(_layer(study, piece))
            depends_on |= {"versions": packages[depends_on["training"].get("backend") == "torch"]}
        else:
            words = f"{piece.what}-{piece.trainer}-layers{piece.layers}-seed{piece.seed}"
            depends_on = given | dataclasses.asdict(_measurement(study, piece))
            depends_on |= {"measurement": piece.what, "measuring": _measuring(), "versions": packages[False]}
        if piece.below:
            depends_on |= {"below": [found[lower].name for lower in piece.below], "features": study.features}
        found[piece] = address(words, depends_on)
    return found


def _measuring() -> str:
    return versions.code(versions.PACKAGE, versions.MEASURING)


def _depends_on(task: Task) -> dict[str, Any]:
    """Return what a task tells of its result: all of `Training` but for what the method does not see."""
    unseen: tuple[str, ...] = ("n_elite", "sigma0")  # where a method has them, they are among its settings
    if task.method == "cd":
        unseen += ("x0", "x0_epochs", "x0_limit", *task.training.computation._fields)
    training = {setting: value for setting, value in _training(task.training).items() if setting not in unseen}
    own = {"settings": _settings(task.method, task.training, task.reading), "training": training}
    return {"method": task.method, "layer": task.layer, "n_hidden": task.n_hidden, "seed": task.seed} | own


def fingerprint(study: Study, data: datasets.Dataset) -> str:
    """Return the name of a study: a digest of everything that its results depend on."""
    known = provenance(study, data)
    decisive = ("study", "methods", "data", "checksum", "code", "measuring", "versions")
    known = {name: known[name] for name in decisive if name in known}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def provenance(study: Study, data: datasets.Dataset) -> dict[str, Any]:
    """Return what a record must be read with: study, what its methods ran, data checksum, versions, code, commit."""
    return {
        "study": dataclasses.asdict(study) | {"dataset": data.name, "training": _training(study.training)},
        "methods": {method: settings(study, method) for method in study.methods},
        "data": data.description,
        "checksum": data.checksum,
        "code": versions.code(),
        **({"measuring": _measuring()} if study.measurements() else {}),
        "commit": versions.commit(),
        "versions": versions.packages(torch=study.training.backend == "torch"),
        "python": platform.python_version(),
        # the processor too: it decides on the order in which products and sums add up
        "machine": f"{platform.system()} {platform.machine()} {get_host_cpu_name()}",
    }


def _training(training: Training) -> dict[str, Any]:
    """Return the settings, the device, say, as this machine has it where they leave it open."""
    return dataclasses.asdict(training) | training.computation._asdict()


def settings(study: Study, method: str) -> dict[str, Any]:
    """Return what a method of a study ran: what its optimizer was built with, or contrastive divergence's epochs."""
    return _settings(method.partition(":")[0], study.training_of(method), study.reading_of(method))


def _settings(method: str, training: Training, reading: Reading) -> dict[str, Any]:
    if method == "cd":
        return {"n_gen": reading.n_gen}
    options = training.options(method, reading)
    return options | ({"reading": dataclasses.asdict(reading)} if method == "lea-mvd" else {})


# ---- files


def recorded(name: str, table: str = "runs") -> pd.DataFrame:
    """Return a table of a run that ships with the notebooks: ``notebooks/recorded/NAME/TABLE.csv``, or ``.csv.xz``."""
    plain = recorded_folder(name) / f"{table}.csv"
    compressed = plain.with_suffix(".csv.xz")
    return read_table(compressed if compressed.is_file() else plain)


def recorded_folder(name: str) -> Path:
    """Return the folder of a run that ships with the notebooks."""
    return Path(str(files("leamvd.notebooks"))) / "recorded" / name


def is_recorded(name: str) -> bool:
    """Return whether a run of this name ships with the notebooks."""
    return recorded_folder(name).is_dir()


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV so that it is there whole or not at all."""
    write(path, as_csv(table))


def write(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        temporary = Path(folder, path.name)
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
