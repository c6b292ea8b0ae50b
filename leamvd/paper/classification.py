"""Section 8: does LEA-MVD pre-train better than contrastive divergence?

A network that starts from a stack of RBMs is fine-tuned to classify digits (claim C15). Beside its test error stand
linear probes of each layer's features, and the likelihood of test images under the first RBM.
"""

import dataclasses
import time
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leamvd._support import checks
from leamvd._support.threads import one_blas_thread
from leamvd.networks import likelihood
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import Training, layer_input, layer_seed
from leamvd.networks.rbm import RBMParameters, sample_bits
from leamvd.optimizers.reading import Reading

from . import results
from .layers import ONE_EPOCH, Images, Study, last, rbms, stack
from .methods import trainer_of
from .plots import COLORS, GRAY, band, error_bars, legend, log_scale, method_look, panels, styled
from .results import Call, Plan, Recorded, Result, delayed, read_recorded
from .statistics import compared, components, summarize

# ---- settings

GLOROT = "glorot"  # random weights with the standard deviation sqrt(2 / (n_in + n_out)) in each layer
RANDOM = "random-"  # how methods are named that are random weights, before their scale; "random" is random search
MOMENTUM, BATCH_SIZE = 0.9, 100  # of fine-tuning
PENALTY, STEPS = 0.01, 100  # of the probe: scikit-learn's C, and the solver's steps at most
BATCHES = 5  # of the chains behind a log-likelihood
_SHUFFLES, _CHAINS, _BITS = 1, 2, 3  # what random numbers are drawn for


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
        object.__setattr__(self, "scales", tuple(map(str, self.scales)))
        for scale in self.scales:
            try:
                checks.real("scales", 0.0 if scale == GLOROT else float(scale), at_least=0)
            except ValueError:
                raise ValueError(f"scales must be numbers >= 0 or {GLOROT!r}, got {scale!r}") from None
        checks.integer("epochs", self.epochs, at_least=1)
        checks.real("tuning_rate", self.tuning_rate, above=0)
        if checks.integer("n_chains", self.n_chains, at_least=2 * BATCHES) % BATCHES:
            raise ValueError(f"n_chains must be a multiple of {BATCHES}, got {self.n_chains}")
        checks.integer("n_temperatures", self.n_temperatures, at_least=1)

    def on_disk(self) -> Self:
        """Return the study of the images that are on this machine; fewer than three classes are an error."""
        labels = self.images.load(self.training.dtype).train_labels
        checks.integer("classes of the data set", len(np.unique(labels)), at_least=3)  # two share one output unit
        return super().on_disk()


PAPER = Settings(images=Images(dataset="mnist"), seeds=tuple(range(30)))
PROFILES = {
    "quick": Settings(
        seeds=(0, 1),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=20),
        epochs=40,
        n_chains=20,
        n_temperatures=100,
    ),
    "paper": PAPER,
    "paper-28x28": PAPER.changed(side=28, layers=(500, 500, 2000), seeds=tuple(range(12))),
    "controls": PAPER.changed(methods=(ONE_EPOCH,), scales=()),
}
ARCHIVE = {"paper": "classification", "paper-28x28": "classification_28x28", "controls": "classification_controls"}


class Tables(NamedTuple):
    """What is measured of each stack; errors are shares of wrong images."""

    runs: pd.DataFrame  # fine-tuning: test error and loss after each epoch
    probes: pd.DataFrame  # linear classifiers of the images (layer 0) and of each layer's features
    likelihoods: pd.DataFrame  # of test images under the first layer, as chains are added
    mistakes: pd.DataFrame  # test images that fine-tuned networks get wrong, not of random weights


def tables(profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any) -> Tables:
    """Return the tables of a profile: what is recorded of both sizes of images, or what is computed here.

    `changes` are fields of `Settings`, of its images, its training or its reading; one that is None is none.
    """
    if profile == "recorded":
        if given := [name for name, value in changes.items() if value is not None]:
            raise ValueError(f"profile='recorded' has fixed settings; {given[0]} needs profile quick or paper")
        found = [pd.concat([read_recorded(name, t) for name in ARCHIVE.values()]) for t in Tables._fields[:3]]
        small, large = (read_recorded(name) for name in ("mistakes", "mistakes_28x28"))
        same = large["method"].eq(ONE_EPOCH)  # at 28x28 pixels no search left its start solution
        return Tables(*found, pd.concat([small, large, large[same].assign(method="lea-mvd")]))
    study = PROFILES[checks.choice("profile", profile, [*PROFILES])].changed(**changes).on_disk()
    planned = {**plan(study), "mistakes": listed(study)}
    return Tables(**results.tables(planned, folder, n_jobs=n_jobs, label="classification"))


