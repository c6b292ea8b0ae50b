"""What a notebook needs where it is opened elsewhere, on Colab or Binder."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import nbformat
import pytest
import yaml
from packaging.requirements import Requirement
from small_book import ROOT

from leamvd.book import sections

sys.path.append(str(ROOT / "book"))
import launch

ADDRESS = "https://github.com/someone/fork-of-leamvd"
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


def source(notebook: dict[str, Any]) -> str:
    return "".join(notebook["cells"][0]["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebooks_are_prepared_for_the_address_of_the_repository(path: Path) -> None:
    assert read(path) == launch.prepared(read(path), launch.address()), "make launch"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_with_an_address_a_notebook_installs_the_library_in_its_first_cell(path: Path, tmp_path: Path) -> None:
    before = read(path)
    prepared = launch.prepared(copy.deepcopy(before), ADDRESS)
    nbformat.validate(nbformat.from_dict(prepared))
    assert prepared["cells"][0]["metadata"]["tags"] == ["install", "remove-cell"]
    assert f"leamvd[book] @ git+{ADDRESS}'" in source(prepared)
    counts = [cell["execution_count"] for cell in prepared["cells"] if cell["cell_type"] == "code"]
    assert counts == [*range(1, len(counts) + 1)]
    assert launch.prepared(copy.deepcopy(prepared), ADDRESS) == prepared
    assert source(launch.prepared(copy.deepcopy(prepared), ADDRESS + "2")).count("2'") == 1
    assert launch.prepared(copy.deepcopy(prepared), "") == launch.prepared(before, "")
    (tmp_path / path.name).write_text(json.dumps(prepared))
    assert sections.load(tmp_path)[0].fingerprint == sections.load(path.parent)[NOTEBOOKS.index(path)].fingerprint


def test_the_first_cell_installs_only_where_the_library_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    program = source(launch.prepared({"cells": []}, ADDRESS))
    shell = Mock()
    exec(program, {"get_ipython": lambda: shell})
    assert shell.mock_calls == []
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    exec(program, {"get_ipython": lambda: shell})
    ((name, line), _) = shell.run_line_magic.call_args
    requirement = Requirement(re.fullmatch(r"install --quiet '(.+)'", line)[1])  # type: ignore[index]
    told = (name, requirement.name, requirement.extras, requirement.url)
    assert told == ("pip", "leamvd", {"book"}, f"git+{ADDRESS}")


def test_binder_finds_an_environment_and_installs_the_library_into_it() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    names = {re.split(r"[<>=]", entry)[0] for entry in environment["dependencies"] if isinstance(entry, str)}
    assert {"python", "pip", "ipykernel", "jupyter-book"} <= names  # all are compared in test_packaging.py
    script = ROOT / "postBuild"
    assert os.access(script, os.X_OK)
    assert script.read_text(encoding="utf-8").splitlines()[-1] == "exec pip install --no-deps -e ."
    subprocess.run(["sh", "-n", str(script)], check=True)


def test_no_other_file_names_the_repository() -> None:
    names = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    texts = {name: (ROOT / name).read_bytes() for name in names if (ROOT / name).is_file()}
    own = re.compile(rb"https?://(?:github|gitlab)\.com/[\w.-]+/leamvd")
    found = {name for name, text in texts.items() if own.search(text)}
    assert found <= {"_config.yml", *(f"notebooks/{path.name}" for path in NOTEBOOKS)}
