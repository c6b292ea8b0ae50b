"""Drawing: sizes, names, ticks and colors, tables as no recorded run has them, and what a comparison sees."""

import io
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import accepted
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from test_bench_overview import RECORDED

from leamvd.bench import overview
from leamvd.experiments import search_directions
from leamvd.figures import claims, comparison, costs, explanation, style
from leamvd.figures import search_directions as draw


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


def test_a_figure_in_a_notebook_is_as_large_as_it_was_drawn_and_twice_as_sharp(tmp_path: Path) -> None:
    figure, axes = style.new(height=3.0)
    axes[0, 0].set_xlabel("x", fontsize=7.2)
    picture = style.save(figure, "one", tmp_path)
    png, metadata = DisplayFormatter().format(picture)
    assert metadata["image/png"] == {"width": 540}  # alone, so that a page may scale it
    assert png["image/png"] == (tmp_path / "figures" / "one.png").read_bytes()
    with Image.open(io.BytesIO(png["image/png"])) as image:
        assert image.size == (1080, 600)
    content = accepted.read(tmp_path / "figures" / "one")
    assert content["size"] == [540, 300]
    assert content["text"] == 10


def test_names_at_the_ends_of_lines_do_not_overlap() -> None:
    figure, axes = style.new(height=3.0)
    for i, end in enumerate((0.5, 0.51, 0.0, 1.0, 0.49)):
        axes[0, 0].plot([0, 1], [0.5, end], label=f"method {i}:with a reading")
    style.label_ends(axes[0, 0])
    figure.canvas.draw()
    boxes = [Text.get_window_extent(text) for text in sorted(axes[0, 0].texts, key=lambda text: text.xy[1])]
    assert len(boxes) == 5
    assert all(below.y1 <= above.y0 for below, above in itertools.pairwise(boxes)), "in the order of the ends"
    assert max(box.x1 for box in boxes) < figure.bbox.x1


def test_no_line_to_a_name_crosses_another_name() -> None:
    figure, axes = style.new(height=3.0)
    for i, end in enumerate((4.0, 4.2, 3.8, 4.1, 4.7)):
        axes[0, 0].plot([0, 1], [100, end], label=f"method {i}")
    style.label_ends(axes[0, 0])
    figure.canvas.draw()
    names = [Text.get_window_extent(text) for text in axes[0, 0].texts]
    for text in axes[0, 0].texts:
        drawn = text.arrow_patch.get_transform().transform_path(text.arrow_patch.get_path())
        assert not [i for i, name in enumerate(names) if drawn.intersects_bbox(name)], text.get_text()


@pytest.mark.parametrize(
    ("ends", "most", "ticks"),
    [
        ((0.4, 2.2), 6, ["0.5", "1", "2"]),
        ((0.02, 30.0), 4, ["0.1", "1", "10"]),  # 1, 2 and 5 of each decade would be nine
        ((24_500, 56_000), 6, ["30,000", "40,000", "50,000"]),  # and here one
        ((1_700, 4_100), 3, ["2,000", "4,000"]),
        ((4e-7, 2e-4), 6, ["$10^{-6}$", "$10^{-5}$", "0.0001"]),
        ((1e-6, 6e-6), 6, ["$10^{-6}$", r"$2 \cdot 10^{-6}$", r"$5 \cdot 10^{-6}$"]),
        ((2e5, 2e6), 3, ["1,000,000", "2,000,000"]),
    ],
)
def test_a_logarithmic_axis_has_few_plain_ticks(ends: tuple[float, float], most: int, ticks: list[str]) -> None:
    ax = style.new(width=4.0)[1].item()
    style.logarithmic(ax.xaxis, most)
    ax.set_xlim(ends)
    shown = [tick for tick in ax.get_xticks() if ends[0] <= tick <= ends[1]]
    assert ax.xaxis.get_major_formatter().format_ticks(shown) == ticks


# ---- tables as no recorded run has them


def test_a_scene_without_a_path_can_be_drawn() -> None:
    plan = search_directions.Plan(n_var=5, n_gen=14, seeds=(0, 1), n_populations=10)
    scene = search_directions.scene(plan, 2, 1, 0)
    assert not scene.vectors.loc["P"].any()
    figure = draw.scene_2d(*scene)
    assert [[0.0, 0.0], [0.0, 0.0]] in style.plotted(figure)[4]["arrays"]


