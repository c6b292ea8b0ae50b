"""What the objective and contrastive divergence cost, compared with their matrix products alone."""

import functools
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from leamvd._support.compile import Array
from leamvd._support.threads import thread_count
from leamvd.bench.baselines import POPULATION_SIZE, AskTell
from leamvd.bench.cases import Case
from leamvd.bench.timing import ROUNDS, Work, alternate, clocked, median, paired_ratio, quartiles
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.optimizers.lea_mvd import LEAMVD

COLUMNS = {
    "objectives": (
        "n_visible", "n_hidden", "dtype", "backend", "precision", "device", "threads", "n_images", "population_size",
        "rounds", "status", "seconds", "product_seconds", "direct_seconds", "fraction_of_products",
        "speedup_over_direct", "flop",
    ),
    "training": (
        "trainer", "threads", "n_images", "n_visible", "n_hidden", "batch_size", "dtype", "rounds", "seconds",
        "product_seconds", "fraction_of_products", "ratio_to_sklearn",
    ),
    "split": (
        "section", "layer", "n", "n_images", "threads", "rounds", "optimizer_seconds", "optimizer_low",
        "optimizer_high", "objective_seconds", "objective_low", "objective_high",
    ),
}  # fmt: skip
"""Of the tables: seconds are those of a population, of an epoch, and of a generation, this one's with quartiles."""

LAYERS = {
    "mnist-28x28": ((784, 500), (500, 500), (500, 2000)),
    "mnist-7x7": ((49, 30), (30, 30), (30, 120)),
}
"""Visible and hidden units of the experiments' layers."""

WEIGHT_STD = 0.1  # of random networks, the studies' own
_REST = 0.1  # seconds: threads of BLAS look for more work for some 30 ms after their last, and so take it from the next
_FLOP = 2e11  # from which on a population is large
_REFERENCE_FLOP = 3e10  # the references' share of a population: theirs are the same for every individual


# ---- the objective


def objectives(
    n_visible: int,
    n_hidden: int,
    n_images: int,
    backend: Literal["numpy", "torch"],
    precision: Literal["float32", "bfloat16"],
    threads: int,
    rounds: int = ROUNDS,
) -> list[dict[str, Any]]:
    """Measure the reconstruction error of a population on random float32 images, and its two references.

    They are, for each individual, the matrix products alone, all images in one, and the error as NumPy's expression,
    both on as many BLAS threads. Of a large network only some individuals are computed, four of them by the objective
    and fewer with the references, and the seconds scaled to the population.
    """
    V, population = _random(n_images, n_visible), _population(n_visible, n_hidden)
    error = ReconstructionObjective(V, n_hidden, backend=backend, precision=precision, n_threads=threads)
    flop = 4 * n_visible * n_hidden * n_images
    some = population[: max(2, min(POPULATION_SIZE, int(_REFERENCE_FLOP / flop)))]
    own = population if flop * POPULATION_SIZE < _FLOP else population[:4]
    X = np.stack([rbm.flat() for rbm in own])
    H, V_hat = np.empty((n_images, n_hidden), V.dtype), np.empty_like(V)

    def products() -> None:
        for W, _, _ in some:
            np.matmul(V, W, out=H)
            np.matmul(H, W.T, out=V_hat)

    works = {"own": lambda: error(X), "product": products, "direct": lambda: [direct(rbm, V) for rbm in some]}
    timed = alternate({name: clocked(work) for name, work in works.items()}, rounds, rest=_REST)
    seconds = timed["own"] * POPULATION_SIZE / len(own)
    product, plain = (timed[name] * POPULATION_SIZE / len(some) for name in ("product", "direct"))
    return [
        {
            "device": error.computation.device,
            "seconds": median(seconds),
            "product_seconds": median(product),
            "direct_seconds": median(plain),
            "fraction_of_products": paired_ratio(product, seconds),
            "speedup_over_direct": paired_ratio(plain, seconds),
            "flop": flop * POPULATION_SIZE,
        }
    ]


def direct(rbm: RBM, V: Array) -> float:
    """Return the reconstruction error of one RBM, as one would write it in NumPy."""
    W, b, c = rbm
    return float(((V - _sigma(_sigma(V @ W + c) @ W.T + b)) ** 2).sum())


def _sigma(x: Array) -> Array:
    result: Array = 1 / (1 + np.exp(-x))
    return result


def _random(n_images: int, n_visible: int) -> Array:
    return np.random.default_rng(0).random((n_images, n_visible), dtype=np.float32)


def _population(n_visible: int, n_hidden: int) -> list[RBM]:
    """Return random networks in float32."""
    rng, n = np.random.default_rng(1), n_parameters(n_visible, n_hidden)
    flat = np.float32(WEIGHT_STD) * rng.standard_normal((POPULATION_SIZE, n), dtype=np.float32)
    return [RBM.from_flat(theta, n_visible, n_hidden) for theta in flat]


# ---- contrastive divergence


