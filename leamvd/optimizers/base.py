"""The base of every optimizer: ask, tell, stop, result, and the counting between them."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.optimize import Bounds, OptimizeResult, OptimizeWarning

from leamvd._support import checks
from leamvd._support.compile import Array, Floats
from leamvd.optimizers import random_streams
from leamvd.optimizers.random_streams import SeedLike

# The stop reasons by their names: SciPy's integer, which is 0 for success alone, and a sentence.
REASONS = {
    "running": (-1, "The search has not stopped yet."),
    "target": (0, "The target value has been reached."),
    "sigma_min": (0, "The norm of the standard deviations has fallen below its limit."),
    "cma": (0, "CMA-ES has converged by a tolerance of its own."),
    "n_gen": (1, "The number of generations has been reached."),
    "max_nfev": (1, "Another generation would exceed the number of evaluations."),
    "max_seconds": (1, "The time is used up."),
    "cma_maxiter": (1, "CMA-ES has reached its own number of generations."),
    "max_stagnation": (
        2,
        "The best value has not become better for the number of generations given.",
    ),
    "sigma_min_at_start": (
        2,
        "The standard deviations have been below their limit from the start: lower sigma_min.",
    ),
    "cma_stuck": (2, "CMA-ES sees no use in going on, by a criterion of its own."),
    "nan": (3, "Every value of a generation was NaN."),
    "callback": (4, "The callback asked to stop."),
    "interrupted": (5, "The search was interrupted."),
}

DEFAULT_N_GEN = 30  # where none are given, as in the paper's stopping criteria

BoundsLike = Bounds | Sequence[Any] | Array | Iterator[Any]
"""Search limits: scipy's `Bounds`, a pair (low, high) of numbers or arrays, or a pair (low_i,
high_i) a variable.
"""


class Generation(NamedTuple):
    """One row of the history; in `OptimizeResult.history` each field is an array with one value a
    generation.
    """

    best: float  # best value so far; where elites are evaluated again (R14), of the population
    mean: float  # of the generation's finite values
    worst: float  # of the generation's values
    std_norm: float  # norm of sigma (item R4); NaN where a method has none
    beta1: float
    beta2: float
    nfev: int


class Optimizer(ABC):
    """An optimizer that is asked for candidates and told their values; lower is better.

    A new one has `_sample`, which returns the next candidates, and `_learn`, which takes them and
    their values; its name goes to `leamvd.optimizers.methods`. `sigma0` may be set until the first
    generation is drawn.

    Attributes
    ----------
    n_var, sigma0, population_size, n_gen, seed, dtype
        As its constructor was given them, or what they became: `seed` is what was drawn where none
        was given.
    generation, nfev : int
        Generations and values that were told.
    n_nan, n_inf : int
        Values among them that were NaN and +inf.
    """

    def __init__(
        self,
        x0: ArrayLike | None = None,
        *,
        n_var: int | None = None,
        bounds: BoundsLike | None = None,
        sigma0: float = 0.1,
        population_size: int = 24,
        n_gen: int | None = None,
        x0_in_population: bool = True,
        seed: SeedLike = None,
        dtype: DTypeLike = "float64",
    ) -> None:
        self.dtype = checks.floating("dtype", dtype)
        self.n_var, self._x0, self._low, self._high = _search_space(x0, n_var, bounds, self.dtype)
        self.sigma0 = checks.real("sigma0", sigma0, above=0, dtype=self.dtype)
        most = random_streams.MAX_ROWS
        size = checks.count("population_size", population_size, at_least=2, at_most=most)
        self.population_size = size
        self._n_gen_given = n_gen is not None
        if n_gen is None:
            n_gen = DEFAULT_N_GEN
        self.n_gen = checks.count("n_gen", n_gen, at_least=1)
        self.seed = random_streams.key(seed)
        self._x0_in_population = checks.choice("x0_in_population", x0_in_population, (True, False))
        self.generation = self.nfev = self.n_nan = self.n_inf = 0
        self._lowest = self._start_fun = math.inf
        self._best_x: Floats | None = None
        self._candidates: Floats | None = None
        self._halted: dict[str, Any] = {}

    def ask(self) -> Floats:
        """Return the candidates of the next generation, one a row; the same ones until they are
        told.

        For LEA-MVD they are a read-only view of its own memory, which the next generation
        overwrites.
        """
        if self._candidates is None:
            X = self._sample()
            if self._begins_at_x0:
                X[0] = self._x0
            self._candidates = read_only(X)
        return self._candidates

    @property
    def _begins_at_x0(self) -> bool:
        """Whether row 1 is the start solution."""
        return self.generation == 0 and self._x0 is not None and self._x0_in_population

    @property
    def n_candidates(self) -> int:
        """Number of candidates that the next `tell` takes."""
        return self.population_size

    @property
    def best_fun(self) -> float:
        """The lowest value, +inf before the first; where elites are evaluated again (R14), that of
        the population.
        """
        return self._lowest

    def tell(self, X: ArrayLike, F: ArrayLike) -> None:
        """Take the values `F` of the candidates `X`, and learn from them.

        Parameters
        ----------
        X : array_like, shape of the candidates asked for
            What was evaluated: the candidates themselves, or what they were repaired to or replaced
            by.
        F : array_like, shape (len(X),) or (len(X), 1)
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
        before = vars(self).copy()
        try:
            nan = np.isnan(values)
            self.n_nan += int(nan.sum())
            self.n_inf += int(np.sum(values == np.inf))
            if nan.all():
                self.halt("nan", self.generation + 1)
            values[nan] = np.inf
            if self._begins_at_x0:
                self._start_fun = float(values[0])
            self.generation += 1
            self.nfev += len(values)
            self._keep_best(X, values)
            self._learn(X, values)
            self._candidates = None
        except BaseException:  # Ctrl-C, say: `tell` can be called again
            vars(self).update(before)
            raise

    def history_row(self, F: Array) -> Generation:
        """Return the history's row of the generation whose values `F` were told last."""
        finite = F[np.isfinite(F)]
        mean = float(finite.mean()) if finite.size else np.inf
        worst = float(np.max(F)) if finite.size == F.size else np.inf
        return Generation(self.best_fun, mean, worst, *self.step_sizes, self.nfev)

    def halt(self, reason: str, value: Any = True) -> None:
        """Make `stop` return `reason`, one of `REASONS`, with what it is about."""
        self._halted = self._halted | {reason: value}

    def resume(self) -> None:
        """Forget what `halt` was told, so that the search may go on."""
        self._halted = {}

    def stop(self) -> dict[str, Any]:
        """Return {} while the search may go on, otherwise its stop reasons and their values.

        A search without a finite value has not converged.
        """
        reasons = {}
        if self.generation >= self.n_gen:
            reasons["n_gen"] = self.generation
        if self._lowest < math.inf:
            reasons |= self._converged()
        return reasons | self._halted

    @property
    def result(self) -> OptimizeResult:
        """The best point so far, as scipy's optimizers return it; that of the population where R14
        says so.

        ``reason`` is the name of the stop reason, one of success if there is one, and "target"
        whenever that was reached; ``status`` is its integer, 0 for success, 1 where a budget ran
        out, and others as in the table of `leamvd.minimize`; ``message`` is its sentence.
        ``success`` says that the target was reached, or that the search has converged: not that
        there is no lower value. ``n_nan`` and ``n_inf`` count values that were not finite; ``x`` is
        None before the first generation; ``seed`` gives the same search again.
        """
        best_fun = self.best_fun
        stopped = self.stop()
        reason = min(reversed(stopped), key=lambda name: REASONS[name][0] != 0, default="running")
        status, message = REASONS[reason]
        if reason == "n_gen" and self.n_gen == DEFAULT_N_GEN and not self._n_gen_given:
            message = (
                f"The default budget of {self.n_gen} generations is used up: set n_gen or max_nfev"
                " for more."
            )
        criteria = stopped.get(reason)
        if isinstance(criteria, dict):
            message = f"{message.removesuffix('.')}: {', '.join(criteria)}."
        if stopped and self._start_fun <= best_fun < math.inf:
            message += " No better point than the start was found."
        return OptimizeResult(  # type: ignore[call-arg]  # its stubs declare no constructor
            x=self._best(),
            fun=best_fun,
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
            f"<{type(self).__name__}: n_var={self.n_var}, population_size={self.population_size},"
            f" generation={self.generation} of {self.n_gen}, dtype={self.dtype},"
            f" best_fun={self.best_fun:.6g}>"
        )

    def __copy__(self) -> Self:
        """Return a deep copy: two optimizers cannot write to one population."""
        return copy.deepcopy(self)

    @abstractmethod
    def _sample(self) -> Floats:
        """Return the next candidates, shape (n_candidates, n); row 1 of the first ones becomes the
        start solution.
        """

    @abstractmethod
    def _learn(self, X: Floats, F: Array) -> None:
        """Learn from candidates (m, n) and their values (m,), which are finite or +inf."""

    def _keep_best(self, X: Floats, F: Array) -> None:
        """Remember a copy of the best point ever told."""
        best = int(np.argmin(F))
        if self._best_x is None or F[best] < self._lowest:
            self._lowest = float(F[best])
            self._best_x = X[best].copy()

    def _best(self) -> Floats | None:
        return None if self._best_x is None else self._best_x.copy()

    def _converged(self) -> dict[str, Any]:
        return {}

    @property
    def step_sizes(self) -> tuple[float, float, float]:
        """Norm of sigma (Euclidean unless item R4 says otherwise), beta_1, beta_2; nan where there
        is none.
        """
        return math.nan, math.nan, math.nan


