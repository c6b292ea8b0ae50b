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
LOCKED = [group for name, group in EXTRAS.items() if name not in ("torch", "bench", "browser")]  # large, or not for CI
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]

# What a module of the bare library imports only where it is asked for, after `checks.needs`.
ON_DEMAND = {"cma", "psutil", "sklearn", "torch"}
OPTIONAL = [
    "IPython", "click", "cma", "filelock", "jupyter_book", "matplotlib", "myst_nb", "nbformat", "pandas", "papermill",
    "pooch", "psutil", "requests", "sklearn", "sphinx", "torch",
]  # fmt: skip
WITHOUT = f"import sys\nsys.modules |= dict.fromkeys({OPTIONAL})\n"  # None: what an import of a missing package finds


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
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", option) for option in options), requirement
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
    extras = [EXTRAS[name] for name in ("paper", "book", "dask", "test")]
    assert given == requirements(PROJECT["dependencies"], *extras)


def test_supported_pythons() -> None:
    assert SpecifierSet(PROJECT["requires-python"]) == SpecifierSet(f">={PYTHONS[0]}")  # no upper limit
    named = [text.rpartition(" :: ")[2] for text in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", text)]
    tested = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert named == PYTHONS == tested["jobs"]["test"]["strategy"]["matrix"]["python"]


def test_the_library_alone_requires_what_it_imports() -> None:
    graph = grimp.build_graph("leamvd", include_external_packages=True, cache_dir=None)
    rooms = [graph.find_descendants(f"leamvd.{room}") for room in ("_support", "optimizers", "networks")]
    found = {name for module in set().union(*rooms) for name in graph.find_modules_directly_imported_by(module)}
    outside = {name for name in found if not name.startswith("leamvd")} - sys.stdlib_module_names
    assert outside - ON_DEMAND == set(requirements(PROJECT["dependencies"]))


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.compiled
def test_the_library_alone_searches_and_trains(tmp_path: Path) -> None:
    program = """
import numpy as np
import leamvd
from leamvd.networks import contrastive_divergence, dbn, objective

def sphere(X): return (X**2).sum(axis=1)

for method in ("lea-mvd", "random"):
    result = leamvd.minimize(sphere, np.ones(9), vectorized=True, method=method, seed=1, progress=True)
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


MISSING = [
    ("leamvd.minimize(sum, [0.0], method='cma-es')", "method='cma-es' needs the packages cma, psutil", "paper"),
    ("leamvd.minimize(sum, [0.0], method='sep-cma-es')", "method='sep-cma-es' needs the package cma", "paper"),
    ("from leamvd.networks import DBN", "leamvd.networks.DBN needs the package sklearn", "paper"),
    ("import leamvd.data.images", "leamvd.data needs the packages .*pooch.*sklearn", "paper"),
    ("import leamvd.figures.style", "leamvd.figures needs the packages .*matplotlib, pandas", "paper"),
    ("import leamvd.bench", "leamvd.campaign needs the packages .*pandas", "paper"),
    ("import leamvd.book.render", "leamvd.book needs the packages filelock, pandas", "paper"),
    ("from leamvd.networks import dbn; dbn.Training(backend='torch')", "='torch' needs the package torch", "torch"),
]


def test_a_missing_package_is_named_in_one_sentence(tmp_path: Path) -> None:
    program = """
import leamvd
for statement in {!r}:
    try:
        exec(statement)
    except ModuleNotFoundError as error:
        print(error)
"""
    done = run(WITHOUT + program.format([statement for statement, *_ in MISSING]), tmp_path)
    for said, (_, message, extra) in zip(done.stdout.splitlines(), MISSING, strict=True):
        assert re.fullmatch(rf".*{message}.*: pip install leamvd\[{extra}\]", said), done.stderr


@pytest.mark.parametrize(
    ("missing", "arguments", "message"),
    [
        ("click", ["list"], "the command leamvd needs the package click: pip install leamvd[paper]"),
        (
            "papermill",
            ["reproduce", "esd"],
            "Error: running a notebook needs the package papermill: pip install leamvd[book]",
        ),
        ("nbformat", ["book"], "Error: rendering the book needs the package nbformat: pip install leamvd[book]"),
        ("pooch", ["data", "mnist"], "Error: leamvd.data needs the package pooch: pip install leamvd[paper]"),
    ],
)
def test_so_it_is_on_the_command_line(missing: str, arguments: list[str], message: str, tmp_path: Path) -> None:
    program = "import sys; sys.modules[{!r}] = None; sys.argv[1:] = {!r}; from leamvd.cli import main; main()"
    done = run(program.format(missing, arguments), tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [message]


def test_citation_and_license() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert str(citation["version"]) == PROJECT["version"]
    assert citation["license"] == PROJECT["license"] == "BSD-3-Clause"
    assert citation["authors"]
    assert citation["message"]
    assert [author["family-names"] for author in citation["references"][0]["authors"]] == ["Valdez", "Rojas-Domínguez"]
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License\n")


def test_changelog_names_the_version_or_what_comes_next() -> None:
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] in ("Unreleased", PROJECT["version"])


def test_every_package_is_installed() -> None:
    folders = {path.parent.relative_to(ROOT) for path in (ROOT / "leamvd").rglob("__init__.py")}
    installed = set(CONFIG["tool"]["setuptools"]["packages"]) - {"leamvd.notebooks"}
    assert installed == {".".join(folder.parts) for folder in folders}
