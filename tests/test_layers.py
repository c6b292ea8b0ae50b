"""Studies: their settings, their calls, the layers that these train, and tables of errors with
known answers.
"""

import time
from dataclasses import replace
from itertools import count, islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.optimize import OptimizeWarning
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from idx_files import fake_files, write
from leamvd.networks.dbn import Training, layer_input, pretrain, train
from leamvd.networks.objective import reconstruction_errors
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.images import load
from leamvd_paper.studies import layers, results
from leamvd_paper.studies.layers import GROUP, Images, Study, layer_inputs, stack
from leamvd_paper.studies.results import Call, Result
from leamvd_paper.studies.study_methods import Method

SMALL = Study(
    images=Images(n_images=60),
    layers=(6, 5, 4),
    methods=("cd", "lea-mvd", "random"),
    seeds=(3, 4),
    training=Training(dtype="float64", n_elite=2),
    reading=Reading(n_gen=3, population_size=8),
)


def computed(call: Call) -> Result:
    """Return what a call and those among its arguments return."""
    arguments = {
        n: computed(value) if isinstance(value, Call) else value
        for n, value in call.arguments.items()
    }
    return call.function(**arguments)


def made(
    errors: dict[tuple[str, int, str], list[list[float]]], n_images: int = 100
) -> pd.DataFrame:
    """Return rows where `errors` holds, by inputs, layer and method, the errors of each seed by
    iteration.

    Sampled errors are three times as large, errors on 20 test images twice, and the constant
    image's error is 50.
    """
    rows = [
        (
            *cell,
            seed,
            i,
            error,
            3 * error,
            2 * error,
            6 * error,
            error / 50,
            3 * error / 50,
            10.0 * i,
            2 * i,
            i + seed,
        )
        for cell, runs in errors.items()
        for seed, run in enumerate(runs)
        for i, error in enumerate(run)
    ]
    columns = [
        "mean_field",
        "sampled",
        "test_mean_field",
        "test_sampled",
        "mean_field_ratio",
        "sampled_ratio",
    ]
    columns = [*GROUP, "seed", "iteration", *columns, "evaluations", "passes", "seconds"]
    return pd.DataFrame(rows, columns=columns).assign(
        n_images=n_images, n_test_images=20, input_std=0.2
    )


# ---- settings and calls


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": (0,)},
        {"layers": ()},
        {"methods": ("sgd",)},
        {"methods": ("cd", "cd")},
        {"inputs": ("other",)},
        {"seeds": (-1,)},
        {"seeds": ()},
        {"population_size": 1},
        {"n_elite": 9},
        {"learning_rate": -1.0},
        {"n_gen": 0},
        {"methods": ("lea-mvd:population_size=2",)},
    ],
)
def test_bad_settings_are_refused_before_anything_is_computed(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"must|clash"):
        SMALL.changed(**wrong)


def test_settings_are_changed_where_they_belong_and_none_changes_nothing() -> None:
    changed = SMALL.changed(side=28, n_gen=7, learning_rate=0.5, seeds=[1], n_images=None)
    assert (changed.images.side, changed.reading.n_gen, changed.training.learning_rate) == (
        28,
        7,
        0.5,
    )
    assert (changed.seeds, changed.images.n_images, changed.size) == ((1,), 60, "mnist-28x28")
    with pytest.raises(TypeError, match="epochs"):
        SMALL.changed(epochs=3)


@pytest.mark.parametrize(
    ("part", "given", "field"),
    [
        ("images", Images(n_images=50, pooling="center"), {"side": 28}),
        ("training", Training(sigma0=0.3), {"n_elite": 3}),
        ("reading", Reading(n_gen=9).complete(), {"exponent": 2.0}),
    ],
    ids=["images", "training", "reading"],
)
def test_a_part_may_be_given_whole_with_a_field_of_it_changed(
    part: str, given: Any, field: dict[str, Any]
) -> None:
    changed = SMALL.changed(**{part: given}, **field)
    assert changed == replace(SMALL, **{part: replace(given, **field)})


