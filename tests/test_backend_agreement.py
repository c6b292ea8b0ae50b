import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd.networks.dbn import Training
from leamvd.networks.objective import reconstruction_errors
from leamvd.optimizers.reading import Reading
from leamvd.paper import backend_agreement, records, studies
from leamvd.paper.backend_agreement import SEARCHES, paired
from leamvd.paper.records import COLUMNS
from leamvd.paper.studies import Study

TINY = Study(
    n_images=40,
    layers=(6,),
    methods=("lea-mvd", "random"),
    inputs=("own",),
    seeds=(3, 5),
    training=Training(n_elite=2, dtype="float64"),
    reading=Reading(n_gen=2, population_size=8),
)


def table(**errors: Any) -> pd.DataFrame:
    """The final records of one method, by the search that made them."""
    rows = [
        {"search": search, "section": "s", "method": "m", "layer": 1, "seed": seed, "mean_field": error}
        for search, values in errors.items()
        for seed, error in enumerate(values)
    ]
    return pd.DataFrame(rows)


def test_paired_against_scipys_own_tests() -> None:
    rng = np.random.default_rng(0)
    a = rng.uniform(50, 100, 12)
    b, c = a * np.exp(rng.normal(0.01, 0.005, 12)), a * np.exp(rng.normal(0, 0.2, 12))
    rows = paired(table(a=a, b=b, c=c))
    assert rows["search"].tolist() == ["b", "c"]
    assert rows["equivalent"].tolist() == [True, False]
    raw = []
    for row, other in zip(rows.itertuples(), (b, c), strict=True):
        interval = stats.ttest_1samp(np.log(other / a), 0).confidence_interval(0.95)
        np.testing.assert_allclose([row.low, row.high], np.exp(interval), rtol=1e-12)
        assert row.ratio == pytest.approx(np.exp(np.log(other / a).mean()), rel=1e-12)
        assert (row.runs, row.equal) == (12, 0)
        assert row.seeds == pytest.approx(np.log(a).std(ddof=1), rel=1e-12)
        raw.append(stats.wilcoxon(np.log(other / a)).pvalue)
    assert sorted(rows["p"]) == pytest.approx([2 * min(raw), max(raw)])  # Holm's correction of two
    assert paired(table(a=a, b=b), margin=0.005)["equivalent"].tolist() == [False]


def test_paired_by_seed_and_not_by_order() -> None:
    a = np.linspace(50, 100, 10)
    shuffled = table(a=a, b=1.001 * a).sample(frac=1, random_state=1).sort_values("search", kind="stable")
    (row,) = paired(shuffled).itertuples()
    assert row.low == pytest.approx(row.high, rel=1e-12)
    assert row.ratio == pytest.approx(1.001, rel=1e-12)


def test_equal_outcomes_need_no_test() -> None:
    a = np.linspace(50, 100, 10)
    (row,) = paired(table(a=a, b=a)).itertuples()
    assert (row.ratio, row.low, row.high, row.equal, row.equivalent) == (1, 1, 1, 10, True)
    assert np.isnan(row.p)
    with pytest.raises(ValueError, match="margin must be a finite number > 0, got 0"):
        paired(table(a=a, b=a), margin=0)


def test_the_same_runs_by_every_search(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    result, provenance = backend_agreement.run(TINY, tmp_path, device="cpu")
    assert tuple(result.columns) == ("search", *COLUMNS)
    assert result.groupby(["search", "method"], sort=False).size().tolist() == [2] * 6
    assert set(result["iteration"]) == {2}
    assert set(result["evaluations"]) == {14, 16}
    assert list(provenance) == list(SEARCHES) == list(result["search"].unique())
    for search, known in provenance.items():
        training = known["study"]["training"]
        assert f"{training['backend']} {training['precision']}" == search
        assert training["dtype"] == "float32"
        assert known["versions"].get("torch") == (torch.__version__ if "torch" in search else None)
    data = studies.images(dataclasses.replace(TINY, training=dataclasses.replace(TINY.training, dtype="float32")))
    for row in result.itertuples():
        training = Training(**provenance[row.search]["study"]["training"])
        (rbm,) = records.stack(dataclasses.replace(TINY, training=training), tmp_path, row.method, row.seed, 1)
        assert row.mean_field == reconstruction_errors(rbm, data.train, seed=row.seed).mean_field


def test_record_can_be_read_again(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    other = dataclasses.replace(TINY, section="mnist-28x28", seeds=(1,), methods=("random",))
    written = backend_agreement.record(tmp_path / "kept", tmp_path, studies=(TINY, other), device="cpu")
    read = pd.read_csv(tmp_path / "kept" / "runs.csv")
    pd.testing.assert_frame_equal(read, written, check_exact=True)
    known = json.loads((tmp_path / "kept" / "provenance.json").read_text())
    assert [{run["study"]["section"] for run in study.values()} for study in known] == [{"mnist-7x7"}, {"mnist-28x28"}]


def test_what_ships_with_the_book() -> None:
    result = backend_agreement.recorded()
    assert set(result.columns) <= {"search", *COLUMNS}
    assert list(result["search"].unique()) == list(SEARCHES)
    for study in backend_agreement.STUDIES:
        group = result[(result["section"] == study.section) & result["method"].isin(study.methods)]
        assert len(group) == len(SEARCHES) * len(study.methods) * len(study.seeds)
        assert set(group["seed"]) == set(study.seeds)
        assert set(group["iteration"]) == {study.reading.n_gen}
    rows = paired(result)
    as_in_c = rows["method"] == "lea-mvd:sigma0=0.01"  # study C has five seeds
    assert (rows[~as_in_c]["runs"] >= 10).all()
    assert (rows[as_in_c]["runs"] >= 5).all()
    assert (rows["low"] <= 1).all() and (rows["high"] >= 1).all(), rows  # noqa: PT018
    assert rows[rows["method"] != "cma-es"]["equivalent"].all(), rows
    assert not (rows["p"] < 0.05).any(), rows
