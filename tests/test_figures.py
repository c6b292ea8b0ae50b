"""Every figure of the quick run against the accepted one: first the arrays that it plots, then its pixels.

`make accept` renews what is accepted. Figures named timing-* show seconds or bytes and are not compared.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import __version__ as matplotlib_version
from matplotlib.testing.compare import compare_images
from PIL import Image

from leamvd.paper.figures import style

ACCEPTED = Path(__file__).parent / "figures"
NAMES = sorted(path.stem for path in ACCEPTED.glob("*.json"))
SAME_FONTS, OTHER_FONTS = 2.0, 20.0  # RMS in gray levels; text alone differs by up to 18 between releases of FreeType


@pytest.fixture(scope="session")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the newly made files by name: of the notebooks that ran before these tests, or of a run of its own."""
    if ready := os.environ.get("LEAMVD_RESULTS"):
        output = Path(ready)
    else:
        output = tmp_path_factory.mktemp("quick")
        command = [sys.executable, "-m", "leamvd.cli", "reproduce", "--profile", "quick", "--output", str(output)]
        subprocess.run(command, check=True)
    return {path.name: path for path in output.glob("*/figures/*")}


def numbers(parts: list[dict[str, Any]]) -> list[np.ndarray[Any, Any]]:
    """Return all arrays of a figure, flat, with None as NaN."""

    def flat(value: Any) -> list[float]:
        return [x for v in value for x in flat(v)] if isinstance(value, list) else [np.nan if value is None else value]

    return [np.array(flat(array)) for part in parts for array in part["arrays"]]


def test_figures_are_those_accepted(figures: dict[str, Path]) -> None:
    made = {path.stem for path in figures.values()}
    assert {name for name in made if not name.startswith("timing-")} == set(NAMES)
    assert NAMES, "nothing has been accepted: make accept"


@pytest.mark.parametrize("name", NAMES)
def test_arrays(figures: dict[str, Path], name: str) -> None:
    old, new = (json.loads(path.read_text()) for path in (ACCEPTED / f"{name}.json", figures[f"{name}.json"]))
    words = [[{k: v for k, v in part.items() if k != "arrays"} for part in parts] for parts in (old, new)]
    assert words[0] == words[1]
    for before, after in zip(numbers(old), numbers(new), strict=True):
        scale = np.nanmax(np.abs(before), initial=0.0)
        np.testing.assert_allclose(after, before, rtol=1e-6, atol=1e-6 * scale)


@pytest.mark.parametrize("name", NAMES)
def test_pixels(figures: dict[str, Path], name: str, tmp_path: Path) -> None:
    with Image.open(ACCEPTED / f"{name}.png") as image:
        same = matplotlib_version in str(image.info.get("Software"))
    actual = tmp_path / f"{name}.png"
    actual.write_bytes(figures[f"{name}.png"].read_bytes())
    assert compare_images(str(ACCEPTED / f"{name}.png"), str(actual), SAME_FONTS if same else OTHER_FONTS) is None


def test_a_drift_is_caught(tmp_path: Path) -> None:
    """A curve that moves by a thousandth of its range is seen in the arrays, by a tenth in the pixels too."""
    saved = []
    for shift in (0.0, 0.001, 0.1):
        figure, axes = style.new()
        axes[0, 0].plot([0, 1, 2], [0, 1 + shift, 2])
        style.save(figure, f"curve-{round(1000 * shift)}", tmp_path)
        saved.append(tmp_path / "figures" / f"curve-{round(1000 * shift)}")
    old, near, far = (numbers(json.loads(path.with_suffix(".json").read_text())) for path in saved)
    for new in (near, far):
        assert not all(np.allclose(a, b, rtol=1e-6, atol=2e-6) for a, b in zip(old, new, strict=True))
    assert compare_images(*(str(path.with_suffix(".png")) for path in (saved[0], saved[2])), SAME_FONTS) is not None
