"""What a stack of layers is worth: how well a linear probe and a fine-tuned network classify; how likely images are.

The stack was trained, or has random weights. A measurement runs in numbered iterations, stops where it is told to, and
goes on from there to the same numbers.
"""

import dataclasses
import time
import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.campaign.jobs import Job, Result, Step, unpacked
from leamvd.data.images import Dataset, Images
from leamvd.networks import dbn, likelihood
from leamvd.networks.dbn import Training, layer_input, layer_seed
from leamvd.networks.rbm import RBMParameters, sample_bits

GLOROT = "glorot"
"""Scale of random weights whose standard deviation is sqrt(2 / (n_in + n_out)) in each layer (Glorot and Bengio)."""

MOMENTUM, BATCH_SIZE = 0.9, 100
"""Of fine-tuning."""

PENALTY, STEPS = 0.01, 100
"""Of the probe: the inverse strength of its penalty (scikit-learn's C), and the solver's steps, at most."""

BATCHES = 5
"""In which the chains of a log-likelihood are run; each one can be gone on from."""

ORIGINAL = "original"
"""What the images that are reconstructed are called."""

_SHUFFLES, _CHAINS, _BITS = 1, 2, 3  # what random numbers are drawn for


@dataclasses.dataclass(frozen=True)
class RandomWeights:
    """A stack of layers with weights N(0, scale) and zero biases, in the place of a trained one."""

    sizes: tuple[int, ...]  # units, from the images up
    scale: str  # a number, or `GLOROT`
    dtype: str

    def stack(self, seed: int) -> list[RBMParameters]:
        """Return the layers that contrastive divergence of the same seed would start from at this scale."""
        layers = []
        for number, (n_in, n_out) in enumerate(pairwise(self.sizes), start=1):
            scale = np.sqrt(2 / (n_in + n_out)) if self.scale == GLOROT else float(self.scale)
            training = Training(dtype=self.dtype, weight_scale=float(scale))
            nothing = np.zeros((1, n_in), self.dtype)
            layers.append(training.contrastive_divergence(nothing, n_out, seed=layer_seed(seed, number)).rbm)
        return layers


# ---- fine-tuning


class Network(NamedTuple):
    """A stack with a softmax layer on top: weights and biases of each layer."""

    weights: list[Array]
    biases: list[Array]


def on_top(stack: Sequence[RBMParameters], n_classes: int) -> Network:
    """Return the network of a stack, whose output layer is zero: it begins with equal probabilities for all classes."""
    checks.integer("n_classes", n_classes, at_least=3)  # to two, scikit-learn gives one output unit
    dtype, n_features = stack[-1].W.dtype, len(stack[-1].c)
    weights = [*(rbm.W for rbm in stack), np.zeros((n_features, n_classes), dtype)]
    return Network(weights, [*(rbm.c for rbm in stack), np.zeros(n_classes, dtype)])


def fine_tune(
    network: Network, V: Array, labels: Array, *, epochs: int, learning_rate: float, seed: int, done: int = 0
) -> Iterator[tuple[Any, float]]:
    """Train all layers of a network by backpropagation; yield scikit-learn's classifier and the loss after each epoch.

    It is stochastic gradient descent of the cross-entropy, whose mean over the epoch is the loss, in natural units and
    before each mini-batch's update. All layers except the last have sigmoid units. The learning rate falls linearly,
    epoch by epoch, to ``learning_rate / epochs``. Momentum starts anew with each epoch, so that the next one needs the
    network alone, which has so many epochs behind it as are `done`; it is left as it is.
    """
    from sklearn.neural_network import MLPClassifier  # as late as this, since it takes a while to import

    classifier = MLPClassifier(
        [len(biases) for biases in network.biases[:-1]], activation="logistic", solver="sgd", alpha=0,
        momentum=MOMENTUM, nesterovs_momentum=False, max_iter=1, warm_start=True, random_state=0,
    )  # fmt: skip
    first = np.unique(labels, return_index=True)[1]
    _epoch(classifier, V[first], labels[first])  # tells it its sizes
    classifier.coefs_ = [weights.copy() for weights in network.weights]
    classifier.intercepts_ = [biases.copy() for biases in network.biases]
    classifier.set_params(batch_size=min(BATCH_SIZE, len(V)))
    for epoch in range(done + 1, epochs + 1):
        rate = learning_rate * (1 - (epoch - 1) / epochs)
        order = int(_rng(seed, _SHUFFLES, epoch).integers(2**32))
        _epoch(classifier.set_params(learning_rate_init=rate, random_state=order), V, labels)
        yield classifier, float(classifier.loss_)


