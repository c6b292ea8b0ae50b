"""Peak of this process's resident memory while something runs."""

import ctypes
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

    NaN where the system cannot forget an earlier peak, which only Linux can.
    """
    gc.collect()
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:  # glibc keeps up to 32 MB a block of what was freed; used again, it would not count
            trim(0)
    before = psutil.Process().memory_info().rss
    try:
        _RESET.write_text("5")
    except OSError:
        work()
        return math.nan
    work()
    peak = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text())
    return float(max(0, 1024 * int(peak[1]) - before)) if peak else math.nan
