"""The parts of each claim as tests, with the level and the margins that were registered before the runs.

The book's table of rules says the same in words. All methods of a claim are scored by the same measure, at the last of
as many iterations. A part whose runs are missing has a test of no runs.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd.paper.comparison import final, slopes
from leamvd.paper.significance import Test, alike, below, hardest, larger, near, within

LAST = 10
"""Epochs over which contrastive divergence should have stopped changing (C10)."""

PRINTED = {("cd", 2): 50_000.0, ("lea-mvd", 2): 5_000.0, ("lea-mvd", 3): 900.0}
"""Errors that the paper gives in figures or words, by method and layer of 28 x 28; taken to be of 10,000 images."""

VIEWS = {"as printed": ("own", "mean_field"), "conclusion": ("shared", "mean_field_ratio")}
"""Inputs and measure of each view."""

ABLATED = {"without P": "path=off", "without C_ani": "descent=off", "not made orthogonal": "descent=free"}
"""Parts of C11, and the setting of LEA-MVD that each compares with the default."""

ALTERNATIVES = {
    "exponent 1.5": [f"exponent={value}" for value in (0, 0.5, 1, 2, 3)],
    "n_elite 4": [f"n_elite={value}" for value in (1, 2, 8, 12)],
    "no tuning": [
        *("population_size=12+n_gen=125", "population_size=48+n_gen=23"),  # 1,004 and 1,016 evaluations; default 1,004
        *("sigma0=0.01", "sigma0=0.03", "sigma0=0.3", "reset=0.1", "reset=initial", "reset=off"),
    ],
}
"""Parts of C12, and the settings of LEA-MVD that each compares with the default."""

COSTS = {"time": "generation_seconds", "memory": "peak_bytes"}
"""What grows with the number of variables, and its column in the bench's table of optimizers."""

LARGE, QUADRATIC_FROM = 10_000, 1_000
"""Variables from which growth counts, linear and quadratic: with fewer, what a call costs at any size tells."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Margins:
    """Level and margins; the defaults were registered before the runs.

    Attributes
    ----------
    level : float
        Of significance, for all tests together.
    unchanged : float
        Percent: a mean change of an error that is surely smaller than this is none (C3, C10).
    little : float
        Percent: a mean change that is surely smaller is no significant one (C6, C8).
    factor : float
        Of a printed number, or of an error per visible unit, within which another one is the same (C7, C8, C9).
    behind : float
        Percent by which another setting's error over the default's may be better (C12).
    linear, quadratic : tuple of float
        Slopes in double logarithmic scale that count as O(n) and as O(n^2) (C1, C2).

    Raises
    ------
    ValueError, TypeError
        If a value is out of range.
    """

    level: float = 0.05
    unchanged: float = 1.0
    little: float = 10.0
    factor: float = 2.0
    behind: float = 10.0
    linear: tuple[float, float] = (0.95, 1.05)
    quadratic: tuple[float, float] = (1.8, 2.2)

    def __post_init__(self) -> None:
        checks.real("level", self.level, above=0, below=1)
        checks.real("factor", self.factor, above=1)
        for name in ("unchanged", "little", "behind"):
            checks.real(name, getattr(self, name), above=0)
        for name in ("linear", "quadratic"):
            bounds = tuple(getattr(self, name))
            if len(bounds) != 2 or not bounds[0] < bounds[1]:
                raise ValueError(f"{name} must be two numbers, the smaller one first, got {bounds!r}")
            object.__setattr__(self, name, bounds)

    @classmethod
    def of(cls, namespace: Mapping[str, Any]) -> Self:
        """Return the margins that a notebook's ``globals()`` hold: variables named as a field."""
        return cls(**{field.name: namespace[field.name] for field in dataclasses.fields(cls)})

    @property
    def changed(self) -> dict[str, Any]:
        """The margins that are not the registered ones."""
        return {name: value for name, value in dataclasses.asdict(self).items() if value != getattr(REGISTERED, name)}


REGISTERED = Margins()

Part = tuple[str, str, Test]  # a view, what is compared, and the test


# ---- what a generation costs: C1, C2


def growth(optimizers: pd.DataFrame, at_least: int = LARGE) -> pd.DataFrame:
    """Return the slopes of time and memory of each method and dtype on one thread, of sizes from `at_least` on."""
    rows = optimizers[(optimizers["status"] == "ok") & (optimizers["threads"] == 1) & (optimizers["n"] >= at_least)]
    fits = {name: slopes(rows, ["method", "dtype"], column) for name, column in COSTS.items()}
    found = pd.concat(fits, names=["cost", None]).reset_index("cost")
    return found[["method", "dtype", "cost", "sizes", "from n", "to n", "slope"]]


