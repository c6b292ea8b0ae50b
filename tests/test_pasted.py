"""What pages paste from notebooks, and the parameters that a run's notebook is left with."""

import ast
import copy
import math
from typing import Any

import myst_nb
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from small_book import glued

from leamvd.book import pasted
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
