"""Section 8: whether LEA-MVD pre-trains better than contrastive divergence.

A network that starts from a stack of RBMs is fine-tuned to classify digits (claim C15). Beside its
test error stand linear probes of each layer's features, and the likelihood of test images under the
first RBM.
"""

import dataclasses
import time
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leamvd._support import checks
from leamvd._support.threads import one_blas_thread
from leamvd.networks import likelihood
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import fine_tune, layer_seed
from leamvd.networks.rbm import sample_bits

from . import results
from .layers import ONE_EPOCH, Images, Study, last, probes, rbms, stack
from .plots import COLORS, GRAY, band, error_bars, legend, log_scale, method_look, panels, styled
from .results import Call, Plan, Recorded, Result, delayed, read_recorded
from .statistics import Effect, components, paired
from .study_methods import trainer_of
from .words import named

# ---- settings

# random weights with the standard deviation sqrt(2 / (n_in + n_out)) in each layer
GLOROT = "glorot"
# how methods are named that are random weights, before their scale; "random" is random search
RANDOM = "random-"
BATCHES = 5  # of the chains behind a log-likelihood
# what random numbers are drawn for; fine-tuning's are 1
_CHAINS = 2
_BITS = 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(Study):
    """Methods whose stacks, trained on their own inputs, are measured beside random weights."""

    methods: tuple[str, ...] = ("cd", "lea-mvd")
    inputs: tuple[str, ...] = ("own",)
    scales: tuple[str, ...] = ("0.01", "0.1", GLOROT)  # standard deviations of random weights
    epochs: int = 50  # of fine-tuning
    tuning_rate: float = 0.2  # its first learning rate
    n_chains: int = 100  # of annealed importance sampling
    n_temperatures: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("inputs", self.inputs, [("own",)])
        scales = checks.several("scales", self.scales)
        object.__setattr__(self, "scales", tuple(map(str, scales)))
        stds: list[str | float] = []
        for scale in self.scales:
            if scale == GLOROT:
                stds.append(scale)
                continue
            try:
                std = checks.real("scales", checks.decimal(scale), at_least=0)
            except ValueError:
                raise ValueError(
                    f"scales must be numbers >= 0 or {GLOROT!r}, got {scale!r}"
                ) from None
            stds.append(std)
        checks.several("scales", stds, different=True)
        checks.integer("epochs", self.epochs, at_least=1)
        checks.real("tuning_rate", self.tuning_rate, above=0)
        if checks.integer("n_chains", self.n_chains, at_least=2 * BATCHES) % BATCHES:
            raise ValueError(f"n_chains must be a multiple of {BATCHES}, got {self.n_chains}")
        checks.integer("n_temperatures", self.n_temperatures, at_least=1)

    def on_disk(self) -> Self:
        """Return the study of the images that are on this machine; fewer than three classes are an
        error.
        """
        known = super().on_disk()
        labels = known.images.load(self.training.dtype).train_labels
        # two share one output unit
        checks.integer("classes of the data set", len(np.unique(labels)), at_least=3)
        return known


PAPER = Settings(images=Images(dataset="mnist"), seeds=tuple(range(30)))
PROFILES = {
    "quick": (
        Settings(seeds=(0, 1), epochs=40, n_chains=20, n_temperatures=100).changed(
            dtype="float64", n_gen=20
        )
    ),
    "paper": PAPER,
    "controls": PAPER.changed(methods=(ONE_EPOCH,), scales=()),
    "paper-28x28": PAPER.changed(side=28, layers=(500, 500, 2000), seeds=tuple(range(12))),
}
ARCHIVE = {
    "paper": "classification",
    "controls": "classification_controls",
    "paper-28x28": "classification_28x28",
}


class Tables(NamedTuple):
    """What is measured of each stack; errors are shares of wrong images."""

    runs: pd.DataFrame  # fine-tuning: test error and loss after each epoch
    probes: pd.DataFrame  # linear classifiers of the images (layer 0) and of each layer's features
    likelihoods: pd.DataFrame  # of test images under the first layer, as chains are added
    mistakes: pd.DataFrame  # test images that fine-tuned networks get wrong, not of random weights


