"""The answers by the rules that were written after the runs, beside those by the registered rules.

The book's page of these rules gives the reason for each. They change which parts a claim has, which interval an effect
is shown with, and which answers are called undecided; tests and margins stay, and Holm's correction is over the parts
that claims have by them.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from leamvd.analysis import claims, rules
from leamvd.analysis.comparison import quote
from leamvd.analysis.pretraining import over_test_images
from leamvd.analysis.rules import CLAIMS, Claim, Part
from leamvd.analysis.statistics import Effect, power
from leamvd.campaign import archive
from leamvd.experiments.methods import Method
from leamvd.studies import architectures, minima
from leamvd.studies.study import ONE_EPOCH

SMALLEST = 1.05
"""Ratio of errors, or one over it, that is the smallest of interest where no effect lies on a part's bound."""

EQUAL = "cma-es:n_gen=42"
"""CMA-ES with 1,008 evaluations; LEA-MVD makes 1,004."""

TEST_IMAGES = 10_000
"""Of MNIST."""

MISTAKES = {"mistakes": {}, "mistakes_28x28": {ONE_EPOCH: "lea-mvd"}}
"""Names in the archive of the test images that the networks of C15 get wrong, each with methods that others stand for.

At 28x28 pixels no search left its start solution, so the networks that start from either are the same.
"""

ON_ERRORS = ("C3", "C4", "C5", "C6", "C7", "C8", "C9")
"""Claims about errors of LEA-MVD that the paper shows."""

_VIEWS = tuple(rules.VIEWS)

_TESTED = {
    "C13": (
        *(Part("both", ("local_minima",), rules.most_escape, ("lea-mvd", n)) for n in minima.PLANS["paper"]["sizes"]),
        *(Part("both", ("trained_minima",), rules.most_escape_after, ("lea-mvd", start)) for start in minima.STARTS),
    ),
    "C14": tuple(
        Part("both", ("architectures",), rules.learns, ("lea-mvd", network)) for network in architectures.NETWORKS
    ),
}

LATER = tuple(claim._replace(parts=_TESTED[claim.claim]) for claim in CLAIMS if claim.claim in _TESTED)
"""Claims that had no test, with a family of their own: the others' p stay as they are."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Corrections:
    """Which rules apply; by default all."""

    printed: bool = True  # as printed is judged by the printed reading
    undecided: bool = True  # a part that could not be met, or may be met, decides nothing
    unclaimed: bool = True  # nor does one that the paper does not claim, or that standing still meets
    fixed: bool = True  # nor do settings of C12 that the paper fixes because they are sensitive
    evaluations: bool = True  # CMA-ES has as many evaluations as LEA-MVD
    intervals: bool = True  # those that belong to the tests
    images: bool = True  # C15's interval covers other test images too


NAMES = tuple(field.name for field in dataclasses.fields(Corrections))


def with_controls(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Return the tables that claims are judged by, with the rows of recorded controls that these rules ask for.

    CMA-ES on shared inputs has as many evaluations as LEA-MVD in its first generations; on its own, inputs are others.
    """
    found = {
        name: [table, *([archive.read(f"{name}_controls")] if archive.exists(f"{name}_controls") else [])]
        for name, table in tables.items()
    }
    if "classification" in found:
        found["mistakes"] = [archive.read(name).replace({"method": same}) for name, same in MISTAKES.items()]
    if "mnist_7x7" in found:
        rows = tables["mnist_7x7"].query("method == 'cma-es' and inputs == 'shared'")
        generations = dict(Method.parse(EQUAL).settings)["n_gen"]
        found["mnist_7x7"].append(rows[rows["iteration"] <= generations].assign(method=EQUAL))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in found.items()}


def later(profile: str, output: str | Path) -> dict[str, pd.DataFrame]:
    """Return the tables by which `LATER` is judged: what is recorded, or the same run with "paper"; else nothing."""
    if profile not in ("recorded", "paper"):
        return {}
    found, networks = minima.on_page(profile, output), architectures.on_page(profile, output)
    return {"local_minima": found["runs"], "trained_minima": found["rbms"], "architectures": networks}


def evidence(
    tables: Mapping[str, pd.DataFrame],
    corrections: Corrections,
    of: Sequence[Claim] = CLAIMS,
    tested: claims.Tested | None = None,
) -> pd.DataFrame:
    """Return every test as `leamvd.analysis.claims.evidence` does, by these rules."""
    chosen = tuple(claim._replace(parts=tuple(_parts(claim, corrections))) for claim in of)
    rows = claims.evidence(tables, of=chosen, tested=tested)
    if corrections.intervals:
        ranks = {"effect": "rank", "low": "rank_low", "high": "rank_high"}
        rows = rows.assign(**{name: rows[rank].fillna(rows[name]) for name, rank in ranks.items()})
    if corrections.images and "mistakes" in tables:
        for at, row in rows[(rows["study"] == "classification") & (rows["runs"] > 0)].iterrows():
            half = _over_images(row["part"], tables["mistakes"])
            rows.loc[at, ["low", "high"]] = row["effect"] * np.exp([-half, half])
    if corrections.unclaimed:
        rows = rows[~((rows["effect"] == 0) & (rows["error"] == 0))]
    if corrections.undecided:
        rows = rows.assign(undecided=_untold(rows) & claims.unmet(rows))
    return rows


