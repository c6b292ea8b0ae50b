"""The picture of the book's first page: its data and static figure are what the script makes of what is recorded."""

import json
import runpy
from pathlib import Path

import numpy as np
import pytest
from figures import same_figure

from leamvd.paper import plots
from leamvd.paper.results import read_recorded

BOOK = Path(__file__).parents[1] / "book"
TEXT = (BOOK / "static" / "first_page.json").read_text(encoding="utf-8")
DATA = json.loads(TEXT)


def test_data_and_figure_are_what_the_script_makes(tmp_path: Path) -> None:
    made = runpy.run_path(str(BOOK / "first_page.py"))
    found = made["data"]()
    assert json.loads(found.to_json()) == DATA
    plots.save(made["figure"](found), "first_page", tmp_path)
    same_figure(tmp_path / "figures" / "first_page.json", BOOK / "static" / "figures" / "first_page.json")
    assert len(TEXT) < 16_000, "it stands in the page itself"


def test_errors_are_geometric_means_over_pairs_of_runs() -> None:
    runs = read_recorded("few_updates").query("layer == 3 and features == 'own' and n_images == 60_000")
    runs = runs[runs["momentum_epochs"] == 5].drop_duplicates(["method", "batches", "seed"], keep="last")
    start, cd = (runs[runs["batches"] == k].set_index("seed") for k in (60, 0))
    for name, pairs in (("CD", start["mean_field"] / cd["mean_field"]), ("constant", start["mean_field_ratio"])):
        assert len(pairs) == 10
        assert DATA["start"][name][4] == pytest.approx(np.prod(pairs) ** 0.1, rel=5e-3)
