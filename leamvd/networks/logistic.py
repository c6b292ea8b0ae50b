"""The logistic function sigma(x) = 1/(1 + exp(-x)) over whole arrays, where the time of small
layers goes.
"""

import math
from typing import Any

import numpy as np

from leamvd._support.compile import Array, kernel


@kernel()
def sigmoid(A: Array, bias: Array) -> None:
    """Replace A[i, j] by sigma(A[i, j] + bias[i])."""
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            A[i, j] = _expit(A[i, j] + bias[i])


@kernel()
def sigmoid_columns(A: Array, bias: Array, start: int, stop: int) -> None:
    """Replace A[i, j] by sigma(A[i, j] + bias[j]) in the columns start..stop."""
    biases = bias[start:stop]
    for i in range(A.shape[0]):
        row = A[i, start:stop]
        for j in range(row.size):
            row[j] = _expit(row[j] + biases[j])


@kernel(reassociate=True)
def squared_error(A: Array, bias: Array, V: Array) -> float:
    """Return the sum of (sigma(A[i, j] + bias[i]) - V[i, j])^2, +inf instead of NaN."""
    total = 0.0
    for i in range(A.shape[0]):
        row = V.dtype.type(0)  # a block's length of float32 terms loses nothing that matters
        for j in range(A.shape[1]):
            difference = _expit(A[i, j] + bias[i]) - V[i, j]
            row += difference * difference
        total += np.float64(row)
    return np.inf if np.isnan(total) else total


# sigma(x) = 1/(1 + e), e = exp(-x) = 2^k exp(r) with k an integer and abs(r) <= ln 2 / 2, by
# Taylor's series. Adding 1.5 2^23 (float32) or 1.5 2^52 (float64) rounds to an integer whose bits
# then stand at the low end of the sum, so that all of it runs in vector lanes, which a call of the
# C library's exp does not: `scipy.special.expit` takes 3 to 13 times as long. -x is clamped to
# where 2^k is a normal number.
def _constants(
    real: Any, limit: float, mantissa: int, ln2_high: float, ln2_low: float, degree: int
) -> tuple[Any, ...]:
    """Return the numbers of one floating type: the limit of abs(x) first, the series last, highest
    power first.
    """
    numbers = limit, 1 / math.log(2), 1.5 * 2**mantissa, ln2_high, ln2_low, 1
    series = [real(1 / math.factorial(power)) for power in range(degree + 1)]
    return *map(real, numbers), tuple(reversed(series))


# ln 2 in two parts: products of the first, of few bits, with k are exact; in double precision both
# have 86 bits
_SINGLE = _constants(np.float32, 87, 23, 355 / 512, math.log(2) - 355 / 512, 6)
_LN2 = float.fromhex("0x1.62e42feep-1"), float.fromhex("0x1.a39ef35793c76p-33")
_DOUBLE = _constants(np.float64, 708, 52, *_LN2, 13)


@kernel(contract=True)
def _expit(x: Any) -> Any:
    single = isinstance(x, np.float32)  # decided when compiled
    limit, log2_e, rounding, ln2_high, ln2_low, one, series = _SINGLE if single else _DOUBLE
    y = -x  # NaN passes through
    if x < -limit:
        y = limit
    elif x > limit:
        y = -limit
    rounded = y * log2_e + rounding
    k = rounded - rounding
    r = (y - k * ln2_high) - k * ln2_low
    p = series[0]
    # not by `random_streams._horner`, whose products and sums are rounded apart
    for coefficient in series[1:]:
        p = p * r + coefficient
    e = _times_power_32(p, rounded) if single else _times_power_64(p, rounded)
    return one / (one + e)


@kernel()
def _times_power_32(p: Any, rounded: Any) -> Any:
    """Return 2^k p: the exponents add; all of `rounded` but k is shifted out."""
    exponent = np.int32(np.float32(rounded).view(np.int32) << np.int32(23))
    bits = exponent + np.float32(p).view(np.int32)
    return np.int32(bits).view(np.float32)


@kernel()
def _times_power_64(p: Any, rounded: Any) -> Any:
    exponent = np.float64(rounded).view(np.int64) << np.int64(52)
    bits = exponent + np.float64(p).view(np.int64)
    return np.int64(bits).view(np.float64)
