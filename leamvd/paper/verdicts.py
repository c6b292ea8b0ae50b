"""Verdicts on the paper's claims C3-C10 by tests that were chosen before the runs were looked at.

A claim has parts, and each part two views: *as printed*, on each method's own inputs by the mean-field error, and
*conclusion*, whether it supports what the paper concludes, on shared inputs by the ratio to the constant image's error
(items E2, E7). A part is one test; it is met where its p, corrected by Holm over all tests of all claims, is below
`LEVEL`. A claim is reproduced in a view where all of its parts are met, partly where some are, not reproduced where
none is, and not testable where a part has too few runs. All methods of a claim are scored by the same measure, at the
last of as many iterations. What decides where is in the book's table of rules.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from leamvd.paper.comparison import final, holm
from leamvd.paper.intervals import interval, welch

LEVEL = 0.05
"""Of significance, for all tests together."""

UNCHANGED = 1.0
"""Percent: a mean change of an error that is surely smaller than this is none (C3, C10)."""

LITTLE = 10.0
"""Percent: a mean change that is surely smaller is no significant one (C6, C8)."""

FACTOR = 2.0
"""Of a printed number, or of an error per pixel, within which another one counts as the same (C7, C8, C9)."""

LAST = 10
"""Epochs over which contrastive divergence should have stopped changing (C10)."""

PRINTED = {("cd", 2): 50_000.0, ("lea-mvd", 2): 5_000.0, ("lea-mvd", 3): 900.0}
"""Errors that the paper gives in figures or words, by method and layer of 28 x 28; taken to be of 10,000 images."""

VIEWS = {"as printed": ("own", "mean_field"), "conclusion": ("shared", "mean_field_ratio")}
"""Inputs and measure of each view."""

COLUMNS = ["claim", "view", "part", "effect", "low", "high", "runs", "test", "p"]
"""Of evidence: an effect with its 95 % interval, runs, and the p of one test; "both" views where they are the same."""


class Test(NamedTuple):
    """An effect with its 95 % interval, and the p-value of what is asked about it."""

    effect: float
    low: float
    high: float
    runs: int
    test: str
    p: float


# ---- answers


def evidence(small: pd.DataFrame, large: pd.DataFrame, *, without: Sequence[int] = ()) -> pd.DataFrame:
    """Return every test of the claims, with what it decides.

    Parameters
    ----------
    small, large : DataFrame
        Records of the experiments at 7 x 7 and at 28 x 28 pixels.
    without : sequence of int
        Seeds that are left out: those that had been looked at before the rules were written.

    Returns
    -------
    DataFrame
        `COLUMNS`; `p` corrected by Holm, and whether the part is `met`, missing where its runs are too few to tell.
    """
    small, large = (table[~table["seed"].isin(without)] for table in (small, large))
    rows = pd.concat(
        [c3(small), c4(small), c5(small), c6(large), c7(large), c8(large), c9(small, large), c10(small)],
        ignore_index=True,
    )
    return corrected(rows)


def corrected(rows: pd.DataFrame) -> pd.DataFrame:
    """Return tests with `p` corrected by Holm, and whether the part is `met`."""
    p = holm(rows["p"].to_numpy(dtype=float))
    met = pd.Series(p < LEVEL, dtype="boolean").mask(0.5 ** rows["runs"] * len(rows) >= LEVEL)
    return rows.assign(p=p, met=met)


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the answer to each claim in each view, from `evidence`: a row for each claim, a column for each view."""
    found = {
        view: rows[rows["view"].isin([view, "both"])].groupby("claim", sort=False)["met"].agg(_answer) for view in VIEWS
    }
    return pd.DataFrame(found)


def _answer(met: pd.Series) -> str:
    if met.isna().any():
        return "not testable"
    return "reproduced" if met.all() else "partly" if met.any() else "not reproduced"


# ---- tests of one part


def below(a: pd.Series, b: pd.Series) -> Test:
    """Test whether errors are lower than others, paired by seed: the geometric mean of a / b; Wilcoxon, one-sided."""
    ratio = np.log((a / b).dropna().to_numpy(dtype=float))
    low, effect, high = np.exp(interval(ratio))
    return Test(effect, low, high, len(ratio), "Wilcoxon, paired", _signed_rank(ratio, "less"))


