"""What optimizers need for themselves on the layers of a study: memory, time, decompositions of CMA-ES's matrix."""

import time
import tracemalloc
from itertools import pairwise

import numpy as np
import pandas as pd

from leamvd.experiments.studies import Study
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers.cma_es import CMAES


def variables(study: Study) -> list[int]:
    """Return the number of variables of each layer."""
    return [n_parameters(v, h) for v, h in pairwise([study.side**2, *study.layers])]


def peaks(study: Study) -> pd.DataFrame:
    """Return what three generations of each optimizer need on each layer, the objective excluded.

    The peak is that of NumPy's memory (tracemalloc), in MB and in populations of float64 (population_size n 8 bytes);
    the milliseconds are those of the fastest generation.
    """
    rows = []
    for layer, n in enumerate(variables(study), start=1):
        for method in study.methods:
            if method.partition(":")[0] == "cd":
                continue
            tracemalloc.start()
            try:
                _generations(study, method, n)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            seconds = min(_generations(study, method, n))  # untraced
            population = 8 * n * study.reading.population_size
            rows.append((layer, method, n, peak / 1e6, peak / population, 1e3 * seconds))
    columns = ["layer", "method", "variables", "peak MB", "peak / float64 population", "ms a generation"]
    return pd.DataFrame(rows, columns=columns)


def decompositions(study: Study) -> pd.DataFrame:
    """Return how often CMA-ES can decompose its covariance matrix within the study's generations.

    pycma samples from the last decomposition, and makes a new one only after 1 / (10 n (c_1 + c_mu)) generations: until
    the first one it samples from a sphere, whatever the matrix has learned.
    The gap is the number of generations from one decomposition to the next.
    """
    rows = []
    for layer, n in enumerate(variables(study), start=1):
        gap = CMAES(np.zeros(n), population_size=study.reading.population_size, seed=0).decomposition_gap
        rows.append((layer, n, gap, (study.reading.n_gen - 1) // gap))
    return pd.DataFrame(rows, columns=["layer", "variables", "gap", "decompositions"])


def _generations(study: Study, method: str, n: int) -> list[float]:
    """Return the seconds of each of three generations; the values do not depend on the candidates."""
    reading = study.reading_of(method)
    values = np.arange(reading.population_size, dtype=float)
    opt = study.training_of(method).optimizer(method.partition(":")[0], np.zeros(n), reading=reading, seed=0)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        X = opt.ask()
        opt.tell(X, values[: len(X)])
        seconds.append(time.perf_counter() - start)
    return seconds
