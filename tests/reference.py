"""Algorithm 1 from the paper's text, one obvious step at a time, on a population that is kept best
first.

Nothing here shares code with the library except the names of a reading's options: the random
streams are written down once more, from the cipher's publication and the layout of
`leamvd.optimizers.random_streams`. What a row has drawn is kept, for it is the same whatever the
reading.
"""

import functools
import math

import numpy as np
from numpy.typing import NDArray

from leamvd import Reading

Array = NDArray[np.float64]

# The streams: what a number is drawn for is the upper byte of the counter's third word.
NORMAL, UNIFORM, PERTURBATION, DESCENT_ROWS, DESCENT_START, DESCENT_STEP = 0, 1, 2, 3, 4, 5
TILE = 1024


def philox(counter: tuple[object, ...], key: tuple[int, int]) -> list[NDArray[np.uint64]]:
    """Philox4x32-10 (Salmon et al. 2011): four words of the counter, of which the first two may be
    arrays.
    """
    c = [np.asarray(word, np.uint64) for word in counter]
    k = [np.uint64(word) for word in key]
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for _ in range(10):
        p, q = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [(q >> half) ^ c[1] ^ k[0], q & low, (p >> half) ^ c[3] ^ k[1], p & low]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return c


def words(
    seed: int, purpose: int, generation: int, row: int, block: object
) -> list[NDArray[np.uint64]]:
    """Return the four words of each block: the key is the seed, the counter is (block, row |
    purpose, generation).
    """
    at = np.asarray(block, np.uint64)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    return philox(
        (at & low, at >> half, row + (purpose << 24), generation), (seed & 0xFFFFFFFF, seed >> 32)
    )


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


def power_method(U: Array, P: Array, start: Array | None = None) -> Array:
    """Sec. 3.3: the vector of maximum projection on the columns of U, without P
    at each iteration.
    """
    c = without(U @ (np.sin(np.arange(1.0, U.shape[1] + 1)) if start is None else start), P)
    c /= np.linalg.norm(c)
    for _ in range(100_000):
        image = without(U @ (U.T @ c), P)
        image /= np.linalg.norm(image)
        change = np.abs(image - c).max()
        c = image
        if change < 1e-15:
            break
    return c


def beta_rules(
    beta1: float, beta2: float, success: bool, mirrored: bool = False
) -> tuple[float, float]:
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


def box_muller(radius: Array, angle: Array) -> tuple[Array, Array]:
    """Return sqrt(-2 log u) (cos, sin)(2 pi q) of u in (0, 1] and q in [0, 1)."""
    r = np.sqrt(-2 * np.log(radius))
    return r * np.cos(2 * np.pi * angle), r * np.sin(2 * np.pi * angle)


def double_pair(w: list[NDArray[np.uint64]]) -> tuple[Array, Array]:
    """Two normals from the four words of a block: 53 bits of radius, 54 of angle."""
    radius, angle = w[0] << np.uint64(32) | w[1], w[2] << np.uint64(32) | w[3]
    return box_muller(
        ((radius >> np.uint64(11)) + 1.0) / 2.0**53, (angle >> np.uint64(10)) / 2.0**54
    )


