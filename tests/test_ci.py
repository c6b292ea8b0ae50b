"""The workflow runs what a developer runs, and the Makefile names files that exist."""

import ast
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.version import Version

ROOT = Path(__file__).parent.parent
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
TRIGGERS = WORKFLOW[True]  # "on" is a boolean of YAML 1.1
JOBS: dict[str, Any] = WORKFLOW["jobs"]
STEPS = [(name, step) for name, job in JOBS.items() for step in job["steps"]]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)


def commands(job: str) -> list[str]:
    return [step["run"] for name, step in STEPS if name == job and "run" in step]


def action(job: str, name: str) -> dict[str, Any]:
    (found,) = [step for where, step in STEPS if where == job and step.get("uses", "").startswith(f"{name}@")]
    return found


def test_every_command_is_a_target_of_the_makefile_or_the_one_script() -> None:
    every = [step["run"] for _, step in STEPS if "run" in step]
    assert len(every) >= 7
    for command in every:
        if command == ".ci/run":
            assert os.access(ROOT / command, os.X_OK)
            continue
        program, target, *settings = shlex.split(command)
        assert program == "make", command
        assert target in TARGETS, command
        assert all(re.match(r"[A-Z]+=", setting) for setting in settings), command


def test_every_action_is_pinned_to_a_major_version() -> None:
    actions = [step["uses"] for _, step in STEPS if "uses" in step]
    assert [action for action in actions if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+", action)] == []
    assert len({action.partition("@")[0] for action in actions}) == len(set(actions)), "one version of each"


def test_the_faults_are_shared_among_all_jobs_that_plant_them() -> None:
    shares = JOBS["faults-by-all"]["strategy"]["matrix"]["share"]
    assert shares == [*range(1, len(shares) + 1)]
    (command,) = commands("faults-by-all")
    assert command == f'make faults FAULT="--all --part ${{{{ matrix.share }}}} {len(shares)}"'


def test_every_job_has_a_time_limit_and_runs_in_a_clone() -> None:
    for name, job in JOBS.items():
        assert job["timeout-minutes"] <= 90, name
        if commands(name):
            assert job["steps"][0]["uses"].startswith("actions/checkout@"), name
        assert set(job.get("needs", "").split()) <= set(JOBS), name


def test_the_library_is_tested_on_three_systems() -> None:
    job = JOBS["library"]
    assert job["strategy"]["matrix"]["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert job["runs-on"] == "${{ matrix.os }}"
    assert commands("library") == ["make test-library"]
    assert WORKFLOW["defaults"]["run"]["shell"] == "bash"  # Windows has another one, which the Makefile is not for


def test_what_is_too_large_to_lock_has_jobs_of_its_own() -> None:
    for name in ("torch", "browser"):
        assert commands(name) == [f"make test-{name}"]


def test_every_week_all_is_made_from_nothing_with_the_newest_packages_and_links_are_followed() -> None:
    assert TRIGGERS["schedule"]
    for name in ("newest", "links"):
        assert "github.event_name == 'schedule'" in JOBS[name]["if"]
    assert commands("newest") == ["make test-newest"]
    assert "cache" not in action("newest", "actions/setup-python")["with"]
    assert action("links", "lycheeverse/lychee-action")["with"]["fail"] is True
    assert action("links", "actions/download-artifact")["with"]["name"] == action_names("book")[0]


def action_names(job: str) -> list[str]:
    uploads = [step for name, step in STEPS if name == job and "upload-artifact@" in step.get("uses", "")]
    return [step["with"]["name"] for step in uploads]


def test_the_book_of_main_is_published_and_nothing_else_may_be_written() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert {name: job["permissions"] for name, job in JOBS.items() if "permissions" in job} == {
        "pages": {"pages": "write", "id-token": "write"}
    }
    main = "github.ref == 'refs/heads/main'"
    upload = action("book", "actions/upload-pages-artifact")
    assert (upload["if"], upload["with"]["path"]) == (main, "_build/book")
    pages = JOBS["pages"]
    assert (pages["if"], pages["needs"], pages["environment"]["name"]) == (main, "book", "github-pages")
    assert action("pages", "actions/deploy-pages")["id"] in pages["environment"]["url"]


def test_what_moved_is_shown_where_a_job_fails() -> None:
    steps = [step.get("run") or step["uses"] for step in JOBS["book"]["steps"]]
    assert steps.index("make book") < steps.index("make regress RESULTS=results/quick")
    assert action_names("book") == ["book", "regress"]
    (page,) = [step for name, step in STEPS if name == "book" and step.get("if") == "failure()"]
    assert page["with"]["path"] == "_build/regress.html"
    assert page["with"]["path"] in (ROOT / "tests" / "regress.py").read_text(encoding="utf-8")
    assert commands("coverage") == ["make coverage"]


def test_the_oldest_packages_are_those_that_pyproject_allows() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name in ("numpy", "numba"):
        (least,) = [need.partition(">=")[2] for need in project["dependencies"] if need.startswith(f"{name}>=")]
        (oldest,) = re.findall(rf"^OLDEST_{name.upper()} := (\S+)$", MAKEFILE, re.MULTILINE)
        assert Version(oldest) == Version(least)
    assert commands("oldest") == ["make quiet-oldest"]
    python = action("oldest", "actions/setup-python")["with"]["python-version"]
    assert project["requires-python"] == f">={python}"


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
    alone = {name: found for name, found in wings.items() if not found & {"paper", "bench", "book", "cli"}}
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
        (["test-library"], "pip install --require-hashes -r requirements.lock"),
    ],
)
def test_what_targets_do(arguments: list[str], shown: str) -> None:
    """As a clone that nothing is installed in would do it."""
    command = ["make", "--dry-run", "--always-make", *arguments]
    own = {
        name: value for name, value in os.environ.items() if not name.startswith("M")
    }  # not of a make that runs this
    run = subprocess.run(command, cwd=ROOT, env=own, capture_output=True, text=True, check=True)
    assert shown in run.stdout
    assert ("reproduce" in run.stdout) == (arguments == ["regress"])
    assert ("requirements.lock" in run.stdout) == (arguments[0] != "test-newest")
