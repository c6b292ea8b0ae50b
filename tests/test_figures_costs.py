"""The figures of the section on cost, of few rows and of none."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from test_bench_summary import RECORDED

from leamvd.bench import summary
from leamvd.figures import costs


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def texts(axes):
    return {text.get_text(): text for text in axes.texts}


def entries(legend):
    return zip(legend.get_texts(), legend.legend_handles, strict=True)


def drawn(optimizers, split):
    """All figures of the section."""
    return [
        costs.growth(summary.costs(optimizers), summary.full_matrix(optimizers)),
        costs.ratios(summary.ratios(optimizers)),
        costs.split(summary.shares(split)),
    ]


def test_figures_of_nothing_are_empty():
    """A run of one method, or whose rows were stopped, is shown all the same."""
    for figure in drawn(RECORDED.optimizers.iloc[:0], RECORDED.split.iloc[:0]):
        assert all(np.size(line.get_xdata()) == 0 or set(line.get_xdata()) <= {0, 1} for line in figure.axes[0].lines)
        assert texts(figure.axes[0]) == {}


def test_figures_of_a_small_run():
    small = RECORDED.optimizers.query("n <= 10_000 and method in ('leamvd', 'pycma separable')")
    growth, ratios, _ = drawn(small, RECORDED.split)
    assert set(texts(growth.axes[0])) == {"LEA-MVD", "separable\nCMA-ES"}
    assert [text.get_text() for text, _ in entries(ratios.legends[0])] == ["n = 10,000", "n = 1,000"]
    one_size, _ = drawn(RECORDED.optimizers.query("n == 1000"), RECORDED.split)[1:]
    assert [text.get_text() for text, _ in entries(one_size.legends[0])] == ["n = 1,000"]
