"""What the objective and contrastive divergence cost beside their matrix products, and what is learned for it."""

import dataclasses
import functools
import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leamvd._support.threads import in_threads, one_blas_thread, thread_count
from leamvd.bench.baselines import POPULATION_SIZE
from leamvd.bench.jobs import Row
from leamvd.bench.timing import ROUNDS, Work, alternate, clocked, paired_ratio, summary
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.optimizers.reading import Reading
from leamvd.paper import datasets, studies

Array = NDArray[Any]

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
    "probe": (
        "trainer", "seed", "epochs", "dataset", "n_images", "n_hidden", "train_accuracy", "test_accuracy",
    ),
    "split": (
        "section", "dataset", "layer", "n", "n_images", "threads", "optimizer_seconds", "objective_seconds",
    ),
}  # fmt: skip
"""Of the tables: seconds are those of a population, of an epoch, and of a generation."""

SPREAD = 0.1  # standard deviation of random weights, the studies' own
_REST = 0.1  # seconds: threads of BLAS look for more work for some 30 ms after their last, and so take it from the next
_FLOP = 2e11  # from which on a population is large
_REFERENCE_FLOP = 3e10  # the references' share of a population: theirs are the same for every individual


# ---- the objective


def objective(
    n_visible: int,
    n_hidden: int,
    n_images: int,
    backend: Literal["numpy", "torch"],
    precision: Literal["float32", "bfloat16"],
    threads: int,
    rounds: int = ROUNDS,
) -> list[dict[str, Any]]:
    """Measure the reconstruction error of a population on random float32 images, beside its two references.

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
    own_scale, scale = POPULATION_SIZE / len(own), POPULATION_SIZE / len(some)
    H, V_hat = np.empty((n_images, n_hidden), V.dtype), np.empty_like(V)

    def products() -> None:
        for W, _, _ in some:
            np.matmul(V, W, out=H)
            np.matmul(H, W.T, out=V_hat)

    works = {"seconds": lambda: error(X), "product": products, "direct": lambda: [direct(rbm, V) for rbm in some]}
    timed = alternate({name: clocked(work) for name, work in works.items()}, rounds, rest=_REST)
    seconds, product_seconds, direct_seconds = (
        own_scale * timed["seconds"],
        scale * timed["product"],
        scale * timed["direct"],
    )
    return [
        {
            "device": error.computation.device,
            "seconds": summary(seconds).median,
            "product_seconds": summary(product_seconds).median,
            "direct_seconds": summary(direct_seconds).median,
            "fraction_of_products": paired_ratio(product_seconds, seconds),
            "speedup_over_direct": paired_ratio(direct_seconds, seconds),
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
    flat = np.float32(SPREAD) * rng.standard_normal((POPULATION_SIZE, n), dtype=np.float32)
    return [RBM.from_flat(theta, n_visible, n_hidden) for theta in flat]


# ---- contrastive divergence


def training(
    n_images: int, n_visible: int, n_hidden: int, batch_size: int, threads: int, rounds: int = ROUNDS
) -> list[dict[str, Any]]:
    """Measure an epoch of `as_scikit_learn`, of scikit-learn's own, and of their matrix products alone.

    The images are random, in float32. All run on one thread and on `threads`; for scikit-learn and the products these
    are BLAS threads. The five products of a batch: hidden from data, data from hidden, hidden again, and twice the
    statistic that W learns from.
    """
    from sklearn.neural_network import BernoulliRBM

    V = _random(n_images, n_visible)
    other = BernoulliRBM(n_hidden, learning_rate=0.1, batch_size=batch_size, n_iter=1, random_state=0)
    products = functools.partial(_five_products, V, n_hidden, batch_size)
    counts = sorted({1, threads})
    works: dict[tuple[str, int], Work] = {}
    for count in counts:
        same = as_scikit_learn(V, n_hidden, batch_size, seed=0, n_threads=count)
        works["leamvd", count] = clocked(same.epoch)
        works["scikit-learn", count] = clocked(_limited(lambda: other.fit(V), count))
        works["products", count] = clocked(_limited(products, count))
    timed = alternate(works, rounds, rest=_REST)
    return [
        {
            "trainer": trainer,
            "threads": count,
            "seconds": summary(seconds).median,
            "product_seconds": summary(timed["products", count]).median,
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
        V,
        n_hidden,
        persistent=True,
        batch_size=batch_size,
        momentum=0.0,
        final_momentum=0.0,
        weight_decay=0.0,
        weight_scale=0.01,
        seed=seed,
        n_threads=n_threads,
    )


def _limited(work: Callable[[], object], threads: int) -> Callable[[], None]:
    """Return `work` on so many BLAS threads."""
    from threadpoolctl import ThreadpoolController

    pools = ThreadpoolController()

    def limited() -> None:
        with pools.limit(limits=threads, user_api="blas"):
            work()

    return limited


def _five_products(V: Array, n_hidden: int, batch_size: int) -> None:
    W = np.ones((V.shape[1], n_hidden), V.dtype)
    hidden, visible, statistic = np.empty((batch_size, n_hidden), V.dtype), np.empty_like(V[:batch_size]), W.copy()
    for start in range(0, len(V) - batch_size + 1, batch_size):
        data = V[start : start + batch_size]
        np.matmul(data, W, out=hidden)
        np.matmul(data.T, hidden, out=statistic)
        np.matmul(hidden, W.T, out=visible)
        np.matmul(visible, W, out=hidden)
        np.matmul(visible.T, hidden, out=statistic)


def probe(dataset: str, side: int, n_hidden: int, epochs: int, seed: int) -> list[dict[str, Any]]:
    """Train all three on all images, and a ridge classifier on the features P(h | v) of each.

    They run side by side, on one thread each: nothing is timed here.
    """
    data = datasets.load(dataset, side=side)
    trainers = ("leamvd", "leamvd CD-1", "scikit-learn")
    with one_blas_thread():
        return in_threads(functools.partial(_probe, data, n_hidden, epochs, seed), trainers, None)


def _probe(data: datasets.Dataset, n_hidden: int, epochs: int, seed: int, trainer: str) -> dict[str, Any]:
    from sklearn.linear_model import RidgeClassifier
    from sklearn.neural_network import BernoulliRBM

    if trainer != "scikit-learn":
        same = as_scikit_learn(data.train, n_hidden, 100, seed=seed, n_threads=1)
        own = same if trainer == "leamvd" else ContrastiveDivergence(data.train, n_hidden, seed=seed, n_threads=1)
        for _ in range(epochs):
            own.epoch()
        train, test = map(own.rbm.hidden_given_visible, (data.train, data.test))
    else:
        other = BernoulliRBM(n_hidden, learning_rate=0.1, batch_size=100, n_iter=epochs, random_state=seed)
        train, test = map(other.fit(data.train).transform, (data.train, data.test))
    classifier = RidgeClassifier().fit(train, data.train_labels)
    return {
        "trainer": trainer,
        "dataset": data.name,
        "n_images": len(data.train),
        "train_accuracy": float(classifier.score(train, data.train_labels)),
        "test_accuracy": float(classifier.score(test, data.test_labels)),
    }


# ---- a generation of the experiments


def split(
    section: str, profile: str, layer: int, dataset: str, n_images: int, threads: int, rounds: int = ROUNDS
) -> list[dict[str, Any]]:
    """Measure a generation of LEA-MVD on one layer of an experiment, float32: the optimizer, and its objective.

    The layers below are random networks: neither cost depends on what they have learned.
    """
    study = studies.study(section, profile)
    data = datasets.load(dataset, side=study.side, n_train=n_images)
    V: Array = data.train
    for n_hidden in study.layers[: layer - 1]:
        V = _population(V.shape[1], n_hidden)[0].hidden_given_visible(V)
    n_hidden = study.layers[layer - 1]
    settings = dataclasses.replace(study.training, dtype="float32")
    x0 = _population(V.shape[1], n_hidden)[0].flat()
    opt = settings.optimizer("lea-mvd", x0, reading=Reading(), seed=0)
    error = ReconstructionObjective(V, n_hidden, n_threads=threads)
    optimizer, objective = [], []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        X = opt.ask()
        asked = time.perf_counter()
        F = error(X)
        evaluated = time.perf_counter()
        opt.tell(X, F)
        optimizer.append(time.perf_counter() - evaluated + asked - start)
        objective.append(evaluated - asked)
    return [
        {
            "dataset": data.name,
            "n": len(x0),
            "n_images": len(V),
            "optimizer_seconds": float(np.median(optimizer[1:])),
            "objective_seconds": float(np.median(objective[1:])),
        }
    ]


# ---- which rows


SHAPES = {
    "quick": ((49, 30), (30, 30), (30, 120)),
    "paper": ((784, 500), (500, 500), (500, 2000), (49, 30), (30, 30), (30, 120)),
}
"""Visible and hidden units of the experiments' layers."""

