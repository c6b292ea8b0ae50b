"""The notebooks as programs: what each one takes, the values that it is run with, and how it runs."""

import contextlib
import itertools
import json
import logging
import os
import shlex
import shutil
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import pandas as pd

from leamvd._support import checks
from leamvd.book import pasted, runs
from leamvd.book.parameters import Parameter, ParameterError, inline, read_parameters
from leamvd.campaign.jobs import digest
from leamvd.campaign.store import FOLDER, STORE
from leamvd.campaign.tables import write_table

NOTEBOOKS = Path(str(files("leamvd.notebooks")))

PROFILE = "quick"
"""What the command line runs, unless it is told otherwise."""


RUN = "LEAMVD_RUN"
"""Environment variable that tells a notebook that `leamvd` runs it, and writes its numbers into its sentences."""


class RunError(RuntimeError):
    """A notebook that did not run to its end; the message says where and why."""


@dataclass(frozen=True)
class Section:
    """One notebook: its file, its name on the command line, its title, its parameters, a digest of its code."""

    path: Path
    name: str
    title: str
    parameters: Mapping[str, Parameter]
    fingerprint: str

    @property
    def stem(self) -> str:
        """The file's name without its ending, under which the section's results lie."""
        return self.path.stem

    def complete(self, values: Mapping[str, object]) -> dict[str, object]:
        """Return all parameters of a run except the folder of its results: `values`, or what the command line takes."""
        usual = {name: parameter.default for name, parameter in self.parameters.items() if name != "output"}
        usual |= {"profile": PROFILE} if "profile" in usual else {}
        return usual | {name: value for name, value in values.items() if name in usual}

    def command(self, values: Mapping[str, object]) -> str:
        """Return the command that runs the section with `values`, as one line for a shell; other names are ignored."""
        words, usual, given = ["leamvd", "reproduce", self.name], self.complete({}), self.complete(values)
        if (profile := given.pop("profile", PROFILE)) != PROFILE:
            words += ["--profile", str(profile)]
        for name, value in given.items():
            if value != usual[name]:
                words += ["-p", f"{name}={self.parameters[name].written(value)}"]
        return shlex.join(words)

    def label(self, values: Mapping[str, object], dataset: str) -> str:
        """Return what a run is called, "digits-quick-exponent=3-seeds=0-2"; what is swept over is not to be cut off."""
        usual, given = self.complete({}), self.complete(values)
        changed = [name for name in given if given[name] != usual[name] and name not in ("profile", "dataset")]
        swept = [name for name in changed if isinstance(given[name], list) and not self.parameters[name].is_list]
        names = [*swept, *(name for name in changed if name not in swept)]
        settings = [f"{name}={self.parameters[name].written(given[name])}" for name in names]
        return "-".join(filter(None, [dataset, str(given.get("profile", "")), *settings]))

    def about(self, values: Mapping[str, object], checksum: str = "") -> dict[str, object]:
        """Return the ``run.json`` of a run with `values`, given a checksum of its data."""
        return {
            "section": self.name,
            "notebook": self.fingerprint,
            "command": self.command(values),
            "parameters": self.complete(values),
            "made_with": runs.made_with(checksum),
        }


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
    return Section(path, about["section"], about["title"], read_parameters(cells[0]), digest(program.encode()))


def choose(sections: Sequence[Section], names: Iterable[str]) -> list[Section]:
    """Return the sections of these names (or file stems), in the book's order; all of them when none is named."""
    wanted = set(names)
    known = {known: section for section in sections for known in (section.name, section.stem)}
    for name in sorted(wanted - known.keys()):
        raise ParameterError(f"no section {name!r}{_suggest(name, known)}")
    return [section for section in sections if not wanted or wanted & {section.name, section.stem}]


Values = dict[str, object]


def requested(sections: Sequence[Section], settings: Sequence[tuple[str, str]]) -> list[tuple[Section, list[Values]]]:
    """Return each section with the sets of values that it is to be run with, of those that it has parameters for.

    Settings are names and texts. Where a parameter takes one value, a text may name several: a section is then run with
    each, or with the product of those swept over. Where a section has a profile and none is given, it is `PROFILE`.
    """
    known = {name for section in sections for name in section.parameters}
    names = [name for name, _ in settings]
    for name in names:
        if name == "output":
            raise ParameterError("output is set by `leamvd reproduce --output DIR`")
        if name not in known:
            raise ParameterError(f"no parameter {name!r}{_suggest(name, known)}")
        if names.count(name) > 1:
            raise ParameterError(f"{name} is given twice")
    planned = []
    for section in sections:
        own = section.parameters
        usual: Values = {"profile": PROFILE} if "profile" in own else {}
        given = {name: own[name].values(text) for name, text in settings if name in own}
        sets = [usual | dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())]
        planned.append((section, sets))
    return planned


