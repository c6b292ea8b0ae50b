"""Every number that a text types is shown by a cell under the same heading, to the digits typed.

The text above the first heading speaks of the whole page; the book's first page speaks of the notebooks that it links
to. What is known and not measured stands in `KNOWN` or in the notebook's parameters.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))

KNOWN = {
    *("24", "20", "50", "49", "30", "60,000", "10,000"),  # individuals, generations, seeds and images
    *("0.1", "0.9", "45", "120", "40,000"),  # the first standard deviation, momentum, degrees, units, four elites of it
}

NUMBER = re.compile(r"(?<![\w.,×-])[-−]?\d[\d,]*(?:\.\d+)?(?![\w×])")
NO_NUMBERS = re.compile(
    r"\[[^\]]*\]\([^)]*\)|`[^`]*`|\$\$[^$]*\$\$|\$[^$]*\$|^#.*$|RBM \d( and \d)?|Sections? \d+( and \d+)?|\d+×\d+|95 %",
    re.MULTILINE,
)
"""Links, code, formulas, headings and names."""


def numbers(text: str) -> list[str]:
    """Return the numbers of a text as Python writes them."""
    return [found.rstrip(",").replace(",", "").replace("−", "-") for found in NUMBER.findall(text)]


def parts(notebook: dict[str, Any]) -> list[tuple[str, list[float]]]:
    """Return the text under each second-level heading, and the numbers that cells show there."""
    found: list[tuple[str, list[float]]] = [("", [])]
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            first, *others = re.split(r"^(?=## )", source, flags=re.MULTILINE)
            found[-1] = (found[-1][0] + first, found[-1][1])
            found += [(text, []) for text in others]
            continue
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            html = re.sub(r"<[^>]+>", " ", "".join(data.get("text/html", "")))
            text = "".join((*output.get("text", ""), *data.get("text/plain", ""), html))
            found[-1][1].extend(map(float, numbers(text)))
    return found


def typed(text: str) -> list[str]:
    """Return the numbers of some sentences, without 0 to 3, which are words, years, and what is known."""
    known = {number.replace(",", "") for number in KNOWN}
    candidates = numbers(NO_NUMBERS.sub(" ", text))
    return [number for number in candidates if not re.fullmatch(r"[0-3]|19\d\d|20\d\d", number) and number not in known]


def missing(text: str, shown: list[float]) -> list[str]:
    """Return the typed numbers that are not among those shown, neither as they are nor as a share in percent."""
    wrong = []
    for number in typed(text):
        digits, wanted = len(number.partition(".")[2]), float(number)
        if not any(wanted in (round(value, digits), round(100 * value, digits)) for value in shown):
            wrong.append(number)
    return wrong


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_cell_shows_each_number_under_its_heading(path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    found = parts(notebook)
    settings = [cell["source"] for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", [])]
    known = [float(number) for line in "".join(settings[0]).splitlines() for number in numbers(line.partition("#")[0])]
    everything = [value for _, values in found for value in values]
    wrong = {text[:40]: missing(text, known + (values if i else everything)) for i, (text, values) in enumerate(found)}
    assert not any(wrong.values()), wrong


def test_the_first_page_types_what_its_notebooks_show() -> None:
    text = (ROOT / "book" / "index.md").read_text(encoding="utf-8")
    linked = {path for path in NOTEBOOKS if f"notebooks/{path.stem}" in text}
    shown = [
        value
        for path in linked
        for _, values in parts(json.loads(path.read_text(encoding="utf-8")))
        for value in values
    ]
    assert missing(re.sub(r"```.*?```", "", text, flags=re.DOTALL), shown) == []
