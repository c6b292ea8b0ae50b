"""A store of results that processes share: it only grows, and what is damaged is set aside, not used."""

import contextlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import filelock

from leamvd.campaign.jobs import Job, Result, depends_on, digest, key

ROWS, ARRAYS, MANIFEST = "rows.csv", "arrays.npz", "manifest.json"
"""Files of a result; the manifest says what the job depends on, and the SHA-256 of the other two."""

DAMAGED, LOCKS, CHECKPOINTS = "damaged", "locks", "checkpoints"
"""Folders beside the results."""

LOCK = ".lock"
"""How locks end, see `alone`."""

FOLDER = "store"
"""Of the store, in a folder of results."""

STORE = "LEAMVD_STORE"
"""Environment variable that names the folder where everything that runs here stores its results."""


class DamageError(RuntimeError):
    """A stored result that is not what was stored, or not all of it; the message names the job and the file."""


def place(output: str | Path) -> Path:
    """Return the folder of the store that belongs to a folder of results, unless the environment names another."""
    return Path(os.environ.get(STORE) or Path(output) / FOLDER)


def altered(folder: Path, checksums: Mapping[str, str]) -> list[str]:
    """Return which files of a folder, of those that have a SHA-256 by their names, are not what was written."""
    return [name for name, checksum in checksums.items() if digest((folder / name).read_bytes()) != checksum]


class Store:
    """A folder that holds a folder for each result, named by the key of its job; and another one for checkpoints."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def __contains__(self, job: Job) -> bool:
        return os.path.lexists(self.folder / key(job))  # a link to nothing is damaged, not free

    def lock(self, job: Job) -> contextlib.AbstractContextManager[bool]:
        """Return a context that tells whether the job is left to this process, see `alone`."""
        return alone(self.folder / LOCKS / f"{key(job)}{LOCK}")

    def read(self, job: Job) -> Result:
        """Return the stored result of a job; a `DamageError` says which file is missing, or not what was stored."""
        return _read(self.folder / key(job), job, job.iterations, done=True)

    def write(self, job: Job, result: Result) -> None:
        """Store the result, or a checkpoint, of a job that this process has locked: whole or not at all.

        Earlier checkpoints of the job are removed then.
        """
        earlier = self._checkpoints(job)
        place = self.folder / key(job) if result.done else self._checkpoint(job, result.iteration)
        place.parent.mkdir(parents=True, exist_ok=True)
        for left in place.parent.glob(f".{place.name}-*"):  # by a process that was killed while it wrote
            shutil.rmtree(left)
        files = {ROWS: result.rows, ARRAYS: result.arrays}
        sums = {name: digest(content) for name, content in files.items()}
        manifest = {"key": key(job), "depends_on": depends_on(job), "sha256": sums}
        with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as scratch:
            folder = Path(scratch, place.name)
            folder.mkdir()
            for name, content in (files | {MANIFEST: json.dumps(manifest, indent=2).encode()}).items():
                (folder / name).write_bytes(content)
            folder.rename(place)
        for old in earlier:
            if old.is_dir() and not old.is_symlink():
                shutil.rmtree(old, ignore_errors=True)
            else:  # damaged: a file or a link in the place of a folder
                old.unlink(missing_ok=True)

    def checkpoint(self, job: Job) -> tuple[Result | None, list[DamageError]]:
        """Return the latest checkpoint of a job that this process has locked, and why damaged ones were set aside."""
        damaged: list[DamageError] = []
        for place in self._checkpoints(job):
            try:
                return _read(place, job, int(place.name.rpartition("-iteration")[2]), done=False), damaged
            except DamageError as error:
                self._move(place)
                damaged.append(error)
        return None, damaged

    def set_aside(self, job: Job) -> Path:
        """Move the damaged result of a job that this process has locked, and return where it is now."""
        return self._move(self.folder / key(job))

    def _move(self, place: Path) -> Path:
        damaged = self.folder / DAMAGED
        damaged.mkdir(exist_ok=True)
        return place.rename(Path(tempfile.mkdtemp(prefix=f"{place.name}-", dir=damaged)) / place.name)

    def _checkpoint(self, job: Job, iteration: int) -> Path:
        return self.folder / CHECKPOINTS / f"{key(job)}-iteration{iteration}"

    def _checkpoints(self, job: Job) -> list[Path]:
        """Return where checkpoints of a job are, the latest one first."""
        found = (self.folder / CHECKPOINTS).glob(f"{key(job)}-iteration*")
        numbered = [(path.name.rpartition("-iteration")[2], path) for path in found]
        return [path for _, path in sorted(((int(n), path) for n, path in numbered if n.isdecimal()), reverse=True)]


def _read(place: Path, job: Job, iteration: int, *, done: bool) -> Result:
    """Return what is stored in a folder, checked to be the job's and what was stored."""
    files = {}
    for name in (ROWS, ARRAYS, MANIFEST):
        try:
            files[name] = (place / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            raise DamageError(f"{place.name}: {name} is missing") from None
    try:
        manifest = json.loads(files.pop(MANIFEST))
        known, sums = manifest["depends_on"], dict(manifest["sha256"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamageError(f"{place.name}: {MANIFEST} is cut or altered") from None
    if known != depends_on(job):
        raise DamageError(f"{place.name}: {MANIFEST} is altered, or another job's")
    for name, content in files.items():
        if sums.get(name) != digest(content):
            raise DamageError(f"{place.name}: {name} is not what was stored")
    return Result(files[ROWS], files[ARRAYS], iteration, done)


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
