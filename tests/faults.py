"""Plant the faults of faults.toml one at a time in a copy of the clone; the test that should catch each has to fail.

`make faults` plants all, `make faults FAULT="NAME ..."` some, and `make faults FAULT=--missing` goes on where a run was
stopped. Each test must first pass without its fault. A fault counts as caught where its test fails by an assertion, or
by the error that the table names: a module that cannot be imported, and a test that cannot be collected or set up, have
caught nothing.
"""

import csv
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from xml.etree.ElementTree import Element

import click
import pytest
from numba.core import config

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "book" / "faults.csv"
LAYERS = ("unit test", "nbval", "array", "pixel", "browser")
DIFFER = "Cell outputs differ"  # what nbval says of a notebook
FAILED = {"AssertionError", "Failed", DIFFER}  # how a test says no; the second is `pytest.fail`'s
NOTEBOOKS = "_build/nbval"  # of a copy; where notebooks run, as by `make test`
NOT_COPIED = (".git", ".venv", "_build", "results", ".hypothesis", "*_cache", "*.egg-info")

# What tests import beside the package: by a process that each test's is a fork of, which saves seconds for each.
IMPORTED = ["matplotlib.pyplot", "numba", "pandas", "scipy.stats", "sklearn"]

# Makes every interpreter find the package in the copy, where the clone is installed too.
SITE = """\
import sys
from importlib.util import spec_from_file_location
class Copy:
    @staticmethod
    def find_spec(name, path=None, target=None):
        folder = {{"leamvd": "leamvd", "leamvd.notebooks": "notebooks"}}.get(name)
        return folder and spec_from_file_location(name, f"{clone}/{{folder}}/__init__.py")
sys.meta_path.insert(0, Copy)
"""


class Fault(NamedTuple):
    """A line of the table."""

    file: str
    find: str  # stands in the file once
    put: str  # comes in its place
    layer: str  # one of `LAYERS`
    test: str  # that has to fail: a node of pytest's, or a notebook
    compiled: bool = True  # whether kernels are compiled; the test runs without too, and sooner, where it is false
    notebook: str = ""  # runs before the test, which looks at its figures
    error: str = "AssertionError"  # by which the test fails


class Result(NamedTuple):
    """A line of what is stored of the last runs."""

    fault: str
    file: str
    layer: str
    test: str
    result: str
    seconds: str  # of processor time, which a busy machine does not change


def table() -> dict[str, Fault]:
    """Return the faults by their names."""
    text = (ROOT / "tests" / "faults.toml").read_text(encoding="utf-8")
    return {name: Fault(**fields) for name, fields in tomllib.loads(text).items()}


def results() -> dict[str, Result]:
    """Return what is stored, by the faults' names."""
    if not RESULTS.exists():
        return {}
    with RESULTS.open(encoding="utf-8", newline="") as file:
        return {row["fault"]: Result(**row) for row in csv.DictReader(file)}


def store(found: Result) -> None:
    """Put a line in the place of the earlier one of its fault; lines stand in the table's order."""
    known = results() | {found.fault: found}
    with RESULTS.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(Result._fields)
        writer.writerows(known[name] for name in table() if name in known)


def faulty(fault: Fault, root: Path = ROOT) -> str:
    """Return the text of a fault's file with the fault in it."""
    text = (root / fault.file).read_text(encoding="utf-8")
    if text.count(fault.find) != 1:
        raise ValueError(f"{fault.file} must have this once, and has it {text.count(fault.find)} times: {fault.find}")
    return text.replace(fault.find, fault.put)


