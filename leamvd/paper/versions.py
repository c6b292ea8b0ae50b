"""What results come from: the code that computes, its versions, its commit."""

import ast
import functools
import hashlib
import io
import subprocess
import tokenize
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

COMPUTING = ("_support", "optimizers", "networks", "paper/datasets.py", "paper/units.py")
"""Folders and files of the package whose code decides on what a trained layer records."""

MEASURING = ("paper/classification.py", "paper/likelihood.py")
"""Files whose code decides, beside that, on what is measured of a stack."""

PACKAGE = Path(__file__).parents[1]


def packages(*, torch: bool = False) -> dict[str, str]:
    """Return the versions of the packages that results depend on."""
    names = ["leamvd", "cma", "numba", "numpy", "pandas", "scikit-learn", "scipy", *["torch"] * torch]
    return {package: version(package) for package in names}


def installed(distribution: str) -> str | None:
    """Return the version of a distribution, None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@functools.cache  # a source that is edited while a study runs does not change what runs
def code(package: Path = PACKAGE, names: tuple[str, ...] = COMPUTING) -> str:
    """Return a digest of the code that computes results, without comments and docstrings."""
    digest = hashlib.sha256()
    for path in sources(package, names):
        text = _statements(path.read_text(encoding="utf-8"))
        digest.update(f"{path.relative_to(package).as_posix()}\n{text}\n".encode())
    return digest.hexdigest()[:16]


def sources(package: Path, names: tuple[str, ...]) -> list[Path]:
    """Return the package's source files of these names, or in folders of these names."""
    found = (package / name for name in names)
    return sorted(file for path in found for file in (path.rglob("*.py") if path.is_dir() else [path]))


def _statements(source: str) -> str:
    """Return a source without comments, blank lines and strings that stand alone, the same for every Python."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            for row in range(node.lineno - 1, node.value.end_lineno or node.lineno):
                lines[row] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())


def commit() -> str | None:
    """Return the commit of the library's own clone, None outside one; "+" marks uncommitted changes."""
    try:
        _git("ls-files", "--error-unmatch", __file__)
        if Path(_git("rev-parse", "--show-toplevel")).resolve() != PACKAGE.parent.resolve():
            return None  # a clone of something else that the library lies in
        return _git("describe", "--always", "--dirty=+", "--abbrev=12")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(PACKAGE), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
