"""The playground of the book: its JavaScript against the library on the same draws, its presets and its page."""

import functools
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py_mini_racer import MiniRacer

import leamvd
from leamvd.optimizers import random_streams, sampling
from leamvd.paper.functions import FUNCTIONS

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "book" / "static"
# Runs the page's code on lists of draws, and fails where it takes one too many or leaves one.
DRIVER = """
function run(name, x0, settings, normals, uniforms, generations) {
  const given = (values) => () => { if (values.length === 0) throw Error("no draw is left"); return values.shift(); };
  const draw = { normal: given(normals), uniform: given(uniforms) };
  const states = [first(FUNCTIONS[name], x0, settings, draw)];
  while (states.length < generations) states.push(next(FUNCTIONS[name], settings, draw, states.at(-1)));
  return JSON.stringify({ states, left: normals.length + uniforms.length });
}
"""


@pytest.fixture(scope="module")
def page() -> Iterator[MiniRacer]:
    """A JavaScript engine that holds the modules as the page's one script does."""
    with MiniRacer() as engine:
        for name in ("lea_mvd", "functions"):
            engine.eval((STATIC / f"{name}.js").read_text(encoding="utf-8").replace("export ", ""))
        engine.eval(DRIVER)
        yield engine


@functools.cache
def draws(seed: int, size: int, n_elite: int, generations: int) -> tuple[list[float], list[float]]:
    """Return the library's draws for two variables as the normals and uniforms of the page, in its order."""
    normals: list[float] = []
    uniforms: list[float] = []
    scratch, hits = random_streams.scratch(np.empty(0)), sampling.perturbation()
    for generation in range(1, generations + 1):
        place = sampling.Place(np.uint64(seed), generation, False, 0)
        for row in range(1 if generation == 1 else n_elite, size):
            random_streams.normal_tile(np.uint64(seed), random_streams.NORMAL, generation, row, 0, scratch)
            normals += scratch.numbers[:2].tolist()
            if generation > 1:
                factors = np.ones(2)
                sampling.perturb(factors, place, row, 0, hits)
                for factor in factors.tolist():  # the uniforms are next to what decides, 0.02
                    uniforms += [0.02] if factor == 1 else [np.nextafter(0.02, 0), factor - 0.5]
        words = [random_streams.words(seed, random_streams.DESCENT_ROWS, generation, 0, i)[0] for i in range(4)]
        uniforms += [int(word) / 2**32 for word in words]
    return normals, uniforms


def compare(
    page: MiniRacer, function: str, x0: list[float], seed: int = 4, generations: int = 60, **settings: Any
) -> list[leamvd.State]:
    """Hold every state of a run in the page to the library's; return the library's.

    With this seed no population gets a million times smaller than its first coordinates, whose rounding stays in it.
    """
    own = json.loads(page.eval("JSON.stringify(DEFAULTS)")) | settings
    reading = {name: own[name] for name in ("shift", "reset", "exponent", "path", "descent")}
    start = {name: own[name] for name in ("sigma0", "population_size", "n_elite")}
    opt = leamvd.LEAMVD(x0, **start, n_gen=generations, sigma_min=0, seed=seed, reading=leamvd.Reading(**reading))
    states = []
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, FUNCTIONS[function](X))
        states.append(opt.state)
    normals, uniforms = draws(seed, own["population_size"], own["n_elite"], generations)
    arguments = function, x0, own, normals, uniforms, generations
    found = json.loads(page.eval(f"run(...{json.dumps(arguments)})"))
    assert found["left"] == 0
    for theirs, mine in zip(states, found["states"], strict=True):
        assert_same(theirs, mine, own)
    return states


