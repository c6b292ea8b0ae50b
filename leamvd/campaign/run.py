"""Computing the jobs that are not stored, wherever, and storing them."""

import contextlib
import functools
import sys
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from tqdm import TqdmWarning

from leamvd.campaign.jobs import Job, Planned, Result, Table, key, with_needs
from leamvd.campaign.store import DamageError, Store
from leamvd.campaign.workers import DEATHS, Go, WorkerError, Workers, start

CHECKPOINT = 120.0
"""Seconds after which a job is stored as far as it is: what a kill costs of it, unless going on takes long."""

_POLL = 0.5  # seconds after which other processes' jobs and new workers are looked for


def run(
    jobs: Iterable[Job],
    store: str | Path,
    *,
    data: Any = None,
    label: str = "",
    n_jobs: int | None = 1,
    scheduler: str | None = None,
    seconds: float = float("inf"),
    checkpoint_seconds: float = CHECKPOINT,
    progress: bool = True,
) -> dict[Job, Result]:
    """Compute what is not stored of some jobs and of all that they need, and return the results of these jobs.

    Every result is stored once it is complete, whole, under the key of its job. So a campaign that was killed goes on,
    and another one with jobs in common takes them from there. Processes that run at the same time share the work. A
    stored result that has been damaged is named on standard error, set aside and computed again.

    Jobs that are asked for first are computed first, all are given the same `data`, and `n_jobs` and `scheduler` say
    where, see `leamvd.campaign.workers.start`. After so many `seconds` no job goes on: it is stored as far as it is,
    and what has no result is left out. If processes kept dying over a job, a `WorkerError` says so once the others are
    computed.
    """
    asked = list(jobs)
    every = with_needs(asked)
    for job in every:
        key(job)  # an edit of the code while others are computed does not change what runs
    with start(data, jobs=n_jobs, scheduler=scheduler) as workers, _Progress(label, every, show=progress) as shown:
        done = _Campaign(every, Store(store), workers, shown, checkpoint_seconds).run(time.monotonic() + seconds)
    return {job: done[job] for job in asked if job in done}


def run_tables(tables: Mapping[str, Table], store: str | Path, **where: Any) -> dict[str, pd.DataFrame]:
    """Compute the jobs of some tables, as `run` does, and return the tables by their names."""
    found = run([job for table in tables.values() for job in table.jobs.values()], store, **where)
    return {name: table.of(found) for name, table in tables.items()}


def run_planned(planned: Iterable[Planned], store: str | Path, **where: Any) -> dict[str, pd.DataFrame]:
    """Compute likewise the tables of a plan on each of its data; those of one name are one below the other."""
    found = [run_tables(tables, store, data=data, **where) for tables, data in planned]
    return {name: pd.concat([one[name] for one in found], ignore_index=True) for name in found[0]}


class _Progress:
    """A bar over all iterations, which also says what is worth a line."""

    def __init__(self, label: str, jobs: Sequence[Job], *, show: bool) -> None:
        self._label, self._jobs, self._reached, self._stored = label, len(jobs), dict.fromkeys(jobs, 0), 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", TqdmWarning)  # without ipywidgets the bar in a notebook is text
            from tqdm.auto import tqdm
        quiet: dict[str, Any] = {} if show else {"disable": True}  # TQDM_DISABLE in the environment is heeded too
        self._bar = tqdm(
            total=sum(job.iterations for job in jobs),
            desc=label or None,
            leave=False,
            mininterval=0.1 if sys.stderr.isatty() else 60.0,  # a log is to stay short
            **quiet,
        )

    def __enter__(self) -> "_Progress":
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if isinstance(error, KeyboardInterrupt) and not self._bar.disable:
            self.say(f"{self._label}: stopped; {self._stored} of {self._jobs} jobs are stored")
        self._bar.close()

    def reached(self, job: Job, iteration: int) -> None:
        """Count the iterations of a job up to this one; one that was begun again counts once."""
        more = min(iteration, job.iterations) - self._reached[job]
        if more > 0:
            self._reached[job] += more
            self._bar.update(more)

    def found(self, job: Job, iteration: int) -> None:
        """Count iterations that took no time now: the time that is left goes by the others."""
        if not self._bar.disable:
            self._bar.initial += max(0, min(iteration, job.iterations) - self._reached[job])
        self.reached(job, iteration)

    def stored(self, job: Job) -> None:
        """Count a job as complete."""
        self.found(job, job.iterations)
        self._stored += 1
        self._bar.set_postfix_str(f"{self._stored} of {self._jobs} jobs", refresh=False)

    def say(self, line: str) -> None:
        """Show a line without tearing the bar."""
        self._bar.write(line, file=sys.stderr)


