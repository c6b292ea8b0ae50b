import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from leamvd.paper.figures import comparison
from leamvd.paper.figures.style import BLUE, COLORS, GREEN, VERMILION, plotted


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def bands(kinds=("own", "shared"), layers=(1, 2), methods=("cd", "lea-mvd", "lea-mvd:x0-excluded")):
    rng = np.random.default_rng(0)
    rows = []
    for inputs in kinds:
        for layer in layers:
            for method in methods:
                for iteration in range(4):
                    low, mean, high = np.sort(rng.random(3)) + 0.5
                    rows.append((inputs, layer, method, iteration, 3 * iteration, 0.1 + iteration, mean, low, high))
    columns = ["inputs", "layer", "method", "iteration", "passes", "seconds", "mean", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


NONE = pd.DataFrame(columns=["inputs", "layer", "method", "seed", "iteration", "value"])


def runs(table):
    """Two runs around each of the bands' means."""
    named = table[["inputs", "layer", "method", "iteration"]]
    return pd.concat([named.assign(seed=seed, value=table["mean"] + shift) for seed, shift in ((0, -0.1), (5, 0.1))])


def test_errors_plot_the_records():
    table = bands()
    figure = comparison.errors(table, NONE, "some digits", "error")
    panels = plotted(figure)
    titles = ["RBM 1, own inputs", "RBM 1, shared inputs", "RBM 2, own inputs", "RBM 2, shared inputs"]
    assert [panel["title"] for panel in panels] == titles
    assert {panel["scales"][1] for panel in panels} == {"log"}
    cells = table[table["iteration"] > 0].groupby(["layer", "inputs"])
    for panel, axes, (_, cell) in zip(panels, figure.axes, cells, strict=True):
        methods = cell.groupby("method", sort=False)
        for line, area, (_, rows) in zip(panel["arrays"], axes.collections, methods, strict=False):
            assert np.allclose(line, rows[["iteration", "mean"]], rtol=1e-7)
            heights = {round(float(y), 12) for y in area.get_paths()[0].vertices[:, 1]}
            assert heights == {round(y, 12) for y in [*rows["low"], *rows["high"]]}
    assert figure.get_suptitle() == "some digits"
    assert figure.get_supylabel() == "error"


def test_runs_are_drawn_thin_behind_their_means():
    table = bands(kinds=("own",), layers=(1,), methods=("cd", "lea-mvd"))
    (axes,) = comparison.errors(table, runs(table), "", "").axes
    *thin, cd, lea = axes.lines
    assert [line.get_color() for line in thin] == [BLUE, VERMILION, BLUE, VERMILION]
    assert max(line.get_linewidth() for line in thin) < min(cd.get_linewidth(), lea.get_linewidth())
    later = table[(table["method"] == "cd") & (table["iteration"] > 0)]
    assert np.allclose(thin[0].get_ydata(), later["mean"] - 0.1)
    assert np.allclose(thin[2].get_ydata(), later["mean"] + 0.1)


def test_printed_numbers_are_labeled_lines_in_the_layer_and_on_the_inputs_of_the_paper():
    printed = {("cd", 2): 50_000.0, ("lea-mvd", 2): 5_000.0, ("cma-es", 1): 1.0}
    figure = comparison.errors(bands(methods=("cd", "lea-mvd")), NONE, "", "", printed=printed)
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert [texts[0], texts[2]] == [[], ["paper: 50,000", "paper: 5,000"]], "cma-es was not run"
    assert {*texts[1], *texts[3]} == {"cd", "lea-mvd"}
    drawn = figure.axes[2].lines[2:]
    assert [(line.get_color(), *line.get_ydata()) for line in drawn] == [(BLUE, 5e4, 5e4), (VERMILION, 5e3, 5e3)]


def test_work_is_counted_in_three_ways():
    table = bands(kinds=("shared",))
    figure = comparison.work(table, "some digits", "error")
    labels = ["iterations", "passes", "seconds"]
    assert [axes.get_xlabel() for axes in figure.axes[3:]] == labels
    assert [panel["scales"] for panel in plotted(figure)[:3]] == [["linear", "log"], ["log", "log"], ["log", "log"]]
    line = table.query("layer == 2 and method == 'cd' and iteration > 0")
    for axes, x in zip(figure.axes[3:], ("iteration", "passes", "seconds"), strict=True):
        assert np.allclose(axes.lines[0].get_xydata(), line[[x, "mean"]])


def test_longer_searches_have_a_panel_for_each_problem():
    rows = [
        (problem, method, mark, mean, 0.9 * mean, 1.2 * mean)
        for problem, best in (("sphere, n = 100", 5.0), ("ellipsoid, n = 100", 7.0), ("RBM 1", 9.0))
        for method in ("lea-mvd", "sep-cma-es") for mark in (1, 10) for mean in (best / mark,)
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["problem", "method", "mark", "mean", "low", "high"])
    figure = comparison.longer(table, "ten seeds")
    *panels, empty = figure.axes
    assert [axes.get_title() for axes in panels] == ["sphere, n = 100", "ellipsoid, n = 100", "RBM 1"]
    assert not empty.axison
    for axes, (_, cell) in zip(panels, table.groupby("problem", sort=False), strict=True):
        assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
        for line, band, (_, own) in zip(axes.lines, axes.collections, cell.groupby("method"), strict=True):
            np.testing.assert_array_equal(line.get_xydata(), own[["mark", "mean"]])
            heights = {round(float(y), 12) for y in band.get_paths()[0].vertices[:, 1]}
            assert heights == {round(y, 12) for y in [*own["low"], *own["high"]]}


def test_ends_show_runs_means_and_intervals_of_each_measure():
    rows = [
        (measure, inputs, layer, method, 2, low, mean, high)
        for measure, factor in (("mean_field", 1.0), ("test_mean_field", 2.0))
        for inputs in ("own", "shared") for layer in (1, 2)
        for method, low, mean, high in (("cd", 1 * factor, 2 * factor, 4 * factor), ("lea-mvd:printed", 3.0, 5.0, 6.0))
    ]  # fmt: skip
    errors = pd.DataFrame(rows, columns=["measure", "inputs", "layer", "method", "runs", "low", "mean", "high"])
    dots = errors[errors["measure"] == "mean_field"].assign(value=lambda rows: rows["mean"] + rows["layer"])
    figure = comparison.ends(errors, {"mean_field": dots, "test_mean_field": dots}, "t", "error")
    panels = plotted(figure)
    assert panels[0]["ticks"] == [["cd", "lea-mvd:printed"]]
    assert {panel["scales"][0] for panel in panels} == {"log"}
    behind, *points = figure.axes[2].lines
    assert behind.get_xydata()[:, 0].tolist() == [4.0, 7.0], "of layer 2"
    means = [line for line in points if line.get_marker() == "o"]
    assert [tuple(line.get_xdata()) for line in means] == [(2.0,), (5.0,), (4.0,), (5.0,)]
    assert [line.get_markerfacecolor() for line in means] == [BLUE, VERMILION, "white", "white"]
    places = [line.get_ydata()[0] for line in means]
    assert places == pytest.approx([-0.15, 0.85, 0.15, 1.15])
    (interval,) = figure.axes[2].collections[0].get_segments()
    assert interval[:, 0].tolist() == [1.0, 4.0]


def test_input_std_is_a_line_for_each_method():
    rows = [
        (inputs, method, layer, *([x, x, x] if layer == 1 else [x - 0.1, x, x + 0.2]))
        for inputs in ("own", "shared") for method, x in (("cd", 0.5), ("lea-mvd:printed", 0.3)) for layer in (1, 2)
    ]  # fmt: skip
    columns = ["inputs", "method", "layer", "low", "mean", "high"]
    (axes,) = comparison.input_std(pd.DataFrame(rows, columns=columns), "t").axes
    assert [(line.get_color(), line.get_linestyle()) for line in axes.lines] == [(BLUE, "-"), (VERMILION, ":")]
    assert axes.lines[1].get_xydata().tolist() == [[1, 0.3], [2, 0.3]]
    assert axes.get_ylim()[0] == 0
    assert [text.get_text() for text in axes.get_xticklabels()] == ["RBM 1", "RBM 2"]


def test_a_method_has_one_color_and_its_readings_differ_by_style():
    figure = comparison.errors(
        bands(methods=("lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:own")), NONE, "", "", constant=True
    )
    *lines, constant = figure.axes[0].lines
    assert {line.get_color() for line in lines} == {COLORS["lea-mvd"]}
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-."]
    assert list(constant.get_ydata()) == [1.0, 1.0]
    named = {text.get_text(): text.arrow_patch.get_linestyle() for text in figure.axes[1].texts}
    assert named == {"lea-mvd": "-", "lea-mvd:\nx0-excluded": "--", "lea-mvd:\nown": "-."}


def test_no_two_methods_have_one_color():
    assert len({to_rgb(color) for color in COLORS.values()}) == len(COLORS)


def test_a_line_its_band_and_its_name_have_the_color_of_the_method():
    table = bands(methods=("cma-es", "cd", "lea-mvd"))
    figure = comparison.errors(table, NONE, "", "")
    for axes in figure.axes[1::2]:
        named = {text.get_text(): to_hex(text.arrow_patch.get_edgecolor()) for text in axes.texts}
        assert named == {"cma-es": GREEN, "cd": BLUE, "lea-mvd": VERMILION}
        assert {text.get_text(): text.xy[1] for text in axes.texts} == {
            line.get_label(): line.get_ydata()[-1] for line in axes.lines
        }
    drawn = table[table["iteration"] > 0]
    for axes, (_, cell) in zip(figure.axes, drawn.groupby(["layer", "inputs"]), strict=True):
        for line, area in zip(axes.lines, axes.collections, strict=True):
            rows = cell[cell["method"] == line.get_label()]
            assert np.array_equal(line.get_ydata(), rows["mean"])
            assert line.get_color() == COLORS[line.get_label()]
            assert tuple(area.get_facecolor()[0][:3]) == pytest.approx(to_rgb(line.get_color()))


@pytest.mark.parametrize(("inputs", "layers"), [(("own",), (1,)), (("shared",), (1, 2, 3, 4))])
def test_errors_of_any_number_of_layers(inputs, layers):
    figure = comparison.errors(bands(inputs, layers), NONE, "t", "y")
    assert len(figure.axes) == len(layers)
    assert figure.axes[-1].get_xlabel() == "epoch or generation"


def test_a_title_stays_within_a_figure_of_one_layer():
    title = "scikit-learn digits, 1,437 images of 28 x 28, 4 runs (line: mean, band: smallest to largest)"
    figure = comparison.errors(bands(layers=(1,)), NONE, title, "error")
    figure.canvas.draw()
    text, paper = figure._suptitle.get_window_extent(), figure.bbox
    assert paper.x0 < text.x0 < text.x1 < paper.x1


def test_pictures_show_the_runs_one_below_the_other():
    rows = {
        "original": np.arange(3 * 4 * 4).reshape(1, 3, 4, 4),
        "cd, RBM 1": np.random.default_rng(1).integers(0, 256, (2, 3, 4, 4)),
    }
    figure = comparison.pictures(rows, "some digits", ["seed 0", "seed 7"])
    shown = [axes.images[0] for axes in figure.axes]
    strips = [rows["original"][0], rows["cd, RBM 1"][0], rows["original"][0], rows["cd, RBM 1"][1]]
    for image, strip in zip(shown, strips, strict=True):
        values = image.get_array()
        assert values.shape == (4, 15)
        for i, picture in enumerate(strip):
            assert np.array_equal(values[:, 5 * i : 5 * i + 4], picture)
            assert np.ma.getmaskarray(values)[:, 5 * i + 4].all(), "nothing between two images"
    assert {image.get_clim() for image in shown} == {(0, 255)}
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == 2 * list(rows)
    assert [axes.get_title() for axes in figure.axes] == ["seed 0", "", "seed 7", ""]


def test_signed_pictures_are_white_in_the_middle():
    figure = comparison.pictures({"cd": np.linspace(0, 255, 8).reshape(1, 2, 2, 2)}, "t", signed=True)
    image = figure.axes[0].images[0]
    assert image.get_clim() == (0, 255)
    assert np.allclose(image.cmap(image.norm(127.5))[:3], 0.97, atol=0.02)
    assert image.get_cmap().name == "RdBu_r"


@pytest.mark.parametrize("name", ["a$_$b", "a$x$b", "$", "a_b^c", r"a\b", "<b>&|`"])
def test_names_of_readings_are_shown_as_they_are(name):
    method = f"lea-mvd:{name}.json"
    errors = comparison.errors(bands(methods=(method,)), NONE, "", "")
    pictures = comparison.pictures({method: np.zeros((1, 2, 4, 4))}, "")
    texts = [text for figure in (errors, pictures) for text in figure.axes[-1].texts]
    for figure in (errors, pictures):
        figure.canvas.draw()
    drawn = [text._preprocess_math(text.get_text()) for text in texts]
    assert [(text.replace(":\n", ":"), mathematics) for text, mathematics in drawn] == [(method, False)] * 2
