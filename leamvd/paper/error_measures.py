"""Section 6: what the error measures.

What else than learning makes a reconstruction error small? Controls of the paper's comparison; weights that win and
know nothing; and, exploratory, which settings and ways to count come nearest to the errors that the paper prints.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator
from scipy.special import logit

from leamvd._support import checks
from leamvd.data.images import Dataset
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import reconstruction_errors
from leamvd.networks.rbm import RBMParameters

from . import layers, results
from .layers import GROUP, LABELS, PRINTED, Images, Study, last, searches
from .plots import COLORS, VERMILION, error_bars, legend, log_scale, method_look, panels, styled
from .results import Plan, read_recorded
from .statistics import summarize

# ---- settings

UNTRAINED = {
    "cd:learning_rate=0+n_gen=1": "N(0, 0.1)",
    "cd:learning_rate=0+n_gen=1+weight_scale=0.01": "N(0, 0.01)",
    "cd:learning_rate=0+n_gen=1+initial_weights=uniform": "U(±0.1)",
}  # methods that learn nothing, by the distribution of their weights

QUICK = Study(methods=("cd", "lea-mvd", "lea-mvd:x0-excluded")).changed(n_images=100, dtype="float64", n_gen=12)
PAPER = Study(  # the runs of Section 3
    images=Images(dataset="mnist"),
    methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:printed", "cma-es", "sep-cma-es", "random"),
    seeds=tuple(range(30)),
)
RANDOM_WEIGHTS = {"methods": tuple(UNTRAINED), "inputs": ("own",)}
LARGE = Study(images=Images(dataset="mnist", side=28, n_images=2_000), layers=(500, 500, 2000), **RANDOM_WEIGHTS)
PROFILES = {"quick": (QUICK, QUICK.changed(**RANDOM_WEIGHTS)), "paper": (PAPER, LARGE)}
"""What is computed: the controls, and networks that are not trained."""


class Tables(NamedTuple):
    """What is measured: errors of each layer after each iteration. The last three are recorded in every profile."""

    runs: pd.DataFrame  # the controls
    untrained: pd.DataFrame  # random weights
    forensics: pd.DataFrame  # settings that the paper may have had, 2,000 images of 28 x 28
    combinations: pd.DataFrame  # which of their methods stand for which settings
    confirmed: pd.DataFrame  # those nearest to the paper's numbers again, on 10,000 images


def tables(profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any) -> Tables:
    """Return the section's tables: what is recorded, or controls that are computed here.

    `changes` are fields of the controls' `Study`, its images, training or reading; one that is None is none. Untrained
    networks have the same data set, number of images and seeds.
    """
    tried, again = read_recorded("forensics"), read_recorded("forensics_confirmed")
    others = {"forensics": tried, "combinations": read_recorded("forensics", "combinations"), "confirmed": again}
    if profile == "recorded":
        results.refuse(changes)
        bare = tried[tried["method"].isin(UNTRAINED) & (tried["inputs"] == "own")]
        return Tables(read_recorded("mnist_7x7"), bare, **others)
    plan = planned(profile, **changes)
    return Tables(**results.tables(plan, folder, n_jobs=n_jobs, label="error measures"), **others)


def planned(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile's controls and untrained networks."""
    controls, bare = PROFILES[checks.choice("profile", profile, [*PROFILES])]
    shared = {name: changes.get(name) for name in ("dataset", "n_images", "seeds")}
    studies = {"runs": controls.changed(**changes), "untrained": bare.changed(**shared)}
    return {name: (LABELS, searches(study.on_disk())) for name, study in studies.items()}


def summary(measured: Tables, profile: str = "recorded", **changes: Any) -> pd.DataFrame:
    """Return the last errors of the controls, see `layers.summary`; of all settings tried, where they are recorded."""
    if profile == "recorded":
        return layers.errors(measured.forensics)
    return layers.summary(measured.runs, PROFILES[profile][0].changed(**changes), [(PAPER, read_recorded("mnist_7x7"))])


