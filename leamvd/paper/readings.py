"""Which readings matter: the effect of each alternative on the final error, and what C_ani does in whole runs."""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support.compile import Array
from leamvd.networks.dbn import layer_seed, train
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.paper import functions, records
from leamvd.paper.alternatives import ALTERNATIVES, default
from leamvd.paper.comparison import final, holm
from leamvd.paper.intervals import interval
from leamvd.paper.search_directions import followed
from leamvd.paper.studies import STUDIES, Study, images

LEVEL = 0.05
"""Of significance, for all tests of one table together."""

FUNCTIONS = "functions"
"""The problem that stands for all functions: the geometric mean of what a seed reaches on each."""

PLANS: dict[str, dict[str, Any]] = {
    "quick": {"sizes": (20,), "budget": 600},
    "paper": {"sizes": (100, 1000), "budget": 10_000},
}
"""What is run on functions, by profile, see `leamvd.paper.functions.run`; profiles without an entry run nothing."""

RECORDED = "readings_functions"
"""Name of what `record` writes."""


# ---- effects


def outcomes(table: pd.DataFrame, measure: str = "mean_field") -> pd.DataFrame:
    """Return a measure at a study's last iterations, on its first kind of inputs: problem, method, seed, error.

    A problem is a layer, "RBM 1".
    """
    last = final(table[table["inputs"] == table["inputs"].iloc[0]])
    return last[["method", "seed"]].assign(problem="RBM " + last["layer"].astype(str), error=last[measure])


def function_outcomes(table: pd.DataFrame) -> pd.DataFrame:
    """Return what runs on functions reached, likewise: each function and number of variables, and `FUNCTIONS`."""
    sizes = table["n_var"].map("{:,}".format)
    each = table[["method", "seed"]].assign(problem=table["function"] + ", n = " + sizes, error=table["best"])
    means = each.assign(error=np.log(each["error"])).groupby(["method", "seed"], sort=False)["error"].mean()
    return pd.concat([each, np.exp(means).reset_index().assign(problem=FUNCTIONS)], ignore_index=True)


