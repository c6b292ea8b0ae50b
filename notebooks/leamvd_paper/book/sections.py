"""The notebooks as programs: what each one takes, the values it is run with, and how it runs.

``OUTPUT/SECTION/RUN`` holds the executed notebook, tables and figures of one run,
``OUTPUT/SECTION/latest`` names the last run, and ``OUTPUT/calls`` holds what was computed. Any of
these folders can be deleted.
"""

import ast
import contextlib
import dataclasses
import glob
import hashlib
import importlib
import inspect
import json
import os
import platform
import re
import shlex
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
from llvmlite.binding import get_host_cpu_name

from leamvd._support import checks, children
from leamvd_paper.data import images
from leamvd_paper.studies import results

ABOUT = "run.json"
LATEST = "latest"
SUMMARY = "summary.csv"

Values = dict[str, Any]

QUICK = {
    "esd": "10 seconds",
    "directions": "15 seconds",
    "mnist-7x7": "half a minute",
    "mnist-28x28": "20 seconds",
    "linear-cost": "20 seconds",
    "error-measures": "15 seconds",
    "readings": "15 seconds",
    "classification": "20 seconds",
    "verdicts": "15 seconds",
    "explanation": "15 seconds",
    "minima-and-networks": "20 seconds",
    "longer-searches": "15 seconds",
    "settings-map": "20 seconds",
}
"""About how long the profile "quick" takes on one idle processor, when kernels are compiled."""


# ---- the parameters cell

_TYPE = re.compile(r"(Optional\[)?(list\[)?(int|float|bool|str)\]*")  # papermill knows no `|`
_LINE = re.compile(
    rf"(?P<name>\w+): (?P<type>{_TYPE.pattern}) = (?P<default>.+?)(?:  # (?P<description>.*))?"
)
_IMPORT = "from typing import Optional"


def _whole(text: str) -> int:
    """Return a whole number, which 1e3 is and 1.5 is not."""
    number = checks.decimal(text)
    with contextlib.suppress(ValueError):
        return int(text)
    return checks.count("", number)


_KINDS: dict[str, tuple[str, Callable[[str], object]]] = {
    "int": ("a whole number", _whole),
    "float": ("a number", checks.decimal),
    "bool": ("true or false", lambda text: {"true": True, "false": False}[text.lower()]),
    "str": ("a word", str),
}


class Parameter(NamedTuple):
    """One line of a notebook's parameters cell: ``name: type = default  # description``.

    A type is ``int``, ``float``, ``bool``, ``str`` or a ``list`` of one of them, ``Optional`` where
    None is allowed.
    """

    name: str
    type: str
    default: object
    description: str

    def kind(self) -> str:
        """Return in words what it takes."""
        ((_, listed, kind),) = _TYPE.findall(self.type)
        words = _KINDS[kind][0]
        if listed:
            words += ", or several with commas"
        if self.name == "seeds":
            words += ", or ranges such as 0-9"
        return words

    def parse(self, text: str) -> Any:
        """Return the value that a text stands for; items of a list are separated by commas, seeds
        may be ranges.

        None stands for none: what is not given has its default.
        """
        ((optional, listed, kind),) = _TYPE.findall(self.type)
        _, read = _KINDS[kind]
        text = text.strip()
        told = f"{self.name} must be {self.kind()}, got {text!r}"
        if text == "None":
            usual = "profile" if optional else "notebook"
            close = "; did you mean 'none'?" if "'none'" in self.description else ""
            raise ValueError(f"{told}: leave it out for the {usual}'s{close}")
        if not text and not listed:
            raise ValueError(told)
        if self.name == "dataset" and text not in images.NAMED:
            path = Path(text).expanduser()
            if path.exists():
                return str(path.resolve())
        try:
            if not listed:
                return read(text)
            return [read(item) for item in _items(self.name, text)]
        except (KeyError, TypeError, ValueError):
            raise ValueError(told) from None


def _items(name: str, text: str) -> list[str]:
    """Return the items of a list, which may be written as Python has it; of seeds also ranges."""
    if name == "seeds":
        text = _RANGE.sub(_seeds, text)
    items = [item.strip(" '\"") for item in text.strip("[]").split(",")]
    return [item for item in items if item]


_RANGE = re.compile(r"\b(\d{1,6})-(\d{1,6})\b")  # of seeds, both ends included


def _seeds(ends: re.Match[str]) -> str:
    seeds = range(int(ends[1]), int(ends[2]) + 1)
    if not seeds:
        raise ValueError(ends[0])
    return ",".join(map(str, seeds))