def errors(
    kinds: tuple[str, ...] = ("own", "shared"), layers: tuple[int, ...] = (1, 2), method: str = "cd", title: str = "t"
) -> Figure:
    """Draw a line in each panel."""
    cells = itertools.product(kinds, layers, [method], range(4), [1.0], [0.5], [2.0])
    columns = ["inputs", "layer", "method", "iteration", "mean", "low", "high"]
    runs = pd.DataFrame(columns=[*columns[:4], "seed", "value"])
    figure: Figure = comparison.learning_curves(pd.DataFrame(cells, columns=columns), runs, title, "error")
    return figure


@pytest.mark.parametrize(("kinds", "layers"), [(("own",), (1,)), (("shared",), (1, 2, 3, 4))])
def test_errors_of_any_number_of_layers(kinds: tuple[str, ...], layers: tuple[int, ...]) -> None:
    panels = style.plotted(errors(kinds, layers))
    assert [panel["title"] for panel in panels] == [f"RBM {layer}, {kinds[0]} inputs" for layer in layers]
    assert panels[-1]["labels"] == ["epoch or generation", ""]
    assert len(panels[0]["arrays"][0]) == 3, "lines begin with the first iteration"


def test_a_title_stays_within_a_figure_of_one_layer() -> None:
    title = "scikit-learn digits, 1,437 images of 28 x 28, 4 runs (line: mean, band: smallest to largest)"
    figure = errors(layers=(1,), title=title)
    figure.canvas.draw()
    text, paper = figure._suptitle.get_window_extent(), figure.bbox
    assert paper.x0 < text.x0 < text.x1 < paper.x1


@pytest.mark.parametrize("name", ["a$_$b", "a$x$b", "$", "a_b^c", r"a\b", "<b>&|`"])
def test_names_of_readings_are_shown_as_they_are(name: str) -> None:
    method = f"lea-mvd:{name}.json"
    made = [errors(method=method), comparison.pictures({method: np.zeros((1, 2, 4, 4))}, "")]
    for figure in made:
        figure.canvas.draw()
        (text,) = figure.axes[-1].texts
        shown, mathematics = text._preprocess_math(text.get_text())
        assert (shown.replace(":\n", ":"), mathematics) == (method, False)


def test_costs_of_nothing_and_of_little() -> None:
    """A run of one method, or whose rows were stopped, is shown all the same."""

    def names(figure: Figure) -> set[str]:
        return {text.get_text() for text in figure.axes[0].texts}

    for rows, named, sizes in (
        (RECORDED.optimizers.iloc[:0], set(), ["n = 0"]),
        (RECORDED.optimizers.query("n == 1000 and method == 'leamvd'"), {"LEA-MVD"}, ["n = 1,000"]),
        (RECORDED.optimizers.query("n <= 10000 and method in ('leamvd', 'pycma separable')"),
         {"LEA-MVD", "separable\nCMA-ES"}, ["n = 10,000", "n = 1,000"]),
    ):  # fmt: skip
        assert names(costs.growth(overview.costs(rows), overview.full_matrix(rows))) == named
        (legend,) = costs.ratios(overview.ratios(rows)).legends
        assert [text.get_text() for text in legend.get_texts()] == sizes
    assert names(costs.split(overview.shares(RECORDED.split.iloc[:0]))) == set()


def test_color_and_sign_say_what_is_met_and_what_was_not_run_is_left_out() -> None:
    columns = ["claim", "view", "part", "effect", "low", "high", "lower", "upper", "unit", "met"]
    rows = [
        ("C3", "both", "a", 40.0, 35.0, 45.0, -1.0, 1.0, "%", False),
        ("C7", "conclusion", "b", 0.8, 0.7, 0.9, -np.inf, 1.0, "ratio", True),
        ("C7", "as printed", "c", 3.0, 2.0, 4.0, 1.0, np.inf, "ratio", None),
        ("C15", "both", "d", np.nan, np.nan, np.nan, 0.95, 1.05, "slope", None),
    ]
    figure = claims.effects(pd.DataFrame(rows, columns=columns).astype({"met": "boolean"}))
    shown = style.plotted(figure)
    assert [(panel["title"], panel["scales"][0]) for panel in shown] == [("C3, %", "linear"), ("C7, ratio", "log")]
    named = [[text.get_text() for text in ax.texts] for ax in figure.axes]
    assert named == [["a"], ["as printed: c", "conclusion: b"]]
    marked = [
        (line.get_xdata()[0], line.get_marker())
        for ax in figure.axes
        for line in ax.lines
        if line.get_marker() in "oxs"
    ]
    assert marked == [(40.0, "x"), (3.0, "s"), (0.8, "o")]


