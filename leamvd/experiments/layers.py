"""A layer trained by a method, and the errors that it makes after each iteration."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from leamvd._support.compile import Array
from leamvd.campaign.jobs import Job, Result, Step, unpacked
from leamvd.data.images import Dataset, Images
from leamvd.networks.dbn import Training, layer_input, layer_seed, train
from leamvd.networks.objective import Errors, ReconstructionObjective, reconstruction_errors
from leamvd.networks.rbm import RBMParameters, n_parameters
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.methods import packages
from leamvd.optimizers.reading import Reading

COLUMNS = (
    "iteration",
    *Errors._fields, *(f"test_{name}" for name in Errors._fields),
    "evaluations", "passes", "products", "seconds",
    "n_visible", "n_hidden", "n_var", "n_images", "n_test_images", "input_std",
)  # fmt: skip
"""Of a layer's rows, one for each iteration.

Errors are sums over all images, of which there are `n_images` and `n_test_images`. Test images go up the same stack.
Ratios compare with the constant image that is the mean of the layer's training inputs, of test images too: what a layer
would predict that has learned the mean and nothing else. `input_std` is the mean standard deviation of these inputs.
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class TrainLayer(Job):
    """A layer of a stack; of its settings, what the trainer does not see has its default."""

    images: Images  # what the stack sees
    trainer: str  # of `leamvd.networks.dbn.METHODS`
    layer: int  # from 1
    n_hidden: int
    seed: int  # of the stack
    training: Training
    reading: Reading
    features: Literal["probabilities", "bits"] = "probabilities"  # what layers hand on
    below: tuple["TrainLayer", ...] = ()  # those that make this one's inputs, the first one first

    @property
    def name(self) -> str:
        """For a reader."""
        return f"{self.trainer}-layer{self.layer}-seed{self.seed}"

    @property
    def iterations(self) -> int:
        """Epochs or generations."""
        return self.reading.n_gen

    @property
    def needs(self) -> tuple[Job, ...]:
        """The layers below."""
        return self.below

    @property
    def packages(self) -> tuple[str, ...]:
        """Those of the optimizer, and PyTorch where it computes the objective."""
        return packages(self.trainer) + ("torch",) * (self.training.backend == "torch")

    def steps(self, data: Dataset, needs: Sequence[Result], _done: int, arrays: Mapping[str, Array]) -> Iterator[Step]:
        """Yield the iterations, and before the first one the start solution as iteration 0."""
        stack = [rbm(below) for below in needs]
        V = layer_input(stack, data.train, features=self.features, seed=self.seed)
        T = layer_input(stack, data.test, features=self.features, seed=self.seed, test=True)
        seed = layer_seed(self.seed, self.layer)
        input_std, train_mean = float(V.std(axis=0, dtype=np.float64).mean()), V.mean(axis=0, dtype=np.float64)
        sizes = V.shape[1], self.n_hidden, n_parameters(V.shape[1], self.n_hidden), len(V), len(T), input_std
        previous = None
        own: Any = {"training": self.training, "reading": self.reading, "seed": seed, "state": arrays or None}
        for step in train(self.trainer, V, self.n_hidden, **own):
            flat = step.rbm.flat()
            if previous is None or not np.array_equal(flat, previous):
                errors = (
                    *reconstruction_errors(step.rbm, V, seed=seed),
                    *reconstruction_errors(step.rbm, T, seed=seed, train_mean=train_mean),
                )
            previous = flat
            row = dict(zip(COLUMNS, (step.iteration, *errors, *step[2:-1], *sizes), strict=True))
            done = step.iteration == self.reading.n_gen
            yield Step(step.iteration, [row], step.rbm._asdict() if done else step.state, done)

    def start(self, data: Dataset) -> tuple[Optimizer, ReconstructionObjective]:
        """Return the optimizer of a first layer before its first generation, and the error that it minimizes."""
        given: Any = {"training": self.training, "reading": self.reading, "seed": layer_seed(self.seed, self.layer)}
        x0 = next(train(self.trainer, data.train, self.n_hidden, **given)).rbm.flat()
        opt = self.training.optimizer(self.trainer, x0, reading=self.reading, seed=given["seed"])
        return opt, ReconstructionObjective(data.train, self.n_hidden)


def rbm(result: Result) -> RBMParameters:
    """Return the layer that was trained."""
    return RBMParameters(**unpacked(result.arrays))
