"""Does a search's outcome depend on what computes its objective? The same runs by NumPy and by PyTorch, paired."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support import checks
from leamvd.optimizers.reading import Reading
from leamvd.paper import records
from leamvd.paper.comparison import final, holm
from leamvd.paper.intervals import interval
from leamvd.paper.studies import Study, images

SEARCHES: dict[str, dict[str, Any]] = {
    "numpy float32": {},
    "torch float32": {"backend": "torch"},
    "torch bfloat16": {"backend": "torch", "precision": "bfloat16"},
}
"""What computes the error that the optimizers see. What is recorded of their weights is NumPy's in float32 for all."""

_SMALL = Study(
    dataset="mnist",
    n_images=10_000,
    layers=(30,),
    methods=("lea-mvd", "lea-mvd:x0-excluded"),
    inputs=("own",),
    seeds=tuple(range(64)),
    reading=Reading(n_gen=30),
)

_LARGE = Study(
    section="mnist-28x28",
    dataset="mnist",
    side=28,
    n_images=2_000,
    layers=(500,),
    methods=("lea-mvd:x0-excluded",),
    inputs=("own",),
    seeds=tuple(range(10)),
    reading=Reading(n_gen=15),
)

STUDIES = (
    _SMALL,
    dataclasses.replace(_SMALL, methods=("cma-es",), seeds=tuple(range(20))),
    _LARGE,
    dataclasses.replace(
        _LARGE,
        n_images=10_000,
        methods=("lea-mvd:sigma0=0.01",),
        seeds=tuple(range(5)),
        reading=Reading(n_gen=50),
    ),
)
"""The first layer of both experiments on real MNIST, on fewer images and generations than the paper's.

At 7 x 7 pixels pairs scatter by 3 to 6 %, so that dozens of them are needed to tell 2 % from nothing; CMA-ES, whose
generations are slow, has fewer. At 28 x 28 pixels nothing better than the start solution is found where it is in
the population, and so nothing could differ: that is left out. The last study is a search of study C, whose gains are
below 1 %, as it was run there.
"""


def run(
    study: Study, output: str | Path, *, device: str | None = None, progress: bool = False
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Run a study by each of `SEARCHES`, with the same seeds and so the same random numbers.

    Parameters
    ----------
    study : Study
        What to run; its images are float32.
    output : path
        Where the folders of the studies are, or will be; see `leamvd.paper.records.run`.
    device : str, optional
        Of torch.
    progress : bool
        Show a bar for each search.

    Returns
    -------
    DataFrame
        The last record of every run, with the column "search" in front.
    dict of str to dict
        The provenance of each search.

    Raises
    ------
    ImportError
        If PyTorch is not installed.
    ValueError, MemoryError, leamvd.paper.datasets.DataError
        If the study cannot be run.
    """
    searches = {}
    for search, settings in SEARCHES.items():
        changes: dict[str, Any] = {"dtype": "float32"} | settings | ({"device": device} if settings else {})
        training = dataclasses.replace(study.training, **changes)
        searches[search] = dataclasses.replace(study, training=training)
    tables, provenance = [], {}
    for search, own in searches.items():
        table = final(records.run(own, output, progress=progress))
        table.insert(0, "search", search)
        tables.append(table)
        provenance[search] = records.provenance(own, images(own))
    return pd.concat(tables, ignore_index=True), provenance


def record(
    folder: str | Path, output: str | Path, *, studies: Sequence[Study] = STUDIES, device: str | None = None
) -> pd.DataFrame:
    """Run `studies` and write ``runs.csv`` and ``provenance.json`` to `folder`; arguments and errors as of `run`.

    Returns
    -------
    DataFrame
        The table that was written.
    """
    results = [run(study, output, device=device, progress=True) for study in studies]
    table = pd.concat([table for table, _ in results], ignore_index=True)
    provenance = [known for _, known in results]
    Path(folder).mkdir(parents=True, exist_ok=True)
    records.write(Path(folder) / "provenance.json", json.dumps(provenance, indent=2) + "\n")
    records.write_table(Path(folder) / "runs.csv", table)
    return table


def recorded() -> pd.DataFrame:
    """Return the table of the run that ships with the book."""
    return records.recorded("backend_agreement")


def paired(table: pd.DataFrame, *, measure: str = "mean_field", margin: float = 0.02) -> pd.DataFrame:
    """Compare the final errors of each search with those of the first one, paired over seeds.

    Parameters
    ----------
    table : DataFrame
        As `run` returns it, of one study or several.
    measure : str
        Column that is compared.
    margin : float
        Searches are called equivalent whose errors differ by no more than this part.

    Returns
    -------
    DataFrame
        A row for each section, method, layer and search but the first: `runs`; `equal`, how many of them ended at the
        same error to the last bit; the geometric mean of the `ratio` of the errors and its 95 % interval, `low` and
        `high` (Student's t on logarithms); `p` of Wilcoxon's signed-rank test, corrected by Holm (NaN where
        all are equal); `equivalent`, whether the interval lies within 1/(1 + margin) and 1 + margin, which is two
        one-sided tests at 2.5 %; and `seeds`, the standard deviation of the first search's logarithms over seeds.
    """
    checks.real("margin", margin, above=0)
    first, *others = table["search"].unique()
    rows = []
    for names, group in table.groupby(["section", "method", "layer"], sort=False):
        errors = np.log(group.pivot_table(index="seed", columns="search", values=measure))
        for search in others:
            difference = (errors[search] - errors[first]).to_numpy()
            runs, equal = len(difference), int((difference == 0).sum())
            low, ratio, high = np.exp(interval(difference))
            p = np.nan if equal == runs else float(stats.wilcoxon(difference).pvalue)
            within = bool(1 / (1 + margin) <= low and high <= 1 + margin)
            rows.append((*names, search, runs, equal, ratio, low, high, p, within, float(errors[first].std())))
    columns = ["section", "method", "layer", "search", "runs", "equal", "ratio", "low", "high", "p", "equivalent"]
    result = pd.DataFrame(rows, columns=[*columns, "seeds"])
    return result.assign(p=holm(result["p"].to_numpy(dtype=float)))
