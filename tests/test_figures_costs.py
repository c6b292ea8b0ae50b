"""The section on cost draws what the tables say; the tables are invented in test_bench_summary.py."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_bench_summary import objectives, optimizers, parts, probe, split, training

from leamvd.bench import summary
from leamvd.paper.figures import costs
from leamvd.paper.figures.style import plotted


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


@pytest.mark.parametrize("column", ["generation_seconds", "peak_bytes"])
def test_growth_plots_each_method_in_the_panel_of_its_dtype(column):
    rows = summary.costs(optimizers())
    figure = costs.growth(rows, column, "cost", {"population_bytes": "the population"})
    assert [panel["title"] for panel in plotted(figure)] == ["float32, one thread", "float64, one thread"]
    assert {panel["scales"][0] + panel["scales"][1] for panel in plotted(figure)} == {"loglog"}
    for axes, dtype in zip(figure.axes, ("float32", "float64"), strict=True):
        drawn = lines(axes)
        panel = rows[rows["dtype"] == dtype]
        assert set(drawn) == {*panel["method"], "the population"}
        for method, own in panel.groupby("method"):
            assert np.array_equal(drawn[method].get_xydata(), own.sort_values("n")[["n", column]])
        own = panel[panel["method"] == "leamvd"]
        assert np.array_equal(drawn["the population"].get_xydata(), own[["n", "population_bytes"]])


def test_growth_marks_where_the_full_matrix_is_refused():
    rows, beyond = summary.costs(optimizers()), summary.full_matrix(optimizers())
    left, right = costs.growth(rows, "peak_bytes", "bytes", {}, beyond).axes
    assert lines(right)["$n^2$, refused at ×"].get_xydata().tolist() == beyond.to_numpy().tolist()
    assert right.lines[-1].get_xydata().tolist() == [beyond.iloc[-1].tolist()]
    assert "$n^2$, refused at ×" not in lines(left)
    alone = costs.growth(rows, "peak_bytes", "bytes", {}, beyond.iloc[:0])
    assert "$n^2$, refused at ×" not in lines(alone.axes[1])


def test_a_package_has_one_color_its_methods_differ_by_marker_and_ours_stands_out():
    figure = costs.growth(summary.costs(optimizers()), "generation_seconds", "s", {})
    drawn = {name: line for axes in figure.axes for name, line in lines(axes).items()}
    for name, line in drawn.items():
        assert line.get_color() == costs.PACKAGES[name.split()[0]]
        assert line.get_linewidth() < drawn["leamvd"].get_linewidth() or name == "leamvd"
    looks = [(line.get_color(), line.get_marker()) for line in drawn.values()]
    assert len(set(looks)) == len(drawn)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert legend[0] == "leamvd"
    assert sorted(legend) == sorted(drawn)


def test_ratios_plot_a_panel_for_each_size_and_fill_float32():
    rows = summary.ratios(optimizers())
    figure = costs.ratios(rows)
    assert [axes.get_title() for axes in figure.axes] == [f"n = {n:,}" for n in (1000, 10**4, 10**5, 10**6)]
    assert figure.axes[0].yaxis_inverted()  # the fastest at the top
    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == list(rows["label"].unique())
    for axes, n in zip(figure.axes, (1000, 10**4, 10**5, 10**6), strict=True):
        *dots, one = axes.lines
        points = {labels[int(dot.get_ydata()[0])]: dot for dot in dots}
        assert {name: dot.get_xdata()[0] for name, dot in points.items()} == dict(
            rows[rows["n"] == n].set_index("label")["ratio_to_normal"]
        )
        assert {dot.get_markerfacecolor() == "white" for name, dot in points.items() if "float64" in name} == {True}
        assert {dot.get_markerfacecolor() == "white" for name, dot in points.items() if "float32" in name} == {False}
        assert list(one.get_xdata()) == [1, 1]


def test_split_stacks_to_a_hundred_percent():
    rows = summary.shares(split())
    for axes, (section, own) in zip(costs.split(rows).axes, rows.groupby("section", sort=False), strict=True):
        assert axes.get_title() == section
        optimizer, objective = axes.containers
        assert [bar.get_width() for bar in optimizer] == own["percent"].tolist()
        ends = [bar.get_x() + bar.get_width() for bar in objective]
        assert ends == pytest.approx([100] * len(own))


def test_objective_draws_numpy_beside_its_products_and_the_rate_of_all():
    rows = summary.rates(objectives())
    left, right = costs.objective(rows).axes
    for axes, drawn in ((left, rows[rows["backend"] == "numpy"]), (right, rows)):
        assert [bars.get_label() for bars in axes.containers] == list(drawn["label"].unique())
        for bars in axes.containers:
            own = drawn[drawn["label"] == bars.get_label()]
            expected = 100 * own["fraction_of_products"] if axes is left else own["rate"] / 1e9
            assert [bar.get_height() for bar in bars] == pytest.approx(expected.tolist())
        assert [text.get_text() for text in axes.get_xticklabels()][:2] == ["784\n× 500", "500\n× 500"]
    assert not left.collections, "nothing but bars and the line of the products"
    assert [line.get_ydata()[0] for line in left.lines] == [100]
    assert [text.get_text() for text in left.figure.legends[0].get_texts()] == list(rows["label"].unique())


def test_a_shape_that_one_place_lacks_leaves_a_gap():
    rows = summary.rates(objectives())
    rows = rows[(rows["backend"] == "numpy") | (rows["n_visible"] == 784)]
    torch = costs.objective(rows).axes[1].containers[-1]
    heights = [bar.get_height() for bar in torch]
    assert heights[0] == pytest.approx(rows["rate"].max() / 1e9)
    assert np.isnan(heights[1:]).all()


def test_training_draws_the_epoch_its_products_and_the_probe():
    rows, scores = summary.epochs(training()), summary.accuracies(probe())
    left, right = costs.training(rows, scores).axes
    assert [bar.get_height() for bar in left.patches] == rows["seconds"].tolist()
    assert [path.vertices[0, 1] for path in left.collections[0].get_paths()] == rows["product_seconds"].tolist()
    for trainer, line in lines(right).items():
        assert line.get_ydata().tolist() == scores[trainer].tolist()


def drawn(optimizers, objectives, training, probe, split):
    """All figures of the section."""
    rows = summary.costs(optimizers)
    return [
        costs.growth(rows, "generation_seconds", "s", {"normal_seconds": "normals"}),
        costs.growth(rows, "peak_bytes", "bytes", {}, summary.full_matrix(optimizers)),
        costs.ratios(summary.ratios(optimizers)),
        costs.split(summary.shares(split)),
        costs.objective(summary.rates(objectives)),
        costs.training(summary.epochs(training), summary.accuracies(probe)),
    ]


def test_figures_of_nothing_are_empty():
    """A run of one method, or whose rows were stopped, is shown all the same."""
    tables = (table().iloc[:0] for table in (optimizers, objectives, training, probe, split))
    for figure in drawn(*tables):
        assert all(np.size(line.get_xdata()) == 0 or set(line.get_xdata()) <= {0, 1} for line in figure.axes[0].lines)
        assert figure.axes[0].patches[:] == []


def test_figures_of_a_small_run():
    small = optimizers().query("n <= 10_000 and method in ('leamvd', 'pycma separable')")
    growth, *_ = drawn(small, objectives().query("n_visible < 100"), training().iloc[:2], probe().iloc[:1], split())
    assert set(lines(growth.axes[1])) == {"leamvd", "pycma separable", "normals"}


def test_parts_are_stacked_to_a_whole_generation():
    shares = summary.parts(parts())
    (axes,) = costs.parts(shares).axes
    assert [text.get_text() for text in axes.get_yticklabels()] == list(shares.index)
    bars = np.array([[bar.get_x(), bar.get_width()] for bar in axes.patches]).reshape(shares.shape[1], -1, 2)
    np.testing.assert_allclose(bars[:, :, 1], shares.T)
    np.testing.assert_allclose(bars[1:, :, 0], np.cumsum(bars[:-1, :, 1], axis=0))
    np.testing.assert_allclose(bars[-1].sum(axis=1), 100)
    legend = [text.get_text() for text in axes.figure.legends[0].get_texts()]
    assert legend == list(shares.columns)


def test_a_part_of_less_than_nothing_is_drawn_as_nothing():
    shares = summary.parts(parts().assign(words_seconds=3.0))
    (axes,) = costs.parts(shares).axes
    assert min(bar.get_width() for bar in axes.patches) == 0