@contextmanager
def copied() -> Iterator[Path]:
    """Copy the clone to a temporary folder for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="leamvd-faults-") as folder:
        clone = Path(folder, "clone")
        shutil.copytree(ROOT, clone, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
        Path(folder, "sitecustomize.py").write_text(SITE.format(clone=clone), encoding="utf-8")
        os.environ |= {"PYTHONPATH": folder, "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ |= {"MPLBACKEND": "Agg", "NUMBA_NUM_THREADS": "2"}  # as conftest.py sets them, which comes too late
        os.environ.pop("LEAMVD_DATA_DIR", None)
        subprocess.run(["git", "init", "--quiet", str(clone)], check=True)  # a test asks it which files are ignored
        yield clone


@contextmanager
def planted(fault: Fault, clone: Path) -> Iterator[None]:
    """Let a copy have a fault for as long as the block lasts."""
    path = clone / fault.file
    before, status = path.read_bytes(), path.stat()
    path.write_text(faulty(fault, clone), encoding="utf-8")
    try:
        yield
    finally:
        path.write_bytes(before)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))  # by which compiled code is found again


def place(test: str) -> str:
    """Return where a test is in a copy: notebooks run in a folder of their own."""
    return f"{NOTEBOOKS}/{Path(test).name}" if test.endswith(".ipynb") else test


def reports(clone: Path, tests: Iterable[str], seconds: float, environment: Mapping[str, str]) -> list[Element]:
    """Run tests of a copy in a process of their own, for so many seconds at most; return what is reported of each."""
    shutil.rmtree(clone / NOTEBOOKS, ignore_errors=True)
    shutil.copytree(clone / "notebooks", clone / NOTEBOOKS, ignore=shutil.ignore_patterns("recorded"))
    report = clone.with_name("report.xml")
    for path in (report, clone.with_name("seconds")):
        path.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--nbval", "--nbval-current-env", f"--junitxml={report}"]
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__", *IMPORTED])
    process = context.Process(target=_run, args=(clone, [*options, *map(place, tests)], environment))
    process.start()
    try:
        process.join(seconds)
    finally:
        if process.is_alive() and process.pid:
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return list(ElementTree.parse(report).iter("testcase")) if report.exists() else []


def _run(clone: Path, arguments: list[str], environment: Mapping[str, str]) -> None:
    before = sum(os.times()[:4])
    os.setsid()
    os.chdir(clone)
    os.environ |= environment
    config.reload_config()  # numba has read some of them
    said = os.open(clone.with_name("said"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(said, stream)
    code = pytest.main(arguments)
    clone.with_name("seconds").write_text(f"{sum(os.times()[:4]) - before:.1f}")
    sys.exit(code)


def outcome(cases: Iterable[Element], test: str) -> str:
    """Return how a test ended: "passed", "skipped", "not set up", the name of an exception, `DIFFER`, or not at all."""
    path, _, name = place(test).partition("::")
    module = path.removesuffix(".py").replace("/", ".")
    found = "not run, or not in time"
    for case in cases:
        own = case.get("name", "")  # a test, the same test with any parameters, or all of its file
        if case.get("classname") != module or name not in (own, own.partition("[")[0], ""):
            continue
        found = "passed"
        for kind in case:
            match kind.tag:
                case "failure":
                    said = (kind.text or "").strip()
                    return DIFFER if DIFFER in said else said.splitlines()[-1].rpartition(": ")[2]
                case "error":
                    return "not set up"
                case "skipped":
                    return "skipped"
    return found


def settings(fault: Fault, clone: Path) -> dict[str, str]:
    """Return the environment variables of a fault's test, beside those of its kernels' cache."""
    return {
        **({} if fault.compiled else {"NUMBA_DISABLE_JIT": "1"}),
        **({"LEAMVD_RESULTS": str(clone / NOTEBOOKS)} if fault.notebook else {}),
    }


def sound(faults: Iterable[Fault], clone: Path, limit: float) -> dict[Fault, str]:
    """Return what becomes of each fault's test without the fault; tests of the same settings share a process."""
    found: dict[Fault, str] = {}
    groups: dict[tuple[tuple[str, str], ...], list[Fault]] = {}
    for fault in faults:
        groups.setdefault(tuple(settings(fault, clone).items()), []).append(fault)
    for environment, group in groups.items():
        tests = dict.fromkeys(test for fault in group for test in (fault.notebook, fault.test) if test)
        cases = reports(clone, tests, limit * len(tests), dict(environment))
        found |= {fault: outcome(cases, fault.test) for fault in group}
    return found


