"""LEA-MVD, Algorithm 1: the linear evolutionary algorithm based on the main variance directions.

Valdez and Rojas-Dominguez (2019), "An Evolutionary Algorithm of Linear complexity: Application to
Training of Deep Neural Networks". Symbols of the paper stand in the comments; R1-R19 are the rows
of `leamvd.Reading`. The default reading on one page, in NumPy, is the book's page "The method".
"""

import copy
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from leamvd._support import checks
from leamvd._support.compile import Array, Floats, kernel
from leamvd.optimizers import directions, random_streams, sampling, selection
from leamvd.optimizers.base import BoundsLike, Optimizer, read_only
from leamvd.optimizers.directions import Vectors
from leamvd.optimizers.random_streams import SeedLike
from leamvd.optimizers.reading import Reading
from leamvd.optimizers.state import State

STAGNATION = 10  # generations without a better best that end in a reset (line 9)


@kernel()
def adapt(steps: Array, success: bool, mirrored: bool) -> None:
    """Update beta_1, beta_2 and the stagnation counter (lines 17-30); R12 decides at beta_1 = 1."""
    beta1 = steps[0]
    beta2 = steps[1]
    aside = beta1 == 1 and mirrored
    if success:
        steps[0] = min(3.0, 1.1 * beta1) if beta1 > 1 or aside else 1.4 * beta1
        steps[1] = min(1.0, 0.2 + beta2)
        steps[2] = 0
    else:
        steps[0] = 0.8 * beta1 if beta1 < 1 or aside else 0.5 * beta1
        steps[1] = max(0.0, beta2 - 0.1)
        steps[2] += 1


