"""Statistical tests run on fixed seeds; a correct generator would fail each with probability below
1e-6.
"""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

import reference
from leamvd.optimizers import random_streams

REALS = ["float64", "float32"]
SEED = 20191130


def distinct(seed: int, generation: int, count: int, size: int) -> NDArray[np.int64]:
    out = np.empty(count, np.int64)
    random_streams.distinct(
        seed, random_streams.DESCENT_ROWS, generation, np.empty(size - 1, np.int64), out
    )
    return out


def tiles(
    count: int,
    dtype: str,
    *,
    seed: int = SEED,
    purpose: int = random_streams.NORMAL,
    generation: int = 1,
    row: int = 0,
) -> NDArray[np.floating]:
    """Return `count` consecutive tiles of one row's numbers: normals, of all purposes but one."""
    draw = (
        random_streams.uniform_tile
        if purpose == random_streams.UNIFORM
        else random_streams.normal_tile
    )
    s = random_streams.scratch(np.empty(1, dtype))
    result = np.empty((count, random_streams.TILE), dtype)
    for tile in range(count):
        draw(np.uint64(seed), purpose, generation, row, tile, s)
        result[tile] = s.numbers
    return result.ravel()


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0,) * 4, (0,) * 2, "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_the_cipher_gives_the_known_answers_of_random123(
    counter: tuple[int, ...], key: tuple[int, ...], words: str
) -> None:
    assert (
        " ".join(f"{int(w):08x}" for w in random_streams.philox(*map(np.uint64, counter + key)))
        == words
    )


def test_every_stream_gives_its_known_answers() -> None:
    """Written down once more in `reference`, with numbers for names: no two
    purposes share a word.
    """
    seed, first = 0x123456789ABCDEF0, (1 << 32) - 4  # the counter's second word changes on the way
    lanes = np.empty((4, 9), np.uint64)
    random_streams.words_run(
        np.uint64(seed), random_streams.DESCENT_STEP, 2, 3, np.uint64(first), lanes
    )
    singles = [
        random_streams.words(seed, random_streams.DESCENT_STEP, 2, 3, first + i) for i in range(9)
    ]
    np.testing.assert_array_equal(lanes, np.transpose(np.array(singles, np.uint64)))
    np.testing.assert_array_equal(lanes, reference.words(seed, 5, 2, 3, first + np.arange(9)))
    uniforms = tiles(2, "float64", seed=seed, purpose=random_streams.UNIFORM, generation=3, row=2)
    np.testing.assert_array_equal(uniforms, reference.uniforms(seed, 3, 2, 2048))
    # of the formula in double precision, and of ours
    for dtype, rounding_errors in (("float64", 20), ("float32", 4)):
        ours, theirs = (
            tiles(2, dtype, seed=seed, generation=3, row=2),
            reference.normals(seed, 3, 2, 2048, dtype),
        )
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=rounding_errors * np.finfo(dtype).eps)
    for purpose, number in ((random_streams.DESCENT_START, 4), (random_streams.DESCENT_STEP, 5)):
        ours, theirs = (
            random_streams.row_normals(seed, purpose, 3, 6),
            reference.row_normals(seed, number, 3, 6),
        )
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-14)
    for t in range(1, 20):
        np.testing.assert_array_equal(distinct(seed, t, 4, 9), reference.ranks(seed, t, 4, 9))


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (
            "float64",
            [
                "-0x1.59c5f68670155p-1",
                "0x1.fe36122f354b5p-3",
                "0x1.40a4b73fb6063p+1",
                "0x1.11b58c7fcc587p-1",
            ],
        ),
        (
            "float32",
            [
                "-0x1.9f434e0000000p+0",
                "-0x1.7395a60000000p-2",
                "0x1.efa3b40000000p+0",
                "0x1.f4de360000000p-1",
            ],
        ),
    ],
)
def test_the_numbers_never_change(dtype: str, expected: list[str]) -> None:
    """Recorded results rest on these bits."""
    numbers = tiles(1, dtype, seed=1, generation=2, row=3)
    assert [float(numbers[i]).hex() for i in (0, 1, 700, 1023)] == expected


