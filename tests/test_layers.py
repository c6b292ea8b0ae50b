"""A layer's job against a plain call of what trains it, and any job in one go and in many."""

import dataclasses
import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from leamvd.campaign.jobs import Job, Result
from leamvd.campaign.tables import read_table
from leamvd.experiments.layers import COLUMNS, Images, rbm
from leamvd.experiments.searches import FunctionSearch, LayerSearch
from leamvd.studies.minima import Escape
from leamvd.studies.study import images
from small_studies import MEASURED, TINY
from test_explanation import SMALL as EXPLAINED

from leamvd.data.images import Dataset
from leamvd.networks.dbn import METHODS, Training, layer_input, layer_seed, pretrain, train
from leamvd.networks.objective import reconstruction_errors
from leamvd.optimizers.reading import Reading

DATA = images(TINY)
STUDY = dataclasses.replace(TINY, methods=METHODS)
JOBS = STUDY.jobs(Images.of(DATA))


def computed(job: Job, data: Dataset = DATA) -> Result:
    return job.advance(data, [computed(need, data) for need in job.needs])


def table(result: Result) -> pd.DataFrame:
    return read_table(io.BytesIO(result.rows))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("inputs", ["own", "shared"])
def test_the_rows_are_those_of_training_on_the_features_of_the_layers_below(method: str, inputs: str) -> None:
    job = JOBS[method, inputs, 2, 5]
    given: dict[str, Any] = {"training": job.training, "reading": job.reading}
    stack = pretrain(
        DATA.train, [6], method=method if inputs == "own" else "cd", training=STUDY.training, reading=STUDY.reading,
        features="bits", seed=5,
    )  # fmt: skip
    V = layer_input(stack, DATA.train, features="bits", seed=5)
    T = layer_input(stack, DATA.test, features="bits", seed=5, test=True)
    seed, constant = layer_seed(5, 2), ((T - V.mean(axis=0)) ** 2).sum()
    result = computed(job)
    rows = table(result)
    assert tuple(rows.columns) == COLUMNS
    steps = list(train(method, V, 5, **given, seed=seed))
    for step, row in zip(steps, rows.to_dict("records"), strict=True):
        errors = reconstruction_errors(step.rbm, V, seed=seed)
        assert [row[name] for name in errors._fields] == list(errors)
        counts = step.iteration, step.evaluations, step.passes, step.products
        assert tuple(row[name] for name in ("iteration", "evaluations", "passes", "products")) == counts
        assert row["test_mean_field"] == pytest.approx(((T - step.rbm.reconstruct(T)) ** 2).sum(), rel=1e-12)
        for name in ("test_mean_field", "test_sampled"):
            assert row[f"{name}_ratio"] == pytest.approx(row[name] / constant, rel=1e-12)
    sizes = {"n_visible": 6, "n_hidden": 5, "n_var": 6 * 5 + 6 + 5, "n_images": 40, "n_test_images": 360}
    assert rows[[*sizes]].drop_duplicates().to_dict("records") == [sizes]
    assert rows["input_std"].unique() == pytest.approx(V.std(axis=0).mean(), rel=1e-12)
    if method != "cd":
        assert (rows["passes"][0], rows["products"][0]) == (2, 2 * (2 * 3 + 3)), "two epochs of CD-3"
    for ours, theirs in zip(rbm(result), steps[-1].rbm, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_the_same_images_are_the_same_whatever_they_are_called() -> None:
    other = DATA._replace(name="copy", description=DATA.description.replace(DATA.name, "copy"))
    assert Images.of(other) == Images.of(DATA)
    assert Images.of(DATA._replace(checksum="0")) != Images.of(DATA)
    assert Images.of(images(dataclasses.replace(TINY, n_images=41))) != Images.of(DATA)


SEARCH: dict[str, Any] = {"training": Training(), "reading": Reading(), "seed": 3, "marks": (30, 100, 150)}
STACKS, PAIRS = images(MEASURED), images(EXPLAINED)
MEASUREMENTS, EXPLANATION = MEASURED.tables(Images.of(STACKS)), EXPLAINED.tables(Images.of(PAIRS))
SURROGATE = ("mnist-7x7", "lea-mvd:sigma0=0.003", 1, 0)
GOING_ON = {
    **{method: (JOBS[method, "own", 2, 3], DATA) for method in METHODS},
    **{
        f"{name}-{method}": (table.jobs[method, 3], STACKS)
        for name, table in MEASUREMENTS.items()
        for method in ("lea-mvd", "random-0.1")
    },
    "pairs": (EXPLANATION["pairs"].jobs["mnist-7x7", 1, 0], PAIRS),
    "surrogate": (EXPLANATION["surrogates"].jobs[SURROGATE], PAIRS),
    **{
        f"rastrigin-{name}": (FunctionSearch(trainer=name, function="rastrigin", n_var=4, **SEARCH), None)
        for name in METHODS[1:]
    },
    "layer-search": (LayerSearch(trainer="lea-mvd", images=Images.of(DATA), n_hidden=3, **SEARCH), DATA),
    "escape": (Escape(function="ackley", n_var=2, method="lea-mvd", sigmas=(0.01, 0.1), seed=2), None),
}


@pytest.mark.parametrize(("job", "data"), GOING_ON.values(), ids=GOING_ON)
def test_a_job_in_one_go_and_in_many_gives_the_same_bytes(job: Job, data: Dataset) -> None:
    needs = [computed(need, data) for need in job.needs]
    ticks: list[int] = []
    whole = job.advance(data, needs, tick=ticks.append)
    assert ticks == sorted(ticks)
    assert ticks[-1] == whole.iteration == job.iterations
    part, reached = job.advance(data, needs, seconds=0), []
    while not part.done:
        reached.append(part.iteration)
        part = job.advance(data, needs, part, seconds=0)
    assert [*reached, part.iteration] == [tick for tick in ticks if tick > 0], "a start solution is no iteration"
    assert (part.arrays, part.iteration) == (whole.arrays, whole.iteration)
    ours, theirs = (table(each).drop(columns="seconds", errors="ignore") for each in (whole, part))
    pd.testing.assert_frame_equal(ours, theirs, check_exact=True)
