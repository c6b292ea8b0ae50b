"""The command line as its user types it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy.optimize import OptimizeWarning

import leamvd
from leamvd._support import threads
from leamvd_paper import cli
from leamvd_paper.book import render, sections
from leamvd_paper.studies import esd, results, settings_map, two_directions, verify
from leamvd_paper.studies.claims import CLAIMS
from leamvd_paper.studies.words import interval, number

SMALL = (
    *(
        "reproduce",
        "mnist-7x7",
        "-p",
        "layers=6,5",
        "-p",
        "methods=cd,lea-mvd",
        "-p",
        "n_images=40",
        "-p",
        "n_gen=2",
    ),
    *("-p", "n_elite=2", "-p", "seeds=0-2"),
)
ROOT = Path(__file__).parents[1]


def run(*arguments: str, code: int = 0) -> Result:
    found = CliRunner().invoke(cli.main, arguments)
    assert found.exit_code == code, found.output
    return found


def place(output: Path, stem: str = "03_mnist_7x7") -> Path:
    found = sections.latest(output, stem)
    assert found is not None
    return found


def test_version_and_help() -> None:
    assert run("--version").output == f"leamvd, version {leamvd.__version__}\n"
    assert {"list", "reproduce", "claim", "verify", "record", "data", "book"} == {
        *cli.main.commands
    }


def test_an_error_of_ours_names_the_option_that_shows_where_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sections, "load", lambda: None)  # which takes names
    assert "`leamvd --debug ...`" in run("list", code=1).output
    assert isinstance(CliRunner().invoke(cli.main, ["--debug", "list"]).exception, TypeError)
    monkeypatch.setattr(sections, "load", lambda _: 1e300**2)  # one that Python raises
    assert run("list", code=1).output.startswith("Error: ")


def test_checking_settings_computes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((results, "run_all"), (esd, "simulate"), (two_directions, "trace")):
        monkeypatch.setattr(module, name, None)
    sections.check_all([(section, [{"profile": "quick"}]) for section in sections.load()])
    assert "linear-cost: profile must be one of" in (
        run("reproduce", "linear-cost", "--profile", "fewer", code=1).output
    )


def test_sections_and_their_parameters_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    *lines, _ = run("list").output.splitlines()
    assert [line.split()[0] for line in lines] == [section.name for section in sections.load()]
    assert {*sections.QUICK} == {line.split()[0] for line in lines}
    assert all(line.endswith(f"(quick takes {sections.QUICK[line.split()[0]]})") for line in lines)
    shown = run("list", "mnist-7x7").output
    for words in (
        "exponent (a number; 1.5): of LEA-MVD's selection weights (R19)",
        "layers (a whole number, or several with commas; quick 20, 20, 40, paper 30, 30, 120): ",
        "n_images (a whole number; the profile's): for training",
        "profile (a word; in the notebook recorded, by `leamvd reproduce` quick): ",
        "processor hours",
    ):
        assert f"\n  {words}" in shown or words == "processor hours"
    assert "processor hours" in run("list", "explanation").output, "some of it has no table of runs"
    assert "CDSettings" not in run("list", "settings-map").output
    assert CliRunner(charset="cp1251").invoke(
        cli.main, ["list", "03_mnist_7x7"]
    ).output == shown.replace("\xd7", "?")


@pytest.mark.parametrize("columns", [80, 120])
def test_lists_are_whole_at_the_width_of_a_terminal(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for arguments in ((), [section.name for section in sections.load()]):
        shown = run("list", *arguments).output
        assert max(map(len, shown.splitlines())) <= columns
        assert not re.search(r"…|Optional|list\[", shown)


@pytest.mark.parametrize(
    "column", ["inputs", "layer", "method", "seed", "study", "protocol", "batches"]
)
def test_what_a_recorded_run_took_are_the_hours_of_all_that_was_run(
    column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = pd.DataFrame({"layer": 1, "seed": 0, "method": "cd", "seconds": [600.0, 3600.0]})
    runs = pd.concat([run.assign(**{column: value}) for value in (1, 2)])
    monkeypatch.setattr(
        verify, "read_recorded", lambda name, table: runs if table == "runs" else run[[]]
    )
    assert {hours for _, hours in cli._hours(*sections.load(["mnist-7x7"]))} == {2.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("reproduce", "mnist"), "no section 'mnist'"),
        (("reproduce", "esd", "-p", "seed=1", "-p", "seed=2"), "seed is given twice"),
        (("reproduce", "esd", "-p", "output=x"), "output is set by --output"),
        (
            ("reproduce", "mnist-7x7", "-p", "N_GEN=5"),
            "no parameter 'N_GEN'; did you mean 'n_gen'?",
        ),
        (("reproduce", "ESD"), "no section 'ESD'; did you mean 'esd'?"),
        (("reproduce", "mnist-7x7", "-p", "seeds=5-3"), "or ranges such as 0-9, got '5-3'"),
        (
            ("reproduce", "mnist-7x7", "-p", "n_images=-5"),
            "n_images must be an integer >= 1 and <= 1437, got -5",
        ),
        (
            ("reproduce", "mnist-7x7", "-p", "n_images=1e6"),
            "n_images must be an integer >= 1 and <= 1437, got 1000000",
        ),
        (
            ("reproduce", "mnist-7x7", "--profile", "Quick"),
            "'controls', got 'Quick'; did you mean 'quick'?",
        ),
        (("reproduce", "verdicts", "--profile", "all"), "'recorded', 'quick', 'paper', got 'all'"),
        (
            ("reproduce", "directions", "-p", "generations="),
            "generations must be a list of 1 or more, got []",
        ),
        (
            ("reproduce", "mnist-7x7", "-p", "x0=None"),
            "got 'None': leave it out for the profile's; did you mean 'none'?",
        ),
        (("claim", "C3", "-p", "x0=None"), "did you mean 'none'?"),
        (("reproduce", "esd", "-p", "seed=None"), "got 'None': leave it out for the notebook's"),
        (
            ("reproduce", "mnist-28x28", "error-measures", "--profile", "fewer"),
            "error-measures: profile must be one of",
        ),
        (
            ("reproduce", "mnist-28x28", "verdicts", "--profile", "fewer"),
            "verdicts: profile must be one of",
        ),
        (
            ("reproduce", "mnist-28x28", "longer-searches", "--profile", "fewer"),
            "longer-searches: profile must be one",
        ),
        (("reproduce", "mnist-7x7", "--profile", ""), "profile must be a word, got ''"),
        (("reproduce", "mnist-7x7", "-p", "dataset="), "dataset must be a word, got ''"),
        (("reproduce", "mnist-7x7", "--dataset", ""), "dataset must be a word, got ''"),
        (("claim", "C3", "--dataset", ""), "there is no data set ''"),
        (("claim", "C3", "-p", "learning_rate=0.1,0.01"), "at one setting at a time"),
        (("data", "mnist", "--from", ""), "there is no data set ''"),
        (("reproduce", "esd", "--output", ""), "a folder must have a name, got ''"),
        (("book", "--results", ""), "a folder must have a name, got ''"),
        (("reproduce", "mnist-7x7", "-p", "exponent", "3"), "must be NAME=VALUE, got 'exponent'"),
        (("claim", "C3", "--seeds", "1_0"), "'1_0' is not a valid integer"),
        (
            ("reproduce", "classification", "-p", "scales=1_5"),
            "scales must be numbers >= 0 or 'glorot', got '1_5'",
        ),
        (
            ("reproduce", "mnist-7x7", "-p", "cd_steps=1,1"),
            "cd_steps must be different values, got [1, 1]",
        ),
        (("book", "--results=~"), "results must hold runs of"),
        (("reproduce", "esd", "-p", "seed"), "must be NAME=VALUE, got 'seed'"),
        (("reproduce", "mnist-7x7", "-p", "methods=cd,adam"), "mnist-7x7: methods must be one of"),
        (("reproduce", "mnist-7x7", "-p", "sigma0=-1"), "mnist-7x7: sigma0 must be"),
        (
            ("reproduce", "mnist-7x7", "--profile", "recorded", "-p", "sigma0=1"),
            "profile='recorded' has fixed settings",
        ),
        (("reproduce", "mnist-7x7", "--dataset", "nowhere"), "nowhere"),
        (("reproduce", "esd", "--scheduler", "here"), "missing port number in address 'here'"),
        (("verify", "nothing"), "name must be one of"),
        (("verify", "--report", "nowhere/run.json"), "be written in the folder 'nowhere'"),
        (("verify", "--report", "."), "is a directory"),
        (("record", "nothing"), "name must be one of"),
        (("data", "mnist", "--from", "nowhere"), "does not hold MNIST's original files"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_computed(
    arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USERPROFILE" if os.name == "nt" else "HOME", str(tmp_path))
    monkeypatch.setattr(results, "run_all", lambda *_, **__: pytest.fail("was computed"))
    monkeypatch.setattr(
        "leamvd_paper.data.mnist._download", lambda *_: pytest.fail("was downloaded")
    )
    found = CliRunner().invoke(cli.main, arguments)
    assert found.exit_code in (1, 2)
    assert message in found.output
    assert "Traceback" not in found.output
    assert not (tmp_path / "results").exists()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Run the command in one process; return the folder of its results and what it has printed."""
    output = tmp_path_factory.mktemp("whole")
    command = [sys.executable, "-m", "leamvd_paper", *SMALL, "--output", str(output), "--jobs", "1"]
    return (
        output,
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout,
    )