@functools.cache
def normals(seed: int, generation: int, row: int, n: int, dtype: str = "float64") -> Array:
    """Return the normals of one row: number j of block b of a tile belongs to column j * (blocks a
    tile) + b of it.
    """
    blocks = TILE // (2 if dtype == "float64" else 4)
    tiles = []
    for tile in range(-(-n // TILE)):
        w = words(seed, NORMAL, generation, row, tile * blocks + np.arange(blocks))
        if dtype == "float64":
            tiles += double_pair(w)
            continue
        for radius, angle in ((w[0], w[1]), (w[2], w[3])):
            u = (np.float32(radius >> np.uint64(1)) + np.float32(1)).astype(np.float64) / 2.0**31
            tiles += box_muller(u, angle / 2.0**32)
    return np.concatenate(tiles)[:n]


@functools.cache
def row_normals(seed: int, purpose: int, generation: int, count: int) -> Array:
    """Return one normal for each row: the first one of its block 0."""
    return np.array(
        [double_pair(words(seed, purpose, generation, row, 0))[0] for row in range(count)]
    )


@functools.cache
def ranks(seed: int, generation: int, count: int, size: int) -> NDArray[np.int64]:
    """Return ir: the first `count` of the ranks 1..size - 1 after as many exchanges of a shuffle, a
    block for each.
    """
    pool = list(range(1, size))
    for i in range(count):
        word = int(words(seed, DESCENT_ROWS, generation, 0, i)[0])
        j = i + word * (len(pool) - i) // 2**32
        pool[i], pool[j] = pool[j], pool[i]
    return np.array(pool[:count])


def uniforms(seed: int, generation: int, row: int, n: int) -> Array:
    """Return the uniform numbers of one row in double precision, 53 bits each, laid out as normals
    are.
    """
    tiles = []
    for tile in range(-(-n // TILE)):
        w = words(seed, UNIFORM, generation, row, tile * TILE // 2 + np.arange(TILE // 2))
        tiles += [
            (high << np.uint64(32) | low) // 2**11 / 2.0**53
            for high, low in ((w[0], w[1]), (w[2], w[3]))
        ]
    return np.concatenate(tiles)[:n]


def geometric(log_u: float, share: float) -> int:
    """Return how many entries are left out before one that is perturbed."""
    return 0 if share == 1 else math.floor(log_u / math.log(1 - share))


@functools.cache
def factors(seed: int, generation: int, row: int, n: int, share: float = 0.02) -> Array:
    """Sec. 3.4, item 4: gaps between perturbed columns are geometric; a block of words holds two
    (gap, factor).
    """
    result = np.ones(n)
    for first in range(0, n, TILE):
        drawn = np.array(
            words(seed, PERTURBATION, generation, row, first + np.arange(TILE))
        ).T.reshape(-1, 2)
        column = first - 1
        for gap, factor in drawn.tolist():
            column += 1 + geometric(math.log((gap + 1) / 2**32), share)
            if column >= min(n, first + TILE):
                break
            result[column] = 0.5 + factor / 2**32
    return result


def keep_inside(x: Array, low: Array, high: Array, limits: str | None) -> Array:
    """R15."""
    if limits in (None, "first"):
        return x
    if limits == "clip":
        return np.array([min(max(v, a), b) for v, a, b in zip(x, low, high, strict=True)])
    x = x.copy()
    for i in range(len(x)):
        while x[i] < low[i] or x[i] > high[i]:
            x[i] = 2 * low[i] - x[i] if x[i] < low[i] else 2 * high[i] - x[i]
    return x


class Reference:
    """The state of Algorithm 1 after `tell`, and what `ask` should return; all
    in double precision.
    """

    def __init__(
        self,
        n: int,
        seed: int,
        reading: Reading,
        size: int = 24,
        n_elite: int = 4,
        sigma0: float | None = None,
    ) -> None:
        self.sigma0 = sigma0  # None for initialization (A)
        self.n, self.seed, self.reading, self.size, self.n_elite = n, seed, reading, size, n_elite
        self.G = esd(size, reading.exponent)
        self.P, self.C = np.zeros(n), np.zeros(n)
        self.beta1, self.beta2, self.count, self.t = 1.0, 0.9, 0, 0
        self.X, self.F = np.empty((0, n)), np.empty(0)
        self.low, self.high = np.zeros(n), np.zeros(n)

    def tell(self, candidates: Array, values: Array) -> None:
        """Run lines 4-5 or 15-30, then 7-11."""
        reading, first = self.reading, self.t == 0
        old = (
            []
            if first or reading.elites == "reevaluate"
            else [(f, x) for f, x in zip(self.F, self.X, strict=True)]
        )
        new = [
            (np.inf if np.isnan(f) else f, x.astype(float))
            for f, x in zip(values, candidates, strict=True)
        ]
        elites = old[: self.n_elite]
        if reading.elites == "reevaluate" and not first:
            elites, new = new[: self.n_elite], new[self.n_elite :]
        ranked = sorted(
            elites + new if reading.ties == "keep" else new + elites, key=lambda pair: pair[0]
        )
        before, f_before = (None, None) if first else (self.X[0], self.F[0])
        self.F, self.X = np.array([f for f, _ in ranked]), np.array([x for _, x in ranked])
        self.t += 1
        if f_before is not None:
            success = bool(self.F[0] != f_before)
            self.count = 0 if success else self.count + 1
            self.beta1, self.beta2 = beta_rules(
                self.beta1, self.beta2, success, reading.beta1_at_one == "mirrored"
            )
        self.mean, self.std = mean_std(self.X, self.G)
        self.P = 0.1 * (self.X[0] - (self.X[0] if before is None else before)) + 0.9 * self.P
        if reading.path == "off":
            self.P = np.zeros(self.n)
        self._directions(first)
        if first:
            self.first_std = self.std
        if self.count == 10 and reading.reset != "off":
            self.std = (
                self.first_std
                if reading.reset == "initial"
                else np.full(self.n, float(reading.reset))
            )
            self.count, self.beta1 = 0, 0.1

    def _directions(self, first: bool) -> None:
        self.ir = ranks(self.seed, self.t, self.reading.n_descent_rows, self.size)
        U = np.array([self.X[0] - self.X[r] for r in self.ir]).T
        avoided = np.zeros(self.n) if self.reading.descent == "free" else self.P
        c_hat = power_method(
            U, avoided, row_normals(self.seed, DESCENT_START, self.t, len(self.ir))
        )
        if self.reading.orientation == "oriented":
            c_hat *= np.sign(sum(float(u @ c_hat) for u in U.T))
        fresh = 1.0 if first and self.reading.first_direction == "full" else 0.1
        self.C = fresh * c_hat + 0.9 * self.C
        on = (
            self.C / np.linalg.norm(self.C)
            if self.reading.descent_scale == "normalized"
            else self.C
        )
        projections = [float((x - self.X[0]) @ on) for x in self.X[1:]]
        if self.reading.projections == "repeated":
            projections.insert(0, projections[0])
        self.mu_ani = sum(projections) / len(projections)
        self.sigma_ani = math.sqrt(
            sum((p - self.mu_ani) ** 2 for p in projections) / len(projections)
        )
        self.shift_along = on

    def ask(self) -> Array:
        """Line 12: the rows that are regenerated (Sec. 3.4), after the elites where they are
        evaluated again.
        """
        rows, reading = [], self.reading
        z = row_normals(self.seed, DESCENT_STEP, self.t + 1, self.size - self.n_elite)
        for row in range(self.n_elite, self.size):
            step = self.mu_ani if self.reading.shift == "printed" else abs(self.mu_ani)
            if self.reading.step == "sampled":
                step += self.sigma_ani * z[row - self.n_elite]
            v = self.beta2 * self.P + (1 - self.beta2) * step * self.shift_along
            if self.reading.descent == "off":
                v = self.beta2 * self.P
            x = self.std * normals(self.seed, self.t + 1, row, self.n) + self.mean + self.beta1 * v
            by_column = reading.perturbation == "column"
            of_row = self.size if by_column else row
            share = reading.perturbation_share
            u = factors(self.seed, self.t + 1, of_row, self.n, share) - 1
            if reading.perturbation == "added":
                x = x + (self.first_std if self.sigma0 is None else self.sigma0) * u
            elif reading.perturbation != "off":
                x = x * (1 + u)
            rows.append(keep_inside(x, self.low, self.high, self.reading.limits))
        kept = list(self.X[: self.n_elite]) if self.reading.elites == "reevaluate" else []
        return np.array(kept + rows)
