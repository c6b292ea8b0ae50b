"""Verifying what is recorded: a sample of it computed again, and how many digits agree."""

import dataclasses
import importlib
import json
import pkgutil
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from llvmlite.binding import get_host_cpu_name

from leamvd._support import checks
from leamvd.networks.dbn import Training
from leamvd.networks.torch_backend import Computation
from leamvd.optimizers.reading import Reading
from leamvd_paper import studies

from . import results
from .layers import Images, spelled
from .results import Call, Recorded, read_recorded

# relative difference up to which numbers are the same where processor and versions are the recorded
# ones
SAME = 1e-6
FIRST = 1e-5  # the same on any machine, in the first two iterations of a first layer
# the same where an epoch samples so many bits that rounding flips some of them
FIRST_OF_LARGE = 1e-3
LARGE = 100_000  # variables of such a layer

# columns that tell apart what was timed; probes count their seconds from layer to layer
RUN = (
    *("inputs", "layer", "method", "seed", "study", "protocol", "batches", "features", "search"),
    *("image_set", "section", "n_images", "momentum_epochs", "final_momentum", "learning_rate"),
)

NOT_JUDGED = "not judged"
# of what differs most in each call
COLUMNS = ["call", "number", "recorded", "here", "digits", "judged by", "drifts"]


def all_recorded() -> dict[str, Recorded]:
    """Return what is recorded by calls, by its names, from all files of `leamvd_paper.studies`."""
    entries = {}
    for info in pkgutil.iter_modules(studies.__path__):
        file = importlib.import_module(f"{studies.__name__}.{info.name}")
        entries.update(getattr(file, "RECORDED", {}))
    return entries


def recorded(name: str) -> Recorded:
    """Return what is recorded under a name."""
    entries = all_recorded()
    return entries[checks.choice("name", name, sorted(entries))]


def processor_hours(name: str) -> float:
    """Return the hours behind what is recorded under a name, by its rows or as a whole; 0 where
    nothing says.
    """
    known = results.provenance(name)
    seconds = 0.0
    if isinstance(known["settings"], dict):
        seconds = known["settings"].get("seconds", 0.0)
    for file in () if seconds else known["sha256"]:
        table = file.partition(".")[0]
        rows = read_recorded(name, table)
        if "seconds" in rows:
            by = rows.columns.intersection(RUN)
            if table == "probes":
                by = by.drop("layer")
            ends = rows.groupby([*by], dropna=False)["seconds"].max()
            seconds += float(ends.sum())
    return seconds / 3600


def changed_settings(name: str) -> list[str]:
    """Return how the settings of the plan differ from those that are recorded under a name.

    What computes the errors that optimizers see may be another: Section 4 finds that it does not
    matter.
    """
    settings = recorded(name).settings
    parts = settings if isinstance(settings, (list, tuple)) else [settings]
    usual = {}
    for part in (Training, Reading, Images, *parts):
        if dataclasses.is_dataclass(part):
            usual.update({field.name: field.default for field in dataclasses.fields(part)})
    changed = []
    known = results.provenance(name)["settings"]
    for change in results.changes(known, spelled(settings), usual):
        field = change.split(" ")[0].rpartition(".")[2]
        if field not in Computation._fields:
            changed.append(change)
    return changed


def verify(
    name: str, folder: str | Path, *, count: int = 1, n_jobs: int = 1
) -> tuple[list[str], pd.DataFrame]:
    """Compute so many calls behind each table of what is recorded; return what is not as it was,
    and `COLUMNS`.
    """
    entry = recorded(name)
    changed = differences(results.provenance(name))
    chosen = {}
    for table, (columns, calls) in entry.plan().items():
        if table not in entry.unverified:
            chosen[table] = (columns, sample(columns, calls, count))
    here = results.tables(chosen, folder, n_jobs=n_jobs, label=name)
    compared = []
    for table, (columns, _) in chosen.items():
        known = read_recorded(name, table)
        rows = compare(known, entry.keep(here[table]), columns, elsewhere=bool(changed))
        compared.append(rows)
    return changed, pd.concat(compared, ignore_index=True)


