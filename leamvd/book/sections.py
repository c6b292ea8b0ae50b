"""The notebooks as programs: what each one takes, and how it runs."""

import contextlib
import difflib
import hashlib
import json
import logging
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from leamvd._support import checks, children
from leamvd.book import results, runs
from leamvd.book.parameters import Parameter, ParameterError, read_parameters

NOTEBOOKS = Path(str(files("leamvd.notebooks")))

JUPYTER = ".jupyter"
"""Folder of Jupyter's own files, while a notebook runs."""


class RunError(RuntimeError):
    """A notebook that did not run to its end; the message says where and why."""


@dataclass(frozen=True)
class Section:
    """One notebook: its file, its name on the command line, its title, its parameters."""

    path: Path
    name: str
    title: str
    parameters: Mapping[str, Parameter]
    fingerprint: str

    @property
    def stem(self) -> str:
        """The file's name without its ending, under which the section's results lie."""
        return self.path.stem


def load(folder: Path | None = None) -> list[Section]:
    """Return the sections whose notebooks lie in `folder` (default: the package's own), ordered by file name."""
    return [_read_section(path) for path in sorted((folder or NOTEBOOKS).glob("*.ipynb"))]


def _read_section(path: Path) -> Section:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    code = [
        ("".join(cell["source"]), cell["metadata"].get("tags", []))
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]
    cells = [source for source, tags in code if "parameters" in tags]
    about = notebook["metadata"].get("leamvd")
    if len(cells) != 1 or about is None:
        raise ValueError(f"{path.name} needs one cell tagged `parameters` and the metadata entry `leamvd`")
    # papermill replaces the injected cell, so what an earlier run put there does not tell two notebooks apart; and one
    # that installs the library (book/launch.py) does nothing here
    program = "\0".join(source for source, tags in code if not {"injected-parameters", "install"} & set(tags))
    return Section(
        path,
        about["section"],
        about["title"],
        read_parameters(cells[0]),
        hashlib.sha256(program.encode()).hexdigest(),
    )


def choose(sections: Sequence[Section], names: Iterable[str]) -> list[Section]:
    """Return the sections of these names (or file stems), in the book's order; all of them when none is named.

    Raises
    ------
    ParameterError
        When there is no such section.
    """
    wanted = set(names)
    known = {known: section for section in sections for known in (section.name, section.stem)}
    for name in sorted(wanted - known.keys()):
        raise ParameterError(f"no section {name!r}{_suggest(name, known)}")
    return [section for section in sections if not wanted or wanted & {section.name, section.stem}]


def assign(sections: Sequence[Section], settings: Iterable[tuple[str, str]]) -> list[dict[str, object]]:
    """Return each section's values for those of the `settings` (name, text) that it has a parameter for.

    Raises
    ------
    ParameterError
        When a name is given twice, is known to none of the sections, or its text does not fit the parameter.
    """
    known = {name for section in sections for name in section.parameters}
    values: list[dict[str, object]] = [{} for _ in sections]
    seen = set()
    for name, text in settings:
        if name == "output":
            raise ParameterError("output is set by --output")
        if name not in known:
            raise ParameterError(f"no parameter {name!r}{_suggest(name, known)}")
        if name in seen:
            raise ParameterError(f"{name} is given twice")
        seen.add(name)
        for section, chosen in zip(sections, values, strict=True):
            if name in section.parameters:
                chosen[name] = section.parameters[name].parse(text)
    return values


def _suggest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(known))}"


