"""A generation taken apart: parts that add up, each of the right work."""

from collections.abc import Iterator

import numba
import numpy as np
import pandas as pd
import pytest

from leamvd.bench import parts, summary
from leamvd.optimizers import random_streams, sampling


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As the bench measures it; on a busy machine two threads would wait for each other in every pass."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.mark.compiled
@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_parts_are_smaller_than_what_holds_them(dtype: str) -> None:
    measured = pd.DataFrame([row for _ in range(4) for row in parts.measure(20_000, dtype, rounds=3)])
    row = measured.min()  # whatever else the machine does only adds
    assert set(row.index) == {name for name in parts.COLUMNS["parts"] if name.endswith("_seconds")}
    assert 0 < row["words_seconds"] < row["normals_seconds"] < row["second_pass_seconds"] < row["generation_seconds"]
    assert 0 < row["perturbation_seconds"] < row["second_pass_seconds"]
    assert 0 < row["first_pass_seconds"] < row["generation_seconds"]


def test_what_is_timed_draws_every_number_of_a_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, int, int]] = []
    s, place = random_streams.scratch(np.empty(1)), sampling.Place(np.uint64(0), 1, False, 0)
    monkeypatch.setattr(random_streams, "tile_words", lambda *a: drawn.append(("words", a[3], a[4])))
    monkeypatch.setattr(random_streams, "normal_tile", lambda *a: drawn.append(("normals", a[3], a[4])))
    monkeypatch.setattr(sampling, "perturb", lambda *a: drawn.append(("hits", a[2], a[3])))
    for name, work, first in (("words", parts._words, s), ("normals", parts._normals, s)):
        getattr(work, "py_func", work)(first, 3, 2)
        assert drawn == [(name, row, tile) for tile in range(2) for row in range(3)]
        drawn.clear()
    getattr(parts._perturbation, "py_func", parts._perturbation)(np.ones(4), place, 3, 2)
    assert drawn == [("hits", row, tile) for tile in range(2) for row in range(3)]


def test_shares_add_up_to_a_generation() -> None:
    names = ("generation", "first_pass", "second_pass", "words", "normals", "perturbation")
    seconds = dict(zip(names, (10.0, 3.0, 6.0, 1.0, 2.5, 0.5), strict=True))
    table = pd.DataFrame([{"n": 1000, "dtype": "float32"} | {f"{name}_seconds": x for name, x in seconds.items()}])
    shares = summary.parts(table)
    assert shares.columns.tolist() == ["n = 1,000, float32"]
    assert shares.iloc[:, 0].to_dict() == pytest.approx(
        {
            "first pass": 30,
            "second pass: random words": 10,
            "second pass: normal samples from them": 15,
            "second pass: perturbation": 5,
            "second pass: the rest": 30,
            "calls": 10,
        }
    )
