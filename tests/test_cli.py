"""The command line, on tiny notebooks; the real ones are run by nbval."""

import asyncio
import gc
import json
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pandas as pd
import papermill
import psutil
import pytest
from quick_runs import execute, leamvd, view
from small_book import glued

from leamvd import cli
from leamvd.book import render, reproduction, runs, sections
from leamvd.book.parameters import Parameter, ParameterError, read_parameters
from leamvd.campaign import archive, versions
from leamvd.data import images
from leamvd.data.images import load
from leamvd.studies import recording

CELL = """\
profile: str = "quick"  # quick | paper: the scale
n_gen: int | None = None  # >= 1: generations
exponents: list[float] = [0.0, 1.5]  # of the weights
scales: list[float] | None = None  # of random weights
seeds: list[int] | None = None  # one run per seed
layers: list[int] = [30]  # units
rate: float = 0.1  # of learning
shuffle: bool = True  # whether to shuffle
dataset: str = "digits"  # digits | mnist | PATH: data set
output: str = "results"  # PATH: where tables go
"""
PARAMETERS = read_parameters(CELL)
# One line per run; it stops after the first, the way a killed run would, until `go` exists.
WORK = """\
import os, pathlib, sys, time
records = pathlib.Path(output) / "records.csv"
with records.open("a") as file:
    file.write(f"{n_gen} {exponents} {profile} {dataset}\\n")
"""
WAIT = """\
go = pathlib.Path(dataset) / "go"
while not go.exists():
    time.sleep(0.05)
"""


def write(path: Path, name: str, *code: str, cell: str = CELL) -> None:
    first = nbformat.v4.new_code_cell(cell, metadata={"tags": ["parameters", "hide-input"]})
    notebook = nbformat.v4.new_notebook(cells=[first, *map(nbformat.v4.new_code_cell, code)])
    notebook.metadata["leamvd"] = {"title": f"Section {name}", "section": name}
    nbformat.write(notebook, path)


@pytest.fixture
def notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # what a user's shell may hold; a run overrides it, and it is taken back at the end
    shell = {"MPLBACKEND": "Agg", "JUPYTER_PREFER_ENV_PATH": "0", "PYDEVD_DISABLE_FILE_VALIDATION": ""}
    for name, value in shell.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    monkeypatch.setattr(sections, "NOTEBOOKS", folder)
    monkeypatch.chdir(tmp_path)
    return folder


@pytest.fixture
def no_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "_execute", execute)


