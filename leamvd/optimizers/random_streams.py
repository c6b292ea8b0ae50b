"""Counter-based random numbers: what a place (generation, row, column) draws depends on the seed
and the place alone.

The generator is Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy
as 1, 2, 3" (2011). Its key is the seed; its four counter words are (column block, column block >>
32, row | purpose << 24, generation), so threads, resumed runs and distributed shards draw the same
numbers in any order. Normals are Box and Muller's pairs, with logarithm, sine and cosine as short
series in IEEE arithmetic: no library function, the same bits everywhere.
"""

import math
import secrets
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from leamvd._support import checks
from leamvd._support.compile import Array, Floats, Integers, Words, kernel

_Block = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
_Round = tuple[np.uint64, np.uint64, np.uint64, np.uint64, np.uint64, np.uint64]

_Generator = np.random.Generator | np.random.RandomState | np.random.BitGenerator
SeedLike = int | _Generator | np.random.SeedSequence | Sequence[int] | Array | None
"""A seed in [0, 2**64), one of NumPy's generators, a seed sequence or what makes one, or None for
fresh entropy.
"""

# columns drawn, and summed, at a time: a power of two, and a row stays in the first-level cache
TILE = 1024
MAX_ROWS = 1 << 24  # rows that a counter can name
MAX_COLUMNS = 1 << 36  # columns of so many rows that an array of double precision can have

# What a number is drawn for: a stream of its own each. Recorded results rest on these numbers.
NORMAL, UNIFORM, PERTURBATION, DESCENT_ROWS, DESCENT_START, DESCENT_STEP = range(6)

# What else draws from a seed: a child of its own each. Contrastive divergence draws from the seed
# by NumPy's generator.
(
    FEATURE_BITS,
    CMA_ES,
    RANDOM_SEARCH,
    TEST_FEATURE_BITS,
    ERROR_BITS,
    TEST_ERROR_BITS,
    PAIRS,
    GIBBS,
) = range(8)
NATURAL_EVOLUTION = 8

_LOW = np.uint64(0xFFFFFFFF)
_SHIFT32 = np.uint64(32)
_ONE_32 = np.uint32(1)
_TWO_32 = np.uint32(2)
_ODD_32 = np.uint32(1 << 30)
_FLIP_32 = np.uint32(1 << 31)
_ONE_64 = np.uint64(1)
_TWO_64 = np.uint64(2)
_ODD_64 = np.uint64(1 << 62)
_FLIP_64 = np.uint64(1 << 63)
_MULTIPLIER0 = np.uint64(0xD2511F53)
_MULTIPLIER1 = np.uint64(0xCD9E8D57)
_WEYL0 = np.uint64(0x9E3779B9)
_WEYL1 = np.uint64(0xBB67AE85)


class Constants(NamedTuple):
    """The numbers of the normal transform in one floating type: series highest power first, as long
    as rounding needs.

    log m = 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1)/(m + 1), abs(s) <= 0.172; sine, cosine by
    Taylor on one eighth.
    """

    log: tuple[np.floating, ...]
    sine: tuple[np.floating, ...]
    cosine: tuple[np.floating, ...]
    step: np.floating  # of the radial uniform: 2**-31, 2**-53
    radian: np.floating  # of one step of the angle
    log2: np.floating
    zero: np.floating
    one: np.floating
    # the bits of sqrt(1/2): mantissas are brought to [sqrt(1/2), sqrt(2))
    root_half: np.signedinteger


def _constants(
    real: type[np.float32] | type[np.float64], step_bits: int, quadrant_bits: int, terms: int
) -> Constants:
    integer = np.dtype(f"i{real().itemsize}").type
    log = []
    sine = []
    cosine = []
    for k in reversed(range(terms)):
        log.append(real(2.0 / (2 * k + 1)))
        sine.append(real((-1.0) ** k / math.factorial(2 * k + 1)))
        cosine.append(real((-1.0) ** k / math.factorial(2 * k)))
    return Constants(
        log=tuple(log),
        sine=tuple(sine),
        cosine=tuple(cosine),
        step=real(2.0**-step_bits),
        radian=real(math.pi * 2.0 ** -(quadrant_bits + 1)),
        log2=real(math.log(2.0)),
        zero=real(0),
        one=real(1),
        root_half=real(math.sqrt(0.5)).view(integer),
    )


_SINGLE = _constants(np.float32, step_bits=31, quadrant_bits=30, terms=5)
_DOUBLE = _constants(np.float64, step_bits=53, quadrant_bits=52, terms=10)


