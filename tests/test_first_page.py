"""The picture of the book's first page: its data and static figure are what the script makes of what is recorded."""

import json
import runpy
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from figures import same_figure

from leamvd.paper import error_measures, plots
from leamvd.paper.layers import last
from leamvd.paper.results import read_recorded

BOOK = Path(__file__).parents[1] / "book"
TEXT = (BOOK / "static" / "first_page.json").read_text(encoding="utf-8")
DATA = json.loads(TEXT)
MADE = runpy.run_path(str(BOOK / "first_page.py"))


def test_data_and_figure_are_what_the_script_makes(tmp_path: Path) -> None:
    found = MADE["data"]()
    for size, own in json.loads(found.to_json()).items():
        side, accepted = MADE["SIZES"][size], DATA[size]
        drawn = [MADE["rows_of"](one.pop("digits"), side) for one in (own, accepted.copy())]
        np.testing.assert_array_equal(*drawn)  # of another library's version the file may be another one
        assert own == {name: value for name, value in accepted.items() if name != "digits"}
    plots.save(MADE["figure"](MADE["data"]()), "first_page", tmp_path)
    same_figure(tmp_path / "figures" / "first_page.json", BOOK / "static" / "figures" / "first_page.json")
    assert len(TEXT) < 40_000, "it stands in the page itself"


@pytest.mark.parametrize(("size", "name", "cd", "n_seeds"), [
    ("small", "few_updates", "few_updates", 10),
    ("large", "few_updates_28x28", "mnist_28x28", 3),
])  # fmt: skip
def test_errors_are_geometric_means_over_pairs_of_runs(size: str, name: str, cd: str, n_seeds: int) -> None:
    start, trained = read_recorded(name), read_recorded(cd)
    start = start.query("n_images == 60_000 and momentum_epochs == 5 and features == 'own'") if cd == name else start
    trained = start if cd == name else trained.query("inputs == 'own'")
    start = start.query("layer == 3 and method == 'start' and batches == 60").set_index("seed")
    trained = last(trained.query("layer == 3 and method == 'cd'").assign(inputs="own")).set_index("seed")
    over_cd = (start["mean_field"] / trained["mean_field"]).dropna()
    for over, pairs in (("CD", over_cd), ("constant", start["mean_field_ratio"])):
        assert len(pairs) == n_seeds
        assert DATA[size]["start"][over][4] == pytest.approx(np.prod(pairs) ** (1 / n_seeds), rel=5e-3)


def test_the_table_behind_the_picture_has_both_errors() -> None:
    page = (BOOK / "index.md").read_text(encoding="utf-8").partition(":name: tab-first-page")[2].partition("\n:::")[0]
    rows = [row.split("\n  - ") for row in page.split("\n* - ")[2:]]
    small = error_measures.tables().runs.query(MADE["WHICH"])
    ends = [error_measures.by_batches(error_measures.over_cd(runs)) for runs in (small, error_measures.at_28x28())]
    small, large = (table.query("layer == 3").set_index(["method", "batches"]) for table in ends)
    columns = [*product([small], ["no search", "lea-mvd", "lea-mvd:printed"]), (large, "no search")]
    assert [int(row[0]) for row in rows] == [*error_measures.BATCHES]
    for batches, *cells in rows:
        for cell, (table, method) in zip(cells, columns, strict=True):
            if cell.strip() == "–":
                assert (method, int(batches)) not in table.index
                continue
            for text, name in zip(cell.strip().split("; "), ("error", "sampled"), strict=True):
                digits = len(text.partition(".")[2])
                assert float(text) == round(table.loc[(method, int(batches)), name], digits)


def test_digits_are_those_of_the_recorded_pictures_in_16_levels() -> None:
    pictures = read_recorded("few_updates_28x28", "pictures").query("kind == 'digit' and layers == 3")
    rows = MADE["rows_of"](DATA["large"]["digits"], 28)
    assert len(rows) == 2 + len(DATA["large"]["start"]["batches"])
    for row, batches in zip(rows[2:], DATA["large"]["start"]["batches"], strict=True):
        gray = pictures.loc[pictures["batches"] == batches, "gray"].to_numpy().reshape(10, 28, 28)
        for i, digit in enumerate(gray):
            shown = row[:, 29 * i : 29 * i + 28].astype(int)
            assert np.abs(shown - digit).max() <= MADE["STEP"] / 2
            assert not (shown % MADE["STEP"]).any()
