"""Running a study: its jobs to one tidy table, with what the table must be read with."""

import dataclasses
import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from leamvd.campaign import archive, versions
from leamvd.campaign import run as campaign
from leamvd.campaign.jobs import Job, Result, digest, rows
from leamvd.campaign.store import DamageError, place
from leamvd.campaign.tables import as_csv, read_table, write_whole
from leamvd.data.images import Dataset, Images
from leamvd.experiments import layers, stacks
from leamvd.experiments.studies import COLUMNS, Classification, Layer, Study, images, reading
from leamvd.networks.dbn import Training

LAYERS = Path(layers.__file__)
"""The source whose code, with all that it imports, decides on the rows of layers."""

EVERY = {"readings": 10}
"""Of studies of a section every so many iterations are recorded, and the last: they are large, and pages show ends."""


class Measured(NamedTuple):
    """What was measured of stacks, as tables with the columns study (section), method and seed."""

    runs: pd.DataFrame  # fine-tuning: epoch, test_error, loss; errors are shares of wrong images
    probes: pd.DataFrame  # layer (0: the images), train_error, test_error, steps, features_std
    likelihoods: pd.DataFrame  # iteration, chains, log_likelihood, log_z, error, independent


def joined(found: Iterable[Measured]) -> Measured:
    """Return the measurements of several studies together."""
    return Measured(*(pd.concat(tables, ignore_index=True) for tables in zip(*found, strict=True)))


def run(study: Study, output: str | Path, *, progress: bool = True) -> pd.DataFrame:
    """Compute what of a study is not stored, in this process, and return its table.

    Parameters
    ----------
    study : Study
        What to run.
    output : path
        Folder for the table, its provenance and, unless the environment variable `STORE` names another, for the store;
        see `leamvd.campaign.run.run`.
    progress : bool
        Show how far it is.

    Returns
    -------
    DataFrame
        One row for each iteration of each layer, with `COLUMNS`, sorted; where a layer is the same with own and shared
        inputs it is listed for both.

    Raises
    ------
    ValueError, MemoryError, leamvd.data.mnist.DataError
        If the study cannot be run.
    """
    data = images(study)
    labeled = study.jobs(Images.of(data))
    found = campaign.run(labeled.values(), place(output), data=data, label=study.section, progress=progress)
    rows_found = table(study, labeled, found)
    _write(study, data, {"": rows_found}, Path(output))
    return rows_found


def measure(study: Classification, output: str | Path, *, progress: bool = True) -> Measured:
    """Train and measure what of a study is not stored, likewise, or read what is recorded, and return its tables."""
    if study.archived:
        return Measured(*(archive.read(study.archived, table) for table in Measured._fields))
    data = images(study)
    tables_of = study.measurements(Images.of(data))
    every = [job for labeled in tables_of.values() for job in labeled.values()]
    found = campaign.run(every, place(output), data=data, label=study.section, progress=progress)
    tables = Measured(**{name: measured(study, name, labeled, found) for name, labeled in tables_of.items()})
    _write(study, data, tables._asdict(), Path(output))
    return tables


def compute(study: Study, output: str | Path, **where: Any) -> list[Job]:
    """Compute what of a study is not stored, wherever, and return the jobs that time has been too short for.

    Parameters
    ----------
    study, output
        As for `run`, which then finds everything stored: the same table wherever it was computed. The store is in
        `output`, whatever the environment says.
    **where
        See `leamvd.campaign.run.run`.
    """
    data = images(study)
    every = jobs(study, data)
    done = campaign.run(every, Path(output) / "store", data=data, label=study.section, **where)
    return [job for job in every if job not in done]


def jobs(study: Study, data: Dataset) -> list[Job]:
    """Return all jobs of a study whose results are shown, each once; what they need is not listed."""
    every: dict[Job, None] = dict.fromkeys(study.jobs(Images.of(data)).values())
    if isinstance(study, Classification):
        every |= {job: None for one in study.measurements(Images.of(data)).values() for job in one.values()}
    return list(every)


def table(study: Study, labeled: Mapping[Layer, Job], found: Mapping[Job, Result]) -> pd.DataFrame:
    """Return the rows of a study as one table, with `COLUMNS`."""
    joined = rows(labeled, found).assign(section=study.section)
    readings = {method: reading(method) for method in study.methods}
    return in_order(study, joined.assign(reading=joined["method"].map(readings))[list(COLUMNS)])


