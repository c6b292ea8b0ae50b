"""Studies that take a second: one with nothing at its default, one plain, and one that measures its stacks."""

import pandas as pd

from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.studies.study import Classification, Study

TINY = Study(
    n_images=40,
    layers=(6, 5),
    methods=("lea-mvd", "cd", "cma-es", "lea-mvd:x0-excluded"),
    seeds=(3, 5),
    features="bits",
    training=Training(n_elite=2, dtype="float64", cd_steps=3, batch_size=16, x0_epochs=2, learning_rate=0.3),
    reading=Reading(n_gen=2, population_size=8, exponent=2.0),
)

SMALL = Study(
    n_images=40,
    layers=(6, 5),
    methods=("cd", "lea-mvd"),
    seeds=(3,),
    training=Training(n_elite=2, dtype="float64"),
    reading=Reading(n_gen=2, population_size=8),
)

MEASURED = Classification(
    tuning_rate=0.3,
    n_images=60,
    layers=SMALL.layers,
    seeds=(3, 4),
    training=SMALL.training,
    reading=SMALL.reading,
    scales=("0.1",),
    epochs=2,
    n_chains=10,
    n_temperatures=5,
)


def same(a: pd.DataFrame, b: pd.DataFrame) -> None:
    """Check that tables are the same to the bit, except for the seconds."""
    pd.testing.assert_frame_equal(a.drop(columns="seconds"), b.drop(columns="seconds"), check_exact=True)
