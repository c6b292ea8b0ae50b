import tracemalloc
from itertools import product

import numba
import numpy as np
import pytest
from scipy.special import expit, logsumexp

from leamvd._support.threads import limited_to
from leamvd.networks import objective, rbm
from leamvd.networks.logistic import sigmoid, sigmoid_columns
from leamvd.networks.objective import (
    ReconstructionObjective,
    constant_baseline,
    reconstruction_errors,
)
from leamvd.networks.rbm import RBMParameters, n_parameters


def bits(n):
    return np.array(list(product([0.0, 1.0], repeat=n)))


def small(n_visible=4, n_hidden=3, scale=1.5, seed=1):
    rng = np.random.default_rng(seed)
    return RBMParameters(
        *(rng.normal(0, scale, shape) for shape in ((n_visible, n_hidden), n_visible, n_hidden))
    )


def log_weights(model):
    """Minus the energy of every state (v, h), term by term."""
    W, b, c = model
    return np.array(
        [
            [
                sum(v[i] * W[i, j] * h[j] for i in range(len(b)) for j in range(len(c)))
                + sum(b[i] * v[i] for i in range(len(b)))
                + sum(c[j] * h[j] for j in range(len(c)))
                for h in bits(len(c))
            ]
            for v in bits(len(b))
        ]
    )


def joint(model):
    log = log_weights(model)
    return np.exp(log - logsumexp(log))


def direct_error(model, V):
    W, b, c = (p.astype(np.float64) for p in model)
    return ((V - expit(b + expit(c + V @ W) @ W.T)) ** 2).sum()


def images(m=50, n=6, seed=2, dtype=np.float64):
    return np.random.default_rng(seed).random((m, n)).astype(dtype)


def test_flat_order_and_views():
    theta = np.arange(2 * 3 + 2 + 3, dtype=np.float32)
    model = RBMParameters.from_flat(theta, 2, 3)
    np.testing.assert_array_equal(model.W, [[0, 1, 2], [3, 4, 5]])
    np.testing.assert_array_equal(model.b, [6, 7])
    np.testing.assert_array_equal(model.c, [8, 9, 10])
    assert all(np.shares_memory(p, theta) and p.dtype == np.float32 for p in model)
    np.testing.assert_array_equal(model.flat(), theta)
    assert not np.shares_memory(model.flat(), theta)
    transposed = RBMParameters(model.W.T, model.c, model.b)  # not contiguous
    np.testing.assert_array_equal(RBMParameters.from_flat(transposed.flat(), 3, 2).W, model.W.T)


@pytest.mark.parametrize(("v", "h"), [(4, 3), (2, 5), (1, 1)])
def test_conditionals_by_enumeration(v, h):
    model = small(v, h)
    p = joint(model)
    np.testing.assert_allclose(
        model.hidden_given_visible(bits(v)), p @ bits(h) / p.sum(1, keepdims=True), rtol=1e-12
    )
    np.testing.assert_allclose(
        model.visible_given_hidden(bits(h)), p.T @ bits(v) / p.sum(0)[:, None], rtol=1e-12
    )


@pytest.mark.parametrize(("v", "h"), [(4, 3), (2, 5), (1, 1)])
def test_likelihood_by_enumeration(v, h):
    model = small(v, h)
    log = log_weights(model)
    np.testing.assert_allclose(model.free_energy(bits(v)), -logsumexp(log, axis=1), rtol=1e-12)
    assert model.log_partition() == pytest.approx(logsumexp(log), rel=1e-12)
    each = [model.log_likelihood(state[None]) for state in bits(v)]
    np.testing.assert_allclose(np.exp(each), joint(model).sum(axis=1), rtol=1e-12)
    assert sum(np.exp(each)) == pytest.approx(1, abs=1e-12)
    assert model.log_likelihood(bits(v)) == pytest.approx(np.mean(each), rel=1e-12)


def test_partition_of_independent_units(monkeypatch):
    monkeypatch.setattr(rbm, "_STATES_AT_ONCE", 48)  # several unequal pieces
    b, c = np.linspace(-2, 3, 8), np.linspace(-1, 1, 30)
    exact = np.logaddexp(0, b).sum() + np.logaddexp(0, c).sum()
    assert RBMParameters(np.zeros((8, 30)), b, c).log_partition() == pytest.approx(exact, rel=1e-13)
    assert RBMParameters(np.zeros((30, 8)), c, b).log_partition() == pytest.approx(exact, rel=1e-13)


