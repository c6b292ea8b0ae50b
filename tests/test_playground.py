"""The playground of the book: its JavaScript against the library on the same draws, its presets and
its page.
"""

import functools
import itertools
import json
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from bs4 import BeautifulSoup, Tag
from matplotlib.colors import to_hex, to_rgba
from py_mini_racer import MiniRacer
from scipy import stats

import leamvd
from figures import assert_sound
from leamvd.optimizers import random_streams, sampling
from leamvd_paper.data.functions import FUNCTIONS

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "book" / "static"
TEXTS = {
    path.name: path.read_text(encoding="utf-8")
    for path in STATIC.glob("*.*")
    if path.suffix != ".txt"
}
PRESETS = json.loads(TEXTS["presets.json"])
PAGE = BeautifulSoup(TEXTS["playground.html"], "html.parser")
CONTROLS = {tag["name"]: tag for tag in PAGE(["input", "select", "button"])}
OUTPUTS = [tag["data-value"] for tag in PAGE("output")]
# Runs the page's code on lists of draws, and fails where it takes one too many or leaves one.
DRIVER = """
function searched(name, x0, settings, draw, generations) {
  const all = { ...DEFAULTS, ...settings };
  const states = [first(FUNCTIONS[name], x0, all, draw)];
  while (states.length < generations) states.push(next(FUNCTIONS[name], all, draw, states.at(-1)));
  return states;
}
function run(name, x0, settings, normals, uniforms, generations) {
  const given = (values) => () => {
    if (values.length === 0) throw Error("no draw is left");
    return values.shift();
  };
  const draw = { normal: given(normals), uniform: given(uniforms) };
  const states = searched(name, x0, settings, draw, generations);
  return JSON.stringify({ states, left: normals.length + uniforms.length });
}
function seeded(name, x0, settings, seed, generations) {
  return JSON.stringify(searched(name, x0, settings, draws(seed), generations));
}
"""


@pytest.fixture(scope="module")
def page() -> Iterator[MiniRacer]:
    """A JavaScript engine that holds the modules as the page's one script does."""
    with MiniRacer() as engine:
        engine.eval(TEXTS["d3.min.js"])
        for name in ("lea_mvd.js", "functions.js", "random.js"):
            engine.eval(re.sub("^export ", "", TEXTS[name], flags=re.MULTILINE))
        engine.eval(DRIVER)
        yield engine


@functools.cache
def draws(seed: int, size: int, n_elite: int, generations: int) -> tuple[list[float], list[float]]:
    """Return the library's draws for two variables as the normals and uniforms of the page, in its
    order.
    """
    normals: list[float] = []
    uniforms: list[float] = []
    scratch, hits, none = random_streams.scratch(np.empty(0)), sampling.perturbation(), np.empty(0)
    for generation in range(1, generations + 1):
        place = sampling.Place(np.uint64(seed), generation, 0, 0, np.log(0.98))
        for row in range(1 if generation == 1 else n_elite, size):
            random_streams.normal_tile(
                np.uint64(seed), random_streams.NORMAL, generation, row, 0, scratch
            )
            normals += scratch.numbers[:2].tolist()
            if generation > 1:
                factors = np.ones(2)
                sampling.perturb(factors, place, row, 0, hits, none)
                for factor in factors.tolist():  # the uniforms are next to what decides, 0.02
                    uniforms += [0.02] if factor == 1 else [np.nextafter(0.02, 0), factor - 0.5]
        words = [
            random_streams.words(seed, random_streams.DESCENT_ROWS, generation, 0, i)[0]
            for i in range(4)
        ]
        uniforms += [int(word) / 2**32 for word in words]
    return normals, uniforms


def compare(
    page: MiniRacer,
    function: str,
    x0: list[float],
    seed: int = 4,
    generations: int = 60,
    **settings: Any,
) -> list[leamvd.State]:
    """Hold every state of a run in the page to the library's; return the library's.

    With this seed no population gets a million times smaller than its first coordinates, whose
    rounding stays in it.
    """
    own = json.loads(page.eval("JSON.stringify(DEFAULTS)")) | settings
    reading = {
        name: own[name]
        for name in ("shift", "reset", "perturbation", "exponent", "path", "descent")
    }
    start = {name: own[name] for name in ("sigma0", "population_size", "n_elite")}
    opt = leamvd.LEAMVD(
        x0, **start, n_gen=generations, sigma_min=0, seed=seed, reading=leamvd.Reading(**reading)
    )
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
    # Eq. 4
    v = (
        state.beta2 * state.path
        + (1 - state.beta2) * (settings["descent"] != "off") * step * state.descent
    )
    width = float(np.ptp(state.population, axis=0).max())
    scales = dict.fromkeys(
        ("population", "mean", "path", "v", "descent_mean", "descent_std"), width
    )
    assert set(mine) == {*state._fields, "v"} - {
        "nfev",
        "n_nan",
        "n_inf",
        "std_norm",
        "descent_norm",
    }
    for name, value in mine.items():
        if name == "initial_std" and settings["reset"] != "initial":
            continue  # the library keeps it only where it is used
        expected = v if name == "v" else getattr(state, name)
        atol = 1e-9 * scales.get(name, float(np.abs(expected).max()))
        np.testing.assert_allclose(
            value, expected, rtol=0, atol=atol, err_msg=f"{name}, {state.generation}"
        )


STARTS = {
    "sphere": [3.0, -2.0],
    "ellipsoid": [-1.5, 2.5],
    "rosenbrock": [-2.2, 0.5],
    "rastrigin": [2.9, 1.1],
}
SWITCHES = {
    "shift": ("toward_best", "printed"),
    "reset": (1, "initial", "off"),
    "perturbation": ("entry", "added", "off"),
    "path": ("on", "off"),
    "descent": ("orthogonal", "off"),
}


@pytest.mark.parametrize("function", STARTS)
@pytest.mark.parametrize("switches", list(itertools.product(*SWITCHES.values())), ids=str)
def test_the_page_and_the_library_are_in_the_same_state(
    page: MiniRacer, function: str, switches: tuple[Any, ...]
) -> None:
    settings = dict(zip(SWITCHES, switches, strict=True))
    # populations shrink to rounding
    few = {} if settings["perturbation"] == "entry" else {"generations": 30}
    compare(page, function, STARTS[function], sigma0=1.0, **few, **settings)


