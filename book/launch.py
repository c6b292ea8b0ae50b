"""Write what Colab needs into the notebooks: a first cell that installs the library, where it is not there.

Colab opens a notebook of the repository that `_config.yml` names, and nothing beside it. Without an address no button
leads to Colab, and the notebooks hold no such cell.
"""

import json
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
TAGS = ["install", "remove-cell"]
SOURCE = """\
import importlib.util

if importlib.util.find_spec("leamvd") is None:  # on Colab
    get_ipython().run_line_magic("pip", "install --quiet 'leamvd[book] @ git+{address}'")"""


def address() -> str:
    """Return the repository's address, empty where there is none."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    return str(config["repository"]["url"])


def prepared(notebook: dict[str, Any], repository: str) -> dict[str, Any]:
    """Return an executed notebook with the cell that installs from the repository, without one for an empty address."""
    cells = [cell for cell in notebook["cells"] if "install" not in cell["metadata"].get("tags", [])]
    if repository:
        source = SOURCE.format(address=repository).splitlines(keepends=True)
        metadata = {"tags": TAGS}
        cells.insert(0, {"cell_type": "code", "id": "install", "metadata": metadata, "outputs": [], "source": source})
    executed = [cell for cell in cells if cell["cell_type"] == "code"]
    for number, cell in enumerate(executed, start=1):  # as if all cells had just run, which is what the tests compare
        cell["execution_count"] = number
        for output in cell["outputs"]:
            if "execution_count" in output:
                output["execution_count"] = number
    return notebook | {"cells": cells}


def main() -> None:
    """Prepare every notebook of the clone."""
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        notebook = prepared(json.loads(path.read_text(encoding="utf-8")), address())
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
