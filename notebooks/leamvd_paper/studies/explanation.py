"""Section 10: why the searches stay where they start.

Two numbers of a layer's error around its start solution, slope and curvature, are measured by a few
dozen pairs of evaluations. What do they say of a search before it is run? How far could it get, and
how far would it have to get?
"""

import dataclasses
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
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

from . import layers, results
from .layers import (
    ONE_EPOCH,
    PRINTED,
    Images,
    Study,
    layer_call,
    layer_inputs,
    left_at,
    rbms,
    stack,
)
from .plots import BLUE, GREEN, PURPLE, VERMILION, band, legend, log_scale, panels, styled
from .results import Plan, Recorded, Result, delayed, read_recorded
from .statistics import paired, summarize
from .study_methods import Method
from .words import named

# ---- settings

REFERENCE = 0.01  # the step size whose slope and curvature predict searches
# the first of the paper's 50 generations makes the population that 49 move
POPULATION_SIZE, GENERATIONS = 24, 49
WEIGHTS = {
    "paper": fractional_tournament(POPULATION_SIZE, 1.5),
    "best": order_statistics(POPULATION_SIZE),
}
QUALITIES = {name: quality(weights) for name, weights in WEIGHTS.items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(Study):
    """A study of step sizes, and of pairs around its start solutions."""

    methods: tuple[str, ...] = ("lea-mvd",)
    inputs: tuple[str, ...] = ("own",)
    sigmas: tuple[float, ...] = (0.001, 0.003, REFERENCE, 0.03, 0.1, 0.3)  # step sizes of the pairs
    n_pairs: int = 30  # at each of them

    def __post_init__(self) -> None:
        super().__post_init__()
        sigmas = checks.several("sigmas", self.sigmas, at_least=1, different=True)
        object.__setattr__(
            self, "sigmas", tuple(checks.real("sigmas", s, above=0, below=1e100) for s in sigmas)
        )
        checks.integer("n_pairs", self.n_pairs, at_least=2)
        for method in self.methods:
            checks.choice("methods", Method.parse(method).trainer, ("lea-mvd",))


def _methods(*sigma0: float, ends: tuple[str, ...] = ("",)) -> tuple[str, ...]:
    return tuple(f"lea-mvd:sigma0={value}{end}" for value, end in product(sigma0, ends))


SIGMAS = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3)  # first standard deviations of searches
PAPER = Settings(
    images=Images(dataset="mnist", n_images=10_000),
    methods=_methods(*SIGMAS, ends=("", "+reset=off")),
    seeds=(0, 1, 2, 3, 4),
)
LARGE = {"side": 28, "layers": (500, 500, 2000)}
QUICK = Settings(
    layers=(30, 30), methods=_methods(0.001, 0.003, 0.01, 0.1), seeds=(0, 1), n_pairs=20
)
PROFILES = {
    "quick": QUICK.changed(dtype="float64", n_gen=12),
    "paper": PAPER,
    "paper-28x28": PAPER.changed(**LARGE),
}
# recorded, by the end of the name
SIZES = {"": PROFILES["paper"], "_28x28": PROFILES["paper-28x28"]}

START = Settings(
    images=Images(dataset="mnist"),
    inputs=("own", "shared"),
    sigmas=(REFERENCE,),
    seeds=tuple(range(30)),
)
STARTS = START, START.changed(**LARGE, seeds=(0, 1, 2))  # the start solutions of Sections 3 and 4
FIRST = START.changed(
    side=28, n_images=2_000, methods=_methods(0.003, 0.01, 0.03, 0.1), inputs=("own",)
)
SCALING = [FIRST.changed(layers=(n_hidden,), seeds=(0, 1, 2)) for n_hidden in (5, 16, 50, 160, 500)]

