"""Section 9: verdicts on the paper's claims C1 to C15.

Does what was measured support what the paper says? A claim has parts, and a part is one effect and,
except for slopes, one test. Most claims are judged twice. "As printed" repeats the paper's
comparison: LEA-MVD as printed, each method on its own inputs, by the mean-field error. "Conclusion"
asks whether one method pre-trains better than another: on shared inputs, by the ratio of the error
to that of the constant image (items E2, E7).

These are the rules that were written after the runs. What those written before them answered, and
what each correction changes, is history: it is recorded as "verdicts", and nothing computes it.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leamvd._support import checks

from . import architectures, classification, minima, results
from .layers import PRINTED
from .linear_cost import COSTS, RECORDED_AS, slopes
from .plots import GRAY, GREEN, VERMILION, legend, panels, styled
from .results import Table, read_recorded
from .statistics import Effect, by_ranks, holm, paired, power, unpaired
from .study_methods import trainer_of
from .words import named

# ---- settings

CLAIMS = {
    "C1": "requires O(n) operations and memory",
    "C2": "the enormous disadvantage of requiring O(n^2) memory and operations",
    "C3": "this seed solution could not be improved for the first RBM",
    "C4": (
        "the CMA-ES and LEA-MVD achieved significantly smaller reconstruction errors than the"
        " widely-used CD"
    ),
    "C5": "with LEA-MVD being the best of the three",
    "C6": (
        "neither of the algorithms managed to find a significantly better solution for the"
        " first RBM"
    ),
    "C7": "about 50,000; approximately 5,000",
    "C8": "only small improvements; approximately 900",
    "C9": (
        "generally larger than that in the first experiment; due to the larger size of the images"
    ),
    "C10": "converges within 50 iterations",
    "C11": (
        "not desirable nor necessary to perform two translations in the same direction; only the"
        " part that is orthogonal to the first"
    ),
    "C12": (
        "adequately modulates the selection pressure; suggested for any problem; avoid the problem"
        " of hyper-parameter tuning"
    ),
    "C13": (
        "Evolutionary Algorithms (EAs) and other population-based stochastic methods; can escape"
        " from local minima"
    ),
    "C14": (
        "one EA method could be used for a variety of DNNs by virtue of a complete decoupling from"
        " the DNN architecture"
    ),
    "C15": "significantly superior than CD for the task of pre-training of a DBN",
}
"""The paper's words. Those of C13 and C14 are about evolutionary algorithms in general."""

VIEWS = {
    "as printed": ("own", "mean_field", "lea-mvd:printed"),
    "conclusion": ("shared", "mean_field_ratio", "lea-mvd"),
}
"""The inputs, the measure and the method that stands for LEA-MVD in each view."""

EQUAL = "cma-es:n_gen=42"  # CMA-ES with 1,008 evaluations; LEA-MVD makes 1,004
NAMES = {method: named(method) for method in ("cd", "lea-mvd", "lea-mvd:printed", "cma-es")}
NAMES[EQUAL] = "CMA-ES"

ABLATED = {
    "without P": "path=off",
    "without C_ani": "descent=off",
    "not made orthogonal": "descent=free",
}
EXPONENTS = tuple(f"exponent={value}" for value in (0, 0.5, 1, 2, 3))
TUNED = ("sigma0=0.01", "sigma0=0.03", "sigma0=0.3", "reset=0.1", "reset=initial", "reset=off")

NOTHING = "–"  # of a part that compares a method with nothing else
EPOCHS = 10  # over which contrastive divergence should have stopped changing (C10)
# the smallest ratio of interest, or one over it, where no effect lies on a test's bound
SMALLEST = 1.05


@dataclass(frozen=True, kw_only=True)
class Margins:
    """Level and margins; the defaults were registered before the runs, except for those of C1 and
    C2.
    """

    level: float = 0.05  # of significance, for all tests together
    # percent: a mean change of an error that is shown to be smaller is none (C3, C10)
    unchanged: float = 1.0
    little: float = 10.0  # percent: one that is shown to be smaller is no significant one (C6, C8)
    # within which an error is a printed number, or alike per visible unit (C7, C8, C9)
    factor: float = 2.0
    # percent by which another setting's error may be better than the default's (C12)
    behind: float = 10.0
    # slopes in double logarithmic scale that count as O(n) (C1)
    linear: tuple[float, float] = (0.95, 1.05)
    quadratic: tuple[float, float] = (1.8, 2.2)  # and as O(n^2) (C2)

    def __post_init__(self) -> None:
        checks.real("level", self.level, above=0, below=1)
        checks.real("factor", self.factor, above=1, at_most=1e6)
        for name in ("unchanged", "little", "behind"):
            checks.real(name, getattr(self, name), above=0)
        for name in ("linear", "quadratic"):
            bounds = checks.several(name, getattr(self, name))
            if len(bounds) != 2 or not bounds[0] < bounds[1]:
                raise ValueError(
                    f"{name} must be two numbers, the smaller one first, got {bounds!r}"
                )
            object.__setattr__(self, name, bounds)


