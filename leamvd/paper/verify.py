"""Verifying what is recorded: a sample of it computed again, and how many digits agree."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from llvmlite.binding import get_host_cpu_name
from scipy import stats

from leamvd import paper
from leamvd._support import checks

from . import results
from .results import Call, Recorded, read_recorded

SAME = 1e-6  # relative difference up to which numbers are the same where processor and versions are the recorded ones
FIRST = 1e-5  # and anywhere, of the first two iterations of a first layer
FIRST_OF_LARGE = 1e-3  # of one with so many weights that an epoch's rounding flips some sampled bits
LARGE = 100_000
ERROR_RATE = 1e-3  # of a call that is judged by the scatter of other seeds, over all of its numbers

# of each call the number that differs most, how many digits of it agree, and the judgment
COLUMNS = ["call", "number", "recorded", "here", "digits", "judged by", "drifts"]


def all_recorded() -> dict[str, Callable[[], Recorded]]:
    """Return what makes the plan of each name that is recorded by calls, from all files of `leamvd.paper`."""
    files = [importlib.import_module(f"{paper.__name__}.{info.name}") for info in pkgutil.iter_modules(paper.__path__)]
    return {name: plan for file in files for name, plan in getattr(file, "RECORDED", {}).items()}


def recorded(name: str) -> Recorded:
    """Return the plan of what is recorded under a name."""
    every = all_recorded()
    return every[checks.choice("name", name, sorted(every))]()


def verify(name: str, folder: str | Path, *, count: int = 1, n_jobs: int = 1) -> tuple[str, pd.DataFrame]:
    """Compute so many calls behind each table of what is recorded; return what is not as it was, and `COLUMNS`."""
    own, known, found = recorded(name), results.provenance(name), []
    changed = differences(known)
    plan = {table: part for table, part in own.plan.items() if table not in own.unverified}
    chosen = {table: (columns, sample(columns, calls, count)) for table, (columns, calls) in plan.items()}
    computed = results.tables(chosen, folder, n_jobs=n_jobs, label=name)
    for table, (columns, _) in chosen.items():
        found.append(compare(read_recorded(name, table), own.keep(computed[table]), columns, elsewhere=bool(changed)))
    return f" ({'; '.join(changed)})" if changed else "", pd.concat(found, ignore_index=True)


def sample(columns: list[str], calls: Mapping[tuple[Any, ...], Call], count: int) -> dict[tuple[Any, ...], Call]:
    """Return some of a table's calls, those that need least first, of labels that differ in more than the seed."""
    once: dict[str, tuple[Any, ...]] = {}
    for label, call in calls.items():
        once.setdefault(call.key, label)  # a call that stands behind several labels is the first one's
    labels = pd.DataFrame(list(once.values()), columns=columns)
    labels["needs"] = [_depth(calls[label]) for label in once.values()]
    labels["turn"] = labels.groupby([name for name in columns if name != "seed"], dropna=False).cumcount()
    chosen = labels.sort_values(["turn", "needs"], kind="stable").index[:count]
    return {label: calls[label] for label in (list(once.values())[i] for i in chosen)}


def _depth(call: Call) -> int:
    return 1 + max(map(_depth, call.needs), default=0)


def differences(known: Mapping[str, Any]) -> list[str]:
    """Return what rounding depends on and is not as it was recorded: the processor and versions."""
    then = str(known.get("processor") or known.get("machine") or "not recorded").split()
    own, here = dict(known.get("versions", {})), results.versions()
    found = [] if get_host_cpu_name() in then else [f"the processor was {' '.join(then)} and is {get_host_cpu_name()}"]
    return found + [f"{name} was {own[name]} and is {now}" for name, now in here.items() if own.get(name, now) != now]


