"""Sections 3 and 4: stacks of RBMs by LEA-MVD, CMA-ES and contrastive divergence.

Which method ends with the smallest reconstruction error, layer by layer, on the same images and
with the same budget? With two small studies on the same layers: other sets of images, and another
backend for the error.
"""

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from leamvd._support import checks

from . import layers, results
from .layers import (
    GROUP,
    LABELS,
    ONE_EPOCH,
    Images,
    Study,
    last,
    left_at,
    pictures,
    scaled,
    searches,
    stack,
)
from .plots import (
    COLORS,
    band,
    error_bars,
    facets,
    layers_by_inputs,
    legend,
    log_scale,
    method_bands,
    method_look,
    panels,
    styled,
)
from .results import Plan, Recorded, Table, delayed, read_recorded
from .statistics import components, paired
from .study_methods import trainer_of
from .words import interval, named

# ---- settings

EXCLUDED = "lea-mvd:x0-excluded"  # the start is left out of the population
AS_PRINTED = "lea-mvd:printed"
METHODS = (
    "cd",
    "lea-mvd",
    EXCLUDED,
    AS_PRINTED,
    "cma-es",
    "sep-cma-es",
    "random",
)
PAPER = Study(images=Images(dataset="mnist"), methods=METHODS, seeds=tuple(range(30)))
LARGE = PAPER.changed(
    side=28, layers=(500, 500, 2000), methods=("cd", "lea-mvd"), seeds=tuple(range(12))
)
FEWER = LARGE.changed(n_images=10_000, seeds=tuple(range(10)))
CONTROLS = PAPER.changed(methods=(ONE_EPOCH, "cma-es:n_gen=42"), inputs=("own",))
LARGE_CONTROLS = LARGE.changed(methods=(ONE_EPOCH, AS_PRINTED), inputs=("own",))
VARIANTS = (
    EXCLUDED,
    AS_PRINTED,
    "lea-mvd:sigma0=0.01",
    "sep-cma-es",
    "sep-cma-es:sigma0=0.01",
    "random",
)
VARIED = FEWER.changed(methods=VARIANTS, inputs=("own",), seeds=(0, 1, 2, 3, 4))
# with smaller layers, which take less time
QUICK = PAPER.changed(dataset="digits", dtype="float64", n_gen=12)

PROFILES = {
    "7x7": {
        "quick": QUICK.changed(
            layers=(20, 20, 40), methods=("cd", "lea-mvd", EXCLUDED, "cma-es"), seeds=(0, 1, 2)
        ),
        "paper": PAPER,
        "controls": CONTROLS,
    },
    "28x28": {
        "quick": QUICK.changed(
            side=28, n_images=100, layers=(50, 50, 200), methods=LARGE.methods, seeds=(0, 1)
        ),
        "paper": LARGE,
        "fewer": FEWER,
        "variants": VARIED,
        "controls": LARGE_CONTROLS,
    },
}
"""By the size of images: Section 3, study A of the book's rules, and Section 4, study D, with B
("fewer") and C ("variants"). Controls are the start solution by itself, CMA-ES with LEA-MVD's
evaluations, LEA-MVD as printed.
"""

ITERATION = {"batch_size": 60_000, "iterations": (0, 1, *range(41, 51))}
"""An iteration is one update on all images (item E12).

CMA-ES is its separable form there, which ends the same.
"""
ONE_UPDATE = {
    "7x7": PAPER.changed(
        methods=("cd", "lea-mvd", "sep-cma-es:n_gen=42"), n_images=10_000, seeds=tuple(range(10))
    ),
    "28x28": LARGE.changed(n_images=1_000, seeds=(0, 1, 2)),
}

SHOWN = 3  # seeds with pictures: the first ones

SETS = PAPER.changed(n_images=6_000, methods=("cd", "lea-mvd"), seeds=(0, 1, 2, 3, 4))
IMAGE_SETS = [SETS.changed(image_set=number) for number in range(10)]  # disjoint sets of images

BACKENDS = {"numpy float32": {}, "torch float32": {"backend": "torch", "device": "cpu"}}
"""What computes the error that optimizers see; that in tables is NumPy's.

Recorded are also rows of bfloat16.
"""

