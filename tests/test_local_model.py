"""Slope and curvature from pairs, and the theory of weighted recombination, against what is known
exactly.
"""

import numpy as np
import pytest
from scipy import integrate, stats

from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import ReconstructionObjective
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers import local_model, random_streams, selection
from leamvd_paper.data.images import load

N = 400
RNG = np.random.default_rng(5)
G, H = RNG.standard_normal(N), RNG.uniform(0.5, 2.0, N)


def quadratic(X: np.ndarray) -> np.ndarray:
    return 7 + X @ G + (X**2) @ H / 2


# ---- what is measured


@pytest.mark.parametrize("sigma", [1e-3, 1.0])
def test_a_quadratic_is_measured_as_it_is(sigma: float) -> None:
    model = local_model.measure(quadratic, np.zeros(N), sigma=sigma, n_pairs=3000, seed=1)
    assert model.value == 7
    of_slope = stats.chi(3000, scale=np.linalg.norm(G) / np.sqrt(3000))
    scatter = np.sqrt(2 * (H**2).sum())  # of z'Hz: its variance is 2 tr(H^2)
    assert min(of_slope.cdf(model.slope), of_slope.sf(model.slope)) > 1e-4
    assert abs(model.curvature - H.sum()) < 4 * scatter / np.sqrt(3000)
    assert model.scatter == pytest.approx(scatter, rel=0.1)


def test_a_value_that_is_equal_is_not_lower() -> None:
    half = local_model.measure(lambda X: np.minimum(X[:, 0], 0), np.zeros(3), sigma=0.5, n_pairs=7)
    assert half.lower == 0.5, "of each pair one is as high as the start"


def test_one_seed_has_the_same_directions_at_every_step_size() -> None:
    a, b = (
        local_model.measure(quadratic, np.zeros(N), sigma=sigma, n_pairs=5, seed=3)
        for sigma in (0.01, 1.0)
    )
    assert a.slope == pytest.approx(b.slope, rel=1e-6)
    assert a.curvature == pytest.approx(b.curvature, rel=1e-6)
    assert (
        a.slope != local_model.measure(quadratic, np.zeros(N), sigma=0.01, n_pairs=5, seed=4).slope
    )


def test_an_objective_is_asked_as_often_as_is_said() -> None:
    asked: list[np.ndarray] = []
    x0 = np.ones(3, np.float32)

    def objective(X: np.ndarray) -> np.ndarray:
        return X.sum(axis=1) + 3 * ((X - 1) ** 2).sum(axis=1)

    model = local_model.measure(
        lambda X: asked.append(X) or objective(X), x0, sigma=0.1, n_pairs=30
    )
    assert model.lower == np.mean(objective(np.concatenate(asked[1:])) < 3)
    assert sum(map(len, asked)) == 61
    assert {X.dtype for X in asked} == {np.dtype(np.float32)}
    assert max(map(len, asked)) == local_model.BATCH
    even = []
    for X in asked[1:]:
        above, below = np.split(objective(X.astype(np.float64)), 2)
        even.append((above + below) / 2 - 3)
    quadratics = 2 * np.concatenate(even) / 0.1**2
    assert model.scatter == pytest.approx(quadratics.std(ddof=1), rel=1e-3)
    pairs = np.concatenate([np.split(X, 2)[0] + np.split(X, 2)[1] for X in asked[1:]])
    np.testing.assert_allclose(pairs, 2, rtol=1e-6)


