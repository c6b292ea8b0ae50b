"""The command line: ``leamvd list | reproduce | claim | verify | record | data | book``."""

import contextlib
import io
import os
import shutil
import sys
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pandas as pd

import leamvd
from leamvd._support import checks
from leamvd_paper.book import sections
from leamvd_paper.book.sections import Parameter, Section, Values, written


class _Commands(click.Group):
    """Commands whose mistakes of the user, and of the machine, are one sentence."""

    def invoke(self, context: click.Context) -> Any:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # titles have signs that an old terminal's encoding lacks
            sys.stdout.reconfigure(errors="replace")
        try:
            return super().invoke(context)
        except (
            ImportError,
            MemoryError,
            OSError,
            OverflowError,
            RuntimeError,
            TypeError,
            ValueError,
        ) as error:
            # a reader of the output that has seen enough
            ends = click.Abort, click.exceptions.Exit, BrokenPipeError
            if context.params["debug"] or isinstance(error, ends):
                raise
            # a fault of ours
            where = "; `leamvd --debug ...` shows where" if isinstance(error, TypeError) else ""
            raise click.ClickException(f"{error}{where}") from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(leamvd.__version__, prog_name="leamvd")
@click.option("--debug", is_flag=True, help="Show where an error comes from.")
def main(debug: bool) -> None:
    """LEA-MVD and the executable edition of its paper."""


SECTIONS = click.argument("names", metavar="[SECTION]...", nargs=-1)


@main.command("list")
@SECTIONS
def list_(names: tuple[str, ...]) -> None:
    """Show the sections, or the parameters of those that are named, by profile, and what their
    recorded runs took.
    """
    for section in sections.load(names):
        seconds = f"quick takes {sections.QUICK[section.name]}"
        _tell(f"{section.name:20} {section.title} ({seconds})", 21)
        if names:
            profiles = section.profiles()
            for one in section.parameters.values():
                usual = _usual(one, profiles)
                _tell(f"  {one.name} ({one.kind()}; {usual}): {one.description}", 6)
            for name, hours in _hours(section):
                _tell(f"  what is recorded as {name} took {hours:.2g} processor hours", 6)
    if not names:
        click.echo("`leamvd list SECTION` shows the parameters of a section.")


