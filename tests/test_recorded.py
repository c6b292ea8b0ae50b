"""What ships: the rows of each plan, and of each run those that its page shows."""

import pandas as pd
import pytest

from leamvd.paper import verify
from leamvd.paper.results import read_recorded


@pytest.mark.parametrize("name", verify.all_recorded())
def test_what_is_recorded_has_the_rows_of_its_plan(name: str) -> None:
    for table, (columns, calls) in verify.recorded(name).plan().items():
        there = set(read_recorded(name, table)[columns].itertuples(index=False, name=None))
        assert set(calls) <= there if name.startswith("backend") else set(calls) == there, "bfloat16 is there too"


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *(("readings", [0, 10, 20, 23, 0, 10, 13]), ("image_sets", [23, 13]), ("scaling", [23])),
        *((whole, [*range(24), *range(14)]) for whole in ("mnist_7x7", "explanation", "local_minima")),
    ],
)
def test_of_each_run_every_iteration_ships_or_every_tenth_and_the_last(name: str, kept: list[int]) -> None:
    rows = pd.DataFrame({"inputs": "own", "layer": 1, "method": "cd", "seed": [0] * 24 + [1] * 14})
    rows["iteration"] = [*range(24), *range(14)]
    assert verify.recorded(name).keep(rows)["iteration"].tolist() == kept
