"""Whether a search's outcome depends on what computes its objective: the same runs by each, paired."""

import numpy as np
import pandas as pd

from leamvd._support import checks
from leamvd.analysis.statistics import compared


def agreement(table: pd.DataFrame, *, measure: str = "mean_field", margin: float = 0.02) -> pd.DataFrame:
    """Compare the last errors of each search with those of the first one, paired over seeds.

    Parameters
    ----------
    table : DataFrame
        Of `leamvd.experiments.backend_agreement.searches`, of one study or several.
    measure : str
        Column that is compared.
    margin : float
        Searches are called equivalent whose errors differ by no more than this part.

    Returns
    -------
    DataFrame
        A row for each section, method, layer and search except the first: `runs`, how many of them are `equal` to the
        last bit, the geometric mean of the `ratio` of the errors, `low`, `high` and `p`, see
        `leamvd.analysis.statistics.compared`; `equivalent`, whether the interval lies within 1/(1 + margin) and
        1 + margin, which is two one-sided tests at 2.5 %; and `seeds`, the standard deviation of the first search's
        logarithms over seeds.
    """
    checks.real("margin", margin, above=0)
    first, *others = table["search"].unique()
    by = ["section", "method", "layer"]
    found = compared(table, measure, [(other, first) for other in others], by=by, names="search")
    own = table[table["search"] == first]
    scatter = np.log(own[measure]).groupby([own[name] for name in by]).std().rename("seeds")
    within = found["low"].ge(1 / (1 + margin)) & found["high"].le(1 + margin)
    return found.drop(columns="baseline").assign(equivalent=within).join(scatter, on=by)
