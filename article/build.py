"""The article: its numbers and figures from what is recorded, and the PDF that Typst makes of them:
`python article/build.py`.

The text, `article.typ`, types no number. It takes each by its name from `numbers.json`, which this
writes by the functions that the book's pages call.
"""

import json
import re
import runpy
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
import yaml
from matplotlib.figure import Figure
from matplotlib.text import Annotation, Text

from leamvd.networks.dbn import Training
from leamvd_paper.studies import (
    architectures,
    benchmarks,
    claims,
    classification,
    error_measures,
    explanation,
    layers,
    linear_cost,
    longer_searches,
    plots,
    readings,
    settings_map,
    stacks,
    statistics,
)
from leamvd_paper.studies.results import read_recorded
from leamvd_paper.studies.words import interval, named, number

ROOT = Path(__file__).resolve().parents[1]
OUTPUT = ROOT / "_build" / "article"
SOURCES = ("article/article.typ", "article/form.typ", "book/references.bib")
FIRST_PAGE = runpy.run_path(str(ROOT / "book" / "first_page.py"))
SIZES = {"small": "mnist-7x7", "large": "mnist-28x28"}  # in names of numbers, and in tables
WIDTH = 6.5  # inches of the text
POINTS = 8  # of the text in figures
BESIDE_N = 1_000_000  # variables with which other optimizers are compared
FEW = 30  # mini-batches of the start that the text describes
MECHANISM = (10, 300)  # between these mini-batches features alone explain the error
PROBED = 10  # mini-batches behind the features that are probed
Numbers = dict[str, str]


# ---- words


def effect(row: Any) -> str:
    """Return the effect of a row with its interval."""
    return interval(row.effect, row.low, row.high)


def ends(values: pd.Series) -> str:
    """Return the smallest and the largest of some numbers."""
    return f"{number(values.min())} to {number(values.max())}"


def listed(names: Iterable[str]) -> str:
    """Return names as a sentence has them: "C1, C2 and C14"."""
    *first, last = names
    if first:
        return f"{', '.join(first)} and {last}"
    return last


def one(rows: pd.DataFrame, query: str) -> Any:
    """Return the only row of a table for which a condition holds."""
    (row,) = rows.query(query).itertuples()
    return row


def share(values: pd.Series) -> str:
    """Return how many of how many are true."""
    return f"{values.sum()} of {len(values)}"


# ---- numbers


def of_repository() -> Numbers:
    """Return whose this is, by `CITATION.cff`, and where it can be had, where `_config.yml` says
    that.
    """
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    authors = [author["name"] for author in citation["authors"]]
    found: Numbers = {}
    found["authors"] = listed(authors)
    found["version"] = citation["version"]
    found["license"] = citation["license"]
    found["address"] = config["repository"]["url"]
    found["tables"] = str(len([*(ROOT / "notebooks" / "recorded").glob("*/provenance.json")]))
    return found


def of_setup(measured: claims.Tables) -> Numbers:
    """Return how many places are open, and what was run."""
    page = (ROOT / "book" / "items.md").read_text(encoding="utf-8")
    found: Numbers = {}
    for name, letter in (("algorithm", "r"), ("experiments", "e")):
        found[f"open_{name}"] = str(len({*re.findall(rf"\(item-{letter}\d+\)=", page)}))
    for name, study, runs in (
        ("small", stacks.PAPER, measured.mnist_7x7),
        ("large", stacks.LARGE, measured.mnist_28x28),
    ):
        found[f"seeds_{name}"] = str(runs["seed"].nunique())
        found[f"layers_{name}"] = "-".join(map(str, (study.images.side**2, *study.layers)))
    found["images"] = f"{measured.mnist_7x7['n_images'].max():,}"
    found["variables"] = f"{measured.mnist_28x28['n_var'].max():,}"
    usual = stacks.PAPER.training
    found["iterations"] = str(stacks.PAPER.reading.n_gen)
    found["sigma"] = f"{usual.sigma0:g}"
    found["scale"] = f"{usual.weight_scale:g}"
    found["rate"] = f"{usual.learning_rate:g}"
    found["batch"] = number(usual.batch_size)
    found["margin"] = number(claims.Margins().factor)
    found["reset"] = f"{stacks.PAPER.reading.complete().reset:g}"
    return found


