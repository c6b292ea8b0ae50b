"""The objective by PyTorch. `pytest tests/test_torch*.py -k cuda` checks a real card."""

import pickle
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from leamvd.networks import torch_backend
from leamvd.networks.dbn import Training
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBMParameters, n_parameters

SHAPE = 20, 9  # visible and hidden units


def images(m: int = 301, dtype: str = "float32") -> NDArray[Any]:
    return np.random.default_rng(2).random((m, SHAPE[0])).astype(dtype)


def population(size: int = 7, scale: float = 1.0) -> NDArray[np.float64]:
    return scale * np.random.default_rng(3).normal(size=(size, n_parameters(*SHAPE)))


def direct(X: NDArray[Any], V: NDArray[Any]) -> NDArray[np.float64]:
    """The errors as they are written, in float64."""
    rbms = (RBMParameters.from_flat(x.astype(np.float64), *SHAPE) for x in X)
    return np.array([((V - expit(b + expit(c + V @ W) @ W.T)) ** 2).sum() for W, b, c in rbms])


def by_torch(V: NDArray[Any], **options: Any) -> ReconstructionObjective:
    return ReconstructionObjective(V, SHAPE[1], backend="torch", **options)


# ---- with or without PyTorch


def test_the_missing_extra_is_named_before_any_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    message = r"backend='torch' needs the package torch: pip install leamvd\[torch\]"
    with pytest.raises(ImportError, match=message):
        by_torch(images())
    with pytest.raises(ImportError, match=message):
        Training(backend="torch")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_numpy_by_its_own_name(dtype: str) -> None:
    named = ReconstructionObjective(
        images(dtype=dtype), SHAPE[1], backend="numpy", device="cpu", precision=dtype
    )
    assert named.computation == ("numpy", "cpu", dtype)
    assert named.dtype == dtype
    default = ReconstructionObjective(images(dtype=dtype), SHAPE[1])
    np.testing.assert_array_equal(named(population()), default(population()))


def stand_in(devices: int) -> SimpleNamespace:
    """As much of PyTorch as the choice of a device needs, on a machine with so many cards."""

    def device(name: object) -> SimpleNamespace:
        kind, _, index = str(name).partition(":")
        if kind not in ("cpu", "cuda", "meta"):
            raise RuntimeError(f"Expected one of cpu, cuda, meta device type: {name}")
        return SimpleNamespace(type=kind, index=int(index) if index else None)

    return SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: devices), device=device)


def test_choice_of_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", stand_in(2))
    assert Training(backend="torch").computation == ("torch", "cuda", "float32")
    assert Training(backend="torch", dtype="float64").computation == ("torch", "cuda", "float64")
    for name in ("cuda", "cuda:0", "cuda:1"):
        assert Training(backend="torch", device=name, precision="bfloat16").computation == (
            "torch",
            name,
            "bfloat16",
        )
    with pytest.raises(ValueError, match="precision='bfloat16' needs a GPU"):
        Training(backend="torch", device="cpu", precision="bfloat16")
    for name in ("cuda:2", "meta", "gpu", "", 0):
        with pytest.raises(ValueError, match=f"'cpu', 'cuda', 'cuda:0', 'cuda:1', got {name!r}"):
            Training(backend="torch", device=name)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", stand_in(0))
    assert Training(backend="torch").computation == ("torch", "cpu", "float32")
    with pytest.raises(
        ValueError, match="device must be one that torch finds here, 'cpu', got 'cuda'"
    ):
        by_torch(images(), device="cuda")


# ---- values


@pytest.mark.parametrize(("precision", "rtol"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("block_size", [1, 70, 1000])
def test_values_against_the_direct_expression(
    device: str, precision: str, rtol: float, block_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leamvd.networks.objective._block_size", lambda *_: block_size)
    V, X = images(dtype=precision), population().astype(precision)
    exact = direct(X, V.astype(np.float64))
    for at_once in (1, 2**20):  # individuals one by one, and together
        monkeypatch.setattr(torch_backend, "_ACTIVATIONS", at_once)
        F = by_torch(V, device=device)(X)
        assert F.dtype == np.float64
        assert F.shape == (7,)
        np.testing.assert_allclose(F, exact, rtol=rtol)


def test_bfloat16_keeps_the_order_and_three_digits(device: str) -> None:
    # Eight bits a factor; over thousands of squares their errors average out.
    if device == "cpu":
        pytest.skip("bfloat16 needs a GPU")
    V, X = images(2000), population(40, scale=0.5)
    exact = direct(X, V.astype(np.float64))
    F = by_torch(V, device=device, precision="bfloat16")(X)
    np.testing.assert_allclose(F, exact, rtol=2e-3)
    assert stats.spearmanr(F, exact).statistic > 0.99
    assert np.abs(F / exact - 1).max() > 1e-5, "these products were not of bfloat16"


def test_precision_of_images_of_another_dtype(device: str) -> None:
    wide = by_torch(images(), device=device, precision="float64")
    assert wide.dtype == np.float64
    np.testing.assert_allclose(
        wide(population()), direct(population(), images().astype(np.float64)), rtol=1e-12
    )
    narrow = by_torch(images(dtype="float64"), device=device, precision="float32")
    assert narrow.dtype == np.float32


def test_the_same_call_gives_the_same_bits(device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("leamvd.networks.objective._block_size", lambda *_: 64)
    objective, X = by_torch(images(), device=device), population()
    np.testing.assert_array_equal(objective(X), objective(X))


@pytest.mark.parametrize("size", [2.0**10, 2.0**100])
def test_huge_weights_saturate(device: str, size: float) -> None:
    # Where as many weights are positive as negative, the sum is exactly zero and its sigma 1/2:
    # only sums of powers of two are not rounded to something else, in any order of summation.
    V, X = images(9), size * np.sign(population())
    for objective in (by_torch(V, device=device), ReconstructionObjective(V, SHAPE[1])):
        np.testing.assert_allclose(objective(X), direct(X, V.astype(np.float64)), rtol=1e-5)


def test_nan_becomes_infinite(device: str) -> None:
    objective = by_torch(images(), device=device)
    assert objective._by_torch(np.full((1, objective.n_var), np.nan, np.float32)) == [np.inf]


def test_inputs_are_converted_and_left_alone(device: str) -> None:
    V, X = images(), population()
    before = V.copy(), X.copy()
    objective = by_torch(V, device=device)
    X.flags.writeable = False  # as what LEA-MVD's `ask` returns
    narrow = X.astype(np.float32)
    narrow.flags.writeable = False
    np.testing.assert_array_equal(objective(X), objective(narrow))
    np.testing.assert_array_equal(V, before[0])
    np.testing.assert_array_equal(X, before[1])
    V[:] = 0  # the objective has images of its own
    np.testing.assert_allclose(objective(X), direct(X, before[0].astype(np.float64)), rtol=1e-5)
    assert objective(X[:0]).shape == (0,)
    with pytest.raises(ValueError, match=r"X must have shape \(m, 209\), got \(1, 208\)"):
        objective(np.zeros((1, 208)))


def test_pickle(device: str) -> None:
    objective = by_torch(images(), device=device)
    again = pickle.loads(pickle.dumps(objective))
    np.testing.assert_array_equal(again(population()), objective(population()))
