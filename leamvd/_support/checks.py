"""Checks of arguments and packages: every error names the argument, the rule and the value received."""

import contextlib
import difflib
import importlib.util
import math
import operator
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

if TYPE_CHECKING:  # what checks arguments starts without Numba
    from leamvd._support.compile import Array


def shown(value: object) -> str:
    """Return the start of a value's representation on one line, for a message."""
    try:
        text = repr(value)
    except ValueError:  # an integer of more digits than Python prints
        text = f"a large {type(value).__name__}"
    return " ".join(text.split())[:100]


def integer(name: str, value: object, *, at_least: int | None = None, at_most: int | None = None) -> int:
    """Return `value` as an int; a bool or a float is a TypeError, a value out of range a ValueError."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None or isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    if (at_least is not None and number < at_least) or (at_most is not None and number > at_most):
        raise ValueError(f"{name} must be an integer{_range(at_least, None, at_most, None)}, got {shown(number)}")
    return number


def real(
    name: str,
    value: object,
    *,
    at_least: float | None = None,
    above: float | None = None,
    at_most: float | None = None,
    below: float | None = None,
    dtype: DTypeLike = np.float64,
) -> float:
    """Return `value` as a finite float; what is not a number is a TypeError, one out of range a ValueError.

    So is one that is out of range once it is rounded to `dtype`.
    """
    kind: Any = np.dtype(dtype).type
    try:
        if isinstance(value, bool | np.bool_ | str | bytes | bytearray | complex | np.complexfloating):
            raise TypeError
        with np.errstate(over="ignore", under="ignore"):
            number = float(kind(float(value)))  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number, got {shown(value)}") from None
    except OverflowError:
        number = math.inf
    if (
        not math.isfinite(number)
        or (at_least is not None and number < at_least)
        or (above is not None and number <= above)
        or (at_most is not None and number > at_most)
        or (below is not None and number >= below)
    ):
        held = "" if np.dtype(dtype) == np.float64 else f" in {np.dtype(dtype)}"
        rule = f"a finite number{_range(at_least, above, at_most, below)}{held}"
        raise ValueError(f"{name} must be {rule}, got {shown(value)}")
    return float(value)  # type: ignore[arg-type]


def choice(name: str, value: object, options: Sequence[object]) -> Any:
    """Return `value` if it is one of `options`; anything else is a ValueError."""
    if not any(value is option or (type(value) is type(option) and value == option) for option in options):
        raise ValueError(f"{name} must be one of {', '.join(map(repr, options))}, got {shown(value)}")
    return value


def precision(value: object) -> type[np.float32 | np.float64]:
    """Return the type of arithmetic on `value`: float32 for a float32 array, float64 for anything else."""
    return np.float32 if getattr(value, "dtype", None) == np.float32 else np.float64


def floating(name: str, value: DTypeLike) -> np.dtype[np.floating]:
    """Return float32 or float64 as a dtype; a ValueError for anything else."""
    found: Any = None
    with contextlib.suppress(Exception):  # NumPy parses it, and says what it finds wrong in many ways
        found = np.dtype(value)
    if found not in (np.float32, np.float64):
        raise ValueError(f"{name} must be float32 or float64, got {shown(value)}")
    dtype: np.dtype[np.floating] = found
    return dtype


def file(name: str, value: str | os.PathLike[str]) -> Path:
    """Return the path of a file, links followed; a ValueError where there is no name of a file in it."""
    try:
        path = Path(os.fsdecode(value))
    except TypeError:
        raise TypeError(f"{name} must be the path of a file, got {shown(value)}") from None
    if path.name in ("", ".."):
        raise ValueError(f"{name} must be the path of a file, got {shown(value)}")
    return Path(os.path.realpath(path))


def numbers(
    name: str, value: ArrayLike, *, shape: tuple[int | None, ...], dtype: DTypeLike, rounded: bool = False
) -> "Array":
    """Return `value` as a C-contiguous array of real numbers of this dtype and shape (None: any length); NaN is one.

    What it cannot hold is refused: masks, imaginary parts, fractions where it holds integers, and, unless they may be
    `rounded`, integers beyond those that it tells apart. The caller's array is returned itself where it already fits,
    so do not write to the result.
    """
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(isinstance(part, np.ma.MaskedArray) and np.ma.is_masked(part) for part in parts):
        raise TypeError(f"{name} must not be masked, got {shown(value)}")
    try:
        given = np.asanyarray(value)
    except (TypeError, ValueError):  # rows of different lengths
        raise TypeError(f"{name} must be an array of numbers, got {shown(value)}") from None
    wanted = np.dtype(dtype)
    fits = given.dtype == wanted and type(given) is np.ndarray
    if not fits:
        _check_kind(name, given, wanted, rounded)
    if len(given.shape) != len(shape) or any(
        want is not None and have != want for have, want in zip(given.shape, shape, strict=True)
    ):
        want = "(" + ", ".join("any" if s is None else str(s) for s in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{name} must have shape {want}, got {given.shape}")
    if not fits:
        with np.errstate(over="ignore"):  # `array` says what has become infinite
            given = np.asarray(given, wanted)
    return np.ascontiguousarray(given) if shape else given


def array(name: str, value: ArrayLike, *, shape: tuple[int | None, ...], dtype: DTypeLike) -> "Array":
    """Return `value` as `numbers` does, if all of them are finite; a ValueError otherwise."""
    result = numbers(name, value, shape=shape, dtype=dtype)
    finite = np.isfinite(result)
    if not finite.all():
        where = tuple(int(i) for i in np.argwhere(~finite)[0])
        raise ValueError(f"{name} must be finite, got {result[where]} at index {where}")
    return result


def objective_values(name: str, value: ArrayLike, count: int) -> "Array":
    """Return `value` as `numbers` does, with `count` values; a ValueError for -inf, below which nothing can rank."""
    result = numbers(name, value, shape=(count,), dtype=np.float64, rounded=True)
    if np.any(result == -np.inf):
        raise ValueError(f"{name} must be larger than -inf, got -inf at index {int(np.argmin(result))}")
    return result


def _check_kind(name: str, given: "Array", dtype: np.dtype[Any], rounded: bool) -> None:
    """Raise where a conversion to `dtype` would lose what the numbers say."""
    whole = dtype.kind == "i"
    if given.dtype.kind in ("bcf" if whole else "c"):
        raise TypeError(f"{name} must be an array of {'integers' if whole else 'real numbers'}, got {shown(given)}")
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of numbers, got {shown(given)}")
    if given.dtype.kind in "iu" and given.size and not rounded:
        limit = np.iinfo(dtype).max if whole else 2 ** (np.finfo(dtype).nmant + 1)
        largest = max(int(given.max()), -int(given.min()))
        if largest > limit:
            raise ValueError(f"{name} must hold integers that {dtype} tells apart, up to {limit}, got {shown(largest)}")


def needs(what: str, extra: str, *packages: str) -> None:
    """Raise where optional packages, which the `extra` of leamvd brings, are missing; they are not imported."""
    missing = [name for name in packages if sys.modules.get(name) is None and importlib.util.find_spec(name) is None]
    if missing:
        noun = "package" if len(missing) == 1 else "packages"
        raise ModuleNotFoundError(
            f"{what} needs the {noun} {', '.join(missing)}: pip install leamvd[{extra}]", name=missing[0]
        )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that is unknown: one that is close to it; nothing if there is none."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _range(at_least: float | None, above: float | None, at_most: float | None, below: float | None) -> str:
    parts = [
        f"{word} {bound}"
        for word, bound in ((">=", at_least), (">", above), ("<=", at_most), ("<", below))
        if bound is not None
    ]
    return " " + " and ".join(parts) if parts else ""
