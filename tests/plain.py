"""What makes code dense, by Python's syntax tree: ``python tests/plain.py PATH ...`` lists where.

packed   a, b = x, y, also by a loop over one tuple: one assignment a statement
drawn    a, b = (f(x) for x in ...), also by `map`: a loop that looks like an assignment
merged   {**{...}}, {...} | {...}, x |= {...} of two or more entries: one literal, or d["x"] = y
chosen   a choice inside a call, a comprehension, an f-string: an `if`, or a name
deep     calls inside each other more than three deep: names for what they return
long     a comprehension of more than 25 nodes: a loop, or a function
large    a statement of more than 40 nodes, settings that are written out apart
walrus   := outside the condition of a `while`

Kernels may assign what one formula gives at once. Docstrings and annotations count nowhere.
"""

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

KINDS = ("packed", "drawn", "merged", "chosen", "deep", "long", "large", "walrus")
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
WRITTEN_OUT = (ast.Constant, ast.Tuple, ast.List, ast.Dict, ast.Load, ast.keyword)


class Counted(NamedTuple):
    """What is counted of a file."""

    kinds: Counter[str]
    sizes: list[int]  # nodes of each statement outside kernels, those of statements in it apart
    kernels: list[int]  # and of each statement of a kernel
    functions: list[int]  # nodes of each function


def counted(path: Path) -> Counted:
    """Return what is counted of a file."""
    tree = parsed(path)
    found = Counted(Counter(), [], [], [])
    for statement, in_kernel in statements(tree):
        sizes = found.kernels if in_kernel else found.sizes
        sizes.append(sum(1 for _ in inside(statement)))
        found.kinds.update(kinds(statement, in_kernel))
        if isinstance(statement, ast.FunctionDef):
            found.functions.append(sum(1 for _ in ast.walk(statement)))
    return found


def n_nodes(path: Path) -> int:
    """Return the number of nodes of a file."""
    return sum(1 for _ in ast.walk(parsed(path)))


def parsed(path: Path) -> ast.Module:
    """Return a file's syntax tree without docstrings and annotations of functions."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and is_text(body[0]):
            del body[0]
    return tree


def is_text(statement: ast.stmt) -> bool:
    """Whether a statement is a docstring."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def statements(tree: ast.AST, in_kernel: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Yield all statements, and whether they are a kernel's."""
    for child in ast.iter_child_nodes(tree):
        inner = in_kernel
        if isinstance(child, ast.FunctionDef):
            inner |= any("kernel" in ast.unparse(one) for one in child.decorator_list)
        if isinstance(child, ast.stmt):
            yield child, in_kernel
        yield from statements(child, inner)


def inside(statement: ast.stmt) -> Iterator[tuple[ast.AST, int, list[ast.AST]]]:
    """Yield the nodes of a statement but those of statements in it, how deep calls are nested
    around each, and what it lies in, from the inside.
    """
    todo: list[tuple[ast.AST, int, list[ast.AST]]] = [(statement, 0, [])]
    while todo:
        node, depth, around = todo.pop()
        yield node, depth, around
        for name, value in ast.iter_fields(node):
            chained = isinstance(node, ast.Call) and name == "func"  # a.b().c() is a chain
            below = depth + (isinstance(node, ast.Call) and not chained)
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not isinstance(child, ast.stmt):
                    todo.append((child, below, [node, *around]))


def kinds(statement: ast.stmt, in_kernel: bool) -> Counter[str]:
    """Return how often each of `KINDS` is in a statement."""
    found: Counter[str] = Counter()
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple | ast.List):
        value = statement.value
        if isinstance(value, ast.Tuple | ast.List) and not in_kernel:
            found["packed"] += not is_swap(statement.targets[0], value)
        found["drawn"] += isinstance(value, COMPREHENSIONS) or is_call(value, "map")
    if isinstance(statement, ast.For) and isinstance(statement.iter, ast.Tuple | ast.List):
        found["packed"] += len(statement.iter.elts) == 1
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.BitOr):
        found["merged"] += is_literal(statement.value)
    size = deepest = 0
    for node, depth, around in inside(statement):
        size += 1
        deepest = max(deepest, depth + isinstance(node, ast.Call))
        if isinstance(node, ast.Dict):
            unpacked = [v for k, v in zip(node.keys, node.values, strict=True) if k is None]
            found["merged"] += any(isinstance(one, ast.Dict) for one in unpacked)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            found["merged"] += is_literal(node.left) or is_literal(node.right)
        if is_choice(node) and around:
            found["chosen"] += not isinstance(around[0], ast.stmt)
        if isinstance(node, COMPREHENSIONS):
            found["long"] += sum(1 for _ in ast.walk(node)) > 25
        if isinstance(node, ast.NamedExpr):
            found["walrus"] += not isinstance(statement, ast.While)
    found["deep"] += deepest > 3
    found["large"] += size > 40 and not is_written_out(statement)
    return found


def is_choice(node: ast.AST) -> bool:
    """Whether a node chooses: x if a else y, a and x or y, (x, y)[a > b]."""
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        first = node.values[0]
        return isinstance(first, ast.BoolOp) and isinstance(first.op, ast.And) and is_value(node)
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Tuple | ast.List):
        return isinstance(node.slice, ast.Compare | ast.BoolOp | ast.UnaryOp)
    return isinstance(node, ast.IfExp)


def is_value(node: ast.BoolOp) -> bool:
    """Whether the last part of a condition is a value, and nothing that is true or false."""
    return not isinstance(node.values[-1], ast.Compare | ast.BoolOp | ast.UnaryOp | ast.Call)


def is_swap(target: ast.Tuple | ast.List, value: ast.Tuple | ast.List) -> bool:
    """Whether the same names stand on both sides."""
    return {ast.unparse(one) for one in target.elts} == {ast.unparse(one) for one in value.elts}


def is_call(node: ast.AST, name: str) -> bool:
    """Whether a node calls a function by its name."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def is_literal(node: ast.AST) -> bool:
    """Whether a node is a dictionary of two or more entries, written out."""
    return isinstance(node, ast.Dict) and len(node.keys) > 1


def is_written_out(statement: ast.stmt) -> bool:
    """Whether a statement is settings: most of it are constants, names in calls, tuples, lists."""
    value = getattr(statement, "value", None)
    if value is None:
        return False
    nodes = [*ast.walk(value)]
    plain = sum(isinstance(node, WRITTEN_OUT) for node in nodes)
    calls = isinstance(value, ast.List | ast.Tuple) and all(
        isinstance(one, ast.Call) for one in value.elts
    )
    return calls or plain > 0.7 * len(nodes)


def main(paths: list[str]) -> None:
    """Print each dense statement of some files."""
    for path in map(Path, paths):
        for statement, in_kernel in statements(parsed(path)):
            if found := +kinds(statement, in_kernel):
                print(f"{path}:{statement.lineno}", dict(found))


if __name__ == "__main__":
    main(sys.argv[1:])
