"""The book: what may be shown, and the pages that come out."""

import json
import re
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote, urlsplit

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from docutils import nodes
from docutils.core import publish_doctree
from PIL import Image

from leamvd_paper.book import render, sections

ROOT = Path(__file__).parents[1]
EXTENSION = runpy.run_path(str(ROOT / "book" / "sphinx_extension.py"))
PAGES = runpy.run_path(str(ROOT / "book" / "notebook_pages.py"))
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)


FORK = "https://github.com/someone/fork"
ITS_BOOK = "https://someone.github.io/fork/"


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the clone's own notebooks, as a fork's; warnings are errors."""
    output = tmp_path_factory.mktemp("book") / "html"
    return render.render(output=output, repository=FORK, baseurl=ITS_BOOK).parent


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


def test_an_id_is_there_once_and_old_ones_still_are(pages: dict[Path, BeautifulSoup]) -> None:
    """Where a heading has got new words, `<a id>` above it keeps links to the old ones."""
    for path, page in pages.items():
        ids = [str(tag["id"]) for tag in page.select("article [id]")]
        assert [*ids] == [*dict.fromkeys(ids)], path
        if path.parent.name == "notebooks":
            text = (ROOT / "notebooks" / f"{path.stem}.ipynb").read_text(encoding="utf-8")
            assert {*re.findall(r'<a id=\\"([^"]+)\\"', text)} <= {*ids}, path


def test_the_first_page_offers_the_article_where_it_was_made(
    pages: dict[Path, BeautifulSoup],
) -> None:
    made = ROOT / "_build" / "article" / "leamvd.pdf"
    (first,) = (page for path, page in pages.items() if path.stem == "index")
    assert len(first.select('article a[download][href$="/leamvd.pdf"]')) == made.is_file()
    assert ("in print" in first.select_one("article").get_text()) == made.is_file()


@pytest.mark.parametrize("there", [True, False])
def test_the_article_comes_with_its_words(there: bool, tmp_path: Path) -> None:
    made = runpy.run_path(str(ROOT / "book" / "sphinx_extension.py"))["_in_print"]
    article = tmp_path / "leamvd.pdf"
    (tmp_path / "book").mkdir()
    if there:
        article.write_bytes(b"%PDF")
    made.__globals__["ARTICLE"] = article
    page = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    source = [page]
    made(SimpleNamespace(srcdir=tmp_path), "book/index", source)
    assert (tmp_path / "book" / "leamvd.pdf").is_file() == there
    assert (source[0] == page) == there
    assert ("leamvd.pdf" in source[0]) == there


def test_a_page_with_its_pictures_is_small(pages: dict[Path, BeautifulSoup]) -> None:
    sizes = {}
    for path, page in pages.items():
        pictures = {str(tag["src"]) for tag in page.select("img[src]")}
        files = [path, *((path.parent / unquote(name)).resolve() for name in pictures)]
        sizes[path.stem] = sum(file.stat().st_size for file in files)
    assert {name: size for name, size in sizes.items() if size > 800_000} == {}


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


def test_columns_of_numbers_are_aligned_with_their_names_and_no_others() -> None:
    columns = {
        "method": ["CD", "LEA-MVD"],
        "runs": ["1,000", "\N{EN DASH}"],
        "ratio": ["0.94 (0.92 to 0.96)", "NaN"],
        "fall": ["-3", ""],
        "met": ["1", "yes"],
    }
    html = pd.DataFrame(columns).to_html(index=False)
    page = BeautifulSoup(EXTENSION["aligned"](html), "html.parser")
    for row in page("tr"):
        numbers = ["number" in cell.get("class", []) for cell in row(["th", "td"])]
        assert numbers == [False, True, True, True, False]
    by_name = pd.DataFrame({"met": ["yes", "no"], "runs": [1, 2]}, index=["CD", "LEA-MVD"])
    page = BeautifulSoup(EXTENSION["aligned"](by_name.to_html()), "html.parser")
    above, *below = [
        [(cell.name, *cell.get("class", [])) for cell in row(True)] for row in page("tr")
    ]
    assert above == [("td",), ("th",), ("th", "number")], "the corner names nothing"
    assert below == 2 * [[("th",), ("td",), ("td", "number")]]


def test_a_page_leads_to_its_notebook(pages: dict[Path, BeautifulSoup]) -> None:
    for path, page in pages.items():
        links = page.select('article a[download][href$=".ipynb"]')
        if path.parent.name == "notebooks":
            (link,) = links
            there = (path.parent / str(link["href"])).resolve()
            assert there.read_bytes() == (ROOT / "notebooks" / there.name).read_bytes()
            assert there.stem == path.stem


def test_a_page_says_how_to_run_it_and_how_long_that_takes(
    pages: dict[Path, BeautifulSoup],
) -> None:
    for path, page in pages.items():
        if path.parent.name == "notebooks":
            section = sections.read_section(ROOT / "notebooks" / f"{path.stem}.ipynb").name
            words = page.select_one("article").get_text()[:600]
            assert f"leamvd reproduce {section}" in words
            assert f"in about {sections.QUICK[section]}." in words


def test_pages_ask_nothing_of_a_network_and_describe_their_pictures(
    pages: dict[Path, BeautifulSoup],
) -> None:
    for path, page in pages.items():
        tags = page.select("script, img, link:not([rel=canonical])")
        fetched = [tag.get("src") or tag.get("href") for tag in tags]
        fetched = [url for url in fetched if url and urlsplit(url).scheme.startswith("http")]
        assert fetched == [], path
        assert all(image.get("alt") for image in page.select("article img")), path


def test_each_figure_of_a_notebook_has_its_data_below(pages: dict[Path, BeautifulSoup]) -> None:
    for path, page in pages.items():
        data = [Path(str(link["href"])) for link in page.select('article a[href$=".csv"]')]
        if path.parent.name == "notebooks":
            notebook = nbformat.read(ROOT / "notebooks" / f"{path.stem}.ipynb", 4)
            code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
            names = re.findall(r'"([\w{}-]+)",\s*output\b', code)
            assert [own.stem for own in data] == [
                name.format(size=path.stem.rpartition("_")[2]) for name in names
            ]
        for own in data:
            assert len(pd.read_csv((path.parent / own).resolve())) > 1


def test_a_forks_pages_lead_to_it(book: Path, pages: dict[Path, BeautifulSoup]) -> None:
    for path, page in pages.items():
        place = path.relative_to(book).with_suffix("")
        told = {tag["property"]: tag["content"] for tag in page.select("meta[property^=og]")}
        assert told["og:url"] == f"{ITS_BOOK}{place}.html"
        picture = page.select_one("article img")
        assert ("og:image" in told) == (picture is not None), path
        if picture is not None:
            assert told["og:image:alt"] == picture["alt"]
            assert (book / told["og:image"].removeprefix(ITS_BOOK)).is_file()
        links = {
            str(link["href"]) for link in page.select("header a[href], .article-header-buttons a")
        }
        source = next(ROOT.glob(f"{place}.[im]*"))
        assert {FORK, f"{FORK}/edit/main/{source.relative_to(ROOT)}"} <= links
        if source.suffix == ".ipynb":
            binder = f"https://mybinder.org/v2/gh/someone/fork/main?urlpath=lab/tree/{place}.ipynb"
            assert binder in links
        assert not [link for link in links if "colab" in link]


def test_without_other_addresses_settings_keep_theirs(tmp_path: Path) -> None:
    settings = {"repository": {"url": FORK}, "html": {"baseurl": ITS_BOOK}}
    config = tmp_path / "_config.yml"
    config.write_text(json.dumps(settings))
    render._address(config, "", "")
    assert yaml.safe_load(config.read_text()) == settings


# ---- a reader's own run


def test_a_page_of_a_run_says_what_it_was_and_sets_the_recorded_ones_words_apart(
    tmp_path: Path,
) -> None:
    (section,) = sections.load(["mnist-7x7"])
    about = sections.about(
        section, {"profile": "quick", "seeds": [0, 1], "n_gen": 6, "exponent": 1.5}
    )
    for folder in ("notebooks", "figures/03_mnist_7x7", "figures/recorded"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(section.path, tmp_path / "notebooks")
    (tmp_path / "notebooks" / "03_mnist_7x7.json").write_text(json.dumps(about))
    for folder in ("03_mnist_7x7", "recorded"):
        (tmp_path / "figures" / folder / "mnist-7x7-ends.csv").write_text("x\n1\n")
    source = [section.path.read_text(encoding="utf-8")]
    PAGES["_extended"](SimpleNamespace(srcdir=tmp_path), "notebooks/03_mnist_7x7", source)
    texts = ["".join(one["source"]) for one in json.loads(source[0])["cells"]]
    title, *rest = texts[0].splitlines()
    assert title == f"# {section.title} (yours)"
    box = "\n".join(rest).partition(":::{admonition}")[2].partition(":::\n")[0]
    for words in (
        "`mnist-7x7` at the profile *quick*, with `seeds=0,1`, `n_gen=6`.",
        "Seeds: 0, 1.",
        "Images: scikit-learn's digits, 1,437 for training, 7×7 pixels.",
        f"`{about['command']}`",
        "describes the recorded run, not this one",
    ):
        assert words in box
    assert "exponent" not in box.partition("The same again")[0], "the profile's own"
    assert texts[0].index(":::{dropdown} In short") < texts[0].index("Given the same inputs")
    captions = [text for text in texts if text.startswith("*")]
    assert all(text.startswith("*<span style=") for text in captions)
    links = re.findall(r"\(\.\./(figures/\S+)\)", "\n".join(texts))
    assert links == ["figures/03_mnist_7x7/mnist-7x7-ends.csv"], "its own numbers, not the recorded"


def test_a_caption_has_the_link_to_its_numbers_and_the_fold_begins_below_its_heading(
    tmp_path: Path,
) -> None:
    (section,) = sections.load(["esd"])
    for folder in ("notebooks", "figures/recorded"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(section.path, tmp_path / "notebooks")
    for name in ("one", "two"):
        (tmp_path / "figures" / "recorded" / f"{name}.csv").write_text("x\n1\n")
    code = [
        nbformat.v4.new_code_cell(f'plots.save(f, "{name}", output)') for name in ("one", "two")
    ]
    texts = ["# Title\n\nText.", "*Caption.*\n\nMore.", "## All numbers", "Last."]
    title, caption, heading, last = map(nbformat.v4.new_markdown_cell, texts)
    notebook = nbformat.v4.new_notebook(cells=[title, code[0], caption, code[1], heading, last])
    notebook.metadata["leamvd"] = {"section": "esd", "title": "Title"}
    source = [nbformat.writes(notebook)]
    stem = section.path.stem
    PAGES["_extended"](SimpleNamespace(srcdir=tmp_path), f"notebooks/{stem}", source)
    link = "[Data of this figure](../figures/recorded/{}.csv)"
    first, _, captioned, _, added, *rest = (
        "".join(one["source"]) for one in json.loads(source[0])["cells"]
    )
    assert first.startswith("# Title\n\n<p>")
    assert first.endswith("\nText.")
    assert (
        f"leamvd reproduce esd</code> runs it at a small scale, in about {sections.QUICK['esd']}."
        in first
    )
    assert f'href="../_sources/notebooks/{stem}.ipynb"' in first
    assert captioned == f"*Caption.* {link.format('one')}\n\nMore."
    assert added == link.format("two")
    assert [rest[0], *rest[2:]] == ["## All numbers", "Last.", "</details>"]
    assert rest[1].startswith("<details>")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dataset": "digits", "n_images": None}, ["scikit-learn's digits", "1,437 for training"]),
        ({"dataset": "mnist", "n_images": 2_000}, ["MNIST", "2,000 for training"]),
        ({"dataset": "gone", "size": "7x7"}, ["`gone`", "7×7 pixels"]),
        ({"dataset": None}, None),
    ],
)
def test_images_of_a_run_are_those_that_it_was_given(given: dict[str, Any], said: Any) -> None:
    words = [*PAGES["_images"](given)]
    assert words == ([f"Images: {', '.join(said)}."] if said else [])


def test_the_box_of_a_run_lists_what_differs_from_its_profile_and_nothing_else() -> None:
    for given, words in (
        ({"profile": "paper", "exponent": 3.0}, "*paper*, with `exponent=3.0`."),
        ({"profile": "quick"}, "*quick*, as it is."),
    ):
        box = PAGES["_box"]({"section": "mnist-7x7", "parameters": given, "command": "leamvd ..."})
        assert words in box


@pytest.mark.parametrize("profile", ["quick", "paper"])
def test_the_box_of_a_run_tells_the_seeds_of_its_profile(profile: str) -> None:
    (section,) = sections.load(["mnist-7x7"])
    seeds = section.profiles()[profile]["seeds"]
    given = {"profile": profile, "seeds": None}
    box = PAGES["_box"]({"section": section.name, "parameters": given, "command": "leamvd ..."})
    assert f"\nSeeds: {', '.join(map(str, seeds))}.\n" in box
    assert ", as it is." in box


@pytest.mark.parametrize(
    ("caption", "gray"),
    [
        ("*One is 0.5 of it. Two.*", "One is 0.5 of it."),
        ("*Only one.* [Data]()", "Only one."),
        ("*Is it? $x$ is.*", "Is it?"),
        ("*One e.g. that\nis broken. Two.*", "One e.g. that\nis broken."),
    ],
)
def test_the_first_sentence_of_a_caption_is_found(caption: str, gray: str) -> None:
    assert PAGES["SENTENCE"].match(caption)[1] == gray


def test_the_page_of_rules_leads_to_the_repository_where_it_has_an_address() -> None:
    links = ["[why](rules/after_the_runs.md#what-to-use)"]
    there = "https://example.org/leamvd"
    options = {"repository_url": there, "repository_branch": "main"}
    app = SimpleNamespace(config=SimpleNamespace(html_theme_options=options))
    EXTENSION["_lead_to_dated_rules"](app, "book/rules", links)
    assert links == [f"[why]({there}/blob/main/book/rules/after_the_runs.md#what-to-use)"]


# ---- Sphinx's events


def test_only_the_interval_of_a_sentence_is_kept_on_one_line() -> None:
    document = publish_doctree("It is 0.94 (0.92 to 0.96) of it.\n\n``code (1 to 2)``")
    EXTENSION["_unbroken"](None, document, "page")
    kept = [one.astext() for one in document.findall(nodes.inline)]
    assert kept == ["(0.92 to 0.96)"]
    assert document.astext() == "It is 0.94 (0.92 to 0.96) of it.\n\ncode (1 to 2)"


def test_a_page_is_described_by_its_first_paragraph() -> None:
    document = publish_doctree("Title\n=====\n\nFirst & all.\n\nSecond.")
    context = {"metatags": ""}
    app = SimpleNamespace(config=SimpleNamespace(html_baseurl=""))
    EXTENSION["_described"](app, "page", "page.html", context, document)
    assert context["metatags"] == '<meta name="description" content="First &amp; all." />'


def test_an_equation_has_its_label_as_an_id() -> None:
    equation = nodes.math_block("x", "x", label="eq-error")
    document = publish_doctree("Text.")
    document += equation
    EXTENSION["_linked"](None, document)
    assert equation["ids"] == ["eq-error"]


@pytest.mark.parametrize("address", ["", "https://example.org/leamvd"])
def test_buttons_lead_to_a_repository_that_has_an_address(address: str) -> None:
    options = {"repository_url": address, "launch_buttons": {"colab_url": "there"}}
    EXTENSION["_link_to_the_repository"](None, SimpleNamespace(html_theme_options=options))
    assert options["use_repository_button"] == bool(address)
    assert options["use_edit_page_button"] == bool(address)
    assert bool(options["launch_buttons"]) == bool(address)


def test_only_scripts_of_thebe_and_aliases_of_fields_are_left_out() -> None:
    files = [SimpleNamespace(filename=name, attributes={}) for name in ("thebe.js", "own.js")]
    context = {"script_files": files}
    EXTENSION["_without_thebe"](None, "page", "page.html", context, None)
    assert [script.filename for script in context["script_files"]] == ["own.js"]
    skip = EXTENSION["_without_aliases"]
    assert skip(None, "attribute", "x", SimpleNamespace(__doc__="Alias for field number 0"))
    assert skip(None, "attribute", "x", SimpleNamespace(__doc__="The runs.")) is None


def test_colors_of_figures_hardly_move_in_a_palette(tmp_path: Path) -> None:
    (tmp_path / "_images").mkdir()
    path = tmp_path / "_images" / "one.png"
    ramp = np.arange(256, dtype=np.uint8)
    before = np.stack(np.broadcast_arrays(ramp[:, None], ramp[None], 99), axis=2).astype(np.uint8)
    Image.fromarray(before[::4, ::4]).save(path)
    EXTENSION["_with_palettes"](SimpleNamespace(outdir=tmp_path), None)
    with Image.open(path) as after:
        moved = np.asarray(after.convert("RGB")).astype(int) - before[::4, ::4]
    assert np.abs(moved).max() < 40


# ---- what may be shown


def cell(**changes: Any) -> Any:
    own = nbformat.v4.new_code_cell(
        "1", execution_count=1, metadata={"mystnb": {"image": {"alt": "A pixel."}}}
    )
    own.outputs = [nbformat.v4.new_output("display_data", data={"image/png": PIXEL})]
    return nbformat.from_dict(own | changes)


TABLE = nbformat.v4.new_output("display_data", data={"text/html": "<table></table>"})


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (cell(execution_count=None), "cell 1 was not executed"),
        (cell(metadata={}), "cell 1 shows an image without alternative text"),
        (
            cell(metadata={"mystnb": {"image": {"alt": " "}}}),
            "cell 1 shows an image without alternative text",
        ),
        *(
            (
                cell(metadata={}, outputs=outputs),
                "cell 1 shows an image without alternative text",
            )
            for outputs in ([TABLE, *cell().outputs], [*cell().outputs, TABLE])
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


@pytest.mark.parametrize("name", ["mine.txt", "index.html"])
def test_other_files_are_not_overwritten(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(
        FileExistsError, match="output must be a new or empty folder, or an earlier book"
    ):
        render.render(output=tmp_path)
    assert (tmp_path / name).read_text() == "mine"


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


def test_all_that_is_wrong_in_a_notebook_is_told_by_the_numbers_of_its_cells(
    tmp_path: Path,
) -> None:
    empty = cell(source=" ", execution_count=None)
    text = nbformat.v4.new_markdown_cell("Words.")
    failed = cell(outputs=[nbformat.v4.new_output("error", ename="ValueError", evalue="no")])
    path = tmp_path / "one.ipynb"
    cells = [text, cell(), empty, failed, cell(execution_count=None), cell(metadata={})]
    path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)))
    with pytest.raises(ValueError, match="cannot be shown") as raised:
        render.check(path)
    problems = str(raised.value).partition("shown: ")[2].split("; ")
    numbers = [re.findall(r"^cell (\d) (\w+ \w+)", problem)[0] for problem in problems]
    assert numbers == [("4", "failed with"), ("5", "was not"), ("6", "shows an")]


def test_a_run_is_staged_with_what_it_was_and_the_numbers_of_its_figures(tmp_path: Path) -> None:
    stage, run = tmp_path / "stage", tmp_path / "run"
    (stage / "notebooks").mkdir(parents=True)
    (run / "figures").mkdir(parents=True)
    for name in ("01_esd.ipynb", "run.json", "figures/a.csv"):
        (run / name).write_text(name)
    render._stage(run / "01_esd.ipynb", stage)
    assert (stage / "notebooks" / "01_esd.ipynb").read_text() == "01_esd.ipynb"
    assert (stage / "notebooks" / "01_esd.json").read_text() == "run.json"
    assert (stage / "figures" / "01_esd" / "a.csv").read_text() == "figures/a.csv"
    (run / "run.json").unlink()
    shutil.rmtree(stage / "figures")
    render._stage(run / "01_esd.ipynb", stage)
    assert not (stage / "figures").exists(), "of the recorded run"


def test_addresses_that_are_given_take_the_place_of_those_of_the_settings(tmp_path: Path) -> None:
    settings = {"repository": {"url": "old", "branch": "main"}, "html": {"baseurl": "old"}}
    config = tmp_path / "_config.yml"
    config.write_text(json.dumps(settings))
    render._address(config, FORK, "")
    assert yaml.safe_load(config.read_text()) == {
        "repository": {"url": FORK, "branch": "main"},
        "html": {"baseurl": "old"},
    }
    render._address(config, "", ITS_BOOK)
    assert yaml.safe_load(config.read_text())["html"] == {"baseurl": ITS_BOOK}


@pytest.mark.parametrize("fails", [False, True])
def test_an_earlier_book_is_replaced_when_the_new_one_is_whole(
    fails: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "book"
    output.mkdir()
    (output / ".buildinfo").touch()
    (output / "old.html").touch()
    checked = []

    def built(stage: Path, notebooks: list[Path], work: Path) -> Path:
        assert (stage / "book" / "index.md").is_file()
        assert checked == notebooks
        assert work.parent == tmp_path
        if fails:
            raise RuntimeError("not built")
        (work / "html").mkdir()
        (work / "html" / "index.html").touch()
        return work / "html"

    monkeypatch.setattr(render, "_build", built)
    monkeypatch.setattr(render, "check", checked.append)
    if fails:
        with pytest.raises(RuntimeError, match="not built"):
            render.render(output=output)
        assert {path.name for path in output.iterdir()} == {".buildinfo", "old.html"}
    else:
        assert render.render(output=output) == output / "index.html"
        assert [path.name for path in output.iterdir()] == ["index.html"]
    assert [path.name for path in tmp_path.iterdir()] == ["book"], "nothing is left beside it"


def test_a_warning_of_a_build_is_an_error_without_colors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def run(command: list[str], **options: Any) -> Any:
        asked.append((command, options["env"]))
        assert options["stdout"] == render.subprocess.PIPE
        assert options["stderr"] == render.subprocess.STDOUT, "where Sphinx warns"
        return SimpleNamespace(
            returncode=1, stdout="\x1b[31mWARNING: a title\x1b[39;49;00m is short"
        )

    monkeypatch.setattr(render.subprocess, "run", run)
    with pytest.raises(RuntimeError) as raised:
        render._build(tmp_path, [], tmp_path)
    assert str(raised.value) == "the book was not built:\nWARNING: a title is short"
    ((command, environment),) = asked
    assert {"-W", "-n", "--keep-going"} <= {*command}, "of warnings, and of references"
    assert environment["TMPDIR"] == str(tmp_path)


def test_dated_rules_are_copies_where_the_repository_has_no_address() -> None:
    links = ["[why](rules/after_the_runs.md#what-to-use)"]
    options = {"repository_url": "", "repository_branch": "main"}
    app = SimpleNamespace(config=SimpleNamespace(html_theme_options=options))
    EXTENSION["_lead_to_dated_rules"](app, "book/rules", links)
    assert links == ["[why](path:rules/after_the_runs.md)"]


def test_only_tables_of_pandas_are_aligned() -> None:
    html = pd.DataFrame({"n": [1, 2]}).to_html(index=False)
    document = publish_doctree("Text.")
    for source in (html, "<table><td>1</td></table>"):
        document += nodes.raw("", source, format="html")
    EXTENSION["_align"](None, document, "page")
    table, other = (raw.astext() for raw in document.findall(nodes.raw))
    assert table == EXTENSION["aligned"](html) != html
    assert other == "<table><td>1</td></table>"
