"""The objective and contrastive divergence beside their references, on networks that take milliseconds."""

import math
from pathlib import Path

import numpy as np
import pytest

from leamvd._support.threads import thread_count
from leamvd.bench import networks
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.paper import datasets


def test_the_direct_expression_is_the_objective() -> None:
    V, population = networks._random(300, 12), networks._population(12, 7)
    X = np.stack([rbm.flat() for rbm in population])
    wanted = ReconstructionObjective(V.astype(np.float64), 7)(X)
    np.testing.assert_allclose([networks.direct(rbm, V) for rbm in population], wanted, rtol=1e-4)


def test_row_of_an_objective() -> None:
    (row,) = networks.objective(20, 30, 400, "numpy", "float32", threads=1, rounds=3)
    assert row["flop"] == 4 * 20 * 30 * 400 * 24
    assert row["device"] == "cpu"
    for name in ("seconds", "product_seconds", "direct_seconds"):
        assert 0 < row[name] < 60
    assert row["fraction_of_products"] == pytest.approx(row["product_seconds"] / row["seconds"], rel=3)
    assert row["direct_seconds"] > row["product_seconds"], "the expression contains the products"


def test_references_on_some_individuals_are_scaled_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock ticks once a call of the expression, so its seconds say how many individuals it stands for."""
    monkeypatch.setattr(networks, "clocked", lambda work: lambda: float(len(work() or [])))
    monkeypatch.setattr(ReconstructionObjective, "__call__", lambda self, X: [None] * 2 * len(X))
    for flop, individuals in ((5 * 4 * 20 * 30 * 400, 5), (1.0, 2), (1e12, 24)):
        monkeypatch.setattr(networks, "_REFERENCE_FLOP", flop)
        calls: list[int] = []
        monkeypatch.setattr(networks, "direct", lambda rbm, V, calls=calls: calls.append(1))
        (row,) = networks.objective(20, 30, 400, "numpy", "float32", threads=1, rounds=1)
        assert len(calls) == 2 * individuals
        assert row["direct_seconds"] == pytest.approx(24)
        assert row["speedup_over_direct"] == pytest.approx(0.5)


def test_five_products_take_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    shapes = []

    def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        assert (len(a), b.shape[1]) == out.shape
        shapes.append((*a.shape, b.shape[1]))

    monkeypatch.setattr(networks.np, "matmul", matmul)
    networks._five_products(np.ones((40, 6), np.float32), 3, 10)
    assert shapes == 4 * [(10, 6, 3), (6, 10, 3), (10, 3, 6), (10, 6, 3), (6, 10, 3)]


def test_rows_of_training() -> None:
    rows = networks.training(300, 20, 10, 100, threads=2, rounds=3)
    trainers = ["leamvd", "scikit-learn"]
    assert [(row["trainer"], row["threads"]) for row in rows] == [(name, n) for n in (1, 2) for name in trainers]
    for own, other in (rows[:2], rows[2:]):
        assert own["product_seconds"] == other["product_seconds"]
        assert other["ratio_to_sklearn"] == 1
        assert own["ratio_to_sklearn"] == pytest.approx(other["seconds"] / own["seconds"], rel=4)
    assert all(row["product_seconds"] < row["seconds"] for row in rows[:2])


def test_a_limit_holds_while_the_work_runs_and_no_longer() -> None:
    from threadpoolctl import threadpool_info

    def blas() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before, during = blas(), []
    networks._limited(lambda: during.extend(blas()), 1)()
    assert during == [1] * len(before)
    assert blas() == before


def test_rows_of_the_probe() -> None:
    rows = networks.probe("digits", 8, 20, 2, seed=3)
    assert [row["trainer"] for row in rows] == ["leamvd", "leamvd CD-1", "scikit-learn"]
    for row in rows:
        assert row["n_images"] == 1437
        assert 0.2 < row["test_accuracy"] <= 1, "above chance, which is a tenth"
        assert row["train_accuracy"] > 0.2
    assert networks.probe("digits", 8, 20, 2, seed=3) == rows


def test_the_probe_is_of_the_features_that_were_learned() -> None:
    from sklearn.linear_model import RidgeClassifier

    data = datasets.load("digits", side=8)
    settings = {"persistent": True, "momentum": 0, "final_momentum": 0, "weight_decay": 0, "weight_scale": 0.01}
    owns = ContrastiveDivergence(data.train, 20, seed=3, **settings), ContrastiveDivergence(data.train, 20, seed=3)
    for own, row in zip(owns, networks.probe("digits", 8, 20, 2, seed=3), strict=False):
        for _ in range(2):
            rbm = own.epoch()
        train, test = (rbm.hidden_given_visible(V) for V in (data.train, data.test))
        accuracy = RidgeClassifier().fit(train, data.train_labels).score(test, data.test_labels)
        assert row["test_accuracy"] == accuracy


def test_the_same_algorithm_learns_as_well_as_scikit_learns() -> None:
    """On four bars of four pixels, exact log-likelihoods; after 60 epochs they scatter by 0.9 from seed to seed."""
    from sklearn.neural_network import BernoulliRBM

    found = []
    for seed in range(4):
        V = np.repeat(np.random.default_rng(seed).random((400, 4)) < 0.5, 4, axis=1).astype(float)
        own = networks.as_scikit_learn(V, 8, 20, seed=seed)
        for _ in range(60):
            rbm = own.epoch()
        other = BernoulliRBM(8, learning_rate=0.1, batch_size=20, n_iter=60, random_state=seed).fit(V)
        theirs = RBM(other.components_.T.copy(), other.intercept_visible_, other.intercept_hidden_)
        found.append((rbm.log_likelihood(V), theirs.log_likelihood(V)))
    assert np.min(found) > -0.7 * 16 * np.log(2), "independent pixels have -16 log 2"
    assert abs(np.diff(np.mean(found, axis=0))[0]) < 1.5


@pytest.mark.parametrize(("layer", "n_visible", "n_hidden"), [(1, 49, 30), (2, 30, 30), (3, 30, 120)])
def test_row_of_a_generation(layer: int, n_visible: int, n_hidden: int) -> None:
    (row,) = networks.split("mnist-7x7", "quick", layer, "digits", 50, threads=1, rounds=3)
    assert row["n"] == n_parameters(n_visible, n_hidden)
    assert row["n_images"] == 50
    assert row["optimizer_seconds"] > 0
    assert row["objective_seconds"] > 0


def test_rows_of_the_paper_profile_cover_what_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEAMVD_DATA_DIR", str(tmp_path))
    rows = networks.rows("paper")
    shapes = {(r.arguments["n_visible"], r.arguments["n_hidden"]) for r in rows if r.table == "objectives"}
    assert shapes == {(784, 500), (500, 500), (500, 2000), (49, 30), (30, 30), (30, 120)}
    numpy = [r for r in rows if r.arguments.get("backend") == "numpy"]
    assert {r.threads for r in numpy} == {1, min(2, thread_count(None))}
    assert {(r.arguments["n_images"], r.arguments["rounds"]) for r in numpy} == {(10_000, 7)}
    assert sum(r.table == "probe" for r in rows) == 5
    assert sum(r.table == "split" for r in rows) == 6
    (training,) = (r.arguments for r in rows if r.table == "training")
    assert (training["n_images"], training["n_visible"], training["n_hidden"]) == (60_000, 784, 500)
    assert all(math.isfinite(r.limit) for r in rows)


def test_mnist_is_taken_where_it_is_and_never_fetched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("LEAMVD_DATA_DIR", str(tmp_path))
    assert networks._dataset("paper") == "digits"
    for name in datasets.MNIST_SHA256:
        assert networks._dataset("paper") == "digits", "a part is not enough"
        (tmp_path / name).touch()
    assert networks._dataset("paper") == "mnist"
    assert networks._dataset("quick") == "digits"
