"""Which readings matter: the effect of each alternative on the final error, and what C_ani does in whole runs."""

import argparse
import re
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
from leamvd.paper.alternatives import default, pairs
from leamvd.paper.comparison import final, holm, six_digits
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

QUOTED = (
    *("shift=printed", "path=off", "descent=off", "path=off+descent=off", "descent=free"),
    *("perturbation=column", "exponent=0", "exponent=1", "exponent=2", "exponent=3", "printed", "x0-excluded"),
    *("n_elite=1", "n_elite=12", "population_size=12+n_gen=125", "sigma0=0.03", "n_gen=30", "elites=reevaluate"),
    *("x0=none", "x0=none+limits=clip", "n_gen=44+n_elite=1", "n_gen=83+n_elite=12"),
)
"""Alternatives that prose speaks of."""

STUDY, RECORDED = "readings", "readings_functions"
"""Names of what is recorded: of the study, and of what `record` writes."""

STUDY_A = "mnist_7x7"
"""What is recorded of section 3: the same layers on all images, so that they are not trained again for item E11."""

_OWN = [key for key in STUDIES if key[0] == STUDY and key[1] != "quick"]


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
    logs = (
        each.assign(error=np.log(each["error"])).groupby(["method", "seed"], as_index=False, sort=False)["error"].mean()
    )
    means = logs.assign(problem=FUNCTIONS, error=np.exp(logs["error"]))
    both: pd.DataFrame = pd.concat([each, means], ignore_index=True)
    return both


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
    errors = _logarithms(outcomes)
    rows = []
    for item, method in pairs(outcomes["method"].unique()):
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


