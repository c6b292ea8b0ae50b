"""Searches that go on where the paper's end: how far LEA-MVD comes beside CMA-ES, on functions and on an RBM."""

import argparse
import hashlib
import json
import math
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from leamvd._support.compile import Floats
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import layer_seed
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.minimize import METHODS, optimizer
from leamvd.paper import datasets, functions, records, versions
from leamvd.paper.comparison import six_digits
from leamvd.paper.functions import FUNCTIONS, Objective
from leamvd.paper.intervals import interval
from leamvd.paper.studies import Study
from leamvd.paper.units import read_table

RECORDED = "longer_searches"
"""Name of what is recorded."""

COMPARED = (*METHODS, "lea-mvd:reset=off")
"""What is run on each problem; the last, without item R13, was added after searches had been seen to stand still."""

SEEDS = tuple(range(10))

MARKS = (0.5, 1, 2, 5, 10, 20, 50, 100)
"""Evaluations for each variable after which searches are looked at."""

RBM_1 = "RBM 1"
"""The problem that is the first RBM at 7 x 7 pixels, on 10,000 images of MNIST; others are functions."""

PROBLEMS = {f"{name}, n = {n:,}": MARKS for n in (100, 1_000) for name in FUNCTIONS} | {RBM_1: MARKS[:5]}
"""Marks of each problem: on the RBM, whose evaluations take long, searches end after ten for each variable."""

COLUMNS = ["problem", "method", "seed", "mark", "evaluations", "best"]
"""Of a table of searches: `mark` is of `MARKS`, `evaluations` what had been made by then, `best` the lowest value."""


def problem(name: str, seed: int) -> tuple[Floats, float, Objective]:
    """Return the start solution, the first standard deviation and the objective of one of `PROBLEMS`.

    On functions they are those of `leamvd.paper.functions.problem`, and a standard deviation of 1; on the RBM one epoch
    of contrastive divergence and 0.1, as in the paper's experiments.
    """
    if name == RBM_1:
        V, own = datasets.load("mnist", side=7, n_train=10_000).train, layer_seed(seed, 1)
        return ContrastiveDivergence(V, 30, seed=own).epoch().flat(), 0.1, ReconstructionObjective(V, 30)
    function, _, n_var = name.partition(", n = ")
    x0, objective = functions.problem(function, int(n_var.replace(",", "")), seed)
    return x0, functions.WIDTH * 0.1, objective


