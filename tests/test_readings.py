"""What is compared, and what the comparison says of made-up and of small real runs."""

import dataclasses
import json
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from small_studies import SMALL

from leamvd import Reading
from leamvd.paper import functions, readings, records, rules
from leamvd.paper.alternatives import ALTERNATIVES, default, methods, pairs
from leamvd.paper.figures import readings as drawn
from leamvd.paper.figures.style import plotted
from leamvd.paper.studies import STUDIES, images

ITEMS = {field.name: field.metadata["item"] for field in dataclasses.fields(Reading)}


# ---- alternatives


def test_every_item_of_a_reading_has_its_alternatives_and_each_changes_that_item_alone() -> None:
    study = STUDIES["readings", "paper"]
    assert set(ITEMS.values()) <= set(ALTERNATIVES)
    for item, alternatives in ALTERNATIVES.items():
        if not item.startswith("R") and item != "C11":
            continue
        for method in alternatives:
            ours, theirs = (dataclasses.asdict(study.reading_of(name)) for name in (method, default(method)))
            assert {ITEMS[name] for name in ours if ours[name] != theirs[name]} == {item}
            assert study.training_of(method) == study.training_of(default(method))


def test_no_alternative_is_its_default_or_another_one() -> None:
    study = STUDIES["readings", "paper"]
    settings = [(method.partition(":")[0], study.reading_of(method), study.training_of(method)) for method in methods()]
    assert len(set(settings)) == len(settings) == len(methods())


def test_the_study_runs_what_the_rules_of_the_claims_compare() -> None:
    compared = [*rules.ABLATED.values(), *(own for part in rules.ALTERNATIVES.values() for own in part)]
    assert {"lea-mvd", *(f"lea-mvd:{own}" for own in compared)} <= set(STUDIES["readings", "paper"].methods)


def test_pairs_are_alternatives_with_their_default() -> None:
    given = ["lea-mvd", "lea-mvd:shift=printed", "lea-mvd:x0=none+limits=clip", "cd:persistent=true", "cma-es"]
    assert pairs(given) == [("R5", "lea-mvd:shift=printed")]
    assert pairs([*given, "cd", "lea-mvd:x0=none", "lea-mvd:exponent=4"]) == [
        ("R5", "lea-mvd:shift=printed"),
        ("R15", "lea-mvd:x0=none+limits=clip"),
        ("E5", "lea-mvd:x0=none"),
        ("E8", "cd:persistent=true"),
        ("own", "lea-mvd:exponent=4"),
    ]


def test_stop_rules_cannot_act_where_the_whole_budget_is_spent(tmp_path: Path) -> None:
    """R1 and R4 on images, to the last bit."""
    own = ("lea-mvd", "lea-mvd:convergence=unscaled", "lea-mvd:sigma_norm=spectral", "lea-mvd:shift=printed")
    study = dataclasses.replace(SMALL, methods=own, inputs=("shared",), reading=Reading(n_gen=4, population_size=8))
    found = readings.effects(readings.outcomes(records.run(study, tmp_path)))
    assert readings.idle(found)["item"].tolist() == ["R1", "R4"]
    assert readings.idle(found)["problems"].tolist() == [2, 2]
    assert found["problem"].unique().tolist() == ["RBM 1", "RBM 2"]


# ---- effects

SEEDS = 10


def made_up() -> pd.DataFrame:
    """Return outcomes with known effects: 1.5 with scatter, none at all, and one that changes its sign."""
    rng = np.random.default_rng(0)
    base, noise = np.exp(rng.normal(size=SEEDS)), np.exp(0.01 * rng.normal(size=SEEDS))
    errors = {
        "lea-mvd": base,
        "lea-mvd:shift=printed": 1.5 * base * noise,
        "lea-mvd:ties=newest": base,
        "lea-mvd:path=off": base * np.where(np.arange(SEEDS) % 2, 1.01, 1 / 1.01),
    }
    parts = [pd.DataFrame({"method": m, "seed": range(SEEDS), "error": e}) for m, e in errors.items()]
    return pd.concat(parts, ignore_index=True).assign(problem="RBM 1")


def test_effects_are_geometric_means_of_paired_ratios() -> None:
    table = made_up()
    found = readings.effects(table.sample(frac=1, random_state=1)).set_index("item")
    assert found.index.tolist() == ["R5", "R18", "C11"]
    errors = table.pivot_table(index="seed", columns="method", values="error")
    ratios = np.log(errors["lea-mvd:shift=printed"] / errors["lea-mvd"])
    half = stats.t.ppf(0.975, SEEDS - 1) * ratios.std() / np.sqrt(SEEDS)
    r5 = found.loc["R5"]
    assert r5["ratio"] == pytest.approx(np.exp(ratios.mean()))
    assert [r5["low"], r5["high"]] == pytest.approx(np.exp([ratios.mean() - half, ratios.mean() + half]).tolist())
    assert r5["p"] == pytest.approx(2 * 2 / 2**SEEDS)  # the smallest there is, times two tests: Holm
    assert found["different"].tolist() == [True, False, False]
    assert found["same"].tolist() == [False, True, False]
    assert np.isnan(found.loc["R18", "p"])
    assert readings.counts(found).loc["RBM 1"].tolist() == [1, 1, 0, 1]
    assert readings.effect(found, "lea-mvd:path=off", "RBM 1")["ratio"] == pytest.approx(1)
    assert np.isnan(readings.effect(found, "lea-mvd:path=off", "RBM 2")["ratio"])


