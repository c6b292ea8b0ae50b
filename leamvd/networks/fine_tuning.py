"""Fine-tuning: a stack of layers becomes a classifier, trained by the gradient of the cross-entropy (Section 8)."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.networks.rbm import RBMParameters

_SHUFFLES = 1  # what random numbers are drawn for; recorded results rest on it


def fine_tune(
    stack: Sequence[RBMParameters],
    V: Array,
    labels: Array,
    *,
    epochs: int,
    tuning_rate: float,
    batch_size: int = 100,
    momentum: float = 0.9,
    seed: int,
) -> Iterator[tuple[Any, float]]:
    """Train a stack with a softmax layer on top; yield scikit-learn's classifier and the loss after each epoch.

    It is stochastic gradient descent of the cross-entropy, whose mean over the epoch is the loss, in natural units and
    before each mini-batch's update. The new layer starts at zero, so that all classes begin with equal probabilities;
    for two classes it is one logistic unit. The learning rate falls linearly, epoch by epoch, to
    ``tuning_rate / epochs``; momentum starts anew with each epoch.

    Parameters
    ----------
    stack : sequence of RBMParameters
        The layers that it starts from, which stay as they are.
    V : ndarray, shape (m, n_visible)
        Images.
    labels : ndarray, shape (m,)
        Their classes, two or more.
    epochs : int
        How often every image is visited.
    tuning_rate : float
        The first learning rate.
    batch_size : int
        Images in one update.
    momentum : float
        In [0, 1].
    seed : int
        Of the order of images.

    Yields
    ------
    sklearn.neural_network.MLPClassifier, float
        The same classifier each time.
    """
    from sklearn.neural_network import MLPClassifier  # as late as this, since it takes a while to import

    dtype, sizes, first = stack[-1].W.dtype, [len(rbm.c) for rbm in stack], np.unique(labels, return_index=True)[1]
    classifier = MLPClassifier(
        sizes, activation="logistic", solver="sgd", alpha=0, momentum=momentum, nesterovs_momentum=False, max_iter=1,
        warm_start=True, random_state=0,
    )  # fmt: skip
    fitted(classifier, V[first], labels[first])  # tells it its sizes
    top = classifier.coefs_[-1].shape
    classifier.coefs_ = [*(rbm.W.copy() for rbm in stack), np.zeros(top, dtype)]
    classifier.intercepts_ = [*(rbm.c.copy() for rbm in stack), np.zeros(top[1], dtype)]
    classifier.set_params(batch_size=min(batch_size, len(V)))
    for epoch in range(1, epochs + 1):
        rate = tuning_rate * (1 - (epoch - 1) / epochs)
        order = int(np.random.default_rng([seed, _SHUFFLES, epoch]).integers(2**32))
        fitted(classifier.set_params(learning_rate_init=rate, random_state=order), V, labels)
        if not classifier.n_iter_:
            raise KeyboardInterrupt  # which the classifier only warns of
        yield classifier, float(classifier.loss_)


def fitted(classifier: Any, V: Array, labels: Array) -> Any:
    """Return a classifier of scikit-learn, fitted on one thread for as many steps as it is told, converged or not."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings(), one_blas_thread():
        warnings.simplefilter("ignore", ConvergenceWarning)  # so many steps, or one epoch, are what is wanted
        return classifier.fit(V, labels)
