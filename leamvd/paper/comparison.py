"""What a study's records say: tables, comparisons of methods, and what each method needs."""

import time
import tracemalloc
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leamvd.networks.rbm import n_parameters
from leamvd.networks.torch_backend import Computation
from leamvd.optimizers.cma_es import CMAES
from leamvd.paper import studies

MEASURES = {"mean_field": "mean-field", "sampled": "sampled"}
"""The errors of item E2, and what they are called."""

_RUN = ["inputs", "layer", "method", "seed"]
_GROUP = ["inputs", "layer", "method"]


BUDGETS = ("iteration", "passes", "seconds")
"""Columns of records that count work (item E10)."""

_NAMES = {
    "error": "mean_field", "test": "test_mean_field", "sampled": "sampled", "ratio": "mean_field_ratio",
    "sampled-ratio": "sampled_ratio", "std": "input_std",
}  # fmt: skip
"""Of what prose quotes, and the columns."""

# ---- what was run


def label(study: studies.Study, name: str, table: pd.DataFrame) -> str:
    """Return the line that stands above every figure: the data set's name, its size, and the number of runs."""
    n, side = len(study.seeds), study.side
    return f"{name}, {table['n_images'].iloc[0]:,} images of {side} x {side}, {n} run{'s'[: n > 1]}"


