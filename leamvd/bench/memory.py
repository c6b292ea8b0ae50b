"""Peak of this process's resident memory while something runs."""

import ctypes
import ctypes.util
import gc
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path

import psutil

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def peak_bytes(work: Callable[[], object]) -> float:
    """Return by how many bytes the memory of this process peaks above what it is now, while `work` runs.

    Linux can forget an earlier peak. Elsewhere the peak is that of the process's whole life, so the result is
    NaN where `work` does not surpass it.
    """
    gc.collect()
    _return_free_memory()
    before, earlier = psutil.Process().memory_info().rss, _forget_peak()
    work()
    peak = _peak()
    return float(max(0, peak - before)) if peak > earlier else math.nan


def _return_free_memory() -> None:
    """Give freed memory back to the system, or what is used again would not count: glibc keeps up to 32 MB a block."""
    trim = getattr(ctypes.CDLL(ctypes.util.find_library("c")), "malloc_trim", None) if sys.platform != "win32" else None
    if trim is not None:
        trim(0)


def _forget_peak() -> int:
    """Return the peak that `work` has to surpass to be measured: none where the system forgets it."""
    try:
        _RESET.write_text("5")
    except OSError:
        return _peak()
    return 0


def _peak() -> int:
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
    except OSError:
        found = None
    if found:
        return 1024 * int(found[1])
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    import resource  # Unix only

    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
