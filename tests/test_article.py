"""The article: its numbers are the book's, its text types none, and its PDF is four pages."""

import json
import re
import runpy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd_paper.studies import (
    architectures,
    claims,
    explanation,
    longer_searches,
    plots,
    readings,
    results,
    stacks,
)
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
    names = BUILD["prepare"].__globals__
    numbers_of = names["numbers"]

    def noted(*arguments: Any) -> dict[str, Any]:
        GIVEN[:] = arguments
        found: dict[str, Any] = numbers_of(*arguments)
        return found

    names["numbers"] = noted
    BUILD["prepare"](folder)
    names["numbers"] = numbers_of
    return folder


GIVEN: list[Any] = []


@pytest.fixture(scope="module")
def given(made: Path) -> list[Any]:
    """Return what the numbers were made of: the map, the parts of claims on it, and step sizes."""
    return GIVEN


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


# ---- each number again, by pandas from what is recorded, or from a table made by hand


def near(text: str, *expected: float) -> None:
    """Hold numbers of a text, with three digits, to what they should be."""
    np.testing.assert_allclose(values(text)[: len(expected)], expected, rtol=6e-3)


def mean_of(rows: pd.Series) -> float:
    """Return a geometric mean."""
    return float(np.exp(np.log(rows).mean()))


def test_words_of_numbers() -> None:
    listed = BUILD["listed"]
    assert [listed(["A"]), listed("AB"), listed("ABC")] == ["A", "A and B", "A, B and C"]
    assert BUILD["ends"](pd.Series([3.0, 1000.0, 2.5])) == "2.50 to 1,000"
    assert BUILD["share"](pd.Series([True, False, True])) == "2 of 3"
    assert BUILD["effect"](SimpleNamespace(effect=2, low=1, high=4)) == "2.0 (1.0 to 4.0)"
    rows = pd.DataFrame({"a": [1, 2, 2], "b": [3, 4, 5]})
    assert BUILD["one"](rows, "a == 1").b == 3
    with pytest.raises(ValueError, match="too many"):
        BUILD["one"](rows, "a == 2")


def test_numbers_of_the_setup_are_those_of_what_was_run(numbers: dict[str, Any]) -> None:
    for size, name, layers in (
        ("small", "mnist_7x7", [(49, 30), (30, 30), (30, 120)]),
        ("large", "mnist_28x28", [(784, 500), (500, 500), (500, 2000)]),
    ):
        runs = read_recorded(name)
        shapes = runs.drop_duplicates("layer").sort_values("layer")
        assert [*zip(shapes["n_visible"], shapes["n_hidden"], strict=True)] == layers
        told_layers = [layers[0][0], *(n_hidden for _, n_hidden in layers)]
        assert numbers[f"layers_{size}"] == "-".join(map(str, told_layers))
        assert numbers[f"seeds_{size}"] == str(runs["seed"].nunique())
        assert numbers["images"] == f"{runs['n_images'].max():,}" == "60,000"
    assert numbers["variables"] == f"{500 * 2000 + 500 + 2000:,}"
    assert numbers["iterations"] == str(runs["iteration"].max()) == "50"
    assert numbers["sigma"] == numbers["scale"] == numbers["rate"] == "0.1"
    assert (numbers["batch"], numbers["reset"]) == ("100", "1")
    assert float(numbers["margin"]) == claims.Margins().factor
    items = (ROOT / "book" / "items.md").read_text(encoding="utf-8")
    for name, letter in (("algorithm", "r"), ("experiments", "e")):
        marks = re.findall(rf"\(item-{letter}(\d+)\)=", items)
        assert sorted(map(int, marks)) == [*range(1, int(numbers[f"open_{name}"]) + 1)]
    folders = [path.parent for path in results.ARCHIVE.glob("*/provenance.json")]
    assert numbers["tables"] == str(len(folders))
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {numbers['version']}\n" in citation.replace('"', "")
    assert f"\nlicense: {numbers['license']}\n" in citation
    authors = citation.partition("\nauthors:\n")[2].partition("\nversion:")[0]
    assert all(name in authors for name in re.split(", | and ", numbers["authors"]))