def within(values: pd.Series, low: float, high: float) -> Test:
    """Test whether values lie between two bounds in the mean: two one-sided Wilcoxon tests, of which the larger p."""
    x = values.to_numpy(dtype=float)
    p = max(_signed_rank(x - low, "greater"), _signed_rank(x - high, "less"))
    low, effect, high = interval(x)
    return Test(effect, low, high, len(x), "Wilcoxon, two one-sided", p)


def near(values: pd.Series, number: float) -> Test:
    """Test whether values are a number but for `FACTOR`: the geometric mean of values / number, tested as `within`."""
    test = within(np.log(values / number), -np.log(FACTOR), np.log(FACTOR))
    effect, low, high = np.exp(test[:3])
    return test._replace(effect=effect, low=low, high=high)


def larger(a: pd.Series, b: pd.Series) -> Test:
    """Test whether errors are larger than those of other networks: the ratio of geometric means; Mann-Whitney."""
    x, y = np.log(a.to_numpy(dtype=float)), np.log(b.to_numpy(dtype=float))
    low, effect, high = np.exp(welch(y, x))
    return Test(
        effect, low, high, min(len(x), len(y)), "Mann-Whitney", stats.mannwhitneyu(x, y, alternative="greater").pvalue
    )


def alike(a: pd.Series, b: pd.Series) -> Test:
    """Test whether errors are those of other networks but for `FACTOR`: two one-sided Mann-Whitney tests."""
    x, y, margin = np.log(a.to_numpy(dtype=float)), np.log(b.to_numpy(dtype=float)), np.log(FACTOR)
    low, effect, high = np.exp(welch(y, x))
    p = max(
        stats.mannwhitneyu(x + margin, y, alternative="greater").pvalue,
        stats.mannwhitneyu(x - margin, y, alternative="less").pvalue,
    )
    return Test(effect, low, high, min(len(x), len(y)), "Mann-Whitney, two one-sided", p)


def _signed_rank(x: NDArray[np.float64], alternative: Literal["less", "greater"]) -> float:
    return float(stats.wilcoxon(x, alternative=alternative).pvalue) if x.any() else 1.0


# ---- the parts of each claim


def c3(table: pd.DataFrame) -> pd.DataFrame:
    """Whether CMA-ES and LEA-MVD leave the start solution of RBM 1 as it is."""
    return _changes("C3", "both", table, 1, ("cma-es", "lea-mvd"), UNCHANGED)


def c4(table: pd.DataFrame) -> pd.DataFrame:
    """Whether both evolutionary methods end below contrastive divergence in RBM 2 and 3."""
    return _pairs("C4", table, [("cma-es", "cd"), ("lea-mvd", "cd")])


def c5(table: pd.DataFrame) -> pd.DataFrame:
    """Whether LEA-MVD ends below CMA-ES and contrastive divergence in RBM 2 and 3."""
    return _pairs("C5", table, [("lea-mvd", "cma-es"), ("lea-mvd", "cd")])


def c6(table: pd.DataFrame) -> pd.DataFrame:
    """Whether neither method changes its error of RBM 1 much after the first iteration."""
    return _changes("C6", "both", table, 1, ("cd", "lea-mvd"), LITTLE, since=1)


def c7(table: pd.DataFrame) -> pd.DataFrame:
    """Whether RBM 2 ends at the printed errors; for the conclusion, whether LEA-MVD ends below CD and the constant."""
    numbers = _numbers("C7", table, [("cd", 2), ("lea-mvd", 2)])
    return pd.concat([numbers, _superior("C7", table, 2)], ignore_index=True)


def c8(table: pd.DataFrame) -> pd.DataFrame:
    """Whether LEA-MVD ends at the printed error of RBM 3, and CD stays where it was; for the conclusion, as C7."""
    numbers = _numbers("C8", table, [("lea-mvd", 3)])
    still = _changes("C8", "as printed", table, 3, ("cd",), LITTLE, since=1)
    return pd.concat([numbers, still, _superior("C8", table, 3)], ignore_index=True)


