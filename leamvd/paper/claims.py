"""The paper's claims C1-C15, and the answer to each by rules that were written before the runs.

A claim has parts, and each part two views: *as printed*, on each method's own inputs by the mean-field error, and
*conclusion*, whether it supports what the paper concludes, on shared inputs by the ratio to the constant image's error
(items E2, E7). A part is one test; it is met where its p, corrected by Holm over all tests of all claims, is below the
level. A claim is reproduced in a view where all of its parts are met, partly where some are, not reproduced where none
is, and not testable where a part has too few runs.
"""

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd

from leamvd.paper import pretraining, records, rules
from leamvd.paper.comparison import holm, number, six_digits
from leamvd.paper.rules import REGISTERED, VIEWS, Margins, Part
from leamvd.paper.significance import Test

RECORDED = {
    "linear_cost": "optimizers",
    "mnist_7x7": "runs",
    "mnist_28x28": "runs",
    "readings": "runs",
    "classification": "runs",
}
"""What settles claims: names of recorded runs, see `leamvd.paper.records.recorded`, and the table of each."""

LOOKED_AT = (0, 1)
"""Seeds that had been looked at before the rules were written; every answer is also given without them."""

Answer = Literal["reproduced", "partly", "not reproduced", "not testable", "not yet run", "not measured"]

TESTS = 47
"""Different tests of all claims together, whether or not they have been run: Holm's family."""

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

COLUMNS = ["claim", "study", "view", "part", *Test._fields]
"""Of evidence, with `met`; "both" views where they are the same."""

_SAME = ["study", "view", "part", "test"]  # of one test that is a part of two claims


class Claim(NamedTuple):
    """A claim of the paper, and what decides it."""

    claim: str  # "C3"
    words: str  # the paper's
    place: str  # where the paper says it
    studies: tuple[str, ...] = ()  # of `RECORDED`; none where nothing measures it
    measure: str = ""
    rule: str = ""  # what each part is to be
    margins: tuple[str, ...] = ()  # fields of `Margins`
    parts: Callable[..., Iterable[Part]] | None = None  # of a table for each study, and the margins by name


A, D = ("mnist_7x7",), ("mnist_28x28",)

CLAIMS = (
    Claim(
        "C1",
        "requires O(n) operations and memory",
        "abstract",
        ("linear_cost",),
        "slopes of time and memory over the last decade of n",
        "within",
        ("linear",),
        rules.c1,
    ),
    Claim(
        "C2",
        "the enormous disadvantage of requiring O(n^2) memory and operations",
        "abstract",
        ("linear_cost",),
        "slope of memory over the last decade of n",
        "within",
        ("quadratic",),
        rules.c2,
    ),
    Claim(
        "C3",
        "this seed solution could not be improved for the first RBM",
        "first experiment",
        A,
        "change of the error since the start solution",
        "within",
        ("unchanged",),
        rules.c3,
    ),
    Claim(
        "C4",
        "the CMA-ES and LEA-MVD achieved significantly smaller reconstruction errors than the widely-used CD",
        "first experiment",
        A,
        "final error",
        "below",
        (),
        rules.c4,
    ),
    Claim(
        "C5", "with LEA-MVD being the best of the three", "first experiment", A, "final error", "below", (), rules.c5
    ),
    Claim(
        "C6",
        "neither of the algorithms managed to find a significantly better solution for the first RBM",
        "second experiment",
        D,
        "change of the error since the first iteration",
        "within",
        ("little",),
        rules.c6,
    ),
    Claim(
        "C7",
        "about 50,000; approximately 5,000",
        "second experiment",
        D,
        "final error",
        "near; below",
        ("factor",),
        rules.c7,
    ),
    Claim(
        "C8",
        "only small improvements; approximately 900",
        "second experiment",
        D,
        "final error, and its change since the first iteration",
        "near; within; below",
        ("factor", "little"),
        rules.c8,
    ),
    Claim(
        "C9",
        "generally larger than that in the first experiment; due to the larger size of the images",
        "second experiment",
        (*A, *D),
        "final error per image, and per visible unit",
        "larger; alike",
        ("factor",),
        rules.c9,
    ),
    Claim(
        "C10",
        "converges within 50 iterations",
        "experimental setup",
        A,
        "fitted change of the error's logarithm over the last ten epochs",
        "within",
        ("unchanged",),
        rules.c10,
    ),
    Claim(
        "C11",
        "not desirable nor necessary to perform two translations in the same direction",
        "second and third components",
        ("readings",),
        "final error",
        "below",
        (),
        rules.c11,
    ),
    Claim(
        "C12",
        "adequately modulates the selection pressure; suggested for any problem; avoid the problem of hyper-parameter "
        "tuning",
        "first component; input parameters; conclusions",
        ("readings",),
        "final error",
        "not behind",
        ("behind",),
        rules.c12,
    ),
    Claim("C13", "can escape from local minima", "introduction"),
    Claim("C14", "a complete decoupling from the DNN architecture", "introduction"),
    Claim(
        "C15",
        "significantly superior than CD for the task of pre-training of a DBN",
        "second experiment",
        ("classification",),
        "final test error",
        "below",
        (),
        rules.c15,
    ),
)


