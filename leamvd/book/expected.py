"""What a run of a section takes, before it is run: time by a calibration of this machine, memory, disk, device."""

import dataclasses
import itertools
import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from leamvd._support.threads import thread_count
from leamvd.book.sections import Section
from leamvd.networks.rbm import n_parameters
from leamvd.paper.estimate import Estimate, generation
from leamvd.paper.progress import duration
from leamvd.paper.studies import MEASUREMENTS, Study

NOTEBOOK, FIGURE = 3.0, 1.4
"""Seconds of a notebook, its kernel and imports, and of each figure; measured on a server's processor of 2024."""


class Row(NamedTuple):
    """One part of a section."""

    what: str
    units: int
    stored: int
    seconds: float  # of all its units that are not stored, one after the other


class Expected(NamedTuple):
    """What a run of a section takes."""

    rows: list[Row]
    seconds: float
    memory: int  # bytes at the peak
    disk: int  # bytes
    device: str
    estimates: list[Estimate]  # of the section's studies

    @property
    def duration(self) -> str:
        """The time in words."""
        return duration(self.seconds)

    def table(self, jobs: int | None, output: Path) -> str:
        """Return the rows and the sums as a table to be printed; `jobs` processes would share the work."""
        jobs = thread_count(None) if jobs is None else jobs
        lines = [("", "units", "stored", "time")]
        for what, units, stored, seconds in self.rows:
            counts = (str(units), str(stored)) if units else ("", "")
            lines.append((what, *counts, duration(seconds) if seconds else "-"))
        processes = f", on {jobs} processes" if jobs > 1 and self.estimates else ""
        lines.append((f"in all{processes}", "", "", self.duration))
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        shown = [line[0].ljust(widths[0]) + "".join(f"  {line[i]:>{widths[i]}}" for i in (1, 2, 3)) for line in lines]
        return "\n".join([*shown, *self._room(output)])

    def _room(self, output: Path) -> list[str]:
        if not any(estimate.seconds for estimate in self.estimates):
            return []
        import psutil

        there = next(path for path in (output, *output.absolute().parents) if path.is_dir())
        pairs = [("memory", self.memory, psutil.virtual_memory().available), ("disk", self.disk, _free(there))]
        return [*(f"{what}: {_bytes(n)}, {_bytes(free)} are free" for what, n, free in pairs), f"device: {self.device}"]


def expected(
    section: Section,
    parameters: Mapping[str, Any],
    studies: Sequence[Study],
    measured: Sequence[Row],
    output: Path,
    jobs: int | None,
) -> Expected:
    """Return what a run takes; nothing is written.

    Parameters
    ----------
    section : Section
        What would be run.
    parameters : mapping
        All of the section's.
    studies : sequence of Study
        Whose records it shows.
    measured : sequence of Row
        What else it does that is not known here.
    output : Path
        Folder of the results, where units may be stored already.
    jobs : int or None
        Processes that share the work on units; None is one a processor.
    """
    rows, estimates = list(measured), []
    for study in studies:
        from leamvd.paper import records

        estimates.append(records.expected(study, output, jobs=jobs))
        rows += _methods(study, estimates[-1])
    source = section.path.read_text(encoding="utf-8")
    notebook = NOTEBOOK + FIGURE * source.count("save(")
    notebook += sum(_memory_table(study) for study in studies[:1] if "comparison.memory(" in source)
    if section.name == "readings":
        notebook += _functions(studies[0], parameters)
    if section.name == "esd":
        notebook += _tournaments(parameters)
    elif section.name == "directions":
        notebook += _generations(parameters)
    rows.append(Row("notebook", 0, 0, notebook))
    device = " on ".join(_device(studies[0])) if studies else ""
    memory, disk = max((e.memory for e in estimates), default=0), sum(e.disk for e in estimates)
    seconds = notebook + sum(row.seconds for row in measured) + sum(e.total for e in estimates)
    return Expected(rows, seconds, memory, disk, device, estimates)