@pytest.fixture
def nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "run", lambda *_: pytest.fail("ran"))


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Run the command in a process of its own, which can be killed."""
    program = (
        # a shell that starts the tests in the background has them ignore Ctrl-C, and their children too
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from pathlib import Path; from leamvd import cli; from leamvd.book import sections;"
        f"sections.NOTEBOOKS = Path({str(folder)!r}); cli.main()"
    )
    command = [sys.executable, "-c", program, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_for(pattern: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not any(path.read_text().endswith("\n") for path in Path().glob(pattern)):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, f"{pattern} was never written"
        time.sleep(0.02)


# ---- parameters


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("profile", "paper", "paper"), ("n_gen", "2", 2), ("n_gen", "0", 0), ("n_gen", "None", None),
        ("exponents", "0,1.5, 3", [0.0, 1.5, 3.0]), ("exponents", "[1e-3]", [0.001]), ("scales", "", []),
        ("rate", "1e-3", 0.001), ("shuffle", "false", False), ("dataset", "mnist", "mnist"),
        ("dataset", ".", str(Path.cwd())), ("seeds", "0-2,7", [0, 1, 2, 7]), ("seeds", "9, 3-4 ,0", [9, 3, 4, 0]),
        ("seeds", "[5-5]", [5]), ("seeds", "None", None),
    ],
)  # fmt: skip
def test_value_of_a_parameter(name: str, text: str, value: object) -> None:
    parsed = PARAMETERS[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("profile", "fast", "quick or paper"),
        *(("n_gen", text, "a whole number or left out") for text in ("3.0", "")),
        ("rate", "abc", "a number"), ("shuffle", "1", "true or false"),
        *(("exponents", text, "a number or several with commas") for text in ("1,,2", "", "None")),
        ("layers", "30-30", "a whole number or several with commas"),
        ("dataset", "no/such/folder", "digits, mnist or the path of something that exists"),
        ("dataset", "x" * 300, "digits, mnist or the path of something that exists"),
        *(("seeds", text, "a whole number, a range such as 0-29 of up to 10,000, several with commas or left out")
          for text in ("4-0", "0-", "0-1-2", "a-b", "0-1e3", "0--2", "0-99999999999", "1.5-2")),
    ],
)  # fmt: skip
def test_value_that_a_parameter_refuses(name: str, text: str, rule: str) -> None:
    with pytest.raises(ParameterError) as caught:
        PARAMETERS[name].parse(text)
    assert str(caught.value) == f"{name} must be {rule}, got {text!r}"


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("seeds", [0, 1, 2, 7, 9, 8], "0-2,7,9,8"), ("seeds", [5], "5"), ("layers", [30, 31], "30,31"),
        ("exponents", [0.0, 1.5, 1e-05], "0,1.5,1e-05"), ("rate", 0.1 + 0.2, "0.30000000000000004"),
        ("dataset", "v1.0", "v1.0"), ("n_gen", None, "None"), ("shuffle", False, "False"),
    ],
)  # fmt: skip
def test_a_value_is_written_as_it_is_read(name: str, value: object, text: str) -> None:
    assert PARAMETERS[name].written(value) == text
    if name != "dataset":
        assert PARAMETERS[name].parse(text) == value


def test_parameters_cell() -> None:
    assert list(PARAMETERS) == re.findall(r"^\w+", CELL, re.MULTILINE)
    assert PARAMETERS["n_gen"] == Parameter("n_gen", "int | None", None, ">= 1: generations")
    words = {name: one.words for name, one in PARAMETERS.items() if one.words}
    assert words == {"profile": ["quick", "paper"], "dataset": ["digits", "mnist", "PATH"]}


@pytest.mark.parametrize("line", ["n = 3  # untyped", "n: int = 3", "n: set = 3  # what type", "import os"])
def test_parameters_cell_refuses(line: str) -> None:
    with pytest.raises(ValueError, match="name: type = value"):
        read_parameters(line)


def test_list(notebooks: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", cell=CELL.replace('"quick"', '"recorded"', 1))
    write(notebooks / "02_two.ipynb", "two")
    *titles, hint = leamvd("list").output.splitlines()
    assert [line.split() for line in titles] == [["one", "Section", "one"], ["two", "Section", "two"]]
    assert "leamvd list SECTION" in hint
    title, head, *rows = leamvd("list", "one").output.strip().splitlines()
    assert "Section one" in title
    assert head.split() == ["quick", "paper", "allowed", "what", "it", "is"]
    shown = [one for one in PARAMETERS.values() if one.name not in ("profile", "output")]
    for row, one in zip(rows, shown, strict=True):
        assert row.split()[0] == one.name
        assert all(part in row for part in one.description.split(": "))
        assert one.default is None or row.split()[1:3] == 2 * [one.written(one.default)]


@pytest.mark.parametrize(
    ("section", "name", "quick", "paper"),
    [
        ("mnist-7x7", "dataset", "digits", "mnist"), ("mnist-7x7", "seeds", "0-2", "0-29"),
        ("mnist-7x7", "n_gen", "12", "50"), ("mnist-7x7", "n_images", "–", "–"), ("mnist-7x7", "sigma0", "0.1", "0.1"),
        ("directions", "n_gen", "60", "300"), ("esd", "n_tournaments", "100000", "5000000"),
        ("readings", "budget", "600", "10000"), ("mnist-7x7", "precision", "float64", "float32"),
    ],
)  # fmt: skip
def test_list_shows_what_a_profile_has(section: str, name: str, quick: str, paper: str) -> None:
    table = reproduction.defaults({one.name: one for one in sections.load()}[section])
    assert table.loc[name, ["quick", "paper"]].to_list() == [quick, paper]


# ---- what is refused before anything runs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("esdd", "no section 'esdd'; did you mean 'esd'?"),
        ("-p n_gne=3", "no parameter 'n_gne'; did you mean 'n_gen'?"),
        ("mnist-7x7 -p populationsize=12,24", "no parameter 'populationsize'"),
        ("esd -p n_elite=3", "no parameter 'n_elite'"),
        ("-p n_gen", "must be NAME=VALUE, got 'n_gen'"),
        ("-p n_gen=x", "n_gen must be a whole number or left out, got 'x'"),
        ("--profile huge", "profile must be recorded, quick or paper, got 'huge'"),
        ("mnist-7x7 --profile quick,huge", "profile must be recorded, quick, paper or controls, got 'huge'"),
        ("--profile quick -p profile=paper", "profile is given twice"),
        ("mnist-7x7 -p n_gen=1,2 -p n_gen=3", "n_gen is given twice"),
        ("-p output=a,b", "output is set by `leamvd reproduce --output DIR`"),
        ("--minutes nan", "must be a number > 0, got 'nan'"),
        ("--minutes 0", "must be a number > 0, got '0'"),
        ("--jobs 0", "0 is not in the range x>=1"),
        *((f"--scheduler {text}", f"must be local or an address such as tcp://127.0.0.1:8786, got {text!r}")
          for text in ("nonsense", "tcp://nonsense", "a/b:8786", "tcp://host:x")),
        ("mnist-7x7 -p methods=cd,adam", "mnist-7x7: methods must be one of 'cd', 'lea-mvd'"),
        ("readings -p methods=cd,lea-mvd", "methods must hold an alternative and its default, got"),
        ("mnist-7x7 -p n_elite=24", "n_elite=24 clashes with population_size=24"),
        ("mnist-7x7 -p n_images=2000", "n_images must be at most the 1437 images"),
        ("mnist-7x7 -p seeds=1,1", "seeds must be one or more values, all different"),
        ("mnist-7x7 -p learning_rate=-1", "learning_rate must be"),
        ("mnist-7x7 -p sigma0=nan", "sigma0 must be"),
        ("mnist-7x7 -p device=cuda:99", "device"),
        ("mnist-7x7 --dataset .", "has neither train-images-idx3-ubyte.gz"),
        ("directions -p n_elite=30", "directions: n_elite=30 clashes with population_size=24"),
        ("linear-cost -p methods=adam", "linear-cost: methods must be one of"),
        ("verdicts -p linear=1.1,0.9", "verdicts: linear must be two numbers, the smaller one first, got (1.1"),
        # sweeps
        ("mnist-7x7 -p population_size=12,x", "population_size must be a whole number or left out, got 'x'"),
        ("mnist-7x7 -p n_gen=3,4,03", "n_gen must be given values that are all different, got '3,4,03'"),
        ("mnist-7x7 -p population_size=24,4", "n_elite=4 clashes with population_size=4"),
        ("esd -p population_size=12,24", "esd has no final errors to compare: give population_size one value,"),
        (
            "-p population_size=12,24 -p x0=none",
            "or sweep over error-measures or explanation or mnist-28x28 or mnist-7x7",
        ),
    ],
    ids=str,
)  # fmt: skip
def test_what_is_refused(
    arguments: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_runs: None
) -> None:
    monkeypatch.chdir(tmp_path)
    result = leamvd("reproduce", *arguments.split())
    assert result.exit_code == 2, result.output
    assert message in result.stderr.strip().splitlines()[-1]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["local", "tcp://127.0.0.1:8786", "tls://[::1]:8786", "host.example.org:80"])
def test_addresses_of_schedulers(address: str) -> None:
    assert cli._address(address) == address


def test_a_matrix_that_would_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_runs: None) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4 * 8 * 1049**2 - 1))
    result = leamvd("reproduce", "mnist-7x7", "-p", "methods=cd,lea-mvd,cma-es:sigma0=0.03", "--dry-run")
    assert result.exit_code == 2, result.output
    assert "CMA-ES with a full covariance matrix of n=1049 variables needs 35,212,832 bytes" in result.output


# ---- runs


def test_a_dry_run_counts_jobs_and_what_of_them_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_runs: None
) -> None:
    small = {"layers": (3,), "n_images": 40, "n_gen": 2, "profile": "quick", "seeds": [0, 1]}
    section = {one.name: one for one in sections.load()}["mnist-7x7"]
    study = reproduction.study(section, {**small, "methods": ["cd"]})
    assert study
    assert reproduction.compute(study, tmp_path, 1, None, float("inf")) == 0
    settings = [f"-p{name}={','.join(map(str, v)) if isinstance(v, tuple | list) else v}" for name, v in small.items()]
    result = leamvd(
        "reproduce", "mnist-7x7", "esd", *settings, "-pmethods=cd,lea-mvd", "--output", str(tmp_path), "--dry-run"
    )
    assert result.exit_code == 0, result.output
    lines = [line.split()[:3] for line in result.output.splitlines()]
    assert [line[1:] for line in lines if line and line[0].startswith(("cd-", "lea-mvd-"))] == [["2", "2"], ["2", "0"]]
    assert "01_esd: Selection by weight\nthe notebook alone" in result.output
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store"]


def test_a_dry_run_says_what_nobody_knows(tmp_path: Path, nothing_runs: None) -> None:
    given = ("-pseeds=0", "-pmethods=cd", "-players=3", "-pn_images=40", "--output", str(tmp_path), "--dry-run")
    lines = leamvd("reproduce", "classification", *given).stdout.splitlines()
    assert [line.split()[-3:] for line in lines if line.startswith("FineTune-cd")] == [["1", "0", "–"]]
    assert re.fullmatch(r"about 0 minutes on \d+ process(es)?, without 12 jobs of unknown length", lines[-2])


def test_minutes_are_minutes(notebooks: Path, no_kernel: None, monkeypatch: pytest.MonkeyPatch) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK)
    monkeypatch.setattr(time, "monotonic", iter(range(1000, 10000, 50)).__next__)  # 50 s go by from look to look
    assert "time is over; the notebook is left\nThe same" in leamvd("reproduce", "--minutes", "1").output
    assert "01_one: done in " in leamvd("reproduce", "--minutes", "9").output


def test_reproduce_passes_values_and_publishes_what_a_run_has_made(notebooks: Path, tmp_path: Path) -> None:
    # the user's own kernel of the same name must not be taken
    kernel = Path(os.environ["JUPYTER_DATA_DIR"], "kernels", "python3", "kernel.json")
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": ["false"], "display_name": "not this one", "language": "python"}))
    told = f"print({sys.executable!r} == sys.executable, os.environ['MPLBACKEND'])"
    write(notebooks / "01_one.ipynb", "one", WORK + told)
    write(notebooks / "02_two.ipynb", "two", "print(seed)", cell="seed: int = 1  # of random numbers")
    output = tmp_path / "{profile} {0} {nothing"  # braces are characters
    output.mkdir()
    (output / "mine.txt").touch()

    result = leamvd("reproduce", "-p", "exponents=0,2", "-p", "n_gen=7", "--profile", "paper", "--output", str(output))

    kernel.unlink()
    assert result.exit_code == 0, result.output
    assert result.stderr == "", "no progress bar in a log"
    assert sorted(path.name for path in output.iterdir()) == [".partial", "01_one", "02_two", "mine.txt"]
    assert {path.suffix for path in (output / ".partial").iterdir()} == {".lock"}
    place = view(output, "01_one")
    assert sorted(path.name for path in place.iterdir()) == ["01_one.ipynb", "records.csv", "run.json"]
    made = f"01_one: done in \\d+ s, in\n{re.escape(str(place))}\n  01_one.ipynb\n  records.csv\n"
    assert re.search(f"^{made}", result.stdout, re.MULTILINE)
    assert re.fullmatch("paper-n_gen=7-exponents=0,2-[0-9a-f]{8}", place.name)
    assert (place / "records.csv").read_text() == "7 [0.0, 2.0] paper digits\n"
    about = json.loads((place / "run.json").read_text())
    assert about["section"] == "one"
    defaults = {name: one.default for name, one in PARAMETERS.items() if name != "output"}
    assert about["parameters"] == defaults | {"profile": "paper", "n_gen": 7, "exponents": [0.0, 2.0]}
    assert about["command"] == "leamvd reproduce one --profile paper -p n_gen=7 -p exponents=0,2"
    assert json.loads((view(output, "02_two") / "run.json").read_text())["parameters"] == {"seed": 1}
    notebook = nbformat.read(place / "01_one.ipynb", 4)
    nbformat.validate(notebook)
    parameters, last = notebook.cells
    assert parameters.metadata.tags == ["parameters", "hide-input"]
    assert re.search(r"^n_gen: int \| None = 7 ", parameters.source, re.MULTILINE)
    assert last.outputs[0].text == "True module://matplotlib_inline.backend_inline\n"
    assert parameters.execution_count
    assert last.execution_count


def test_the_sentences_of_a_run_quote_its_numbers_and_the_stored_ones_of_other_notebooks(
    notebooks: Path, tmp_path: Path
) -> None:
    seed = "seed: int = 1  # of random numbers"
    write(notebooks / "01_one.ipynb", "one", "from leamvd.book import pasted; pasted.paste({'r': seed / 4})", cell=seed)
    write(notebooks / "02_two.ipynb", "two", cell=seed)
    one, two = (nbformat.read(path, 4) for path in sorted(notebooks.iterdir()))
    two.cells.append(glued("r", "8.0"))
    text = '<span data-myst="{glue:text}`r:.2f`">0.25</span>, {glue:text}`02_two.ipynb::r:.0f`, {numref}`fig-a`'
    one.cells.insert(0, nbformat.v4.new_markdown_cell(text))
    nbformat.write(one, notebooks / "01_one.ipynb")
    nbformat.write(two, notebooks / "02_two.ipynb")
    assert leamvd("reproduce", "one", "-p", "seed=3", "--output", str(tmp_path)).exit_code == 0
    first, *_ = nbformat.read(view(tmp_path, "01_one") / "01_one.ipynb", 4).cells
    assert re.sub(r"<[^>]+>", "", first.source) == "0.75, 8, {numref}`fig-a`"
    assert re.findall('"(.+?)"', first.source) == ["{glue:text}`r:.2f`", "{glue:text}`02_two.ipynb::r:.0f`"]


def test_sections_run_once_and_in_the_order_of_the_book() -> None:
    every = sections.load()
    assert [section.stem for section in every][:3] == ["01_esd", "02_directions", "03_mnist_7x7"]
    assert sections.choose(every, []) == every
    assert sections.choose(every, ["mnist-7x7", "esd", "03_mnist_7x7", "esd"]) == [every[0], every[2]]


def test_failing_cell_keeps_earlier_results(notebooks: Path, tmp_path: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK)
    write(notebooks / "02_two.ipynb", "two", WORK, "1 / int(n_gen == 2), pathlib.Path.cwd()", "print('never')")
    output = tmp_path / "results"
    assert leamvd("reproduce", "-p", "n_gen=2").exit_code == 0
    before = view(output, "02_two")
    result = leamvd("reproduce", "-p", "n_gen=3")
    assert result.exit_code == 1
    assert "02_two, cell In [4]: ZeroDivisionError: division by zero" in result.stderr
    (partial,) = (output / ".partial").glob("02_two-quick-*/02_two.ipynb")
    assert f"partial notebook: {partial}" in result.stderr
    assert "Traceback" not in result.output
    assert "ZeroDivisionError" in partial.read_text()
    assert view(output, "02_two") == before
    assert (before / "02_two.ipynb").exists()
    assert len(list((output / "01_one").glob("*/records.csv"))) == 2, "a section that is complete is published"


def test_a_run_is_named_by_all_that_decides_on_it(
    notebooks: Path, no_kernel: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parameters, the notebook's code, the package's, what is recorded, data: no run takes another one's place."""
    output, places = tmp_path / "results", []

    def reproduced(n_gen: int = 3, *arguments: str) -> Path:
        assert leamvd("reproduce", "-p", f"n_gen={n_gen}", *arguments).exit_code == 0
        places.append(view(output, "01_one"))
        assert runs.read(places[-1]).about["parameters"]["n_gen"] == n_gen
        return places[-1]

    write(notebooks / "01_one.ipynb", "one", WORK)
    first = reproduced()
    reproduced(4)
    monkeypatch.setattr(versions, "commit", lambda: "another one")
    assert reproduced() == first, "the same run again"
    write(notebooks / "01_one.ipynb", "one", WORK, "'another program'")
    reproduced()
    content = runs._content
    for changed in ("leamvd", "recorded"):
        with monkeypatch.context() as patch:
            patch.setattr(runs, "_content", lambda *of, at=changed: "other" if of[0].name == at else content(*of))
            reproduced()
    assert len(set(places)) == 5
    for found in ("one", "other", "one"):  # the images in a folder
        monkeypatch.setattr(images, "checksum", lambda _, found=found: found)
        monkeypatch.setattr(reproduction, "check", lambda *_, found=found, **__: runs.Data(str(tmp_path), found))
        reproduced(3, "--dataset", str(tmp_path))
    assert len(set(places)) == 7
    assert places[-1] == places[-3]
    assert all(place.exists() for place in places)


