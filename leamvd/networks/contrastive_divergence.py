"""Contrastive divergence, CD-k, with the settings of item E8.

References
----------
Hinton (2002), "Training products of experts by minimizing contrastive divergence". Neural
Computation 14, 1771-1800. Hinton and Salakhutdinov (2006), "Reducing the dimensionality of data
with neural networks". Science 313, 504-507, and its published code: batches, learning rate,
momentum, decay and which units are sampled. Tieleman (2008), "Training restricted Boltzmann
machines using approximations to the likelihood gradient". ICML. Hinton (2012), "A practical guide
to training restricted Boltzmann machines": small first weights and visible biases of the data.
Glorot and Bengio (2010), "Understanding the difficulty of training deep feedforward neural
networks". AISTATS.
"""

import dataclasses
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy.special import logit
from tqdm import tqdm

from leamvd._support import checks
from leamvd._support.compile import Array, kernel
from leamvd._support.threads import in_halves, one_blas_thread, thread_count, workers
from leamvd.networks.logistic import sigmoid_columns
from leamvd.networks.objective import Errors, reconstruction_errors
from leamvd.networks.rbm import RBMParameters, images, sample_bits
from leamvd.optimizers import random_streams

# weights whose products are worth a second thread; a batch of 100 then takes about a millisecond
_LARGE = 100_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class CDSettings:
    """Settings of contrastive divergence (item E8).

    Attributes
    ----------
    cd_steps : int
        k, the steps of a chain.
    persistent : bool
        Whether chains go on from batch to batch; they start with all hidden units off.
    batch_size : int
        Images in one update.
    learning_rate, momentum, final_momentum, weight_decay : float
        See `ContrastiveDivergence`; `final_momentum` replaces `momentum` after `momentum_epochs`
        epochs.
    momentum_epochs : int
        Epochs with the first momentum.
    initial_weights : {"normal", "uniform", "glorot"}
        The weights start as N(0, weight_scale) or U(-weight_scale, weight_scale), by "glorot" as
        U(-limit, limit) with the limit weight_scale sqrt(6 / (n_visible + n_hidden)).
    weight_scale : float
        Standard deviation of the first weights where they are normal, half their range where they
        are uniform; by "glorot" that in units of sqrt(6 / (n_visible + n_hidden)).
    visible_biases : {"zero", "data"}
        The visible biases start at zero, or as log(p / (1 - p)), where p is the mean of the images,
        clipped to [0.001, 0.999]. The hidden biases start at zero.
    """

    cd_steps: int = 1
    persistent: bool = False
    batch_size: int = 100
    learning_rate: float = 0.1
    momentum: float = 0.5
    final_momentum: float = 0.9
    momentum_epochs: int = 5
    weight_decay: float = 2e-4
    initial_weights: Literal["normal", "uniform", "glorot"] = "normal"
    weight_scale: float = 0.1
    visible_biases: Literal["zero", "data"] = "zero"

    def __post_init__(self) -> None:
        checks.integer("cd_steps", self.cd_steps, at_least=1)
        checks.choice("persistent", self.persistent, (True, False))
        checks.integer("batch_size", self.batch_size, at_least=1)
        checks.integer("momentum_epochs", self.momentum_epochs, at_least=0)
        checks.choice("initial_weights", self.initial_weights, ("normal", "uniform", "glorot"))
        checks.choice("visible_biases", self.visible_biases, ("zero", "data"))
        for name in ("learning_rate", "weight_decay", "weight_scale"):
            checks.real(name, getattr(self, name), at_least=0)
        for name in ("momentum", "final_momentum"):
            checks.real(name, getattr(self, name), at_least=0, below=1)


