"""The figures of verdicts draw what the evidence says."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from leamvd.figures import claims as draw
from leamvd.figures.style import plotted

ROWS = pd.DataFrame(
    {
        "claim": ["C3", "C7", "C7", "C7", "C1"],
        "view": ["both", "conclusion", "as printed", "as printed", "both"],
        "part": ["a", "b", "c", "d", "e"],
        "effect": [40.0, 0.8, 0.1, 3.0, 1.02],
        "low": [35.0, 0.7, 0.05, 2.0, np.nan],
        "high": [45.0, 0.9, 0.2, 4.0, np.nan],
        "lower": [-1.0, -np.inf, 0.5, 1.0, 0.95],
        "upper": [1.0, 1.0, 2.0, np.inf, 1.05],
        "unit": ["%", "ratio", "ratio", "ratio", "slope"],
        "met": pd.array([False, True, False, None, True], dtype="boolean"),
    }
)


@pytest.fixture
def panels():
    not_run = ROWS.tail(1).assign(claim="C15", effect=np.nan)
    figure = draw.effects(pd.concat([ROWS, not_run]))
    yield plotted(figure), figure.axes
    plt.close("all")


def test_a_panel_for_each_claim_and_unit_in_the_order_of_the_evidence(panels):
    shown, _ = panels
    assert [panel["title"] for panel in shown] == ["C3, %", "C7, ratio", "C1, slope"]
    assert [panel["scales"][0] for panel in shown] == ["linear", "log", "linear"]
    assert shown[1]["ticks"][-1] == ["as printed: c", "as printed: d", "conclusion: b"]
    assert shown[0]["ticks"][-1] == ["a"]


def marked(axes):
    """The effects by what their markers say."""
    found = {}
    for name, (_, marker) in draw.LOOKS.items():
        points = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == marker]
        found |= dict.fromkeys(points, name)
    return found


def test_color_and_sign_say_what_is_met(panels):
    _, axes = panels
    assert marked(axes[0]) == {40.0: "not met"}
    assert marked(axes[1]) == {0.8: "met", 0.1: "not met", 3.0: "too few runs to tell"}
    assert len({color for color, _ in draw.LOOKS.values()}) == len({mark for _, mark in draw.LOOKS.values()}) == 3


RATIOS = pd.DataFrame(
    {
        "study": ["mnist_7x7", "mnist_7x7", "mnist_28x28", "classification"],
        "view": ["as printed", "conclusion", "conclusion", "both"],
        "part": [*["RBM 2, lea-mvd / cd"] * 3, "mnist-28x28, lea-mvd / cd"],
        "effect": [1.3, 1.5, 0.25, 0.9],
        "low": [1.2, 1.4, 0.2, 0.8],
        "high": [1.4, 1.6, 0.3, 1.1],
    }
)


def test_the_line_of_equal_errors_is_in_the_middle():
    figure = draw.against_cd(RATIOS)
    (ax,) = figure.axes
    left, right = ax.get_xlim()
    assert left < 0.2 < 1.6 < right
    assert left * right == pytest.approx(1)
    better = {text.get_text().split()[0]: text.get_position()[0] for text in ax.texts}
    assert better["LEA-MVD"] < 1 < better["contrastive"], "a smaller ratio is a smaller error of LEA-MVD"
    plt.close(figure)
