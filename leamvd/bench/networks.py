"""What the objective and contrastive divergence cost, compared with their matrix products alone."""

import functools
import importlib.util
import itertools
from typing import Any, Literal

import numpy as np

from leamvd._support.compile import Array
from leamvd._support.threads import thread_count
from leamvd.bench.baselines import POPULATION_SIZE, Objective, ask_and_tell
from leamvd.bench.cases import Case
from leamvd.bench.timing import ROUNDS, Work, alternate, clocked, median, quartiles
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBMParameters, n_parameters
from leamvd.optimizers.lea_mvd import LEAMVD

COLUMNS = {
    "objectives": (
        "n_visible", "n_hidden", "dtype", "backend", "precision", "device", "threads", "n_images", "population_size",
        "rounds", "status", "seconds", "product_seconds", "fraction_of_products", "flop",
    ),
    "training": (
        "trainer", "threads", "n_images", "n_visible", "n_hidden", "batch_size", "dtype", "rounds", "seconds",
        "product_seconds",
    ),
    "split": (
        "section", "layer", "n", "n_images", "threads", "rounds", "optimizer_seconds", "optimizer_low",
        "optimizer_high", "objective_seconds", "objective_low", "objective_high",
    ),
}  # fmt: skip
"""Of the tables: seconds are those of a population, of an epoch, and of a generation, this one's with quartiles."""

WEIGHT_STD = 0.1  # of random networks, the studies' own
_REST = 0.1  # seconds: threads of BLAS look for more work for some 30 ms after their last, and so take it from the next
_FLOP = 2e11  # from which on a population is large


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
    """Measure the reconstruction error of a population on random float32 images, and its matrix products alone.

    The products of each individual are all images in one, on as many BLAS threads. Of a large network only four
    individuals are computed, and the seconds scaled to the population.
    """
    V, X = _random(n_images, n_visible), _population(n_visible, n_hidden)
    flop = 4 * n_visible * n_hidden * n_images
    if flop * POPULATION_SIZE >= _FLOP:
        X = X[:4]
    error = ReconstructionObjective(V, n_hidden, backend=backend, precision=precision, n_threads=threads)
    H, V_hat = np.empty((n_images, n_hidden), V.dtype), np.empty_like(V)

    def products() -> None:
        for theta in X:
            W = RBMParameters.from_flat(theta, n_visible, n_hidden).W
            np.matmul(V, W, out=H)
            np.matmul(H, W.T, out=V_hat)

    timed = alternate({"own": clocked(lambda: error(X)), "product": clocked(products)}, rounds, rest=_REST)
    own, product = (timed[name] * POPULATION_SIZE / len(X) for name in ("own", "product"))
    return [
        {
            "device": error.computation.device,
            "seconds": median(own),
            "product_seconds": median(product),
            "fraction_of_products": median(product / own),
            "flop": flop * POPULATION_SIZE,
        }
    ]


def _random(n_images: int, n_visible: int) -> Array:
    return np.random.default_rng(0).random((n_images, n_visible), dtype=np.float32)


def _population(n_visible: int, n_hidden: int) -> Array:
    """Return random networks in float32, one a row."""
    shape = POPULATION_SIZE, n_parameters(n_visible, n_hidden)
    return np.float32(WEIGHT_STD) * np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


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
    timed = {work: median(seconds) for work, seconds in alternate(works, rounds, rest=_REST).items()}
    return [
        {"trainer": trainer, "threads": count, "seconds": seconds, "product_seconds": timed["products", count]}
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


def split(n_visible: int, n_hidden: int, n_images: int, threads: int, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Measure a generation of LEA-MVD on one layer of an experiment, float32: the optimizer, and its objective.

    Images and networks are random: neither cost depends on what they show.
    """
    x0 = _population(n_visible, n_hidden)[0]
    error = ReconstructionObjective(_random(n_images, n_visible), n_hidden, n_threads=threads)
    search = ask_and_tell(LEAMVD(x0, seed=0, dtype="float32"), Objective(error))
    timed = alternate({"optimizer": search.generation, "objective": lambda: search.objective.seconds}, rounds)
    return [{"n": len(x0)} | quartiles("optimizer", timed["optimizer"]) | quartiles("objective", timed["objective"])]


# ---- which cases

_SECTIONS = {"quick": ("mnist-7x7",), "paper": ("mnist-28x28", "mnist-7x7")}
_LAYERS = {"quick": 1, "paper": None}  # the first ones, or all
_IMAGES = {"quick": 1_000, "paper": 10_000}
_TRAINED = {"quick": (2_000, 64, 50), "paper": (60_000, 784, 500)}  # compared with scikit-learn


def layers(section: str) -> list[tuple[int, int]]:
    """Return visible and hidden units of an experiment's layers."""
    from leamvd.studies import catalog  # takes long to import, and a case's process needs none

    return list(itertools.pairwise(catalog.study(section, "paper").units))


def cases(profile: str) -> list[Case]:
    """Return what is measured: "quick" in seconds on a small network, "paper" on the paper's.

    The objective is measured by NumPy, on one thread and on two, and in its first shape by PyTorch where that is
    installed; a trainer on each layer, and on one as scikit-learn's; a generation of each layer, on all threads.
    """
    cores, n_images = thread_count(None), _IMAGES[profile]
    some = 1 if profile == "quick" else min(2, cores)
    numpy = [("numpy", "float32", count) for count in sorted({1, some})]
    has_torch = profile == "paper" and importlib.util.find_spec("torch") is not None
    torch = [("torch", precision, some) for precision in ("float32", "bfloat16") if has_torch]
    found: list[Case] = []
    trained = [_TRAINED[profile]]
    for section in _SECTIONS[profile]:
        for layer, (v, h) in enumerate(layers(section)[: _LAYERS[profile]], start=1):
            shape = {"n_visible": v, "n_hidden": h, "n_images": n_images}
            for backend, precision, count in numpy + torch * (not found):
                how = {"backend": backend, "precision": precision, "threads": count}
                found.append(_case("objectives", shape | how))
            found.append(_case("split", shape | {"threads": cores}, section=section, layer=layer))
            if (v, h) != _TRAINED[profile][1:]:
                trained.append((n_images, v, h))
    for n, v, h in trained:
        shape = {"n_images": n, "n_visible": v, "n_hidden": h}
        found.append(_case("training", shape | {"batch_size": 100, "threads": some}))
    return found


def _case(table: str, arguments: dict[str, Any], **known: Any) -> Case:
    known |= {"dtype": "float32", "population_size": POPULATION_SIZE, "rounds": ROUNDS}
    return Case(table, f"{__name__}:{table}", arguments, known, arguments["threads"])