def swept(sets: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the names of the parameters in which sets of values differ."""
    return [name for name, value in sets[0].items() if any(one[name] != value for one in sets)]


def labels(sets: Sequence[Mapping[str, object]]) -> list[str]:
    """Return what tells each set of values from the others: "population_size=12", nothing where there is one set."""
    return [", ".join(f"{name}={one[name]}" for name in swept(sets)) for one in sets]


def together(sets: Sequence[Mapping[str, object]]) -> Values:
    """Return sets of values as one: those of what is swept over as a list."""
    names = swept(sets)
    return {name: [*dict.fromkeys(one[name] for one in sets)] if name in names else sets[0][name] for name in sets[0]}


def finished(section: Section, values: Mapping[str, object], output: Path) -> Path | None:
    """Return the folder of a run, or of a sweep, that has been made of the same; None where there is none.

    Images in a folder of the user's are read, for their checksum. The data sets that have a name do not change.
    """
    found = runs.alike(output, section.stem, section.about(values))
    given = values.get("dataset")
    paths = [one for one in (given if isinstance(given, list) else [given]) if one not in (None, "digits", "mnist")]
    if found and paths:
        from leamvd.data.images import checksum

        checksums = "-".join(checksum(str(path)) for path in paths)
        found = [run for run in found if run.about["made_with"].get("data") == checksums]
    return found[0].folder if found else None


def _suggest(name: str, known: Iterable[str]) -> str:
    return checks.did_you_mean(name, known) or f"; there are {', '.join(sorted(known))}"


def run(
    section: Section,
    values: Mapping[str, object],
    output: Path,
    data: runs.Data = runs.NO_DATA,
    summary: pd.DataFrame | None = None,
) -> Path:
    """Execute a section's notebook with values that differ from its own, and publish what it has made; return where.

    What studies compute is shared by all runs in `output`; what else an earlier, unfinished run of the same name has
    made is kept, so that experiments go on from there. Beside it are put the final errors, where there is a `summary`.
    When a cell fails or the kernel dies, a `RunError` says so, and the partial notebook stays where it is.
    """
    checks.needs("running a notebook", "book", "papermill", "ipykernel", "myst_nb")
    about = section.about(values, data.checksum)
    name = runs.name(about, section.label(values, Path(data.name).name))
    with runs.working_folder(output, f"{section.stem}-{name}") as work:
        for left in work.glob(".*"):  # by a run that was killed
            shutil.rmtree(left)
        _execute(section, values, work, output / FOLDER)
        if summary is not None:
            write_table(work / runs.SUMMARY, summary)
        (work / runs.ABOUT).write_text(json.dumps(about, indent=2) + "\n", encoding="utf-8")
        return runs.publish(work, output, section.stem, name)


def _execute(section: Section, values: Mapping[str, object], work: Path, store: Path) -> None:
    import papermill  # half a second

    notebook = work / f"{section.stem}.ipynb"
    # papermill warns about parameters that its own parser of the cell cannot read; `plan` has checked them all.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    # A path relative to the working folder: nothing in the notebook then depends on where the results lie.
    given = dict(values) | ({"output": "."} if "output" in section.parameters else {})
    source, target = (str(path).replace("{", "{{").replace("}", "}}") for path in (section.path, notebook))
    try:
        with _environment(store), _interrupts_first():
            papermill.execute_notebook(
                source,  # papermill formats both paths with the parameters
                target,
                given,
                kernel_name="python3",
                language="python",
                cwd=work,
                progress_bar=sys.stderr.isatty(),
                extra_arguments=["--log-level=CRITICAL"],  # the kernel's own notes; what a cell says is in the notebook
            )
    except papermill.PapermillExecutionError as error:
        place = f"{section.stem}, cell In [{error.exec_count}]"
        raise RunError(f"{place}: {error.ename}: {error.evalue}\npartial notebook: {notebook}") from None
    except RuntimeError:  # nbclient's DeadKernelError, or that of a kernel that dies while it starts
        raise RunError(f"{section.stem}: the kernel died\npartial notebook: {notebook}") from None
    _finish(notebook, given, section.path.parent)


@contextlib.contextmanager
def _environment(store: Path) -> Iterator[None]:
    """Set what the kernel finds in its environment: no settings or kernels of the user, nothing that is kept there."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="leamvd-jupyter-", ignore_cleanup_errors=True) as folder:
        jupyter = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
        os.environ |= dict.fromkeys(jupyter, folder) | {
            "JUPYTER_PATH": "",
            "JUPYTER_PREFER_ENV_PATH": "1",  # the kernel that this environment brings comes first
            RUN: "1",
            STORE: str(store),
            "TQDM_DISABLE": "1",  # the jobs are computed by now, and a notebook keeps no bar
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


@contextlib.contextmanager
def _interrupts_first() -> Iterator[None]:
    """Raise an interrupt as what it is, whatever nbclient raises while it cleans up after it, or says at the end."""
    try:
        yield
    except BaseException as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                # it may have been about to wait for something, or leave a cell whose failure nobody asks for any more
                warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
                logging.getLogger("asyncio").setLevel(logging.CRITICAL)
                raise cause from None
            cause = cause.__context__
        raise


def _finish(notebook: Path, values: Mapping[str, object], others: Path) -> None:
    """Write a run's values into its notebook, and name the notebook by its file alone.

    Those are the parameters, in their cell, and in the sentences the numbers that it pastes, from itself or from the
    notebooks in the folder `others`.
    """
    content = json.loads(notebook.read_text(encoding="utf-8"))
    content["metadata"]["papermill"] |= {"input_path": notebook.name, "output_path": notebook.name}
    inline(content, values)
    there = {path.stem: pasted.read(json.loads(path.read_text(encoding="utf-8"))) for path in others.glob("*.ipynb")}
    pasted.resolve_numbers(content, there | {notebook.stem: pasted.read(content)}, notebook.stem)
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
