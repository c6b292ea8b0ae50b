"""Run sections again and again without a fault, on other threads and as for another processor: no figure may move.

`make quiet` runs each way of `WAYS` once, `make quiet RUNS=20` so often. A comparison that fails where nothing is wrong
would soon be looked at by nobody.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import accepted

SECTIONS = ("esd", "directions")
FIGURES = [name for name, section in accepted.names("quick").items() if section in SECTIONS]
WAYS = {
    "1 thread": {"NUMBA_NUM_THREADS": "1"},
    "2 threads": {"NUMBA_NUM_THREADS": "2"},
    "2 threads, generic processor": {"NUMBA_NUM_THREADS": "2", "NUMBA_CPU_NAME": "generic"},
}


def moved(environment: dict[str, str], output: Path) -> list[str]:
    """Run the sections, and return the accepted figures that do not come out."""
    command = [sys.executable, "-m", "leamvd.cli", "reproduce", *SECTIONS, "--profile", "quick", "--jobs", "1"]
    inherited = {name: value for name, value in os.environ.items() if name != "LEAMVD_DATA_DIR"}
    subprocess.run([*command, "--output", str(output)], env=inherited | environment, check=True, capture_output=True)
    made = accepted.figures(output)
    return [
        name for name in FIGURES if name not in made or not same(accepted.place("quick") / f"{name}.json", made[name])
    ]


def same(old: Path, new: Path) -> bool:
    """Return whether two figures show the same: words, colors and arrays."""
    return not accepted.content(*(json.loads(path.read_text(encoding="utf-8")) for path in (old, new)))


def main(runs: int) -> None:
    """Run each way so often, and tell what has moved."""
    restless = False
    for run in range(1, runs + 1):
        for way, environment in WAYS.items():
            start = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                figures = moved(environment, Path(folder))
            restless |= bool(figures)
            what = f"moved: {', '.join(figures)}" if figures else "nothing moved"
            print(f"run {run} of {runs}, {way}, {time.monotonic() - start:.0f} s: {what}", flush=True)
    if restless:
        sys.exit("figures moved without a fault")


if __name__ == "__main__":
    main(int(sys.argv[1]))
