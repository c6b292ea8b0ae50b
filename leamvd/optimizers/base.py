"""The base of every optimizer: ask, tell, stop, result, and the counting between them."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.optimize import Bounds, OptimizeResult

from leamvd._support import checks
from leamvd._support.compile import Array, Floats
from leamvd.optimizers import random_streams
from leamvd.optimizers.random_streams import SeedLike
from leamvd.optimizers.reading import Reading


class Reason(NamedTuple):
    """What a stop reason means: SciPy's integer, which is 0 for success alone, and a sentence."""

    status: int
    message: str


REASONS = {
    "running": Reason(-1, "The search has not stopped yet."),
    "target": Reason(0, "The target value has been reached."),
    "sigma_min": Reason(0, "The norm of the standard deviations has fallen below its limit."),
    "cma": Reason(0, "CMA-ES has converged by a tolerance of its own."),
    "n_gen": Reason(1, "The number of generations has been reached."),
    "max_nfev": Reason(1, "Another generation would exceed the number of evaluations."),
    "max_seconds": Reason(1, "The time is used up."),
    "cma_maxiter": Reason(1, "CMA-ES has reached its own number of generations."),
    "max_stagnation": Reason(2, "The best value has not become better for the number of generations given."),
    "cma_stuck": Reason(2, "CMA-ES sees no use in going on, by a criterion of its own."),
    "nan": Reason(3, "Every value of a generation was NaN."),
    "callback": Reason(4, "The callback asked to stop."),
    "interrupted": Reason(5, "The search was interrupted."),
}
"""The stop reasons, by their names."""

_DEFAULT_BUDGET = "The default budget of {} generations, the paper's, is used up: set n_gen or max_nfev for more."

BoundsLike = Bounds | Sequence[Any]
"""Search limits: scipy's `Bounds`, a pair (low, high) of numbers or arrays, or a pair (low_i, high_i) a variable."""


class AllOrNothing:
    """A block after which all attributes are new, or, where it is left by an error or by Ctrl-C, all as they were.

    It can then be run again, if it sets attributes and writes into an array only what it would write once more.
    """

    # not written as a generator: one that Ctrl-C has left half-way would put the attributes back when it is collected

    def __init__(self, attributes: dict[str, Any]) -> None:
        self._attributes, self._before = attributes, attributes.copy()

    def __enter__(self) -> None:
        pass

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is not None:
            self._attributes.update(self._before)