def beside_cd(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Compare LEA-MVD, by default and by each alternative, with contrastive divergence, paired over seeds.

    Returns
    -------
    DataFrame
        A row for each problem and method: runs, and the geometric mean of the `ratio` of the method's error to that of
        contrastive divergence, with its 95 % interval, `low` and `high`. The lowest ratio of a problem comes first.
    """
    errors, rows = _logarithms(outcomes), []
    ours = outcomes[outcomes["method"].str.startswith("lea-mvd")]
    for problem, method in ours[["problem", "method"]].drop_duplicates().itertuples(index=False):
        if (problem, "cd") in errors:
            x = (errors[problem, method] - errors[problem, "cd"]).dropna().to_numpy()
            low, ratio, high = np.exp(interval(x))
            rows.append((problem, method, len(x), ratio, low, high))
    table = pd.DataFrame(rows, columns=["problem", "method", "runs", "ratio", "low", "high"])
    return table.sort_values(["problem", "ratio"], kind="stable", ignore_index=True)


def _logarithms(outcomes: pd.DataFrame) -> pd.DataFrame:
    """Return the errors' logarithms: a row for each seed, a column for each problem and method."""
    errors = outcomes.pivot_table(index="seed", columns=["problem", "method"], values="error", sort=False)
    logarithms: pd.DataFrame = errors.apply(np.log)
    return logarithms


def counts(effects: pd.DataFrame) -> pd.DataFrame:
    """Return for each problem how many alternatives changed nothing, lowered or raised the error, or show no effect."""
    kind = np.select(
        [effects["same"], ~effects["different"], effects["ratio"] < 1], ["same bits", "not shown", "lower"], "higher"
    )
    table = pd.crosstab(effects["problem"], kind)
    order = list(effects["problem"].unique())
    columns = ["same bits", "not shown", "lower", "higher"]
    return table.reindex(index=order, columns=columns, fill_value=0).rename_axis(columns=None)


def idle(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the alternatives that changed no bit on any problem, with the number of problems."""
    groups = effects.groupby(["item", "method"], sort=False)["same"]
    table = groups.agg(["all", "size"])
    found: pd.DataFrame = table[table["all"]]["size"].rename("problems").reset_index()
    return found


def effect(effects: pd.DataFrame, method: str, problem: str = FUNCTIONS) -> pd.Series:
    """Return the row of one alternative on one problem; of NaN where it was not run."""
    rows = effects[(effects["method"] == method) & (effects["problem"] == problem)]
    row: pd.Series = rows.reindex(rows.index if len(rows) else [0]).iloc[0]
    return row


def quoted(effects: pd.DataFrame, beside: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `effects` and `beside_cd`, by the names under which notebooks glue it.

    Returns
    -------
    dict of str to float or str
        "readings-path-off-ratio", its interval's ends "-low" and "-high" and "-p", are of the functions;
        "readings-path-off-3-ratio" and so on of RBM 3, likewise RBM 1 and 2, and "-rosenbrock" and "-rastrigin" in 100
        variables; and so on for `QUOTED`. Beside contrastive divergence, "readings-lowest-3" is the lowest ratio in
        RBM 3, "-low" and "-high" its interval's ends, "-method" what reaches it. "readings-tests", "readings-runs" and
        "readings-settings" are how many tests there are, pairs a test has, and settings of LEA-MVD beside contrastive
        divergence.
    """
    problems = {"": FUNCTIONS, "-1": "RBM 1", "-2": "RBM 2", "-3": "RBM 3"}
    problems |= {f"-{name}": f"{name}, n = 100" for name in ("rosenbrock", "rastrigin")}
    numbers: dict[str, float | str] = {
        f"readings-{re.sub(r'[=+]', '-', own)}{short}-{number}": six_digits(row[number])
        for own in QUOTED
        for short, problem in problems.items()
        for row in [effect(effects, f"lea-mvd:{own}", problem)]
        for number in ("ratio", "low", "high", "p")
    }
    for short, problem in problems.items():
        for row in beside[beside["problem"] == problem].head(1).to_dict("records"):
            name = f"readings-lowest{short}"
            numbers |= {name: six_digits(row["ratio"]), f"{name}-method": row["method"].removeprefix("lea-mvd:")}
            numbers |= {f"{name}-{end}": six_digits(row[end]) for end in ("low", "high")}
    counts = {
        "tests": effects["p"].notna().sum(),
        "runs": effects["runs"].max(),
        "settings": beside["method"].nunique(),
    }
    return numbers | {f"readings-{name}": int(count) for name, count in counts.items()}


def drawn(effects: pd.DataFrame) -> pd.DataFrame:
    """Return the effects that one figure holds: those on layers and on all functions together."""
    chosen: pd.DataFrame = effects[effects["problem"].str.startswith("RBM") | (effects["problem"] == FUNCTIONS)]
    return chosen


def plan(profile: str, sizes: Sequence[int] | None = None, budget: int | None = None) -> dict[str, Any]:
    """Return the profile's plan of `PLANS` but for what is given; without sizes nothing is run."""
    given = {"sizes": sizes, "budget": budget}
    base: dict[str, Any] = PLANS.get(profile, {"sizes": (), "budget": PLANS["paper"]["budget"]})
    return base | {name: value for name, value in given.items() if value is not None}


def on_functions(
    study: Study, output: str | Path, profile: str, sizes: Sequence[int] | None = None, budget: int | None = None
) -> pd.DataFrame:
    """Run a study's methods on functions as the `plan` says; see `function_outcomes`."""
    planned = plan(profile, sizes, budget)
    if not planned["sizes"] or not functions.applicable(study.methods):
        empty = pd.DataFrame(columns=["method", "seed", "problem", "error"])
        return empty.astype({"seed": int, "error": float})  # objects would make objects of what they are put to
    return function_outcomes(functions.run(study, output, **planned))


def recorded() -> pd.DataFrame | None:
    """Return the outcomes of what is recorded, of the study and of the runs on functions; None where neither is."""
    read = {STUDY: outcomes, RECORDED: function_outcomes}
    parts = [took(records.recorded(name)) for name, took in read.items() if records.is_recorded(name)]
    return pd.concat(parts, ignore_index=True) if parts else None


def recorded_directions() -> pd.DataFrame | None:
    """Return the `directions` of the recorded runs; None where there are none."""
    return records.recorded(RECORDED, "directions") if records.is_recorded(RECORDED) else None


# ---- other data (items E3, E4, E6, E7, E11)


def on_data(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Compare LEA-MVD with contrastive divergence on several kinds of data.

    Parameters
    ----------
    tables : mapping of str to DataFrame
        Records by what the data are called; both methods are among their methods.

    Returns
    -------
    DataFrame
        A row for each kind of data and layer: runs; geometric means of the mean-field errors' ratios to the constant
        image's, of contrastive divergence, `cd`, and of LEA-MVD, `lea-mvd`, which errors on different data can be
        compared by; and of LEA-MVD's error over that of contrastive divergence of the same seed, `ratio`, with its
        95 % interval, `low` and `high`.
    """
    rows = []
    for data, table in tables.items():
        last = final(table[table["inputs"] == table["inputs"].iloc[0]])
        for layer, group in last.groupby("layer"):
            errors = np.log(group.pivot_table(index="seed", columns="method", values="mean_field_ratio"))
            cd, lea = errors["cd"], errors["lea-mvd"]
            low, ratio, high = np.exp(interval((lea - cd).to_numpy()))
            rows.append((data, layer, len(errors), np.exp(cd.mean()), np.exp(lea.mean()), ratio, low, high))
    return pd.DataFrame(rows, columns=["data", "layer", "runs", "cd", "lea-mvd", "ratio", "low", "high"])


def quoted_data(found: pd.DataFrame) -> dict[str, float]:
    """Return what prose quotes of `on_data`.

    Returns
    -------
    dict of str to float
        "data-bits-3-ratio" is of RBM 3 where bits are handed on, likewise all numbers of all rows; "data-rows" how many
        rows there are, and "data-above" in how many of them LEA-MVD's error is surely above that of contrastive
        divergence.
    """
    numbers = {
        f"data-{row['data']}-{row['layer']}-{number}": six_digits(row[number])
        for row in found.to_dict("records")
        for number in ("cd", "lea-mvd", "ratio", "low", "high")
    }
    return numbers | {"data-rows": len(found), "data-above": int((found["low"] > 1).sum())}


def recorded_data() -> dict[str, pd.DataFrame]:
    """Return the records of those studies on other data that are there, by profile; the study itself as "paper".

    All images are those of study A, of which the shared inputs are taken.
    """
    tables = {profile: records.recorded(name) for profile, name in recorded_names().items()}
    if "all" in tables:
        tables["all"] = tables["all"].query("inputs == 'shared'")
    return tables


def recorded_names() -> dict[str, str]:
    """Return the names of the recorded studies on images that are there, by profile."""
    names = {profile: STUDY if profile == "paper" else f"{STUDY}_{profile}" for _, profile in _OWN}
    names["all"] = STUDY_A
    return {profile: name for profile, name in names.items() if records.is_recorded(name)}


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
