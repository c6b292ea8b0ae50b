"""Studies: which methods are compared on which data, with which settings, over which seeds."""

import dataclasses
import functools
from collections.abc import Mapping
from itertools import product
from typing import Any, Literal

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd.campaign.jobs import Table
from leamvd.data.images import Dataset, Images, load
from leamvd.experiments import alternatives
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

START = "cd:n_gen=1"
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
        object.__setattr__(self, "methods", tuple(str(Method.parse(method)) for method in self.methods))
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
                for job in self._stack(settings[method], seed, images):
                    below = job.below if inputs == "own" else cd[: job.layer - 1]
                    found[method, inputs, job.layer, seed] = dataclasses.replace(job, below=below)
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


def _names(fields: type[Study | Training | Reading]) -> set[str]:
    return {field.name for field in dataclasses.fields(fields)}


_READINGS = Study(
    section="readings",
    dataset="mnist",
    n_images=10_000,
    methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:printed", "lea-mvd:path=off", "lea-mvd:descent=off"),
    inputs=("shared",),
    seeds=tuple(range(30)),
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
                sizes, scale = (self.side**2, *self.layers), method.removeprefix(RANDOM)
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
            _, training, reading = self.settings_of(method)
            for search, start in zip(self.stack(method, seed, images), self.stack(START, seed, images), strict=True):
                before = pairs[self.size, search.layer, seed]
                own = dataclasses.replace(start, below=search.below)
                after = dataclasses.replace(before, start=own, sigmas=(REFERENCE,)) if own.below else before
                for table, job in ((surrogates, before), (retrodictions, after)):
                    surrogate = SearchSurrogate(pairs=job, training=training, reading=reading)
                    table[self.size, method, search.layer, seed] = surrogate
        labels = ("study", "method", "layer", "seed")
        return super().tables(images) | {
            "pairs": Table(("study", "layer", "seed"), pairs, "iteration"),
            "surrogates": Table(labels, surrogates, "iteration"),
            "retrodictions": Table(labels, retrodictions, "iteration"),
        }

    def pairs(self, images: Images, inputs: str = "own") -> dict[tuple[Any, ...], MeasurePairs]:
        """Return the pairs around the start solutions of a stack of them, by study, layer and seed.

        With shared inputs the start solutions are those on the features of contrastive divergence.
        """
        given: dict[str, Any] = {"features": self.features, "sigmas": self.sigmas, "n_pairs": self.n_pairs}
        found = {}
        for seed in self.seeds:
            cd = self.stack("cd", seed, images)
            for start in self.stack(START, seed, images):
                below = start.below if inputs == "own" else cd[: start.layer - 1]
                own = dataclasses.replace(start, below=below)
                found[self.size, start.layer, seed] = MeasurePairs(start=own, seed=seed, **given)
        return found


_STEP_SIZES = tuple(
    f"lea-mvd:sigma0={sigma0}{reset}"
    for sigma0 in ("0.0001", "0.001", "0.003", "0.01", "0.03", "0.1", "0.3")
    for reset in ("", "+reset=off")
)

_LARGE = Study(section="mnist-28x28", dataset="mnist", side=28, layers=(500, 500, 2000), methods=("cd", "lea-mvd"))
_FEWER = dataclasses.replace(_LARGE, n_images=10_000)
_STEPS = Explanation(dataset="mnist", n_images=10_000, methods=_STEP_SIZES, seeds=tuple(range(5)))

STUDIES = {
    ("mnist-7x7", "quick"): Study(
        methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "cma-es"),
        seeds=(0, 1, 2),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=12),
    ),
    ("mnist-7x7", "paper"): Study(
        dataset="mnist",
        methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:printed", "cma-es", "sep-cma-es", "random"),
        seeds=tuple(range(30)),
    ),
    ("mnist-28x28", "quick"): dataclasses.replace(
        _LARGE,
        dataset="digits",
        n_images=100,
        seeds=(0, 1),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=12),
    ),
    ("mnist-28x28", "paper"): dataclasses.replace(_LARGE, seeds=tuple(range(12))),
    ("mnist-28x28", "fewer"): dataclasses.replace(_FEWER, seeds=tuple(range(10))),
    ("mnist-28x28", "variants"): dataclasses.replace(
        _FEWER,
        methods=(
            *("lea-mvd:x0-excluded", "lea-mvd:printed", "lea-mvd:sigma0=0.01"),
            *("sep-cma-es", "sep-cma-es:sigma0=0.01", "random"),
        ),
        inputs=("own",),
        seeds=tuple(range(5)),
    ),
    ("mnist-7x7", "controls"): Study(
        dataset="mnist", methods=(START, "cma-es:n_gen=42"), inputs=("own",), seeds=tuple(range(30))
    ),
    ("mnist-28x28", "controls"): dataclasses.replace(
        _LARGE, methods=(START, "lea-mvd:printed"), inputs=("own",), seeds=tuple(range(12))
    ),
    ("readings", "quick"): Study(
        section="readings",
        n_images=100,
        layers=(30, 30),
        methods=("cd", *alternatives.methods(("R1", "R5", "R13", "R16", "C11"))),
        inputs=("shared",),
        seeds=(0, 1, 2),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=20),
    ),
    ("readings", "paper"): dataclasses.replace(_READINGS, methods=alternatives.methods()),
    ("readings", "threshold"): dataclasses.replace(_READINGS, binarize="threshold"),
    ("readings", "bernoulli"): dataclasses.replace(_READINGS, binarize="bernoulli"),
    ("readings", "center"): dataclasses.replace(_READINGS, pooling="center"),
    ("readings", "bits"): dataclasses.replace(_READINGS, features="bits"),
    ("readings", "own"): dataclasses.replace(_READINGS, inputs=("own",)),
    ("readings", "all"): dataclasses.replace(_READINGS, n_images=None),
    ("readings", "controls"): dataclasses.replace(
        _READINGS,
        methods=(
            *("cma-es", "cma-es:population_size=12+n_gen=100", "cma-es:population_size=48+n_gen=25"),
            *(f"cma-es:sigma0={value}" for value in (0.01, 0.03, 0.3)),
        ),
    ),
    ("classification", "quick"): Classification(
        seeds=(0, 1, 2),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=20),
        epochs=40,
        n_chains=20,
        n_temperatures=100,
    ),
    ("classification", "paper"): Classification(dataset="mnist", seeds=tuple(range(30))),
    ("classification", "paper-28x28"): Classification(
        dataset="mnist", side=28, layers=(500, 500, 2000), seeds=tuple(range(12))
    ),
    ("classification", "controls"): Classification(
        dataset="mnist", methods=(START,), scales=(), seeds=tuple(range(30))
    ),
    ("explanation", "quick"): Explanation(
        layers=(30, 30),
        methods=tuple(f"lea-mvd:sigma0={sigma0}" for sigma0 in (0.001, 0.003, 0.01, 0.1)),
        seeds=(0, 1),
        n_pairs=20,
        training=Training(dtype="float64"),
        reading=Reading(n_gen=12),
    ),
    ("explanation", "paper"): _STEPS,
    ("explanation", "paper-28x28"): dataclasses.replace(_STEPS, side=_LARGE.side, layers=_LARGE.layers),
    ("error-measures", "quick"): Study(
        section="error-measures",
        n_images=300,
        methods=(*(m for m in alternatives.CROSSED if "sigma0" not in m and "batch" not in m), "lea-mvd:x0-excluded"),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=12),
    ),
    ("error-measures", "paper"): dataclasses.replace(
        _LARGE, section="error-measures", n_images=2_000, methods=alternatives.CROSSED
    ),
    ("error-measures", "confirm"): dataclasses.replace(_FEWER, section="error-measures", seeds=(0, 1, 2)),
}
"""By section and profile: the paper's experiments at its own settings, studies A and D of the book's rules; a scale of
a minute; 28 x 28 pixels on fewer images, also for variants, studies B and C; the search for what the paper may have
run, and for more runs of what comes nearest, whose methods are given when it is known; every alternative of an item,
and a few of them on other data: items E3 (threshold, bernoulli), E4 (center), E6 (bits), E7 (own) and E11 (all);
what stacks like those of A and D are worth to a classifier; and controls that the rules after the runs ask for: the
start solution by itself, CMA-ES with as many evaluations as LEA-MVD and with other settings, LEA-MVD as printed."""

