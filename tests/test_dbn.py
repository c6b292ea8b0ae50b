import dataclasses

import numpy as np
import pytest

from leamvd.networks import dbn
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import (
    EXPERIMENT,
    Training,
    layer_input,
    layer_seed,
    pretrain,
    reconstruct,
    train,
)
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.reading import Reading

TINY = Training(n_elite=2, dtype="float64", batch_size=16)
SHORT = Reading(n_gen=3, population_size=8)


def images(m=40, n=9, seed=0):
    return np.random.default_rng(seed).random((m, n))


def equal(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def last(steps):
    return list(steps)[-1].rbm


def test_contrastive_divergence_is_its_trainer_epoch_by_epoch():
    V = images()
    settings = {
        "batch_size": 7,
        "learning_rate": 0.3,
        "momentum": 0.2,
        "weight_decay": 0.01,
        "momentum_epochs": 1,
        "final_momentum": 0.7,
        "persistent": True,
        "initial_weights": "uniform",
        "weight_scale": 0.3,
    }
    training = Training(cd_steps=2, **settings)
    cd = ContrastiveDivergence(V, 5, cd_steps=2, seed=4, **settings)
    steps = list(train("cd", V, 5, training=training, reading=SHORT, seed=4))
    assert equal(steps[0].rbm, cd.rbm)
    for step in steps[1:]:
        assert equal(step.rbm, cd.epoch())
    # two Gibbs steps: V W, H W^T, V W, H W^T, V W and the statistic's two, of which one product
    # makes both
    assert [step[2:5] for step in steps] == [(0, 0, 0), (0, 1, 7), (0, 2, 14), (0, 3, 21)]
    assert [step.iteration for step in steps] == [0, 1, 2, 3]


def test_optimizer_starts_from_contrastive_divergence_and_keeps_its_best():
    V = images()
    cd = ContrastiveDivergence(V, 5, batch_size=16, seed=4)
    cd.epoch()
    steps = list(train("lea-mvd", V, 5, training=TINY, reading=SHORT, seed=4))
    assert equal(steps[0].rbm, cd.rbm)
    objective = ReconstructionObjective(V, 5)
    opt = LEAMVD(cd.rbm.flat(), population_size=8, n_elite=2, n_gen=3, sigma_min=0.0, seed=4)
    for step in steps[1:]:
        X = opt.ask()
        opt.tell(X, objective(X))
        assert np.array_equal(step.rbm.flat(), opt.result.x)
    # the first generation has 8 new individuals and the next ones 6; the epoch before them is
    # charged to the method
    assert [step[2:5] for step in steps] == [(0, 1, 5), (8, 9, 21), (14, 15, 33), (20, 21, 45)]


def test_the_start_solution_costs_what_contrastive_divergence_has_cost():
    # CD-3 makes six products for its chain, and both statistics' two, of which one product makes
    # both: 2 k + 3 = 9
    for x0, passes in (
        ({"x0_epochs": 2}, 2),
        ({"x0_epochs": 0}, 0),
        ({"x0": "batch"}, 16 / 40),
        ({"x0": "none"}, 0),
    ):
        training = dataclasses.replace(TINY, cd_steps=3, **x0)
        first, second, *_ = train("lea-mvd", images(), 5, training=training, reading=SHORT, seed=4)
        assert (first.evaluations, first.passes, first.products) == (0, passes, passes * 9)
        assert (second.evaluations, second.passes, second.products) == (
            8,
            passes + 8,
            passes * 9 + 16,
        )
    few, _ = train("random", images(10), 5, training=training_of("batch"), reading=Reading(n_gen=1))
    assert few.passes == 1, "a mini-batch of all images is an epoch"


@pytest.mark.parametrize(
    ("n_batches", "passes"), [(1, 16 / 40), (2, 32 / 40), (3, 1), (4, 1 + 16 / 40), (9, 3)]
)
def test_a_start_of_several_mini_batches_is_what_so_many_of_cd_leave_whatever_epochs_end(
    n_batches, passes
):
    # mini-batches of 16, 16 and 8 images
    training = dataclasses.replace(TINY, x0="batch", x0_batches=n_batches)
    start = next(train("lea-mvd", images(), 5, training=training, reading=SHORT, seed=4))
    cd = ContrastiveDivergence(images(), 5, settings=TINY, seed=4)
    for _ in range(n_batches):
        rbm = cd.mini_batch()
    assert equal(start.rbm, rbm)
    assert start.passes == pytest.approx(passes, abs=1e-12)
    assert (cd.n_epochs, start.evaluations) == (n_batches // 3, 0)


def training_of(x0):
    return dataclasses.replace(TINY, x0=x0)


@pytest.mark.parametrize("method", ["lea-mvd", "cma-es", "random"])
def test_a_mini_batch_can_be_the_start_solution(method):
    cd = ContrastiveDivergence(images(), 5, batch_size=16, seed=4)
    first, *_ = train(method, images(), 5, training=training_of("batch"), reading=SHORT, seed=4)
    assert equal(first.rbm, cd.mini_batch())
    assert not equal(first.rbm, cd.epoch())


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("method", ["lea-mvd", "cma-es", "sep-cma-es", "random"])
def test_without_a_start_solution_the_center_is_iteration_0_and_no_candidate(
    method, dtype, monkeypatch
):
    generations = []
    evaluate = ReconstructionObjective.__call__

    def seen(self, X):
        generations.append(np.array(X))
        return evaluate(self, X)

    monkeypatch.setattr(ReconstructionObjective, "__call__", seen)
    training = dataclasses.replace(TINY, x0="none", x0_limit=0.3, sigma0=0.01, dtype=dtype)
    steps = list(train(method, images().astype(dtype), 5, training=training, reading=SHORT, seed=4))
    assert not steps[0].rbm.flat().any()
    assert {p.dtype for step in steps for p in step.rbm} == {np.dtype(dtype)}
    X = generations[0]
    assert len(X) == 8
    assert X.any(axis=1).all(), "the center is no start solution, and so not in the population"
    if "cma" in method:
        assert 0.008 < X.std() < 0.012, (
            "N(0, sigma0): five standard errors of 472 numbers, and pycma's rounding"
        )
    else:
        assert 0.29 < abs(X).max() <= 0.3, "uniform within the limits"
        assert X.std() == pytest.approx(0.3 / np.sqrt(3), rel=0.15)
    if method == "lea-mvd":
        opt = LEAMVD(
            n_var=59, bounds=(-0.3, 0.3), population_size=8, n_elite=2, n_gen=3, seed=4, dtype=dtype
        )
        assert np.array_equal(X, opt.ask())


def test_reading_says_whether_x0_is_in_the_population_and_elites_are_evaluated_again():
    V, objective = images(), ReconstructionObjective(images(), 5)
    for method in ("lea-mvd", "cma-es", "random"):
        started = list(train(method, V, 5, training=TINY, reading=SHORT, seed=1))
        error = objective([step.rbm.flat() for step in started])
        assert (np.diff(error) <= 0).all()
        # a sigma0 that is far too large makes every candidate worse than the start solution
        wide = dataclasses.replace(TINY, sigma0=20.0)
        for inside in (True, False):
            reading = Reading(n_gen=1, population_size=8, x0_in_population=inside)
            start, end = train(method, V, 5, training=wide, reading=reading, seed=1)
            assert equal(start.rbm, end.rbm) == inside
    printed = list(train("lea-mvd", V, 5, training=TINY, reading=Reading.named("printed", SHORT)))
    assert [step.evaluations for step in printed] == [0, 8, 16, 24]


@pytest.mark.parametrize("method", ["lea-mvd", "cma-es", "sep-cma-es", "random"])
def test_an_optimizer_runs_the_generations_and_the_population_of_its_reading(method):
    reading = Reading(population_size=10, n_gen=5, elites="reevaluate")
    steps = list(train(method, images(), 5, training=TINY, reading=reading, seed=1))
    # item R14: LEA-MVD evaluates its elites again, as the others draw every candidate anew
    assert [step.evaluations for step in steps] == [0, 10, 20, 30, 40, 50]
    assert len(list(train("cd", images(), 5, training=TINY, reading=reading))) == 1 + 5


def test_without_a_reading_the_experiments_is_run():
    assert Reading(n_gen=50) == EXPERIMENT
    assert [*train("cd", images(10), 3, reading=Reading())][-1].iteration == 30
    assert len(list(train("cd", images(), 5))) == 1 + 50


def test_features():
    model = RBMParameters(
        *(np.random.default_rng(5).normal(0, 2, shape) for shape in ((9, 4), 9, 4))
    )
    V = images()
    assert layer_input([], V) is V
    P = layer_input([model], V)
    assert np.array_equal(P, model.hidden_given_visible(V))
    assert np.array_equal(
        layer_input([model, RBMParameters(model.W.T, model.c, model.b)], V),
        model.visible_given_hidden(P),
    )


@pytest.mark.parametrize("n_layers", [1, 2])
@pytest.mark.parametrize(("test", "purpose"), [(False, 0), (True, 3)])
def test_bits_of_each_seed_layer_and_purpose_are_drawn_from_a_child_of_their_own(
    n_layers, test, purpose
):
    # no weights: bits say nothing about others
    model, V = RBMParameters(np.zeros((9, 9)), np.zeros(9), np.zeros(9)), images()
    rng = np.random.default_rng(
        np.random.SeedSequence(layer_seed(3, n_layers), spawn_key=(purpose,))
    )
    bits = layer_input([model] * n_layers, V, features="bits", seed=3, test=test)
    assert np.array_equal(bits, model.sample_hidden(V, rng))


@pytest.mark.parametrize(
    ("name", "value", "x0"),
    [
        ("x0_epochs", 2, "batch"),
        ("x0_epochs", 0, "none"),
        ("x0_limit", 0.2, "epochs"),
        ("x0_batches", 2, "epochs"),
    ],
)
def test_settings_of_another_start_solution_clash_with_it(name, value, x0):
    with pytest.raises(ValueError, match=f"{name}={value} clashes with x0='{x0}'"):
        Training(x0=x0, **{name: value})


@pytest.mark.parametrize("method", dbn.METHODS)
def test_writing_to_the_layers_that_it_yields_changes_no_later_one(method):
    steps, twins = (train(method, images(), 5, training=TINY, reading=SHORT, seed=4) for _ in "ab")
    for step, twin in zip(steps, twins, strict=True):
        assert equal(step.rbm, twin.rbm)
        for parameter in step.rbm:
            parameter[:] = 0


def test_layer_seeds_differ():
    seeds = [layer_seed(seed, layer) for seed in range(2000) for layer in range(1, 6)]
    assert len(set(seeds)) == len(seeds)
    assert min(seeds) >= 0
    assert max(seeds) < 2**64


@pytest.mark.parametrize("features", ["probabilities", "bits"])
def test_own_chain_trains_each_layer_on_what_the_one_below_makes_of_its_input(features):
    V = images()
    stack = pretrain(
        V, (5, 4, 3), method="lea-mvd", training=TINY, reading=SHORT, features=features, seed=7
    )
    for layer, model in enumerate(stack, start=1):
        X = layer_input(stack[: layer - 1], V, features=features, seed=7)
        steps = train(
            "lea-mvd", X, len(model.c), training=TINY, reading=SHORT, seed=layer_seed(7, layer)
        )
        assert equal(model, last(steps))
    assert [model.W.shape for model in stack] == [(9, 5), (5, 4), (4, 3)]


def test_shared_input_trains_each_layer_on_another_stacks_features():
    V = images()
    cd = pretrain(V, (5, 4), method="cd", training=TINY, reading=SHORT, seed=7)
    settings = {"training": TINY, "reading": SHORT, "seed": 7}
    shared = pretrain(V, (5, 4), method="lea-mvd", below=cd, **settings)
    own = pretrain(V, (5, 4), method="lea-mvd", **settings)
    assert equal(shared[0], own[0])
    X = cd[0].hidden_given_visible(V)
    assert equal(
        shared[1], last(train("lea-mvd", X, 4, training=TINY, reading=SHORT, seed=layer_seed(7, 2)))
    )
    assert not equal(shared[1], own[1])
    # a stack on its own features is its own chain
    assert all(map(equal, cd, pretrain(V, (5, 4), below=cd, **settings)))
    assert all(map(equal, cd, pretrain(V, (5, 4), below=cd[:1], **settings)))


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("cd", [5, 15, 25, 35]),
        ("lea-mvd", [5 + 10, 16, 17, 18]),
        ("cma-es", [15, 16, 17, 18]),
        ("random", [15, 16, 17, 18]),
    ],
)
def test_seconds_are_those_of_the_training_alone_its_start_included(method, expected, monkeypatch):
    """Of a clock: what a trainer begins with takes 5 s, an epoch 10, the error of a generation 1;
    what is done with a layer that is yielded takes an hour.
    """
    now = [1000.0]

    def taking(seconds, kind, name):
        real = getattr(kind, name)

        def call(*args, **given):
            now[0] += seconds
            return real(*args, **given)

        monkeypatch.setattr(kind, name, call)

    monkeypatch.setattr(dbn.time, "perf_counter", lambda: now[0])
    taking(5, ContrastiveDivergence, "__init__")
    taking(10, ContrastiveDivergence, "epoch")
    taking(1, ReconstructionObjective, "__call__")
    seconds = []
    for step in train(method, images(), 5, training=TINY, reading=SHORT, seed=4):
        seconds.append(step.seconds)
        now[0] += 3600
    assert seconds == expected


