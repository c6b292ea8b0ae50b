"""The code is small, and plain: both are counted by the syntax tree, see `plain`."""

import statistics
from collections import Counter
from pathlib import Path

import pytest

import plain

ROOT = Path(__file__).parent.parent
LIBRARY, PAPER = ROOT / "leamvd", ROOT / "notebooks" / "leamvd_paper"
ROOMS = [
    *(LIBRARY / name for name in ("_support", "networks", "optimizers")),
    *(PAPER / name for name in (".", "book", "data", "studies")),
]
LIMITS = {  # of 1,000 statements of a room
    "packed": 0,
    "drawn": 0,
    "merged": 2,
    "chosen": 3,
    "deep": 3,
    "long": 12,
    "large": 12,
    "walrus": 3,
}
OF_KERNELS = {"large": 25}  # of rooms that have some


@pytest.mark.parametrize(("folder", "most"), [(LIBRARY, 38_000), (PAPER, 79_696)])
def test_the_code_is_small(folder: Path, most: int) -> None:
    """pycma's smaller sister, cmaes, has 38,035 nodes so counted."""
    assert sum(plain.n_nodes(path) for path in folder.rglob("*.py")) <= most


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.relative_to(ROOT).as_posix())
def test_the_code_is_plain(room: Path) -> None:
    files = {path.name: plain.counted(path) for path in room.glob("*.py")}
    kinds: Counter[str] = Counter()
    sizes: list[int] = []
    kernels: list[int] = []
    functions: list[int] = []
    for found in files.values():
        kinds.update(found.kinds)
        sizes += found.sizes
        kernels += found.kernels
        functions += found.functions
    limits = LIMITS | (OF_KERNELS if kernels else {})
    n_statements = len(sizes) + len(kernels)
    for kind, limit in limits.items():
        assert 1_000 * kinds[kind] / n_statements <= limit, kind
        for name, found in files.items():
            count = len(found.sizes) + len(found.kernels)
            assert found.kinds[kind] <= 2 * limit * count / 1_000 + (limit > 0), f"{kind}: {name}"
    assert sum(size > 250 for size in functions) <= 0.12 * len(functions)
    median = 12 if LIBRARY in room.parents else 15
    assert statistics.median(sizes) <= median
    assert statistics.median(kernels or [0]) <= 13
    assert statistics.quantiles(sizes, n=10)[-1] <= 28


PACKED = """
def f(x, y):
    a, b = x, y
    [a, b] = [x, y]
    for a, b in [(x, y)]:
        pass
    a, b = b, a
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (PACKED, {"packed": 3}),
        ("@kernel()\ndef f(x):\n    a, b = x, 2 * x\n", {}),
        ("a, b = (f(x) for x in y)\nc, d = map(f, y)\n", {"drawn": 2}),
        ("{**{1: 2}, **y}\n{1: 2, 3: 4} | y\ny |= {1: 2, 3: 4}\n", {"merged": 3}),
        ("f(1 if x else 2)\nf((1, 2)[x > y])\nf(x and y or z)\nz = 1 if x else 2\n", {"chosen": 3}),
        ("f(x and y or z > 1)\n", {}),
        ("f(g(h(k(x))))\nf(g(h(x))).k(x).l()\n", {"deep": 1}),
        ("if (x := y):\n    pass\nwhile x := y:\n    pass\n", {"walrus": 1}),
        ("y = [f(x) for x in z]\ny = [f(x, 1 + 2 * x, g=x[1]) for x in z if x > 1]\n", {"long": 1}),
        ("x = a + b * c - d / e + f * g - h / i + j * k - l / m + n * o - p / q\n", {"large": 1}),
        ("x = [a(1), b(2, 3), c(d=4), e(5), f(6), g(7), h(8), i(9), j(10), k(11), l(12)]\n", {}),
    ],
)  # fmt: skip
def test_what_is_counted(text: str, found: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "one.py"
    path.write_text(text, encoding="utf-8")
    assert +plain.counted(path).kinds == found


def test_docstrings_and_annotations_of_functions_are_not_counted(tmp_path: Path) -> None:
    texts = ['"""A."""\n\ndef f(x: int) -> list[int]:\n    """B."""\n    return [x]\n']
    texts.append("def f(x):\n    return [x]\n")
    sizes = []
    for text in texts:
        path = tmp_path / "one.py"
        path.write_text(text, encoding="utf-8")
        sizes.append(plain.n_nodes(path))
    assert sizes[0] == sizes[1]
