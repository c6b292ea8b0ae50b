"""The book: what may be shown, and the pages that come out."""

import json
import re
import shutil
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import pytest
from bs4 import BeautifulSoup

from leamvd_paper.book import render

ROOT = Path(__file__).parents[1]
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the clone's own notebooks; warnings are errors."""
    return render.render(output=tmp_path_factory.mktemp("book") / "html").parent


@pytest.fixture(scope="module")
def pages(book: Path) -> dict[Path, BeautifulSoup]:
    found = sorted([*(book / "book").glob("*.html"), *(book / "notebooks").glob("*.html")])
    return {path: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in found}


def test_every_link_lands_on_a_page_and_an_id_that_are_there(
    pages: dict[Path, BeautifulSoup],
) -> None:
    lost = []
    ids = {path: {tag["id"] for tag in page(id=True)} for path, page in pages.items()}
    for path, page in pages.items():
        for link in page.select("article a[href]"):
            parts = urlsplit(str(link["href"]))
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = parts.scheme or (
                target.is_file() and (not parts.fragment or parts.fragment in ids.get(target, ()))
            )
            if not there:
                lost.append(f"{path.stem}: {link['href']}")
    assert len(pages) > 20
    assert lost == []


def test_intervals_stay_on_one_line(pages: dict[Path, BeautifulSoup]) -> None:
    """Those of the text, and of tables; code is as it is written."""
    interval = re.compile(r"\([-−]?\d[^\s()]* to [-−]?\d[^\s()]*\)")
    parents = []
    for page in pages.values():
        for text in page.select_one("article").find_all(string=interval):
            if not text.find_parent(["pre", "code", "script"]):
                parents.append((text.parent.name, text.parent.get("class")))
    assert {(name, *(classes or ())) for name, classes in parents} == {("span", "interval")}
    assert len(parents) > 100
    css = (ROOT / "book" / "static" / "book.css").read_text(encoding="utf-8")
    assert ".interval {\n  white-space: nowrap;\n}" in css


def test_numbers_to_look_up_are_in_a_fold(pages: dict[Path, BeautifulSoup]) -> None:
    for path, page in pages.items():
        heading = page.select_one("section#all-numbers")
        if heading is not None:
            (fold,) = heading.select("details")
            assert heading.select("table") == fold.select("table"), path


def test_a_page_leads_to_its_notebook(pages: dict[Path, BeautifulSoup]) -> None:
    for path, page in pages.items():
        links = page.select('article a[download][href$=".ipynb"]')
        if path.parent.name == "notebooks":
            (link,) = links
            there = (path.parent / str(link["href"])).resolve()
            assert there.read_bytes() == (ROOT / "notebooks" / there.name).read_bytes()
            assert there.stem == path.stem


def test_pages_ask_nothing_of_a_network_and_describe_their_pictures(
    pages: dict[Path, BeautifulSoup],
) -> None:
    for path, page in pages.items():
        fetched = [tag.get("src") or tag.get("href") for tag in page(["script", "img", "link"])]
        fetched = [url for url in fetched if url and urlsplit(url).scheme.startswith("http")]
        assert fetched == [], path
        assert all(image.get("alt") for image in page.select("article img")), path


def test_each_figure_of_a_notebook_has_its_data_below(pages: dict[Path, BeautifulSoup]) -> None:
    for path, page in pages.items():
        data = [Path(str(link["href"])) for link in page.select('article a[href$=".json"]')]
        if path.parent.name == "notebooks":
            notebook = nbformat.read(ROOT / "notebooks" / f"{path.stem}.ipynb", 4)
            code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
            names = re.findall(r'"([\w{}-]+)",\s*output\b', code)
            assert [own.stem for own in data] == [
                name.format(size=path.stem.rpartition("_")[2]) for name in names
            ]
        for own in data:
            json.loads((path.parent / own).resolve().read_text())


# ---- what may be shown


def cell(**changes: Any) -> Any:
    own = nbformat.v4.new_code_cell(
        "1", execution_count=1, metadata={"mystnb": {"image": {"alt": "A pixel."}}}
    )
    own.outputs = [nbformat.v4.new_output("display_data", data={"image/png": PIXEL})]
    return nbformat.from_dict(own | changes)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (cell(execution_count=None), "cell 1 was not executed"),
        (cell(metadata={}), "cell 1 shows an image without alternative text"),
        (
            cell(metadata={"mystnb": {"image": {"alt": " "}}}),
            "cell 1 shows an image without alternative text",
        ),
        (
            cell(outputs=[nbformat.v4.new_output("error", ename="ValueError", evalue="no")]),
            "failed with ValueError: no",
        ),
    ],
)
def test_a_notebook_that_a_reader_should_not_see_is_refused(
    bad: Any, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "one.ipynb"
    path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[cell()])))
    render.check(path)
    path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=[bad])))
    with pytest.raises(ValueError, match=message):
        render.check(path)


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(
        FileExistsError, match="output must be a new or empty folder, or an earlier book"
    ):
        render.render(output=tmp_path)


def test_latest_runs_take_the_place_of_the_notebooks_that_ship(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(FileNotFoundError, match=r"results must hold runs of .*01_esd"):
        render.render(tmp_path, tmp_path / "book")
    folder = tmp_path / "01_esd" / "quick-1"
    folder.mkdir(parents=True)
    shutil.copy(ROOT / "notebooks" / "01_esd.ipynb", folder)
    (tmp_path / "01_esd" / "latest").write_text("quick-1\n")
    found = render._notebooks(ROOT, tmp_path)
    assert [path for path in found if path.parent != ROOT / "notebooks"] == [
        folder / "01_esd.ipynb"
    ]
