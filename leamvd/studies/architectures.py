"""Does LEA-MVD care what a network is made of (C14)? The same call of `minimize` for five networks."""

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.campaign import archive
from leamvd.campaign.jobs import Job, Planned, Step, Table
from leamvd.campaign.run import run_planned
from leamvd.campaign.store import place
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments.methods import Method
from leamvd.networks.dbn import Training
from leamvd.optimizers.methods import packages
from leamvd.optimizers.minimize import minimize
from leamvd.optimizers.reading import Reading
from leamvd.studies import longer_searches

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": lambda A: np.maximum(A, 0),
    "tanh": np.tanh,
    "step": lambda A: (A > 0).astype(A.dtype),
    "sign": lambda A: 2 * (A > 0).astype(A.dtype) - 1,
}
"""What hidden units make of their inputs."""

NETWORKS = {
    "rectified linear": ("relu",),
    "tangents": ("tanh",),
    "steps": ("step",),
    "signs": ("sign",),
    "tangents, steps": ("tanh", "step"),
}
"""The activations of the hidden layers, by name."""

GRADIENTS = ("relu", "tanh")
"""Activations that gradients go through."""

WIDTH = 16
"""Units of a hidden layer."""

N_TEST = 500
"""Images of the digits that are for testing; 1,297 are left."""

PLANS: dict[str, dict[str, Any]] = {
    "quick": {"methods": ("lea-mvd", "random"), "seeds": tuple(range(2)), "budget": 480},
    "paper": {
        "methods": ("lea-mvd", "lea-mvd:recommended", "sep-cma-es", "random"),
        "seeds": tuple(range(12)),
        "budget": 24_000,
    },
}
"""Methods, seeds and evaluations, by profile."""

JUDGED: dict[str, Any] = {
    "methods": longer_searches.JUDGED["methods"],
    "seeds": tuple(range(3)),
    "budget": 24_000,
    "networks": ("rectified linear",),
    "width": 256,
}
"""The network of 19,210 weights that the recommended preset is judged on."""

MLP = "mlp"
"""The method that is scikit-learn's `MLPClassifier`."""

LABELS, LINE = ("network", "method", "seed"), "mark"
"""Columns that name a job, and its row."""

COLUMNS = [*LABELS, LINE, "evaluations", "loss", "train_error", "test_error"]
"""Of a table: at mark 0 the start, and then the end; errors are shares of wrong images."""


def images() -> Dataset:
    """Return scikit-learn's digits, 1,297 for training and 500 for testing, the same for all seeds."""
    data = load("digits", side=8)
    V, labels = np.concatenate([data.train, data.test]), np.concatenate([data.train_labels, data.test_labels])
    order = np.random.default_rng(0).permutation(len(V))
    train, test = order[N_TEST:], order[:N_TEST]
    return data._replace(
        train=V[train],
        train_labels=labels[train],
        test=V[test],
        test_labels=labels[test],
        description=f"{data.name}: {len(train)} training and {len(test)} test images, 8 x 8 pixels",
    )


