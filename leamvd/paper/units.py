"""What one unit of a study computes: a layer trained by a method, and the errors recorded after each iteration."""

import io
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from leamvd._support.compile import Array
from leamvd.networks.dbn import Training, layer_input, layer_seed, train
from leamvd.networks.objective import Errors, reconstruction_errors
from leamvd.networks.rbm import RBM, n_parameters
from leamvd.optimizers.reading import Reading
from leamvd.paper.datasets import Dataset

COLUMNS = (
    "iteration",
    *Errors._fields, *(f"test_{name}" for name in Errors._fields),
    "evaluations", "passes", "products", "seconds",
    "n_visible", "n_hidden", "n_var", "n_images", "n_test_images", "input_std",
)  # fmt: skip
"""Of a unit's records.

Errors are sums over all images, of which there are `n_images` and `n_test_images`. Test images go up the same stack.
Ratios compare with the constant image that is the mean of the layer's training inputs, of test images too: what a layer
would predict that has learned the mean and nothing else. `input_std` is the mean standard deviation of these inputs.
"""

# How pandas reads decimals to the last bit; from 3.1 it always does.
_EXACT: Any = {"float_precision": "round_trip"} if tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1) else {}


class Task(NamedTuple):
    """All that a unit's result depends on but for its data, the layers below it and the code."""

    method: str  # of leamvd.networks.dbn.METHODS
    layer: int  # counted from 1
    n_hidden: int
    seed: int  # of the stack
    features: Literal["probabilities", "bits"]
    training: Training
    reading: Reading


class Part(NamedTuple):
    """A unit as far as it is."""

    records: bytes  # CSV
    arrays: bytes  # .npz: W, b and c of the layer when all is done, otherwise a state of leamvd.networks.dbn.train
    done: bool

    @property
    def iteration(self) -> int:
        """The last one that is recorded."""
        return int(self.records.rstrip().rpartition(b"\n")[2].split(b",")[0])


def advance(
    task: Task,
    data: Dataset,
    below: Sequence[bytes],
    begun: Part | None = None,
    *,
    seconds: float = np.inf,
    tick: Callable[[], object] = lambda: None,
) -> Part:
    """Train a layer, or go on with it, and record its errors after each iteration.

    Parameters
    ----------
    task : Task
        What is trained.
    data : Dataset
        Images.
    below : sequence of bytes
        The layers below, as `Part.arrays` holds them.
    begun : Part, optional
        What an earlier call has returned; the records are the same, to the bit, in however many calls.
    seconds : float
        Return before this time is over, as far as the iterations so far let it be foreseen; but never without an
        iteration.
    tick : callable
        Called after each iteration.

    Returns
    -------
    Part
        `done` unless time has run out.
    """
    start = now = time.monotonic()
    stack = [layer(arrays) for arrays in below]
    V = layer_input(stack, data.train, features=task.features, seed=task.seed)
    T = layer_input(stack, data.test, features=task.features, seed=task.seed, test=True)
    seed = layer_seed(task.seed, task.layer)
    input_std, train_mean = float(V.std(axis=0, dtype=np.float64).mean()), V.mean(axis=0, dtype=np.float64)
    sizes = V.shape[1], task.n_hidden, n_parameters(V.shape[1], task.n_hidden), len(V), len(T), input_std
    table = pd.DataFrame(columns=list(COLUMNS)) if begun is None else read_table(io.BytesIO(begun.records))
    state = None if begun is None else _unpacked(begun.arrays)
    rows, previous, longest, done = [], None, 0.0, True
    for step in train(
        task.method, V, task.n_hidden, training=task.training, reading=task.reading, seed=seed, state=state
    ):
        flat = step.rbm.flat()
        if previous is None or not np.array_equal(flat, previous):
            errors = (
                *reconstruction_errors(step.rbm, V, seed=seed),
                *reconstruction_errors(step.rbm, T, seed=seed, train_mean=train_mean),
            )
        previous = flat
        rows.append((step.iteration, *errors, *step[2:-1], *sizes))
        now, before = time.monotonic(), now
        if step.iteration:
            tick()
            longest = max(longest, now - before)
            if now - start + longest > seconds and step.iteration < task.reading.n_gen:
                done = False
                break
    new = pd.DataFrame(rows, columns=list(COLUMNS))
    whole = new if table.empty else pd.concat([table, new], ignore_index=True)
    arrays = step.rbm._asdict() if done else step.state
    return Part(as_csv(whole).encode(), _packed(arrays), done)


def layer(arrays: bytes) -> RBM:
    """Return a trained layer, as `Part.arrays` holds it."""
    return RBM(**_unpacked(arrays))


def _packed(arrays: dict[str, Array]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _unpacked(arrays: bytes) -> dict[str, Array]:
    with np.load(io.BytesIO(arrays), allow_pickle=False) as file:
        return dict(file)


def as_csv(table: pd.DataFrame) -> str:
    """Return a table as CSV, the same on every system."""
    return table.to_csv(index=False, lineterminator="\n")


def read_table(source: Any) -> pd.DataFrame:
    """Read a table from CSV: the numbers that were written, to the last bit."""
    table: pd.DataFrame = pd.read_csv(source, **_EXACT)
    return table
