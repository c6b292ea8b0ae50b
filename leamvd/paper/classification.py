"""What a stack of layers is worth: how well a linear probe and a fine-tuned network classify; how likely images are.

The stack was trained, or has random weights. A measurement runs in numbered iterations, stops where it is told to, and
goes on from there to the same numbers.
"""

import dataclasses
import io
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.networks.dbn import Training, layer_input, layer_seed
from leamvd.networks.rbm import RBM, sample_bits
from leamvd.paper import likelihood, units
from leamvd.paper.datasets import Dataset
from leamvd.paper.units import Part

GLOROT = "glorot"
"""Scale of random weights whose standard deviation is sqrt(2 / (n_in + n_out)) in each layer (Glorot and Bengio)."""

MOMENTUM, BATCH_SIZE = 0.9, 100
"""Of fine-tuning."""

PENALTY, STEPS = 0.01, 100
"""Of the probe: the inverse strength of its penalty (scikit-learn's C), and the solver's steps, at most."""

_SHUFFLES, _CHAINS, _BITS = 1, 2, 3  # what random numbers are drawn for


@dataclasses.dataclass(frozen=True)
class RandomWeights:
    """A stack of layers with weights N(0, scale) and zero biases, in the place of a trained one."""

    sizes: tuple[int, ...]  # units, from the images up
    scale: str  # a number, or `GLOROT`
    dtype: str

    def stack(self, seed: int) -> list[RBM]:
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


def on_top(stack: Sequence[RBM], n_classes: int) -> Network:
    """Return the network of a stack, whose output layer is zero: it begins with equal probabilities for all classes.

    Raises
    ------
    ValueError
        For fewer than three classes, which scikit-learn gives one output unit.
    """
    checks.integer("n_classes", n_classes, at_least=3)
    dtype, n_features = stack[-1].W.dtype, len(stack[-1].c)
    weights = [*(rbm.W for rbm in stack), np.zeros((n_features, n_classes), dtype)]
    return Network(weights, [*(rbm.c for rbm in stack), np.zeros(n_classes, dtype)])


def fine_tune(
    network: Network, V: Array, labels: Array, *, epochs: int, learning_rate: float, seed: int, done: int = 0
) -> Iterator[tuple[Any, float]]:
    """Train all layers of a network by backpropagation, and yield it after each epoch with the epoch's mean loss.

    It is stochastic gradient descent of the cross-entropy. The learning rate falls linearly, epoch by epoch, to
    ``learning_rate / epochs``. Momentum starts anew with each epoch, so that the next one needs the network alone.

    Parameters
    ----------
    network : Network
        Sigmoid units in all layers but the last one; it is left as it is.
    V : ndarray, shape (m, n_visible)
        Images, in the network's dtype.
    labels : ndarray, shape (m,)
        Their classes.
    epochs : int
        Passes over the images.
    learning_rate : float
        Of the first epoch.
    seed : int
        Of the order of the images.
    done : int
        Epochs that the network has behind it.

    Yields
    ------
    classifier : sklearn.neural_network.MLPClassifier
        The same object each time.
    loss : float
        Cross-entropy, in natural units, of each mini-batch before its update.
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


# ---- tasks


class _State(NamedTuple):
    """What a measurement goes on from."""

    done: int  # iterations
    arrays: Mapping[str, Array]


_Steps = Iterator[tuple[dict[str, Any], dict[str, Array]]]
"""What is recorded of each iteration, and the arrays to go on from."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class StackTask(ABC):
    """A measurement of a stack: all that its result depends on but for data, stack and code.

    Attributes
    ----------
    iterations : int
        How many there are.
    seed : int
        Of the stack, and of all that the measurement draws.
    random : RandomWeights, optional
        What is measured in the place of a trained stack.
    """

    iterations: int
    seed: int
    random: RandomWeights | None = None

    @abstractmethod
    def _iterate(self, stack: Sequence[RBM], data: Dataset, state: _State) -> _Steps: ...

    def advance(
        self,
        data: Dataset,
        below: Sequence[bytes],
        begun: Part | None = None,
        *,
        seconds: float = np.inf,
        tick: Callable[[], object] = lambda: None,
    ) -> Part:
        """Begin the measurement, or go on with it; see `leamvd.paper.units.advance`."""
        start = now = time.monotonic()
        stack = self.random.stack(self.seed) if self.random else [units.layer(arrays) for arrays in below]
        table, state, spent = None, _State(0, {}), 0.0
        if begun is not None:
            table = units.read_table(io.BytesIO(begun.records))
            state, spent = _State(begun.iteration, units._unpacked(begun.arrays)), float(table["seconds"].iloc[-1])
        rows, longest = [], 0.0
        for iteration, step in enumerate(self._iterate(stack, data, state), start=state.done + 1):
            now, before = time.monotonic(), now
            rows.append({"iteration": iteration} | step[0] | {"seconds": spent + now - start})
            tick()
            longest = max(longest, now - before)
            if now - start + longest > seconds:
                break
        whole = pd.concat([table, pd.DataFrame(rows)], ignore_index=True)
        done = iteration == self.iterations
        return Part(units.as_csv(whole).encode(), units._packed({} if done else step[1]), done)


