"""What teaches: the listing beside the paper's, the code on its page, the glossary, the order of sections 1 and 2."""

import contextlib
import dataclasses
import io
import re

import pytest
from prose import NOTEBOOKS, PAGES, figures, markdown

import leamvd

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


def test_the_code_prints_what_the_page_says() -> None:
    (code, printed) = re.findall(r"^```(?:python|text)\n(.*?)^```", METHOD, re.MULTILINE | re.DOTALL)
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(code, {})
    assert output.getvalue() == printed
    assert re.findall(r"\b(?:ask|tell|state)\b", re.sub("#.*", "", code)) == ["ask", "tell", "state"] * 2


def test_the_page_goes_from_picture_to_formula_to_code() -> None:
    picture, formula = METHOD.index(":::{figure}"), METHOD.index("$$\n")
    assert METHOD.index("# The method") < picture < METHOD.index("\n## ") < formula
    assert formula < METHOD.index(":name: tab-listing") < METHOD.index("```python")


# ---- the glossary


def terms() -> list[list[str]]:
    """Return the terms of each of the glossary's parts."""
    parts = re.findall(r"^```\{glossary\}\n(.*?)^```", GLOSSARY, re.MULTILINE | re.DOTALL)
    return [re.findall(r"^\S.*$", part, re.MULTILINE) for part in parts]


def test_terms_are_defined_once_and_in_alphabetical_order() -> None:
    for part in terms():
        assert part == sorted(part, key=str.lower)
    every = [term.lower() for part in terms() for term in part]
    assert len(every) == len(set(every)) > 40
    assert [term for part in terms() for term in part if f"\n{term}\n  " not in GLOSSARY] == []


@pytest.mark.parametrize("stem", ["method", *SECTIONS])
def test_pages_link_to_terms_once_each(stem: str) -> None:
    linked = [term.replace("\n", " ").lower() for term in TERM.findall(markdown(stem))]
    assert len(linked) >= 5
    assert len(linked) == len(set(linked)), "only the first use is a link"
    assert set(linked) <= {term.lower() for part in terms() for term in part}


# ---- sections 1 and 2


@pytest.mark.parametrize("stem", SECTIONS)
def test_a_section_opens_with_claims_answer_and_picture_and_ends_with_verdicts(stem: str) -> None:
    first, *_, last = (cell.source for cell in NOTEBOOKS[stem].cells)
    claims, answer, picture = map(first.index, ("*What the paper says.*", "*The answer.*", "*The picture.*"))
    assert claims < answer < picture
    assert re.search(r"claim C\d+", first)
    assert "{glue:text}" in first[answer:picture]
    assert re.findall(r"\{numref\}`(fig-[\w-]+)`", first[picture:]) == [*figures(stem)][:1]
    assert "\n## " not in first
    assert re.findall(r"^## (.*)$", last, re.MULTILINE)[-1] == "The verdicts"
    assert re.search(r"\{glue:text\}`09_verdicts\.ipynb::c\d+-", last[last.index("## The verdicts") :])


@pytest.mark.parametrize("stem", SECTIONS)
def test_captions_stand_alone(stem: str) -> None:
    elsewhere = r"\b(?:(?:named|shown|as|seen) (?:above|below|before)|the same runs|previous|next figure)\b"
    assert re.findall(elsewhere, str(figures(stem))) == []
