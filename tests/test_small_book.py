"""A small book with addresses, built once: what Jupyter shows and the book says, verdicts, pictures, heads, buttons."""

import json
import re
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell
from small_book import ROOT, Page, clone, drawn, glued, notebook, sentences, shown
from test_first_page import extension

from leamvd.book import render

sys.path.append(str(ROOT / "book"))
import launch
import resolve

REPOSITORY, ADDRESS = "https://github.com/someone/fork-of-leamvd", "https://book.example/lea/"
VERDICTS = {f"c{n}-{view}": word for n, word in enumerate(extension.VERDICTS) for view in ("as-printed", "conclusion")}

INDEX = """# The *first* page

It answers <at once>.

:::{picture-of} fig-one-a
:::

""" + "\n\n".join(f"- {{glue:text}}`../notebooks/one.ipynb::{key}:s`" for key in (*VERDICTS, "c1-as-printed-met"))

METHOD = """# The method

$$
a = 1
$$ (eq-first)

:::{list-table} A table.
:name: tab-own

* - (item-r1)=
    R1
:::

$$
b = 1
$$ (eq-second)
"""

SECTION = """# Section

{eq}`eq-second`, {eq}`eq-here`, {numref}`fig-b`, {numref}`tab-own`, {numref}`tab-here`, {glue:text}`gap:.1f`,
{glue:text}`one.ipynb::gap:.3f`, {glue:text}`absent:d`, [R1](#item-r1), [](../book/method.md), {cite:p}`valdez2019`.

$$
c = 1
$$ (eq-here)

:::{table} Of weights.
:name: tab-here
:class: numbers

| a | b |
| --- | --- |
| 1 | {glue:text}`gap:.2f` |

:::
"""


