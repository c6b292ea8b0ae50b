"""The figure of verdicts draws what the evidence says."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from leamvd.paper.figures import claims as draw
from leamvd.paper.figures.style import plotted

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
    figure = draw.effects(ROWS)
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


def test_intervals_and_bounds_are_drawn(panels):
    _, axes = panels
    (bar,) = axes[0].collections
    assert bar.get_segments()[0][:, 0].tolist() == [35, 45]
    bounds = [line.get_xdata().tolist() for line in axes[1].lines if line.get_marker() == "|"]
    assert bounds == [[0.5, 2.0], [1.0], [1.0]]
    shaded = [line.get_xdata().tolist() for line in axes[1].lines if line.get_alpha() == 0.15]
    left, right = axes[1].get_xlim()
    assert shaded == [[0.5, 2.0], [1.0, right], [left, 1.0]]
    assert left < 0.05
    assert right > 4
    left, right = axes[2].get_xlim()
    assert 0.9 < left < 0.95
    assert 1.05 < right < 1.1
