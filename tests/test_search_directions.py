"""Runs taken apart: what is recorded agrees with the states it comes from, and with the algorithm's own rules."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.experiments import search_directions
from leamvd.experiments.search_directions import SHIFTS, Plan, ellipsoid, sphere

SMALL = Plan(n_var=6, n_gen=25, seeds=(0, 1), n_populations=30)


@pytest.fixture(scope="module")
def trace() -> pd.DataFrame:
    return search_directions.trace(SMALL)


@pytest.fixture(scope="module")
def resets() -> pd.DataFrame:
    return search_directions.resets(dataclasses.replace(SMALL, n_var=40, n_gen=35))


@pytest.fixture(scope="module")
def shifts() -> pd.DataFrame:
    return search_directions.shifts(SMALL, [sphere, ellipsoid], [1, 4])


class Tilted:
    """A reader's own objective: a callable without a name, whose values are negative near its optimum."""

    def __call__(self, X: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return np.asarray(((X - 1) ** 2).sum(axis=1) - 1e6)


def test_a_plan_takes_changes() -> None:
    assert search_directions.plan("quick", seeds=[3]) == dataclasses.replace(Plan(), seeds=(3,))
    assert len(search_directions.plan("paper").seeds) == 30


def test_parameters_are_the_fields_of_a_plan_that_a_notebook_sets() -> None:
    namespace = {"objective": sphere, "n_var": 7, "n_gen": None, "seed": 1, "generation": 4, "np": np, "start": 0.0}
    changes = search_directions.parameters(namespace)
    assert changes == {"objective": sphere, "n_var": 7, "start": 0.0}
    assert search_directions.plan("quick", **changes) == Plan(objective=sphere, n_var=7, start=0.0)


def test_any_callable_is_searched_and_shown() -> None:
    plan = dataclasses.replace(SMALL, objective=Tilted(), n_populations=20)
    assert (plan.label, SMALL.label) == ("Tilted, n = 6", "ellipsoid, n = 6")
    runs = search_directions.trace(plan)
    assert (runs.groupby("seed")["best"].last() < runs.groupby("seed")["best"].first()).all()
    scene = search_directions.scene(plan, 2, 4, seed=2)
    assert scene.label == "Tilted, n = 2, generation 4"
    # the values are negative: the change is relative to their size, so that lower stays lower
    toward = scene.slices.query("direction == '$C_{ani}$, toward the best'")["change"]
    assert toward.iloc[-1] < 0
    table = search_directions.signs(search_directions.shifts(plan, [plan.objective], [1]))
    verdicts = table.set_index(["function", "shift"])["verdict"]
    assert (verdicts["Tilted", SHIFTS[0]], verdicts["Tilted", SHIFTS[1]]) == ("descends", "climbs")


def test_trace_follows_the_rules_of_beta(trace: pd.DataFrame) -> None:
    for _, own in trace.groupby("seed"):
        before = own.iloc[0]
        assert (before["beta1"], before["beta2"], before["stagnation"]) == (1.0, 0.9, 0)
        for _, row in own.iloc[1:].iterrows():
            one = before["beta1"]
            if row["best"] < before["best"]:
                expected = min(3, 1.1 * one) if one > 1 else 1.4 * one, min(1, before["beta2"] + 0.2)
            else:
                expected = 0.8 * one if one < 1 else 0.5 * one, max(0, before["beta2"] - 0.1)
            assert row["success"] == (row["best"] < before["best"])
            assert (row["beta1"], row["beta2"]) == pytest.approx(expected)
            before = row
    assert not trace["reset"].any()


def test_trace_measures_orthogonality(trace: pd.DataFrame) -> None:
    later = trace[trace["generation"] > 2].dropna(subset="hat_path")
    assert len(later) > 40
    assert later["hat_path"].abs().max() < 1e-9
    assert later["descent_path"].abs().max() > 0.01
    assert trace["descent_length"].iloc[0] == pytest.approx(0.1)
    assert (trace["descent_length"] < 1).all()
    full = trace[trace["beta2"] == 1]
    assert (full["descent_share"] == 0).all()


def test_trace_agrees_with_the_states() -> None:
    states = [opt.state for opt in SMALL.run(1)]
    own = search_directions.trace(SMALL).query("seed == 1")
    for state, row in zip(states, own.to_dict("records"), strict=True):
        assert row["best"] == state.fitness[0]
        assert row["std"] == pytest.approx(np.sqrt(np.mean(state.std**2)))
        assert row["path_length"] == pytest.approx(np.linalg.norm(state.path))
        if state.path.any():
            cosine = state.path @ state.descent / np.linalg.norm(state.path) / np.linalg.norm(state.descent)
            assert row["descent_path"] == pytest.approx(cosine, abs=1e-9)
            parts = (
                np.linalg.norm(state.beta2 * state.path),
                np.linalg.norm((1 - state.beta2) * state.descent_mean * state.descent),
            )
            assert row["descent_share"] == pytest.approx(parts[1] / sum(parts))


def test_resets_happen_after_ten_failures_and_to_their_reading(resets: pd.DataFrame) -> None:
    for (reading, _), own in resets.groupby(["reading", "seed"]):
        marks = own[own["reset"]]
        assert (own["relative"].iloc[0] == 1) & own["relative"].is_monotonic_decreasing
        if reading == "off":
            assert marks.empty
            continue
        assert len(marks)
        assert (marks["stagnation"] == 0).all() & (marks["beta1"] == 0.1).all()
        first = marks.index[0]
        assert list(own.loc[first - 9 : first - 1, "stagnation"]) == list(range(1, 10))
        assert marks["std"].to_numpy() == pytest.approx(1.0 if reading == "1" else own["std"].iloc[0])
    # with the printed reset these runs never improve on their start; without it they do
    table = search_directions.stuck(resets)
    assert table.loc["1", "stuck"] == 2
    assert table.loc["off", "stuck"] == 0
    assert table.loc["off", "final"] < 1
    assert list(table.loc["1", ["runs", "after"]]) == [2, 1.0]
    assert np.isnan(table.loc["off", "before"])


def test_start_at_the_optimum_itself() -> None:
    plan = dataclasses.replace(SMALL, seeds=(0,), start=0.0, n_gen=12)
    assert (search_directions.resets(plan)["relative"] == 1).all()


@pytest.mark.parametrize("n_var", [2, 3])
def test_scene(n_var: int) -> None:
    scene = search_directions.scene(SMALL, n_var, generation=4, seed=2)
    small = dataclasses.replace(SMALL, n_var=n_var, n_gen=4)
    *_, earlier, now = [opt.state for opt in small.run(2)]
    names = [f"x{i + 1}" for i in range(n_var)]
    v = scene.vectors
    assert list(v.columns) == names
    C = v.loc["C_ani"].to_numpy()
    np.testing.assert_array_equal(C, now.descent)
    np.testing.assert_allclose(C, 0.1 * v.loc["C_hat"] + 0.9 * earlier.descent, atol=1e-14)
    assert np.linalg.norm(v.loc["C_hat"]) == pytest.approx(1)
    assert float(v.loc["C_hat"] @ v.loc["P"]) == pytest.approx(0, abs=1e-12)
    # the printed step points from the best to the rest, whatever the sign of C_ani; ours the other way
    rest = (now.population[1:] - now.population[0]).mean(axis=0)
    assert float(rest @ v.loc["away"]) == pytest.approx(now.descent_mean**2)
    np.testing.assert_allclose(np.abs(v.loc["toward"]), np.abs(v.loc["away"]))
    for step in ("toward", "away"):
        np.testing.assert_allclose(v.loc[f"v {step}"], now.beta2 * now.path + (1 - now.beta2) * v.loc[step])
    points = scene.points
    length = np.sqrt((v**2).sum(axis=1))
    assert scene.numbers.to_dict() == pytest.approx(
        {
            "mu_ani": points["projection"][1:].mean(),
            "sigma_ani": points["projection"][1:].std(ddof=0),
            "beta_2": now.beta2,
            "norm of sigma": np.linalg.norm(now.std),
            "norm of P": length["P"],
            "norm of C_ani": length["C_ani"],
            "step along C_ani": length["toward"],
            "part of P in v": now.beta2 * length["P"],
            "part of C_ani in v": (1 - now.beta2) * length["toward"],
        }
    )
    assert scene.label == f"ellipsoid, n = {n_var}, generation 4"
    assert list(points.index[points["in_u"]]) == sorted(now.descent_rows)
    feet = points[[name.replace("x", "f") for name in names]].to_numpy()
    np.testing.assert_allclose((now.population - feet) @ C, 0, atol=1e-14)
    for direction, own in scene.slices.groupby("direction"):
        step = v.loc[search_directions.SLICES[str(direction)]].to_numpy()
        end = now.mean + own["distance"].iloc[-1] * step / np.linalg.norm(step)
        assert own["change"].iloc[-1] == pytest.approx(float(ellipsoid(end)) / float(ellipsoid(now.mean)) - 1)


def test_shifts_move_the_mean(shifts: pd.DataFrame) -> None:
    plan = dataclasses.replace(SMALL, objective=sphere, n_gen=4)
    state = [opt.state for opt in plan.run(7)][-1]
    own = shifts.query("function == 'sphere' and generation == 4 and seed == 7").set_index("shift")["change"]
    steps = {
        SHIFTS[0]: abs(state.descent_mean) * state.descent,
        SHIFTS[1]: state.descent_mean * state.descent,
        SHIFTS[2]: state.beta1 * state.path,
    }
    for sign, name in ((abs(state.descent_mean), SHIFTS[3]), (state.descent_mean, SHIFTS[4])):
        steps[name] = state.beta1 * (state.beta2 * state.path + (1 - state.beta2) * sign * state.descent)
    for name, step in steps.items():
        expected = float(np.sum((state.mean + step) ** 2) / np.sum(state.mean**2) - 1)
        assert own[name] == pytest.approx(expected)
    first = shifts.query("generation == 1")
    assert not first.loc[first["shift"] == "P", "moved"].any()
    assert len(shifts) == 2 * 30 * 2 * len(SHIFTS)


def test_signs_of_the_steps(shifts: pd.DataFrame) -> None:
    # a sign test of 30 populations each; the two readings are opposite in the first generation
    table = search_directions.signs(shifts)
    verdicts = table.set_index(["function", "generation", "shift"])["verdict"]
    for function in ("sphere", "ellipsoid"):
        assert verdicts[function, 1, SHIFTS[0]] == "descends"
        assert verdicts[function, 1, SHIFTS[1]] == "climbs"
        assert (function, 1, "P") not in verdicts.index


def changes(*samples: list[float]) -> pd.DataFrame:
    """Return a table as `shifts` does, of one sample per generation."""
    rows = [("sphere", generation, "P", x, True) for generation, sample in enumerate(samples) for x in sample]
    return pd.DataFrame(rows, columns=["function", "generation", "shift", "change", "moved"])


def test_sign_test_is_undecided_on_noise() -> None:
    rng = np.random.default_rng(1)
    table = search_directions.signs(changes(*rng.standard_normal((20, 100)).tolist()))
    assert (table["verdict"] == "undecided").all()  # false alarm at most once in 100
    assert (table["populations"] == 100).all()


def test_sign_test_holds_the_false_alarms_of_the_whole_table() -> None:
    sample = [-1.0] * 64 + [1.0] * 36  # p = 0.0066: below 0.01 alone, above 0.01 / 20 among twenty
    alone, among = search_directions.signs(changes(sample)), search_directions.signs(changes(*[sample] * 20))
    assert alone["p"].tolist() == pytest.approx([stats.binomtest(64, 100).pvalue])
    assert alone["verdict"].tolist() == ["descends"]
    assert set(among["verdict"]) == {"undecided"}


def test_sign_test_counts_what_falls() -> None:
    # skewed: the median and the mean differ in sign; where nothing changes, nothing descends and nothing climbs
    table = search_directions.signs(changes([-0.01] * 90 + [5.0] * 10, [0.0] * 100, [0.0] * 40 + [2.0] * 60))
    assert table["lower"].tolist() == [90, 0, 0]
    assert table["median change"].tolist() == pytest.approx([-1, 0, 200])
    ends = table[["low", "high"]].to_numpy().tolist()
    assert ends[1] == pytest.approx([0, 100 * (1 - 0.025**0.01)])  # Clopper and Pearson, in closed form
    assert ends[0][0] < 90 < ends[0][1]
    assert table["verdict"].tolist() == ["descends", "undecided", "climbs"]
    assert table["p"].tolist() == pytest.approx([stats.binomtest(90, 100).pvalue, 1, 2 * 0.5**60])


def test_float32_runs() -> None:
    plan = dataclasses.replace(SMALL, dtype="float32", n_gen=5)
    assert search_directions.trace(plan)["hat_path"].abs().max() < 1e-5
    assert search_directions.scene(plan, 2, 3, 0).vectors.loc["P"].dtype == np.float64
