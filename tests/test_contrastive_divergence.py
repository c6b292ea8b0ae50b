import copy
import pickle

import numba
import numpy as np
import pytest
from scipy.special import expit

from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import Errors, ReconstructionObjective, reconstruction_errors
from leamvd.networks.rbm import RBM, n_parameters


def images(m=23, n=6, seed=2, dtype=np.float64):
    return np.random.default_rng(seed).random((m, n)).astype(dtype)


def bits(n):
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(float)


def reference(V, n_hidden, n_epochs, *, seed, k, batch, rate, momentums, switch, decay, weight_scale, persistent=False):
    """CD-k image by image, with the random numbers in the trainer's order."""
    rng = np.random.default_rng(seed)
    n_visible = V.shape[1]
    W, b, c = rng.normal(0, weight_scale, (n_visible, n_hidden)), np.zeros(n_visible), np.zeros(n_hidden)
    steps = [np.zeros_like(p) for p in (W, b, c)]
    chain = np.zeros((batch, n_hidden))
    for epoch in range(n_epochs):
        order = rng.permutation(len(V))
        for start in range(0, len(V), batch):
            data = V[order[start : start + batch]]
            p0 = np.array([expit(c + W.T @ v) for v in data])
            h = chain[: len(data)] if persistent else (rng.random(p0.shape) < p0) * 1.0
            for _ in range(k - 1):
                p = np.array([expit(b + W @ x) for x in h])
                v_bits = (rng.random(p.shape) < p) * 1.0
                p = np.array([expit(c + W.T @ v) for v in v_bits])
                h = (rng.random(p.shape) < p) * 1.0
            vk = np.array([expit(b + W @ x) for x in h])
            vk = (rng.random(vk.shape) < vk) * 1.0 if persistent else vk
            pk = np.array([expit(c + W.T @ v) for v in vk])
            if persistent:
                chain[: len(data)] = rng.random(pk.shape) < pk
            n = len(data)
            gradients = [
                sum(np.outer(v, p) for v, p in zip(data, p0, strict=True)) / n
                - sum(np.outer(v, p) for v, p in zip(vk, pk, strict=True)) / n
                - decay * W,
                data.mean(axis=0) - vk.mean(axis=0),
                p0.mean(axis=0) - pk.mean(axis=0),
            ]
            momentum = momentums[0] if epoch < switch else momentums[1]
            steps = [momentum * s + rate * g for s, g in zip(steps, gradients, strict=True)]
            W, b, c = (p + s for p, s in zip((W, b, c), steps, strict=True))
    return RBM(W, b, c)


