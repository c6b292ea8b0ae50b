"""Where units are computed: in this process, in several on this machine, or on a Dask cluster."""

import contextlib
import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple, Protocol

from leamvd._support import checks
from leamvd._support.children import follow_parent
from leamvd._support.threads import share, thread_count
from leamvd.paper.datasets import Dataset
from leamvd.paper.tasks import AnyTask, advance, made_with
from leamvd.paper.units import Part

CONNECT = 30.0
"""Seconds to reach a scheduler in."""


class WorkerError(RuntimeError):
    """A unit that workers died over again and again, or a worker that is not fit."""


class Order(NamedTuple):
    """What a worker is to do, see `leamvd.paper.tasks.advance`."""

    task: AnyTask
    below: Sequence[bytes]
    begun: Part | None
    seconds: float
    tick: Callable[[], object]  # stays in this process


class Workers(Protocol):
    """Where units are computed."""

    def size(self) -> int:
        """Return how many units can be computed at the same time."""

    def submit(self, order: Order) -> "Future[Part]":
        """Let a unit go on."""

    def died(self, error: Exception, /) -> bool:
        """Return whether this is the error of a unit whose worker is gone."""


@contextlib.contextmanager
def start(data: Dataset, *, jobs: int | None = None, scheduler: str | None = None) -> Iterator[Workers]:
    """Yield workers for units of studies on these images.

    Parameters
    ----------
    data : Dataset
        Images, which workers keep.
    jobs : int, optional
        Processes on this machine, which share its threads; with 1 it is this process alone. By default, one a thread.
    scheduler : str, optional
        Address of a Dask scheduler whose workers take the place of processes here; "local" starts one with `jobs`
        workers, and says where its dashboard is.

    Raises
    ------
    ValueError, TypeError
        If `jobs` is out of range.
    ModuleNotFoundError
        Without the extra ``leamvd[dask]`` where it is needed.
    OSError
        If there is no scheduler at the address.
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
    """The process that asks, on all threads: a unit is computed when it is submitted."""

    def __init__(self, data: Dataset) -> None:
        self._data = data

    def size(self) -> int:
        return 1

    def submit(self, order: Order) -> "Future[Part]":
        future: Future[Part] = Future()
        task, below, begun, seconds, tick = order
        future.set_result(advance(task, self._data, below, begun, seconds=seconds, tick=tick))
        return future

    def died(self, _: Exception) -> bool:
        return False


class _Processes:
    """New processes, each in a pool of its own, so that one that dies takes nothing with it but its unit."""

    def __init__(self, count: int, data: Dataset) -> None:
        self._data, self._n_threads = data, max(1, thread_count(None) // count)
        self._pools: dict[int, ProcessPoolExecutor] = {}
        self._futures: list[Future[Part] | None] = [None] * count

    def size(self) -> int:
        return len(self._futures)

    def submit(self, order: Order) -> "Future[Part]":
        place = next(i for i, last in enumerate(self._futures) if last is None or last.done())
        with contextlib.suppress(BrokenProcessPool):  # its process has died
            if place in self._pools:
                return self._sent(place, order, None)
        if place in self._pools:
            _forget_unread(self._pools[place])
        context = multiprocessing.get_context("spawn")
        self._pools[place] = ProcessPoolExecutor(1, context, initializer=follow_parent)  # which is quickly imported
        # among `initargs` the images would wait forever to be read by a process that dies at its start
        return self._sent(place, order, (self._data, self._n_threads))

    def _sent(self, place: int, order: Order, given: tuple[Dataset, int] | None) -> "Future[Part]":
        future = self._pools[place].submit(_advance, given, *order[:-1])
        self._futures[place] = future
        return future

    def died(self, error: Exception) -> bool:
        return isinstance(error, BrokenProcessPool)

    def close(self) -> None:
        """End the processes at once."""
        for pool in self._pools.values():
            for process in list((pool._processes or {}).values()):
                process.terminate()
            _forget_unread(pool)
            pool.shutdown(cancel_futures=True)


def _forget_unread(pool: ProcessPoolExecutor) -> None:
    """Let nothing wait for a dead process to read what it was sent, as Python before 3.11.5 does (gh-94777)."""
    if sys.version_info < (3, 11, 5):
        pool._call_queue._reader.close()  # type: ignore[attr-defined]


_kept: list[Dataset] = []  # by a process that `_Processes` has started


def _advance(
    given: tuple[Dataset, int] | None, task: AnyTask, below: Sequence[bytes], begun: Part | None, seconds: float
) -> Part:
    """Let a unit go on; with the first one come the images, and the threads to use from then on."""
    if given is not None:
        _kept.append(given[0])
        share(given[1])
    return advance(task, _kept[0], below, begun, seconds=seconds)


@contextlib.contextmanager
def _cluster(scheduler: str, jobs: int, data: Dataset) -> Iterator["_Cluster"]:
    checks.needs("scheduler", "dask", "distributed")
    import dask
    import distributed

    # what is sent with a task are layers of a stack, of some megabytes
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1GB"}), contextlib.ExitStack() as stack:
        address: Any = scheduler
        if scheduler == "local":
            address = stack.enter_context(distributed.LocalCluster(n_workers=jobs, threads_per_worker=1))
            print(f"dashboard: {address.dashboard_link}", file=sys.stderr)
        try:
            client: Any = distributed.Client(address, timeout=CONNECT, set_as_default=False)
        except (OSError, ValueError) as error:
            rule = 'scheduler must be "local" or the address of a Dask scheduler that runs'
            raise OSError(f"{rule}, got {scheduler!r}: {error}") from None
        stack.enter_context(client)
        # a pure function's failed future would answer for the unit that is sent again
        yield _Cluster(client, stack.enter_context(client.get_executor(pure=False)), data)


class _Cluster:
    """The workers of a Dask scheduler, one thread for a unit; they may come and go."""

    def __init__(self, client: Any, executor: Any, data: Dataset) -> None:
        self._client, self._executor, self._data = client, executor, data
        self._sent: Any = None

    def size(self) -> int:
        return sum(self._client.nthreads().values())

    def submit(self, order: Order) -> "Future[Part]":
        if self._sent is None or self._sent.status != "finished":  # with the last worker that had them they are gone
            [self._sent] = self._client.scatter([self._data], hash=False, broadcast=True)
        future: Future[Part] = self._executor.submit(_advance_there, made_with(order.task), self._sent, *order[:-1])
        return future

    def died(self, error: Exception) -> bool:
        from distributed import KilledWorker

        return isinstance(error, KilledWorker | CancelledError)


def _advance_there(
    known: Any, data: Dataset, task: AnyTask, below: Sequence[bytes], begun: Part | None, seconds: float
) -> Part:
    """Let a unit go on, on one thread of a Dask worker, which must run the same code as its client."""
    if (own := made_with(task)) != known:
        raise WorkerError(f"a worker must run the code and the versions of its client, {known}, got {own}")
    share(1)
    return advance(task, data, below, begun, seconds=seconds)
