"""Deep belief networks: restricted Boltzmann machines trained one upon the other, by any of the methods."""

import dataclasses
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from tqdm import tqdm

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBMParameters
from leamvd.networks.torch_backend import Computation, computation
from leamvd.optimizers import random_streams
from leamvd.optimizers.base import Optimizer, as_told, tell_again
from leamvd.optimizers.methods import METHODS as OPTIMIZERS
from leamvd.optimizers.methods import optimizer
from leamvd.optimizers.reading import Reading

METHODS = ("cd", *OPTIMIZERS)
"""The methods that can train a layer."""

FEATURES = ("probabilities", "bits")
"""The features that the next layer can be trained on (item E6)."""

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
    x0 : {"epochs", "batch", "none"}
        Start solution of the optimizers (E5): what contrastive divergence reaches in `x0_epochs` epochs, or in one
        mini-batch; or none. Then LEA-MVD and random search draw uniformly within `x0_limit`, their initialization (A),
        CMA-ES starts at the center of that, which is zero, and iteration 0 is the RBM of the center.
    x0_epochs : int
        Epochs behind the start solution; without any it is contrastive divergence's random weights.
    x0_limit : float
        Half the range of initialization (A): 0.1 in the paper.
    dtype : {"float32", "float64"}
        Of the images that a study loads, and of LEA-MVD's population; pycma has double precision only. Arithmetic on
        images is in the dtype of those that `train` and `pretrain` are given.
    backend, device, precision : str, str or None, str or None
        Of the objective that the optimizers see, see `leamvd.networks.objective.ReconstructionObjective`. What is
        recorded of their weights is always computed by NumPy, in `dtype`.
    cd_steps, persistent, batch_size, learning_rate, momentum, final_momentum, momentum_epochs, weight_decay
        Of contrastive divergence (E8), see `leamvd.networks.contrastive_divergence.ContrastiveDivergence`.
    initial_weights, weight_scale : {"normal", "uniform"}, float
        Of contrastive divergence (E8): N(0, weight_scale) or U(-weight_scale, weight_scale).
    """

    n_elite: int = 4
    sigma0: float = 0.1
    x0: Literal["epochs", "batch", "none"] = "epochs"
    x0_epochs: int = 1
    x0_limit: float = 0.1
    dtype: str = "float32"
    backend: Literal["numpy", "torch"] = "numpy"
    device: str | None = None
    precision: Literal["float32", "float64", "bfloat16"] | None = None
    cd_steps: int = 1
    persistent: bool = False
    batch_size: int = 100
    learning_rate: float = 0.1
    momentum: float = 0.5
    final_momentum: float = 0.9
    momentum_epochs: int = 5
    weight_decay: float = 2e-4
    initial_weights: Literal["normal", "uniform"] = "normal"
    weight_scale: float = 0.1

    def __post_init__(self) -> None:
        checks.integer("n_elite", self.n_elite, at_least=1)
        checks.real("sigma0", self.sigma0, above=0)
        checks.choice("x0", self.x0, ("epochs", "batch", "none"))
        checks.integer("x0_epochs", self.x0_epochs, at_least=0)
        checks.real("x0_limit", self.x0_limit, above=0)
        for name, x0 in (("x0_epochs", "epochs"), ("x0_limit", "none")):
            if self.x0 != x0 and getattr(self, name) != getattr(type(self), name):
                raise ValueError(f"{name}={getattr(self, name)} clashes with x0={self.x0!r}: it belongs to x0={x0!r}")
        checks.choice("dtype", self.dtype, ("float32", "float64"))
        checks.integer("cd_steps", self.cd_steps, at_least=1)  # which is `k` there
        _ = self.computation  # checks its settings
        self.contrastive_divergence(np.zeros((1, 1), self.dtype), 1, seed=0)  # checks its settings

    @property
    def computation(self) -> Computation:
        """The backend, device and precision of the objective on this machine."""
        return computation(self.backend, self.device, self.precision, self.dtype)

    @property
    def epoch_products(self) -> int:
        """Matrix products of images and weights in an epoch of contrastive divergence."""
        return 2 * self.cd_steps + 3

    def contrastive_divergence(
        self, V: Array, n_hidden: int, *, seed: int, unit_interval: bool = True
    ) -> ContrastiveDivergence:
        """Return the trainer of a layer of `n_hidden` units on the images `V`, shape (m, n_visible)."""
        return ContrastiveDivergence(
            V,
            n_hidden,
            k=self.cd_steps,
            persistent=self.persistent,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            final_momentum=self.final_momentum,
            momentum_epochs=self.momentum_epochs,
            weight_decay=self.weight_decay,
            initial_weights=self.initial_weights,
            weight_scale=self.weight_scale,
            seed=seed,
            unit_interval=unit_interval,
        )

    def optimizer(self, method: str, x0: Array, *, reading: Reading, seed: int) -> Optimizer:
        """Return the optimizer `method` that starts at the parameters `x0`, shape (n,), of a layer."""
        options = self.options(method, reading)
        start = {"n_var": len(x0)} if "bounds" in options else {"x0": x0}
        return optimizer(method, **start, seed=seed, **options)

    def options(self, method: str, reading: Reading) -> dict[str, Any]:
        """Return the arguments of the optimizer `method`, except its start solution and seed."""
        options: dict[str, Any] = {"sigma0": self.sigma0}
        options |= {"population_size": reading.population_size, "n_gen": reading.n_gen}
        if method == "lea-mvd":
            options |= {"n_elite": self.n_elite, "reading": reading}
        else:
            options |= {"x0_in_population": reading.x0_in_population and self.x0 != "none"}
        if method in ("lea-mvd", "random"):  # pycma has double precision only
            options |= {"dtype": self.dtype}
            if self.x0 == "none":
                options |= {"bounds": (-self.x0_limit, self.x0_limit)}
        return options


class Step(NamedTuple):
    """A method's best layer after an iteration, and what it has cost so far."""

    iteration: int
    rbm: RBMParameters
    evaluations: int  # of the objective
    passes: float  # over the data: an evaluation and an epoch are one each, a mini-batch is its part of an epoch
    products: float  # matrix products of images and weights: two an evaluation, 2 k + 3 an epoch of CD-k
    seconds: float  # spent by the method, the objective included
    state: dict[str, Array]  # what `train` goes on from


