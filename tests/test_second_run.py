"""What asks others for runs: the page with three commands, the form that takes a report, the letter
to the paper's authors, and the checklists of those who judge such work.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from leamvd_paper.book import sections
from leamvd_paper.studies import results, verify
from typed_numbers import numbers, value

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "book" / "repeat.md").read_text(encoding="utf-8")
LETTER = (ROOT / "article" / "letter.md").read_text(encoding="utf-8")


def quick_ends(title: str) -> dict[str, float]:
    """Return the mean errors on training images that the quick run plots in a panel."""
    path = ROOT / "tests" / "figures" / "quick" / "mnist-7x7-ends.json"
    panels = json.loads(path.read_text(encoding="utf-8"))
    (panel,) = [one for one in panels if one.get("title") == title]
    means = [points[0] for points in panel["arrays"] if len(points) == 1]
    rows = {}
    for error, place in means:
        if place % 1 == pytest.approx(0.85):  # below are test images
            rows[panel["texts"][round(place + 0.15)]] = error
    return rows


def test_the_page_has_the_numbers_of_the_quick_run() -> None:
    ends = quick_ends("RBM 3, own inputs")
    told = {method: value(number) for number, method in re.findall(r"([\d,.]+) by ([A-Z-]+)", PAGE)}
    assert {*told} == {"CD", "LEA-MVD", "CMA-ES"}
    for method, number in told.items():
        assert float(f"{ends[method]:.3g}") == float(number), method


def test_the_page_verifies_what_needs_no_mnist_and_its_section_can_be_run() -> None:
    ((names, report),) = re.findall(r"leamvd verify ([\w ]+) --report (\S+)", PAGE)
    assert {*names.split()} <= {*verify.all_recorded()}
    for name in names.split():
        assert "mnist" not in json.dumps(results.provenance(name)["settings"])
    assert PAGE.count(report) == 2
    (section,) = re.findall(r"leamvd reproduce ([\w-]+) --profile recorded", PAGE)
    assert "recorded" in sections.load([section])[0].profiles()


def test_the_page_says_how_far_numbers_may_differ() -> None:
    digits = re.findall(r"(\d) digits must agree, elsewhere (\d) to (\d)", PAGE)
    bounds = (verify.SAME, verify.FIRST_OF_LARGE, verify.FIRST)
    assert [tuple(10.0 ** -int(one) for one in digits[0])] == [pytest.approx(bounds)]


# of GitHub's forms
KINDS = {"markdown", "textarea", "input", "dropdown", "checkboxes"}


def test_the_form_has_what_a_code_host_needs_and_takes_the_report() -> None:
    text = (ROOT / ".github" / "ISSUE_TEMPLATE" / "second_run.yml").read_text(encoding="utf-8")
    form: dict[str, Any] = yaml.safe_load(text)
    assert all(isinstance(form[key], str) and form[key] for key in ("name", "description"))
    assert {*form} <= {"name", "description", "title", "labels", "assignees", "body"}
    asked = [entry for entry in form["body"] if entry["type"] != "markdown"]
    for entry in form["body"]:
        assert entry["type"] in KINDS
        assert {*entry} <= {"type", "id", "attributes", "validations"}
        assert entry["attributes"]["label" if entry in asked else "value"]
    for key in ("id", "label"):
        found = [entry.get(key) or entry["attributes"][key] for entry in asked]
        assert len({*found}) == len(found) > 0
    assert all(re.fullmatch(r"[\w-]+", entry["id"]) for entry in asked)
    (taken,) = [entry for entry in asked if ".json" in entry["attributes"].get("description", "")]
    assert taken["type"] == "textarea"
    assert taken["validations"]["required"] is True
    assert "render" not in taken["attributes"], "which takes no files"
    assert f'the form "{form["name"]}"' in PAGE


def test_the_letter_says_what_the_book_says_and_leaves_one_line_to_fill_in() -> None:
    pages = [(ROOT / "book" / "index.md").read_text(encoding="utf-8")]
    for name in ("03_mnist_7x7", "04_mnist_28x28", "08_classification", "13_settings_map"):
        path = ROOT / "notebooks" / f"{name}.ipynb"
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                pages.append("".join(cell["source"]))
    typed = {value(number[0]) for page in pages for number in numbers(page)}
    text = re.sub(r"^\d\. ", "", LETTER, flags=re.MULTILINE)
    found = [value(number[0]) for number in numbers(text)]
    assert len(found) > 10
    assert {*found} <= typed
    assert re.findall(r"\[[^]]*\]", LETTER) == ["[name, e-mail, address of the repository]"]
    assert len(re.findall(r"^\d\. \*", LETTER, re.MULTILINE)) == 5


def test_each_line_of_a_checklist_holds_or_is_the_owners() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    lists = re.split(r"^### ", text.partition("\n## Checklists\n")[2], flags=re.MULTILINE)[1:]
    *judges, _ = [one.partition("\n")[0].partition(",")[0] for one in lists]
    assert judges == ["ACM", "ReScience C", "JOSS"]
    for one in lists[:-1]:
        _, _, *rows = re.findall(r"^\|(.*)\|$", one, re.MULTILINE)
        assert len(rows) >= 9
        for row in rows:
            line, holds, where = (cell.strip() for cell in row.split(" | "))
            assert line
            assert where
            assert holds in ("yes", "owner"), row
