"""The state of LEA-MVD after a generation."""

from typing import NamedTuple

from leamvd._support.compile import Array, Floats, Integers


class State(NamedTuple):
    """The state of the optimizer after a generation: the values that its next `ask` will use.

    Attributes
    ----------
    population, fitness : ndarray, shape (population_size, n), (population_size,)
        X and F, best first; a value that was NaN is +inf.
    mean, std : ndarray, shape (n,)
        mu and Sigma (Eqs. 2 and 3), after a reset.
    path : ndarray, shape (n,)
        The path P. In float32 an entry below 2^-63 in size is zero: its square would be subnormal.
    descent : ndarray, shape (n,)
        C_ani.
    descent_rows : ndarray, shape (m,)
        ir as 0-based ranks, drawn from 1..population_size - 1.
    descent_mean, descent_std : float
        mu_ani and sigma_ani.
    beta1, beta2 : float
        Step sizes.
    stagnation : int
        Generations since the best value last changed or the last reset.
    generation : int
        t, counted from 1.
    initial_std : ndarray, shape (n,), or None
        Standard deviations of the first population, where the reading resets to them.
    std_norm : float
        Norm of Sigma (R4), to the bit as the optimizer summed it.
    """

    population: Floats
    fitness: Array
    mean: Floats
    std: Floats
    path: Floats
    descent: Floats
    descent_rows: Integers
    descent_mean: float
    descent_std: float
    beta1: float
    beta2: float
    stagnation: int
    generation: int
    initial_std: Floats | None
    std_norm: float
