"""The command ``leamvd``: list, rerun and clean up sections, fetch the data, measure costs, render the book."""

import math
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from leamvd._support import checks

try:
    checks.needs("the command leamvd", "paper", "click")
except ModuleNotFoundError as error:  # the library alone is installed
    sys.exit(str(error))

import click

from leamvd.book import commands, failures, render, repetition, reproduction, results, runs, sweeps
from leamvd.book.parameters import ParameterError
from leamvd.book.sections import RunError, Section, choose, load, resolved, run

BENCH = "linear-cost"
"""The section that measures costs."""


def _check_encoding(*names: str) -> None:
    for name in names:
        if os.fsencode(name).decode(errors="replace") != name:
            raise click.UsageError(f"names must be in UTF-8: rename {os.fsencode(name)!r}")


class _Commands(click.Group):
    """Ends in one sentence where files and folders are the matter, or a notebook did not run to its end."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        _check_encoding(*args)
        return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        try:
            _check_encoding(str(Path.cwd()))
            return super().invoke(context)
        except BrokenPipeError:  # the reader of the output has seen enough
            raise
        except (MemoryError, ModuleNotFoundError, OSError, RunError, results.CleanError) as error:
            raise click.ClickException(failures.sentence(str(error))) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="leamvd")
def main() -> None:
    """LEA-MVD and the executable edition of its paper."""


for command in (commands.compare, commands.record, commands.verify):
    main.add_command(command)


@main.command("list")
def list_() -> None:
    """Show the sections and their parameters; `leamvd reproduce --dry-run` shows what they take."""
    for section in load():
        click.echo(f"{section.name}  ({section.stem}): {section.title}")
        rows = [
            (p.name, p.type, repr(p.default), p.allowed, p.description)
            for p in section.parameters.values()
            if p.name != "output"
        ]
        widths = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
        for row in rows:
            columns = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False))
            click.echo(f"    {columns}  {row[-1]}")
        click.echo()


@main.command()
@click.argument("names", metavar="[SECTION]...", nargs=-1)
@click.option(
    "--profile", metavar="NAME", help="The same as -p profile=...: quick, paper or, in some sections, others."
)
@click.option(
    "-p", "settings", metavar="NAME=VALUE", multiple=True,
    help="A notebook parameter; see `leamvd list`. Several values of one that takes a single value, such as "
    "population_size=12,24,48, are run one after the other and compared.",
)  # fmt: skip
@click.option("--dataset", metavar="digits|mnist|PATH", help="The same as -p dataset=...")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("results"), show_default=True,
    help="Folder of the results.",
)  # fmt: skip
@click.option(
    "--from", "again", metavar="RUN.JSON", type=click.Path(path_type=Path, exists=True),
    help="Repeat the run that this file, or this folder, holds: its section, parameters and readings.",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=1), default=None,
    help="Processes that share a study's work, each with its part of the threads; default: one a processor.",
)  # fmt: skip
@click.option(
    "--scheduler", metavar="ADDRESS|local", help="Dask scheduler whose workers do a study's work; local starts one."
)
@click.option(
    "--minutes", type=click.FloatRange(min=0, min_open=True), default=math.inf,
    help="Stop after this time, with all stored; the same command goes on. A notebook that has begun is finished.",
)  # fmt: skip
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what is stored, and what the rest takes here; run nothing, but fetch the data.",
)
@click.pass_context
def reproduce(
    context: click.Context,
    names: tuple[str, ...],
    profile: str | None,
    settings: tuple[str, ...],
    dataset: str | None,
    output: Path,
    jobs: int | None = None,
    scheduler: str | None = None,
    minutes: float = math.inf,
    again: Path | None = None,
    dry_run: bool = False,
) -> list[Path]:
    """Run sections of the paper (all of them when none is named).

    Each set of parameters has a folder of its own in the output folder, for the executed notebook, figures and tables.
    A run that was stopped carries on when it is started again; what other runs have computed is used.
    """
    deadline = time.monotonic() + 60 * minutes
    pairs = [("profile", profile), ("dataset", dataset)]
    output = output.resolve()
    places: list[Path] = []
    try:
        texts = [(name, text) for name, text in pairs if text is not None] + [_split(setting) for setting in settings]
        if again is None:
            planned = sweeps.plan(choose(load(), names), texts)
        elif names or texts:
            raise ParameterError("--from takes section and parameters from the run: leave out what else names them")
        else:
            section, value, about = context.with_resource(repetition.plan(again.resolve()))
            planned = [(section, [value])]
        for section, values in planned:
            for value in values:
                reproduction.check(section, resolved(section, value))
                _measurements(section, resolved(section, value))
        for difference in repetition.differences(section, about) if again else ():
            click.echo(f"warning: not as in {again}: {difference}", err=True)
    except (ParameterError, runs.NoRunError) as error:
        raise click.UsageError(str(error)) from None
    try:
        for section, values in planned:
            for value, label in zip(values, sweeps.labels(values), strict=True):
                given = resolved(section, value)
                known = reproduction.expect(section, given, _measurements(section, given), output, jobs)
                title = ", ".join(filter(None, [section.title, label]))
                click.echo(f"{section.stem}: {title} (expected: about {known.duration})")
                if dry_run:
                    click.echo(known.table(jobs, output) + "\n")
                    continue
                start = time.monotonic()
                if left := reproduction.compute(section, given, output, jobs, scheduler, deadline, known.estimates):
                    click.echo(f"{section.stem}: time is over; {left}\nThe same command goes on from there.")
                    return places
                places.append(run(section, value, output))
                click.echo(f"{section.stem}: done in {time.monotonic() - start:.0f} s: {places[-1]}")
            if len(values) > 1 and not dry_run:
                folder, table = sweeps.compare(values, places[-len(values) :])
                click.echo(f"{section.stem}: mean-field errors per 10,000 images, with 95 % intervals")
                click.echo(f"{table.to_string()}\n{folder}")
    except KeyboardInterrupt:
        click.echo(
            f"\nstopped; what is finished is stored in {output}\nThe same command carries on from there.", err=True
        )
        context.exit(130)
    return places


@main.command("bench")
@click.option("--profile", metavar="quick|paper", default="paper", show_default=True, help="A minute, or fifteen.")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("results/bench"), show_default=True,
    help="Folder of the results.",
)  # fmt: skip
@click.pass_context
def bench_(context: click.Context, profile: str, output: Path) -> None:
    """Measure what everything costs on this machine, and print time and memory of LEA-MVD beside its baselines'.

    The same as `leamvd reproduce linear-cost -p source=measured`. Baselines are measured where they are installed
    (leamvd[bench]).
    """
    (place,) = context.invoke(
        reproduce, names=(BENCH,), profile=profile, settings=("source=measured",), dataset=None, output=output
    )
    from leamvd import bench  # brings pandas, which takes long to import
    from leamvd.bench import summary
    from leamvd.paper.comparison import format_table

    optimizers = bench.read(place).optimizers
    click.echo(format_table(summary.baselines(optimizers)).to_string(index=False))


@main.command()
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path("results"),
    show_default=True, help="Folder of the results.",
)  # fmt: skip
@click.option("--yes", is_flag=True, help="Remove it.")
def clean(output: Path, yes: bool) -> None:
    """List, and with --yes remove, what the latest run of each section does not need.

    That is its earlier runs, runs that were stopped, damaged units, and units that no latest run has used.
    """
    with results.superfluous(output) as found:
        for path in found:
            click.echo(path)
            if yes:
                results.remove(path)


@main.group()
def data() -> None:
    """Fetch data sets."""


@data.command()
@click.option("--from", "source", metavar="DIR|URL", help="A folder with the four files, or where to load them from.")
def mnist(source: str | None) -> None:
    """Fetch MNIST's four original files and verify them."""
    try:
        from leamvd.paper import datasets

        click.echo(datasets.fetch_mnist(source, progress=True))
    except RuntimeError as error:  # a DataError is one
        raise click.ClickException(str(error)) from None


@main.command()
@click.option(
    "--results", "folder", type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of results, as `leamvd reproduce` writes it: its latest runs are shown; default: those published.",
)  # fmt: skip
def book(folder: Path | None) -> None:
    """Render the book and print the page to open."""
    try:
        click.echo(render.render(folder).resolve())
    except (RuntimeError, ValueError) as error:
        raise click.ClickException(failures.sentence(str(error))) from None


def _measurements(section: Section, parameters: Mapping[str, Any]) -> tuple[int, float]:
    """Return how much the section measures anew, in jobs of the bench and seconds; refuse what the bench refuses."""
    if section.name != BENCH or parameters["source"] == "recorded":
        return 0, 0.0
    from leamvd import bench

    try:
        if parameters["source"] == "measured":
            return bench.expected(parameters["profile"], parameters["methods"], parameters["sizes"])
        bench.read(parameters["source"])
    except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise reproduction.refused(section, error) from None
    return 0, 0.0


def _split(setting: str) -> tuple[str, str]:
    name, sign, text = setting.partition("=")
    if not sign:
        raise ParameterError(f"-p takes NAME=VALUE, got {setting!r}")
    return name.strip(), text


if __name__ == "__main__":
    main()
