"""The memory that is available, also in a container."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from leamvd._support import memory

MACHINE, NONE_V1 = 10_000, 2**63 - 4096


def group(place: Path, limit: object, used: int, unused_files: int) -> None:
    """Write what a control group tells; version 1 or 2, by its place."""
    place.mkdir(parents=True, exist_ok=True)
    first = "cgroup/memory" in place.as_posix()
    limits, usage = ("memory.limit_in_bytes", "memory.usage_in_bytes") if first else ("memory.max", "memory.current")
    (place / limits).write_text(f"{limit}\n")
    (place / usage).write_text(f"{used}\n")
    (place / "memory.stat").write_text(f"cache 7\n{'total_' if first else ''}inactive_file {unused_files}\n")


@pytest.mark.parametrize(
    ("own", "groups", "expected"),
    [
        ("", {}, MACHINE),
        ("0::/\n", {}, MACHINE),
        ("0::/job/step\n", {"job/step": ("max", 10, 0), "job": (900, 500, 100)}, 500),
        ("0::/job/step\n", {"job/step": (300, 50, 0), "job": (900, 500, 100)}, 250),
        ("0::/host/path/of/a/container\n", {"": (800, 500, 50)}, 350),
        ("0::/job\n", {"job": (20_000, 10, 0)}, MACHINE),
        ("0::/job\n", {"job": (500, 600, 0)}, 0),
        ("3:cpu:/x\n2:hugetlb,memory:/job\n0::/\n", {"memory/job": (700, 200, 40), "memory": (NONE_V1, 9, 9)}, 540),
        ("2:memory:/docker/1\n", {"memory": (600, 100, 0)}, 500),
    ],
)
def test_a_control_group_limits_what_is_available(
    own: str,
    groups: dict[str, tuple[object, int, int]],
    expected: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=MACHINE))
    monkeypatch.setattr(memory, "ROOT", tmp_path)
    if own:
        (tmp_path / "proc" / "self").mkdir(parents=True)
        (tmp_path / "proc" / "self" / "cgroup").write_text(own)
    for place, told in groups.items():
        group(tmp_path / "sys" / "fs" / "cgroup" / place, *told)
    assert memory.available() == expected


def test_this_machine_has_some() -> None:
    assert 0 < memory.available() <= psutil.virtual_memory().total
