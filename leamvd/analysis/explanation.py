"""What slope and curvature around the start solutions say of the searches, beside what the searches found."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from leamvd.analysis.comparison import left_at, quote, six_digits
from leamvd.analysis.rules import PRINTED, REGISTERED
from leamvd.analysis.statistics import Effect, paired, summarize
from leamvd.experiments.methods import Method
from leamvd.networks.dbn import Training
from leamvd.optimizers.local_model import LocalModel, order_statistics, quality
from leamvd.optimizers.selection import fractional_tournament

POPULATION_SIZE, GENERATIONS = 24, 49
"""Of the paper: the first of its 50 generations makes the population that the others move."""

QUALITIES = {
    "paper": quality(fractional_tournament(POPULATION_SIZE, 1.5)),
    "best": quality(order_statistics(POPULATION_SIZE)),
}
"""See `leamvd.optimizers.local_model.quality`: of the paper's weights, and of the best that there are."""

LAYER = ["study", "layer"]

_SEARCH = [*LAYER, "method", "seed"]


def pairs(table: pd.DataFrame) -> pd.DataFrame:
    """Return pairs with what theory makes of each row, at each of their step sizes.

    `step_size` is sigma*; `scatter_share` the standard deviation of z'Hz over its mean; and for each of `QUALITIES` how
    many percent of the error a generation can gain at most.
    """
    models = [LocalModel(*row) for row in table[list(LocalModel._fields)].itertuples(index=False)]
    gains = {
        f"{name} gain, %": [100 * model.gain(value) / model.value for model in models]
        for name, value in QUALITIES.items()
    }
    return table.assign(
        step_size=[model.step_size(POPULATION_SIZE) for model in models],
        scatter_share=table["scatter"] / table["curvature"],
        **gains,
    )


def over_seeds(table: pd.DataFrame, column: str) -> pd.DataFrame:
    """Return the geometric means of a column of `pairs` by layer and step size, with their 95 % intervals."""
    return summarize(table, column, [*LAYER, "sigma"], geometric=True)


