"""Section 6, what the paper may have run: the grid, the choice, and what it is scored by."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from leamvd.networks.contrastive_divergence import CDSettings, ContrastiveDivergence
from leamvd.networks.dbn import Training
from leamvd.paper import layers, settings_tried
from leamvd.paper.layers import Images
from leamvd.paper.results import read_recorded
from leamvd.paper.settings_tried import CHOSEN, POINT, Grid

IMAGES = Images(n_images=60)
GRID = Grid(
    images=IMAGES, layers=(4, 3), learning_rates=(0.1,), weight_scales=(0.1,), batch_sizes=(20, 1000), dtype="float64",
    batches=(1, 2, 5, 6, 15, 16),
)  # fmt: skip


def start(settings: CDSettings, n_batches: int) -> bytes:
    """Return the first layer after so many mini-batches."""
    cd = ContrastiveDivergence(IMAGES.load("float64").train, 4, settings=settings, seed=0)
    for _ in range(n_batches):
        rbm = cd.mini_batch()
    return rbm.flat().tobytes()


def test_the_grid_has_every_start_once() -> None:
    crossed = [
        (CDSettings(batch_size=size, learning_rate=0.1, momentum=first, final_momentum=later), n)
        for size in GRID.batch_sizes for (first, later) in GRID.momenta for n in GRID.batches
    ]  # fmt: skip
    points = [*GRID.points()]
    left = [start(*point) for point in points]
    assert len(set(left)) == len(left) < len(crossed)
    assert set(left) == {start(*point) for point in crossed}


def test_starts_are_those_that_searches_have_and_biases_may_come_from_the_data() -> None:
    settings = CDSettings(batch_size=20, learning_rate=0.05)
    rows = settings_tried.starts(IMAGES, (4, 3), settings, (1, 5), 7, "float64").rows
    below = None
    training = Training(batch_size=20, learning_rate=0.05, x0="batch", x0_batches=5, dtype="float64")
    errors = []
    for n_hidden in (4, 3):
        below = layers.layer(
            IMAGES, "lea-mvd", n_hidden, 7, training, layers.EXPERIMENT, "probabilities", below, iterations=(0,)
        )
        errors += below.rows["mean_field"].tolist()
    assert rows.query("batches == 5")["mean_field"].tolist() == errors
    still = CDSettings(learning_rate=0.0, weight_scale=0.0)
    error = settings_tried.starts(IMAGES, (4,), still, (1,), 7, "float64", biases="data").rows["mean_field_ratio"]
    assert error.item() == pytest.approx(1, abs=1e-3), "the constant image"


def tried(*points: tuple[float, float]) -> pd.DataFrame:
    """Return errors of RBM 1 to 3 at points that differ in the rate, of 5,000 images."""
    rows = [
        (rate, 0.1, 0.5, 0.9, 100, 1, layer, 5_000, error / 2)
        for rate, errors in enumerate(points)
        for layer, error in enumerate((1.0, *errors), start=1)
    ]
    return pd.DataFrame(rows, columns=[*POINT, "layer", "n_images", "mean_field"])


def test_the_nearest_point_misses_both_numbers_least() -> None:
    near = settings_tried.distances(tried((10_000, 900), (2_500, 450), (2_500, 1_800), (5_000, 90)))
    assert near.index.get_level_values(0).tolist() == [0, 1, 2, 3]
    assert near["factor"].tolist() == pytest.approx([2 ** np.sqrt(1 / 2), 2, 2, 10 ** np.sqrt(1 / 2)])


def test_how_often_random_numbers_have_a_point_as_near() -> None:
    ends = tried((50, 9), (500_000, 90_000), (5_000, 900))  # a diagonal, the paper's numbers in its middle
    assert settings_tried.as_near(ends) == 0, "no point is nearer than the one that hits"
    far = tried((50, 9), (500_000, 90_000))  # from a corner the middle is as far as two sides of a square
    # uniform in a square of side 1: the share within half its diagonal of one of two opposite corners
    x, y = np.meshgrid(*[(np.arange(2_000) + 0.5) / 2_000] * 2)
    share = np.mean((x**2 + y**2 <= 0.5) | ((1 - x) ** 2 + (1 - y) ** 2 <= 0.5))
    assert settings_tried.as_near(far) == pytest.approx(share, abs=0.002)  # four standard errors of a million pairs


def test_the_points_that_are_scored_are_those_of_the_rule() -> None:
    recorded = read_recorded("settings_tried", "tried")
    assert settings_tried.chosen(recorded) == [*CHOSEN]
    ours = next(settings_tried.PAPER.points())[0]
    kept = dict(zip(settings_tried.SETTINGS, CHOSEN[0], strict=False))
    assert dataclasses.replace(ours, **kept) in {settings for settings, _ in settings_tried.PAPER.points()}


HOLDS = {  # errors by side, method, layer and iteration under which all seven statements hold
    (28, "cd", 1): (9, 7, 5, 5), (28, "cd", 2): (9, 8, 7, 60_000), (28, "cd", 3): (9, 100, 50, 95),
    (28, "lea", 1): (10, 10, 10, 9.5), (28, "lea", 2): (9, 9, 9, 9), (28, "lea", 3): (9, 9, 9, 8),
    **{(7, "cd", layer): (4, 4, 4, 4) for layer in (1, 2, 3)},
    **{(7, "lea", layer): (3, 3, 3, 3) for layer in (1, 2, 3)},
}  # fmt: skip


def scored(**changed: tuple[float, ...]) -> list[bool]:
    """Return which statements hold, with the errors changed of "side_method_layer"."""
    errors = HOLDS | {(int(side), method, int(layer)): values for (side, method, layer), values in
                      ((name.strip("_").split("_"), values) for name, values in changed.items())}  # fmt: skip
    texts = dict(zip(("cd", "lea"), settings_tried.methods(CHOSEN[0]), strict=True))
    rows = [
        (side, texts[method], layer, iteration, seed, 10_000, error * scatter, error * scatter)
        for (side, method, layer), values in errors.items()
        for iteration, error in zip((0, 1, 10, 50), values, strict=True)
        for seed, scatter in ((0, 0.5), (1, 2.0))
    ]
    columns = ["side", "method", "layer", "iteration", "seed", "n_images", "mean_field", "sampled"]
    return settings_tried.statements(pd.DataFrame(rows, columns=columns), CHOSEN[0])


@pytest.mark.parametrize(
    ("changed", "fails"),
    [
        ({}, []),
        ({"_28_cd_2": (9, 8, 7, 101_000)}, [0]),
        ({"_28_cd_2": (9, 8, 7, 24_900)}, [0]),
        ({"_28_cd_3": (9, 100, 50, 89)}, [1]),
        ({"_28_cd_1": (9, 7, 5, 5.6)}, [2]),
        ({"_28_lea_1": (10, 10, 10, 8.9)}, [2]),
        ({"_7_cd_1": (4, 4, 4, 5.1)}, [3]),
        ({"_28_lea_2": (9, 9, 9, 2.9)}, [3]),
        ({"_7_lea_2": (3, 3, 3, 4.1)}, [4]),
        ({"_7_lea_3": (3, 3, 3, 4.1)}, [5]),
        ({"_28_lea_3": (9, 9, 9, 8.2)}, [6]),
    ],
)
def test_each_statement_fails_by_what_it_says(changed: dict[str, tuple[float, ...]], fails: list[int]) -> None:
    assert [i for i, holds in enumerate(scored(**changed)) if not holds] == fails
