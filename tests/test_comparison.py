import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.networks.dbn import Training
from leamvd.networks.objective import constant_baseline
from leamvd.optimizers.reading import Reading
from leamvd.paper import comparison, records, studies
from leamvd.paper.studies import Study


def frame(errors, *, inputs=("own",), layers=(1,), n_images=100, constant=50.0):
    """Records where `errors[method]` holds one list of errors, by iteration, for each seed; sampled is 3 times that."""
    rows = [
        {
            "method": method, "inputs": inputs, "layer": layer, "seed": seed, "iteration": iteration,
            "mean_field": error, "sampled": 3 * error, "mean_field_ratio": error / constant,
            "sampled_ratio": 3 * error / constant, "test_mean_field_ratio": 2 * error / constant,
            "test_sampled_ratio": 5 * error / constant, "evaluations": 0, "passes": 2 * iteration, "products": 0,
            "seconds": iteration + seed, "n_visible": 4, "n_hidden": 2, "n_var": 14, "n_images": n_images,
            "input_std": 0.1 * layer,
        }
        for inputs in inputs for layer in layers for method, runs in errors.items()
        for seed, run in enumerate(runs) for iteration, error in enumerate(run)
    ]  # fmt: skip
    return pd.DataFrame(rows)


@pytest.fixture(scope="module")
def study():
    return Study(
        n_images=60,
        layers=(6, 5),
        methods=("cd", "lea-mvd", "cma-es"),
        seeds=(3, 4),
        training=Training(n_elite=2, dtype="float64"),
        reading=Reading(n_gen=2, population_size=8),
    )