def test_a_finished_run_is_shown_and_is_the_last_one(notebooks: Path, no_kernel: None, tmp_path: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK)
    for n_gen in (1, 2):
        assert leamvd("reproduce", "-p", f"n_gen={n_gen}").exit_code == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "run", lambda *_: pytest.fail("ran"))
        lines = leamvd("reproduce", "-p", "n_gen=1").stdout.splitlines()
        lines += leamvd("reproduce", "-p", "n_gen=1", "--dry-run").stdout.splitlines()
    place = view(tmp_path / "results", "01_one")
    assert runs.read(place).about["parameters"]["n_gen"] == 1
    assert lines[:3] == ["01_one: Section one", "01_one: finished before, in", str(place)]
    assert lines[-2] == "the notebook alone"
    shutil.rmtree(place)
    assert leamvd("reproduce", "-p", "n_gen=1").exit_code == 0
    assert place.exists(), "what was deleted is run again"


@pytest.mark.parametrize(
    ("values", "dataset", "label"),
    [
        ({}, "digits", "digits-quick"), ({"profile": "paper"}, "mnist", "mnist-paper"), ({}, "", "quick"),
        ({"exponent": 3.0, "seeds": [0, 1, 2]}, "digits", "digits-quick-seeds=0-2-exponent=3"),
        ({"methods": ["cd", "random:sigma0=1+x0=none"]}, "a b", "a-b-quick-methods=cd,random-sigma0=1+x0=none"),
        ({"seeds": list(range(0, 90, 2))}, "digits", "digits-quick-seeds=0,2,4,6,8,10,12,14,16,18,20,22,24,26,28"),
    ],
)  # fmt: skip
def test_a_folder_is_called_what_it_is(values: dict[str, object], dataset: str, label: str) -> None:
    section = {one.name: one for one in sections.load()}["mnist-7x7"]
    about = section.about(values)
    name, other = (runs.name(one, section.label(values, dataset)) for one in (about, {**about, "notebook": "other"}))
    start, _, mark = name.rpartition("-")
    assert re.fullmatch("[0-9a-f]{8}", mark)
    assert start == label or (start.startswith(label) and len(name) == 80)
    assert other != name
    assert other.startswith(start)


