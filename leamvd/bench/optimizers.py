"""What a generation of each optimizer costs, in seconds and in bytes, beside drawing and copying as many numbers."""

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import psutil

from leamvd._support import checks
from leamvd.bench import baselines
from leamvd.bench.baselines import POPULATION_SIZE
from leamvd.bench.jobs import Row
from leamvd.bench.memory import peak_bytes
from leamvd.bench.timing import ROUNDS, Work, alternate, clocked, paired_ratio, summary
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

    The references are NumPy's generator filling an array of the population's shape and dtype with normals, on one
    thread, and a copy of such an array. For large n they have fewer rows, and their seconds are scaled: a whole one
    would take long, and two would not fit beside the largest population.

    Parameters
    ----------
    method : str
        Of `leamvd.bench.baselines.METHODS`.
    n : int
        Number of variables.
    dtype : {"float32", "float64"}
        One of the method's.
    rounds : int
        In which generation and references take turns.

    Returns
    -------
    list of one dict
        The columns that are measured.
    """
    compile_seconds = _compile(method, min(n, _WARM), dtype)
    started: list[baselines.Peer] = []

    def start() -> None:
        started.append(baselines.make(method, n, dtype))
        for _ in range(3):
            started[0].generation()

    peak = peak_bytes(start)
    references, scale = _references(n, dtype)
    seconds = alternate({"generation": started[0].generation} | references, rounds, at_least=_FILL)
    generation, normal, copy = seconds["generation"], scale * seconds["normal"], scale * seconds["copy"]
    median, low, high = summary(generation)
    return [
        {
            "compile_seconds": compile_seconds,
            "generation_seconds": median,
            "generation_low": low,
            "generation_high": high,
            "normal_seconds": summary(normal).median,
            "copy_seconds": summary(copy).median,
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
    peer = baselines.make(method, n, dtype)
    peer.generation()
    peer.generation()
    first = time.perf_counter() - start
    later = peer.generation()
    peer.close()
    return max(0.0, first - 2 * later)


def _references(n: int, dtype: str) -> tuple[dict[str, Work], float]:
    """Return the works of drawing and of copying, and by what their seconds have to be multiplied."""
    rows = min(POPULATION_SIZE, max(2, _REFERENCE_NUMBERS // n))
    rng = np.random.default_rng(0)
    numbers, target = np.zeros((2, rows, n), dtype)

    def draw() -> None:
        rng.standard_normal(dtype=numbers.dtype.type, out=numbers)

    return {"normal": clocked(draw), "copy": clocked(lambda: np.copyto(target, numbers))}, POPULATION_SIZE / rows


# ---- which rows


class Profile(NamedTuple):
    """Numbers of variables of the table: LEA-MVD's by dtype, the full matrix's, everyone else's."""

    own: tuple[int, ...]
    large: tuple[int, ...]  # LEA-MVD's beyond its baselines', with less than `ROUNDS` rounds
    full: tuple[int, ...]
    others: tuple[int, ...]
    threads: tuple[int, ...]


PROFILES = {
    "quick": Profile((1_000, 10_000), (), (100, 300, 1_000), (1_000, 10_000), (1,)),
    "paper": Profile(
        (1_000, 10_000, 100_000, 1_000_000, 10_000_000),
        (100_000_000,),
        (100, 300, 1_000, 2_000, 4_000),
        (1_000, 10_000, 100_000, 1_000_000),
        (1, 2),
    ),
}

LARGE_ROUNDS = 5
_LARGE_BYTES = 14 * 2**30  # that the largest run takes
_REFUSALS = tuple(m * 10**k for k in (4, 5, 6) for m in (1, 2, 3, 5))  # where the full matrix is asked to refuse
_LIMIT, _OWN_LIMIT = 60.0, 300.0  # seconds; LEA-MVD's first row may have to compile its kernels


def rows(profile: str, methods: Sequence[str] | None = None, sizes: Sequence[int] | None = None) -> list[Row]:
    """Return what is measured.

    Parameters
    ----------
    profile : {"quick", "paper"}
        A few sizes in seconds, or all.
    methods : sequence of str, optional
        Of `leamvd.bench.baselines.METHODS`; by default all. Those whose package is not installed are left out.
    sizes : sequence of int, optional
        Numbers of variables; by default the profile's.

    Raises
    ------
    ValueError, TypeError
        If there is no such profile or method, or a size is below 1.
    """
    checks.choice("profile", profile, tuple(PROFILES))
    for method in methods or ():
        checks.choice("methods", method, tuple(baselines.METHODS))
    for n in sizes or ():
        checks.integer("sizes", n, at_least=1)
    chosen = [method for method in methods or baselines.METHODS if baselines.version(method) is not None]
    return [row for method in chosen for row in _rows(method, PROFILES[profile], sizes)]


def _rows(method: str, profile: Profile, sizes: Sequence[int] | None) -> Iterator[Row]:
    if method == "leamvd":
        for dtype, n, threads in itertools.product(baselines.METHODS[method], sizes or profile.own, profile.threads):
            yield _row(method, n, dtype, threads, limit=_OWN_LIMIT)
        if not sizes and psutil.virtual_memory().available >= _LARGE_BYTES:
            for n in profile.large:
                yield _row(method, n, "float32", rounds=LARGE_ROUNDS, limit=_OWN_LIMIT)
    elif method == "pycma full":
        for n in sizes or (*profile.full, _refusal()):
            yield _row(method, n, "float64")
    else:
        for dtype, n in itertools.product(baselines.METHODS[method], sizes or profile.others):
            yield _row(method, n, dtype)


def _row(method: str, n: int, dtype: str, threads: int = 1, *, rounds: int = ROUNDS, limit: float = _LIMIT) -> Row:
    arguments = {"method": method, "n": n, "dtype": dtype, "rounds": rounds}
    known = {
        "package": baselines.package(method),
        "version": baselines.version(method),
        "population_size": POPULATION_SIZE,
        "population_bytes": POPULATION_SIZE * n * np.dtype(dtype).itemsize,
    }
    return Row("optimizers", f"{__name__}:measure", arguments, known, threads, limit)


def _refusal() -> int:
    """Return the first number of variables of a grid at which CMA-ES with a full matrix will refuse."""
    available = psutil.virtual_memory().available
    return next(n for n in _REFUSALS if SQUARE_MATRICES * 8 * n**2 > available)
