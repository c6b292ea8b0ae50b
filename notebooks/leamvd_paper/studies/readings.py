"""Section 7: which readings of the text matter.

The paper leaves nineteen places of its algorithm open, and eleven of its experiment. Every
alternative is run, one at a time, against the default with the same seeds: on layers of RBMs and on
test functions. What does C_ani do (C11)? Are the suggested settings good ones (C12)?
"""

import textwrap
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leamvd._support import checks
from leamvd.networks.dbn import Training, layer_seed, train
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.functions import USUAL

from . import layers, results
from .benchmarks import Function, directions, generations, search, start
from .layers import LABELS, MEASURES, Images, Study, last, searches
from .plots import BLUE, GRAY, GREEN, PURPLE, VERMILION, legend, log_scale, panels, styled, typeset
from .results import Integers, Plan, Recorded, Result, Table, Texts, delayed, read_recorded
from .statistics import LEVEL, compared, summarize, unpaired
from .study_methods import Method
from .words import named

# ---- alternatives

ALTERNATIVES = {
    "R1": ("lea-mvd:convergence=unscaled",),
    "R2": ("lea-mvd:population_size=20",),
    "R3": ("lea-mvd:n_gen=30",),
    "R4": ("lea-mvd:sigma_norm=spectral",),
    "R5": ("lea-mvd:shift=printed",),
    "R6": ("lea-mvd:orientation=free",),
    "R7": ("lea-mvd:n_descent_rows=3",),
    "R8": ("lea-mvd:first_direction=full",),
    "R9": ("lea-mvd:descent_scale=normalized",),
    "R10": ("lea-mvd:step=sampled",),
    "R11": ("lea-mvd:projections=repeated",),
    "R12": ("lea-mvd:beta1_at_one=mirrored",),
    "R13": ("lea-mvd:reset=0.1", "lea-mvd:reset=initial", "lea-mvd:reset=off"),
    "R14": ("lea-mvd:elites=reevaluate",),
    "R15": ("lea-mvd:x0=none+limits=clip", "lea-mvd:x0=none+limits=reflect"),
    "R16": ("lea-mvd:x0-excluded",),
    "R17": ("lea-mvd:perturbation=column",),
    "R18": ("lea-mvd:ties=newest",),
    "R19": (
        "lea-mvd:exponent=0",
        "lea-mvd:exponent=0.5",
        "lea-mvd:exponent=1",
        "lea-mvd:exponent=2",
        "lea-mvd:exponent=3",
    ),
    "printed": ("lea-mvd:printed",),
    "C11": (
        "lea-mvd:path=off",
        "lea-mvd:descent=off",
        "lea-mvd:path=off+descent=off",
        "lea-mvd:descent=free",
    ),
    "C12": (
        "lea-mvd:n_elite=1",
        "lea-mvd:n_elite=2",
        "lea-mvd:n_elite=8",
        "lea-mvd:n_elite=12",
        "lea-mvd:n_gen=44+n_elite=1",
        "lea-mvd:n_gen=46+n_elite=2",
        "lea-mvd:n_gen=62+n_elite=8",
        "lea-mvd:n_gen=83+n_elite=12",
        "lea-mvd:population_size=12+n_gen=125",
        "lea-mvd:population_size=48+n_gen=23",
        "lea-mvd:sigma0=0.01",
        "lea-mvd:sigma0=0.03",
        "lea-mvd:sigma0=0.3",
    ),
    "E5": ("lea-mvd:x0=batch", "lea-mvd:x0_epochs=5", "lea-mvd:x0_epochs=0", "lea-mvd:x0=none"),
    "E8": (
        "cd:weight_scale=0.01",
        "cd:initial_weights=uniform",
        "cd:momentum=0+final_momentum=0+weight_decay=0",
        "cd:persistent=true",
    ),
    "E9": ("cma-es:sigma0=0.03", "cma-es:population_size=28+n_gen=43"),
}
"""By item: each alternative alone, from the default.

R15 needs a population that was drawn within limits, initialization (A), and is compared with that.
Population sizes of C12 and E9, and once the numbers of elites, go with a number of generations that
makes about as many evaluations. pycma's own population size is 24 to 28 here.
"""


def default(method: str) -> str:
    """Return the method that an alternative is compared with."""
    if method.startswith("lea-mvd:x0=none+"):
        return "lea-mvd:x0=none"
    return Method.parse(method).trainer


def methods(items: Iterable[str] = ALTERNATIVES) -> tuple[str, ...]:
    """Return the alternatives of some items, and what they are compared with, each once."""
    every = [alternative for item in items for alternative in ALTERNATIVES[item]]
    defaults = sorted(map(default, every), key=len)
    return tuple(dict.fromkeys([*defaults, *every]))


