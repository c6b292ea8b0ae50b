"""Section 7: alternatives beside their defaults, searches that are followed, and tables with known
answers.
"""

from dataclasses import fields
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from matplotlib.colors import same_color
from scipy import stats

import leamvd
from figures import faces_drawn
from leamvd.networks.dbn import Training, layer_seed, train
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.functions import problem
from leamvd_paper.studies import layers, plots, readings, stacks
from leamvd_paper.studies.benchmarks import Function
from leamvd_paper.studies.layers import Images
from leamvd_paper.studies.readings import ALTERNATIVES, PROFILES, Settings
from leamvd_paper.studies.study_methods import Method

RNG = np.random.default_rng(0)

SMALL: dict[str, Any] = {"layers": (3, 2), "n_images": 40, "n_gen": 3, "sizes": (5,), "budget": 100}
SPHERE = Function("sphere", 5)


def test_every_alternative_differs_from_its_default_in_what_it_runs() -> None:
    for own in (method for item in ALTERNATIVES.values() for method in item):
        both = [Method.parse(method) for method in (own, readings.default(own))]
        assert (
            len(
                {
                    (method.training(Training()), method.reading(PROFILES["paper"].reading))
                    for method in both
                }
            )
            == 2
        ), own
    assert {*map(readings.default, readings.methods())} <= {*readings.methods()}


@pytest.mark.parametrize("item", [f"R{number}" for number in range(1, 20)])
def test_the_alternatives_of_an_item_change_what_readings_call_by_its_name(item: str) -> None:
    items = {field.name: field.metadata["item"] for field in fields(Reading)}
    for text in ALTERNATIVES[item]:
        both = []
        for name in (text, readings.default(text)):
            both.append(vars(Method.parse(name).reading(PROFILES["paper"].reading)))
        own, usual = both
        assert {items[name] for name in own if own[name] != usual[name]} == {item}


def test_a_kind_of_data_is_recorded_under_the_name_of_the_study_that_has_it() -> None:
    for data, name in readings.ARCHIVE.items():
        if data != "all":
            settings = readings.RECORDED[name].settings
            assert settings == PROFILES[data].changed(sizes=()), data
    assert PROFILES["all"].images == stacks.RECORDED[readings.ARCHIVE["all"]].settings.images


def test_other_populations_and_elites_have_generations_for_about_as_many_evaluations() -> None:
    several = [own for item in ALTERNATIVES.values() for own in item]
    compared = 0
    for text in (*several, *PROFILES["controls"].methods):
        evaluations = []
        for name in (text, readings.default(text)):
            method = Method.parse(name)
            reading = method.reading(PROFILES["paper"].reading)
            kept = 0
            if method.trainer == "lea-mvd" and reading.elites == "keep":
                kept = method.training(Training()).n_elite
            later = (reading.population_size - kept) * (reading.n_gen - 1)
            evaluations.append(reading.population_size + later)
        if "+" in text and "n_gen=" in text:
            compared += 1
            assert abs(evaluations[0] - evaluations[1]) < 24, text
    assert compared == 9


def test_pairs_are_those_whose_default_is_there() -> None:
    there = (
        "lea-mvd",
        "lea-mvd:shift=printed",
        "lea-mvd:x0=none+limits=clip",
        "cd:persistent=true",
        "lea-mvd:exponent=4",
    )
    assert readings.pairs(there) == [("R5", "lea-mvd:shift=printed"), ("own", "lea-mvd:exponent=4")]
    assert ("R15", there[2]) in readings.pairs((*there, "lea-mvd:x0=none"))


def test_defaults_come_first_and_each_method_once() -> None:
    assert readings.methods(("R15", "E8", "R13", "R15")) == (
        *("cd", "lea-mvd", "lea-mvd:x0=none", *ALTERNATIVES["R15"], *ALTERNATIVES["E8"]),
        *ALTERNATIVES["R13"],
    )


def test_a_search_on_a_function_is_that_of_minimize() -> None:
    x0, objective = problem("sphere", 5, seed=2)
    found = readings.reached(SPHERE, Training(), Reading(shift="printed"), seed=2, budget=100).rows
    own = leamvd.minimize(
        objective,
        x0,
        sigma0=1.0,
        n_gen=4,
        seed=2,
        vectorized=True,
        reading=Reading(shift="printed"),
    )
    assert found.to_dict("records") == [{"evaluations": own.nfev, "best": own.fun}]


