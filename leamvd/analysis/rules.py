"""The paper's claims with their parts, the rules that decide these, and the margins registered before the runs.

The book's table of rules says the same in words. All methods of a claim are scored by the same measure, at the last of
as many iterations. A part whose runs are missing has a test of no runs.

A rule takes the tables of its studies, each indexed by `by_cell`, what it compares, and a margin if it has one; it
yields the name of what is compared and its effect.
"""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd.analysis.costs import COSTS, LARGE, growth
from leamvd.analysis.statistics import Effect, hardest, paired, share, unpaired
from leamvd.experiments.methods import Method

LAST = 10
"""Epochs over which contrastive divergence should have stopped changing (C10)."""

PRINTED = {("cd", 2): 50_000.0, ("lea-mvd", 2): 5_000.0, ("lea-mvd", 3): 900.0}
"""Errors that the paper gives in figures or words, by method and layer of 28 x 28; taken to be of 10,000 images."""

SIGMA0 = 0.1
"""The paper's first standard deviation."""

VIEWS = {"as printed": ("own", "mean_field"), "conclusion": ("shared", "mean_field_ratio")}
"""Inputs and measure of each view."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Margins:
    """Level and margins; the defaults were registered before the runs."""

    level: float = 0.05  # of significance, for all tests together
    unchanged: float = 1.0  # percent: a mean change of an error that is shown to be smaller is none (C3, C10)
    little: float = 10.0  # percent: one that is shown to be smaller is no significant one (C6, C8)
    factor: float = 2.0  # within which an error is a printed number, or alike per visible unit (C7, C8, C9)
    behind: float = 10.0  # percent by which another setting's error over the default's may be better (C12)
    linear: tuple[float, float] = (0.95, 1.05)  # slopes in double logarithmic scale that count as O(n) (C1)
    quadratic: tuple[float, float] = (1.8, 2.2)  # and as O(n^2) (C2)

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

Tests = Iterator[tuple[str, Effect]]


def by_cell(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table indexed by what tells its runs apart, so that groups of runs are found at once, in their order."""
    names = [name for name in ("study", "inputs", "layer", "method", "seed") if name in table]
    steps = [name for name in ("iteration", "epoch") if name in table]
    return table.sort_values([*names, *steps], kind="stable").set_index(names)


def _runs(table: pd.DataFrame, *cell: str | int) -> pd.DataFrame:
    """Return the rows of one group of runs, by seed; none where they are missing."""
    return table.loc[cell:cell].droplevel(list(range(len(cell))))


def _ends(table: pd.DataFrame, *cell: str | int) -> pd.DataFrame:
    """Return the last row of each run of a group."""
    runs = _runs(table, *cell)
    return runs[~runs.index.duplicated(keep="last")]


def grows(optimizers: pd.DataFrame, method: str, cost: str, at_least: int, bounds: tuple[float, float]) -> Tests:
    """Test whether a cost grows by a power of the number of variables within bounds, over the last decade.

    Each dtype has a part. No runs are behind a slope that could scatter, so it has neither an interval nor a p.
    """
    own = optimizers[(optimizers.index == method) & (optimizers["status"] == "ok")].reset_index()
    last = own[10 * own["n"] >= own.groupby("dtype")["n"].transform("max")]
    fits = growth(last, at_least).query("cost == @cost")
    found = list(zip(cost + ", " + fits["dtype"], fits["slope"], fits["sizes"], strict=True))
    for name, slope, sizes in found or [(cost, np.nan, 0)]:
        yield name, Effect(slope, np.nan, np.nan, *bounds, "slope", sizes, "least squares", np.nan)


def ends_lower(table: pd.DataFrame, inputs: str, measure: str, layer: int, method: str, baseline: str) -> Tests:
    """Test whether a method ends below another one of the same seed."""
    a, b = (_ends(table, inputs, layer, name)[measure] for name in (method, baseline))
    yield f"RBM {layer}, {method} / {baseline}", paired(a, b, upper=1)