def training(
    n_images: int, n_visible: int, n_hidden: int, batch_size: int, threads: int, rounds: int = ROUNDS
) -> list[dict[str, Any]]:
    """Measure an epoch of `as_scikit_learn`, of scikit-learn's own, and of their matrix products alone.

    The images are random, in float32. All run on one thread and on `threads`; for scikit-learn and the products these
    are BLAS threads.
    """
    from sklearn.neural_network import BernoulliRBM
    from threadpoolctl import ThreadpoolController

    V = _random(n_images, n_visible)
    other = BernoulliRBM(n_hidden, learning_rate=0.1, batch_size=batch_size, n_iter=1, random_state=0)
    products = functools.partial(_five_products, V, n_hidden, batch_size)
    works: dict[tuple[str, int], Work] = {}
    for count in sorted({1, threads}):
        same = as_scikit_learn(V, n_hidden, batch_size, seed=0, n_threads=count)
        works["leamvd", count] = clocked(same.epoch)
        limited = ThreadpoolController().wrap(limits=count, user_api="blas")
        works["scikit-learn", count] = clocked(limited(lambda: other.fit(V)))
        works["products", count] = clocked(limited(products))
    timed = alternate(works, rounds, rest=_REST)
    return [
        {
            "trainer": trainer,
            "threads": count,
            "seconds": median(seconds),
            "product_seconds": median(timed["products", count]),
            "fraction_of_products": paired_ratio(timed["products", count], seconds),
            "ratio_to_sklearn": paired_ratio(timed["scikit-learn", count], seconds),
        }
        for (trainer, count), seconds in timed.items()
        if trainer != "products"
    ]


def as_scikit_learn(
    V: Array, n_hidden: int, batch_size: int, *, seed: int, n_threads: int | None = None
) -> ContrastiveDivergence:
    """Return a trainer of scikit-learn's algorithm and settings: persistent CD without momentum or decay."""
    return ContrastiveDivergence(
        V, n_hidden, persistent=True, batch_size=batch_size, momentum=0.0, final_momentum=0.0, weight_decay=0.0,
        weight_scale=0.01, seed=seed, n_threads=n_threads,
    )  # fmt: skip


def _five_products(V: Array, n_hidden: int, batch_size: int) -> None:
    """Compute, batch by batch, hidden from data, data from hidden, hidden again, and both statistics of W."""
    W = np.ones((V.shape[1], n_hidden), V.dtype)
    hidden, visible, statistic = np.empty((batch_size, n_hidden), V.dtype), np.empty_like(V[:batch_size]), W.copy()
    for start in range(0, len(V) - batch_size + 1, batch_size):
        data = V[start : start + batch_size]
        np.matmul(data, W, out=hidden)
        np.matmul(data.T, hidden, out=statistic)
        np.matmul(hidden, W.T, out=visible)
        np.matmul(visible, W, out=hidden)
        np.matmul(visible.T, hidden, out=statistic)


# ---- a generation of the experiments


def split(section: str, layer: int, n_images: int, threads: int, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Measure a generation of LEA-MVD on one layer of an experiment, float32: the optimizer, and its objective.

    Images and networks are random: neither cost depends on what they show.
    """
    n_visible, n_hidden = LAYERS[section][layer - 1]
    x0 = _population(n_visible, n_hidden)[0].flat()
    opt = LEAMVD(x0, seed=0, dtype="float32")
    objective = ReconstructionObjective(_random(n_images, n_visible), n_hidden, n_threads=threads)
    search = AskTell(opt.ask, opt.tell, objective)
    timed = alternate({"optimizer": search.generation, "objective": lambda: search.objective_seconds}, rounds)
    row: dict[str, Any] = {"n": len(x0)}
    for name, seconds in timed.items():
        row[f"{name}_seconds"] = median(seconds)
        row[f"{name}_low"], row[f"{name}_high"] = quartiles(seconds)
    return [row]


# ---- which cases

_SECTIONS = {"quick": ("mnist-7x7",), "paper": ("mnist-28x28", "mnist-7x7")}
_IMAGES = {"quick": 1_000, "paper": 10_000}
_TRAINED = {"quick": (2_000, 64, 50), "paper": (60_000, 784, 500)}  # compared with scikit-learn


def cases(profile: str) -> list[Case]:
    """Return what is measured: "quick" in seconds on small networks, "paper" on the paper's.

    PyTorch is measured where it is installed, on all threads.
    """
    cores = thread_count(None)
    some = 1 if profile == "quick" else min(2, cores)
    n_images = _IMAGES[profile]
    layers = [(section, layer) for section in _SECTIONS[profile] for layer in range(1, 1 + len(LAYERS[section]))]
    shapes = [LAYERS[section][layer - 1] for section, layer in layers]
    trained = [(n_images, *shape) for shape in shapes if shape != _TRAINED[profile][1:]]
    return [
        *_objectives(profile, shapes, some),
        *(
            _case(training, {"n_images": n, "n_visible": v, "n_hidden": h, "batch_size": 100, "threads": some}, some)
            for n, v, h in [_TRAINED[profile], *trained]
        ),
        *(
            _case(split, {"section": section, "layer": layer, "n_images": n_images, "threads": cores}, cores)
            for section, layer in layers
        ),
    ]


def _objectives(profile: str, shapes: Sequence[tuple[int, int]], threads: int) -> Iterator[Case]:
    """Yield all shapes by NumPy, on one thread and on `threads`, and the first one by PyTorch."""
    has_torch = profile == "paper" and importlib.util.find_spec("torch") is not None
    numpy = [("numpy", "float32", count) for count in sorted({1, threads})]
    torch = [("torch", precision, threads) for precision in ("float32", "bfloat16") if has_torch]
    for i, (v, h) in enumerate(shapes):
        for backend, precision, count in numpy + torch * (i == 0):
            shape = {"n_visible": v, "n_hidden": h, "n_images": _IMAGES[profile]}
            yield _case(objectives, shape | {"backend": backend, "precision": precision, "threads": count}, count)


def _case(function: Callable[..., object], arguments: dict[str, Any], threads: int) -> Case:
    known = {"dtype": "float32", "population_size": POPULATION_SIZE}
    name = function.__name__
    return Case(name, f"{__name__}:{name}", arguments | {"rounds": ROUNDS}, known, threads, limit=300.0)
