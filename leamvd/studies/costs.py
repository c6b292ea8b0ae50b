"""How long jobs may take here, roughly: recorded seconds, scaled by one short product of matrices on this machine."""

import functools
import math
import time
from typing import NamedTuple

import numpy as np
import pandas as pd

from leamvd._support.threads import one_blas_thread
from leamvd.campaign import archive
from leamvd.campaign.jobs import Job
from leamvd.data.images import Dataset
from leamvd.experiments.layers import TrainLayer
from leamvd.experiments.methods import trainer_of
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers.cma_es import SQUARE_MATRICES

_RECORDED = ("mnist_7x7", "mnist_28x28", "mnist_28x28_variants")
_ERRORS = 4  # products of images and weights for the errors of an iteration


class Cost(NamedTuple):
    """What a job takes."""

    seconds: float  # NaN where nothing like it is recorded
    memory: int  # bytes of the arrays that exist at once


def cost(job: Job, data: Dataset | None) -> Cost:
    """Return what a job takes on one process, given what its campaign is given."""
    if not isinstance(job, TrainLayer) or data is None:
        return Cost(math.nan, 0)
    n_visible = job.below[-1].n_hidden if job.below else data.side**2
    n, images, training = n_parameters(n_visible, job.n_hidden), len(data.train), job.training
    item, population, n_gen = data.train.itemsize, job.reading.population_size, job.reading.n_gen
    memory = item * (images + len(data.test)) * (data.side**2 + n_visible) + 5 * n * item
    products = n_gen * training.epoch_products
    if job.trainer != "cd":
        kept = training.n_elite if job.trainer == "lea-mvd" and job.reading.elites == "keep" else 0
        products = training.x0_epochs * training.epoch_products + 2 * (n_gen * (population - kept) + kept)
        memory += population * n * 8 * (3 if "cma" in job.trainer else 1)
        memory += SQUARE_MATRICES * 8 * n**2 if job.trainer == "cma-es" else 0
    rate = _rate(job.trainer, training.backend, training.precision, n)
    return Cost(rate * _speed() * n * images * (products + _ERRORS * (n_gen + 1)), memory)


def _rate(trainer: str, backend: str, precision: str | None, n: int) -> float:
    """Return the recorded seconds of a product of an image and a weight by the layer nearest in size."""
    found = _rates()
    same = found[(found["trainer"] == trainer) & ((found["backend"] == backend) | (trainer == "cd"))]
    exact = same[same["precision"] == precision]
    rates = next((table for table in (exact, same, found[found["trainer"] == trainer]) if len(table)), found)
    nearest = (np.log(rates["n_var"]) - math.log(n)).abs().idxmin()
    return float(rates["rate"].loc[nearest])


@functools.cache
def _rates() -> pd.DataFrame:
    """Return the recorded seconds of a product of an image and a weight, by what computed it and number of weights."""
    tables = []
    for name in filter(archive.exists, _RECORDED):
        training, table = archive.provenance(name)["study"]["training"], archive.read(name)
        last = table[table["iteration"] == table["iteration"].max()]
        rate = last["seconds"] / (last["n_var"] * last["n_images"] * last["products"])
        about = {"trainer": last["method"].map(trainer_of), "rate": rate, "n_var": last["n_var"]}
        tables.append(pd.DataFrame(about).assign(backend=training["backend"], precision=training["precision"]))
    objectives = archive.read("linear_cost", "objectives")
    objectives = objectives[(objectives["threads"] == 1) & (objectives["status"] == "ok")]
    n_var = [n_parameters(v, h) for v, h in zip(objectives["n_visible"], objectives["n_hidden"], strict=True)]
    rate = objectives["seconds"] / (np.array(n_var) * objectives["n_images"] * 2 * objectives["population_size"])
    about = {"rate": rate, "n_var": n_var, "backend": objectives["backend"], "precision": objectives["precision"]}
    tables += [pd.DataFrame(about).assign(trainer=trainer) for trainer in ("lea-mvd", "random")]
    joined = pd.concat(tables, ignore_index=True)
    cells = joined.groupby(["trainer", "backend", "precision", "n_var"])["rate"].median()
    return cells.reset_index()


@functools.cache
def _speed() -> float:
    """Return the time of a short product of matrices here over its recorded time."""
    bench = archive.read("linear_cost", "objectives")
    then = bench[(bench["backend"] == "numpy") & (bench["dtype"] == "float32") & (bench["threads"] == 1)].iloc[0]
    A = np.ones((2_000, int(then["n_visible"])), np.float32)
    B = np.ones((int(then["n_visible"]), int(then["n_hidden"])), np.float32)
    times = []
    with one_blas_thread():
        for _ in range(5):
            start = time.perf_counter()
            A @ B
            times.append(time.perf_counter() - start)
    recorded = then["product_seconds"] / then["flop"]
    return float(min(times) / (2 * A.size * B.shape[1]) / recorded)
