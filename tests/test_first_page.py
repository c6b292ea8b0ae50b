"""The first page: its claims, the words of verdicts, its example, tables of numbers."""

import importlib.util
import json
import re
from typing import Any, get_args

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from prose import NOTEBOOKS, PAGES, ROOT, markdown
from sphinx.errors import ExtensionError

from leamvd.analysis import claims, rules
from leamvd.book import pasted

INDEX = PAGES["index"]

spec = importlib.util.spec_from_file_location("sphinx_extension", ROOT / "book" / "sphinx_extension.py")
assert spec
assert spec.loader
extension = importlib.util.module_from_spec(spec)
spec.loader.exec_module(extension)


# ---- verdicts


def test_every_answer_has_a_sign_and_a_color() -> None:
    assert set(extension.VERDICTS) == set(get_args(claims.Answer))
    signs = [sign for sign, _ in extension.VERDICTS.values()]
    assert len(set(signs)) == len(signs)
    colors = {word: color for word, (_, color) in extension.VERDICTS.items()}
    settled = [colors.pop(word) for word in ("reproduced", "partly", "not reproduced")]
    assert settled == ["success", "warning", "danger"]
    assert set(colors.values()) == {"neutral"}


@pytest.mark.parametrize("word", ["Partly", "confirmed", ""])
def test_an_unknown_verdict_is_an_error(word: str) -> None:
    with pytest.raises(ExtensionError, match=f"reproduced, partly, .* got '{word}'"):
        extension.badge(word)


# ---- the page itself


def claim_rows() -> dict[str, list[str]]:
    """Return the cells of each claim's row."""
    table = INDEX[INDEX.index(":name: tab-claims") :]
    rows = re.findall(r"^\* - (C\d+): (.*?)(?=^\* - |^:::)", table, re.MULTILINE | re.DOTALL)
    return {claim: text.rstrip().split("\n  - ") for claim, text in rows}


def test_every_claim_has_a_row_about_itself() -> None:
    assert [*claim_rows()] == [claim.claim for claim in rules.CLAIMS]
    for claim, (_, *cells) in claim_rows().items():
        keys = [
            f"{claim.lower()}-{key}"
            for key in ("as-printed-corrected-furthest", "as-printed-corrected", "conclusion-corrected")
        ]
        assert [re.findall(r"::([\w-]+):s`", cell) for cell in cells] == [[key] for key in keys]


@pytest.mark.parametrize("stem", ["index", *NOTEBOOKS])
def test_a_mark_stands_where_the_registered_rules_answer_otherwise(stem: str) -> None:
    answers = pasted.read(json.loads((ROOT / "notebooks/09_verdicts.ipynb").read_text(encoding="utf-8")))
    pattern = r"09_verdicts\.ipynb::(c\d+-(?:as-printed|conclusion))-corrected:s`(\s*†)?"
    shown = re.findall(pattern, markdown(stem))
    for key, mark in shown:
        assert mark == "\N{NO-BREAK SPACE}†" * (answers[key] != answers[f"{key}-corrected"]), key


KEYS = re.sub(r"\s+", " ", re.sub(r"\{glue:\w+\}`[^`]*::([\w.-]+):[^`]*`", r"<\1>", INDEX))
SAID = [
    "misclassify <28x28-error-lea-mvd> % of the test images of MNIST, against <28x28-error-cd> % with contrastive "
    "divergence. The <28x28-error-lea-mvd> % is what one epoch of contrastive divergence leaves",
    "<improved> of <searches> found anything better",
    "of 7×7 pixels, one epoch leaves <7x7-error-cd-n_gen-1> %, LEA-MVD <7x7-error-lea-mvd> % and contrastive "
    "divergence <7x7-error-cd> %",
    "they lower the error by <default-2> %, and steps chosen by slope and curvature by <half-2> %",
    "both end below LEA-MVD on <longer-cma-es-ahead> of <longer-problems> problems",
]


@pytest.mark.parametrize("words", SAID)
def test_a_number_stands_with_the_words_that_it_is_about(words: str) -> None:
    assert words in KEYS


def test_a_row_of_the_table_has_the_numbers_of_its_method() -> None:
    rows = dict(
        re.findall(r"\* - ([^<*]*?)(?:, the fastest [^<]*)?((?: - <[^>]+>| - –){5})", KEYS.replace("<other> ", ""))
    )
    errors = ["error-1", "error-2", "error-3"]
    known = {"sep-cma-es": ["time", "memory", *errors], "cma-es": ["time", "memory", *errors], "cd": [*errors]}
    named = {"separable CMA-ES (pycma)": "sep-cma-es", "CMA-ES with a full matrix (pycma)": "cma-es",
             "contrastive divergence": "cd"}  # fmt: skip
    for words, method in named.items():
        assert re.findall(r"<([^>]+)>", rows[words]) == [f"{method}-{column}" for column in known[method]]
    assert "<other>, the fastest of evosax, EvoTorch and PyPop7 - <other-time> - <other-memory> - –" in KEYS


def test_the_example_runs_as_printed(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"^```python\n(.*?)^```", INDEX, re.MULTILINE | re.DOTALL)
    assert len([line for line in example.splitlines() if line]) == 4
    names: dict[str, Any] = {}
    exec(example, names)
    result = names["result"]
    assert result.fun < 600  # it starts from 1,000
    assert capsys.readouterr().out == f"{result.fun} {result.message}\n"


# ---- tables


def test_columns_of_numbers_are_aligned_and_words_are_not() -> None:
    rows = {
        "method": ["cd", "lea-mvd"],
        "error": ["-6,320 [-6,380, 6,250]", "–"],
        "p": ["8·10⁻³²", "< 10⁻⁶"],
        "d": ["-1", "x"],
    }
    index = pd.MultiIndex.from_tuples([("own", 1), ("own", 2)], names=["inputs", "RBM"])
    page = BeautifulSoup(extension.aligned(pd.DataFrame(rows, index).to_html()), "html.parser")
    assert [cell.text for cell in page.select("td.number")] == ["−6,320 [−6,380, 6,250]", "8·10⁻³²", "–", "< 10⁻⁶"]
    assert [cell.text for cell in page.select("thead tr:first-child th.number")] == ["error", "p"]
    assert page.select("tbody th.number") == []
    assert BeautifulSoup(extension.aligned(pd.DataFrame({"a": []}).to_html()), "html.parser").select(".number") == []
