"""Section 13: what holds for which of the settings that the paper does not print.

The paper says neither how contrastive divergence was set nor what its "first iteration" is, from which every search
starts. A cell of the map is one choice of both. In each, the claims of Sections 3, 4 and 8 are judged anew, and
networks are fine-tuned from what each method leaves, beside random weights.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from leamvd._support import checks
from leamvd.data import images as data_sets
from leamvd.networks.contrastive_divergence import CDSettings
from leamvd.networks.dbn import Training

from . import results
from .claims import (
    EQUAL,
    NOTHING,
    Errors,
    Judged,
    Margins,
    Part,
    answer,
    compares_sizes,
    ends_as_printed,
    ends_lower,
    has_converged,
    judged,
    stays,
)
from .layers import LABELS, Images, Study, last, layer_call, searches, stack, timed
from .plots import GRAY, GREEN, PURPLE, VERMILION, legend, log_scale, method_look, panels, styled
from .results import Call, Plan, Recorded, read_recorded
from .statistics import Effect, paired, summarize
from .study_methods import Method
from .words import named

# ---- settings

SCALES = (0.1, 0.01)  # standard deviations of the first weights
RATES = (0.1, 0.01, 0.003)
NOBODYS = 0.003  # the rate that was found by a search for the paper's numbers
CROSSED = {
    f"{scale:g}/{rate:g}": CDSettings(weight_scale=scale, learning_rate=rate) for scale, rate in product(SCALES, RATES)
}
PLAIN = {"batch_size": 10, "momentum": 0.0, "final_momentum": 0.0, "weight_decay": 0.0}  # of scripts
WHOLE = {  # settings that somebody else has, as they are
    "guide": CDSettings(weight_scale=0.01, visible_biases="data", weight_decay=1e-4),
    "scikit-learn": CDSettings(weight_scale=0.01, persistent=True, **PLAIN),
    "deeplearning.net": CDSettings(initial_weights="glorot", weight_scale=4.0, learning_rate=0.01, **PLAIN),
}
PROTOCOLS = CROSSED | WHOLE
"""Settings of contrastive divergence by their names: the first weights' standard deviation and the rate, or whose."""

SOURCES = {
    "0.1/0.1": "the code of Hinton and Salakhutdinov, 2006; here Sections 3 and 4",
    "0.1/0.01": "the rate of deeplearning.net",
    "0.1/0.003": "nobody's rate",
    "0.01/0.1": "first weights of Hinton's guide, 2010, and rate of scikit-learn",
    "0.01/0.01": "first weights of the guide, rate of deeplearning.net",
    "0.01/0.003": "first weights of the guide, nobody's rate",
    "guide": "Hinton's guide, 2010: visible biases of the data",
    "scikit-learn": "BernoulliRBM: mini-batches of 10, persistent chains",
    "deeplearning.net": "its tutorial on deep belief networks: wide uniform first weights, mini-batches of 10",
}
"""Whose each protocol is."""

