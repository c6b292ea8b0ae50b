"""Numbers, links and references in notebooks, as Jupyter shows them: resolved, and the same that the book says."""

import ast
import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from nbformat.v4 import new_markdown_cell
from small_book import ROOT, Page, clone, drawn, glued, notebook

from leamvd.book import pasted, render

sys.path.append(str(ROOT / "book"))
import resolve

BOOK = resolve.Book(ROOT)
STEMS = [Path(page).name for page in BOOK.notebooks]
SPAN = re.compile(r'<span data-myst="([^"]*)">(.*?)</span>', re.DOTALL)


def read(stem: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text(encoding="utf-8"))
    return content


def sentences(content: dict[str, Any]) -> str:
    return "\n\n".join("".join(cell["source"]) for cell in content["cells"] if cell["cell_type"] == "markdown")


def shown(text: str) -> str:
    """Return what Jupyter makes of Markdown, which shows no attributes."""
    return SPAN.sub(r"\2", text)


# ---- the notebooks that ship


@pytest.mark.parametrize("stem", STEMS)
def test_what_jupyter_shows_is_what_the_book_says(stem: str) -> None:
    assert BOOK.resolved(f"notebooks/{stem}")["cells"] == read(stem)["cells"], "make resolve"


@pytest.mark.parametrize("stem", STEMS)
def test_a_number_is_the_stored_value_that_its_sentence_quotes(stem: str) -> None:
    found = [(html.unescape(myst), text) for myst, text in SPAN.findall(sentences(read(stem))) if "{glue:" in myst]
    assert len(found) >= 5
    for role, text in found:
        (path, key, form) = re.findall(r"\{glue:text\}`(?:(\w+)\.ipynb::)?([^:`]+):?([^`]*)`", role)[0]
        value = ast.literal_eval(pasted.read(read(path or stem))[key])
        assert text == format(int(value) if form.endswith("d") else value, form), role


@pytest.mark.parametrize("stem", STEMS)
def test_jupyter_shows_nothing_that_only_myst_understands(stem: str) -> None:
    text = shown(sentences(read(stem)))
    assert (
        re.findall(r"\{[\w:-]+\}`[^`]*`|^:::.*|\[\]\(.*?\)|^\$\$ \(.*|^\(.*\)=$|\]\(#item.*?\)", text, re.MULTILINE)
        == []
    )


@pytest.mark.parametrize("stem", STEMS)
def test_links_lead_somewhere(stem: str) -> None:
    texts = {name: shown(sentences(read(name))) for name in STEMS}
    links = re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", texts[stem])
    assert links
    for path, label in links:
        place = (ROOT / "notebooks" / (path or f"{stem}.ipynb")).resolve()
        assert place.is_file(), path
        if label and place.suffix == ".ipynb":
            assert f'<a id="{label}"></a>' in texts[place.stem]
        elif label:
            assert re.search(rf"\({label}\)|^:name: {label}$", place.read_text(encoding="utf-8"), re.MULTILINE)


# ---- a small book

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


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a clone of two numbered sections between other pages."""
    sections = {}
    for stem, gap in (("one", "0.125"), ("two", "2.0")):
        text = re.sub(r"\b(eq|tab|fig)-(here|b)\b", rf"\1-{stem}-\2", SECTION)
        figures = [drawn(f"fig-{stem}-{name}", caption=f"Weights of {name}.") for name in "ab"]
        sections[f"notebooks/{stem}"] = notebook([new_markdown_cell(text), *figures, glued("gap", gap)])
    others = {"book/method": METHOD, "book/references": "# References\n\n```{bibliography}\n```\n"}
    clone(tmp_path / "clone", monkeypatch, "# First\n", sections | others)
    parts = [
        {"chapters": [{"file": "book/method"}]},
        {"numbered": 1, "chapters": [{"file": page} for page in sections]},
        {"chapters": [{"file": "book/references"}]},
    ]
    toc = {"format": "jb-book", "root": "book/index", "parts": parts}
    (tmp_path / "clone" / "_toc.yml").write_text(json.dumps(toc))
    monkeypatch.setattr(resolve, "ROOT", tmp_path / "clone")
    return tmp_path / "clone"


def test_notebooks_say_what_the_book_says(small: Path, tmp_path: Path) -> None:
    """What is numbered has Sphinx's numbers, and the book takes the MyST beside what Jupyter shows."""
    resolve.main()
    built = render.render(None, tmp_path / "book").parent
    for number, (stem, gap) in enumerate((("one", "0.1"), ("two", "2.0")), start=1):
        path = small / "notebooks" / f"{stem}.ipynb"
        jupyter = re.sub(r"\[([^\]]+)\]\([^)]*\)|<[^>]+>|\*\*", r"\1", shown(sentences(json.loads(path.read_text()))))
        book = re.sub(r"\s+", " ", Page(built / f"notebooks/{stem}.html").text)
        said = f"(2), ({number}.1), Fig. {number}.2, Table 1, Table {number}.1, {gap}, 0.125, –, R1, The method, "
        assert said + "(Valdez and Rojas-Domínguez, 2019)." in " ".join(jupyter.split())
        assert said + "[" in book
        for words in (
            f"Table {number}.1 Of weights.",
            f"Fig. {number}.1 Weights of a.",
            f"Fig. {number}.2 Weights of b.",
        ):
            assert re.sub(r"(\.\d)", r"\1.", words) in jupyter
            assert book.count(words) == 1
        assert f"$$ ({number}.1)" in jupyter
        assert (built / "_sources" / "notebooks" / f"{stem}.ipynb").read_bytes() == path.read_bytes(), "for Jupyter"
        assert "data-myst" not in Page(built / f"notebooks/{stem}.html").html


def test_resolving_again_changes_nothing_and_follows_what_moved(small: Path) -> None:
    resolve.main()
    first = {path: path.read_text(encoding="utf-8") for path in (small / "notebooks").iterdir()}
    resolve.main()
    assert {path: path.read_text(encoding="utf-8") for path in first} == first
    method = small / "book" / "method.md"
    method.write_text(method.read_text().replace("$$ (eq-first)", "$$"))
    one = small / "notebooks" / "one.ipynb"
    one.write_text(one.read_text().replace("0.125", "0.5"))
    resolve.main()
    now = sentences(json.loads((small / "notebooks" / "two.ipynb").read_text(encoding="utf-8")))
    assert '{glue:text}`one.ipynb::gap:.3f`">0.500<' in now
    assert "[(1)](../book/method.md#eq-second)" in now


@pytest.mark.parametrize("gone", ["(eq-second)", "(item-r1)=", ":name: tab-own"])
def test_a_reference_that_leads_nowhere_is_an_error(gone: str, small: Path) -> None:
    method = small / "book" / "method.md"
    method.write_text(method.read_text().replace(gone, ""))
    with pytest.raises(KeyError):
        resolve.main()
