"""What the error measures: controls that lie beside the paper's comparison, and weights that win by it for nothing."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit

from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import reconstruct
from leamvd.networks.objective import reconstruction_errors
from leamvd.networks.rbm import RBM
from leamvd.paper import intervals, records
from leamvd.paper.comparison import at_equal, final, six_digits, timed
from leamvd.paper.datasets import Dataset

_GROUP = ["inputs", "layer", "method"]


# ---- what is shown


def lead(
    names: dict[str, str], own: pd.DataFrame, data: str
) -> tuple[dict[str, pd.DataFrame], dict[str, str], pd.DataFrame]:
    """Return the recorded runs that lead a page, or a run of one's own in the place of those not recorded yet.

    Parameters
    ----------
    names : dict of str to str
        What each recorded study is called on the page, and in ``notebooks/recorded``.
    own : DataFrame
        Records of the run of one's own.
    data : str
        Its data set.

    Returns
    -------
    tables, titles : dict
        Records by what they are called, and the line that stands above their figures; "this run" is `own`.
    overview : DataFrame
        A row for each: the name of the record, or that there is none; its data set, images, pixels and runs.
    """
    tables, titles, rows = {}, {}, []
    for called, name in (names | {"this run": ""}).items():
        recorded = bool(name) and records.is_recorded(name)
        table, dataset = (records.recorded(name), "MNIST") if recorded else (own, data)
        first = table.query("layer == 1").iloc[0]
        side, runs, images = math.isqrt(first["n_visible"]), table["seed"].nunique(), f"{first['n_images']:,}"
        titles[called] = f"{dataset}, {images} images of {side} x {side}, {runs} run{'s'[: runs > 1]}"
        tables[called] = table
        source = f"recorded as {name}" if recorded else f"{name} is not recorded yet: this run" if name else "this run"
        rows.append((called, source, dataset, images, f"{side} x {side}", runs))
    overview = pd.DataFrame(rows, columns=["", "shown", "data set", "images", "pixels", "runs"]).set_index("")
    return tables, titles, overview


# ---- controls, from records


def paths(table: pd.DataFrame) -> pd.DataFrame:
    """Return both measures over the run as ratios to the constant image's error: means over runs.

    Contrastive divergence begins with its first epoch, which is where the optimizers start; its random weights are off
    any scale.

    Returns
    -------
    DataFrame
        A row for each kind of inputs, layer, method and iteration, with mean_field_ratio and sampled_ratio.
    """
    shown = table[(table["iteration"] > 0) | ~table["method"].str.startswith("cd")]
    return shown.groupby([*_GROUP, "iteration"], sort=False)[["mean_field_ratio", "sampled_ratio"]].mean().reset_index()


def explained(table: pd.DataFrame) -> pd.DataFrame:
    """Return final errors in units that can be compared from layer to layer: means over runs.

    Returns
    -------
    DataFrame
        A row for each kind of inputs, layer and method: the mean standard deviation of the inputs; per image the error
        of the constant image and the mean-field error, with the ends of its 95 % interval, low and high; the error per
        visible unit; and the percentage of the inputs' variance that is explained, 100 (1 - error / constant's error),
        by either measure.
    """
    last = final(table)
    error = last["mean_field"] / last["n_images"]
    columns = {
        "input_std": last["input_std"],
        "constant": error / last["mean_field_ratio"],
        "error": error,
        "error per unit": error / last["n_visible"],
        "% explained": 100 * (1 - last["mean_field_ratio"]),
        "% explained, sampled": 100 * (1 - last["sampled_ratio"]),
    }
    groups = last[_GROUP].assign(**columns).groupby(_GROUP, sort=False)
    ends = pd.DataFrame({cell: intervals.interval(values.to_numpy())[::2] for cell, values in groups["error"]})
    return groups.mean().assign(**dict(zip(("low", "high"), ends.to_numpy(), strict=True))).reset_index()


def generation_in_epochs(objectives: pd.DataFrame, training: pd.DataFrame) -> float:
    """Return how many epochs of contrastive divergence take as long as a later generation of LEA-MVD's defaults.

    In RBM 1 of 28 x 28 pixels, by the bench's tables.
    """
    shape = pd.DataFrame({"n_visible": 784, "n_hidden": 500, "n_images": 1, "evaluations": [20, 0], "passes": [20, 1]})
    generation, epoch = timed(shape, objectives, training)["seconds"]
    return six_digits(generation / epoch)


def quoted(table: pd.DataFrame, won: pd.DataFrame) -> dict[str, float]:
    """Return what prose quotes: means of RBM 3, and what the weights that win win; NaN for what was not run.

    Parameters
    ----------
    table : DataFrame
        Records.
    won : DataFrame
        Of `collapse`, the largest scale first.

    Returns
    -------
    dict of str to float
        "cd-own-error", "lea-mvd-shared-explained" and so on: of contrastive divergence, of LEA-MVD, and as
        "x0-excluded" of LEA-MVD without the start solution in its population, the columns of `explained`;
        "cd-own-passes" is the ratio to the constant image's error at equal passes. "won-error" is that of the smallest
        weights, "won-cd" that of contrastive divergence with the largest; "won-accuracy" and "won-above" are accuracies
        with the smallest weights, in percent.
    """
    rows = explained(table).set_index(_GROUP)
    rows["passes"] = at_equal(table, "passes").groupby(_GROUP)["mean_field_ratio"].mean()
    names = {"cd": "cd", "lea-mvd": "lea-mvd", "x0-excluded": "lea-mvd:x0-excluded"}
    columns = {"error": "error", "constant": "constant", "std": "input_std", "passes": "passes"}
    columns |= {"explained": "% explained", "sampled": "% explained, sampled"}
    rows = rows.reindex(pd.MultiIndex.from_product([("own", "shared"), (3,), names.values()], names=_GROUP))
    found = {
        f"{name}-{inputs}-{key}": float(rows[column][inputs, 3, method])
        for name, method in names.items()
        for inputs in ("own", "shared")
        for key, column in columns.items()
    }
    last = won.iloc[-1]
    found |= {"won-error": last["error"], "won-cd": won["cd error"].iloc[0]}
    found |= {"won-accuracy": 100 * last["accuracy"], "won-above": 100 * last["accuracy above"]}
    return {name: six_digits(value) for name, value in found.items()}


# ---- weights that win


def collapsed(first: RBM, scale: float, V: NDArray[np.float64], n_hidden: int) -> list[RBM]:
    """Return RBM 1 with its weights times `scale`, and an RBM 2 that knows the mean of what this makes of `V`.

    Parameters
    ----------
    first : RBM
        Any RBM, in float64.
    scale : float
        Factor of its weights.
    V : ndarray, shape (m, n_visible)
        Images.
    n_hidden : int
        Hidden units of RBM 2: its weights are zero, its visible biases the logits of the mean.
    """
    lower = RBM(scale * first.W, first.b, first.c)
    mean = lower.hidden_given_visible(V).mean(axis=0)
    return [lower, RBM(np.zeros((len(mean), n_hidden)), logit(mean), np.zeros(n_hidden))]


def bound(first: RBM, scale: float, V: NDArray[np.float64]) -> float:
    """Return what the error of the collapsed RBM 2 cannot exceed, per image: scale^2 / 16 trace(W^T Cov(v) W)."""
    return float(scale**2 / 16 * (V @ first.W).var(axis=0).sum())


def collapse(data: Dataset, first: RBM, scales: Sequence[float], n_hidden: int, *, epochs: int) -> pd.DataFrame:
    """Return what comes of making RBM 1's weights smaller, for RBM 2 and for what the features are good for.

    Parameters
    ----------
    data : Dataset
        Images in float64.
    first : RBM
        What has been learned of them.
    scales : sequence of float
        Factors of its weights.
    n_hidden : int
        Hidden units of RBM 2.
    epochs : int
        Of contrastive divergence, which trains another RBM 2 on the same features.

    Returns
    -------
    DataFrame
        A row for each scale. Per image: `error` and `sampled` of the collapsed RBM 2 and their `bound`, and `cd error`
        of the trained one. Over the constant image's: `ratio` and `cd ratio`. Accuracy on test images of a linear
        classifier on standardized features: of RBM 1, `accuracy`, and of the collapsed RBM 2, `accuracy above`.
    """
    rows = []
    for scale in scales:
        lower, upper = collapsed(first, scale, data.train, n_hidden)
        H, T = map(lower.hidden_given_visible, (data.train, data.test))
        cd = ContrastiveDivergence(H, n_hidden, seed=0)
        for _ in range(epochs):
            cd.epoch()
        own, trained = (reconstruction_errors(rbm, H, seed=0) for rbm in (upper, cd.rbm))
        above = [upper.hidden_given_visible(features) for features in (H, T)]
        rows.append(
            {
                "scale": scale,
                "error": own.mean_field / len(H),
                "sampled": own.sampled / len(H),
                "bound": bound(first, scale, data.train),
                "cd error": trained.mean_field / len(H),
                "ratio": own.mean_field_ratio,
                "cd ratio": trained.mean_field_ratio,
                "accuracy": accuracy(H, T, data),
                "accuracy above": accuracy(above[0], above[1], data),
            }
        )
    return pd.DataFrame(rows)


def accuracy(train: NDArray[np.float64], test: NDArray[np.float64], data: Dataset) -> float:
    """Return the part of the test images that a ridge classifier on standardized features, (m, k), gets right."""
    from sklearn.linear_model import RidgeClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifier = make_pipeline(StandardScaler(), RidgeClassifier()).fit(train, data.train_labels)
    return float(classifier.score(test, data.test_labels))


def reconstructions(data: Dataset, stacks: Mapping[str, Sequence[RBM]]) -> dict[str, NDArray[np.float64]]:
    """Return test images, one of each class, and what stacks leave of them: (1, classes, side, side), in 0 to 255."""
    chosen = np.unique(data.test_labels, return_index=True)[1]
    rows = {"original": data.test[chosen]}
    rows |= {name: reconstruct(stack, rows["original"]) for name, stack in stacks.items()}
    return {name: 255 * V.reshape(1, -1, data.side, data.side) for name, V in rows.items()}