def test_numbers_of_costs_are_of_the_bench() -> None:
    effects = pd.DataFrame({"claim": ["C1", "C2", "C1", "C3"], "effect": [1.02, 1.98, 0.97, 9.0]})
    found = BUILD["of_cost"](effects)
    assert (found["slopes"], found["slope_cma_es"]) == ("0.970 to 1.02", "1.98")
    split = read_recorded("linear_cost", "split")
    percent = 100 / (1 + split["objective_seconds"] / split["optimizer_seconds"])
    near(found["optimizer_percent"], percent.min(), percent.max())
    bench = read_recorded("linear_cost", "optimizers").query("status == 'ok' and threads == 1")
    seconds = bench[bench["n"] == 1_000_000].set_index(["method", "dtype"])["generation_seconds"]
    times = []
    for (method, dtype), value in seconds.items():
        if method != "leamvd":
            times.append(value / seconds["leamvd", dtype])
    near(found["others_times"], min(times), max(times))
    largest = read_recorded("linear_cost", "optimizers").query("method == 'leamvd'")["n"].max()
    assert found["largest_n"] == f"{largest:,}"
    assert found["beside_n"] == "1,000,000"


def test_effects_of_the_verdicts_are_those_of_their_parts() -> None:
    expected: dict[str, tuple[str, ...]] = {}
    printed = "as printed"
    for name, claim in (("rbm1_printed", "C3"), ("times_5000", "C7"), ("times_900", "C8")):
        expected[name] = (claim, printed, "7×7 pixels, RBM 1", "LEA-MVD", "none")
    for name, claim in (("rbm2_large", "C7"), ("rbm3_large", "C8")):
        expected[name] = (claim, "conclusion", "28×28 pixels", "LEA-MVD", "CD")
    for name, side in (("small", "7×7"), ("large", "28×28")):
        where = f"networks, {side} pixels"
        expected[f"wrong_ratio_{name}"] = ("C15", "both", where, "LEA-MVD", "CD")
    for layer in (2, 3):
        where = f"7×7 pixels, RBM {layer}"
        expected[f"rbm{layer}_printed"] = ("C5", printed, where, "LEA-MVD", "CD")
        expected[f"rbm{layer}_shared"] = ("C5", "conclusion", where, "LEA-MVD", "CD")
        expected[f"rbm{layer}_cma_es"] = ("C5", "conclusion", where, "LEA-MVD", "CMA-ES")
    rows = [*expected.values()]
    rows.append(("C3", "conclusion", *rows[0][2:]))
    rows += [(claim, printed, "28×28 pixels", "CD", "none") for claim in ("C7", "C8")]
    rows += [("C5", printed, f"7×7 pixels, RBM {n}", "LEA-MVD", "CMA-ES") for n in (1, 2, 3)]
    names = ["claim", "view", "where", "method", "baseline"]
    evidence = pd.DataFrame(rows, columns=names)
    for name, away in (("effect", 0), ("low", -5), ("high", 5)):
        evidence[name] = 100.0 + 10 * np.arange(len(rows)) + away
    answers = pd.DataFrame(
        {
            printed: ["partly", "not reproduced", "partly", "reproduced"],
            "conclusion": ["partly", "partly", "undecided", "reproduced"],
            f"furthest from the claim, {printed}": ["C_ani (-2 to 3)", "x", "y", "z"],
        },
        index=["C3", "C4", "C5", "C15"],
    )
    found = BUILD["of_verdicts"](evidence, answers)
    for i, name in enumerate(expected):
        assert values(found[name]) == [100 + 10 * i, 95 + 10 * i, 105 + 10 * i], name
    first, *_, last_one = found["claims"]
    assert first == ["C3", claims.SHORT["C3"], "C (−2 to 3)", "partly"]
    assert last_one == ["C15", claims.SHORT["C15"], "z", "reproduced"]
    counts = ("n_claims", "same_answers", "n_partly", "n_not_reproduced", "n_reproduced")
    assert [found[name] for name in counts] == ["4", "2 of 4", "2", "1", "1"]
    assert (found["n_answers"], found["printed_5000"], found["printed_900"]) == (
        "8",
        "5,000",
        "900",
    )
    changes = read_recorded("verdicts", "corrections")
    changed = sum(
        one != other for one, other in zip(changes["all"], changes["registered"], strict=True)
    )
    assert found["corrected"] == str(changed)