def search(name: str, method: str, seed: int, marks: Sequence[float]) -> pd.DataFrame:
    """Run a method on a problem, and return a row for each mark: `COLUMNS`.

    All methods have the population size of LEA-MVD, and are scored by the best point that they have evaluated. A search
    that ends by itself, as pycma's may, keeps its best value.
    """
    x0, sigma0, objective = problem(name, seed)
    budgets = [round(mark * len(x0)) for mark in marks]
    kind, _, own = method.partition(":")
    reading = {"reading": Study().reading_of(method)} if own else {}
    opt = optimizer(kind, x0, sigma0=sigma0, n_gen=budgets[-1], seed=seed, **reading)
    told, best = [0], [math.nan]
    for _ in functions.generations(opt, objective, budgets[-1]):
        told.append(opt.nfev)
        best.append(opt.best_fun)
    at = np.searchsorted(told, budgets, side="right") - 1
    rows = [(name, method, seed, mark, told[i], best[i]) for mark, i in zip(marks, at, strict=True)]
    return pd.DataFrame(rows, columns=COLUMNS)


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the best values over seeds, with its 95 % interval.

    Returns
    -------
    DataFrame
        A row for each problem, method and mark: `mean`, `low` and `high`.
    """
    rows = []
    for cell, runs in table.dropna().groupby(["problem", "method", "mark"], sort=False):
        low, mean, high = np.exp(interval(np.log(runs["best"].to_numpy())))
        rows.append((*cell, mean, low, high))
    return pd.DataFrame(rows, columns=["problem", "method", "mark", "mean", "low", "high"])


def beside(table: pd.DataFrame) -> pd.DataFrame:
    """Return what each method has reached at each problem's last mark, over what LEA-MVD has, paired over seeds.

    Returns
    -------
    DataFrame
        A row for each problem and method but LEA-MVD: `runs`; geometric means of the `best` values, those of LEA-MVD as
        `own`, and of their `ratio`, with its 95 % interval, `low` and `high`. Below 1 LEA-MVD has been overtaken.
    """
    last = table[table["mark"] == table.groupby("problem")["mark"].transform("max")]
    logs = last.pivot_table("best", ["problem", "seed"], "method", sort=False).apply(np.log)
    rows = []
    for name, own in logs.groupby("problem", sort=False):
        for method in logs.columns.drop("lea-mvd"):
            pairs = own[[method, "lea-mvd"]].dropna()
            low, ratio, high = np.exp(interval((pairs[method] - pairs["lea-mvd"]).to_numpy()))
            rows.append((name, method, len(pairs), *np.exp(pairs.mean()), ratio, low, high))
    return pd.DataFrame(rows, columns=["problem", "method", "runs", "best", "own", "ratio", "low", "high"])


def quoted(beside: pd.DataFrame) -> dict[str, float]:
    """Return what prose quotes of `beside`.

    Returns
    -------
    dict of str to float
        "longer-sphere-1000-cma-es-ratio" is of the sphere in 1,000 variables, "-best" and "-own" what it compares;
        likewise other functions, "longer-rbm-1", and methods, such as "lea-mvd-reset-off". "longer-cma-es-ahead" is on
        how many problems CMA-ES has surely overtaken LEA-MVD, likewise other methods, "longer-problems" how many
        problems there are, and "longer-runs" how many runs of each method.
    """
    short = beside["problem"].str.lower().str.replace(", n = ", "-").str.replace(",", "").str.replace(" ", "-")
    methods = beside["method"].str.replace("[:=]", "-", regex=True)
    numbers = {
        f"longer-{name}-{method}-{number}": six_digits(row[number])
        for name, method, row in zip(short, methods, beside.to_dict("records"), strict=True)
        for number in ("best", "own", "ratio")
    }
    ahead = (beside["high"] < 1).groupby(methods).sum()
    counts = {f"longer-{method}-ahead": int(count) for method, count in ahead.items()}
    return numbers | counts | {"longer-problems": beside["problem"].nunique(), "longer-runs": int(beside["runs"].max())}


def record(folder: str | Path, output: str | Path, *, jobs: int = 1) -> None:
    """Run all methods on all problems, and write ``runs.csv`` and ``provenance.json``.

    Parameters
    ----------
    folder : path
        That ships, `RECORDED`.
    output : path
        For what is computed until all is done; a run that was stopped goes on from there.
    jobs : int
        Processes.
    """
    code = versions.code(versions.PACKAGE, ("_support", "optimizers", "networks", "paper/functions.py"))
    known: dict[str, Any] = {"problems": PROBLEMS, "code": code}
    kept = Path(output) / f"longer-{hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]}"
    kept.mkdir(parents=True, exist_ok=True)
    work = (joblib.delayed(_piece)(kept, *piece) for piece in product(PROBLEMS, COMPARED, SEEDS))
    tables: list[pd.DataFrame] = joblib.Parallel(n_jobs=jobs)(work)
    Path(folder).mkdir(parents=True, exist_ok=True)
    records.write_table(Path(folder) / "runs.csv", pd.concat(tables, ignore_index=True))
    known |= {"methods": COMPARED, "seeds": SEEDS, "commit": versions.commit(), "versions": versions.packages()}
    records.write(Path(folder) / "provenance.json", json.dumps(known, indent=2) + "\n")


def _piece(folder: Path, name: str, method: str, seed: int) -> pd.DataFrame:
    """Return one search, from the folder if it is there."""
    file = folder / f"{name.replace(' ', '')}-{method.replace(':', '-')}-{seed}.csv"
    if not file.is_file():
        records.write_table(file, search(name, method, seed, PROBLEMS[name]))
    return read_table(file)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=record.__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    record(records.recorded_folder(RECORDED), given.output, jobs=given.jobs)
