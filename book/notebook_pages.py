"""Sphinx extension: what the page of a notebook has besides its cells.

Links to the notebook and to the numbers of figures; a fold around what is there to be looked up;
and where a reader's own run is shown, what it was, apart from the text of the recorded run.
"""

import json
import re
import zlib
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

from leamvd_paper.book.render import FOLDED
from leamvd_paper.book.sections import QUICK, Values, load, read_section, written
from leamvd_paper.data import images
from leamvd_paper.data.mnist import DataError

SAVED = re.compile(r'"([\w{}-]+)",\s*output,?\s*\)\s*$')  # the end of a cell that draws a figure
SENTENCE = re.compile(r"\*(.+?[.?!])(?= [^a-z]|\*)", re.DOTALL)  # the first one of a caption
GRAY = r'*<span style="color: var(--pst-color-text-muted)">\1</span>'
SETS = {"digits": "scikit-learn's digits", "mnist": "MNIST"}


def _extended(app: Sphinx, page: str, source: list[str]) -> None:
    """Extend the page of a notebook before it is parsed."""
    folder, _, stem = page.partition("/")
    if folder != "notebooks":
        return
    content = json.loads(source[0])
    cells = content["cells"]
    place = Path(app.srcdir, folder)
    run = place / f"{stem}.json"  # of a reader's own
    numbers = "recorded"
    if run.is_file():
        numbers = stem
        _mark(content, json.loads(run.read_text(encoding="utf-8")))
    values = read_section(place / f"{stem}.ipynb").complete({})  # in names of figures
    # from the end: cells are inserted
    for number, cell in reversed([*enumerate(cells, start=1)]):
        saved = SAVED.search("".join(cell["source"]))
        if saved:
            file = Path("figures", numbers, f"{saved[1].format(**values)}.csv")
            if Path(app.srcdir, file).is_file():
                _link(cells, number, f"[Data of this figure](../{file.as_posix()})")
    _fold(cells)
    _offer(cells, stem, content["metadata"]["leamvd"]["section"])
    source[0] = json.dumps(content)


def _link(cells: list[dict[str, Any]], number: int, link: str) -> None:
    """Write a link behind a caption, or where there is none in a cell of its own."""
    below = "".join(cells[number]["source"]) if number < len(cells) else ""
    if below.startswith("*"):
        caption, *others = below.split("\n\n")
        cells[number]["source"] = "\n\n".join([f"{caption} {link}", *others])
    else:
        cells.insert(number, _markdown(link))


def _fold(cells: list[dict[str, Any]]) -> None:
    """Fold what follows the last heading of a page, where that is `FOLDED`."""
    for number, cell in enumerate(cells):
        if "".join(cell["source"]).startswith(FOLDED):
            cells.insert(number + 1, _markdown("<details><summary>Show them</summary>"))
            cells.append(_markdown("</details>"))
            break


def _offer(cells: list[dict[str, Any]], stem: str, section: str) -> None:
    """Write below a page's title how to get the notebook, and how to run it."""
    title, _, rest = "".join(cells[0]["source"]).partition("\n")
    address = f"../_sources/notebooks/{stem}.ipynb"
    link = f'<a href="{address}" download>This page as a notebook</a>'
    command = f"<code>leamvd reproduce {section}</code>"
    words = f"{link}. {command} runs it at a small scale, in about {QUICK[section]}."
    cells[0]["source"] = f"{title}\n\n<p>{words}</p>\n{rest}"


def _markdown(source: str) -> dict[str, Any]:
    """Return a cell of Markdown."""
    name = f"added-{zlib.crc32(source.encode()):x}"
    return {"cell_type": "markdown", "id": name, "metadata": {}, "source": source}


# ---- a reader's own run


def _mark(content: dict[str, Any], run: dict[str, Any]) -> None:
    """Say what a run was, and set apart what is said of the recorded one."""
    cells = content["cells"]
    rest = "".join(cells[0]["source"]).partition("\n")[2]
    title = f"# {content['metadata']['leamvd']['title']} (yours)"
    cells[0]["source"] = f"{title}\n\n{_box(run)}\n{_in_short(rest)}"
    for cell in cells[1:]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and re.match(r"\*[^*]", text):
            cell["source"] = SENTENCE.sub(GRAY, text, count=1)


def _in_short(text: str) -> str:
    """Return a page's first text with what it says in short folded, up to the next heading."""
    return re.sub(
        r"\*\*In short\.?\*\*(.*?)(?=\n## |\Z)",
        r":::{dropdown} In short, of the recorded run\n\1\n:::\n",
        text,
        flags=re.DOTALL,
    )


def _box(run: dict[str, Any]) -> str:
    """Return what a run was, and the command that repeats it, as a box."""
    (section,) = load([run["section"]])
    given = run["parameters"]
    profile = given.get("profile", section.parameters["profile"].default)
    usual = section.profiles().get(profile, {})
    values = {}
    changed = []
    for name, value in given.items():
        default = section.parameters[name].default
        if default is None:
            default = usual.get(name)
        values[name] = default if value is None else value
        if name != "profile" and written(values[name]) != written(default):
            changed.append(f"`{name}={written(value)}`")
    with_ = f", with {', '.join(changed)}" if changed else ", as it is"
    lines = [
        f"The section `{section.name}` at the profile *{profile}*{with_}.",
        *_seeds(values),
        *_images(values),
        f"The same again: `{run['command']}`",
        "**The text below describes the recorded run, not this one.**",
    ]
    return "\n\n".join([":::{admonition} Your own run\n:class: important", *lines, ":::\n"])


def _seeds(values: Values) -> Iterable[str]:
    """Yield the sentence about seeds."""
    seeds = values.get("seeds")
    if seeds:
        yield f"Seeds: {', '.join(map(str, seeds))}."


def _images(values: Values) -> Iterable[str]:
    """Yield the sentence about images."""
    dataset = values.get("dataset")
    if dataset is None:
        return
    count = values.get("n_images")
    if count is None:
        with suppress(OSError, DataError):  # a folder that is gone
            count = images.known(dataset)[1]
    words = [SETS.get(dataset, f"`{dataset}`")]
    if count is not None:
        words.append(f"{count:,} for training")
    if "size" in values:
        words.append(f"{values['size'].replace('x', '×')} pixels")
    yield f"Images: {', '.join(words)}."


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect to the reading of pages."""
    app.connect("source-read", _extended)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
