"""A search in a file: one that was killed goes on from there, to the bit as if it had not been."""

import contextlib
import dataclasses
import errno
import functools
import glob
import hashlib
import json
import os
import sys
import uuid
from pathlib import Path
from typing import Any, Self

import numpy as np

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.random_search import RandomSearch
from leamvd.optimizers.state import State

if sys.platform != "win32":
    import fcntl

_COUNTS = ("generation", "nfev", "n_nan", "n_inf", "best_fun")  # all that random search knows, except the best point


class Checkpoint:
    """The file of one search: arrays and JSON in NumPy's format .npz, without pickles; a context.

    It is replaced whole: whatever happens while the next one is written, the earlier one stays as it is. Until the
    context ends no other search can have it, of this process or another one; a kill ends that too. The folder has to
    be there; a link is followed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = checks.file("checkpoint", path)
        self._arguments: dict[str, Any] = {}

    def __enter__(self) -> Self:
        try:
            self._lock = _lock(self._path.with_name(f".{self._path.name}.lock"))
            for left in self._path.parent.glob(f".{glob.escape(self._path.name)}.*.partial"):  # by a killed search
                with contextlib.suppress(OSError):  # of somebody else
                    left.unlink()
        except BlockingIOError:
            told = "checkpoint is that of a search that runs now: wait for its end, or name another file"
            raise BlockingIOError(errno.EAGAIN, told, str(self._path)) from None
        except OSError as error:
            raise OSError(error.errno, f"checkpoint cannot be written ({error.strerror})", str(self._path)) from error
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # Windows removes what is closed
            self._path.with_name(f".{self._path.name}.lock").unlink()
        os.close(self._lock)

    @functools.cached_property
    def _found(self) -> dict[str, dict[str, Any]] | None:
        return _read(self._path)

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the search in the file, "seed" among them; none if there is no file."""
        found: dict[str, Any] = self._found["header"]["arguments"] if self._found else {}
        return found

    def restore(self, opt: Optimizer) -> list[tuple[Any, ...]]:
        """Put an optimizer where the file left off, and return the rows of the history; none if there is no file.

        It must have the arguments of the file's, except limits, and be none of pycma's.
        """
        if not isinstance(opt, LEAMVD | RandomSearch):
            raise ValueError(
                f"checkpoint must be None for {opt!r}: what it knows could only be stored as a pickle, "
                "which is not safe to load"
            )
        self._arguments = _arguments(opt)
        if self._found is None:
            return []
        header, state, history = self._found["header"], self._found["state"], self._found["history"]
        stored = header["arguments"]
        for name in stored | self._arguments:
            if name == "generation" and stored[name] != self._arguments[name]:
                raise ValueError(
                    f"method must be an optimizer at generation {stored[name]}, where the search in "
                    f"checkpoint={str(self._path)!r} began, got {opt!r}: give a new one, which goes on from the file"
                )
            if stored.get(name) != self._arguments.get(name):
                raise ValueError(
                    f"checkpoint={str(self._path)!r} is of a search with {name}={stored.get(name)!r}, "
                    f"got {name}={self._arguments.get(name)!r}: name another file, or delete this one"
                )
        if isinstance(opt, LEAMVD):
            opt.state = State(**({"initial_std": None} | state))
        else:
            for name in _COUNTS:
                setattr(opt, name, state[name])
            opt._best_x, opt._candidates = state["best_x"], None
        self._found = None
        return list(zip(*(column.tolist() for column in history.values()), strict=True))

    def write(self, opt: Optimizer, history: dict[str, Array]) -> None:
        """Store what `opt` knows after a generation, and the history's columns, or leave the earlier file there."""
        header = json.dumps({"arguments": self._arguments})
        arrays: Any = {f"history.{name}": column for name, column in history.items()} | _state(opt)
        temporary = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex}.partial")
        try:
            with temporary.open("wb") as file:
                np.savez(file, header=np.array(header), **arrays)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self._path)
        except OSError as error:
            error.add_note(f"checkpoint={str(self._path)!r} could not be written; what it held before is still there")
            raise
        finally:
            temporary.unlink(missing_ok=True)


def _lock(path: Path) -> int:
    """Return a descriptor that keeps a file locked until it is closed; a BlockingIOError if another one does.

    Who holds the lock removes the file at the end: so a lock on a file that has no name any more is none.
    """
    if sys.platform == "win32":
        try:
            return os.open(path, os.O_CREAT | os.O_EXCL | os.O_TEMPORARY)  # removed with its process
        except FileExistsError:
            raise BlockingIOError from None
    while True:
        descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise
        except OSError:  # a file system without locks
            return descriptor
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)


def _read(path: Path) -> dict[str, dict[str, Any]] | None:
    """Return the header, and state and history by their fields; None if there is no file."""
    found: dict[str, dict[str, Any]] = {"state": {}, "history": {}}
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            found["header"] = json.loads(file["header"].item())
            for part, _, name in (full.partition(".") for full in file.files if full != "header"):
                value = file[f"{part}.{name}"]
                found[part][name] = value if value.ndim else value.item()
        found["header"]["arguments"]["seed"]
        needed = {"LEAMVD": State._fields, "RandomSearch": (*_COUNTS, "best_x")}[found["header"]["arguments"]["method"]]
        if found["state"].keys() | {"initial_std"} != {*needed, "initial_std"}:
            raise ValueError(f"its state has {', '.join(found['state'])}")
        if len({len(column) for column in found["history"].values()}) > 1:
            raise ValueError("the columns of its history differ in length")
    except FileNotFoundError:
        return None
    except Exception as error:
        raise ValueError(
            f"checkpoint={str(path)!r} cannot be read as one ({error}): name another file, or delete this one"
        ) from error
    return found


def _state(opt: Optimizer) -> dict[str, Any]:
    if isinstance(opt, LEAMVD):
        state = opt.state._asdict()
    else:
        state = {name: getattr(opt, name) for name in _COUNTS} | {"best_x": opt.result.x}
    return {f"state.{name}": value for name, value in state.items() if value is not None}


def _arguments(opt: LEAMVD | RandomSearch) -> dict[str, Any]:
    """Return what a search depends on, except its limits; of long arrays a digest."""
    names = ("n_var", "population_size", "seed", "sigma0", "generation")
    method = LEAMVD if isinstance(opt, LEAMVD) else RandomSearch  # or a class of somebody's that is one of them
    arguments = {"method": method.__name__, "dtype": opt.dtype.name} | {name: getattr(opt, name) for name in names}
    if isinstance(opt, LEAMVD):
        reading = dataclasses.asdict(opt.reading)
        arguments["n_elite"] = opt.n_elite
        arguments |= {f"reading.{name}": reading[name] for name in reading if name not in ("n_gen", "population_size")}
    else:
        arguments["x0_in_population"] = opt._x0_in_population
    for name, values in (("x0", opt._x0), ("low", opt._low), ("high", opt._high)):
        if values is not None and values.size:
            digest = hashlib.sha256(values.tobytes()).hexdigest()[:12]
            first = ", ".join(map(str, values[:3].tolist()))
            arguments[name] = f"({first}, ...; {values.size} numbers with SHA-256 {digest}...)"
    return arguments
