"""Reconstruction errors of a population by PyTorch: on CUDA devices, and with products in bfloat16.

PyTorch is optional (``pip install leamvd[torch]``) and imported only where it is asked for.
"""

import contextlib
import importlib
from collections.abc import Iterable, Iterator
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import Shared, in_threads, thread_count
from leamvd.networks.logistic import sigmoid, squared_error

BACKENDS = ("numpy", "torch")
"""The libraries that can compute the objective."""

PRECISIONS = ("float32", "float64", "bfloat16")
"""The numbers that its matrix products can be made of."""

# Activations of individuals that are computed together: small ones in the processor's cache, few calls on a device.
_ACTIVATIONS = {"cpu": 2**20, "cuda": 2**27}


class Computation(NamedTuple):
    """Where an objective is computed, and with which numbers.

    Parameters
    ----------
    backend : {"numpy", "torch"}
        The library.
    device : str
        A torch device: "cpu", "cuda", "cuda:1".
    precision : {"float32", "float64", "bfloat16"}
        Of the matrix products' factors.
    """

    backend: str
    device: str
    precision: str

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of everything but the products' factors: bfloat16 is only ever multiplied."""
        return np.dtype("float64" if self.precision == "float64" else "float32")


def computation(backend: str, device: str | None, precision: str | None, dtype: DTypeLike) -> Computation:
    """Return what a backend computes with, its arguments checked.

    Parameters
    ----------
    backend : {"numpy", "torch"}
        NumPy computes on the processor, in the dtype of the images, and nowhere else.
    device : str, optional
        Without it, "cuda" for torch where there is such a device, otherwise "cpu".
    precision : {"float32", "float64", "bfloat16"}, optional
        Without it, the dtype of the images.
    dtype : dtype
        Of the images, float32 or float64.

    Returns
    -------
    Computation

    Raises
    ------
    ImportError
        If torch is asked for and cannot be imported.
    ValueError
        If there is no such backend, precision or device, or NumPy has none.
    """
    name = np.dtype(dtype).name
    checks.choice("backend", backend, BACKENDS)
    if precision is not None:
        checks.choice("precision", precision, PRECISIONS)
    if backend == "torch":
        return Computation(backend, _device(device), precision or name)
    if device not in (None, "cpu"):
        raise ValueError(f"device must be 'cpu' or None for backend='numpy', got {device!r}")
    if precision not in (None, name):
        raise ValueError(f"precision must be that of the images, {name!r}, for backend='numpy', got {precision!r}")
    return Computation(backend, "cpu", name)


def _device(name: str | None) -> str:
    torch = _torch()
    devices = torch.cuda.device_count()
    if name is None:
        return "cuda" if devices else "cpu"
    try:
        device = torch.device(name)
        exists = isinstance(name, str) and (
            device.type == "cpu" or (device.type == "cuda" and (device.index or 0) < devices)
        )
    except (RuntimeError, TypeError):
        exists = False
    if not exists:
        known = ["cpu", *(["cuda"] if devices else []), *(f"cuda:{i}" for i in range(devices))]
        raise ValueError(f"device must be one that torch finds here, {', '.join(map(repr, known))}, got {name!r}")
    return name


def _torch() -> Any:
    checks.needs("backend='torch'", "torch", "torch")
    return importlib.import_module("torch")


