"""Progress of many units: a live line on a terminal, lines in a log, a line in a notebook that passes."""

import contextlib
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

from tqdm import tqdm

TERMINAL = "LEAMVD_TERMINAL"
"""Environment variable that names the terminal where a notebook's progress is shown; where it is empty, nowhere.

Without it, a notebook is taken to be open before a reader, and shows progress in the cell that runs.
"""

_FORMAT = "{percentage:3.0f}%|{bar:10}| {desc}"

_PRIOR = 10.0
"""Seconds of estimated work that count as if they had been observed, so that the first iterations do not mislead."""


class Progress:
    """How far many units are, and the time that is left.

    On a terminal there is one live line. Where standard error is none, there is a line about every minute, and one for
    each unit that is complete. In a notebook that a reader has opened there is a live line too, with `show` or without;
    in the end only what was said stays. With neither `show` nor such a notebook, nothing is shown but what `say` is
    given.

    Parameters
    ----------
    label : str
        What the units belong to, a section of the paper, say.
    units : mapping of str to int
        Iterations of each unit.
    show : bool
        Whether a program that is no notebook shows anything.
    seconds : mapping of str to float, optional
        Estimated for each unit. Without it every iteration is taken to cost the same.
    """

    def __init__(
        self, label: str, units: Mapping[str, int], *, show: bool, seconds: Mapping[str, float] | None = None
    ) -> None:
        self._label, self._show, self._iterations = label, show, dict(units)
        self._estimated = seconds is not None
        self._weights = {name: seconds[name] / n if seconds else 1.0 for name, n in units.items()}  # of an iteration
        self._total = sum(self._weights[name] * n for name, n in units.items())
        self._done = dict.fromkeys(units, 0)
        self._stored: set[str] = set()
        self._worked = self._found = 0.0  # weight of the iterations that were seen, and of those that were not

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._display = _display(self._label, self._show)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if isinstance(error, KeyboardInterrupt):
            self.note(f"{self._label}: stopped; {len(self._stored)} of {len(self._iterations)} units are stored")
        self._display.close()

    def reached(self, name: str, iteration: int) -> None:
        """Count the iterations of a unit up to this one; one that was begun again counts once."""
        self._worked += self._more(name, iteration)
        self._update(name)

    def found(self, name: str, iteration: int) -> None:
        """Count the iterations of a unit up to this one; those that were not seen were not worked on in this time."""
        self._found += self._more(name, iteration)
        self._update(name)

    def stored(self, name: str) -> None:
        """Count a unit as complete, what was not seen of it as found."""
        self._stored.add(name)
        self.found(name, self._iterations[name])

    def _more(self, name: str, iteration: int) -> float:
        """Take a unit to be at least so far, and return the weight of the iterations that are new."""
        reached = max(self._done[name], min(iteration, self._iterations[name]))
        more, self._done[name] = reached - self._done[name], reached
        return more * self._weights[name]

    def say(self, line: str) -> None:
        """Show a line, a warning say, without tearing the display; on standard error where nothing is displayed."""
        self._display.say(line)

    def note(self, line: str) -> None:
        """Show a line where progress is shown, and nowhere else."""
        if not isinstance(self._display, _Nothing):
            self.say(line)

    def left(self) -> float | None:
        """Return the seconds that are left, by what was observed so far; None where that is nothing."""
        prior = _PRIOR if self._estimated else 0.0
        worked, elapsed = self._worked + prior, time.monotonic() - self._start + prior
        remaining = max(0.0, self._total - self._worked - self._found)
        if len(self._stored) == len(self._iterations):
            return 0.0
        return remaining * elapsed / worked if worked else None

    def _update(self, name: str) -> None:
        units = f"{len(self._stored)} of {len(self._iterations)} units"
        left = self.left()
        remaining = "" if left is None else f", about {duration(left)} left" if left else ", done"
        text = f"{self._label}: {units}{remaining}; {name} {self._done[name]}/{self._iterations[name]}"
        share = (self._worked + self._found) / self._total if self._total else len(self._stored) / len(self._iterations)
        self._display.update(share, text, name in self._stored)