def test_a_step_size_that_is_given_and_has_no_start_to_act_on_is_warned_of() -> None:
    several = SMALL.changed(methods=("cd", "lea-mvd", "cma-es", "random"))
    told = (
        "^lea-mvd has no use for sigma0, random has no use for sigma0 without a start, x0='none'$"
    )
    with pytest.warns(OptimizeWarning, match=told) as caught:
        several.changed(sigma0=0.1, x0="none")
    assert len(caught) == 1
    with pytest.warns(
        OptimizeWarning, match=r"^cma-es:x0=none\+x0_in_population=false has no use for x0_in_pop"
    ):
        SMALL.changed(methods=("cma-es:x0=none+x0_in_population=false", "cd", "random"))
    several.changed(x0="none").changed(seeds=(1,))
    several.changed(sigma0=0.2)
    SMALL.changed(methods=("cd", "cma-es"), sigma0=0.2, x0="none")


def test_a_file_that_is_replaced_or_named_from_another_folder_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(
        write(
            tmp_path / "one", {f"own/{name}": file for name, file in fake_files(20, 9, 4).items()}
        )
    )
    asked = Images(dataset="own", side=4)
    before = asked.known()
    assert (len(asked.load("float64").train), len(before.load("float64").train)) == (20, 20)
    write(tmp_path / "one" / "own", fake_files(30, 9, 4))
    assert (len(asked.load("float64").train), len(asked.known().load("float64").train)) == (30, 30)
    monkeypatch.chdir(
        write(
            tmp_path / "two", {f"own/{name}": file for name, file in fake_files(40, 9, 4).items()}
        )
    )
    assert (len(asked.load("float64").train), len(asked.known().load("float64").train)) == (40, 40)
    for _ in range(2):  # which is not kept
        with pytest.raises(
            ValueError, match="own is another data set here than where it was asked for"
        ):
            before.load("float32")
    write(tmp_path / "two" / "own", fake_files(20, 9, 4))
    assert len(before.load("float32").train) == 20


def test_equal_studies_built_apart_have_equal_calls_and_unequal_ones_others() -> None:
    first = {label: call.key for label, call in layers.searches(SMALL).items()}
    again = SMALL.changed(seeds=(9,)).changed(seeds=(3, 4), x0_limit=0.1, limits="first")
    assert {label: call.key for label, call in layers.searches(again).items()} == first
    assert again == SMALL, "what acts is the same"
    own = {"class": "Reading", **vars(Reading(n_gen=30, limits="first"))}
    assert results.canonical([Reading(), Reading(limits="first"), Reading(n_gen=30)]) == 3 * [own]
    for other in (SMALL.changed(n_gen=4), SMALL.changed(n_images=61), SMALL.changed(momentum=0.6)):
        assert not {call.key for call in layers.searches(other).values()} & set(first.values())


def test_methods_share_what_they_have_in_common() -> None:
    calls = layers.searches(SMALL)
    assert len(calls) == 2 * 3 * 3 * 2
    for method in SMALL.methods:
        assert calls["own", 1, method, 3].key == calls["shared", 1, method, 3].key, (
            "the first layer sees the images"
        )
    assert calls["own", 3, "cd", 3].key == calls["shared", 3, "cd", 3].key
    for seed in SMALL.seeds:
        assert calls["shared", 2, "random", seed].needs == [calls["own", 1, "cd", seed]]
    assert calls["own", 2, "random", 3].needs == [calls["own", 1, "random", 3]]
    others = layers.searches(SMALL.changed(n_elite=1))  # which contrastive divergence does not see
    assert others["own", 3, "cd", 3].key == calls["own", 3, "cd", 3].key
    assert others["own", 1, "lea-mvd", 3].key != calls["own", 1, "lea-mvd", 3].key


# ---- what a layer is, against the library and plain NumPy


@pytest.mark.parametrize("method", SMALL.methods)
@pytest.mark.parametrize("inputs", ["own", "shared"])
def test_a_stack_is_what_the_library_trains(method: str, inputs: str) -> None:
    V = SMALL.images.load("float64").train
    settings: dict[str, Any] = {"training": SMALL.training, "reading": SMALL.reading, "seed": 3}
    below = pretrain(V, SMALL.layers, method="cd", **settings) if inputs == "shared" else None
    expected = pretrain(V, SMALL.layers, method=method, below=below, **settings)
    result = computed(stack(SMALL, method, 3, inputs)[-1])
    for name in "Wbc":
        np.testing.assert_array_equal(result.arrays[f"{name}3"], getattr(expected[-1], name))
    assert result.rows["iteration"].tolist() == [0, 1, 2, 3]


