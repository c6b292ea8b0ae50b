"""Figures of what the error measures: they plot the tables that they are given."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from leamvd.figures import measures
from leamvd.figures.style import COLORS

METHODS = ("cd", "lea-mvd:x0-excluded")
NUMBERS = {"cd, RBM 2": 50_000.0, "lea-mvd, RBM 2": 5_000.0}


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def cells(**columns):
    keys = pd.DataFrame(product(("own", "shared"), (1, 2), METHODS), columns=["inputs", "layer", "method"])
    return keys.assign(**columns)


def test_paths_go_from_an_open_marker_to_a_filled_one():
    rng = np.random.default_rng(0)
    table = pd.concat([cells(mean_field_ratio=rng.random(8), sampled_ratio=rng.random(8)) for _ in range(4)])
    table = table.sort_values(["inputs", "layer", "method"], kind="stable")
    ends = pd.concat(
        [cells(measure=name, mean=1.0, low=0.75, high=1.5) for name in ("mean_field_ratio", "sampled_ratio")]
    )
    ends.loc[ends["measure"] == "sampled_ratio", "high"] = 1.125
    figure = measures.paths(table, ends, "some digits")
    assert [ax.get_title() for ax in figure.axes] == [
        f"RBM {n}, {kind} inputs" for n in (1, 2) for kind in ("own", "shared")
    ]
    for ax, (_, cell) in zip(figure.axes, table.groupby(["layer", "inputs"]), strict=True):
        lines = ax.lines[:-2]  # the last two are the constant image's
        drawn = zip(lines[::3], lines[1::3], lines[2::3], cell.groupby("method"), strict=True)
        for path, start, end, (method, rows) in drawn:
            points = rows[["mean_field_ratio", "sampled_ratio"]].to_numpy()
            assert np.array_equal(path.get_xydata(), points)
            assert np.array_equal(start.get_xydata(), points[:1])
            assert np.array_equal(end.get_xydata(), points[-1:])
            assert (start.get_fillstyle(), end.get_fillstyle()) == ("none", "full")
            assert path.get_color() == COLORS[str(method).partition(":")[0]]
            assert path.get_linestyle() == ("--" if ":" in str(method) else "-")
            lying, standing = (bar.get_segments()[0] for bar in ax.collections[:2])
            assert np.ptp(lying, axis=0).tolist() == pytest.approx([0.75, 0])  # as long as the intervals
            assert np.ptp(standing, axis=0).tolist() == pytest.approx([0, 0.375])
        assert [line.get_xydata().tolist() for line in ax.lines[-2:]] == [[[0, 1], [1, 1]], [[1, 0], [1, 1]]]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(METHODS)
