"""Running a study: its jobs to one tidy table, with what the table must be read with."""

import dataclasses
import gzip
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from leamvd.campaign import archive
from leamvd.campaign import run as campaign
from leamvd.campaign.jobs import Job, digest, made_with
from leamvd.campaign.store import FOLDER, DamageError, altered, place
from leamvd.campaign.tables import as_csv, read_table, write_whole
from leamvd.data.images import Dataset, Images
from leamvd.studies.study import LABELS, Classification, Study, images

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


def run(study: Study, output: str | Path) -> pd.DataFrame:
    """Compute what of a study is not stored, in this process, and return its table, as it is written to a folder.

    A row is an iteration of a layer, with `leamvd.studies.study.COLUMNS`; where a layer is the same with own and
    shared inputs it is listed for both. The store is in the folder too, unless the environment names another.
    """
    return tables(study, images(study), output)["runs"]


def measure(study: Classification, output: str | Path) -> Measured:
    """Train and measure what of a study is not stored, likewise, or read what is recorded, and return its tables."""
    if study.archived:
        return Measured(*(archive.read(study.archived, table) for table in Measured._fields))
    return Measured(**tables(study, images(study), output))


def tables(study: Study, data: Dataset, output: str | Path) -> dict[str, pd.DataFrame]:
    """Compute likewise all tables of a study, on its images."""
    planned = study.tables(Images.of(data))
    found = campaign.run_tables(planned, place(output), data=data, label=study.section)
    _write(study, data, found, Path(output))
    return found


def compute(study: Study, output: str | Path, **where: Any) -> list[Job]:
    """Compute what of a study is not stored, wherever, and return the jobs that time has been too short for.

    Then `run` finds everything stored: the same table wherever it was computed, see `leamvd.campaign.run.run`. The
    store is in the folder `output`, whatever the environment says.
    """
    data = images(study)
    every = jobs(study, data)
    done = campaign.run(every, Path(output) / FOLDER, data=data, label=study.section, **where)
    return [job for job in every if job not in done]


def stored(study: Study, output: str | Path) -> pd.DataFrame:
    """Return the table of a study that `compute` has computed, see `run`."""
    data = images(study)
    planned = {"runs": study.tables(Images.of(data))["runs"]}
    return campaign.run_tables(planned, Path(output) / FOLDER, data=data, progress=False)["runs"]


def jobs(study: Study, data: Dataset) -> list[Job]:
    """Return all jobs of a study whose results are shown, each once; what else they need is not listed."""
    given = Images.of(data)
    measured = (job for table in study.tables(given).values() for job in table.jobs.values())
    return list(dict.fromkeys([*study.jobs(given).values(), *measured]))


def kept(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a study's table that are recorded, see `EVERY`."""
    every = EVERY.get(table["section"].iloc[0], 1) if "section" in table else 1
    if every == 1:
        return table
    last = table["iteration"] == table.groupby(list(LABELS))["iteration"].transform("max")
    return table[(table["iteration"] % every == 0) | last]


# ---- what a table must be read with


def fingerprint(known: Mapping[str, Any]) -> str:
    """Return a digest of what decides on a study's results, given its provenance."""
    decisive = ("study", "methods", "data", "checksum", "code", "versions")
    text = json.dumps({name: known[name] for name in decisive}, sort_keys=True)
    return digest(text.encode())[:16]


def provenance(study: Study, data: Dataset) -> dict[str, Any]:
    """Return what a table must be read with: study, what its methods ran, data checksum, versions, code, commit."""
    own = {name: value for name, value in dataclasses.asdict(study).items() if name != "archived"}
    # the device, say, as this machine has it where the study leaves it open
    own |= {"dataset": data.name, "training": own["training"] | study.training.computation._asdict()}
    return {
        "study": own,
        "methods": {method: settings(study, method) for method in study.methods},
        "data": data.description,
        "checksum": data.checksum,
        **made_with(jobs(dataclasses.replace(study, seeds=study.seeds[:1]), data)),
    }


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
    known["sha256"] = {}
    for table, rows in tables.items():
        content = gzip.compress(as_csv(rows).encode(), 6, mtime=0)
        write_whole(folder / f"{name}-{table}.csv.gz", content)
        known["sha256"][f"{name}-{table}.csv.gz"] = digest(content)
    write_whole(folder / f"{name}.json", json.dumps(known, indent=2))


def read(folder: Path) -> tuple[dict[str, Any], dict[str, pd.DataFrame]]:
    """Return the provenance and the tables that `run` or `measure` has written to the folder of a run.

    A `DamageError` says which file is missing, or is not what was written.
    """
    found = sorted(folder.glob("study-*.json"))
    if not found:
        raise DamageError(
            f"{folder} must hold the file study-*.json of its section's study; a sweep has none, run others again"
        )
    path = found[0]
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
        if path.stem != f"study-{fingerprint(known)}":
            raise ValueError("its name is a digest of another content")
        if wrong := altered(folder, known["sha256"]):
            raise ValueError(f"{wrong[0]} is not what was written")
        tables = {
            file.removeprefix(f"{path.stem}-").removesuffix(".csv.gz"): read_table(folder / file)
            for file in known["sha256"]
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamageError(f"{path} is cut or altered: {error}") from None
    return known, tables
