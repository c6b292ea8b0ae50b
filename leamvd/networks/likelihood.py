"""How likely an RBM finds images, with its partition function by annealed importance sampling.

Salakhutdinov and Murray, "On the quantitative analysis of deep belief networks" (2008). Chains
start at a distribution of independent pixels, whose partition function is known, and go to the
RBM's over inverse temperatures from 0 to 1.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, logsumexp

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.networks.rbm import RBMParameters, bits, images, sample_bits


class LogLikelihood(NamedTuple):
    """The mean log-likelihood of images, and what it rests on; natural logarithms."""

    log_likelihood: float
    log_z: float  # of the partition function
    error: float  # standard error of both


def base_rates(V: ArrayLike) -> Array:
    """Return the biases of independent pixels that are on as often as in the rows of `V`, shape
    (n_visible,).

    One image that is all on and one that is all off are added, so that no pixel is certain.
    """
    V = images("V", V)
    mean = (V.sum(axis=0, dtype=np.float64) + 1) / (len(V) + 2)
    biases: Array = np.log(mean / (1 - mean))
    return biases


def independent(biases: Array, n_hidden: int = 1) -> RBMParameters:
    """Return the RBM of independent pixels, shape (n_visible,): all that is not a visible bias is
    zero.
    """
    return RBMParameters(np.zeros((len(biases), n_hidden)), biases, np.zeros(n_hidden))


def log_weights(
    rbm: RBMParameters,
    base: ArrayLike,
    *,
    n_chains: int,
    n_temperatures: int,
    rng: np.random.Generator,
) -> Array:
    """Return the logarithms of importance weights, one of each chain, whose mean estimates Z
    without bias, in float64.

    Chains start from independent pixels of the biases `base`, shape (n_visible,), see `base_rates`,
    and reach the RBM in `n_temperatures` equally long steps.
    """
    rbm.check()
    W, b, c = rbm._double()
    a = checks.array("base", base, shape=(len(b),), dtype=np.float64)
    n_chains = checks.integer("n_chains", n_chains, at_least=1)
    betas = np.linspace(0, 1, checks.integer("n_temperatures", n_temperatures, at_least=1) + 1)
    V = sample_bits(np.tile(expit(a), (n_chains, 1)), rng)  # v ~ p_0
    log_w = np.full(n_chains, np.logaddexp(0, a).sum() + len(c) * np.log(2))  # log Z_0
    with one_blas_thread():
        for before, beta in pairwise(betas):
            # log p_beta(v) = ((1 - beta) a + beta b)^T v + sum_j log(1 + exp(beta x_j)), x = c +
            # W^T v, up to Z_beta
            X = V @ W + c
            log_w += (beta - before) * (V @ (b - a))
            log_w += (np.logaddexp(0, beta * X) - np.logaddexp(0, before * X)).sum(axis=1)
            H = sample_bits(expit(beta * X), rng)  # a step that leaves p_beta as it is
            V = sample_bits(expit((1 - beta) * a + beta * (b + H @ W.T)), rng)
    return log_w


def estimate(rbm: RBMParameters, V: ArrayLike, log_w: Array) -> LogLikelihood:
    """Return the mean log-likelihood of the bits `V`, shape (m, n_visible), given `log_weights` of
    two chains or more.

    The standard error is that of the logarithm of the weights' mean, to first order.
    """
    log_w = checks.array("log_w", log_w, shape=(None,), dtype=np.float64)
    if len(log_w) < 2:
        raise ValueError(f"log_w must be of two chains or more, got {len(log_w)}")
    log_z = float(logsumexp(log_w) - np.log(len(log_w)))
    error = float(np.exp(log_w - log_z).std(ddof=1) / np.sqrt(len(log_w)))
    energies = rbm._double().free_energy(bits("V", V))
    return LogLikelihood(float(-energies.mean()) - log_z, log_z, error)
