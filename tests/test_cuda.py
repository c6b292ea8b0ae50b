"""LEA-MVD on a graphics card: in Numba's simulator, and by `pytest tests/test_cuda.py` on a card where there is one.

The simulator runs a thread of a card as one of Python's, so blocks have 32 of them here, and populations are small.
"""

import math
import os
import pickle
import re
import subprocess
import sys
import weakref
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import numpy as np
import problems
import pytest
from numba import float32, float64, int64, uint64
from numpy.typing import NDArray

import leamvd
from leamvd import LEAMVD, Reading
from leamvd.optimizers import directions, random_streams

Array = NDArray[Any]
SIMULATED = bool(numba.config.ENABLE_CUDASIM)
HAS_EXTRA = find_spec("numba_cuda") is not None

if SIMULATED or HAS_EXTRA:
    from numba import cuda

    from leamvd.optimizers import cuda as card

HAS_CARD = HAS_EXTRA and not SIMULATED and cuda.is_available()
on_card = pytest.mark.skipif(not SIMULATED and not HAS_CARD, reason="runs in the simulator, or on a card")
if SIMULATED:
    card.LEAMVDOnCard.threads, card.LEAMVDOnCard.summers = 32, 2


@pytest.mark.skipif(SIMULATED or HAS_CARD, reason="is what the simulator runs, or a card")
def test_in_numbas_simulator() -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    env["NUMBA_ENABLE_CUDASIM"] = "1"
    arguments = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    done = subprocess.run(arguments, env=env, capture_output=True, text=True, cwd=Path(__file__).parent)
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(re.findall(r"(\d+) passed", done.stdout)[0]) > 20


def put(array: Any, values: Array) -> None:
    array.copy_to_device(np.ascontiguousarray(values.astype(array.dtype)))


def handed(opt: LEAMVD, **arguments: Any) -> Any:
    """Return a search on the card that is where one on the processor is: after `tell`, before `ask`."""
    other: Any = LEAMVD(**arguments, device="cuda")
    a, size, m, combination = other._card, opt.population_size, len(opt._rows), opt._combination()
    put(a.X, opt._X.reshape(-1))
    put(a.vectors, np.array(opt._vectors))
    if other._by_first:
        put(a.unit, opt._added if opt._initial_std is None else opt._initial_std)
    ranks, told, numbers = (np.zeros(array.shape, array.dtype) for array in (a.ranks, a.told, a.numbers))
    ranks[:size], ranks[card.COUNT] = opt._order, opt.generation
    ranks[card.ROWS : card.ROWS + m], ranks[card.RANKS : card.RANKS + m] = opt._order[opt._rows], opt._rows
    told[:3], told[card.FITNESS : card.FITNESS + size] = (opt._beta1, opt._beta2, opt._stagnation), opt._F
    told[card.BEST], told[card.NORM], told[card.WIDEST] = opt.best_fun, opt._std_norm, opt._widest
    if opt._initial_std is not None:
        told[card.FIRST_NORM] = np.linalg.norm(opt._initial_std)
    numbers[: card.RESET] = scalars(opt)
    numbers[card.ROW_WEIGHTS : card.ROW_WEIGHTS + m] = combination.row_weights
    for array, values in ((a.ranks, ranks), (a.told, told), (a.numbers, numbers)):
        put(array, values)
    other.generation = other._known = opt.generation
    other.nfev, other._x0 = opt.nfev, None
    return other


def scalars(opt: LEAMVD) -> tuple[float, float, float, float]:
    """Return the weight of P, the fresh part of C_ani, and both shifts of the next generation, before rounding."""
    pending, reading, scale = opt._pending, opt.reading, 1.0
    if reading.descent_scale == "normalized" and opt._descent_norm > 0:
        scale = opt._descent_norm
    step = abs(opt._descent_mean) if reading.shift == "toward_best" else opt._descent_mean
    step = 0.0 if reading.descent == "off" else opt._beta1 * (1 - opt._beta2) * (step / scale)
    return pending.path_weight, pending.fresh, opt._beta1 * opt._beta2, step


