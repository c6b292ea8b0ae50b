"""What a reader of the book has to get through, page by page: `python tests/book_counts.py`.

Words are what stands in Markdown cells and in pages, with addresses of links. Tables and
figures are outputs of cells that are shown; those below the heading "All numbers" are folded. A bar
is a cell whose code is folded and not taken out, a printed line an output of text in sight, but for
cells whose code is shown. A caption is the Markdown in italics right below a cell.
"""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from leamvd_paper.book.render import FOLDED

ROOT = Path(__file__).parent.parent
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]*")
NOT_COUNTED = {"rules", "api", "recorded"}  # rules, and what code makes
NO_CODE = {"remove-input", "remove-cell"}


@dataclasses.dataclass
class Counts:
    """Counts of a page."""

    words: int = 0
    tables: int = 0  # in sight
    folded: int = 0
    figures: int = 0
    uncaptioned: int = 0  # tables and figures
    bars: int = 0
    printed: int = 0
    by_hand: int = 0  # cells whose code is shown


def counted() -> dict[str, Counts]:
    """Return the counts of each page of the book."""
    found = {}
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        found[path.stem] = of_notebook(json.loads(path.read_text(encoding="utf-8"))["cells"])
    for path in sorted((ROOT / "book").glob("*.md")):
        if path.stem not in NOT_COUNTED:
            found[path.stem] = Counts(words=len(WORD.findall(path.read_text(encoding="utf-8"))))
    return found


def of_notebook(cells: list[dict[str, Any]]) -> Counts:
    """Return the counts of a notebook's cells."""
    page = Counts()
    folded = False
    for cell, below in zip(cells, [*cells[1:], None], strict=True):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            folded |= FOLDED in source.splitlines()
            page.words += len(WORD.findall(source))
            continue
        tags = set(cell["metadata"].get("tags", []))
        if tags & {"parameters", "remove-cell"}:
            continue
        shown_code = not tags & {*NO_CODE, "hide-input", "hide-cell"}
        page.by_hand += shown_code
        page.bars += bool(tags & {"hide-input", "hide-cell", "hide-output"})
        tables, figures, printed = _outputs(cell["outputs"])
        if folded:
            page.folded += tables
        else:
            page.tables += tables
        page.figures += figures
        if not folded and not shown_code:
            page.printed += printed
        caption = below is not None and "".join(below["source"]).startswith("*")
        page.uncaptioned += bool(tables + figures) and not (caption or folded)
    return page


def _outputs(outputs: list[dict[str, Any]]) -> tuple[int, int, int]:
    """Return how many tables, figures and printed texts outputs have."""
    tables = 0
    figures = 0
    printed = 0
    for output in outputs:
        data = output.get("data", {})
        tables += "".join(data.get("text/html", "")).count("<table")
        figures += any(kind.startswith("image/") for kind in data)
        printed += output["output_type"] == "stream"
    return tables, figures, printed


def main() -> None:
    """Print the counts of each page, and their sums."""
    pages = counted()
    names = [field.name for field in dataclasses.fields(Counts)]
    print(f"{'':28}", *(f"{name:>11}" for name in names))
    for page, counts in pages.items():
        print(f"{page:28}", *(f"{getattr(counts, name):11,}" for name in names))
    sums = (sum(getattr(counts, name) for counts in pages.values()) for name in names)
    print(f"{'all':28}", *(f"{number:11,}" for number in sums))


if __name__ == "__main__":
    main()