def test_an_rbm_is_measured_as_its_derivatives_say() -> None:
    """The slope by differences in every variable, the curvature by second ones: a small layer of
    the digits.
    """
    V = load("digits", side=7, n_train=100, dtype="float64").train
    objective = ReconstructionObjective(V, 4)
    x0 = ContrastiveDivergence(V, 4, seed=1).epoch().flat()
    steps = 1e-3 * np.eye(len(x0))
    above, below, here = objective(x0 + steps), objective(x0 - steps), objective(x0[None])[0]
    slope, curvature = (
        np.linalg.norm((above - below) / 2e-3),
        ((above + below - 2 * here) / 1e-6).sum(),
    )
    H = (
        np.array(
            [
                objective(x0 + step + steps) - one - above
                for step, one in zip(steps, above, strict=True)
            ]
        )
        + here
    )
    model = local_model.measure(objective, x0, sigma=1e-3, n_pairs=2000)
    assert abs(model.slope - slope) < 4 * slope / np.sqrt(2 * 2000)
    assert abs(model.curvature - curvature) < 4 * np.sqrt(2 * ((H / 1e-6) ** 2).sum() / 2000), (
        "2 tr(H^2) of a pair"
    )
    assert RBMParameters.from_flat(x0, V.shape[1], 4).W.shape == (49, 4)


# ---- what theory makes of it


@pytest.mark.parametrize("size", [1, 2, 3, 24])
def test_order_statistics_are_those_of_normal_numbers(size: int) -> None:
    found = local_model.order_statistics(size)
    for rank in range(1, size + 1):
        density = stats.beta(rank, size - rank + 1).pdf
        exact = integrate.quad(lambda u, density=density: stats.norm.ppf(u) * density(u), 0, 1)[0]
        assert found[rank - 1] == pytest.approx(exact, abs=1e-7)
    assert found.sum() == pytest.approx(0, abs=1e-12)


def test_the_numbers_of_the_papers_population() -> None:
    normal = -local_model.order_statistics(24)
    assert local_model.quality(selection.fractional_tournament(24, 1.5)) == pytest.approx(
        7.143, abs=1e-3
    )
    assert local_model.quality(np.maximum(normal, 0)) == pytest.approx(10.811, abs=1e-3), (
        "the best positive weights"
    )
    assert local_model.quality(normal) == pytest.approx((normal**2).sum()), "the best of any"
    assert local_model.quality(normal) == pytest.approx(21.623, abs=1e-3)
    for _ in range(50):
        assert local_model.quality(RNG.standard_normal(24)) <= local_model.quality(normal)


def test_a_generation_gains_at_its_best_step_what_theory_says() -> None:
    n, slope, curvature = 2_000, 3.0, 50.0
    model = local_model.LocalModel(0.1, 10, 0.0, slope, curvature, 0.0, 0.5)
    weights = selection.fractional_tournament(24, 1.5)
    best = -weights @ local_model.order_statistics(24) * slope / (curvature * (weights @ weights))
    rng, gains = np.random.default_rng(2), []
    for _ in range(1500):
        z = rng.standard_normal((24, n), np.float32)
        y = best * (weights @ z[np.argsort(z[:, 0])])
        gains.append(-(slope * y[0] + curvature * (y @ y) / (2 * n)))
    assert np.mean(gains) == pytest.approx(model.gain(local_model.quality(weights)), rel=0.05)


def test_where_there_is_no_curvature_any_step_gains() -> None:
    for curvature in (-1.0, 0.0):
        model = local_model.LocalModel(0.1, 10, 0.0, 1.0, curvature, 1.0, 0.5)
        assert model.step_size(24) == np.inf
        assert model.gain(7.1) == np.inf


def test_half_of_all_generations_gain_at_the_step_size_of_theory() -> None:
    model = local_model.LocalModel(0.1, 10, 0.0, 3.0, 50.0, 0.0, 0.5)
    assert model.step_size(1) == pytest.approx(0)
    assert model.step_size(3) == pytest.approx(2 * 3 / (2 * np.sqrt(np.pi)) * 3.0 / 50.0)
    rng = np.random.default_rng(4)
    step = model.step_size(24)
    # to second order, where z'Hz is its mean
    best = (step * 3.0 * rng.standard_normal((20_000, 24)) + step**2 * 50.0 / 2).min(axis=1)
    assert np.mean(best) == pytest.approx(0, abs=5 * best.std() / np.sqrt(20_000))