def compare(recorded: pd.DataFrame, here: pd.DataFrame, labels: list[str], *, elsewhere: bool) -> pd.DataFrame:
    """Return a row for each call that was computed `here`, with `COLUMNS`, against the whole table that is recorded.

    All numbers must agree to six digits. Where they do not and processor or versions are others, the first iterations
    of a first layer must agree to five, and all else may differ by what two seeds differ by.
    """
    names = [name for name in labels if name in recorded]
    cell, found = [name for name in names if name != "seed"], []
    numbers = [*here.select_dtypes("number").columns.intersection(recorded.columns).difference([*labels, "seconds"])]
    for label, own in here.groupby(names, sort=False, dropna=False):
        mine = (recorded[names].astype(str) == list(map(str, label))).all(axis=1)
        then, now = (table[numbers].reset_index(drop=True).astype(float) for table in (recorded[mine], own))
        then, now = then.align(now)
        difference = (now - then).abs() / then.abs().where(then != 0, 1)
        difference = difference.mask(then.isna() & now.isna(), 0).fillna(np.inf)  # a row that is missing
        worst, judged, drifts = difference, "digits", bool((difference > SAME).to_numpy().any())
        if drifts and elsewhere and np.isfinite(difference.to_numpy()).all():
            others, alike = recorded[~mine], (recorded[cell] == own[cell].iloc[0]).all(axis=1)[~mine]
            of_first = {"layer", "iteration"} <= {*own} and own["layer"].iloc[0] == 1
            first = (own["iteration"] <= 1).to_numpy() if of_first else np.zeros(len(own), dtype=bool)
            large = "n_var" in own and own["n_var"].iloc[0] >= LARGE
            worst = _scattered(others, alike, then, now, cell, numbers)
            worst[first] = difference[first] / (FIRST_OF_LARGE if large else FIRST)
            judged, drifts = "first iterations, other seeds", not bool((worst <= 1).to_numpy().all())
        row, column = divmod(int(worst.to_numpy().argmax()), worst.shape[1])
        relative = float(difference.to_numpy()[row, column])
        digits = int(np.clip(np.floor(-np.log10(relative)), 0, 16)) if relative > 0 else 16
        place = f"{worst.columns[column]}, row {row}"
        words = " ".join(map(str, label))
        found.append((words, place, then.iloc[row, column], now.iloc[row, column], digits, judged, drifts))
    return pd.DataFrame(found, columns=COLUMNS)


def _scattered(
    others: pd.DataFrame,
    alike: "pd.Series[bool]",
    then: pd.DataFrame,
    now: pd.DataFrame,
    cell: list[str],
    numbers: list[str],
) -> pd.DataFrame:
    """Return the differences of a call's numbers over what two seeds may differ by, which rows of other calls tell.

    `alike` says which of these differ in the seed alone. Numbers that are positive in all rows are compared by their
    logarithms. A difference of two draws from one normal distribution over sqrt(2) times the standard deviation of
    other draws has Student's t distribution. Of few seeds of its own that is hardly known: then what seeds scatter at
    most, among all methods, bounds it too. The error rate is divided among the numbers and both bounds (Bonferroni).
    """
    groups = [others[name] for name in cell]
    line = others.groupby([*cell, "seed"] if "seed" in others else cell, dropna=False).cumcount().rename("line")
    ratios, error = pd.DataFrame(index=then.index), ERROR_RATE / (4 * then.size)
    for column in numbers:
        values, a, b = others[column].astype(float), then[column], now[column]
        if min(values.min(), a.min(), b.min()) > 0:
            values, a, b = (own.map(np.log) for own in (values, a, b))
        scatter = values.groupby([*groups, line], dropna=False).agg(["std", "count"])
        lines = scatter.groupby(level="line")
        own = values[alike].groupby(line[alike]).agg(["std", "count"])
        allowed = (
            own["std"] * stats.t.ppf(1 - error, own["count"] - 1),
            lines["std"].max() * stats.t.ppf(1 - error, lines["count"].sum() - lines.size()),
        )
        least = np.sqrt(2) * pd.concat(allowed, axis=1).min(axis=1).reindex(then.index)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[column] = ((b - a).abs() / least).mask((a == b) | (a.isna() & b.isna()), 0)
    return ratios.fillna(np.inf)