def train(
    method: str,
    V: Array,
    n_hidden: int,
    *,
    training: Training | None = None,
    reading: Reading = EXPERIMENT,
    seed: int = 0,
    state: Mapping[str, Array] | None = None,
    unit_interval: bool = True,
) -> Iterator[Step]:
    """Train one layer, and yield it before the first iteration and after each.

    Contrastive divergence starts from random weights; the optimizers start from what it makes of them on the same
    images (item E5; ``training.x0``), whose cost they are charged with.

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
    state : mapping of str to ndarray, optional
        That of a `Step` of the same training: the steps after it follow, to the bit as if it had not been stopped.
    unit_interval : bool
        Whether numbers outside [0, 1] are refused.

    Yields
    ------
    Step

    Raises
    ------
    ValueError, TypeError, MemoryError
        If an argument is out of range, or the method cannot hold so many variables.
    """
    checks.choice("method", method, METHODS)
    checks.integer("seed", seed, at_least=0, at_most=2**64 - 1)
    training = training or Training()
    if method == "cd":
        yield from _epochs(V, n_hidden, training, reading.n_gen, seed, state, unit_interval)
        return
    if state is None:
        start = time.perf_counter()
        cd = training.contrastive_divergence(V, n_hidden, seed=seed, unit_interval=unit_interval)
        rbm, passes = _start_solution(cd, training, len(V))
        seconds = np.array(time.perf_counter() - start)
        state = rbm._asdict() | {"passes": np.array(passes), "seconds": seconds} | as_told([])
        yield Step(0, rbm, 0, passes, passes * training.epoch_products, float(seconds), state)
    yield from _generations(method, V, training, reading, seed, state, unit_interval)


def _epochs(
    V: Array,
    n_hidden: int,
    training: Training,
    n_epochs: int,
    seed: int,
    state: Mapping[str, Array] | None,
    unit_interval: bool,
) -> Iterator[Step]:
    """Yield what contrastive divergence starts from, unless it goes on, and then each epoch."""
    start = time.perf_counter()
    cd = training.contrastive_divergence(V, n_hidden, seed=seed, unit_interval=unit_interval)
    if state is not None:
        cd.state, start = state, time.perf_counter() - state["seconds"].item()
    for epoch in range(0 if state is None else cd.n_epochs + 1, n_epochs + 1):
        rbm = cd.epoch() if epoch else cd.rbm
        seconds = time.perf_counter() - start
        known = cd.state | {"seconds": np.array(seconds)}
        yield Step(epoch, rbm, 0, epoch, epoch * training.epoch_products, seconds, known)
        start = time.perf_counter() - seconds


def _start_solution(cd: ContrastiveDivergence, training: Training, n_images: int) -> tuple[RBMParameters, float]:
    """Return where the optimizers start (item E5), and the passes over the data behind it."""
    if training.x0 == "none":
        return RBMParameters(*map(np.zeros_like, cd.rbm)), 0
    if training.x0 == "batch":
        return cd.mini_batch(), min(training.batch_size, n_images) / n_images
    for _ in range(training.x0_epochs):
        cd.epoch()
    return cd.rbm, training.x0_epochs


