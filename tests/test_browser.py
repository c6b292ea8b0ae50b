"""Every page of the book in a browser without a network: `make test-browser`, with the system's
Chromium.
"""

import json
import os
import re
import runpy
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from leamvd_paper.book import render

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
# The bibliography's entries have a role of their own, by sphinxcontrib-bibtex, that axe does not
# take in a list.
AXE = {"resultTypes": ["violations"], "rules": {"aria-required-children": {"enabled": False}}}
WIDTHS = {"desktop": 1280, "phone": 390}

pytestmark = [  # before a book is rendered
    pytest.mark.skipif(PROGRAM is None and "CI" not in os.environ, reason="no Chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="no Playwright"),
]

# What reaches beyond the window, or beyond a box that cuts it off. On a phone results and tables
# may be scrolled.
CLIPPED = """(phone) => {
  const scrolls = phone ? ", .cell_output, table, .pst-scrollable-table-container" : "";
  const found = [];
  for (const element of document.querySelectorAll("article *, .prev-next-footer *")) {
    const box = element.getBoundingClientRect(), style = getComputedStyle(element);
    if (!box.width || element.closest(`span.math, mjx-container > *, .headerlink${scrolls}`)) continue;
    const cut = element.clientWidth && element.scrollWidth > element.clientWidth + 2 && /auto|scroll|hidden|clip/.test(style.overflowX);
    const scrolled = element.parentElement.closest("pre, .cell_output, .pst-scrollable-table-container, mjx-container");
    if (cut || (box.right > innerWidth + 1 && !scrolled)) found.push(`${element.tagName}.${element.className}: ${element.innerText ?? ""}`.slice(0, 120));
  }
  if (document.documentElement.scrollWidth > innerWidth) found.push("the page itself");
  return found;
}"""  # noqa: E501

# The words that a reader sees, without code and without what MathJax keeps for screen readers.
WORDS = """() => {
  const page = document.querySelector("article").cloneNode(true);
  page.querySelectorAll("pre, code, script, mjx-container").forEach(element => element.remove());
  return page.textContent;
}"""


@pytest.fixture(scope="module")
def book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Render the clone's own notebooks."""
    return render.render(output=tmp_path_factory.mktemp("book") / "html").parent


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright import sync_api

    with sync_api.sync_playwright() as session:
        yield session.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])


def pages(book: Path) -> list[Path]:
    return sorted([*(book / "book").glob("*.html"), *(book / "notebooks").glob("*.html")])


class Seen(NamedTuple):
    """What is seen of all pages."""

    wrong: list[str]  # what failed, is broken or cut off, and what should have been typeset
    narrow: list[str]  # figures whose text a phone shows too small


@pytest.fixture(
    scope="module",
    params=[(name, theme) for name in WIDTHS for theme in ("light", "dark")],
    ids="-".join,
)
def seen(request: pytest.FixtureRequest, book: Path, browser: Any) -> Iterator[Seen]:
    """Open each page once, without a network."""
    name, theme = request.param
    context = browser.new_context(
        viewport={"width": WIDTHS[name], "height": 900}, color_scheme=theme, offline=True
    )
    page, wrong, found = context.new_page(), [], Seen([], [])
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    # The browser itself gives up what it still fetches, such as an icon, when it goes to the next
    # page.
    page.on(
        "requestfailed",
        lambda it: wrong.append(it.url) if it.failure != "net::ERR_ABORTED" else None,
    )
    for path in pages(book):
        page.goto(path.as_uri())
        page.wait_for_function("!window.MathJax || window.MathJax.startup.promise.then(() => true)")
        page.evaluate(
            "document.querySelectorAll('details').forEach(element => element.open = true)"
        )
        broken = page.evaluate(
            "[...document.images].filter(image => !image.naturalWidth).map(image => image.src)"
        )
        tex = re.findall(r"\\[a-zA-Z]{2,}|\$\$?[^$]+\$", page.evaluate(WORDS))
        faults = [*wrong, *broken, *tex, *page.evaluate(CLIPPED, name == "phone")]
        found.wrong.extend(f"{path.stem}: {fault}" for fault in faults[:5])
        widths = page.evaluate(
            "[...document.querySelectorAll('.cell_output img')].map(i => [i.width, i.naturalWidth])"
        )
        # text of 10 points on 200 dots an inch is 28 of the picture's pixels high
        found.narrow.extend(path.stem for width, natural in widths if 28 * width / natural < 8.95)
        wrong.clear()
    yield found
    context.close()


def test_pages_are_whole(seen: Seen) -> None:
    assert seen.wrong == []


def test_text_in_figures_is_nine_pixels_high_on_a_phone_too(seen: Seen) -> None:
    assert seen.narrow == []


