"""LEA-MVD: an evolutionary algorithm with linear cost, and what its paper's experiments need."""

from importlib.metadata import version

from leamvd.lea_mvd import LEAMVD, State
from leamvd.minimize import minimize
from leamvd.reading import Reading

__all__ = ["LEAMVD", "Reading", "State", "minimize"]
__version__ = version("leamvd")
