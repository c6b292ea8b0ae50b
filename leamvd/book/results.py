"""The folder of the results: what each run of a section has made, and the store of what all runs have computed.

``OUTPUT/SECTION/RUN`` holds the notebook, figures and tables of one run, ``OUTPUT/SECTION/latest`` names the last run,
``OUTPUT/SECTION/sweep-*`` put runs side by side, ``OUTPUT/store`` holds what was computed, and ``OUTPUT/.partial`` what
is being run or was stopped. Any of these folders can be deleted when no command is at work there.
"""

import contextlib
import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

PARTIAL, STORE, LATEST = ".partial", "store", "latest"


def latest(output: Path, section: str) -> Path | None:
    """Return the folder of the last run of a section, given by its file's stem; None where there is none."""
    named = output / section / LATEST
    return named.with_name(named.read_text(encoding="utf-8").strip()) if named.is_file() else None


@contextlib.contextmanager
def working_folder(output: Path, name: str) -> Iterator[Path]:
    """Make a folder of this name that no other process works in; what a run left there that was stopped is kept.

    While another process works in the folder of this name, it is another one.
    """
    from leamvd.campaign.store import LOCK, alone  # brings pandas, which takes long to import

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
    """Move what is in the working folder to its place; an earlier run of this name is one of the same with the same."""
    from filelock import FileLock

    from leamvd.campaign.store import LOCK
    from leamvd.campaign.tables import write_whole

    place, earlier = output / section / run, output / PARTIAL / f"{section}-{run}.earlier"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(output / PARTIAL / f"{section}.publish{LOCK}"):  # two runs may end at the same time
        if place.exists():
            shutil.rmtree(earlier, ignore_errors=True)
            place.rename(earlier)
        work.rename(place)
        write_whole(place.parent / LATEST, f"{run}\n")
        shutil.rmtree(earlier, ignore_errors=True)  # at last, so that nothing is gone where a step fails
    return place
