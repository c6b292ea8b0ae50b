"""What ships with the notebooks: the tables of runs that were recorded."""

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from leamvd.campaign.store import DamageError, altered
from leamvd.campaign.tables import read_table

RUNS, PICTURES, PROVENANCE = "runs.csv.xz", "pictures.npz", "provenance.json"
"""Files of a recorded study."""


def read(name: str, table: str = "runs") -> pd.DataFrame:
    """Return a table of a run that ships with the notebooks: ``notebooks/recorded/NAME/TABLE.csv``, or ``.csv.xz``."""
    plain = folder(name) / f"{table}.csv"
    compressed = plain.with_suffix(".csv.xz")
    return read_table(compressed if compressed.is_file() else plain)


def provenance(name: str) -> Any:
    """Return what a recorded run must be read with: the content of its ``provenance.json``."""
    return json.loads((folder(name) / PROVENANCE).read_text(encoding="utf-8"))


def checked(name: str) -> dict[str, Any]:
    """Return the `provenance` of a recorded run, or refuse with a `DamageError` one whose files were changed."""
    try:
        known: dict[str, Any] = provenance(name)
        if wrong := altered(folder(name), known["sha256"]):
            raise DamageError(f"{name}: {wrong[0]} is not what was recorded")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DamageError(f"{name}: {PROVENANCE} or a file that it names is missing or cut: {error}") from None
    return known


def folder(name: str) -> Path:
    """Return the folder of a run that ships with the notebooks."""
    return Path(str(files("leamvd.notebooks"))) / "recorded" / name


def exists(name: str) -> bool:
    """Return whether a run of this name ships with the notebooks."""
    return folder(name).is_dir()


def fixed(**given: Any) -> None:
    """Refuse what is given, and not None, of the parameters that are fixed where results are read."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"profile='recorded' has fixed parameters; {name}={value!r} needs profile quick or paper")