def test_the_command_starts_without_the_compiler() -> None:
    program = "import sys, leamvd.cli, leamvd.book.summary; print({'numba', 'matplotlib', 'sklearn'} & {*sys.modules})"
    assert (
        subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "set()\n"
    )


def test_a_dry_run_needs_no_mnist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nothing_runs: None) -> None:
    monkeypatch.setattr(images, "fetch_mnist", lambda **_: pytest.fail("fetched"))
    given = ("--profile", "paper", "-p", "seeds=0", "-p", "methods=cd", "--output", str(tmp_path), "--dry-run")
    result = leamvd("reproduce", "mnist-7x7", *given)
    assert result.exit_code == 0, result.output
    assert "cd-" in result.stdout
    refused = leamvd("reproduce", "mnist-7x7", *given, "-p", "n_images=60001")
    assert "n_images must be at most the 60000 images of MNIST" in refused.stderr


def test_other_images_in_the_same_folder_are_another_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = {one.name: one for one in sections.load()}["mnist-7x7"]
    digits, checksums = load("digits", side=7), []
    for data in (digits, digits._replace(checksum="other")):
        monkeypatch.setattr("leamvd.studies.study.load", lambda *_, data=data, **__: data)
        checksums.append(reproduction.check(section, section.complete({"dataset": str(tmp_path)})))
    assert checksums == [(str(tmp_path), digits.checksum), (str(tmp_path), "other")]


