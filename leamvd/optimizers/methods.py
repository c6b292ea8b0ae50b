"""The optimizers by their names."""

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

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


def optimizer(method: str, x0: ArrayLike | None = None, **options: Any) -> Optimizer:
    """Return the optimizer called `method`, one of `METHODS`; `options` go to its constructor.

    For LEA-MVD the fields of its reading may be among them, and replace those of `reading`.
    """
    checks.choice("method", method, METHODS)
    if method == "lea-mvd":
        names = {field.name for field in dataclasses.fields(Reading)} - {"population_size", "n_gen"}
        if fields := {name: options.pop(name) for name in names & options.keys()}:
            options["reading"] = dataclasses.replace(options.get("reading") or Reading(), **fields)
    return CLASSES[method](x0, **options)
