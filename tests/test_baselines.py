"""CMA-ES and random search behind the shared interface, and every method over the table of problems."""

import threading
import warnings
from typing import Any

import cma
import numpy as np
import pytest
import reference
from problems import PROBLEMS, Problem, sphere

from leamvd import LEAMVD, Reading, minimize
from leamvd._support import memory
from leamvd.optimizers import cma_es
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.methods import METHODS
from leamvd.optimizers.random_search import RandomSearch

X0 = np.linspace(-1, 1, 6)


def run(opt: Optimizer, generations: int) -> list[Any]:
    asked = []
    for _ in range(generations):
        X = opt.ask()
        asked.append(np.array(X))
        opt.tell(X, sphere(X))
    return asked


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("bounds", [None, (-0.5, 1.0)])
def test_cma_es_is_pycma_driven_directly(diagonal: bool, bounds: Any) -> None:
    opt = CMAES(np.clip(X0, -0.4, 0.9), seed=5, diagonal=diagonal, bounds=bounds, x0_in_population=False)
    normals = np.random.default_rng(np.random.SeedSequence(5).spawn(2)[1])
    options = {"popsize": 24, "CMA_diagonal": diagonal, "verbose": -9, "verb_log": 0, "seed": np.nan}
    options |= {"randn": lambda *shape: normals.standard_normal(shape)}
    options |= {} if bounds is None else {"bounds": [[-0.5] * 6, [1.0] * 6]}
    direct = cma.CMAEvolutionStrategy(np.clip(X0, -0.4, 0.9), 0.1, options)
    for _ in range(15):
        X, Y = opt.ask(), np.array(direct.ask())
        np.testing.assert_array_equal(X, Y)
        if bounds is not None:
            assert X.min() >= -0.5
            assert X.max() <= 1
        opt.tell(X, sphere(X))
        direct.tell(list(Y), sphere(Y).tolist())
    assert opt.result.fun == direct.best.f


def test_cma_es_starts_with_the_start_solution_itself() -> None:
    x0 = X0.copy()
    opt = CMAES(x0, seed=5)
    np.testing.assert_array_equal(opt.ask()[0], X0)
    assert opt.ask().shape == (24, 6)
    run(opt, 3)
    np.testing.assert_array_equal(x0, X0)
    assert not np.any(opt.ask() == X0)


def test_cma_es_leaves_numpys_generator_alone() -> None:
    before = np.random.get_state()  # noqa: NPY002
    run(CMAES(X0, seed=5), 5)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2:] == after[2:]
    np.testing.assert_array_equal(before[1], after[1])
    np.random.seed(1)  # noqa: NPY002
    first = run(CMAES(X0, seed=5), 3)
    np.random.seed(2)  # noqa: NPY002
    np.testing.assert_array_equal(first, run(CMAES(X0, seed=5), 3))
    assert not np.array_equal(first, run(CMAES(X0, seed=6), 3))
    np.random.set_state(before)  # noqa: NPY002


def test_cma_es_refuses_a_matrix_that_does_not_fit_before_allocating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 4 * 8 * 36 - 1)
    assert CMAES(X0, diagonal=True).ask().shape == (24, 6), "a diagonal fits"
    monkeypatch.setattr(cma, "CMAEvolutionStrategy", lambda *_: pytest.fail("allocated"))
    with pytest.raises(MemoryError, match=r"n=6 variables needs 1,152 bytes, 1,151 are available: use method='sep-"):
        CMAES(X0)


def test_cma_es_ranks_values_that_are_not_finite_last() -> None:
    a, b = CMAES(X0, seed=5), CMAES(X0, seed=5)
    for opt, bad in ((a, (np.nan, np.inf)), (b, (1e6, 2e6))):
        F = sphere(opt.ask())
        F[3], F[7] = bad
        opt.tell(opt.ask(), F)
    np.testing.assert_allclose(a.ask(), b.ask(), rtol=1e-12)
    assert (a.result.n_nan, a.result.n_inf) == (1, 1)
    a.tell(a.ask(), np.full(24, np.nan))
    assert a.stop() == {"nan": 2}
    assert np.isfinite(a.ask()).all()


@pytest.mark.parametrize("method", ["cma-es", "sep-cma-es"])
@pytest.mark.parametrize("value", [8.0, -1e300, 1.7e308])
def test_one_finite_value_is_no_flat_function_to_cma_es(method: str, value: float) -> None:
    """Only the start solution has a value."""
    inside = lambda x: value if np.all(x == X0) else np.inf  # noqa: E731
    result = minimize(inside, X0, method=method, seed=1, n_gen=5)
    assert (result.nit, result.reason, result.success) == (5, "n_gen", False)


