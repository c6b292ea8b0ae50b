"""Longer searches: who is overtaken after how many evaluations."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from leamvd.optimizers.minimize import METHODS, optimizer
from leamvd.optimizers.reading import Reading
from leamvd.paper import functions, longer_searches
from leamvd.paper.intervals import interval


@pytest.mark.parametrize("method", METHODS)
def test_a_mark_has_the_best_value_by_then(method: str) -> None:
    table = longer_searches.search("sphere, n = 6", method, 3, (2, 10, 20))
    x0, sigma0, objective = longer_searches.problem("sphere, n = 6", 3)
    opt, values = optimizer(method, x0, sigma0=sigma0, n_gen=1000, seed=3), []
    while len(values) < 120:
        X = opt.ask()
        F = objective(X)
        opt.tell(X, F)
        values += F.tolist()
    spent = [0, 44, 104] if method == "lea-mvd" else [0, 48, 120]  # 12 are fewer than a generation
    assert table["evaluations"].tolist() == spent
    assert np.isnan(table["best"][0])
    assert table["best"][1:].tolist() == [min(values[:count]) for count in spent[1:]]


def test_without_the_reset_a_search_leaves_where_it_would_stand_still() -> None:
    printed, off = (
        longer_searches.search("rastrigin, n = 30", method, 1, (30, 100)) for method in ("lea-mvd", "lea-mvd:reset=off")
    )
    opt = optimizer("lea-mvd", longer_searches.problem("rastrigin, n = 30", 1)[0], sigma0=1.0, n_gen=200, seed=1,
                    reading=Reading(reset="off"))  # fmt: skip
    for _ in functions.generations(opt, longer_searches.problem("rastrigin, n = 30", 1)[2], 3000):
        pass
    assert off["best"].iloc[-1] == opt.best_fun
    assert off["best"].iloc[-1] < printed["best"].iloc[-1]


def test_all_methods_of_a_seed_have_one_start_and_one_objective() -> None:
    x0, sigma0, objective = longer_searches.problem("rastrigin, n = 1,000", 4)
    own, moved = functions.problem("rastrigin", 1000, 4)
    np.testing.assert_array_equal(x0, own)
    assert sigma0 == 1
    assert objective(x0[None]) == moved(x0[None]) > 0


def test_every_problem_has_a_start_and_marks() -> None:
    for name, marks in longer_searches.PROBLEMS.items():
        assert list(marks) == sorted(marks)
        if name != longer_searches.RBM_1:
            x0, _, objective = longer_searches.problem(name, 0)
            assert f"n = {len(x0):,}" in name
            assert objective(x0[None]).shape == (1,)


def test_means_and_ratios_are_geometric_and_paired() -> None:
    rows = [
        ("p", method, seed, mark, 24 * mark, best * (3 - mark))
        for seed, pair in enumerate(((4.0, 1.0), (9.0, 3.0)))
        for method, best in zip(("lea-mvd", "random"), pair, strict=True)
        for mark in (1, 2)
    ]
    table = pd.DataFrame(rows, columns=longer_searches.COLUMNS)
    found = longer_searches.means(table).set_index(["method", "mark"])
    assert found.loc[("lea-mvd", 2), "mean"] == pytest.approx(6)
    assert found.loc[("random", 1), "mean"] == pytest.approx(2 * np.sqrt(3))
    (row,) = longer_searches.beside(table).to_dict("records")
    low, ratio, high = np.exp(interval(np.log([1 / 4, 1 / 3])))
    assert (row["problem"], row["method"], row["runs"]) == ("p", "random", 2)
    assert [row["best"], row["own"]] == pytest.approx([np.sqrt(3), 6])
    assert [row["low"], row["ratio"], row["high"]] == pytest.approx([low, ratio, high])


def test_prose_quotes_ratios_and_counts_who_is_ahead() -> None:
    rows = [
        ("sphere, n = 1,000", "cma-es", 10, 3.0, 6.0, 0.5, 0.4, 0.6),
        ("sphere, n = 1,000", "random", 10, 12.0, 6.0, 2.0, 1.5, 3.0),
        ("RBM 1", "cma-es", 10, 9.0, 10.0, 0.9, 0.7, 1.2),
        ("RBM 1", "lea-mvd:reset=off", 9, 8.0, 10.0, 0.8, 0.7, 0.9),
    ]
    found = longer_searches.quoted(
        pd.DataFrame(rows, columns=["problem", "method", "runs", "best", "own", "ratio", "low", "high"]),
    )
    assert found["longer-sphere-1000-random-ratio"] == 2
    assert (found["longer-rbm-1-cma-es-best"], found["longer-rbm-1-cma-es-own"]) == (9, 10)
    assert (found["longer-rbm-1-lea-mvd-reset-off-ratio"], found["longer-lea-mvd-reset-off-ahead"]) == (0.8, 1)
    assert (found["longer-cma-es-ahead"], found["longer-random-ahead"], found["longer-problems"]) == (1, 0, 2)
    assert found["longer-runs"] == 10


def test_what_is_recorded_is_computed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(longer_searches, "PROBLEMS", {"sphere, n = 3": (10, 20)})
    monkeypatch.setattr(longer_searches, "SEEDS", (1, 2))
    longer_searches.record(tmp_path / "recorded", tmp_path)
    table = pd.read_csv(tmp_path / "recorded" / "runs.csv")
    assert len(table) == 2 * 2 * len(longer_searches.COMPARED)
    assert table.columns.tolist() == longer_searches.COLUMNS
    known = json.loads((tmp_path / "recorded" / "provenance.json").read_text(encoding="utf-8"))
    assert known["problems"] == {"sphere, n = 3": [10, 20]}
    assert known["methods"] == [*METHODS, "lea-mvd:reset=off"]
    monkeypatch.setattr(longer_searches, "search", None)
    longer_searches.record(tmp_path / "again", tmp_path)
    assert (tmp_path / "again" / "runs.csv").read_bytes() == (tmp_path / "recorded" / "runs.csv").read_bytes()
