"""The command that makes a page again, and what a recorded study was made with."""

import json
import re
import shlex
from pathlib import Path

import pytest
from prose import code_cells

from leamvd.book import origins, sections
from leamvd.book.parameters import ParameterError
from leamvd.campaign import archive
from leamvd.studies import catalog, records

SECTIONS = {section.name: section for section in sections.load()}

OTHER = {
    "esd": {"exponents": [0.5, 2.0], "seed": 7, "profile": "paper"},
    "directions": {"seeds": [0, 3], "start": 1e-05, "shift": "printed", "n_gen": None},
    "mnist-7x7": {"methods": ["cd", "lea-mvd:$1 reset=off"], "layers": [30], "learning_rate": 0.25},
    "linear-cost": {"profile": "paper", "sizes": [100, 1000]},
    "classification": {"scales": [], "seeds": [0], "epochs": 0, "tuning_rate": 0.0},  # which are values too
}


@pytest.mark.parametrize(("name", "values"), OTHER.items(), ids=list(OTHER))
def test_the_command_gives_the_same_parameters(name: str, values: dict[str, object]) -> None:
    """As the command line reads them, in whatever else a notebook's variables are."""
    section = SECTIONS[name]
    defaults = {parameter.name: parameter.default for parameter in section.parameters.values()}
    line = origins.command(name, defaults | values | {"output": "elsewhere", "np": "a module"})
    _, _, told, *words = shlex.split(line)
    settings = [tuple(word.split("=", 1)) for word in words if "=" in word]
    assert (told, len(words)) == (name, 2 * (len(settings) + ("--profile" in words)))
    settings += [("profile", words[1])] if "--profile" in words else []
    ((_, (read,)),) = sections.requested([section], settings)
    others = {key: value for key, value in values.items() if value != defaults[key]}
    assert read == {"profile": defaults["profile"]} | others


def test_the_defaults_are_left_out() -> None:
    assert origins.command("esd", {}) == "leamvd reproduce esd --profile recorded"
    assert origins.command("esd", {"profile": "quick"}) == "leamvd reproduce esd"
    with pytest.raises(ParameterError, match="no section 'esdd'; did you mean 'esd'"):
        origins.command("esdd", {})


@pytest.mark.parametrize("section", SECTIONS.values(), ids=list(SECTIONS))
def test_each_page_prints_its_command(section: sections.Section) -> None:
    """In the first cell behind the parameters, before a cell assigns to one of them."""
    first = next(cell for cell in code_cells(section.stem) if "parameters" not in cell.metadata.tags)
    assert f'origins.command("{section.name}", globals())' in first.source
    assert [output.text for output in first.outputs] == [f"$ {origins.command(section.name, {})}\n"]


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
    monkeypatch.setattr(archive, "folder", lambda name: tmp_path / name)
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
        "made by": "leamvd reproduce mnist-28x28 --profile paper -p seeds=0-2",
        "sample rerun by": "leamvd verify large",
    }


def test_of_many_methods_a_record_shows_the_number() -> None:
    known = json.loads((archive.folder("forensics") / "provenance.json").read_text(encoding="utf-8"))
    assert f"error-measures: {len(known['study']['methods'])} methods<" in origins.recorded("forensics").data
    assert "classification: cd, lea-mvd<" in origins.recorded("classification").data
    assert origins.recorded("").data == "", "a study that is not recorded"


@pytest.mark.parametrize("by_hand", [True, False])
def test_a_page_says_on_top_that_it_shows_another_run(by_hand: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not by_hand:
        monkeypatch.setenv("LEAMVD_RUN", "1")
    assert origins.note("esd", {"profile": "recorded", "seed": 1}).data == ""
    told = origins.note("esd", {"profile": "recorded", "seed": 7}).data
    assert "Another run" in told
    assert "<code>leamvd reproduce esd --profile recorded -p seed=7</code>" in told
    assert ("the numbers in them stay as they were" in told) == by_hand
    assert ("numbers are of this run" in told) != by_hand
    assert "jobs" not in told, "it has no study"


def test_by_hand_a_notebook_says_what_it_will_compute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"profile": "quick", "methods": ["cd"], "layers": [6], "seeds": [0, 1], "output": str(tmp_path)}
    (told,) = re.findall("<pre>(.*)</pre>", origins.note("mnist-7x7", values).data, re.DOTALL)
    assert re.search(r"^cd-layer1 +2 +0 +[\d.]+$", told, re.MULTILINE)
    assert "minutes on 1 process\n" in told
    assert not any(tmp_path.iterdir()), "nothing has begun"
    study = sections.choose(sections.load(), ["mnist-7x7"])[0].complete(values)
    monkeypatch.setenv("LEAMVD_STORE", str(tmp_path / "store"))
    records.run(catalog.study("mnist-7x7", "quick", **catalog.parameters(study)), tmp_path)
    assert re.search(r"^cd-layer1 +2 +2 +0.0$", origins.note("mnist-7x7", values).data, re.MULTILINE)
    monkeypatch.setenv("LEAMVD_RUN", "1")
    assert "jobs" not in origins.note("mnist-7x7", values).data, "leamvd has computed them"


def test_by_hand_a_wrong_value_is_refused_before_work() -> None:
    with pytest.raises(ValueError, match="methods"):
        origins.note("mnist-7x7", {"profile": "quick", "methods": ["cdd"], "output": "."})