# Each field of a reading has each of its options in one of these.
READINGS = {
    "default": {},
    "printed": vars(Reading.printed()) | {"population_size": 24, "limits": None},
    "recommended": {"reset": "off", "perturbation": "added"},
    "others": {
        "convergence": "unscaled", "orientation": "free", "n_descent_rows": 3, "first_direction": "full",
        "descent_scale": "normalized", "beta1_at_one": "mirrored", "ties": "newest", "exponent": 0.5, "descent": "free",
    },
    "parts": {"path": "off", "descent": "off", "perturbation": "off", "reset": "initial"},
}  # fmt: skip
CASES = [*product(["float64", "float32"], ["x0", "bounds"], ["first", "clip", "reflect"])]
NAMES = [*READINGS]


@on_card
@pytest.mark.parametrize(("case", "name"), [*enumerate(NAMES[::-1] + NAMES + NAMES[:2])])
def test_kernels_have_the_processors_bits(case: int, name: str) -> None:
    dtype, start, limits = CASES[case]
    n = 1030 if case == 11 else 37  # two tiles, or one that is not full
    reading = Reading(**READINGS[name] | {"limits": limits})  # type: ignore[arg-type]
    # of the seeds the first whose generation 4 has a column factor for more than 32 columns of a tile
    given: dict[str, Any] = {"seed": 160, "dtype": dtype, "population_size": 5, "n_elite": 2, "reading": reading}
    given |= {"bounds": (-0.6, 0.7), "sigma0": 0.6}
    given |= {"x0": np.linspace(-0.5, 0.5, n)} if start == "x0" else {"n_var": n}
    opt = LEAMVD(**given)
    np.testing.assert_array_equal(LEAMVD(**given, device="cuda").ask(), opt.ask())  # type: ignore[arg-type]
    for _ in range(3):
        opt.tell(opt.ask(), problems.sphere(opt.ask()))
    other = handed(opt, **given)
    np.testing.assert_array_equal(other.ask(), opt.ask())
    for of_card, of_processor in zip(other._card.vectors.copy_to_host(), opt._vectors, strict=True):
        np.testing.assert_array_equal(of_card, of_processor)

    values = problems.sphere(opt.ask())
    values[:3] = opt.best_fun, np.nan, opt.best_fun  # ties, with an elite too
    opt.tell(opt.ask(), values)
    other.tell(other.ask(), values)
    a, m, size = other._card, len(opt._rows), opt.population_size
    ranks, told = a.ranks.copy_to_host(), a.told.copy_to_host()
    np.testing.assert_array_equal(ranks[:size], opt._order)
    np.testing.assert_array_equal(ranks[card.RANKS : card.RANKS + m], opt._rows)
    np.testing.assert_array_equal(told[card.FITNESS : card.FITNESS + size], opt._F)
    np.testing.assert_array_equal(told[:3], [opt._beta1, opt._beta2, opt._stagnation])
    normals = random_streams.row_normals(opt._key, random_streams.DESCENT_START, opt.generation, m)
    np.testing.assert_array_equal(told[card.START : card.START + m], normals)

    products = directions.scan(opt._X, opt._order, opt._weights, opt._rows, opt._vectors)  # once more, to the same bits
    summed = np.zeros((size + 1, 6))
    summed[:size, : m + 2], summed[size, :4] = products.rows, products[1:5]
    tolerance = (1e-14 if dtype == "float64" else 1e-6) * np.abs(summed).max(axis=0)
    assert np.all(np.abs(a.total.copy_to_host() - summed) <= tolerance)
    put(a.total, summed)
    with card.uncontracted():
        other._kernels.combine[1, 32](a.total, n, a.ranks, a.numbers, a.told)
    numbers = a.numbers.copy_to_host()
    np.testing.assert_array_equal(numbers[card.ROW_WEIGHTS : card.ROW_WEIGHTS + m], opt._combination().row_weights)
    exact = name != "printed"  # whose mean of projections NumPy sums in another order
    np.testing.assert_allclose(numbers[: card.RESET], np.array(scalars(opt), dtype), rtol=0 if exact else 1e-6)


