"""What people wait for: a section's first table and its page, the same run again, and the book."""

import os
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from typing import Any

from leamvd._support import children
from leamvd.bench.cases import Case

COLUMNS = {"waiting": ("code", "what", "threads", "status", "table_seconds", "seconds")}
"""Of the table: seconds until a table of results is on the screen, and until the command has ended."""

_TABLE = "runs of each method"  # in the line above a table of results


def measure() -> list[dict[str, Any]]:
    """Wait for a newcomer's commands, one after the other; at first nothing is compiled and no result is stored."""
    with tempfile.TemporaryDirectory() as folder:
        section = ("reproduce", "mnist-7x7", "--profile", "quick", "--output")
        commands = {
            "a section, nothing compiled yet": (*section, f"{folder}/first"),
            "a section": (*section, f"{folder}/second"),
            "the same again": (*section, f"{folder}/second"),
            "the book": ("book",),
        }
        environment = {**os.environ, "NUMBA_CACHE_DIR": f"{folder}/compiled"}
        return [{"what": what} | wait(command, environment) for what, command in commands.items()]


def wait(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
    """Run a command of ``leamvd``; return the seconds until it prints a table (NaN: none) and until it ends."""
    table, start = float("nan"), time.perf_counter()
    program = [*children.command("from leamvd.cli import main; main()"), *command]
    with subprocess.Popen(
        program, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8"
    ) as run:
        for line in run.stdout or ():
            if _TABLE in line:
                table = time.perf_counter() - start
    if run.returncode:
        raise subprocess.CalledProcessError(run.returncode, ["leamvd", *command])
    return {"table_seconds": table, "seconds": time.perf_counter() - start}


def cases(profile: str) -> list[Case]:
    """Return the case of the profile "paper"; the commands take minutes."""
    known = {"code": "this run"}
    return [Case("waiting", f"{__name__}:measure", {}, known, threads=2, limit=1200)] if profile == "paper" else []