def ended(
    methods: dict[str, tuple[float, float]], inputs: str = "own", layer: int = 3
) -> pd.DataFrame:
    """Return a summary of methods by their errors, and these over the constant image's."""
    rows = [
        ("mean_field", inputs, layer, name, 2, mean, over) for name, (mean, over) in methods.items()
    ]
    columns = ["measure", "inputs", "layer", "method", "runs", "mean", "over_constant"]
    ends = dict.fromkeys(
        ["low", "high", "start", "over_constant_low", "over_constant_high"], float("nan")
    )
    return pd.DataFrame(rows, columns=columns).assign(**ends)


def test_a_small_error_that_tells_of_no_learning_is_said_to_be_one() -> None:
    errors = {
        "cd": (1200.0, 0.2),
        "lea-mvd:sigma0=0.3": (10.0, 1.5),
        "random": (900.0, 0.9),
        "cma-es": (1300.0, 2.0),
    }
    said = cli._printed(ended(errors)).splitlines()[-1]
    told = (
        "Errors below CD's that are no sign of learning, for a constant image has a smaller one:"
        " LEA-MVD, σ0 = 0.3,"
    )
    assert said == f"{told} own inputs, RBM 3."
    assert "no sign" not in cli._printed(ended(errors | {"lea-mvd:sigma0=0.3": (10.0, 0.9)}))
    other = pd.concat(
        [ended(errors).query("method != 'cd'"), ended({"cd": (1200.0, 0.2)}, layer=2)]
    )
    assert "no sign" not in cli._printed(other), "CD's of the same layer"
    small = errors | {"lea-mvd:sigma0=0.3": (10.0, 0.9)}
    together = cli._together(
        [({"exponent": 1.5}, ended(small)), ({"exponent": 3.0}, ended(errors))]
    )
    assert together.splitlines()[-1] == f"{told} own inputs, RBM 3, exponent=3.0."


