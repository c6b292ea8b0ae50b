"""The notebooks as programs: what each one takes, the values it is run with, and how it runs.

``OUTPUT/SECTION/RUN`` holds the executed notebook, tables and figures of one run, ``OUTPUT/SECTION/latest`` names the
last run, and ``OUTPUT/calls`` holds what was computed. Any of these folders can be deleted.
"""

import ast
import contextlib
import difflib
import hashlib
import importlib
import inspect
import io
import itertools
import json
import logging
import os
import re
import shlex
import shutil
import tempfile
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pandas as pd
from llvmlite.binding import get_host_cpu_name

from leamvd._support import checks
from leamvd.paper import results

ABOUT, LATEST, SUMMARY = "run.json", "latest", "summary.csv"

Values = dict[str, Any]

_SCALARS: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "str": str,
}
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}


class ParameterError(ValueError):
    """A section or parameter that does not exist, or a value that a parameter cannot take."""


class RunError(RuntimeError):
    """A notebook that did not run to its end; the message says where and why."""


# ---- the parameters cell


class Parameter(NamedTuple):
    """One line of a notebook's parameters cell: ``name: type = default  # description``.

    A type is ``int``, ``float``, ``bool``, ``str`` or a ``list`` of one of them, with ``| None`` where None is allowed.
    """

    name: str
    type: str
    default: object
    description: str

    @property
    def is_list(self) -> bool:
        """Whether a value is a list."""
        return self.type.startswith("list[")

    def parse(self, text: str) -> object:
        """Return the value that a text stands for; items of a list are separated by commas, seeds may be ranges."""
        text, kind = text.strip(), self.type.removesuffix(" | None")
        if text == "None" and kind != self.type:
            return None
        item = kind.removeprefix("list[").removesuffix("]")
        try:
            if not self.is_list:
                return (
                    str(Path(text).resolve())
                    if self.name == "dataset" and Path(text).is_dir()
                    else _SCALARS[item](text)
                )
            parts = [part.strip() for part in text.removeprefix("[").removesuffix("]").split(",") if part.strip()]
            return [_SCALARS[item](one) for part in parts for one in (_range(part) if self.name == "seeds" else [part])]
        except (KeyError, ValueError):
            several = ", or several with commas" if self.is_list else ""
            raise ParameterError(f"{self.name} must be {_KINDS[item]}{several}, got {text!r}") from None

    def values(self, text: str) -> list[object]:
        """Return what a text stands for: where a parameter takes one value, several may be named, with commas."""
        found = [self.parse(one) for one in ([text] if self.is_list else text.split(","))]
        if len(set(map(repr, found))) < len(found):
            raise ParameterError(f"{self.name} must be given values that are all different, got {text!r}")
        return found

    def written(self, value: object) -> str:
        """Return a value as `parse` takes it."""
        return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _range(part: str) -> list[str]:
    """Return the seeds that 0-29 stands for, both ends included; what is no range as it is."""
    ends = re.fullmatch(r"(\d{1,6})-(\d{1,6})", part)
    return [str(seed) for seed in range(int(ends[1]), int(ends[2]) + 1)] if ends else [part]


def read_parameters(source: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares; ValueError if a line is not as `Parameter` describes it."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    found = {}
    for line in ast.parse(source).body:
        if not (isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name) and line.value):
            raise ValueError(f"not `name: type = value  # description`: {ast.unparse(line)!r}")
        name, kind = line.target.id, ast.unparse(line.annotation)
        if kind.removesuffix(" | None").removeprefix("list[").removesuffix("]") not in _SCALARS:
            raise ValueError(f"{name} must have a type such as int, str or list[int], got {kind}")
        found[name] = Parameter(name, kind, ast.literal_eval(line.value), comments.get(line.end_lineno or 0, ""))
    return found


# ---- sections


