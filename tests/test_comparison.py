import numpy as np
import pandas as pd
import pytest

from leamvd.analysis import comparison, statistics
from leamvd.studies.study import ONE_EPOCH, Study


def frame(errors, *, inputs=("own",), layers=(1,), n_images=100, constant=50.0):
    """Records where `errors[method]` holds one list of errors, by iteration, for each seed; sampled is 3 times that."""
    rows = [
        {
            "method": method, "inputs": inputs, "layer": layer, "seed": seed, "iteration": iteration,
            "mean_field": error, "sampled": 3 * error, "mean_field_ratio": error / constant,
            "sampled_ratio": 3 * error / constant, "test_mean_field": 2 * error, "test_sampled": 5 * error,
            "evaluations": 0, "passes": 2 * iteration, "products": 0, "seconds": iteration + seed,
            "n_visible": 4, "n_hidden": 2, "n_var": 14, "n_images": n_images, "n_test_images": 20,
            "input_std": 0.1 * layer,
        }
        for inputs in inputs for layer in layers for method, runs in errors.items()
        for seed, run in enumerate(runs) for iteration, error in enumerate(run)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_what_is_read_is_per_10000_images_of_its_own_kind():
    table = frame({"cd": [[9.0, 1.0]]}, n_images=100)
    assert comparison.scaled(table, "mean_field").tolist() == [900.0, 100.0]
    assert comparison.scaled(table, "sampled").tolist() == [2700.0, 300.0]
    assert comparison.scaled(table, "test_mean_field").tolist() == [9000.0, 1000.0]  # of 20 images
    assert comparison.scaled(table, "test_sampled").tolist() == [22500.0, 2500.0]
    assert comparison.scaled(table, "mean_field_ratio").tolist() == table["mean_field_ratio"].tolist()
    assert comparison.runs(table, "test_mean_field")["value"].tolist() == [9000.0, 1000.0]


def test_of_many_methods_the_papers_are_drawn_or_the_first_ones():
    others = [f"lea-mvd:sigma0={i}" for i in range(1, 7)]
    for names, shown in (
        (["cd", *others[:3]],) * 2,
        (["lea-mvd", "cd", *others], ["lea-mvd", "cd"]),
        (others, others[:4]),
    ):
        found = comparison.drawn(frame({name: [[1.0]] for name in names}))
        assert found["method"].unique().tolist() == shown


def test_label_and_setting_say_what_was_run():
    one, four = Study(seeds=(3,)), Study(layers=(6, 5), seeds=(0, 1, 2, 3))
    table = frame({"cd": [[1.0]]}, n_images=60_000)
    assert comparison.label(one, "some digits", table) == "some digits, 60,000 images of 7 x 7, 1 run"
    assert comparison.label(four, "MNIST", table).endswith("of 7 x 7, 4 runs")
    rows = comparison.setting(four, "MNIST", table, four.training.computation)["value"]
    shown = ["data set", "training images", "test images", "layers", "variables", "seeds"]
    assert rows[shown].tolist() == ["MNIST", "60,000", "20", "49-6-5", "349, 41", "0, 1, 2, 3"]
    assert rows["methods"].tolist() == list(four.methods)


def test_the_last_iteration_is_that_of_each_run():
    table = frame({"cd": [[9.0, 8.0, 7.0], [9.0, 6.0]], "lea-mvd": [[9.0, 5.0]] * 2}, inputs=("own", "shared"))
    last = comparison.last(table)
    assert last[last["inputs"] == "own"]["mean_field"].tolist() == [7.0, 6.0, 5.0, 5.0]


def test_final_means_are_means():
    """Of runs that lie asymmetrically: their median is another number."""
    table = frame({"cd": [[9.0, 1.0], [9.0, 2.0], [9.0, 99.0]]}, layers=(1, 2))
    row = comparison.final_means(table).loc[("own", 2, "cd")]
    assert (row["constant"], row["input std"]) == pytest.approx((5_000, 0.2))
    assert (row["mean-field"], row["sampled"]) == pytest.approx((3_400, 10_200))
    assert (row["test mean-field"], row["test sampled"]) == pytest.approx((34_000, 85_000))
    assert (row["mean-field ratio"], row["sampled ratio"]) == pytest.approx((0.68, 2.04))


def test_prose_quotes_means_by_inputs_method_and_layer():
    table = frame({"cd": [[9.0, 1.0], [9.0, 2.0], [9.0, 99.0]]}, inputs=("own", "shared"), layers=(1, 2, 3))
    table.loc[table["inputs"] == "shared", "mean_field_ratio"] *= 7
    values = comparison.quoted(table)
    names = ("error", "test", "sampled", "ratio", "sampled-ratio", "std")
    assert [values[f"cd-3-{name}"] for name in names] == pytest.approx([3_400, 34_000, 10_200, 0.68, 2.04, 0.3])
    assert values["shared-cd-2-ratio"] == pytest.approx(4.76)
    assert values["start-shared-cd-1-error"] == 900.0
    assert values["passes-cd-2"] == values["shared-cd-2-error"], "of the last kind of inputs, and of one method"
    assert (values["searches"], values["improved"]) == (0, 0)
    assert comparison.quoted(table[table["inputs"] == "shared"])["cd-2-ratio"] == pytest.approx(4.76)


def test_searches_that_end_below_their_start_are_counted_once():
    table = frame({"lea-mvd": [[9.0, 9.0], [9.0, 9.0]]}, inputs=("own", "shared"), layers=(1, 2))
    better = table.eval("inputs == 'shared' and seed == 1 and iteration == 1")
    found = comparison.quoted(table.assign(mean_field=table["mean_field"] - better))
    assert (found["searches"], found["improved"]) == (6, 1), "RBM 1 has one kind of inputs"


STAYS, COMES_BACK, LEAVES = [9.0, 9.0, 9.0], [9.0, 12.0, 9.0], [9.0, 8.0, 10.0]


def test_a_search_has_left_its_start_where_it_was_ever_below_it():
    """Not where it lies above its start, which then was in no population; and contrastive divergence is no search."""
    runs = {"cd": [LEAVES] * 3, "lea-mvd": [STAYS, LEAVES, STAYS], "lea-mvd:x0-excluded": [COMES_BACK, LEAVES, LEAVES]}
    table = frame(runs, inputs=("own", "shared"), layers=(1, 2))
    table.loc[table.eval("inputs == 'shared' and layer == 2"), "mean_field"] = 9.0
    found = comparison.left_start(table)
    assert list(found.index.unique("method")) == ["lea-mvd", "lea-mvd:x0-excluded"]
    assert found["runs"].eq(3).all()
    assert found["left"].unstack("method").to_numpy().tolist() == [[1, 2], [1, 2], [1, 2], [0, 0]]
    values = comparison.quoted(table)
    assert [values[f"{name}-left"] for name in ("lea-mvd-2", "lea-mvd-x0-excluded-1", "shared-lea-mvd-2")] == [1, 2, 0]
    begun_late = table[(table["iteration"] > 0) | (table["seed"] > 0)]
    assert comparison.left_start(begun_late)["runs"].eq(2).all()


@pytest.mark.parametrize("methods", [["cd"], ["cd", "cma-es"]])
def test_without_lea_mvd_there_is_no_start(methods):
    table = frame({method: [LEAVES] for method in methods}, inputs=("own", "shared"), layers=(1, 2))
    assert len(comparison.left_start(table)) == 4 * ("cma-es" in methods)
    assert comparison.with_start(table).equals(table)
    assert comparison.quoted(comparison.with_start(table))["improved"] == 0


def test_the_start_is_where_searches_begin_until_one_has_made_other_features(monkeypatch):
    """In the second layer the first search leaves its start: above it, on own inputs, the start is not known."""
    table = frame({"cd": [LEAVES] * 2, "lea-mvd": [STAYS, STAYS]}, inputs=("own", "shared"), layers=(1, 2, 3))
    table.loc[table["iteration"] == 0, "mean_field"] += table["layer"]
    stays = table.assign(mean_field=table["mean_field"].where(table["method"] == "cd", 9.0 + table["layer"]))
    assert comparison.left_start(stays)["left"].sum() == 0

    def starts(rows, name=""):
        found = comparison.with_start(rows, name)
        assert found[found["method"] != "start"].reset_index(drop=True).equals(rows)
        assert comparison.left_start(found).equals(comparison.left_start(rows)), "the start does not search"
        means = found[found["method"] == "start"].groupby(["inputs", "layer"])["mean_field"]
        assert found.drop_duplicates(["inputs", "layer"])["method"].eq("start").sum() == len(means), "before the others"
        assert means.size().eq(2).all()
        return means.mean().to_dict()

    shared = {("shared", 1): 10.0, ("shared", 2): 11.0, ("shared", 3): 12.0}
    assert starts(stays) == shared | {("own", 1): 10.0, ("own", 2): 11.0, ("own", 3): 12.0}
    leaves = stays["mean_field"].mask(
        stays.eval("method == 'lea-mvd' and layer == 2 and iteration == 2 and seed == 0"), 1.0
    )
    moved = stays.assign(mean_field=leaves)
    known = {("own", 1): 10.0, ("own", 2): 11.0}
    assert starts(moved) == shared | known
    controls = frame({ONE_EPOCH: [[99.0, 5.0]] * 2, "cma-es:n_gen=42": [STAYS] * 2}, layers=(1, 2, 3))
    monkeypatch.setattr(comparison.archive, "exists", lambda name: name == "small_controls")
    monkeypatch.setattr(comparison.archive, "read", lambda name: controls)
    assert starts(moved, "small") == shared | known | {("own", 3): 5.0}
    assert starts(stays, "small")["own", 3] == 12.0
    values, ends = comparison.quoted(comparison.with_start(moved, "small")), comparison.quoted(moved)
    assert {values.pop(f"start-{layer}-error") for layer in (1, 2, 3)} == {1000.0, 1100.0, 500.0}
    assert {name: value for name, value in values.items() if name in ends} == ends, "those of the methods stay"
    on_shared = moved[moved["inputs"] == "shared"].reset_index(drop=True)
    assert starts(on_shared, "small") == shared


@pytest.mark.parametrize("layer", [1, 2])
def test_work_is_equal_within_a_layer(layer):
    """A layer in which methods stop early says nothing of the work in another one."""
    table = frame({"cd": [[4.0, 3.0, 2.0]], "lea-mvd": [[4.0, 3.0, 2.0]]}, layers=(1, 2))
    short = table[(table["layer"] == layer) | (table["iteration"] < 2)]
    assert comparison.at_equal(short, "passes").groupby("layer")["iteration"].max().to_dict() == {
        layer: 2, 3 - layer: 1
    }  # fmt: skip


def test_a_key_is_the_words_of_its_row_and_column():
    rows = {("RBM 1", "lea-mvd:sigma0=0.01"): (1 / 3, 2, "x"), ("", "n_elite=1+n_gen=44"): (np.nan, 5, "y")}
    table = pd.DataFrame.from_dict(rows, orient="index", columns=["ratio", "", "% of what"])
    table.index = pd.MultiIndex.from_tuples(table.index)
    assert comparison.quote("two words", table) == {
        "two-words-rbm-1-lea-mvd-sigma0-0.01-ratio": 0.333333,
        "two-words-rbm-1-lea-mvd-sigma0-0.01": 2,
        "two-words-rbm-1-lea-mvd-sigma0-0.01-of-what": "x",
        "two-words-n_elite-1-n_gen-44": 5,
        "two-words-n_elite-1-n_gen-44-of-what": "y",
    }


def test_at_equal_work_each_run_stops_at_what_all_have_spent():
    """Contrastive divergence ends after 3 epochs, LEA-MVD after 3 generations of 10; seeds differ by 2."""
    paths = {"cd": [90.0, 50.0, 40.0, 30.0], "lea-mvd": [50.0, 45.0, 35.0, 20.0]}
    table = frame({method: [path, [error + 2 for error in path]] for method, path in paths.items()})
    spent = {"passes": [0, 1, 2, 3] * 2 + [1, 11, 21, 31] * 2, "seconds": [0, 3, 6, 9] * 2 + [3, 8, 13, 18] * 2}
    table = table.assign(**spent)
    errors = comparison.equal(table).loc[("own", 1)]
    assert errors.loc["iteration"].tolist() == [3_100.0, 2_100.0]
    assert errors.loc["passes"].tolist() == [3_100.0, 5_100.0], "one pass of three: the start solution"
    assert errors.loc["seconds"].tolist() == [3_100.0, 4_600.0], "the first generation ends before nine seconds"
    assert list(errors.columns) == ["cd", "lea-mvd"]
    assert len(comparison.at_equal(table, "passes")) == 4
    other = comparison.equal(table.assign(sampled_ratio=table["iteration"] + 2 * table["seed"]), "sampled_ratio")
    assert other.loc[("own", 1, "passes")].tolist() == [4, 1], "not per 10,000 images"


def test_format_table_rounds_for_reading():
    table = pd.DataFrame({"x": [1234.567, 0.0123456, np.nan], "n": [1, 2, 3000]})
    shown = comparison.format_table(table)
    assert shown["x"].tolist() == ["1,230", "0.0123", "–"]
    assert shown["n"].tolist() == ["1", "2", "3,000"]
    assert table["x"][0] == 1234.567
    texts = {1_002_500.0: "1,000,000", 0.0: "0", 50.0: "50", 1e-7: "1·10⁻⁷", -7.54e-32: "-7.54·10⁻³²", -2.0: "-2"}
    assert {x: statistics.number(x) for x in texts} == texts


def test_pasted_numbers_have_six_digits():
    assert comparison.six_digits(np.float64(0.25742923216150027)) == 0.257429
    assert comparison.six_digits(1_234_567.8) == 1_234_570.0
    assert np.isnan(comparison.six_digits(np.nan))
