"""The optimizers by their names, and what a search may be told: their arguments, a reading's fields, SciPy's names."""

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from numpy.typing import ArrayLike

from leamvd._support import checks
from leamvd.optimizers.base import BoundsLike, Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.random_search import RandomSearch
from leamvd.optimizers.reading import Reading

METHODS = ("lea-mvd", "cma-es", "sep-cma-es", "random")
"""The methods that `leamvd.minimize` can run."""

UNLIMITED = sys.maxsize
"""`n_gen` where another budget ends the search."""

_CLASSES: dict[str, type[Optimizer]] = {"lea-mvd": LEAMVD, "cma-es": CMAES, "sep-cma-es": CMAES, "random": RandomSearch}

_SCIPYS = {"maxiter": "n_gen", "maxfev": "max_nfev", "rng": "seed"}
"""What SciPy calls some arguments."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def optimizer(method: str, x0: ArrayLike | None = None, **options: Any) -> Optimizer:
    """Return the optimizer called `method`, one of `METHODS`; `options` go to its constructor.

    For LEA-MVD the fields of its reading may be among them, and replace those of `reading`.
    """
    checks.choice("method", method, METHODS)
    if method == "lea-mvd":
        fields = {name: options.pop(name) for name in _reading_fields() & options.keys()}
        reading = Reading() if options.get("reading") is None else options["reading"]
        if fields and isinstance(reading, Reading):
            options["reading"] = dataclasses.replace(reading, **fields)
        return LEAMVD(x0, **options)
    if method == "random":
        return RandomSearch(x0, **options)
    if x0 is None:
        raise ValueError(f"x0 must be given for method={method!r}, got None")
    return CMAES(x0, diagonal=method == "sep-cma-es", **options)


def packages(method: str) -> tuple[str, ...]:
    """Return the distributions that an optimizer needs, and that are imported only where it is used."""
    return ("cma",) if method.endswith("cma-es") else ()


def started(
    method: str | Optimizer,
    x0: ArrayLike | None,
    bounds: BoundsLike | None,
    options: dict[str, Any],
    *,
    other_budget: bool,
) -> Optimizer:
    """Return the optimizer that a search is to run, or the one that is given, which may go on.

    A new one keeps its bounds, unless `limits` are given. Where there is an `other_budget`, the default number of
    generations is none.
    """
    if isinstance(method, Optimizer):
        if given := [name for name, value in ({"x0": x0, "bounds": bounds} | options).items() if value is not None]:
            raise ValueError(f"{', '.join(given)} must be left out where method is an optimizer, got {method!r}")
        method.resume()
        return method
    reading = options.get("reading")
    if bounds is not None:
        options = options | {"bounds": bounds}
        if method == "lea-mvd" and getattr(reading, "limits", Reading.limits) == Reading.limits:
            options = {"limits": "clip"} | options
    if other_budget and options.get("n_gen") is None and getattr(reading, "n_gen", Reading.n_gen) == Reading.n_gen:
        options = options | {"n_gen": UNLIMITED}
    return optimizer(method, x0, **options)


def with_names_of_scipy(search: Callable[_P, _R]) -> Callable[_P, _R]:
    """Let the arguments of `search` also come in one of them, `options`, and by the names that SciPy has for them.

    What neither it nor its `method` has is refused.
    """

    @functools.wraps(search)
    def call(*args: _P.args, **given: _P.kwargs) -> _R:
        arguments = _one_of_each(**given)
        method = arguments.get("method", METHODS[0])
        if not isinstance(method, Optimizer):
            known = [*inspect.signature(search).parameters, *_options(checks.choice("method", method, METHODS))]
            if unknown := next((name for name in arguments if name not in known), None):
                end = checks.did_you_mean(unknown, known)
                raise TypeError(f"{unknown} must be left out, since method={method!r} has no such argument{end}")
        return search(*args, **arguments)

    return call


def _one_of_each(*, options: Any = None, **given: Any) -> Any:
    """Return arguments with those in `options`, by the names that they have here."""
    inside = {} if options is None else options
    if not isinstance(inside, Mapping):
        raise TypeError(f"options must be a dict of arguments, got {checks.shown(options)}")
    if twice := sorted(given.keys() & inside.keys()):
        raise ValueError(f"{', '.join(twice)} must be given once, directly or in options, got both")
    arguments = {**given, **inside}
    for other, name in _SCIPYS.items():
        if (value := arguments.pop(other, None)) is None:
            continue
        if arguments.get(name) is not None:
            both = f"{other}={checks.shown(value)} and {name}={checks.shown(arguments[name])}"
            raise ValueError(f"{both} clash: they are one argument, give one of them")
        arguments[name] = value
    return arguments


def _reading_fields() -> set[str]:
    """Return the names of what a reading alone decides."""
    return {field.name for field in dataclasses.fields(Reading)} - {"population_size", "n_gen"}


def _options(method: str) -> list[str]:
    """Return the names of what a method may be told."""
    own = {*inspect.signature(_CLASSES[method]).parameters} - {"diagonal"}
    return sorted(own | (_reading_fields() if method == "lea-mvd" else set()))
