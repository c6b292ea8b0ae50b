"""Studies: (method, layer, chain, seed) to a tidy record an iteration, with provenance, resumable at any point."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm import tqdm

from leamvd import checks, datasets
from leamvd.dbn import FEATURES, METHODS, Training, layer_seed, propagate, train
from leamvd.rbm import RBM, Errors, reconstruction_errors
from leamvd.reading import Reading

CHAINS = ("own", "shared")
"""Whether a method's layers see its own features or those of contrastive divergence (reading row E7)."""

PROFILES = ("quick", "paper")

COLUMNS = (
    "section", "reading", "method", "chain", "layer", "seed", "iteration", *Errors._fields,
    "evaluations", "passes", "products", "seconds", "n_visible", "n_hidden", "n_var", "n_images", "input_spread",
)  # fmt: skip
"""Of a study's records. Errors are sums over all images; `input_spread` is the inputs' mean standard deviation."""

TERMINAL = "LEAMVD_TERMINAL"
"""Environment variable that names the terminal where a notebook's studies show their progress."""

READ = ("lea-mvd", "cma-es", "sep-cma-es")
"""Methods on which a reading has a say."""


class Unit(NamedTuple):
    """What is computed, and saved, in one piece."""

    method: str
    chain: str
    layer: int
    seed: int

    @property
    def name(self) -> str:
        """File name without an ending."""
        method = re.sub(r"[^\w.-]+", "-", self.method.removesuffix(".json"))  # a reading may be a path
        return f"{method}-{self.chain}-layer{self.layer}-seed{self.seed}"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study:
    """A comparison of methods on one data set, architecture and budget.

    Attributes
    ----------
    section : str
        Of the paper, as `leamvd list` names it.
    dataset, side, binarise, n_images : str, int, str, int or None
        What is trained on, see `leamvd.datasets.load`; `n_images` training images, all by default.
    layers : tuple of int
        Hidden units of each layer.
    methods : tuple of str
        Of `leamvd.dbn.METHODS`; for LEA-MVD and CMA-ES, which starts in the same way, with a reading behind a colon
        where it is not the default: "lea-mvd:printed".
    chains : tuple of str
        Of `CHAINS`.
    seeds : tuple of int
        One run each, of every method on the same subset of images.
    features : {"probabilities", "bits"}
        What a layer hands on.
    training : Training
        Budget and settings, the same for all.

    Raises
    ------
    ValueError, TypeError
        If a value is out of range, or two of them clash.
    """

    section: str = "mnist-7x7"
    dataset: str = "digits"
    side: int = 7
    binarise: str = "grey"
    n_images: int | None = None
    layers: tuple[int, ...] = (30, 30, 120)
    methods: tuple[str, ...] = ("cd", "lea-mvd", "cma-es")
    chains: tuple[str, ...] = CHAINS
    seeds: tuple[int, ...] = (0,)
    features: Literal["probabilities", "bits"] = "probabilities"
    training: Training = dataclasses.field(default_factory=Training)

    def __post_init__(self) -> None:
        for name in ("layers", "methods", "chains", "seeds"):
            value = tuple(getattr(self, name))
            if not value or (len(set(value)) < len(value) and name != "layers"):
                different = "" if name == "layers" else ", all different"
                raise ValueError(f"{name} must be one or more values{different}, got {value!r}")
            object.__setattr__(self, name, value)
        for units in self.layers:
            checks.integer("layers", units, at_least=1)
        for seed in self.seeds:
            checks.integer("seeds", seed, at_least=0)
        for chain in self.chains:
            checks.choice("chains", chain, CHAINS)
        for method in self.methods:
            name, colon, _ = method.partition(":")
            checks.choice("methods", name, METHODS)
            if colon and name not in READ:
                raise ValueError(f"methods must have a reading only where it matters, {name!r} has none: {method!r}")
            if name == "lea-mvd":  # a population that clashes with the reading is found here, not hours later
                self.training.optimizer(name, np.zeros(1), reading=reading(method), seed=0)
        checks.choice("features", self.features, FEATURES)
        names = [unit.name for unit in self.units()]
        if len(set(names)) < len(names):
            raise ValueError(f"methods must differ in more than the signs in a reading's path, got {self.methods!r}")

    def units(self) -> list[Unit]:
        """Return what has to be computed, each after what it needs.

        The shared chain takes its inputs from contrastive divergence, which is run for it in any case. On the first
        layer both chains see the images: it is computed once.
        """
        methods = [m for m in self.methods if m != "cd"]
        needs_cd = "cd" in self.methods or "shared" in self.chains
        layers = range(1, len(self.layers) + 1)
        return [
            Unit(method, chain, layer, seed)
            for seed in self.seeds
            for method in (["cd"] if needs_cd else []) + methods
            for chain in CHAINS
            for layer in layers
            if (chain == "own" and (layer == 1 or method == "cd" or "own" in self.chains))
            or (chain == "shared" and "shared" in self.chains and layer > 1 and method != "cd")
        ]  # fmt: skip


