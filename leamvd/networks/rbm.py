"""Restricted Boltzmann machines with binary units (item E1).

An RBM with weights W, visible biases b and hidden biases c gives the energy E(v, h) = -v^T W h -
b^T v - c^T h to the bits (v, h) and the probability exp(-E)/Z. Its conditionals are products of
sigma(c + W^T v) and of sigma(b + W h), where sigma(x) = 1/(1 + exp(-x)) is the logistic function.

Arithmetic is float32 where the images are float32 and float64 otherwise.
"""

import math
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.special import logsumexp

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.networks.logistic import sigmoid_columns

_LARGEST_ENUMERATION = 20  # units: 2^20 states take seconds
_STATES_AT_ONCE = 4096


def n_parameters(n_visible: int, n_hidden: int) -> int:
    """Return v h + v + h, the number of parameters of an RBM (item E1)."""
    n_visible = checks.integer("n_visible", n_visible, at_least=1)
    n_hidden = checks.integer("n_hidden", n_hidden, at_least=1)
    return n_visible * n_hidden + n_visible + n_hidden


class RBMParameters(NamedTuple):
    """The parameters of a restricted Boltzmann machine.

    Parameters
    ----------
    W : (n_visible, n_hidden) array
        Weights.
    b : (n_visible,) array
        Visible biases.
    c : (n_hidden,) array
        Hidden biases.

    Notes
    -----
    The constructor takes what it is given; every method raises as `check` does.
    """

    W: Array
    b: Array
    c: Array

    @classmethod
    def from_flat(cls, theta: ArrayLike, n_visible: int, n_hidden: int) -> Self:
        """Return the RBM of a flat vector: W row by row, then b, then c.

        Parameters
        ----------
        theta : (n_visible n_hidden + n_visible + n_hidden,) array
            A contiguous float32 or float64 array is viewed, not copied.
        n_visible, n_hidden : int
            Numbers of units.

        Raises
        ------
        ValueError
            Where the length is wrong or a number is not finite.
        """
        n = n_parameters(n_visible, n_hidden)
        theta = checks.array("theta", theta, shape=(n,), dtype=checks.precision(theta))
        n_weights = n_visible * n_hidden
        W, b, c = np.split(theta, [n_weights, n_weights + n_visible])
        return cls(W.reshape(n_visible, n_hidden), b, c)

    def flat(self) -> Array:
        """Return a new flat vector of the parameters, in the order of `from_flat`."""
        return np.concatenate([self.W.ravel(), self.b, self.c])

    def check(self) -> None:
        """Check that the arrays are parameters of an RBM.

        Raises
        ------
        TypeError
            Where they are not arrays of float32, all three, or of float64; or are masked.
        ValueError
            Where their shapes do not belong together.
        """
        for name, p in zip(self._fields, self, strict=True):
            if not isinstance(p, np.ndarray) or isinstance(p, np.ma.MaskedArray):
                raise TypeError(f"{name} must be a plain NumPy array, got {checks.shown(p)}")
            if name == "W" and p.dtype not in (np.float32, np.float64):
                raise TypeError(f"W must be float32 or float64, got {p.dtype}")
            if p.dtype != self.W.dtype:
                raise TypeError(f"{name} must be {self.W.dtype} as W is, got {p.dtype}")
        if self.W.ndim != 2:
            raise ValueError(f"W must have shape (n_visible, n_hidden), got {self.W.shape}")
        for name, p, n in zip("bc", self[1:], self.W.shape, strict=True):
            if p.shape != (n,):
                raise ValueError(
                    f"{name} must have shape ({n},) for W of shape {self.W.shape}, got {p.shape}"
                )

    def hidden_given_visible(self, V: ArrayLike) -> Array:
        """Return P(h = 1 | v) = sigma(c + W^T v), shape (m, n_hidden), for the rows of `V`, shape
        (m, n_visible).
        """
        self.check()
        V = checks.array("V", V, shape=(None, len(self.b)), dtype=self.W.dtype)
        return _activated(V, self.W, self.c)

    def visible_given_hidden(self, H: ArrayLike) -> Array:
        """Return P(v = 1 | h) = sigma(b + W h), shape (m, n_visible), for the rows of `H`, shape
        (m, n_hidden).
        """
        self.check()
        H = checks.array("H", H, shape=(None, len(self.c)), dtype=self.W.dtype)
        return _activated(H, self.W.T, self.b)

    def sample_hidden(self, V: ArrayLike, rng: np.random.Generator) -> Array:
        """Return bits, 0.0 or 1.0, shape (m, n_hidden): h ~ P(h | v) for each row of `V`."""
        return sample_bits(self.hidden_given_visible(V), rng)

    def sample_visible(self, H: ArrayLike, rng: np.random.Generator) -> Array:
        """Return bits, 0.0 or 1.0, shape (m, n_visible): v ~ P(v | h) for each row of `H`."""
        return sample_bits(self.visible_given_hidden(H), rng)

    def reconstruct(self, V: ArrayLike) -> Array:
        """Return the mean-field reconstruction sigma(b + W sigma(c + W^T v)),
        shape (m, n_visible).
        """
        return self.visible_given_hidden(self.hidden_given_visible(V))

    def free_energy(self, V: ArrayLike) -> Array:
        """Return F(v) = -b^T v - sum_j log(1 + exp(c_j + (W^T v)_j)), shape (m,); P(v) =
        exp(-F(v))/Z.
        """
        self.check()
        V = checks.array("V", V, shape=(None, len(self.b)), dtype=self.W.dtype)
        with one_blas_thread():
            units = np.logaddexp(0, V @ self.W + self.c)
            result: Array = -(V @ self.b) - units.sum(axis=1)
        return result

    def log_partition(self) -> float:
        """Return log Z, summed in float64 over every state of the smaller layer.

        Raises
        ------
        ValueError
            Where both layers have more than 20 units.
        """
        self.check()
        smaller = self._double()
        if len(self.b) > len(self.c):
            smaller = RBMParameters(smaller.W.T, smaller.c, smaller.b)
        n_units = len(smaller.b)
        if n_units > _LARGEST_ENUMERATION:
            told = (
                "the exact log-likelihood sums over all states of the smaller layer, which must"
                " have at most"
            )
            raise ValueError(f"{told} {_LARGEST_ENUMERATION} units, got {n_units}")
        log_z = -math.inf
        for start in range(0, 2**n_units, _STATES_AT_ONCE):
            numbers = np.arange(start, min(start + _STATES_AT_ONCE, 2**n_units))
            states = numbers[:, None] >> np.arange(n_units) & 1
            more = logsumexp(-smaller.free_energy(states))
            log_z = float(np.logaddexp(log_z, more))
        return log_z

    def log_likelihood(self, V: ArrayLike) -> float:
        """Return the exact mean of log P(v) over the rows of `V`, which are bits; errors as
        `log_partition`.
        """
        self.check()
        return float(-self._double().free_energy(bits("V", V)).mean() - self.log_partition())

    def _double(self) -> "RBMParameters":
        return RBMParameters(*(p.astype(np.float64, copy=False) for p in self))


