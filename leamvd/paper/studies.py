"""Studies: which methods are compared on which data, with which settings, over which seeds."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np

from leamvd._support import checks
from leamvd.networks.dbn import EXPERIMENT, FEATURES, METHODS, Training
from leamvd.optimizers.minimize import METHODS as OPTIMIZERS
from leamvd.optimizers.reading import Reading
from leamvd.paper import alternatives, datasets
from leamvd.paper.classification import GLOROT
from leamvd.paper.pieces import BATCHES, MEASUREMENTS, RANDOM, Measurement, Piece, Unit

INPUTS = ("own", "shared")
"""Whether a method's layers see its own features or those of contrastive divergence (item E7)."""

READ = ("lea-mvd", "cma-es", "sep-cma-es", "random")
"""Methods that a reading of their own can be given to."""

_CD = (
    *("cd_steps", "persistent", "batch_size", "learning_rate", "momentum", "final_momentum", "momentum_epochs"),
    *("weight_decay", "initial_weights", "weight_scale"),
)
_START = ("sigma0", "x0", "x0_epochs", "x0_limit")
_TAKEN = {
    "cd": (*_CD, "n_gen"),
    "lea-mvd": (*_CD, *_START, "n_elite", *(field.name for field in dataclasses.fields(Reading))),
    **dict.fromkeys(OPTIMIZERS[1:], (*_CD, *_START, "population_size", "n_gen", "x0_in_population")),
}
"""Settings that a method can have of its own: those that what it computes depends on, its start solution included."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison of methods on one data set, architecture and budget.

    Attributes
    ----------
    section : str
        Of the paper, as `leamvd list` names it.
    dataset, side, pooling, binarize, n_images : str, int, str, str, int or None
        What is trained on, see `leamvd.paper.datasets.load`; `n_images` training images, all by default.
    layers : tuple of int
        Hidden units of each layer.
    methods : tuple of str
        Of `leamvd.networks.dbn.METHODS`; behind a colon what is the method's own: settings of `Training` or `Reading`,
        joined by plus signs, "lea-mvd:sigma0=0.01+reset=off"; or, for an optimizer, a reading's preset or JSON file,
        "lea-mvd:printed".
    inputs : tuple of str
        Of `INPUTS`.
    seeds : tuple of int
        One run each, of every method on the same subset of images.
    features : {"probabilities", "bits"}
        What a layer hands on.
    training : Training
        Settings, the same for all but for what methods have of their own.
    reading : Reading
        What a method runs, see `reading_of`.

    Raises
    ------
    ValueError, TypeError
        If a value is out of range, or two of them clash.
    """

    section: str = "mnist-7x7"
    dataset: str = "digits"
    side: int = 7
    pooling: Literal["mean", "center"] = "mean"
    binarize: str = "gray"
    n_images: int | None = None
    layers: tuple[int, ...] = (30, 30, 120)
    methods: tuple[str, ...] = ("cd", "lea-mvd", "cma-es")
    inputs: tuple[str, ...] = INPUTS
    seeds: tuple[int, ...] = (0,)
    features: Literal["probabilities", "bits"] = "probabilities"
    training: Training = dataclasses.field(default_factory=Training)
    reading: Reading = EXPERIMENT

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
        for method in self.methods:
            name, colon, own = method.partition(":")
            checks.choice("methods", name, METHODS)
            if colon and name not in READ and "=" not in own:
                raise ValueError(f"methods must have a reading only where it matters, {name!r} has none: {method!r}")
            if name == "lea-mvd":  # a population that clashes with the reading is found here, not hours later
                self.training_of(method).optimizer(name, np.zeros(1), reading=self.reading_of(method), seed=0)
            else:
                _ = self.training_of(method), self.reading_of(method)  # checks their settings
        checks.choice("features", self.features, FEATURES)
        names = [unit.name for unit in self.units()]
        if len(set(names)) < len(names):
            raise ValueError(f"methods must differ in more than the signs in a reading's path, got {self.methods!r}")

    def reading_of(self, method: str) -> Reading:
        """Return the reading that a method of the study runs.

        "lea-mvd" runs the study's, "lea-mvd:printed" the study's with what that preset changes of the default,
        "lea-mvd:FILE.json" the study's with the members that the file gives, and "lea-mvd:exponent=2" the study's with
        this exponent. The other optimizers take population size, generations and ``x0_in_population`` from it,
        contrastive divergence its epochs, ``n_gen``.
        """
        own = method.partition(":")[2]
        if "=" in own:
            return dataclasses.replace(self.reading, **_own(self.reading, method))
        return Reading.named(own or "default", self.reading)

    def training_of(self, method: str) -> Training:
        """Return the settings that a method of the study has: the study's, but for those behind its colon."""
        return dataclasses.replace(self.training, **_own(self.training, method))

    def measurements(self) -> list[Measurement]:
        """Return what is measured of the stacks once they are trained."""
        return []

    def pieces(self) -> list[Piece]:
        """Return all that has to be computed, each after what it needs, one seed after the other."""
        return sorted([*self.units(), *self.measurements()], key=lambda piece: self.seeds.index(piece.seed))

    def units(self) -> list[Unit]:
        """Return what has to be trained, each after what it needs.

        Shared inputs are the features of contrastive divergence, which is run for them in any case. The first layer
        sees the images either way: it is computed once.
        """
        methods = [m for m in self.methods if m != "cd"]
        needs_cd = "cd" in self.methods or "shared" in self.inputs
        layers = range(1, len(self.layers) + 1)
        return [
            Unit(method, inputs, layer, seed)
            for seed in self.seeds
            for method in (["cd"] if needs_cd else []) + methods
            for inputs in INPUTS
            for layer in layers
            if (inputs == "own" and (layer == 1 or method == "cd" or "own" in self.inputs))
            or (inputs == "shared" and "shared" in self.inputs and layer > 1 and method != "cd")
        ]  # fmt: skip


