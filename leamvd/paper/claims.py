"""The paper's claims C1-C10, each answered from records and returned with its evidence.

Evidence has a row for each number that is judged, with the column "answer": whether the claim holds there. A view of a
claim is a kind of inputs (item E7) and a measure (E2): it holds where all of its rows do, and fails where one of them
fails. A claim "holds" or "does not hold" where it does so in every view; where it fails in some views only it "depends
on the view", and where views hold or are open it is "open". C9 is about layers and methods: where it holds for some of
them it "holds in part". C10 has no views: one row that fails is enough.
"""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leamvd.paper.comparison import MEASURES, final, gains, slopes, versus

MATERIAL = 1.0
"""Percent: a smaller change of an error counts as none (C3, C10)."""

MUCH = 10.0
"""Percent: a larger change of an error counts as much (C6, C8)."""

NEAR = 2.0
"""Factor within which a number counts as the paper's (C7, C8), and two errors per visible unit as the same (C9)."""

LEVEL = 0.05
"""Of significance, for all comparisons of one claim together (Holm's correction)."""

LAST_EPOCHS = 10
"""Over which contrastive divergence should have stopped changing (C10)."""

PAPER_EPOCHS = 50

COSTS = {"time": "generation_seconds", "memory": "peak_bytes"}
"""What grows with the number of variables, and its column in the bench's table of optimizers."""

LARGE = 10_000
"""Variables from which growth is fitted: with fewer, what a call costs at any size tells."""

QUADRATIC_FROM = 1_000
"""Variables from which square matrices outweigh the rest of what CMA-ES holds."""

LINEAR, QUADRATIC = (0.95, 1.05), (1.8, 2.2)
"""Slopes in double logarithmic scale that count as O(n) and as O(n^2)."""

SIZES = 3
"""Numbers of variables on which a slope must rest to settle a claim."""


class Claim(NamedTuple):
    """The answer to one of the paper's claims, and what it rests on."""

    claim: str  # "C3"
    answer: str  # "holds", "does not hold", "holds in part", "depends on the view" or "open"
    evidence: pd.DataFrame  # a row for each number that was judged, with its own "answer"


def answers(claims: Iterable[Claim]) -> pd.DataFrame:
    """Return the claims and their answers, one row each, without the evidence."""
    return pd.DataFrame([claim[:2] for claim in claims], columns=["claim", "answer"])


def c3(table: pd.DataFrame) -> Claim:
    """RBM 1 of 7 x 7: CMA-ES and LEA-MVD could not improve the start solution (by 1 % or more, in the median)."""
    rows = gains(_first_layer(table))
    rows = rows[rows["method"] != "cd"]
    return _from_views("C3", rows.assign(answer=_holds(rows["gain"] < MATERIAL)))


def c4(table: pd.DataFrame) -> Claim:
    """RBM 2 and 3 of 7 x 7: both evolutionary methods beat contrastive divergence significantly."""
    return _beats("C4", table, [("lea-mvd", "cd"), ("cma-es", "cd")])


def c5(table: pd.DataFrame) -> Claim:
    """RBM 2 and 3 of 7 x 7: LEA-MVD is the best of the three."""
    return _beats("C5", table, [("lea-mvd", "cd"), ("lea-mvd", "cma-es")])


def c6(table: pd.DataFrame) -> Claim:
    """RBM 1 of 28 x 28: after the first iteration no method improves much (more than 10 %, in the median)."""
    rows = gains(_first_layer(table), since=1)
    return _from_views("C6", rows.assign(answer=_holds(rows["gain"] <= MUCH)))


def c7(table: pd.DataFrame, images: str) -> Claim:
    """RBM 2 of 28 x 28: contrastive divergence ends near 50,000, LEA-MVD near 5,000.

    Parameters
    ----------
    table : DataFrame
        Records.
    images : str
        Name of the data set: the claim is open for any but MNIST.
    """
    return _from_views("C7", _numbers(table, images, 2, {"cd": 50_000.0, "lea-mvd": 5_000.0}))


