"""Sections 3 and 4: stacks of RBMs by LEA-MVD, CMA-ES and contrastive divergence.

Which method ends with the smallest reconstruction error, layer by layer, on the same images and with the same budget?
"""

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from leamvd._support import checks
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading

from . import layers, results
from .layers import ONE_EPOCH, Images, Study
from .results import Recorded, read_recorded

# ---- settings

PAPER = Study(
    images=Images(dataset="mnist"),
    methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:printed", "cma-es", "sep-cma-es", "random"),
    seeds=tuple(range(30)),
)
LARGE = Study(
    images=Images(dataset="mnist", side=28),
    layers=(500, 500, 2000),
    methods=("cd", "lea-mvd"),
    seeds=tuple(range(12)),
)
FEWER = LARGE.changed(n_images=10_000, seeds=tuple(range(10)))
VARIANTS = (
    *("lea-mvd:x0-excluded", "lea-mvd:printed", "lea-mvd:sigma0=0.01", "sep-cma-es", "sep-cma-es:sigma0=0.01"),
    "random",
)

PROFILES = {
    "7x7": {
        "quick": Study(
            layers=(20, 20, 40),  # with the paper's 30, 30, 120, full matrices would take CMA-ES most of the time
            methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "cma-es"),
            seeds=(0, 1, 2),
            training=Training(dtype="float64"),
            reading=Reading(n_gen=12),
        ),
        "paper": PAPER,
        "controls": PAPER.changed(methods=(ONE_EPOCH, "cma-es:n_gen=42"), inputs=("own",)),
    },
    "28x28": {
        "quick": LARGE.changed(
            dataset="digits",
            n_images=100,
            layers=(50, 50, 200),  # the paper's shape: with its sizes, drawing populations would take most of the time
            seeds=(0, 1),
            dtype="float64",
            n_gen=12,
        ),
        "paper": LARGE,
        "fewer": FEWER,
        "variants": FEWER.changed(methods=VARIANTS, inputs=("own",), seeds=(0, 1, 2, 3, 4)),
        "controls": LARGE.changed(methods=(ONE_EPOCH, "lea-mvd:printed"), inputs=("own",)),
    },
}
"""By the size of images: Section 3, which is study A of the book's rules, and Section 4, study D, with B and C
("fewer", "variants"); the controls are the start solution by itself, CMA-ES with as many evaluations as LEA-MVD, and
LEA-MVD as printed."""

ARCHIVE = {"paper": "", "controls": "_controls", "fewer": "_fewer", "variants": "_variants"}
RECORDED = {
    f"mnist_{size}{ARCHIVE[profile]}": lambda study=study: Recorded(study, layers.plan(study.on_disk()))
    for size, profiles in PROFILES.items()
    for profile, study in profiles.items()
    if profile != "quick"
}


class Tables(NamedTuple):
    """What is measured."""

    runs: pd.DataFrame  # errors of each layer after each iteration


def tables(
    profile: str = "recorded", folder: str | Path = ".", *, size: str = "7x7", n_jobs: int = 1, **changes: Any
) -> Tables:
    """Return the errors of every layer by iteration: what is recorded, or what is computed here."""
    if profile == "recorded":
        return Tables(read_recorded(f"mnist_{size}"))
    study = PROFILES[size][checks.choice("profile", profile, [*PROFILES[size]])].changed(**changes).on_disk()
    return Tables(**results.tables(layers.plan(study), folder, n_jobs=n_jobs, label=f"images of {size}"))