@pytest.mark.parametrize("n_pairs", [2, 12, 13])
def test_every_pair_counts_once_whatever_the_batches(n_pairs: int) -> None:
    asked: list[np.ndarray] = []

    def objective(X: np.ndarray) -> np.ndarray:
        asked.append(X)
        return quadratic(X)

    model = local_model.measure(objective, np.ones(N), sigma=0.5, n_pairs=n_pairs)
    here, *batches = asked
    np.testing.assert_array_equal(here, np.ones((1, N)))
    halves = [np.split(X, 2) for X in batches]
    above = quadratic(np.concatenate([first for first, _ in halves]))
    below = quadratic(np.concatenate([second for _, second in halves]))
    assert len(np.unique(above)) == len(above) == n_pairs
    assert model.slope == pytest.approx(np.sqrt(np.mean(((above - below) / 2 / 0.5) ** 2)))
    second = (above + below - 2 * quadratic(here)) / 0.5**2
    assert model.curvature == pytest.approx(second.mean())
    assert model.scatter == pytest.approx(second.std(ddof=1))
    assert model.lower == np.mean(np.concatenate([above, below]) < quadratic(here))
    assert (model.sigma, model.n_pairs) == (0.5, n_pairs)


def test_thirty_pairs_of_seed_zero_are_the_usual_ones() -> None:
    given = {"sigma": 0.1, "n_pairs": 30, "seed": 0}
    whole = local_model.measure(quadratic, np.zeros(N), **given)
    assert local_model.measure(quadratic, np.zeros(N), sigma=0.1) == whole


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_value_that_is_not_finite_is_seen_in_slope_and_curvature(bad: float) -> None:
    def objective(X: np.ndarray) -> np.ndarray:
        return np.where(X[:, 0] > 0.005, bad, quadratic(X))

    model = local_model.measure(objective, np.zeros(N), sigma=0.01, n_pairs=20)
    found = [model.slope, model.curvature, model.scatter]
    assert not np.isfinite(found).any()
    assert 0 < model.lower < 1


@pytest.mark.parametrize(
    ("name", "value"), [("sigma", 0.0), ("sigma", -1.0), ("n_pairs", 1), ("seed", -1)]
)
def test_what_cannot_be_measured_is_refused(name: str, value: float) -> None:
    given = {"sigma": 0.1, name: value}
    with pytest.raises(ValueError, match=name):
        local_model.measure(quadratic, np.zeros(N), **given)


def test_an_empty_population_is_refused_and_weights_have_no_scale() -> None:
    model = local_model.LocalModel(0.1, 10, 0.0, 3.0, 50.0, 0.0, 0.5)
    for ask in (model.step_size, local_model.order_statistics):
        with pytest.raises(ValueError, match="population_size"):
            ask(0)
    weights = np.array([0.7, 0.2, 0.0, 0.1])
    assert local_model.quality(1000 * weights) == pytest.approx(local_model.quality(weights))
    # of four draws: 1.0294 and 0.2970, on both sides of 0
    known = (0.7 * 1.02938 + 0.2 * 0.29701 - 0.1 * 1.02938) ** 2 / 0.54
    assert local_model.quality(weights) == pytest.approx(known, rel=1e-4)


def test_no_other_purpose_has_the_directions_of_pairs() -> None:
    asked: list[np.ndarray] = []

    def objective(X: np.ndarray) -> np.ndarray:
        asked.append(X)
        return quadratic(X)

    local_model.measure(objective, np.zeros(N), sigma=1.0, n_pairs=12, seed=7)
    others = [7]
    for name, purpose in vars(random_streams).items():
        if name.isupper() and isinstance(purpose, int) and name != "PAIRS":
            others.append(random_streams.child(7, purpose))
    assert len(others) > 2
    for other in others:
        first = np.random.default_rng(other).standard_normal((12, N))
        assert not np.isclose(asked[1][:12], first).any()
