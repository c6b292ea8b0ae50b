"""C13 and C14: functions and gradients, searches from local minima, five networks, and the parts that judge them."""

import io
import json
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from leamvd._support.compile import Array
from leamvd.analysis import claims, corrections, rules
from leamvd.analysis.corrections import LATER, Corrections
from leamvd.analysis.statistics import share, shares
from leamvd.campaign.run import run_tables
from leamvd.campaign.tables import read_table
from leamvd.data import functions
from leamvd.data.functions import MULTIMODAL, in_unit_cube
from leamvd.networks.objective import ReconstructionObjective, error_and_gradient
from leamvd.networks.rbm import n_parameters
from leamvd.studies import architectures, minima, recording
from leamvd.studies.architectures import NETWORKS, CrossEntropy
from leamvd.studies.minima import Escape, valley

# ---- functions


@pytest.mark.parametrize("name", MULTIMODAL)
@pytest.mark.parametrize("n_var", [1, 2, 7])
def test_a_function_is_lowest_at_its_optimum_and_has_its_gradient(name: str, n_var: int) -> None:
    rng = np.random.default_rng(n_var)
    optimum = rng.uniform(0.1, 0.9, n_var)
    value, gradient = in_unit_cube(name, optimum)
    U = rng.random((200, n_var))
    assert value(optimum[None]) == pytest.approx(0, abs=1e-10)
    assert gradient(optimum[None])[0] == pytest.approx(0, abs=1e-3), "of a side of up to 1,200"
    assert (value(U) > 0).all()
    steps = 1e-6 * np.eye(n_var)
    slopes = np.stack([(value(U + y) - value(U - y)) / 2e-6 for y in steps], axis=-1)
    assert np.abs(slopes - gradient(U)).max() < 1e-6 * np.abs(slopes).max()


def test_functions_have_the_values_of_their_formulas() -> None:
    x = np.array([[1.0, -2.0]])
    assert functions.ackley(x) == pytest.approx(20 + np.e - 20 * np.exp(-0.2 * np.sqrt(2.5)) - np.e)
    assert functions.griewank(x) == pytest.approx(1 + 5 / 4000 - np.cos(1) * np.cos(2 / np.sqrt(2)))
    z = x[0] + 420.9687462275036
    assert functions.schwefel(x) == pytest.approx(2 * 418.98288727 - (z * np.sin(np.sqrt(z))).sum(), abs=1e-6)


def test_beyond_its_domain_schwefels_function_is_mirrored_and_rises() -> None:
    """As in the CEC 2014 competition: at 579.03 it is what it is at 420.97, less (500 - 579.03)^2 / (10,000 n)."""
    assert functions.schwefel(np.array([[2 * (500 - 420.9687462275036)]])) == pytest.approx(79.0312537724964**2 / 1e4)
    z = -700.0
    term = (200 - 500) * np.sin(np.sqrt(300)) - (z + 500) ** 2 / 1e4
    assert functions.schwefel(np.array([[z - 420.9687462275036]])) == pytest.approx(418.98288727243375 - term)


# ---- escapes


@pytest.mark.parametrize("name", MULTIMODAL)
def test_a_valley_is_a_local_minimum_above_the_global_one(name: str) -> None:
    here = valley(name, 2, 3)
    assert here is not None
    assert here.start == pytest.approx(here.value(here.x[None])[0])
    assert here.start > here.tolerance > 0
    near = np.clip(here.x + 1e-4 * np.random.default_rng(0).standard_normal((500, 2)), 0, 1)
    assert (here.value(near) > here.start - 1e-9).all()
    assert here.descend(here.x)[1] == pytest.approx(here.start)


def test_where_all_descents_end_at_the_global_minimum_there_is_nothing_to_escape_from() -> None:
    assert valley("griewank", 50, 0) is None
    job = Escape(function="griewank", n_var=50, method="random", sigmas=(0.1,), seed=0)
    rows = read_table(io.BytesIO(job.advance(None, []).rows))
    assert rows["end"].isna().all()
    assert rules.escaped(rows).empty


