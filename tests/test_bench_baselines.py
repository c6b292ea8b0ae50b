"""The baselines at work: each really optimizes, and only its own seconds count."""

import importlib.metadata
import itertools
import math
from typing import Any

import numpy as np
import pytest

from leamvd.bench import baselines
from leamvd.bench.baselines import METHODS, POPULATION_SIZE, STEP, Objective, Search
from leamvd.campaign import versions
from leamvd.optimizers.cma_es import CMAES

N = 100
HERE = [(method, dtype) for method in METHODS for dtype in METHODS[method] if baselines.version(method) is not None]


@pytest.mark.filterwarnings("default")  # what a baseline warns of is its own affair
@pytest.mark.parametrize(("method", "dtype"), HERE, ids=map(" ".join, HERE))
def test_generations_move_the_optimizer_towards_the_optimum(method: str, dtype: str) -> None:
    search = baselines.make(method, N, dtype)
    best = []
    for _ in range(40):
        assert 0 <= search.generation() < math.inf
        best.append(search.objective.best)
    assert 0.5 * N < best[0] < 1.1 * N, "every method starts at ones"
    assert np.mean(best[-10:]) < np.mean(best[:10]) - 0.1


@pytest.mark.parametrize("method", ["leamvd", "pycma separable", "pycma full"])
def test_start_step_and_population(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(baselines, "sphere", lambda X: seen.append(np.array(X)) or (seen[-1] ** 2).sum(axis=1))
    search = baselines.make(method, 1_000, METHODS[method][0])
    for _ in range(2):
        search.generation()
    assert seen[0].shape == (POPULATION_SIZE, 1_000)
    assert seen[0].dtype == METHODS[method][0]
    assert seen[0][1:].mean() == pytest.approx(1, abs=0.01)
    assert seen[0][1:].std() == pytest.approx(STEP, rel=0.05)
    assert len(seen[1]) == (20 if method == "leamvd" else POPULATION_SIZE)


def test_a_generation_takes_the_mean_of_a_period_without_the_objective(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seconds pass only where they are let: 1, 2, 3, ... in the steps, and 1,000 in each evaluation."""
    now, seconds = [50.0], itertools.count(1)
    monkeypatch.setattr(baselines, "_clock", lambda: now[0])

    def pass_by(some: float) -> None:
        now[0] += some

    objective = Objective(lambda X: pass_by(1_000) or (X**2).sum(axis=1))
    search = Search(objective, lambda: pass_by(next(seconds)) or objective(np.full((2, 3), 2.0)), period=4)
    assert [search.generation(), search.generation()] == [2.5, 6.5]
    assert (objective.seconds, objective.best) == (4_000, 12)


def test_a_generation_of_the_full_matrix_has_its_part_of_a_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[CMAES] = []

    def kept(*arguments: Any, **options: Any) -> CMAES:
        made.append(CMAES(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(baselines, "CMAES", kept)
    search = baselines.make("pycma full", 300, "float64")
    for _ in range(4):
        search.generation()
    assert made[0].decomposition_gap > 1
    assert made[0].generation == 4 * made[0].decomposition_gap
    assert 3 <= made[0]._es.sm.count_eigen <= 4


def test_the_full_matrix_refuses_what_does_not_fit() -> None:
    with pytest.raises(MemoryError, match="n=10000000 variables needs 3,200,000,000,000,000 bytes"):
        baselines.make("pycma full", 10**7, "float64")


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert baselines.version("leamvd") == importlib.metadata.version("leamvd")
    assert baselines.version("pycma full") == importlib.metadata.version("cma")
    assert versions.installed("no-such-distribution") is None