class Tables(NamedTuple):
    """What the claims are judged by: tables of other sections, with the controls that the rules ask
    for.
    """

    linear_cost: Table  # Section 5: time and memory
    mnist_7x7: Table  # Section 3, study A of the rules: errors by iteration
    mnist_28x28: Table  # Section 4, study D
    readings: Table  # Section 7: one setting of LEA-MVD changed at a time
    classification: Table  # Section 8: test errors by epoch of fine-tuning
    mistakes: Table  # the test images that its networks get wrong
    local_minima: Table  # Section 11: searches on functions that start in local minima
    trained_minima: Table  # and of RBMs that have been trained
    architectures: Table  # test errors of five networks, at the start and at the end


PROFILES = dict.fromkeys(("recorded", "quick", "paper"))


def tables(profile: str = "recorded") -> Tables:
    """Return the recorded tables, which are judged at every profile: quick runs decide nothing.

    Runs of your own take their place by `Tables._replace`. On shared inputs CMA-ES has as many
    evaluations as LEA-MVD in its first 42 generations; on its own, RBM 2 and 3 see other features
    then, and are among the controls.
    """
    results.profile(profile, PROFILES)
    small = read_recorded("mnist_7x7")
    first = small.query("method == 'cma-es' and inputs == 'shared' and iteration <= 42")
    small_runs = [small, read_recorded("mnist_7x7_controls"), first.assign(method=EQUAL)]
    large_runs = [read_recorded("mnist_28x28"), read_recorded("mnist_28x28_controls")]
    tuned = classification.tables()
    escapes = minima.tables()
    return Tables(
        linear_cost=read_recorded("linear_cost", "optimizers"),
        mnist_7x7=pd.concat(small_runs, ignore_index=True),
        mnist_28x28=pd.concat(large_runs, ignore_index=True),
        readings=read_recorded("readings"),
        classification=tuned.runs,
        mistakes=tuned.mistakes,
        local_minima=escapes.runs,
        trained_minima=escapes.rbms,
        architectures=read_recorded("architectures"),
    )


# ---- rules


class Part(NamedTuple):
    """A part of a claim: an effect, and what it is of."""

    where: str
    method: str
    baseline: str  # what the method is compared with
    says: str  # the effect in a sentence
    effect: Effect


class Errors(NamedTuple):
    """The errors of a study, indexed by inputs, layer, method, iteration and seed."""

    pixels: str
    runs: Table

    @classmethod
    def of(cls, pixels: str, table: pd.DataFrame) -> "Errors":
        """Return the errors of a table of runs."""
        by = ["inputs", "layer", "method", "iteration", "seed"]
        return cls(pixels, table.set_index(by).sort_index())

    def ends(self, inputs: str, layer: int, method: str) -> pd.DataFrame:
        """Return the last rows of a group of runs, by seed."""
        return self.runs.loc[(inputs, layer, method)].groupby("seed").last()

    def part(self, layer: int, method: str, baseline: str, says: str, effect: Effect) -> "Part":
        """Return an effect in one of the study's layers."""
        return Part(f"{self.pixels}, RBM {layer}", method, baseline, says, effect)

    def fallen(self, layer: int, method: str, percent: pd.Series, says: str, most: float) -> "Part":
        """Test whether an error, which falls by so many percent, is the same within a margin."""
        effect = paired(percent, 0.0, "%", lower=-most, upper=most)
        return self.part(layer, method, NOTHING, says, effect)


def grows(
    optimizers: pd.DataFrame,
    method: str,
    of: Iterable[str],
    at_least: int,
    bounds: tuple[float, float],
) -> Iterator[Part]:
    """Yield by which power of n costs grow over the last decade of n, for each dtype.

    No runs are behind a slope that could scatter, so it has neither an interval nor a p.
    """
    lines = slopes(optimizers.replace(RECORDED_AS), at_least, last_decade=True)
    lines = lines.query("method == @method")
    says = "grows like n to the power {}"
    unknown = np.nan
    for cost, line in product(of, lines.to_dict("records")):
        slope = Effect(
            line[cost], unknown, unknown, *bounds, "slope", line["sizes"], "least squares", unknown
        )
        yield Part(f"{cost}, {line['dtype']}", NAMES[method], NOTHING, says, slope)


