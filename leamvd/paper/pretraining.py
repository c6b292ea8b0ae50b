"""What measurements of stacks say: how well networks classify after each kind of start, as tables."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from leamvd.paper import classification, intervals, records
from leamvd.paper.comparison import six_digits
from leamvd.paper.pieces import RANDOM, Measurement, Piece
from leamvd.paper.studies import Classification

KEY = ["study", "method", "seed"]
"""What tells one stack from another: the section that it is from, what has trained it, and its seed."""

RECORDED = ("classification", "classification_28x28")
"""Names under which measurements are recorded."""


class Measured(NamedTuple):
    """Tables with the columns of `KEY`."""

    runs: pd.DataFrame  # fine-tuning: epoch, test_error, loss
    probes: pd.DataFrame  # layer (0: the images), train_error, test_error, steps, features_std
    likelihoods: pd.DataFrame  # iteration, chains, log_likelihood, log_z, error, independent


def run(study: Classification, output: str | Path, *, progress: bool = False) -> Measured:
    """Train and measure what of a study is not stored, as `leamvd.paper.records.run` does, and return what was found.

    Errors are shares of wrong images.
    """
    return measured(study, records.pieces(study, output, progress=progress))


def measured(
    study: Classification, found: Mapping[Piece, pd.DataFrame] | Mapping[Measurement, pd.DataFrame]
) -> Measured:
    """Return a study's measurements, given the stored tables of its pieces."""
    own = {piece: one for piece, one in found.items() if isinstance(piece, Measurement)}
    return Measured(*(table(study, own, what) for what in ("fine-tuning", "probe", "likelihood")))


def table(study: Classification, found: Mapping[Measurement, pd.DataFrame], what: str) -> pd.DataFrame:
    """Return the measurements of a kind as one of the tables of `Measured`."""
    name = f"mnist-{study.side}x{study.side}"
    tables = [
        one.assign(study=name, method=piece.method, seed=piece.seed)
        for piece, one in found.items()
        if piece.what == what
    ]
    joined = pd.concat(tables, ignore_index=True)
    if what == "probe":
        joined = joined.drop(columns="iteration")
    elif what == "fine-tuning":
        joined = joined.rename(columns={"iteration": "epoch"})
    joined = joined[[*KEY, *joined.columns.difference(KEY, sort=False)]]
    starts = [piece.method for piece in study.measurements()]
    order = {method: i for i, method in enumerate(dict.fromkeys(starts))}
    return joined.sort_values("method", key=lambda column: column.map(order), kind="stable", ignore_index=True)


def recorded_names() -> list[str]:
    """Return those of `RECORDED` that are there."""
    return [name for name in RECORDED if records.is_recorded(name)]


def recorded() -> Measured | None:
    """Return what is recorded, of both sizes of images where both are; None where nothing is."""
    found = [[records.recorded(name, table) for table in Measured._fields] for name in recorded_names()]
    return Measured(*(pd.concat(tables, ignore_index=True) for tables in zip(*found, strict=True))) if found else None


def final(table: pd.DataFrame, step: str) -> pd.DataFrame:
    """Return the last row of each stack, by the column `step`: "epoch" or "iteration"."""
    last: pd.DataFrame = table[table[step] == table.groupby(KEY)[step].transform("max")]
    return last


def means(table: pd.DataFrame, column: str, by: Sequence[str] = ()) -> pd.DataFrame:
    """Return means over seeds and their 95 % intervals.

    Parameters
    ----------
    table : DataFrame
        Of `Measured`.
    column : str
        Whose means.
    by : sequence of str
        Columns that tell groups apart beside study and method: "epoch", "layer".

    Returns
    -------
    DataFrame
        Columns study, method, those of `by`, runs, mean, low, high; no interval (NaN) for one seed.
    """
    group, rows = ["study", "method", *by], []
    for cell, values in table.groupby(group, sort=False)[column]:
        low, mean, high = intervals.interval(values.to_numpy())
        rows.append((*cell, len(values), mean, low, high))
    return pd.DataFrame(rows, columns=[*group, "runs", "mean", "low", "high"])


