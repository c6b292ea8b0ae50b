"""Tables of a study: its settings, its errors, methods at equal work; and numbers as pages show and paste them."""

import re
from itertools import pairwise

import numpy as np
import pandas as pd

from leamvd.analysis.statistics import number
from leamvd.campaign import archive
from leamvd.experiments.methods import trainer_of
from leamvd.networks.rbm import n_parameters
from leamvd.networks.torch_backend import Computation
from leamvd.studies.study import ONE_EPOCH, Study

MEASURES = {"mean_field": "mean-field", "sampled": "sampled"}
"""The errors of item E2, and what they are called."""

BUDGETS = ("iteration", "passes", "seconds")
"""Columns that count work (item E10)."""

GROUP = ["inputs", "layer", "method"]
"""Columns that tell one group of seeds from another."""

_RUN = ("study", "problem", *GROUP, "seed")

_QUOTED = {
    "error": "mean_field", "test": "test_mean_field", "sampled": "sampled", "ratio": "mean_field_ratio",
    "sampled-ratio": "sampled_ratio", "std": "input_std",
}  # fmt: skip
"""What prose quotes, and the columns."""

PAPER = ("cd", "lea-mvd", "cma-es")
"""Methods of the paper's first experiment."""

START = "start"
"""The start solution, beside the methods: what the first epoch of contrastive divergence hands to the optimizers."""

TOLD_APART = 4
"""Methods whose curves one figure can show."""


# ---- what was run


def label(study: Study, name: str, table: pd.DataFrame) -> str:
    """Return the line that stands above every figure: the data set's name, its size, and the number of runs."""
    n, side = len(study.seeds), study.side
    return f"{name}, {table['n_images'].iloc[0]:,} images of {side} x {side}, {n} run{'s'[: n > 1]}"


def setting(study: Study, name: str, table: pd.DataFrame, computation: Computation) -> pd.DataFrame:
    """Return what the study compares on what, in one column, "value": a row for each setting and for each method."""
    training, reading = study.training, study.reading
    backend, device, precision = computation
    values = {
        "data set": name,
        "training images": f"{table['n_images'].iloc[0]:,}",
        "test images": f"{table['n_test_images'].iloc[0]:,}",
        "pixels": f"{study.side} x {study.side}",
        "binarize": study.binarize,
        "layers": "-".join(map(str, study.units)),
        "variables": ", ".join(f"{n_parameters(v, h):,}" for v, h in pairwise(study.units)),
        "methods": study.methods,
        "n_gen": reading.n_gen,
        "population_size": reading.population_size,
        "n_elite": training.n_elite,
        "sigma0": training.sigma0,
        "exponent": reading.exponent,
        "x0": training.x0,
        "x0_epochs": training.x0_epochs,
        "initial_weights": training.initial_weights,
        "features": study.features,
        "dtype": training.dtype,
        "backend": f"{backend} on {device} in {precision}",
        "seeds": ", ".join(map(str, study.seeds)),
    }
    return pd.Series(values, name="value", dtype=object).explode().to_frame()


# ---- tables


