"""The command line, on tiny notebooks; the real ones are run by nbval."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import nbformat
import psutil
import pytest
from click.testing import CliRunner, Result

from leamvd import cli
from leamvd.book import results, sections
from leamvd.book.parameters import Parameter, ParameterError, read_parameters
from leamvd.paper import datasets, progress, records, store

CELL = """\
profile: str = "quick"  # quick | paper: the scale
n_gen: int | None = None  # 2..100: generations
exponents: list[float] = [0.0, 1.5]  # >= 0: exponents
scales: list[float] = [0.1]  # > 0 or empty: of weights
rate: float = 0.1  # > 0: step
shuffle: bool = True  # any: whether to shuffle
dataset: str = "digits"  # digits | mnist | PATH: data set
reading: str = "default"  # default | PATH.json: how the text is read
output: str = "results"  # PATH: where records go
"""
# One record per run; it stops after the first, the way a killed run would, until `go` exists.
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
    first = nbformat.v4.new_code_cell(cell, metadata={"tags": ["parameters"]})
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
    """Let a notebook's cells run in this process, where a kernel would take seconds to start."""

    def execute(section: sections.Section, values: Mapping[str, object], work: Path, store: Path) -> None:
        first, *cells = nbformat.read(section.path, 4).cells
        names: dict[str, object] = {}
        with monkeypatch.context() as patch:
            patch.chdir(work)
            patch.setenv(records.STORE, str(store))
            exec(first.source, names)
            names |= {**values, "output": "."}
            for cell in cells:
                exec(cell.source, names)
        shutil.copy(section.path, work)

    monkeypatch.setattr(sections, "_execute", execute)


def leamvd(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments)


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


def view(output: Path, stem: str = "01_one") -> Path:
    """Return the folder that ``latest`` names."""
    return output / stem / (output / stem / "latest").read_text().strip()