@pytest.mark.parametrize(
    ("name", "least", "wrong"),
    [
        ("n_elite", 1, 0),
        ("sigma0", 1e-9, 0),
        ("x0_epochs", 0, -1),
        ("x0_batches", 1, 0),
        ("x0_limit", 1e-9, 0),
        ("x0", "none", "zero"),
        ("dtype", "float64", "float16"),
        ("backend", "numpy", "jax"),
        ("device", "cpu", "cuda"),
        ("precision", "float32", "bfloat16"),
    ],
)
def test_settings_of_the_optimizers_are_taken_to_their_ends_and_refused_beyond(name, least, wrong):
    start = {"x0_batches": "batch", "x0_limit": "none"}.get(name)
    given = {} if start is None else {"x0": start}
    assert getattr(Training(**given, **{name: least}), name) == least
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Training(**given, **{name: wrong})


def test_reconstruction_goes_up_and_down_again():
    V = images(6)
    stack = pretrain(V, (5, 4), training=TINY, reading=SHORT)
    top = stack[1].hidden_given_visible(stack[0].hidden_given_visible(V))
    down = stack[0].visible_given_hidden(stack[1].visible_given_hidden(top))
    assert np.array_equal(reconstruct(stack, V), down)
    assert np.array_equal(reconstruct(stack[:1], V), stack[0].reconstruct(V))
    assert np.array_equal(reconstruct([], V), V)