def effects(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Compare each alternative with its default, on each problem, paired over seeds.

    Parameters
    ----------
    outcomes : DataFrame
        Columns problem, method, seed and error, of one source or of several together.

    Returns
    -------
    DataFrame
        A row for each item, method and problem that both were run on: runs; the geometric mean of the `ratio` of the
        alternative's error to the default's and its 95 % interval, `low` and `high` (Student's t on logarithms, NaN for
        one run); `same`, whether all errors are equal to the last bit; `p` of Wilcoxon's signed-rank test, corrected by
        Holm over the whole table (NaN where all are the same, or for one run); and whether they are `different`, p
        below `LEVEL`.
    """
    errors = np.log(outcomes.pivot_table(index="seed", columns=["problem", "method"], values="error", sort=False))
    rows = []
    for item, alternatives in ALTERNATIVES.items():
        for method in alternatives:
            for problem in outcomes["problem"].unique():
                pair = (problem, method), (problem, default(method))
                if any(run not in errors for run in pair):
                    continue
                x = (errors[pair[0]] - errors[pair[1]]).dropna().to_numpy()
                same = not x.any()
                p = np.nan if same or len(x) < 2 else float(stats.wilcoxon(x).pvalue)
                low, ratio, high = np.exp(interval(x))
                rows.append((item, method, problem, len(x), ratio, low, high, same, p))
    columns = ["item", "method", "problem", "runs", "ratio", "low", "high", "same", "p"]
    result = pd.DataFrame(rows, columns=columns)
    result["p"] = holm(result["p"].to_numpy(dtype=float))
    return result.assign(different=result["p"] < LEVEL)


def counts(effects: pd.DataFrame) -> pd.DataFrame:
    """Return for each problem how many alternatives changed nothing, lowered or raised the error, or show no effect."""
    kind = np.select(
        [effects["same"], ~effects["different"], effects["ratio"] < 1], ["same bits", "not shown", "lower"], "higher"
    )
    table = pd.crosstab(effects["problem"], kind)
    order = list(effects["problem"].unique())
    return table.reindex(index=order, columns=["same bits", "not shown", "lower", "higher"], fill_value=0)


def effect(effects: pd.DataFrame, method: str, problem: str) -> pd.Series:
    """Return the row of one alternative on one problem."""
    row: pd.Series = effects[(effects["method"] == method) & (effects["problem"] == problem)].iloc[0]
    return row


# ---- what C_ani does (C11)


def searches(study: Study, V: Array) -> dict[int, Iterator[LEAMVD]]:
    """Return a study's own runs of LEA-MVD on its first layer by seed, an optimizer after each generation."""
    runs = {}
    for seed in study.seeds:
        own = layer_seed(seed, 1)
        objective = ReconstructionObjective(V, study.layers[0])
        given: Any = {"training": study.training, "reading": study.reading, "seed": own}
        x0 = next(train("lea-mvd", V, study.layers[0], **given)).rbm.flat()
        opt = study.training.optimizer("lea-mvd", x0, reading=study.reading, seed=own)
        assert isinstance(opt, LEAMVD)
        runs[seed] = functions.generations(opt, objective)
    return runs


def function_searches(study: Study, n_var: int, budget: int) -> dict[str, dict[int, Iterator[LEAMVD]]]:
    """Return the default on each function, likewise, by problem."""
    return {
        f"{name}, n = {n_var:,}": {
            seed: functions.generations(*functions.search(study, "lea-mvd", name, n_var, seed, budget), budget)
            for seed in study.seeds
        }
        for name in functions.FUNCTIONS
    }


def directions(problems: Mapping[str, Mapping[int, Iterable[LEAMVD]]]) -> pd.DataFrame:
    """Follow runs and return what C_ani does in each, from the first generation on in which there is a path P.

    Returns
    -------
    DataFrame
        Columns problem, seed and generations; `share`, percent that the step along C_ani has of the lengths of both
        parts of v, (1 - beta_2) mu_ani C_ani and beta_2 P, in the mean over generations; `none`, percent of the
        generations whose beta_2 is 1, so that C_ani has no weight at all; and `against`, percent of the generations in
        which C_ani has a negative inner product with P. Only C_hat is orthogonal to P; C_ani averages it over
        generations whose P were others (item R9).
    """
    rows = []
    for problem, runs in problems.items():
        for seed, run in followed(runs).groupby("seed"):
            own = run[run["descent_path"].notna()]
            share, none = own["descent_share"].mean(), (own["beta2"] == 1).mean()
            rows.append((problem, seed, len(own), 100 * share, 100 * none, 100 * (own["descent_path"] < 0).mean()))
    return pd.DataFrame(rows, columns=["problem", "seed", "generations", "share", "none", "against"])


def summary(directions: pd.DataFrame) -> pd.DataFrame:
    """Return the means over runs of each problem."""
    means = directions.drop(columns="seed").groupby("problem", sort=False).mean()
    means.insert(0, "runs", directions.groupby("problem", sort=False).size())
    return means


# ---- the recorded run on functions


def record(folder: str | Path, output: str | Path, *, sizes: Sequence[int], budget: int, jobs: int = 1) -> None:
    """Run the study's methods on functions, and write ``runs.csv``, ``directions.csv`` and ``provenance.json``.

    Parameters
    ----------
    folder : path
        That ships, `RECORDED`.
    output : path
        For what is computed until all is done; a run that was stopped goes on from there.
    sizes, budget, jobs
        As for `leamvd.paper.functions.run`.
    """
    study = STUDIES["readings", "paper"]
    table = functions.run(study, output, sizes=sizes, budget=budget, jobs=jobs)
    problems = {"RBM 1": searches(study, images(study).train)} | function_searches(study, sizes[0], budget)
    Path(folder).mkdir(parents=True, exist_ok=True)
    records.write_table(Path(folder) / "directions.csv", directions(problems))
    records.write_table(Path(folder) / "runs.csv", table)
    records.write(Path(folder) / "provenance.json", functions.provenance(study, sizes=sizes, budget=budget))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=record.__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    record(records.recorded_folder(RECORDED), given.output, jobs=given.jobs, **PLANS["paper"])
