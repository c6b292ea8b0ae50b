"""Section 12, and what it shares with Sections 2, 7 and 11: searches with marks, compared at the
last ones.
"""

import math
from itertools import product
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import leamvd
from leamvd.networks.dbn import Training
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.functions import LIMIT, problem
from leamvd_paper.studies import benchmarks, longer_searches, results
from leamvd_paper.studies.benchmarks import Comparison, FirstRBM, Function
from leamvd_paper.studies.layers import Images
from leamvd_paper.studies.longer_searches import SEPARABLE
from leamvd_paper.studies.statistics import interval
from leamvd_paper.studies.study_methods import FORMER, Method

SPHERE = Function("sphere", 10)


def search(
    *marks: float, on: benchmarks.Problem = SPHERE, trainer: str = "lea-mvd", **reading: Any
) -> pd.DataFrame:
    return benchmarks.search(on, trainer, Training(), Reading(**reading), seed=1, marks=marks).rows


def test_a_row_has_the_best_value_of_the_last_generation_within_its_mark() -> None:
    x0, objective = problem("sphere", 10, seed=1)
    best = [
        leamvd.minimize(objective, x0, sigma0=1.0, n_gen=n, seed=1, vectorized=True).fun
        for n in (1, 4)
    ]
    found = search(2, 2.4, 8.5)  # generations end after 24, 44, 64 and 84 evaluations
    assert found["evaluations"].tolist() == [0, 24, 84]
    assert math.isnan(found["best"][0])
    assert found["best"].tolist()[1:] == best


@pytest.mark.parametrize(("budget", "nfev"), [(23, 0), (24, 24), (63, 44), (64, 64)])
def test_a_budget_is_used_up_to_its_last_whole_generation(budget: int, nfev: int) -> None:
    x0, objective = problem("sphere", 10, seed=1)
    opt = leamvd.LEAMVD(x0, seed=1)
    for _ in benchmarks.generations(opt, objective, budget):
        pass
    assert opt.nfev == nfev


def test_a_search_that_ends_by_itself_keeps_its_best_value() -> None:
    found = search(100, 3000, 6000, trainer="cma-es")
    assert found["evaluations"].is_monotonic_increasing
    assert found["evaluations"][2] < 60_000
    assert found["evaluations"][1] == found["evaluations"][2]
    assert 0 <= found["best"][2] < 1e-9


def test_a_search_on_a_function_has_its_settings() -> None:
    given = Training(n_elite=2, sigma0=0.2), Reading(population_size=9, exponent=2.0)
    opt, _ = benchmarks.start(SPHERE, "lea-mvd", *given, seed=5, budget=100)
    assert (opt.n_elite, opt.sigma0, opt.population_size) == (2, 2.0, 9)
    assert (opt.reading.exponent, opt.seed, opt.n_gen) == (2.0, 5, 100)


def test_initialization_a_draws_in_the_domain_of_functions() -> None:
    opt, _ = benchmarks.start(SPHERE, "lea-mvd", Training(x0="none"), Reading(), seed=0, budget=100)
    X = opt.ask()
    assert np.abs(X).max() <= LIMIT
    assert np.abs(X).max() > 0.8 * LIMIT


def test_an_rbm_is_searched_from_one_epoch_of_contrastive_divergence() -> None:
    rbm = FirstRBM("RBM 1", Images(n_images=50), n_hidden=2)
    x0, objective = rbm.start(seed=3)
    assert len(x0) == rbm.n_var == 49 * 2 + 49 + 2
    assert isinstance(objective, ReconstructionObjective)
    opt, _ = benchmarks.start(rbm, "lea-mvd", Training(), Reading(), seed=3, budget=100)
    assert opt.sigma0 == Training.sigma0
    assert (opt.ask()[0] == x0).all()


def test_a_comparison_runs_every_method_on_every_problem_to_its_marks(tmp_path: Any) -> None:
    problems = {SPHERE: (10, 20), Function("ellipsoid", 1_000): (0.5,)}
    compared = Comparison(problems=problems, methods=("random", "lea-mvd:reset=off"), seeds=(1, 2))
    runs = results.tables(compared.plan(), tmp_path)["runs"]
    assert list(runs) == ["problem", "method", "seed", "mark", "evaluations", "best"]
    assert runs["problem"].unique().tolist() == ["sphere, n = 10", "ellipsoid, n = 1,000"]
    assert len(runs) == (2 + 1) * 2 * 2
    assert runs.query("method == 'random' and seed == 1")["evaluations"].tolist() == [96, 192, 480]


