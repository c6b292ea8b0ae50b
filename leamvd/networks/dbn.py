"""Deep belief networks: RBMs trained one upon the other, by any of the methods, and then fine-tuned
to classify.
"""

import dataclasses
import time
import warnings
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from tqdm import tqdm

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.networks.contrastive_divergence import CDSettings, ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBMParameters
from leamvd.networks.torch_backend import Computation, computation
from leamvd.optimizers import random_streams
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.methods import METHODS as OPTIMIZERS
from leamvd.optimizers.methods import optimizer, unused_without_x0
from leamvd.optimizers.reading import Reading

METHODS = ("cd", *OPTIMIZERS)  # that can train a layer
FEATURES = ("probabilities", "bits")  # that the next layer can be trained on (item E6)

EXPERIMENT = Reading(n_gen=50)
"""The reading of the paper's experiments: 50 generations, and as many epochs of contrastive
divergence (item R3).
"""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Training(CDSettings):
    """How a layer is trained; the same for every method where it concerns several.

    To the settings of contrastive divergence, `CDSettings`, it adds those of the optimizers.

    Attributes
    ----------
    n_elite : int
        Individuals that LEA-MVD keeps.
    sigma0 : float
        First standard deviation of the optimizers (E9).
    x0 : {"epochs", "batch", "none"}
        Start solution of the optimizers (E5): what contrastive divergence reaches in `x0_epochs`
        epochs, or in `x0_batches` mini-batches; or none. Then LEA-MVD and random search draw
        uniformly within `x0_limit`, their initialization (A), CMA-ES starts at the center of that,
        which is zero, and iteration 0 is the RBM of the center.
    x0_epochs : int
        Epochs behind the start solution; without any it is contrastive divergence's random weights.
    x0_batches : int
        Mini-batches behind it, as many as wanted: after an epoch's last one comes the next epoch's
        first.
    x0_limit : float
        Half the range of initialization (A): 0.1 in the paper.
    dtype : {"float32", "float64"}
        Of the images that a study loads, and of LEA-MVD's population; pycma has double precision
        only. Arithmetic on images is in the dtype of those that `train` and `pretrain` are given.
    backend, device, precision : str, str or None, str or None
        Of the objective that the optimizers see, see
        `leamvd.networks.objective.ReconstructionObjective`. What is recorded of their weights is
        always computed by NumPy, in `dtype`.
    """

    n_elite: int = 4
    sigma0: float = 0.1
    x0: Literal["epochs", "batch", "none"] = "epochs"
    x0_epochs: int = 1
    x0_batches: int = 1
    x0_limit: float = 0.1
    dtype: str = "float32"
    backend: Literal["numpy", "torch"] = "numpy"
    device: str | None = None
    precision: Literal["float32", "float64", "bfloat16"] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.integer("n_elite", self.n_elite, at_least=1)
        checks.real("sigma0", self.sigma0, above=0)
        checks.choice("x0", self.x0, ("epochs", "batch", "none"))
        checks.integer("x0_epochs", self.x0_epochs, at_least=0)
        checks.integer("x0_batches", self.x0_batches, at_least=1)
        checks.real("x0_limit", self.x0_limit, above=0)
        for name, x0 in (("x0_epochs", "epochs"), ("x0_batches", "batch"), ("x0_limit", "none")):
            value = getattr(self, name)
            if self.x0 != x0 and value != getattr(type(self), name):
                raise ValueError(
                    f"{name}={value} clashes with x0={self.x0!r}: it belongs to x0={x0!r}"
                )
        checks.choice("dtype", self.dtype, ("float32", "float64"))
        _ = self.computation  # checks its settings

    @property
    def computation(self) -> Computation:
        """The backend, device and precision of the objective on this machine."""
        return computation(self.backend, self.device, self.precision, self.dtype)

    @property
    def epoch_products(self) -> int:
        """Matrix products of images and weights in an epoch of contrastive divergence."""
        return 2 * self.cd_steps + 3

    def optimizer(self, method: str, x0: Array, *, reading: Reading, seed: int) -> Optimizer:
        """Return the optimizer `method` that starts at the parameters `x0`,
        shape (n,), of a layer.
        """
        options = self.options(method, reading)
        start = {"n_var": len(x0)} if "bounds" in options else {"x0": x0}
        return optimizer(method, **start, seed=seed, **options)

    def options(self, method: str, reading: Reading) -> dict[str, Any]:
        """Return the arguments of the optimizer `method`, except its start solution and seed."""
        options: dict[str, Any] = {
            "sigma0": self.sigma0,
            "population_size": reading.population_size,
            "n_gen": reading.n_gen,
        }
        if method == "lea-mvd":
            options["n_elite"] = self.n_elite
            options["reading"] = reading
        else:
            options["x0_in_population"] = reading.x0_in_population and self.x0 != "none"
        if method in ("lea-mvd", "random"):  # pycma has double precision only
            options["dtype"] = self.dtype
            if self.x0 == "none":
                options["bounds"] = (-self.x0_limit, self.x0_limit)
                for name in unused_without_x0(method):
                    options.pop(name, None)
        return options