def ends_lower(study: Errors, view: str, layer: int, method: str, baseline: str) -> Part:
    """Test whether a method ends below another one of the same seed."""
    inputs, measure, _ = VIEWS[view]
    ours = study.ends(inputs, layer, method)[measure]
    theirs = study.ends(inputs, layer, baseline)[measure]
    says = f"{NAMES[method]} ends at {{}} times the error of {NAMES[baseline]}"
    return study.part(layer, NAMES[method], NAMES[baseline], says, paired(ours, theirs, upper=1))


def stays(study: Errors, layer: int, method: str, since: int, percent: float) -> Part:
    """Test whether the error at the end is that of an iteration, within a margin."""
    first = study.runs.loc[("own", layer, method, since), "mean_field"]
    fallen = 100 * (1 - study.ends("own", layer, method)["mean_field"] / first)
    says = f"{NAMES[method]} lowers the error by {{}} %"
    return study.fallen(layer, NAMES[method], fallen, says, percent)


def has_converged(study: Errors, layer: int, percent: float) -> Part:
    """Test whether CD's log error has stopped falling over the last epochs, by a line fitted to
    each run.
    """
    logs = np.log(study.runs.loc[("own", layer, "cd"), "mean_field"].unstack("seed"))
    logs = logs[logs.index > logs.index.max() - EPOCHS]
    fallen = logs.apply(lambda log: -100 * EPOCHS * np.polyfit(logs.index, log, 1)[0])
    says = f"the error of {NAMES['cd']} falls by {{}} % over the last {EPOCHS} epochs"
    return study.fallen(layer, NAMES["cd"], fallen, says, percent)


def ends_as_printed(study: Errors, layer: int, method: str, **bounds: float) -> Part:
    """Test whether the error of 10,000 images over the printed number is within bounds."""
    end = study.ends("own", layer, method)
    number = PRINTED[trainer_of(method), layer]
    effect = paired(end.eval("1e4 * mean_field / n_images"), number, **bounds)
    baseline = f"the printed {number:,.0f}"
    says = f"{NAMES[method]} ends at {{}} times {baseline}"
    return study.part(layer, NAMES[method], baseline, says, effect)


def compares_sizes(
    small: Errors, large: Errors, layer: int, method: str, per: str, **bounds: float
) -> Part:
    """Test how many times as large the error per "image" or visible "unit" is
    in the second study.
    """
    errors = []
    for study in (large, small):
        end = study.ends("own", layer, method)
        error = end.eval("mean_field / n_images")
        if per == "unit":
            error /= end["n_visible"]
        errors.append(error)
    where = f"RBM {layer}, 28×28 / 7×7, per {per}"
    says = f"the error of {NAMES[method]} is {{}} times as large"
    return Part(where, NAMES[method], NOTHING, says, unpaired(*errors, **bounds))


def no_setting_ends_lower(
    readings: Errors, name: str, settings: Sequence[str], percent: float = 0.0
) -> Part:
    """Test whether LEA-MVD ends below itself with other settings, or above within a margin, in all
    layers.

    It is the test with the largest p: where that is met, all are.
    """
    tests = []
    for layer, given in product((1, 2, 3), settings):
        default = readings.ends("shared", layer, "lea-mvd")["mean_field"]
        other = readings.ends("shared", layer, f"lea-mvd:{given}")["mean_field"]
        effect = paired(default, other, upper=1 + percent / 100)
        says = f"LEA-MVD ends at {{}} times its error with: {named(given)}"
        tests.append(Part(f"RBM {layer}, {name}", "LEA-MVD", given, says, effect))
    return max(tests, key=lambda test: test.effect.p)


# ---- what decides

Judged = Iterator[tuple[str, str, Part]]  # claim, view and part