def of_cost(evidence: pd.DataFrame) -> Numbers:
    """Return how costs grow, and what part of the time the optimizer takes."""
    bench = linear_cost.tables()
    own = bench.split["optimizer_seconds"]
    part = 100 * own / (own + bench.split["objective_seconds"])
    searched = bench.optimizers.query("method == 'lea-mvd'")
    beside = linear_cost.relative(bench.optimizers).query("n == @BESIDE_N")
    others = beside.query("method not in ('lea-mvd', 'cma-es')")
    found: Numbers = {}
    found["slopes"] = ends(evidence.query("claim == 'C1'")["effect"])
    found["slope_cma_es"] = number(evidence.query("claim == 'C2'")["effect"].item())
    found["largest_n"] = f"{searched['n'].max():,}"
    found["optimizer_percent"] = ends(part)
    found["others_times"] = ends(others["time / LEA-MVD's"])
    found["beside_n"] = f"{BESIDE_N:,}"
    return found


def of_verdicts(evidence: pd.DataFrame, answers: pd.DataFrame) -> dict[str, Any]:
    """Return the answers to all claims, as rows of a table too, and effects of single parts."""
    printed = answers["as printed"]
    rows = []
    for claim, row in answers.iterrows():
        furthest = row["furthest from the claim, as printed"]
        typeset = furthest.replace("(-", "(−").replace("C_ani", "C")
        rows.append([claim, claims.SHORT[claim], typeset, row["as printed"]])
    same = answers["as printed"] == answers["conclusion"]
    found: dict[str, Any] = {"claims": rows, "n_claims": str(len(answers))}
    found["same_answers"] = share(same)
    for answer, those in printed.groupby(printed):
        name = answer.replace(" ", "_")
        found[f"n_{name}"] = str(len(those))
    corrections = read_recorded("verdicts", "corrections")
    found["corrected"] = str((corrections["all"] != corrections["registered"]).sum())
    found["n_answers"] = str(2 * len(answers))
    parts = {
        "rbm1_printed": "claim == 'C3' and view == 'as printed'",
        "times_5000": "claim == 'C7' and view == 'as printed' and method != 'CD'",
        "times_900": "claim == 'C8' and view == 'as printed' and method != 'CD'",
        "rbm2_large": "claim == 'C7' and view == 'conclusion'",
        "rbm3_large": "claim == 'C8' and view == 'conclusion'",
        "wrong_ratio_small": "claim == 'C15' and where.str.contains(' 7×7')",
        "wrong_ratio_large": "claim == 'C15' and where.str.contains('28×28')",
    }
    for layer in (2, 3):
        ours = f"claim == 'C5' and where == '7×7 pixels, RBM {layer}' and view =="
        parts[f"rbm{layer}_printed"] = f"{ours} 'as printed' and baseline == 'CD'"
        parts[f"rbm{layer}_shared"] = f"{ours} 'conclusion' and baseline == 'CD'"
        parts[f"rbm{layer}_cma_es"] = f"{ours} 'conclusion' and baseline == 'CMA-ES'"
    for name, query in parts.items():
        found[name] = effect(one(evidence, query))
    for layer, printed_number in ((2, "5000"), (3, "900")):
        found[f"printed_{printed_number}"] = number(layers.PRINTED["lea-mvd", layer])
    return found


def of_stacks(measured: claims.Tables) -> Numbers:
    """Return what the start alone ends at, and how many searches left it."""
    small = stacks.tables()
    ended = layers.last(stacks.with_start(small.runs, small.controls))
    top = ended.query("inputs == 'own' and layer == 3")
    beside = statistics.compared(top, "mean_field", [("start", "cd")], by=["layer"])
    alone = beside.iloc[0]
    searched = measured.mnist_28x28.query("method == 'lea-mvd' and (layer > 1 or inputs == 'own')")
    left = layers.left_at(searched, "mean_field", ["inputs", "layer", "seed"])
    sets = stacks.image_sets(read_recorded("image_sets"))
    found: Numbers = {}
    found["start_rbm3"] = interval(alone["ratio"], alone["low"], alone["high"])
    found["start_below"] = f"{alone['below']} of {alone['runs']}"
    found["left_large"] = share(pd.Series(np.isfinite(left)))
    found["wider"] = number(sets["times as wide"].max())
    found["image_sets"] = str(read_recorded("image_sets")["image_set"].nunique())
    return found


