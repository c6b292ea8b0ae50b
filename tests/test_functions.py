"""The test functions."""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

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


def written_out(name: str, x: list[float]) -> float:
    """Return Griewank's or Schwefel's function by its formula, at a point within its domain."""
    value = 1.0
    product = 1.0
    for i, xi in enumerate(x, start=1):
        if name == "griewank":
            value += xi**2 / 4000
            product *= np.cos(xi / np.sqrt(i))
        else:
            z = xi + 420.9687462275036
            value += 418.98288727243375 - z * np.sin(np.sqrt(abs(z)))
    return value - product


@pytest.mark.parametrize("name", ["griewank", "schwefel"])
def test_functions_of_many_minima_are_their_formulas_within_their_domains(name: str) -> None:
    points = [[1.0, -2.0, 3.0], [-100.0, 50.0, -700.0], [79.0, -920.0, -420.0]]
    expected = [written_out(name, x) for x in points]
    value = data.MULTIMODAL[name].value
    np.testing.assert_allclose(value(np.array(points)), expected, rtol=1e-12)
    assert value(np.zeros((1, 3)))[0] == pytest.approx(0, abs=1e-9)


def test_beyond_its_domain_schwefels_function_is_mirrored_and_rises() -> None:
    """As in the CEC 2014 competition: of z = 520 the value is that of 480, and 20^2 / (10^4 n) is
    added; of z = -520 that of -480.
    """
    for z, inside in ((520.0, 480.0), (-520.0, -480.0)):
        expected = 418.98288727243375 - inside * np.sin(np.sqrt(480.0)) + 20**2 / 2e4
        X = np.array([[z - 420.9687462275036, 0.0]])
        assert data.schwefel(X)[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("name", data.MULTIMODAL)
def test_gradients_are_the_slopes_of_their_functions(name: str) -> None:
    value, gradient, half = data.MULTIMODAL[name]
    X = np.random.default_rng(1).uniform(-1.5 * half, 1.5 * half, (20, 3))  # beyond it, too
    step = 1e-6 * half
    slopes = []
    for e in np.eye(3):
        slopes.append((value(X + step * e) - value(X - step * e)) / (2 * step))
    expected = np.stack(slopes, axis=1)
    np.testing.assert_allclose(gradient(X), expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(gradient(np.zeros((1, 3))), 0, atol=1e-7)


@pytest.fixture
def coco(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand in for COCO by spheres that are told apart by function, dimension and instance."""

    class Problem:
        def __init__(self, n_var: int, function: int, instance: int) -> None:
            self.n_var = n_var
            self.steepness = function
            self.lowest = 1_000.0 * instance
            self.optimum = np.linspace(-1, 1, n_var) * instance

        def __call__(self, x: Any) -> float:
            assert x.shape == (self.n_var,)
            return self.steepness * float(((x - self.optimum) ** 2).sum()) + self.lowest

        def _best_parameter(self, how: str) -> None:
            assert how == "print"
            np.savetxt("._bbob_problem_best_parameter.txt", self.optimum)

    class Suite:
        def __init__(self, name: str, instances: str, options: str) -> None:
            assert (name, instances) == ("bbob-largescale", "")
            self.n_var = int(options.removeprefix("dimensions:"))

        def get_problem_by_function_dimension_instance(
            self, function: int, n_var: int, instance: int
        ) -> Problem:
            assert n_var == self.n_var
            return Problem(n_var, function, instance)

    monkeypatch.setitem(sys.modules, "cocoex", SimpleNamespace(Suite=Suite))
    monkeypatch.setattr(data.checks, "needs", lambda *_: None)
    data._bbob.cache_clear()
    yield
    data._bbob.cache_clear()


@pytest.mark.usefixtures("coco")
def test_a_seed_has_an_instance_of_its_own_of_the_function_that_a_name_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number, n_var, seed in ((10, 20, 0), (10, 20, 1), (10, 40, 1), (3, 20, 7)):
        x0, objective = data.problem(f"bbob-f{number}", n_var, seed)
        np.testing.assert_array_equal(x0, data.problem("sphere", n_var, seed)[0])
        optimum = np.linspace(-1, 1, n_var) * (seed + 1)  # of instances from 1 on
        points = np.stack([optimum, optimum + 0.5, x0])
        squares = np.array([0, n_var / 4, ((x0 - optimum) ** 2).sum()])
        np.testing.assert_allclose(objective(points), number * squares, atol=1e-9)
    assert not list(tmp_path.iterdir()), "COCO's file is not left behind"


def test_a_problem_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="name must be one of"):
        data.problem("griewank", 3, 0)