def _epoch(classifier: Any, V: Array, labels: Array) -> None:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # one epoch is what is wanted
        classifier.fit(V, labels)


# ---- linear probe


class Probed(NamedTuple):
    """How a linear classifier of features did."""

    train_error: float  # share of wrong images
    test_error: float
    steps: int  # of the solver


def probe(features: Array, labels: Array, test_features: Array, test_labels: Array) -> Probed:
    """Return how well logistic regression classifies by features, shape (m, n).

    Features are standardized: a layer's scale is no merit of its own, but it would decide how strongly the penalty acts
    and how fast the solver converges.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler().fit(features)
    X, T = scaler.transform(features), scaler.transform(test_features)
    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the recipe is so many steps at most
        found = LogisticRegression(C=PENALTY, max_iter=STEPS).fit(X, labels)
        train_error, test_error = (np.mean(found.predict(A) != b) for A, b in ((X, labels), (T, test_labels)))
    return Probed(float(train_error), float(test_error), int(found.n_iter_[0]))


# ---- jobs


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackJob(Job):
    """A measurement of a stack, which was trained, or in whose place are `RandomWeights`."""

    images: Images  # those that it is measured on
    seed: int  # of the stack, and of all that the measurement draws
    stack: tuple[Job, ...] = ()  # trained layers, the first one first
    random: RandomWeights | None = None

    @property
    def name(self) -> str:
        """For a reader."""
        stack = f"random-{self.random.scale}" if self.random else self.stack[-1].name.rpartition("-seed")[0]
        return f"{type(self).__name__}-{stack}-seed{self.seed}"

    @property
    def needs(self) -> tuple[Job, ...]:
        """The trained layers."""
        return self.stack

    @property
    def packages(self) -> tuple[str, ...]:
        """scikit-learn, which classifies."""
        return ("scikit-learn",)

    @abstractmethod
    def measured(
        self, data: Dataset, stack: list[RBMParameters], done: int, before: Mapping[str, Array]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Array]]]:
        """Yield the row of each iteration after those that are done, and the arrays that the next one goes on from.

        Those of the last iteration are what jobs that need this one are given.
        """

    def steps(self, data: Dataset, needs: Sequence[Result], done: int, arrays: Mapping[str, Array]) -> Iterator[Step]:
        """Yield the iterations."""
        start = time.perf_counter() - (arrays["seconds"].item() if done else 0.0)
        stack = (
            self.random.stack(self.seed)
            if self.random
            else [RBMParameters(**unpacked(layer.arrays)) for layer in needs]
        )
        for number, (row, known) in enumerate(self.measured(data, stack, done, arrays), start=done + 1):
            seconds, last = time.perf_counter() - start, number == self.iterations
            rows = [{"iteration": number, **row, "seconds": seconds}]
            yield Step(number, rows, known if last else known | {"seconds": np.array(seconds)}, last)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTune(StackJob):
    """The test error of the fine-tuned network: an iteration is an epoch. What it names the test images is kept."""

    epochs: int
    learning_rate: float

    @property
    def iterations(self) -> int:
        """Epochs."""
        return self.epochs

    def measured(
        self, data: Dataset, stack: list[RBMParameters], done: int, before: Mapping[str, Array]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Array]]]:
        """Yield the epochs."""
        network = on_top(stack, len(np.unique(data.train_labels)))
        if done:
            network = Network(*([before[f"{kind}{i}"] for i in range(len(stack) + 1)] for kind in Network._fields))
        for classifier, loss in fine_tune(
            network, data.train, data.train_labels, epochs=self.epochs, learning_rate=self.learning_rate,
            seed=self.seed, done=done,
        ):  # fmt: skip
            done += 1
            with one_blas_thread():
                named = classifier.predict(data.test)
            kinds = zip(Network._fields, (classifier.coefs_, classifier.intercepts_), strict=True)
            known = {f"{kind}{i}": array for kind, found in kinds for i, array in enumerate(found)}
            row = {"test_error": float(np.mean(named != data.test_labels)), "loss": loss}
            yield row, known if done < self.epochs else {"named": named}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Mistakes(Job):
    """The test images that a fine-tuned network gets wrong: a row for each, with the class that it names."""

    tuned: FineTune

    @property
    def name(self) -> str:
        """For a reader."""
        return self.tuned.name.replace(FineTune.__name__, Mistakes.__name__)

    @property
    def needs(self) -> tuple[Job, ...]:
        """The fine-tuned network."""
        return (self.tuned,)

    def steps(self, data: Dataset, needs: Sequence[Result], *_: Any) -> Iterator[Step]:
        """Yield all of them in one go."""
        named = unpacked(needs[0].arrays)["named"]
        wrong = np.flatnonzero(named != data.test_labels)
        yield Step(1, [{"image": image, "named": named[image]} for image in wrong], {}, True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probe(StackJob):
    """The errors of a linear probe on the images, as layer 0, and on each layer's features: an iteration is a layer."""

    @property
    def iterations(self) -> int:
        """The images, and each layer."""
        return len(self.random.sizes) if self.random else 1 + len(self.stack)

    def measured(
        self, data: Dataset, stack: list[RBMParameters], done: int, _: Mapping[str, Array]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Array]]]:
        """Yield the layers."""
        for layer in range(done, self.iterations):
            features, test_features = (layer_input(stack[:layer], V) for V in (data.train, data.test))
            found = probe(features, data.train_labels, test_features, data.test_labels)
            yield (
                {"layer": layer, **found._asdict(), "features_std": float(features.std(axis=0, dtype=float).mean())},
                {},
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class AnnealedImportanceSampling(StackJob):
    """The log-likelihood of test images by the first layer: an iteration adds chains to those before.

    Images are binarized, each pixel being on with the probability of its gray level, by the same random numbers for
    every stack. A column holds what independent pixels find that are on as often as in training images.
    """

    n_chains: int  # of all `BATCHES`
    n_temperatures: int

    @property
    def iterations(self) -> int:
        """Batches of chains."""
        return BATCHES

    def measured(
        self, data: Dataset, stack: list[RBMParameters], done: int, before: Mapping[str, Array]
    ) -> Iterator[tuple[dict[str, Any], dict[str, Array]]]:
        """Yield the batches."""
        log_w = before["log_w"] if done else np.empty(0)
        base, n_chains = likelihood.base_rates(data.train), self.n_chains // BATCHES
        bits = sample_bits(data.test.astype(np.float64), _rng(0, _BITS, 1))
        independent = likelihood.independent(base).log_likelihood(bits)
        for number in range(done + 1, BATCHES + 1):
            found = likelihood.log_weights(
                stack[0], base, n_chains=n_chains, n_temperatures=self.n_temperatures,
                rng=_rng(self.seed, _CHAINS, number),
            )  # fmt: skip
            log_w = np.concatenate([log_w, found])
            known = likelihood.estimate(stack[0], bits, log_w)._asdict()
            yield {"chains": len(log_w), **known, "independent": independent}, {"log_w": log_w}


def _rng(seed: int, purpose: int, number: int) -> np.random.Generator:
    """Return random numbers of their own for each seed, purpose and number, the last one positive."""
    return np.random.default_rng([seed, purpose, number])


# ---- what it makes of images


def reconstructed(data: Dataset, stacks: Mapping[str, Sequence[Sequence[RBMParameters]]]) -> dict[str, Array]:
    """Return test images, one of each class, and by name what stacks, one for each run, leave of them.

    These are arrays of shape (runs, classes, side, side), of which the originals are one run.
    """
    chosen = np.unique(data.test_labels, return_index=True)[1][:10]
    V, shape = data.test[chosen], (-1, len(chosen), data.side, data.side)
    rows = {name: np.stack([dbn.reconstruct(stack, V) for stack in runs]) for name, runs in stacks.items()}
    return {name: images.reshape(shape) for name, images in ({ORIGINAL: V} | rows).items()}
