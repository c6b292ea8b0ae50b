"""Section 2: generations taken apart agree with the optimizer's states and rules; the sign test has
its exact level.
"""

import dataclasses
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from figures import assert_sound
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.functions import ellipsoid, rastrigin, sphere
from leamvd_paper.studies import two_directions
from leamvd_paper.studies.two_directions import AWAY, PATH, TOWARD, V_AWAY, V_TOWARD, Settings

SMALL = Settings(n_var=6, n_gen=25, seeds=(0, 1), n_populations=30)


@pytest.fixture(scope="module")
def trace() -> pd.DataFrame:
    return two_directions.trace(SMALL)


@pytest.fixture(scope="module")
def shifts() -> pd.DataFrame:
    both = [
        two_directions.shifts(dataclasses.replace(SMALL, function=name), [1, 4])
        for name in ("sphere", "ellipsoid")
    ]
    return pd.concat(both)


def test_the_trace_follows_the_rules_of_beta_1_and_beta_2(trace: pd.DataFrame) -> None:
    for _, own in trace.groupby("seed"):
        before = own.iloc[0]
        assert (before["beta1"], before["beta2"], before["stagnation"]) == (1.0, 0.9, 0)
        for _, row in own.iloc[1:].iterrows():
            one = before["beta1"]
            if row["best"] < before["best"]:
                expected = (
                    min(3, 1.1 * one) if one > 1 else 1.4 * one,
                    min(1, before["beta2"] + 0.2),
                )
            else:
                expected = 0.8 * one if one < 1 else 0.5 * one, max(0, before["beta2"] - 0.1)
            assert row["success"] == (row["best"] < before["best"])
            assert (row["beta1"], row["beta2"]) == pytest.approx(expected)
            before = row
    assert not trace["reset"].any()


def test_the_trace_agrees_with_the_states(trace: pd.DataFrame) -> None:
    for state, row in zip(SMALL.run(1), trace.query("seed == 1").to_dict("records"), strict=True):
        assert row["best"] == state.fitness[0]
        assert row["std"] == pytest.approx(np.sqrt(np.mean(state.std**2)))
        assert row["path_length"] == pytest.approx(np.linalg.norm(state.path))
        if state.path.any():
            lengths = np.linalg.norm(state.path) * np.linalg.norm(state.descent)
            assert row["descent_path"] == pytest.approx(
                state.path @ state.descent / lengths, abs=1e-9
            )
            step = np.linalg.norm((1 - state.beta2) * state.descent_mean * state.descent)
            both = step + np.linalg.norm(state.beta2 * state.path)
            assert row["descent_share"] == pytest.approx(step / both)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-9), ("float32", 1e-5)])
def test_only_the_new_direction_is_orthogonal_to_the_path(dtype: str, tolerance: float) -> None:
    later = (
        two_directions.trace(dataclasses.replace(SMALL, dtype=dtype))
        .query("generation > 2")
        .dropna()
    )
    assert later["hat_path"].abs().max() < tolerance
    assert later["descent_path"].abs().max() > 0.01
    assert later["descent_length"].between(0.1, 1).all()
    assert (later.loc[later["beta2"] == 1, "descent_share"] == 0).all()


def test_resets_come_after_ten_failures_and_are_a_trap_near_the_optimum() -> None:
    table = two_directions.resets(dataclasses.replace(SMALL, n_var=40, n_gen=35))
    for (reading, _), own in table.groupby(["reading", "seed"]):
        marks = own[own["reset"]]
        assert own["relative"].iloc[0] == 1
        assert own["relative"].is_monotonic_decreasing
        assert marks.empty == (reading == "none")
        if len(marks):
            first = marks.index[0]
            assert list(own.loc[first - 9 : first, "stagnation"]) == [*range(1, 10), 0]
            assert marks["std"].to_numpy() == pytest.approx(
                1.0 if reading == "to 1" else own["std"].iloc[0]
            )
    found = two_directions.stuck(table)
    assert found.loc["to 1", ["runs", "never improved", "last over first"]].tolist() == [2, 2, 1]
    assert found.loc["none", "never improved"] == 0
    assert found.loc["none", "last over first"] < 1
    at_the_optimum = two_directions.resets(
        dataclasses.replace(SMALL, seeds=(0,), start=0.0, n_gen=12)
    )
    assert (at_the_optimum["relative"] == 1).all()


