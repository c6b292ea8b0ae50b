"""Processes end with the one that started them, also where that one is killed."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_cli import started, write

from leamvd._support import children

PARENT = """
import subprocess, sys
from leamvd._support import children
print(subprocess.Popen(children.command("import time; time.sleep(600)")).pid, flush=True)
sys.stdin.read()
"""
# ipykernel's own look at its parent is put out; the workers tell that they are there.
SEARCH = """
import os, time
import leamvd, tell
from ipykernel import parentpoller
parentpoller.os = None
open("kernel.pid", "w").write(f"{os.getpid()}\\n")
leamvd.minimize(tell.own_pid, [0.0] * 5, workers=2, seed=0)
"""
TELL = """
import os, time
def own_pid(x):
    open(f"worker-{os.getpid()}.pid", "w").write(f"{os.getpid()}\\n")
    time.sleep(600)
"""


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended may wait for init to take note of it."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


def seconds_until_gone(pids: list[int]) -> float:
    start = time.monotonic()
    while any(map(alive, pids)) and time.monotonic() < start + 60:
        time.sleep(0.02)
    return time.monotonic() - start


pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads what Linux tells of processes")


@pytest.mark.parametrize("wait", [0.0, 0.5], ids=["starting", "running"])
def test_a_child_ends_with_its_parent(wait: float) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        time.sleep(wait)
        assert alive(child)
        parent.kill()
        assert seconds_until_gone([child]) < 5
        parent.communicate()


def test_a_child_whose_parent_is_there_runs_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "threading.py").write_text("raise RuntimeError('a module of the folder')")
    program = "import sys, time; time.sleep(0.5); print(sys.argv[1:])"
    run = subprocess.run([*children.command(program), "a", "b"], cwd=tmp_path, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (0, "['a', 'b']\n", "")


def test_a_kernel_and_its_workers_end_with_a_command_that_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "tell.py").write_text(TELL)
    write(tmp_path / "notebooks" / "01_one.ipynb", "one", SEARCH)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"), prepend=os.pathsep)
    with started(tmp_path / "notebooks", "reproduce") as process:
        deadline = time.monotonic() + 60
        while len(told := [*tmp_path.glob("results/.partial/01_one-*/*.pid")]) < 3 and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        pids = [int(path.stem.partition("-")[2] or path.read_text()) for path in told]
        assert len(pids) == 3
        assert all(map(alive, pids))
        process.send_signal(signal.SIGKILL)
        assert seconds_until_gone(pids) < 5
