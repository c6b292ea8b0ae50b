"""The command ``leamvd``: list, run and compare sections, record and verify studies, fetch data, measure, render.

What takes long to import is imported by the command that needs it.
"""

import re
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leamvd._support import checks

try:
    checks.needs("the command leamvd", "paper", "click", "filelock", "pandas")
except ModuleNotFoundError as error:  # the library alone is installed
    sys.exit(str(error))

import click

from leamvd.book import render, runs, sections
from leamvd.book.parameters import ParameterError
from leamvd.campaign.store import FOLDER

BENCH = "linear-cost"
"""The section that measures costs."""


class _Commands(click.Group):
    """Ends in one sentence where something is refused, or a notebook did not run to its end."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except (BrokenPipeError, click.Abort, click.exceptions.Exit):  # a reader of the output that has seen enough
            raise
        except ParameterError as error:
            raise click.UsageError(str(error)) from None
        except (ImportError, MemoryError, OSError, RuntimeError, ValueError) as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="leamvd")
def main() -> None:
    """LEA-MVD and the executable edition of its paper."""


@main.command("list")
@click.argument("names", metavar="[SECTION]...", nargs=-1)
def list_(names: tuple[str, ...]) -> None:
    """Show the sections, or the parameters of those that are named.

    For each parameter: its value in each profile, which values are allowed, and what it is.
    """
    for section in sections.choose(sections.load(), names):
        click.echo(f"{section.name:20} {section.title}")
        if names:
            from leamvd.book import reproduction

            columns = shutil.get_terminal_size((120, 24)).columns
            click.echo(f"{reproduction.defaults(section).to_string(line_width=columns)}\n")
    if not names:
        click.echo("`leamvd list SECTION` shows the parameters of a section.")


def _minutes(text: str) -> float:
    minutes = float(text)
    if not minutes > 0:  # NaN is not
        raise click.BadParameter(f"must be a number > 0, got {text!r}")
    return minutes


def _address(text: str) -> str:
    if not re.fullmatch(r"local|([a-z]+://)?[^/\s]+:\d{1,5}", text):
        raise click.BadParameter(f"must be local or an address such as tcp://127.0.0.1:8786, got {text!r}")
    return text


def _setting(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f"must be NAME=VALUE, got {text!r}")
    return name.strip(), value


@main.command()
@click.argument("names", metavar="[SECTION]...", nargs=-1)
@click.option(
    "--profile",
    metavar="NAME",
    help="The same as -p profile=...: recorded, quick, paper or, in some sections, others; default: quick.",
)
@click.option(
    "-p", "settings", metavar="NAME=VALUE", multiple=True, type=_setting,
    help="A notebook parameter; see `leamvd list SECTION`. Several values of one that takes a single value, such as "
    "population_size=12,24,48, are computed and compared, without their notebooks.",
)  # fmt: skip
@click.option("--dataset", metavar="digits|mnist|PATH", help="The same as -p dataset=...")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("results"), show_default=True,
    help="Folder of the results.",
)  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(min=1), default=None,
    help="Processes that share a study's work, each with its part of the threads; default: one a processor.",
)  # fmt: skip
@click.option(
    "--scheduler", metavar="ADDRESS|local", type=_address,
    help="Dask scheduler whose workers do a study's work; local starts one.",
)  # fmt: skip
@click.option(
    "--minutes", metavar="NUMBER", type=_minutes, default="inf",
    help="Stop after this time, with all stored; the same command goes on. A notebook that has begun is finished.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show what studies compute and what of it is stored; run nothing.")
@click.pass_context
def reproduce(
    context: click.Context,
    names: tuple[str, ...],
    profile: str | None,
    settings: tuple[tuple[str, str], ...],
    dataset: str | None,
    output: Path,
    jobs: int | None,
    scheduler: str | None,
    minutes: float,
    dry_run: bool,
) -> list[Path]:
    """Run sections of the paper (all of them when none is named).

    A run ends with its final errors and its files. Each set of parameters has a folder of its own in the output folder,
    for the executed notebook, figures and tables. A run that was stopped goes on when it is started again; what other
    runs have computed is used, and a finished run is shown at once. Results are folders, which can be deleted.
    """
    deadline = time.monotonic() + 60 * minutes
    named = [(name, text) for name, text in (("profile", profile), ("dataset", dataset)) if text is not None]
    output = output.resolve()
    planned = sections.requested(sections.choose(sections.load(), names), [*named, *settings])
    made = {} if dry_run else _finished(planned, output)
    data = {section.name: _checked(section, sets, dry_run) for section, sets in planned if section.name not in made}
    places: list[Path] = []
    try:
        for section, sets in planned:
            if dry_run:
                _show_plan(section, sets, output, jobs)
                continue
            if place := made.get(section.name):
                _show_finished(section, sets, place)
            elif not (place := _run(section, sets, data[section.name], output, jobs, scheduler, deadline)):
                return places
            places.append(place)
    except KeyboardInterrupt:
        click.echo(f"\nstopped; what is finished is stored in {output}\nThe same command goes on from there.", err=True)
        context.exit(130)
    return places


Sets = Sequence[Mapping[str, object]]


def _finished(planned: Iterable[tuple[sections.Section, Sets]], output: Path) -> dict[str, Path]:
    """Return, by the sections' names, the folders of what is finished; seconds are measured each time."""
    found = ((section, sections.finished(section, sections.together(sets), output)) for section, sets in planned)
    return {section.name: place for section, place in found if place and section.name != BENCH}