BATCHES = (1, 5, 60, 600)  # mini-batches behind a start; 600 of 100 images are an epoch of 60,000
NO_READING = 5  # of these: nothing that "the first iteration" can mean
Cell = tuple[str, int]  # the name of a protocol, and mini-batches
CELLS: tuple[Cell, ...] = (*product(CROSSED, BATCHES), *product(WHOLE, (BATCHES[0], BATCHES[-1])))
BOOK: Cell = ("0.1/0.1", 600)  # the settings of Sections 3 and 4

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
    inputs: tuple[str, ...] = ("own", "shared")  # of the searches; the start alone is there on both, with own ones
    seeds: tuple[int, ...] = tuple(range(10))
    methods: tuple[str, ...] = tuple(METHODS.values())
    protocols: dict[str, CDSettings] = dataclasses.field(default_factory=lambda: PROTOCOLS)
    cells: tuple[Cell, ...] = CELLS
    searched: tuple[Cell, ...] = CELLS
    updates: int = 30_000  # of contrastive divergence: 50 epochs of 60,000 images in mini-batches of 100
    first_updates: int = 3_000  # with the first momentum: five of these epochs
    n_rows: int = 10  # of the last fifth of contrastive divergence, by which C10 is judged

    def changed(
        self, protocols: Sequence[str] | None = None, batches: Sequence[int] | None = None, **changes: Any
    ) -> Self:
        """Return the map with fields of it or its images changed, or with protocols and mini-batches crossed anew.

        A change to None is none.
        """
        cells = dict.fromkeys(cell[0] for cell in self.cells), dict.fromkeys(cell[1] for cell in self.cells)
        names = checks.several("protocols", protocols or tuple(cells[0]), different=True)
        counts = checks.several("batches", batches or tuple(cells[1]), different=True)
        for name in names:
            checks.choice("protocols", name, tuple(self.protocols))
        for count in counts:
            checks.integer("batches", count, at_least=1)
        given = {name: value for name, value in changes.items() if value is not None}
        pixels = {name: given.pop(name) for name in vars(self.images) if name in given}
        if protocols is not None or batches is not None:
            given["cells"] = given["searched"] = tuple(product(names, counts))
        return dataclasses.replace(self, images=dataclasses.replace(self.images, **pixels), **given)

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


DRAWN = ("0.1/0.1", "0.1/0.01", "0.01/0.1", "0.01/0.003")  # whose cells are recorded; the rules name more
SMALL = Map(inputs=("own",)).changed(protocols=DRAWN)
QUICK = Map(
    images=Images(n_images=200),
    layers=(10, 10, 20),
    seeds=(0, 1),
    cells=tuple(product(("0.1/0.1", "0.01/0.1", "0.01/0.003"), (5, 600))),
    updates=600,
    first_updates=60,
)
PROFILES = {"quick": QUICK, "paper": SMALL}


class Tables(NamedTuple):
    """What is measured."""

    runs: pd.DataFrame  # errors of the layers of each cell


def tables(profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any) -> Tables:
    """Return the errors of all layers by cell: what is recorded, or what is computed here."""
    if profile == "recorded":
        results.refuse(changes)
        return Tables(read_recorded("map_7x7"))
    return Tables(**results.tables(planned(profile, **changes), folder, n_jobs=n_jobs, label="the map"))


