"""The parameters that a notebook declares, and the values these may have."""

import ast
import io
import math
import re
import tokenize
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path


class ParameterError(ValueError):
    """A section or parameter that does not exist, or a value that a parameter cannot take."""


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_SCALARS: dict[str, Callable[[str], object]] = {"int": int, "float": float, "bool": _boolean, "str": str}
_TYPES = (*_SCALARS, "list[int]", "list[float]", "list[str]")

RANGES = "seeds"
"""The parameter that takes ranges. In `layers` a dash could be meant as in 30-30-120."""

EMPTY = " or empty"
"""The end of the rule of a list that may be empty, as by ``-p scales=``."""

LONGEST = 10_000
"""Range that is taken: a slip of the finger is not what fills the memory."""


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
        ending), ``lo..hi`` (both included), ``>= x``, ``> x`` or ``any``; `EMPTY` behind it where a list may be empty.
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
        rule = self.rule.removesuffix(EMPTY)
        if not text and rule != self.rule:
            return []
        try:
            if not kind.startswith("list["):
                return _admit(_SCALARS[kind](text), rule)
            read = _SCALARS[kind.removeprefix("list[").removesuffix("]")]
            items = text.removeprefix("[").removesuffix("]").split(",")
            if self._ranges:
                items = [number for item in items for number in _numbers(item)]
            return [_admit(read(item.strip()), rule) for item in items]
        except (KeyError, ValueError):
            more = "; PATH must exist" if "PATH" in self.rule else f", of up to {LONGEST:,}" * self._ranges
            raise ParameterError(f"{self.name} must be {self.type} ({self.allowed}{more}), got {text!r}") from None

    @property
    def _ranges(self) -> bool:
        return self.name == RANGES and self.type.startswith("list[")

    @property
    def allowed(self) -> str:
        """The rule as the reader is told it."""
        return f"{self.rule}, or ranges as 0-29" if self._ranges else self.rule

    def alternatives(self, text: str) -> list[str]:
        """Return what `text` holds: of a parameter that takes one value, several may be named, separated by commas.

        Raises
        ------
        ParameterError
            When they are not all different.
        """
        if self.type.startswith("list[") or ("PATH" in self.rule and _path(text).exists()):
            return [text]
        several = text.split(",")
        if len({repr(self.parse(one)) for one in several}) < len(several):
            raise ParameterError(f"{self.name} must be given values that are all different, got {text!r}")
        return several


def _numbers(item: str) -> Iterable[str]:
    """Return what an item stands for: itself, or all numbers of a range such as 0-29, both ends included."""
    ends = re.fullmatch(r"(\d+)-(\d+)", item.strip())
    if not ends:
        return [item]
    low, high = map(int, ends.groups())
    if not 0 <= high - low < LONGEST:
        raise ValueError
    return map(str, range(low, high + 1))


def _path(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:  # there is no such user
        return Path(text)


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
        path = _path(str(value))
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
