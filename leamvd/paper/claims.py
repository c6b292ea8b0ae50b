"""Verdicts on the paper's claims C3-C10, each a sentence with its numbers made from a study's records.

A view of a claim is a kind of inputs (item E7) and a measure (E2). A claim "holds" or "does not hold" where it does so
in every view; where it holds in one and not in another the answer is "depends on the view", and where no view decides
it, "open". C9 is about layers and methods: where it holds for some of them, it "holds in part".
"""

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

import pandas as pd

from leamvd.paper.comparison import MEASURES, final, gain, number, versus

MATERIAL = 1.0
"""Percent: a smaller change of an error counts as none (C3, C10)."""

MUCH = 10.0
"""Percent: a larger change of an error counts as much (C6, C8)."""

NEAR = 2.0
"""Factor within which a number counts as the paper's (C7, C8), and two errors a pixel as the same (C9)."""

LEVEL = 0.05
"""Of significance, for all comparisons of one claim together (Holm's correction)."""

LAST_EPOCHS = 10
"""Over which contrastive divergence should have stopped changing (C10)."""

PAPER_EPOCHS = 50

INPUTS = {"own": "own inputs", "shared": "shared inputs"}


class Verdict(NamedTuple):
    """The answer to one claim, and the sentence that says why."""

    claim: str
    answer: str
    text: str

    def __str__(self) -> str:
        """Return Markdown."""
        return f"**{self.claim}: {self.answer}.** {self.text}"


def markdown(verdicts: Iterable[Verdict]) -> str:
    """Return a list of verdicts as Markdown."""
    return "\n".join(f"- {verdict}" for verdict in verdicts)


def learned(table: pd.DataFrame) -> str:
    """Return, as a sentence, each method's ratio to the constant image, layer by layer, and its inputs' spread."""
    last = final(table[table["inputs"] == table["inputs"].iloc[0]])
    medians = last.groupby(["method", "layer"], sort=False)[["mean_field_ratio", "input_std"]].median()
    parts = []
    for method, rows in medians.groupby(level="method", sort=False):
        ratios, spreads = (", ".join(map(number, rows[name])) for name in ("mean_field_ratio", "input_std"))
        parts.append(f"{method} {ratios} (input std {spreads})")
    inputs = INPUTS[str(table["inputs"].iloc[0])]
    return f"Mean-field error over that of a constant image, layer by layer, {inputs}: {'; '.join(parts)}."


def c3(table: pd.DataFrame) -> Verdict:
    """RBM 1 of 7×7: the seed could not be improved by CMA-ES or LEA-MVD (by 1 % or more, in the median)."""
    gains = {measure: _optimizers(gain(table, measure)) for measure in MEASURES}
    if gains["mean_field"].empty:
        return _missing("C3")
    answers = [_no(bool((gains[measure]["median"] >= MATERIAL).any())) for measure in MEASURES]
    parts = [f"{name} {_gains(gains[measure])}" for measure, name in MEASURES.items()]
    return Verdict(
        "C3", _overall(answers), f"Change of the error against that of the seed in RBM 1: {'; '.join(parts)}."
    )


def c4(table: pd.DataFrame) -> Verdict:
    """RBM 2 and 3 of 7×7: both evolutionary methods beat contrastive divergence significantly."""
    return _beats("C4", table, [("lea-mvd", "cd"), ("cma-es", "cd")])


def c5(table: pd.DataFrame) -> Verdict:
    """RBM 2 and 3 of 7×7: LEA-MVD is the best of the three."""
    return _beats("C5", table, [("lea-mvd", "cd"), ("lea-mvd", "cma-es")])


def c6(table: pd.DataFrame) -> Verdict:
    """RBM 1 of 28×28: after the first iteration no method improves much (10 %, in the median)."""
    gains = {measure: _first_layer(gain(table, measure, since=1)) for measure in MEASURES}
    answers = [_no(bool((gains[measure]["median"] > MUCH).any())) for measure in MEASURES]
    parts = [f"{name} {_gains(gains[measure])}" for measure, name in MEASURES.items()]
    return Verdict(
        "C6", _overall(answers), f"Change of the error since the first iteration in RBM 1: {'; '.join(parts)}."
    )


