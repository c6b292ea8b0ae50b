"""Searches against a plain loop: a mark has the best value of the last generation that ends within it."""

import io
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_studies import SMALL

from leamvd.campaign.tables import read_table
from leamvd.data import functions
from leamvd.data.images import Images
from leamvd.experiments.methods import Method
from leamvd.experiments.searches import FunctionSearch, LayerSearch
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.methods import METHODS, optimizer
from leamvd.optimizers.reading import Reading
from leamvd.studies.study import images

MARKS = (12, 60, 120)  # fewer than a generation, within one, and what baselines spend to the last evaluation


def settings(method: str) -> dict[str, Any]:
    own = Method.parse(method)
    return {"trainer": own.trainer, "training": own.training(Training()), "reading": own.reading(Reading())}


def looped(opt: Any, objective: functions.Objective, marks: tuple[int, ...]) -> list[tuple[int, int, float]]:
    """Return each mark, the evaluations of the whole generations within it, and the lowest value among them."""
    ends, values = [0], []
    while ends[-1] <= marks[-1] and not opt.stop():
        X = opt.ask()
        F = objective(X)
        opt.tell(X, F)
        values += F.tolist()
        ends.append(len(values))
    spent = [max(end for end in ends if end <= mark) for mark in marks]
    return [(mark, n, min(values[:n], default=np.nan)) for mark, n in zip(marks, spent, strict=True)]


def rows(job: FunctionSearch | LayerSearch, data: Any = None) -> list[tuple[int, int, float]]:
    result = job.advance(data, [])
    assert (result.iteration, result.done) == (job.budget, True)
    table: pd.DataFrame = read_table(io.BytesIO(result.rows))
    assert table.columns.tolist() == ["mark", "evaluations", "best"]
    return list(table.itertuples(index=False, name=None))


@pytest.mark.parametrize("method", [*METHODS, "lea-mvd:shift=printed", "lea-mvd:n_elite=1+sigma0=0.03"])
def test_a_search_on_a_function_starts_where_all_do(method: str) -> None:
    given = settings(method)
    x0, objective = functions.problem("ellipsoid", 6, 3)
    lea = {"n_elite": given["training"].n_elite, "reading": given["reading"]} if given["trainer"] == "lea-mvd" else {}
    opt = optimizer(given["trainer"], x0, sigma0=10 * given["training"].sigma0, n_gen=1000, seed=3, **lea)
    found = rows(FunctionSearch(**given, function="ellipsoid", n_var=6, seed=3, marks=MARKS))
    np.testing.assert_array_equal(found, looped(opt, objective, MARKS))
    assert np.isnan(found[0][2])


def test_without_a_start_solution_a_search_draws_within_its_limits() -> None:
    _, objective = functions.problem("sphere", 5, 4)
    opt = optimizer("lea-mvd", n_var=5, bounds=(-5, 5), sigma0=1.0, n_gen=1000, seed=4)
    job = FunctionSearch(**settings("lea-mvd:x0=none"), function="sphere", n_var=5, seed=4, marks=MARKS)
    np.testing.assert_array_equal(rows(job), looped(opt, objective, MARKS))


def test_a_search_that_ends_by_itself_keeps_its_best_value() -> None:
    x0, objective = functions.problem("sphere", 2, 0)
    marks = (200, 5_000, 10_000)
    opt = optimizer("cma-es", x0, sigma0=1.0, n_gen=10_000, seed=0)
    found = rows(FunctionSearch(**settings("cma-es"), function="sphere", n_var=2, seed=0, marks=marks))
    np.testing.assert_array_equal(found, looped(opt, objective, marks))
    assert found[1][1:] == found[2][1:]


@pytest.mark.parametrize("method", ["lea-mvd", "cma-es", "lea-mvd:reset=off"])
def test_a_search_on_a_layer_starts_at_one_epoch_of_contrastive_divergence(method: str) -> None:
    data, given = images(SMALL), settings(method)
    x0 = ContrastiveDivergence(data.train, 3, seed=layer_seed(7, 1)).epoch().flat()
    lea = {"reading": given["reading"]} if given["trainer"] == "lea-mvd" else {}
    opt = optimizer(given["trainer"], x0, sigma0=0.1, n_gen=1000, seed=7, **lea)
    job = LayerSearch(**given, images=Images.of(data), n_hidden=3, seed=7, marks=MARKS)
    np.testing.assert_array_equal(rows(job, data), looped(opt, ReconstructionObjective(data.train, 3), MARKS))