# ---- colors


# Machado, Oliveira and Fernandes (2009): linear RGB as it is seen without one kind of cones.
SEEN = {
    "by most": np.eye(3),
    "protanopia": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "deuteranopia": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]),
}
XYZ = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])


def linear(color: str) -> np.ndarray[Any, Any]:
    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return CIELAB, in which a distance of about 2 can just be seen."""
    t = XYZ @ rgb / XYZ.sum(axis=1)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("seen", SEEN)
def test_colors_are_far_apart_for_everyone(seen: str) -> None:
    assert set(style.COLORS.values()) == set(style.PALETTE)
    places = [lab(np.clip(SEEN[seen] @ linear(color), 0, 1)) for color in style.PALETTE]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) > 15


def test_colors_are_seen_on_white() -> None:
    for color in style.PALETTE:
        assert 1.05 / (XYZ[1] @ linear(color) + 0.05) >= 3, "WCAG 2.1, 1.4.11"


def test_no_figure_has_another_color() -> None:
    """A color that is not a gray is the palette's, in all but the figures of costs."""
    for path in Path(style.__file__).parent.glob("*.py"):
        if path.stem not in ("style", "costs"):
            assert not re.search(r"\"(C\d|#[0-9a-f]{6}|tab:\w+)\"", path.read_text(encoding="utf-8")), path.name


# ---- what a comparison sees


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


@pytest.fixture(scope="module")
def before(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return accepted.read(saved(tmp_path_factory.mktemp("before")))


@pytest.mark.parametrize(
    "fault",
    [
        {"shift": 0.001}, {"error": 0.05}, {"title": "T"}, {"x": "X"}, {"y": "Y"}, {"first": "cma-es"},
        {"color": "C2"}, {"tick": "1"}, {"line": "--"},
    ],
    ids=str,
)  # fmt: skip
def test_what_pixels_may_miss_is_seen(before: dict[str, Any], tmp_path: Path, fault: dict[str, Any]) -> None:
    assert accepted.content(before, accepted.read(saved(tmp_path, **fault))) != []


def test_the_same_is_seen_as_the_same(before: dict[str, Any], tmp_path: Path) -> None:
    assert accepted.content(before, accepted.read(saved(tmp_path))) == []


def test_swapped_colors_are_seen() -> None:
    """Two curves that change colors keep their arrays and their legend's texts."""
    made = []
    for colors in (("C0", "C1"), ("C1", "C0")):
        figure, axes = style.new()
        for name, color, x in zip(("cd", "lea-mvd"), colors, (1, 2), strict=True):
            axes[0, 0].plot([0, x], color=color, label=name)
        axes[0, 0].legend()
        made.append(style.shown(figure))
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


def test_gains_show_what_is_needed_in_the_panels_of_its_study() -> None:
    falls = {"measured": 3.0, "predicted": 2.0, "retrodicted": 2.5, "low": np.nan, "high": np.nan}
    rows = pd.DataFrame([{"study": s, "layer": 1, "reset": True} | falls for s in ("mnist-7x7", "mnist-28x28")])
    needed = pd.DataFrame(
        [("mnist-28x28", 1, "cd", 50.0), ("mnist-28x28", 1, "900", 80.0)], columns=["study", "layer", "below", "needed"]
    )
    figure, other = (explanation.gains(rows, table, "") for table in (needed, needed[:0]))
    targets = [[line.get_ydata()[0] for line in ax.lines if line.get_ydata()[0] > 10] for ax in figure.axes]
    assert targets == [[], [], [50, 80], [50, 80]]
    assert [line.get_linestyle() for line in figure.axes[2].lines if line.get_ydata()[0] > 10] == ["-", "--"]
    fourth = explanation.gains(rows.assign(layer=4), needed[:0], "")
    assert "RBM 4" in [text.get_text() for text in fourth.legends[0].get_texts()]
    named, without = ({text.get_text() for text in each.legends[0].get_texts()} for each in (figure, other))
    assert named - without == {"to end below CD", "for the paper's number"}
