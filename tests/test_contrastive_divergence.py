import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from leamvd._support.threads import limited_to
from leamvd.networks.contrastive_divergence import CDSettings, ContrastiveDivergence
from leamvd.networks.objective import Errors, ReconstructionObjective, reconstruction_errors
from leamvd.networks.rbm import RBMParameters, n_parameters


def images(m=23, n=6, seed=2, dtype=np.float64):
    return np.random.default_rng(seed).random((m, n)).astype(dtype)


E8 = {
    "cd_steps": 1,
    "batch_size": 100,
    "learning_rate": 0.1,
    "momentum": 0.5,
    "final_momentum": 0.9,
    "momentum_epochs": 5,
    "weight_decay": 2e-4,
    "persistent": False,
    "m": None,
}


def reference(V, n_hidden, epochs, *, seed, weight_scale=0.1):
    """CD-k image by image, random numbers in the trainer's order, by each epoch's settings and
    first m images.
    """
    rng = np.random.default_rng(seed)
    n_visible = V.shape[1]
    W, b, c = (
        rng.normal(0, weight_scale, (n_visible, n_hidden)),
        np.zeros(n_visible),
        np.zeros(n_hidden),
    )
    steps = [np.zeros_like(p) for p in (W, b, c)]
    for epoch, changed in enumerate(epochs):
        own = SimpleNamespace(**E8 | changed)
        if epoch == 0 or not epochs[epoch - 1].get("persistent"):
            chain = np.zeros((len(V), n_hidden))
        order = rng.permutation(len(V[: own.m]))
        for start in range(0, len(order), own.batch_size):
            data = V[order[start : start + own.batch_size]]
            p0 = np.array([expit(c + W.T @ v) for v in data])
            h = chain[: len(data)] if own.persistent else (rng.random(p0.shape) < p0) * 1.0
            for _ in range(own.cd_steps - 1):
                p = np.array([expit(b + W @ x) for x in h])
                v_bits = (rng.random(p.shape) < p) * 1.0
                p = np.array([expit(c + W.T @ v) for v in v_bits])
                h = (rng.random(p.shape) < p) * 1.0
            vk = np.array([expit(b + W @ x) for x in h])
            vk = (rng.random(vk.shape) < vk) * 1.0 if own.persistent else vk
            pk = np.array([expit(c + W.T @ v) for v in vk])
            if own.persistent:
                chain[: len(data)] = rng.random(pk.shape) < pk
            n = len(data)
            gradients = [
                sum(np.outer(v, p) for v, p in zip(data, p0, strict=True)) / n
                - sum(np.outer(v, p) for v, p in zip(vk, pk, strict=True)) / n
                - own.weight_decay * W,
                data.mean(axis=0) - vk.mean(axis=0),
                p0.mean(axis=0) - pk.mean(axis=0),
            ]
            kept = own.momentum if epoch < own.momentum_epochs else own.final_momentum
            steps = [
                kept * s + own.learning_rate * g for s, g in zip(steps, gradients, strict=True)
            ]
            W, b, c = (p + s for p, s in zip((W, b, c), steps, strict=True))
    return RBMParameters(W, b, c)


OTHER = {
    "learning_rate": 0.3,
    "momentum": 0.4,
    "final_momentum": 0.8,
    "momentum_epochs": 2,
    "weight_decay": 0.01,
}


CHANGES = [
    {"learning_rate": 0.02},
    {"momentum": 0.1},
    {"final_momentum": 0.1},
    {"momentum_epochs": 9},
]
CHANGES += [
    {"weight_decay": 0.1},
    {"cd_steps": 3},
    {"batch_size": 3},
    {"batch_size": 100},
    {"persistent": True},
]
CHANGES += [{"persistent": False}, {"m": 4}, {"m": 9}]  # the first m images