def test_its_errors_are_sums_over_images_and_its_ratios_are_to_the_constant_image() -> None:
    result = computed(stack(SMALL, "random", 3)[1])
    below, rbm = layers.rbms(result)
    V, T = (
        layer_inputs([below], SMALL.images, "probabilities", 3, "float64", test=test)
        for test in (False, True)
    )
    row = result.rows.iloc[-1]
    for X, name in ((V, "mean_field"), (T, "test_mean_field")):
        error = ((X - expit(expit(X @ rbm.W + rbm.c) @ rbm.W.T + rbm.b)) ** 2).sum()
        constant = ((X - V.mean(axis=0)) ** 2).sum()
        assert row[name] == pytest.approx(error, rel=1e-9)
        assert row[f"{name}_ratio"] == pytest.approx(error / constant, rel=1e-9)
    assert row["input_std"] == pytest.approx(V.std(axis=0).mean())
    assert row[["n_visible", "n_hidden", "n_var", "n_images"]].tolist() == [6, 5, 41, 60]
    assert row["evaluations"] == 3 * 8


@pytest.mark.parametrize(("trainer", "seconds"), [("cd", [2, 3, 4, 5]), ("random", [1, 2, 3, 4])])
def test_seconds_are_all_that_the_method_has_taken_so_far(
    trainer: str, seconds: list[int], monkeypatch: Any
) -> None:
    """Each look at the clock is a second later, and the caller of each step takes a thousand."""
    clock, found = count(), []
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    for step in train(trainer, SMALL.images.load("float64").train, 2, reading=SMALL.reading):
        found.append((step.seconds, *islice(clock, 1000))[0])
    assert found == seconds


def test_test_errors_are_of_all_test_images_and_of_what_the_layer_below_hands_on() -> None:
    study = SMALL.changed(features="bits", seeds=(3,), methods=("random",))
    result = computed(stack(study, "random", 3)[1])
    below, rbm = layers.rbms(result)
    T = layer_inputs([below], study.images, "bits", 3, "float64", test=True)
    row = result.rows.iloc[-1]
    test = study.images.load("float64").test
    assert row["n_test_images"] == len(T) == len(test) != 60
    for of_test in (False, True):
        bits = layer_input([below], test, features="bits", seed=3, test=of_test)
        assert np.array_equal(T, bits) == of_test, "bits of their own, not those of training images"
    assert row["test_mean_field"] == pytest.approx(((T - rbm.reconstruct(T)) ** 2).sum())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("side", 4), ("pooling", "center"), ("binarize", "threshold")),
        *(("n_images", 50), ("image_set", 1)),
    ],
)
def test_every_setting_of_images_is_heard(name: str, value: Any) -> None:
    usual = Images(n_images=60)
    changed = replace(usual, **{name: value})
    loaded = [one.load("float64").train for one in (usual, changed)]
    assert not np.array_equal(*loaded)
    given = {"n_train": changed.n_images, "image_set": changed.image_set}
    for option in ("side", "pooling", "binarize"):
        given[option] = getattr(changed, option)
    np.testing.assert_array_equal(loaded[1], load("digits", **given, dtype="float64").train)


def test_a_probe_is_a_regression_with_its_penalty_on_features_scaled_by_training_images() -> None:
    data = Images(n_images=150).load("float64")
    T = 3 + data.test  # other means than those of training
    scaler = StandardScaler().fit(data.train)
    known = LogisticRegression(C=0.01, max_iter=1000)
    known.fit(scaler.transform(data.train), data.train_labels)
    expected = []
    for X, labels in ((data.train, data.train_labels), (T, data.test_labels)):
        expected.append(1 - known.score(scaler.transform(X), labels))
    found = layers.probe(data.train, data.train_labels, T, data.test_labels)
    assert found[:2] == pytest.approx(expected)
    assert found[0] < found[1]


def test_images_of_another_checksum_are_refused() -> None:
    with pytest.raises(ValueError, match="checksums differ"):
        Images(checksum="0").load("float64")
    assert SMALL.on_disk().images.load("float64").side == 7


