"""What the numbers were measured on, and the name of the folder that holds them while they are made."""

import datetime
import json
import platform
import re
from pathlib import Path
from typing import Any

import psutil

from leamvd._support.threads import thread_count
from leamvd.campaign import versions
from leamvd.campaign.jobs import digest
from leamvd.networks import dbn

_PACKAGES = (
    "leamvd", "cma", "evosax", "evotorch", "jax", "jaxlib", "numba", "numpy", "scikit-learn", "scipy", "torch",
)  # fmt: skip


def machine() -> dict[str, Any]:
    """Return processor, memory, system, versions, date and code, and the load of the last minute."""
    return {
        "processor": _processor(),
        "cores": thread_count(None),
        "memory_bytes": psutil.virtual_memory().total,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: found for name in _PACKAGES if (found := versions.installed(name)) is not None},
        "date": datetime.date.today().isoformat(),
        "commit": versions.commit(),
        "code": versions.code(Path(dbn.__file__)),  # and of all that it imports: optimizers and networks
        "bench_code": _measuring_code(),
        "load": round(psutil.getloadavg()[0], 2),
    }


def fingerprint(profile: str, found: dict[str, Any]) -> str:
    """Return the name of a run's folder: a digest of what its numbers depend on."""
    names = ("processor", "cores", "memory_bytes", "system", "python", "versions", "code", "bench_code")
    known = {"profile": profile} | {name: found[name] for name in names}
    return digest(json.dumps(known, sort_keys=True).encode())[:16]


def _measuring_code() -> str:
    """Return a digest of the bench's source files, without the one that only shows results."""
    paths = sorted(path for path in Path(__file__).parent.glob("*.py") if path.name != "overview.py")
    return digest(b"".join(path.read_bytes() for path in paths))[:16]


def _processor() -> str:
    """Return the processor's name: Linux says it in a file only."""
    path = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*: (.+)", path.read_text(encoding="utf-8") if path.exists() else "")
    return named[1] if named else platform.processor() or platform.machine()
