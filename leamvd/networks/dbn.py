"""Deep belief networks: restricted Boltzmann machines trained one upon the other, by any of the methods."""

import dataclasses
import time
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from leamvd._support import checks
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBM
from leamvd.networks.torch_backend import Arithmetic, arithmetic
from leamvd.optimizers import random_streams
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.minimize import METHODS as OPTIMIZERS
from leamvd.optimizers.minimize import optimizer
from leamvd.optimizers.reading import Reading

METHODS = ("cd", *OPTIMIZERS)
"""What can train a layer."""

FEATURES = ("probabilities", "bits")
"""What the next layer is trained on (item E6)."""

EXPERIMENT = Reading(n_gen=50)
"""The reading of the paper's experiments: 50 generations, and as many epochs of contrastive divergence (item R3)."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training:
    """How a layer is trained; the same for every method where it concerns several.

    Attributes
    ----------
    n_elite : int
        Individuals that LEA-MVD keeps.
    sigma0 : float
        First standard deviation of the optimizers (E9).
    x0_epochs : int
        Epochs of contrastive divergence that make the seed solution of the optimizers (E5).
    dtype : {"float32", "float64"}
        Of the images and so of all arithmetic on them, and of LEA-MVD's population; pycma has double precision only.
    backend, device, precision : str, str or None, str or None
        Of the objective that the optimizers see, see `leamvd.networks.objective.ReconstructionObjective`. What is
        recorded of their weights is always computed by NumPy, in `dtype`.
    cd_steps, batch_size, learning_rate, momentum, final_momentum, momentum_epochs, weight_decay : int or float
        Of contrastive divergence (E8), see `leamvd.networks.contrastive_divergence.ContrastiveDivergence`.
    """

    n_elite: int = 4
    sigma0: float = 0.1
    x0_epochs: int = 1
    dtype: str = "float32"
    backend: Literal["numpy", "torch"] = "numpy"
    device: str | None = None
    precision: Literal["float32", "float64", "bfloat16"] | None = None
    cd_steps: int = 1
    batch_size: int = 100
    learning_rate: float = 0.1
    momentum: float = 0.5
    final_momentum: float = 0.9
    momentum_epochs: int = 5
    weight_decay: float = 2e-4

    def __post_init__(self) -> None:
        checks.integer("n_elite", self.n_elite, at_least=1)
        checks.real("sigma0", self.sigma0, above=0)
        checks.integer("x0_epochs", self.x0_epochs, at_least=0)
        checks.choice("dtype", self.dtype, ("float32", "float64"))
        _ = self.arithmetic  # checks its settings
        self.contrastive_divergence(np.zeros((1, 1)), 1, seed=0)  # checks its settings

    @property
    def arithmetic(self) -> Arithmetic:
        """What the objective is computed with on this machine."""
        return arithmetic(self.backend, self.device, self.precision, self.dtype)

    def contrastive_divergence(self, V: NDArray[Any], n_hidden: int, *, seed: int) -> ContrastiveDivergence:
        """Return the trainer of a layer of `n_hidden` units on the images `V`, shape (m, n_visible)."""
        return ContrastiveDivergence(
            V,
            n_hidden,
            k=self.cd_steps,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            final_momentum=self.final_momentum,
            momentum_epochs=self.momentum_epochs,
            weight_decay=self.weight_decay,
            seed=seed,
        )

    def optimizer(self, method: str, x0: NDArray[Any], *, reading: Reading, seed: int) -> Optimizer:
        """Return the optimizer `method` that starts at the parameters `x0`, shape (n,), of a layer."""
        return optimizer(method, x0, seed=seed, **self.options(method, reading))

    def options(self, method: str, reading: Reading) -> dict[str, Any]:
        """Return what the optimizer `method` is built with, but for the start solution and the seed."""
        options = {"sigma0": self.sigma0, "population_size": reading.population_size, "n_gen": reading.n_gen}
        if method == "lea-mvd":
            return options | {"n_elite": self.n_elite, "dtype": self.dtype, "reading": reading}
        options |= {"x0_in_population": reading.x0_in_population}
        return options | ({"dtype": self.dtype} if method == "random" else {})  # pycma has double precision only


class Step(NamedTuple):
    """A method's best layer after an iteration, and what it has cost so far."""

    iteration: int
    rbm: RBM
    evaluations: int  # of the objective
    passes: int  # over the data: an evaluation and an epoch are one each
    products: int  # matrix products of images and weights: two an evaluation, 2 k + 3 an epoch of CD-k
    seconds: float  # spent by the method, the objective included


