"""The files that say what is installed agree with each other."""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import grimp
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
NOT_FOR_CI = ("torch", "coco", "browser", "lab")
LOCKED = [group for name, group in EXTRAS.items() if name not in NOT_FOR_CI]
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]

# What a module of the bare library imports only where it is asked for, after `checks.needs`.
ON_DEMAND = {"cma", "sklearn", "torch"}
OPTIONAL = [
    "IPython",
    "click",
    "cma",
    "jupyter_book",
    "matplotlib",
    "myst_nb",
    "nbformat",
    "pandas",
    "papermill",
    "pooch",
    "requests",
    "sklearn",
    "sphinx",
    "torch",
    "PIL",
]
# None: what an import of a missing package finds
WITHOUT = f"import sys\nsys.modules |= dict.fromkeys({OPTIONAL})\n"


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
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", option) for option in options), (
            requirement
        )
    assert "://" not in LOCK
    assert "--index" not in LOCK


@pytest.mark.parametrize("python", PYTHONS)
def test_lock_holds_every_requirement_within_its_bounds(python: str) -> None:
    environment = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.5",
    }
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
    extras = [EXTRAS[name] for name in ("cma", "paper", "book", "dask", "test")]
    assert given == requirements(PROJECT["dependencies"], *extras)


def test_the_library_alone_requires_what_it_imports() -> None:
    graph = grimp.build_graph("leamvd", include_external_packages=True, cache_dir=None)
    rooms = [
        graph.find_descendants(f"leamvd.{room}") for room in ("_support", "optimizers", "networks")
    ]
    found = {
        name
        for module in set().union(*rooms)
        for name in graph.find_modules_directly_imported_by(module)
    }
    outside = {name for name in found if not name.startswith("leamvd")} - sys.stdlib_module_names
    assert outside - ON_DEMAND == set(requirements(PROJECT["dependencies"]))


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.compiled
def test_the_library_alone_searches_and_trains(tmp_path: Path) -> None:
    program = """
import numpy as np
import leamvd
from leamvd.data import functions
from leamvd.networks import contrastive_divergence, dbn, objective
assert dir(leamvd) == leamvd.__all__

def sphere(X): return (X**2).sum(axis=1)

for method in ("lea-mvd", "random"):
    result = leamvd.minimize(
        sphere, np.ones(9), vectorized=True, method=method, seed=1, progress=True
    )
    assert result.fun < 9, method
V = np.random.default_rng(0).random((20, 6))
error = objective.ReconstructionObjective(V, 3)
cd = contrastive_divergence.ContrastiveDivergence(V, 3, seed=0)
before = error(cd.rbm.flat()[None])
assert error(cd.epoch().flat()[None]) != before
for method in ("cd", "lea-mvd"):
    stack = dbn.pretrain(V, (3, 2), method=method, reading=leamvd.Reading(n_gen=2), seed=0)
    print(method, *(rbm.W.shape for rbm in stack))
"""
    done = run(WITHOUT + program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "cd (6, 3) (3, 2)\nlea-mvd (6, 3) (3, 2)\n"


@pytest.mark.parametrize(
    ("statement", "needed", "extra"),
    [
        ("leamvd.minimize(sum, [0.0], method='sep-cma-es')", "the package cma", "cma"),
        ("from leamvd.networks import DBN", "the package sklearn", "paper"),
        (
            "from leamvd.networks import dbn; dbn.Training(backend='torch')",
            "the package torch",
            "torch",
        ),
    ],
)
def test_a_missing_package_is_named_in_one_sentence(
    statement: str, needed: str, extra: str, tmp_path: Path
) -> None:
    done = run(f"{WITHOUT}import leamvd\n{statement}", tmp_path)
    assert re.fullmatch(
        rf"ModuleNotFoundError: .* needs {needed}: pip install leamvd\[{extra}\]",
        done.stderr.splitlines()[-1],
    )


def test_citation_and_license() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"] == "BSD-3-Clause"
    assert citation["authors"]
    assert citation["message"]
    assert [author["family-names"] for author in citation["references"][0]["authors"]] == [
        "Valdez",
        "Rojas-Domínguez",
    ]
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License\n")


def test_every_package_is_installed_and_every_extra_that_is_named_is_there() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "leamvd").rglob("__init__.py")}
    installed = set(CONFIG["tool"]["setuptools"]["packages"]) - {"leamvd.notebooks"}
    assert installed == {".".join(folder.parts) for folder in folders}
    named = re.findall(r"\.\[(\w+)\]|`(\w+)`", (ROOT / "Makefile").read_text(encoding="utf-8"))
    assert {name for pair in named for name in pair if name} <= EXTRAS.keys()