def key(seed: SeedLike, name: str = "seed") -> int:
    """Return the 64-bit key that a seed stands for; `name` is its argument's in messages.

    It is the seed itself; a draw of a generator, which advances by it; the first number of a seed
    sequence, which does not; or for None fresh entropy.
    """
    if isinstance(seed, np.random.Generator | np.random.BitGenerator):
        return int(np.random.default_rng(seed).integers(2**64, dtype=np.uint64))
    if isinstance(seed, np.random.RandomState):
        return int(seed.randint(2**64, dtype=np.uint64))
    if isinstance(seed, list | tuple) or (isinstance(seed, np.ndarray) and seed.ndim):
        seed = _sequence(seed, name)
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1, np.uint64)[0])
    if seed is None:
        return secrets.randbits(64)
    if not hasattr(seed, "__index__"):
        forms = "an integer, a generator of numpy.random, a SeedSequence or a sequence of integers"
        raise TypeError(f"{checks.as_given(name)} must be {forms}, got {checks.shown(seed)}")
    return checks.integer(name, seed, at_least=0, at_most=2**64 - 1)


def _sequence(parts: Sequence[int] | Array, name: str) -> np.random.SeedSequence:
    checked = []
    for i, part in enumerate(parts):
        checked.append(checks.integer(f"{name}[{i}]", part, at_least=0))
    return np.random.SeedSequence(checked)


def child(seed: int, consumer: int, *number: int) -> np.random.SeedSequence:
    """Return the seed sequence of a consumer, CMA_ES, say, that may have several: unrelated to the
    seed's own numbers.

    A list of numbers is no child: to NumPy, the seed [3, 0] is the seed 3.
    """
    return np.random.SeedSequence(seed, spawn_key=(consumer, *number))


@kernel(inline=True)
def _round(
    x0: np.uint64, x1: np.uint64, x2: np.uint64, x3: np.uint64, y0: np.uint64, y1: np.uint64
) -> _Round:
    p0 = _MULTIPLIER0 * x0
    p1 = _MULTIPLIER1 * x2
    x0 = (p1 >> _SHIFT32) ^ x1 ^ y0
    x2 = (p0 >> _SHIFT32) ^ x3 ^ y1
    y0 = (y0 + _WEYL0) & _LOW
    y1 = (y1 + _WEYL1) & _LOW
    return x0, p1 & _LOW, x2, p0 & _LOW, y0, y1


@kernel(inline=True)
def _five_rounds(
    x0: np.uint64, x1: np.uint64, x2: np.uint64, x3: np.uint64, y0: np.uint64, y1: np.uint64
) -> _Round:
    """Five rounds of the cipher; written out, so that loops over blocks around it compile to vector
    code.
    """
    x0, x1, x2, x3, y0, y1 = _round(x0, x1, x2, x3, y0, y1)
    x0, x1, x2, x3, y0, y1 = _round(x0, x1, x2, x3, y0, y1)
    x0, x1, x2, x3, y0, y1 = _round(x0, x1, x2, x3, y0, y1)
    x0, x1, x2, x3, y0, y1 = _round(x0, x1, x2, x3, y0, y1)
    return _round(x0, x1, x2, x3, y0, y1)


@kernel()
def philox(
    c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, k0: np.uint64, k1: np.uint64
) -> _Block:
    """Return the four 32-bit words of Philox4x32-10 for one counter and key (all uint64 below
    2**32).
    """
    x0, x1, x2, x3, y0, y1 = _five_rounds(c0, c1, c2, c3, k0, k1)
    x0, x1, x2, x3, _, _ = _five_rounds(x0, x1, x2, x3, y0, y1)
    return x0, x1, x2, x3


@kernel(inline=True)
def _halves(number: int | np.uint64) -> tuple[np.uint64, np.uint64]:
    """Return the lower and the upper 32 bits."""
    whole = np.uint64(number)
    return whole & _LOW, whole >> _SHIFT32


@kernel(inline=True)
def _place(purpose: int, generation: int, row: int) -> tuple[np.uint64, np.uint64]:
    """Return the last two words of a counter."""
    kind = np.uint64(purpose) << np.uint64(24)
    return np.uint64(row) | kind, np.uint64(generation) & _LOW


@kernel()
def words(seed: int | np.uint64, purpose: int, generation: int, row: int, block: int) -> _Block:
    """Return the four 32-bit words at one place of one stream."""
    low, high = _halves(block)
    place, when = _place(purpose, generation, row)
    k0, k1 = _halves(seed)
    return philox(low, high, place, when, k0, k1)


@kernel(inline=True)
def _joined(high: np.uint64, low: np.uint64) -> np.uint64:
    return (np.uint64(high) << _SHIFT32) | np.uint64(low)


@kernel()
def uniform64(high: np.uint64, low: np.uint64) -> np.float64:
    """Return a double in [0, 1) from two 32-bit words: 53 random bits."""
    return np.float64(np.int64(_joined(high, low) >> np.uint64(11))) * 2.0**-53