# first layers on fewer images and generations than the paper's
FIRST = SETS.changed(
    n_images=10_000,
    layers=(30,),
    methods=("lea-mvd", EXCLUDED),
    inputs=("own",),
    seeds=tuple(range(64)),  # pairs scatter by 3 to 6 %: dozens tell 2 % from nothing
    n_gen=30,
)
WIDE = FIRST.changed(
    side=28,
    n_images=2_000,
    layers=(500,),
    methods=(EXCLUDED,),  # with the start in their population they stay there
    seeds=tuple(range(10)),
    n_gen=15,
)
FINE = WIDE.changed(
    n_images=10_000, methods=("lea-mvd:sigma0=0.01",), seeds=(0, 1, 2, 3, 4), n_gen=50
)
# and layers above, on features of CD
ABOVE = FIRST.changed(
    layers=(30, 30, 120), methods=WIDE.methods, inputs=("shared",), seeds=tuple(range(20))
)
WIDE_ABOVE = WIDE.changed(layers=(500, 500, 2000), inputs=("shared",))
OTHERS = FIRST.changed(methods=("cma-es",), seeds=tuple(range(20)))
AGREEMENT = {
    "backend_agreement": (FIRST, OTHERS, WIDE, FINE),
    "backend_agreement_above": (ABOVE, WIDE_ABOVE),
}


class Tables(NamedTuple):
    """What is measured."""

    runs: Table  # errors of each layer after each iteration
    # gray levels of digits that stacks give back, and of weights, a row for each pixel
    pictures: Table
    controls: Table  # rows as in `runs`: methods that are recorded beside the paper's


def tables(
    profile: str = "recorded",
    folder: str | Path = ".",
    *,
    size: str = "7x7",
    n_jobs: int = 1,
    **changes: Any,
) -> Tables:
    """Return the errors of every layer by iteration, and pictures: what is recorded, or what is
    computed here.
    """
    if profile == "recorded":
        results.refuse(changes)
        name = f"mnist_{checks.choice('size', size, tuple(PROFILES))}"
        return Tables(
            read_recorded(name), read_recorded(name, "pictures"), read_recorded(f"{name}_controls")
        )
    computed = results.tables(
        planned(profile, size, **changes), folder, n_jobs=n_jobs, label=f"images of {size}"
    )
    return Tables(**computed, controls=computed["runs"].iloc[:0])


def planned(profile: str, size: str, **changes: Any) -> Plan:
    """Return the plan of a profile with changes."""
    profiles = PROFILES[checks.choice("size", size, tuple(PROFILES))]
    return plan(results.profile(profile, profiles).changed(**changes).on_disk())


def summary(
    measured: Tables, profile: str = "recorded", size: str = "7x7", **changes: Any
) -> pd.DataFrame:
    """Return the last errors, and where the same is recorded their ratios to it, see
    `layers.summary`.
    """
    if profile == "recorded":
        return layers.summary(measured.runs)
    known = []
    for name, kept in RECORDED.items():
        if name.startswith(f"mnist_{size}"):
            known.append((kept.settings, read_recorded(name)))
    return layers.summary(measured.runs, PROFILES[size][profile].changed(**changes), known)


# ---- what is computed


def plan(study: Study) -> Plan:
    """Return the plan of the tables of a study: its runs, and pictures of its first seeds on own
    inputs.
    """
    top = -1 if "own" in study.inputs else 0
    shown = {}
    for method, seed in product(study.methods, study.seeds[:SHOWN]):
        last_layer = stack(study, method, seed)[top]
        shown[method, seed] = delayed(pictures)(last_layer, study.images, study.training.dtype)
    return {"runs": (LABELS, searches(study)), "pictures": (["method", "seed"], shown)}


def _recorded(study: Study) -> Recorded:
    """Return one study with its pictures."""
    return Recorded(study, lambda: plan(study.known()), unverified=("pictures",))


def _several(
    columns: list[str], studies: list[tuple[tuple[Any, ...], Study]], **options: Any
) -> Recorded:
    """Return several studies by what tells them apart; those on shared inputs above layer 1."""

    def planned() -> Plan:
        calls = {}
        for values, study in studies:
            for label, call in searches(study.known()).items():
                if label[1] > 1 or "own" in study.inputs:
                    calls[*values, *label] = call
        return {"runs": ([*columns, *LABELS], calls)}

    return Recorded([study for _, study in studies], planned, **options)