class _Running(NamedTuple):
    job: Job
    lock: contextlib.ExitStack
    iteration: int  # that it goes on from


class _Campaign:
    """The computing of jobs; only this process stores them, and each one is computed by whoever has locked it."""

    def __init__(
        self, jobs: Sequence[Job], store: Store, workers: Workers, progress: _Progress, checkpoint_seconds: float
    ) -> None:
        self._jobs, self._store, self._workers, self._progress = jobs, store, workers, progress
        self._done: dict[Job, Result] = {}
        self._running: dict[Future[Result], _Running] = {}
        self._deaths = dict.fromkeys(jobs, 0)
        self._seconds = dict.fromkeys(jobs, checkpoint_seconds)
        self._made: dict[Job, int] = {}  # iterations between the last two checkpoints

    def run(self, deadline: float) -> dict[Job, Result]:
        """Compute until all is done, nothing more can be, or time is over."""
        waiting = False
        try:
            while True:
                ready, before = self._ready(), len(self._done)
                others = [job for job in ready if not self._take(job) and not self._begin(job, deadline)]
                if self._running:
                    self._end(wait(self._running, timeout=_POLL, return_when=FIRST_COMPLETED).done)
                elif not ready or (len(self._done) == before and time.monotonic() >= deadline):
                    break
                elif len(self._done) == before:
                    if not waiting:
                        self._progress.say(f"waiting for {others[0].name}: it is computed elsewhere, or by nobody yet")
                    waiting = True
                    time.sleep(_POLL)
        finally:
            for future, running in self._running.items():
                future.cancel()
                running.lock.close()
        if lost := [job.name for job in self._jobs if self._deaths[job] >= DEATHS]:
            raise WorkerError(f"{', '.join(lost)}: its process has died {DEATHS} times; is memory short?")
        return self._done

    def _ready(self) -> list[Job]:
        """Return the jobs that nobody computes here yet, and whose needs are done."""
        running = {one.job for one in self._running.values()}
        return [
            job
            for job in self._jobs
            if job not in self._done and job not in running
            and self._deaths[job] < DEATHS and self._done.keys() >= set(job.needs)
        ]  # fmt: skip

    def _take(self, job: Job, *, locked: bool = False) -> bool:
        """Take the result of a job if it is stored, and return whether it is."""
        if job not in self._store:
            return False
        try:
            self._done[job] = self._store.read(job)
        except DamageError as error:
            if locked:
                self._store.set_aside(job)
                self._warn(error)
            return False
        self._progress.stored(job)
        return True

    def _warn(self, error: DamageError) -> None:
        self._progress.say(f"warning: {error}: set aside in the store's folder damaged, and computed again")

    def _begin(self, job: Job, deadline: float) -> bool:
        """Begin a job, or go on with it, and return whether that was possible; or take it if it is there by now."""
        left = deadline - time.monotonic()
        if left <= 0 or len(self._running) >= self._workers.size():
            return False
        with contextlib.ExitStack() as stack:
            if not stack.enter_context(self._store.lock(job)):
                return False
            if self._take(job, locked=True):  # another process was faster
                return True
            checkpoint, damaged = self._store.checkpoint(job)
            for error in damaged:
                self._warn(error)
            first = 0 if checkpoint is None else checkpoint.iteration
            self._progress.found(job, first)
            needs = [self._done[need] for need in job.needs]
            seconds = min(left, self._seconds[job])
            future = self._workers.submit(
                Go(job, key(job), needs, checkpoint, seconds), functools.partial(self._progress.reached, job)
            )
            self._running[future] = _Running(job, stack.pop_all(), first)
        return True

    def _end(self, futures: "Iterable[Future[Result]]") -> None:
        """Store what has been computed of jobs, of all of them even where one has failed."""
        with contextlib.ExitStack() as stack:
            for future in futures:
                stack.callback(self._keep, future)

    def _keep(self, future: "Future[Result]") -> None:
        job, lock, first = self._running.pop(future)
        with lock:
            try:
                result = future.result()
            except Exception as error:
                deaths = self._workers.deaths(error)
                if not deaths:
                    raise
                self._deaths[job] += deaths
                self._progress.say(f"warning: {job.name}: its process has died")
                return
            self._store.write(job, result)
            self._progress.reached(job, result.iteration)
            if result.done:
                self._done[job] = result
                self._progress.stored(job)
                return
            # a job that samples again before it goes on would soon do little else
            made = result.iteration - first
            if made < self._made.get(job, 0):
                self._seconds[job] *= 2
            self._made[job] = made
