"""Searches of several sections: their problems, their starts, and what two directions do, beside
plain NumPy.
"""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leamvd import LEAMVD, Reading
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import Training, layer_seed
from leamvd.optimizers.state import State
from leamvd_paper.studies import benchmarks
from leamvd_paper.studies.benchmarks import Comparison, FirstRBM, Function, cosine
from leamvd_paper.studies.layers import Images
from leamvd_paper.studies.natural_evolution import usual_population_size


def state(path: Any, descent: Any, beta2: float, descent_mean: float) -> State:
    """Return a state of two variables, of which the rest does not matter."""
    opt = LEAMVD(np.ones(2), seed=0)
    X = opt.ask()
    opt.tell(X, (X**2).sum(axis=1))
    return opt.state._replace(
        path=np.array(path), descent=np.array(descent), beta2=beta2, descent_mean=descent_mean
    )


def test_directions_are_the_parts_of_equation_4() -> None:
    """Of lengths 0.2 * 5 and 0.8 * 0.5 * 13, at an angle whose cosine is 16 / 65."""
    found = benchmarks.directions(state([3.0, 4.0], [-12.0, 13.0 * 5 / 13], 0.2, -0.5))
    assert found == pytest.approx(
        {
            "beta2": 0.2,
            "path_length": 5.0,
            "descent_length": 13.0,
            "descent_path": -16 / 65,
            "descent_share": 5.2 / 6.2,
        }
    )


@pytest.mark.parametrize(
    ("path", "descent", "beta2", "mean", "share"),
    [
        ([0.0, 0.0], [0.0, 0.0], 0.5, 1.0, math.nan),
        ([3.0, 4.0], [1.0, 0.0], 0.0, 0.0, math.nan),  # both parts are zero, their vectors not
        ([3.0, 4.0], [0.0, 0.0], 0.5, 1.0, 0.0),
        ([0.0, 0.0], [3.0, 4.0], 0.5, 1.0, 1.0),
    ],
)
def test_of_nothing_there_is_no_share(
    path: Any, descent: Any, beta2: float, mean: float, share: float
) -> None:
    found = benchmarks.directions(state(path, descent, beta2, mean))
    assert found["descent_share"] == pytest.approx(share, nan_ok=True)
    assert math.isnan(found["descent_path"]) == (not any(path) or not any(descent))


def test_a_cosine_has_a_sign_and_no_rounding_errors() -> None:
    a = np.array([1.0, 2.0])
    assert cosine(a, 7 * a) == 1
    assert cosine(a, -a / 3) == -1
    right = cosine(a, np.array([-2.0, 1.0 + 1e-12]))
    assert str(right) == "0.0"
    assert cosine(a, np.array([3.0, -1.0])) == pytest.approx(1 / np.sqrt(50))
    assert math.isnan(cosine(a, 0 * a))


def test_a_first_layer_starts_as_that_of_a_stack_with_its_seed() -> None:
    images = Images(n_images=50)
    x0, objective = FirstRBM("RBM 1", images, n_hidden=3).start(seed=4)
    V = images.load("float32").train
    rbm = ContrastiveDivergence(V, 3, seed=layer_seed(4, 1)).epoch()
    assert x0.dtype == np.float32
    assert x0.tolist() == rbm.flat().tolist()
    error = ((rbm.reconstruct(V) - V) ** 2).sum()
    assert objective(x0[None]) == pytest.approx([error], rel=1e-5)


def test_problems_are_told_apart_by_their_names_and_step_sizes_by_their_kind() -> None:
    assert str(Function("sphere", 1_000)) == "sphere, n = 1,000"
    assert str(benchmarks.Moved("sphere", 1_000, by=0.5)) == "sphere, n = 1,000, moved by 0.5"
    training = Training(sigma0=0.03)
    for trainer in ("lea-mvd", "sep-cma-es", "snes"):
        opt, _ = benchmarks.start(
            Function("sphere", 10), trainer, training, Reading(population_size=9), 1, 50
        )
        assert (opt.n_candidates, opt.nfev) == (9, 0)
    assert benchmarks.start(Function("sphere", 10), "lea-mvd", training, Reading(), 1, 50)[
        0
    ].sigma0 == pytest.approx(0.3)


def test_methods_of_a_comparison_have_their_settings_and_usual_population_sizes() -> None:
    problems = {Function("sphere", 10): (1, 5), Function("ackley", 300): (2,)}
    methods = ("lea-mvd:population_size=9+sigma0=0.2+reset=off", "snes", "snes:population_size=5")
    columns, calls = Comparison(problems=problems, methods=methods, seeds=(4, 2)).plan()["runs"]
    assert columns == ["problem", "method", "seed"]
    named = {str(problem): problem for problem in problems}
    assert len(calls) == 2 * 3 * 2
    for (name, method, seed), call in calls.items():
        given = call.arguments
        problem = named[name]
        assert (given["problem"], given["seed"]) == (problem, seed)
        assert given["marks"] == problems[problem]
        size = {
            methods[0]: 9,
            methods[1]: usual_population_size("snes", problem.n_var),
            methods[2]: 5,
        }
        assert given["reading"].population_size == size[method]
        ours = method == methods[0]
        assert given["trainer"] == ("lea-mvd" if ours else "snes")
        assert given["training"].sigma0 == (0.2 if ours else Training.sigma0)
        if ours:
            assert given["reading"].reset == "off"


def test_methods_are_compared_at_their_last_marks_whatever_the_order_of_rows() -> None:
    rows = []
    for seed, ours in enumerate((2.0, 8.0, 4.0)):
        for method, factor in (("b", 0.5), ("a", 1.0), ("c", 3.0)):
            for mark in (5, 1, 2):
                best = ours * factor * (1.0 if mark == 5 else 100.0 * factor)
                rows.append(("p", method, seed, mark, best))
    table = pd.DataFrame(rows, columns=["problem", "method", "seed", "mark", "best"])
    found = benchmarks.against(table, "a").set_index("method")
    assert found.index.tolist() == ["b", "c"]
    assert found["best"].tolist() == pytest.approx([2, 12])
    assert found["own"].tolist() == pytest.approx([4, 4])
    assert found["ratio"].tolist() == pytest.approx([0.5, 3])
    # one of eight orders of signs, as one of two tests; and what is above is not below
    assert found["p"].tolist() == pytest.approx([2 / 8, 1])
