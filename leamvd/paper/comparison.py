"""What a study's records say: tables, comparisons of methods, what each method needs, and pictures."""

import dataclasses
import time
import tracemalloc
import warnings
from collections.abc import Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from leamvd.networks import dbn
from leamvd.networks.rbm import n_parameters
from leamvd.paper import records, studies
from leamvd.paper.datasets import Dataset

MEASURES = {"mean_field": "mean-field", "sampled": "sampled"}
"""The errors of item E2, and what they are called."""

COMPARISON = ["inputs", "layer", "method", "baseline", "measure", "runs", "wins", "ratio", "p"]
"""Columns of a comparison of two methods."""

_RUN = ["inputs", "layer", "method", "seed"]
_GROUP = ["inputs", "layer", "method"]


# ---- what was run


def label(study: studies.Study, data: Dataset) -> str:
    """Return the line that stands above every figure: the data set, its size, and the number of runs."""
    n = len(study.seeds)
    band = "" if n == 1 else f" (line: mean, band: {'smallest to largest' if n < 5 else 'quartiles'})"
    return f"{data.name}, {len(data.train):,} images of {data.side} x {data.side}, {n} run{'s'[: n > 1]}{band}"


def setting(study: studies.Study, data: Dataset) -> pd.DataFrame:
    """Return what the study compares on what, in one column, "value": a row for each setting and for each method."""
    training, reading = study.training, study.reading
    backend, device, precision = training.computation
    values = {
        "data set": data.name,
        "training images": f"{len(data.train):,}",
        "test images": f"{len(data.test):,}",
        "pixels": f"{data.side} x {data.side}",
        "binarize": study.binarize,
        "layers": "-".join(map(str, [data.side**2, *study.layers])),
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


def smaller(study: studies.Study) -> studies.Study:
    """Return the study of 7 x 7 pixels with the same budget, on the first kind of inputs, for the claim C9."""
    layers = studies.STUDIES["mnist-7x7", "paper"].layers[: len(study.layers)]
    return dataclasses.replace(study, side=7, layers=layers, inputs=study.inputs[:1])


# ---- tables


def bands(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the mean of a measure over runs and a band around it, by kind of inputs, layer, method and iteration.

    Parameters
    ----------
    table : DataFrame
        Records.
    measure : str
        One of their columns.

    Returns
    -------
    DataFrame
        Columns inputs, layer, method, iteration, passes, seconds (means), mean, and low and high: the ends of the
        interquartile range, or of fewer than five runs the smallest and the largest.
    """
    tail = 0.0 if table["seed"].nunique() < 5 else 0.25
    groups = table.groupby([*_GROUP, "iteration"], sort=False)
    columns = {name: groups[name].mean() for name in ("passes", "seconds")}
    ends = {name: groups[measure].quantile(q) for name, q in (("low", tail), ("high", 1 - tail))}
    return pd.DataFrame(columns | {"mean": groups[measure].mean()} | ends).reset_index()


def final(table: pd.DataFrame) -> pd.DataFrame:
    """Return the last iteration of every run; methods may have run for different numbers of iterations."""
    last: pd.DataFrame = table[table["iteration"] == table.groupby(_RUN)["iteration"].transform("max")]
    return last


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Return medians over runs, at the last iteration of each method, layer and kind of inputs.

    The columns: the mean standard deviation of the layer's inputs; per image, the error of the constant image (their
    mean) and both measures of the error; both measures as ratios to the constant image's, on training images and on
    test images. A ratio above 1 is worse than having learned nothing but the mean.
    """
    last = final(table)
    per_image = last[list(MEASURES)].div(last["n_images"], axis=0)
    columns = {
        "input std": last["input_std"],
        "constant": per_image["mean_field"] / last["mean_field_ratio"],
        "mean-field": per_image["mean_field"],
        "sampled": per_image["sampled"],
        "mean-field ratio": last["mean_field_ratio"],
        "sampled ratio": last["sampled_ratio"],
        "test mean-field ratio": last["test_mean_field_ratio"],
        "test sampled ratio": last["test_sampled_ratio"],
    }
    return last[_GROUP].assign(**columns).groupby(_GROUP, sort=False).median()


def quoted(table: pd.DataFrame) -> dict[str, float]:
    """Return the medians that prose quotes, with the first kind of inputs, NaN for what was not run.

    Returns
    -------
    dict of str to float
        "cd-3-ratio" is the mean-field ratio of contrastive divergence in RBM 3, "cd-3-test" that of the test images,
        "cd-3-std" the standard deviation of its inputs; likewise "lea-mvd-3-ratio" and so on, and RBM 1.
    """
    rows = summary(table[table["inputs"] == table["inputs"].iloc[0]]).droplevel("inputs")
    rows = rows.reindex(pd.MultiIndex.from_product([(1, 3), ("cd", "lea-mvd")], names=rows.index.names))
    columns = {"ratio": "mean-field ratio", "test": "test mean-field ratio", "std": "input std"}
    return {
        f"{method}-{layer}-{name}": six_digits(rows.loc[(layer, method), column])
        for (layer, method), (name, column) in product(rows.index, columns.items())
    }


def compare(table: pd.DataFrame, method: str, baseline: str, measure: str = "mean_field") -> pd.DataFrame:
    """Compare two methods' final errors, paired over seeds.

    Parameters
    ----------
    table : DataFrame
        Records.
    method, baseline : str
        As in the column "method".
    measure : str
        Column that is compared, lower is better.

    Returns
    -------
    DataFrame
        A row for each kind of inputs and layer: method, baseline, measure, number of runs, how many of them `method`
        wins, the median ratio of its error to the baseline's, and the two-sided p-value of Wilcoxon's signed-rank test
        (NaN for a single run, or where all are equal). None where one of the methods was not run.
    """
    last = final(table)
    rows = []
    for (inputs, layer), group in last[last["method"].isin([method, baseline])].groupby(
        ["inputs", "layer"], sort=False
    ):
        pair = group.pivot_table(index="seed", columns="method", values=measure)
        if pair.shape[1] < 2:
            continue
        a, b = pair[method].to_numpy(), pair[baseline].to_numpy()
        untested = len(pair) == 1 or np.array_equal(a, b)
        p = np.nan if untested else float(stats.wilcoxon(a, b).pvalue)
        rows.append(
            (inputs, layer, method, baseline, measure, len(pair), int((a < b).sum()), float(np.median(a / b)), p)
        )
    return pd.DataFrame(rows, columns=COMPARISON)


def versus(table: pd.DataFrame, pairs: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Return `compare` for several pairs on all layers but the first, in both measures, p corrected by Holm."""
    upper = table[table["layer"] > 1]
    parts = [compare(upper, *pair, measure) for measure, pair in product(MEASURES, pairs)]
    rows = pd.concat(parts, ignore_index=True)
    return rows.assign(p=holm(rows["p"].to_numpy(dtype=float)))


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
        A row for each layer: n, the generations between two decompositions as pycma says, and how many fit.
    """
    import cma  # takes half a second

    rows = []
    for layer, n in enumerate(_variables(study), start=1):
        options = {"popsize": study.reading.population_size, "verbose": -9, "verb_log": 0, "seed": np.nan}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gap = cma.CMAEvolutionStrategy(np.zeros(n), 1.0, options).sm.lazy_update_gap
        wait = max(1, int(np.ceil(gap)))
        rows.append((layer, n, gap, (study.reading.n_gen - 1) // wait))
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


# ---- pictures


def reconstructions(study: studies.Study, output: str | Path, data: Dataset) -> dict[str, NDArray[Any]]:
    """Return test images, one of each class, and what the layers of the first seed, on own inputs, leave of them.

    Returns
    -------
    dict of str to ndarray, shape (classes, side, side)
        The originals, then for each method what comes back from the first layer, and from the whole stack.
    """
    chosen = np.unique(data.test_labels, return_index=True)[1][:10]
    rows = {"original": data.test[chosen]}
    depths = sorted({1, len(study.layers)} if "own" in study.inputs else {1})
    for method, depth in product(study.methods, depths):
        name = f"{method}, RBM 1" if depth == 1 else f"{method}, all {depth}"
        rows[name] = dbn.reconstruct(records.stack(study, output, method, study.seeds[0], depth), rows["original"])
    return {name: V.reshape(-1, data.side, data.side) for name, V in rows.items()}


def filters(study: studies.Study, output: str | Path, data: Dataset) -> dict[str, NDArray[Any]]:
    """Return the weights of the first ten hidden units of the first layer as images, shape (10, side, side) a method.

    They are divided by the largest absolute weight among them.
    """
    rows = {}
    for method in study.methods:
        (rbm,) = records.stack(study, output, method, study.seeds[0], 1)
        W = rbm.W[:, :10].T
        rows[method] = (W / np.abs(W).max()).reshape(-1, data.side, data.side)
    return rows


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