def c9(small: pd.DataFrame, large: pd.DataFrame) -> pd.DataFrame:
    """Whether errors per image are larger at 28 x 28; for the conclusion, whether errors per pixel are alike."""
    rows = []
    for layer, method in _cells(large, ("cd", "lea-mvd")):
        ends = [_ends(table, "own", layer, method) for table in (small, large)]
        per_image = [end["mean_field"] / end["n_images"] for end in ends]
        per_unit = [error / end["n_visible"] for error, end in zip(per_image, ends, strict=True)]
        part = f"RBM {layer}, {method}"
        rows.append(("C9", "as printed", part, *larger(per_image[1], per_image[0])))
        rows.append(("C9", "conclusion", part, *alike(per_unit[1], per_unit[0])))
    return pd.DataFrame(rows, columns=COLUMNS)


def c10(table: pd.DataFrame) -> pd.DataFrame:
    """Whether the logarithm of contrastive divergence's error has stopped falling over the last epochs."""
    rows = []
    for layer, method in _cells(table, ("cd",)):
        runs = _of(table, "own", layer, method)
        last = runs[runs["iteration"] > runs["iteration"].max() - LAST]
        slopes = pd.Series(
            {
                seed: 100 * LAST * np.polyfit(run["iteration"], np.log(run["mean_field"]), 1)[0]
                for seed, run in last.groupby("seed")
            }
        )
        rows.append(("C10", "both", f"RBM {layer}, {method}", *within(slopes, -UNCHANGED, UNCHANGED)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _of(table: pd.DataFrame, inputs: str, layer: int, method: str) -> pd.DataFrame:
    chosen = (table["inputs"] == inputs) & (table["layer"] == layer) & (table["method"] == method)
    return table[chosen]


def _ends(table: pd.DataFrame, inputs: str, layer: int, method: str) -> pd.DataFrame:
    return final(_of(table, inputs, layer, method)).set_index("seed")


def _cells(table: pd.DataFrame, methods: Iterable[str]) -> Iterator[tuple[int, str]]:
    for layer in sorted(table["layer"].unique()):
        for method in methods:
            yield layer, method


def _changes(
    claim: str, view: str, table: pd.DataFrame, layer: int, methods: Sequence[str], margin: float, *, since: int = 0
) -> pd.DataFrame:
    """Test whether errors at the end are those of an iteration, but for a margin in percent."""
    rows = []
    for method in methods:
        runs = _of(table, "own", layer, method)
        first = runs[runs["iteration"] == since].set_index("seed")["mean_field"]
        gain = 100 * (1 - _ends(table, "own", layer, method)["mean_field"] / first)
        rows.append((claim, view, f"RBM {layer}, {method}", *within(gain, -margin, margin)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _pairs(claim: str, table: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> pd.DataFrame:
    rows = []
    for view, (inputs, measure) in VIEWS.items():
        for layer in (2, 3):
            for method, baseline in pairs:
                a, b = (_ends(table, inputs, layer, name)[measure] for name in (method, baseline))
                rows.append((claim, view, f"RBM {layer}, {method} / {baseline}", *below(a, b)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _numbers(claim: str, table: pd.DataFrame, cells: Iterable[tuple[str, int]]) -> pd.DataFrame:
    rows = []
    for method, layer in cells:
        end, number = _ends(table, "own", layer, method), PRINTED[method, layer]
        per_10000 = 1e4 * end["mean_field"] / end["n_images"]
        rows.append((claim, "as printed", f"RBM {layer}, {method} / {number:,.0f}", *near(per_10000, number)))
    return pd.DataFrame(rows, columns=COLUMNS)


def _superior(claim: str, table: pd.DataFrame, layer: int) -> pd.DataFrame:
    inputs, measure = VIEWS["conclusion"]
    lea, cd = (_ends(table, inputs, layer, method)[measure] for method in ("lea-mvd", "cd"))
    parts = {"cd": below(lea, cd), "constant image": below(lea, pd.Series(1.0, lea.index))}
    rows = [(claim, "conclusion", f"RBM {layer}, lea-mvd / {name}", *test) for name, test in parts.items()]
    return pd.DataFrame(rows, columns=COLUMNS)
