"""What a study computes in pieces: layers, and what is measured of their stacks."""

import re
from typing import NamedTuple


class Unit(NamedTuple):
    """A layer of a stack."""

    method: str
    inputs: str
    layer: int
    seed: int

    @property
    def name(self) -> str:
        """File name without an ending."""
        return f"{_plain(self.method)}-{self.inputs}-layer{self.layer}-seed{self.seed}"

    @property
    def trainer(self) -> str:
        """Of `leamvd.networks.dbn.METHODS`: the method without its reading."""
        return self.method.partition(":")[0]

    @property
    def below(self) -> "list[Unit]":
        """The layers that make this layer's inputs, the first one first."""
        method = "cd" if self.inputs == "shared" else self.method
        return [Unit(method, "own", layer, self.seed) for layer in range(1, self.layer)]


class Measurement(NamedTuple):
    """What is measured of a stack."""

    what: str  # of `MEASUREMENTS`
    method: str  # that has trained the stack on its own inputs; `RANDOM` and a scale: random weights
    layers: int  # of the stack, from the first one up
    seed: int

    @property
    def name(self) -> str:
        """File name without an ending."""
        return f"{self.what}-{_plain(self.method)}-layers{self.layers}-seed{self.seed}"

    @property
    def trainer(self) -> str:
        """The method without its reading."""
        return self.method.partition(":")[0]

    @property
    def scale(self) -> str | None:
        """Of random weights."""
        return self.method.removeprefix(RANDOM) if self.method.startswith(RANDOM) else None

    @property
    def below(self) -> list[Unit]:
        """The stack, the first layer first."""
        return [] if self.scale else [Unit(self.method, "own", n, self.seed) for n in range(1, self.layers + 1)]


Piece = Unit | Measurement
"""What is computed, and saved, in one piece."""

MEASUREMENTS = ("likelihood", "probe", "fine-tuning")
"""What is measured of a stack."""

BATCHES = 5
"""Parts that the chains of a log-likelihood are run in, each of which can be gone on from."""

RANDOM = "random-"
"""How methods are named that are random weights; "random" alone is random search."""


def _plain(method: str) -> str:
    """Return a method without signs that file names do not take; a reading may be a path."""
    return re.sub(r"[^\w.-]+", "-", method.removesuffix(".json"))
