"""A campaign: what is killed, damaged, stopped or shared at any moment comes to what an uninterrupted run computes."""

import contextlib
import math
import shutil
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

import pytest
from counting_jobs import JOBS, Count
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from leamvd.campaign import jobs as jobs_module
from leamvd.campaign import run as campaign
from leamvd.campaign.jobs import Job, Result, key, with_needs
from leamvd.campaign.store import ARRAYS, CHECKPOINTS, MANIFEST, ROWS, Store
from leamvd.campaign.workers import DEATHS, Go, WorkerError


class Clock:
    """Time that passes when a test says so."""

    def __init__(self, now: float = 0.0) -> None:
        self.now = now
        self.while_asleep: Callable[[], object] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.while_asleep()

    def iteration(self, job: Job) -> None:
        """Let an iteration take a second; see `counting_jobs.Told`."""
        self.now += 1.0


def computed(
    job: Job, needs: Iterable[Result] = (), checkpoint: Result | None = None, *, now: float = 0.0, seconds: float = 1e9
) -> tuple[Result, float]:
    """Let a job go on, and return when it stops too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(jobs_module, "time", clock := Clock(now))
        return job.advance(clock, list(needs), checkpoint, seconds=seconds), clock.now


def uninterrupted(jobs: Iterable[Job]) -> dict[Job, Result]:
    found: dict[Job, Result] = {}
    for job in with_needs(jobs):
        found[job], _ = computed(job, [found[need] for need in job.needs])
    return found


WHOLE = uninterrupted(JOBS)


class Killed(BaseException):
    """The end of this process, after which its locks are free."""


class DeathError(Exception):
    """The end of a worker."""


class Workers:
    """Workers that end, die and fail when a test says so."""

    def __init__(self, size: int, clock: Clock) -> None:
        self.n_workers, self.clock = size, clock
        self.submitted: list[Go] = []
        self.running: dict[Future[Result], tuple[Go, Result, float]] = {}  # with what comes, and when

    def size(self) -> int:
        return self.n_workers

    def submit(self, go: Go, tick: Callable[[int], object]) -> Future[Result]:
        future: Future[Result] = Future()
        self.submitted.append(go)
        self.running[future] = (go, *computed(go.job, go.needs, go.checkpoint, now=self.clock.now, seconds=go.seconds))
        return future

    def deaths(self, error: Exception) -> int:
        return int(isinstance(error, DeathError))

    def end(self, future: Future[Result], error: Exception | None = None) -> tuple[Go, Result, float]:
        """Let a job end; where there is an error, without a result."""
        go, result, at = self.running.pop(future)
        self.clock.now = max(self.clock.now, at)
        if error:
            future.set_exception(error)
        else:
            future.set_result(result)
        return go, result, at


def cut(place: Path, name: str) -> None:
    (place / name).write_bytes((place / name).read_bytes()[:-3])


def alter(place: Path, name: str) -> None:
    content = (place / name).read_bytes()
    (place / name).write_bytes(content.replace(b"1", b"2") + content[:1])


def remove(place: Path, name: str) -> None:
    (place / name).unlink()


def link_to_nothing(place: Path, name: str) -> None:
    shutil.rmtree(place)
    place.symlink_to(place.with_name("nothing"))


def file_in_its_place(place: Path, name: str) -> None:
    shutil.rmtree(place)
    place.touch()


class Campaigns(RuleBasedStateMachine):
    """Campaigns over one store, one after the other; another client is at work at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()
        self.folder = Path(tempfile.mkdtemp())
        self.store = Store(self.folder)
        self.locked: dict[Job, contextlib.ExitStack] = {}  # by the other client
        self.reached = dict.fromkeys(JOBS, 0)  # iterations that are stored, and whole
        self.written: dict[Path, int] = {}  # when what is complete was
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(campaign, "time", self.clock)

    def teardown(self) -> None:
        for lock in self.locked.values():
            lock.close()
        self.patch.undo()
        shutil.rmtree(self.folder)

    def complete(self, job: Job) -> bool:
        return self.reached[job] == job.iterations

    @rule(
        data=st.data(),
        asked=st.lists(st.sampled_from(JOBS), unique=True, min_size=1),
        size=st.integers(0, 3),
        seconds=st.sampled_from([math.inf, math.inf, 2.0, 5.0]),
        checkpoint_seconds=st.sampled_from([1.0, 2.0, 100.0]),
    )
    def run(self, data: st.DataObject, asked: list[Job], size: int, seconds: float, checkpoint_seconds: float) -> None:
        workers = Workers(size, self.clock)
        deadline, events = self.clock.now + seconds, 0
        died = dict.fromkeys(JOBS, 0)

        def submit(go: Go, tick: Callable[[int], object]) -> Future[Result]:
            job = go.job
            assert job not in self.locked
            assert not self.complete(job)
            assert died[job] < DEATHS
            assert self.clock.now < deadline
            assert (go.checkpoint.iteration if go.checkpoint else 0) == self.reached[job], "nothing is computed twice"
            assert go.needs == [WHOLE[need] for need in job.needs]
            assert all(self.complete(need) for need in job.needs)
            assert len(workers.running) < workers.size()
            return Workers.submit(workers, go, tick)

        def wait(futures: Iterable[Future[Result]], **_: object) -> SimpleNamespace:
            nonlocal events
            events += 1
            assert set(futures) == set(workers.running)
            trouble = events <= 8
            if trouble and data.draw(st.integers(0, 9)) == 0:
                raise Killed
            ends = st.sampled_from([None, None, DeathError(), MemoryError()] if trouble else [None])
            running = st.sampled_from(list(workers.running))
            chosen = data.draw(st.lists(running, unique=True, min_size=not trouble))
            for future in chosen:
                error = data.draw(ends)
                go, result, at = workers.end(future, error)
                died[go.job] += isinstance(error, DeathError)
                if not error:
                    first = go.checkpoint.iteration if go.checkpoint else 0
                    assert at <= deadline or result.iteration == first + 1, "no iteration begins that would be late"
                    self.reached[go.job] = result.iteration
            self.clock.now += 0.5
            return SimpleNamespace(done=chosen)

        def while_asleep() -> None:
            assert self.locked or not workers.n_workers
            workers.n_workers = max(1, workers.n_workers)
            if self.locked:
                self.leave(data.draw(st.sampled_from(list(self.locked))), data.draw(st.booleans()))

        self.clock.while_asleep = while_asleep
        self.patch.setattr(campaign, "wait", wait)
        self.patch.setattr(workers, "submit", submit)
        self.patch.setattr(campaign, "start", lambda *_, **__: contextlib.nullcontext(workers))
        lost: set[Job] = set()
        try:
            found = campaign.run(
                asked, self.folder, seconds=seconds, checkpoint_seconds=checkpoint_seconds, progress=False
            )
        except Killed:
            pass
        except MemoryError:
            pass
        except WorkerError as error:
            lost = {job for job in JOBS if job.name in str(error)}
            assert lost == {job for job in JOBS if died[job] >= DEATHS} != set()
        else:
            assert set(died.values()) <= set(range(DEATHS))
            assert all(found[job] == WHOLE[job] for job in found), "to the byte"
            assert list(found) == [job for job in asked if job in found]
            if seconds == math.inf:
                assert list(found) == asked
        if lost and seconds == math.inf:
            assert all(self.complete(job) for job in with_needs(asked) if not lost & set(with_needs([job])))

    @rule(job=st.sampled_from(JOBS))
    def take(self, job: Job) -> None:
        """Let the other client begin a job."""
        with contextlib.ExitStack() as stack:
            if stack.enter_context(self.store.lock(job)):
                assert job not in self.locked
                self.locked[job] = stack.pop_all()

    @precondition(lambda self: self.locked)
    @rule(data=st.data(), done=st.booleans())
    def ends(self, data: st.DataObject, done: bool) -> None:
        self.leave(data.draw(st.sampled_from(list(self.locked))), done)

    def leave(self, job: Job, done: bool) -> None:
        """Let the other client end a job, or be killed over it."""
        if done and job not in self.store:
            self.store.write(job, WHOLE[job])
            self.reached[job] = job.iterations
        self.locked.pop(job).close()

    @precondition(lambda self: any(self.reached.values()))
    @rule(
        data=st.data(),
        damage=st.sampled_from([cut, alter, remove, link_to_nothing, file_in_its_place]),
        name=st.sampled_from([ROWS, ARRAYS, MANIFEST]),
    )
    def damage(self, data: st.DataObject, damage: Callable[[Path, str], None], name: str) -> None:
        job = data.draw(st.sampled_from([job for job in JOBS if self.reached[job]]))
        place = self.folder / key(job)
        if not self.complete(job):
            (place,) = self.checkpoints(job)
        damage(place, name)
        self.reached[job] = 0
        self.written = {path: at for path, at in self.written.items() if path.parent != place}

    def checkpoints(self, job: Job) -> list[Path]:
        return list((self.folder / CHECKPOINTS).glob(f"{key(job)}-*"))

    @invariant()
    def what_is_stored_stays(self) -> None:
        for job in filter(self.complete, JOBS):
            assert self.store.read(job) == WHOLE[job]
            assert self.checkpoints(job) == []
        now = {path: path.stat().st_mtime_ns for job in filter(self.complete, JOBS)
               for path in (self.folder / key(job)).iterdir()}  # fmt: skip
        assert self.written.items() <= now.items(), "nothing is stored again"
        self.written = now

    @invariant()
    def nothing_else_is_left(self) -> None:
        assert list(self.folder.rglob(".[!l]*")) == []
        assert all(len(self.checkpoints(job)) <= 1 for job in JOBS)


