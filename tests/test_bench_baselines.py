"""The baselines at work: each really optimizes, and only its own seconds count."""

import importlib.metadata
import itertools
import math
from typing import Any

import numpy as np
import pytest

from leamvd.bench import baselines
from leamvd.bench.baselines import METHODS, POPULATION_SIZE, STEP, AskTell
from leamvd.bench.cases import RefusalError
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
        best.append(search.best)
    assert 0.5 * N < best[0] < 1.1 * N, "every method starts at ones"
    assert np.mean(best[-10:]) < np.mean(best[:10]) - 0.1


def test_ours_and_pycma_are_always_measured() -> None:
    assert {method for method, _ in HERE} >= {"leamvd", "pycma separable", "pycma full"}


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


def test_seeds_tell_runs_apart() -> None:
    def best(seed: int) -> float:
        search = baselines.make("leamvd", N, "float64", seed)
        search.generation()
        return search.generation() and search.best

    assert best(1) == best(1) != best(2)


class Clock:
    """Seconds that pass only where a test lets them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 50.0
        monkeypatch.setattr(baselines, "_clock", lambda: self.now)
        monkeypatch.setattr(baselines, "sphere", self.sphere)

    def sphere(self, X: Any) -> Any:
        self.now += 1_000
        return (X**2).sum(axis=1)

    def takes(self, seconds: float, result: object = None) -> Any:
        self.now += seconds
        return result


def test_asking_and_telling_count_and_the_objective_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    search = AskTell(lambda: clock.takes(1, np.full((2, 3), 2.0)), lambda X, F: clock.takes(2))
    assert (search.generation(), search.best, search.objective_seconds) == (3, 12, 1_000)


def test_a_generation_of_a_periodic_search_is_the_mean_of_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seconds = Clock(monkeypatch), itertools.count(1)
    search = AskTell(lambda: clock.takes(next(seconds), np.ones((1, 1))), lambda X, F: None, period=4)
    assert [search.generation(), search.generation()] == [2.5, 6.5]


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
    with pytest.raises(RefusalError, match="n=10000000 variables needs 3,200,000,000,000,000 bytes"):
        baselines.make("pycma full", 10**7, "float64")


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    assert baselines.version("leamvd") == importlib.metadata.version("leamvd")
    assert baselines.version("pycma full") == importlib.metadata.version("cma")
    assert versions.installed("no-such-distribution") is None
