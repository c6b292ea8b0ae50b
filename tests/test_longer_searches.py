"""Longer searches: who is overtaken after how many evaluations."""

import io
import math
from pathlib import Path
from typing import Any

from small_studies import SMALL

from leamvd.campaign.run import run_tables
from leamvd.campaign.tables import read_table
from leamvd.data.images import Images
from leamvd.experiments.searches import FunctionSearch
from leamvd.networks.rbm import n_parameters
from leamvd.studies import longer_searches
from leamvd.studies.study import images


def test_every_problem_is_searched_by_every_method_to_its_marks() -> None:
    plan = longer_searches.PLANS["paper"]
    searches = longer_searches.searches(images(SMALL), **plan).jobs
    assert len(searches) == len(set(searches.values())) == math.prod(map(len, plan.values()))
    for (problem, method, seed), job in searches.items():
        marks = plan["problems"][problem]
        assert list(marks) == sorted(marks)
        n_var = n_parameters(49, 30) if problem == longer_searches.RBM_1 else int(problem.split()[-1].replace(",", ""))
        assert job.marks == tuple(round(mark * n_var) for mark in marks)
        assert (job.trainer, job.seed) == (method.partition(":")[0], seed)
        assert job.reading.reset == ("off" if method == "lea-mvd:reset=off" else 1.0)
        if isinstance(job, FunctionSearch):
            assert problem == f"{job.function}, n = {job.n_var:,}"
        else:
            assert job.images == Images.of(images(SMALL))


def test_without_the_reset_a_search_leaves_where_it_would_stand_still() -> None:
    given: dict[str, Any] = {"problems": {"rastrigin, n = 30": (30, 100)}, "seeds": (1,)}
    searches = longer_searches.searches(None, methods=("lea-mvd", "lea-mvd:reset=off"), **given).jobs
    printed, off = (read_table(io.BytesIO(job.advance(None, []).rows)) for job in searches.values())
    assert off["best"].iloc[-1] < printed["best"].iloc[-1]


def test_a_row_has_the_mark_for_each_variable(tmp_path: Path) -> None:
    problems = {"sphere, n = 10": (10, 20), "ellipsoid, n = 20": (5, 20, 30)}
    searches = longer_searches.searches(None, problems=problems, methods=("random",), seeds=(1, 2))
    table = run_tables({"runs": searches}, tmp_path, progress=False)["runs"]
    assert table.columns.tolist() == longer_searches.COLUMNS
    assert (
        table.groupby(["problem", "seed"], sort=False)["mark"].apply(list).tolist()
        == [[10, 20]] * 2 + [[5, 20, 30]] * 2
    )
    assert table["evaluations"].tolist() == [96, 192] * 2 + [96, 384, 600] * 2
