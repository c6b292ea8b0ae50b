"""Sections 3 and 4: a small run from settings to figures, and tables with known answers."""

from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd
import pytest

from figures import assert_methods_have_their_colors, assert_sound, faces_drawn, faces_said
from leamvd.networks import dbn
from leamvd.networks.dbn import pretrain
from leamvd_paper.studies import plots, stacks
from leamvd_paper.studies.stacks import PROFILES, Tables
from leamvd_paper.studies.statistics import components
from test_layers import made

SMALL = {
    "n_images": 60,
    "layers": (6, 5),
    "seeds": (0, 4),
    "methods": ("cd", "lea-mvd", "cma-es"),
    "n_gen": 3,
}
SMALL |= {"population_size": 6, "n_elite": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("mnist"))


@pytest.fixture(scope="module")
def found(folder) -> Tables:
    return stacks.tables("quick", folder, **SMALL)


# ---- what is computed


def test_settings_take_effect_and_bad_ones_are_refused(found) -> None:
    assert found.runs["iteration"].max() == 3
    assert found.runs.groupby("layer")["n_hidden"].first().tolist() == [6, 5]
    assert set(found.runs["method"]) == set(SMALL["methods"])
    for wrong in ({"size": "14x14"}, {"methods": ("sgd",)}, {"n_gen": 0}, {"inputs": ("theirs",)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            stacks.tables("quick", **wrong)
    with pytest.raises(ValueError, match="profile"):
        stacks.tables("variants", size="7x7")
    with pytest.raises(ValueError, match="n_gen"):
        stacks.tables("recorded", n_gen=30)


def test_pictures_are_what_stacks_give_back(found) -> None:
    study = PROFILES["7x7"]["quick"].changed(**SMALL)
    data = study.images.load("float64")
    stack = pretrain(
        data.train, (6, 5), method="lea-mvd", training=study.training, reading=study.reading, seed=4
    )
    shown = stacks.images(found.pictures, 4)
    digits = data.test[[np.flatnonzero(data.test_labels == label)[0] for label in range(10)]]
    expected = {"original": digits, "LEA-MVD, RBM 1": stack[0].reconstruct(digits)}
    expected["LEA-MVD, all 2"] = dbn.reconstruct(stack, digits)
    for name, images in expected.items():
        np.testing.assert_array_equal(shown[name], np.rint(255 * images).reshape(10, 7, 7))
    assert len(shown) == 1 + 2 * 3
    weights = stacks.images(found.pictures, 4, "weights")["LEA-MVD"]
    W = stack[0].W.T
    np.testing.assert_array_equal(weights, np.rint(127.5 * (1 + W / abs(W).max())).reshape(6, 7, 7))


def test_on_shared_inputs_alone_the_first_layer_is_shown(folder) -> None:
    own = stacks.tables("quick", folder, **SMALL | {"inputs": ("shared",), "methods": ("cd",)})
    assert set(own.pictures["layers"]) == {0, 1}


# ---- tables


def test_the_start_is_shown_where_the_search_begins_or_as_the_controls_have_it() -> None:
    """LEA-MVD has moved RBM 2 on own inputs, so RBM 3 sees other features than a stack of start
    solutions does.
    """
    cells = [(kind, layer) for kind in ("own", "shared") for layer in (1, 2, 3)]
    runs = made({(*cell, "lea-mvd"): [[5.0, 4.0 if cell == ("own", 2) else 5.0]] for cell in cells})
    control = made({("own", layer, "cd:n_gen=1"): [[9.0, 7.0]] for layer in (1, 2, 3)})
    both = stacks.with_start(runs, control)
    start = both[both["method"] == "start"].set_index(["inputs", "layer"])["mean_field"]
    assert start.to_dict() == {cell: 7.0 if cell == ("own", 3) else 5.0 for cell in cells}
    assert len(stacks.with_start(runs, control[:0])) == len(both) - 1, "no controls, no start"
    assert stacks.left_start(both).to_dict() == {
        (*cell, "lea-mvd"): int(cell == ("own", 2)) for cell in cells
    }
    without = runs.assign(method="cd")
    assert len(stacks.with_start(without, control[:0])) == len(without)


@pytest.mark.parametrize("size", ["7x7", "28x28"])
def test_a_run_is_compared_with_what_is_recorded_of_its_size(size: str) -> None:
    """Of the paper's methods with itself: which shares most with it is that."""
    measured = stacks.tables(size=size)
    runs = measured.runs[measured.runs["iteration"].isin([0, 50])]
    ratios = stacks.summary(measured._replace(runs=runs), "paper", size)
    assert ratios["ratio"].tolist() == pytest.approx([1] * len(ratios))
    assert "ratio" not in stacks.summary(measured._replace(runs=runs), "paper", size, n_gen=49)


def test_the_start_goes_before_the_methods_of_its_inputs_and_layer() -> None:
    cells = [("shared", 2), ("own", 2), ("own", 1)]
    runs = made({(*cell, m): [[5.0, 4.0]] * 2 for cell in cells for m in ("random", "lea-mvd")})
    control = made({("own", 2, "cd:n_gen=1"): [[9.0, 7.0], [9.0, 6.0]]})
    both = stacks.with_start(runs, control)
    order = both.drop_duplicates(["inputs", "layer", "method"])
    assert order[["inputs", "layer", "method"]].to_numpy().tolist() == [
        [*cell, method] for cell in cells[::-1] for method in ("start", "random", "lea-mvd")
    ][:6] + [["shared", 2, method] for method in ("start", "random", "lea-mvd")]
    assert both.index.tolist() == [*range(len(both))]
    start = both[both["method"] == "start"]
    assert start[["inputs", "layer", "seed", "mean_field"]].to_numpy().tolist() == [
        ["own", 1, 0, 5.0],
        ["own", 1, 1, 5.0],
        ["own", 2, 0, 7.0],  # RBM 1 has been changed, so this is what the controls have
        ["own", 2, 1, 6.0],
        ["shared", 2, 0, 5.0],
        ["shared", 2, 1, 5.0],
    ]
    shared = runs[runs["inputs"] == "shared"]
    alone = stacks.with_start(shared, control)
    assert {*alone["inputs"]} == {"shared"}, "controls are of inputs that are shown"


def test_runs_that_were_ever_below_their_start_are_counted() -> None:
    runs = made(
        {
            ("own", 1, "lea-mvd"): [[5.0, 4.0, 6.0], [5.0, 5.0, 5.0], [5.0, 7.0, 4.9]],
            ("own", 1, "lea-mvd:sigma0=1"): [[5.0, 6.0, 6.0]] * 3,
            ("own", 1, "cd"): [[5.0, 4.0, 3.0]] * 3,
            ("own", 1, "cd:n_gen=1"): [[5.0, 4.0]] * 3,
            ("own", 1, "start"): [[5.0, 4.0]] * 3,
            ("shared", 1, "lea-mvd"): [[5.0, 4.0, 6.0]] * 2,
        }
    )
    assert stacks.left_start(runs).to_dict() == {
        ("own", 1, "lea-mvd"): 2,
        ("own", 1, "lea-mvd:sigma0=1"): 0,
        ("shared", 1, "lea-mvd"): 2,
    }


def test_recorded_tables_are_of_the_size_that_is_asked_for() -> None:
    for size, visible, methods, beside in (
        ("7x7", 49, stacks.METHODS, {"cd:n_gen=1", "cma-es:n_gen=42"}),
        ("28x28", 784, ("cd", "lea-mvd"), {"cd:n_gen=1", "lea-mvd:printed"}),
    ):
        found = stacks.tables(size=size)
        first = found.runs[found.runs["layer"] == 1]
        assert (
            {*first["n_visible"]} == {*found.controls.query("layer == 1")["n_visible"]} == {visible}
        )
        assert {*found.runs["method"]} == {*found.pictures["method"]} == {*methods}
        assert {*found.controls["method"]} == beside
        assert {*found.controls["inputs"]} == {"own"}
        images = found.pictures.query("kind == 'digit' and layers == 0")
        pixels = images.groupby(["method", "seed", "image"]).size()
        assert {*pixels} == {visible}
    assert stacks.tables().runs.equals(stacks.tables(size="7x7").runs)


def test_pictures_are_planned_of_the_last_layer_of_the_first_seeds() -> None:
    study = PROFILES["7x7"]["quick"].changed(seeds=(5, 6, 7, 8), methods=("lea-mvd", "cd"))
    for inputs, top in ((("own", "shared"), 3), (("shared", "own"), 3), (("shared",), 1)):
        planned = stacks.plan(replace(study, inputs=inputs))
        columns, calls = planned["runs"]
        assert columns == ["inputs", "layer", "method", "seed"]
        shown_by, shown = planned["pictures"]
        assert shown_by == ["method", "seed"]
        assert [*shown] == [*product(("lea-mvd", "cd"), (5, 6, 7))]
        for (method, seed), call in shown.items():
            kind = "own" if "own" in inputs else "shared"
            assert call.arguments["top"].key == calls[kind, top, method, seed].key
            assert call.arguments["source"] == study.images
            assert call.arguments["dtype"] == "float64"


@pytest.mark.parametrize("name", ["one_update_7x7", "one_update_28x28", "image_sets"])
def test_labels_of_several_studies_say_what_their_calls_have(name: str) -> None:
    columns, calls = stacks.RECORDED[name].plan()["runs"]
    shared = 0
    for label, call in calls.items():
        told = dict(zip(columns, label, strict=True))
        training = call.arguments["training"]
        images = call.arguments["images"]
        if name == "image_sets":
            assert told["image_set"] == images.image_set
            assert training.batch_size < images.n_images
        elif told["method"] in ("cd", "lea-mvd:printed"):
            found = (training.final_momentum, training.learning_rate)
            assert found == (told["final_momentum"], told["learning_rate"])
            assert training.weight_scale == told["learning_rate"]
            assert training.batch_size >= images.n_images, "all images in one update"
        if told["inputs"] == "shared":
            shared += 1
            assert told["method"] != "lea-mvd:printed"
        assert call.arguments["seed"] == told["seed"]
        assert call.arguments["trainer"] == told["method"].partition(":")[0]
    assert shared


def test_what_is_computed_has_no_controls(found: Tables) -> None:
    assert found.controls.empty
    assert [*found.controls] == [*found.runs]


def test_means_at_the_end() -> None:
    cells = {
        ("own", 1, "cd"): [[9.0, 1.0], [9.0, 5.0]],
        ("own", 1, "lea-mvd"): [[9.0, 8.0], [9.0, 9.0]],
    }
    table = made(
        cells
        | {
            ("shared", 1, "cd"): [[9.0, 2.0]],
            ("shared", 1, "lea-mvd"): [[9.0, 6.0], [9.0, 4.0]],
        }
    )
    row = stacks.final(table).loc[("own", 1, "cd")]
    assert row[["mean_field", "test_mean_field", "sampled", "test_sampled"]].tolist() == [
        300,
        3000,
        900,
        9000,
    ]
    assert row[["constant_image", "mean_field_ratio", "input_std"]].tolist() == pytest.approx(
        [5000, 0.06, 0.2]
    )


def test_equal_evaluations_are_those_of_the_first_generation_that_has_as_many() -> None:
    ours, theirs = (
        [[8.0, 4.0], [9.0, 6.0], [9.0, 8.0]],
        [[9.0, 8.0, 1.0], [9.0, 12.0, 1.0], [9.0, 16.0, 1.0]],
    )
    runs = made(
        {
            ("shared", 2, "lea-mvd"): ours,
            ("shared", 2, "cma-es"): theirs,
            ("own", 2, "lea-mvd"): theirs,
        }
    )
    found = stacks.equal_evaluations(runs).loc[2]
    assert (found["ratio"], found["generations of CMA-ES"]) == (pytest.approx(0.5), 1)


def test_equal_evaluations_have_the_interval_of_ranks_in_each_layer() -> None:
    """Of six pairs the largest interval has 2^-5 outside it: it reaches from the least of the
    ratios to the largest one.
    """
    ratios = np.array([0.2, 0.5, 0.6, 0.7, 0.9, 2.0])
    runs = made(
        {
            ("shared", 3, "lea-mvd"): [[9.0, 9.0, 4.0 * ratio] for ratio in ratios],
            ("shared", 3, "cma-es"): [[9.0, 7.0, 4.0, 1.0]] * 6,
            ("shared", 1, "lea-mvd"): [[9.0, 3.0 * ratio] for ratio in 1 / ratios],
            ("shared", 1, "cma-es"): [[9.0, 3.0, 4.0, 1.0]] * 6,
        }
    )
    found = stacks.equal_evaluations(runs)
    assert [*found.index] == [1, 3]
    assert found["generations of CMA-ES"].tolist() == [1, 2]
    first, second = np.triu_indices(6)
    for layer, own in ((3, ratios), (1, 1 / ratios)):
        middle = np.median(np.sqrt(own[first] * own[second]))
        expected = [middle, own.min(), own.max()]
        assert found.loc[layer, ["ratio", "low", "high"]].tolist() == pytest.approx(expected)


def test_what_sets_of_images_share_widens_an_interval() -> None:
    rng = np.random.default_rng(1)
    sets, seeds = rng.normal(0, 0.2, 40), rng.normal(0, 0.1, 40)
    rows = [
        (
            "own",
            1,
            i,
            j,
            method,
            np.exp(0.7 + sets[i] + seeds[j] + rng.normal(0, 0.05)) if method != "cd" else 1.0,
        )
        for i in range(40)
        for j in range(40)
        for method in ("cd", "lea-mvd")
    ]
    table = pd.DataFrame(
        rows, columns=["inputs", "layer", "image_set", "seed", "method", "mean_field"]
    )
    row = stacks.image_sets(table).loc[("own", 1)]
    assert row["ratio"] == pytest.approx(np.exp(0.7 + sets.mean() + seeds.mean()), rel=0.01)
    between = row[["between sets, %", "between seeds, %", "neither, %"]]
    assert between.tolist() == pytest.approx(
        [100 * sets.std(ddof=1), 100 * seeds.std(ddof=1), 5], rel=0.1
    )
    of_sets, of_seeds, neither = between
    assert row["times as wide"] == pytest.approx(
        np.sqrt(1 + 30 * of_sets**2 / (of_seeds**2 + neither**2))
    )
    pairs = table.pivot(index=["image_set", "seed"], columns="method", values="mean_field")
    pairs["log"] = np.log(pairs["lea-mvd"] / pairs["cd"])
    known = components(pairs.reset_index(), "log", "image_set", "seed")
    ends = row[["ratio", "95 % interval low", "95 % interval high"]]
    assert ends.tolist() == pytest.approx(np.exp(known[["mean", "low", "high"]]).tolist())


# ---- figures


@pytest.mark.parametrize(
    ("name", "where"),
    [
        ("backend_agreement", {("own", 1)}),
        ("backend_agreement_above", {("shared", 2), ("shared", 3)}),
    ],
)
def test_backends_are_compared_in_first_layers_and_in_those_above_on_shared_inputs(
    name: str, where: set[tuple[str, int]]
) -> None:
    columns, calls = stacks.RECORDED[name].plan()["runs"]
    labels = pd.DataFrame([*calls], columns=columns)
    assert {*zip(labels["inputs"], labels["layer"], strict=True)} == where
    for backend, rows in zip(labels["search"], calls.values(), strict=True):
        training = rows.arguments["training"]
        assert backend == f"{training.backend} {training.precision}"


def test_sets_of_images_share_none() -> None:
    sets = []
    for study in stacks.IMAGE_SETS:
        images = replace(study.images, dataset="digits", n_images=140)
        sets.append({image.tobytes() for image in images.load("float32").train})
    assert len(set.union(*sets)) == sum(map(len, sets))


def test_of_many_methods_the_papers_are_told_apart() -> None:
    many = [f"lea-mvd:sigma0={i}" for i in range(1, 7)]
    for methods, kept in (
        (many[:4], many[:4]),
        (many, many[:4]),
        ([*many, "cd", "cma-es"], ["cd", "cma-es"]),
    ):
        table = made({("own", 1, method): [[1.0]] for method in methods})
        assert stacks.told_apart(table)["method"].unique().tolist() == kept
    assert stacks.told_apart(table, [many[1]])["method"].unique().tolist() == [
        many[1],
        "cd",
        "cma-es",
    ]


def test_points_of_training_and_of_test_images_look_as_the_caption_says() -> None:
    table = pd.DataFrame(
        {"seed": [0, 1], "mean_field": [2.0, 3.0], "test_mean_field": [7.0, 8.0]}
    ).assign(inputs="own", layer=1, method="cd", iteration=5, n_images=10_000, n_test_images=10_000)
    (ax,) = stacks.plot_ends(table, "error").axes
    plots.plt.close(ax.figure)
    assert_sound(ax.figure)
    drawn = {place[0]: filled for place, filled in faces_drawn(ax).items()}
    said = faces_said("03_mnist_7x7", "mnist-{size}-ends")
    assert drawn == {2.5: said["training images"], 7.5: said["test images"]}


def test_a_run_of_one_generation_is_seen_and_a_figure_without_numbers_says_so(
    found, tmp_path
) -> None:
    one = found.runs.query("iteration <= 1")
    figure = stacks.plot_learning(one, "mean_field", "error")
    plots.save(figure, "one", tmp_path)
    assert {
        line.get_marker() for ax in figure.axes for line in ax.get_legend_handles_labels()[0]
    } == {"o"}
    figure = stacks.plot_learning(found.runs.assign(sampled=np.nan), "sampled", "error")
    plots.save(figure, "none", tmp_path)
    assert all("no finite values" in [text.get_text() for text in ax.texts] for ax in figure.axes)
    figure = stacks.plot_learning(found.runs, "sampled", "error")
    plots.save(figure, "usual", tmp_path)
    assert all(line.get_marker() == "None" for ax in figure.axes for line in ax.lines)
    assert_sound(figure)
    assert_methods_have_their_colors(figure)


def test_the_papers_numbers_stand_beside_ours_in_the_colors_of_methods() -> None:
    rows = [
        (stacks.PAPERS, 2, "cd", 50_000.0, np.nan, np.nan),
        ("mean_field", 2, "cd", 14_128.0, 13_970.0, 14_290.0),
        ("sampled", 2, "cd", 51_482.0, 51_270.0, 51_700.0),
        (stacks.PAPERS, 3, "lea-mvd", 900.0, np.nan, np.nan),
    ]
    columns = ["measure", "layer", "method", "mean", "low", "high"]
    figure = stacks.plot_beside_paper(pd.DataFrame(rows, columns=columns))
    plots.plt.close(figure)
    assert_sound(figure)
    first, second = figure.axes
    assert [text.get_text() for text in first.texts] == ["50,000", "14,130", "51,480"]
    assert [text.get_text() for text in second.texts] == ["900"]
    for ax, method in ((first, "cd"), (second, "lea-mvd")):
        drawn = [line for line in ax.lines if len(line.get_xdata())]
        assert {line.get_color() for line in drawn} == {plots.COLORS[method]}
    assert faces_drawn(first) == {(14_128, 0): True, (51_482, 0.27): False}
    (papers,) = (line for line in first.lines if line.get_marker() == "D" and len(line.get_xdata()))
    assert papers.get_xydata().tolist() == [[50_000, -0.27]]
    assert second.get_xlabel() == "error of 10,000 images"
    names = [label.get_text() for label in second.get_yticklabels()]
    places = {x: names[round(y)] for line in second.lines for x, y in line.get_xydata()}
    assert places == {900: "LEA-MVD"}
    figure.draw_without_rendering()
    for ax in figure.axes:
        assert all(text.get_window_extent().x1 <= ax.bbox.x1 for text in ax.texts)


def test_pictures_are_named_by_method_and_layers() -> None:
    rows = product(["cd"], [0, 1, 3], [0, 1], range(4))
    table = pd.DataFrame(rows, columns=["method", "layers", "image", "pixel"])
    table = table.assign(seed=1, kind="digit", gray=table["layers"])
    shown = stacks.images(table, 1)
    assert {name: set(grays.flat) for name, grays in shown.items()} == {
        "original": {0},
        "CD, RBM 1": {1},
        "CD, all 3": {3},
    }
    assert {grays.shape for grays in shown.values()} == {(2, 2, 2)}
    weights = stacks.images(table.query("layers == 3").assign(kind="weight"), 1, "weight")
    assert [*weights] == ["CD"]
