"""How the bench measures: clocks, memory, processes of their own, and the tables they leave behind."""

import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from test_bench_overview import RECORDED

from leamvd import bench, cli
from leamvd._support import children
from leamvd.bench import baselines, machine, memory, networks, optimizers, parts, timing, waiting
from leamvd.bench.cases import Case, measure, tabulate
from leamvd.bench.timing import alternate, clocked, quartiles
from leamvd.book import runs, sections

MEGABYTE = 1 << 20

WORKS = """
import os, signal, time
from leamvd.bench import cases

def double(x):
    print("something else")
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 0
    return [{"twice": 2 * x, "environment": dict(os.environ), "processors": processors}]

def answer_and_die():
    print(cases.ANSWER + '{"status": "ok", "rows": [{"twice": 4}]}', flush=True)
    os._exit(7)

def killed():
    os.kill(os.getpid(), signal.SIGKILL)

def gone():
    print("a last word", file=__import__("sys").stderr, flush=True)
    os._exit(3)

def silent():
    os._exit(0)

def slow():
    time.sleep(60)

def wrong():
    raise ValueError("not\\nlike this")

def refused():
    raise MemoryError("so many variables are too many")
"""


@pytest.fixture
def works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that workers can import, and an empty folder."""
    (tmp_path / "works.py").write_text(WORKS)
    path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    (tmp_path / "cases").mkdir()
    return tmp_path / "cases"


def case(name: str, *, threads: int = 1, limit: float = 60, **arguments: Any) -> Case:
    return Case("table", f"works:{name}", arguments, {"known": 1}, threads, limit)


# ---- timing


def test_works_take_turns_after_a_round_that_does_not_count() -> None:
    """The first call, which may compile, takes a thousand times as long: neither seconds nor repetitions show it."""
    calls = []

    def work(name: str, seconds: float) -> float:
        calls.append(name)
        return 1000 * seconds if calls.count(name) == 1 else seconds + len(calls)

    seconds = alternate({"a": lambda: work("a", 1.0), "b": lambda: work("b", 2.0)}, 3)
    assert "".join(calls) == "ab" * 4
    np.testing.assert_array_equal(seconds["a"], [4, 6, 8])
    np.testing.assert_array_equal(seconds["b"], [6, 8, 10])


def test_short_works_are_repeated_and_averaged(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[float] = []
    monkeypatch.setattr(timing, "FILL", 0.4)
    seconds = alternate({"short": lambda: calls.append(0) or 0.1 * (1 + (len(calls) + 1) % 2), "long": lambda: 5.0}, 7)
    assert len(calls) == 1 + 7 * 4
    np.testing.assert_allclose(seconds["short"], 0.15)


def test_all_of_a_functions_seconds_count() -> None:
    ticks = iter([3.0, 10.5])
    assert clocked(lambda: None, lambda: next(ticks))() == 7.5
    assert clocked(lambda: time.sleep(0.05))() >= 0.05


def test_median_and_quartiles() -> None:
    found = quartiles("own", np.array([5.0, 1, 2, 4, 3]))
    assert found == {"own_seconds": 3, "own_low": 2, "own_high": 4}


# ---- memory


def hold(megabytes: int) -> None:
    np.ones(megabytes * MEGABYTE, np.int8)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere an earlier peak cannot be forgotten")
def test_peak_of_a_known_allocation_whatever_was_held_before() -> None:
    hold(200)
    kept = np.ones(50 * MEGABYTE, np.int8)
    for megabytes in (64, 16):
        assert memory.peak_bytes(lambda m=megabytes: hold(m)) == pytest.approx(megabytes * MEGABYTE, abs=2 * MEGABYTE)
    assert len(kept) == 50 * MEGABYTE
    assert memory.peak_bytes(lambda: None) < MEGABYTE


@pytest.mark.skipif(sys.platform != "linux", reason="about glibc")
def test_memory_that_was_freed_but_kept_for_later_counts_when_it_is_used_again() -> None:
    def small(count: int) -> list[np.ndarray]:
        return [np.ones(100_000, np.int8) for _ in range(count)]

    last = small(300)[-1]  # above the others, so that they cannot go back by themselves
    assert memory.peak_bytes(lambda: small(200)) == pytest.approx(200 * 100_000, rel=0.1)
    assert len(last) == 100_000


def test_where_a_peak_cannot_be_forgotten_it_is_nan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_RESET", tmp_path / "no" / "such" / "file")
    done = []
    assert math.isnan(memory.peak_bytes(lambda: done.append(True)))
    assert done == [True]


# ---- a process of its own


@pytest.mark.parametrize("threads", [1, 2])
def test_a_case_answers_and_has_its_threads_and_processors(
    works: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    """Every library is told before it starts, whatever the caller's own environment says."""
    told = [f"{library}_NUM_THREADS" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMBA")]
    for name in told:
        monkeypatch.setenv(name, "7")
    answer = case("double", x=21, threads=threads).measure()
    assert (answer["status"], answer["rows"][0]["twice"]) == ("ok", 42)
    assert answer["seconds"] > 0
    (found,) = answer["rows"]
    known = dict.fromkeys([*told, "VECLIB_MAXIMUM_THREADS"], str(threads))
    assert (known | {"JAX_PLATFORMS": "cpu", "MALLOC_ARENA_MAX": "1"}).items() <= found["environment"].items()
    if hasattr(os, "sched_getaffinity"):
        assert found["processors"] == min(threads, len(os.sched_getaffinity(0)))


@pytest.mark.parametrize(
    ("name", "status"),
    [
        ("killed", "died (signal 9)"),
        ("gone", "died (exit status 3): a last word"),
        ("silent", "died (exit status 0): it said nothing"),
        ("slow", "stopped after 3 s"),
        ("wrong", "failed: ValueError: not like this"),
        ("refused", "refused: so many variables are too many"),
    ],
)
def test_why_a_case_has_no_rows_is_said(works: Path, name: str, status: str) -> None:
    found = case(name, limit=3 if name == "slow" else 60).measure()
    assert (found["status"], found["rows"]) == (status, [])


def test_an_answer_counts_however_its_worker_ends(works: Path) -> None:
    assert case("answer_and_die").measure()["rows"][0]["twice"] == 4


def test_cases_are_saved_at_once_and_never_measured_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [case("double", x=x) for x in range(3)]
    measured = []

    def answer(self: Case) -> dict[str, Any]:
        if len(measured) == 2:
            raise KeyboardInterrupt
        measured.append(self.arguments["x"])
        status = "ok" if self.arguments["x"] else "died (signal 9)"
        return {"status": status, "rows": [{"twice": 1.5}] * (status == "ok"), "seconds": 2.0}

    monkeypatch.setattr(Case, "measure", answer)
    with pytest.raises(KeyboardInterrupt):
        measure(asked, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{j.name}.json" for j in asked[:2]]
    measured.remove(0)
    found = measure(asked, tmp_path, progress=True)
    assert measured == [1, 2], "what had been measured, failures included, was measured again"
    assert "3/3" in capsys.readouterr().err
    table = tabulate(found, "table", ("x", "known", "threads", "status", "twice"))
    assert table["status"].tolist() == ["died (signal 9)", "ok", "ok"]
    assert table["twice"].isna().tolist() == [True, False, False]
    assert table[["x", "known", "threads"]].to_numpy().tolist() == [[0, 1, 1], [1, 1, 1], [2, 1, 1]]
    assert len(tabulate(found, "table", ("x", "twice"))) == 2, "without a status a gap is no row"


def test_names_of_cases_are_file_names_and_differ() -> None:
    names = [case.name for case in bench.planned("paper")]
    assert len(set(names)) == len(names)
    assert not re.search(r"[^\w.-]", "".join(names))


# ---- what people wait for


def test_waiting_is_for_the_table_and_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    heading = "mean-field errors per 10,000 images, with 95 % intervals; runs of each method: 3"
    assert waiting._TABLE in (Path(waiting.__file__).parents[1] / "book" / "summary.py").read_text(encoding="utf-8")
    slow = f"import time; print('begun', flush=True); time.sleep(0.2); print({heading!r}, flush=True); time.sleep(0.5)"
    monkeypatch.setattr(children, "command", lambda program: [sys.executable, "-c", slow])
    found = waiting.wait(["reproduce"], os.environ)
    assert 0.2 < found["table_seconds"] < found["seconds"] - 0.4


def test_a_command_without_a_table_and_one_that_fails() -> None:
    found = waiting.wait(["--version"], os.environ)
    assert np.isnan(found["table_seconds"])
    assert found["seconds"] > 0
    with pytest.raises(subprocess.CalledProcessError, match=r"leamvd.*nonsense.*status 2"):
        waiting.wait(["nonsense"], os.environ)


def test_nothing_is_stored_or_compiled_when_the_first_command_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def wait(command: Sequence[str], environment: Mapping[str, str]) -> dict[str, float]:
        folders = [Path(environment["NUMBA_CACHE_DIR"]), *map(Path, command[5:])]
        seen.append([folder.exists() for folder in folders])
        for folder in folders:
            folder.mkdir(exist_ok=True)
        return {"table_seconds": 1.0, "seconds": 2.0}

    monkeypatch.setattr(waiting, "wait", wait)
    assert len({row["what"] for row in waiting.measure()}) == 4
    assert seen == [[False, False], [True, False], [True, True], [True]]


# ---- a run


def test_run_measures_writes_and_reads_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for others in (networks, parts):
        monkeypatch.setattr(others, "cases", lambda profile: [])
    tables = bench.run("quick", tmp_path, ["leamvd"], [1_000])
    rows = tables.optimizers
    assert tuple(rows) == optimizers.COLUMNS["optimizers"]
    assert rows[["method", "n", "threads", "status"]].drop_duplicates().to_numpy().tolist() == [
        ["leamvd", 1_000, 1, "ok"]
    ]
    assert rows["dtype"].tolist() == ["float32", "float64"]
    assert rows["population_bytes"].tolist() == [96_000, 192_000]
    numbers = rows.loc[:, "generation_seconds":]  # type: ignore[misc]
    assert numbers.notna().all(axis=None)
    assert (numbers.drop(columns="peak_bytes") > 0).all(axis=None)
    assert (rows["generation_low"] <= rows["generation_seconds"]).all()
    assert (rows["generation_seconds"] <= rows["generation_high"]).all()
    ratio = rows["generation_seconds"] / rows["normal_seconds"]
    assert (rows["ratio_to_normal"] / ratio).between(0.2, 5).all()
    about = tables.machine
    assert (about["left_out"], about["profile"], about["failures"]) == ([], "quick", {})
    assert about["seconds"] > 0
    assert None not in about.values()
    monkeypatch.setattr(Case, "measure", lambda self: pytest.fail("measured again"))
    again = bench.run("quick", tmp_path, ["leamvd"], [1_000])
    pd.testing.assert_frame_equal(again.optimizers, rows)
    assert again.machine == bench.read(tmp_path).machine == tables.machine


@pytest.mark.parametrize(("numbers", "scale"), [(240, 1), (60, 4), (0, 12)])
def test_row_of_an_optimizer_whose_costs_are_known(monkeypatch: pytest.MonkeyPatch, numbers: int, scale: int) -> None:
    asked: list[tuple[object, ...]] = []

    class Steady:
        def generation(self) -> float:
            return 2.0

    def make(*arguments: object) -> Steady:
        asked.append(arguments)
        return Steady()

    class Generator:
        def standard_normal(self, *, dtype: Any, out: np.ndarray[Any, Any]) -> None:
            assert (np.dtype(dtype), out.dtype, out.shape) == (np.float32, np.float32, (24 / scale, 10))
            assert out.flags.c_contiguous

    monkeypatch.setattr(optimizers, "_REFERENCE_NUMBERS", numbers)
    monkeypatch.setattr(optimizers.np.random, "default_rng", lambda seed: Generator())
    monkeypatch.setattr(optimizers, "clocked", lambda function: lambda: function() or 1.0)
    monkeypatch.setattr(baselines, "make", make)
    (row,) = optimizers.measure("leamvd", 10, "float32", rounds=3)
    assert [row[f"generation_{name}"] for name in ("seconds", "low", "high")] == [2, 2, 2]
    assert row["normal_seconds"] == scale
    assert row["ratio_to_normal"] == pytest.approx(2 / scale)
    assert asked == 2 * [("leamvd", 10, "float32")]


def test_folder_is_named_after_what_the_numbers_depend_on() -> None:
    here = machine.machine()
    fields = ("processor", "cores", "versions", "code", "bench_code")
    names = {machine.fingerprint("quick", here | {field: "other"}) for field in fields}
    names |= {machine.fingerprint("quick", here), machine.fingerprint("paper", here)}
    assert len(names) == 7
    assert machine.fingerprint("quick", here | {"load": 99.0, "date": "tomorrow"}) in names


def test_cases_of_the_paper_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizers, "BEYOND_BYTES", 0)
    cases = optimizers.cases("paper")
    table = pd.DataFrame([case.arguments | {"threads": case.threads} for case in cases])
    own = table[table["method"] == "leamvd"]
    assert own[own["n"] < 10**8].groupby(["dtype", "threads"])["n"].apply(list).tolist() == 4 * [
        [10**k for k in range(3, 8)]
    ]
    assert own[own["n"] == 10**8][["dtype", "threads"]].to_numpy().tolist() == [["float32", 1]]
    assert table.loc[table["method"] == "pycma full", "n"].tolist()[:5] == [100, 300, 1_000, 2_000, 4_000]
    assert {case.known["rounds"] for case in cases} == {7}
    monkeypatch.setattr(optimizers, "BEYOND_BYTES", math.inf)
    assert max(case.arguments["n"] for case in optimizers.cases("paper", ["leamvd"])) == 10**7


def test_the_full_matrix_is_refused_at_the_first_round_number_that_does_not_fit(works: Path) -> None:
    n = optimizers.cases("quick", ["pycma full"])[-1].arguments["n"]
    found = optimizers.cases("quick", ["pycma full"], [n])[0].measure()
    assert found["status"].startswith(f"refused: CMA-ES with a full covariance matrix of n={n} variables needs")
    assert len(f"{n}".strip("0")) == 1
    smaller = n - 10 ** (len(f"{n}") - 1)
    assert 32 * smaller**2 <= memory.psutil.virtual_memory().total


def test_the_command_runs_the_section_and_prints_time_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: dict[str, object] = {}

    def run(section: sections.Section, values: dict[str, object], output: Path, data: runs.Data, found: None) -> Path:
        ran.update(values, section=section.name, to=output, data=data, found=found)
        return output / "here"

    monkeypatch.setattr(sections, "run", run)
    monkeypatch.setattr(bench, "read", lambda folder: RECORDED)
    result = CliRunner().invoke(cli.main, ["bench", "--profile", "quick", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert ran == {
        "profile": "quick", "section": "linear-cost", "to": tmp_path, "data": runs.NO_DATA, "found": None,
    }  # fmt: skip
    lines = [line.split() for line in result.output.splitlines()]
    del lines[: next(i for i, words in enumerate(lines) if words[:1] == ["method"])]
    assert lines[0][:5] == ["method", "dtype", "n", "seconds", "MB"]
    assert lines[1][:2] == ["leamvd", "float32"]
    assert CliRunner().invoke(cli.main, ["bench", "--profile", "huge"]).exit_code == 2
