"""CMA-ES and random search: what is theirs alone."""

from typing import Any

import cma
import numpy as np
import pytest

import reference
from leamvd import minimize
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.random_search import RandomSearch
from problems import sphere

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
    opt = CMAES(
        np.clip(X0, -0.4, 0.9), seed=5, diagonal=diagonal, bounds=bounds, x0_in_population=False
    )
    normals = np.random.default_rng(np.random.SeedSequence(5).spawn(2)[1])
    options = {
        "popsize": 24,
        "CMA_diagonal": diagonal,
        "verbose": -9,
        "verb_log": 0,
        "seed": np.nan,
    }
    options |= {"randn": lambda *shape: normals.standard_normal(shape)}
    options |= {} if bounds is None else {"bounds": [[-0.5] * 6, [1.0] * 6]}
    direct = cma.CMAEvolutionStrategy(np.clip(X0, -0.4, 0.9), 0.1, options)
    for _ in range(15):
        X, Y = opt.ask(), np.array(direct.ask())
        np.testing.assert_array_equal(X, Y)
        opt.tell(X, sphere(X))
        direct.tell(list(Y), sphere(Y).tolist())
    assert opt.result.fun == direct.best.f


def test_cma_es_leaves_numpys_generator_alone() -> None:
    before = np.random.get_state()  # noqa: NPY002
    run(CMAES(X0, seed=5), 5)
    after = np.random.get_state()  # noqa: NPY002
    assert before[2:] == after[2:]
    np.testing.assert_array_equal(before[1], after[1])


def test_cma_es_refuses_a_matrix_that_does_not_fit_before_allocating() -> None:
    x0 = np.zeros(10_000_000)
    with pytest.raises(
        MemoryError,
        match=r"n=10000000 variables needs 3,200,000,000,000,000 bytes.* use method='sep-",
    ):
        CMAES(x0)
    assert CMAES(x0, diagonal=True).n_var == 10_000_000, "a diagonal fits"


@pytest.mark.parametrize("method", ["cma-es", "sep-cma-es"])
@pytest.mark.parametrize("value", [8.0, -1e300, 1.7e308])
def test_one_finite_value_is_no_flat_function_to_cma_es(method: str, value: float) -> None:
    """Only the start solution has a value."""
    result = minimize(
        lambda x: value if np.all(x == X0) else np.inf, X0, method=method, seed=1, n_gen=5
    )
    assert (result.nit, result.reason, result.success) == (5, "n_gen", False)


@pytest.mark.parametrize(
    ("criteria", "reason"),
    [
        ({"tolfun": 1e-11, "maxiter": 3}, "cma"),
        *(({name: 1e-11}, "cma") for name in ("tolx", "tolfun", "tolfunhist", "tolfunrel")),
        *(({f"noeffect{name}": 1}, "cma") for name in ("axis", "coord")),
        ({"maxiter": 3}, "cma_maxiter"),
        ({"tolflatfitness": 1}, "cma_stuck"),
        ({"tolstagnation": 145}, "cma_stuck"),
    ],
)
def test_cma_es_succeeds_by_its_tolerances_alone(
    monkeypatch: pytest.MonkeyPatch, criteria: dict[str, Any], reason: str
) -> None:
    opt = CMAES(X0, seed=1)
    monkeypatch.setattr(cma.CMAEvolutionStrategy, "stop", lambda _: criteria)
    opt.tell(opt.ask(), sphere(opt.ask()))
    assert (list(opt.stop()), opt.result.reason, opt.result.success) == (
        [reason],
        reason,
        reason == "cma",
    )


@pytest.mark.parametrize("start", [None, np.linspace(-1, 2, 7)], ids=["bounds", "x0"])
def test_every_generation_of_random_search_is_a_draw_of_its_own(start: Any) -> None:
    opt = RandomSearch(start, n_var=7, bounds=(-1, 2), sigma0=3.0, seed=5)
    key = int(np.random.SeedSequence(5, spawn_key=(2,)).generate_state(1, np.uint64)[0])
    for generation, X in enumerate(run(opt, 3), start=1):
        for row, x in list(enumerate(X))[1:]:
            if start is None:
                expected = -1 + 3 * reference.uniforms(key, generation, row, 7)
            else:
                expected = np.clip(start + 3 * reference.normals(key, generation, row, 7), -1, 2)
            np.testing.assert_allclose(x, expected, atol=1e-13)