def read_only(rows: Floats) -> Floats:
    """Return a view that cannot be written to."""
    view = rows.view()
    view.flags.writeable = False
    return view


def _sides(bounds: BoundsLike) -> tuple[Array, Array]:
    """Return low and high of bounds in any form: float64, with one axis or, for all variables at
    once, none.

    Pairs are the limits of one variable after the other, as SciPy reads them. Two of them are
    refused where they could be (low, high) of two variables, too.
    """
    if isinstance(bounds, Bounds):
        return _both(np.squeeze(bounds.lb), np.squeeze(bounds.ub))  # numbers have been arrays
    if isinstance(bounds, Iterator):
        bounds = list(bounds)
    got = f"got {checks.shown(bounds)}"
    forms = "a pair (low, high) of numbers or arrays, or n pairs (low_i, high_i)"
    told = f"bounds must be scipy.optimize.Bounds, {forms}, {got}"
    try:
        rows = list(bounds) if isinstance(bounds, list | tuple | np.ndarray) else []
        paired = bool(rows) and all(np.shape(row) == (2,) for row in rows)
        if paired and len(rows) == 2 and _ambiguous(rows, isinstance(bounds, np.ndarray)):
            pairs = "[(low, high), (low, high)] of tuples, a pair for each variable"
            both = "those of two variables could be (low, high) too"
            told = f"bounds must be scipy.optimize.Bounds, or {pairs}, {got}: {both}"
            raise ValueError
        low, high = zip(*rows, strict=True) if paired else rows
        return _both(low, high)
    except (TypeError, ValueError) as error:
        raise type(error)(told) from None