class Section(NamedTuple):
    """One notebook: its file, its name on the command line, its title, its parameters and a digest of its code."""

    path: Path
    name: str
    title: str
    modules: tuple[str, ...]  # whose `tables` compute what it shows; none for a notebook that does it all by itself
    parameters: Mapping[str, Parameter]
    program: str

    @property
    def stem(self) -> str:
        """The file's name without its ending, under which the section's runs lie."""
        return self.path.stem

    def complete(self, values: Mapping[str, object]) -> Values:
        """Return all parameters of a run except where it happens: `values`, or what the notebook has."""
        return {name: values.get(name, one.default) for name, one in self.parameters.items() if name not in _WHERE}

    def command(self, values: Mapping[str, object]) -> str:
        """Return the command that runs the section with these values."""
        changed = {n: v for n, v in self.complete(values).items() if v != self.parameters[n].default or n == "profile"}
        words = [word for n, v in changed.items() for word in ("-p", f"{n}={self.parameters[n].written(v)}")]
        return shlex.join(["leamvd", "reproduce", self.name, *words])

    def imported(self) -> list[ModuleType]:
        """Return the modules whose `tables` compute what the section shows."""
        return [importlib.import_module(name) for name in self.modules]


_WHERE = ("output", "n_jobs")  # parameters that decide on no number


def load(folder: Path = results.NOTEBOOKS) -> list[Section]:
    """Return the sections whose notebooks lie in a folder, ordered by file name."""
    return [read_section(path) for path in sorted(folder.glob("*.ipynb"))]


def read_section(path: Path) -> Section:
    """Return the section of a notebook."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [
        (cell["metadata"].get("tags", []), "".join(cell["source"])) for cell in notebook["cells"] if "outputs" in cell
    ]
    about, cells = notebook["metadata"].get("leamvd"), [source for tags, source in code if "parameters" in tags]
    if about is None or len(cells) != 1:
        raise ValueError(f"{path.name} needs one cell tagged `parameters` and the metadata entry `leamvd`")
    program = "\0".join(ast.dump(ast.parse(source)) for tags, source in code if "injected-parameters" not in tags)
    modules = tuple(about.get("module", "").split())
    digest = hashlib.sha256(program.encode()).hexdigest()[:12]
    return Section(path, about["section"], about["title"], modules, read_parameters(cells[0]), digest)


def choose(sections: Sequence[Section], names: Iterable[str]) -> list[Section]:
    """Return the sections of these names (or file stems), in the book's order; all of them when none is named."""
    wanted, known = set(names), {name for section in sections for name in (section.name, section.stem)}
    for name in sorted(wanted - known):
        raise ParameterError(f"no section {name!r}{_suggest(name, known)}")
    return [section for section in sections if not wanted or wanted & {section.name, section.stem}]


def requested(sections: Sequence[Section], settings: Sequence[tuple[str, str]]) -> list[tuple[Section, list[Values]]]:
    """Return each section with the sets of values it is to be run with, of those that it has parameters for.

    Settings are names and texts. Where a parameter takes one value a text may name several: the section is run with
    each, or with the product of them. Where a section has a profile and none is given, it is "quick".
    """
    names, known = [name for name, _ in settings], {name for section in sections for name in section.parameters}
    for name in names:
        if name in _WHERE:
            raise ParameterError(f"{name} is set by --{'jobs' if name == 'n_jobs' else name}")
        if name not in known:
            raise ParameterError(f"no parameter {name!r}{_suggest(name, known)}")
        if names.count(name) > 1:
            raise ParameterError(f"{name} is given twice")
    planned = []
    for section in sections:
        usual = {"profile": "quick"} if "profile" in section.parameters else {}
        given = {n: section.parameters[n].values(text) for n, text in settings if n in section.parameters}
        sets = [usual | dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())]
        planned.append((section, sets))
    return planned


def _suggest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(known))}"


# ---- computing