def test_step_sizes_are_of_all_generations_but_the_first() -> None:
    table = pd.DataFrame({"seed": 7, "generation": [1, 2, 3], "beta2": [1.0, 0.5, 1.0]})
    rows = table.assign(
        success=[False, True, False],
        reset=[True, False, True],
        descent_share=[0.9, 0.2, 0.4],
        beta1=[9.0, 0.5, 2.0],
    )
    found = two_directions.step_sizes(rows).loc[7]
    assert found[["success", "full", "descent_share"]].tolist() == pytest.approx([50, 50, 30])
    assert found[["beta1 min", "beta1 max", "resets"]].tolist() == [0.5, 2.0, 1]


def test_tables_are_of_the_runs_and_functions_that_are_asked_for() -> None:
    given = {"n_var": 5, "n_gen": 4, "seeds": (0, 3), "n_populations": 2, "function": "rastrigin"}
    found = two_directions.tables("quick", generation=3, generations=(1, 2), seed=4, **given)
    for n_var, scene in ((2, found.flat), (3, found.solid)):
        assert scene.numbers.name == f"rastrigin, n = {n_var}, generation 3"
        *_, last = dataclasses.replace(Settings(**given), n_var=n_var, n_gen=3).run(4)
        np.testing.assert_array_equal(scene.vectors.loc["mean"], last.mean)
    assert {*found.trace["seed"]} == {*found.resets["seed"]} == {0, 3}
    assert {*found.resets["reading"]} == {*two_directions.RESETS}
    populations = found.shifts.groupby(["function", "generation", "seed"])["change"].first()
    names = ("sphere", "ellipsoid", "rastrigin")
    assert {*populations.index} == {(f, t, seed) for f in names for t in (1, 2) for seed in (0, 1)}
    assert populations.nunique() == len(populations)


def test_a_run_has_all_of_its_settings_and_starts_where_it_is_asked_to() -> None:
    settings = Settings(
        function="rastrigin",
        n_var=5,
        n_gen=14,
        population_size=9,
        n_elite=2,
        exponent=3.0,
        shift="printed",
        dtype="float32",
    )
    for changes, reset, start in (({}, 1.0, 1.0), ({"reset": "off", "start": 0.01}, "off", 0.01)):
        x0 = start * np.random.default_rng(8).standard_normal(5)
        reading = Reading(exponent=3.0, shift="printed", reset=reset)
        opt = LEAMVD(
            x0,
            population_size=9,
            n_elite=2,
            n_gen=14,
            dtype="float32",
            sigma_min=0,
            seed=8,
            reading=reading,
        )
        states = [*settings.run(8, **changes)]
        for number, state in enumerate(states, start=1):
            X = opt.ask()
            opt.tell(X, rastrigin(X))
            assert state.generation == number
            for name in ("population", "mean", "std", "path", "descent"):
                kept = getattr(state, name)
                np.testing.assert_array_equal(kept, getattr(opt.state, name))
                assert kept.dtype == np.float64
        assert number == 14
        # row 1 of the first population is the start, unless a better point was drawn
        assert (states[0].population == x0.astype(np.float32)).all(axis=1).any()


def test_a_run_goes_on_however_small_its_population_has_become() -> None:
    settings = Settings(function="sphere", n_var=2, n_gen=150)
    *earlier, last = settings.run(0, reset="off")
    assert last.generation == len(earlier) + 1 == 150
    assert np.linalg.norm(last.std) < 1e-7


def test_the_first_generation_is_taken_apart_without_one_before_it() -> None:
    points, vectors, numbers, slices = two_directions.scene(SMALL, 3, generation=1, seed=2)
    (now,) = dataclasses.replace(SMALL, n_var=3, n_gen=1).run(2)
    np.testing.assert_allclose(vectors.loc["C_hat"], 10 * now.descent)
    np.testing.assert_array_equal(vectors.loc["mean"], now.mean)
    assert [*vectors.index[:3]] == ["mean", "C_hat", "C_ani"]
    assert not vectors.loc[PATH].any()
    assert (slices[PATH] == 0).all(), "along no direction nothing changes"
    assert numbers["part of P in v"] == 0
    np.testing.assert_array_equal(points[["x1", "x2", "x3"]], now.population)
    assert points["rank"].tolist() == [*range(1, 25)]
    assert points["projection"].iloc[0] == 0