def test_only_steps_that_reach_another_valley_escape() -> None:
    """From a minimum of Rastrigin's function the next one is a tenth of the cube away."""
    job = Escape(function="rastrigin", n_var=2, method="random", sigmas=(1e-4, 0.1), seed=1)
    rows = read_table(io.BytesIO(job.advance(None, []).rows))
    assert rules.escaped(rows)["escaped"].tolist() == [False, True]
    assert (rows["end"] <= rows["early"]).all()
    assert (rows["evaluations"] <= minima.BUDGET).all()


@pytest.mark.parametrize("method", ["lea-mvd", "lea-mvd:printed", "cma-es", "sep-cma-es", "random"])
def test_no_search_leaves_the_cube(method: str) -> None:
    job = Escape(function="schwefel", n_var=20, method=method, sigmas=(0.3,), seed=0)
    opt = job.optimizer(np.full(20, 0.01), 0.3)
    X = opt.ask()
    assert X.min() >= 0
    assert X.max() <= 1
    assert opt.population_size == (12 if method.endswith("cma-es") else 24), "its own: 4 + 3 ln 20"
    assert (X[0] == 0.01).all() == (method != "lea-mvd:printed")


# ---- RBMs


@pytest.fixture(scope="module")
def small() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.random((30, 6)), rng.standard_normal(n_parameters(6, 2))


def test_the_error_of_an_rbm_has_its_gradient_and_hessian(small: tuple[Array, Array]) -> None:
    V, theta = small
    value, gradient = error_and_gradient(theta, V, 2)
    assert value == pytest.approx(ReconstructionObjective(V, 2)(theta[None])[0])

    def slope(y: Array) -> float:
        return (error_and_gradient(theta + y, V, 2)[0] - error_and_gradient(theta - y, V, 2)[0]) / 2e-5

    assert gradient == pytest.approx([slope(y) for y in 1e-5 * np.eye(len(theta))], abs=1e-6)
    step = 1e-3 * np.random.default_rng(1).standard_normal(len(theta))
    values = minima.curvatures(theta, V, 2)
    change = error_and_gradient(theta + step, V, 2)[0] + error_and_gradient(theta - step, V, 2)[0] - 2 * value
    assert values[0] <= change / (step @ step) <= values[-1]
    assert (np.diff(values) >= 0).all()


def test_l_bfgs_goes_on_until_it_gains_nothing(small: tuple[Array, Array], monkeypatch: pytest.MonkeyPatch) -> None:
    V, theta = small
    monkeypatch.setattr(minima, "ROUND", 5)
    end, value = minima.descend_rbm(theta, V, 2)
    assert error_and_gradient(end, V, 2)[0] == value < 0.9 * error_and_gradient(theta, V, 2)[0]
    assert minima.descend_rbm(end, V, 2)[1] > value - 1e-3


def test_an_rbm_escapes_where_the_search_helps_l_bfgs() -> None:
    rows = pd.DataFrame(
        {
            "without": [5.0, 5.0],
            "start": ["cd", "cd"],
            "tolerance": [0.1, 0.1],
            "end": [4.95, 4.85],
            "error": [9.0, 9.0],
        }
    )
    assert rules.escaped(rows)["escaped"].tolist() == [False, True]


# ---- networks


def slow(x: Array, image: Array, sizes: tuple[int, ...], hidden: tuple[str, ...]) -> Array:
    """Return the outputs of one network for one image, unit by unit."""
    units, weights = list(image), list(x)
    for layer, (n_in, n_out) in enumerate(pairwise(sizes)):
        W = [[weights.pop(0) for _ in range(n_out)] for _ in range(n_in)]
        sums = [weights.pop(0) + 0.0 for _ in range(n_out)]
        for j in range(n_out):
            sums[j] += sum(W[i][j] * units[i] for i in range(n_in))
        if layer < len(hidden):
            rules_of = {
                "relu": lambda a: a if a > 0 else 0.0,
                "tanh": np.tanh,
                "step": lambda a: 1.0 if a > 0 else 0.0,
                "sign": lambda a: 1.0 if a > 0 else -1.0,
            }
            sums = [rules_of[hidden[layer]](a) for a in sums]
        units = sums
    assert not weights
    return np.array(units)


