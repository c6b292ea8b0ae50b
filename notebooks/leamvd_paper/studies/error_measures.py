"""Section 6: what the error measures.

What else than learning makes a reconstruction error small? A comparison has a control that the
paper lacks: no search at all. Every layer gets k mini-batches of contrastive divergence, and is
then left alone, searched, or trained on. With weights that win and know nothing, and both measures
along a search.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.special import logit

from leamvd._support import checks
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import reconstruction_errors
from leamvd.networks.rbm import RBMParameters
from leamvd_paper.data.images import Dataset

from . import results
from .layers import GROUP, Images, Study, last, layer_call, pictures, probe, probes, stack
from .plots import (
    band,
    error_bars,
    layers_by_inputs,
    legend,
    log_scale,
    method_look,
    panels,
    styled,
)
from .results import Call, Integers, Plan, Recorded, Table, Texts, delayed, read_recorded
from .statistics import summarize
from .words import named

# ---- settings

BATCHES = (1, 3, 10, 30, 60, 100, 200, 300, 600)  # the last one is an epoch of 60,000 images
START = "start"  # what mini-batches leave, with no search


@dataclass(frozen=True, kw_only=True)
class Started(Study):
    """Searches that start from so many mini-batches in each layer; "cd" stands for the start alone,
    and for CD.
    """

    methods: Texts = ("cd",)
    inputs: Texts = ("own",)
    batches: Integers = BATCHES
    # numbers of mini-batches whose uppermost features are probed
    probed: Integers = (10, 60, 200, 600)
    n_probes: int = 5  # seeds of these, the first ones

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("inputs", self.inputs, [("own",)])
        if len(self.layers) < 2:
            raise ValueError(
                f"layers must be two or more, got {self.layers}: the uppermost one changes its"
                " features"
            )
        for name in ("batches", "probed"):
            values = checks.several(name, getattr(self, name), different=True)
            values = tuple(checks.integer(name, value, at_least=1) for value in values)
            object.__setattr__(self, name, values)

    def ends(self) -> "Started":
        """Return the same, of which errors are kept at the start and at the end."""
        return replace(self, iterations=(0, self.reading.n_gen or 0))


PAPER = Started(images=Images(dataset="mnist"), seeds=tuple(range(10)))
FEWER = PAPER.changed(n_images=6_000, probed=())
# its 600 mini-batches are ten epochs, and momentum changes after five
LATER = FEWER.changed(batches=BATCHES[-1:])
ALONE = (PAPER, FEWER, LATER.changed(momentum_epochs=10))
SEARCHED = (
    # Section 3 has those that start from 600
    PAPER.changed(methods=("lea-mvd",), batches=BATCHES[:-1]),
    PAPER.changed(methods=("lea-mvd:printed",), batches=(10, 60, 300), probed=()),
    PAPER.changed(methods=("cma-es",), batches=(30, 100, 300), probed=()),
    FEWER.changed(methods=("lea-mvd",), batches=BATCHES[:-1]),
)
# beside Section 4's CD
LARGE = PAPER.changed(side=28, layers=(500, 500, 2000), seeds=(0, 1, 2), probed=())
QUICK = Started(seeds=(0, 1), batches=(1, 3, 10, 30), probed=(3, 30), n_probes=1).changed(
    n_images=200, layers=(20, 20, 40), dtype="float64", n_gen=12
)
PROFILES = {"quick": (QUICK, QUICK.changed(methods=("lea-mvd",))), "paper": (*ALONE, *SEARCHED)}


class Tables(NamedTuple):
    """What is measured; `features` are whose stack a layer is trained on."""

    runs: Table  # errors of each layer at the start of a search and at its end
    probes: Table  # linear classifiers of the uppermost features
    pictures: Table  # digits that the first stacks give back


def tables(
    profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any
) -> Tables:
    """Return the section's tables: what is recorded, or what is computed here."""
    if profile != "recorded":
        plan = planned(profile, **changes)
        return Tables(**results.tables(plan, folder, n_jobs=n_jobs, label="few mini-batches"))
    results.refuse(changes)
    of_section_3 = read_recorded("mnist_7x7").query(
        "method == 'lea-mvd' and inputs == 'own' and seed in @PAPER.seeds"
    )
    found = []
    for table in Tables._fields:
        rows = [read_recorded(name, table) for name in ("few_updates", "few_updates_searched")]
        if table == "runs":
            whole = last(of_section_3)
            rows.append(whole.assign(features="own", batches=BATCHES[-1], momentum_epochs=5))
        found.append(pd.concat(rows, join="inner", ignore_index=True))
    return Tables(*found)


