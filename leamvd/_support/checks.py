"""Checks of arguments where a wrong value would be silent: each error names the argument, the rule
and the value.
"""

import difflib
import importlib.util
import operator
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import combinations
from types import FrameType, ModuleType
from typing import Any, SupportsFloat, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray


def cut(text: str, length: int) -> str:
    """Return a text, the end of one that is longer left out."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


def shown(value: object) -> str:
    """Return a value's representation on one line, for a message; what is long is shortened."""
    if isinstance(value, ModuleType):  # without its path
        return f"<module {value.__name__!r}>"
    with np.printoptions(threshold=6, edgeitems=2):
        return cut(" ".join(repr(value).split()), 100)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the known one close to it, if any."""
    names = {one.lower(): one for one in known}
    close = difflib.get_close_matches(str(name).lower(), names, n=1)
    return f"; did you mean {names[close[0]]!r}?" if close else ""


_SPELLED: ContextVar[Mapping[str, str]] = ContextVar("_SPELLED")


@contextmanager
def spelled(names: Mapping[str, str]) -> Iterator[None]:
    """Let errors repeat how arguments were spelled, by their names here."""
    before = _SPELLED.set(names)
    try:
        yield
    finally:
        _SPELLED.reset(before)


def as_given(name: str) -> str:
    """Return an argument's name for a message, or that of one of its items: as it was spelled, with
    ours behind it.
    """
    argument, bracket, item = name.partition("[")
    other = _SPELLED.get({}).get(argument)
    return name if other is None else f"{other} ({argument}){bracket}{item}"


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Warn about the line that has led here, outside of this package and of the one that warns."""
    frame = sys._getframe()
    inside = {_package(frame), _package(sys._getframe(1))}
    level = 1
    while frame.f_back and _package(frame) in inside:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def _package(frame: FrameType) -> str:
    name: str = frame.f_globals["__name__"]
    return name.partition(".")[0]


def integer(name: str, value: object, **limits: float | None) -> int:
    """Return `value` as an int; a bool or a float is a TypeError, one outside `limits`, as for
    `real`, a ValueError.
    """
    name = as_given(name)
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be an integer, got {shown(value)}")
    number = operator.index(value)
    _check_range(name, "an integer", number, number, **limits)
    return number


def count(name: str, value: object, **limits: float | None) -> int:
    """Return `value` as `integer` does, also a float that is whole, such as 1e3."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        value = int(value)
    return integer(name, value, **limits)


def real(
    name: str, value: object, *, dtype: DTypeLike = np.float64, **limits: float | None
) -> float:
    """Return `value` as a finite float; a TypeError for no number, a ValueError outside `limits`.

    These are `at_least`, `above`, `at_most` and `below`. They hold for the number rounded to
    `dtype`, too.
    """
    # float() takes some
    no_number = isinstance(value, bool | np.bool_ | str | bytes | complex | np.complexfloating)
    if no_number or np.ndim(value) or not isinstance(value, SupportsFloat | SupportsIndex):  # type: ignore[arg-type]
        raise TypeError(f"{name} must be a number, got {shown(value)}")
    number = float(value)
    with np.errstate(over="ignore", under="ignore"):
        rounded = float(np.asarray(number, dtype))
    what = "a finite number"
    if np.dtype(dtype) != np.float64:
        what += f" in {np.dtype(dtype)}"
    _check_range(name, what, rounded, value, **limits)
    return number


_RULES = {
    "at_least": (operator.ge, ">="),
    "above": (operator.gt, ">"),
    "at_most": (operator.le, "<="),
    "below": (operator.lt, "<"),
}


def _check_range(
    name: str, what: str, number: float, value: object, **limits: float | None
) -> None:
    right = number - number == 0
    rules = []
    for kind, limit in limits.items():
        if limit is not None:
            holds, sign = _RULES[kind]
            right &= holds(number, limit)
            rules.append(f"{sign} {limit}")
    if not right:
        rule = " and ".join(rules)
        raise ValueError(f"{name} must be {what}{rule and ' '}{rule}, got {shown(value)}")


def choice(name: str, value: object, options: Sequence[object]) -> Any:
    """Return the one of `options` that `value` is, be it a NumPy scalar, or raise a ValueError."""
    given = value.item() if isinstance(value, np.generic) else value
    for option in options:
        if given is option or (type(given) is type(option) and given == option):
            return option
    known = ", ".join(map(repr, options))
    names = [option for option in options if isinstance(option, str) and isinstance(given, str)]
    raise ValueError(
        f"{name} must be one of {known}, got {shown(value)}{did_you_mean(given, names)}"
    )


def decimal(text: str) -> float:
    """Return a text's number; a ValueError where it has an underscore, which Python skips."""
    if "_" in text:
        raise ValueError(f"a number must be digits alone, got {text!r}")
    return float(text)


