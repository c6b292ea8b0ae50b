"""What prose pastes, against what its sentences rely on: book/signs.toml."""

import ast
import math
import operator
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = {path.stem: nbformat.read(path, 4).cells for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
SIGNS: dict[str, dict[str, str]] = tomllib.loads((ROOT / "book" / "signs.toml").read_text(encoding="utf-8"))

BOUNDS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}
PASTED = re.compile(r"\{glue:\w*\}`(?:[^`:]*?(\w+)\.ipynb::)?([\w.-]+)[^`]*`")

Value = float | str


def glued(cells: list[nbformat.NotebookNode]) -> dict[str, Value]:
    """Return the numbers and words that a notebook has glued, by their key; tables are of another kind."""
    outputs = [
        output for cell in cells for output in cell.get("outputs", []) if "scrapbook" in output.get("metadata", {})
    ]
    texts = {o.metadata.scrapbook.name: "".join(o.data.values()) for o in outputs if len(o.data) == 1}
    return {key: math.nan if text == "nan" else ast.literal_eval(text) for key, text in texts.items()}


def texts() -> dict[str, tuple[str, str]]:
    """Return the prose of every file, with the notebook that it is of."""
    found = {path.name: ("", path.read_text(encoding="utf-8")) for path in (ROOT / "book").glob("*.md")}
    for stem, cells in NOTEBOOKS.items():
        found[f"{stem}.ipynb"] = (stem, "\n".join(cell.source for cell in cells if cell.cell_type == "markdown"))
    return found


def pasted() -> dict[tuple[str, str], set[str]]:
    """Return which files paste what, by its notebook and key."""
    found: dict[tuple[str, str], set[str]] = {}
    for name, (own, text) in texts().items():
        for match in PASTED.finditer(text):
            found.setdefault((match[1] or own, match[2]), set()).add(name)
    return found


def holds(sign: str, value: Value, others: Mapping[str, Value]) -> bool:
    """Return whether a value is what a line says."""
    if isinstance(value, str):
        return sign in ("text", value)
    if not math.isfinite(value):
        return False
    if sign == "number":
        return True
    return all(_bounded(bound, value, others) for bound in sign.split(", "))


def _bounded(bound: str, value: float, others: Mapping[str, Value]) -> bool:
    if ".." in bound:
        low, high = map(float, bound.split(".."))
        return low <= value <= high
    sign, _, end = bound.partition(" ")
    return bool(BOUNDS[sign](value, others[end] if end in others else float(end)))


def test_everything_that_is_pasted_has_a_line() -> None:
    missing = [
        f"{notebook}: {key}, pasted in {', '.join(sorted(files))}"
        for (notebook, key), files in pasted().items()
        if key not in SIGNS.get(notebook, {})
    ]
    assert not missing, "book/signs.toml must say what the sentences rely on:\n" + "\n".join(missing)


@pytest.mark.parametrize("name", texts())
def test_the_low_end_of_an_interval_stands_before_the_high_one(name: str) -> None:
    """Between them stands " to " or " and ", and nothing else."""
    text = re.sub(r"\s+", " ", PASTED.sub(lambda match: f"<{match[2]}>", texts()[name][1]))
    for low, high in (("low", "high"), ("least", "most")):
        for stem in re.findall(rf"<([^<>]+)-{high}>", text):
            assert re.search(rf"<{re.escape(stem)}-{low}> (?:to|and) <{re.escape(stem)}-{high}>", text), stem


def test_every_line_is_pasted_somewhere() -> None:
    listed = {(notebook, key) for notebook, lines in SIGNS.items() for key in lines}
    unused = sorted(listed - set(pasted()))
    assert not unused, f"book/signs.toml has lines that nothing pastes: {unused}"


@pytest.mark.parametrize("notebook", SIGNS)
def test_what_sentences_rely_on_is_so(notebook: str) -> None:
    values = glued(NOTEBOOKS[notebook])
    files = pasted()
    broken = [
        f"{key} is {values.get(key, 'not glued')!r}, not {sign!r}: read {', '.join(sorted(files[notebook, key]))}"
        for key, sign in SIGNS[notebook].items()
        if key not in values or not holds(sign, values[key], values)
    ]
    assert not broken, f"sentences may no longer be true of {notebook}:\n" + "\n".join(broken)


@pytest.mark.parametrize(
    ("sign", "value", "expected"),
    [
        ("number", 3, True), ("number", math.nan, False), ("< 1", 0.9, True), ("< 1", 1, False), ("<= 1", 1, True),
        ("> 0", -1, False), (">= 2", 2, True), ("= 0", 0, True), ("= 0", 0.1, False), ("0.9..1.1", 1.1, True),
        ("0.9..1.1", 1.2, False), ("-2..-1", -1.5, True), ("> 0, < other", 4, True), ("> 0, < other", 6, False),
        ("> 0, < other", -1, False), ("partly", "partly", True), ("partly", "reproduced", False),
        ("number", "partly", False), ("text", "partly", True),
    ],
)  # fmt: skip
def test_a_line_is_read_as_it_says(sign: str, value: Value, expected: bool) -> None:
    assert holds(sign, value, {"other": 5.0}) == expected


def test_a_line_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises((KeyError, ValueError)):
        holds("about 3", 3.0, {})
    with pytest.raises(ValueError, match="missing"):
        holds("> missing", 3.0, {})