def _names(fields: type[Study | Training | Reading]) -> set[str]:
    return {field.name for field in dataclasses.fields(fields)}


def _own(settings: Reading | Training, method: str) -> dict[str, Any]:
    """Return what a method has of its own among the settings: of "lea-mvd:sigma0=0.01+reset=off", one of each kind."""
    name, _, own = method.partition(":")
    changes: dict[str, Any] = {}
    for assignment in own.split("+") if "=" in own else ():
        setting, _, text = assignment.partition("=")
        checks.choice(f"a setting in methods, {method!r},", setting, _TAKEN[name])
        if own.count(f"+{setting}=") + own.startswith(f"{setting}=") > 1:
            raise ValueError(f"methods must give a setting once, got {setting} twice in {method!r}")
        if setting in _names(type(settings)):
            changes[setting] = _value(text, getattr(settings, setting))
    return changes


def _value(text: str, present: object) -> object:
    """Return what a text gives for a setting: a number, a truth value or a word."""
    try:
        value = json.loads(text)
    except json.JSONDecodeError:
        return text
    return float(value) if isinstance(present, float) and type(value) is int else value


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
    """A comparison of what methods' stacks, trained on their own inputs, and random weights are worth.

    Attributes
    ----------
    scales : tuple of str
        Standard deviations of random weights, see `leamvd.paper.classification.RandomWeights`.
    epochs : int
        Of fine-tuning.
    tuning_rate : float
        Its first learning rate.
    n_chains, n_temperatures : int
        Of the estimate of a log-likelihood, see `leamvd.paper.likelihood.log_weights`; chains run in five parts.
    """

    section: str = "classification"
    methods: tuple[str, ...] = ("cd", "lea-mvd")
    inputs: tuple[str, ...] = ("own",)
    scales: tuple[str, ...] = ("0.01", "0.1", GLOROT)
    epochs: int = 50
    tuning_rate: float = 0.2
    n_chains: int = 100
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
        if checks.integer("n_chains", self.n_chains, at_least=BATCHES) % BATCHES:
            raise ValueError(f"n_chains must be a multiple of {BATCHES}, got {self.n_chains}")
        checks.integer("n_temperatures", self.n_temperatures, at_least=1)

    @property
    def stacks(self) -> Study:
        """The study that trains the stacks, and measures nothing of them."""
        return Study(**{field.name: getattr(self, field.name) for field in dataclasses.fields(Study)})

    def measurements(self) -> list[Measurement]:
        """Return a log-likelihood, a probe and a fine-tuning for each stack, and for random weights of each seed."""
        return [
            Measurement(what, method, 1 if what == "likelihood" else len(self.layers), seed)
            for seed in self.seeds
            for method in (*self.methods, *(f"{RANDOM}{scale}" for scale in self.scales))
            for what in MEASUREMENTS
        ]