def _ambiguous(rows: list[Any], matrix: bool) -> bool:
    """Return whether two pairs, the rows of a matrix or anything else, could be (low, high) of two
    variables as well.

    Pairs are written as tuples; low and high, as with more variables, as lists or arrays.
    """
    if not matrix and not all(isinstance(row, list | tuple) for row in rows):
        return True
    box = np.array(_both(*rows))
    pairs = np.array(_both(*zip(*rows, strict=True)))
    if (box == pairs).all() or not (box[0] < box[1]).all():
        return False
    matrix |= all(isinstance(row, list) for row in rows)
    return bool(matrix or (pairs[0] == pairs[1]).all())


def _both(low: Any, high: Any) -> tuple[Array, Array]:
    """Return both limits as arrays."""
    return _side(low, -np.inf), _side(high, np.inf)


def _side(limits: Any, none: float) -> Array:
    """Return limits as an array; None is `none`, an infinity."""
    given = np.asarray(limits)
    if given.dtype == object:
        known = []
        for one in given.flat:
            if one is None:
                one = none
            known.append(one)
        given = np.reshape(known, given.shape)
    shape = (None,) if given.ndim else ()
    return checks.numbers("bounds", given, shape=shape, dtype=np.float64)


def _search_space(
    x0: ArrayLike | None, n_var: int | None, bounds: BoundsLike | None, dtype: np.dtype[np.floating]
) -> tuple[int, Floats | None, Floats, Floats]:
    """Return n, a copy of the start solution, if any, and the limits (n,), empty if there are none.

    A start solution outside of the limits is clipped, with SciPy's warning. Limits that `dtype`
    cannot hold are rounded inward, so that no point lies outside of those that are given.
    """
    if x0 is None and bounds is None:
        raise ValueError(
            "x0 and bounds are both missing: give a start solution x0, or bounds to draw in"
        )
    sides: Any = () if bounds is None else _sides(bounds)
    sizes = {side.size for side in sides if side.ndim}
    start = None
    if x0 is not None:
        given: Any = x0 if np.ndim(x0) else [x0]  # of one variable
        start = checks.array("x0", given, shape=(None,), dtype=dtype).copy()
        sizes.add(start.size)
    if n_var is not None:
        sizes.add(checks.count("n_var", n_var, at_least=1, at_most=random_streams.MAX_COLUMNS))
    if len(sizes) != 1:
        told = "and none of them does: give n_var"
        if sizes:
            told = f"got {', '.join(map(str, sorted(sizes)))}"
        raise ValueError(f"n_var, x0 and bounds must say one number of variables, {told}")
    n = sizes.pop()
    if n == 0:
        name = "bounds" if sides else "x0"
        raise ValueError(f"{name} must have at least one variable, got none")
    if not sides:
        return n, start, np.empty(0, dtype), np.empty(0, dtype)
    low, high = _limits(sides, n, dtype, drawn=start is None)
    if start is None:
        return n, None, low, high
    exact = np.asarray(x0, np.float64)
    if np.any((exact < sides[0]) | (exact > sides[1])):
        told = "Initial guess is not within the specified bounds: x0 is clipped"
        checks.warn(told, OptimizeWarning)
    # where x0 is a limit, it may have been rounded outward
    return n, np.clip(start, low, high), low, high