# ---- tables


def test_errors_are_per_10000_images_of_their_own_kind_at_the_last_iteration_of_each_run() -> None:
    table = made({("own", 1, "cd"): [[9.0, 4.0, 1.0], [9.0, 3.0]]})
    found = layers.errors(table, ["mean_field", "test_mean_field", "mean_field_ratio"]).set_index(
        "measure"
    )
    assert found["mean"].tolist() == pytest.approx([200, 2000, 0.04])
    ends = stats.ttest_1samp([100, 300], 0).confidence_interval(0.95)
    assert found.loc["mean_field", ["low", "high"]].tolist() == pytest.approx(list(ends))
    bands = layers.bands(table, "mean_field").set_index("iteration")
    assert bands["mean"].tolist() == [900, 350, 100]
    assert bands.loc[2, ["low", "high", "passes", "seconds"]].tolist() == [
        100,
        100,
        4,
        2,
    ], "one run has no interval"


@pytest.mark.parametrize(
    "column", ["study", "section", "problem", "image_set", "search", *GROUP, "seed"]
)
def test_runs_that_differ_in_one_column_have_a_last_row_each(column: str) -> None:
    table = pd.DataFrame(dict.fromkeys(GROUP, 0) | {column: [1, 1, 2], "iteration": [1, 2, 1]})
    assert layers.last(table).index.tolist() == [1, 2]


def test_ratios_are_of_pairs_where_seeds_are_shared_and_per_image() -> None:
    cell = ("own", 1, "cd")
    a, b = made({cell: [[1.0], [2.0], [4.0]]}), made({cell: [[4.0], [4.0], [16.0]]}, n_images=200)
    (row,) = layers.ratios(a, b).query("measure == 'mean_field'").to_dict("records")
    assert (row["paired"], row["ratio"]) == (3, pytest.approx(32 ** (1 / 3) / 2))
    apart = b.assign(seed=b["seed"] + 7)
    (row,) = layers.ratios(a, apart).query("measure == 'mean_field'").to_dict("records")
    assert (row["paired"], row["ratio"]) == (0, pytest.approx(32 ** (1 / 3) / 2))
    one = b.assign(seed=b["seed"] + 2)
    (row,) = layers.ratios(a, one).query("measure == 'mean_field'").to_dict("records")
    assert (row["paired"], row["ratio"]) == (1, pytest.approx(32 ** (1 / 3) / 2))
    assert 0 < row["low"] < row["ratio"] < row["high"]
    assert layers.ratios(a, b.assign(method="random")).empty


def test_a_summary_is_compared_with_the_recorded_study_that_shares_most() -> None:
    runs = made({("own", 1, method): [[6.0], [8.0]] for method in SMALL.methods})
    half, same = (
        runs.assign(mean_field=runs["mean_field"] / 2),
        runs.assign(mean_field=runs["mean_field"] * 2),
    )
    alike = SMALL.changed(seeds=(0,), precision="float64")  # what computes errors is no setting
    known = [(SMALL.changed(methods=("cd",)), half), (alike, same), (SMALL.changed(n_gen=9), half)]
    found = layers.summary(runs, SMALL, known).query("measure == 'mean_field'")
    assert found["ratio"].tolist() == pytest.approx([0.5] * 3)
    assert found["mean"].tolist() == [700] * 3
    assert "ratio" not in layers.summary(runs, SMALL.changed(n_gen=8), known)


def test_errors_stand_beside_those_of_the_start_and_of_the_constant_image() -> None:
    cell, single = ("own", 1, "cd"), ("own", 2, "cd")
    runs = made({cell: [[8.0, 1.0], [6.0, 4.0], [4.0, 16.0]], single: [[3.0, 2.0]]})
    found = layers.summary(runs).set_index(["measure", "layer"])
    ends = layers.errors(runs).set_index(["measure", "layer"])
    assert found["mean"].tolist() == ends["mean"].tolist()
    assert found.loc[("sampled", 1), "start"] == pytest.approx(1800)
    logs = np.log([1 / 50, 4 / 50, 16 / 50])
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / np.sqrt(3)
    over = found.loc[
        ("mean_field", 1), ["over_constant_low", "over_constant", "over_constant_high"]
    ]
    assert np.log(over.to_numpy(float)) == pytest.approx(logs.mean() + half * np.array([-1, 0, 1]))
    assert ends.loc[("mean_field", 1), "low"] < 0, "which no error is"
    assert found[["low", "high"]].isna().all(axis=None)
    narrow = (
        made({cell: [[8.0, 3.0], [6.0, 4.0]]})
        .query("seed < 2")
        .assign(mean_field=lambda t: 100 + t["mean_field"])
    )
    kept = layers.summary(narrow).query("measure == 'mean_field'")
    assert kept[["low", "high"]].notna().all(axis=None)


