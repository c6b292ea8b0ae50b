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


@pytest.mark.parametrize(
    "change", [{"style": ":"}, {"face": "none"}, {"ticks": "ba"}, {"word": "worse"}, {"at": 2}, {"n": 8}], ids=str
)
def test_what_is_compared_of_a_figure_has_its_words_their_places_and_looks(change: dict[str, Any]) -> None:
    def drawn(style: str = "--", face: Any = "full", ticks: str = "ab", word: str = "better", at: int = 1, n: int = 9):
        figure, ((ax,),) = plots.panels(1, 1, height=3)
        ax.plot([1, 2], [3, 4], style, marker="o", fillstyle=face, label=f"n = {n}")
        ax.set_yticks([3, 4], list(ticks))
        ax.annotate(word, (at, 3), (5, 5), textcoords="offset points")
        plots.legend(figure)
        plots.plt.close(figure)
        return plots.plotted(figure)

    assert drawn() == drawn() != drawn(**change)
