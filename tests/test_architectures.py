"""Section 11: networks of any kind, and the recommended reading, on small runs and on tables with
known answers.
"""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_softmax
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

from leamvd import Reading, minimize
from leamvd.networks.dbn import fitted
from leamvd_paper.studies import architectures
from leamvd_paper.studies.architectures import ACTIVATIONS, MLP, NETWORKS, CrossEntropy
from leamvd_paper.studies.statistics import interval
from leamvd_paper.studies.study_methods import Method

RNG = np.random.default_rng(0)
V, LABELS = RNG.random((30, 6)), RNG.integers(0, 3, 30)


@pytest.mark.parametrize("hidden", NETWORKS.values())
def test_the_loss_is_that_of_a_network_in_plain_numpy(hidden) -> None:
    objective = CrossEntropy(V, LABELS, hidden, width=4)
    X = RNG.standard_normal((3, objective.n_var))
    for x, loss in zip(X, objective(X), strict=True):
        A, rest = V, x
        for i, (n_in, n_out) in enumerate(zip(objective.sizes, objective.sizes[1:], strict=False)):
            W, b, rest = np.split(rest, [n_in * n_out, (n_in + 1) * n_out])
            A = A @ W.reshape(n_in, n_out) + b
            A = ACTIVATIONS[hidden[i]](A) if i < len(hidden) else A
        assert not rest.size
        P = np.exp(A) / np.exp(A).sum(axis=1, keepdims=True)
        assert loss == pytest.approx(log_loss(LABELS, P))
        assert objective.wrong(x) == (P.argmax(axis=1) != LABELS).mean()


def test_activations() -> None:
    A = np.array([-2.0, 0.0, 0.5])
    assert {name: f(A).tolist() for name, f in ACTIVATIONS.items() if name != "tanh"} == {
        "relu": [0, 0, 0.5],
        "step": [0, 0, 1],
        "sign": [-1, -1, 1],
    }


def test_start_weights_are_uniform_and_biases_zero() -> None:
    objective = CrossEntropy(V, LABELS, ("relu",), width=50)
    x0 = objective.start(seed=3)
    assert np.array_equal(x0, objective.start(seed=3))
    W, b = np.split(x0[: 7 * 50], [6 * 50])
    assert not b.any()
    assert np.abs(W).max() <= np.sqrt(6 / 56)
    assert W.std() == pytest.approx(np.sqrt(6 / 56) / np.sqrt(3), rel=0.1)
    W, b = np.split(x0[7 * 50 :], [50 * 3])
    assert not b.any()
    assert 0.9 * np.sqrt(6 / 53) < np.abs(W).max() <= np.sqrt(6 / 53)


def test_images_are_all_digits_once() -> None:
    data, digits = architectures.images(), load_digits()
    assert (len(data.train), len(data.test)) == (1297, 500)
    both = np.c_[np.r_[data.train, data.test] * 16, np.r_[data.train_labels, data.test_labels]]
    assert sorted(map(tuple, both)) == sorted(map(tuple, np.c_[digits.data, digits.target]))


def test_trainings(tmp_path, monkeypatch) -> None:
    settings = architectures.Settings(
        methods=("lea-mvd", "random"),
        seeds=(0,),
        networks=("tangents", "steps"),
        width=5,
        budget=96,
    )
    monkeypatch.setitem(architectures.PROFILES, "quick", settings)
    runs = architectures.tables("quick", tmp_path).runs
    assert set(runs.loc[runs["network"] == "tangents", "method"]) == {"lea-mvd", "random", MLP}
    assert set(runs.loc[runs["network"] == "steps", "method"]) == {
        "lea-mvd",
        "random",
    }, "steps have no gradient"
    first, last = (runs[runs["mark"] == mark].set_index(["network", "method"]) for mark in (0, 96))
    assert (last["loss"] <= first["loss"]).all()
    assert (last.drop(MLP, level="method")["evaluations"] <= 96).all()
    assert (first.groupby("network")["loss"].nunique() == 1).all(), (
        "all methods have the same start"
    )
    assert last.loc[("tangents", MLP), "test_error"] < 0.2
    data = architectures.images()
    for part in ("train", "test"):
        V, labels = getattr(data, part), getattr(data, f"{part}_labels")
        network = CrossEntropy(V, labels, NETWORKS["tangents"], width=5)
        begun = network.wrong(network.start(seed=0))
        assert first.loc[("tangents", "random"), f"{part}_error"] == begun