# ---- answers


def recorded() -> dict[str, pd.DataFrame]:
    """Return what is recorded of `RECORDED`, by its name; of "classification" the runs of both sizes of images."""
    tables = {name: records.recorded(name, table) for name, table in RECORDED.items() if records.is_recorded(name)}
    measured = pretraining.recorded()
    return tables if measured is None else tables | {"classification": measured.runs}


def evidence(
    tables: Mapping[str, pd.DataFrame], *, without: Sequence[int] = (), margins: Margins = REGISTERED
) -> pd.DataFrame:
    """Return every test of the claims whose studies are there, with what it decides.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Of `RECORDED`, what there is, by its name.
    without : sequence of int
        Seeds that are left out.
    margins : Margins
        Level and margins.

    Returns
    -------
    DataFrame
        `COLUMNS`; `p` corrected by Holm over all `TESTS`, those that have not been run counted as not met; and whether
        the part is `met`, missing where its runs are too few to tell.
    """
    kept = {name: table[~table["seed"].isin(without)] if "seed" in table else table for name, table in tables.items()}
    found = [
        (claim.claim, ", ".join(claim.studies), view, part, *test)
        for claim in CLAIMS
        if claim.parts and set(claim.studies) <= set(kept)
        for view, part, test in claim.parts(
            *(kept[name] for name in claim.studies), **{name: getattr(margins, name) for name in claim.margins}
        )
    ]
    rows = pd.DataFrame(found, columns=COLUMNS)
    slope = rows["unit"] == "slope"
    different = rows[~slope].drop_duplicates(_SAME).set_index(_SAME)["p"]
    family = np.ones(TESTS)
    family[: len(different)] = different
    corrected = pd.Series(holm(family)[: len(different)], different.index, name="p")
    rows["p"] = rows[_SAME].join(corrected, on=_SAME)["p"]
    met = rows["effect"].between(rows["lower"], rows["upper"]).where(slope, rows["p"] < margins.level)
    untold = rows["effect"].isna().where(slope, 0.5 ** rows["runs"] * TESTS >= margins.level)
    return rows.assign(met=met.astype("boolean").mask(untold))


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the answer to every claim in each view, from `evidence`: a row for each claim, a column for each view."""
    found = {}
    for claim in CLAIMS:
        own = rows[rows["claim"] == claim.claim]
        found[claim.claim] = [_answer(claim, own[own["view"].isin([view, "both"])]) for view in VIEWS]
    return pd.DataFrame.from_dict(found, orient="index", columns=list(VIEWS)).rename_axis("claim")


def table(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `evidence` as pages show them: by claim, view and part, and `met` in words."""
    met = rows["met"].map({True: "yes", False: "no"}).mask(still_open(rows), "open").fillna("too few runs")
    return rows.assign(met=met).drop(columns="study").set_index(["claim", "view", "part"])


