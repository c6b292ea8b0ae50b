"""Costs of methods: seconds by count, and growth with the number of variables."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

COSTS = {"time": "generation_seconds", "memory": "peak_bytes"}
"""Costs that grow with the number of variables, and their columns in the bench's table of optimizers."""

LARGE = 10_000
"""Variables from which linear growth counts: with fewer, what a call costs at any size tells."""

_PRODUCTS = 5
"""Matrix products of images and weights in an epoch of CD-1, which the bench has timed; an evaluation makes two."""


# ---- seconds by count


def timed(table: pd.DataFrame, objectives: pd.DataFrame, training: pd.DataFrame) -> pd.DataFrame:
    """Return rows whose seconds are counts of evaluations and epochs times what the bench measured of each.

    The bench's numbers are those of one thread and float32. For a layer between its sizes v h an evaluation is
    interpolated, in logarithms, and so is the ratio of an epoch to an evaluation; beyond them both stay as they are.
    An epoch of CD-k takes as long as its matrix products, of which the bench has timed those of CD-1. What an optimizer
    needs for itself is not among the seconds.
    """
    own = objectives.query("backend == 'numpy' and precision == 'float32' and threads == 1 and status == 'ok'")
    epochs = training.query("trainer == 'leamvd' and threads == 1")
    sizes, seconds = _per_image(own, own["seconds"] / own["population_size"])
    trained, epoch_seconds = _per_image(epochs, epochs["seconds"])
    size = np.log(table["n_visible"] * table["n_hidden"])
    evaluation = np.exp(np.interp(size, sizes, seconds))
    epoch = evaluation * np.exp(np.interp(size, trained, epoch_seconds - np.interp(trained, sizes, seconds)))
    trainings = (table["products"] - 2 * table["evaluations"]) / _PRODUCTS  # an epoch of CD-k is one of CD-1 or more
    work = table["evaluations"] * evaluation + trainings * epoch
    return table.assign(seconds=table["n_images"] * work)


def _per_image(rows: pd.DataFrame, seconds: pd.Series) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the logarithms of v h, in ascending order, and of the seconds for one image."""
    size = np.log((rows["n_visible"] * rows["n_hidden"]).to_numpy(dtype=float))
    order = np.argsort(size)
    return size[order], np.log((seconds / rows["n_images"]).to_numpy(dtype=float))[order]


# ---- how costs grow


def growth(optimizers: pd.DataFrame, at_least: int = LARGE) -> pd.DataFrame:
    """Return the slopes of time and memory of each method and dtype on one thread, of sizes from `at_least` on."""
    rows = optimizers[(optimizers["status"] == "ok") & (optimizers["threads"] == 1) & (optimizers["n"] >= at_least)]
    fits = {name: slopes(rows, ["method", "dtype"], column) for name, column in COSTS.items()}
    found = pd.concat(fits, names=["cost", None]).reset_index("cost")
    return found[["method", "dtype", "cost", "sizes", "from n", "to n", "slope"]]


def slopes(table: pd.DataFrame, by: Sequence[str], cost: str) -> pd.DataFrame:
    """Fit how a cost grows with the number of variables n, for each group: least squares of their logarithms.

    A slope of 1 is linear, of 2 quadratic; NaN where there are fewer than two sizes. A cost that is not positive is no
    point of its line.
    """
    rows = []
    for names, line in table[table[cost] > 0].groupby(list(by), sort=False):
        n, sizes = line["n"].to_numpy(dtype=float), line["n"].nunique()
        slope = np.polyfit(np.log(n), np.log(line[cost].to_numpy(dtype=float)), 1)[0] if sizes > 1 else np.nan
        rows.append((*names, sizes, int(n.min()), int(n.max()), float(slope)))
    return pd.DataFrame(rows, columns=[*by, "sizes", "from n", "to n", "slope"])
