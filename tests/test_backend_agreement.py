import dataclasses
from pathlib import Path
from typing import Any

from small_studies import SMALL

from leamvd.analysis.intervals import agreement
from leamvd.campaign import archive
from leamvd.campaign.run import run_tables
from leamvd.campaign.store import FOLDER
from leamvd.networks.dbn import Training
from leamvd.networks.objective import reconstruction_errors
from leamvd.studies import backend_agreement, pictures, records
from leamvd.studies.backend_agreement import SEARCHES
from leamvd.studies.study import COLUMNS, images

TINY = dataclasses.replace(SMALL, layers=(6,), methods=("lea-mvd", "random"), inputs=("own",), seeds=(3, 5))


def test_the_same_runs_by_every_search(torch: Any, tmp_path: Path) -> None:
    data = images(dataclasses.replace(TINY, training=dataclasses.replace(TINY.training, dtype="float32")))
    table = backend_agreement.searches(TINY, data, device="cpu")
    result = run_tables({"runs": table}, tmp_path / "store", data=data)["runs"]
    searches = backend_agreement.by_search(TINY, "cpu")
    provenance = {search: records.provenance(own, images(own)) for search, own in searches.items()}
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
    for row in result.itertuples():
        training = Training(**provenance[row.search]["study"]["training"])
        (rbm,) = pictures.stack(
            dataclasses.replace(TINY, training=training), tmp_path / FOLDER, data, row.method, row.seed, 1
        )
        assert row.mean_field == reconstruction_errors(rbm, data.train, seed=row.seed).mean_field


def test_what_ships_with_the_book() -> None:
    result = archive.read("backend_agreement")
    assert set(result.columns) <= {"search", *COLUMNS}
    assert list(result["search"].unique()) == list(SEARCHES)
    for study in backend_agreement.FIRST_LAYER:
        group = result[(result["section"] == study.section) & result["method"].isin(study.methods)]
        assert len(group) == len(SEARCHES) * len(study.methods) * len(study.seeds)
        assert set(group["seed"]) == set(study.seeds)
        assert set(group["iteration"]) == {study.reading.n_gen}
    rows = agreement(result)
    as_in_c = rows["method"] == "lea-mvd:sigma0=0.01"  # study C has five seeds
    assert (rows[~as_in_c]["runs"] >= 10).all()
    assert (rows[as_in_c]["runs"] >= 5).all()
    assert (rows["low"] <= 1).all() and (rows["high"] >= 1).all(), rows  # noqa: PT018
    assert rows[rows["method"] != "cma-es"]["equivalent"].all(), rows
    assert not (rows["p"] < 0.05).any(), rows