def _tell(text: str, indent: int) -> None:
    """Print a text in lines as wide as the terminal, all but the first one indented."""
    lines = textwrap.wrap(
        text,
        shutil.get_terminal_size().columns,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    click.echo("\n".join(lines))


def _usual(one: Parameter, profiles: Mapping[str, Values]) -> str:
    """Return what a parameter has where it is not given, in words."""
    if one.name == "profile":
        return f"in the notebook {one.default}, by `leamvd reproduce` quick"
    told = []
    for profile in ("quick", "paper"):
        value = one.default
        if value is None:
            value = profiles.get(profile, {}).get(one.name)
        if isinstance(value, Mapping):
            value = [*value]
        text = "the profile's" if value is None else written(value).replace(",", ", ")
        told.append(text)
    quick, paper = told
    return quick if quick == paper else f"quick {quick}, paper {paper}"


def _hours(section: Section) -> Iterator[tuple[str, float]]:
    """Yield the hours behind what is recorded of a section, where they are known."""
    from leamvd_paper.studies import verify

    for module in map(import_module, section.modules):
        for name in getattr(module, "RECORDED", {}):
            hours = verify.processor_hours(name)
            if hours:
                yield name, hours


class _Folder(click.Path):
    """A folder, or a file; ~ stands for the user's folder, also where the shell leaves it as it is:
    --output=~/results.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":  # which a path takes for the folder that one is in
            self.fail("a folder must have a name, got ''", param, ctx)
        return super().convert(Path(value).expanduser(), param, ctx)


class _Count(click.IntRange):
    """A number of at least 1, in digits alone: Python skips underscores."""

    def __init__(self) -> None:
        super().__init__(min=1)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if "_" in str(value):
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return super().convert(value, param, ctx)


def _settings(
    _ctx: click.Context, _param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...]:
    """Return settings as they are; what follows a space would be a section."""
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"a setting must be NAME=VALUE, got {value!r}")
    return values


def _settings_option(words: str) -> Callable[[Any], Any]:
    """Return the option of settings, with what its help says."""
    return click.option(
        "-p", "settings", metavar="NAME=VALUE", callback=_settings, multiple=True, help=words
    )


PROFILE = click.option(
    "--profile",
    metavar="NAME",
    help="The same as -p profile=...: quick (the default), paper, recorded, ...",
)
OUTPUT = click.option(
    "--output",
    type=_Folder(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="Folder of the results.",
)
JOBS = click.option("--jobs", type=_Count(), help="Processes; default: one a processor.")
SCHEDULER = click.option(
    "--scheduler", metavar="ADDRESS|local", help="Dask scheduler whose workers compute, or local."
)


@main.command()
@SECTIONS
@PROFILE
@_settings_option(
    "A notebook parameter, see `leamvd list SECTION`. With several values of one that takes a"
    " single number, such as exponent=1.5,3, the section is run with each."
)
@click.option(
    "--dataset",
    metavar="digits|mnist|PATH",
    help="-p dataset=...; PATH of images by class, IDX or .npz.",
)
@OUTPUT
@JOBS
@SCHEDULER
def reproduce(
    names: tuple[str, ...],
    profile: str | None,
    settings: tuple[str, ...],
    dataset: str | None,
    output: Path,
    jobs: int | None,
    scheduler: str | None,
) -> None:
    """Run sections of the paper (all of them when none is named).

    A run ends with its final errors and its files. Each set of parameters has a folder of its own
    in the output folder, for the executed notebook, figures and tables. A run that was stopped goes
    on when it is started again; what other runs have computed is used, and a finished run is shown
    at once. Results are folders, which can be deleted.
    """
    given = []
    if profile is not None:
        given.append(f"profile={profile}")
    if dataset is not None:
        given.append(f"dataset={dataset}")
    planned = sections.requested(sections.load(names), [*given, *settings])
    sections.check_all(planned)
    try:
        with _computing(jobs, scheduler) as n_jobs:
            for section, sets in planned:
                runs = []
                for values in sets:
                    summary = _run(section, values, output, n_jobs)
                    if summary is not None:
                        runs.append((values, summary))
                if len(runs) > 1:
                    click.echo(f"\n{section.path.stem}, all of these runs:\n{_together(runs)}")
    except KeyboardInterrupt:
        click.echo(
            f"\nstopped; what is finished is in {output}\nThe same command goes on from there.",
            err=True,
        )
        sys.exit(130)


@contextlib.contextmanager
def _computing(jobs: int | None, scheduler: str | None) -> Iterator[int]:
    """Set where calls are computed; yield joblib's number of jobs."""
    if scheduler is None:
        from leamvd._support.threads import thread_count

        yield jobs or thread_count(None)
        return
    checks.needs("--scheduler", "leamvd-paper[dask]", "distributed")
    import joblib
    from distributed import Client

    place: dict[str, Any] = {"address": scheduler}
    if scheduler == "local":
        place = {"threads_per_worker": 1, "n_workers": jobs}
    with Client(**place) as client:
        workers = client.scheduler_info(n_workers=-1)["workers"].values()
        threads = sum(worker["nthreads"] for worker in workers)
        address = client.scheduler.address
        click.echo(f"{threads} threads of workers on {address}, {client.dashboard_link}", err=True)
        if threads == 1:
            click.echo(
                "with one thread of one worker joblib computes here, in this process", err=True
            )
        with joblib.parallel_config("dask"):
            yield -1


def _run(section: Section, values: Values, output: Path, n_jobs: int) -> pd.DataFrame | None:
    """Run a section, print what it ends with, and return its summary; None where it has none."""
    start = time.monotonic()
    stem = section.path.stem
    given = [f"{name}={written(value)}" for name, value in values.items()]
    click.echo(", ".join([f"{stem}: {section.title}", *given]))
    place, finished = sections.run(section, values, output, n_jobs=n_jobs)
    summary = None
    file = place / sections.SUMMARY
    if file.is_file():
        summary = pd.read_csv(file)
        click.echo(_printed(summary))
    done = "finished before" if finished else f"done in {time.monotonic() - start:.0f} s"
    click.echo(f"{stem}: {done}, in\n{place}")
    for made in sorted([*place.glob("*.ipynb"), *place.rglob("*.csv"), *place.rglob("*.png")]):
        click.echo(f"  {made.relative_to(place)}")
    return summary


def _together(runs: list[tuple[Values, pd.DataFrame]]) -> str:
    """Return the summaries of runs that differ in some values as one, a line for each run."""
    swept = []
    for name in runs[0][0]:
        if len({str(values[name]) for values, _ in runs}) > 1:
            swept.append(name)
    tables = []
    for values, table in runs:
        tables.append(table.assign(**{name: written(values[name]) for name in swept}))
    return _printed(pd.concat(tables, ignore_index=True), swept)


def _printed(summary: pd.DataFrame, by: Sequence[str] = ()) -> str:
    """Return a summary for reading: errors by method and layer, and their ratios to others, a table
    for each.

    Of runs that differ in `by` these are the last errors and those over the constant image's.
    """
    if "measure" not in summary:
        return _text(summary)
    errors = _by_layer(summary, by, "mean", "low", "high")
    constant = "over the error of a constant image"
    over = _by_layer(summary, by, "over_constant", "over_constant_low", "over_constant_high")
    if by:
        lines = [errors, constant, over]
    else:
        lines = [
            "mean-field errors per 10,000 images, with 95 % intervals; runs of each method:"
            f" {summary['runs'].max()}",
            errors,
            "at the start",
            _by_layer(summary, by, "start"),
            f"{constant}: geometric means, with 95 % intervals",
            over,
        ]
        if "ratio" in summary:
            ratios = summary.dropna(subset="ratio")
            paired = int(ratios["paired"].min())
            lines.append(f"over the errors of the recorded run; seeds in common: {paired}")
            lines.append(_by_layer(ratios, by, "ratio", "ratio_low", "ratio_high"))
    return "\n".join([*lines, *_closing(summary, by)])


def _by_layer(summary: pd.DataFrame, by: Sequence[str], value: str, *ends: str) -> str:
    """Return a table of mean-field values, with intervals if they have `ends`, a column for each
    layer.
    """
    from leamvd_paper.studies.words import interval, named, number

    rows = summary.query("measure == 'mean_field'").set_index(["inputs", "method", *by, "layer"])
    if ends:
        texts = map(interval, *(rows[name] for name in (value, *ends)))
    else:
        texts = map(number, rows[value])
    cells = pd.Series([*texts], rows.index).unstack("layer", sort=False)
    table = cells.add_prefix("RBM ").fillna("–").reset_index()
    if by:
        table = table.sort_values(["inputs", "method"], kind="stable")
    for name in by:
        table[name] = table.pop(name)
    table["method"] = table["method"].map(named)
    return _text(table)


def _closing(summary: pd.DataFrame, by: Sequence[str]) -> list[str]:
    """Return the sentence about errors that are small and tell of no learning, if there are any."""
    from leamvd_paper.studies.words import named

    rows = summary.query("measure == 'mean_field'")
    same = ["inputs", "layer", *by]
    of_cd = rows.query("method == 'cd'")[[*same, "mean"]]
    both = rows.merge(of_cd, on=same, suffixes=("", "_of_cd"))
    small = both.query("mean < mean_of_cd and over_constant > 1")
    cells = []
    for row in small.to_dict("records"):
        where = [named(row["method"]), f"{row['inputs']} inputs", f"RBM {row['layer']}"]
        cells.append(", ".join([*where, *(f"{name}={row[name]}" for name in by)]))
    told = "Errors below CD's that are no sign of learning, for a constant image has a smaller one"
    return [f"{told}: {'; '.join(cells)}."] if cells else []


def _text(table: pd.DataFrame) -> str:
    return str(table.to_string(index=False, float_format="{:,.4g}".format, na_rep="–"))


CLAIM = click.argument(
    "name", metavar="CLAIM", type=click.Choice([f"C{number}" for number in range(3, 11)])
)
DATASET = click.option(
    "--dataset", metavar="digits|mnist|PATH", default="mnist", show_default=True, help="Images."
)
IMAGES = click.option(
    "--images", type=_Count(), help="Training images; default: 10000, or all if there are fewer."
)
SEEDS = click.option(
    "--seeds", type=_Count(), default=3, show_default=True, help="Runs of each method."
)


@main.command()
@CLAIM
@_settings_option(
    "A setting of contrastive divergence, or x0, x0_epochs, x0_batches: what makes the start of"
    " the searches."
)
@DATASET
@IMAGES
@SEEDS
@OUTPUT
@JOBS
@SCHEDULER
def claim(
    name: str,
    settings: tuple[str, ...],
    dataset: str,
    images: int | None,
    seeds: int,
    output: Path,
    jobs: int | None,
    scheduler: str | None,
) -> None:
    """Answer a CLAIM of the paper, C3 to C10, at settings of your own, which the paper does not
    print.

    Such as -p learning_rate=0.003 -p weight_scale=0.01 -p x0=batch -p x0_batches=5.
    """
    from leamvd_paper.studies import settings_map
    from leamvd_paper.studies.claims import CLAIMS

    ((_, sets),) = sections.requested(sections.load(["mnist-7x7"]), settings)
    if len(sets) > 1:
        raise ValueError("a claim is answered at one setting at a time, got several values of one")
    given = sets[0]
    if not any(setting.strip().startswith("profile") for setting in settings):
        del given["profile"]  # the section's own; one that was typed is refused below
    maps = settings_map.own_maps(name, given, dataset=dataset, n_images=images, n_seeds=seeds)
    with _computing(jobs, scheduler) as n_jobs:
        minutes = sum(map(settings_map.seconds, maps.values())) / 60
        told = []
        for side, one in maps.items():
            told.append(f"{side}x{side} pixels, {one.images.known().n_images:,} images")
        runs = f"{seeds} seed{'s' * (seeds > 1)}"
        click.echo(f"{name}, in the paper's words: {CLAIMS[name]}")
        click.echo(
            f"{name} at {' and '.join(told)}, {runs}: about {minutes:.1f} minutes on one processor"
        )
        parts, ratios = settings_map.own_answer(name, maps, output / "calls", n_jobs=n_jobs)
    click.echo(_text(parts))
    click.echo("\nerrors over that of a constant image")
    click.echo(_text(ratios))
    answers = settings_map.answers(parts.assign(claim=name, protocol=settings_map.OWN, batches=0))
    answers.columns = ["answer"]
    click.echo(f"\n{_text(answers.reset_index())}")
    if dataset == "mnist":
        own, *_ = maps.values()
        near = settings_map.nearest(name, own)
    else:
        near = "these are not the paper's images: its numbers are no bounds here"
    click.echo(f"\n{near}")


@main.command()
@click.argument("name")
@OUTPUT
@JOBS
@SCHEDULER
def record(name: str, output: Path, jobs: int | None, scheduler: str | None) -> None:
    """Compute what is recorded under a NAME, and write it to notebooks/recorded/NAME of a clone."""
    from leamvd_paper.studies import results, verify
    from leamvd_paper.studies.layers import spelled

    if not (results.NOTEBOOKS.parent / "_config.yml").is_file():
        raise ValueError(
            "recording needs a clone of the repository, got an installed package:"
            f" {results.NOTEBOOKS}"
        )
    entry = verify.recorded(name)
    commit = results.committed()
    with _computing(jobs, scheduler) as n_jobs:
        tables = results.tables(entry.plan(), output / "calls", n_jobs=n_jobs, label=name)
    kept = {table: entry.keep(rows) for table, rows in tables.items()}
    click.echo(results.write_recorded(name, kept, spelled(entry.settings), commit))


CALLS = click.option(
    "--calls", type=_Count(), default=1, show_default=True, help="How many, of each table."
)


def _writable(_ctx: click.Context, _param: click.Parameter, path: Path | None) -> Path | None:
    """Return where a file will be written; a place that does not take one is refused before hours
    of work.
    """
    if path is not None and not os.access(path.parent, os.W_OK):
        raise click.BadParameter(f"no file can be written in the folder {str(path.parent)!r}")
    return path


REPORT = click.option(
    "--report",
    metavar="FILE",
    type=_Folder(path_type=Path, dir_okay=False, writable=True),
    callback=_writable,
    help="Also write settings, versions, processor and what agrees to FILE, as JSON.",
)


@main.command("verify")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@CALLS
@OUTPUT
@REPORT
@JOBS
def verify_(
    names: tuple[str, ...], calls: int, output: Path, report: Path | None, jobs: int | None
) -> None:
    """Compute a sample of what is recorded, and compare; exit status 1 if a number drifts, or if
    nothing was compared.

    A NAME is that of a folder in notebooks/recorded; without one, everything that is recorded by
    calls.
    """
    from leamvd_paper.data.mnist import DataError
    from leamvd_paper.studies import verify

    drifts = []
    found: dict[str, dict[str, Any]] = {}
    chosen = names or sorted(verify.all_recorded())
    with _computing(jobs, None) as n_jobs:
        for name in chosen:
            settings = verify.changed_settings(name)
            if settings:
                click.echo(f"{name}: recorded with other settings than those of the code")
                click.echo("\n".join(settings))
                found[name] = {"other settings": settings}
                drifts.append(True)
                continue
            try:
                changed, table = verify.verify(name, output / "calls", count=calls, n_jobs=n_jobs)
            except (ImportError, DataError) as error:  # of a package or a data set that is not here
                click.echo(f"{name}: not verified: {error}")
                found[name] = {"not verified": type(error).__name__}  # its words may have a path
                continue
            click.echo("; ".join([name, *changed]))
            click.echo(table.to_string(index=False, float_format="{:.7g}".format))
            found[name] = {"differences": changed, "calls": table}
            drifts.append(bool(table["drifts"].any()))
    click.echo(f"{len(drifts)} of {len(chosen)} compared")
    if report is not None:
        verify.write_report(report, found)
        click.echo(report)
    sys.exit(int(any(drifts) or not drifts))


@main.group()
def data() -> None:
    """Fetch data sets."""


@data.command()
@click.option(
    "--from",
    "source",
    metavar="DIR|URL",
    help="A folder with the four files, or where to load them from.",
)
def mnist(source: str | None) -> None:
    """Fetch MNIST's four original files and verify them."""
    from leamvd_paper.data.mnist import fetch_mnist

    click.echo(fetch_mnist(source, progress=sys.stderr.isatty()))


@main.command()
@click.option(
    "--results",
    "folder",
    type=_Folder(path_type=Path, file_okay=False, exists=True),
    help=(
        "Folder of results, as `leamvd reproduce` writes it: its latest runs are shown; default:"
        " those published."
    ),
)
@click.option("--repository", metavar="URL", default="", help="To which pages link.")
@click.option("--baseurl", metavar="URL", default="", help="Where the book will be read.")
def book(folder: Path | None, repository: str, baseurl: str) -> None:
    """Render the book and print the page to open."""
    from leamvd_paper.book import render

    page = render.render(folder, repository=repository, baseurl=baseurl)
    click.echo(page.resolve())
