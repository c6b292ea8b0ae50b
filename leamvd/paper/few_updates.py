"""Section 6, continued: what a few mini-batches of contrastive divergence leave, and nothing else.

A comparison has a control that the paper lacks, no search at all. Here every layer gets k mini-batches, and is then
left alone, searched, or trained on: which of these ends with the smallest error, and what has it learned?
"""

import dataclasses
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from leamvd._support import checks

from . import results
from .layers import Images, Study, layer_call, pictures, probes, stack
from .results import Call, Plan, Recorded, delayed, read_recorded
from .statistics import summarize

# ---- settings

BATCHES = (1, 3, 10, 30, 60, 100, 200, 300, 600)  # the last one is an epoch of 60,000 images
START = "start"  # what mini-batches leave, with no search


@dataclasses.dataclass(frozen=True, kw_only=True)
class Started(Study):
    """Searches that start from so many mini-batches in each layer; "cd" stands for the start alone, and for CD."""

    methods: tuple[str, ...] = ("cd",)
    inputs: tuple[str, ...] = ("own",)
    batches: tuple[int, ...] = BATCHES
    probed: tuple[int, ...] = (10, 60, 200, 600)  # numbers of mini-batches whose uppermost features are probed
    n_probes: int = 5  # seeds of these, the first ones

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.choice("inputs", self.inputs, [("own",)])
        for name in ("batches", "probed"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
            for value in getattr(self, name):
                checks.integer(name, value, at_least=1)

    def ends(self) -> "Started":
        """Return the same, of which errors are kept at the start and at the end."""
        return dataclasses.replace(self, iterations=(0, self.reading.n_gen or 0))


PAPER = Started(images=Images(dataset="mnist"), seeds=tuple(range(10)))
FEWER = PAPER.changed(n_images=6_000, probed=())
LATER = FEWER.changed(batches=BATCHES[-1:])  # its 600 mini-batches are ten epochs, and momentum changes after five
ALONE = (PAPER, FEWER, LATER.changed(momentum_epochs=10))
SEARCHED = (
    PAPER.changed(methods=("lea-mvd",), batches=BATCHES[:-1]),  # Section 3 has those that start from 600
    PAPER.changed(methods=("lea-mvd:printed",), batches=(10, 60, 300), probed=()),
    PAPER.changed(methods=("cma-es",), batches=(30, 100, 300), probed=()),
    FEWER.changed(methods=("lea-mvd",), batches=BATCHES[:-1]),
)
QUICK = Started(seeds=(0, 1), batches=(1, 3, 10, 30), probed=(3, 30), n_probes=1).changed(
    n_images=200, layers=(20, 20, 40), dtype="float64", n_gen=12
)
PROFILES = {"quick": (QUICK, QUICK.changed(methods=("lea-mvd",))), "paper": (*ALONE, *SEARCHED)}


class Tables(NamedTuple):
    """What is measured; `features` are whose stack a layer is trained on."""

    runs: pd.DataFrame  # errors of each layer at the start of a search and at its end
    probes: pd.DataFrame  # linear classifiers of the uppermost features
    pictures: pd.DataFrame  # digits that the first stacks give back


def tables(profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any) -> Tables:
    """Return the section's tables: what is recorded, or what is computed here."""
    if profile == "recorded":
        results.refuse(changes)
        recorded = ([read_recorded(name, table) for name in RECORDED] for table in Tables._fields)
        return Tables(*(pd.concat(parts, ignore_index=True) for parts in recorded))
    return Tables(**results.tables(planned(profile, **changes), folder, n_jobs=n_jobs, label="few mini-batches"))


def planned(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    studies = PROFILES[checks.choice("profile", profile, [*PROFILES])]
    return plan([study.changed(**changes).on_disk() for study in studies])


# ---- what is computed

LABELS = ["n_images", "momentum_epochs", "features", "method", "batches", "layer", "seed"]
OF_STACKS = [name for name in LABELS if name not in ("features", "layer")]


def plan(studies: Sequence[Started]) -> Plan:
    """Return the plan of the tables of some studies."""
    runs, probed, drawn = {}, {}, {}
    for study in studies:
        images = study.images.n_images, study.training.momentum_epochs
        for (method, batches, seed), layers in stacks(study):
            own = {(*images, "own", method, batches, i, seed): layer for i, layer in enumerate(layers, start=1)}
            runs |= own | swapped(study, images, method, batches, seed, layers)
            stack_of = (*images, method, batches, seed)
            if batches in (0, *study.probed) and seed in study.seeds[: study.n_probes] and study.probed:
                probed[stack_of] = delayed(probes)(layers[-1], study.images, study.training.dtype, len(layers))
            if seed == study.seeds[0]:
                drawn[stack_of] = delayed(pictures)(layers[-1], study.images, study.training.dtype)
    return {"runs": (LABELS, runs), "probes": (OF_STACKS, probed), "pictures": (OF_STACKS, drawn)}


def stacks(study: Started) -> Iterator[tuple[tuple[str, int, int], tuple[Call, ...]]]:
    """Yield the stacks of a study by method, mini-batches and seed; CD's own first epochs have none."""
    whole, alone = study.ends(), dataclasses.replace(study, iterations=(0,))
    for method, seed in product(study.methods, study.seeds):
        if method == "cd":
            yield (method, 0, seed), stack(whole, method, seed)
        for batches in study.batches:
            if method == "cd":
                yield (START, batches, seed), stack(alone, started("lea-mvd", batches), seed)
            else:
                yield (method, batches, seed), stack(whole, started(method, batches), seed)


def started(method: str, batches: int) -> str:
    """Return the text of a method that starts from so many mini-batches."""
    return f"{method}{'+' if ':' in method else ':'}x0=batch+x0_batches={batches}"


def swapped(
    study: Started, images: tuple[Any, ...], method: str, batches: int, seed: int, layers: tuple[Call, ...]
) -> dict[tuple[Any, ...], Call]:
    """Return the uppermost layer of starts on the features of CD, and by CD on theirs; of other methods nothing."""
    if method != START:
        return {}
    alone, top, n_hidden = dataclasses.replace(study, iterations=(0,)), len(layers), study.layers[-1]
    below = stack(study.ends(), "cd", seed)[-2]
    untrained = layer_call(alone, started("lea-mvd", batches), n_hidden, seed, below)
    trained = layer_call(study.ends(), "cd", n_hidden, seed, layers[-2])
    return {
        (*images, "cd", START, batches, top, seed): untrained,
        (*images, START, "cd", batches, top, seed): trained,
    }


def _recorded(studies: Sequence[Started]) -> Recorded:
    known = tuple(study.known() for study in studies)
    return Recorded(studies, lambda: plan(known), unverified=("pictures",))


RECORDED = {"few_updates": _recorded(ALONE), "few_updates_searched": _recorded(SEARCHED)}

# ---- tables

OWN = [
    "n_images",
    "momentum_epochs",
    "method",
    "batches",
    "layer",
]  # tells one group of seeds on own inputs from another


def over_cd(runs: pd.DataFrame) -> pd.DataFrame:
    """Return last errors on own inputs over those of CD with the same seed, a row for each run.

    `error` is the product of `features`, the constant image's error over that on CD's inputs, and `learning`, the
    `ratio` to the constant image's error over CD's.
    """
    ends = runs[runs["iteration"] == runs.groupby(LABELS)["iteration"].transform("max")]
    ends = ends.query("features == 'own'").rename(columns={"mean_field": "error", "mean_field_ratio": "ratio"})
    alike = ["n_images", "momentum_epochs", "layer", "seed"]
    cd = ends[ends["method"] == "cd"].set_index(alike)[["error", "ratio", "input_std"]].add_suffix(" of cd")
    rows = ends.join(cd, on=alike)
    rows = rows.assign(error=rows["error"] / rows["error of cd"], learning=rows["ratio"] / rows["ratio of cd"])
    return rows.assign(features=rows["error"] / rows["learning"])[[*OWN, "seed", *MEASURES, "input_std"]]


MEASURES = ["error", "features", "learning", "ratio"]


def by_batches(rows: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return geometric means of a measure of `over_cd`, and the share of seeds in which it is below 1."""
    below = rows.assign(below=rows[measure] < 1).groupby(OWN, sort=False)["below"].mean().reset_index()
    return summarize(rows, measure, OWN, geometric=True).merge(below, on=OWN)


def mechanism(runs: pd.DataFrame) -> pd.DataFrame:
    """Return, for the uppermost RBM of the start alone, what its mechanism's three conditions say, by mini-batches.

    Factors are geometric means over seeds: by which other features, and by which training, change the error; and the
    error on fewer images over that on all of them.
    """
    top, usual = runs["layer"].max(), runs["momentum_epochs"].min()
    last = runs[runs["iteration"] == runs.groupby(LABELS)["iteration"].transform("max")]
    last = last[(last["layer"] == top) & (last["momentum_epochs"] == usual)]
    images = last["n_images"].max()
    errors = (last["mean_field"] / last["n_images"]).groupby([last[name] for name in LABELS if name != "layer"])
    errors = np.log(errors.first()).xs(usual, level="momentum_epochs").unstack("seed")
    ratios = np.log(
        last.query("features == 'own'").set_index(["n_images", "method", "batches", "seed"])["mean_field_ratio"]
    )
    ratios = ratios.unstack("seed")
    own = errors.loc[images, "own", START]
    return pd.DataFrame(
        {
            "error / CD's": (own - errors.loc[images, "own", "cd", 0]).mean(axis=1),
            "ratio / CD's": (ratios.loc[images, START] - ratios.loc[images, "cd", 0]).mean(axis=1),
            "on CD's features": (errors.loc[images, "cd", START] - own).mean(axis=1),
            "trained by CD": (errors.loc[images, "start", "cd"] - own).mean(axis=1),
            "on fewer images": (errors.loc[last["n_images"].min(), "own", START] - own).mean(axis=1),
        }
    ).pipe(np.exp)
