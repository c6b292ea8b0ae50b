"""The objective by PyTorch. `pytest tests/test_torch*.py -k cuda` checks a real card."""

import itertools
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import expit

from leamvd._support.threads import in_threads
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
    named = ReconstructionObjective(images(dtype=dtype), SHAPE[1], backend="numpy", device="cpu", precision=dtype)
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
    for name in ("cpu", "cuda", "cuda:0", "cuda:1"):
        assert Training(backend="torch", device=name, precision="bfloat16").computation == ("torch", name, "bfloat16")
    for name in ("cuda:2", "meta", "gpu", "", 0):
        with pytest.raises(ValueError, match=f"'cpu', 'cuda', 'cuda:0', 'cuda:1', got {name!r}"):
            Training(backend="torch", device=name)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "torch", stand_in(0))
    assert Training(backend="torch").computation == ("torch", "cpu", "float32")
    with pytest.raises(ValueError, match="device must be one that torch finds here, 'cpu', got 'cuda'"):
        by_torch(images(), device="cuda")


def test_torch_is_imported_only_where_it_is_asked_for() -> None:
    program = (
        "import sys, numpy as np, leamvd, leamvd.networks.dbn;"
        "from leamvd.networks.objective import ReconstructionObjective;"
        "ReconstructionObjective(np.ones((2, 3)), 1)(np.ones((1, 7))); print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout == "False\n"


# ---- values


@pytest.mark.parametrize(("precision", "rtol"), [("float64", 1e-12), ("float32", 1e-5)])
@pytest.mark.parametrize("block_size", [1, 70, 1000])
def test_values_against_the_direct_expression(
    device: str, precision: str, rtol: float, block_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    V, X = images(dtype=precision), population().astype(precision)
    exact = direct(X, V.astype(np.float64))
    for at_once in (1, 2**20):  # individuals one by one, and together
        monkeypatch.setitem(torch_backend._ACTIVATIONS, device, at_once)
        F = by_torch(V, device=device, block_size=block_size)(X)
        assert F.dtype == np.float64
        assert F.shape == (7,)
        np.testing.assert_allclose(F, exact, rtol=rtol)


def test_bfloat16_keeps_the_order_and_three_digits(device: str) -> None:
    # Eight bits a factor; over thousands of squares their errors average out.
    V, X = images(2000), population(40, scale=0.5)
    exact = direct(X, V.astype(np.float64))
    F = by_torch(V, device=device, precision="bfloat16")(X)
    np.testing.assert_allclose(F, exact, rtol=2e-3)
    assert stats.spearmanr(F, exact).statistic > 0.99
    assert np.abs(F / exact - 1).max() > 1e-5, "these products were not of bfloat16"


def test_precision_of_images_of_another_dtype(device: str) -> None:
    wide = by_torch(images(), device=device, precision="float64")
    assert wide.dtype == np.float64
    np.testing.assert_allclose(wide(population()), direct(population(), images().astype(np.float64)), rtol=1e-12)
    narrow = by_torch(images(dtype="float64"), device=device, precision="float32")
    assert narrow.dtype == np.float32
    assert by_torch(images(), device=device, precision="bfloat16").dtype == np.float32


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
def test_same_bits_again_on_any_threads(device: str, precision: str) -> None:
    V, X = images(), population()
    objectives = [by_torch(V, device=device, precision=precision, n_threads=n, block_size=64) for n in (1, 2, 5, None)]
    first = objectives[0](X)
    for objective in objectives:
        np.testing.assert_array_equal(objective(X), first)
        np.testing.assert_array_equal(objective(X), first)


@pytest.mark.parametrize("precision", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("size", [2.0**10, 2.0**100])
def test_huge_weights_saturate(device: str, precision: str, size: float) -> None:
    # Where as many weights are positive as negative, the sum is exactly zero and its sigma 1/2: only sums of powers of
    # two are not rounded to something else, in any order of summation.
    V, X = images(9), size * np.sign(population())
    F = by_torch(V, device=device, precision=precision)(X)
    # where a sum of thousands cancels, bfloat16 may miss its sign: that pixel's error is then 1 off at most
    atol = 0.05 * V.size if precision == "bfloat16" else 0
    np.testing.assert_allclose(F, direct(X, V.astype(np.float64)), rtol=1e-5, atol=atol)
    np.testing.assert_allclose(ReconstructionObjective(V, SHAPE[1])(X), direct(X, V.astype(np.float64)), rtol=1e-5)


def test_overflow_is_infinite_and_never_nan(device: str) -> None:
    # the largest float32 is infinite in bfloat16, and inf 0 is not a number
    V, X = np.zeros((3, SHAPE[0]), np.float32), np.zeros((2, n_parameters(*SHAPE)), np.float32)
    X[0, 0] = np.finfo(np.float32).max
    assert by_torch(V, device=device, precision="bfloat16")(X).tolist() == [np.inf, 60 / 4]
    assert by_torch(V, device=device)(X).tolist() == [3 * (19 / 4 + 1), 60 / 4]


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
    with pytest.raises(ValueError, match=r"X must have shape \(any, 209\), got \(1, 208\)"):
        objective(np.zeros((1, 208)))


def test_pickle(device: str) -> None:
    objective = by_torch(images(), device=device, precision="bfloat16")
    again = pickle.loads(pickle.dumps(objective))
    np.testing.assert_array_equal(again(population()), objective(population()))


# ---- torch's own settings


def threads_elsewhere(torch: Any) -> int:
    """The number of threads that torch takes on a thread which is new to it."""
    return int(in_threads(lambda _: torch.get_num_threads(), [None], 1)[0])


@pytest.fixture
def loose(torch: Any) -> Iterator[None]:
    """A process that allows fewer bits than float32 has, and three threads."""
    cuda, cpu = torch.backends.cuda.matmul, torch.backends.mkldnn.matmul
    before = cuda.fp32_precision, cpu.fp32_precision, torch.get_num_threads()
    cuda.fp32_precision, cpu.fp32_precision = "tf32", "bf16"
    torch.set_num_threads(3)
    yield
    after = cuda.fp32_precision, cpu.fp32_precision, torch.get_num_threads(), threads_elsewhere(torch)
    assert after == ("tf32", "bf16", 3, 3), "not put back"
    cuda.fp32_precision, cpu.fp32_precision = before[:2]
    torch.set_num_threads(before[2])


def wide_errors(device: str) -> NDArray[np.float64]:
    """Errors of a layer large enough for the libraries that would round its factors."""
    rng = np.random.default_rng(5)
    V, X = rng.random((512, 256), dtype=np.float32), 0.1 * rng.normal(size=(2, n_parameters(256, 256)))
    return ReconstructionObjective(V, 256, backend="torch", device=device)(X)


def test_float32_is_float32_whatever_the_process_allows(device: str, request: pytest.FixtureRequest) -> None:
    strict = wide_errors(device)
    request.getfixturevalue("loose")
    np.testing.assert_array_equal(wide_errors(device), strict)


def test_each_of_our_threads_is_one_of_torchs(torch: Any, loose: None, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, bmm = set(), torch.bmm

    def watched(*factors: Any) -> Any:
        seen.add(torch.get_num_threads())
        return bmm(*factors)

    monkeypatch.setattr(torch, "bmm", watched)
    by_torch(images(), device="cpu", n_threads=2, block_size=64)(population())
    assert seen == {1}


def test_settings_are_put_back_after_an_error(
    device: str, torch: Any, loose: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: object) -> None:
        raise RuntimeError("out of memory")

    objective = by_torch(images(), device=device)
    monkeypatch.setattr(torch, "bmm", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        objective(population())


def test_calls_that_overlap_put_back_what_was(torch: Any, loose: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second call starts while the first one runs, and ends after it; `loose` looks at what is left."""
    inside, first_ended, bmm = [threading.Event(), threading.Event()], threading.Event(), torch.bmm
    waits = iter([(inside[0], inside[1]), (inside[1], first_ended)])  # of each call's first product

    def waiting(*factors: Any) -> Any:
        for here, until in itertools.islice(waits, 1):
            here.set()
            assert until.wait(60)
        return bmm(*factors)

    objective, X = by_torch(images(), device="cpu", n_threads=1), population()
    expected = objective(X)
    monkeypatch.setattr(torch, "bmm", waiting)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(objective, X)
        assert inside[0].wait(60)
        second = pool.submit(objective, X)
        np.testing.assert_array_equal(first.result(60), expected)
        first_ended.set()
        np.testing.assert_array_equal(second.result(60), expected)