def test_gradients_are_scikit_learns_without_weight_decay() -> None:
    objective = CrossEntropy(V, LABELS, ("tanh",), width=4)
    x, epochs = architectures.by_gradients(objective, seed=1)
    known = MLPClassifier((4,), activation="tanh", alpha=0, random_state=1)
    fitted(known, V, LABELS)
    assert epochs == known.n_iter_
    assert objective(x[None]) == pytest.approx(log_loss(LABELS, known.predict_proba(V)), rel=1e-9)


def test_what_is_wrong_and_whether_networks_learn() -> None:
    rows = [
        (network, method, seed, mark, error)
        for network, ends in {"a": (0.8, 0.2), "b": (0.8, 0.6)}.items()
        for method in ("lea-mvd", "random")
        for seed in range(6)
        for mark, error in enumerate(ends)
    ]
    runs = pd.DataFrame(rows, columns=["network", "method", "seed", "mark", "test_error"])
    found = architectures.wrong(runs).set_index(["network", "method"])["mean"]
    assert found["a"].to_dict() == pytest.approx({"start": 80, "lea-mvd": 20, "random": 20})
    tests = architectures.learns(runs)
    assert [effect.effect for effect in tests.values()] == pytest.approx([0.25, 0.75])
    assert tests["a"].p == pytest.approx(2**-6)
    assert tests["b"].p == 1


def test_scores_weigh_problems_and_marks_equally() -> None:
    best = {("x", 1): (1.0, 4.0), ("x", 10): (1.0, 4.0), ("y", 1): (100.0, 4.0)}
    rows = [
        (p, m, "ab"[i], s, v)
        for (p, m), own in best.items()
        for i, v in enumerate(own)
        for s in range(len(p) + 1)
    ]
    found = architectures.scores(
        pd.DataFrame(rows, columns=["problem", "mark", "method", "seed", "best"])
    )
    assert found.to_dict() == pytest.approx(
        {"a": (1 / 4 / 4 * 25) ** (1 / 6), "b": (16 / 25) ** (1 / 6)}
    )
    assert found.is_monotonic_increasing


def test_every_problem_is_judged_by_the_same_methods_and_by_the_end_of_its_searches() -> None:
    table = architectures.judged()
    names = {*architectures.JUDGED.methods, architectures.RECOMMENDED} - {architectures.FORMER}
    for problem, rows in table.groupby("problem"):
        searches = rows.groupby("method")["seed"].nunique()
        assert {*searches.index} == names, problem
        assert searches.nunique() == 1, problem
        assert not rows.duplicated(["mark", "method", "seed"]).any(), problem
        assert rows["best"].notna().all(), problem
    network = table[table["problem"].str.startswith("network")]
    assert {*network["mark"]} == {architectures.JUDGED_NETWORK.budget}


def test_the_recommended_reading_was_the_best_candidate() -> None:
    assert Method.parse(architectures.RECOMMENDED).reading(Reading()) == Reading.recommended()
    assert architectures.RECOMMENDED in architectures.AGAIN.methods


