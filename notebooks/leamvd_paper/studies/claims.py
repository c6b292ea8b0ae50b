"""Section 9: verdicts on the paper's claims C1 to C15.

Does what was measured support what the paper says? A claim has parts, and a part is one effect and,
except for slopes, one test. Most claims are judged twice. "As printed" repeats the paper's
comparison: LEA-MVD as printed, each method on its own inputs, by the mean-field error. "Conclusion"
asks whether one method pre-trains better than another: on shared inputs, by the ratio of the error
to that of the constant image (items E2, E7).

These are the rules that were written after the runs. What those written before them answered, and
what each correction changes, is history: it is recorded as "verdicts", and nothing computes it.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from leamvd._support import checks

from . import architectures, classification, minima, results
from .layers import PRINTED, last
from .linear_cost import COSTS, RECORDED_AS, costs, slopes
from .plots import GRAY, GREEN, VERMILION, legend, log_scale, panels, styled
from .results import read_recorded
from .statistics import Effect, by_ranks, compared, holm, paired, power, unpaired
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
NAMES = {method: named(method) for method in ("cd", "lea-mvd", "lea-mvd:printed", "cma-es")} | {
    EQUAL: "CMA-ES"
}

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


@dataclasses.dataclass(frozen=True, kw_only=True)
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

    linear_cost: pd.DataFrame  # Section 5: time and memory
    mnist_7x7: pd.DataFrame  # Section 3, study A of the rules: errors by iteration
    mnist_28x28: pd.DataFrame  # Section 4, study D
    readings: pd.DataFrame  # Section 7: one setting of LEA-MVD changed at a time
    classification: pd.DataFrame  # Section 8: test errors by epoch of fine-tuning
    mistakes: pd.DataFrame  # the test images that its networks get wrong
    local_minima: pd.DataFrame  # Section 11: searches on functions that start in local minima
    trained_minima: pd.DataFrame  # and of RBMs that have been trained
    architectures: pd.DataFrame  # test errors of five networks, at the start and at the end


PROFILES = dict.fromkeys(("recorded", "quick", "paper"))


def tables(profile: str = "recorded") -> Tables:
    """Return the recorded tables, which are judged at every profile: quick runs decide nothing.

    Runs of your own take their place by `Tables._replace`. On shared inputs CMA-ES has as many
    evaluations as LEA-MVD in its first 42 generations; on its own, RBM 2 and 3 see other features
    then, and are among the controls.
    """
    results.profile(profile, PROFILES)
    parts = (
        [read_recorded(f"{name}{end}") for end in ("", "_controls")]
        for name in ("mnist_7x7", "mnist_28x28")
    )
    small, large = (pd.concat(rows, ignore_index=True) for rows in parts)
    first = small.query("method == 'cma-es' and inputs == 'shared' and iteration <= 42").assign(
        method=EQUAL
    )
    tuned, escapes = classification.tables(), minima.tables()
    return Tables(
        linear_cost=read_recorded("linear_cost", "optimizers"),
        mnist_7x7=pd.concat([small, first], ignore_index=True),
        mnist_28x28=large,
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
    runs: pd.DataFrame

    @classmethod
    def of(cls, pixels: str, table: pd.DataFrame) -> "Errors":
        """Return the errors of a table of runs."""
        return cls(
            pixels, table.set_index(["inputs", "layer", "method", "iteration", "seed"]).sort_index()
        )

    def ends(self, inputs: str, layer: int, method: str) -> pd.DataFrame:
        """Return the last rows of a group of runs, by seed."""
        return self.runs.loc[(inputs, layer, method)].groupby("seed").last()


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
    lines = slopes(optimizers.replace(RECORDED_AS), at_least, last_decade=True).query(
        "method == @method"
    )
    for cost, line in product(of, lines.to_dict("records")):
        slope = Effect(
            line[cost], np.nan, np.nan, *bounds, "slope", line["sizes"], "least squares", np.nan
        )
        yield Part(
            f"{cost}, {line['dtype']}",
            NAMES[method],
            NOTHING,
            "grows like n to the power {}",
            slope,
        )


def ends_lower(study: Errors, view: str, layer: int, method: str, baseline: str) -> Part:
    """Test whether a method ends below another one of the same seed."""
    inputs, measure, _ = VIEWS[view]
    a, b = (study.ends(inputs, layer, name)[measure] for name in (method, baseline))
    says = f"{NAMES[method]} ends at {{}} times the error of {NAMES[baseline]}"
    return Part(
        f"{study.pixels}, RBM {layer}", NAMES[method], NAMES[baseline], says, paired(a, b, upper=1)
    )


def stays(study: Errors, layer: int, method: str, since: int, percent: float) -> Part:
    """Test whether the error at the end is that of an iteration, within a margin."""
    first = study.runs.loc[("own", layer, method, since), "mean_field"]
    fallen = 100 * (1 - study.ends("own", layer, method)["mean_field"] / first)
    says = f"{NAMES[method]} lowers the error by {{}} %"
    effect = paired(fallen, 0.0, "%", lower=-percent, upper=percent)
    return Part(f"{study.pixels}, RBM {layer}", NAMES[method], NOTHING, says, effect)


def has_converged(study: Errors, layer: int, percent: float) -> Part:
    """Test whether CD's log error has stopped falling over the last epochs, by a line fitted to
    each run.
    """
    logs = np.log(study.runs.loc[("own", layer, "cd"), "mean_field"].unstack("seed"))
    logs = logs[logs.index > logs.index.max() - EPOCHS]
    fallen = logs.apply(lambda log: -100 * EPOCHS * np.polyfit(logs.index, log, 1)[0])
    effect = paired(fallen, 0.0, "%", lower=-percent, upper=percent)
    says = f"the error of {NAMES['cd']} falls by {{}} % over the last {EPOCHS} epochs"
    return Part(f"{study.pixels}, RBM {layer}", NAMES["cd"], NOTHING, says, effect)


def ends_as_printed(study: Errors, layer: int, method: str, **bounds: float) -> Part:
    """Test whether the error of 10,000 images over the printed number is within bounds."""
    end, number = study.ends("own", layer, method), PRINTED[trainer_of(method), layer]
    effect = paired(1e4 * end["mean_field"] / end["n_images"], number, **bounds)
    says = f"{NAMES[method]} ends at {{}} times the printed {number:,.0f}"
    return Part(
        f"{study.pixels}, RBM {layer}", NAMES[method], f"the printed {number:,.0f}", says, effect
    )


def compares_sizes(
    small: Errors, large: Errors, layer: int, method: str, per: str, **bounds: float
) -> Part:
    """Test how many times as large the error per "image" or visible "unit" is
    in the second study.
    """
    ends = (study.ends("own", layer, method) for study in (large, small))
    a, b = (
        end["mean_field"] / end["n_images"] / (end["n_visible"] if per == "unit" else 1)
        for end in ends
    )
    says = f"the error of {NAMES[method]} is {{}} times as large"
    return Part(
        f"RBM {layer}, 28×28 / 7×7, per {per}",
        NAMES[method],
        NOTHING,
        says,
        unpaired(a, b, **bounds),
    )


def no_setting_ends_lower(
    readings: Errors, name: str, settings: Sequence[str], percent: float = 0.0
) -> Part:
    """Test whether LEA-MVD ends below itself with other settings, or above within a margin, in all
    layers.

    It is the test with the largest p: where that is met, all are.
    """
    tests = {}
    for layer, given in product((1, 2, 3), settings):
        default, other = (
            readings.ends("shared", layer, name) for name in ("lea-mvd", f"lea-mvd:{given}")
        )
        tests[layer, given] = paired(
            default["mean_field"], other["mean_field"], upper=1 + percent / 100
        )
    (layer, given), effect = max(tests.items(), key=lambda test: test[1].p)
    says = f"LEA-MVD ends at {{}} times its error with: {named(given)}"
    return Part(f"RBM {layer}, {name}", "LEA-MVD", given, says, effect)


# ---- what decides

Judged = Iterator[tuple[str, str, Part]]  # claim, view and part


def registered_claims(measured: Tables, margins: Margins) -> Judged:
    """Yield the parts of the claims that the rules before the runs judge too; their tests are a
    family.
    """
    small, large = (
        Errors.of("7×7 pixels", measured.mnist_7x7),
        Errors.of("28×28 pixels", measured.mnist_28x28),
    )
    readings = Errors.of("7×7 pixels", measured.readings)
    within = {"lower": 1 / margins.factor, "upper": margins.factor}
    ours, layers = {view: method for view, (_, _, method) in VIEWS.items()}, (1, 2, 3)
    for part in grows(measured.linear_cost, "lea-mvd", COSTS, 10_000, margins.linear):
        yield "C1", "both", part
    for part in grows(measured.linear_cost, "cma-es", ["memory"], 1_000, margins.quadratic):
        yield "C2", "both", part
    for view, method in (("both", EQUAL), *ours.items()):
        yield "C3", view, stays(small, 1, method, 0, margins.unchanged)
    for view, layer in product(VIEWS, layers[1:]):
        for method in (EQUAL, ours[view]):
            yield "C4", view, ends_lower(small, view, layer, method, "cd")
    for view, layer, baseline in product(VIEWS, layers[1:], (EQUAL, "cd")):
        yield "C5", view, ends_lower(small, view, layer, ours[view], baseline)
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
    for study, effect in classification.classify_better(
        measured.classification, measured.mistakes
    ).items():
        where = f"classifier, {study.removeprefix('mnist-').replace('x', '×')} pixels"
        says = f"after LEA-MVD {{}} times as many images are wrong as after {NAMES['cd']}"
        yield "C15", "both", Part(where, "LEA-MVD", NAMES["cd"], says, effect)


def later_claims(measured: Tables) -> Judged:
    """Yield the parts of the claims that had no test before the runs; their tests are another
    family.
    """
    for where, effect in minima.most_escape(
        minima.Tables(measured.local_minima, measured.trained_minima)
    ).items():
        yield (
            "C13",
            "both",
            Part(where, "LEA-MVD", NOTHING, "the share of searches that escape is {}", effect),
        )
    for where, effect in architectures.learns(measured.architectures).items():
        says = "{} times as many images are wrong as at the start"
        yield "C14", "both", Part(where, "LEA-MVD", "its start", says, effect)


def evidence(measured: Tables, margins: Margins = Margins()) -> pd.DataFrame:
    """Return every part of every claim: its effect, its test, and whether it is "met": yes, no or
    undecided.

    `p` is corrected by Holm's method over the family of the claim's tests.
    """
    families = registered_claims(measured, margins), later_claims(measured)
    rows = pd.concat([judged([*parts], margins.level) for parts in families], ignore_index=True)
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
    rows = pd.DataFrame(
        [(claim, view, *part[:-1], *part.effect) for claim, view, part in parts], columns=names
    )
    # C4 and C5 share tests
    slope, same = rows["unit"] == "slope", ["view", "where", "method", "baseline", "test"]
    p = rows[~slope].drop_duplicates(same).set_index(same)["p"]
    corrected = {"p": holm(p.to_numpy()), "level": level / (len(p) - p.rank(method="first") + 1)}
    rows = rows.drop(columns="p").join(pd.DataFrame(corrected, p.index), on=same)
    effects = [part.effect for *_, part in parts]
    powers = [
        power(e, at, SMALLEST) if e.error > 0 else np.nan
        for e, at in zip(effects, rows["level"], strict=True)
    ]
    rows = by_ranks(rows)
    met = rows["effect"].between(rows["lower"], rows["upper"]).where(slope, rows["p"] < level)
    # such runs could not be enough
    few = rows["effect"].isna().where(slope, 0.5 ** rows["runs"] * len(p) >= level)
    contradicted = (rows["low"] > rows["upper"]) | (rows["high"] < rows["lower"])
    untold = (
        (rows["error"] > 0)
        & ~contradicted
        & (holds_bound(rows) | (pd.Series(powers, rows.index) < 0.5))
    )
    rows["met"] = np.select([few, met, untold], ["too few runs", "yes", "undecided"], "no")
    return rows.loc[
        (rows["effect"] != 0) | (rows["error"] != 0), [*names[: names.index("p") + 1], "met"]
    ]


def by_one_update(margins: Margins = Margins()) -> pd.DataFrame:
    """Return what C3 to C10 would be where an iteration is one update on all images (item E12), by
    its settings.

    A part counts where its effect lies within its bounds: three runs at 28x28 pixels decide no
    test. CMA-ES is its separable form.
    """
    by, rows = ["final_momentum", "learning_rate"], []
    studies = (read_recorded(f"one_update_{size}") for size in ("7x7", "28x28"))
    small, large = (
        dict([*runs.replace({"method": {f"sep-{EQUAL}": EQUAL}}).groupby(by)]) for runs in studies
    )
    for momentum, rate in small:
        runs = {"mnist_7x7": small[momentum, rate], "mnist_28x28": large[momentum, rate]}
        parts = [*registered_claims(tables()._replace(**runs), margins)]
        for claim, view in product([*CLAIMS][2:10], VIEWS):
            effects = [
                part.effect
                for name, seen, part in parts
                if name == claim and seen in (view, "both")
            ]
            answer = _counted(effect.lower <= effect.effect <= effect.upper for effect in effects)
            rows.append((claim, view, f"rate {rate}, momentum {momentum}", answer))
    return pd.DataFrame(rows, columns=["claim", "view", "setting", "answer"])


def bounded(rows: pd.DataFrame) -> pd.DataFrame:
    """Return rows of `evidence` with their bounds, and what they are about, in words."""
    ends = rows["lower"].map("{:g}".format), rows["upper"].map("{:g}".format)
    words = (
        [np.isneginf(rows["lower"]), np.isposinf(rows["upper"])],
        ["below " + ends[1], "above " + ends[0]],
    )
    others = rows["baseline"].map(lambda name: "" if name == NOTHING else f" / {named(name)}")
    part = rows["where"] + ", " + rows["method"] + others
    return rows.assign(part=part, bounds=np.select(*words, ends[0] + " to " + ends[1]))


def holds_bound(rows: pd.DataFrame) -> pd.Series:
    """Return which parts have an interval that holds a bound: more runs could decide these."""
    lower, upper = (
        rows["low"].le(rows[bound]) & rows["high"].ge(rows[bound]) for bound in ("lower", "upper")
    )
    return lower | upper


def answers(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the answer to every claim in each view, from `evidence`, a row for each claim.

    A claim is reproduced where all of its parts are met, partly where some are, not reproduced
    where none is, undecided where that hangs on undecided parts, and not testable where a part has
    too few runs. The last column has the effect that is furthest from what the claim asks for.
    """
    table = {}
    for claim, words in CLAIMS.items():
        views = [
            rows[(rows["claim"] == claim) & rows["view"].isin([view, "both"])] for view in VIEWS
        ]
        table[claim] = [words, *(answer(judged["met"]) for judged in views), _furthest(views[0])]
    columns = ["in the paper's words", *VIEWS, "furthest from the claim, as printed"]
    return pd.DataFrame.from_dict(table, orient="index", columns=columns).rename_axis("claim")


