"""Weights that win by the reconstruction error for nothing: RBM 2 knows the mean of features that hardly vary."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import logit

from leamvd.data.images import Dataset
from leamvd.experiments.stacks import reconstructed
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.objective import reconstruction_errors
from leamvd.networks.rbm import RBMParameters


def collapsed(first: RBMParameters, scale: float, V: NDArray[np.float64], n_hidden: int) -> list[RBMParameters]:
    """Return RBM 1 with its weights times `scale`, and an RBM 2 that knows the mean of what this makes of `V`.

    That is in float64. The weights of RBM 2 are zero, its visible biases the logits of the mean.
    """
    lower = RBMParameters(scale * first.W, first.b, first.c)
    mean = lower.hidden_given_visible(V).mean(axis=0)
    return [lower, RBMParameters(np.zeros((len(mean), n_hidden)), logit(mean), np.zeros(n_hidden))]


def bound(first: RBMParameters, scale: float, V: NDArray[np.float64]) -> float:
    """Return what the error of the collapsed RBM 2 cannot exceed, per image: scale^2 / 16 trace(W^T Cov(v) W)."""
    return float(scale**2 / 16 * (V @ first.W).var(axis=0).sum())


def collapse(
    data: Dataset, first: RBMParameters, scales: Sequence[float], n_hidden: int, *, epochs: int
) -> pd.DataFrame:
    """Return what comes of making RBM 1's weights smaller, for RBM 2 and for what the features are good for.

    A row for each scale has, per image, `error` and `sampled` of the collapsed RBM 2, their `bound`, and `cd error` of
    another RBM 2 that so many epochs of contrastive divergence have trained on the same features; over the constant
    image's error, `ratio` and `cd ratio`; and the accuracy on test images of a linear classifier on standardized
    features: of RBM 1, `accuracy`, and of the collapsed RBM 2, `accuracy above`. Images are in float64.
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


def reconstructions(data: Dataset, stacks: Mapping[str, Sequence[RBMParameters]]) -> dict[str, NDArray[np.float64]]:
    """Return test images, one of each class, and what stacks leave of them: (1, classes, side, side), in 0 to 255."""
    shown = reconstructed(data, {name: [stack] for name, stack in stacks.items()})
    return {name: 255 * V for name, V in shown.items()}