@pytest.mark.parametrize(
    ("m", "settings", "first", "large"),
    [
        (250, {}, {}, False),  # item E8
        # 23 images: a last batch of 3, none, and one short batch
        *(
            (23, {"cd_steps": k, "batch_size": size} | OTHER, {}, False)
            for k in (1, 2, 4)
            for size in (1, 5, 23, 100)
        ),
        *((23, {"cd_steps": k, "batch_size": 5, "persistent": True}, {}, False) for k in (1, 3)),
        (23, {"cd_steps": 2, "batch_size": 5}, {}, True),  # cut in halves
        # other settings or images in the first two epochs, and in the last
        *(
            (23, {"batch_size": 7, "persistent": on} | OTHER, first, False)
            for on in (False, True)
            for first in CHANGES
        ),
    ],
    ids=str,
)
def test_against_reference(m, settings, first, large, monkeypatch):
    if large:
        monkeypatch.setattr("leamvd.networks.contrastive_divergence._LARGE", 1)
    V = images(m, 7)
    start = {"weight_scale": 0.7} if settings else {}
    epochs = [settings | first] * 2 + [settings] * (4 if settings else 1) + [settings | first]
    trainer = ContrastiveDivergence(V[: first.get("m")], 5, seed=9, **start)
    for own in epochs:
        trainer.go_on_with(
            V[: own.get("m")], CDSettings(**{name: own[name] for name in own.keys() - {"m"}})
        )
        trained = trainer.epoch()
        trainer = pickle.loads(pickle.dumps(trainer))  # persistent chains are part of it
    expected = reference(V, 5, epochs, seed=9, **start)
    np.testing.assert_allclose(trained.flat(), expected.flat(), rtol=1e-11, atol=1e-13)


# P(h) is 1/2, so a weight learns half
@pytest.mark.parametrize(("rate", "weight_too"), [(2.5, False), (10.0, True)])
def test_one_parameter_that_overflows_is_noticed(rate, weight_too):
    trainer = ContrastiveDivergence(
        [[1e308, 0.5]], 1, learning_rate=rate, weight_scale=0, seed=0, unit_interval=False
    )
    with pytest.raises(ValueError, match="learning_rate must keep the weights finite"):
        trainer.epoch()
    assert np.isinf(trainer.rbm.flat()).tolist() == [weight_too, False, True, False, False]


@pytest.mark.compiled
def test_threads_do_not_change_a_bit():
    V = images(300, 400, dtype=np.float32)
    trained = []
    for n_threads in (1, 2):
        with limited_to(n_threads):
            trained.append(ContrastiveDivergence(V, 260, seed=1).epoch())
    one, two = trained
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_of_mini_batches_is_an_epoch(persistent):
    V = images()  # 23 images: mini-batches of 5, 5, 5, 5 and 3
    whole, parts = (
        ContrastiveDivergence(V, 4, cd_steps=2, batch_size=5, persistent=persistent, seed=9)
        for _ in range(2)
    )
    expected = [whole.epoch() for _ in range(3)]
    for epoch, n_mini_batches in enumerate((1, 4, 5)):
        for _ in range(n_mini_batches):
            assert parts.n_epochs == epoch
            assert (
                not np.array_equal(parts.mini_batch().W, expected[epoch].W) or n_mini_batches == 5
            )
            # where it stands in the epoch is part of the trainer
            parts = pickle.loads(pickle.dumps(parts))
        trained = parts.epoch() if n_mini_batches < 5 else parts.rbm
        assert parts.n_epochs == epoch + 1
        for ours, theirs in zip(trained, expected[epoch], strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("initial", "std"), [("normal", 0.25), ("uniform", 0.25 / np.sqrt(3))])
def test_initial_weights(initial, std):
    # 40,000 numbers: their std is within 2 % except once in 10^8 runs, their largest uniform within
    # 1 % of its limit
    start = ContrastiveDivergence(
        images(3, 200), 200, initial_weights=initial, weight_scale=0.25, seed=0
    ).rbm
    assert start.W.std() == pytest.approx(std, rel=0.02)
    assert abs(start.W.mean()) < 5 * std / 200
    assert (0.99 * 0.25 < abs(start.W).max() <= 0.25) == (initial == "uniform")
    assert not start.b.any()
    assert not start.c.any()


def test_initial_weights_by_the_size_of_the_layer_and_biases_of_the_data():
    V = images(3, 200)
    V[:, 0] = 0
    V[:, 1] = 1
    start = ContrastiveDivergence(
        V, 100, initial_weights="glorot", weight_scale=4, visible_biases="data", seed=0
    ).rbm
    limit = 4 * np.sqrt(6 / 300)
    assert 0.99 * limit < abs(start.W).max() <= limit
    p = np.clip(V.mean(axis=0), 0.001, 0.999)
    np.testing.assert_allclose(start.b, np.log(p / (1 - p)), rtol=1e-12)
    assert not start.c.any()


