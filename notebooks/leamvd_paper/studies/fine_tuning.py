"""Section 13, networks: what of pre-training helps to classify, what was learned or the size of the
weights.

Networks are fine-tuned from stacks of RBMs, and from random weights that are as large as theirs.
Each side has the learning rate with which its first seeds have the fewest errors on images that are
held out.
"""

import dataclasses
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd._support.compile import Array
from leamvd._support.threads import one_blas_thread
from leamvd.networks.dbn import fine_tune
from leamvd_paper.data.images import Dataset

from . import settings_map
from .classification import GLOROT, RANDOM, normal_stack, random_stack
from .layers import Images, Section, Study, rbms, stack
from .results import (
    Call,
    Floats,
    Integers,
    Plan,
    Recorded,
    Result,
    Table,
    Texts,
    delayed,
    read_recorded,
)
from .settings_map import TRAINED, Map

# a network that starts at random weights, as large as a method's where it is said of one
RESIZED = "random"
N_TRIED = 3  # seeds by which a learning rate is chosen


@dataclasses.dataclass(frozen=True, kw_only=True)
class Settings(Study):
    """Methods whose networks are compared with random weights as large as theirs, and with those of
    some scales.
    """

    methods: Texts = (
        "cd",
        "lea-mvd:sigma0=0.003",
        "lea-mvd:sigma0=0.01",
        "lea-mvd:sigma0=0.03",
    )
    inputs: Texts = ("own",)
    seeds: Integers = tuple(range(30))
    scales: Texts = ("0.3", "1")  # standard deviations of random weights
    epochs: int = 50  # of fine-tuning
    rates: Floats = (0.05, 0.1, 0.2, 0.5)  # first learning rates to choose from
    # images by which they are chosen, with networks that have not seen them
    n_held_out: int = 10_000

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("inputs", self.inputs, [("own",)])
        checks.integer("seeds", len(self.seeds), at_least=N_TRIED)
        checks.integer("epochs", self.epochs, at_least=1)
        for name in ("scales", "rates"):
            values = checks.several(name, getattr(self, name), different=True)
            object.__setattr__(self, name, values)
            for value in values:
                checks.real(name, checks.decimal(str(value)), above=0)
        checks.integer("n_held_out", self.n_held_out, at_least=1)

    def without_held_out(self) -> tuple[Study, Images]:
        """Return the study of the images that are not held out, and those that are."""
        count = self.images.known().n_images or 0
        parts = count // self.n_held_out
        if parts < 2 or count % self.n_held_out:
            raise ValueError(
                f"n_held_out must be a part of the {count} images that divides them, got"
                f" {self.n_held_out}"
            )
        fewer = self.changed(n_images=count - self.n_held_out)
        held_out = fewer.changed(n_images=self.n_held_out, image_set=parts - 1)
        return fewer, held_out.images.known()


PAPER = Settings(images=Images(dataset="mnist", n_images=60_000))
PROFILES = {
    "quick": (
        Settings(
            images=Images(n_images=1_200),
            layers=(20, 20),
            seeds=(0, 1, 2),
            epochs=30,
            rates=(0.2, 0.5),
            n_held_out=400,
        ).changed(n_gen=10)
    ),
    "paper": PAPER,
}


class Tables(NamedTuple):
    """What is measured; errors are shares of wrong images."""

    rates: Table  # on held-out images, by learning rate
    runs: Table  # on test images, with the rate chosen


def recorded() -> Tables:
    """Return what is recorded."""
    return Tables(*(read_recorded("classification_moved", table) for table in Tables._fields))


# ---- what is computed


def resized(top: Result, dtype: str, seed: int) -> Result:
    """Return a stack of random weights, each layer's as large as those of another stack, and zero
    biases.
    """
    weights = [rbm.W for rbm in rbms(top)]
    sizes = [len(weights[0]), *(W.shape[1] for W in weights)]
    return normal_stack(sizes, _stds(top), dtype, seed)