def test_prose_quotes_effects_on_functions_and_on_each_layer() -> None:
    layer = made_up()
    twice = layer.assign(problem=readings.FUNCTIONS, error=layer["error"] ** 2)
    outcomes = pd.concat([layer, twice], ignore_index=True)
    quoted = readings.quoted(readings.effects(outcomes), readings.beside_cd(outcomes))
    found = readings.effects(layer).set_index("item").loc["R5"]
    for end in ("ratio", "low", "high"):
        assert quoted[f"readings-shift-printed-1-{end}"] == pytest.approx(found[end], rel=1e-5)
        assert quoted[f"readings-shift-printed-{end}"] == pytest.approx(found[end] ** 2, rel=1e-5)
    assert np.isnan(quoted["readings-shift-printed-2-ratio"])
    assert quoted["readings-runs"] == SEEDS


def test_lea_mvd_is_compared_with_contrastive_divergence_seed_by_seed() -> None:
    layer = made_up()
    cd = layer[layer["method"] == "lea-mvd"].assign(method="cd", error=lambda own: 2 * own["error"])
    outcomes = pd.concat([layer, cd], ignore_index=True)
    found = readings.beside_cd(outcomes).set_index("method")
    effect = readings.effects(layer).set_index("method").loc["lea-mvd:shift=printed"]
    assert found.loc["lea-mvd", ["ratio", "low", "high"]].tolist() == pytest.approx([0.5] * 3)
    own = found.loc["lea-mvd:shift=printed"]
    assert own[["ratio", "low", "high"]].tolist() == pytest.approx((effect[["ratio", "low", "high"]] / 2).tolist())
    assert found["ratio"].is_monotonic_increasing
    quoted = readings.quoted(readings.effects(outcomes), readings.beside_cd(outcomes))
    assert quoted["readings-lowest-1"] == pytest.approx(found["ratio"].min(), rel=1e-5)
    assert quoted["readings-lowest-1-method"] == found.index[0].removeprefix("lea-mvd:")
    assert readings.beside_cd(layer).empty


def test_functions_are_summarized_by_their_geometric_mean() -> None:
    table = pd.DataFrame(
        {"function": ["a", "b"] * 2, "n_var": 1000, "method": "lea-mvd", "seed": [0, 0, 1, 1], "best": [2.0, 8, 1, 9]}
    )
    found = readings.function_outcomes(table)
    assert found["problem"].tolist() == ["a, n = 1,000", "b, n = 1,000"] * 2 + ["functions"] * 2
    assert found["error"].tolist() == pytest.approx([2, 8, 1, 9, 4, 3])


def test_a_figure_has_a_marker_for_each_effect_filled_where_it_is_significant() -> None:
    found = readings.effects(made_up())
    figure = drawn.forest(found, "made up")
    shown = plotted(figure)[0]
    assert shown["ticks"][0] == ["R5   shift=printed", "R18   ties=newest", "C11   path=off"]
    points = {look: np.array(a) for look, a in zip(shown["looks"], shown["arrays"], strict=False) if " None " in look}
    for at, marker, filled in ((0, "o", True), (1, "x", False), (2, "o", False)):
        (x,) = (a for look, a in points.items() if f" {marker} " in look and look.endswith(" #000000") is not filled)
        np.testing.assert_allclose(x, [[found["ratio"][at], at]])
    bars = [a for a in shown["arrays"] if np.shape(a) == (2, 2) and np.allclose(np.array(a)[:, 1], 0)]
    np.testing.assert_allclose(bars[0], [[found["low"][0], 0], [found["high"][0], 0]])
    plt.close(figure)


# ---- other data, directions


def test_data_are_compared_by_ratios_to_the_constant_image(tmp_path: Path) -> None:
    study = dataclasses.replace(SMALL, inputs=("shared",), seeds=(3, 5))
    table = records.run(study, tmp_path)
    found = readings.on_data({"here": table, "again": table})
    assert found[["data", "layer"]].to_numpy().tolist() == [["here", 1], ["here", 2], ["again", 1], ["again", 2]]
    last = table[(table["layer"] == 2) & (table["iteration"] == 2)].set_index(["method", "seed"])["mean_field_ratio"]
    row = found.loc[1]
    assert row["cd"] == pytest.approx(np.sqrt(last["cd", 3] * last["cd", 5]))
    assert row["lea-mvd"] == pytest.approx(np.sqrt(last["lea-mvd", 3] * last["lea-mvd", 5]))
    assert row["ratio"] == pytest.approx(row["lea-mvd"] / row["cd"])
    quoted = readings.quoted_data(found)
    assert quoted["data-here-2-lea-mvd"] == pytest.approx(row["lea-mvd"], rel=1e-5)
    assert {key.rpartition("-")[2] for key in quoted if "-2-" in key} == {"cd", "mvd", "ratio", "low", "high"}
    three = readings.quoted_data(found.head(3).assign(low=[0.9, 1.0, 1.1], high=2.0))
    assert (three["data-rows"], three["data-above"]) == (3, 1)


