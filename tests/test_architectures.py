"""Section 11: networks of any kind, and the recommended reading, on small runs and on tables with
known answers.
"""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier

from leamvd import Reading
from leamvd.networks.dbn import fitted
from leamvd_paper.studies import architectures
from leamvd_paper.studies.architectures import ACTIVATIONS, MLP, NETWORKS, CrossEntropy
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