# ---- weights that win by the reconstruction error for nothing


def collapsed(first: RBMParameters, scale: float, V: np.ndarray, n_hidden: int) -> list[RBMParameters]:
    """Return RBM 1 with its weights times `scale`, and an RBM 2 that knows the mean of what this makes of `V`.

    The weights of RBM 2 are zero, its visible biases the logits of the mean.
    """
    lower = RBMParameters(scale * first.W, first.b, first.c)
    mean = lower.hidden_given_visible(V).mean(axis=0)
    return [lower, RBMParameters(np.zeros((len(mean), n_hidden)), logit(mean), np.zeros(n_hidden))]


def bound(first: RBMParameters, scale: float, V: np.ndarray) -> float:
    """Return what the error of the collapsed RBM 2 cannot exceed, per image: scale^2 / 16 trace(W^T Cov(v) W)."""
    return float(scale**2 / 16 * (V @ first.W).var(axis=0).sum())


def collapse(
    data: Dataset, first: RBMParameters, scales: Sequence[float], n_hidden: int, *, epochs: int
) -> pd.DataFrame:
    """Return what comes of making RBM 1's weights smaller, for RBM 2 and for what the features are good for.

    A row for each scale has, per image, the `error` of the collapsed RBM 2, its `bound`, and the `cd error` of another
    RBM 2 that so many epochs of contrastive divergence have trained on the same features; over the constant
    image's error, `ratio` and `cd ratio`; and the accuracy on test images of a linear classifier on standardized
    features: of RBM 1, `accuracy`, and of the collapsed RBM 2, `accuracy above`.
    """
    rows = []
    for scale in scales:
        lower, upper = collapsed(first, scale, data.train, n_hidden)
        H, T = map(lower.hidden_given_visible, (data.train, data.test))
        cd = ContrastiveDivergence(H, n_hidden, seed=0)
        for _ in range(epochs):
            cd.epoch()
        constant, trained = (reconstruction_errors(rbm, H, seed=0) for rbm in (upper, cd.rbm))
        per_image = constant.mean_field / len(H), bound(first, scale, data.train), trained.mean_field / len(H)
        right = accuracy(H, T, data), accuracy(*map(upper.hidden_given_visible, (H, T)), data)
        rows.append((scale, *per_image, constant.mean_field_ratio, trained.mean_field_ratio, *right))
    columns = ["scale", "error", "bound", "cd error", "ratio", "cd ratio", "accuracy", "accuracy above"]
    return pd.DataFrame(rows, columns=columns)


def accuracy(train: np.ndarray, test: np.ndarray, data: Dataset) -> float:
    """Return the part of the test images that a ridge classifier on standardized features, (m, k), gets right."""
    from sklearn import linear_model, pipeline, preprocessing

    classifier = pipeline.make_pipeline(preprocessing.StandardScaler(), linear_model.RidgeClassifier())
    return float(classifier.fit(train, data.train_labels).score(test, data.test_labels))


# ---- tables of the controls


def paths(runs: pd.DataFrame) -> pd.DataFrame:
    """Return both measures over the run as ratios to the constant image's error: means over runs.

    Contrastive divergence begins with its first epoch, which is where the optimizers start; its random weights are off
    any scale.
    """
    shown = runs[(runs["iteration"] > 0) | ~runs["method"].str.startswith("cd")]
    return shown.groupby([*GROUP, "iteration"], sort=False)[["mean_field_ratio", "sampled_ratio"]].mean().reset_index()


def explained(runs: pd.DataFrame) -> pd.DataFrame:
    """Return last errors in units that can be compared from layer to layer: means over runs.

    Errors are per image; explained is which percentage of the inputs' variance, 100 (1 - error / constant's error).
    """
    ends = last(runs)
    error = ends["mean_field"] / ends["n_images"]
    columns = {
        "input std": ends["input_std"],
        "constant": error / ends["mean_field_ratio"],
        "error": error,
        "error per unit": error / ends["n_visible"],
        "% explained": 100 * (1 - ends["mean_field_ratio"]),
        "% explained, sampled": 100 * (1 - ends["sampled_ratio"]),
    }
    rows = ends[GROUP].assign(**columns)
    intervals = summarize(rows, "error", GROUP)[["low", "high"]]
    return rows.groupby(GROUP, sort=False).mean().reset_index().join(intervals)