def test_as_many_states_are_enumerated_as_take_seconds(monkeypatch):
    def flat(v, h):
        return RBMParameters(np.zeros((v, h)), np.zeros(v), np.zeros(h))

    for shape in ((21, 21), (30, 21)):
        with pytest.raises(ValueError, match="at most 20 units, got 21"):
            flat(*shape).log_partition()
    monkeypatch.setattr(rbm, "_LARGEST_ENUMERATION", 4)
    for v, h in ((4, 4), (4, 9), (9, 4)):
        assert flat(v, h).log_partition() == pytest.approx((v + h) * np.log(2))
    with pytest.raises(ValueError, match="at most 4 units, got 5"):
        flat(5, 5).log_partition()


def test_likelihood_in_float64_whatever_the_parameters():
    model = RBMParameters(*(p.astype(np.float32) for p in small()))
    wide = RBMParameters(*(p.astype(np.float64) for p in model))
    assert model.log_likelihood(bits(4)) == wide.log_likelihood(bits(4))


def test_samples_follow_the_conditionals():
    # 40,000 draws each for 3 + 4 frequencies: |z| < 5 fails by chance once in 250,000 runs at most.
    model, draws = small(), 40_000
    rng = np.random.default_rng(5)
    for sample, probability, given in (
        (model.sample_hidden, model.hidden_given_visible, [[1.0, 0, 1, 1]]),
        (model.sample_visible, model.visible_given_hidden, [[0.0, 1, 1]]),
    ):
        drawn, p = sample(np.repeat(given, draws, axis=0), rng), probability(given)[0]
        assert set(np.unique(drawn)) == {0.0, 1.0}
        assert (np.abs(drawn.mean(0) - p) < 5 * np.sqrt(p * (1 - p) / draws)).all()


@pytest.mark.parametrize(
    ("dtype", "limit", "relative"), [(np.float32, 87, 4e-7), (np.float64, 708, 1e-15)]
)
def test_sigmoid(dtype, limit, relative):
    x = np.concatenate([np.linspace(-limit, limit, 4001), np.linspace(-1, 1, 101)]).astype(dtype)
    A, exact = x[None].copy(), expit(x.astype(np.float64))
    sigmoid(A, np.zeros(1, dtype))
    np.testing.assert_allclose(A[0], exact, rtol=relative)
    assert np.abs(A[0] - exact).max() <= np.finfo(dtype).eps
    extreme = np.array([[1e30, np.inf, 0, -0.0, -1e30, -np.inf, np.nan]], dtype)
    sigmoid(extreme, np.zeros(1, dtype))
    np.testing.assert_array_equal(extreme[0, :4], [1, 1, 0.5, 0.5])
    assert (extreme[0, 4:6] >= 0).all()
    assert (extreme[0, 4:6] < 1e-37).all()
    assert np.isnan(extreme[0, 6])


def test_sigmoid_of_some_columns_adds_the_bias_of_the_column():
    rng = np.random.default_rng(0)
    A, bias = rng.normal(size=(3, 37)), rng.normal(size=37)
    given = A.copy()
    sigmoid_columns(A, bias, 5, 31)
    np.testing.assert_allclose(A[:, 5:31], expit(given + bias)[:, 5:31], rtol=1e-15)
    np.testing.assert_array_equal(
        np.delete(A, range(5, 31), axis=1), np.delete(given, range(5, 31), axis=1)
    )