def c7(table: pd.DataFrame, images: str) -> Verdict:
    """RBM 2 of 28×28: contrastive divergence ends near 50,000, LEA-MVD near 5,000; `images` names the data set."""
    return _numbers("C7", table, images, 2, {"cd": 50_000.0, "lea-mvd": 5_000.0})


def c8(table: pd.DataFrame, images: str) -> Verdict:
    """RBM 3 of 28×28: LEA-MVD reaches about 900, contrastive divergence hardly improves (10 % after one epoch)."""
    verdict = _numbers("C8", table, images, 3, {"lea-mvd": 900.0})
    cd = table[(table["layer"] == 3) & (table["method"] == "cd")]
    if cd.empty:
        return verdict
    gains = {name: float(gain(cd, measure, since=1)["median"].iloc[0]) for measure, name in MEASURES.items()}
    fails = max(gains.values()) > MUCH and verdict.answer != "open"
    text = ", ".join(f"{name} {_percent(-value)}" for name, value in gains.items())
    answer = "does not hold" if fails else verdict.answer
    return Verdict(
        "C8", answer, f"{verdict.text} Contrastive divergence changes its error after the first epoch by: {text}."
    )


def c9(small: pd.DataFrame, large: pd.DataFrame) -> Verdict:
    """Errors are larger at 28×28 because the images are: larger in total, alike per visible unit (factor 2).

    Parameters
    ----------
    small, large : DataFrame
        Records of the two sizes on the same images.
    """
    rows = sizes(small, large)
    if rows.empty:
        return _missing("C9")
    explained = (rows["total"] > 1) & rows["per unit"].between(1 / NEAR, NEAR)
    answer = "holds" if explained.all() else "holds in part" if explained.any() else "does not hold"
    text = "; ".join(
        f"RBM {row['layer']} {row['method']} {number(row['total'])} in total and "
        f"{number(row['per unit'])} per visible unit"
        for row in rows.to_dict("records")
    )
    inputs = INPUTS[str(large["inputs"].iloc[0])]
    return Verdict("C9", answer, f"Mean-field error of the large images over that of the small, {inputs}: {text}.")


def sizes(small: pd.DataFrame, large: pd.DataFrame) -> pd.DataFrame:
    """Return the ratios, large to small, of final mean-field errors per image, and per image and visible unit.

    Returns
    -------
    DataFrame
        A row for each layer and method that both have, with their first inputs: visible units, and ratios of medians.
    """
    keys = ["layer", "method"]
    medians = []
    for table in (small, large):
        last = final(table[table["inputs"] == table["inputs"].iloc[0]])
        last = last.assign(total=last["mean_field"] / last["n_images"])
        medians.append(last.groupby(keys, sort=False)[["total", "n_visible"]].median())
    both = pd.merge(medians[0], medians[1], on=keys, suffixes=("_small", "_large"))
    total = both["total_large"] / both["total_small"]
    units = {f"visible {size}": both[f"n_visible_{size}"].astype(int) for size in ("small", "large")}
    per_unit = total * both["n_visible_small"] / both["n_visible_large"]
    return pd.DataFrame(units | {"total": total, "per unit": per_unit}).reset_index()


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


def c10(table: pd.DataFrame) -> Verdict:
    """Contrastive divergence converges within 50 epochs: the last ten change its error by less than 1 %."""
    cd = table[(table["method"] == "cd") & (table["inputs"] == table["inputs"].iloc[0])]
    epochs = int(table["iteration"].max())
    if cd.empty or epochs <= LAST_EPOCHS:
        return _missing("C10")
    gains = {measure: gain(cd, measure, since=epochs - LAST_EPOCHS) for measure in MEASURES}
    moving = max(float(rows["median"].abs().max()) for rows in gains.values()) >= MATERIAL
    answer = "open" if moving and epochs < PAPER_EPOCHS else _no(moving)
    parts = []
    for measure, name in MEASURES.items():
        layers = gains[measure]["median"].groupby(level="layer").median()
        parts.append(f"{name} " + ", ".join(f"{_percent(-value)} (RBM {layer})" for layer, value in layers.items()))
    return Verdict(
        "C10", answer, f"Change of the error over the last {LAST_EPOCHS} of {epochs} epochs: {'; '.join(parts)}."
    )


