"""Private parts of other packages: each is used in one file, and where it moves, a test here says so."""

import ast
import inspect
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import cma
import numba
import numpy as np
import pytest
from numba.core.caching import Cache, CompileResultCacheImpl, FunctionCache
from threadpoolctl import OpenBLASController

from leamvd._support import executors
from leamvd.optimizers.cma_es import CMAES

ROOMS = [Path(__file__).parent.parent / "leamvd" / room for room in ("_support", "campaign", "optimizers", "networks")]
HOMES = {
    "numba.core": "numba_cache.py",
    "OpenBLASController": "openblas.py",
    "_processes": "executors.py",
    "_max_workers": "executors.py",
    "sm": "cma_es.py",
}


@pytest.mark.parametrize("name", HOMES)
def test_a_private_name_has_one_home(name: str) -> None:
    found = set()
    for path in (path for room in ROOMS for path in room.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            attribute = isinstance(node, ast.Attribute) and node.attr == name
            imported = isinstance(node, ast.ImportFrom) and (
                str(node.module).startswith(name) or name in [alias.name for alias in node.names]
            )
            if attribute or imported or (isinstance(node, ast.Constant) and node.value == name):
                found.add(path.name)
    assert found == {HOMES[name]}


def test_numba_stores_compiled_code_as_it_is_replaced() -> None:
    dispatcher = numba.njit(lambda x: x)
    assert {"compile", "_cache"} <= {*dir(dispatcher), *vars(dispatcher)}
    assert FunctionCache._impl_class is CompileResultCacheImpl
    assert list(inspect.signature(CompileResultCacheImpl.get_filename_base).parameters) == [
        "self",
        "fullname",
        "abiflags",
    ]
    assert list(inspect.signature(Cache.load_overload).parameters) == ["self", "sig", "target_context"]
    assert list(inspect.signature(Cache.save_overload).parameters) == ["self", "sig", "data"]
    cache = FunctionCache(test_a_private_name_has_one_home)
    assert isinstance(cache._impl.filename_base, str)
    assert isinstance(cache._cache_path, str)


def test_threadpoolctl_lets_one_thread_limit_openblas() -> None:
    assert "force" in inspect.signature(OpenBLASController.clear_controlling_thread).parameters


def test_executors_have_a_number_of_workers_and_processes() -> None:
    with ThreadPoolExecutor(3) as threads, ProcessPoolExecutor(2) as processes:
        assert (executors.size(threads), executors.size(processes)) == (3, 2)
        assert isinstance(processes._processes, dict)
    assert executors.size(object()) is None


def test_pycma_tells_when_it_decomposes() -> None:
    full, diagonal = (CMAES(np.zeros(300), diagonal=diagonal, seed=0) for diagonal in (False, True))
    strategy = cma.CMAEvolutionStrategy(np.zeros(300), 0.1, {"popsize": 24, "verbose": -9})
    assert full.decomposition_gap == np.ceil(strategy.sm.lazy_update_gap) > 1
    assert diagonal.decomposition_gap == 1
