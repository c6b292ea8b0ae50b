"""Comparing what is recorded of jobs with what they compute here."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support import checks
from leamvd.campaign.jobs import Job, Table

SAME = 1e-6
"""Relative difference up to which numbers are the same: six digits."""

ERROR_RATE = 1e-3
"""Of a job that is judged by the scatter of other seeds, over all of its numbers."""

COLUMNS = ["job", "number", "recorded", "here", "digits", "judged by", "drifts"]
"""Of a verification: of each job the number that differs most, how many digits of it agree, and the judgment."""


def sample(table: Table, count: int, seed: int | None) -> Table:
    """Return some of a table's jobs: of each group of labels that differ in the seed alone one, then another one.

    Without a `seed` those that need few others come first, with one they come in an order that it draws. A job that
    stands behind several labels is the first one's.
    """
    checks.integer("jobs", count, at_least=1)
    rng = np.random.default_rng(0 if seed is None else checks.integer("seed", seed, at_least=0))
    once: dict[Job, tuple[Any, ...]] = {}
    for label, job in table.jobs.items():
        once.setdefault(job, label)
    jobs = sorted(once, key=lambda job: len(job.needs))
    if seed is not None:
        jobs = [jobs[i] for i in rng.permutation(len(jobs))]
    labels = pd.DataFrame([once[job] for job in jobs], columns=list(table.labels))
    group = [name for name in table.labels if name != "seed"]
    turns = labels.iloc[rng.permutation(len(jobs))].groupby(group).cumcount()
    places = pd.DataFrame({"turn": turns, "group": labels.groupby(group, sort=False).ngroup()})
    chosen = [jobs[i] for i in places.sort_values(["turn", "group"]).index[:count]]
    return dataclasses.replace(table, jobs={once[job]: job for job in chosen})


def compare(
    recorded: pd.DataFrame, here: pd.DataFrame, *, labels: Sequence[str], line: str, ignored: list[str], elsewhere: bool
) -> pd.DataFrame:
    """Return a row for each job that was computed `here`, with `COLUMNS`, against the whole table that is recorded.

    All numbers of a job are compared first. Where they do not agree to six digits and `elsewhere`, because processor,
    versions or what computes the objective are not the recorded ones and rounding may send a search another way there,
    its numbers may differ from the recorded ones by what two seeds differ by, which the other rows tell. Of a job whose
    result is as it should be, one in a thousand is then found to drift, if seeds scatter normally, and nowhere more
    than where they scatter most among the other rows.

    The columns `labels` name a job, the seed among them, and `line` a row of its table; others are `ignored`.
    """
    names = list(labels)
    cell = [name for name in names if name != "seed"]
    left_out = [name for name in ignored if name not in names]
    recorded, here = (table.drop(columns=left_out, errors="ignore") for table in (recorded, here))
    found = []
    for key, own in here.groupby(names, sort=False):
        mine = (recorded[names] == list(key)).all(axis=1)
        then, now = (table.set_index(line).drop(columns=names, errors="ignore") for table in (recorded[mine], own))
        then, now = then.align(now)
        difference = (now - then).abs() / then.abs().where(then != 0, 1)
        difference = difference.mask(then.isna() & now.isna(), 0).fillna(np.inf)  # a row or a column that is missing
        worst, judged, drifts = difference, "digits", bool((difference > SAME).to_numpy().any())
        if drifts and elsewhere and np.isfinite(difference.to_numpy()).all():
            alike = (recorded[cell] == own[cell].iloc[0]).all(axis=1)
            worst, judged = _scattered(recorded[~mine], alike[~mine], then, now, cell), "other seeds"
            drifts = not bool((worst <= 1).to_numpy().all())
        row, column = divmod(int(worst.to_numpy().argmax()), worst.shape[1])
        place = f"{worst.columns[column]}, {line} {worst.index[row]}"
        relative = float(difference.to_numpy()[row, column])
        digits = int(np.clip(np.floor(-np.log10(relative)), 0, 16)) if relative > 0 else 16
        words = " ".join(map(str, key))
        found.append((words, place, then.iloc[row, column], now.iloc[row, column], digits, judged, drifts))
    return pd.DataFrame(found, columns=COLUMNS)


def _scattered(
    others: pd.DataFrame, alike: "pd.Series[bool]", then: pd.DataFrame, now: pd.DataFrame, cell: list[str]
) -> pd.DataFrame:
    """Return the differences of a job's numbers over what two seeds may differ by.

    They are told by the rows of other jobs, which the columns `cell` and the seed name; `alike` says which rows differ
    in the seed alone.

    Numbers that are positive in all rows are compared by their logarithms. A difference of two draws from one normal
    distribution over sqrt(2) times the standard deviation of other draws has Student's t distribution. Of few seeds of
    its own method that is hardly known: then what seeds scatter at most, among all methods, bounds it too. The error
    rate is divided among the numbers and both bounds (Bonferroni).
    """
    line, ratios = str(then.index.name), pd.DataFrame(index=then.index)
    error = ERROR_RATE / (4 * then.size)
    for column in then.columns:
        values, a, b = others[column].astype(float), then[column].astype(float), now[column].astype(float)
        if min(values.min(), a.min(), b.min()) > 0:
            values, a, b = (numbers.map(np.log) for numbers in (values, a, b))
        scatter = values.groupby([others[name] for name in dict.fromkeys((*cell, line))]).agg(["std", "count"])
        lines = scatter.groupby(level=line)
        own = values[alike].groupby(others.loc[alike, line]).agg(["std", "count"])
        allowed = (
            own["std"] * stats.t.ppf(1 - error, own["count"] - 1),
            lines["std"].max() * stats.t.ppf(1 - error, lines["count"].sum() - lines.size()),
        )
        least = np.sqrt(2) * pd.concat(allowed, axis=1).min(axis=1).reindex(then.index)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[column] = ((b - a).abs() / least).mask((a == b) | (a.isna() & b.isna()), 0)
    return ratios.fillna(np.inf)
