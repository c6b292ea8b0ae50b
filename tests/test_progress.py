"""What a reader sees of many units: on a terminal, in a log, in a notebook; and the time that is left."""

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from leamvd.paper import progress
from leamvd.paper.progress import Progress, duration

UNITS = {"cd-own-layer1-seed0": 10, "lea-mvd-own-layer1-seed0": 10, "lea-mvd-own-layer2-seed0": 10}
ONE, TWO, THREE = UNITS


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    return clock


class Terminal:
    """A terminal, and what it was shown."""

    def __init__(self) -> None:
        self._reader, self.writer = os.openpty()
        os.set_blocking(self._reader, False)

    def shown(self) -> str:
        parts = []
        with contextlib.suppress(BlockingIOError):
            while True:
                parts.append(os.read(self._reader, 1 << 16))
        return b"".join(parts).decode()

    def close(self) -> None:
        os.close(self._reader)
        os.close(self.writer)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    if not hasattr(os, "openpty"):
        pytest.skip("needs a terminal")
    terminal = Terminal()
    yield terminal
    terminal.close()


@pytest.fixture
def on_terminal(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return what makes the terminal standard error; from the test itself, or pytest puts its own back."""
    file = open(terminal.writer, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # a descriptor
    return lambda: monkeypatch.setattr(sys, "stderr", file)


def test_a_log_has_a_line_a_minute_and_one_for_each_unit(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("digits", UNITS, show=True) as bar:
        for name in UNITS:
            for iteration in range(1, 11):
                clock.now += 20
                bar.reached(name, iteration)
            bar.stored(name)
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err
    lines = err.splitlines()
    assert len(lines) == 9 + 3
    assert lines[0] == f" 10% digits: 0 of 3 units, about 9 min left; {ONE} 3/10"
    assert lines[3] == f" 33% digits: 1 of 3 units, about 7 min left; {ONE} 10/10"
    assert lines[-1] == f"100% digits: 3 of 3 units, done; {THREE} 10/10"


def test_a_log_is_not_flooded_and_ends_with_the_last_line(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    units = {f"unit{i}": 5 for i in range(1000)}
    with Progress("digits", units, show=True) as bar:
        for name in units:
            clock.now += 0.01
            bar.stored(name)
    lines = capsys.readouterr().err.splitlines()
    assert 20 <= len(lines) <= 40
    assert lines[-1] == "100% digits: 1000 of 1000 units, done; unit999 5/5"


def test_units_that_cost_nothing_count_all_the_same(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    """All of them are stored: nothing is estimated to be left from the first on."""
    with Progress("digits", UNITS, show=True, seconds=dict.fromkeys(UNITS, 0.0)) as bar:
        for name in UNITS:
            clock.now += 1
            bar.stored(name)
    lines = capsys.readouterr().err.splitlines()
    begins = [f"{percent:3d}% digits: {n} of 3 units, done" for n, percent in ((1, 33), (2, 67), (3, 100))]
    assert [line.partition(";")[0] for line in lines] == begins


def test_nothing_is_shown_but_what_must_be_said(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("digits", UNITS, show=False) as bar:
        bar.reached(ONE, 10)
        bar.stored(ONE)
        bar.note("waiting")
        bar.say("warning: damaged")
    assert capsys.readouterr() == ("", "warning: damaged\n")


def test_a_line_does_not_tear_the_bar(terminal: Terminal, on_terminal: Callable[[], None]) -> None:
    on_terminal()
    with Progress("digits", UNITS, show=True) as bar:
        for name in UNITS:
            bar.reached(name, 10)
            bar.note(f"waiting for {name}")
            bar.stored(name)
    lines = terminal.shown().split("\r\n")
    for name in UNITS:
        (line,) = [line for line in lines if f"waiting for {name}" in line]
        assert line.split("\r")[-1] == f"waiting for {name}", "alone on its line"
        assert any(f"{name} 10/10" in shown for shown in lines)
    assert "100%|██████████| digits: 3 of 3 units, done" in lines[-2]


def test_a_terminal_is_shown_a_bar_of_its_width(terminal: Terminal, on_terminal: Callable[[], None]) -> None:
    on_terminal()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal.writer, termios.TIOCSWINSZ, struct.pack("HHHH", 25, 40, 0, 0))
    with Progress("digits", UNITS, show=True) as bar:
        bar.stored(ONE)
    shown = terminal.shown().replace("\n", "\r").split("\r")
    assert any(line.startswith(" 33%|███▎      | digits: 1 of 3") for line in shown)
    assert max(map(len, shown)) <= 40


def test_a_notebook_shows_its_progress_on_the_terminal_of_its_caller(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(progress.TERMINAL, os.ttyname(terminal.writer))
    own = io.StringIO()
    monkeypatch.setattr(sys, "stderr", own)
    with Progress("digits", UNITS, show=False) as bar:
        bar.reached(ONE, 3)
        bar.say("warning: damaged")
    assert own.getvalue() == ""
    shown = terminal.shown()
    assert "digits" in shown
    assert "warning: damaged" in shown


@pytest.mark.parametrize("name", ["gone", "file"])
def test_a_terminal_that_cannot_be_used_costs_no_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It may be another user's, be closed by now, or be no terminal at all."""
    (tmp_path / "file").touch()
    monkeypatch.setenv(progress.TERMINAL, str(tmp_path / name / "tty" if name == "gone" else tmp_path / name))
    with Progress("digits", UNITS, show=True) as bar:
        bar.reached(ONE, 3)
        bar.say("warning: damaged")
    assert capsys.readouterr().err == "warning: damaged\n"


def test_what_is_left_without_an_estimate(clock: Clock) -> None:
    with Progress("digits", UNITS, show=False) as bar:
        assert bar.left() is None
        clock.now += 5
        bar.stored(ONE)
        assert bar.left() is None, "it was found, which says nothing of how long the others take"
        clock.now += 5
        bar.found(TWO, 3)
        assert bar.left() is None
        bar.reached(TWO, 5)
        assert bar.left() == pytest.approx(10 / 2 * 15), "what another process has left was not worked on"
        bar.reached(TWO, 6)
        bar.stored(TWO)
        assert bar.left() == pytest.approx(10 / 3 * 10), "nor what was found of a unit"
        bar.stored(THREE)
        assert bar.left() == 0


def test_what_is_left_by_an_estimate(clock: Clock) -> None:
    seconds = {ONE: 100.0, TWO: 200.0, THREE: 700.0}
    with Progress("digits", UNITS, show=False, seconds=seconds) as bar:
        assert bar.left() == 1000
        clock.now += 60
        bar.reached(ONE, 3)  # half as fast as estimated
        assert bar.left() == pytest.approx(970 * (60 + 10) / (30 + 10))
        clock.now += 140
        bar.reached(ONE, 10)
        bar.stored(ONE)
        assert bar.left() == pytest.approx(900 * 210 / 110)


def test_a_unit_that_begins_again_counts_once(clock: Clock, capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("digits", UNITS, show=True) as bar:
        clock.now += 5
        bar.reached(ONE, 8)  # until its worker died
        bar.found(ONE, 5)
        bar.reached(ONE, 6)
        bar.reached(ONE, 10)
        bar.stored(ONE)
    assert capsys.readouterr().err == f" 33% digits: 1 of 3 units, about 10 s left; {ONE} 10/10\n"


def test_nothing_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress("digits", {}, show=True) as bar:
        assert bar.left() == 0
    assert capsys.readouterr().err == ""


def test_an_interrupt_says_what_is_stored(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> None:
        with Progress("digits", UNITS, show=True) as bar:
            bar.stored(ONE)
            bar.reached(TWO, 3)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert "digits: stopped; 1 of 3 units are stored\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (119, "119 s"), (121, "2 min"), (7100, "118 min"), (7300, "2.0 h"), (40_000, "11 h"),
     (2.5 * 86400, "2.5 days"), (30 * 86400, "30 days")],
)  # fmt: skip
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


CELL = """\
from leamvd.paper.progress import Progress
print("before")
with Progress("digits", {"one": 2, "two": 2}, show=False) as bar:
    bar.note("1 of 2 units are stored")
    bar.stored("one")
    time.sleep(0.4)
    bar.reached("two", 2)
    bar.stored("two")
print("after")
"""


def executed(folder: Path) -> list[nbformat.NotebookNode]:
    """Return the outputs of a notebook that no program runs to keep or to compare them."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(f"import time\n{CELL}")])
    NotebookClient(notebook, timeout=60, resources={"metadata": {"path": folder}}).execute()
    outputs: list[nbformat.NotebookNode] = notebook.cells[0].outputs
    return outputs


def test_a_notebook_that_a_reader_opens_keeps_what_was_said_and_no_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    before, said, after = executed(tmp_path)
    assert (before.text, after.text) == ("before\n", "after\n")
    assert said.data == {"text/plain": "1 of 2 units are stored"}


def test_the_bar_of_a_notebook_is_shown_while_it_runs(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []

    class Handle:
        def update(self, data: dict[str, str], raw: bool) -> None:
            shown.append(data["text/plain"])

    def display(data: dict[str, str], raw: bool, display_id: bool) -> Handle:
        shown.append(data["text/plain"])
        return Handle()

    monkeypatch.setattr("IPython.display.display", display)
    monkeypatch.setattr(progress, "read_by_someone", lambda: True)
    with Progress("digits", UNITS, show=False) as bar:
        bar.stored(ONE)
        bar.say("one\ntwo")
        for iteration in range(1, 11):
            clock.now += 0.5
            bar.reached(TWO, iteration)
    bars = [text for text in shown if "|" in text]
    assert len(bars) == 1 + 5, "no more than one a second"
    assert bars[-1].splitlines()[:2] == ["one", "two"]
    assert bars[-1].splitlines()[2].startswith(" 67%|██████▋   | digits: 1 of 3 units, about 5 s left")
    assert shown[-1] == "one\ntwo"


@pytest.mark.parametrize("variable", [progress.TERMINAL, "PYTEST_VERSION"])
def test_a_notebook_whose_outputs_are_kept_or_compared_stays_clean(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_VERSION", raising=False)
    monkeypatch.setenv(variable, "")
    assert [(output.output_type, output.name) for output in executed(tmp_path)] == 2 * [("stream", "stdout")]
