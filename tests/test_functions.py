"""The test functions, and a study's methods on them."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leamvd.campaign.run import run_tables
from leamvd.data import functions as data
from leamvd.studies import functions
from leamvd.studies.alternatives import ALTERNATIVES
from leamvd.studies.study import Study

SMALL = Study(
    methods=("cd", "lea-mvd", "lea-mvd:shift=printed", "lea-mvd:x0=none", "lea-mvd:x0_epochs=5"), seeds=(4, 7)
)


def test_known_values_and_the_minimum_at_zero() -> None:
    X = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5], [-1.0, -1.0, -1.0]])
    np.testing.assert_allclose(data.sphere(X), [14, 0.75, 3])
    np.testing.assert_allclose(data.ellipsoid(X), [1 + 10 * 4 + 100 * 9, 0.25 * 111, 111])
    np.testing.assert_allclose(data.rastrigin(X), [14, 3 * (0.25 + 20), 3])
    # y = x + 1: (2, 3, 4), and (0, 0, 0), where (1 - y)^2 is 1
    np.testing.assert_allclose(data.rosenbrock(X)[[0, 2]], [100 * (1 + 25) + 1 + 4, 2])
    np.testing.assert_allclose(data.ackley(X)[2], 20 - 20 * np.exp(-0.2))  # cos 2 pi x_i is 1: e - exp(1) is zero
    np.testing.assert_allclose(data.ackley(X)[1], 20 - 20 * np.exp(-0.1) + np.e - np.exp(-1))
    for f in data.FUNCTIONS.values():
        assert f(np.zeros((1, 3))) == 0
        assert np.all(f(X) > 0)


@given(st.sampled_from(tuple(data.FUNCTIONS)), st.integers(2, 40), st.integers(0, 2**32))
def test_a_problem_is_set_by_its_seed_and_its_optimum_is_moved(name: str, n_var: int, seed: int) -> None:
    x0, objective = data.problem(name, n_var, seed)
    rng = np.random.default_rng([seed, n_var])
    start, optimum = rng.uniform(-5, 5, n_var), rng.uniform(-4, 4, n_var)
    np.testing.assert_array_equal(x0, start)
    assert objective(optimum[None]) == 0
    np.testing.assert_array_equal(objective(x0[None]), data.FUNCTIONS[name]((start - optimum)[None]))


def test_a_function_of_bbob_largescale_is_of_its_instance_and_above_its_minimum() -> None:
    pytest.importorskip("cocoex", reason="needs leamvd[bench]")
    (x0, first), (other, second) = (data.problem("bbob-f1", 20, seed) for seed in (0, 1))
    assert len(x0) == 20
    values = first(np.stack([x0, other]))
    assert values[0] != second(np.stack([x0]))[0]
    # f1 is a sphere: its minimum is where Newton's step from anywhere leads
    gradient = np.array([(first(x0 + 1e-3 * e)[0] - first(x0 - 1e-3 * e)[0]) / 2e-3 for e in np.eye(20)[:, None]])
    assert first((x0 - gradient / 2)[None])[0] == pytest.approx(0, abs=1e-6)


def test_methods_that_can_differ_on_a_function_are_searched_once() -> None:
    assert functions.applicable(SMALL.methods) == ["lea-mvd", "lea-mvd:shift=printed", "lea-mvd:x0=none"]
    assert functions.applicable(["lea-mvd:x0=batch", "cma-es"]) == []
    for twice in (
        ["lea-mvd:n_gen=44+n_elite=1", "lea-mvd:n_elite=1"],
        ["lea-mvd:n_elite=1+n_gen=44", "lea-mvd:n_elite=1"],
    ):
        assert functions.applicable(twice) == twice[:1]
    assert functions.applicable(["lea-mvd", "lea-mvd:n_gen=30"]) == ["lea-mvd"]
    counts = [method for method in ALTERNATIVES["C12"] if "n_elite" in method]
    assert functions.applicable(counts) == [f"lea-mvd:n_elite={count}" for count in (1, 2, 8, 12)]


def test_searches_of_the_methods_with_their_settings_and_the_budget() -> None:
    searches = functions.searches(SMALL, sizes=(6, 3), budget=100, functions=("ellipsoid", "sphere")).jobs
    assert len(searches) == len(set(searches.values())) == 2 * 2 * 3 * 2
    for (name, n_var, method, seed), job in searches.items():
        _, training, reading = SMALL.settings_of(method)
        assert (job.function, job.n_var, job.seed, job.marks) == (name, n_var, seed, (100,))
        assert (job.training, job.reading.shift) == (training, reading.shift)
    more = dataclasses.replace(SMALL, reading=dataclasses.replace(SMALL.reading, n_gen=9))
    assert functions.searches(more, sizes=(6, 3), budget=100, functions=("ellipsoid", "sphere")).jobs == searches


def test_a_table_has_a_row_for_each_search(tmp_path: Path) -> None:
    searches = functions.searches(SMALL, sizes=(3,), budget=100, functions=("sphere",))
    table = run_tables({"runs": searches}, tmp_path)["runs"]
    assert table.columns.tolist() == functions.COLUMNS
    assert table["evaluations"].tolist() == [24 + 3 * 20] * 6, "another generation would exceed the budget"
    assert table.groupby("method", sort=False)["seed"].apply(list).tolist() == [[4, 7]] * 3
