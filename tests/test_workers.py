"""Processes and Dask workers that die, are stopped, run other code, or are not there."""

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import psutil
import pytest
import threadpoolctl
from chaos import end
from counting_jobs import ALONE, JOBS, ONE, TWO, Told
from test_campaign import WHOLE

from leamvd.campaign import versions, workers
from leamvd.campaign.jobs import Job, key
from leamvd.campaign.run import run
from leamvd.campaign.store import Store
from leamvd.campaign.workers import DEATHS, Go, WorkerError

PROGRAM = """
import resource, signal, sys
from counting_jobs import *
from leamvd.campaign.run import run
{before}
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell ignores it in what runs in its background
told = Told({folder!r} + "/told", {told})
print("started", flush=True)
sys.stdin.readline()
try:
    run(JOBS, {folder!r} + "/store", data={data}, {options})
except KeyboardInterrupt:
    sys.exit(130)
"""


@contextlib.contextmanager
def program(
    folder: Path, *, told: str = "", options: str = "", before: str = "", data: str = "told", go: bool = True
) -> Iterator[subprocess.Popen[str]]:
    """Start a campaign in a process, and a process group, of its own; it waits for a line unless it is to go."""
    text = PROGRAM.format(folder=str(folder), told=told, options=options, before=before, data=data)
    # a copy of the package in the folder comes first
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH"), *sys.path]))
    with subprocess.Popen(
        [sys.executable, "-P", "-c", text], env=os.environ | {"PYTHONPATH": path}, text=True, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout
        process.stdout.readline()
        if go:
            start(process)
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def start(process: "subprocess.Popen[str]") -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> None:
    start = time.monotonic()
    while not condition():
        assert time.monotonic() - start < seconds
        time.sleep(0.02)


def stored(folder: Path) -> set[Job]:
    return {job for job in JOBS if job in Store(folder)}


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(str(tmp_path / "told"))


# ---- anywhere the same


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_same_bytes_here_and_in_processes(n_jobs: int, tmp_path: Path, told: Told) -> None:
    before = psutil.Process().children()
    assert run(JOBS, tmp_path / "store", data=told, n_jobs=n_jobs, progress=False) == WHOLE
    assert sorted(told.noted()) == sorted(job.number for job in JOBS for _ in range(job.iterations))
    assert psutil.Process().children() == before or n_jobs == 2


def test_an_error_in_a_process_is_the_callers(tmp_path: Path) -> None:
    with pytest.raises(AttributeError, match="iteration"):
        run(JOBS, tmp_path, data="nothing that jobs can tell", n_jobs=2, progress=False)


# ---- what dies


@pytest.fixture(params=["processes", "dask"])
def where(request: pytest.FixtureRequest) -> dict[str, Any]:
    if request.param == "processes":
        return {"n_jobs": 2, "progress": False}
    pytest.importorskip("distributed")
    return {"n_jobs": 2, "progress": False, "scheduler": "local"}


def test_a_worker_that_is_killed_costs_its_job_alone(
    tmp_path: Path, told: Told, where: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    deadly = dataclasses.replace(told, deadly=(TWO.number,), times=2)
    assert run(JOBS, tmp_path, data=deadly, **where) == WHOLE
    said = capsys.readouterr().err
    assert said.count(f"warning: {TWO.name}: its process has died") == 2
    assert told.noted().count(TWO.number) == TWO.iterations + 2
    if "scheduler" in where:
        assert "dashboard: http" in said
    else:
        assert len(told.noted()) == sum(job.iterations for job in JOBS) + 2, "others are not computed again"


def test_a_job_that_kills_every_worker_is_given_up_alone(tmp_path: Path, told: Told, where: dict[str, Any]) -> None:
    deadly = dataclasses.replace(told, deadly=(TWO.number,), times=99)
    with pytest.raises(WorkerError, match=rf"^{TWO.name}: its process has died {DEATHS} times; is memory short\?$"):
        run(JOBS, tmp_path, data=deadly, **where)
    assert told.noted().count(TWO.number) == DEATHS
    assert stored(tmp_path) == {ONE, ALONE}, "all that does not need it"


def test_workers_that_die_at_their_start_do_not_leave_anyone_waiting(tmp_path: Path) -> None:
    """Nobody reads what they were sent, which is more than a pipe holds."""
    before = "import os; from leamvd.campaign import workers; workers.follow_parent = os._exit"
    with program(tmp_path, before=before, options="n_jobs=2", data="(told, bytes(10**6))") as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"its process has died {DEATHS} times" in said


def test_a_worker_that_starts_after_an_edit_is_refused(tmp_path: Path) -> None:
    """Results of new code do not get under the keys of the old."""
    package = tmp_path / "leamvd"
    shutil.copytree(versions.PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    told = f"deadly=(1, 2, 3, 4, 5), edited={str(package / '_support' / 'compile.py')!r}"
    with program(tmp_path, told=told, options="n_jobs=2") as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "WorkerError: a worker must run the code and versions of the process that asks, count" in said
    assert not stored(tmp_path / "store")


def test_ctrl_c_says_what_is_stored_and_ends_all_processes_quietly(tmp_path: Path) -> None:
    with program(tmp_path, told="seconds=0.2", options="n_jobs=2, label='counting'") as process:
        wait_for(lambda: stored(tmp_path / "store"))
        children = psutil.Process(process.pid).children(recursive=True)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it, to all of them
        _, said = process.communicate(timeout=30)
        assert process.returncode == 130
        assert "Traceback" not in said
        assert re.search(rf"counting: stopped; [0-3] of {len(JOBS)} jobs are stored", said)
        assert end(children) < 10


def test_a_client_that_is_killed_takes_its_processes_with_it_and_loses_nothing(tmp_path: Path, told: Told) -> None:
    with program(tmp_path, told="seconds=0.2", options="n_jobs=2") as process:
        wait_for(lambda: stored(tmp_path / "store"))
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        assert end(children) < 10
    assert len(children) >= 2
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "store").glob("count*/*")}
    assert run(JOBS, tmp_path / "store", data=told, progress=False) == WHOLE
    assert before.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / "store").glob("count*/*")}.items()