class Step(NamedTuple):
    """A method's best layer after an iteration, and what it has cost so far."""

    iteration: int
    rbm: RBMParameters
    evaluations: int  # of the objective
    # over the data: an evaluation and an epoch are one each, a mini-batch is its part of an epoch
    passes: float
    # matrix products of images and weights: two an evaluation, 2 k + 3 an epoch of CD-k
    products: float
    seconds: float  # spent by the method, the objective included


def train(
    method: str,
    V: Array,
    n_hidden: int,
    *,
    training: Training | None = None,
    reading: Reading = EXPERIMENT,
    seed: int = 0,
    unit_interval: bool = True,
) -> Iterator[Step]:
    """Train one layer, and yield it before the first iteration and after each.

    Contrastive divergence starts from random weights; the optimizers start from what it makes of
    them on the same images (item E5; ``training.x0``), whose cost they are charged with.

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
        Of LEA-MVD; the other optimizers take ``population_size``, ``n_gen`` and
        ``x0_in_population`` from it, and contrastive divergence takes its epochs, ``n_gen``.
    seed : int
        One seed, one result.
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
    start = time.perf_counter()
    n_gen: Any = reading.complete().n_gen
    cd = ContrastiveDivergence(
        V, n_hidden, settings=training, seed=seed, unit_interval=unit_interval
    )
    if method == "cd":
        seconds = time.perf_counter() - start
        for epoch in range(n_gen + 1):
            start = time.perf_counter()
            rbm = cd.epoch() if epoch else cd.rbm
            seconds += time.perf_counter() - start
            yield Step(epoch, rbm, 0, epoch, epoch * training.epoch_products, seconds)
        return
    # before the start solution: where torch is missing it says so at once
    objective = ReconstructionObjective(
        V,
        n_hidden,
        backend=training.backend,
        device=training.device,
        precision=training.precision,
        unit_interval=unit_interval,
    )
    rbm, passes = _start_solution(cd, training, len(V))
    x0 = rbm.flat()  # a copy: what is yielded may be written to
    seconds = time.perf_counter() - start
    yield Step(0, rbm, 0, passes, passes * training.epoch_products, seconds)
    start = time.perf_counter()
    opt = training.optimizer(method, x0, reading=reading, seed=seed)
    for iteration in range(1, n_gen + 1):  # the whole budget is spent, whatever `stop` says
        X = opt.ask()
        opt.tell(X, objective(X))
        best = RBMParameters.from_flat(opt.result.x.astype(rbm.W.dtype), *rbm.W.shape)
        seconds += time.perf_counter() - start
        products = passes * training.epoch_products + 2 * opt.nfev
        yield Step(iteration, best, opt.nfev, passes + opt.nfev, products, seconds)
        start = time.perf_counter()


def _start_solution(
    cd: ContrastiveDivergence, training: Training, n_images: int
) -> tuple[RBMParameters, float]:
    """Return where the optimizers start (item E5), and the passes over the data behind it."""
    if training.x0 == "none":
        return RBMParameters(*map(np.zeros_like, cd.rbm)), 0
    if training.x0 == "batch":
        for _ in range(training.x0_batches):
            cd.mini_batch()
        size = min(training.batch_size, n_images)
        # the last one of an epoch may be smaller
        epochs, batches = divmod(training.x0_batches, -(-n_images // size))
        return cd.rbm, epochs + batches * size / n_images
    for _ in range(training.x0_epochs):
        cd.epoch()
    return cd.rbm, training.x0_epochs


def layer_input(
    stack: Sequence[RBMParameters],
    V: Array,
    *,
    features: Literal["probabilities", "bits"] = "probabilities",
    seed: int = 0,
    test: bool = False,
) -> Array:
    """Return what the layer above a stack sees of the images `V`, shape (m, n_visible).

    Every layer hands on P(h = 1 | v), or bits drawn from it by its `layer_seed` of `seed` (item
    E6); bits of test images come from streams of their own.
    """
    bits = checks.choice("features", features, FEATURES) == "bits"
    purpose = random_streams.TEST_FEATURE_BITS if test else random_streams.FEATURE_BITS
    for layer, rbm in enumerate(stack, start=1):
        rng = np.random.default_rng(random_streams.child(layer_seed(seed, layer), purpose))
        V = rbm.sample_hidden(V, rng) if bits else rbm.hidden_given_visible(V)
    return V


def layer_seed(seed: int, layer: int) -> int:
    """Return the seed of a layer, counted from 1, of the stack `seed`: in [0, 2**64), no two of
    them related.
    """
    return int(np.random.SeedSequence((seed, layer)).generate_state(1, np.uint64)[0])


def reconstruct(stack: Sequence[RBMParameters], V: Array) -> Array:
    """Return what is left of the images `V`, shape (m, n_visible), after going up the stack and
    down again.
    """
    return downward(stack, layer_input(stack, V))


def downward(stack: Sequence[RBMParameters], H: Array) -> Array:
    """Return the images, shape (m, n_visible), that a stack makes of its uppermost units `H`, shape
    (m, n_hidden).

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
        Another stack, on whose features the layers are trained: so all methods are compared on the
        same data (the shared inputs of item E7). Without it, each layer is trained on the features
        of this stack.
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
    n_gen: Any = reading.complete().n_gen
    for layer, n_hidden in enumerate(layers, start=1):
        lower = stack if below is None else below[: layer - 1]
        X = layer_input(lower, V, features=features, seed=seed)
        steps = train(
            method,
            X,
            n_hidden,
            training=training,
            reading=reading,
            seed=layer_seed(seed, layer),
            unit_interval=unit_interval,
        )
        (last,) = deque(shown(steps, n_gen, f"layer {layer}", progress=progress), maxlen=1)
        stack.append(last.rbm)
    return stack


