"""Notebooks as programs: their parameters, and runs of small ones."""

import json
import sys
import types
from pathlib import Path
from typing import NamedTuple

import nbformat
import pandas as pd
import pytest

from leamvd.book import sections
from leamvd.book.sections import Parameter, Section, written

CELL = """\
profile: str = "recorded"  # recorded | quick
n: int | None = None  # how many
sizes: list[int] = [1, 2]  # of what
share: float = 0.5  # of all
flag: bool = False  # or not
seeds: list[int] | None = None  # one run each
output: str = "."  # folder
"""


def notebook(
    folder: Path, body: str = "print(profile, n, sizes, share)", text: str = "Words.", **about: str
) -> Section:
    path = folder / "01_small.ipynb"
    cells = [
        nbformat.v4.new_markdown_cell(f"# Title\n\n{text}"),
        nbformat.v4.new_code_cell(CELL, metadata={"tags": ["parameters"]}),
        nbformat.v4.new_code_cell(body),
    ]
    known = {"section": "small", "title": "A small one"} | about
    content = nbformat.v4.new_notebook(cells=cells, metadata={"leamvd": known})
    path.write_text(nbformat.writes(content), encoding="utf-8")
    return sections.read_section(path)


@pytest.fixture
def section(tmp_path: Path) -> Section:
    return notebook(tmp_path)


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("n", "12", 12), ("n", "None", None), ("share", "1e-3", 0.001), ("sizes", "3, 4", [3, 4]),
        ("sizes", "[3]", [3]),
        ("flag", "true", True), ("profile", "quick", "quick"), ("seeds", "0-3,7", [0, 1, 2, 3, 7]),
    ],
)  # fmt: skip
def test_values_are_read_from_text_by_the_type_of_their_parameter(
    section: Section, name: str, text: str, value: object
) -> None:
    one = section.parameters[name]
    assert one.parse(text) == value
    assert one.parse(written(value)) == value


@pytest.mark.parametrize(("name", "text"), [("n", "1.5"), ("share", "much"), ("sizes", "1,x"), ("flag", "maybe")])
def test_a_text_of_another_type_is_refused(section: Section, name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be .*, got '{text}'"):
        section.parameters[name].parse(text)


def test_a_folder_of_images_is_named_from_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    assert Parameter("dataset", "str", "digits", "").parse("images") == str(tmp_path / "images")
    assert Parameter("dataset", "str", "digits", "").parse("mnist") == "mnist"


def test_several_values_are_several_runs(section: Section) -> None:
    ((_, sets),) = sections.requested([section], ["share=0.1,0.2", "profile=quick,recorded", "n=3"])
    assert sets == [{"profile": p, "share": s, "n": 3} for p in ("quick", "recorded") for s in (0.1, 0.2)]
    ((_, sets),) = sections.requested([section], ["sizes=1,2"])
    assert sets == [{"profile": "quick", "sizes": [1, 2]}]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["sheds=1"], "no parameter 'sheds'; did you mean 'seeds'"),
        (["n=1", "n=2"], "n is given twice"),
        (["output=x"], "output is set by --output"),
        (["n"], "must be NAME=VALUE, got 'n'"),
    ],
)
def test_what_cannot_be_meant_is_refused(section: Section, settings: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sections.requested([section], settings)
    with pytest.raises(ValueError, match="no section 'smell'; did you mean 'small'"):
        sections.load(["smell"], section.path.parent)


def test_a_run_has_its_values_in_its_parameters_cell_and_nothing_else_of_papermill(
    section: Section, tmp_path: Path
) -> None:
    folder, _ = sections.run(section, {"profile": "quick", "n": 3}, tmp_path / "results")
    content = json.loads((folder / "01_small.ipynb").read_text())
    _, parameters, code = content["cells"]
    assert "n: int | None = 3  # how many\n" in parameters["source"]
    assert "profile: str = 'quick'  # recorded | quick\n" in parameters["source"]
    assert "".join(code["outputs"][0]["text"]) == "quick 3 [1, 2] 0.5\n"
    assert [cell.get("execution_count") for cell in (parameters, code)] == [1, 2]
    assert all(cell["metadata"].keys() <= {"tags"} for cell in content["cells"])
    about = json.loads((folder / "run.json").read_text())
    assert about["command"] == "leamvd reproduce small -p profile=quick -p n=3"
    assert sections.latest(tmp_path / "results", "01_small") == folder


def test_a_finished_run_is_not_executed_again_unless_its_program_changes(tmp_path: Path) -> None:
    def executed(body: str, text: str = "Words.", **values: object) -> int:
        folder, _ = sections.run(notebook(tmp_path, body, text), values, tmp_path / "results")
        return (folder / "01_small.ipynb").stat().st_mtime_ns

    first = executed("x = 1  # one")
    assert executed("x = 1  # another comment", "Other words.") == first
    assert executed("x = 1", share=0.5) == first
    assert executed("x = 2") != first
    assert executed("x = 1", share=0.6) != first


def test_a_notebook_may_hold_commands_of_ipython(tmp_path: Path) -> None:
    folder, _ = sections.run(notebook(tmp_path, "%matplotlib inline\nprint(1)"), {}, tmp_path / "results")
    assert (folder / "01_small.ipynb").is_file()


def test_each_module_of_a_section_has_its_own_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tables(NamedTuple):
        runs: pd.DataFrame

    for name, value in (("one", 1), ("two", 2)):
        module = types.ModuleType(name)
        module.tables = lambda value=value: Tables(pd.DataFrame({"x": [value]}))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    folder, _ = sections.run(notebook(tmp_path, module="one two"), {}, tmp_path / "results")
    assert [pd.read_csv(folder / "tables" / name / "runs.csv")["x"].item() for name in ("one", "two")] == [1, 2]


def test_a_cell_that_fails_is_named_and_the_notebook_is_left(tmp_path: Path) -> None:
    section = notebook(tmp_path, "raise ValueError('no')")
    with pytest.raises(RuntimeError, match=r"01_small, cell In \[\d\]: ValueError: no\npartial notebook: ") as raised:
        sections.run(section, {}, tmp_path / "results")
    assert Path(str(raised.value).partition("partial notebook: ")[2]).is_file()
    assert sections.latest(tmp_path / "results", "01_small") is None


def test_a_notebook_without_parameters_or_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "02_other.ipynb"
    path.write_text(nbformat.writes(nbformat.v4.new_notebook()), encoding="utf-8")
    with pytest.raises(ValueError, match=r"02_other\.ipynb needs one cell tagged `parameters`"):
        sections.read_section(path)


@pytest.mark.parametrize("line", ["n = 3", "n: dict = {}  # words", "print(1)"])
def test_a_line_that_declares_no_parameter_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"not `name: type|must have a type"):
        sections.read_parameters(line)