def c8(table: pd.DataFrame, images: str) -> Claim:
    """RBM 3 of 28 x 28: LEA-MVD reaches about 900, contrastive divergence hardly improves (10 % after one epoch).

    Contrastive divergence must stand still in both measures. Parameters as for `c7`.
    """
    rows = _numbers(table, images, 3, {"lea-mvd": 900.0})
    cd = gains(table[(table["layer"] == 3) & (table["method"] == "cd")], since=1)
    if rows.empty or cd.empty:
        return _from_views("C8", rows)
    still = "holds" if cd["gain"].max() <= MUCH else "does not hold"
    evidence = pd.concat([rows, cd.assign(answer=still if images == "MNIST" else "open")], ignore_index=True)
    return _from_views("C8", evidence)


def c9(small: pd.DataFrame, large: pd.DataFrame) -> Claim:
    """Errors are larger at 28 x 28 because the images are: larger in total, alike per visible unit (factor 2).

    Parameters
    ----------
    small, large : DataFrame
        Records of the two sizes on the same images.
    """
    rows = sizes(small, large)
    explained = (rows["total"] > 1) & rows["per unit"].between(1 / NEAR, NEAR)
    evidence = rows.assign(answer=_holds(explained))
    if rows.empty:
        return Claim("C9", "open", evidence)
    answer = "holds" if explained.all() else "holds in part" if explained.any() else "does not hold"
    return Claim("C9", answer, evidence)


def c10(table: pd.DataFrame) -> Claim:
    """Contrastive divergence converges within 50 epochs: the last ten change its error by less than 1 %."""
    cd = table[(table["method"] == "cd") & (table["inputs"] == table["inputs"].iloc[0])]
    epochs = cd["iteration"].max()
    rows = gains(cd, since=epochs - LAST_EPOCHS)
    if rows.empty or epochs <= LAST_EPOCHS:
        return Claim("C10", "open", rows.assign(answer="open"))
    moving = "open" if epochs < PAPER_EPOCHS else "does not hold"
    evidence = rows.assign(answer=np.where(rows["gain"].abs() < MATERIAL, "holds", moving))
    return Claim("C10", _every(evidence["answer"]), evidence)


# ---- evidence


def per_10000(table: pd.DataFrame) -> pd.DataFrame:
    """Return final errors per 10,000 images, medians over runs, to stand beside the numbers that the paper prints.

    Returns
    -------
    DataFrame
        A row for each kind of inputs, layer and method, with both measures and the error of the constant image.
    """
    last = final(table)
    rows = last.assign(constant=last["mean_field"] / last["mean_field_ratio"])
    measures = [*MEASURES, "constant"]
    rows[measures] = rows[measures].mul(1e4 / rows["n_images"], axis=0)
    return rows.groupby(["inputs", "layer", "method"], sort=False)[measures].median().reset_index()