def _over_images(part: str, mistakes: pd.DataFrame) -> float:
    """Return half the width of the interval of a log ratio of test errors that covers other test images too."""
    study, _, compared = part.partition(", ")
    method, baseline = compared.split(" / ")
    return over_test_images(mistakes[mistakes["study"] == study], method, baseline, TEST_IMAGES)


def _untold(rows: pd.DataFrame) -> pd.Series:
    """Return which parts could hardly have been met, and are not contradicted either."""
    tested = rows["error"] > 0
    effects = (Effect(*row) for row in rows.loc[tested, list(Effect._fields)].itertuples(index=False))
    powers = [power(effect, level, SMALLEST) for effect, level in zip(effects, rows.loc[tested, "level"], strict=True)]
    weak = pd.Series(powers, rows.index[tested]).reindex(rows.index) < 0.5
    contradicted = (rows["low"] > rows["upper"]) | (rows["high"] < rows["lower"])
    return tested & ~contradicted & (weak | claims.contains_bound(rows))


def _parts(claim: Claim, corrections: Corrections) -> Iterator[Part]:
    """Yield the parts of a claim that these rules judge."""
    for part in claim.parts:
        if corrections.unclaimed and part.rule == rules.ends_below_the_constant_image:
            continue
        if corrections.fixed and claim.claim == "C12":
            if part.compared[0] == "n_elite 4":
                continue
            settings = tuple(own for own in part.compared[1] if not own.startswith("population_size"))
            part = part._replace(compared=(part.compared[0], settings))
        if corrections.evaluations:
            part = _with(part, "cma-es", EQUAL)
        if corrections.printed and claim.claim in ON_ERRORS and "lea-mvd" in part.compared and part.view != _VIEWS[1]:
            yield _with(part, "lea-mvd", "lea-mvd:printed")._replace(view=_VIEWS[0])
            if part.view == "both":
                yield part._replace(view=_VIEWS[1])
        else:
            yield part


def _with(part: Part, method: str, instead: str) -> Part:
    return part._replace(compared=tuple(instead if name == method else name for name in part.compared))


def cards(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the answers by these rules in short, see `leamvd.analysis.claims.cards`; with those to `LATER`."""
    found = claims.cards(evidence(tables, Corrections()))
    found.update(claims.cards(evidence(tables, Corrections(), LATER), LATER))
    return found


def answers(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return the answers, a row for each claim and view: registered, by each correction alone, and by "all" of them.

    Those to claims that had no test are by "all" alone.
    """
    nothing = Corrections(**dict.fromkeys(NAMES, False))
    each = {"registered": nothing} | {name: dataclasses.replace(nothing, **{name: True}) for name in NAMES}
    tested: claims.Tested = {}
    found = {name: claims.answers(evidence(tables, one, tested=tested)).stack() for name, one in each.items()}
    return pd.DataFrame(found).rename_axis(["claim", "view"]).assign(all=cards(tables)["answer"])


def changed(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the `answers` that some correction changes; a dash where one does not, and the direction of all.

    A correction that changes nothing by itself has no column.
    """
    rows = answers[answers.ne(answers["registered"], axis=0).any(axis=1)]
    order = {"not reproduced": 0, "undecided": 1, "partly": 1, "reproduced": 2}
    moved = rows["all"].map(order) - rows["registered"].map(order)
    direction = np.sign(moved).map({1.0: "for the paper", -1.0: "against it", 0.0: "neither"}).fillna("–")
    other = rows.ne(rows["registered"], axis=0)
    shown = rows.where(other, "–").loc[:, other.any() | (rows.columns == "registered")]
    return shown.assign(registered=rows["registered"], all=rows["all"], direction=direction)


def quoted(cards: pd.DataFrame, answers: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `cards` and `answers`.

    "c5-as-printed-corrected" is an answer, with "-met" and "-furthest" the other columns of `cards`; "corrected-others"
    is how many answers are others than the registered ones.
    """
    columns = {name: f"corrected-{name}" if name != "answer" else "corrected" for name in cards}
    return quote("", cards.rename(columns=columns)) | {
        "corrected-others": int((answers["all"] != answers["registered"]).sum()),
    }