def shown(steps: Iterator[Step], n_iter: int, name: str, *, progress: bool) -> Iterator[Step]:
    """Return the steps of `train` with a progress bar of this name, which is full at iteration
    `n_iter`.
    """
    return iter(tqdm(steps, desc=name, total=n_iter + 1, unit="it", disable=not progress))


def fine_tune(
    stack: Sequence[RBMParameters],
    V: Array,
    labels: Array,
    *,
    epochs: int,
    tuning_rate: float,
    seed: int,
    batch_size: int = 100,
    momentum: float = 0.9,
) -> Iterator[tuple[Any, float]]:
    """Train a stack with a softmax layer on top; yield scikit-learn's classifier and the loss after
    each epoch.

    It is stochastic gradient descent of the cross-entropy, whose mean over the epoch is the loss,
    in natural units and before each mini-batch's update. The new layer, for two classes one
    logistic unit, starts at zero, so that all classes begin with equal probabilities. The learning
    rate falls linearly, epoch by epoch, to ``tuning_rate / epochs``; momentum starts anew with each
    epoch.

    Parameters
    ----------
    stack : sequence of RBMParameters
        Where it starts; it is left as it is.
    V, labels : ndarray, shape (m, n_visible), ndarray, shape (m,)
        Images, whose dtype is that of the arithmetic, and their classes, two or more.
    epochs, tuning_rate, seed, batch_size, momentum : int, float, int, int, float
        Of the descent; the seed is that of the order of images.

    Yields
    ------
    sklearn.neural_network.MLPClassifier, float
        The same classifier each time.
    """
    # as late as this, since it takes a while to import
    from sklearn.neural_network import MLPClassifier

    sizes = [len(rbm.c) for rbm in stack]
    first = np.unique(labels, return_index=True)[1]
    classifier = MLPClassifier(
        sizes,
        activation="logistic",
        solver="sgd",
        alpha=0,
        momentum=momentum,
        nesterovs_momentum=False,
        max_iter=1,
        warm_start=True,
        random_state=0,
    )
    fitted(classifier, V[first], labels[first])  # tells it its sizes
    classifier.coefs_ = [
        *(rbm.W.astype(V.dtype) for rbm in stack),
        np.zeros_like(classifier.coefs_[-1]),
    ]
    classifier.intercepts_ = [
        *(rbm.c.astype(V.dtype) for rbm in stack),
        np.zeros_like(classifier.intercepts_[-1]),
    ]
    classifier.set_params(batch_size=min(batch_size, len(V)))
    for epoch in range(1, epochs + 1):
        rate = tuning_rate * (1 - (epoch - 1) / epochs)
        # 1: the paper's Section 8 draws for 2, 3
        order = int(np.random.default_rng([seed, 1, epoch]).integers(2**32))
        fitted(classifier.set_params(learning_rate_init=rate, random_state=order), V, labels)
        if not classifier.n_iter_:
            raise KeyboardInterrupt  # which the classifier only warns of
        yield classifier, float(classifier.loss_)


def fitted(classifier: Any, V: Array, labels: Array) -> Any:
    """Return a classifier of scikit-learn, fitted on one thread for as many steps as it is told,
    converged or not.
    """
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning), one_blas_thread():
        return classifier.fit(V, labels)
