"""Notebooks as programs: their parameters, and runs of small ones."""

import ast
import copy
import json
import os
import platform
import re
import shlex
import sys
import types
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import NamedTuple

import nbformat
import pandas as pd
import papermill
import pytest

from idx_files import TEST_LABELS, TRAIN_LABELS, fake_files, write
from leamvd_paper.book import sections
from leamvd_paper.book.sections import Parameter, Section, written
from leamvd_paper.studies import claims, esd, linear_cost, results, two_directions

CELL = """\
from typing import Optional

profile: str = "recorded"  # recorded | quick
n: Optional[int] = None  # how many
sizes: list[int] = [1, 2]  # of what
share: float = 0.5  # of all
flag: bool = False  # or not
seeds: Optional[list[int]] = None  # one run each
dataset: str = "digits"  # or a path
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
        ("n", "12", 12),
        ("share", "1e-3", 0.001),
        ("sizes", "3, 4", [3, 4]),
        ("sizes", "[3]", [3]),
        ("flag", "true", True),
        ("profile", "quick", "quick"),
        ("seeds", "0-3,7", [0, 1, 2, 3, 7]),
        ("n", "1e3", 1000),
        ("sizes", "1e3,2.0", [1000, 2]),
        ("seeds", "9007199254740993", [2**53 + 1]),
    ],
)
def test_values_are_read_from_text_by_the_type_of_their_parameter(
    section: Section, name: str, text: str, value: object
) -> None:
    one = section.parameters[name]
    assert one.parse(text) == value
    assert one.parse(written(value)) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("n", "1.5"),
        ("n", "1e999"),
        ("share", "much"),
        ("sizes", "1,x"),
        ("flag", "maybe"),
        ("seeds", "1,5-3"),
        *((name, "None") for name in ("n", "sizes", "share", "flag", "seeds", "dataset")),
        ("dataset", ""),
        ("n", ""),
        ("share", "1_5"),
        ("n", "1_0"),
        ("seeds", "1_0"),
        ("sizes", "1,1_0"),
    ],
)
def test_a_text_of_another_type_is_refused(section: Section, name: str, text: str) -> None:
    with pytest.raises(ValueError, match=f"^{name} must be .*, got '{text}'"):
        section.parameters[name].parse(text)


@pytest.mark.parametrize("known", sections.load(), ids=lambda known: known.name)
def test_papermill_reads_each_parameter_with_its_type_and_its_words(known: Section) -> None:
    read = papermill.inspect_notebook(known.path)
    found = [
        (p["name"], p["inferred_type_name"], ast.literal_eval(p["default"]), p["help"])
        for p in read.values()
    ]
    assert found == [tuple(one) for one in known.parameters.values()]


@pytest.mark.parametrize(
    "known", [one for one in sections.load() if one.name != "verdicts"], ids=lambda one: one.name
)
@pytest.mark.parametrize("value", ["[0, 1]", "cd", 7])
def test_a_list_that_is_none_is_refused_by_its_name(known: Section, value: object) -> None:
    names = [one.name for one in known.parameters.values() if "list[" in one.type]
    for module, name in product(map(import_module, known.modules), names):
        with pytest.raises(TypeError, match=re.escape(f"{name} must be a list, got {value!r}")):
            module.tables(profile="quick", **{name: value})
    with pytest.raises(TypeError, match="linear must be a list"):
        claims.Margins(linear=value)  # type: ignore[arg-type]


RUNS = {
    "esd": {"exponents": [1, 2.0, 1.0], "population_sizes": [6, 6]},
    "directions": {"generations": [5, 5], "seeds": [1, 2, 1]},
    "mnist-7x7": {
        "methods": ["lea-mvd:reset=off+sigma0=0.2", "cd", "lea-mvd:sigma0=0.2+reset=off"],
        "seeds": [0, 0],
    },
    "linear-cost": {"methods": ["lea-mvd", "lea-mvd"], "sizes": [100, 100]},
    "error-measures": {"batches": [3, 1, 3]},
    "readings": {"sizes": [20, 20]},
    "classification": {"scales": ["0.1", "0.10"]},
    "explanation": {"sigmas": [0.1, 0.1]},
    "settings-map": {"batches": [5, 5], "protocols": ["0.1/0.1", "0.1/0.1"]},
}


@pytest.mark.parametrize(
    ("name", "given"), [(name, {n: v}) for name, of in RUNS.items() for n, v in of.items()]
)
def test_a_run_that_is_named_twice_is_refused(
    name: str, given: dict[str, list[object]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for module, computing in ((results, "run_all"), (esd, "simulate"), (two_directions, "trace")):
        monkeypatch.setattr(module, computing, None)
    (known,) = sections.load([name])
    ((parameter, values),) = given.items()
    with pytest.raises(
        ValueError,
        match=f"{parameter} must be .*different values, got .*{re.escape(str(values[0]))}",
    ):
        sections.compute(known, {"profile": "quick"} | given, tmp_path)


def test_an_empty_list_is_not_the_default() -> None:
    for name in ("methods", "sizes"):
        with pytest.raises(ValueError, match=f"{name} must be a list of 1 or more"):
            linear_cost.planned("quick", **{name: []})


def test_images_of_ones_own_are_named_from_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, dict.fromkeys(["images/0", "mnist/0", "own.npz"], b""))
    monkeypatch.setenv("USERPROFILE" if os.name == "nt" else "HOME", str(tmp_path))
    for text in ("images", "~/images", "own.npz"):
        assert Parameter("dataset", "str", "digits", "").parse(text) == str(
            tmp_path / Path(text).name
        )
    assert Parameter("dataset", "str", "digits", "").parse("mnist") == "mnist"


def test_several_values_are_several_runs(section: Section) -> None:
    ((_, sets),) = sections.requested([section], ["share=0.1,0.2", "n=3,4", "dataset=/a b,c"])
    assert sets == [
        {"profile": "quick", "n": n, "share": s, "dataset": "/a b,c"}
        for n in (3, 4)
        for s in (0.1, 0.2)
    ]
    for text in ("share=0.1,0.10", "n=3,4,3.0"):
        with pytest.raises(ValueError, match="must be different values, got"):
            sections.requested([section], [text])
    ((_, sets),) = sections.requested([section], ["sizes=1,2"])
    assert sets == [{"profile": "quick", "sizes": [1, 2]}]


def test_a_run_has_its_values_in_its_parameters_cell_and_nothing_else_of_papermill(
    section: Section, tmp_path: Path
) -> None:
    folder, _ = sections.run(section, {"profile": "quick", "n": 3}, tmp_path / "results")
    content = json.loads((folder / "01_small.ipynb").read_text())
    _, parameters, code = content["cells"]
    assert "n: Optional[int] = 3  # how many\n" in parameters["source"]
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
        assert sections.latest(tmp_path / "results", "01_small") == folder
        return (folder / "01_small.ipynb").stat().st_mtime_ns

    first = executed("x = 1  # one")
    assert executed("x = 1  # another comment", "Other words.") == first
    assert executed("x = 1", share=0.5) == first
    assert executed("x = 2") != first
    assert executed("x = 1", share=0.6) != first
    assert executed("x = 1") == first  # and the latest one again


def test_each_cell_of_code_is_of_the_program_and_their_order_too(tmp_path: Path) -> None:
    path = notebook(tmp_path).path
    usual = nbformat.read(path, 4)

    def program(*sources: str) -> str:
        content = copy.deepcopy(usual)
        content.cells[2:] = [nbformat.v4.new_code_cell(source) for source in sources]
        path.write_text(nbformat.writes(content), encoding="utf-8")
        return sections.read_section(path).program

    given = [("x = 1", "y = 2"), ("x = 3", "y = 2"), ("x = 1", "y = 3"), ("y = 2", "x = 1")]
    programs = [program(*sources) for sources in (*given, ("x = 1",), ("y = 2",))]
    assert len({*programs}) == len(programs)


@pytest.mark.parametrize(
    "changed",
    ["code", "versions", "get_host_cpu_name", "one/provenance.json", TRAIN_LABELS, "output"],
)
def test_what_decides_on_a_run_is_in_its_name(
    changed: str, section: Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("USERPROFILE" if os.name == "nt" else "HOME", str(tmp_path))
    monkeypatch.setattr(results, "ARCHIVE", tmp_path)
    write(tmp_path, (files := fake_files(20, 20, side=4)) | {"one/another": b""})
    before = sections.about(section, {"dataset": "~"})["run"]
    if changed in ("one/provenance.json", TRAIN_LABELS):
        (tmp_path / changed).write_bytes(files[TEST_LABELS])
    elif changed != "output":
        module = sections if changed == "get_host_cpu_name" else results
        monkeypatch.setattr(module, changed, lambda *_: "another")
    after = sections.about(section, {"dataset": "~", "output": changed})["run"]
    assert (after == before) == (changed == "output")


def test_a_kernel_finds_what_the_command_line_does(
    section: Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The data set that is named from where the caller stands, and the results that are kept."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAMVD_DATA_DIR", "images")
    monkeypatch.setenv(results.STORE, "store")
    store = tmp_path.resolve() / "store"
    asked = []

    def noted(*given: object) -> tuple[dict[str, object], None]:
        asked.append(given[2])
        return {}, None

    def executed(*given: object) -> None:
        with sections._environment(given[3]):  # type: ignore[arg-type]
            asked.append(os.environ[results.STORE])
            asked.append(os.environ["LEAMVD_DATA_DIR"])

    monkeypatch.setattr(sections, "compute", noted)
    monkeypatch.setattr(sections, "_execute", executed)
    sections.run(section, {}, tmp_path / "results")
    assert asked == [store, str(store), str(tmp_path / "images")]
    assert os.environ["LEAMVD_DATA_DIR"] == "images"


COMPUTING = sorted({module for one in sections.load() for module in one.modules})
QUICKLY = ("claims", "esd", "linear_cost", "two_directions")  # in this process, or not at all


@pytest.mark.parametrize("name", [name for name in COMPUTING if not name.endswith(QUICKLY)])
def test_tables_are_computed_in_the_folder_and_by_the_processes_that_are_asked_for(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def computing(calls: object, folder: Path, *, n_jobs: int, **_: object) -> None:
        asked.append((folder, n_jobs))
        raise InterruptedError

    monkeypatch.setattr(results, "run_all", computing)
    with pytest.raises(InterruptedError):
        import_module(name).tables("quick", tmp_path, n_jobs=3)
    assert asked == [(tmp_path, 3)]


def test_the_version_of_pytorch_decides_on_the_runs_that_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (known,) = sections.load(["mnist-7x7"])
    monkeypatch.setattr(results, "versions", lambda *names: dict.fromkeys(names, "1"))
    for values, there in (
        ({}, False),
        ({"backend": "torch"}, True),
        ({"methods": ["lea-mvd:backend=torch"]}, True),
    ):
        versions = sections.about(known, {"profile": "quick", **values})["versions"]
        assert ({*results.PACKAGES} <= {*versions}, "torch" in versions) == (True, there)


def test_the_same_run_of_another_process_is_taken_and_what_dead_ones_left_goes(
    tmp_path: Path,
) -> None:
    body = (
        "%pwd\nimport os, platform\nown = os.path.basename(os.getcwd())[1:]\n"
        "os.makedirs('../' + own.partition('-' + platform.node())[0] + '/whole')"
    )
    folder = tmp_path / "results" / "01_small" / sections.about(notebook(tmp_path, body), {})["run"]
    # there are not so many processes; of another machine's nothing is known
    ends = (f"{platform.node()}-{2**30}", f"{platform.node()}-{os.getppid()}", f"other-{2**30}")
    left = [folder.with_name(f".{folder.name}-{end}") for end in ends]
    for path in left:
        path.mkdir(parents=True)
    assert sections.run(notebook(tmp_path, body), {}, tmp_path / "results") == (folder, False)
    # where one cannot tell it stays
    assert [path.is_dir() for path in left] == [os.name == "nt", True, True]


def test_each_module_of_a_section_has_its_own_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Tables(NamedTuple):
        runs: pd.DataFrame

    for name, value in (("one", 1), ("two", 2)):
        module = types.ModuleType(name)
        module.tables = lambda value=value: Tables(pd.DataFrame({"x": [value]}))  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, module)
    folder, _ = sections.run(notebook(tmp_path, module="one two"), {}, tmp_path / "results")
    assert [
        pd.read_csv(folder / "tables" / name / "runs.csv")["x"].item() for name in ("one", "two")
    ] == [1, 2]


def test_a_cell_that_fails_is_named_and_the_notebook_is_left(tmp_path: Path) -> None:
    section = notebook(tmp_path, "raise ValueError('no')")
    with pytest.raises(
        RuntimeError, match=r"01_small, cell In \[\d\]: ValueError: no\npartial notebook: "
    ) as raised:
        sections.run(section, {}, tmp_path / "results")
    assert Path(str(raised.value).partition("partial notebook: ")[2]).is_file()
    assert sections.latest(tmp_path / "results", "01_small") is None
    assert not (tmp_path / "results" / "01_small" / sections.about(section, {})["run"]).exists()


def test_a_notebook_without_parameters_or_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "02_other.ipynb"
    path.write_text(nbformat.writes(nbformat.v4.new_notebook()), encoding="utf-8")
    with pytest.raises(ValueError, match=r"02_other\.ipynb needs one cell tagged `parameters`"):
        sections.read_section(path)


@pytest.mark.parametrize("line", ["n = 3", "n: dict = {}  # words", "print(1)"])
def test_a_line_that_declares_no_parameter_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"not `name: type|must have a type"):
        sections.read_parameters(line)


# ---- what a run takes and is


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("flag", "False", False),
        ("flag", "TRUE", True),
        ("sizes", "", []),
        ("sizes", "['3', \"4\"]", [3, 4]),
        ("seeds", "4-4", [4]),
        ("n", "-3", -3),
    ],
)
def test_other_ways_to_write_a_value(section: Section, name: str, text: str, value: object) -> None:
    assert section.parameters[name].parse(text) == value


def test_what_a_parameter_takes_is_said_in_words(section: Section) -> None:
    kinds = {name: one.kind() for name, one in section.parameters.items()}
    several = "a whole number, or several with commas"
    assert kinds == {
        "profile": "a word",
        "n": "a whole number",
        "sizes": several,
        "share": "a number",
        "flag": "true or false",
        "seeds": f"{several}, or ranges such as 0-9",
        "dataset": "a word",
        "output": "a word",
    }


@pytest.mark.parametrize(("name", "option"), [("output", "output"), ("n_jobs", "jobs")])
def test_where_a_run_happens_is_no_setting(section: Section, name: str, option: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is set by --{option}$"):
        sections.requested([section], [f"{name}=1"])
    assert name not in section.complete({name: 1})


def test_sections_are_loaded_by_name_or_file_in_the_order_of_the_book() -> None:
    found = sections.load(["03_mnist_7x7", "esd", "mnist-7x7"])
    assert [one.path.stem for one in found] == ["01_esd", "03_mnist_7x7"]


def test_a_function_gets_what_it_takes_of_a_run_s_values() -> None:
    values = {"a": 1, "b": 2, "folder": "there", "n_jobs": 3, "output": "."}

    def some(first: int, a: int, n_jobs: int = 1) -> object:
        return first, a, n_jobs

    def any_of_them(folder: str, **others: object) -> object:
        return folder, others

    assert sections._called(some, values, 0) == (0, 1, 3)
    assert sections._called(any_of_them, values) == ("there", {"a": 1, "b": 2})


def test_a_command_makes_the_same_run_again() -> None:
    (known,) = sections.load(["mnist-7x7"])
    values = {
        "profile": "quick",
        "methods": ["lea-mvd:sigma0=0.2+reset=off", "cd"],
        "seeds": [0, 3],
        "exponent": 3.0,
        "x0": "none",
        "dataset": "digits",
    }
    made = sections.about(known, values)
    program, verb, name, *settings = shlex.split(made["command"])
    assert (program, verb, name) == ("leamvd", "reproduce", "mnist-7x7")
    assert {*settings[::2]} == {"-p"}
    ((_, sets),) = sections.requested([known], settings[1::2])
    assert [sections.about(known, again) for again in sets] == [made]
    assert made["run"].startswith("quick-")
    assert "-seeds=0,3-" in made["run"]
    assert len(made["run"]) <= 70 + len("-12345678")
    assert "n_gen" not in made["command"], "what is as usual is not named"
    assert sections.about(known, values | {"seeds": [0, 4]})["run"] != made["run"]


def test_a_last_run_that_is_gone_is_none(tmp_path: Path) -> None:
    (tmp_path / "01_small").mkdir()
    assert sections.latest(tmp_path, "01_small") is None
    (tmp_path / "01_small" / "latest").write_text("quick-1\n")
    assert sections.latest(tmp_path, "01_small") is None
    (tmp_path / "01_small" / "quick-1").mkdir()
    assert sections.latest(tmp_path, "01_small") == tmp_path / "01_small" / "quick-1"


def test_a_kernel_has_an_environment_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setenv("JUPYTER_PATH", "mine")
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.delenv("LEAMVD_DATA_DIR", raising=False)
    before = dict(os.environ)
    there: dict[str, str] = {}

    def stopped() -> None:
        with sections._environment(tmp_path):
            there.update(os.environ)
            assert Path(there["IPYTHONDIR"]).is_dir()
            os.environ["LEFT"] = "by the kernel"
            raise InterruptedError

    with pytest.raises(InterruptedError):
        stopped()
    folders = {there[f"JUPYTER_{kind}_DIR"] for kind in ("CONFIG", "DATA", "RUNTIME")}
    (folder,) = folders | {there["IPYTHONDIR"]}
    assert there["JUPYTER_PATH"] == ""
    assert (there["TQDM_DISABLE"], there["JUPYTER_PREFER_ENV_PATH"]) == ("1", "1")
    assert "inline" in there["MPLBACKEND"]
    assert there[results.STORE] == str(tmp_path)
    assert "LEAMVD_DATA_DIR" not in there
    assert dict(os.environ) == before
    assert not Path(folder).exists()


@pytest.mark.parametrize("interrupted", [False, True])
def test_a_kernel_that_dies_is_named_in_a_folder_of_any_name(
    interrupted: bool, section: Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def execute(path: str, output: str, **more: object) -> None:
        asked.append((path.format(), output.format(), more["cwd"]))
        if interrupted:
            try:
                raise KeyboardInterrupt
            except KeyboardInterrupt:
                raise RuntimeError("while it cleaned up")  # noqa: B904
        raise RuntimeError("no kernel")

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    work = tmp_path / "in {braces}"
    work.mkdir()
    place = work / "01_small.ipynb"
    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            sections._execute(section, {}, work, tmp_path)
    else:
        with pytest.raises(RuntimeError, match="01_small, the kernel died\npartial notebook: "):
            sections._execute(section, {}, work, tmp_path)
    assert asked == [(str(place), str(place), work)]
    assert place.is_file()


def test_a_name_like_no_other_is_answered_with_those_that_there_are(section: Section) -> None:
    with pytest.raises(ValueError, match=r"no section 'zzzz'; there are 01_esd, 02_directions, "):
        sections.load(["zzzz"])
    with pytest.raises(
        ValueError, match="no parameter 'zzzz'; there are dataset, flag, n, output, "
    ):
        sections.requested([section], ["zzzz=1"])