def _limits(
    sides: tuple[Array, Array], n: int, dtype: np.dtype[np.floating], *, drawn: bool
) -> tuple[Floats, Floats]:
    """Return limits (n,) of `dtype`, a number between them; finite where points are `drawn`."""
    below = np.broadcast_to(sides[0], n)
    above = np.broadcast_to(sides[1], n)
    low = _inward(below, np.inf, dtype)
    high = _inward(above, -np.inf, dtype)
    right = (low <= high) & (below < np.inf) & (above > -np.inf)
    if not right.all():
        i = int(np.argmin(right))
        got = f"got {below[i]} and {above[i]} at index {i}"
        if np.isnan(below[i]) or np.isnan(above[i]):
            raise ValueError(f"bounds must not be NaN, {got}")
        raise ValueError(f"bounds must have a {dtype} between low and high, {got}")
    finite = np.isfinite(low) & np.isfinite(high)
    if drawn and not finite.all():
        i = int(np.argmin(finite))
        told = f"got [{below[i]}, {above[i]}] at index {i}"
        why = "the first generation is drawn uniformly in them"
        raise ValueError(f"bounds must be finite without x0, {told}: {why}")
    return low, high


def _inward(limits: Array, inward: float, dtype: np.dtype[np.floating]) -> Floats:
    """Return limits (n,) as numbers of `dtype`, none of them farther from `inward`, an infinity."""
    # the largest number is inward of those that `dtype` cannot hold
    with np.errstate(over="ignore"):
        rounded = limits.astype(dtype)
    outside = rounded < limits if inward > 0 else rounded > limits
    rounded[outside] = np.nextafter(rounded[outside], dtype.type(inward))
    return rounded
