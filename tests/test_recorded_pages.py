"""The pages about what is recorded are what scripts make of its files and of the notebooks."""

import re
import runpy
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from leamvd_paper.studies import plots, results
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


def test_a_page_finds_the_same_tables_after_another_page() -> None:
    tables = FOUND["Tables"]()

    def draw() -> None:
        rows = results.read_recorded("local_minima", "rbms")
        figure, ((ax,),) = plots.panels(1, 1, height=2)
        ax.plot(rows.select_dtypes("float").iloc[:, -1].dropna(), label="numbers")
        plots.save(figure, "one")

    first, second = (FOUND["sources"](draw, draw, tables) for _ in range(2))
    assert first == second
    assert first == {"reads": ["local_minima/rbms"], "figures": {"one": ["local_minima/rbms"]}}


# ---- what the script says, of entries made by hand


def entry(name: str, **more: Any) -> Any:
    """Return an entry as the script makes it, of one table."""
    made = object.__new__(MADE["Entry"])
    runs = pd.DataFrame({"seed": range(1234), "seconds": 1.0})
    known = {"settings": {}, "commit": "0123456789ab", "processor": "zen"}
    usual = {"name": name, "words": "what it is", "provenance": known, "size": 1.234}
    vars(made).update(usual | {"minutes": "1.5", "tables": {"runs": runs}, "pages": ["01_esd"]})
    vars(made).update(more)
    return made


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what puts others in the place of the script's own names."""

    def put(**others: Any) -> None:
        for name, value in others.items():
            monkeypatch.setitem(MADE["about"].__globals__, name, value)

    return put


def test_an_entry_has_size_time_and_tables_of_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, names: Callable[..., None]
) -> None:
    (tmp_path / "one").mkdir()
    for file, size in (("runs.csv", 1_000_000), ("b.csv.xz", 500_000), ("provenance.json", 34_000)):
        (tmp_path / "one" / file).write_bytes(b" " * size)
    monkeypatch.setattr(results, "ARCHIVE", tmp_path)
    for hours, minutes in ((0.025, "1.5"), (30.0, "1,800.0"), (None, "–"), (0.0, "–")):
        names(
            NAMES={"one": "words"},
            provenance=lambda name: {"sha256": {"runs.csv": "", "b.csv.xz": ""}},
            read_recorded=lambda name, table: f"{name}/{table}",
            verify=SimpleNamespace(processor_hours=lambda name, hours=hours: hours),
            READ_BY={},
        )
        (made,) = MADE["entries"]()
        assert (made.name, made.words, made.minutes) == ("one", "words", minutes)
        assert made.size == pytest.approx(1.534)
        assert made.tables == {"b": "one/b", "runs": "one/runs"}


def test_pages_and_figures_of_a_name_are_those_that_read_its_tables(
    names: Callable[..., None],
) -> None:
    read = {
        "01_esd": {"reads": ["two/runs"], "figures": {"a": ["two/runs"]}},
        "03_mnist_7x7": {"reads": ["mnist_7x7/runs"], "figures": {"b": ["mnist_7x7/runs"]}},
        "first_page": {
            "reads": ["mnist_7x7/runs", "two/runs"],
            "figures": {"c": ["mnist_7x7/pictures", "two/runs"], "d": ["mnist_7x7/runs"]},
        },
        "02_directions": {"reads": ["mnist_7x7/pictures", "mnist_7x7_more/runs"], "figures": {}},
    }
    names(READ_BY=read)
    pages = MADE["_pages"]
    assert pages("mnist_7x7") == ["03_mnist_7x7", "02_directions", "first_page"], "its own first"
    assert pages("two") == ["01_esd", "first_page"]
    assert pages("linear_cost") == ["05_linear_cost"], "to which it belongs, if nothing reads it"
    assert pages("preset_development") != []
    assert pages("nothing") == []
    assert entry("mnist_7x7").feeds("runs") == ["b", "d"]
    assert entry("mnist_7x7").feeds("pictures") == ["c"]
    assert entry("mnist_7x7").feeds("more") == []


def test_rows_of_an_overview_lead_to_pages_and_headings() -> None:
    all_entries = [
        entry("one"),
        entry("two", pages=["first_page", "01_esd"], minutes="–", size=0.5),
    ]
    here = MADE["overview"](all_entries, "../../", here=True)[2:]
    assert here == [
        "| [`one`](#one) | what it is | [esd](../../notebooks/01_esd.ipynb) | 1.5 | 1.23 |",
        "| [`two`](#two) | what it is | [the first page](../../book/index.md) | – | 0.50 |",
    ]
    there = MADE["overview"](all_entries, "../", here=False)
    assert there[2].startswith("| `one` | what it is | [esd](../notebooks/01_esd.ipynb) |")
    page = MADE["page"](all_entries).splitlines()
    assert page[page.index(":class: recorded stacked") + 2 :][: len(there)] == there