@pytest.mark.parametrize("network", NETWORKS)
def test_a_networks_cross_entropy_is_that_of_the_slow_formulas(network: str) -> None:
    rng, hidden = np.random.default_rng(5), NETWORKS[network]
    V, labels = rng.random((7, 4)), np.array([0, 1, 2, 2, 1, 0, 2])
    objective = CrossEntropy(V, labels, hidden, width=3)
    X = rng.standard_normal((5, objective.n_var))
    for x, value in zip(X, objective(X), strict=True):
        outputs = [slow(x, image, objective.sizes, hidden) for image in V]
        terms = [np.log(np.exp(a).sum()) - a[label] for a, label in zip(outputs, labels, strict=True)]
        assert value == pytest.approx(np.mean(terms))
        assert objective.wrong(x) == np.mean([a.argmax() != label for a, label in zip(outputs, labels, strict=True)])


def test_starts_are_glorots() -> None:
    objective = CrossEntropy(np.zeros((2, 64)), np.array([0, 9]), ("relu",))
    x = objective.start(0)
    W, b = x[: 64 * 16], x[64 * 16 : 65 * 16]
    assert 0.99 * np.sqrt(6 / 80) < np.abs(W).max() <= np.sqrt(6 / 80)
    assert not b.any()
    assert len(x) == 65 * 16 + 17 * 10


def test_digits_are_parted_once() -> None:
    data = architectures.images()
    assert (data.train.shape, data.test.shape) == ((1297, 64), (500, 64))
    rows = {image.tobytes() for image in data.train}
    assert sum(image.tobytes() in rows for image in data.test) < 5, "digits that were drawn alike"


def test_every_network_learns_by_the_same_call() -> None:
    data = architectures.images()
    table = architectures.searches(data, methods=("lea-mvd",), seeds=(0,), budget=1_000)
    assert [label[1] for label in table.jobs] == ["lea-mvd", "mlp"] * 2 + ["lea-mvd"] * 3
    job = table.jobs["steps", "lea-mvd", 0]
    rows = read_table(io.BytesIO(job.advance(data, []).rows))
    assert rows["mark"].tolist() == [0, 1000]
    assert 970 < rows["evaluations"].iloc[1] <= 1000
    assert rows["loss"].iloc[1] < 0.9 * rows["loss"].iloc[0]


# ---- what is judged


@pytest.mark.parametrize(("found", "runs"), [(70, 120), (30, 30), (0, 30), (15, 30)])
def test_a_share_is_tested_exactly(found: int, runs: int) -> None:
    effect = share(pd.Series([True] * found + [False] * (runs - found)), lower=0.5)
    assert (effect.effect, effect.runs) == (found / runs, runs)
    assert effect.p == pytest.approx(sum(stats.binom.pmf(k, runs, 0.5) for k in range(found, runs + 1)))
    if found == runs:
        assert (effect.low, effect.high) == pytest.approx((0.025 ** (1 / runs), 1))
    if found == 0:
        assert (effect.low, effect.high) == pytest.approx((0, 1 - 0.025 ** (1 / runs)))


def test_no_runs_have_no_share() -> None:
    effect = share(pd.Series([], dtype=bool), lower=0.5)
    assert (effect.runs, effect.p) == (0, 1)
    assert np.isnan(effect.effect)


def test_shares_are_of_groups() -> None:
    table = pd.DataFrame({"n": [2, 2, 5, 5], "escaped": [True, False, True, True]})
    found = shares(table, "escaped", ["n"])
    assert found[["n", "runs", "mean"]].values.tolist() == [[2, 2, 0.5], [5, 2, 1]]
    assert (found["low"] < found["mean"]).all()


