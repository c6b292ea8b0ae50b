"""The private part of threadpoolctl that is used: which thread of this process may limit OpenBLAS.

Only the first thread that limits it may, and for all others threadpoolctl does nothing, without a word. Here, whichever
thread holds the lock of the limit may.
"""

from threadpoolctl import OpenBLASController


def any_thread_may_limit() -> None:
    """Forget the thread that has limited OpenBLAS first."""
    OpenBLASController.clear_controlling_thread(force=True)
