"""A store of computed units that processes share: it only grows, and what is damaged is set aside, not used."""

import contextlib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import filelock

RECORDS, WEIGHTS, MANIFEST = "records.csv", "weights.npz", "manifest.json"
"""Files of a unit; the manifest says what the unit depends on, and the SHA-256 of the other two."""

DAMAGED, LOCKS, UNFINISHED = "damaged", "locks", "unfinished"
"""Folders beside the units."""

LOCK = ".lock"
"""How locks end, see `alone`."""


class DamageError(RuntimeError):
    """A stored unit that is not what was stored, or not all of it; the message names the unit and the file."""


class Address(NamedTuple):
    """Where a unit is stored, see `address`."""

    name: str
    depends_on: dict[str, Any]


def address(words: str, depends_on: Mapping[str, Any]) -> Address:
    """Return the address of a unit: `words` for a reader, and a digest of all that the unit depends on."""
    text = json.dumps(depends_on, sort_keys=True)
    # parsed again, as a manifest is: tuples become lists
    return Address(f"{words}-{_digest(text.encode())[:16]}", json.loads(text))


def checkpoint(unit: Address, iteration: int) -> Address:
    """Return the address of what a unit goes on from after an iteration."""
    return Address(f"{unit.name}-iteration{iteration}", unit.depends_on)


class Store:
    """A folder that holds a folder for each unit, named by its address.

    Parameters
    ----------
    folder : path
        Where the store is, or will be.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __contains__(self, unit: Address) -> bool:
        return (self.folder / unit.name).exists()

    @property
    def unfinished(self) -> "Store":
        """The store of what units go on from, see `checkpoints`."""
        return Store(self.folder / UNFINISHED)

    def checkpoints(self, unit: Address) -> list[Address]:
        """Return where this store has what a unit goes on from, the latest iteration first."""
        found = [path.name.rpartition("-iteration") for path in self.folder.glob(f"{unit.name}-iteration*")]
        return [checkpoint(unit, n) for n in sorted((int(n) for _, _, n in found if n.isdecimal()), reverse=True)]

    def remove(self, unit: Address) -> None:
        """Remove a unit that this process has locked."""
        shutil.rmtree(self.folder / unit.name, ignore_errors=True)

    def lock(self, unit: Address) -> contextlib.AbstractContextManager[bool]:
        """Return a context that tells whether the unit is left to this process, see `alone`."""
        return alone(self.folder / LOCKS / f"{unit.name}{LOCK}")

    def read(self, unit: Address) -> dict[str, bytes]:
        """Return the content of a stored unit's files by their names.

        Raises
        ------
        DamageError
            If a file is missing, or is not what was stored.
        """
        files = {name: self._content(unit, name) for name in (RECORDS, WEIGHTS, MANIFEST)}
        try:
            manifest = json.loads(files.pop(MANIFEST))
            depends_on, checksums = manifest["depends_on"], dict(manifest["sha256"])
        except (ValueError, KeyError, TypeError):
            raise DamageError(f"{unit.name}: {MANIFEST} is cut or altered") from None
        if depends_on != unit.depends_on:
            raise DamageError(f"{unit.name}: {MANIFEST} is altered, or another unit's")
        for name, content in files.items():
            if checksums.get(name) != _digest(content):
                raise DamageError(f"{unit.name}: {name} is not what was stored")
        return files

    def _content(self, unit: Address, name: str) -> bytes:
        try:
            return (self.folder / unit.name / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise DamageError(f"{unit.name}: {name} is missing") from None

    def write(self, unit: Address, files: Mapping[str, bytes]) -> None:
        """Store a unit that this process has locked, so that it is there whole or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(f".{unit.name}-*"):  # by a process that was killed while it wrote
            shutil.rmtree(left)
        checksums = {name: _digest(content) for name, content in files.items()}
        manifest = {"unit": unit.name, "depends_on": unit.depends_on, "sha256": checksums}
        with tempfile.TemporaryDirectory(prefix=f".{unit.name}-", dir=self.folder) as scratch:
            folder = Path(scratch, unit.name)
            folder.mkdir()
            for name, content in (dict(files) | {MANIFEST: json.dumps(manifest, indent=2).encode()}).items():
                (folder / name).write_bytes(content)
            folder.rename(self.folder / unit.name)

    def set_aside(self, unit: Address) -> Path:
        """Move a damaged unit that this process has locked into ``damaged``, and return where it is now."""
        damaged = self.folder / DAMAGED
        damaged.mkdir(exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f"{unit.name}-", dir=damaged))
        return (self.folder / unit.name).rename(place / unit.name)


@contextlib.contextmanager
def alone(path: Path) -> Iterator[bool]:
    """Yield whether this process has the lock of this path; it has not, and knows at once, while another one has it.

    The lock of a process that is killed is released by the operating system.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(path)
    try:
        lock.acquire(timeout=0)
    except filelock.Timeout:
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
