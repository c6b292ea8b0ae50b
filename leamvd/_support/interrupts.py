"""Ctrl-C put off until what must be done whole is done; processes that end with the one that started them."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put SIGINT off until the end of the block; what handles it, KeyboardInterrupt as a rule, comes then.

    Python handles signals in its main thread only, so in all others nothing is put off.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *signal_and_frame: came.append(signal_and_frame))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[-1])


def follow_parent() -> None:
    """Leave Ctrl-C to the process that has started this one, and end with it, whatever ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
