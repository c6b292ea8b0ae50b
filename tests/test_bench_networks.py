"""The objective and contrastive divergence beside their references, on networks that take milliseconds."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from leamvd._support.threads import thread_count
from leamvd.bench import baselines, networks
from leamvd.experiments import studies
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.optimizers.lea_mvd import LEAMVD


def test_the_direct_expression_is_the_objective() -> None:
    V, population = networks._random(300, 12), networks._population(12, 7)
    X = np.stack([rbm.flat() for rbm in population])
    wanted = ReconstructionObjective(V.astype(np.float64), 7)(X)
    np.testing.assert_allclose([networks.direct(rbm, V) for rbm in population], wanted, rtol=1e-4)


def test_row_of_an_objective() -> None:
    (row,) = networks.objectives(20, 30, 400, "numpy", "float32", threads=1, rounds=3)
    assert row["flop"] == 4 * 20 * 30 * 400 * 24
    assert row["device"] == "cpu"
    for name in ("seconds", "product_seconds", "direct_seconds"):
        assert 0 < row[name] < 60
    assert row["fraction_of_products"] == pytest.approx(row["product_seconds"] / row["seconds"], rel=3)
    assert row["direct_seconds"] > row["product_seconds"], "the expression contains the products"


def test_what_is_computed_of_some_individuals_is_scaled_to_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second passes for each individual, so that seconds say how many of them a row stands for: always 24."""
    counts: dict[str, list[int]] = {"objective": [], "direct": [], "products": []}

    def evaluate(_: object, X: np.ndarray) -> None:
        counts["objective"].append(len(X))

    def clocked(work: Callable[[], object]) -> Callable[[], float]:
        def seconds() -> float:
            for count in counts.values():
                count.clear()
            work()
            return float(sum(counts["objective"]) + len(counts["direct"]) + len(counts["products"]) / 2)

        return seconds

    monkeypatch.setattr(networks, "clocked", clocked)
    monkeypatch.setattr(ReconstructionObjective, "__call__", evaluate)
    monkeypatch.setattr(networks, "direct", lambda rbm, V: counts["direct"].append(1))
    monkeypatch.setattr(networks.np, "matmul", lambda a, b, out: counts["products"].append(1))
    each = 4 * 20 * 30 * 400
    for limit, reference in ((each, 5 * each), (1e18, 1.0), (each * 24, 1e12)):
        monkeypatch.setattr(networks, "_FLOP", limit)
        monkeypatch.setattr(networks, "_REFERENCE_FLOP", reference)
        (row,) = networks.objectives(20, 30, 400, "numpy", "float32", threads=1, rounds=1)
        assert sum(counts["objective"]) in (0, 4, 24)
        assert [row[name] for name in ("seconds", "product_seconds", "direct_seconds")] == [24, 24, 24]
        assert (row["fraction_of_products"], row["speedup_over_direct"]) == (1, 1)


def test_everything_that_is_timed_is_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        seen.update(array.dtype.name for array in (a, b, out))

    def direct(rbm: RBM, V: np.ndarray) -> None:
        seen.update(array.dtype.name for array in (*rbm, V))

    def evaluate(self: ReconstructionObjective, X: np.ndarray) -> None:
        seen.add(X.dtype.name)

    monkeypatch.setattr(networks.np, "matmul", matmul)
    monkeypatch.setattr(networks, "direct", direct)
    monkeypatch.setattr(ReconstructionObjective, "__call__", evaluate)
    networks.objectives(20, 30, 400, "numpy", "float32", threads=1, rounds=1)
    networks._five_products(networks._random(40, 6), 3, 10)
    assert seen == {"float32"}


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


def test_references_of_training_run_on_as_many_blas_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    from threadpoolctl import threadpool_info

    def blas() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before, during = blas(), []
    monkeypatch.setattr(networks, "_five_products", lambda *_: during.append(blas()))
    networks.training(100, 8, 4, 50, threads=2, rounds=1)
    one, two = during[:2]
    assert one == [1] * len(before)
    assert two == [min(2, count) for count in before]
    assert blas() == before


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


def test_row_of_a_generation() -> None:
    (row,) = networks.split("mnist-7x7", 3, 50, threads=1, rounds=3)
    assert row["n"] == n_parameters(30, 120)
    for name in ("optimizer", "objective"):
        assert 0 < row[f"{name}_low"] <= row[f"{name}_seconds"] <= row[f"{name}_high"]
    assert set(row) <= set(networks.COLUMNS["split"])


def test_a_generation_is_the_median_of_rounds_without_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first generation, which may compile, takes a hundred times as long as the others."""
    now = [0.0]

    def ask(self: LEAMVD) -> np.ndarray:
        calls.append("ask")
        now[0] += 100.0 if len(calls) == 1 else 1.0
        return np.zeros((2, 3), np.float32)

    def tell(self: LEAMVD, X: np.ndarray, F: np.ndarray) -> None:
        now[0] += 2.0

    def evaluate(self: ReconstructionObjective, X: np.ndarray) -> np.ndarray:
        now[0] += 900.0 if len(calls) == 1 else 7.0
        return np.zeros(2)

    calls: list[str] = []
    monkeypatch.setattr(baselines, "_clock", lambda: now[0])
    monkeypatch.setattr(LEAMVD, "ask", ask)
    monkeypatch.setattr(LEAMVD, "tell", tell)
    monkeypatch.setattr(ReconstructionObjective, "__call__", evaluate)
    (row,) = networks.split("mnist-7x7", 1, 50, threads=1, rounds=1)
    assert (row["optimizer_seconds"], row["objective_seconds"]) == (3, 7)


def test_layers_are_those_of_the_experiments() -> None:
    for section, layers in networks.LAYERS.items():
        study = studies.study(section, "paper")
        assert layers == tuple(itertools.pairwise((study.side**2, *study.layers)))


def test_cases_of_the_paper_profile_cover_what_is_asked() -> None:
    cases = networks.cases("paper")
    assert {case.table for case in cases} == set(networks.COLUMNS)
    shapes = {(case.arguments["n_visible"], case.arguments["n_hidden"]) for case in cases if case.table == "objectives"}
    assert shapes == {(784, 500), (500, 500), (500, 2000), (49, 30), (30, 30), (30, 120)}
    numpy = [case for case in cases if case.arguments.get("backend") == "numpy"]
    assert {case.threads for case in numpy} == {1, min(2, thread_count(None))}
    assert {(case.arguments["n_images"], case.arguments["rounds"]) for case in numpy} == {(10_000, 7)}
    assert sum(case.table == "split" for case in cases) == 6
    training = [case.arguments for case in cases if case.table == "training"]
    epochs = {(own["n_visible"], own["n_hidden"]): own["n_images"] for own in training}
    assert epochs == dict.fromkeys(shapes, 10_000) | {(784, 500): 60_000}, "each layer's, one as scikit-learn's"
    assert all(math.isfinite(case.limit) for case in cases)