@pytest.mark.parametrize("first", [0, 1])
def test_a_job_that_ends_beside_one_that_fails_is_stored(tmp_path: Path, first: int) -> None:
    """Whichever of the two is looked at first."""
    jobs = [Count(number=1), Count(number=2)]
    workers, store = Workers(2, Clock()), Store(tmp_path)
    with campaign._Progress("", jobs, show=False) as progress:
        going = campaign._Campaign(jobs, store, workers, progress, math.inf)
        assert all(going._begin(job, math.inf) for job in jobs)
        futures = list(workers.running)
        workers.end(futures[first], ValueError("no number"))
        workers.end(futures[1 - first])
        with pytest.raises(ValueError, match="no number"):
            going._end(futures)
    assert [job in store for job in jobs] == [first == 1, first == 0]


def test_a_job_is_given_up_after_so_many_deaths_of_its_own(tmp_path: Path) -> None:
    job, other = jobs = [Count(number=1), Count(number=2)]
    workers = Workers(1, Clock())
    with campaign._Progress("", jobs, show=False) as progress:
        going = campaign._Campaign(jobs, Store(tmp_path), workers, progress, math.inf)
        for _ in range(campaign.DEATHS):
            assert going._ready() == jobs
            assert going._begin(job, math.inf)
            (future,) = workers.running
            workers.end(future, DeathError())
            going._end([future])
        assert going._ready() == [other]


def test_whatever_happens_nothing_is_lost_and_nothing_is_computed_twice() -> None:
    given = settings(
        max_examples=30,
        stateful_step_count=20,
        deadline=None,
        phases=[Phase.generate],  # a failure is told at once; to make it smaller takes minutes
        suppress_health_check=[HealthCheck.too_slow],
    )
    run_state_machine_as_test(Campaigns, settings=given)
