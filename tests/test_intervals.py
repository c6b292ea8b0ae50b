import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.analysis import intervals


def records(errors: dict[str, dict[int, float]], n_images: int = 10, last: int = 3) -> pd.DataFrame:
    """Return records of one layer: `errors` by method and seed are those of the last iteration."""
    rows = [
        ("own", 1, method, seed, iteration, error * n_images * (1 + last - iteration), 2 * error * n_images, n_images)
        for method, by_seed in errors.items()
        for seed, error in by_seed.items()
        for iteration in range(last + 1)
    ]
    return pd.DataFrame(
        rows, columns=["inputs", "layer", "method", "seed", "iteration", "mean_field", "sampled", "n_images"]
    )


def test_errors_are_those_of_the_last_iteration_per_10000_images_with_students_interval() -> None:
    values = [1.0, 1.5, 4.0]
    table = intervals.errors(records({"cd": dict(enumerate(values)), "lea-mvd": {7: 2.0}}))
    assert table["measure"].tolist() == ["mean_field"] * 2 + ["sampled"] * 2
    cd, alone = table.iloc[0], table.iloc[1]
    assert (cd["inputs"], cd["layer"], cd["method"], cd["runs"]) == ("own", 1, "cd", 3)
    low, high = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert [cd["low"], cd["mean"], cd["high"]] == pytest.approx(1e4 * np.array([low, np.mean(values), high]))
    assert (alone["mean"], alone["runs"]) == (20_000.0, 1)
    assert np.isnan([alone["low"], alone["high"]]).all(), "one seed says nothing of others"
    assert table.iloc[3]["mean"] == 40_000.0


def test_ratios_are_paired_by_seed() -> None:
    a, b = {0: 1.0, 1: 10.0, 2: 100.0, 3: 7.0}, {2: 220.0, 0: 2.0, 1: 18.0, 9: 5.0}
    row = intervals.ratios(records({"cd": a}), records({"cd": b}, n_images=20)).iloc[0]
    logs = np.log([2.0, 1.8, 2.2])
    low, high = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
    assert row["paired"] == 3
    assert [row["low"], row["ratio"], row["high"]] == pytest.approx(np.exp([low, logs.mean(), high]))


def test_ratios_without_seeds_in_common_are_those_of_two_samples() -> None:
    a, b = {0: 1.0, 1: 1.2, 2: 1.1}, {5: 2.0, 6: 2.6}
    row = intervals.ratios(records({"cd": a}), records({"cd": b})).iloc[0]
    x, y = (np.log(list(values.values())) for values in (a, b))
    low, high = stats.ttest_ind(y, x, equal_var=False).confidence_interval(0.95)
    assert row["paired"] == 0
    assert [row["low"], row["ratio"], row["high"]] == pytest.approx(np.exp([low, y.mean() - x.mean(), high]))
    few = intervals.ratios(records({"cd": a}), records({"cd": {5: 2.0}})).iloc[0]
    assert few["ratio"] == pytest.approx(2.0 / np.exp(x.mean()))
    assert np.isnan([few["low"], few["high"]]).all()


def test_equal_runs_have_the_ratio_one_and_methods_of_one_run_have_none() -> None:
    a = records({"cd": {0: 1.0, 1: 3.0}, "lea-mvd": {0: 1.0, 1: 2.0}})
    table = intervals.ratios(a, a[a["method"] == "cd"])
    assert table["method"].unique().tolist() == ["cd"]
    assert (table[["low", "ratio", "high"]] == 1.0).all(axis=None)


def test_errors_beside_lea_mvds_are_those_after_as_many_evaluations_on_shared_inputs() -> None:
    errors = {"cd": {0: 2.0, 1: 4.0}, "cma-es": {0: 1.0, 1: 3.0}, "lea-mvd": {0: 1.0, 1: 3.0}}
    table = records(errors).assign(inputs="shared")
    of_each = table["method"].map({"cd": 0, "cma-es": 24, "lea-mvd": 20})
    table["evaluations"] = of_each * table["iteration"] + 4 * (table["method"] == "lea-mvd")
    found = intervals.at_equal_evaluations(pd.concat([table.assign(inputs="own", mean_field=7.0), table]))
    assert found["cd-error-1"] == pytest.approx(np.sqrt(2 * 4 / 3), rel=1e-5)
    assert (found["cma-es-error-1"], found["lea-mvd-error-1"]) == (2.0, 1.0)
    assert found["evaluations"] == 64, "another generation of CMA-ES makes 72"
    half = stats.t.ppf(0.975, 1) * np.log(2 / (4 / 3)) / 2
    assert found["errors-interval"] == pytest.approx(100 * np.expm1(half), rel=1e-5)


def test_searches_are_compared_on_the_seeds_that_all_studies_have() -> None:
    rows = [
        (inputs, layer, method, seed, iteration, error)
        for inputs in ("own", "shared") for method in ("cd", "lea-mvd") for layer in (1, 2) for seed in (0, 1, 2)
        for iteration, error in ((1, 30.0 if inputs == "own" else 1.0), (0, 40.0 + 20 * (seed == 2)))
    ]  # fmt: skip
    table = pd.DataFrame(rows, columns=["inputs", "layer", "method", "seed", "iteration", "mean_field"])
    table["n_images"] = 5_000
    others = table[table["seed"] < 2].replace({"method": {"lea-mvd": "random", "cd": "cd:n_gen=1"}})
    others.loc[others["seed"].eq(1) & others["iteration"].eq(1), "mean_field"] = 32.0
    found = intervals.improvements([table, others])
    assert found.index.tolist() == [(1, "lea-mvd"), (1, "random"), (2, "lea-mvd"), (2, "random")]
    assert found["start"].tolist() == [80.0] * 4, "the third seed, and shared inputs, are left out"
    assert found["end"].tolist() == [60.0, 62.0, 60.0, 62.0]
    assert found["fallen, %"].tolist() == [25.0, 22.5, 25.0, 22.5]
    half = 12.706205 * np.std([25.0, 20.0], ddof=1) / np.sqrt(2)
    assert found.loc[(2, "random"), ["low", "high"]].tolist() == pytest.approx([22.5 - half, 22.5 + half])
    quoted = intervals.quoted(found)
    assert (quoted["fallen-random-2"], quoted["risen-random-2"]) == (22.5, -22.5)