@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("batch", [1, 5, 23, 100])  # 23 images: a last batch of 3, none, and one short batch
def test_against_reference(k, batch):
    V = images()
    trainer = ContrastiveDivergence(
        V, 4, k=k, batch_size=batch, learning_rate=0.3, momentum=0.4, final_momentum=0.8, momentum_epochs=2,
        weight_decay=0.01, weight_scale=0.7, seed=9,
    )  # fmt: skip
    for _ in range(4):
        trained = trainer.epoch()
    settings = {"rate": 0.3, "momentums": (0.4, 0.8), "switch": 2, "decay": 0.01, "weight_scale": 0.7}
    expected = reference(V, 4, 4, seed=9, k=k, batch=batch, **settings)
    for ours, theirs in zip(trained, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("k", [1, 3])
def test_persistent_chains_go_on_from_batch_to_batch(k):
    V = images()
    trainer = ContrastiveDivergence(V, 4, k=k, persistent=True, batch_size=5, weight_scale=0.7, seed=9)
    trainer.epoch()
    trainer = pickle.loads(pickle.dumps(trainer))  # the chains are part of the trainer
    trainer.epoch()
    expected = reference(
        V,
        4,
        2,
        seed=9,
        k=k,
        batch=5,
        rate=0.1,
        momentums=(0.5, 0.9),
        switch=5,
        decay=2e-4,
        weight_scale=0.7,
        persistent=True,
    )
    for ours, theirs in zip(trainer.rbm, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("n_threads", [1, 2])
def test_large_layers_are_cut_in_halves_and_follow_the_reference(n_threads, monkeypatch):
    monkeypatch.setattr("leamvd.networks.contrastive_divergence._LARGE", 1)
    V = images(n=7)
    trainer = ContrastiveDivergence(V, 5, k=2, batch_size=5, weight_scale=0.7, seed=9, n_threads=n_threads)
    for _ in range(3):
        trainer.epoch()
    expected = reference(
        V, 5, 3, seed=9, k=2, batch=5, rate=0.1, momentums=(0.5, 0.9), switch=5, decay=2e-4, weight_scale=0.7
    )
    for ours, theirs in zip(trainer.rbm, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-13)


@pytest.mark.compiled
def test_threads_do_not_change_a_bit():
    V = images(300, 400, dtype=np.float32)
    one, two = (ContrastiveDivergence(V, 260, seed=1, n_threads=n).epoch() for n in (1, 2))
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)


def test_defaults_are_row_e8():
    V = images(250)
    trainer = ContrastiveDivergence(V, 4, seed=1)
    for _ in range(7):
        trained = trainer.epoch()
    expected = reference(
        V, 4, 7, seed=1, k=1, batch=100, rate=0.1, momentums=(0.5, 0.9), switch=5, decay=2e-4, weight_scale=0.1
    )
    np.testing.assert_allclose(trained.flat(), expected.flat(), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("persistent", [False, True])
def test_an_epoch_of_mini_batches_is_an_epoch(persistent):
    V = images()  # 23 images: mini-batches of 5, 5, 5, 5 and 3
    whole, parts = (ContrastiveDivergence(V, 4, k=2, batch_size=5, persistent=persistent, seed=9) for _ in range(2))
    expected = [whole.epoch() for _ in range(3)]
    for epoch, n_mini_batches in enumerate((1, 4, 5)):
        for _ in range(n_mini_batches):
            assert parts.n_epochs == epoch
            assert not np.array_equal(parts.mini_batch().W, expected[epoch].W) or n_mini_batches == 5
            parts = pickle.loads(pickle.dumps(parts))  # where it stands in the epoch is part of the trainer
        trained = parts.epoch() if n_mini_batches < 5 else parts.rbm
        assert parts.n_epochs == epoch + 1
        for ours, theirs in zip(trained, expected[epoch], strict=True):
            np.testing.assert_array_equal(ours, theirs)


def test_a_mini_batch_is_of_the_images_that_the_epoch_begins_with():
    V = images()
    order = np.random.default_rng(9)
    order.normal(size=(6, 4))
    first = order.permutation(len(V))[:5]
    trained = ContrastiveDivergence(V, 4, batch_size=5, weight_decay=0, seed=9).mini_batch()
    others = np.ones(len(V), bool)
    others[first] = False
    V[others] = 0.5  # images that it has not seen
    again = ContrastiveDivergence(V, 4, batch_size=5, weight_decay=0, seed=9).mini_batch()
    for ours, theirs in zip(trained, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_uniform_initial_weights():
    # 40,000 uniforms: their largest misses the limit by more than 1 % of it with probability exp(-200)
    start = ContrastiveDivergence(images(3, 200), 200, initial_weights="uniform", weight_scale=0.25, seed=0).rbm
    assert 0.99 * 0.25 < abs(start.W).max() <= 0.25
    assert start.W.std() == pytest.approx(0.25 / np.sqrt(3), rel=0.02)
    assert abs(start.W.mean()) < 5 * 0.25 / np.sqrt(3) / 200
    np.testing.assert_array_equal(start.W, np.random.default_rng(0).uniform(-0.25, 0.25, (200, 200)))
    assert not start.b.any()
    assert not start.c.any()


def test_start():
    # The sample std of 40,000 normals has a standard error of 0.35 %: within 2 % but once in 10^8 runs.
    start = ContrastiveDivergence(images(3, 200), 200, weight_scale=0.25, seed=0).rbm
    assert start.W.std() == pytest.approx(0.25, rel=0.02)
    assert abs(start.W.mean()) < 5 * 0.25 / 200
    assert not start.b.any()
    assert not start.c.any()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="too many chains to loop over uncompiled")
def test_long_chains_reach_the_likelihood_gradient():
    # After many Gibbs steps h is a sample of the model. One update with rate 1 and no momentum is the gradient: for b
    # that of the log-likelihood, exactly; for W and c the model's term is the mean of functions of h, summed here over
    # all its states. 11 numbers, one batch of 20,000 chains, |z| < 5: fails by chance once in 150,000 runs.
    n, (n_visible, n_hidden) = 20_000, (3, 2)
    V = np.repeat([[1.0, 0, 1], [0, 1, 0.5]], n // 2, axis=0)
    largest = {}
    for k in (1, 40):
        trainer = ContrastiveDivergence(
            V, n_hidden, k=k, batch_size=n, learning_rate=1, momentum=0, weight_decay=0, weight_scale=2.0, seed=4
        )
        W, b, c = start = trainer.rbm
        gradient = [after - before for after, before in zip(trainer.epoch(), start, strict=True)]
        v, h = bits(n_visible), bits(n_hidden)
        joint = np.exp(v @ W @ h.T + (v @ b)[:, None] + (h @ c)[None])
        joint /= joint.sum()
        p_h, v_hat, p_data = joint.sum(axis=0), expit(b + h @ W.T), expit(c + V @ W)
        np.testing.assert_allclose(p_h @ v_hat, joint.sum(axis=1) @ v, atol=1e-14)  # b's term is the exact one
        p_hat = expit(c + v_hat @ W)
        terms = (
            ((V[:, :, None] * p_data[:, None]).mean(axis=0), v_hat[:, :, None] * p_hat[:, None]),
            (V.mean(axis=0), v_hat),
            (p_data.mean(axis=0), p_hat),
        )
        z = []
        for ours, (data, model) in zip(gradient, terms, strict=True):
            mean = np.tensordot(p_h, model, 1)
            std = np.sqrt(np.tensordot(p_h, model**2, 1) - mean**2)
            z.extend(np.ravel((ours - (data - mean)) / std) * np.sqrt(n))
        largest[k] = np.abs(z).max()
    assert largest[40] < 5
    assert largest[1] > 20  # the data are far from the model: one step does not do


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
    assert [e.mean_field for e in history] == [ReconstructionObjective(V, 4)(m.flat()[None])[0] for m in models]
    assert trainer.n_epochs == 3
    assert trainer.fit(0, error_seed=8) == history[-1:]


def test_progress_is_shown_when_asked(capfd):
    ContrastiveDivergence(images(), 4, seed=3).fit(1)
    assert capfd.readouterr().err == ""
    ContrastiveDivergence(images(), 4, seed=3).fit(1, progress=True)
    assert "CD: 100%" in capfd.readouterr().err


def test_rate_zero_leaves_the_parameters_alone():
    trainer = ContrastiveDivergence(images(), 4, learning_rate=0, seed=0)
    start = trainer.rbm
    np.testing.assert_array_equal(trainer.epoch().flat(), start.flat())


def test_decay_alone_shrinks_weights_only():
    # Black images and biases so low that no unit is ever on: only the decay is left.
    trainer = ContrastiveDivergence(
        np.zeros((10, 5)), 3, batch_size=10, learning_rate=0.5, momentum=0, weight_decay=0.2, seed=0
    )
    trainer._rbm.b[:] = -200
    trainer._rbm.c[:] = -200
    start = trainer.rbm
    trained = trainer.epoch()
    np.testing.assert_allclose(trained.W, start.W * (1 - 0.5 * 0.2), rtol=1e-14)
    np.testing.assert_array_equal(trained.b, start.b)
    np.testing.assert_array_equal(trained.c, start.c)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_pickled_trainer_continues_bit_for_bit(dtype):
    whole = ContrastiveDivergence(images(57, dtype=dtype), 4, k=2, batch_size=10, momentum_epochs=2, seed=5)
    models = [whole.epoch() for _ in range(5)]
    resumed = ContrastiveDivergence(images(57, dtype=dtype), 4, k=2, batch_size=10, momentum_epochs=2, seed=5)
    for epoch, model in enumerate(models):
        assert resumed.n_epochs == epoch
        resumed = pickle.loads(pickle.dumps(resumed))
        branch = copy.deepcopy(resumed)
        for theirs in (resumed.epoch(), branch.epoch()):
            np.testing.assert_array_equal(theirs.flat(), model.flat())


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
    wide, narrow = ContrastiveDivergence(V, 4, seed=1), ContrastiveDivergence(V, 4, seed=1, dtype="float32")
    assert ContrastiveDivergence(V.astype(np.float32), 4).rbm.W.dtype == np.float32
    assert ContrastiveDivergence((V > 0.5), 4).rbm.W.dtype == np.float64
    np.testing.assert_allclose(narrow.rbm.W, wide.rbm.W, rtol=1e-6)
    trained = narrow.epoch()
    assert {p.dtype for p in trained} == {np.dtype("float32")}
    assert trained.flat().size == n_parameters(6, 4)


@pytest.mark.parametrize(
    ("V", "settings", "message"),
    [
        (np.empty((0, 3)), {}, "V must hold at least one image"),
        (np.full((2, 3), 1.5), {}, r"V must lie in \[0, 1\]"),
        (np.zeros(3), {}, r"V must have shape \(any, any\), got \(3,\)"),
        (np.zeros((2, 3)), {"n_hidden": 0}, "n_hidden must be an integer >= 1, got 0"),
        (np.zeros((2, 3)), {"k": 0}, "k must be an integer >= 1, got 0"),
        (np.zeros((2, 3)), {"batch_size": 0}, "batch_size must be an integer >= 1, got 0"),
        (np.zeros((2, 3)), {"learning_rate": -1}, "learning_rate must be a finite number >= 0, got -1"),
        (np.zeros((2, 3)), {"momentum": 1}, "momentum must be a finite number >= 0 and < 1, got 1"),
        (np.zeros((2, 3)), {"final_momentum": 1}, "final_momentum must be a finite number >= 0 and < 1, got 1"),
        (np.zeros((2, 3)), {"momentum_epochs": -1}, "momentum_epochs must be an integer >= 0, got -1"),
        (np.zeros((2, 3)), {"weight_decay": -1}, "weight_decay must be a finite number >= 0, got -1"),
        (np.zeros((2, 3)), {"initial_weights": "zero"}, "initial_weights must be one of 'normal', 'uniform'"),
        (np.zeros((2, 3)), {"weight_scale": -1}, "weight_scale must be a finite number >= 0, got -1"),
        (np.zeros((2, 3)), {"seed": -1}, "seed must be an integer >= 0, got -1"),
        (np.zeros((2, 3)), {"dtype": "int8"}, "dtype must be one of 'float32', 'float64', got 'int8'"),
    ],
)
def test_checks(V, settings, message):
    with pytest.raises(ValueError, match=message):
        ContrastiveDivergence(V, **{"n_hidden": 2, **settings})


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_new_trainer_goes_on_from_the_state_of_another(persistent, dtype):
    V = np.random.default_rng(0).random((40, 9)).astype(dtype)
    settings = {"k": 2, "batch_size": 16, "momentum_epochs": 1, "persistent": persistent, "seed": 3}
    trainer = ContrastiveDivergence(V, 5, **settings)
    for work in (trainer.epoch, trainer.mini_batch, trainer.mini_batch):
        work()
        twin = ContrastiveDivergence(V, 5, **settings | {"seed": 8})
        twin.state = trainer.state
        assert twin.n_epochs == trainer.n_epochs == 1
        undisturbed = copy.deepcopy(trainer)
        for _ in range(3):
            assert all(np.array_equal(a, b) for a, b in zip(twin.epoch(), undisturbed.epoch(), strict=True))


def test_a_state_is_a_copy_and_must_fit():
    V = np.random.default_rng(0).random((40, 9))
    trainer = ContrastiveDivergence(V, 5, seed=3)
    state = trainer.state
    before = {name: array.copy() for name, array in state.items()}
    trainer.epoch()
    trainer.state = state
    trainer.epoch()
    assert all(np.array_equal(state[name], before[name]) for name in state)
    for other in (ContrastiveDivergence(V, 6, seed=3), ContrastiveDivergence(V.astype("float32"), 5, seed=3)):
        with pytest.raises(ValueError, match=r"state must have W of shape \(9, \d\) and dtype float\d\d, got"):
            other.state = state


def test_the_state_of_a_trainer_on_more_images_is_refused():
    V = np.random.default_rng(0).random((40, 9))
    trainer = ContrastiveDivergence(V, 5, batch_size=10, seed=3)
    trainer.mini_batch()
    other = ContrastiveDivergence(V[:20], 5, batch_size=10, seed=3)
    before = other.state
    with pytest.raises(ValueError, match="state must have left of numbers of the 20 images, got"):
        other.state = trainer.state
    assert all(np.array_equal(before[name], value) for name, value in other.state.items())