def test_numbers_and_slices_of_a_generation_by_their_definitions() -> None:
    _, vectors, numbers, slices = two_directions.scene(SMALL, 3, generation=6, seed=2)
    *_, now = dataclasses.replace(SMALL, n_var=3, n_gen=6).run(2)
    assert 0 < now.beta2 < 1
    expected = {
        "mu_ani": now.descent_mean,
        "sigma_ani": now.descent_std,
        "beta_2": now.beta2,
        "norm of sigma": np.sqrt((now.std**2).sum()),
        "part of P in v": now.beta2 * np.sqrt((now.path**2).sum()),
        "part of C_ani in v": (1 - now.beta2) * abs(now.descent_mean) * np.linalg.norm(now.descent),
    }
    assert numbers.to_dict() == pytest.approx(expected)
    np.testing.assert_array_equal(vectors.loc["C_ani"], now.descent)
    far = np.sqrt((now.std**2).mean())
    np.testing.assert_allclose(slices["distance"], far * np.arange(41) / 40)
    here = float(ellipsoid(now.mean))
    for name in (PATH, TOWARD, AWAY):
        step = vectors.loc[name].to_numpy()
        line = now.mean + np.outer(slices["distance"], step / np.linalg.norm(step))
        np.testing.assert_allclose(slices[name], ellipsoid(line) / here - 1, atol=1e-12)


def test_runs_that_never_improve_are_counted_by_reading_with_the_median_of_their_ends() -> None:
    rows = []
    for reading, ends in (
        ("none", [0.5, 0.1, 1.0]),
        ("to the first", [0.2, 0.9, 0.4]),
        ("to 1", [1.0, 1.0, 0.7]),
    ):
        for seed, end in enumerate(ends):
            rows += [(reading, seed, 1.0, False), (reading, seed, 0.95, reading != "none")]
            rows.append((reading, seed, end, seed == 1))
    table = pd.DataFrame(rows, columns=["reading", "seed", "relative", "reset"])
    found = two_directions.stuck(table)
    columns = ["runs", "resets", "never improved", "last over first"]
    assert found[columns].T.to_dict("list") == {
        "to 1": [3, 4, 2, 1],
        "to the first": [3, 4, 0, 0.4],
        "none": [3, 1, 1, 0.5],
    }
    assert [*found.index] == ["to 1", "to the first", "none"]


def test_generations_are_told_apart_by_whether_the_best_is_new() -> None:
    """In flat and stepped runs, one after the other: what is equal is no success, and the first
    generation of a run has nothing before it.
    """
    table = two_directions.trace(
        dataclasses.replace(SMALL, n_gen=40, seeds=(1, 5)), reset="initial", start=1e-3
    )
    for seed, own in table.groupby("seed"):
        states = [*dataclasses.replace(SMALL, n_gen=40).run(seed, reset="initial", start=1e-3)]
        C = np.zeros(6)
        best = -np.inf
        failures = 0
        for state, row in zip(states, own.to_dict("records"), strict=True):
            assert row["success"] == (state.fitness[0] < best)
            failures = 0 if row["success"] or row["generation"] == 1 else failures + 1
            assert row["reset"] == (failures == 10)
            failures %= 10
            best = state.fitness[0]
            assert row["stagnation"] == state.stagnation == failures
            new = state.descent - 0.9 * C
            C = state.descent
            if state.path.any() and new.any():
                both = np.linalg.norm(new) * np.linalg.norm(state.path)
                assert row["hat_path"] == pytest.approx(new @ state.path / both, abs=1e-9)
    assert table["reset"].any()
    assert table["seed"].nunique() == 2


