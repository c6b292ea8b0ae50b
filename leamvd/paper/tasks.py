"""What workers do: train a layer, or measure a stack."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leamvd.paper import units, versions
from leamvd.paper.classification import StackTask
from leamvd.paper.datasets import Dataset
from leamvd.paper.units import Part, Task

AnyTask = Task | StackTask


def advance(
    task: AnyTask,
    data: Dataset,
    below: Sequence[bytes],
    begun: Part | None = None,
    *,
    seconds: float = np.inf,
    tick: Callable[[], object] = lambda: None,
) -> Part:
    """Begin a task, or go on with it, see `leamvd.paper.units.advance`."""
    if isinstance(task, Task):
        return units.advance(task, data, below, begun, seconds=seconds, tick=tick)
    return task.advance(data, below, begun, seconds=seconds, tick=tick)


def iterations(task: AnyTask) -> int:
    """Return how many iterations there are, the first state of a layer not counted."""
    return task.reading.n_gen if isinstance(task, Task) else task.iterations


def uses_torch(task: AnyTask) -> bool:
    """Return whether PyTorch is among what decides on the result."""
    return isinstance(task, Task) and task.training.backend == "torch"


def made_with(task: AnyTask) -> dict[str, Any]:
    """Return the code and the versions that decide on the result."""
    measuring = {} if isinstance(task, Task) else {"measuring": versions.code(versions.PACKAGE, versions.MEASURING)}
    return {"code": versions.code(), **measuring, "versions": versions.packages(torch=uses_torch(task))}
