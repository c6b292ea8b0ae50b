"""Checks of arguments and packages: every error names the argument, the rule and the value received."""

import importlib.util
import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def integer(name: str, value: object, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return `value` as an int; a bool or a float is a TypeError, a value out of range a ValueError."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {value!r}")
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} must be an integer, got {value!r}") from None
    if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
        raise ValueError(f"{name} must be an integer{_range(at_least, None, at_most, None)}, got {number}")
    return number


def real(
    name: str,
    value: object,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
) -> float:
    """Return `value` as a finite float; what is not a number is a TypeError, one out of range a ValueError."""
    if isinstance(value, bool | np.bool_ | str):
        raise TypeError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {value!r}") from None
    if (
        not math.isfinite(number)
        or (at_least is not None and number < at_least)
        or (above is not None and number <= above)
        or (at_most is not None and number > at_most)
        or (below is not None and number >= below)
    ):
        raise ValueError(f"{name} must be a finite number{_range(at_least, above, at_most, below)}, got {value!r}")
    return number


def choice(name: str, value: object, options: Sequence[object]) -> Any:
    """Return `value` if it is one of `options`; anything else is a ValueError."""
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {value!r}")
    return value


def array(name: str, value: ArrayLike, *, shape: tuple[int | None, ...], dtype: DTypeLike) -> NDArray[Any]:
    """Return `value` as a C-contiguous array of finite numbers of this dtype and shape (None: any length).

    The caller's array is returned itself where it already fits, so do not write to the result.
    """
    try:
        result = np.ascontiguousarray(value, dtype=dtype) if shape else np.asarray(value, dtype=dtype)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be an array of numbers, got {value!r:.200}") from None
    given = np.shape(value)
    if len(given) != len(shape) or any(
        want is not None and have != want for have, want in zip(given, shape, strict=True)
    ):
        want = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{name} must have shape {want}, got {given}")
    finite = np.isfinite(result)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {result[where]} at index {where}")
    return result


def needs(what: str, extra: str, *packages: str) -> None:
    """Check that optional packages are there, without importing them; `extra` is the one of leamvd that brings them.

    Raises
    ------
    ModuleNotFoundError
        Says in one sentence what needs which packages, and how to install them.
    """
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        noun = "package" if len(missing) == 1 else "packages"
        raise ModuleNotFoundError(
            f"{what} needs the {noun} {', '.join(missing)}: pip install leamvd[{extra}]", name=missing[0]
        )


def _range(at_least: float | None, above: float | None, at_most: float | None, below: float | None) -> str:
    parts = [
        f"{word} {bound}"
        for word, bound in ((">=", at_least), (">", above), ("<=", at_most), ("<", below))
        if bound is not None
    ]
    return " " + " and ".join(parts) if parts else ""
