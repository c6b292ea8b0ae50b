"""What a folder of results has of the first experiment, as a printed table: `make book` ends with it."""

import sys
from pathlib import Path

from leamvd.analysis import intervals
from leamvd.book import runs

if __name__ == "__main__":
    errors = intervals.errors(runs.read(Path(sys.argv[1], "03_mnist_7x7")).table(), ["mean_field"])
    layers = "RBM " + errors["layer"].astype(str) + ", " + errors["inputs"] + " inputs"
    table = errors.assign(layers=layers, text=intervals.texts(errors)).pivot(
        index="layers", columns="method", values="text"
    )
    print("Just computed on this machine, on scikit-learn's digits: mean-field errors per 10,000 images, with 95 %")
    print("intervals over the seeds; the book is about the recorded runs on MNIST.\n")
    print(table.rename_axis(index=None, columns=None).to_string())
