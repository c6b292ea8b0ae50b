import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from leamvd.paper.figures import comparison
from leamvd.paper.figures.style import COLORS, plotted


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


@pytest.mark.parametrize("x", ["iteration", "passes", "seconds"])
def test_errors_plot_the_records(x):
    table = bands()
    figure = comparison.errors(table, "some digits", "error", x=x)
    panels = plotted(figure)
    titles = ["RBM 1, own inputs", "RBM 2, own inputs", "RBM 1, shared inputs", "RBM 2, shared inputs"]
    assert [panel["title"] for panel in panels] == titles
    assert {panel["scales"][1] for panel in panels} == {"log"}
    cells = table.groupby(["inputs", "layer"], sort=False)
    for panel, axes, (_, cell) in zip(panels, figure.axes, cells, strict=True):
        methods = cell.groupby("method", sort=False)
        for line, area, (_, rows) in zip(panel["arrays"], axes.collections, methods, strict=False):
            assert np.allclose(line, rows[[x, "mean"]], rtol=1e-7)
            heights = {round(float(y), 12) for y in area.get_paths()[0].vertices[:, 1]}
            assert heights == {round(y, 12) for y in [*rows["low"], *rows["high"]]}
    assert figure.get_suptitle() == "some digits"
    assert figure.get_supylabel() == "error"


def test_a_method_has_one_color_and_its_readings_differ_by_style():
    figure = comparison.errors(bands(methods=("lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:own")), "", "", constant=True)
    *lines, constant = figure.axes[0].lines
    assert {line.get_color() for line in lines} == {COLORS["lea-mvd"]}
    assert [line.get_linestyle() for line in lines] == ["-", "--", "-."]
    assert list(constant.get_ydata()) == [1.0, 1.0]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "lea-mvd",
        "lea-mvd:x0-excluded",
        "lea-mvd:own",
    ]


def test_a_line_and_its_band_have_the_color_that_the_legend_gives_the_method():
    table = bands(methods=("cma-es", "cd", "lea-mvd"))
    figure = comparison.errors(table, "", "")
    named = dict(zip(*reversed(figure.axes[0].get_legend_handles_labels()), strict=True))
    assert {method: line.get_color() for method, line in named.items()} == {"cma-es": "C2", "cd": "C0", "lea-mvd": "C1"}
    legend = figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == ["cma-es", "cd", "lea-mvd"]
    assert [handle.get_color() for handle in legend.legend_handles] == ["C2", "C0", "C1"]
    for axes, (_, cell) in zip(figure.axes, table.groupby(["inputs", "layer"], sort=False), strict=True):
        for line, area in zip(axes.lines, axes.collections, strict=True):
            rows = cell[cell["method"] == line.get_label()]
            assert np.array_equal(line.get_ydata(), rows["mean"])
            assert line.get_color() == COLORS[line.get_label()]
            assert tuple(area.get_facecolor()[0][:3]) == pytest.approx(to_rgb(line.get_color()))


@pytest.mark.parametrize(("inputs", "layers"), [(("own",), (1,)), (("shared",), (1, 2, 3, 4))])
def test_errors_of_any_number_of_layers(inputs, layers):
    figure = comparison.errors(bands(inputs, layers), "t", "y")
    assert len(figure.axes) == len(layers)
    assert [axes.get_xlabel() for axes in figure.axes] == ["epoch or generation"] * len(layers)


def test_a_title_stays_within_a_figure_of_one_layer():
    title = "scikit-learn digits, 1,437 images of 28 x 28, 4 runs (line: mean, band: smallest to largest)"
    figure = comparison.errors(bands(layers=(1,)), title, "error")
    figure.canvas.draw()
    text, paper = figure._suptitle.get_window_extent(), figure.bbox
    assert paper.x0 < text.x0 < text.x1 < paper.x1


@pytest.mark.parametrize(("x", "label"), [("passes", "passes over the images"), ("seconds", "seconds")])
def test_the_horizontal_axis_says_what_it_counts(x, label):
    assert comparison.errors(bands(), "t", "y", x=x).axes[-1].get_xlabel() == label


def test_pictures_show_each_image_in_its_row():
    rows = {"original": np.random.default_rng(1).random((3, 4, 4)), "cd, RBM 1": np.zeros((3, 4, 4))}
    figure = comparison.pictures(rows, "some digits")
    images = [axes.images[0] for axes in figure.axes]
    expected = [image for pictures in rows.values() for image in pictures]
    assert all(np.array_equal(a.get_array(), b) for a, b in zip(images, expected, strict=True))
    assert {image.get_clim() for image in images} == {(0, 1)}
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == list(rows)


def test_signed_pictures_are_white_at_zero():
    figure = comparison.pictures({"cd": np.linspace(-1, 1, 8).reshape(2, 2, 2)}, "t", signed=True)
    image = figure.axes[0].images[0]
    assert image.get_clim() == (-1, 1)
    assert np.allclose(image.cmap(image.norm(0.0))[:3], 0.97, atol=0.02)
    assert image.get_cmap().name == "RdBu_r"


@pytest.mark.parametrize("name", ["a$_$b", "a$x$b", "$", "a_b^c", r"a\b", "<b>&|`"])
def test_names_of_readings_are_shown_as_they_are(name):
    method = f"lea-mvd:{name}.json"
    errors = comparison.errors(bands(methods=(method,)), "", "")
    pictures = comparison.pictures({method: np.zeros((2, 4, 4))}, "")
    texts = [*errors.legends[0].get_texts(), *(text for axes in pictures.axes for text in axes.texts)]
    for figure in (errors, pictures):
        figure.canvas.draw()
    assert [text._preprocess_math(text.get_text()) for text in texts] == [(method, False)] * 2
