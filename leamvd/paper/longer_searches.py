"""Section 12: searches that go on where the paper's end.

How far does LEA-MVD come beside CMA-ES with up to a hundred evaluations for each variable, on functions and an RBM?
What should one use for the first ten, by the kind of function?
"""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from leamvd.data.functions import BBOB, USUAL

from . import results
from .benchmarks import MARKS, Comparison, FirstRBM, Function, Moved, Problem
from .layers import Images
from .plots import band, legend, log_scale, method_look, panels, styled
from .results import Plan, Recorded, read_recorded
from .statistics import summarize
from .study_methods import FORMER, WINNER
from .words import named

# ---- settings

LARGE: list[Problem] = [Function(name, n_var) for n_var in (100, 1_000) for name in USUAL]
RBM_1 = FirstRBM("RBM 1", Images(dataset="mnist", n_images=10_000), n_hidden=30)
PAPER = Comparison(
    problems=dict.fromkeys(LARGE, MARKS) | {RBM_1: MARKS[:5]},  # whose evaluations take long
    # the last one was added after searches had been seen to stand still
    methods=("lea-mvd", "cma-es", "sep-cma-es", "random", "lea-mvd:reset=off"),
    seeds=tuple(range(10)),
)
SMALL: list[Problem] = [Function("sphere", 20), Function("rastrigin", 20)]
QUICK = dataclasses.replace(PAPER, problems=dict.fromkeys(SMALL, MARKS[:6]), seeds=(0, 1, 2))
PROFILES = {"quick": QUICK, "paper": PAPER}

# ---- settings: what to use

SEPARABLE = "sep-cma-es:population_size=16"
READINGS = ("lea-mvd", FORMER, WINNER)
STRATEGIES = ("snes:population_size=16", "snes", "cr-fm-nes:population_size=16", "cr-fm-nes")
SUITE = (8, 10, 12, 15, 17, 24)  # functions of bbob-largescale
EARLY, FIRST = MARKS[:5], MARKS[:3]  # the second is where a reading is chosen
JUDGED: list[Problem] = [Function(name, n_var) for n_var in (100, 1_000) for name in ("sphere", "rastrigin")]
JUDGED += [Function(f"{BBOB}{number}", n_var) for n_var in (160, 640) for number in SUITE]
OTHERS: list[Problem] = [Function(name, n_var) for n_var in (100, 1_000) for name in ("ellipsoid", "rosenbrock")]
USED = (
    # Section 11 has separable CMA-ES and the readings on these problems
    Comparison(problems=dict.fromkeys(JUDGED, EARLY) | {RBM_1: FIRST}, methods=STRATEGIES, seeds=tuple(range(5))),
    Comparison(
        problems=dict.fromkeys(OTHERS, EARLY), methods=(*READINGS, SEPARABLE, *STRATEGIES), seeds=tuple(range(5))
    ),
)
NEAR = [problem for problem in (*JUDGED, *OTHERS) if problem.n_var != 640]
FAR = [Moved(problem.name, problem.n_var) for problem in NEAR]
MOVED = Comparison(problems=dict.fromkeys([*NEAR, *FAR], FIRST), methods=READINGS, seeds=tuple(range(10)))


def used() -> Plan:
    """Return the plan of the searches that say what to use, beside those of Section 11."""
    plans = [comparison.plan()["runs"] for comparison in USED]
    columns = plans[0][0]
    calls = {label: call for _, labeled in plans for label, call in labeled.items()}
    return {"runs": (columns, calls)}


RECORDED = {
    "longer_searches": Recorded(PAPER, PAPER.plan),
    "what_to_use": Recorded(USED, used),
    "what_to_use_moved": Recorded(MOVED, MOVED.plan),
}


class Tables(NamedTuple):
    """What is measured."""

    runs: pd.DataFrame  # the best value of each search after so many evaluations


def tables(profile: str = "recorded", folder: str | Path = ".", *, n_jobs: int = 1) -> Tables:
    """Return the searches: what is recorded, or what is computed here."""
    if profile == "recorded":
        return Tables(read_recorded("longer_searches"))
    plan = results.profile(profile, PROFILES).plan()
    return Tables(**results.tables(plan, folder, n_jobs=n_jobs, label="longer searches"))


# ---- figures


@styled
def plot_longer(runs: pd.DataFrame) -> Figure:
    """Plot geometric means of the best values, bands for 95 % intervals, against evaluations for each variable."""
    means = summarize(runs.dropna(), "best", ["problem", "method", "mark"], geometric=True)
    problems = means.groupby("problem", sort=False)
    rows = (len(problems) + 1) // 2
    figure, axes = panels(rows, 2, height=1.2 + 2.2 * rows, sharex=True)
    for ax, (problem, group) in zip(axes.flat, problems, strict=False):
        for method, line in group.groupby("method", sort=False):
            band(ax, line, "mark", label=named(str(method)), **method_look(str(method)))
        log_scale(ax, "xy")
        ax.set_title(problem)
    for ax in axes.flat[len(problems) :]:
        ax.set_axis_off()
    for ax in axes[-1]:
        ax.set_xlabel("evaluations for each variable")
    figure.supylabel("best value")
    legend(figure)
    return figure