IMAGE_SETS = tuple(
    Study(dataset="mnist", n_images=6_000, image_set=number, methods=("cd", "lea-mvd"), seeds=tuple(range(5)))
    for number in range(10)
)
"""The same study on each of ten disjoint sets of images, whose differences a study on one set does not see."""

MISTAKES = Classification(dataset="mnist", methods=(START, "cd", "lea-mvd"), scales=(), seeds=tuple(range(30)))
"""Whose fine-tuned networks' mistakes are kept, image by image: those that the classification of study A compares."""

STARTS = (
    Explanation(dataset="mnist", sigmas=(REFERENCE,), seeds=tuple(range(5))),
    Explanation(dataset="mnist", side=_LARGE.side, layers=_LARGE.layers, sigmas=(REFERENCE,), seeds=(0, 1, 2)),
)
"""The start solutions of studies A and D, around which pairs tell how far their searches could get."""

SCALING = tuple(
    Explanation(
        dataset="mnist",
        side=28,
        n_images=2_000,
        layers=(n_hidden,),
        methods=tuple(f"lea-mvd:sigma0={sigma0}" for sigma0 in (0.003, 0.01, 0.03, 0.1)),
        seeds=(0, 1, 2),
        sigmas=(REFERENCE,),
    )
    for n_hidden in (5, 16, 50, 160, 500)
)
"""The same first layer with ever more hidden units: how gains scale with the number of variables."""

