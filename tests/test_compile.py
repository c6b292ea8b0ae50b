"""The one decorator, and compiled code on disk: it belongs to the sources that run, and can be done
without.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from leamvd._support import sources
from leamvd._support.compile import kernel

PACKAGE = Path(__file__).parent.parent / "leamvd"
pytestmark = pytest.mark.compiled


@pytest.mark.parametrize("reassociate", [False, True])
def test_arithmetic_is_ieees_also_where_sums_are_reordered(reassociate: bool) -> None:
    @kernel(reassociate=reassociate)
    def divide(x: float) -> float:
        return 1.0 / x

    assert divide(0.0) == np.inf
    assert np.isnan(divide(np.nan))


# ---- a package of two kernels, one of which calls the other, in a process of its own

CALLED = (
    "from leamvd._support.compile import kernel\n@kernel()\ndef called(x):\n    return x + {}\n"
)
CALLER = (
    "from leamvd._support.compile import kernel\nfrom leamvd.optimizers.b import"
    " called\n@kernel()\n"
)
RUN = (
    "from leamvd.optimizers.a import caller; print(caller(1),"
    " sum(caller.stats.cache_hits.values()), sum(caller.stats.cache_misses.values()))"
)


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that decorates its kernels as the library does: caller(x) = 2 called(x) = 2 (x +
    1).

    Processes find it first, and their user has an empty home.
    """
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONWARNINGS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (("PYTHONPATH", "site"), ("HOME", "home")):
        monkeypatch.setenv(name, str(tmp_path / value))
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    folder = tmp_path / "site" / "leamvd"
    shutil.copytree(
        PACKAGE / "_support", folder / "_support", ignore=shutil.ignore_patterns("__pycache__")
    )
    (folder / "optimizers").mkdir()
    (folder / "__init__.py").touch()
    (folder / "optimizers" / "a.py").write_text(
        CALLER + "def caller(x):\n    return 2 * called(x)\n"
    )
    (folder / "optimizers" / "b.py").write_text(CALLED.format(1))
    return folder


