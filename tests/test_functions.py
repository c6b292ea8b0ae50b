"""The test functions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leamvd_paper.data import functions as data


def test_known_values_and_the_minimum_at_zero() -> None:
    X = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5], [-1.0, -1.0, -1.0]])
    np.testing.assert_allclose(data.sphere(X), [14, 0.75, 3])
    np.testing.assert_allclose(data.ellipsoid(X), [1 + 10 * 4 + 100 * 9, 0.25 * 111, 111])
    np.testing.assert_allclose(data.rastrigin(X), [14, 3 * (0.25 + 20), 3])
    # y = x + 1: (2, 3, 4), and (0, 0, 0), where (1 - y)^2 is 1
    np.testing.assert_allclose(data.rosenbrock(X)[[0, 2]], [100 * (1 + 25) + 1 + 4, 2])
    # cos 2 pi x_i is 1: e - exp(1) is zero
    np.testing.assert_allclose(data.ackley(X)[2], 20 - 20 * np.exp(-0.2))
    np.testing.assert_allclose(data.ackley(X)[1], 20 - 20 * np.exp(-0.1) + np.e - np.exp(-1))
    for f in data.FUNCTIONS.values():
        assert f(np.zeros((1, 3))) == 0
        assert np.all(f(X) > 0)


@given(st.sampled_from(tuple(data.FUNCTIONS)), st.integers(2, 40), st.integers(0, 2**32))
def test_a_problem_is_set_by_its_seed_and_its_optimum_is_moved(
    name: str, n_var: int, seed: int
) -> None:
    x0, objective = data.problem(name, n_var, seed)
    rng = np.random.default_rng([seed, n_var])
    start, optimum = rng.uniform(-5, 5, n_var), rng.uniform(-4, 4, n_var)
    np.testing.assert_array_equal(x0, start)
    assert objective(optimum[None]) == 0
    np.testing.assert_array_equal(
        objective(x0[None]), data.FUNCTIONS[name]((start - optimum)[None])
    )


@pytest.mark.parametrize(
    ("name", "side"),
    [("rastrigin", 10.24), ("ackley", 65.536), ("griewank", 1_200), ("schwefel", 1_000)],
)
def test_the_unit_cube_is_as_wide_as_the_usual_domain(name: str, side: float) -> None:
    value, gradient = data.in_unit_cube(name, np.full(3, 0.25))
    steps = np.array([[0.5, -1.0, 2.0], [0.0, 0.3, 0.0]])
    U = 0.25 + steps / side
    np.testing.assert_allclose(value(U), data.MULTIMODAL[name].value(steps), atol=1e-9)
    expected = side * data.MULTIMODAL[name].gradient(steps)
    np.testing.assert_allclose(gradient(U), expected, atol=1e-6)


def test_a_function_of_bbob_largescale_is_of_its_instance_and_above_its_minimum() -> None:
    pytest.importorskip("cocoex", reason="needs leamvd-paper[coco]")
    (x0, first), (other, second) = (data.problem("bbob-f1", 20, seed) for seed in (0, 1))
    assert len(x0) == 20
    values = first(np.stack([x0, other]))
    assert values[0] != second(np.stack([x0]))[0]
    # f1 is a sphere: its minimum is where Newton's step from anywhere leads
    gradient = np.array(
        [(first(x0 + 1e-3 * e)[0] - first(x0 - 1e-3 * e)[0]) / 2e-3 for e in np.eye(20)[:, None]]
    )
    assert first((x0 - gradient / 2)[None])[0] == pytest.approx(0, abs=1e-6)