def written(value: object) -> str:
    """Return a value as `Parameter.parse` takes it."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read_parameters(source: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares; ValueError if a line is not as `Parameter`
    describes it.
    """
    parameters = {}
    for line in filter(None, source.removeprefix(_IMPORT).splitlines()):
        parts = _LINE.fullmatch(line)
        if not parts:
            raise ValueError(f"not `name: type = value  # description`: {line!r}")
        name, kind, default, words = parts.group("name", "type", "default", "description")
        parameters[name] = Parameter(name, kind, ast.literal_eval(default), words or "")
    return parameters


# ---- sections

_WHERE = ("output", "n_jobs")  # parameters that decide on no number


class Section(NamedTuple):
    """One notebook: its file, its name on the command line, its title, its parameters and its
    program.
    """

    path: Path
    name: str
    title: str
    # whose `tables` compute what it shows; none for a notebook that does it all by itself
    modules: tuple[str, ...]
    parameters: Mapping[str, Parameter]
    program: str  # a digest of its code

    def complete(self, values: Values) -> Values:
        """Return all parameters of a run except where it happens: `values`, or what the notebook
        has.
        """
        complete = {}
        for name, one in self.parameters.items():
            if name not in _WHERE:
                complete[name] = values.get(name, one.default)
        return complete

    def profiles(self) -> dict[str, Values]:
        """Return what each profile has for the parameters that are None in the notebook."""
        by_profile: dict[str, Values] = {}
        for module in map(importlib.import_module, self.modules):
            known = getattr(module, "PROFILES", {})
            if "size" in self.parameters:  # profiles by the size of images
                known = known[self.parameters["size"].default]
            for profile, settings in known.items():
                by_profile.setdefault(profile, {}).update(_fields(settings))
        return by_profile


def _fields(settings: Any) -> Values:
    """Return the fields of a dataclass, and those of its own dataclasses."""
    if not dataclasses.is_dataclass(settings):
        return {}
    fields = {**vars(settings)}
    for part in vars(settings).values():
        fields |= _fields(part)
    return fields


def load(names: Iterable[str] = (), folder: Path = results.NOTEBOOKS) -> list[Section]:
    """Return the sections of these names (or file stems), in the book's order; all of them when
    none is named.
    """
    sections = [read_section(path) for path in sorted(folder.glob("*.ipynb"))]
    wanted = set(names)
    known = set()
    for section in sections:
        known |= {section.name, section.path.stem}
    for name in sorted(wanted - known):
        raise ValueError(f"no section {name!r}{_suggest(name, known)}")
    if not wanted:
        return sections
    return [section for section in sections if wanted & {section.name, section.path.stem}]