def pairs(there: Collection[str]) -> list[tuple[str, str]]:
    """Return item and method of the alternatives that are there with their default; "own" is one
    without an item.
    """
    items = {}
    for item, alternatives in ALTERNATIVES.items():
        items |= dict.fromkeys(alternatives, item)
    for method in there:
        if default(method) != method:
            items.setdefault(method, "own")
    found = []
    for method, item in items.items():
        if method in there and default(method) in there:
            found.append((item, method))
    return found


# ---- settings


@dataclass(frozen=True, kw_only=True)
class Settings(Study):
    """Alternatives and their defaults, on layers and on test functions."""

    inputs: Texts = ("shared",)
    sizes: Integers = ()  # variables of the functions
    budget: int = 10_000  # evaluations of a search on a function

    def __post_init__(self) -> None:
        super().__post_init__()
        sizes = checks.several("sizes", self.sizes, different=True)
        sizes = tuple(checks.integer("sizes", n_var, at_least=2) for n_var in sizes)
        object.__setattr__(self, "sizes", sizes)
        checks.integer("budget", self.budget, at_least=self.reading.population_size)
        if not pairs(self.methods):
            raise ValueError(
                f"methods must have an alternative and its default among them, got {self.methods!r}"
            )


PAPER = Settings(
    images=Images(dataset="mnist", n_images=10_000),
    methods=methods(),
    seeds=tuple(range(30)),
    sizes=(100, 1000),
)
QUICK = Settings(
    methods=("cd", *methods(("R1", "R5", "R13", "R16", "C11"))),
    layers=(30, 30),
    seeds=(0, 1),
    sizes=(20,),
    budget=600,
)
FEWER = PAPER.changed(
    methods=(
        "cd",
        "lea-mvd",
        "lea-mvd:x0-excluded",
        "lea-mvd:printed",
        "lea-mvd:path=off",
        "lea-mvd:descent=off",
    ),
    sizes=(),
)
PROFILES = {
    "quick": QUICK.changed(n_images=100, dtype="float64", n_gen=20),
    "paper": PAPER,
    "threshold": FEWER.changed(binarize="threshold"),
    "bernoulli": FEWER.changed(binarize="bernoulli"),
    "center": FEWER.changed(pooling="center"),
    "bits": FEWER.changed(features="bits"),
    "own": FEWER.changed(inputs=("own",)),
    "all": replace(FEWER, images=Images(dataset="mnist")),
    "controls": FEWER.changed(
        methods=(
            "cma-es",
            "cma-es:population_size=12+n_gen=100",
            "cma-es:population_size=48+n_gen=25",
            "cma-es:sigma0=0.01",
            "cma-es:sigma0=0.03",
            "cma-es:sigma0=0.3",
        )
    ),
}
"""Every alternative; and a few of them on other data, items E3 (threshold, bernoulli), E4 (center),
E6 (bits), E7 (own) and E11 (all); the controls are CMA-ES with other settings.
"""

ARCHIVE = {
    "paper": "readings",
    "threshold": "readings_threshold",
    "bernoulli": "readings_bernoulli",
    "center": "readings_center",
    "bits": "readings_bits",
    "own": "readings_own",
    "all": "mnist_7x7",  # Section 3's layers
    "controls": "readings_cma_es",
}
# columns of the table of functions
FUNCTION = ["function", "n_var", "method", "seed", "evaluations", "best"]
# the problem that stands for all: the geometric mean of what a seed reaches on each
TOGETHER = "all functions"


class Tables(NamedTuple):
    """What is measured."""

    runs: Table  # errors of each layer by iteration; `data` has the profile
    functions: Table  # best value of each search on a function
    directions: Table  # what C_ani does in whole searches
    # the last error of each search, of one measure and of the first of the profiles
    outcomes: Table


def tables(
    profile: str = "recorded",
    folder: str | Path = ".",
    *,
    measure: str = "mean_field",
    n_jobs: int = 1,
    **changes: Any,
) -> Tables:
    """Return the tables of a profile: what is recorded of all profiles, or what
    is computed here.
    """
    if profile == "recorded":
        checks.choice("measure", measure, MEASURES)
        results.refuse(changes)
        parts = [read_recorded(name).assign(data=data) for data, name in ARCHIVE.items()]
        every = pd.concat(parts, ignore_index=True)
        runs = every.query("data != 'all' or inputs == 'shared'")
        functions = read_recorded("readings_functions")
        followed = read_recorded("readings_functions", "directions")
    else:
        plan = planned(profile, measure, **changes)
        computed = results.tables(plan, folder, n_jobs=n_jobs, label="readings")
        runs = computed["runs"].assign(data=profile)
        functions = computed.get("functions", pd.DataFrame(columns=FUNCTION))
        followed = computed["directions"]
    lead = runs[runs["data"] == runs["data"].iloc[0]]
    ends = outcomes(lead, measure)
    if len(functions):
        ends = pd.concat([ends, function_outcomes(functions)], ignore_index=True)
    return Tables(runs, functions, followed, ends)