def paired(table: pd.DataFrame, column: str, baseline: str = "cd") -> pd.DataFrame:
    """Return by how much methods differ from a baseline of the same seed, in the mean, with 95 % intervals.

    Returns
    -------
    DataFrame
        Columns study, method, baseline, runs, difference (method minus baseline), low, high.
    """
    rows = []
    for study, own in table.groupby("study", sort=False):
        values = own.pivot(index="seed", columns="method", values=column)
        for method in own["method"].unique():
            if method != baseline and baseline in values:
                pairs = (values[method] - values[baseline]).dropna().to_numpy()
                low, mean, high = intervals.interval(pairs)
                rows.append((study, method, baseline, len(pairs), mean, low, high))
    return pd.DataFrame(rows, columns=["study", "method", "baseline", "runs", "difference", "low", "high"])


def summary(found: Measured) -> pd.DataFrame:
    """Return what a reader compares: errors in percent and log-likelihoods in nats, means over seeds with intervals."""
    last, top = final(found.runs, "epoch"), found.probes[found.probes["layer"] == found.probes["layer"].max()]
    columns = {
        "fine-tuned, %": means(last.assign(value=100 * last["test_error"]), "value"),
        "linear probe, %": means(top.assign(value=100 * top["test_error"]), "value"),
        "log-likelihood": means(final(found.likelihoods, "iteration"), "log_likelihood"),
    }
    texts = {
        name: pd.Series(
            [
                intervals.text(*values, "{:.2f}".format)
                for values in zip(table["mean"], table["low"], table["high"], strict=True)
            ],
            index=pd.MultiIndex.from_frame(table[["study", "method"]]),
        )
        for name, table in columns.items()
    }
    runs = columns["fine-tuned, %"].set_index(["study", "method"])["runs"]
    return pd.DataFrame({"runs": runs} | texts)


def quoted(found: Measured) -> dict[str, float | int]:
    """Return the numbers that the section quotes of each study, "7x7-error-cd" say, to six digits; errors in %."""
    numbers: dict[str, float | int] = {}
    for study in found.runs["study"].unique():
        own = _quoted(Measured(*(table[table["study"] == study] for table in found)))
        numbers |= {f"{study.removeprefix('mnist-')}-{name}": value for name, value in own.items()}
    return {name: six_digits(value) if isinstance(value, float) else value for name, value in numbers.items()}


def _quoted(found: Measured) -> dict[str, float | int]:
    """Return the numbers of one study."""
    runs, probes, likelihoods = found
    last, top = final(runs, "epoch"), probes[probes["layer"] == probes["layer"].max()]
    chains = final(likelihoods, "iteration")
    groups = {
        "error": 100 * last.groupby("method", sort=False)["test_error"].mean(),
        "first": 100 * runs[runs["epoch"] == 1].groupby("method")["test_error"].mean(),
        "probe": 100 * top.groupby("method")["test_error"].mean(),
        "likelihood": chains.groupby("method")["log_likelihood"].mean(),
    }
    numbers: dict[str, float | int] = {
        f"{name}-{method}": float(value) for name, group in groups.items() for method, value in group.items()
    }
    for name in ("error", "probe"):
        numbers[f"{name}-random"] = float(groups[name].filter(regex=f"^{RANDOM}").min())
    pairs = paired(last, "test_error").set_index("method").reindex(["lea-mvd"])
    return numbers | {
        "seeds": int(last["seed"].nunique()),
        "probe-pixels": float(100 * probes.loc[probes["layer"] == 0, "test_error"].mean()),
        "probe-capped": float(100 * (probes["steps"] >= classification.STEPS).mean()),
        "likelihood-independent": float(chains["independent"].iloc[0]),
        "likelihood-error": float(chains["error"].max()),
        "difference": float(100 * pairs["difference"].iloc[0]),
        "difference-low": float(100 * pairs["low"].iloc[0]),
        "difference-high": float(100 * pairs["high"].iloc[0]),
    }
