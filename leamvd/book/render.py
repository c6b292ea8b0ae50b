"""Render the book: check the executed notebooks, stage the pages, build them with warnings as errors.

Nothing is executed here: papermill runs the notebooks, and this shows what they hold. Needs the extra ``leamvd[book]``.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import leamvd
from leamvd._support import checks, children
from leamvd.book.results import latest

_JUPYTER_BOOK = "from jupyter_book.cli.main import main; main()"
_NEW, _EARLIER = ".new", ".earlier"  # endings of the folders beside a book, while one is built


def render(results: Path | None = None, output: Path = Path("_build/book")) -> Path:
    """Build the book from a clone's pages and executed notebooks.

    The pages are staged and built fresh, in a hidden folder beside `output`, so neither hidden folders of the clone nor
    an earlier build's pages can matter. An earlier book is replaced when the new one is whole, by renaming; what a
    process leaves there that is killed, the next one removes.

    Parameters
    ----------
    results : Path, optional
        Folder whose latest runs take the place of the clone's own ``notebooks/<name>.ipynb``, one or all of them; see
        `leamvd.book.results`.
    output : Path
        Folder to hold the book.

    Returns
    -------
    Path
        The page to open: ``index.html`` in `output`.

    Raises
    ------
    FileNotFoundError
        Where the package does not lie in a clone, or `results` holds no notebook of the book.
    FileExistsError
        If `output` holds anything but an earlier book.
    ValueError
        For a notebook that `check` refuses.
    RuntimeError
        If the build fails or warns; the message carries its output.
    ModuleNotFoundError
        Without the extra ``leamvd[book]``.
    """
    checks.needs("rendering the book", "book", "jupyter_book", "nbformat", "sphinx", "sphinx_external_toc")
    from filelock import FileLock

    sources = Path(leamvd.__file__).resolve().parent.parent
    if not (sources / "_config.yml").is_file():
        raise FileNotFoundError(
            f"rendering the book needs a clone of the repository: there is no _config.yml in {sources}"
        )
    if output.exists() and any(output.iterdir()) and not (output / ".buildinfo").is_file():
        raise FileExistsError(
            f"output must be a new or empty folder, or hold an earlier book; {output} holds other files"
        )
    notebooks = _notebooks(sources, results)
    for path in notebooks:
        check(path)

    place = output.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(place.with_name(f".{place.name}.lock")):
        _tidy(place)
        try:
            built = _build(sources, notebooks, place.with_name(f".{place.name}{_NEW}"))
            if place.exists():
                place.rename(place.with_name(f".{place.name}{_EARLIER}"))
            built.rename(place)
        finally:
            _tidy(place)
    return output / "index.html"


def _tidy(place: Path) -> None:
    """Put a book back that no new one has replaced, and remove what was left by this process or one that was killed."""
    new, earlier = (place.with_name(f".{place.name}{ending}") for ending in (_NEW, _EARLIER))
    if earlier.exists() and not place.exists():
        earlier.rename(place)
    for left in (new, earlier):
        shutil.rmtree(left, ignore_errors=True)


def _build(sources: Path, notebooks: list[Path], work: Path) -> Path:
    """Stage the pages and build them in a folder of their own; return where the book is in it."""
    from sphinx.util.console import strip_colors

    stage = work / "stage"
    shutil.copytree(sources / "book", stage / "book")
    (stage / "notebooks").mkdir()
    for path in (sources / "_config.yml", sources / "_toc.yml"):
        shutil.copy(path, stage)
    (stage / "figures").mkdir()
    commands = {}
    for path in notebooks:
        own = path.parent == sources / "notebooks"
        commands[path.name] = _stage(path, sources / "tests" / "figures" if own else path.parent / "figures", stage)
    for page in (stage / "book").glob("*.md"):
        _warn(page, commands)
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
    return work / "built" / "_build" / "html"


def _warn(page: Path, commands: Mapping[str, str]) -> None:
    """Say on top of a page which of the notebooks that it pastes numbers from had other parameters than their own."""
    title, _, text = page.read_text(encoding="utf-8").partition("\n")
    others = [f"- `{made}`" for name, made in commands.items() if f"{name}::" in text and " -p " in made]
    if others:
        note = "Sections that this page pastes numbers from were run with other parameters than its text is about:"
        warning = "\n".join((":::{admonition} Another run", ":class: warning", note, "", *others, ":::"))
        page.write_text(f"{title}\n\n{warning}\n{text}", encoding="utf-8")


def _stage(notebook: Path, figures: Path, stage: Path) -> str:
    """Copy a notebook, and say below each of its figures what makes it and where the numbers are that it plots.

    The numbers are what `leamvd.paper.figures.style.save` has written to `figures`. Return the command.
    """
    import nbformat

    from leamvd.book import origins

    content = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    given = content.metadata.get("papermill", {}).get("parameters", {})
    command = origins.command(content.metadata["leamvd"]["section"], given)
    for cell in content.cells:
        if not (figure := cell.metadata.get("mystnb", {}).get("figure")):
            continue
        data = figures / f"{figure['name'].removeprefix('fig-')}.json"
        note = f"Made by `{command}`."
        if data.is_file():
            shutil.copy(data, stage / "figures")
            note += f" [Data of this figure](../figures/{data.name})."
        figure["caption"] += f"\n\n{note}"
    nbformat.write(content, stage / "notebooks" / notebook.name)  # type: ignore[no-untyped-call]
    return command


def check(notebook: Path) -> None:
    """Refuse a notebook that a reader should not be shown.

    Parameters
    ----------
    notebook : Path
        An executed notebook.

    Raises
    ------
    ValueError
        If its run failed, a cell holds an error or was not executed, or an image has no alternative text
        (cell metadata ``mystnb.image.alt``). The message names the notebook and every such cell.
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
