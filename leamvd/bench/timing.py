"""Works timed in turn, round by round, so that whatever else the machine does falls on all of them alike."""

import math
import time
from collections.abc import Callable, Hashable, Mapping
from typing import TypeVar

import numpy as np

from leamvd._support.compile import Floats

ROUNDS = 7
"""Rounds of a measurement; its median and quartiles are recorded."""

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


def alternate(
    works: Mapping[_Name, Work], rounds: int = ROUNDS, *, at_least: float = 0.0, rest: float = 0.0
) -> dict[_Name, Floats]:
    """Time works in turn: in each round each of them once, or as often as it takes to fill some time.

    One round, the warm-up, goes before the `rounds` that count; a work's call in it tells how often it has to be
    repeated in each round to take `at_least` so many seconds. Before each work there is a `rest` of some seconds.

    Returns
    -------
    dict of ndarray, shape (rounds,)
        Seconds of one call, the mean of the round's calls.
    """
    calls = {name: max(1, math.ceil(at_least / max(work(), 1e-9))) for name, work in works.items()}
    seconds: dict[_Name, Floats] = {name: np.empty(rounds) for name in works}
    for i in range(rounds):
        for name, work in works.items():
            time.sleep(rest)
            seconds[name][i] = sum(work() for _ in range(calls[name])) / calls[name]
    return seconds


def median(seconds: Floats) -> float:
    """Return the median over the rounds."""
    return float(np.median(seconds))


def quartiles(seconds: Floats) -> tuple[float, float]:
    """Return the lower and the upper quartile over the rounds."""
    low, high = np.quantile(seconds, (0.25, 0.75)).tolist()
    return low, high


def paired_ratio(above: Floats, below: Floats) -> float:
    """Return the median over the rounds of the ratio of two works' seconds in the same round."""
    return float(np.median(above / below))