def test_settings_that_cannot_act_on_functions_are_left_out() -> None:
    methods = (
        *("cd", "lea-mvd", "lea-mvd:n_gen=9", "lea-mvd:x0=batch", "lea-mvd:x0_epochs=2"),
        *("lea-mvd:x0=none", "lea-mvd:n_gen=2+n_elite=2", "cma-es"),
    )
    _, calls = readings.on_functions(Settings(methods=methods, sizes=(3,)))
    assert [*dict.fromkeys(method for *_, method, _ in calls)] == ["lea-mvd", *methods[5:7]]
    usual = {
        call.arguments["reading"].n_gen for label, call in calls.items() if label[2] != methods[6]
    }
    assert usual == {Reading.n_gen}, "that of the budget, and not of layers"
    assert readings.on_functions(Settings(methods=methods))[1] == {}


def test_the_search_of_a_layer_that_is_followed_is_the_layers_own() -> None:
    images = Images(n_images=40)
    training = Training(dtype="float64")
    reading = Reading(n_gen=12)
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(readings, "followed", lambda run: seen.extend(opt.best_fun for opt in run))
        readings.followed_layer(images, 4, training, reading, 3)
    V = images.load("float64").train
    steps = train("lea-mvd", V, 4, training=training, reading=reading, seed=layer_seed(3, 1))
    errors = [((V - step.rbm.reconstruct(V)) ** 2).sum() for step in steps]
    assert seen == pytest.approx(errors[1:])
    assert len({*seen}) > 3


def test_a_search_that_is_followed_counts_what_c_ani_does() -> None:
    found = readings.followed_function(
        SPHERE, Training(), Reading(), seed=0, budget=300
    ).rows.squeeze()
    x0, objective = problem("sphere", 5, seed=0)
    opt, none, against, shares = leamvd.LEAMVD(x0, sigma0=1.0, n_gen=300, seed=0), [], [], []
    while opt.nfev + opt.n_candidates <= 300:
        X = opt.ask()
        opt.tell(X, objective(X))
        P, C, beta = opt.state.path, opt.state.descent, opt.state.beta2
        if P.any() and C.any():
            none.append(beta == 1)
            against.append(P @ C < 0)
            parts = (
                beta * np.linalg.norm(P),
                (1 - beta) * abs(opt.state.descent_mean) * np.linalg.norm(C),
            )
            shares.append(parts[1] / sum(parts))
    assert found["generations"] == len(none) > 5
    means = [100 * np.mean(values) for values in (shares, none, against)]
    assert found[["share", "none", "against"]].tolist() == pytest.approx(means)


def test_tables_hold_layers_and_functions_and_outcomes_are_their_ends(tmp_path: Any) -> None:
    methods = ("cd", "lea-mvd", "lea-mvd:shift=printed")
    found = readings.tables(
        "quick", tmp_path, methods=methods, measure="sampled", inputs=("shared", "own"), **SMALL
    )
    assert found.outcomes["problem"].unique().tolist()[:3] == ["RBM 1", "RBM 2", "sphere, n = 5"]
    end = found.runs.query(
        "inputs == 'shared' and iteration == 3 and method == 'cd' and layer == 2 and seed == 1"
    )
    own = found.outcomes.query("problem == 'RBM 2' and method == 'cd' and seed == 1").squeeze()
    assert own["error"] == end["sampled"].item() != end["mean_field"].item(), (
        "on the first kind of inputs"
    )
    best = found.functions.query("method == 'lea-mvd' and seed == 0")["best"]
    together = found.outcomes.query(
        "problem == 'all functions' and method == 'lea-mvd' and seed == 0"
    ).squeeze()
    assert together["error"] == pytest.approx(np.exp(np.log(best).mean()))
    assert found.directions["problem"].nunique() == 5
    assert readings.summary(found, "quick", methods=methods, **SMALL)["runs"].eq(2).all()


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], pd.DataFrame]:
    """Return small tables that stand for what is recorded, of each kind of data."""
    tables = {}
    measures = ["mean_field", "sampled", "mean_field_ratio", "sampled_ratio"]
    for name in readings.ARCHIVE.values():
        inputs = {"mnist_7x7": ["own", "shared"], "readings_own": ["own"]}.get(name, ["shared"])
        labels = product(inputs, (1, 2), ("cd", "lea-mvd"), (0, 1, 2), (0, 9, 10))
        rows = pd.DataFrame([*labels], columns=[*layers.LABELS, "iteration"])
        rows[measures] = RNG.uniform(1, 2, (len(rows), 4))
        tables[name, "runs"] = rows.assign(n_images=10_000)
    on = product(("sphere", "ackley"), (10, 20), ("lea-mvd", "lea-mvd:path=off"), (0, 1))
    functions = pd.DataFrame([*on], columns=readings.FUNCTION[:4])
    functions["best"] = RNG.uniform(1, 9, len(functions))
    tables["readings_functions", "runs"] = functions
    tables["readings_functions", "directions"] = pd.DataFrame({"problem": ["RBM 1"], "seed": 0})
    read = lambda name, table="runs": tables[name, table]  # noqa: E731
    monkeypatch.setattr(readings, "read_recorded", read)
    return tables