@dataclasses.dataclass(frozen=True, kw_only=True)
class FineTuning(StackTask):
    """The test error of the fine-tuned network: an iteration is an epoch."""

    learning_rate: float

    def _iterate(self, stack: Sequence[RBM], data: Dataset, state: _State) -> _Steps:
        network = on_top(stack, len(np.unique(data.train_labels)))
        if state.done:
            network = Network(
                *([state.arrays[f"{kind}{i}"] for i in range(len(stack) + 1)] for kind in Network._fields)
            )
        for classifier, loss in fine_tune(
            network, data.train, data.train_labels, epochs=self.iterations, learning_rate=self.learning_rate,
            seed=self.seed, done=state.done,
        ):  # fmt: skip
            with one_blas_thread():
                error = float(np.mean(classifier.predict(data.test) != data.test_labels))
            known = zip(Network._fields, (classifier.coefs_, classifier.intercepts_), strict=True)
            arrays = {f"{kind}{i}": array for kind, found in known for i, array in enumerate(found)}
            yield {"test_error": error, "loss": loss}, arrays


@dataclasses.dataclass(frozen=True, kw_only=True)
class Probe(StackTask):
    """The errors of a linear probe on the images, as layer 0, and on each layer's features: an iteration is a layer."""

    def _iterate(self, stack: Sequence[RBM], data: Dataset, state: _State) -> _Steps:
        for layer in range(state.done, self.iterations):
            features, test_features = (layer_input(stack[:layer], V) for V in (data.train, data.test))
            found = probe(features, data.train_labels, test_features, data.test_labels)
            std = float(features.std(axis=0, dtype=np.float64).mean())
            yield {"layer": layer, **found._asdict(), "features_std": std}, {}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Likelihood(StackTask):
    """The log-likelihood of test images by the first layer: an iteration adds chains to those before.

    Images are binarized, each pixel being on with the probability of its gray level, by the same random numbers for
    every stack. Beside the layer stands what independent pixels find that are on as often as in training images.
    """

    n_chains: int
    n_temperatures: int

    def _iterate(self, stack: Sequence[RBM], data: Dataset, state: _State) -> _Steps:
        base = likelihood.base_rates(data.train)
        bits = sample_bits(data.test.astype(np.float64), _rng(0, _BITS, 1))
        independent = likelihood.independent(base).log_likelihood(bits)
        log_w = state.arrays.get("log_w", np.empty(0))
        for number in range(state.done + 1, self.iterations + 1):
            found = likelihood.log_weights(
                stack[0], base, n_chains=self.n_chains, n_temperatures=self.n_temperatures,
                rng=_rng(self.seed, _CHAINS, number),
            )  # fmt: skip
            log_w = np.concatenate([log_w, found])
            known = likelihood.estimate(stack[0], bits, log_w)._asdict()
            yield {"chains": len(log_w), **known, "independent": independent}, {"log_w": log_w}


def _rng(seed: int, purpose: int, number: int) -> np.random.Generator:
    """Return random numbers of their own for each seed, purpose and number, the last one positive."""
    return np.random.default_rng([seed, purpose, number])