def _grows(
    optimizers: pd.DataFrame, method: str, costs: Iterable[str], at_least: int, bounds: tuple[float, float]
) -> Iterator[Part]:
    """Compare the slopes over the last decade of n with bounds."""
    own = optimizers[(optimizers["method"] == method) & (optimizers["status"] == "ok")]
    last = own[10 * own["n"] >= own.groupby("dtype")["n"].transform("max")]
    fits = growth(last, at_least)
    for cost in costs:
        rows = fits[fits["cost"] == cost]
        if rows.empty:
            yield "both", cost, _slope(np.nan, 0, bounds)
        for dtype, n, slope in zip(rows["dtype"], rows["sizes"], rows["slope"], strict=True):
            yield "both", f"{cost}, {dtype}", _slope(slope, n, bounds)


def _slope(slope: float, sizes: int, bounds: tuple[float, float]) -> Test:
    """Return a slope: no runs are behind it that could scatter, so it has neither an interval nor a p."""
    return Test(slope, np.nan, np.nan, *bounds, "slope", sizes, "least squares", np.nan)


def c1(optimizers: pd.DataFrame, *, linear: tuple[float, float]) -> Iterator[Part]:
    """LEA-MVD's time and memory grow as O(n)."""
    return _grows(optimizers, "leamvd", COSTS, LARGE, linear)


def c2(optimizers: pd.DataFrame, *, quadratic: tuple[float, float]) -> Iterator[Part]:
    """Memory of CMA-ES grows as O(n^2). Time decides nothing: pycma seldom decomposes its matrix."""
    return _grows(optimizers, "pycma full", ["memory"], QUADRATIC_FROM, quadratic)


# ---- the two experiments: C3-C10


def c3(small: pd.DataFrame, *, unchanged: float) -> Iterator[Part]:
    """CMA-ES and LEA-MVD leave the start solution of RBM 1 as it is."""
    return _changes("both", small, 1, ("cma-es", "lea-mvd"), unchanged)


def c4(small: pd.DataFrame) -> Iterator[Part]:
    """Both evolutionary methods end below contrastive divergence in RBM 2 and 3."""
    return _pairs(small, [("cma-es", "cd"), ("lea-mvd", "cd")])


def c5(small: pd.DataFrame) -> Iterator[Part]:
    """LEA-MVD ends below CMA-ES and contrastive divergence in RBM 2 and 3."""
    return _pairs(small, [("lea-mvd", "cma-es"), ("lea-mvd", "cd")])


def c6(large: pd.DataFrame, *, little: float) -> Iterator[Part]:
    """Neither method changes its error of RBM 1 much after the first iteration."""
    return _changes("both", large, 1, ("cd", "lea-mvd"), little, since=1)


def c7(large: pd.DataFrame, *, factor: float) -> Iterator[Part]:
    """RBM 2 ends at the printed errors; for the conclusion, LEA-MVD below contrastive divergence and the constant."""
    yield from _numbers(large, [("cd", 2), ("lea-mvd", 2)], factor)
    yield from _superior(large, 2)


def c8(large: pd.DataFrame, *, factor: float, little: float) -> Iterator[Part]:
    """LEA-MVD ends at the printed error of RBM 3, and contrastive divergence stays where it was; conclusion as C7."""
    yield from _numbers(large, [("lea-mvd", 3)], factor)
    yield from _changes("as printed", large, 3, ("cd",), little, since=1)
    yield from _superior(large, 3)


def c9(small: pd.DataFrame, large: pd.DataFrame, *, factor: float) -> Iterator[Part]:
    """Errors per image are larger at 28 x 28; for the conclusion, errors per visible unit are alike."""
    sizes = [_by_cell(final(table)) for table in (small, large)]
    for layer in (1, 2, 3):
        for method in ("cd", "lea-mvd"):
            ends = [_cell(size, "own", layer, method) for size in sizes]
            per_image = [end["mean_field"] / end["n_images"] for end in ends]
            per_unit = [error / end["n_visible"] for error, end in zip(per_image, ends, strict=True)]
            part = f"RBM {layer}, {method}"
            yield "as printed", part, larger(per_image[1], per_image[0])
            yield "conclusion", part, alike(per_unit[1], per_unit[0], factor)


def c10(small: pd.DataFrame, *, unchanged: float) -> Iterator[Part]:
    """Contrastive divergence's error, its logarithm that is, has stopped falling over the last epochs."""
    cells = _by_cell(small)
    for layer in (1, 2, 3):
        runs = _cell(cells, "own", layer, "cd")
        last = runs[runs["iteration"] > runs["iteration"].max() - LAST]
        change = {
            seed: -100 * LAST * np.polyfit(run["iteration"], np.log(run["mean_field"]), 1)[0]
            for seed, run in last.groupby(level="seed")
        }
        part = f"RBM {layer}, cd"
        yield "both", part, within(pd.Series(change, dtype=float), -unchanged, unchanged)


