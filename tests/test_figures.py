"""Every figure of the quick run against the accepted one: first its words, colors and arrays, then its pixels.

`make regress` shows what has moved, and `make accept` takes it as right.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import accepted
import matplotlib.pyplot as plt
import numpy as np
import pytest

from leamvd.paper.figures import style

NAMES = list(accepted.figures(accepted.FIGURES.parent))


@pytest.fixture(scope="session")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the newly made figures by name: of the notebooks that ran before these tests, or of a run of its own."""
    if ready := os.environ.get("LEAMVD_RESULTS"):
        return accepted.figures(Path(ready))
    output = tmp_path_factory.mktemp("quick")
    command = [sys.executable, "-m", "leamvd.cli", "reproduce", "--profile", "quick", "--output", str(output)]
    subprocess.run(command, check=True)
    return accepted.figures(output)


def test_figures_are_those_accepted(figures: dict[str, Path]) -> None:
    assert [*figures] == NAMES
    assert NAMES, "nothing has been accepted: make accept"


def test_of_each_accepted_figure_its_run_is_known() -> None:
    runs = accepted.runs()
    assert sorted(runs) == NAMES
    for about in runs.values():
        assert re.fullmatch(r"[0-9a-f]{12}\+?", about["made_with"]["commit"])
        assert about["parameters"]


@pytest.mark.parametrize("name", NAMES)
def test_arrays(figures: dict[str, Path], name: str) -> None:
    assert accepted.content(read(accepted.FIGURES / name), read(figures[name])) == []


@pytest.mark.parametrize("name", NAMES)
def test_pixels(figures: dict[str, Path], name: str) -> None:
    old, new = (path.with_suffix(".png") for path in (accepted.FIGURES / name, figures[name]))
    assert accepted.pixels(old, new) == []


def saved(folder: Path, shift: float = 0.0, error: float = 0.1, **words: str) -> Path:
    """Save a small figure with one thing of each kind; return its path without an ending."""
    names = {"title": "t", "x": "x", "y": "y", "first": "cd", "color": "C0", "tick": "one", "line": "-"} | words
    figure, axes = style.new(1, 2)
    left, right = axes[0]
    left.plot([0, 1, 2], [0, 1 + shift, 2], names["line"], color=names["color"], label=names["first"])
    left.errorbar([0, 1, 2], [2, 1, 1], error, color="C1", label="lea-mvd")
    left.fill_between([0, 1, 2], 0, [1, 2, 1 - error], color=names["color"], alpha=0.2)
    left.set_xticks([0, 1, 2], [names["tick"], "two", "three"])
    left.legend()
    right.scatter([0, 1], [0, 1], c=[0, 1 + shift], cmap="viridis")
    right.imshow(np.eye(2) * (1 + shift), extent=(0, 1, 0, 1))
    right.bar([1, 2], [1, 2 + shift], color=names["color"])
    figure.suptitle(names["title"])
    figure.supxlabel(names["x"])
    figure.supylabel(names["y"])
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center")
    style.save(figure, "small", folder)
    return folder / "figures" / "small"


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.with_suffix(".json").read_text())
    return content


@pytest.mark.parametrize(
    "fault",
    [
        {"shift": 0.001}, {"error": 0.05}, {"title": "T"}, {"x": "X"}, {"y": "Y"}, {"first": "cma-es"},
        {"color": "C2"}, {"tick": "1"}, {"line": "--"},
    ],
    ids=str,
)  # fmt: skip
def test_what_pixels_may_miss_is_seen(tmp_path: Path, fault: dict[str, Any]) -> None:
    before = read(saved(tmp_path / "before"))
    assert accepted.content(before, read(saved(tmp_path / "again"))) == []
    assert accepted.content(before, read(saved(tmp_path / "faulty", **fault))) != []


def test_swapped_colors_are_seen(tmp_path: Path) -> None:
    """Two curves that change colors keep their arrays and their legend's texts."""
    made = []
    for folder, colors in (("old", ("C0", "C1")), ("new", ("C1", "C0"))):
        figure, axes = style.new()
        for name, color, x in zip(("cd", "lea-mvd"), colors, (1, 2), strict=True):
            axes[0, 0].plot([0, x], color=color, label=name)
        axes[0, 0].legend()
        style.save(figure, "colors", tmp_path / folder)
        made.append(read(tmp_path / folder / "figures" / "colors"))
    assert made[0]["axes"][0]["legend"] == [["cd", "#1f77b4 - None #1f77b4"], ["lea-mvd", "#ff7f0e - None #ff7f0e"]]
    assert accepted.content(*made) != []


def test_a_large_drift_is_seen_in_the_pixels(tmp_path: Path) -> None:
    pictures = [saved(tmp_path / str(shift), shift).with_suffix(".png") for shift in (0.0, 0.5)]
    assert accepted.pixels(*pictures) != []


def test_a_color_bar_is_named_and_three_axes_have_three_labels() -> None:
    figure, axes = style.new(subplot_kw={"projection": "3d"})
    axes[0, 0].set(xlabel="a", ylabel="b", zlabel="c")
    figure.colorbar(axes[0, 0].scatter([0, 1], [0, 1], [0, 1], c=[0, 1]), ax=axes, label="weight")
    solid, bar = style.plotted(figure)
    assert solid["labels"] == ["a", "b", "c"]
    assert bar == {"title": "", "labels": ["", "weight"], "scales": ["linear", "linear"]}
    plt.close(figure)