RECORDED = {
    "mnist_7x7": _recorded(PAPER),
    "mnist_7x7_controls": _recorded(CONTROLS),
    "mnist_28x28": _recorded(LARGE),
    "mnist_28x28_fewer": _recorded(FEWER),
    "mnist_28x28_variants": _recorded(VARIED),
    "mnist_28x28_controls": _recorded(LARGE_CONTROLS),
}
for name, studies in AGREEMENT.items():
    searched = []
    for study, backend in product(studies, BACKENDS):
        searched.append(((backend, study.size), study.changed(**BACKENDS[backend])))
    RECORDED[name] = _several(["search", "section"], searched, keep=last)
for name, study in ONE_UPDATE.items():
    both = study.changed(**ITERATION)
    printed = both.changed(methods=(AS_PRINTED,), inputs=("own",))
    given = []
    for momentum, rate, one in product((0.9, 0.5), (0.1, 0.01), (both, printed)):
        varied = one.changed(final_momentum=momentum, learning_rate=rate, weight_scale=rate)
        given.append(((momentum, rate), varied))
    RECORDED[f"one_update_{name}"] = _several(["final_momentum", "learning_rate"], given)
RECORDED["image_sets"] = _several(
    ["image_set"], [((one.images.image_set,), one) for one in IMAGE_SETS], keep=last
)

# ---- tables

START = "start"  # the start solution, beside the methods
BUDGETS = ("iteration", "passes", "seconds")  # columns that count work (item E10)


def told_apart(table: pd.DataFrame, beside: Sequence[str] = ()) -> pd.DataFrame:
    """Return the rows of all methods; where they are more than four, of the paper's three, or the
    first, and others.
    """
    methods = list(table["method"].unique())
    if len(methods) <= 4:
        return table
    few = [method for method in methods if method in (*Study.methods, *beside)]
    return table[table["method"].isin(few or methods[:4])]


def left_start(table: pd.DataFrame) -> pd.Series:
    """Return in how many runs each search was ever below the error of iteration 0, by inputs, layer
    and method.
    """
    rows = table[~table["method"].map(trainer_of).isin(["cd", START])]
    left = left_at(rows, "mean_field", [*GROUP, "seed"]) < np.inf
    return left.groupby(level=GROUP, sort=False).sum().rename("runs")


def with_start(runs: pd.DataFrame, controls: pd.DataFrame) -> pd.DataFrame:
    """Return the runs with the start solution as a method, before the others of its inputs and
    layer.

    It is where LEA-MVD begins. On own inputs above a layer that LEA-MVD has changed it is what the
    controls have, if any, since a stack of start solutions makes other features.
    """
    search = runs.query("method == 'lea-mvd'")
    left = left_start(search).reset_index()
    left = left.query("inputs == 'own' and runs > 0")
    lowest = left["layer"].min()  # NaN where no search has left its start: nothing is above that
    above = (search["inputs"] == "own") & (search["layer"] > lowest)
    begins = search[(search["iteration"] == 0) & ~above]
    alone = controls.query("method == @ONE_EPOCH and layer > @lowest")
    alone = last(alone[alone["inputs"].isin(runs["inputs"])])
    start = pd.concat([begins, alone]).assign(method=START)
    return pd.concat([start, runs]).sort_values(
        ["inputs", "layer"], kind="stable", ignore_index=True
    )


def final(table: pd.DataFrame) -> pd.DataFrame:
    """Return means over runs at the last iteration, errors per 10,000 images, by inputs, layer and
    method.
    """
    ends = last(table)
    shown = ends[[*GROUP, "input_std"]].copy()
    shown["constant_image"] = scaled(ends, "mean_field") / ends["mean_field_ratio"]
    for name in (
        "mean_field",
        "test_mean_field",
        "sampled",
        "test_sampled",
        "mean_field_ratio",
        "sampled_ratio",
    ):
        shown[name] = scaled(ends, name)
    return shown.groupby(GROUP, sort=False).mean()