def test_the_runs_that_are_taken_apart_are_those_that_are_recorded(tmp_path: Path) -> None:
    study = dataclasses.replace(SMALL, inputs=("shared",), reading=Reading(n_gen=5, population_size=8))
    table = records.run(study, tmp_path)
    (runs,) = readings.searches(study, images(study).train).values()
    best = [opt.best_fun for opt in runs]
    recorded = table.query("method == 'lea-mvd' and layer == 1 and iteration > 0")["mean_field"]
    assert best == pytest.approx(recorded.tolist(), rel=1e-9)


def test_shares_and_signs_are_those_of_the_states() -> None:
    study = dataclasses.replace(SMALL, seeds=(0, 1))
    found = readings.directions(readings.function_searches(study, 10, 400))
    assert found["problem"].unique().tolist() == [f"{name}, n = 10" for name in functions.FUNCTIONS]
    row = found.set_index(["problem", "seed"]).loc["rosenbrock, n = 10", 1]
    opt, objective = functions.search(study, "lea-mvd", "rosenbrock", 10, 1, 400)
    shares, against, none = [], [], []
    for _ in functions.generations(opt, objective, 400):
        state = opt.state
        if state.path.any():
            path = state.beta2 * np.linalg.norm(state.path)
            step = (1 - state.beta2) * abs(state.descent_mean) * np.linalg.norm(state.descent)
            shares.append(step / (path + step))
            against.append(state.path @ state.descent < 0)
            none.append(state.beta2 == 1)
    assert row["generations"] == len(shares)
    assert row["share"] == pytest.approx(100 * np.mean(shares))
    assert row["against"] == pytest.approx(100 * np.mean(against))
    assert row["none"] == pytest.approx(100 * np.mean(none))
    assert readings.summary(found).loc["rosenbrock, n = 10", "runs"] == 2


def test_a_profile_without_functions_runs_none(tmp_path: Path) -> None:
    assert readings.on_functions(SMALL, tmp_path, "threshold").empty
    none = readings.on_functions(SMALL, tmp_path, "threshold")
    layer = made_up()
    pd.testing.assert_frame_equal(readings.effects(pd.concat([layer, none])), readings.effects(layer))
    assert readings.plan("threshold", sizes=(3,)) == {"sizes": (3,), "budget": 10_000}
    assert readings.plan("quick", budget=50) == {"sizes": (20,), "budget": 50}


def test_what_is_recorded_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "recorded_folder", tmp_path.joinpath)
    assert readings.recorded() is None
    assert readings.recorded_directions() is None
    assert readings.recorded_data() == {}
    study = dataclasses.replace(SMALL, methods=("cd", "lea-mvd", "lea-mvd:shift=printed"), inputs=("shared",))
    monkeypatch.setitem(STUDIES, ("readings", "paper"), study)
    readings.record(tmp_path / readings.RECORDED, tmp_path / "work", sizes=(3,), budget=60)
    functions_alone = readings.recorded()
    assert functions_alone is not None
    assert set(functions_alone["problem"]) == {*(f"{name}, n = 3" for name in functions.FUNCTIONS), "functions"}
    ways = readings.recorded_directions()
    assert ways is not None
    assert ways["problem"].tolist() == ["RBM 1", *(f"{name}, n = 3" for name in functions.FUNCTIONS)]
    known = json.loads((tmp_path / readings.RECORDED / "provenance.json").read_text())
    assert known["methods"]["lea-mvd:shift=printed"]["reading"]["shift"] == "printed"
    assert (known["sizes"], known["budget"], known["seeds"]) == ([3], 60, [3])
    (tmp_path / "readings").mkdir()
    table = records.run(study, tmp_path / "work")
    records.write_table(tmp_path / "readings" / "runs.csv", table)
    both = readings.recorded()
    assert both is not None
    assert both["problem"].iloc[0] == "RBM 1"
    pd.testing.assert_frame_equal(readings.recorded_data()["paper"], table)


def test_all_images_are_study_a_s_on_shared_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "recorded_folder", tmp_path.joinpath)
    a, readings_on_all = STUDIES["mnist-7x7", "paper"], STUDIES["readings", "all"]
    same = {field: getattr(readings_on_all, field) for field in ("section", "methods", "inputs")}
    assert dataclasses.replace(a, **same) == readings_on_all
    table = records.run(dataclasses.replace(SMALL, inputs=("own", "shared")), tmp_path / "work")
    (tmp_path / readings.STUDY_A).mkdir()
    records.write_table(tmp_path / readings.STUDY_A / "runs.csv", table)
    assert readings.recorded_names() == {"all": readings.STUDY_A}
    found = readings.recorded_data()["all"]
    pd.testing.assert_frame_equal(found, table[table["inputs"] == "shared"], check_dtype=False)
    assert len(found) < len(table)
