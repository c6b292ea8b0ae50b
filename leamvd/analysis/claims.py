"""The answers to the paper's claims C1-C15, by rules that were written before the runs.

A claim has parts, and each part two views: *as printed*, on each method's own inputs by the mean-field error, and
*conclusion*, whether it supports what the paper concludes, on shared inputs by the ratio to the constant image's error
(items E2, E7). A part is one test; it is met where its p, corrected by Holm over all tests of all claims, is below the
level. A claim is reproduced in a view where all of its parts are met, partly where some are, not reproduced where none
is, and not testable where a part has too few runs.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from leamvd.analysis import rules
from leamvd.analysis.comparison import quote
from leamvd.analysis.rules import CLAIMS, REGISTERED, VIEWS, Claim, Margins
from leamvd.analysis.statistics import Effect, holm, number
from leamvd.campaign import archive
from leamvd.studies import catalog, records
from leamvd.studies.study import Classification, Study

RECORDED = {"linear_cost": "optimizers"}
RECORDED |= dict.fromkeys(("mnist_7x7", "mnist_28x28", "readings", "classification"), "runs")
"""Names of recorded runs that settle claims, and the table of each."""

LOOKED_AT = (0, 1)
"""Seeds that had been looked at before the rules were written; every answer is also given without them."""

Answer = Literal["reproduced", "partly", "not reproduced", "undecided", "not testable", "not yet run", "not measured"]

OTHERS = {
    "level": (0.025, 0.1),
    "unchanged": (0.5, 2.0),
    "little": (5.0, 20.0),
    "factor": (1.41, 4.0),
    "behind": (5.0, 20.0),
    "linear": ((0.975, 1.025), (0.9, 1.1)),
    "quadratic": ((1.9, 2.1), (1.6, 2.4)),
}
"""Half and twice of each of the registered margins; of the factor, its root and its square."""

ERRORS = {"sampled": "the sampled error", "test_mean_field": "the error on test images"}
"""Other errors that answers are compared by; the registered one is the mean-field error on training images."""

ALL_IMAGES = "sums over all images"
"""Another count of errors, see `summed`."""


def family(of: Sequence[Claim]) -> int:
    """Return how many different tests claims have, whether or not they have been run."""
    return len({part for claim in of for part in claim.parts if part.rule != rules.grows})


TESTS = family(CLAIMS)
"""Holm's family."""

COLUMNS = ["claim", "study", "view", "part", *Effect._fields]
"""Of evidence, with `level`, `met` and `undecided`; "both" views where they are the same."""

SHOWN = ["part", *Effect._fields[: Effect._fields.index("p") + 1], "met"]
"""Of evidence, what pages show by claim and view."""

_SAME = ["study", "view", "part", "test"]  # of one test that is a part of two claims


Tested = dict[tuple[Any, ...], list[tuple[str, Effect]]]
"""Tests of tables, by part and margin."""

# ---- answers


def recorded() -> dict[str, pd.DataFrame]:
    """Return what is recorded of `RECORDED`, by its name; of "classification" the runs of both sizes of images."""
    names = {name: [name] for name in RECORDED} | {"classification": [*catalog.ARCHIVED["classification"].values()]}
    found = {
        name: [archive.read(one, RECORDED[name]) for one in own if archive.exists(one)] for name, own in names.items()
    }
    return {name: pd.concat(tables, ignore_index=True) for name, tables in found.items() if tables}


def judged(profile: str, output: str | Path) -> dict[str, pd.DataFrame]:
    """Return the tables by which the claims are judged: what is `recorded`, or the same studies run with "paper".

    Costs, and with them C1 and C2, are judged by what is recorded alone; no other profile judges anything.
    """
    if profile == "recorded":
        return recorded()
    if profile != "paper":
        return {}
    sections = ("mnist-7x7", "mnist-28x28", "readings")
    tables = {name.replace("-", "_"): records.run(catalog.study(name, "paper"), output) for name in sections}
    own = [catalog.study("classification", one) for one in catalog.ARCHIVED["classification"] if one != "controls"]
    measured = [records.measure(study, output).runs for study in own if isinstance(study, Classification)]
    return tables | {"classification": pd.concat(measured, ignore_index=True)}


