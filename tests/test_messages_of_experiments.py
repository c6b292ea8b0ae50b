"""Every error of what stands above the library: as in `test_messages`, and before any work."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from small_studies import TINY
from test_explanation import SMALL as EXPLAINED
from test_messages import one_sentence
from test_stacks import RANDOM

from leamvd import bench
from leamvd.analysis.rules import Margins
from leamvd.data.images import load
from leamvd.experiments import search_directions, stacks
from leamvd.experiments.methods import Method
from leamvd.studies import catalog, functions, records

NOWHERE = Path(__file__, "results")
"""Where nothing can be written: a file is no folder."""


def run(section: str, **changes: Any) -> Any:
    return records.run(catalog.study(section, **{"profile": "quick"} | changes), NOWHERE)


def measured(**changes: Any) -> Any:
    return run("classification", **changes)


def images(**options: Any) -> Any:
    return load("digits", **options)


def on_functions(**changes: Any) -> Any:
    return functions.searches(TINY, **{"sizes": (3,), "budget": 48} | changes)


def directions(profile: str = "quick", **changes: Any) -> Any:
    return search_directions.plan(profile, **changes)


CASES: list[tuple[Callable[[], Any], str]] = [
    # ---- images
    (lambda: images(side=0), "ValueError: side must be an integer >= 1, got 0"),
    (lambda: images(binarize="grey"), "ValueError: binarize must be one of 'gray', 'threshold', 'bernoulli', got 'gre"),
    (lambda: images(dtype="int8"), "ValueError: dtype must be one of 'float32', 'float64', got 'int8'"),
    (lambda: images(pooling="max"), "ValueError: pooling must be one of 'mean', 'center', got 'max'"),
    (lambda: images(seed=-1), "ValueError: seed must be an integer >= 0, got -1"),
    (lambda: images(n_train=0), "ValueError: n_train must be an integer >= 1, got 0"),
    (lambda: images(n_test=3.0), "TypeError: n_test must be an integer, got 3.0"),
    (lambda: images(n_train=1438), "ValueError: n_train must be at most the 1437 images of scikit-learn digits, got 1"),
    (lambda: images(n_train=400, image_set=3), "ValueError: image_set must be below 3 for 400 of 1437, got 3"),
    (lambda: images(image_set=1), "ValueError: image_set must be 0 where n_train takes all images, got 1"),
    # ---- methods
    (lambda: Method.parse("adam"), "ValueError: methods must be one of 'cd', 'lea-mvd', 'cma-es', 'sep-cma-es', 'rand"),
    (lambda: Method.parse("lea-mvd:no"), "ValueError: a preset in methods, 'lea-mvd:no', must be one of 'default', 'p"),
    (lambda: Method.parse("cd:printed"), "ValueError: a setting in methods, 'cd:printed', must be one of 'cd_steps', "),
    (lambda: Method.parse("cd:sigma0=1"), "ValueError: a setting in methods, 'cd:sigma0=1', must be one of 'cd_steps'"),
    (lambda: Method.parse("random:exponent=1"), "ValueError: a setting in methods, 'random:exponent=1', must be one o"),
    (lambda: Method.parse("lea-mvd:dtype=float64"), "ValueError: a setting in methods, 'lea-mvd:dtype=float64', must "),
    (lambda: Method.parse("cma-es:sigma0=1+sigma0=2"), "ValueError: methods must give a setting once, got sigma0 twi"),
    (
        lambda: Method.parse("lea-mvd:reset=never"),
        "TypeError: reset, if not 'initial' or 'off', must be a number, got 'never'",
    ),
    (lambda: Method.parse("cma-es:sigma0=-1"), "ValueError: sigma0 must be a finite number > 0, got -1"),
    (lambda: Method.parse("lea-mvd:x0=none+x0_epochs=3"), "ValueError: x0_epochs=3 clashes with x0='none'"),
    (lambda: Method.parse("lea-mvd:n_elite=" + "[" * 100_000), "TypeError: n_elite must be an integer, got '[[["),
    (lambda: Method.parse("lea-mvd:n_elite=" + "1" * 5_000), "TypeError: n_elite must be an integer, got '111"),
    # ---- studies
    (lambda: run("mnist-9x9"), "ValueError: section must be one of 'classification', 'error-measures', "),
    (lambda: run("mnist-7x7", profile="slow"), "ValueError: profile must be one of 'recorded', 'quick', 'paper', 'con"),
    (lambda: run("mnist-7x7", n_layers=3), "TypeError: Study.__init__() got an unexpected keyword argument 'n_layers'"),
    (lambda: run("mnist-7x7", layers=[]), "ValueError: layers must be one or more values, got ()"),
    (lambda: run("mnist-7x7", layers=[3, 0]), "ValueError: layers must be an integer >= 1, got 0"),
    (lambda: run("mnist-7x7", methods=["cd", "cd"]), "ValueError: methods must be one or more values, all different, "),
    (lambda: run("mnist-7x7", methods=["adam"]), "ValueError: methods must be one of 'cd', "),
    (lambda: run("mnist-7x7", methods=["lea-mvd:population_size=4"]), "ValueError: n_elite=4 clashes with population"),
    (lambda: run("mnist-7x7", inputs=["both"]), "ValueError: inputs must be one of 'own', 'shared', got 'both'"),
    (lambda: run("mnist-7x7", seeds=[-1]), "ValueError: seeds must be an integer >= 0, got -1"),
    (lambda: run("mnist-7x7", features="both"), "ValueError: features must be one of 'probabilities', 'bits', got 'bo"),
    (lambda: run("mnist-7x7", n_elite=24), "ValueError: n_elite=24 clashes with population_size=24: at least one"),
    (
        lambda: run("mnist-7x7", population_size=4, n_elite=1),
        "ValueError: reading.n_descent_rows=4 clashes with population_size=4",
    ),
    (lambda: run("mnist-7x7", dataset="nowhere"), "DataError: there is no folder "),
    (lambda: run("mnist-7x7", n_images=10_000), "ValueError: n_train must be at most the 1437 images of scikit-learn "),
    (
        lambda: catalog.study("mnist-7x7", "recorded", population_size=12),
        "ValueError: profile='recorded' has fixed parameters; population_size=12 needs profile quick or paper",
    ),
    (lambda: measured(scales=("small",)), "ValueError: scales must be numbers >= 0 or 'glorot', got 'small'"),
    (lambda: measured(scales=("-1",)), "ValueError: scales must be numbers >= 0 or 'glorot', got '-1'"),
    (
        lambda: measured(inputs=("own", "shared")),
        "ValueError: inputs must be own in a study of what stacks are worth, ",
    ),
    (lambda: measured(epochs=0), "ValueError: epochs must be an integer >= 1, got 0"),
    (lambda: measured(tuning_rate=0.0), "ValueError: tuning_rate must be a finite number > 0, got 0.0"),
    (lambda: measured(n_chains=5), "ValueError: n_chains must be an integer >= 10, got 5"),
    (lambda: measured(n_chains=12), "ValueError: n_chains must be a multiple of 5, got 12"),
    (lambda: measured(n_images=1), "ValueError: dataset must have three classes or more to be classified, got 1"),
    (lambda: stacks.on_top(RANDOM.stack(seed=0), 2), "ValueError: n_classes must be an integer >= 3, got 2"),
    (lambda: dataclasses.replace(EXPLAINED, methods=("cd",)), "ValueError: methods must be one of 'lea-mvd', got 'cd'"),
    (lambda: dataclasses.replace(EXPLAINED, sigmas=(0.0,)), "ValueError: sigmas must be a finite number > 0, got 0.0"),
    (lambda: dataclasses.replace(EXPLAINED, n_pairs=1), "ValueError: n_pairs must be an integer >= 2, got 1"),
    # ---- functions, directions, claims, the bench
    (lambda: on_functions(budget=7), "ValueError: budget must be an integer >= 8, got 7"),
    (lambda: on_functions(sizes=(1,)), "ValueError: sizes must be an integer >= 2, got 1"),
    (lambda: on_functions(functions=("beale",)), "ValueError: functions must be one of 'sphere', "),
    (
        lambda: functions.on_functions(catalog.study("readings", "recorded"), NOWHERE, "recorded", budget=100),
        "ValueError: profile='recorded' has fixed parameters; budget=100 needs profile quick or paper",
    ),
    (lambda: directions("huge"), "ValueError: profile must be one of 'recorded', 'quick', 'paper', got 'huge'"),
    (lambda: directions(objective="cube"), "TypeError: objective must be callable, got 'cube'"),
    (lambda: directions(seeds=[]), "ValueError: seeds must hold one or more seeds, got ()"),
    (lambda: directions(n_populations=0), "ValueError: n_populations must be an integer >= 1, got 0"),
    (lambda: directions(start=-1.0), "ValueError: start must be a finite number >= 0, got -1.0"),
    (lambda: directions(sigma=1.0), "TypeError: Plan.__init__() got an unexpected keyword argument 'sigma'"),
    (lambda: Margins(level=1), "ValueError: level must be a finite number > 0 and < 1, got 1"),
    (lambda: Margins(factor=1), "ValueError: factor must be a finite number > 1, got 1"),
    (lambda: Margins(little=0), "ValueError: little must be a finite number > 0, got 0"),
    (lambda: Margins(behind=0), "ValueError: behind must be a finite number > 0, got 0"),
    (
        lambda: Margins(linear=(1.05, 0.95)),
        "ValueError: linear must be two numbers, the smaller one first, got (1.05, 0.95)",
    ),
    (lambda: Margins(quadratic=[2.0]), "ValueError: quadratic must be two numbers, the smaller one first, got (2.0,)"),
    (lambda: bench.run("huge", NOWHERE), "ValueError: profile must be one of 'quick', 'paper', got 'huge'"),
    (lambda: bench.run("quick", NOWHERE, ["adam"]), "ValueError: methods must be one of 'leamvd', "),
    (lambda: bench.run("quick", NOWHERE, ["leamvd"], [0]), "ValueError: sizes must be an integer >= 1, got 0"),
    (
        lambda: bench.run("recorded", NOWHERE, sizes=[10]),
        "ValueError: profile='recorded' has fixed parameters; sizes=[10] needs profile quick or paper",
    ),
]


@pytest.mark.parametrize(("call", "message"), CASES, ids=[message for _, message in CASES])
def test_an_error_is_one_sentence(call: Callable[[], Any], message: str) -> None:
    assert one_sentence(call).startswith(message)