@pytest.mark.parametrize("reset", [1, 0.5, "initial"])
@pytest.mark.parametrize("shift", SWITCHES["shift"])
def test_where_the_search_is_reset(page: MiniRacer, shift: str, reset: Any) -> None:
    """From a start solution that is close to the optimum, as in the section's figure on resets."""
    states = compare(page, "ellipsoid", [1e-6, -1e-6], shift=shift, reset=reset)
    back = [
        now.fitness[0] == old.fitness[0] and now.stagnation == 0
        for old, now in itertools.pairwise(states)
    ]
    assert sum(back) == 5


def test_where_it_would_be_reset_but_for_the_switch(page: MiniRacer) -> None:
    states = compare(page, "ellipsoid", [0.0, 0.0], generations=30, reset="off")
    assert states[-1].stagnation == 29


@pytest.mark.parametrize(
    "settings",
    [
        {"exponent": 0},
        {"exponent": 4.0},
        {"population_size": 6, "n_elite": 1},
        {"population_size": 40, "n_elite": 15},
        {"sigma0": 0.03},
    ],
    ids=str,
)
def test_settings_are_those_of_the_library(page: MiniRacer, settings: dict[str, Any]) -> None:
    compare(page, "rosenbrock", [-2.2, 0.5], **settings)


def test_the_defaults_are_those_of_the_library(page: MiniRacer) -> None:
    defaults, reading = json.loads(page.eval("JSON.stringify(DEFAULTS)")), leamvd.Reading()
    opt = leamvd.LEAMVD([0.0, 0.0])
    known = [opt if hasattr(opt, name) else reading for name in defaults]
    assert defaults == {
        name: getattr(owner, name) for name, owner in zip(defaults, known, strict=True)
    }


# ---- what the page's text says


def searched(
    page: MiniRacer,
    function: str,
    x0: list[float],
    generations: int = 120,
    seed: int = 1,
    **settings: Any,
) -> Any:
    """Return the states of a run of the page."""
    return json.loads(
        page.eval(f"seeded(...{json.dumps([function, x0, settings, seed, generations])})")
    )


@pytest.mark.parametrize("P", [[0, 0], [1, 2]])
def test_a_population_at_one_point_has_no_direction(page: MiniRacer, P: list[float]) -> None:
    found = page.eval(f"JSON.stringify(orthogonalDescent([[0, 0], [0, 0]], {P}))")
    assert np.abs(json.loads(found)).tolist() == [0, 0]


def test_every_seed_has_numbers_of_its_own(page: MiniRacer) -> None:
    seeds = [0, 1, 65_535, 65_536, 65_537, 2**20 + 1, 2**31, 2**32 - 1]
    first = page.eval(f"JSON.stringify({seeds}.map((seed) => draws(seed).uniform()))")
    assert len({*json.loads(first)}) == len(seeds)


def of_controls(page: MiniRacer, values: dict[str, Any]) -> Any:
    """Return the states of a run with what the controls say."""
    own = {name: number(str(value)) for name, value in values.items() if name in SEARCHED}
    return searched(
        page, own.pop("function"), [own.pop("x1"), own.pop("x2")], int(values["generation"]), **own
    )


SEARCHED = (
    "function",
    "x1",
    "x2",
    "seed",
    "sigma0",
    "population_size",
    "n_elite",
    "shift",
    "reset",
    "perturbation",
    "exponent",
    "path",
    "descent",
)


def number(text: str) -> Any:
    """Return what a control says, numbers as numbers."""
    return float(text) if re.fullmatch(r"-?[\d.]+(?:e-?\d+)?", text) else text


def error(states: Any) -> float:
    value: float = states[-1]["fitness"][0]
    return value


def test_draws_are_uniform_and_normal_and_differ_between_seeds(page: MiniRacer) -> None:
    program = (
        "JSON.stringify([1, 2].map((seed) => { const d = draws(seed); return Array.from({ length:"
        " 4000 }, d.%s); }))"
    )
    uniform, normal = (
        np.array(json.loads(page.eval(program % name))) for name in ("uniform", "normal")
    )
    for values, cdf in ((uniform, "uniform"), (normal, "norm")):
        assert abs(np.corrcoef(values)[0, 1]) < 0.05
        assert abs(np.corrcoef(values[0, 1:], values[0, :-1])[0, 1]) < 0.05
        assert stats.kstest(values[0], cdf).pvalue > 0.01


def test_the_path_overshoots(page: MiniRacer) -> None:
    states = searched(page, "ellipsoid", [-3, 2], 60)
    means = [state["mean"][0] for state in states]
    assert max(state["beta1"] for state in states) == 3
    assert max(means) > 1.5  # past the optimum at zero
    turn = means.index(max(means))
    assert states[turn + 2]["beta1"] < 1.5
    assert abs(means[-1]) < 0.2


def test_the_path_decides_and_the_other_direction_does_not(page: MiniRacer) -> None:
    start = [-2.5, 1.5]
    default = error(searched(page, "rosenbrock", start))
    assert default < 1e-3
    assert error(searched(page, "rosenbrock", start, path="off")) > 1
    for change in ({"descent": "off"}, {"shift": "printed"}):
        assert error(searched(page, "rosenbrock", start, **change)) < 1e-2
    betas = [state["beta2"] for state in searched(page, "rosenbrock", start)]
    assert np.mean(np.array(betas) >= 0.9) > 0.5


def test_the_reset_is_a_trap_near_an_optimum_and_helps_among_many(page: MiniRacer) -> None:
    trapped = searched(page, "ellipsoid", [1e-5, -1e-5])
    assert error(trapped) == trapped[0]["fitness"][0]
    assert [k + 1 for k, state in enumerate(trapped) if state["std"] == [1, 1]] == list(
        range(11, 121, 10)
    )
    assert error(searched(page, "ellipsoid", [1e-5, -1e-5], reset="off")) < 1e-3 * error(trapped)
    assert error(searched(page, "rastrigin", [-3, 2], sigma0=0.5, reset="off")) > 0.9
    assert error(searched(page, "rastrigin", [-3, 2], sigma0=0.5)) < 1e-3


# ---- the page


def address(name: str) -> str:
    """Return the end of the page's address where it shows a preset; it opens with the first one."""
    return "" if name == "opening" else name.replace("directions-", "#play-")


def offered(select: Tag) -> list[str]:
    return [option.get("value", option.text) for option in select("option")]


def first_value(control: Tag) -> str:
    """Return what a control says at first."""
    chosen = control.select_one("option[selected]") or control.select_one("option") or control
    return str(chosen.get("value", "" if control.name == "button" else chosen.text))


