"""What the objective and contrastive divergence cost beside their matrix products, and what is learned for it."""

import dataclasses
import functools
import importlib.util
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leamvd._support.compile import Array
from leamvd._support.threads import in_threads, one_blas_thread, thread_count
from leamvd.bench.baselines import POPULATION_SIZE, AskTell
from leamvd.bench.jobs import Job
from leamvd.bench.timing import ROUNDS, Work, alternate, clocked, median, paired_ratio, quartiles
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.optimizers.reading import Reading
from leamvd.paper import datasets, studies

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
        "section", "dataset", "layer", "n", "n_images", "threads", "rounds", "optimizer_seconds", "optimizer_low",
        "optimizer_high", "objective_seconds", "objective_low", "objective_high",
    ),
}  # fmt: skip
"""Of the tables: seconds are those of a population, of an epoch, and of a generation, this one's with quartiles."""

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

    if trainer == "scikit-learn":
        other = BernoulliRBM(n_hidden, learning_rate=0.1, batch_size=100, n_iter=epochs, random_state=seed)
        train, test = map(other.fit(data.train).transform, (data.train, data.test))
    else:
        same = as_scikit_learn(data.train, n_hidden, 100, seed=seed, n_threads=1)
        own = same if trainer == "leamvd" else ContrastiveDivergence(data.train, n_hidden, seed=seed, n_threads=1)
        for _ in range(epochs):
            own.epoch()
        train, test = map(own.rbm.hidden_given_visible, (data.train, data.test))
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
    search = AskTell(opt.ask, opt.tell, ReconstructionObjective(V, n_hidden, n_threads=threads))
    timed = alternate({"optimizer": search.generation, "objective": lambda: search.objective_seconds}, rounds)
    row: dict[str, Any] = {"dataset": data.name, "n": len(x0), "n_images": len(V)}
    for name, seconds in timed.items():
        row[f"{name}_seconds"] = median(seconds)
        row[f"{name}_low"], row[f"{name}_high"] = quartiles(seconds)
    return [row]


# ---- which jobs

SHAPES = {
    "quick": ((49, 30), (30, 30), (30, 120)),
    "paper": ((784, 500), (500, 500), (500, 2000), (49, 30), (30, 30), (30, 120)),
}
"""Visible and hidden units of the experiments' layers."""

_IMAGES = {"quick": 1_000, "paper": 10_000}
_EPOCHS = {  # images, visible, hidden units: what scikit-learn is compared on has the most images
    "quick": ((2_000, 64, 50),),
    "paper": ((60_000, 784, 500), *((10_000, v, h) for v, h in SHAPES["paper"][1:])),
}
_PROBE = {"quick": (100, 20, 2), "paper": (500, 2, 5)}  # hidden units, epochs, seeds


def jobs(profile: str) -> list[Job]:
    """Return what is measured: "quick" in seconds on small networks, "paper" on the paper's.

    PyTorch is measured where it is installed, on all threads. The images are MNIST's where it is on this machine and
    the profile is the paper's; otherwise scikit-learn's digits, and random ones for contrastive divergence's seconds.
    """
    cores = thread_count(None)
    some = 1 if profile == "quick" else min(2, cores)
    dataset, side = ("mnist", 28) if profile == "paper" and _has_mnist() else ("digits", 8)
    n_images = _IMAGES[profile] if dataset == "mnist" else 300
    n_hidden, epochs, seeds = _PROBE[profile]
    trained = [dict(zip(("n_images", "n_visible", "n_hidden"), epoch, strict=True)) for epoch in _EPOCHS[profile]]
    sections = {section: studies.study(section, profile).layers for section in ("mnist-7x7", "mnist-28x28")}
    return [
        *_objectives(profile, some),
        *(_job(training, epoch | {"batch_size": 100, "threads": some, "rounds": ROUNDS}, some) for epoch in trained),
        *(
            _job(probe, {"dataset": dataset, "side": side, "n_hidden": n_hidden, "epochs": epochs, "seed": seed}, cores)
            for seed in range(seeds)
        ),
        *(
            _job(split, {"section": section, "profile": profile, "layer": layer, "dataset": dataset,
                         "n_images": n_images, "threads": cores, "rounds": ROUNDS}, cores)
            for section, layers in sections.items() for layer in range(1, len(layers) + 1)
        ),
    ]  # fmt: skip


def _objectives(profile: str, threads: int) -> Iterator[Job]:
    """Yield all shapes by NumPy, on one thread and on `threads`, and the first one by PyTorch."""
    has_torch = profile == "paper" and importlib.util.find_spec("torch") is not None
    numpy = [("numpy", "float32", count) for count in sorted({1, threads})]
    torch = [("torch", precision, threads) for precision in ("float32", "bfloat16") if has_torch]
    for i, (v, h) in enumerate(SHAPES[profile]):
        for backend, precision, count in numpy + torch * (i == 0):
            shape = {"n_visible": v, "n_hidden": h, "n_images": _IMAGES[profile]}
            how = {"backend": backend, "precision": precision, "threads": count, "rounds": ROUNDS}
            yield _job(objectives, shape | how, count)


def _job(function: Callable[..., object], arguments: dict[str, Any], threads: int) -> Job:
    known = {"dtype": "float32", "population_size": POPULATION_SIZE}
    return Job(function.__name__, f"{__name__}:{function.__name__}", arguments, known, threads, limit=300.0)


def _has_mnist() -> bool:
    """Return whether MNIST has been fetched: a bench waits for no download."""
    import pooch

    folder = Path(os.environ.get("LEAMVD_DATA_DIR") or Path(pooch.os_cache("leamvd")) / "mnist").expanduser()
    return all((folder / name).is_file() for name in datasets.MNIST_SHA256)
