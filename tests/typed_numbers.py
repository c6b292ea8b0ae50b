"""The numbers that pages type, and the places that show them.

``typed_numbers.json`` has a place for each number of a page, in their order: a cell, and which of
the numbers that it shows. Where the number is part of one of `KNOWN`, whose numbers the code has,
the place is "code".

    python tests/typed_numbers.py             move each number by one in its last digit: how many
    are noticed? python tests/typed_numbers.py --accept    take the nearest cells that show the
    numbers as their places
"""

import functools
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

from leamvd import minimize
from leamvd.networks.dbn import fine_tune
from leamvd.optimizers.reading import Reading
from leamvd_paper.book.render import FOLDED
from leamvd_paper.data.mnist import N_TRAIN
from leamvd_paper.studies import architectures, benchmarks, error_measures, readings
from leamvd_paper.studies.stacks import PAPER

ROOT = Path(__file__).parent.parent
NOTEBOOKS = {path.stem: path for path in sorted((ROOT / "notebooks").glob("*.ipynb"))}
PAGES = {**NOTEBOOKS, "index": ROOT / "book" / "index.md", "README": ROOT / "README.md"}
PLACES = Path(__file__).with_suffix(".json")
Passage = tuple[str, list[str]]  # a text, and the cells that it may speak of, the nearest first

NUMBER = re.compile(r"(?<![\w.,×-])[-−]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w×])")
NO_NUMBERS = re.compile(
    r"```.*?```|^:\w+:.*?$|!\[[^\]]*\]|(?<=\])\([^)]*\)|`[^`]*`|\$\$[^$]*\$\$|\$[^$]*\$|RBM"
    r" \d(?: and \d\b)?"
    r"|Sections? \d+(?: and \d+)?|\d+×\d+|95 %|eq\. \(\d+\)|arXiv:[\d.]+",
    re.MULTILINE | re.DOTALL,
)
"""Code, options, pictures, addresses, formulas and names."""

_RUNS, _SIZE = PAPER.training, PAPER.reading.population_size
_PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
_AUTO = (
    minimize(lambda X: (X**2).sum(axis=1), [1.0], vectorized=True, sigma0="auto", n_gen=1).nfev
    - _SIZE
)
_MOMENTUM = inspect.signature(fine_tune).parameters["momentum"].default
_DRAWN = _SIZE - _RUNS.n_elite
_FEW = f"{error_measures.FEWER.images.n_images:,}"
KNOWN = {
    *(
        f"{_SIZE} candidates",
        f"population of {_SIZE}",
        f"the others {_SIZE}",
        f"{_SIZE} draws",
        f"best of {_SIZE}",
    ),
    *(f"draws {_DRAWN} anew", f"evaluates {_DRAWN} candidates", f"{len(PAPER.seeds)} seeds"),
    *(f"{PAPER.reading.n_gen} {word}" for word in ("epochs", "generations")),
    *(
        f"{Reading().complete().n_gen} generations",
        "of {} to {}, both".format(*benchmarks.MARKS[4::3]),
    ),
    *(
        f"{N_TRAIN:,} images",
        f"same as {N_TRAIN:,}",
        f"{_FEW} images",
    ),
    *(
        f"{readings.PAPER.images.n_images:,} images",
        f"{readings.PAPER.images.n_images:,} training images",
    ),
    *(f"{readings.Settings.budget:,} evaluations", f"at 1 and {benchmarks.Moved.by:g}"),
    f"{len(architectures.AGAIN.methods)} candidates, six",
    *(
        f"RBM with {PAPER.layers[0]}",
        f"RBM 3 has {PAPER.layers[2]}",
        "-".join(map(str, (7 * 7, *PAPER.layers))),
    ),
    *(
        f"deviation of {_RUNS.sigma0}",
        f"momentum {_MOMENTUM}",
        f"exponent of {PAPER.reading.exponent}",
    ),
    # 4 a weight; the errors' unit
    *("45 degrees", "takes 40,000 operations", "here 10,000", "per 10,000 images"),
    # the paper says, a cell's source, measured once
    *("mean error of 30 runs", "for 20 epochs", "1.3 GB", "about 420 MB"),
    *(
        f"Python {tomllib.loads(_PROJECT)['project']['requires-python'].strip('>=')}",
        f"with {_AUTO} evaluations",
    ),
}
"""What stands in the code, in the words around it."""


def numbers(text: str) -> Iterator[re.Match[str]]:
    """Yield the numbers of some sentences, without 0 to 3, which are words, and years."""
    for found in NUMBER.finditer(NO_NUMBERS.sub(lambda name: " " * len(name[0]), text)):
        if not re.fullmatch(r"[0-3]|19\d\d|20\d\d", found[0]):
            yield found


def value(text: str) -> Decimal:
    return Decimal(text.replace(",", "").replace("−", "-"))


