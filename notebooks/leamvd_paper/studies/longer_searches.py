"""Section 12: searches that go on where the paper's end.

How far does LEA-MVD come beside CMA-ES with up to a hundred evaluations for each variable, on
functions and an RBM? What should one use for the first ten, by the kind of function?
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from leamvd_paper.data.functions import BBOB, USUAL

from .benchmarks import MARKS, Comparison, FirstRBM, Function, Moved, moved
from .layers import Images, Section
from .plots import facets, legend, log_scale, method_bands, styled
from .results import Plan, Recorded, read_recorded
from .statistics import summarize
from .study_methods import FORMER, RECOMMENDED

# ---- settings


def _on(names: Iterable[str], *sizes: int) -> list[Function]:
    return [Function(name, n_var) for n_var in sizes for name in names]


LARGE = _on(USUAL, 100, 1_000)
RBM_1 = FirstRBM("RBM 1", Images(dataset="mnist", n_images=10_000), n_hidden=30)
PROBLEMS = dict.fromkeys(LARGE, MARKS)
PROBLEMS[RBM_1] = MARKS[:5]  # whose evaluations take long
PAPER = Comparison(
    problems=PROBLEMS,
    # the last one was added after searches had been seen to stand still
    methods=("lea-mvd", "cma-es", "sep-cma-es", "random", "lea-mvd:reset=off"),
    seeds=tuple(range(10)),
)
SMALL = _on(("sphere", "rastrigin"), 20)
QUICK = replace(PAPER, problems=dict.fromkeys(SMALL, MARKS[:6]), seeds=(0, 1, 2))
PROFILES = {"quick": QUICK, "paper": PAPER}

# ---- settings: what to use

SEPARABLE = "sep-cma-es:population_size=16"
READINGS = ("lea-mvd", FORMER, RECOMMENDED)
SIXTEEN = ("snes:population_size=16", "cr-fm-nes:population_size=16")
STRATEGIES = ("snes:population_size=16", "snes", "cr-fm-nes:population_size=16", "cr-fm-nes")
SUITE = (8, 10, 12, 15, 17, 24)  # functions of bbob-largescale
EARLY = MARKS[:5]
FIRST = MARKS[:3]  # where a reading is chosen
JUDGED = _on(("sphere", "rastrigin"), 100, 1_000)
OTHERS = _on(("ellipsoid", "rosenbrock"), 100, 1_000)
OF_SUITE = _on([f"{BBOB}{number}" for number in SUITE], 160)
FIVE = tuple(range(5))
USED = (
    Comparison(
        problems=dict.fromkeys(OTHERS, EARLY),
        methods=(*READINGS, SEPARABLE, *STRATEGIES),
        seeds=FIVE,
    ),
    # where the recommended reading is judged, separable CMA-ES and the readings have run
    Comparison(problems=dict.fromkeys([*JUDGED, *OF_SUITE], EARLY), methods=STRATEGIES, seeds=FIVE),
    Comparison(problems={RBM_1: FIRST}, methods=SIXTEEN, seeds=FIVE),
)
FAR = [Moved(problem.name, problem.n_var) for problem in (*JUDGED, *OTHERS)]
MOVED = Comparison(
    problems=dict.fromkeys([*JUDGED, *OTHERS, *FAR], FIRST),
    methods=READINGS,
    seeds=tuple(range(10)),
)


def used() -> Plan:
    """Return the plan of the searches that say what to use, beside those that judge the reading."""
    calls = {}
    for comparison in USED:
        columns, labeled = comparison.plan()["runs"]
        calls.update(labeled)
    return {"runs": (columns, calls)}


RECORDED = {
    "longer_searches": Recorded(PAPER, PAPER.plan),
    "what_to_use": Recorded(USED, used),
    "what_to_use_moved": Recorded(MOVED, MOVED.plan),
}


class Tables(NamedTuple):
    """What is measured."""

    runs: pd.DataFrame  # the best value of each search after so many evaluations


def recorded() -> Tables:
    """Return what is recorded."""
    return Tables(read_recorded("longer_searches"))


tables = Section(Tables, PROFILES, Comparison.plan, recorded, "longer searches")


# ---- tables: what to use

KINDS = {
    **dict.fromkeys(("sphere", "ellipsoid", "rosenbrock", "F8", "F10", "F12"), "smooth"),
    **dict.fromkeys(("rastrigin", "F15", "F17", "F24"), "many local minima"),
    "RBM 1": "RBM 1",
}
"""What functions are like, by their names; F8 to F24 are those of the suite."""

DRAWN = ("snes:population_size=16", "cr-fm-nes:population_size=16", "lea-mvd", RECOMMENDED)


def early() -> pd.DataFrame:
    """Return the recorded searches by which the methods for the first evaluations are compared,
    those that judge the recommended reading too.
    """
    judged = read_recorded("preset_judged")
    judged = judged[judged["method"].isin([SEPARABLE, *READINGS])]
    again = read_recorded("preset_again")
    again = again[~again["method"].isin(judged["method"])]
    table = pd.concat([judged, again, read_recorded("what_to_use")], ignore_index=True)
    table = table.query("mark in @EARLY")
    return table.assign(problem=table["problem"].str.replace(BBOB, "F"))


def over_separable(table: pd.DataFrame) -> pd.DataFrame:
    """Return the searches of all other methods with `ratio`: their best over separable CMA-ES's, of
    the same seed.
    """
    place = ["problem", "mark", "seed"]
    separable = table.query("method == @SEPARABLE").set_index(place)["best"].rename("separable")
    others = table.query("method != @SEPARABLE").join(separable, on=place)
    return others.assign(ratio=others.eval("best / separable"))


def by_kind(ratios: pd.DataFrame) -> pd.DataFrame:
    """Return the ratio of each kind, method and mark: a geometric mean, with its interval over
    problems.

    In the one RBM the interval is over seeds. Problems on which SNES did not run are left out.
    """
    kind = ratios["problem"].str.partition(",")[0].map(KINDS)
    everywhere = ratios.query("method == 'snes:population_size=16'")["problem"]
    some = ratios.assign(kind=kind)[ratios["problem"].isin(everywhere)]
    by = ["kind", "method", "mark"]
    problems = summarize(some, "ratio", [*by, "problem"], geometric=True, mean="ratio")
    counted = [some.query("kind == 'RBM 1'"), problems.query("kind != 'RBM 1'")]
    rows = pd.concat([summarize(table, "ratio", by, geometric=True) for table in counted])
    return rows.sort_values(by, ignore_index=True)


def choice(ratios: pd.DataFrame, moved_searches: pd.DataFrame) -> pd.DataFrame:
    """Return for each reading its ratio at 0.5 to 2 evaluations for each variable, and what the
    origin costs it.

    A problem counts once, whatever marks it has. Both are geometric means over problems, with their
    intervals.
    """
    first = ratios.query("mark in @FIRST and method in @READINGS")
    marks = summarize(first, "ratio", ["method", "problem", "mark"], geometric=True)
    problems = summarize(marks, "mean", ["method", "problem"], geometric=True)
    table = summarize(problems, "mean", ["method"], geometric=True).set_index("method")
    costs = summarize(moved(moved_searches), "ratio", ["method", "problem"], geometric=True)
    costs = summarize(costs, "mean", ["method"], geometric=True).set_index("method")
    costs = costs.drop(columns="runs").add_prefix("cost ")
    return table.drop(columns="runs").join(costs).sort_values("mean").reset_index()


# ---- figures


@styled
def plot_longer(runs: pd.DataFrame) -> Figure:
    """Plot geometric means of the best values, bands for 95 % intervals, against evaluations for
    each variable.
    """
    means = summarize(runs.dropna(), "best", ["problem", "method", "mark"], geometric=True)
    figure, parts = facets(means, "problem", 2.2, columns=2, sharex=True)
    for ax, problem, group in parts:
        method_bands(ax, group, "mark")
        log_scale(ax, "xy")
        ax.set_title(problem)
    # the lowest row, also of a panel that is left empty
    for ax in figure.axes[-2:]:
        ax.set_xlabel("evaluations for each variable")
    figure.supylabel("best value")
    legend(figure)
    return figure


@styled
def plot_used(ratios: pd.DataFrame) -> Figure:
    """Plot ratios to separable CMA-ES against evaluations for each variable: a panel a problem,
    bands for seeds.

    Where a line leaves the panel the method is more than ten times as high.
    """
    drawn = ratios.query("method in @DRAWN")
    means = summarize(drawn, "ratio", ["problem", "method", "mark"], geometric=True)
    means["rough"] = means["problem"].str.partition(",")[0].map(KINDS) != "smooth"
    means["place"] = means["method"].map(DRAWN.index)
    order = means.sort_values("rough", kind="stable")
    figure, parts = facets(order, "problem", 1.35, columns=4, sharex=True, sharey=True)
    for ax, problem, group in parts:
        method_bands(ax, group.sort_values("place", kind="stable"), "mark")
        ax.axhline(1, color="k", linewidth=0.8)
        log_scale(ax, "xy")
        ax.set_title(problem.replace(", ", "\n"), fontsize="small")
    figure.axes[0].set(ylim=(0.3, 10), xticks=EARLY)
    figure.axes[0].minorticks_off()
    for ax in figure.axes[-4::2]:
        ax.set_xlabel("evaluations for\neach variable")
    figure.supylabel("best value / that of separable CMA-ES")
    legend(figure, ncols=2)
    return figure