def plant(fault: Fault, clone: Path, limit: float) -> str:
    """Return what becomes of a fault: "caught", "ESCAPED", or why it is neither."""
    environment = settings(fault, clone)
    compiled = clone.with_name("compiled")
    if "kernel(" in (clone / fault.file).read_text(encoding="utf-8"):  # then compiled code is not the sound one's
        environment["NUMBA_CACHE_DIR"] = str(compiled)
    try:
        with planted(fault, clone):
            cases = reports(clone, [test for test in (fault.notebook, fault.test) if test], limit, environment)
    finally:
        shutil.rmtree(compiled, ignore_errors=True)
    found = outcome(cases, fault.test)
    if found in FAILED | {fault.error}:
        return "caught"
    return "ESCAPED" if found == "passed" else found


def by_all(clone: Path, limit: float) -> str:
    """Return how all tests of a copy end: "passed", "caught by" the first that fails, or not at all."""
    tests = [f"notebooks/{path.name}" for path in (clone / "notebooks").glob("*.ipynb")]
    options = ["-x", "--ignore=tests/test_faults.py"]  # in which a text that has been replaced is not found
    cases = reports(clone, [*options, "tests", *tests], limit, {"LEAMVD_RESULTS": str(clone / NOTEBOOKS)})
    failed = [case for case in cases if any(kind.tag in ("failure", "error") for kind in case)]
    if failed:
        return f"caught by {failed[0].get('classname')}::{failed[0].get('name')}"
    return "passed" if cases else "not run, or not in time"


@click.command()
@click.argument("names", nargs=-1)
@click.option("--missing", is_flag=True, help="Only faults that are not stored as caught.")
@click.option("--all", "everything", is_flag=True, help="All tests for each fault, until one fails; nothing is stored.")
@click.option("--part", nargs=2, type=click.IntRange(1), default=(1, 1), metavar="K N", help="The K-th of N shares.")
@click.option("--limit", default=900.0, show_default=True, help="Seconds for one test; for all, 20 times as many.")
def main(names: tuple[str, ...], missing: bool, everything: bool, part: tuple[int, int], limit: float) -> None:
    """Plant the faults NAMES, or all of them, and tell which escape."""
    known, before = table(), results()
    if unknown := set(names) - set(known):
        raise click.UsageError(f"there is no fault {', '.join(sorted(unknown))}")
    chosen = {name: fault for name, fault in known.items() if name in names or not names}
    if missing:
        chosen = {name: f for name, f in chosen.items() if name not in before or before[name].result != "caught"}
    chosen = dict(list(chosen.items())[part[0] - 1 :: part[1]])
    escaped = []
    with copied() as clone:
        print("first all tests without the faults", flush=True)
        if everything and (found := by_all(clone, 20 * limit)) != "passed":
            sys.exit(f"without a fault: {found}")
        without = {} if everything else sound(chosen.values(), clone, limit)
        for number, (name, fault) in enumerate(chosen.items(), start=1):
            if everything:
                with planted(fault, clone):
                    found = by_all(clone, 20 * limit).replace("passed", "ESCAPED")
            elif without[fault] == "passed":
                found = plant(fault, clone, limit)
            else:
                found = f"{without[fault]} without the fault"
            used = clone.with_name("seconds")
            seconds = used.read_text() if used.exists() else ""
            print(f"{number:3} of {len(chosen)}  {name:40} {fault.layer:9} {seconds:>6} s  {found}", flush=True)
            escaped += [] if found.startswith(("caught", "skipped")) else [name]
            if not everything and not found.startswith("skipped"):
                store(Result(name, fault.file, fault.layer, fault.test, found, seconds))
    if escaped:
        sys.exit(f"not caught: {', '.join(escaped)}")
    print(f"{len(chosen)} faults planted, none escaped")


if __name__ == "__main__":
    main()
