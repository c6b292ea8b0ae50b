"""Studies whose searches are computed by PyTorch. `pytest tests/test_torch*.py -k cuda` checks a real card."""

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from small_studies import SMALL
from test_torch_backend import stand_in

from leamvd.analysis import comparison
from leamvd.campaign import versions
from leamvd.campaign.store import Store
from leamvd.data.images import Images
from leamvd.experiments.layers import rbm
from leamvd.networks import torch_backend
from leamvd.networks.dbn import Training, layer_input, layer_seed
from leamvd.networks.objective import reconstruction_errors
from leamvd.studies import records
from leamvd.studies.study import LABELS, images

TINY = dataclasses.replace(SMALL, methods=("cd", "lea-mvd", "cma-es"), training=Training(n_elite=2))


def test_a_study_searches_by_torch_and_records_by_numpy(
    device: str, torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    original = torch_backend.TorchErrors.__call__

    def counted(self: torch_backend.TorchErrors, X: NDArray[Any]) -> NDArray[np.float64]:
        calls.append(len(X))
        return original(self, X)

    monkeypatch.setattr(torch_backend.TorchErrors, "__call__", counted)
    training = dataclasses.replace(TINY.training, backend="torch", device=device, precision="bfloat16")
    study = dataclasses.replace(TINY, training=training)
    table = records.run(study, tmp_path)
    last = table.query("iteration == 2 and (inputs == 'own' or layer == 2)")  # a first layer is listed in both inputs
    assert sum(calls) == last["evaluations"].sum()
    data = images(study)
    store = Store(tmp_path / "store")
    for label, job in study.jobs(Images.of(data)).items():
        V = layer_input(
            [rbm(store.read(below)) for below in job.below], data.train, features=study.features, seed=job.seed
        )
        same = (table[list(LABELS)] == list(label)).all(axis=1) & (table["iteration"] == 2)
        errors = reconstruction_errors(rbm(store.read(job)), V, seed=layer_seed(job.seed, job.layer))
        assert table.loc[same, list(errors._fields)].to_numpy().tolist() == [list(errors)]
    known = json.loads(next(tmp_path.glob("study-*.json")).read_text())
    assert known["versions"]["torch"] == torch.__version__
    computation = {name: known["study"]["training"][name] for name in ("backend", "device", "precision")}
    assert computation == {"backend": "torch", "device": device, "precision": "bfloat16"}


def test_what_computed_the_search_is_said_beside_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = pd.DataFrame({"n_images": [60], "n_test_images": [20]})
    rows = comparison.setting(TINY, "digits", counts, TINY.training.computation)["value"]
    assert (rows["dtype"], rows["backend"]) == ("float32", "numpy on cpu in float32")
    monkeypatch.setitem(sys.modules, "torch", stand_in(1))
    training = dataclasses.replace(TINY.training, backend="torch", precision="bfloat16")
    study = dataclasses.replace(TINY, training=training)
    rows = comparison.setting(study, "digits", counts, training.computation)["value"]
    assert (rows["dtype"], rows["backend"]) == ("float32", "torch on cuda in bfloat16")


def test_provenance_and_jobs_say_what_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(TINY)
    known = records.provenance(TINY, data)
    assert known["study"]["training"]["device"] == "cpu"
    assert known["study"]["training"]["precision"] == "float32"
    assert "torch" not in known["versions"]
    monkeypatch.setattr(versions, "version", lambda package: "1")
    names, jobs = {records.fingerprint(records.provenance(TINY, data))}, set()
    for devices in (0, 1):
        monkeypatch.setitem(sys.modules, "torch", stand_in(devices))
        for precision in ("float32", "bfloat16"):
            training = dataclasses.replace(TINY.training, backend="torch", precision=precision)
            study = dataclasses.replace(TINY, training=training)
            known = records.provenance(study, data)
            assert "torch" in known["versions"]
            names.add(records.fingerprint(known))
            jobs |= {job for label, job in study.jobs(Images.of(data)).items() if job.layer == 1}
    assert len(names) == 5
    count = {
        trainer: len({job for job in jobs if job.trainer == trainer and job.seed == 3}) for trainer in ("cd", "lea-mvd")
    }
    assert count == {"cd": 1, "lea-mvd": 4}, "contrastive divergence runs without torch"
