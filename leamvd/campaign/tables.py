"""Tables and files as they are written: whole or not at all, the same bytes on every system."""

import tempfile
from pathlib import Path
from typing import Any

import pandas as pd

# How pandas reads decimals to the last bit; from 3.1 it always does.
_EXACT: Any = {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}


def as_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV, the same on every system."""
    return table.to_csv(index=False, lineterminator="\n")


def read_table(source: Any) -> pd.DataFrame:
    """Read a table from CSV: the numbers that were written, to the last bit."""
    table: pd.DataFrame = pd.read_csv(source, **_EXACT)
    return table


def write_table(path: Path, table: pd.DataFrame) -> None:
    """Write a table as CSV so that it is there whole or not at all."""
    write_whole(path, as_csv(table))


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there whole or not at all."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as folder:
        temporary = Path(folder, path.name)
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
