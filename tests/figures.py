"""Comparing what figures plot, and their numbers for readers, with the accepted ones in
``tests/figures/PROFILE``; captions, and rules.

After a change that is right: ``make accept``, and git shows what has moved.
"""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import same_color, to_hex, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator, NullLocator
from pandas.api.types import is_numeric_dtype

from leamvd_paper.studies import plots
from leamvd_paper.studies.plots import COLORS
from leamvd_paper.studies.words import named

ACCEPTED = Path(__file__).parent / "figures"
# how names of figures of seconds and bytes begin, which are other ones each time
MEASURED = "timing-"


def check_figures(folder: Path, profile: str, file_regression: Any) -> None:
    """Compare each figure that a run has drawn with the accepted one; of the recorded runs also the
    numbers that the book offers.
    """
    checks = {".json": same_figure}
    if profile == "recorded":
        checks[".csv"] = same_numbers
    moved = []
    for path in sorted(folder.iterdir()):
        if path.suffix not in checks or path.name.startswith(MEASURED):
            continue
        try:
            file_regression.check(
                path.read_text(encoding="utf-8"),
                fullpath=ACCEPTED / profile / path.name,
                check_fn=checks[path.suffix],
            )
        except AssertionError as error:
            moved.append(str(error))
    assert not moved, "\n\n".join(moved)


def keep_arrays() -> None:
    """Write what each figure plots beside it, ``figures/NAME.json``: kernels that tests start call
    this.
    """
    save = plots.save

    def kept(figure: Figure, name: str, folder: str | Path = ".") -> Any:
        shown = save(figure, name, folder)
        Path(folder, "figures", f"{name}.json").write_text(text_of(figure), encoding="utf-8")
        return shown

    plots.save = kept


def text_of(figure: Figure) -> str:
    """Return what a figure plots as JSON."""
    return json.dumps(plotted(figure)) + "\n"


def plotted(figure: Figure) -> list[dict[str, Any]]:
    """Return words, looks and arrays, to eight digits, of each of a figure's axes; at the end those
    of its legends.
    """
    drawn = []
    for ax in figure.axes:
        texts = list(ax.texts)
        for axis in (ax.xaxis, ax.yaxis):
            if isinstance(axis.get_major_locator(), FixedLocator):
                texts += axis.get_ticklabels()
        said = {
            "title": ax.get_title(),
            "x": ax.get_xlabel(),
            "y": ax.get_ylabel(),
            "scales": [ax.get_xscale(), ax.get_yscale()],
            "texts": [text.get_text() for text in texts],
            "looks": [_look(line) for line in ax.lines],
            "arrays": [_eight_digits(values) for values in _arrays(ax, texts)],
        }
        drawn.append(said)
    legends = figure.findobj(Legend)
    labels = [text.get_text() for part in (figure, *legends) for text in part.texts]
    looks = [_look(line) for shown in legends for line in shown.findobj(Line2D)]
    return [*drawn, {"texts": labels, "looks": looks, "arrays": []}]


def _arrays(ax: Axes, texts: list[Text]) -> list[Any]:
    """Return what is drawn in axes, and where their texts stand."""
    arrays = [line.get_xydata() for line in ax.lines]
    arrays += [c.get_offsets() for c in ax.collections]
    for shown in (*ax.collections, *ax.images):
        if shown.get_array() is not None:
            arrays.append(shown.get_array())
    for area in ax.collections:
        if not isinstance(area, PathCollection):  # bands and error bars
            arrays += [path.vertices for path in area.get_paths()]
    arrays += [np.array(bar.get_bbox()) for bar in ax.patches]
    # where an annotation points to
    arrays += [getattr(text, "xy", text.get_position()) for text in texts]
    return arrays


def _eight_digits(values: Any) -> Any:
    """Return an array as JSON has it; None for what is masked or NaN."""
    numbers = np.ma.filled(np.ma.asarray(values, dtype=float), np.nan)
    rounded = np.array([float(f"{number:.8g}") for number in numbers.flat], dtype=object)
    rounded = rounded.reshape(numbers.shape)
    rounded[np.isnan(numbers)] = None
    return rounded.tolist()


def _look(line: Line2D) -> str:
    return (
        f"{line.get_linestyle()} {line.get_marker()} {line.get_color()}"
        f" {line.get_markerfacecolor()}"
    )


def same_figure(obtained: Path, expected: Path) -> None:
    """Compare words exactly, and arrays to six digits of their largest number."""
    found, accepted = (
        json.loads(path.read_text(encoding="utf-8")) for path in (obtained, expected)
    )
    name = expected.stem
    assert len(found) == len(accepted), f"{len(found)} panels of {name}, not {len(accepted)}"
    for number, (own, other) in enumerate(zip(found, accepted, strict=True), start=1):
        message = f"panel {number} of {name}"
        for part in sorted({*own, *other} - {"arrays"}):
            said, before = own.get(part), other.get(part)
            assert said == before, f"{message}: {part} are {said}, not {before}"
        for a, b in zip(own["arrays"], other["arrays"], strict=True):
            a, b = np.array(a, dtype=float), np.array(b, dtype=float)
            largest = float(np.nanmax(np.abs(b), initial=0))
            np.testing.assert_allclose(
                a, b, rtol=1e-6, atol=1e-6 * largest, equal_nan=True, err_msg=message
            )


def same_numbers(obtained: Path, expected: Path) -> None:
    """Compare words exactly, and numbers to six digits of the largest in their column."""
    found, accepted = (pd.read_csv(path) for path in (obtained, expected))
    assert [*found] == [*accepted], expected.name
    for name, column in accepted.items():
        if is_numeric_dtype(column):
            look = {"rtol": 1e-6, "atol": 1e-6 * column.abs().max(), "equal_nan": True}
            np.testing.assert_allclose(found[name], column, **look, err_msg=f"{expected}: {name}")
        else:
            pd.testing.assert_series_equal(found[name], column, obj=f"{expected}: {name}")


