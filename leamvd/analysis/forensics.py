"""The search for what the paper may have run: which settings and ways to count come nearest to its numbers.

Exploratory. The paper gives three errors of 28 x 28 pixels, and leaves open what is summed over how many images (items
E2, E11), what contrastive divergence starts from (E8), what it hands to the search (E5), how far the search looks at
first, how the algorithm is read (R1-R19), and what the upper layers see (E7). A study crosses the settings; the ways to
count cost nothing, and every combination is counted in all of them. How near it comes is one number, `FACTOR`.
"""

from itertools import product

import numpy as np
import pandas as pd

from leamvd.analysis.comparison import last, quote, six_digits
from leamvd.analysis.rules import PRINTED
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.studies.study import Study

SUMMED = {
    "mean-field": {"cd": "mean_field", "lea-mvd": "mean_field"},
    "sampled": {"cd": "sampled", "lea-mvd": "sampled"},
    "each its own": {"cd": "sampled", "lea-mvd": "mean_field"},
}
"""Errors that are summed (item E2); "each its own": the one that a method computes anyway, bits or the mean field."""

IMAGES = (10_000, 60_000)
"""Images over which the sum may run: the test images, or the training images."""

NUMBERS = {f"{method}, RBM {layer}": number for (method, layer), number in PRINTED.items()}
"""The paper's numbers, by the columns that hold ours."""

SETTINGS = ["weights", "start", "sigma0", "reading", "inputs"]
"""Columns that say how a combination was run."""

COUNTED = ["measure", "images"]
"""Columns that say how its errors are counted."""

FACTOR = "factor"
"""By how much a combination misses: exp of the root mean square of log(ours / the paper's) over the three numbers."""

SHOWN = [*SETTINGS, *COUNTED, *NUMBERS, FACTOR]
"""Columns of `distances` for reading; those behind them are the names of methods."""


def combinations(study: Study) -> pd.DataFrame:
    """Return what can be compared with the paper's numbers: each search with contrastive divergence, the `baseline`.

    Both start from the same kind of first weights; where the search has no start solution, from any.
    """
    trained = [name for name in study.methods if name.startswith("cd") and study.training_of(name).learning_rate]
    searches = [name for name in study.methods if name.startswith("lea-mvd")]
    rows = []
    for method, baseline in product(searches, trained):
        search, weights = study.training_of(method), _weights(study.training_of(baseline))
        if search.x0 == "none" or _weights(search) == weights:
            sigma0 = "–" if search.x0 == "none" else f"{search.sigma0:g}"
            named = (weights, search.x0, sigma0, _reading(study, method))
            rows += [(*named, inputs, method, baseline) for inputs in study.inputs]
    return pd.DataFrame(rows, columns=[*SETTINGS, "method", "baseline"])


def _weights(training: Training) -> str:
    """Return the distribution of the first weights."""
    return (
        f"N(0, {training.weight_scale:g})" if training.initial_weights == "normal" else f"U(±{training.weight_scale:g})"
    )


def _reading(study: Study, method: str) -> str:
    names, own = ("default", "x0-excluded", "printed"), study.reading_of(method)
    return next((name for name in names if Reading.named(name, study.reading) == own), "other")


def distances(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """Return how near each combination of a study comes, counted in every way; errors are geometric means over runs."""
    rows = combinations(study).merge(pd.DataFrame(product(SUMMED, IMAGES), columns=COUNTED), how="cross")
    ends = last(table)
    logs = ends[["mean_field", "sampled"]].div(ends["n_images"], axis=0).apply(np.log)
    errors = logs.groupby([ends[key] for key in ("method", "inputs", "layer")]).mean().apply(np.exp)
    for name, (trainer, layer) in zip(NUMBERS, PRINTED, strict=True):
        who = rows["baseline" if trainer == "cd" else "method"]
        keys = zip(rows["measure"], who, rows["inputs"], rows["images"], strict=True)
        rows[name] = [
            images * errors.loc[(method, inputs, layer), SUMMED[measure][trainer]]
            for measure, method, inputs, images in keys
        ]
    missed = np.log(rows[list(NUMBERS)].to_numpy(dtype=float) / list(NUMBERS.values()))
    rows[FACTOR] = np.exp(np.sqrt((missed**2).mean(axis=1)))
    return rows[[*SHOWN, "method", "baseline"]]


def nearest(rows: pd.DataFrame, count: int) -> pd.DataFrame:
    """Return the combinations that come nearest, each counted in its best way, from `distances`; the nearest first."""
    ordered = rows.sort_values(FACTOR, kind="stable")
    return ordered.drop_duplicates(SETTINGS).head(count).reset_index(drop=True)


def methods(rows: pd.DataFrame) -> tuple[str, ...]:
    """Return the methods that a study must have to confirm these combinations: baselines first, each once."""
    return tuple(dict.fromkeys([*rows["baseline"], *rows["method"]]))


def effects(rows: pd.DataFrame) -> pd.DataFrame:
    """Return, from `distances`, geometric means of the numbers by what is chosen, and the smallest `FACTOR`."""
    found = [
        (choice, str(level), *np.exp(np.log(group[list(NUMBERS)]).mean()), group[FACTOR].min())
        for choice in (*SETTINGS, *COUNTED)
        for level, group in rows.groupby(choice, sort=False)
    ]
    return pd.DataFrame(found, columns=["choice", "", *NUMBERS, FACTOR]).set_index(["choice", ""])


def untrained(study: Study, table: pd.DataFrame) -> pd.DataFrame:
    """Return what random weights make of the images: without training (a learning rate of zero), so any error is luck.

    The constant image's error is per 10,000 images.
    """
    names = {
        method: _weights(own)
        for method in study.methods
        if method.startswith("cd") and not (own := study.training_of(method)).learning_rate
    }
    rows = table[table["method"].isin(names) & (table["inputs"] == table["inputs"].iloc[0]) & (table["iteration"] == 0)]
    constant = 1e4 * rows["mean_field"] / rows["mean_field_ratio"] / rows["n_images"]
    columns = {"weights": rows["method"].map(names), "input std": rows["input_std"], "constant per 10,000": constant}
    means: pd.DataFrame = rows[["layer"]].assign(**columns).groupby(["layer", "weights"], sort=False).mean()
    return means


def quoted(rows: pd.DataFrame, features: pd.DataFrame) -> dict[str, float | str]:
    """Return what prose quotes of `distances` and of `untrained`.

    How many combinations were "tried", by how many "searches", and in how many ways together ("counted"); the
    `FACTOR` of the nearest one, if any; the least of all numbers, "least-1" and so on; and the constant's error of
    features by U(-0.1, 0.1), "untrained-2" and so on.
    """
    searches = rows[["method", "inputs"]].drop_duplicates()
    tried = rows[[*SETTINGS, "baseline"]].drop_duplicates()
    found: dict[str, float | str] = {"tried": len(tried), "searches": len(searches), "counted": len(rows)}
    for factor in nearest(rows, 1)[FACTOR]:
        found[FACTOR] = six_digits(factor)
    found |= {f"least-{i}": six_digits(rows[name].min()) for i, name in enumerate(NUMBERS, start=1)}
    constants = features[["constant per 10,000"]].set_axis([""], axis=1).query("weights == 'U(±0.1)'")
    return found | quote("untrained", constants.droplevel("weights"))