# ---- what is computed


def random_stack(sizes: tuple[int, ...], scale: str, dtype: str, seed: int) -> Result:
    """Return a stack with weights N(0, scale) and zero biases, that which CD of the same seed would start from."""
    arrays, stds = {}, []
    for layer, (n_in, n_out) in enumerate(pairwise(sizes), start=1):
        stds.append(float(np.sqrt(2 / (n_in + n_out))) if scale == GLOROT else float(scale))
        nothing = np.zeros((1, n_in), dtype)
        rbm = ContrastiveDivergence(nothing, n_out, weight_scale=stds[-1], seed=layer_seed(seed, layer)).rbm
        arrays |= {f"{name}{layer}": values for name, values in rbm._asdict().items()}
    return Result(pd.DataFrame({"std": stds}), arrays)


def fine_tune(
    stack: Sequence[RBMParameters], V: np.ndarray, labels: np.ndarray, *, epochs: int, tuning_rate: float, seed: int
) -> Iterator[tuple[Any, float]]:
    """Train a stack with a softmax layer on top; yield scikit-learn's classifier and the loss after each epoch.

    It is stochastic gradient descent of the cross-entropy, whose mean over the epoch is the loss, in natural units and
    before each mini-batch's update. The new layer starts at zero, so that all classes begin with equal probabilities.
    The learning rate falls linearly, epoch by epoch, to ``tuning_rate / epochs``; momentum starts anew with each epoch.
    """
    from sklearn.neural_network import MLPClassifier  # as late as this, since it takes a while to import

    dtype, sizes, first = stack[-1].W.dtype, [len(rbm.c) for rbm in stack], np.unique(labels, return_index=True)[1]
    classifier = MLPClassifier(
        sizes, activation="logistic", solver="sgd", alpha=0, momentum=MOMENTUM, nesterovs_momentum=False, max_iter=1,
        warm_start=True, random_state=0,
    )  # fmt: skip
    _epoch(classifier, V[first], labels[first])  # tells it its sizes
    classifier.coefs_ = [*(rbm.W.copy() for rbm in stack), np.zeros((sizes[-1], len(first)), dtype)]
    classifier.intercepts_ = [*(rbm.c.copy() for rbm in stack), np.zeros(len(first), dtype)]
    classifier.set_params(batch_size=min(BATCH_SIZE, len(V)))
    for epoch in range(1, epochs + 1):
        rate = tuning_rate * (1 - (epoch - 1) / epochs)
        order = int(_rng(seed, _SHUFFLES, epoch).integers(2**32))
        _epoch(classifier.set_params(learning_rate_init=rate, random_state=order), V, labels)
        yield classifier, float(classifier.loss_)


def _epoch(classifier: Any, V: np.ndarray, labels: np.ndarray) -> None:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one epoch is what is wanted
        classifier.fit(V, labels)


def fine_tuned(stack: Result, images: Images, dtype: str, seed: int, epochs: int, tuning_rate: float) -> Result:
    """Return test error and loss after each epoch, and what the last network names the test images."""
    data, rows, began = images.load(dtype), [], time.perf_counter()
    training = {"epochs": epochs, "tuning_rate": tuning_rate, "seed": seed}
    for classifier, loss in fine_tune(rbms(stack), data.train, data.train_labels, **training):
        with one_blas_thread():
            named = classifier.predict(data.test)
        wrong = float(np.mean(named != data.test_labels))
        rows.append((len(rows) + 1, wrong, loss, time.perf_counter() - began))
    return Result(pd.DataFrame(rows, columns=["epoch", "test_error", "loss", "seconds"]), {"named": named})


def mistakes(tuned: Result, images: Images, dtype: str) -> Result:
    """Return the test images that a fine-tuned network gets wrong, with the class that it names."""
    named = tuned.arrays["named"]
    wrong = np.flatnonzero(named != images.load(dtype).test_labels)
    return Result(pd.DataFrame({"image": wrong, "named": named[wrong]}))


