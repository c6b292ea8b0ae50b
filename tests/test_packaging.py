"""The files that say what is installed agree with each other."""

import ast
import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import grimp
import jsonschema
import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
FOLDERS = {"leamvd": ROOT, "leamvd_paper": ROOT / "notebooks"}  # of packages
CONFIGS = {
    name: tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    for name, folder in FOLDERS.items()
}
LIBRARY, PAPER = (config["project"] for config in CONFIGS.values())
EXTRAS = LIBRARY["optional-dependencies"] | PAPER["optional-dependencies"]
LOCK = (ROOT / "requirements.lock").read_text()
NOT_FOR_CI = ("torch", "coco", "browser", "lab", "article")
LOCKED = [group for name, group in EXTRAS.items() if name not in NOT_FOR_CI]
LOCKED += [LIBRARY["dependencies"], PAPER["dependencies"]]
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]

# What a module of the bare library imports only where it is asked for, after `checks.needs`.
ON_DEMAND = {"cma", "sklearn", "torch"}
# What the paper's code imports only where it is asked for, and modules whose packages have other
# names.
BY_EXTRAS = {"cocoex", "distributed", "nbformat", "papermill", "sphinx_external_toc", "yaml"}
MODULES = {"ipython": "IPython", "pillow": "PIL", "scikit-learn": "sklearn"}
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
    "leamvd_paper",
]
# None: what an import of a missing package finds
WITHOUT = f"import sys\nsys.modules |= dict.fromkeys({OPTIONAL})\n"


def requirements(*groups: list[str]) -> dict[str, SpecifierSet]:
    """Return name -> bounds of the requirements in the groups, without the projects' own."""
    every = [Requirement(text) for group in groups for text in group]
    own = {LIBRARY["name"], PAPER["name"]}
    return {canonicalize_name(r.name): r.specifier for r in every if r.name not in own}


def locked() -> Iterator[tuple[Requirement, list[str]]]:
    """Return each locked requirement with the options behind it."""
    for entry in LOCK.replace("\\\n", " ").splitlines():
        requirement, *options = re.split(r"\s+(?=--)", entry.strip())
        yield Requirement(requirement), options


def test_lock_has_hashes_and_no_addresses() -> None:
    entries = list(locked())
    assert len(entries) > len(requirements(*LOCKED))
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
    for name, bounds in requirements(*LOCKED).items():
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
    assert given.pop("python") == SpecifierSet(LIBRARY["requires-python"])
    given.pop("pip")
    extras = [EXTRAS[name] for name in ("cma", "sklearn", "book", "dask")]
    assert given == requirements(LIBRARY["dependencies"], PAPER["dependencies"], *extras)