def test_errors_stand_beside_those_of_the_recorded_run_where_there_is_one() -> None:
    summary = ended({"cd": (1200.0, 0.2), "lea-mvd": (1300.0, 0.3), "random": (1400.0, 0.4)})
    assert "recorded" not in cli._printed(summary)
    known = {"ratio": [0.5, 2.25, np.nan], "paired": [4, 3, np.nan]}
    ends = {"ratio_low": [0.4, 2.0, np.nan], "ratio_high": [0.6, 2.5, np.nan]}
    said = cli._printed(summary.assign(**known, **ends))
    heading, *table = said.partition("over the errors of the recorded run; ")[2].splitlines()
    assert heading == "seeds in common: 3"
    rows = [" ".join(row.split()) for row in table]
    assert rows[:3] == [
        "inputs method RBM 3",
        "own CD 0.50 (0.40 to 0.60)",
        "own LEA-MVD 2.25 (2.00 to 2.50)",
    ]
    assert not any("random" in row for row in rows), "of which nothing is recorded"


def test_errors_stand_in_the_column_of_their_layer() -> None:
    summary = pd.concat([ended({"cd": (100.0 * n, n)}, layer=n) for n in (1, 2, 3)])
    rows = [line.split() for line in cli._printed(summary).splitlines()]
    assert ["own", "CD", "100", "200", "300"] in rows
    assert rows[rows.index(["own", "CD", "100", "200", "300"]) - 1] == (
        ["inputs", "method", "RBM", "1", "RBM", "2", "RBM", "3"]
    )


