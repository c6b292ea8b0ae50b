"""The look of all figures, and the one function that saves them."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Image
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogFormatter

from .words import named

BLUE = "#0072b2"
VERMILION = "#d55e00"
GREEN = "#009e73"
PURPLE = "#cc79a7"
GRAY = "#444444"
SKY = "#56b4e9"
ORANGE = "#e69f00"
"""Six colors of Okabe and Ito (2008) and a dark gray, apart for color-blind readers too."""

STYLE = {
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "figure.constrained_layout.use": True,
    "figure.dpi": 200,
    "figure.labelsize": "medium",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}

styled = plt.style.context(["default", STYLE])  # the decorator of functions that draw

WIDTH = 5.25  # inches: a figure is as wide as the text
# for an inch: text of 10 points is as large as the page's, and on a phone still 9 pixels high
PIXELS = 620 / WIDTH

COLORS = {
    "cd": BLUE,
    "lea-mvd": VERMILION,
    "cma-es": GREEN,
    "sep-cma-es": PURPLE,
    "random": GRAY,
    "start": "black",
    "no search": "black",  # the start, where it stands beside searches from it
    "snes": SKY,
    "cr-fm-nes": ORANGE,
}
"""One color per method, the same in every figure; the start solution, no search, is black."""

# readings of one method; all others are dash-dotted
STYLES = {"": "-", "x0-excluded": "--", "printed": ":"}


def method_look(method: str) -> dict[str, str]:
    """Return color and line style of a method, given its text."""
    trainer, _, settings = method.partition(":")
    return {"color": COLORS.get(trainer, GRAY), "linestyle": STYLES.get(settings, "-.")}


@styled
def panels(rows: int, columns: int, height: float, **options: Any) -> tuple[Figure, np.ndarray]:
    """Return a figure, `WIDTH` wide, and its axes, shape (rows, columns)."""
    return plt.subplots(rows, columns, figsize=(WIDTH, height), squeeze=False, **options)


def facets(
    table: pd.DataFrame,
    by: str,
    height: float,
    *,
    columns: int = 1,
    margin: float = 1.2,
    **options: Any,
) -> tuple[Figure, list[tuple[Axes, Any, pd.DataFrame]]]:
    """Return a figure with a panel for each value of a column, in order of appearance, and each
    panel's axes, value and rows.

    Inches: `height` of a row of panels, `margin` of all together.
    """
    parts = [*table.groupby(by, sort=False)]
    rows = -(-len(parts) // columns)
    figure, axes = panels(rows, columns, margin + height * rows, **options)
    for ax in axes.flat[len(parts) :]:
        ax.set_axis_off()
    shown = []
    for ax, part in zip(axes.flat, parts, strict=False):
        shown.append((ax, *part))
    return figure, shown


def layers_by_inputs(
    table: pd.DataFrame, height: float, *, margin: float = 1.2, **options: Any
) -> tuple[Figure, dict[tuple[str, int], Axes]]:
    """Return a figure with a row for each layer and a column for each kind of inputs, and its axes
    by both.
    """
    kinds = table["inputs"].unique()
    numbers = sorted(table["layer"].unique())
    figure, axes = panels(len(numbers), len(kinds), margin + height * len(numbers), **options)
    grid = {}
    for ax, (layer, kind) in zip(axes.flat, product(numbers, kinds), strict=True):
        ax.set_title(f"RBM {layer}, {kind} inputs")
        grid[kind, layer] = ax
    return figure, grid


def method_bands(ax: Axes, rows: pd.DataFrame, x: str, **look: Any) -> None:
    """Draw a `band` for each method, with its name and look."""
    for method, line in rows.groupby("method", sort=False):
        band(ax, line, x, label=named(method), **method_look(method), **look)


def band(ax: Axes, line: pd.DataFrame, x: str, y: str = "mean", **look: Any) -> None:
    """Draw a column as a line, and the interval from `low` to `high` as a band."""
    (drawn,) = ax.plot(line[x], line[y], **look)
    ax.fill_between(
        line[x], line["low"], line["high"], color=drawn.get_color(), alpha=0.2, linewidth=0
    )


def log_scale(ax: Axes, axes: str) -> None:
    """Make the axes "x", "y" or "xy" logarithmic, with plain numbers."""
    for name in axes:
        getattr(ax, f"set_{name}scale")("log")
        axis = getattr(ax, f"{name}axis")
        axis.set_major_formatter("{x:,g}")
        axis.set_minor_formatter(_Between(minor_thresholds=(1, 0.4)))


class _Between(LogFormatter):
    """Labels between powers of ten, where there are few of those."""

    def __call__(self, x: float, pos: int | None = None) -> str:
        return f"{x:,g}" if super().__call__(x, pos) else ""


def legend(figure: Figure, ncols: int = 3) -> None:
    """Show the labels of all panels, each once, below them, in `ncols` columns or as many as have
    room.
    """
    lines = {}
    for ax in figure.axes:
        drawn, names = ax.get_legend_handles_labels()
        lines.update(zip(names, drawn, strict=True))
    # of a column: a line and the longest label
    inches = 0.45 + 0.075 * max(map(len, lines), default=0)
    room = int(figure.get_figwidth() / inches)
    names = [typeset(name) for name in lines]
    columns = min(ncols, max(1, room))
    figure.legend(lines.values(), names, loc="outside lower center", ncols=columns)


def shades(count: int) -> np.ndarray:
    """Return colors of viridis, from dark to light, shape (count, 4)."""
    return plt.colormaps["viridis"](np.linspace(0.0, 0.85, count))


def typeset(words: str) -> str:
    """Return words with C_ani as a formula."""
    return words.replace("C_ani", "$C_{ani}$")


def error_bars(rows: pd.DataFrame, middle: str = "mean") -> np.ndarray:
    """Return the lengths of error bars, shape (2, rows), from the middle to `low` and `high`; 0
    without an interval.
    """
    return np.nan_to_num(rows[["low", "high"]].sub(rows[middle], axis=0).abs().to_numpy().T)


# ---- pictures of several sections


@styled
def input_std(errors: pd.DataFrame) -> Figure:
    """Plot the measure "input_std" of each layer on the first kind of inputs, a line for each
    method.
    """
    figure, ((ax,),) = panels(1, 1, height=3.6)
    layers = sorted(errors["layer"].unique())
    shown = errors[errors["inputs"] == errors["inputs"].iloc[0]]
    points_look = {"linewidth": 1.0, "marker": "o", "markersize": 3}
    for method, points in shown.groupby("method", sort=False):
        look = {**method_look(method), **points_look, "label": named(method)}
        ax.errorbar(points["layer"], points["mean"], error_bars(points), **look)
    ax.set_xticks(layers, [f"RBM {layer}" for layer in layers])
    ax.set(ylim=(0, None), ylabel="standard deviation of the inputs")
    legend(figure)
    return figure


@styled
def gray_images(rows: Mapping[str, np.ndarray], *, signed: bool = False) -> Figure:
    """Show images in 0 to 255, shape (k, side, side), in a row for each name.

    If `signed`, blue is below 127.5, white there, and red above.
    """
    colors = "RdBu_r" if signed else "gray_r"
    figure, axes = panels(len(rows), 1, height=0.3 + 0.4 * len(rows))
    for ax, (name, images) in zip(axes[:, 0], rows.items(), strict=True):
        framed = np.pad(images.astype(float), ((0, 0), (0, 0), (0, 1)), constant_values=np.nan)
        row = np.hstack(list(framed))
        ax.imshow(row, cmap=colors, vmin=0, vmax=255, interpolation="nearest")
        ax.set_axis_off()
        words = name.replace("$", r"\$")
        ax.text(-0.01, 0.5, words, transform=ax.transAxes, ha="right", va="center")
    # the layout makes room for the names when it knows how wide images are
    figure.draw_without_rendering()
    return figure


# ---- saving


def _make_visible(ax: Axes) -> None:
    """Mark the points of lines without a segment, which would not be seen; say so where nothing is
    finite.
    """
    drawn = [line for line in ax.lines if line.get_transform() == ax.transData]
    for line in drawn:
        finite = np.isfinite(np.asarray(line.get_xydata(), dtype=float)).all(axis=1)
        segments = finite[1:] & finite[:-1]
        if finite.any() and not segments.any() and line.get_marker() == "None":
            filled = line.get_color() if line.get_linestyle() == "-" else "white"
            line.set(marker="o", markersize=4, markerfacecolor=filled)
    if drawn and not np.isfinite(ax.dataLim.get_points()).all():
        ax.set(xscale="linear", yscale="linear")  # a logarithmic axis cannot be drawn then
        ax.text(0.5, 0.5, "no finite values", transform=ax.transAxes, ha="center", va="center")


@styled
def save(figure: Figure, name: str, folder: str | Path = ".") -> Image:
    """Write ``figures/NAME.png`` and its numbers, ``figures/NAME.csv``; return the picture for a
    notebook.
    """
    path = Path(folder, "figures", f"{name}.png").expanduser()
    path.parent.mkdir(parents=True, exist_ok=True)
    for ax in figure.axes:
        _make_visible(ax)
    figure.savefig(path)
    numbers(figure).to_csv(path.with_suffix(".csv"), index=False, float_format="%.8g")
    plt.close(figure)
    return Image(path, width=round(PIXELS * figure.get_figwidth()))


def numbers(figure: Figure) -> pd.DataFrame:
    """Return what a figure shows in its own words: a row for each point, or each row of an image.

    Points with one number of `line` were drawn at once. What has no label is of the series, or of
    one of those, whose lines have its color.
    """
    panels = []
    for ax in figure.axes:
        if ax.get_subplotspec() is None:
            continue  # a color bar
        shown = _shown(ax)
        words = {}
        for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
            words[name] = _axis_label(ax, name)
            if name in shown and isinstance(axis.get_major_formatter(), FuncFormatter):
                shown[name] = _tick_words(axis, shown[name])
        shown.insert(0, "panel", ax.get_title() or ax.get_title(loc="left"))
        panels.append(shown.rename(columns=words))
    table = pd.concat(panels, ignore_index=True)
    hidden = table["series"].str.startswith("_")
    series = table[~hidden].drop_duplicates(["color", "series"])
    by_color = series.groupby("color")["series"].agg(" or ".join)
    table.loc[hidden, "series"] = table["color"].map(by_color)
    table = table.drop(columns="color").replace("\n", " ", regex=True).replace("", np.nan)
    return table.dropna(axis="columns", how="all")


def _axis_label(ax: Axes, name: str) -> str:
    """Return the words at the axis "x" or "y", at one that it is shared with, in its column or row,
    or for the figure.
    """
    label = f"get_{name}label"
    span = {"x": "colspan", "y": "rowspan"}[name]
    said = [name, getattr(ax.figure, f"get_sup{name}label")()]
    place = getattr(ax.get_subplotspec(), span)
    shared = getattr(ax, f"get_shared_{name}_axes")()
    for other in (*ax.figure.axes, ax):
        if shared.joined(ax, other) or getattr(other.get_subplotspec(), span, None) == place:
            said.append(getattr(other, label)())
    words = next(filter(None, reversed(said)))
    return words.replace("\n", " ")


def _tick_words(axis: Axis, places: pd.Series) -> pd.Series:
    """Return what the nearest ticks say."""
    ticks = axis.get_majorticklocs()
    words = axis.get_major_formatter().format_ticks(ticks)
    return places.map(lambda at: words[np.abs(ticks - at).argmin()], na_action="ignore")


def _shown(ax: Axes) -> pd.DataFrame:
    """Return what is drawn in axes; bands and error bars are columns of the lines before them."""
    labels = {bars.lines[0]: bars.get_label() or "_" for bars in ax.containers}
    parts = [pd.DataFrame(columns=["series", "line", "color"])]
    for one in ax.get_children():
        label = labels.get(one, one.get_label())
        color = label
        if isinstance(one, LineCollection | PolyCollection) and one.get_paths():
            points = _ends(one)
            color = to_hex(one.get_edgecolor()[0])
            if label.startswith("_"):
                parts[-1] = parts[-1].merge(points, how="left")
                continue
        elif isinstance(one, PathCollection):
            points = pd.DataFrame(one.get_offsets(), columns=["x", "y"])
        elif isinstance(one, Line2D):
            points = pd.DataFrame(one.get_xydata(), columns=["x", "y"])
            if one.get_transform() != ax.transData:  # across the axes
                points = points.loc[:0, points.nunique() == 1]
            elif label.startswith("_") or one.get_linestyle() != "None":
                color = to_hex(one.get_color())
        elif isinstance(one, AxesImage):
            points = pd.DataFrame(one.get_array())
            label = " ".join(text.get_text() for text in ax.texts)
        else:
            continue
        parts.append(points.assign(series=label, color=color, line=len(parts)))
    return pd.concat(parts)


def _ends(area: Artist) -> pd.DataFrame:
    """Return where intervals stand, and their ends."""
    paths = [path.vertices for path in area.get_paths()]
    axes = ["y", "x"]
    names = ["x low", "x high"]
    if all(ends[0, 0] == ends[1, 0] for ends in paths):
        axes = ["x", "y"]
        names = ["low", "high"]
    place, along = axes
    corners = pd.DataFrame(np.concatenate(paths), columns=["x", "y"]).groupby(place)[along]
    return corners.agg(["min", "max"]).set_axis(names, axis="columns").reset_index()