def setting(study: studies.Study, name: str, table: pd.DataFrame, computation: Computation) -> pd.DataFrame:
    """Return what the study compares on what, in one column, "value": a row for each setting and for each method."""
    training, reading = study.training, study.reading
    backend, device, precision = computation
    values = {
        "data set": name,
        "training images": f"{table['n_images'].iloc[0]:,}",
        "test images": f"{table['n_test_images'].iloc[0]:,}",
        "pixels": f"{study.side} x {study.side}",
        "binarize": study.binarize,
        "layers": "-".join(map(str, [study.side**2, *study.layers])),
        "variables": ", ".join(f"{n:,}" for n in _variables(study)),
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


def scaled(table: pd.DataFrame, measure: str) -> pd.Series:
    """Return a column of records for reading: an error per 10,000 images, everything else as it is."""
    if measure.removeprefix("test_") not in MEASURES:
        return table[measure]
    return 1e4 * table[measure] / table["n_test_images" if measure.startswith("test_") else "n_images"]


def runs(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a measure over every run, see `values`: inputs, layer, method, seed, iteration, and the value."""
    return table[[*_RUN, "iteration"]].assign(value=scaled(table, measure))


def final(table: pd.DataFrame) -> pd.DataFrame:
    """Return the last iteration of every run; methods may have run for different numbers of iterations."""
    last: pd.DataFrame = table[table["iteration"] == table.groupby(_RUN)["iteration"].transform("max")]
    return last


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over runs, at the last iteration of each method, layer and kind of inputs.

    The columns: the mean standard deviation of the layer's inputs; per 10,000 images, the error of the constant image
    (their mean) and both measures of the error, on training and on test images; and both measures on training images
    as ratios to the constant image's. A ratio above 1 is worse than having learned nothing but the mean.
    """
    last = final(table)
    columns = {
        "input std": last["input_std"],
        "constant": scaled(last, "mean_field") / last["mean_field_ratio"],
        "mean-field": scaled(last, "mean_field"),
        "test mean-field": scaled(last, "test_mean_field"),
        "sampled": scaled(last, "sampled"),
        "test sampled": scaled(last, "test_sampled"),
        "mean-field ratio": last["mean_field_ratio"],
        "sampled ratio": last["sampled_ratio"],
    }
    return last[_GROUP].assign(**columns).groupby(_GROUP, sort=False).mean()


def at_equal(table: pd.DataFrame, budget: str) -> pd.DataFrame:
    """Return the last iteration of every run within what all methods of its layer and inputs have spent.

    Parameters
    ----------
    table : DataFrame
        Records.
    budget : {"iteration", "passes", "seconds"}
        What is spent.
    """
    spent = table.groupby(_GROUP)[budget].transform("max")
    least = spent.groupby([table["inputs"], table["layer"]]).transform("min")
    return final(table[table[budget] <= least])


def equal(table: pd.DataFrame, measure: str = "mean_field") -> pd.DataFrame:
    """Return what was reached after equal iterations, passes and seconds, means over runs.

    Parameters
    ----------
    table : DataFrame
        Records.
    measure : str
        Column that is compared, see `scaled`.

    Returns
    -------
    DataFrame
        A row for each kind of inputs, layer and budget, a column for each method.
    """
    ends = {budget: at_equal(table, budget) for budget in BUDGETS}
    both = pd.concat([end.assign(equal=budget, value=scaled(end, measure)) for budget, end in ends.items()])
    means = both.groupby(["inputs", "layer", "equal", "method"], sort=False)["value"].mean()
    return means.unstack(sort=False).rename_axis(columns=None)[list(table["method"].unique())]


def timed(table: pd.DataFrame, objectives: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    """Return records whose seconds are counts of evaluations and epochs times what the bench measured of each.

    The bench's numbers are those of one thread and float32. For a layer between its sizes v h an evaluation is
    interpolated, in logarithms, and so is the ratio of an epoch to an evaluation; beyond them both stay as they are.
    What an optimizer needs for itself is not among the seconds.

    Parameters
    ----------
    table : DataFrame
        Records.
    objectives, training : DataFrame
        Of the bench, see `leamvd.bench.networks.COLUMNS`.
    """
    own = objectives.query("backend == 'numpy' and precision == 'float32' and threads == 1 and status == 'ok'")
    epochs = training.query("trainer == 'leamvd' and threads == 1")
    sizes, seconds = _per_image(own, own["seconds"] / own["population_size"])
    trained, epoch_seconds = _per_image(epochs, epochs["seconds"])
    size = np.log(table["n_visible"] * table["n_hidden"])
    evaluation = np.exp(np.interp(size, sizes, seconds))
    epoch = evaluation * np.exp(np.interp(size, trained, epoch_seconds - np.interp(trained, sizes, seconds)))
    work = table["evaluations"] * evaluation + (table["passes"] - table["evaluations"]) * epoch
    return table.assign(seconds=table["n_images"] * work)


def _per_image(rows: pd.DataFrame, seconds: pd.Series) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of v h, in ascending order, and of the seconds for one image."""
    size = np.log((rows["n_visible"] * rows["n_hidden"]).to_numpy(dtype=float))
    order = np.argsort(size)
    return size[order], np.log((seconds / rows["n_images"]).to_numpy(dtype=float))[order]


def quoted(table: pd.DataFrame) -> dict[str, float]:
    """Return the means over runs, at their last iterations, that prose may quote.

    Returns
    -------
    dict of str to float
        "cd-3-error" is the mean-field error per 10,000 training images of contrastive divergence in RBM 3 on the first
        kind of inputs, "cd-3-test" that on test images, "cd-3-sampled" the sampled error, "cd-3-ratio" and
        "cd-3-sampled-ratio" the ratios to the constant image, "cd-3-std" the standard deviation of its inputs; likewise
        other methods and layers, "shared-cd-3-error" and so on, on shared inputs, and "start-cd-3-error" and so on, at
        iteration 0.
    """
    found = {}
    for begin, rows in (("", final(table)), ("start-", table[table["iteration"] == 0])):
        for (inputs, layer, method), cell in rows.groupby(_GROUP, sort=False):
            kind = "" if inputs == table["inputs"].iloc[0] else f"{inputs}-"
            for name, column in _NAMES.items():
                found[f"{begin}{kind}{method}-{layer}-{name}"] = six_digits(scaled(cell, column).mean())
    return found


def holm(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return p-values, shape (m,), corrected by Holm's step-down method; NaN is no test and stays."""
    adjusted = np.full(len(p), np.nan)
    order = np.argsort(p)[: int((~np.isnan(p)).sum())]  # NaN sorts last
    scaled = p[order] * np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return adjusted


def format_table(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table to be shown: numbers as text of three significant digits, rows without a name unnumbered."""
    real = {str(name): table[name].map(number) for name in table.select_dtypes("float")}
    whole = {str(name): table[name].map("{:,}".format) for name in table.select_dtypes("integer")}
    shown = table.assign(**real, **whole)
    return shown.set_axis([""] * len(shown)) if isinstance(shown.index, pd.RangeIndex) else shown


def six_digits(value: float) -> float:
    """Return a number rounded to six significant digits: what processors agree on, so what a page may paste."""
    return float(f"{value:.6g}")


def number(value: float) -> str:
    """Return three significant digits, with separators between thousands; a dash for NaN."""
    return f"{float(f'{value:.3g}'):,.12g}" if np.isfinite(value) else "–"


# ---- what a method needs beside the objective


def memory(study: studies.Study) -> pd.DataFrame:
    """Return what each optimizer needs on each layer, the objective excluded: three generations of it.

    Returns
    -------
    DataFrame
        A row for each layer and optimizer of the study: the number of variables n, the peak of NumPy's memory in MB
        (tracemalloc), that peak in populations of float64 (population_size n 8 bytes), and milliseconds for the
        fastest generation.
    """
    rows = []
    for layer, n in enumerate(_variables(study), start=1):
        for method in study.methods:
            if method.partition(":")[0] == "cd":
                continue
            tracemalloc.start()
            try:
                _generations(study, method, n)
                peak = tracemalloc.get_traced_memory()[1]
            finally:
                tracemalloc.stop()
            seconds = min(_generations(study, method, n))  # untraced
            population = 8 * n * study.reading.population_size
            rows.append((layer, method, n, peak / 1e6, peak / population, 1e3 * seconds))
    columns = ["layer", "method", "variables", "peak MB", "peak / float64 population", "ms a generation"]
    return pd.DataFrame(rows, columns=columns)


def decompositions(study: studies.Study) -> pd.DataFrame:
    """Return how often CMA-ES can decompose its covariance matrix within the study's generations.

    pycma samples from the last decomposition, and makes a new one only after 1 / (10 n (c_1 + c_mu)) generations: until
    the first one it samples from a sphere, whatever the matrix has learned.

    Returns
    -------
    DataFrame
        A row for each layer: n, the generations from one decomposition to the next, and how many fit.
    """
    rows = []
    for layer, n in enumerate(_variables(study), start=1):
        gap = CMAES(np.zeros(n), population_size=study.reading.population_size, seed=0).decomposition_gap
        rows.append((layer, n, gap, (study.reading.n_gen - 1) // gap))
    return pd.DataFrame(rows, columns=["layer", "variables", "gap", "decompositions"])


def _variables(study: studies.Study) -> list[int]:
    sizes = [study.side**2, *study.layers]
    return [n_parameters(v, h) for v, h in pairwise(sizes)]


def _generations(study: studies.Study, method: str, n: int) -> list[float]:
    """Return the seconds of each of three generations; the values do not depend on the candidates."""
    reading = study.reading_of(method)
    values = np.arange(reading.population_size, dtype=float)
    opt = study.training_of(method).optimizer(method.partition(":")[0], np.zeros(n), reading=reading, seed=0)
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        X = opt.ask()
        opt.tell(X, values[: len(X)])
        seconds.append(time.perf_counter() - start)
    return seconds


# ---- how costs grow


def slopes(table: pd.DataFrame, by: Sequence[str], cost: str) -> pd.DataFrame:
    """Fit how a cost grows with the number of variables: least squares of their logarithms.

    Parameters
    ----------
    table : DataFrame
        With the columns n, `by` and `cost`.
    by : sequence of str
        Columns that tell one line from another.
    cost : str
        What grows; a row in which it is not positive is no point of its line.

    Returns
    -------
    DataFrame
        A row for each line: `by`; sizes, the numbers of variables that it rests on; the smallest and the largest of
        them; and its slope (1: linear, 2: quadratic), NaN where there are fewer than two.
    """
    rows = []
    for names, line in table[table[cost] > 0].groupby(list(by), sort=False):
        n, sizes = line["n"].to_numpy(dtype=float), line["n"].nunique()
        slope = np.polyfit(np.log(n), np.log(line[cost].to_numpy(dtype=float)), 1)[0] if sizes > 1 else np.nan
        rows.append((*names, sizes, int(n.min()), int(n.max()), float(slope)))
    return pd.DataFrame(rows, columns=[*by, "sizes", "from n", "to n", "slope"])
