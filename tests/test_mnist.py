"""Sections 3 and 4: a small run from settings to figures, and tables with known answers."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from test_layers import made

from leamvd.networks import dbn
from leamvd.networks.dbn import pretrain
from leamvd.paper import layers, mnist, plots, results
from leamvd.paper.mnist import PROFILES, RECORDED, Tables

SMALL = {"n_images": 60, "layers": (6, 5), "seeds": (0, 4), "methods": ("cd", "lea-mvd", "cma-es"), "n_gen": 3}
SMALL |= {"population_size": 6, "n_elite": 2}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("mnist"))


@pytest.fixture(scope="module")
def found(folder) -> Tables:
    return mnist.tables("quick", folder, **SMALL)


# ---- what is computed


def test_settings_take_effect_and_bad_ones_are_refused(found) -> None:
    assert found.runs["iteration"].max() == 3
    assert found.runs.groupby("layer")["n_hidden"].first().tolist() == [6, 5]
    assert set(found.runs["method"]) == set(SMALL["methods"])
    for wrong in ({"size": "14x14"}, {"methods": ("sgd",)}, {"n_gen": 0}, {"inputs": ("theirs",)}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            mnist.tables("quick", **wrong)
    with pytest.raises(ValueError, match="profile"):
        mnist.tables("variants", size="7x7")
    with pytest.raises(ValueError, match="n_gen"):
        mnist.tables("recorded", n_gen=30)


def test_a_second_run_computes_nothing(found, folder, monkeypatch) -> None:
    monkeypatch.setattr(dbn, "reconstruct", None)
    monkeypatch.setattr(layers, "train", None)
    for own, again in zip(found, mnist.tables("quick", folder, **SMALL), strict=True):
        pd.testing.assert_frame_equal(own, again)


def test_pictures_are_what_stacks_give_back(found) -> None:
    study = PROFILES["7x7"]["quick"].changed(**SMALL)
    data = study.images.load("float64")
    stack = pretrain(data.train, (6, 5), method="lea-mvd", training=study.training, reading=study.reading, seed=4)
    shown = mnist.images(found.pictures, 4)
    digits = data.test[[np.flatnonzero(data.test_labels == label)[0] for label in range(10)]]
    expected = {"original": digits, "lea-mvd, RBM 1": stack[0].reconstruct(digits)}
    expected["lea-mvd, all 2"] = dbn.reconstruct(stack, digits)
    for name, images in expected.items():
        np.testing.assert_array_equal(shown[name], np.rint(255 * images).reshape(10, 7, 7))
    assert len(shown) == 1 + 2 * 3
    weights = mnist.images(found.pictures, 4, "weights")["lea-mvd"]
    W = stack[0].W.T
    np.testing.assert_array_equal(weights, np.rint(127.5 * (1 + W / abs(W).max())).reshape(6, 7, 7))


def test_on_shared_inputs_alone_the_first_layer_is_shown(folder) -> None:
    own = mnist.tables("quick", folder, **SMALL | {"inputs": ("shared",), "methods": ("cd",)})
    assert set(own.pictures["layers"]) == {0, 1}


def test_the_summary_has_the_last_errors(found) -> None:
    rows = mnist.summary(found, "quick", **SMALL).set_index(["measure", "inputs", "layer", "method"])
    last = found.runs[found.runs["iteration"] == 3].query("inputs == 'own' and layer == 2 and method == 'cma-es'")
    assert rows.loc[("sampled", "own", 2, "cma-es"), "mean"] == pytest.approx(last["sampled"].mean() * 1e4 / 60)
    assert "ratio" not in rows, "nothing with these settings is recorded"


@pytest.mark.parametrize("name", RECORDED)
def test_what_is_recorded_has_the_rows_of_its_plan(name) -> None:
    backends = name.startswith("backend")
    for table, (columns, calls) in RECORDED[name].plan().items():
        rows = results.read_recorded(name, table)
        there = set(rows[columns].itertuples(index=False, name=None))
        assert set(calls) <= there if backends else set(calls) == there, "of backends bfloat16 is recorded too"


# ---- tables


def test_the_start_is_shown_where_the_search_begins_or_as_the_controls_have_it() -> None:
    """LEA-MVD has moved RBM 2 on own inputs, so RBM 3 sees other features than a stack of start solutions does."""
    cells = [(kind, layer) for kind in ("own", "shared") for layer in (1, 2, 3)]
    runs = made({(*cell, "lea-mvd"): [[5.0, 4.0 if cell == ("own", 2) else 5.0]] for cell in cells})
    control = made({("own", layer, "cd:n_gen=1"): [[9.0, 7.0]] for layer in (1, 2, 3)})
    both = mnist.with_start(runs, control)
    start = both[both["method"] == "start"].set_index(["inputs", "layer"])["mean_field"]
    assert start.to_dict() == {cell: 7.0 if cell == ("own", 3) else 5.0 for cell in cells}
    assert len(mnist.with_start(runs, control[:0])) == len(both) - 1, "no controls, no start"
    assert mnist.left_start(both).to_dict() == {(*cell, "lea-mvd"): int(cell == ("own", 2)) for cell in cells}
    without = runs.assign(method="cd")
    assert len(mnist.with_start(without, control[:0])) == len(without)


def test_means_at_the_end_and_the_answer() -> None:
    table = made({("own", 1, "cd"): [[9.0, 1.0], [9.0, 5.0]], ("own", 1, "lea-mvd"): [[9.0, 8.0], [9.0, 9.0]]})
    row = mnist.final(table).loc[("own", 1, "cd")]
    assert row[["mean field", "test mean field", "sampled", "test sampled"]].tolist() == [300, 3000, 900, 9000]
    assert row[["constant image", "mean field ratio", "input std"]].tolist() == pytest.approx([5000, 0.06, 0.2])
    assert mnist.answer(table, "own")["RBM 1"].tolist() == [1, 850, 300, 2550, 900]
    assert mnist.answer(table[table["method"] == "cd"], "own").loc["mean-field error, CD"].tolist() == [300]


def test_at_equal_work_methods_stop_where_the_first_has_spent_its_own() -> None:
    runs = made({("own", 1, "cd"): [[9.0, 8.0, 7.0]], ("own", 1, "lea-mvd"): [[9.0, 6.0, 5.0, 4.0]]})
    runs.loc[runs["method"] == "lea-mvd", "passes"] *= 3
    found = mnist.equal_work(runs).loc[("own", 1)]
    assert found["cd"].tolist() == [700, 700, 700]
    assert found["lea-mvd"].to_dict() == {"iteration": 500, "passes": 900, "seconds": 500}


def test_equal_evaluations_are_those_of_the_first_generation_that_has_as_many() -> None:
    ours, theirs = [[8.0, 4.0], [9.0, 6.0], [9.0, 8.0]], [[9.0, 8.0, 1.0], [9.0, 12.0, 1.0], [9.0, 16.0, 1.0]]
    runs = made({("shared", 2, "lea-mvd"): ours, ("shared", 2, "cma-es"): theirs})
    found = mnist.equal_evaluations(runs).loc["RBM 2"]
    assert (found["ratio"], found["generations of CMA-ES"]) == (pytest.approx(0.5), 1)


def test_improvements_are_on_the_seeds_that_all_methods_have() -> None:
    cells = {"lea-mvd": [[10.0, 5.0], [10.0, 10.0], [10.0, 1.0]], "random": [[10.0, 12.0], [10.0, 10.0]]}
    runs = made({("own", 1, method): own for method, own in cells.items()} | {("own", 1, "cd"): [[1.0]]})
    found = mnist.improvements(runs)
    assert found["fall, %"].to_dict() == pytest.approx({(1, "lea-mvd"): 25, (1, "random"): -10})
    assert found["at the end"].tolist() == [750, 1100]


def test_backends_are_equivalent_within_two_percent() -> None:
    a = np.random.default_rng(0).uniform(50, 100, 12)
    runs = {"numpy float32": a, "same": a, "near": a * np.tile([0.995, 1.006], 6), "far": 1.03 * a}
    rows = [("s", "m", 1, name, seed, error) for name, own in runs.items() for seed, error in enumerate(own)]
    table = pd.DataFrame(rows, columns=["section", "method", "layer", "search", "seed", "mean_field"])
    found = mnist.agreement(table).set_index("search")
    assert found["equivalent"].to_dict() == {"same": True, "near": True, "far": False}
    assert found.loc["same", ["equal", "ratio"]].tolist() == [12, 1]
    assert found["between seeds"].tolist() == pytest.approx([np.log(a).std(ddof=1)] * 3)


def test_what_sets_of_images_share_widens_an_interval() -> None:
    rng = np.random.default_rng(1)
    sets, seeds = rng.normal(0, 0.2, 40), rng.normal(0, 0.1, 40)
    rows = [
        ("own", 1, i, j, method, np.exp(0.7 + sets[i] + seeds[j] + rng.normal(0, 0.05)) if method != "cd" else 1.0)
        for i in range(40)
        for j in range(40)
        for method in ("cd", "lea-mvd")
    ]
    table = pd.DataFrame(rows, columns=["inputs", "layer", "image_set", "seed", "method", "mean_field"])
    row = mnist.image_sets(table).loc[("own", 1)]
    assert row["ratio"] == pytest.approx(np.exp(0.7 + sets.mean() + seeds.mean()), rel=0.01)
    between = row[["between sets, %", "between seeds, %", "neither, %"]]
    assert between.tolist() == pytest.approx([100 * sets.std(ddof=1), 100 * seeds.std(ddof=1), 5], rel=0.1)
    assert row["times as wide"] == pytest.approx(np.sqrt(1 + 30 * 0.2**2 / (0.1**2 + 0.05**2)), rel=0.3)


# ---- figures


def test_curves_are_runs_and_their_means_from_the_first_iteration_on(found) -> None:
    figure = mnist.plot_learning(found.runs, "mean_field", "error", printed={("lea-mvd", 2): 900.0}, constant=True)
    panel = figure.axes[2]
    assert panel.get_title() == "RBM 2, own inputs"
    lines = [line.get_xydata() for line in panel.lines]
    own = found.runs.query("inputs == 'own' and layer == 2 and method == 'cd' and iteration > 0")
    means = own.groupby("iteration")["mean_field"].mean() * 1e4 / 60
    assert any(np.allclose(line, means.reset_index()) for line in lines if len(line) == 3)
    assert len(lines) == 3 * (2 + 1) + 2, "three methods, two seeds; the paper's number and the constant image"
    plt.close(figure)


def test_of_many_methods_the_papers_are_told_apart() -> None:
    many = [f"lea-mvd:sigma0={i}" for i in range(1, 7)]
    for methods, kept in ((many[:4], many[:4]), (many, many[:4]), ([*many, "cd", "cma-es"], ["cd", "cma-es"])):
        table = made({("own", 1, method): [[1.0]] for method in methods})
        assert mnist.told_apart(table)["method"].unique().tolist() == kept


def test_ends_and_work_show_every_method(found) -> None:
    ends = mnist.plot_ends(mnist.with_start(found.runs, found.controls), "error")
    assert [label.get_text() for label in ends.axes[0].get_yticklabels()] == ["start", *SMALL["methods"]]
    bands = layers.bands(found.runs[found.runs["inputs"] == "shared"], "mean_field")
    work = mnist.plot_work(bands, "error")
    assert len(plots.plotted(work)) == len(bands["layer"].unique()) * 3
    for figure in (ends, work):
        plt.close(figure)
