"""What units will cost before they are computed: time, by a calibration of this machine for them; memory and disk.

A unit is taken apart into what it repeats: an evaluation of the objective, a generation of the optimizer without it, an
epoch, the recorded errors, the features of the layers below. Each is timed at the unit's own sizes, but on as few
images as it takes to time them, and where the cost is proportional to the number of variables on no more of these than
fill the processor's caches.
"""

import contextlib
import dataclasses
import functools
import heapq
import itertools
import os
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numba
import numpy as np
import psutil

from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread, thread_count
from leamvd.networks.dbn import Training, train
from leamvd.networks.objective import BLOCK_SIZE, ReconstructionObjective, reconstruction_errors
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.optimizers.cma_es import SQUARE_MATRICES
from leamvd.optimizers.reading import Reading
from leamvd.paper.campaign import SLICE
from leamvd.paper.classification import BATCH_SIZE, FineTuning, Likelihood, StackTask, fine_tune, on_top, probe
from leamvd.paper.datasets import Dataset
from leamvd.paper.likelihood import log_weights
from leamvd.paper.pieces import Piece
from leamvd.paper.tasks import AnyTask
from leamvd.paper.units import Task

_ENOUGH = 0.08
"""Seconds of work that are taken for a measurement; less is repeated, or tried with more images."""

_POPULATION_BYTES = 2**25
"""Of a population that no cache holds: the cost of a larger one is proportional."""

_MATRIX, _DECOMPOSED = 2000, 1000
"""Variables of the largest covariance matrices that are timed in a generation, and when they are decomposed."""

_FREE = ("sigma0", "x0", "x0_epochs", "x0_limit", "initial_weights", "weight_scale", "learning_rate")
"""Settings on which no time depends that is measured: methods that differ in these alone are timed once."""

_START = 2.5
"""Seconds until processes, where there are several, have imported what they need, on a processor of 2024."""

_IMPROVING = 0.5
"""Part of the generations taken to find a new best, after which errors are recorded anew."""

_CLASSES = 10
"""Of the images that a probe and a fine-tuned network are timed with."""

_ROW_BYTES, _MANIFEST_BYTES = 300, 3000
"""Of a line of records, and of a unit's manifest."""


class Estimate(NamedTuple):
    """What it takes to compute units."""

    seconds: dict[Piece, float]  # of each, alone in its process
    total: float  # seconds of all, on so many processes
    memory: int  # bytes, at the peak
    disk: int  # bytes

    def share(self, unit: Piece) -> float:
        """Return the unit's part of the total, so that those of all units are the total."""
        return self.seconds.get(unit, 0.0) * self.total / (sum(self.seconds.values()) or 1.0)