def test_a_search_leaves_its_start_where_it_first_is_below_it() -> None:
    table = made({("own", 1, "lea-mvd"): [[5.0, 5.0, 4.0], [5.0, 6.0, 5.0], [5.0, 4.0, 6.0]]})
    assert layers.left_at(table, "mean_field", ["seed"]).tolist() == [2, np.inf, 1]


def test_seconds_are_counts_times_what_was_measured() -> None:
    """An evaluation of an image takes v h nanoseconds, an epoch 3 or 12 times that; in between,
    geometric means.
    """
    objectives = pd.DataFrame(
        [
            (
                v,
                h,
                name,
                "float32",
                1,
                1000,
                24,
                "ok",
                1e-9 * v * h * 24_000 / (1 + 9 * (name == "torch")),
            )
            for v, h in ((784, 500), (49, 30))
            for name in ("numpy", "torch")
        ]
        + [
            (784, 500, "numpy", "float64", 1, 1000, 24, "ok", 1.0),
            (784, 500, "numpy", "float32", 2, 1000, 24, "ok", 1.0),
            (784, 500, "numpy", "float32", 1, 1000, 24, "refused", 1.0),
        ],
        columns=[
            "n_visible",
            "n_hidden",
            "backend",
            "precision",
            "threads",
            "n_images",
            "population_size",
            "status",
            "seconds",
        ],
    )
    training = pd.DataFrame(
        [
            ("leamvd", 1, v, h, 500, 1e-9 * v * h * 500 * ratio)
            for v, h, ratio in ((784, 500, 3.0), (49, 30, 12.0))
        ]
        + [("leamvd", 2, 784, 500, 500, 1.0), ("sklearn", 1, 784, 500, 500, 1.0)],
        columns=["trainer", "threads", "n_visible", "n_hidden", "n_images", "seconds"],
    )
    # 196 * 122.5 is the geometric mean of 784 * 500 and 49 * 30
    v, h = [784, 49, 196, 784], [500, 30, 122.5, 500]
    table = pd.DataFrame(
        {"n_visible": v, "n_hidden": h, "n_images": 100, "evaluations": [10, 0, 0, 0]}
    )
    table["products"] = [20, 10, 5, 23]  # ten evaluations; two epochs of CD-1; one; one of CD-10
    one = 1e-7 * np.multiply(v, h)
    found = layers.timed(table, objectives, training)["seconds"]
    assert found.tolist() == pytest.approx(
        [10 * one[0], 24 * one[1], 6 * one[2], 4.6 * 3 * one[3]], rel=1e-4
    )


@pytest.mark.parametrize("trainer", ["cd", "lea-mvd"])
def test_some_iterations_are_kept_and_the_last_of_them_ends_the_training(trainer: str) -> None:
    studies = (SMALL.changed(iterations=kept) for kept in (None, [0, 2], (0,)))
    whole, some, first = (computed(stack(study, trainer, 3)[0]) for study in studies)
    kept = whole.rows.iloc[[0, 2]].reset_index(drop=True)
    assert some.rows.drop(columns="seconds").equals(kept.drop(columns="seconds"))
    assert first.rows["evaluations"].tolist() == [0]
    V = SMALL.images.load("float64").train
    given = {"training": SMALL.training, "reading": SMALL.reading, "seed": layers.layer_seed(3, 1)}
    steps = [*train(trainer, V, 6, **given)]
    for result, step in ((whole, steps[-1]), (some, steps[2]), (first, steps[0])):
        assert np.array_equal(result.arrays["W1"], step.rbm.W), "and the layer that is handed on"


