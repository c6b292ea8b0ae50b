"""Section 13: what holds for which of the settings that the paper does not print.

The paper says neither how contrastive divergence was set nor what its "first iteration" is, from
which every search starts. A cell of the map is one choice of both. In each, the claims of Sections
3, 4 and 8 are judged anew, and networks are fine-tuned from what each method leaves, beside random
weights.
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
from leamvd.networks.contrastive_divergence import CDSettings
from leamvd.networks.dbn import Training
from leamvd_paper.data import images as data_sets

from . import results
from .claims import (
    EQUAL,
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
from .layers import (
    LABELS,
    PRINTED,
    Images,
    Section,
    Study,
    last,
    layer_call,
    searches,
    stack,
    timed,
    with_changes,
)
from .plots import (
    BLUE,
    GRAY,
    GREEN,
    PURPLE,
    VERMILION,
    facets,
    legend,
    log_scale,
    method_look,
    panels,
    styled,
)
from .results import Call, Integers, Plan, Recorded, Texts, read_recorded
from .statistics import paired, summarize
from .study_methods import Method
from .words import named

# ---- settings

NOBODYS = 0.003  # the rate that was found by a search for the paper's numbers
CROSSED = {
    "0.1/0.1": CDSettings(weight_scale=0.1, learning_rate=0.1),
    "0.1/0.01": CDSettings(weight_scale=0.1, learning_rate=0.01),
    "0.1/0.003": CDSettings(weight_scale=0.1, learning_rate=0.003),
    "0.01/0.1": CDSettings(weight_scale=0.01, learning_rate=0.1),
    "0.01/0.01": CDSettings(weight_scale=0.01, learning_rate=0.01),
    "0.01/0.003": CDSettings(weight_scale=0.01, learning_rate=0.003),
}
# of scripts
PLAIN = {"batch_size": 10, "momentum": 0.0, "final_momentum": 0.0, "weight_decay": 0.0}
WHOLE = {  # settings that somebody else has, as they are
    "guide": CDSettings(weight_scale=0.01, visible_biases="data", weight_decay=1e-4),
    "scikit-learn": CDSettings(weight_scale=0.01, persistent=True, **PLAIN),
    "deeplearning.net": CDSettings(
        initial_weights="glorot", weight_scale=4.0, learning_rate=0.01, **PLAIN
    ),
}
PROTOCOLS = CROSSED | WHOLE
ANY = "any"  # the protocol of random weights that no stack has
"""Settings of contrastive divergence by their names: the first weights' standard deviation and the
rate, or whose.
"""

SOURCES = {
    "0.1/0.1": "the code of Hinton and Salakhutdinov, 2006; here in the paper's experiments",
    "0.1/0.01": "the rate of deeplearning.net",
    "0.1/0.003": "nobody's rate",
    "0.01/0.1": "first weights of Hinton's guide, 2010, and rate of scikit-learn",
    "0.01/0.01": "first weights of the guide, rate of deeplearning.net",
    "0.01/0.003": "first weights of the guide, nobody's rate",
    "guide": "Hinton's guide, 2010: visible biases of the data",
    "scikit-learn": "BernoulliRBM: mini-batches of 10, persistent chains",
    "deeplearning.net": (
        "its tutorial on deep belief networks: wide uniform first weights, mini-batches of 10"
    ),
}
"""Whose each protocol is."""

BATCHES = (1, 5, 60, 600)  # mini-batches behind a start; 600 of 100 images are an epoch of 60,000
NO_READING = 5  # of these: nothing that "the first iteration" can mean
Cell = tuple[str, int]  # the name of a protocol, and mini-batches
CELLS = (*product(CROSSED, BATCHES), *product(WHOLE, (1, 600)))
BOOK = ("0.1/0.1", 600)  # the settings of Sections 3 and 4

START = "start"  # what the mini-batches leave, with no search
TRAINED = "trained"  # a network that starts at the stack of a method
METHODS = {
    "lea-mvd": "lea-mvd:n_gen=50",  # 1,004 evaluations
    "lea-mvd:printed": "lea-mvd:printed+n_gen=50",
    "sep-cma-es": "sep-cma-es:n_gen=42",  # 1,008
}
"""The searches by their names in tables, which do not have the number of generations."""
READINGS = {"printed": "lea-mvd:printed", "default": "lea-mvd"}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Map:
    """Cells, and what is run in each: contrastive divergence and the start in all, searches in
    those named.
    """

    images: Images = dataclasses.field(
        default_factory=lambda: Images(dataset="mnist", n_images=10_000)
    )
    layers: Integers = (30, 30, 120)
    # of the searches; the start alone is there on both, with own ones
    inputs: Texts = ("own", "shared")
    seeds: Integers = tuple(range(10))
    methods: Texts = tuple(METHODS.values())
    protocols: dict[str, CDSettings] = dataclasses.field(default_factory=lambda: PROTOCOLS)
    cells: tuple[Cell, ...] = CELLS
    searched: tuple[Cell, ...] = CELLS
    # of contrastive divergence: 50 epochs of 60,000 images in mini-batches of 100
    updates: int = 30_000
    first_updates: int = 3_000  # with the first momentum: five of these epochs
    n_rows: int = 10  # of the last fifth of contrastive divergence, by which C10 is judged
    dtype: str = Training.dtype

    def changed(
        self,
        protocols: Sequence[str] | None = None,
        batches: Sequence[int] | None = None,
        **changes: Any,
    ) -> Self:
        """Return the map with fields of it or its images changed, or with protocols and
        mini-batches crossed anew.

        A change to None is none.
        """
        crossed = protocols is not None or batches is not None
        protocols = protocols or tuple(dict.fromkeys(name for name, _ in self.cells))
        batches = batches or tuple(dict.fromkeys(count for _, count in self.cells))
        names = checks.several("protocols", protocols, different=True)
        counts = checks.several("batches", batches, different=True)
        for name in names:
            checks.choice("protocols", name, tuple(self.protocols))
        for count in counts:
            checks.integer("batches", count, at_least=1)
        if crossed:
            changes["cells"] = changes["searched"] = tuple(product(names, counts))
        return with_changes(self, ("images",), changes)

    def on_disk(self) -> Self:
        """Return the same, where this machine has the images."""
        self.images.load(self.dtype)
        return self

    def study(self, protocol: str, batches: int) -> Study:
        """Return the study of a cell: contrastive divergence, and the searches from a start of so
        many mini-batches.

        An epoch of fewer images has fewer updates; those with the first momentum, and all, are as
        many as the map's.
        """
        settings = self.protocols[protocol]
        images = self.images.known()
        updates_of_epoch = -(-(images.n_images or 0) // settings.batch_size)
        epochs = self.updates // updates_of_epoch
        last_fifth = np.linspace(0.8 * epochs, epochs, self.n_rows + 1)[1:].round().astype(int)
        ends = sorted({0, 1, 42, 50, *last_fifth.tolist()})  # where a search or an epoch ends
        momentum_epochs = self.first_updates // updates_of_epoch
        study = Study(
            images=images,
            layers=self.layers,
            inputs=self.inputs,
            seeds=self.seeds,
            methods=("cd", *self.methods),
            iterations=tuple(ends),
        )
        settings = dataclasses.replace(settings, momentum_epochs=momentum_epochs)
        start = {"x0": "batch", "x0_batches": batches}
        return study.changed(**vars(settings), **start, n_gen=epochs, dtype=self.dtype)


# whose cells were recorded first, without the others
FIRST = ("0.1/0.1", "0.1/0.01", "0.01/0.1", "0.01/0.003")
OWN_INPUTS = Map(inputs=("own",))
SMALL = OWN_INPUTS.changed(protocols=FIRST)
OTHERS = tuple(cell for cell in CELLS if cell not in SMALL.cells)
MORE = dataclasses.replace(OWN_INPUTS, cells=OTHERS, searched=OTHERS)
LARGE = Map(
    images=Images(dataset="mnist", side=28, n_images=10_000),
    layers=(500, 500, 2000),
    inputs=("own",),
    seeds=(0, 1, 2),
    methods=(METHODS["lea-mvd:printed"], METHODS["lea-mvd"]),
    searched=(),
)
# searched at 28x28 pixels too: of those that the rule names the first two, and both from an epoch
SEARCHED_CELLS: tuple[Cell, ...] = (
    ("0.01/0.003", 60),
    ("0.01/0.003", 5),
    ("0.01/0.01", 600),
    BOOK,
)
SEARCHED = dataclasses.replace(LARGE, cells=SEARCHED_CELLS, searched=SEARCHED_CELLS)
SHARED = Map(inputs=("shared",)).changed(protocols=BOOK[:1])
FULL_CELLS: tuple[Cell, ...] = (BOOK, ("0.1/0.1", 5), ("0.01/0.003", 60))
# CMA-ES with its whole matrix, of which the separable form stands for
FULL = dataclasses.replace(
    OWN_INPUTS, methods=(EQUAL,), seeds=(0, 1), cells=FULL_CELLS, searched=FULL_CELLS
)
QUICK_CELLS: tuple[Cell, ...] = (
    ("0.1/0.1", 5),
    ("0.1/0.1", 600),
    ("0.01/0.003", 5),
)
QUICK = Map(
    images=Images(n_images=200),
    layers=(10, 10, 20),
    inputs=("own",),
    seeds=(0, 1),
    cells=QUICK_CELLS,
    searched=QUICK_CELLS,
    updates=200,
    first_updates=20,
    dtype="float64",  # nearly the same on any processor
)
QUICK_LARGE = dataclasses.replace(
    QUICK,
    images=Images(side=28, n_images=100),
    methods=LARGE.methods,
    searched=QUICK_CELLS[-1:],  # a long start before each search takes most of the time
)


@dataclasses.dataclass(frozen=True)
class Both:
    """A map for each size of images."""

    large: Map
    small: Map  # whose fields are those that `leamvd list` shows

    def changed(self, layers: Sequence[int] | None = None, **changes: Any) -> Self:
        """Return both changed, see `Map.changed`; the layers are those of the smaller images."""
        small = self.small.changed(layers=layers, **changes)
        return dataclasses.replace(self, small=small, large=self.large.changed(**changes))

    def on_disk(self) -> Self:
        """Return the same, where this machine has the images."""
        self.small.on_disk()
        self.large.on_disk()
        return self


PROFILES = {"quick": Both(QUICK_LARGE, QUICK), "paper": Both(LARGE, OWN_INPUTS)}


class Tables(NamedTuple):
    """Errors of the layers of each cell."""

    runs: pd.DataFrame  # at 7x7 pixels
    large: pd.DataFrame  # at 28x28 pixels


def recorded() -> Tables:
    """Return what is recorded, protocols in their order."""
    small = _together("map_7x7", "map_7x7_more", "map_7x7_shared")
    return Tables(small, _together("map_28x28", "map_28x28_searched"))


def networks() -> pd.DataFrame:
    """Return the test errors of networks that are recorded, of cells in their order."""
    return _together("map_networks", "map_networks_more")


def _together(*names: str) -> pd.DataFrame:
    runs = pd.concat([read_recorded(name) for name in names])
    places = [*PROTOCOLS, ANY]
    return runs.sort_values("protocol", key=lambda kept: kept.map(places.index), kind="stable")


# ---- what is computed

CELL = ["protocol", "batches"]


def plan(settings: Map) -> Plan:
    """Return the plan of the errors of all layers by cell; contrastive divergence is under 0
    mini-batches, once.
    """
    names = {str(Method.parse(text)): name for name, text in METHODS.items()}
    calls = {}
    for protocol, batches in settings.cells:
        study = settings.study(protocol, batches)
        for (inputs, layer, text, seed), call in searches(study).items():
            if layer == 1 and inputs == "shared":  # the same as on own inputs
                continue
            if text == "cd":
                calls[protocol, 0, inputs, layer, "cd", seed] = call
            elif (protocol, batches) in settings.searched:
                calls[protocol, batches, inputs, layer, names.get(text, text), seed] = call
        if "own" in settings.inputs:
            for (inputs, layer, seed), call in starts(study).items():
                calls[protocol, batches, inputs, layer, START, seed] = call
    return {"runs": ([*CELL, *LABELS], calls)}


def searches_alone(settings: Map) -> Plan:
    """Return the plan of the searches of a map, of which the rest is recorded with other cells."""
    columns, calls = plan(settings)["runs"]
    searched = {key: call for key, call in calls.items() if key[4] in METHODS}
    return {"runs": (columns, searched)}


def plan_of_both(settings: Both) -> Plan:
    """Return the plan of the section's `Tables`."""
    return {"runs": plan(settings.small)["runs"], "large": plan(settings.large)["runs"]}