def falls(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return by how many percent the last value of each search lies below its first, by study, layer, method and seed.

    That is 100 where a surrogate, which an error is not, falls below zero. `left` is the generation in which it first
    falls, and infinite where none does.
    """
    runs = table.sort_values("iteration", kind="stable").groupby(_SEARCH, sort=False)[value]
    ends = pd.DataFrame({"first": runs.first(), "last": runs.last(), "left": left_at(table, value, _SEARCH)})
    return ends.assign(fall=100 * (1 - ends["last"].clip(lower=0) / ends["first"])).reset_index()


def predicted_and_measured(surrogates: pd.DataFrame, retrodictions: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return predicted and measured falls in percent, a row for each layer and method: means over seeds.

    `predicted` and `retrodicted` are those of searches on slope and curvature alone: on the inputs that a stack of
    start solutions makes, and on those that the searches below have made. `measured` are those on the layer's error,
    with their 95 % interval where there are three runs or more. The shares are those of the searches that left the
    start solution, and the generations the medians of when they did, NaN where most never did.
    """
    by = [*LAYER, "method"]
    table = falls(runs, "mean_field")
    found = summarize(table, "fall", by).drop(columns="mean").set_index(by)
    found.loc[found["runs"] < 3, ["low", "high"]] = np.nan  # of two runs it is 13 times their standard error
    kinds = {"measured": table, "predicted": falls(surrogates, "best"), "retrodicted": falls(retrodictions, "best")}
    for name, table in kinds.items():
        searches = table.assign(moved=np.isfinite(table["left"])).groupby(by)
        found[[name, f"share {name}"]] = searches[["fall", "moved"]].mean()
        found[f"generation {name}"] = searches["left"].median().replace(np.inf, np.nan)
    settings = [dict(Method.parse(method).settings) for method in found.index.get_level_values("method")]
    sigma0 = [own.get("sigma0", Training.sigma0) for own in settings]
    return found.assign(sigma0=sigma0, reset=[own.get("reset") != "off" for own in settings]).reset_index()


def generations_off(retrodictions: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """Return how many generations before or after the retrodicted one searches leave their start: medians by study.

    They are those of the searches that leave it, and should after their first generation.
    """
    said, found = left_at(retrodictions, "best", _SEARCH), left_at(runs, "mean_field", _SEARCH)
    off = (found - said).abs()[(said > 1) & np.isfinite(said) & np.isfinite(found)].to_frame("off")
    medians: pd.DataFrame = off.groupby("study", sort=False).median()
    return medians


def retrodicted(surrogates: pd.DataFrame, studies: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return in how many runs of recorded studies LEA-MVD left its start, and in how many slope and curvature say so.

    "right" counts the runs for which they say what was found. Rows are by study, layer and inputs.
    """
    runs = pd.concat([table.assign(study=study) for study, table in studies.items()])
    runs = runs[(runs["method"] == "lea-mvd") & ((runs["layer"] > 1) | (runs["inputs"] == "own"))]
    by = [*LAYER, "inputs", "seed"]
    left = {"retrodicted": left_at(surrogates, "best", by), "left": left_at(runs, "mean_field", by)}
    moved = pd.DataFrame(left).dropna() < np.inf
    moved = moved.assign(right=moved["retrodicted"] == moved["left"], runs=True)
    counts: pd.DataFrame = moved.groupby(by[:-1], sort=False).sum()
    return counts


def reach(pairs: pd.DataFrame, sigma: float) -> pd.DataFrame:
    """Return how far the error of each layer can fall in all generations together, in percent, with 95 % intervals.

    A generation gains at most the share of the error that `pairs` says, at one step size, if slope and curvature keep
    their relation to the error; all together compound. Rows are by study, layer and inputs.
    """
    table, by = pairs[np.isclose(pairs["sigma"], sigma)], [*LAYER, "inputs"]
    found: list[pd.DataFrame] = []
    for name in QUALITIES:
        ends = summarize(table, f"{name} gain, %", by, geometric=True).set_index(by)[["mean", "low", "high"]]
        found.append(_compound(ends, GENERATIONS).add_prefix(f"{name}, "))
    return pd.concat(found, axis=1)


def needed(study: str, table: pd.DataFrame) -> pd.DataFrame:
    """Return how far LEA-MVD's error must fall from its start for what the paper claims, in percent, 95 % intervals.

    "fell" is how far it fell in the study. Rows are by study, layer, inputs, and what it is to end "below": contrastive
    divergence of the same seed, or on own inputs what counts as the number that the paper prints (claims C7 and C8).
    """
    rows = []
    printed: dict[Any, float] = {layer: number for (method, layer), number in PRINTED.items() if method == "lea-mvd"}
    table = table[(table["layer"] > 1) | (table["inputs"] == "own")]  # the first layer has the same inputs
    for (layer, inputs), own in table.sort_values("iteration", kind="stable").groupby(["layer", "inputs"]):
        runs = {method: run.groupby("seed") for method, run in own.groupby("method")}
        searches, below = runs["lea-mvd"]["mean_field"], {"cd": runs["cd"]["mean_field"].last()}
        fell = _fallen(paired(searches.last(), searches.first()))[0]
        if layer in printed and (study, inputs) == ("mnist-28x28", "own"):
            most = REGISTERED.factor * printed[layer]
            below[f"{printed[layer]:,.0f}"] = most * runs["lea-mvd"]["n_images"].last() / 1e4
        for name, end in below.items():
            rows.append((study, layer, inputs, name, fell, *_fallen(paired(end, searches.first()))))
    return pd.DataFrame(rows, columns=[*LAYER, "inputs", "below", "fell", "needed", "low", "high"])


def judged(needed: pd.DataFrame, reach: pd.DataFrame, largest: float) -> pd.DataFrame:
    """Return what is `needed` beside what all generations can `reach`, and the answer.

    "furthest" is the upper end of the bound for the best weights, if the error falls faster than it by the largest
    `misfit` of all layers; what is needed is "out of reach" beyond it alone.
    """
    rows = needed.join(reach, on=[*LAYER, "inputs"])
    rows["furthest"] = _compound(rows["best, high"], largest)
    answers = {"reached": rows["fell"] >= rows["needed"], "out of reach": rows["furthest"] < rows["low"]}
    return rows.assign(answer=np.select([*answers.values()], [*answers], "not reached"))


def misfit(reach: pd.DataFrame, both: pd.DataFrame) -> pd.DataFrame:
    """Return the largest fall of `predicted_and_measured` in each layer, and how it compares with the bound.

    "misfit" is how many times faster, generation by generation, the error fell than the paper's weights allow.
    """
    best = both.loc[both.groupby(LAYER)["measured"].idxmax()].set_index(LAYER)[["sigma0", "measured"]]
    bound = reach.xs("own", level="inputs")["paper, mean"]
    return best.join(bound).assign(misfit=lambda rows: _rate(rows["measured"]) / _rate(rows["paper, mean"]))


def _fallen(ratio: Effect) -> list[float]:
    """Return a ratio and the ends of its interval, the lower one first, as a fall in percent."""
    return [100 * (1 - end) for end in (ratio.effect, ratio.high, ratio.low)]


def _compound(fall: Any, times: float) -> Any:
    """Return what a fall in percent comes to when it happens so many times; no error falls below zero."""
    return 100 * (1 - (1 - (fall / 100).clip(upper=1)) ** times)


def _rate(fall: Any) -> Any:
    return -np.log1p(-fall / 100)


def scaling(
    pairs: pd.DataFrame, surrogates: pd.DataFrame, runs: pd.DataFrame, steps: pd.DataFrame
) -> dict[str, pd.DataFrame]:
    """Return falls of the error in percent for layers of ever more hidden units: means over seeds, 95 % intervals.

    Those of the searches, "measured", and of their surrogates, "predicted", are of the setting that falls furthest in
    the mean; those of "one gradient step" are of a step each. Rows are by the number of variables, `n_var`.
    """
    first = pairs.set_index(["n_hidden", "seed"])[["n_var", "value"]]
    ends = {"measured": (runs, "mean_field"), "predicted": (surrogates, "best"), "one gradient step": (steps, "best")}
    found = {}
    for kind, (table, column) in ends.items():
        rows = table[["n_hidden", "seed", column]].join(first, on=["n_hidden", "seed"])
        rows["fall"] = 100 * (1 - rows[column].clip(lower=0) / rows["value"])
        rows["method"] = table.get("method", kind)
        means = summarize(rows, "fall", ["n_var", "method"])
        found[kind] = means.loc[means.groupby("n_var")["mean"].idxmax()].set_index("n_var")
    return found


def quoted(pairs: pd.DataFrame, both: pd.DataFrame, sigma: float) -> dict[str, float | str]:
    """Return what prose quotes of each study: "step-1" and "scatter-1" of `pairs` at a step size, by layer.

    "best-1" and "best-sigma0-1" are the largest fall that was measured and its first standard deviation, "half-1" is
    that of the first standard deviation nearest to half of the step, "default-1" that of the paper's setting, and
    "misfit-1" the largest ratio of a measured fall to the one that the searches' own inputs let expect. Those of a
    second study begin with "large". "predicted" and "retrodicted" count the rows of `predicted_and_measured`, all of
    them "settings", where most of the searches left their start and most were said to, or neither.
    """
    moved = {name: both[f"share {name}"] > 0.5 for name in ("predicted", "retrodicted", "measured")}
    counts = {name: int((moved[name] == moved["measured"]).sum()) for name in ("predicted", "retrodicted")}
    qualities = {f"quality-{name}": six_digits(value) for name, value in QUALITIES.items()}
    found: dict[str, float | str] = {**counts, **qualities, "settings": len(both)}
    at = pairs[np.isclose(pairs["sigma"], sigma)]
    for prefix, (study, rows) in zip(("", "large"), both.groupby("study", sort=False), strict=False):
        found |= quote(prefix, _by_layer(at[at["study"] == study], rows).T)
    return found


def _by_layer(pairs: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    """Return what is quoted of one study, of `pairs` at one step size and rows of `predicted_and_measured`."""
    step = summarize(pairs, "step_size", ["layer"], geometric=True).set_index("layer")["mean"]
    found = pd.DataFrame({"step": step, "scatter": pairs.groupby("layer")["scatter_share"].mean()})
    reset = rows[rows["reset"]]
    reset = reset.assign(away=np.abs(np.log(reset["sigma0"] / reset["layer"].map(step / 2))))
    chosen = {"best": rows.groupby("layer")["measured"].idxmax(), "half": reset.groupby("layer")["away"].idxmin()}
    for name, places in chosen.items():
        there = rows.loc[places].set_index("layer")
        found[name], found[f"{name}-sigma0"] = there["measured"], there["sigma0"]
    found["default"] = reset[reset["sigma0"] == Training.sigma0].set_index("layer")["measured"]
    ratio = (rows["measured"] / rows["retrodicted"]).where(rows["retrodicted"] > 1)
    return found.assign(misfit=ratio.groupby(rows["layer"]).max())