def test_numbers_of_stacks_are_those_of_the_start_alone(numbers: dict[str, Any]) -> None:
    top = "layer == 3 and inputs == 'own' and method == '{}'"
    alone = last(read_recorded("mnist_7x7_controls")).query(top.format("cd:n_gen=1"))
    cd = last(read_recorded("mnist_7x7")).query(top.format("cd")).set_index("seed")
    ratios = (alone.set_index("seed")["mean_field"] / cd["mean_field"]).dropna()
    near(numbers["start_rbm3"], mean_of(ratios))
    assert numbers["start_below"] == f"{(ratios < 1).sum()} of {len(ratios)}"
    searches = read_recorded("mnist_28x28").query("method == 'lea-mvd'")
    searches = searches[(searches["inputs"] == "own") | (searches["layer"] > 1)]
    left = []
    for _, run in searches.groupby(["inputs", "layer", "seed"]):
        ends = run.sort_values("iteration")["mean_field"]
        left.append(ends.min() < ends.iloc[0])
    assert numbers["left_large"] == f"{sum(left)} of {len(left)}"
    sets = read_recorded("image_sets")
    assert numbers["image_sets"] == str(sets["image_set"].nunique())
    near(numbers["wider"], stacks.image_sets(sets)["times as wide"].max())


def test_numbers_of_networks_are_of_their_last_epochs(numbers: dict[str, Any]) -> None:
    for size, name in (("small", "classification"), ("large", "classification_28x28")):
        tuned = last(read_recorded(name), "epoch")
        for short, method in (("cd", "cd"), ("lea", "lea-mvd")):
            wrong = 100 * tuned.loc[tuned["method"] == method, "test_error"].mean()
            near(numbers[f"wrong_{size}_{short}"], wrong)
    moved = read_recorded("classification_moved")
    wrong = 100 * moved.groupby(["method", "weights"])["test_error"].mean()
    near(numbers["wrong_moved"], wrong.min(), wrong.max())
    near(numbers["wrong_random"], wrong["random-1"].item())
    assert numbers["moved_told"] == f"0 of {len(wrong) - 1}", "each but CD's"


def test_numbers_of_doing_nothing_are_of_the_page_s_settings(numbers: dict[str, Any]) -> None:
    which = "n_images == 60_000 and momentum_epochs == 5 and features == 'own' and layer == 3"
    ends = last(read_recorded("few_updates").query(which)).set_index("seed")
    cd = ends[ends["method"] == "cd"]
    starts = ends[ends["method"] == "start"]
    few = starts[starts["batches"] == 30]
    of_error = few["mean_field"] / cd["mean_field"]
    of_ratio = few["mean_field_ratio"] / cd["mean_field_ratio"]
    near(numbers["few_sampled"], mean_of(few["sampled"] / cd["sampled"]))
    near(numbers["few_constant"], mean_of(few["mean_field_ratio"]))
    near(numbers["few_features"], mean_of(of_error / of_ratio))
    near(numbers["few_cd"], mean_of(cd["mean_field_ratio"]))
    below = []
    for _, rows in starts.groupby("batches"):
        below.append(mean_of(rows["mean_field"] / cd["mean_field"]) < 1)
    assert numbers["few_below"] == f"{sum(below)} of {len(below)}"
    assert [numbers[f"few{name}"] for name in ("", "_from", "_to")] == ["30", "10", "300"]
    searched = read_recorded("few_updates_searched").query(which).query("method == 'lea-mvd'")
    searched = searched[searched["batches"].between(10, 300)]
    falls = []
    for _, run in searched.groupby(["batches", "seed"]):
        errors = run.sort_values("iteration")["mean_field"]
        falls.append(errors.min() < errors.iloc[0])
    assert numbers["few_left"] == f"{sum(falls)} of {len(falls)}"
    assert numbers["few_seeds"] == str(starts.index.nunique())
    large = read_recorded("few_updates_28x28")
    assert numbers["large_seeds"] == str(large["seed"].nunique())
    own = last(read_recorded("mnist_28x28").query("method == 'cd' and inputs == 'own'"))
    both = large.merge(own, on=["layer", "seed"], suffixes=("", "_cd"))
    near(numbers["least_large"], (both["mean_field"] / both["mean_field_cd"]).min())
    probes = read_recorded("few_updates", "probes").query("layer == 3")
    for name, query in (("few", "method == 'start' and batches == 10"), ("cd", "method == 'cd'")):
        near(numbers[f"probe_{name}"], 100 * probes.query(query)["test_error"].mean())
    assert numbers["probe_batches"] == "10"


