"""Studies: settings to jobs; what stands for the same computation is one job."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import MEASURED, TINY

from leamvd.campaign.jobs import with_needs
from leamvd.data.images import Images
from leamvd.experiments.stacks import FineTune
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.studies import catalog
from leamvd.studies.catalog import STUDIES
from leamvd.studies.study import INPUTS, Classification, Study

IMAGES = Images("0", "images")


def changed(study: Study, **changes: Any) -> Study:
    """Return a study with fields of `Training` or `Reading` changed."""
    parts = {"training": study.training, "reading": study.reading}
    for part, value in parts.items():
        own = {name: changes.pop(name) for name in list(changes) if hasattr(value, name)}
        parts[part] = dataclasses.replace(value, **own)
    return dataclasses.replace(study, **parts, **changes)


# ---- settings


def test_changes_go_to_the_study_its_training_or_its_reading() -> None:
    changes = {"layers": [4], "seeds": [1, 2], "n_gen": 7, "exponent": 2.0, "dtype": "float32", "n_images": None}
    base = STUDIES["mnist-7x7", "quick"]
    training = dataclasses.replace(base.training, dtype="float32")
    reading = dataclasses.replace(base.reading, n_gen=7, exponent=2.0)
    expected = dataclasses.replace(base, layers=(4,), seeds=(1, 2), training=training, reading=reading)
    assert catalog.study("mnist-7x7", "quick", **changes) == expected
    given = catalog.study("mnist-7x7", "quick", reading=Reading(ties="newest"), training=Training(n_elite=2), n_gen=7)
    assert (given.training, given.reading) == (Training(n_elite=2), Reading(ties="newest", n_gen=7))
    fields = [field.name for part in (Classification, Training, Reading) for field in dataclasses.fields(part)]
    assert len(set(fields)) == len(fields), "a change must have one place to go to"


def test_parameters_of_a_notebook() -> None:
    namespace = {
        "profile": "quick", "section": "mnist-7x7", "output": "results", "n_gen": 7, "seeds": [1], "dtype": "float32",
        "exponent": None, "np": np, "reading": Reading(), "x0_in_population": False,
    }  # fmt: skip
    found = catalog.parameters(namespace)
    assert found == {"n_gen": 7, "seeds": [1], "dtype": "float32", "x0_in_population": False}
    expected = changed(STUDIES["mnist-7x7", "quick"], n_gen=7, seeds=(1,), dtype="float32", x0_in_population=False)
    assert catalog.study("mnist-7x7", "quick", **found) == expected


# ---- jobs


METHODS = st.lists(st.sampled_from(("cd", "lea-mvd", "cma-es", "lea-mvd:printed")), min_size=1, unique=True)
INPUTS = st.lists(st.sampled_from(INPUTS), min_size=1, unique=True)


@settings(deadline=None, max_examples=30)
@given(METHODS, INPUTS, st.lists(st.integers(1, 9), min_size=1, max_size=3), st.sampled_from(("bits", "probabilities")))
def test_every_label_has_its_job_whose_inputs_are_its_own_or_those_of_contrastive_divergence(
    methods: list[str], inputs: list[str], layers: list[int], features: Any
) -> None:
    study = dataclasses.replace(
        TINY, methods=tuple(methods), inputs=tuple(inputs), layers=tuple(layers), features=features
    )
    jobs = study.jobs(IMAGES)
    numbers = range(1, len(layers) + 1)
    assert set(jobs) == {(m, i, n, s) for m in methods for i in inputs for n in numbers for s in (3, 5)}
    for (method, kind, number, seed), job in jobs.items():
        own, training, reading = study.settings_of(method)
        assert (job.trainer, job.layer, job.seed, job.n_hidden) == (own.trainer, number, seed, layers[number - 1])
        assert (job.training, job.reading, job.images) == (training, reading, IMAGES)
        below = study.stack(method if kind == "own" else "cd", seed, IMAGES)[: number - 1]
        assert job.below == job.needs == below
        assert job.features == (features if number > 1 else "probabilities"), "a first layer sees images either way"
    assert [seed for *_, seed in jobs] == sorted(seed for *_, seed in jobs), "one seed after the other"
    every = with_needs(jobs.values())
    assert all(set(job.needs) <= set(every[:i]) for i, job in enumerate(every))


SAME = [
    ("lea-mvd", {"sigma0": 0.01}, "lea-mvd:sigma0=0.01", {}),
    ("lea-mvd:n_gen=3+n_elite=1", {}, "lea-mvd:n_elite=1+n_gen=3", {}),
    ("lea-mvd:x0-excluded", {}, "lea-mvd", {"x0_in_population": False}),
    ("lea-mvd:default", {}, "lea-mvd", {}),
    ("cd", {"sigma0": 0.3, "n_elite": 1, "x0_epochs": 9, "exponent": 0.0, "population_size": 9}, "cd", {}),
    ("cd", {"x0": "none", "x0_epochs": 1, "x0_limit": 0.3}, "cd", {}),
    ("cma-es", {"n_elite": 1, "exponent": 0.0, "reset": "off", "shift": "printed"}, "cma-es", {}),
    ("random:sigma0=0.1", {"n_elite": 3}, "random", {"ties": "newest"}),
]


@pytest.mark.parametrize(("one", "settings", "other", "others"), SAME)
def test_settings_that_a_trainer_does_not_see_and_ways_to_write_them_do_not_change_its_jobs(
    one: str, settings: dict[str, Any], other: str, others: dict[str, Any]
) -> None:
    a, b = changed(TINY, **settings).stack(one, 3, IMAGES), changed(TINY, **others).stack(other, 3, IMAGES)
    assert a == b


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("cd", {"n_gen": 3}), ("cd", {"learning_rate": 0.2}), ("cd", {"dtype": "float32"}), ("lea-mvd", {"n_elite": 1}),
        ("lea-mvd", {"exponent": 0.0}), ("lea-mvd", {"x0_epochs": 3}), ("lea-mvd", {"learning_rate": 0.2}),
        ("cma-es", {"sigma0": 0.2}), ("cma-es", {"population_size": 9}), ("random", {"x0_in_population": False}),
        ("random", {"x0": "batch", "x0_epochs": 1}), ("lea-mvd", {"features": "probabilities"}),
    ],
)  # fmt: skip
def test_settings_that_a_trainer_sees_change_its_jobs(method: str, settings: dict[str, Any]) -> None:
    assert changed(TINY, **settings).stack(method, 3, IMAGES)[-1] != TINY.stack(method, 3, IMAGES)[-1]


# ---- measurements


def test_stacks_that_are_measured_are_those_of_the_experiments() -> None:
    for profile, section, seeds in (("paper", "mnist-7x7", 30), ("paper-28x28", "mnist-28x28", 12)):
        measured, base = STUDIES["classification", profile], STUDIES[section, "paper"]
        assert isinstance(measured, Classification)
        assert measured.seeds == tuple(range(seeds))
        for method in ("cd", "lea-mvd"):
            assert measured.stack(method, 3, IMAGES) == base.stack(method, 3, IMAGES)
        assert len(jobs_of(measured)) == 3 * 5 * seeds


def jobs_of(study: Study) -> dict[tuple[str, str, int], Any]:
    found = study.tables(IMAGES).items()
    return {(name, *label): job for name, table in found for label, job in table.jobs.items()}


def test_each_stack_is_measured_whole_and_likelihoods_by_its_first_layer() -> None:
    for (table, method, seed), job in jobs_of(MEASURED).items():
        depth = 1 if table == "likelihoods" else 2
        if method.startswith("random"):
            assert (job.needs, job.random and job.random.sizes) == ((), (49, 6, 5)[: depth + 1])
        else:
            assert job.needs == MEASURED.stack(method, seed, IMAGES)[:depth]
        if isinstance(job, FineTune):
            assert (job.epochs, job.learning_rate) == (MEASURED.epochs, MEASURED.tuning_rate)
    search = dataclasses.replace(MEASURED, methods=("random",))
    assert all(bool(job.needs) == (method == "random") for (_, method, _), job in jobs_of(search).items())


@pytest.mark.parametrize(
    ("changes", "tables", "methods"),
    [
        ({"epochs": 3}, {"runs"}, {"cd", "lea-mvd", "random-0.1"}),
        ({"tuning_rate": 0.4}, {"runs"}, {"cd", "lea-mvd", "random-0.1"}),
        ({"n_temperatures": 6}, {"likelihoods"}, {"cd", "lea-mvd", "random-0.1"}),
        ({"n_chains": 20}, {"likelihoods"}, {"cd", "lea-mvd", "random-0.1"}),
        ({"scales": ("0.1", "glorot")}, set(), set()),
        ({"sigma0": 0.2}, {"runs", "probes", "likelihoods"}, {"lea-mvd"}),
    ],
)
def test_a_measurement_depends_on_its_stack_and_its_own_settings(
    changes: dict[str, Any], tables: set[str], methods: set[str]
) -> None:
    before, after = jobs_of(MEASURED), jobs_of(changed(MEASURED, **changes))
    differ = {key for key, job in before.items() if after[key] != job}
    assert {table for table, *_ in differ} == tables
    assert {method for _, method, _ in differ} == methods