def probe(V: np.ndarray, labels: np.ndarray, T: np.ndarray, test_labels: np.ndarray) -> tuple[float, float, int]:
    """Return training and test error of logistic regression on features, shape (m, n), and the steps it took.

    Features are standardized: a layer's scale is no merit of its own, but it would decide how strongly the penalty acts
    and how fast the solver converges.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(V)
    V, T = scaler.transform(V), scaler.transform(T)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the recipe is so many steps at most
        found = LogisticRegression(C=PENALTY, max_iter=STEPS).fit(V, labels)
        errors = [float(np.mean(found.predict(A) != b)) for A, b in ((V, labels), (T, test_labels))]
    return errors[0], errors[1], int(found.n_iter_[0])


def probes(stack: Result, images: Images, dtype: str) -> Result:
    """Return the errors of linear probes of the images, as layer 0, and of each layer's features."""
    data, layers, rows, began = images.load(dtype), rbms(stack), [], time.perf_counter()
    for layer in range(len(layers) + 1):
        V, T = (layer_input(layers[:layer], images) for images in (data.train, data.test))
        found = probe(V, data.train_labels, T, data.test_labels)
        rows.append((layer, *found, float(V.std(axis=0, dtype=float).mean()), time.perf_counter() - began))
    columns = ["layer", "train_error", "test_error", "steps", "features_std", "seconds"]
    return Result(pd.DataFrame(rows, columns=columns))


def likelihoods(stack: Result, images: Images, dtype: str, seed: int, n_chains: int, n_temperatures: int) -> Result:
    """Return the log-likelihood of test images under the first layer, by annealed importance sampling in `BATCHES`.

    Images are binarized, each pixel being on with the probability of its gray level, by the same random numbers for
    every stack. `independent` is the log-likelihood under independent pixels that are on as often as in training images.
    """
    data, rbm, began = images.load(dtype), rbms(stack)[0], time.perf_counter()
    base, rows, log_w = likelihood.base_rates(data.train), [], np.empty(0)
    bits = sample_bits(data.test.astype(np.float64), _rng(0, _BITS, 1))
    independent = likelihood.independent(base).log_likelihood(bits)
    own = {"n_chains": n_chains // BATCHES, "n_temperatures": n_temperatures}
    for batch in range(1, BATCHES + 1):
        added = likelihood.log_weights(rbm, base, **own, rng=_rng(seed, _CHAINS, batch))
        log_w = np.concatenate([log_w, added])
        found = likelihood.estimate(rbm, bits, log_w)
        rows.append((batch, len(log_w), *found, independent, time.perf_counter() - began))
    columns = ["iteration", "chains", *likelihood.LogLikelihood._fields, "independent", "seconds"]
    return Result(pd.DataFrame(rows, columns=columns))


def _rng(seed: int, purpose: int, number: int) -> np.random.Generator:
    """Return random numbers of their own for each seed, purpose and number."""
    return np.random.default_rng([seed, purpose, number])


RUN = ["study", "method", "seed"]


def tuned(study: Settings, stack: Call, seed: int) -> Call:
    """Return the call that fine-tunes the network of a stack."""
    own = study.epochs, study.tuning_rate
    return delayed(fine_tuned)(stack, study.images, study.training.dtype, seed, *own)


def plan(study: Settings) -> Plan:
    """Return the plan of the section's `Tables` but mistakes: of trained stacks, and of random weights."""
    given, calls = (study.images, study.training.dtype), {name: {} for name in Tables._fields[:3]}
    sizes = study.images.side**2, *study.layers
    for method, seed in product((*study.methods, *(f"{RANDOM}{scale}" for scale in study.scales)), study.seeds):
        run, scale = (study.size, method, seed), method.removeprefix(RANDOM)
        if scale != method:
            whole, first = (delayed(random_stack)(units, scale, given[1], seed) for units in (sizes, sizes[:2]))
        else:
            first, *_, whole = stack(study, method, seed) * 2  # of one layer both are the same
        calls["runs"][run] = tuned(study, whole, seed)
        calls["probes"][run] = delayed(probes)(whole, *given)
        calls["likelihoods"][run] = delayed(likelihoods)(first, *given, seed, study.n_chains, study.n_temperatures)
    return {name: (RUN, own) for name, own in calls.items()}


def listed(study: Settings) -> tuple[list[str], dict[tuple[Any, ...], Call]]:
    """Return the plan of the table of mistakes, by the networks of trained stacks."""
    given = study.images, study.training.dtype
    return RUN, {
        (study.size, method, seed): delayed(mistakes)(tuned(study, stack(study, method, seed)[-1], seed), *given)
        for method, seed in product(study.methods, study.seeds)
    }


def _mistakes(profile: str, *methods: str) -> Recorded:
    study = PROFILES[profile].changed(methods=methods)
    return Recorded(study, {"runs": listed(study.on_disk())})


RECORDED = {
    **{
        name: lambda profile=profile: Recorded(PROFILES[profile], plan(PROFILES[profile].on_disk()))
        for profile, name in ARCHIVE.items()
    },
    "mistakes": lambda: _mistakes("paper", ONE_EPOCH, "cd", "lea-mvd"),
    "mistakes_28x28": lambda: _mistakes("paper-28x28", ONE_EPOCH, "cd"),
}