def ends_below_the_constant_image(table: pd.DataFrame, inputs: str, layer: int, method: str) -> Tests:
    """Test whether a method ends below the error of the constant image."""
    ratio = _ends(table, inputs, layer, method)["mean_field_ratio"]
    yield f"RBM {layer}, {method} / constant image", paired(ratio, 1.0, upper=1)


def stays(table: pd.DataFrame, layer: int, method: str, since: int, percent: float) -> Tests:
    """Test whether the error at the end is that of an iteration, within a margin."""
    runs = _runs(table, "own", layer, method)
    first, end = runs[runs["iteration"] == since], _ends(table, "own", layer, method)
    fallen = 100 * (1 - end["mean_field"] / first["mean_field"])
    yield f"RBM {layer}, {method}", paired(fallen, 0.0, "%", lower=-percent, upper=percent)


def has_converged(table: pd.DataFrame, layer: int, method: str, percent: float) -> Tests:
    """Test whether the error's logarithm has stopped falling over the last epochs, by a line fitted to each run."""
    runs = _runs(table, "own", layer, method)
    last = runs[runs["iteration"] > runs["iteration"].max() - LAST]
    slopes = {seed: np.polyfit(run["iteration"], np.log(run["mean_field"]), 1)[0] for seed, run in last.groupby("seed")}
    fallen = -100 * LAST * pd.Series(slopes, dtype=float)
    yield f"RBM {layer}, {method}", paired(fallen, 0.0, "%", lower=-percent, upper=percent)


def ends_as_printed(table: pd.DataFrame, layer: int, method: str, factor: float) -> Tests:
    """Test whether the error of 10,000 images is the printed number within a factor."""
    end, number = _ends(table, "own", layer, method), PRINTED[Method.parse(method).trainer, layer]
    effect = paired(1e4 * end["mean_field"] / end["n_images"], number, lower=1 / factor, upper=factor)
    yield f"RBM {layer}, {method} / {number:,.0f}", effect


def is_larger_per_image(small: pd.DataFrame, large: pd.DataFrame, layer: int, method: str) -> Tests:
    """Test whether the error per image is larger in the second study than in the first."""
    a, b = (_per_image(table, layer, method) for table in (large, small))
    yield f"RBM {layer}, {method}", unpaired(a, b, lower=1)


def is_alike_per_unit(small: pd.DataFrame, large: pd.DataFrame, layer: int, method: str, factor: float) -> Tests:
    """Test whether the error per visible unit is the same in both studies within a factor."""
    a, b = (
        _per_image(table, layer, method) / _ends(table, "own", layer, method)["n_visible"] for table in (large, small)
    )
    yield f"RBM {layer}, {method}", unpaired(a, b, lower=1 / factor, upper=factor)


def _per_image(table: pd.DataFrame, layer: int, method: str) -> pd.Series:
    ends = _ends(table, "own", layer, method)
    return ends["mean_field"] / ends["n_images"]


def no_setting_ends_lower(table: pd.DataFrame, name: str, settings: Sequence[str], percent: float = 0.0) -> Tests:
    """Test whether LEA-MVD ends below itself with other settings, or above within a margin, in all layers."""
    found = [
        (f"RBM {layer}, {setting.replace('+', ' + ')}", paired(default, other, upper=1 + percent / 100))
        for layer in (1, 2, 3)
        for default in [_ends(table, "shared", layer, "lea-mvd")["mean_field"]]
        for setting in settings
        for other in [_ends(table, "shared", layer, f"lea-mvd:{setting}")["mean_field"]]
    ]
    worst, effect = hardest(found)
    yield f"{name}: {worst}", effect


def classifies_better(table: pd.DataFrame, study: str, method: str, baseline: str) -> Tests:
    """Test whether a classifier that was fine-tuned from a method's stack errs less than from another method's."""
    a, b = (_ends(table, study, name)["test_error"] for name in (method, baseline))
    yield f"{study}, {method} / {baseline}", paired(a, b, upper=1)


# ---- of the claims that had no test


