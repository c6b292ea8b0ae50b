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

from leamvd.paper import pictures, pretraining, records, reruns, studies, versions
from leamvd.paper.comparison import final
from leamvd.paper.store import RECORDS, DamageError, Store
from leamvd.paper.studies import Classification, Study, images
from leamvd.paper.units import as_csv, read_table

RUNS, PICTURES, PROVENANCE = "runs.csv.xz", "pictures.npz", "provenance.json"
"""Files of a recorded study."""

LIMIT = 20_000_000
"""Bytes of everything that is recorded: it ships with the package."""

EVERY = {"readings": 10}
"""Of studies of a section every so many iterations are recorded, and the last: they are large, and pages show ends."""


def record(
    name: str,
    folder: Path,
    about: Mapping[str, Any],
    store: Store,
    *,
    replace: bool = False,
    extend: bool = False,
) -> Path:
    """Write what a section's study found to ``notebooks/recorded/NAME``.

    These are its records, compressed; small pictures in the place of its weights; and its provenance, which is enough
    to run it again. A study that measures stacks leaves the tables of `leamvd.paper.pretraining.Measured` in the place
    of these. The same study gives the same bytes, in one run or in several with some of its seeds each.

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
    extend : bool
        Add its seeds to an earlier one of the same study.

    Returns
    -------
    Path
        The recorded folder.

    Raises
    ------
    ValueError
        If the run has no study, or one that cannot be rerun here and so not be verified; if the name is no such word,
        or the folder too large; if what is to be extended has some of these seeds or later ones, or differs in anything
        but seeds; or if there is no clone to record in.
    FileExistsError
        If there is one of this name that is neither to be replaced nor to be extended.
    leamvd.paper.store.DamageError
        If a unit, or what is to be extended, is missing or damaged.
    """
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise ValueError(f"the name must be lower-case letters, digits and underscores, got {name!r}")
    place = records.recorded_folder(name)
    if not (versions.PACKAGE.parent / "_config.yml").is_file():
        raise ValueError(f"recording needs a clone of the repository, got an installed package: {place.parent}")
    if place.exists() and not (replace or extend):
        raise FileExistsError(f"{name} is recorded already in {place}: choose another name, or replace or extend it")
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
            content = {RUNS: _compressed(kept(study.section, reruns.table(known, stored))), PICTURES: shown}
    given = {name: about[name] for name in ("section", "parameters", "readings")}
    known = given | {name: value for name, value in known.items() if name != "units"}
    if extend:
        known, content = _extended(name, study, known, content)
    known |= {"sha256": {name: hashlib.sha256(file).hexdigest() for name, file in content.items()}}
    content[PROVENANCE] = (json.dumps(known, indent=2) + "\n").encode()
    _check_size(place, content)
    _write(place, content)
    return place


def kept(section: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a study's table that are recorded, see `EVERY`."""
    return table[(table["iteration"] % EVERY.get(section, 1) == 0) | table.index.isin(final(table).index)]


def provenance(name: str) -> dict[str, Any]:
    """Return the provenance of a recorded study, all of whose files are what was recorded.

    Raises
    ------
    leamvd.paper.store.DamageError
        If they are not.
    """
    folder = records.recorded_folder(name)
    try:
        known: dict[str, Any] = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        for file, checksum in known["sha256"].items():
            if hashlib.sha256((folder / file).read_bytes()).hexdigest() != checksum:
                raise DamageError(f"{name}: {file} is not what was recorded")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamageError(f"{name}: {PROVENANCE} or a file that it names is missing or cut: {error}") from None
    return known


def _extended(
    name: str, study: Study, known: dict[str, Any], content: Mapping[str, bytes]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a run's provenance and files with those of a recorded study, of other seeds, before them."""
    if isinstance(study, Classification):
        raise ValueError(f"{name} measures stacks, and cannot be extended: replace it")
    before = provenance(name)
    earlier, here = _common(before), _common(known)
    if other := [key for key in here if earlier[key] != here[key]]:
        raise ValueError(f"{name} can be extended by other seeds of the same study alone, and {other[0]} differs")
    first, more = before["study"]["seeds"], known["study"]["seeds"]
    if both := [seed for seed in more if seed in first]:
        raise ValueError(f"{name} has the seed {both[0]} already")
    if min(more) < max(first):
        raise ValueError(
            f"{name} has seeds up to {max(first)}, and can be extended by later ones alone, got {min(more)}"
        )
    seeds = [*first, *more]
    usual = list(studies.STUDIES[study.section, known["parameters"]["profile"]].seeds)
    known |= {
        "study": known["study"] | {"seeds": seeds},
        "parameters": known["parameters"] | {"seeds": None if seeds == usual else seeds},
        **{
            name: ", ".join(dict.fromkeys(str(about[name]) for about in (before, known)))
            for name in ("commit", "machine")
        },
    }
    table = pd.concat([records.recorded(name), read_table(io.BytesIO(lzma.decompress(content[RUNS])))])
    with np.load(records.recorded_folder(name) / PICTURES) as old, np.load(io.BytesIO(content[PICTURES])) as new:
        shown = pictures.joined(dict(old), dict(new))
    return known, {RUNS: _compressed(records.in_order(study, table)), PICTURES: _packed(shown)}


def _common(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a study's provenance that its runs with other seeds share."""
    parts = {name: {**known[name], "seeds": None} for name in ("study", "parameters")}
    own = ("section", "readings", "methods", "data", "checksum", "code", "versions", "python")
    return {name: known[name] for name in own} | parts


def _compressed(table: pd.DataFrame) -> bytes:
    return lzma.compress(as_csv(table).encode(), preset=9)


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
        try:
            if place.exists():
                place.rename(earlier)
            new.rename(place)
        except BaseException:
            if not place.exists() and earlier.exists():
                earlier.rename(place)
            raise
