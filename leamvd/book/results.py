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


class CleanError(RuntimeError):
    """A folder in which nothing may be removed now; the message says why, and what to do."""


def latest(output: Path, section: str) -> Path | None:
    """Return the folder of the last run of a section, given by its file's stem; None where there is none."""
    named = output / section / LATEST
    if not named.is_file():
        return None
    run = named.read_text(encoding="utf-8").strip()
    earlier = _replaced(output, section, run)  # all that is there after a kill between two renames
    return earlier if earlier.exists() and not (output / section / run).exists() else output / section / run


def _replaced(output: Path, section: str, run: str) -> Path:
    return output / PARTIAL / f"{section}-{run}.replaced"


@contextlib.contextmanager
def working_folder(output: Path, name: str) -> Iterator[Path]:
    """Make a folder of this name that no other process works in; what a run left there that was stopped is kept.

    While another process works in the folder of this name, it is another one.
    """
    from leamvd.paper.store import LOCK, alone  # brings pandas, which takes long to import

    partial = output / PARTIAL
    partial.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        work = partial / (name if number == 1 else f"{name}-{number}")
        with alone(partial / f"{work.name}{LOCK}") as ours:
            if ours:
                work.mkdir(exist_ok=True)
                yield work
                return


def publish(work: Path, output: Path, section: str, run: str) -> Path:
    """Move what is in the working folder to its place; an earlier run there had the same parameters."""
    from filelock import FileLock

    from leamvd.paper.records import write
    from leamvd.paper.store import LOCK

    place, earlier = output / section / run, _replaced(output, section, run)
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(output / PARTIAL / f"{section}.publish{LOCK}"):  # two runs may end at the same time
        for left in place.parent.glob(f".{LATEST}-*"):  # by a process that was killed while it wrote
            remove(left)
        if place.exists():
            shutil.rmtree(earlier, ignore_errors=True)
            place.rename(earlier)
        work.rename(place)
        write(place.parent / LATEST, f"{run}\n")
        shutil.rmtree(earlier, ignore_errors=True)  # at last, so that nothing is gone where a step fails
    return place


@contextlib.contextmanager
def superfluous(output: Path) -> Iterator[list[Path]]:
    """Yield all that the latest runs do not need: other runs, stopped ones, damaged units and units of neither.

    Meanwhile no other process goes on with a run that was stopped. Locks are not among it: one that is removed while a
    process waits for it would be taken twice.

    Raises
    ------
    CleanError
        If a process is at work in the folder, if it holds no results, or if what the latest runs need cannot be read.
    """
    from leamvd.paper.store import LOCK, LOCKS, alone

    sections = [named.parent for named in output.glob(f"*/{LATEST}")]
    if not sections and not (output / PARTIAL).is_dir() and any(output.iterdir()):
        raise CleanError(f"{output} holds no results: name the folder that `leamvd reproduce` has filled")
    with contextlib.ExitStack() as locked:
        for lock in output.glob(f"{STORE}/{LOCKS}/*{LOCK}"):  # thousands, too many to hold them all
            with alone(lock) as ours:
                _check_idle(ours, output, lock)
        for lock in output.glob(f"{PARTIAL}/*{LOCK}"):
            _check_idle(locked.enter_context(alone(lock)), output, lock)
        yield _superfluous(output, sections)


def _check_idle(ours: bool, output: Path, lock: Path) -> None:
    if not ours:
        raise CleanError(f"something is running in {output}: wait until {lock.stem} ends, or stop it")


def _superfluous(output: Path, sections: list[Path]) -> list[Path]:
    from leamvd.paper.store import DAMAGED, LOCK, UNFINISHED

    kept = [_needed(output, section.name) for section in sections]
    runs = {about.parent for section in sections for about in section.glob(f"*/{ABOUT}")}
    runs |= {sweep for section in sections for sweep in section.glob(f"{SWEEP}*/")}
    units = {unit for _, used in kept for unit in used}
    store, partial = output / STORE, output / PARTIAL
    stored = [*store.glob("*-layer*"), *store.glob(".*-layer*"), store / DAMAGED, store / UNFINISHED]
    found = [*runs, *(path for path in stored if path.name not in units), *output.glob(f"*/.{LATEST}-*")]
    found += (path for path in partial.glob("*") if path.suffix != LOCK)
    return sorted({path for path in found if path.exists()}.difference(run for run, _ in kept))


def _needed(output: Path, section: str) -> tuple[Path, set[str]]:
    """Return the folder of the last run of a section, and the names of the units that it has used."""
    run = latest(output, section) or output / section
    try:
        studies = [run / name for name in json.loads((run / ABOUT).read_text(encoding="utf-8"))["studies"]]
        found = [json.loads(study.read_text(encoding="utf-8"))["units"].values() for study in studies]
    except (OSError, ValueError, KeyError, TypeError):
        raise CleanError(f"{output / section / LATEST} names no whole run: run its section again, then clean") from None
    return run, {unit for units in found for unit in units}


def remove(path: Path) -> None:
    """Remove a folder, or a file or a link that stands in the place of one."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()