@kernel(inline=True)
def uniform24(word: np.uint64) -> float:
    """Return a number in [0, 1) that single precision holds from a 32-bit word: 24 random bits."""
    return np.int64(np.uint64(word) >> np.uint64(8)) * 2.0**-24


@kernel()
def words_run(
    seed: np.uint64, purpose: int, generation: int, row: int, first: np.uint64, lanes: Words
) -> None:
    """Fill `lanes` (4, L) with the words of the blocks first, ..., first + L - 1."""
    w0 = lanes[0]
    w1 = lanes[1]
    w2 = lanes[2]
    w3 = lanes[3]
    place, when = _place(purpose, generation, row)
    k0, k1 = _halves(seed)
    for i in range(w0.size):
        low, high = _halves(np.uint64(first) + np.uint64(i))
        # not by way of `philox`: one call deeper, the compiler no longer vectorizes this loop
        x0, x1, x2, x3, y0, y1 = _five_rounds(low, high, place, when, k0, k1)
        w0[i], w1[i], w2[i], w3[i], _, _ = _five_rounds(x0, x1, x2, x3, y0, y1)


@kernel(inline=True)
def _horner(x: np.floating, coefficients: tuple[np.floating, ...]) -> np.floating:
    value = coefficients[0]
    for c in coefficients[1:]:
        value = value * x + c
    return value


@kernel(inline=True)
def _split_single(u: np.float32) -> tuple[np.floating, np.floating]:
    """Return e and m with u = 2^e m and m in [sqrt(1/2), sqrt(2))."""
    b = np.float32(u).view(np.int32)
    e = np.int32(np.int32(b - _SINGLE.root_half) >> np.int32(23))
    return np.float32(e), np.int32(b - np.int32(e << np.int32(23))).view(np.float32)


@kernel(inline=True)
def _split_double(u: np.float64) -> tuple[np.floating, np.floating]:
    b = np.float64(u).view(np.int64)
    e = (b - _DOUBLE.root_half) >> np.int64(52)
    return np.float64(e), np.int64(b - (e << np.int64(52))).view(np.float64)


@kernel(inline=True)
def log(u: Any) -> Any:
    """Return the logarithm of a positive, normal number, to a few rounding errors; in loops it
    becomes vector code.
    """
    single = isinstance(u, np.float32)  # decided when compiled
    a, (e, m) = (_SINGLE, _split_single(u)) if single else (_DOUBLE, _split_double(u))
    s = (m - a.one) / (m + a.one)
    return e * a.log2 + s * _horner(s * s, a.log)


@kernel(inline=True)
def _polar(
    u: np.floating, x: np.floating, odd: bool, flip: bool, a: Constants
) -> tuple[np.floating, np.floating]:
    """Return sqrt(-2 log u) (cos, sin)(x), turned by a quarter of a circle (odd), by a half (flip),
    or by both.
    """
    minus_log = -log(u)
    r = math.sqrt(max(minus_log + minus_log, a.zero))
    square = x * x
    sine = x * _horner(square, a.sine)
    cosine = _horner(square, a.cosine)
    c, d = (-sine, cosine) if odd else (cosine, sine)
    return (-r * c, -r * d) if flip else (r * c, r * d)


@kernel(inline=True)
def single_pair(radius: np.uint32, angle: np.uint32) -> tuple[np.floating, np.floating]:
    """Return z = sqrt(-2 log u) (cos, sin)(2 pi q) with u from the upper 31 bits of `radius` and q
    = angle / 2^32.
    """
    u = np.float32(np.int32(radius >> _ONE_32)) * _SINGLE.step + _SINGLE.step
    # at most an eighth of a circle from the nearest axis: all bits but two, as a signed number
    twice = angle << _ONE_32
    fourfold = angle << _TWO_32
    x = np.float32(np.uint32(fourfold).view(np.int32) >> np.int32(2)) * _SINGLE.radian
    # the number of that axis is the first two bits, plus the third, which rounds them
    odd = (angle ^ twice) & _ODD_32 != 0
    flip = (angle ^ (twice & fourfold)) & _FLIP_32 != 0
    return _polar(u, x, odd, flip, _SINGLE)


@kernel(inline=True)
def double_pair(radius: np.uint64, angle: np.uint64) -> tuple[np.floating, np.floating]:
    """Return the same with u from the upper 53 bits of `radius` and q from the
    upper 54 of `angle`.
    """
    u = np.float64(np.int64(radius >> np.uint64(11))) * _DOUBLE.step + _DOUBLE.step
    angle &= ~np.uint64(1023)
    twice = angle << _ONE_64
    fourfold = angle << _TWO_64
    x = np.float64(np.uint64(fourfold).view(np.int64) >> np.int64(12)) * _DOUBLE.radian
    odd = (angle ^ twice) & _ODD_64 != 0
    flip = (angle ^ (twice & fourfold)) & _FLIP_64 != 0
    return _polar(u, x, odd, flip, _DOUBLE)


