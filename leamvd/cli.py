"""The command ``leamvd``: list and rerun the paper's sections, fetch the data, measure costs, render the book."""

import time
from pathlib import Path

import click

from leamvd.book.sections import PARTIAL, ParameterError, RunError, Section, assign, choose, load, publish, run

BENCH = "linear-cost"
"""The section that measures costs."""


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="leamvd")
def main() -> None:
    """LEA-MVD and the executable edition of its paper."""


@main.command("list")
def list_() -> None:
    """Show the sections and their parameters."""
    for section in load():
        click.echo(f"{section.name}  ({section.stem}): {section.title}")
        click.echo(f"    expected time: {_expected(section)}")
        rows = [
            (p.name, p.type, repr(p.default), p.rule, p.description)
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
@click.option("--profile", metavar="quick|paper", help="The same as -p profile=...: a small scale, or the paper's own.")
@click.option("-p", "settings", metavar="NAME=VALUE", multiple=True, help="A notebook parameter; see `leamvd list`.")
@click.option("--dataset", metavar="digits|mnist|PATH", help="The same as -p dataset=...")
@click.option(
    "--output", type=click.Path(path_type=Path, file_okay=False), default=Path("results"), show_default=True,
    help="Folder of the results.",
)  # fmt: skip
@click.pass_context
def reproduce(
    context: click.Context,
    names: tuple[str, ...],
    profile: str | None,
    settings: tuple[str, ...],
    dataset: str | None,
    output: Path,
) -> None:
    """Run sections of the paper (all of them when none is named).

    Executed notebooks, records and figures replace those in the output folder once every section has succeeded. A run
    that was stopped carries on when it is started again with the same parameters.
    """
    pairs = [("profile", profile), ("dataset", dataset)]
    try:
        given = [(name, text) for name, text in pairs if text is not None] + [_split(setting) for setting in settings]
        chosen = choose(load(), names)
        values = assign(chosen, given)
    except ParameterError as error:
        raise click.UsageError(str(error)) from None
    output = output.resolve()
    try:
        for section, value in zip(chosen, values, strict=True):
            click.echo(f"{section.stem}: {section.title} (expected: {_expected(section)})")
            start = time.monotonic()
            run(section, value, output)
            click.echo(f"{section.stem}: done in {time.monotonic() - start:.0f} s")
        publish(chosen, output)
    except ImportError as error:
        raise click.ClickException(f"{error}; running notebooks needs the extra `book` (leamvd[book])") from None
    except RunError as error:
        raise click.ClickException(str(error)) from None
    except KeyboardInterrupt:
        click.echo(f"\nstopped; partial results: {output / PARTIAL}\nThe same command carries on from there.", err=True)
        context.exit(130)
    click.echo(f"results: {output}")


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
    context.invoke(
        reproduce, names=(BENCH,), profile=profile, settings=("source=measured",), dataset=None, output=output
    )
    from leamvd import bench  # brings pandas, which takes long to import
    from leamvd.bench import summary
    from leamvd.paper.comparison import format_table

    (section,) = choose(load(), [BENCH])
    optimizers = bench.read(output / section.stem).optimizers
    click.echo(format_table(summary.baselines(optimizers)).to_string(index=False))


@main.group()
def data() -> None:
    """Fetch data sets."""


@data.command()
@click.option("--from", "source", metavar="DIR|URL", help="A folder with the four files, or where to load them from.")
def mnist(source: str | None) -> None:
    """Fetch MNIST's four original files and verify them."""
    from leamvd.paper import datasets

    try:
        click.echo(datasets.fetch_mnist(source, progress=True))
    except datasets.DataError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.option(
    "--results", type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of executed notebooks, as `leamvd reproduce` writes it; default: the notebooks as published.",
)  # fmt: skip
def book(results: Path | None) -> None:
    """Render the book and print the page to open."""
    try:
        from leamvd.book.render import render

        click.echo(render(results).resolve())
    except ImportError as error:
        raise click.ClickException(f"{error}; rendering needs the extra `book` (leamvd[book])") from None
    except (OSError, RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from None


def _split(setting: str) -> tuple[str, str]:
    name, sign, text = setting.partition("=")
    if not sign:
        raise ParameterError(f"-p takes NAME=VALUE, got {setting!r}")
    return name.strip(), text


def _expected(section: Section) -> str:
    return ", ".join(f"{profile} about {section.minutes[profile]:g} min" for profile in ("quick", "paper"))


if __name__ == "__main__":
    main()
