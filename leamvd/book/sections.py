"""The notebooks as programs: the parameters they take, the values these may have, and how a notebook runs."""

import ast
import difflib
import hashlib
import io
import json
import logging
import math
import os
import shutil
import sys
import tokenize
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

NOTEBOOKS = Path(str(files("leamvd.notebooks")))
PARTIAL = ".partial"


class ParameterError(ValueError):
    """A section or parameter that does not exist, or a value that a parameter cannot take."""


class RunError(RuntimeError):
    """A notebook that did not run to its end; the message says where and why."""


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_SCALARS: dict[str, Callable[[str], object]] = {"int": int, "float": float, "bool": _boolean, "str": str}
_TYPES = (*_SCALARS, "list[int]", "list[float]", "list[str]")


@dataclass(frozen=True)
class Parameter:
    """One line of a notebook's parameters cell: ``name: type = default  # rule: description``.

    Attributes
    ----------
    name : str
        The notebook's variable.
    type : str
        ``int``, ``float``, ``bool``, ``str`` or a ``list`` of one of them, with ``| None`` where None is allowed.
    default : object
        The value that the notebook itself assigns.
    rule : str
        What each value must satisfy: ``a | b | PATH`` (a word, or a path that exists; ``PATH.json`` asks for that
        ending), ``lo..hi`` (both included), ``>= x``, ``> x`` or ``any``.
    description : str
        One line for the reader.
    """

    name: str
    type: str
    default: object
    rule: str
    description: str

    def parse(self, text: str) -> object:
        """Return the value that `text` stands for, paths made absolute; list items are separated by commas.

        Raises
        ------
        ParameterError
            When the text is not of the type, or its value breaks the rule.
        """
        text = text.strip()
        kind = self.type.removesuffix(" | None")
        if text == "None" and kind != self.type:
            return None
        try:
            if not kind.startswith("list["):
                return _admit(_SCALARS[kind](text), self.rule)
            read = _SCALARS[kind.removeprefix("list[").removesuffix("]")]
            items = text.removeprefix("[").removesuffix("]").split(",")
            return [_admit(read(item.strip()), self.rule) for item in items]
        except (KeyError, ValueError):
            exists = "; PATH must exist" if "PATH" in self.rule else ""
            raise ParameterError(f"{self.name} must be {self.type} ({self.rule}{exists}), got {text!r}") from None


