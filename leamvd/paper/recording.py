"""Turning a finished study into the recorded form that ships with the notebooks."""

import hashlib
import io
import json
import lzma
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leamvd.paper import pictures, pretraining, records, reruns
from leamvd.paper.store import RECORDS, Store
from leamvd.paper.studies import Classification, images
from leamvd.paper.units import read_table

RUNS, PICTURES, PROVENANCE = "runs.csv.xz", "pictures.npz", "provenance.json"
"""Files of a recorded study."""

LIMIT = 20_000_000
"""Bytes of everything that is recorded: it ships with the package."""


def record(name: str, folder: Path, about: Mapping[str, Any], store: Store, *, replace: bool = False) -> Path:
    """Write what a section's study found to ``notebooks/recorded/NAME``.

    These are its records, compressed; small pictures in the place of its weights; and its provenance, which is enough
    to run it again. A study that measures stacks leaves the tables of `leamvd.paper.pretraining.Measured` in the place
    of these. The same study gives the same bytes.

    Parameters
    ----------
    name : str
        Of the recorded folder: lower-case letters, digits and underscores.
    folder : Path
        Of the run.
    about : mapping
        Its ``run.json``.
    store : Store
        That holds its units.
    replace : bool
        Put it in the place of an earlier one.

    Returns
    -------
    Path
        The recorded folder.

    Raises
    ------
    ValueError
        If the run has no study, or one that cannot be rerun here and so not be verified; or if the name is no such
        word, or the folder too large.
    FileExistsError
        If there is one of this name that is not to be replaced.
    leamvd.paper.store.DamageError
        If a unit is missing or damaged.
    """
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise ValueError(f"the name must be lower-case letters, digits and underscores, got {name!r}")
    place = records.recorded_folder(name)
    if place.exists() and not replace:
        raise FileExistsError(f"{name} is recorded already in {place}: choose another name, or replace it")
    if not reruns.has_study(about):
        raise ValueError(f"{folder} must be a run of a section with a study to be recorded, got {about['section']}")
    known = reruns.provenance(folder, about)
    _check_movable(about)
    stored = reruns.units(known, store)
    with reruns.in_place(about["readings"]):
        study = reruns.section_study(about)
        data = images(study)
        addresses = {unit.name: at.name for unit, at in records.addresses(study, data).items()}
        if addresses != known["units"]:
            raise ValueError(f"{folder} must be run again (--from): other code, versions or data computed it")
        if isinstance(study, Classification):
            content = _measured(study, known["units"], store)
        else:
            shown = _packed(pictures.pictures(study, store.folder.parent, data))
            content = {RUNS: _compressed(reruns.table(known, stored)), PICTURES: shown}
    given = {name: about[name] for name in ("section", "parameters", "readings")}
    known = given | {name: value for name, value in known.items() if name != "units"}
    known |= {"sha256": {name: hashlib.sha256(file).hexdigest() for name, file in content.items()}}
    content[PROVENANCE] = (json.dumps(known, indent=2) + "\n").encode()
    _check_size(place, content)
    _write(place, content)
    return place


def _compressed(table: pd.DataFrame) -> bytes:
    return lzma.compress(table.to_csv(index=False).encode(), preset=9)


def _measured(study: Classification, names: Mapping[str, str], store: Store) -> dict[str, bytes]:
    """Return the tables of what was measured, by the names of their files."""
    files = {piece: reruns.checked(store, names[piece.name])[RECORDS] for piece in study.measurements()}
    tables = {piece: read_table(io.BytesIO(content)) for piece, content in files.items()}
    measured = pretraining.measured(study, tables)._asdict()
    return {f"{name}.csv.xz": _compressed(table) for name, table in measured.items()}


def _packed(arrays: Mapping[str, NDArray[np.uint8]]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _check_movable(about: Mapping[str, Any]) -> None:
    """Refuse what only this machine has."""
    dataset = about["parameters"]["dataset"]
    if dataset not in (None, "digits", "mnist"):
        raise ValueError(f"dataset must be digits or mnist in a study that is to be recorded, got {dataset!r}")
    for name in about["readings"]:
        if Path(name).is_absolute():
            raise ValueError(f"readings must have relative names in a study that is to be recorded, got {name!r}")


def _check_size(place: Path, content: Mapping[str, bytes]) -> None:
    others = (path for path in place.parent.rglob("*") if path.is_file() and place not in path.parents)
    size = sum(path.stat().st_size for path in others) + sum(map(len, content.values()))
    if size > LIMIT:
        raise ValueError(f"all that is recorded must be at most {LIMIT:,} bytes, with {place.name} it is {size:,}")


def _write(place: Path, content: Mapping[str, bytes]) -> None:
    """Write a folder so that it is there whole or not at all; an earlier one stays until then."""
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as scratch:
        new, earlier = Path(scratch, "new"), Path(scratch, "earlier")
        new.mkdir()
        for name, file in content.items():
            (new / name).write_bytes(file)
        if place.exists():
            place.rename(earlier)
        new.rename(place)
