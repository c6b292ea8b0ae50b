"""Section 10: why the searches stay where they start.

Two numbers of a layer's error around its start solution, slope and curvature, are measured by a few
dozen pairs of evaluations. What do they say of a search before it is run? How far could it get, and
how far would it have to get?
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy import optimize, stats

from leamvd._support import checks
from leamvd._support.threads import one_blas_thread
from leamvd.networks.dbn import Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective, error_and_gradient
from leamvd.optimizers.local_model import LocalModel, measure, order_statistics, quality
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.selection import fractional_tournament

from . import layers
from .layers import (
    ONE_EPOCH,
    PRINTED,
    Images,
    Section,
    Study,
    layer_call,
    layer_inputs,
    left_at,
    rbms,
    stack,
)
from .plots import BLUE, GREEN, PURPLE, VERMILION, band, facets, legend, log_scale, panels, styled
from .results import Floats, Plan, Recorded, Result, Table, Texts, delayed, read_recorded
from .statistics import paired, summarize
from .study_methods import Method
from .words import named

# ---- settings

REFERENCE = 0.01  # the step size whose slope and curvature predict searches
POPULATION_SIZE = 24
GENERATIONS = 49  # the first of the paper's 50 generations makes the population that these move
QUALITIES = {
    "paper": quality(fractional_tournament(POPULATION_SIZE, 1.5)),
    "best": quality(order_statistics(POPULATION_SIZE)),
}


@dataclass(frozen=True, kw_only=True)
class Settings(Study):
    """A study of step sizes, and of pairs around its start solutions."""

    methods: Texts = ("lea-mvd",)
    inputs: Texts = ("own",)
    sigmas: Floats = (0.001, 0.003, REFERENCE, 0.03, 0.1, 0.3)  # step sizes of the pairs
    n_pairs: int = 30  # at each of them

    def __post_init__(self) -> None:
        super().__post_init__()
        sigmas = checks.several("sigmas", self.sigmas, at_least=1, different=True)
        sigmas = [checks.real("sigmas", sigma, above=0, below=1e100) for sigma in sigmas]
        object.__setattr__(self, "sigmas", tuple(sigmas))
        checks.integer("n_pairs", self.n_pairs, at_least=2)
        for method in self.methods:
            checks.choice("methods", Method.parse(method).trainer, ("lea-mvd",))


def _started_at(sigma0: Iterable[float], *ends: str) -> tuple[str, ...]:
    """Return LEA-MVD with several first standard deviations, and several settings after each."""
    return tuple(f"lea-mvd:sigma0={value}{end}" for value, end in product(sigma0, ends))


SIGMAS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # first standard deviations of searches
PAPER = Settings(
    images=Images(dataset="mnist", n_images=10_000),
    methods=_started_at(SIGMAS, "", "+reset=off"),
    seeds=(0, 1, 2, 3, 4),
)
LARGE = PAPER.changed(side=28, layers=(500, 500, 2000))
QUICK = Settings(
    layers=(30, 30), methods=_started_at((0.001, 0.003, 0.01, 0.1), ""), seeds=(0, 1), n_pairs=20
)
PROFILES = {
    "quick": QUICK.changed(dtype="float64", n_gen=12),
    "paper": PAPER,
    "paper-28x28": LARGE,
}
SIZES = {"explanation": PAPER, "explanation_28x28": LARGE}  # by the names of what is recorded

# the start solutions of Sections 3 and 4, and of first layers with ever more hidden units
START = Settings(
    images=Images(dataset="mnist"),
    inputs=("own", "shared"),
    sigmas=(REFERENCE,),
    seeds=tuple(range(30)),
)
STARTS = (START, START.changed(side=28, layers=LARGE.layers, seeds=(0, 1, 2)))
FIRST = STARTS[1].changed(
    n_images=2_000, methods=_started_at((0.003, 0.01, 0.03, 0.1), ""), inputs=("own",)
)
SCALING = [FIRST.changed(layers=(n_hidden,)) for n_hidden in (5, 16, 50, 160, 500)]

# Searches without the factors that end a generation, and with steps added in their place
OFF = "+perturbation=off"
ADDED = "+perturbation=added"
WITHOUT = PAPER.changed(
    methods=_started_at(SIGMAS, OFF) + _started_at(SIGMAS, ADDED),  # with the reset
    sigmas=(REFERENCE,),
    iterations=tuple(range(0, 51, 5)),
)
FEW = WITHOUT.changed(side=28, layers=(500, 500), seeds=(0, 1, 2))
LARGE_WITHOUT = (
    FEW.changed(methods=_started_at([REFERENCE], OFF), layers=LARGE.layers),
    FEW.changed(methods=_started_at([0.003, 0.1], OFF)),
    FEW.changed(methods=_started_at([REFERENCE], ADDED)),
    FEW.changed(methods=_started_at([REFERENCE], OFF, ADDED), seeds=(3, 4)),
)

LAYER = ["study", "layer", "inputs"]
SEARCH = [*LAYER, "method", "seed"]


class Tables(NamedTuple):
    """What is measured, a row for each step size, generation or iteration."""

    pairs: Table  # slope and curvature around the start solutions
    # searches on slope and curvature alone: what can be said before any search
    surrogates: Table
    retrodictions: Table  # the same for the inputs that the searches below have made
    runs: Table  # searches on the error


def recorded() -> Tables:
    """Return what is recorded of both sizes of images."""
    return _joined([_recorded(name, study.size) for name, study in SIZES.items()])


def _recorded(name: str, study: str) -> Tables:
    """Return what is recorded under a name of one study, on own inputs."""
    return Tables(
        *(read_recorded(name, table).assign(study=study, inputs="own") for table in Tables._fields)
    )


def _joined(parts: Sequence[Tables]) -> Tables:
    """Return the rows of several studies together."""
    return Tables(*(pd.concat(rows, ignore_index=True) for rows in zip(*parts, strict=True)))


def with_last_steps(measured: Tables) -> Tables:
    """Return the recorded tables with those of the searches without factors, and with steps added
    in their place.
    """
    small = _recorded("last_step_7x7", PAPER.size)
    large = _recorded("last_step_28x28", LARGE.size)
    return _joined([measured, small, large])


def summary(measured: Tables, profile: str = "recorded", **changes: Any) -> pd.DataFrame:
    """Return the last errors of the searches (of those that are recorded, at 7x7 pixels), see
    `layers.summary`.
    """
    if profile == "recorded":
        return layers.summary(measured.runs.query("study == @PAPER.size"))
    known = [(study, read_recorded(name)) for name, study in SIZES.items()]
    return layers.summary(measured.runs, PROFILES[profile].changed(**changes), known)


# ---- what is computed


class Top(NamedTuple):
    """The last layer of a stack."""

    V: np.ndarray  # what it sees, shape (m, n_visible)
    objective: ReconstructionObjective
    x0: np.ndarray  # its parameters
    seed: int


def _last_layer(stack: Result, images: Images, features: str, seed: int) -> Top:
    """Return the last layer of a stack."""
    *below, top = rbms(stack)
    V = layer_inputs(below, images, features, seed, top.W.dtype)
    objective = ReconstructionObjective(V, len(top.c))
    return Top(V, objective, top.flat(), layer_seed(seed, len(below) + 1))


def pairs(
    start: Result, images: Images, features: str, seed: int, sigmas: tuple[float, ...], n_pairs: int
) -> Result:
    """Return slope and curvature of a layer's error around its start solution, a row for each step
    size.
    """
    top = _last_layer(start, images, features, seed)
    models = []
    for sigma in sigmas:
        models.append(measure(top.objective, top.x0, sigma=sigma, n_pairs=n_pairs, seed=top.seed))
    rows = pd.DataFrame(models).assign(n_var=len(top.x0), n_images=len(top.V))
    return Result(rows, {"x0": top.x0})


def near_reference(table: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs of the step size that is nearest to `REFERENCE`."""
    away = np.log(table["sigma"] / REFERENCE).abs()
    return table[away == away.min()]


