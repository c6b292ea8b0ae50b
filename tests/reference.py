"""Algorithm 1 from the paper's text, one obvious step at a time, on a population that is kept best first.

Nothing here shares code with the library except its public random streams and the names of a reading's options.
"""

import math

import numpy as np
from numpy.typing import NDArray

from leamvd import Reading
from leamvd.optimizers import random_streams

Array = NDArray[np.float64]


def esd(size: int, exponent: float) -> Array:
    """Eq. 1."""
    g_hat = [float(size - k) ** exponent for k in range(size)]
    return np.array([g / sum(g_hat) for g in g_hat])


def mean_std(X: Array, G: Array) -> tuple[Array, Array]:
    """Eqs. 2 and 3."""
    size, n = X.shape
    mean, std = np.zeros(n), np.zeros(n)
    for i in range(n):
        mean[i] = sum(G[k] * X[k, i] for k in range(size))
        std[i] = math.sqrt(sum(G[k] * (X[k, i] - mean[i]) ** 2 for k in range(size)))
    return mean, std


def without(c: Array, P: Array) -> Array:
    """Return c less its projection on P; R8: a zero vector has none."""
    return c - P * (P @ c) / (P @ P) if P.any() else c


def power_method(U: Array, P: Array) -> Array:
    """Sec. 3.3: the vector of maximum projection on the columns of U, without P at each iteration."""
    c = without(U @ np.sin(np.arange(1.0, U.shape[1] + 1)), P)
    c /= np.linalg.norm(c)
    for _ in range(100_000):
        image = without(U @ (U.T @ c), P)
        image /= np.linalg.norm(image)
        change = np.abs(image - c).max()
        c = image
        if change < 1e-15:
            break
    return c


def beta_rules(beta1: float, beta2: float, success: bool, mirrored: bool = False) -> tuple[float, float]:
    """Lines 17-30; R12 says what happens at beta_1 = 1."""
    if success:
        beta2 = min(1.0, 0.2 + beta2)
        if beta1 > 1 or (mirrored and beta1 == 1):
            return min(3.0, 1.1 * beta1), beta2
        return 1.4 * beta1, beta2
    beta2 = max(0.0, beta2 - 0.1)
    if beta1 < 1 or (mirrored and beta1 == 1):
        return 0.8 * beta1, beta2
    return 0.5 * beta1, beta2