def read_section(path: Path) -> Section:
    """Return the section of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    programs = []
    parameters = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            programs.append(_program(source))
            if "parameters" in cell["metadata"].get("tags", []):
                parameters.append(source)
    entry = notebook["metadata"].get("leamvd")
    if entry is None or len(parameters) != 1:
        raise ValueError(
            f"{path.name} needs one cell tagged `parameters` and the metadata entry `leamvd`"
        )
    modules = tuple(entry.get("module", "").split())
    program = _digest("\0".join(programs).encode())
    return Section(
        path, entry["section"], entry["title"], modules, read_parameters(parameters[0]), program
    )


def _program(source: str) -> str:
    """Return what does not change with comments and blank lines."""
    try:
        return ast.dump(ast.parse(source))
    except SyntaxError:  # IPython's own commands
        return source


def _digest(content: bytes) -> str:
    """Return 12 hexadecimal digits that tell contents apart."""
    return hashlib.sha256(content).hexdigest()[:12]


def requested(
    sections: Sequence[Section], settings: Iterable[str]
) -> list[tuple[Section, list[Values]]]:
    """Return each section with the sets of values it is to be run with, of those that it has
    parameters for.

    Settings are texts, "name=value". Where a parameter takes one number a text may name several,
    with commas: the section is run with each, or with the product of them. Where a section has a
    profile and none is given, it is "quick".
    """
    texts = _texts(settings, {name for section in sections for name in section.parameters})
    planned = []
    for section in sections:
        sets: list[Values] = [{}]
        if "profile" in section.parameters:
            sets = [{"profile": "quick"}]
        for name, parameter in section.parameters.items():
            if name in texts:
                several = [texts[name]]
                if parameter.type.removeprefix("Optional[").startswith(("int", "float")):
                    several = texts[name].split(",")
                parsed = [parameter.parse(one) for one in several]
                runs = checks.several(name, parsed, different=True)
                sets = [values | {name: value} for values in sets for value in runs]
        planned.append((section, sets))
    return planned


def _texts(settings: Iterable[str], known: Iterable[str]) -> dict[str, str]:
    """Return the texts of settings by the names of parameters, each of which is given once."""
    texts = {}
    for setting in settings:
        name, _, text = setting.partition("=")
        name = name.strip()
        if name in _WHERE:
            option = "jobs" if name == "n_jobs" else name
            raise ValueError(f"{name} is set by --{option}")
        if name not in known:
            raise ValueError(f"no parameter {name!r}{_suggest(name, known)}")
        if name in texts:
            raise ValueError(f"{name} is given twice")
        texts[name] = text
    return texts


def _suggest(name: str, known: Iterable[str]) -> str:
    return checks.did_you_mean(name, known) or f"; there are {', '.join(sorted(known))}"


# ---- computing


def compute(
    section: Section, values: Values, calls: Path, n_jobs: int = 1
) -> tuple[dict[str, Any], Any]:
    """Return the tables of the section's modules, by their names, and the summary of one that makes
    it, or None.

    What the folder `calls` has is not computed.
    """
    given = section.complete(values)
    given["folder"] = calls
    given["n_jobs"] = n_jobs
    by_module = {}
    summary = None
    for module in map(importlib.import_module, section.modules):
        tables = _called(module.tables, given)
        by_module[module.__name__] = tables
        if hasattr(module, "summary"):
            summary = _called(module.summary, given, tables)
    return by_module, summary


def check_all(planned: Sequence[tuple[Section, list[Values]]]) -> None:
    """Refuse a bad value before the first of several runs begins, and a profile before images are
    read.
    """
    for section, sets in planned:
        for values in sets:
            _check_profile(section, values.get("profile", "recorded"))
    for section, sets in planned:
        for values in sets:
            check(section, values)


def _check_profile(section: Section, profile: str) -> None:
    known = section.profiles()
    try:
        if known and profile != "recorded":
            results.profile(profile, known)
    except ValueError as error:
        raise ValueError(f"{section.name}: {error}") from error


def check(section: Section, values: Values) -> None:
    """Refuse values that the plans of the section's modules refuse.

    Where there is no plan they are refused when it is computed; of profiles see `check_all`.
    """
    given = section.complete(values)
    try:
        for module in map(importlib.import_module, section.modules):
            recorded = given["profile"] == "recorded"
            planned = getattr(module.tables, "planned", getattr(module, "planned", None))
            if planned is not None:
                # which reads what ships
                asked = module.tables if recorded else planned
                _called(asked, given)
    except (MemoryError, ValueError) as error:
        raise ValueError(f"{section.name}: {error}") from error


def _called(function: Callable[..., Any], values: Values, *first: Any) -> Any:
    """Return what a function makes of the values that it has parameters for; one that takes any
    takes all that decide on numbers.
    """
    parameters = inspect.signature(function).parameters
    taken = {*parameters}
    if any(one.kind is one.VAR_KEYWORD for one in parameters.values()):
        taken |= values.keys() - {"folder", *_WHERE}
    return function(*first, **{name: value for name, value in values.items() if name in taken})


# ---- runs


def about(section: Section, values: Values) -> dict[str, Any]:
    """Return the content of ``run.json``: what decides on a run's results, the command that makes
    it, and its name.

    A run is named after its profile, what was changed, and a digest of all that decides. Its folder
    has that name.
    """
    parameters = section.complete(values)
    files = [path.read_bytes() for path in sorted(results.ARCHIVE.glob("*/provenance.json"))]
    if parameters.get("dataset") not in (None, *images.NAMED):  # files, which may change
        files.append(images.known(parameters["dataset"])[0].encode())
    words = ["leamvd", "reproduce", section.name]
    title = ["run"]
    packages = [*results.PACKAGES]
    for name, value in parameters.items():
        usual = None if name == "profile" else section.parameters[name].default
        if value != usual:
            text = written(value)
            setting = f"{name}={text}"
            words += ["-p", setting]
            if name == "profile":
                title[0] = text
            else:
                title.append(setting)
            if results.TORCH in text:
                packages = [*results.PACKAGES, results.TORCH]
    content = {
        "section": section.name,
        "command": shlex.join(words),
        "parameters": parameters,
        "program": section.program,
        "code": results.code(),
        "data": _digest(b"".join(files)),
        "versions": results.versions(*packages),
        "processor": get_host_cpu_name(),
    }
    digest = _digest(json.dumps(content, sort_keys=True).encode())[:8]
    name = re.sub(r"[^A-Za-z0-9_.,=+-]+", "-", "-".join(title))[:70]
    return {"run": f"{name}-{digest}", **content}


def latest(output: Path, stem: str) -> Path | None:
    """Return the folder of the last run of a section; None where there is none."""
    named = output / stem / LATEST
    if not named.is_file():
        return None
    folder = named.with_name(named.read_text(encoding="utf-8").strip())
    return folder if folder.is_dir() else None


def run(section: Section, values: Values, output: Path, *, n_jobs: int = 1) -> tuple[Path, bool]:
    """Compute a section and execute its notebook; return the run's folder, and whether the same had
    been run before.

    Then nothing is done. The folder is made next to its place and renamed when it is whole. When a
    cell fails or the kernel dies, a `RuntimeError` says so, and the partial notebook stays where it
    is until the same is run again.
    """
    checks.needs("running a notebook", "leamvd-paper[book]", "ipykernel", "nbformat", "papermill")
    from scipy.optimize import OptimizeWarning  # as late as this, since it takes a while to import

    output = output.resolve()
    made = about(section, values)
    folder = output / section.path.stem / made["run"]
    here = f".{folder.name}-{platform.node()}-"  # another machine may use the folder, too
    work = folder.with_name(f"{here}{os.getpid()}")
    for left in folder.parent.glob(f"{glob.escape(here)}*"):
        if left == work or children.ended(int(left.name.rpartition("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
    finished = folder.is_dir()
    if not finished:
        calls = Path(os.environ.get(results.STORE, output / "calls")).resolve()
        # of settings: `check` has told them
        with warnings.catch_warnings(action="ignore", category=OptimizeWarning):
            by_module, summary = compute(section, values, calls, n_jobs)
        for module, tables in by_module.items():
            place = work / "tables"
            if len(by_module) > 1:
                place /= module.rpartition(".")[2]
            place.mkdir(parents=True)
            for name, rows in tables._asdict().items():
                if isinstance(rows, pd.DataFrame):
                    rows.to_csv(place / f"{name}.csv", index=False)
        work.mkdir(parents=True, exist_ok=True)
        if summary is not None:
            summary.to_csv(work / SUMMARY, index=False)
        _execute(section, values, work, calls)
        (work / ABOUT).write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
        try:
            work.rename(folder)
        except OSError:
            if not folder.is_dir():
                raise
            shutil.rmtree(work)  # another process has finished the same
    (folder.parent / LATEST).write_text(f"{folder.name}\n", encoding="utf-8")
    return folder, finished


def _execute(section: Section, values: Values, work: Path, calls: Path) -> None:
    """Write a notebook with a run's values in its parameters cell, and execute it there."""
    import nbformat
    import papermill  # half a second

    notebook = work / section.path.name
    content = nbformat.read(section.path, 4)
    given = section.complete(values)
    given["output"] = "."
    cell = next(cell for cell in content.cells if "parameters" in cell.metadata.get("tags", []))
    lines = [_IMPORT, ""] if cell.source.startswith(_IMPORT) else []
    for p in section.parameters.values():
        lines.append(f"{p.name}: {p.type} = {given.get(p.name, p.default)!r}  # {p.description}")
    cell.source = "\n".join(lines)
    nbformat.write(content, notebook)
    path = str(notebook).replace("{", "{{").replace("}", "}}")  # papermill formats it
    try:
        with _environment(calls):
            papermill.execute_notebook(
                path,
                path,
                cwd=work,
                kernel_name="python3",
                language="python",
                progress_bar=False,
                record_timing=False,
                extra_arguments=["--log-level=CRITICAL"],  # without the kernel's own notes
            )
    # the latter where the kernel dies
    except (papermill.PapermillExecutionError, RuntimeError) as error:
        if isinstance(error.__context__, KeyboardInterrupt):  # after which nbclient cleans up
            raise error.__context__ from None
        text = "the kernel died"
        if isinstance(error, papermill.PapermillExecutionError):
            text = f"cell In [{error.exec_count}]: {error.ename}: {error.evalue}"
        raise RuntimeError(f"{section.path.stem}, {text}\npartial notebook: {notebook}") from None
    content = nbformat.read(notebook, 4)
    for part in (content, *content.cells):
        part.metadata.pop("papermill", None)  # times
    nbformat.write(content, notebook)


@contextlib.contextmanager
def _environment(calls: Path) -> Iterator[None]:
    """Set what the kernel finds in its environment: no settings or kernels of the user, nothing
    that is kept there.
    """
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(
        prefix="leamvd-jupyter-", ignore_cleanup_errors=True
    ) as folder:
        settings = {
            "IPYTHONDIR": folder,
            "JUPYTER_CONFIG_DIR": folder,
            "JUPYTER_DATA_DIR": folder,
            "JUPYTER_RUNTIME_DIR": folder,
            "JUPYTER_PATH": "",
            "JUPYTER_PREFER_ENV_PATH": "1",  # the kernel that this environment brings comes first
            results.STORE: str(calls),
            "TQDM_DISABLE": "1",  # everything is computed by now, and a notebook keeps no bar
            # whatever the caller's shell asks for
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # silences the debugger's advice
        }
        data = before.get("LEAMVD_DATA_DIR")
        if data:  # relative to where the caller stands
            settings["LEAMVD_DATA_DIR"] = str(Path(data).expanduser().absolute())
        os.environ |= settings
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= before
