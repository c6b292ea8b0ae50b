"""The figures that nbval's runs of the notebooks have drawn (`make test`) are the accepted ones."""

import os
import shutil
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from matplotlib.colors import same_color, to_hex
from PIL import Image

import moved_figures
from figures import ACCEPTED, MEASURED, check_figures, plotted
from leamvd_paper.studies import plots

DRAWN = Path(os.environ.get("LEAMVD_DRAWN", "none"))  # a folder with the folder "figures"


@pytest.mark.skipif(not DRAWN.is_dir(), reason="no notebooks were run: make test")
def test_the_figures_of_the_recorded_runs_plot_what_is_accepted(file_regression: Any) -> None:
    check_figures(DRAWN / "figures", "recorded", file_regression)
    drawn, accepted = (
        {
            path.name
            for path in folder.iterdir()
            if path.suffix != ".png" and not path.name.startswith(MEASURED)
        }
        for folder in (DRAWN / "figures", ACCEPTED / "recorded")
    )
    assert drawn == accepted


def test_a_page_shows_each_figure_that_moved_before_and_now(tmp_path: Path) -> None:
    accepted = tmp_path / "accepted"
    shutil.copytree(ACCEPTED / "recorded", accepted)
    drawn = shutil.copytree(accepted, tmp_path / "drawn")
    unlike = drawn / "classification-worth.json"
    unlike.write_text(unlike.read_text(encoding="utf-8").replace("error", "loss"), encoding="utf-8")
    unlike.with_suffix(".png").write_bytes(b"now")
    (accepted / "costs-growth.json").unlink()
    (drawn / "esd-differences.csv").unlink()
    changes = moved_figures.moved(drawn, accepted)
    before = dict.fromkeys(("classification-worth", "esd-differences"), "b25jZQ==")
    shown = BeautifulSoup(moved_figures.page(changes, before, drawn), "html.parser")
    pictures = {}
    for heading in shown("h2"):
        images = heading.find_next_sibling("div")("img")
        pictures[heading.text] = [
            b64decode(str(image["src"]).rpartition(",")[2]) for image in images
        ]
    assert pictures == {
        "classification-worth": [b"once", b"now"],
        "costs-growth": [],
        "esd-differences": [b"once"],
    }


