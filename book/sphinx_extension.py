"""Sphinx extension: what neither the theme nor autodoc has a setting for."""

import re
import shutil
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any
from urllib.parse import urljoin

from bs4 import BeautifulSoup
from docutils import nodes
from PIL import Image
from sphinx.application import Sphinx
from sphinx.config import Config

import leamvd_paper

ARTICLE = Path(leamvd_paper.__file__).resolve().parents[2] / "_build" / "article" / "leamvd.pdf"

_NUMBER = re.compile(r"[-−<]?\s?\d.*|–|NaN|")  # a cell of a column of numbers, or an empty one
_DATED = re.compile(r"\]\((rules/\w+\.md)(#[\w-]+)\)")  # a heading of rules that are no page
_IN_PRINT = re.compile(r"; \*in print:\* \{download\}`[^`]+`")
_INTERVAL = re.compile(r"(\([-−]?\d[^\s()<]* to [-−]?\d[^\s()<]*(?: %)?\))")


def _lead_to_dated_rules(app: Sphinx, _page: str, source: list[str]) -> None:
    """Lead from the page of rules to the repository, or to a copy where it has no address."""
    options = app.config.html_theme_options
    address = options["repository_url"]
    if address:
        branch = options["repository_branch"]
        there = rf"]({address}/blob/{branch}/book/\1\2)"
    else:
        there = r"](path:\1)"
    source[0] = _DATED.sub(there, source[0])


def _in_print(app: Sphinx, page: str, source: list[str]) -> None:
    """Offer the article on the first page where `make article` has made it, else say nothing of
    it.
    """
    if page == "book/index":
        if ARTICLE.is_file():
            shutil.copy(ARTICLE, Path(app.srcdir, "book"))
        else:
            source[0] = _IN_PRINT.sub("", source[0])


def _align(_app: Sphinx, document: nodes.document, _page: str) -> None:
    """Align the tables of pandas'."""
    for raw in document.findall(nodes.raw):
        html = raw.astext()
        if 'class="dataframe"' in html:
            raw.children = [nodes.Text(aligned(html))]


def aligned(html: str) -> str:
    """Return a table of pandas' with the class "number" for columns of numbers and their names,
    "interval" for intervals, and no header cells that name nothing.
    """
    whole = _INTERVAL.sub(r'<span class="interval">\1</span>', html)
    page = BeautifulSoup(whole, "html.parser")
    for table in page("table", class_="dataframe"):
        rows = [row("td") for row in table.select("tbody tr")]
        columns = list(zip(*rows, strict=True))
        names = [row("th")[-len(columns) :] for row in table.select("thead tr")]
        for number, column in enumerate(columns):
            if all(_NUMBER.fullmatch(cell.text.strip()) for cell in column):
                for cell in column:
                    cell["class"] = "number"
                for row in names:
                    if len(row) == len(columns):
                        row[number]["class"] = "number"
        for cell in table("th"):
            if not cell.text.strip():
                cell.name = "td"
    return str(page)


def _unbroken(_app: Sphinx, document: nodes.document, _page: str) -> None:
    """Give intervals in a page's text the class that keeps them on one line."""
    for text in list(document.findall(nodes.Text)):
        if isinstance(text.parent, (nodes.literal, nodes.math, nodes.FixedTextElement)):
            continue
        parts: list[nodes.Node] = []
        for number, part in enumerate(_INTERVAL.split(text)):
            if number % 2:
                parts.append(nodes.inline(part, part, classes=["interval"]))
            elif part:
                parts.append(nodes.Text(part))
        if len(parts) > 1:
            text.parent.replace(text, parts)


def _linked(_app: Sphinx, document: nodes.document) -> None:
    """Give equations their labels as ids, which links from notebooks lead to:
    method.html#eq-error.
    """
    for equation in document.findall(nodes.math_block):
        label = equation.get("label")
        if label:
            equation["ids"].append(label)


def _described(
    app: Sphinx,
    page: str,
    _template: str,
    context: dict[str, Any],
    doctree: nodes.document | None,
) -> None:
    """Describe a page by its first paragraph; where the book has an address, a preview by its first
    picture too.
    """
    if doctree is None:  # as of the search
        return
    paragraph = next(doctree.findall(nodes.paragraph), nodes.paragraph())
    description = shorten(paragraph.astext(), 200, placeholder=" …")
    context["metatags"] += f'<meta name="description" content="{escape(description)}" />'
    if not app.config.html_baseurl:
        return
    place = f"{app.config.html_baseurl.rstrip('/')}/{app.builder.get_target_uri(page)}"
    title = next(doctree.findall(nodes.title)).astext()
    told = {"title": title, "type": "article", "url": place, "description": description}
    picture = next(doctree.findall(nodes.image), None)
    if picture is not None:  # with its address as the page gives it
        told["image"] = urljoin(place, picture["uri"])
        told["image:alt"] = picture["alt"]
    for name, text in told.items():
        context["metatags"] += f'<meta property="og:{name}" content="{escape(text)}" />'


def _link_to_the_repository(_app: Sphinx, config: Config) -> None:
    """Show the buttons that lead to the repository, edit a page of it, or open a notebook of it
    elsewhere, where there is an address.
    """
    options = config.html_theme_options
    options["use_repository_button"] = bool(options["repository_url"])
    options["use_edit_page_button"] = bool(options["repository_url"])
    if not options["repository_url"]:
        options["launch_buttons"] = {}


def _without_thebe(
    _app: Sphinx, _page: str, _template: str, context: dict[str, Any], _doctree: Any
) -> None:
    """Leave out the scripts of thebe, which would be fetched from the network and are not used
    here.
    """
    kept = []
    for script in context["script_files"]:
        if "thebe" not in f"{script.filename}{script.attributes.get('body')}":
            kept.append(script)
    context["script_files"] = kept


def _without_aliases(*event: Any) -> bool | None:
    """Leave out the fields of named tuples: the class's docstring has described them."""
    return True if str(event[3].__doc__).startswith("Alias for field number") else None


def _with_palettes(app: Sphinx, _error: Exception | None) -> None:
    """Write figures with 192 colors of their own: a third of the bytes, and levels move by a few of
    255.
    """
    for path in Path(app.outdir, "_images").glob("*.png"):
        with Image.open(path) as figure:
            colors = figure.convert("RGB")
        method = Image.Quantize.MAXCOVERAGE
        colors.quantize(192, method, dither=Image.Dither.NONE).save(path, optimize=True)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the events of a build."""
    app.connect("config-inited", _link_to_the_repository)
    app.connect("source-read", _lead_to_dated_rules)
    app.connect("source-read", _in_print)
    app.connect("doctree-resolved", _unbroken)
    app.connect("doctree-resolved", _align)
    app.connect("doctree-read", _linked)
    app.connect("html-page-context", _described)
    app.connect("html-page-context", _without_thebe)
    app.connect("autodoc-skip-member", _without_aliases)
    app.connect("build-finished", _with_palettes)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
