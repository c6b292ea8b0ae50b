"""Section 11: searches that start in local minima, on small runs and on tables
with known answers.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from figures import assert_methods_have_their_colors, assert_sound
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import EXPERIMENT, Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.reading import Reading
from leamvd_paper.studies import minima
from leamvd_paper.studies.layers import Images
from leamvd_paper.studies.minima import Tables
from leamvd_paper.studies.results import read_recorded

IMAGES = Images(n_images=40)


@pytest.mark.parametrize("function", minima.MULTIMODAL)
def test_a_valley_is_a_local_minimum_and_not_the_global_one(function: str) -> None:
    here = minima.valley(function, 3, seed=1)
    assert here.start == pytest.approx(float(here.value(here.x)))
    assert here.start > here.tolerance
    inside = (here.x > 1e-6) & (here.x < 1 - 1e-6)
    assert (
        np.abs(here.gradient(here.x)[inside]).max()
        < 1e-4 * np.abs(here.gradient(np.full(3, 0.5))).max() + 1e-5
    )
    assert here.descend(here.x)[1] == pytest.approx(here.start)
    around = np.clip(here.x + 1e-5 * np.random.default_rng(0).standard_normal((50, 3)), 0, 1)
    assert (here.value(around) >= here.start - 1e-9 * abs(here.start)).all()


def test_searches_without_a_local_minimum_have_no_values(monkeypatch) -> None:
    """On Griewank's function in 50 variables L-BFGS-B ends at the global
    minimum from everywhere.
    """
    monkeypatch.setattr(minima, "TRIES", 2)
    rows = minima.escape("griewank", 50, "random", (0.1, 0.3), seed=0).rows
    assert rows["sigma0"].tolist() == [0.1, 0.3]
    assert rows.drop(columns="sigma0").isna().all(axis=None)
    assert minima.escaped(rows).empty


def test_a_search_ends_no_higher_than_its_best_point(monkeypatch) -> None:
    monkeypatch.setattr(minima, "EARLY", 60)
    monkeypatch.setattr(minima, "BUDGET", 300)
    for method in ("lea-mvd", "sep-cma-es", "random"):
        row = minima.escape("rastrigin", 2, method, (0.1,), seed=0).rows.iloc[0]
        assert row["end"] <= row["best"] + row["tolerance"]
        assert 0 < row["evaluations"] <= 300
    for name in ("EARLY", "BUDGET"):
        monkeypatch.setattr(minima, name, 24)
    row = minima.escape("rastrigin", 2, "random", (0.3,), seed=0).rows.iloc[0]
    assert row["early"] == row["end"] < row["start"] - 1, (
        "the one generation is early, with its last evaluation"
    )


@pytest.mark.parametrize("method", ["lea-mvd", "sep-cma-es"])
def test_a_search_keeps_to_the_cube_and_early_is_what_fewer_evaluations_reach(
    method: str, monkeypatch
) -> None:
    here = minima.valley("rastrigin", 2, seed=0)
    told = []
    noted = here._replace(value=lambda X: told.append(np.array(X)) or here.value(X))
    monkeypatch.setattr(minima, "valley", lambda *_: noted)
    monkeypatch.setattr(minima.Valley, "descend", lambda _, x: (x, float(here.value(x))))
    monkeypatch.setattr(minima, "EARLY", 48)
    rows = []
    for budget in (48, 480):
        monkeypatch.setattr(minima, "BUDGET", budget)
        rows.append(minima.escape("rastrigin", 2, method, (0.3,), seed=0).rows.iloc[0])
    short, long = rows
    assert short["end"] == long["early"] > long["end"]
    points = np.concatenate(told)
    assert points.min() >= 0
    assert points.max() <= 1


def test_what_lies_within_the_tolerance_is_the_global_minimum(monkeypatch) -> None:
    ends = iter([0.0, 0.5, 2.0])
    monkeypatch.setattr(minima.Valley, "descend", lambda here, x: (x, next(ends) * here.tolerance))
    here = minima.valley("ackley", 2, seed=0)
    assert here.start == 2 * here.tolerance


def test_populations_of_searches_on_functions_are_the_papers_and_pycmas(monkeypatch) -> None:
    """Of 10 variables pycma's population has 4 + 3 ln 10 points."""
    monkeypatch.setattr(minima, "BUDGET", 50)
    for method, evaluations in (("sep-cma-es", 50), ("lea-mvd", 44), ("random", 48)):
        row = minima.escape("rastrigin", 10, method, (0.1,), seed=0).rows.iloc[0]
        assert row["evaluations"] == evaluations, method


