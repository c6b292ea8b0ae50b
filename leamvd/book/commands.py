"""Commands on runs that are there: put two side by side, record one, verify what is recorded."""

from pathlib import Path

import click

from leamvd.book import runs


@click.command()
@click.argument("run_a", type=click.Path(path_type=Path, exists=True))
@click.argument("run_b", type=click.Path(path_type=Path, exists=True))
def compare(run_a: Path, run_b: Path) -> None:
    """Put two runs of a section side by side on a page, and print its path.

    A run is a folder such as results/03_mnist_7x7/quick-1a2b3c4d; results/03_mnist_7x7/latest is the section's last.
    The page shows the parameters that differ, errors with 95 % intervals, and the figures of both.
    """
    from leamvd.book import side_by_side

    try:
        click.echo(side_by_side.compare(run_a, run_b))
    except (RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from None


@click.command()
@click.argument("run", type=click.Path(path_type=Path, exists=True))
@click.option("--name", help="Of the recorded folder; default: the section's, with underscores.")
@click.option("--replace", is_flag=True, help="Put it in the place of an earlier one.")
@click.option("--extend", is_flag=True, help="Add its seeds to an earlier one of the same study.")
def record(run: Path, name: str | None, replace: bool, extend: bool) -> None:
    """Turn a finished run's study into the form that ships with the notebooks, and print its folder.

    RUN is a folder such as results/03_mnist_7x7/latest. Records are kept compressed, with their provenance and with
    small pictures in the place of the weights. A study can be recorded in parts, each a run with some of its seeds.
    """
    if replace and extend:
        raise click.UsageError("--replace clashes with --extend: give one of them")
    try:
        from leamvd.paper import recording
        from leamvd.paper.store import Store

        found = runs.read(run)
        name = name or found.about["section"].replace("-", "_")
        place = recording.record(name, found.folder, found.about, Store(found.store), replace=replace, extend=extend)
        click.echo(place)
    except (RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from None


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--units", type=click.IntRange(1), default=3, show_default=True, help="How many units are rerun.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the choice of units.")
@click.pass_context
def verify(context: click.Context, names: tuple[str, ...], units: int, seed: int) -> None:
    """Rerun a sample of what is recorded, and compare; exit status 1 if a number drifts, or if nothing was compared.

    A NAME is that of a folder in notebooks/recorded; without one, everything that is recorded. Numbers must agree to
    six digits where processor architecture, versions and backend are the recorded ones, and within the scatter between
    seeds elsewhere.
    """
    try:
        from leamvd.paper import verification

        drifts, compared, chosen = False, 0, names or tuple(verification.names())
        for name in chosen:
            try:
                changed, table = verification.verify(name, units=units, seed=seed)
            except verification.NotRerunError as error:
                if names:
                    raise
                click.echo(f"not rerun: {error}")
                continue
            how = f"scatter between seeds, for {'; '.join(changed)}" if changed else "six digits"
            click.echo(f"{name}: compared by {how}\n{table.to_string(index=False, float_format='{:.7g}'.format)}")
            drifts, compared = drifts or bool(table["drifts"].any()), compared + 1
        click.echo(f"{compared} of {len(chosen)} compared")
    except (RuntimeError, ValueError) as error:
        raise click.ClickException(str(error)) from None
    context.exit(int(drifts or not compared))
