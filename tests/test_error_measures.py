"""Section 6: starts alone, weights that win for nothing, and both measures along a search."""

from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from figures import assert_methods_have_their_colors, assert_sound, faces_drawn, faces_said
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import layer_seed, pretrain
from leamvd.networks.objective import reconstruction_errors
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.images import load
from leamvd_paper.studies import error_measures, layers, verify
from leamvd_paper.studies.results import Call, Result
from leamvd_paper.studies.statistics import interval
from leamvd_paper.studies.study_methods import Method

DIGITS = load("digits", side=7, n_train=200, dtype="float64")
FIRST = pretrain(DIGITS.train, (6,), reading=Reading(n_gen=2))[0]


def computed(call: Call) -> Result:
    """Return what a call and those among its arguments return."""
    arguments = {
        n: computed(value) if isinstance(value, Call) else value
        for n, value in call.arguments.items()
    }
    return call.function(**arguments)


# ---- weights that win


@pytest.mark.parametrize("scale", [10.0, 1.0, 0.1, 0.001])
def test_the_error_of_the_collapsed_rbm_is_the_variance_of_features_and_below_its_bound(
    scale: float,
) -> None:
    lower, upper = error_measures.collapsed(FIRST, scale, DIGITS.train, n_hidden=4)
    H = lower.hidden_given_visible(DIGITS.train)
    errors = reconstruction_errors(upper, H, seed=0)
    assert errors.mean_field / len(H) == pytest.approx(H.var(axis=0).sum())
    assert errors.sampled == pytest.approx(errors.mean_field)
    assert errors.mean_field / len(H) <= error_measures.bound(FIRST, scale, DIGITS.train)


def test_the_bound_is_the_trace_of_the_covariance() -> None:
    covariance = np.cov(DIGITS.train.T, bias=True)
    trace = np.trace(FIRST.W.T @ covariance @ FIRST.W)
    assert error_measures.bound(FIRST, 0.5, DIGITS.train) == pytest.approx(0.25 / 16 * trace)


def test_smaller_weights_win_and_the_features_above_are_worth_nothing() -> None:
    found = error_measures.collapse(DIGITS, FIRST, (1.0, 0.01), 3, epochs=1)
    assert found["error"].is_monotonic_decreasing
    assert (found["error"] <= found["bound"]).all()
    assert found["cd error"].iloc[1] > found["error"].iloc[1]
    assert (found["wrong above"] > found["wrong"] + 20).all()
    # features are standardized
    assert found["wrong"].iloc[0] == pytest.approx(found["wrong"].iloc[1], abs=10)


# ---- the controls


def runs(*rows: tuple[object, ...]) -> pd.DataFrame:
    """Return made errors of 10 images with 4 units: method, layer, seed, iteration, errors; the
    constant has 40.
    """
    table = pd.DataFrame(
        rows, columns=["method", "layer", "seed", "iteration", "mean_field", "sampled"]
    )
    ratios = {f"{name}_ratio": table[name] / 40 for name in ("mean_field", "sampled")}
    return table.assign(**ratios, inputs="own", n_images=10, n_visible=4, input_std=0.5)


def test_paths_are_means_over_runs_and_contrastive_divergence_begins_with_its_first_epoch() -> None:
    found = error_measures.paths(
        runs(
            *(
                ("cd", 1, 0, 0, 99.0, 99.0),
                ("cd", 1, 0, 1, 10.0, 20.0),
                ("cd", 1, 1, 1, 30.0, 20.0),
            ),
            *(("lea-mvd", 1, 0, 0, 40.0, 40.0), ("lea-mvd", 1, 0, 1, 20.0, 80.0)),
        )
    )
    assert found[
        ["method", "iteration", "mean_field_ratio", "sampled_ratio"]
    ].to_numpy().tolist() == [
        ["cd", 1, 0.5, 0.5],
        ["lea-mvd", 0, 1.0, 1.0],
        ["lea-mvd", 1, 0.5, 2.0],
    ]


