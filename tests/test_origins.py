"""The command that makes a page again, and what a recorded study was made with."""

import json
import re
import shlex
from pathlib import Path

import nbformat
import pytest

from leamvd.book import origins, sections
from leamvd.book.parameters import ParameterError
from leamvd.paper import records

SECTIONS = {section.name: section for section in sections.load()}

OTHER = {
    "esd": {"exponents": [0.5, 2.0], "seed": 7, "profile": "paper"},
    "directions": {"seeds": [0, 3], "start": 1e-05, "shift": "printed", "n_gen": None},
    "mnist-7x7": {"methods": ["cd", "lea-mvd:my $1 reading.json"], "layers": [30], "learning_rate": 0.25},
    "linear-cost": {"source": "measured", "sizes": [100, 1000]},
}


@pytest.mark.parametrize(("name", "values"), OTHER.items(), ids=list(OTHER))
def test_the_command_gives_the_same_parameters(name: str, values: dict[str, object]) -> None:
    """As the command line reads them, in whatever else a notebook's variables are."""
    section = SECTIONS[name]
    defaults = {parameter.name: parameter.default for parameter in section.parameters.values()}
    line = origins.command(name, defaults | values | {"output": "elsewhere", "np": "a module"})
    leamvd, reproduce, given, *settings = shlex.split(line)
    assert (leamvd, reproduce, given) == ("leamvd", "reproduce", name)
    assert settings[::2] == ["-p"] * (len(settings) // 2)
    (read,) = sections.assign([section], [tuple(setting.split("=", 1)) for setting in settings[1::2]])
    assert read == {key: value for key, value in values.items() if value != defaults[key]}


def test_the_defaults_are_left_out() -> None:
    assert origins.command("esd", {}) == "leamvd reproduce esd"
    with pytest.raises(ParameterError, match="no section 'esdd'; did you mean 'esd'"):
        origins.command("esdd", {})


@pytest.mark.parametrize("section", SECTIONS.values(), ids=list(SECTIONS))
def test_each_page_prints_its_command(section: sections.Section) -> None:
    """In the first cell behind the parameters, before a cell assigns to one of them."""
    cells = [cell for cell in nbformat.read(section.path, 4).cells if cell.cell_type == "code"]
    first = next(cell for cell in cells if not {"parameters", "injected-parameters"} & set(cell.metadata.tags))
    assert f'origins.command("{section.name}", globals())' in first.source
    (printed,) = first.outputs
    assert printed.text == f"$ {origins.command(section.name, {})}\n"


def test_what_a_recorded_study_was_made_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    training = {"backend": "torch", "device": "cuda", "precision": "float32"}
    known = {
        "section": "mnist-28x28",
        "parameters": {"profile": "paper", "seeds": [0, 1, 2], "n_images": None},
        "study": {"section": "mnist-28x28", "methods": ["cd", "lea-mvd"], "seeds": [0, 1, 2], "training": training},
        "data": "MNIST: 60000 of 60000 training and 10000 of 10000 test images, 28 x 28 pixels",
        "machine": "Linux x86_64",
        "versions": {"numpy": "2.0.0", "leamvd": "0.1.0"},
        "commit": None,
    }
    monkeypatch.setattr(records, "recorded_folder", lambda name: tmp_path / name)
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "provenance.json").write_text(json.dumps(known))
    rows = re.findall(r"<th>(.+)</th>\s*<td>(.+)</td>", origins.recorded("large").data)
    assert dict(rows) == {
        "study": "mnist-28x28: cd, lea-mvd",
        "data": "MNIST: 60000 of 60000 training and 10000 of 10000 test images, 28 x 28 pixels",
        "runs": "3 of each method, seeds 0 to 2",
        "device": "torch on cuda in float32, Linux x86_64",
        "versions": "leamvd 0.1.0, numpy 2.0.0",
        "commit": "–",
        "made by": "leamvd reproduce mnist-28x28 -p profile=paper -p seeds=0,1,2",
        "sample rerun by": "leamvd verify large",
    }


def test_of_many_methods_a_record_shows_the_number() -> None:
    known = json.loads((records.recorded_folder("forensics") / "provenance.json").read_text(encoding="utf-8"))
    assert f"error-measures: {len(known['study']['methods'])} methods<" in origins.recorded("forensics").data
    assert "classification: cd, lea-mvd<" in origins.recorded("classification").data