def _stds(top: Result) -> list[float]:
    """Return how large the weights of each layer are."""
    return [float(rbm.W.std(dtype=np.float64)) for rbm in rbms(top)]


def tried(
    top: Result,
    images: Images,
    held_out: Images,
    dtype: str,
    seed: int,
    epochs: int,
    rates: tuple[float, ...],
) -> Result:
    """Return the share of wrong images among those held out, by the learning
    rate of fine-tuning.
    """
    data = images.load(dtype)
    others = held_out.load(dtype)
    rows = []
    for rate in rates:
        classifier = _network(top, data, seed, epochs, rate)
        rows.append((rate, _wrong(classifier, others.train, others.train_labels)))
    return Result(pd.DataFrame(rows, columns=["rate", "error"]))


def tuned(
    top: Result,
    images: Images,
    dtype: str,
    seed: int,
    epochs: int,
    first: Result,
    second: Result,
    third: Result,
) -> Result:
    """Return the share of wrong test images after fine-tuning at the best rate of the first three
    seeds' `tried`.
    """
    errors = pd.concat([first.rows, second.rows, third.rows]).groupby("rate")["error"].mean()
    rate = float(errors.idxmin())
    data = images.load(dtype)
    classifier = _network(top, data, seed, epochs, rate)
    row = {"rate": rate, "test_error": _wrong(classifier, data.test, data.test_labels)}
    for layer, std in enumerate(_stds(top), start=1):
        row[f"std{layer}"] = std
    return Result(pd.DataFrame([row]))


def _network(top: Result, data: Dataset, seed: int, epochs: int, rate: float) -> Any:
    steps = fine_tune(
        rbms(top), data.train, data.train_labels, epochs=epochs, tuning_rate=rate, seed=seed
    )
    ((classifier, _),) = deque(steps, maxlen=1)
    return classifier


def _wrong(classifier: Any, V: Array, labels: Array) -> float:
    with one_blas_thread():
        return float(np.mean(classifier.predict(V) != labels))


SIDE = ["method", "weights"]  # columns that say where a network starts


class Side(NamedTuple):
    """Where networks of a side start, by seed: for runs, and where its learning rate is chosen."""

    runs: Mapping[int, Call]
    tried: Mapping[int, Call]  # of the first seeds


Sides = dict[tuple[Any, ...], Side]  # by the labels of their networks


def side_of(runs: Mapping[int, Call]) -> Side:
    """Return a side whose learning rate is chosen where the first of its runs start."""
    return Side(runs, {seed: runs[seed] for seed in [*runs][:N_TRIED]})


def resized_side(side: Side, dtype: str) -> Side:
    """Return the side of random weights as large as another one's."""
    return Side(_resized_tops(side.runs, dtype), _resized_tops(side.tried, dtype))


def _resized_tops(tops: Mapping[int, Call], dtype: str) -> dict[int, Call]:
    calls = {}
    for seed, top in tops.items():
        calls[seed] = delayed(resized)(top, dtype, seed)
    return calls


def plan_of(
    columns: list[str],
    sides: Sides,
    images: Images,
    fewer: Images,
    held_out: Images,
    dtype: str,
    epochs: int,
    rates: tuple[float, ...],
) -> Plan:
    """Return the plan of `Tables`: a learning rate of each side by `held_out` images, then test
    errors of `images`.

    `fewer` are those on which the networks are trained by which a rate is chosen.
    """
    choice = {}
    runs = {}
    for names, side in sides.items():
        for seed, top in side.tried.items():
            choice[*names, seed] = delayed(tried)(top, fewer, held_out, dtype, seed, epochs, rates)
        errors = [choice[*names, seed] for seed in side.tried]
        for seed, top in side.runs.items():
            runs[*names, seed] = delayed(tuned)(top, images, dtype, seed, epochs, *errors)
    return {"rates": ([*columns, "seed"], choice), "runs": ([*columns, "seed"], runs)}


