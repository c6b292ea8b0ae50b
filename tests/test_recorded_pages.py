"""The pages about what is recorded are what scripts make of its files and of the notebooks."""

import re
import runpy
from pathlib import Path

import pytest

from leamvd_paper.studies import results
from leamvd_paper.studies.words import COLUMNS, described

ROOT = Path(__file__).parents[1]
MADE = runpy.run_path(str(ROOT / "book" / "recorded.py"))
FOUND = runpy.run_path(str(ROOT / "book" / "recorded_figures.py"))
READ_BY = MADE["READ_BY"]
ENTRIES = MADE["entries"]()
FILES = {f"{one.name}/{table}" for one in ENTRIES for table in one.tables}


def test_both_pages_are_what_the_script_makes() -> None:
    for path, make in ((MADE["README"], MADE["readme"]), (MADE["PAGE"], MADE["page"])):
        assert path.read_text(encoding="utf-8") == make(ENTRIES), "python book/recorded.py"


def test_what_is_said_of_names_tables_and_columns_is_there_and_nothing_else() -> None:
    assert MADE["NAMES"].keys() == {one.name for one in ENTRIES}
    assert MADE["TABLES"].keys() == {table for one in ENTRIES for table in one.tables}
    there = set()
    for one in ENTRIES:
        for table, rows in one.tables.items():
            there |= {*rows, *(f"{table}.{column}" for column in rows)}
    assert COLUMNS.keys() <= there


@pytest.mark.parametrize(
    ("column", "table", "words"),
    [
        ("seconds", "runs", ("time so far", "s")),
        ("seconds", "training", ("time of an epoch", "s")),
        ("n_hidden", "runs", ("hidden units", "")),
        ("population_size", "optimizers", ("individuals in a population", "")),
    ],
)
def test_a_column_has_words_and_a_unit(column: str, table: str, words: tuple[str, str]) -> None:
    assert described(column, table) == words


def test_each_figure_is_drawn_by_one_page_from_tables_that_it_reads() -> None:
    drawn = []
    for page, read in READ_BY.items():
        assert {*read["reads"]} <= FILES
        for figure, keys in read["figures"].items():
            assert {*keys} <= {*read["reads"]}, figure
            if page != "first_page":
                drawn.append(figure)
    accepted = {path.stem for path in (ROOT / "tests" / "figures" / "recorded").glob("*.csv")}
    assert sorted(name for name in drawn if not name.startswith("timing-")) == sorted(accepted)


def test_pages_read_what_their_cells_name() -> None:
    for path in results.NOTEBOOKS.glob("*.ipynb"):
        reads = {key.partition("/")[0] for key in READ_BY[path.stem]["reads"]}
        text = "\n".join(FOUND["cells_of"](path))
        assert {*re.findall(r'read_recorded\("(\w+)"', text)} <= reads, "book/recorded_figures.py"


def test_the_figures_of_a_page_move_with_the_tables_that_are_said_to_feed_them() -> None:
    name = "11_minima_and_networks"  # which takes seconds
    cells = FOUND["leading_to_figures"](FOUND["cells_of"](results.NOTEBOOKS / f"{name}.ipynb"))
    tables = FOUND["Tables"]()

    def draw() -> None:
        FOUND["run"](cells)

    assert FOUND["sources"](draw, draw, tables)["figures"] == READ_BY[name]["figures"]
