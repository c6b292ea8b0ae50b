"""A generation of each optimizer in seconds and in bytes, and the seconds of drawing and copying as many numbers."""

import time
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import psutil

from leamvd._support import checks
from leamvd.bench import baselines
from leamvd.bench.baselines import POPULATION_SIZE
from leamvd.bench.cases import Case
from leamvd.bench.memory import peak_bytes
from leamvd.bench.timing import ROUNDS, Work, alternate, clocked, median, paired_ratio, quartiles
from leamvd.optimizers.cma_es import SQUARE_MATRICES

COLUMNS = {
    "optimizers": (
        "method", "package", "version", "dtype", "threads", "n", "population_size", "rounds", "status",
        "compile_seconds", "generation_seconds", "generation_low", "generation_high", "normal_seconds", "copy_seconds",
        "ratio_to_normal", "ratio_to_copy", "peak_bytes", "population_bytes",
    ),
}  # fmt: skip
"""Of the table. Seconds are those of one generation, its quartiles, and the references' of `measure`."""

_WARM = 1_000_000  # variables at most in the first generations, which compile: they need not be many
_REFERENCE_NUMBERS = 50_000_000  # far more than a cache holds; more would take no less a number
_FILL = 0.01  # seconds of one work in a round, at least


def measure(method: str, n: int, dtype: str, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Measure one method in this process, which should be a fresh one.

    The references are NumPy's generator filling an array of the population's shape and dtype with normal samples, on
    one thread, and a copy of such an array. For large n they have fewer rows, and their seconds are scaled: a whole one
    would take long, and two would not fit beside the largest population.
    """
    compile_seconds = _compile(method, min(n, _WARM), dtype)
    started: list[baselines.Search] = []

    def start() -> None:
        started.append(baselines.make(method, n, dtype))
        for _ in range(3):
            started[0].generation()

    peak = peak_bytes(start)
    references, scale = _references(n, dtype)
    seconds = alternate({"generation": started[0].generation} | references, rounds, at_least=_FILL)
    generation, normal, copy = seconds["generation"], scale * seconds["normal"], scale * seconds["copy"]
    low, high = quartiles(generation)
    return [
        {
            "compile_seconds": compile_seconds,
            "generation_seconds": median(generation),
            "generation_low": low,
            "generation_high": high,
            "normal_seconds": median(normal),
            "copy_seconds": median(copy),
            "ratio_to_normal": paired_ratio(generation, normal),
            "ratio_to_copy": paired_ratio(generation, copy),
            "peak_bytes": peak,
        }
    ]


def _compile(method: str, n: int, dtype: str) -> float:
    """Return the seconds by which making the optimizer and its first two generations exceed two later ones.

    The second generation is the first that the values of another precede, and runs code of its own.
    """
    start = time.perf_counter()
    search = baselines.make(method, n, dtype)
    search.generation()
    search.generation()
    first = time.perf_counter() - start
    later = search.generation()
    return max(0.0, first - 2 * later)


def _references(n: int, dtype: str) -> tuple[dict[str, Work], float]:
    """Return the works of drawing and of copying, and by what their seconds have to be multiplied."""
    rows = min(POPULATION_SIZE, max(2, _REFERENCE_NUMBERS // n))
    rng = np.random.default_rng(0)
    numbers, target = np.zeros((2, rows, n), dtype)

    def draw() -> None:
        rng.standard_normal(dtype=numbers.dtype.type, out=numbers)

    return {"normal": clocked(draw), "copy": clocked(lambda: np.copyto(target, numbers))}, POPULATION_SIZE / rows


# ---- which cases


OWN = {"quick": (1_000, 10_000), "paper": (1_000, 10_000, 100_000, 1_000_000, 10_000_000)}
BEYOND = {"quick": (), "paper": (100_000_000,)}
FULL = {"quick": (100, 300, 1_000), "paper": (100, 300, 1_000, 2_000, 4_000)}
OTHERS = {"quick": (1_000, 10_000), "paper": (1_000, 10_000, 100_000, 1_000_000)}
"""Numbers of variables: LEA-MVD's, those beyond its baselines', the full matrix's, everyone else's."""

THREADS = {"quick": (1,), "paper": (1, 2)}
"""Of LEA-MVD; all others have one."""

LARGE_ROUNDS = 5
_LARGE_BYTES = 14 * 2**30  # that the largest run takes
_REFUSALS = tuple(m * 10**k for k in (4, 5, 6) for m in (1, 2, 3, 5))  # where the full matrix is asked to refuse
_LIMIT, _LONG_LIMIT = 60.0, 300.0  # seconds; LEA-MVD's first case may compile its kernels, the full matrix decomposes


def cases(profile: str, methods: Sequence[str] | None = None, sizes: Sequence[int] | None = None) -> list[Case]:
    """Return what is measured: `methods` of `METHODS`, all by default, at `sizes`, by default the profile's.

    Methods whose package is not installed are left out.

    Raises
    ------
    ValueError, TypeError
        If there is no such profile or method, or a size is below 1.
    """
    checks.choice("profile", profile, tuple(OWN))
    for method in methods or ():
        checks.choice("methods", method, tuple(baselines.METHODS))
    for n in sizes or ():
        checks.integer("sizes", n, at_least=1)
    chosen = [method for method in methods or baselines.METHODS if baselines.version(method) is not None]
    return [case for method in chosen for case in _cases(method, profile, sizes)]


def _cases(method: str, profile: str, sizes: Sequence[int] | None) -> Iterator[Case]:
    dtypes = baselines.METHODS[method]
    if method == "leamvd":
        for dtype, n, threads in product(dtypes, sizes or OWN[profile], THREADS[profile]):
            yield _case(method, n, dtype, threads, limit=_LONG_LIMIT)
        if not sizes and psutil.virtual_memory().available >= _LARGE_BYTES:
            for n in BEYOND[profile]:
                yield _case(method, n, "float32", rounds=LARGE_ROUNDS, limit=_LONG_LIMIT)
    else:
        full = method == "pycma full"
        own = (*FULL[profile], _refusal()) if full else OTHERS[profile]
        for dtype, n in product(dtypes, sizes or own):
            yield _case(method, n, dtype, limit=_LONG_LIMIT if full else _LIMIT)


def _case(method: str, n: int, dtype: str, threads: int = 1, *, rounds: int = ROUNDS, limit: float = _LIMIT) -> Case:
    arguments = {"method": method, "n": n, "dtype": dtype, "rounds": rounds}
    known = {
        "package": baselines.package(method),
        "version": baselines.version(method),
        "population_size": POPULATION_SIZE,
        "population_bytes": POPULATION_SIZE * n * np.dtype(dtype).itemsize,
    }
    return Case("optimizers", f"{__name__}:measure", arguments, known, threads, limit)


def _refusal() -> int:
    """Return the first of `_REFUSALS` at which CMA-ES with a full matrix will refuse, however much memory is free."""
    total = psutil.virtual_memory().total
    return next(n for n in _REFUSALS if SQUARE_MATRICES * 8 * n**2 > total)
