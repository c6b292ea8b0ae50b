"""Write into the notebooks what Jupyter shows for their numbers, links and references: `make resolve`.

`leamvd.book.pasted` says how both stand there. `leamvd reproduce` writes the numbers of its run; all else follows from
the pages of the book, which are here alone.
"""

import json
import posixpath
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pybtex.database import parse_file
from sphinx_external_toc.parsing import parse_toc_yaml

from leamvd.book import pasted

ROOT = Path(__file__).parent.parent

BIBLIOGRAPHY, GLOSSARY = "book/references.bib", "book/glossary.md"

KINDS = {"eq": "({})", "fig": "Fig. {}", "tab": "Table {}"}
"""What the book calls an equation, a figure and a table, by the first word of their labels."""

LABEL = re.compile(rf"^(?:\$\$ \(|:name: )(({'|'.join(KINDS)})-[\w-]+)", re.MULTILINE)
TARGET = re.compile(r"^[ *-]*\(([\w-]+)\)=$", re.MULTILINE)
TABLE = re.compile(r"^(:::\{table\}) (.+)\n(:name: ([\w-]+)(?:\n:[\w-]+: .+)*)", re.MULTILINE)


class Place(NamedTuple):
    """The page that a label is on, and what the book calls it there: nothing where only a page is linked."""

    page: str
    name: str = ""


class Book:
    """The notebooks of a clone as the book takes them, and what their references lead to."""

    def __init__(self, root: Path) -> None:
        pages = list(parse_toc_yaml(root / "_toc.yml"))
        files = {page: root / f"{page}.ipynb" for page in pages if page.startswith("notebooks/")}
        self.notebooks = {page: json.loads(path.read_text(encoding="utf-8")) for page, path in files.items()}
        for notebook in self.notebooks.values():
            pasted.restore(notebook)
        self.texts = {page: self._text(root, page) for page in pages}
        self.values = {Path(page).name: pasted.read(notebook) for page, notebook in self.notebooks.items()}
        self.bibliography = parse_file(root / BIBLIOGRAPHY).entries
        self.places = self._places()

    def _text(self, root: Path, page: str) -> str:
        """Return a page's Markdown; in a notebook's, lines with their names stand for its figures."""
        if page not in self.notebooks:
            return (root / f"{page}.md").read_text(encoding="utf-8")
        cells = self.notebooks[page]["cells"]
        return "\n\n".join(
            "".join(cell["source"]) if cell["cell_type"] == "markdown" else f":name: {_figure(cell).get('name', '')}"
            for cell in cells
        )

    def _places(self) -> dict[str, Place]:
        """Return where labels are; what they name is counted in each notebook, and over all other pages together."""
        sections = {page: f"{number}." for number, page in enumerate(self.notebooks, start=1)}
        counts, places = Counter[tuple[str, str]](), {}
        for page, text in self.texts.items():
            section = sections.get(page, "")
            for label, kind in LABEL.findall(text):
                counts[section, kind] += 1
                places[label] = Place(page, KINDS[kind].format(f"{section}{counts[section, kind]}"))
            places |= dict.fromkeys(TARGET.findall(text), Place(page))
        return places

    def resolved(self, page: str) -> dict[str, Any]:
        """Return a notebook with what Jupyter shows, and a cell below each figure that has its caption."""
        show = partial(self._show, page)
        cells = []
        for cell in self.notebooks[page]["cells"]:
            cells.append(cell)
            if figure := _figure(cell):
                title = self._title(figure["name"])
                caption = {"id": figure["name"], "metadata": {"tags": [pasted.CAPTION]}}
                cells.append({"cell_type": "markdown", **caption, "source": [f"{title} {figure['caption']}"]})
        notebook = self.notebooks[page] | {"cells": cells}
        pasted.rewrite(notebook, lambda text: TABLE.sub(self._table, pasted.resolve(text, show)))
        return notebook

    def _title(self, label: str) -> str:
        return f"{_anchor(label)}**{self.places[label].name}.**"

    def _table(self, found: re.Match[str]) -> str:
        """Return the first lines of a table: its number, its caption, and its options, which Jupyter does not show."""
        directive, caption, options, label = found.groups()
        return f"{pasted.span(directive, self._title(label))} {caption}\n{pasted.span(options, '')}"

    def _show(self, page: str, myst: str) -> str:
        """Return what Jupyter shows for a piece of MyST on a page; a reference that leads nowhere is a KeyError."""
        if (number := pasted.value(myst, self.values, Path(page).name)) is not None:
            return number
        if role := re.fullmatch(r"\{([\w:]+)\}`(.+)`", myst, re.DOTALL):
            return self._reference(page, *role.groups())
        if link := re.fullmatch(r"\[(.*)\]\((.+)\)", myst, re.DOTALL):
            words, target = link.groups()
            return (
                f"[{words or self._heading(target)}]({target if target[0] != '#' else self._address(page, target[1:])})"
            )
        return _anchor(label := myst.strip("()")) + self.places[label].name if myst != ":::" else ""

    def _reference(self, page: str, role: str, content: str) -> str:
        """Return what Jupyter shows for a role that refers to something."""
        match role:
            case "numref" | "eq":
                return f"[{self.places[content].name}]({self._address(page, content)})"
            case "term":
                return f"[{content.partition(' <')[0]}](../{GLOSSARY})"
            case "cite:p":
                return f"({'; '.join(self._citation('{}, {}', key) for key in content.split(','))})"
            case "cite:t":
                return self._citation("{} ({})", content)
        raise KeyError(role)

    def _citation(self, form: str, key: str) -> str:
        entry = self.bibliography[key]
        authors = [" ".join(map(str, person.rich_last_names)) for person in entry.persons["author"]]
        names = " and ".join(authors) if len(authors) < 3 else f"{authors[0]} et al."
        return f"[{form.format(names, entry.fields['year'])}](../{BIBLIOGRAPHY})"

    def _address(self, page: str, label: str) -> str:
        """Return where a link on a page leads to find a label."""
        other = self.places[label].page
        ending = ".ipynb" if other in self.notebooks else ".md"
        return f"#{label}" if other == page else f"{posixpath.relpath(other, posixpath.dirname(page))}{ending}#{label}"

    def _heading(self, target: str) -> str:
        """Return the title of a page, given its address on a notebook's page."""
        text = self.texts[posixpath.normpath(f"notebooks/{target}").rpartition(".")[0]]
        return re.findall(r"^# (.+)$", text, re.MULTILINE)[0]


def _anchor(label: str) -> str:
    return f'<a id="{label}"></a>'


def _figure(cell: dict[str, Any]) -> dict[str, str]:
    """Return name and caption of the figure that a cell shows; nothing of another cell."""
    found: dict[str, str] = cell["metadata"].get("mystnb", {}).get("figure", {})
    return found


def main() -> None:
    """Resolve every notebook of the clone."""
    book = Book(ROOT)
    for page in book.notebooks:
        text = json.dumps(book.resolved(page), indent=1, ensure_ascii=False) + "\n"
        (ROOT / f"{page}.ipynb").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