def test_means_and_ratios_are_geometric_paired_and_of_each_problems_last_mark() -> None:
    rows = [
        (on, method, seed, mark, 24 * mark, best * (1 if mark == last else 2))
        for on, last in (("p", 2), ("q", 9))
        for seed, pair in enumerate(((4.0, 1.0), (9.0, 3.0)))
        for method, best in zip(("lea-mvd", "random"), pair, strict=True)
        for mark in (1, last)
    ]
    table = pd.DataFrame(rows, columns=["problem", "method", "seed", "mark", "evaluations", "best"])
    ours, random = longer_searches.plot_longer(table).axes[0].lines
    assert (*ours.get_ydata(), random.get_ydata()[0]) == pytest.approx((12, 6, 2 * np.sqrt(3)))
    found = benchmarks.against(table, "lea-mvd")
    assert found[["problem", "method", "runs"]].to_numpy().tolist() == [
        ["p", "random", 2],
        ["q", "random", 2],
    ]
    ends = np.exp(interval(pd.Series(np.log([1 / 4, 1 / 3]))))
    for row in found[["best", "own", "ratio", "low", "high"]].to_numpy().tolist():
        assert row == pytest.approx([np.sqrt(3), 6, *ends])


@pytest.mark.parametrize(("problems", "ahead"), [(1, 1), (2, 0)])
def test_who_is_ahead_is_asked_of_all_problems_together(problems: int, ahead: int) -> None:
    """Five pairs that all say so are enough for one test, 1 in 32, and not for two."""
    rows = [
        (f"p{i}", method, seed, 1, best * (1 + seed))
        for i in range(problems)
        for method, best in (("lea-mvd", 2.0), ("cma-es", 1.0 + 0.01 * i))
        for seed in range(5)
    ]
    table = pd.DataFrame(rows, columns=["problem", "method", "seed", "mark", "best"])
    assert (benchmarks.against(table, "lea-mvd")["p"] < 0.05).sum() == ahead


def test_how_much_higher_a_method_ends_where_problems_are_moved() -> None:
    """Problems that were not moved do not count."""
    best = {
        ("x", 1): (2.0, 6.0),
        ("x", 10): (1.0, 1.0),
        ("x, moved by 64", 1): (8.0, 6.0),
        ("x, moved by 64", 10): (4.0, 1.0),
    }
    best |= {("RBM 1", 1): (99.0, 9.0)}
    rows = [
        (problem, mark, "ab"[i], v)
        for (problem, mark), own in best.items()
        for i, v in enumerate(own)
    ]
    found = benchmarks.moved(pd.DataFrame(rows, columns=["problem", "mark", "method", "best"]))
    assert found[["method", "problem", "mark"]].to_numpy().tolist() == [
        [m, "x", at] for m in "ab" for at in (1, 10)
    ]
    assert found["ratio"].tolist() == pytest.approx([4, 4, 1, 1])


def test_a_line_leaves_its_panel_where_a_method_is_more_than_ten_times_as_high() -> None:
    table = pd.DataFrame({"problem": "p", "seed": 0, "mark": [0.5, 1.0], "ratio": [2.0, 20.0]})
    rows = [table.assign(method=method) for method in longer_searches.DRAWN]
    ax = longer_searches.plot_used(pd.concat(rows)).axes[0]
    low, high = ax.get_ylim()
    assert low < 2
    assert high == pytest.approx(10)


