"""Seeds: what is drawn is a seed's, a layer's and a purpose's own, and what methods are compared on
is the same.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from leamvd.networks.dbn import Training, layer_seed
from leamvd.optimizers import random_streams
from leamvd.optimizers.reading import Reading
from leamvd_paper.data.functions import problem
from leamvd_paper.studies import (
    architectures,
    benchmarks,
    classification,
    error_measures,
    explanation,
    fine_tuning,
    layers,
    longer_searches,
    minima,
    readings,
    settings_map,
    stacks,
    two_directions,
)
from leamvd_paper.studies.esd import population, simulate
from leamvd_paper.studies.layers import Images, Study
from leamvd_paper.studies.results import Call, Result

IMAGES, TRAINING, READING = Images(n_images=40), Training(dtype="float64"), Reading(n_gen=2)
STACK = classification.random_stack((49, 3, 2), "0.1", "float64", seed=9).arrays


def stack(n_layers):
    return Result(
        pd.DataFrame(), {name: array for name, array in STACK.items() if int(name[1]) <= n_layers}
    )


def trained(seed, layer, trainer="cd"):
    return layers.layer(IMAGES, trainer, 2, seed, TRAINING, READING, "bits", stack(layer - 1))


OF_LAYERS = {  # draws by seed, and by layer or number of variables
    "layer": trained,
    "search": lambda seed, layer: trained(seed, layer, "lea-mvd"),
    "pairs": lambda seed, layer: explanation.pairs(stack(layer), IMAGES, "bits", seed, (0.1,), 2),
    "problem": lambda seed, n: problem("sphere", n, seed),
    "valley": lambda seed, n: minima.valley("rastrigin", n + 1, seed),
}
OF_SEEDS = OF_LAYERS | {
    "RBM": lambda seed, _: benchmarks.FirstRBM("RBM", IMAGES, 2).start(seed),
    "escape": lambda seed, n: minima.escape("rastrigin", n, "random", (0.1,), seed),
    "trained-minimum": lambda seed, _: minima.escape_from_training(IMAGES, "lea-mvd", seed),
    "network": lambda seed, _: architectures.learn("steps", "random", seed, 48, 2),
    "random-weights": lambda seed, _: classification.random_stack((3, 2), "0.1", "float64", seed),
    "fine-tuning": lambda seed, n: classification.fine_tuned(
        stack(n), IMAGES, "float64", seed, 2, 0.1
    ),
    "likelihoods": lambda seed, _: classification.likelihoods(
        stack(1), IMAGES, "float64", seed, 10, 2
    ),
    "directions": lambda seed, n: [*two_directions.Settings(n_var=n, n_gen=2).run(seed)],
    "followed": lambda seed, _: readings.followed_layer(IMAGES, 2, TRAINING, READING, seed),
    "tournaments": lambda seed, n: simulate(n, 20, seed),
    "population": lambda seed, n: population(n, seed),
}
SHARED = {  # digits to test on, bits of test images, and errors that nobody looks at
    "network": {"0"},
    "likelihoods": {"[0, 3, 1]"},
    "trained-minimum": {str(random_streams.child(0, random_streams.ERROR_BITS, 0))},
}


@pytest.fixture
def sown(monkeypatch):
    """Return a function that makes a draw, and returns the seeds of all its random numbers."""
    for dtype in ("float32", "float64"):
        IMAGES.load(dtype)  # which is remembered, and draws a subset
    found = []

    for owner, name, kind in (
        (np.random, "default_rng", ""),
        (np.random, "PCG64", ""),
        (random_streams, "key", "key "),
    ):
        real = getattr(owner, name)
        noted = lambda seed, real=real, kind=kind: found.append(f"{kind}{seed}") or real(seed)  # noqa: E731
        monkeypatch.setattr(owner, name, noted)
    for name, value in {
        "N_HIDDEN": 1,
        "EPOCHS": 1,
        "BUDGET": 48,
        "curvatures": lambda *_: np.zeros(1),
    }.items():
        monkeypatch.setattr(minima, name, value)
    # which draws nothing
    monkeypatch.setattr(minima, "descend_rbm", lambda theta, *_: (theta, 1.0))

    def draw(name, *where):
        found.clear()
        OF_SEEDS[name](*where)
        return set(found)

    return draw


@pytest.mark.parametrize("name", OF_SEEDS)
def test_two_seeds_share_nothing_but_what_all_are_compared_on(name, sown) -> None:
    first, again, other = (sown(name, seed, 2) for seed in (1, 1, 2))
    assert first == again
    assert first & other == SHARED.get(name, set()) != first


@pytest.mark.parametrize("name", OF_LAYERS)
def test_two_layers_and_two_numbers_of_variables_share_nothing(name, sown) -> None:
    assert not sown(name, 1, 1) & sown(name, 1, 2)


def test_two_purposes_share_nothing_and_methods_share_start_features_and_test_bits(sown) -> None:
    names = ("layer", "search", "pairs", "fine-tuning", "likelihoods")
    cd, search, pairs, tuned, likely = (sown(name, 1, 2) for name in names)
    assert cd & pairs == {str(random_streams.child(layer_seed(1, 1), random_streams.FEATURE_BITS))}
    assert not (tuned & likely) | ((tuned | likely) & cd)
    assert search == cd | {f"key {layer_seed(1, 2)}"}


# ---- seeds of plans

QUICK = {
    "architectures": lambda: architectures.plan(architectures.PROFILES["quick"]),
    "classification": lambda: classification.plan(classification.PROFILES["quick"].known()),
    "error measures": lambda: error_measures.plan(error_measures.PROFILES["quick"]),
    "explanation": lambda: explanation.plan(explanation.PROFILES["quick"].known()),
    "fine-tuning": lambda: fine_tuning.plan(fine_tuning.PROFILES["quick"].known()),
    "longer searches": lambda: longer_searches.PROFILES["quick"].plan(),
    "map": lambda: settings_map.plan_of_both(settings_map.PROFILES["quick"]),
    "minima": lambda: minima.plan(minima.PROFILES["quick"]),
    "readings": lambda: readings.planned("quick", "mean_field"),
    "stacks": lambda: stacks.plan(stacks.PROFILES["7x7"]["quick"].known()),
}


def behind(call):
    """Yield a call and those that it needs, but those of other seeds by which a rate is chosen."""
    yield call
    for name, value in call.arguments.items():
        if isinstance(value, Call) and name not in ("first", "second", "third"):
            yield from behind(value)


STUDIES = {  # with other settings than the usual ones
    "architectures": replace(architectures.PROFILES["quick"], width=5, budget=50),
    "classification": classification.PROFILES["quick"]
    .changed(epochs=3, tuning_rate=0.3, n_chains=15, n_temperatures=7)
    .known(),
    "explanation": explanation.PROFILES["quick"].changed(sigmas=(0.2, 0.4), n_pairs=3).known(),
    "fine-tuning": fine_tuning.PROFILES["quick"].changed(epochs=3, rates=(0.3, 0.4)).known(),
    "minima": replace(minima.PROFILES["quick"], sigmas=(0.2,)),
    "readings": readings.PROFILES["quick"].changed(budget=70).known(),
}
PLANS = {
    "architectures": architectures.plan,
    "classification": classification.plan,
    "explanation": explanation.plan,
    "fine-tuning": fine_tuning.plan,
    "minima": minima.plan,
    "readings": lambda study: {
        "functions": readings.on_functions(study),
        "directions": readings.follows(study),
    },
}

# a layer has those of its method, and rates are chosen on fewer images
OF_METHODS = {"training", "reading", "images"}
# what tells calls apart
NAMING = {"networks", "functions", "sizes", "scales", "n_held_out", "rbm_seeds", "seeds", "methods"}


@pytest.mark.parametrize("name", STUDIES)
def test_calls_have_the_settings_of_their_study(name) -> None:
    settings = vars(STUDIES[name])
    heard = set()
    for _, calls in PLANS[name](STUDIES[name]).values():
        for call in calls.values():
            # a layer has those of its method, and rates are chosen on fewer images
            for setting in call.arguments.keys() & settings.keys() - {
                "training",
                "reading",
                "images",
            }:
                assert call.arguments[setting] == settings[setting], (call.key, setting)
                heard.add(setting)
    own = settings.keys() - vars(Study()).keys()
    named = {
        "networks",
        "functions",
        "sizes",
        "scales",
        "rbm_seeds",
        "n_held_out",
        "seeds",
        "methods",
    }
    assert heard >= own - named - {"images"}


@pytest.mark.parametrize("name", QUICK)
def test_all_that_stands_behind_a_row_has_the_rows_seed_and_as_many_layers(name) -> None:
    for table, (columns, calls) in QUICK[name]().items():
        for values, call in calls.items():
            label = dict(zip(columns, values, strict=True))
            needed = [*behind(call)]
            seeds = {one.arguments["seed"] for one in needed if "seed" in one.arguments}
            assert seeds <= {label["seed"]}, (table, label)
            if call.function is layers.layer and "layer" in label:
                assert len(needed) == label["layer"], (table, label)
