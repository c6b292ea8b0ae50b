"""Processes that end when the one that has started them ends, whatever ends it.

A killed process cannot end those that it has started: so each watches it, in a thread.
"""

import os
import signal
import sys
import threading
import time


def command(program: str) -> list[str]:
    """Return the command that runs a program in a new interpreter, which ends when this process ends.

    No module of the folder that it runs in is taken for one of Python's or a package's.
    """
    start = f"from leamvd._support import children; children.follow({os.getpid()})\n"
    return [sys.executable, "-P", "-c", start + program]


def follow(parent: int) -> None:
    """End with the process of this number, which has started this one."""
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def follow_parent(parent: int) -> None:
    """End with it likewise, and leave Ctrl-C to it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    follow(parent)


def _end_with(parent: int) -> None:
    if sys.platform == "win32":  # where a dead parent's number stays, and that of a virtual environment is a launcher
        import ctypes

        kernel = ctypes.WinDLL("kernel32")
        kernel.OpenProcess.restype = ctypes.c_void_p
        kernel.WaitForSingleObject(ctypes.c_void_p(kernel.OpenProcess(0x00100000, False, parent)), 0xFFFFFFFF)
    else:
        while os.getppid() == parent:
            time.sleep(0.1)
    os._exit(1)
