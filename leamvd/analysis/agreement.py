"""Whether a search's outcome depends on what computes its objective: the same runs by each, paired."""

import numpy as np
import pandas as pd

from leamvd.analysis.statistics import compared

MARGIN = 0.02
"""Searches are equivalent whose errors are shown to differ by no more than this part."""


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
