"""Processes that end when the one that has started them ends, whatever ends it."""

import multiprocessing
import os
import signal
import sys
import threading

_WATCH = """\
def _end_with_parent(parent):
    import os, sys, time
    if sys.platform == "win32":
        import ctypes
        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        kernel.WaitForSingleObject(ctypes.c_void_p(kernel.OpenProcess(0x00100000, False, parent)), 0xFFFFFFFF)
    else:
        while os.getppid() == parent:
            time.sleep(0.1)
    os._exit(1)
import threading
threading.Thread(target=_end_with_parent, args=({parent},), daemon=True).start()
"""
# On Windows the parent of what runs in a virtual environment is a launcher, and a dead parent's number stays.


def command(program: str) -> list[str]:
    """Return the command that runs a program in a new interpreter, which ends when this process ends.

    A killed process cannot end those that it has started: so each watches it, in a thread, from its first line on. No
    module of the folder that it runs in is taken for one of Python's or a package's.
    """
    return [sys.executable, "-P", "-c", _WATCH.format(parent=os.getpid()) + program]


def follow_parent() -> None:
    """Leave Ctrl-C to the process that has started this one, and end with it, whatever ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
