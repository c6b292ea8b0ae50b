"""LEA-MVD: an evolutionary algorithm with linear cost, and what its paper's experiments need."""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leamvd.optimizers.lea_mvd import LEAMVD
    from leamvd.optimizers.minimize import minimize
    from leamvd.optimizers.reading import Reading
    from leamvd.optimizers.state import State

__all__ = ["LEAMVD", "Reading", "State", "minimize"]

try:
    __version__ = version("leamvd")
except PackageNotFoundError:  # a clone that is not installed
    __version__ = "0+unknown"


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for: the command line answers without Numba where
    it can.
    """
    homes = {"LEAMVD": "lea_mvd", "Reading": "reading", "State": "state", "minimize": "minimize"}
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"leamvd.optimizers.{homes[name]}"), name)


def __dir__() -> list[str]:
    return __all__