def test_every_control_has_a_label() -> None:
    assert len(CONTROLS) > 15
    assert [
        name for name, tag in CONTROLS.items() if not (tag.find_parent("label") or tag).text.strip()
    ] == []
    assert [tag for tag in PAGE("svg") if not tag.get("aria-label")] == []


def test_controls_are_the_settings_of_the_algorithm_and_their_defaults(page: MiniRacer) -> None:
    defaults = json.loads(page.eval("JSON.stringify(DEFAULTS)"))
    assert {name: first_value(CONTROLS[name]) for name in defaults} == {
        k: str(v) for k, v in defaults.items()
    }


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_what_controls_take(name: str) -> None:
    for control, value in PRESETS[name].items():
        known = CONTROLS[control]
        if known.name == "select":
            assert str(value) in offered(known)
        else:
            assert float(known["min"]) <= value <= float(known["max"])


def test_nothing_is_fetched() -> None:
    own = [
        name for name in TEXTS if name.startswith(("playground.", "lea_mvd", "functions", "random"))
    ]
    scripts = [name for name in own if not name.endswith(".svg")]
    assert len(scripts) == 6
    for name in scripts:
        assert not re.search(
            r"\w://|fetch\(|XMLHttpRequest|^import |import\(", TEXTS[name], re.MULTILINE
        ), name
    d3 = TEXTS["d3.min.js"].split("\n", 1)[1]
    assert all(url.startswith("http://www.w3.org/") for url in re.findall(r"https?://[^\"\s]+", d3))
    assert "Mike Bostock" in (STATIC / "d3.LICENSE.txt").read_text(encoding="utf-8")


def test_the_static_figure_is_of_the_opening() -> None:
    drawn = runpy.run_path(str(ROOT / "book" / "playground.py"))
    said = {"function": first_value(CONTROLS["function"])} | PRESETS["opening"]
    assert drawn["CONTROLS"] == said
    assert "view" not in said, "the whole function"
    assert "shift" not in said, "the library runs its default"


def test_the_static_figure_shows_the_states_of_its_search() -> None:
    """In the colors of the page, by daylight."""
    drawn = runpy.run_path(str(ROOT / "book" / "playground.py"))
    states, figure = drawn["states"](), drawn["figure"]()
    colors = dict(
        re.findall(
            r"--(path|descent|shift|model): (#\w+);", TEXTS["playground.css"].partition("[data-")[0]
        )
    )
    *charts, plane = figure.axes
    plt.close(figure)
    state = states[-1]
    P, C, mean = state.path, state.descent, state.mean
    v = state.beta2 * P + (1 - state.beta2) * abs(state.descent_mean) * C  # eq. (4)

    assert plane.get_title() == "ellipsoid, generation 4"
    assert plane.get_xlim() == plane.get_ylim() == (-4, 4)
    assert_apart(P, C, v, state.std)
    (ellipse,) = plane.patches
    np.testing.assert_allclose(ellipse.center, mean)
    np.testing.assert_allclose(
        [ellipse.width / 2, ellipse.height / 2, ellipse.angle], [*state.std, 0]
    )
    assert to_hex(ellipse.get_edgecolor()) == colors["model"]
    best, center, *arrows = plane.lines
    for marked, point, marker in ((best, state.population[0], "*"), (center, mean, "+")):
        assert marked.get_marker() == marker
        np.testing.assert_allclose(marked.get_xydata(), [point])
    elites = {"the others": slice(4, None), "elites": slice(4)}
    for label, rows in elites.items():
        (points,) = (drawn for drawn in plane.collections if drawn.get_label() == label)
        np.testing.assert_allclose(points.get_offsets(), state.population[rows])
        ranks = np.arange(len(state.population))
        shades = plt.colormaps["viridis"](ranks[rows] / len(ranks))
        points.update_scalarmappable()
        np.testing.assert_allclose(points.get_facecolor(), shades, err_msg="by rank, of them all")
    ends = []
    for axis, limits in enumerate((plane.get_xlim(), plane.get_ylim())):
        reach = np.append(
            state.population[:, axis], mean[axis] + state.std[axis] * np.array([-1, 1])
        )
        assert limits[0] < reach.min() < reach.max() < limits[1], "all of it is in the picture"
    for arrow, word, name, vector in zip(
        arrows, plane.texts, ("shift", "path", "descent"), (v, P, C), strict=True
    ):
        start, end = arrow.get_xydata()
        np.testing.assert_allclose(start, mean)
        np.testing.assert_allclose(
            (end - start) / np.linalg.norm(end - start), vector / np.linalg.norm(vector)
        )
        np.testing.assert_allclose(word.xy, end)
        assert arrow.get_color() == word.get_color() == colors[name]
        ends.append(np.linalg.norm(end - start))
    assert ends == pytest.approx([1.5 * ends[1], ends[1], ends[1]])
    assert [word.get_text() for word in plane.texts] == ["v", "P", "$C_{ani}$"]

    curves = {
        "error of the best": [[one.fitness[0] for one in states]],
        "step sizes": [[getattr(one, beta) for one in states] for beta in ("beta1", "beta2")],
        r"$\|\sigma\| / \sqrt{n}$": [[np.sqrt(np.mean(one.std**2)) for one in states]],
    }
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("$x_1$", "$x_2$")
    assert_sound(figure)
    assert [chart.get_title() for chart in charts] == [*curves]
    for chart, lines in zip(charts, curves.values(), strict=True):
        assert chart.get_yscale() == ("linear" if len(lines) == 2 else "log")
        for curve, values in zip(chart.lines, lines, strict=True):
            np.testing.assert_allclose(curve.get_xydata(), [*enumerate(values, start=1)])
    assert [line.get_color() for line in charts[1].lines] == [
        colors["model"],
        colors["path"],
    ], "as on the page"
    assert [text.get_text() for text in charts[1].get_legend().texts] == [
        r"$\beta_1$",
        r"$\beta_2$",
    ]