def plan(study: Settings) -> Plan:
    """Return the plan of `Tables` of stacks, of random weights as large as LEA-MVD's, and of random
    weights of a scale.

    Where a rate is chosen, stacks too have not seen the images that are held out.
    """
    dtype = study.training.dtype
    fewer, held_out = study.without_held_out()
    few = study.seeds[:N_TRIED]
    sides = {}
    for method in study.methods:
        runs = {seed: stack(study, method, seed)[-1] for seed in study.seeds}
        first = {seed: stack(fewer, method, seed)[-1] for seed in few}
        side = Side(runs, first)
        sides[method, TRAINED] = side
        if method != "cd":
            sides[method, RESIZED] = resized_side(side, dtype)
    sizes = (study.images.side**2, *study.layers)
    for scale in study.scales:
        runs = {seed: delayed(random_stack)(sizes, scale, dtype, seed) for seed in study.seeds}
        sides[f"{RANDOM}{scale}", RESIZED] = side_of(runs)
    return plan_of(
        SIDE, sides, study.images, fewer.images, held_out, dtype, study.epochs, study.rates
    )


tables = Section(Tables, PROFILES, plan, recorded, "networks")

# ---- in the cells of the map


@dataclasses.dataclass(frozen=True, kw_only=True)
class OfMap:
    """Networks from the stacks of a map, and from random weights."""

    cells: Map = settings_map.OWN_INPUTS
    scales: Texts = ("0.3", "1", GLOROT)  # of random weights that no stack has
    epochs: int = 50
    rates: Floats = (0.05, 0.2, 0.5)
    image_set: int = 1  # by which rates are chosen


# the book's protocol, and that by which the paper's numbers come out
OF_MAP = OfMap(cells=settings_map.SMALL.changed(protocols=("0.1/0.1", "0.01/0.003")))
# three of the others, of which the last one is marked
CELLS = tuple(
    cell for cell in settings_map.CELLS if cell[0] in ("0.01/0.01", "guide", "scikit-learn")
)
OTHERS = dataclasses.replace(settings_map.OWN_INPUTS, cells=CELLS, searched=CELLS)
OF_OTHERS = OfMap(cells=OTHERS, scales=())


def plan_of_map(study: OfMap) -> Plan:
    """Return the plan of `Tables` by cell; what is not of a start is under 0 mini-batches."""
    given = study.cells
    seeds = given.seeds
    sides = {}
    for protocol, batches in given.cells:
        cell = given.study(protocol, batches)
        images = cell.images
        dtype = cell.training.dtype
        runs = {seed: stack(cell, "cd", seed)[-1] for seed in seeds}
        sides[protocol, 0, "cd", TRAINED] = side_of(runs)
        starts = settings_map.starts(cell)
        runs = {seed: starts["own", len(given.layers), seed] for seed in seeds}
        sides[protocol, batches, settings_map.START, TRAINED] = side_of(runs)
        for method in settings_map.READINGS.values():
            search = settings_map.METHODS[method]
            side = side_of({seed: stack(cell, search, seed)[-1] for seed in seeds})
            sides[protocol, batches, method, TRAINED] = side
            sides[protocol, batches, method, RESIZED] = resized_side(side, dtype)
    sizes = (images.side**2, *given.layers)
    for scale in study.scales:
        runs = {seed: delayed(random_stack)(sizes, scale, dtype, seed) for seed in seeds}
        sides[settings_map.ANY, 0, f"{RANDOM}{scale}", RESIZED] = side_of(runs)
    held_out = dataclasses.replace(images, image_set=study.image_set)
    columns = [*settings_map.CELL, *SIDE]
    return plan_of(columns, sides, images, images, held_out, dtype, study.epochs, study.rates)


RECORDED = {
    "classification_moved": Recorded(PAPER, lambda: plan(PAPER)),
    "map_networks": Recorded(OF_MAP, lambda: plan_of_map(OF_MAP)),
    "map_networks_more": Recorded(OF_OTHERS, lambda: plan_of_map(OF_OTHERS)),
}
