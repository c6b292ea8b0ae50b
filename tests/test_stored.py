"""What the notebooks that ship hold, where nbval does not look: names, pictures, times."""

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import accepted
import pytest
from prose import NOTEBOOKS, code_cells

from leamvd.book import pasted, sections

SECTIONS = sections.load()


def test_at_equal_time_the_preset_is_ahead_of_random_search() -> None:
    text = ignored("11_minima_and_networks").replace(",", "")
    columns = [line.split() for line in text.splitlines() if line.startswith("sphere n = 1000 ")]
    ratios = [number for line in columns for number in line[4:]]
    assert len(ratios) == 5, "other readings, separable CMA-ES and random search, beside the preset"
    assert min(float(number) for number in ratios[:3]) > 1


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.stem)
def test_what_is_pasted_is_what_was_accepted_by_its_name(section: sections.Section) -> None:
    assert pasted.read(NOTEBOOKS[section.stem]) == accepted.entries()[f"recorded {section.name}"]["pasted"]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.stem)
def test_pictures_are_those_of_the_accepted_figures(section: sections.Section) -> None:
    shown = accepted.shown(NOTEBOOKS[section.stem])
    assert sorted(shown) == accepted.entries()[f"recorded {section.name}"]["figures"]
    for name, cell in shown.items():
        (picture,) = [output["data"]["image/png"] for output in cell["outputs"]]
        assert base64.b64decode("".join(picture)) == (accepted.FIGURES / f"{name}.png").read_bytes(), name


def ignored(stem: str) -> str:
    """Return what the cell of a notebook has printed or returned that nbval does not compare."""
    (cell,) = [cell for cell in code_cells(stem) if "nbval-ignore-output" in cell.metadata.get("tags", [])]
    return "".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.outputs)


def test_every_output_that_nbval_ignores_is_tested_here() -> None:
    stems = [one.stem for one in SECTIONS if "nbval-ignore-output" in one.path.read_text(encoding="utf-8")]
    assert stems == ["05_linear_cost", "11_minima_and_networks"]


def test_a_generation_takes_the_order_of_time_that_it_can() -> None:
    """A nanosecond to a microsecond for each of its 24 individuals' numbers."""
    lines = re.findall(r"^n = ([\d,]+): a generation takes ([\d.]+) ms$", ignored("05_linear_cost"), re.MULTILINE)
    assert [n for n, _ in lines] == ["100,000", "1,000,000"]
    for n, milliseconds in lines:
        assert 1e-9 < float(milliseconds) / 1e3 / (24 * int(n.replace(",", ""))) < 1e-7, (n, milliseconds)


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.stem)
def test_run_in_place_a_notebook_leaves_nothing_that_git_sees(section: sections.Section) -> None:
    assert "injected-parameters" not in section.path.read_text(encoding="utf-8"), "which would name another folder"
    output = section.path.parent / str(section.parameters["output"].default)
    left = ["figures/a.png", "store/1a2b", "study-1a.json", "study-1a-runs.csv.gz", "bench-1a/b.json", "optimizers.csv"]
    command = ["git", "check-ignore", *(str(output / name) for name in (*left, "recorded/new/runs.csv.xz", "12.ipynb"))]
    found = subprocess.run(command, cwd=accepted.ROOT, check=False, capture_output=True, text=True).stdout.split()
    assert found == command[2:-2]


def test_run_in_place_a_notebook_keeps_its_sentences_and_outputs(tmp_path: Path) -> None:
    """All that git sees of it is when it ran, and on what."""
    shutil.copy(accepted.ROOT / ".gitignore", tmp_path)
    path = tmp_path / "notebooks" / "01_esd.ipynb"
    path.parent.mkdir()
    shutil.copy(accepted.ROOT / "notebooks" / path.name, path)
    subprocess.run(["git", "init", "--quiet"], cwd=tmp_path, check=True)
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    before = json.loads(path.read_text(encoding="utf-8"))
    subprocess.run([sys.executable, "-m", "jupyter", "execute", "--inplace", path.name], cwd=path.parent, check=True)
    seen = subprocess.run(["git", "status", "--short"], cwd=tmp_path, check=True, capture_output=True, text=True).stdout
    assert [line[1:] for line in seen.splitlines() if line[1] != " "] == ["M notebooks/01_esd.ipynb"]
    after = json.loads(path.read_text(encoding="utf-8"))
    assert list(map(kept, after["cells"])) == list(map(kept, before["cells"]))


def kept(cell: dict[str, Any]) -> list[Any]:
    """Return what a kernel leaves as it is where nothing has changed; a picture is compared by its words."""
    outputs = [{**output, "data": {**output.get("data", {}), "image/png": ""}} for output in cell.get("outputs", [])]
    return [cell["cell_type"], cell["id"], cell["source"], outputs]
