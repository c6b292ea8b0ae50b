"""What the comparison of readings says of made-up runs, and of small searches on functions."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from leamvd.analysis import readings
from leamvd.analysis.statistics import paired
from leamvd.campaign import archive
from leamvd.studies import functions, recording
from leamvd.studies.catalog import STUDIES
from small_studies import SMALL

from leamvd.data.functions import USUAL

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
    one = paired(errors["lea-mvd:shift=printed"], errors["lea-mvd"])
    r5 = found.loc["R5"]
    assert r5[["ratio", "low", "high"]].tolist() == pytest.approx(list(one[:3]))
    assert r5["p"] == pytest.approx(2 * one.p) == 2 * 2 / 2**SEEDS  # the smallest there is, times two tests: Holm
    assert found["different"].tolist() == [True, False, False]
    assert found["same"].tolist() == [False, True, False]
    assert np.isnan(found.loc["R18", "p"])
    assert readings.counts(found).loc["RBM 1"].tolist() == [1, 1, 0, 1]
    assert found.loc["C11", "ratio"] == pytest.approx(1)


def test_idle_is_what_changes_nothing_on_any_problem() -> None:
    rows = [("R1", "a", True), ("R1", "a", True), ("R2", "b", True), ("R2", "b", False)]
    found = readings.idle(pd.DataFrame(rows, columns=["item", "method", "same"]))
    assert found.values.tolist() == [["R1", "a", 2]]


def test_settings_of_cma_es_are_compared_with_cma_es() -> None:
    names = {"lea-mvd": "cma-es", "lea-mvd:shift=printed": "cma-es:sigma0=0.03"}
    control = made_up().query("method in @names").replace({"method": names})
    found = readings.effects(pd.concat([made_up(), control])).set_index("method")
    ends = ["ratio", "low", "high"]
    assert found.loc["cma-es:sigma0=0.03", ends].tolist() == found.loc["lea-mvd:shift=printed", ends].tolist()
    assert readings.effects(control.head(0)).empty


def test_settings_that_two_trainers_have_stand_side_by_side() -> None:
    rows = [
        ("lea-mvd:sigma0=0.3", "RBM 1", 1.9), ("cma-es:sigma0=0.3", "RBM 1", 0.8), ("lea-mvd:sigma0=0.3", "RBM 2", 1.5),
        ("cma-es:sigma0=0.3", "RBM 2", 0.7), ("lea-mvd:population_size=12+n_gen=125", "RBM 1", 0.6),
        ("lea-mvd:population_size=12+n_gen=125", "RBM 2", 0.5), ("cma-es:population_size=12+n_gen=100", "RBM 1", 0.9),
        ("cma-es:population_size=12+n_gen=100", "RBM 2", 1.1), ("cma-es:population_size=28+n_gen=43", "RBM 1", 1.0),
        ("lea-mvd:sigma0=0.3", readings.TOGETHER, 7.0), ("cd:persistent=true", "RBM 1", 1.0),
    ]  # fmt: skip
    effects = pd.DataFrame(rows, columns=["method", "problem", "ratio"])
    found = readings.sensitivity(effects)
    assert found.index.get_level_values("setting").tolist() == ["population_size=12"] * 2 + ["sigma0=0.3"] * 2
    assert found.index.get_level_values("problem").tolist() == ["RBM 1", "RBM 2"] * 2
    assert found["lea-mvd"].tolist() == [0.6, 0.5, 1.9, 1.5]
    assert found["cma-es"].tolist() == [0.9, 1.1, 0.8, 0.7]
    assert readings.sensitivity(effects.head(0)).empty


def test_prose_quotes_effects_on_functions_and_on_each_layer() -> None:
    layer = made_up()
    twice = layer.assign(problem=readings.TOGETHER, error=layer["error"] ** 2)
    outcomes = pd.concat([layer, twice], ignore_index=True)
    quoted = readings.quoted(readings.effects(outcomes), readings.against_cd(outcomes))
    found = readings.effects(layer).set_index("item").loc["R5"]
    for end in ("ratio", "low", "high"):
        assert quoted[f"readings-shift-printed-1-{end}"] == pytest.approx(found[end], rel=1e-5)
        assert quoted[f"readings-shift-printed-{end}"] == pytest.approx(found[end] ** 2, rel=1e-5)
    assert "readings-shift-printed-2-ratio" not in quoted, "not run"
    assert quoted["readings-runs"] == SEEDS


def test_lea_mvd_is_compared_with_contrastive_divergence_seed_by_seed() -> None:
    layer = made_up()
    cd = layer[layer["method"] == "lea-mvd"].assign(method="cd", error=lambda own: 2 * own["error"])
    outcomes = pd.concat([layer, cd], ignore_index=True)
    found = readings.against_cd(outcomes).set_index("method")
    effect = readings.effects(layer).set_index("method").loc["lea-mvd:shift=printed"]
    assert found.loc["lea-mvd", ["ratio", "low", "high"]].tolist() == pytest.approx([0.5] * 3)
    own = found.loc["lea-mvd:shift=printed"]
    assert own[["ratio", "low", "high"]].tolist() == pytest.approx((effect[["ratio", "low", "high"]] / 2).tolist())
    quoted = readings.quoted(readings.effects(outcomes), readings.against_cd(outcomes))
    assert quoted["readings-lowest-1"] == pytest.approx(found["ratio"].min(), rel=1e-5)
    assert quoted["readings-lowest-1-method"] == found.index[0].removeprefix("lea-mvd:")
    assert readings.against_cd(layer).empty


def test_functions_are_summarized_by_their_geometric_mean() -> None:
    table = pd.DataFrame(
        {"function": ["a", "b"] * 2, "n_var": 1000, "method": "lea-mvd", "seed": [0, 0, 1, 1], "best": [2.0, 8, 1, 9]}
    )
    found = readings.function_outcomes(table)
    assert found["problem"].tolist() == ["a, n = 1,000", "b, n = 1,000"] * 2 + ["functions"] * 2
    assert found["error"].tolist() == pytest.approx([2, 8, 1, 9, 4, 3])


# ---- other data, directions


def test_data_are_compared_by_ratios_to_the_constant_image() -> None:
    ends = {("cd", 3): 0.2, ("cd", 5): 0.8, ("lea-mvd", 3): 0.1, ("lea-mvd", 5): 0.9}
    rows = [("own", layer, method, seed, iteration, error / layer + 2 * (1 - iteration))
            for layer in (1, 2) for (method, seed), error in ends.items() for iteration in (0, 1)]  # fmt: skip
    columns = ["inputs", "layer", "method", "seed", "iteration", "mean_field_ratio"]
    table = pd.DataFrame(rows, columns=columns)
    table = pd.concat([table, table.assign(inputs="shared", mean_field_ratio=7.0)])
    found = readings.on_data({"here": table, "again": table})
    assert found[["data", "layer"]].to_numpy().tolist() == [["here", 1], ["here", 2], ["again", 1], ["again", 2]]
    assert found.loc[1, ["cd", "lea-mvd", "ratio"]].tolist() == pytest.approx([0.2, 0.15, 0.75])
    quoted = readings.quoted_data(found)
    assert quoted["data-here-2-lea-mvd"] == 0.15
    assert {key.rpartition("-")[2] for key in quoted if "-2-" in key} == {"cd", "mvd", "ratio", "low", "high"}
    four = pd.concat([found.head(2)] * 2).assign(ratio=[2.0, 2.0, 0.5, 0.5], p=[0.04, 0.06, 0.04, np.nan])
    assert [readings.quoted_data(four)[f"data-{name}"] for name in ("rows", "above")] == [4, 1], "by corrected p"
    others = table[table["method"] == "cd"].assign(method="cma-es")
    assert readings.quoted_data(readings.on_data({"here": others})) == {"data-rows": 0, "data-above": 0}


def test_what_is_recorded_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "folder", tmp_path.joinpath)
    study = dataclasses.replace(SMALL, methods=("cd", "lea-mvd", "lea-mvd:shift=printed"), inputs=("shared",))
    monkeypatch.setitem(STUDIES, ("readings", "paper"), study)
    monkeypatch.setitem(functions.PLANS, "paper", {"sizes": (3,), "budget": 60})
    recording.record_searches(functions.RECORDED, tmp_path / "work")
    shipped = dataclasses.replace(study, archived="readings")
    found = readings.function_outcomes(functions.on_functions(shipped, "nowhere", "recorded"))
    assert set(found["problem"]) == {*(f"{name}, n = 3" for name in USUAL), "functions"}
    pd.testing.assert_frame_equal(
        found, readings.function_outcomes(functions.on_functions(study, tmp_path / "work", "paper"))
    )
    ways = functions.followed_on_page(shipped, "nowhere")
    assert ways["problem"].tolist() == ["RBM 1", *(f"{name}, n = 3" for name in USUAL)]
    pd.testing.assert_frame_equal(ways[:1], functions.followed_on_page(study, tmp_path / "work"), check_exact=False)
    known = json.loads((tmp_path / functions.RECORDED / "provenance.json").read_text())
    assert known["methods"]["lea-mvd:shift=printed"]["reading"]["shift"] == "printed"
    assert (known["sizes"], known["budget"], known["seeds"]) == ([3], 60, [3])


def test_all_images_are_study_a_s() -> None:
    a, readings_on_all = STUDIES["mnist-7x7", "paper"], STUDIES["readings", "all"]
    same = {field: getattr(readings_on_all, field) for field in ("section", "methods", "inputs")}
    assert dataclasses.replace(a, **same) == readings_on_all
