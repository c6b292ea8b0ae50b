"""The folder of the results: what runs of sections have made, what each says of itself, and what all have computed.

``OUTPUT/SECTION/RUN`` holds the notebook, figures and tables of one run, ``OUTPUT/SECTION/latest`` names the last run,
``OUTPUT/SECTION/sweep-*`` put several values side by side, ``OUTPUT/store`` holds what was computed, and
``OUTPUT/.partial`` what is being run or was stopped. Any of these folders can be deleted when no command is at work
there.
"""

import contextlib
import itertools
import json
import platform
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from filelock import FileLock

import leamvd
from leamvd.campaign import archive, versions
from leamvd.campaign.jobs import digest
from leamvd.campaign.store import FOLDER, LOCK, alone
from leamvd.campaign.tables import write_whole

if TYPE_CHECKING:
    import pandas as pd

ABOUT, LATEST, PARTIAL = "run.json", "latest", ".partial"

SUMMARY = "summary.csv"
"""Of a run, or of a sweep: the final errors that it ends with."""

LONGEST = 80
"""Characters of a folder's name."""

_PACKAGES = ("leamvd", "cma", "matplotlib", "numba", "numpy", "pandas", "scikit-learn", "scipy", "torch")

_MEMBERS = {"section": str, "notebook": str, "command": str, "parameters": dict, "made_with": dict}


class NoRunError(ValueError):
    """What is no run of a section; the message says why."""


class Data(NamedTuple):
    """The images that a run rests on; empty where it rests on none."""

    name: str = ""  # digits, mnist, or the path of a folder
    checksum: str = ""


NO_DATA = Data()


class Run(NamedTuple):
    """A run of a section: its folder, and its ``run.json``."""

    folder: Path
    about: dict[str, Any]

    @property
    def store(self) -> Path:
        """The folder that holds what its study has computed."""
        return self.folder.parents[1] / FOLDER

    def study(self) -> dict[str, Any] | None:
        """Return the provenance of its study, see `leamvd.studies.records.read`; None where it has none."""
        from leamvd.studies import catalog, records

        return records.read(self.folder)[0] if catalog.has_study(self.about) else None

    def table(self) -> "pd.DataFrame":
        """Return what its study has found, checked to be what was written."""
        from leamvd.studies import records

        return records.read(self.folder)[1]["runs"]


def made_with(data: str = "") -> dict[str, str]:
    """Return what runs a section here: data by a checksum, code, archive, commit, Python, the machine, all versions."""
    found = {"data": data} if data else {}
    found |= {"code": _content(Path(leamvd.__file__).parent, "**/*.py"), "archive": _content(archive.folder(""), "*/*")}
    found |= {"commit": versions.commit() or "none"}
    found |= {"Python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    return found | {package: there for package in _PACKAGES if (there := versions.installed(package))}


def _content(folder: Path, pattern: str) -> str:
    """Return a digest of all files of a folder that match a pattern, and of their names."""
    files = sorted(path for path in folder.glob(pattern) if path.is_file())
    named = (f"{path.relative_to(folder).as_posix()}\0".encode() + path.read_bytes() for path in files)
    return digest(b"".join(named))[:16]


def name(about: Mapping[str, Any], label: str) -> str:
    """Return the name of a run's folder, given its ``run.json``: a label, cut if need be, and a digest.

    The digest is of all that decides on the run, the notebook, its parameters, data, code, what is recorded, versions
    and machine: runs of one name have the same results.
    """
    end = f"-{digest(_decisive(about).encode())[:8]}"
    return (re.sub(r"[^\w.,=+-]+", "-", label)[: LONGEST - len(end)] + end).removeprefix("-")


def _decisive(about: Mapping[str, Any]) -> str:
    made = {**about["made_with"], "commit": None}
    return json.dumps([about["notebook"], about["parameters"], made], sort_keys=True)


def alike(output: Path, section: str, about: Mapping[str, Any]) -> list[Run]:
    """Return what has been made of the same, whatever the data, given the ``run.json`` that it would have."""
    found = []
    for path in sorted((output / section).glob(f"*/{ABOUT}")):
        with contextlib.suppress(NoRunError):
            run = read(path.parent)
            data = {name: value for name, value in run.about["made_with"].items() if name == "data"}
            if _decisive({**about, "made_with": about["made_with"] | data}) == _decisive(run.about):
                found.append(run)
    return found


def latest(output: Path, section: str) -> Path | None:
    """Return the folder of the last run of a section, given by its file's stem; None where there is none any more."""
    named = output / section / LATEST
    found = named.with_name(named.read_text(encoding="utf-8").strip()) if named.is_file() else None
    return found if found and found.is_dir() else None


def read(path: Path) -> Run:
    """Return the run in a folder; a section's folder, or the file ``latest`` in it, stands for its last run."""
    section = path.parent if path.name == LATEST else path
    folder = latest(section.parent, section.name) or path
    about = folder / ABOUT
    try:
        known = json.loads(about.read_text(encoding="utf-8"))
        profile = known["parameters"].get("profile", "")
        if not isinstance(profile, str) or not all(isinstance(known[name], kind) for name, kind in _MEMBERS.items()):
            raise TypeError
    except (FileNotFoundError, NotADirectoryError):
        raise NoRunError(f"{folder} is no run of a section: it has no {ABOUT}") from None
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        raise NoRunError(f"{about} is not what a run of a section writes: {', '.join(_MEMBERS)}") from None
    return Run(folder.resolve(), known)


@contextlib.contextmanager
def working_folder(output: Path, name: str) -> Iterator[Path]:
    """Make a folder of this name that no other process works in; what a run left there that was stopped is kept.

    While another process works in the folder of this name, it is another one.
    """
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
    place, earlier = output / section / run, output / PARTIAL / f"{section}-{run}.earlier"
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(output / PARTIAL / f"{section}.publish{LOCK}"):  # two runs may end at the same time
        if place.exists():
            shutil.rmtree(earlier, ignore_errors=True)
            place.rename(earlier)
        work.rename(place)
        mark(place)
        shutil.rmtree(earlier, ignore_errors=True)  # at last, so that nothing is gone where a step fails
    return place


def mark(place: Path) -> None:
    """Make a run the last one of its section."""
    write_whole(place.parent / LATEST, f"{place.name}\n")
