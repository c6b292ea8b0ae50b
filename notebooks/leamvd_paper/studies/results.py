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

# the environment variable that names the folder of results, whatever a notebook's folder is
STORE = "LEAMVD_STORE"


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
        parts = bound.arguments.items()
        told = {
            name: {"call": part.key} if isinstance(part, Call) else canonical(part)
            for name, part in parts
        }
        text = json.dumps(
            [function.__module__, function.__qualname__, told], sort_keys=True, allow_nan=False
        )
        key = f"{function.__name__}-{hashlib.sha256(text.encode()).hexdigest()[:20]}"
        needs = [value for value in bound.arguments.values() if isinstance(value, Call)]
        return Call(function, bound.arguments, needs, key)

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
        fields = canonical(vars(value))
        used = versions(TORCH) if fields.get("backend") == TORCH else {}
        return {"class": type(value).__qualname__, **fields, **used}
    if isinstance(value, dict):
        return {str(name): canonical(item) for name, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [canonical(item) for item in value]
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def run_all(
    calls: Iterable[Call], folder: str | Path = ".", *, n_jobs: int = 1, label: str = ""
) -> dict[str, pd.DataFrame]:
    """Return the rows of some calls, and of those among their arguments that were computed, by
    their keys.

    This process reads and writes the folder, each result as it arrives: whatever ends it loses what
    was being computed and nothing else. What another process that uses the folder finishes
    meanwhile is taken as well.
    """
    store = Path(os.environ.get(STORE, folder)).expanduser() / f"{code()}-{get_host_cpu_name()}"
    store.mkdir(parents=True, exist_ok=True)
    rows: dict[str, pd.DataFrame] = {}  # arrays stay on disk until they are needed
    missing: dict[str, Call] = {}
    asked = list(calls)
    for call in asked:  # which grows by what is needed for what is missing
        if call.key not in rows and call.key not in missing:
            if (result := _read(store / f"{call.key}.npz")) is not None:
                rows[call.key] = result.rows
            else:
                missing[call.key] = call
                asked += call.needs
    # arrays are sent as they are: those that joblib maps into memory instead can only be read
    workers = joblib.Parallel(
        n_jobs, return_as="generator_unordered", batch_size=1, max_nbytes=None
    )
    here = code(), os.getpid(), max(1, thread_count(None) // joblib.effective_n_jobs(n_jobs))
    # where nothing is missing; else TQDM_DISABLE decides
    quiet = {} if missing else {"disable": True}
    with tqdm(total=len(missing), desc=label, unit="call", leave=False, **quiet) as bar:
        while missing:
            ready = [
                call for call in missing.values() if all(need.key in rows for need in call.needs)
            ]
            sent = (
                joblib.delayed(_compute)(
                    call, [_read(store / f"{one.key}.npz") for one in (call, *call.needs)], *here
                )
                for call in ready
            )
            for key, result in workers(sent):
                _write(store / f"{key}.npz", result)
                rows[key] = result.rows
                del missing[key]
                bar.update()
    return rows


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
    arguments = {
        name: next(needs) if isinstance(value, Call) else value
        for name, value in call.arguments.items()
    }
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
    tidy: dict[str, list[pd.DataFrame]] = {name: [] for name in plan}
    for name, (columns, labeled) in plan.items():
        for values, call in labeled.items():
            rows = computed[call.key].assign(**dict(zip(columns, values, strict=True)))
            tidy[name].append(rows[[*columns, *rows.columns.difference(columns, sort=False)]])
    return {name: pd.concat(rows, ignore_index=True) for name, rows in tidy.items()}


@functools.cache  # an edit while a study runs does not change what runs
def code() -> str:
    """Return a digest of the sources and versions that decide on results, without comments and
    docstrings.
    """
    names = ("__main__.py", "cli.py", "book/", "studies/plots.py")
    quiet = tuple(f"leamvd_paper/{name}" for name in names)
    texts = {}
    for package in (leamvd, leamvd_paper):
        texts |= sources.read(Path(package.__file__).parent)
    digest = sources.digest(
        {name: ast.parse(text) for name, text in texts.items() if not name.startswith(quiet)}
    )
    return hashlib.sha256((json.dumps(versions()) + digest).encode()).hexdigest()[:12]


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
    rows = {f"rows.{name}": column.to_numpy() for name, column in result.rows.items()}
    for name, values in rows.items():
        if values.dtype == object and (
            kinds := {type(v).__name__ for v in values if not isinstance(v, str)}
        ):
            raise ValueError(
                f"{name} of a result must hold numbers or texts alone, got"
                f" {', '.join(sorted(kinds))}"
            )
    file = io.BytesIO()
    np.savez(
        file,
        **{name: v.astype(str) if v.dtype == object else v for name, v in rows.items()},
        **result.arrays,
    )
    new = path.with_name(f".{path.name}-{os.getpid()}")
    new.write_bytes(file.getvalue() + hashlib.sha256(file.getvalue()).digest())
    new.replace(path)


def _read(path: Path) -> Result | None:
    """Return a result, None where there is none or where it is not what was written."""
    content = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        return None
    with np.load(io.BytesIO(content[:-32]), allow_pickle=False) as file:
        arrays = dict(file)
    rows = {name: arrays.pop(name) for name in list(arrays) if name.startswith("rows.")}
    return Result(
        pd.DataFrame(rows).rename(columns=lambda name: name.removeprefix("rows.")), arrays
    )


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
    unverified: tuple[str, ...] = ()  # tables that ship, but whose numbers are rounded: pictures


def read_recorded(name: str, table: str = "runs") -> pd.DataFrame:
    """Return a table of what is recorded under a name; a file that is not what was written is an
    error.
    """
    checks.choice(
        "what is recorded",
        name,
        sorted(path.parent.name for path in ARCHIVE.glob("*/provenance.json")),
    )
    files = {path.name.partition(".")[0]: path for path in (ARCHIVE / name).glob("*.csv*")}
    path = files[checks.choice(f"a table of {name}", table, sorted(files))]
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != provenance(name)["sha256"][path.name]:
        raise ValueError(f"{path} is not what was recorded: check it out again")
    # exact from 3.1 on
    return pd.read_csv(io.BytesIO(content), compression="xz" if path.suffix == ".xz" else None)


def profile(name: str, profiles: Mapping[str, Any]) -> Any:
    """Return what a section computes at a profile; a ValueError names all that there are, with what
    is recorded.
    """
    checks.choice("profile", name, [*dict.fromkeys(["recorded", *profiles])])
    return profiles[name]


def refuse(asked: Mapping[str, Any]) -> None:
    """Refuse changes, other than None, of what is recorded: its settings are fixed."""
    if given := [name for name, value in asked.items() if value is not None]:
        raise ValueError(
            f"profile='recorded' has fixed settings; {given[0]} needs profile quick or paper"
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
                both = (value.get(key, "nothing") for value in (recorded, now))
                yield from changes(*both, usual, f"{name}.{key}".strip("."))
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
    if edited := run(
        (*git, "status", "--porcelain", "--", "leamvd", "notebooks/leamvd_paper")
    ).stdout.split("\n")[0]:
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
    }
    known |= {"processor": get_host_cpu_name(), "sha256": sums}
    (place / "provenance.json").write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return place
