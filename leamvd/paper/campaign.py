"""Computing the units that are not stored, wherever, and storing them."""

import contextlib
import itertools
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from typing import NamedTuple

from leamvd.paper.pieces import Piece
from leamvd.paper.progress import Progress
from leamvd.paper.store import RECORDS, WEIGHTS, Address, DamageError, Store, checkpoint
from leamvd.paper.tasks import AnyTask
from leamvd.paper.units import Part
from leamvd.paper.workers import Order, WorkerError, Workers

SLICE = 120.0
"""Seconds after which a unit is stored as far as it is: what a kill costs of it, unless going on takes long."""

DEATHS = 3
"""Of workers over one unit, until it is given up."""

_POLL = 0.5  # seconds after which other processes' units and new workers are looked for


class _Running(NamedTuple):
    unit: Piece
    lock: contextlib.ExitStack
    iteration: int  # that it goes on from
    seconds: float  # until it is stored


class _Slice(NamedTuple):
    """What a unit has made of its last time, and the seconds of the next."""

    iterations: int
    seconds: float


class Campaign:
    """The computing of units; only this process stores them.

    Other processes may work on the same units at the same time: one is computed by whoever has locked it. A stored unit
    that has been damaged is named, set aside and computed again.

    Parameters
    ----------
    tasks : mapping of Piece to AnyTask
        What is computed, each after what it needs.
    at : mapping of Piece to Address
        Where it is stored.
    store : Store
        What is complete, and what was begun.
    workers : Workers
        Where units are computed.
    progress : Progress
        Is told.
    """

    def __init__(
        self,
        tasks: Mapping[Piece, AnyTask],
        at: Mapping[Piece, Address],
        store: Store,
        workers: Workers,
        progress: Progress,
    ) -> None:
        self._tasks, self._at, self._store = tasks, at, store
        self._workers, self._progress = workers, progress
        self._done: dict[Piece, bytes] = {}
        self._running: dict[Future[Part], _Running] = {}
        self._deaths = dict.fromkeys(tasks, 0)
        self._slices: dict[Piece, _Slice] = {}

    def run(self, seconds: float = float("inf"), *, slice_seconds: float = SLICE) -> dict[Piece, bytes]:
        """Compute what is not stored, and return the records, as CSV, of all that is.

        Parameters
        ----------
        seconds : float
            Nothing goes on after this time, but for an iteration of each unit that is being computed.
        slice_seconds : float
            Time between two checkpoints of a unit.

        Raises
        ------
        WorkerError
            If workers keep dying over a unit.
        """
        deadline, told = time.monotonic() + seconds, False
        try:
            while len(self._done) < len(self._tasks):
                begun, before = {running.unit for running in self._running.values()}, len(self._done)
                ready = [
                    unit
                    for unit in self._tasks
                    if unit not in self._done and unit not in begun and self._done.keys() >= set(unit.below)
                ]
                size = self._workers.size()  # on a cluster, a message
                others = [
                    unit
                    for unit in ready
                    if not self._take(unit)
                    and not (len(self._running) < size and self._begin(unit, deadline, slice_seconds))
                ]
                if self._running:
                    self._end(wait(self._running, timeout=_POLL, return_when=FIRST_COMPLETED).done)
                elif others == ready and len(self._done) == before:
                    if time.monotonic() >= deadline:
                        break
                    if not told:
                        self._progress.note(f"waiting for {others[0].name}: it is computed elsewhere, or by nobody yet")
                        told = True
                    time.sleep(_POLL)
        finally:
            for future, running in self._running.items():
                future.cancel()
                running.lock.close()
        return self._done

    def _take(self, unit: Piece, *, locked: bool = False) -> bool:
        """Take the records of a unit that is stored, and return whether it is."""
        at = self._at[unit]
        if at not in self._store:
            return False
        try:
            self._done[unit] = self._store.read(at)[RECORDS]
        except DamageError as error:
            if locked:
                self._store.set_aside(at)
                self._warn(error)
            return False
        self._progress.stored(unit.name)
        return True

    def _warn(self, error: DamageError) -> None:
        self._progress.say(f"warning: {error}: set aside in the store's folder damaged, and computed again")

    def _begin(self, unit: Piece, deadline: float, slice_seconds: float) -> bool:
        """Begin or go on with a unit, and return whether that was possible."""
        left = deadline - time.monotonic()
        if left <= 0:
            return False
        with contextlib.ExitStack() as stack:
            if not stack.enter_context(self._store.lock(self._at[unit])):
                return False
            if self._take(unit, locked=True):  # another process was quicker
                return True
            begun = self._begun(unit)
            try:
                below = [self._store.read(self._at[lower])[WEIGHTS] for lower in unit.below]
            except DamageError:  # since they were stored
                for lower in unit.below:
                    self._done.pop(lower, None)
                return False
            first = 0 if begun is None else begun.iteration
            iterations = itertools.count(first + 1)
            if begun is not None:
                self._progress.found(unit.name, begun.iteration)

            def tick() -> None:
                self._progress.reached(unit.name, next(iterations))

            slice_seconds = self._slices.get(unit, _Slice(0, slice_seconds)).seconds
            order = Order(self._tasks[unit], below, begun, min(left, slice_seconds), tick)
            future = self._workers.submit(order)
            self._running[future] = _Running(unit, stack.pop_all(), first, slice_seconds)
        return True

    def _begun(self, unit: Piece) -> Part | None:
        """Return what a unit goes on from; what is damaged is set aside."""
        store = self._store.unfinished
        for at in store.checkpoints(self._at[unit]):
            try:
                files = store.read(at)
            except DamageError as error:
                store.set_aside(at)
                self._warn(error)
            else:
                return Part(files[RECORDS], files[WEIGHTS], done=False)
        return None

    def _end(self, futures: "Iterable[Future[Part]]") -> None:
        """Store what has been computed of units, of all of them even where one has failed."""
        with contextlib.ExitStack() as stack:
            for future in futures:
                stack.callback(self._keep, future)

    def _keep(self, future: "Future[Part]") -> None:
        unit, lock, first, seconds = self._running.pop(future)
        at, unfinished = self._at[unit], self._store.unfinished
        with lock:
            try:
                result = future.result()
            except Exception as error:
                if not self._workers.died(error):
                    raise
                self._deaths[unit] += 1
                if self._deaths[unit] == DEATHS:
                    raise WorkerError(f"{unit.name}: its process has died {DEATHS} times; is memory short?") from error
                self._progress.say(f"warning: {unit.name}: its process has died, and another one takes over")
                return
            self._progress.reached(unit.name, result.iteration)
            earlier = unfinished.checkpoints(at)
            files = {RECORDS: result.records, WEIGHTS: result.arrays}
            if result.done:
                self._store.write(at, files)
                self._done[unit] = result.records
                self._progress.stored(unit.name)
            else:
                unfinished.write(checkpoint(at, result.iteration), files)
                made = result.iteration - first
                fewer = unit in self._slices and made < self._slices[unit].iterations
                # what CMA-ES has sampled is sampled again before it goes on: later slices would be of little else
                self._slices[unit] = _Slice(made, 2 * seconds if fewer else seconds)
            for old in earlier:
                unfinished.remove(old)
