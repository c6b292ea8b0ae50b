"""Units computed anywhere, in pieces, by processes that die: the same records."""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import psutil
import pytest
from click.testing import CliRunner
from small_studies import SMALL, TINY, same

from leamvd import cli
from leamvd.paper import campaign, records, workers
from leamvd.paper.pieces import Unit
from leamvd.paper.records import addresses, compute, run, store
from leamvd.paper.store import RECORDS, WEIGHTS, Store, address, checkpoint
from leamvd.paper.studies import Study, images
from leamvd.paper.units import Part
from leamvd.paper.workers import Order, WorkerError

HERE = str(Path(__file__).parent)
# A client in a process of its own: the folder, and where to compute.
CLIENT = """
import sys
from small_studies import TINY
from leamvd.paper.records import compute
if __name__ == "__main__":
    print("started", flush=True)
    compute(TINY, sys.argv[1], **eval(sys.argv[2]))
"""


def weights(study: Study, output: Path) -> dict[str, bytes]:
    folder = store(output)
    return {at.name: folder.read(at)[WEIGHTS] for at in addresses(study, images(study)).values()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    output = tmp_path_factory.mktemp("whole")
    return output, run(TINY, output)


def equals(whole: tuple[Path, pd.DataFrame], output: Path) -> None:
    """Check that everything is stored, and is what one process has computed at one go."""
    folder = store(output)
    stored = sorted(path.name for path in folder.folder.glob("[!.]*-layer*"))
    assert stored == sorted({at.name for at in addresses(TINY, images(TINY)).values()})
    assert list((folder.folder / "unfinished").glob("*")) == []
    same(run(TINY, output), whole[1])
    assert weights(TINY, output) == weights(TINY, whole[0])


# ---- in slices


def test_a_study_in_slices_of_one_iteration(
    whole: tuple[Path, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign.Campaign.run, "__kwdefaults__", {"slice_seconds": 0})
    parts: list[int] = []
    submit = workers._Here.submit

    def seen(self: Any, order: Order) -> Any:
        parts.append(order.begun.iteration if order.begun else 0)
        return submit(self, order)

    monkeypatch.setattr(workers._Here, "submit", seen)
    assert compute(TINY, tmp_path, jobs=1) == []
    n_units = len(TINY.units())
    assert sorted(parts) == [0] * n_units + [1] * n_units, "two iterations each, one at a time"
    equals(whole, tmp_path)


def test_when_time_is_over_what_is_left_is_said_and_the_next_call_goes_on(
    whole: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    assert compute(TINY, tmp_path, jobs=1, seconds=0) == TINY.units()
    left, calls = TINY.units(), 0
    while left:
        before, left = left, compute(TINY, tmp_path, jobs=1, seconds=0.05)
        assert set(left) <= set(before)
        calls += 1
        assert calls < 200
    assert calls > 3
    equals(whole, tmp_path)


def test_the_latest_of_several_checkpoints_is_gone_on_from(tmp_path: Path) -> None:
    at, folder = address("unit", {"seed": 1}), Store(tmp_path).unfinished
    for iteration in (9, 10, 2):
        folder.write(checkpoint(at, iteration), {RECORDS: b"", WEIGHTS: b""})
    folder.write(address("unit-iteration3", {}), {RECORDS: b"", WEIGHTS: b""})  # another unit's
    assert folder.checkpoints(at) == [checkpoint(at, iteration) for iteration in (10, 9, 2)]


def test_a_call_does_not_outlast_its_time_by_more_than_an_iteration() -> None:
    study = dataclasses.replace(SMALL, reading=dataclasses.replace(SMALL.reading, n_gen=2000))
    task = records.task(study, Unit("lea-mvd", "own", 1, 3))
    ticks = []
    start = time.monotonic()
    part = workers.advance(task, images(study), [], seconds=0.5, tick=lambda: ticks.append(time.monotonic()))
    assert not part.done
    assert part.iteration == len(ticks) < 2000
    assert ticks[-1] - start < 0.7, "the last one was expected to fit"
    again = workers.advance(task, images(study), [], part, seconds=0)
    assert again.iteration == part.iteration + 1


def test_units_begun_on_another_machine_are_taken_up(whole: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    for n in (1, 2, 3):  # carried from folder to folder
        compute(TINY, tmp_path / str(n), jobs=1, seconds=0.02)
        shutil.copytree(tmp_path / str(n) / "store", tmp_path / str(n + 1) / "store")
    files = list((tmp_path / "4" / "store").glob("[!.]*-layer*/*"))
    before = [path.stat().st_mtime_ns for path in files]
    compute(TINY, tmp_path / "4", jobs=1)
    assert files
    assert [path.stat().st_mtime_ns for path in files] == before
    equals(whole, tmp_path / "4")


def test_a_layer_that_is_damaged_while_the_study_runs_is_computed_again(
    whole: tuple[Path, pd.DataFrame], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    keep, damaged = campaign.Campaign._keep, []

    def damaging(self: Any, future: Any) -> None:
        unit = self._running[future].unit
        keep(self, future)
        if not damaged and unit in self._done:
            damaged.append(self._at[unit].name)
            (self._store.folder / damaged[0] / WEIGHTS).write_bytes(b"")

    monkeypatch.setattr(campaign.Campaign, "_keep", damaging)
    compute(TINY, tmp_path)
    equals(whole, tmp_path)
    said = capfd.readouterr().err
    assert f"{damaged[0]}: {WEIGHTS} is not what was stored: set aside" in said
    assert "waiting for" not in said


@pytest.mark.parametrize("name", [RECORDS, WEIGHTS])
def test_a_damaged_checkpoint_is_named_and_set_aside(
    name: str, whole: tuple[Path, pd.DataFrame], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compute(TINY, tmp_path, jobs=1, seconds=1e-3)
    while not (begun := list((tmp_path / "store" / "unfinished").glob("*-iteration1"))):
        compute(TINY, tmp_path, jobs=1, seconds=1e-3)
    (begun[0] / name).write_bytes((begun[0] / name).read_bytes()[:-9])
    compute(TINY, tmp_path, jobs=1)
    assert f"{begun[0].name}: {name} is not what was stored" in capsys.readouterr().err
    aside = tmp_path / "store" / "unfinished" / "damaged"
    assert [path.name for path in aside.glob("*/*")] == [begun[0].name]
    aside.rename(tmp_path / "damaged")
    equals(whole, tmp_path)


# ---- on several processes


def test_two_jobs(whole: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    assert compute(TINY, tmp_path, jobs=2) == []
    equals(whole, tmp_path)
    assert psutil.Process().children() == [] or all(
        "spawn_main" not in " ".join(child.cmdline()) for child in psutil.Process().children()
    )


def kill_after_submit(monkeypatch: pytest.MonkeyPatch, which: Callable[[int], bool]) -> list[Order]:
    """Kill the process of the n-th submitted unit while it computes, where `which` says so; return the orders."""
    submitted: list[Order] = []
    submit = workers._Processes.submit

    def killed(self: Any, order: Order) -> Any:
        future = submit(self, order)
        submitted.append(order)
        if which(len(submitted) - 1):
            pool = self._pools[self._futures.index(future)]
            os.kill(next(iter(pool._processes)), signal.SIGKILL)
        return future

    monkeypatch.setattr(workers._Processes, "submit", killed)
    return submitted


def test_a_process_that_is_killed_costs_its_unit_alone(
    whole: tuple[Path, pd.DataFrame],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kill_after_submit(monkeypatch, lambda n: n in (2, 7))
    assert compute(TINY, tmp_path, jobs=2) == []
    lines = [line for line in capsys.readouterr().err.splitlines() if "its process has died" in line]
    assert len(lines) == 2
    equals(whole, tmp_path)


def test_a_unit_that_kills_every_process_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted = kill_after_submit(monkeypatch, lambda n: True)
    with pytest.raises(WorkerError, match=r"seed3: its process has died 3 times; is memory short\?"):
        compute(dataclasses.replace(SMALL, methods=("cd",)), tmp_path, jobs=2)
    assert len(submitted) == 3


def test_what_is_done_is_stored_though_another_unit_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them end before the campaign looks for the first time."""

    class Workers(workers._Here):
        def size(self) -> int:
            return 4

        def submit(self, order: Order) -> Future[Part]:
            if order.task.seed != 1:
                return super().submit(order)
            future: Future[Part] = Future()
            future.set_exception(MemoryError("short"))
            return future

    def failed_first(futures: dict[Future[Part], object], **_: object) -> SimpleNamespace:
        return SimpleNamespace(done=sorted(futures, key=lambda future: future.exception() is None))

    monkeypatch.setattr(campaign, "wait", failed_first)
    study = dataclasses.replace(SMALL, methods=("cd",), layers=SMALL.layers[:1], seeds=tuple(range(4)))
    monkeypatch.setattr(workers, "start", lambda *_, **__: contextlib.nullcontext(Workers(images(SMALL))))
    with pytest.raises(MemoryError, match="short"):
        compute(study, tmp_path)
    assert n_stored(tmp_path) == 3


def test_slices_grow_where_going_on_takes_most_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit of 60 iterations, a second each, that takes as long again over all earlier ones before it goes on."""
    seconds = []

    class Workers(workers._Here):
        def submit(self, order: Order) -> Future[Part]:
            first = order.begun.iteration if order.begun else 0
            seconds.append(order.seconds)
            last = min(60, first + max(1, int(order.seconds) - first))
            future: Future[Part] = Future()
            future.set_result(Part(f"iteration,x\n{last},1\n".encode(), b"", done=last == 60))
            return future

    monkeypatch.setattr(campaign.Campaign.run, "__kwdefaults__", {"slice_seconds": 20})
    monkeypatch.setattr(workers, "start", lambda *_, **__: contextlib.nullcontext(Workers(images(SMALL))))
    compute(dataclasses.replace(SMALL, methods=("cd",), layers=SMALL.layers[:1], seeds=(0,)), tmp_path)
    assert seconds == [20, 20, 40, 40, 80], "after 20, 21, 40 and 41 iterations"


def test_an_error_in_a_process_is_the_callers(tmp_path: Path) -> None:
    task = records.task(SMALL, SMALL.units()[0])._replace(n_hidden=0)
    with workers.start(images(SMALL), jobs=2) as processes:
        future = processes.submit(Order(task, [], None, 1.0, lambda: None))
        with pytest.raises(ValueError, match="n_hidden"):
            future.result()
        assert not processes.died(ValueError())


@contextlib.contextmanager
def client(output: Path, where: dict[str, Any]) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", CLIENT, str(output), repr(where)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": HERE}) as process:
        assert process.stdout
        process.stdout.readline()
        try:
            yield process
        finally:
            process.kill()


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    start = time.monotonic()
    while not (found := condition()):
        assert time.monotonic() - start < seconds
        time.sleep(0.02)
    return found


def n_stored(output: Path) -> int:
    return len(list((output / "store").glob("[!.]*-layer*")))


def test_a_client_that_is_killed_takes_its_processes_with_it_and_loses_nothing(
    whole: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    with client(tmp_path, {"jobs": 2}) as process:
        wait_for(lambda: n_stored(tmp_path) > 2)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
    assert len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=5)
    assert alive == []
    assert compute(TINY, tmp_path, jobs=2) == []
    equals(whole, tmp_path)


# ---- on a Dask cluster


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    pytest.importorskip("distributed")
    told = tmp_path_factory.mktemp("dask") / "scheduler.json"
    with dask("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(told)):
        wait_for(lambda: told.exists() and told.read_text())
        yield json.loads(told.read_text())["address"]


@contextlib.contextmanager
def dask(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "dask", *arguments]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process
        finally:
            process.kill()


def dask_worker(scheduler: str, folder: Path) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]
    return dask("worker", scheduler, *options)


def test_dask_workers_that_come_and_are_killed(
    whole: tuple[Path, pd.DataFrame], tmp_path: Path, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The study begins on one worker, which is killed; a second one comes, and later a third one."""
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(dask_worker(scheduler, tmp_path))
        begun: list[Unit] = []
        begin = campaign.Campaign._begin

        def seen(self: Any, unit: Unit, *arguments: Any) -> bool:
            before = len(self._running)
            result = begin(self, unit, *arguments)
            if len(self._running) > before:
                begun.append(unit)
                if len(begun) == 4:  # while it computes
                    first.kill()
                    stack.enter_context(dask_worker(scheduler, tmp_path))
                elif len(begun) == 8:
                    stack.enter_context(dask_worker(scheduler, tmp_path))
            return result

        monkeypatch.setattr(campaign.Campaign, "_begin", seen)
        assert compute(TINY, tmp_path / "output", scheduler=scheduler) == []
    assert len(begun) == len(TINY.units()) + 1, "the unit of the killed worker was begun twice"
    equals(whole, tmp_path / "output")


calls: list[int] = []


def failing_at_first(*arguments: Any) -> str:
    calls.append(1)
    if len(calls) == 1:
        raise OSError("its worker was killed")
    return "computed"


def test_what_has_failed_on_a_dask_worker_is_computed_when_it_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(workers, "_advance_there", failing_at_first)
    order = Order(records.task(SMALL, SMALL.units()[0]), [], None, 1.0, lambda: None)
    options = {"n_workers": 1, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
    with (
        distributed.LocalCluster(**options) as cluster,
        workers.start(images(SMALL), scheduler=cluster.scheduler_address) as there,
    ):
        failed = there.submit(order)  # and is kept, as a campaign keeps it
        assert isinstance(failed.exception(60), OSError)
        assert there.submit(order).result(60) == "computed"


def test_a_client_of_a_dask_scheduler_that_is_killed(
    whole: tuple[Path, pd.DataFrame], tmp_path: Path, scheduler: str
) -> None:
    output = tmp_path / "output"
    with dask_worker(scheduler, tmp_path):
        with client(output, {"scheduler": scheduler}) as process:
            wait_for(lambda: n_stored(output) > 2)
            process.kill()
        assert n_stored(output) < len(TINY.units())
        assert compute(TINY, output, scheduler=scheduler) == []
    equals(whole, output)


def test_a_dask_worker_with_other_code_is_refused() -> None:
    task = records.task(SMALL, SMALL.units()[0])
    with pytest.raises(WorkerError, match="a worker must run the code and the versions of its client"):
        workers._advance_there(("another", {}), images(SMALL), task, [], None, 1.0)


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:1", "nowhere"])
def test_an_address_without_a_scheduler_is_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "CONNECT", 0.5)
    with pytest.raises(OSError, match=rf"scheduler must be .* that runs, got '{address}'"):
        compute(SMALL, tmp_path, scheduler=address)


# ---- from the command line


def test_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run", lambda *_: tmp_path)
    parameters = ["n_images=40", "layers=6,5", "methods=cd,lea-mvd", "seeds=3", "n_elite=2", "n_gen=2"]
    arguments = [part for parameter in [*parameters, "population_size=8"] for part in ("-p", parameter)]
    command = ["reproduce", "mnist-7x7", *arguments, "--output", str(tmp_path), "--jobs", "1"]
    result = CliRunner().invoke(cli.main, [*command, "--minutes", "0.0001"])
    assert result.exit_code == 0, result.output
    assert (
        "time is over; 5 of 5 units are left, and the notebook\nThe same command goes on from there." in result.output
    )
    result = CliRunner().invoke(cli.main, command)
    assert result.exit_code == 0, result.output
    assert "done in" in result.output
    assert CliRunner().invoke(cli.main, [*command, "--minutes", "0"]).exit_code == 2
    assert CliRunner().invoke(cli.main, [*command, "--jobs", "0"]).exit_code == 2


def test_a_part_knows_its_last_iteration() -> None:
    assert Part(b"iteration,x\n0,1\n12,2.5\n", b"", done=False).iteration == 12


def test_the_store_of_the_command_line_is_in_its_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(records.STORE, str(tmp_path / "elsewhere"))  # of a notebook that was opened by hand, say
    compute(SMALL, tmp_path / "output", jobs=1)
    assert not (tmp_path / "elsewhere").exists()
    assert records.expected(SMALL, tmp_path / "output", jobs=1).seconds == {}
