"""What readers see: words for codes, digits that are known, and tables with one row of names."""

import re

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from IPython.display import HTML

from leamvd_paper.studies import readings, stacks
from leamvd_paper.studies.classification import likelihoods, random_stack
from leamvd_paper.studies.layers import Images
from leamvd_paper.studies.results import Result
from leamvd_paper.studies.words import (
    COLUMNS,
    SETTINGS,
    WORDS,
    described,
    interval,
    named,
    number,
    shown,
)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("lea-mvd:sigma0=0.01+reset=off", "LEA-MVD, σ0 = 0.01, no reset"),
        ("lea-mvd:printed+sigma0=0.03", "LEA-MVD as printed, σ0 = 0.03"),
        ("lea-mvd:x0=batch+x0_batches=10", "LEA-MVD, start: 10 mini-batches"),
        ("cd:n_gen=42", "CD, 42 epochs"),
        ("lea-mvd:reset=off+path=off+n_elite=1", "LEA-MVD, no reset, without P, 1 elite"),
        ("cma-es:n_gen=42", "CMA-ES, 42 generations"),
        ("lea-mvd:n_gen=9", "LEA-MVD, 9 generations"),
        ("lea-mvd:perturbation=off+x0=none", "LEA-MVD, without factors, no start"),
        ("lea-mvd:perturbation=entry+descent=off", "LEA-MVD, factors, without C_ani"),
        ("lea-mvd:descent=free+reset=0.1", "LEA-MVD, C_ani not made orthogonal, reset to 0.1"),
        ("lea-mvd:ties=newest+tau=3", "LEA-MVD, ties to the newest, tau 3"),
        ("learning_rate=0.5", "learning rate 0.5"),
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


def test_rows_without_names_combinations_that_lack_and_values_of_any_kind() -> None:
    index = pd.MultiIndex.from_tuples([("cd", 2), ("lea-mvd", 2), ("cd", 1)], names=["method", ""])
    columns = {"n_var": [1_000.0, 2.5, np.nan], "met": [np.bool_(True), None, "random"]}
    table = pd.DataFrame(columns, index)
    assert cells_of(shown(table)) == [
        ["method", " ", "variables", "met"],
        ["CD", "2", "1,000", "yes"],
        ["LEA-MVD", "2", "2.50", "None"],
        ["CD", "1", "–", "random search"],
    ]
    tall = table.rename_axis(["method", "layer"]).assign(met=[True, False, True])
    page = BeautifulSoup(shown(tall, across="layer").data, "html.parser")
    heads = [[cell.text for cell in row("th")] for row in page("tr")[:2]]
    assert heads[0][-2:] == ["variables", "met"]
    assert heads[1] == ["method", "RBM 2", "RBM 1", "RBM 2", "RBM 1"]
    assert cells_of(shown(tall, across="layer"))[2:] == [
        ["CD", "1,000", "–", "yes", "yes"],
        ["LEA-MVD", "2.50", "–", "no", "–"],
    ]
    assert cells_of(shown(tall["n_var"], across="layer")) == [
        ["method", "RBM 2", "RBM 1"],
        ["CD", "1,000", "–"],
        ["LEA-MVD", "2.50", "–"],
    ]
    one = pd.Series([1_234.5, 1.0], ["cd", "other one"], name="error")
    words = {"cd": "theirs", "error": "cost"}
    assert cells_of(shown(one, names=words))[1:] == [["theirs", "1,230"], ["other one", "1"]]
    assert cells_of(shown(one, names=words))[0] == [" ", "cost"]


def test_columns_are_shown_in_the_order_that_is_asked_for_and_no_others() -> None:
    table = pd.DataFrame({"a": [1], "b": [2.0], "low": [1.0], "high": [4.0], "c": [7]})
    assert cells_of(shown(table, ["c"], ["b", "a"])) == [
        ["c", "b", "a"],
        ["7", "2.0 (1.0 to 4.0)", "1"],
    ]
    assert cells_of(shown(table, ["a", "c"])) == [["a", "c", "b"], ["1", "7", "2.0 (1.0 to 4.0)"]]
    assert [*table] == ["a", "b", "low", "high", "c"], "as it was"
    apart = pd.DataFrame({"a": [1], "low": [1.5], "b": [2.0], "high": [4.0]})
    assert cells_of(shown(apart)) == [["a", "low", "b", "high"], ["1", "1.50", "2", "4"]]


def test_ends_of_numbers_that_round_up_to_another_digit() -> None:
    assert [number(x) for x in (999.6, 99.96, 9.996, 0.09996, 0.001, 1e-4, 9.4e-5, -0.25)] == [
        *("1,000", "100.0", "10.00", "0.1000", "0.00100", "0.000100", "9.4e-05", "-0.250")
    ]


def test_units_of_columns_are_those_in_which_they_are_computed() -> None:
    """Without weights all bits are even, and the partition function is 2 to the number of units."""
    stack = random_stack((49, 3), "0.1", "float64", seed=0)
    zeros = {name: 0 * array for name, array in stack.arrays.items()}
    images = Images(n_images=40)
    rows = likelihoods(Result(stack.rows, zeros), images, "float64", 0, 20, 200).rows
    last = rows.iloc[-1]
    units = {"nats": np.log(2), "bits": 1.0}
    for column, n_bits in {"log_z": 49 + 3, "log_likelihood": -49}.items():
        unit = described(column, "likelihoods")[1]
        assert last[column] == pytest.approx(n_bits * units[unit], rel=0.02), column
    others = {described(column, "likelihoods")[1] for column in ("error", "independent")}
    assert others == {"nats"}


@pytest.mark.parametrize("code", COLUMNS)
def test_the_words_of_a_column_have_what_its_code_says(code: str) -> None:
    table, _, column = code.rpartition(".")
    words, unit = described(column, table)
    parts = column.split("_")
    ends = {"low": "shortest", "high": "longest"}
    timed = parts[0] in ("generation", "objective", "optimizer")
    assert (unit == "s") == (timed or "seconds" in parts)
    assert (unit == "bytes") == ("bytes" in parts)
    if timed:
        assert ends.get(parts[-1], "median") in words
    if "ratio" in parts and ("sampled" in parts or "field" in parts):
        assert words.startswith("sampled" if "sampled" in parts else "mean-field")
        assert ("test images" in words) == (parts[0] == "test")
    said = {"test_error": "of test", "train_error": "of training", "least": "smallest"}
    said |= {"most": "largest", "lower": "lower", "upper": "upper", "low": "lower end"}
    said |= {"high": "upper end"} | {f"std{layer}": f"of layer {layer}'s" for layer in (1, 2, 3)}
    assert said.get(column, "") in words