def tables(escapes_of: int = 120, trained: int = 30, wrong: float = 0.2) -> dict[str, pd.DataFrame]:
    """Return what the parts are judged by: so many searches escape, and networks end with so many wrong images."""
    names = [(f, seed) for f in MULTIMODAL for seed in range(30)]
    searched = [
        {"function": f, "n_var": n, "method": "lea-mvd", "seed": seed, "sigma0": sigma0, "start": 1.0,
         "tolerance": 0.1, "end": 0.5 if i < escapes_of and sigma0 == 0.1 else 1.0}
        for n in (2, 5, 10, 20, 50) for i, (f, seed) in enumerate(names) for sigma0 in (0.01, 0.1)
    ]  # fmt: skip
    rbms = [
        {"method": "lea-mvd", "seed": seed, "start": start, "without": 1.0, "tolerance": 0.1,
         "end": 0.5 if seed < trained else 0.95}
        for seed in range(30) for start in minima.STARTS
    ]  # fmt: skip
    networks = [
        {"network": network, "method": "lea-mvd", "seed": seed, "mark": mark,
         "test_error": (wrong if mark else 0.9) * (1 + seed / 100)}
        for network in NETWORKS for seed in range(12) for mark in (0, 24_000)
    ]  # fmt: skip
    rows = {"local_minima": searched, "trained_minima": rbms, "architectures": networks}
    return {name: pd.DataFrame(own) for name, own in rows.items()}


@pytest.mark.parametrize(
    ("changes", "c13", "c14"),
    [
        ({}, "reproduced", "reproduced"),
        ({"escapes_of": 40}, "partly", "reproduced"),
        ({"escapes_of": 40, "trained": 2}, "not reproduced", "reproduced"),
        ({"escapes_of": 62}, "undecided", "reproduced"),
        ({"wrong": 0.6}, "reproduced", "not reproduced"),
    ],
)
def test_c13_and_c14_are_answered(changes: dict[str, float], c13: str, c14: str) -> None:
    found = corrections.answers(tables(**changes))  # type: ignore[arg-type]
    for claim, answer in (("C13", c13), ("C14", c14)):
        assert found.loc[claim, "registered"].tolist() == ["not measured"] * 2
        assert found.loc[claim, "all"].tolist() == [answer] * 2
    assert set(corrections.changed(found).loc["C13", "direction"]) == {"–"}, "an answer where there was none"


def test_their_family_is_their_own() -> None:
    assert claims.TESTS == 47
    assert claims.family(LATER) == 12
    rows = corrections.evidence(tables(), Corrections(), LATER)
    assert len(rows) == 12
    assert rows["p"].min() == pytest.approx(12 * 0.5**120), "the smallest of them"
    assert rows["met"].all()


def test_no_other_answer_moves() -> None:
    other = [claim.claim for claim in rules.CLAIMS if claim.claim not in ("C13", "C14")]
    pd.testing.assert_frame_equal(corrections.answers({}).loc[other], corrections.answers(tables()).loc[other])
    assert corrections.answers({}).loc["C13", "all"].tolist() == ["not yet run"] * 2


def test_what_is_recorded_plans_itself_again() -> None:
    """Through a provenance, whose tuples are lists."""
    parts, known = recording.SEARCHES["architectures"]({})
    again = recording.SEARCHES["architectures"](json.loads(json.dumps(known)))[0]
    assert [one.tables["runs"].jobs for one in parts] == [one.tables["runs"].jobs for one in again]


def test_pages_have_the_plans_columns(tmp_path: object) -> None:
    plan = minima.PLANS["quick"] | {"sizes": (2,), "seeds": (0,), "methods": ("lea-mvd", "random")}
    del plan["rbms"]
    found = run_tables({"": minima.searches(**plan)}, f"{tmp_path}", progress=False)[""]
    assert found.columns.tolist() == minima.COLUMNS
    assert len(found) == 8


def test_a_baseline_trains_with_its_own_population_size() -> None:
    data = architectures.images()
    given = {"methods": ("sep-cma-es", "sep-cma-es:population_size=8"), "seeds": (0,), "budget": 96}
    jobs = architectures.searches(data, **given, networks=("signs",)).jobs
    ends = [job.advance(data, []).rows.decode().splitlines()[-1] for job in jobs.values()]
    assert ends[0] != ends[1]
    assert {job.packages for job in jobs.values()} == {("cma",)}, "whatever its settings"
