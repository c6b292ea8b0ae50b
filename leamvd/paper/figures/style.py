"""The look of all figures, and saving them as pixels and as what they show: words, colors and arrays."""

import json
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import FixedLocator, LogLocator, NullFormatter, StrMethodFormatter

from leamvd._support.compile import Array

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
"""One color per method, the same in every figure; the readings of one method differ by line style."""

STYLES = {"": "-", "x0-excluded": "--", "printed": ":"}
"""Line styles of readings; a reading from a file is dash-dotted."""


def line_style(method: str) -> tuple[str, str]:
    """Return color and line style of a method, whose reading stands behind a colon."""
    name, _, reading = method.partition(":")
    return COLORS[name], STYLES.get(reading, "-.")


def new(
    rows: int = 1, columns: int = 1, *, width: float = 8.0, height: float = 4.0, **options: Any
) -> tuple[Figure, Any]:
    """Return a figure in the project's style and its axes, an array (rows, columns); `options` go to `subplots`."""
    with plt.style.context(["default", STYLE]):
        return plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)


def plain(name: str) -> str:
    """Return a name that a user has given, of a file say, as figures show it: without mathematics between its signs."""
    return name.replace("$", r"\$")


def logarithmic(axis: Axis) -> None:
    """Label a logarithmic axis with plain numbers."""
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
    axis.set_minor_formatter(NullFormatter())


def save(figure: Figure, name: str, output: str | Path) -> Figure:
    """Save a figure as ``figures/NAME.png`` and what it shows, see `shown`, as ``figures/NAME.json`` in `output`.

    Returns
    -------
    Figure
        The figure, closed, for the notebook to show.
    """
    folder = Path(output) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    with plt.style.context(["default", STYLE]):
        figure.savefig(folder / f"{name}.png")
    (folder / f"{name}.json").write_text(json.dumps(shown(figure)) + "\n", encoding="utf-8")
    plt.close(figure)
    return figure


def shown(figure: Figure) -> dict[str, Any]:
    """Return what a figure shows: its titles, its legends, and what is `plotted` on each of its axes."""
    return {
        "titles": [figure.get_suptitle(), figure.get_supxlabel(), figure.get_supylabel()],
        "legends": [_entries(legend) for legend in figure.legends],
        "axes": plotted(figure),
    }


def plotted(figure: Figure) -> list[dict[str, Any]]:
    """Return what each of a figure's axes shows.

    Returns
    -------
    list of dict
        title, labels, scales; ticks (their labels, where they were set by hand); legend (pairs of a text and a look);
        texts (pairs of a text and its color); looks (colors, line style and marker of everything that is drawn) and
        arrays (every array that is drawn, the ends of error bars among them). Of a color bar, the first three alone.
    """
    return [
        {
            "title": axes.get_title(),
            "labels": [axis.get_label_text() for axis in _axis(axes)],
            "scales": [axis.get_scale() for axis in _axis(axes)],
        }
        | ({} if axes.get_label() == "<colorbar>" else _content(axes))
        for axes in figure.axes
    ]


def _axis(axes: Axes) -> list[Axis]:
    return [getattr(axes, f"{name}axis") for name in "xyz" if hasattr(axes, f"{name}axis")]


def _content(axes: Axes) -> dict[str, Any]:
    bars = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    legend = axes.get_legend()
    fixed = [axis for axis in _axis(axes) if isinstance(axis.get_major_locator(), FixedLocator)]
    return {
        "ticks": [[text.get_text() for text in axis.get_ticklabels()] for axis in fixed],
        "legend": _entries(legend) if legend else [],
        "texts": [[text.get_text(), to_hex(text.get_color())] for text in axes.texts],
        "looks": [_look(artist) for artist in (*axes.lines, *axes.collections, *bars, *axes.images)],
        "arrays": [_plain(array) for array in _arrays(axes, bars)],
    }


def _entries(legend: Legend) -> list[list[str]]:
    handles = [handle for handle in legend.legend_handles if handle is not None]
    return [[text.get_text(), _look(handle)] for text, handle in zip(legend.get_texts(), handles, strict=True)]


def _look(artist: Artist) -> str:
    """Return colors, line style and marker in a few words."""
    if isinstance(artist, Line2D):
        face = to_hex(artist.get_markerfacecolor()) if artist.get_fillstyle() != "none" else "none"
        return f"{to_hex(artist.get_color())} {artist.get_linestyle()} {artist.get_marker()} {face}"
    if isinstance(artist, (Collection, AxesImage)) and artist.get_array() is not None:
        return artist.get_cmap().name
    if isinstance(artist, (Collection, Patch)):
        colors = [to_rgba_array(color) for color in (artist.get_facecolor(), artist.get_edgecolor())]
        return " / ".join(" ".join(sorted({to_hex(color) for color in some})) for some in colors)
    raise TypeError(f"artist must be a line, a collection, a patch or an image, got {artist!r}")


def _arrays(axes: Axes, bars: list[Rectangle]) -> list[Any]:
    lines = [np.column_stack([np.asarray(line.get_xdata(), float), line.get_ydata()]) for line in axes.lines]
    offsets = [collection.get_offsets() for collection in axes.collections]
    mapped = [artist for artist in (*axes.collections, *axes.images) if artist.get_array() is not None]
    shades = [array for artist in mapped for array in (artist.get_array(), artist.get_clim())]
    areas = [  # bands and error bars; what a marker looks like is not data
        path.vertices
        for collection in axes.collections
        if not isinstance(collection, PathCollection)
        for path in collection.get_paths()
    ]
    corners = [[*bar.get_xy(), bar.get_width(), bar.get_height()] for bar in bars]
    texts = [[*text.get_position()[:2]] for text in axes.texts]
    return [*lines, *offsets, *shades, *areas, corners, texts]


def _plain(array: Any) -> Any:
    """Return an array as lists of numbers of eight digits; masked and missing values as None."""
    values: Array = np.ma.filled(np.ma.asarray(array, dtype=float), np.nan)
    return [_plain(row) for row in values] if values.ndim else (None if np.isnan(values) else float(f"{values:.8g}"))
