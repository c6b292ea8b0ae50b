"""What stacks make of images, and what their first layers respond to, as arrays of gray levels."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leamvd._support.compile import Array
from leamvd.campaign.store import Store
from leamvd.data.images import Dataset, Images
from leamvd.experiments.layers import rbm
from leamvd.experiments.stacks import ORIGINAL, reconstructed
from leamvd.networks.rbm import RBMParameters
from leamvd.studies.study import Study

SEEDS = 3
"""Runs whose reconstructions are shown: the first ones."""


def pictures(study: Study, store: Path, data: Dataset) -> dict[str, NDArray[np.uint8]]:
    """Return all pictures of a study that has been run: "reconstructions/NAME" and "filters/METHOD", in 0 to 255."""
    rows = {f"reconstructions/{name}": V for name, V in reconstructions(study, store, data).items()}
    signed = {f"filters/{method}": (W + 1) / 2 for method, W in filters(study, store, data).items()}
    return {name: np.rint(255 * V).astype(np.uint8) for name, V in (rows | signed).items()}


def joined(first: Mapping[str, Array], more: Mapping[str, Array]) -> dict[str, Array]:
    """Return the `pictures` of a study, given those of two of its runs, with its first seeds and with the next ones."""
    rows = {name for name in first if name.startswith("reconstructions/") and name != f"reconstructions/{ORIGINAL}"}
    return {name: np.concatenate([V, more[name]])[:SEEDS] if name in rows else V for name, V in first.items()}


def reconstructions(study: Study, store: Path, data: Dataset) -> dict[str, Array]:
    """Return what the first `SEEDS` runs, on own inputs, leave of test images.

    They are as `leamvd.experiments.stacks.reconstructed` has them. A method has two pictures, of what comes back from
    the first layer, and from the whole stack.
    """
    stacks, seeds = {}, study.seeds[:SEEDS]
    depths = sorted({1, len(study.layers)} if "own" in study.inputs else {1})
    for method, depth in product(study.methods, depths):
        name = f"{method}, RBM 1" if depth == 1 else f"{method}, all {depth}"
        stacks[name] = [stack(study, store, data, method, seed, depth) for seed in seeds]
    return reconstructed(data, stacks)


def filters(study: Study, store: Path, data: Dataset) -> dict[str, Array]:
    """Return by method the weights of the first ten hidden units of the first layer of the first run.

    They have shape (1, units, side, side), and are divided by the largest absolute weight among them.
    """
    rows = {}
    for method in study.methods:
        (rbm,) = stack(study, store, data, method, study.seeds[0], 1)
        W = rbm.W[:, :10].T
        rows[method] = (W / np.abs(W).max()).reshape(1, -1, data.side, data.side)
    return rows


def stack(study: Study, store: Path, data: Dataset, method: str, seed: int, depth: int) -> list[RBMParameters]:
    """Return the first `depth` layers that a method has trained on its own inputs, in a study that has been run."""
    there = Store(store)
    return [rbm(there.read(job)) for job in study.stack(method, seed, Images.of(data))[:depth]]
