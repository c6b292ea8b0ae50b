"""Results of long computations: calls run in parallel and kept on disk, and the tables that ship.

A computation is a plain function of settings and results that returns a `Result`.
``delayed(f)(...)`` stands for a call of it, and may be an argument of another one, which is then
given its result. `run_all` computes what a folder lacks: in this process, in several, or on the
Dask cluster of ``joblib.parallel_config("dask")``.
"""

import ast
import contextlib
import dataclasses
import functools
import hashlib
import inspect
import io
import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd
from llvmlite.binding import get_host_cpu_name
from tqdm import tqdm

import leamvd
import leamvd_paper
from leamvd._support import checks, children, sources
from leamvd._support.threads import limited_to, thread_count

# whose versions decide on results
PACKAGES = ("numpy", "scipy", "numba", "pandas", "scikit-learn", "cma")
TORCH = "torch"  # decides on those of calls that use it alone

# sources that show results, and do not decide on them
QUIET = (
    "leamvd_paper/__main__.py",
    "leamvd_paper/cli.py",
    "leamvd_paper/book/",
    "leamvd_paper/studies/plots.py",
)

# the environment variable that names the folder of results, whatever a notebook's folder is
STORE = "LEAMVD_STORE"


Table = pd.DataFrame
Texts = tuple[str, ...]
Integers = tuple[int, ...]
Floats = tuple[float, ...]
"""Tables; lists of settings, which can be keys."""


class Result(NamedTuple):
    """What a computation returns."""

    rows: pd.DataFrame
    arrays: dict[str, np.ndarray] = {}  # noqa: RUF012  (nobody changes it)


class Call(NamedTuple):
    """A call that `run_all` computes; equal calls have equal keys."""

    function: Callable[..., Result]
    arguments: dict[str, Any]
    needs: "list[Call]"  # the calls among the arguments
    key: str


def delayed(function: Callable[..., Result]) -> Callable[..., Call]:
    """Return a function that takes the same arguments and returns the `Call`, as joblib's does."""

    def call(*args: Any, **kwargs: Any) -> Call:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        needs = []
        told = {}
        for name, value in bound.arguments.items():
            if isinstance(value, Call):
                needs.append(value)
                told[name] = {"call": value.key}
            else:
                told[name] = canonical(value)
        named = [function.__module__, function.__qualname__, told]
        text = json.dumps(named, sort_keys=True, allow_nan=False)
        digest = hashlib.sha256(text.encode()).hexdigest()[:20]
        return Call(function, bound.arguments, needs, f"{function.__name__}-{digest}")

    return call


