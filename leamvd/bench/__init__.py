"""The bench: what the optimizer, the objective and its trainers cost here, and what references and baselines do.

Every number is measured by a process of its own, see `leamvd.bench.cases`.
"""

from __future__ import annotations  # a case's process imports this module, and pandas takes long

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leamvd._support import checks
from leamvd.campaign.tables import read_table

if TYPE_CHECKING:
    import pandas as pd

    from leamvd.bench.cases import Case

checks.needs("leamvd.bench", "paper", "pandas", "psutil")


class Tables(NamedTuple):
    """What a run of the bench found; the columns are those of ``COLUMNS`` in the modules that measure."""

    optimizers: pd.DataFrame  # time and memory of a generation
    parts: pd.DataFrame  # LEA-MVD's generation taken apart
    objectives: pd.DataFrame  # the reconstruction error of a population
    training: pd.DataFrame  # an epoch of contrastive divergence
    split: pd.DataFrame  # a generation of the two experiments: optimizer and objective
    waiting: pd.DataFrame  # what the command line takes
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

    With "recorded" what ships is read. Otherwise each case is saved at once, in a folder of `output` that is named
    after what the numbers depend on: this machine, the code and the versions of all packages. A run that was killed
    continues with the first case that is not there.
    """
    from leamvd.bench import baselines, networks, optimizers, parts, waiting
    from leamvd.bench.cases import measure, tabulate
    from leamvd.bench.machine import fingerprint, machine
    from leamvd.campaign import archive
    from leamvd.campaign.tables import write_table, write_whole

    if profile == "recorded":
        archive.fixed(methods=methods, sizes=sizes)
        return read(archive.folder("linear_cost"))
    chosen, found, output = planned(profile, methods, sizes), machine(), Path(output)
    folder = output / f"bench-{fingerprint(profile, found)}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "machine.json").exists():  # the load that counts is the one before the first case
        write_whole(folder / "machine.json", json.dumps(found, indent=2))
    measured = measure(chosen, folder, progress=progress)
    for name, columns in (optimizers.COLUMNS | parts.COLUMNS | networks.COLUMNS | waiting.COLUMNS).items():
        write_table(output / f"{name}.csv", tabulate(measured, name, columns))
    about = json.loads((folder / "machine.json").read_text(encoding="utf-8")) | {
        "profile": profile,
        "seconds": round(sum(answered["seconds"] for _, answered in measured), 1),
        "left_out": [method for method in methods or baselines.METHODS if baselines.version(method) is None],
        "failures": {case.name: answered["status"] for case, answered in measured if answered["status"] != "ok"},
    }
    write_whole(output / "machine.json", json.dumps(about, indent=2))
    return read(output)


def planned(profile: str, methods: Sequence[str] | None = None, sizes: Sequence[int] | None = None) -> list[Case]:
    """Return what `run` measures: "quick" takes a minute, "paper" a quarter of an hour.

    `methods`, of `leamvd.bench.baselines.METHODS`, and `sizes`, numbers of variables, are those of the optimizers.
    """
    from leamvd.bench import networks, optimizers, parts, waiting

    found = optimizers.cases(profile, methods, sizes)  # which checks the profile
    return found + parts.cases(profile) + networks.cases(profile) + waiting.cases(profile)


def read(folder: str | Path) -> Tables:
    """Return the tables that `run` wrote to `folder`; a FileNotFoundError if one of them is not there."""
    folder = Path(folder)
    tables = {name: read_table(folder / f"{name}.csv") for name in Tables._fields if name != "machine"}
    return Tables(**tables, machine=json.loads((folder / "machine.json").read_text(encoding="utf-8")))
