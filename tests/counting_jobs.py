"""Jobs that count, and show when they are not computed once, whole and in their order."""

import dataclasses
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from leamvd._support.compile import Array
from leamvd.campaign.jobs import Job, Result, Step, unpacked


@dataclasses.dataclass(frozen=True, kw_only=True)
class Count(Job):
    """A chain of numbers, in which each iteration needs the one before, and the first one the jobs below."""

    number: int
    length: int = 4
    below: tuple["Count", ...] = ()

    @property
    def name(self) -> str:
        return f"count{self.number:g}"  # 1 and 1.0 are the same job

    @property
    def iterations(self) -> int:
        return self.length

    @property
    def needs(self) -> tuple[Job, ...]:
        return self.below

    def steps(self, data: "Told", needs: Sequence[Result], done: int, arrays: Mapping[str, Array]) -> Iterator[Step]:
        below = self.number + sum(unpacked(need.arrays)["value"].item() for need in needs)
        value = arrays["value"].item() if done else below
        for iteration in range(done + 1, self.length + 1):
            data.iteration(self)
            value = (31 * value + 7) % 10007
            row = {"iteration": iteration, "third": value / 3}
            yield Step(iteration, [row], {"value": np.array(value)}, iteration == self.length)


@dataclasses.dataclass(frozen=True)
class Told:
    """What jobs are given: they note each iteration in a file, take their time, and some of them die."""

    file: str  # where a line says which process computes an iteration of which job
    seconds: float = 0.0  # for each iteration
    deadly: tuple[int, ...] = ()  # numbers of the jobs that kill their process after their first iteration
    times: int = 1  # how often each of them does
    edited: str = ""  # a source that gets another line before a process is killed

    def iteration(self, job: Count) -> None:
        time.sleep(self.seconds)
        with Path(self.file).open("a") as file:
            file.write(f"{os.getpid()} {job.number}\n")
        if job.number in self.deadly and self.noted().count(job.number) <= self.times:
            if self.edited:
                with Path(self.edited).open("a") as source:
                    source.write("EDITED = True\n")
            os.kill(os.getpid(), signal.SIGKILL)

    def noted(self) -> list[int]:
        """Return the numbers of the jobs, once for each iteration."""
        path = Path(self.file)
        return [int(line.split()[1]) for line in path.read_text().splitlines()] if path.exists() else []


ONE, TWO = Count(number=1), Count(number=2, length=3)
ABOVE = Count(number=3, below=(ONE, TWO))
TOP = Count(number=4, length=2, below=(ABOVE,))
ALONE = Count(number=5, length=6)
JOBS = (TOP, ABOVE, ONE, TWO, ALONE)
"""Those that are asked for first need the later ones."""