@pytest.mark.parametrize("dtype", REALS)
def test_extreme_uniforms_give_finite_normals(dtype: str) -> None:
    """The smallest radius gives the longest normal, the largest one gives zero; angles at and next
    to the axes.
    """
    bits, pair, word = (
        (53, random_streams.double_pair, np.uint64)
        if dtype == "float64"
        else (31, random_streams.single_pair, np.uint32)
    )
    top = 2 ** (8 * word().itemsize) - 1
    radius = np.zeros(10, word)
    radius[1::2] = top
    angle = np.array([0, 0, top, top, top // 2, top // 2, top // 4, top // 4, 1, 1], word)
    first, second = np.array([pair(*place) for place in zip(radius, angle, strict=True)], dtype).T
    longest = np.sqrt(2 * bits * np.log(2))
    np.testing.assert_allclose(first[[0, 2, 4]], longest * np.array([1, 1, -1]), rtol=1e-6)
    assert second[6] == pytest.approx(longest, rel=1e-6)
    np.testing.assert_allclose([first[1::2], second[1::2]], 0, atol=1e-6)


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", REALS)
def test_normals_have_the_moments_and_the_distribution_of_normals(dtype: str) -> None:
    z = tiles(1024, dtype).astype(np.float64)
    errors = np.sqrt(z.size)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs((z**power).mean() - moment) * errors / np.sqrt(variance) < 5
    assert stats.kstest(z, "norm").pvalue > 1e-6
    for limit in (2.0, 3.0, 4.0, 4.5):
        for tail in (np.sum(z > limit), np.sum(z < -limit)):
            assert 1e-7 < stats.poisson.cdf(tail, z.size * stats.norm.sf(limit)) < 1 - 1e-7


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", REALS)
def test_uniforms_are_uniform_below_one(dtype: str) -> None:
    u = tiles(512, dtype, purpose=random_streams.UNIFORM)
    assert u.min() >= 0
    assert u.max() < 1
    assert stats.kstest(u.astype(np.float64), "uniform").pvalue > 1e-6


@pytest.mark.compiled
@pytest.mark.parametrize("dtype", REALS)
def test_neighboring_streams_are_independent(dtype: str) -> None:
    count = 256
    z = tiles(count, dtype).astype(np.float64)
    others = {
        "row": tiles(count, dtype, row=1),
        "generation": tiles(count, dtype, generation=2),
        "purpose": tiles(count, dtype, purpose=random_streams.DESCENT_STEP),
        "seed": tiles(count, dtype, seed=SEED + 1),
        "high word of the seed": tiles(count, dtype, seed=SEED + 2**32),
    }
    lags = {f"column + {lag}": np.roll(z, lag) for lag in (1, 2, 256, 512, 1024)}
    for name, other in (others | lags).items():
        for f in (np.copy, np.square, np.sign):
            a, b = f(z), f(other.astype(np.float64))
            r = np.corrcoef(a, b)[0, 1]
            assert abs(r) * np.sqrt(z.size) < 5, name


def test_distinct_ranks_are_distinct_and_every_subset_is_equally_likely() -> None:
    draws = np.array([distinct(SEED, t, 2, 6) for t in range(2000)])
    pairs, counts = np.unique(draws, axis=0, return_counts=True)
    assert pairs.tolist() == [[a, b] for a in range(1, 6) for b in range(1, 6) if a != b]
    assert stats.chisquare(counts).pvalue > 1e-6


@pytest.mark.parametrize("kind", [np.random.default_rng, np.random.RandomState, np.random.PCG64])
def test_a_generator_advances_by_the_draw_that_is_the_key(kind: Any) -> None:
    keys = [[random_streams.key(generator) for _ in range(2)] for generator in (kind(5), kind(5))]
    assert keys[0] == keys[1]
    assert keys[0][0] != keys[0][1]


def test_a_seed_sequence_and_what_makes_one_repeat() -> None:
    sequence = np.random.SeedSequence([1, 2])
    for seed in (sequence, sequence, [1, 2], (1, 2), np.array([1, 2])):
        assert random_streams.key(seed) == sequence.generate_state(1, np.uint64)[0]
    for wrong in ([1, 1.5], [True], [1, -1], "12", 1.5):
        with pytest.raises((TypeError, ValueError), match=r"rng(\[\d\])? must be an integer"):
            random_streams.key(wrong, "rng")  # type: ignore[arg-type]