def test_what_to_use_is_told_by_ratios_of_the_same_seed_and_each_problem_counts_once() -> None:
    ends = {
        "sphere, n = 100": (0.5, 1, 10),
        "F8, n = 160": (0.5,),
        "rastrigin, n = 10,000": (0.5,),
        "RBM 1": (0.5,),
    }
    better = {
        "sphere, n = 100": 4.0,
        "F8, n = 160": 9.0,
        "rastrigin, n = 10,000": 100.0,
        "RBM 1": 2.0,
    }
    rows = [
        (problem, method, seed, mark, (seed + 1) * value)
        for problem, marks in ends.items()
        for mark in marks
        for seed in range(3)
        for method, value in (
            ("lea-mvd", 5 * better[problem] * (2 if mark == 10 else 1)),
            (SEPARABLE, 5.0),
        )
    ]
    rows += [
        (problem, "snes:population_size=16", 0, 0.5, 5.0)
        for problem in ends
        if "10,000" not in problem
    ]
    table = pd.DataFrame(rows, columns=["problem", "method", "seed", "mark", "best"])
    ratios = longer_searches.over_separable(table)
    ours = ratios[ratios["method"] == "lea-mvd"]
    assert ours["ratio"].tolist() == pytest.approx(
        [4.0] * 6 + [8.0] * 3 + [9.0] * 3 + [100.0] * 3 + [2.0] * 3
    )
    kinds = longer_searches.by_kind(ratios).query("method == 'lea-mvd'")
    assert kinds[["kind", "mark", "runs"]].to_numpy().tolist() == [
        ["RBM 1", 0.5, 3],
        ["smooth", 0.5, 2],
        ["smooth", 1, 1],
        ["smooth", 10, 1],
    ]
    assert kinds["mean"].tolist() == pytest.approx([2, 6, 4, 8])
    elsewhere = table.assign(problem=table["problem"] + ", moved by 64", best=table["best"] * 3)
    found = longer_searches.choice(ratios, pd.concat([table, elsewhere]))
    assert found["method"].tolist() == ["lea-mvd"]
    assert found["mean"][0] == pytest.approx((4 * 9 * 100 * 2) ** 0.25)
    assert found["cost mean"][0] == pytest.approx(3)


def test_the_recommended_reading_is_what_the_rule_chooses() -> None:
    early = longer_searches.early()
    assert not early.duplicated(["problem", "mark", "method", "seed"]).any()
    assert {*early["mark"]} == {*longer_searches.EARLY}
    ratios = longer_searches.over_separable(early)
    assert ratios["ratio"].notna().all(), "beside a search of the same seed"
    rows = longer_searches.choice(ratios, results.read_recorded("what_to_use_moved"))
    assert sorted(rows["method"]) == sorted(longer_searches.READINGS)
    chosen = rows.loc[rows["cost mean"] <= 1.1, "method"].iloc[0]
    assert Method.parse(chosen).reading(Reading()) == Reading.recommended()


def test_a_function_of_one_variable_and_an_unknown_profile_are_refused() -> None:
    with pytest.raises(ValueError, match="n_var"):
        Function("sphere", 1)
    with pytest.raises(ValueError, match="profile"):
        longer_searches.tables("small")


def test_the_early_searches_are_all_that_compare_methods_for_the_first_evaluations() -> None:
    """Of two tables the readings and separable CMA-ES, each once; all of a third."""
    methods = [SEPARABLE, *longer_searches.READINGS]
    run = ["problem", "method", "seed", "mark"]
    expected = []
    for name in ("preset_judged", "preset_again", "what_to_use"):
        table = results.read_recorded(name)
        table = table[table["mark"].isin((0.5, 1, 2, 5, 10))]
        if name == "preset_judged":
            table = table[table["method"].isin(methods)]
        if name == "preset_again":
            table = table[~table["method"].isin({*expected[0]["method"]})]
        expected.append(table)
    known = pd.concat(expected)
    known["problem"] = [name.replace("bbob-f", "F") for name in known["problem"]]
    found = longer_searches.early()
    known, found = (one.set_index(run)["best"].sort_index() for one in (known, found))
    pd.testing.assert_series_equal(found, known)


def test_every_problem_has_a_kind() -> None:
    names = {problem.partition(",")[0] for problem in longer_searches.early()["problem"]}
    assert names == {*longer_searches.KINDS}
    smooth = {name for name, kind in longer_searches.KINDS.items() if kind == "smooth"}
    assert smooth == {"sphere", "ellipsoid", "rosenbrock", "F8", "F10", "F12"}


