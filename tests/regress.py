"""A page that shows which figures of a run differ from the accepted ones: `make regress`."""

import io
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import accepted
import click
import jinja2
from PIL import Image, ImageChops, ImageOps

from leamvd.book import runs, sections, side_by_side

HERE = Path(__file__).parent


class Moved(NamedTuple):
    """A figure that differs: what to say of it, its arrays as accepted and as made now, its alternative text."""

    name: str
    says: list[str]
    expected: Path | None
    actual: Path | None
    origins: list[tuple[str, str, str]]
    alt: str

    @property
    def pictures(self) -> dict[str, str]:
        """The pictures to show, by their titles, as addresses that hold them."""
        paths = {"Expected": self.expected, "Actual": self.actual}
        files = {title: path.with_suffix(".png") for title, path in paths.items() if path}
        files = {title: path for title, path in files.items() if path.exists()}  # with "quick" no picture is accepted
        shown = {title: side_by_side.data_uri(path.read_bytes()) for title, path in files.items()}
        return shown | ({"Difference": difference(*files.values())} if len(files) == 2 else {})


def difference(expected: Path, actual: Path) -> str:
    """Return the difference of two pictures of any sizes as an address: white where they agree, else dark."""
    with Image.open(expected) as old, Image.open(actual) as new:
        size = max(old.width, new.width), max(old.height, new.height)
        sheets = [Image.new("RGB", size, "white") for _ in range(2)]
        for sheet, image in zip(sheets, (old, new), strict=True):
            sheet.paste(image.convert("RGB"))
    file = io.BytesIO()
    strong = ImageChops.difference(*sheets).convert("L").point(lambda level: min(255, 10 * level))
    ImageOps.invert(strong).save(file, "PNG")
    return side_by_side.data_uri(file.getvalue())


def compare(run: runs.Run) -> tuple[list[Moved], int]:
    """Return the figures of a run that differ from those accepted of its section, and how many were compared."""
    profile, entry = run.about["parameters"]["profile"], accepted.entries().get(accepted.key(run.about), {})
    known, made = entry.get("figures", []), accepted.figures(run.folder)
    alternatives = side_by_side.alt_texts(run)
    found = []
    for name in sorted({*known, *made}):
        expected, actual = accepted.place(profile) / f"{name}.json", made.get(name)
        if name not in known:
            says = ["This figure is new."]
        elif actual is None:
            says = ["This figure is missing: the run has not made it."]
        else:
            says = accepted.moved(expected, actual)
        if says:
            before, alt = entry["run"] if name in known else {}, alternatives.get(name, name)
            found.append(Moved(name, says, expected if before else None, actual, origins(before, run.about), alt))
    return found, len({*known, *made})


def origins(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return commit and parameters of two runs as rows of a table, and what else of them differs."""
    old, new = (
        {"commit": about["made_with"]["commit"]} | about["parameters"] | about["made_with"]
        for about in (expected or actual, actual)
    )
    always = {"commit", *expected.get("parameters", {}), *actual["parameters"]}
    return [
        (name, side_by_side.as_text(old.get(name)) if expected else "–", side_by_side.as_text(new.get(name)))
        for name in old | new
        if name in always or old.get(name) != new.get(name)
    ]


@click.command()
@click.argument(
    "outputs", metavar="RESULTS...", nargs=-1, required=True,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
)  # fmt: skip
@click.option("--page", type=click.Path(path_type=Path), default=Path("_build/regress.html"), show_default=True)
@click.pass_context
def main(context: click.Context, outputs: tuple[Path, ...], page: Path) -> None:
    """Write a page of the figures in RESULTS that differ from the accepted ones; exit status 1 where any does.

    The last run of each section in each folder is compared, with what is accepted of its profile. Sections without such
    a run are named, and not compared.
    """
    found, total, compared = [], 0, set()
    for output, section in itertools.product(outputs, sections.load()):
        folder = runs.latest(output, section.stem)
        run = runs.read(folder) if folder else None
        if run and accepted.compared(run.about):
            differing, count = compare(run)
            found, total = found + differing, total + count
            compared.add(section.stem)
    others = [section.stem for section in sections.load() if section.stem not in compared]
    if not total:
        raise click.UsageError("RESULTS hold no run that is compared: name a folder that `leamvd reproduce` has filled")
    new, missing = (sum(getattr(figure, side) is None for figure in found) for side in ("expected", "actual"))
    moved = len(found) - new - missing
    summary = f"{moved or 'None'} of {total} figures moved" + f", {new} new" * bool(new)
    summary += f", {missing} missing" * bool(missing) + "."
    templates = jinja2.FileSystemLoader([HERE, Path(side_by_side.__file__).parent])
    environment = jinja2.Environment(loader=templates, autoescape=True, trim_blocks=True, lstrip_blocks=True)
    text = environment.get_template("regress.html").render(summary=summary, moved=found, others=others)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    click.echo(summary)
    for figure in found:
        click.echo(f"{figure.name}: {figure.says[0]}")
    if others:
        click.echo(f"Not compared, for there is no run of them in an accepted profile: {', '.join(others)}.")
    click.echo(page)
    context.exit(1 if found else 0)


if __name__ == "__main__":
    main()
