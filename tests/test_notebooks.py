"""Every notebook run at the profile "quick"; its figures plot the accepted arrays.

Where that is what the notebook does anyway, they are those of the run that it shows.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from figures import check_figures
from leamvd_paper.book import sections

SECTIONS = sections.load()
# whose numbers are other ones each time: that it runs is all that can be said
MEASURES_TIME = "linear-cost"


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.path.stem)
def test_a_quick_run_plots_what_is_accepted(
    section: Any, tmp_path: Path, file_regression: Any
) -> None:
    own = "profile" in section.parameters and section.parameters["profile"].default != "quick"
    values = {"profile": "quick"} if own else {}
    if section.name == MEASURES_TIME:
        values |= {"methods": ["lea-mvd"], "sizes": [1_000, 10_000]}
    folder, _ = sections.run(section, values, tmp_path)
    notebook = json.loads((folder / section.path.name).read_text(encoding="utf-8"))
    assert not [
        output
        for cell in notebook["cells"]
        for output in cell.get("outputs", [])
        if "ename" in output
    ]
    if section.name != MEASURES_TIME:
        check_figures(folder / "figures", "quick" if own else "recorded", file_regression)