class TorchErrors:
    """Sum over images and pixels of (v - sigma(b + W sigma(c + W^T v)))^2 for each RBM of a population.

    Products of float32 are of true float32, whatever the process allows elsewhere (TF32, bfloat16). Those of bfloat16
    are summed in float32 and rounded to bfloat16; everything else is then float32: biases, sigma, differences and their
    squares. The sum over blocks of images is float64.

    On the processor, torch makes the products and the kernels of NumPy's backend the rest. Blocks are spread over
    threads, and torch uses one thread for each: while a call runs, torch's own number of threads is 1, for the whole
    process. The same call gives the same bits again, on a processor on any number
    of threads; another device or version of torch gives others.

    Parameters
    ----------
    blocks : iterable of (n_visible, m) array
        Images as columns. They are copied to the device, in bfloat16 once more.
    n_hidden : int
        Number of hidden units.
    computation : Computation
        Device and precision.
    n_threads : int, optional
        By default, one for each usable core; without effect on a CUDA device.
    """

    def __init__(
        self, blocks: Iterable[Array], n_hidden: int, computation: Computation, n_threads: int | None = None
    ) -> None:
        torch = _torch()
        self._device = torch.device(computation.device)
        self._factor = getattr(torch, computation.precision)
        self._n_threads = thread_count(n_threads)
        wide = getattr(torch, computation.dtype.name)
        images = [torch.tensor(block, dtype=wide, device=self._device) for block in blocks]
        self._blocks = [(V, V.to(self._factor)) for V in images]
        n_visible, block_size = images[0].shape
        self._shape = n_visible, n_hidden
        self._at_once = max(1, _ACTIVATIONS[self._device.type] // (block_size * (n_visible + n_hidden)))

    def __call__(self, X: Array) -> NDArray[np.float64]:
        """Return the error of each row of `X`, shape (population, n_var): finite, or +inf instead of NaN."""
        torch, (n_visible, n_hidden) = _torch(), self._shape
        with _own_settings:
            population = torch.tensor(X, device=self._device)
            W, b, c = population.split([n_visible * n_hidden, n_visible, n_hidden], dim=1)
            W = W.unflatten(1, self._shape).to(self._factor)
            W_T = W.mT.contiguous()  # a product with rows of W^T takes half the time of one with columns of W
            individuals = zip(*(p.split(self._at_once) for p in (W, W_T, b, c)), strict=True)
            tasks = product(self._blocks, list(individuals))
            on_cpu = self._device.type == "cpu"
            parts = in_threads(self._part, tasks, self._n_threads) if on_cpu else list(map(self._part, tasks))
            total = torch.cat(parts).view(len(self._blocks), len(X)).sum(dim=0)
            result: NDArray[np.float64] = total.nan_to_num(nan=torch.inf, posinf=torch.inf).cpu().numpy()
        return result

    def _part(self, task: tuple[tuple[Any, Any], tuple[Any, ...]]) -> Any:
        """Return the errors of some individuals on one block of images, a float64 tensor."""
        torch = _torch()
        (V, factor), (W, W_T, b, c) = task
        torch.set_num_threads(1)  # a new thread would otherwise start a team of its own
        with torch.inference_mode():
            H = torch.bmm(W_T, factor.expand(len(W), -1, -1))
            if self._device.type == "cpu":
                for activations, bias in zip(_shared(H), _shared(c), strict=True):
                    sigmoid(activations, bias)
                V_hat, images = _shared(torch.bmm(W, H)), _shared(V)
                errors = [squared_error(own, bias, images) for own, bias in zip(V_hat, _shared(b), strict=True)]
                return torch.tensor(errors, dtype=torch.float64)
            H = H.to(V.dtype).add_(c[:, :, None]).sigmoid_()
            V_hat = torch.bmm(W, H.to(self._factor)).to(V.dtype).add_(b[:, :, None]).sigmoid_()
            # pairwise sums of a block lose nothing that matters
            return V_hat.sub_(V).square_().sum(dim=(1, 2)).double()


def _shared(tensor: Any) -> Array:
    """Return the memory of a tensor on the processor as an array, of bfloat16 as the bits that kernels take."""
    torch = _torch()
    array: Array = (tensor.view(torch.uint16) if tensor.dtype == torch.bfloat16 else tensor).numpy()
    return array


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """Let products be of the numbers that they are given, and sums be float32; put back what was set before."""
    torch = _torch()
    cuda, cpu = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    settings = (
        (cuda, "fp32_precision", "ieee"),
        (cpu, "fp32_precision", "ieee"),
        (cuda, "allow_bf16_reduced_precision_reduction", False),
    )
    n_threads = torch.get_num_threads()
    before = [getattr(place, name) for place, name, _ in settings]
    try:
        for place, name, value in settings:
            setattr(place, name, value)
        yield
    finally:
        for (place, name, _), value in zip(settings, before, strict=True):
            setattr(place, name, value)
        torch.set_num_threads(n_threads)


_own_settings = Shared(_settings)
