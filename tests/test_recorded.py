"""What ships: the rows of each plan, and of each run those that its page shows."""

from typing import Any

import pandas as pd
import pytest

from leamvd_paper.studies import verify
from leamvd_paper.studies.results import read_recorded

# Calls that take less than a second, of names whose plans have some that need no images; as long
# searches do not, they come out the same on any machine, to fourteen digits.
SMALL: dict[str, tuple[Any, ...]] = {
    "preset_development": (
        "rosenbrock, n = 100",
        "lea-mvd:population_size=8+exponent=3+reset=off",
        1,
    ),
    "preset_judged": ("rastrigin, n = 100", "random", 1),
    "preset_last_step": (
        "ellipsoid, n = 100",
        "lea-mvd:population_size=12+reset=off+perturbation=entry",
        1,
    ),
    "preset_again": (
        "sphere, n = 100",
        "lea-mvd:population_size=8+reset=off+perturbation=added",
        1,
    ),
    "longer_searches": ("rastrigin, n = 100", "sep-cma-es", 1),
    "what_to_use": ("ellipsoid, n = 100", "cr-fm-nes", 1),
    "what_to_use_moved": ("sphere, n = 100, moved by 64", "lea-mvd", 1),
    "local_minima": ("schwefel", 2, "cma-es", 1),
    "last_step_minima": ("rastrigin", 2, "lea-mvd:perturbation=off", 1),
    "origin": ("rotated ellipsoid", 10, "lea-mvd:reset=off", "added", 10.0, 10.0, 1),
    "carries": ("sphere", 1.0, "factor", "unbiased", 4, "none", 1),
    "readings_functions": ("sphere", 100, "lea-mvd:shift=printed", 1),
    "path_and_factor": ("sphere", 100, "lea-mvd:path=off", 1),
}


@pytest.mark.parametrize("name", verify.all_recorded())
def test_what_is_recorded_has_the_rows_of_its_plan_and_a_small_call_comes_out_again(
    name: str,
) -> None:
    planned = verify.recorded(name).plan()
    for table, (columns, calls) in planned.items():
        there = set(read_recorded(name, table)[columns].itertuples(index=False, name=None))
        assert set(calls) <= there if name.startswith("backend") else set(calls) == there, (
            "bfloat16 is there too"
        )
    if name in SMALL:
        columns, calls = planned["runs"]
        call = calls[SMALL[name]]
        rows = call.function(**call.arguments).rows.assign(
            **dict(zip(columns, SMALL[name], strict=True))
        )
        found = verify.compare(read_recorded(name), rows, columns, elsewhere=False)
        assert not found["drifts"].any(), found


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        *(("readings", [0, 10, 20, 23, 0, 10, 13]), ("image_sets", [23, 13]), ("scaling", [23])),
        *(
            (whole, [*range(24), *range(14)])
            for whole in ("mnist_7x7", "explanation", "local_minima")
        ),
    ],
)
def test_of_each_run_every_iteration_ships_or_every_tenth_and_the_last(
    name: str, kept: list[int]
) -> None:
    rows = pd.DataFrame({"inputs": "own", "layer": 1, "method": "cd", "seed": [0] * 24 + [1] * 14})
    rows["iteration"] = [*range(24), *range(14)]
    assert verify.recorded(name).keep(rows)["iteration"].tolist() == kept