def _methods(study: Study, estimate: Estimate) -> list[Row]:
    """Return a row for each method of a study."""
    units = study.units()
    rows = []
    for method in dict.fromkeys(unit.method for unit in units):
        own = [unit for unit in units if unit.method == method]
        left = [estimate.seconds[unit] for unit in own if unit in estimate.seconds]
        what = f"{method}, {study.side} x {study.side}"
        rows.append(Row(what, len(own), len(own) - len(left), sum(left)))
    for kind in MEASUREMENTS:
        if measured := [one for one in study.measurements() if one.what == kind]:
            left = [estimate.seconds[one] for one in measured if one in estimate.seconds]
            what = f"{kind}, {study.side} x {study.side}"
            rows.append(Row(what, len(measured), len(measured) - len(left), sum(left)))
    return rows


def _device(study: Study) -> tuple[str, str]:
    """Return what computes a study's objective, and where."""
    backend, device, _ = study.training.computation
    if backend == "torch" and device.startswith("cuda"):
        return backend, str(sys.modules["torch"].cuda.get_device_name(device))
    return backend, device


def _memory_table(study: Study) -> float:
    """Return the seconds of `leamvd.paper.comparison.memory`: each optimizer is built twice, for three generations."""
    took = 0.0
    for pair, method in itertools.product(itertools.pairwise([study.side**2, *study.layers]), study.methods):
        trainer, reading = method.partition(":")[0], study.reading_of(method)
        if trainer != "cd":
            asked = generation(trainer, n_parameters(*pair), study.training_of(method), reading)
            took += 2 * (asked.start + 3 * asked.seconds)
    return took


def _tournaments(parameters: Mapping[str, Any]) -> float:
    """Return the seconds of the simulation of tournaments, timed with fewer of them."""
    from leamvd.paper import selection_pressure

    count = parameters["n_tournaments"] or selection_pressure.TOURNAMENTS[parameters["profile"]]
    few = min(count, 1_000_000)  # beyond what the caches hold
    start = time.perf_counter()
    selection_pressure.simulate(parameters["population_size"], few, seed=0)
    return (time.perf_counter() - start) * count / few


def _generations(parameters: Mapping[str, Any]) -> float:
    """Return the seconds of the runs that are traced or reset and of the sign test, by a few that are timed."""
    from leamvd.paper import search_directions

    plan = search_directions.plan(parameters["profile"], **search_directions.parameters(parameters))
    one = dataclasses.replace(plan, seeds=plan.seeds[:1], n_gen=min(plan.n_gen, 20), n_populations=1)
    functions = dict.fromkeys([*search_directions.FUNCTIONS.values(), plan.objective])
    search_directions.trace(dataclasses.replace(one, n_gen=2))  # loads what is compiled
    start = time.perf_counter()
    search_directions.trace(one)
    traced = time.perf_counter()
    search_directions.shifts(one, list(functions)[:1], parameters["generations"])
    tested = time.perf_counter() - traced
    runs = (1 + len(search_directions.RESETS)) * len(plan.seeds)
    return (traced - start) * runs * plan.n_gen / one.n_gen + tested * len(functions) * plan.n_populations


def _functions(study: Study, parameters: Mapping[str, Any]) -> float:
    """Return the seconds of a study's methods on functions, by a run of each number of variables that is timed."""
    from leamvd.paper import functions, readings

    planned = readings.plan(parameters["profile"], parameters["sizes"], parameters["budget"])
    runs = len(functions.FUNCTIONS) * len(functions.applicable(study.methods)) * len(study.seeds)
    took = 0.0
    for n_var in planned["sizes"]:
        for _ in range(2):  # the first one loads what is compiled
            opt, objective = functions.search(study, "lea-mvd", "rastrigin", n_var, 0, planned["budget"])
            start = time.perf_counter()
            for _ in functions.generations(opt, objective, min(planned["budget"], 2000)):
                pass
            one = (time.perf_counter() - start) * planned["budget"] / opt.nfev
        took += runs * one
    return took


def _bytes(count: float) -> str:
    """Return a number of bytes in words."""
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 1000:
            return f"{count:.3g} {unit}"
    return f"{count / 1000:.3g} GB"


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free
