"""Every number that a page types is what its place shows, and what the code knows is what tables of
the book say.
"""

import inspect
import json
import re

import numpy as np
import pytest

import typed_numbers
from leamvd import LEAMVD
from leamvd.networks.dbn import Training
from leamvd.optimizers import lea_mvd
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.mnist import N_TRAIN
from leamvd_paper.studies import classification, readings, stacks
from leamvd_paper.studies.layers import Images, Study
from typed_numbers import PAGES, PLACES, ROOT

KNOWN = json.loads(PLACES.read_text(encoding="utf-8"))
BOOK = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "book").rglob("*.md")}


@pytest.mark.parametrize("page", PAGES)
def test_each_number_is_what_its_place_shows(page: str) -> None:
    passages = typed_numbers.passages(page)
    assert len(passages) == len(KNOWN[page]), "python tests/typed_numbers.py --accept"
    wrong = [
        typed_numbers.wrong(text, places)
        for (text, _), places in zip(passages, KNOWN[page], strict=True)
    ]
    assert not any(wrong), "mend them, or python tests/typed_numbers.py --accept"


def test_numbers_that_are_wrong_by_one_or_stand_in_the_place_of_another_are_noticed() -> None:
    seen = [noticed for page in PAGES for noticed in typed_numbers.noticed(page)]
    assert sum(seen) >= 0.9 * len(seen)
    assert len(seen) > 500
    page = zip(typed_numbers.passages("03_mnist_7x7"), KNOWN["03_mnist_7x7"], strict=True)
    ((text, places),) = [
        (text, places) for (text, _), places in page if "1,160 against 1,320" in text
    ]
    assert typed_numbers.wrong(text, places) == []
    for other in ("1,320 against 1,160", "1,160 against 1,321"):
        assert typed_numbers.wrong(text.replace("1,160 against 1,320", other), places)


def test_places_are_near_and_percent_is_before_its_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {"a": [0.25, 30.4], "b": [25.0]}
    monkeypatch.setattr(typed_numbers, "shown", lambda _: shown)
    for text, found in {
        "25 % of them": ["a:0"],
        "25 of them": ["b:0"],
        "24 to 25 %": ["", "a:0"],
        "30 runs": ["a:1"],
        "49 runs": [""],
        "50 epochs": ["code"],
        "51 epochs": [""],
        "RBM 2 and 30": ["a:1"],
        "in 2019, 3 times": [],
    }.items():
        assert list(typed_numbers.places(text, ["a", "b"])) == found, text


def test_the_table_of_experiments_has_the_defaults() -> None:
    usual = [vars(kind()) for kind in (Study, Training, Images)] + [vars(Reading().complete())]
    table = BOOK["items"].partition(":name: tab-experiments")[2]
    defaults = dict(
        pair
        for cell in re.findall(r"^    E\d+\n  - ([^;\n]*)", table, re.MULTILINE)
        for pair in re.findall(r"`(\w+)=([^`]+)`", cell)
    )
    assert len(defaults) > 15
    for name, text in defaults.items():
        assert eval(text) == next(one[name] for one in usual if name in one), name


def test_the_table_of_studies_has_their_sizes() -> None:
    large = stacks.PROFILES["28x28"]
    studies = {"A": stacks.PAPER, "B": large["fewer"], "C": large["variants"], "D": large["paper"]}
    studies |= {"readings": readings.PAPER, "classification": classification.PAPER}
    row = r"^\* - (\w+)\n  - (.+)\n  - ([\d,]+)\n  - ([\d, ]+)\n"
    rows = {name: found for name, *found in re.findall(row, BOOK["before_the_runs"], re.MULTILINE)}
    assert rows.keys() == studies.keys()
    for name, (what, n_images, runs) in rows.items():
        images, layers = studies[name].images, studies[name].layers
        assert n_images == f"{images.n_images or N_TRAIN:,}"
        assert int(runs.split(",")[0]) == len(studies[name].seeds)
        if re.search(r"\d-\d", what):
            assert what.endswith(
                f"{images.side}×{images.side} pixels, "
                + "-".join(map(str, (images.side**2, *layers)))
            )


def test_the_listing_and_the_page_on_functions_have_the_defaults() -> None:
    usual = Reading().complete()
    limit = inspect.signature(LEAMVD).parameters["sigma_min"].default
    input_line = (
        rf"$\lambda = {usual.population_size}$, $n_\text{{elite}} = {Training().n_elite}$, "
    )
    for text in (
        input_line,
        rf"$n_\text{{gen}} = {usual.n_gen},$ $\sigma_\text{{min}} = 10^{{{np.log10(limit):g}}}$",
    ):
        assert text in BOOK["method"]
    assert lea_mvd.STAGNATION == 10
    assert "After ten failures in a row comes the *reset*" in BOOK["method"]
    assert f"`sigma_min` ({limit:.0e})".replace("e-0", "e-") in BOOK["optimize"]