def test_what_is_recorded_is_all_data_and_outcomes_are_the_ends_of_the_papers(
    archive: dict[tuple[str, str], pd.DataFrame],
) -> None:
    found = readings.tables("recorded", measure="sampled")
    assert found.runs["data"].unique().tolist() == [*readings.ARCHIVE]
    for data, name in readings.ARCHIVE.items():
        own = archive[name, "runs"]
        if data == "all":
            own = own.query("inputs == 'shared'")
        here = found.runs[found.runs["data"] == data].drop(columns="data")
        assert here.to_dict("records") == own.to_dict("records")
    functions = archive["readings_functions", "runs"]
    assert found.functions is functions
    assert found.directions is archive["readings_functions", "directions"]
    expected = {}
    for row in archive["readings", "runs"].query("iteration == 10").itertuples():
        expected[row.method, row.seed, f"RBM {row.layer}"] = row.sampled
    logs: dict[Any, list[float]] = {}
    for row in functions.itertuples():
        expected[row.method, row.seed, f"{row.function}, n = {row.n_var}"] = row.best
        logs.setdefault((row.method, row.seed, readings.TOGETHER), []).append(np.log(row.best))
    expected |= {key: float(np.exp(np.mean(values))) for key, values in logs.items()}
    ends = found.outcomes.set_index(["method", "seed", "problem"])["error"]
    assert ends.to_dict() == pytest.approx(expected)
    assert len(ends) == len(expected)
    assert found.outcomes.index.tolist() == [*range(len(expected))]
    usual = readings.tables("recorded").outcomes.query("problem == 'RBM 1' and method == 'cd'")
    first = archive["readings", "runs"].query("iteration == 10 and layer == 1 and method == 'cd'")
    assert usual["error"].tolist() == first["mean_field"].tolist()


def test_layers_that_are_computed_again_are_compared_with_those_of_their_own_data(
    archive: dict[tuple[str, str], pd.DataFrame],
) -> None:
    """Functions, which no layer depends on, may be others."""
    found = readings.tables("recorded")
    runs = archive["readings_threshold", "runs"].query("seed < 2")
    halved = runs.assign(mean_field=runs["mean_field"] / 2, sampled=runs["sampled"] / 2)
    measured = readings.Tables(halved, *found[1:])
    changes = {"seeds": range(2), "methods": ("cd", "lea-mvd", "lea-mvd:path=off")}
    beside = readings.summary(measured, "threshold", **changes, sizes=(7,), budget=99)
    assert len(beside) == 2 * 2 * 2
    assert beside["ratio"].tolist() == pytest.approx([0.5] * len(beside))
    assert "ratio" not in readings.summary(measured, "threshold", **changes, n_images=9_000)
    own = readings.summary(found)
    pd.testing.assert_frame_equal(own, layers.summary(archive["readings", "runs"]))


def test_without_sizes_there_are_no_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = pd.DataFrame({"inputs": "own", "layer": 1, "method": "cd", "seed": [0, 1]})
    rows = rows.assign(iteration=3, mean_field=[5.0, 6.0])
    asked = {}

    def computed(plan: Any, folder: Any, **given: Any) -> Any:
        asked.update({name: [*calls] for name, (_, calls) in plan.items()}, folder=folder, **given)
        return {"runs": rows, "directions": rows}

    monkeypatch.setattr(readings.results, "tables", computed)
    found = readings.tables("quick", "there", n_jobs=3, sizes=(), seeds=(0, 1))
    assert (asked["folder"], asked["n_jobs"]) == ("there", 3)
    assert asked["directions"] == [("RBM 1", 0), ("RBM 1", 1)]
    assert "functions" not in asked
    assert [*found.functions] == readings.FUNCTION
    assert found.outcomes.to_dict("list") == {
        "method": ["cd", "cd"],
        "seed": [0, 1],
        "problem": ["RBM 1", "RBM 1"],
        "error": [5.0, 6.0],
    }


