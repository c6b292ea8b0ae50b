"""Write a page with the picture before and now of each figure of the notebooks that has moved:
``python tests/moved_figures.py DRAWN PAGE``, as `make accept` and `make test` do.

DRAWN is where the notebooks were run. Before is what the last commit's notebook shows.
"""

import json
import runpy
import subprocess
import sys
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from pathlib import Path

from figures import ACCEPTED, MEASURED, same_figure, same_numbers

ROOT = Path(__file__).parent.parent
SAVED = runpy.run_path(str(ROOT / "book" / "notebook_pages.py"))["SAVED"]
ROW = "<h2>{}</h2>\n<pre>{}</pre>\n<div>{}</div>\n"
PICTURE = '<figure><figcaption>{}</figcaption><img alt="" src="data:image/png;base64,{}"></figure>'
PAGE = """<!doctype html>
<meta charset="utf-8"><title>Moved figures</title>
<style>div {{ display: flex }} figure {{ width: 50%; margin: 0 }} img {{ width: 100% }}</style>
<h1>Figures that have moved: {}</h1>
"""


def moved(drawn: Path, accepted: Path) -> dict[str, str]:
    """Return what has moved of each figure, by name, in a folder of figures."""
    found = {}
    names = {path.name for folder in (drawn, accepted) for path in folder.iterdir()}
    for name in sorted(names):
        own = drawn / name
        check = {".json": same_figure, ".csv": same_numbers}.get(own.suffix)
        if check is None or name.startswith(MEASURED):
            continue
        if not own.is_file():
            found[own.stem] = "It was not drawn."
        elif not (accepted / name).is_file():
            found[own.stem] = "It is new."
        else:
            try:
                check(own, accepted / name)
            except (AssertionError, ValueError) as error:
                found.setdefault(own.stem, str(error).strip())
    return found


def committed() -> dict[str, str]:
    """Return the picture of each figure in the last commit's notebooks, in base64."""
    pictures = {}
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        place = f"HEAD:./notebooks/{path.name}"
        shown = subprocess.run(["git", "show", place], cwd=ROOT, capture_output=True, check=False)
        if shown.returncode:
            continue  # a new one, or no clone
        for cell in json.loads(shown.stdout)["cells"]:
            saved = SAVED.search("".join(cell["source"]))
            if saved and cell["cell_type"] == "code":
                name = saved[1].format(size=path.stem.rpartition("_")[2])
                for output in cell["outputs"]:
                    pictures[name] = output.get("data", {}).get("image/png", "")
    return pictures


def page(changes: Mapping[str, str], before: Mapping[str, str], drawn: Path) -> str:
    """Return the page of some figures."""
    rows = [PAGE.format(len(changes))]
    for name, change in changes.items():
        pictures = []
        if name in before:
            pictures.append(PICTURE.format("before", before[name]))
        file = drawn / f"{name}.png"
        if file.is_file():
            pictures.append(PICTURE.format("now", b64encode(file.read_bytes()).decode()))
        rows.append(ROW.format(name, escape(change), "".join(pictures)))
    return "".join(rows)


def main(drawn: str, written: str) -> None:
    """Write the page where figures have moved, and say so; take an earlier one away."""
    place = Path(written)
    place.unlink(missing_ok=True)
    figures = Path(drawn, "figures")
    changes = moved(figures, ACCEPTED / "recorded")
    if changes:
        place.write_text(page(changes, committed(), figures), encoding="utf-8")
        print(f"Figures that have moved: {len(changes)}, shown by {written}")


if __name__ == "__main__":
    main(*sys.argv[1:])
