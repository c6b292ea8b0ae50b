"""The folder of the results: what each run of a section has made, and the store of units that all runs share.

``OUTPUT/SECTION/RUN`` holds the notebook, figures and tables of one set of parameters, ``OUTPUT/SECTION/latest`` names
the last run, ``OUTPUT/SECTION/sweep-*`` put runs side by side, ``OUTPUT/store`` holds the units and ``OUTPUT/.partial``
what is being run or was stopped.
"""

import contextlib
import itertools
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

PARTIAL, STORE, LATEST, ABOUT = ".partial", "store", "latest", "run.json"
SWEEP = "sweep-"
"""How the folders begin that put the runs of a sweep side by side, in the folder of their section."""


class BusyError(RuntimeError):
    """A folder that another process works in."""


def latest(output: Path, section: str) -> Path | None:
    """Return the folder of the last run of a section, given by its file's stem; None where there is none."""
    named = output / section / LATEST
    return output / section / named.read_text(encoding="utf-8").strip() if named.is_file() else None


@contextlib.contextmanager
def working_folder(output: Path, name: str) -> Iterator[Path]:
    """Make a folder of this name that no other process works in; what a run left there that was stopped is kept.

    While another process works in the folder of this name, it is another one.
    """
    from leamvd.paper.store import alone  # brings pandas, which takes long to import

    partial = output / PARTIAL
    partial.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        work = partial / (name if number == 1 else f"{name}-{number}")
        with alone(partial / f"{work.name}.lock") as ours:
            if ours:
                work.mkdir(exist_ok=True)
                yield work
                return


def publish(work: Path, output: Path, section: str, run: str) -> Path:
    """Move what is in the working folder to its place; an earlier run there had the same parameters."""
    from filelock import FileLock

    from leamvd.paper.records import write

    place, earlier = output / section / run, output / PARTIAL / f"{section}-{run}.replaced"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(output / PARTIAL / f"{section}-{run}.publish.lock"):  # two such runs may end at the same time
        shutil.rmtree(earlier, ignore_errors=True)
        if place.exists():
            place.rename(earlier)
        work.rename(place)
        write(place.parent / LATEST, f"{run}\n")
        shutil.rmtree(earlier, ignore_errors=True)  # at last, so that nothing is gone where a step fails
    return place


def superfluous(output: Path) -> list[Path]:
    """Return all that the latest runs do not need: other runs, stopped ones, damaged units and units of neither.

    Raises
    ------
    BusyError
        If a process is at work in the folder.
    """
    from leamvd.paper.store import alone

    for path in (*output.glob(f"{PARTIAL}/*.lock"), *output.glob(f"{STORE}/locks/*.lock")):
        with alone(path) as ours:
            if not ours:
                raise BusyError(f"something is running in {output}: {path.stem}")
    sections = [named.parent for named in output.glob(f"*/{LATEST}")]
    kept = [latest(output, section.name) for section in sections]
    runs = {about.parent for section in sections for about in section.glob(f"*/{ABOUT}")}
    runs |= {sweep for section in sections for sweep in section.glob(f"{SWEEP}*/")}
    studies = [study for run in kept if run for study in run.glob("study-*.json")]
    units = {unit for study in studies for unit in json.loads(study.read_text(encoding="utf-8"))["units"].values()}
    store = output / STORE
    stored = [*store.glob("*-layer*"), *store.glob(".*-layer*"), store / "damaged", store / "locks"]
    found = [*runs.difference(kept), *(path for path in stored if path.name not in units), output / PARTIAL]
    return sorted(path for path in found if path.exists())


def remove(path: Path) -> None:
    """Remove a folder, or a file that stands in the place of one."""
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
