"""Every page of the book in a browser without a network: `make test-browser`, with the system's
Chromium.
"""

import io
import json
import os
import re
import runpy
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pytest
from PIL import Image

from leamvd_paper.book import render

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
# The bibliography's entries have a role of their own, by sphinxcontrib-bibtex, that axe does not
# take in a list.
AXE = {
    "preload": False,
    "resultTypes": ["violations"],
    "rules": {"aria-required-children": {"enabled": False}},
}
# In the dark colors alone can be other ones, and rules of all kinds take their time.
BY_AXE: dict[tuple[str, str], dict[str, Any]] = {
    ("desktop", "light"): {},
    ("phone", "dark"): {"runOnly": ["color-contrast"]},
}
NOT_FORMULAS = {"exclude": [["mjx-container"]]}
WIDTHS = {"desktop": 1280, "phone": 390}

pytestmark = [  # before a book is rendered
    pytest.mark.skipif(PROGRAM is None and "CI" not in os.environ, reason="no Chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="no Playwright"),
]

FAULTS = Path(__file__).with_name("page_faults.js").read_text(encoding="utf-8")

# What a page's links lead to, and what links to it may lead to.
LINKS = """() => [
  [...document.querySelectorAll("a[href]")].map(link => link.href),
  [...document.querySelectorAll("[id]")].map(element => element.id),
]"""


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


def found_by_axe(axe: Any, page: Any, rules: dict[str, Any]) -> list[str]:
    violations = axe.run(page, NOT_FORMULAS, AXE | rules).response["violations"]
    faults = []
    for fault in violations:
        if fault["impact"] in ("serious", "critical"):
            faults.append(f"{fault['id']}: {fault['nodes'][0]['html'][:120]}")
    return faults


def lost(links: dict[Path, list[str]], ids: dict[Path, set[str]]) -> Iterator[tuple[Path, str]]:
    """Yield pages with their links to files that are not there and to ids that no element has."""
    for path, addresses in links.items():
        for address in sorted({*addresses}):
            parts = urlsplit(address)
            target = Path(unquote(parts.path))
            if parts.scheme != "file" or target.is_relative_to(path.parents[1] / "_sources"):
                continue
            known = ids.get(target)
            if not target.is_file() or (parts.fragment and known and parts.fragment not in known):
                yield path, address


def test_no_page_has_a_fault(book: Path, browser: Any) -> None:
    """Each page is opened once, without a network, and seen at both widths, by day and by night."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    page = browser.new_context(offline=True).new_page()
    wrong: list[str] = []
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
    faults: dict[str, list[str]] = {}
    links: dict[Path, list[str]] = {}
    ids: dict[Path, set[str]] = {}
    for path in pages(book):
        page.goto(path.as_uri())
        # colors on their way from one theme to the other are no fault
        page.add_style_tag(content="*, ::before, ::after { transition: none !important }")
        page.wait_for_function("!window.MathJax || window.MathJax.startup.promise.then(() => true)")
        page.evaluate(
            "document.querySelectorAll('details').forEach(element => element.open = true)"
        )
        links[path], found = page.evaluate(LINKS)
        ids[path] = {*found}
        for name, width in WIDTHS.items():
            for theme in ("light", "dark"):
                page.set_viewport_size({"width": width, "height": 900})
                page.emulate_media(color_scheme=theme)
                page.wait_for_function(
                    "theme => document.documentElement.dataset.theme === theme", arg=theme
                )
                seen = page.evaluate(FAULTS, name == "phone")
                if (name, theme) in BY_AXE:
                    seen += found_by_axe(axe, page, BY_AXE[name, theme])
                seen += wrong
                wrong.clear()
                if seen:
                    faults.setdefault(path.stem, []).extend(f"{name}, {theme}: {it}" for it in seen)
    for path, address in lost(links, ids):
        faults.setdefault(path.stem, []).append(f"leads nowhere: {address}")
    assert not faults, json.dumps(faults, indent=1)


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
    assert float(again.input_value("[name=batches]")) == pytest.approx(np.log(200))
    assert again.is_checked("[value=printed]")


@pytest.mark.parametrize("width", WIDTHS.values())
@pytest.mark.parametrize("at", [0, 4, -1])
def test_the_sliders_thumb_stands_below_the_marks_of_its_number(
    book: Path, browser: Any, width: int, at: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 1200})
    page.goto((book / "book" / "index.html").as_uri())
    slider = page.locator("[name=batches]")
    slider.press("Home")
    for _ in range(at % 9):
        slider.press("ArrowRight")
    mark = page.locator("#first-page .small .start .mark").nth(at % 9).bounding_box()
    box = slider.bounding_box()
    picture = Image.open(io.BytesIO(slider.screenshot())).convert("HSV")
    colored = np.array(picture)[:, :, 1] > 150
    (columns,) = np.nonzero(colored.any(axis=0))
    thumb = box["x"] + (columns[0] + columns[-1] + 1) / 2 * box["width"] / picture.width
    assert thumb == pytest.approx(mark["x"] + mark["width"] / 2, abs=1)


def test_five_tabs_reach_the_first_pages_controls_and_two_more_what_follows(
    book: Path, browser: Any
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto((book / "book" / "index.html").as_uri())
    page.click("article h1")
    reached = []
    for _ in range(7):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.name || document.activeElement.href"))
    assert reached[4:6] == ["method", "batches"]
    assert "doing-nothing" in reached[6]


@pytest.mark.parametrize(("width", "beside"), [(1100, True), (1000, False)])
def test_the_first_pages_bullets_and_picture_stand_beside_each_other_where_there_is_room(
    book: Path, browser: Any, width: int, beside: bool
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto((book / "book" / "index.html").as_uri())
    bullets = page.locator(".first-view ul").first.bounding_box()
    picture = page.locator("#first-page").bounding_box()
    assert (picture["x"] > bullets["x"] + bullets["width"]) == beside
    assert (picture["y"] < bullets["y"] + bullets["height"]) == beside


def test_the_playground_is_seen_whole(book: Path, browser: Any) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto((book / "book" / "playground.html").as_uri())
    places = ["article h1", ".playground-bar", ".plot", ".playground-settings"]
    boxes = [page.locator(place).first.bounding_box() for place in places]
    ends = [box["y"] + box["height"] for box in boxes]
    assert ends == sorted(ends)
    assert ends[-1] <= 800


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