def normals(
    seed: int, generation: int, row: int, n: int, purpose: int = random_streams.NORMAL, dtype: str = "float64"
) -> Array:
    """Return the stream's normals of one row."""
    s = random_streams.scratch(np.empty(1, dtype))
    tiles = []
    for tile in range(-(-n // random_streams.TILE)):
        random_streams.normal_tile(np.uint64(seed), purpose, generation, row, tile, s)
        tiles.append(s.numbers.astype(np.float64))
    return np.concatenate(tiles)[:n]


def uniforms(seed: int, generation: int, row: int, n: int) -> Array:
    """Return the stream's uniform numbers of one row in double precision."""
    s = random_streams.scratch(np.empty(1))
    tiles = []
    for tile in range(-(-n // random_streams.TILE)):
        random_streams.uniform_tile(np.uint64(seed), random_streams.UNIFORM, generation, row, tile, s)
        tiles.append(s.numbers.copy())
    return np.concatenate(tiles)[:n]


def factors(seed: int, generation: int, row: int, n: int) -> Array:
    """Sec. 3.4, item 4: gaps between perturbed columns are geometric; a block of words holds two (gap, factor)."""
    result = np.ones(n)
    for first in range(0, n, random_streams.TILE):
        column, block = first - 1, first
        while column < min(n, first + random_streams.TILE):
            w = [
                int(word)
                for word in random_streams.words(np.uint64(seed), random_streams.PERTURBATION, generation, row, block)
            ]
            for gap, factor in ((w[0], w[1]), (w[2], w[3])):
                column += 1 + math.floor(math.log((gap + 1) / 2**32) / math.log(0.98))
                if column >= min(n, first + random_streams.TILE):
                    break
                result[column] = 0.5 + factor / 2**32
            block += 1
    return result


def keep_inside(x: Array, low: Array, high: Array, limits: str) -> Array:
    """R15."""
    if limits == "first":
        return x
    if limits == "clip":
        return np.array([min(max(v, a), b) for v, a, b in zip(x, low, high, strict=True)])
    x = x.copy()
    for i in range(len(x)):
        while x[i] < low[i] or x[i] > high[i]:
            x[i] = 2 * low[i] - x[i] if x[i] < low[i] else 2 * high[i] - x[i]
    return x


class Reference:
    """The state of Algorithm 1 after `tell`, and what `ask` should return; all in double precision."""

    def __init__(self, n: int, seed: int, reading: Reading, size: int = 24, n_elite: int = 4) -> None:
        self.n, self.seed, self.reading, self.size, self.n_elite = n, seed, reading, size, n_elite
        self.G = esd(size, reading.exponent)
        self.P, self.C = np.zeros(n), np.zeros(n)
        self.beta1, self.beta2, self.count, self.t = 1.0, 0.9, 0, 0
        self.X, self.F = np.empty((0, n)), np.empty(0)
        self.low, self.high = np.zeros(n), np.zeros(n)

    def tell(self, candidates: Array, values: Array, ir: NDArray[np.int64], sign_like: Array) -> None:
        """Run lines 4-5 or 15-30, then 7-11; `ir` is given, and so is C where item R6 leaves its sign free."""
        reading, first = self.reading, self.t == 0
        old = [] if first or reading.elites == "reevaluate" else [(f, x) for f, x in zip(self.F, self.X, strict=True)]
        new = [(np.inf if np.isnan(f) else f, x.astype(float)) for f, x in zip(values, candidates, strict=True)]
        elites = old[: self.n_elite]
        ranked = sorted(elites + new if reading.ties == "keep" else new + elites, key=lambda pair: pair[0])
        before, f_before = (None, None) if first else (self.X[0], self.F[0])
        self.F, self.X = np.array([f for f, _ in ranked]), np.array([x for _, x in ranked])
        self.t += 1
        if f_before is not None:
            success = bool(self.F[0] != f_before)
            self.count = 0 if success else self.count + 1
            self.beta1, self.beta2 = beta_rules(self.beta1, self.beta2, success, reading.beta1_at_one == "mirrored")
        self.mean, self.std = mean_std(self.X, self.G)
        self.P = 0.1 * (self.X[0] - (self.X[0] if before is None else before)) + 0.9 * self.P
        self._directions(ir, sign_like, first)
        if first:
            self.first_std = self.std
        if self.count == 10 and reading.reset != "off":
            self.std = self.first_std if reading.reset == "initial" else np.full(self.n, float(reading.reset))
            self.count, self.beta1 = 0, 0.1

    def _directions(self, ir: NDArray[np.int64], sign_like: Array, first: bool) -> None:
        U = np.array([self.X[0] - self.X[r] for r in ir]).T
        c_hat = power_method(U, self.P)
        if self.reading.orientation == "oriented":
            c_hat *= np.sign(sum(float(u @ c_hat) for u in U.T))
        else:
            c_hat *= np.sign((sign_like - 0.9 * self.C) @ c_hat)
        fresh = 1.0 if first and self.reading.first_direction == "full" else 0.1
        self.C = fresh * c_hat + 0.9 * self.C
        on = self.C / np.linalg.norm(self.C) if self.reading.descent_scale == "normalized" else self.C
        projections = [float((x - self.X[0]) @ on) for x in self.X[1:]]
        if self.reading.projections == "repeated":
            projections.insert(0, projections[0])
        self.mu_ani = sum(projections) / len(projections)
        self.sigma_ani = math.sqrt(sum((p - self.mu_ani) ** 2 for p in projections) / len(projections))
        self.shift_along = on

    def ask(self) -> Array:
        """Line 12: the rows that are regenerated (Sec. 3.4), after the elites where they are evaluated again."""
        rows = []
        for row in range(self.n_elite, self.size):
            step = self.mu_ani if self.reading.shift == "printed" else abs(self.mu_ani)
            if self.reading.step == "sampled":
                step += (
                    self.sigma_ani
                    * normals(self.seed, self.t + 1, row - self.n_elite, 1, random_streams.DESCENT_STEP)[0]
                )
            v = self.beta2 * self.P + (1 - self.beta2) * step * self.shift_along
            x = self.std * normals(self.seed, self.t + 1, row, self.n) + self.mean + self.beta1 * v
            by_column = self.reading.perturbation == "column"
            x = x * factors(self.seed, self.t + 1, self.size if by_column else row, self.n)
            rows.append(keep_inside(x, self.low, self.high, self.reading.limits))
        kept = list(self.X[: self.n_elite]) if self.reading.elites == "reevaluate" else []
        return np.array(kept + rows)
