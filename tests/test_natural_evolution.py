"""SNES and CR-FM-NES: against the slow equations, against the authors' program, and as methods of a
comparison.
"""

from typing import Any

import numpy as np
import pytest

from leamvd.networks.dbn import Training
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.reading import Reading
from leamvd_paper.studies import benchmarks, natural_evolution, results
from leamvd_paper.studies.benchmarks import Comparison, Function
from leamvd_paper.studies.layers import Study
from leamvd_paper.studies.natural_evolution import (
    CLASSES,
    CRFMNES,
    SNES,
    natural_gradients,
    usual_population_size,
)
from leamvd_paper.studies.study_methods import Method
from leamvd_paper.studies.words import named
from problems import ellipsoid, rosenbrock, sphere

X0 = np.linspace(-1, 2, 8)


def followed(opt: Optimizer, objective: Any, generations: int) -> list[Any]:
    asked = []
    for _ in range(generations):
        X = opt.ask()
        asked.append(X.copy())
        opt.tell(X, objective(X))
    return asked


def test_snes_follows_its_equations_entry_by_entry() -> None:
    opt = SNES(X0, sigma0=0.5, population_size=5, n_gen=30, seed=3, x0_in_population=False)
    rng = natural_evolution.generator(3)
    mean, std = X0.copy(), np.full(8, 0.5)
    raw = [max(0.0, np.log(5 / 2 + 1) - np.log(k)) for k in range(1, 6)]
    for X in followed(opt, rosenbrock, 20):
        Z = rng.standard_normal((5, 8))
        np.testing.assert_allclose(X, mean + std * Z, rtol=1e-9)
        order = np.argsort(rosenbrock(X))
        for j in range(8):
            toward_mean = toward_std = 0.0
            for k, row in enumerate(order):
                utility = raw[k] / sum(raw) - 1 / 5
                toward_mean += utility * Z[row, j]
                toward_std += utility * (Z[row, j] ** 2 - 1)
            mean[j] += std[j] * toward_mean
            std[j] *= np.exp((3 + np.log(8)) / (5 * np.sqrt(8)) / 2 * toward_std)


@pytest.mark.parametrize("n_var", [8, 60])
@pytest.mark.parametrize("objective", [sphere, ellipsoid, rosenbrock])
def test_cr_fm_nes_is_the_authors_program_step_by_step(
    monkeypatch: pytest.MonkeyPatch, objective: Any, n_var: int
) -> None:
    alg = pytest.importorskip("crfmnes.alg")
    rng, x0 = natural_evolution.generator(5), np.linspace(-1, 2, n_var)
    monkeypatch.setattr(np.random, "randn", lambda n, m: rng.standard_normal((m, n)).T)
    theirs = alg.CRFMNES(n_var, lambda x: float(objective(x.T)[0]), x0[:, None].copy(), 0.7, 10)
    ours = CRFMNES(x0, sigma0=0.7, population_size=10, n_gen=300, seed=5, x0_in_population=False)
    for _ in range(60):
        X = followed(ours, objective, 1)[0]
        points, _, _ = theirs.one_iteration()
        np.testing.assert_allclose(X, points, rtol=1e-7, atol=1e-9)
        for mine, other in ((ours._mean, theirs.m), (ours._d, theirs.D), (ours._v, theirs.v)):
            np.testing.assert_allclose(mine, other[:, 0], rtol=1e-7, atol=1e-9)
        assert ours._sigma == pytest.approx(theirs.sigma, rel=1e-7)
    assert ours.best_fun == pytest.approx(theirs.f_best)


@pytest.mark.parametrize(("n_var", "population_size"), [(8, 400), (300, 6), (40, 40)])
def test_the_constants_of_cr_fm_nes_are_the_authors_in_any_number_of_variables(
    n_var: int, population_size: int
) -> None:
    alg = pytest.importorskip("crfmnes.alg")
    m = population_size
    theirs = alg.CRFMNES(n_var, sphere, np.zeros((n_var, 1)), 0.7, m)
    ours = CRFMNES(np.zeros(n_var), sigma0=0.7, population_size=m, n_gen=9, seed=5)
    np.testing.assert_allclose(ours._weights - 1 / m, theirs.w_rank[:, 0], rtol=1e-12)
    for mine, other in (
        (ours._mu_eff, theirs.mueff),
        (ours._c_sigma, theirs.cs),
        (ours._c_c, theirs.cc),
        (ours._c_1, theirs.c1(m)),
        (ours._normal_length, theirs.chiN),
        (ours._alpha, theirs.alpha_dist(m)),
        (ours._eta_stagnant, theirs.eta_stag_sigma(m)),
        (ours._eta_converging, theirs.eta_conv_sigma(m)),
        (ours._eta_b, theirs.eta_B(m)),
    ):
        assert mine == pytest.approx(float(other), rel=1e-6)