# ---- starts alone

SETTINGS = error_measures.QUICK.changed(
    n_images=40, layers=(4, 3), batches=(1, 3), probed=(3,), seeds=(5,), n_gen=2, batch_size=16
)


def test_what_is_computed_is_the_start_of_each_layer_the_search_from_it_and_cd() -> None:
    calls, _ = error_measures.plan([SETTINGS, SETTINGS.changed(methods=("lea-mvd",))])["runs"][::-1]
    rows = pd.concat(
        [
            computed(call).rows.assign(**dict(zip(error_measures.LABELS, label, strict=True)))
            for label, call in calls.items()
        ]
    )
    own = (
        rows.query("features == 'own'")
        .set_index(["method", "batches", "layer", "iteration"])["mean_field"]
        .sort_index()
    )
    V = SETTINGS.images.load("float64").train
    for layer, n_hidden in enumerate(SETTINGS.layers, start=1):
        cd = ContrastiveDivergence(V, n_hidden, batch_size=16, seed=layer_seed(5, layer))
        for _ in range(3):
            rbm = cd.mini_batch()
        alone = own["start", 3, layer]
        assert alone.to_dict() == {0: pytest.approx(((rbm.reconstruct(V) - V) ** 2).sum())}, (
            "nothing is searched"
        )
        V = rbm.hidden_given_visible(V)
    assert own["lea-mvd", 3, 1, 0] == own["start", 3, 1, 0]
    assert own["lea-mvd", 3, 1, 2] < own["lea-mvd", 3, 1, 0]
    assert own["cd", 0, 1].index.tolist() == [0, 2]
    swapped = rows.query("features != 'own'").set_index(["features", "method", "batches"])
    assert set(swapped.index) == {
        (*pair, k) for pair in (("cd", "start"), ("start", "cd")) for k in (1, 3)
    }
    assert set(swapped["layer"]) == {2}
    assert set(swapped["n_hidden"]) == {SETTINGS.layers[-1]}
    inputs = (
        rows.query("layer == 2")
        .set_index(["features", "method", "batches"])["input_std"]
        .groupby(level=[0, 1, 2])
        .first()
    )
    assert inputs["cd", "start", 3] == inputs["own", "cd", 0], (
        "the start of RBM 2 on the features of CD"
    )
    assert inputs["start", "cd", 3] == inputs["own", "start", 3]


def test_probes_are_of_the_first_seeds_and_of_some_starts_and_pictures_of_one_seed() -> None:
    several = SETTINGS.changed(seeds=(5, 6, 7), n_probes=2)
    planned = error_measures.plan([several])
    for table, batches, seeds in (("probes", {0, 3}, {5, 6}), ("pictures", {0, 1, 3}, {5})):
        columns, calls = planned[table]
        labels = pd.DataFrame([*calls], columns=columns)
        assert ({*labels["batches"]}, {*labels["seed"]}) == (batches, seeds)
        for (*images, method, k, seed), call in calls.items():
            whole = planned["runs"][1][*images, "own", method, k, 2, seed]
            assert call.arguments["top"].key == whole.key, table


def test_the_last_layer_of_three_is_swapped_onto_the_features_of_the_second() -> None:
    _, calls = error_measures.plan([SETTINGS.changed(layers=(4, 4, 3))])["runs"]
    images = (40, SETTINGS.training.momentum_epochs)
    for k in (1, 3):
        (below,) = calls[*images, "cd", "start", k, 3, 5].needs
        assert below.key == calls[*images, "own", "cd", 0, 2, 5].key
        (below,) = calls[*images, "start", "cd", k, 3, 5].needs
        assert below.key == calls[*images, "own", "start", k, 2, 5].key


