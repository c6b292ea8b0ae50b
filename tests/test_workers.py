"""Processes that die at their start."""

import subprocess
import sys

import pytest

DIES = """
import multiprocessing, shutil, sys
from multiprocessing import resource_tracker
from leamvd.networks.dbn import EXPERIMENT, Training
from leamvd.paper import datasets, workers
from leamvd.paper.units import Task
data = datasets.load("digits")  # more than a pipe holds
task = Task("cd", 1, 3, 0, "probabilities", Training(), EXPERIMENT)
order = workers.Order(task, [], None, 0.0, lambda: None)
resource_tracker.ensure_running()
with workers.start(data, jobs=2) as there:
    multiprocessing.set_executable(shutil.which("false"))
    futures = [there.submit(order), there.submit(order)]
    assert all(there.died(future.exception(60)) for future in futures)
    multiprocessing.set_executable(sys.executable)
    futures = [there.submit(order), there.submit(order)]
    assert [future.result(60).iteration for future in futures] == [1, 1]
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a command that fails")
def test_processes_that_die_while_they_start_are_missed_and_replaced() -> None:
    run = subprocess.run([sys.executable, "-c", DIES], capture_output=True, text=True, timeout=100, check=False)
    assert run.stdout == "done\n", run.stderr