_LARGE = Study(section="mnist-28x28", dataset="mnist", side=28, layers=(500, 500, 2000), methods=("cd", "lea-mvd"))
_FEWER = dataclasses.replace(_LARGE, n_images=10_000)

STUDIES = {
    ("mnist-7x7", "quick"): Study(
        methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "cma-es"),
        seeds=(0, 1, 2),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=20),
    ),
    ("mnist-7x7", "paper"): Study(
        dataset="mnist",
        methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:printed", "cma-es", "sep-cma-es", "random"),
        seeds=tuple(range(30)),
    ),
    ("mnist-28x28", "quick"): dataclasses.replace(
        _LARGE,
        dataset="digits",
        n_images=300,
        seeds=(0, 1),
        training=Training(dtype="float64"),
        reading=Reading(n_gen=16),
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
        dataset="mnist",
        side=28,
        layers=(500, 500, 2000),
        seeds=tuple(range(12)),
    ),
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
and a few of them on other data: items E3 (threshold, bernoulli), E4 (center), E6 (bits), E7 (own) and E11 (all); and
what stacks like those of A and D are worth to a classifier."""


def study(section: str, profile: str, **changes: Any) -> Study:
    """Return one of `STUDIES` with fields of `Study`, `Training` or `Reading` changed; a change to None is none.

    Raises
    ------
    ValueError, TypeError
        If there is no such study or field, or a value is out of range.
    """
    checks.choice("section", section, sorted({section for section, _ in STUDIES}))
    base = STUDIES[section, checks.choice("profile", profile, [own for name, own in STUDIES if name == section])]
    given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    parts = {"training": given.pop("training", base.training), "reading": given.pop("reading", base.reading)}
    for part, value in parts.items():
        own = {name: given.pop(name) for name in _names(type(value)) & set(given)}
        parts[part] = dataclasses.replace(value, **own)
    return dataclasses.replace(base, **parts, **given)


def parameters(namespace: Mapping[str, object]) -> dict[str, Any]:
    """Return the changes that a notebook's ``globals()`` hold for `study`.

    They are the values, other than None, of variables named as a field of `Study`, `Training` or `Reading`; the section
    is not among them.
    """
    names = (_names(Classification) | _names(Training) | _names(Reading)) - {"section", "training", "reading"}
    return {name: namespace[name] for name in sorted(names & set(namespace)) if namespace[name] is not None}


def images(study: Study) -> datasets.Dataset:
    """Return what a study is trained on, and the test images at the same size."""
    data = datasets.load(
        study.dataset,
        side=study.side,
        pooling=study.pooling,
        binarize=study.binarize,
        n_train=study.n_images,
        dtype=study.training.dtype,
    )
    if isinstance(study, Classification) and (n_classes := len(np.unique(data.train_labels))) < 3:
        raise ValueError(f"dataset must have three classes or more to be classified, got {n_classes}")
    return data
