"""The page of errors: each correction that can be computed is, and numbers on the page are those
that come out.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import leamvd
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers import selection
from leamvd_paper.data.images import load

PAGE = (Path(leamvd.__file__).parents[1] / "book" / "paper_errors.md").read_text(encoding="utf-8")
LAYERS = ((49, 30), (30, 30), (30, 120), (784, 500), (500, 500), (500, 2000))
DOUBLE = 8  # bytes


@pytest.fixture
def told() -> leamvd.LEAMVD:
    """After one generation on the sphere."""
    opt = leamvd.LEAMVD(np.full(6, 2.0), sigma0=0.5, seed=1)
    X = opt.ask()
    opt.tell(X, (X**2).sum(axis=1))
    return opt


def test_sizes_of_the_networks() -> None:
    for numbers in ([n_parameters(v, h) for v, h in LAYERS], [v + h + v + h for v, h in LAYERS]):
        first, second = (", ".join(f"{n:,}" for n in half) for half in (numbers[:3], numbers[3:]))
        assert f"{first} and {second}" in PAGE


def test_weights_by_row_go_to_the_wrong_individuals(told: leamvd.LEAMVD) -> None:
    state = told.state
    G = selection.fractional_tournament(24, 1.5)
    np.testing.assert_allclose(G @ state.population, state.mean, rtol=1e-12)
    as_asked = leamvd.LEAMVD(np.full(6, 2.0), sigma0=0.5, seed=1).ask()
    assert np.linalg.norm(G @ as_asked) > np.linalg.norm(state.mean), (
        "further from the optimum at 0"
    )


def test_the_product_as_printed_is_a_hundredth_of_the_projection(told: leamvd.LEAMVD) -> None:
    state = told.state
    C = state.descent
    differences = state.population[1:] - state.population[0]
    projection = (differences @ C).mean() * C / (C @ C)
    np.testing.assert_allclose(state.descent_mean * C, 0.01 * projection, rtol=1e-12)
    assert "the first generation is 0.01 times as long" in PAGE


def test_limits_are_left_by_a_third_of_the_first_population() -> None:
    outside = [
        stats.norm.sf(0.1, seed, 0.1) + stats.norm.cdf(-0.1, seed, 0.1)
        for seed in np.linspace(-0.2, 0.2, 41)
    ]
    assert min(outside) == pytest.approx(stats.norm.sf(1) * 2)
    assert f"at least {100 * min(outside):.1f} %" in PAGE


def test_sizes_of_matrices() -> None:
    assert f"{round(DOUBLE * 392_000**2 / 1e9):,} GB" in PAGE
    assert f"{DOUBLE * n_parameters(30, 120) ** 2 / 1e6:.1f} MB" in PAGE


def test_shares_and_chances_are_computed() -> None:
    assert f"{100 * 7**2 / 28**2:g} %" in PAGE
    assert re.search(
        rf"sign test with one pair is {stats.binomtest(1, 1, alternative='greater').pvalue}\b", PAGE
    )


@pytest.mark.skipif("LEAMVD_DATA_DIR" not in os.environ, reason="needs MNIST, see LEAMVD_DATA_DIR")
def test_mnist_is_gray() -> None:
    levels = np.unique(load("mnist", side=28, n_train=1_000).train)
    np.testing.assert_allclose(levels * 255, np.arange(256), atol=1e-4)