def test_columns_are_told_apart_where_they_are_something_else() -> None:
    runs = pd.DataFrame(columns=["seconds", "seed"])
    training = pd.DataFrame(columns=["seconds"])
    all_entries = [
        entry("one", tables={"training": training, "runs": runs}),
        entry("two", tables={"runs": runs}),
    ]
    lines = MADE["columns"](all_entries)[2:]
    (words, unit) = described("seed", "runs")
    assert lines == [
        "| `seconds`, in training | time of an epoch | s |",
        "| `seconds`, in runs | time so far | s |",
        f"| `seed` | {words} | {unit} |",
    ]


def test_what_is_said_of_a_name_is_of_its_provenance_and_its_tables(
    names: Callable[..., None],
) -> None:
    names(READ_BY={"01_esd": {"reads": [], "figures": {"a": ["mnist_7x7/runs"], "b": []}}})
    first, _, what, _, *lines = MADE["about"](entry("mnist_7x7", pages=["01_esd", "first_page"]))
    assert (first, what) == ("### mnist_7x7", "What it is.")
    esd, index = "[esd](../../notebooks/01_esd.ipynb)", "[the first page](../../book/index.md)"
    assert lines == [
        f"- section: {esd}, {index}",
        "- command: `leamvd record mnist_7x7`; 1.5 minutes, 1.23 MB",
        "- computed at commit `0123456789ab`, processor: zen",
        "- **runs**: a row for each iteration or mark of each run, some left out; 1,234 rows",
        "  - columns: `seed`, `seconds`",
        "  - figures: `a`",
        "",
    ]
    known = {"commit": "1", "processor": "unknown", "note": "by hand", "settings": {}}
    lines = MADE["about"](entry("gone", minutes="–", provenance=known))
    assert "- command: none: it cannot be computed again; time not recorded, 1.23 MB" in lines
    assert {"- note: by hand", "  - figures: none"} <= {*lines}
    known["settings"] = {"program": "bench.py", "arguments": "--all"}
    lines = MADE["about"](entry("mnist_7x7", provenance=known))
    assert "- command: `python bench.py --all`; 1.5 minutes, 1.23 MB" in lines


def test_the_readme_counts_names_and_tables_and_their_bytes() -> None:
    runs = pd.DataFrame({"seed": [1]})
    all_entries = [entry("one", tables={"runs": runs, "pairs": runs}), entry("two", size=2.5)]
    text = MADE["readme"](all_entries)
    assert "3 tables under 2 names, 3.7 MB." in text
    for part in (MADE["overview"](all_entries, "../../", here=True), MADE["about"](all_entries[1])):
        assert "\n".join(part) in text


def test_sizes_of_images_that_a_name_tells_are_those_of_its_runs() -> None:
    """Words such as "the same at 28×28 pixels" tell them by themselves."""
    compared = 0
    for one in ENTRIES:
        told = {*re.findall(r"(\d+)×\1 pixels", one.words)}
        for rows in one.tables.values():
            if told and {"n_visible", "layer"} <= {*rows}:
                n_visible = rows.loc[rows["layer"] == 1, "n_visible"]
                assert {str(round(n**0.5)) for n in n_visible} <= told, one.name
                compared += len(n_visible) > 0
        named = re.findall(r"(\d+)x\1", one.name)
        assert {*named} <= told or not (named and told), one.name
    assert compared > 10


# ---- which tables feed which figures


def test_a_table_feeds_the_figures_that_move_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = pd.DataFrame({"seed": range(9), "sigma": 0.5, "error": 2.0})
    known = {("one", "runs"): runs, ("one", "words"): runs[["seed"]], ("two", "runs"): runs}
    monkeypatch.setattr(results, "read_recorded", lambda name, table="runs": known[name, table])

    def draw() -> None:
        for name, column in (("a", "error"), ("b", "sigma")):
            figure, ax = plots.plt.subplots()
            ax.plot(results.read_recorded("one")[column])
            plots.save(figure, name)
        figure, ax = plots.plt.subplots()
        ax.plot(results.read_recorded("one", "words")["seed"])
        plots.save(figure, "c")

    def whole() -> None:
        results.read_recorded("two")
        draw()

    save = plots.save
    found = FOUND["sources"](whole, draw, FOUND["Tables"]())
    assert found == {
        "reads": ["one/runs", "one/words", "two/runs"],
        "figures": {"a": ["one/runs"], "b": [], "c": ["one/words"]},
    }
    assert plots.save is save


def test_cells_that_make_what_figures_show_lead_to_them() -> None:
    cells = [
        "import numpy as np",
        "unused = 1",
        "rows = np.ones(3)",
        "print(rows)",
        "rows['moved'] = other = 2",
        "figure = draw(rows)\nplots.save(figure, 'one', output)",
        "rows = 5",
    ]
    assert FOUND["leading_to_figures"](cells) == [cells[i] for i in (0, 2, 4, 5)]