def _admit(value: object, rule: str) -> object:
    """Return `value`, a path made absolute; a value that breaks the rule is a ValueError."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError
    if rule == "any":
        return value
    if rule.startswith(">"):
        sign, bound = rule.split()
        admitted = float(str(value)) > float(bound) or (sign == ">=" and float(str(value)) == float(bound))
    elif ".." in rule:
        low, high = map(float, rule.split(".."))
        admitted = low <= float(str(value)) <= high
    else:
        words = rule.split(" | ")
        admitted = str(value) in words
        endings = tuple(word.removeprefix("PATH") for word in words if word.startswith("PATH"))
        path = Path(str(value)).expanduser()
        if not admitted and path.name.endswith(endings) and path.exists():
            return str(path.resolve())
    if not admitted:
        raise ValueError
    return value


def read_parameters(source: str) -> dict[str, Parameter]:
    """Return the parameters that a parameters cell declares, in its order.

    Raises
    ------
    ValueError
        When a statement is not a typed assignment of a literal with a comment ``# rule: description`` behind it.
    """
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    parameters = {}
    for statement in ast.parse(source).body:
        rule, colon, description = comments.get(statement.end_lineno or 0, "").partition(": ")
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value) if (
                colon and (kind := ast.unparse(annotation)).removesuffix(" | None") in _TYPES
            ):
                parameters[name] = Parameter(name, kind, ast.literal_eval(value), rule, description)
            case _:
                raise ValueError(f"not `name: type = value  # rule: description`: {ast.unparse(statement)!r}")
    return parameters


@dataclass(frozen=True)
class Section:
    """One notebook: its file, its name on the command line, its title, its expected minutes, its parameters."""

    path: Path
    name: str
    title: str
    minutes: Mapping[str, float]
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
    # papermill replaces the injected cell, so what an earlier run put there does not tell two notebooks apart
    program = "\0".join(source for source, tags in code if "injected-parameters" not in tags)
    return Section(
        path,
        about["section"],
        about["title"],
        about["minutes"],
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


def run(section: Section, values: Mapping[str, object], output: Path) -> None:
    """Execute a section's notebook in ``output/.partial``, where `publish` finds it.

    What an earlier, unfinished run with the same notebook and the same values left there is kept, so that the
    notebook's experiments carry on from their records; anything else is removed first.

    Parameters
    ----------
    section : Section
        What to run.
    values : Mapping[str, object]
        Parameters that differ from the notebook's own, as `assign` returns them.
    output : Path
        The folder of the results.

    Raises
    ------
    RunError
        When a cell fails or the kernel dies; the partial notebook and records stay where they are.
    """
    import papermill  # half a second, and an optional dependency
    from nbclient.exceptions import DeadKernelError

    from leamvd.paper.records import TERMINAL

    work = output / PARTIAL
    notebook = work / f"{section.stem}.ipynb"
    _prepare(section, values, work)
    # Figures go into the notebook whatever backend the caller's shell asks for, and the kernel is this interpreter's
    # own, not one that the user has registered under the same name. The last entry silences the debugger's advice.
    os.environ |= {
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "JUPYTER_PREFER_ENV_PATH": "1",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
    }
    if sys.stderr.isatty():
        os.environ[TERMINAL] = os.ttyname(sys.stderr.fileno())
    # papermill warns about parameters that its own parser of the cell cannot read; `assign` has checked them all.
    logging.getLogger("papermill").setLevel(logging.ERROR)
    # A path relative to the working folder: nothing in the notebook then depends on where the results lie.
    given = dict(values) | ({"output": section.stem} if "output" in section.parameters else {})
    try:
        papermill.execute_notebook(
            section.path,
            notebook,
            given,
            kernel_name="python3",
            language="python",
            cwd=work,
            extra_arguments=["--log-level=CRITICAL"],  # the kernel's own notes; what a cell says goes into the notebook
        )
    except papermill.PapermillExecutionError as error:
        place = f"{section.stem}, cell In [{error.exec_count}]"
        raise RunError(f"{place}: {error.ename}: {error.evalue}\npartial notebook: {notebook}") from None
    except DeadKernelError:
        raise RunError(f"{section.stem}: the kernel died\npartial notebook: {notebook}") from None
    _finish(notebook)


def _prepare(section: Section, values: Mapping[str, object], work: Path) -> None:
    """Make the working folder, and empty it of what a run of another notebook or with other values left."""
    mark = work / f"{section.stem}.json"
    text = json.dumps({"notebook": section.fingerprint, "parameters": values}, indent=2, sort_keys=True)
    work.mkdir(parents=True, exist_ok=True)
    if not mark.exists() or mark.read_text(encoding="utf-8") != text:
        mark.unlink(missing_ok=True)
        shutil.rmtree(work / section.stem, ignore_errors=True)
        mark.write_text(text, encoding="utf-8")


def _finish(notebook: Path) -> None:
    """Refuse a notebook that papermill marks as failed; fold its injected cell, take this machine's paths out of it."""
    content = json.loads(notebook.read_text(encoding="utf-8"))
    execution = content["metadata"]["papermill"]
    if execution["exception"]:
        raise RunError(f"{notebook.stem}: papermill reports an exception\npartial notebook: {notebook}")
    execution |= {"input_path": notebook.name, "output_path": notebook.name}
    for metadata in (cell["metadata"] for cell in content["cells"]):
        if "injected-parameters" in metadata.get("tags", []):
            metadata["tags"].append("hide-input")
            metadata["mystnb"] = {"code_prompt_show": "Parameters of this run"}
    notebook.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def publish(sections: Iterable[Section], output: Path) -> None:
    """Move what `run` made over the earlier results in `output`; each notebook and each folder moves as a whole."""
    work = output / PARTIAL
    old = work / "replaced"
    shutil.rmtree(old, ignore_errors=True)
    old.mkdir()
    for section in sections:
        for name in (section.stem, f"{section.stem}.ipynb"):
            if (output / name).exists():
                (output / name).rename(old / name)
            if (work / name).exists():
                (work / name).rename(output / name)
        (work / f"{section.stem}.json").unlink()
    shutil.rmtree(old)
    if not any(work.iterdir()):  # parts of other sections, stopped earlier, may still lie here
        work.rmdir()
