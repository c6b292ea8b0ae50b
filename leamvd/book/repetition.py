"""Running a section again as ``run.json`` says."""

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from leamvd.book import runs
from leamvd.book.parameters import ParameterError
from leamvd.book.sections import Section, choose, load


@contextlib.contextmanager
def plan(path: Path) -> Iterator[tuple[Section, dict[str, object], dict[str, Any]]]:
    """Yield the section, the values and the content of a ``run.json``; meanwhile, stand where its readings are.

    Parameters
    ----------
    path : Path
        The file, or the folder of the run.

    Raises
    ------
    leamvd.book.runs.NoRunError
        If there is no such file.
    ParameterError
        If its section or a parameter is none, or a value cannot be taken here.
    """
    from leamvd.paper import reruns  # brings pandas, which takes long to import

    about = runs.read_about(path) if path.suffix == ".json" else runs.read(path).about
    (section,) = choose(load(), [about["section"]])
    values, readings = reruns.relative(about["parameters"], about["readings"])
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(reruns.in_place(readings))
            for name, value in values.items():
                _check(section, name, value)
        except ValueError as error:
            raise ParameterError(f"{path}: {error}") from None
        yield section, values, {**about, "parameters": values}


def _check(section: Section, name: str, value: object) -> None:
    if name not in section.parameters or name == "output":
        raise ParameterError(f"{section.name} has no parameter {name!r}")
    text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    parameter = section.parameters[name]
    taken = parameter.parse(text)
    if taken != value and "PATH" not in parameter.rule:  # a path is made absolute
        raise ParameterError(f"{name} must be {parameter.type}, got {value!r}")


def differences(section: Section, about: Mapping[str, Any]) -> list[str]:
    """Return what is not here as it was where the run was made: notebook, code, versions, data."""
    from leamvd.paper import reruns, studies

    there, here = about["made_with"], runs.made_with()
    names = [name for name in there | here if name != "commit" and there.get(name) != here.get(name)]
    found = [f"{name}: {there.get(name, 'none')} then, {here.get(name, 'none')} here" for name in names]
    if about["notebook"] != section.fingerprint:
        found.insert(0, f"another version of the notebook {section.stem}")
    if reruns.has_study(about) and (known := reruns.own_study(about["studies"].values(), about)):
        data = studies.images(reruns.section_study(about))
        if data.checksum != known["checksum"]:
            found.append(f"data: {known['data']} then, {data.description} here, with other content")
    return found