ARCHIVED = {
    "mnist-7x7": {"paper": "mnist_7x7"},
    "mnist-28x28": {"paper": "mnist_28x28", "fewer": "mnist_28x28_fewer", "variants": "mnist_28x28_variants"},
    "readings": {
        "paper": "readings",
        **{data: f"readings_{data}" for data in ("threshold", "bernoulli", "center", "bits", "own")},
        "all": "mnist_7x7",  # the same layers, which study A has trained on all images
    },
    "classification": {
        "paper": "classification",
        "paper-28x28": "classification_28x28",
        "controls": "classification_controls",
    },
    "error-measures": {"paper": "forensics", "confirm": "forensics_confirmed"},
    "explanation": {"paper": "explanation"},
}
"""Of each section the profiles that are recorded, the one that leads its page first, and their names in the archive."""


def recorded(section: str) -> dict[str, Study]:
    """Return the studies of a section that are recorded, by profile; the one that leads its page comes first."""
    names = ARCHIVED[section].items()
    return {profile: dataclasses.replace(STUDIES[section, profile], archived=name) for profile, name in names}


def study(section: str, profile: str, **changes: Any) -> Study:
    """Return one of `STUDIES` with fields of `Study`, `Training` or `Reading` changed; a change to None is none.

    The profile "recorded" is the paper's, whose results are in the archive: nothing of it can be changed.
    """
    checks.choice("section", section, sorted({section for section, _ in STUDIES}))
    profiles = [own for name, own in STUDIES if name == section]
    checks.choice("profile", profile, ["recorded", *profiles])
    given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    if profile == "recorded":
        fixed(**given)
        return next(iter(recorded(section).values()))
    base = STUDIES[section, profile]
    parts = {"training": given.pop("training", base.training), "reading": given.pop("reading", base.reading)}
    for part, value in parts.items():
        own = {name: given.pop(name) for name in _names(type(value)) & set(given)}
        parts[part] = dataclasses.replace(value, **own)
    return dataclasses.replace(base, **parts, **given)


def fixed(**given: Any) -> None:
    """Refuse what is given, and not None, of the parameters that are fixed where results are read."""
    for name, value in given.items():
        if value is not None:
            raise ValueError(f"profile='recorded' has fixed parameters; {name}={value!r} needs profile quick or paper")


def page(section: str, profile: str, **changes: Any) -> dict[str, Study]:
    """Return the studies that a section's page shows, by profile: `study`, and with "recorded" all that are recorded.

    The one that leads the page comes first.
    """
    lead = study(section, profile, **changes)
    return recorded(section) if lead.archived else {profile: lead}


def parameters(namespace: Mapping[str, object]) -> dict[str, Any]:
    """Return the changes that a notebook's ``globals()`` hold for `study`.

    They are the values, other than None, of variables named as a field of `Study`, `Training` or `Reading`; section and
    archive are not among them.
    """
    names = _names(Classification) | _names(Training) | _names(Reading)
    names -= {"section", "training", "reading", "archived"}
    return {name: namespace[name] for name in sorted(names & set(namespace)) if namespace[name] is not None}


def reading(method: str) -> str:
    """Return what the column "reading" has: what a method has of its own, "none" where there is no reading at all."""
    trainer, _, own = method.partition(":")
    return own or ("none" if trainer == "cd" else "default")


def section_study(about: Mapping[str, Any]) -> Study:
    """Return the study of a section's run, given what its ``run.json``, or the provenance that is recorded, says."""
    given = about["parameters"]
    return study(about["section"], given["profile"], **parameters(given))


def has_study(about: Mapping[str, Any]) -> bool:
    """Return whether a run is one of a section with a study."""
    return (about["section"], about["parameters"].get("profile")) in STUDIES


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
