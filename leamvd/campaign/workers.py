"""Where jobs are computed: in this process, in several on this machine, or on a Dask cluster."""

import contextlib
import logging
import os
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from typing import Any, NamedTuple, Protocol

from loky.process_executor import BrokenProcessPool, ProcessPoolExecutor

from leamvd._support import checks
from leamvd._support.children import follow_parent
from leamvd._support.threads import limited_to, thread_count
from leamvd.campaign.jobs import Job, Result, key

CONNECT = 30.0
"""Seconds to reach a scheduler in."""

DEATHS = 3
"""Of workers over one job, until it is given up."""


class WorkerError(RuntimeError):
    """A job that workers died over again and again, or a worker that is not fit."""


class Go(NamedTuple):
    """A job, and what it goes on with, see `leamvd.campaign.jobs.Job.advance`."""

    job: Job
    key: str  # that the worker must find too: the same code, and the same versions
    needs: Sequence[Result]
    checkpoint: Result | None
    seconds: float


class Workers(Protocol):
    """Where jobs are computed."""

    def size(self) -> int:
        """Return how many jobs can be computed at the same time."""

    def submit(self, go: Go, tick: Callable[[int], object], /) -> "Future[Result]":
        """Let a job go on; `tick` is called with each iteration where that is possible."""

    def deaths(self, error: Exception, /) -> int:
        """Return how many workers have died over a job that has ended with this error."""


@contextlib.contextmanager
def start(data: Any, *, jobs: int | None = None, scheduler: str | None = None) -> Iterator[Workers]:
    """Yield workers, which keep the data that all jobs are given.

    They are so many processes on this machine, which share its threads, by default one for each thread; with one job it
    is this process alone. With the address of a Dask scheduler they are its workers, of as many as there are; "local"
    starts one with `jobs` workers, and says where its dashboard is.
    """
    jobs = thread_count(None) if jobs is None else checks.integer("jobs", jobs, at_least=1)
    if scheduler is not None:
        with _cluster(scheduler, jobs, data) as cluster:
            yield cluster
    elif jobs == 1:
        yield _Here(data)
    else:
        with contextlib.closing(_Processes(jobs, data)) as processes:
            yield processes


class _Here:
    """The process that asks, on all threads: a job is computed when it is submitted."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def size(self) -> int:
        return 1

    def submit(self, go: Go, tick: Callable[[int], object]) -> "Future[Result]":
        future: Future[Result] = Future()
        future.set_result(go.job.advance(self._data, go.needs, go.checkpoint, seconds=go.seconds, tick=tick))
        return future

    def deaths(self, _: Exception) -> int:
        return 0


class _Processes:
    """New processes, each with an executor of its own, so that one that dies takes nothing with it but its job."""

    def __init__(self, count: int, data: Any) -> None:
        self._given = data, max(1, thread_count(None) // count)
        self._executors: list[ProcessPoolExecutor | None] = [None] * count
        self._futures: list[Future[Result] | None] = [None] * count

    def size(self) -> int:
        return len(self._futures)

    def submit(self, go: Go, _: Callable[[int], object]) -> "Future[Result]":
        place = next(i for i, last in enumerate(self._futures) if last is None or last.done())
        executor = self._executors[place]
        with contextlib.suppress(BrokenProcessPool):  # its process has died
            if executor is not None:
                return self._sent(place, executor, go)
        executor = ProcessPoolExecutor(1, initializer=follow_parent, initargs=(os.getpid(),))
        self._executors[place] = executor
        return self._sent(place, executor, go)

    def _sent(self, place: int, executor: ProcessPoolExecutor, go: Go) -> "Future[Result]":
        # data goes with each job: a process that dies while it starts would leave this one waiting with what is unread
        future: Future[Result] = executor.submit(_advance, go, *self._given)
        self._futures[place] = future
        return future

    def deaths(self, error: Exception) -> int:
        return int(isinstance(error, BrokenProcessPool))

    def close(self) -> None:
        """End the processes at once."""
        for executor in filter(None, self._executors):
            executor.shutdown(kill_workers=True)


def _advance(go: Go, data: Any, n_threads: int) -> Result:
    """Let a job go on in a new process."""
    with limited_to(n_threads):
        return _checked(go, data)


def _checked(go: Go, data: Any) -> Result:
    """Let a job go on where code may lie that is not the code of the process that asks."""
    if (found := key(go.job)) != go.key:
        raise WorkerError(f"a worker must run the code and versions of the process that asks, {go.key}, got {found}")
    return go.job.advance(data, go.needs, go.checkpoint, seconds=go.seconds)


@contextlib.contextmanager
def _cluster(scheduler: str, jobs: int, data: Any) -> Iterator["_Cluster"]:
    checks.needs("scheduler", "dask", "distributed")
    if scheduler != "local":
        _check_reachable(scheduler)
    import dask
    import distributed

    # data and results are sent in one message, of some hundred megabytes at most; a job that is
    # sent on after a death waits behind another one, which would be blamed for the next: so it comes back each time
    settings = {
        "distributed.admin.large-graph-warning-threshold": "1GB",
        "distributed.scheduler.allowed-failures": 0,
    }
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        address: Any = scheduler
        if scheduler == "local":
            address = stack.enter_context(distributed.LocalCluster(n_workers=jobs, threads_per_worker=1))
            print(f"dashboard: {address.dashboard_link}", file=sys.stderr)
        try:
            client: Any = distributed.Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            raise _unreachable(scheduler, error) from None
        stack.enter_context(client)
        stack.callback(logging.getLogger("distributed").setLevel, logging.CRITICAL)  # what it says of its own end
        # a pure function's failed future would answer for the job that is sent again
        yield _Cluster(client, stack.enter_context(client.get_executor(pure=False, retries=0)), data)


def _check_reachable(scheduler: str) -> None:
    """Refuse at once what is no address, or answers nobody."""
    host, _, port = scheduler.rpartition("://")[2].rpartition(":")
    try:
        if not (host and port.isdecimal()):
            raise ValueError("it names no host and port, as tcp://127.0.0.1:8786 does")
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT).close()
    except (OSError, ValueError, OverflowError) as error:
        raise _unreachable(scheduler, error) from None


def _unreachable(scheduler: str, error: Exception) -> OSError:
    rule = 'scheduler must be "local" or the address of a Dask scheduler that runs'
    return OSError(f"{rule}, got {scheduler!r}: {error}")


class _Cluster:
    """The workers of a Dask scheduler, one thread for a job; they may come and go, and be used by others too."""

    def __init__(self, client: Any, executor: Any, data: Any) -> None:
        self._client, self._executor, self._data = client, executor, data
        self._sent: Any = None

    def size(self) -> int:
        return sum(self._client.nthreads().values())

    def submit(self, go: Go, _: Callable[[int], object]) -> "Future[Result]":
        if self._sent is None or self._sent.status not in ("pending", "finished"):
            # a task, which the scheduler sends to another worker where all that had the data have died
            self._sent = self._client.submit(_given, self._data, pure=False)
        future: Future[Result] = self._executor.submit(_advance_there, go, self._sent)
        return future

    def deaths(self, error: Exception) -> int:
        from distributed import KilledWorker

        if isinstance(error, KilledWorker):  # the scheduler has given up
            return int(error.allowed_failures) + 1
        return int(isinstance(error, CancelledError))


def _given(data: Any) -> Any:
    return data


def _advance_there(go: Go, data: Any) -> Result:
    """Let a job go on, on one thread of a Dask worker, whose limits are what they were in the end."""
    with limited_to(1):
        return _checked(go, data)