def made(*rows: tuple[str, str, tuple[float, ...]]) -> pd.DataFrame:
    long = [
        (on, method, seed, error)
        for on, method, errors in rows
        for seed, error in enumerate(errors)
    ]
    return pd.DataFrame(long, columns=["problem", "method", "seed", "error"])


def test_effects_are_geometric_means_of_pairs_and_counted_by_what_they_show() -> None:
    base = tuple(2.0**seed for seed in range(10))
    outcomes = made(
        ("RBM 1", "lea-mvd", base),
        ("RBM 1", "cd", tuple(4 * x for x in base)),
        ("RBM 1", "lea-mvd:ties=newest", base),
        ("RBM 1", "lea-mvd:shift=printed", tuple(3 * x for x in base)),
        ("RBM 1", "lea-mvd:reset=off", tuple(5 * x for x in base)),
        ("RBM 1", "lea-mvd:path=off", tuple(x / 2 for x in base)),
        (
            "RBM 1",
            "lea-mvd:descent=off",
            tuple(x * (1.1 if i % 2 else 1 / 1.1) for i, x in enumerate(base)),
        ),
    )
    found = readings.effects(outcomes).set_index("method")
    assert found["ratio"].to_dict() == pytest.approx(
        {
            "lea-mvd:shift=printed": 3,
            "lea-mvd:reset=off": 5,
            "lea-mvd:ties=newest": 1,
            "lea-mvd:path=off": 0.5,
            "lea-mvd:descent=off": 1,
        }
    )
    assert found.index[found["same"]].tolist() == ["lea-mvd:ties=newest"]
    # of ten pairs p is 1/512 at least, and four tests of five count
    assert found["different"].to_dict() == {
        "lea-mvd:shift=printed": True,
        "lea-mvd:reset=off": True,
        "lea-mvd:ties=newest": False,
        "lea-mvd:path=off": True,
        "lea-mvd:descent=off": False,
    }
    assert found["item"].tolist() == ["R5", "R13", "R18", "C11", "C11"]


def test_markers_of_effects_say_what_is_significant_and_what_is_the_same() -> None:
    base = tuple(2.0**seed for seed in range(10))
    scattered = tuple(x * (1.3 if i % 2 else 1 / 1.2) for i, x in enumerate(base))
    outcomes = made(
        ("RBM 1", "lea-mvd", base),
        ("RBM 1", "lea-mvd:ties=newest", base),
        ("RBM 1", "lea-mvd:shift=printed", tuple(3 * x for x in base)),
        ("RBM 1", "lea-mvd:path=off", tuple(x / 2 for x in base)),
        ("RBM 1", "lea-mvd:descent=off", scattered),
    )
    table = readings.effects(outcomes)
    figure = readings.plot_effects(table)
    (ax,) = figure.axes
    filled = {}
    for places, face in faces_drawn(ax).items():
        filled |= dict.fromkeys(places[::2], face)
    apart = table[~table["same"]]
    assert filled == dict(zip(apart["ratio"], apart["different"], strict=True))
    assert {*filled.values()} == {True, False}
    crosses = [line.get_xdata().tolist() for line in ax.lines if line.get_marker() == "x"]
    assert [1.0] in crosses
    (one,) = (line for line in ax.lines if line.get_transform() is not ax.transData)
    assert {*one.get_xdata()} == {1}
    bars = [c for c in ax.collections if isinstance(c, LineCollection)]
    ends = [segment[:, 0] for c in bars for segment in c.get_segments()]
    np.testing.assert_allclose(ends, apart[["low", "high"]])
    looks = {line.get_label(): line for line in ax.lines}
    for name, face in (("significant", True), ("not significant", False)):
        line = looks[name]
        assert same_color(line.get_markerfacecolor(), line.get_color()) == face
    plots.plt.close(figure)


def test_effects_are_different_after_correction_alone_and_the_same_where_all_runs_are() -> None:
    """Of six pairs p is 1/32 at least, which is too much for one of two tests."""
    base = tuple(2.0**seed for seed in range(6))
    twice = ("RBM 1", "lea-mvd:shift=printed", tuple(2 * x for x in base))
    thrice = ("RBM 1", "lea-mvd:reset=off", tuple(3 * x for x in base))
    half = ("RBM 1", "lea-mvd:ties=newest", (*base[:3], *(2 * x for x in base[3:])))
    usual = ("RBM 1", "lea-mvd", base)
    (alone,) = readings.effects(made(usual, twice)).itertuples()
    assert (alone.different, alone.same) == (True, False)
    both = readings.effects(made(usual, twice, thrice))
    assert both["p"].tolist() == pytest.approx([1 / 16] * 2)
    assert not both["different"].any()
    (some,) = readings.effects(made(usual, half)).itertuples()
    assert (some.equal, some.runs, some.same) == (3, 6, False)


