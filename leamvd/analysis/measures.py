"""Controls of what the error measures: the paper's comparison in units that layers and measures share."""

import pandas as pd

from leamvd.analysis.comparison import GROUP, last, quote, six_digits
from leamvd.analysis.costs import timed
from leamvd.analysis.statistics import summarize


def paths(table: pd.DataFrame) -> pd.DataFrame:
    """Return both measures over the run as ratios to the constant image's error: means over runs.

    Contrastive divergence begins with its first epoch, which is where the optimizers start; its random weights are off
    any scale.
    """
    shown = table[(table["iteration"] > 0) | ~table["method"].str.startswith("cd")]
    return shown.groupby([*GROUP, "iteration"], sort=False)[["mean_field_ratio", "sampled_ratio"]].mean().reset_index()


def explained(table: pd.DataFrame) -> pd.DataFrame:
    """Return last errors in units that can be compared from layer to layer: means over runs.

    Errors are per image; explained is which percentage of the inputs' variance, 100 (1 - error / constant's error).
    """
    ends = last(table)
    error = ends["mean_field"] / ends["n_images"]
    columns = {
        "input_std": ends["input_std"],
        "constant": error / ends["mean_field_ratio"],
        "error": error,
        "error per unit": error / ends["n_visible"],
        "% explained": 100 * (1 - ends["mean_field_ratio"]),
        "% explained, sampled": 100 * (1 - ends["sampled_ratio"]),
    }
    rows = ends[GROUP].assign(**columns)
    intervals = summarize(rows, "error", GROUP)[["low", "high"]]
    return rows.groupby(GROUP, sort=False).mean().reset_index().join(intervals)


def generation_in_epochs(objectives: pd.DataFrame, training: pd.DataFrame) -> float:
    """Return how many epochs of contrastive divergence take as long as a later generation of LEA-MVD's defaults.

    In RBM 1 of 28 x 28 pixels, by the bench's tables.
    """
    shape = pd.DataFrame(
        {"n_visible": 784, "n_hidden": 500, "n_images": 1, "evaluations": [20, 0], "products": [40, 5]}
    )
    generation, epoch = timed(shape, objectives, training)["seconds"]
    return six_digits(generation / epoch)


def quoted(table: pd.DataFrame, won: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes: means of RBM 3, "lea-mvd-shared-explained" say, and what the weights that win win.

    Of `collapse`, the largest scale first, "won-error" is the error of the smallest weights, "won-accuracy" and
    "won-above" their accuracies in percent, and "won-cd" the error of contrastive divergence with the largest.
    """
    rows = explained(table).set_index(GROUP)
    columns = {"% explained": "explained", "% explained, sampled": "sampled", "input_std": "std"}
    rows = rows.rename(columns=columns).reset_index().query("layer == 3").set_index(["method", "inputs"])
    rows = rows.rename(index={"lea-mvd:x0-excluded": "x0-excluded"})
    smallest, cd = won.iloc[-1], won["cd error"].iloc[0]
    values = {"error": smallest["error"], "cd": cd}
    values |= {"accuracy": 100 * smallest["accuracy"], "above": 100 * smallest["accuracy above"]}
    shown = rows[["error", "constant", "std", "explained", "sampled"]]
    return quote("", shown) | {f"won-{name}": six_digits(value) for name, value in values.items()}