def of_networks() -> Numbers:
    """Return the test errors of fine-tuned networks in percent."""
    tuned = layers.last(classification.recorded().runs, "epoch")
    wrong = 100 * tuned.groupby(["study", "method"])["test_error"].mean()
    found = {}
    for size, study in SIZES.items():
        for name, method in (("cd", "cd"), ("lea", "lea-mvd")):
            found[f"wrong_{size}_{name}"] = number(wrong[study, method])
    moved = read_recorded("classification_moved")
    percent = 100 * moved.groupby(["method", "weights"])["test_error"].mean()
    found["wrong_moved"] = ends(percent)
    found["wrong_random"] = number(percent.xs("random-1").item())
    moved["side"] = moved["method"] + ", " + moved["weights"]
    cd = one(moved.drop_duplicates("side"), "method == 'cd'").side
    pairs = [(side, cd) for side in moved["side"].unique() if side != cd]
    beside = statistics.compared(
        moved.assign(all=""), "test_error", pairs, by=["all"], names="side"
    )
    found["moved_told"] = share(beside["p"] < claims.Margins().level)
    return found


def of_doing_nothing() -> Numbers:
    """Return errors of starts alone over CD's and a constant image's, and what features are
    worth.
    """
    measured = error_measures.tables()
    ratios = error_measures.over_cd(measured.runs.query(FIRST_PAGE["WHICH"]))
    means = error_measures.by_batches(ratios).query("layer == 3")
    alone = means.query("method == 'no search'").set_index("batches")
    few = alone.loc[FEW]
    cd = one(means, "method == 'cd'")
    searched = measured.runs.query(
        f"{FIRST_PAGE['WHICH']} and features == 'own' and method == 'lea-mvd' and layer == 3"
        " and @MECHANISM[0] <= batches <= @MECHANISM[1]"
    )
    left = layers.left_at(searched, "mean_field", error_measures.LABELS)
    large = error_measures.over_cd(error_measures.at_28x28())
    large = large[large["method"] == error_measures.START]
    probed = 100 * measured.probes.groupby(["method", "batches"])["test_error"].mean()
    found: Numbers = {}
    found["few"] = str(FEW)
    found["few_error"] = number(few["error"])
    found["few_sampled"] = number(few["sampled"])
    found["few_constant"] = number(few["ratio"])
    found["few_features"] = number(few["features"])
    found["few_cd"] = number(cd.ratio)
    found["few_below"] = share(alone["error"] < 1)
    found["few_from"] = str(MECHANISM[0])
    found["few_to"] = str(MECHANISM[1])
    found["few_left"] = share(pd.Series(np.isfinite(left)))
    found["few_seeds"] = str(ratios["seed"].nunique())
    found["large_seeds"] = str(large["seed"].nunique())
    found["least_large"] = number(large["error"].min())
    found["probe_few"] = number(probed[error_measures.START, PROBED])
    found["probe_cd"] = number(probed["cd", 0])
    found["probe_batches"] = str(PROBED)
    return found


def of_map(runs: settings_map.Tables, evidence: pd.DataFrame) -> Numbers:
    """Return in how many choices of settings which claims hold, and what the start does in them."""
    answered = settings_map.answers(evidence)
    small = answered.loc[["C3", "C4", "C5", "C10"]]
    whole = (small == "reproduced").any()
    partly = (answered == "partly").sum(axis=1)
    ratios = settings_map.by_cell(settings_map.over_cd(runs.runs))
    below = (ratios["error / CD's"] < 1).groupby([ratios["layer"], ratios["method"]]).sum()
    large = settings_map.over_cd(runs.large)
    starts = large.query("method == @settings_map.START")
    starts = starts.assign(below=starts["ratio"] < 1)
    lower = starts.groupby([*settings_map.CELL, "layer"])["below"].all().groupby("layer").sum()
    near = settings_map.nearness(runs.large)
    first = near.iloc[0]
    nearest = near.index[0]
    scale, rate = nearest[0].split("/")
    rank = near["factor"].corr(near["RBM 3 / constant's"], method="spearman")
    there = settings_map.at(runs.large, nearest)
    fallen = explanation.falls(there.query("method == 'lea-mvd'").assign(study=""), "mean_field")
    printed = large[large["batches"] == nearest[1]].query("protocol == @nearest[0]")
    printed = printed[printed["method"] == settings_map.READINGS["printed"]]
    over_cd = np.exp(np.log(printed["ratio"]).groupby(printed["layer"]).mean())
    networks = settings_map.networks()
    tested = networks.query("batches > 0")
    marked = settings_map.untold(runs.runs)
    told = evidence[(evidence["claim"] == "C15") & ~evidence["protocol"].isin(marked)]
    c3 = evidence.query("claim == 'C3'")["effect"]
    found: Numbers = {}
    found["choices"] = str(answered.shape[1])
    found["choices_whole"] = str(whole.sum())
    found["c3_falls"] = f"{c3.min():.0f} to {c3.max():.0f}"
    found["c4_partly"] = str(partly["C4", "printed"])
    found["c5_partly"] = str(partly["C5", "printed"])
    found["c5_partly_default"] = str(partly["C5", "default"])
    found["choices_searched"] = str((answered.loc["C7"] != "").any().sum())
    found["map_start2"] = str(below[2, settings_map.START])
    found["map_start3"] = str(below[3, settings_map.START])
    found["map_lea2"] = str(below[2, "lea-mvd"])
    found["map_lea3"] = str(below[3, "lea-mvd"])
    found["large_start2"] = str(lower[2])
    found["large_start3"] = str(lower[3])
    found["near2"] = number(first[2])
    found["near3"] = number(first[3])
    found["near_constant"] = number(first["RBM 3 / constant's"])
    found["near_scale"] = scale
    found["near_rate"] = rate
    found["near_batches"] = str(nearest[1])
    found["near_rank"] = f"{rank:.2f}"
    found["near_moved"] = share(fallen["fall"] > 0)
    found["near_printed2"] = number(over_cd[2])
    found["near_printed3"] = number(over_cd[3])
    found["networks_choices"] = str(len(settings_map.cells_of(tested)))
    found["networks_worst"] = share(settings_map.worst_by_start(networks, marked))
    found["networks_met"] = share(told["met"].eq("yes"))
    found["map_seeds"] = str(runs.runs["seed"].nunique())
    found["map_seeds_large"] = str(runs.large["seed"].nunique())
    found["map_images"] = f"{runs.runs['n_images'].max():,}"
    return found