def equal_evaluations(runs: pd.DataFrame) -> pd.DataFrame:
    """Return LEA-MVD's last errors over those of CMA-ES after as many evaluations, on shared
    inputs, by layer.
    """
    rows = {}
    for layer, group in runs.query("inputs == 'shared'").groupby("layer"):
        ends = last(group.query("method == 'lea-mvd'")).set_index("seed")
        enough = group[
            (group["method"] == "cma-es") & (group["evaluations"] >= ends["evaluations"].max())
        ]
        first = enough.drop_duplicates("seed").set_index("seed")
        effect = paired(ends["mean_field"], first["mean_field"])
        rows[layer] = effect.rank, effect.rank_low, effect.rank_high, first["iteration"].max()
    return pd.DataFrame.from_dict(
        rows, orient="index", columns=["ratio", "low", "high", "generations of CMA-ES"]
    ).rename_axis("layer")


def image_sets(table: pd.DataFrame) -> pd.DataFrame:
    """Return LEA-MVD's error over CD's on several sets of images, with an interval that covers
    other sets too.

    The scatter is that of logarithms. The last column: how many times as wide one over 30 seeds
    would have to be.
    """
    cells = table.set_index(["inputs", "layer", "image_set", "seed", "method"])
    ends = cells["mean_field"].unstack()
    logs = np.log(ends.eval("`lea-mvd` / cd")).rename("log").reset_index()
    groups = logs.groupby(["inputs", "layer"])[["log", "image_set", "seed"]]
    scatter = groups.apply(components, "log", "image_set", "seed")
    percent = 100 * scatter[["image_set", "seed", "neither"]]
    rows = np.exp(scatter[["mean", "low", "high"]]).join(percent)
    rows.columns = [
        "ratio",
        "95 % interval low",
        "95 % interval high",
        "between sets, %",
        "between seeds, %",
        "neither, %",
    ]
    rows["times as wide"] = scatter.eval("sqrt(1 + 30 * image_set**2 / (seed**2 + neither**2))")
    return rows


# ---- pictures


def images(table: pd.DataFrame, seed: int, kind: str = "digit") -> dict[str, np.ndarray]:
    """Return the digits that stacks give back, or weights, by name: arrays of shape (images, side,
    side).
    """
    shown = {}
    chosen = table[(table["seed"] == seed) & (table["kind"] == kind)]
    for (method, n), rows in chosen.groupby(["method", "layers"], sort=False):
        side = int(np.sqrt(len(rows) / rows["image"].nunique()))
        name = named(method)
        if kind == "digit":
            name = {0: "original", 1: f"{name}, RBM 1"}.get(n, f"{name}, all {n}")
        shown[name] = rows["gray"].to_numpy().reshape(-1, side, side)
    return shown


# ---- figures


@styled
def plot_learning(
    runs: pd.DataFrame,
    measure: str,
    label: str,
    *,
    constant: bool = False,
) -> Figure:
    """Plot a measure by iteration: a thin line for each run, and the means over runs with their 95
    % intervals.

    The start is a horizontal line, where it is among the methods. `constant` draws a line at 1,
    the ratio of the constant image.
    """
    later = runs.query(
        "iteration > 0 and method != @START"
    )  # what CD starts from is random, and off any scale
    figure, axes = layers_by_inputs(later, 2.2, sharex=True)
    for (kind, layer, method, _), run in later.groupby([*GROUP, "seed"], sort=False):
        color = method_look(method)["color"]
        ax = axes[kind, layer]
        ax.plot(run["iteration"], scaled(run, measure), color=color, linewidth=0.4, alpha=0.3)
    for (kind, layer, method), line in layers.bands(later, measure).groupby(GROUP, sort=False):
        look = method_look(method)
        band(axes[kind, layer], line, "iteration", label=named(method), linewidth=1.5, **look)
    for (kind, layer), begins in runs.query("method == @START").groupby(["inputs", "layer"]):
        look = {"color": COLORS[START], "linestyle": "--", "linewidth": 1.2, "label": named(START)}
        axes[kind, layer].axhline(scaled(begins, measure).mean(), **look)
    for ax in axes.values():
        if constant:
            ax.axhline(1.0, color="black", linewidth=0.8)
        ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        log_scale(ax, "y")
    for ax in figure.axes[-later["inputs"].nunique() :]:
        ax.set_xlabel("epoch or generation")
    figure.supylabel(label)
    legend(figure)
    return figure