def at_28x28() -> pd.DataFrame:
    """Return the errors of starts alone at 28x28 pixels, and of CD with the same seeds, as
    `Tables.runs` has them.
    """
    runs = read_recorded("mnist_28x28").query(
        "method == 'cd' and inputs == 'own' and seed in @LARGE.seeds"
    )
    cd = last(runs).assign(
        features="own", batches=0, momentum_epochs=LARGE.training.momentum_epochs
    )
    return pd.concat([read_recorded("few_updates_28x28"), cd], join="inner", ignore_index=True)


def planned(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    studies = results.profile(profile, PROFILES)
    return plan([study.changed(**changes).on_disk() for study in studies])


# ---- what is computed

LABELS = ["n_images", "momentum_epochs", "features", "method", "batches", "layer", "seed"]
OF_STACKS = [name for name in LABELS if name not in ("features", "layer")]


def plan(studies: Sequence[Started]) -> Plan:
    """Return the plan of the tables of some studies."""
    runs = {}
    probed = {}
    drawn = {}
    for given in studies:
        study = given.known()
        images = study.images.n_images, study.training.momentum_epochs
        source = study.images, study.training.dtype
        for (method, batches, seed), layers in stacks(study):
            for number, layer in enumerate(layers, start=1):
                runs[(*images, "own", method, batches, number, seed)] = layer
            runs |= swapped(study, images, method, batches, seed, layers)
            label = (*images, method, batches, seed)
            is_probed = study.probed and batches in (0, *study.probed)
            if is_probed and seed in study.seeds[: study.n_probes]:
                probed[label] = delayed(probes)(layers[-1], *source, len(layers))
            if seed == study.seeds[0]:
                drawn[label] = delayed(pictures)(layers[-1], *source)
    return {"runs": (LABELS, runs), "probes": (OF_STACKS, probed), "pictures": (OF_STACKS, drawn)}


def stacks(study: Started) -> Iterator[tuple[tuple[str, int, int], tuple[Call, ...]]]:
    """Yield the stacks of a study by method, mini-batches and seed; CD's own first epochs have
    none.
    """
    whole = study.ends()
    alone = replace(study, iterations=(0,))
    for method, seed in product(study.methods, study.seeds):
        if method == "cd":
            yield (method, 0, seed), stack(whole, method, seed)
        for batches in study.batches:
            if method == "cd":
                yield (START, batches, seed), stack(alone, started("lea-mvd", batches), seed)
            else:
                yield (method, batches, seed), stack(whole, started(method, batches), seed)


def starts_alone(study: Started) -> Plan:
    """Return the plan of the starts of a study without CD's epochs: their errors, and pictures of
    the first seed.
    """
    whole = plan([study])
    alone = {}
    for table in ("runs", "pictures"):
        columns, calls = whole[table]
        kept = {label: call for label, call in calls.items() if "cd" not in label}
        alone[table] = (columns, kept)
    return alone


def started(method: str, batches: int) -> str:
    """Return the text of a method that starts from so many mini-batches."""
    joint = "+" if ":" in method else ":"
    return f"{method}{joint}x0=batch+x0_batches={batches}"


def swapped(
    study: Started,
    images: tuple[Any, ...],
    method: str,
    batches: int,
    seed: int,
    layers: tuple[Call, ...],
) -> dict[tuple[Any, ...], Call]:
    """Return the uppermost layer of starts on the features of CD, and by CD on theirs; of other
    methods nothing.
    """
    if method != START:
        return {}
    alone = replace(study, iterations=(0,))
    whole = study.ends()
    top = len(layers)
    n_hidden = study.layers[-1]
    below = stack(whole, "cd", seed)[-2]
    return {
        (*images, "cd", START, batches, top, seed): layer_call(
            alone, started("lea-mvd", batches), n_hidden, seed, below
        ),
        (*images, START, "cd", batches, top, seed): layer_call(
            whole, "cd", n_hidden, seed, layers[-2]
        ),
    }


RECORDED = {
    "few_updates": Recorded(ALONE, lambda: plan(ALONE), unverified=("pictures",)),
    "few_updates_searched": Recorded(SEARCHED, lambda: plan(SEARCHED), unverified=("pictures",)),
    "few_updates_28x28": Recorded(LARGE, lambda: starts_alone(LARGE), unverified=("pictures",)),
}

# ---- tables of starts

# what seeds on own inputs share
OWN = ["n_images", "momentum_epochs", "method", "batches", "layer"]
MEASURES = {
    "error": "error / CD's",
    "sampled": "sampled error / CD's",
    "features": "by features",
    "ratio": "error / constant's",
}


def over_cd(runs: pd.DataFrame) -> pd.DataFrame:
    """Return last errors on own inputs over those of CD with the same seed, a row for each run.

    `error`, by mean field, is the product of `features`, the constant image's error over that on
    CD's inputs, and of learning: the `ratio` to the constant image's error over CD's ratio.
    `sampled` is the sampled error.
    """
    ends = last(runs).query("features == 'own'")
    ends = ends.rename(columns={"mean_field": "error", "mean_field_ratio": "ratio"})
    alike = ["n_images", "momentum_epochs", "layer", "seed"]
    cd = ends.query("method == 'cd'").set_index(alike)[["error", "sampled", "ratio"]]
    rows = ends.join(cd.add_suffix(" of cd"), on=alike)
    rows["sampled"] /= rows["sampled of cd"]
    rows["error"] /= rows["error of cd"]
    rows["features"] = rows.eval("error * `ratio of cd` / ratio")
    return rows[[*OWN, "seed", *MEASURES]]


def by_batches(rows: pd.DataFrame) -> pd.DataFrame:
    """Return geometric means of `MEASURES` with their intervals."""
    tables = []
    for name in MEASURES:
        ends = summarize(rows, name, OWN, geometric=True).set_index(OWN)
        tables.append(
            ends[["mean", "low", "high"]].set_axis([name, f"{name} low", f"{name} high"], axis=1)
        )
    table = pd.concat(tables, axis=1).rename(index={START: "no search"}).reset_index()
    return table.sort_values("method", kind="stable")


def mechanism(runs: pd.DataFrame) -> pd.DataFrame:
    """Return what the conditions of the mechanism are about: factors for the uppermost RBM of the
    start alone.

    They are geometric means over seeds of how the features of CD and training by CD change its
    error, and of the error on fewer images over that on all.
    """
    ends = last(runs)
    uppermost = ends["layer"] == ends["layer"].max()
    ends = ends[uppermost & (ends["momentum_epochs"] == ends["momentum_epochs"].min())]
    ends = ends.assign(error=ends.eval("mean_field / n_images"))
    ends = ends.set_index(["n_images", "features", "method", "batches", "seed"])
    errors = np.log(ends["error"]).unstack("seed")
    numbers = ends.index.unique("n_images")
    on_all = errors.loc[numbers.max()]
    alone = on_all.loc["own", START]
    factors = {
        "by CD's features": on_all.loc["cd", START] - alone,
        "by CD's training": on_all.loc[START, "cd"] - alone,
        "on fewer images": errors.loc[numbers.min(), "own", START] - alone,
    }
    return np.exp(pd.DataFrame({name: rows.mean(axis=1) for name, rows in factors.items()}))


# ---- weights that win by the reconstruction error for nothing


def collapsed(
    first: RBMParameters, scale: float, V: np.ndarray, n_hidden: int
) -> list[RBMParameters]:
    """Return RBM 1 with its weights times `scale`, and an RBM 2 that knows the mean of what this
    makes of `V`.

    The weights of RBM 2 are zero, its visible biases the logits of the mean.
    """
    lower = RBMParameters(scale * first.W, first.b, first.c)
    mean = lower.hidden_given_visible(V).mean(axis=0)
    return [lower, RBMParameters(np.zeros((len(mean), n_hidden)), logit(mean), np.zeros(n_hidden))]


def bound(first: RBMParameters, scale: float, V: np.ndarray) -> float:
    """Return what the error of the collapsed RBM 2 cannot exceed, per image: scale^2 / 16 trace(W^T
    Cov(v) W).
    """
    return float(scale**2 / 16 * (V @ first.W).var(axis=0).sum())


def collapse(
    data: Dataset, first: RBMParameters, scales: Sequence[float], n_hidden: int, *, epochs: int
) -> pd.DataFrame:
    """Return what comes of making RBM 1's weights smaller, for RBM 2 and for what the features are
    good for.

    A row for each scale has, per image, the `error` of the collapsed RBM 2, its `bound`, and the
    `cd error` of another RBM 2 that so many epochs of contrastive divergence have trained on the
    same features; and the percentage of test images that a `probe` gets wrong: by the features of
    RBM 1, `wrong`, and of the collapsed RBM 2, `wrong above`.
    """
    rows = []
    for scale in scales:
        lower, upper = collapsed(first, scale, data.train, n_hidden)
        V = lower.hidden_given_visible(data.train)
        T = lower.hidden_given_visible(data.test)
        cd = ContrastiveDivergence(V, n_hidden, seed=0)
        for _ in range(epochs):
            cd.epoch()
        error = reconstruction_errors(upper, V, seed=0).mean_field / len(V)
        trained = reconstruction_errors(cd.rbm, V, seed=0).mean_field / len(V)
        _, wrong, _ = probe(V, data.train_labels, T, data.test_labels)
        V = upper.hidden_given_visible(V)
        T = upper.hidden_given_visible(T)
        _, above, _ = probe(V, data.train_labels, T, data.test_labels)
        limit = bound(first, scale, data.train)
        rows.append((scale, error, limit, trained, 100 * wrong, 100 * above))
    return pd.DataFrame(
        rows, columns=["scale", "error", "bound", "cd error", "wrong", "wrong above"]
    )


# ---- both measures along a search


def paths(runs: pd.DataFrame) -> pd.DataFrame:
    """Return both measures over the run as ratios to the constant image's error: means over runs.

    Contrastive divergence begins with its first epoch, which is where the optimizers start; its
    random weights are off any scale.
    """
    shown = runs[(runs["iteration"] > 0) | ~runs["method"].str.startswith("cd")]
    groups = shown.groupby([*GROUP, "iteration"], sort=False)
    return groups[["mean_field_ratio", "sampled_ratio"]].mean().reset_index()


# ---- figures


def _draw_start(ax: Axes, rows: pd.DataFrame, name: str) -> None:
    """Draw a measure of a method in a layer: a line over mini-batches, or CD's, which has none."""
    method = rows["method"].iloc[0]
    look = method_look(method)
    look["label"] = named(method)
    if method == "cd":
        ax.axhline(rows[name].item(), linewidth=1.5, **look)
        return
    line = rows.rename(columns={f"{name} low": "low", f"{name} high": "high"})
    band(ax, line, "batches", name, marker=".", **look)


@styled
def plot_starts(table: pd.DataFrame) -> Figure:
    """Plot `by_batches`: errors over CD's, and over the constant image's, against mini-batches; a
    line a method.
    """
    table = table.query("layer > 1")
    layers = sorted(table["layer"].unique())
    figure, axes = panels(2, len(layers), height=5.2, sharex=True, sharey="row")
    for (_, layer), rows in table.groupby(["method", "layer"], sort=False):
        column = axes[:, layers.index(layer)]
        column[0].set_title(f"RBM {layer}")
        _draw_start(column[0], rows, "error")
        _draw_start(column[1], rows, "ratio")
    for ax in axes.flat:
        log_scale(ax, "xy")
    for ax in axes[1]:
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_xlabel("mini-batches of the start")
    axes[0, 0].set_ylabel("error / CD's")
    axes[1, 0].set_ylabel("error / constant image's")
    legend(figure)
    return figure


@styled
def plot_paths(table: pd.DataFrame, ends: pd.DataFrame) -> Figure:
    """Plot the two ratios of `paths` against each other over the run.

    A method's line starts with an open marker and ends with a filled one, which has the intervals
    of `ends`.
    """
    intervals = ends.set_index(["measure", *GROUP])
    figure, axes = layers_by_inputs(table, 2.1, margin=1.3)
    for (kind, layer, method), line in table.groupby(GROUP, sort=False):
        ax = axes[kind, layer]
        look = method_look(method)
        dot = {"color": look["color"], "markersize": 5}
        x = line["mean_field_ratio"].to_numpy()
        y = line["sampled_ratio"].to_numpy()
        right = error_bars(intervals.loc[[("mean_field_ratio", kind, layer, method)]])
        up = error_bars(intervals.loc[[("sampled_ratio", kind, layer, method)]])
        ax.plot(x, y, linewidth=1.5, label=named(method), **look)
        ax.plot(x[:1], y[:1], "o", fillstyle="none", **dot)
        ax.errorbar(x[-1:], y[-1:], up, right, fmt="o", **dot)
    for ax in axes.values():
        ax.axhline(1.0, color="black", linewidth=0.8)
        ax.axvline(1.0, color="black", linewidth=0.8)
        log_scale(ax, "xy")
    for ax in figure.axes[-table["inputs"].nunique() :]:
        ax.set_xlabel("mean-field ratio")
    figure.supylabel("sampled ratio: error / constant image's")
    legend(figure, ncols=2)
    return figure
