"""Take figures and what notebooks tell, in both profiles, as the right ones: `make accept`."""

import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import accepted
import click

from leamvd.book import pasted, runs, sections

NOTEBOOKS = accepted.ROOT / "notebooks"
CHANGELOG = accepted.ROOT / "CHANGELOG.md"
FRESH = Path("results/accept")


def read(notebook: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    return content


def program(notebook: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return what a notebook's cells hold and say of their figures, except what is the run's: parameters, numbers."""
    pasted.restore(notebook)
    cells = [cell for cell in notebook["cells"] if "parameters" not in cell["metadata"].get("tags", [])]
    return [("".join(cell["source"]), cell["metadata"].get("mystnb")) for cell in cells]


def outputs(own: dict[str, Any], run: dict[str, Any], taken: set[str]) -> dict[str, Any]:
    """Return a run's notebook, but with the clone's own outputs in cells of figures that are not taken.

    Tables and numbers are the run's, so that what the tests compare is from one run; a figure that has moved and is not
    taken stays as it was, in the notebook as in tests/figures.
    """
    before = accepted.shown(own)
    for name, cell in accepted.shown(run).items():
        if name not in taken:
            cell["outputs"] = before[name]["outputs"]
    return run


def changelog(text: str, entry: str) -> str:
    """Return a changelog with an entry at the end of what changes in the next version."""
    parts = re.match(r"(.*?^## \[Unreleased\]\n)(.*?)(^## .*|\Z)", text, re.MULTILINE | re.DOTALL)
    if not parts:
        raise click.ClickException("CHANGELOG.md must have a section [Unreleased], which the reason goes into")
    head, unreleased, later = parts.groups()
    if "### Changed\n" not in unreleased:
        unreleased = f"{unreleased.rstrip()}\n\n### Changed\n"
    before, changed, after = re.split(
        r"(?<=^### Changed\n)(.*?)(?=^### |\Z)", unreleased, maxsplit=1, flags=re.M | re.S
    )
    told = textwrap.fill(
        entry, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    told = f"{changed.strip()}\n{told}".strip()
    return f"{head}{before}\n{told}\n\n{after}{later}".rstrip() + "\n"


def check(figure: str, reason: str) -> sections.Section | None:
    """Return the section whose notebook shows the figure, None without one; refuse what is not known or not given."""
    if not reason:
        raise click.ClickException('a REASON is needed, for CHANGELOG.md: make accept REASON="why it moved"')
    if not figure:
        return None
    every = {section.name: section for section in sections.load()}
    home = {name: every[own] for profile in accepted.PROFILES for name, own in accepted.names(profile).items()}
    home |= {name: section for section in every.values() for name in accepted.shown(read(section.path))}
    if figure not in home:
        raise click.ClickException(f"no figure is named {figure!r}; there are {', '.join(sorted(home))}")
    return home[figure]


def fresh(section: sections.Section | None) -> list[Path]:
    """Run a section, or all of them, in both profiles and from nothing; return the folders of the results."""
    shutil.rmtree(FRESH, ignore_errors=True)
    for profile in accepted.PROFILES:
        command = [sys.executable, "-m", "leamvd.cli", "reproduce", *([section.name] if section else [])]
        command += ["--profile", profile, "--output", str(FRESH / profile)]
        if subprocess.run(command, check=False).returncode:
            raise click.ClickException("the run has failed, so nothing is accepted")
    return [FRESH / profile for profile in accepted.PROFILES]


def take(section: sections.Section, run: runs.Run, figure: str) -> None:
    """Take the figure, or all of a section, and what its notebook tells."""
    made, known, key = accepted.figures(run.folder), accepted.entries(), accepted.key(run.about)
    profile, notebook = run.about["parameters"]["profile"], read(run.folder / section.path.name)
    before = set(known.get(key, {"figures": []})["figures"])
    taken = {figure} if figure else before | made.keys()
    folder = accepted.place(profile)
    folder.mkdir(exist_ok=True)
    for name in taken:
        for ending in (".json", ".png") if profile == "recorded" else (".json",):
            (folder / name).with_suffix(ending).unlink(missing_ok=True)
            if name in made:
                shutil.copy(made[name].with_suffix(ending), folder)
    about = {name: value for name, value in run.about.items() if name != "studies"}
    entry: dict[str, Any] = {"run": about, "figures": sorted(before - taken | made.keys() & taken)}
    told = accepted.told(notebook)
    entry |= told if profile == "quick" else {"pasted": told["pasted"]}
    accepted.write(known | {key: entry})
    if profile == "recorded":
        content = outputs(read(section.path), notebook, taken)
        section.path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(section.path)], check=True)


@click.command()
@click.option("--figure", envvar="FIGURE", default="", help="One figure alone, by its name; default: all.")
@click.option("--reason", envvar="REASON", default="", help="Why it has moved; goes into CHANGELOG.md under Changed.")
@click.option(
    "--results", "output", envvar="RESULTS", type=click.Path(path_type=Path, file_okay=False, exists=True),
    help="Folder of results to take from; default: a new run in both profiles.",
)  # fmt: skip
def main(figure: str, reason: str, output: Path | None) -> None:
    """Take figures, and the outputs of their notebooks, as the right ones.

    Of a notebook whose other figures have moved too, these stay as they were, and tables and numbers are the run's.
    """
    figure, reason = figure.strip(), " ".join(reason.split())
    home = check(figure, reason)
    every = [home] if home else sections.load()
    folders = [output] if output else fresh(home)
    places = [(section, runs.latest(folder, section.stem)) for folder in folders for section in every]
    last = [(section, runs.read(place)) for section, place in places if place]
    last = [(section, run) for section, run in last if accepted.compared(run.about)]
    if not last:
        sought = home.stem if home else "a section"
        raise click.ClickException(f"{folders[0]} holds no run of {sought} that is compared, so nothing is accepted")
    for section, run in last:
        if program(read(section.path)) != program(read(run.folder / section.path.name)):
            raise click.ClickException(f"{section.stem} has been edited since its run in {run.folder}: run it again")
    names = ", ".join(dict.fromkeys(section.name for section, _ in last))
    what = f"Figure `{figure}`" if figure else f"Figures and numbers of {names}"
    told = changelog(CHANGELOG.read_text(encoding="utf-8"), f"{what}: {reason.removesuffix('.')}.")
    for section, run in last:
        take(section, run, figure)
    CHANGELOG.write_text(told, encoding="utf-8")
    click.echo(f"{what}: accepted from {', '.join(map(str, folders))}")


if __name__ == "__main__":
    main()
