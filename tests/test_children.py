"""Processes end with the one that started them, also where that one is killed."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from test_evaluation import alive

from leamvd._support import children

PARENT = """
import subprocess, sys
from leamvd._support import children
print(subprocess.Popen(children.command("import time; time.sleep(600)")).pid, flush=True)
sys.stdin.read()
"""
# ipykernel's own look at its parent is put out; the workers tell that they are there.


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