def escaped(table: pd.DataFrame, end: str = "end") -> pd.DataFrame:
    """Return the searches that had something to escape from, with whether they have `escaped`.

    They have where L-BFGS ends lower after them than without them; from a local minimum that is where they start.
    """
    before = "without" if "without" in table else "start"
    there = table.dropna(subset=[before])
    return there.assign(escaped=there[end] < there[before] - there["tolerance"])


def most_escape(table: pd.DataFrame, method: str, n_var: int) -> Tests:
    """Test whether more than half of the searches on functions of so many variables escape."""
    runs = escaped(_runs(table, method))
    own = runs[(runs["n_var"] == n_var) & (runs["sigma0"] == SIGMA0)]
    yield f"{n_var} variables, {method}", share(own["escaped"], lower=0.5)


def most_escape_after(table: pd.DataFrame, method: str, start: str) -> Tests:
    """Test whether more than half of the searches of RBMs escape, from one of two starts."""
    runs = escaped(_runs(table, method))
    yield f"RBM after {start}, {method}", share(runs.loc[runs["start"] == start, "escaped"], lower=0.5)


def learns(table: pd.DataFrame, method: str, network: str) -> Tests:
    """Test whether the share of wrong test images ends below half of the start's."""
    runs = _runs(table, method)
    own = runs[runs["network"] == network]
    first, end = (own[own["mark"] == mark]["test_error"] for mark in (own["mark"].min(), own["mark"].max()))
    yield f"{network}, {method} / start", paired(end, first, upper=0.5)


# ---- the claims

ABLATED = {"without P": "path=off", "without C_ani": "descent=off", "not made orthogonal": "descent=free"}
"""Parts of C11, and the setting of LEA-MVD that each compares with the default."""

TUNED = {
    "exponent 1.5": tuple(f"exponent={value}" for value in (0, 0.5, 1, 2, 3)),
    "n_elite 4": tuple(f"n_elite={value}" for value in (1, 2, 8, 12)),
    "no tuning": (
        *("population_size=12+n_gen=125", "population_size=48+n_gen=23"),  # 1,004 and 1,016 evaluations; default 1,004
        *("sigma0=0.01", "sigma0=0.03", "sigma0=0.3", "reset=0.1", "reset=initial", "reset=off"),
    ),
}
"""Parts of C12, and the settings of LEA-MVD that each compares with the default."""


class Part(NamedTuple):
    """A part of a claim."""

    view: str  # of `VIEWS`, or "both"
    studies: tuple[str, ...]  # of `leamvd.analysis.claims.RECORDED`
    rule: Callable[..., Tests]
    compared: tuple[Any, ...]  # by the rule
    margin: str = ""  # a field of `Margins`

    def within(self, margins: Margins) -> tuple[Any, ...]:
        """Return the margin of the rule, if it has one."""
        return (getattr(margins, self.margin),) if self.margin else ()

    def tests(self, tables: Iterable[pd.DataFrame], margins: Margins) -> Tests:
        """Apply the rule to the studies' tables, each indexed by `by_cell`."""
        return self.rule(*tables, *self.compared, *self.within(margins))


class Claim(NamedTuple):
    """A claim of the paper, and what decides it."""

    claim: str  # "C3"
    words: str  # the paper's
    place: str  # where the paper says it
    parts: tuple[Part, ...] = ()  # none where nothing measures it


A, D = ("mnist_7x7",), ("mnist_28x28",)


def _lower(study: tuple[str, ...], layers: Sequence[int], pairs: Sequence[tuple[str, str]]) -> tuple[Part, ...]:
    """Say that methods end below their baselines, in each view."""
    return tuple(
        Part(view, study, ends_lower, (*inputs_and_measure, layer, *pair))
        for view, inputs_and_measure in VIEWS.items()
        for layer in layers
        for pair in pairs
    )


def _superior(layer: int) -> tuple[Part, ...]:
    """Say that LEA-MVD ends below contrastive divergence and the constant image, which a conclusion rests on."""
    view, (inputs, measure) = "conclusion", VIEWS["conclusion"]
    return (
        Part(view, D, ends_lower, (inputs, measure, layer, "lea-mvd", "cd")),
        Part(view, D, ends_below_the_constant_image, (inputs, layer, "lea-mvd")),
    )


