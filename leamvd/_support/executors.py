"""The private parts of `concurrent.futures` and loky that are used: how many workers there are, and their processes.

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


def forget_unread(pool: Any) -> None:
    """Stop waiting for dead processes of a loky pool to read what they were sent, more than a pipe holds.

    This process holds the reading end too: the thread that writes would wait forever, and the end of this process for
    that thread.
    """
    pool._call_queue._reader.close()
