"""The studies: by section and profile, what is recorded of them, and those that a notebook's parameters ask for."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from leamvd._support import checks
from leamvd.campaign import archive
from leamvd.experiments.local_models import REFERENCE
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.studies import alternatives
from leamvd.studies.study import INPUTS, ONE_EPOCH, Classification, Explanation, Study

_READINGS = Study(
    section="readings",
    dataset="mnist",
    n_images=10_000,
    methods=("cd", "lea-mvd", "lea-mvd:x0-excluded", "lea-mvd:printed", "lea-mvd:path=off", "lea-mvd:descent=off"),
    inputs=("shared",),
    seeds=tuple(range(30)),
)

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
        layers=(20, 20, 40),  # with the paper's 30, 30, 120, full matrices would take CMA-ES most of the time
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
        layers=(50, 50, 200),  # the paper's shape: with its sizes, drawing populations would take most of the time
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
        dataset="mnist", methods=(ONE_EPOCH, "cma-es:n_gen=42"), inputs=("own",), seeds=tuple(range(30))
    ),
    ("mnist-28x28", "controls"): dataclasses.replace(
        _LARGE, methods=(ONE_EPOCH, "lea-mvd:printed"), inputs=("own",), seeds=tuple(range(12))
    ),
    ("readings", "quick"): Study(
        section="readings",
        n_images=100,
        layers=(30, 30),
        methods=("cd", *alternatives.methods(("R1", "R5", "R13", "R16", "C11"))),
        inputs=("shared",),
        seeds=(0, 1),
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
        seeds=(0, 1),
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
        dataset="mnist", methods=(ONE_EPOCH,), scales=(), seeds=tuple(range(30))
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
        n_images=100,
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

START_SOLUTIONS = (
    Explanation(dataset="mnist", inputs=INPUTS, sigmas=(REFERENCE,), seeds=tuple(range(30))),
    Explanation(
        dataset="mnist", side=_LARGE.side, layers=_LARGE.layers, inputs=INPUTS, sigmas=(REFERENCE,), seeds=(0, 1, 2)
    ),
)
"""The start solutions of studies A and D, around which pairs tell how far their searches could get, and when."""

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
        "controls": "readings_cma_es",
    },
    "classification": {
        "paper": "classification",
        "paper-28x28": "classification_28x28",
        "controls": "classification_controls",
    },
    "error-measures": {"paper": "forensics", "confirm": "forensics_confirmed"},
    "explanation": {"paper": "explanation", "paper-28x28": "explanation_28x28"},
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
        archive.fixed(**given)
        return next(iter(recorded(section).values()))
    base = STUDIES[section, profile]
    parts = {"training": given.pop("training", base.training), "reading": given.pop("reading", base.reading)}
    for part, value in parts.items():
        own = {name: given.pop(name) for name in _names(type(value)) & set(given)}
        parts[part] = dataclasses.replace(value, **own)
    return dataclasses.replace(base, **parts, **given)


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


def section_study(about: Mapping[str, Any]) -> Study:
    """Return the study of a section's run, given what its ``run.json``, or the provenance that is recorded, says."""
    given = about["parameters"]
    return study(about["section"], given["profile"], **parameters(given))


def has_study(about: Mapping[str, Any]) -> bool:
    """Return whether a run is one of a section with a study."""
    return (about["section"], about["parameters"].get("profile")) in STUDIES


def _names(fields: type[Study | Training | Reading]) -> set[str]:
    return {field.name for field in dataclasses.fields(fields)}