def answer(met: pd.Series) -> str:
    """Return the answer to a claim whose parts are met: "yes", "no",
    "undecided" or "too few runs".
    """
    if met.eq("too few runs").any():
        return "not testable"
    least, most = map(_counted, (met.eq("yes"), met.isin(["yes", "undecided"])))
    return least if least == most else "undecided"


def _counted(met: Iterable[bool]) -> str:
    counted = [*met]
    return "reproduced" if all(counted) else "partly" if any(counted) else "not reproduced"


def _furthest(rows: pd.DataFrame) -> str:
    """Return in words the effect that is furthest beyond its bounds: by a
    factor, or in parts of 1.
    """
    effect, lower, upper, ratio = (
        rows["effect"],
        rows["lower"],
        rows["upper"],
        rows["unit"] == "ratio",
    )
    above = (effect / upper).where(ratio, 1 + (effect - upper) / 100)
    under = (lower / effect).where(ratio, 1 + (lower - effect) / 100)
    row = rows.iloc[int(np.fmax(above, under).fillna(np.inf).argmax())]
    ends = f" ({row['low']:.3g} to {row['high']:.3g})" if np.isfinite(row["low"]) else ""
    return f"{row['where']}: " + row["says"].format(f"{row['effect']:.3g}{ends}")


def beside_others(measured: Tables) -> pd.DataFrame:
    """Return costs and final errors of other methods over those of LEA-MVD, a row for each method.

    Time and memory are of a generation on one thread, at the largest n at which LEA-MVD was
    measured in the same dtype too; of the methods that are not pycma's, the fastest. Errors are
    mean-field errors at 7x7 pixels on shared inputs, after as many evaluations as LEA-MVD has made:
    geometric means, and how far their 95 % intervals reach at most.
    """
    table = costs(measured.linear_cost.replace(RECORDED_AS))[
        ["label", "method", "dtype", "n", *COSTS.values()]
    ]
    ours = table["method"] == "lea-mvd"
    both = table[~ours].merge(table[ours], on=["dtype", "n"], suffixes=("", "_own"))
    both = both.loc[both.groupby("label")["n"].idxmax()]
    both = both.assign(
        **{cost: both[column] / both[f"{column}_own"] for cost, column in COSTS.items()}
    )
    fastest = both.sort_values("time").drop_duplicates("method").set_index("method")[["n", *COSTS]]
    shared = measured.mnist_7x7[measured.mnist_7x7["inputs"] == "shared"]
    ends = last(
        shared[
            shared["evaluations"] <= shared.loc[shared["method"] == "lea-mvd", "evaluations"].max()
        ]
    )
    errors = compared(
        ends,
        "mean_field",
        [(name, "lea-mvd") for name in ("sep-cma-es", "cma-es", "cd")],
        by=["layer"],
    )
    errors = errors.assign(
        reach=100 * np.fmax(errors["ratio"] / errors["low"], errors["high"] / errors["ratio"]) - 100
    )
    final = errors.pivot(index="method", columns="layer", values="ratio").add_prefix("error, RBM ")
    final["intervals, ± %"] = errors.groupby("method")["reach"].max()
    rows = fastest.join(final, how="outer")
    shown = {
        "sep-cma-es": "separable CMA-ES (pycma)",
        "cma-es": "CMA-ES with a full matrix (pycma)",
    }
    return (
        rows.loc[[*shown, fastest.index.drop([*shown])[0], "cd"]]
        .rename(NAMES | shown)
        .rename_axis("method")
    )


