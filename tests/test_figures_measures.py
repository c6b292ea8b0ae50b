"""Figures of what the error measures: they plot the tables that they are given."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from leamvd.paper.figures import measures
from leamvd.paper.figures.style import COLORS

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


def test_inputs_join_each_error_to_its_constant():
    table = cells(error=np.arange(1.0, 9.0), constant=np.arange(11.0, 19.0), low=0.5, high=9.0)
    figure = measures.inputs(table, "some digits")
    for ax, layer in zip(figure.axes, (1, 2), strict=True):
        rows = table[table["layer"] == layer]
        joined, constants, dots = ax.lines[::3], ax.lines[1::3], ax.lines[2::3]
        assert [list(line.get_xdata()) for line in joined] == rows[["error", "constant"]].to_numpy().tolist()
        assert [line.get_xdata()[0] for line in constants] == rows["constant"].tolist()
        assert [line.get_xdata()[0] for line in dots] == rows["error"].tolist()
        assert [line.get_fillstyle() for line in dots] == ["full", "full", "none", "none"]
        assert [bar.get_segments()[0][:, 0].tolist() for bar in ax.collections] == [pytest.approx([0.5, 9])] * 4
        heights = [float(line.get_ydata()[0]) for line in dots]
        assert heights == pytest.approx([-0.18, 0.82, 0.18, 1.18])
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == list(METHODS)
    assert {text.get_text() for text in figure.legends[0].get_texts()} == {
        "constant image",
        "own inputs",
        "shared inputs",
    }


def test_collapse_plots_each_column_where_it_belongs():
    columns = ["scale", "bound", "error", "cd error", "ratio", "cd ratio", "accuracy above", "accuracy"]
    table = pd.DataFrame(np.random.default_rng(0).random((3, 8)) + 0.1, columns=columns)
    figure = measures.collapse(table, "some digits")
    plotted = [line.get_ydata() for ax in figure.axes for line in ax.lines]
    assert all(np.array_equal(y, table[name]) for y, name in zip(plotted, columns[1:], strict=True))
    assert all(ax.xaxis_inverted() for ax in figure.axes)
    assert [ax.get_yscale() for ax in figure.axes] == ["log", "log", "linear"]


def test_combinations_stand_in_the_rows_of_their_counting_and_the_nearest_have_rings():
    keys = pd.DataFrame(
        product(("mean-field", "sampled"), (10_000, 60_000), ("own",)), columns=["measure", "images", "inputs"]
    )
    rows = pd.concat([keys.assign(start=start) for start in ("epochs", "none")], ignore_index=True)
    for i, name in enumerate(NUMBERS):
        rows[name] = np.arange(1.0, 9.0) * 10**i
    near = rows.iloc[[6, 1]]
    figure = measures.combinations(rows, NUMBERS, near, "some digits")
    for ax, (name, number) in zip(figure.axes, NUMBERS.items(), strict=True):
        line, *marks = ax.lines
        assert list(line.get_xdata()) == [number, number]
        starts, rings = marks[:3], marks[3:]
        for mark, start in zip(starts, ("epochs", "batch", "none"), strict=True):
            own = rows[rows["start"] == start]
            assert mark.get_color() == measures.STARTS[start]
            assert np.array_equal(mark.get_xdata(), own[name])
            assert list(mark.get_ydata()) == list(range(4))[: len(own)]
        assert [ring.get_xdata()[0] for ring in rings] == near[name].tolist()
        assert [ring.get_ydata()[0] for ring in rings] == [2, 1]
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels[1] == "mean-field, 60,000, own"