def of_steps(sizes: pd.DataFrame) -> Numbers:
    """Return step sizes that pay, what is predicted by them, and how far short steps get."""
    measured = explanation.tables()
    near = explanation.near_reference(sizes)
    steps = statistics.summarize(near, "step_size", explanation.LAYER, geometric=True)
    longer = steps["mean"] < Training.sigma0
    others = steps.sort_values("mean")["mean"].iloc[:-1]
    both = explanation.predicted_and_measured(measured)
    leave = both["share measured"] > 0.5
    whole = explanation.predicted_and_measured(explanation.with_last_steps(measured))
    furthest = whole.groupby(["study", "layer"])["measured"].max()
    found: Numbers = {}
    found["step_rbm1"] = number(steps["mean"].max())
    found["step_others"] = ends(others)
    found["steps_longer"] = share(longer)
    found["times_rbm1"] = number(Training.sigma0 / steps["mean"].max())
    found["times_others"] = ends(Training.sigma0 / others)
    found["predicted"] = share((both["share predicted"] > 0.5) == leave)
    found["furthest_small"] = ends(furthest[SIZES["small"]])
    found["furthest_large"] = ends(furthest[SIZES["large"]])
    found["step_seeds"] = str(measured.runs["seed"].nunique())
    found["step_images"] = f"{measured.runs['n_images'].max():,}"
    return found


def of_use() -> Numbers:
    """Return LEA-MVD's best values over those of separable CMA-ES."""
    ratios = longer_searches.over_separable(longer_searches.early())
    kinds = longer_searches.by_kind(ratios)
    ours = kinds[kinds["method"] == architectures.RECOMMENDED]
    rbm = ratios[ratios["problem"] == "RBM 1"]
    settings = architectures.RECOMMENDED.partition(":")[2].split("+")
    found = {
        "recommended": ", ".join(map(named, settings)),
        "use_seeds": str(rbm["seed"].nunique()),
    }
    for name, kind, of_mark, mark in (
        ("rbm", "RBM 1", "half", 0.5),
        ("rbm", "RBM 1", "two", 2),
        ("smooth", "smooth", "two", 2),
        ("smooth", "smooth", "ten", 10),
        ("minima", "many local minima", "two", 2),
    ):
        row = one(ours, f"kind == '{kind}' and mark == {mark}")
        found[f"mark_{of_mark}"] = f"{mark:g}"
        found[f"use_{name}_{of_mark}"] = interval(row.mean, row.low, row.high)
    judged = architectures.judged()
    beside = benchmarks.against(judged, architectures.RECOMMENDED)
    separable = beside[beside["method"] == longer_searches.SEPARABLE]
    longer = benchmarks.against(longer_searches.tables().runs, "lea-mvd")
    overtakes = longer.query("method == 'sep-cma-es'")["p"] < claims.Margins().level
    found["use_separable"] = share(separable["high"] < 1)
    found["use_recommended"] = share(separable["low"] > 1)
    found["use_overtaken"] = share(overtakes)
    found["use_evaluations"] = number(max(benchmarks.MARKS))
    return found