def _beats(claim: str, table: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> Verdict:
    """Whether each pair's first method ends significantly below its second, on every layer but the first."""
    rows = versus(table, pairs)
    if rows.empty or set(rows["method"] + rows["baseline"]) != {a + b for a, b in pairs}:
        return _missing(claim)
    answers = []
    for _, view in rows.groupby(["inputs", "measure"], sort=False):
        lower, significant = (view["ratio"] < 1).all(), (view["p"] < LEVEL).all()
        answers.append("does not hold" if not lower else "holds" if significant else "open")
    parts = [
        f"{' and '.join(group['method'].unique())} to {baseline}, {INPUTS[str(inputs)]}, {_span(group['ratio'])} "
        f"(lower in {group['wins'].sum()} of {group['runs'].sum()} pairs of runs)"
        for (baseline, inputs), group in rows.groupby(["baseline", "inputs"], sort=False)
    ]
    layers = " and ".join(str(layer) for layer in rows["layer"].unique())
    text = f"Ratios of the final errors in RBM {layers}, both measures: {'; '.join(parts)}. {_tests(rows)}"
    return Verdict(claim, _overall(answers), text)


def _tests(rows: pd.DataFrame) -> str:
    """Return what the tests say, or why there are none."""
    runs = int(rows["runs"].max())
    smallest = 2.0 ** (1 - runs)
    if runs == 1:
        return "One run: no test."
    if smallest * len(rows) >= LEVEL:
        return f"With {runs} runs no difference can be significant at {LEVEL:g}, corrected by Holm."
    n = int((rows["p"] < LEVEL).sum())
    return f"{n} of {len(rows)} comparisons differ significantly (paired Wilcoxon, {LEVEL:g}, Holm)."


def _numbers(claim: str, table: pd.DataFrame, images: str, layer: int, paper: dict[str, float]) -> Verdict:
    """Whether the methods end within a factor of 2 of the paper's numbers, per 10,000 images of MNIST."""
    last = final(table[(table["layer"] == layer) & table["method"].isin(list(paper))])
    if set(last["method"]) != set(paper):
        return _missing(claim)
    medians = per_10000(last).to_dict("records")
    answers = []
    for inputs, measure in product(last["inputs"].unique(), MEASURES):
        near = [1 / NEAR <= row[measure] / paper[row["method"]] <= NEAR for row in medians if row["inputs"] == inputs]
        answers.append(_no(not all(near)))
    parts = [
        f"{row['method']}, {INPUTS[row['inputs']]}, {number(row['mean_field'])} mean-field and "
        f"{number(row['sampled'])} sampled, where the constant image has {number(row['constant'])}"
        for row in medians
        if row["method"] != "cd" or row["inputs"] == last["inputs"].iloc[0]
    ]
    expected = " and ".join(f"{number:,.0f} ({method})" for method, number in paper.items())
    text = f"Errors per 10,000 images in RBM {layer}, in the paper about {expected}: {'; '.join(parts)}."
    if images != "MNIST":
        return Verdict(claim, "open", f"{text} These images are {images}; the paper has MNIST.")
    return Verdict(claim, _overall(answers), text)


def _first_layer(gains: pd.DataFrame) -> pd.DataFrame:
    """Return the first layer's rows of `gain`, which are the same in both inputs, by method."""
    rows = gains.reset_index()
    chosen: pd.DataFrame = rows[(rows["layer"] == 1) & (rows["inputs"] == rows["inputs"].iloc[0])].set_index("method")
    return chosen


def _optimizers(gains: pd.DataFrame) -> pd.DataFrame:
    return _first_layer(gains).drop(index="cd", errors="ignore")


def _gains(rows: pd.DataFrame) -> str:
    return ", ".join(
        f"{row['method']} {_percent(-row['median'])} (lower in {row['gained']}/{row['runs']} runs)"
        for row in rows.reset_index().to_dict("records")
    )


def _missing(claim: str) -> Verdict:
    return Verdict(claim, "open", "This run has not what the claim is about.")


def _no(fails: bool) -> str:
    return "does not hold" if fails else "holds"


def _overall(answers: Sequence[str]) -> str:
    different = set(answers)
    if len(different) == 1:
        return answers[0]
    return "depends on the view" if "does not hold" in different else "open"


def _span(values: pd.Series) -> str:
    low, high = number(values.min()), number(values.max())
    return low if low == high else f"{low} to {high}"


def _percent(value: float) -> str:
    """Return a change in percent, signed, of two significant digits."""
    return f"{float(f'{value:.2g}') + 0.0:+,g} %"
