"""Kill `leamvd reproduce` at random moments, start it again until it is done, and compare with a run left in peace.

`make chaos` kills a hundred times and prints a table; a test, three times. What is killed is a line of `TARGETS`.
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

import nbformat
import numpy as np
import pandas as pd
import psutil

PARAMETERS = """\
profile: str = "quick"  # quick | paper: the scale
n_images: int = 300  # >= 1: training images
layers: list[int] = [12, 8]  # >= 1: hidden units
methods: list[str] = ["cd", "lea-mvd"]  # any: what is compared
seeds: list[int] = [0, 1]  # >= 0: one run per seed
n_gen: int = 30  # >= 1: epochs or generations
output: str = "results"  # PATH: where records go
"""
STUDY = """\
from leamvd.paper import comparison, intervals, records, studies
study = studies.study("mnist-7x7", profile, **studies.parameters(globals()))
table = records.run(study, output)
"""
FIGURE = """\
from leamvd.paper.figures import comparison as draw
from leamvd.paper.figures.style import save
bands, runs = intervals.bands(table, "mean_field"), comparison.runs(table, "mean_field")
save(draw.errors(bands, runs, "", ""), "errors", output)
"""
COMMAND = (
    "import sys; from pathlib import Path; from leamvd import cli; from leamvd.book import sections;"
    "sections.NOTEBOOKS = Path(sys.argv.pop(1)); cli.main()"
)


class Target(NamedTuple):
    """What is killed."""

    section: str  # whose studies the command computes; those of a section that it does not know, the kernel
    options: tuple[str, ...]
    mark: str  # in the command line of the process that is killed, which the command has started; none: the command


TARGETS = {
    "command": Target("mnist-7x7", ("--jobs", "1"), ""),
    "command with 2 jobs": Target("mnist-7x7", ("--jobs", "2"), ""),
    "a job of 2": Target("mnist-7x7", ("--jobs", "2"), "multiprocessing.spawn"),
    "kernel": Target("computed-there", (), "ipykernel"),
    "command, kernel at work": Target("computed-there", (), ""),
}


class Killed(NamedTuple):
    """What became of one kill."""

    moment: float  # seconds after the start of what was killed
    survived: float  # seconds that other processes ran on for when the command was killed


class Outcome(NamedTuple):
    """What kills of one target have led to."""

    kills: int
    starts: int
    moments: str
    identical: bool
    leftovers: list[str]
    survived: float


class Peace(NamedTuple):
    """A run that nothing is killed of."""

    content: dict[str, pd.DataFrame | np.ndarray]
    seconds: float


def peace(section: str, folder: Path) -> Peace:
    """Run a section in peace."""
    notebook(folder / "notebooks", section)
    start = time.monotonic()
    attempt(Target(section, ("--jobs", "1"), ""), folder, "peace", np.inf)
    return Peace(content(folder / "peace"), time.monotonic() - start)


def torment(target: Target, kills: int, folder: Path, chance: random.Random, whole: Peace) -> Outcome:
    """Kill that often, in as many studies as that takes, and compare each when it is complete."""
    notebook(folder / "notebooks", target.section)
    happened: list[Killed] = []
    starts, rounds, identical, leftovers = 0, 0, True, set[str]()
    while len(happened) < kills:
        rounds, done = rounds + 1, False
        while not done:
            starts += 1
            wait = chance.uniform(0, whole.seconds) if len(happened) < kills else np.inf
            done, killed = attempt(target, folder, f"{rounds}", wait)
            happened += [killed] if killed else []
        identical &= same(content(folder / f"{rounds}"), whole.content)
        leftovers |= {*left(folder / f"{rounds}"), *left(folder / "temporary")}
    moments = [killed.moment for killed in happened]
    survived = max(killed.survived for killed in happened)
    spread = f"{min(moments):.1f}-{max(moments):.1f} s"
    return Outcome(len(happened), starts, spread, identical, sorted(leftovers), survived)


def attempt(target: Target, folder: Path, output: str, seconds: float) -> tuple[bool, Killed | None]:
    """Start the command, and kill what is to be killed after some seconds; return whether it was done, and the kill."""
    (folder / "temporary").mkdir(exist_ok=True)
    command = [sys.executable, "-c", COMMAND, str(folder / "notebooks"), "reproduce", *target.options]
    command += ["--output", str(folder / output)]
    environment = os.environ | {"TMPDIR": str(folder / "temporary")}
    with (
        (folder / "said").open("w") as said,
        subprocess.Popen(command, env=environment, stdout=said, stderr=said) as process,
    ):
        while process.poll() is None and not victims(process, target.mark):
            time.sleep(0.01)
        start, killed = time.monotonic(), None
        while process.poll() is None and time.monotonic() < start + seconds:
            time.sleep(0.01)
        others = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        if found := victims(process, target.mark):
            random.choice(found).kill()
            killed = Killed(time.monotonic() - start, 0.0)
            if not target.mark:
                killed = killed._replace(survived=end(others))
        code = process.wait(120)
    if code not in (0, 1, -9) or (code and not killed):
        raise RuntimeError((folder / "said").read_text())
    return code == 0, killed


def victims(process: "subprocess.Popen[bytes]", mark: str) -> list[psutil.Process]:
    """Return the processes that are to be killed and that run now."""
    try:
        command = psutil.Process(process.pid)
        if not mark:
            return [command] if process.poll() is None else []
        return [child for child in command.children(recursive=True) if mark in " ".join(child.cmdline())]
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


def notebook(folder: Path, section: str) -> None:
    """Write the notebook that is run."""
    folder.mkdir(parents=True)
    first = nbformat.v4.new_code_cell(PARAMETERS, metadata={"tags": ["parameters"]})
    written = nbformat.v4.new_notebook(cells=[first, *map(nbformat.v4.new_code_cell, (STUDY, FIGURE))])
    written.metadata["leamvd"] = {"title": section, "section": section, "minutes": {"quick": 1, "paper": 1}}
    nbformat.write(written, folder / "01_one.ipynb")


def content(output: Path) -> dict[str, pd.DataFrame | np.ndarray]:
    """Return the records, but for seconds, and the weights of all units that are stored, and what a run shows."""
    found: dict[str, pd.DataFrame | np.ndarray] = {}
    for unit in (output / "store").glob("[!.]*-layer*"):
        found[f"{unit.name} records"] = pd.read_csv(unit / "records.csv").drop(columns="seconds")
        with np.load(unit / "weights.npz", allow_pickle=False) as arrays:
            found |= {f"{unit.name} {name}": array for name, array in arrays.items()}
    run = output / "01_one" / (output / "01_one" / "latest").read_text().strip()
    return found | {path.name: np.zeros(0) for path in run.rglob("*") if path.is_file()}


def same(a: dict[str, pd.DataFrame | np.ndarray], b: dict[str, pd.DataFrame | np.ndarray]) -> bool:
    """Return whether the same is there, to the bit."""
    return a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def left(folder: Path) -> list[str]:
    """Return what a complete run, and the temporary folder, should not hold: all that is hidden but for locks."""
    hidden = (path for path in folder.rglob("*") if path.suffix != ".lock" and path.name != ".partial")
    return [
        str(path.relative_to(folder))
        for path in hidden
        if folder.name == "temporary" or any(part.startswith(".") for part in path.relative_to(folder).parts)
    ]


def main(kills: int, seed: int) -> None:
    """Kill each target its share, and print what came of it."""
    shares = {name: len(range(place, kills, len(TARGETS))) for place, name in enumerate(TARGETS)}

    def outcome(name: str) -> Outcome:
        chance, target = random.Random(f"{name} {seed}"), TARGETS[name]
        return torment(target, shares[name], Path(scratch, name), chance, whole[target.section])

    sections = {target.section for target in TARGETS.values()}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(os.cpu_count()) as several:
        whole = {section: peace(section, Path(scratch, section)) for section in sections}
        rows = dict(zip(TARGETS, several.map(outcome, TARGETS), strict=True))
    print(pd.DataFrame.from_dict(rows, orient="index", columns=Outcome._fields).to_string())
    if not all(outcome.identical and not outcome.leftovers for outcome in rows.values()):
        sys.exit("something was lost, or left")


if __name__ == "__main__":
    main(kills=int(sys.argv[1]), seed=random.randrange(1 << 32))
