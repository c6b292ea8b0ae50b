"""Kill a study at random moments, start it again until it is done, and compare with a run left in peace.

`make chaos` kills a hundred times and prints a table; a test, once. What is killed is a line of `TARGETS`.
"""

import os
import random
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import psutil

PROGRAM = """
import dataclasses, sys
from small_studies import SMALL
from leamvd.studies import records
reading = dataclasses.replace(SMALL.reading, n_gen=30)
study = dataclasses.replace(SMALL, n_images=1000, layers=(12, 8), seeds=(0, 1), reading=reading)
records.compute(study, sys.argv[1], n_jobs=int(sys.argv[2]), checkpoint_seconds=0.2, progress=False)
records.run(study, sys.argv[1])
"""
STORED = "*-layer[0-9]-*"


class Target(NamedTuple):
    """What is killed."""

    n_jobs: int
    mark: str  # in the command line of the process that is killed, which the program has started; none: the program


TARGETS = {"program": Target(1, ""), "program with 2 processes": Target(2, ""), "one of 2 processes": Target(2, "loky")}


class Outcome(NamedTuple):
    """What kills of one target have led to."""

    kills: int
    starts: int
    identical: bool
    leftovers: list[str]


def torment(target: Target, kills: int, folder: Path, whole: dict[str, np.ndarray], seconds: float) -> Outcome:
    """Kill that often, in as many studies as that takes, and compare each with the whole one, which took `seconds`."""
    folder.mkdir(parents=True, exist_ok=True)
    killed, starts, rounds, identical, leftovers = 0, 0, 0, True, set[str]()
    while killed < kills:
        rounds, done = rounds + 1, False
        while not done:
            starts += 1
            wait = random.uniform(0, seconds) if killed < kills else np.inf
            done, hit = attempt(target, folder, f"{rounds}", wait)
            killed += hit
        identical &= same(content(folder / f"{rounds}"), whole)
        leftovers |= {*left(folder / f"{rounds}"), *left(folder / "temporary")}
    return Outcome(killed, starts, identical, sorted(leftovers))


def attempt(target: Target, folder: Path, output: str, seconds: float) -> tuple[bool, bool]:
    """Start the program, and kill what is to be killed after some seconds; return whether it was done, and killed."""
    (folder / "temporary").mkdir(exist_ok=True)
    command = [sys.executable, "-c", PROGRAM, str(folder / output), str(target.n_jobs)]
    environment = os.environ | {"TMPDIR": str(folder / "temporary"), "PYTHONPATH": str(Path(__file__).parent)}
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(command, env=environment, stdout=said, stderr=said) as process,
    ):
        while process.poll() is None and not victims(process, target.mark):
            time.sleep(0.1)  # a look at all processes takes time too
        start = time.monotonic()
        while process.poll() is None and time.monotonic() < start + seconds:
            time.sleep(0.01)
        found = victims(process, target.mark)
        if found:
            random.choice(found).kill()
        code = process.wait(120)
    if code not in (0, -9) or (code and not found):
        raise RuntimeError((folder / "said").read_text())
    return code == 0, bool(found)


def victims(process: "subprocess.Popen[bytes]", mark: str) -> list[psutil.Process]:
    """Return the processes that are to be killed and that run now."""
    try:
        program = psutil.Process(process.pid)
        if not mark:
            return [program] if process.poll() is None else []
        commands = [(child, " ".join(child.cmdline())) for child in program.children(recursive=True)]
        return [child for child, command in commands if mark in command and "tracker" not in command]
    except psutil.Error:
        return []


def end(processes: list[psutil.Process]) -> float:
    """Wait for the end of processes, and return the seconds that takes."""
    start = time.monotonic()
    while any(map(runs, processes)) and time.monotonic() < start + 60:
        time.sleep(0.01)
    return time.monotonic() - start


def runs(process: psutil.Process) -> bool:
    """Return whether a process runs; one that has ended may wait for init to take note of it."""
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def content(output: Path) -> dict[str, np.ndarray]:
    """Return the rows, except seconds, and the arrays of all jobs, and the names of what a run writes."""
    found: dict[str, np.ndarray] = {}
    for job in (output / "store").glob(STORED):
        found[f"{job.name} rows"] = pd.read_csv(job / "rows.csv").drop(columns="seconds").to_numpy()
        with np.load(job / "arrays.npz", allow_pickle=False) as arrays:
            found |= {f"{job.name} {name}": array for name, array in arrays.items()}
    return found | {path.name: np.zeros(0) for path in output.glob("study-*")}


def same(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Return whether the same is there, to the bit."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def left(folder: Path) -> list[str]:
    """Return what a complete run, and the temporary folder, should not hold."""
    every = [path.relative_to(folder) for path in folder.rglob("*") if path.suffix != ".lock"]
    return [
        str(path)
        for path in every
        if folder.name == "temporary" or path.name.startswith(".") or path.parent.name == "checkpoints"
    ]


def peace(folder: Path) -> tuple[dict[str, np.ndarray], float]:
    """Return what a run holds that nothing is killed of, and the seconds that it takes."""
    start = time.monotonic()
    attempt(TARGETS["program"], folder, "peace", np.inf)
    return content(folder / "peace"), time.monotonic() - start


def main(kills: int) -> None:
    """Kill each target its share, and print what came of it."""
    shares = {name: len(range(place, kills, len(TARGETS))) for place, name in enumerate(TARGETS)}

    def outcome(name: str) -> Outcome:
        return torment(TARGETS[name], shares[name], Path(scratch, name), *whole)

    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as several:
        whole = peace(Path(scratch))
        rows = dict(zip(TARGETS, several.map(outcome, TARGETS), strict=True))
    print(pd.DataFrame.from_dict(rows, orient="index", columns=Outcome._fields).to_string())
    if not all(outcome.identical and not outcome.leftovers for outcome in rows.values()):
        sys.exit("something was lost, or left")


if __name__ == "__main__":
    main(kills=int(sys.argv[1]))
