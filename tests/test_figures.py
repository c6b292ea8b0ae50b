"""The figures that nbval's runs of the notebooks have drawn (`make test`) are the accepted ones."""

import os
from pathlib import Path
from typing import Any

import pytest
from figures import ACCEPTED, MEASURED, check_figures

from leamvd.paper import plots

DRAWN = Path(os.environ.get("LEAMVD_DRAWN", "none"))  # a folder with the folder "figures"


@pytest.mark.skipif(not DRAWN.is_dir(), reason="no notebooks were run: make test")
def test_the_figures_of_the_recorded_runs_plot_what_is_accepted(file_regression: Any) -> None:
    check_figures(DRAWN / "figures", "recorded", file_regression)
    drawn = {path.name for path in (DRAWN / "figures").glob("*.json") if not path.name.startswith(MEASURED)}
    accepted = {path.name for path in (ACCEPTED / "recorded").glob("*.json") if not path.name.startswith(MEASURED)}
    assert drawn == accepted


def drawn(
    style: str = "--", face: str = "full", ticks: Any = "ab", word: str = "", place: Any = (1, 3), n: int = 9
) -> Any:
    figure, ((ax,),) = plots.panels(1, 1, height=3)
    ax.plot([1, 2], [3, 4], style, marker="o", fillstyle=face, label=f"n = {n}")
    ax.set_yticks([3, 4], list(ticks))
    ax.text(*place, f"CD {word}")
    ax.annotate("here", place, (5, 5), textcoords="offset points")
    plots.legend(figure)
    return plots.plotted(figure)


@pytest.mark.parametrize(
    "change",
    [{"style": ":"}, {"face": "none"}, {"ticks": "ba"}, {"word": "worse"}, {"place": (2, 3)}, {"n": 8}],
    ids=str,
)
def test_what_is_compared_of_a_figure_has_its_words_their_places_and_looks(change: dict[str, Any]) -> None:
    assert drawn() == drawn()
    assert drawn(**change) != drawn()