def test_intervals_of_a_kind_are_over_problems_and_of_a_reading_over_problems() -> None:
    """Each problem has two seeds, whose geometric means are 2, 8 and 4 for the printed reading."""
    middle = {"sphere, n = 9": 2.0, "F8, n = 160": 8.0, "ellipsoid, n = 9": 4.0, "RBM 1": 3.0}
    factor = {"lea-mvd": 1.0, FORMER: 0.5, "cr-fm-nes": 7.0, "snes:population_size=16": 1.0}
    rows = []
    for name, method, mark, seed in product(middle, factor, (0.5, 2, 5), (3, 1)):
        spread = {3: 1.5, 1: 1 / 1.5}[seed]
        late = 10 if mark == 5 else 1
        best = middle[name] * factor[method] * spread * late * (1 + seed)
        rows.append((name, method, mark, seed, best))
    for name, mark, seed in product(middle, (0.5, 2, 5), (1, 3)):
        rows.append((name, SEPARABLE, mark, seed, 1.0 + seed))
    columns = ["problem", "method", "mark", "seed", "best"]
    table = pd.DataFrame(rows, columns=columns).sample(frac=1, random_state=0)
    ratios = longer_searches.over_separable(table)
    assert SEPARABLE not in {*ratios["method"]}

    kinds = longer_searches.by_kind(ratios)
    assert kinds[["kind", "method", "mark"]].to_numpy().tolist() == sorted(
        [kind, method, mark]
        for kind, method, mark in product(("smooth", "RBM 1"), factor, (0.5, 2, 5))
    )
    for row in kinds.itertuples():
        late = 10 if row.mark == 5 else 1
        values = [2.0, 8.0, 4.0] if row.kind == "smooth" else [3 * 1.5, 3 / 1.5]
        logs = pd.Series(np.log(values)) + np.log(late * factor[row.method])
        ends = np.exp(interval(logs))
        assert (row.runs, row.mean, row.low, row.high) == pytest.approx((len(values), *ends))

    further = {"lea-mvd": 6.0, FORMER: 1.5}
    moved = []
    for name, method, mark, seed in product(middle, further, (0.5, 2), (1, 3)):
        cost = further[method] * (2.0 if name == "RBM 1" else 1.0)
        moved.append((name, method, mark, seed, 1.0))
        moved.append((f"{name}, moved by 64", method, mark, seed, cost))
    found = longer_searches.choice(ratios, pd.DataFrame(moved, columns=columns))
    assert list(found) == ["method", "mean", "low", "high", "cost mean", "cost low", "cost high"]
    assert found["method"].tolist() == [FORMER, "lea-mvd"], "the lowest ratio first"
    for row in found.to_numpy().tolist():
        method = row[0]
        logs = pd.Series(np.log([2.0, 8.0, 4.0, 3.0])) + np.log(factor[method])
        costs = pd.Series(np.log([1.0, 1.0, 1.0, 2.0])) + np.log(further[method])
        assert row[1:] == pytest.approx([*np.exp(interval(logs)), *np.exp(interval(costs))])


def test_each_comparison_is_of_its_problems_methods_and_marks() -> None:
    """What to use is asked of every method that is drawn, on every problem that has a kind."""
    _, calls = longer_searches.used()["runs"]
    apart = []
    for comparison in longer_searches.USED:
        apart += comparison.plan()["runs"][1].items()
    assert len(apart) == len(calls), "none is planned twice"
    for label, call in apart:
        assert calls[label].key == call.key
        marks = (0.5, 1, 2) if label[0] == "RBM 1" else (0.5, 1, 2, 5, 10)
        assert call.arguments["marks"] == marks
        assert call.arguments["seed"] == label[-1]
        assert str(call.arguments["problem"]) == label[0]


def test_the_quick_comparison_has_the_methods_of_the_papers() -> None:
    quick, paper = (longer_searches.PROFILES[name] for name in ("quick", "paper"))
    assert quick.methods == paper.methods
    assert len(quick.seeds) > 1, "there are intervals"
    for marks in (*quick.problems.values(), *paper.problems.values()):
        assert list(marks) == sorted(set(marks))


def test_bands_reach_to_the_ends_of_intervals_of_the_searches_that_have_a_value() -> None:
    rows = []
    for mark, values in ((0.5, (np.nan, np.nan, np.nan)), (1, (9.0, 4.0, np.nan)), (5, (1, 4, 2))):
        rows += [("p", "lea-mvd", seed, mark, float(v)) for seed, v in enumerate(values)]
    table = pd.DataFrame(rows, columns=["problem", "method", "seed", "mark", "best"])
    figure = longer_searches.plot_longer(table[::-1])
    ax = figure.axes[0]
    (line,) = ax.lines
    points = np.array(sorted(line.get_xydata().tolist()))
    np.testing.assert_allclose(points, [[1, 6], [5, 2]])
    (band,) = ax.collections
    corners = pd.DataFrame(band.get_paths()[0].vertices).groupby(0)[1].agg(["min", "max"])
    for mark, values in ((1, (9.0, 4.0)), (5, (1.0, 4.0, 2.0))):
        _, low, high = np.exp(interval(pd.Series(np.log(values))))
        assert corners.loc[mark].tolist() == pytest.approx([low, high])
    assert figure.get_supylabel() == "best value"
    assert [text.get_text() for text in figure.legends[0].texts] == ["LEA-MVD"]
    plt.close(figure)
