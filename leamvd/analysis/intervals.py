"""Errors with 95 % intervals: over a run, at its end, of two runs, and by each backend."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from leamvd.analysis.comparison import GROUP, MEASURES, last, quote, scaled, six_digits
from leamvd.analysis.statistics import compared, paired, summarize, texts, unpaired
from leamvd.experiments.methods import trainer_of

MARGIN = 0.02
"""Searches are equivalent whose errors are shown to differ by no more than this part."""


def bands(table: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return the mean of a measure over runs at each iteration, with its 95 % interval and its passes and seconds.

    Errors are per 10,000 images. Where there is one run both ends are its value.
    """
    by = [*GROUP, "iteration"]
    found = summarize(table.assign(value=scaled(table, measure)), "value", by).drop(columns="runs")
    work = table.groupby(by, sort=False)[["passes", "seconds"]].mean().reset_index()
    means: pd.DataFrame = work.merge(found, on=by)
    return means.assign(**{end: means[end].fillna(means["mean"]) for end in ("low", "high")})


def errors(table: pd.DataFrame, measures: Sequence[str] = tuple(MEASURES)) -> pd.DataFrame:
    """Return measures at the last iteration, errors per 10,000 images: means over runs and their 95 % intervals."""
    ends = last(table)
    each = [ends[GROUP].assign(measure=measure, value=scaled(ends, measure)) for measure in measures]
    return summarize(pd.concat(each), "value", ["measure", *GROUP])


def ratios(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """Return the geometric mean of the last errors of `b` over those of `a`, per image, with its 95 % interval.

    It is of the pairs where two seeds or more are shared, else of two samples; `paired` is how many seeds are shared.
    """
    rows = []
    for measure in MEASURES:
        ours, theirs = (
            {cell: own.set_index("seed")[measure] / own.set_index("seed")["n_images"] for cell, own in ends}
            for ends in (last(table).groupby(GROUP, sort=False) for table in (a, b))
        )
        for cell, x in ours.items():
            if cell in theirs:
                y = theirs[cell]
                shared = len(x.index.intersection(y.index))
                found = (paired if shared >= min(2, len(x), len(y)) else unpaired)(y, x)
                rows.append((measure, *cell, shared, found.low, found.effect, found.high))
    return pd.DataFrame(rows, columns=["measure", *GROUP, "paired", "low", "ratio", "high"])


def side_by_side(tables: Mapping[str, pd.DataFrame], measure: str) -> pd.DataFrame:
    """Return one of the `errors` of several runs for reading: a row for each cell, a column of texts for each run."""
    columns = {name: texts(table[table["measure"] == measure].set_index(GROUP)) for name, table in tables.items()}
    order = dict.fromkeys(cell for column in columns.values() for cell in column.index)
    return pd.DataFrame(columns).reindex(pd.MultiIndex.from_tuples(list(order), names=GROUP)).fillna("–")


def by_images(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return test errors with their intervals, a column for each study's number of training images (item E11)."""
    named = {f"{table['n_images'].iloc[0]:,} training images": table for table in tables}
    found = {name: errors(table, ["test_mean_field"]) for name, table in named.items()}
    return side_by_side(found, "test_mean_field")


def improvements(tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return what searches make of their start solutions, on each method's own inputs and the seeds that all have.

    They are the mean-field errors per 10,000 images of the start solution and at the end, and by how many percent they
    have fallen, with its 95 % interval. Contrastive divergence has no start solution.
    """
    seeds = set.intersection(*(set(table["seed"]) for table in tables))
    both = pd.concat(tables)
    searches = both["method"].map(trainer_of) != "cd"
    both = both[(both["inputs"] == "own") & searches & both["seed"].isin(seeds)]
    both = both.assign(error=scaled(both, "mean_field")).sort_values(["layer", "iteration"], kind="stable")
    errors = both.groupby(["layer", "method", "seed"], sort=False)["error"]
    runs = pd.DataFrame({"start": errors.first(), "end": errors.last()}).reset_index()
    runs["fallen"] = 100 * (1 - runs["end"] / runs["start"])
    by = ["layer", "method"]
    fallen = summarize(runs, "fallen", by).set_index(by).rename(columns={"mean": "fallen, %"})
    return runs.groupby(by, sort=False)[["start", "end"]].mean().join(fallen.drop(columns="runs"))


def quoted(improvements: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `improvements`: "fallen-lea-mvd-3", in percent, and with the other sign "risen-"."""
    fallen = improvements[["fallen, %"]].set_axis([""], axis=1).swaplevel()
    return quote("fallen", fallen) | quote("risen", -fallen)


def at_equal_evaluations(table: pd.DataFrame) -> dict[str, float | str]:
    """Return errors over LEA-MVD's on shared inputs, after as many "evaluations" as LEA-MVD's: "cd-error-3" and so on.

    "errors-interval" is how far the widest of all 95 % intervals reaches, in percent.
    """
    shared = table[table["inputs"] == "shared"]
    evaluations = shared.loc[shared["method"] == "lea-mvd", "evaluations"].max()
    ends = last(shared[shared["evaluations"] <= evaluations])
    pairs = [(method, "lea-mvd") for method in ends["method"].unique()]
    found = compared(ends, "mean_field", pairs, by=["layer"])
    widest = pd.concat([found["ratio"] / found["low"], found["high"] / found["ratio"]]).max() - 1
    ratio = found.assign(error="error").set_index(["method", "error", "layer"])[["ratio"]].set_axis([""], axis=1)
    return quote("", ratio) | {"evaluations": float(evaluations), "errors-interval": six_digits(100 * widest)}


def agreement(table: pd.DataFrame) -> pd.DataFrame:
    """Compare the last errors of each search with those of the first one, see `compared`.

    `equivalent` says whether the ratio's interval lies within 1 / (1 + `MARGIN`) and 1 + `MARGIN`, which is two
    one-sided tests at 2.5 %; `seeds` is the standard deviation of the first search's logarithms over seeds.
    """
    first, *others = table["search"].unique()
    by = ["section", "method", "layer"]
    found = compared(table, "mean_field", [(other, first) for other in others], by=by, names="search")
    own = table[table["search"] == first]
    scatter = np.log(own["mean_field"]).groupby([own[name] for name in by]).std().rename("seeds")
    within = found["low"].ge(1 / (1 + MARGIN)) & found["high"].le(1 + MARGIN)
    return found.drop(columns="baseline").assign(equivalent=within).join(scatter, on=by)
