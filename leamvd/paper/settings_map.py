"""Section 13: what holds for which of the settings that the paper does not print.

The paper says neither how contrastive divergence was set nor what its "first iteration" is, from which every search
starts. A cell of the map is one choice of both. In each, the claims of Sections 3, 4 and 8 are judged anew, and
networks are fine-tuned from what each method leaves, beside random weights.
"""

import dataclasses
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from leamvd.networks.contrastive_divergence import CDSettings

from .layers import LABELS, Images, Study, last, layer_call, searches, stack
from .results import Call, Plan, Recorded
from .study_methods import Method

# ---- settings

SCALES = (0.1, 0.01)  # standard deviations of the first weights
RATES = (0.1, 0.01, 0.003)
CROSSED = {
    f"N(0, {scale:g}), rate {rate:g}": CDSettings(weight_scale=scale, learning_rate=rate)
    for scale, rate in product(SCALES, RATES)
}
PLAIN = {"batch_size": 10, "momentum": 0.0, "final_momentum": 0.0, "weight_decay": 0.0}  # of scripts
WHOLE = {  # settings that somebody else has, as they are
    "Hinton's guide": CDSettings(weight_scale=0.01, visible_biases="data", weight_decay=1e-4),
    "scikit-learn": CDSettings(weight_scale=0.01, persistent=True, **PLAIN),
    "deeplearning.net": CDSettings(initial_weights="glorot", weight_scale=4.0, learning_rate=0.01, **PLAIN),
}
PROTOCOLS = CROSSED | WHOLE
"""Settings of contrastive divergence by their names."""

BATCHES = (1, 5, 60, 600)  # mini-batches behind a start; 600 of 100 images are an epoch of 60,000
Cell = tuple[str, int]  # the name of a protocol, and mini-batches
CELLS: tuple[Cell, ...] = (*product(CROSSED, BATCHES), *product(WHOLE, (BATCHES[0], BATCHES[-1])))
BOOK: Cell = ("N(0, 0.1), rate 0.1", 600)  # the settings of Sections 3 and 4

START = "start"  # what the mini-batches leave, with no search
METHODS = {
    "lea-mvd": "lea-mvd:n_gen=50",  # 1,004 evaluations
    "lea-mvd:printed": "lea-mvd:printed+n_gen=50",
    "sep-cma-es": "sep-cma-es:n_gen=42",  # 1,008
}
"""The searches by their names in tables, which do not have the number of generations."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Map:
    """Cells, and what is run in each: contrastive divergence and the start in all, searches in those named."""

    images: Images = dataclasses.field(default_factory=lambda: Images(dataset="mnist", n_images=10_000))
    layers: tuple[int, ...] = (30, 30, 120)
    inputs: tuple[str, ...] = ("own", "shared")
    seeds: tuple[int, ...] = tuple(range(10))
    methods: tuple[str, ...] = tuple(METHODS.values())
    protocols: dict[str, CDSettings] = dataclasses.field(default_factory=lambda: PROTOCOLS)
    cells: tuple[Cell, ...] = CELLS
    searched: tuple[Cell, ...] = CELLS
    updates: int = 30_000  # of contrastive divergence: 50 epochs of 60,000 images in mini-batches of 100
    first_updates: int = 3_000  # with the first momentum: five of these epochs
    n_rows: int = 10  # of the last fifth of contrastive divergence, by which C10 is judged

    def study(self, protocol: str, batches: int) -> Study:
        """Return the study of a cell: contrastive divergence, and the searches from a start of so many mini-batches.

        An epoch of fewer images has fewer updates; those with the first momentum, and all, are as many as the map's.
        """
        settings = self.protocols[protocol]
        images = self.images.known()
        updates_of_epoch = -(-(images.n_images or 0) // settings.batch_size)
        epochs = self.updates // updates_of_epoch
        last_fifth = np.linspace(0.8 * epochs, epochs, self.n_rows + 1)[1:].round().astype(int)
        momentum_epochs = self.first_updates // updates_of_epoch
        study = Study(
            images=images,
            layers=self.layers,
            inputs=self.inputs,
            seeds=self.seeds,
            methods=("cd", *self.methods),
            iterations=tuple(sorted({0, 1, 42, 50, *last_fifth.tolist()})),  # where a search or an epoch ends
        )
        return study.changed(
            **vars(settings) | {"momentum_epochs": momentum_epochs}, x0="batch", x0_batches=batches, n_gen=epochs
        )


SMALL = Map()

# ---- what is computed

CELL = ["protocol", "batches"]


def plan(settings: Map) -> Plan:
    """Return the plan of the errors of all layers by cell; contrastive divergence is under 0 mini-batches, once."""
    names = {str(Method.parse(text)): name for name, text in METHODS.items()}
    calls: dict[tuple[Any, ...], Call] = {}
    for protocol, batches in settings.cells:
        study = settings.study(protocol, batches)
        for (inputs, layer, text, seed), call in searches(study).items():
            if text == "cd":
                calls[protocol, 0, inputs, layer, "cd", seed] = call
            elif (protocol, batches) in settings.searched:
                calls[protocol, batches, inputs, layer, names[text], seed] = call
        for (inputs, layer, seed), call in starts(study).items():
            calls[protocol, batches, inputs, layer, START, seed] = call
    return {"runs": ([*CELL, *LABELS], calls)}


def starts(study: Study) -> dict[tuple[str, int, int], Call]:
    """Return the layers of a study that nothing searches, by inputs, layer and seed.

    On own inputs a layer stands on starts. On shared ones it stands on contrastive divergence, and is on its course.
    """
    text = METHODS["lea-mvd"]
    alone = dataclasses.replace(study, iterations=(0,))
    calls = {}
    for seed in study.seeds:
        for number, call in enumerate(stack(alone, text, seed), start=1):
            calls["own", number, seed] = call
        for number, below in enumerate(stack(study, "cd", seed)[:-1], start=2):
            calls["shared", number, seed] = layer_call(alone, text, study.layers[number - 1], seed, below)
    return calls


def kept(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that ship: of searches the first and the last ones alone."""
    ends = rows.index.isin(last(rows).index)
    return rows[ends | (rows["iteration"] == 0) | (rows["method"] == "cd")]


RECORDED = {"map_7x7": Recorded(SMALL, lambda: plan(SMALL), kept)}
