"""What a folder of results has of the first experiment, to be printed: `make book` ends with it."""

import sys
from pathlib import Path

import pandas as pd

from leamvd.analysis import intervals
from leamvd.book import results, runs

SECTION = "03_mnist_7x7"


def table(output: Path) -> pd.DataFrame:
    """Return the final mean-field errors per 10,000 images of the last run of `SECTION`.

    Returns
    -------
    DataFrame
        A row for each method, a column for each layer and kind of inputs: means over runs with their 95 % intervals.

    Raises
    ------
    leamvd.book.runs.NoRunError
        If there is no such run.
    """
    run = runs.read(results.latest(output, SECTION) or output / SECTION)
    errors = intervals.errors(run.table(), ["mean_field"])
    texts = [intervals.text(*row) for row in errors[["mean", "low", "high"]].itertuples(index=False)]
    layers = "RBM " + errors["layer"].astype(str) + ", " + errors["inputs"] + " inputs"
    return errors.assign(text=texts, layers=layers).pivot(index="method", columns="layers", values="text")


if __name__ == "__main__":
    print("Just computed on this machine, on scikit-learn's digits: mean-field errors per 10,000 images, with 95 %")
    print("intervals over the seeds; the book is about the recorded runs on MNIST.\n")
    print(table(Path(sys.argv[1])).rename_axis(index=None, columns=None).T.to_string())
