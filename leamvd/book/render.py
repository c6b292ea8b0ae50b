"""Render the book: check the executed notebooks, stage the pages, build them with warnings as errors.

Nothing is executed here: papermill runs the notebooks, and this shows what they hold. Needs the extra ``leamvd[book]``.
"""

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import leamvd
from leamvd._support import checks, children
from leamvd.book import pasted, sections
from leamvd.book.runs import latest

_JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"


def render(results: Path | None = None, output: Path = Path("_build/book")) -> Path:
    """Build the book from a clone's pages and executed notebooks, and return the page to open.

    The latest runs in the folder `results`, of one or all sections, take the place of the clone's own notebooks. What
    they do not have of the numbers that pages paste is a dash there, and a page that pastes other numbers than it is
    about says so.

    The pages are staged and built fresh, in a hidden folder beside `output`, so neither hidden folders of the clone nor
    an earlier build's pages can matter. An earlier book is replaced when the new one is whole, by renaming.
    """
    sources = Path(leamvd.__file__).resolve().parent.parent
    if not (sources / "_config.yml").is_file():
        raise FileNotFoundError(
            "`leamvd book` needs the pages of a clone, from which leamvd is installed by `pip install -e '.[book]'`: "
            f"there is no _config.yml in {sources}"
        )
    checks.needs("rendering the book", "book", "jupyter_book", "nbformat", "sphinx", "sphinx_external_toc")
    if output.exists() and any(output.iterdir()) and not (output / ".buildinfo").is_file():
        raise FileExistsError(
            f"output must be a new or empty folder, or hold an earlier book; {output} holds other files"
        )
    notebooks = _notebooks(sources, results)
    for path in notebooks:
        check(path)

    place = output.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as work:
        built = _build(sources, notebooks, Path(work))
        if place.exists():
            place.rename(Path(work, "earlier"))
        built.rename(place)
    return output / "index.html"


def _build(sources: Path, notebooks: list[Path], work: Path) -> Path:
    """Stage the pages and build them in a folder of their own; return where the book is in it."""
    from sphinx.util.console import strip_colors

    stage = work / "stage"
    shutil.copytree(sources / "book", stage / "book")
    (stage / "notebooks").mkdir()
    for path in (sources / "_config.yml", sources / "_toc.yml"):
        shutil.copy(path, stage)
    (stage / "figures").mkdir()
    own = {path.stem: pasted.read(_read(sources / "notebooks" / path.name)) for path in notebooks}
    given = {path.stem: pasted.read(_read(path)) for path in notebooks}
    commands = {path.stem: _stage(path, sources, stage, given) for path in notebooks}
    for page in (stage / "book").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        others = {name for name, key in pasted.keys(text) if given[name].get(key) != own[name].get(key)}
        told = _warned(pasted.dashed(text, given), [commands[name] for name in sorted(others)])
        page.write_text(told, encoding="utf-8")
    options = ["-q", "-W", "-n", "--keep-going", "--path-output", str(work / "built")]
    command = [*children.command(_JUPYTER_BOOK), "build", *options, str(stage)]
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(stage))  # Sphinx leaves reports there
    run = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if run.returncode:
        refused = re.search(r"\[Errno \d+\] .*", run.stdout)
        told = f" {refused[0]}" if refused else f"\n{strip_colors(run.stdout)}"
        raise RuntimeError(f"the book was not built:{told}")
    built = work / "built" / "_build" / "html"
    for path in notebooks:  # which a reader downloads from its page, for Jupyter
        shutil.copy(path, built / "_sources" / "notebooks")
    return built


def _warned(text: str, others: Sequence[str]) -> str:
    """Return a page that says on top which runs, by their commands, some of its numbers are of that it is not about."""
    if not others:
        return text
    title, _, rest = text.partition("\n")
    note = "Some numbers on this page are of other runs than its text is about; a dash is what these did not measure:"
    warning = [":::{admonition} Another run", ":class: warning", note, "", *(f"- `{made}`" for made in others), ":::"]
    return "\n".join((title, "", *warning, rest))


def _read(notebook: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(notebook.read_text(encoding="utf-8"))
    return content


def _stage(notebook: Path, sources: Path, stage: Path, given: Mapping[str, Mapping[str, str]]) -> str:
    """Copy a notebook, and say below each of its figures what makes it and where the numbers are that it plots.

    Values that pages paste, `given` by the notebooks' stems, are dashes where they are not there. Return the command.
    """
    content = _read(notebook)
    (section,) = sections.choose(sections.load(), [content["metadata"]["leamvd"]["section"]])
    command = section.command(content["metadata"].get("papermill", {}).get("parameters", {}))
    pasted.restore(content)
    pasted.rewrite(content, lambda text: pasted.dashed(text, given, notebook.stem))
    own = notebook.parent == sources / "notebooks"
    figures = sources / "tests" / "figures" if own else notebook.parent / "figures"
    for cell in content["cells"]:
        if not (figure := cell["metadata"].get("mystnb", {}).get("figure")):
            continue
        data = figures / f"{figure['name'].removeprefix('fig-')}.json"
        note = f"Made by `{command}`."
        if data.is_file():
            shutil.copy(data, stage / "figures")
            note += f" [Data of this figure](../figures/{data.name})."
        figure["caption"] += f"\n\n{note}"
    (stage / "notebooks" / notebook.name).write_text(json.dumps(content), encoding="utf-8")
    return command


def check(notebook: Path) -> None:
    """Refuse a notebook that a reader should not be shown, with all that is wrong in it.

    That is where its run failed, a cell holds an error or was not executed, or an image has no alternative text.
    """
    import nbformat

    content = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    problems = ["its run ended with an exception"] if content.metadata.get("papermill", {}).get("exception") else []
    for number, cell in enumerate(content.cells, start=1):
        if cell.cell_type != "code" or not cell.source.strip():
            continue
        if cell.execution_count is None:
            problems.append(f"cell {number} was not executed")
        for output in cell.outputs:
            if output.output_type == "error":
                problems.append(f"cell {number} failed with {output.ename}: {output.evalue}")
        drawn = any(kind.startswith("image/") for output in cell.outputs for kind in output.get("data", ()))
        if drawn and not str(cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "")).strip():
            problems.append(f"cell {number} shows an image without alternative text (metadata mystnb.image.alt)")
    if problems:
        raise ValueError(f"{notebook} cannot be shown: {'; '.join(problems)}")


def _notebooks(sources: Path, results: Path | None) -> list[Path]:
    from sphinx_external_toc.parsing import parse_toc_yaml

    names = [f"{page}.ipynb" for page in parse_toc_yaml(sources / "_toc.yml") if page.startswith("notebooks/")]
    own = [sources / name for name in names]
    if results is None:
        return own
    runs = [latest(results, path.stem) for path in own]
    given = [run / path.name if run else path for run, path in zip(runs, own, strict=True)]
    if not any(runs):
        raise FileNotFoundError(
            f"results must hold runs of {', '.join(path.stem for path in own)}, or of some of them; got {results}"
        )
    return given
