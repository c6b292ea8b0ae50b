"""The figures that nbval's runs of the notebooks have drawn (`make test`) are the accepted ones."""

import os
from pathlib import Path
from typing import Any

import pytest
from figures import ACCEPTED, MEASURED, check_figures

DRAWN = Path(os.environ.get("LEAMVD_DRAWN", "none"))  # a folder with the folder "figures"


@pytest.mark.skipif(not DRAWN.is_dir(), reason="no notebooks were run: make test")
def test_the_figures_of_the_recorded_runs_plot_what_is_accepted(file_regression: Any) -> None:
    check_figures(DRAWN / "figures", "recorded", file_regression)
    drawn = {path.name for path in (DRAWN / "figures").glob("*.json") if not path.name.startswith(MEASURED)}
    accepted = {path.name for path in (ACCEPTED / "recorded").glob("*.json") if not path.name.startswith(MEASURED)}
    assert drawn == accepted
