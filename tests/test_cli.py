"""The command line as its user types it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner, Result
from scipy.optimize import OptimizeWarning

import leamvd
from leamvd_paper import cli
from leamvd_paper.book import render, sections
from leamvd_paper.studies import esd, results, settings_map, two_directions, verify
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