def drawn(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of all methods, or of the paper's where they are more than one figure can tell apart.

    Without any of the paper's they are those of the first methods.
    """
    every = table["method"].unique()
    if len(every) <= TOLD_APART:
        return table
    few: pd.DataFrame = table[table["method"].isin([*set(every) & set(PAPER)] or every[:TOLD_APART])]
    return few


def scaled(table: pd.DataFrame, measure: str) -> pd.Series:
    """Return a column for reading: an error per 10,000 images, everything else as it is."""
    if measure.removeprefix("test_") not in MEASURES:
        return table[measure]
    return 1e4 * table[measure] / table["n_test_images" if measure.startswith("test_") else "n_images"]


def runs(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure over every run, see `scaled`: inputs, layer, method, seed, iteration, and the value."""
    return table[[*GROUP, "seed", "iteration"]].assign(value=scaled(table, measure))


def last(table: pd.DataFrame, step: str = "iteration") -> pd.DataFrame:
    """Return the last row of every run, by a column that counts; runs may differ in how far they went."""
    run = [name for name in _RUN if name in table]
    ends: pd.DataFrame = table[table[step] == table.groupby(run)[step].transform("max")]
    return ends


def final_means(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over runs, at the last iteration of each method, layer and kind of inputs.

    A ratio to the constant image's error above 1 is worse than having learned nothing but the mean.
    """
    ends = last(table)
    columns = {
        "input std": ends["input_std"],
        "constant": scaled(ends, "mean_field") / ends["mean_field_ratio"],
        "mean-field": scaled(ends, "mean_field"),
        "test mean-field": scaled(ends, "test_mean_field"),
        "sampled": scaled(ends, "sampled"),
        "test sampled": scaled(ends, "test_sampled"),
        "mean-field ratio": ends["mean_field_ratio"],
        "sampled ratio": ends["sampled_ratio"],
    }
    return ends[GROUP].assign(**columns).groupby(GROUP, sort=False).mean()


def left_start(table: pd.DataFrame) -> pd.DataFrame:
    """Return in how many of its `runs` each search ever `left` its start, by inputs, layer and method.

    It has left where its error was ever below that of iteration 0. So a search that has its start in no population, and
    only gets worse, has not. Contrastive divergence does not search, nor does `START`.
    """
    searches = table[~table["method"].map(trainer_of).isin(["cd", START])]
    left = (left_at(searches, "mean_field", [*GROUP, "seed"]) < np.inf).groupby(level=GROUP, sort=False)
    return pd.DataFrame({"left": left.sum(), "runs": left.size()})


def left_at(table: pd.DataFrame, value: str, run: list[str]) -> pd.Series:
    """Return the first iteration in which each run's value is below that of iteration 0, infinite where it never is."""
    start = table[table["iteration"] == 0].set_index(run)[value].rename("start")
    lower = table.join(start, on=run).query(f"{value} < start").groupby(run)["iteration"].min()
    return lower.reindex(start.index).fillna(np.inf)


def with_start(table: pd.DataFrame, name: str = "") -> pd.DataFrame:
    """Return the table with the start solution as a method, `START`, before the others of its inputs and layer.

    It is where LEA-MVD begins. That does not hold on own inputs above a layer that a search of LEA-MVD has changed,
    since a stack of start solutions makes other features. The start is there only if the study `name` is recorded with
    controls, of which it is one.
    """
    search = table[table["method"] == "lea-mvd"]
    left = left_start(search).query("inputs == 'own' and left > 0").index.get_level_values("layer").min()
    begins = search[(search["iteration"] == 0) & ((search["inputs"] != "own") | ~(search["layer"] > left))]
    if archive.exists(f"{name}_controls"):
        controls = archive.read(f"{name}_controls")
        above = controls[(controls["method"] == ONE_EPOCH) & (controls["layer"] > left)]
        begins = pd.concat([begins, last(above[above["inputs"].isin(table["inputs"])])])
    both: pd.DataFrame = pd.concat([begins.assign(method=START), table])
    return both.sort_values(["inputs", "layer"], kind="stable", ignore_index=True)


def at_equal(table: pd.DataFrame, budget: str) -> pd.DataFrame:
    """Return the last iteration of every run within the budget that all methods of its layer and inputs have spent."""
    spent = table.groupby(GROUP)[budget].transform("max")
    least = spent.groupby([table["inputs"], table["layer"]]).transform("min")
    return last(table[table[budget] <= least])


def equal(table: pd.DataFrame, measure: str = "mean_field") -> pd.DataFrame:
    """Return what was reached within equal `BUDGETS`: means over runs of a measure, see `scaled`, by method."""
    ends = {budget: at_equal(table, budget) for budget in BUDGETS}
    both = pd.concat([end.assign(equal=budget, value=scaled(end, measure)) for budget, end in ends.items()])
    means = both.groupby(["inputs", "layer", "equal", "method"], sort=False)["value"].mean()
    return means.unstack(sort=False).rename_axis(columns=None)[list(table["method"].unique())]


# ---- numbers for pages


def quoted(table: pd.DataFrame) -> dict[str, float | str]:
    """Return the means over runs, at their last iterations, that prose may quote.

    "cd-3-error" and the rest of `_QUOTED` are of RBM 3 on the first kind of inputs, "shared-cd-3-error" of shared
    ones, "start-3-error" of `START`, "start-cd-3-error" of iteration 0, and "passes-cd-3" is the error at equal passes
    on the last kind of inputs. "lea-mvd-2-left" is how many runs of a search have `left_start`; "searches" are all
    those of LEA-MVD, "improved" how many of them have.
    """
    methods, kinds = table[table["method"] != START], table["inputs"].unique()
    work = equal(methods).loc[kinds[-1]].stack().reorder_levels([1, 2, 0])
    found, first = quote("", work.to_frame("")), kinds[0]
    for prefix, rows in {"": last(table), "start": methods[methods["iteration"] == 0]}.items():
        columns = {name: scaled(rows, column) for name, column in _QUOTED.items()}
        named = rows[["method", "layer"]].assign(inputs=rows["inputs"].replace(first, ""), **columns)
        found |= quote(prefix, named.groupby(["inputs", "method", "layer"], sort=False).mean())
    left = left_start(table)
    found |= quote("", left[["left"]].rename({first: ""}, level="inputs").swaplevel("layer", "method"))
    own = left.reset_index().query("method == 'lea-mvd' and (inputs == @first or layer > 1)")  # RBM 1 has one kind
    return found | {"searches": int(own["runs"].sum()), "improved": int(own["left"].sum())}


def quote(prefix: str, table: pd.DataFrame) -> dict[str, float | str]:
    """Return what a table holds as pages paste it: real numbers with six significant digits; NaN has no key.

    The key of a number consists of the prefix, the words of its index and its column, in small letters with hyphens
    between them, "longer-rbm-1-cma-es-ratio" say.
    """
    return {
        "-".join(word for name in (prefix, *row, column) if (word := _word(name))): value
        for row, values in zip(table.index.to_frame().itertuples(index=False), table.to_dict("records"), strict=True)
        for column, number in values.items()
        if not pd.isna(value := six_digits(number) if isinstance(number, float) else number)
    }


def _word(name: object) -> str:
    return re.sub(r"[^\w.]+", "-", str(name)).strip("-").lower()


def format_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table to be shown: numbers as text of three significant digits, rows without a name unnumbered."""
    real = {str(name): table[name].map(number) for name in table.select_dtypes("float")}
    whole = {str(name): table[name].map("{:,}".format) for name in table.select_dtypes("integer")}
    shown = table.assign(**real, **whole)
    return shown.set_axis([""] * len(shown)) if isinstance(shown.index, pd.RangeIndex) else shown


def six_digits(value: float) -> float:
    """Return a number rounded to six significant digits: what processors agree on, so what a page may paste."""
    return float(f"{value:.6g}")
