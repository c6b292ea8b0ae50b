"""The look of all figures, and saving them as pixels and as what they show: words, colors and arrays."""

import itertools
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import Collection, PathCollection
from matplotlib.colors import to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, LogLocator, MaxNLocator, NullFormatter
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from leamvd._support.compile import Array

PAGE_DPI = 100
"""Pixels of a page to an inch; each is drawn as two by two."""

STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.dpi": 2 * PAGE_DPI,
    "figure.labelsize": "medium",
    "figure.titlesize": "medium",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}
"""Of every figure, over matplotlib's defaults."""

styled = plt.style.context(["default", STYLE])
"""In this style a function draws; its decorator."""

WIDTH = 5.4
"""Inches of a figure whose text of 10 points is still 9 pixels high on a phone, see `PHONE`."""

PHONE = 350
"""Pixels of a figure on a phone that is 390 pixels wide."""

BLUE, VERMILION, GREEN, PURPLE, GRAY = PALETTE = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#444444"
"""Four colors of Okabe and Ito (2008), Color Universal Design, and a dark gray: apart for color-blind readers too."""

COLORS = {"cd": BLUE, "lea-mvd": VERMILION, "cma-es": GREEN, "sep-cma-es": PURPLE, "random": GRAY, "start": BLUE}
"""One color per method, the same in every figure, and the start solution's is that of contrastive divergence, which
makes it; the readings of one method differ by line style."""

STYLES = {"": "-", "x0-excluded": "--", "printed": ":"}
"""Line styles of readings; a reading from a file is dash-dotted."""


@dataclass(frozen=True)
class Picture:
    """A saved figure, which a notebook shows at its own `width`, in pixels of a page; each is drawn as two."""

    width: int
    png: bytes = field(repr=False)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        return self.png, {"width": self.width}


def line_style(method: str) -> tuple[str, str]:
    """Return color and line style of a method, with its reading."""
    name, reading = parts(method)
    return COLORS[name], STYLES.get(reading, "-.")


def parts(method: str) -> tuple[str, str]:
    """Return the name of a method, and what it has of its own, which stands behind a colon."""
    name, _, own = method.partition(":")
    return name, own


@styled
def new(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = WIDTH,
    height: float = 4.0,
    title: str = "",
    ylabel: str = "",
    **options: Any,
) -> tuple[Figure, Any]:
    """Return a figure in the project's style and its axes, an array (rows, columns); `options` go to `subplots`."""
    figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **options)
    if title:
        figure.suptitle(title, wrap=True)
    if ylabel:
        figure.supylabel(ylabel)
    return figure, axes


