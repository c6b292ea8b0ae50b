"""The section on cost draws what the tables say; the tables are invented in test_bench_summary.py."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_bench_summary import optimizers, split

from leamvd.bench import summary
from leamvd.paper.figures import costs
from leamvd.paper.figures.style import COLORS, plotted


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def texts(axes):
    return {text.get_text(): text for text in axes.texts}


def entries(legend):
    return zip(legend.get_texts(), legend.legend_handles, strict=True)


def bars(axes):
    """The ends of every error bar, as arrays (bars, 2 ends, x and y)."""
    return [np.array(collection.get_segments()) for collection in axes.collections]


def test_growth_plots_time_and_memory_of_each_method_and_dtype():
    rows = summary.costs(optimizers())
    figure = costs.growth(rows, summary.full_matrix(optimizers()))
    assert {tuple(panel["scales"]) for panel in plotted(figure)} == {("log", "log")}
    for axes, column in zip(figure.axes, ("generation_seconds", "peak_bytes"), strict=True):
        drawn = [line.get_xydata().tolist() for line in axes.lines]
        for _, own in rows.sort_values("n").groupby("label"):
            assert own[["n", column]].to_numpy().tolist() in drawn
        assert axes.get_aspect() == 1  # what is proportional to n rises at 45 degrees


def test_growth_draws_the_quartiles_of_time_and_none_of_memory():
    rows = summary.costs(optimizers())
    time, memory = costs.growth(rows, summary.full_matrix(optimizers())).axes
    for (_, own), ends in zip(rows.sort_values("n").groupby("label"), bars(time), strict=True):
        np.testing.assert_allclose(ends[:, :, 0], np.column_stack([own["n"], own["n"]]))
        np.testing.assert_allclose(ends[:, :, 1], own[["generation_low", "generation_high"]])
    assert bars(memory) == []


def test_growth_names_its_methods_in_their_colors_and_all_others_in_gray():
    rows = summary.costs(optimizers())
    for axes in costs.growth(rows, summary.full_matrix(optimizers())).axes:
        found = texts(axes)
        assert {*costs.NAMES.values(), "others"} == set(found) - {"refused"}
        for name, method in (("LEA-MVD", "lea-mvd"), ("separable\nCMA-ES", "sep-cma-es")):
            assert found[name].get_color() == COLORS[method]
        colors = {line.get_color() for line in axes.lines}
        assert colors == {COLORS["lea-mvd"], COLORS["cma-es"], COLORS["sep-cma-es"], "0.6"}
        hollow = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        assert len(hollow) == rows.loc[rows["dtype"] == "float64", "label"].nunique()


def test_growth_marks_where_the_full_matrix_is_refused():
    rows, beyond = summary.costs(optimizers()), summary.full_matrix(optimizers())
    time, memory = costs.growth(rows, beyond).axes
    *_, line, cross = memory.lines
    assert line.get_xydata().tolist() == beyond.to_numpy().tolist()
    assert cross.get_xydata().tolist() == [beyond.iloc[-1].tolist()]
    assert "refused" in texts(memory)
    assert "refused" not in texts(time)
    assert "refused" not in texts(costs.growth(rows, beyond.iloc[:0]).axes[1])


def test_ratios_plot_time_at_both_sizes_and_memory_at_the_larger():
    rows = summary.ratios(optimizers())
    figure = costs.ratios(rows)
    assert [axes.get_title() for axes in figure.axes] == ["time", "memory"]
    labels = list(rows["label"].unique())
    shown = [text.get_text().replace("\n", " ") for text in figure.axes[0].get_yticklabels()]
    assert shown == labels
    assert figure.axes[0].yaxis_inverted()  # the fastest at the top
    marks = {text.get_text(): line.get_fillstyle() for text, line in entries(figure.legends[0])}
    assert marks == {"n = 1,000,000": "full", "n = 1,000": "none"}
    sizes = {"full": rows[rows["n"] == 10**6].set_index("label"), "none": rows[rows["n"] == 1000].set_index("label")}
    time, memory = figure.axes
    for axes, column, fills in ((time, "time", ("full", "none")), (memory, "memory", ("full",))):
        *dots, one = axes.lines
        assert list(one.get_xdata()) == [1, 1]
        assert {dot.get_fillstyle() for dot in dots} == set(fills)
        for fill in fills:
            drawn = [dot for dot in dots if dot.get_fillstyle() == fill]
            assert {labels[int(dot.get_ydata()[0])]: dot.get_xdata()[0] for dot in drawn} == dict(sizes[fill][column])
    quartiles = [ends for own in sizes.values() for ends in own.sort_index()[["low", "high"]].to_numpy().tolist()]
    assert [end[0, :, 0].tolist() for end in bars(time)] == [pytest.approx(ends) for ends in quartiles]
    assert bars(memory) == []


def test_split_draws_both_seconds_and_the_share_of_each_layer():
    rows = summary.shares(split())
    (axes,) = costs.split(rows).axes
    optimizer, objective = axes.lines
    quartiles = [rows[[f"{name}_low", f"{name}_high"]].to_numpy().tolist() for name in ("optimizer", "objective")]
    assert [end[:, :, 0] for end in bars(axes)[1:]] == [pytest.approx(np.array(ends)) for ends in quartiles]
    assert optimizer.get_xdata().tolist() == rows["optimizer_seconds"].tolist()
    assert objective.get_xdata().tolist() == rows["objective_seconds"].tolist()
    assert optimizer.get_ydata().tolist() == objective.get_ydata().tolist() == [*range(6)]
    found = texts(axes)
    assert found["optimizer"].get_color() == optimizer.get_color()
    assert {f"{percent:.2g} %" for percent in rows["percent"]} <= set(found)
    assert axes.get_yticklabels()[3].get_text() == "mnist-28x28, RBM 1\nn = 393,284"


def drawn(optimizers, split):
    """All figures of the section."""
    return [
        costs.growth(summary.costs(optimizers), summary.full_matrix(optimizers)),
        costs.ratios(summary.ratios(optimizers)),
        costs.split(summary.shares(split)),
    ]


def test_figures_of_nothing_are_empty():
    """A run of one method, or whose rows were stopped, is shown all the same."""
    for figure in drawn(optimizers().iloc[:0], split().iloc[:0]):
        assert all(np.size(line.get_xdata()) == 0 or set(line.get_xdata()) <= {0, 1} for line in figure.axes[0].lines)
        assert texts(figure.axes[0]) == {}


def test_figures_of_a_small_run():
    small = optimizers().query("n <= 10_000 and method in ('leamvd', 'pycma separable')")
    growth, ratios, _ = drawn(small, split())
    assert set(texts(growth.axes[0])) == {"LEA-MVD", "separable\nCMA-ES"}
    assert [text.get_text() for text, _ in entries(ratios.legends[0])] == ["n = 10,000", "n = 1,000"]
    one_size, _ = drawn(optimizers().query("n == 1000"), split())[1:]
    assert [text.get_text() for text, _ in entries(one_size.legends[0])] == ["n = 1,000"]
