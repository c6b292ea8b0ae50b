"""The memory that a process may still take."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path("/")


def available() -> int:
    """Return the bytes that are available: of the machine, and within the limits of the control groups.

    Pages of files that nobody uses count as available, as they do in the machine's own number.
    """
    import psutil  # as late as this: an extra brings it

    return min([int(psutil.virtual_memory().available), *_left_by_groups()])


def _left_by_groups() -> Iterator[int]:
    """Yield what each of this process's control groups, of Linux's version 1 or 2, leaves of its limit."""
    mounted = ROOT / "sys/fs/cgroup"
    try:
        lines = (ROOT / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            group, names = mounted, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            group, names = mounted / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        own = group / path.lstrip("/")
        for place in (own, *own.parents):  # a container sees its own group as `group`, whatever its path is outside
            if place.is_relative_to(group):
                yield from _left(place, *names)


def _left(group: Path, limit: str, used: str, unused_files: str) -> Iterator[int]:
    try:
        most = (group / limit).read_text().strip()
        now = int((group / used).read_text())
        counts = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
    except OSError:  # no such group here, or without a limit of memory, as the root of version 2
        return
    if most != "max":
        yield max(0, int(most) - now + int(counts.get(unused_files, 0)))
