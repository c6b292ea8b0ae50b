"""The code that a reader copies, from the README and pages of the book: it runs, and prints what
they say.
"""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import leamvd
from leamvd.optimizers.base import REASONS
from leamvd.optimizers.reading import Reading
from leamvd_paper.studies import claims

ROOT = Path(__file__).parents[1]
BLOCKS = re.MULTILINE | re.DOTALL
README, PAGE = (
    (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "book/optimize.md")
)


def examples(text: str, *, torch: bool = False) -> list[str]:
    """Return the examples of a page that need PyTorch, or all others."""
    every = re.findall(r"^```python\n(.*?)^```", text, BLOCKS)
    return [example for example in every if ("import torch" in example) == torch]


def run(printed: list[str]) -> dict[str, Any]:
    """Execute examples one after the other, and return all their names."""
    # so that what is for new processes alone is left out
    names: dict[str, Any] = {"__name__": "examples"}
    for example in printed:
        exec(example, names)
    return names


def test_the_readme_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run(examples(README))
    first, own_loop, score = capsys.readouterr().out.splitlines()
    assert first == "True The target value has been reached."
    assert f"# {first}\n" in README
    assert float(own_loop) < 600  # it starts from 1,000
    assert names["result"].fun <= 1
    assert float(score) > 0.85


def test_a_module_of_pytorch_learns_as_the_page_says() -> None:
    torch = pytest.importorskip("torch")
    names = run(["import leamvd\n", *examples(PAGE, torch=True)])
    assert names["shares"](names["x0"][None])[0] > 0.4
    assert names["trained"].success
    with torch.no_grad():
        said = names["module"](names["inputs"])[:, 0] > 0
    assert (said != names["labels"]).float().mean() == pytest.approx(names["trained"].fun)


def test_the_page_on_your_function_runs_as_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names = run(examples(PAGE))
    printed = capsys.readouterr().out
    assert names["result"].reason == "target"
    assert round(names["result"].nfev, -3) == 7_000, "which the page says"
    assert names["bounded"].x.max() == 1, "clipped"
    assert names["bounded"].sigma0 != 0.1, "measured"
    assert (names["whole"].nit, names["whole"].reason) == (100, "n_gen")
    assert names["careful"].fun < 100, "it starts from 100"
    auto = leamvd.minimize(names["sphere"], np.ones(100), sigma0="auto", n_gen=1)
    assert f"with {auto.nfev - Reading.population_size} evaluations around `x0`" in PAGE
    assert f"a search has {Reading().complete().n_gen} generations, the paper's number" in PAGE
    ends = dict(re.findall(r"^([a-z-]+) ([\d.]+)$", printed, re.MULTILINE))
    assert [*ends] == ["lea-mvd", "sep-cma-es", "random"]
    assert sorted(ends, key=lambda method: float(ends[method])) == [
        "sep-cma-es",
        "lea-mvd",
        "random",
    ]


def test_the_exercises_come_out_as_their_page_says(capsys: pytest.CaptureFixture[str]) -> None:
    steps, scales, measures = printed_and_said("teach", capsys)
    (star, *falls), (said, *_) = ([last_number(line) for line in lines] for lines in steps)
    assert star == pytest.approx(said, rel=0.05)
    assert [fall > 0.5 for fall in falls] == [True, True, False, False], "shorter ones pay"
    for printed, told in (scales, measures):
        numbers = [re.findall(r"[\d.]+", " ".join(lines)) for lines in (printed, told)]
        found, known = (np.array(own, float) for own in numbers)
        np.testing.assert_allclose(found, known, rtol=0.1, atol=0.02)


def test_the_lines_for_a_reviewer_print_what_their_page_says(
    capsys: pytest.CaptureFixture[str],
) -> None:
    ((printed, told),) = printed_and_said("review", capsys)
    assert printed == told
    page = (ROOT / "book" / "review.md").read_text(encoding="utf-8")
    evidence = claims.evidence(claims.tables("recorded"))
    effects = evidence.loc[evidence["claim"].isin(["C7", "C15"]), "effect"]
    assert len(effects) == 5
    for effect in effects:
        assert f"{effect:.3g} times" in page or f"{effect:.2f} times" in page


def printed_and_said(
    page: str, capsys: pytest.CaptureFixture[str]
) -> list[tuple[list[str], list[str]]]:
    """Return the lines that each example of a page prints, and those that stand below it."""
    text = (ROOT / "book" / f"{page}.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    found = []
    for code, told in re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", text, BLOCKS):
        exec(code, names)
        found.append((capsys.readouterr().out.splitlines(), told.splitlines()))
    assert len(found) == text.count("```python")
    return found


def last_number(line: str) -> float:
    return float(re.findall(r"[\d.]+", line)[-1])


def test_the_page_and_the_docstring_have_each_reason_with_its_status() -> None:
    statuses = {reason: status for reason, (status, _) in REASONS.items()}
    rows = re.findall(r"^\| (-?\d) \| (.*?) \|", PAGE, re.MULTILINE)
    on_page = [
        (reason, int(status)) for status, names in rows for reason in re.findall(r"`(\w+)`", names)
    ]
    told = re.findall(
        r'\(("\w+"(?:, "\w+")*): (-?\d)\)', " ".join((leamvd.minimize.__doc__ or "").split())
    )
    in_docstring = [
        (reason, int(status)) for names, status in told for reason in re.findall(r"\w+", names)
    ]
    for found in (on_page, in_docstring):
        assert sorted(found) == sorted(statuses.items())
