"""The optimizers by their names."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike
from scipy.optimize import OptimizeWarning

from leamvd._support import checks
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.cma_es import CMAES
from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.random_search import RandomSearch
from leamvd.optimizers.reading import Reading

CLASSES: dict[str, Callable[..., Optimizer]] = {
    "lea-mvd": LEAMVD,
    "cma-es": CMAES,
    "sep-cma-es": functools.partial(CMAES, diagonal=True),
    "random": RandomSearch,
}  # a new baseline is a line here

METHODS = tuple(CLASSES)  # that `leamvd.minimize` can run


# Names of options: of each constructor, and the fields of a reading.
_TAKEN = {name: inspect.signature(create).parameters for name, create in CLASSES.items()}
_FIELDS = {field.name for field in dataclasses.fields(Reading)}
# fields of a reading that every method has, and those that replace a reading's
_SHARED = ("population_size", "n_gen", "x0_in_population")
_REPLACED = _FIELDS - {"population_size", "n_gen"}


def arguments(method: str) -> set[str]:
    """Return the names of the options that `optimizer` takes for a method: its constructor's, and
    all of LEA-MVD's.
    """
    return {*_TAKEN[method], *_TAKEN["lea-mvd"], *_FIELDS}


def unused_without_x0(method: str) -> tuple[str, ...]:
    """Return the options that a method has no use for without a start solution: a CMA-ES has of
    `sigma0`.
    """
    return ("x0_in_population",) if method.endswith("cma-es") else ("sigma0", "x0_in_population")


def optimizer(method: str, x0: ArrayLike | None = None, **options: Any) -> Optimizer:
    """Return the optimizer called `method`, one of `METHODS`; `options` go to its constructor.

    The fields of a reading may be among them, and replace those of `reading`. From it a baseline
    takes the population size, `n_gen` and `x0_in_population`; one warning names what the method has
    no use for. Limits that it does not keep are a ValueError.
    """
    create = CLASSES[checks.choice("method", method, METHODS)]
    reading = options.pop("reading", None)
    if reading is None:
        reading = Reading()
    if not isinstance(reading, Reading):
        raise TypeError(f"reading must be a leamvd.Reading, got {checks.shown(reading)}")
    given = set(options)
    fields = {name: options.pop(name) for name in _REPLACED & given}
    reading = dataclasses.replace(reading, **fields)
    told = []
    if x0 is None:
        told = [f"{name} without x0" for name in unused_without_x0(method) if name in given]
    if method == "lea-mvd":
        _warn_of_unused(method, told)
        return create(x0, **options, reading=reading)
    bounded = options.get("bounds") is not None
    if bounded and reading.limits in ("first", "reflect"):
        raise ValueError(
            f"limits must be 'clip' or None for {method!r}, which keeps bounds, got"
            f" {reading.limits!r}"
        )
    for name in _SHARED:
        if options.get(name) is None:
            options[name] = getattr(reading, name)
    others = {name for name in _FIELDS if getattr(reading, name) != getattr(Reading, name)}
    others |= fields.keys() | (arguments("lea-mvd") & options.keys() - _TAKEN[method])
    others -= {*_SHARED}
    if bounded:
        others.discard("limits")
    for name in others & options.keys():
        del options[name]
    _warn_of_unused(method, sorted(others) + told)
    return create(x0, **options)


def _warn_of_unused(method: str, names: list[str]) -> None:
    if names:
        checks.warn(f"{method} has no use for {', '.join(names)}", OptimizeWarning)