# Searches without the factors that end a generation, and with steps added in their place
_OTHERS = "+perturbation=off", "+perturbation=added"
WITHOUT = PAPER.changed(
    methods=tuple(
        method + end for end in _OTHERS for method in _methods(*SIGMAS)
    ),  # with the reset
    sigmas=(REFERENCE,),
    iterations=tuple(range(0, 51, 5)),
)
_FEW = WITHOUT.changed(side=28, layers=(500, 500), seeds=(0, 1, 2))
LARGE_WITHOUT = (
    _FEW.changed(methods=_methods(REFERENCE, ends=_OTHERS[:1]), layers=LARGE["layers"]),
    _FEW.changed(methods=_methods(0.003, 0.1, ends=_OTHERS[:1])),
    _FEW.changed(methods=_methods(REFERENCE, ends=_OTHERS[1:])),
    _FEW.changed(methods=_methods(REFERENCE, ends=_OTHERS), seeds=(3, 4)),
)

LAYER = ["study", "layer", "inputs"]
SEARCH = [*LAYER, "method", "seed"]


class Tables(NamedTuple):
    """What is measured, a row for each step size, generation or iteration."""

    pairs: pd.DataFrame  # slope and curvature around the start solutions
    # searches on slope and curvature alone: what can be said before any search
    surrogates: pd.DataFrame
    retrodictions: pd.DataFrame  # the same for the inputs that the searches below have made
    runs: pd.DataFrame  # searches on the error


def tables(
    profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any
) -> Tables:
    """Return the tables of a profile: what is recorded of both sizes of images, or what is computed
    here.
    """
    if profile == "recorded":
        results.refuse(changes)
        columns = {
            f"explanation{end}": {"study": study.size, "inputs": "own"}
            for end, study in SIZES.items()
        }
        parts = (
            (read_recorded(n, t).assign(**same) for n, same in columns.items())
            for t in Tables._fields
        )
        return Tables(*map(pd.concat, parts))
    return Tables(
        **results.tables(planned(profile, **changes), folder, n_jobs=n_jobs, label="explanation")
    )