def estimate(tasks: Mapping[Piece, AnyTask], stored: set[Piece], data: Dataset, *, jobs: int | None = None) -> Estimate:
    """Return what it takes to compute those of the units that are not stored; it takes ten seconds itself, at most.

    Parameters
    ----------
    tasks : mapping of Piece to AnyTask
        Of a study.
    stored : set of Piece
        What need not be computed.
    data : Dataset
        Images.
    jobs : int, optional
        Processes that share the threads of this machine; by default, as in `leamvd.paper.workers.start`.
    """
    jobs = thread_count(None) if jobs is None else jobs
    seconds: dict[Piece, float] = {}
    bare = psutil.Process().memory_info().rss  # before anything is timed
    with _threads(max(1, thread_count(None) // jobs)):
        left = {unit: task for unit, task in tasks.items() if unit not in stored}
        _begin({task.method: task for task in left.values() if isinstance(task, Task)}, data)
        for unit, task in left.items():
            given = _sizes(unit, tasks, data), len(data.train), len(data.test)
            seconds[unit] = _unit(task, *given) if isinstance(task, Task) else _measurement(task, *given)
    shapes = {unit: _sizes(unit, tasks, data) for unit in seconds}
    memory = max((bare + _memory(tasks[unit], shapes[unit], data) for unit in seconds), default=0)
    disk = sum(_disk(tasks[unit], shapes[unit], took) for unit, took in seconds.items())
    return Estimate(seconds, _span(seconds, jobs), min(jobs, len(seconds)) * memory, disk)


def _span(seconds: Mapping[Piece, float], jobs: int) -> float:
    """Return the time on so many processes, each of which takes the next unit whose layers below are done."""
    units, ends = list(seconds), dict[Piece, float]()
    below = [[lower for lower in unit.below if lower in seconds] for unit in units]
    above: dict[Piece, list[int]] = {unit: [] for unit in units}
    for i, lower in enumerate(below):
        for unit in lower:
            above[unit].append(i)
    free, ready = [_START * (jobs > 1)] * jobs, list[int]()
    later = [(0.0, i) for i, lower in enumerate(below) if not lower]  # when the layers below of a unit are done
    while later or ready:
        now = heapq.heappop(free)
        while later and later[0][0] <= now:
            heapq.heappush(ready, heapq.heappop(later)[1])
        start, at = (now, heapq.heappop(ready)) if ready else heapq.heappop(later)
        ends[units[at]] = start + seconds[units[at]]
        heapq.heappush(free, ends[units[at]])
        for i in above[units[at]]:
            if all(lower in ends for lower in below[i]):
                heapq.heappush(later, (max(ends[lower] for lower in below[i]), i))
    return max(ends.values(), default=0.0)


def _sizes(unit: Piece, tasks: Mapping[Piece, AnyTask], data: Dataset) -> list[int]:
    """Return the numbers of units of the layers from the images to this one, or of the stack that is measured."""
    task = tasks[unit]
    below = [lower.n_hidden for lower in map(tasks.__getitem__, unit.below) if isinstance(lower, Task)]
    if isinstance(task, Task):
        return [data.side**2, *below, task.n_hidden]
    return list(task.random.sizes) if task.random else [data.side**2, *below]


# ---- counting


def _unit(task: Task, sizes: list[int], n_train: int, n_test: int) -> float:
    """Return the seconds of a unit: what `leamvd.paper.units.advance` does, counted."""
    n_gen, shape, dtype = task.reading.n_gen, (sizes[-2], sizes[-1]), task.training.dtype
    given, usual = task.training, Training()
    training = dataclasses.replace(given, **{name: getattr(usual, name) for name in _FREE})
    if task.reading.limits != "first":
        training = dataclasses.replace(training, x0=given.x0)  # every point is kept in the box that "none" draws in
    below = sum(_features(pair, dtype, n_train + n_test) for pair in itertools.pairwise(sizes[:-1]))
    errors = _errors(shape, dtype, n_train) + _errors(shape, dtype, n_test)
    if task.method == "cd":
        return below + n_gen * _epoch(shape, training, n_train) + (n_gen + 1) * errors
    epochs = {"epochs": float(given.x0_epochs), "batch": given.batch_size / n_train, "none": 0.0}[given.x0]
    work = below + epochs * _epoch(shape, training, n_train) + (1 + _IMPROVING * n_gen) * errors
    asking = generation(task.method, n_parameters(*shape), training, task.reading)
    first, later = asking.candidates
    evaluations = first + (n_gen - 1) * later
    work += evaluations * _evaluation(shape, training, task.reading.population_size, n_train)
    asked = asking.start + n_gen * asking.seconds + asking.decompositions(n_gen) * asking.decomposition
    again = work // SLICE * asked / 2  # one that goes on from a checkpoint draws its candidates again
    return work + asked + again


def _measurement(task: StackTask, sizes: list[int], n_train: int, n_test: int) -> float:
    """Return the seconds of a measurement: what `leamvd.paper.classification.StackTask.advance` does, counted."""
    dtype = task.random.dtype if task.random else "float32"
    if isinstance(task, Likelihood):
        return task.iterations * task.n_temperatures * _temperature((sizes[0], sizes[1]), task.n_chains)
    features = [_features(pair, dtype, n_train + n_test) for pair in itertools.pairwise(sizes)]
    if isinstance(task, FineTuning):
        return task.iterations * (_backpropagation(tuple(sizes), dtype, n_train) + sum(features) * n_test / n_train)
    return sum(itertools.accumulate(features)) + sum(_probe(n, dtype, n_train) for n in sizes)


def _memory(task: AnyTask, sizes: list[int], data: Dataset) -> int:
    """Return the bytes of the arrays that exist at once in a process that computes the unit."""
    if not isinstance(task, Task):  # images; features, the same standardized, and those of the layer below
        return data.train.itemsize * (len(data.train) + len(data.test)) * (sizes[0] + 3 * max(sizes[1:]))
    item, images, (n_visible, n_hidden) = np.dtype(task.training.dtype).itemsize, len(data.train), sizes[-2:]
    n, population = n_parameters(n_visible, n_hidden), task.reading.population_size
    given = item * (images + len(data.test)) * (sizes[0] + (n_visible if task.layer > 1 else 0))
    given += 2 * 8 * BLOCK_SIZE * (n_visible + n_hidden)  # scratch
    deviations = 8 * images * n_visible  # for the standard deviation of the inputs, before training
    if task.method == "cd":
        return given + max(deviations, 5 * n * item)
    wide = 3 * 8 if "cma" in task.method else item
    trained = item * images * n_visible + population * n * (wide + item)  # blocks of images; what is asked, and told
    return given + max(deviations, trained + (SQUARE_MATRICES * 8 * n**2 if task.method == "cma-es" else 0))


def _disk(task: AnyTask, sizes: list[int], seconds: float) -> int:
    """Return the bytes of a stored unit, and of its checkpoint while it is computed."""
    if not isinstance(task, Task):
        network = 4 * sum(n_parameters(*pair) for pair in itertools.pairwise(sizes))
        return _ROW_BYTES * task.iterations + _MANIFEST_BYTES + (network if seconds > SLICE else 0)
    weights = n_parameters(sizes[-2], sizes[-1]) * np.dtype(task.training.dtype).itemsize
    kept = weights + _ROW_BYTES * (task.reading.n_gen + 1) + _MANIFEST_BYTES
    return kept + (3 * weights if seconds > SLICE else 0)


# ---- timing


@contextlib.contextmanager
def _threads(n_threads: int) -> Iterator[None]:
    """Time with as many threads as each process has; what was timed for another number is forgotten."""
    variable, allowed = "LOKY_MAX_CPU_COUNT", numba.get_num_threads()
    before = os.environ.get(variable)
    os.environ[variable] = str(n_threads)  # what `joblib.cpu_count` goes by
    numba.set_num_threads(min(n_threads, allowed))
    for timed in (_features, _errors, _epoch, _evaluation, _backpropagation, _probe, _temperature, generation):
        timed.cache_clear()
    try:
        yield
    finally:
        numba.set_num_threads(allowed)
        del os.environ[variable]
        if before is not None:
            os.environ[variable] = before


def _begin(tasks: Mapping[str, Task], data: Dataset) -> None:
    """Load, or compile, what the methods need, so that it is not timed."""
    for method, task in tasks.items():
        short = Reading(n_gen=2, population_size=task.reading.population_size)
        for step in train(method, data.train[:2], 2, training=task.training, reading=short):
            reconstruction_errors(step.rbm, data.train[:2], seed=0)


def _fastest(work: Callable[[], object]) -> float:
    """Return the seconds of the fastest of a few repetitions, of one where that takes long."""
    best, spent = float("inf"), 0.0
    for _ in range(5):
        start = time.perf_counter()
        work()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
        if spent >= _ENOUGH:
            break
    return best


def _on_images(prepare: Callable[[int], Callable[[], object]], step: int, total: int) -> float:
    """Return the seconds of what `prepare` returns for `total` images, timed with fewer: a multiple of `step`."""
    count = min(step, total)
    while (seconds := _fastest(prepare(count))) < _ENOUGH and count < total:
        count = min(4 * count, total)
    return seconds * total / count


def _images(count: int, n_visible: int, dtype: str) -> Array:
    return np.random.default_rng(0).random((count, n_visible), np.dtype(dtype).type)


def _rbm(shape: tuple[int, int], dtype: str) -> RBM:
    return RBM(*(np.full(s, 0.01, dtype) for s in (shape, shape[0], shape[1])))


@functools.cache
def _features(shape: tuple[int, int], dtype: str, n_images: int) -> float:
    rbm = _rbm(shape, dtype)

    def prepare(count: int) -> Callable[[], object]:
        V = _images(count, shape[0], dtype)
        return lambda: rbm.hidden_given_visible(V)

    return _on_images(prepare, BLOCK_SIZE, n_images)


@functools.cache
def _errors(shape: tuple[int, int], dtype: str, n_images: int) -> float:
    """Return the seconds of recording the errors on images, the mean of all images included."""
    rbm = _rbm(shape, dtype)

    def prepare(count: int) -> Callable[[], object]:
        V = _images(count, shape[0], dtype)
        return lambda: reconstruction_errors(rbm, V, seed=0)

    return _on_images(prepare, BLOCK_SIZE * thread_count(None), n_images)


@functools.cache
def _epoch(shape: tuple[int, int], training: Training, n_images: int) -> float:
    def prepare(count: int) -> Callable[[], object]:
        return training.contrastive_divergence(_images(count, shape[0], training.dtype), shape[1], seed=0).epoch

    return _on_images(prepare, 4 * training.batch_size, n_images)


@functools.cache
def _evaluation(shape: tuple[int, int], training: Training, population_size: int, n_images: int) -> float:
    """Return the seconds that an individual of a population takes on all images."""
    n_threads, own = thread_count(None), np.dtype(training.dtype)
    one = np.full(n_parameters(*shape), 0.01, own)

    def prepare(count: int, rows: int) -> Callable[[], object]:
        objective = ReconstructionObjective(
            _images(count, shape[0], training.dtype), shape[1],
            backend=training.backend, device=training.device, precision=training.precision,
        )  # fmt: skip
        X = np.tile(one, (rows, 1))
        return lambda: objective(X)

    few = min(n_threads, population_size)  # large layers: a row for each thread says enough
    step = min(BLOCK_SIZE * n_threads, n_images)
    seconds = _fastest(prepare(step, few))
    if seconds >= _ENOUGH:
        return seconds / few * n_images / step
    return _on_images(lambda count: prepare(count, population_size), step, n_images) / population_size


@functools.cache
def _backpropagation(sizes: tuple[int, ...], dtype: str, n_images: int) -> float:
    """Return the seconds of an epoch of fine-tuning."""
    network = on_top([_rbm(pair, dtype) for pair in itertools.pairwise(sizes)], _CLASSES)

    def prepare(count: int) -> Callable[[], object]:
        V, labels = _images(count, sizes[0], dtype), np.arange(count) % _CLASSES
        epochs = fine_tune(network, V, labels, epochs=10, learning_rate=0.1, seed=0)
        next(epochs)  # what comes before the first one takes longer than a few images
        return lambda: next(epochs)

    return _on_images(prepare, 4 * BATCH_SIZE, n_images)


@functools.cache
def _probe(n_features: int, dtype: str, n_images: int) -> float:
    def prepare(count: int) -> Callable[[], object]:
        V, labels = _images(count, n_features, dtype), np.arange(count) % _CLASSES
        return lambda: probe(V, labels, V[:_CLASSES], labels[:_CLASSES])

    return _on_images(prepare, BLOCK_SIZE, n_images)


@functools.cache
def _temperature(shape: tuple[int, int], n_chains: int) -> float:
    """Return the seconds of a temperature of annealed importance sampling."""
    rbm, base, few = _rbm(shape, "float64"), np.zeros(shape[0]), 20
    rng = np.random.default_rng(0)
    return _fastest(lambda: log_weights(rbm, base, n_chains=n_chains, n_temperatures=few, rng=rng)) / few


class Generation(NamedTuple):
    """What an optimizer does beside the evaluations."""

    start: float  # seconds until the first one can be asked for
    seconds: float  # of a generation
    candidates: tuple[int, int]  # of the first generation, of later ones
    gap: float = float("inf")  # generations between two decompositions of the covariance matrix
    decomposition: float = 0.0  # seconds

    def decompositions(self, n_gen: int) -> int:
        """Return how many there are in so many generations."""
        return int((n_gen - 1) // max(1.0, np.ceil(self.gap)))


@functools.cache
def generation(method: str, n: int, training: Training, reading: Reading) -> Generation:
    """Time what an optimizer of `n` variables does beside the evaluations."""
    full = method == "cma-es"
    few = min(n, _MATRIX if full else max(1, _POPULATION_BYTES // (8 * reading.population_size)))
    x0 = np.full(few, 0.01, training.dtype)
    opt: Any = training.optimizer(method, x0, reading=reading, seed=0)  # loads, or compiles, what it needs
    start = time.perf_counter()
    opt = training.optimizer(method, x0, reading=reading, seed=0)
    built = time.perf_counter() - start
    values = iter(np.random.default_rng(0).random((8, reading.population_size)))
    candidates = [opt.n_candidates]

    def once() -> None:
        X = opt.ask()
        opt.tell(X, next(values)[: len(X)])
        _ = opt.result.x

    for _ in range(2):  # they make arrays, and load kernels that small problems do not need
        once()
    candidates.append(opt.n_candidates)
    seconds = _fastest(once)
    if not full:
        return Generation(built * n / few, seconds * n / few, (candidates[0], candidates[1]))
    # pycma's gap is that of 1 / (c_1 + c_mu), which grows with n^2, over n
    gap = opt._es.sm.lazy_update_gap * n / few
    small = min(n, _DECOMPOSED)
    decomposition, matrix = _decomposition(small) * (n / small) ** 3, (n / few) ** 2
    return Generation(built * matrix, seconds * matrix, (candidates[0], candidates[1]), gap, decomposition)


def _decomposition(n: int) -> float:
    A = np.random.default_rng(0).standard_normal((n, n)) / n + np.eye(n)
    with one_blas_thread():
        return _fastest(lambda: np.linalg.eigh(A + A.T))