def over_cd(runs: pd.DataFrame) -> pd.DataFrame:
    """Return last errors of own inputs with their ratio to CD's of the same settings and seed."""
    ends = last(runs).query("inputs == 'own'")
    cd = ends[ends["method"] == "cd"]
    both = ends.merge(cd, on=["protocol", "layer", "seed"], suffixes=("", "_cd"))
    return both.assign(over=both["mean_field"] / both["mean_field_cd"])


def test_numbers_of_the_map_are_counts_of_its_choices(
    numbers: dict[str, Any], given: list[Any]
) -> None:
    on_map, evidence, _ = given
    cells = ["protocol", "batches"]
    for short, method in (("start", "start"), ("lea", "lea-mvd")):
        own = over_cd(on_map.runs).query(f"method == {method!r}")
        for layer in (2, 3):
            means = own[own["layer"] == layer].groupby(cells)["over"].agg(mean_of)
            assert numbers[f"map_{short}{layer}"] == str((means < 1).sum())
    large = over_cd(on_map.large)
    for layer in (2, 3):
        own = large[(large["layer"] == layer) & (large["method"] == "start")]
        worst = own.groupby(cells)["over"].max()
        assert numbers[f"large_start{layer}"] == str((worst < 1).sum())
    starts = large[large["method"] == "start"].set_index([*cells, "layer"]).sort_index()
    errors = np.log(starts["mean_field"]).groupby(level=[0, 1, 2]).mean().unstack()
    misses = (errors[2] - np.log(5000)) ** 2 + (errors[3] - np.log(900)) ** 2
    nearest = misses.idxmin()
    assert nearest == ("0.01/0.003", 5)
    named = [numbers[f"near_{name}"] for name in ("scale", "rate", "batches")]
    assert named == ["0.01", "0.003", "5"]
    ratios = np.log(starts["mean_field_ratio"]).groupby(level=[0, 1, 2]).mean().unstack()
    near(numbers["near_constant"], np.exp(ratios.loc[nearest, 3]))
    rank = stats.spearmanr(misses, ratios.loc[misses.index, 3]).statistic
    assert float(numbers["near_rank"]) == pytest.approx(rank, abs=0.006)
    here = large[(large["protocol"] == nearest[0]) & (large["batches"] == nearest[1])]
    for layer in (2, 3):
        printed = here[(here["method"] == "lea-mvd:printed") & (here["layer"] == layer)]
        near(numbers[f"near_printed{layer}"], mean_of(printed["over"]))
    searches = on_map.large.query(
        "protocol == '0.01/0.003' and batches == 5 and method == 'lea-mvd'"
    )
    moved = []
    for _, run in searches.groupby(["inputs", "layer", "seed"]):
        errors_of_run = run.sort_values("iteration")["mean_field"]
        moved.append(errors_of_run.iloc[-1] < errors_of_run.iloc[0])
    assert numbers["near_moved"] == f"{sum(moved)} of {len(moved)}"
    searched = on_map.large[on_map.large["method"] == "lea-mvd"].drop_duplicates(cells)
    assert numbers["choices_searched"] == str(len(searched))
    assert numbers["map_seeds"] == str(on_map.runs["seed"].nunique())
    assert numbers["map_seeds_large"] == str(on_map.large["seed"].nunique())
    assert numbers["map_images"] == f"{on_map.runs['n_images'].max():,}"
    falls = evidence.loc[evidence["claim"] == "C3", "effect"]
    assert numbers["c3_falls"] == f"{falls.min():.0f} to {falls.max():.0f}"
    every = evidence[evidence["claim"] != "C15"].drop_duplicates(cells)
    assert numbers["choices"] == str(len(every))


def test_answers_on_the_map_are_counted_by_claim_and_reading(
    numbers: dict[str, Any], given: list[Any]
) -> None:
    _, evidence, _ = given
    counts = {}
    whole = set()
    for (claim, *cell), rows in evidence.groupby(["claim", "protocol", "batches"]):
        for view in ("printed", "default", "conclusion"):
            views = [view] if view == "conclusion" else [view, "own", "both"]
            met = rows.loc[rows["view"].isin(views), "met"]
            if len(met) and claim in ("C3", "C4", "C5", "C10"):
                answer = claims.answer(met)
                counts[claim, view] = counts.get((claim, view), 0) + (answer == "partly")
                if answer == "reproduced":
                    whole.add(tuple(cell))
    assert numbers["c4_partly"] == str(counts["C4", "printed"])
    assert numbers["c5_partly"] == str(counts["C5", "printed"])
    assert numbers["c5_partly_default"] == str(counts["C5", "default"])
    assert numbers["choices_whole"] == str(len(whole))