def surrogate(
    around: Result, layer: int, seed: int, training: Training, reading: Reading
) -> Result:
    """Return the best value of LEA-MVD after each generation, where all it sees is slope and
    curvature.

    That is f(x0) + |g| y_1 + tr(H) |y|^2 / (2 n), y the step from x0. The search has the layer's
    seed.
    """
    x0 = around.arrays["x0"]
    model = near_reference(around.rows).iloc[0]
    direction = np.random.default_rng(seed).standard_normal(len(x0)).astype(x0.dtype)
    direction /= np.linalg.norm(direction)

    bend = model["curvature"] / (2 * len(x0))

    def objective(X: np.ndarray) -> np.ndarray:
        Y = X - x0
        squares = np.einsum("ij,ij->i", Y, Y, dtype=np.float64)
        with one_blas_thread():  # several would round otherwise
            along = Y @ direction
        return model["value"] + model["slope"] * along + squares * bend

    opt = training.optimizer("lea-mvd", x0, reading=reading, seed=layer_seed(seed, layer))
    best = [model["value"]]
    for _ in range(opt.n_gen):  # the whole budget is spent, whatever `stop` says
        X = opt.ask()
        opt.tell(X, objective(X))
        best.append(opt.best_fun)
    rows = pd.DataFrame({"iteration": range(len(best)), "best": best})
    return Result(rows)