def test_every_iteration_has_its_errors_bits_and_costs() -> None:
    """Of a second layer: by the library's own steps, errors and seeds."""
    study = SMALL.changed(features="bits", methods=("cd", "lea-mvd"))
    for method in study.methods:
        below, upper = (computed(call) for call in stack(study, method, 4)[:2])
        V, T = (
            layer_inputs(layers.rbms(below), study.images, "bits", 4, "float64", test=test)
            for test in (False, True)
        )
        seed = layers.layer_seed(4, 2)
        given = {"training": study.training, "reading": study.reading, "seed": seed}
        steps = [*train(method, V, 5, **given)]
        assert upper.rows["iteration"].tolist() == [0, 1, 2, 3]
        for row, step in zip(upper.rows.to_dict("records"), steps, strict=True):
            own = reconstruction_errors(step.rbm, V, seed=seed)
            other = reconstruction_errors(step.rbm, T, seed=seed, train_mean=V.mean(axis=0))
            for name, value in own._asdict().items():
                assert row[name] == pytest.approx(value, rel=1e-12), name
            for name, value in other._asdict().items():
                assert row[f"test_{name}"] == pytest.approx(value, rel=1e-12), name
            for name in ("evaluations", "passes", "products"):
                assert row[name] == getattr(step, name), name
        assert upper.arrays.keys() == {"W1", "b1", "c1", "W2", "b2", "c2"}
        np.testing.assert_array_equal(upper.arrays["W1"], below.arrays["W1"])


def test_the_first_layer_is_the_same_whatever_a_layer_hands_on() -> None:
    bits = layers.searches(SMALL.changed(features="bits"))
    for label, call in layers.searches(SMALL).items():
        assert (call.key == bits[label].key) == (label[1] == 1), label
        other = bits[label].arguments["features"]
        assert other == ("probabilities" if label[1] == 1 else "bits")


def test_searches_are_in_the_order_of_their_table() -> None:
    study = SMALL.changed(inputs=("shared", "own"), seeds=(4, 3))
    expected = []
    for inputs in ("shared", "own"):
        for number in (1, 2, 3):
            for method in SMALL.methods:
                expected += [(inputs, number, method, seed) for seed in (4, 3)]
    calls = layers.searches(study)
    assert [*calls] == expected
    for (_, number, method, seed), call in calls.items():
        assert call.arguments["n_hidden"] == SMALL.layers[number - 1]
        assert (call.arguments["trainer"], call.arguments["seed"]) == (method, seed)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("seeds", (1, 1)),
        ("inputs", ("own", "own")),
        ("methods", ("lea-mvd:n_gen=3+reset=off", "lea-mvd:reset=off+n_gen=3")),
    ],
)
def test_what_tells_searches_apart_is_there_once_and_layers_may_be_alike(
    name: str, values: tuple[Any, ...]
) -> None:
    with pytest.raises(ValueError, match=f"{name} must be one or more different"):
        SMALL.changed(**{name: values})
    assert SMALL.changed(layers=(5, 5)).layers == (5, 5)


def test_known_images_are_counted_and_there_are_no_more_than_all() -> None:
    whole = Images().known()
    assert whole.n_images == len(whole.load("float64").train)
    assert whole.checksum == whole.load("float64").checksum
    assert Images(n_images=whole.n_images).known() == whole
    for wrong in (0, whole.n_images + 1):
        with pytest.raises(ValueError, match="n_images"):
            Images(n_images=wrong).known()


@pytest.mark.parametrize(
    "column", ["n_images", "features", "protocol", "batches", "momentum_epochs", "search", "seed"]
)
def test_each_column_that_tells_runs_of_studies_apart_has_last_rows(column: str) -> None:
    """They are the largest ones wherever they stand, by any column that counts."""
    table = pd.DataFrame(dict.fromkeys(GROUP, 0) | {column: [2, 1, 1, 2], "mark": [1, 5, 2, 3]})
    assert layers.last(table.assign(seed=table.get("seed", 0)), "mark").index.tolist() == [1, 3]