def _show_finished(section: sections.Section, sets: Sets, place: Path) -> None:
    from leamvd.book import summary

    click.echo(f"{section.stem}: {section.title}")
    if (errors := summary.read(place)) is not None:
        click.echo(summary.printed(errors, recorded=section.complete(sets[0])["profile"] == "recorded"))
    click.echo(f"{section.stem}: finished before, in\n{summary.files(place)}")
    if len(sets) == 1:
        runs.mark(place)


def _checked(section: sections.Section, sets: Sets, dry_run: bool) -> list[runs.Data]:
    """Refuse what a section's experiments, or the bench, would refuse; return what images each set is about."""
    from leamvd.book import reproduction

    reproduction.check_sweep(section, sets)
    for parameters in map(section.complete, sets):
        if section.name == BENCH and parameters["profile"] != "recorded":
            from leamvd import bench

            try:
                bench.planned(*(parameters[name] for name in ("profile", "methods", "sizes")))  # type: ignore[arg-type]
            except (ImportError, TypeError, ValueError) as error:
                raise ParameterError(f"{section.name}: {error}") from None
    return [reproduction.check(section, section.complete(values), blank=dry_run) for values in sets]


def _show_plan(section: sections.Section, sets: Sets, output: Path, jobs: int | None) -> None:
    from leamvd.book import reproduction

    for values, label in zip(sets, sections.labels(sets), strict=True):
        click.echo(f"{section.stem}: {', '.join(filter(None, [section.title, label]))}")
        study = reproduction.study(section, section.complete(values))
        click.echo(reproduction.dry_run_table(study, output / FOLDER, jobs))


def _run(
    section: sections.Section,
    sets: Sets,
    data: Sequence[runs.Data],
    output: Path,
    jobs: int | None,
    scheduler: str | None,
    deadline: float,
) -> Path | None:
    """Compute a section, print what has come out, and return the folder of it; None if time is over."""
    from leamvd.book import reproduction, side_by_side, summary

    start, over = time.monotonic(), "The same command goes on from there."
    for values, label in zip(sets, sections.labels(sets), strict=True):
        click.echo(f"{section.stem}: {', '.join(filter(None, [section.title, label]))}")
        study = reproduction.study(section, section.complete(values))
        if left := reproduction.compute(study, output, jobs, scheduler, deadline):
            click.echo(f"{section.stem}: time is over; {left} jobs are left, and what follows them\n{over}")
            return None
    if len(sets) > 1:
        place, errors = side_by_side.sweep(section, sets, data, output)
        click.echo(summary.printed(errors))
    else:
        values = section.complete(sets[0])
        if (found := reproduction.final_errors(reproduction.asked(section, values), output)) is not None:
            click.echo(summary.printed(found, recorded=values["profile"] == "recorded"))
        if time.monotonic() >= deadline:
            click.echo(f"{section.stem}: time is over; the notebook is left\n{over}")
            return None
        click.echo(f"{section.stem}: executing the notebook")
        place = sections.run(section, sets[0], output, data[0], found)
    click.echo(f"{section.stem}: done in {time.monotonic() - start:.0f} s, in\n{summary.files(place)}")
    return place


@main.command()
@click.argument("run_a", type=click.Path(path_type=Path, exists=True))
@click.argument("run_b", type=click.Path(path_type=Path, exists=True))
def compare(run_a: Path, run_b: Path) -> None:
    """Put two runs of a section side by side on a page, and print its path.

    A run is a folder such as results/03_mnist_7x7/digits-quick-1a2b3c4d; results/03_mnist_7x7/latest is the last one.
    The page shows the parameters that differ, errors with 95 % intervals, and the figures of both.
    """
    from leamvd.book import side_by_side

    click.echo(side_by_side.compare(run_a, run_b))