def test_a_figure_is_as_wide_as_the_text_and_has_more_pixels_than_are_shown(tmp_path: Path) -> None:
    figure, _ = plots.panels(1, 1, height=3)
    shown = plots.save(figure, "one", tmp_path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        plots.save(plots.panels(1, 1, height=3)[0], "two", "~/mine")
    assert {path.name for path in tmp_path.glob("mine/figures/*")} == {"two.png", "two.csv"}
    with Image.open(tmp_path / "figures" / "one.png") as image:
        assert shown.width == 620
        assert 1.5 * shown.width < image.width < 2 * shown.width
        assert image.height / image.width == pytest.approx(3 / plots.WIDTH, rel=0.01)


@pytest.mark.parametrize(
    ("ends", "major", "minor"),
    [((1.2, 8.0), {}, {2, 3, 4, 6}), ((0.5, 20_000.0), {"1", "100", "10,000"}, set())],
)
def test_logarithmic_axes_have_plain_numbers_between_powers_of_ten_where_these_are_few(
    ends: tuple[float, float], major: set[str], minor: set[int]
) -> None:
    figure, ((ax,),) = plots.panels(1, 1, height=3)
    ax.plot(ends, ends)
    plots.log_scale(ax, "xy")
    figure.draw_without_rendering()
    plots.plt.close(figure)
    for axis in (ax.xaxis, ax.yaxis):
        low, high = axis.get_view_interval()
        shown = {}
        for is_minor in (False, True):
            places = axis.get_ticklocs(minor=is_minor)
            labels = [label.get_text() for label in axis.get_ticklabels(minor=is_minor)]
            pairs = zip(places, labels, strict=True)
            shown[is_minor] = {x: text for x, text in pairs if low <= x <= high and text}
        assert {*major} <= {*shown[False].values()}
        assert {*minor} <= {*shown[True]}
        assert bool(minor) == bool(shown[True])
        assert all(text == f"{x:,g}" for part in shown.values() for x, text in part.items())


@pytest.mark.parametrize("length", [5, 30, 60])
def test_a_legend_has_each_label_once_and_is_no_wider_than_the_figure(length: int) -> None:
    figure, axes = plots.panels(1, 2, height=3)
    labels = [f"{i} {'long ' * length}"[:length] for i in range(5)]
    for ax in axes[0]:
        for label in [*labels, "without C_ani"]:
            ax.plot([1, 2], label=label)
    plots.legend(figure, ncols=5)
    (shown,) = figure.legends
    assert [text.get_text() for text in shown.texts] == [*labels, "without $C_{ani}$"]
    figure.draw_without_rendering()
    box = shown.get_window_extent()
    plots.plt.close(figure)
    assert 0 <= box.x0 < box.x1 <= figure.bbox.width


def test_bars_reach_from_the_middle_to_both_ends_and_are_none_without_an_interval() -> None:
    rows = pd.DataFrame({"mean": [3.0, 5.0], "low": [2.0, np.nan], "high": [7.0, np.nan]})
    assert plots.error_bars(rows).tolist() == [[1, 0], [4, 0]]
    _, ((ax,),) = plots.panels(1, 1, height=3)
    ax.errorbar([0, 1], rows["mean"], plots.error_bars(rows))
    (bars,) = ax.collections
    plots.plt.close("all")
    ends = [segment[:, 1].tolist() for segment in bars.get_segments()]
    assert ends == [[2, 7], [5, 5]]


def test_a_band_is_the_interval_in_the_color_of_its_line() -> None:
    figure, ((ax,),) = plots.panels(1, 1, height=3)
    line = pd.DataFrame(
        {"n": [1.0, 2.0], "mean": [3.0, 5.0], "low": [2.0, 4.0], "high": [7.0, 9.0]}
    )
    for shift, color in ((0, plots.GREEN), (10, plots.SKY)):
        plots.band(ax, line + shift, "n", color=color)
    plots.plt.close(figure)
    for drawn, area, shift in zip(ax.lines, ax.collections, (0, 10), strict=True):
        assert same_color(area.get_facecolor()[0, :3], drawn.get_color())
        assert area.get_facecolor()[0, 3] < 0.5, "what lies below is seen"
        corners = {tuple(corner) for corner in area.get_paths()[0].vertices - shift}
        assert corners == {(1, 2), (2, 4), (1, 7), (2, 9)}


@pytest.mark.parametrize(
    ("signed", "known"),
    [(False, {0: "#ffffff", 255: "#000000"}), (True, {0: "#053061", 255: "#67001f"})],
)
def test_a_gray_level_has_one_color_whatever_is_beside_it(
    signed: bool, known: dict[int, str]
) -> None:
    rng = np.random.default_rng(0)
    rows = {}
    for most in (20, 128, 255):
        rows[f"up to {most}"] = rng.integers(0, most, (3, 7, 7))
    figure = plots.gray_images(rows, signed=signed)
    plots.plt.close(figure)
    shown = [image for ax in figure.axes for image in ax.images]
    assert len(shown) == len(rows)
    for level in (0, 20, 100, 255):
        (color,) = {to_hex(image.to_rgba(np.array([[level]], float))[0, 0]) for image in shown}
        assert color == known.get(level, color)


def test_no_two_methods_have_one_color() -> None:
    colors = {method: to_hex(color) for method, color in plots.COLORS.items()}
    assert colors.pop("no search") == colors["start"], "two names of one"
    assert len({*colors.values()}) == len(colors)
    assert all(
        to_hex(plots.method_look(f"{method}:printed")["color"]) == color
        for method, color in colors.items()
    )


@pytest.mark.parametrize(
    "change",
    [{"style": ":"}, {"face": "none"}, {"ticks": "ba"}, {"word": "worse"}, {"at": 2}, {"n": 8}],
    ids=str,
)
def test_what_is_compared_of_a_figure_has_its_words_their_places_and_looks(
    change: dict[str, Any],
) -> None:
    def drawn(
        style: str = "--",
        face: Any = "full",
        ticks: str = "ab",
        word: str = "better",
        at: int = 1,
        n: int = 9,
    ):
        figure, ((ax,),) = plots.panels(1, 1, height=3)
        ax.plot([1, 2], [3, 4], style, marker="o", fillstyle=face, label=f"n = {n}")
        ax.set_yticks([3, 4], list(ticks))
        ax.annotate(word, (at, 3), (5, 5), textcoords="offset points")
        plots.legend(figure)
        plots.plt.close(figure)
        return plotted(figure)

    assert drawn() == drawn() != drawn(**change)


def saved(figure: Any, folder: Path) -> pd.DataFrame:
    plots.save(figure, "one", folder)
    return pd.read_csv(folder / "figures" / "one.csv")


def test_the_numbers_of_lines_have_their_bands_and_the_figures_words(tmp_path: Path) -> None:
    means = pd.DataFrame({"n": [1.0, 2.0], "mean": [3.0, 5.0], "low": [2.0, 4.0], "high": 9.0})
    figure, axes = plots.panels(2, 2, height=4)
    for ax, title in zip(axes[0], ("RBM 1", "RBM 2"), strict=True):
        ax.set_title(title)
        for name, color in (("CD", plots.GREEN), ("start", plots.SKY)):
            ax.plot(means["n"], means["mean"] + 1, color=color)
            plots.band(ax, means, "n", label=name, color=color)
        ax.axhline(50, color="black")
        ax.axhline(60, color=plots.PURPLE, label="a level")
    for ax, words in zip(axes[1], ("passes", "seconds"), strict=True):
        ax.set_xlabel(words)
    figure.supylabel("error\nof all")
    table = saved(figure, tmp_path)
    y = "error of all"
    assert [*table] == ["panel", "series", "line", "passes", y, "low", "high", "seconds"]
    for panel, x in (("RBM 1", "passes"), ("RBM 2", "seconds")):
        own = table[table["panel"] == panel]
        for name in ("CD", "start"):
            lines = own[own["series"] == name].groupby("line")
            single, line = (rows for _, rows in lines)
            np.testing.assert_array_equal(single[y], means["mean"] + 1)
            assert single[["low", "high"]].isna().all(axis=None)
            np.testing.assert_array_equal(line[[x, y, "low", "high"]], means)
        levels = own[own[x].isna()]
        assert [*levels[y]] == [50, 60]
        assert levels["series"].isna().tolist() == [True, False]


def test_the_numbers_of_points_have_their_intervals_and_the_words_of_ticks(tmp_path: Path) -> None:
    rows = pd.DataFrame({"mean": [3.0, 5.0], "low": [2.0, 4.5], "high": [7.0, 5.0]})
    figure, ((left, right),) = plots.panels(1, 2, height=3)
    places = np.array([0.15, 0.85])
    right.errorbar(rows["mean"], places, xerr=plots.error_bars(rows), fmt="o", label="x")
    left.errorbar(places, rows["mean"], plots.error_bars(rows), fmt="s", label="y")
    left.hlines(4, -0.4, 0.4, label="start")
    left.scatter([0, 1], [8, 9], label="dots")
    left.set_xticks([0, 1], ["CD", "LEA-MVD"])
    right.set_yticks([0, 1], ["CD", "LEA-MVD"])
    right.set_xlabel("error")
    table = saved(figure, tmp_path).set_index("series")
    methods = ["CD", "LEA-MVD"]
    assert table.loc["y", "x"].tolist() == table.loc["x", "y"].tolist() == methods
    np.testing.assert_array_equal(table.loc["y", ["low", "high"]], rows[["low", "high"]])
    assert table.loc["y", "y"].astype(float).tolist() == [3, 5]
    np.testing.assert_array_equal(table.loc["x", ["error", "x low", "x high"]], rows)
    assert float(table.loc["start", "y"]) == 4
    assert table.loc["start", ["x low", "x high"]].tolist() == [-0.4, 0.4]
    assert table.loc["dots", "x"].tolist() == methods


def test_the_numbers_of_images_are_their_pixels(tmp_path: Path) -> None:
    digits = np.arange(18).reshape(2, 3, 3)
    table = saved(plots.gray_images({"input": digits, "CD": 2 * digits}), tmp_path)
    assert [*table["series"]] == 3 * ["input"] + 3 * ["CD"]
    pixels = table.drop(columns=["series", "line"]).to_numpy()[3:]
    np.testing.assert_array_equal(pixels[:, :3], 2 * digits[0])
    np.testing.assert_array_equal(pixels[:, 3:], 2 * digits[1])


def test_points_without_a_segment_are_marked_and_a_panel_without_any_says_so(
    tmp_path: Path,
) -> None:
    nan = np.nan
    drawn = {
        "alone": ([1, nan, 2, nan], {}, ("o", "line")),
        "one": ([3], {}, ("o", "line")),
        "dashed": ([nan, 4, nan], {"linestyle": "--"}, ("o", "white")),
        "line": ([1, 2, nan, 3], {}, ("None", "")),
        "marked": ([nan, 5], {"marker": "s"}, ("s", "line")),
        "nothing": ([nan, nan], {}, ("None", "")),
    }
    figure, ((ax, missing, dots, empty),) = plots.panels(1, 4, height=3)
    for label, (heights, look, _) in drawn.items():
        ax.plot(range(1, 1 + len(heights)), heights, label=label, **look)
    guide = ax.axhline(2, color="black")
    ax.set_yscale("log")
    missing.plot([1, 2], [nan, nan])
    missing.set_yscale("log")
    dots.scatter([1], [2])
    plots.save(figure, "one", tmp_path)
    for line, (_, _, (marker, face)) in zip(ax.lines, drawn.values(), strict=False):
        assert line.get_marker() == marker, line.get_label()
        if face:
            color = line.get_color() if face == "line" else face
            assert same_color(line.get_markerfacecolor(), color), line.get_label()
    assert guide.get_marker() == "None"
    told = [[text.get_text() for text in one.texts] for one in (ax, missing, dots, empty)]
    assert told == [[], ["no finite values"], [], []]
    assert (ax.get_yscale(), missing.get_yscale()) == ("log", "linear")


def test_panels_are_in_the_order_of_the_values_and_what_is_left_over_is_empty() -> None:
    table = pd.DataFrame({"by": ["b", "a", "c", "b", "a"], "n": range(5)})
    figure, shown = plots.facets(table, "by", 1.5, columns=2, margin=0.5, sharex=True)
    plots.plt.close(figure)
    assert [(name, rows["n"].tolist()) for _, name, rows in shown] == [
        *(("b", [0, 3]), ("a", [1, 4]), ("c", [2]))
    ]
    assert [ax for ax, _, _ in shown] == figure.axes[:3]
    assert [ax.axison for ax in figure.axes] == [True, True, True, False]
    assert figure.get_size_inches().tolist() == [plots.WIDTH, 0.5 + 2 * 1.5]
    assert shown[0][0].get_shared_x_axes().joined(shown[0][0], shown[2][0])
    figure, ((single,), (below,), (last,)) = plots.panels(3, 1, height=2)
    plots.plt.close(figure)
    assert figure.axes == [single, below, last]


def test_layers_are_rows_and_inputs_are_columns() -> None:
    table = pd.DataFrame({"inputs": ["shared", "own", "own"], "layer": [3, 1, 3]})
    figure, grid = plots.layers_by_inputs(table, 2.0, margin=1.0)
    plots.plt.close(figure)
    assert figure.get_size_inches().tolist() == [plots.WIDTH, 5.0]
    for (inputs, layer), ax in grid.items():
        assert ax.get_title() == f"RBM {layer}, {inputs} inputs"
        place = ax.get_subplotspec()
        assert (place.rowspan.start, place.colspan.start) == (layer // 2, int(inputs == "own"))
    assert len(grid) == 4


@pytest.mark.parametrize(
    ("length", "asked", "columns"), [(5, 3, 3), (5, 9, 6), (30, 9, 1), (20, 9, 2), (99, 3, 1)]
)
def test_a_legend_has_as_many_columns_as_are_asked_for_and_have_room(
    length: int, asked: int, columns: int
) -> None:
    figure, ((ax,),) = plots.panels(1, 1, height=3)
    for name in "abcdefg":
        ax.plot([1, 2], label=length * name)
    plots.legend(figure, ncols=asked)
    plots.plt.close(figure)
    (shown,) = figure.legends
    assert shown._ncols == columns


def test_shades_go_from_dark_to_light_and_short_of_yellow() -> None:
    colors = plots.shades(5)
    brightness = colors[:, :3] @ [0.3, 0.6, 0.1]
    assert (np.diff(brightness) > 0.05).all()
    assert brightness[0] < 0.2
    assert brightness[-1] < 0.75, "is seen on white"
    assert colors.shape == (5, 4)


def test_bars_may_reach_from_another_middle() -> None:
    rows = pd.DataFrame({"median": [3.0], "mean": [9.0], "low": [2.0], "high": [7.0]})
    assert plots.error_bars(rows, "median").tolist() == [[1], [4]]


def test_names_stand_beside_their_images_in_order_and_images_are_apart() -> None:
    rng = np.random.default_rng(0)
    rows = {"input": rng.integers(0, 255, (2, 3, 3)), "$5": rng.integers(0, 255, (2, 3, 3))}
    figure = plots.gray_images(rows)
    plots.plt.close(figure)
    for ax, (name, images) in zip(figure.axes, rows.items(), strict=True):
        (word,) = ax.texts
        assert word.get_text().replace("\\", "") == name
        shown = np.ma.filled(ax.images[0].get_array(), np.nan)
        apart = np.full((3, 1), np.nan)
        np.testing.assert_array_equal(shown, np.hstack([images[0], apart, images[1], apart]))
        assert ax.images[0].get_interpolation() == "nearest"
        box = word.get_window_extent()
        assert box.x1 <= ax.images[0].get_window_extent().x0


def test_the_numbers_of_what_has_no_label_name_all_series_of_its_color(tmp_path: Path) -> None:
    figure, ((ax, one),) = plots.panels(1, 2, height=3)
    for label in ("CD", "start"):
        ax.plot([1, 2], [3, 4], color=plots.GREEN, label=label)
        one.plot([1, 2], [3, 4], color=plots.GREEN, label=label)
    ax.plot([1, 2], [5, 6], color=plots.GREEN)
    ax.plot([1, 2], [7, 8], color=plots.BLUE)
    points = one.scatter([1, 2], [9.123456789, 10], c=[0, 1], label="dots")
    figure.colorbar(points, label="weight")
    ax.set_title("left", loc="left")
    ax.set_xlabel("number\nof it")
    one.set_title("right")
    one.set_xlabel("another")
    figure.supxlabel("not shown")
    table = saved(figure, tmp_path)
    assert table["panel"].unique().tolist() == ["left", "right"], "and no color bar"
    left = table[table["panel"] == "left"].set_index("y")
    assert left.loc[5, "series"] == "CD or start"
    assert pd.isna(left.loc[7, "series"])
    assert left.loc[[3, 4], "number of it"].tolist() == [1, 1, 2, 2]
    assert left["line"].nunique() == 4
    right = table[table["panel"] == "right"].set_index("series")
    assert right.loc["dots", ["another", "y"]].to_numpy().tolist() == [[1, 9.1234568], [2, 10]]


def test_the_numbers_of_a_row_of_panels_have_the_words_of_the_first(tmp_path: Path) -> None:
    figure, ((left, right), (below, last)) = plots.panels(2, 2, height=3, sharex="col")
    for ax in figure.axes:
        ax.plot([1, 2], [3, 4], label="CD")
    left.set_ylabel("error")
    right.set_ylabel("cost")
    below.set(ylabel="ratio", xlabel="epochs")
    last.set_xlabel("seconds")
    for ax, name in zip((left, right, below, last), "abcd", strict=True):
        ax.set_title(name)
    table = saved(figure, tmp_path).set_index("panel")
    words = {name: [*rows.dropna(axis="columns")] for name, rows in table.groupby("panel")}
    assert words == {
        "a": ["series", "line", "epochs", "error"],
        "b": ["series", "line", "seconds", "cost"],
        "c": ["series", "line", "epochs", "ratio"],
        "d": ["series", "line", "seconds", "ratio"],
    }


def test_panels_that_share_an_axis_share_its_words(tmp_path: Path) -> None:
    figure, ((left, right), (below, empty)) = plots.panels(2, 2, height=3, sharex=True)
    for ax, name in zip((left, right, below), "abc", strict=True):
        ax.plot([1, 2], [3, 4], label="CD")
        ax.set_title(name)
    empty.set_axis_off()
    below.set_xlabel("epochs")
    table = saved(figure, tmp_path)
    assert [*table] == ["panel", "series", "line", "epochs", "y"]
    assert table["epochs"].tolist() == [1, 2] * 3