class ContrastiveDivergence:
    """Train an RBM by CD-k with momentum and weight decay.

    For a batch of images v_0 with hidden probabilities p_0 = P(h | v_0), draw h_0 ~ p_0. Steps 1 to
    k - 1 are Gibbs sampling: v_t ~ P(v | h_(t-1)) and h_t ~ P(h | v_t), all bits. The last step
    keeps probabilities to lower the noise: v_k = P(v | h_(k-1)) and p_k = P(h | v_k). With <.> the
    mean over the batch, and without decay for the biases,

        D <- momentum D + learning_rate (<v_0 p_0^T> - <v_k p_k^T> - weight_decay W),   W <- W + D,

    and the same for b by <v_0> - <v_k> and for c by <p_0> - <p_k>. An epoch visits every image
    once, in a new random order; the last mini-batch may be smaller.

    Persistent CD starts each batch's chains where the last one's ended instead, and draws bits for
    v_k too: the chains are then Gibbs sampling of a slowly changing model.

    A trainer pickled after any epoch or mini-batch and loaded continues bit for bit. Large layers
    are trained on two threads where there are two cores, to the same bits as on one: products are
    cut in halves in any case.

    Parameters
    ----------
    V : (m, n_visible) array
        Images in [0, 1].
    n_hidden : int
        Number of hidden units.
    settings : CDSettings, optional
        By default the paper's; fields of it may also be given by themselves, and take the place of
        its own.
    seed : int, optional
        Non-negative; without it every trainer differs.
    dtype : numpy dtype, optional
        float32 or float64; by default float32 for float32 images and float64 for all others.
    unit_interval : bool
        Whether numbers outside [0, 1] are refused.

    Attributes
    ----------
    n_epochs : int
        Epochs done.

    Raises
    ------
    TypeError, ValueError
        Where an argument breaks its rule; the message names both. Training raises it too, where
        weights overflow.
    """

    def __init__(
        self,
        V: ArrayLike,
        n_hidden: int,
        *,
        settings: CDSettings | None = None,
        seed: int | None = None,
        dtype: DTypeLike | None = None,
        unit_interval: bool = True,
        **fields: Any,
    ) -> None:
        self._settings = settings = dataclasses.replace(settings or CDSettings(), **fields)
        if dtype is not None:
            dtype = checks.floating("dtype", dtype)
        self._V = images("V", V, dtype, unit_interval=unit_interval)
        n_visible = self._V.shape[1]
        precision = self._V.dtype
        n_hidden = checks.integer(
            "n_hidden", n_hidden, at_least=1, at_most=random_streams.MAX_COLUMNS
        )
        self._batch_size = min(settings.batch_size, len(self._V))
        if seed is not None:
            seed = checks.integer("seed", seed, at_least=0)
        self._rng = np.random.Generator(np.random.PCG64(seed))
        scale = settings.weight_scale
        if settings.initial_weights == "glorot":
            scale *= np.sqrt(6 / (n_visible + n_hidden))
        if settings.initial_weights == "normal":
            W = self._rng.normal(0, scale, (n_visible, n_hidden))
        else:
            W = self._rng.uniform(-scale, scale, (n_visible, n_hidden))
        b = np.zeros(n_visible)
        if settings.visible_biases == "data":
            b = logit(self._V.mean(axis=0, dtype=np.float64).clip(0.001, 0.999))
        self._rbm = RBMParameters(
            W.astype(precision), b.astype(precision), np.zeros(n_hidden, precision)
        )
        self._step = RBMParameters(*map(np.zeros_like, self._rbm))
        self._bits = np.zeros((self._batch_size, n_hidden), precision)
        # images that this epoch has not visited yet, in its order
        self._left = np.empty(0, np.intp)
        self.n_epochs = 0

    @property
    def rbm(self) -> RBMParameters:
        """A copy of the current parameters."""
        return RBMParameters(*(p.copy() for p in self._rbm))

    def go_on_with(self, V: ArrayLike, settings: CDSettings | None = None) -> None:
        """Train on other images from now on, shape (m, n_visible), and by `settings` if given,
        after a whole epoch.

        Momentum, random numbers and persistent chains are kept; chains too few for larger
        mini-batches are added.
        """
        V = images("V", V, self._V.dtype, unit_interval=False)
        if self._left.size or V.shape[1] != len(self._rbm.b):
            raise ValueError(
                f"V must have {len(self._rbm.b)} columns, and an epoch must have ended"
            )
        chains = self._bits if self._settings.persistent else self._bits[:0]
        self._V = V
        self._settings = settings or self._settings
        self._batch_size = min(self._settings.batch_size, len(self._V))
        self._bits = np.pad(chains, ((0, max(0, self._batch_size - len(chains))), (0, 0)))

    def epoch(self) -> RBMParameters:
        """Train on every image once, or on those that `mini_batch` has left, and return a copy of
        the parameters.
        """
        return self._train(len(self._V))

    def mini_batch(self) -> RBMParameters:
        """Train on the next mini-batch of an epoch and return a copy of the parameters."""
        return self._train(1)

    def _train(self, n_batches: int) -> RBMParameters:
        """Train on so many mini-batches, but not beyond the end of an epoch."""
        if not self._left.size:
            self._left = self._rng.permutation(len(self._V))
        n_visible, n_hidden = self._rbm.W.shape
        # what every update reuses: visible and hidden units, data above, model below, and the
        # statistic of the weights
        shapes = (
            (2 * self._batch_size, n_visible),
            (2 * self._batch_size, n_hidden),
            (n_visible, n_hidden),
        )
        scratch = [np.empty(shape, self._V.dtype) for shape in shapes]
        settings = self._settings
        momentum = (
            settings.momentum
            if self.n_epochs < settings.momentum_epochs
            else settings.final_momentum
        )
        second: AbstractContextManager[ThreadPoolExecutor | None] = nullcontext()
        if self._rbm.W.size >= _LARGE and thread_count(None) > 1:
            second = workers(1)
        with one_blas_thread(), second as pool, np.errstate(all="ignore"):
            while self._left.size and n_batches:
                batch, self._left = np.split(self._left, [self._batch_size])
                self._update(batch, momentum, scratch, pool)
                n_batches -= 1
        self.n_epochs += not self._left.size
        if not all(np.isfinite(p).all() for p in self._rbm):
            raise ValueError(
                f"learning_rate must keep the weights finite, got {settings.learning_rate}: they"
                " overflow"
            )
        return self.rbm

    def fit(self, n_epochs: int, *, error_seed: int = 0, progress: bool = False) -> list[Errors]:
        """Train, and measure the errors before any of these epochs and after each.

        Parameters
        ----------
        n_epochs : int
            Epochs to run now.
        error_seed : int
            Seed of `leamvd.networks.objective.reconstruction_errors`, the same one each time.
        progress : bool
            Show a progress bar.

        Returns
        -------
        list of Errors
            Every measure of item E2 on the training images.
        """
        n_epochs = checks.integer("n_epochs", n_epochs, at_least=0)
        history = [reconstruction_errors(self._rbm, self._V, seed=error_seed)]
        for _ in tqdm(range(n_epochs), desc="CD", unit="epoch", disable=not progress):
            self.epoch()
            history.append(reconstruction_errors(self._rbm, self._V, seed=error_seed))
        return history

    def _update(
        self,
        batch: NDArray[np.intp],
        momentum: float,
        scratch: list[Array],
        pool: ThreadPoolExecutor | None,
    ) -> None:
        n = len(batch)
        W, b, c = self._rbm
        settings = self._settings
        visible = scratch[0][: 2 * n]
        hidden = scratch[1][: 2 * n]
        data = visible[:n]
        model = visible[n:]
        p_data = hidden[:n]
        p_model = hidden[n:]
        np.take(self._V, batch, axis=0, out=data, mode="clip")  # any other mode goes through a copy
        _activate(data, W, c, p_data, pool)
        bits = self._bits[:n]
        if not settings.persistent:
            sample_bits(p_data, self._rng, bits)
        for _ in range(settings.cd_steps - 1):
            _activate(bits, W.T, b, model, pool)
            _activate(sample_bits(model, self._rng), W, c, p_model, pool)
            sample_bits(p_model, self._rng, bits)
        _activate(bits, W.T, b, model, pool)
        if settings.persistent:
            model[:] = sample_bits(model, self._rng)
        _activate(model, W, c, p_model, pool)
        if settings.persistent:
            sample_bits(p_model, self._rng, bits)
        # With the model's half of the hidden units negated, one product gives the difference of
        # both statistics.
        np.negative(p_model, out=p_model)
        # rate/n turns sums into means; in the arrays' own dtype, so that float32 is not widened
        real = W.dtype.type
        momentum = real(momentum)
        rate = real(settings.learning_rate / n)
        shrink = real(settings.learning_rate * settings.weight_decay)
        none = real(0)

        def learn(rows: slice) -> None:
            difference = np.matmul(visible[:, rows].T, hidden, out=scratch[2][rows])
            weights = W[rows].reshape(-1)
            step = self._step.W[rows].reshape(-1)
            _ascend(weights, step, difference.reshape(-1), momentum, rate, shrink)

        _in_parts(learn, len(b), W.size, pool)
        signs = np.repeat(np.array([1, -1], W.dtype), n)
        _ascend(b, self._step.b, signs @ visible, momentum, rate, none)
        _ascend(c, self._step.c, hidden.sum(axis=0), momentum, rate, none)


def _activate(
    inputs: Array, W: Array, bias: Array, outputs: Array, pool: ThreadPoolExecutor | None
) -> None:
    """Write sigma(inputs W + bias) to `outputs`."""

    def work(units: slice) -> None:
        np.matmul(inputs, W[:, units], out=outputs[:, units])
        sigmoid_columns(outputs, bias, units.start, units.stop)

    _in_parts(work, len(bias), W.size, pool)


def _in_parts(
    work: Callable[[slice], None], size: int, n_weights: int, pool: ThreadPoolExecutor | None
) -> None:
    """Do the work on `size` units: in one piece for a small layer, otherwise in halves on any
    number of threads.
    """
    if n_weights < _LARGE:
        work(slice(0, size))
    else:
        in_halves(work, size, pool)


@kernel()
def _ascend(
    parameter: Array, step: Array, difference: Array, momentum: Any, rate: Any, shrink: Any
) -> None:
    """One pass over memory for D <- momentum D + rate difference - shrink parameter, parameter <-
    parameter + D.
    """
    for i in range(len(parameter)):
        rise = momentum * step[i] + rate * difference[i]
        step[i] = rise - shrink * parameter[i]
        parameter[i] += step[i]
