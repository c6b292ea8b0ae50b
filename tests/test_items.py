"""Items R1-R19 and E1-E11: each has its line in a table of their page, and each mention of one leads there."""

import ast
import dataclasses
import re

import pytest
from prose import NOTEBOOKS, PAGES, figures, markdown

from leamvd.experiments.layers import COLUMNS
from leamvd.studies import catalog
from leamvd.studies.study import Study, images

ITEMS = [f"R{n}" for n in range(1, 20)] + [f"E{n}" for n in range(1, 12)]

# What is no prose: code, mathematics, and the lines that the links lead to.
SKIPPED = re.compile(
    r"^```.*?^```$|^\* - \(item-\w+\)=\n    \w+$|`[^`]*`|\$\$.*?\$\$|\$[^$\n]*\$", re.DOTALL | re.MULTILINE
)
LINK = re.compile(r"\[([RE]\d+)\]\(#item-(\w+)\)")
MENTION = re.compile(r"\b[RE][1-9]\d?\b")


def test_every_item_has_its_line() -> None:
    listed = re.findall(r"^\* - \(item-(\w+)\)=\n    (\w+)$", PAGES["items"], re.MULTILINE)
    assert listed == [(item.lower(), item) for item in ITEMS]


@pytest.mark.parametrize("stem", [*PAGES, *NOTEBOOKS])
def test_a_mention_is_a_link_to_its_line(stem: str) -> None:
    captions = map(str, figures(stem).values()) if stem in NOTEBOOKS else []
    text = SKIPPED.sub("", "\n".join([markdown(stem), *captions]))
    assert [link for link in LINK.findall(text) if link[0].lower() != link[1] or link[0] not in ITEMS] == []
    assert MENTION.findall(LINK.sub("", text)) == [], "write [E7](#item-e7)"


def test_options_of_the_experiments_are_those_that_a_study_takes() -> None:
    """Each default is that of the library, and each other value is another one that it takes."""
    study = Study()
    known = {
        field.name: getattr(part, field.name)
        for part in (study.training, study.reading, study)
        for field in dataclasses.fields(part)
    }
    rows = re.findall(r"\* - \(item-e\d+\)=\n    E\d+\n  - (.+); (.+)\n", PAGES["items"])
    assert len(rows) == 11
    for options, others in rows:
        if options.endswith("columns of the rows"):
            assert set(re.findall(r"`(\w+)`", options + others)) <= set(COLUMNS)
            continue
        defaults = dict(re.findall(r"`(\w+)=([^`]+)`", options))
        assert {name: ast.literal_eval(value) for name, value in defaults.items()} == {n: known[n] for n in defaults}
        for name, value in re.findall(r"`(?:(\w+)=)?([^`]+)`", others):
            option = name or "".join(defaults)
            assert ast.literal_eval(value) != known[option]
            other = catalog.study("mnist-7x7", "quick", **{option: ast.literal_eval(value)})
            if option != "n_images":  # of which the digits have fewer
                images(other)