def sizes(small: pd.DataFrame, large: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios, large to small, of final mean-field errors per image, and per image and visible unit.

    Returns
    -------
    DataFrame
        A row for each kind of inputs, layer and method that both have: visible units, and ratios of medians.
    """
    keys = ["inputs", "layer", "method"]
    medians = []
    for table in (small, large):
        last = final(table)
        last = last.assign(total=last["mean_field"] / last["n_images"])
        medians.append(last.groupby(keys, sort=False)[["total", "n_visible"]].median())
    both = pd.merge(medians[0], medians[1], on=keys, suffixes=("_small", "_large"))
    total = both["total_large"] / both["total_small"]
    units = {f"visible {size}": both[f"n_visible_{size}"].astype(int) for size in ("small", "large")}
    per_unit = total * both["n_visible_small"] / both["n_visible_large"]
    return pd.DataFrame(units | {"total": total, "per unit": per_unit}).reset_index()


def _first_layer(table: pd.DataFrame) -> pd.DataFrame:
    """Return the records of the first layer, which are the same for all kinds of inputs, once."""
    first: pd.DataFrame = table[(table["layer"] == 1) & (table["inputs"] == table["inputs"].iloc[0])]
    return first


def _beats(claim: str, table: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> Claim:
    """Whether each pair's first method ends significantly below its second, on every layer but the first."""
    rows = versus(table, pairs)
    judged = np.select([~(rows["ratio"] < 1), rows["p"] < LEVEL], ["does not hold", "holds"], "open")
    complete = set(zip(rows["method"], rows["baseline"], strict=True)) == set(pairs)
    return _from_views(claim, rows.assign(answer=judged if complete else "open"))


def _numbers(table: pd.DataFrame, images: str, layer: int, paper: dict[str, float]) -> pd.DataFrame:
    """Return errors per 10,000 images beside the paper's, and on MNIST whether they are within a factor of 2."""
    rows = per_10000(table[(table["layer"] == layer) & table["method"].isin(list(paper))])
    rows = rows.melt(["inputs", "layer", "method", "constant"], list(MEASURES), "measure", "per 10,000")
    rows = rows.assign(paper=rows["method"].map(paper))
    near = _holds((rows["per 10,000"] / rows["paper"]).between(1 / NEAR, NEAR))
    known = images == "MNIST" and set(rows["method"]) == set(paper)
    return rows.assign(answer=near if known else "open")


# ---- answers


def _holds(condition: pd.Series) -> NDArray[Any]:
    """Return the answer of each row."""
    return np.where(condition, "holds", "does not hold")


def _every(rows: Iterable[str]) -> str:
    """Return the answer to whether all of them hold: one that fails decides, then one that is open."""
    different = set(rows)
    return next((answer for answer in ("does not hold", "open") if answer in different), "holds")


def _from_views(claim: str, evidence: pd.DataFrame) -> Claim:
    """Return the claim with the answer that its views give together."""
    evidence = evidence[[*evidence.columns.drop("answer"), "answer"]].reset_index(drop=True)
    views = {_every(view["answer"]) for _, view in evidence.groupby(["inputs", "measure"])}
    if len(views) == 1:
        return Claim(claim, views.pop(), evidence)
    return Claim(claim, "depends on the view" if "does not hold" in views else "open", evidence)


# ---- what a generation costs (C1, C2)


def c1(optimizers: pd.DataFrame) -> Claim:
    """LEA-MVD needs O(n) operations and memory: both slopes are `LINEAR` in every dtype, from n = `LARGE` on.

    Parameters
    ----------
    optimizers : DataFrame
        Of the bench: method, dtype, threads, n, status, and the columns of `COSTS`.
    """
    rows = growth(optimizers[optimizers["method"] == "leamvd"], LARGE)
    return _from_slopes("C1", rows, COSTS, LINEAR)


def c2(optimizers: pd.DataFrame) -> Claim:
    """CMA-ES needs O(n^2) memory: with a full matrix its slope is `QUADRATIC`, from n = `QUADRATIC_FROM` on.

    Time decides nothing: pycma decomposes its matrix once in many generations. Parameters as for `c1`.
    """
    rows = growth(optimizers[optimizers["method"] == "pycma full"], QUADRATIC_FROM)
    return _from_slopes("C2", rows[rows["cost"] == "memory"], ["memory"], QUADRATIC)


def growth(optimizers: pd.DataFrame, at_least: int = LARGE) -> pd.DataFrame:
    """Return the slopes of time and memory of each method and dtype on one thread, of sizes from `at_least` on."""
    rows = optimizers[(optimizers["status"] == "ok") & (optimizers["threads"] == 1) & (optimizers["n"] >= at_least)]
    fits = {name: slopes(rows, ["method", "dtype"], column) for name, column in COSTS.items()}
    found = pd.concat(fits, names=["cost", None]).reset_index("cost")
    return found[["method", "dtype", "cost", "sizes", "from n", "to n", "slope"]]


def _from_slopes(claim: str, rows: pd.DataFrame, costs: Iterable[str], within: tuple[float, float]) -> Claim:
    """Return the claim that all slopes lie `within` two; it is open where one of the costs was not measured."""
    answers = np.where(rows["sizes"] < SIZES, "open", _holds(rows["slope"].between(*within)))
    complete = set(costs) <= set(rows["cost"])
    return Claim(claim, _every(answers) if complete else "open", rows.assign(answer=answers))
