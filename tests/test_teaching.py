"""What teaches: the listing beside the paper's, the code on its page, the glossary, the order of sections 1 and 2."""

import contextlib
import dataclasses
import io
import re
from typing import Any

import numpy as np
import pytest
import reference
from prose import NOTEBOOKS, PAGES, figures, markdown

import leamvd
from leamvd._support.compile import Array
from leamvd.data import functions

METHOD, ERRORS, GLOSSARY = PAGES["method"], PAGES["paper_errors"], PAGES["glossary"]
SECTIONS = ["01_esd", "02_directions"]
LINES = 35  # of the paper's listing, its ends of blocks included

LINK = re.compile(r"\[([RE]\d+)\]\(#item-\w+\)")
MARK = re.compile(rf"as printed|(?:as printed:|\\\+ filled in:|\*\*≠ changed:\*\*) {LINK.pattern}(?:, {LINK.pattern})*")
TERM = re.compile(r"\{term\}`(?:[^`<]*<)?([^`>]+)>?`")


def listing() -> list[list[str]]:
    """Return the rows of the table of the listing: line, in the paper, in this edition, difference."""
    (table,) = re.findall(r"^:name: tab-listing\n.*?\n\n(.*?)\n:::", METHOD, re.MULTILINE | re.DOTALL)
    return [re.split(r"\n  - ", row) for row in re.split(r"^\* - ", table, flags=re.MULTILINE)[2:]]


def lines(name: str) -> list[int]:
    ends = [int(end) for end in name.split("–")]
    return [*range(ends[0], ends[-1] + 1)]


def differing() -> dict[str, set[int]]:
    """Return the lines at which each item is linked."""
    found: dict[str, set[int]] = {}
    for line, _, _, difference in listing():
        for item in LINK.findall(difference):
            found.setdefault(item, set()).update([] if line == "input" else lines(line))
    return found


def test_rows_are_all_lines_of_the_listing_in_order() -> None:
    first, *rows = [row[0] for row in listing()]
    assert first == "input"
    assert [number for row in rows for number in lines(row)] == [*range(1, LINES + 1)]


def test_every_item_of_the_algorithm_is_linked_at_a_line() -> None:
    assert {item for item in differing() if item.startswith("R")} == {f"R{n}" for n in range(1, 20)}


@pytest.mark.parametrize("row", listing(), ids=lambda row: row[0])
def test_a_difference_is_marked_and_has_its_items(row: list[str]) -> None:
    line, printed, ours, difference = row
    assert printed.strip()
    assert ours.strip()
    for mark in re.split(r"\n\s*\n\s*", difference.strip()):
        assert MARK.fullmatch(mark), f"line {line}: {mark}"


def test_what_the_preset_printed_changes_is_marked_as_changed() -> None:
    printed, default = leamvd.Reading.printed(), leamvd.Reading()
    changed = {
        field.metadata["item"]
        for field in dataclasses.fields(default)
        if getattr(printed, field.name) != getattr(default, field.name)
    }
    marked = {i for row in listing() for mark in re.findall(r"\*\*≠ changed.*", row[3]) for i in LINK.findall(mark)}
    assert len(changed) == 5
    assert changed <= marked
    assert marked - changed == {"R1", "R10", "R18"}  # what no reading runs as it is printed


def test_errors_of_the_listing_stand_at_the_same_lines() -> None:
    places = re.findall(r"^\* - lines? ([\d, and]+?)(?: and Eq\. \d)?, \[(R\d+)\]", ERRORS, re.MULTILINE)
    assert {item for _, item in places} == {"R1", "R4", "R10"}
    for numbers, item in places:
        stated = set(map(int, re.findall(r"\d+", numbers)))
        assert stated & differing()[item], f"{item} is at line {numbers} of the listing"


# ---- the algorithm in NumPy


class Replay:
    """Draws the library's random numbers in the place of a generator's."""

    def __init__(self, seed: int) -> None:
        self.seed, self.generation = seed, 0

    def standard_normal(self, shape: tuple[int, int]) -> Array:
        self.generation += 1
        rows, n = shape
        return np.array([reference.normals(self.seed, self.generation, 24 - rows + row, n) for row in range(rows)])

    def permutation(self, ranks: Array) -> Array:
        assert ranks.tolist() == list(range(1, 24))
        return reference.ranks(self.seed, self.generation, 4, 24)

    def random(self, shape: tuple[int, int]) -> Array:
        rows, n = shape
        drawn = [reference.factors(self.seed, self.generation, 24 - rows + row, n) for row in range(rows)]
        self.factors = np.array(drawn)
        return np.where(self.factors == 1, 1.0, 0.0)

    def uniform(self, low: float, high: float, shape: tuple[int, int]) -> Array:
        assert (low, high, shape) == (0.5, 1.5, self.factors.shape)
        return self.factors


