"""Tournaments against enumeration and literal simulation; what the tests in the section can and cannot reject."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from leamvd.experiments import selection_pressure
from leamvd.experiments.selection_pressure import BINARY, DOUBLE, FOUR
from leamvd.optimizers import selection


def test_double_binary_tournament_against_enumeration() -> None:
    # every outcome of filling a set of three by binary tournaments and holding one more among its members
    size, wins, count = 3, np.zeros(3), 0
    for draws in product(range(size), repeat=2 * size):
        selected = [min(draws[2 * k], draws[2 * k + 1]) for k in range(size)]
        for a, b in product(selected, repeat=2):
            wins[min(a, b)] += 1
            count += 1
    np.testing.assert_allclose(selection_pressure.tournaments(size)[DOUBLE], wins / count, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 24])
def test_simulation_agrees_with_the_formulas(size: int) -> None:
    table = selection_pressure.simulate(size, 50_000, seed=3)
    assert (table.groupby("method")["exact"].sum() - 1).abs().max() < 1e-12
    tests = selection_pressure.goodness(table)
    own = tests[tests["against"] == "its formula"]
    assert list(own["tournament"]) == [BINARY, DOUBLE, FOUR]
    assert (own["p"] > 1e-4).all()  # false alarm once in 3,000 for a new seed
    for error, exact in zip(table["error"], table["exact"], strict=True):
        assert error == pytest.approx(stats.binom(50_000, exact).std() / 50_000)
    # z-scores of the shares are standard normal but for their sum: 5 sigma
    assert (((table["share"] - table["exact"]) / table["error"]).abs() < 5).all()


def test_goodness_rejects_another_method_and_only_that() -> None:
    tests = selection_pressure.goodness(selection_pressure.simulate(24, 100_000, seed=4)).set_index(
        ["tournament", "against"]
    )
    assert tests.loc[(DOUBLE, "exponent 2"), "rejected"]
    assert not tests.loc[(DOUBLE, "its formula"), "rejected"]


def test_chi_square_pools_rare_ranks() -> None:
    wins = np.array([45, 33, 12, 4, 4, 2])
    for probability, pooled in (
        ([0.5, 0.3, 0.1, 0.05, 0.03, 0.02], [45, 33, 12, 4, 6]),  # the last two expect five together
        ([0.5, 0.3, 0.1, 0.06, 0.02, 0.02], [45, 33, 12, 10]),  # the last two expect four, and join the one before
    ):
        expected = [50, 30, 10, 5, 5] if len(pooled) == 5 else [50, 30, 10, 10]
        statistic = sum((w - e) ** 2 / e for w, e in zip(pooled, expected, strict=True))
        found = selection_pressure._chi_square(wins, np.array(probability))
        assert found == pytest.approx((statistic, len(pooled) - 1, stats.chi2.sf(statistic, len(pooled) - 1)))


def test_closest_exponents() -> None:
    table = selection_pressure.closest(24).set_index("tournament")
    for method, row in table.iterrows():
        exact = selection_pressure.tournaments(24)[str(method)]
        distances = {
            a: np.abs(selection.fractional_tournament(24, a) - exact).sum() / 2
            for a in (row["closest"] - 0.01, row["closest"], row["closest"] + 0.01)
        }
        assert min(distances, key=distances.__getitem__) == row["closest"]
        assert distances[row["closest"]] == pytest.approx(row["distance"], rel=1e-9)
    assert table.loc[BINARY, "closest"] == pytest.approx(1, abs=0.1)
    assert table.loc[DOUBLE, "closest"] == pytest.approx(3, abs=0.1)
    assert np.isnan(table.loc[FOUR, "stated"])
    # of two ranks the best is weighed 2^a / (2^a + 1), and wins a binary tournament with probability 3/4
    assert selection_pressure.closest(2).set_index("tournament").loc[BINARY, "closest"] == pytest.approx(
        np.log2(3), abs=1e-3
    )


def test_total_variation_is_the_largest_difference_of_any_event() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.2, 0.6])
    events = [np.array(event, dtype=bool) for event in product([False, True], repeat=3)]
    assert selection_pressure.total_variation(p, q) == pytest.approx(max(abs(p[e].sum() - q[e].sum()) for e in events))


def test_pressure_of_large_populations() -> None:
    table = selection_pressure.pressure([5_000], [0.0, 1.5, 3.0]).set_index("method")
    for a in (0.0, 1.5, 3.0):
        row = table.loc[f"exponent {a:g}"]
        assert row["rank_share"] == pytest.approx(1 / (a + 2), rel=1e-3)
        assert row["size_share"] == pytest.approx((2 * a + 1) / (a + 1) ** 2, rel=1e-3)
    assert table.loc[FOUR, "rank_share"] == pytest.approx(1 / 5, rel=1e-3)


def test_normal_models_by_loops() -> None:
    points, models = selection_pressure.normal_models(7, [0.0, 2.0], seed=1)
    for row in models.itertuples():
        own = points[points["exponent"] == row.exponent]
        value = (own["x1"] - 1) ** 2 + 4 * (own["x2"] - 1) ** 2
        assert value.is_monotonic_increasing
        for name, mean, std in (("x1", row.mean1, row.std1), ("x2", row.mean2, row.std2)):
            mu = sum(w * x for w, x in zip(own["weight"], own[name], strict=True))
            variance = sum(w * (x - mu) ** 2 for w, x in zip(own["weight"], own[name], strict=True))
            assert mean == pytest.approx(mu)
            assert std == pytest.approx(np.sqrt(variance))
        assert row.distance == pytest.approx(np.hypot(row.mean1 - 1, row.mean2 - 1))
    assert models["area"].iloc[0] == pytest.approx(1)
