"""Section 6, what the paper may have run: the grid, and what is nearest."""

import numpy as np
import pandas as pd
import pytest

from leamvd.networks.contrastive_divergence import CDSettings, ContrastiveDivergence
from leamvd.networks.dbn import Training
from leamvd_paper.studies import layers, settings_tried
from leamvd_paper.studies.layers import Images
from leamvd_paper.studies.settings_tried import POINT, Grid

IMAGES = Images(n_images=60)
GRID = Grid(
    images=IMAGES,
    layers=(4, 3),
    learning_rates=(0.1,),
    weight_scales=(0.1,),
    batch_sizes=(20, 1000),
    dtype="float64",
    batches=(1, 2, 5, 6, 15, 16),
)


def start(settings: CDSettings, n_batches: int) -> bytes:
    """Return the first layer after so many mini-batches."""
    cd = ContrastiveDivergence(IMAGES.load("float64").train, 4, settings=settings, seed=0)
    for _ in range(n_batches):
        rbm = cd.mini_batch()
    return rbm.flat().tobytes()


def test_the_grid_has_every_start_once() -> None:
    crossed = [
        (CDSettings(batch_size=size, learning_rate=0.1, momentum=first, final_momentum=later), n)
        for size in GRID.batch_sizes
        for (first, later) in GRID.momenta
        for n in GRID.batches
    ]
    points = [*GRID.points()]
    left = [start(*point) for point in points]
    assert len(set(left)) == len(left) < len(crossed)
    assert set(left) == {start(*point) for point in crossed}


def test_starts_are_those_that_searches_have() -> None:
    settings = CDSettings(batch_size=20, learning_rate=0.05)
    rows = settings_tried.starts(IMAGES, (4, 3), settings, (1, 5), 7, "float64").rows
    below = None
    training = Training(
        batch_size=20, learning_rate=0.05, x0="batch", x0_batches=5, dtype="float64"
    )
    errors = []
    for n_hidden in (4, 3):
        below = layers.layer(
            IMAGES,
            "lea-mvd",
            n_hidden,
            7,
            training,
            layers.EXPERIMENT,
            "probabilities",
            below,
            iterations=(0,),
        )
        errors += below.rows["mean_field"].tolist()
    assert rows.query("batches == 5")["mean_field"].tolist() == errors


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
    assert near["factor"].tolist() == pytest.approx(
        [2 ** np.sqrt(1 / 2), 2, 2, 10 ** np.sqrt(1 / 2)]
    )