def assert_same(state: leamvd.State, mine: dict[str, Any], settings: dict[str, Any]) -> None:
    step = state.descent_mean if settings["shift"] == "printed" else abs(state.descent_mean)
    v = state.beta2 * state.path + (1 - state.beta2) * (settings["descent"] != "off") * step * state.descent  # Eq. 4
    width = float(np.ptp(state.population, axis=0).max())
    scales = dict.fromkeys(("population", "mean", "path", "v", "descent_mean", "descent_std"), width)
    assert set(mine) == {*state._fields, "v"} - {"nfev", "n_nan", "n_inf", "std_norm", "descent_norm"}
    for name, value in mine.items():
        if name == "initial_std" and settings["reset"] != "initial":
            continue  # the library keeps it only where it is used
        expected = v if name == "v" else getattr(state, name)
        atol = 1e-9 * scales.get(name, float(np.abs(expected).max()))
        np.testing.assert_allclose(value, expected, rtol=0, atol=atol, err_msg=f"{name}, {state.generation}")


STARTS = {"sphere": [3.0, -2.0], "ellipsoid": [-1.5, 2.5], "rosenbrock": [-2.2, 0.5], "rastrigin": [2.9, 1.1]}
SWITCHES = {
    "shift": ("toward_best", "printed"),
    "reset": (1, "initial", "off"),
    "path": ("on", "off"),
    "descent": ("orthogonal", "off"),
}


@pytest.mark.parametrize("function", STARTS)
@pytest.mark.parametrize("switches", list(itertools.product(*SWITCHES.values())), ids=str)
def test_the_page_and_the_library_are_in_the_same_state(
    page: MiniRacer, function: str, switches: tuple[Any, ...]
) -> None:
    compare(page, function, STARTS[function], sigma0=1.0, **dict(zip(SWITCHES, switches, strict=True)))


def resets(states: list[leamvd.State]) -> int:
    """Return how often the stagnation counter went back without a better best."""
    return sum(now.fitness[0] == old.fitness[0] and now.stagnation == 0 for old, now in itertools.pairwise(states))


@pytest.mark.parametrize(("reset", "count"), [(1, 5), (0.5, 5), ("initial", 5)])
@pytest.mark.parametrize("shift", SWITCHES["shift"])
def test_where_the_search_is_reset(page: MiniRacer, shift: str, reset: Any, count: int) -> None:
    """From a start solution that is close to the optimum, as in the section's figure on resets."""
    assert resets(compare(page, "ellipsoid", [1e-6, -1e-6], shift=shift, reset=reset)) == count


def test_where_it_would_be_reset_but_for_the_switch(page: MiniRacer) -> None:
    states = compare(page, "ellipsoid", [0.0, 0.0], generations=30, reset="off")
    assert states[-1].stagnation == 29


@pytest.mark.parametrize("settings", [{"exponent": 0}, {"exponent": 4.0}, {"population_size": 6, "n_elite": 1},
                                      {"population_size": 40, "n_elite": 15}, {"sigma0": 0.03}], ids=str)  # fmt: skip
def test_settings_are_those_of_the_library(page: MiniRacer, settings: dict[str, Any]) -> None:
    compare(page, "rosenbrock", [-2.2, 0.5], **settings)


def test_the_defaults_are_those_of_the_library(page: MiniRacer) -> None:
    defaults, reading = json.loads(page.eval("JSON.stringify(DEFAULTS)")), leamvd.Reading()
    opt = leamvd.LEAMVD([0.0, 0.0])
    known = [opt if hasattr(opt, name) else reading for name in defaults]
    assert defaults == {name: getattr(owner, name) for name, owner in zip(defaults, known, strict=True)}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_those_of_the_library(page: MiniRacer, name: str) -> None:
    points = np.random.default_rng(0).uniform(-3, 3, (50, 2))
    values = page.eval(f"JSON.stringify({json.dumps(points.tolist())}.map(FUNCTIONS.{name}))")
    np.testing.assert_allclose(json.loads(values), FUNCTIONS[name](points), rtol=1e-12)
    assert page.eval(f"FUNCTIONS.{name}([0, 0])") == 0