def compute(section: Section, values: Mapping[str, object], calls: Path, n_jobs: int = 1) -> dict[str, Any]:
    """Return what the section's modules compute or read: their tables by module; what `calls` has is not computed."""
    where, found = {"folder": calls, "n_jobs": n_jobs}, {}
    for module in section.imported():
        found[module.__name__] = module.tables(**_accepted(module.tables, section.complete(values) | where))
    return found


def summary(section: Section, values: Mapping[str, object], found: Mapping[str, Any]) -> pd.DataFrame | None:
    """Return the final errors of what `compute` has returned; None where a section has none."""
    for module in section.imported():
        if hasattr(module, "summary"):
            own = section.complete(values)
            errors: pd.DataFrame = module.summary(found[module.__name__], **_accepted(module.summary, own))
            return errors
    return None


def check(section: Section, values: Mapping[str, object]) -> None:
    """Refuse values that the section's modules refuse, before anything is computed."""
    with tempfile.TemporaryDirectory() as folder, results.planning(), contextlib.suppress(results.Planned):
        compute(section, values, Path(folder))


def _accepted(function: Callable[..., Any], values: Mapping[str, object]) -> Values:
    """Return the values that a function has parameters for; one that takes any takes all that decide on numbers."""
    parameters = inspect.signature(function).parameters
    every = any(one.kind is one.VAR_KEYWORD for one in parameters.values())
    decisive = set() if not every else set(values) - {"folder", "n_jobs"}
    return {name: value for name, value in values.items() if name in parameters or name in decisive}


# ---- runs


def about(section: Section, values: Mapping[str, object]) -> dict[str, Any]:
    """Return what decides on a run's results, and what tells a reader how it was made: the content of ``run.json``."""
    own, recorded = section.complete(values), hashlib.sha256()
    for path in sorted(results.ARCHIVE.glob("*/provenance.json")):
        recorded.update(path.read_bytes())
    if own.get("dataset") not in (None, "digits", "mnist"):  # a folder, whose files may change
        for path in sorted(file for file in Path(own["dataset"]).glob("*") if file.is_file()):
            recorded.update(path.read_bytes())
    return {
        "section": section.name,
        "command": section.command(values),
        "parameters": own,
        "program": section.program,
        "code": results.code(),
        "data": recorded.hexdigest()[:12],
        "versions": results.versions(),
        "processor": get_host_cpu_name(),
    }


def place(section: Section, values: Mapping[str, object], output: Path) -> Path:
    """Return the folder of a run: named after its profile and what was changed, and a digest of all that decides."""
    known = about(section, values)
    changed = {n: v for n, v in known["parameters"].items() if v != section.parameters[n].default and n != "profile"}
    words = [str(known["parameters"].get("profile", "run"))]
    words += [f"{name}={section.parameters[name].written(value)}" for name, value in changed.items()]
    digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()[:8]
    return output / section.stem / f"{re.sub(r'[^A-Za-z0-9_.,=+-]+', '-', '-'.join(words))[:70]}-{digest}"


def latest(output: Path, stem: str) -> Path | None:
    """Return the folder of the last run of a section; None where there is none."""
    named = output / stem / LATEST
    found = named.with_name(named.read_text(encoding="utf-8").strip()) if named.is_file() else None
    return found if found and found.is_dir() else None


def run(section: Section, values: Mapping[str, object], output: Path, *, n_jobs: int = 1) -> tuple[Path, bool]:
    """Compute a section and execute its notebook; return the run's folder, and whether the same had been run before.

    Then nothing is done. The folder is made next to its place and renamed when it is whole. When a cell fails or the
    kernel dies, a `RunError` says so, and the partial notebook stays where it is.
    """
    checks.needs("running a notebook", "book", "papermill", "ipykernel")
    output = output.resolve()
    folder = place(section, values, output)
    if not (finished := folder.is_dir()):
        calls = Path(os.environ.get(results.STORE, output / "calls"))
        found = compute(section, values, calls, n_jobs)
        work = folder.with_name(f".{folder.name}-{os.getpid()}")
        shutil.rmtree(work, ignore_errors=True)
        (work / "tables").mkdir(parents=True)
        for tables in found.values():
            for name, rows in getattr(tables, "_asdict", dict)().items():
                if isinstance(rows, pd.DataFrame):
                    rows.to_csv(work / "tables" / f"{name}.csv", index=False)
        errors = summary(section, values, found)
        if errors is not None:
            errors.to_csv(work / SUMMARY, index=False)
        _execute(section, values, work, calls)
        (work / ABOUT).write_text(json.dumps(about(section, values), indent=2) + "\n", encoding="utf-8")
        work.rename(folder)
    (folder.parent / LATEST).write_text(f"{folder.name}\n", encoding="utf-8")
    return folder, finished


