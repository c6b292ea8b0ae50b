"""Numbers, words and tables that pages paste from notebooks, and how they stand in a notebook itself.

What only MyST understands stands twice in a notebook's Markdown: ``<span data-myst="{glue:text}`key:.1f`">3.9</span>``.
Jupyter shows the text, and the book takes the MyST. `resolve` writes such spans, and `restore` takes them back.
"""

import html
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

CAPTION = "caption"
"""Tag of a cell that shows the caption of the figure above it in Jupyter; in the book the figure has it."""

_ROLE = re.compile(r"\{glue:\w+\}`(?:[^`:]*?([\w-]+)\.ipynb::)?([\w.-]+):?([^`]*)`")
_HYPHEN = re.compile(r"(?<![\w.])-(?=\.?\d)")
_BLOCK = re.compile(r"```\{glue:any\} ([\w.-]+)\n:doc: \S*?([\w-]+)\.ipynb\n```")

_SPAN = re.compile(r'<span data-myst="([^"]*)">.*?</span>', re.DOTALL)
_MYST = (
    r"\{[\w:]+\}`[^`]+`",  # a role
    r"\[[^\]]*\]\(#[\w-]+\)|\[\]\([^)]+\)",  # a link to a target on any page, or without a text
    r"(?<=^\$\$ )\([\w-]+\)$|^:::$",  # the label of an equation, the end of a directive
)
_RESOLVED = re.compile("|".join((_SPAN.pattern, *_MYST)), re.DOTALL | re.MULTILINE)


def paste(values: Mapping[str, Any]) -> None:
    """Let pages paste values from this notebook by their names, except NaN: what the run does not have."""
    from myst_nb import glue

    for name, value in values.items():
        if not (isinstance(value, float) and math.isnan(value)):
            glue(name, value, display=False)


def read(notebook: Mapping[str, Any]) -> dict[str, str]:
    """Return what an executed notebook lets pages paste, by key: its representation as text."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", [])]
    glued = [output for output in outputs if "scrapbook" in output.get("metadata", {})]
    texts = {
        output["metadata"]["scrapbook"]["name"]: text
        for output in glued
        for kind, text in output["data"].items()
        if kind.endswith("text/plain")
    }
    return {name: "".join(text) for name, text in texts.items()}


def keys(text: str, own: str = "") -> set[tuple[str, str]]:
    """Return what a page pastes: stems of notebooks, `own` for the page's itself, and keys."""
    roles = {(match[1] or own, match[2]) for match in _ROLE.finditer(text)}
    return roles | {(match[2], match[1]) for match in _BLOCK.finditer(text)}


def dashed(text: str, there: Mapping[str, Mapping[str, str]], own: str = "") -> str:
    """Return a page's text with a dash for each value that the notebook, `there` by its stem, does not have."""
    text = _ROLE.sub(lambda match: match[0] if match[2] in there.get(match[1] or own, ()) else "–", text)
    return _BLOCK.sub(lambda match: match[0] if match[1] in there.get(match[2], ()) else "Not measured here.", text)


def value(role: str, there: Mapping[str, Mapping[str, str]], own: str = "") -> str | None:
    """Return as text the value that a role pastes, a dash where its notebook does not have it; None of other MyST."""
    from myst_nb.core.variables import format_plain_text

    if not (found := _ROLE.fullmatch(role)):
        return None
    values = there.get(found[1] or own, {})
    return minus(str(format_plain_text(values[found[2]], found[3] or "s"))) if found[2] in values else "–"


def minus(text: str) -> str:
    """Return a text whose negative numbers have the sign of mathematics, not the hyphen that Python writes."""
    return _HYPHEN.sub("\N{MINUS SIGN}", text)


# ---- what Markdown of a notebook holds twice


def span(myst: str, shown: str) -> str:
    """Return MyST beside the Markdown that Jupyter shows in its place."""
    return f'<span data-myst="{html.escape(myst)}">{shown}</span>'


def resolve(markdown: str, show: Callable[[str], str | None]) -> str:
    """Write beside all that is MyST alone what `show` returns for it; what it returns None for stays as it is."""

    def one(found: re.Match[str]) -> str:
        myst = html.unescape(found[1]) if found[1] else found[0]
        shown = show(myst)
        return found[0] if shown is None else span(myst, shown)

    return _RESOLVED.sub(one, markdown)


def resolve_numbers(notebook: dict[str, Any], there: Mapping[str, Mapping[str, str]], own: str) -> None:
    """Write into a notebook's sentences the values that they paste; all other MyST stays, with its text."""
    rewrite(notebook, lambda markdown: resolve(markdown, lambda myst: value(myst, there, own)))


def restore(notebook: dict[str, Any]) -> None:
    """Leave of a notebook's Markdown what the book takes: the MyST of each span, and no cells of captions."""
    notebook["cells"] = [cell for cell in notebook["cells"] if CAPTION not in cell["metadata"].get("tags", [])]
    rewrite(notebook, lambda markdown: _SPAN.sub(lambda found: html.unescape(found[1]), markdown))


def rewrite(notebook: Mapping[str, Any], change: Callable[[str], str]) -> None:
    """Change the text of each Markdown cell of a notebook."""
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            cell["source"] = change("".join(cell["source"])).splitlines(keepends=True)