class Optimizer(ABC):
    """An optimizer that is asked for candidates and told their values; lower is better.

    Attributes
    ----------
    n_var, sigma0, population_size, n_gen, seed, dtype
        As its constructor was given them, or what they became: `seed` is what was drawn where none was given.
    generation, nfev : int
        Generations and values that were told.
    n_nan, n_inf : int
        Values among them that were NaN and +inf.
    best_fun : float
        The lowest value, +inf before the first; where elites are evaluated again (item R14), that of the population.
    """

    def __init__(
        self,
        x0: ArrayLike | None,
        n_var: int | None,
        bounds: BoundsLike | None,
        sigma0: float,
        population_size: int,
        n_gen: int,
        seed: SeedLike,
        dtype: DTypeLike,
    ) -> None:
        self.dtype = checks.floating("dtype", dtype)
        self.n_var, self._x0, self._low, self._high = _search_space(x0, n_var, bounds, self.dtype)
        self.sigma0 = checks.real("sigma0", sigma0, above=0, dtype=self.dtype)
        self.population_size = checks.integer(
            "population_size", population_size, at_least=2, at_most=random_streams.MAX_ROWS
        )
        self.n_gen = checks.integer("n_gen", n_gen, at_least=1)
        self.seed = random_streams.key(seed)
        self.generation = 0
        self.nfev = 0
        self.n_nan = 0
        self.n_inf = 0
        self.best_fun = math.inf
        self._best_x: Floats | None = None
        self._candidates: Floats | None = None
        self._halted: dict[str, Any] = {}

    def ask(self) -> Floats:
        """Return the candidates of the next generation, one a row; the same ones until they are told.

        For LEA-MVD they are a read-only view of its own memory, which the next generation overwrites.
        """
        if self._candidates is None:
            self._candidates = read_only(self._sample())
        return self._candidates

    @property
    def n_candidates(self) -> int:
        """Number of candidates that the next `tell` takes."""
        return self.population_size

    def tell(self, X: ArrayLike, F: ArrayLike) -> None:
        """Take the values `F` of the candidates `X`, and learn from them.

        Parameters
        ----------
        X : array_like, shape of the candidates asked for
            What was evaluated: the candidates themselves, or what they were repaired to or replaced by.
        F : array_like, shape (len(X),)
            Objective values. NaN and +inf rank last and are counted.

        Raises
        ------
        RuntimeError
            Before the first `ask`, or twice for one `ask`.
        ValueError
            If a shape is wrong, a candidate is not finite or a value is -inf.
        """
        if self._candidates is None:
            raise RuntimeError("tell needs candidates to be asked for first: call ask()")
        if X is not self._candidates:
            X = checks.array("X", X, shape=self._candidates.shape, dtype=self.dtype)
        values = checks.objective_values("F", F, len(self._candidates)).copy()
        with AllOrNothing(vars(self)):
            if not np.isfinite(values).all():
                self._count_failures(values)
            self.generation += 1
            self.nfev += len(values)
            self._learn(X, values)
            self._candidates = None

    def _count_failures(self, values: Array) -> None:
        """Count values that are not finite, and make them all +inf."""
        nan = np.isnan(values)
        self.n_nan += int(nan.sum())
        self.n_inf += int(np.sum(values == np.inf))
        if nan.all():
            self.halt("nan", self.generation + 1)
        values[nan] = np.inf

    def halt(self, reason: str, value: Any = True) -> None:
        """Make `stop` return `reason`, one of `REASONS`, with what it is about."""
        self._halted = self._halted | {checks.choice("reason", reason, tuple(REASONS)): value}

    def resume(self) -> None:
        """Forget what `halt` was told, so that the search may go on."""
        self._halted = {}

    def stop(self) -> dict[str, Any]:
        """Return {} while the search may go on, otherwise its stop reasons and their values.

        A search without a finite value has not converged.
        """
        limit = {"n_gen": self.generation} if self.generation >= self.n_gen else {}
        return limit | (self._converged() if self.best_fun < math.inf else {}) | self._halted

    @property
    def result(self) -> OptimizeResult:
        """The best point so far, as scipy's optimizers return it; that of the population where R14 says so.

        ``reason`` is the name of the stop reason, one of success if there is one, and "target" whenever that was
        reached; ``status`` is its integer, 0 for success, 1 where a budget ran out, and others as in the table of
        `leamvd.minimize`; ``message`` is its sentence. ``success`` says that the target was reached, or that the search
        has converged: not that there is no lower value. ``n_nan`` and ``n_inf`` count values that were not finite;
        ``x`` is None before the first generation; ``seed`` gives the same search again.
        """
        reason = min(reversed(self.stop()), key=lambda name: REASONS[name].status != 0, default="running")
        status, message = REASONS[reason]
        if reason == "n_gen" and self.n_gen == Reading.n_gen:
            message = _DEFAULT_BUDGET.format(self.n_gen)
        return OptimizeResult(  # type: ignore[call-arg]  # its stubs declare no constructor
            x=self._best(),
            fun=self.best_fun,
            nit=self.generation,
            nfev=self.nfev,
            success=status == 0,
            status=status,
            reason=reason,
            message=message,
            n_nan=self.n_nan,
            n_inf=self.n_inf,
            seed=self.seed,
            sigma0=self.sigma0,
        )

    def __repr__(self) -> str:
        return (
            f"<{type(self).__name__}: n_var={self.n_var}, population_size={self.population_size}, "
            f"generation={self.generation} of {self.n_gen}, dtype={self.dtype}, best_fun={self.best_fun:.6g}>"
        )

    def __copy__(self) -> Self:
        """Return a deep copy: two optimizers cannot write to one population."""
        return copy.deepcopy(self)

    @abstractmethod
    def _sample(self) -> Floats: ...

    @abstractmethod
    def _learn(self, X: Floats, F: Array) -> None: ...

    def _keep_best(self, X: Floats, F: Array) -> None:
        """Remember a copy of the best point ever told, for methods that do not keep it themselves."""
        best = int(np.argmin(F))
        if self._best_x is None or F[best] < self.best_fun:
            self.best_fun, self._best_x = float(F[best]), X[best].copy()

    def _best(self) -> Floats | None:
        return None if self._best_x is None else self._best_x.copy()

    def _converged(self) -> dict[str, Any]:
        return {}

    @property
    def step_sizes(self) -> tuple[float, float, float]:
        """Norm of sigma (Euclidean unless item R4 says otherwise), beta_1, beta_2; nan where there is none."""
        return math.nan, math.nan, math.nan


def as_told(told: Sequence[Array]) -> dict[str, Array]:
    """Return the values that an optimizer was told in each generation, as `tell_again` takes them."""
    return {"F": np.concatenate([np.empty(0), *told]), "counts": np.array([len(F) for F in told], dtype=int)}


def tell_again(opt: Optimizer, state: Mapping[str, Array]) -> list[Array]:
    """Let a new optimizer draw all candidates again, which is quick, and tell it the values that it was told before."""
    told = np.split(state["F"], np.cumsum(state["counts"]))[:-1]
    for F in told:
        opt.tell(opt.ask(), F)
    return told


