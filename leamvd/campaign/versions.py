"""What results come from: the code that computes them, the versions of packages, the commit."""

import ast
import functools
import hashlib
import io
import platform
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from llvmlite.binding import get_host_cpu_name

PACKAGE = Path(__file__).parents[1]

_DISTRIBUTIONS = {
    "cocoex": "coco-experiment",
    "sklearn": "scikit-learn",
}  # where the name differs from what is imported
_NO_NUMBERS = {"filelock", "joblib", "psutil", "threadpoolctl", "tqdm"}  # packages that decide on no result


@functools.cache
def packages(file: Path, more: tuple[str, ...] = ()) -> dict[str, str]:
    """Return the versions of the packages that a source and all that it imports have at their top, and of some more."""
    found = {_DISTRIBUTIONS.get(name, name) for path in sources(file) for name in _others(_parsed(path))}
    return {name: version(name) for name in sorted(found | set(more))}


def installed(distribution: str) -> str | None:
    """Return the version of a distribution, None where it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


@functools.cache  # a source that is edited while a study runs does not change what runs
def code(file: Path, package: Path = PACKAGE) -> str:
    """Return a digest of a source and of all of the package that it imports, without comments and docstrings."""
    digest = hashlib.sha256()
    for path in sources(file, package):
        text = _statements(path.read_text(encoding="utf-8"))
        name = path.relative_to(package).as_posix() if path.is_relative_to(package) else path.name
        digest.update(f"{name}\n{text}\n".encode())
    return digest.hexdigest()[:16]


@functools.cache
def sources(file: Path, package: Path = PACKAGE) -> tuple[Path, ...]:
    """Return a source and the files of all that it imports from the package, in functions too.

    An ``__init__.py`` is not among them: it hands out names, and computes nothing.
    """
    found: set[Path] = set()
    left = {file}
    while left:
        found |= left
        left = {own for path in left for own in _own(_parsed(path), package)} - found
    return tuple(sorted(found))


def _own(tree: ast.Module, package: Path) -> Iterator[Path]:
    """Yield the files of the package that a source imports."""
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
        for name in names:
            head, *parts = name.split(".")
            path = package.joinpath(*parts).with_suffix(".py")
            if head == "leamvd" and parts and path.is_file():
                yield path


def _others(tree: ast.Module) -> Iterator[str]:
    """Yield the packages, other than Python's and this one, that a source imports at its top."""
    for node in tree.body:
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from {name.partition(".")[0] for name in names} - sys.stdlib_module_names - _NO_NUMBERS - {"leamvd"}


@functools.cache
def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache  # modules share most of what they import
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


def machine() -> dict[str, Any]:
    """Return where this process runs, and the commit that it runs."""
    return {
        "commit": commit(),
        "python": platform.python_version(),
        # the processor too: it decides on the order in which products and sums add up
        "machine": f"{platform.system()} {platform.machine()} {get_host_cpu_name()}",
    }


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
