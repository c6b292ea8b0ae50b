"""Section 13, networks: random weights as large as a stack, rates by held-out images, and whose
stacks they are.
"""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leamvd_paper.studies import classification, fine_tuning, settings_map
from leamvd_paper.studies.classification import fine_tune, random_stack
from leamvd_paper.studies.fine_tuning import RESIZED, OfMap, Settings, resized, tried, tuned
from leamvd_paper.studies.layers import Images, rbms
from leamvd_paper.studies.results import Result
from leamvd_paper.studies.settings_map import START, TRAINED, Map

DIGITS = Images(n_images=300).known()
OTHERS = dataclasses.replace(DIGITS, image_set=1)
STACK = random_stack((49, 20), "1", "float32", seed=0)


def test_resized_weights_are_normal_and_as_large_as_those_of_each_layer() -> None:
    given = random_stack((400, 300, 200), "glorot", "float64", seed=1)
    given.arrays["b1"][:] = 3  # biases are not taken over
    stack = rbms(resized(given, "float64", seed=2))
    for rbm, other in zip(stack, rbms(given), strict=True):
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