@pytest.mark.parametrize("package", FOLDERS)
def test_a_package_requires_what_it_imports(package: str) -> None:
    graph = grimp.build_graph(package, include_external_packages=True, cache_dir=None)
    found = set()
    for module in graph.find_descendants(package):
        found |= graph.find_modules_directly_imported_by(module)
    outside = {name for name in found if not name.startswith("leamvd")} - sys.stdlib_module_names
    if package == "leamvd":
        assert outside - ON_DEMAND == set(requirements(LIBRARY["dependencies"]))
    else:
        required = requirements(PAPER["dependencies"], EXTRAS["sklearn"], EXTRAS["cma"])
        modules = {MODULES.get(name, name) for name in required}
        assert outside - BY_EXTRAS == modules - {"requests"}, "pooch downloads by it"


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build both wheels from copies, since a build leaves folders behind."""
    copy, made = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("wheels")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    for name in ("leamvd", "notebooks"):
        ignored = shutil.ignore_patterns("__pycache__", "figures", "*.egg-info")
        shutil.copytree(ROOT / name, copy / name, ignore=ignored)
    pip = (sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run([*pip, "--wheel-dir", made, copy, copy / "notebooks"], check=True)
    return {path.name.partition("-")[0]: path for path in made.iterdir()}


def test_the_library_is_small_and_the_paper_has_its_notebooks_and_tables(
    wheels: dict[str, Path],
) -> None:
    assert wheels.keys() == FOLDERS.keys()
    assert wheels["leamvd"].stat().st_size <= 105_000
    used = set(re.split(r" AND ", PAPER["license"])) - {LIBRARY["license"]}
    contents = {name: zipfile.ZipFile(path).namelist() for name, path in wheels.items()}
    code = [name for name in contents["leamvd"] if ".dist-info/" not in name]
    assert sorted(code) == sorted(
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "leamvd").rglob("*")
        if path.suffix == ".py" or path.name == "py.typed"
    )
    notebooks = {
        f"leamvd_paper/notebooks/{p.name}" for p in FOLDERS["leamvd_paper"].glob("*.ipynb")
    }
    assert notebooks < {*contents["leamvd_paper"]}
    recorded = {path.name for path in (ROOT / "notebooks" / "recorded").iterdir()}
    shipped = [name.split("/") for name in contents["leamvd_paper"] if "/recorded/" in name]
    assert {parts[3] for parts in shipped} == recorded
    texts = {}
    for package, names in contents.items():
        texts[package] = {Path(name).stem for name in names if ".dist-info/licenses/" in name}
    assert texts == {"leamvd": {"LICENSE"}, "leamvd_paper": {"LICENSE", *used}}


def test_both_have_one_version_and_need_each_other_so() -> None:
    assert LIBRARY["version"] == PAPER["version"]
    assert f"leamvd[cma,sklearn]=={LIBRARY['version']}" in PAPER["dependencies"]


def test_what_is_told_to_be_installed_brings_what_is_missing() -> None:
    others = {"sklearn": "scikit-learn", "cocoex": "coco-experiment", "yaml": "pyyaml"}
    others |= dict.fromkeys(("sphinx", "sphinx_external_toc"), "jupyter-book")  # needs these
    told = 0
    for name, folder in FOLDERS.items():
        for path in (folder / name).rglob("*.py"):
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(call, ast.Call) or ast.unparse(call.func) != "checks.needs":
                    continue
                requirement, *modules = [ast.literal_eval(one) for one in call.args[1:]]
                wanted = Requirement(requirement)
                (extra,) = wanted.extras
                group = CONFIGS[wanted.name.replace("-", "_")]["project"]["optional-dependencies"]
                brought = {*requirements(group[extra])}
                missing = {canonicalize_name(others.get(module, module)) for module in modules}
                assert missing <= brought, f"{path.name}: {requirement}"
                told += 1
    assert told == 7


def test_the_readme_names_what_the_library_brings() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    brought = re.findall(r"`pip install \.` in a clone brings ([\w\s,]+?),\s+about", text)[0]
    names = {name.lower() for name in re.split(r",\s+|\s+and\s+", brought)}
    assert names == {*requirements(LIBRARY["dependencies"])}


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program], cwd=folder, capture_output=True, text=True, check=False
    )


@pytest.mark.compiled
def test_the_library_alone_searches_and_trains(tmp_path: Path) -> None:
    program = """
import numpy as np
import leamvd
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
        ("from leamvd.networks import DBN", "the package sklearn", "sklearn"),
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
    schema = (ROOT / "tests" / "citation_schema.json").read_text(encoding="utf-8")
    jsonschema.validate(citation, json.loads(schema))
    assert str(citation["version"]) == LIBRARY["version"]
    assert f"`leamvd {LIBRARY['version']}`" in (ROOT / "book" / "index.md").read_text()
    assert f"\n## {LIBRARY['version']}, " in (ROOT / "CHANGELOG.md").read_text()
    assert citation["license"] == LIBRARY["license"] == "BSD-3-Clause"
    assert [author["family-names"] for author in citation["references"][0]["authors"]] == [
        "Valdez",
        "Rojas-Domínguez",
    ]
    assert (ROOT / "LICENSE").read_text().startswith("BSD 3-Clause License\n")


def test_every_package_is_installed_and_every_extra_that_is_named_is_there() -> None:
    for name, folder in FOLDERS.items():
        found = {path.parent.relative_to(folder) for path in (folder / name).rglob("__init__.py")}
        installed = set(CONFIGS[name]["tool"]["setuptools"]["packages"])
        assert installed - {"leamvd_paper.notebooks"} == {".".join(one.parts) for one in found}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = re.findall(r"(?:\.|notebooks)\[(\w+)\]|`(\w+)`", makefile)
    assert {name for pair in named for name in pair if name} <= EXTRAS.keys()


def test_an_archive_of_a_release_depends_on_names_and_contents_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    pack = runpy.run_path(str(ROOT / ".ci" / "release.py"))["pack"]
    made = []
    for number, names in enumerate(["ab", "ba"]):
        folder = tmp_path / f"folder-{number}"
        for name in names:
            path = folder / name / "file"
            path.parent.mkdir(parents=True)
            path.write_text(name)
            path.chmod((0o600, 0o755)[number])
            os.utime(path, (number, number))
        target = tmp_path / str(number) / "leamvd-1.tar.gz"
        target.parent.mkdir()
        pack(folder, target)
        made.append(target.read_bytes())
    assert made[0] == made[1]
    with tarfile.open(target) as archive:
        assert archive.getnames() == [f"leamvd-1/{n}" for n in ("a", "a/file", "b", "b/file")]