def test_the_playground_can_be_printed(book: Path, browser: Any) -> None:
    page, wrong = browser.new_page(), []
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    page.goto((book / "book" / "playground.html").as_uri())
    page.pdf()
    page.emulate_media(media="print")
    page.wait_for_timeout(200)  # milliseconds
    assert wrong == []


# The first page's picture: its words, where the rules and the marks of the chosen curves stand, and
# the ink of the last two rows.
PICTURE = """(method) => {
  const root = document.getElementById("first-page");
  const all = (selector, name) =>
    [...root.querySelectorAll(selector)].map(element => element.getAttribute(name));
  const inks = [...root.querySelectorAll(".chosen ~ canvas")].map(canvas => {
    const ink = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    return [canvas.width, [...ink.filter((_, k) => k % 4 === 3)]];
  });
  const marks = ["small", "large"].map(
    size => all(`.${size} .${method}:last-of-type .mark`, "transform"));
  return [root.elements.batches.ariaValueText, all(".rule", "d"), marks, inks];
}"""


@pytest.mark.parametrize(
    ("method", "rows"),
    [("start", {"small": 2, "large": 2}), ("lea-mvd", {"small": 11}), ("printed", {"small": 20})],
)
def test_the_first_page_shows_what_is_chosen(
    book: Path, browser: Any, method: str, rows: dict[str, int]
) -> None:
    made = runpy.run_path(str(Path(__file__).parents[1] / "book" / "first_page.py"))
    data = json.loads((book / "_static" / "first_page.json").read_text(encoding="utf-8"))
    page = browser.new_page()
    page.goto((book / "book" / "index.html").as_uri())
    page.check(f"[value={method}]")
    page.press("[name=batches]", "Home")
    for batches in data["small"]["start"]["batches"]:
        words, rules, marks, inks = page.evaluate(PICTURE, method)
        of, *said = re.split(r"\. (?=\d)", words.removesuffix("."))
        assert int(of.split()[0]) == batches
        for (size, side), text, rule, places, (width, ink) in zip(
            made["SIZES"].items(), said, rules, marks, inks, strict=True
        ):
            pixels, _, errors = text.partition(": ")
            assert pixels == f"{side}×{side} pixels"
            line = data[size].get(method, {"batches": []})
            if batches not in line["batches"]:
                assert errors == "not run"
                assert not any(ink)
                continue
            i = line["batches"].index(batches)
            found = [float(number) for number in re.findall(r"[\d.]+", errors)]
            assert found == pytest.approx([line["CD"][i], line["constant"][i]], rel=0.05, abs=0.005)
            assert re.findall(r"[\d.]+", rule)[0] == re.findall(r"[\d.]+", places[i])[0]
            row = made["rows_of"](data[size]["digits"], side)[rows[size] + i]
            np.testing.assert_allclose(np.reshape(ink, (-1, width)), row, atol=1)
        page.press("[name=batches]", "ArrowRight")


def test_a_click_in_the_first_pages_charts_chooses_and_the_address_keeps_it(
    book: Path, browser: Any
) -> None:
    page = browser.new_page()
    address = (book / "book" / "index.html").as_uri()
    page.goto(address)
    page.check("[value=printed]")
    page.locator("#first-page .large .start .mark").nth(6).click()
    assert page.url == f"{address}#k=200&method=printed"
    again = browser.new_page()
    again.goto(page.url)
    assert again.input_value("[name=batches]") == "6"
    assert again.is_checked("[value=printed]")


@pytest.mark.parametrize("scripts", [True, False])
def test_the_first_page_has_one_picture_with_scripts_or_without(
    book: Path, browser: Any, scripts: bool
) -> None:
    page = browser.new_page(java_script_enabled=scripts)
    page.goto((book / "book" / "index.html").as_uri())
    assert [page.is_visible(place) for place in ("#first-page", ".first-page-static")] == [
        scripts,
        not scripts,
    ]


@pytest.mark.parametrize("words", ["contrastive divergence", "C_ani"])
def test_search_finds(book: Path, browser: Any, words: str) -> None:
    page = browser.new_page()
    page.goto(f"{(book / 'search.html').as_uri()}?q={words.replace(' ', '+')}")
    page.wait_for_selector("#search-results li", timeout=20_000)
    assert page.locator("#search-results li").count() >= 1


def test_nothing_serious_stands_in_the_way_of_a_screen_reader(book: Path, browser: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page, serious = browser.new_page(), {}
    for path in pages(book):
        page.goto(path.as_uri())
        violations = axe.run(page, options=AXE).response["violations"]
        faults = [v for v in violations if v["impact"] in ("serious", "critical")]
        if faults:
            serious[path.stem] = [
                f"{fault['id']} {fault['nodes'][0]['html'][:120]}" for fault in faults
            ]
    assert not serious