@pytest.mark.parametrize(
    ("v", "h", "size"),
    [(49, 30, 512), (30, 30, 1024), (30, 120, 256), (2, 1, 1024), (88, 88, 128), (89, 89, 1024)],
)
def test_small_layers_have_blocks_whose_products_need_no_packing(v, h, size):
    objective = ReconstructionObjective(np.zeros((3000, v), np.float32), h)
    assert [len(block.T) for block in objective._blocks[:-1]] == [size] * ((3000 - 1) // size)
    assert sum(len(block.T) for block in objective._blocks) == 3000
    assert size == 1024 or (size * v * h <= 1_000_000 < 2 * size * v * h)


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 2e-6)])
@pytest.mark.parametrize("block_size", [1, 7, 50, 1000])
def test_objective_against_direct_expression(dtype, rtol, block_size, monkeypatch):
    monkeypatch.setattr(objective, "_block_size", lambda *_: block_size)
    V = images(dtype=dtype)
    X = np.random.default_rng(3).normal(size=(5, n_parameters(6, 4))).astype(dtype)
    error = ReconstructionObjective(V, 4)
    assert error.n_var == X.shape[1]
    F = error(X)
    assert F.dtype == np.float64
    assert F.shape == (5,)
    wide = V.astype(np.float64)
    np.testing.assert_allclose(
        F, [direct_error(RBMParameters.from_flat(x, 6, 4), wide) for x in X], rtol=rtol
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_objective_is_the_same_bits_for_any_threads_and_company(dtype, monkeypatch):
    monkeypatch.setattr(objective, "_block_size", lambda *_: 64)
    V = images(301, 20, dtype=dtype)
    X = np.random.default_rng(3).normal(size=(7, n_parameters(20, 9))).astype(dtype)
    error = ReconstructionObjective(V, 9)
    F = error(X)
    for n_threads in (1, 2, 5, 9):
        with limited_to(n_threads):
            np.testing.assert_array_equal(F, error(X))
    np.testing.assert_array_equal(F, np.concatenate([error(x[None]) for x in X]))


def test_objective_converts_to_the_images_dtype_and_leaves_inputs_alone():
    V, X = images(dtype=np.float32), np.random.default_rng(3).normal(size=(2, n_parameters(6, 4)))
    before = V.copy(), X.copy()
    F = ReconstructionObjective(V, 4)(X)
    np.testing.assert_array_equal(F, ReconstructionObjective(V, 4)(X.astype(np.float32)))
    np.testing.assert_array_equal(V, before[0])
    np.testing.assert_array_equal(X, before[1])
    pixels = np.array([[0, 1, 1, 0, 1, 0]], np.uint8)
    assert ReconstructionObjective(pixels, 4).dtype == np.float64
    assert ReconstructionObjective(V, 4)(np.empty((0, X.shape[1]))).shape == (0,)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e3, 1e30])
def test_huge_weights_saturate(dtype, size):
    V = images(m=9, dtype=dtype)
    X = (size * np.random.default_rng(3).choice([-1.0, 1.0], (4, n_parameters(6, 4)))).astype(dtype)
    F = ReconstructionObjective(V, 4)(X)
    exact = [direct_error(RBMParameters.from_flat(x, 6, 4), V.astype(np.float64)) for x in X]
    np.testing.assert_allclose(F, exact, rtol=1e-5)


def test_overflow_is_never_nan_and_silent():
    # Sums of 3e38 overflow float32; one long enough is split, and its parts may meet as inf - inf.
    W = np.repeat(np.float32([3e38, -3e38]), 1024)[:, None]
    model = RBMParameters(W, np.zeros(2048, np.float32), np.zeros(1, np.float32))
    F = ReconstructionObjective(np.ones((3, 2048), np.float32), 1)(
        np.stack([model.flat(), 0 * model.flat()])
    )
    assert not np.isnan(F[0])
    assert F[1] == 3 * 2048 / 4


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="too many images to loop over uncompiled")
def test_memory_is_bounded_by_blocks():
    # At 60,000 x 784 x 500, float32: images once more 188 MB, individuals 38 MB and scratch 5 MB a
    # thread. Here the activations of one individual alone would be 8 MB, those of the population 64
    # MB.
    m, v, h, population = 20_000, 16, 84, 8
    V, X = images(m, v, dtype=np.float32), np.zeros((population, n_parameters(v, h)), np.float32)
    objective = ReconstructionObjective(V, h)
    with limited_to(2):
        tracemalloc.start()
        objective(X)
        reconstruction_errors(RBMParameters.from_flat(X[0], v, h), V, seed=0)
        peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e6


def test_error_and_gradient_are_those_of_the_direct_expression():
    V, theta, h = images(), small(6, 4).flat(), 1e-5 * np.eye(n_parameters(6, 4))
    error, gradient = objective.error_and_gradient(theta, V, 4)
    at, after, before = (
        [direct_error(RBMParameters.from_flat(x, 6, 4), V) for x in X]
        for X in ([theta], theta + h, theta - h)
    )
    assert error == pytest.approx(at[0], rel=1e-12)
    np.testing.assert_allclose(gradient, np.subtract(after, before) / 2e-5, rtol=1e-6, atol=1e-7)


