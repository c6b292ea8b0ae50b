"""The parameters cell of a notebook: what it declares, values read from text, and a run's values written into it."""

import ast
import io
import itertools
import re
import tokenize
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCALARS: dict[str, Callable[[str], object]] = {
    "int": int,
    "float": float,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "str": str,
}
_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a word"}
_TYPES = (*_SCALARS, *(f"list[{name}]" for name in _SCALARS))

RANGES = "seeds"
"""The parameter that takes ranges. In `layers` a dash could be meant as in 30-30-120."""

LONGEST = 10_000
"""Range that is taken: a slip of the finger is not what fills the memory."""


class ParameterError(ValueError):
    """A section or parameter that does not exist, or a value that a parameter cannot take."""


@dataclass(frozen=True)
class Parameter:
    """One line of a notebook's parameters cell: ``name: type = default  # description``.

    A type is ``int``, ``float``, ``bool``, ``str`` or a ``list`` of one of them, with ``| None`` where None is allowed.
    A description lists values that are words, ``quick | paper``; PATH among them stands for the path of anything that
    exists. All other values are checked by what takes them.
    """

    name: str
    type: str
    default: object
    description: str

    @property
    def words(self) -> list[str]:
        """The values that the description lists; none where it lists none."""
        listed = re.search(r"[\w-]+( \| [\w-]+)+", self.description)
        return listed[0].split(" | ") if listed else []

    @property
    def is_list(self) -> bool:
        """Whether a value is a list."""
        return self.type.startswith("list[")

    def parse(self, text: str) -> object:
        """Return the value that `text` stands for, paths made absolute; list items are separated by commas."""
        text, kind = text.strip(), self.type.removesuffix(" | None")
        if text == "None" and kind != self.type:
            return None
        try:
            if not self.is_list:
                return self._value(kind, text)
            listed = text.removeprefix("[").removesuffix("]")
            items = [item.strip() for item in listed.split(",")] if listed else []
            if not items and kind == self.type:  # where None is allowed, what takes the list decides
                raise ValueError
            if self.name == RANGES:
                items = [number for item in items for number in _numbers(item)]
            return [self._value(kind[len("list[") : -1], item) for item in items]
        except (KeyError, OSError, ValueError):
            raise ParameterError(f"{self.name} must be {self._rule()}, got {text!r}") from None

    def _rule(self) -> str:
        """Return what values may be, in words."""
        kind = self.type.removesuffix(" | None")
        item = kind.removeprefix("list[").removesuffix("]")
        choices = [word.replace("PATH", "the path of something that exists") for word in self.words] or [_KINDS[item]]
        choices += [f"a range such as 0-29 of up to {LONGEST:,}"] * (self.name == RANGES)
        choices += ["several with commas"] * (item != kind) + ["left out"] * (kind != self.type)
        return " or ".join(filter(None, [", ".join(choices[:-1]), choices[-1]]))

    def _value(self, kind: str, text: str) -> object:
        value = _SCALARS[kind](text)
        if not self.words or text in self.words:
            return value
        if "PATH" not in self.words or not (path := Path(text)).exists():
            raise ValueError
        return str(path.resolve())

    def values(self, text: str) -> list[object]:
        """Return what `text` stands for: of a parameter that takes one value, several may be named, with commas."""
        whole = self.is_list or ("PATH" in self.words and Path(text).exists())
        found = [self.parse(one) for one in ([text] if whole else text.split(","))]
        if len(set(map(repr, found))) < len(found):
            raise ParameterError(f"{self.name} must be given values that are all different, got {text!r}")
        return found

    def written(self, value: object) -> str:
        """Return a value as `parse` takes it, seeds that follow each other as a range: "0-2,7"."""
        if not isinstance(value, list | tuple):
            return str(value).removesuffix(".0") if isinstance(value, float) else str(value)
        if self.name != RANGES:
            return ",".join(map(self.written, value))
        runs = [list(run) for _, run in itertools.groupby(enumerate(value), lambda pair: pair[1] - pair[0])]
        ends = [(run[0][1], run[-1][1]) for run in runs]
        return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in ends)


def _numbers(item: str) -> Iterable[str]:
    """Return what an item stands for: itself, or all numbers of a range such as 0-29, both ends included."""
    ends = re.fullmatch(r"(\d+)-(\d+)", item)
    if not ends:
        return [item]
    low, high = map(int, ends.groups())
    if not 0 <= high - low < LONGEST:
        raise ValueError
    return map(str, range(low, high + 1))


def read_parameters(source: str) -> dict[str, Parameter]:
    """Return the parameters that a cell declares; ValueError if a line is not as `Parameter` describes it."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT}
    parameters = {}
    for statement in ast.parse(source).body:
        description = comments.get(statement.end_lineno or 0, "")
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value) if (
                description and (kind := ast.unparse(annotation)).removesuffix(" | None") in _TYPES
            ):
                parameters[name] = Parameter(name, kind, ast.literal_eval(value), description)
            case _:
                raise ValueError(f"not `name: type = value  # description`: {ast.unparse(statement)!r}")
    return parameters


def inline(notebook: dict[str, Any], values: Mapping[str, object]) -> None:
    """Write a run's values into the cell of an executed notebook that declares its parameters.

    The cell that papermill has injected behind it, which held them until now, is removed: run again in place, the
    notebook then does the same.
    """
    cells = notebook["cells"]
    cells[:] = [cell for cell in cells if "injected-parameters" not in cell["metadata"].get("tags", [])]
    (declared,) = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    source = "".join(declared["source"])
    for name, value in values.items():
        line = re.compile(rf"^({name}: [^=\n]+= ).*?(?=  # |$)", re.MULTILINE)
        source = line.sub(lambda found, value=value: found[1] + repr(value), source)  # type: ignore[misc]
    declared["source"] = source.splitlines(keepends=True)
