"""Section 1: tournaments against enumeration and a literal simulation, and what the tests can
reject.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.optimizers.selection import fractional_tournament
from leamvd_paper.studies import esd, plots
from leamvd_paper.studies.esd import BINARY, DOUBLE, FOUR


def test_a_double_binary_tournament_against_enumeration() -> None:
    # every outcome of filling a set of three by binary tournaments and holding one more among its
    # members
    size, wins, count = 3, np.zeros(3), 0
    for draws in product(range(size), repeat=2 * size):
        selected = [min(draws[2 * k], draws[2 * k + 1]) for k in range(size)]
        for a, b in product(selected, repeat=2):
            wins[min(a, b)] += 1
            count += 1
    np.testing.assert_allclose(esd.tournaments(size)[DOUBLE], wins / count, rtol=1e-12)


@pytest.mark.parametrize("size", [2, 5, 24])
def test_a_simulation_agrees_with_the_formulas(size: int) -> None:
    counts = esd.simulate(size, 50_000, seed=3)
    assert counts.groupby("tournament")[["share", "exact"]].sum().to_numpy() == pytest.approx(1)
    assert ((counts["share"] - counts["exact"]).abs() < 5 * counts["error"]).all()
    assert counts["error"].to_numpy() == pytest.approx(
        stats.binom(50_000, counts["exact"]).std() / 50_000
    )
    tests = esd.goodness(counts).query("against == 'its formula'")
    assert list(tests["tournament"]) == [BINARY, DOUBLE, FOUR]
    assert (tests["p"] > 1e-4).all()


def test_another_method_is_rejected_and_only_that() -> None:
    tests = esd.goodness(esd.simulate(24, 100_000, seed=4)).set_index(["tournament", "against"])[
        "rejected"
    ]
    assert tests[DOUBLE, "exponent 2"]
    assert not tests[DOUBLE, "its formula"]


def test_the_last_ranks_are_counted_together_where_they_expect_few_wins() -> None:
    exact, wins = [0.5, 0.3, 0.1, 0.06, 0.02, 0.02], [45, 33, 12, 4, 4, 2]
    counts = pd.DataFrame({"tournament": FOUR, "exact": exact, "wins": wins})
    pooled, expected = [45, 33, 12, 10], [50, 30, 10, 10]
    statistic = sum((w - e) ** 2 / e for w, e in zip(pooled, expected, strict=True))
    found = esd.goodness(counts)[["chi-square", "degrees of freedom", "p"]].to_numpy()
    assert found == pytest.approx(np.array([[statistic, 3, stats.chi2.sf(statistic, 3)]]))


def test_the_closest_exponent_has_the_least_total_variation() -> None:
    table = esd.closest(24)
    for name, exact in esd.tournaments(24).items():
        best, least = table.loc[name, ["closest exponent", "smallest distance"]]
        at = [
            0.5 * np.abs(fractional_tournament(24, a) - exact).sum()
            for a in (best - 0.01, best, best + 0.01)
        ]
        assert min(at) == at[1] == pytest.approx(least)
    assert table["closest exponent"].to_numpy() == pytest.approx([1, 3, 3], abs=0.1)
    assert table["stated exponent"].tolist()[:2] == [1, 2]
    binary = 0.5 * np.abs(fractional_tournament(24, 1) - esd.tournaments(24)[BINARY]).sum()
    assert table.loc[BINARY, "distance there"] == pytest.approx(binary)
    # the better one of two has the weight 2^a / (2^a + 1), and wins a binary tournament with
    # probability 3/4
    assert esd.closest(2).loc[BINARY, "closest exponent"] == pytest.approx(np.log2(3), abs=1e-3)


def test_selection_pressure_of_large_populations() -> None:
    table = esd.pressure(esd.weights([5_000], [0.0, 1.5, 3.0])).set_index("method")
    for a in (0.0, 1.5, 3.0):
        ranks, sizes = table.loc[f"exponent {a:g}", ["expected rank", "effective size"]] / 5_000
        assert (ranks, sizes) == pytest.approx((1 / (a + 2), (2 * a + 1) / (a + 1) ** 2), rel=1e-3)
    assert table.loc[FOUR, "expected rank"] == pytest.approx(5_000 / 5, rel=1e-3)
    equal = esd.pressure(esd.weights([7], [0.0])).set_index("method").loc["exponent 0"]
    assert equal[["expected rank", "effective size"]].tolist() == pytest.approx([4, 7])


def test_levels_of_tournaments_stand_beside_the_curves_of_large_populations() -> None:
    """Binary tournaments weigh ranks by 2 (1 - x), tournaments of four by 4 (1 - x)^3."""
    figure = esd.plot_pressure(esd.pressure(esd.weights([12, 3_000], [0.0, 1.0, 3.0])))
    known = {BINARY: (1 / 3, 3 / 4), FOUR: (1 / 5, 7 / 16), DOUBLE: (1 / 5, 7 / 16)}
    curve = "$\\lambda$ = 3000"
    assert [ax.get_ylabel() for ax in figure.axes] == [
        "expected rank / $\\lambda$",
        "effective size / $\\lambda$",
    ]
    for at, ax in enumerate(figure.axes):
        lines = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.lines}
        for name, heights in known.items():
            assert lines[name] == pytest.approx(heights[at], rel=2e-3)
        assert lines[curve][1:] == pytest.approx([known[BINARY][at], known[FOUR][at]], rel=2e-3)
    plots.plt.close(figure)


def test_normal_models_by_loops() -> None:
    found = esd.tables("quick", population_size=7, exponents=[0.0, 2.0], n_tournaments=50)
    X = found.population
    assert ((X["x1"] - 1) ** 2 + 4 * (X["x2"] - 1) ** 2).is_monotonic_increasing
    models = esd.normal_models(X, [0.0, 2.0])
    for row in models.to_dict("records"):
        G = found.weights.query("exponent == @row['exponent']")["weight"].to_numpy()
        for name in X:
            mean = sum(w * x for w, x in zip(G, X[name], strict=True))
            variance = sum(w * (x - mean) ** 2 for w, x in zip(G, X[name], strict=True))
            assert (row[f"mean of {name}"], row[f"std of {name}"]) == pytest.approx(
                (mean, np.sqrt(variance))
            )


def test_tables_are_of_the_populations_tournaments_and_seed_that_are_asked_for() -> None:
    given = {"population_size": 7, "n_tournaments": 50, "population_sizes": [3, 5]}
    found = esd.tables("quick", **given, exponents=[2.0], seed=4)
    pd.testing.assert_frame_equal(found.counts, esd.simulate(7, 50, 4))
    pd.testing.assert_frame_equal(found.population, esd.population(7, 4))
    assert {*found.weights["population_size"]} == {7}
    assert {*found.weights["exponent"].dropna()} == {2.0}
    assert {*found.curves["population_size"]} == {3, 5}
    assert {*found.curves["exponent"].dropna()} == {*esd.CURVE}


def test_of_several_tests_each_is_judged_by_its_part_of_the_level() -> None:
    """63 of 100 where 50 are expected have a p of 0.009."""
    counts = pd.DataFrame({"tournament": FOUR, "exact": [0.5, 0.5], "wins": [63, 37]})
    assert esd.goodness(counts)["rejected"].tolist() == [True]
    both = pd.concat([counts, counts.assign(tournament="another")])
    assert esd.goodness(both)["rejected"].tolist() == [False, False]


@pytest.mark.parametrize(
    "wrong",
    [
        {"profile": "small"},
        {"n_tournaments": 100},
        {"population_size": 1},
        {"seed": -1},
        {"exponents": []},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        esd.tables(**wrong)


def test_a_profile_says_how_many_tournaments_are_held_where_nobody_does() -> None:
    for profile in ("recorded", "quick"):
        found = esd.tables(profile, population_sizes=[3])
        held = found.counts.groupby("tournament")["wins"].sum()
        assert {*held} == {esd.PROFILES[profile]}
        assert {*found.weights["population_size"]} == {24}
        assert found.weights["exponent"].dropna().unique().tolist() == [0, 1, 1.5, 2, 3]
    with pytest.raises(ValueError, match="n_tournaments"):
        esd.tables(n_tournaments=119)
    assert {
        *esd.tables(n_tournaments=120, population_sizes=[3])
        .counts.groupby("tournament")["wins"]
        .sum()
    } == {120}


def test_weights_of_a_population_of_two_by_hand() -> None:
    """The better one wins a binary tournament with 3/4, and one of four with 15/16."""
    found = esd.weights([2, 3], [0.0, 2.0])
    assert len(found) == 5 * (2 + 3)
    two = found[found["population_size"] == 2].pivot(
        index="rank", columns="method", values="weight"
    )
    known = {
        "exponent 0": 1 / 2,
        "exponent 2": 4 / 5,
        BINARY: 3 / 4,
        FOUR: 15 / 16,
        DOUBLE: (3 / 4 + 15 / 16) / 2,
    }
    assert two.loc[1].to_dict() == pytest.approx(known)
    assert two.sum().tolist() == pytest.approx([1] * 5)
    exponents = found.groupby("method")["exponent"].unique()
    assert exponents["exponent 2"].tolist() == [2]
    assert np.isnan(exponents[DOUBLE]).all()


def test_tournaments_are_tested_against_their_formulas_and_the_stated_exponents() -> None:
    """Each is tested against its formula, and the first two against the exponent that is stated."""
    counts = esd.simulate(5, 1_000, seed=2)
    table = esd.goodness(counts)
    assert table[["tournament", "against"]].to_numpy().tolist() == [
        [BINARY, "its formula"],
        [BINARY, "exponent 1"],
        [DOUBLE, "its formula"],
        [DOUBLE, "exponent 2"],
        [FOUR, "its formula"],
    ]
    expected = 1_000 * np.array([25, 16, 9, 4, 1]) / 55
    wins = counts.loc[counts["tournament"] == DOUBLE, "wins"].to_numpy()
    assert table["chi-square"][3] == pytest.approx(stats.chisquare(wins, expected).statistic)


def test_five_expected_wins_are_a_rank_of_their_own() -> None:
    counts = pd.DataFrame({"tournament": FOUR, "exact": [0.5, 0.45, 0.05], "wins": [50, 44, 6]})
    assert esd.goodness(counts)["degrees of freedom"].tolist() == [2]


def test_points_of_the_plane_are_standard_normal_and_the_best_is_first() -> None:
    points = esd.population(4_000, seed=5)
    assert points.mean().tolist() == pytest.approx([0, 0], abs=0.06)
    assert points.std().tolist() == pytest.approx([1, 1], abs=0.05)
    drawn = np.random.default_rng(5).standard_normal((4_000, 2))
    assert sorted(points["x1"]) == sorted(drawn[:, 0])


@pytest.mark.parametrize("exponent", [0.0, 6.5, 8.0])
def test_exponents_up_to_eight_are_looked_at(exponent: float, monkeypatch) -> None:
    weights = fractional_tournament(5, exponent)
    monkeypatch.setattr(esd, "tournaments", lambda size: {FOUR: weights})
    closest = esd.closest(5).loc[FOUR]
    assert closest["closest exponent"] == pytest.approx(exponent)
    assert closest["smallest distance"] == pytest.approx(0, abs=1e-9)
