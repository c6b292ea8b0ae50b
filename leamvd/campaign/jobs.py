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
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leamvd._support.compile import Array
from leamvd.campaign import versions
from leamvd.campaign.tables import as_csv, read_table


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
    arrays: Mapping[str, Array]  # of the result if `done`, otherwise what the job goes on from
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
    @abstractmethod
    def iterations(self) -> int:
        """How many there are, for the progress that is shown."""

    @property
    def needs(self) -> tuple["Job", ...]:
        """The jobs whose results it is given."""
        return ()

    @property
    def packages(self) -> tuple[str, ...]:
        """Distributions on which its result depends, and which are imported only where they are used."""
        return ()

    @abstractmethod
    def steps(self, data: Any, needs: Sequence[Result], arrays: Mapping[str, Array] | None, /) -> Iterator[Step]:
        """Yield the iterations, or those after the one whose `Step.arrays` are given.

        Parameters
        ----------
        data : object
            Given to all jobs of a campaign.
        needs : sequence of Result
            Of the jobs that it `needs`.
        arrays : mapping of str to ndarray, optional
            Of a checkpoint; what follows is the same, to the bit, as if the job had not been stopped.
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
        """Begin the job, or go on from a checkpoint.

        Parameters
        ----------
        data, needs
            As for `steps`.
        checkpoint : Result, optional
            What an earlier call has returned; the rows are the same, to the bit, in however many calls.
        seconds : float
            Return before this time is over, as far as the iterations so far let it be foreseen, but never without one.
        tick : callable
            Called with the number of each iteration when it is done.

        Returns
        -------
        Result
            `done` unless time has run out.
        """
        start = now = time.monotonic()
        rows: list[Mapping[str, Any]] = []
        longest, done_before = 0.0, 0 if checkpoint is None else checkpoint.iteration
        for step in self.steps(data, needs, None if checkpoint is None else unpacked(checkpoint.arrays)):
            rows += step.rows
            now, before = time.monotonic(), now
            tick(step.iteration)
            longest = max(longest, now - before)
            if step.iteration > done_before and now - start + longest > seconds:
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
    packages that they use.
    """
    kind, file = type(job), Path(inspect.getfile(type(job)))
    known = {
        "job": kind.__qualname__,
        **_plain({field.name: getattr(job, field.name) for field in dataclasses.fields(job)}),
        "code": versions.code(file),
        "versions": versions.packages(file, job.packages),
    }
    found: dict[str, Any] = json.loads(json.dumps(known))  # as a manifest is read: tuples become lists
    return found


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, Job):
        return key(value)
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):  # 1, 1.0 and NumPy's are equal
        return int(number) if (number := float(value)).is_integer() else number
    return value


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file's content."""
    return hashlib.sha256(content).hexdigest()


def with_needs(jobs: Iterable[Job]) -> list[Job]:
    """Return the jobs and all that they need, each once and after what it needs.

    Jobs are values, which hold what they need: so there are no cycles.
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


def rows(labeled: Mapping[Any, Job], results: Mapping[Job, Result]) -> pd.DataFrame:
    """Return the rows of jobs as one table, each with its label: a named tuple, whose fields become columns.

    Parameters
    ----------
    labeled : mapping of named tuple to Job
        The jobs by their labels.
    results : mapping of Job to Result
        Where a result is missing, there are no rows.
    """
    tables = [
        read_table(io.BytesIO(results[job].rows)).assign(**label._asdict())
        for label, job in labeled.items()
        if job in results
    ]
    return pd.concat(tables, ignore_index=True)


def packed(arrays: Mapping[str, Array]) -> bytes:
    """Return arrays as the content of an .npz file."""
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def unpacked(content: bytes) -> dict[str, Array]:
    """Return the arrays of an .npz file, given its content."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return dict(file)
