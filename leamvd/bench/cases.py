"""Cases: what the bench measures in one process each, which is stored at once and put together as tables.

A process of its own has a memory peak of its own, and its end costs one case, whatever ended it.
"""

import json
import os
import pkgutil
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from leamvd._support import children

if TYPE_CHECKING:  # a case's process imports this module: what takes long to import is imported where it is used
    import pandas as pd

ANSWER = "leamvd bench: "
"""What the line with a process's answer begins with: packages print lines of their own."""

# How many threads libraries start, which they read when they are imported
_THREADS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMBA_NUM_THREADS",
)  # fmt: skip

# JAX on the processor, as the rest; and one heap of glibc's, or what compiling has freed is used again or not by chance
_ALIKE = {"JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "1"}


class Case(NamedTuple):
    """What one process measures: one row of a table, or a few that must be measured in turn."""

    table: str  # where its rows belong
    function: str  # what measures it, as "module:name"; returns a list of dicts
    arguments: dict[str, Any]  # of the function; what tells this case from the table's others
    known: dict[str, Any]  # columns that need no measurement
    threads: int = 1  # processors and threads that it has
    limit: float = 300.0  # seconds after which it is stopped

    @property
    def name(self) -> str:
        """File name without an ending."""
        values = [self.table, *map(str, self.arguments.values()), f"threads{self.threads}"]
        return "-".join(re.sub(r"[^\w.]+", "-", value).strip("-") for value in values)

    def measure(self) -> dict[str, Any]:
        """Return status, rows and seconds of the measurement; no rows where the status is not "ok"."""
        request = {"function": self.function, "arguments": self.arguments, "threads": self.threads}
        command = [*children.command(f"from {__name__} import answer; answer()"), json.dumps(request)]
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


def answer() -> None:
    """Call the function that the command line asks for, on its processors; print status and rows in one line."""
    request = json.loads(sys.argv[1])
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-request["threads"] :])
    rows: list[dict[str, Any]] = []
    try:
        rows, status = pkgutil.resolve_name(request["function"])(**request["arguments"]), "ok"
    except MemoryError as error:
        status = f"refused: {error}"
    except Exception as error:
        status = f"failed: {type(error).__name__}: {error}"
    print("\n" + ANSWER + json.dumps({"status": " ".join(status.split()), "rows": rows}), flush=True)


# ---- stored, and put together


def measure(cases: Sequence[Case], folder: Path, *, progress: bool = False) -> list[tuple[Case, dict[str, Any]]]:
    """Measure the cases that `folder` does not hold yet, each saved at once; return what was found of all of them."""
    from tqdm.auto import tqdm

    from leamvd.campaign.tables import write_whole

    found = []
    for case in tqdm(cases, desc="bench", unit="case", disable=not progress):
        path = folder / f"{case.name}.json"
        if not path.exists():
            write_whole(path, json.dumps(case.measure(), indent=1))
        found.append((case, json.loads(path.read_text(encoding="utf-8"))))
    return found


def tabulate(found: Iterable[tuple[Case, dict[str, Any]]], table: str, columns: Sequence[str]) -> "pd.DataFrame":
    """Return one of the tables; a case without numbers is there if the table has a column for its status."""
    import pandas as pd

    rows = []
    for case, answered in found:
        if case.table == table:
            base = {"threads": case.threads} | case.arguments | case.known | {"status": answered["status"]}
            nothing: list[dict[str, Any]] = [{}] if "status" in columns else []
            rows += [base | numbers for numbers in answered["rows"] or nothing]
    return pd.DataFrame(rows).reindex(columns=list(columns))