def test_networks_of_the_map_are_counted_where_cd_tells_images_apart(
    numbers: dict[str, Any], given: list[Any]
) -> None:
    on_map, evidence, _ = given
    cd = last(on_map.runs).query("method == 'cd' and inputs == 'own'")
    means = cd.groupby(["protocol", "layer"])["mean_field_ratio"].agg(mean_of)
    blind = {protocol for protocol, mean in means.groupby("protocol").max().items() if mean > 0.9}
    networks = pd.concat(map(read_recorded, ("map_networks", "map_networks_more")))
    errors = networks.groupby(["protocol", "batches", "method", "weights"])["test_error"].mean()
    cells = {cell[:2] for cell in errors.index if cell[1] > 0}
    assert numbers["networks_choices"] == str(len(cells))
    worst = []
    for protocol, batches in cells:
        if protocol not in blind:
            both = pd.concat([errors[protocol, 0], errors[protocol, batches]])
            worst.append(both.idxmax()[0] == "start")
    assert numbers["networks_worst"] == f"{sum(worst)} of {len(worst)}"
    rows = evidence[(evidence["claim"] == "C15") & ~evidence["protocol"].isin(blind)]
    assert numbers["networks_met"] == f"{(rows['met'] == 'yes').sum()} of {len(rows)}"


def test_numbers_of_steps_are_of_all_layers(numbers: dict[str, Any]) -> None:
    sizes = {"small": "explanation", "large": "explanation_28x28"}
    pairs = pd.concat([read_recorded(name, "pairs") for name in sizes.values()])
    pairs = pairs[pairs["sigma"] == 0.01]
    steps = 2 * 1.9477 * pairs["slope"] / pairs["curvature"]
    means = steps.groupby([pairs["study"], pairs["layer"]]).agg(mean_of).sort_values()
    assert means.idxmax() == ("mnist-7x7", 1)
    *others, most = means
    near(numbers["step_others"], min(others), max(others))
    near(numbers["times_rbm1"], 0.1 / most)
    near(numbers["times_others"], 0.1 / max(others), 0.1 / min(others))
    assert numbers["steps_longer"] == f"{(means < 0.1).sum()} of {len(means)}"
    runs = [read_recorded(name) for name in sizes.values()]
    assert numbers["step_images"] == f"{max(own['n_images'].max() for own in runs):,}"
    assert numbers["step_seeds"] == str(pd.concat(runs)["seed"].nunique())
    search = ["layer", "method", "seed"]
    for size, name in sizes.items():
        last_step = {"small": "last_step_7x7", "large": "last_step_28x28"}[size]
        every = pd.concat([read_recorded(name), read_recorded(last_step)])
        every = every.sort_values("iteration", kind="stable").groupby(search)["mean_field"]
        fall = 100 * (1 - every.last() / every.first())
        furthest = fall.groupby(["layer", "method"]).mean().groupby("layer").max()
        near(numbers[f"furthest_{size}"], furthest.min(), furthest.max())


