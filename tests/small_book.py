"""Small executed notebooks, clones of a few pages, and what a browser would show of a page of the book."""

import base64
import io
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

import leamvd

ROOT = Path(leamvd.__file__).parent.parent
SPAN = re.compile(r'<span data-myst="([^"]*)">(.*?)</span>', re.DOTALL)


def drawn(name: str, alt: str = "A black square.", caption: str = "Weights of the *digits*.") -> NotebookNode:
    """Return a cell that shows a figure."""
    png = io.BytesIO()
    Image.new("RGB", (8, 6)).save(png, "PNG")
    picture = new_output("display_data", data={"image/png": base64.b64encode(png.getvalue()).decode()})
    shown = {"figure": {"caption": caption, "name": name}, "image": {"alt": alt}}
    return new_code_cell("draw()", execution_count=1, outputs=[picture], metadata={"mystnb": shown})


def glued(key: str, text: str) -> NotebookNode:
    """Return a cell that lets pages paste a value, given by its representation."""
    mime = "application/papermill.record/"
    metadata = {"scrapbook": {"name": key, "mime_prefix": mime}}
    output = new_output("display_data", data={f"{mime}text/plain": text, f"{mime}text/html": "<p>"}, metadata=metadata)
    return new_code_cell("glue()", execution_count=2, outputs=[output], metadata={"tags": ["remove-cell"]})


def notebook(cells: list[NotebookNode], section: str = "esd", **metadata: object) -> NotebookNode:
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "leamvd": {"section": section}, **metadata})


def clone(
    folder: Path, patch: pytest.MonkeyPatch, index: str, pages: dict[str, str | NotebookNode], **config: str
) -> None:
    """Make a clone of a first page and others, from which the book is rendered; config are lines of `_config.yml`."""
    (folder / "book").mkdir(parents=True)
    (folder / "notebooks").mkdir()
    for name in ("_config.yml", "book/sphinx_extension.py", "book/references.bib"):
        shutil.copy(ROOT / name, folder / name)
    shutil.copytree(ROOT / "book" / "static", folder / "book" / "static")
    text = (ROOT / "_config.yml").read_text(encoding="utf-8")
    for name, value in config.items():
        text, count = re.subn(rf"(?m)^( *{name}): .*", rf'\1: "{value}"', text)
        assert count == 1, name
    (folder / "_config.yml").write_text(text, encoding="utf-8")
    chapters = ", ".join(f"{{file: {name}}}" for name in pages)
    (folder / "_toc.yml").write_text(f"{{format: jb-book, root: book/index, chapters: [{chapters}]}}")
    for name, page in {"book/index": index, **pages}.items():
        if isinstance(page, str):
            (folder / f"{name}.md").write_text(page, encoding="utf-8")
        else:
            nbformat.write(page, folder / f"{name}.ipynb")
    patch.setattr(leamvd, "__file__", str(folder / "leamvd" / "__init__.py"))


def sentences(content: dict[str, Any]) -> str:
    """Return the Markdown of a notebook."""
    return "\n\n".join("".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "markdown")


def shown(text: str) -> str:
    """Return what Jupyter makes of Markdown, which shows no attributes."""
    return SPAN.sub(r"\2", text)


class Page:
    """What a browser would follow and show of one page."""

    def __init__(self, path: Path) -> None:
        self.path, self.html = path, path.read_text(encoding="utf-8")
        soup = BeautifulSoup(self.html, "html.parser")
        self.text, self.folded = soup.text, "".join(tag.text for tag in soup("details"))
        self.scripts = "".join(tag.string or "" for tag in soup(["script", "style"]))
        self.ids = {tag["id"] for tag in soup(id=True)}
        self.links = [tag["href"] for tag in soup("a", href=True)]
        self.images = soup("img")
        shown = [tag["href"] for tag in soup("link") if {"stylesheet", "preload", "icon"} & set(tag.get("rel", ()))]
        self.loads = shown + [tag["src"] for tag in soup(src=True)]

    def target(self, link: str) -> tuple[Path, str]:
        parts = urlsplit(link)
        path = (self.path.parent / unquote(parts.path)).resolve() if parts.path else self.path
        return path, unquote(parts.fragment)
