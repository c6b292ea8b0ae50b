"""Sphinx extension: what neither the theme nor autodoc has a setting for, and how verdicts look."""

import re
from html import escape
from textwrap import shorten
from typing import Any
from urllib.parse import urljoin

from bs4 import BeautifulSoup
from docutils import nodes
from myst_nb.ext.glue.utils import PendingGlueReference
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.docutils import SphinxDirective

from leamvd.book.pasted import minus

VERDICTS = {
    "reproduced": ("✓", "success"),
    "partly": ("~", "warning"),
    "not reproduced": ("✗", "danger"),
    "undecided": ("=", "neutral"),
    "not testable": ("?", "neutral"),
    "not yet run": ("…", "neutral"),
    "not measured": ("–", "neutral"),
}
"""Sign and color of every verdict; sphinx-design has classes for the colors, and book.css for neutral."""

_VERDICT = re.compile(r"c\d+-(as-printed|conclusion)(-corrected)?")

_NUMBER = re.compile(r"[-−<]?\s?\d.*|–|")
"""A cell of a column of numbers: it begins with one, has a dash in its place, or is empty."""


# ---- verdicts, and pictures of other pages


def badge(word: str) -> nodes.inline:
    """Return a verdict with its sign, in its color."""
    if word not in VERDICTS:
        raise ExtensionError(f"a verdict must be one of {', '.join(VERDICTS)}, got {word!r}")
    sign, color = VERDICTS[word]
    text = f"{sign} {word}"
    return nodes.inline(text, text, classes=["verdict", "sd-badge", f"sd-bg-{color}", f"sd-bg-text-{color}"])


class _Verdict(nodes.inline):
    """Holds a verdict that is pasted from another page, until it is there."""


class _Picture(nodes.General, nodes.Element):
    """Where the picture of a figure on another page is to be, which may not have been read."""


class PictureOf(SphinxDirective):
    """``{picture-of} fig-NAME``: the picture of a figure on another page, without its caption."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return a place for it."""
        return [_Picture(label=self.arguments[0])]


class MarkVerdicts(SphinxPostTransform):
    """Find the verdicts among what is pasted: by their keys, before myst-nb puts the words in their place."""

    default_priority = 4

    def run(self, **_: Any) -> None:
        """Wrap each of them."""
        for pasted in list(self.document.findall(PendingGlueReference)):
            if _VERDICT.fullmatch(pasted.key):
                wrapper = _Verdict()
                pasted.replace_self(wrapper)
                wrapper += pasted


class ShowOthers(SphinxPostTransform):
    """Give each verdict its sign and its color, and copy the pictures, when the other pages are there."""

    default_priority = 6

    def run(self, **_: Any) -> None:
        """Put them in their places."""
        for verdict in list(self.document.findall(_Verdict)):
            verdict.replace_self(badge(verdict.astext()))
        labels = self.env.domains["std"].labels
        for place in list(self.document.findall(_Picture)):
            if place["label"] not in labels:
                raise ExtensionError(f"picture-of must name a figure with a caption, got {place['label']!r}")
            page, target, _caption = labels[place["label"]]
            figure = next(f for f in self.env.get_doctree(page).findall(nodes.figure) if target in f["ids"])
            place.replace_self(next(figure.findall(nodes.image)).deepcopy())


# ---- numbers


def aligned(html: str) -> str:
    """Return a table of pandas' with its minus signs, and the class "number" for columns of numbers and their names."""
    page = BeautifulSoup(html, "html.parser")
    for table in page("table", class_="dataframe"):
        columns = list(zip(*(row("td") for row in table.select("tbody tr")), strict=True))
        numbers = [all(_NUMBER.fullmatch(cell.text.strip()) for cell in column) for column in columns]
        names = [row("th")[-len(columns) :] for row in table.select("thead tr") if columns]
        for cells in (*names, *zip(*columns, strict=True)):
            for cell, number in zip(cells, numbers, strict=False):
                if number:
                    cell["class"] = "number"
                    cell.string = minus(cell.text)
    return str(page)


class TypesetNumbers(SphinxPostTransform):
    """Give numbers their minus signs, and align those in tables: also what is pasted, which by then is in its place."""

    default_priority = 900

    def run(self, **_: Any) -> None:
        """Rewrite what is pasted, and each table."""
        for pasted in self.document.findall(nodes.inline):
            if pasted["classes"] == ["pasted-text"]:
                pasted.children = [nodes.Text(minus(pasted.astext()))]
        for raw in self.document.findall(nodes.raw):
            if 'class="dataframe"' in (html := raw.astext()):
                raw.children = [nodes.Text(aligned(html))]


# ---- what a page's head says


def _described(*event: Any) -> None:
    """Describe a page by its first paragraph; with an address of the book, also by its first picture."""
    app, page, _template, context, doctree = event
    if doctree is None:  # the search, say
        return
    paragraph = next(doctree.findall(nodes.paragraph), nodes.paragraph())
    description = shorten(paragraph.astext(), 200, placeholder=" …")
    told = {"og:title": doctree.next_node(nodes.title).astext(), "og:type": "article", "og:description": description}
    if address := app.config.html_baseurl.rstrip("/"):
        told["og:url"] = f"{address}/{app.builder.get_target_uri(page)}"
        if image := doctree.next_node(nodes.image):  # whose address is by now that in the page
            told |= {"og:image": urljoin(told["og:url"], image["uri"]), "og:image:alt": image["alt"]}
    tags = [f'<meta name="description" content="{escape(description)}" />']
    tags += [f'<meta property="{name}" content="{escape(text)}" />' for name, text in told.items()]
    context["metatags"] += "\n".join(tags)


def _link_to_the_repository(_app: Sphinx, config: Config) -> None:
    """Show the buttons that lead to the repository, or open a notebook of it elsewhere, where there is an address."""
    options = config.html_theme_options
    options["use_repository_button"] = bool(options["repository_url"])
    if not options["repository_url"]:
        options["launch_buttons"] = {}


def _without_thebe(*event: Any) -> None:
    """Leave out the scripts of thebe, which would be fetched from the network and are not used here."""
    _app, _page, _template, context, _doctree = event
    scripts = context["script_files"]
    context["script_files"] = [s for s in scripts if "thebe" not in f"{s.filename}{s.attributes.get('body')}"]


def _without_aliases(*event: Any) -> bool | None:
    """Leave out the fields of named tuples: the class's docstring has described them."""
    _app, _what, _name, member, _skip, _options = event
    return True if str(member.__doc__).startswith("Alias for field number") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the events of a build."""
    app.connect("config-inited", _link_to_the_repository)
    app.add_directive("picture-of", PictureOf)
    app.add_post_transform(MarkVerdicts)
    app.add_post_transform(ShowOthers)
    app.add_post_transform(TypesetNumbers)
    app.connect("html-page-context", _described)
    app.connect("html-page-context", _without_thebe)
    app.connect("autodoc-skip-member", _without_aliases)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