def test_searches_in_threads_leave_warnings_as_they_were() -> None:
    """The one that begins first ends first: it would put back filters that the other one's end then replaces."""
    inside, first_left = threading.Barrier(2), threading.Event()

    def search(ends_first: bool) -> None:
        def work() -> None:
            inside.wait(10)
            if not ends_first:
                first_left.wait(10)

        cma_es._quiet(work)
        if ends_first:
            first_left.set()

    before = warnings.filters[:]
    threads = [threading.Thread(target=search, args=[ends_first]) for ends_first in (True, False)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


def test_cma_es_says_why_pycma_stops() -> None:
    opt = CMAES(X0, seed=5, n_gen=2000)
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, sphere(X))
    assert list(opt.stop()) == ["cma"]
    assert opt.stop()["cma"]
    assert (opt.result.reason, opt.result.success) == ("cma", True)
    assert opt.result.message == f"CMA-ES has converged by a tolerance of its own: {', '.join(opt.stop()['cma'])}."
    assert opt.result.fun < 1e-10


def test_a_generation_without_a_finite_value_does_not_end_cma_es() -> None:
    opt = CMAES(X0, seed=5)
    for _ in range(5):
        X = opt.ask()
        opt.tell(X, np.full(24, np.inf))
        assert not opt.stop()
    assert (opt.generation, opt.n_inf) == (5, 120)
    run(opt, 10)
    assert opt.best_fun < sphere(X0[None])[0]


def test_random_search_keeps_the_first_of_the_best() -> None:
    opt = RandomSearch(X0, seed=1)
    assert opt.result.x is None
    asked = []
    for _ in range(5):
        asked.extend(opt.ask().copy())
        opt.tell(opt.ask(), np.floor(sphere(opt.ask())))  # many ties
    np.testing.assert_array_equal(opt.result.x, asked[np.argmin(np.floor(sphere(np.array(asked))))])
    assert np.isnan(opt.step_sizes).all()


@pytest.mark.parametrize("start", [None, np.linspace(-1, 2, 7)], ids=["bounds", "x0"])
def test_every_generation_of_random_search_is_a_draw_of_its_own(start: Any) -> None:
    opt = RandomSearch(start, n_var=7, bounds=(-1, 2), sigma0=3.0, seed=5)
    key = int(np.random.SeedSequence(5, spawn_key=(2,)).generate_state(1, np.uint64)[0])
    generations = run(opt, 3)
    if start is not None:
        np.testing.assert_array_equal(generations[0][0], start)
    for generation, X in enumerate(generations, start=1):
        for row, x in list(enumerate(X))[1:]:
            if start is None:
                expected = -1 + 3 * reference.uniforms(key, generation, row, 7)
            else:
                expected = np.clip(start + 3 * reference.normals(key, generation, row, 7), -1, 2)
            np.testing.assert_allclose(x, expected, atol=1e-13)


@pytest.mark.parametrize("seed", [0, 1, 2**63 + 5])
def test_methods_of_one_seed_draw_unrelated_numbers(seed: int) -> None:
    """Contrastive divergence draws its first weights by PCG64(seed), LEA-MVD its first population by Philox."""
    n, x0 = 4000, np.zeros(4000)
    weights = np.random.Generator(np.random.PCG64(seed)).standard_normal(24 * n)
    bits = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed).spawn(1)[0])).standard_normal(24 * n)
    reading = Reading(x0_in_population=False)
    first = [LEAMVD(x0, seed=seed, reading=reading), RandomSearch(x0, seed=seed, x0_in_population=False)]
    first.append(CMAES(x0, seed=seed, diagonal=True, x0_in_population=False))
    draws = np.array([weights, bits, *(opt.ask().ravel() for opt in first)])
    correlations = np.corrcoef(draws)[np.triu_indices(len(draws), 1)]
    assert np.abs(correlations).max() * np.sqrt(draws.shape[1]) < 5


REACHED = {  # the share of random search's best value that each method must come below, n = 10, 150 generations
    "lea-mvd": {"sphere": 1e-3, "ellipsoid": 1e-3, "rosenbrock": 0.9, "rastrigin": 0.6},
    "cma-es": {"sphere": 1e-8, "ellipsoid": 1e-7, "rosenbrock": 0.4, "rastrigin": 0.6},
    "sep-cma-es": {"sphere": 1e-8, "ellipsoid": 1e-10, "rosenbrock": 0.8, "rastrigin": 0.6},
}


def best(method: str, problem: Problem) -> float:
    step = {"sigma0": 0.3}
    result = minimize(problem.fun, np.zeros(10), vectorized=True, method=method, seed=4, n_gen=150, **step)
    assert result.fun == pytest.approx(problem.fun(result.x[None])[0], rel=1e-12)
    return float(result.fun)


@pytest.mark.compiled
@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda p: p.name)
def test_every_method_beats_random_search(problem: Problem) -> None:
    assert problem.fun(np.full((1, 10), problem.optimum))[0] == pytest.approx(0, abs=1e-12)
    floor = best("random", problem)
    assert floor <= problem.fun(np.zeros((1, 10)))[0]
    for method in METHODS[:-1]:
        assert best(method, problem) < REACHED[method][problem.name] * floor