def last(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the last iterations: of each layer, one."""
    ends: pd.DataFrame = table[table["iteration"] == table.groupby(list(Layer._fields))["iteration"].transform("max")]
    return ends


def kept(section: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a study's table that are recorded, see `EVERY`."""
    return table[(table["iteration"] % EVERY.get(section, 1) == 0) | table.index.isin(last(table).index)]


def in_order(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of a study in the order of its methods, and of seeds and iterations."""
    order = {method: i for i, method in enumerate(study.methods)}
    return table.sort_values(
        ["inputs", "layer", "method", "seed", "iteration"],
        key=lambda column: column.map(order) if column.name == "method" else column,
        ignore_index=True,
    )


def measured(study: Study, name: str, labeled: Mapping[Any, Job], found: Mapping[Job, Result]) -> pd.DataFrame:
    """Return one of the tables of measured stacks, see `Measured`, in its order."""
    table = rows(labeled, found).assign(study=f"mnist-{study.side}x{study.side}")
    if name == "probes":
        table = table.drop(columns="iteration")
    elif name == "runs":
        table = table.rename(columns={"iteration": "epoch"})
    key = ["study", "method", "seed"]
    order = {method: i for i, method in enumerate(dict.fromkeys(label.method for label in labeled))}
    table = table[[*key, *table.columns.difference(key, sort=False)]]
    return table.sort_values("method", key=lambda column: column.map(order), kind="stable", ignore_index=True)


# ---- what a table must be read with


def fingerprint(known: Mapping[str, Any]) -> str:
    """Return a digest of what decides on a study's results, given its provenance."""
    decisive = ("study", "methods", "data", "checksum", "code", "versions")
    text = json.dumps({name: known[name] for name in decisive}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def provenance(study: Study, data: Dataset) -> dict[str, Any]:
    """Return what a table must be read with: study, what its methods ran, data checksum, versions, code, commit."""
    module = Path(stacks.__file__) if isinstance(study, Classification) else LAYERS
    own = {name: value for name, value in dataclasses.asdict(study).items() if name != "archived"}
    packages = {name for job in jobs(dataclasses.replace(study, seeds=study.seeds[:1]), data) for name in job.packages}
    return {
        "study": own | {"dataset": data.name, "training": _training(study.training)},
        "methods": {method: settings(study, method) for method in study.methods},
        "data": data.description,
        "checksum": data.checksum,
        "code": versions.code(module),
        "versions": versions.packages(module, tuple(sorted(packages))),
        **versions.machine(),
    }


def _training(training: Training) -> dict[str, Any]:
    """Return the settings, the device, say, as this machine has it where they leave it open."""
    return dataclasses.asdict(training) | training.computation._asdict()


def settings(study: Study, method: str) -> dict[str, Any]:
    """Return what a method of a study ran: what its optimizer was built with, or contrastive divergence's epochs."""
    own, training, reading = study.settings_of(method)
    if own.trainer == "cd":
        return {"n_gen": reading.n_gen}
    options = training.options(own.trainer, reading)
    return options | ({"reading": dataclasses.asdict(reading)} if own.trainer == "lea-mvd" else {})


# ---- files


def _write(study: Study, data: Dataset, tables: Mapping[str, pd.DataFrame], folder: Path) -> None:
    """Write a study's tables and provenance to the folder of a run."""
    known = provenance(study, data)
    name = f"study-{fingerprint(known)}"
    if (folder / f"{name}.json").exists():  # in a folder that is only to be read, say
        return
    folder.mkdir(parents=True, exist_ok=True)
    files = {f"{name}{table and '-'}{table}.csv.gz": _compressed(content) for table, content in tables.items()}
    for file, content in files.items():
        write_whole(folder / file, content)
    known["sha256"] = {file: digest(content) for file, content in files.items()}
    write_whole(folder / f"{name}.json", json.dumps(known, indent=2))


def _compressed(table: pd.DataFrame) -> bytes:
    return gzip.compress(as_csv(table).encode(), 6, mtime=0)


def read(folder: Path) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Return the provenance and the tables that `run` or `measure` has written to the folder of a run.

    Raises
    ------
    DamageError
        If a file is missing, or is not what was written.
    """
    found = sorted(folder.glob("study-*.json"))
    if not found:
        raise DamageError(f"{folder} must hold the file study-*.json of its section's study; run its section again")
    path = found[0]
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if path.stem != f"study-{fingerprint(known)}":
            raise ValueError("its name is a digest of another content")
        contents = {file: (folder / file).read_bytes() for file in known["sha256"]}
        if wrong := [file for file, content in contents.items() if digest(content) != known["sha256"][file]]:
            raise ValueError(f"{wrong[0]} is not what was written")
        tables = {
            file.removeprefix(f"{path.stem}").removesuffix(".csv.gz").lstrip("-"): read_table(folder / file)
            for file in contents
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamageError(f"{path} is cut or altered: {error}") from None
    return known, tables
