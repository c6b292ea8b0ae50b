"""What a reader of the book reads: its pages and the notebooks that ship, by the stems of their files."""

import json
from pathlib import Path

import nbformat

from leamvd.book import pasted

ROOT = Path(__file__).parent.parent
README, CONTRIBUTING = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md"))
PAGES = {path.stem: path.read_text(encoding="utf-8") for path in sorted((ROOT / "book").glob("*.md"))}


def _notebook(path: Path) -> nbformat.NotebookNode:
    content = json.loads(path.read_text(encoding="utf-8"))
    pasted.restore(content)
    return nbformat.reads(json.dumps(content), 4)


NOTEBOOKS = {path.stem: _notebook(path) for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}


def markdown(stem: str) -> str:
    """Return the prose of a page or of a notebook."""
    if stem in PAGES:
        return PAGES[stem]
    return "\n\n".join(cell.source for cell in NOTEBOOKS[stem].cells if cell.cell_type == "markdown")


def code_cells(stem: str) -> list[nbformat.NotebookNode]:
    return [cell for cell in NOTEBOOKS[stem].cells if cell.cell_type == "code"]


def figures(stem: str) -> dict[str, nbformat.NotebookNode]:
    """Return what the cells of a notebook that show a figure say of it, by its name and in order: caption and image."""
    shown = [cell.metadata.mystnb for cell in code_cells(stem) if "figure" in cell.metadata.get("mystnb", {})]
    return {myst.figure.name: myst for myst in shown}
