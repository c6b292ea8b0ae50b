"""Comparing what is recorded of jobs with what they compute here."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support import checks
from leamvd.campaign.jobs import Job

SAME = 1e-6
"""Relative difference up to which numbers are the same: six digits."""

ERROR_RATE = 1e-3
"""Of a job that is judged by the scatter of other seeds, over all of its numbers."""

COLUMNS = ["job", "number", "recorded", "here", "digits", "judged by", "drifts"]
"""Of a verification: of each job the number that differs most, how many digits of it agree, and the judgment."""


def sample(labeled: Mapping[Any, Job], count: int, seed: int) -> dict[Any, Job]:
    """Return some jobs by their labels, in each group of labels that differ in the seed alone one, then another one.

    Parameters
    ----------
    labeled : mapping of named tuple to Job
        All of them, those that cost least first.
    count : int
        How many.
    seed : int
        Of the choice.
    """
    checks.integer("jobs", count, at_least=1)
    rng = np.random.default_rng(checks.integer("seed", seed, at_least=0))
    labels = list(labeled)
    groups = {group: position for position, group in enumerate(dict.fromkeys(map(_group, labels)))}
    turns, order = dict.fromkeys(groups, 0), {}
    for i in rng.permutation(len(labels)):
        group = _group(labels[i])
        order[labels[i]] = (turns[group], groups[group])
        turns[group] += 1
    return {label: labeled[label] for label in sorted(order, key=order.__getitem__)[:count]}


def _group(label: Any) -> tuple[Any, ...]:
    return tuple(label._replace(seed=None))


def compare(
    recorded: pd.DataFrame,
    here: pd.DataFrame,
    *,
    labels: list[str],
    index: list[str],
    ignored: list[str],
    elsewhere: bool,
) -> pd.DataFrame:
    """Compare tables of jobs, one of which is recorded.

    All numbers of a job are compared first. Where they do not agree to six digits and `elsewhere`, because rounding may
    send a search another way there, its numbers may differ from the recorded ones by what two seeds differ by, which
    the other rows tell. Of a job whose result is as it should be, one in a thousand is then found to drift, if seeds
    scatter normally, and nowhere more than where they scatter most among the other rows.

    Parameters
    ----------
    recorded, here : DataFrame
        Whole, and of those jobs that were computed here.
    labels : list of str
        Columns that name a job, the seed among them.
    index : list of str
        Columns that name a line of a job's table.
    ignored : list of str
        Columns that are not compared.
    elsewhere : bool
        Whether processor, versions or what computes the objective are not those of the recorded table.

    Returns
    -------
    DataFrame
        A row for each job: `COLUMNS`.
    """
    cell = [name for name in labels if name != "seed"]
    recorded, here = (table.drop(columns=ignored, errors="ignore") for table in (recorded, here))
    found = []
    for key, own in here.groupby(labels, sort=False):
        mine = (recorded[labels] == list(key)).all(axis=1)
        then, now = (table.set_index(index).drop(columns=labels, errors="ignore") for table in (recorded[mine], own))
        then, now = then.align(now)
        difference = (now - then).abs() / then.abs().where(then != 0, 1)
        difference = difference.mask(then.isna() & now.isna(), 0).fillna(np.inf)  # a row or a column that is missing
        worst, judged, drifts = difference, "digits", bool((difference > SAME).to_numpy().any())
        if drifts and elsewhere and np.isfinite(difference.to_numpy()).all():
            alike = (recorded[cell] == [dict(zip(labels, key, strict=True))[name] for name in cell]).all(axis=1)
            worst, judged = _scattered(recorded[~mine], alike[~mine], then, now, [cell, index]), "other seeds"
            drifts = not bool((worst <= 1).to_numpy().all())
        row, column = divmod(int(worst.to_numpy().argmax()), worst.shape[1])
        where, number = worst.index[row], str(worst.columns[column])
        place = f"{number}, {' '.join(map(str, index))} {where}"
        relative = float(difference.to_numpy()[row, column])
        digits = int(np.clip(np.floor(-np.log10(relative)), 0, 16)) if relative > 0 else 16
        words = " ".join(map(str, key))
        found.append((words, place, then.iloc[row, column], now.iloc[row, column], digits, judged, drifts))
    return pd.DataFrame(found, columns=COLUMNS)


def _scattered(
    others: pd.DataFrame, alike: "pd.Series[bool]", then: pd.DataFrame, now: pd.DataFrame, names: list[list[str]]
) -> pd.DataFrame:
    """Return the differences of a job's numbers over what two seeds may differ by.

    They are told by the rows of other jobs; `alike` says which of them differ in the seed alone, and `names` by what
    columns these jobs, and the lines of a job, are known.

    Numbers that are positive in all rows are compared by their logarithms. A difference of two draws from one normal
    distribution over sqrt(2) times the standard deviation of other draws has Student's t distribution. Of few seeds of
    its own method that is hardly known: then what seeds scatter at most, among all methods, bounds it too. The error
    rate is divided among the numbers and both bounds (Bonferroni).
    """
    (cell, index), ratios = names, pd.DataFrame(index=then.index)
    error = ERROR_RATE / (4 * then.size)
    for column in then.columns:
        values, a, b = others[column].astype(float), then[column].astype(float), now[column].astype(float)
        if min(values.min(), a.min(), b.min()) > 0:
            values, a, b = (numbers.map(np.log) for numbers in (values, a, b))
        scatter = values.groupby([others[name] for name in dict.fromkeys((*cell, *index))]).agg(["std", "count"])
        lines = scatter.groupby(level=index)
        own = values[alike].groupby([others.loc[alike, name] for name in index]).agg(["std", "count"])
        allowed = (
            own["std"] * stats.t.ppf(1 - error, own["count"] - 1),
            lines["std"].max() * stats.t.ppf(1 - error, lines["count"].sum() - lines.size()),
        )
        least = np.sqrt(2) * pd.concat(allowed, axis=1).min(axis=1).reindex(then.index)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios[column] = ((b - a).abs() / least).mask((a == b) | (a.isna() & b.isna()), 0)
    return ratios.fillna(np.inf)