def _generations(
    method: str,
    V: Array,
    training: Training,
    reading: Reading,
    seed: int,
    state: Mapping[str, Array],
    unit_interval: bool,
) -> Iterator[Step]:
    """Yield the best after each generation that the state does not hold."""
    start = time.perf_counter()
    first, passes = RBMParameters(*(state[name] for name in RBMParameters._fields)), state["passes"].item()
    objective = ReconstructionObjective(
        V,
        len(first.c),
        backend=training.backend,
        device=training.device,
        precision=training.precision,
        unit_interval=unit_interval,
    )
    opt = training.optimizer(method, first.flat(), reading=reading, seed=seed)
    if told := tell_again(opt, state):
        start = time.perf_counter()  # what this takes has been counted
    start -= state["seconds"].item()
    for iteration in range(len(told) + 1, reading.n_gen + 1):  # the whole budget is spent, whatever `stop` says
        X = opt.ask()
        told.append(objective(X))
        opt.tell(X, told[-1])
        best = RBMParameters.from_flat(opt.result.x.astype(first.W.dtype), *first.W.shape)
        seconds = time.perf_counter() - start
        known = as_told(told) | {"seconds": np.array(seconds)}
        products = passes * training.epoch_products + 2 * opt.nfev
        yield Step(iteration, best, opt.nfev, passes + opt.nfev, products, seconds, dict(state) | known)
        start = time.perf_counter() - seconds


def layer_input(
    stack: Sequence[RBMParameters],
    V: Array,
    *,
    features: Literal["probabilities", "bits"] = "probabilities",
    seed: int = 0,
    test: bool = False,
) -> Array:
    """Return what the layer above a stack sees of the images `V`, shape (m, n_visible).

    Every layer hands on P(h = 1 | v), or bits drawn from it by its `layer_seed` of `seed` (item E6); bits of test
    images come from streams of their own.
    """
    bits = checks.choice("features", features, FEATURES) == "bits"
    purpose = random_streams.TEST_FEATURE_BITS if test else random_streams.FEATURE_BITS
    for layer, rbm in enumerate(stack, start=1):
        rng = np.random.default_rng(random_streams.child(layer_seed(seed, layer), purpose))
        V = rbm.sample_hidden(V, rng) if bits else rbm.hidden_given_visible(V)
    return V


def layer_seed(seed: int, layer: int) -> int:
    """Return the seed of a layer, counted from 1, of the stack `seed`: in [0, 2**64), no two of them related."""
    return int(np.random.SeedSequence((seed, layer)).generate_state(1, np.uint64)[0])


def reconstruct(stack: Sequence[RBMParameters], V: Array) -> Array:
    """Return what is left of the images `V`, shape (m, n_visible), after going up the stack and down again."""
    return downward(stack, layer_input(stack, V))


def downward(stack: Sequence[RBMParameters], H: Array) -> Array:
    """Return the images, shape (m, n_visible), that a stack makes of its uppermost units `H`, shape (m, n_hidden).

    Every layer hands on P(v = 1 | h).
    """
    for rbm in reversed(stack):
        H = rbm.visible_given_hidden(H)
    return H


def pretrain(
    V: Array,
    layers: Sequence[int],
    *,
    method: str = "cd",
    training: Training | None = None,
    reading: Reading = EXPERIMENT,
    features: Literal["probabilities", "bits"] = "probabilities",
    below: Sequence[RBMParameters] | None = None,
    seed: int = 0,
    unit_interval: bool = True,
    progress: bool = False,
) -> list[RBMParameters]:
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
    below : sequence of RBMParameters, optional
        Another stack, on whose features the layers are trained: so all methods are compared on the same data (the
        shared inputs of item E7). Without it, each layer is trained on the features of this stack.
    unit_interval : bool
        Whether images with numbers outside [0, 1] are refused.
    progress : bool
        Show a progress bar for each layer.

    Returns
    -------
    list of RBMParameters

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `train`; if `below` has no layer below the last one.
    """
    if below is not None and len(below) < len(layers) - 1:
        raise ValueError(f"below must have {len(layers) - 1} layers or more, got {len(below)}")
    stack: list[RBMParameters] = []
    for n_hidden in layers:
        n_below = len(stack)
        X = layer_input((stack if below is None else below)[:n_below], V, features=features, seed=seed)
        own_seed = layer_seed(seed, n_below + 1)
        steps = train(
            method, X, n_hidden, training=training, reading=reading, seed=own_seed, unit_interval=unit_interval
        )
        stack.append(last(steps, reading.n_gen, f"layer {n_below + 1}", progress=progress).rbm)
    return stack


def last(steps: Iterator[Step], n_iter: int, name: str, *, progress: bool) -> Step:
    """Return the last of the steps of `train`, on whose way to iteration `n_iter` a progress bar shows a name."""
    with tqdm(total=n_iter, desc=name, unit="it", disable=not progress) as bar:
        for step in steps:
            bar.update(step.iteration - bar.n)
    return step