def wait_for(pattern: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not any(path.read_text().endswith("\n") for path in Path().glob(pattern)):
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline, f"{pattern} was never written"
        time.sleep(0.02)


PARSED = [
    ("profile", "paper", "paper"),
    ("n_gen", "2", 2),
    ("n_gen", "100", 100),
    ("n_gen", "None", None),
    ("exponents", "0,1.5, 3", [0.0, 1.5, 3.0]),
    ("exponents", "[1e-3]", [0.001]),
    ("scales", "0.1,2", [0.1, 2.0]),
    ("scales", "", []),
    ("rate", "1e-3", 0.001),
    ("shuffle", "false", False),
    ("dataset", "mnist", "mnist"),
]
REFUSED = [
    ("profile", "fast"),
    ("n_gen", "1"),
    ("n_gen", "101"),
    ("n_gen", "3.0"),
    ("n_gen", ""),
    ("exponents", "1,-0.5"),
    ("exponents", "1,,2"),
    ("exponents", ""),
    ("exponents", "None"),
    ("scales", "-1"),
    ("scales", ","),
    ("rate", "0"),
    ("rate", "nan"),
    ("rate", "inf"),
    ("shuffle", "1"),
    ("dataset", "no/such/folder"),
    ("reading", "mnist.csv"),
]


@pytest.mark.parametrize(("name", "text", "value"), PARSED)
def test_value_of_a_parameter(name: str, text: str, value: object) -> None:
    parsed = read_parameters(CELL)[name].parse(text)
    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(("name", "text"), REFUSED)
def test_value_that_a_parameter_refuses(name: str, text: str) -> None:
    parameter = read_parameters(CELL)[name]
    with pytest.raises(ParameterError) as caught:
        parameter.parse(text)
    for part in (name, parameter.type, parameter.rule.split(" | ")[0], repr(text)):
        assert part in str(caught.value)


def test_paths_become_absolute_and_need_the_ending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.json").touch()
    (tmp_path / "mine.yaml").touch()
    monkeypatch.chdir(tmp_path)
    parameters = read_parameters(CELL)
    assert parameters["reading"].parse("mine.json") == str(tmp_path / "mine.json")
    assert parameters["dataset"].parse(".") == str(tmp_path)
    with pytest.raises(ParameterError, match="PATH must exist"):
        parameters["reading"].parse("mine.yaml")


def test_parameters_cell() -> None:
    parameters = read_parameters(CELL)
    assert list(parameters) == [
        "profile", "n_gen", "exponents", "scales", "rate", "shuffle", "dataset", "reading", "output",
    ]  # fmt: skip
    assert parameters["n_gen"] == Parameter("n_gen", "int | None", None, "2..100", "generations")


@pytest.mark.parametrize("line", ["n = 3  # any: untyped", "n: int = 3", "n: set = 3  # any: what type", "import os"])
def test_parameters_cell_refuses(line: str) -> None:
    with pytest.raises(ValueError, match="name: type = value"):
        read_parameters(line)


def test_list(notebooks: Path) -> None:
    write(notebooks / "01_one.ipynb", "one")
    result = leamvd("list")
    assert result.exit_code == 0
    for part in ("one", "01_one", "Section one"):
        assert part in result.output
    for parameter in read_parameters(CELL).values():
        row = [line for line in result.output.splitlines() if line.split()[:1] == [parameter.name]]
        assert len(row) == (parameter.name != "output")
        for text in row:
            for part in (parameter.type, repr(parameter.default), parameter.rule, parameter.description):
                assert part in text


MISTAKES = [
    (("on",), "no section 'on'; did you mean 'one'?"),
    (("-p", "n_gne=3"), "no parameter 'n_gne'; did you mean 'n_gen'?"),
    (("-p", "n_gen"), "-p takes NAME=VALUE"),
    (("-p", "n_gen=x"), "n_gen must be int | None (2..100), got 'x'"),
    (("-p", "n_gen=1"), "n_gen must be int | None (2..100), got '1'"),
    (("--profile", "huge"), "profile must be str (quick | paper), got 'huge'"),
    (("--dataset", "mnst"), "dataset must be str (digits | mnist | PATH; PATH must exist), got 'mnst'"),
    (("--dataset", "~no-such-user/mnist"), "PATH must exist), got '~no-such-user/mnist'"),
    (("--profile", "quick", "-p", "profile=paper"), "profile is given twice"),
    (("-p", "output=there"), "output is set by --output"),
    (("two", "-p", "n_gen=3"), "no parameter 'n_gen'"),
]


@pytest.mark.parametrize(("arguments", "message"), MISTAKES)
def test_mistakes_are_refused_before_anything_runs(
    notebooks: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], message: str
) -> None:
    write(notebooks / "01_one.ipynb", "one")
    write(notebooks / "02_two.ipynb", "two", cell="seed: int = 1  # any: seed")
    monkeypatch.setattr(cli, "run", lambda *_: pytest.fail("ran"))
    result = leamvd("reproduce", *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert not Path("results").exists()


REFUSED_BY_A_STUDY = [
    (("mnist-7x7", "-p", "methods=cd,adam"), "mnist-7x7: methods must be one of 'cd', 'lea-mvd'"),
    (("readings", "-p", "methods=cd,lea-mvd"), "methods must hold an alternative and its default, got"),
    (("mnist-28x28", "-p", "methods=lea-mvd:no.json"), "reading must be 'default', 'printed', 'x0-excluded' or a JSON"),
    (("mnist-7x7", "-p", "methods=lea-mvd:../a.json"), "methods must name a reading in this folder"),
    (("mnist-7x7", "-p", "n_elite=24"), "n_elite=24 clashes with population_size=24"),
    (("mnist-7x7", "-p", "n_images=2000"), "n_images must be at most the 1437 images"),
    (("mnist-7x7", "-p", "seeds=1,1"), "seeds must be one or more values, all different"),
    (("mnist-7x7", "-p", "device=cuda:99"), "device"),
    (("mnist-7x7", "--dataset", "."), "has neither train-images-idx3-ubyte.gz"),
    (("directions", "-p", "n_elite=30"), "directions: n_elite=30 clashes with population_size=24"),
    (("linear-cost", "-p", "source=measured", "-p", "methods=adam"), "linear-cost: methods must be one of"),
    (("linear-cost", "-p", "source=."), "linear-cost: "),
    (("directions", "mnist-7x7", "-p", "n_elite=24", "-p", "population_size=24"), "n_elite=24 clashes"),
    (("verdicts", "-p", "linear=1.1,0.9"), "verdicts: linear must be two numbers, the smaller one first, got (1.1"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED_BY_A_STUDY, ids=str)
def test_what_a_study_would_refuse_is_refused_before_any_section_runs(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "run", lambda *_: pytest.fail("ran"))
    result = leamvd("reproduce", *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_matrix_that_would_not_fit_is_refused_before_any_section_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "run", lambda *_: pytest.fail("ran"))
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=4 * 8 * 3750**2 - 1))
    methods = "methods=cd,lea-mvd,cma-es:sigma0=0.03"
    result = leamvd("reproduce", "mnist-7x7", "-p", methods)
    assert result.exit_code == 2, result.output
    assert "CMA-ES with a full covariance matrix of n=3750 variables needs 450,000,000 bytes" in result.output