@pytest.mark.parametrize("traveled", [0.05, 0.5])
def test_how_fast_the_step_size_adapts_depends_on_how_far_the_mean_has_traveled(
    traveled: float,
) -> None:
    """In units of what is expected of N(0, I): below a tenth a search converges."""
    opt = CRFMNES(X0, sigma0=0.7, population_size=10, n_gen=9, seed=5, x0_in_population=False)
    X = opt.ask()
    F = sphere(X)
    length = np.linalg.norm(opt._v)
    unit = opt._v / length
    y = (X - X0)[np.argsort(F)] / 0.7
    z = y + (1 / np.sqrt(1 + length**2) - 1) * np.outer(y @ unit, unit)
    utilities = natural_evolution.rank_weights(10) - 1 / 10
    c = opt._c_sigma
    step = np.sqrt(c * (2 - c) * opt._mu_eff) * utilities @ z
    opt._path_sigma = (traveled * opt._normal_length * np.eye(8)[0] - step) / (1 - c)
    opt.tell(X, F)
    eta = {0.05: opt._eta_converging, 0.5: opt._eta_stagnant}[traveled]
    slope = utilities @ (z**2 - 1).sum(axis=1)
    assert opt._sigma == pytest.approx(0.7 * np.exp(eta / 2 * slope / 8))


def test_gradients_are_those_of_the_log_likelihood_by_the_inverse_of_fishers_matrix() -> None:
    """Here nothing is approximated: alpha is 1. The parameters are v and log D, at D = I."""
    rng = np.random.default_rng(0)
    n, Y = 6, rng.standard_normal((4, 6))
    v = np.array([0.3, -0.3, 0.25, 0.3, -0.35, 0.3])  # without large entries
    C = np.eye(n) + np.outer(v, v)
    inverse = np.linalg.inv(C)
    by_v = [np.outer(e, v) + np.outer(v, e) for e in np.eye(n)]
    by_log_d = [np.diag(e) @ C + C @ np.diag(e) for e in np.eye(n)]
    changes = [inverse @ part for part in by_v + by_log_d]
    fisher = np.array([[np.trace(a @ b) / 2 for b in changes] for a in changes])
    s, t = natural_gradients(Y, float(np.linalg.norm(v)), v / np.linalg.norm(v))
    for y, mine_d, mine_v in zip(Y, s, t, strict=True):
        gradient = [(y @ change @ inverse @ y - np.trace(change)) / 2 for change in changes]
        natural = np.linalg.solve(fisher, gradient)
        np.testing.assert_allclose(mine_v / np.linalg.norm(v), natural[:n], rtol=1e-9)
        np.testing.assert_allclose(mine_d, natural[n:], rtol=1e-9)


@pytest.mark.parametrize("method", CLASSES)
def test_ranks_alone_count_and_the_place_and_scale_of_the_coordinates_do_not(method: str) -> None:
    """The start solution is in the first population; a search in other
    coordinates is the same one.
    """
    given = {"population_size": 6, "n_gen": 30, "seed": 4}
    points = followed(CLASSES[method](X0, sigma0=0.3, **given), rosenbrock, 15)
    assert (points[0][0] == X0).all()
    ranked = followed(
        CLASSES[method](X0, sigma0=0.3, **given), lambda X: np.log(rosenbrock(X)) ** 3, 15
    )
    moved = followed(
        CLASSES[method](4 * X0 + 3, sigma0=1.2, **given), lambda X: rosenbrock((X - 3) / 4), 15
    )
    np.testing.assert_allclose(ranked, points)
    np.testing.assert_allclose((np.array(moved) - 3) / 4, points, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("method", CLASSES)
def test_a_search_comes_near_the_minimum(method: str) -> None:
    opt = CLASSES[method](X0, sigma0=0.5, population_size=10, n_gen=200, seed=1)
    followed(opt, sphere, 200)
    assert opt.best_fun < 1e-6 * sphere(X0[None])[0]
    assert opt.stop() == {"n_gen": 200}


def test_the_usual_population_is_even_where_points_are_mirrored() -> None:
    assert [usual_population_size("snes", n) for n in (10, 100, 1_000)] == [10, 17, 24]
    assert [usual_population_size("cr-fm-nes", n) for n in (10, 100, 1_000)] == [10, 18, 24]
    with pytest.raises(ValueError, match="even"):
        CRFMNES(X0, population_size=5)


def test_a_comparison_runs_them_with_their_own_populations_and_with_given_ones(
    tmp_path: Any,
) -> None:
    methods = (
        "snes",
        "snes:population_size=6+sigma0=0.2",
        "cr-fm-nes",
        "cr-fm-nes:population_size=6",
    )
    compared = Comparison(problems={Function("sphere", 40): (1, 2)}, methods=methods, seeds=(2,))
    runs = results.tables(compared.plan(), tmp_path)["runs"]
    # generations of 15, 6, 16 and 6
    assert runs["evaluations"].tolist() == [30, 75, 36, 78, 32, 80, 36, 78]
    settings = Training(sigma0=0.2), Reading(population_size=6)
    opt, objective = benchmarks.start(Function("sphere", 40), "snes", *settings, seed=2, budget=80)
    assert opt.sigma0 == 2
    followed(opt, objective, 13)
    assert opt.best_fun == runs["best"][3]


def test_their_texts_have_words_and_train_no_layers() -> None:
    assert named("cr-fm-nes:population_size=16") == "CR-FM-NES, 16 individuals"
    assert (
        str(Method.parse("snes:population_size=16+sigma0=0.3"))
        == "snes:population_size=16+sigma0=0.3"
    )
    with pytest.raises(ValueError, match="setting"):
        Method.parse("snes:n_elite=2")
    with pytest.raises(ValueError, match="methods must be"):
        Study(methods=("snes",))


def test_a_text_says_the_population_where_it_is_given_alone() -> None:
    spelled = [
        Method.parse(text).spelled(Training(), Reading())
        for text in ("snes", "snes:population_size=16")
    ]
    assert [one["reading"] for one in spelled] == [{}, {"population_size": 16}]
