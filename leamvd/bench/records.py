"""What was measured of the rows: saved at once, never measured twice, put together as tables."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from leamvd.bench.jobs import Row
from leamvd.paper.records import progress_bar, write


def measure(rows: Sequence[Row], folder: Path, *, progress: bool = False) -> None:
    """Measure the rows that `folder` does not hold yet; each is saved, atomically, once it is there."""
    with progress_bar(len(rows), progress, "bench", "row") as bar:
        for row in rows:
            bar.set_postfix_str(row.name)
            path = folder / f"{row.name}.json"
            if not path.exists():
                write(path, json.dumps(row.measure(), indent=1))
            bar.update()


def saved(rows: Iterable[Row], folder: Path) -> list[tuple[Row, dict[str, Any]]]:
    """Return the rows, all measured, and what was found of each."""
    return [(row, json.loads((folder / f"{row.name}.json").read_text(encoding="utf-8"))) for row in rows]


def tabulate(records: Iterable[tuple[Row, dict[str, Any]]], table: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return one of the tables.

    A row that could not be measured has no numbers, and is there if the table has a column for its status.
    """
    found = []
    for row, record in records:
        if row.table == table:
            base = {"threads": row.threads} | row.arguments | row.known | {"status": record["status"]}
            nothing: list[dict[str, Any]] = [{}] if "status" in columns else []
            found += [base | numbers for numbers in record["rows"] or nothing]
    return pd.DataFrame(found).reindex(columns=list(columns))
