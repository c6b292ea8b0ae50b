"""What `make quiet` takes for a figure that has moved."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import quiet
from accepted import place

PLACE = Path("01_esd", "quick-1", "figures")


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """Make a run an exact copy of the accepted figures, and return the environments of the runs."""
    environments: list[dict[str, str]] = []

    def run(command: list[str], *, env: dict[str, str], **options: Any) -> None:
        environments.append(env)
        output = Path(command[command.index("--output") + 1]) / PLACE
        output.mkdir(parents=True)
        for name in quiet.FIGURES:
            shutil.copy(place("quick") / f"{name}.json", output)

    monkeypatch.setattr(subprocess, "run", run)
    return environments


def test_the_accepted_figures_have_not_moved(runs: list[dict[str, str]], tmp_path: Path) -> None:
    for number, environment in enumerate(quiet.WAYS.values()):
        assert quiet.moved(environment, tmp_path / f"{number}") == []
        assert environment.items() <= runs[-1].items()


def test_what_has_moved_or_is_missing_is_named(
    runs: list[dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = subprocess.run

    def run(*arguments: Any, **options: Any) -> None:
        copied(*arguments, **options)
        (tmp_path / PLACE / "esd-models.json").unlink()
        steps = tmp_path / PLACE / "directions-steps.json"
        shown = json.loads(steps.read_text())
        shown["axes"][0]["arrays"][0][0][1] *= 1.001
        steps.write_text(json.dumps(shown))

    monkeypatch.setattr(subprocess, "run", run)
    assert quiet.moved({}, tmp_path) == ["directions-steps", "esd-models"]


def test_a_figure_that_moves_ends_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(quiet, "moved", lambda environment, output: ["esd-models"] if len(environment) == 2 else [])
    with pytest.raises(SystemExit, match="figures moved without a fault"):
        quiet.main(2)
    said = [line.rpartition(" s: ")[2] for line in capsys.readouterr().out.splitlines()]
    assert said == ["nothing moved", "nothing moved", "moved: esd-models"] * 2
