"""The logistic function sigma(x) = 1/(1 + exp(-x)) over whole arrays, where the time of small layers goes."""

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
    own = bias[start:stop]
    for i in range(A.shape[0]):
        row = A[i, start:stop]
        for j in range(row.size):
            row[j] = _expit(row[j] + own[j])


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


# sigma(x) = 1/(1 + e), e = exp(-x) = 2^k exp(r) with k an integer and abs(r) <= ln 2 / 2, by Taylor's series. Adding
# 1.5 2^23 (float32) or 1.5 2^52 (float64) rounds to an integer whose bits then stand at the low end of the sum, so that
# all of it runs in vector lanes, which a call of the C library's exp does not. -x is clamped to where 2^k is a normal
# number.
_LIMIT_32 = np.float32(87)
_LOG2_E_32 = np.float32(1 / math.log(2))
_ROUND_32 = np.float32(1.5 * 2**23)
_LN2_HIGH_32 = np.float32(355 / 512)  # few bits: its products with k are exact
_LN2_LOW_32 = np.float32(math.log(2) - 355 / 512)
_SERIES_32 = tuple(np.float32(1 / math.factorial(power)) for power in range(6, -1, -1))
_ONE_32 = np.float32(1)

_LIMIT_64 = np.float64(708)
_LOG2_E_64 = np.float64(1 / math.log(2))
_ROUND_64 = np.float64(1.5 * 2**52)
_LN2_HIGH_64 = np.float64(float.fromhex("0x1.62e42feep-1"))
_LN2_LOW_64 = np.float64(float.fromhex("0x1.a39ef35793c76p-33"))  # the rest of ln 2 to 86 bits
_SERIES_64 = tuple(np.float64(1 / math.factorial(power)) for power in range(13, -1, -1))
_ONE_64 = np.float64(1)


@kernel()
def _expit(x: Any) -> Any:
    return _expit_32(x) if isinstance(x, np.float32) else _expit_64(x)  # decided when compiled


@kernel(contract=True)
def _expit_32(x: Any) -> Any:
    y = _LIMIT_32 if x < -_LIMIT_32 else -_LIMIT_32 if x > _LIMIT_32 else -x  # NaN passes through
    rounded = y * _LOG2_E_32 + _ROUND_32
    k = rounded - _ROUND_32
    r = (y - k * _LN2_HIGH_32) - k * _LN2_LOW_32
    # 2^k p: the exponents add; all of `rounded` but k is shifted out
    p = np.float32(_polynomial(_SERIES_32, r))
    bits = np.int32(np.float32(rounded).view(np.int32) << np.int32(23)) + p.view(np.int32)
    return _ONE_32 / (_ONE_32 + np.int32(bits).view(np.float32))


@kernel(contract=True)
def _expit_64(x: Any) -> Any:
    y = _LIMIT_64 if x < -_LIMIT_64 else -_LIMIT_64 if x > _LIMIT_64 else -x
    rounded = y * _LOG2_E_64 + _ROUND_64
    k = rounded - _ROUND_64
    r = (y - k * _LN2_HIGH_64) - k * _LN2_LOW_64
    p = np.float64(_polynomial(_SERIES_64, r))
    bits = (np.float64(rounded).view(np.int64) << np.int64(52)) + p.view(np.int64)
    return _ONE_64 / (_ONE_64 + np.int64(bits).view(np.float64))


@kernel(contract=True)
def _polynomial(coefficients: Any, x: Any) -> Any:
    value = coefficients[0]
    for coefficient in coefficients[1:]:
        value = value * x + coefficient
    return value