def test_marks_and_contours_of_the_static_figure_are_those_of_the_page() -> None:
    drawn = runpy.run_path(str(ROOT / "book" / "playground.py"))
    figure = drawn["figure"]()
    plt.close(figure)
    *charts, plane = figure.axes
    best, center, *_ = plane.lines
    marks = {"best": best.get_marker(), "mean": center.get_marker()}
    assert marks == {"best": "*", "mean": "+"}
    for points in plane.collections:
        if points.get_label() in ("elites", "the others"):
            (path,) = points.get_paths()
            is_round = path.codes is not None and 4 in path.codes  # curves
            assert is_round == (points.get_label() == "the others")
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words[:3] == ["the others", "elites", "the best"]
    assert words[3].startswith("mean")
    side = np.linspace(-4, 4, 60)
    values = drawn["COST"](np.stack(np.meshgrid(side, side), axis=-1))
    (contours,) = (one for one in plane.collections if hasattr(one, "levels"))
    shares = [np.mean(values <= level) for level in contours.levels]
    expected = (np.arange(14) / 13) ** 1.5
    np.testing.assert_allclose(shares, expected, atol=5e-3, err_msg="as on the page")
    assert charts[1].get_ylim() == (0, 3.2), "the step size is at most 3"
    assert charts[2].get_xlabel() == "generation"
    styles = [line.get_linestyle() for line in charts[1].lines]
    assert styles == ["-", "--"], "as on the page"


# ---- what a reader sees, drawn by the script in a page without a browser

REACTIONS = """
function drawn() {
  const shapes = (name, selector) => root_.querySelector(`svg.${name}`).querySelectorAll(selector);
  const known = (node) => ({ ...node.attributes, text: node.textContent });
  const ticks = (node) => node.querySelectorAll(".tick").map((tick) => known(tick));
  const charts = Object.fromEntries(["errors", "betas", "widths"].map((name) => [name, {
    title: shapes(name, ".name").map((node) => node.textContent).join(),
    axes: shapes(name, "g").filter((node) =>
      node.querySelector(".tick") && !(node.attributes.class ?? "").includes("tick")).map(ticks),
    curves: shapes(name, "path.curve").map(known), marks: shapes(name, ".reset").map(known),
    ends: shapes(name, "circle.curve").map(known),
  }]));
  const arrows = shapes("plot", "g.arrow").map((arrow) => [arrow.attributes.class.split(" ")[1],
    { ...known(arrow), stem: arrow.querySelector("path").attributes.d,
      word: arrow.querySelectorAll("text").map((node) => node.textContent).join(),
      label: arrow.querySelector("text").attributes.transform }]);
  const values = Object.fromEntries(root_.querySelectorAll("[data-value]").map((node) =>
    [node.attributes["data-value"], node.textContent]));
  const status = root_.querySelector("p").textContent;
  const axes = shapes("plot", "g").filter((node) => node.attributes["font-family"]).slice(0, 2);
  const plane = { axes: axes.map(ticks), ellipse: known(shapes("plot", ".sigma")[0]),
    names: shapes("plot", "text.name").map((node) => node.textContent),
    inU: shapes("plot", ".in-u").map(known), points: shapes("plot", ".point").map(known),
    best: shapes("plot", ".best").map(known),
    mean: shapes("plot", ".mean").map(known), size: shapes("plot", "svg.area")[0].width,
    contours: shapes("plot", "g.contours").map(known),
    rings: shapes("plot", "g.contours")[0].querySelectorAll("path").map(known) };
  return JSON.stringify({ plane, charts, arrows: Object.fromEntries(arrows), values, status,
    settings: Object.fromEntries(new FormData({ elements: controls_ })) });
}
function opened(hash) { location.hash = hash; window.hashchange(); return drawn(); }
function changed(name, value) {
  controls_[name].value = value;
  controls_.form.oninput({ target: controls_[name] });
  return drawn();
}
function pressed(name) { controls_[name].onclick(); return drawn(); }
function typed(key, inside) {
  root_.onkeydown({ key, target: { closest: () => inside ?? null }, preventDefault() {} });
  return drawn();
}
function clicked(clientX, clientY) {
  const area = root_.querySelector("svg.plot").querySelector("svg.area");
  area.listeners.click({ currentTarget: area, clientX, clientY });
  return drawn();
}
let timer_ = null;
d3.interval = (act, wait) => (timer_ = { act, wait, stop() { timer_ = null; } });
"""


@pytest.fixture(scope="module")
def reader(page: MiniRacer) -> MiniRacer:
    """The page with its controls, in which the script has run."""
    controls = {
        name: {
            "name": name,
            "tag": "button" if tag.name == "button" else "input",
            "value": first_value(tag),
            "max": tag.get("max", ""),
        }
        for name, tag in CONTROLS.items()
    }
    page.eval((ROOT / "tests" / "page_stub.js").read_text(encoding="utf-8"))
    stand = f"stand(controls_, {OUTPUTS}, {json.dumps(PRESETS)})"
    page.eval(f"const controls_ = {json.dumps(controls)}; const root_ = {stand};")
    page.eval("Object.defineProperty(controls_, 'form', { value: root_.querySelector('form') })")
    page.eval(f"{{ {TEXTS['playground.js']} }}")
    page.eval(REACTIONS)
    return page


def is_reset(states: list[dict[str, Any]], k: int) -> bool:
    return (
        k > 0
        and states[k]["stagnation"] == 0
        and states[k]["fitness"][0] == states[k - 1]["fitness"][0]
    )