PAPERS = "the paper's number"  # a measure beside ours
MARKS = {
    PAPERS: {"marker": "D", "mfc": "white"},
    "mean_field": {"marker": "o"},
    "sampled": {"marker": "o", "mfc": "white"},
}


@styled
def plot_beside_paper(table: pd.DataFrame) -> Figure:
    """Plot last errors and the paper's numbers, a panel for each layer and a row for each method;
    each mark has its number beside it.
    """
    methods = list(table["method"].unique())
    figure, parts = facets(table, "layer", 0.65 * len(methods), sharex=True)
    for ax, layer, rows in parts:
        for (measure, method), point in rows.groupby(["measure", "method"], sort=False):
            place = methods.index(method) + 0.27 * (list(MARKS).index(measure) - 1)
            color = method_look(method)["color"]
            bars = error_bars(point)
            ax.errorbar(point["mean"], [place], xerr=bars, color=color, **MARKS[measure])
            (ends,) = point[["mean", "low", "high"]].to_numpy()
            text, _, _ = interval(*ends).partition(" (")
            ax.annotate(text, (ends[0], place), (7, 0), textcoords="offset points", va="center")
        ax.set_yticks(range(len(methods)), [*map(named, methods)])
        ax.set(title=f"RBM {layer}", ylim=(len(methods) - 0.5, -0.5))
        log_scale(ax, "x")
        ax.minorticks_off()
        ax.set_xlim(0.7 * table["mean"].min(), 4 * table["mean"].max())  # with room for numbers
    for measure, look in MARKS.items():
        ax.plot([], [], color="0.3", linestyle="", label=named(measure), **look)
    ax.set_xlabel("error of 10,000 images")
    legend(figure)
    return figure


@styled
def plot_ends(table: pd.DataFrame, label: str) -> Figure:
    """Plot the last mean-field errors of all methods, on training images and hollow on test images;
    ticks are runs.
    """
    shifts = {"mean_field": -0.15, "test_mean_field": 0.15}
    ends = last(table)
    errors = layers.errors(table, shifts)
    methods = list(errors["method"].unique())
    figure, axes = layers_by_inputs(errors, 0.25 * len(methods) + 0.7, sharey=True)
    cells = errors.groupby(["measure", "inputs", "layer"], sort=False)
    for (measure, kind, layer), points in cells:
        ax = axes[kind, layer]
        rows = ends.query("inputs == @kind and layer == @layer")
        place = rows["method"].map(methods.index) + shifts[measure]
        ax.plot(scaled(rows, measure), place, "|", color="black", alpha=0.25)
        for method, point in points.groupby("method", sort=False):
            color = method_look(method)["color"]
            face = "white" if measure == "test_mean_field" else color
            place = [methods.index(method) + shifts[measure]]
            bars = error_bars(point)
            ax.errorbar(
                point["mean"], place, xerr=bars, fmt="o", color=color, markersize=4, mfc=face
            )
    for ax in axes.values():
        ax.set_yticks(range(len(methods)), [*map(named, methods)])
        ax.set_ylim(len(methods) - 0.5, -0.5)
        log_scale(ax, "x")
        ax.xaxis.set_major_locator(MaxNLocator(2))
        ax.minorticks_off()
    figure.supxlabel(label)
    return figure


@styled
def plot_work(bands: pd.DataFrame, label: str) -> Figure:
    """Plot `layers.bands` on one kind of inputs against iterations, passes and seconds: a row for
    each layer.
    """
    rows = bands.query("iteration > 0").groupby("layer")
    figure, axes = panels(len(rows), len(BUDGETS), height=1.2 + 2.2 * len(rows), sharey="row")
    for row, (layer, group) in zip(axes, rows, strict=True):
        row[0].set_title(f"RBM {layer}, {group['inputs'].iloc[0]} inputs", loc="left")
        for ax, budget in zip(row, BUDGETS, strict=True):
            method_bands(ax, group, budget, linewidth=1.5)
            scales = "y" if budget == "iteration" else "xy"
            log_scale(ax, scales)
    for ax, budget in zip(axes[-1], ("iterations", "passes", "seconds"), strict=True):
        ax.set_xlabel(budget)
    figure.supylabel(label)
    legend(figure)
    return figure