def test_columns_of_errors_are_per_10000_of_their_images_and_others_as_they_are() -> None:
    table = pd.DataFrame({"n_images": [100, 400], "n_test_images": [20, 50]})
    names = ["mean_field", "sampled", "test_mean_field", "test_sampled"]
    others = ["mean_field_ratio", "test_sampled_ratio", "input_std", "seconds"]
    for name in (*names, *others):
        table[name] = [3.0, 8.0]
    for name in names:
        expected = [1500, 1600] if name.startswith("test_") else [300, 200]
        assert layers.scaled(table, name).tolist() == expected, name
    for name in others:
        assert layers.scaled(table, name).tolist() == [3, 8], name


def test_a_band_is_of_the_mean_over_runs_of_each_group_and_iteration() -> None:
    runs = {
        ("shared", 2, "cd"): [[9.0, 4.0], [6.0, 1.0], [3.0, 7.0]],
        ("own", 1, "random"): [[2.0, 2.0], [4.0, 8.0]],
    }
    table = made(runs)
    table["seconds"] = table["seconds"] ** 2
    table["passes"] += 5 * table["seed"] ** 2
    found = layers.bands(table, "test_sampled").set_index([*GROUP, "iteration"])
    assert len(found) == 4
    for (cell, errors), i in product(runs.items(), (0, 1)):
        row = found.loc[(*cell, i)]
        values = [6 * run[i] * 1e4 / 20 for run in errors]
        half = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
        ends = [np.mean(values) - half, np.mean(values) + half]
        assert row[["low", "high"]].tolist() == pytest.approx(ends)
        assert row["mean"] == pytest.approx(np.mean(values))
        seeds = np.arange(len(values))
        assert row["passes"] == pytest.approx(np.mean(2 * i + 5 * seeds**2))
        assert row["seconds"] == pytest.approx(np.mean((i + seeds) ** 2))


def test_intervals_of_ratios_are_those_of_pairs_or_of_two_samples() -> None:
    cell = ("own", 1, "cd")
    first, second = [1.0, 2.0, 5.0], [4.0, 3.0, 16.0]
    a = made({cell: [[9.0, v] for v in first]})
    b = made({cell: [[7.0, v] for v in second], ("own", 2, "cd"): [[1.0], [2.0]]}, n_images=50)
    found = layers.ratios(a, b)
    assert found["measure"].tolist() == ["mean_field", "sampled"]
    assert found[GROUP].drop_duplicates().to_numpy().tolist() == [[*cell]]
    logs = np.log(2 * np.divide(second, first))
    ends = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    for row in found[["low", "ratio", "high"]].to_numpy():
        assert np.log(row) == pytest.approx([ends.low, logs.mean(), ends.high])
    # in any order, by the seed
    shuffled = layers.ratios(a, b.iloc[::-1])
    pd.testing.assert_frame_equal(shuffled, found)
    for shared, seeds in ((1, [0, 7, 8]), (0, [7, 8, 9])):
        moved = b.assign(seed=b["seed"].map(dict(enumerate(seeds))))
        two = stats.ttest_ind(np.log(2 * np.array(second)), np.log(first), equal_var=False)
        ends = two.confidence_interval(0.95)
        for row in layers.ratios(a, moved).to_dict("records"):
            assert row["paired"] == shared
            expected = [ends.low, logs.mean(), ends.high]
            logged = np.log([row["low"], row["ratio"], row["high"]])
            assert logged == pytest.approx(expected)
    # where one run is all that there is, it is compared with that of its seed
    alone = layers.ratios(a, b.query("seed == 1"))
    assert alone["paired"].tolist() == [1, 1]
    assert alone["ratio"].tolist() == pytest.approx([3, 3])
    assert alone[["low", "high"]].isna().all(axis=None)