def test_a_readings_file_means_the_callers(notebooks: Path, no_kernel: None, tmp_path: Path) -> None:
    cell = 'methods: list[str] | None = None  # any: methods\nprofile: str = "quick"  # quick | paper: the scale'
    write(
        notebooks / "01_one.ipynb",
        "one",
        "import shutil; shutil.copy(methods[0].partition(':')[2], 'told')",
        cell=cell,
    )
    Path("mine").mkdir()
    places = []
    for text in ("first", "second"):
        Path("mine/a.json").write_text(text)
        assert leamvd("reproduce", "-p", "methods=lea-mvd:mine/a.json").exit_code == 0
        places.append(view(tmp_path / "results"))
        assert (places[-1] / "told").read_text() == text
        assert (places[-1] / "mine" / "a.json").read_text() == text
    assert places[0] != places[1], "another content is another set of parameters"


def test_reproduce_passes_values_and_publishes_what_a_run_has_made(notebooks: Path, tmp_path: Path) -> None:
    # the user's own kernel of the same name must not be taken
    kernel = Path(os.environ["JUPYTER_DATA_DIR"], "kernels", "python3", "kernel.json")
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": ["false"], "display_name": "not this one", "language": "python"}))
    write(
        notebooks / "01_one.ipynb",
        "one",
        WORK + f"print({sys.executable!r} == sys.executable, os.environ['MPLBACKEND'])",
    )
    write(notebooks / "02_two.ipynb", "two", "print(seed)", cell="seed: int = 1  # any: seed")
    output = tmp_path / "there"
    output.mkdir()
    (output / "mine.txt").touch()

    result = leamvd("reproduce", "-p", "exponents=0,2", "-p", "n_gen=7", "--profile", "paper", "--output", str(output))

    kernel.unlink()
    assert result.exit_code == 0, result.output
    assert "01_one: done in" in result.stdout
    assert all(line.startswith("Executing: ") for line in result.stderr.splitlines() if line)  # the progress bar
    assert "Executing: 100%" in result.stderr
    assert sorted(path.name for path in output.iterdir()) == [".partial", "01_one", "02_two", "mine.txt"]
    assert {path.suffix for path in (output / ".partial").iterdir()} == {".lock"}
    place = view(output)
    assert sorted(path.name for path in place.iterdir()) == ["01_one.ipynb", "records.csv", "run.json"]
    assert f"01_one: done in 0 s: {place}".split("0 s")[1] in result.stdout
    assert place.name.startswith("paper-")
    assert (place / "records.csv").read_text() == "7 [0.0, 2.0] paper digits\n"
    about = json.loads((place / "run.json").read_text())
    assert about["section"] == "one"
    assert about["parameters"] == {
        "profile": "paper", "n_gen": 7, "exponents": [0.0, 2.0], "scales": [0.1], "rate": 0.1, "shuffle": True,
        "dataset": "digits", "reading": "default",
    }  # fmt: skip
    assert json.loads((view(output, "02_two") / "run.json").read_text())["parameters"] == {"seed": 1}
    notebook = nbformat.read(place / "01_one.ipynb", 4)
    nbformat.validate(notebook)
    assert notebook.cells[-1].outputs[0].text == "True module://matplotlib_inline.backend_inline\n"
    assert all(cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


def test_no_path_of_the_machine_is_left_in_a_notebook(notebooks: Path, tmp_path: Path) -> None:
    tell = """
import leamvd, numpy, sys, warnings
from IPython.display import HTML
warnings.warn(f"a warning names its file, of {dataset}/t10k")
print(os.getcwd(), leamvd.__file__, numpy.__file__, pathlib.Path.home() / "notes", [pathlib.Path(dataset)], sep="\\n")
print("and/or, 3/4, https://example.org/home/page", file=sys.stderr)
HTML(f"<b>{dataset}</b>")
"""
    write(notebooks / "01_one.ipynb", "one", WORK, tell)
    folder = tmp_path / "fashion"
    folder.mkdir()
    result = leamvd("reproduce", "--dataset", str(folder))
    assert result.exit_code == 0, result.output
    run = view(tmp_path / "results").name
    text = (tmp_path / "results" / "01_one" / run / "01_one.ipynb").read_text()
    for place in (tmp_path, Path(cli.__file__).parents[1], Path.home(), tempfile.gettempdir(), sys.prefix):
        assert str(place) not in text
    notebook = nbformat.reads(text, 4)
    _, injected, _, told = notebook.cells
    assert 'dataset = "fashion"' in injected.source
    assert notebook.metadata.papermill.parameters.dataset == "fashion"
    shown = "".join(str(output.get("text", output.get("data"))) for output in told.outputs)
    for part in (
        "UserWarning: a warning names its file, of fashion/t10k", f"01_one-{run}\n", "/leamvd/__init__.py\n",
        "site-packages/numpy/__init__.py\n", "~/notes\n", "Path('fashion')]\n", "<b>fashion</b>",
        "and/or, 3/4, https://example.org/home/page\n",
    ):  # fmt: skip
        assert part in shown


def test_images_keep_their_bytes_and_longer_names_their_own(tmp_path: Path) -> None:
    write(tmp_path / "01_one.ipynb", "one")
    notebook = nbformat.read(tmp_path / "01_one.ipynb", 4)
    notebook.metadata["papermill"] = {"exception": None}
    notebook.cells[0].source += "# 1 / 2"
    nbformat.write(notebook, tmp_path / "01_one.ipynb")
    sections._finish(tmp_path / "01_one.ipynb", {"dataset": "/"})
    assert nbformat.read(tmp_path / "01_one.ipynb", 4).cells[0].source.endswith("# 1 / 2")

    picture = {"image/png": "/data/a", "text/plain": ["in /data/a", "in /data/a-b/c", "in /more/data/a", r"'D:\\one'"]}
    names = {"/data/a": "a", "/data": "data", "D:\\one": "one", "D:\\\\one": "one"}
    assert sections._shortened(picture, names) == {
        "image/png": "/data/a", "text/plain": ["in a", "in data/a-b/c", "in /more/data/a", "'one'"]
    }  # fmt: skip


def test_the_cell_that_papermill_adds_is_folded(notebooks: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", "n_gen")
    notebook = nbformat.read(notebooks / "01_one.ipynb", 4)
    notebook.cells[0].metadata.tags.append("hide-input")
    notebook.cells[1].metadata.tags = ["remove-cell"]
    nbformat.write(notebook, notebooks / "01_one.ipynb")
    assert leamvd("reproduce", "-p", "n_gen=7").exit_code == 0
    parameters, injected, last = nbformat.read(view(Path("results")) / "01_one.ipynb", 4).cells
    assert parameters.metadata.tags == ["parameters", "hide-input"]
    assert injected.metadata.tags == ["injected-parameters", "hide-input"]
    assert injected.metadata.mystnb == {"code_prompt_show": "Parameters of this run"}
    assert last.metadata.tags == ["remove-cell"]
    assert last.outputs[0].data["text/plain"] == "7"


@pytest.mark.parametrize("named", [True, False], ids=["named", "windows"])
def test_the_terminal_is_named_where_terminals_have_names(
    named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _ours, theirs = os.openpty()
    name = os.ttyname(theirs)
    if not named:
        monkeypatch.delattr(os, "ttyname")
    with os.fdopen(theirs, "w") as terminal, monkeypatch.context() as patch:
        patch.setattr(sys, "stderr", terminal)
        with sections._environment(tmp_path, tmp_path):  # of the kernel
            assert os.environ[progress.TERMINAL] == (name if named else "")


def test_sections_run_once_and_in_the_order_of_the_book(notebooks: Path) -> None:
    for name in ("01_one", "02_two", "03_three"):
        write(notebooks / f"{name}.ipynb", name[3:])
    every = sections.load()
    assert [section.stem for section in every] == ["01_one", "02_two", "03_three"]
    assert sections.choose(every, []) == every
    assert sections.choose(every, ["three", "one", "03_three", "three"]) == [every[0], every[2]]


def test_one_section_by_its_stem(notebooks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(notebooks / "01_one.ipynb", "one")
    write(notebooks / "02_two.ipynb", "two")
    seen = []
    monkeypatch.setattr(cli, "run", lambda section, values, output: seen.append((section.name, values, output)))
    assert leamvd("reproduce", "02_two", "--dataset", "mnist").exit_code == 0
    assert seen == [("two", {"dataset": "mnist"}, Path("results").resolve())]


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


def test_one_set_of_parameters_never_replaces_another(notebooks: Path, no_kernel: None, tmp_path: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK)
    output, places = tmp_path / "results", []
    for n_gen in ("3", "4", "3"):
        assert leamvd("reproduce", "-p", f"n_gen={n_gen}").exit_code == 0
        places.append(view(output))
    assert places[0] == places[2] != places[1]
    assert (places[1] / "records.csv").read_text() == "4 [0.0, 1.5] quick digits\n"
    assert (places[0] / "records.csv").read_text() == "3 [0.0, 1.5] quick digits\n", "the same run again"
    write(notebooks / "01_one.ipynb", "one", WORK, "'another program'")
    assert leamvd("reproduce", "-p", "n_gen=3").exit_code == 0
    assert view(output) not in places
    assert (places[0] / "records.csv").exists()


def test_two_runs_of_one_set_of_parameters_do_not_meet(notebooks: Path, tmp_path: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK, WAIT)
    command = ("reproduce", "--dataset", str(tmp_path))
    with started(notebooks, *command) as process:
        wait_for("results/.partial/01_one-*/records.csv", process)
        with started(notebooks, *command) as second:
            wait_for("results/.partial/01_one-*-2/records.csv", second)
            (tmp_path / "go").touch()
            assert (second.wait(60), process.wait(60)) == (0, 0)
    assert (view(tmp_path / "results") / "records.csv").read_text().count("\n") == 1
    assert len(list((tmp_path / "results" / "01_one").iterdir())) == 2, "one run and `latest`"


def test_clean_removes_what_the_latest_runs_do_not_need(notebooks: Path, no_kernel: None, tmp_path: Path) -> None:
    study = """
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.paper.records import run
from leamvd.paper.studies import Study
reading, training = Reading(n_gen=n_gen, population_size=8), Training(n_elite=2)
_ = run(Study(n_images=40, layers=(3,), methods=("cd",), training=training, reading=reading), output)
"""
    write(notebooks / "01_one.ipynb", "one", study)
    output = tmp_path / "results"
    for n_gen in ("2", "3"):
        assert leamvd("reproduce", "-p", f"n_gen={n_gen}").exit_code == 0
    about = json.loads((view(output) / "run.json").read_text())
    (known,) = [json.loads((view(output) / name).read_text()) for name in about["studies"]]
    (unit,) = known["units"].values()
    assert len(list((output / "store").glob("cd-*"))) == 2
    (tmp_path / "results" / "notes" / "mine").mkdir(parents=True)

    listed = leamvd("clean")
    (earlier,) = set((output / "01_one").glob("quick-*")) - {view(output)}
    (old,) = set((output / "store").glob("cd-*")) - {output / "store" / unit}
    wanted = sorted([earlier, old])
    assert listed.output.splitlines() == [str(path.relative_to(tmp_path)) for path in wanted]
    assert all(path.exists() for path in wanted), "without --yes nothing is removed"

    with store.alone(output / "store" / "locks" / f"{unit}.lock"):
        result = leamvd("clean", "--yes")
        assert (result.exit_code, "something is running in results" in result.stderr) == (1, True)
        assert all(path.exists() for path in wanted)

    assert leamvd("clean", "--yes").output == listed.output
    assert not any(path.exists() for path in wanted)
    assert (output / "notes" / "mine").exists()
    assert (output / "store" / unit).exists()
    assert (view(output) / "01_one.ipynb").exists()
    assert leamvd("clean").output == ""


@pytest.fixture
def output(tmp_path: Path) -> Path:
    """Two runs of a section, with a unit each and one that was damaged."""
    for run, unit in (("a", "cd-layer1-1"), ("b", "cd-layer1-2")):
        with results.working_folder(tmp_path, f"one-{run}") as work:
            (work / "study-1.json").write_text(json.dumps({"units": {"cd": unit}}))
            (work / "run.json").write_text(json.dumps({"studies": ["study-1.json"]}))
            results.publish(work, tmp_path, "one", run)
        (tmp_path / "store" / unit).mkdir(parents=True)
    (tmp_path / "store" / "damaged" / "x").mkdir(parents=True)
    return tmp_path


def listed(output: Path) -> list[str]:
    result = leamvd("clean", "--output", str(output))
    assert result.exit_code == 0, result.stderr
    return [str(Path(line).relative_to(output)) for line in result.output.splitlines()]


def test_clean_lists_what_was_stopped_damaged_and_left_by_kills(output: Path) -> None:
    (output / "store" / "unfinished" / "cd-layer1-9-iteration3").mkdir(parents=True)
    for left in ("store/.cd-layer1-7-x", "one/.latest-x"):
        (output / left).mkdir()
    stopped, kept = output / ".partial" / "one-c", output / ".partial" / "one-c.lock"
    with results.working_folder(output, "one-c"):
        pass
    wanted = [".partial/one-c", "one/.latest-x", "one/a", "store/.cd-layer1-7-x", "store/cd-layer1-1", "store/damaged"]
    assert listed(output) == [*wanted, "store/unfinished"]
    assert leamvd("clean", "--output", str(output), "--yes").exit_code == 0
    assert listed(output) == []
    assert (stopped.exists(), kept.exists()) == (False, True), "a process may wait for the lock"
    assert results.latest(output, "one") == output / "one" / "b"
    assert (output / "store" / "cd-layer1-2").exists()


def test_a_run_that_begins_beside_clean_leaves_the_stopped_one_to_it(output: Path) -> None:
    with results.working_folder(output, "one-c"):
        pass
    with results.superfluous(output) as found:
        assert output / ".partial" / "one-c" in found
        with results.working_folder(output, "one-c") as work:
            assert work not in found
        for path in found:
            results.remove(path)
    assert work.is_dir()


def test_clean_removes_a_link_and_not_what_it_leads_to(output: Path) -> None:
    elsewhere = output.parent / "elsewhere"
    (output / "store" / "cd-layer1-1").rename(elsewhere)
    (output / "store" / "cd-layer1-1").symlink_to(elsewhere)
    assert leamvd("clean", "--output", str(output), "--yes").exit_code == 0
    assert not (output / "store" / "cd-layer1-1").is_symlink()
    assert elsewhere.is_dir()


@pytest.mark.parametrize("damaged", ["latest", "b/run.json", "b/study-1.json"])
@pytest.mark.parametrize("content", ["", "{}", "nowhere"])
def test_clean_removes_nothing_where_it_cannot_know_what_is_needed(output: Path, damaged: str, content: str) -> None:
    (output / "one" / damaged).write_text(content)
    result = leamvd("clean", "--output", str(output), "--yes")
    assert result.exit_code == 1
    assert result.stderr == f"Error: {output}/one/latest names no whole run: run its section again, then clean\n"
    assert all((output / "store" / unit).exists() for unit in ("cd-layer1-1", "cd-layer1-2"))


def test_clean_refuses_a_folder_of_something_else(tmp_path: Path) -> None:
    assert listed(tmp_path) == []
    (tmp_path / "store" / "locks").mkdir(parents=True)
    result = leamvd("clean", "--output", str(tmp_path), "--yes")
    assert result.exit_code == 1
    assert "holds no results: name the folder that `leamvd reproduce` has filled" in result.stderr
    assert (tmp_path / "store" / "locks").exists()


def test_a_run_that_was_moved_aside_when_its_successor_was_killed_is_the_latest(output: Path) -> None:
    aside = output / ".partial" / "one-b.replaced"
    (output / "one" / "b").rename(aside)
    assert results.latest(output, "one") == aside
    assert listed(output) == ["one/a", "store/cd-layer1-1", "store/damaged"]
    with results.working_folder(output, "one-b") as work:
        (work / "figure").touch()
        assert (results.publish(work, output, "one", "b") / "figure").exists()
    assert not aside.exists()


def test_the_kernel_knows_the_store_and_the_callers_folder(
    notebooks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell = "import os; open('told', 'w').write(os.environ['LEAMVD_STORE'] + ' ' + os.environ['LEAMVD_DATA_DIR'])"
    write(notebooks / "01_one.ipynb", "one", tell)
    monkeypatch.setenv("LEAMVD_DATA_DIR", "mine")
    assert leamvd("reproduce").exit_code == 0
    told = (view(tmp_path / "results") / "told").read_text()
    assert told == f"{tmp_path / 'results' / 'store'} {tmp_path / 'mine'}"
    assert "LEAMVD_STORE" not in os.environ


def test_kernel_that_dies_is_a_failure(notebooks: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", "import os; os._exit(3)")
    result = leamvd("reproduce")
    assert result.exit_code == 1
    assert "01_one: the kernel died" in result.stderr


def test_papermill_mark_of_failure_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "01_one.ipynb"
    path.write_text(json.dumps({"metadata": {"papermill": {"exception": True}}}))
    with pytest.raises(sections.RunError, match="exception"):
        sections._finish(path, {})


def test_killed_run_carries_on(notebooks: Path, tmp_path: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK, WAIT)
    command = ("reproduce", "--dataset", str(tmp_path))
    with started(notebooks, *command) as process:
        wait_for("results/.partial/01_one-*/records.csv", process)
        process.kill()
    assert not (tmp_path / "results" / "01_one").exists()

    (tmp_path / "go").touch()
    assert leamvd(*command).exit_code == 0
    line = f"None [0.0, 1.5] quick {tmp_path}\n"
    assert (view(tmp_path / "results") / "records.csv").read_text() == 2 * line


def test_interrupted_run_says_where_its_parts_lie(notebooks: Path, tmp_path: Path) -> None:
    write(notebooks / "01_one.ipynb", "one", WORK, WAIT)
    with started(notebooks, "reproduce", "--dataset", str(tmp_path)) as process:
        wait_for("results/.partial/01_one-*/records.csv", process)
        process.send_signal(signal.SIGINT)
        text, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"stopped; what is finished is stored in {tmp_path / 'results'}" in text
    lines = [line for line in text.splitlines() if line and not line.startswith("Executing: ")]
    assert [line.split()[0] for line in lines] == ["01_one:", "stopped;", "The"]


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


def test_data_mnist(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(datasets, "fetch_mnist", lambda source, progress: tmp_path / f"{source}")
    result = leamvd("data", "mnist", "--from", "here")
    assert (result.exit_code, result.output) == (0, f"{tmp_path / 'here'}\n")


def test_data_mnist_says_in_one_line_what_is_wrong(tmp_path: Path) -> None:
    result = leamvd("data", "mnist", "--from", str(tmp_path / "nowhere"))
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: ")
    assert "nowhere" in result.stderr
    assert "Traceback" not in result.output


def test_book(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from leamvd.book import render as rendering

    monkeypatch.setattr(rendering, "render", lambda results: results / "index.html")
    result = leamvd("book", "--results", str(tmp_path))
    assert (result.exit_code, result.output) == (0, f"{tmp_path / 'index.html'}\n")


@pytest.mark.parametrize("error", [ValueError, RuntimeError, FileNotFoundError])
def test_book_that_fails(monkeypatch: pytest.MonkeyPatch, error: type[Exception]) -> None:
    from leamvd.book import render as rendering

    def render(results: Path | None) -> Path:
        raise error("what is wrong")

    monkeypatch.setattr(rendering, "render", render)
    result = leamvd("book")
    assert result.exit_code == 1
    assert "Error: what is wrong" in result.stderr


def test_a_run_that_cannot_be_moved_to_its_place_loses_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(text: str) -> Path:
        with results.working_folder(tmp_path, "one-a") as work:
            (work / "figure").write_text(text)
            return work

    place = results.publish(made("first"), tmp_path, "one", "a")
    work, rename = made("second"), Path.rename

    def fail(self: Path, target: Path) -> Path:
        if self == work:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fail)
        with pytest.raises(OSError, match="No space"):
            results.publish(work, tmp_path, "one", "a")
    assert {path.read_text() for path in (tmp_path / ".partial").glob("*/figure")} == {"first", "second"}
    assert results.publish(work, tmp_path, "one", "a") == place
    assert (place / "figure").read_text() == "second"
    assert results.latest(tmp_path, "one") == place
    assert list((tmp_path / ".partial").glob("*/figure")) == []