def test_numbers_of_use_are_over_separable_cma_es(numbers: dict[str, Any]) -> None:
    ratios = longer_searches.over_separable(longer_searches.early())
    recommended = "lea-mvd:population_size=8+reset=off+perturbation=added"
    own = ratios[ratios["method"] == recommended]
    snes = ratios[ratios["method"].str.startswith("snes")]["problem"]
    own = own[own["problem"].isin(snes)]
    kind = own["problem"].str.partition(",")[0].map(longer_searches.KINDS)
    for name, of_kind, of_mark, mark in (
        ("rbm", "RBM 1", "half", 0.5),
        ("rbm", "RBM 1", "two", 2),
        ("smooth", "smooth", "two", 2),
        ("smooth", "smooth", "ten", 10),
        ("minima", "many local minima", "two", 2),
    ):
        rows = own[(kind == of_kind) & (own["mark"] == mark)]
        means = rows.groupby("problem")["ratio"].agg(mean_of)
        expected = float(f"{mean_of(means):.2g}")
        assert values(numbers[f"use_{name}_{of_mark}"])[0] == pytest.approx(expected, rel=0.06)
        assert float(numbers[f"mark_{of_mark}"]) == mark
    assert numbers["use_seeds"] == str(own[kind == "RBM 1"]["seed"].nunique())
    assert numbers["use_evaluations"] == "100"
    ends = last(architectures.judged(), "mark")
    best = np.log(ends.set_index(["problem", "method", "seed"])["best"]).unstack("method")
    logs = best["sep-cma-es:population_size=16"] - best[recommended]
    means = logs.dropna().groupby("problem").mean()
    below = values(numbers["use_separable"])
    above = values(numbers["use_recommended"])
    assert below[1] == above[1] == len(means)
    assert below[0] <= (means < 0).sum()
    assert above[0] <= (means > 0).sum()
    assert below[0] + above[0] <= len(means)
    words = numbers["recommended"].split(", ")
    assert len(words) == 3
    assert "8" in words[0]


def test_numbers_of_the_second_program_are_of_the_rows_that_agree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = [
        ("cd", 30, 0.9, 1.1, "yes"),
        ("lea-mvd", 20, 0.5, 1.5, "undecided"),
        ("cd", 30, 0.1, 9.0, "no"),
        ("lea-mvd:printed", 25, 0.75, 2.5, "undecided"),
        ("lea-mvd", 20, 0.25, 0.5, "no"),
    ]
    table = pd.DataFrame(rows, columns=["method", "runs", "low", "high", "agree"])
    asked = []

    def agreement(theirs: pd.DataFrame, ours: pd.DataFrame) -> pd.DataFrame:
        asked.append({*theirs.columns} ^ {*ours.columns} > {"start_mean_field", "iteration"})
        asked.append({*ours["inputs"]} == {"own", "shared"})
        return table

    monkeypatch.setattr(readings, "agreement", agreement)
    found = BUILD["of_second_program"]()
    assert asked == [True, True]
    names = ("seeds", "cd", "cells", "undecided", "low", "high")
    expected = ["20", "1 of 2", "3", "2", "0.250", "2.50"]
    assert [found[f"second_{name}"] for name in names] == expected


def test_a_figure_is_as_wide_as_the_text_with_small_words_nearer_to_what_they_name(
    tmp_path: Path,
) -> None:
    figure, ax = plots.plt.subplots(figsize=(3, 3), layout="constrained")
    (line,) = ax.plot([1, 2], [3, 4], label="a line")
    figure.legend(loc="upper left")
    title = ax.set_title("large", fontsize=30)
    small = ax.text(1, 3, "small", fontsize=5)
    note = ax.annotate("word", (1, 3), (3, 10), textcoords="offset points")
    BUILD["save"](figure, "one", 2.5, 0.5, tmp_path)
    assert figure.get_size_inches().tolist() == [6.5, 2.5]
    assert (title.get_fontsize(), small.get_fontsize()) == (8, 5)
    assert note.xyann == (3, 5)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a line"]
    assert not legend.get_frame_on()
    assert 'width="468pt" height="180pt"' in (tmp_path / "one.svg").read_text(encoding="utf-8")
    assert not plots.plt.fignum_exists(figure.number)
    assert line in ax.lines


def test_panels_of_step_sizes_stand_side_by_side_and_have_names() -> None:
    row = {"slope": 1.0, "curvature": 50.0, "lower": 0.0}
    table = pd.DataFrame(
        [
            {"study": study, "layer": n, "seed": seed, "sigma": sigma, **row}
            for study in ("mnist-7x7", "mnist-28x28")
            for n in (1, 2)
            for seed in (0, 1)
            for sigma in (0.01, 0.1)
        ]
    )
    table["step_size"] = 0.1 * table["layer"]
    figure = BUILD["step_sizes"](table)
    plots.plt.close(figure)
    left, right = figure.axes
    assert [ax.get_xlabel() for ax in (left, right)] == 2 * ["step size of the pairs"]
    figure.draw_without_rendering()
    assert left.get_position().x1 < right.get_position().x0
    assert left.get_position().y0 == pytest.approx(right.get_position().y0)