_IMAGES = {"quick": 1_000, "paper": 10_000}
_EPOCH = {"quick": (2_000, 64, 50), "paper": (60_000, 784, 500)}  # images, visible, hidden units
_PROBE = {"quick": (100, 20, 2), "paper": (500, 2, 5)}  # hidden units, epochs, seeds
_SPLIT_ROUNDS = 3
_LIMIT = 300.0


def rows(profile: str) -> list[Row]:
    """Return what is measured: "quick" in seconds on small networks, "paper" on the paper's.

    PyTorch is measured where it is installed, on all threads. The images are MNIST's where it is on this machine and
    the profile is the paper's; otherwise scikit-learn's digits, and random ones for contrastive divergence's seconds.
    """
    return [*_objectives(profile), _training(profile), *_probes(profile), *_splits(profile)]


def _objectives(profile: str) -> list[Row]:
    both = sorted({1, _threads(profile)})
    numpy = [("numpy", "float32", threads) for threads in both]
    torch = [("torch", precision, both[-1]) for precision in ("float32", "bfloat16")]
    has_torch = profile == "paper" and importlib.util.find_spec("torch") is not None
    rows = []
    for v, h in SHAPES[profile]:
        for backend, precision, threads in numpy + (torch if has_torch and (v, h) == SHAPES[profile][0] else []):
            arguments: dict[str, Any] = {"n_visible": v, "n_hidden": h, "n_images": _IMAGES[profile]}
            arguments |= {"backend": backend, "precision": precision, "threads": threads, "rounds": ROUNDS}
            known = {"dtype": "float32", "population_size": POPULATION_SIZE}
            rows.append(Row("objectives", f"{__name__}:objective", arguments, known, threads, _LIMIT))
    return rows