def reading(method: str) -> Reading:
    """Return the reading of a study's method: "lea-mvd" runs the default one, "lea-mvd:printed" the printed one."""
    return Reading.named(method.partition(":")[2] or "default")


STUDIES = {
    ("mnist-7x7", "quick"): Study(
        methods=("cd", "lea-mvd", "lea-mvd:unseeded", "cma-es"),
        seeds=(0, 1, 2),
        training=Training(n_gen=20, dtype="float64"),
    ),
    ("mnist-7x7", "paper"): Study(
        dataset="mnist",
        methods=("cd", "lea-mvd", "lea-mvd:unseeded", "lea-mvd:printed", "cma-es"),
        seeds=tuple(range(30)),
    ),
    ("mnist-28x28", "quick"): Study(
        section="mnist-28x28",
        side=28,
        n_images=300,
        layers=(500, 500, 2000),
        methods=("cd", "lea-mvd"),
        seeds=(0, 1),
        training=Training(n_gen=16, dtype="float64"),
    ),
    ("mnist-28x28", "paper"): Study(
        section="mnist-28x28",
        dataset="mnist",
        side=28,
        layers=(500, 500, 2000),
        methods=("cd", "lea-mvd", "lea-mvd:unseeded", "lea-mvd:printed"),
        seeds=tuple(range(30)),
    ),
}
"""The two experiments of the paper, at its own settings and at a scale that takes a minute."""


def study(section: str, profile: str, **changes: Any) -> Study:
    """Return one of `STUDIES` with fields of `Study` or `Training` changed; a change to None is none.

    Raises
    ------
    ValueError, TypeError
        If there is no such study or field, or a value is out of range.
    """
    checks.choice("section", section, sorted({section for section, _ in STUDIES}))
    base = STUDIES[section, checks.choice("profile", profile, PROFILES)]
    given: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    settings = {field.name for field in dataclasses.fields(Training)} & set(given)
    training = dataclasses.replace(base.training, **{name: given.pop(name) for name in settings})
    return dataclasses.replace(base, training=training, **given)


def run(study: Study, output: str | Path, *, progress: bool = False) -> pd.DataFrame:
    """Run what of a study has not been run yet, and return its records.

    Every unit is saved, atomically, once it is complete, in a folder of `output` that is named after everything the
    result depends on: the study, the data's checksum, this library's code and the versions of what it computes with.
    A study that was killed at any point continues with the first unit that is not there.

    Parameters
    ----------
    study : Study
        What to run.
    output : path
        Where the study's folder is, or will be.
    progress : bool
        Show a bar, one tick an iteration.

    Returns
    -------
    DataFrame
        One row for each iteration of each unit, with `COLUMNS`, sorted; where a layer is the same in both chains it
        is listed for both.

    Raises
    ------
    ValueError, MemoryError, leamvd.datasets.DataError
        If the study cannot be run.
    """
    data = images(study)
    folder = Path(output) / f"study-{fingerprint(study, data)}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "provenance.json").exists():
        write(folder / "provenance.json", json.dumps(provenance(study, data), indent=2))
    units = study.units()
    with progress_bar(len(units) * study.training.n_gen, progress, "study", "iteration") as bar:
        for unit in units:
            bar.set_postfix_str(unit.name)
            if not (folder / f"{unit.name}.csv").exists():
                _compute(study, unit, _input(study, unit, data, folder), folder, bar)
            else:
                bar.update(study.training.n_gen)
    return records(study, folder)


@contextlib.contextmanager
def progress_bar(total: int, progress: bool, name: str, unit: str) -> Iterator[Any]:
    """Yield a progress bar: on standard error if asked for, and in a notebook on the terminal that it is run from."""
    terminal = os.environ.get(TERMINAL)
    options: dict[str, Any] = {"position": 1, "leave": False} if terminal else {"disable": not progress}
    with (
        Path(terminal).open("w", encoding="utf-8") if terminal else contextlib.nullcontext(sys.stderr) as file,
        tqdm(total=total, desc=name, unit=unit, file=file, **options) as bar,
    ):
        yield bar


def records(study: Study, folder: Path) -> pd.DataFrame:
    """Return the records of a study that has been run in `folder`."""
    frames = []
    for unit in study.units():
        frame = pd.read_csv(folder / f"{unit.name}.csv")
        for chain in study.chains:
            same = unit.layer == 1 or unit.method == "cd"
            if unit.method in study.methods and (chain == unit.chain or same):
                frames.append(frame.assign(chain=chain))
    order = {method: i for i, method in enumerate(study.methods)}
    table = pd.concat(frames, ignore_index=True)
    return table.sort_values(
        ["chain", "layer", "method", "seed", "iteration"],
        key=lambda column: column.map(order) if column.name == "method" else column,
        ignore_index=True,
    )


