"""Numbers, words and tables that pages paste from notebooks."""

import math
import re
from collections.abc import Mapping
from typing import Any

_ROLE = re.compile(r"\{glue:\w+\}`(?:[^`:]*?([\w-]+)\.ipynb::)?([\w.-]+)[^`]*`")
_BLOCK = re.compile(r"```\{glue:any\} ([\w.-]+)\n:doc: \S*?([\w-]+)\.ipynb\n```")


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
