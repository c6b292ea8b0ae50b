"""What the package's sources compute: their syntax, without comments and docstrings."""

import ast
import hashlib
from collections.abc import Iterable, Mapping
from importlib.util import resolve_name
from pathlib import Path


def read(package: Path) -> dict[str, str]:
    """Return the texts of a package's files, by names that begin with the package's."""
    files = sorted(package.rglob("*.py"))
    return {
        path.relative_to(package.parent).as_posix(): path.read_text(encoding="utf-8")
        for path in files
    }


def digest(trees: Mapping[str, ast.Module]) -> str:
    """Return the SHA-256 of the names of sources and of what they compute; docstrings are taken out
    of them.
    """
    sha256 = hashlib.sha256()
    for name, tree in sorted(trees.items()):
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [s for s in body if not _is_text(s)]  # type: ignore[attr-defined]
        sha256.update(f"{name}\n{ast.dump(tree)}\n".encode())
    return sha256.hexdigest()


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def with_imports(names: Iterable[str], texts: Mapping[str, str]) -> dict[str, ast.Module]:
    """Return the syntax of some sources and of those that they import, directly or not."""
    taken: dict[str, ast.Module] = {}
    waiting = list(names)
    for name in waiting:  # which grow by what is imported
        if name in texts and name not in taken:
            taken[name] = ast.parse(texts[name])
            here = name.rpartition("/")[0].replace("/", ".")
            for node in ast.walk(taken[name]):
                if isinstance(node, ast.Import | ast.ImportFrom):
                    modules = [alias.name for alias in node.names]
                    if isinstance(node, ast.ImportFrom):
                        start = resolve_name("." * node.level + (node.module or ""), here)
                        modules = [start, *(f"{start}.{module}" for module in modules)]
                    for module in modules:
                        path = module.replace(".", "/")
                        waiting += [f"{path}.py", f"{path}/__init__.py"]
    return taken
