"""The one decorator, and compiled code on disk: it belongs to the sources that run, and can be done without."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leamvd._support.compile import kernel

PACKAGE = Path(__file__).parent.parent / "leamvd"
BY_HOME = pytest.mark.skipif(sys.platform == "win32", reason="numba finds the user's folder there without HOME")
COMPILING = "leamvd: compiling for this processor; this takes up to a minute, once"


@pytest.mark.compiled
@pytest.mark.parametrize("reassociate", [False, True])
def test_arithmetic_is_ieees_also_where_sums_are_reordered(reassociate: bool) -> None:
    @kernel(reassociate=reassociate)
    def divide(x: float) -> float:
        return 1.0 / x

    assert divide(0.0) == np.inf
    assert np.isnan(divide(np.nan))
    assert bool(divide.targetoptions["fastmath"]) is reassociate  # type: ignore[attr-defined]
    assert divide.targetoptions["nogil"]  # type: ignore[attr-defined]


def test_source_holds_no_other_decorator() -> None:
    users = [p.name for p in PACKAGE.rglob("*.py") if "njit" in p.read_text() or "numba.jit" in p.read_text()]
    assert users == ["numba_cache.py"]


# ---- a package of two kernels, one of which calls the other, in a process of its own

CALLED = "from leamvd._support.compile import kernel\n@kernel()\ndef called(x):\n    return x + {}\n"
CALLER = "from leamvd._support.compile import kernel\nfrom leamvd.b import called\n@kernel()\ndef caller(x):\n"
RUN = "from leamvd.a import caller; print(caller(1))"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package that decorates its kernels as the library does: caller(x) = 2 called(x) = 2 (x + 1)."""
    folder = tmp_path / "site" / "leamvd"
    shutil.copytree(PACKAGE / "_support", folder / "_support", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "__init__.py").touch()
    (folder / "a.py").write_text(CALLER + "    return 2 * called(x)\n")
    (folder / "b.py").write_text(CALLED.format(1))
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a process that finds the package first, and whose user has a home folder without anything in it."""
    taken = ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "PYTHONWARNINGS", "NUMBA_DISABLE_JIT")
    given = {"PYTHONPATH": str(tmp_path / "site"), "HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    return {name: value for name, value in os.environ.items() if name not in taken} | given


def run(environment: dict[str, str], program: str = RUN) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return done


def forbid(*folders: Path) -> None:
    """Make folders that nobody can write to, not even an administrator: files stand in their places."""
    for folder in folders:
        shutil.rmtree(folder, ignore_errors=True)
        folder.write_text("not a folder")


@pytest.mark.compiled
@pytest.mark.parametrize("place", ["NUMBA_CACHE_DIR", "package", pytest.param("home", marks=BY_HOME)])
def test_results_belong_to_the_sources_that_run(
    package: Path, environment: dict[str, str], tmp_path: Path, place: str
) -> None:
    """The called kernel changes, in another file of the same time and length, as between two copies of the package."""
    if place == "NUMBA_CACHE_DIR":
        environment[place] = str(tmp_path / "shared")
    if place == "home":
        forbid(package / "__pycache__")
    assert run(environment).stdout == "4\n"
    folder = {"NUMBA_CACHE_DIR": tmp_path / "shared", "package": package, "home": tmp_path / "home"}[place]
    stored = {path.name for path in folder.rglob("*.nb[ic]")}
    assert {name.split("-")[0] for name in stored} == {"a.caller", "b.called"}
    before = (package / "b.py").stat()
    (package / "b.py").write_text(CALLED.format(7))
    os.utime(package / "b.py", ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (package / "b.py").stat().st_size == before.st_size
    assert run(environment).stdout == "16\n"
    assert not stored & {path.name for path in folder.rglob("*.nb[ic]")}, "what the other sources left is deleted"


@pytest.mark.compiled
def test_compiled_code_is_used_again(package: Path, environment: dict[str, str]) -> None:
    program = RUN + "; print(sum(caller.stats.cache_hits.values()), sum(caller.stats.cache_misses.values()))"
    assert run(environment, program).stdout == "4\n0 1\n"
    (package / "c.py").write_text("a module without kernels")
    (package / "b.py").touch()
    assert run(environment, program).stdout == "4\n1 0\n"


@BY_HOME
@pytest.mark.compiled
def test_without_a_folder_to_write_to_kernels_are_compiled_with_one_warning(
    package: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    forbid(package / "__pycache__", tmp_path / "home")
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "home" / "below")
    done = run(environment)
    assert done.stdout == "4\n"
    assert done.stderr.count("Warning") == 1, done.stderr
    assert "RuntimeWarning: compiled kernels cannot be stored" in done.stderr
    assert "set NUMBA_CACHE_DIR to a folder that can be written to" in done.stderr
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
    assert run(environment).stderr == "", "what the warning says helps, and a pipe is not told of compiling"


@pytest.mark.compiled
def test_a_folder_that_can_no_longer_be_written_to_does_not_stop_a_kernel(
    package: Path, environment: dict[str, str]
) -> None:
    folder = package / "__pycache__"
    late = f"import os, leamvd.a; os.rmdir({str(folder)!r}); open({str(folder)!r}, 'w').close(); "
    done = run(environment, late + RUN)
    assert done.stdout == "4\n"
    assert done.stderr.count("RuntimeWarning: compiled kernels cannot be stored") == 1, done.stderr


def on_a_terminal(environment: dict[str, str]) -> str:
    """Return what a process writes to its standard error, a terminal."""
    import pty

    ours, terminal = pty.openpty()
    command = [sys.executable, "-P", "-c", RUN]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=terminal, check=True, timeout=120)
    os.write(terminal, b"end")
    shown = b""
    while not shown.endswith(b"end"):
        shown += os.read(ours, 1 << 16)
    os.close(terminal)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a test cannot open a terminal there")
@pytest.mark.compiled
def test_the_first_compilation_says_so_on_a_terminal_and_nowhere_else(
    package: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    assert on_a_terminal(environment) == f"{COMPILING}\nend"
    assert on_a_terminal(environment) == "end", "nothing is compiled"
    environment["NUMBA_CACHE_DIR"] = str(tmp_path / "other")
    assert run(environment, f"import sys; sys.stderr = None; {RUN}").stdout == "4\n", "a window without a terminal"


def test_kernels_run_uncompiled(package: Path, environment: dict[str, str]) -> None:
    loops = "@kernel(parallel=1)\ndef loops(X):\n    for i in numba.prange(X.size):\n        X[0, i] = called(i)\n"
    (package / "a.py").write_text(f"import numba\n{CALLER}    return 2 * called(x)\n{loops}")
    environment["NUMBA_DISABLE_JIT"] = "1"
    program = "import leamvd.a as a, numpy as np; X = np.zeros((1, 3)); a.loops(X); print(type(a.caller), X)"
    done = run(environment, program)
    assert (done.stdout, done.stderr) == ("<class 'function'> [[1. 2. 3.]]\n", "")
    assert not list(package.rglob("*.nb[ic]"))


def kernels(tree: ast.Module) -> list[ast.FunctionDef]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [f for f in functions if any(ast.unparse(d).startswith("kernel(") for d in f.decorator_list)]


def test_kernels_take_constants_only_from_files_that_name_compiled_code() -> None:
    """A constant is compiled in: a change of it must change the digest of sources that names what is stored."""
    sources = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    digested = {path for path, text in sources.items() if "kernel(" in text}
    found = set()
    for path in digested:
        tree = ast.parse(sources[path])
        used = {n.id for f in kernels(tree) for n in ast.walk(f) if isinstance(n, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leamvd"):
                names = [alias.name for alias in node.names if (alias.asname or alias.name) in used]
                for name in names:
                    stem = PACKAGE.parent / str(node.module).replace(".", "/")
                    module = stem / f"{name}.py" if (stem / f"{name}.py").exists() else stem.with_suffix(".py")
                    found.add(module)
    assert PACKAGE / "optimizers" / "random_streams.py" in found
    assert found <= digested
