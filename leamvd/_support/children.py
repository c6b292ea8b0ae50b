"""Processes that end when the one that has started them ends, even where that is killed."""

import functools
import os
import sys
import threading
import time


@functools.cache  # one thread for any number of tasks
def follow(parent: int) -> None:
    """End this process, from a thread that watches, when the process of this number ends, which has
    started it.
    """
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def ended(pid: int) -> bool:
    """Return whether no process has this number; False where one cannot tell."""
    try:
        if sys.platform != "win32":  # where signal 0 is Ctrl-C
            os.kill(pid, 0)
    except OSError as error:  # or it is that of another user
        return isinstance(error, ProcessLookupError)
    return False


def _end_with(parent: int) -> None:
    # where a dead parent's number stays, and that of a virtual environment is a launcher
    if sys.platform == "win32":
        import ctypes

        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        kernel.WaitForSingleObject(
            ctypes.c_void_p(kernel.OpenProcess(0x00100000, False, parent)), 0xFFFFFFFF
        )
    else:
        while os.getppid() == parent:
            time.sleep(0.1)
    os._exit(1)
