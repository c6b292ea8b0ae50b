"""Rows of the bench's tables, each measured by a process of its own."""

import json
import os
import re
import subprocess
import sys
import time
from typing import Any, NamedTuple

from leamvd.bench.worker import ANSWER

_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)
"""Environment variables by which libraries are told how many threads to start."""

# JAX on the processor, as the rest; and one heap of glibc's, or what compiling has freed is used again or not by chance
_ALIKE = {"JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "1"}


class Row(NamedTuple):
    """What one process measures: a row of a table, or a few that must be measured in turn.

    Attributes
    ----------
    table : str
        Where it belongs.
    function : str
        What measures it, as "module:name"; returns a list of dicts.
    arguments : dict
        Of the function; what tells this row from the table's others.
    known : dict
        Columns that need no measurement.
    threads : int
        Processors and threads that it has.
    limit : float
        Seconds after which it is stopped.
    """

    table: str
    function: str
    arguments: dict[str, Any]
    known: dict[str, Any]
    threads: int = 1
    limit: float = 60.0

    @property
    def name(self) -> str:
        """File name without an ending."""
        values = [self.table, *map(str, self.arguments.values()), f"threads{self.threads}"]
        return "-".join(re.sub(r"[^\w.]+", "-", value).strip("-") for value in values)

    def measure(self) -> dict[str, Any]:
        """Return status, rows and seconds of the measurement; without rows where the status is not "ok"."""
        request = {"function": self.function, "arguments": self.arguments, "threads": self.threads}
        # -P: modules of any name may lie in the current folder
        command = [sys.executable, "-P", "-m", "leamvd.bench.worker", json.dumps(request)]
        environment = os.environ | dict.fromkeys(_THREADS, str(self.threads)) | _ALIKE
        start = time.monotonic()
        found: dict[str, Any] = {"status": "", "rows": []}
        try:
            run = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=self.limit, check=False
            )
        except subprocess.TimeoutExpired:
            found["status"] = f"stopped after {self.limit:g} s"
        else:
            lines = [line for line in run.stdout.splitlines() if line.startswith(ANSWER)]
            found |= json.loads(lines[-1].removeprefix(ANSWER)) if lines else {"status": _death(run)}
        return found | {"seconds": time.monotonic() - start}


def _death(run: subprocess.CompletedProcess[str]) -> str:
    if run.returncode < 0:
        return f"died (signal {-run.returncode})"
    last = (run.stderr.strip().splitlines() or ["it said nothing"])[-1]
    return f"died (exit status {run.returncode}): {last}"