def test_curvatures_are_those_of_the_error() -> None:
    V = IMAGES.load("float64").train
    theta = 0.1 * np.random.default_rng(0).standard_normal(49 * 2 + 51)
    values = minima.curvatures(theta, V, 2)
    assert (np.diff(values) >= 0).all()
    directions = np.linalg.qr(np.random.default_rng(1).standard_normal((len(theta), len(theta))))[0]
    h, error = 1e-3, ReconstructionObjective(V, 2)
    second = (
        error(theta + h * directions) - 2 * error(theta[None]) + error(theta - h * directions)
    ) / h**2
    assert sum(second) == pytest.approx(values.sum(), rel=1e-4), "the trace, in another basis"


def test_searches_of_an_rbm(monkeypatch) -> None:
    for name, value in {"N_HIDDEN": 2, "EPOCHS": 3, "TOLERANCE": 1e-3}.items():
        monkeypatch.setattr(minima, name, value)
    rows = minima.escape_from_training(IMAGES, "lea-mvd", 0).rows.set_index("start")
    assert rows.index.tolist() == ["cd", "l-bfgs"]
    assert rows.loc["l-bfgs", "error"] == rows.loc["cd", "without"], (
        "the second start is where L-BFGS ends"
    )
    assert (rows["best"] <= rows["error"] * (1 + 1e-6)).all()
    assert (rows["end"] <= rows["best"]).all()
    assert rows.loc["l-bfgs", "gradient"] < 0.01 * rows.loc["cd", "gradient"]
    V = IMAGES.load("float64").train
    training = Training(dtype="float64")
    trainer = ContrastiveDivergence(V, 2, settings=training, seed=layer_seed(0, 1))
    trainer.fit(3)
    theta = trainer.rbm.flat()
    objective = ReconstructionObjective(V, 2)
    error = float(objective(theta[None])[0])
    slope = (objective(theta + 1e-5 * np.eye(149)) - objective(theta - 1e-5 * np.eye(149))) / 2e-5
    curved = minima.curvatures(theta, V, 2)
    opt = training.optimizer("lea-mvd", theta, reading=EXPERIMENT, seed=0)
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, objective(X))
    expected = {
        "n_var": 149,
        "error": error,
        "gradient": np.linalg.norm(slope),
        "least": curved.min(),
        "most": curved.max(),
        "tolerance": 1e-3 * error,
        "best": opt.best_fun,
    }
    for name, value in expected.items():
        assert rows.loc["cd", name] == pytest.approx(value, rel=1e-5), name
    assert rows["without"].tolist() == pytest.approx([rows.loc["l-bfgs", "error"]] * 2, rel=2e-3)


def test_recorded_searches_of_rbms_are_of_as_many_units_and_generations() -> None:
    rows = read_recorded("local_minima", "rbms")
    n = minima.N_HIDDEN
    assert {*rows["n_var"]} == {49 * n + 49 + n}
    assert EXPERIMENT.n_gen == minima.EPOCHS, "as many as the search has generations"