def close(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the parts, from `evidence`, whose interval contains one of the bounds that the effect is to meet."""
    return rows[_contains_bound(rows)]


def still_open(rows: pd.DataFrame) -> pd.Series:
    """Return which parts, from `evidence`, are not met but close: more runs might show that they are."""
    return _contains_bound(rows) & ~rows["met"].fillna(True).astype(bool)


def _contains_bound(rows: pd.DataFrame) -> pd.Series:
    lower, upper = (rows["low"].le(rows[bound]) & rows["high"].ge(rows[bound]) for bound in ("lower", "upper"))
    return lower | upper


def beside_cd(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the tests, from `evidence`, of LEA-MVD against contrastive divergence that were run; each once."""
    compared = rows["part"].str.endswith(", lea-mvd / cd") & (rows["runs"] > 0)
    return rows[compared].drop_duplicates(_SAME)


def quoted(rows: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose and cards may quote of `evidence`.

    Returns
    -------
    dict of str to float or str
        For every claim and view "c4-as-printed", the answer, "c4-as-printed-met", how many of its parts are met and
        how many are `still_open`, and "c4-as-printed-furthest", the part whose effect is furthest from where the claim
        has it: the effect, its 95 % interval and the part; dashes where nothing has been run. Of `beside_cd`,
        "as-printed-mnist_7x7-rbm-2" and so on, and the ends of the interval, "as-printed-mnist_7x7-rbm-2-low" and
        "-high".
    """
    found: dict[str, float | str] = {}
    answered = answers(rows)
    for claim in CLAIMS:
        for view in VIEWS:
            own = rows[(rows["claim"] == claim.claim) & rows["view"].isin([view, "both"])]
            name, run = _key(claim.claim, view), len(own) and own["runs"].all()
            found[name] = str(answered.loc[claim.claim, view])
            found[f"{name}-met"] = _counted(own) if run else "–"
            found[f"{name}-furthest"] = _shown(own.iloc[int(_missed(own).fillna(np.inf).argmax())]) if run else "–"
    for row in beside_cd(rows).to_dict("records"):
        name = _key(row["view"], row["study"], row["part"].removesuffix(", lea-mvd / cd"))
        found |= {name: six_digits(row["effect"])}
        found |= {f"{name}-{end}": six_digits(row[end]) for end in ("low", "high")}
    return found


def _counted(rows: pd.DataFrame) -> str:
    met, more = f"{rows['met'].sum()} of {len(rows)}", still_open(rows).sum()
    return f"{met}, {more} open" if more else met


def _key(*names: str) -> str:
    return "-".join(names).lower().replace(" ", "-")


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
    """Return the answers that would be others by one of `OTHERS` in the place of a margin.

    Returns
    -------
    DataFrame
        A row for each: claim, view, the answer, the margin and its value, the other answer.
    """
    changed = {f"{name}={value}": {name: value} for name, values in OTHERS.items() for value in values}
    others = {
        name: evidence(tables, margins=dataclasses.replace(margins, **new))  # type: ignore[arg-type]
        for name, new in changed.items()
    }
    return _compared(evidence(tables, margins=margins), others, "margin")


def other_measurements(tables: Mapping[str, pd.DataFrame], margins: Margins = REGISTERED) -> pd.DataFrame:
    """Return the answers that would be others by another reading of LEA-MVD in study A, or by one of `ERRORS`.

    They were not registered, and are no answers: they show what an answer depends on.

    Returns
    -------
    DataFrame
        A row for each: claim, view, the answer, what takes its place, the other answer.
    """
    runs = tables["mnist_7x7"]
    kept, readings = runs[runs["method"] != "lea-mvd"], runs["method"].str.startswith("lea-mvd:")
    changed = {
        f"{method} in study A": {**tables, "mnist_7x7": kept.replace({"method": {method: "lea-mvd"}})}
        for method in runs.loc[readings, "method"].unique()
    }
    for measure, name in ERRORS.items():
        changed[name] = {key: _scored_by(measure, table) for key, table in tables.items()}
    others = {name: evidence(new, margins=margins) for name, new in changed.items()}
    return _compared(evidence(tables, margins=margins), others, "instead")


def _scored_by(measure: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return records of pre-training with another error in the place of the mean-field error; others as they are."""
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
    if not claim.studies:
        return "not measured"
    if rows.empty or not rows["runs"].all():
        return "not yet run"
    met = rows["met"]
    if met.isna().any():
        return "not testable"
    return "reproduced" if met.all() else "partly" if met.any() else "not reproduced"
