"""RBMs, deep belief networks and classifiers as estimators: ``from leamvd.networks import DBN,
DBNClassifier, RBM``.

They keep scikit-learn's conventions, need scikit-learn (``pip install leamvd[sklearn]``), and train
as the experiments do, by `leamvd.networks.dbn.train` and `leamvd.networks.dbn.pretrain`: an integer
`random_state` is the seed there, and the result has the same bits.
"""

import copy
import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm import tqdm

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import (
    EXPERIMENT,
    Training,
    downward,
    fine_tune,
    layer_input,
    pretrain,
    shown,
    train,
)
from leamvd.networks.rbm import RBMParameters
from leamvd.optimizers import random_streams
from leamvd.optimizers.random_streams import SeedLike
from leamvd.optimizers.reading import Reading


def _keep(self: Any, **parameters: Any) -> None:
    """Make each parameter of a constructor an attribute as it is given, by scikit-learn's
    conventions.
    """
    vars(self).update(parameters)


def _seed(estimator: Any) -> int:
    """Return the seed of a training: `random_state` itself, or the next number that is drawn from
    it.
    """
    given = estimator.random_state
    if given is None:
        given = check_random_state(None)
    return random_streams.key(given, "random_state")


def _warn_outside(V: Array) -> None:
    """Warn of images outside [0, 1]: units saturate, and nothing else would tell."""
    low = V.min()
    high = V.max()
    if low < -1e-6 or high > 1 + 1e-6:
        told = (
            f"X has values from {low:.7g} to {high:.7g}, where probabilities in [0, 1] are"
            " expected: scale it"
        )
        checks.warn(f"{told}, by sklearn.preprocessing.MinMaxScaler for instance", UserWarning)