@functools.cache
def shown(page: str) -> dict[str, list[float]]:
    """Return the numbers in the outputs of each code cell of a notebook, by the notebook's and the
    cell's name.
    """
    found = {}
    for cell in json.loads(NOTEBOOKS[page].read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            data = [output.get("data", {}) for output in cell["outputs"]]
            texts = [*("".join(output.get("text", "")) for output in cell["outputs"])]
            texts += [
                re.sub(r"<[^>]+>", " ", "".join(one.get("text/html", one.get("text/plain", ""))))
                for one in data
            ]
            found[f"{page}/{cell['id']}"] = [
                float(value(number[0])) for number in NUMBER.finditer(" ".join(texts))
            ]
    return found


def linked(text: str) -> list[str]:
    return [cell for page in NOTEBOOKS if f"notebooks/{page}" in text for cell in shown(page)]


def passages(page: str) -> list[Passage]:
    """Return the texts of a page.

    That above the first heading speaks of all its cells, a page of those it links to, and each
    section of its own and of those that the page ends with.
    """
    if page not in NOTEBOOKS:
        text = re.sub(r"```.*?```", "", PAGES[page].read_text(encoding="utf-8"), flags=re.DOTALL)
        others = linked(text) if page == "index" else []
        return [(part, [*linked(part), *others]) for part in re.split(r"\n\n|\n(?=[*-] )", text)]
    # a section, and a text of it or the name of a cell
    section, entries = 0, list[tuple[int, str, str]]()
    folded = -1
    for cell in json.loads(NOTEBOOKS[page].read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            entries.append((section, "", f"{page}/{cell['id']}"))
            continue
        for text in re.split(r"^(?=## )", "".join(cell["source"]), flags=re.MULTILINE):
            section += text.startswith("## ")
            if text.startswith(FOLDED):
                folded = section
            entries.append((section, text, ""))
    found = []
    for here, (own, text, _) in enumerate(entries):
        cells = [
            (abs(at - here), cell)
            for at, (other, _, cell) in enumerate(entries)
            if cell and (own in (0, other) or other == folded)
        ]
        found.append((text, [cell for _, cell in sorted(cells, key=lambda one: one[0])]))
    return [(text, cells) for text, cells in found if text]


def shows(place: str, text: str, number: re.Match[str]) -> bool:
    """Return whether a place shows a number of a text to the digits typed, or its hundredth before
    a percent sign.
    """
    if place == "code":
        around = (
            (text.find(known, max(0, number.start() - len(known))), len(known)) for known in KNOWN
        )
        return any(
            -1 < start <= number.start() and start + length >= number.end()
            for start, length in around
        )
    cell, _, at = place.partition(":")
    typed, measured = value(number[0]), shown(cell.partition("/")[0])[cell][int(at)]
    factors = (
        (1, 100)
        if re.match(r"[\d\s.,()−]*(?:(?:and|to) [\d.,]+\s)?%", text[number.end() :])
        else (1,)
    )
    return any(
        round(factor * measured, -typed.as_tuple().exponent) == float(typed) for factor in factors
    )


def places(text: str, cells: list[str]) -> Iterator[str]:
    """Yield a place for each number of a text, an empty one where no cell shows it."""
    candidates = [
        "code",
        *(
            f"{cell}:{at}"
            for cell in cells
            for at in range(len(shown(cell.partition("/")[0])[cell]))
        ),
    ]
    for number in numbers(text):
        yield next((place for place in candidates if shows(place, text, number)), "")


def wrong(text: str, known: list[str]) -> list[str]:
    """Return the numbers of a text that their places do not show, in their words."""
    found = list(numbers(text))
    if len(found) != len(known):
        return [f"{len(found)} numbers and {len(known)} places"]
    bad = [
        number
        for number, place in zip(found, known, strict=True)
        if not place or not shows(place, text, number)
    ]
    return [text[max(0, number.start() - 40) : number.end() + 20] for number in bad]


def noticed(page: str) -> Iterator[bool]:
    """Yield for each number of a page whether it is noticed when it is higher by one in its last
    digit.
    """
    for (text, _), known in zip(
        passages(page), json.loads(PLACES.read_text(encoding="utf-8"))[page], strict=True
    ):
        for number in numbers(text):
            typed = value(number[0])
            moved = typed + Decimal((0, (1,), typed.as_tuple().exponent))
            yield bool(wrong(f"{text[: number.start()]}{moved:,}{text[number.end() :]}", known))


if __name__ == "__main__":
    if "--accept" in sys.argv:
        taken = {page: [list(places(*passage)) for passage in passages(page)] for page in PAGES}
        PLACES.write_text(
            "{\n"
            + ",\n".join(f'"{page}": {json.dumps(own)}' for page, own in taken.items())
            + "\n}\n"
        )
    seen = [one for page in PAGES for one in noticed(page)]
    print(
        f"{sum(seen)} of {len(seen)} numbers are noticed when they are higher by one in the last"
        " digit"
    )