def runs(output: Path) -> pd.DataFrame:
    return pd.read_csv(place(output) / "tables" / "runs.csv").drop(columns="seconds")


def test_a_run_prints_its_errors_and_leaves_notebook_tables_and_figures(
    whole: tuple[Path, str],
) -> None:
    output, said = whole
    folder = place(output)
    summary = pd.read_csv(folder / "summary.csv")
    assert f"runs of each method: {summary['runs'].max()}" in said
    own = summary.query(
        "measure == 'mean_field' and layer == 2 and method == 'lea-mvd' and inputs == 'own'"
    ).squeeze()
    assert interval(*own[["mean", "low", "high"]]) in said
    assert number(own["start"]) in said.partition("\nat the start\n")[2]
    over = said.partition("\nover the error of a constant image: ")[2]
    assert interval(*own[["over_constant", "over_constant_low", "over_constant_high"]]) in over
    assert ("LEA-MVD" in said, "lea-mvd " in said) == (True, False)
    table = runs(output)
    assert {*table["seed"]} == {0, 1, 2}
    assert table["iteration"].max() == 2
    assert {path.suffix for path in (folder / "figures").iterdir()} == {".png", ".csv", ".json"}
    assert "-p n_gen=2" in json.loads((folder / "run.json").read_text())["command"]
    assert run(*SMALL, "--output", str(output)).output.count("finished before") == 1


def test_the_book_gets_the_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {}

    def rendered(results: Path | None, **addresses: str) -> Path:
        given.update(addresses, results=results)
        return Path("index.html")

    monkeypatch.setattr(render, "render", rendered)
    run("book", "--repository", "https://github.com/a/b", "--baseurl=")
    assert given == {"results": None, "repository": "https://github.com/a/b", "baseurl": ""}