def made(**errors: tuple[float, float]) -> pd.DataFrame:
    """Return ends of runs by "features_method_batches": error and ratio to the constant's, of RBM
    3, two seeds.
    """
    rows = []
    for name, (error, ratio) in errors.items():
        features, method, batches = name.split("_")
        for seed, scatter in ((0, 0.5), (1, 2.0)):
            rows.append(
                (
                    10,
                    5,
                    features,
                    method,
                    int(batches),
                    3,
                    seed,
                    1,
                    error * scatter,
                    ratio * scatter,
                )
            )
    columns = [*error_measures.LABELS, "iteration", "mean_field", "mean_field_ratio"]
    table = pd.DataFrame(rows, columns=columns).assign(input_std=0.1)
    return table.assign(sampled=3 * table["mean_field"])


def test_an_error_over_that_of_cd_is_what_features_and_learning_make_of_it() -> None:
    rows = error_measures.over_cd(made(own_cd_0=(100, 0.2), own_start_3=(25, 1.0)))
    table = error_measures.by_batches(rows).set_index("method")
    start = table.loc["no search"]
    assert start["error"] == pytest.approx(1 / 4)  # the constant image has 500 and 25
    assert start["sampled"] == pytest.approx(1 / 4)
    # and five times CD's ratio
    assert (start["features"], start["ratio"]) == pytest.approx((1 / 20, 1))
    assert start["error low"] == pytest.approx(start["error high"]), (
        "of the same seed, which scatters as much"
    )
    assert start["ratio low"] < 1 < start["ratio high"]


def test_the_mechanism_compares_other_features_with_other_training() -> None:
    cells = {
        "own_cd_0": (100, 0.2),
        "own_start_3": (25, 1.0),
        "cd_start_3": (400, 1),
        "start_cd_3": (5, 1),
    }
    fewer = made(own_start_3=(30, 1.0)).assign(n_images=5)  # a sum over half as many images
    later = made(**dict.fromkeys(cells, (1000, 1.0))).assign(momentum_epochs=10)  # a control's
    found = error_measures.mechanism(pd.concat([made(**cells), fewer, later])).loc[3]
    assert found.tolist() == pytest.approx([16, 1 / 5, 2 * 30 / 25])


def test_starts_and_what_stands_beside_them_are_of_the_same_seeds() -> None:
    for table in (error_measures.tables().runs, error_measures.at_28x28()):
        own = table[table["features"] == "own"]
        assert not own.duplicated([*error_measures.OWN, "seed", "iteration"]).any()
        assert (
            own.groupby(error_measures.OWN)["seed"].unique().map(sorted).map(tuple).nunique() == 1
        )
        layers = {}
        for name, rows in own.groupby(["method", "batches"]):
            layers[name] = {*rows["layer"]}
        assert {*map(frozenset, layers.values())} == {frozenset({1, 2, 3})}
        assert ("cd", 0) in layers
    searched = error_measures.tables().runs.query("method == 'lea-mvd' and n_images == 60_000")
    assert {*searched["batches"]} == {*error_measures.BATCHES}, "600 are Section 3's"


def test_paths_begin_and_end_with_the_markers_that_the_caption_says() -> None:
    path = pd.DataFrame(
        {
            "mean_field_ratio": [1.0, 2.0, 4.0],
            "sampled_ratio": [3.0, 5.0, 9.0],
            "iteration": range(3),
        }
    )
    cell = {"inputs": "own", "layer": 1, "method": "lea-mvd"}
    ends = path.tail(1).melt(
        ["iteration"], ["mean_field_ratio", "sampled_ratio"], "measure", "mean"
    )
    ends = ends.assign(low=ends["mean"] - [1, 2], high=ends["mean"] + [3, 5])
    figure = error_measures.plot_paths(path.assign(**cell), ends.assign(**cell))
    plt.close(figure)
    assert_sound(figure)
    assert_methods_have_their_colors(figure)
    (ax,) = figure.axes
    (drawn,) = (line for line in ax.lines if line.get_label() == "LEA-MVD")
    np.testing.assert_array_equal(drawn.get_xydata(), [(1, 3), (2, 5), (4, 9)])
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    bars = [c.get_segments() for c in ax.collections]
    np.testing.assert_allclose(bars, [[[(3, 9), (7, 9)]], [[(4, 7), (4, 14)]]])
    assert (ax.get_xlabel(), figure.get_supylabel().partition(":")[0]) == (
        "mean-field ratio",
        "sampled ratio",
    )
    levels = [line for line in ax.lines if line.get_transform() is not ax.transData]
    assert [({*line.get_xdata()}, {*line.get_ydata()}) for line in levels] == [
        ({0, 1}, {1}),
        ({1}, {0, 1}),
    ]
    said = faces_said("06_what_the_error_measures", "measures-paths")
    assert said.keys() == {"the start", "last iteration"}
    assert faces_drawn(figure.axes[0]) == {
        (1, 3): said["the start"],
        (4, 9): said["last iteration"],
    }


