"""Tables of measurements of stacks: how well networks classify after each kind of start."""

from collections.abc import Sequence

import pandas as pd

from leamvd.analysis.comparison import last, quote
from leamvd.analysis.statistics import compared, components, summarize, texts
from leamvd.experiments.stacks import STEPS
from leamvd.studies.records import Measured
from leamvd.studies.study import ONE_EPOCH, RANDOM

_GROUP = ["study", "method"]


def means(table: pd.DataFrame, column: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return means over seeds and their 95 % intervals, by study, method and the columns `by`: "epoch", "layer"."""
    return summarize(table, column, [*_GROUP, *by])


def against_cd(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return by how much methods exceed contrastive divergence of the same seed: mean differences, 95 % intervals."""
    pairs = [(method, "cd") for method in table["method"].unique() if method != "cd"]
    return compared(table, column, pairs, by=["study"], unit="difference").drop(columns=["equal", "p"])


def over_test_images(mistakes: pd.DataFrame, method: str, baseline: str, n_images: int) -> float:
    """Return half the width of the 95 % interval of the log ratio of two test errors, over seeds and test images.

    Both are random and crossed, see `components`. Of so many images those that a network of a seed gets wrong are
    listed. The ratio of mean errors is linearized: each image counts with its share of either.
    """
    shares = []
    for name in (method, baseline):
        listed = mistakes[mistakes["method"] == name].assign(wrong=1.0)
        wrong = listed.pivot(index="image", columns="seed", values="wrong").reindex(range(n_images)).fillna(0.0)
        shares.append(wrong / wrong.to_numpy().mean())
    cells = (shares[0] - shares[1]).stack().rename("share").reset_index()
    found = components(cells, "share", "image", "seed")
    return float(found["high"] - found["mean"])


def scores(found: Measured) -> dict[str, pd.DataFrame]:
    """Return what stacks are compared by, as tables with a column "value".

    Test errors in percent after fine-tuning, "error", after its first epoch, "first", and of a linear probe of the
    highest layer, "probe"; and the log-likelihood of a test image in nats, "likelihood".
    """
    runs, probes, likelihoods = found
    top = probes[probes["layer"] == probes["layer"].max()]
    wrong = {"error": last(runs, "epoch"), "first": runs[runs["epoch"] == 1], "probe": top}
    values = {name: table.assign(value=100 * table["test_error"]) for name, table in wrong.items()}
    return values | {"likelihood": last(likelihoods).rename(columns={"log_likelihood": "value"})}


def overview(found: Measured) -> pd.DataFrame:
    """Return what a reader compares, see `scores`, in text: means over seeds with intervals."""
    names = {"error": "fine-tuned, %", "probe": "linear probe, %", "likelihood": "log-likelihood"}
    each = scores(found)
    columns = {name: means(each[score], "value").set_index(_GROUP) for score, name in names.items()}
    shown = {name: texts(column, "{:.2f}".format) for name, column in columns.items()}
    return pd.DataFrame({"runs": columns["fine-tuned, %"]["runs"]} | shown)


def quoted(found: Measured) -> dict[str, float | str]:
    """Return the numbers that the section quotes of each study: "7x7-error-cd" and so on, the means of `scores`.

    "7x7-error-random" is of the best random weights; "7x7-difference" by how much LEA-MVD's error exceeds that of
    contrastive divergence, and "7x7-searched" that of the start solution; "7x7-probe-pixels" the error of probes of the
    images in percent, and "7x7-probe-capped" how many percent of the probes took all steps;
    "7x7-likelihood-independent" the log-likelihood of independent pixels, and "7x7-likelihood-error" the largest error
    of an estimate.
    """
    found = Measured(*(table.assign(study=table["study"].str.removeprefix("mnist-")) for table in found))
    runs, probes, likelihoods = (table.groupby("study") for table in found)
    each = scores(found)
    values = pd.concat([means(table, "value").assign(score=name) for name, table in each.items()])
    random = values[values["method"].str.startswith(RANDOM) & values["score"].isin(["error", "probe"])]
    best = random.groupby(["study", "score"])["mean"].min().reset_index().assign(method="random")
    pairs = against_cd(each["error"], "value").query("method == 'lea-mvd'").set_index("study")
    searched = compared(each["error"], "value", [("lea-mvd", ONE_EPOCH)], by=["study"], unit="difference").set_index(
        "study"
    )
    others = {
        "seeds": runs["seed"].nunique(),
        "probe-pixels": 100 * found.probes[found.probes["layer"] == 0].groupby("study")["test_error"].mean(),
        "probe-capped": 100 * probes["steps"].agg(lambda steps: (steps >= STEPS).mean()),
        "likelihood-independent": likelihoods["independent"].first(),
        "likelihood-error": each["likelihood"].groupby("study")["error"].max(),
        "difference": pairs["difference"],
        "difference-low": pairs["low"],
        "difference-high": pairs["high"],
        "searched": searched["difference"],
        "searched-low": searched["low"],
        "searched-high": searched["high"],
    }
    shown = pd.concat([values, best]).set_index(["study", "score", "method"])[["mean"]].set_axis([""], axis=1)
    return quote("", shown) | quote("", pd.DataFrame(others))