def small(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Make a clone of two numbered sections between other pages."""
    sections = {}
    for stem, gap in (("one", "0.125"), ("two", "-2.0")):
        text = re.sub(r"\b(eq|tab|fig)-(here|b)\b", rf"\1-{stem}-\2", SECTION)
        figures = [drawn(f"fig-{stem}-{name}", 'Black, "8 x 6".', f"Weights of {name}.") for name in "ab"]
        numbers = [glued("gap", gap), *(glued(key, repr(word)) for key, word in VERDICTS.items())]
        cells = [new_markdown_cell(text), *figures, *numbers, glued("c1-as-printed-met", "'partly'")]
        prepared = launch.prepared(notebook(cells), REPOSITORY)
        sections[f"notebooks/{stem}"] = nbformat.from_dict(prepared)
    others = {"book/method": METHOD, "book/references": "# References\n\n```{bibliography}\n```\n"}
    clone(folder, patch, INDEX, sections | others, baseurl=ADDRESS, url=REPOSITORY)
    parts = [
        {"chapters": [{"file": "book/method"}]},
        {"numbered": 1, "chapters": [{"file": page} for page in sections]},
        {"chapters": [{"file": "book/references"}]},
    ]
    toc = {"format": "jb-book", "root": "book/index", "parts": parts}
    (folder / "_toc.yml").write_text(json.dumps(toc))
    patch.setattr(resolve, "ROOT", folder)
    return folder


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a clone that a test may change."""
    return small(tmp_path / "clone", monkeypatch)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the notebooks with what Jupyter shows, and the book that is built of them."""
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as patch:
        source = small(folder / "clone", patch)
        resolve.main()
        return source / "notebooks", render.render(None, folder / "book").parent


@pytest.fixture(scope="module")
def pages(built: tuple[Path, Path]) -> dict[str, str]:
    """Return the sources of the first page and of a section."""
    names = ("book/index.html", "notebooks/one.html")
    return {name: (built[1] / name).read_text(encoding="utf-8") for name in names}


# ---- numbers and references


@pytest.mark.parametrize(("number", "stem", "gap"), [(1, "one", "0.1"), (2, "two", "−2.0")])
def test_notebooks_say_what_the_book_says(built: tuple[Path, Path], number: int, stem: str, gap: str) -> None:
    """What is numbered has Sphinx's numbers, and the book takes the MyST beside what Jupyter shows."""
    path, page = built[0] / f"{stem}.ipynb", Page(built[1] / "notebooks" / f"{stem}.html")
    jupyter = re.sub(r"\[([^\]]+)\]\([^)]*\)|<[^>]+>|\*\*", r"\1", shown(sentences(json.loads(path.read_text()))))
    book = re.sub(r"\s+", " ", page.text)
    said = f"(2), ({number}.1), Fig. {number}.2, Table 1, Table {number}.1, {gap}, 0.125, –, R1, The method, "
    assert said + "(Valdez and Rojas-Domínguez, 2019)." in " ".join(jupyter.split())
    assert said + "[" in book
    for what, words in (("Table {}.1", "Of weights."), ("Fig. {}.1", "Weights of a."), ("Fig. {}.2", "Weights of b.")):
        name = what.format(number)
        assert f"{name}. {words}" in jupyter
        assert book.count(f"{name} {words}") == 1
    assert f"$$ ({number}.1)" in jupyter
    assert (built[1] / "_sources" / "notebooks" / path.name).read_bytes() == path.read_bytes(), "for Jupyter"
    assert "data-myst" not in page.html


def test_resolving_again_changes_nothing_and_follows_what_moved(source: Path) -> None:
    resolve.main()
    first = {path: path.read_text(encoding="utf-8") for path in (source / "notebooks").iterdir()}
    resolve.main()
    assert {path: path.read_text(encoding="utf-8") for path in first} == first
    method = source / "book" / "method.md"
    method.write_text(method.read_text().replace("$$ (eq-first)", "$$"))
    one = source / "notebooks" / "one.ipynb"
    one.write_text(one.read_text().replace("0.125", "0.5"))
    resolve.main()
    now = sentences(json.loads((source / "notebooks" / "two.ipynb").read_text(encoding="utf-8")))
    assert '{glue:text}`one.ipynb::gap:.3f`">0.500<' in now
    assert "[(1)](../book/method.md#eq-second)" in now


@pytest.mark.parametrize("gone", ["(eq-second)", "(item-r1)=", ":name: tab-own"])
def test_a_reference_that_leads_nowhere_is_an_error(gone: str, source: Path) -> None:
    method = source / "book" / "method.md"
    method.write_text(method.read_text().replace(gone, ""))
    with pytest.raises(KeyError):
        resolve.main()


def test_no_page_warns_where_its_numbers_are_the_clones_own(pages: dict[str, str]) -> None:
    assert "Another run" not in pages["book/index.html"]


# ---- verdicts, pictures, heads, buttons


def test_a_pasted_verdict_takes_the_look_of_its_word(pages: dict[str, str]) -> None:
    badges = re.findall(r'<span class="verdict ([^"]+)">([^<]+)</span>', pages["book/index.html"])
    looks = {word: (f"sd-badge sd-bg-{c} sd-bg-text-{c}", f"{s} {word}") for word, (s, c) in extension.VERDICTS.items()}
    assert badges == [looks[word] for word in VERDICTS.values()]
    assert '<span class="pasted-text">partly</span>' in pages["book/index.html"]  # another key than that of a verdict


def test_a_picture_of_another_page_brings_its_text(pages: dict[str, str]) -> None:
    first, own = (re.findall(r'<img alt="Black, &quot;8 x 6&quot;\." [^>]*src="([^"]+)"', p) for p in pages.values())
    assert first == own[:1]


def test_a_page_is_described_with_its_address_and_its_first_picture(pages: dict[str, str], built: object) -> None:
    assert '<meta name="description" content="It answers &lt;at once&gt;." />' in pages["book/index.html"]
    assert '<link rel="icon" href="../_static/favicon.svg"' in pages["book/index.html"]
    for path, title in zip(pages, ("The first page", "Section"), strict=True):
        told = dict(re.findall(r'<meta property="(og:[\w:]+)" content="([^"]+)" />', pages[path]))
        assert (told["og:title"], told["og:url"]) == (title, f"{ADDRESS}{path}")
        assert told["og:image:alt"] == "Black, &quot;8 x 6&quot;."
        assert (built[1] / told["og:image"].removeprefix(ADDRESS)).is_file()


def test_buttons_lead_to_the_repository_and_open_notebooks_elsewhere(built: tuple[Path, Path]) -> None:
    outside = re.compile("binder|colab|github.com/someone|edit")
    first, one = (Page(built[1] / f"{name}.html") for name in ("book/index", "notebooks/one"))
    away = [sorted(set(filter(outside.search, page.links))) for page in (first, one)]
    launched = [
        "https://colab.research.google.com/github/someone/fork-of-leamvd/blob/main/notebooks/one.ipynb",
        REPOSITORY,
        "https://mybinder.org/v2/gh/someone/fork-of-leamvd/main?urlpath=lab/tree/notebooks/one.ipynb",
    ]
    assert away == [[REPOSITORY], launched]
    assert "pip" not in one.text, "the page hides the cell that installs"