def test_contrastive_divergence_with_settings_of_its_own_begins_with_its_first_epoch_too() -> None:
    rows = []
    for method in ("cd:learning_rate=0.003", "cd", "sep-cma-es", "lea-mvd:sigma0=0.3"):
        for layer, iteration in ((2, 1), (1, 1), (2, 0), (1, 0)):
            for seed in (1, 0):
                error = 40.0 * layer + 8 * seed
                rows.append((method, layer, seed, iteration, error, 2 * error))
    found = error_measures.paths(runs(*rows).assign(inputs="shared"))
    first = found.groupby(["method", "layer"])["iteration"].min()
    for (method, _), iteration in first.items():
        assert iteration == method.startswith("cd"), method
    assert found["mean_field_ratio"].tolist() == pytest.approx((found["layer"] + 0.1).tolist())
    assert found["sampled_ratio"].tolist() == pytest.approx((2 * found["layer"] + 0.2).tolist())


def test_only_pictures_whose_numbers_are_rounded_are_left_out_of_what_is_verified() -> None:
    for name, entry in verify.all_recorded().items():
        assert {*entry.unverified} <= {"pictures"}, name


def test_a_method_with_settings_of_its_own_starts_from_mini_batches_too() -> None:
    printed = Method.parse(error_measures.started("lea-mvd:printed", 7))
    assert printed.reading(Reading()) == Reading.printed()
    for method in (printed, Method.parse(error_measures.started("cma-es", 7))):
        training = method.training(SETTINGS.training)
        assert (training.x0, training.x0_batches) == ("batch", 7)


def test_the_starts_of_a_study_have_neither_epochs_of_contrastive_divergence_nor_probes() -> None:
    whole = error_measures.plan([SETTINGS])
    alone = error_measures.starts_alone(SETTINGS)
    assert alone.keys() == {"runs", "pictures"}
    for table, (columns, calls) in alone.items():
        labels = pd.DataFrame([*calls], columns=columns)
        assert {*labels["method"]} == {"start"}
        assert {*labels["batches"]} == {*SETTINGS.batches}
        for label, call in calls.items():
            assert call.key == whole[table][1][label].key
    assert {label[2] for label in alone["runs"][1]} == {"own"}
    _, probed = whole["probes"]
    for call in probed.values():
        assert call.arguments["first"] == len(SETTINGS.layers), "the uppermost features alone"