def registered_claims(measured: Tables, margins: Margins) -> Judged:
    """Yield the parts of the claims that the rules before the runs judge too; their tests are a
    family.
    """
    small = Errors.of("7×7 pixels", measured.mnist_7x7)
    large = Errors.of("28×28 pixels", measured.mnist_28x28)
    readings = Errors.of("7×7 pixels", measured.readings)
    within = {"lower": 1 / margins.factor, "upper": margins.factor}
    ours = {"as printed": "lea-mvd:printed", "conclusion": "lea-mvd"}
    layers = (1, 2, 3)

    for part in grows(measured.linear_cost, "lea-mvd", COSTS, 10_000, margins.linear):
        yield "C1", "both", part
    for part in grows(measured.linear_cost, "cma-es", ["memory"], 1_000, margins.quadratic):
        yield "C2", "both", part

    for view, method in (("both", EQUAL), *ours.items()):
        yield "C3", view, stays(small, 1, method, 0, margins.unchanged)
    for (view, method), layer in product(ours.items(), (2, 3)):
        yield "C4", view, ends_lower(small, view, layer, EQUAL, "cd")
        yield "C4", view, ends_lower(small, view, layer, method, "cd")
    for (view, method), layer in product(ours.items(), (2, 3)):
        yield "C5", view, ends_lower(small, view, layer, method, EQUAL)
        yield "C5", view, ends_lower(small, view, layer, method, "cd")

    for view, method in (("both", "cd"), *ours.items()):
        yield "C6", view, stays(large, 1, method, 1, margins.little)
    for method in ("cd", "lea-mvd:printed"):
        yield "C7", "as printed", ends_as_printed(large, 2, method, **within)
    yield "C7", "conclusion", ends_lower(large, "conclusion", 2, "lea-mvd", "cd")
    yield "C8", "as printed", ends_as_printed(large, 3, "lea-mvd:printed", **within)
    yield "C8", "as printed", stays(large, 3, "cd", 1, margins.little)
    yield "C8", "conclusion", ends_lower(large, "conclusion", 3, "lea-mvd", "cd")

    for layer in layers:
        for method in ("cd", "lea-mvd:printed"):
            yield "C9", "as printed", compares_sizes(small, large, layer, method, "image", lower=1)
        for view, method in (("both", "cd"), *ours.items()):  # as much larger as the images are
            yield "C9", view, compares_sizes(small, large, layer, method, "unit", **within)
    for layer in layers:
        yield "C10", "both", has_converged(small, layer, margins.unchanged)
    for name, setting in ABLATED.items():
        yield "C11", "both", no_setting_ends_lower(readings, name, [setting])
    yield "C12", "both", no_setting_ends_lower(readings, "exponent 1.5", EXPONENTS, margins.behind)
    yield "C12", "both", no_setting_ends_lower(readings, "no tuning", TUNED, margins.behind)
    classified = classification.classify_better(measured.classification, measured.mistakes)
    for study, effect in classified.items():
        where = f"classifier, {study.removeprefix('mnist-').replace('x', '×')} pixels"
        says = f"after LEA-MVD {{}} times as many images are wrong as after {NAMES['cd']}"
        yield "C15", "both", Part(where, "LEA-MVD", NAMES["cd"], says, effect)


def later_claims(measured: Tables) -> Judged:
    """Yield the parts of the claims that had no test before the runs; their tests are another
    family.
    """
    searches = minima.Tables(measured.local_minima, measured.trained_minima)
    for where, effect in minima.most_escape(searches).items():
        says = "the share of searches that escape is {}"
        yield "C13", "both", Part(where, "LEA-MVD", NOTHING, says, effect)
    for where, effect in architectures.learns(measured.architectures).items():
        says = "{} times as many images are wrong as at the start"
        yield "C14", "both", Part(where, "LEA-MVD", "its start", says, effect)


def evidence(measured: Tables, margins: Margins = Margins()) -> pd.DataFrame:
    """Return every part of every claim: its effect, its test, and whether it is "met": yes, no or
    undecided.

    `p` is corrected by Holm's method over the family of the claim's tests.
    """
    registered = judged([*registered_claims(measured, margins)], margins.level)
    later = judged([*later_claims(measured)], margins.level)
    rows = pd.concat([registered, later])
    return rows.sort_values(
        "claim", key=lambda claims: claims.str[1:].astype(int), kind="stable", ignore_index=True
    )


