"""The private parts of `concurrent.futures` that are used: how many workers there are, and their processes.

Python 3.14 has `ProcessPoolExecutor.terminate_workers`.
"""

from concurrent.futures import ProcessPoolExecutor
from typing import Any


def size(executor: Any) -> int | None:
    """Return the number of workers of an executor; None where it does not say."""
    return getattr(executor, "_max_workers", None)


def terminate(pool: ProcessPoolExecutor) -> None:
    """End the processes of a pool, whatever they do."""
    for process in list((pool._processes or {}).values()):
        process.terminate()
