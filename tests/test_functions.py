import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leamvd import LEAMVD, Reading
from leamvd.paper import functions
from leamvd.paper.studies import Study

SMALL = Study(
    methods=("cd", "lea-mvd", "lea-mvd:shift=printed", "lea-mvd:x0=none", "lea-mvd:x0_epochs=5"), seeds=(4, 7)
)


def test_known_values_and_the_minimum_at_zero() -> None:
    X = np.array([[1.0, 2.0, 3.0], [0.5, 0.5, 0.5], [-1.0, -1.0, -1.0]])
    np.testing.assert_allclose(functions.sphere(X), [14, 0.75, 3])
    np.testing.assert_allclose(functions.ellipsoid(X), [1 + 10 * 4 + 100 * 9, 0.25 * 111, 111])
    np.testing.assert_allclose(functions.rastrigin(X), [14, 3 * (0.25 + 20), 3])
    # y = x + 1: (2, 3, 4), and (0, 0, 0), where (1 - y)^2 is 1
    np.testing.assert_allclose(functions.rosenbrock(X)[[0, 2]], [100 * (1 + 25) + 1 + 4, 2])
    for f in functions.FUNCTIONS.values():
        assert f(np.zeros((1, 3))) == 0
        assert np.all(f(X) > 0)


def test_a_run_is_lea_mvd_from_the_seeds_start_on_the_moved_function(tmp_path: Path) -> None:
    table = functions.run(SMALL, tmp_path, sizes=(6,), budget=100, functions=("ellipsoid",))
    assert table["method"].unique().tolist() == ["lea-mvd", "lea-mvd:shift=printed", "lea-mvd:x0=none"]
    assert table["evaluations"].tolist() == [24 + 3 * 20] * 6  # another generation would exceed the budget
    rng = np.random.default_rng([7, 6])
    x0, optimum = rng.uniform(-5, 5, 6), rng.uniform(-4, 4, 6)
    opt = LEAMVD(x0, sigma0=1.0, n_gen=4, seed=7, reading=Reading(shift="printed"))
    while not opt.stop():
        X = opt.ask()
        opt.tell(X, (np.logspace(0, 2, 6) * (X - optimum) ** 2).sum(axis=1))
    assert table.query("method == 'lea-mvd:shift=printed' and seed == 7")["best"].item() == opt.best_fun


def test_all_methods_of_a_seed_have_one_start_and_one_optimum() -> None:
    (a, f), (b, g), (c, h) = (
        functions.search(SMALL, method, "sphere", 5, 4, 100) for method in functions.applicable(SMALL.methods)
    )
    X, Y = a.ask(), b.ask()
    np.testing.assert_array_equal(X, Y)
    np.testing.assert_array_equal(f(X), g(X))
    np.testing.assert_array_equal(f(X), h(X))
    assert np.abs(c.ask()).max() <= 5


def test_what_is_computed_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = functions.run(SMALL, tmp_path, sizes=(3,), budget=48, functions=("sphere",))
    searched: list[str] = []
    search = functions.search

    def counted(study: Study, method: str, *rest: int | str) -> object:
        searched.append(method)
        return search(study, method, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(functions, "search", counted)
    again = functions.run(SMALL, tmp_path, sizes=(3,), budget=48, functions=("sphere",))
    pd.testing.assert_frame_equal(first, again, check_exact=True)
    assert searched == []
    more = dataclasses.replace(SMALL, methods=(*SMALL.methods, "lea-mvd:ties=newest"))
    functions.run(more, tmp_path, sizes=(3,), budget=48, functions=("sphere",))
    assert searched == ["lea-mvd:ties=newest"] * 2
    functions.run(dataclasses.replace(SMALL, seeds=(4,)), tmp_path, sizes=(3,), budget=48, functions=("sphere",))
    assert len(searched) == 5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"budget": 20}, "budget must be an integer >= 24, got 20"),
        ({"sizes": (1,)}, "sizes must be an integer >= 2, got 1"),
        ({"functions": ("ackley",)}, "functions must be one of 'sphere'"),
    ],
)
def test_errors_come_before_any_work(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        functions.run(SMALL, tmp_path, **({"sizes": (3,), "budget": 48} | changes))  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
