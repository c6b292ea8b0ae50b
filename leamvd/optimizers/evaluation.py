"""The values of a generation's candidates, in their order: computed here, or by workers."""

import contextlib
import functools
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Self

import numpy as np

from leamvd._support import checks, executors, threads
from leamvd._support.children import follow_parent
from leamvd._support.compile import Array, Floats

NAME = "fun's values"
"""The name of the values in messages."""

_TURN = "generations are rows, so transpose them for what takes columns, lambda X: fun(X.T)"


class Evaluation:
    """A function of one point, or of the rows of an array, as one of generations; a context.

    Processes that it starts are new ones ("spawn"): forked ones would have copies of this process's locks, but not the
    threads that are to release them. They end with the context, at once where it is left by an error or by Ctrl-C, and
    when this process is killed. An executor, which has `submit` or `map`, is left open.
    """

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...], *, vectorized: bool, workers: Any) -> None:
        self._vectorized = vectorized
        self._fun = fun
        self._call: Callable[[Floats], Any] = functools.partial(_rows if vectorized else _point, fun, args)
        self._map: Callable[..., Iterable[Any]] = _here
        self._pool: ProcessPoolExecutor | None = None
        self._n_parts: int | None = 1  # of a generation, where rows are taken; None: one a row
        self._sent = b""
        if hasattr(workers, "submit") or hasattr(workers, "map"):
            self._map = functools.partial(_in_order, workers.submit) if hasattr(workers, "submit") else workers.map
            self._n_parts = executors.size(workers)
            if isinstance(workers, ProcessPoolExecutor):
                _pickled(self._call)
        elif (n_processes := _process_count(workers)) > 1:
            self._n_parts = n_processes
            self._sent = _pickled(self._call)

    def __enter__(self) -> Self:
        if self._sent:
            self._pool = ProcessPoolExecutor(
                self._n_parts,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=_begin,
                initargs=(os.getpid(), self._sent),
            )
            try:
                self._pool.submit(_load).result()
            except BaseException as error:
                self.__exit__(type(error))
                if isinstance(error, Exception):
                    raise TypeError(
                        "fun must be a function that new processes can import: one of a module, or of a script that "
                        f"starts its work below `if __name__ == '__main__':`, got {checks.shown(self._fun)}"
                    ) from error
                raise
            self._call, self._map = _call_sent, functools.partial(_in_order, self._pool.submit)
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if self._pool is not None:
            if error is not None:
                executors.terminate(self._pool)
            self._pool.shutdown(cancel_futures=True)

    def __call__(self, X: Floats) -> Array:
        """Return the values (m,) of candidates (m, n); points are copies, rows are read-only views."""
        if not self._vectorized:
            values = [_number(value) for value in self._map(self._call, [x.copy() for x in X])]
            return checks.objective_values(NAME, values, len(X))
        parts = np.array_split(X, min(len(X), self._n_parts or len(X)))
        found = self._map(self._call, parts)
        told = [checks.objective_values(NAME, values, len(part)) for part, values in zip(parts, found, strict=True)]
        return np.concatenate(told)


def _point(fun: Callable[..., Any], args: tuple[Any, ...], x: Floats) -> Any:
    return fun(x, *args)


def _rows(fun: Callable[..., Any], args: tuple[Any, ...], X: Floats) -> Any:
    """Return what `fun` says of rows X (m, n); a ValueError where it takes columns, as scipy's vectorized functions."""
    m, n = X.shape
    try:
        values = fun(X, *args)
    except Exception as error:
        if _takes_columns(fun, args, X):
            raise ValueError(f"fun must take X of shape {X.shape}, one point a row, got an error: {_TURN}") from error
        raise
    if m != n and getattr(values, "shape", ()) == (n,):
        raise ValueError(f"{NAME} must have shape ({m},), one a row of X, got ({n},), one a column: {_TURN}")
    return values


def _takes_columns(fun: Callable[..., Any], args: tuple[Any, ...], X: Floats) -> bool:
    few = X[: 3 if X.shape[1] == 2 else 2]  # of another number than the variables
    with contextlib.suppress(Exception):
        return bool(np.shape(fun(few.T, *args)) == (len(few),))
    return False


def _number(value: Any) -> Any:
    """Return what `fun` has returned of one point, the element of an array that has one."""
    number = np.asanyarray(value)  # of PyTorch's too
    if value is None or number.size != 1:
        what = "None" if value is None else f"{number.size} numbers"
        raise ValueError(f"fun must return one number for each point, got {what}; where it takes rows: vectorized=True")
    if np.ma.is_masked(value):
        raise TypeError(f"{NAME} must not be masked, got {checks.shown(value)}")
    return number.item()


def _process_count(workers: object) -> int:
    if workers == -1:
        return threads.thread_count(None)
    try:
        return checks.integer("workers", workers, at_least=1)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "workers must be a number of processes, -1 for one a processor, or an executor, "
            f"got {checks.shown(workers)}"
        ) from None


def _pickled(call: functools.partial[Any]) -> bytes:
    try:
        return pickle.dumps(call)
    except Exception as error:
        raise TypeError(
            f"fun and args must be picklable where processes are the workers, got {checks.shown(call.args[0])}: {error}"
        ) from error


def _here(function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    return [function(item) for item in items]  # `map` would take a StopIteration that is raised for the items' end


def _in_order(submit: Callable[..., Any], function: Callable[[Any], Any], items: list[Any]) -> list[Any]:
    futures: list[Any] = []
    try:
        futures.extend(submit(function, item) for item in items)
        return [future.result() for future in futures]
    except BaseException:
        for future in futures:
            future.cancel()
        raise


# ---- in a process that has been started here

_sent = b""


def _begin(parent: int, sent: bytes) -> None:
    """Keep what is to be called, leave Ctrl-C to the parent, and end with it."""
    global _sent
    _sent = sent
    follow_parent(parent)


@functools.cache
def _objective() -> Callable[[Floats], Any]:
    call: Callable[[Floats], Any] = pickle.loads(_sent)
    return call


def _load() -> None:
    _objective()


def _call_sent(x: Floats) -> Any:
    try:
        return _objective()(x)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # it would break the pool on its way back
            raise RuntimeError(f"fun raised {type(error).__name__}: {error}") from error
        raise