class LEAMVD(Optimizer):
    """The optimizer of Algorithm 1: O(n) time and memory, one diagonal normal and two directions.

    Parameters
    ----------
    x0 : array_like, shape (n,), optional
        Start solution of initialization (B): the first population is N(x0, sigma0). Without it,
        initialization (A): uniform in `bounds`. Not modified.
    n_var : int, optional
        n; needed only where neither `x0` nor an array in `bounds` tells it.
    bounds : scipy.optimize.Bounds, n pairs (low, high), or pair of float or array_like, optional
        x_inf and x_sup. The first population is drawn in them where there is no `x0`, and then they
        are finite; `x0` is clipped to them. What they do beyond that is up to ``reading.limits``,
        by default nothing (item R15).
    sigma0 : float
        Standard deviation around `x0`, 0.1 in the paper.
    population_size, n_gen : int, optional
        lambda and the number of generations; by default what the reading says (24 and 30).
    n_elite : int
        Individuals that are kept, 4 in the paper; from 1 to population_size - 1.
    sigma_min : float
        Convergence limit, 1e-4 in the paper. A search that has been below it from the first
        population on, whether that was drawn around `x0` or in `bounds`, stops without success.
    seed : int, generator of numpy.random, SeedSequence or sequence of int, optional
        In [0, 2**64), or what one is drawn from; None: fresh entropy. One seed, one result, on any
        number of threads.
    dtype : {"float64", "float32"}
        Of the population; objective values are float64.
    reading : Reading
        How the ambiguous lines of the paper are read. By the default every search depends on where
        the origin is, since the factors of R17 act in proportion to the distance from it: take
        `Reading.recommended`, or ``perturbation="added"``, or shift the variables so that zero is a
        good guess.

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
        bounds: BoundsLike | None = None,
        sigma0: float = 0.1,
        population_size: int | None = None,
        n_elite: int = 4,
        n_gen: int | None = None,
        sigma_min: float = 1e-4,
        seed: SeedLike = None,
        dtype: DTypeLike = "float64",
        reading: Reading | None = None,
    ) -> None:
        reading = Reading() if reading is None else reading
        if not isinstance(reading, Reading):
            raise TypeError(f"reading must be a leamvd.Reading, got {checks.shown(reading)}")
        self.reading = reading.complete()
        if population_size is None:
            population_size = self.reading.population_size
        if n_gen is None:
            n_gen = reading.n_gen
        super().__init__(
            x0,
            n_var=n_var,
            bounds=bounds,
            sigma0=sigma0,
            population_size=population_size,
            n_gen=n_gen,
            x0_in_population=self.reading.x0_in_population,
            seed=seed,
            dtype=dtype,
        )
        self.sigma_min = checks.real("sigma_min", sigma_min, at_least=0)
        self.n_elite = checks.count("n_elite", n_elite, at_least=1)
        if self.n_elite >= self.population_size:
            kept = f"n_elite={self.n_elite}, the individuals that it keeps"
            raise ValueError(f"population_size={self.population_size} must be above {kept}")
        if self.reading.n_descent_rows >= self.population_size:
            raise ValueError(
                f"population_size must be > {self.reading.n_descent_rows}, the rows of the descent"
                " (R7)"
            )
        if not isinstance(self.reading.reset, str):
            checks.real("reading.reset", self.reading.reset, above=0, dtype=self.dtype)
        if self.reading.limits != "first" and bounds is None:
            raise ValueError(f"reading.limits={self.reading.limits!r} needs bounds, got None")
        self._key = np.uint64(self.seed)
        weights = selection.fractional_tournament(self.population_size, self.reading.exponent)
        self._weights = weights.astype(self.dtype)  # G
        self._drawn = np.zeros(1, np.int64)  # the generation whose rows X holds
        self._std_norm = math.inf
        self._widest = 0.0  # the largest norm so far
        self._descent_mean = self._descent_std = self._descent_norm = 0.0
        self._beta1 = 1.0
        self._beta2 = 0.9
        self._stagnation = 0
        self._overflown = False
        size = self.population_size
        self._X = np.empty((size, self.n_var), self.dtype)
        self._order = np.arange(size)  # rows of X lie in any order: it names them best first
        self._F = np.full(size, np.inf)  # best first
        self._vectors = Vectors(*(np.zeros(self.n_var, self.dtype) for _ in range(5)))
        self._initial_std: Floats | None = None
        # unit of what is added (R17), known after generation 1
        self._added: Floats = np.empty(0, self.dtype)
        self._rows = np.zeros(self.reading.n_descent_rows, np.int64)  # ir
        # P and C_ani in `_vectors` are the last generation's until the next ask adds what this one
        # makes of them.
        self._pending: directions.Descent

    # ---- ask: line 2, or line 12 of the generation before

    @property
    def n_candidates(self) -> int:
        """Number of candidates that the next `tell` takes, without the elites, which keep their
        values (R14).
        """
        if self.generation == 0 or self.reading.elites == "reevaluate":
            return self.population_size
        return self.population_size - self.n_elite

    def _sample(self) -> Floats:
        limits = sampling.LIMITS.index(self.reading.limits)
        perturbation = sampling.PERTURBATIONS.index(self.reading.perturbation)
        share = self.reading.perturbation_share
        log_unperturbed = math.log1p(-share) if share < 1 else -math.inf
        place = sampling.Place(
            self._key, self.generation + 1, perturbation, limits, log_unperturbed
        )
        if self.generation == 0:
            sampling.initialize(self._X, self._x0, self.sigma0, self._low, self._high, place)
            return self._X
        # unless Ctrl-C came between the kernel's end and that of the last ask
        if self._drawn[0] <= self.generation:
            self._regenerate(place)
        return self._X[self.population_size - self.n_candidates :]

    def _regenerate(self, place: sampling.Place) -> None:
        if self._overflown:
            raise OverflowError(
                f"points reach {np.abs(self._X).max():.1e}, too far for {self.dtype}, which cannot"
                " hold the squares of their differences: scale the variables"
            )
        sampling.regenerate(
            self._X,
            self._order,
            self._vectors,
            self._combination(),
            self._shift(),
            self._low,
            self._high,
            self._added,
            place,
            self._drawn,
        )

    def _shift(self) -> sampling.Shift:
        """Return what new rows are shifted by."""
        n_new = self.population_size - self.n_elite
        step: Array | float = self._descent_mean
        if self.reading.shift == "toward_best":  # R5
            step = abs(self._descent_mean)
        if self.reading.step == "sampled":  # R10
            z = random_streams.row_normals(
                self._key, random_streams.DESCENT_STEP, self.generation + 1, n_new
            )
            step = step + self._descent_std * z
        if self.reading.descent_scale == "normalized" and self._descent_norm > 0:
            step = step / self._descent_norm
        if self.reading.descent == "off":
            step = 0.0
        path = self.dtype.type(self._beta1 * self._beta2)
        descent = np.full(n_new, self._beta1 * (1 - self._beta2) * step, self.dtype)
        return sampling.Shift(path, descent)

    def _combination(self) -> sampling.Combination:
        """Return what makes C_ani of this generation, in the dtype of X."""
        real = self.dtype.type
        pending = self._pending
        weights = pending.row_weights.astype(self.dtype)
        return sampling.Combination(
            self._rows, weights, real(pending.path_weight), real(pending.fresh)
        )

    # ---- tell: lines 14-16 and 17-30, then lines 7-11

    def _keep_best(self, X: Floats, F: Array) -> None:
        """Do nothing: the best point is in the population."""

    def _learn(self, X: Floats, F: Array) -> None:
        self._rank(X, F)
        previous = self._lowest
        self._lowest = float(self._F[0])
        if self.generation == 1:
            self._added = np.full(int(self._x0 is not None), self.sigma0, self.dtype)
            self._x0 = None  # gives back the memory of what only the first population needs
            if self.reading.limits == "first":
                self._low = self._high = np.empty(0, self.dtype)
        else:
            steps = np.array([self._beta1, self._beta2, self._stagnation])
            adapt(steps, self._lowest != previous, self.reading.beta1_at_one == "mirrored")
            self._beta1, self._beta2, stagnation = steps.tolist()
            self._stagnation = int(stagnation)
        if self.generation == 1 or self.reading.path == "off":
            # line 5: x_best of t - 1 is x_best of t: P = 0
            self._vectors.previous[:] = self._X[self._order[0]]
        self._estimate()
        if self._stagnation == STAGNATION:
            self._reset()
        self._widest = max(self._widest, self._std_norm)

    def _rank(self, X: Floats, F: Array) -> None:
        """Take candidates into the population, and order it (line 14)."""
        count = self.population_size - len(X)
        if X is not self._candidates:
            self._X[count:] = X
        # elites in their order, then the candidates in theirs; or the new ones first (R18)
        rows = np.concatenate([self._order[:count], np.arange(count, self.population_size)])
        values = np.concatenate([self._F[:count], F])
        if self.reading.ties == "newest" and self.generation > 1:
            rows = np.roll(rows, -self.n_elite)
            values = np.roll(values, -self.n_elite)
        best_first = values.argsort(kind="stable")
        self._order = rows[best_first]  # ix
        self._F = values[best_first]

    def _estimate(self) -> None:
        """Estimate mu, Sigma, P and C_ani (lines 7 and 8)."""
        reading = self.reading
        t = self.generation
        pool = np.empty(self.population_size - 1, np.int64)
        self._rows = np.empty(reading.n_descent_rows, np.int64)
        random_streams.distinct(self._key, random_streams.DESCENT_ROWS, t, pool, self._rows)  # R7
        products = directions.scan(self._X, self._order, self._weights, self._rows, self._vectors)
        start = random_streams.row_normals(
            self._key, random_streams.DESCENT_START, t, reading.n_descent_rows
        )
        fresh = 1.0 if t == 1 and reading.first_direction == "full" else directions.RATE
        pending = self._pending = directions.descent(
            products,
            self._rows,
            start,
            oriented=reading.orientation == "oriented",
            fresh=fresh,
            orthogonal=reading.descent != "free",
        )
        mean = pending.mean
        std = pending.std
        if reading.projections == "repeated":  # R11: the printed list names ix_2 twice
            repeated = np.concatenate([pending.projections[:1], pending.projections])
            mean = float(repeated.mean())
            std = float(repeated.std())
        self._descent_mean = mean
        self._descent_std = std
        self._descent_norm = math.sqrt(max(pending.square, 0.0))
        if reading.descent_scale == "normalized" and self._descent_norm > 0:
            self._descent_mean /= self._descent_norm
            self._descent_std /= self._descent_norm
        self._std_norm = products.std_max
        if reading.sigma_norm == "euclidean":  # R4
            self._std_norm = math.sqrt(products.std_square)
        told = (
            products.std_max,
            products.path_path,
            pending.path_weight,
            pending.square,
            mean,
            std,
        )
        self._overflown = not all(map(math.isfinite, told))
        if t == 1 and reading.reset == "initial":
            self._initial_std = self._vectors.std.copy()
        if t == 1 and reading.perturbation == "added" and self._added.size == 0:
            self._added = self._vectors.std.copy()

    def _reset(self) -> None:
        """Widen the search after ten generations without a better best (lines 9-11, R13)."""
        if self.reading.reset == "off":
            return
        std = self._vectors.std
        std[:] = self._initial_std if self.reading.reset == "initial" else self.reading.reset
        self._std_norm = float(std.max())
        if self.reading.sigma_norm == "euclidean":
            square = np.einsum("i,i->", std, std, dtype=np.float64)  # no copy in double precision
            self._std_norm = math.sqrt(square)
        self._beta1 = 0.1
        self._stagnation = 0

    # ---- what it knows

    def _converged(self) -> dict[str, Any]:
        limit = self.sigma_min
        if self.reading.convergence == "scaled":
            limit *= math.sqrt(self.n_var)
        if self._std_norm >= limit:
            return {}
        reason = "sigma_min" if self._widest >= limit else "sigma_min_at_start"
        return {reason: self._std_norm}

    @property
    def step_sizes(self) -> tuple[float, float, float]:
        """Norm of sigma (R4), beta_1 and beta_2, as the next `ask` will use them."""
        return self._std_norm, self._beta1, self._beta2

    def _best(self) -> Floats | None:
        return self._X[self._order[0]].copy() if self.generation else None

    @property
    def state(self) -> State:
        """A copy of the values that the next `ask` will use.

        Raises
        ------
        RuntimeError
            Before the first `tell`, or between `ask` and `tell`.
        """
        if self.generation == 0 or self._drawn[0] > self.generation:
            raise RuntimeError("state is defined after tell() and before the next ask()")
        mean, std, before, old, previous = self._vectors
        path = np.empty_like(before)
        descent = np.empty_like(old)
        directions.path_columns(self._X[self._order[0]], previous, before, path)
        sampling.descent_columns(self._X, self._order, self._combination(), path, old, 0, descent)
        return State(
            population=self._X[self._order],
            fitness=self._F.copy(),
            mean=mean.copy(),
            std=std.copy(),
            path=path,
            descent=descent,
            descent_rows=self._rows.copy(),
            descent_mean=self._descent_mean,
            descent_std=self._descent_std,
            beta1=self._beta1,
            beta2=self._beta2,
            stagnation=self._stagnation,
            generation=self.generation,
            initial_std=copy.copy(self._initial_std),
            std_norm=self._std_norm,
        )

    def __getstate__(self) -> dict[str, Any]:
        values = self.__dict__.copy()
        if self._candidates is not None:
            values["_candidates"] = len(self._candidates)
        return values

    def __setstate__(self, values: dict[str, Any]) -> None:
        self.__dict__.update(values)
        # the candidates are rows of the population, not a copy of them
        if self._candidates is not None:
            self._candidates = read_only(self._X[self.population_size - values["_candidates"] :])
