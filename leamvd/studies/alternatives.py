"""Every alternative of the table of ambiguities, and what claims C11 and C12 compare, as methods of a study."""

from collections.abc import Iterable
from itertools import product

from leamvd.experiments.methods import Method

ALTERNATIVES: dict[str, tuple[str, ...]] = {
    "R1": ("lea-mvd:convergence=unscaled",),
    "R2": ("lea-mvd:population_size=20",),
    "R3": ("lea-mvd:n_gen=30",),
    "R4": ("lea-mvd:sigma_norm=spectral",),
    "R5": ("lea-mvd:shift=printed",),
    "R6": ("lea-mvd:orientation=free",),
    "R7": ("lea-mvd:n_descent_rows=3",),
    "R8": ("lea-mvd:first_direction=full",),
    "R9": ("lea-mvd:descent_scale=normalized",),
    "R10": ("lea-mvd:step=sampled",),
    "R11": ("lea-mvd:projections=repeated",),
    "R12": ("lea-mvd:beta1_at_one=mirrored",),
    "R13": ("lea-mvd:reset=0.1", "lea-mvd:reset=initial", "lea-mvd:reset=off"),
    "R14": ("lea-mvd:elites=reevaluate",),
    "R15": ("lea-mvd:x0=none+limits=clip", "lea-mvd:x0=none+limits=reflect"),
    "R16": ("lea-mvd:x0-excluded",),
    "R17": ("lea-mvd:perturbation=column",),
    "R18": ("lea-mvd:ties=newest",),
    "R19": tuple(f"lea-mvd:exponent={exponent}" for exponent in ("0", "0.5", "1", "2", "3")),
    "printed": ("lea-mvd:printed",),
    "C11": (
        *("lea-mvd:path=off", "lea-mvd:descent=off", "lea-mvd:path=off+descent=off"),
        "lea-mvd:descent=free",
    ),
    "C12": (
        *(f"lea-mvd:n_elite={count}" for count in (1, 2, 8, 12)),
        *(f"lea-mvd:n_gen={n_gen}+n_elite={count}" for n_gen, count in ((44, 1), (46, 2), (62, 8), (83, 12))),
        *("lea-mvd:population_size=12+n_gen=125", "lea-mvd:population_size=48+n_gen=23"),
        *(f"lea-mvd:sigma0={sigma0}" for sigma0 in ("0.01", "0.03", "0.3")),
    ),
    "E5": ("lea-mvd:x0=batch", "lea-mvd:x0_epochs=5", "lea-mvd:x0_epochs=0", "lea-mvd:x0=none"),
    "E8": (
        *("cd:weight_scale=0.01", "cd:initial_weights=uniform"),
        *("cd:momentum=0+final_momentum=0+weight_decay=0", "cd:persistent=true"),
    ),
    "E9": ("cma-es:sigma0=0.03", "cma-es:population_size=28+n_gen=43"),
}
"""By item: each alternative alone, from the default.

R15 needs a population that was drawn within limits, initialization (A), and is compared with that. Population sizes of
C12 and E9, and once the numbers of elites, go with a number of generations that makes about as many evaluations.
pycma's own population size is 24 to 28 here.
"""


OWN = "own"
"""Item of an alternative that is not among `ALTERNATIVES`."""


def default(method: str) -> str:
    """Return the method that an alternative is compared with."""
    return "lea-mvd:x0=none" if method.startswith("lea-mvd:x0=none+") else Method.parse(method).trainer


def methods(items: tuple[str, ...] = tuple(ALTERNATIVES)) -> tuple[str, ...]:
    """Return the alternatives of some items, by default of all, and what they are compared with, each once."""
    every = [alternative for item in items for alternative in ALTERNATIVES[item]]
    return tuple(dict.fromkeys([*sorted(map(default, every), key=len), *every]))


def pairs(methods: Iterable[str]) -> list[tuple[str, str]]:
    """Return the alternatives among some methods that are there with what they are compared with: item and method."""
    there = list(methods)
    named = [(item, method) for item, alternatives in ALTERNATIVES.items() for method in alternatives]
    known = {method for _, method in named}
    own = [(OWN, method) for method in there if method not in known and default(method) != method]
    return [(item, method) for item, method in named + own if method in there and default(method) in there]


def _crossed() -> tuple[str, ...]:
    """Return the methods of the search for what the paper may have run: all settings of LEA-MVD with each other.

    First weights N(0, 0.1), N(0, 0.01) or U(-0.1, 0.1) (item E8); the start solution of an epoch, of a mini-batch or
    none (E5); sigma0 0.1 or 0.01; the default reading or the printed one. Without a start solution neither first
    weights nor sigma0 act. With them go contrastive divergence from each kind of first weights, and these as they are.
    """
    weights = ("", "weight_scale=0.01", "initial_weights=uniform")
    letter = "shift=printed+projections=repeated+elites=reevaluate+x0_in_population=false+perturbation=column"
    searches = [
        *product(weights, ("", "x0=batch"), ("", "sigma0=0.01"), ("", letter)),
        *product(("x0=none",), ("", letter)),
    ]
    untrained = product(("learning_rate=0+n_gen=1",), weights)
    named: list[tuple[str, tuple[str, ...]]] = [("cd", (own,)) for own in weights] + [("cd", own) for own in untrained]
    named += [("lea-mvd", own) for own in searches]
    return tuple(":".join(filter(None, (name, "+".join(filter(None, own))))) for name, own in named)


CROSSED = _crossed()
"""See `leamvd.analysis.forensics`."""