def run(section: Section, values: Mapping[str, object], output: Path) -> Path:
    """Execute a section's notebook, and publish what it has made.

    Units of studies are shared by all runs in `output`; what else an earlier, unfinished run with the same notebook and
    the same values has made is kept, so that experiments carry on from there.

    Parameters
    ----------
    section : Section
        What to run.
    values : Mapping[str, object]
        Parameters that differ from the notebook's own, as `assign` returns them.
    output : Path
        The folder of the results.

    Returns
    -------
    Path
        The folder of this run, see `leamvd.book.results`.

    Raises
    ------
    RunError
        When a cell fails or the kernel dies; the partial notebook stays where it is.
    ModuleNotFoundError
        Without the extra ``leamvd[book]``.
    """
    checks.needs("running a notebook", "book", "papermill", "ipykernel", "myst_nb")
    name = _run_name(section, values)
    with results.working_folder(output, f"{section.stem}-{name}") as work:
        for left in (*work.glob(".*"), *work.glob("study-*.json")):  # by a run that was killed, or by other code
            results.remove(left)
        readings = _readings(values)
        for reading, text in readings.items():  # they are named as seen from the caller's folder
            if not Path(reading).is_absolute():
                (work / reading).parent.mkdir(parents=True, exist_ok=True)
                (work / reading).write_text(text, encoding="utf-8")
        _execute(section, values, work, output / results.STORE)
        about = runs.describe(section.name, section.fingerprint, resolved(section, values), readings, work)
        (work / results.ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        shutil.rmtree(work / JUPYTER, ignore_errors=True)
        return results.publish(work, output, section.stem, name)


def _readings(values: Mapping[str, object]) -> dict[str, str]:
    """Return the content of the files that the values name as readings of methods or of the section."""
    methods = values.get("methods")
    names = [str(method).partition(":")[2] for method in methods] if isinstance(methods, list) else []
    names += [value for value in values.values() if isinstance(value, str) and value.endswith(".json")]
    return {name: Path(name).read_text(encoding="utf-8") for name in names if name and Path(name).is_file()}


def resolved(section: Section, values: Mapping[str, object]) -> dict[str, object]:
    """Return all parameters of a run but the folder of its results."""
    defaults = {name: parameter.default for name, parameter in section.parameters.items() if name != "output"}
    return defaults | dict(values)


def _run_name(section: Section, values: Mapping[str, object]) -> str:
    """Return the name of a run's folder: the profile, and a digest of the program, its parameters and its readings."""
    parameters = resolved(section, values)
    text = json.dumps([section.fingerprint, parameters, _readings(values)], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f"{parameters['profile']}-{digest}" if "profile" in parameters else digest


def _execute(section: Section, values: Mapping[str, object], work: Path, store: Path) -> None:
    import papermill  # half a second

    notebook = work / f"{section.stem}.ipynb"
    # papermill warns about parameters that its own parser of the cell cannot read; `assign` has checked them all.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    # A path relative to the working folder: nothing in the notebook then depends on where the results lie.
    given = dict(values) | ({"output": "."} if "output" in section.parameters else {})
    try:
        with _environment(store, work / JUPYTER):
            papermill.execute_notebook(
                section.path,
                notebook,
                given,
                kernel_name="python3",
                language="python",
                cwd=work,
                extra_arguments=["--log-level=CRITICAL"],  # the kernel's own notes; what a cell says is in the notebook
                kernel_manager_class=_kernel_manager(work / JUPYTER),
            )
    except papermill.PapermillExecutionError as error:
        place = f"{section.stem}, cell In [{error.exec_count}]"
        raise RunError(f"{place}: {error.ename}: {error.evalue}\npartial notebook: {notebook}") from None
    except RuntimeError:  # nbclient's DeadKernelError, or that of a kernel that dies while it starts
        raise RunError(f"{section.stem}: the kernel died\npartial notebook: {notebook}") from None
    _finish(notebook, values)


def _kernel_manager(jupyter: Path) -> type:
    """Return what starts a kernel: of this interpreter, whatever the user has registered, and ending with this process.

    ipykernel looks once a second, and never ends where this process ends before it first looks. Where a folder can be
    the user's alone, the file that tells how to connect lies in it, and a kill leaves nothing in the temporary folder.
    """
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    program = "from ipykernel.kernelapp import launch_new_instance; launch_new_instance()"
    jupyter.mkdir(mode=0o700)
    own = jupyter.stat().st_mode & 0o777 == 0o700

    class Manager(AsyncKernelManager):
        kernel_spec = KernelSpec(argv=[*children.command(program), "-f", "{connection_file}"], language="python")

        def __init__(self, **options: Any) -> None:
            super().__init__(connection_file=str(jupyter / "kernel.json") if own else "", **options)

    return Manager


@contextlib.contextmanager
def _environment(store: Path, jupyter: Path) -> Iterator[None]:
    """Set what the kernel finds in its environment; nothing is written to the user's home, and no settings are read."""
    from leamvd.paper import progress, records, reruns

    with reruns.environment():
        # Figures go into the notebook whatever backend the caller's shell asks for. The last entry silences the
        # debugger's advice.
        os.environ |= {
            records.STORE: str(store),
            progress.TERMINAL: "",
            "MPLBACKEND": "module://matplotlib_inline.backend_inline",
            **dict.fromkeys(("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"), str(jupyter)),
            "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        }
        with contextlib.suppress(AttributeError, OSError):  # Windows gives terminals no name; and this may be none
            os.environ[progress.TERMINAL] = os.ttyname(sys.stderr.fileno())
        yield


def _finish(notebook: Path, values: Mapping[str, object]) -> None:
    """Refuse a notebook that papermill marks as failed; fold the cell that it adds; shorten this machine's paths."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    execution = content["metadata"]["papermill"]
    if execution["exception"]:
        raise RunError(f"{notebook.stem}: papermill reports an exception\npartial notebook: {notebook}")
    execution |= {"input_path": notebook.name, "output_path": notebook.name}
    for metadata in (cell["metadata"] for cell in content["cells"]):
        if "injected-parameters" in metadata.get("tags", []):
            metadata["tags"].append("hide-input")
            metadata["mystnb"] = {"code_prompt_show": "Parameters of this run"}
    home, package = _home(), Path(__file__).parents[2]
    places = [home, package, sysconfig.get_path("purelib"), tempfile.gettempdir(), notebook.parent, *values.values()]
    paths = map(Path, map(str, places))
    names = {str(path): "~" if path == home else path.name for path in paths if path.is_absolute() and path.name}
    content = _shortened(content, names | {folder.replace("\\", "\\\\"): name for folder, name in names.items()})
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:  # not every user has one
        return Path()


def _shortened(content: Any, names: Mapping[str, str]) -> Any:
    """Return a notebook's content with names in place of the folders' paths; images stay as they are."""
    if isinstance(content, str):
        for folder in sorted(names, key=len, reverse=True):
            content = names[folder].join(re.split(rf"(?<!\w){re.escape(folder)}(?![\w-])", content))
        return content
    if isinstance(content, list):
        return [_shortened(item, names) for item in content]
    if isinstance(content, dict):
        return {k: v if k.startswith("image/") else _shortened(v, names) for k, v in content.items()}
    return content