def gradient_step(start: Result, images: Images, features: str, seed: int) -> Result:
    """Return the error before and after a step of steepest descent, and the evaluations that its
    length took.
    """
    top = _last_layer(start, images, features, seed)
    with one_blas_thread():
        value, gradient = error_and_gradient(top.x0, top.V, top.objective.n_hidden)
        length = value / float(gradient @ gradient)  # would end at zero if the error were linear

    def along(t: float) -> Any:
        return top.objective((top.x0 - t * gradient)[None])[0]

    end = optimize.minimize_scalar(along, (0.0, length), options={"maxiter": 10})
    return Result(pd.DataFrame({"first": [value], "best": [end.fun], "nfev": [end.nfev]}))


def rises(start: Result, images: Images, features: str, seed: int) -> Result:
    """Return the mean rise of a layer's error, in percent, when factors of eq. (14) act on the
    start solution alone.
    """
    top = _last_layer(start, images, features, seed)
    rng = np.random.default_rng(top.seed)
    shape = (POPULATION_SIZE, len(top.x0))
    first = float(top.objective(top.x0[None])[0])
    values = []
    for _ in range(3):  # a population at a time
        hit = rng.random(shape, np.float32) < Reading.perturbation_share
        factors = np.where(hit, rng.random(shape, np.float32) + 0.5, 1)
        values.append(top.objective((top.x0 * factors).astype(top.x0.dtype)))
    after = np.concatenate(values)
    rise = 100 * (after.mean() / first - 1)
    return Result(pd.DataFrame({"rise": [rise], "lower": [(after < first).mean()]}))


