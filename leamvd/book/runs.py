"""What a run says of itself in ``run.json``, and reading it back."""

import json
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from leamvd.book.results import ABOUT, LATEST, STORE, latest

_PACKAGES = ("leamvd", "cma", "matplotlib", "numba", "numpy", "pandas", "scikit-learn", "scipy", "torch")

_MEMBERS = {"section": str, "notebook": str, "parameters": dict, "readings": dict, "made_with": dict, "studies": dict}


class NoRunError(ValueError):
    """What is no run of a section; the message says why."""


class Run(NamedTuple):
    """A run of a section: its folder, and its ``run.json``."""

    folder: Path
    about: dict[str, Any]

    @property
    def store(self) -> Path:
        """The folder that holds the units of its studies."""
        return self.folder.parents[1] / STORE


def describe(
    section: str, notebook: str, parameters: Mapping[str, object], readings: Mapping[str, str], work: Path
) -> dict[str, Any]:
    """Return what ``run.json`` holds: all that it takes to run a section again, and to tell whether it is the same.

    Parameters
    ----------
    section, notebook : str
        Its name, and the fingerprint of its program.
    parameters : mapping
        All of them, but the folder of the results.
    readings : mapping of str to str
        The content of the files that the parameters name as readings.
    work : Path
        The folder that holds its studies' provenance.
    """
    studies = {path.name: json.loads(path.read_text(encoding="utf-8")) for path in sorted(work.glob("study-*.json"))}
    return {
        "section": section,
        "notebook": notebook,
        "parameters": dict(parameters),
        "readings": dict(readings),
        "made_with": made_with(),
        "studies": {name: {k: v for k, v in known.items() if k != "units"} for name, known in studies.items()},
    }


def made_with() -> dict[str, str]:
    """Return what runs a section here: the code that computes, its commit, Python, the machine, and all versions."""
    from leamvd.paper import versions  # brings pandas, which takes long to import

    found = {"code": versions.code(), "commit": versions.commit() or "none"}
    found |= {"Python": platform.python_version(), "machine": f"{platform.system()} {platform.machine()}"}
    return found | {package: there for package in _PACKAGES if (there := versions.installed(package))}


def read(path: Path) -> Run:
    """Return the run in a folder; a section's folder, or the file ``latest`` in it, stands for its last run.

    Raises
    ------
    NoRunError
        If there is none.
    """
    section = path.parent if path.name == LATEST else path
    folder = latest(section.parent, section.name) or path
    return Run(folder.resolve(), read_about(folder / ABOUT))


def read_about(path: Path) -> dict[str, Any]:
    """Return the content of a ``run.json``.

    Raises
    ------
    NoRunError
        If it is none, or an earlier version's.
    """
    try:
        about: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if all(isinstance(about[name], kind) for name, kind in _MEMBERS.items()):
            return about
    except (FileNotFoundError, NotADirectoryError):
        raise NoRunError(f"{path.parent} is no run of a section: it has no {path.name}") from None
    except OSError as error:
        raise NoRunError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise NoRunError(f"{path} is not what a run of a section writes: it must hold {', '.join(_MEMBERS)}")