tables = Section(Tables, PROFILES, plan_of_both, recorded, "the map")


def starts(study: Study) -> dict[tuple[str, int, int], Call]:
    """Return the layers of a study that nothing searches, by inputs, layer and seed.

    On own inputs a layer stands on starts. On shared ones it stands on contrastive divergence, and
    is on its course.
    """
    text = METHODS["lea-mvd"]
    alone = dataclasses.replace(study, iterations=(0,))
    calls = {}
    for seed in study.seeds:
        for number, call in enumerate(stack(alone, text, seed), start=1):
            calls["own", number, seed] = call
        for number, below in enumerate(stack(study, "cd", seed)[:-1], start=2):
            calls["shared", number, seed] = layer_call(
                alone, text, study.layers[number - 1], seed, below
            )
    return calls


def kept(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that ship: of searches the first and the last ones alone."""
    ends = rows.index.isin(last(rows).index)
    return rows[ends | (rows["iteration"] == 0) | (rows["method"] == "cd")]


RECORDED = {
    "map_7x7": Recorded(SMALL, lambda: plan(SMALL), kept),
    "map_7x7_more": Recorded(MORE, lambda: plan(MORE), kept),
    "map_7x7_shared": Recorded(SHARED, lambda: plan(SHARED), kept),
    "map_7x7_full": Recorded(FULL, lambda: plan(FULL), kept),
    "map_28x28": Recorded(LARGE, lambda: plan(LARGE), kept),
    "map_28x28_searched": Recorded(SEARCHED, lambda: searches_alone(SEARCHED), kept),
}

# ---- answers

VIEWS = {  # whose parts count: those of a reading on own inputs, of CMA-ES there, and of all inputs
    "printed": ("printed", "own", "both"),
    "default": ("default", "own", "both"),
    "conclusion": ("conclusion",),
    "both": ("both",),
}
ANSWERED = (  # C6 to C9 are of 28x28 pixels, the last one is of networks
    ("C3", "printed"),
    ("C3", "default"),
    ("C4", "printed"),
    ("C4", "default"),
    ("C4", "conclusion"),
    ("C5", "printed"),
    ("C5", "default"),
    ("C5", "conclusion"),
    ("C6", "printed"),
    ("C6", "default"),
    ("C7", "printed"),
    ("C7", "default"),
    ("C8", "printed"),
    ("C8", "default"),
    ("C9", "printed"),
    ("C9", "default"),
    ("C10", "both"),
    ("C15", "printed"),
    ("C15", "default"),
)
# of the constant image's error: above it contrastive divergence has told images apart by too little
TOLD = 0.9


def cells(runs: pd.DataFrame) -> Iterator[tuple[Cell, pd.DataFrame]]:
    """Yield each cell with the rows of its start, its searches, and the contrastive divergence of
    its protocol.

    Iterations of contrastive divergence are fiftieths of its updates there: what the paper calls
    iterations.
    """
    for protocol, rows in runs.groupby("protocol", sort=False):
        trained = rows.query("method == 'cd'")
        trained = trained.assign(iteration=50 * trained["iteration"] / trained["iteration"].max())
        for batches, searched in rows.query("method != 'cd'").groupby("batches", sort=False):
            yield (protocol, int(batches)), pd.concat([trained, searched])


def parts(study: Errors, margins: Margins) -> Judged:
    """Yield the parts of the claims about RBMs of 7x7 pixels in a cell; all of its tests are a
    family.
    """
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
            shared = "own" if view == "printed" else view
            yield "C4", shared, ends_lower(study, kind, layer, EQUAL, "cd")
        yield "C5", view, below_cd
        yield "C5", view, ends_lower(study, kind, layer, method, EQUAL)
    for layer in (1, 2, 3):
        yield "C10", "both", has_converged(study, layer, margins.unchanged)


def parts_of_large(
    large: Errors, small: Errors | None, margins: Margins, *, printed: bool = True
) -> Judged:
    """Yield the parts of the claims about RBMs of 28x28 pixels in a cell, and of both sizes where
    there is a `small`.

    Where images are others than those of MNIST the `printed` numbers are no bounds.
    """
    within = {"lower": 1 / margins.factor, "upper": margins.factor}
    yield "C6", "both", changes(large, 1, margins.little)
    yield "C8", "both", changes(large, 3, margins.little)
    if printed:
        yield "C7", "both", ends_as_printed(large, 2, "cd", **within)
    searched = {}
    for view, method in READINGS.items():
        if ("own", 1, method) in large.runs.index:
            searched[view] = method
    for view, method in searched.items():
        yield "C6", view, stays(large, 1, method, 0, margins.little)
        for claim, layer in (("C7", 2), ("C8", 3)):
            yield claim, view, ends_lower(large, "as printed", layer, method, "cd")
            if printed:
                yield claim, view, ends_as_printed(large, layer, method, **within)
    if small is not None:
        compared = [("both", "cd"), *searched.items()]
        for layer, (view, method) in product((1, 2, 3), compared):
            yield "C9", view, compares_sizes(small, large, layer, method, "image", lower=1)
            yield "C9", view, compares_sizes(small, large, layer, method, "unit", **within)


def changes(study: Errors, layer: int, percent: float) -> Part:
    """Test whether contrastive divergence ends where the cell's start was, on its course, within a
    margin.
    """
    inputs = "own" if layer == 1 else "shared"
    first = study.ends(inputs, layer, START)["mean_field"]
    fallen = 100 * (1 - study.ends("own", layer, "cd")["mean_field"] / first)
    cd = named("cd")
    return study.fallen(layer, cd, fallen, f"{cd} lowers the error by {{}} %", percent)


def by_seed(
    judged_parts: Mapping[int, Iterable[tuple[str, str, Part]]], claim: str
) -> pd.DataFrame:
    """Return the parts of a claim, a column for each seed with its effect, and how many seeds meet
    them.

    A part is met if it is in all seeds, not met if in none, else that is undecided.
    """
    effects = {}
    for seed, found in judged_parts.items():
        for about, view, part in found:
            if about == claim:
                effects.setdefault((view, part.where, part.says), {})[seed] = part.effect
    rows = []
    for (view, where, says), seeds in effects.items():
        row = {"view": view, "part": f"{where}: {says.format('...')}"}
        for seed, effect in seeds.items():
            row[f"seed {seed}"] = effect.effect
        bounds = {(effect.lower, effect.upper) for effect in seeds.values()}
        ((row["above"], row["below"]),) = bounds
        met = [effect.lower <= effect.effect <= effect.upper for effect in seeds.values()]
        row["met"] = "yes" if all(met) else "undecided"
        if not any(met):
            row["met"] = "no"
        rows.append(row)
    return pd.DataFrame(rows)


def evidence(runs: pd.DataFrame, margins: Margins) -> pd.DataFrame:
    """Return every part of every claim in every cell, see `claims.evidence`."""
    judged_cells = []
    for (protocol, batches), rows in cells(runs.replace({"method": {"sep-cma-es": EQUAL}})):
        study = Errors.of("7×7 pixels", rows)
        found = judged([*parts(study, margins)], margins.level)
        judged_cells.append(found.assign(protocol=protocol, batches=batches))
    return pd.concat(judged_cells, ignore_index=True)


def answers(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the answer to each claim in each view by cell: a row for each claim and view, "" where
    it was not run.

    The parts are those of `evidence`, and of `evidence_of_large` and `evidence_of_networks` where
    there are any. At 28x28 pixels a claim is answered where LEA-MVD has searched.
    """
    table = {}
    claims = {*parts["claim"]}
    for cell, rows in parts.groupby(CELL, sort=False):
        for claim, view in ANSWERED:
            own = rows[rows["claim"] == claim]
            met = own.loc[own["view"].isin(VIEWS[view]), "met"]
            if claim in OF_LARGE and view not in {*own["view"]}:
                continue
            if len(met):
                table[claim, view, *cell] = answer(met)
            elif claim in claims & {"C3"}:
                table[claim, view, *cell] = STILL
    found = pd.Series(table).rename_axis(["claim", "view", *CELL]).unstack(CELL, sort=False)
    return found.reindex([row for row in ANSWERED if row in found.index]).fillna("")


def evidence_of_large(large: pd.DataFrame, small: pd.DataFrame, margins: Margins) -> pd.DataFrame:
    """Return every part of the claims about RBMs of 28x28 pixels in every cell, by seed: see
    `by_seed`.
    """
    of_small = dict(cells(small))
    tables = []
    for cell, rows in cells(large):
        judged_parts = {}
        for seed, of_seed in rows.groupby("seed"):
            study = Errors.of("28×28 pixels", of_seed)
            beside = None
            if cell in of_small:
                same = of_small[cell]
                beside = Errors.of("7×7 pixels", same.query("seed == @seed"))
            judged_parts[int(seed)] = [*parts_of_large(study, beside, margins)]
        for claim in OF_LARGE:
            found = by_seed(judged_parts, claim)
            tables.append(found.assign(claim=claim, protocol=cell[0], batches=cell[1]))
    return pd.concat(tables, ignore_index=True)


OF_LARGE = ("C6", "C7", "C8", "C9")


def evidence_of_networks(errors: pd.DataFrame, margins: Margins) -> pd.DataFrame:
    """Return the parts of C15 in every cell, from test errors of networks: see
    `claims.evidence`.
    """
    alike = [*CELL, "method", "weights", "seed"]
    by_side = errors.set_index(alike)["test_error"].sort_index()
    cd = named("cd")
    judged_cells = []
    for protocol, batches in cells_of(errors.query("batches > 0")):
        below = by_side[protocol, 0, "cd", TRAINED]
        found = []
        for view, method in READINGS.items():
            ours = named(method)
            effect = paired(by_side[protocol, batches, method, TRAINED], below, upper=1)
            says = f"after {ours} {{}} times as many images are wrong as after {cd}"
            found.append(("C15", view, Part("classifier, 7×7 pixels", ours, cd, says, effect)))
        judged_parts = judged(found, margins.level)
        judged_cells.append(judged_parts.assign(protocol=protocol, batches=batches))
    return pd.concat(judged_cells, ignore_index=True)


def cells_of(rows: pd.DataFrame) -> list[Cell]:
    """Return the cells of a table, in order of appearance."""
    return [*rows[CELL].drop_duplicates().itertuples(index=False, name=None)]


def nearness(large: pd.DataFrame) -> pd.DataFrame:
    """Return how near the start alone is to the paper's two numbers, a row for each cell, the
    nearest first.

    Errors are geometric means over seeds, per 10,000 images. Beside them are the typical `factor`
    by which they miss, exp of the root mean square of log(ours / the paper's), and the error of
    RBM 3 over the constant image's.
    """
    ends = large.query("method == @START and inputs == 'own' and layer > 1")
    ends["error"] = np.log(1e4 * ends["mean_field"] / ends["n_images"])
    ends["ratio"] = np.log(ends["mean_field_ratio"])
    means = ends.groupby([*CELL, "layer"], sort=False)[["error", "ratio"]].mean()
    means = np.exp(means).unstack("layer")
    table = means["error"]
    misses = [np.log(table[layer] / PRINTED["lea-mvd", layer]) for layer in (2, 3)]
    table["factor"] = np.exp(np.sqrt(np.mean(np.square(misses), axis=0)))
    table["RBM 3 / constant's"] = means["ratio", 3]
    return table.sort_values("factor", kind="stable")


def untold(runs: pd.DataFrame) -> dict[str, float]:
    """Return the protocols by which contrastive divergence ends above `TOLD` of the constant
    image's error, with that.

    It is the largest geometric mean over seeds among the layers: nothing is compared there.
    """
    worst = trained(runs).groupby("protocol", sort=False)["error / constant's"].max()
    return worst[worst > TOLD].to_dict()


def worst_by_start(networks: pd.DataFrame, marked: Iterable[str]) -> pd.Series:
    """Return in which choices, but for those of `marked` protocols, the start alone makes the worst
    networks.
    """
    sides = networks["method"] + ", " + networks["weights"]
    means = networks.groupby([*CELL, sides])["test_error"].mean()
    worst = {}
    for protocol, batches in cells_of(networks.query("batches > 0")):
        if protocol not in marked:
            every = pd.concat([means[protocol, 0], means[protocol, batches]])
            worst[protocol, batches] = every.idxmax().startswith(START)
    return pd.Series(worst)


def turned(found: pd.DataFrame) -> pd.DataFrame:
    """Return for each claim and view in how many cells it has which answer, and what turns that of
    the book's cell.

    That is a change of one setting to which the answer is another: the smallest, as a factor; there
    may be none.
    """
    counts = found.apply(lambda row: row.value_counts(), axis=1).fillna(0).astype(int)
    counts = counts.reindex(columns=ANSWERS, fill_value=0)
    if BOOK not in found:
        return counts
    counts["here"] = found[BOOK]
    counts["turned by"] = "none"
    changes = sorted(neighbors(), key=lambda change: change[0])
    for _, words, cell in reversed(changes):  # the smallest one comes last, and stays
        if cell in found:
            turns = (found[cell] != "") & (found[cell] != found[BOOK])
            counts.loc[turns, "turned by"] = words
    return counts


# where a claim is that searches stay at their start, and all did: that decides nothing
STILL = "no search moved"
ANSWERS = ("reproduced", "partly", "undecided", "not reproduced", "not testable", STILL)


def neighbors() -> Iterator[tuple[float, str, Cell]]:
    """Yield the cells that differ from the book's in one setting: by which factor, how, and the
    cell.
    """
    protocol, usual = BOOK
    scale = CROSSED[protocol].weight_scale
    rate = CROSSED[protocol].learning_rate
    for name, settings in CROSSED.items():
        other = settings.weight_scale
        if settings.learning_rate == rate:
            yield scale / other, f"first weights N(0, {other:g})", (name, usual)
    for name, settings in CROSSED.items():
        other = settings.learning_rate
        if settings.weight_scale == scale:
            yield rate / other, f"rate {other:g}", (name, usual)
    for batches in BATCHES:
        words = f"a start of {batches} mini-batch"
        if batches > 1:
            words += "es"
        yield usual / batches, words, (protocol, batches)


# ---- errors by cell


def over_cd(runs: pd.DataFrame) -> pd.DataFrame:
    """Return last errors of RBM 2 and 3 on own inputs over those of contrastive divergence of the
    same seed, a row for each run.
    """
    ends = last(runs)
    ends = ends[(ends["inputs"] == "own") & (ends["layer"] > 1)]
    alike = ["protocol", "layer", "seed"]
    trained = ends.query("method == 'cd'").set_index(alike)["mean_field"].rename("cd")
    rows = ends.query("method != 'cd'").join(trained, on=alike)
    rows["ratio"] = rows["mean_field"] / rows["cd"]
    return rows[[*CELL, "layer", "method", "seed", "ratio"]]


def by_cell(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return geometric means of `over_cd` over seeds with 95 % intervals, a row for each cell,
    layer and method.
    """
    ordered = ratios.sort_values("layer", kind="stable")
    by = [*CELL, "layer", "method"]
    means = summarize(ordered, "ratio", by, geometric=True, mean="error / CD's")
    return means.drop(columns="runs")


def trained(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the last error of contrastive divergence over the constant
    image's, by layer.
    """
    ends = last(runs.query("method == 'cd' and inputs == 'own'"))
    by = ["protocol", "layer"]
    name = "error / constant's"
    means = summarize(ends, "mean_field_ratio", by, geometric=True, mean=name)
    return means.drop(columns="runs")


# ---- a cell of one's own

OF_SIZES = {  # pixels of a side that a claim is about
    "C3": (7,),
    "C4": (7,),
    "C5": (7,),
    "C10": (7,),
    "C6": (28,),
    "C7": (28,),
    "C8": (28,),
    "C9": (7, 28),
}
OWN = "yours"


def own_maps(
    claim: str,
    given: Mapping[str, Any],
    *,
    dataset: str = "mnist",
    n_images: int | None = None,
    n_seeds: int = 3,
) -> dict[int, Map]:
    """Return the maps of one cell that a claim is about, by the pixels of a side.

    `given` are settings of contrastive divergence, and `x0`, `x0_epochs` and `x0_batches`, which
    make the start.
    """
    names = {field.name for field in dataclasses.fields(CDSettings)} - {"momentum_epochs"}
    known = (*sorted(names), "x0", "x0_batches", "x0_epochs")
    for name in given:
        checks.choice("a setting of a claim", name, known)
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
        usual = LARGE if side == 28 else Map()
        pixels = Images(dataset=dataset, side=side, n_images=images)
        maps[side] = dataclasses.replace(
            usual,
            images=pixels,
            seeds=seeds,
            protocols={OWN: settings},
            cells=cells,
            searched=cells,
        )
    return maps


def nearest(claim: str, own: Map) -> str:
    """Return in a sentence the answer to a claim at the cell of the map that is nearest to one's
    own.

    Near is by the logarithms of the first weights' scale, the rate and the mini-batches of the
    start, among cells in which something has searched.
    """
    ((name, batches),) = own.cells
    settings = own.protocols[name]
    asked = np.log(np.maximum([settings.weight_scale, settings.learning_rate, batches], 1e-9))
    small, large = tables()
    of_large = claim in OF_LARGE
    runs = large if of_large else small
    distances = {}
    for (name, count), rows in cells(runs):
        if name in CROSSED and rows["method"].isin(READINGS.values()).any():
            there = CROSSED[name]
            logs = np.log([there.weight_scale, there.learning_rate, count])
            distances[name, count] = float(np.abs(logs - asked).sum())
    near = min(distances, key=lambda cell: distances[cell])
    here = at(runs, near)
    if of_large:
        judged_parts = evidence_of_large(here, at(small, near), Margins())
        seeds = "three seeds"
    else:
        judged_parts = evidence(here, Margins())
        seeds = "ten seeds"
    found = answers(judged_parts)
    told = "; ".join(f"{view}: {word}" for view, word in found[near][claim].items())
    words = protocol_words(near[0]).replace("\n", ", ").removesuffix("*")
    return (
        f"the nearest cell of the map, {words}, a start of {near[1]} mini-batches (10,000 images,"
        f" {seeds}): {told}"
    )


def at(runs: pd.DataFrame, cell: Cell) -> pd.DataFrame:
    """Return the rows of a cell, and those of contrastive divergence of its protocol."""
    protocol, batches = cell
    return runs[(runs["protocol"] == protocol) & runs["batches"].isin([0, batches])]


def seconds(settings: Map) -> float:
    """Return about how many seconds a map of one cell takes on one thread, by what Section 5 has
    measured.

    Counted are evaluations and epochs; what an optimizer needs for itself, and errors, are left
    out.
    """
    (cell,) = settings.cells
    study = settings.study(*cell)
    n_images = study.images.n_images or 0
    sizes = [study.images.side**2, *study.layers]
    rows = []
    products = study.training.epoch_products * (study.reading.n_gen or 0)
    inputs = settings.inputs[:1]  # a first layer sees the same images on both kinds
    for n_visible, n_hidden in pairwise(sizes):
        size = (n_visible, n_hidden, n_images)
        rows.append((*size, 0, products))
        rows += [(*size, 1_200, 2 * 1_200)] * len(settings.methods) * len(inputs)
        inputs = settings.inputs
    columns = ["n_visible", "n_hidden", "n_images", "evaluations", "products"]
    objectives = read_recorded("linear_cost", "objectives")
    training = read_recorded("linear_cost", "training")
    work = timed(pd.DataFrame(rows, columns=columns), objectives, training)
    return float(work["seconds"].sum()) * len(study.seeds)


def own_answer(
    claim: str, maps: Mapping[int, Map], folder: str | Path, *, n_jobs: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the parts of a claim by seed in a cell of one's own, and errors over the constant
    image's: where contrastive divergence ends, and without a search.

    They are geometric means, by size and layer.
    """
    studies = {}
    told = {}
    for side, settings in maps.items():
        label = f"{claim}, {side}x{side} pixels"
        runs = results.tables(plan(settings), folder, n_jobs=n_jobs, label=label)["runs"]
        ((_, rows),) = cells(runs.replace({"method": {"sep-cma-es": EQUAL}}))
        studies[side] = rows
        alone = rows.query("method in ('cd', @START) and inputs == 'own'")
        for method, ends in last(alone).groupby("method"):
            ratios = np.exp(np.log(ends["mean_field_ratio"]).groupby(ends["layer"]).mean())
            told[f"{side}×{side} pixels, {named(method)}"] = ratios.rename("RBM {}".format)
    printed = all(settings.images.dataset == "mnist" for settings in maps.values())
    found = {}
    for seed in next(iter(maps.values())).seeds:
        one = {}
        for side, rows in studies.items():
            one[side] = Errors.of(f"{side}×{side} pixels", rows.query("seed == @seed"))
        if 28 in one:
            found[seed] = [*parts_of_large(one[28], one.get(7), Margins(), printed=printed)]
        else:
            found[seed] = [*parts(one[7], Margins())]
    return by_seed(found, claim), pd.DataFrame(told).T.rename_axis("of").reset_index()


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

    Gray columns: contrastive divergence of these protocols, which are `marked`, has told images
    apart by too little.
    """
    figure, ((ax,),) = panels(1, 1, height=2.6 + 0.24 * len(found))
    for words, (color, marker) in LOOKS.items():
        y, x = np.nonzero(found.to_numpy() == words)
        if len(x):
            ax.plot(x, y, marker, color=color, markersize=5, linewidth=0, label=words)
    for x, (protocol, _) in enumerate(found.columns):
        if protocol in marked:
            ax.axvspan(x - 0.5, x + 0.5, color="black", alpha=0.12, linewidth=0)
    _name_cells(ax, [*found.columns])
    ax.set_yticks(range(len(found)), [f"{claim}, {view}" for claim, view in found.index])
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.grid(visible=False)
    legend(figure, ncols=4)
    return figure


@styled
def plot_ends(ratios: pd.DataFrame) -> Figure:
    """Plot `over_cd`, a panel for each layer and a column for each cell: geometric means over
    seeds, and seeds.
    """
    columns = cells_of(ratios)
    figure, parts = facets(ratios.sort_values("layer", kind="stable"), "layer", 2.0, sharex=True)
    for ax, layer, rows in parts:
        series = {}
        for method, ends in rows.groupby("method", sort=False):
            series[named(method)] = ends, _marker(method)
        _plot_columns(ax, series, "ratio", columns)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_title(f"RBM {layer}")
    _name_cells(ax, columns)
    figure.supylabel("error / CD's")
    legend(figure, ncols=4)
    return figure


@styled
def plot_networks(errors: pd.DataFrame) -> Figure:
    """Plot test errors of networks in percent, a column for each cell: geometric means over seeds,
    and seeds.

    Lines are those of random weights that no stack has. Random weights as large as LEA-MVD's have
    squares.
    """
    table = errors.assign(percent=100 * errors["test_error"])
    of_cells = table.query("batches > 0")
    columns = cells_of(of_cells)
    figure, ((ax,),) = panels(1, 1, height=4.2)
    trained = table.query("method == 'cd'").drop(columns="batches")
    trained = trained.merge(of_cells[CELL].drop_duplicates(), on="protocol")
    series = {named("cd"): (trained, {"color": BLUE})}
    for (method, weights), rows in of_cells.groupby(["method", "weights"], sort=False):
        look = _marker(method)
        words = named(method)
        if weights != TRAINED:
            look["marker"] = "s"
            words = f"random as {words}"
        series[words] = rows, look
    _plot_columns(ax, series, "percent", columns)
    alone = table.query("batches == 0 and method != 'cd'").groupby("method", sort=False)
    for (method, rows), style in zip(alone, ("-", "--", ":"), strict=False):
        mean = np.exp(np.log(rows["percent"]).mean())
        ax.axhline(mean, color=GRAY, linestyle=style, linewidth=1, label=named(method))
    log_scale(ax, "y")
    ax.set_ylabel("test error, %")
    _name_cells(ax, columns)
    legend(figure, ncols=3)
    return figure


def _marker(method: str) -> dict[str, str]:
    """Return the look of a method's markers, open ones where it has settings."""
    look = {"color": method_look(method)["color"]}
    if ":" in method:
        look["markerfacecolor"] = "white"
    return look


def _plot_columns(
    ax: Axes,
    series: Mapping[str, tuple[pd.DataFrame, dict[str, Any]]],
    value: str,
    columns: Sequence[Cell],
) -> None:
    """Plot rows of each series at their cells, a little apart: a dash for each seed, and their
    geometric mean.
    """
    for number, (words, (rows, look)) in enumerate(series.items()):
        shift = 0.8 * (number + 0.5) / len(series) - 0.4
        places = rows[CELL].apply(tuple, axis=1).map(columns.index) + shift
        ax.plot(places, rows[value], "_", color=look["color"], alpha=0.4, markersize=3)
        means = np.exp(np.log(rows[value]).groupby(places).mean())
        shape = {"marker": "o", **look}
        ax.plot(means.index, means, markersize=3, linewidth=0, label=words, **shape)
    log_scale(ax, "y")


def _name_cells(ax: Axes, columns: Sequence[Cell]) -> None:
    """Name cells by their mini-batches, and by their protocols between lines; a star marks what
    nobody has.
    """
    protocols = []
    counts = []
    for protocol, batches in columns:
        protocols.append(protocol)
        counts.append(str(batches))
        if batches == NO_READING:
            counts[-1] += "*"
    ax.set_xticks(range(len(columns)), counts, rotation=90, fontsize="small")
    ax.set_xlim(-0.5, len(columns) - 0.5)
    for protocol, at in pd.Series(range(len(columns))).groupby(protocols, sort=False):
        ax.axvline(at.max() + 0.5, color="black", linewidth=0.4)
        place = {"xy": (at.mean(), 0), "xycoords": ("data", "axes fraction"), "xytext": (0, -30)}
        look = {"textcoords": "offset points", "ha": "center", "va": "top", "fontsize": "x-small"}
        rotation = 90 if protocol in WHOLE else 0
        ax.annotate(protocol_words(protocol), **place, **look, rotation=rotation)


def protocol_words(protocol: str) -> str:
    """Return a protocol in words, on two lines where two settings are all there is to it."""
    if protocol in WHOLE:
        return protocol
    settings = CROSSED[protocol]
    words = f"N(0, {settings.weight_scale:g})\nrate {settings.learning_rate:g}"
    return f"{words}*" if settings.learning_rate == NOBODYS else words