class _Network(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share."""

    def _settings(self, V: Array, n_iter: int) -> dict[str, Any]:
        """Return the arguments that `train` and `pretrain` share, except the seed, for the images
        `V`.
        """
        n_iter = checks.integer("n_iter", n_iter, at_least=1)
        reading = EXPERIMENT if self.reading is None else self.reading
        if not isinstance(reading, Reading):
            raise TypeError(
                f"reading must be a leamvd.Reading or None, got {checks.shown(reading)}"
            )
        fields = {}
        for field in dataclasses.fields(Training):
            if field.name != "dtype":
                value = getattr(self, field.name)
                fields[field.name] = value.item() if isinstance(value, np.generic) else value
        return {
            "method": self.method,
            "training": Training(dtype=V.dtype.name, **fields),
            "reading": dataclasses.replace(reading, n_gen=n_iter),
            "unit_interval": False,
        }

    def _images(self, X: ArrayLike, *, reset: bool = False) -> Array:
        """Return `X` as an array of float32 or float64, shape (m, n_visible), with as many columns
        as were fitted.
        """
        if not reset:
            check_is_fitted(self, "layers_")
        V: Array = validate_data(self, X, reset=reset, dtype=[np.float64, np.float32])
        if reset:
            _warn_outside(V)
        return V

    def transform(self, X: ArrayLike) -> Array:
        """Return the probabilities of the uppermost units, shape (m, n_hidden), for `X`, shape (m,
        n_visible).
        """
        V = self._images(X)
        return layer_input(self.layers_, V)

    def inverse_transform(self, X: ArrayLike) -> Array:
        """Return P(v = 1 | h), handed down by each layer, shape (m, n_visible), for units `X`,
        shape (m, n_hidden).
        """
        check_is_fitted(self, "layers_")
        H = checks.array("X", X, shape=(None, self._n_features_out), dtype=checks.precision(X))
        return downward(self.layers_, H)

    @property
    def _n_features_out(self) -> int:
        return len(self.layers_[-1].c)

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
    learning_rate, batch_size, cd_steps, persistent
        Of contrastive divergence, also where an optimizer goes on from it. These and all that are
        not described here are fields of `leamvd.networks.dbn.Training`.
    momentum, final_momentum, momentum_epochs, weight_decay
        Of contrastive divergence.
    initial_weights, visible_biases : {"normal", "uniform", "glorot"}, {"zero", "data"}
        Of contrastive divergence.
    weight_scale : float
        Of its first weights.
    reading : leamvd.Reading, optional
        Of LEA-MVD. The other optimizers take `population_size` and `x0_in_population` from it; its
        `n_gen` is not used.
    n_elite, sigma0, x0, x0_epochs, x0_batches, x0_limit
        Of the optimizers.
    backend, device, precision
        Of the error that the optimizers minimize.
    verbose : int
        Show a progress bar, unless it is 0.
    random_state : int, generator of numpy.random, SeedSequence, sequence of int or None
        An integer is the seed, in [0, 2**64): one seed, one result; so do seed sequences and what
        makes one. A generator is drawn from at each training; None is NumPy's global one.

    Attributes
    ----------
    layers_ : list of leamvd.networks.rbm.RBMParameters
        The one layer, as of a `DBN`.
    parameters_ : leamvd.networks.rbm.RBMParameters
        Its weights and biases, as ``leamvd.networks.likelihood`` takes them, say.
    components_ : (n_hidden, n_visible) array
        Weights.
    intercept_hidden_, intercept_visible_ : (n_hidden,) array, (n_visible,) array
        Biases.
    n_iter_ : int
        Epochs or generations done, those of `partial_fit` too.
    random_state_ : numpy.random.Generator
        Of `gibbs`, after its first call.
    n_features_in_ : int
        Visible units.
    feature_names_in_ : (n_visible,) array of str
        Names of the columns, where `X` has them.

    Raises
    ------
    TypeError, ValueError
        By the methods: where an argument is out of range, `X` is sparse, not finite or has other
        columns than before.
    sklearn.exceptions.NotFittedError
        Where there is nothing learned yet.

    Notes
    -----
    Parameters and attributes that `sklearn.neural_network.BernoulliRBM` has too mean the same, and
    `n_hidden` is its `n_components`. Two methods do not: `score_samples` is the pseudo-likelihood
    there, and `partial_fit` one update by all of `X`. As there, `X` may hold any finite numbers; as
    probabilities they lie in [0, 1]. Arithmetic is float32 where the `X` of the training is
    float32, and float64 otherwise.
    """

    # what `partial_fit` goes on with
    _begun: tuple[ContrastiveDivergence, tuple[Any, ...]] | None = None

    def __init__(
        self,
        n_hidden: int = 256,
        *,
        method: str = "cd",
        n_iter: int = 50,
        learning_rate: float = 0.1,
        batch_size: int = 100,
        cd_steps: int = 1,
        persistent: bool = False,
        momentum: float = 0.5,
        final_momentum: float = 0.9,
        momentum_epochs: int = 5,
        weight_decay: float = 2e-4,
        initial_weights: str = "normal",
        weight_scale: float = 0.1,
        visible_biases: str = "zero",
        reading: Reading | None = None,
        n_elite: int = 4,
        sigma0: float = 0.1,
        x0: str = "epochs",
        x0_epochs: int = 1,
        x0_batches: int = 1,
        x0_limit: float = 0.1,
        backend: str = "numpy",
        device: str | None = None,
        precision: str | None = None,
        verbose: int = 0,
        random_state: SeedLike = None,
    ) -> None:
        _keep(**locals())

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Train on the images `X`, shape (m, n_visible), from the start."""
        V = self._images(X, reset=True)
        self._begun = None
        self.__dict__.pop("random_state_", None)
        if self.method == "cd":
            return self._epochs(V, self.n_iter)
        settings = self._settings(V, self.n_iter)
        steps = train(V=V, n_hidden=self.n_hidden, **settings, seed=_seed(self))
        steps = shown(steps, self.n_iter, self.method, progress=bool(self.verbose))
        (last,) = deque(steps, maxlen=1)
        self.layers_ = [last.rbm]
        self.n_iter_ = last.iteration
        return self

    def _goes_on(self) -> bool:
        if self.method != "cd":
            raise AttributeError(f"partial_fit needs method='cd', got {self.method!r}")
        return True

    @available_if(_goes_on)  # type: ignore[untyped-decorator]
    def partial_fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Train by one more epoch of contrastive divergence on any images, shape (m, n_visible), as
        now set.

        It goes on where contrastive divergence in `fit` or the last call ended, with its momentum
        and random numbers, also after pickling, and begins anew after another method; as many calls
        as `n_iter` on the same images give the bits of `fit`. What it began with stays: `n_hidden`,
        `initial_weights`, `weight_scale`, `visible_biases` and `random_state`. A call that fails
        changes nothing. An AttributeError with other methods.
        """
        return self._epochs(self._images(X, reset=self._begun is None), 1)

    def _epochs(self, V: Array, n_epochs: int) -> Self:
        settings = self._settings(V, n_epochs)["training"]
        start = (
            self.n_hidden,
            self.initial_weights,
            self.weight_scale,
            self.visible_biases,
            self.random_state,
        )
        if self._begun is None:
            cd = ContrastiveDivergence(
                V, self.n_hidden, settings=settings, seed=_seed(self), unit_interval=False
            )
        elif start != self._begun[1]:
            names = "n_hidden, initial_weights, weight_scale, visible_biases and random_state"
            raise ValueError(f"{names} must stay {self._begun[1]} until the next fit, got {start}")
        else:
            cd = copy.deepcopy(self._begun[0])  # a call that fails changes nothing
            cd.go_on_with(V, settings)
        for _ in tqdm(range(n_epochs), desc="CD", unit="epoch", disable=not self.verbose):
            self.layers_ = [cd.epoch()]
        cd.go_on_with(V[:1].copy())  # a pickle is not to hold all images
        self._begun = (cd, start)
        self.n_iter_ = cd.n_epochs
        return self

    def score_samples(self, X: ArrayLike) -> Array:
        """Return minus the squared error of each image's mean-field reconstruction (item E2), shape
        (m,).
        """
        V = self._images(X)
        scores: Array = -((V - self.parameters_.reconstruct(V)) ** 2).sum(axis=1)
        return scores

    def gibbs(self, v: ArrayLike) -> Array:
        """Return bits, shape (m, n_visible), after a step of Gibbs sampling from `v`: h ~ P(h | v),
        then v ~ P(v | h).

        The first call after `fit` makes `random_state_`, from which this and all later calls draw:
        repeated on what they return they are a chain, the same one after each `fit` where
        `random_state` is an integer.
        """
        check_is_fitted(self, "layers_")
        if hasattr(v, "columns"):  # the bits of the call before have no names
            v = self._images(v)
        if not hasattr(self, "random_state_"):
            self.random_state_ = np.random.default_rng(
                random_streams.child(_seed(self), random_streams.GIBBS)
            )
        H = self.parameters_.sample_hidden(v, self.random_state_)
        bits: Array = self.parameters_.sample_visible(H, self.random_state_) == 1
        return bits

    @property
    def parameters_(self) -> RBMParameters:
        """Weights and biases."""
        return self.layers_[0]

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


class DBN(_Network):
    """A deep belief network: restricted Boltzmann machines, each trained on the hidden units of the
    one below.

    It has no `score_samples`: each layer has an error of its own, on features of its own, and that
    of the lowest, ``((X - dbn.layers_[0].reconstruct(X)) ** 2).sum(axis=1)``, says nothing about
    those above.

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
    n_iter_ : int
        Epochs or generations of each layer.
    n_features_in_, feature_names_in_
        As of `RBM`, of the lowest layer.

    Raises
    ------
    TypeError, ValueError, sklearn.exceptions.NotFittedError
        By the methods, as those of `RBM`.
    """

    def __init__(
        self,
        layers: Sequence[int] = (256, 256),
        *,
        features: Literal["probabilities", "bits"] = "probabilities",
        method: str = "cd",
        n_iter: int = 50,
        learning_rate: float = 0.1,
        batch_size: int = 100,
        cd_steps: int = 1,
        persistent: bool = False,
        momentum: float = 0.5,
        final_momentum: float = 0.9,
        momentum_epochs: int = 5,
        weight_decay: float = 2e-4,
        initial_weights: str = "normal",
        weight_scale: float = 0.1,
        visible_biases: str = "zero",
        reading: Reading | None = None,
        n_elite: int = 4,
        sigma0: float = 0.1,
        x0: str = "epochs",
        x0_epochs: int = 1,
        x0_batches: int = 1,
        x0_limit: float = 0.1,
        backend: str = "numpy",
        device: str | None = None,
        precision: str | None = None,
        verbose: int = 0,
        random_state: SeedLike = None,
    ) -> None:
        _keep(**locals())

    def fit(self, X: ArrayLike, y: object = None) -> Self:  # noqa: ARG002
        """Train each layer on the features of the one below, the lowest on the images `X`, shape
        (m, n_visible).
        """
        V = self._images(X, reset=True)
        if np.ndim(self.layers) != 1 or len(self.layers) == 0:
            raise ValueError(
                f"layers must be a sequence with at least one number of units, got {self.layers!r}"
            )
        layers = []
        for i, n_hidden in enumerate(self.layers):
            layers.append(checks.integer(f"layers[{i}]", n_hidden, at_least=1))
        settings = self._settings(V, self.n_iter)
        self.layers_ = pretrain(
            V,
            layers,
            **settings,
            features=self.features,
            seed=_seed(self),
            progress=bool(self.verbose),
        )
        self.n_iter_ = settings["reading"].n_gen
        return self


class DBNClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that starts from a deep belief network: the network of Section 8.

    A softmax layer, for two classes one logistic unit, is put on the pre-trained layers, and all of
    them are fine-tuned by stochastic gradient descent of the cross-entropy, see
    `leamvd.networks.dbn.fine_tune`.

    Parameters
    ----------
    dbn : DBN, RBM, FrozenEstimator of a fitted one, or sequence of RBMParameters, optional
        By default ``DBN()``. A copy is trained by each `fit`; settings of one that is given have
        names like ``dbn__method``. One that is fitted, within `sklearn.frozen.FrozenEstimator`, or
        its `layers_` are taken as pre-trained: a search over fine-tuning then pre-trains once.
    n_iter : int
        Epochs of fine-tuning.
    learning_rate : float
        Of the first epoch; it falls linearly, to ``learning_rate / n_iter`` in the last one.
    batch_size : int
        Images in one update.
    momentum : float
        In [0, 1); it starts anew with each epoch.
    verbose : int
        Show a progress bar of fine-tuning, unless it is 0; pre-training has that of `dbn`.
    random_state : int, generator of numpy.random, SeedSequence, sequence of int or None
        As of `RBM`: of the order of images, and of a `dbn` to be trained that has none.

    Attributes
    ----------
    classes_ : (n_classes,) array
        Labels, sorted.
    layers_ : list of leamvd.networks.rbm.RBMParameters
        The pre-trained layers, as they were before fine-tuning.
    network_ : sklearn.neural_network.MLPClassifier
        The fine-tuned network, with `coefs_` and `intercepts_`.
    loss_curve_, n_iter_ : list of float, int
        Mean cross-entropy in each epoch, in nats, and the number of epochs.
    n_features_in_, feature_names_in_
        As of `RBM`.

    Raises
    ------
    TypeError, ValueError, sklearn.exceptions.NotFittedError
        By the methods, as those of `RBM`; where there are less than two classes.
    """

    def __init__(
        self,
        dbn: DBN | RBM | FrozenEstimator | Sequence[RBMParameters] | None = None,
        *,
        n_iter: int = 50,
        learning_rate: float = 0.2,
        batch_size: int = 100,
        momentum: float = 0.9,
        verbose: int = 0,
        random_state: SeedLike = None,
    ) -> None:
        _keep(**locals())

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on images `X`, shape (m, n_visible), and labels `y`, shape (m,): numbers, strings
        or any that sort.
        """
        V, labels = validate_data(self, X, y, dtype=[np.float64, np.float32])
        check_classification_targets(labels)
        classes: Array = np.unique(labels)
        if len(classes) < 2:
            raise ValueError(f"y must have at least two classes, got one class: {classes.item()!r}")
        n_iter = checks.integer("n_iter", self.n_iter, at_least=1)
        seed = _seed(self)
        tuning_rate = checks.real("learning_rate", self.learning_rate, above=0)
        batch_size = checks.integer("batch_size", self.batch_size, at_least=1)
        momentum = checks.real("momentum", self.momentum, at_least=0, below=1)
        layers = self._pretrained(X, V, seed)
        tuning = fine_tune(
            layers,
            V,
            labels,
            epochs=n_iter,
            tuning_rate=tuning_rate,
            seed=seed,
            batch_size=batch_size,
            momentum=momentum,
        )
        steps = list(
            tqdm(tuning, desc="fine-tuning", total=n_iter, unit="epoch", disable=not self.verbose)
        )
        self.classes_ = classes
        self.layers_ = layers
        self.network_ = steps[-1][0]
        self.loss_curve_ = [loss for _, loss in steps]
        self.n_iter_ = n_iter
        return self

    def _pretrained(self, X: ArrayLike, V: Array, seed: int) -> list[RBMParameters]:
        """Return the layers that fine-tuning starts from; `V` are the numbers of `X`."""
        dbn = DBN() if self.dbn is None else self.dbn
        if isinstance(dbn, _Network):
            dbn = clone(dbn)
            if dbn.random_state is None:
                dbn.random_state = seed
            dbn.fit(V)
        else:
            _warn_outside(V)
        layers = getattr(dbn, "layers_", dbn)
        if (
            not isinstance(layers, Sequence)
            or not layers
            or not all(isinstance(rbm, RBMParameters) for rbm in layers)
        ):
            forms = (
                "a DBN or RBM, a FrozenEstimator of a fitted one, or a sequence of RBMParameters"
            )
            raise TypeError(f"dbn must be {forms}, got {checks.shown(self.dbn)}")
        if V.shape[1] != len(layers[0].b):
            raise ValueError(f"X must have shape (m, {len(layers[0].b)}), as dbn, got {V.shape}")
        if isinstance(dbn, FrozenEstimator):
            dbn.estimator._images(X)  # refuses columns of other names
        layer_input(layers, V[:1])  # refuses layers that do not belong together
        return list(layers)

    def predict_proba(self, X: ArrayLike) -> Array:
        """Return the probability of each of `classes_`, shape (m, n_classes),
        for the images `X`.
        """
        check_is_fitted(self, "network_")
        V = validate_data(self, X, reset=False, dtype=self.network_.coefs_[0].dtype)
        with one_blas_thread():
            probabilities: Array = self.network_.predict_proba(V)
        return probabilities

    def predict_log_proba(self, X: ArrayLike) -> Array:
        """Return the logarithms of `predict_proba`, shape (m, n_classes), for the images `X`."""
        with np.errstate(divide="ignore"):
            logarithms: Array = np.log(self.predict_proba(X))
        return logarithms

    def predict(self, X: ArrayLike) -> Array:
        """Return the most probable class of each image, shape (m,), for the images `X`, shape (m,
        n_visible).
        """
        best = self.predict_proba(X).argmax(axis=1)
        labels: Array = self.classes_[best]
        return labels