def plan(*studies: Settings) -> Plan:
    """Return the plan of the section's `Tables`, of several studies together, and of gradient
    steps.

    Predictions are about start solutions that stand on start solutions, so they need no search;
    retrodictions about start solutions that stand on what the search itself has made of the layers
    below.
    """
    around = {}
    descents = {}
    risen = {}
    predicted = {}
    retrodicted = {}
    searches = {}
    for study in studies:
        data = (study.images, study.features)
        numbered = enumerate(study.layers, start=1)
        for inputs, (number, n_hidden) in product(study.inputs, numbered):
            layer = (study.size, number, inputs, n_hidden)
            for seed in study.seeds:
                start = stack(study, ONE_EPOCH, seed, inputs)[number - 1]
                at = (start, *data, seed)
                around[*layer, seed] = delayed(pairs)(*at, study.sigmas, study.n_pairs)
                descents[*layer, seed] = delayed(gradient_step)(*at)
                risen[*layer, seed] = delayed(rises)(*at)
            for method, seed in product(study.methods, study.seeds):
                searched = stack(study, method, seed, inputs)
                before = around[*layer, seed]
                after = before
                if number > 1 and inputs == "own":
                    start = layer_call(study, ONE_EPOCH, n_hidden, seed, below=searched[number - 2])
                    after = delayed(pairs)(start, *data, seed, (REFERENCE,), study.n_pairs)
                parsed = Method.parse(method)
                settings = (seed, parsed.training(study.training), parsed.reading(study.reading))
                search = (*layer, method, seed)
                predicted[search] = delayed(surrogate)(before, number, *settings)
                retrodicted[search] = delayed(surrogate)(after, number, *settings)
                searches[search] = searched[number - 1]
    of_start = [*LAYER, "n_hidden", "seed"]
    of_search = [*LAYER, "n_hidden", "method", "seed"]
    return {
        "pairs": (of_start, around),
        "surrogates": (of_search, predicted),
        "retrodictions": (of_search, retrodicted),
        "runs": (of_search, searches),
        "gradient_steps": (of_start, descents),
        "rises": (of_start, risen),
    }


tables = Section(Tables, PROFILES, plan, recorded, "explanation")


def _record(
    names: Iterable[str], studies: Sequence[Settings], columns: Sequence[str], **options: Any
) -> Recorded:
    """Return some tables of a plan to record, whose calls some of its columns tell apart."""

    def planned() -> Plan:
        whole = plan(*(study.known() for study in studies))
        kept = {}
        for name in names:
            every, calls = whole[name]
            shown = [column for column in columns if column in every]
            label = itemgetter(*map(every.index, shown))
            kept[name] = (shown, {label(values): call for values, call in calls.items()})
        return kept

    return Recorded(studies, planned, **options)


