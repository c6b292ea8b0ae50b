"""The workflow runs what a developer runs, and the Makefile names files that exist."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.version import Version

ROOT = Path(__file__).parent.parent
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)


def test_the_workflow_calls_targets_of_the_makefile_and_one_script() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
    commands = {step["run"] for job in workflow["jobs"].values() for step in job["steps"] if "run" in step}
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert {command.split()[:2][-1] for command in commands - {".ci/run"}} <= set(TARGETS)
    assert all(command.startswith("make ") for command in commands - {".ci/run"})


def test_the_oldest_packages_are_those_that_pyproject_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in ("numpy", "numba"):
        (least,) = [need.partition(">=")[2] for need in project["dependencies"] if need.startswith(f"{name}>=")]
        (oldest,) = re.findall(rf"^OLDEST_{name.upper()} := (\S+)$", MAKEFILE, re.MULTILINE)
        assert Version(oldest) == Version(least)


def listed(variable: str) -> list[str]:
    """Return the files that a variable of the Makefile makes of names."""
    names = re.search(rf"^{variable} := \$\(patsubst %,tests/test_%\.py,([^)]+)\)", MAKEFILE, re.MULTILINE)
    assert names, variable
    return [f"tests/test_{name}.py" for name in names[1].replace("\\", " ").split()]


def test_files_named_by_the_makefile_exist() -> None:
    named = listed("KERNEL_TESTS") + listed("LIBRARY_TESTS") + re.findall(r"[\w/]+\.py\b", MAKEFILE)
    assert [name for name in named if not (ROOT / name).is_file()] == []
    (phony,) = re.findall(r"^\.PHONY: ((?:.*\\\n)*.*)$", MAKEFILE, re.MULTILINE)
    assert set(phony.replace("\\\n", " ").split()) == set(TARGETS)


def imported(path: Path) -> set[str]:
    """Return the wings of the library that a file of tests imports from."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [f"{node.module}.{alias.name}" for alias in node.names] if isinstance(node, ast.ImportFrom) else []
        found |= {name.split(".")[1] for name in names if name.startswith("leamvd.")}
    return found


def test_the_library_tests_are_those_that_import_nothing_above_the_library() -> None:
    wings = {path.relative_to(ROOT).as_posix(): imported(path) for path in (ROOT / "tests").glob("test_*.py")}
    above = {"data", "campaign", "experiments", "studies", "analysis", "figures", "bench", "book", "cli"}
    alone = {name: found for name, found in wings.items() if not found & above}
    library = {name for name, found in alone.items() if found & {"_support", "optimizers", "networks"}}
    assert library <= set(listed("LIBRARY_TESTS")) <= set(alone)


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["regress"], "leamvd reproduce --profile quick --output results/regress"),
        (["regress", "RESULTS=some where"], 'tests/regress.py "some where"'),
        (["test-newest"], "_build/newest/bin/python -m pip install -e '.[dev]'"),
        (["test-library", "OS=Windows_NT"], ".venv/Scripts/python -m pytest tests/"),
        (["test-library"], "pip install --no-deps --require-hashes -r requirements.lock"),
    ],
)
def test_what_targets_do(arguments: list[str], shown: str) -> None:
    """As a clone that nothing is installed in would do it."""
    command = ["make", "--dry-run", "--always-make", *arguments]
    own = {name: value for name, value in os.environ.items() if not name.startswith("M")}  # not make's that runs this
    run = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    assert shown in run.stdout
    assert ("reproduce" in run.stdout) == (arguments == ["regress"])
    assert ("requirements.lock" in run.stdout) == (arguments[0] != "test-newest")
