"""The algorithm in NumPy on the page of the method: it prints what the page says, and agrees with
the library.
"""

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leamvd
import reference
from leamvd._support.compile import Array
from leamvd_paper.data import functions
from leamvd_paper.studies.in_numpy import lea_mvd

METHOD = (Path(__file__).parents[1] / "book" / "method.md").read_text(encoding="utf-8")


class Replay:
    """Draws the library's random numbers in the place of a generator's."""

    def __init__(self, seed: int) -> None:
        self.seed, self.generation = seed, 0

    def standard_normal(self, shape: tuple[int, int]) -> Array:
        self.generation += 1
        rows, n = shape
        return np.array(
            [
                reference.normals(self.seed, self.generation, 24 - rows + row, n)
                for row in range(rows)
            ]
        )

    def permutation(self, ranks: Array) -> Array:
        assert ranks.tolist() == list(range(1, 24))
        return reference.ranks(self.seed, self.generation, 4, 24)

    def random(self, shape: tuple[int, int]) -> Array:
        rows, n = shape
        drawn = [
            reference.factors(self.seed, self.generation, 24 - rows + row, n) for row in range(rows)
        ]
        self.factors = np.array(drawn)
        return np.where(self.factors == 1, 1.0, 0.0)

    def uniform(self, low: float, high: float, shape: tuple[int, int]) -> Array:
        assert (low, high, shape) == (0.5, 1.5, self.factors.shape)
        return self.factors


def test_the_code_prints_what_the_page_says() -> None:
    names: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as output:
        for block in re.findall(r"^```python\n(.*?)^```", METHOD, re.MULTILINE | re.DOTALL):
            exec(block, names)
    printed = re.findall(r"^```text\n(.*?)^```", METHOD, re.MULTILINE | re.DOTALL)
    assert printed == [output.getvalue()]


@pytest.mark.parametrize(
    ("x0", "sigma0", "ends"),
    [
        pytest.param(np.ones(3), 0.1, False, id="improves"),
        pytest.param(np.full(30, 1e-6), 0.1, False, id="resets"),
        # half of what ends it in each variable, and more than that in all together
        pytest.param(np.ones(30), 5e-5, True, id="ends"),
    ],
)
def test_the_code_agrees_with_the_library(x0: Array, sigma0: float, ends: bool) -> None:
    def objective(X: Array) -> Array:
        return functions.rastrigin(X)

    told: list[Array] = []

    def told_objective(X: Array) -> Array:
        told.append(X)
        return objective(X)

    x, value = lea_mvd(told_objective, x0, Replay(seed=4), sigma0=sigma0, n_gen=60)
    opt = leamvd.LEAMVD(x0, sigma0=sigma0, seed=4, n_gen=60)
    while not opt.stop():
        X = opt.ask()
        assert pytest.approx(told[opt.generation], rel=1e-9, abs=1e-9) == X
        opt.tell(X, objective(X))
    assert len(told) == opt.generation
    assert (opt.generation < 60) == ends
    assert (x, value) == (
        pytest.approx(opt.result.x, rel=1e-9),
        pytest.approx(opt.result.fun, rel=1e-9),
    )
