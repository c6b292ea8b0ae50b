"""The parameters of a run in the cell that declares them."""

import re
from collections.abc import Mapping
from typing import Any


def inline(notebook: dict[str, Any], values: Mapping[str, object]) -> None:
    """Write a run's values into the cell of an executed notebook that declares its parameters.

    The cell that papermill has injected behind it, which held them until now, is removed: run again in place, the
    notebook then does the same.

    Parameters
    ----------
    notebook : dict
        Content of the notebook file, which is changed.
    values : mapping of str to object
        Parameters of the run, by name; others keep their default.
    """
    cells = notebook["cells"]
    cells[:] = [cell for cell in cells if "injected-parameters" not in cell["metadata"].get("tags", [])]
    (declared,) = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", [])]
    source = "".join(declared["source"])
    for name, value in values.items():
        line = re.compile(rf"^({name}: [^=\n]+= ).*?(?=  # |$)", re.MULTILINE)
        source = line.sub(lambda found, value=value: found[1] + repr(value), source)  # type: ignore[misc]
    declared["source"] = source.splitlines(keepends=True)
