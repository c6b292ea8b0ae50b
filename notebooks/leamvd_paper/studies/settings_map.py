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

from . import results, settings_tried
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
from .plots import (
    BLUE,
    GRAY,
    GREEN,
    PURPLE,
    SKY,
    VERMILION,
    legend,
    log_scale,
    method_look,
    panels,
    styled,
)
from .results import Call, Plan, Recorded, read_recorded
from .statistics import Effect, paired, summarize
from .study_methods import Method
from .words import named

# ---- settings

SCALES = (0.1, 0.01)  # standard deviations of the first weights
RATES = (0.1, 0.01, 0.003)
NOBODYS = 0.003  # the rate that was found by a search for the paper's numbers
CROSSED = {
    f"{scale:g}/{rate:g}": CDSettings(weight_scale=scale, learning_rate=rate)
    for scale, rate in product(SCALES, RATES)
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
"""Settings of contrastive divergence by their names: the first weights' standard deviation and the
rate, or whose.
"""

SOURCES = {
    "0.1/0.1": "the code of Hinton and Salakhutdinov, 2006; here Sections 3 and 4",
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
CELLS: tuple[Cell, ...] = (*product(CROSSED, BATCHES), *product(WHOLE, (BATCHES[0], BATCHES[-1])))
BOOK: Cell = ("0.1/0.1", 600)  # the settings of Sections 3 and 4

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
    layers: tuple[int, ...] = (30, 30, 120)
    # of the searches; the start alone is there on both, with own ones
    inputs: tuple[str, ...] = ("own", "shared")
    seeds: tuple[int, ...] = tuple(range(10))
    methods: tuple[str, ...] = tuple(METHODS.values())
    protocols: dict[str, CDSettings] = dataclasses.field(default_factory=lambda: PROTOCOLS)
    cells: tuple[Cell, ...] = CELLS
    searched: tuple[Cell, ...] = CELLS
    # of contrastive divergence: 50 epochs of 60,000 images in mini-batches of 100
    updates: int = 30_000
    first_updates: int = 3_000  # with the first momentum: five of these epochs
    n_rows: int = 10  # of the last fifth of contrastive divergence, by which C10 is judged

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
        cells = (
            dict.fromkeys(cell[0] for cell in self.cells),
            dict.fromkeys(cell[1] for cell in self.cells),
        )
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
        momentum_epochs = self.first_updates // updates_of_epoch
        study = Study(
            images=images,
            layers=self.layers,
            inputs=self.inputs,
            seeds=self.seeds,
            methods=("cd", *self.methods),
            # where a search or an epoch ends
            iterations=tuple(sorted({0, 1, 42, 50, *last_fifth.tolist()})),
        )
        return study.changed(
            **vars(settings) | {"momentum_epochs": momentum_epochs},
            x0="batch",
            x0_batches=batches,
            n_gen=epochs,
        )


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
    methods=tuple(METHODS[name] for name in READINGS.values()),
    searched=(),
)
QUICK = Map(
    images=Images(n_images=200),
    layers=(10, 10, 20),
    seeds=(0, 1),
    cells=tuple(product(("0.1/0.1", "0.01/0.1", "0.01/0.003"), (5, 600))),
    updates=600,
    first_updates=60,
)
PROFILES = {"quick": QUICK, "paper": OWN_INPUTS}


class Tables(NamedTuple):
    """What is measured."""

    runs: pd.DataFrame  # errors of the layers of each cell


def tables(
    profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1, **changes: Any
) -> Tables:
    """Return the errors of all layers by cell: what is recorded, or what is computed here."""
    if profile == "recorded":
        results.refuse(changes)
        runs = pd.concat([read_recorded("map_7x7"), read_recorded("map_7x7_more")])
        places = {name: place for place, name in enumerate(PROTOCOLS)}
        return Tables(
            runs.sort_values("protocol", key=lambda names: names.map(places), kind="stable")
        )
    return Tables(
        **results.tables(planned(profile, **changes), folder, n_jobs=n_jobs, label="the map")
    )


def planned(profile: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    return plan(results.profile(profile, PROFILES).changed(**changes))


# ---- what is computed

CELL = ["protocol", "batches"]


def plan(settings: Map) -> Plan:
    """Return the plan of the errors of all layers by cell; contrastive divergence is under 0
    mini-batches, once.
    """
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
                calls[protocol, batches, inputs, layer, names.get(text, text), seed] = call
        if "own" in settings.inputs:
            for (inputs, layer, seed), call in starts(study).items():
                calls[protocol, batches, inputs, layer, START, seed] = call
    return {"runs": ([*CELL, *LABELS], calls)}


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
}

# ---- answers

VIEWS = {  # whose parts count: those of a reading on own inputs, of CMA-ES there, and of all inputs
    "printed": ("printed", "own", "both"),
    "default": ("default", "own", "both"),
    "conclusion": ("conclusion",),
    "both": ("both",),
}
ANSWERED = (  # at 7x7 pixels, the last one by networks
    *product(["C3"], ["printed", "default"]),
    *product(["C4", "C5"], ["printed", "default", "conclusion"]),
    ("C10", "both"),
    *product(["C15"], ["printed", "default"]),
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
        trained = rows[rows["method"] == "cd"]
        trained = trained.assign(iteration=50 * trained["iteration"] / trained["iteration"].max())
        for batches, searched in rows[rows["method"] != "cd"].groupby("batches", sort=False):
            yield (str(protocol), int(str(batches))), pd.concat([trained, searched])


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
            yield (
                "C4",
                {"printed": "own"}.get(view, view),
                ends_lower(study, kind, layer, EQUAL, "cd"),
            )
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
    searched = {
        view: method for view, method in READINGS.items() if ("own", 1, method) in large.runs.index
    }
    for view, method in searched.items():
        yield "C6", view, stays(large, 1, method, 0, margins.little)
        for claim, layer in (("C7", 2), ("C8", 3)):
            yield claim, view, ends_lower(large, "as printed", layer, method, "cd")
            if printed:
                yield claim, view, ends_as_printed(large, layer, method, **within)
    if small is not None:
        for layer, (view, method) in product((1, 2, 3), ({"both": "cd"} | searched).items()):
            yield "C9", view, compares_sizes(small, large, layer, method, "image", lower=1)
            yield "C9", view, compares_sizes(small, large, layer, method, "unit", **within)


def changes(study: Errors, layer: int, percent: float) -> Part:
    """Test whether contrastive divergence ends where the cell's start was, on its course, within a
    margin.
    """
    first = study.ends("own" if layer == 1 else "shared", layer, START)["mean_field"]
    fallen = 100 * (1 - study.ends("own", layer, "cd")["mean_field"] / first)
    effect = paired(fallen, 0.0, "%", lower=-percent, upper=percent)
    return Part(
        f"{study.pixels}, RBM {layer}",
        named("cd"),
        NOTHING,
        f"{named('cd')} lowers the error by {{}} %",
        effect,
    )


def by_seed(
    judged_parts: Mapping[int, Iterable[tuple[str, str, Part]]], claim: str
) -> pd.DataFrame:
    """Return the parts of a claim, a column for each seed with its effect, and how many seeds meet
    them.

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
    """Return the answer to each claim in each view by cell: a row for each claim and view.

    The parts are those of `evidence`, and of `evidence_of_networks` where there are any.
    """
    table = {}
    claimed = {*parts["claim"]}
    answered = [
        (claim, view)
        for claim, view in ANSWERED
        if claim in claimed and view in {"both", *parts["view"]}
    ]
    for (protocol, batches), rows in parts.groupby(CELL, sort=False):
        for claim, view in answered:
            met = rows.loc[(rows["claim"] == claim) & rows["view"].isin(VIEWS[view]), "met"]
            table[claim, view, protocol, batches] = answer(met) if len(met) else STILL
    found = pd.Series(table).rename_axis(["claim", "view", *CELL])
    return found.unstack(CELL, sort=False)


def evidence_of_large(large: pd.DataFrame, small: pd.DataFrame, margins: Margins) -> pd.DataFrame:
    """Return every part of the claims about RBMs of 28x28 pixels in every cell, by seed: see
    `by_seed`.
    """
    of_small = dict(cells(small))
    tables = []
    for cell, rows in cells(large):
        judged_parts = {}
        for seed, of_seed in rows.groupby("seed"):
            beside = None
            if cell in of_small:
                same = of_small[cell]
                beside = Errors.of("7×7 pixels", same[same["seed"] == seed])
            judged_parts[int(str(seed))] = [
                *parts_of_large(Errors.of("28×28 pixels", of_seed), beside, margins)
            ]
        for claim in OF_LARGE:
            found = by_seed(judged_parts, claim)
            tables.append(found.assign(claim=claim, protocol=cell[0], batches=cell[1]))
    return pd.concat(tables, ignore_index=True)


OF_LARGE = ("C6", "C7", "C8", "C9")
MET = {"met": "yes", "not met": "no", "mixed": "undecided"}


def answers_of_large(parts: pd.DataFrame) -> pd.DataFrame:
    """Return the answer to each claim in each view by cell, from `evidence_of_large`, where LEA-MVD
    has searched.

    It is undecided where it hangs on parts that are met in some seeds and not in others.
    """
    table = {}
    for (claim, protocol, batches), rows in parts.groupby(["claim", *CELL], sort=False):
        for view in READINGS:
            if view in {*rows["view"]}:
                met = rows.loc[rows["view"].isin([view, "both"]), ""].map(MET)
                table[claim, view, protocol, batches] = answer(met)
    return pd.Series(table).rename_axis(["claim", "view", *CELL]).unstack(CELL, sort=False)


def whole(small: pd.DataFrame, large: pd.DataFrame) -> pd.DataFrame:
    """Return the answers at both sizes, claims in their order, cells in that of the map; "" where
    nothing searched.
    """
    both = pd.concat([small, large.reindex(columns=small.columns)]).fillna("")
    numbers = both.index.get_level_values("claim").str[1:].astype(int)
    return both.iloc[np.argsort(numbers, kind="stable")]


def evidence_of_networks(errors: pd.DataFrame, margins: Margins) -> pd.DataFrame:
    """Return the parts of C15 in every cell, from test errors of networks: see
    `claims.evidence`.
    """
    starts_of = ["protocol", "batches", "method", "weights"]
    by_side = {
        side: rows.set_index("seed")["test_error"]
        for side, rows in errors.groupby(starts_of, sort=False)
    }
    judged_cells = []
    for protocol, batches in dict.fromkeys(
        errors.loc[errors["batches"] > 0, CELL].itertuples(index=False, name=None)
    ):
        found = []
        for view, method in READINGS.items():
            side = by_side[protocol, batches, method, TRAINED]
            effect = paired(side, by_side[protocol, 0, "cd", TRAINED], upper=1)
            says = (
                f"after {named(method)} {{}} times as many images are wrong as after {named('cd')}"
            )
            found.append(
                (
                    "C15",
                    view,
                    Part("classifier, 7×7 pixels", named(method), named("cd"), says, effect),
                )
            )
        judged_cells.append(judged(found, margins.level).assign(protocol=protocol, batches=batches))
    return pd.concat(judged_cells, ignore_index=True)


def chosen(large: pd.DataFrame, n_cells: int = 10) -> tuple[Cell, ...]:
    """Return the cells in which LEA-MVD searches at 28x28 pixels, by the rule: at most so many.

    These are the book's, and those in which the start alone is below the end of contrastive
    divergence in RBM 2 or 3 in all seeds; of more those in which the product of both ratios is
    smallest.
    """
    ratios = over_cd(large)
    ratios = ratios[ratios["method"] == START]
    below = ratios["ratio"].lt(1).groupby([ratios[name] for name in (*CELL, "layer")]).all()
    below = below.groupby(CELL).any()
    products = np.log(ratios["ratio"]).groupby([ratios[name] for name in CELL]).sum()
    ranked = products[below & (products.index != BOOK)].sort_values()
    return (BOOK, *ranked.index[: n_cells - 1])


def nearness(large: pd.DataFrame) -> pd.DataFrame:
    """Return how near the start alone is to the paper's two numbers, a row for each cell, the
    nearest first.

    Errors are geometric means over seeds, per 10,000 images. Beside their `settings_tried.factor`
    is the error of RBM 3 over the constant image's.
    """
    ends = large[(large["method"] == START) & (large["inputs"] == "own") & (large["layer"] > 1)]
    by = [ends[name] for name in (*CELL, "layer")]
    errors = np.exp(
        np.log(1e4 * ends["mean_field"] / ends["n_images"]).groupby(by, sort=False).mean()
    )
    ratios = np.exp(np.log(ends["mean_field_ratio"]).groupby(by, sort=False).mean())
    table = errors.unstack("layer")
    table["factor"] = settings_tried.factor(table)
    table["RBM 3 / constant's"] = ratios.unstack("layer")[3]
    return table.sort_values("factor", kind="stable")


def untold(runs: pd.DataFrame) -> dict[str, float]:
    """Return the protocols by which contrastive divergence ends above `TOLD` of the constant
    image's error, with that.

    It is the largest geometric mean over seeds among the layers: nothing is compared there.
    """
    worst = trained(runs).groupby("protocol", sort=False)["error / constant's"].max()
    return {str(protocol): float(ratio) for protocol, ratio in worst.items() if ratio > TOLD}


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
    changes = sorted(neighbors(), key=lambda change: change[0])
    turning = {}
    for name, row in found.iterrows():
        other = [
            words
            for _, words, cell in changes
            if cell in found and row[cell] not in ("", row[BOOK])
        ]
        turning[name] = other[0] if other else "none"
    return counts.assign(**{"here": found[BOOK], "turned by": pd.Series(turning)})


# where a claim is that searches stay at their start, and all did: that decides nothing
STILL = "no search moved"
ANSWERS = ("reproduced", "partly", "undecided", "not reproduced", "not testable", STILL)


def neighbors() -> Iterator[tuple[float, str, Cell]]:
    """Yield the cells that differ from the book's in one setting: by which factor, how, and the
    cell.
    """
    at = {
        (settings.weight_scale, settings.learning_rate): name for name, settings in CROSSED.items()
    }
    protocol, usual = BOOK
    scale, rate = CROSSED[protocol].weight_scale, CROSSED[protocol].learning_rate
    for other in SCALES:
        yield scale / other, f"first weights N(0, {other:g})", (at[other, rate], usual)
    for other in RATES:
        yield rate / other, f"rate {other:g}", (at[scale, other], usual)
    for batches in BATCHES:
        yield (
            usual / batches,
            f"a start of {batches} mini-batch{'es' * (batches > 1)}",
            (protocol, batches),
        )


# ---- errors by cell


def over_cd(runs: pd.DataFrame, inputs: str = "own", measure: str = "mean_field") -> pd.DataFrame:
    """Return last errors of RBM 2 and 3 over those of contrastive divergence of the same seed, a
    row for each run.
    """
    ends = last(runs)
    ends = ends[(ends["inputs"] == inputs) & (ends["layer"] > 1)]
    alike = ["protocol", "layer", "seed"]
    trained = ends[ends["method"] == "cd"].set_index(alike)[measure].rename("cd")
    rows = ends[ends["method"] != "cd"].join(trained, on=alike)
    return rows.assign(ratio=rows[measure] / rows["cd"])[
        [*CELL, "layer", "method", "seed", "ratio"]
    ]


def by_cell(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return geometric means of `over_cd` over seeds with 95 % intervals, a row for each cell,
    layer and method.
    """
    ordered = ratios.sort_values("layer", kind="stable")
    means = summarize(ordered, "ratio", [*CELL, "layer", "method"], geometric=True)
    return means.rename(columns={"mean": "error / CD's"}).drop(columns="runs")


def trained(runs: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the last error of contrastive divergence over the constant
    image's, by layer.
    """
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
    for name in given:
        checks.choice(
            "a setting of a claim", name, (*sorted(names), "x0", "x0_batches", "x0_epochs")
        )
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
            own = dataclasses.replace(
                own, layers=LARGE.layers, inputs=LARGE.inputs, methods=LARGE.methods
            )
        maps[side] = own
    return maps


def nearest(claim: str, given: Mapping[str, Any]) -> str:
    """Return in a sentence the answer to a claim at the cell of the map that is nearest; "" where
    there is no map.

    Near is by the logarithms of the first weights' scale, the rate and the mini-batches of the
    start.
    """
    if claim in OF_LARGE:
        return ""
    usual = CDSettings()
    scale = given.get("weight_scale", usual.weight_scale)
    rate = given.get("learning_rate", usual.learning_rate)
    batches = (
        given.get("x0_batches", 1)
        if given.get("x0") == "batch"
        else 600 * given.get("x0_epochs", 1)
    )
    asked = np.log(np.maximum([scale, rate, batches], 1e-9))
    distances = {}
    of_cells = dict(cells(tables().runs))
    for name, count in of_cells:
        if name in CROSSED:
            there = CROSSED[name]
            logs = np.log([there.weight_scale, there.learning_rate, count])
            distances[name, count] = float(np.abs(logs - asked).sum())
    near = min(distances, key=lambda cell: distances[cell])
    found = answers(evidence(of_cells[near], Margins()))[near][claim]
    told = "; ".join(f"{view}: {word}" for view, word in found.items())
    words = protocol_words(near[0]).replace("\n", ", ").removesuffix("*")
    return (
        f"the nearest cell of the map, {words}, a start of {near[1]} mini-batches (10,000 images,"
        f" ten seeds): {told}"
    )


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
    for n_visible, n_hidden in pairwise(sizes):
        counts = [(0, 5 * (study.reading.n_gen or 0))]  # an epoch of CD-1 is five products
        counts += [(1_200, 2 * 1_200)] * len(settings.methods) * len(settings.inputs)
        rows += [(n_visible, n_hidden, n_images, *count) for count in counts]
    table = pd.DataFrame(
        rows, columns=["n_visible", "n_hidden", "n_images", "evaluations", "products"]
    )
    measured = (read_recorded("linear_cost", name) for name in ("objectives", "training"))
    return float(timed(table, *measured)["seconds"].sum()) * len(study.seeds)


def own_answer(
    claim: str, maps: Mapping[int, Map], folder: str | Path, *, n_jobs: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the parts of a claim by seed in a cell of one's own, and what contrastive divergence
    ends at.

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
        one = {
            side: Errors.of(f"{side}×{side} pixels", rows[rows["seed"] == seed])
            for side, rows in studies.items()
        }
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
    _name_cells(ax, list(found.columns))
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
    layers = sorted(ratios["layer"].unique())
    columns = list(dict.fromkeys(ratios[CELL].itertuples(index=False, name=None)))
    figure, axes = panels(len(layers), 1, height=1.2 + 2.0 * len(layers), sharex=True)
    for ax, layer in zip(axes[:, 0], layers, strict=True):
        rows = ratios[ratios["layer"] == layer]
        series = {}
        for method, ends in rows.groupby("method", sort=False):
            face = "white" if ":" in str(method) else method_look(str(method))["color"]
            series[named(str(method))] = (
                ends,
                {"color": method_look(str(method))["color"], "markerfacecolor": face},
            )
        _plot_columns(ax, series, "ratio", columns)
        ax.axhline(1, color="black", linewidth=0.8)
        ax.set_title(f"RBM {layer}")
    _name_cells(axes[-1, 0], columns)
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
    of_cells = table[table["batches"] > 0]
    columns = list(dict.fromkeys(of_cells[CELL].itertuples(index=False, name=None)))
    figure, ((ax,),) = panels(1, 1, height=4.2)
    trained = table[table["method"] == "cd"].drop(columns="batches")
    series = {
        named("cd"): (
            trained.merge(of_cells[CELL].drop_duplicates(), on="protocol"),
            {"color": BLUE},
        )
    }
    for (method, weights), rows in of_cells.groupby(["method", "weights"], sort=False):
        look = {"color": method_look(str(method))["color"]}
        if method == START:
            look = {"color": SKY}
        if ":" in str(method):
            look["markerfacecolor"] = "white"
        words = named(str(method))
        if weights != TRAINED:
            look["marker"] = "s"
            words = f"random as {words}"
        series[words] = rows, look
    _plot_columns(ax, series, "percent", columns)
    alone = table[(table["batches"] == 0) & (table["method"] != "cd")]
    styles = ("-", "--", ":")
    for (method, rows), style in zip(alone.groupby("method", sort=False), styles, strict=False):
        mean = np.exp(np.log(rows["percent"]).mean())
        ax.axhline(mean, color=GRAY, linestyle=style, linewidth=1, label=named(str(method)))
    log_scale(ax, "y")
    ax.set_ylabel("test error, %")
    _name_cells(ax, columns)
    legend(figure, ncols=3)
    return figure


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
        ax.plot(
            means.index,
            means,
            **({"marker": "o", "markersize": 3, "linewidth": 0} | look),
            label=words,
        )
    log_scale(ax, "y")


def _name_cells(ax: Axes, columns: Sequence[Cell]) -> None:
    """Name cells by their mini-batches, and by their protocols between lines; a star marks what
    nobody has.
    """
    counts = [f"{batches}*" if batches == NO_READING else str(batches) for _, batches in columns]
    ax.set_xticks(range(len(columns)), counts, rotation=90, fontsize="small")
    ax.set_xlim(-0.5, len(columns) - 0.5)
    for protocol, at in pd.Series(range(len(columns))).groupby(
        [name for name, _ in columns], sort=False
    ):
        ax.axvline(at.max() + 0.5, color="black", linewidth=0.4)
        place = {"xy": (at.mean(), 0), "xycoords": ("data", "axes fraction"), "xytext": (0, -30)}
        look = {"textcoords": "offset points", "ha": "center", "va": "top", "fontsize": "x-small"}
        ax.annotate(
            protocol_words(str(protocol)), **place, **look, rotation=90 if protocol in WHOLE else 0
        )


def protocol_words(protocol: str) -> str:
    """Return a protocol in words, on two lines where two settings are all there is to it."""
    if protocol in WHOLE:
        return protocol
    settings = CROSSED[protocol]
    star = "*" if settings.learning_rate == NOBODYS else ""
    return f"N(0, {settings.weight_scale:g})\nrate {settings.learning_rate:g}{star}"
