"""From what was written of a run back to what it ran: its study, the files of its readings, its records."""

import contextlib
import hashlib
import io
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd

from leamvd.paper import records, studies
from leamvd.paper.pieces import Unit
from leamvd.paper.store import MANIFEST, RECORDS, Address, DamageError, Store, address
from leamvd.paper.studies import Study
from leamvd.paper.units import read_table


def section_study(about: Mapping[str, Any]) -> Study:
    """Return the study of a section's run, given what its ``run.json`` says; its readings must be `in_place`."""
    parameters = about["parameters"]
    return studies.study(about["section"], parameters["profile"], **studies.parameters(parameters))


def has_study(about: Mapping[str, Any]) -> bool:
    """Return whether a run is one of a section with a study."""
    return (about["section"], about["parameters"].get("profile")) in studies.STUDIES


def provenance(folder: Path, about: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the folder of a run says of its section's study, its units too.

    Raises
    ------
    ValueError
        If it is not there.
    """
    found = []
    for path in sorted(folder.glob("study-*.json")):
        with contextlib.suppress(ValueError):
            found.append(json.loads(path.read_text(encoding="utf-8")))
    known = own_study(found, about)
    if known is None or "units" not in known:
        raise ValueError(
            f"{folder} must hold the file study-*.json that names its study's units; run its section again"
        )
    return known


def own_study(found: Iterable[Any], about: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return which provenance is that of the section's own study: earlier versions ran a smaller one beside it."""
    side = studies.STUDIES[about["section"], about["parameters"]["profile"]].side
    for known in found:
        with contextlib.suppress(KeyError, TypeError):
            if known["study"]["side"] == side:
                own: dict[str, Any] = known
                return own
    return None


def units(known: Mapping[str, Any], store: Store) -> dict[Unit, bytes]:
    """Return the stored records of all units of a study, given its `provenance`; their weights are only checked.

    Raises
    ------
    DamageError
        If a unit is missing, or is not what was stored; the message names it.
    """
    study = known["study"]
    methods = dict.fromkeys(["cd", *study["methods"]])
    layers = range(1, len(study["layers"]) + 1)
    every = [
        Unit(method, inputs, layer, seed)
        for seed in study["seeds"]
        for method in methods
        for inputs in studies.INPUTS
        for layer in layers
    ]
    return {unit: checked(store, known["units"][unit.name])[RECORDS] for unit in every if unit.name in known["units"]}


def checked(store: Store, name: str) -> dict[str, bytes]:
    """Return a unit's files by its address's name alone, which is a digest of what the manifest must say."""
    try:
        depends_on = json.loads((store.folder / name / MANIFEST).read_bytes())["depends_on"]
    except OSError:
        raise DamageError(f"{name} is not in the store {store.folder}") from None
    except (ValueError, KeyError, TypeError):
        raise DamageError(f"{name}: {MANIFEST} is cut or altered") from None
    if address(name.rpartition("-")[0], depends_on).name != name:
        raise DamageError(f"{name}: {MANIFEST} is altered, or another unit's")
    return store.read(Address(name, depends_on))


def table(known: Mapping[str, Any], stored: Mapping[Unit, bytes]) -> pd.DataFrame:
    """Return the records of a study as `leamvd.paper.records.run` returned them, given its `provenance` and `units`."""
    tables = {unit: read_table(io.BytesIO(content)) for unit, content in stored.items()}
    labels: Any = SimpleNamespace(**known["study"])  # a study whose readings' files may be gone
    return records._records(labels, tables)


# ---- readings


@contextlib.contextmanager
def in_place(readings: Mapping[str, str]) -> Iterator[None]:
    """Stand in a folder that holds the files of these readings, which must have relative names, and nothing else.

    Meanwhile the data set's folder is still the one that it was from where the caller stands, and no store is named.
    """
    with environment(), tempfile.TemporaryDirectory(prefix="leamvd-readings-") as folder, contextlib.chdir(folder):
        for name, content in readings.items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise ValueError(f"readings must be named relative to their folder, got {name!r}")
            Path(folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(folder, name).write_text(content, encoding="utf-8")
        os.environ.pop(records.STORE, None)
        yield


@contextlib.contextmanager
def environment() -> Iterator[None]:
    """Undo in the end what is changed of the environment; till then the data set's folder is named by its full path."""
    before = dict(os.environ)
    if folder := os.environ.get("LEAMVD_DATA_DIR"):  # relative to where the caller stands
        os.environ["LEAMVD_DATA_DIR"] = str(Path(folder).expanduser().absolute())
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


def relative(parameters: Mapping[str, Any], readings: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return parameters and readings with a relative name for each that was named by its full path, and is gone.

    That is one whose path holds nothing, or another reading, by now. What a run computes does not depend on the name.
    """
    full = {name: content for name, content in readings.items() if Path(name).is_absolute()}
    there = {name for name, content in full.items() if Path(name).is_file() and _text(name) == content}
    names = {
        name: f"{hashlib.sha256(content.encode()).hexdigest()[:8]}-{Path(name).name}"
        for name, content in full.items()
        if name not in there
    }

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(item) for item in value]
        method, colon, name = str(value).partition(":")
        return names.get(value, f"{method}:{names[name]}" if colon and name in names else value)

    changed = {name: renamed(value) for name, value in parameters.items()}
    return changed, {names.get(name, name): content for name, content in readings.items() if name not in there}


def _text(name: str) -> str:
    return Path(name).read_text(encoding="utf-8", errors="replace")