def tables(
    profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any
) -> Tables:
    """Return the tables of a profile: what is recorded of both sizes of images, or what is computed
    here.
    """
    if profile != "recorded":
        plan = planned(profile, **changes)
        return Tables(**results.tables(plan, folder, n_jobs=n_jobs, label="classification"))
    results.refuse(changes)
    measured = []
    for table in Tables._fields[:3]:
        parts = [read_recorded(name, table) for name in ARCHIVE.values()]
        measured.append(pd.concat(parts, ignore_index=True))
    small = read_recorded("mistakes")
    large = read_recorded("mistakes_28x28")
    # at 28x28 pixels no search left its start solution
    same = large[large["method"] == ONE_EPOCH].assign(method="lea-mvd")
    return Tables(*measured, pd.concat([small, large, same], ignore_index=True))


def planned(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    return plan(results.profile(profile, PROFILES).changed(**changes).on_disk())


# ---- what is computed


def random_stack(sizes: tuple[int, ...], scale: str, dtype: str, seed: int) -> Result:
    """Return a stack with weights N(0, scale) and zero biases, that which CD of the same seed would
    start from.
    """
    stds = []
    for n_in, n_out in pairwise(sizes):
        std = np.sqrt(2 / (n_in + n_out)) if scale == GLOROT else scale
        stds.append(float(std))
    return normal_stack(sizes, stds, dtype, seed)


def normal_stack(sizes: Sequence[int], stds: Sequence[float], dtype: str, seed: int) -> Result:
    """Return a stack with normal weights of a standard deviation for each
    layer, and zero biases.
    """
    arrays = {}
    for layer, (n_in, n_out) in enumerate(pairwise(sizes), start=1):
        nothing = np.zeros((1, n_in), dtype)
        rbm = ContrastiveDivergence(
            nothing, n_out, weight_scale=stds[layer - 1], seed=layer_seed(seed, layer)
        ).rbm
        arrays |= {f"{name}{layer}": values for name, values in rbm._asdict().items()}
    return Result(pd.DataFrame({"std": stds}), arrays)


def fine_tuned(
    stack: Result, images: Images, dtype: str, seed: int, epochs: int, tuning_rate: float
) -> Result:
    """Return test error and loss after each epoch, and what the last network
    names the test images.
    """
    data = images.load(dtype)
    rows = []
    began = time.perf_counter()
    training = {"epochs": epochs, "tuning_rate": tuning_rate, "seed": seed}
    for classifier, loss in fine_tune(rbms(stack), data.train, data.train_labels, **training):
        with one_blas_thread():
            named = classifier.predict(data.test)
        wrong = float(np.mean(named != data.test_labels))
        rows.append((len(rows) + 1, wrong, loss, time.perf_counter() - began))
    columns = ["epoch", "test_error", "loss", "seconds"]
    return Result(pd.DataFrame(rows, columns=columns), {"named": named})


def mistakes(tuned: Result, images: Images, dtype: str) -> Result:
    """Return the test images that a fine-tuned network gets wrong, with the class that it names."""
    named = tuned.arrays["named"]
    wrong = np.flatnonzero(named != images.load(dtype).test_labels)
    return Result(pd.DataFrame({"image": wrong, "named": named[wrong]}))


def likelihoods(
    stack: Result, images: Images, dtype: str, seed: int, n_chains: int, n_temperatures: int
) -> Result:
    """Return the log-likelihood of test images under the first layer, by annealed importance
    sampling in `BATCHES`.

    Images are binarized, each pixel being on with the probability of its gray level, by the same
    random numbers for every stack. `independent` is what independent pixels find that are on as
    often as in training images.
    """
    data = images.load(dtype)
    rbm = rbms(stack)[0]
    began = time.perf_counter()
    base = likelihood.base_rates(data.train)
    bits = sample_bits(data.test.astype(np.float64), _rng(0, _BITS, 1))
    independent = likelihood.independent(base).log_likelihood(bits)
    settings = {"n_chains": n_chains // BATCHES, "n_temperatures": n_temperatures}
    rows = []
    log_w = np.empty(0)
    for batch in range(1, BATCHES + 1):
        added = likelihood.log_weights(rbm, base, **settings, rng=_rng(seed, _CHAINS, batch))
        log_w = np.concatenate([log_w, added])
        estimate = likelihood.estimate(rbm, bits, log_w)
        rows.append((batch, len(log_w), *estimate, independent, time.perf_counter() - began))
    columns = ["iteration", "chains", *likelihood.LogLikelihood._fields, "independent", "seconds"]
    return Result(pd.DataFrame(rows, columns=columns))


def _rng(seed: int, purpose: int, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, purpose, number])


RUN = ["study", "method", "seed"]


def plan(study: Settings) -> Plan:
    """Return the plan of the section's `Tables`: of trained stacks, and but for mistakes of random
    weights.
    """
    given = study.images, study.training.dtype
    sizes = (study.images.side**2, *study.layers)
    random = [f"{RANDOM}{scale}" for scale in study.scales]
    calls: dict[str, dict[tuple[Any, ...], Call]] = {name: {} for name in Tables._fields}
    for method, seed in product((*study.methods, *random), study.seeds):
        run = study.size, method, seed
        if method in random:
            weights = method.removeprefix(RANDOM), study.training.dtype, seed
            whole = delayed(random_stack)(sizes, *weights)
            first = delayed(random_stack)(sizes[:2], *weights)
        else:
            layers = stack(study, method, seed)
            whole = layers[-1]
            first = layers[0]
        tuned = delayed(fine_tuned)(whole, *given, seed, study.epochs, study.tuning_rate)
        calls["runs"][run] = tuned
        calls["probes"][run] = delayed(probes)(whole, *given)
        calls["likelihoods"][run] = delayed(likelihoods)(
            first, *given, seed, study.n_chains, study.n_temperatures
        )
        if method not in random:
            calls["mistakes"][run] = delayed(mistakes)(tuned, *given)
    return {name: (RUN, labeled) for name, labeled in calls.items()}


def _recorded(profile: str, *methods: str) -> Recorded:
    """Return what is recorded of a profile: all tables but mistakes, or these alone, of the methods
    given.
    """
    study = PROFILES[profile]
    if methods:
        study = study.changed(methods=methods, scales=())

    def planned() -> Plan:
        measured = plan(study.known())
        listed = measured.pop("mistakes")
        return {"runs": listed} if methods else measured

    return Recorded(study, planned)


WIDER = PROFILES["paper-28x28"].changed(scales=("0.3", "1"), seeds=tuple(range(5)))


def _wider() -> Plan:
    """Return the plan of networks of random weights that are larger than those of the profiles."""
    columns, calls = plan(WIDER.known())["runs"]
    random = {run: call for run, call in calls.items() if run[1].startswith(RANDOM)}
    return {"runs": (columns, random)}


RECORDED = {
    "classification": _recorded("paper"),
    "classification_controls": _recorded("controls"),
    "classification_28x28": _recorded("paper-28x28"),
    "mistakes": _recorded("paper", ONE_EPOCH, "cd", "lea-mvd"),
    "mistakes_28x28": _recorded("paper-28x28", ONE_EPOCH, "cd"),
    "classification_28x28_wider": Recorded(WIDER, _wider),
}

# ---- tables


def over_test_images(
    wrong_images: pd.DataFrame, method: str, baseline: str, n_images: int
) -> float:
    """Return half the width of the 95 % interval of the log ratio of two test errors, over seeds
    and test images.

    Both are random and crossed, see `components`. Of so many images those that a network of a seed
    gets wrong are listed. The ratio of mean errors is linearized: each image counts with its share
    of either. NaN for one seed.
    """
    shares = []
    for name in (method, baseline):
        listed = wrong_images[wrong_images["method"] == name].assign(wrong=1.0)
        wrong = listed.pivot(index="image", columns="seed", values="wrong")
        wrong = wrong.reindex(range(n_images)).fillna(0.0)
        shares.append(wrong / wrong.to_numpy().mean())
    cells = (shares[0] - shares[1]).stack().rename("share").reset_index()
    if cells["seed"].nunique() < 2:
        return np.nan
    if cells["share"].nunique() < 2:
        return 0.0
    scatter = components(cells, "share", "image", "seed")
    return float(scatter["high"] - scatter["mean"])


def classify_better(
    runs: pd.DataFrame, wrong_images: pd.DataFrame, method: str = "lea-mvd", baseline: str = "cd"
) -> dict[str, Effect]:
    """Test by study whether a method's test errors are below another one's; intervals cover other
    test images too.
    """
    effects = {}
    for study, ends in last(runs, "epoch").groupby("study", sort=False):
        errors = ends.pivot(index="seed", columns="method", values="test_error")
        listed = wrong_images[wrong_images["study"] == study]
        if {method, baseline} <= {*listed["method"]}:
            effect = paired(errors[method], errors[baseline], upper=1)
            n_images = round(listed["method"].eq(baseline).sum() / errors[baseline].sum())
            half = over_test_images(listed, method, baseline, n_images)
            effects[study] = effect._replace(
                rank_low=effect.rank * np.exp(-half), rank_high=effect.rank * np.exp(half)
            )
    return effects


# ---- figures


@styled
def plot_errors(bands: pd.DataFrame) -> Figure:
    """Plot test errors, in percent, against the column epoch."""
    figure, axes = _panels(bands, "test error after fine-tuning, %")
    for ax, (_, rows) in zip(axes, bands.groupby("study", sort=False), strict=True):
        for method, line in rows.groupby("method", sort=False):
            band(ax, line, "epoch", label=named(str(method)), **_look(str(method), bands))
        ax.set_xlabel("epoch")
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        log_scale(ax, "y")
    legend(figure)
    return figure


@styled
def plot_probes(table: pd.DataFrame) -> Figure:
    """Plot test errors of linear probes, in percent, by the column layer, in
    which 0 is the images.
    """
    figure, axes = _panels(table, "test error of a linear probe, %")
    n_methods = table["method"].nunique()
    for ax, (_, rows) in zip(axes, table.groupby("study", sort=False), strict=True):
        for i, (method, points) in enumerate(rows.groupby("method", sort=False)):
            places = points["layer"] + 0.3 * (i / n_methods - 0.5)  # a little apart for each method
            look = _look(str(method), table)
            look["label"] = named(str(method))
            mean = points["mean"]
            ax.errorbar(
                places, mean, error_bars(points), marker="o", markersize=4, linewidth=1, **look
            )
        layers = sorted(rows["layer"].unique())
        ax.set_xticks(layers, ["pixels", *(f"RBM {layer}" for layer in layers[1:])])
        log_scale(ax, "y")
    legend(figure)
    return figure


@styled
def plot_likelihoods(table: pd.DataFrame, independent: pd.Series) -> Figure:
    """Plot log-likelihoods of the first layers; a line is what `independent`
    pixels find, by study.
    """
    figure, axes = _panels(table, "log-likelihood of a test image, nats")
    for ax, (study, rows) in zip(axes, table.groupby("study", sort=False), strict=True):
        for i, (method, point) in enumerate(rows.groupby("method", sort=False)):
            color = _look(str(method), table)["color"]
            ax.errorbar(
                [i], point["mean"], error_bars(point), color=color, marker="o", markersize=4
            )
        ax.axhline(independent[study], color="black", linewidth=0.8)
        ax.set_xticks(range(len(rows)), [*map(named, rows["method"])], rotation=20, ha="right")
        ax.set_xlim(-0.5, len(rows) - 0.5)
    return figure


def _panels(table: pd.DataFrame, ylabel: str) -> tuple[Figure, np.ndarray]:
    studies = table["study"].unique()
    figure, axes = panels(len(studies), 1, height=0.7 + 3 * len(studies))
    for ax, study in zip(axes[:, 0], studies, strict=True):
        ax.set_title(named(study))
    figure.supylabel(ylabel)
    return figure, axes[:, 0]


def _look(method: str, table: pd.DataFrame) -> dict[str, str]:
    """Return color and line style of a method, or of random weights by their place among them."""
    if trainer_of(method) in COLORS:
        return method_look(method)
    random = [other for other in table["method"].unique() if trainer_of(other) not in COLORS]
    styles = ("-", "--", ":", "-.")
    return {"color": GRAY, "linestyle": styles[random.index(method) % 4]}
