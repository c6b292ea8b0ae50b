"""Comparing the arrays that figures plot with the accepted ones in ``tests/figures/PROFILE``.

After a change that is right: ``make accept``, and git shows what has moved.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ACCEPTED = Path(__file__).parent / "figures"
MEASURED = "timing-"  # how names of figures of seconds and bytes begin, which are other ones each time


def check_figures(folder: Path, profile: str, file_regression: Any) -> None:
    """Compare each figure that a run has drawn with the accepted one."""
    drawn = [path for path in sorted(folder.glob("*.json")) if not path.name.startswith(MEASURED)]
    for path in drawn:
        file_regression.check(
            path.read_text(encoding="utf-8"), fullpath=ACCEPTED / profile / path.name, check_fn=same_figure
        )


def same_figure(obtained: Path, expected: Path) -> None:
    """Compare words exactly, and arrays to six digits of their largest number."""
    found, accepted = (json.loads(path.read_text(encoding="utf-8")) for path in (obtained, expected))
    assert list(words(found)) == list(words(accepted))
    for number, (own, other) in enumerate(zip(found, accepted, strict=True), start=1):
        for a, b in zip(own["arrays"], other["arrays"], strict=True):
            a, b = np.array(a, dtype=float), np.array(b, dtype=float)
            largest = float(np.nanmax(np.abs(b), initial=0))
            message = f"panel {number} of {expected.stem}"
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6 * largest, equal_nan=True, err_msg=message)


def words(figure: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Return what is written at each panel of a figure."""
    for panel in figure:
        yield {name: value for name, value in panel.items() if name != "arrays"}