def test_every_source_is_part_of_the_code_and_every_table_of_the_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("leamvd.__file__", str(tmp_path / "__init__.py"))
    monkeypatch.setattr(archive, "folder", lambda _: tmp_path / "recorded")
    found = []
    for name, text in [("deep/er/a.py", "1"), ("b.txt", "no source"), ("deep/er/a.py", "2"), ("recorded/a/r.csv", "3")]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        found.append([runs.made_with()[part] for part in ("code", "archive")])
    (code, none), *found = found
    assert found[0] == [code, none], "what is neither changes nothing"
    assert found[1][0] != code
    assert found[1][1] == none
    assert found[2][0] == found[1][0]
    assert found[2][1] != none


def test_two_runs_of_one_set_of_parameters_do_not_meet(notebooks: Path, tmp_path: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK, WAIT)
    command = ("reproduce", "--dataset", str(tmp_path))
    with started(notebooks, *command) as process:
        wait_for("results/.partial/01_one-*/records.csv", process)
        with started(notebooks, *command) as second:
            wait_for("results/.partial/01_one-*-2/records.csv", second)
            (tmp_path / "go").touch()
            assert (second.wait(60), process.wait(60)) == (0, 0)
    assert (view(tmp_path / "results", "01_one") / "records.csv").read_text().count("\n") == 1
    assert len(list((tmp_path / "results" / "01_one").iterdir())) == 2, "one run and `latest`"


