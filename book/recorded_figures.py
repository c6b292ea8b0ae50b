"""Which recorded tables feed which figures, found by trying: `python book/recorded_figures.py
[NOTEBOOK]...`.

A table feeds a figure whose numbers move when the table's do. Of each notebook, and of the first
page's script, what leads to figures is run once for each table that it reads. That takes ten
minutes, so what is found is kept in ``recorded_figures.json``.
"""

import ast
import io
import json
import runpy
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from leamvd_paper.studies import plots, results

BOOK = Path(__file__).parent
FILE = BOOK / "recorded_figures.json"
FIRST_PAGE = "first_page"

# what names rows by numbers that are not whole
LABELS = ["c", "final_momentum", "learning_rate", "rate", "scale", "sigma", "sigma0"]

Key = tuple[str, str]  # what is recorded under a name, and one of its tables


def cells_of(notebook: Path) -> list[str]:
    """Return the code of a notebook's cells."""
    sources = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            sources.append("".join(cell["source"]))
    return sources


def leading_to_figures(cells: list[str]) -> list[str]:
    """Return the cells that save figures, and those that make what these need."""
    chosen: list[str] = []
    needed: set[str] = set()
    for source in reversed(cells):
        nodes = [*ast.walk(ast.parse(source))]
        names = [node for node in nodes if isinstance(node, ast.Name)]
        loaded = {node.id for node in names if isinstance(node.ctx, ast.Load)}
        made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
        # rows["moved"] = ...
        changed = {line.strip().partition("[")[0] for line in source.splitlines()}
        if "plots.save(" in source or "import " in source or needed & (made | changed):
            chosen.insert(0, source)
            needed |= loaded
    return chosen


def run(cells: list[str]) -> None:
    """Run cells; one that fails is followed by the next one."""
    known: dict[str, Any] = {"display": print}
    for source in cells:
        try:
            exec(compile(source, "cell", "exec"), known)
        except Exception as error:  # numbers that no run has may have no answer
            print(repr(error), file=sys.stderr)


def draw_first_page() -> None:
    """Draw the figures of the first page."""
    made = runpy.run_path(str(BOOK / "first_page.py"))
    on_map = made["settings_map"].recorded()
    plots.save(made["answers"](on_map, made["parts"](on_map)), "map")
    plots.save(made["figure"](made["data"]()), "first_page")


@contextmanager
def watched(read: Callable[..., pd.DataFrame]) -> Iterator[dict[str, str]]:
    """Let all modules `read` what is recorded in this way; yield the numbers of figures saved."""
    drawn: dict[str, str] = {}

    def kept(figure: Any, name: str, *_folder: object) -> None:
        drawn[name] = plots.numbers(figure).to_csv(index=False, float_format="%.8g")
        plots.plt.close(figure)

    before = results.read_recorded
    users = []
    for module in sys.modules.values():
        if getattr(module, "read_recorded", None) is before:
            users.append(module)
    save = plots.save
    plots.save = kept
    for user in users:
        vars(user)["read_recorded"] = read
    try:
        yield drawn
    finally:
        plots.save = save
        for user in users:
            vars(user)["read_recorded"] = before


class Tables:
    """What is recorded, each file read once; numbers of one table may be moved."""

    def __init__(self) -> None:
        self.kept: dict[Key, pd.DataFrame] = {}
        self.asked: set[Key] = set()
        self.moved: Key | None = None
        self.read_file = results.read_recorded

    def read(self, name: str, table: str = "runs") -> pd.DataFrame:
        """Return a table as `results.read_recorded` does."""
        key = (name, table)
        self.asked.add(key)
        if key not in self.kept:
            self.kept[key] = self.read_file(name, table)
        rows = self.kept[key].copy()
        return self._moved(rows) if key == self.moved else rows

    def _moved(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return rows whose measured numbers are others, by factors about one; where there are
        none, some of the rows.
        """
        floats = rows.select_dtypes("float")
        measured = [*floats.columns.difference(LABELS)]
        if "gray" in rows:
            return rows.assign(gray=255 - rows["gray"])
        if not measured:
            return rows[rows.index % 3 > 0].reset_index(drop=True)
        factors = np.random.default_rng(1).lognormal(0, 1, (len(rows), len(measured)))
        return rows.assign(**(rows[measured] * factors))


def sources(whole: Callable[[], None], draw: Callable[[], None], tables: Tables) -> dict[str, Any]:
    """Return the tables that a page reads, and those that feed each figure that it draws."""
    tables.moved = None
    tables.asked.clear()
    with watched(tables.read) as usual:
        whole()
    reads = sorted(tables.asked)
    tables.asked.clear()
    with watched(tables.read):
        draw()
    found: dict[str, list[str]] = {name: [] for name in usual}
    for key in sorted(tables.asked):
        tables.moved = key
        with watched(tables.read) as drawn:
            draw()
        for name, numbers in usual.items():
            if drawn.get(name) != numbers:
                found[name].append("/".join(key))
    return {"reads": ["/".join(key) for key in reads], "figures": found}


def main() -> None:
    """Find what the pages that are named read, by default all of them."""
    warnings.simplefilter("ignore")
    found = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    tables = Tables()
    pages = [path.stem for path in results.NOTEBOOKS.glob("*.ipynb")]
    for name in sys.argv[1:] or [*sorted(pages), FIRST_PAGE]:
        whole = draw = draw_first_page
        if name != FIRST_PAGE:
            cells = cells_of(results.NOTEBOOKS / f"{name}.ipynb")
            whole = partial(run, cells)
            draw = partial(run, leading_to_figures(cells))
        print(name, flush=True)
        with redirect_stdout(io.StringIO()):
            found[name] = sources(whole, draw, tables)
        pages_in_order = dict(sorted(found.items()))
        text = json.dumps(pages_in_order, indent=1)
        FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
