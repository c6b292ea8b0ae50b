"""The objective, contrastive divergence and the parts of a generation, on networks that take milliseconds."""

from collections.abc import Callable, Iterator

import numba
import numpy as np
import pandas as pd
import pytest

from leamvd._support.threads import thread_count
from leamvd.bench import baselines, networks, parts
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBMParameters, n_parameters
from leamvd.optimizers import random_streams, sampling
from leamvd.optimizers.lea_mvd import LEAMVD


def test_row_of_an_objective() -> None:
    (row,) = networks.objectives(20, 30, 400, "numpy", "float32", threads=1, rounds=3)
    assert (row["flop"], row["device"]) == (4 * 20 * 30 * 400 * 24, "cpu")
    assert 0 < row["product_seconds"] < 60
    assert row["fraction_of_products"] == pytest.approx(row["product_seconds"] / row["seconds"], rel=3)


@pytest.mark.parametrize(("flop", "computed"), [(0.0, 4), (1e18, 24)])
def test_what_is_computed_of_some_individuals_is_scaled_to_all(
    monkeypatch: pytest.MonkeyPatch, flop: float, computed: int
) -> None:
    """A second passes for each individual, so that seconds say how many of them a row stands for: always 24."""
    counts: dict[str, list[int]] = {"objective": [], "products": []}

    def clocked(work: Callable[[], object]) -> Callable[[], float]:
        def seconds() -> float:
            for count in counts.values():
                count.clear()
            work()
            assert sum(counts["objective"]) + len(counts["products"]) / 2 == computed
            return float(computed)

        return seconds

    monkeypatch.setattr(networks, "clocked", clocked)
    monkeypatch.setattr(ReconstructionObjective, "__call__", lambda _, X: counts["objective"].append(len(X)))
    monkeypatch.setattr(networks.np, "matmul", lambda a, b, out: counts["products"].append(1))
    monkeypatch.setattr(networks, "_FLOP", flop)
    (row,) = networks.objectives(20, 30, 400, "numpy", "float32", threads=1, rounds=1)
    assert (row["seconds"], row["product_seconds"], row["fraction_of_products"]) == (24, 24, 1)


def test_everything_that_is_timed_is_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()

    def matmul(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
        seen.update(array.dtype.name for array in (a, b, out))

    monkeypatch.setattr(networks.np, "matmul", matmul)
    monkeypatch.setattr(ReconstructionObjective, "__call__", lambda _, X: seen.add(X.dtype.name))
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
    assert all(0 < row["product_seconds"] < row["seconds"] for row in rows[::2])
    assert rows[0]["product_seconds"] == rows[1]["product_seconds"]


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
        theirs = RBMParameters(other.components_.T.copy(), other.intercept_visible_, other.intercept_hidden_)
        found.append((rbm.log_likelihood(V), theirs.log_likelihood(V)))
    assert np.min(found) > -0.7 * 16 * np.log(2), "independent pixels have -16 log 2"
    assert abs(np.diff(np.mean(found, axis=0))[0]) < 1.5


def test_row_of_a_generation() -> None:
    (row,) = networks.split(30, 120, 50, threads=1, rounds=3)
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
    (row,) = networks.split(49, 30, 50, threads=1, rounds=1)
    assert (row["optimizer_seconds"], row["objective_seconds"]) == (3, 7)


def test_cases_of_the_paper_profile_cover_what_is_asked() -> None:
    cases = networks.cases("paper")
    own = {table: [case for case in cases if case.table == table] for table in networks.COLUMNS}
    shapes = {(784, 500), (500, 500), (500, 2000), (49, 30), (30, 30), (30, 120)}
    found = {(case.arguments["n_visible"], case.arguments["n_hidden"]) for case in own["objectives"]}
    assert found == shapes, "the layers of both sections"
    numpy = [case for case in own["objectives"] if case.arguments["backend"] == "numpy"]
    assert {case.threads for case in numpy} == {1, min(2, thread_count(None))}
    assert {(case.arguments["n_images"], case.known["rounds"]) for case in numpy} == {(10_000, 7)}
    assert [(case.known["section"], case.known["layer"]) for case in own["split"]] == [
        (section, layer) for section in ("mnist-28x28", "mnist-7x7") for layer in (1, 2, 3)
    ]
    trained = [case.arguments for case in own["training"]]
    epochs = {(each["n_visible"], each["n_hidden"]): each["n_images"] for each in trained}
    assert epochs == dict.fromkeys(shapes, 10_000) | {(784, 500): 60_000}, "each layer's, one as scikit-learn's"


# ---- the parts of a generation


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As the bench measures it; on a busy machine two threads would wait for each other in every pass."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.mark.compiled
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_are_smaller_than_what_holds_them(dtype: str) -> None:
    measured = pd.DataFrame([row for _ in range(4) for row in parts.measure(20_000, dtype, rounds=3)])
    row = measured.min()  # whatever else the machine does only adds
    assert set(row.index) == {name for name in parts.COLUMNS["parts"] if name.endswith("_seconds")}
    assert 0 < row["words_seconds"] < row["normals_seconds"] < row["second_pass_seconds"] < row["generation_seconds"]
    assert 0 < row["perturbation_seconds"] < row["second_pass_seconds"]
    assert 0 < row["first_pass_seconds"] < row["generation_seconds"]


def test_what_is_timed_draws_every_number_of_a_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, int, int]] = []
    s, place = random_streams.scratch(np.empty(1)), sampling.Place(np.uint64(0), 1, False, 0)
    monkeypatch.setattr(random_streams, "tile_words", lambda *a: drawn.append(("words", a[3], a[4])))
    monkeypatch.setattr(random_streams, "normal_tile", lambda *a: drawn.append(("normals", a[3], a[4])))
    monkeypatch.setattr(sampling, "perturb", lambda *a: drawn.append(("hits", a[2], a[3])))
    for name, work, first in (("words", parts._words, s), ("normals", parts._normals, s)):
        getattr(work, "py_func", work)(first, 3, 2)
        assert drawn == [(name, row, tile) for tile in range(2) for row in range(3)]
        drawn.clear()
    getattr(parts._perturbation, "py_func", parts._perturbation)(np.ones(4), place, 3, 2)
    assert drawn == [("hits", row, tile) for tile in range(2) for row in range(3)]
