"""The rules of the code base that `make lint` does not know: who imports whom, and what notebooks
hold.
"""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from importlinter.cli import lint_imports

from book_counts import counted, of_notebook

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("[RC]*.md"), *sorted((ROOT / "book").rglob("*.md"))]
PAGES.append(ROOT / "notebooks" / "recorded" / "README.md")
PAPER = ROOT / "notebooks" / "leamvd_paper"
# what sections rest on
SHARED = {
    "benchmarks",
    "layers",
    "natural_evolution",
    "plots",
    "results",
    "statistics",
    "study_methods",
    "verify",
    "words",
}
# they judge tables of sections, or go on from their stacks
ABOUT_OTHERS = {"claims", "fine_tuning", "settings_map"}
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def test_a_room_imports_from_the_rooms_below_it(capsys: pytest.CaptureFixture[str]) -> None:
    status = lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True, no_logo=True)
    assert status == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    "path", sorted((PAPER / "studies").glob("[!_]*.py")), ids=lambda path: path.stem
)
def test_a_section_imports_no_other_section(path: Path) -> None:
    nodes = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
    ]
    own = {node.module for node in nodes if node.level and node.module}
    own |= {name.name for node in nodes if node.level and not node.module for name in node.names}
    assert own - SHARED == set() or path.stem in ABOUT_OTHERS


def test_the_paper_uses_no_private_name_of_the_library() -> None:
    """But for `_support`, since the two are released together, and `origin.Varied`, which varies
    the algorithm's inner steps.
    """
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in PAPER.rglob("*.py")}
    own = set()  # what the paper's own code defines or sets
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                own.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                own.add(node.attr)
    used = set()
    for name, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("leamvd."):
                used |= {(name, part) for part in node.module.split(".")}
                used |= {(name, alias.name) for alias in node.names}
            elif isinstance(node, ast.Attribute) and node.attr not in own:
                used.add((name, node.attr))
    public = {"_asdict", "_best_parameter", "_fields", "_replace", "_support"}  # of tuples, of COCO
    private = {(name, word) for name, word in used if word[0] == "_" and not word.endswith("__")}
    assert {name for name, word in private if word not in public} == {"origin"}


def test_the_library_is_imported_without_what_it_may_not_need() -> None:
    assert imported("import leamvd", {"numba", "scipy", "pandas", "matplotlib"}) == set()


def test_what_only_reads_or_lists_does_not_import_what_computes() -> None:
    program = """
from click.testing import CliRunner
from leamvd_paper import cli
from leamvd_paper.studies import results
results.read_recorded("verdicts", "registered")
for words in (["--help"], ["list"], ["verify", "--help"]):
    assert CliRunner().invoke(cli.main, words).exit_code == 0
"""
    slow = {"numba", "scipy.optimize", "sklearn", "matplotlib", "papermill"}
    slow |= {f"leamvd.optimizers.{name}" for name in ("base", "reading", "minimize")}
    assert imported(program, slow) == set()


def imported(program: str, names: set[str]) -> set[str]:
    """Return which modules a program imports, of some."""
    found = f"{program}\nimport sys\nprint(*({names} & sys.modules.keys()))"
    command = [sys.executable, "-c", found]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return {*run.stdout.split()}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_executed_and_a_person_can_edit_it(path: Path) -> None:
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    words = [
        "".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
    ]
    assert len(code) <= 15
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1)), (
        "nbval compares these alone"
    )
    assert all("execution" not in cell["metadata"] for cell in code), (
        "times of cells are noise in a diff"
    )
    html = r"<(?!a id=\"|/a>)[a-z/!]"  # but for the ids of headings that had other words
    assert not any(re.search(rf"{html}|\{{(glue|cite|numref|eq|term)|:::", text) for text in words)
    kinds = [
        output
        for cell in code
        for output in cell["outputs"]
        if output["output_type"] in ("stream", "error")
    ]
    assert all(output.get("name") == "stdout" for output in kinds)
    drawn = [
        cell
        for cell in code
        if any("image/png" in output.get("data", {}) for output in cell["outputs"])
    ]
    alts = {cell["metadata"]["mystnb"]["image"]["alt"].strip() for cell in drawn}
    assert len(alts - {""}) == len(drawn), "an image needs an alternative text of its own"
    page = of_notebook(notebook["cells"])
    assert (page.uncaptioned, page.bars, page.printed) == (0, 0, 0), "python tests/book_counts.py"


def test_the_book_can_be_read() -> None:
    pages = counted().values()
    assert sum(page.words for page in pages) <= 18_000
    assert sum(page.tables for page in pages) <= 40
    assert sum(page.folded for page in pages) <= 45


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=lambda path: path.stem)
def test_links_lead_where_their_words_say(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        text = "\n".join(
            "".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"
        )
    for words, target in re.findall(r"\[([^\]\[]*)\]\(([^)\s]+)\)", text):
        if number := re.fullmatch(
            r"(?:Section )?([RE]?\d+)", words
        ):  # [Section 5](05_linear_cost.ipynb), [R5](#item-r5)
            assert re.search(rf"(?:^|[-/])0?{number[1].lower()}(?:_|$)", target), (
                f"[{words}]({target})"
            )
        if "//" not in target:
            assert (path.parent / target.partition("#")[0]).exists(), target


def test_the_page_of_rules_leads_to_headings_of_the_dated_files() -> None:
    page = (ROOT / "book" / "rules.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\((rules/\w+\.md)#([\w-]+)\)", page)
    assert len(links) == page.count("](rules/")
    for name, heading in links:
        dated = (ROOT / "book" / name).read_text(encoding="utf-8")
        headings = re.findall(r"^#+ (.*)$", dated, re.MULTILINE)
        # as a code host makes ids of them
        ids = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
        assert heading in ids, f"{name}#{heading}"


def test_no_property_fails_on_a_slow_or_busy_machine() -> None:
    assert settings().deadline is None
