"""A job: everything that a result depends on, and how it is computed, in as many goes as it takes."""

import dataclasses
import functools
import hashlib
import inspect
import io
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from leamvd.campaign import versions
from leamvd.campaign.tables import as_csv, read_table

if TYPE_CHECKING:  # runs are found and read without Numba
    from leamvd._support.compile import Array


class Result(NamedTuple):
    """The result of a job or, until it is done, a checkpoint: a job that has been computed as far as `iteration`."""

    rows: bytes  # CSV
    arrays: bytes  # .npz
    iteration: int
    done: bool


class Step(NamedTuple):
    """An iteration of a job."""

    iteration: int
    rows: Sequence[Mapping[str, Any]]  # that it adds to the table
    arrays: "Mapping[str, Array]"  # of the result if `done`, otherwise what the job goes on from
    done: bool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Job(ABC):
    """A part of a study that is computed as a whole.

    Its fields say everything that its result depends on, except code and versions: equal jobs have equal results, and
    a job is the key under which its result is stored.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """For a reader; it also names a file, and need not be unique."""

    @property
    def iterations(self) -> int:
        """How many there are; by default the job is computed in one go."""
        return 1

    @property
    def needs(self) -> tuple["Job", ...]:
        """The jobs whose results it is given."""
        return ()

    @property
    def packages(self) -> tuple[str, ...]:
        """Distributions on which its result depends, and which are imported only where they are used."""
        return ()

    @abstractmethod
    def steps(self, data: Any, needs: Sequence[Result], done: int, arrays: "Mapping[str, Array]", /) -> Iterator[Step]:
        """Yield the iterations, or those after the one that is `done`, with its `Step.arrays`: the same to the bit.

        All jobs of a campaign are given the same `data`. Before the first iteration nothing is done, without arrays.
        """

    def advance(
        self,
        data: Any,
        needs: Sequence[Result],
        checkpoint: Result | None = None,
        *,
        seconds: float = np.inf,
        tick: Callable[[int], object] = lambda _: None,
    ) -> Result:
        """Begin the job, or go on from what an earlier call has returned; the rows are the same in however many calls.

        It returns before so many seconds are over, as far as the iterations so far let it be foreseen, but never
        without one. `tick` is called with the number of each iteration when it is done.
        """
        start = now = time.monotonic()
        rows: list[Mapping[str, Any]] = []
        longest = 0.0
        done, arrays = (0, {}) if checkpoint is None else (checkpoint.iteration, unpacked(checkpoint.arrays))
        for step in self.steps(data, needs, done, arrays):
            rows += step.rows
            now, before = time.monotonic(), now
            tick(step.iteration)
            longest = max(longest, now - before)
            if step.iteration > done and now - start + longest > seconds:
                break
        text = as_csv(pd.DataFrame(rows)).encode() if rows else b""
        if checkpoint is not None:
            text = checkpoint.rows + (text.partition(b"\n")[2] if checkpoint.rows else text)
        return Result(text, packed(step.arrays), step.iteration, step.done)


@functools.cache
def key(job: Job) -> str:
    """Return the name of a job and a digest of what it `depends_on`."""
    text = json.dumps(depends_on(job), sort_keys=True)
    return f"{job.name}-{digest(text.encode())[:16]}"


def depends_on(job: Job) -> dict[str, Any]:
    """Return all that decides on the result of a job, as a manifest holds it.

    These are its fields, with the keys of jobs among them, its code with all that this imports, and the versions of the
    packages that they use. Numbers are equal whatever their type: 1, 1.0 and NumPy's.
    """
    file = Path(inspect.getfile(type(job)))
    known = {
        "job": type(job).__qualname__,
        **_fields(job),
        "code": versions.code(file),
        "versions": versions.packages(file, job.packages),
    }
    found: dict[str, Any] = json.loads(json.dumps(known, default=_plain), parse_float=_number)
    return found


def _fields(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}


def _plain(value: Any) -> Any:
    """Return as JSON has it what is neither a number of Python's nor a word or a list."""
    if isinstance(value, Job):
        return key(value)
    return _fields(value) if dataclasses.is_dataclass(value) else value.item()


def _number(text: str) -> float:
    return int(number) if (number := float(text)).is_integer() else number


def made_with(jobs: Iterable[Job]) -> dict[str, Any]:
    """Return what results of jobs must be read with: the machine, and code and versions of them and what they need."""
    used = {(Path(inspect.getfile(type(job))), job.packages): None for job in with_needs(jobs)}
    found = {name: version for file, more in used for name, version in versions.packages(file, more).items()}
    code = "-".join(dict.fromkeys(versions.code(file) for file, _ in used))
    return {"code": code, "versions": dict(sorted(found.items())), **versions.machine()}


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def with_needs(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs and all that they need, each once and after what it needs.

    Jobs are values, which hold what they need: so there are no cycles. What the first one needs comes first, where the
    order of `graphlib` would have every first layer before any second one.
    """
    found: dict[Job, None] = {}

    def add(job: Job) -> None:
        if job not in found:
            for need in job.needs:
                add(need)
            found[job] = None

    for job in jobs:
        add(job)
    return list(found)


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of jobs: which rows it has, and how they are arranged."""

    labels: Sequence[str]  # columns that say which job a row is of, "seed" among them
    jobs: Mapping[tuple[Any, ...], Job]  # by what rows have in these columns
    line: str  # column that says which of the job's rows it is
    arranged: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows
    ends: bool = False  # whether each job has its last row alone

    def of(self, results: Mapping[Job, Result]) -> pd.DataFrame:
        """Return the table; where a result is missing, there are no rows."""
        found = [
            self._rows(results[job]).assign(**dict(zip(self.labels, label, strict=True)))
            for label, job in self.jobs.items()
            if job in results
        ]
        return self.arranged(pd.concat(found, ignore_index=True))

    def _rows(self, result: Result) -> pd.DataFrame:
        rows = read_table(io.BytesIO(result.rows))
        return rows.tail(1) if self.ends else rows


class Planned(NamedTuple):
    """Tables by their names, and the data that their jobs are given."""

    tables: Mapping[str, Table]
    data: Any = None


def packed(arrays: "Mapping[str, Array]") -> bytes:
    """Return arrays as the content of an .npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(content: bytes) -> "dict[str, Array]":
    """Return the arrays of an .npz file, given its content."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)