@kernel(inline=True)
def normal_pair(
    w0: np.uint64, w1: np.uint64, w2: np.uint64, w3: np.uint64
) -> tuple[np.floating, np.floating]:
    """Return the two normals of double precision from the words of a block."""
    return double_pair(_joined(w0, w1), _joined(w2, w3))


class Scratch(NamedTuple):
    """Working memory for one tile of numbers; each thread makes its own with `scratch`."""

    numbers: Floats  # (TILE,), the tile drawn last
    lanes: Words  # (4, blocks a tile)


@kernel()
def tile_words(
    seed: np.uint64, purpose: int, generation: int, row: int, tile: int, lanes: Words
) -> None:
    """Fill `lanes` (4, blocks) with the words of one row and tile."""
    blocks = lanes.shape[1]
    first = np.uint64(tile) * np.uint64(blocks)
    words_run(seed, purpose, generation, row, first, lanes)


@kernel()
def normal_tile(
    seed: np.uint64, purpose: int, generation: int, row: int, tile: int, s: Scratch
) -> None:
    """Draw the TILE standard normals of one row and tile into ``s.numbers``.

    Single precision takes four numbers from a counter block, double precision two. Number j of
    block b of a tile belongs to column ``j * blocks + b`` of that tile, so that neighboring columns
    come from neighboring blocks.
    """
    tile_words(seed, purpose, generation, row, tile, s.lanes)
    if s.numbers.itemsize == 4:
        _single_normals(s.lanes, s.numbers)
    else:
        _double_normals(s.lanes, s.numbers)


@kernel()
def _single_normals(w: Words, z: Floats) -> None:
    blocks = w.shape[1]
    for pair in range(0, 4, 2):
        radius = w[pair]
        angle = w[pair + 1]
        first = z[pair * blocks : (pair + 1) * blocks]
        second = z[(pair + 1) * blocks : (pair + 2) * blocks]
        for i in range(blocks):
            first[i], second[i] = single_pair(radius[i], angle[i])


@kernel()
def _double_normals(w: Words, z: Floats) -> None:
    blocks = w.shape[1]
    w0 = w[0]
    w1 = w[1]
    w2 = w[2]
    w3 = w[3]
    first = z[:blocks]
    second = z[blocks:]
    for i in range(blocks):
        first[i], second[i] = normal_pair(w0[i], w1[i], w2[i], w3[i])


@kernel()
def row_normals(seed: np.uint64, purpose: int, generation: int, count: int) -> Array:
    """Draw one standard normal for each of the rows 0..count - 1: the double in
    their first column.
    """
    result = np.empty(count)
    for row in range(count):
        result[row] = row_normal(seed, purpose, generation, row)
    return result


@kernel()
def row_normal(seed: np.uint64, purpose: int, generation: int, row: int) -> np.floating:
    """Draw the standard normal of one row."""
    w0, w1, w2, w3 = words(seed, purpose, generation, row, 0)
    return normal_pair(w0, w1, w2, w3)[0]


@kernel()
def distinct(seed: np.uint64, purpose: int, generation: int, pool: Integers, out: Integers) -> None:
    """Fill `out` with distinct integers out of 1..pool.size, by the first steps of a shuffle, for
    which `pool` is.
    """
    for i in range(pool.size):
        pool[i] = i + 1
    for i in range(out.size):
        word = np.int64(words(seed, purpose, generation, 0, i)[0])
        j = i + (word * (pool.size - i) >> 32)
        pool[i], pool[j] = pool[j], pool[i]
        out[i] = pool[i]


@kernel()
def uniform_tile(
    seed: np.uint64, purpose: int, generation: int, row: int, tile: int, s: Scratch
) -> None:
    """Draw the TILE numbers of one row and tile, uniform in [0, 1), into ``s.numbers``; laid out as
    `normal_tile`.
    """
    w = s.lanes
    z = s.numbers
    tile_words(seed, purpose, generation, row, tile, w)
    blocks = w.shape[1]
    if blocks * 4 == TILE:
        for word in range(4):
            for i in range(blocks):
                z[word * blocks + i] = uniform24(w[word, i])
    else:
        for i in range(blocks):
            z[i] = uniform64(w[0, i], w[1, i])
            z[blocks + i] = uniform64(w[2, i], w[3, i])


@kernel()
def scratch(like: Floats) -> Scratch:
    """Return the working memory for tiles of the dtype of the array `like`."""
    blocks = TILE // 4 if like.itemsize == 4 else TILE // 2  # counter blocks a tile
    return Scratch(np.empty(TILE, like.dtype), np.empty((4, blocks), np.uint32))