def run(program: str = RUN) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("place", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "home"])
def test_results_belong_to_the_sources_that_run_and_are_used_again(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """The called kernel changes, in another file of the same time and length, as between two copies
    of the package.
    """
    base = tmp_path / "home" / ".cache" if place == "home" else tmp_path / "shared"
    if place != "home":
        monkeypatch.setenv(place, str(base))
    assert run().stdout == "4 0 1\n"
    assert run().stdout == "4 1 0\n"
    (folder,) = base.iterdir()
    assert folder.name.startswith("leamvd-")
    called = package / "optimizers" / "b.py"
    before = called.stat()
    called.write_text(CALLED.format(7))
    os.utime(called, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert run().stdout == "16 0 1\n"
    assert not list(package.rglob("*.nb[ic]"))


def test_a_comment_or_a_file_that_no_kernel_imports_costs_no_compilation(
    package: Path, tmp_path: Path
) -> None:
    run()
    (package / "optimizers" / "b.py").write_text(f'"""Add."""\n# one\n{CALLED.format(1)}')
    (package / "optimizers" / "c.py").write_text("x = 1\n")
    assert run().stdout == "4 1 0\n"
    assert len(list((tmp_path / "home" / ".cache").iterdir())) == 1


def test_imports_are_followed_however_they_are_written() -> None:
    texts = {
        "pkg/a.py": "from . import b",
        "pkg/b.py": "def f():\n    import pkg.low.c",
        "pkg/low/__init__.py": "",
        "pkg/low/c.py": "from pkg.low import d as x",
        "pkg/low/d.py": "from ..e import f",
        "pkg/e.py": "import json, other.g\nfrom .low import c",
        "pkg/g.py": "import pkg.a",
    }
    assert set(sources.with_imports(["pkg/a.py"], texts)) == set(texts) - {"pkg/g.py"}


def test_a_folder_that_nobody_has_used_for_a_month_goes(package: Path, tmp_path: Path) -> None:
    run()
    (ours,) = (tmp_path / "home" / ".cache").iterdir()
    days = {
        "leamvd-0123456789abcdef": 31,
        "leamvd-fedcba9876543210": 29,
        "leamvd-notes": 31,
        ours.name: 31,
    }
    for name, age in days.items():
        folder = ours.parent / name
        folder.mkdir(exist_ok=True)
        os.utime(folder, (time.time() - age * 86_400,) * 2)
    assert run().stdout == "4 1 0\n"
    assert {path.name for path in ours.parent.iterdir()} == set(days) - {"leamvd-0123456789abcdef"}
    assert time.time() - ours.stat().st_mtime < 86_400


def test_other_packages_keep_their_place(package: Path, tmp_path: Path) -> None:
    (tmp_path / "site" / "other.py").write_text(
        "import numba\nfrom leamvd.optimizers.a import caller\n@numba.njit(cache=True)\ndef f(x):\n"
        "    return x\nf(1)\n"
    )
    run("import other")
    assert {
        path.name.split("-")[0] for path in (tmp_path / "site" / "__pycache__").glob("*.nbi")
    } == {"other.f"}


def test_where_nothing_can_be_written_kernels_are_compiled_anew_with_one_warning(
    package: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").write_text("not a folder")
    done = run()
    assert done.stdout.startswith("4 ")
    assert done.stderr.count("RuntimeWarning: compiled kernels cannot be kept") == 1, done.stderr


@pytest.mark.parametrize(("kind", "share"), [("nbi", 0), ("nbc", 0.5)])
def test_a_file_that_is_cut_is_written_anew_with_one_warning(
    package: Path, tmp_path: Path, kind: str, share: float
) -> None:
    run()
    for path in tmp_path.rglob(f"*.{kind}"):
        os.truncate(path, int(share * path.stat().st_size))
    done = run()
    assert (done.stdout, done.stderr.count("RuntimeWarning: ")) == ("4 0 1\n", 1), done.stderr
    assert run().stdout == "4 1 0\n"


def test_a_kernel_runs_where_the_disk_is_full(package: Path) -> None:
    pytest.importorskip("resource")  # no file above nine bytes
    done = run(f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))\n{RUN}")
    assert (done.stdout, done.stderr.count("RuntimeWarning: ")) == ("4 0 1\n", 1), done.stderr


INTERRUPTED = """
import signal
from numba.core.codegen import CPUCodeLibrary
# LLVM calls it, so that nothing can raise
def hook(cls, *args, then=CPUCodeLibrary._object_compiled_hook.__func__):
    signal.raise_signal(signal.SIGINT)
    then(cls, *args)
CPUCodeLibrary._object_compiled_hook = classmethod(hook)
signal.signal(signal.SIGINT, signal.default_int_handler)
from leamvd.optimizers.a import caller
try:
    caller(1)
except KeyboardInterrupt:
    print("interrupted", caller(1))
"""


def test_an_interrupt_in_a_compilation_comes_at_its_end(package: Path) -> None:
    assert run(INTERRUPTED).stdout == "interrupted 4\n"


def test_kernels_run_uncompiled(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loops = (
        "@kernel(parallel=1)\ndef loops(X):\n    for i in numba.prange(X.size):\n        X[0, i] ="
        " called(i)\n"
    )
    (package / "optimizers" / "a.py").write_text(
        f"import numba\n{CALLER}def caller(x):\n    return x\n{loops}"
    )
    program = (
        "import leamvd.optimizers.a as a, numpy as np; X = np.zeros((1, 3)); a.loops(X);"
        " print(a.caller, X)"
    )
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    done = run(program)
    assert done.stdout.startswith("<function caller")
    assert done.stdout.endswith(" [[1. 2. 3.]]\n")