# ---- studies of their own: C11, C12, C15


def c11(readings: pd.DataFrame) -> Iterator[Part]:
    """LEA-MVD by default ends below itself without P, without C_ani, and with a C_ani that is not made orthogonal."""
    ends = _by_cell(final(readings))
    for part, setting in ABLATED.items():
        name, test = hardest(_beside(ends, [setting], 1.0))
        yield "both", f"{part}: {name}", test


def c12(readings: pd.DataFrame, *, behind: float) -> Iterator[Part]:
    """No other setting ends more than a margin below the default's."""
    ends = _by_cell(final(readings))
    for part, settings in ALTERNATIVES.items():
        name, test = hardest(_beside(ends, settings, 1 + behind / 100))
        yield "both", f"{part}: {name}", test


def _beside(ends: pd.DataFrame, settings: Iterable[str], bound: float) -> Iterator[tuple[str, Test]]:
    """Compare the default's errors with those of other settings in every layer."""
    for layer in (1, 2, 3):
        default = _cell(ends, "shared", layer, "lea-mvd")["mean_field"]
        for setting in settings:
            other = _cell(ends, "shared", layer, f"lea-mvd:{setting}")["mean_field"]
            yield f"RBM {layer}, {setting.replace('+', ' + ')}", below(default, other, bound)


def c15(classification: pd.DataFrame) -> Iterator[Part]:
    """Fine-tuned from the stack of LEA-MVD a classifier errs less than from that of contrastive divergence."""
    run = ["study", "method", "seed"]
    last = classification["epoch"] == classification.groupby(run)["epoch"].transform("max")
    error = classification[last].set_index(run)["test_error"].sort_index()
    for study in ("mnist-7x7", "mnist-28x28"):
        lea, cd = (error.loc[(study, method) : (study, method)].droplevel([0, 1]) for method in ("lea-mvd", "cd"))
        yield "both", f"{study}, lea-mvd / cd", below(lea, cd)


# ---- parts that several claims have


def _by_cell(table: pd.DataFrame) -> pd.DataFrame:
    """Return records in which `_cell` finds its rows quickly."""
    return table.set_index(["inputs", "layer", "method", "seed"]).sort_index()


def _cell(indexed: pd.DataFrame, *cell: str | int) -> pd.DataFrame:
    """Return the rows with these inputs, layer and method, by seed; none where they are missing."""
    return indexed.loc[cell:cell].droplevel([0, 1, 2])


def _changes(
    view: str, table: pd.DataFrame, layer: int, methods: Iterable[str], margin: float, *, since: int = 0
) -> Iterator[Part]:
    """Test whether errors at the end are those of an iteration, but for a margin in percent."""
    firsts, ends = _by_cell(table[table["iteration"] == since]), _by_cell(final(table))
    for method in methods:
        first, end = (_cell(rows, "own", layer, method)["mean_field"] for rows in (firsts, ends))
        gain = 100 * (1 - end / first)
        yield view, f"RBM {layer}, {method}", within(gain, -margin, margin)


def _pairs(table: pd.DataFrame, pairs: Iterable[tuple[str, str]]) -> Iterator[Part]:
    ends = _by_cell(final(table))
    for view, (inputs, measure) in VIEWS.items():
        for layer in (2, 3):
            for method, baseline in pairs:
                a, b = (_cell(ends, inputs, layer, name)[measure] for name in (method, baseline))
                yield view, f"RBM {layer}, {method} / {baseline}", below(a, b)


def _numbers(table: pd.DataFrame, cells: Iterable[tuple[str, int]], factor: float) -> Iterator[Part]:
    ends = _by_cell(final(table))
    for method, layer in cells:
        end, number = _cell(ends, "own", layer, method), PRINTED[method, layer]
        per_10000 = 1e4 * end["mean_field"] / end["n_images"]
        yield "as printed", f"RBM {layer}, {method} / {number:,.0f}", near(per_10000, number, factor)


def _superior(table: pd.DataFrame, layer: int) -> Iterator[Part]:
    inputs, measure = VIEWS["conclusion"]
    ends = _by_cell(final(table))
    lea, cd = (_cell(ends, inputs, layer, method)[measure] for method in ("lea-mvd", "cd"))
    for name, baseline in {"cd": cd, "constant image": pd.Series(1.0, lea.index)}.items():
        yield "conclusion", f"RBM {layer}, lea-mvd / {name}", below(lea, baseline)