@on_card
@pytest.mark.parametrize("reset", [1.0, "initial", "off"])
def test_ten_generations_without_a_better_best(reset: Any) -> None:
    given: dict[str, Any] = {"x0": np.zeros(20), "seed": 2, "population_size": 6, "reading": Reading(reset=reset)}
    opt = LEAMVD(**given)
    for _ in range(10):
        opt.tell(opt.ask(), np.ones(opt.n_candidates))
    other = handed(opt, **given)
    for search in (opt, other):
        search.tell(search.ask(), np.ones(opt.n_candidates))
    assert opt._stagnation == (10 if reset == "off" else 0)
    np.testing.assert_allclose(other.step_sizes, opt.step_sizes, rtol=1e-12)
    np.testing.assert_allclose(other.state.std, opt.state.std, rtol=1e-12)
    np.testing.assert_allclose(other.ask(), opt.ask(), rtol=0, atol=1e-12)


def searched(device: str, generations: int, fun: Any = problems.sphere, n: int = 70, **options: Any) -> Any:
    given: dict[str, Any] = {"seed": 3, "population_size": 6, "n_gen": generations, "vectorized": True}
    return leamvd.minimize(fun, **{"x0": np.linspace(-1, 1, n)} | given | options, device=device)


def on_host(X: Any) -> Array:
    return problems.sphere(np.asarray(X, np.float64)).astype(X.dtype)


def stays_on_card(X: Any) -> Any:
    return cuda.to_device(on_host(X))