def test_constant_baseline():
    V = images(2500, 5)
    mean = V.mean(axis=0)
    assert constant_baseline(V) == pytest.approx(sum(((v - mean) ** 2).sum() for v in V), rel=1e-12)
    narrow = V.astype(np.float32)  # its mean is not rounded to its own precision
    assert constant_baseline(narrow) == pytest.approx(
        constant_baseline(narrow.astype(np.float64)), rel=1e-13
    )
    assert constant_baseline(np.full((4, 3), 0.25)) == 0


def test_errors_agree_with_the_objective_to_the_bit():
    V, model = images(2500, 6), small(6, 4)
    errors = reconstruction_errors(model, V, seed=3)
    assert errors.mean_field == ReconstructionObjective(V, 4)(model.flat()[None])[0]
    assert errors.mean_field_ratio == errors.mean_field / constant_baseline(V)
    assert errors.sampled_ratio == errors.sampled / constant_baseline(V)
    for n_threads in (1, 2):
        with limited_to(n_threads):
            assert reconstruction_errors(model, V, seed=3) == errors
    equal = reconstruction_errors(model, V[:1], seed=3)
    assert np.isnan([equal.mean_field_ratio, equal.sampled_ratio]).all(), (
        "a constant predicts one image"
    )


def test_sampled_error_has_its_expectation():
    # All states of the hidden layer give each image's mean and variance; |z| < 5 fails once in 1.7
    # million runs.
    V, model = images(3000, 6), small(6, 3)
    P, H = model.hidden_given_visible(V), bits(3)
    weight = np.prod(np.where(H[None] == 1, P[:, None], 1 - P[:, None]), axis=2)
    error = ((V[:, None] - model.visible_given_hidden(H)[None]) ** 2).sum(axis=2)
    mean = (weight * error).sum(1)
    variance = (weight * error**2).sum(1) - mean**2
    for dtype in (np.float64, np.float32):
        sampled = reconstruction_errors(model, V.astype(dtype), seed=11).sampled
        assert abs(sampled - mean.sum()) < 5 * np.sqrt(variance.sum())
    # so the test can tell them apart
    assert abs(direct_error(model, V) - mean.sum()) > 20 * np.sqrt(variance.sum())


def test_of_test_images_the_ratios_compare_with_the_training_mean():
    V, T, model = images(2500, 6), images(2500, 6, seed=5), small(6, 4)
    mean = V.mean(axis=0)
    errors = reconstruction_errors(model, T, seed=3, train_mean=mean)
    assert errors.mean_field == pytest.approx(direct_error(model, T), rel=1e-12)
    constant = ((T - mean) ** 2).sum()
    assert constant > constant_baseline(T)
    assert constant_baseline(T, mean) == pytest.approx(constant, rel=1e-12)
    assert errors.mean_field_ratio == pytest.approx(errors.mean_field / constant, rel=1e-12)
    assert errors.sampled_ratio == pytest.approx(errors.sampled / constant, rel=1e-12)


def test_bits_are_drawn_from_a_child_of_the_seed_for_each_purpose_and_block(monkeypatch):
    drawn = []
    monkeypatch.setattr(
        objective, "sample_bits", lambda P, rng: drawn.append(rng.bit_generator.state) or P
    )
    V, model = images(2500, 6), small(6, 4)
    with limited_to(1):
        reconstruction_errors(model, V, seed=3)
        reconstruction_errors(model, V, seed=3, train_mean=V.mean(axis=0))
    children = (np.random.SeedSequence(3, spawn_key=key) for key in product((4, 5), range(3)))
    assert drawn == [np.random.PCG64(child).state for child in children]


def test_every_method_checks_the_parameters():
    V, H, rng = images(5, 4), images(5, 3), np.random.default_rng(0)
    W, b, c = small()
    wrong = RBMParameters(W, b, c.astype(np.float32))
    for call in (
        lambda: wrong.hidden_given_visible(V),
        lambda: wrong.visible_given_hidden(H),
        lambda: wrong.sample_hidden(V, rng),
        lambda: wrong.sample_visible(H, rng),
        lambda: wrong.reconstruct(V),
        lambda: wrong.free_energy(V),
        lambda: wrong.log_partition(),
        lambda: wrong.log_likelihood(V),
        lambda: reconstruction_errors(wrong, V, seed=0),
    ):
        with pytest.raises(TypeError, match="c must be float64 as W is, got float32"):
            call()
    RBMParameters(W.T, c, b).check()  # not contiguous
