"""The bench: what the optimizer, the objective and its trainers cost on this machine, beside references and baselines.

Every number is measured by a process of its own (`leamvd.bench.worker`), which imports this module too: what takes long
to import is imported where it is used.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leamvd._support import checks

if TYPE_CHECKING:
    import pandas as pd

checks.needs("leamvd.bench", "paper", "pandas", "psutil")


class Tables(NamedTuple):
    """What a run of the bench found.

    Attributes
    ----------
    optimizers : DataFrame
        Time and memory of a generation, see `leamvd.bench.optimizers`.
    parts : DataFrame
        LEA-MVD's generation taken apart, see `leamvd.bench.parts`.
    objectives, training, probe, split : DataFrame
        The objective, contrastive divergence, its features, and a generation of the two experiments taken apart, see
        `leamvd.bench.networks`.
    machine : dict
        What it was measured on.
    """

    optimizers: pd.DataFrame
    parts: pd.DataFrame
    objectives: pd.DataFrame
    training: pd.DataFrame
    probe: pd.DataFrame
    split: pd.DataFrame
    machine: dict[str, Any]


def run(
    profile: str,
    output: str | Path,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    *,
    progress: bool = False,
) -> Tables:
    """Measure what has not been measured yet, write the tables as CSV files and ``machine.json``, and return them.

    Each row is saved at once, in a folder of `output` that is named after what the numbers depend on: this machine, the
    code and the versions of all packages. A run that was killed continues with the first row that is not there.

    Parameters
    ----------
    profile : {"quick", "paper"}
        A minute, or a quarter of an hour.
    output : path
        Folder of the tables.
    methods, sizes
        Of the optimizers, see `leamvd.bench.optimizers.rows`.
    progress : bool
        Show a bar, one tick a row.

    Raises
    ------
    ValueError, TypeError
        If there is no such profile or method, or a size is below 1.
    """
    from leamvd.bench import baselines, networks, optimizers, parts
    from leamvd.bench.machine import fingerprint, machine
    from leamvd.bench.records import measure, saved, tabulate
    from leamvd.paper.records import write

    rows = optimizers.rows(profile, methods, sizes) + parts.rows(profile) + networks.rows(profile)
    found = machine()
    output = Path(output)
    folder = output / f"bench-{fingerprint(profile, found)}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "machine.json").exists():  # the load that counts is the one before the first row
        write(folder / "machine.json", json.dumps(found, indent=2))
    measure(rows, folder, progress=progress)
    records = saved(rows, folder)
    for name, columns in (optimizers.COLUMNS | parts.COLUMNS | networks.COLUMNS).items():
        write(output / f"{name}.csv", tabulate(records, name, columns).to_csv(index=False))
    about = json.loads((folder / "machine.json").read_text(encoding="utf-8")) | {
        "profile": profile,
        "seconds": round(sum(record["seconds"] for _, record in records), 1),
        "left_out": [method for method in methods or baselines.METHODS if baselines.version(method) is None],
        "failures": {row.name: record["status"] for row, record in records if record["status"] != "ok"},
    }
    write(output / "machine.json", json.dumps(about, indent=2))
    return read(output)


def read(folder: str | Path) -> Tables:
    """Return the tables that `run` wrote to `folder`.

    Raises
    ------
    FileNotFoundError
        If one of them is not there.
    """
    import pandas as pd

    folder = Path(folder)
    names = [name for name in Tables._fields if name != "machine"]
    tables = {name: pd.read_csv(folder / f"{name}.csv") for name in names}
    return Tables(**tables, machine=json.loads((folder / "machine.json").read_text(encoding="utf-8")))
