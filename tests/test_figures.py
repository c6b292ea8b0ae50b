"""Every figure that ships, drawn again, against the accepted one: its words, colors and arrays, then its pixels.

They are compared when all notebooks have run, and so apart from all other tests. `make regress` shows what has moved,
and `make accept` takes it as right.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import accepted
import pytest

from leamvd.figures import style

NAMES = sorted(path.stem for path in accepted.FIGURES.glob("*.json"))


@pytest.fixture(scope="session")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return the newly made figures by name: of the notebooks that ran before these tests, or of a run of its own."""
    if ready := os.environ.get("LEAMVD_RESULTS"):
        return accepted.figures(Path(ready))
    output = tmp_path_factory.mktemp("recorded")
    command = [sys.executable, "-m", "leamvd.cli", "reproduce", "--profile", "recorded", "--output", str(output)]
    subprocess.run(command, check=True)
    return accepted.figures(output)


def test_figures_are_those_accepted(figures: dict[str, Path]) -> None:
    assert [*figures] == NAMES
    assert NAMES, "nothing has been accepted: make accept"


def test_of_each_accepted_figure_its_run_is_known() -> None:
    assert sorted(accepted.names("recorded")) == NAMES
    assert sorted(accepted.names("quick")) == sorted(path.stem for path in accepted.place("quick").glob("*.json"))
    for entry in accepted.entries().values():
        assert re.fullmatch(r"[0-9a-f]{12}\+?", entry["run"]["made_with"]["commit"])
        assert entry["run"]["parameters"]["profile"] in accepted.PROFILES


@pytest.mark.parametrize("name", NAMES)
def test_arrays(figures: dict[str, Path], name: str) -> None:
    assert accepted.content(accepted.read(accepted.FIGURES / name), accepted.read(figures[name])) == []


@pytest.mark.parametrize("name", NAMES)
def test_pixels(figures: dict[str, Path], name: str) -> None:
    old, new = (path.with_suffix(".png") for path in (accepted.FIGURES / name, figures[name]))
    assert accepted.pixels(old, new) == []


@pytest.mark.parametrize("name", NAMES)
def test_text_can_be_read_on_a_phone(name: str) -> None:
    """Nine pixels are enough."""
    content = accepted.read(accepted.FIGURES / name)
    assert content["text"] * min(1, style.PHONE / content["size"][0]) >= 9
