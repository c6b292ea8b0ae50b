import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex, to_rgb

from leamvd.figures import comparison
from leamvd.figures.style import BLUE, COLORS, GREEN, VERMILION, plotted


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


def test_printed_numbers_are_labeled_lines_in_the_layer_and_on_the_inputs_of_the_paper():
    printed = {("cd", 2): 50_000.0, ("lea-mvd", 2): 5_000.0, ("cma-es", 1): 1.0}
    figure = comparison.errors(bands(methods=("cd", "lea-mvd")), NONE, "", "", printed=printed)
    texts = [[text.get_text() for text in axes.texts] for axes in figure.axes]
    assert [texts[0], texts[2]] == [[], ["paper: 50,000", "paper: 5,000"]], "cma-es was not run"
    assert {*texts[1], *texts[3]} == {"cd", "lea-mvd"}
    drawn = figure.axes[2].lines[2:]
    assert [(line.get_color(), *line.get_ydata()) for line in drawn] == [(BLUE, 5e4, 5e4), (VERMILION, 5e3, 5e3)]


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