def test_a_summary_has_the_recorded_study_with_most_methods_and_inputs_and_its_ends() -> None:
    runs = made({("own", 1, "cd"): [[6.0], [8.0], [9.0]], ("own", 2, "cd"): [[5.0], [4.0], [2.0]]})
    asked = SMALL.changed(methods=("cd", "lea-mvd"))
    known = []
    for factor, methods, inputs in (
        (2.0, ("cd",), ("own", "shared")),
        (3.0, ("cd", "lea-mvd", "random"), ("own", "shared")),
        (5.0, ("lea-mvd", "cd"), ("own",)),
        (7.0, ("random",), ("own",)),
    ):
        rows = runs.assign(mean_field=runs["mean_field"] * factor, sampled=runs["sampled"])
        study = SMALL.changed(methods=methods, inputs=inputs, seeds=(0, 1, 2))
        known.append((study, rows[rows["layer"] == 1]))
    found = layers.summary(runs, asked, known).set_index(["measure", "layer"])
    ends = layers.ratios(known[1][1], runs).set_index(["measure", "layer"])
    for name, of in {"ratio": "ratio", "ratio_low": "low", "ratio_high": "high"}.items():
        assert found.loc[("mean_field", 1), name] == ends.loc[("mean_field", 1), of]
        assert np.isnan(found.loc[("mean_field", 2), name]), "which is not recorded"
    assert found.loc[("mean_field", 1), "ratio"] == pytest.approx(1 / 3)
    others = layers.summary(runs, asked.changed(momentum=0.7), known)
    alone = layers.summary(runs, asked, known[3:])
    for table in (others, alone):
        pd.testing.assert_frame_equal(table, layers.beside_constant(runs))


def test_seconds_beyond_the_sizes_measured_are_those_of_the_nearest_one() -> None:
    sizes = pd.DataFrame({"n_visible": [40, 10], "n_hidden": [50, 20], "n_images": [100, 10]})
    measured = {"backend": "numpy", "precision": "float32", "threads": 1, "status": "ok"}
    objectives = sizes.assign(**measured, population_size=[4, 2], seconds=[800.0, 20.0])
    training = sizes.assign(trainer="leamvd", threads=1, seconds=[1000.0, 30.0])
    table = pd.DataFrame({"n_visible": [5, 400], "n_hidden": [20, 50], "n_images": [1, 3]})
    table["evaluations"] = [2, 1]
    table["products"] = [4 + 5, 2]
    found = layers.timed(table, objectives, training)
    # an evaluation takes 1 s or 2 s an image, an epoch 3 s or 10 s
    assert found["seconds"].tolist() == pytest.approx([2 * 1 + 3, 3 * 2])
    assert list(found) == [*table, "seconds"]


def test_a_probe_takes_as_many_steps_as_its_solver_and_no_more_than_it_may() -> None:
    data = Images(n_images=150).load("float64")
    known = LogisticRegression(C=0.01, max_iter=1000)
    known.fit(StandardScaler().fit_transform(data.train), data.train_labels)
    found = layers.probe(data.train, data.train_labels, data.test, data.test_labels)
    assert found[2] == known.n_iter_[0]


def test_probes_of_each_layer_are_of_its_features_and_seconds_of_all_so_far(
    monkeypatch: Any,
) -> None:
    top = computed(stack(SMALL, "random", 3)[1])
    data = SMALL.images.load("float64")
    clock = count()
    monkeypatch.setattr(layers.time, "perf_counter", lambda: float(next(clock)))
    found = layers.probes(top, SMALL.images, "float64", first=1).rows
    below = layers.rbms(top)
    for number, row in zip((1, 2), found.to_dict("records"), strict=True):
        V, T = (layer_input(below[:number], X) for X in (data.train, data.test))
        known = layers.probe(V, data.train_labels, T, data.test_labels)
        assert (row["train_error"], row["test_error"], row["steps"]) == known
        assert row["train_error"] != row["test_error"]
        assert row["features_std"] == pytest.approx(V.std(axis=0).mean())
        assert row["layer"] == number
    assert found["seconds"].tolist() == [1, 2]


def test_settings_are_spelled_to_the_last_field_wherever_they_are() -> None:
    study = SMALL.changed(methods=("cd", "lea-mvd:sigma0=0.03+n_gen=7"))
    found = layers.spelled([study, {"own": (study.images,)}])
    told, parts = found
    assert told["images"] == vars(study.images.known())
    assert told["images"]["checksum"]
    assert parts == {"own": [told["images"]]}
    assert told.keys() == vars(study).keys() - {"training", "reading"}
    assert {*told["methods"]} == {*study.methods}
    for text in study.methods:
        own = Method.parse(text).spelled(study.training, study.reading)
        assert told["methods"][text] == own
    assert (told["layers"], told["seeds"]) == ([6, 5, 4], [3, 4])
    marks = layers.spelled({study.images: (1, 2)})
    assert marks == {str(study.images): {"problem": told["images"], "marks": [1, 2]}}