def test_what_is_followed_begins_with_the_first_path(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["descent_path", "descent_share", "beta2"]
    states = [(np.nan, 0.9, 1.0), (0.0, 0.25, 0.5), (-0.5, 0.5, 1.0), (0.3, 0.0, 1.0)]
    rows = iter([dict(zip(names, state, strict=True)) for state in states])
    monkeypatch.setattr(readings, "directions", lambda _: next(rows))
    (found,) = readings.followed(iter([SimpleNamespace(state=None)] * 4)).rows.to_dict("records")
    assert found == pytest.approx(
        {"generations": 3, "share": 25, "none": 200 / 3, "against": 100 / 3}
    )


def test_a_row_of_the_figure_begins_with_its_item_and_is_broken_at_commas() -> None:
    methods = {
        "lea-mvd:printed": ("printed", "LEA-MVD as printed"),
        "lea-mvd:exponent=4": ("own", "exponent 4"),
        "lea-mvd:descent=off": ("C11", "C11   without $C_{ani}$"),
        "cd:persistent=true": ("E8", "E8   CD, persistent"),
        "lea-mvd:population_size=12+n_gen=125+reset=off": (
            "C12",
            "C12   12 individuals,\n125 generations, no reset",
        ),
    }
    rows = pd.DataFrame({"item": [item for item, _ in methods.values()], "method": [*methods]})
    labels = readings._labels(rows).str.replace("\xa0", " ")
    assert labels.tolist() == [label for _, label in methods.values()]


def test_kinds_of_data_are_compared_by_their_first_inputs() -> None:
    rows = [
        (data, inputs, 1, method, seed, 3, x * (1 + seed))
        for data, inputs, x in (("a", "own", 1.0), ("a", "shared", 7.0), ("b", "shared", 0.25))
        for method, x in (("cd", x), ("lea-mvd", 2 * x * x))
        for seed in (0, 1)
    ]
    columns = ["data", "inputs", "layer", "method", "seed", "iteration", "mean_field_ratio"]
    found = readings.on_data(pd.DataFrame(rows, columns=columns)).set_index("data")
    assert found["ratio"].to_dict() == pytest.approx({"a": 2, "b": 0.5})
    assert found.loc["b", "cd"] == pytest.approx(0.25 * np.sqrt(2))
    assert found.loc["b", "lea-mvd"] == pytest.approx(0.125 * np.sqrt(2))
    names = ["data", "layer", "runs", "cd", "lea-mvd", "ratio", "low", "high", "p"]
    table = pd.DataFrame(rows, columns=columns)
    before = table.assign(iteration=2, mean_field_ratio=RNG.random(len(table)))
    factors = RNG.uniform(1, 1.2, len(table))
    scattered = table.assign(mean_field_ratio=table["mean_field_ratio"] * factors)
    again = readings.on_data(pd.concat([before, scattered], ignore_index=True))
    assert [*again] == names
    assert (again["low"] < again["ratio"]).all()
    assert (again["ratio"] < again["high"]).all()
    wide = scattered.query("data == 'b'").pivot(index="seed", columns="method")["mean_field_ratio"]
    ratio = stats.gmean(wide["lea-mvd"] / wide["cd"])
    assert again["ratio"].tolist()[1] == pytest.approx(ratio)
    assert again["runs"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"measure": "mean_field,sampled"}, "measure"),
        ({"methods": ("lea-mvd:exponent=3", "cd")}, "methods"),
        ({"sizes": (1,)}, "sizes"),
        ({"budget": 5}, "budget"),
        ({"profile": "small"}, "profile"),
        ({"profile": "recorded", "seeds": (1,)}, "seeds"),
        ({"profile": "recorded", "measure": "best"}, "measure"),
    ],
)
def test_what_cannot_be_shown_is_refused_before_any_work(
    changes: dict[str, Any], word: str, tmp_path: Any
) -> None:
    with pytest.raises(ValueError, match=word):
        readings.tables(**{"profile": "quick", "folder": tmp_path} | changes)
    assert not [*tmp_path.iterdir()]