def planned(profile: str, measure: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    checks.choice("measure", measure, MEASURES)
    study = results.profile(profile, PROFILES).changed(**changes).on_disk()
    whole = {
        "runs": (LABELS, searches(study)),
        "functions": on_functions(study),
        "directions": follows(study),
    }
    return {name: table for name, table in whole.items() if table[1]}


def summary(
    measured: Tables,
    profile: str = "recorded",
    measure: str = "",  # noqa: ARG001
    **changes: Any,
) -> pd.DataFrame:
    """Return the last errors of all methods by both measures, see `layers.summary`."""
    if profile == "recorded":
        return layers.summary(measured.runs.query("data == 'paper'"))
    study = PROFILES[profile].changed(**changes)
    same = {"sizes": study.sizes, "budget": study.budget}  # no layer depends on them
    known = []
    for name, archive in ARCHIVE.items():
        known.append((PROFILES[name].changed(**same), read_recorded(archive)))
    return layers.summary(measured.runs, study, known)


# ---- what is computed


def reached(on: Function, training: Training, reading: Reading, seed: int, budget: int) -> Result:
    """Return the best value of LEA-MVD on a function after so many evaluations."""
    found = search(on, "lea-mvd", training, reading, seed, (budget / on.n_var,))
    return Result(found.rows.drop(columns="mark"))


def followed_layer(
    images: Images, n_hidden: int, training: Training, reading: Reading, seed: int
) -> Result:
    """Return what C_ani does in the search of a first layer, see `followed`."""
    V = images.load(training.dtype).train
    own_seed = layer_seed(seed, 1)
    steps = train("lea-mvd", V, n_hidden, training=training, reading=reading, seed=own_seed)
    x0 = next(steps).rbm.flat()
    opt = training.optimizer("lea-mvd", x0, reading=reading, seed=own_seed)
    return followed(generations(opt, ReconstructionObjective(V, n_hidden)))


def followed_function(
    on: Function, training: Training, reading: Reading, seed: int, budget: int
) -> Result:
    """Return what C_ani does in a search on a function, see `followed`."""
    opt, objective = start(on, "lea-mvd", training, reading, seed, budget)
    return followed(generations(opt, objective, budget))


def followed(run: Iterator[Any]) -> Result:
    """Return how long C_ani's part of the shift is, and how it lies, from the first generation with
    a path P on.

    `share` is the percentage that C_ani's part of v has of the lengths of both parts, in the mean
    over generations; `none` the percentage of generations whose beta_2 is 1, so that C_ani has no
    weight at all; `against` that in which C_ani has a negative inner product with P: only C_hat is
    orthogonal to it (item R9).
    """
    rows = pd.DataFrame([directions(opt.state) for opt in run]).dropna(subset="descent_path")
    row = {
        "generations": len(rows),
        "share": 100 * rows["descent_share"].mean(),
        "none": 100 * (rows["beta2"] == 1).mean(),
        "against": 100 * (rows["descent_path"] < 0).mean(),
    }
    return Result(pd.DataFrame([row]))


def acting(texts: Iterable[str]) -> dict[str, Method]:
    """Return those methods that are LEA-MVD with settings that can act on a function.

    The number of generations is that of the budget: a method that differs in it alone from another
    one is left out.
    """
    first = {}
    for text in texts:
        parsed = Method.parse(text)
        idle = ("x0", "batch") in parsed.settings or "x0_epochs" in dict(parsed.settings)
        if parsed.trainer == "lea-mvd" and not idle:
            first.setdefault(parsed.without("n_gen"), text)
    return {text: parsed for parsed, text in first.items()}


def on_functions(study: Settings) -> tuple[list[str], dict[tuple[Any, ...], results.Call]]:
    """Return the plan of searches by the methods that can act on a function."""
    base = replace(study.reading, n_gen=Reading.n_gen)
    able = acting(study.methods).items()
    calls = {}
    for n_var, name, (text, method), seed in product(study.sizes, USUAL, able, study.seeds):
        on = Function(name, n_var)
        settings = method.training(study.training), method.reading(base)
        calls[name, n_var, text, seed] = delayed(reached)(on, *settings, seed, study.budget)
    return FUNCTION[:4], calls


def follows(study: Settings) -> tuple[list[str], dict[tuple[Any, ...], results.Call]]:
    """Return the plan of the searches that are followed: on the first layer, and on functions of
    the first size.
    """
    method = Method("lea-mvd")
    settings = method.training(study.training), method.reading(study.reading)
    first = study.images, study.layers[0]
    calls = {}
    for seed in study.seeds:
        calls["RBM 1", seed] = delayed(followed_layer)(*first, *settings, seed)
    for n_var, name, seed in product(study.sizes[:1], USUAL, study.seeds):
        on = Function(name, n_var)
        calls[str(on), seed] = delayed(followed_function)(on, *settings, seed, study.budget)
    return ["problem", "seed"], calls


def every_tenth(rows: pd.DataFrame) -> pd.DataFrame:
    """Return every tenth iteration and the last of each layer: tables are large, and the page shows
    ends.
    """
    return rows[(rows["iteration"] % 10 == 0) | rows.index.isin(last(rows).index)]


def _recorded(profile: str) -> Recorded:
    study = PROFILES[profile].changed(sizes=())  # those of the functions
    return Recorded(study, lambda: {"runs": (LABELS, searches(study.known()))}, every_tenth)


ON_FUNCTIONS = PAPER.changed(methods=tuple(acting(PAPER.methods)))
WITHOUT = PAPER.changed(  # the path with and without the factors of R17
    methods=(
        "lea-mvd",
        "lea-mvd:path=off",
        "lea-mvd:perturbation=off",
        "lea-mvd:path=off+perturbation=off",
    )
)
RECORDED = {
    "readings": _recorded("paper"),
    "readings_threshold": _recorded("threshold"),
    "readings_bernoulli": _recorded("bernoulli"),
    "readings_center": _recorded("center"),
    "readings_bits": _recorded("bits"),
    "readings_own": _recorded("own"),
    "readings_cma_es": _recorded("controls"),
    "readings_functions": Recorded(
        ON_FUNCTIONS,
        lambda: {"runs": on_functions(PAPER), "directions": follows(PAPER.known())},
    ),
    "path_and_factor": Recorded(WITHOUT, lambda: {"runs": on_functions(WITHOUT)}),
}

# ---- tables


def outcomes(runs: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure at the last iterations, on the first kind of inputs; a problem is a layer,
    "RBM 1".
    """
    ends = last(runs[runs["inputs"] == runs["inputs"].iloc[0]])
    return ends[["method", "seed"]].assign(
        problem="RBM " + ends["layer"].astype(str), error=ends[measure]
    )


def function_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Return what searches on functions reached: each function and number of variables, and
    `TOGETHER`.
    """
    by = ["method", "seed"]
    each = table[by].copy()
    problems = zip(table["function"], table["n_var"], strict=True)
    each["problem"] = [str(Function(*on)) for on in problems]
    each["error"] = table["best"].astype(float)
    means = summarize(each, "error", by, geometric=True, mean="error")
    means = means[[*by, "error"]].assign(problem=TOGETHER)
    return pd.concat([each, means], ignore_index=True)


def effects(table: pd.DataFrame) -> pd.DataFrame:
    """Compare each alternative with its default, on each problem, paired over seeds, see
    `compared`.

    `same` says whether all errors are equal to the last bit, and `different` whether p is below
    `LEVEL`.
    """
    there = pd.DataFrame(pairs(table["method"].unique()), columns=["item", "method"])
    compare = [(method, default(method)) for method in there["method"]]
    rows = there.merge(compared(table, "error", compare, by=["problem"]), on="method")
    rows["same"] = rows.eval("equal == runs")
    rows["different"] = rows["p"] < LEVEL
    return rows


def on_data(runs: pd.DataFrame) -> pd.DataFrame:
    """Compare LEA-MVD with contrastive divergence on each kind of data, on its first kind of
    inputs, paired over seeds.

    `cd` and `lea-mvd` are geometric means of the mean-field errors' ratios to the constant image's,
    by which errors on different data can be compared (items E3, E4, E6, E7 and E11).
    """
    first = runs.groupby("data")["inputs"].transform("first")
    ends = last(runs[runs["inputs"] == first].assign(study=runs["data"]))
    by = ["data", "layer"]
    ratios = compared(ends, "mean_field_ratio", [("lea-mvd", "cd")], by=by)
    means = summarize(ends, "mean_field_ratio", [*by, "method"], geometric=True)
    wide = means.pivot(index=by, columns="method", values="mean").reindex(columns=["cd", "lea-mvd"])
    return ratios.join(wide, on=by)[[*by, "runs", "cd", "lea-mvd", "ratio", "low", "high", "p"]]


WITHIN = {1: 0.05, 2: 0.05, 3: 0.1}
"""By layer: how far errors of two programs may differ, by rules that came before the second one."""


def agreement(theirs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
    """Compare the errors of a second program with those of runs of this one, which share no seed.

    `ratio` is that of geometric means, with Welch's interval. They `agree` where it lies within
    `WITHIN` of 1; where it reaches further and holds 1 that is undecided.
    """
    by = ["inputs", "method", "layer"]
    known = dict(iter(last(ours).groupby(by)["mean_field"]))
    rows = []
    for cell, errors in theirs.groupby(by, sort=False)["mean_field"]:
        effect = unpaired(errors, known[cell])
        within = WITHIN[cell[-1]]
        agree = "no"
        if 1 - within <= effect.low and effect.high <= 1 + within:
            agree = "yes"
        elif effect.low <= 1 <= effect.high:
            agree = "undecided"
        rows.append((*cell, effect.runs, *effect[:3], agree))
    return pd.DataFrame(rows, columns=[*by, "runs", "ratio", "low", "high", "agree"])


# ---- figures


DOT = {"linestyle": "", "marker": "o", "markersize": 4}


LOOKS = {
    "same bits": DOT | {"marker": "x"},
    "significant": DOT,
    "not significant": DOT | {"markerfacecolor": "none"},
}


def _labels(rows: pd.DataFrame) -> pd.Series:
    """Return the words of alternatives in a figure, broken into lines; most begin with the item."""
    texts = rows["method"].map(named).str.removeprefix("LEA-MVD, ")
    texts = texts.str.replace("(?<!,) ", "\xa0", regex=True)  # lines end at commas
    lines = textwrap.TextWrapper(28, break_long_words=False, break_on_hyphens=False)
    texts = texts.map(lines.fill)
    labels = texts.where(rows["item"].isin(["printed", "own"]), rows["item"] + "   " + texts)
    return labels.str.replace("$", r"\$").map(typeset)


def _draw_effects(ax: Axes, part: pd.DataFrame, y: pd.Series, color: str) -> None:
    """Draw the effects on one problem, each at its height."""
    part = part.assign(y=y, kind="not significant")
    part.loc[part["different"], "kind"] = "significant"
    part.loc[part["same"], "kind"] = "same bits"
    apart = part.query("not same")
    (problem,) = part["problem"].unique()
    ax.hlines(apart["y"], apart["low"], apart["high"], color=color, linewidth=1.2, label=problem)
    for kind, look in LOOKS.items():
        shown = part[part["kind"] == kind]
        ax.plot(shown["ratio"], shown["y"], color=color, **look)


@styled
def plot_effects(table: pd.DataFrame) -> Figure:
    """Plot the effects on layers and on all functions together: a row for each alternative, a color
    for each problem.

    Filled markers are significant after correction, hollow ones are not; a cross marks results that
    are the same to the last bit. Left of 1 the alternative ends lower than the default.
    """
    table = table[table["problem"].str.startswith("RBM") | (table["problem"] == TOGETHER)]
    rows = table[["item", "method"]].drop_duplicates().reset_index(drop=True)
    labels = _labels(rows)
    heights = np.maximum(1.0, 0.6 * (1 + labels.str.count("\n").to_numpy()))
    edges = np.concatenate([[0.0], np.cumsum(heights)]) - 0.5
    places = pd.Series(edges[:-1] + heights / 2, rows["method"])
    figure, ((ax,),) = panels(1, 1, height=1.6 + 0.32 * heights.sum())
    for _, group in list(rows.groupby("item", sort=False))[1::2]:
        ax.axhspan(edges[group.index[0]], edges[group.index[-1] + 1], color="0.95", zorder=0)
    ax.axvline(1.0, color="black", linewidth=0.8)
    problems = table.groupby("problem", sort=False)
    colors = cycle((BLUE, VERMILION, GREEN, PURPLE, GRAY))
    for j, ((_, part), color) in enumerate(zip(problems, colors, strict=False)):
        offset = 0.6 * ((j + 0.5) / len(problems) - 0.5)
        _draw_effects(ax, part, part["method"].map(places) + offset, color)
    log_scale(ax, "x")
    ax.set_yticks(places, labels)
    ax.set(ylim=(edges[-1], edges[0]), xlabel="final error over the default's")
    for name in ("significant", "not significant", "same bits"):
        ax.plot([], [], color="0.3", label=name, **LOOKS[name])
    legend(figure)
    return figure