def groups(table: pd.DataFrame, by: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Return the values of some columns and the rows that have them, in the order of the table."""
    return iter(table.groupby(by, sort=False))


def grid(
    table: pd.DataFrame, row_height: float, *, margin: float = 1.2, **options: Any
) -> tuple[Figure, Any, list[tuple[Axes, str, int, pd.DataFrame]]]:
    """Return a figure with a row for each layer and a column for each kind of inputs, and the table's rows by panel."""
    kinds, layers = list(table["inputs"].unique()), sorted(table["layer"].unique())
    figure, axes = new(len(layers), len(kinds), height=margin + row_height * len(layers), **options)
    cells = []
    for (kind, layer), cell in groups(table, ["inputs", "layer"]):
        ax = axes[layers.index(layer), kinds.index(kind)]
        ax.set_title(f"RBM {layer}, {kind} inputs")
        cells.append((ax, kind, layer, cell))
    return figure, axes, cells


def plain(name: str) -> str:
    """Return a name that a user has given, of a file say, as figures show it: without mathematics between its signs."""
    return name.replace("$", r"\$")


class _Few(LogLocator):
    """Some ticks: at 1, 2 and 5 of each decade, at powers of ten where that is too many, or evenly where too few."""

    def __init__(self, most: int) -> None:
        super().__init__(numticks=most)
        self.most = most

    def tick_values(self, vmin: float, vmax: float) -> Sequence[float]:
        for subs in ((1.0, 2.0, 5.0), (1.0,)):
            ticks = LogLocator(subs=subs, numticks=self.most).tick_values(vmin, vmax)
            if 2 <= sum(vmin <= tick <= vmax for tick in ticks) <= self.most:
                return ticks
        return MaxNLocator(self.most - 1, steps=(1, 2, 5, 10)).tick_values(vmin, vmax)


def logarithmic(axis: Any, most: int = 6) -> None:
    """Make an axis logarithmic, with plain numbers as labels, not more than `most`."""
    getattr(axis.axes, f"set_{axis.axis_name}scale")("log")
    axis.set_major_locator(_Few(most))
    axis.set_major_formatter(_label)
    axis.set_minor_formatter(NullFormatter())


def _label(tick: float, _: int) -> str:
    """Return 0.01 or 10,000, and a power of ten where it would have too many zeros to count."""
    digits, _e, power = f"{tick:,.12g}".partition("e")
    factor = "" if digits == "1" else rf"{digits} \cdot "
    return f"${factor}10^{{{int(power)}}}$" if power else digits


def band(ax: Axes, line: pd.DataFrame, x: str, label: str, look: tuple[str, str]) -> None:
    """Draw means as a line and their intervals as a band; `look` is a color and a line style."""
    ax.plot(line[x], line["mean"], look[1], color=look[0], label=plain(label), linewidth=1.5)
    ax.fill_between(line[x], line["low"], line["high"], color=look[0], alpha=0.2, linewidth=0)


def bars(ax: Axes, places: Any, points: pd.DataFrame, label: str, look: tuple[str, str], **marker: Any) -> None:
    """Draw means and, where they are there, their intervals as bars; `look` is a color and a line style."""
    ends = np.nan_to_num(error_bars(points, "mean", "low", "high"))
    drawn: dict[str, Any] = {"color": look[0], "linestyle": look[1], "linewidth": 1.0, "label": plain(label)} | marker
    ax.errorbar(places, points["mean"], ends, **drawn)


def error_bars(rows: pd.DataFrame, middle: str, *ends: str) -> Array:
    """Return the lengths of error bars, shape (2, rows), from the middle to both ends."""
    lengths: Array = rows[list(ends)].sub(rows[middle], axis=0).abs().to_numpy().T
    return lengths


def percent(shares: pd.DataFrame) -> pd.DataFrame:
    """Return a table with its columns mean, low and high in percent."""
    return shares.assign(**100 * shares[["mean", "low", "high"]])


def legend(figure: Figure, *panels: Axes) -> None:
    """Show each label of some panels once, below the figure, in as many columns as it has room for.

    More than four rows make the figure higher.
    """
    found = {label: line for ax in panels for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    columns = int(figure.get_figwidth() / (0.6 + 0.08 * max(map(len, found), default=0)))
    ncols = max(1, min(len(found), columns))
    more = math.ceil(len(found) / ncols) - 4
    figure.set_figheight(figure.get_figheight() + 0.21 * max(0, more))
    figure.legend(found.values(), found.keys(), loc="outside lower center", ncols=ncols)


def label_ends(ax: Axes) -> None:
    """Name each labeled line at its right end, joined to it by a line of its look; names make room for each other.

    The joining lines end at the left of the names, so that none crosses a name.
    """
    handles: list[Any] = ax.get_legend_handles_labels()[0]
    lines: list[Any] = [handle if isinstance(handle, Line2D) else handle[0] for handle in handles]  # of error bars
    names = [str(handle.get_label()).replace(":", ":\n", 1) for handle in handles]
    ends = [np.asarray(line.get_xydata())[-1] for line in lines]
    to_axes = ax.transData + ax.transAxes.inverted()
    heights = [float(to_axes.transform(end)[1]) for end in ends]
    order = np.argsort(heights, kind="stable")
    inches = ax.get_window_extent().height / ax.figure.dpi
    room = [0.19 * (1 + names[i].count("\n")) / inches for i in order]
    for i, height in zip(order, _apart([heights[i] for i in order], room), strict=True):
        color, style = lines[i].get_color(), lines[i].get_linestyle()
        look = {"color": color, "linestyle": style, "arrowstyle": "-", "shrinkA": 1, "relpos": (0, 0.5)}
        ax.annotate(
            names[i], ends[i], (1.08, height), "data", "axes fraction", look, va="center", annotation_clip=False
        )


def _apart(places: list[float], sizes: list[float]) -> list[float]:
    """Return sorted places moved up, and from 1 down again, until neighbors are as far apart as their sizes ask."""
    gaps = [(a + b) / 2 for a, b in itertools.pairwise(sizes)]
    moved = places.copy()
    for i, gap in enumerate(gaps):
        moved[i + 1] = max(moved[i + 1], moved[i] + gap)
    moved[-1:] = [min(place, 1.0) for place in moved[-1:]]
    for i, gap in reversed(list(enumerate(gaps))):
        moved[i] = min(moved[i], moved[i + 1] - gap)
    return moved


@styled
def save(figure: Figure, name: str, output: str | Path) -> Picture:
    """Save a figure as ``figures/NAME.png`` and what it shows as ``figures/NAME.json`` in `output`, and close it."""
    path = Path(output) / "figures" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    canvas, kept = FigureCanvasAgg(figure), PngInfo()
    canvas.draw()  # type: ignore[no-untyped-call]  # once: `savefig` would lay out and draw everything twice
    kept.add_text("Software", f"Matplotlib version{matplotlib.__version__}, https://matplotlib.org/")
    rgba = np.asarray(canvas.buffer_rgba())  # type: ignore[no-untyped-call]
    pixels = Image.fromarray(rgba).convert("RGB").quantize()  # 256 colors are enough, and take a third of the bytes
    pixels.save(path.with_suffix(".png"), pnginfo=kept, dpi=(figure.dpi, figure.dpi))
    content = shown(figure)
    path.with_suffix(".json").write_text(json.dumps(content) + "\n", encoding="utf-8")
    plt.close(figure)
    return Picture(content["size"][0], path.with_suffix(".png").read_bytes())


def shown(figure: Figure) -> dict[str, Any]:
    """Return what a figure shows: its size in pixels of a page and that of its smallest text, words, and `plotted`."""
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]
    return {
        "size": [round(PAGE_DPI * inches) for inches in figure.get_size_inches()],
        "text": round(min(float(text.get_fontsize()) for text in texts) * PAGE_DPI / 72, 2),
        "titles": [figure.get_suptitle(), figure.get_supxlabel(), figure.get_supylabel()],
        "legends": [_entries(legend) for legend in figure.legends],
        "axes": plotted(figure),
    }


def plotted(figure: Figure) -> list[dict[str, Any]]:
    """Return what each of a figure's axes shows; of a color bar its words and scales alone.

    Ticks are their labels, where they were set by hand; a legend has pairs of a text and a look, which is colors, line
    style and marker; arrays are all that are drawn, the ends of error bars among them.
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
    plain = [None if math.isnan(value) else float(f"{value:.8g}") for value in values.ravel().tolist()]
    return np.array(plain, dtype=object).reshape(values.shape).tolist()