def without_notebook(*arguments: str) -> Result:
    """Run a command that leaves tables alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_execute", lambda *_: None)
        return run(*arguments)


def test_several_values_are_run_one_after_the_other_and_end_with_one_table(tmp_path: Path) -> None:
    said = without_notebook(
        *SMALL, "-p", "exponent=0,3", "--output", str(tmp_path), "--jobs", "1"
    ).stdout
    assert len(list((tmp_path / "03_mnist_7x7").glob("quick*"))) == 2
    last = said.rpartition("\n03_mnist_7x7, all of these runs:\n")[2]
    heading, *table = last.partition("\nover the error of a constant image\n")[0].splitlines()
    assert heading.split() == ["inputs", "method", "RBM", "1", "RBM", "2", "exponent"]
    rows = [row.split() for row in table]
    assert [row[-1] for row in rows] == 4 * ["0.0", "3.0"]
    for one, other in zip(rows[::2], rows[1::2], strict=True):
        assert (one[:-1] == other[:-1]) == (one[1] == "CD"), "the exponent is LEA-MVD's"


def test_a_setting_without_effect_is_warned_of_once(tmp_path: Path) -> None:
    given = {
        "layers": 3,
        "methods": "random",
        "n_images": 20,
        "n_gen": 1,
        "seeds": 0,
        "x0": "none",
        "sigma0": 0.5,
    }
    settings = [part for name, value in given.items() for part in ("-p", f"{name}={value}")]
    with pytest.warns(
        OptimizeWarning, match="random has no use for sigma0 without a start"
    ) as caught:
        without_notebook(
            "reproduce", "mnist-7x7", *settings, "--output", str(tmp_path), "--jobs", "1"
        )
    assert len(caught) == 1


@pytest.mark.parametrize("where", [("--jobs", "2"), ("--scheduler", "local", "--jobs", "2")])
def test_tables_are_the_same_wherever_they_are_computed(
    where: tuple[str, ...], whole: tuple[Path, str], tmp_path: Path
) -> None:
    without_notebook(*SMALL, *where, f"--output=~/{tmp_path.name}")
    pd.testing.assert_frame_equal(
        runs(Path.home() / tmp_path.name), runs(whole[0]), check_exact=True
    )


def test_the_same_command_goes_on_after_a_kill(whole: tuple[Path, str], tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "leamvd_paper",
        *SMALL,
        "--output",
        str(tmp_path),
        "--jobs",
        "1",
    ]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as killed:
        while (
            len(
                kept := {
                    path: path.stat().st_mtime_ns for path in tmp_path.glob("calls/*/[!.]*.npz")
                }
            )
            < 5
        ):
            assert killed.poll() is None
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
    assert not (tmp_path / "03_mnist_7x7").exists()
    without_notebook(*command[3:])
    assert {path: path.stat().st_mtime_ns for path in kept} == kept, (
        "what was finished is not computed again"
    )
    pd.testing.assert_frame_equal(runs(tmp_path), runs(whole[0]), check_exact=True)


def test_an_interrupt_says_how_to_go_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sections, "run", interrupted)
    assert (
        "The same command goes on from there."
        in run(*SMALL, "--output", str(tmp_path), code=130).output
    )


def test_a_claim_is_answered_with_the_images_and_seeds_that_are_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def own_maps(name: str, given: Any, **options: Any) -> None:
        asked.append((name, given, options))
        raise ValueError("enough")

    monkeypatch.setattr(settings_map, "own_maps", own_maps)
    options = ("--dataset", "digits", "--images", "70", "--seeds", "2")
    run("claim", "C3", "-p", "learning_rate=0.01", *options, code=1)
    kept = {"dataset": "digits", "n_images": 70, "n_seeds": 2}
    assert asked == [("C3", {"learning_rate": 0.01}, kept)]


@pytest.mark.parametrize(
    "command",
    [
        ("reproduce", "esd"),
        ("claim", "C3", "--dataset", "digits"),
        ("record", "architectures"),
        ("verify", "architectures"),
    ],
    ids=lambda command: command[0],
)
def test_what_computes_has_the_folder_and_the_processes_that_are_asked_for(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def computing(*given: Any, n_jobs: int = 0, **_: Any) -> None:
        asked.append((given[-1], n_jobs))
        raise ValueError("enough")

    folder = tmp_path
    monkeypatch.setattr(results, "committed", lambda: "0123456789ab")
    if command[0] == "reproduce":
        monkeypatch.setattr(sections, "run", computing)
    else:
        monkeypatch.setattr(results, "tables", computing)
        folder = tmp_path / "calls"
    assert "enough" in run(*command, "--jobs", "3", "--output", str(tmp_path), code=1).output
    assert asked == [(folder, 3)]


def test_a_missing_extra_is_one_sentence(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['papermill'] = None; sys.argv[1:] = ['reproduce', 'esd']\nimport"
        " leamvd_paper.__main__"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 1
    needed = "Error: running a notebook needs the package papermill: pip install leamvd-paper[book]"
    assert done.stderr.splitlines()[-1] == needed


def test_a_clone_that_is_not_installed_works(tmp_path: Path) -> None:
    program = (
        "import sys, importlib.metadata as m\n"
        "def missing(name): raise m.PackageNotFoundError(name)\n"
        "m.version = missing\n"
        "import leamvd; print(leamvd.__version__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "0+unknown\n"


# ---- what the commands print and pass on, where nothing is computed


@pytest.mark.parametrize(
    "kind", [ImportError, MemoryError, OSError, OverflowError, RuntimeError, TypeError, ValueError]
)
def test_a_mistake_of_the_user_or_the_machine_ends_with_status_1(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def load(_names: object) -> None:
        raise kind("no")

    monkeypatch.setattr(sections, "load", load)
    said = run("list", code=1).output
    assert said.startswith("Error: no")
    assert ("--debug" in said) == (kind is TypeError), "which is ours"


def test_a_reader_that_has_seen_enough_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_names: object) -> None:
        raise BrokenPipeError

    monkeypatch.setattr(sections, "load", load)
    found = CliRunner().invoke(cli.main, ["list"])
    assert isinstance(found.exception, BrokenPipeError)


def test_hours_of_all_that_is_recorded_of_a_section_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(verify, "processor_hours", {"mnist_7x7": 12.345}.get)
    told = [line for line in run("list", "mnist-7x7").output.splitlines() if "hours" in line]
    assert told == ["  what is recorded as mnist_7x7 took 12 processor hours"]


@pytest.mark.parametrize("option", ["--jobs", "--seeds", "--images"])
def test_a_count_is_at_least_one(option: str) -> None:
    assert "0 is not in the range" in run("claim", "C3", option, "0", code=2).output


def test_what_stands_still_after_an_interrupt_is_in_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sections, "run", interrupted)
    said = run("reproduce", "esd", "--output", str(tmp_path), code=130).output
    assert f"what is finished is in {tmp_path}\n" in said


def test_all_sections_run_one_after_the_other_where_none_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def noted(section: Any, values: Any, output: Path, **_: Any) -> tuple[Path, bool]:
        asked.append((section.name, values, output))
        return tmp_path, True

    monkeypatch.setattr(sections, "run", noted)
    monkeypatch.setattr(sections, "check_all", lambda planned: None)
    run("reproduce", "--output", str(tmp_path / "there"))
    names = [section.name for section in sections.load()]
    assert asked == [(name, {"profile": "quick"}, tmp_path / "there") for name in names]
    asked.clear()
    given = ("--profile", "paper", "--dataset", "digits", "-p", "exponent=1,2")
    run("reproduce", "mnist-7x7", *given)
    both = {"profile": "paper", "dataset": "digits"}
    assert [(name, output) for name, _, output in asked] == 2 * [("mnist-7x7", Path("results"))]
    assert [values for _, values, _ in asked] == [both | {"exponent": 1.0}, both | {"exponent": 2}]


@pytest.mark.parametrize("finished", [False, True])
def test_a_run_ends_with_its_errors_its_time_and_its_files(
    finished: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (esd_section,) = sections.load(["esd"])
    for name in ("tables/b.csv", "tables/a.csv", "figures/c.png", "figures/c.json", "one.ipynb"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    pd.DataFrame({"n": [12345.678], "gone": [np.nan]}).to_csv(tmp_path / "summary.csv", index=False)
    times = iter([100.0, 103.0])
    monkeypatch.setattr(cli, "time", SimpleNamespace(monotonic=lambda: next(times, 103.0)))
    monkeypatch.setattr(sections, "run", lambda *_, **__: (tmp_path, finished))
    monkeypatch.setattr(sections, "check_all", lambda planned: None)
    said = run("reproduce", "esd", "-p", "seed=3").output.splitlines()
    assert said[0] == f"01_esd: {esd_section.title}, profile=quick, seed=3"
    assert [line.split() for line in said[1:3]] == [["n", "gone"], ["1.235e+04", "–"]]
    assert said[3] == f"01_esd: {'finished before' if finished else 'done in 3 s'}, in"
    assert said[4] == str(tmp_path)
    files = ["figures/c.png", "one.ipynb", "summary.csv", "tables/a.csv", "tables/b.csv"]
    assert said[5:] == [f"  {Path(name)}" for name in files]


def test_numbers_of_several_runs_without_layers_are_one_table() -> None:
    one = pd.DataFrame({"problem": ["RBM 1"], "error": [3.0], "ratio": [np.nan]})
    runs = [({"n": n, "profile": "quick"}, one.assign(error=float(n))) for n in (30, 4)]
    heading, *rows = (line.split() for line in cli._together(runs).splitlines())
    assert heading == ["problem", "error", "ratio", "n"]
    assert rows == [["RBM", "1", "30", "–", "30"], ["RBM", "1", "4", "–", "4"]]


def test_of_methods_with_other_numbers_of_runs_the_most_is_told() -> None:
    summary = ended({"cd": (1200.0, 0.2), "lea-mvd": (1300.0, 0.3)}).assign(runs=[2, 7])
    assert cli._printed(summary).splitlines()[0].endswith("runs of each method: 7")


def test_errors_that_tell_of_no_learning_are_below_those_of_cd_on_the_same_inputs() -> None:
    errors = {"cd": (1200.0, 0.2), "lea-mvd": (1100.0, 1.5)}
    shared = {"cd": (1000.0, 0.2), "lea-mvd": (1100.0, 1.5)}
    summary = pd.concat([ended(shared, "shared"), ended(errors, "own"), ended(shared, "own", 2)])
    said = cli._printed(summary).splitlines()[-1]
    assert said.partition(" smaller one: ")[2] == "LEA-MVD, own inputs, RBM 3."
    tie = {"cd": (1200.0, 0.2), "lea-mvd": (1200.0, 1.5), "random": (1100.0, 1.0)}
    assert "no sign" not in cli._printed(ended(tie)), "of what is neither below nor above"


@pytest.mark.parametrize(
    ("options", "place", "threads"),
    [
        (("--scheduler", "local", "--jobs", "2"), {"threads_per_worker": 1, "n_workers": 2}, 2),
        (("--scheduler", "local"), {"threads_per_worker": 1, "n_workers": None}, 2),
        (
            ("--scheduler", "tcp://10.0.0.1:8786", "--jobs", "2"),
            {"address": "tcp://10.0.0.1:8786"},
            1,
        ),
    ],
)
def test_calls_go_to_the_workers_of_the_scheduler(
    options: tuple[str, ...],
    place: dict[str, Any],
    threads: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    class Client:
        dashboard_link = "http://10.0.0.1:8787"
        scheduler = SimpleNamespace(address="tcp://10.0.0.1:8786")

        def __init__(self, **given: Any) -> None:
            asked.append(given)

        def __enter__(self) -> "Client":
            return self

        def __exit__(self, *_: object) -> None:
            asked.append("closed")

        def scheduler_info(self, n_workers: int) -> dict[str, Any]:
            workers = {str(n): {"nthreads": 1} for n in range(threads)}
            return {"workers": workers if n_workers == -1 else {}}

    @contextlib.contextmanager
    def parallel_config(backend: str) -> Iterator[None]:
        asked.append(backend)
        yield
        asked.append("left")

    def noted(*_: Any, n_jobs: int) -> tuple[Path, bool]:
        asked.append(n_jobs)
        return tmp_path, True

    monkeypatch.setitem(sys.modules, "distributed", SimpleNamespace(Client=Client))
    monkeypatch.setattr("joblib.parallel_config", parallel_config)
    monkeypatch.setattr(sections, "run", noted)
    monkeypatch.setattr(sections, "check_all", lambda planned: None)
    said = run("reproduce", "esd", *options).output
    assert asked == [place, "dask", -1, "left", "closed"]
    assert said.startswith(
        f"{threads} threads of workers on tcp://10.0.0.1:8786, http://10.0.0.1:8787"
    )
    assert ("joblib computes here" in said) == (threads == 1)


def test_without_a_number_of_jobs_there_are_as_many_as_threads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "thread_count", lambda given: 5 if given is None else given)
    with cli._computing(None, None) as n_jobs:
        assert n_jobs == 5
    with cli._computing(2, None) as n_jobs:
        assert n_jobs == 2


@pytest.mark.parametrize("dataset", ["mnist", "digits", "faces.npz"])
def test_the_answer_to_a_claim_comes_with_its_parts_and_with_the_nearest_one_of_the_map(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def a_map(count: int, seconds: float) -> Any:
        images = SimpleNamespace(known=lambda: SimpleNamespace(n_images=count))
        return SimpleNamespace(images=images, seconds=seconds)

    maps = {28: a_map(10_000, 200.0), 7: a_map(2_000, 70.0)}
    met = pd.DataFrame({"view": "both", "where": ["RBM 1", "RBM 2"], "met": ["yes", "no"]})
    ratios = pd.DataFrame({"of": ["CD", "no search"], "RBM 1": [0.12345, np.nan]})
    asked = []

    def own_answer(*given: Any, n_jobs: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        asked.append((*given, n_jobs))
        return met, ratios

    monkeypatch.setattr(settings_map, "own_maps", lambda *_, **__: maps)
    monkeypatch.setattr(settings_map, "seconds", lambda one: one.seconds)
    monkeypatch.setattr(settings_map, "own_answer", own_answer)
    monkeypatch.setattr(
        settings_map, "nearest", lambda name, own: f"near of {name}: {own is maps[28]}"
    )
    given = ("--dataset", dataset, "--output", str(tmp_path), "--jobs", "2")
    said = run("claim", "C4", *given).output
    assert asked == [("C4", maps, tmp_path / "calls", 2)]
    assert f"C4, in the paper's words: {CLAIMS['C4']}\n" in said
    assert (
        "C4 at 28x28 pixels, 10,000 images and 7x7 pixels, 2,000 images, 3 seeds:"
        " about 4.5 minutes on one processor\n"
    ) in said
    parts, over, answers, near = said.partition("processor\n")[2].split("\n\n")
    assert [line.split() for line in parts.splitlines()] == [
        ["view", "where", "met"],
        ["both", "RBM", "1", "yes"],
        ["both", "RBM", "2", "no"],
    ]
    heading, *rows = over.splitlines()
    assert heading == "errors over that of a constant image"
    assert [line.split() for line in rows] == [
        ["of", "RBM", "1"],
        ["CD", "0.1235"],
        ["no", "search", "–"],
    ]
    heading, *rows = answers.splitlines()
    assert heading.split() == ["claim", "view", "answer"]
    assert [line.split() for line in rows] == [
        ["C4", "printed", "partly"],
        ["C4", "default", "partly"],
    ], "of the views that its parts are of"
    own = "these are not the paper's images"
    assert near.startswith("near of C4: True\n" if dataset == "mnist" else own)
    assert " 1 seed: " in run("claim", "C4", *given, "--seeds", "1").output


def test_only_a_clone_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "NOTEBOOKS", tmp_path / "notebooks")
    monkeypatch.setattr(results, "committed", lambda: pytest.fail("was asked for a commit"))
    said = run("record", "architectures", code=1).output
    assert "needs a clone of the repository, got an installed package" in said


def test_what_is_recorded_names_the_commit_that_the_computation_began_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = iter(["before", "after"])
    current = next(commits)
    written = []

    def computed(*_: Any, **__: Any) -> dict[str, pd.DataFrame]:
        nonlocal current
        current = next(commits)  # another one is checked out meanwhile
        return {"runs": pd.DataFrame({"n": [1]})}

    def write(name: str, tables: Any, settings: Any, commit: str) -> str:
        written.append((name, [*tables], commit))
        return "the folder"

    monkeypatch.setattr(results, "committed", lambda: current)
    monkeypatch.setattr(results, "tables", computed)
    monkeypatch.setattr(results, "write_recorded", write)
    said = run("record", "architectures", "--output", str(tmp_path)).output
    assert said.endswith("the folder\n")
    assert written == [("architectures", ["runs"], "before")]


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a folder that may be read, and that takes no files."""
    monkeypatch.setattr(verify, "verify", lambda *_, **__: pytest.fail("was computed"))
    monkeypatch.setattr(os, "access", lambda _path, mode: not mode & os.W_OK)
    report = tmp_path / "report.json"
    said = run("verify", "architectures", "--report", str(report), code=2).output
    assert "no file can be written in the folder" in said
    assert not report.exists()