def duration(seconds: float) -> str:
    """Return a time in words, as exact as a reader needs it."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.{1 if seconds < 10 * length and unit != 'min' else 0}f} {unit}"
    return f"{max(seconds, 1):.0f} s"


# ---- displays


class _Display(Protocol):
    def update(self, share: float, text: str, complete: bool) -> None: ...

    def say(self, line: str) -> None: ...

    def close(self) -> None: ...


def _display(label: str, show: bool) -> _Display:
    if terminal := os.environ.get(TERMINAL):
        return _of_caller(label, terminal)
    if read_by_someone():
        return _Cell()
    if not show:
        return _Nothing()
    return _Terminal(label) if sys.stderr.isatty() else _Log()


def _of_caller(label: str, terminal: str) -> _Display:
    """Return a bar on a terminal by its name; nothing where it is another user's, say, or is gone."""
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
        shown = _Terminal(label, stack.enter_context(Path(terminal).open("w", encoding="utf-8")))
        stack.pop_all()
        return shown
    return _Nothing()


def read_by_someone() -> bool:
    """Return whether this is a notebook whose outputs are no program's to keep or to compare."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return hasattr(shell, "kernel") and TERMINAL not in os.environ and "PYTEST_VERSION" not in os.environ


class _Nothing:
    def update(self, share: float, text: str, complete: bool) -> None:
        pass

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        pass


class _Terminal:
    """A bar; on a terminal that is a notebook's caller's, it is below the caller's own and vanishes in the end."""

    def __init__(self, label: str, file: Any = None) -> None:
        self._file = file
        options: dict[str, Any] = {"position": 1, "leave": False} if file else {}
        # a terminal that does not know its width has none by tqdm
        known = os.get_terminal_size((file or sys.stderr).fileno()).columns
        options |= {"dynamic_ncols": True} if known else {"ncols": 100, "nrows": 20}
        self._bar = tqdm(total=1.0, desc=label, file=file, bar_format=_FORMAT, miniters=0, **options)

    def update(self, share: float, text: str, complete: bool) -> None:
        self._bar.n = share
        self._bar.set_description_str(text, refresh=complete)
        self._bar.update(0)

    def say(self, line: str) -> None:
        tqdm.write(line, file=self._bar.fp)

    def close(self) -> None:
        self._bar.close()
        if self._file:
            self._file.close()


class _Log:
    """A line a minute, and one for each unit that is complete; a few a second at most, but the last one in any case."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self._held = ""

    def update(self, share: float, text: str, complete: bool) -> None:
        self._held = f"{100 * share:3.0f}% {text}"
        if time.monotonic() - self._last >= (0.3 if complete else 60.0):
            self._print()

    def _print(self) -> None:
        if self._held:
            self.say(self._held)
            self._held, self._last = "", time.monotonic()

    def say(self, line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    def close(self) -> None:
        self._print()


class _Cell:
    """One display of the cell that runs: what was said, and a bar below it until it is closed."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._handle: Any = None
        self._bar = ""
        self._last = time.monotonic()

    def update(self, share: float, text: str, complete: bool) -> None:
        self._bar = tqdm.format_meter(share, 1.0, 0, prefix=text, bar_format=_FORMAT)
        if time.monotonic() - self._last >= (0.3 if complete else 1.0):
            self._show()

    def say(self, line: str) -> None:
        self._said.append(line)
        self._show()

    def close(self) -> None:
        self._bar = ""
        if self._handle:
            self._show()

    def _show(self) -> None:
        from IPython.display import display

        lines = {"text/plain": "\n".join([*self._said, *filter(None, [self._bar])])}
        if self._handle:
            self._handle.update(lines, raw=True)
        else:
            self._handle = display(lines, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        self._last = time.monotonic()
