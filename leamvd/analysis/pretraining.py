"""Tables of measurements of stacks: how well networks classify after each kind of start."""

from collections.abc import Sequence

import pandas as pd

from leamvd.analysis.comparison import last, quote
from leamvd.analysis.intervals import texts
from leamvd.analysis.statistics import compared, summarize
from leamvd.experiments.records import Measured
from leamvd.experiments.stacks import STEPS
from leamvd.experiments.studies import RANDOM

_GROUP = ["study", "method"]


def means(table: pd.DataFrame, column: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return means over seeds and their 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        Of `Measured`.
    column : str
        Whose means.
    by : sequence of str
        Columns that tell groups apart, besides study and method: "epoch", "layer".

    Returns
    -------
    DataFrame
        Columns study, method, those of `by`, runs, mean, low, high; no interval (NaN) for one seed.
    """
    return summarize(table, column, [*_GROUP, *by])


def against_cd(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return by how much methods differ from contrastive divergence of the same seed, in the mean.

    Returns
    -------
    DataFrame
        Columns study, method, baseline, runs, difference (method minus baseline), low, high: the 95 % interval.
    """
    pairs = [(method, "cd") for method in table["method"].unique() if method != "cd"]
    found = compared(table, column, pairs, by=["study"], unit="difference")
    return found[["study", "method", "baseline", "runs", "difference", "low", "high"]]


def scores(found: Measured) -> dict[str, pd.DataFrame]:
    """Return what stacks are compared by: study, method, seed and value, by name.

    That is the test error in percent after fine-tuning, "error", after its first epoch, "first", and of a linear probe
    of the highest layer, "probe"; and the log-likelihood of a test image in nats, "likelihood".
    """
    runs, probes, likelihoods = found
    top = probes[probes["layer"] == probes["layer"].max()]
    wrong = {"error": last(runs, "epoch"), "first": runs[runs["epoch"] == 1], "probe": top}
    values = {name: table.assign(value=100 * table["test_error"]) for name, table in wrong.items()}
    return values | {"likelihood": last(likelihoods).rename(columns={"log_likelihood": "value"})}


def overview(found: Measured) -> pd.DataFrame:
    """Return what a reader compares, see `scores`, in text: means over seeds with intervals."""
    names = {"error": "fine-tuned, %", "probe": "linear probe, %", "likelihood": "log-likelihood"}
    columns = {name: means(scores(found)[score], "value").set_index(_GROUP) for score, name in names.items()}
    shown = {name: texts(column, "{:.2f}".format) for name, column in columns.items()}
    return pd.DataFrame({"runs": columns["fine-tuned, %"]["runs"]} | shown)


def quoted(found: Measured) -> dict[str, float | str]:
    """Return the numbers that the section quotes of each study.

    Returns
    -------
    dict of str to float or str
        "7x7-error-cd" and so on, the means of `scores`, where "7x7-error-random" is of the best random weights;
        "7x7-difference", by how much LEA-MVD's error exceeds that of contrastive divergence, and the ends of its
        interval "-low" and "-high"; "7x7-seeds", how many there are; in percent, the error of probes of the images,
        "7x7-probe-pixels", and how many probes took all steps, "7x7-probe-capped"; the log-likelihood of independent
        pixels, "7x7-likelihood-independent", and the largest error of an estimate, "7x7-likelihood-error".
    """
    found = Measured(*(table.assign(study=table["study"].str.removeprefix("mnist-")) for table in found))
    runs, probes, likelihoods = (table.groupby("study") for table in found)
    each = scores(found)
    values = pd.concat([means(table, "value").assign(score=name) for name, table in each.items()])
    random = values[values["method"].str.startswith(RANDOM) & values["score"].isin(["error", "probe"])]
    best = random.groupby(["study", "score"])["mean"].min().reset_index().assign(method="random")
    pairs = against_cd(each["error"], "value").query("method == 'lea-mvd'").set_index("study")
    others = {
        "seeds": runs["seed"].nunique(),
        "probe-pixels": 100 * found.probes[found.probes["layer"] == 0].groupby("study")["test_error"].mean(),
        "probe-capped": 100 * probes["steps"].agg(lambda steps: (steps >= STEPS).mean()),
        "likelihood-independent": likelihoods["independent"].first(),
        "likelihood-error": each["likelihood"].groupby("study")["error"].max(),
        "difference": pairs["difference"],
        "difference-low": pairs["low"],
        "difference-high": pairs["high"],
    }
    shown = pd.concat([values, best]).set_index(["study", "score", "method"])[["mean"]].set_axis([""], axis=1)
    return quote("", shown) | quote("", pd.DataFrame(others))