def _at_the_end(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the last iteration of searches, and all rows of other tables."""
    if "iteration" not in rows:
        return rows
    return rows[rows["iteration"] == rows["iteration"].max()]


OF_ONE = ("layer", "method", "seed")  # what tells calls apart: in one study
OF_MANY = ("n_hidden", "method", "seed")  # and in several sizes of a layer
PREDICTIONS = ("pairs", "surrogates")  # what is recorded before the searches
WITH_RISES = (*Tables._fields, "rises")
RECORDED = {
    "explanation": _record(Tables._fields, [PAPER], OF_ONE),
    "explanation_28x28": _record(Tables._fields, [LARGE], OF_ONE),
    "predictions": _record(PREDICTIONS, [PAPER], OF_ONE),
    "predictions_28x28": _record(PREDICTIONS, [LARGE], OF_ONE),
    "starts": _record(PREDICTIONS, STARTS, ("study", "inputs", "layer", "seed")),
    "last_step_7x7": _record(WITH_RISES, [WITHOUT], OF_ONE),
    "last_step_28x28": _record(WITH_RISES, LARGE_WITHOUT, OF_ONE),
    "scaling": _record(("runs", "gradient_steps"), SCALING, OF_MANY, keep=_at_the_end),
    "scaling_predictions": _record(PREDICTIONS, SCALING, OF_MANY, keep=_at_the_end),
}

# ---- tables


def step_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs with what theory makes of them.

    At `step_size`, sigma*, the best of 24 isotropic steps gains nothing on average. A generation
    gains `gain paper` percent of the error at most, and with the best weights that there are `gain
    best`.
    """
    measured = table[[*LocalModel._fields]]
    models = [LocalModel(*row) for row in measured.itertuples(index=False)]
    sizes = table.assign(step_size=[model.step_size(POPULATION_SIZE) for model in models])
    sizes["scatter_share"] = table.eval("scatter / curvature")
    for name, value in QUALITIES.items():
        sizes[f"gain {name}"] = [100 * model.gain(value) / model.value for model in models]
    return sizes


def falls(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return by how many percent each search lowers a value, and in which generation first
    (infinity for never).
    """
    runs = table.sort_values("iteration", kind="stable").groupby(SEARCH, sort=False)[value]
    ends = pd.DataFrame({"first": runs.first(), "last": runs.last()})
    ends["left"] = left_at(table, value, SEARCH)
    ends["fall"] = 100 * (1 - ends["last"].clip(lower=0) / ends["first"])
    return ends.reset_index()


def predicted_and_measured(measured: Tables) -> pd.DataFrame:
    """Return predicted, retrodicted and measured falls in percent by layer and method: means over
    seeds.

    The measured ones have 95 % intervals where there are three runs or more. Shares are those of
    the searches that left the start solution.
    """
    by = [*LAYER, "method"]
    kinds = {
        "measured": falls(measured.runs, "mean_field"),
        "predicted": falls(measured.surrogates, "best"),
        "retrodicted": falls(measured.retrodictions, "best"),
    }
    rows = summarize(kinds["measured"], "fall", by, mean="measured")
    # of two runs it is 13 times their standard error
    rows.loc[rows["runs"] < 3, ["low", "high"]] = np.nan
    rows = rows.set_index(by)
    for kind, searches in kinds.items():
        searches["moved"] = np.isfinite(searches["left"])
        rows[[kind, f"share {kind}"]] = searches.groupby(by)[["fall", "moved"]].mean()
    rows = rows.reset_index()
    rows["sigma0"] = _setting(rows, "sigma0", Training.sigma0)
    rows["noise"] = _setting(rows, "perturbation", "entry")
    rows["reset"] = _setting(rows, "reset", 1.0) != "off"
    return rows


def _setting(rows: pd.DataFrame, name: str, usual: Any) -> pd.Series:
    """Return a setting of the method of each row."""
    return rows["method"].map(lambda text: dict(Method.parse(text).settings).get(name, usual))


def reach(sizes: pd.DataFrame) -> pd.DataFrame:
    """Return how far all generations together can lower each layer's error, in percent, with 95 %
    intervals.

    A generation gains at most what `step_sizes` says, if slope and curvature keep their relation to
    the error.
    """
    near = near_reference(sizes)
    bounds = []
    for name in QUALITIES:
        gains = summarize(near, f"gain {name}", LAYER, geometric=True).set_index(LAYER)
        bounds.append(gains[["mean", "low", "high"]].add_prefix(f"{name} "))
    return _compound(pd.concat(bounds, axis=1), GENERATIONS)


def needed(study: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Return how far LEA-MVD fell and how far it had to fall for what the paper claims, in percent,
    95 % intervals.

    It is to end below contrastive divergence of the same seed, or at 28 x 28 pixels on own inputs
    within a factor of 2 of the number that the paper prints (claims C7 and C8).
    """
    rows = []
    ordered = _different(runs).sort_values("iteration", kind="stable")
    for (layer, inputs), group in ordered.groupby(["layer", "inputs"]):
        search = group.query("method == 'lea-mvd'").groupby("seed")
        cd = group.query("method == 'cd'").groupby("seed")
        start = search["mean_field"].first()
        fell = paired(search["mean_field"].last(), start)
        goals = {"cd": cd["mean_field"].last()}
        printed = PRINTED.get(("lea-mvd", layer))
        if printed and (study, inputs) == ("mnist-28x28", "own"):
            goals[f"{printed:,.0f}"] = 2 * printed * search["n_images"].last() / 1e4
        for below, goal in goals.items():
            asked = paired(goal, start)
            left = (fell.effect, asked.effect, asked.high, asked.low)
            rows.append((study, layer, inputs, below, *left))
    columns = [*LAYER, "below", "fell", "needed", "low", "high"]
    table = pd.DataFrame(rows, columns=columns).set_index(columns[:4])
    return (100 * (1 - table)).reset_index()


def _different(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the runs whose inputs differ: a first layer's own and shared ones are the same."""
    return runs.query("layer > 1 or inputs == 'own'")


def times_faster(bound: pd.DataFrame, both: pd.DataFrame) -> float:
    """Return how many times the rate of the paper's weights the largest measured fall has."""
    table = both.groupby(LAYER)[["measured"]].max().join(bound["paper mean"].rename("allowed"))
    rates = -np.log1p(-table / 100)
    return float(rates.eval("measured / allowed").max())


def answers(asked: pd.DataFrame, bound: pd.DataFrame, times: float) -> pd.DataFrame:
    """Return what is needed beside what can be reached: reached, out of reach, or not reached.

    Out of reach is what lies beyond the best weights' bound even if the error falls `times` faster
    than it.
    """
    rows = asked.join(bound, on=LAYER)
    rows["furthest"] = _compound(rows["best high"], times)
    rows["answer"] = "not reached"
    rows.loc[rows.eval("furthest < low"), "answer"] = "out of reach"
    rows.loc[rows.eval("fell >= needed"), "answer"] = "reached"
    return rows


def left_as_said(surrogates: pd.DataFrame, studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return in how many runs of recorded studies LEA-MVD left its start, was said to, and both
    agree ("right").
    """
    runs = pd.concat([table.assign(study=study) for study, table in studies.items()])
    runs = _different(runs.query("method == 'lea-mvd'"))
    by = [*LAYER, "seed"]
    left = {"said": left_at(surrogates, "best", by), "left": left_at(runs, "mean_field", by)}
    moved = pd.DataFrame(left).dropna() < np.inf
    moved["right"] = moved.eval("said == left")
    moved["runs"] = True
    return moved.groupby(LAYER, sort=False).sum()


def scored(measured: Tables) -> pd.DataFrame:
    """Return how well falls were predicted, by layer and last step, over the settings that all last
    steps have.

    `right` is the share of searches of which it was rightly said whether they leave their start,
    `error` the median of abs ln((p + 0.1) / (m + 0.1)) of the predicted and measured falls in
    percent, with a bootstrap interval over seeds.
    """
    said = falls(measured.surrogates, "best")
    left = falls(measured.runs, "mean_field")
    rows = left.merge(said, on=SEARCH, suffixes=(" measured", " predicted"))
    rows["noise"] = _setting(rows, "perturbation", "entry")
    rows["setting"] = [str(Method.parse(text).without("perturbation")) for text in rows["method"]]
    rows["off"] = rows["noise"] == "off"
    setting = ["study", "layer", "setting", "seed"]
    rows = rows[rows.groupby(setting)["off"].transform("any")]
    rows["left"] = np.isfinite(rows["left measured"])
    rows["right"] = rows["left"] == np.isfinite(rows["left predicted"])
    rows["error"] = np.abs(np.log(rows.eval("(`fall predicted` + 0.1) / (`fall measured` + 0.1)")))
    groups = rows.groupby(["study", "layer", "noise"], sort=False)
    table = groups[["fall measured", "fall predicted", "left", "right"]].mean()
    table.columns = ["measured", "predicted", "left", "right"]
    table.insert(0, "searches", groups.size())
    table["error"] = groups["error"].median()
    table[["low", "high"]] = [_median_interval(group) for _, group in groups]
    return table.reset_index()


def _median_interval(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of a bootstrap interval over seeds of the median of `error`."""
    errors = rows.pivot(index="seed", columns="setting", values="error").to_numpy()
    return stats.bootstrap(
        (np.arange(len(errors)),),
        lambda seeds: np.nanmedian(errors[seeds]),
        vectorized=False,
        n_resamples=2_000,
        method="percentile",
        rng=0,
    ).confidence_interval


def scaling(
    around: pd.DataFrame, surrogates: pd.DataFrame, runs: pd.DataFrame, steps: pd.DataFrame
) -> pd.DataFrame:
    """Return falls in percent for layers of ever more hidden units, by kind and `n_var`: of the
    best setting's mean.
    """
    first = around.set_index(["n_hidden", "seed"])[["n_var", "value"]]
    ends = {
        "measured": (runs, "mean_field"),
        "predicted": (surrogates, "best"),
        "one gradient step": (steps, "best"),
    }
    best = {}
    for kind, (table, column) in ends.items():
        rows = table[["n_hidden", "seed", column]].join(first, on=["n_hidden", "seed"])
        rows["fall"] = 100 * (1 - rows[column].clip(lower=0) / rows["value"])
        rows["method"] = table.get("method", kind)
        means = summarize(rows, "fall", ["n_var", "method"])
        best[kind] = means.loc[means.groupby("n_var")["mean"].idxmax()]
    return pd.concat(best, names=["kind"]).reset_index("kind")


def _compound(fall: Any, times: float) -> Any:
    """Return what a fall in percent comes to when it happens so many times; no error falls below
    zero.
    """
    return 100 * (1 - (1 - (fall / 100).clip(upper=1)) ** times)


# ---- figures


@styled
def plot_step_sizes(sizes: pd.DataFrame) -> Figure:
    """Plot sigma* against the step size of its pairs: a panel for each study, bands for 95 %
    intervals.
    """
    means = summarize(sizes, "step_size", ["study", "layer", "sigma"], geometric=True)
    figure, parts = facets(means, "study", 2.2, margin=0.8)
    for ax, study, lines in parts:
        for layer, line in lines.groupby("layer"):
            band(
                ax,
                line,
                "sigma",
                color=(BLUE, VERMILION, GREEN)[(layer - 1) % 3],
                label=f"RBM {layer}",
            )
        ax.axline((0.01, 0.01), (0.1, 0.1), color="black", linestyle=":", label="both equal")
        ax.axvline(Training.sigma0, color=PURPLE, linestyle="--", label="the paper's σ0")
        log_scale(ax, "xy")
        ax.set(title=named(study), ylabel="σ*")
    ax.set_xlabel("step size of the pairs")
    legend(figure)
    return figure


@styled
def plot_falls(both: pd.DataFrame) -> Figure:
    """Plot falls of one study against sigma0, a row for each layer: measured, with bands, beside
    predicted.

    With the reset and the factor, and without one of them.
    """
    kinds = {
        "reset and factor": (VERMILION, "reset and noise == 'entry'"),
        "no reset": (BLUE, "not reset and noise == 'entry'"),
        "no factor": (GREEN, "reset and noise == 'off'"),
    }
    layers = both.sort_values("sigma0").groupby("layer")
    height = 1.1 + 1.7 * len(layers)
    figure, axes = panels(len(layers), 2, height, sharex=True, sharey="row")
    for (left, right), (layer, rows) in zip(axes, layers, strict=True):
        left.set_title(f"RBM {layer}, measured fall, %")
        right.set_title(f"RBM {layer}, predicted fall, %")
        for name, (color, chosen) in kinds.items():
            line = rows.query(chosen)
            band(left, line, "sigma0", "measured", color=color, label=name)
            right.plot(line["sigma0"], line["predicted"], color=color)
    log_scale(left, "x")
    left.set_xlabel("σ0")
    right.set_xlabel("σ0")
    legend(figure)
    return figure


@styled
def plot_scaling(table: pd.DataFrame) -> Figure:
    """Plot falls against the number of variables."""
    figure, ((ax,),) = panels(1, 1, height=3.4)
    colors = {"measured": BLUE, "predicted": GREEN, "one gradient step": VERMILION}
    for kind, rows in table.groupby("kind", sort=False):
        band(ax, rows, "n_var", color=colors[kind], label=kind)
    log_scale(ax, "x")
    ax.set(ylim=(0, None), xlabel="variables", ylabel="fall of the error, %")
    legend(figure)
    return figure
