"""Where the time of a generation goes: its two passes, and what the second one draws, each alone."""

from typing import Any

import numpy as np

from leamvd._support.compile import Floats, kernel
from leamvd.bench.baselines import POPULATION_SIZE, make
from leamvd.bench.cases import Case
from leamvd.bench.timing import ROUNDS, alternate, clocked, median
from leamvd.optimizers import directions, random_streams, sampling
from leamvd.optimizers.random_streams import TILE, Scratch
from leamvd.optimizers.sampling import Place

COLUMNS = {
    "parts": (
        "n", "dtype", "threads", "rounds", "generation_seconds", "first_pass_seconds", "second_pass_seconds",
        "words_seconds", "normals_seconds", "perturbation_seconds",
    ),
}  # fmt: skip
"""Of the table. The normals' seconds hold the words', and the second pass's those of normals and perturbation."""

N_ELITE = 4  # LEA-MVD's default


def measure(n: int, dtype: str, rounds: int = ROUNDS) -> list[dict[str, Any]]:
    """Measure a generation of LEA-MVD, and its parts alone on the same arrays, on the threads of this process.

    What is drawn goes into one tile again and again, so that drawing is all that is measured.
    """
    new, tiles = POPULATION_SIZE - N_ELITE, -(-n // TILE)
    X, real = np.ones((POPULATION_SIZE, n), dtype), np.dtype(dtype).type
    order, ir = np.arange(POPULATION_SIZE), np.arange(1, 5)
    weights, steps, none = np.full(POPULATION_SIZE, 1 / POPULATION_SIZE, dtype), np.zeros(new, dtype), real(0)
    vectors = directions.Vectors(*(np.ones(n, dtype) for _ in range(5)))
    combination = sampling.Combination(ir, steps[:4], none, real(0.1))
    shift, drawn = sampling.Shift(none, steps), np.zeros(1, np.int64)
    empty, place, scratch = np.empty(0, dtype), Place(np.uint64(0), 1, False, 0), random_streams.scratch(X)

    def second() -> None:
        sampling.regenerate(X, order, vectors, combination, shift, empty, empty, place, drawn)

    works = {
        "first_pass": lambda: directions.scan(X, order, weights, ir, vectors),
        "second_pass": second,
        "words": lambda: _words(scratch, new, tiles),
        "normals": lambda: _normals(scratch, new, tiles),
        "perturbation": lambda: _perturbation(X[0, :TILE].copy(), place, new, tiles),
    }
    clocks = {"generation": make("leamvd", n, dtype).generation} | {name: clocked(work) for name, work in works.items()}
    timed = alternate(clocks, rounds)
    return [{f"{name}_seconds": median(seconds) for name, seconds in timed.items()}]


@kernel()
def _words(s: Scratch, rows: int, tiles: int) -> None:
    for tile in range(tiles):
        for row in range(rows):
            random_streams.tile_words(np.uint64(0), random_streams.NORMAL, 1, row, tile, s.lanes)


@kernel()
def _normals(s: Scratch, rows: int, tiles: int) -> None:
    for tile in range(tiles):
        for row in range(rows):
            random_streams.normal_tile(np.uint64(0), random_streams.NORMAL, 1, row, tile, s)


@kernel()
def _perturbation(x: Floats, place: Place, rows: int, tiles: int) -> None:
    hits = sampling.perturbation()
    for tile in range(tiles):
        for row in range(rows):
            sampling.perturb(x, place, row, tile, hits)


SIZES = {"quick": 10_000, "paper": 1_000_000}
"""Number of variables, by profile."""


def cases(profile: str) -> list[Case]:
    """Return what is measured, on one thread."""
    arguments = [{"n": SIZES[profile], "dtype": dtype} for dtype in ("float32", "float64")]
    return [Case("parts", f"{__name__}:measure", own, {"rounds": ROUNDS}) for own in arguments]
