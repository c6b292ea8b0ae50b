"""The playground of the book: its JavaScript against the library on the same draws, its presets and its page."""

import functools
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import reference
from py_mini_racer import MiniRacer

import leamvd
from leamvd.paper.functions import FUNCTIONS

ROOT = Path(__file__).parent.parent
STATIC = ROOT / "book" / "static"
GENERATIONS = 60

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
def draws(seed: int, size: int, n_elite: int) -> tuple[list[float], list[float]]:
    """Return the library's draws for two variables as the normals and uniforms of the page, in its order."""
    normals: list[float] = []
    uniforms: list[float] = []
    for generation in range(1, GENERATIONS + 1):
        for row in range(1 if generation == 1 else n_elite, size):
            normals += reference.normals(seed, generation, row, 2).tolist()
            if generation > 1:
                for factor in reference.factors(seed, generation, row, 2).tolist():  # next to what decides, 0.02
                    uniforms += [0.02] if factor == 1 else [np.nextafter(0.02, 0), factor - 0.5]
        words = [reference.words(seed, reference.DESCENT_ROWS, generation, 0, i)[0] for i in range(4)]
        uniforms += [int(word) / 2**32 for word in words]
    return normals, uniforms


def compare(page: MiniRacer, function: str, x0: list[float], seed: int = 3, **settings: Any) -> list[leamvd.State]:
    """Hold every state of a run in the page to the library's; return the library's."""
    own = json.loads(page.eval("JSON.stringify(DEFAULTS)")) | settings
    reading = {name: own[name] for name in ("shift", "reset", "exponent", "path", "descent")}
    start = {name: own[name] for name in ("sigma0", "population_size", "n_elite")}
    opt = leamvd.LEAMVD(x0, **start, n_gen=GENERATIONS, sigma_min=0, seed=seed, reading=leamvd.Reading(**reading))
    states = []
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, FUNCTIONS[function](X))
        states.append(opt.state)
    arguments = function, x0, own, *draws(seed, own["population_size"], own["n_elite"]), GENERATIONS
    found = json.loads(page.eval(f"run(...{json.dumps(arguments)})"))
    assert found["left"] == 0
    for theirs, mine in zip(states, found["states"], strict=True):
        assert_same(theirs, mine, own)
    return states


def assert_same(state: leamvd.State, mine: dict[str, Any], settings: dict[str, Any]) -> None:
    step = state.descent_mean if settings["shift"] == "printed" else abs(state.descent_mean)
    step = 0.0 if settings["descent"] == "off" else step
    v = state.beta2 * state.path + (1 - state.beta2) * step * state.descent  # Eq. 4
    width = np.abs(state.population - state.population[0]).max() + np.linalg.norm(state.std)
    scales = {"descent": 1.0, "descent_mean": width, "descent_std": width, "path": width, "v": width}
    assert set(mine) <= {*state._fields, "v"}
    for name, value in mine.items():
        if name == "initial_std" and settings["reset"] != "initial":
            continue  # the library keeps it only where it is used
        expected = v if name == "v" else getattr(state, name)
        scale = scales.get(name, float(np.abs(expected).max()))
        np.testing.assert_allclose(value, expected, rtol=0, atol=1e-9 * scale, err_msg=f"{name}, {state.generation}")


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
