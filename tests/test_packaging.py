"""The files that say what is installed agree with each other."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = CONFIG["project"]
LOCK = (ROOT / "requirements.lock").read_text()
EXTRAS = PROJECT["optional-dependencies"]
LOCKED = [group for name, group in EXTRAS.items() if name not in ("torch", "bench")]  # large, and differ by machine
PYTHONS = ["3.11", "3.12", "3.13"]


def requirements(*groups: list[str]) -> dict[str, SpecifierSet]:
    """Return name -> bounds of the requirements in the groups, without the project's own extras."""
    every = [Requirement(text) for group in groups for text in group]
    return {canonicalize_name(r.name): r.specifier for r in every if r.name != PROJECT["name"]}


def locked() -> Iterator[tuple[Requirement, list[str]]]:
    """Return each locked requirement with the options behind it."""
    for entry in LOCK.replace("\\\n", " ").splitlines():
        requirement, *options = re.split(r"\s+(?=--)", entry.strip())
        yield Requirement(requirement), options


def test_lock_has_hashes_and_no_addresses() -> None:
    entries = list(locked())
    assert len(entries) > len(requirements(PROJECT["dependencies"], *LOCKED))
    for requirement, options in entries:
        assert re.fullmatch(r"==[\w.+]+", str(requirement.specifier)), requirement
        assert options, requirement
        for option in options:
            assert re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", option), requirement
    assert "://" not in LOCK
    assert "--index" not in LOCK


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_holds_every_requirement_within_its_bounds(python: str) -> None:
    environment = default_environment() | {"python_version": python, "python_full_version": f"{python}.5"}
    versions: dict[str, list[str]] = {}
    for requirement, _ in locked():
        if requirement.marker is None or requirement.marker.evaluate(environment):
            (pin,) = requirement.specifier
            versions.setdefault(canonicalize_name(requirement.name), []).append(pin.version)
    for name, bounds in requirements(PROJECT["dependencies"], *LOCKED).items():
        assert name in versions, f"{name} is not locked for Python {python}"
        assert len(versions[name]) == 1, f"{name} is locked twice for Python {python}"
        assert versions[name][0] in bounds


def test_conda_environment_has_the_same_requirements() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    entries = environment["dependencies"]
    conda = [entry for entry in entries if isinstance(entry, str)]
    (pip,) = [entry["pip"] for entry in entries if isinstance(entry, dict)]
    given = requirements(conda, pip)
    assert len(given) == len(conda) + len(pip), "a requirement is given twice"
    assert given.pop("python") == SpecifierSet(PROJECT["requires-python"])
    given.pop("pip")
    assert given == requirements(PROJECT["dependencies"], EXTRAS["book"], EXTRAS["test"])


def test_supported_pythons() -> None:
    bounds = SpecifierSet(PROJECT["requires-python"])
    supported = [python for minor in range(8, 20) if (python := f"3.{minor}") in bounds]
    named = [text.rpartition(" :: ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    tested = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert supported == named == PYTHONS == tested["jobs"]["test"]["strategy"]["matrix"]["python"]


def test_citation() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["cff-version"] == "1.2.0"
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] and citation["message"] and citation["title"].startswith(PROJECT["name"])  # noqa: PT018
    (paper,) = citation["references"]
    assert "Linear complexity" in paper["title"]
    assert [author["family-names"] for author in paper["authors"]] == ["Valdez", "Rojas-Domínguez"]


def test_license() -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith("BSD 3-Clause License\n\nCopyright (c) 2026, the leamvd developers\n")
    assert PROJECT["license"] == "BSD-3-Clause"


def test_changelog_names_the_version_or_what_comes_next() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in ("Unreleased", PROJECT["version"])


def test_every_package_is_installed() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "leamvd").rglob("__init__.py")}
    installed = set(CONFIG["tool"]["setuptools"]["packages"]) - {"leamvd.notebooks"}
    assert installed == {".".join(folder.parts) for folder in folders}
