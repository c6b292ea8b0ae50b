"""Restricted Boltzmann machines and deep belief networks as estimators: ``from leamvd.networks import DBN, RBM``.

They keep scikit-learn's conventions, need scikit-learn (``pip install leamvd[paper]``), and train as the experiments
do, by `leamvd.networks.dbn.train` and `leamvd.networks.dbn.pretrain`: an integer `random_state` is the seed there, and
the result has the same bits.
"""

import copy
import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted, validate_data
from tqdm import tqdm

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import EXPERIMENT, Training, downward, layer_input, pretrain, shown, train
from leamvd.optimizers import random_streams
from leamvd.optimizers.random_streams import SeedLike
from leamvd.optimizers.reading import Reading


class _Network(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share."""

    def _settings(self, V: Array, n_iter: int) -> dict[str, Any]:
        """Return the arguments that `train` and `pretrain` share, except the seed, for the images `V`."""
        n_iter = checks.integer("n_iter", n_iter, at_least=1)
        reading = EXPERIMENT if self.reading is None else self.reading
        if not isinstance(reading, Reading):
            raise TypeError(f"reading must be a leamvd.Reading or None, got {checks.shown(reading)}")
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(Training) if f.name != "dtype"}
        return {
            "method": self.method,
            "training": Training(dtype=V.dtype.name, **fields),
            "reading": dataclasses.replace(reading, n_gen=n_iter),
            "unit_interval": False,
        }

    def _seed(self) -> int:
        """Return the seed of a training: `random_state` itself, or the next number that is drawn from it."""
        given = check_random_state(None) if self.random_state is None else self.random_state
        return random_streams.key(given, "random_state")

    def _images(self, X: ArrayLike, *, reset: bool = False) -> Array:
        """Return `X` as an array of float32 or float64, shape (m, n_visible), with as many columns as were fitted."""
        V: Array = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        return V

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class RBM(_Network):
    """A restricted Boltzmann machine, trained by contrastive divergence or by an optimizer.

    Parameters
    ----------
    n_hidden : int
        Hidden units.
    method : {"cd", "lea-mvd", "cma-es", "sep-cma-es", "random"}
        What trains: contrastive divergence, or an optimizer that goes on from one epoch of it.
    n_iter : int
        Epochs of contrastive divergence, or generations of an optimizer.
    learning_rate, batch_size, cd_steps, persistent, momentum, final_momentum, momentum_epochs, weight_decay
        Of contrastive divergence, also where an optimizer goes on from it. These and all that are not described here
        are fields of `leamvd.networks.dbn.Training`.
    initial_weights, weight_scale : {"normal", "uniform"}, float
        Of contrastive divergence.
    reading : leamvd.Reading, optional
        Of LEA-MVD. The other optimizers take `population_size` and `x0_in_population` from it; its `n_gen` is not used.
    n_elite, sigma0, x0, x0_epochs, x0_batches, x0_limit
        Of the optimizers.
    backend, device, precision
        Of the error that the optimizers minimize.
    verbose : int
        Show a progress bar, unless it is 0.
    random_state : int, generator of numpy.random, SeedSequence, sequence of int or None
        An integer is the seed, in [0, 2**64): one seed, one result; so do seed sequences and what makes one. A
        generator is drawn from at each training; None is NumPy's global one.

    Attributes
    ----------
    parameters_ : leamvd.networks.rbm.RBMParameters
        Weights and biases, as ``leamvd.networks.likelihood`` takes them, say.
    components_ : (n_hidden, n_visible) array
        Weights.
    intercept_hidden_, intercept_visible_ : (n_hidden,) array, (n_visible,) array
        Biases.
    n_features_in_ : int
        Visible units.
    feature_names_in_ : (n_visible,) array of str
        Names of the columns, where `X` has them.

    Raises
    ------
    TypeError, ValueError
        By the methods: where an argument is out of range, `X` is sparse, not finite or has other columns than before.
    sklearn.exceptions.NotFittedError
        Where there is nothing learned yet.

    Notes
    -----
    Parameters and attributes that `sklearn.neural_network.BernoulliRBM` has too mean the same, and `n_hidden` is its
    `n_components`. Two methods do not: `score_samples` is the pseudo-likelihood there, and `partial_fit` one update by
    all of `X`. As there, `X` may hold any finite numbers; as probabilities they lie in [0, 1]. Arithmetic is float32
    where the `X` of the training is float32, and float64 otherwise.
    """

    _begun: tuple[ContrastiveDivergence, tuple[Any, ...]] | None = None  # what `partial_fit` goes on with

    def __init__(
        self, n_hidden: int = 256, *, method: str = "cd", n_iter: int = 50, learning_rate: float = 0.1,
        batch_size: int = 100, cd_steps: int = 1, persistent: bool = False, momentum: float = 0.5,
        final_momentum: float = 0.9, momentum_epochs: int = 5, weight_decay: float = 2e-4,
        initial_weights: str = "normal", weight_scale: float = 0.1, reading: Reading | None = None, n_elite: int = 4,
        sigma0: float = 0.1, x0: str = "epochs", x0_epochs: int = 1, x0_batches: int = 1, x0_limit: float = 0.1,
        backend: str = "numpy", device: str | None = None, precision: str | None = None, verbose: int = 0,
        random_state: SeedLike = None,
    ) -> None:  # fmt: skip
        self.n_hidden = n_hidden
        self.method, self.n_iter, self.reading = method, n_iter, reading
        self.learning_rate, self.batch_size = learning_rate, batch_size
        self.cd_steps, self.persistent = cd_steps, persistent
        self.momentum, self.final_momentum, self.momentum_epochs = momentum, final_momentum, momentum_epochs
        self.weight_decay, self.initial_weights, self.weight_scale = weight_decay, initial_weights, weight_scale
        self.n_elite, self.sigma0 = n_elite, sigma0
        self.x0, self.x0_epochs, self.x0_batches, self.x0_limit = x0, x0_epochs, x0_batches, x0_limit
        self.backend, self.device, self.precision = backend, device, precision
        self.verbose, self.random_state = verbose, random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Train on the images `X`, shape (m, n_visible), from the start."""
        V = self._images(X, reset=True)
        self._begun = None
        if self.method == "cd":
            return self._epochs(V, self.n_iter)
        steps = train(V=V, n_hidden=self.n_hidden, **self._settings(V, self.n_iter), seed=self._seed())
        (step,) = deque(shown(steps, self.n_iter, self.method, progress=bool(self.verbose)), maxlen=1)
        self.parameters_ = step.rbm
        return self

    def _goes_on(self) -> bool:
        if self.method != "cd":
            raise AttributeError(f"partial_fit needs method='cd', got {self.method!r}")
        return True

    @available_if(_goes_on)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Train by one more epoch of contrastive divergence on any images, shape (m, n_visible), as now set.

        It goes on where contrastive divergence in `fit` or the last call ended, with its momentum and random numbers,
        also after pickling, and begins anew after another method; as many calls as `n_iter` on the same images give
        the bits of `fit`. What it began with, `n_hidden`, `initial_weights`, `weight_scale` and `random_state`, stays.
        A call that fails changes nothing. An AttributeError with other methods.
        """
        return self._epochs(self._images(X, reset=self._begun is None), 1)

    def _epochs(self, V: Array, n_epochs: int) -> Self:
        settings = self._settings(V, n_epochs)["training"]
        start = self.n_hidden, self.initial_weights, self.weight_scale, self.random_state
        if self._begun is None:
            cd = ContrastiveDivergence(V, self.n_hidden, settings=settings, seed=self._seed(), unit_interval=False)
        elif start != self._begun[1]:
            names = "n_hidden, initial_weights, weight_scale and random_state"
            raise ValueError(f"{names} must stay {self._begun[1]} until the next fit, got {start}")
        else:
            cd = copy.deepcopy(self._begun[0])  # a call that fails changes nothing
            cd.go_on_with(V, settings)
        for _ in tqdm(range(n_epochs), desc="CD", unit="epoch", disable=not self.verbose):
            self.parameters_ = cd.epoch()
        cd.go_on_with(V[:1].copy())  # a pickle is not to hold all images
        self._begun = cd, start
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return P(h = 1 | v), shape (m, n_hidden), for the images `X`, shape (m, n_visible)."""
        check_is_fitted(self, "parameters_")
        return self.parameters_.hidden_given_visible(self._images(X))

    def score_samples(self, X: ArrayLike) -> Array:
        """Return minus the squared error of each image's mean-field reconstruction (item E2), shape (m,)."""
        check_is_fitted(self, "parameters_")
        V = self._images(X)
        scores: Array = -((V - self.parameters_.reconstruct(V)) ** 2).sum(axis=1)
        return scores

    @property
    def components_(self) -> Array:
        """Weights, shape (n_hidden, n_visible)."""
        return self.parameters_.W.T

    @property
    def intercept_hidden_(self) -> Array:
        """Biases of the hidden units, shape (n_hidden,)."""
        return self.parameters_.c

    @property
    def intercept_visible_(self) -> Array:
        """Biases of the visible units, shape (n_visible,)."""
        return self.parameters_.b

    @property
    def _n_features_out(self) -> int:
        return len(self.parameters_.c)


class DBN(_Network):
    """A deep belief network: restricted Boltzmann machines, each trained on the hidden units of the one below.

    Parameters
    ----------
    layers : sequence of int
        Hidden units of each layer, the lowest first.
    features : {"probabilities", "bits"}
        What a layer hands on in training; `transform` always gives probabilities.
    method, n_iter, ..., verbose, random_state
        As of `RBM`, the same for all layers.

    Attributes
    ----------
    layers_ : list of leamvd.networks.rbm.RBMParameters
        The layers, as `leamvd.networks.dbn.reconstruct` takes them, say.
    n_features_in_ : int
        Visible units of the lowest layer.
    feature_names_in_ : (n_visible,) array of str
        Names of the columns, where `X` has them.

    Raises
    ------
    TypeError, ValueError, sklearn.exceptions.NotFittedError
        By the methods, as those of `RBM`.
    """

    def __init__(
        self, layers: Sequence[int] = (256, 256), *, features: Literal["probabilities", "bits"] = "probabilities",
        method: str = "cd", n_iter: int = 50, learning_rate: float = 0.1,
        batch_size: int = 100, cd_steps: int = 1, persistent: bool = False, momentum: float = 0.5,
        final_momentum: float = 0.9, momentum_epochs: int = 5, weight_decay: float = 2e-4,
        initial_weights: str = "normal", weight_scale: float = 0.1, reading: Reading | None = None, n_elite: int = 4,
        sigma0: float = 0.1, x0: str = "epochs", x0_epochs: int = 1, x0_batches: int = 1, x0_limit: float = 0.1,
        backend: str = "numpy", device: str | None = None, precision: str | None = None, verbose: int = 0,
        random_state: SeedLike = None,
    ) -> None:  # fmt: skip
        self.layers, self.features = layers, features
        self.method, self.n_iter, self.reading = method, n_iter, reading
        self.learning_rate, self.batch_size = learning_rate, batch_size
        self.cd_steps, self.persistent = cd_steps, persistent
        self.momentum, self.final_momentum, self.momentum_epochs = momentum, final_momentum, momentum_epochs
        self.weight_decay, self.initial_weights, self.weight_scale = weight_decay, initial_weights, weight_scale
        self.n_elite, self.sigma0 = n_elite, sigma0
        self.x0, self.x0_epochs, self.x0_batches, self.x0_limit = x0, x0_epochs, x0_batches, x0_limit
        self.backend, self.device, self.precision = backend, device, precision
        self.verbose, self.random_state = verbose, random_state

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Train each layer on the features of the one below, the lowest on the images `X`, shape (m, n_visible)."""
        V = self._images(X, reset=True)
        if np.ndim(self.layers) != 1 or len(self.layers) == 0:
            raise ValueError(f"layers must be a sequence with at least one number of units, got {self.layers!r}")
        layers = [checks.integer(f"layers[{i}]", n, at_least=1) for i, n in enumerate(self.layers)]
        settings = self._settings(V, self.n_iter)
        self.layers_ = pretrain(
            V, layers, **settings, features=self.features, seed=self._seed(), progress=bool(self.verbose)
        )
        return self

    def transform(self, X: ArrayLike) -> Array:
        """Return the probabilities of the uppermost units, shape (m, n_hidden), for the images `X`."""
        check_is_fitted(self, "layers_")
        return layer_input(self.layers_, self._images(X))

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Return what the layers make of their uppermost units `X`, shape (m, n_hidden): (m, n_visible) images."""
        check_is_fitted(self, "layers_")
        H = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if H.shape[1] != self._n_features_out:
            raise ValueError(f"X must have shape (any, {self._n_features_out}), got {H.shape}")
        return downward(self.layers_, H)

    @property
    def _n_features_out(self) -> int:
        return len(self.layers_[-1].c)
