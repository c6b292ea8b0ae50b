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

    click.echo(side_by_side.compare(run_a, run_b))


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--name", help="Of the recorded folder; default: the section's, with underscores.")
@click.option("--replace", is_flag=True, help="Put it in the place of an earlier one.")
@click.option("--extend", is_flag=True, help="Add its seeds to an earlier one of the same study.")
@click.option("--jobs", type=click.IntRange(min=1), help="Processes; only for searches, which are computed now.")
def record(run: Path, name: str | None, replace: bool, extend: bool, jobs: int | None) -> None:
    """Turn a finished run's study into the form that ships with the notebooks, and print its folder.

    RUN is a folder such as results/03_mnist_7x7/latest, or the name of searches that belong to no section: these are
    computed, with the store in the folder results. Tables are kept compressed, with their provenance and with
    small pictures in the place of the weights. A study can be recorded in steps, each a run with some of its seeds.
    """
    if replace and extend:
        raise click.UsageError("--replace clashes with --extend: give one of them")
    from leamvd.experiments import recording

    if str(run) in recording.SEARCHES and not run.exists():
        click.echo(recording.record_searches(str(run), Path("results"), n_jobs=jobs))
        return
    found = runs.read(run)
    name = name or found.about["section"].replace("-", "_")
    click.echo(recording.record(name, found.folder, found.about, found.store, replace=replace, extend=extend))


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--jobs", type=click.IntRange(1), default=3, show_default=True, help="How many, of each table.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the choice of jobs.")
@click.pass_context
def verify(context: click.Context, names: tuple[str, ...], jobs: int, seed: int) -> None:
    """Compute a sample of what is recorded, and compare; exit status 1 if a number drifts, or if nothing was compared.

    A NAME is that of a folder in notebooks/recorded; without one, everything that is recorded. All numbers are compared
    first, and must agree to six digits. Only where they do not, and processor, versions or backend are not the recorded
    ones, a job is judged by the scatter of the other seeds.
    """
    from leamvd.experiments import recording

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
