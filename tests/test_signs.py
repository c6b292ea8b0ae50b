"""What prose pastes, against what its sentences rely on: book/signs.toml."""

import ast
import math
import operator
import re
import tomllib
from collections.abc import Mapping

import pytest
from prose import NOTEBOOKS, PAGES, ROOT, markdown

from leamvd.book import pasted

SIGNS: dict[str, dict[str, str]] = tomllib.loads((ROOT / "book" / "signs.toml").read_text(encoding="utf-8"))

BOUNDS = {"<": operator.lt, "<=": operator.le, "=": operator.eq, ">=": operator.ge, ">": operator.gt}
PASTED = re.compile(r"\{glue:\w*\}`(?:[^`:]*::)?([\w.-]+)[^`]*`")

Value = float | str


TABLES = re.findall(r"\{glue:any\} ([\w.-]+)", "".join(PAGES.values()))
USED: dict[tuple[str, str], list[str]] = {}
"""Which pages and notebooks paste what number or word, by its notebook and key."""
for stem in (*PAGES, *NOTEBOOKS):
    for notebook, key in pasted.keys(markdown(stem), stem):
        if key not in TABLES:
            USED.setdefault((notebook, key), []).append(stem)


def value_of(text: str) -> Value:
    """Return a number or a word that is pasted; a table, which is neither, is its text."""
    try:
        return math.nan if text == "nan" else ast.literal_eval(text)
    except SyntaxError:
        return text


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


def test_everything_that_is_pasted_has_a_line_and_every_line_is_pasted() -> None:
    """A line of book/signs.toml says what sentences rely on; tables have none."""
    listed = {(notebook, key) for notebook, lines in SIGNS.items() for key in lines}
    assert {used: USED[used] for used in USED.keys() - listed} == {}, "book/signs.toml must say what they rely on"
    assert listed - USED.keys() == set(), "nothing pastes them"


@pytest.mark.parametrize("stem", [*PAGES, *NOTEBOOKS])
def test_the_low_end_of_an_interval_stands_before_the_high_one(stem: str) -> None:
    """Between them stands " to " or " and ", and nothing else."""
    text = re.sub(r"\s+", " ", PASTED.sub(r"<\1>", markdown(stem)))
    for low, high in (("low", "high"), ("least", "most")):
        for name in re.findall(rf"<([^<>]+)-{high}>", text):
            assert re.search(rf"<{re.escape(name)}-{low}> (?:to|and) <{re.escape(name)}-{high}>", text), name


@pytest.mark.parametrize("notebook", SIGNS)
def test_what_sentences_rely_on_is_so(notebook: str) -> None:
    values = {key: value_of(text) for key, text in pasted.read(NOTEBOOKS[notebook]).items()}
    broken = [
        f"{key} is {values.get(key, 'not glued')!r}, not {sign!r}: read {', '.join(USED[notebook, key])}"
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
