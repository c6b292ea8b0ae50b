"""Works timed in turn, round by round, so that whatever else the machine does falls on all of them alike."""

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np

from leamvd._support.compile import Floats

ROUNDS = 7
"""Rounds of a measurement; its median and quartiles are recorded."""

FILL = 0.01
"""Seconds that a work takes in each round at least, by being repeated."""

Work = Callable[[], float]
"""Does some work once and returns the seconds that count."""

_Name = TypeVar("_Name", bound=Hashable)


def clocked(function: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> Work:
    """Return the work of calling `function`, all of whose seconds count."""

    def work() -> float:
        start = clock()
        function()
        return clock() - start

    return work


def alternate(works: Mapping[_Name, Work], rounds: int = ROUNDS, *, rest: float = 0.0) -> dict[_Name, Floats]:
    """Return the seconds of one call of each work in each round, in which the works take turns.

    One round, the warm-up, goes before the `rounds` that count; a work's call in it tells how often it is repeated in
    each round, whose mean is returned. Before each work there is a `rest` of some seconds.
    """
    calls = {name: max(1, math.ceil(FILL / max(work(), 1e-9))) for name, work in works.items()}
    seconds: dict[_Name, Floats] = {name: np.empty(rounds) for name in works}
    for i in range(rounds):
        for name, work in works.items():
            time.sleep(rest)
            seconds[name][i] = sum(work() for _ in range(calls[name])) / calls[name]
    return seconds


def median(seconds: Floats) -> float:
    """Return the median over the rounds."""
    return float(np.median(seconds))


def quartiles(name: str, seconds: Floats) -> dict[str, float]:
    """Return the columns of a work: the median over the rounds, the lower and the upper quartile."""
    low, middle, high = np.quantile(seconds, (0.25, 0.5, 0.75)).tolist()
    return {f"{name}_seconds": middle, f"{name}_low": low, f"{name}_high": high}