@main.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--name", help="Of the recorded folder; default: the section's, with underscores.")
@click.option("--replace", is_flag=True, help="Put it in the place of an earlier one.")
@click.option("--extend", is_flag=True, help="Add its seeds to an earlier one of the same study.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; only for searches, which are computed now.")
def record(run: Path, name: str | None, replace: bool, extend: bool, jobs: int | None) -> None:
    """Turn a finished run's study into the form that ships with the notebooks, and print its folder.

    RUN is a folder such as results/03_mnist_7x7/latest, or the name of searches that belong to no section: these are
    computed, with the store in the folder results unless LEAMVD_STORE names another. Tables are kept compressed, with
    their provenance and with small pictures in the place of the weights. A study can be recorded in steps, each a run
    with some of its seeds.
    """
    if replace and extend:
        raise click.UsageError("--replace clashes with --extend: give one of them")
    from leamvd.studies import recording

    if str(run) in recording.SEARCHES and not run.exists():
        if name or extend:
            raise click.UsageError(f"--name and --extend are for a run of a section, and {run} are searches")
        click.echo(recording.record_searches(str(run), Path("results"), n_jobs=jobs, replace=replace))
        return
    found = runs.read(run)
    name = name or found.about["section"].replace("-", "_")
    click.echo(recording.record(name, found.folder, found.about, found.store, replace=replace, extend=extend))


@main.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--jobs", type=click.IntRange(1), default=3, show_default=True, help="How many, of each table.")
@click.option("--seed", type=click.IntRange(0), help="Choose them at random; default: those that need least.")
@click.pass_context
def verify(context: click.Context, names: tuple[str, ...], jobs: int, seed: int | None) -> None:
    """Compute a sample of what is recorded, and compare; exit status 1 if a number drifts, or if nothing was compared.

    A NAME is that of a folder in notebooks/recorded; without one, everything that is recorded. All numbers are compared
    first, and must agree to six digits. Only where they do not, and processor, versions or backend are not the recorded
    ones, a job is judged by the scatter of the other seeds.
    """
    from leamvd.studies import recording

    drifts, compared, chosen = False, 0, names or tuple(recording.names())
    for name in chosen:
        try:
            changed, table = recording.verify(name, jobs=jobs, seed=seed)
        except recording.NotVerifiedError as error:
            if names:
                raise
            click.echo(f"not verified: {error}")
            continue
        here = f" ({'; '.join(changed)})" if changed else ""
        click.echo(f"{name}{here}\n{table.to_string(index=False, float_format='{:.7g}'.format)}")
        drifts, compared = drifts or bool(table["drifts"].any()), compared + 1
    click.echo(f"{compared} of {len(chosen)} compared")
    context.exit(int(drifts or not compared))


@main.command("bench")
@click.option("--profile", metavar="quick|paper", default="paper", show_default=True, help="A minute, or fifteen.")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("results/bench"), show_default=True,
    help="Folder of the results.",
)  # fmt: skip
@click.pass_context
def bench_(context: click.Context, profile: str, output: Path) -> None:
    """Measure what everything costs on this machine, and print time and memory of LEA-MVD and of its baselines.

    The same as `leamvd reproduce linear-cost`. Baselines are measured where they are installed
    (leamvd[bench]).
    """
    (place,) = context.invoke(reproduce, names=(BENCH,), profile=profile, output=output)
    from leamvd import bench
    from leamvd.analysis.comparison import format_table
    from leamvd.bench import overview

    optimizers = bench.read(place).optimizers
    click.echo(format_table(overview.baselines(optimizers)).to_string(index=False))


@main.group()
def data() -> None:
    """Fetch data sets."""


@data.command()
@click.option("--from", "source", metavar="DIR|URL", help="A folder with the four files, or where to load them from.")
def mnist(source: str | None) -> None:
    """Fetch MNIST's four original files and verify them."""
    from leamvd.data.mnist import fetch_mnist

    click.echo(fetch_mnist(source, progress=sys.stderr.isatty()))


@main.command()
@click.option(
    "--results", "folder", type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of results, as `leamvd reproduce` writes it: its latest runs are shown; default: those published.",
)  # fmt: skip
def book(folder: Path | None) -> None:
    """Render the book and print the page to open."""
    click.echo(render.render(folder).resolve())


if __name__ == "__main__":
    main()