def read_only(rows: Floats) -> Floats:
    """Return a view that cannot be written to."""
    view = rows.view()
    view.flags.writeable = False
    return view


def _sides(bounds: BoundsLike) -> tuple[ArrayLike, ArrayLike]:
    """Return low and high, each a number or an array, of bounds in any form.

    Two pairs are none: they could be (low, high) of two variables, or the limits of one variable after the other.
    """
    if isinstance(bounds, Bounds):
        low, high = np.asarray(bounds.lb), np.asarray(bounds.ub)
        return low.item() if low.size == 1 else low, high.item() if high.size == 1 else high  # numbers, made arrays
    try:
        rows = list(bounds)
        shapes = [np.shape(row) for row in rows]
    except (TypeError, ValueError):
        rows, shapes = [], []
    if shapes == [(2,), (2,)]:
        raise ValueError(
            f"bounds={checks.shown(bounds)} of two variables could be (low, high) or (low_i, high_i) for each: "
            "write scipy.optimize.Bounds(low, high)"
        )
    if len(rows) == 2 and all(len(shape) < 2 for shape in shapes):
        return rows[0], rows[1]
    if rows and all(shape == (2,) for shape in shapes):
        return [row[0] for row in rows], [row[1] for row in rows]
    raise ValueError(
        "bounds must be a pair (low, high) of numbers or arrays, a pair (low_i, high_i) for each variable, "
        f"or scipy.optimize.Bounds, got {checks.shown(bounds)}"
    )


def _search_space(
    x0: ArrayLike | None, n_var: int | None, bounds: BoundsLike | None, dtype: np.dtype[np.floating]
) -> tuple[int, Floats | None, Floats, Floats]:
    """Return n, a copy of the start solution, if there is one, and the limits (n,), empty if there are none.

    Limits that `dtype` cannot hold are rounded inward, so that no point lies outside of those that are given.
    """
    known, start = {}, None
    if n_var is not None:
        known["n_var"] = checks.integer("n_var", n_var, at_least=1, at_most=random_streams.MAX_COLUMNS)
    if x0 is not None:
        start = checks.array("x0", x0, shape=(None,), dtype=dtype).copy()
        known["len(x0)"] = len(start)
    sides = {} if bounds is None else dict(zip(("low of bounds", "high of bounds"), _sides(bounds), strict=True))
    known |= {f"len({name})": np.size(side) for name, side in sides.items() if np.ndim(side) == 1}
    if len(set(known.values())) != 1:
        what = " and ".join(f"{name}={value}" for name, value in known.items())
        raise ValueError(f"{what} clash: they must agree" if known else "n_var must be given where x0 is not, got None")
    n = next(iter(known.values()))
    if x0 is None and bounds is None:
        raise ValueError("x0 and bounds are both missing: give a start solution x0, or bounds to draw in")
    if bounds is None:
        return n, start, np.empty(0, dtype), np.empty(0, dtype)
    below, above = (_limits(name, side, n, dtype) for name, side in sides.items())
    if (crossed := below > above).any():
        i = int(np.argmax(crossed))
        raise ValueError(f"bounds must have low <= high, got {below[i]} > {above[i]} at index {i}")
    low, high = _inward(below, np.inf, dtype), _inward(above, -np.inf, dtype)
    if (empty := low > high).any():
        i = int(np.argmax(empty))
        raise ValueError(f"bounds must have a {dtype} between low and high, got {below[i]} and {above[i]} at index {i}")
    if start is None:
        return n, None, low, high
    given = np.asarray(x0, np.float64)
    if (beyond := (given < below) | (given > above)).any():
        i = int(np.argmax(beyond))
        raise ValueError(f"x0 must lie within bounds, [{below[i]}, {above[i]}] at index {i}, got {given[i]}")
    return n, np.clip(start, low, high), low, high  # where x0 is a limit, it may have been rounded outward


def _limits(name: str, side: ArrayLike, n_var: int, dtype: np.dtype[np.floating]) -> Array:
    """Return one side of the bounds in double precision, shape (n_var,), without memory of its own if it can."""
    if np.ndim(side) == 0:
        return np.broadcast_to(checks.real(name, side, dtype=dtype), n_var)
    checks.array(name, side, shape=(n_var,), dtype=dtype)
    return np.asarray(side, np.float64)


def _inward(limits: Array, inward: float, dtype: np.dtype[np.floating]) -> Floats:
    """Return limits (n_var,) as numbers of `dtype`, none of them farther from `inward`, an infinity."""
    rounded = limits.astype(dtype)
    outside = rounded < limits if inward > 0 else rounded > limits
    rounded[outside] = np.nextafter(rounded[outside], dtype.type(inward))
    return rounded