def test_errors_are_over_those_of_the_run_by_cd_that_is_like_them_in_all_but_the_method() -> None:
    """By images, epochs of momentum, layer and seed; at the last iteration, on own inputs."""
    rng = np.random.default_rng(2)
    rows = []
    for cell in product(
        (10, 5), (5, 10), (2, 1), (1, 0), (("start", 3), ("cd", 0), ("lea-mvd", 3))
    ):
        *alike, (method, batches) = cell
        for features, iteration in product(("own", "cd"), (1, 0)):
            rows.append((*alike, method, batches, features, iteration, *rng.uniform(1, 9, 3)))
    alike = ["n_images", "momentum_epochs", "layer", "seed"]
    columns = [*alike, "method", "batches", "features", "iteration"]
    columns += ["mean_field", "sampled", "mean_field_ratio"]
    table = pd.DataFrame(rows, columns=columns).assign(inputs="own")
    found = error_measures.over_cd(table)
    ends = table.query("features == 'own' and iteration == 1")
    assert len(found) == len(ends)
    for row in found.to_dict("records"):
        one = ends.loc[(ends[alike] == pd.Series(row)[alike].astype(int)).all(axis=1)]
        one = one.set_index("method")
        over = one.loc[row["method"]] / one.loc["cd", ["mean_field", "sampled", "mean_field_ratio"]]
        assert row["error"] == pytest.approx(over["mean_field"])
        assert row["sampled"] == pytest.approx(over["sampled"])
        assert row["ratio"] == one.loc[row["method"], "mean_field_ratio"]
        assert row["features"] == pytest.approx(over["mean_field"] / over["mean_field_ratio"])
    means = error_measures.by_batches(found)
    assert means["method"].is_monotonic_increasing
    assert {*means["method"]} == {"cd", "lea-mvd", "no search"}
    for row in means.replace({"method": {"no search": "start"}}).to_dict("records"):
        same = (found[error_measures.OWN] == pd.Series(row)[error_measures.OWN]).all(axis=1)
        for name in error_measures.MEASURES:
            ends = np.exp(interval(np.log(found.loc[same, name])))
            told = [row[name], row[f"{name} low"], row[f"{name} high"]]
            assert told == pytest.approx([*ends])


def test_every_start_stands_beside_cd_of_as_many_images_and_epochs_of_momentum() -> None:
    for table in (error_measures.tables().runs, error_measures.at_28x28()):
        rows = error_measures.over_cd(table)
        assert rows.notna().all(axis=None)
        assert (rows.query("method == 'cd'")[["error", "sampled", "features"]] == 1).all(axis=None)


def test_collapsed_weights_stand_beside_so_many_epochs_and_what_test_images_are_told_apart_by() -> (
    None
):
    (row,) = error_measures.collapse(DIGITS, FIRST, (0.5,), 3, epochs=2).to_dict("records")
    lower, upper = error_measures.collapsed(FIRST, 0.5, DIGITS.train, 3)
    V = lower.hidden_given_visible(DIGITS.train)
    T = lower.hidden_given_visible(DIGITS.test)
    cd = ContrastiveDivergence(V, 3, seed=0)
    cd.epoch()
    cd.epoch()
    assert row["cd error"] == pytest.approx(((cd.rbm.reconstruct(V) - V) ** 2).sum() / len(V))
    assert row["error"] == pytest.approx(V.var(axis=0).sum())
    assert (row["scale"], row["bound"]) == (0.5, error_measures.bound(FIRST, 0.5, DIGITS.train))
    for name, features in (
        ("wrong", (V, T)),
        ("wrong above", (upper.hidden_given_visible(V), upper.hidden_given_visible(T))),
    ):
        V, T = features
        _, wrong, _ = layers.probe(V, DIGITS.train_labels, T, DIGITS.test_labels)
        assert row[name] == 100 * wrong


@pytest.mark.parametrize(
    "given",
    [
        *({"profile": "confirm"}, {"seeds": [1]}, {"profile": "quick", "inputs": ["shared"]}),
        *({"profile": "quick", "layers": [4]}, {"profile": "quick", "batches": [0]}),
        *({"profile": "quick", "probed": [0]}, {"profile": "quick", "batches": [3, 3]}),
    ],
)
def test_settings_are_refused_before_anything_is_computed(given: dict, tmp_path) -> None:
    with pytest.raises(ValueError, match="|".join(given)):
        error_measures.tables(folder=tmp_path, **given)
    assert not list(tmp_path.iterdir())
