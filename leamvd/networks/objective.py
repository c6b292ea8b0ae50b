"""How well restricted Boltzmann machines reconstruct images: the error that the optimizers minimize
(item E2).
"""

import math
from itertools import pairwise, product
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from leamvd._support import checks
from leamvd._support.compile import Array, kernel
from leamvd._support.threads import in_threads, one_blas_thread, thread_count
from leamvd.networks.logistic import sigmoid, squared_error
from leamvd.networks.rbm import RBMParameters, images, n_parameters, sample_bits
from leamvd.networks.torch_backend import TorchErrors, computation
from leamvd.optimizers import random_streams

# images: enough for matrix products at full speed, few enough that scratch stays in the cache
BLOCK_SIZE = 1024

# OpenBLAS multiplies matrices without copying them into its own layout first up to so many
# multiplications, which makes products of 49 x 30 with 512 images 1.5 times faster than with 1,024;
# with very few images, calls would cost more.
_UNPACKED = 1_000_000
_LEAST_UNPACKED = 128


class Errors(NamedTuple):
    """The measures of reconstruction of item E2, for all images together.

    Parameters
    ----------
    mean_field : float
        Sum over images and pixels of (v - v_hat)^2, v_hat the mean-field reconstruction: what the
        optimizers minimize.
    sampled : float
        The same sum where the hidden units are bits drawn from P(h | v).
    mean_field_ratio, sampled_ratio : float
        Both divided by `constant_baseline`; NaN where that is zero.
    """

    mean_field: float
    sampled: float
    mean_field_ratio: float
    sampled_ratio: float


