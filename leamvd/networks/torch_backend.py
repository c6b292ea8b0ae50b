"""Reconstruction errors of a population by PyTorch: on the device that it is given.

PyTorch is optional (``pip install leamvd[torch]``) and imported only where it is asked for.
"""

import importlib
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from leamvd._support import checks
from leamvd._support.compile import Array

BACKENDS = ("numpy", "torch")  # that can compute the objective
PRECISIONS = ("float32", "float64", "bfloat16")  # of the factors of its matrix products

_ACTIVATIONS = 2**25  # of individuals that are computed together: what 128 MB of float32 hold


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
        name = "float64" if self.precision == "float64" else "float32"
        return np.dtype(name)


def computation(
    backend: str, device: str | None, precision: str | None, dtype: DTypeLike
) -> Computation:
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
        chosen = Computation(backend, _device(device), precision or name)
        if chosen.precision == "bfloat16" and chosen.device == "cpu":
            raise ValueError("precision='bfloat16' needs a GPU, got device='cpu'")
        return chosen
    if device not in (None, "cpu"):
        raise ValueError(f"device must be 'cpu' or None for backend='numpy', got {device!r}")
    if precision not in (None, name):
        raise ValueError(
            f"precision must be that of the images, {name!r}, for backend='numpy', got"
            f" {precision!r}"
        )
    return Computation(backend, "cpu", name)


def _device(name: str | None) -> str:
    if name == "cpu":  # which settings may name where there is no torch
        return name
    devices = import_torch().cuda.device_count()
    if name is None:
        return "cuda" if devices else "cpu"
    known = ["cpu"]
    if devices:
        known.append("cuda")
    known += [f"cuda:{i}" for i in range(devices)]
    if name not in known:
        raise ValueError(
            f"device must be one that torch finds here, {', '.join(map(repr, known))}, got {name!r}"
        )
    return name


def import_torch() -> Any:
    """Return PyTorch, or say that it is missing."""
    checks.needs("backend='torch'", "leamvd[torch]", "torch")
    return importlib.import_module("torch")


class TorchErrors:
    """Sum over images and pixels of (v - sigma(b + W sigma(c + W^T v)))^2 for each RBM of a
    population, by plain torch.

    Products of bfloat16 are summed in float32; everything else is then float32: biases, sigma,
    differences and their squares. The sum over blocks of images is float64. The same call on the
    same device gives the same bits again, with as many threads; another device or version of torch
    gives others.

    Parameters
    ----------
    blocks : iterable of (n_visible, m) array
        Images as columns. They are copied to the device.
    n_hidden : int
        Number of hidden units.
    where : Computation
        Device and precision.
    """

    def __init__(self, blocks: Iterable[Array], n_hidden: int, where: Computation) -> None:
        torch = import_torch()
        self._device = torch.device(where.device)
        self._factor = getattr(torch, where.precision)
        wide = getattr(torch, where.dtype.name)
        self._blocks = [torch.tensor(block, dtype=wide, device=self._device) for block in blocks]
        n_visible, block_size = self._blocks[0].shape
        self._shape = n_visible, n_hidden
        self._at_once = max(1, _ACTIVATIONS // (block_size * (n_visible + n_hidden)))

    def __call__(self, X: Array) -> NDArray[np.float64]:
        """Return the error of each row of `X`, shape (population, n_var): finite, or +inf instead
        of NaN.
        """
        torch = import_torch()
        n_visible, n_hidden = self._shape
        with torch.inference_mode():
            population = torch.tensor(X, dtype=self._blocks[0].dtype, device=self._device)
            total = torch.zeros(len(population), dtype=torch.float64, device=self._device)
            W, b, c = population.split([n_visible * n_hidden, n_visible, n_hidden], dim=1)
            W = W.unflatten(1, self._shape).to(self._factor)
            for part in torch.arange(len(population), device=self._device).split(self._at_once):
                W_part = W[part]
                b_part = b[part, :, None]
                c_part = c[part, :, None]
                for V in self._blocks:
                    H = (W_part.mT @ V.to(self._factor)).to(V.dtype).add_(c_part).sigmoid_()
                    V_hat = (W_part @ H.to(self._factor)).to(V.dtype).add_(b_part).sigmoid_()
                    # pairwise sums of a block lose nothing that matters
                    total[part] += V_hat.sub_(V).square_().sum(dim=(1, 2)).double()
        errors: NDArray[np.float64] = (
            total.nan_to_num(nan=torch.inf, posinf=torch.inf).cpu().numpy()
        )
        return errors