def planned(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    return plan(results.profile(profile, PROFILES).changed(**changes))


# ---- what is computed

CELL = ["protocol", "batches"]


def plan(settings: Map) -> Plan:
    """Return the plan of the errors of all layers by cell; contrastive divergence is under 0 mini-batches, once."""
    names = {str(Method.parse(text)): name for name, text in METHODS.items()}
    calls: dict[tuple[Any, ...], Call] = {}
    for protocol, batches in settings.cells:
        study = settings.study(protocol, batches)
        for (inputs, layer, text, seed), call in searches(study).items():
            if layer == 1 and inputs == "shared":  # the same as on own inputs
                continue
            if text == "cd":
                calls[protocol, 0, inputs, layer, "cd", seed] = call
            elif (protocol, batches) in settings.searched:
                calls[protocol, batches, inputs, layer, names[text], seed] = call
        if "own" in settings.inputs:
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

# ---- answers

VIEWS = {  # whose parts count: those of a reading on own inputs, of CMA-ES there, and of all inputs
    "printed": ("printed", "own", "both"),
    "default": ("default", "own", "both"),
    "conclusion": ("conclusion",),
    "both": ("both",),
}
ANSWERED = (  # at 7x7 pixels
    *product(["C3"], ["printed", "default"]),
    *product(["C4", "C5"], ["printed", "default", "conclusion"]),
    ("C10", "both"),
)
TOLD = 0.9  # of the constant image's error: above it contrastive divergence has told images apart by too little


def cells(runs: pd.DataFrame) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Yield each cell with the rows of its start, its searches, and the contrastive divergence of its protocol.

    Iterations of contrastive divergence are fiftieths of its updates there: what the paper calls iterations.
    """
    for protocol, rows in runs.groupby("protocol", sort=False):
        trained = rows[rows["method"] == "cd"]
        trained = trained.assign(iteration=50 * trained["iteration"] / trained["iteration"].max())
        for batches, searched in rows[rows["method"] != "cd"].groupby("batches", sort=False):
            yield (str(protocol), int(str(batches))), pd.concat([trained, searched])


READINGS = {"printed": "lea-mvd:printed", "default": "lea-mvd"}


def parts(study: Errors, margins: Margins) -> Judged:
    """Yield the parts of the claims about RBMs of 7x7 pixels in a cell; all of its tests are a family."""
    yield "C3", "both", stays(study, 1, EQUAL, 0, margins.unchanged)
    for view, method in READINGS.items():
        yield "C3", view, stays(study, 1, method, 0, margins.unchanged)
    sides = [("printed", "as printed", "lea-mvd:printed"), ("default", "as printed", "lea-mvd")]
    if ("shared", 2, EQUAL) in study.runs.index:
        sides.append(("conclusion", "conclusion", "lea-mvd"))
    for layer, (view, kind, method) in product((2, 3), sides):
        below_cd = ends_lower(study, kind, layer, method, "cd")
        yield "C4", view, below_cd
        if view != "default":  # what is on own inputs is the same for both readings
            yield "C4", {"printed": "own"}.get(view, view), ends_lower(study, kind, layer, EQUAL, "cd")
        yield "C5", view, below_cd
        yield "C5", view, ends_lower(study, kind, layer, method, EQUAL)
    for layer in (1, 2, 3):
        yield "C10", "both", has_converged(study, layer, margins.unchanged)


def parts_of_large(large: Errors, small: Errors | None, margins: Margins, *, printed: bool = True) -> Judged:
    """Yield the parts of the claims about RBMs of 28x28 pixels in a cell, and of both sizes where there is a `small`.

    Where images are others than those of MNIST the `printed` numbers are no bounds.
    """
    within = {"lower": 1 / margins.factor, "upper": margins.factor}
    yield "C6", "both", changes(large, 1, margins.little)
    yield "C8", "both", changes(large, 3, margins.little)
    if printed:
        yield "C7", "both", ends_as_printed(large, 2, "cd", **within)
    for view, method in READINGS.items():
        yield "C6", view, stays(large, 1, method, 0, margins.little)
        for claim, layer in (("C7", 2), ("C8", 3)):
            yield claim, view, ends_lower(large, "as printed", layer, method, "cd")
            if printed:
                yield claim, view, ends_as_printed(large, layer, method, **within)
    if small is not None:
        for layer, (view, method) in product((1, 2, 3), {"both": "cd", **READINGS}.items()):
            yield "C9", view, compares_sizes(small, large, layer, method, "image", lower=1)


def changes(study: Errors, layer: int, percent: float) -> Part:
    """Test whether contrastive divergence ends where the cell's start was, on its course, within a margin."""
    first = study.ends("own" if layer == 1 else "shared", layer, START)["mean_field"]
    fallen = 100 * (1 - study.ends("own", layer, "cd")["mean_field"] / first)
    effect = paired(fallen, 0.0, "%", lower=-percent, upper=percent)
    return Part(
        f"{study.pixels}, RBM {layer}", named("cd"), NOTHING, f"{named('cd')} lowers the error by {{}} %", effect
    )


def by_seed(judged_parts: Mapping[int, Iterable[tuple[str, str, Part]]], claim: str) -> pd.DataFrame:
    """Return the parts of a claim, a column for each seed with its effect, and how many seeds meet them.

    A part is met if it is in all seeds, not met if in none, else mixed.
    """
    effects: dict[tuple[str, str, str], dict[int, Effect]] = {}
    for seed, found in judged_parts.items():
        for about, view, part in found:
            if about == claim:
                effects.setdefault((view, part.where, part.says), {})[seed] = part.effect
    rows = []
    for (view, where, says), seeds in effects.items():
        met = [effect.lower <= effect.effect <= effect.upper for effect in seeds.values()]
        (bounds,) = {(effect.lower, effect.upper) for effect in seeds.values()}
        told = "met" if all(met) else "mixed" if any(met) else "not met"
        values = {f"seed {seed}": effect.effect for seed, effect in seeds.items()}
        row = {"view": view, "part": f"{where}: {says.format('...')}", **values}
        rows.append(row | {"above": bounds[0], "below": bounds[1], "": told})
    return pd.DataFrame(rows)


def evidence(runs: pd.DataFrame, margins: Margins) -> pd.DataFrame:
    """Return every part of every claim in every cell, see `claims.evidence`."""
    judged_cells = []
    for (protocol, batches), rows in cells(runs.replace({"method": {"sep-cma-es": EQUAL}})):
        judged_parts = judged([*parts(Errors.of("7×7 pixels", rows), margins)], margins.level)
        judged_cells.append(judged_parts.assign(protocol=protocol, batches=batches))
    return pd.concat(judged_cells, ignore_index=True)


def answers(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the answer to each claim in each view by cell, from `evidence`: a row for each claim and view."""
    table = {}
    answered = [(claim, view) for claim, view in ANSWERED if view in {"both", *parts["view"]}]
    for (protocol, batches), rows in parts.groupby(CELL, sort=False):
        for claim, view in answered:
            met = rows.loc[(rows["claim"] == claim) & rows["view"].isin(VIEWS[view]), "met"]
            table[claim, view, protocol, batches] = answer(met) if len(met) else STILL
    found = pd.Series(table).rename_axis(["claim", "view", *CELL])
    return found.unstack(CELL, sort=False)


def untold(runs: pd.DataFrame) -> dict[str, float]:
    """Return the protocols by which contrastive divergence ends above `TOLD` of the constant image's error, with that.

    It is the largest geometric mean over seeds among the layers: nothing is compared there.
    """
    worst = trained(runs).groupby("protocol", sort=False)["error / constant's"].max()
    return {str(protocol): float(ratio) for protocol, ratio in worst.items() if ratio > TOLD}


def turned(found: pd.DataFrame) -> pd.DataFrame:
    """Return for each claim and view in how many cells it has which answer, and what turns that of the book's cell.

    That is a change of one setting to which the answer is another: the smallest, as a factor; there may be none.
    """
    counts = found.apply(lambda row: row.value_counts(), axis=1).fillna(0).astype(int)
    counts = counts.reindex(columns=ANSWERS, fill_value=0)
    if BOOK not in found:
        return counts
    changes = sorted(neighbors(), key=lambda change: change[0])
    turning = {}
    for name, row in found.iterrows():
        other = [words for _, words, cell in changes if cell in found and row[cell] != row[BOOK]]
        turning[name] = other[0] if other else "none"
    return counts.assign(**{"here": found[BOOK], "turned by": pd.Series(turning)})


STILL = "no search moved"  # where a claim is that searches stay at their start, and all did: that decides nothing
ANSWERS = ("reproduced", "partly", "undecided", "not reproduced", "not testable", STILL)


def neighbors() -> Iterator[tuple[float, str, Cell]]:
    """Yield the cells that differ from the book's in one setting: by which factor, how, and the cell."""
    at = {(settings.weight_scale, settings.learning_rate): name for name, settings in CROSSED.items()}
    protocol, usual = BOOK
    scale, rate = CROSSED[protocol].weight_scale, CROSSED[protocol].learning_rate
    for other in SCALES:
        yield scale / other, f"first weights N(0, {other:g})", (at[other, rate], usual)
    for other in RATES:
        yield rate / other, f"rate {other:g}", (at[scale, other], usual)
    for batches in BATCHES:
        yield usual / batches, f"a start of {batches} mini-batch{'es' * (batches > 1)}", (protocol, batches)


# ---- errors by cell


def over_cd(runs: pd.DataFrame, inputs: str = "own", measure: str = "mean_field") -> pd.DataFrame:
    """Return last errors of RBM 2 and 3 over those of contrastive divergence of the same seed, a row for each run."""
    ends = last(runs)
    ends = ends[(ends["inputs"] == inputs) & (ends["layer"] > 1)]
    alike = ["protocol", "layer", "seed"]
    trained = ends[ends["method"] == "cd"].set_index(alike)[measure].rename("cd")
    rows = ends[ends["method"] != "cd"].join(trained, on=alike)
    return rows.assign(ratio=rows[measure] / rows["cd"])[[*CELL, "layer", "method", "seed", "ratio"]]


def by_cell(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return geometric means of `over_cd` over seeds with 95 % intervals, a row for each cell, layer and method."""
    ordered = ratios.sort_values("layer", kind="stable")
    means = summarize(ordered, "ratio", [*CELL, "layer", "method"], geometric=True)
    return means.rename(columns={"mean": "error / CD's"}).drop(columns="runs")


def trained(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the last error of contrastive divergence over the constant image's, by layer."""
    ends = last(runs[(runs["method"] == "cd") & (runs["inputs"] == "own")])
    means = summarize(ends, "mean_field_ratio", ["protocol", "layer"], geometric=True)
    return means.rename(columns={"mean": "error / constant's"}).drop(columns="runs")


# ---- a cell of one's own

OF_SIZES = {  # pixels of a side that a claim is about
    **dict.fromkeys(("C3", "C4", "C5", "C10"), (7,)),
    **dict.fromkeys(("C6", "C7", "C8"), (28,)),
    "C9": (7, 28),
}
OWN = "yours"


def own_maps(
    claim: str, given: Mapping[str, Any], *, dataset: str = "mnist", n_images: int | None = None, n_seeds: int = 3
) -> dict[int, Map]:
    """Return the maps of one cell that a claim is about, by the pixels of a side.

    `given` are settings of contrastive divergence, and `x0`, `x0_epochs` and `x0_batches`, which make the start.
    """
    names = {field.name for field in dataclasses.fields(CDSettings)} - {"momentum_epochs"}
    for name in given:
        checks.choice("a setting of a claim", name, (*sorted(names), "x0", "x0_batches", "x0_epochs"))
    settings = CDSettings(**{name: value for name, value in given.items() if name in names})
    count = data_sets.known(dataset)[1]
    images = checks.integer("images", n_images or min(10_000, count), at_least=1, at_most=count)
    start = Training(**given)  # refuses what belongs to another start
    if checks.choice("x0", start.x0, ("epochs", "batch")) == "batch":
        batches = start.x0_batches
    else:
        batches = start.x0_epochs * -(-images // settings.batch_size)
    cells = ((OWN, checks.integer("x0_batches", batches, at_least=1)),)
    seeds = tuple(range(n_seeds))
    maps = {}
    for side in OF_SIZES[checks.choice("claim", claim, tuple(OF_SIZES))]:
        own = Map(
            images=Images(dataset=dataset, side=side, n_images=images),
            seeds=seeds,
            protocols={OWN: settings},
            cells=cells,
            searched=cells,
        )
        if side == 28:
            readings = tuple(METHODS[method] for method in READINGS.values())
            own = dataclasses.replace(own, layers=(500, 500, 2000), inputs=("own",), methods=readings)
        maps[side] = own
    return maps


def nearest(claim: str, given: Mapping[str, Any]) -> str:
    """Return in a sentence the answer to a claim at the cell of the map that is nearest; "" where there is no map.

    Near is by the logarithms of the first weights' scale, the rate and the mini-batches of the start.
    """
    if 7 not in OF_SIZES[claim] or claim == "C9":
        return ""
    usual = CDSettings()
    scale = given.get("weight_scale", usual.weight_scale)
    rate = given.get("learning_rate", usual.learning_rate)
    batches = given.get("x0_batches", 1) if given.get("x0") == "batch" else 600 * given.get("x0_epochs", 1)
    asked = np.log(np.maximum([scale, rate, batches], 1e-9))
    distances = {
        (name, count): np.abs(np.log([settings.weight_scale, settings.learning_rate, count]) - asked).sum()
        for (name, settings), count in product(CROSSED.items(), BATCHES)
    }
    recorded = read_recorded("map_7x7")
    there = {cell for cell, _ in cells(recorded)}
    protocol, count = min(there & distances.keys(), key=lambda cell: distances[cell])
    rows = recorded[(recorded["protocol"] == protocol) & recorded["batches"].isin([0, count])]
    found = answers(evidence(rows, Margins()))[protocol, count][claim]
    words = protocol_words(protocol).replace("\n", ", ").removesuffix("*")
    told = "; ".join(f"{view}: {word}" for view, word in found.items())
    return f"the nearest cell of the map, {words}, a start of {count} mini-batches (10,000 images, ten seeds): {told}"


def seconds(settings: Map) -> float:
    """Return about how many seconds a map of one cell takes on one thread, by what Section 5 has measured.

    Counted are evaluations and epochs; what an optimizer needs for itself, and errors, are left out.
    """
    (cell,) = settings.cells
    study = settings.study(*cell)
    n_images = study.images.n_images or 0
    sizes = [study.images.side**2, *study.layers]
    rows = []
    for n_visible, n_hidden in pairwise(sizes):
        counts = [(0, 5 * (study.reading.n_gen or 0))]  # an epoch of CD-1 is five products
        counts += [(1_200, 2 * 1_200)] * len(settings.methods) * len(settings.inputs)
        rows += [(n_visible, n_hidden, n_images, *count) for count in counts]
    table = pd.DataFrame(rows, columns=["n_visible", "n_hidden", "n_images", "evaluations", "products"])
    measured = (read_recorded("linear_cost", name) for name in ("objectives", "training"))
    return float(timed(table, *measured)["seconds"].sum()) * len(study.seeds)


def own_answer(
    claim: str, maps: Mapping[int, Map], folder: str | Path, *, n_jobs: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the parts of a claim by seed in a cell of one's own, and what contrastive divergence ends at.

    That is its error over the constant image's, by size and layer: geometric means over seeds.
    """
    studies: dict[int, pd.DataFrame] = {}
    told: dict[str, pd.Series] = {}
    for side, settings in maps.items():
        label = f"{claim}, {side}x{side} pixels"
        runs = results.tables(plan(settings), folder, n_jobs=n_jobs, label=label)["runs"]
        ((_, rows),) = cells(runs.replace({"method": {"sep-cma-es": EQUAL}}))
        studies[side] = rows
        ends = last(rows[(rows["method"] == "cd") & (rows["inputs"] == "own")])
        ratios = np.exp(np.log(ends["mean_field_ratio"]).groupby(ends["layer"]).mean())
        told[f"{side}×{side} pixels"] = ratios.rename("RBM {}".format)
    printed = all(settings.images.dataset == "mnist" for settings in maps.values())
    found = {}
    for seed in next(iter(maps.values())).seeds:
        one = {side: Errors.of(f"{side}×{side} pixels", rows[rows["seed"] == seed]) for side, rows in studies.items()}
        if 28 in one:
            found[seed] = [*parts_of_large(one[28], one.get(7), Margins(), printed=printed)]
        else:
            found[seed] = [*parts(one[7], Margins())]
    return by_seed(found, claim), pd.DataFrame(told).T.rename_axis("images").reset_index()


# ---- figures

LOOKS = {
    "reproduced": (GREEN, "o"),
    "partly": (PURPLE, "D"),
    "undecided": (GRAY, "_"),
    "not reproduced": (VERMILION, "x"),
    "not testable": (GRAY, "."),
    STILL: (GRAY, "s"),
}


@styled
def plot_answers(found: pd.DataFrame, marked: Sequence[str]) -> Figure:
    """Plot the answers, a row for each claim and view, a column for each cell.

    Gray columns: contrastive divergence of these protocols, which are `marked`, has told images apart by too little.
    """
    figure, ((ax,),) = panels(1, 1, height=0.9 + 0.24 * len(found))
    for y, (_, row) in enumerate(found.iterrows()):
        for words, (color, marker) in LOOKS.items():
            at = np.flatnonzero(row == words)
            ax.plot(at, [y] * len(at), marker, color=color, markersize=5, linewidth=0, label=words)
    for x, (protocol, _) in enumerate(found.columns):
        if protocol in marked:
            ax.axvspan(x - 0.5, x + 0.5, color="black", alpha=0.12, linewidth=0)
    _name_cells(ax, list(found.columns))
    ax.set_yticks(range(len(found)), [f"{claim}, {view}" for claim, view in found.index])
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.grid(visible=False)
    legend(figure, ncols=4)
    return figure


@styled
def plot_ends(ratios: pd.DataFrame) -> Figure:
    """Plot `over_cd`, a panel for each layer and a column for each cell: geometric means over seeds, and seeds."""
    layers = sorted(ratios["layer"].unique())
    columns = list(dict.fromkeys(ratios[CELL].itertuples(index=False, name=None)))
    figure, axes = panels(len(layers), 1, height=1.2 + 2.0 * len(layers), sharex=True)
    for ax, layer in zip(axes[:, 0], layers, strict=True):
        rows = ratios[ratios["layer"] == layer]
        for shift, (method, ends) in enumerate(rows.groupby("method", sort=False)):
            places = ends[CELL].apply(tuple, axis=1).map(columns.index) + 0.2 * shift - 0.3
            look = method_look(str(method))
            ax.plot(places, ends["ratio"], "_", color=look["color"], alpha=0.4, markersize=3)
            means = np.exp(np.log(ends["ratio"]).groupby(places).mean())
            face = "white" if ":" in str(method) else look["color"]
            ax.plot(
                means.index,
                means,
                "o",
                color=look["color"],
                markerfacecolor=face,
                markersize=3,
                label=named(str(method)),
            )
        ax.axhline(1, color="black", linewidth=0.8)
        log_scale(ax, "y")
        ax.set_title(f"RBM {layer}")
    _name_cells(axes[-1, 0], columns)
    figure.supylabel("error / CD's")
    legend(figure, ncols=4)
    return figure


def _name_cells(ax: Axes, columns: Sequence[Cell]) -> None:
    """Name cells by their mini-batches, and by their protocols between lines; a star marks what nobody has."""
    counts = [f"{batches}*" if batches == NO_READING else str(batches) for _, batches in columns]
    ax.set_xticks(range(len(columns)), counts, rotation=90, fontsize="small")
    ax.set_xlim(-0.5, len(columns) - 0.5)
    for protocol, at in pd.Series(range(len(columns))).groupby([name for name, _ in columns], sort=False):
        ax.axvline(at.max() + 0.5, color="black", linewidth=0.4)
        place = {"xy": (at.mean(), 0), "xycoords": ("data", "axes fraction"), "xytext": (0, -30)}
        look = {"textcoords": "offset points", "ha": "center", "va": "top", "fontsize": "x-small"}
        ax.annotate(protocol_words(str(protocol)), **place, **look, rotation=90 if protocol in WHOLE else 0)


def protocol_words(protocol: str) -> str:
    """Return a protocol in words, on two lines where two settings are all there is to it."""
    if protocol in WHOLE:
        return protocol
    settings = CROSSED[protocol]
    star = "*" if settings.learning_rate == NOBODYS else ""
    return f"N(0, {settings.weight_scale:g})\nrate {settings.learning_rate:g}{star}"
