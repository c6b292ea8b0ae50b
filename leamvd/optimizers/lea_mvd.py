"""LEA-MVD, Algorithm 1: the linear evolutionary algorithm based on the main variance directions.

Valdez and Rojas-Dominguez (2019), "An Evolutionary Algorithm of Linear complexity: Application to Training of Deep
Neural Networks". Symbols of the paper stand in the comments; R1-R19 are the rows of `leamvd.Reading`.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from leamvd._support import checks
from leamvd.optimizers import directions, random_streams, sampling, selection
from leamvd.optimizers.base import Optimizer, bounds_arrays, dimension, read_only
from leamvd.optimizers.reading import Reading


class State(NamedTuple):
    """What the optimizer knows after a generation: the values that its next `ask` will use.

    Attributes
    ----------
    population, fitness : ndarray, shape (population_size, n), (population_size,)
        X and F, best first; a value that was not a number is +inf.
    mean, std : ndarray, shape (n,)
        mu and Sigma (Eqs. 2 and 3), after a reset.
    path : ndarray, shape (n,)
        The path P.
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
    nfev, n_nan, n_inf : int
        Values told so far, and those of them that were not a number or +inf.
    initial_std : ndarray, shape (n,), or None
        Standard deviations of the first population, where the reading resets to them.
    std_norm, descent_norm : float
        Norms of Sigma and C_ani, to the bit as the optimizer summed them.
    """

    population: NDArray[np.floating]
    fitness: NDArray[np.float64]
    mean: NDArray[np.floating]
    std: NDArray[np.floating]
    path: NDArray[np.floating]
    descent: NDArray[np.floating]
    descent_rows: NDArray[np.int64]
    descent_mean: float
    descent_std: float
    beta1: float
    beta2: float
    stagnation: int
    generation: int
    nfev: int
    n_nan: int
    n_inf: int
    initial_std: NDArray[np.floating] | None
    std_norm: float
    descent_norm: float


class LEAMVD(Optimizer):
    """The optimizer of Algorithm 1: O(n) time and memory, one diagonal normal and two directions.

    Parameters
    ----------
    x0 : array_like, shape (n,), optional
        Seed of initialization (B): the first population is N(x0, sigma0). Without it, initialization (A): uniform in
        `bounds`. Not modified.
    n_var : int, optional
        n; needed only where neither `x0` nor an array in `bounds` tells it.
    bounds : pair of float or array_like, shape (n,), optional
        x_inf and x_sup. What they do after the first population is up to ``reading.limits``.
    sigma0 : float
        Standard deviation around `x0`, 0.1 in the paper.
    population_size, n_gen : int, optional
        lambda and the number of generations; by default what the reading says (24 and 30).
    n_elite : int
        Individuals that are kept, 4 in the paper; from 1 to population_size - 1.
    sigma_min : float
        Convergence limit, 1e-4 in the paper.
    seed : int, optional
        In [0, 2**64). One seed, one result, on any number of threads; None draws fresh entropy.
    dtype : {"float64", "float32"}
        Of the population; objective values are float64.
    reading : Reading
        How the ambiguous lines of the paper are read.

    Raises
    ------
    ValueError, TypeError
        If an argument is out of range, or two of them clash.

    Examples
    --------
    >>> import numpy as np, leamvd
    >>> opt = leamvd.LEAMVD(np.ones(50), seed=1)
    >>> while not opt.stop():
    ...     X = opt.ask()
    ...     opt.tell(X, (X**2).sum(axis=1))
    >>> bool(opt.result.fun < 50)
    True
    """

    def __init__(
        self,
        x0: ArrayLike | None = None,
        *,
        n_var: int | None = None,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        sigma0: float = 0.1,
        population_size: int | None = None,
        n_elite: int = 4,
        n_gen: int | None = None,
        sigma_min: float = 1e-4,
        seed: int | None = None,
        dtype: DTypeLike = "float64",
        reading: Reading | None = None,
    ) -> None:
        self.reading = Reading() if reading is None else reading
        if not isinstance(self.reading, Reading):
            raise TypeError(f"reading must be a leamvd.Reading, got {reading!r:.100}")
        super().__init__(
            dimension(x0, n_var, bounds),
            self.reading.population_size if population_size is None else population_size,
            self.reading.n_gen if n_gen is None else n_gen,
            seed,
            dtype,
        )
        self.sigma0 = checks.real("sigma0", sigma0, above=0)
        self.sigma_min = checks.real("sigma_min", sigma_min, at_least=0)
        self.n_elite = checks.integer("n_elite", n_elite, at_least=1)
        self._check_clashes(x0, bounds)
        n, size = self.n_var, self.population_size
        self._x0 = None if x0 is None else checks.array("x0", x0, shape=(n,), dtype=self.dtype).copy()
        self._low = self._high = np.empty(0, self.dtype)
        if bounds is not None:
            self._low, self._high = bounds_arrays(bounds, n, self.dtype)
        self._weights = selection.fractional_tournament(size, self.reading.exponent).astype(self.dtype)  # G
        # Rows of X lie in any order: `_order` names them best first. Elites move to the front at the next ask.
        self._X = np.empty((size, n), self.dtype)
        self._F = np.full(size, np.inf)
        self._order = np.arange(size)
        self._mean, self._std = np.empty(n, self.dtype), np.empty(n, self.dtype)
        self._path, self._descent, self._previous = (np.zeros(n, self.dtype) for _ in range(3))
        self._std_norm = math.inf
        self._initial_std: NDArray[np.floating] | None = None
        self._rows = np.zeros(self.reading.n_descent_rows, np.int64)  # ir
        # C_ani in `_descent` is the last generation's until the next ask adds this generation's C_hat to it.
        self._pending = directions.no_descent(len(self._rows), size)
        self._descent_mean = self._descent_std = self._descent_norm = 0.0
        self._beta1, self._beta2, self._stagnation = 1.0, 0.9, 0

    def _check_clashes(self, x0: ArrayLike | None, bounds: object) -> None:
        if x0 is None and bounds is None:
            raise ValueError("x0 and bounds are both missing: give a seed x0, or bounds to draw the population in")
        if self.n_elite >= self.population_size:
            raise ValueError(
                f"n_elite={self.n_elite} clashes with population_size={self.population_size}: "
                "at least one individual must be new"
            )
        if self.reading.n_descent_rows >= self.population_size:
            raise ValueError(
                f"reading.n_descent_rows={self.reading.n_descent_rows} clashes with "
                f"population_size={self.population_size}: so many distinct rows are drawn from ranks 2..lambda"
            )
        if self.reading.limits != "first" and bounds is None:
            raise ValueError(
                f"reading.limits={self.reading.limits!r} clashes with bounds=None: there is nothing to keep"
            )

    # ---- ask: line 2, or line 12 of the generation before

    def _sample(self) -> NDArray[np.floating]:
        place = sampling.Place(
            np.uint64(self.seed),
            self.generation + 1,
            self.reading.perturbation == "column",
            sampling.LIMITS.index(self.reading.limits),
        )
        first = 0 if self.generation == 0 or self.reading.elites == "reevaluate" else self.n_elite
        if self.generation:
            self._regenerate(place)
        elif self._x0 is None:
            sampling.uniform(self._X, self._low, self._high, place)
        else:
            sigma0 = self.dtype.type(self.sigma0)
            sampling.normal(self._X, self._x0, sigma0, self._low, self._high, place)
            if self.reading.x0_in_population:
                self._X[0] = self._x0
                sampling.limit(self._X[0], self._low, self._high, place.limits)
        return self._X[first:]

    def _regenerate(self, place: sampling.Place) -> None:
        real, pending, n_elite = self.dtype.type, self._pending, self.n_elite
        n_new = self.population_size - n_elite
        step: NDArray[np.float64] | float = self._step()
        if self.reading.step == "sampled":
            z = random_streams.row_normals(
                np.uint64(self.seed), random_streams.DESCENT_STEP, self.generation + 1, n_new
            )
            step = step + self._descent_std * z
        if self.reading.descent_scale == "normalized" and self._descent_norm > 0:
            step = step / self._descent_norm
        steps = np.full(n_new, self._beta1 * (1 - self._beta2) * step, self.dtype)
        # The kernel moves the elites to the front. Ctrl-C waits for its end, so what follows from it is said before.
        order, self._order = self._order, np.arange(len(self._X))
        self._F[:n_elite] = self._F[order[:n_elite]]
        sampling.regenerate(
            self._X,
            order,
            self._rows,
            pending.row_weights.astype(self.dtype),
            real(pending.path_weight),
            real(pending.fresh),
            real(self._beta1 * self._beta2),
            steps,
            self._mean,
            self._std,
            self._path,
            self._descent,
            self._previous,
            self._low,
            self._high,
            place,
        )
        self._pending = pending._replace(fresh=0.0)

    def _step(self) -> float:
        """Return the signed length of the shift along C_ani (R5)."""
        return abs(self._descent_mean) if self.reading.shift == "toward_best" else self._descent_mean

    # ---- tell: lines 14-16 and 17-30, then lines 7-11

    def _learn(self, X: NDArray[np.floating], F: NDArray[np.float64]) -> None:
        new = slice(self.population_size - len(X), None)
        if X is not self._candidates:
            self._X[new] = X
        self._F[new] = F
        previous, count = self.best_fun, self.population_size - len(X)
        # elites in their order, then the candidates in theirs; or candidates first (R18)
        elites, candidates = self._order[:count], np.arange(count, self.population_size)
        rows = np.concatenate([elites, candidates] if self.reading.ties == "keep" else [candidates, elites])
        self._order = rows[self._F[rows].argsort(kind="stable")]  # ix
        self.best_fun = float(self._F[self._order[0]])
        if self.generation == 1:
            self._release_start()
            self._previous[:] = self._X[self._order[0]]  # line 5: x_best of t - 1 is x_best of t, so that P = 0
        else:
            self._adapt(self.best_fun != previous)
        self._estimate()
        if self._stagnation == 10:
            self._reset()

    def _release_start(self) -> None:
        """Give back the memory of what only the first population needs."""
        self._x0 = None
        if self.reading.limits == "first":
            self._low = self._high = np.empty(0, self.dtype)

    def _adapt(self, success: bool) -> None:
        """Update beta_1, beta_2 and the stagnation counter (lines 17-30); R12 decides at beta_1 = 1."""
        mirrored = self._beta1 == 1 and self.reading.beta1_at_one == "mirrored"
        if success:
            self._stagnation = 0
            self._beta2 = min(1.0, 0.2 + self._beta2)
            self._beta1 = min(3.0, 1.1 * self._beta1) if self._beta1 > 1 or mirrored else 1.4 * self._beta1
        else:
            self._stagnation += 1
            self._beta2 = max(0.0, self._beta2 - 0.1)
            self._beta1 = 0.8 * self._beta1 if self._beta1 < 1 or mirrored else 0.5 * self._beta1

    def _estimate(self) -> None:
        """Estimate mu, Sigma, P and C_ani (lines 7 and 8)."""
        reading, m = self.reading, len(self._rows)
        self._rows = random_streams.distinct(
            np.uint64(self.seed), random_streams.DESCENT_ROWS, self.generation, m, self.population_size
        )  # R7
        products = directions.scan(
            self._X,
            self._order,
            self._weights,
            self._rows,
            self._previous,
            self._descent,
            self._mean,
            self._std,
            self._path,
        )
        start = random_streams.row_normals(np.uint64(self.seed), random_streams.DESCENT_START, self.generation, m)
        fresh = 1.0 if self.generation == 1 and reading.first_direction == "full" else directions.RATE
        self._pending = directions.descent(
            products, self._rows, start, oriented=reading.orientation == "oriented", fresh=fresh
        )
        self._descent_norm = math.sqrt(max(self._pending.square, 0.0))
        scale = self._descent_norm if reading.descent_scale == "normalized" and self._descent_norm > 0 else 1.0
        mean, std = self._pending.mean, self._pending.std
        if reading.projections == "repeated":  # R11: the printed list names ix_2 twice
            projections = self._pending.projections
            repeated = np.concatenate([projections[:1], projections])
            mean, std = float(repeated.mean()), float(repeated.std())
        self._descent_mean, self._descent_std = mean / scale, std / scale
        euclidean = reading.sigma_norm == "euclidean"
        self._std_norm = math.sqrt(products.std_square) if euclidean else products.std_max
        if self.generation == 1 and reading.reset == "initial":
            self._initial_std = self._std.copy()

    def _reset(self) -> None:
        """Widen the search after ten generations without a better best (lines 9-11, R13)."""
        if self.reading.reset == "off":
            return
        self._std[:] = self._initial_std if self.reading.reset == "initial" else self.reading.reset
        self._std_norm = _norm(self._std, self.reading)
        self._beta1, self._stagnation = 0.1, 0

    # ---- what it knows

    def _converged(self) -> dict[str, Any]:
        limit = self.sigma_min * (math.sqrt(self.n_var) if self.reading.convergence == "scaled" else 1.0)
        return {"sigma_min": self._std_norm} if self._std_norm < limit else {}

    @property
    def step_sizes(self) -> tuple[float, float, float]:
        """Norm of sigma (R4), beta_1 and beta_2, as the next `ask` will use them."""
        return self._std_norm, self._beta1, self._beta2

    def _best(self) -> NDArray[np.floating] | None:
        return self._X[self._order[0]].copy() if self.generation else None

    @property
    def state(self) -> State:
        """What the next `ask` will use; a copy. Assign it to an optimizer of the same arguments to continue from it.

        Raises
        ------
        RuntimeError
            Before the first `tell`, or between `ask` and `tell`.
        """
        if self.generation == 0 or self._candidates is not None:
            raise RuntimeError("state is defined after tell() and before the next ask()")
        descent = np.empty_like(self._descent)
        pending, real = self._pending, self.dtype.type
        sampling.descent_columns(
            self._X,
            self._order,
            self._rows,
            pending.row_weights.astype(self.dtype),
            real(pending.path_weight),
            real(pending.fresh),
            self._path,
            self._descent,
            0,
            self.n_var,
            descent,
        )
        return State(
            self._X[self._order],
            self._F[self._order],
            self._mean.copy(),
            self._std.copy(),
            self._path.copy(),
            descent,
            self._rows.copy(),
            self._descent_mean,
            self._descent_std,
            self._beta1,
            self._beta2,
            self._stagnation,
            self.generation,
            self.nfev,
            self.n_nan,
            self.n_inf,
            None if self._initial_std is None else self._initial_std.copy(),
            self._std_norm,
            self._descent_norm,
        )

    @state.setter
    def state(self, state: State) -> None:
        n, size, m = self.n_var, self.population_size, len(self._rows)

        def array(name: str, *shape: int) -> NDArray[Any]:
            given = getattr(state, name)
            dtype = np.int64 if name == "descent_rows" else self.dtype
            return checks.array(f"state.{name}", given, shape=shape, dtype=dtype).copy()

        fitness = np.array(state.fitness, dtype=np.float64)
        if fitness.shape != (size,) or not np.all(fitness[:-1] <= fitness[1:]):
            raise ValueError(f"state.fitness must be {size} values, best first, got {state.fitness!r:.200}")
        X, rows, initial = array("population", size, n), array("descent_rows", m), state.initial_std
        mean, std, path, descent = (array(name, n) for name in ("mean", "std", "path", "descent"))
        self._initial_std = None if initial is None else array("initial_std", n)
        self._X, self._F, self._order, self._rows = X, fitness, np.arange(size), rows
        self._mean, self._std, self._path, self._descent, self._previous = mean, std, path, descent, X[0].copy()
        self._pending = directions.no_descent(m, size)  # C_ani is complete
        self._descent_mean, self._descent_std = state.descent_mean, state.descent_std
        self._std_norm, self._descent_norm = state.std_norm, state.descent_norm
        self._beta1, self._beta2, self._stagnation = state.beta1, state.beta2, state.stagnation
        self.generation, self.nfev, self.n_nan, self.n_inf = state.generation, state.nfev, state.n_nan, state.n_inf
        self.best_fun, self._candidates, self._halted = float(fitness[0]), None, {}

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_candidates": None if self._candidates is None else len(self._candidates)}

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        if self._candidates is not None:  # the candidates are rows of the population, not a copy of them
            self._candidates = read_only(self._X[self.population_size - values["_candidates"] :])


def _norm(std: NDArray[np.floating], reading: Reading) -> float:
    if reading.sigma_norm == "spectral":
        return float(np.max(std))
    return math.sqrt(np.einsum("i,i->", std, std, dtype=np.float64))  # no copy in double precision
