"""A generation of each optimizer in seconds and in bytes, and the seconds of drawing as many normal samples."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import psutil

from leamvd._support import checks
from leamvd.bench import baselines
from leamvd.bench.baselines import POPULATION_SIZE
from leamvd.bench.cases import Case
from leamvd.bench.memory import peak_bytes
from leamvd.bench.timing import ROUNDS, Work, alternate, clocked, median, quartiles
from leamvd.optimizers.cma_es import SQUARE_MATRICES

COLUMNS = {
    "optimizers": (
        "method", "package", "version", "dtype", "threads", "n", "population_size", "rounds", "status",
        "generation_seconds", "generation_low", "generation_high", "normal_seconds", "ratio_to_normal", "peak_bytes",
        "population_bytes",
    ),
}  # fmt: skip
"""Of the table. Seconds are those of one generation, with its quartiles, and the reference's of `measure`."""

_WARM = 1_000_000  # variables at most in the first generations, which compile: they need not be many
_REFERENCE_NUMBERS = 50_000_000  # far more than a cache holds; more would take no less a number


def measure(method: str, n: int, dtype: str, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Measure one method in this process, which should be a fresh one.

    The reference is NumPy's generator, which fills an array of the population's shape and dtype with normal samples on
    one thread. For large n it has fewer rows, and its seconds are scaled: a whole one would take long, and would not
    fit beside the largest population.
    """
    _three_generations(method, min(n, _WARM), dtype)
    started: list[baselines.Search] = []
    peak = peak_bytes(lambda: started.append(_three_generations(method, n, dtype)))
    draw, scale = _reference(n, dtype)
    seconds = alternate({"generation": started[0].generation, "normal": draw}, rounds)
    generation, normal = seconds["generation"], scale * seconds["normal"]
    return [
        quartiles("generation", generation)
        | {"normal_seconds": median(normal), "ratio_to_normal": median(generation / normal), "peak_bytes": peak}
    ]


def _three_generations(method: str, n: int, dtype: str) -> baselines.Search:
    search = baselines.make(method, n, dtype)
    for _ in range(3):
        search.generation()
    return search


def _reference(n: int, dtype: str) -> tuple[Work, float]:
    """Return the work of drawing, and by what its seconds have to be multiplied."""
    rows = min(POPULATION_SIZE, max(2, _REFERENCE_NUMBERS // n))
    rng, numbers = np.random.default_rng(0), np.zeros((rows, n), dtype)
    return clocked(lambda: rng.standard_normal(dtype=numbers.dtype.type, out=numbers)), POPULATION_SIZE / rows


# ---- which cases


SIZES: dict[str, dict[str, tuple[int, ...]]] = {
    "quick": {"pycma full": (100, 300, 1_000), "others": (1_000, 10_000)},
    "paper": {
        "leamvd": (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        "pycma full": (100, 300, 1_000, 2_000, 4_000),
        "others": (1_000, 10_000, 100_000, 1_000_000),
    },
}
"""Numbers of variables by profile and method."""

BEYOND, BEYOND_BYTES = 100_000_000, 14 * 2**30
"""Variables of LEA-MVD's largest case, and the memory without which it is left out."""


def cases(profile: str, methods: Sequence[str] | None = None, sizes: Sequence[int] | None = None) -> list[Case]:
    """Return what is measured: `methods`, all by default, at `sizes`, by default the profile's.

    Methods whose package is not installed are left out. LEA-MVD is measured on two threads as well.
    """
    checks.choice("profile", profile, tuple(SIZES))
    for method in methods or ():
        checks.choice("methods", method, tuple(baselines.METHODS))
    for n in sizes or ():
        checks.integer("sizes", n, at_least=1)
    found = []
    for method in methods or baselines.METHODS:
        if baselines.version(method) is None:
            continue
        own = sizes or SIZES[profile].get(method, SIZES[profile]["others"])
        most = method == "leamvd" and profile == "paper"
        threads = (1, 2) if most else (1,)
        found += [_case(method, *each) for each in product(baselines.METHODS[method], own, threads)]
        if most and not sizes and psutil.virtual_memory().available >= BEYOND_BYTES:
            found.append(_case(method, "float32", BEYOND))
        if method == "pycma full" and not sizes:
            found.append(_case(method, "float64", _refusal()))
    return found


def _case(method: str, dtype: str, n: int, threads: int = 1) -> Case:
    known = {
        "package": method.split()[0],
        "version": baselines.version(method),
        "rounds": ROUNDS,
        "population_size": POPULATION_SIZE,
        "population_bytes": POPULATION_SIZE * n * np.dtype(dtype).itemsize,
    }
    arguments = {"method": method, "n": n, "dtype": dtype}
    return Case("optimizers", f"{__name__}:measure", arguments, known, threads)


def _refusal() -> int:
    """Return the first round number at which CMA-ES with a full matrix will refuse, however much memory is free."""
    n = math.sqrt(psutil.virtual_memory().total / (8 * SQUARE_MATRICES))
    step = int(10 ** math.floor(math.log10(n)))
    return math.ceil(n / step) * step