@pytest.mark.parametrize("n_var", [2, 3])
def test_a_generation_taken_apart(n_var: int) -> None:
    points, vectors, numbers, slices = two_directions.scene(SMALL, n_var, generation=4, seed=2)
    *_, earlier, now = dataclasses.replace(SMALL, n_var=n_var, n_gen=4).run(2)
    C, C_hat = vectors.loc["C_ani"].to_numpy(), vectors.loc["C_hat"].to_numpy()
    np.testing.assert_allclose(C, 0.1 * C_hat + 0.9 * earlier.descent, atol=1e-14)
    assert np.linalg.norm(C_hat) == pytest.approx(1)
    assert float(C_hat @ vectors.loc[PATH]) == pytest.approx(0, abs=1e-12)
    # the printed step points from the best to the rest, whatever the sign of C_ani; ours the other
    # way
    rest = (now.population[1:] - now.population[0]).mean(axis=0)
    assert float(rest @ vectors.loc[AWAY]) == pytest.approx(now.descent_mean**2)
    np.testing.assert_allclose(vectors.loc[TOWARD].abs(), vectors.loc[AWAY].abs())
    for v, step in ((V_TOWARD, TOWARD), (V_AWAY, AWAY)):
        np.testing.assert_allclose(
            vectors.loc[v], now.beta2 * now.path + (1 - now.beta2) * vectors.loc[step]
        )
    projections = points["projection"][1:]
    assert numbers[["mu_ani", "sigma_ani"]].tolist() == pytest.approx(
        [projections.mean(), projections.std(ddof=0)]
    )
    assert numbers["part of C_ani in v"] == pytest.approx(
        (1 - now.beta2) * np.linalg.norm(vectors.loc[TOWARD])
    )
    assert list(points.index[points["in_u"]]) == sorted(now.descent_rows)
    feet = points[[f"f{i + 1}" for i in range(n_var)]].to_numpy()
    np.testing.assert_allclose((now.population - feet) @ C, 0, atol=1e-14)
    assert slices["distance"].iloc[-1] == pytest.approx(np.sqrt(np.mean(now.std**2)))
    for name in (PATH, TOWARD, AWAY):
        step = vectors.loc[name].to_numpy()
        end = now.mean + slices["distance"].iloc[-1] * step / np.linalg.norm(step)
        assert slices[name].iloc[-1] == pytest.approx(
            float(ellipsoid(end)) / float(ellipsoid(now.mean)) - 1
        )


def test_shifts_move_the_mean(shifts: pd.DataFrame) -> None:
    *_, state = dataclasses.replace(SMALL, function="sphere", n_gen=4).run(7)
    own = shifts.query("function == 'sphere' and generation == 4 and seed == 7").set_index("shift")[
        "change"
    ]
    toward = abs(state.descent_mean) * state.descent
    away = state.descent_mean * state.descent
    steps = {TOWARD: toward, AWAY: away, PATH: state.beta1 * state.path}
    for name, step in ((V_TOWARD, toward), (V_AWAY, away)):
        steps[name] = state.beta1 * (state.beta2 * state.path + (1 - state.beta2) * step)
    assert {*own.index} == {*steps}
    for name, step in steps.items():
        assert own[name] == pytest.approx(float(sphere(state.mean + step) / sphere(state.mean) - 1))
    assert not shifts.loc[(shifts["generation"] == 1) & (shifts["shift"] == PATH), "moved"].any()


def test_the_printed_sign_climbs_and_the_other_descends(shifts: pd.DataFrame) -> None:
    found = two_directions.signs(shifts).set_index(["function", "generation", "shift"])
    for function in ("sphere", "ellipsoid"):
        assert found.loc[(function, 1, TOWARD), "low"] > 50 > found.loc[(function, 1, AWAY), "high"]
        assert (function, 1, PATH) not in found.index


def changes(*samples: list[float]) -> pd.DataFrame:
    rows = [
        ("sphere", generation, PATH, x, True)
        for generation, sample in enumerate(samples)
        for x in sample
    ]
    return pd.DataFrame(rows, columns=["function", "generation", "shift", "change", "moved"])


def test_what_falls_is_counted_with_its_exact_interval() -> None:
    # skewed: the median and the mean differ in sign; where nothing changes, nothing falls
    table = two_directions.signs(changes([-0.01] * 90 + [5.0] * 10, [0.0] * 100))
    assert table[["runs", "mean"]].to_numpy().tolist() == [[100, 90], [100, 0]]
    # in closed form
    assert table.loc[1, ["low", "high"]].tolist() == pytest.approx([0, 100 * (1 - 0.025**0.01)])


@pytest.mark.parametrize(
    "wrong",
    [
        {"function": "plane"},
        {"seeds": []},
        {"seeds": (1, 1)},
        {"n_populations": 0},
        {"start": -0.1},
        {"profile": "small"},
        {"generation": 0},
        {"generations": (0, 2)},
        {"generations": (2, 2)},
        {"generations": ()},
        {"seed": -1},
    ],
)
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        two_directions.tables(**wrong)


def test_figures_show_all_of_a_trace_and_of_the_shares(
    trace: pd.DataFrame, shifts: pd.DataFrame
) -> None:
    signs = two_directions.signs(shifts)
    for figure in (
        two_directions.plot_orthogonality(trace),
        two_directions.plot_steps(trace),
        two_directions.plot_signs(signs),
    ):
        plt.close(figure)
        assert_sound(figure)
    assert figure.axes[0].get_xlim()[0] < 0 < 100 < figure.axes[0].get_xlim()[1], (
        "percent, whatever was found"
    )
