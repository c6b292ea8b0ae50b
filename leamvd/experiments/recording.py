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

from leamvd._support import checks
from leamvd.campaign import archive, versions
from leamvd.campaign.archive import PICTURES, PROVENANCE, RUNS
from leamvd.campaign.store import place
from leamvd.campaign.tables import as_csv, read_table
from leamvd.experiments import (
    backend_agreement,
    functions,
    longer_searches,
    pictures,
    records,
    searches,
    studies,
)
from leamvd.experiments.studies import Classification, Study, images

LIMIT = 20_000_000
"""Bytes of everything that is recorded: it ships with the package."""


def record(
    name: str,
    folder: Path,
    about: Mapping[str, Any],
    store: Path,
    *,
    replace: bool = False,
    extend: bool = False,
) -> Path:
    """Write what a section's study found to ``notebooks/recorded/NAME``.

    These are its records, compressed; small pictures in the place of its weights; and its provenance, which is enough
    to run it again. A study that measures stacks leaves the tables of `pretraining.Measured` in the place
    of these. The same study gives the same bytes, in one run or in several with some of its seeds each.

    Parameters
    ----------
    name : str
        Of the recorded folder: lower-case letters, digits and underscores.
    folder : Path
        Of the run.
    about : mapping
        Its ``run.json``.
    store : path
        Folder of the results, with the store that holds its weights.
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
    leamvd.campaign.store.DamageError
        If a unit, or what is to be extended, is missing or damaged.
    """
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise ValueError(f"the name must be lower-case letters, digits and underscores, got {name!r}")
    place = archive.folder(name)
    if not (versions.PACKAGE.parent / "_config.yml").is_file():
        raise ValueError(f"recording needs a clone of the repository, got an installed package: {place.parent}")
    if place.exists() and not (replace or extend):
        raise FileExistsError(f"{name} is recorded already in {place}: choose another name, or replace or extend it")
    if not studies.has_study(about):
        raise ValueError(f"{folder} must be a run of a section with a study to be recorded, got {about['section']}")
    if about["parameters"]["dataset"] not in (None, "digits", "mnist"):
        got = about["parameters"]["dataset"]
        raise ValueError(f"dataset must be digits or mnist in a study that is to be recorded, got {got!r}")
    known, tables = records.read(folder)
    study = studies.section_study(about)
    data = images(study)
    if records.fingerprint(records.provenance(study, data)) != records.fingerprint(known):
        raise ValueError(f"{folder} must be run again: other code, versions or data computed it")
    if isinstance(study, Classification):
        content = {f"{name}.csv.xz": _compressed(table) for name, table in tables.items()}
    else:
        shown = _packed(pictures.pictures(study, store.parent, data))
        content = {RUNS: _compressed(records.kept(study.section, tables[""])), PICTURES: shown}
    known = {name: about[name] for name in ("section", "parameters")} | known
    if extend:
        known, content = _extended(name, study, known, content)
    known["sha256"] = {name: hashlib.sha256(file).hexdigest() for name, file in content.items()}
    content[PROVENANCE] = (json.dumps(known, indent=2) + "\n").encode()
    _check_size(place, content)
    _write(place, content)
    return place


def record_searches(name: str, output: str | Path, *, n_jobs: int | None = 1) -> Path:
    """Compute one of `SEARCHES`, which no notebook does, and write it to ``notebooks/recorded/NAME``.

    Parameters
    ----------
    name : str
        Of `SEARCHES`.
    output : path
        Folder of the results, for the store: what was stopped goes on from there.
    n_jobs : int, optional
        See `leamvd.campaign.run.run`.
    """
    tables, known = SEARCHES[checks.choice("name", name, tuple(SEARCHES))](Path(output), n_jobs)
    content = {f"{table}.csv": as_csv(rows).encode() for table, rows in tables.items()}
    content[PROVENANCE] = (json.dumps(known, indent=2) + "\n").encode()
    place = archive.folder(name)
    _check_size(place, content)
    _write(place, content)
    return place


_Searches = tuple[dict[str, pd.DataFrame], Any]  # tables, and what they must be read with


def _functions(output: Path, n_jobs: int | None) -> _Searches:
    study, plan = studies.STUDIES["readings", "paper"], functions.PLANS["paper"]
    table = functions.run(study, place(output), **plan, n_jobs=n_jobs)
    given = {"n_var": plan["sizes"][0], "budget": plan["budget"]}
    followed = functions.follow(study, place(output), **given, n_jobs=n_jobs)
    methods = {method: records.settings(study, method) for method in functions.applicable(study.methods)}
    known = {"methods": methods, "seeds": study.seeds, **plan, **_made_with()}
    return {"runs": table, "directions": followed}, known


def _longer(output: Path, n_jobs: int | None) -> _Searches:
    known = {
        "problems": longer_searches.PROBLEMS,
        "methods": longer_searches.COMPARED,
        "seeds": longer_searches.SEEDS,
        **_made_with(),
    }
    return {"runs": longer_searches.run(place(output), n_jobs=n_jobs)}, known


def _agreement(output: Path, _: int | None) -> _Searches:
    tables, known = [], []
    for study in backend_agreement.STUDIES:
        tables.append(backend_agreement.run(study, output))
        own = backend_agreement.searches(study).items()
        known.append({search: records.provenance(one, images(study)) for search, one in own})
    return {"runs": pd.concat(tables, ignore_index=True)}, known


def _made_with() -> dict[str, Any]:
    code = Path(searches.__file__)
    return {"code": versions.code(code), "versions": versions.packages(code, ("cma",)), **versions.machine()}


SEARCHES = {"readings_functions": _functions, "longer_searches": _longer, "backend_agreement": _agreement}
"""What is recorded of searches that belong to no section's study."""


def _extended(
    name: str, study: Study, known: dict[str, Any], content: Mapping[str, bytes]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a run's provenance and files with those of a recorded study, of other seeds, before them."""
    if isinstance(study, Classification):
        raise ValueError(f"{name} measures stacks, and cannot be extended: replace it")
    before = archive.checked(name)
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
    table = pd.concat([archive.read(name), read_table(io.BytesIO(lzma.decompress(content[RUNS])))])
    with np.load(archive.folder(name) / PICTURES) as old, np.load(io.BytesIO(content[PICTURES])) as new:
        shown = pictures.joined(dict(old), dict(new))
    return known, {RUNS: _compressed(records.in_order(study, table)), PICTURES: _packed(shown)}


def _common(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a study's provenance that its runs with other seeds share."""
    parts = {name: {**known[name], "seeds": None} for name in ("study", "parameters")}
    own = ("section", "methods", "data", "checksum", "code", "versions", "python")
    return {name: known[name] for name in own} | parts


def _compressed(table: pd.DataFrame) -> bytes:
    return lzma.compress(as_csv(table).encode(), preset=9)


def _packed(arrays: Mapping[str, NDArray[np.uint8]]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


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
