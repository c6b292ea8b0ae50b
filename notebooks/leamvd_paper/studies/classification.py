"""Section 8: whether LEA-MVD pre-trains better than contrastive divergence.

A network that starts from a stack of RBMs is fine-tuned to classify digits (claim C15). Beside its
test error stand linear probes of each layer's features, and the likelihood of test images under the
first RBM.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from typing import NamedTuple, Self

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

from .layers import ONE_EPOCH, Images, Section, Study, last, probes, rbms, stack
from .plots import COLORS, GRAY, band, error_bars, facets, legend, log_scale, method_look, styled
from .results import Plan, Recorded, Result, Table, Texts, delayed, read_recorded
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


@dataclass(frozen=True, kw_only=True)
class Settings(Study):
    """Methods whose stacks, trained on their own inputs, are measured beside random weights."""

    methods: Texts = ("cd", "lea-mvd")
    inputs: Texts = ("own",)
    scales: Texts = ("0.01", "0.1", GLOROT)  # standard deviations of random weights
    epochs: int = 50  # of fine-tuning
    tuning_rate: float = 0.2  # its first learning rate
    n_chains: int = 100  # of annealed importance sampling
    n_temperatures: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("inputs", self.inputs, [("own",)])
        scales = checks.several("scales", self.scales)
        object.__setattr__(self, "scales", tuple(map(str, scales)))
        stds = []
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

    runs: Table  # fine-tuning: test error and loss after each epoch
    probes: Table  # linear classifiers of the images (layer 0) and of each layer's features
    likelihoods: Table  # of test images under the first layer, as chains are added
    mistakes: Table  # test images that fine-tuned networks get wrong, not of random weights


def recorded() -> Tables:
    """Return what is recorded of both sizes of images."""
    measured = []
    for table in Tables._fields[:3]:
        parts = [read_recorded(name, table) for name in ARCHIVE.values()]
        measured.append(pd.concat(parts, ignore_index=True))
    small = read_recorded("mistakes")
    large = read_recorded("mistakes_28x28")
    # at 28x28 pixels no search left its start solution
    same = large.query("method == @ONE_EPOCH").assign(method="lea-mvd")
    return Tables(*measured, pd.concat([small, large, same], ignore_index=True))


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
    return Result(
        pd.DataFrame(rows, columns=["epoch", "test_error", "loss", "seconds"]), {"named": named}
    )


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
    return Result(
        pd.DataFrame(
            rows,
            columns=[
                "iteration",
                "chains",
                *likelihood.LogLikelihood._fields,
                "independent",
                "seconds",
            ],
        )
    )


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
    calls = {name: {} for name in Tables._fields}
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


tables = Section(Tables, PROFILES, plan, recorded, "classification")


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
    random = {}
    for run, call in calls.items():
        if run[1].startswith(RANDOM):
            random[run] = call
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
        listed = wrong_images.query("study == @study")
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
def plot_worth(stacks: pd.DataFrame, levels: pd.Series) -> Figure:
    """Plot test errors, in percent, against the column ratio, a point for each stack; and a level
    for each study.

    Points are open where a method has settings of its own: those of the start.
    """
    figure, parts = facets(stacks, "study", 2.5, columns=2)
    for ax, study, rows in parts:
        for method, dots in rows.groupby("method", sort=False):
            color = method_look(method)["color"]
            face = "none" if ":" in method else color
            x = dots["ratio"]
            ax.plot(x, dots["error"], "o", color=color, mfc=face, ms=4, label=named(method))
        ax.axhline(levels[study], color=GRAY, linestyle="--", label="random weights")
        ax.set(title=named(study), xlabel="error / constant image's")
        log_scale(ax, "xy")
    figure.supylabel("test error after fine-tuning, %")
    legend(figure)
    return figure


@styled
def plot_errors(bands: pd.DataFrame) -> Figure:
    """Plot test errors, in percent, against the column epoch."""
    figure, parts = facets(bands, "study", 3, margin=0.7)
    for ax, study, rows in parts:
        ax.set_title(named(study))
        for method, line in rows.groupby("method", sort=False):
            band(ax, line, "epoch", label=named(method), **_look(method, bands))
        ax.set_xlabel("epoch")
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        log_scale(ax, "y")
    figure.supylabel("test error after fine-tuning, %")
    legend(figure)
    return figure


@styled
def plot_probes(table: pd.DataFrame) -> Figure:
    """Plot test errors of linear probes, in percent, by the column layer, in
    which 0 is the images.
    """
    n_methods = table["method"].nunique()
    figure, parts = facets(table, "study", 3, margin=0.7)
    for ax, study, rows in parts:
        ax.set_title(named(study))
        for i, (method, points) in enumerate(rows.groupby("method", sort=False)):
            places = points["layer"] + 0.3 * (i / n_methods - 0.5)  # a little apart for each method
            look = _look(method, table)
            look["label"] = named(method)
            mean = points["mean"]
            ax.errorbar(
                places, mean, error_bars(points), marker="o", markersize=4, linewidth=1, **look
            )
        layers = sorted(rows["layer"].unique())
        ax.set_xticks(layers, ["pixels", *(f"RBM {layer}" for layer in layers[1:])])
        log_scale(ax, "y")
    figure.supylabel("test error of a linear probe, %")
    legend(figure)
    return figure


def _look(method: str, table: pd.DataFrame) -> dict[str, str]:
    """Return color and line style of a method, or of random weights by their place among them."""
    if trainer_of(method) in COLORS:
        return method_look(method)
    random = [other for other in table["method"].unique() if trainer_of(other) not in COLORS]
    styles = ("-", "--", ":", "-.")
    return {"color": GRAY, "linestyle": styles[random.index(method) % 4]}
