"""Section 13, networks: random weights as large as a stack, rates by held-out images, and whose
stacks they are.
"""

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leamvd_paper.studies import classification, fine_tuning, settings_map
from leamvd_paper.studies.classification import fine_tune, random_stack
from leamvd_paper.studies.fine_tuning import RESIZED, OfMap, Settings, resized, tried, tuned
from leamvd_paper.studies.layers import Images, rbms, stack
from leamvd_paper.studies.results import Result, delayed
from leamvd_paper.studies.settings_map import START, TRAINED, Map

DIGITS = Images(n_images=300).known()
OTHERS = dataclasses.replace(DIGITS, image_set=1)
STACK = random_stack((49, 20), "1", "float32", seed=0)


def test_resized_weights_are_normal_and_as_large_as_those_of_each_layer() -> None:
    given = random_stack((400, 300, 200), "glorot", "float64", seed=1)
    given.arrays["b1"][:] = 3  # biases are not taken over
    found = rbms(resized(given, "float64", seed=2))
    for rbm, other in zip(found, rbms(given), strict=True):
        W = rbm.W.ravel()
        # five standard errors
        assert W.std() == pytest.approx(other.W.std(), rel=5 / np.sqrt(2 * len(W)))
        assert abs(np.mean(W**4) / W.var() ** 2 - 3) < 5 * np.sqrt(24 / len(W))
        assert abs(np.corrcoef(W, other.W.ravel())[0, 1]) < 5 / np.sqrt(len(W))
        assert not rbm.b.any()
        assert not rbm.c.any()


def rates_that_err(*errors: float) -> Result:
    return Result(pd.DataFrame({"rate": (0.1, 0.5, 1.0), "error": errors}))


def test_a_network_has_the_rate_with_the_lowest_mean_error_of_three_seeds() -> None:
    chosen = (
        rates_that_err(0.1, 0.3, 0.25),  # the third has the lowest median
        rates_that_err(0.9, 0.3, 0.2),
        rates_that_err(0.9, 0.2, 0.9),
    )
    (row,) = tuned(STACK, DIGITS, "float32", 3, 2, *chosen).rows.to_dict("records")
    assert row["rate"] == 0.5
    expected = classification.fine_tuned(STACK, DIGITS, "float32", 3, 2, 0.5).rows
    assert row["test_error"] == expected["test_error"].iloc[-1]
    assert row["std1"] == pytest.approx(STACK.arrays["W1"].std())
    other = tuned(STACK, DIGITS, "float32", 3, 2, *[rates_that_err(0.1, 0.1, 0.2)] * 3)
    assert other.rows["rate"].item() == 0.1, "of equal ones the first"


def test_rates_are_tried_on_images_that_the_network_has_not_seen() -> None:
    rows = tried(STACK, DIGITS, OTHERS, "float32", 3, 4, (0.1, 1.0)).rows.set_index("rate")["error"]
    data, others = DIGITS.load("float32"), OTHERS.load("float32")
    for rate, error in rows.items():
        *_, (classifier, _) = fine_tune(
            rbms(STACK), data.train, data.train_labels, epochs=4, tuning_rate=rate, seed=3
        )
        assert error == np.mean(classifier.predict(others.train) != others.train_labels)
    assert rows[1.0] < rows[0.1]