def train(
    method: str,
    V: NDArray[Any],
    n_hidden: int,
    *,
    training: Training | None = None,
    reading: Reading = EXPERIMENT,
    seed: int = 0,
) -> Iterator[Step]:
    """Train one layer, and yield it before the first iteration and after each.

    Contrastive divergence starts from random weights; the optimizers start from what it makes of them in
    ``training.x0_epochs`` epochs on the same images (item E5), whose cost they are charged with.

    Parameters
    ----------
    method : {"cd", "lea-mvd", "cma-es", "sep-cma-es", "random"}
        What trains.
    V : ndarray, shape (m, n_visible)
        Images or features in [0, 1].
    n_hidden : int
        Hidden units.
    training : Training, optional
        Settings; the defaults are the paper's.
    reading : Reading
        Of LEA-MVD; the other optimizers take ``population_size``, ``n_gen`` and ``x0_in_population`` from it, and
        contrastive divergence takes its epochs, ``n_gen``.
    seed : int
        One seed, one result.

    Yields
    ------
    Step

    Raises
    ------
    ValueError, TypeError, MemoryError
        If an argument is out of range, or the method cannot hold so many variables.
    """
    checks.choice("method", method, METHODS)
    training = training or Training()
    start = time.perf_counter()
    cd = training.contrastive_divergence(V, n_hidden, seed=seed)
    epoch_products = 2 * training.cd_steps + 3
    if method == "cd":
        for epoch in range(reading.n_gen + 1):
            rbm = cd.epoch() if epoch else cd.rbm
            seconds = time.perf_counter() - start
            yield Step(epoch, rbm, 0, epoch, epoch * epoch_products, seconds)
            start = time.perf_counter() - seconds
        return
    for _ in range(training.x0_epochs):
        cd.epoch()
    yield from _optimize(method, V, cd.rbm, training, reading, seed, time.perf_counter() - start)


def _optimize(
    method: str, V: NDArray[Any], rbm: RBM, training: Training, reading: Reading, seed: int, seconds: float
) -> Iterator[Step]:
    """Yield the seed solution `rbm`, then the best after each generation."""
    n_visible, n_hidden = rbm.W.shape
    passes = training.x0_epochs
    products = passes * (2 * training.cd_steps + 3)
    yield Step(0, rbm, 0, passes, products, seconds)
    start = time.perf_counter() - seconds
    objective = ReconstructionObjective(
        V, n_hidden, backend=training.backend, device=training.device, precision=training.precision
    )
    opt = training.optimizer(method, rbm.flat(), reading=reading, seed=seed)
    for iteration in range(1, reading.n_gen + 1):  # every method spends the whole budget, whatever `stop` says
        X = opt.ask()
        opt.tell(X, objective(X))
        best = RBM.from_flat(opt.result.x.astype(rbm.W.dtype), n_visible, n_hidden)
        seconds = time.perf_counter() - start
        yield Step(iteration, best, opt.nfev, passes + opt.nfev, products + 2 * opt.nfev, seconds)
        start = time.perf_counter() - seconds


def propagate(
    rbm: RBM, V: NDArray[Any], *, features: Literal["probabilities", "bits"] = "probabilities", seed: int = 0
) -> NDArray[Any]:
    """Return what the next layer sees: P(h = 1 | v), or bits drawn from it by `seed` (item E6)."""
    if checks.choice("features", features, FEATURES) == "probabilities":
        return rbm.hidden_given_visible(V)
    # a child stream: the trainer of the same seed draws from the parent
    return rbm.sample_hidden(V, np.random.default_rng(random_streams.child(seed, random_streams.BITS)))


def layer_seed(seed: int, layer: int) -> int:
    """Return the seed of a layer, counted from 1, of the stack `seed`: in [0, 2**64), no two of them related."""
    return int(np.random.SeedSequence((seed, layer)).generate_state(1, np.uint64)[0])


def reconstruct(stack: Sequence[RBM], V: NDArray[Any]) -> NDArray[Any]:
    """Return what is left of the images `V`, shape (m, n_visible), after going up the stack and down again."""
    for rbm in stack:
        V = rbm.hidden_given_visible(V)
    for rbm in reversed(stack):
        V = rbm.visible_given_hidden(V)
    return V


def pretrain(
    V: NDArray[Any],
    layers: Sequence[int],
    *,
    method: str = "cd",
    training: Training | None = None,
    reading: Reading = EXPERIMENT,
    features: Literal["probabilities", "bits"] = "probabilities",
    inputs: Sequence[NDArray[Any]] | None = None,
    seed: int = 0,
) -> list[RBM]:
    """Train a stack of layers greedily, each on the features of the one below.

    Parameters
    ----------
    V : ndarray, shape (m, n_visible)
        Images in [0, 1].
    layers : sequence of int
        Hidden units of each layer.
    method, training, reading, seed
        As for `train`; each layer uses its `layer_seed`.
    features : {"probabilities", "bits"}
        What a layer hands on.
    inputs : sequence of ndarray, optional
        What each layer is trained on instead, `V` included: with the features of another stack all methods are
        compared on the same data (the shared inputs of item E7); without, each method trains on its own features.

    Returns
    -------
    list of RBM

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `train`; if there is not one array of `inputs` a layer.
    """
    if inputs is not None and len(inputs) != len(layers):
        raise ValueError(f"inputs must have one array a layer, {len(layers)}, got {len(inputs)}")
    stack: list[RBM] = []
    for layer, n_hidden in enumerate(layers, start=1):
        X = V if inputs is None else inputs[layer - 1]
        own_seed = layer_seed(seed, layer)
        for step in train(method, X, n_hidden, training=training, reading=reading, seed=own_seed):
            rbm = step.rbm
        stack.append(rbm)
        V = propagate(rbm, X, features=features, seed=own_seed)
    return stack
