"""What a file system refuses ends a command in one sentence that says what to do; the same command then carries on."""
# ruff: noqa: F811  # a fixture of another file

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from test_cli import leamvd, notebooks, started, view, write  # noqa: F401

from leamvd import cli
from leamvd.book import render, sections
from leamvd.book.failures import sentence

ADVICE = {
    errno.ENOSPC: "make room",
    errno.EDQUOT: "make room",
    errno.EFBIG: "make room",
    errno.EROFS: "name another folder",
    errno.EACCES: "name another folder",
    errno.EPERM: "name another folder",
    errno.ENOTDIR: "name another folder",
    errno.EEXIST: "name another folder",
    errno.ENAMETOOLONG: "name a shorter one",
    errno.ENOENT: "the same command carries on",
    errno.EIO: "the same command carries on",
}
# Files have at most a hundred thousand bytes, as if the disk were full.
LIMITED = """
import resource, signal, sys
from pathlib import Path
from leamvd import cli
from leamvd.book import sections
sections.NOTEBOOKS = Path(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
cli.main()
"""
LARGE = """
import os, pathlib
with (pathlib.Path(output) / "stored").open("a") as file:
    file.write("1")
(pathlib.Path(output) / "large").write_bytes(bytes(1_000_000))
"""
CELL = """\
profile: str = "quick"  # quick | paper: the scale
dataset: str = "digits"  # digits | mnist | PATH: data set
source: str = "measured"  # measured: what is shown
methods: list[str] | None = None  # any: optimizers
sizes: list[int] | None = None  # >= 1: numbers of variables
output: str = "results"  # PATH: where records go
"""
DEEP, LONG = "results/file/below", "x" * 300


def refused(result_or_run, code: int = 1) -> str:  # type: ignore[no-untyped-def]
    """Return the one line with which a command has ended."""
    status = getattr(result_or_run, "exit_code", None)
    assert (result_or_run.returncode if status is None else status) == code
    lines = [line.rpartition("\r")[2] for line in result_or_run.stderr.splitlines()]
    said = [line for line in lines if line and not line.startswith(("Executing: ", "Usage: ", "Try "))]
    assert said[0].startswith("Error: ")
    assert said[1:] == [] or said[1].startswith("partial notebook: ")
    return said[0]


@pytest.mark.parametrize("number", ADVICE)
@pytest.mark.parametrize("named", [True, False], ids=["named", "nameless"])
def test_every_refusal_says_what_to_do(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch, number: int, named: bool
) -> None:
    error = OSError(number, os.strerror(number), *["/some/place"] * named)

    def fail(*_: object) -> Path:
        raise error

    monkeypatch.setattr(sections, "run", fail)
    monkeypatch.setattr(cli, "run", fail)
    monkeypatch.setattr(render, "render", fail)
    write(notebooks / "01_one.ipynb", "one")
    for command in ("reproduce", "book"):
        line = refused(leamvd(command))
        assert line.startswith(f"Error: {os.strerror(number)}: " + ("'/some/place': " if named else ""))
        assert ADVICE[number] in line


def test_what_is_no_refusal_of_a_file_system_stays_as_it_is() -> None:
    assert sentence("n_gen must be an integer, got 3.5") == "n_gen must be an integer, got 3.5"
    assert sentence("one, cell In [2]: OSError: [Errno 30] Read-only file system: '/a'\npartial: b").splitlines() == [
        "one, cell In [2]: OSError: Read-only file system: '/a': name another folder, or change its permissions",
        "partial: b",
    ]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("reproduce", "--output", DEEP), "Not a directory"),
        (("bench", "--output", DEEP), "Not a directory"),
        (("reproduce", "--output", LONG), "name a shorter one"),
        (("reproduce", "--dataset", LONG), "name a shorter one"),
        (("data", "mnist", "--from", LONG), "name a shorter one"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_names_that_cannot_be_used(notebooks: Path, arguments: tuple[str, ...], words: str) -> None:
    Path("results").mkdir()
    Path("results/file").write_text("whole")
    write(notebooks / "01_one.ipynb", cli.BENCH, cell=CELL)
    assert words in refused(leamvd(*arguments))
    assert Path("results/file").read_text() == "whole"


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="file names are Unicode there")
@pytest.mark.parametrize(
    "arguments",
    [
        ("reproduce", "--output", "caf\udce9"),
        ("reproduce", "-p", "dataset=caf\udce9"),
        ("clean", "--output", "caf\udce9"),
        ("data", "mnist", "--from", "caf\udce9"),
        ("book", "--results", "caf\udce9"),
    ],
    ids=lambda value: "-".join(value[:2]),
)
def test_names_that_are_not_in_utf8(
    notebooks: Path, arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(notebooks / "01_one.ipynb", "one")
    Path("caf\udce9").mkdir()
    assert r"names must be in UTF-8: rename b'" in refused(leamvd(*arguments), 2)
    assert list(Path("caf\udce9").iterdir()) == []
    monkeypatch.chdir("caf\udce9")
    assert r"caf\xe9'" in refused(leamvd("reproduce"), 2)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
def test_a_full_disk_in_a_kernel_reaches_the_terminal_and_the_same_command_carries_on(
    notebooks: Path, tmp_path: Path
) -> None:
    write(notebooks / "01_one.ipynb", "one", LARGE)
    command = [sys.executable, "-c", LIMITED, str(notebooks), "reproduce"]
    line = refused(subprocess.run(command, capture_output=True, text=True, check=False))
    assert "01_one, cell In [3]: OSError: File too large" in line
    assert ADVICE[errno.EFBIG] in line
    assert not (tmp_path / "results" / "01_one").exists()
    assert leamvd("reproduce").exit_code == 0
    assert (view(tmp_path / "results") / "stored").read_text() == "11"


def test_no_home_is_needed(notebooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the folder, nor a name for it; and what lies in one changes nothing."""
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "own.py").write_text(f"open({str(tmp_path / 'read')!r}, 'w').close()")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, "/proc/nowhere")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.delenv(name)
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    write(notebooks / "01_one.ipynb", "one", "1 + 1")
    result = leamvd("reproduce")
    assert result.exit_code == 0, result.stderr
    assert "warn" not in result.stderr.lower()
    assert [path.name for path in view(tmp_path / "results").iterdir() if path.name.startswith(".")] == []
    assert not (tmp_path / "read").exists()


def test_a_reader_that_has_seen_enough_is_no_failure(notebooks: Path) -> None:
    for number in range(9):
        write(notebooks / f"0{number}_one.ipynb", f"{number}")
    with started(notebooks, "list") as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(60) in (0, 1)
