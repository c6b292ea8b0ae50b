"""The table of planted faults fits the clone, and each of them was caught; `make faults` plants them."""

import ast
from pathlib import Path
from xml.etree.ElementTree import Element, SubElement

import faults
import pytest
from faults import Fault

ROOT = Path(__file__).parent.parent
TABLE = faults.table()


@pytest.mark.parametrize("name", TABLE)
def test_a_fault_fits_its_file_and_its_test_is_there(name: str) -> None:
    fault = TABLE[name]
    assert faults.faulty(fault) != (ROOT / fault.file).read_text(encoding="utf-8")
    assert fault.layer in faults.LAYERS
    path, _, test = fault.test.partition("::")
    if path.endswith(".py"):
        functions = [node.name for node in ast.parse((ROOT / path).read_bytes()).body if hasattr(node, "name")]
        assert test.partition("[")[0] in functions
    else:
        assert (ROOT / path).is_file()


@pytest.mark.parametrize("name", TABLE)
def test_a_fault_was_caught_when_it_was_last_planted(name: str) -> None:
    fault, found = TABLE[name], faults.results().get(name)
    assert found, f"it has not been planted: make faults FAULT={name}"
    assert (found.file, found.layer, found.test) == (fault.file, fault.layer, fault.test), "it has changed since"
    assert found.result == "caught"


def test_nothing_is_stored_of_faults_that_are_gone() -> None:
    assert list(faults.results()) == list(TABLE), "in the order of the table"


def test_every_module_of_the_optimizers_and_networks_has_a_fault() -> None:
    modules = [path for room in ("optimizers", "networks") for path in (ROOT / "leamvd" / room).glob("[!_]*.py")]
    assert {path.relative_to(ROOT).as_posix() for path in modules} <= {fault.file for fault in TABLE.values()}


def case(name: str, kind: str = "", text: str = "") -> Element:
    """Return what pytest reports of a test."""
    one = Element("testcase", classname="tests.test_one", name=name)
    if kind:
        SubElement(one, kind).text = text
    return one


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        ([case("test_a")], "passed"),
        ([case("test_a[1]"), case("test_a[2]", "failure", "E   no\n\ntests/test_one.py:3: Failed")], "Failed"),
        ([case("test_a", "failure", "x\n\nlib/numpy.py:9: AssertionError\n")], "AssertionError"),
        ([case("test_a", "failure", "x\n\ntests/test_one.py:1: NameError")], "NameError"),
        ([case("test_a", "failure", "Cell 3: Cell outputs differ\n<<<")], faults.DIFFER),
        ([case("test_a", "error", "no module")], "not set up"),
        ([case("test_a", "skipped")], "skipped"),
        ([case("test_ab", "failure", ": AssertionError")], "not run, or not in time"),
        ([], "not run, or not in time"),
    ],
)
def test_what_is_reported_of_a_test_is_told_apart(cases: list[Element], expected: str) -> None:
    assert faults.outcome(cases, "tests/test_one.py::test_a") == expected


@pytest.mark.parametrize("text", ["", "a = 1\na = 1\n"])
def test_a_fault_that_does_not_fit_is_an_error(text: str, tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=r"one.py must have this once, and has it [02] times: a = 1"):
        faults.faulty(Fault("one.py", "a = 1", "", "unit test", "tests/test_one.py::test_a"), tmp_path)


def test_a_fault_is_planted_and_the_test_runs_in_a_process_of_its_own(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    (clone / "tests").mkdir(parents=True)
    (clone / "notebooks").mkdir()
    (clone / "one.py").write_text("a = 1\n", encoding="utf-8")
    source = "def test_a():\n    one = open('one.py').read()\n    assert one != 'a = 2\\n'\n    int(one[4:])\n"
    (clone / "tests" / "test_one.py").write_text(source, encoding="utf-8")
    before = (clone / "one.py").stat().st_mtime_ns
    fault = Fault("one.py", "a = 1", "a = 2", "unit test", "tests/test_one.py::test_a")
    assert list(faults.sound([fault], clone, 300).values()) == ["passed"]
    for put, error, expected in (
        ("a = 2", "AssertionError", "caught"), ("a = 3", "AssertionError", "ESCAPED"),
        ("a = b", "AssertionError", "ValueError"), ("a = b", "ValueError", "caught"),
    ):  # fmt: skip
        assert faults.plant(fault._replace(put=put, error=error), clone, 300) == expected
        assert float((tmp_path / "seconds").read_text()) > 0
        assert (clone / "one.py").read_text() == "a = 1\n", "it is as it was"
        assert (clone / "one.py").stat().st_mtime_ns == before
    for put, first in (("a = 2", "caught by tests.test_one::test_a"), ("a = 3", "passed")):
        with faults.planted(fault._replace(put=put), clone):
            assert faults.by_all(clone, 300) == first