def assert_shown(states: list[dict[str, Any]], shown: dict[str, Any]) -> None:
    """Hold every readout, point, arrow and curve to the states."""
    now, values = states[-1], shown["values"]
    P, C, v = (np.array(now[name]) for name in ("path", "descent", "v"))
    numbers = {
        name: np.linalg.norm(now["v" if name == "shift" else name])
        for name in ("path", "descent", "shift")
    }
    for name, value in numbers.items() | {
        (name, now[name]) for name in ("beta1", "beta2", "generation")
    }:
        assert float(values[name].replace("\N{MINUS SIGN}", "-")) == pytest.approx(
            value, rel=6e-3
        ), name
    assert [float(text) for text in values["std"].split(", ")] == pytest.approx(
        now["std"], rel=6e-3
    )
    if not (P.any() and C.any()):
        assert values["angle"] == "–"
    else:
        angle = np.degrees(np.arccos(P @ C / np.linalg.norm(P) / np.linalg.norm(C)))
        assert float(values["angle"].removesuffix("°")) == pytest.approx(angle, abs=0.6)
    settings = shown["settings"]
    assert_plane(now, shown["plane"], settings["view"], settings["n_elite"])
    last = len(states) - 1
    said = (
        "first population"
        if last == 0
        else (
            "reset"
            if is_reset(states, last)
            else (
                "a new best" if now["fitness"][0] != states[-2]["fitness"][0] else "no better best"
            )
        )
    )
    status = re.fullmatch(rf"Generation {last + 1}: error (\S+), {said}\.", shown["status"])
    assert status
    error = float(status[1].replace("\N{MINUS SIGN}", "-"))
    assert error == pytest.approx(now["fitness"][0], rel=6e-3), "of the best"
    lengths = {}
    for name, vector in {"path": P, "descent": C, "shift": v}.items():
        if vector.any():
            (turned,) = re.findall(r"rotate\((\S+)\)", shown["arrows"][name]["transform"])
            # y points up
            direction = np.array(
                [np.cos(np.radians(float(turned))), -np.sin(np.radians(float(turned)))]
            )
            np.testing.assert_allclose(
                direction, vector / np.linalg.norm(vector), atol=1e-6, err_msg=name
            )
            arrow = shown["arrows"][name]
            assert arrow["word"] == {"path": "P", "descent": "C", "shift": "v"}[name]
            lengths[name] = float(arrow["stem"].removeprefix("M0,0H"))
    unit = lengths.get("path", lengths.get("descent"))
    assert min(lengths.values(), default=44) >= 44, "an arrow can be seen"
    for name, length in lengths.items():
        assert length == pytest.approx((1.5 if name == "shift" else 1) * unit)
    if unit is not None and unit != 44:  # pixels at least, else as long as σ
        across = axis(shown["plane"]["axes"][0], 0)
        assert across(unit) - across(0) == pytest.approx(np.linalg.norm(now["std"]), rel=1e-3)
    curves = {
        "errors": [[state["fitness"][0] for state in states]],
        "betas": [[state[name] for state in states] for name in ("beta1", "beta2")],
        "widths": [[np.linalg.norm(state["std"]) / np.sqrt(2) for state in states]],
    }
    for name, lines in curves.items():
        chart = shown["charts"][name]
        x, y = (axis(ticks, place) for place, ticks in enumerate(chart["axes"]))
        assert chart["title"] == TITLES[name]
        assert [curve["class"] for curve in chart["curves"]] == KINDS[name]
        assert len(chart["axes"][1]) <= 5, "numbers of an axis have room"
        for line, curve in zip(lines, chart["curves"], strict=True):
            points = [point.split(",") for point in re.findall(r"[ML]([^MLZ]+)", curve["d"])]
            across, up = np.array(points, dtype=float).T
            assert 0 <= across.min() <= across.max() <= WIDTH
            assert 0 <= up.min() <= up.max() <= HEIGHT, "all of it is in the picture"
            (end,) = (one for one in chart["ends"] if one["class"] == curve["class"])
            assert [float(end["cx"]), float(end["cy"])] == pytest.approx(
                [across[-1], up[-1]], abs=1e-2
            )
            np.testing.assert_allclose(x(across), np.arange(1, len(states) + 1), atol=0.02)
            np.testing.assert_allclose(
                y(up, log=name != "betas"), line, rtol=0.02, atol=0.01 * (name == "betas")
            )
        marks = [float(x(float(re.findall(r"M([^,]+)", mark["d"])[0]))) for mark in chart["marks"]]
        resets = [k + 1 for k in range(len(states)) if is_reset(states, k)]
        np.testing.assert_allclose(
            marks, resets, atol=0.02, err_msg="dotted lines stand at the resets"
        )


KINDS = {"errors": ["curve error"], "betas": ["curve beta1", "curve beta2"]}
KINDS["widths"] = ["curve width"]
WIDTH = 400  # pixels, of the stub's pictures
HEIGHT = 300
TITLES = {"errors": "error of the best", "betas": "β₁ (solid), β₂ (dashed)", "widths": "‖σ‖ / √n"}


def assert_plane(
    now: dict[str, Any], plane: dict[str, Any], view: str, n_elites: str = "4"
) -> None:
    """Hold the ellipse and the marks to a state, within a thousandth of what the axes show."""
    x, y = (axis(ticks, place) for place, ticks in enumerate(plane["axes"]))
    near = {"atol": 1e-3 * (x(300) - x(0))}

    def places(marks: list[dict[str, str]]) -> Any:
        moved = [re.findall(r"-?[\d.]+(?:e-?\d+)?", mark["transform"]) for mark in marks]
        pixels = np.array(moved, dtype=float)
        return np.column_stack([x(pixels[:, 0]), y(pixels[:, 1])])

    cx, cy, rx, ry = (float(plane["ellipse"][name]) for name in ("cx", "cy", "rx", "ry"))
    np.testing.assert_allclose([x(cx), y(cy)], now["mean"], **near)
    np.testing.assert_allclose([x(rx) - x(0), y(0) - y(ry)], now["std"], **near)
    population = np.array(now["population"])
    np.testing.assert_allclose(places(plane["best"]), population[:1], **near)
    np.testing.assert_allclose(places(plane["mean"]), [now["mean"]], **near)
    half = (x(plane["size"]) - x(0)) / 2
    if view == "population":
        away = np.linalg.norm(population - now["mean"], axis=1).max()
        least = max(away, 1.2 * np.linalg.norm(now["std"]))
        power = np.log2(half)
        assert power == pytest.approx(round(power), abs=1e-3), "so that it seldom jumps"
        assert half / 2 * 0.999 <= least <= half * 1.001
        reach = np.vstack([population, np.add(now["mean"], now["std"])])
        assert x(0) <= reach[:, 0].min() <= reach[:, 0].max() <= x(plane["size"])
        assert y(plane["size"]) <= reach[:, 1].min() <= reach[:, 1].max() <= y(0)
    # the best lies on top
    np.testing.assert_allclose(places(plane["points"]), population[::-1], **near)
    drawn_for_u = [population[k] for k in range(len(population)) if k in now["descent_rows"]]
    np.testing.assert_allclose(places(plane["inU"]), drawn_for_u[::-1], **near)
    assert plane["names"] == ["x₁", "x₂"]
    if view == "whole":
        sides = [x(0), x(plane["size"]), y(plane["size"]), y(0)]
        np.testing.assert_allclose(sides, [-4, 4, -4, 4], **near)
    ranks = np.arange(len(population))[::-1]
    fills = [to_rgba(mark["fill"]) for mark in plane["points"]]
    shades = plt.colormaps["viridis"](ranks / ranks[0])
    np.testing.assert_allclose(fills, shades, atol=0.02, err_msg="colors are by rank")

    n_elite = int(n_elites)
    shapes = [shape_of(mark["d"]) for mark in plane["points"]]
    assert shapes == [LEGEND["the others"]] * (len(ranks) - n_elite) + [LEGEND["elites"]] * n_elite
    assert [shape_of(mark["d"]) for mark in plane["best"]] == [LEGEND["best"]]
    assert [shape_of(mark["d"]) for mark in plane["mean"]] == [LEGEND["mean"]]
    widest = max(width_of(mark["d"]) for mark in plane["points"])
    for mark in plane["inU"]:
        assert shape_of(mark["d"]) == "●"
        assert width_of(mark["d"]) > widest, "a circle is around its point"


