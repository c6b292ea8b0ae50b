"""Methods of a study: a trainer, and what it has of its own among the study's settings."""

import contextlib
import functools
import json
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from leamvd._support import checks
from leamvd.networks.contrastive_divergence import CDSettings
from leamvd.networks.dbn import METHODS as LAYER_TRAINERS
from leamvd.networks.dbn import Training
from leamvd.optimizers.methods import METHODS as OPTIMIZERS
from leamvd.optimizers.reading import PRESETS, Reading

from .natural_evolution import METHODS as STRATEGIES

# the latter in searches with marks alone, see `benchmarks`
TRAINERS = (*LAYER_TRAINERS, *STRATEGIES)

# in tables that outlive the library's
RECOMMENDED = "lea-mvd:population_size=8+reset=off+perturbation=added"
# what it was before Section 7 moved the origin, in recorded plans
FORMER = "lea-mvd:population_size=8+reset=initial"
PRESET = "preset"  # the setting that stands for a whole reading, see `leamvd.Reading.named`

_CD = tuple(field.name for field in fields(CDSettings))
_START = ("sigma0", "x0", "x0_epochs", "x0_batches", "x0_limit")
_COMPUTATION = ("backend", "device", "precision")
_READ = tuple(field.name for field in fields(Reading))
_EVOLUTION = (*_CD, *_START, "population_size", "n_gen", "x0_in_population", PRESET)
_SETTINGS = {
    "cd": (*_CD, "n_gen"),
    "lea-mvd": (*_CD, *_START, "n_elite", *_READ, PRESET),
    **dict.fromkeys([name for name in OPTIMIZERS if name != "lea-mvd"], _EVOLUTION),
    **dict.fromkeys(STRATEGIES, ("sigma0", "population_size")),
}
"""Settings that a trainer can have of its own: those that what it computes depends on, its start
solution included.
"""
_SEEN = {name: {*names, "dtype", *_COMPUTATION} for name, names in _SETTINGS.items()}
"""And those that it sees at all: the others have their defaults."""
_SEEN["cd"].difference_update(_COMPUTATION)


def trainer_of(text: str) -> str:
    """Return the trainer of a method, given its text, or another name as it is."""
    return text.partition(":")[0]


@dataclass(frozen=True)
class Method:
    """A trainer and its own settings, which take the place of a study's."""

    trainer: str  # of `TRAINERS`
    # of `Training` or `Reading`, and `PRESET`, in the order given
    settings: tuple[tuple[str, Any], ...] = ()

    @classmethod
    @functools.cache
    def parse(cls, text: str) -> Self:
        """Return the method that a text stands for: "lea-mvd", "lea-mvd:printed" or
        "lea-mvd:sigma0=0.01+reset=off".
        """
        trainer, _, given = text.partition(":")
        checks.choice("methods", trainer, TRAINERS)
        settings = {}
        for part in given.split("+") if given else ():
            name, equals, value = part.partition("=")
            if not equals:
                name = PRESET
                value = checks.choice(f"a preset in methods, {text!r},", part, PRESETS)
            checks.choice(f"a setting in methods, {text!r},", name, _SETTINGS[trainer])
            if name in settings:
                raise ValueError(f"methods must give a setting once, got {name} twice in {text!r}")
            if name != PRESET and value != "null":
                value = _value(name, value)
            settings[name] = value
        method = cls(trainer, tuple(settings.items()))
        method.training(Training())  # checks each value
        method.reading(Reading())
        return method

    def __str__(self) -> str:
        """Return the text that `parse` takes."""
        texts = []
        for name, value in self.settings:
            text = str(value)
            if isinstance(value, bool):
                text = text.lower()
            # A plus sign joins settings, and whole numbers stand without a point.
            text = text.removesuffix(".0").replace("e+", "e")
            if name != PRESET:
                text = f"{name}={text}"
            texts.append(text)
        joined = "+".join(texts)
        return f"{self.trainer}:{joined}" if joined else self.trainer

    def training(self, base: Training) -> Training:
        """Return a study's settings with the method's own; what the trainer does not see has its
        default.
        """
        values = vars(base) | dict(self.settings)
        seen = vars(base).keys() & _SEEN[self.trainer]
        training = Training(**{name: values[name] for name in seen})
        if self.trainer == "cd":
            return training
        return replace(training, **training.computation._asdict())

    def reading(self, base: Reading) -> Reading:
        """Return a study's reading with the method's own settings; what the trainer does not see
        has its default.
        """
        settings = dict(self.settings)
        named = Reading.named(settings.get(PRESET, "default"), base)
        values = vars(named) | settings
        seen = _SEEN[self.trainer].intersection(_READ)
        return Reading(**{name: values[name] for name in seen})

    def spelled(self, training: Training, reading: Reading) -> dict[str, dict[str, Any]]:
        """Return each setting that the method has in a study and that its trainer sees, whatever
        the defaults are.
        """
        seen = _SEEN[self.trainer]
        # their usual population size goes with the number of variables
        if self.trainer in STRATEGIES:
            seen = (seen - {"population_size"}) | dict(self.settings).keys()
        whole = {"training": self.training(training), "reading": self.reading(reading).complete()}
        parts = {}
        for part, settings in whole.items():
            parts[part] = {name: value for name, value in vars(settings).items() if name in seen}
        return parts

    def without(self, *names: str) -> "Method":
        """Return the method without some of its settings."""
        return Method(self.trainer, tuple(pair for pair in self.settings if pair[0] not in names))


def _value(name: str, text: str) -> Any:
    """Return what the text of a setting says: a number, a truth value or a word."""
    owner = Training if name in Training.__dataclass_fields__ else Reading
    value = text
    # of a word, too many digits, or brackets
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
    if isinstance(getattr(owner, name), float) and type(value) is int:
        return float(value)
    return value
