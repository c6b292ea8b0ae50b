"""What optimizers need for themselves on the layers of a study."""

import dataclasses

import numpy as np
import pandas as pd
import pytest
from small_studies import SMALL

from leamvd.experiments import memory

STUDY = dataclasses.replace(SMALL, methods=("cd", "lea-mvd", "cma-es"))


def test_memory_is_linear_for_lea_mvd_and_square_for_cma_es():
    sizes = [dataclasses.replace(STUDY, layers=layers) for layers in ((20,), (60,))]
    n = np.array([memory.peaks(size)["variables"].iloc[0] for size in sizes])
    assert n.tolist() == [49 * 20 + 69, 49 * 60 + 109]
    rows = pd.concat([memory.peaks(size) for size in sizes])
    assert list(rows["method"]) == ["lea-mvd", "cma-es"] * 2
    lea, cma = (rows[rows["method"] == method] for method in ("lea-mvd", "cma-es"))
    assert lea["peak / float64 population"].between(1, 4).all()
    assert lea["peak MB"].to_numpy() == pytest.approx(lea["peak / float64 population"] * 8 * 8 * n / 1e6)
    assert (cma["peak MB"].to_numpy() > 2 * 8 * n**2 / 1e6).all()
    assert (rows["ms a generation"] > 0).all()


@pytest.mark.filterwarnings("ignore")  # pycma's own
def test_decompositions_are_those_that_pycma_makes():
    import cma

    longer = dataclasses.replace(STUDY, layers=(3, 2), reading=dataclasses.replace(STUDY.reading, n_gen=30))
    for row in memory.decompositions(longer).to_dict("records"):
        options = {"popsize": 8, "verbose": -9, "verb_log": 0, "seed": 1}
        strategy = cma.CMAEvolutionStrategy(np.zeros(row["variables"]), 0.1, options)
        for _ in range(30):
            X = strategy.ask()
            strategy.tell(X, [float((x**2).sum()) for x in X])
        assert strategy.sm.count_eigen == row["decompositions"]