LEGEND = {
    words: sign
    for sign, words in re.findall(
        r"([★◆●+])\s+(best|elites|the others|mean)", PAGE.select_one(".playground-legend").text
    )
}


def shape_of(path: str) -> str:
    """Return the sign of the legend that a mark is."""
    if "A" in path:
        return "●"
    corners = len(re.findall("[MLHV]", path))
    return {10: "★", 4: "◆" if path.endswith("Z") else "+"}[corners]


def width_of(path: str) -> float:
    return max(abs(float(place)) for place in re.findall(r"-?[\d.]+", path))


def holes(plane: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Return center and half widths, in pixels, of the part below each contour."""
    (scale,) = (float(part["transform"][6:-1]) for part in plane["contours"])
    found = []
    for ring in plane["rings"]:
        rings = [
            scale * np.array(re.findall(r"-?[\d.]+", part), dtype=float).reshape(-1, 2)
            for part in ring["d"].split("M")[1:]
        ]
        inside = min(rings, key=lambda points: np.ptp(points, axis=0).prod())
        low, high = inside.min(axis=0), inside.max(axis=0)
        found.append(((low + high) / 2, (high - low) / 2))
    return found


@pytest.mark.parametrize(("function", "ratio", "count"), [("sphere", 1, 10), ("ellipsoid", 10, 2)])
def test_contours_have_their_share_of_the_plane_below_them(
    reader: MiniRacer, function: str, ratio: int, count: int
) -> None:
    """Of x^2 + y^2 circles; of x^2 + 100 y^2 ellipses, ten times as wide as they are high."""
    reader.eval('opened("#play-2d"), changed("view", "whole")')
    plane = json.loads(reader.eval(f'changed("function", "{function}")'))["plane"]
    x, y = (axis(ticks, place) for place, ticks in enumerate(plane["axes"]))
    for k, (center, halves) in enumerate(holes(plane)[:count], start=1):
        assert [x(center[0]), y(center[1])] == pytest.approx([0, 0], abs=0.02)
        area = plane["size"] ** 2 * (k / 13) ** 1.5
        height = np.sqrt(area / (np.pi * ratio))
        assert halves.tolist() == pytest.approx([ratio * height, height], abs=2)
    assert len(plane["rings"]) == 12


def axis(ticks: list[dict[str, str]], place: int) -> Callable[..., Any]:
    """Return what turns a place in pixels into the number that the axis shows there."""
    spots = [float(re.findall(r"-?[\d.]+(?:e-?\d+)?", tick["transform"])[place]) for tick in ticks]
    numbers = np.array([float(tick["text"].replace("\N{MINUS SIGN}", "-")) for tick in ticks])

    def value(pixels: Any, log: bool = False) -> Any:
        slope, start = np.polyfit(spots, np.log10(numbers) if log else numbers, 1)
        found = slope * np.asarray(pixels) + start
        return 10.0**found if log else found

    return value


def test_the_page_opens_with_what_can_be_seen(reader: MiniRacer) -> None:
    """Where first standard deviations are 1, and P, C, v and the ellipse stand apart."""
    reader.eval('opened("#play-2d")')
    shown = json.loads(reader.eval('opened("")'))
    said = [shown["settings"][name] for name in ("view", "sigma0", "preset")]
    assert said == ["whole", "1", ""]
    states = of_controls(reader, shown["settings"])
    assert_shown(states, shown)
    assert_apart(*(np.array(states[-1][name]) for name in ("path", "descent", "v", "std")))


def assert_apart(P: np.ndarray, C: np.ndarray, v: np.ndarray, std: np.ndarray) -> None:
    """Hold directions to angles that can be seen, v between the others, and the ellipse to a size
    that can, in a view of 8 by 8.
    """
    units = [vector / np.linalg.norm(vector) for vector in (P, v, C)]
    angles = [float(np.degrees(np.arccos(a @ b))) for a, b in itertools.combinations(units, 2)]
    to_v, whole, from_v = angles
    assert min(angles) > 20
    assert to_v + from_v == pytest.approx(whole)
    assert min(std) > 0.3


@pytest.mark.parametrize("name", PRESETS)
def test_the_page_shows_the_states_of_a_preset(reader: MiniRacer, name: str) -> None:
    shown = json.loads(reader.eval(f"opened({json.dumps(address(name))})"))
    assert {control: number(shown["settings"][control]) for control in PRESETS[name]} == PRESETS[
        name
    ]
    states = of_controls(reader, shown["settings"])
    assert len(states) == PRESETS[name]["generation"]
    assert_shown(states, shown)


@pytest.mark.parametrize(
    ("control", "value"),
    [
        ("function", "sphere"),
        ("x1", "1.5"),
        ("x2", "-2.5"),
        ("seed", "5"),
        ("sigma0", "0.4"),
        ("population_size", "30"),
        ("population_size", "5"),
        ("n_elite", "2"),
        ("shift", "printed"),
        ("reset", "off"),
        ("exponent", "0.5"),
        ("perturbation", "added"),
        ("perturbation", "off"),
        ("path", "off"),
        ("descent", "off"),
        ("generation", "35"),
    ],
)
def test_a_changed_setting_is_shown_at_once(reader: MiniRacer, control: str, value: str) -> None:
    before = json.loads(reader.eval('opened("#play-orthogonality")'))
    reader.eval('changed("x1", "0.00001"), changed("x2", "-0.00001"), changed("generation", "25")')
    shown = json.loads(reader.eval(f"changed({json.dumps(control)}, {json.dumps(value)})"))
    assert shown["values"] != before["values"]
    assert_shown(of_controls(reader, shown["settings"]), shown)


def test_one_individual_of_any_population_is_drawn_anew(reader: MiniRacer) -> None:
    reader.eval('changed("population_size", "9")')
    assert reader.eval("Number(controls_.n_elite.max)") == 8
    reader.eval('opened("#play-2d")')
    assert reader.eval("Number(controls_.n_elite.max)") == float(CONTROLS["n_elite"]["max"]) == 23


def test_buttons_and_keys_lead_through_the_generations(reader: MiniRacer) -> None:
    shown = json.loads(reader.eval('opened("#play-2d")'))
    now = int(shown["settings"]["generation"])
    acts = {
        'pressed("step")': now + 1,
        'typed("ArrowRight")': now + 2,
        'typed("ArrowRight", "an input")': now + 2,
        'pressed("back")': now + 1,
        'typed("ArrowLeft")': now,
        'pressed("restart")': 1,
    }
    for act, generation in acts.items():
        shown = json.loads(reader.eval(act))
        assert int(shown["settings"]["generation"]) == generation, act
        assert_shown(of_controls(reader, shown["settings"]), shown)


@pytest.mark.parametrize("act", ['pressed("play")', 'typed(" ")'])
def test_a_search_is_played_to_its_last_generation(reader: MiniRacer, act: str) -> None:
    reader.eval('opened("#play-2d"), changed("speed", "8"), changed("generation", "117")')
    before = reader.eval("history.address")
    reader.eval(act)
    assert reader.eval("[controls_.play.textContent, timer_.wait].join()") == "Pause,125"
    spoken = "root_.querySelector('p').getAttribute('aria-live')"
    assert reader.eval(spoken) == "off", "not of each generation"
    reader.eval("timer_.act()")
    assert reader.eval("controls_.generation.value") == "118"
    assert reader.eval("history.address") == before, "of where it stands still"
    reader.eval(act)
    assert reader.eval("[controls_.play.textContent, timer_ === null].join()") == "Play,true"
    assert "generation=118&" in reader.eval("history.address")
    assert reader.eval(spoken) == "polite"
    reader.eval(act)
    reader.eval("timer_.act(), timer_.act()")
    assert reader.eval("[controls_.play.textContent, timer_ === null].join()") == "Play,true"
    assert "generation=120&" in reader.eval("history.address")


@pytest.mark.parametrize("view", ["whole", "population"])
def test_a_click_in_the_plane_is_the_start_of_another_search(reader: MiniRacer, view: str) -> None:
    reader.eval('opened("#play-orthogonality")')
    shown = json.loads(reader.eval(f'changed("view", "{view}")'))
    x, y = (axis(ticks, place) for place, ticks in enumerate(shown["plane"]["axes"]))
    shown = json.loads(reader.eval("clicked(120, 60)"))
    settings = shown["settings"]
    start = [float(settings[name]) for name in ("x1", "x2")]
    assert start == pytest.approx([x(120), y(60)], abs=1e-3 * (x(300) - x(0)))
    assert (settings["generation"], settings["preset"]) == ("1", "")
    assert_shown(of_controls(reader, settings), shown)


def test_the_address_leads_back_to_what_is_shown(reader: MiniRacer) -> None:
    reader.eval('opened("#play-signs")')
    shown = json.loads(reader.eval('changed("x1", "0.75"), changed("reset", "off")'))
    assert shown["settings"]["preset"] == "", "it is no figure of the page any more"
    address = reader.eval("history.address")
    reader.eval('opened("#play-2d")')
    assert json.loads(reader.eval(f"opened({json.dumps(address)})")) == shown


def test_labels_of_arrows_keep_their_distance(reader: MiniRacer) -> None:
    for name in PRESETS:
        shown = json.loads(reader.eval(f"opened({json.dumps(address(name))})"))
        places = [
            re.findall(r"translate\((\S+),(\S+)\)", arrow["label"])[0]
            for arrow in shown["arrows"].values()
        ]
        spots = np.array(places, dtype=float)
        gaps = [np.linalg.norm(a - b) for a, b in itertools.combinations(spots, 2)]
        assert min(gaps, default=15) >= 14.9, name


def test_a_letter_stands_before_the_head_of_its_arrow(reader: MiniRacer) -> None:
    """Inside the frame; where another one stands there, above or below it, away from the nearer
    edge.
    """
    moved = 0
    for name in PRESETS:
        for view in ("whole", "population"):
            reader.eval(f"opened({json.dumps(address(name))})")
            shown = json.loads(reader.eval(f'changed("view", "{view}")'))
            size = shown["plane"]["size"]
            taken: list[Any] = []
            for arrow in shown["arrows"].values():
                start = np.array(re.findall(r"translate\((\S+), (\S+)\)", arrow["transform"])[0])
                (turn,) = re.findall(r"rotate\((\S+)\)", arrow["transform"])
                (back,) = re.findall(r"rotate\((\S+)\)", arrow["label"])
                assert float(turn) == -float(back), "a letter is upright"
                direction = np.array(
                    [np.cos(np.radians(float(turn))), np.sin(np.radians(float(turn)))]
                )
                mean = start.astype(float)
                before = float(arrow["stem"].removeprefix("M0,0H")) + 13
                free = np.clip(mean + before * direction, 9, size - 9)
                (place,) = re.findall(r"translate\((\S+),(\S+)\)", arrow["label"])
                letter = mean + np.array(place, dtype=float)
                assert letter[0] == pytest.approx(free[0], abs=1e-6)
                away = letter[1] - free[1]
                is_free = all(np.linalg.norm(free - other) > 14.9 for other in taken)
                assert (abs(away) < 1e-6) == is_free
                if not is_free:
                    moved += 1
                    assert (away < 0) == (free[1] > size / 2)
                taken.append(letter)
    assert moved > 0


def test_the_best_error_of_zero_and_equal_points_can_be_drawn(reader: MiniRacer) -> None:
    """At the optimum, where an error has no logarithm and P no direction."""
    reader.eval('opened("#play-2d"), changed("x1", "0"), changed("x2", "0")')
    shown = json.loads(reader.eval('changed("generation", "3")'))
    assert (shown["values"]["path"], shown["values"]["angle"]) == ("0", "–")
    assert {*shown["arrows"]} == {"shift", "descent"}
    assert shown["status"] == "Generation 3: error 0, no better best."
    for chart in shown["charts"].values():
        assert "NaN" not in json.dumps(chart)


def test_a_figure_of_the_page_is_chosen_by_its_address(reader: MiniRacer) -> None:
    reader.eval('opened(""), changed("preset", "directions-3d")')
    assert reader.eval("location.hash") == "play-3d", "which the browser follows"
    shown = json.loads(reader.eval('opened("#play-3d"), changed("generation", "8")'))
    assert shown["settings"]["preset"] == "directions-3d", "at another generation too"
    for name, value in (("view", "whole"), ("seed", "9"), ("path", "off")):
        reader.eval('opened("#play-3d")')
        shown = json.loads(reader.eval(f'changed("{name}", "{value}")'))
        assert shown["settings"]["preset"] == "", name
    reader.eval('location.hash = "stays"')
    reader.eval('changed("preset", "")')
    assert reader.eval("location.hash") == "stays"


def test_an_address_that_makes_no_sense_shows_the_defaults(reader: MiniRacer) -> None:
    usual = json.loads(reader.eval('opened("#seed=1")'))["settings"]
    assert usual == {name: first_value(CONTROLS[name]) for name in usual}
    try:
        reader.eval("controls_.form.checkValidity = () => controls_.sigma0.value !== '-1'")
        shown = json.loads(reader.eval('opened("#sigma0=-1&x1=2&nothing=3")'))
        assert shown["settings"] == usual
        shown = json.loads(reader.eval('opened("#x1=2&nothing=3")'))
        assert shown["settings"] == usual | {"x1": "2"}
    finally:
        reader.eval("controls_.form.checkValidity = () => true")


def test_nothing_is_computed_of_settings_that_are_no_numbers(reader: MiniRacer) -> None:
    before = json.loads(reader.eval('opened("#play-2d")'))
    try:
        reader.eval("controls_.form.reportValidity = () => false")
        shown = json.loads(reader.eval('changed("sigma0", "")'))
    finally:
        reader.eval("controls_.form.reportValidity = () => true")
    same = ("plane", "charts", "arrows", "values", "status")
    assert [shown[name] for name in same] == [before[name] for name in same]
    reader.eval('opened("#play-2d")')


def test_settings_that_are_folded_away_are_shown_where_they_are_not_the_usual_ones(
    reader: MiniRacer,
) -> None:
    folded = [tag["name"] for tag in PAGE.details("select")]
    reader.eval(
        f"""for (const name of {json.dumps(folded)}) {{
          const select = new Element("select");
          Object.defineProperty(select, "value", {{ get: () => controls_[name].value }});
          root_.querySelector("details").appendChild(Object.assign(select, {{ name }}));
        }}"""
    )
    for name, is_open in {"2d": False, "3d": True}.items():
        reader.eval(f'root_.querySelector("details").open = false, opened("#play-{name}")')
        assert reader.eval('root_.querySelector("details").open') == is_open


def test_a_page_that_is_led_to_by_an_address_begins_with_the_playground(reader: MiniRacer) -> None:
    assert reader.eval("root_.hidden") is False
    assert reader.eval("document.told") == "playground-runs", "which hides the static figure"
    for fragment, by in (("", 0), ("#play-2d", 1)):
        before = reader.eval("root_.scrolled ?? 0")
        reader.eval(f'opened("{fragment}")')
        assert reader.eval("root_.scrolled ?? 0") == before + by


def test_a_changed_speed_is_that_of_the_search_that_plays(reader: MiniRacer) -> None:
    reader.eval('opened("#play-2d"), changed("speed", "2")')
    assert reader.eval("timer_ === null"), "it still stands"
    reader.eval('pressed("play")')
    first = reader.eval("timer_.wait")
    reader.eval('changed("speed", "16")')
    assert (first, reader.eval("timer_.wait")) == (500, 62.5)
    assert reader.eval("controls_.play.textContent") == "Pause"
    reader.eval('opened("#play-2d")')
    assert reader.eval("timer_ === null"), "another view stands"
    reader.eval('pressed("play"), pressed("restart")')
    assert reader.eval("timer_ === null")
    reader.eval('changed("speed", "4")')


def test_keys_that_mean_something_else_are_left_alone(reader: MiniRacer) -> None:
    reader.eval(
        """function held(key, more, on) {
          let kept = false;
          const closest = (names) => names.split(", ").includes(on) ? {} : null;
          root_.onkeydown({ key, ...more, target: { closest }, preventDefault() { kept = true; } });
          return [controls_.generation.value, timer_ !== null, kept].join();
        }"""
    )
    reader.eval('opened("#play-2d")')
    for modifier in ("altKey", "ctrlKey", "metaKey"):
        for key in ("ArrowRight", " "):
            assert reader.eval(f'held("{key}", {{ {modifier}: true }})') == "7,false,false"
    for on in ("input", "select", "summary"):
        for key in ("ArrowRight", " "):
            assert reader.eval(f'held("{key}", {{}}, "{on}")') == "7,false,false", on
    assert reader.eval('held(" ", {}, "button")') == "7,false,false", "which it presses"
    assert reader.eval('held("x", {})') == "7,false,false"
    assert reader.eval('held("ArrowRight", {}, "button")') == "8,false,true"
    assert reader.eval('held("ArrowLeft", {})') == "7,false,true"
    assert reader.eval('held(" ", {})') == "7,true,true"
    reader.eval('opened("#play-2d")')


def test_presets_show_what_the_page_says_of_them(page: MiniRacer) -> None:
    opening = {name: first_value(CONTROLS[name]) for name in SEARCHED}

    def preset(name: str) -> list[dict[str, Any]]:
        states: list[dict[str, Any]] = of_controls(page, opening | PRESETS[f"directions-{name}"])
        return states

    for name, side in (("2d", 1), ("3d", -1)):
        state = preset(name)[-1]
        assert state["beta2"] < 0.9, "after some failures it has fallen"
        turn = [np.linalg.det([state[a], state[b]]) for a, b in (("path", "v"), ("v", "descent"))]
        assert np.sign(turn[0] * turn[1]) == side, (
            "v lies between P and C, or on the other side of P"
        )
    steps = preset("steps")
    figure = json.loads(
        (ROOT / "tests" / "figures" / "recorded" / "directions-steps.json").read_text(
            encoding="utf-8"
        )
    )
    assert len(steps) == len(figure[0]["arrays"][0]), "as many generations as the figure shows"
    assert max(state["beta1"] for state in steps) == 3
    assert np.mean([state["beta2"] for state in steps]) > 0.9
    assert PRESETS["opening"]["generation"] == 4, "the static figure's alternative text counts four"
    trap = preset("resets")
    assert [k for k in range(len(trap)) if is_reset(trap, k)] == [len(trap) - 1] == [10], (
        "the first ten have failed"
    )
    assert trap[-1]["std"] == [1, 1]
    up = preset("signs")[-1]
    assert np.dot(up["v"], up["mean"]) > 0, "the gradient of the sphere is twice the place"