def faces_said(notebook: str, figure: str) -> dict[str, bool]:
    """Return whether a figure's caption calls markers filled, and not hollow or open, by the two
    words that say which.

    "training images (filled)", "Filled: float32".
    """
    content = json.loads(
        (ACCEPTED.parents[1] / "notebooks" / f"{notebook}.ipynb").read_text(encoding="utf-8")
    )
    texts = ["".join(cell["source"]) for cell in content["cells"]]
    (at,) = (i for i, text in enumerate(texts) if f'"{figure}", output' in text)
    caption = texts[at + 1].lower()
    said = re.findall(r"(\w+ \w+) \((filled|hollow|open)", caption)
    said += [(words, face) for face, words in re.findall(r"(filled|hollow|open): (\w+)", caption)]
    return {words: face == "filled" for words, face in said}


def faces_drawn(ax: Axes) -> dict[tuple[float, ...], bool]:
    """Return whether the markers of circles are filled, by the places of lines of them."""
    dots = [line for line in ax.lines if line.get_marker() == "o"]
    return {
        tuple(np.ravel(line.get_xydata()).tolist()): bool(
            same_color(line.get_markerfacecolor(), line.get_color())
        )
        for line in dots
    }


ABOVE = {"what-to-use"}  # whose captions say that lines leave the panels at the top
# whose titles and legends say what the axes are
TITLED = {"esd-models", "explanation-falls", "explanation-falls-28x28"}


def hold_to_rules() -> None:
    """Hold each figure that is saved from now on to the rules: kernels of the tests call it as they
    start.
    """
    save = plots.save

    def held(figure: Figure, name: str, folder: str | Path = ".") -> Any:
        assert_sound(figure, above=name in ABOVE)
        assert_methods_have_their_colors(figure)
        if name not in TITLED:
            assert_labeled(figure)
        return save(figure, name, folder)

    plots.save = held


def assert_sound(figure: Figure, *, above: bool = False) -> None:
    """Assert that all points lie within the axes, and that intervals have the colors of lines or
    are guides in gray.
    """
    for ax in figure.axes:
        lines = [line.get_xydata() for line in ax.lines if line.get_transform() is ax.transData]
        dots = [
            drawn.get_offsets() for drawn in ax.collections if isinstance(drawn, PathCollection)
        ]
        points = np.concatenate([np.empty((0, 2)), *lines, *dots]).astype(float)
        points = points[np.isfinite(points).all(axis=1)]
        for axis, limits in enumerate((ax.get_xlim(), ax.get_ylim())):
            values = points[:, axis]
            assert (values >= min(limits)).all(), f"{ax.get_title()}: below {limits}"
            if axis == 0 or not above:
                assert (values <= max(limits)).all(), f"{ax.get_title()}: above {limits}"
        known = {to_hex(line.get_color()) for line in ax.lines}
        for drawn in ax.collections:
            if isinstance(drawn, LineCollection | PolyCollection):
                colors = (
                    drawn.get_color()
                    if isinstance(drawn, LineCollection)
                    else drawn.get_facecolor()
                )
                assert {to_hex(color) for color in colors if len(set(color[:3])) > 1} <= known


def assert_labeled(figure: Figure) -> None:
    """Assert that every axis with numbers says what they are: itself, for all panels, or at the end
    of its column or row.
    """
    for name, of_all in (("x", figure.get_supxlabel()), ("y", figure.get_supylabel())):
        said = {}
        for ax in figure.axes:
            spec = ax.get_subplotspec()
            place = spec.colspan if name == "x" else spec.rowspan
            label = getattr(ax, f"get_{name}label")()
            axis = getattr(ax, f"{name}axis")
            worded = isinstance(axis.get_major_locator(), FixedLocator | NullLocator)
            if label or (ax.axison and axis.get_visible() and not worded):
                said.setdefault(place, []).append(label)
        for place, labels in said.items():
            assert of_all or any(labels), f"{name}, {place}: no label"


def assert_told_apart(figure: Figure) -> None:
    """Assert that one label has one look in all panels, which is the legend's, and that lines with
    other labels look different.
    """
    looks: dict[str, set[str]] = {}
    labels: dict[str, str] = {}
    colors = {}
    for ax in figure.axes:
        for drawn, label in zip(*ax.get_legend_handles_labels(), strict=True):
            line = getattr(drawn, "lines", [drawn])[0]
            if isinstance(line, Line2D):
                look = _look(line)
                assert labels.setdefault(look, label) == label, "two labels, one look"
                looks.setdefault(label, set()).add(look.rpartition(" ")[0])  # faces may differ
                colors[plots.typeset(label)] = line.get_color()
    assert all(len(own) == 1 for own in looks.values()), looks
    for shown in figure.legends:
        for text, handle in zip(shown.get_texts(), shown.legend_handles, strict=True):
            color = colors.get(text.get_text())
            if color is not None:
                (own,) = to_rgba_array(handle.get_color())
                assert same_color(own, color), text.get_text()


def assert_methods_have_their_colors(figure: Figure) -> None:
    """Assert that what is labeled by a method has the method's color, the same in every figure."""
    own = {named(method): color for method, color in COLORS.items()}
    for ax in figure.axes:
        for drawn, label in zip(*ax.get_legend_handles_labels(), strict=True):
            # a level is no method's marker
            if label in own and not isinstance(drawn, LineCollection):
                line = drawn if isinstance(drawn, Line2D) else drawn.lines[0]
                assert same_color(line.get_color(), own[label]), label