@on_card
@pytest.mark.parametrize(
    ("dtype", "name", "warps"), [("float64", "default", 1), ("float32", "recommended", 1), ("float64", "others", 2)]
)
def test_a_search_ends_as_on_the_processor(dtype: str, name: str, warps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same to rounding; and with values on the card to the bit what it is with values on the host."""
    if SIMULATED:
        monkeypatch.setattr(card.LEAMVDOnCard, "threads", 32 * warps)
    generations, n = (3, 70 if warps == 1 else 20) if SIMULATED else (30, 100_003)
    options: dict[str, Any] = {"n": n, "dtype": dtype, "reading": Reading(**READINGS[name])}  # type: ignore[arg-type]
    if name == "recommended":
        options |= {"x0": None, "n_var": n, "bounds": (-1, 1)}
    expected, found = (searched(device, generations, on_host, **options) for device in ("cpu", "cuda"))
    again = searched("cuda", generations, stays_on_card, **options)
    for name in ("nit", "nfev", "success", "status", "reason", "message", "n_nan", "n_inf", "seed"):
        assert found[name] == expected[name] == again[name], name
    np.testing.assert_allclose(found.x, expected.x, rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.array(found.history), np.array(expected.history), rtol=1e-6)
    np.testing.assert_array_equal(found.x, again.x)
    np.testing.assert_array_equal(np.array(found.history), np.array(again.history))


@on_card
def test_values_on_the_card_end_a_search_one_generation_late_unless_a_callback_sees_each() -> None:
    seen: list[float] = []
    given: dict[str, Any] = {"n": 4, "target": searched("cpu", 2, n=4).fun + 1e-9}
    called = given | {"callback": lambda intermediate_result: seen.append(intermediate_result.fun)}
    at_once, late = (searched("cuda", 30, fun, **given) for fun in (on_host, stays_on_card))
    seeing = searched("cuda", 30, stays_on_card, **called)
    in_time = searched("cuda", at_once.nit, stays_on_card, **given)
    assert (at_once.nit, late.nit, seeing.nit) == (2, 3, 2)
    assert {found.reason for found in (at_once, late, seeing, in_time)} == {"target"}
    assert seen == [*seeing.history.best]
    for device in ("cpu", "cuda"):
        message = searched(device, 1, lambda X: np.arange(len(X)), n=4).message
        assert message.endswith("No better point than the start was found.")
    given["sigma_min"] = late.history.std_norm[:2].mean() / math.sqrt(4)
    for fun, nit in ((on_host, 2), (stays_on_card, 3)):
        found = searched("cuda", 30, fun, **given | {"target": None})
        assert (found.reason, found.nit) == ("sigma_min", nit)


@on_card
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_an_error_or_another_search_finds_the_history_of_its_own(device: Any) -> None:
    fun = on_host if device == "cpu" else stays_on_card
    opt = LEAMVD(np.linspace(-1, 1, 4), seed=1, population_size=6, n_elite=1, device=device)
    for _ in range(2):
        opt.tell(opt.ask(), fun(opt.ask()))
    with pytest.raises(ZeroDivisionError) as caught:
        leamvd.minimize(lambda X: fun(X) if opt.generation < 4 else 1 / 0, method=opt, vectorized=True)
    found = caught.value.result  # type: ignore[attr-defined]
    assert found.history.nfev.tolist() == [opt.nfev - opt.n_candidates, opt.nfev]
    assert problems.sphere(found.x[None])[0] == found.fun, "between ask and tell"


@on_card
@pytest.mark.filterwarnings("ignore:.*overflow encountered|.*invalid value:RuntimeWarning")  # by the simulator
def test_values_that_are_no_numbers() -> None:
    opt = LEAMVD(np.zeros(3), population_size=6, seed=1, device="cuda")
    F = np.array([3, np.nan, 2, np.inf, 1, np.nan])
    opt.tell(opt.ask(), F)
    assert (opt.result.fun, opt.n_nan, opt.n_inf) == (1, 2, 1)
    np.testing.assert_array_equal(opt.result.x, opt.state.population[0])
    opt.tell(opt.ask(), np.full((2, 1), np.nan))
    assert opt.stop() == {"nan": 2}
    opt.tell(opt.ask(), stays_on_card(np.asarray(opt.ask())))
    with pytest.raises(ValueError, match=r"F must be larger than -inf, got -inf at index 1"):
        opt.tell(opt.ask(), [0, -np.inf])
    with pytest.raises(ValueError, match=r"F must be larger than -inf, got -inf at index 0") as caught:
        searched("cuda", 9, lambda X: cuda.to_device(np.array([-np.inf, 2, 3, 4, 5, 6][: len(X)])), n=4)
    assert caught.value.result.fun == 2  # type: ignore[attr-defined]
    opt = LEAMVD(np.zeros(3), population_size=6, seed=1, device="cuda", sigma0=1e300)
    opt.tell(opt.ask(), np.arange(6.0))
    with pytest.raises(OverflowError, match="too far for float64"):
        opt.best_fun, opt.ask()


@on_card
def test_what_was_evaluated_may_be_told_and_a_search_can_be_kept() -> None:
    opt: Any = LEAMVD(np.zeros(3), population_size=6, seed=1, device="cuda")
    X = np.asarray(opt.ask()) + 1
    opt.tell(X, on_host(X))
    np.testing.assert_array_equal(np.sort(opt.state.population, axis=0), np.sort(X, axis=0))
    assert not opt.state.path.any()
    with pytest.raises(RuntimeError, match="call ask"):
        opt.tell(X, on_host(X))
    for F in ([np.nan, 1], [0, 1]):
        opt.tell(opt.ask(), F)
    assert opt.result.n_nan == 1
    best = opt.result.x
    assert opt._card.ranks.copy_to_host()[0] > 0  # the next candidates lie where it was
    X = opt.ask()
    np.testing.assert_array_equal(opt.result.x, best)
    other = pickle.loads(pickle.dumps(opt))
    for search in (opt, other):
        np.testing.assert_array_equal(search.ask(), X)
        search.tell(search.ask(), on_host(X))
    np.testing.assert_array_equal(other.ask(), opt.ask())
    assert other.result.fun == opt.result.fun


@on_card
def test_any_thread_may_go_on_and_nothing_holds_a_search() -> None:
    opt = LEAMVD(np.zeros(3), population_size=6, seed=1, device="cuda")
    for _ in range(3):
        opt.tell(opt.ask(), stays_on_card(np.asarray(opt.ask())))
        with ThreadPoolExecutor(1) as other:
            assert other.submit(getattr, opt, "best_fun").result() == opt.result.fun
            other.submit(opt.ask).result()
    gone = weakref.ref(opt)
    del opt
    assert gone() is None


@on_card
def test_a_checkpoint_goes_on(tmp_path: Path) -> None:
    file, whole = tmp_path / "search.npz", searched("cuda", 2, stays_on_card, checkpoint=tmp_path / "whole.npz")
    searched("cuda", 1, stays_on_card, checkpoint=file)
    again = searched("cuda", 2, stays_on_card, checkpoint=file)
    np.testing.assert_array_equal(again.x, whole.x)
    with pytest.raises(ValueError, match=r"is of a search with .*device=cuda, got cpu"):
        searched("cpu", 3, on_host, checkpoint=file)


@on_card
def test_what_a_card_does_not_do_is_named() -> None:
    reading = Reading(step="sampled", sigma_norm="spectral")
    told = "population_size > 32, n_elite > 8, step='sampled', sigma_norm='spectral'"
    with pytest.raises(ValueError, match=re.escape(f"device='cuda' cannot do {told}")):
        LEAMVD(np.zeros(3), device="cuda", population_size=33, n_elite=9, reading=reading)
    for options in ({"vectorized": False}, {"workers": 2}, {"sigma0": "auto"}):
        with pytest.raises(ValueError, match="device='cuda' needs vectorized=True, workers=1 and a number for sigma0"):
            searched("cuda", 3, on_host, **options)
    opt = LEAMVD(np.zeros(3), device="cuda")
    wrong = {"int64 of shape": np.arange(48), "float64 of shape .* with gaps": np.ones(48)}
    for told, values in wrong.items():
        with pytest.raises(ValueError, match=rf"F on the card .*, without gaps, of shape \(24,\), got {told}"):
            opt.tell(opt.ask(), cuda.to_device(values)[::2])
    with pytest.raises(TypeError, match="device='cuda' is for LEAMVD itself, got Mine"):
        type("Mine", (LEAMVD,), {})(np.zeros(3), device="cuda")
    with pytest.raises(ValueError, match="device must be one of 'cpu', 'cuda', got 'gpu'"):
        LEAMVD(np.zeros(3), device="gpu")  # type: ignore[arg-type]


@pytest.mark.skipif(SIMULATED or not HAS_EXTRA or HAS_CARD, reason="is for where there is leamvd[cuda] and no card")
def test_without_a_card_one_sentence_says_so() -> None:
    with pytest.raises(ValueError, match="device='cuda' needs an NVIDIA graphics card and its driver"):
        LEAMVD(np.zeros(3), device="cuda")


@pytest.mark.skipif(SIMULATED or not HAS_EXTRA, reason="needs leamvd[cuda]")
@pytest.mark.parametrize(("name", "dtype"), [("default", "float32"), ("printed", "float64"), ("others", "float64")])
def test_kernels_compile_for_a_card_without_contracted_arithmetic(
    dtype: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the compiler of the extra, which needs no card: what PTX rounds once is what `scan` asks for."""
    from numba.cuda import codegen, dispatcher

    device = SimpleNamespace(compute_capability=(9, 0))
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: device)
    monkeypatch.setattr(codegen, "devices", SimpleNamespace(get_context=lambda: SimpleNamespace(device=device)))
    real = float32 if dtype == "float32" else float64
    x, words, f8 = real[::1], uint64[::1], float64[::1]
    of = {
        "initialize": (x, int64, x, real, x, x, uint64),
        "regenerate": (x, int64, real[:, ::1], x, x, x, real, words, x, uint64),
        "scan": (x, int64, words, x, real[:, ::1], float64[:, :, ::1]),
        "add_up": (float64[:, :, ::1], float64[:, ::1]),
        "select": (real[::1], words, f8, uint64),
        "combine": (float64[:, ::1], int64, words, x, f8),
    }
    reading = Reading(**READINGS[name] | {"limits": "reflect"}).complete()  # type: ignore[arg-type]
    with card.uncontracted():
        kernels = card.kernels(dtype, reading, 24, 4, name == "others", 256, 128)
        for kernel, types in of.items():
            compiled = getattr(kernels, kernel)
            made = dispatcher._Kernel(compiled.py_func, types, **compiled.targetoptions)
            code = made._codelibrary.get_asm_str((9, 0))
            assert not re.findall(r"\b(?:add|sub|mul)\.f(?:32|64)", code), kernel  # which linking may contract
            if kernel not in ("scan", "combine"):  # divisions and roots of `combine` are made of such instructions
                assert "fma." not in code, kernel