# ---- figures

LOOKS = {  # color, marker and label of a part
    "yes": (GREEN, "o", "met"),
    "no": (VERMILION, "x", "not met"),
    "undecided": (GRAY, "s", "undecided"),
    "too few runs": (GRAY, "D", "too few runs"),
}


@styled
def plot_effects(rows: pd.DataFrame) -> Figure:
    """Plot the effect of every part, a panel for each claim and unit; shaded is where a part is
    met.

    A panel has room for every finite number of its parts, and for effects as large as a factor of 2
    or 1 %.
    """
    groups = [*rows.groupby(["claim", "unit"], sort=False)]
    heights = [1.5 * len(parts) + 2.3 for _, parts in groups]
    figure, axes = panels(len(groups), 1, height=0.26 * sum(heights) + 0.6, height_ratios=heights)
    for ax, ((claim, unit), parts) in zip(axes[:, 0], groups, strict=True):
        parts = bounded(parts).sort_values("view", kind="stable")
        values = parts[["effect", "low", "high", "lower", "upper"]].to_numpy(dtype=float).ravel()
        values = np.append(
            values[np.isfinite(values)], {"ratio": [0.5, 2.0], "%": [-1.0, 1.0]}.get(unit, [])
        )
        log, exp = (np.log, np.exp) if unit == "ratio" else (np.array, np.array)
        low, high = log([values.min(), values.max()])
        left, right = exp([1.05 * low - 0.05 * high, 1.05 * high - 0.05 * low])
        for y, row in zip(range(len(parts) - 1, -1, -1), parts.to_dict("records"), strict=True):
            color, marker, label = LOOKS[row["met"]]
            shaded = np.clip([row["lower"], row["upper"]], left, right)
            ax.plot(shaded, [y, y], color=GREEN, alpha=0.15, linewidth=7, solid_capstyle="butt")
            bounds = [bound for bound in (row["lower"], row["upper"]) if np.isfinite(bound)]
            ax.plot(
                bounds, [y] * len(bounds), linestyle="", marker="|", markersize=7, color="black"
            )
            ends = np.nan_to_num([[row["effect"] - row["low"]], [row["high"] - row["effect"]]])
            look = {
                "fmt": marker,
                "color": color,
                "markersize": 5,
                "markeredgewidth": 1.5,
                "elinewidth": 1.5,
            }
            ax.errorbar(row["effect"], y, xerr=ends, label=label, **look)
            view = "" if row["view"] == "both" else f"{row['view']}: "
            ax.text(0.01, y + 0.26, view + row["part"], transform=ax.get_yaxis_transform())
        if unit == "ratio":
            log_scale(ax, "x")
        ax.set(xlim=(left, right), ylim=(-0.5, len(parts) - 0.2), yticks=[])
        ax.grid(axis="y", visible=False)
        ax.set_title(f"{claim}, {unit}")
    legend(figure)
    return figure
