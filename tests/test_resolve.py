"""Numbers, links and references in notebooks, as Jupyter shows them: resolved, and the same that the book says."""

import ast
import functools
import html
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from small_book import ROOT, SPAN, sentences, shown

from leamvd.book import pasted

sys.path.append(str(ROOT / "book"))
import resolve

BOOK = resolve.Book(ROOT)
STEMS = [Path(page).name for page in BOOK.notebooks]


@functools.cache
def read(stem: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text(encoding="utf-8"))
    return content


@functools.cache
def stored(stem: str) -> dict[str, str]:
    return pasted.read(read(stem))


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
        value = ast.literal_eval(stored(path or stem)[key])
        assert text.replace("−", "-") == format(int(value) if form.endswith("d") else value, form), role


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
