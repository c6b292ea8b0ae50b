"""What a run of a section says of itself in ``run.json``, and reading it back."""

import hashlib
import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import leamvd
from leamvd.book.results import LATEST, STORE, latest

if TYPE_CHECKING:
    import pandas as pd

ABOUT = "run.json"

_PACKAGES = ("leamvd", "cma", "matplotlib", "numba", "numpy", "pandas", "scikit-learn", "scipy", "torch")

_MEMBERS = {"section": str, "notebook": str, "command": str, "parameters": dict, "made_with": dict}


class NoRunError(ValueError):
    """What is no run of a section; the message says why."""


class Run(NamedTuple):
    """A run of a section: its folder, and its ``run.json``."""

    folder: Path
    about: dict[str, Any]

    @property
    def store(self) -> Path:
        """The folder that holds what its study has computed."""
        return self.folder.parents[1] / STORE

    def study(self) -> dict[str, Any] | None:
        """Return the provenance of its study, see `leamvd.experiments.records.read`; None where it has none."""
        from leamvd.experiments import records, studies

        return records.read(self.folder)[0] if studies.has_study(self.about) else None

    def table(self) -> "pd.DataFrame":
        """Return what its study has found, checked to be what was written; see `leamvd.experiments.records.run`."""
        from leamvd.experiments import records

        return records.read(self.folder)[1]["runs"]


def made_with(data: str = "") -> dict[str, str]:
    """Return what runs a section here: data, given by a checksum, code, commit, Python, the machine, all versions."""
    from leamvd.campaign import versions  # brings pandas, which takes long to import

    found = {"data": data} if data else {}
    found |= {"code": _code(Path(leamvd.__file__).parent), "commit": versions.commit() or "none"}
    found |= {"Python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    return found | {package: there for package in _PACKAGES if (there := versions.installed(package))}


def _code(package: Path) -> str:
    """Return a digest of all of a package's sources."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package).as_posix()}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def name(about: Mapping[str, Any]) -> str:
    """Return the name of a run's folder, given its ``run.json``: its profile, and a digest of all that decides on it.

    That is the notebook, its parameters, data, code, versions and machine: runs of one name have the same results.
    """
    made = {**about["made_with"], "commit": None}
    text = json.dumps([about["notebook"], about["parameters"], made], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return "-".join([*filter(None, [about["parameters"].get("profile")]), digest])


def read(path: Path) -> Run:
    """Return the run in a folder; a section's folder, or the file ``latest`` in it, stands for its last run.

    Raises
    ------
    NoRunError
        If there is none, or its ``run.json`` is not what a run writes.
    """
    section = path.parent if path.name == LATEST else path
    folder = latest(section.parent, section.name) or path
    about = folder / ABOUT
    try:
        known = json.loads(about.read_text(encoding="utf-8"))
        if not all(isinstance(known[member], kind) for member, kind in _MEMBERS.items()):
            raise TypeError
        if not isinstance(known["parameters"].get("profile", ""), str):
            raise TypeError
    except (FileNotFoundError, NotADirectoryError):
        raise NoRunError(f"{folder} is no run of a section: it has no {ABOUT}") from None
    except OSError as error:
        raise NoRunError(f"{about} cannot be read: {error.strerror}") from None
    except (KeyError, RecursionError, TypeError, ValueError):
        raise NoRunError(f"{about} is not what a run of a section writes: {', '.join(_MEMBERS)}") from None
    return Run(folder.resolve(), known)
