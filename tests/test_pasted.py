"""What pages paste from notebooks, and the parameters that a run's notebook is left with."""

import ast
import copy
import json
import math
from typing import Any

import myst_nb
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from small_book import glued

from leamvd.book import pasted, sections
from leamvd.book.parameters import inline, read_parameters

PAGE = """A {glue:text}`ratio:.2f` and {glue:text}`../notebooks/02_two.ipynb::answer:s`.

```{glue:any} table
:doc: ../notebooks/02_two.ipynb
```
"""


def test_nan_is_not_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {}
    monkeypatch.setattr(myst_nb, "glue", lambda name, value, display: found.update({name: (value, display)}))
    pasted.paste({"a": 1.5, "b": math.nan, "c": "partly", "d": 2})
    assert found == {"a": (1.5, False), "c": ("partly", False), "d": (2, False)}


def test_values_are_read_by_their_names() -> None:
    shown = new_output("display_data", data={"text/plain": "a table"})
    cells = [glued("a", "1.5"), new_markdown_cell("x"), new_code_cell("glue()", outputs=[shown]), glued("b", "'x'")]
    assert pasted.read(new_notebook(cells=cells)) == {"a": "1.5", "b": "'x'"}


def test_a_page_pastes_keys_of_its_own_and_of_other_notebooks() -> None:
    assert pasted.keys(PAGE, "01_one") == {("01_one", "ratio"), ("02_two", "answer"), ("02_two", "table")}


def test_what_a_run_lacks_is_a_dash() -> None:
    there = {"01_one": {"ratio": "1"}, "02_two": {"answer": "2", "table": "3"}}
    assert pasted.dashed(PAGE, there, "01_one") == PAGE
    assert pasted.dashed(PAGE, {}, "01_one") == "A – and –.\n\nNot measured here.\n"
    assert "{glue:text}`ratio" in pasted.dashed(PAGE, {"01_one": {"ratio": "1"}}, "01_one")


# ---- what notebooks hold twice

MYST = """A {term}`mean <average>`, {glue:text}`ratio:.2f`, [R5](#item-r5), [](two.md), `code`, [a link](https://b.org).

$$
y
$$ (eq-y)

:::{table} Numbers
:::
"""


@pytest.mark.parametrize(
    ("role", "shown"),
    [
        ("ratio:.2f", "1.50"), ("ratio", "1.5"), ("word:s", "partly"), ("word", "partly"), ("count:,d", "12,000"),
        ("../notebooks/02_two.ipynb::ratio:.0%", "300%"), ("absent:.2f", "–"), ("03_three.ipynb::ratio:.2f", "–"),
        ("fall:.1f", "−1.5"), ("many:s", "−1 to −.5, 1-2 of a-3"),
    ],
)  # fmt: skip
def test_a_role_pastes_a_value_in_its_format(role: str, shown: str) -> None:
    own = {"ratio": "1.5", "word": "'partly'", "count": "12000.0", "fall": "-1.5", "many": "'-1 to -.5, 1-2 of a-3'"}
    there = {"01_one": own, "02_two": {"ratio": "3.0"}}
    assert pasted.value(f"{{glue:text}}`{role}`", there, "01_one") == shown


def test_other_myst_pastes_no_value() -> None:
    assert pasted.value("{term}`ratio`", {"": {"ratio": "1"}}) is None


def test_myst_stands_beside_what_is_shown_and_comes_back() -> None:
    found: list[str] = []
    resolved = pasted.resolve(MYST, lambda myst: found.append(myst) or f"<{len(found)}>")  # type: ignore[func-returns-value]
    assert found == [
        "{term}`mean <average>`", "{glue:text}`ratio:.2f`", "[R5](#item-r5)", "[](two.md)", "(eq-y)", ":::",
    ]  # fmt: skip
    assert '<span data-myst="{term}`mean &lt;average&gt;`"><1></span>, ' in resolved
    again: list[str] = []
    assert pasted.resolve(resolved, lambda myst: again.append(myst)) == resolved
    assert again == found
    caption = new_markdown_cell("Fig. 1", metadata={"tags": [pasted.CAPTION]})
    notebook: Any = new_notebook(cells=[new_markdown_cell(resolved), caption, new_code_cell("'<span'")])
    pasted.restore(notebook)
    assert ["".join(cell["source"]) for cell in notebook["cells"]] == [MYST, "'<span'"]


def test_a_run_writes_its_numbers_and_leaves_references_as_they_are() -> None:
    before = pasted.resolve(MYST, lambda _: "old") + "{glue:text}`02_two.ipynb::answer:d`"
    notebook: Any = new_notebook(cells=[new_markdown_cell(before)])
    pasted.resolve_numbers(notebook, {"01_one": {"ratio": "0.256"}, "02_two": {"answer": "42"}}, "01_one")
    after = "".join(notebook["cells"][0]["source"])
    assert '`ratio:.2f`">0.26</span>' in after
    assert after.endswith('`02_two.ipynb::answer:d`">42</span>')
    assert after.count(">old</span>") == before.count(">old</span>") - 1


# ---- parameters

SOURCE = """profile: str = "recorded"  # recorded | quick: what is run
methods: list[str] | None = None  # any: cd, lea-mvd
bound: float = 1.0  # > 0: a bound, with a = sign
output: str = "results"  # PATH: folder"""


def test_a_runs_values_stand_where_they_are_declared() -> None:
    injected = new_code_cell("# Parameters\nbound = 2.5", metadata={"tags": ["injected-parameters"]})
    cells = [new_markdown_cell("# A"), new_code_cell(SOURCE, metadata={"tags": ["parameters"]}), injected]
    cells.append(new_code_cell("bound = 7.0"))
    before: Any = new_notebook(cells=cells)
    after = copy.deepcopy(before)
    values = {"profile": "quick", "methods": ["cd", "lea-mvd:my $1 \\ 'reading'"], "bound": 2.5}
    inline(after, values)
    assert [cell["cell_type"] for cell in after["cells"]] == ["markdown", "code", "code"]
    source = "".join(after["cells"][1]["source"])
    found = {name: one.default for name, one in read_parameters(source).items()}
    assert found == values | {"output": "results"}
    kept = [line.partition("  # ")[2] for line in SOURCE.splitlines()]
    assert [line.partition("  # ")[2] for line in source.splitlines()] == kept
    assert after["cells"][2]["source"] == "bound = 7.0"
    assert ast.parse(source)


OTHER = {"int": 7, "float": 0.5, "bool": True, "str": "a 'b' = \\c", "list[int]": [3, 1], "list[float]": [0.5],
         "list[str]": ["x", "lea-mvd:reset=off"]}  # fmt: skip


@pytest.mark.parametrize("section", sections.load(), ids=lambda section: section.stem)
def test_every_parameter_of_every_notebook_takes_a_value(section: sections.Section) -> None:
    """Types and comments are kept, and lines of one value do not touch those of another."""
    notebook = json.loads(section.path.read_text(encoding="utf-8"))
    values = {name: OTHER[one.type.removesuffix(" | None")] for name, one in section.parameters.items()}
    for name, changed in (*((name, {name: value}) for name, value in values.items()), ("all", values)):
        inline(notebook, changed)
        (source,) = [cell["source"] for cell in notebook["cells"] if "parameters" in cell["metadata"].get("tags", [])]
        found = read_parameters("".join(source))
        for own in section.parameters.values():
            now = found[own.name]
            assert (now.type, now.description) == (own.type, own.description), name
        assert {one: found[one].default for one in changed} == changed