class CrossEntropy:
    """Mean cross-entropy of a whole population of classifiers, each a flat vector: W row by row and b, layer by layer.

    Arithmetic is in the images' dtype.
    """

    def __init__(self, V: Array, labels: Array, hidden: Sequence[str], width: int = WIDTH) -> None:
        self.V, self.labels = V.T.copy(), labels  # long rows keep the vector units busy
        self._hidden = [ACTIVATIONS[name] for name in hidden]
        self.sizes = (V.shape[1], *[width] * len(hidden), int(labels.max()) + 1)
        self.n_var = sum((n_in + 1) * n_out for n_in, n_out in pairwise(self.sizes))

    def start(self, seed: int) -> Array:
        """Return Glorot's uniform random weights, shape (n_var,), with biases of zero."""
        rng, parts = np.random.default_rng(seed), []
        for n_in, n_out in pairwise(self.sizes):
            limit = np.sqrt(6 / (n_in + n_out))
            parts += [rng.uniform(-limit, limit, n_in * n_out), np.zeros(n_out)]
        return np.concatenate(parts)

    def outputs(self, X: Array) -> Array:
        """Return the outputs before the softmax, shape (m, classes, images), of the rows of `X`, shape (m, n_var)."""
        X, A, done = X.astype(self.V.dtype), self.V, 0
        with one_blas_thread():
            for layer, (n_in, n_out) in enumerate(pairwise(self.sizes)):
                W, b = np.split(X[:, done : done + (n_in + 1) * n_out], [n_in * n_out], axis=1)
                A = W.reshape(-1, n_in, n_out).transpose(0, 2, 1) @ A
                A += b[:, :, None]
                A = self._hidden[layer](A) if layer < len(self._hidden) else A
                done += (n_in + 1) * n_out
        return A

    def __call__(self, X: Array) -> Array:
        """Return the mean over images of -log P(label), shape (m,), of the rows of `X`."""
        A = self.outputs(X)
        A -= A.max(axis=1, keepdims=True)
        own = A[:, self.labels, np.arange(len(self.labels))]
        return np.asarray((np.log(np.exp(A).sum(axis=1)) - own).mean(axis=1, dtype=np.float64))

    def wrong(self, x: Array) -> float:
        """Return the share of images whose largest output is not their label's, of one classifier."""
        return float((self.outputs(x[None])[0].argmax(axis=0) != self.labels).mean())


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Learn(Job):
    """A network that learns to tell images apart."""

    images: Images
    network: str  # of `NETWORKS`
    seed: int
    budget: int  # evaluations
    width: int = WIDTH  # units of each hidden layer

    @abstractmethod
    def train(self, objective: CrossEntropy) -> tuple[Array, float]:
        """Return the weights at the end, and the number of evaluations."""

    def steps(self, data: Dataset, *_: Any) -> Iterator[Step]:
        """Yield the start and the end."""
        hidden = NETWORKS[self.network]
        train = CrossEntropy(data.train, data.train_labels, hidden, self.width)
        test = CrossEntropy(data.test, data.test_labels, hidden, self.width)
        ends = {0: (train.start(self.seed), 0.0), self.budget: self.train(train)}
        rows = [
            {LINE: mark, "evaluations": evaluations, "loss": float(train(x[None])[0]), "train_error": train.wrong(x),
             "test_error": test.wrong(x)}
            for mark, (x, evaluations) in ends.items()
        ]  # fmt: skip
        yield Step(1, rows, {}, True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnBySearch(_Learn):
    """A network whose cross-entropy `minimize` lowers, by the same call whatever the network is."""

    method: str

    @property
    def name(self) -> str:
        """For a reader."""
        return f"{self.method.replace(':', '-')}-{self.network.replace(', ', '-').replace(' ', '-')}-seed{self.seed}"

    @property
    def packages(self) -> tuple[str, ...]:
        """Those of the optimizer."""
        return packages(Method.parse(self.method).trainer)

    def train(self, objective: CrossEntropy) -> tuple[Array, float]:
        """Return the best weights that were found, and the evaluations."""
        method = Method.parse(self.method)
        training, reading = method.training(Training(dtype="float64")), method.reading(Reading(n_gen=self.budget))
        found: Any = minimize(
            objective, objective.start(self.seed), vectorized=True, method=method.trainer, max_nfev=self.budget,
            seed=self.seed, **training.options(method.trainer, reading),
        )  # fmt: skip
        return found.x, float(found.nfev)


@dataclasses.dataclass(frozen=True, kw_only=True)
class LearnByGradients(_Learn):
    """A network that scikit-learn's `MLPClassifier` trains, by its defaults and without weight decay."""

    @property
    def name(self) -> str:
        """For a reader."""
        return f"{MLP}-{self.network.replace(' ', '-')}-seed{self.seed}"

    @property
    def packages(self) -> tuple[str, ...]:
        """scikit-learn."""
        return ("scikit-learn",)

    def train(self, objective: CrossEntropy) -> tuple[Array, float]:
        """Return the weights at the end, and the epochs."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPClassifier

        hidden = NETWORKS[self.network]
        model = MLPClassifier([self.width] * len(hidden), activation=hidden[0], alpha=0, random_state=self.seed)
        with warnings.catch_warnings(), one_blas_thread():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(objective.V.T, objective.labels)
        layers = zip(model.coefs_, model.intercepts_, strict=True)
        return np.concatenate([part.ravel() for layer in layers for part in layer]), float(model.n_iter_)


def searches(
    data: Dataset,
    *,
    methods: Sequence[str],
    seeds: Sequence[int],
    budget: int,
    networks: Sequence[str] = tuple(NETWORKS),
    width: int = WIDTH,
) -> Table:
    """Return the trainings: by all methods, and by gradients where there are any."""
    given: dict[str, Any] = {"images": Images.of(data), "budget": budget, "width": width}
    jobs: dict[tuple[Any, ...], _Learn] = {}
    for network, hidden in ((name, NETWORKS[name]) for name in networks):
        for seed in seeds:
            own = given | {"network": network, "seed": seed}
            jobs |= {(network, method, seed): LearnBySearch(method=method, **own) for method in methods}
            if set(hidden) <= set(GRADIENTS):
                jobs[network, MLP, seed] = LearnByGradients(**own)
    return Table(LABELS, jobs, LINE, lambda rows: rows[COLUMNS])


def planned(**plan: Any) -> list[Planned]:
    """Return the trainings of a plan, see `PLANS`, "runs", on scikit-learn's digits."""
    data = images()
    return [Planned({"runs": searches(data, **plan)}, data)]


def on_page(profile: str, output: str | Path) -> pd.DataFrame:
    """Return the trainings of a profile, with `COLUMNS`; with "recorded" they are read."""
    if profile == "recorded":
        return archive.read("architectures")
    return run_planned(planned(**PLANS[profile]), place(output), label="architectures")["runs"]