def settling(study: Study, table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the tables by which a page may judge claims, given its study and this study's rows.

    All that is recorded where the study is; the rows where it is a registered one with any seeds; else nothing.
    """
    if study.archived:
        return recorded()
    registered = dataclasses.replace(catalog.recorded(study.section)["paper"], archived="", seeds=study.seeds)
    return {catalog.ARCHIVED[study.section]["paper"]: table} if study == registered else {}


def evidence(
    tables: Mapping[str, pd.DataFrame],
    *,
    of: Sequence[Claim] = CLAIMS,
    without: Sequence[int] = (),
    margins: Margins = REGISTERED,
    tested: Tested | None = None,
) -> pd.DataFrame:
    """Return every test of the claims whose studies are among the tables, without some seeds.

    What has been `tested` of the same tables and seeds is not tested again; what is new is added to it.

    `p` is corrected by Holm over the whole `family`, tests that have not been run counted as not met, and `level` is
    what its raw p is compared with; whether the part is `met` is missing where its runs are too few to tell. No part is
    `undecided` by the registered rules.
    """
    kept = {name: table[~table["seed"].isin(without)] if "seed" in table else table for name, table in tables.items()}
    indexed = functools.cache(lambda name: rules.by_cell(kept[name]))
    tested = {} if tested is None else tested
    found = []
    for claim in of:
        for part in (part for part in claim.parts if set(part.studies) <= set(kept)):
            key = part, *part.within(margins)
            if key not in tested:
                tested[key] = list(part.tests(map(indexed, part.studies), margins))
            study = ", ".join(part.studies)
            found += [(claim.claim, study, part.view, name, *effect) for name, effect in tested[key]]
    rows = pd.DataFrame(found, columns=COLUMNS)
    slope = rows["unit"] == "slope"
    different = rows[~slope].drop_duplicates(_SAME).set_index(_SAME)["p"]
    p = np.ones(family(of))
    p[: len(different)] = different
    corrected = pd.DataFrame({"p": holm(p)[: len(different)]}, different.index)
    corrected["level"] = margins.level / (len(p) - different.rank(method="first") + 1)
    rows[["p", "level"]] = rows[_SAME].join(corrected, on=_SAME)[["p", "level"]]
    met = rows["effect"].between(rows["lower"], rows["upper"]).where(slope, rows["p"] < margins.level)
    untold = rows["effect"].isna().where(slope, 0.5 ** rows["runs"] * len(p) >= margins.level)
    return rows.assign(met=met.astype("boolean").mask(untold), undecided=False)


def answers(rows: pd.DataFrame, of: Sequence[Claim] = CLAIMS) -> pd.DataFrame:
    """Return the answer to every claim in each view, from `evidence`: a row for each claim, a column for each view."""
    found = {claim.claim: [_answer(claim, _of(rows, claim.claim, view)) for view in VIEWS] for claim in of}
    return pd.DataFrame.from_dict(found, orient="index", columns=list(VIEWS)).rename_axis("claim")


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `evidence` as pages show them: by claim, view and part, and `met` in words."""
    met = rows["met"].map({True: "yes", False: "no"}).fillna("too few runs")
    return rows.assign(met=met).set_index(["claim", "view"])[SHOWN].set_index("part", append=True)


def close(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the parts, from `evidence`, whose interval contains one of the bounds that the effect is to meet."""
    return rows[contains_bound(rows)]


def unmet(rows: pd.DataFrame) -> pd.Series:
    """Return which parts, from `evidence`, are not met, although their runs are enough to tell."""
    return ~rows["met"].fillna(True).astype(bool)


def contains_bound(rows: pd.DataFrame) -> pd.Series:
    """Return which parts, from `evidence`, have an interval that contains a bound."""
    lower, upper = (rows["low"].le(rows[bound]) & rows["high"].ge(rows[bound]) for bound in ("lower", "upper"))
    return lower | upper


def against_cd(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the tests, from `evidence`, of LEA-MVD against contrastive divergence that were run; each once."""
    chosen = rows["part"].str.endswith(", lea-mvd / cd") & (rows["runs"] > 0)
    return rows[chosen].drop_duplicates(_SAME)


def cards(rows: pd.DataFrame, of: Sequence[Claim] = CLAIMS) -> pd.DataFrame:
    """Return the answer to every claim in each view, from `evidence`, in short: a row for each claim and view.

    "met" is how many of its parts are met, and "furthest" the part whose effect is furthest from where the claim has
    it; dashes where nothing has been run.
    """
    found = {}
    for (claim, view), answer in answers(rows, of).stack().items():  # type: ignore[misc]
        own = _of(rows, claim, view)
        run = len(own) and own["runs"].all()
        furthest = _shown(own.iloc[int(_missed(own).fillna(np.inf).argmax())]) if run else "–"
        found[claim, view] = (answer, f"{own['met'].sum()} of {len(own)}" if run else "–", furthest)
    return pd.DataFrame.from_dict(found, orient="index", columns=["answer", "met", "furthest"])


def quoted(rows: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose may quote of `evidence`.

    For every claim and view "c4-as-printed" is the answer, "-met" and "-furthest" are those of `cards`. Of
    `against_cd`, "as-printed-mnist_7x7-rbm-2" and the ends of its interval, "-low" and "-high".
    """
    ratios = against_cd(rows)
    ratios = ratios.assign(part=ratios["part"].str.removesuffix(", lea-mvd / cd"))
    ratios = ratios.set_index(["view", "study", "part"])[["effect", "low", "high"]].rename(columns={"effect": ""})
    return quote("", cards(rows).rename(columns={"answer": ""})) | quote("", ratios)


def _of(rows: pd.DataFrame, claim: str, view: str) -> pd.DataFrame:
    return rows[(rows["claim"] == claim) & rows["view"].isin([view, "both"])]


def _missed(rows: pd.DataFrame) -> pd.Series:
    """Return by which factor effects lie beyond their bounds, or by which part of 1 where they are no ratios."""
    effect, lower, upper, ratio = rows["effect"], rows["lower"], rows["upper"], rows["unit"] == "ratio"
    above = (effect / upper).where(ratio, 1 + (effect - upper) / 100)
    under = (lower / effect).where(ratio, 1 + (lower - effect) / 100)
    return above.where(above > under, under)


def _shown(row: pd.Series) -> str:
    unit = " %" if row["unit"] == "%" else ""
    ends = f" ({number(row['low'])} to {number(row['high'])})" if np.isfinite(row["low"]) else ""
    return f"{number(row['effect'])}{unit}{ends}, {row['part']}"


def other_margins(tables: Mapping[str, pd.DataFrame], margins: Margins = REGISTERED) -> pd.DataFrame:
    """Return the answers that would be others by one of `OTHERS` in the place of a margin."""
    changed = {f"{name}={value}": {name: value} for name, values in OTHERS.items() for value in values}
    tested: Tested = {}
    others = {
        name: evidence(tables, margins=dataclasses.replace(margins, **new), tested=tested)  # type: ignore[arg-type]
        for name, new in changed.items()
    }
    return _compared(evidence(tables, margins=margins, tested=tested), others, "margin")


def other_measurements(tables: Mapping[str, pd.DataFrame], margins: Margins = REGISTERED) -> pd.DataFrame:
    """Return the answers that would be others by another reading of LEA-MVD in study A, or by one of `ERRORS`.

    They were not registered, and are no answers: they show what an answer depends on.
    """
    runs = tables.get("mnist_7x7", pd.DataFrame(columns=["method"], dtype=str))
    kept, readings = runs[runs["method"] != "lea-mvd"], runs["method"].str.startswith("lea-mvd:")
    changed = {
        f"{method} in study A": {**tables, "mnist_7x7": kept.replace({"method": {method: "lea-mvd"}})}
        for method in runs.loc[readings, "method"].unique()
    }
    for measure, name in ERRORS.items():
        changed[name] = {key: _scored_by(measure, table) for key, table in tables.items()}
    changed[ALL_IMAGES] = summed(tables)
    others = {name: evidence(new, margins=margins) for name, new in changed.items()}
    return _compared(evidence(tables, margins=margins), others, "instead")


def summed(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables with sums over all images in the place of errors of 10,000 (item E11)."""
    return {name: table.assign(n_images=10_000) if "n_images" in table else table for name, table in tables.items()}


def _scored_by(measure: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return rows of pre-training with another error in the place of the mean-field error."""
    if measure not in table:
        return table
    images = "n_test_images" if measure.startswith("test_") else "n_images"
    return table.assign(mean_field=table[measure], mean_field_ratio=table[f"{measure}_ratio"], n_images=table[images])


def _compared(rows: pd.DataFrame, others: Mapping[str, pd.DataFrame], what: str) -> pd.DataFrame:
    usual, found = answers(rows).stack(), {name: answers(other).stack() for name, other in others.items()}
    changes = [
        (*at, usual[at], name, other[at])
        for name, other in found.items()
        for at in usual.index
        if usual[at] != other[at]
    ]
    return pd.DataFrame(changes, columns=["claim", "view", "answer", what, "other answer"])


def _answer(claim: Claim, rows: pd.DataFrame) -> Answer:
    if not claim.parts:
        return "not measured"
    if rows.empty or not rows["runs"].all():
        return "not yet run"
    met = rows["met"]
    if met.isna().any():
        return "not testable"
    least, most = _if(met), _if(met | rows["undecided"])
    return least if least == most else "undecided"


def _if(met: pd.Series) -> Answer:
    return "reproduced" if met.all() else "partly" if met.any() else "not reproduced"