def test_two_clients_compute_every_job_once(tmp_path: Path, told: Told) -> None:
    slow: dict[str, Any] = {"told": "seconds=0.1", "go": False}
    with program(tmp_path, **slow) as one, program(tmp_path, **slow) as two:
        start(one), start(two)
        assert (one.wait(60), two.wait(60)) == (0, 0)
    assert sorted(told.noted()) == sorted(job.number for job in JOBS for _ in range(job.iterations))
    lines = Path(told.file).read_text().split()
    assert {int(line) for line in lines[::2]} == {one.pid, two.pid}, "both have their share"


def test_a_disk_that_is_full_costs_what_does_not_fit(tmp_path: Path, told: Told) -> None:
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))"  # of a file, as a full disk would cut it
    with program(tmp_path, before=limit) as process:
        _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "OSError" in said
    assert [path.name for path in (tmp_path / "store").iterdir()] == ["locks"], "nothing is stored in part"
    assert run(JOBS, tmp_path / "store", data=told, progress=False) == WHOLE


# ---- Dask

# what `distributed` does where its dashboard's port is taken, or the machine is busy
pytestmark = [
    pytest.mark.filterwarnings("ignore:Port 8787 is already in use"),
    pytest.mark.filterwarnings("ignore:Creating scratch directories"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.mark.parametrize("address", ["nonsense", "tcp://127.0.0.1:1", "tcp://127.0.0.1:99999", "http://:80"])
def test_an_address_without_a_scheduler_is_refused_at_once(address: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    start = time.monotonic()
    with pytest.raises(OSError, match=rf'^scheduler must be "local" or the address of .* that runs, got {address!r}: '):
        run(JOBS, tmp_path, scheduler=address, progress=False)
    assert time.monotonic() - start < 5


def test_a_worker_checks_what_it_would_compute_with(told: Told) -> None:
    go = Go(ALONE, "count5-of-other-code", [], None, np.inf)
    for advance in (workers._advance_there, workers._checked):
        with pytest.raises(WorkerError, match="a worker must run the code and versions of the process that asks"):
            advance(go, told)
    assert told.noted() == []


def test_a_shared_worker_has_its_threads_back_after_a_task(told: Told) -> None:
    before = threadpoolctl.threadpool_info(), numba.get_num_threads(), os.environ.get("LOKY_MAX_CPU_COUNT")
    assert workers._advance_there(Go(ALONE, key(ALONE), [], None, np.inf), told) == WHOLE[ALONE]
    assert (threadpoolctl.threadpool_info(), numba.get_num_threads(), os.environ.get("LOKY_MAX_CPU_COUNT")) == before


def test_time_on_a_queue_is_not_time_at_work(told: Told) -> None:
    go = Go(ALONE, key(ALONE), [], None, 0.5)
    time.sleep(0.6)
    assert workers._advance_there(go, told).done