def reconstruction_errors(
    rbm: RBMParameters, V: ArrayLike, *, seed: int, train_mean: Array | None = None
) -> Errors:
    """Return every measure of item E2.

    Parameters
    ----------
    rbm : RBMParameters
        The model.
    V : (m, n_visible) array
        Images in [0, 1].
    seed : int
        Non-negative; each block of 1,024 images draws its bits from a stream of its own, a child of
        this seed, so the result depends neither on threads nor on the images in other blocks.
    train_mean : (n_visible,) array, optional
        Where `V` are test images: the mean of the training images, which is what a model that has
        learned nothing but the mean would predict, and so what the ratios compare with. Bits then
        come from other streams.

    Returns
    -------
    Errors
    """
    rbm.check()
    V = images("V", V)
    if V.shape[1] != len(rbm.b):
        raise ValueError(
            f"V must have {len(rbm.b)} columns, one for each visible unit, got {V.shape[1]}"
        )
    if train_mean is not None:
        train_mean = checks.array("train_mean", train_mean, shape=rbm.b.shape, dtype=np.float64)
    seed = checks.integer("seed", seed, at_least=0)
    purpose = random_streams.ERROR_BITS if train_mean is None else random_streams.TEST_ERROR_BITS
    W = np.ascontiguousarray(rbm.W, V.dtype)
    b = np.ascontiguousarray(rbm.b, V.dtype)
    c = np.ascontiguousarray(rbm.c, V.dtype)

    def block_errors(start: int) -> tuple[float, float]:
        block = V[start : start + BLOCK_SIZE].T.copy()
        H = np.empty((len(c), block.shape[1]), V.dtype)
        V_hat = np.empty_like(block)
        child = random_streams.child(seed, purpose, start // BLOCK_SIZE)
        with np.errstate(all="ignore"):
            _mean_hidden(W, c, block, H)
            mean_field = _visible_error(W, b, H, block, V_hat)
            bits = sample_bits(H, np.random.default_rng(child))
            return mean_field, _visible_error(W, b, bits, block, V_hat)

    with one_blas_thread():
        parts = in_threads(block_errors, range(0, len(V), BLOCK_SIZE), None)
    mean_field, sampled = np.sum(parts, axis=0).tolist()
    baseline = constant_baseline(V, train_mean) or math.nan
    return Errors(mean_field, sampled, mean_field / baseline, sampled / baseline)


def constant_baseline(V: ArrayLike, mean: Array | None = None) -> float:
    """Return the sum of squared errors of predicting one image for each of the (m, n_visible)
    images (item E2).

    That image is `mean`, shape (n_visible,), by default their own mean.
    """
    V = images("V", V)
    if mean is None:
        mean = V.mean(axis=0, dtype=np.float64)
    blocks = np.split(V, range(BLOCK_SIZE, len(V), BLOCK_SIZE))
    return math.fsum(((block - mean) ** 2).sum() for block in blocks)


def error_and_gradient(theta: Array, V: Array, n_hidden: int) -> tuple[float, Array]:
    """Return the mean-field error of one RBM, laid out as for `RBMParameters.from_flat`, and its
    gradient, shape (n,).

    Back-propagation in plain NumPy, of all images at once: what the searches do without.
    """
    W, b, c = RBMParameters.from_flat(theta, V.shape[1], n_hidden)
    # not by `hidden_given_visible`: recorded ends of L-BFGS rest on these bits
    H = (1 + np.tanh((V @ W + c) / 2)) / 2
    V_hat = (1 + np.tanh((H @ W.T + b) / 2)) / 2
    visible = 2 * (V_hat - V) * V_hat * (1 - V_hat)
    hidden = visible @ W * H * (1 - H)
    gradient = RBMParameters(visible.T @ H + V.T @ hidden, visible.sum(axis=0), hidden.sum(axis=0))
    return float(((V_hat - V) ** 2).sum()), gradient.flat()


class ReconstructionObjective:
    """Mean-field reconstruction error of a whole population of RBMs: what the optimizers minimize
    (item E2).

    The error of one individual is the sum over images and pixels of (v - sigma(b + W sigma(c + W^T
    v)))^2. Images are stored once more, transposed and in blocks; in addition, a thread needs
    scratch for one block only. NumPy's values are the same bits for any number of threads and
    whatever the rest of the population is.

    Parameters
    ----------
    V : (m, n_visible) array
        Images in [0, 1].
    n_hidden : int
        Number of hidden units.
    backend : {"numpy", "torch"}
        What computes. PyTorch (``pip install leamvd[torch]``) agrees with NumPy up to rounding and
        repeats its bits on the same device; what it keeps of them is said in
        `leamvd.networks.torch_backend.TorchErrors`.
    device : str, optional
        Of torch: "cpu", "cuda", "cuda:1"; by default "cuda" where there is one.
    precision : {"float32", "float64", "bfloat16"}, optional
        Of torch's matrix products; by default the images' dtype, which is NumPy's only one.
    unit_interval : bool
        Whether numbers outside [0, 1] are refused.

    Attributes
    ----------
    n_var : int
        Length of an individual, laid out as `RBMParameters.from_flat` reads it.
    dtype : numpy.dtype
        Of the arithmetic, except products in bfloat16.
    computation : leamvd.networks.torch_backend.Computation
        Backend, device and precision.

    Raises
    ------
    ImportError
        If PyTorch is asked for and not installed.
    ValueError, TypeError
        If an argument is out of range, there is no such device, or the backend lacks the precision.
    """

    def __init__(
        self,
        V: ArrayLike,
        n_hidden: int,
        *,
        backend: Literal["numpy", "torch"] = "numpy",
        device: str | None = None,
        precision: Literal["float32", "float64", "bfloat16"] | None = None,
        unit_interval: bool = True,
    ) -> None:
        self.computation = computation(backend, device, precision, checks.precision(V))
        V = images("V", V, unit_interval=unit_interval)
        self.n_visible = V.shape[1]
        self.n_hidden = checks.integer("n_hidden", n_hidden, at_least=1)
        self.n_var = n_parameters(self.n_visible, self.n_hidden)
        self.dtype = self.computation.dtype
        size = _block_size(self.n_visible, self.n_hidden)
        # images as columns: long rows keep the vector units busy in small layers too
        parts = np.split(V, range(size, len(V), size))
        blocks = (part.T.copy() for part in parts)
        if backend == "torch":
            self._by_torch = TorchErrors(blocks, self.n_hidden, self.computation)
        else:
            self._blocks = list(blocks)

    def __call__(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the error of each individual.

        Parameters
        ----------
        X : (population, n_var) array
            Converted to `dtype`.

        Returns
        -------
        (population,) float64 array
            Finite, but +inf where an activation overflows to inf - inf.
        """
        X = checks.array("X", X, shape=(None, self.n_var), dtype=self.dtype)
        if self.computation.backend == "torch":
            return self._by_torch(X)
        errors = np.empty((len(self._blocks), len(X)))

        def evaluate(task: tuple[int, slice]) -> None:
            number, part = task
            with np.errstate(all="ignore"):
                _population_errors(
                    X[part], self._blocks[number], self.n_hidden, errors[number, part]
                )

        ends = np.linspace(0, len(X), thread_count(None) + 1).astype(int).tolist()
        parts = [slice(*pair) for pair in pairwise(ends)]
        tasks = product(range(len(self._blocks)), parts)
        with one_blas_thread():
            in_threads(evaluate, tasks, None)
        total: NDArray[np.float64] = errors.sum(axis=0)
        return total


def _block_size(n_visible: int, n_hidden: int) -> int:
    """Return a power of two of images whose product with the weights OpenBLAS makes without
    packing, if any pays.
    """
    unpacked = _UNPACKED // (n_visible * n_hidden)
    if unpacked < _LEAST_UNPACKED:
        return BLOCK_SIZE
    return min(1 << unpacked.bit_length() - 1, BLOCK_SIZE)


@kernel()
def _mean_hidden(W: Array, c: Array, V: Array, H: Array) -> None:
    """Write P(h = 1 | v) of the columns of `V` to the columns of `H`."""
    np.dot(W.T, V, H)
    sigmoid(H, c)


@kernel()
def _visible_error(W: Array, b: Array, H: Array, V: Array, V_hat: Array) -> float:
    """Return the sum of (v - sigma(b + W h))^2 over the columns of `V` and `H`;
    `V_hat` is scratch.
    """
    np.dot(W, H, V_hat)
    return squared_error(V_hat, b, V)


@kernel()
def _population_errors(X: Array, V: Array, n_hidden: int, errors: Array) -> None:
    """Write the error of each individual on the columns of `V`: compiled, so that threads do not
    wait for Python.
    """
    n_visible, n_images = V.shape
    weights = n_visible * n_hidden
    end = weights + n_visible
    H = np.empty((n_hidden, n_images), V.dtype)
    V_hat = np.empty_like(V)
    for i in range(X.shape[0]):
        W = X[i, :weights].reshape(n_visible, n_hidden)
        b = X[i, weights:end]
        c = X[i, end:]
        _mean_hidden(W, c, V, H)
        errors[i] = _visible_error(W, b, H, V, V_hat)