@pytest.fixture(scope="module")
def output(study, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    records.run(study, folder)
    return folder


def test_bands_of_few_runs_reach_from_the_smallest_to_the_largest():
    table = frame({"cd": [[9.0, 1.0], [9.0, 2.0], [9.0, 6.0]], "lea-mvd": [[8.0, 8.0]] * 3}, layers=(1, 2))
    bands = comparison.bands(table, "mean_field")
    assert len(bands) == 2 * 2 * 2
    row = bands.query("method == 'cd' and layer == 2 and iteration == 1").iloc[0]
    assert row[["low", "mean", "high", "passes", "seconds"]].tolist() == [1.0, 3.0, 6.0, 2.0, 2.0]
    assert list(bands["method"].unique()) == ["cd", "lea-mvd"]
    assert comparison.bands(table, "sampled")["high"].max() == 27.0


@pytest.mark.parametrize("n", [5, 7])
def test_bands_of_five_runs_and_more_are_interquartile_ranges(n):
    errors = np.random.default_rng(1).random((n, 2))
    bands = comparison.bands(frame({"cd": errors.tolist()}), "mean_field")
    for iteration, row in bands.iterrows():
        assert row["low"] == pytest.approx(np.quantile(errors[:, iteration], 0.25))
        assert row["high"] == pytest.approx(np.quantile(errors[:, iteration], 0.75))
        assert row["mean"] == pytest.approx(errors[:, iteration].mean())


def test_label_says_which_band(study):
    data = studies.images(study)
    labels = [
        comparison.label(dataclasses.replace(study, seeds=tuple(range(n))), data) for n in (1, 4, 5)
    ]  # fmt: skip
    assert labels[0] == "scikit-learn digits, 60 images of 7 x 7, 1 run"
    assert labels[1].endswith("4 runs (line: mean, band: smallest to largest)")
    assert labels[2].endswith("5 runs (line: mean, band: quartiles)")


def test_setting_says_what_was_run(study):
    rows = comparison.setting(study, studies.images(study))["value"]
    values = rows.drop("methods").to_dict()
    assert (values["data set"], values["training images"], values["pixels"]) == ("scikit-learn digits", "60", "7 x 7")
    assert (values["layers"], values["variables"]) == ("49-6-5", "349, 41")
    assert (values["n_gen"], values["population_size"], values["n_elite"]) == (2, 8, 2)
    assert (values["backend"], values["seeds"]) == ("numpy on cpu in float64", "3, 4")
    assert rows["methods"].tolist() == ["cd", "lea-mvd", "cma-es"]


def test_the_smaller_study_has_the_same_budget(study):
    small = comparison.smaller(dataclasses.replace(study, side=28, layers=(500, 500)))
    assert (small.side, small.layers, small.inputs) == (7, (30, 30), ("own",))
    assert (small.training, small.reading, small.seeds) == (study.training, study.reading, study.seeds)
    assert (small.methods, small.n_images, small.dataset) == (study.methods, study.n_images, study.dataset)


def test_summary_is_of_the_last_iteration_and_per_image(study, output):
    table = records.run(study, output)
    row = comparison.summary(table).loc[("own", 1, "lea-mvd")]
    V = studies.images(study).train
    last = table.query("inputs == 'own' and layer == 1 and method == 'lea-mvd' and iteration == 2")
    assert row["constant"] == pytest.approx(constant_baseline(V) / 60)
    assert row["mean-field"] == pytest.approx(np.median(last["mean_field"]) / 60)
    assert row["sampled ratio"] == pytest.approx(np.median(last["sampled"]) / constant_baseline(V))
    assert row["input std"] == pytest.approx(V.std(axis=0).mean())
    assert (comparison.final(table)["iteration"] == 2).all()


def test_the_last_iteration_is_that_of_each_run():
    table = frame({"cd": [[9.0, 8.0, 7.0], [9.0, 6.0]], "lea-mvd": [[9.0, 5.0]] * 2}, inputs=("own", "shared"))
    last = comparison.final(table)
    assert last[last["inputs"] == "own"]["mean_field"].tolist() == [7.0, 6.0, 5.0, 5.0]
    assert comparison.compare(table, "lea-mvd", "cd")["ratio"].tolist() == pytest.approx(
        [np.median([5 / 7, 5 / 6])] * 2
    )


def test_summary_takes_medians():
    """Of runs that lie asymmetrically: their mean is another number."""
    row = comparison.summary(frame({"cd": [[9.0, 1.0], [9.0, 2.0], [9.0, 99.0]]})).loc[("own", 1, "cd")]
    assert (row["mean-field"], row["sampled"]) == pytest.approx((0.02, 0.06))
    assert (row["mean-field ratio"], row["sampled ratio"]) == pytest.approx((0.04, 0.12))
    assert (row["test mean-field ratio"], row["test sampled ratio"]) == pytest.approx((0.08, 0.2))


def test_prose_quotes_medians_of_the_first_inputs():
    table = frame({"cd": [[9.0, 1.0], [9.0, 2.0], [9.0, 99.0]]}, inputs=("own", "shared"), layers=(1, 2, 3))
    table.loc[table["inputs"] == "shared", "mean_field_ratio"] *= 7
    values = comparison.quoted(table)
    assert (values["cd-1-ratio"], values["cd-3-test"], values["cd-3-std"]) == pytest.approx((0.04, 0.08, 0.3))
    assert np.isnan([values[f"lea-mvd-{layer}-{name}"] for layer in (1, 3) for name in ("ratio", "test", "std")]).all()
    assert len(values) == 12


def test_compare_pairs_runs_by_seed():
    rng = np.random.default_rng(2)
    a, b = rng.random((2, 9)) + 0.5
    table = frame({"lea-mvd": [[1.0, x] for x in a], "cd": [[1.0, x] for x in b]}, layers=(1, 2))
    # the order of the records does not matter
    rows = comparison.compare(table.sample(frac=1, random_state=0), "lea-mvd", "cd")
    assert sorted(rows["layer"]) == [1, 2]
    for row in rows.to_dict("records"):
        assert (row["runs"], row["wins"]) == (9, (a < b).sum())
        assert row["ratio"] == pytest.approx(np.median(a / b))
        assert row["p"] == pytest.approx(stats.wilcoxon(a, b).pvalue)
    assert comparison.compare(table, "cd", "lea-mvd")["wins"].tolist() == [(b < a).sum()] * 2


def test_compare_without_a_test_or_a_baseline():
    one = comparison.compare(frame({"cd": [[1.0]], "lea-mvd": [[2.0]]}), "cd", "lea-mvd").iloc[0]
    assert (one["runs"], one["wins"], one["ratio"]) == (1, 1, 0.5)
    assert np.isnan(one["p"])
    tied = comparison.compare(frame({"cd": [[1.0]] * 8, "lea-mvd": [[1.0]] * 8}), "cd", "lea-mvd").iloc[0]
    assert np.isnan(tied["p"])
    assert tied["wins"] == 0
    assert comparison.compare(frame({"cd": [[1.0]]}), "cd", "lea-mvd").empty


def test_versus_takes_both_measures_of_the_upper_layers_and_corrects():
    runs = {"lea-mvd": [[0.5 + 0.01 * i] for i in range(8)], "cd": [[1.0 + 0.03 * i] for i in range(8)]}
    rows = comparison.versus(frame(runs, inputs=("own", "shared"), layers=(1, 2, 3)), [("lea-mvd", "cd")])
    assert len(rows) == 2 * 2 * 2
    assert set(rows["layer"]) == {2, 3}
    assert set(rows["measure"]) == {"mean_field", "sampled"}
    assert rows["p"].to_numpy() == pytest.approx(8 * 2 / 2**8)  # all eight runs on one side, eight comparisons
    assert comparison.versus(frame(runs), [("lea-mvd", "cd")]).empty


def slow_holm(p):
    """Step down through the sorted p-values; nothing may be smaller than what came before it."""
    tested = sorted((x, i) for i, x in enumerate(p) if not np.isnan(x))
    result, largest = [np.nan] * len(p), 0.0
    for rank, (x, i) in enumerate(tested):
        largest = max(largest, min(1.0, x * (len(tested) - rank)))
        result[i] = largest
    return result


def test_holm():
    assert comparison.holm(np.array([0.01, 0.04, 0.03])) == pytest.approx([0.03, 0.06, 0.06])
    rng = np.random.default_rng(3)
    for size in range(8):
        p = rng.random(size) ** 3
        p[rng.random(size) < 0.2] = np.nan
        assert comparison.holm(p) == pytest.approx(slow_holm(p), nan_ok=True)


def test_compare_takes_the_median_ratio():
    table = frame({"lea-mvd": [[1.0], [2.0], [90.0]], "cd": [[2.0], [8.0], [10.0]]})
    assert comparison.compare(table, "lea-mvd", "cd")["ratio"].item() == 0.5


def test_a_method_can_have_any_name():
    """A name of a data set or method is text wherever it is shown."""
    shown = comparison.format_table(pd.DataFrame({"method": ["<b>x</b>"], "error": [1.0]}))
    assert "<b>" not in shown.to_html()


def test_format_table_rounds_for_reading():
    table = pd.DataFrame({"x": [1234.567, 0.0123456, np.nan], "n": [1, 2, 3000]})
    shown = comparison.format_table(table)
    assert shown["x"].tolist() == ["1,230", "0.0123", "–"]
    assert shown["n"].tolist() == ["1", "2", "3,000"]
    assert table["x"][0] == 1234.567
    assert [comparison.number(x) for x in (1_002_500.0, 0.0, 50.0, 1e-7, -2.0)] == [
        "1,000,000",
        "0",
        "50",
        "1e-07",
        "-2",
    ]


def test_memory_is_linear_for_lea_mvd_and_square_for_cma_es(study):
    sizes = [dataclasses.replace(study, layers=layers) for layers in ((20,), (60,))]
    n = np.array([comparison.memory(size)["variables"].iloc[0] for size in sizes])
    assert n.tolist() == [49 * 20 + 69, 49 * 60 + 109]
    rows = pd.concat([comparison.memory(size) for size in sizes])
    assert list(rows["method"]) == ["lea-mvd", "cma-es"] * 2
    lea, cma = (rows[rows["method"] == method] for method in ("lea-mvd", "cma-es"))
    assert lea["peak / float64 population"].between(1, 4).all()
    assert lea["peak MB"].to_numpy() == pytest.approx(lea["peak / float64 population"] * 8 * 8 * n / 1e6)
    assert (cma["peak MB"].to_numpy() > 2 * 8 * n**2 / 1e6).all()
    assert (rows["ms a generation"] > 0).all()


@pytest.mark.filterwarnings("ignore")  # pycma's own
def test_decompositions_are_those_that_pycma_makes(study):
    import cma

    longer = dataclasses.replace(study, layers=(3, 2), reading=dataclasses.replace(study.reading, n_gen=30))
    for row in comparison.decompositions(longer).to_dict("records"):
        options = {"popsize": 8, "verbose": -9, "verb_log": 0, "seed": 1}
        strategy = cma.CMAEvolutionStrategy(np.zeros(row["variables"]), 0.1, options)
        for _ in range(30):
            X = strategy.ask()
            strategy.tell(X, [float((x**2).sum()) for x in X])
        assert strategy.sm.count_eigen == row["decompositions"]


def test_reconstructions_are_of_test_images_by_one_layer_and_by_all(study, output):
    data = studies.images(study)
    rows = comparison.reconstructions(study, output, data)
    names = ["original", *(f"{m}, {d}" for m in ("cd", "lea-mvd", "cma-es") for d in ("RBM 1", "all 2"))]
    assert list(rows) == names
    assert all(V.shape == (10, 7, 7) for V in rows.values())
    labels = [data.test_labels[(data.test == V.ravel()).all(axis=1)][0] for V in rows["original"]]
    assert labels == list(range(10))
    first, second = records.stack(study, output, "lea-mvd", 3, 2)
    V = rows["original"].reshape(10, -1)
    assert np.array_equal(rows["lea-mvd, RBM 1"].reshape(10, -1), first.reconstruct(V))
    top = second.hidden_given_visible(first.hidden_given_visible(V))
    both = first.visible_given_hidden(second.visible_given_hidden(top))
    assert np.array_equal(rows["lea-mvd, all 2"].reshape(10, -1), both)


def test_without_own_inputs_only_the_first_layer_reconstructs(study, tmp_path):
    shared = dataclasses.replace(study, inputs=("shared",), methods=("lea-mvd",))
    records.run(shared, tmp_path)
    rows = comparison.reconstructions(shared, tmp_path, studies.images(shared))
    assert list(rows) == ["original", "lea-mvd, RBM 1"]


def test_filters_are_columns_of_the_weights(study, output):
    rows = comparison.filters(study, output, studies.images(study))
    W = records.stack(study, output, "cd", 3, 1)[0].W
    assert list(rows) == ["cd", "lea-mvd", "cma-es"]
    for unit, picture in enumerate(rows["cd"]):
        assert np.allclose(picture.ravel(), W[:, unit] / abs(W).max(), rtol=1e-12)


def test_pasted_numbers_have_six_digits():
    assert (
        comparison.six_digits(np.float64(0.25742923216150027)) == comparison.six_digits(0.25742923216150015) == 0.257429
    )
    assert comparison.six_digits(1_234_567.8) == 1_234_570.0
    assert np.isnan(comparison.six_digits(np.nan))