def test_what_a_verification_found_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    drifted: set[str] = set()

    def verified(
        name: str, folder: Path, *, count: int, n_jobs: int
    ) -> tuple[list[str], pd.DataFrame]:
        asked.append((name, folder, count, n_jobs))
        if name == "c":
            raise ImportError("no torch")
        drifts = [False, name in drifted]
        return ["numpy was 1"], pd.DataFrame({"here": [0.123456789, 2.0], "drifts": drifts})

    monkeypatch.setattr(verify, "all_recorded", lambda: dict.fromkeys("cba"))
    monkeypatch.setattr(verify, "changed_settings", lambda _name: [])
    monkeypatch.setattr(verify, "verify", verified)
    given = ("--output", str(tmp_path), "--jobs", "2")
    said = run("verify", "--calls", "4", *given).output.splitlines()
    assert asked == [(name, tmp_path / "calls", 4, 2) for name in "abc"], "all, in order"
    assert said[0] == "a; numpy was 1"
    assert [line.split() for line in said[1:4]] == [
        ["here", "drifts"],
        ["0.1234568", "False"],
        ["2", "False"],
    ]
    assert said[-2:] == ["c: not verified: no torch", "2 of 3 compared"]
    drifted.add("b")
    assert "2 of 3 compared" in run("verify", *given, code=1).output
    assert asked[-1] == ("c", tmp_path / "calls", 1, 2), "one call, where no number is given"
    run("verify", "a", *given)
    assert "0 of 1 compared" in run("verify", "c", *given, code=1).output


def test_mnist_is_fetched_from_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def fetched(source: str | None, *, progress: bool) -> Path:
        asked.append((source, progress))
        return Path("there")

    monkeypatch.setattr("leamvd_paper.data.mnist.fetch_mnist", fetched)
    assert run("data", "mnist").output == run("data", "mnist", "--from", "here").output == "there\n"
    assert asked == [(None, False), ("here", False)], "no bar where nobody looks"


def test_the_book_of_ones_own_results_is_rendered_and_its_page_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = []

    def rendered(*given: Any, **addresses: str) -> Path:
        asked.append((*given, addresses))
        return Path("book", "index.html")

    monkeypatch.setattr(render, "render", rendered)
    said = run("book", "--results", ".", "--baseurl", "https://a.example/b").output
    assert said == f"{tmp_path.resolve() / 'book' / 'index.html'}\n"
    assert asked == [(Path(), {"repository": "", "baseurl": "https://a.example/b"})]