def _activated(V: Array, W: Array, bias: Array) -> Array:
    """Return sigma(V W + bias)."""
    with one_blas_thread():
        H: Array = V @ W
    sigmoid_columns(H, bias, 0, len(bias))
    return H


def images(
    name: str, V: ArrayLike, dtype: DTypeLike | None = None, *, unit_interval: bool = True
) -> Array:
    """Return `V` as a C-contiguous (m, n) array, m, n >= 1; without `dtype`, float32 stays so.

    Numbers outside [0, 1] are refused, unless `unit_interval` is false: then they need only be
    finite.
    """
    if dtype is None:
        dtype = checks.precision(V)
    V = checks.array(name, V, shape=(None, None), dtype=dtype)
    if V.size == 0:
        raise ValueError(
            f"{name} must hold at least one image of at least one pixel, got shape {V.shape}"
        )
    if unit_interval and (V.min() < 0 or V.max() > 1):
        raise ValueError(f"{name} must lie in [0, 1], got values from {V.min()} to {V.max()}")
    return V


def bits(name: str, V: ArrayLike) -> Array:
    """Return `V` as `images` does, if each number is 0 or 1: others have no probability."""
    V = images(name, V, unit_interval=False)
    wrong = np.argwhere((V != 0) & (V != 1))
    if len(wrong):
        where = tuple(wrong[0].tolist())
        raise ValueError(
            f"{name} must be 0 or 1, got {V[where]} at index {where}: draw bits of gray levels"
            " first"
        )
    return V


def sample_bits(P: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
    """Return an array (in `out`) of ones with probability `P` and zeros elsewhere, of the shape and
    dtype of `P`.
    """
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng must be a numpy.random.Generator, got {checks.shown(rng)}")
    U = rng.random(P.shape, dtype=P.dtype.type, out=out)
    return np.less(U, P, out=U)