def canonical(value: Any) -> Any:
    """Return a value as JSON has it: tuples as lists, 3.0 as 3, dataclasses by class and fields.

    A reading is complete: what acts is the same whether it is written or left open. Settings that
    compute by PyTorch have its version.
    """
    if isinstance(value, Call):
        raise ValueError(
            f"a call must be an argument of another one, not part of an argument, got {value.key}"
        )
    if hasattr(value, "complete"):  # a reading, whose module takes a while to import
        value = value.complete()
    if dataclasses.is_dataclass(value):
        settings = {"class": type(value).__qualname__, **canonical(vars(value))}
        if settings.get("backend") == TORCH:
            settings.update(versions(TORCH))
        return settings
    if isinstance(value, dict):
        return {str(name): canonical(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [canonical(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def run_all(
    calls: Iterable[Call], folder: str | Path = ".", *, n_jobs: int = 1, label: str = ""
) -> dict[str, pd.DataFrame]:
    """Return the rows of some calls, and of those among their arguments that were computed, by
    their keys.

    This process reads and writes the folder, each result as it arrives: whatever ends it loses what
    was being computed and nothing else. What another process that uses the folder finishes
    meanwhile is taken as well.
    """
    place = Path(os.environ.get(STORE, folder)).expanduser()
    store = place / f"{code()}-{get_host_cpu_name()}"
    store.mkdir(parents=True, exist_ok=True)
    rows, missing = _found(calls, store)
    # arrays are sent as they are: those that joblib maps into memory instead can only be read
    workers = joblib.Parallel(
        n_jobs, return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    n_threads = max(1, thread_count(None) // joblib.effective_n_jobs(n_jobs))
    # where nothing is missing; else TQDM_DISABLE decides
    quiet = {} if missing else {"disable": True}
    with tqdm(total=len(missing), desc=label, unit="call", leave=False, **quiet) as bar:
        while missing:
            ready = []
            for call in missing.values():
                if all(need.key in rows for need in call.needs):
                    ready.append(call)
            for key, result in workers(_tasks(ready, store, n_threads)):
                _write(store / f"{key}.npz", result)
                rows[key] = result.rows
                del missing[key]
                bar.update()
    return rows


def _found(calls: Iterable[Call], store: Path) -> tuple[dict[str, pd.DataFrame], dict[str, Call]]:
    """Return the rows that a folder has of some calls, and the calls that are missing with what
    they need, by their keys; arrays stay on disk until they are needed.
    """
    rows = {}
    missing = {}
    asked = list(calls)
    for call in asked:  # which grows by what is needed for what is missing
        if call.key in rows or call.key in missing:
            continue
        result = _read(store / f"{call.key}.npz")
        if result is None:
            missing[call.key] = call
            asked += call.needs
        else:
            rows[call.key] = result.rows
    return rows, missing


def _tasks(ready: Iterable[Call], store: Path, n_threads: int) -> Iterator[Any]:
    """Yield joblib's tasks; each reads what a call needs when it is sent."""
    for call in ready:
        kept = [_read(store / f"{one.key}.npz") for one in (call, *call.needs)]
        yield joblib.delayed(_compute)(call, kept, code(), os.getpid(), n_threads)


def _compute(
    call: Call, kept: list[Any], asked: str, parent: int, n_threads: int
) -> tuple[str, Result]:
    if os.getppid() == parent:
        # loky's processes would stay for minutes when the one that asks is killed
        children.follow(parent)
    if code() != asked:
        raise RuntimeError(
            "a worker has other code or other versions of packages than this process: install the"
            " same"
        )
    result, *given = kept  # that of the call is there if another process has written it meanwhile
    if result is not None:
        return call.key, result
    needs = iter(given)
    arguments = dict(call.arguments)
    for name, value in call.arguments.items():
        if isinstance(value, Call):
            arguments[name] = next(needs)
    with limited_to(n_threads):
        return call.key, call.function(**arguments)


Plan = Mapping[str, tuple[list[str], Mapping[tuple[Any, ...], Call]]]
"""Tables by their names: the columns that name a call, and the calls by what these columns hold."""


def tables(
    plan: Plan, folder: str | Path = ".", *, n_jobs: int = 1, label: str = ""
) -> dict[str, pd.DataFrame]:
    """Return the tables of a plan, see `run_all`; the columns that name a call come first."""
    calls = [call for _, labeled in plan.values() for call in labeled.values()]
    computed = run_all(calls, folder, n_jobs=n_jobs, label=label)
    tidy = {}
    for name, (columns, labeled) in plan.items():
        parts = []
        for values, call in labeled.items():
            rows = computed[call.key].assign(**dict(zip(columns, values, strict=True)))
            others = rows.columns.difference(columns, sort=False)
            parts.append(rows[[*columns, *others]])
        tidy[name] = pd.concat(parts, ignore_index=True)
    return tidy


@functools.cache  # an edit while a study runs does not change what runs
def code() -> str:
    """Return a digest of the sources and versions that decide on results, without comments and
    docstrings.
    """
    trees = {}
    for package in (leamvd, leamvd_paper):
        for name, text in sources.read(Path(package.__file__).parent).items():
            if not name.startswith(QUIET):
                trees[name] = ast.parse(text)
    decides = json.dumps(versions()) + sources.digest(trees)
    return hashlib.sha256(decides.encode()).hexdigest()[:12]


def versions(*names: str) -> dict[str, str]:
    """Return the versions of the packages of these names, or those that decide on all results; of
    what is installed.
    """
    installed = {}
    for name in names or PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def _write(path: Path, result: Result) -> None:
    """Write a result, whole or not at all: an .npz file with its SHA-256 behind it."""
    arrays = {}
    for name, column in result.rows.items():
        values = column.to_numpy()
        if values.dtype == object:
            kinds = {type(value).__name__ for value in values if not isinstance(value, str)}
            if kinds:
                raise ValueError(
                    f"rows.{name} of a result must hold numbers or texts alone, got"
                    f" {', '.join(sorted(kinds))}"
                )
            values = values.astype(str)
        arrays[f"rows.{name}"] = values
    file = io.BytesIO()
    np.savez(file, **arrays, **result.arrays)
    content = file.getvalue()
    write_whole(path, content + hashlib.sha256(content).digest())


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all."""
    new = path.with_name(f".{path.name}-{os.getpid()}")
    new.write_bytes(content)
    new.replace(path)


def _read(path: Path) -> Result | None:
    """Return a result, None where there is none or where it is not what was written."""
    if not path.is_file():
        return None
    file = path.read_bytes()
    content = file[:-32]
    if hashlib.sha256(content).digest() != file[-32:]:
        return None
    with np.load(io.BytesIO(content), allow_pickle=False) as opened:
        arrays = dict(opened)
    rows = {}
    for name in list(arrays):
        if name.startswith("rows."):
            rows[name.removeprefix("rows.")] = arrays.pop(name)
    return Result(pd.DataFrame(rows), arrays)


# ---- tables that ship with the notebooks

NOTEBOOKS = Path(leamvd_paper.__file__).parent / "notebooks"  # of what pip has installed
if not NOTEBOOKS.is_dir():
    NOTEBOOKS = Path(leamvd_paper.__file__).parents[1]  # of a clone
ARCHIVE = NOTEBOOKS / "recorded"


class Recorded(NamedTuple):
    """What is recorded under a name: its settings, as its provenance has them, and how its tables
    are computed.
    """

    settings: Any
    plan: Callable[[], Plan]
    # which rows of each table ship
    keep: Callable[[pd.DataFrame], pd.DataFrame] = lambda rows: rows
    unverified: Texts = ()  # tables that ship, but whose numbers are rounded: pictures


def read_recorded(name: str, table: str = "runs") -> pd.DataFrame:
    """Return a table of what is recorded under a name; a file that is not what was written is an
    error.
    """
    names = [path.parent.name for path in ARCHIVE.glob("*/provenance.json")]
    checks.choice("what is recorded", name, sorted(names))
    folder = ARCHIVE / name
    files = {path.name.partition(".")[0]: path for path in folder.glob("*.csv*")}
    path = files[checks.choice(f"a table of {name}", table, sorted(files))]
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != provenance(name)["sha256"][path.name]:
        raise ValueError(f"{path} is not what was recorded: check it out again")
    compression = "xz" if path.suffix == ".xz" else None
    return pd.read_csv(io.BytesIO(content), compression=compression)  # exact from 3.1 on


def profile(name: str, profiles: Mapping[str, Any]) -> Any:
    """Return what a section computes at a profile; a ValueError names all that there are, with what
    is recorded.
    """
    checks.choice("profile", name, [*dict.fromkeys(["recorded", *profiles])])
    return profiles[name]


def refuse(asked: Mapping[str, Any]) -> None:
    """Refuse changes, other than None, of what is recorded: its settings are fixed."""
    for name, value in asked.items():
        if value is not None:
            raise ValueError(
                f"profile='recorded' has fixed settings; {name} needs profile quick or paper"
            )


def provenance(name: str) -> dict[str, Any]:
    """Return the settings, code, commit, versions and processor of what is recorded under a name.

    The commit is one of the history. Where it is not the one that computed, or where something is
    not known, a `note` says so. Predictions, whose worth is their date, name the commit that they
    were `brought_by`.
    """
    return json.loads((ARCHIVE / name / "provenance.json").read_text(encoding="utf-8"))


def changes(recorded: Any, now: Any, usual: Mapping[str, Any], name: str = "") -> Iterator[str]:
    """Yield how settings differ from recorded ones; what is not known, and a new one that is as
    `usual`, does not.
    """
    if isinstance(recorded, dict) and isinstance(now, dict):
        for key in {**recorded, **now}:
            if key in recorded or key not in usual or canonical(usual[key]) != now[key]:
                then = recorded.get(key, "nothing")
                here = now.get(key, "nothing")
                yield from changes(then, here, usual, f"{name}.{key}".strip("."))
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for i, both in enumerate(zip(recorded, now, strict=True)):
            yield from changes(*both, usual, f"{name}[{i}]")
    elif recorded is not None and recorded != now:
        yield f"{name} was {json.dumps(recorded)} and is {json.dumps(now)}"


def committed() -> str:
    """Return the commit of the clone that is at work; a ValueError where what computes differs from
    it.
    """
    git = ("git", "-C", str(NOTEBOOKS.parent))
    run = functools.partial(subprocess.run, capture_output=True, text=True, check=True)
    computing = ("leamvd", "notebooks/leamvd_paper")
    edited = run((*git, "status", "--porcelain", "--", *computing)).stdout.split("\n")[0]
    if edited:
        raise ValueError(f"recording needs a commit of what computes, got changes since: {edited}")
    return str(run((*git, "rev-parse", "HEAD")).stdout[:12])


def write_recorded(
    name: str, frames: Mapping[str, pd.DataFrame], settings: Any, commit: str
) -> Path:
    """Write tables to ``recorded/NAME``, with the settings, code, versions and processor that they
    come from.
    """
    place = ARCHIVE / name
    place.mkdir(parents=True, exist_ok=True)
    sums = {}
    for table, rows in frames.items():
        path = next(place.glob(f"{table}.csv*"), place / f"{table}.csv.xz")
        rows.to_csv(path, index=False, lineterminator="\n")
        sums[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    known = {
        "settings": settings,
        "code": code(),
        "commit": commit,
        "versions": versions(*PACKAGES, TORCH),
        "processor": get_host_cpu_name(),
        "sha256": sums,
    }
    (place / "provenance.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return place
