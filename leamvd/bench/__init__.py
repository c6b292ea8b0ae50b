"""The bench: what the optimizer, the objective and its trainers cost on this machine, beside references and baselines.

Every number is measured by a process of its own, see `leamvd.bench.jobs`.
"""

from __future__ import annotations  # a job's process imports this module, and pandas takes long

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leamvd._support import checks

if TYPE_CHECKING:
    import pandas as pd

    from leamvd.bench.jobs import Job

checks.needs("leamvd.bench", "paper", "pandas", "psutil")


SECONDS = {"quick": 2.5, "paper": 10.7}
"""Of a job, on average, by the profile; the paper's as in the recorded run."""


class Tables(NamedTuple):
    """What a run of the bench found; the columns are those of ``COLUMNS`` in the modules that measure."""

    optimizers: pd.DataFrame  # time and memory of a generation
    parts: pd.DataFrame  # LEA-MVD's generation taken apart
    objectives: pd.DataFrame  # the reconstruction error of a population
    training: pd.DataFrame  # an epoch of contrastive divergence
    probe: pd.DataFrame  # the features that it learns
    split: pd.DataFrame  # a generation of the two experiments: optimizer and objective
    machine: dict[str, Any]  # what it was measured on


def run(
    profile: str,
    output: str | Path,
    methods: Sequence[str] | None = None,
    sizes: Sequence[int] | None = None,
    *,
    progress: bool = False,
) -> Tables:
    """Measure what has not been measured yet, write the tables as CSV files and ``machine.json``, and return them.

    Each job is saved at once, in a folder of `output` that is named after what the numbers depend on: this machine, the
    code and the versions of all packages. A run that was killed continues with the first job that is not there.

    Parameters
    ----------
    profile : {"quick", "paper"}
        A minute, or a quarter of an hour.
    output : path
        Folder of the tables.
    methods, sizes
        Of the optimizers, see `leamvd.bench.optimizers.jobs`.
    progress : bool
        Show a bar, one tick a job.

    Raises
    ------
    ValueError, TypeError
        If there is no such profile or method, or a size is below 1.
    """
    from leamvd.bench import baselines, networks, optimizers, parts
    from leamvd.bench.jobs import measure, tabulate
    from leamvd.bench.machine import fingerprint, machine
    from leamvd.paper.records import write, write_table

    jobs = _jobs(profile, methods, sizes)
    found = machine()
    output = Path(output)
    folder = output / f"bench-{fingerprint(profile, found)}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "machine.json").exists():  # the load that counts is the one before the first job
        write(folder / "machine.json", json.dumps(found, indent=2))
    measured = measure(jobs, folder, progress=progress)
    for name, columns in (optimizers.COLUMNS | parts.COLUMNS | networks.COLUMNS).items():
        write_table(output / f"{name}.csv", tabulate(measured, name, columns))
    about = json.loads((folder / "machine.json").read_text(encoding="utf-8")) | {
        "profile": profile,
        "seconds": round(sum(record["seconds"] for _, record in measured), 1),
        "left_out": [method for method in methods or baselines.METHODS if baselines.version(method) is None],
        "failures": {job.name: record["status"] for job, record in measured if record["status"] != "ok"},
    }
    write(output / "machine.json", json.dumps(about, indent=2))
    return read(output)


def _jobs(profile: str, methods: Sequence[str] | None, sizes: Sequence[int] | None) -> list[Job]:
    from leamvd.bench import networks, optimizers, parts

    return optimizers.jobs(profile, methods, sizes) + parts.jobs(profile) + networks.jobs(profile)


def expected(profile: str, methods: Sequence[str] | None, sizes: Sequence[int] | None) -> tuple[int, float]:
    """Return how many jobs there are, and the seconds that they take where each takes as long as the recorded ones."""
    jobs = _jobs(profile, methods, sizes)
    return len(jobs), len(jobs) * SECONDS[profile]


def read(folder: str | Path) -> Tables:
    """Return the tables that `run` wrote to `folder`; a FileNotFoundError if one of them is not there."""
    from leamvd.paper.units import read_table

    folder = Path(folder)
    tables = {name: read_table(folder / f"{name}.csv") for name in Tables._fields if name != "machine"}
    return Tables(**tables, machine=json.loads((folder / "machine.json").read_text(encoding="utf-8")))
