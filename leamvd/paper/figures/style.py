"""The look of all figures, and saving them as pixels and as the arrays that they plot."""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": 100,
    "font.size": 10,
    "grid.alpha": 0.25,
    "savefig.dpi": 100,
}
"""Of every figure, over matplotlib's defaults."""

COLORS = {"cd": "C0", "lea-mvd": "C1", "cma-es": "C2", "sep-cma-es": "C4", "random": "C7"}
"""One color a method, the same in every figure; the readings of one method differ by line style."""


def new(
    rows: int = 1, columns: int = 1, *, width: float = 8.0, height: float = 4.0, **options: Any
) -> tuple[Figure, Any]:
    """Return a figure in the project's style and its axes, an array (rows, columns); `options` go to `subplots`."""
    with plt.style.context(["default", STYLE]):
        return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)


def save(figure: Figure, name: str, output: str | Path) -> Figure:
    """Save a figure as ``figures/NAME.png`` and the arrays that it plots as ``figures/NAME.json`` in `output`.

    Returns
    -------
    Figure
        The figure, closed, for the notebook to show.
    """
    folder = Path(output) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    with plt.style.context(["default", STYLE]):
        figure.savefig(folder / f"{name}.png")
    (folder / f"{name}.json").write_text(json.dumps(plotted(figure)) + "\n", encoding="utf-8")
    plt.close(figure)
    return figure


def plotted(figure: Figure) -> list[dict[str, Any]]:
    """Return what a figure plots: for each of its axes the title, the labels, and every array that is drawn."""
    return [
        {
            "title": axes.get_title(),
            "labels": [axes.get_xlabel(), axes.get_ylabel()],
            "scales": [axes.get_xscale(), axes.get_yscale()],
            "arrays": [_plain(array) for array in _arrays(axes)],
        }
        for axes in figure.axes
    ]


def _arrays(axes: Axes) -> list[Any]:
    lines = [np.column_stack([np.asarray(line.get_xdata(), float), line.get_ydata()]) for line in axes.lines]
    offsets = [collection.get_offsets() for collection in axes.collections]
    areas = [path.vertices for collection in axes.collections for path in collection.get_paths()]
    bars = [
        [*patch.get_xy(), patch.get_width(), patch.get_height()]
        for patch in axes.patches
        if isinstance(patch, Rectangle)
    ]
    pictures = [image.get_array() for image in axes.images]
    texts = [[*text.get_position()[:2]] for text in axes.texts]
    return [*lines, *offsets, *areas, bars, *pictures, texts]


def _plain(array: Any) -> Any:
    """Return an array as lists of numbers of eight digits; masked and missing values as None."""
    values: NDArray[Any] = np.ma.filled(np.ma.asarray(array, dtype=float), np.nan)
    return [_plain(row) for row in values] if values.ndim else (None if np.isnan(values) else float(f"{values:.8g}"))