def untrained(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what random weights make of the images, and the constant image's error per 10,000 images of that."""
    rows = runs[runs["iteration"] == 0]
    constant = 1e4 * rows["mean_field"] / rows["mean_field_ratio"] / rows["n_images"]
    columns = {"weights": rows["method"].map(UNTRAINED), "input std": rows["input_std"], "constant": constant}
    return rows[["layer"]].assign(**columns).groupby(["layer", "weights"], sort=False).mean()


# ---- what the paper may have run

SUMMED = {
    "mean-field": ("mean_field", "mean_field"),
    "sampled": ("sampled", "sampled"),
    "each its own": ("sampled", "mean_field"),
}  # errors of contrastive divergence and of LEA-MVD that are counted (item E2); in the last, what a method has anyway
NUMBERS = {f"{method}, RBM {layer}": number for (method, layer), number in PRINTED.items()}
SETTINGS = ["weights", "start", "sigma0", "reading", "inputs"]
COUNTED = ["measure", "images"]


def distances(runs: pd.DataFrame, combinations: pd.DataFrame) -> pd.DataFrame:
    """Return the errors of each combination of settings, counted in every way, beside the numbers that the paper has.

    A combination is a search, `method`, with contrastive divergence from the same kind of weights, `baseline`. Errors
    are geometric means over seeds. `factor` is by how much they miss: exp of the root mean square of
    log(ours / the paper's) over the three numbers.
    """
    there = combinations[["method", "baseline"]].isin(runs["method"].unique()).all(axis=1)
    ways = pd.DataFrame(product(SUMMED, (10_000, 60_000)), columns=COUNTED)  # errors, and images that are summed over
    rows = combinations[there].merge(ways, how="cross")
    ends = last(runs)
    logs = np.log(ends[["mean_field", "sampled"]].div(ends["n_images"], axis=0))
    errors = np.exp(logs.groupby([ends[name] for name in ("method", "inputs", "layer")]).mean())
    for name, (trainer, layer) in zip(NUMBERS, PRINTED, strict=True):
        search = trainer != "cd"
        who = zip(rows["method" if search else "baseline"], rows["inputs"], rows["measure"], strict=True)
        each = [errors.loc[(method, inputs, layer), SUMMED[measure][search]] for method, inputs, measure in who]
        rows[name] = rows["images"] * each
    missed = np.log(rows[[*NUMBERS]] / NUMBERS)
    return rows.assign(factor=np.exp(np.sqrt((missed**2).mean(axis=1))))


def nearest(table: pd.DataFrame) -> pd.DataFrame:
    """Return the combinations, each counted in its best way, the nearest first."""
    best = table.sort_values("factor", kind="stable").drop_duplicates(SETTINGS)
    return best[[*SETTINGS, *COUNTED, *NUMBERS, "factor"]].reset_index(drop=True)


# ---- figures


@styled
def plot_paths(table: pd.DataFrame, ends: pd.DataFrame) -> Figure:
    """Plot the two ratios of `paths` against each other over the run.

    A method's line starts with an open marker and ends with a filled one, which has the intervals of `ends`.
    """
    measures, at = ["mean_field_ratio", "sampled_ratio"], ends.set_index(["inputs", "layer", "method", "measure"])
    kinds, numbers = list(table["inputs"].unique()), sorted(table["layer"].unique())
    figure, axes = panels(len(numbers), len(kinds), height=1.3 + 2.1 * len(numbers))
    for (kind, layer, method), line in table.groupby(GROUP, sort=False):
        ax, look = axes[numbers.index(layer), kinds.index(kind)], method_look(method)
        x, y = (line[measure].to_numpy() for measure in measures)
        right, up = (error_bars(at.loc[[(kind, layer, method, measure)]]) for measure in measures)
        ax.plot(x, y, linewidth=1.5, label=method, **look)
        ax.plot(x[:1], y[:1], "o", color=look["color"], fillstyle="none", markersize=5)
        ax.errorbar(x[-1:], y[-1:], up, right, fmt="o", color=look["color"], markersize=5)
        ax.set_title(f"RBM {layer}, {kind} inputs")
    for ax in axes.flat:
        ax.axhline(1.0, color="black", linewidth=0.8)
        ax.axvline(1.0, color="black", linewidth=0.8)
        log_scale(ax, "xy")
    for ax in axes[-1]:
        ax.set_xlabel("mean-field ratio")
    figure.supylabel("sampled ratio: error / constant image's")
    legend(figure, ncols=2)
    return figure


@styled
def plot_inputs(table: pd.DataFrame) -> Figure:
    """Plot last errors and those of the constant image, joined by a line."""
    numbers, methods = sorted(table["layer"].unique()), list(table["method"].unique())
    kinds = list(table["inputs"].unique())
    figure, axes = panels(1, len(numbers), height=1.5 + 0.22 * len(kinds) * len(methods), sharey=True)
    for (kind, layer, method), row in table.groupby(GROUP, sort=False):
        ax, color = axes[0, numbers.index(layer)], method_look(method)["color"]
        place = [methods.index(method) + 0.36 * (kinds.index(kind) - 0.5 * (len(kinds) - 1))]
        ax.plot(row[["error", "constant"]].to_numpy()[0], place * 2, "-", color=color, linewidth=1.0)
        ax.plot(row["constant"], place, "|", color="black", markersize=9, label="constant image")
        look = {"fillstyle": "full" if kind == "own" else "none", "markersize": 5, "label": f"{kind} inputs"}
        ax.errorbar(row["error"], place, xerr=error_bars(row, "error"), fmt="o", color=color, **look)
    for ax, layer in zip(axes[0], numbers, strict=True):
        ax.set_title(f"RBM {layer}")
        log_scale(ax, "x")
        ax.xaxis.set_minor_locator(LogLocator(subs=(2, 5)))  # narrow panels have room for few labels
        ax.xaxis.set_minor_formatter("{x:,g}")
    axes[0, 0].set_yticks(range(len(methods)), methods)
    axes[0, 0].invert_yaxis()
    axes[0, len(numbers) // 2].set_xlabel("mean-field error per image")
    legend(figure)
    return figure


@styled
def plot_collapse(won: pd.DataFrame) -> Figure:
    """Plot `collapse`, what RBM 2 scores and its features are worth, against the factor of RBM 1's weights."""
    figure, axes = panels(3, 1, height=6.6, sharex=True)
    constant, cd = {"color": VERMILION, "label": "constant RBM 2"}, {"color": COLORS["cd"], "label": "RBM 2 by CD"}
    black = {"color": "black", "linestyle": ":"}
    lines = [
        {"bound": black | {"label": "bound"}, "error": constant, "cd error": cd},
        {"ratio": constant, "cd ratio": cd},
        {"accuracy above": constant | {"label": "on the constant RBM 2"}, "accuracy": black | {"label": "on RBM 1"}},
    ]
    names = ("RBM 2's error per image", "error / constant image's", "test accuracy of\na linear classifier")
    for ax, name, columns in zip(axes[:, 0], names, lines, strict=True):
        for column, look in columns.items():
            ax.plot(won["scale"], won[column], marker=".", **look)
        ax.set(ylabel=name, xscale="log", yscale="linear" if "accuracy" in columns else "log")
        ax.legend()
    axes[2, 0].set(xlabel="factor of RBM 1's weights", ylim=(0, 1))
    axes[2, 0].invert_xaxis()
    return figure
