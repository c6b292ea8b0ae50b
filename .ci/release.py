"""Make what a release attaches, in `dist`: wheels and sdists of both packages as committed, the
book and the article as archives, the lock, and checksums. The same bytes come out each time.
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def main() -> None:
    """Make all files, the packages twice, in two folders."""
    if git("status", "--porcelain", "--untracked-files=no"):
        sys.exit("a release is what is committed: commit your changes first")
    # wheels keep the modes of files, and take this as their time
    os.umask(0o022)
    os.environ["SOURCE_DATE_EPOCH"] = git("log", "-1", "--format=%ct").decode().strip()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        shutil.copytree(build(Path(one)), DIST)
        again = build(Path(other))
        for path in DIST.iterdir():
            if path.read_bytes() != (again / path.name).read_bytes():
                sys.exit(f"{path.name} has other bytes when it is built again")
    for name in ("book", "article"):
        pack(ROOT / "_build" / name, DIST / f"leamvd-{name}-{project['version']}.tar.gz")
    shutil.copy(ROOT / "requirements.lock", DIST)
    lines = []
    for path in sorted(DIST.iterdir()):
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n")
    (DIST / "SHA256SUMS").write_text("".join(lines), encoding="utf-8", newline="\n")


def git(*arguments: str) -> bytes:
    """Return what git prints."""
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def build(work: Path) -> Path:
    """Build sdists of the last commit, and wheels of what is in them; return their folder."""
    made = work / "made"
    made.mkdir()
    with tarfile.open(fileobj=io.BytesIO(git("archive", "HEAD"))) as committed:
        committed.extractall(work / "source", filter="data")
    for folder in (work / "source", work / "source" / "notebooks"):
        call_setuptools("sdist", folder, work / "sdist")
        (sdist,) = (work / "sdist").iterdir()
        unpacked = work / sdist.name.removesuffix(".tar.gz")
        with tarfile.open(sdist) as archive:
            archive.extractall(work, filter="data")
        sdist.unlink()
        pack(unpacked, made / sdist.name)
        call_setuptools("wheel", unpacked, made)
    return made


def call_setuptools(kind: str, folder: Path, target: Path) -> None:
    """Build the sdist or wheel of the package in a folder."""
    program = f"from setuptools import build_meta; build_meta.build_{kind}({str(target)!r})"
    subprocess.run(
        [sys.executable, "-c", program], cwd=folder, check=True, stdout=subprocess.DEVNULL
    )


def pack(folder: Path, target: Path) -> None:
    """Write a folder as an archive, which depends on names and contents alone; the time in it is
    `SOURCE_DATE_EPOCH`.
    """
    time = int(os.environ["SOURCE_DATE_EPOCH"])
    top = target.name.removesuffix(".tar.gz")

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.mtime = time
        entry.mode = 0o644 if entry.isfile() else 0o755
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=time) as zipped,
        tarfile.open(fileobj=zipped, mode="w") as archive,
    ):
        for path in sorted(folder.rglob("*")):
            name = f"{top}/{path.relative_to(folder).as_posix()}"
            archive.add(path, name, recursive=False, filter=plain)


if __name__ == "__main__":
    main()
