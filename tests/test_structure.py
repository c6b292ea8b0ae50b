"""The rules of the code base that `make lint` does not know: who imports whom, start-up time, words, notebooks."""

import ast
import graphlib
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports
from prose import CONTRIBUTING, NOTEBOOKS, PAGES, README, ROOT, code_cells, figures, markdown

from leamvd.book import sections

PACKAGE = ROOT / "leamvd"
MODULES = sorted({path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")} - {"__init__.py"})
FIGURES = ROOT / "tests" / "figures"
CODE_LINES = 100


FILES, FLOORS = 13, 4  # of a room, at most
LARGER = {"optimizers", "networks", "_support"}
"""The library has more floors: kernels below algorithms."""


@pytest.fixture(scope="module")
def imports() -> grimp.ImportGraph:
    return grimp.build_graph("leamvd", cache_dir=None)


def test_imports_keep_the_contracts_of_pyproject(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert status == 0, capsys.readouterr().out


def test_names_are_imported_from_the_module_that_defines_them(imports: grimp.ImportGraph) -> None:
    found = [
        imports.get_import_details(importer=module, imported="leamvd")
        for module in imports.find_modules_that_directly_import("leamvd")
    ]
    assert {detail["line_contents"] for details in found for detail in details} <= {"import leamvd"}


def floors(imports: grimp.ImportGraph, room: str) -> int:
    """Return how many modules of a room stand upon each other."""
    below = {module: imports.find_modules_directly_imported_by(module) for module in imports.find_descendants(room)}
    heights: dict[str, int] = {}
    for module in graphlib.TopologicalSorter(below).static_order():
        heights[module] = 1 + max((heights[name] for name in below.get(module, ()) if name in below), default=0)
    return max(heights[module] for module in below)


def test_a_room_has_about_ten_files_and_four_floors(imports: grimp.ImportGraph) -> None:
    rooms = [name for name in imports.find_children("leamvd") if imports.find_children(name)]
    sizes = {
        name.removeprefix("leamvd."): (len(imports.find_descendants(name)), floors(imports, name)) for name in rooms
    }
    larger = {name for name, (files, high) in sizes.items() if files > FILES or high > FLOORS}
    assert larger == LARGER, sizes


def test_the_map_names_each_room_in_one_line(imports: grimp.ImportGraph) -> None:
    blocks = CONTRIBUTING.split("```text")[1:]
    named, way = (re.findall(r"^(\w+)(?:/|\.py) {2,}\S", block, re.MULTILINE) for block in blocks)
    assert sorted(named) == sorted(name.removeprefix("leamvd.") for name in imports.find_children("leamvd"))
    assert way == [name for name in named if name in way], "each room once, downward"


@pytest.mark.parametrize("module", MODULES)
def test_house_style_of_a_module(module: str) -> None:
    text = (PACKAGE / module).read_text(encoding="utf-8")
    names = [node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)]
    assert "__all__" not in names, "only leamvd/__init__.py says what is public; a leading underscore says the rest"
    aliases = re.findall(r"^\w+(?:: TypeAlias)? = (?:npt\.)?NDArray\[.*", text, re.MULTILINE)
    assert aliases == [] or module == "_support/compile.py", "types of arrays have one home, _support/compile.py"
    signs = set(filter(lambda sign: not sign.isascii(), text)) - set("×±–·⁻⁰¹²³⁴⁵⁶⁷⁸⁹")  # what labels and tables show
    assert signs == set(), "formulas are ASCII in sources: W^T v, sqrt(n), sigma, <="


def fresh(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_import_is_quick() -> None:
    # processor time, so that a busy machine does not matter
    program = "import time; start = time.process_time(); from leamvd import LEAMVD; print(time.process_time() - start)"
    assert any(float(fresh(program)) < 1 for _ in range(3))  # the first time, unless it is slow by chance


@pytest.mark.compiled
def test_the_first_generation_is_quick_once_compiled() -> None:
    program = (
        "import time, numpy as np; from leamvd import LEAMVD; start = time.process_time();"
        "opt = LEAMVD(np.ones(1000), seed=1);"
        "opt.tell(opt.ask(), np.arange(24.0)); opt.ask(); print(time.process_time() - start)"
    )
    fresh(program)  # compiles, where nothing has been compiled yet
    assert any(float(fresh(program)) < 1 for _ in range(3))  # the first time, unless it is slow by chance


def test_the_readme_has_the_program_called_in_one_way() -> None:
    """By its name, once the installation is activated."""
    (activated,) = re.findall(r"^\$ .*\.venv/.*$", README, re.MULTILINE)
    assert activated.startswith("$ . .venv/bin/activate")
    before = README.partition(activated)[0]
    assert "$ leamvd" not in before
    assert "$ pip" not in before


def test_no_path_of_some_machine_in_a_file() -> None:
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    machine = re.compile(rb"(?<![\w.:/])/(?:home|root|Users|work|opt|mnt|tmp)/[\w.]|\b[A-Z]:\\+Users\b")
    assert machine.search(b"in '/home" + b"/me/clone'")
    assert machine.search(b"C:" + rb"\Users\me")
    found = {
        name: match[0]
        for name in filter(None, names)
        if (ROOT / name).is_file() and (match := machine.search((ROOT / name).read_bytes()))
    }
    assert found == {}


# Each has another word here, or another spelling. "Spread over threads" names no number, and "this seed solution" is
# quoted from the paper.
BANNED = re.compile(
    r"rival|competitor|unseeded|(?<!this )seed solution|spread(?! over\b)|quickest|not[-_]a[-_]number"
    r"|normal numbers|a run each|\blaws?\b|\brow [re]\d|\bgrey|colour|favour|behaviour|neighbour|centre"
    r"|(?:optimi|normali|binari|minimi|maximi|initiali|summari|generali|vectori|recogni|organi|reali|utili|paralleli)s"
    r"(?:e|es|ed|ing|er|ers|ation|ations)\b",
    re.IGNORECASE,
)
PROSE = [*PACKAGE.rglob("*.py"), *ROOT.glob("book/*.md"), *ROOT.glob("*.md"), ROOT / "Makefile"]


@pytest.mark.parametrize("path", PROSE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_one_word_for_one_thing(path: Path) -> None:
    assert [line for line in path.read_text(encoding="utf-8").splitlines() if BANNED.search(line)] == []


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_one_word_for_one_thing_in_a_notebook(stem: str) -> None:
    text = "\n".join(f"{cell.source}\n{cell.metadata}\n{cell.id}" for cell in NOTEBOOKS[stem].cells)
    assert [line for line in text.splitlines() if BANNED.search(line)] == []


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_notebook_calls_the_library(stem: str) -> None:
    cells = code_cells(stem)
    trees = [ast.parse(cell.source) for cell in cells]
    banned = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
    assert [ast.unparse(node) for tree in trees for node in ast.walk(tree) if isinstance(node, banned)] == []
    own = [cell for cell in cells if not {"parameters", "install"} & set(cell.metadata.get("tags", []))]
    lines = [line.strip() for cell in own for line in cell.source.splitlines()]
    assert sum(bool(line) and not line.startswith("#") for line in lines) <= CODE_LINES


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_notebook_calls_modules_by_their_names(stem: str) -> None:
    """Only the figures have an alias, `draw`: their modules are named as those that make the tables."""
    trees = [ast.parse(cell.source) for cell in code_cells(stem)]
    imports = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    lines = [ast.unparse(node) for node in imports]
    renamed = [line for line in lines if "leamvd" in line and re.search(r" as (?!draw$)", line)]
    assert renamed == []
    assert all(line.startswith("from leamvd.figures import ") for line in lines if line.endswith(" as draw"))


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_notebook_shows_what_a_reader_wants_to_see(stem: str) -> None:
    for cell in code_cells(stem):
        tags = cell.metadata.get("tags", [])
        if "parameters" in tags:
            assert "hide-input" in tags, f"folded on the page:\n{cell.source}"
        if re.search(r"\bpaste\(", cell.source):
            assert {"remove-cell", "remove-input", "hide-input"} & set(tags), f"hidden on the page:\n{cell.source}"


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_notebook_parameters(stem: str) -> None:
    (section,) = sections.choose(sections.load(), [stem])
    assert section.title
    assert stem.partition("_")[2].replace("_", "-").endswith(section.name)
    for parameter in section.parameters.values():
        assert parameter.description
        if parameter.name != "output":  # the command line's own; it need not exist yet
            default = parameter.default
            text = ",".join(map(str, default)) if isinstance(default, list) else str(default)
            assert parameter.parse(text) == default, parameter.name


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_notebook_is_executed_and_its_figures_described(stem: str) -> None:
    for number, cell in enumerate(code_cells(stem)):
        assert cell.execution_count, f"code cell {number} was not executed, so nothing would compare it"
        if any(kind.startswith("image/") for output in cell.outputs for kind in output.get("data", {})):
            myst = {"figure": {}, "image": {}} | cell.metadata.get("mystnb", {})
            for text in (myst["figure"].get("caption"), myst["figure"].get("name"), myst["image"].get("alt")):
                assert text, f"code cell {number} lacks a caption, a name or an alternative text: {myst}"
            (saved,) = re.findall(r"""["']([\w-]+)["'], output\)""", cell.source)
            assert myst["figure"]["name"] == f"fig-{saved}", "a figure and its file have one name"


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{3,}|\d+", text.lower()))


def fit(alt: str, caption: str, captions: list[str]) -> float:
    """Return how many words an alternative text and a caption share, those that few captions have counting most."""
    return sum(1 / sum(word in words(other) for other in captions) for word in words(alt) & words(caption))


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_no_two_alternative_texts_are_swapped(stem: str) -> None:
    captions = [myst.figure.caption for myst in figures(stem).values()]
    for a, b in itertools.combinations(figures(stem).values(), 2):
        own, swapped = (
            fit(a.image.alt, x.figure.caption, captions) + fit(b.image.alt, y.figure.caption, captions)
            for x, y in ((a, b), (b, a))
        )
        assert own > swapped, f"alternative texts tell these figures apart less than their captions do: {a}\n{b}"


@pytest.mark.parametrize("stem", [*PAGES, *NOTEBOOKS])
def test_headings_of_a_page_differ(stem: str) -> None:
    """A section that stands twice has been merged badly."""
    text = re.sub(r"^```.*?^```", "", markdown(stem), flags=re.MULTILINE | re.DOTALL)  # comments in code
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    assert len(headings) > 0
    assert [name for name in headings if headings.count(name) > 1] == []


COUNTS = {"Two": 2, "Three": 3, "Four": 4, "Five": 5, "Six": 6}
LINES = {"Dashed": "--", "Dotted": ":", "Dash-dotted": "-."}


@pytest.mark.parametrize("stem", NOTEBOOKS)
def test_a_figure_is_what_its_words_say(stem: str) -> None:
    """How many panels there are, which axes are logarithmic, and which lines are dashed."""
    for name, myst in figures(stem).items():
        if not (drawn := FIGURES / f"{name.removeprefix('fig-')}.json").exists():
            continue  # of seconds, which are no figure to compare with
        panels = [axes for axes in json.loads(drawn.read_text(encoding="utf-8"))["axes"] if "looks" in axes]
        alt, caption = myst.image.alt, myst.figure.caption
        if counted := re.match(rf"({'|'.join(COUNTS)}) (?:[\w-]+ )?(?:panels|(?:[\w-]+ )?(?:charts|plots))\b", alt):
            assert len(panels) == COUNTS[counted[1]], f"{name} has {len(panels)} panels: {alt}"
        if re.search(r"\b(?:logarithmic|log-log)\b", f"{caption} {alt}"):
            assert any("log" in panel["scales"] for panel in panels), f"no axis of {name} is logarithmic: {caption}"
        for words in re.findall(rf"\b({'|'.join(LINES)}): ", caption):
            looks = [look.split() for panel in panels for look in panel["looks"]]
            assert any(LINES[words] in look for look in looks), f"no line of {name} is {words.lower()}"