def of_second_program() -> Numbers:
    """Return how the errors of a program that somebody else wrote compare with ours."""
    ours = pd.concat([read_recorded("readings_own"), read_recorded("readings")])
    found = readings.agreement(read_recorded("second_program"), ours)
    is_cd = found["method"] == "cd"
    agree = found["agree"] == "yes"
    others = found[~is_cd]
    return {
        "second_seeds": number(found["runs"].min()),
        "second_cd": share(agree[is_cd]),
        "second_cells": number(len(others)),
        "second_undecided": number((others["agree"] == "undecided").sum()),
        "second_low": number(others["low"].min()),
        "second_high": number(others["high"].max()),
    }


def numbers(
    on_map: settings_map.Tables, parts: pd.DataFrame, sizes: pd.DataFrame
) -> dict[str, Any]:
    """Return all numbers of the text by their names, given the map, the parts of claims on it, and
    step sizes.
    """
    measured = claims.tables()
    evidence = claims.evidence(measured)
    found = of_verdicts(evidence, claims.answers(evidence))
    found.update(of_repository())
    found.update(of_setup(measured))
    found.update(of_cost(evidence))
    found.update(of_stacks(measured))
    found.update(of_networks())
    found.update(of_doing_nothing())
    found.update(of_map(on_map, parts))
    found.update(of_steps(sizes))
    found.update(of_use())
    found.update(of_second_program())
    return found


# ---- figures


def doing_nothing() -> Figure:
    """Draw the first page's figure of RBM 3 after a few updates and no search."""
    figure = FIRST_PAGE["figure"](FIRST_PAGE["data"]())
    for ax in figure.axes:
        ax.set_ylabel(ax.get_ylabel().replace(" of RBM 3", ""))
    for digits in figure.axes[-2:]:
        digits.tick_params(length=0)
    return figure


def step_sizes(sizes: pd.DataFrame) -> Figure:
    """Draw the longest steps that pay, both sizes of images side by side."""
    figure = explanation.plot_step_sizes(sizes)
    grid = figure.add_gridspec(1, len(figure.axes))
    for ax, place in zip(figure.axes, grid, strict=True):
        ax.set_subplotspec(place)
        ax.set_xlabel("step size of the pairs")
    return figure


def save(figure: Figure, name: str, height: float, nearer: float, folder: Path) -> None:
    """Write a figure as wide as the text and so many inches high; the same bytes each time.

    Words that stand some points from what they name stand nearer, by a factor.
    """
    figure.set_size_inches(WIDTH, height)
    for legend in figure.legends:
        names = [words.get_text() for words in legend.get_texts()]
        place = {"loc": "outside lower center", "frameon": False}
        legend.remove()
        figure.legend(legend.legend_handles, names, ncols=len(names), **place)
    for words in figure.findobj(Text):
        words.set_fontsize(min(words.get_fontsize(), POINTS))
    for words in figure.findobj(Annotation):
        x, y = words.xyann
        words.xyann = (x, nearer * y)
    with mpl.rc_context({"svg.hashsalt": name}):
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    plots.plt.close(figure)


def prepare(folder: Path) -> None:
    """Write what Typst needs into a folder: text, form, bibliography, numbers and figures."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in SOURCES:
        shutil.copy(ROOT / name, folder)
    on_map = settings_map.recorded()
    parts = FIRST_PAGE["parts"](on_map)
    sizes = explanation.step_sizes(explanation.tables().pairs)
    found = numbers(on_map, parts, sizes)
    words = json.dumps(found, ensure_ascii=False, indent=1)
    (folder / "numbers.json").write_text(words, encoding="utf-8")
    save(FIRST_PAGE["answers"](on_map, parts), "map", 3.9, 0.8, folder)
    save(doing_nothing(), "doing_nothing", 4, 0.6, folder)
    save(step_sizes(sizes), "step_sizes", 1.9, 1, folder)


def compiled(folder: Path) -> Path:
    """Return the PDF of a folder that is prepared; what it says of its making has no time, and it
    has Typst's own fonts.
    """
    import typst

    place = folder / "leamvd.pdf"
    typst.compile(folder / "article.typ", output=place, root=folder, ignore_system_fonts=True)
    return place


if __name__ == "__main__":
    prepare(OUTPUT)
    print(compiled(OUTPUT))