def test_kernel_that_dies_is_a_failure(notebooks: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", "import os; os._exit(3)")
    result = leamvd("reproduce")
    assert result.exit_code == 1
    assert "01_one: the kernel died" in result.stderr


def test_a_kernel_needs_no_home_and_knows_the_store_and_the_callers_folder(
    notebooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither the home folder, nor a name for it; and what lies in one changes nothing."""
    startup = tmp_path / "ipython" / "profile_default" / "startup"
    startup.mkdir(parents=True)
    (startup / "own.py").write_text(f"open({str(tmp_path / 'read')!r}, 'w').close()")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, "/proc/nowhere")
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("LEAMVD_DATA_DIR", "mine")
    tell = "import os; open('told', 'w').write(os.environ['LEAMVD_STORE'] + ' ' + os.environ['LEAMVD_DATA_DIR'])"
    write(notebooks / "01_one.ipynb", "one", tell)
    result = leamvd("reproduce")
    assert result.exit_code == 0, result.stderr
    assert "warn" not in result.stderr.lower()
    assert not (tmp_path / "read").exists()
    told = (view(tmp_path / "results", "01_one") / "told").read_text()
    assert told == f"{tmp_path / 'results' / 'store'} {tmp_path / 'mine'}"
    assert "LEAMVD_STORE" not in os.environ


@pytest.mark.parametrize("command", ["reproduce", "book"])
def test_what_a_file_system_refuses_is_one_sentence(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device", "/some/place")

    monkeypatch.setattr(sections, "run", fail)
    monkeypatch.setattr(render, "render", fail)
    write(notebooks / "01_one.ipynb", "one")
    result = leamvd(command)
    assert (result.exit_code, result.stderr) == (1, "Error: [Errno 28] No space left on device: '/some/place'\n")


def test_a_reader_that_has_seen_enough_is_no_failure(notebooks: Path) -> None:
    write(notebooks / "01_one.ipynb", "one")
    with started(notebooks, "list") as process:
        assert process.stdout
        process.stdout.close()
        assert process.wait(60) in (0, 1)


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT])
def test_a_run_that_was_stopped_carries_on(notebooks: Path, tmp_path: Path, sent: signal.Signals) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK, WAIT)
    command = ("reproduce", "--dataset", str(tmp_path))
    with started(notebooks, *command) as process:
        wait_for("results/.partial/01_one-*/records.csv", process)
        process.send_signal(sent)
        text, _ = process.communicate(timeout=120)
    if sent == signal.SIGINT:
        assert process.returncode == 130, text
        assert f"stopped; what is finished is stored in {tmp_path / 'results'}" in text
        firsts = [line.split()[0] for line in text.splitlines() if line]
        assert firsts == ["01_one:", "01_one:", "stopped;", "The"], text
    assert not (tmp_path / "results" / "01_one").exists()

    (tmp_path / "go").touch()
    assert leamvd(*command).exit_code == 0
    records = (view(tmp_path / "results", "01_one") / "records.csv").read_text()
    assert [line.split("]")[1] for line in records.splitlines()] == 2 * [f" quick {tmp_path}"]


def test_what_nbclient_does_after_an_interrupt_does_not_hide_it(
    notebooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    left = []

    async def fail() -> None:
        raise LookupError

    async def leave_a_cell() -> None:
        left.append(asyncio.ensure_future(fail()))
        await asyncio.sleep(0)

    def execute(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            asyncio.run(leave_a_cell())
            raise RuntimeError("the kernel does not answer")

    monkeypatch.setattr(papermill, "execute_notebook", execute)
    monkeypatch.setattr(logging.getLogger("asyncio"), "level", logging.WARNING)  # and back again
    write(notebooks / "01_one.ipynb", "one")
    result = leamvd("reproduce")
    assert result.exit_code == 130
    assert f"stopped; what is finished is stored in {tmp_path / 'results'}" in result.stderr
    assert len(left) == 1
    left.clear()
    gc.collect()
    assert not caplog.records


def test_fingerprint_is_that_of_the_code_alone(tmp_path: Path) -> None:
    path = tmp_path / "01_one.ipynb"
    write(path, "one", "1 + 1")
    before = sections._read_section(path).fingerprint
    notebook = nbformat.read(path, 4)
    notebook.cells.insert(1, nbformat.v4.new_code_cell("n_gen = 3", metadata={"tags": ["injected-parameters"]}))
    notebook.cells.append(nbformat.v4.new_markdown_cell("prose"))
    notebook.cells[2].outputs = [nbformat.v4.new_output("execute_result", {"text/plain": "2"})]
    nbformat.write(notebook, path)
    assert sections._read_section(path).fingerprint == before
    notebook.cells[2].source = "1 + 2"
    nbformat.write(notebook, path)
    assert sections._read_section(path).fingerprint != before


def test_notebook_without_a_parameters_cell_is_refused(notebooks: Path) -> None:
    nbformat.write(nbformat.v4.new_notebook(), notebooks / "01_one.ipynb")
    with pytest.raises(ValueError, match=r"01_one.ipynb needs one cell tagged"):
        sections.load()


def test_data_mnist(tmp_path: Path) -> None:
    result = leamvd("data", "mnist", "--from", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "nowhere" in result.stderr


def test_book(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(render, "render", lambda results: results / "index.html")
    result = leamvd("book", "--results", str(tmp_path))
    assert (result.exit_code, result.output) == (0, f"{tmp_path / 'index.html'}\n")


@pytest.mark.parametrize(("drifting", "status"), [("ab", 1), ("a", 1), ("b", 1), ("", 0)])
def test_verify_fails_where_any_name_drifts(monkeypatch: pytest.MonkeyPatch, drifting: str, status: int) -> None:
    def verify(name: str, **_: object) -> recording.Verification:
        return recording.Verification([], pd.DataFrame({"drifts": [False, name in drifting, False]}))

    monkeypatch.setattr(recording, "verify", verify)
    result = leamvd("verify", "a", "b")
    assert result.exit_code == status
    assert result.output.endswith("2 of 2 compared\n")


def test_searches_are_recorded_once_by_their_own_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "SEARCHES", {"starts": lambda _: pytest.fail("planned")})
    for option in (("--name", "other"), ("--extend",)):
        result = leamvd("record", "starts", *option)
        assert result.exit_code == 2
        assert "--name and --extend are for a run of a section, and starts are searches" in result.output
    result = leamvd("record", "starts")
    assert result.exit_code == 1
    assert "starts is recorded already in" in result.output


def test_verify_fails_where_nothing_is_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recording, "names", lambda: ["linear_cost"])
    result = leamvd("verify")
    assert result.exit_code == 1
    assert result.output.startswith("not verified: linear_cost: ")
    assert result.output.endswith("0 of 1 compared\n")


def test_a_run_that_cannot_be_moved_to_its_place_loses_neither(tmp_path: Path) -> None:
    def made(text: str) -> Path:
        with runs.working_folder(tmp_path, "one-a") as work:
            (work / "figure").write_text(text)
            return work

    place, work = runs.publish(made("first"), tmp_path, "one", "a"), made("second")
    with pytest.raises(FileNotFoundError):
        runs.publish(work / "gone", tmp_path, "one", "a")
    assert {path.read_text() for path in (tmp_path / ".partial").glob("*/figure")} == {"first", "second"}
    assert runs.publish(work, tmp_path, "one", "a") == place == runs.latest(tmp_path, "one")
    assert (place / "figure").read_text() == "second"
    assert list((tmp_path / ".partial").glob("*/figure")) == []
    shutil.rmtree(place)
    assert runs.latest(tmp_path, "one") is None, "folders of results can be deleted"