def judged(parts: list[tuple[str, str, Part]], level: float) -> pd.DataFrame:
    """Return a family of parts as rows.

    A search that stays at its start in all runs is a test, but it decides nothing.

    The effect of a rank test is the estimate of Hodges and Lehmann, with the interval that belongs
    to the test.
    """
    names = ["claim", "view", *Part._fields[:-1], *Effect._fields]
    table = []
    for claim, view, part in parts:
        table.append((claim, view, *part[:-1], *part.effect))
    rows = pd.DataFrame(table, columns=names)
    slope = rows["unit"] == "slope"
    same = ["view", "where", "method", "baseline", "test"]  # C4 and C5 share tests
    p = rows[~slope].drop_duplicates(same).set_index(same)["p"]
    corrected = pd.DataFrame({"p": holm(p.to_numpy())}, p.index)
    corrected["level"] = level / (len(p) - p.rank(method="first") + 1)
    rows = rows.drop(columns="p").join(corrected, on=same)
    rows["power"] = np.nan
    for at in rows.index[rows["error"] > 0]:
        rows.loc[at, "power"] = power(parts[at][2].effect, rows.loc[at, "level"], SMALLEST)
    rows = by_ranks(rows)
    rows["met"] = _met(rows, level, len(p))
    moved = (rows["effect"] != 0) | (rows["error"] != 0)
    return rows.loc[moved, [*names[: names.index("p") + 1], "met"]]


def _met(rows: pd.DataFrame, level: float, n_tests: int) -> pd.Series:
    """Return which parts of a family are met: what is further down decides before what is above."""
    slope = rows["unit"] == "slope"
    contradicted = rows.eval("low > upper or high < lower")
    hardly_shown = holds_bound(rows) | (rows["power"] < 0.5)
    within = rows["effect"].between(rows["lower"], rows["upper"])
    # such runs could not be enough
    few = rows["effect"].isna().where(slope, 0.5 ** rows["runs"] * n_tests >= level)
    met = pd.Series("no", rows.index)
    met[(rows["error"] > 0) & ~contradicted & hardly_shown] = "undecided"
    met[within.where(slope, rows["p"] < level)] = "yes"
    met[few] = "too few runs"
    return met


def by_one_update(margins: Margins = Margins()) -> pd.DataFrame:
    """Return what C3 to C10 would be where an iteration is one update on all images (item E12), by
    its settings.

    A part counts where its effect lies within its bounds: three runs at 28x28 pixels decide no
    test. CMA-ES is its separable form.
    """
    by = ["final_momentum", "learning_rate"]
    equal = {"method": {f"sep-{EQUAL}": EQUAL}}
    small = read_recorded("one_update_7x7").replace(equal)
    large = dict([*read_recorded("one_update_28x28").replace(equal).groupby(by)])
    others = tables()
    rows = []
    for (momentum, rate), runs in small.groupby(by):
        measured = others._replace(mnist_7x7=runs, mnist_28x28=large[momentum, rate])
        parts = [*registered_claims(measured, margins)]
        for claim, view in product([*CLAIMS][2:10], VIEWS):
            met = []
            for name, seen, part in parts:
                if name == claim and seen in (view, "both"):
                    met.append(part.effect.lower <= part.effect.effect <= part.effect.upper)
            rows.append((claim, view, f"rate {rate}, momentum {momentum}", _counted(met)))
    return pd.DataFrame(rows, columns=["claim", "view", "setting", "answer"])


