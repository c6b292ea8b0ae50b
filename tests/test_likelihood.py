from typing import Any

import numpy as np
import pytest

from leamvd.networks import likelihood
from leamvd.networks.rbm import RBMParameters


def random_rbm(n_visible: int, n_hidden: int, scale: float, seed: int = 0) -> RBMParameters:
    rng = np.random.default_rng(seed)
    return RBMParameters(
        *(rng.normal(0, scale, shape) for shape in ((n_visible, n_hidden), n_visible, n_hidden))
    )


def bits(m: int, n: int) -> np.ndarray:
    return (np.random.default_rng(7).random((m, n)) < 0.3).astype(float)


@pytest.mark.parametrize(
    ("n_visible", "n_hidden", "scale"), [(30, 12, 0.6), (8, 20, 1.0), (40, 9, 0.3)]
)
def test_the_estimate_is_the_enumerated_one_within_its_error(
    n_visible: int, n_hidden: int, scale: float
) -> None:
    rbm, V = random_rbm(n_visible, n_hidden, scale), bits(50, n_visible)
    base = likelihood.base_rates(V)
    rng = np.random.default_rng(1)
    log_w = likelihood.log_weights(rbm, base, n_chains=200, n_temperatures=300, rng=rng)
    found = likelihood.estimate(rbm, V, log_w)
    assert found.error < 0.05
    assert abs(found.log_z - rbm.log_partition()) < 4 * found.error
    assert found.log_likelihood + found.log_z == pytest.approx(
        -rbm.free_energy(V).mean(), rel=1e-12
    )


def test_weights_have_the_partition_functions_ratio_as_their_mean_however_few_temperatures() -> (
    None
):
    """Of the estimate of Z itself, and not of its logarithm: 4,000 estimates of two chains and
    three temperatures.
    """
    rbm = random_rbm(5, 4, 2.0)
    rng = np.random.default_rng(2)
    narrow = RBMParameters(*(p.astype(np.float32) for p in rbm))
    rbm = RBMParameters(*(p.astype(np.float64) for p in narrow))
    log_w = likelihood.log_weights(narrow, np.zeros(5), n_chains=100_000, n_temperatures=2, rng=rng)
    assert log_w.dtype == np.float64
    ratios = np.exp(log_w - rbm.log_partition())
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))
    assert ratios.std() > 0.1, "with so few temperatures single weights must scatter"
    found = likelihood.estimate(rbm, bits(3, 5), log_w)
    assert found.log_z == pytest.approx(np.log(np.exp(log_w).mean()), rel=1e-12)
    assert found.error == pytest.approx(
        ratios.std(ddof=1) / ratios.mean() / np.sqrt(len(ratios)), rel=1e-9
    )


def test_the_standard_error_is_what_repetitions_scatter_by() -> None:
    rbm, V, base = random_rbm(12, 6, 0.8), bits(5, 12), np.zeros(12)
    rng = np.random.default_rng(3)
    found = [
        likelihood.estimate(
            rbm, V, likelihood.log_weights(rbm, base, n_chains=50, n_temperatures=30, rng=rng)
        )
        for _ in range(80)
    ]
    scatter = np.std([estimate.log_z for estimate in found], ddof=1)
    assert np.mean([estimate.error for estimate in found]) == pytest.approx(scatter, rel=0.3)


def test_independent_pixels_are_exact_with_one_temperature() -> None:
    biases = np.array([0.5, -2.0, 1.0])
    rbm = likelihood.independent(biases, n_hidden=4)
    log_w = likelihood.log_weights(
        rbm, biases, n_chains=3, n_temperatures=1, rng=np.random.default_rng(5)
    )
    np.testing.assert_allclose(log_w, rbm.log_partition(), rtol=1e-13)
    V = np.array([[1.0, 0.0, 1.0]])
    p = 1 / (1 + np.exp(-biases))
    by_hand = np.log(p[0] * (1 - p[1]) * p[2])
    assert rbm.log_likelihood(V) == pytest.approx(by_hand, rel=1e-13)
    assert likelihood.estimate(rbm, V, log_w).log_likelihood == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("wrong", [0.5, -1.0, 2.0])
def test_only_bits_have_a_likelihood(wrong: float) -> None:
    rbm, V = random_rbm(3, 2, 0.5), np.array([[1.0, 0, 1], [0, 0, 1]])
    log_w = np.zeros(4)
    assert rbm.log_likelihood(V == 1) == rbm.log_likelihood(V)
    assert likelihood.estimate(rbm, V == 1, log_w) == likelihood.estimate(rbm, V, log_w)
    V[1, 2] = wrong
    for call in (rbm.log_likelihood, lambda V: likelihood.estimate(rbm, V, log_w)):
        with pytest.raises(ValueError, match=rf"V must be 0 or 1, got {wrong} at index \(1, 2\)"):
            call(V)
    assert np.isfinite(likelihood.base_rates(np.abs(V) / 2)).all()


@pytest.mark.parametrize(
    "rng", [0, None, np.random.RandomState(0)], ids=["number", "none", "legacy"]
)
def test_what_draws_is_a_generator(rng: Any) -> None:
    rbm, told = random_rbm(3, 2, 0.5), r"rng must be a numpy.random.Generator, got"
    calls: list[Any] = [
        lambda: likelihood.log_weights(rbm, np.zeros(3), n_chains=2, n_temperatures=1, rng=rng),
        lambda: rbm.sample_hidden(np.zeros((1, 3)), rng),
        lambda: rbm.sample_visible(np.zeros((1, 2)), rng),
    ]
    for call in calls:
        with pytest.raises(TypeError, match=told):
            call()


def test_base_rates_are_the_means_with_one_image_on_and_one_off() -> None:
    V = np.array([[1, 0, 0.5], [1, 0, 0.25], [1, 0, 0]])
    p = 1 / (1 + np.exp(-likelihood.base_rates(V)))
    np.testing.assert_allclose(p, [4 / 5, 1 / 5, 1.75 / 5], rtol=1e-13)
