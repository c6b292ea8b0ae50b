"""A study: which methods are compared on which data, with which settings, over which seeds; and its jobs."""

import dataclasses
import functools
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd.campaign.jobs import Table
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments.layers import COLUMNS as LAYER_COLUMNS
from leamvd.experiments.layers import TrainLayer
from leamvd.experiments.local_models import REFERENCE, MeasurePairs, SearchSurrogate
from leamvd.experiments.methods import Method
from leamvd.experiments.stacks import (
    BATCHES,
    GLOROT,
    AnnealedImportanceSampling,
    FineTune,
    Probe,
    RandomWeights,
    StackJob,
)
from leamvd.networks.dbn import EXPERIMENT, FEATURES, Training
from leamvd.optimizers.reading import Reading

INPUTS = ("own", "shared")
"""Whether a method's layers see its own features or those of contrastive divergence (item E7)."""

ONE_EPOCH = "cd:n_gen=1"
"""The start solution of searches by itself: one epoch of contrastive divergence."""

RANDOM = "random-"
"""How methods are named that are random weights; "random" alone is random search."""

LABELS = ("method", "inputs", "layer", "seed")
"""Columns that name a layer."""

COLUMNS = ("section", "reading", *LABELS, *LAYER_COLUMNS)
"""Of a study's table: what names the layer, and `leamvd.experiments.layers.COLUMNS`."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison of methods on one data set, architecture and budget.

    What a method does not have of its own is the study's `training` and `reading`. Of the reading, optimizers other
    than LEA-MVD take population size, generations and ``x0_in_population``, contrastive divergence its epochs, `n_gen`.
    """

    section: str = "mnist-7x7"  # of the paper, as `leamvd list` names it
    dataset: str = "digits"  # this and the next three: see `leamvd.data.images.load`
    side: int = 7
    pooling: Literal["mean", "center"] = "mean"
    binarize: str = "gray"
    n_images: int | None = None  # for training; all by default
    image_set: int = 0  # which of the disjoint sets of so many images
    layers: tuple[int, ...] = (30, 30, 120)  # hidden units
    methods: tuple[str, ...] = ("cd", "lea-mvd", "cma-es")  # see `leamvd.experiments.methods.Method.parse`
    inputs: tuple[str, ...] = INPUTS
    seeds: tuple[int, ...] = (0,)  # one run each, of every method on the same subset of images
    features: Literal["probabilities", "bits"] = "probabilities"  # what a layer hands on
    training: Training = dataclasses.field(default_factory=Training)
    reading: Reading = EXPERIMENT
    archived: str = ""  # of a study that is recorded, the name that its results are read from; else it is run

    def __post_init__(self) -> None:
        object.__setattr__(self, "methods", tuple(str(Method.parse(method)) for method in self.methods))
        for name in ("layers", "methods", "inputs", "seeds"):
            value = tuple(getattr(self, name))
            if not value or (len(set(value)) < len(value) and name != "layers"):
                different = "" if name == "layers" else ", all different"
                raise ValueError(f"{name} must be one or more values{different}, got {value!r}")
            object.__setattr__(self, name, value)
        for units in self.layers:
            checks.integer("layers", units, at_least=1)
        for seed in self.seeds:
            checks.integer("seeds", seed, at_least=0)
        for inputs in self.inputs:
            checks.choice("inputs", inputs, INPUTS)
        for method in self.methods:
            own, training, reading = self.settings_of(method)
            if own.trainer == "lea-mvd":  # a population that clashes with the reading is found here, not hours later
                training.optimizer("lea-mvd", np.zeros(1), reading=reading, seed=0)
        checks.choice("features", self.features, FEATURES)

    def settings_of(self, method: str) -> tuple[Method, Training, Reading]:
        """Return one of the methods, and what it runs."""
        own = Method.parse(method)
        return own, own.training(self.training), own.reading(self.reading)

    @property
    def size(self) -> str:
        """The name of the images' size, "mnist-7x7", in tables of several studies."""
        return f"mnist-{self.side}x{self.side}"

    @property
    def units(self) -> tuple[int, ...]:
        """Pixels, and the hidden units of each layer."""
        return self.side**2, *self.layers

    def training_of(self, method: str) -> Training:
        """Return the settings that one of the methods runs with."""
        return self.settings_of(method)[1]

    def reading_of(self, method: str) -> Reading:
        """Return the reading that one of the methods runs."""
        return self.settings_of(method)[2]

    def stack(self, method: str, seed: int, images: Images) -> tuple[TrainLayer, ...]:
        """Return the layers that a method trains on its own inputs, the first one first."""
        return self._stack(self.settings_of(method), seed, images)

    def _stack(self, settings: tuple[Method, Training, Reading], seed: int, images: Images) -> tuple[TrainLayer, ...]:
        own, training, reading = settings
        stack: tuple[TrainLayer, ...] = ()
        for n_hidden in self.layers:
            layer = TrainLayer(
                images=images,
                trainer=own.trainer,
                layer=len(stack) + 1,
                n_hidden=n_hidden,
                seed=seed,
                training=training,
                reading=reading,
                features=self.features if stack else "probabilities",
                below=stack,
            )
            stack += (layer,)
        return stack

    def jobs(self, images: Images) -> dict[tuple[Any, ...], TrainLayer]:
        """Return the job that stands behind each of the `LABELS`, one seed after the other.

        Shared inputs are the features of contrastive divergence. The first layer sees the images either way, and the
        layers of contrastive divergence its own features: there both labels have the same job.
        """
        settings = {method: self.settings_of(method) for method in ("cd", *self.methods)}
        found = {}
        for seed in self.seeds:
            cd = self._stack(settings["cd"], seed, images)
            for method, inputs in product(self.methods, self.inputs):
                for job in _on_inputs(inputs, self._stack(settings[method], seed, images), cd):
                    found[method, inputs, job.layer, seed] = job
        return found

    def tables(self, images: Images) -> dict[str, Table]:
        """Return the tables of the study by their names: "runs"."""
        return {"runs": Table(LABELS, self.jobs(images), "iteration", self._arranged)}

    def _arranged(self, rows: pd.DataFrame) -> pd.DataFrame:
        rows = rows.assign(section=self.section, reading=rows["method"].map(reading))
        return self.in_order(rows[list(COLUMNS)])

    def in_order(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the table of the study in the order of its methods, and of seeds and iterations."""
        order = {method: i for i, method in enumerate(self.methods)}
        return table.sort_values(
            ["inputs", "layer", "method", "seed", "iteration"],
            key=lambda column: column.map(order) if column.name == "method" else column,
            ignore_index=True,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class Classification(Study):
    """A comparison of what methods' stacks, trained on their own inputs, and random weights are worth."""

    section: str = "classification"
    methods: tuple[str, ...] = ("cd", "lea-mvd")
    inputs: tuple[str, ...] = ("own",)
    scales: tuple[str, ...] = ("0.01", "0.1", GLOROT)  # of random weights, see `leamvd.experiments.stacks`
    epochs: int = 50  # of fine-tuning
    tuning_rate: float = 0.2  # its first learning rate
    n_chains: int = 100  # this and the next: of the estimate of a log-likelihood
    n_temperatures: int = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.inputs != ("own",):
            raise ValueError(f"inputs must be own in a study of what stacks are worth, got {self.inputs!r}")
        object.__setattr__(self, "scales", tuple(self.scales))
        for scale in self.scales:
            if scale != GLOROT:
                try:
                    checks.real("scales", float(scale), at_least=0)
                except ValueError:
                    raise ValueError(f"scales must be numbers >= 0 or {GLOROT!r}, got {scale!r}") from None
        checks.integer("epochs", self.epochs, at_least=1)
        checks.real("tuning_rate", self.tuning_rate, above=0)
        if checks.integer("n_chains", self.n_chains, at_least=2 * BATCHES) % BATCHES:
            raise ValueError(f"n_chains must be a multiple of {BATCHES}, got {self.n_chains}")
        checks.integer("n_temperatures", self.n_temperatures, at_least=1)

    def tables(self, images: Images) -> dict[str, Table]:
        """Return what is measured of each stack, and of random weights: "runs" (fine-tuning), "probes", "likelihoods".

        A method is one of the study's, or `RANDOM` and a scale.
        """
        jobs: dict[str, dict[tuple[Any, ...], StackJob]] = {"runs": {}, "probes": {}, "likelihoods": {}}
        methods = (*self.methods, *(f"{RANDOM}{scale}" for scale in self.scales))
        for seed, method in product(self.seeds, methods):
            given: dict[str, Any] = {"images": images, "seed": seed}
            if method.startswith(RANDOM):
                sizes, scale = self.units, method.removeprefix(RANDOM)
                whole = given | {"random": RandomWeights(sizes, scale, self.training.dtype)}
                first = given | {"random": RandomWeights(sizes[:2], scale, self.training.dtype)}
            else:
                stack = self.stack(method, seed, images)
                whole, first = given | {"stack": stack}, given | {"stack": stack[:1]}
            jobs["runs"][method, seed] = FineTune(**whole, epochs=self.epochs, learning_rate=self.tuning_rate)
            jobs["probes"][method, seed] = Probe(**whole)
            jobs["likelihoods"][method, seed] = AnnealedImportanceSampling(
                **first, n_chains=self.n_chains, n_temperatures=self.n_temperatures
            )
        lines = {"runs": "epoch", "probes": "layer", "likelihoods": "iteration"}
        return {
            name: Table(("method", "seed"), jobs[name], line, functools.partial(self._measured, line=line))
            for name, line in lines.items()
        }

    def _measured(self, rows: pd.DataFrame, line: str) -> pd.DataFrame:
        rows = rows.drop(columns="iteration") if line == "layer" else rows.rename(columns={"iteration": line})
        names = ["study", "method", "seed"]
        table = rows.assign(study=self.size)[[*names, *rows.columns.difference(names, sort=False)]]
        order = {method: i for i, method in enumerate(table["method"].unique())}
        return table.sort_values("method", key=lambda column: column.map(order), kind="stable", ignore_index=True)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Explanation(Study):
    """A comparison of step sizes, and what theory says of them from a few pairs around the start solutions."""

    section: str = "explanation"
    methods: tuple[str, ...] = ("lea-mvd",)
    inputs: tuple[str, ...] = ("own",)
    sigmas: tuple[float, ...] = (0.001, 0.003, REFERENCE, 0.03, 0.1, 0.3)  # at which pairs are measured
    n_pairs: int = 30

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "sigmas", tuple(self.sigmas))
        for sigma in self.sigmas:
            checks.real("sigmas", sigma, above=0)
        for method in self.methods:
            checks.choice("methods", Method.parse(method).trainer, ("lea-mvd",))
        checks.integer("n_pairs", self.n_pairs, at_least=2)

    def tables(self, images: Images) -> dict[str, Table]:
        """Return the searches, "runs", what is known before them, "pairs" and "surrogates", and "retrodictions".

        The start solutions of pairs are those of the stack that is trained for one epoch: a prediction for a layer
        above the first needs no search. Retrodictions are surrogates of the inputs that the searches below have made.
        """
        pairs = self.pairs(images)
        surrogates: dict[tuple[Any, ...], SearchSurrogate] = {}
        retrodictions: dict[tuple[Any, ...], SearchSurrogate] = {}
        for seed, method in product(self.seeds, self.methods):
            stacks = (self.stack(one, seed, images) for one in (method, ONE_EPOCH))
            for search, start in zip(*stacks, strict=True):
                before = pairs[self.size, search.layer, seed]
                own = dataclasses.replace(start, below=search.below)
                after = dataclasses.replace(before, start=own, sigmas=(REFERENCE,)) if own.below else before
                for table, job in ((surrogates, before), (retrodictions, after)):
                    table[self.size, method, search.layer, seed] = self.surrogate(job, method)
        labels = ("study", "method", "layer", "seed")
        return super().tables(images) | {
            "pairs": Table(("study", "layer", "seed"), pairs, "iteration"),
            "surrogates": Table(labels, surrogates, "iteration"),
            "retrodictions": Table(labels, retrodictions, "iteration"),
        }

    def surrogate(self, pairs: MeasurePairs, method: str) -> SearchSurrogate:
        """Return the search of a method on what pairs say."""
        _, training, reading = self.settings_of(method)
        return SearchSurrogate(pairs=pairs, training=training, reading=reading)

    def pairs(self, images: Images, inputs: str = "own") -> dict[tuple[Any, ...], MeasurePairs]:
        """Return the pairs around the start solutions of a stack of them, by study, layer and seed.

        With shared inputs the start solutions are those on the features of contrastive divergence.
        """
        given: dict[str, Any] = {"features": self.features, "sigmas": self.sigmas, "n_pairs": self.n_pairs}
        return {
            (self.size, start.layer, seed): MeasurePairs(start=start, seed=seed, **given)
            for seed in self.seeds
            for start in _on_inputs(inputs, self.stack(ONE_EPOCH, seed, images), self.stack("cd", seed, images))
        }


def _on_inputs(inputs: str, stack: tuple[TrainLayer, ...], cd: tuple[TrainLayer, ...]) -> tuple[TrainLayer, ...]:
    """Return the layers of a stack on their own features, or each on the features of contrastive divergence."""
    return stack if inputs == "own" else tuple(dataclasses.replace(job, below=cd[: job.layer - 1]) for job in stack)


def reading(method: str) -> str:
    """Return what the column "reading" has: what a method has of its own, "none" where there is no reading at all."""
    parsed = Method.parse(method)
    return parsed.own or ("none" if parsed.trainer == "cd" else "default")


def images(study: Study, *, blank: bool = False) -> Dataset:
    """Return what a study is trained on, and the test images at the same size; `blank` as in `leamvd.data.images`."""
    data = load(
        study.dataset,
        side=study.side,
        pooling=study.pooling,
        binarize=study.binarize,
        n_train=study.n_images,
        image_set=study.image_set,
        dtype=study.training.dtype,
        blank=blank,
    )
    if isinstance(study, Classification) and (n_classes := len(np.unique(data.train_labels))) < 3:
        raise ValueError(f"dataset must have three classes or more to be classified, got {n_classes}")
    return data