def bounded(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `evidence` with their bounds, and what they are about, in words."""
    parts = []
    bounds = []
    for row in rows.itertuples():
        part = f"{row.where}, {row.method}"
        if row.baseline != NOTHING:
            part += f" / {named(row.baseline)}"
        parts.append(part)
        if np.isneginf(row.lower):
            bounds.append(f"below {row.upper:g}")
        elif np.isposinf(row.upper):
            bounds.append(f"above {row.lower:g}")
        else:
            bounds.append(f"{row.lower:g} to {row.upper:g}")
    return rows.assign(part=parts, bounds=bounds)


def holds_bound(rows: pd.DataFrame) -> pd.Series:
    """Return which parts have an interval that holds a bound: more runs could decide these."""
    ends = (rows["low"], rows["high"])
    return rows["lower"].between(*ends) | rows["upper"].between(*ends)


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the answer to every claim in each view, from `evidence`, a row for each claim.

    A claim is reproduced where all of its parts are met, partly where some are, not reproduced
    where none is, undecided where that hangs on undecided parts, and not testable where a part has
    too few runs. The last column has the effect that is furthest from what the claim asks for.
    """
    table = []
    for claim, words in CLAIMS.items():
        parts = rows.query("claim == @claim")
        printed = parts.query("view != 'conclusion'")
        conclusion = parts.query("view != 'as printed'")
        met = (answer(printed["met"]), answer(conclusion["met"]))
        table.append((claim, words, *met, _furthest(printed)))
    return pd.DataFrame(
        table,
        columns=["claim", "in the paper's words", *VIEWS, "furthest from the claim, as printed"],
    ).set_index("claim")


def answer(met: pd.Series) -> str:
    """Return the answer to a claim whose parts are met: "yes", "no",
    "undecided" or "too few runs".
    """
    if met.eq("too few runs").any():
        return "not testable"
    least = _counted(met.eq("yes"))
    most = _counted(met.isin(["yes", "undecided"]))
    return least if least == most else "undecided"


def _counted(met: Collection[bool]) -> str:
    if all(met):
        return "reproduced"
    return "partly" if any(met) else "not reproduced"


def _furthest(rows: pd.DataFrame) -> str:
    """Return in words the effect that is furthest beyond its bounds: by a
    factor, or in parts of 1.
    """
    effect = rows["effect"]
    ratio = rows["unit"] == "ratio"
    above = (effect / rows["upper"]).where(ratio, 1 + (effect - rows["upper"]) / 100)
    under = (rows["lower"] / effect).where(ratio, 1 + (rows["lower"] - effect) / 100)
    beyond = np.fmax(above, under).fillna(np.inf)
    row = rows.iloc[int(beyond.argmax())]
    number = f"{row['effect']:.3g}"
    if np.isfinite(row["low"]):
        number += f" ({row['low']:.3g} to {row['high']:.3g})"
    return f"{row['where']}: " + row["says"].format(number)


# ---- figures

LOOKS = {  # color, marker and label of a part
    "yes": (GREEN, "o", "met"),
    "no": (VERMILION, "x", "not met"),
    "undecided": (GRAY, "s", "undecided"),
    "too few runs": (GRAY, "D", "too few runs"),
}
SHORT = {
    "C1": "linear cost",
    "C2": "CMA-ES: quadratic",
    "C3": "7×7, RBM 1: no gain",
    "C4": "7×7: both below CD",
    "C5": "7×7: LEA-MVD lowest",
    "C6": "28×28, RBM 1: no gain",
    "C7": "28×28, RBM 2",
    "C8": "28×28, RBM 3",
    "C9": "larger, as images are",
    "C10": "CD converges",
    "C11": "second direction",
    "C12": "needs no tuning",
    "C13": "escapes from minima",
    "C14": "any network",
    "C15": "classifies better",
}
OFFSETS = {"as printed": -0.25, "both": 0.0, "conclusion": 0.25}  # of views, in rows
EDGE = 10.0  # half widths: what is further away is drawn there


def inside(rows: pd.DataFrame) -> pd.Series:
    """Return how far each effect is within its bounds, in half widths of its 95 % interval,
    negative outside; of two bounds the nearer one counts.

    Ratios are compared by their logarithms. NaN where there is no interval.
    """
    ends = rows[["effect", "low", "high", "lower", "upper"]].astype(float)
    ratio = rows["unit"] == "ratio"
    with np.errstate(divide="ignore"):  # a ratio without a lower bound is above zero
        ends[ratio] = np.log(ends[ratio].clip(lower=0))
    room = np.minimum(ends["effect"] - ends["lower"], ends["upper"] - ends["effect"])
    return 2 * room / (ends["high"] - ends["low"])


@styled
def plot_parts(rows: pd.DataFrame) -> Figure:
    """Plot `inside` for every part, a row for each claim with its answer as printed at the right.

    What has no interval stands at the edge. Above the middle of a row are parts that are judged as
    printed, below those of the conclusion.
    """
    claims = [*CLAIMS]
    found = answers(rows)["as printed"]
    figure, ((ax,),) = panels(1, 1, height=6.2)
    edges = rows["met"].map({"yes": EDGE, "no": -EDGE})
    drawn = rows.assign(x=inside(rows).fillna(edges).clip(-EDGE, EDGE))
    drawn["y"] = rows["claim"].map(claims.index) + rows["view"].map(OFFSETS)
    for met, parts in drawn.groupby("met"):
        color, marker, label = LOOKS[met]
        ax.plot(parts["x"], parts["y"], marker, color=color, label=label, clip_on=False)
    ax.axvline(0, color="black", linewidth=0.8)
    for place, claim in enumerate(claims):
        ax.text(1.04, place, found[claim], transform=ax.get_yaxis_transform(), va="center")
    ax.set_yticks(range(len(claims)), [f"{claim} {SHORT[claim]}" for claim in claims])
    ax.set(xlim=(-EDGE, EDGE), ylim=(len(claims) - 0.5, -0.5))
    ax.set(xlabel="half widths of the interval from the bound", title="not met  |  met")
    legend(figure)
    return figure
