"""LEA-MVD: an evolutionary algorithm with linear cost, and what its paper's experiments need."""

from importlib.metadata import version

from leamvd.optimizers.lea_mvd import LEAMVD
from leamvd.optimizers.minimize import minimize
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.state import State

__all__ = ["LEAMVD", "Reading", "State", "minimize"]
__version__ = version("leamvd")
