"""The values of a generation's candidates, in their order: computed here, or by workers."""

import functools
import os
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from leamvd._support import checks, children, threads
from leamvd._support.compile import Floats

NAME = "fun's values"  # in messages


class Evaluation:
    """A function of one point, or of the rows of an array, as one of generations; `workers` as of
    `minimize`.
    """

    def __init__(
        self, fun: Callable[..., Any], args: tuple[Any, ...], *, vectorized: bool, workers: Any
    ) -> None:
        self._vectorized = vectorized
        self._call: Callable[[Floats], Any] = functools.partial(_call, fun, args)
        self._n_parts = threads.thread_count(None)  # of a generation, where rows are taken
        self._map: Callable[..., Iterable[Any]] = getattr(workers, "map", workers)
        if not callable(self._map):
            given = checks.integer("workers, if not a callable as map,", workers, at_least=-1)
            if given != -1:
                self._n_parts = checks.integer("workers", given, at_least=1)
            self._map = _in_turn
            if self._n_parts > 1:
                self._map = functools.partial(_in_processes, self._n_parts)

    def __call__(self, X: Any) -> Any:
        """Return the values (m,) of candidates (m, n); points are copies, rows
        are read-only views.
        """
        if not self._vectorized:
            returned = self._map(self._call, [x.copy() for x in X])
            values = [_number(_returned(value)) for value in returned]
            return checks.objective_values(NAME, values, len(X))
        parts = np.array_split(X, min(len(X), self._n_parts))
        returned = self._map(self._call, parts)
        told = []
        try:
            for part, F in zip(parts, returned, strict=True):
                told.append(checks.objective_values(NAME, _returned(F), len(part)))
        except ValueError as error:
            error.add_note(
                "a generation has a point in each row: for a function of columns give lambda X:"
                " fun(X.T)"
            )
            raise
        return np.concatenate(told)


class _Stopped(NamedTuple):
    """What `fun` has raised: a map, or a generator, would take it for its own end."""

    error: StopIteration


def _call(fun: Callable[..., Any], args: tuple[Any, ...], x: Floats) -> Any:
    try:
        return fun(x, *args)
    except StopIteration as error:
        return _Stopped(error)


def _returned(value: Any) -> Any:
    if isinstance(value, _Stopped):
        raise value.error
    return value


def _number(value: Any) -> float:
    """Return what `fun` has returned of one point, the element of an array that has one."""
    number = np.asanyarray(checks.detached(value))
    if number.size != 1 or np.ma.is_masked(number):
        told = "fun must return one number for each point, or take rows with vectorized=True, got"
        raise ValueError(f"{told} {checks.shown(value)}")
    return checks.objective_value(NAME, number.item())


def _in_turn(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [function(item) for item in items]


def _in_processes(n_jobs: int, function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    """Return the values by processes of joblib's, which take any function, but not arrays in shared
    memory.
    """
    from joblib import Parallel, delayed  # as late as this, since it takes a while to import

    parallel = Parallel(n_jobs, max_nbytes=None)
    parent = os.getpid()
    return list(parallel(delayed(_in_process)(parent, function, item) for item in items))


def _in_process(parent: int, function: Callable[[Any], Any], item: Any) -> Any:
    if os.getppid() == parent:
        # joblib's processes would stay for minutes when the one that asks is killed
        children.follow(parent)
    return function(item)