def _execute(section: Section, values: Mapping[str, object], work: Path, calls: Path) -> None:
    import papermill  # half a second

    notebook = work / section.path.name
    logging.getLogger("papermill").setLevel(logging.ERROR)  # its own parser of the parameters cell reads few of them
    given = section.complete(values) | ({"output": "."} if "output" in section.parameters else {})
    source, target = (str(path).replace("{", "{{").replace("}", "}}") for path in (section.path, notebook))
    try:
        with _environment(calls):
            papermill.execute_notebook(
                source,  # papermill formats both paths with the parameters
                target,
                given,
                kernel_name="python3",
                language="python",
                cwd=work,
                progress_bar=False,
                extra_arguments=["--log-level=CRITICAL"],  # the kernel's own notes
            )
    except papermill.PapermillExecutionError as error:
        where = f"{section.stem}, cell In [{error.exec_count}]"
        raise RunError(f"{where}: {error.ename}: {error.evalue}\npartial notebook: {notebook}") from None
    except RuntimeError as error:  # nbclient's DeadKernelError, or what it raises while it cleans up
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise RunError(f"{section.stem}: the kernel died\npartial notebook: {notebook}") from None
    content = json.loads(notebook.read_text(encoding="utf-8"))
    inline(content, given)
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def inline(notebook: dict[str, Any], values: Mapping[str, object]) -> None:
    """Write a run's values into the cell that declares them, and drop what papermill has added: cells and times."""
    cells = notebook["cells"]
    cells[:] = [cell for cell in cells if "injected-parameters" not in cell["metadata"].get("tags", [])]
    for cell in cells:
        cell["metadata"] = {
            key: value for key, value in cell["metadata"].items() if key not in ("papermill", "execution")
        }
        if "parameters" in cell["metadata"].get("tags", []):
            source = "".join(cell["source"])
            for name, value in values.items():
                line = re.compile(rf"^({name}: [^=\n]+= ).*?(?=  # |$)", re.MULTILINE)
                source = line.sub(lambda found, value=value: found[1] + repr(value), source)  # type: ignore[misc]
            cell["source"] = source.splitlines(keepends=True)
    executed = [cell for cell in cells if cell["cell_type"] == "code"]
    for number, cell in enumerate(executed, start=1):  # without the cell that held the values
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = number
    notebook["metadata"].pop("papermill", None)


@contextlib.contextmanager
def _environment(calls: Path) -> Iterator[None]:
    """Set what the kernel finds in its environment: no settings or kernels of the user, nothing that is kept there."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="leamvd-jupyter-", ignore_cleanup_errors=True) as folder:
        jupyter = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        os.environ |= dict.fromkeys(jupyter, folder) | {
            "JUPYTER_PATH": "",
            "JUPYTER_PREFER_ENV_PATH": "1",  # the kernel that this environment brings comes first
            results.STORE: str(calls),
            "TQDM_DISABLE": "1",  # everything is computed by now, and a notebook keeps no bar
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",  # whatever the caller's shell asks for
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # silences the debugger's advice
        }
        if data := before.get("LEAMVD_DATA_DIR"):  # relative to where the caller stands
            os.environ["LEAMVD_DATA_DIR"] = str(Path(data).expanduser().absolute())
        try:
            yield
        finally:
            os.environ.clear()
            os.environ |= before