def test_a_loss_of_large_outputs_is_that_of_double_precision() -> None:
    """Outputs are hundreds apart, whose exponentials single precision does not hold."""
    objective = CrossEntropy(V.astype(np.float32), LABELS, ("relu",), width=4)
    X = 40 * RNG.standard_normal((5, objective.n_var))
    outputs = CrossEntropy(V, LABELS, ("relu",), width=4).outputs(X)
    assert np.ptp(outputs, axis=1).max() > 500
    P = log_softmax(outputs, axis=1)
    losses = -P[:, LABELS, np.arange(len(LABELS))].mean(axis=1)
    found = objective(X)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, losses, rtol=1e-5)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        (
            "lea-mvd:population_size=8+sigma0=0.3+n_elite=2",
            {"sigma0": 0.3, "n_elite": 2, "population_size": 8},
        ),
        ("random", {"method": "random", "sigma0": 0.1}),
    ],
)
def test_a_search_is_minimizes_and_its_row_is_of_what_it_finds(method: str, options: Any) -> None:
    """After 60 evaluations, which end before a population of 24 is whole."""
    data = architectures.images()
    train = CrossEntropy(data.train, data.train_labels, ("tanh", "step"), width=3)
    end = minimize(train, train.start(2), vectorized=True, max_nfev=60, n_gen=60, seed=2, **options)
    rows = architectures.learn("tangents, steps", method, 2, 60, 3).rows
    assert rows["mark"].tolist() == [0, 60]
    assert rows["evaluations"].tolist() == [0, end.nfev]
    test = CrossEntropy(data.test, data.test_labels, ("tanh", "step"), width=3)
    for row, x in zip(rows.to_dict("records"), (train.start(2), end.x), strict=True):
        assert row["loss"] == train(x[None])
        assert row["train_error"] == train.wrong(x)
        assert row["test_error"] == test.wrong(x)


def test_plans_have_each_networks_methods_budget_and_width() -> None:
    settings = architectures.Settings(width=7, budget=99, seeds=(3, 1), methods=("random",))
    for gradients in (True, False):
        columns, calls = architectures.plan(settings, gradients=gradients)["runs"]
        assert columns == ["network", "method", "seed"]
        smooth = {"rectified linear", "tangents"} if gradients else set()
        expected = {(network, "random", seed) for network in NETWORKS for seed in (3, 1)}
        expected |= {(network, MLP, seed) for network in smooth for seed in (3, 1)}
        assert {*calls} == expected
        for (network, method, seed), call in calls.items():
            assert call.arguments == {
                "network": network,
                "method": method,
                "seed": seed,
                "budget": 99,
                "width": 7,
            }


def test_the_network_by_which_the_reading_is_judged_has_as_many_weights_as_its_name_says() -> None:
    (hidden,) = (NETWORKS[name] for name in architectures.JUDGED_NETWORK.networks)
    data = architectures.images()
    width = architectures.JUDGED_NETWORK.width
    network = CrossEntropy(data.train, data.train_labels, hidden, width)
    problems = architectures.judged()["problem"]
    assert {*problems[problems.str.startswith("network")]} == {
        f"network, {network.n_var:,} weights"
    }
    assert not problems.str.contains("bbob").any()


def test_intervals_of_what_is_wrong_are_over_seeds_and_the_start_is_that_of_one_method() -> None:
    errors = {0: (0.8, 0.9, 0.7), 10: (0.1, 0.4, 0.1)}
    rows = []
    for mark in (10, 0):
        for seed, method in product((2, 0, 1), ("random", "lea-mvd")):
            rows.append(("a", method, seed, mark, errors[mark][seed]))
    runs = pd.DataFrame(rows, columns=["network", "method", "seed", "mark", "test_error"])
    found = architectures.wrong(runs).set_index("method")
    assert {*found["runs"]} == {3}
    for method, mark in (("start", 0), ("random", 10), ("lea-mvd", 10)):
        ends = interval(pd.Series(errors[mark]) * 100)
        assert found.loc[method, ["mean", "low", "high"]].tolist() == pytest.approx([*ends])
    (effect,) = architectures.learns(runs).values()
    ratios = [1 / 8, 4 / 9, 1 / 7]
    assert effect.effect == pytest.approx(np.prod(ratios) ** (1 / 3))
    assert (effect.upper, effect.p) == (0.5, 1 / 8)


def test_markers_are_those_of_the_trainer_and_filled_where_settings_are_the_usual_ones() -> None:
    looks = {name: architectures._look(name) for name in architectures.MARKERS}
    assert len({look["marker"] for look in looks.values()}) == len(looks)
    assert len({look["color"] for look in looks.values()}) == len(looks)
    assert {look["fillstyle"] for look in looks.values()} == {"full"}
    other = architectures._look(architectures.FORMER)
    assert (other["marker"], other["fillstyle"]) == (looks["lea-mvd"]["marker"], "none")