def planned(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    study = results.profile(profile, PROFILES).changed(**changes).on_disk()
    return {name: table for name, table in plan(study).items() if name in Tables._fields}


def summary(measured: Tables, profile: str = "recorded", **changes: Any) -> pd.DataFrame:
    """Return the last errors of the searches (of those that are recorded, at 7x7 pixels), see
    `layers.summary`.
    """
    if profile == "recorded":
        return layers.summary(measured.runs[measured.runs["study"] == PAPER.size])
    known = [(study, read_recorded(f"explanation{end}")) for end, study in SIZES.items()]
    return layers.summary(measured.runs, PROFILES[profile].changed(**changes), known)


# ---- what is computed


def pairs(
    start: Result, images: Images, features: str, seed: int, sigmas: tuple[float, ...], n_pairs: int
) -> Result:
    """Return slope and curvature of a layer's error around its start solution, a row for each step
    size.
    """
    V, x0, n_hidden, own_seed = _last_layer(start, images, features, seed)
    objective = ReconstructionObjective(V, n_hidden)
    models = [
        measure(objective, x0, sigma=sigma, n_pairs=n_pairs, seed=own_seed) for sigma in sigmas
    ]
    return Result(pd.DataFrame(models).assign(n_var=len(x0), n_images=len(V)), {"x0": x0})


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
    x0, model = (
        around.arrays["x0"],
        LocalModel(**near_reference(around.rows)[[*LocalModel._fields]].iloc[0]),
    )
    direction = np.random.default_rng(seed).standard_normal(len(x0)).astype(x0.dtype)
    direction /= np.linalg.norm(direction)

    def objective(X: np.ndarray) -> np.ndarray:
        Y = X - x0
        quadratic = np.einsum("ij,ij->i", Y, Y, dtype=np.float64) * (
            model.curvature / (2 * len(x0))
        )
        with one_blas_thread():  # several would round otherwise
            return np.asarray(model.value + model.slope * (Y @ direction) + quadratic, np.float64)

    opt = training.optimizer("lea-mvd", x0, reading=reading, seed=layer_seed(seed, layer))
    best = [model.value]
    for _ in range(opt.n_gen):  # the whole budget is spent, whatever `stop` says
        X = opt.ask()
        opt.tell(X, objective(X))
        best.append(opt.best_fun)
    return Result(pd.DataFrame({"iteration": range(len(best)), "best": best}))


def gradient_step(start: Result, images: Images, features: str, seed: int) -> Result:
    """Return the error before and after a step of steepest descent, and the evaluations that its
    length took.
    """
    V, x0, n_hidden, _ = _last_layer(start, images, features, seed)
    objective = ReconstructionObjective(V, n_hidden)
    with one_blas_thread():
        value, gradient = error_and_gradient(x0, V, n_hidden)
        # would end at zero if the error were linear
        bracket = 0.0, value / float(gradient @ gradient)
    end = optimize.minimize_scalar(
        lambda t: objective((x0 - t * gradient)[None])[0], bracket, options={"maxiter": 10}
    )
    return Result(pd.DataFrame({"first": [value], "best": [end.fun], "nfev": [end.nfev]}))


def rises(start: Result, images: Images, features: str, seed: int) -> Result:
    """Return the mean rise of a layer's error, in percent, when factors of eq. (14) act on the
    start solution alone.
    """
    V, x0, n_hidden, own_seed = _last_layer(start, images, features, seed)
    objective, rng = ReconstructionObjective(V, n_hidden), np.random.default_rng(own_seed)
    values = [objective(x0[None])]
    for _ in range(3):  # a population at a time
        shape = POPULATION_SIZE, len(x0)
        hit = rng.random(shape, np.float32) < Reading.perturbation_share
        factors = np.where(hit, rng.random(shape, np.float32) + 0.5, 1)
        values.append(objective((x0 * factors).astype(x0.dtype)))
    first, after = float(values[0][0]), np.concatenate(values[1:])
    return Result(
        pd.DataFrame(
            {"rise": [100 * (after.mean() / first - 1)], "lower": [float((after < first).mean())]}
        )
    )


def _last_layer(
    stack: Result, images: Images, features: str, seed: int
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Return what the last layer of a stack sees, shape (m, n_visible), its parameters, hidden
    units, and seed.
    """
    *below, top = rbms(stack)
    V = layer_inputs(below, images, features, seed, top.W.dtype)
    return V, top.flat(), len(top.c), layer_seed(seed, len(below) + 1)


def plan(*studies: Settings) -> Plan:
    """Return the plan of the section's `Tables`, of several studies together, and of gradient
    steps.

    Predictions are about start solutions that stand on start solutions, so they need no search;
    retrodictions about start solutions that stand on what the search itself has made of the layers
    below.
    """
    whole = {name: {} for name in (*Tables._fields, "gradient_steps", "rises")}
    for study in studies:
        numbered = enumerate(study.layers, start=1)
        for inputs, (number, n_hidden), method, seed in product(
            study.inputs, numbered, study.methods, study.seeds
        ):
            layer, data = (
                (study.size, number, inputs, n_hidden),
                (study.images, study.features, seed),
            )
            starts, searched = (
                stack(study, trainer, seed, inputs) for trainer in (ONE_EPOCH, method)
            )
            before = after = delayed(pairs)(starts[number - 1], *data, study.sigmas, study.n_pairs)
            if number > 1 and inputs == "own":
                start = layer_call(study, ONE_EPOCH, n_hidden, seed, below=searched[number - 2])
                after = delayed(pairs)(start, *data, (REFERENCE,), study.n_pairs)
            search = (
                Method.parse(method).training(study.training),
                Method.parse(method).reading(study.reading),
            )
            whole["pairs"][*layer, seed] = before
            whole["gradient_steps"][*layer, seed] = delayed(gradient_step)(
                starts[number - 1], *data
            )
            whole["rises"][*layer, seed] = delayed(rises)(starts[number - 1], *data)
            whole["surrogates"][*layer, method, seed] = delayed(surrogate)(
                before, number, seed, *search
            )
            whole["retrodictions"][*layer, method, seed] = delayed(surrogate)(
                after, number, seed, *search
            )
            whole["runs"][*layer, method, seed] = searched[number - 1]
    # a search has a method too
    run = {name: ["seed"] for name in ("pairs", "gradient_steps", "rises")}
    return {
        name: ([*LAYER, "n_hidden", *run.get(name, ["method", "seed"])], calls)
        for name, calls in whole.items()
    }


def _recorded(
    names: Iterable[str], *studies: Settings, columns: Any = ("layer", "method", "seed")
) -> Recorded:
    """Return some tables of a plan, whose calls some of its columns tell apart."""

    def planned() -> Plan:
        kept, whole = {}, plan(*(study.known() for study in studies))
        for name in names:
            labels = pd.DataFrame([*whole[name][1]], columns=whole[name][0]).filter(columns)
            kept[name] = (
                [*labels],
                dict(zip(labels.itertuples(False, None), whole[name][1].values(), strict=True)),
            )
        return kept

    return Recorded(studies, planned)


PREDICTIONS = ("pairs", "surrogates")  # what is recorded before the searches
RECORDED = {
    **{f"explanation{end}": _recorded(Tables._fields, study) for end, study in SIZES.items()},
    **{f"predictions{end}": _recorded(PREDICTIONS, study) for end, study in SIZES.items()},
    "starts": _recorded(PREDICTIONS, *STARTS, columns=["study", "inputs", "layer", "seed"]),
    "last_step_7x7": _recorded((*Tables._fields, "rises"), WITHOUT),
    "last_step_28x28": _recorded((*Tables._fields, "rises"), *LARGE_WITHOUT),
}
RECORDED |= {  # of searches the last row
    name: (
        _recorded(names, *SCALING, columns=["n_hidden", "method", "seed"])._replace(
            keep=lambda rows: (
                rows.query("iteration == iteration.max()") if "iteration" in rows else rows
            )
        )
    )
    for name, names in {
        "scaling": ("runs", "gradient_steps"),
        "scaling_predictions": PREDICTIONS,
    }.items()
}

# ---- tables


def step_sizes(table: pd.DataFrame) -> pd.DataFrame:
    """Return the pairs with what theory makes of them.

    At `step_size`, sigma*, the best of 24 isotropic steps gains nothing on average. A generation
    gains `gain paper` percent of the error at most, and with the best weights that there are `gain
    best`.
    """
    models = [LocalModel(*row) for row in table[list(LocalModel._fields)].itertuples(index=False)]
    gains = {
        f"gain {name}": [100 * m.gain(value) / m.value for m in models]
        for name, value in QUALITIES.items()
    }
    scatter = table["scatter"] / table["curvature"]
    return table.assign(
        step_size=[m.step_size(POPULATION_SIZE) for m in models], scatter_share=scatter, **gains
    )


def falls(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return by how many percent each search lowers a value, and in which generation first
    (infinity for never).
    """
    runs = table.sort_values("iteration", kind="stable").groupby(SEARCH, sort=False)[value]
    ends = pd.DataFrame(
        {"first": runs.first(), "last": runs.last(), "left": left_at(table, value, SEARCH)}
    )
    return ends.assign(fall=100 * (1 - ends["last"].clip(lower=0) / ends["first"])).reset_index()


def predicted_and_measured(measured: Tables) -> pd.DataFrame:
    """Return predicted, retrodicted and measured falls in percent by layer and method: means over
    seeds.

    The measured ones have 95 % intervals where there are three runs or more. Shares are those of
    the searches that left the start solution.
    """
    by = [*LAYER, "method"]
    fallen = falls(measured.runs, "mean_field")
    rows = summarize(fallen, "fall", by).rename(columns={"mean": "measured"}).set_index(by)
    # of two runs it is 13 times their standard error
    rows.loc[rows["runs"] < 3, ["low", "high"]] = np.nan
    kinds = {
        "predicted": falls(measured.surrogates, "best"),
        "retrodicted": falls(measured.retrodictions, "best"),
    }
    for name, ends in {"measured": fallen, **kinds}.items():
        runs = ends.assign(moved=np.isfinite(ends["left"])).groupby(by)
        rows[[name, f"share {name}"]] = runs[["fall", "moved"]].mean()
    each = [dict(Method.parse(method).settings) for method in rows.index.get_level_values("method")]
    rows["sigma0"] = [settings.get("sigma0", Training.sigma0) for settings in each]
    rows["noise"] = [settings.get("perturbation", "entry") for settings in each]
    return rows.assign(reset=[settings.get("reset") != "off" for settings in each]).reset_index()


def reach(sizes: pd.DataFrame) -> pd.DataFrame:
    """Return how far all generations together can lower each layer's error, in percent, with 95 %
    intervals.

    A generation gains at most what `step_sizes` says, if slope and curvature keep their relation to
    the error.
    """
    ends = {
        name: summarize(near_reference(sizes), f"gain {name}", LAYER, geometric=True)
        for name in QUALITIES
    }
    bounds = [
        rows.set_index(LAYER)[["mean", "low", "high"]].add_prefix(f"{name} ")
        for name, rows in ends.items()
    ]
    return _compound(pd.concat(bounds, axis=1), GENERATIONS)


def needed(study: str, runs: pd.DataFrame) -> pd.DataFrame:
    """Return how far LEA-MVD fell and how far it had to fall for what the paper claims, in percent,
    95 % intervals.

    It is to end below contrastive divergence of the same seed, or at 28 x 28 pixels on own inputs
    within a factor of 2 of the number that the paper prints (claims C7 and C8).
    """
    rows = []
    # the first layer has the same inputs
    runs = runs[(runs["layer"] > 1) | (runs["inputs"] == "own")]
    for (layer, inputs), group in runs.sort_values("iteration", kind="stable").groupby(
        ["layer", "inputs"]
    ):
        search, cd = (
            group[group["method"] == method].groupby("seed") for method in ("lea-mvd", "cd")
        )
        start, end, below = (
            search["mean_field"].first(),
            search["mean_field"].last(),
            {"cd": cd["mean_field"].last()},
        )
        if (study, inputs) == ("mnist-28x28", "own") and (
            printed := PRINTED.get(("lea-mvd", layer))
        ):
            below[f"{printed:,.0f}"] = 2 * printed * search["n_images"].last() / 1e4
        for name, goal in below.items():
            fell, ratio = paired(end, start), paired(goal, start)
            rows.append(
                (study, layer, inputs, name, fell.effect, ratio.effect, ratio.high, ratio.low)
            )
    table = pd.DataFrame(
        rows, columns=[*LAYER, "below", "fell", "needed", "low", "high"]
    ).set_index([*LAYER, "below"])
    return (100 * (1 - table)).reset_index()


def times_faster(bound: pd.DataFrame, both: pd.DataFrame) -> pd.DataFrame:
    """Return the largest measured fall in each layer, and how many times the rate of the paper's
    weights it has.
    """
    best = both.loc[both.groupby(LAYER)["measured"].idxmax()].set_index(LAYER)[
        ["sigma0", "measured"]
    ]
    table = best.join(bound["paper mean"].rename("allowed"))
    rates = -np.log1p(-table[["measured", "allowed"]] / 100)
    return table.assign(times=rates["measured"] / rates["allowed"])


def answers(asked: pd.DataFrame, bound: pd.DataFrame, times: float) -> pd.DataFrame:
    """Return what is needed beside what can be reached: reached, out of reach, or not reached.

    Out of reach is what lies beyond the best weights' bound even if the error falls `times` faster
    than it.
    """
    rows = asked.join(bound, on=LAYER)
    rows["furthest"] = _compound(rows["best high"], times)
    cases = {
        "reached": rows["fell"] >= rows["needed"],
        "out of reach": rows["furthest"] < rows["low"],
    }
    return rows.assign(answer=np.select([*cases.values()], [*cases], "not reached"))


def left_as_said(surrogates: pd.DataFrame, studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return in how many runs of recorded studies LEA-MVD left its start, was said to, and both
    agree ("right").
    """
    runs = pd.concat([table.assign(study=study) for study, table in studies.items()])
    runs = runs[(runs["method"] == "lea-mvd") & ((runs["layer"] > 1) | (runs["inputs"] == "own"))]
    by = [*LAYER, "seed"]
    left = {"said": left_at(surrogates, "best", by), "left": left_at(runs, "mean_field", by)}
    moved = pd.DataFrame(left).dropna() < np.inf
    return (
        moved.assign(right=moved["said"] == moved["left"], runs=True)
        .groupby(by[:-1], sort=False)
        .sum()
    )


def with_last_steps(measured: Tables) -> Tables:
    """Return the recorded tables with those of the searches without factors, and with steps added
    in their place.
    """
    parts: dict[str, list[pd.DataFrame]] = {
        name: [table] for name, table in measured._asdict().items()
    }
    for study, (name, tables) in product(SIZES.values(), parts.items()):
        archive = study.size.replace("mnist-", "last_step_")
        tables.append(read_recorded(archive, name).assign(study=study.size, inputs="own"))
    return Tables(**{name: pd.concat(tables, ignore_index=True) for name, tables in parts.items()})


def scored(measured: Tables) -> pd.DataFrame:
    """Return how well falls were predicted, by layer and last step, over the settings that all last
    steps have.

    `right` is the share of searches of which it was rightly said whether they leave their start,
    `error` the median of abs ln((p + 0.1) / (m + 0.1)) of the predicted and measured falls in
    percent, with a bootstrap interval over seeds.
    """
    ends, said = falls(measured.runs, "mean_field"), falls(measured.surrogates, "best")
    rows = ends.merge(said, on=SEARCH, suffixes=(" measured", " predicted"))
    parsed = [Method.parse(method) for method in rows["method"]]
    rows["noise"] = [dict(method.settings).get("perturbation", "entry") for method in parsed]
    rows["setting"] = [str(method.without("perturbation")) for method in parsed]
    setting = ["study", "layer", "setting", "seed"]
    rows = rows[rows.groupby(setting)["noise"].transform(lambda noises: "off" in {*noises})]
    rows["left"] = np.isfinite(rows["left measured"])
    rows["right"] = rows["left"] == np.isfinite(rows["left predicted"])
    rows["error"] = np.abs(np.log((rows["fall predicted"] + 0.1) / (rows["fall measured"] + 0.1)))
    table = []
    for cell, group in rows.groupby(["study", "layer", "noise"], sort=False):
        errors = group.pivot(index="seed", columns="setting", values="error").to_numpy()
        ends = stats.bootstrap(
            (np.arange(len(errors)),),
            lambda i, e=errors: np.nanmedian(e[i]),
            vectorized=False,
            n_resamples=2_000,
            method="percentile",
            rng=0,
        ).confidence_interval
        means = group[["fall measured", "fall predicted", "left", "right"]].mean()
        table.append((*cell, len(group), *means, group["error"].median(), ends.low, ends.high))
    columns = [
        "study",
        "layer",
        "noise",
        "searches",
        "measured",
        "predicted",
        "left",
        "right",
        "error",
        "low",
        "high",
    ]
    return pd.DataFrame(table, columns=columns)


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
    figure, axes = panels(means["study"].nunique(), 1, height=2.2 * means["study"].nunique() + 0.8)
    for ax, (study, lines) in zip(axes.flat, means.groupby("study", sort=False), strict=True):
        for layer, line in lines.groupby("layer"):
            band(ax, line, "sigma", color=_look(layer)["color"], label=f"RBM {layer}")
        ends = [lines["sigma"].min(), lines["sigma"].max()]
        ax.plot(ends, ends, "k:", linewidth=0.8, label="as large as measured")
        ax.axvline(
            Training.sigma0, color=PURPLE, linestyle="--", linewidth=1, label="the paper's σ0"
        )
        log_scale(ax, "xy")
        ax.set(title=named(study), ylabel="step size of theory")
    axes[-1, 0].set_xlabel("step size of the pairs")
    legend(figure)
    return figure


@styled
def plot_falls(both: pd.DataFrame) -> Figure:
    """Plot falls of one study against sigma0, a panel for each layer: bands measured, lines
    predicted.

    As printed, without the reset, and without the factors.
    """
    layers = sorted(both["layer"].unique())
    figure, axes = panels(len(layers), 1, height=1.7 * len(layers) + 1.1, sharex=True)
    kinds = {
        "as printed": (VERMILION, both["reset"] & (both["noise"] == "entry")),
        "without the reset": (BLUE, ~both["reset"] & (both["noise"] == "entry")),
        "without the factor": (GREEN, both["reset"] & (both["noise"] == "off")),
    }
    for (name, (color, chosen)), layer in product(kinds.items(), layers):
        line, ax = (
            both[chosen & (both["layer"] == layer)].sort_values("sigma0"),
            axes[layers.index(layer), 0],
        )
        band(ax, line, "sigma0", "measured", color=color, label=f"measured, {name}")
        ax.plot(line["sigma0"], line["predicted"], ":", color=color, label=f"predicted, {name}")
        log_scale(ax, "x")
        ax.set(title=f"RBM {layer}", xlabel="σ0" if layer == layers[-1] else "")
    figure.supylabel("fall of the error, %")
    legend(figure, ncols=2)
    return figure


@styled
def plot_gains(both: pd.DataFrame, asked: pd.DataFrame) -> Figure:
    """Plot measured against predicted falls, a point for each setting; lines at the right show what
    claims need.
    """
    kinds, studies = (
        {"predicted": "before any search", "retrodicted": "own inputs"},
        list(both["study"].unique()),
    )
    figure, axes = panels(len(studies), len(kinds), height=2.6 * len(studies) + 1.4, sharey=True)
    most = 1.3 * float(
        np.nanmax([*both[["measured", "high", *kinds]].max(), asked["needed"].max()])
    )
    limits = -0.2, most
    cells = product(both.groupby("study", sort=False), kinds.items())
    for ax, ((study, rows), (kind, label)) in zip(axes.flat, cells, strict=True):
        ax.plot([0, most], [0, most], "k:", linewidth=0.8)
        for (layer, reset), points in rows.groupby(["layer", "reset"], sort=False):
            bars = points[["low", "high"]].sub(points["measured"], axis=0).abs().to_numpy().T
            look = _look(layer) | {
                "fillstyle": "full" if reset else "none",
                "markersize": 5,
                "linewidth": 0.8,
            }
            name = f"RBM {layer}" if reset else f"RBM {layer}, no reset"
            ax.errorbar(points[kind], points["measured"], bars, linestyle="", label=name, **look)
        for row in asked[asked["study"] == study].itertuples():
            ax.axhline(
                row.needed,
                0.85,
                color=_look(row.layer)["color"],
                linestyle="-" if row.below == "cd" else "--",
            )
        for axis, set_scale in ((ax.xaxis, ax.set_xscale), (ax.yaxis, ax.set_yscale)):
            set_scale("symlog", linthresh=1)
            axis.set_major_formatter("{x:g}")
        ax.set(
            title=f"{named(study)}, {label}", xlabel="predicted fall, %", xlim=limits, ylim=limits
        )
    figure.supylabel("measured fall, %")
    legend(figure, ncols=2)
    return figure


@styled
def plot_scaling(table: pd.DataFrame) -> Figure:
    """Plot falls against the number of variables."""
    figure, axes = panels(1, 1, height=3.4)
    looks = {
        "measured": (BLUE, "-"),
        "predicted": (GREEN, ":"),
        "one gradient step": (VERMILION, "-"),
    }
    for kind, rows in table.groupby("kind", sort=False):
        band(axes[0, 0], rows, "n_var", color=looks[kind][0], linestyle=looks[kind][1], label=kind)
    log_scale(axes[0, 0], "x")
    axes[0, 0].set(ylim=(0, None), xlabel="variables", ylabel="fall of the error, %")
    legend(figure)
    return figure


def _look(layer: int) -> dict[str, str]:
    return {"color": (BLUE, VERMILION, GREEN)[(layer - 1) % 3], "marker": "os^"[(layer - 1) % 3]}
