"""The article: its numbers are the book's, its text types none, and its PDF is four pages."""

import json
import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leamvd_paper.studies import explanation
from leamvd_paper.studies.layers import last
from leamvd_paper.studies.results import read_recorded

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "article" / "article.typ").read_text(encoding="utf-8")
BUILD = runpy.run_path(str(ROOT / "article" / "build.py"))

NO_RESULTS = re.compile(
    r"```.*?```|`[^`]*`|//[^\n]*"  # commands and comments
    r"|#n\.\w+|@\w+|<\w+>|\$[^$]*\$"  # names of numbers, works and figures; formulas
    r"|\d+×\d+|RBM[~ ]\d(?:\s+and\s+\d)?|\bC\d+|95~%|\(0, 1?|arXiv:\d+\.\d+",
    re.DOTALL,
)
"""What may have digits: sizes of images, names of RBMs and claims, what an interval holds, N(0, 1),
the paper's address.
"""
WORDS = re.compile(
    r"\b(?:four|five|six|seven|eight|nine|ten|eleven|twelve|[a-z]+teen|twenty|thirty|forty|fifty|half"
    r"|twice|dozens?|hundreds?|thousands?|millions?)\b"
)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with all that Typst needs."""
    folder = tmp_path_factory.mktemp("article")
    BUILD["prepare"](folder)
    return folder


@pytest.fixture(scope="module")
def numbers(made: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((made / "numbers.json").read_text(encoding="utf-8"))
    return found


def test_the_text_types_no_number_of_a_result() -> None:
    """Numbers from one to three may be words, as anywhere in the book."""
    prose = NO_RESULTS.sub("", TEXT)
    assert re.findall(r"\S*\d\S*", prose) == []
    assert WORDS.findall(prose) == []


def test_every_number_has_a_name_and_every_name_is_used(numbers: dict[str, Any]) -> None:
    assert {*re.findall(r"\bn\.(\w+)", TEXT)} == numbers.keys()
    assert not re.findall(r"#n\.\w+;", TEXT), "a semicolon there ends the name, and is not printed"
    assert all(numbers[name] for name in numbers.keys() - {"address"})
    assert "nan" not in json.dumps(numbers).lower()


SHOWN = {  # lines that cells of the book print
    "05_linear_cost": ["LEA-MVD's part of a generation in the layers: {optimizer_percent} %"],
    "06_what_the_error_measures": ["{few_left} searches of LEA-MVD in the last RBM"],
    "09_verdicts": [
        "{corrected} of {n_answers} answers are changed",
        "intervals {wider} times as wide, by {image_sets} sets",
    ],
    "10_explanation": ["at 28×28 pixels {left_large} searches left their start"],
    "12_longer_searches": ["separable CMA-ES overtakes LEA-MVD on {use_overtaken} problems"],
    "13_settings_map": [
        "searches lower the error of RBM 1 by {c3_falls} %",
        "LEA-MVD is below CD in RBM 2 in {map_lea2} choices",
        "LEA-MVD is below CD in RBM 3 in {map_lea3} choices",
        "start is below CD in RBM 2 in {map_start2} choices",
        "start is below CD in RBM 3 in {map_start3} choices",
        "RBM 2: the start is below CD in all seeds in {large_start2} of {choices} choices",
        "RBM 3: the start is below CD in all seeds in {large_start3} of {choices} choices",
        "rank correlation of the factor with RBM 3 over the constant image: {near_rank}",
        "LEA-MVD as printed, RBM 2: {near_printed2} times CD's error",
        "LEA-MVD as printed, RBM 3: {near_printed3} times CD's error",
        "the start's are the worst in {networks_worst}",
        "where CD tells images apart {networks_met} answers",
    ],
}


@pytest.mark.parametrize("page", SHOWN)
def test_numbers_are_those_that_the_book_shows(page: str, numbers: dict[str, Any]) -> None:
    notebook = json.loads((ROOT / "notebooks" / f"{page}.ipynb").read_text(encoding="utf-8"))
    printed = ""
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            printed += "".join(output.get("text", ""))
    for line in SHOWN[page]:
        assert line.format(**numbers) in printed


def test_numbers_by_hand(numbers: dict[str, Any]) -> None:
    tuned = last(read_recorded("classification_28x28"), "epoch").groupby("method")["test_error"]
    assert numbers["wrong_large_cd"] == f"{100 * tuned.mean()['cd']:.2f}"
    started = read_recorded("few_updates").query(
        "n_images == 60_000 and momentum_epochs == 5 and features == 'own' and layer == 3"
    )
    ends = last(started).set_index(["method", "batches", "seed"]).sort_index()["mean_field"]
    ratios = ends["start", 30] / ends["cd", 0]
    assert numbers["few_error"] == f"{np.exp(np.log(ratios).mean()):.3g}"
    starts = read_recorded("map_28x28").query(
        "method == 'start' and inputs == 'own' and protocol == '0.01/0.003' and batches == 5"
    )
    errors = np.log(starts["mean_field"]).groupby(starts["layer"]).mean()
    found = [float(numbers[name].replace(",", "")) for name in ("near2", "near3")]
    np.testing.assert_allclose(np.exp(errors[[2, 3]]), found, rtol=5e-3)
    pairs = read_recorded("explanation", "pairs").query("layer == 1 and sigma == 0.01")
    steps = 2 * 1.9477 * pairs["slope"] / pairs["curvature"]
    assert float(numbers["step_rbm1"]) == pytest.approx(np.exp(np.log(steps).mean()), rel=5e-3)


def values(text: str) -> list[float]:
    """Return the numbers of a text: "0.75 (0.70 to 0.79)"."""
    return [float(one.replace(",", "")) for one in re.findall(r"\d[\d,.]*", text)]


def test_numbers_are_on_the_side_that_the_sentences_say(numbers: dict[str, Any]) -> None:
    others = numbers.keys() - {"claims", "version"}
    found = {name: values(numbers[name]) for name in others}
    above = "wrong_ratio_small wrong_ratio_large rbm2_printed rbm2_shared rbm2_large rbm3_large"
    above += " times_5000 times_900 use_smooth_two use_smooth_ten near_printed2 near_printed3"
    above += " few_constant least_large near_constant times_rbm1 times_others"
    below = "rbm3_printed rbm3_shared rbm2_cma_es rbm3_cma_es start_rbm3 use_rbm_half use_rbm_two"
    below += " few_error few_sampled few_features few_cd"
    assert all(min(found[name]) > 1 for name in above.split())
    assert all(max(found[name]) < 1 for name in below.split())
    low, high = found["use_minima_two"][1:]
    assert low < 1 < high
    for name in ("left_large", "few_left", "moved_told", "near_moved", "choices_whole", "map_lea2"):
        assert found[name][0] == 0, name
    for name in ("few_below", "steps_longer", "use_overtaken", "same_answers"):
        assert found[name][0] == found[name][1], name
    assert found["probe_few"] < found["probe_cd"]
    assert found["wrong_small_cd"] < found["wrong_small_lea"]
    assert found["wrong_large_cd"] < found["wrong_large_lea"]
    assert not numbers["near_rank"].startswith("-"), "it was predicted to be negative"
    assert max(found["furthest_large"]) < min(found["furthest_small"])
    assert found["map_start2"] > found["map_lea2"]
    assert found["map_start3"] > found["map_lea3"]


def test_a_figure_has_the_same_bytes_each_time(tmp_path: Path) -> None:
    sizes = explanation.step_sizes(explanation.tables().pairs)
    drawn = []
    for name in ("once", "again"):
        folder = tmp_path / name
        folder.mkdir()
        BUILD["save"](BUILD["step_sizes"](sizes), "step_sizes", 1.9, 1, folder)
        drawn.append((folder / "step_sizes.svg").read_bytes())
    assert drawn[0] == drawn[1]


def test_every_work_has_a_doi_but_one_that_has_none() -> None:
    works = re.split(
        r"^@", (ROOT / "book" / "references.bib").read_text(encoding="utf-8"), flags=re.M
    )
    without = [work for work in works[1:] if not re.search(r"\n  doi +?= \{10\.\d{4,}/", work)]
    assert [re.match(r"\w+\{(\w+)", work)[1] for work in without] == ["glorot2010"]


def test_the_pdf_is_four_pages_and_has_the_same_bytes_each_time(made: Path) -> None:
    typst = pytest.importorskip("typst")
    first = BUILD["compiled"](made).read_bytes()
    assert first.startswith(b"%PDF")
    assert BUILD["compiled"](made).read_bytes() == first
    pages = typst.compile(made / "article.typ", format="svg", root=made, ignore_system_fonts=True)
    assert len(pages) == 4
