"""Render the book: check the executed notebooks, stage the pages, build them with warnings as
errors.

Nothing is executed here: papermill runs the notebooks, and this shows what they hold. Needs the
extra ``leamvd-paper[book]``.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import leamvd_paper
from leamvd._support import checks
from leamvd_paper.book.sections import ABOUT, latest

FOLDED = "## All numbers"  # the heading of what a page ends with, for those who look numbers up


def render(
    results: Path | None = None,
    output: Path = Path("_build/book"),
    *,
    repository: str = "",
    baseurl: str = "",
) -> Path:
    """Build the book from a clone's pages and executed notebooks, and return the page to open.

    The latest runs in the folder `results`, of one or all sections, take the place of the clone's
    own notebooks. The pages are staged and built fresh, in a hidden folder beside `output`, so
    neither hidden folders of the clone nor an earlier build's pages can matter. An earlier book is
    replaced when the new one is whole, by renaming. The addresses of the `repository` and of the
    book, `baseurl`, take the place of those in _config.yml.
    """
    sources = Path(leamvd_paper.__file__).resolve().parents[2]
    if not (sources / "_config.yml").is_file():
        raise FileNotFoundError(
            "`leamvd book` needs the pages of a clone, from which leamvd is installed by `pip"
            f" install -e . -e 'notebooks[book]'`: there is no _config.yml in {sources}"
        )
    checks.needs(
        "rendering the book",
        "leamvd-paper[book]",
        "jupyter_book",
        "nbformat",
        "sphinx",
        "sphinx_external_toc",
        "yaml",
    )
    if output.exists() and any(output.iterdir()) and not (output / ".buildinfo").is_file():
        raise FileExistsError(
            f"output must be a new or empty folder, or an earlier book; {output} holds other files"
        )
    notebooks = _notebooks(sources, results)
    for path in notebooks:
        check(path)
    place = output.resolve()
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as work:
        stage = Path(work, "stage")
        _stage_pages(sources, stage)
        _address(stage / "_config.yml", repository, baseurl)
        built = _build(stage, notebooks, Path(work))
        if place.exists():
            place.rename(Path(work, "earlier"))
        built.rename(place)
    return output / "index.html"


def _notebooks(sources: Path, results: Path | None) -> list[Path]:
    """Return the notebooks of the table of contents, or in their places the latest runs in a folder
    of results.
    """
    from sphinx_external_toc.parsing import parse_toc_yaml

    ours = []
    for page in parse_toc_yaml(sources / "_toc.yml"):
        if page.startswith("notebooks/"):
            ours.append(sources / f"{page}.ipynb")
    if results is None:
        return ours
    shown = []
    for path in ours:
        run = latest(results, path.stem)
        if run is None:
            shown.append(path)
        else:
            shown.append(run / path.name)
    if shown == ours:
        stems = ", ".join(path.stem for path in ours)
        raise FileNotFoundError(f"results must hold runs of {stems}, got {results}")
    return shown


def _build(stage: Path, notebooks: list[Path], work: Path) -> Path:
    """Build the staged pages and notebooks in a folder of their own; return where the book is in
    it.
    """
    for path in notebooks:
        _stage(path, stage)
    # Sphinx leaves reports there
    environment = os.environ | dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(stage))
    command = [
        sys.executable,
        "-c",
        "from jupyter_book.cli.main import main; main()",
        "build",
        "-q",
        "-W",
        "-n",
        "--keep-going",
        "--path-output",
        str(work / "built"),
        str(stage),
    ]
    run = subprocess.run(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if run.returncode:
        # without colors
        raise RuntimeError("the book was not built:\n" + re.sub(r"\x1b\[[0-9;]*m", "", run.stdout))
    built = work / "built" / "_build" / "html"
    for path in notebooks:  # which a reader downloads from its page, for Jupyter
        shutil.copy(path, built / "_sources" / "notebooks")
    return built


def _stage_pages(sources: Path, stage: Path) -> None:
    """Copy the pages, what they are built by, the recorded figures' numbers, and the code shown."""
    shutil.copytree(sources / "book", stage / "book")
    shutil.copytree(sources / "tests" / "figures" / "recorded", stage / "figures" / "recorded")
    for path in (sources / "_config.yml", sources / "_toc.yml"):
        shutil.copy(path, stage)
    code = Path("notebooks", "leamvd_paper", "studies")
    (stage / code).mkdir(parents=True)
    shutil.copy(sources / code / "in_numpy.py", stage / code)


def _address(config: Path, repository: str, baseurl: str) -> None:
    """Write the addresses that are given into the book's settings."""
    import yaml

    settings = yaml.safe_load(config.read_text(encoding="utf-8"))
    if repository:
        settings["repository"]["url"] = repository
    if baseurl:
        settings["html"]["baseurl"] = baseurl
    config.write_text(yaml.safe_dump(settings), encoding="utf-8")


def _stage(notebook: Path, stage: Path) -> None:
    """Copy a notebook, and with a reader's own run what it was and the numbers of its figures."""
    shutil.copy(notebook, stage / "notebooks")
    run = notebook.with_name(ABOUT)
    if run.is_file():
        shutil.copy(run, stage / "notebooks" / f"{notebook.stem}.json")
        shutil.copytree(run.with_name("figures"), stage / "figures" / notebook.stem)


def check(notebook: Path) -> None:
    """Refuse a notebook that a reader should not be shown, with all that is wrong in it.

    That is where a cell holds an error or was not executed, or an image has no alternative text.
    """
    content = json.loads(notebook.read_text(encoding="utf-8"))
    problems = []
    for number, cell in enumerate(content["cells"], start=1):
        if cell["cell_type"] != "code" or not "".join(cell["source"]).strip():
            continue
        if cell["execution_count"] is None:
            problems.append(f"cell {number} was not executed")
        drawn = False
        for output in cell["outputs"]:
            if output["output_type"] == "error":
                problems.append(f"cell {number} failed with {output['ename']}: {output['evalue']}")
            drawn |= any(kind.startswith("image/") for kind in output.get("data", ()))
        if drawn:
            image = cell["metadata"].get("mystnb", {}).get("image", {})
            if not str(image.get("alt", "")).strip():
                problems.append(
                    f"cell {number} shows an image without alternative text (metadata"
                    " mystnb.image.alt)"
                )
    if problems:
        raise ValueError(f"{notebook} cannot be shown: {'; '.join(problems)}")