def test_held_out_images_and_the_others_are_all_images_once() -> None:
    study = Settings(images=Images(n_images=1_200), n_held_out=400)
    fewer, held_out = study.without_held_out()
    whole, others, kept = (
        one.load("float32").train for one in (study.images, fewer.images, held_out)
    )
    assert (len(others), len(kept)) == (800, 400)
    both = np.concatenate([others, kept])
    assert np.array_equal(np.sort(both.view("V196"), axis=0), np.sort(whole.view("V196"), axis=0))
    for count in (500, 1_200):
        with pytest.raises(ValueError, match="n_held_out must be a part"):
            dataclasses.replace(study, n_held_out=count).without_held_out()


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("scales", ("1", "1"), "different"),
        ("rates", (0.1, 0.1), "different"),
        ("scales", ("1_0",), "digits alone"),
    ],
)
def test_what_names_a_side_or_a_rate_is_read_once(
    name: str, values: tuple[object, ...], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        Settings(**{name: values})


def test_networks_of_each_side_are_compared_at_the_rate_of_that_side(tmp_path: Path) -> None:
    changes = {
        "layers": (6, 5),
        "n_gen": 2,
        "epochs": 3,
        "methods": ("cd", "lea-mvd"),
        "scales": ("1",),
    }
    found = fine_tuning.tables("quick", tmp_path, n_images=300, n_held_out=100, **changes)
    sides = found.runs[["method", "weights"]].drop_duplicates().to_numpy().tolist()
    assert sides == [
        ["cd", TRAINED],
        ["lea-mvd", TRAINED],
        ["lea-mvd", RESIZED],
        ["random-1", RESIZED],
    ]
    best = (
        found.rates.groupby(["method", "weights", "rate"], sort=False)["error"]
        .mean()
        .unstack()
        .idxmin(axis=1)
    )
    for side, rows in found.runs.groupby(["method", "weights"]):
        assert set(rows["rate"]) == {best[side]}
        assert list(rows["seed"]) == [0, 1, 2]
    stds = found.runs.set_index(["method", "weights", "seed"])["std1"]
    assert stds["lea-mvd", RESIZED, 1] == pytest.approx(stds["lea-mvd", TRAINED, 1], rel=0.25)
    assert stds["random-1", RESIZED, 1] == pytest.approx(1, rel=0.25)


def test_stacks_by_which_a_rate_is_chosen_have_not_seen_the_images_held_out() -> None:
    study = Settings(
        images=Images(n_images=600).known(), n_held_out=200, methods=("cd",), scales=("1",)
    )
    planned = fine_tuning.plan(study)
    choice, runs = (planned[name][1]["cd", TRAINED, 0] for name in ("rates", "runs"))
    seen = choice.arguments["top"].arguments["images"]
    assert seen == choice.arguments["images"]
    assert seen.n_images == 400
    assert runs.arguments["top"].arguments["images"].n_images == 600


def test_networks_of_the_map_begin_from_its_stacks() -> None:
    tiny = Map(
        images=Images(n_images=200),
        layers=(6, 5),
        inputs=("own",),
        seeds=(0, 1, 2),
        cells=(("guide", 3),),
        searched=(("guide", 3),),
        updates=40,
        first_updates=20,
    )
    layers = settings_map.plan(tiny)["runs"][1]
    runs = fine_tuning.plan_of_map(OfMap(cells=tiny, scales=("1",)))["runs"][1]
    tops = {label: call.arguments["top"] for label, call in runs.items()}
    assert tops["guide", 0, "cd", TRAINED, 1].key == layers["guide", 0, "own", 2, "cd", 1].key
    for method in (START, "lea-mvd", "lea-mvd:printed"):
        assert (
            tops["guide", 3, method, TRAINED, 2].key == layers["guide", 3, "own", 2, method, 2].key
        )
    for method in settings_map.READINGS.values():
        assert (
            tops["guide", 3, method, RESIZED, 2].needs[0].key
            == layers["guide", 3, "own", 2, method, 2].key
        )
    assert ("any", 0, "random-1", RESIZED, 0) in runs
    assert ("guide", 3, START, RESIZED, 0) not in runs
    assert len(runs) == 3 * (1 + 3 + 2 + 1)


@pytest.mark.parametrize("of_map", [False, True])
def test_every_rate_is_chosen_by_images_that_no_network_was_trained_on(of_map: bool) -> None:
    if of_map:
        cells = (("guide", 3),)
        tiny = dataclasses.replace(
            settings_map.QUICK, seeds=(0, 1, 2), cells=cells, searched=cells, updates=40
        )
        planned = fine_tuning.plan_of_map(OfMap(cells=tiny, scales=("1",)))
    else:
        given = {"n_held_out": 200, "methods": ("cd", "lea-mvd"), "scales": ("1",)}
        planned = fine_tuning.plan(Settings(images=Images(n_images=600).known(), **given))
    choices = planned["rates"][1].values()
    assert len(choices) == len({call.key for call in choices})
    for images, held_out in {(c.arguments["images"], c.arguments["held_out"]) for c in choices}:
        whole = dataclasses.replace(images, n_images=images.n_images + held_out.n_images)
        parts = [one.load("float32").train for one in (images, held_out)]
        both = np.concatenate(parts).view("V196")
        every = whole.load("float32").train.view("V196")
        assert np.array_equal(np.sort(both, axis=0), np.sort(every, axis=0))


def test_a_row_of_a_network_has_the_size_of_each_layers_weights() -> None:
    top = random_stack((49, 9, 5), "1", "float32", seed=4)
    for layer, scale in enumerate((0.2, 3.0), start=1):
        W = top.arrays[f"W{layer}"]
        W[:] = scale * np.where(np.indices(W.shape).sum(axis=0) % 2, 1, -1) + 10
    (row,) = tuned(top, DIGITS, "float32", 3, 1, *[rates_that_err(0.1, 0.2, 0.3)] * 3).rows.to_dict(
        "records"
    )
    assert [*row] == ["rate", "test_error", "std1", "std2"]
    W = top.arrays["W1"].astype(np.float64)
    assert row["std1"] == pytest.approx(W.std(), rel=1e-6)
    assert row["std2"] == pytest.approx(top.arrays["W2"].std(dtype=np.float64), rel=1e-6)
    assert row["std2"] > 10 * row["std1"]


def test_resized_weights_have_the_seed_and_the_dtype_that_are_asked_for() -> None:
    first, again, other = (resized(STACK, "float32", seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.arrays["W1"], again.arrays["W1"])
    assert not np.isclose(first.arrays["W1"], other.arrays["W1"]).any()
    for dtype in ("float32", "float64"):
        for values in resized(STACK, dtype, 3).arrays.values():
            assert values.dtype == dtype


@pytest.mark.parametrize(
    ("name", "value", "least"),
    [
        ("epochs", 0, 1),
        ("n_held_out", 0, 1),
        ("seeds", (4, 7), (4, 7, 1)),
        ("inputs", ("own", "shared"), ("own",)),
        ("inputs", ("shared",), ("own",)),
        ("scales", ("1", "0"), ("1", "1e-9")),
        ("rates", (0.1, 0.0), (0.1,)),
    ],
)
def test_settings_of_networks_have_limits(name: str, value: Any, least: Any) -> None:
    with pytest.raises(ValueError, match=name):
        Settings(**{name: value})
    assert getattr(Settings(**{name: least}), name) == least


def assert_planned(
    planned: Any, tops: dict[Any, Any], choosing: dict[Any, Any], **settings: Any
) -> None:
    """Assert that a plan has exactly the networks that start from these calls, by their labels."""
    errors, runs = (planned[name][1] for name in ("rates", "runs"))
    rates = settings.pop("rates")
    fewer, held_out = settings.pop("fewer"), settings.pop("held_out")
    assert [*errors] == [*choosing]
    for label, call in errors.items():
        assert call.function is tried
        assert call.arguments["top"].key == choosing[label].key, label
        rest = {**settings, "images": fewer, "held_out": held_out, "rates": rates}
        rest["seed"] = label[-1]
        assert {**call.arguments, "top": None} == {**rest, "top": None}
    assert [*runs] == [*tops]
    for label, call in runs.items():
        assert call.function is tuned
        given = dict(call.arguments)
        assert given.pop("top").key == tops[label].key, label
        chosen = [given.pop(name) for name in ("first", "second", "third")]
        own = [one for other, one in errors.items() if other[:-1] == label[:-1]]
        assert [one.key for one in chosen] == [one.key for one in own]
        assert given == {**settings, "seed": label[-1]}


def test_a_plan_of_networks_has_every_side_from_its_stacks_with_its_rate() -> None:
    study = Settings(
        images=Images(n_images=600).known(),
        layers=(6, 5),
        methods=("cd", "lea-mvd:sigma0=0.03", "random"),
        seeds=(5, 3, 8, 1),
        scales=("0.3", "2"),
        epochs=7,
        rates=(0.4, 0.3),
        n_held_out=200,
    ).changed(dtype="float64")
    fewer, held_out = study.without_held_out()
    tops, choosing = {}, {}
    for one, found, seeds in ((study, tops, study.seeds), (fewer, choosing, (5, 3, 8))):
        for method in study.methods:
            for seed in seeds:
                found[method, TRAINED, seed] = stack(one, method, seed)[-1]
            for seed in seeds if method != "cd" else ():
                own = found[method, TRAINED, seed]
                found[method, RESIZED, seed] = delayed(resized)(own, "float64", seed)
        for scale in study.scales:
            for seed in seeds:
                top = delayed(random_stack)((49, 6, 5), scale, "float64", seed)
                found[f"random-{scale}", RESIZED, seed] = top
    planned = fine_tuning.plan(study)
    assert {*planned["runs"][0]} == {*planned["rates"][0]} == {"method", "weights", "seed"}
    assert_planned(
        planned,
        tops,
        choosing,
        images=study.images,
        fewer=fewer.images,
        held_out=held_out,
        dtype="float64",
        epochs=7,
        rates=(0.4, 0.3),
    )


def test_networks_of_a_map_have_its_images_and_settings() -> None:
    cells = (("guide", 3), ("0.1/0.1", 5))
    tiny = Map(
        images=Images(n_images=200),
        layers=(6, 5),
        inputs=("own",),
        seeds=(4, 0, 2, 1),
        cells=cells,
        searched=cells,
        updates=40,
        first_updates=20,
    )
    given = OfMap(cells=tiny, scales=("2", "glorot"), epochs=7, rates=(0.4, 0.3), image_set=3)
    tops = {}
    for protocol, batches in cells:
        cell = tiny.study(protocol, batches)
        for seed in tiny.seeds:
            tops[protocol, 0, "cd", TRAINED, seed] = stack(cell, "cd", seed)[-1]
        for seed in tiny.seeds:
            start = settings_map.starts(cell)["own", 2, seed]
            tops[protocol, batches, START, TRAINED, seed] = start
        for method in ("lea-mvd:printed", "lea-mvd"):
            own = {}
            for seed in tiny.seeds:
                own[seed] = stack(cell, settings_map.METHODS[method], seed)[-1]
                tops[protocol, batches, method, TRAINED, seed] = own[seed]
            for seed in tiny.seeds:
                top = delayed(resized)(own[seed], cell.training.dtype, seed)
                tops[protocol, batches, method, RESIZED, seed] = top
    for scale in ("2", "glorot"):
        for seed in tiny.seeds:
            top = delayed(random_stack)((49, 6, 5), scale, cell.training.dtype, seed)
            tops["any", 0, f"random-{scale}", RESIZED, seed] = top
    choosing = {label: top for label, top in tops.items() if label[-1] in (4, 0, 2)}
    planned = fine_tuning.plan_of_map(given)
    assert planned["runs"][0] == ["protocol", "batches", "method", "weights", "seed"]
    assert_planned(
        planned,
        tops,
        choosing,
        images=cell.images,
        fewer=cell.images,
        held_out=dataclasses.replace(cell.images, image_set=3),
        dtype=cell.training.dtype,
        epochs=7,
        rates=(0.4, 0.3),
    )