def _training(profile: str) -> Row:
    threads = _threads(profile)
    arguments = dict(zip(("n_images", "n_visible", "n_hidden"), _EPOCH[profile], strict=True))
    arguments |= {"batch_size": 100, "threads": threads, "rounds": ROUNDS}
    return Row("training", f"{__name__}:training", arguments, {"dtype": "float32"}, threads, _LIMIT)


def _probes(profile: str) -> list[Row]:
    n_hidden, epochs, seeds = _PROBE[profile]
    dataset = _dataset(profile)
    side = 28 if dataset == "mnist" else 8
    arguments = {"dataset": dataset, "side": side, "n_hidden": n_hidden, "epochs": epochs}
    return [
        Row("probe", f"{__name__}:probe", arguments | {"seed": seed}, {}, thread_count(None), _LIMIT)
        for seed in range(seeds)
    ]  # fmt: skip


def _splits(profile: str) -> list[Row]:
    threads = thread_count(None)
    dataset = _dataset(profile)
    n_images = _IMAGES[profile] if dataset == "mnist" else 300
    rows = []
    for section in ("mnist-7x7", "mnist-28x28"):
        for layer, _ in enumerate(studies.study(section, profile).layers, start=1):
            arguments = {"section": section, "profile": profile, "layer": layer, "dataset": dataset}
            arguments |= {"n_images": n_images, "threads": threads, "rounds": _SPLIT_ROUNDS}
            rows.append(Row("split", f"{__name__}:split", arguments, {}, threads, _LIMIT))
    return rows


def _threads(profile: str) -> int:
    """Return how many threads are measured beside one."""
    return 1 if profile == "quick" else min(2, thread_count(None))


def _dataset(profile: str) -> str:
    """Return the data set of a profile; MNIST only where it has been fetched: a bench waits for no download."""
    if profile == "quick":
        return "digits"
    import pooch

    folder = Path(os.environ.get("LEAMVD_DATA_DIR") or Path(pooch.os_cache("leamvd")) / "mnist")
    return "mnist" if all((folder / name).is_file() for name in datasets.MNIST_SHA256) else "digits"
