"""What readers see: words for codes, digits that are known, and tables with one row of names."""

import re

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from IPython.display import HTML

from leamvd_paper.studies import readings, stacks
from leamvd_paper.studies.words import SETTINGS, WORDS, interval, named, number, shown


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("lea-mvd:sigma0=0.01+reset=off", "LEA-MVD, σ0 = 0.01, no reset"),
        ("lea-mvd:printed+sigma0=0.03", "LEA-MVD as printed, σ0 = 0.03"),
        ("lea-mvd:x0=batch+x0_batches=10", "LEA-MVD, start: 10 mini-batches"),
        ("cd:n_gen=42", "CD, 42 epochs"),
        ("lea-mvd:reset=off+path=off+n_elite=1", "LEA-MVD, no reset, without P, 1 elite"),
        ("cma-es:n_gen=42", "CMA-ES, 42 generations"),
        ("mean_field", "mean-field error"),
        ("sphere, n = 100", "sphere, n = 100"),
        ("LEA-MVD: C_ani", "LEA-MVD: C_ani"),
    ],
)
def test_codes_have_words(code: str, words: str) -> None:
    assert named(code) == words == named(words)


def test_each_method_has_words_of_its_own_without_a_trace_of_its_code() -> None:
    studies = [study for profiles in stacks.PROFILES.values() for study in profiles.values()]
    methods = {method for study in studies for method in study.methods}
    methods |= {
        method for alternatives in readings.ALTERNATIVES.values() for method in alternatives
    }
    words = {named(method) for method in methods}
    assert len(words) == len(methods)
    assert not [
        text for text in words if set(":=+") & set(text.replace(" = ", "").replace("start: ", ""))
    ]


@pytest.mark.parametrize("table", [WORDS, SETTINGS])
def test_a_word_of_a_code_that_words_have_is_in_its_own(table: dict[str, str]) -> None:
    said = " ".join(table.values())
    for code, words in table.items():
        for part in re.findall("[a-z]{4,}", code.partition(":")[2] or code):
            if part in said and code != "perturbation=column":  # columns of U are others
                assert part in words, code


def test_no_two_codes_have_the_same_words() -> None:
    for table in (WORDS, SETTINGS):
        assert len({*table.values()}) == len(table)


def test_a_number_has_three_digits_and_an_interval_says_how_many_are_known() -> None:
    values = (60_000, 25_086.3, 0.13, 1e6 / 7, 7.52e-32, 0.0, -1234.5, np.nan, np.inf)
    assert [*map(number, values)] == [
        "60,000",
        "25,100",
        "0.130",
        "143,000",
        "7.5e-32",
        "0",
        "-1,230",
        "–",
        "inf",
    ]
    assert interval(0.9443, 0.9226, 0.9646) == "0.944 (0.923 to 0.965)"
    assert interval(0.2507, 0.1597, 0.3936) == "0.25 (0.16 to 0.39)"  # the shorter half tells
    assert interval(1.0, 0.9, 2.0) == "1.00 (0.90 to 2.00)", "1.0 would hide how far down it goes"
    assert interval(4746.2, 4689.0, 4803.4) == "4,750 (4,690 to 4,800)"
    assert interval(55.3, 44.4, 68.8) == "55 (44 to 69)"  # 60 (40 to 70) would hide half of it
    assert interval(1.0, 0.0, 1.1) == "1.00 (0.00 to 1.10)", "the shorter half is the upper one"
    assert interval(1.0, 1 - 3e-8, 1 + 3e-8) == "1.000000 (1.000000 to 1.000000)"
    assert interval(-0.001, -0.21, 0.21) == "0.00 (-0.21 to 0.21)"
    assert interval(1.0, 0.88, 1.0) == "1.00 (0.88 to 1.00)"
    assert [interval(10.0, 10 - half, 10 + half) for half in (0.99, 1.0, 2.9, 3.1)] == [
        *("10.0 (9.0 to 11.0)", "10.0 (9.0 to 11.0)", "10.0 (7.1 to 12.9)", "10 (7 to 13)")
    ]
    assert [interval(2.0, *ends) for ends in ((np.nan, np.nan), (2.0, 2.0))] == ["2", "2"]


def test_a_table_is_shown_with_one_row_of_names() -> None:
    runs = pd.DataFrame(
        [
            ("cd", 1, 5, 2.0, 1.9, 2.1),
            ("lea-mvd:printed", 1, 5, np.nan, np.nan, np.nan),
            ("cd", 2, 5, 40.2, 39.9, 41),
        ],
        columns=["method", "layer", "runs", "ratio", "low", "high"],
    )
    page = BeautifulSoup(shown(runs, ["method"], ["ratio"], across="layer").data, "html.parser")
    rows = [[cell.text for cell in row(["th", "td"])] for row in page("tr")]
    printed = ["LEA-MVD as printed", "–", "–"]
    assert rows == [
        ["method", "RBM 1", "RBM 2"],
        ["CD", "2.00 (1.90 to 2.10)", "40.2 (39.9 to 41.0)"],
        printed,
    ]
    columns = {"batches": [1000, 5], "rate": [0.01254, 0.3], "error": [0.01254, 1234.5]}
    page = BeautifulSoup(shown(pd.DataFrame(columns), ["batches", "rate"]).data, "html.parser")
    named_by = [[cell.text for cell in row(["th", "td"])] for row in page("tr")[1:]]
    assert named_by == [["1,000", "0.01254", "0.0125"], ["5", "0.3", "1,230"]], (
        "numbers that name a row keep all their digits"
    )
    by_both = shown(runs.set_index(["layer", "method"]), names={"ratio": "over CD's"})
    page = BeautifulSoup(by_both.data, "html.parser")
    assert [cell.text for cell in page("tr")[0]("th")] == ["layer", "method", "runs", "over CD's"]


def test_an_older_pandas_is_refused_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pd.DataFrame({"a": [1.0]})
    for release in ("3.1.0rc0", "4.0.0"):
        monkeypatch.setattr(pd, "__version__", release)
        shown(table)
    for release in ("2.2.3", "3.0.1"):
        monkeypatch.setattr(pd, "__version__", release)
        with pytest.raises(ImportError, match=f"tables need pandas 3.1 or newer, got {release}"):
            shown(table)


def cells_of(table: HTML) -> list[list[str]]:
    page = BeautifulSoup(table.data, "html.parser")
    return [[cell.text for cell in row(["th", "td"])] for row in page("tr")]


def test_columns_keep_their_order_and_truths_are_words() -> None:
    by = {"runs": ["b", "b", "a", "a"], "size": [20, 3, 20, 3], "met": [True, False, False, True]}
    assert cells_of(shown(pd.DataFrame(by), ["runs"], ["met"], across="size")) == [
        ["runs", "20", "3"],
        ["b", "yes", "no"],
        ["a", "no", "yes"],
    ]


def test_an_interval_is_joined_whatever_its_column_is_called() -> None:
    table = pd.DataFrame(
        {"name": ["x"], "n": [0.01254], "cost": 2.0, "cost low": 1.0, "cost high": 4.0}
    )
    assert cells_of(shown(table)) == [["name", "n", "cost"], ["x", "0.0125", "2.0 (1.0 to 4.0)"]]