@pytest.mark.parametrize(
    ("name", "least", "wrong"),
    [
        ("cd_steps", 1, 0),
        ("batch_size", 1, 0),
        ("momentum_epochs", 0, -1),
        ("learning_rate", 0, -1e-9),
        ("weight_decay", 0, -1e-9),
        ("weight_scale", 0, -1e-9),
        ("momentum", 0, 1),
        ("final_momentum", 0, 1),
        ("initial_weights", "glorot", "he"),
        ("visible_biases", "data", "mean"),
        ("persistent", True, 1),
    ],
)
def test_settings_are_taken_to_their_ends_and_refused_beyond(name, least, wrong):
    assert getattr(CDSettings(**{name: least}), name) == least
    with pytest.raises(ValueError, match=f"^{name} must be"):
        CDSettings(**{name: wrong})


def test_training_raises_the_likelihood_and_lowers_the_error():
    V = np.repeat([[1.0, 1, 0, 0, 1, 0], [0, 0, 1, 1, 0, 1]], 50, axis=0)
    trainer = ContrastiveDivergence(V, 3, batch_size=10, seed=0)
    before = trainer.rbm
    history = trainer.fit(60)
    after = trainer.rbm
    assert before.log_likelihood(V) < -6 * np.log(2) * 0.9  # near uniform over 2^6 states
    assert after.log_likelihood(V) > -1.2  # two equally likely patterns: at most -log 2
    assert history[-1].mean_field_ratio < 0.02
    assert history[-1].sampled_ratio < 0.1


def test_history_holds_every_measure_of_every_epoch():
    V = images(150)
    trainer, twin = ContrastiveDivergence(V, 4, seed=3), ContrastiveDivergence(V, 4, seed=3)
    history = trainer.fit(3, error_seed=8)
    models = [twin.rbm, *(twin.epoch() for _ in range(3))]
    assert history == [reconstruction_errors(model, V, seed=8) for model in models]
    assert isinstance(history[0], Errors)
    assert [e.mean_field for e in history] == [
        ReconstructionObjective(V, 4)(m.flat()[None])[0] for m in models
    ]
    assert trainer.n_epochs == 3
    assert trainer.fit(0, error_seed=8) == history[-1:]


def test_progress_is_shown_when_asked(capfd):
    ContrastiveDivergence(images(), 4, seed=3).fit(1)
    assert capfd.readouterr().err == ""
    ContrastiveDivergence(images(), 4, seed=3).fit(1, progress=True)
    assert "CD: 100%" in capfd.readouterr().err


def test_seed_decides_and_nothing_outside_is_touched():
    V = images()
    V.flags.writeable = False
    np.random.seed(1)  # noqa: NPY002
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    one, same, other = (ContrastiveDivergence(V, 4, seed=seed).epoch().flat() for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).any()
    np.testing.assert_array_equal(state, np.random.get_state()[1])  # noqa: NPY002
    without = [ContrastiveDivergence(V, 4).rbm.W for _ in range(2)]
    assert (without[0] != without[1]).any()


def test_returned_models_are_copies():
    trainer = ContrastiveDivergence(images(), 4, seed=1)
    first = trainer.epoch()
    kept = first.flat()
    trainer.epoch()
    np.testing.assert_array_equal(first.flat(), kept)
    trainer.rbm.W[:] = 0
    assert trainer.rbm.W.any()


def test_dtypes():
    V = images(57)
    wide, narrow = (
        ContrastiveDivergence(V, 4, seed=1),
        ContrastiveDivergence(V, 4, seed=1, dtype="float32"),
    )
    assert ContrastiveDivergence(V.astype(np.float32), 4).rbm.W.dtype == np.float32
    assert ContrastiveDivergence((V > 0.5), 4).rbm.W.dtype == np.float64
    np.testing.assert_allclose(narrow.rbm.W, wide.rbm.W, rtol=1e-6)
    trained = narrow.epoch()
    assert {p.dtype for p in trained} == {np.dtype("float32")}
    assert trained.flat().size == n_parameters(6, 4)


def test_a_trainer_goes_on_with_other_images_after_an_epoch_alone():
    V = images(40, 9)
    trainer = ContrastiveDivergence(V, 5, batch_size=16, seed=3)
    with pytest.raises(ValueError, match="V must have 9 columns"):
        trainer.go_on_with(V[:, :8])
    trainer.mini_batch()
    with pytest.raises(ValueError, match="an epoch must have ended"):
        trainer.go_on_with(V)