CLAIMS = (
    Claim(
        "C1",
        "requires O(n) operations and memory",
        "abstract",
        tuple(Part("both", ("linear_cost",), grows, ("leamvd", cost, LARGE), "linear") for cost in COSTS),
    ),
    Claim(
        "C2",
        "the enormous disadvantage of requiring O(n^2) memory and operations",
        "abstract",
        # time decides nothing: pycma seldom decomposes its matrix
        (Part("both", ("linear_cost",), grows, ("pycma full", "memory", 1_000), "quadratic"),),
    ),
    Claim(
        "C3",
        "this seed solution could not be improved for the first RBM",
        "first experiment",
        tuple(Part("both", A, stays, (1, method, 0), "unchanged") for method in ("cma-es", "lea-mvd")),
    ),
    Claim(
        "C4",
        "the CMA-ES and LEA-MVD achieved significantly smaller reconstruction errors than the widely-used CD",
        "first experiment",
        _lower(A, (2, 3), [("cma-es", "cd"), ("lea-mvd", "cd")]),
    ),
    Claim(
        "C5",
        "with LEA-MVD being the best of the three",
        "first experiment",
        _lower(A, (2, 3), [("lea-mvd", "cma-es"), ("lea-mvd", "cd")]),
    ),
    Claim(
        "C6",
        "neither of the algorithms managed to find a significantly better solution for the first RBM",
        "second experiment",
        tuple(Part("both", D, stays, (1, method, 1), "little") for method in ("cd", "lea-mvd")),
    ),
    Claim(
        "C7",
        "about 50,000; approximately 5,000",
        "second experiment",
        (
            Part("as printed", D, ends_as_printed, (2, "cd"), "factor"),
            Part("as printed", D, ends_as_printed, (2, "lea-mvd"), "factor"),
            *_superior(2),
        ),
    ),
    Claim(
        "C8",
        "only small improvements; approximately 900",
        "second experiment",
        (
            Part("as printed", D, ends_as_printed, (3, "lea-mvd"), "factor"),
            Part("as printed", D, stays, (3, "cd", 1), "little"),
            *_superior(3),
        ),
    ),
    Claim(
        "C9",
        "generally larger than that in the first experiment; due to the larger size of the images",
        "second experiment",
        tuple(
            Part(view, A + D, rule, (layer, method), margin)
            for layer in (1, 2, 3)
            for method in ("cd", "lea-mvd")
            for view, rule, margin in (
                ("as printed", is_larger_per_image, ""),
                ("conclusion", is_alike_per_unit, "factor"),
            )
        ),
    ),
    Claim(
        "C10",
        "converges within 50 iterations",
        "experimental setup",
        tuple(Part("both", A, has_converged, (layer, "cd"), "unchanged") for layer in (1, 2, 3)),
    ),
    Claim(
        "C11",
        "not desirable nor necessary to perform two translations in the same direction",
        "second and third components",
        tuple(
            Part("both", ("readings",), no_setting_ends_lower, (name, (setting,))) for name, setting in ABLATED.items()
        ),
    ),
    Claim(
        "C12",
        "adequately modulates the selection pressure; suggested for any problem; avoid the problem of hyper-parameter "
        "tuning",
        "first component; input parameters; conclusions",
        tuple(Part("both", ("readings",), no_setting_ends_lower, own, "behind") for own in TUNED.items()),
    ),
    Claim("C13", "can escape from local minima", "introduction"),
    Claim("C14", "a complete decoupling from the DNN architecture", "introduction"),
    Claim(
        "C15",
        "significantly superior than CD for the task of pre-training of a DBN",
        "second experiment",
        tuple(
            Part("both", ("classification",), classifies_better, (study, "lea-mvd", "cd"))
            for study in ("mnist-7x7", "mnist-28x28")
        ),
    ),
)