def sample(
    columns: list[str], calls: Mapping[tuple[Any, ...], Call], count: int
) -> dict[tuple[Any, ...], Call]:
    """Return some of a table's calls, those that need least first, of labels that differ in more
    than the seed.
    """
    labels = list(calls)
    keys = pd.Series([call.key for call in calls.values()])
    table = pd.DataFrame(labels, columns=columns)
    table["needs"] = [_depth(call) for call in calls.values()]
    table = table[~keys.duplicated()]  # a call that stands behind several labels is the first one's
    turn = table.groupby([name for name in columns if name != "seed"], dropna=False).cumcount()
    order = table.assign(turn=turn).sort_values(["turn", "needs"], kind="stable")
    chosen = [labels[i] for i in order.index[:count]]
    return {label: calls[label] for label in chosen}


def _depth(call: Call) -> int:
    return 1 + max(map(_depth, call.needs), default=0)


def differences(known: Mapping[str, Any]) -> list[str]:
    """Return what rounding depends on and is not as it was recorded: the processor and versions."""
    then = {"the processor": known["processor"], **(known["versions"] or {})}
    here = {
        "the processor": get_host_cpu_name(),
        **results.versions(*results.PACKAGES, results.TORCH),
    }
    texts = []
    for name, now in here.items():
        if then.get(name, now) != now:
            texts.append(f"{name} was {then[name]} and is {now}")
    return texts


def compare(
    known: pd.DataFrame, here: pd.DataFrame, labels: list[str], *, elsewhere: bool
) -> pd.DataFrame:
    """Return a row for each call that was computed `here`, with `COLUMNS`, against the whole table
    that is recorded.

    All numbers must agree to six digits. Where they do not and processor or versions are others,
    the first iterations of a first layer must agree to five, and nothing else is judged: rounding
    may send a search another way.
    """
    names = [name for name in labels if name in known]
    measured = here.select_dtypes("number").columns.intersection(known.columns)
    numbers = list(measured.difference([*labels, "seconds"]))
    rows = []
    for label, group in here.groupby(names, sort=False, dropna=False):
        words = [str(value) for value in label]
        mine = (known[names].astype(str) == words).all(axis=1)
        then = known.loc[mine, numbers].reset_index(drop=True).astype(float)
        now = group[numbers].reset_index(drop=True).astype(float)
        then, now = then.align(now)
        difference = (now - then).abs() / then.abs().where(then != 0, 1)
        # a row that is missing
        difference = difference.mask(then.isna() & now.isna(), 0).fillna(np.inf)
        worst = difference / SAME
        judged = "digits"
        if elsewhere and 1 < worst.to_numpy().max() < np.inf:
            judged = NOT_JUDGED
            if {"layer", "iteration", "n_var"} <= {*group}:
                first = ((group["layer"] == 1) & (group["iteration"] <= 1)).to_numpy()
                bound = FIRST_OF_LARGE if group["n_var"].iloc[0] >= LARGE else FIRST
                if first.any():
                    judged = "first iterations"
                    worst = difference[first] / bound
        row, column = divmod(int(worst.to_numpy().argmax()), worst.shape[1])
        place = (worst.index[row], worst.columns[column])
        relative = float(difference.loc[place])
        digits = 16
        if relative > 0:
            agreeing = np.floor(-np.log10(relative))
            digits = int(np.clip(agreeing, 0, 16))
        drifts = judged != NOT_JUDGED and bool(worst.loc[place] > 1)
        call = " ".join(words)
        number = f"{place[1]}, row {place[0]}"
        rows.append((call, number, then.loc[place], now.loc[place], digits, judged, drifts))
    return pd.DataFrame(rows, columns=COLUMNS)


def write_report(path: Path, found: Mapping[str, Mapping[str, Any]]) -> None:
    """Write what was found under each name to a JSON file, beside what is recorded there and what
    computed here.

    Of this machine it tells processor, system and versions, and neither a name nor a path.
    """
    recorded = {}
    for name, own in found.items():
        known = results.provenance(name)
        del known["sha256"]
        recorded[name] = {"recorded": known, **own}
    report = {
        "processor": get_host_cpu_name(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": results.versions("leamvd", "leamvd-paper", *results.PACKAGES, results.TORCH),
        "code": results.code(),
        "names": recorded,
    }
    text = json.dumps(report, indent=1, default=_rows)
    results.write_whole(path, f"{text}\n".encode())


def _rows(table: pd.DataFrame) -> Any:
    """Return a table's rows as JSON has them: null where a number is missing."""
    known = table.replace([np.inf, -np.inf], np.nan).astype(object)
    return known.where(known.notna(), None).to_dict("records")