def several(
    name: str, value: object, *, at_least: int = 0, different: bool = False
) -> tuple[Any, ...]:
    """Return the items of a list; a TypeError for what has none, or is a text: nobody means its
    letters.

    They are `different` where each of them is a run.
    """
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise TypeError(f"{name} must be a list, got {shown(value)}")
    items = tuple(value)
    if len(items) < at_least:
        raise ValueError(f"{name} must be a list of {at_least} or more, got {shown(value)}")
    if different and any(one == other for one, other in combinations(items, 2)):
        raise ValueError(f"{name} must be different values, got {shown(value)}")
    return items


def precision(value: object) -> type[np.float32 | np.float64]:
    """Return the type of arithmetic on `value`: float32 for a float32 array, else float64."""
    return np.float32 if getattr(value, "dtype", None) == np.float32 else np.float64


def floating(name: str, value: DTypeLike) -> np.dtype[np.floating]:
    """Return float32 or float64 as a dtype; a ValueError for anything else."""
    known = (np.dtype(np.float32), np.dtype(np.float64))
    dtype: np.dtype[np.floating] = choice(name, np.dtype(value), known)
    return dtype


def numbers(
    name: str, value: ArrayLike, *, shape: tuple[int | None, ...], dtype: DTypeLike
) -> NDArray[Any]:
    """Return `value` as a C-contiguous array of real numbers of this dtype and shape (None: any
    length); NaN is one.

    Masks and imaginary parts are refused. The caller's array is returned itself where it already
    fits, so do not write to the result.
    """
    _check_unmasked(name, value)
    given = np.asanyarray(value)
    if given.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be an array of real numbers, got {shown(given)}")
    fits = given.ndim == len(shape)
    for have, length in zip(given.shape, shape, strict=False):
        fits &= length in (None, have)
    if not fits:
        any_length = "n" if len(shape) == 1 else "mnk"
        axes: list[object] = [*shape]
        for i, length in enumerate(shape):
            if length is None:
                axes[i] = any_length[i]
        want = str(tuple(axes)).replace("'", "")
        raise ValueError(f"{name} must have shape {want}, got {given.shape}")
    with np.errstate(over="ignore"):  # `array` says what has become infinite
        given = np.asarray(given, dtype)
    return np.ascontiguousarray(given) if shape else given


def _check_unmasked(name: str, value: object) -> None:
    parts = value if isinstance(value, list | tuple) else (value,)
    if any(np.ma.is_masked(part) for part in parts):
        raise TypeError(f"{name} must not be masked, got {shown(value)}")


def array(
    name: str, value: ArrayLike, *, shape: tuple[int | None, ...], dtype: DTypeLike
) -> NDArray[Any]:
    """Return `value` as `numbers` does, if all of them are finite; a ValueError otherwise."""
    result = numbers(name, value, shape=shape, dtype=dtype)
    finite = np.isfinite(result)
    if not finite.all():
        where = tuple(np.argwhere(~finite)[0].tolist())
        raise ValueError(f"{name} must be finite, got {result[where]} at index {where}")
    return result


def objective_value(name: str, value: object) -> float:
    """Return what has `__float__` as a float, be it NaN; text and complex are a TypeError."""
    if isinstance(value, str | bytes | complex | np.complexfloating) or not isinstance(
        value, SupportsFloat
    ):
        raise TypeError(f"{name} must be real numbers, got {shown(value)}")
    return float(value)


def detached(value: Any) -> Any:
    """Return a tensor of PyTorch's as NumPy can read it: on the host, without its gradient."""
    return value.detach().cpu() if hasattr(value, "detach") else value


def objective_values(name: str, value: Any, count: int) -> NDArray[Any]:
    """Return `count` values, one in each row, as float64, shape (count,); -inf, which would rank
    first, is an error.
    """
    value = [detached(one) for one in value] if isinstance(value, list) else detached(value)
    _check_unmasked(name, value)
    given = np.asanyarray(value)
    if given.dtype == object:  # fractions, say
        value = np.reshape([objective_value(name, one) for one in given.flat], given.shape)
    shape = (count, 1) if given.shape == (count, 1) else (count,)
    result = numbers(name, value, shape=shape, dtype=np.float64).reshape(count)
    if np.any(result == -np.inf):
        where = int(np.argmin(result))
        raise ValueError(f"{name} must be larger than -inf, got -inf at index {where}")
    return result


def needs(what: str, requirement: str, *packages: str) -> None:
    """Raise where optional packages, which a requirement with an extra brings, are missing; they
    are not imported.
    """
    missing = []
    for name in packages:
        if sys.modules.get(name) is None and importlib.util.find_spec(name) is None:
            missing.append(name)
    if missing:
        told = (
            f"{what} needs the package{'s'[: len(missing) - 1]} {', '.join(missing)}: pip install"
            f" {requirement}"
        )
        raise ModuleNotFoundError(told, name=missing[0])