def images(study: Study) -> datasets.Dataset:
    """Return what a study is trained on, and the test images at the same size."""
    return datasets.load(
        study.dataset,
        side=study.side,
        binarise=study.binarise,
        n_train=study.n_images,
        dtype=study.training.dtype,
    )


def stack(study: Study, output: str | Path, method: str, seed: int, depth: int) -> list[RBM]:
    """Return the first `depth` layers that a method has trained in its own chain, in a study that has been run."""
    folder = Path(output) / f"study-{fingerprint(study, images(study))}"
    return [_saved(folder, Unit(method, "own", layer, seed)) for layer in range(1, depth + 1)]


def _input(study: Study, unit: Unit, data: datasets.Dataset, folder: Path) -> NDArray[Any]:
    """Return what a unit is trained on: the images, or the features of the layers below."""
    V: NDArray[Any] = data.train
    below = "cd" if unit.chain == "shared" else unit.method
    for layer in range(1, unit.layer):
        rbm = _saved(folder, Unit(below, "own", layer, unit.seed))
        V = propagate(rbm, V, features=study.features, seed=layer_seed(unit.seed, layer))
    return V


def _saved(folder: Path, unit: Unit) -> RBM:
    with np.load(folder / f"{unit.name}.npz") as arrays:
        return RBM(arrays["W"], arrays["b"], arrays["c"])


def _compute(study: Study, unit: Unit, V: NDArray[Any], folder: Path, bar: Any) -> None:
    """Train one layer, and save its weights and then its records."""
    n_hidden = study.layers[unit.layer - 1]
    method, _, name = unit.method.partition(":")
    labels = study.section, (name or "default") if method in READ else "none"
    rows: list[tuple[Any, ...]] = []
    previous: NDArray[Any] | None = None
    spread = float(V.std(axis=0, dtype=np.float64).mean())
    steps = train(
        method,
        V,
        n_hidden,
        training=study.training,
        reading=reading(unit.method),
        seed=layer_seed(unit.seed, unit.layer),
    )
    for step in steps:
        flat = step.rbm.flat()
        if previous is None or not np.array_equal(flat, previous):
            errors = reconstruction_errors(step.rbm, V, seed=unit.seed)
        previous = flat
        rows.append(
            (*labels, *unit, step.iteration, *errors, *step[2:], V.shape[1], n_hidden, flat.size, len(V), spread)
        )
        bar.update(step.iteration > 0)
    arrays = folder / f".{unit.name}.npz"
    np.savez(arrays, W=step.rbm.W, b=step.rbm.b, c=step.rbm.c)
    arrays.replace(folder / f"{unit.name}.npz")
    write(folder / f"{unit.name}.csv", pd.DataFrame(rows, columns=list(COLUMNS)).to_csv(index=False))


def fingerprint(study: Study, data: datasets.Dataset) -> str:
    """Return the name of a study's folder: a digest of everything that its results depend on."""
    known = provenance(study, data)
    known = {name: known[name] for name in ("study", "readings", "data", "checksum", "code", "versions")}
    return hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:16]


def provenance(study: Study, data: datasets.Dataset) -> dict[str, Any]:
    """Return what a record must be read with: study, readings, data checksum, versions, code and its commit."""
    readings = {method: dataclasses.asdict(reading(method)) for method in study.methods}
    # the device, say, as this machine has it where the study leaves it open
    training = dataclasses.asdict(study.training) | study.training.arithmetic._asdict()
    packages = ["leamvd", "cma", "numba", "numpy", "pandas", "scikit-learn", "scipy"]
    packages += ["torch"] * (training["backend"] == "torch")
    return {
        "study": dataclasses.asdict(study) | {"dataset": data.name, "training": training},
        "readings": readings,
        "data": data.description,
        "checksum": data.checksum,
        "code": _code(Path(__file__).parent),
        "commit": _commit(),
        "versions": {package: version(package) for package in packages},
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
    }


@functools.cache  # a source that is edited while a study runs does not change what runs
def _code(package: Path) -> str:
    """Return a digest of the package's source files, without those that only show results."""
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        if path.relative_to(package).parts[0] not in (
            "backends.py",
            "bench",
            "book.py",
            "cli.py",
            "figures",
            "findings.py",
            "illustrations.py",
            "sections.py",
            "tournaments.py",
            "verdicts.py",
        ):
            digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _commit() -> str | None:
    """Return the commit of the clone that the library runs from, None outside one; "+" marks uncommitted changes."""
    command = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty=+", "--abbrev=12"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def write(path: Path, text: str) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)