@pytest.fixture(scope="module")
def code() -> dict[str, Any]:
    """Run the page's code; "printed" is what it prints."""
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        for block in re.findall(r"^```python\n(.*?)^```", METHOD, re.MULTILINE | re.DOTALL):
            exec(block, names)
    return names | {"printed": output.getvalue()}


def test_the_code_prints_what_the_page_says(code: dict[str, Any]) -> None:
    assert re.findall(r"^```text\n(.*?)^```", METHOD, re.MULTILINE | re.DOTALL) == [code["printed"]]


@pytest.mark.parametrize("x0", [np.ones(3), np.full(30, 1e-6)], ids=["improves", "resets"])
def test_the_code_agrees_with_the_library(code: dict[str, Any], x0: Array) -> None:
    def objective(X: Array) -> Array:
        return functions.rastrigin(X)

    told: list[Array] = []

    def told_objective(X: Array) -> Array:
        told.append(X)
        return objective(X)

    x, value = code["lea_mvd"](told_objective, x0, Replay(seed=4), n_gen=60)
    opt = leamvd.LEAMVD(x0, seed=4, n_gen=60)
    while not opt.stop():
        X = opt.ask()
        assert pytest.approx(told[opt.generation], rel=1e-9, abs=1e-9) == X
        opt.tell(X, objective(X))
    assert len(told) == opt.generation
    assert (x, value) == (pytest.approx(opt.result.x, rel=1e-9), pytest.approx(opt.result.fun, rel=1e-9))


def test_comments_have_the_numbers_of_the_equations() -> None:
    names = re.findall(r"^\$\$ \((eq-[\w-]+)\)$", METHOD, re.MULTILINE)
    listing = METHOD[METHOD.index("```python") :]
    found = re.findall(r"# (.*\(\d+\).*)$", listing[: listing.index("```\n")], re.MULTILINE)
    said = {text.partition(",")[0]: list(map(int, re.findall(r"\((\d+)\)", text))) for text in found}
    numbers = {
        name: names.index(f"eq-{name}") + 1
        for name in (
            "start",
            "weights",
            "mean",
            "std",
            "path",
            "descent",
            "descent-mean",
            "shift",
            "factor",
            "beta1",
            "beta2",
            "reset",
            "stop",
        )
    }
    assert list(said.values()) == [
        [numbers["weights"]],
        [numbers["start"]],
        [numbers["beta1"], numbers["beta2"]],
        [numbers["mean"], numbers["std"]],
        [numbers["path"], numbers["descent-mean"]],
        [numbers["reset"], numbers["stop"]],
        [numbers["shift"], numbers["factor"]],
    ]


def test_the_page_goes_from_picture_to_code_to_formula() -> None:
    picture, code, formula = METHOD.index(":::{figure}"), METHOD.index("```python"), METHOD.index("$$\n")
    assert METHOD.index("# The method") < picture < code < formula < METHOD.index(":name: tab-listing")


# ---- the glossary


def terms() -> list[list[str]]:
    """Return the terms of each of the glossary's parts."""
    parts = re.findall(r"^```\{glossary\}\n(.*?)^```", GLOSSARY, re.MULTILINE | re.DOTALL)
    return [re.findall(r"^\S.*$", part, re.MULTILINE) for part in parts]


def test_terms_are_defined_once_and_in_alphabetical_order() -> None:
    for part in terms():
        assert part == sorted(part, key=str.lower)
    every = [term.lower() for part in terms() for term in part]
    assert len(every) == len(set(every)) > 30
    assert [term for part in terms() for term in part if f"\n{term}\n  " not in GLOSSARY] == []


@pytest.mark.parametrize("stem", ["method", *SECTIONS])
def test_pages_link_to_terms_once_each(stem: str) -> None:
    linked = [term.replace("\n", " ").lower() for term in TERM.findall(markdown(stem))]
    assert len(linked) >= 5
    assert len(linked) == len(set(linked)), "only the first use is a link"
    assert set(linked) <= {term.lower() for part in terms() for term in part}


# ---- sections 1 and 2


@pytest.mark.parametrize("stem", SECTIONS)
def test_a_section_opens_with_answer_picture_and_verdicts(stem: str) -> None:
    first = NOTEBOOKS[stem].cells[0].source
    answer, picture, verdicts = map(first.index, ("*The answer.*", "*The picture.*", ":::{table}"))
    assert answer < picture < verdicts
    assert "{glue:text}" in first[answer:picture]
    assert re.findall(r"\{numref\}`(fig-[\w-]+)`", first[picture:]) == [*figures(stem)][:1]
    assert "\n## " not in first
    assert re.search(r"^\| C\d+.*\{glue:text\}`09_verdicts\.ipynb::c\d+-", first[verdicts:], re.MULTILINE)


@pytest.mark.parametrize("stem", SECTIONS)
def test_captions_stand_alone(stem: str) -> None:
    elsewhere = r"\b(?:(?:named|shown|as|seen) (?:above|below|before)|the same runs|previous|next figure)\b"
    assert re.findall(elsewhere, str(figures(stem))) == []
