"""Seconds by count, against the bench's tables made by hand."""

import pandas as pd
import pytest

from leamvd.analysis import costs


def counted(*, cd_steps=1, **columns):
    """Rows of one layer, 784-500, in which cd ends after 3 epochs and lea-mvd after 3 generations of 10."""
    rows = [
        {"method": method, "seed": seed, "n_visible": 784, "n_hidden": 500, "n_images": 100, "evaluations": e,
         "products": 2 * e + (2 * cd_steps + 3) * epochs}
        for method, steps in {
            "cd": [(0, 0), (0, 1), (0, 2), (0, 3)], "lea-mvd": [(0, 1), (10, 1), (20, 1), (30, 1)],
        }.items() for seed in (0, 2) for e, epochs in steps
    ]  # fmt: skip
    return pd.DataFrame(rows).assign(**columns)


def bench(sizes, epochs):
    """The bench's tables where an evaluation of one image takes v h nanoseconds, and an epoch so many times that."""
    objectives = [
        {"n_visible": v, "n_hidden": h, "backend": backend, "precision": "float32", "threads": threads,
         "n_images": 1000, "population_size": 24, "status": "ok", "seconds": 1e-9 * v * h * 24_000 * factor}
        for v, h in sizes for backend, threads, factor in (("numpy", 2, 0.5), ("numpy", 1, 1.0), ("torch", 1, 0.1))
    ]  # fmt: skip
    training = [
        {"trainer": trainer, "threads": threads, "n_visible": v, "n_hidden": h, "n_images": 500,
         "seconds": 1e-9 * v * h * 500 * ratio * factor}
        for (v, h), ratio in epochs.items()
        for trainer, threads, factor in (("scikit-learn", 1, 9.0), ("leamvd", 1, 1.0), ("leamvd", 2, 0.5))
    ]  # fmt: skip
    return pd.DataFrame(objectives), pd.DataFrame(training)


def test_seconds_are_counts_times_the_benchs():
    table = costs.timed(counted(), *bench([(784, 500), (49, 30)], {(784, 500): 3.0, (49, 30): 12.0}))
    one = 1e-9 * 784 * 500 * 100  # an evaluation of all images
    assert table.query("method == 'cd' and seed == 0")["seconds"].to_numpy() == pytest.approx(
        [0, 3 * one, 6 * one, 9 * one]
    )
    assert table.query("method == 'lea-mvd' and seed == 2")["seconds"].to_numpy() == pytest.approx(
        [3 * one, 13 * one, 23 * one, 33 * one]
    )
    small = counted(n_visible=49, n_hidden=30)
    table = costs.timed(small, *bench([(784, 500), (49, 30)], {(784, 500): 3.0, (49, 30): 12.0}))
    assert table["seconds"][3] == pytest.approx(3 * 12 * 1e-9 * 49 * 30 * 100)


def test_seconds_between_the_benchs_sizes():
    """The geometric mean of two sizes has that of their seconds; a ratio that was measured once holds everywhere."""
    between = counted(n_visible=70, n_hidden=14)  # 980 = sqrt(49 * 30 * 49 * 40 / 3)
    sizes = [(49, 30), (98, 20 / 3)]
    twice = costs.timed(between, *bench(sizes, {(49, 30): 12.0, (98, 20 / 3): 3.0}))["seconds"]
    assert twice[3] == pytest.approx(3 * 6 * 1e-9 * 980 * 100)
    once = costs.timed(between, *bench(sizes, {(98, 20 / 3): 5.0}))["seconds"]
    assert once[3] == pytest.approx(3 * 5 * 1e-9 * 980 * 100)


def test_an_epoch_of_cd_k_takes_as_long_as_its_products():
    """That of CD-10 makes 23 where that of CD-1 makes 5."""
    bench_of = bench([(784, 500)], {(784, 500): 3.0})
    one, ten = (costs.timed(counted(cd_steps=k), *bench_of)["seconds"] for k in (1, 10))
    assert ten[3] == pytest.approx(4.6 * one[3])
    generation = one[9] - one[8]
    assert ten[9] - ten[8] == pytest.approx(generation), "evaluations are what they were"