def test_a_valleys_minimum_is_moved_within_the_cube_and_its_tolerance_is_of_the_functions_mean(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    moved = []
    in_unit_cube = minima.in_unit_cube
    noted = lambda name, to: moved.extend(to) or in_unit_cube(name, to)  # noqa: E731
    monkeypatch.setattr(minima, "in_unit_cube", noted)
    for seed in range(5):
        here = minima.valley("rastrigin", 20, seed)
    mean = here.value(np.random.default_rng(9).random((20_000, 20))).mean()
    assert here.tolerance == pytest.approx(1e-6 * mean, rel=0.05)
    assert float(here.value(np.array(moved[-20:])[None])[0]) == pytest.approx(0, abs=1e-9)
    assert 0.1 <= min(moved) < 0.13
    assert 0.87 < max(moved) <= 0.9


def test_searches_have_the_settings_of_their_method_and_each_first_deviation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minima, "BUDGET", 30)
    monkeypatch.setattr(minima, "EARLY", 30)
    told = []
    real = minima.optimizer

    def noted(trainer: str, x0: np.ndarray, **given: Any) -> Any:
        told.append((trainer, x0.tolist(), dict(given)))
        return real(trainer, x0, **given)

    monkeypatch.setattr(minima, "optimizer", noted)
    x = minima.valley("rastrigin", 9, 1).x.tolist()
    own = {
        "lea-mvd:exponent=2": {"reading": Reading(exponent=2.0), "limits": "clip"},
        "cma-es": {"population_size": 10},
        "sep-cma-es": {"population_size": 10},
        "random": {},
    }
    for method, settings in own.items():
        told.clear()
        rows = minima.escape("rastrigin", 9, method, (0.3, 0.1), 1).rows
        assert rows["sigma0"].tolist() == [0.3, 0.1]
        usual = settings | {"bounds": (0, 1), "n_gen": 30, "seed": 1}
        trainer = method.partition(":")[0]
        assert told == [(trainer, x, usual | {"sigma0": sigma0}) for sigma0 in (0.3, 0.1)]


def searches(ends: list[float], **columns) -> pd.DataFrame:
    table = {
        "method": "lea-mvd",
        "sigma0": 0.1,
        "n_var": 2,
        "start": 10.0,
        "tolerance": 0.5,
    }
    return pd.DataFrame(table | columns | {"end": ends})


def test_what_has_escaped() -> None:
    found = minima.escaped(searches([9.0, 9.5, 11.0, np.nan], start=[10.0, 10.0, 10.0, np.nan]))
    assert found["escaped"].tolist() == [
        True,
        False,
        False,
    ], "by more than the tolerance; nothing without a start"
    rbms = pd.DataFrame({"start": ["cd"], "without": [8.0], "end": [9.0], "tolerance": [0.1]})
    assert not minima.escaped(rbms)["escaped"].any(), (
        "lower than the start is not lower than without a search"
    )


def test_shares_and_tests_of_escapes() -> None:
    runs = pd.concat(
        [searches([1.0] * 9 + [10.0]), searches([1.0, 10.0], n_var=5), searches([1.0], sigma0=0.3)]
    )
    runs = pd.concat([runs, searches([10.0] * 4, method="random")])
    rbms = pd.DataFrame(
        {"start": ["cd", "cd", "l-bfgs"], "without": 8.0, "end": [7.0, 9.0, 9.0], "tolerance": 0.1}
    )
    tests = minima.most_escape(Tables(runs, rbms))
    assert [(effect.effect, effect.runs) for effect in tests.values()] == [
        (0.9, 10),
        (0.5, 2),
        (0.5, 2),
        (0, 1),
    ]
    assert [*tests] == [
        *("2 variables", "5 variables", "RBM after contrastive divergence", "RBM after L-BFGS")
    ]
    assert tests["2 variables"].p == pytest.approx(11 / 1024), "at least 9 of 10 heads"


def test_shares_are_shown_in_percent_from_none_to_all() -> None:
    ends = {"mean": [0.0, 1.0], "low": [0.0, 0.7], "high": [0.3, 1.0]}
    table = pd.DataFrame({"sigma0": 0.1, "method": "lea-mvd", "n_var": [2, 50]} | ends)
    figure = minima.plot_escapes(table)
    plt.close(figure)
    assert_sound(figure)
    assert_methods_have_their_colors(figure)
    line = next(line for line in figure.axes[0].lines if line.get_label() == "LEA-MVD")
    assert line.get_ydata().tolist() == [0, 100]
    guides = [drawn.get_ydata()[0] for drawn in figure.axes[0].lines if drawn is not line]
    assert guides == [50], "half of the searches"


def test_a_profile_that_is_changed_is_searched_with_what_it_was_changed_to() -> None:
    planned = minima.tables.planned(
        "quick", functions=("ackley",), sizes=(3,), seeds=(5,), rbm_seeds=(7,)
    )
    methods = minima.QUICK.methods
    assert [*planned["runs"][1]] == [("ackley", 3, method, 5) for method in methods]
    assert [*planned["rbms"][1]] == [("lea-mvd", 7)]
    with pytest.raises(TypeError, match="seed"):
        minima.tables.planned("quick", seed=(1,))
