"""What is recorded, as pages: `python book/recorded.py`.

It writes ``notebooks/recorded/README.md``, with all columns, and ``book/recorded.md``, with a row
for each name.

What a table is stands here, words of columns in `words`, which figures it feeds in
``recorded_figures.json``, and all else in its files.
"""

import json
from importlib import import_module
from pathlib import Path
from typing import Any

from leamvd_paper.book import sections
from leamvd_paper.studies import results, verify
from leamvd_paper.studies.results import provenance, read_recorded
from leamvd_paper.studies.words import described

BOOK = Path(__file__).parent
README = results.ARCHIVE / "README.md"
PAGE = BOOK / "recorded.md"
READ_BY = json.loads((BOOK / "recorded_figures.json").read_text(encoding="utf-8"))
FIRST_PAGE = "first_page"
SECTIONS = {section.path.stem: section for section in sections.load()}
UNKNOWN = "–"

NAMES = {
    "about_start": "LEA-MVD on RBM 1 with factors about the start",
    "architectures": "five networks, three of them without a gradient, by each method",
    "backend_agreement": "searches by NumPy and by PyTorch",
    "backend_agreement_above": "the same in RBM 2 and 3",
    "carries": "searches with parts of LEA-MVD left out",
    "classification": "networks from stacks, 7×7 pixels: fine-tuning, probes, likelihoods",
    "classification_28x28": "the same at 28×28 pixels",
    "classification_28x28_wider": "networks from larger random weights, 28×28 pixels",
    "classification_controls": "the same from random weights, 7×7 pixels",
    "classification_moved": "networks from random weights as large as a stack's, 7×7 pixels",
    "explanation": "slope, curvature and searches of each layer, 7×7 pixels",
    "explanation_28x28": "the same at 28×28 pixels",
    "few_updates": "few mini-batches of CD with no search, 7×7 pixels",
    "few_updates_28x28": "the same at 28×28 pixels",
    "few_updates_searched": "searches from few mini-batches of CD, 7×7 pixels",
    "image_sets": "the paper's comparison on other sets of 10,000 images",
    "last_step_28x28": "searches without factors, 28×28 pixels, and how a factor raises the error",
    "last_step_7x7": "the same at 7×7 pixels",
    "last_step_minima": "searches from local minima of functions, without factors",
    "last_step_networks": "networks without factors",
    "linear_cost": "time and memory of a generation, of other packages' too",
    "local_minima": "searches from local minima of functions and RBMs",
    "longer_searches": "searches with up to a hundred evaluations for each variable",
    "map_28x28": "the map of settings of CD, 28×28 pixels",
    "map_28x28_searched": "searches in four of its cells",
    "map_7x7": "the map of settings of CD, 7×7 pixels: the cells that were run first",
    "map_7x7_full": "CMA-ES with its whole matrix in three of its cells",
    "map_7x7_more": "the other cells of the map, 7×7 pixels",
    "map_7x7_shared": "the map on shared inputs, 7×7 pixels",
    "map_networks": "networks in cells of two protocols",
    "map_networks_more": "networks in cells of three others",
    "mistakes": "test images that fine-tuned networks get wrong, 7×7 pixels",
    "mistakes_28x28": "the same at 28×28 pixels",
    "mnist_28x28": "CD and LEA-MVD, 28×28 pixels, 60,000 images",
    "mnist_28x28_controls": "one epoch of CD, and LEA-MVD as printed, 28×28 pixels",
    "mnist_28x28_fewer": "CD and LEA-MVD, 28×28 pixels, 10,000 images",
    "mnist_28x28_variants": "other readings and optimizers, 28×28 pixels, 10,000 images",
    "mnist_7x7": "all methods, 7×7 pixels, 60,000 images",
    "mnist_7x7_controls": "one epoch of CD, and CMA-ES with as many evaluations, 7×7 pixels",
    "one_update_28x28": "a search from one mini-batch of CD, 28×28 pixels",
    "one_update_7x7": "the same at 7×7 pixels",
    "origin": "searches by where the origin of the coordinates is",
    "path_and_factor": "searches on functions without P, or without factors",
    "predictions": "what was said before the searches, 7×7 pixels",
    "predictions_28x28": "the same at 28×28 pixels",
    "preset_again": "the recommended reading judged again, on functions and RBM 1",
    "preset_again_network": "the same on a network",
    "preset_development": "candidates for the recommended reading, where it was chosen",
    "preset_judged": "readings judged on problems that nothing was chosen on",
    "preset_last_step": "candidates with other last steps of a generation",
    "preset_networks": "readings judged on a network",
    "readings": "each alternative reading of the text, on layers of RBMs",
    "readings_bernoulli": "the same on images of bits that are drawn",
    "readings_bits": "the same on features that are bits",
    "readings_center": "the same on the pixels in the middle of images",
    "readings_cma_es": "CMA-ES with other settings, beside them",
    "readings_functions": "each alternative reading on test functions, and what C_ani does",
    "readings_own": "each alternative reading on own inputs",
    "readings_threshold": "the same on images with a threshold",
    "scaling": "searches by numbers of images and of hidden units",
    "scaling_predictions": "what was said before them",
    "second_program": "the comparison at 7×7 pixels by another program, 10,000 images",
    "starts": "slope and curvature of other starts",
    "verdicts": "answers by the rules that were written before the runs, and corrections",
    "what_to_use": "methods for the first evaluations, on functions and RBM 1",
    "what_to_use_moved": "the same where the optimum is far from the origin",
}

TABLES = {
    "answers": "answers to the claims",
    "corrections": "what each correction changes",
    "directions": "C_ani in whole searches, a row for each",
    "gradient_steps": "a step of steepest descent",
    "likelihoods": "log-likelihood of test images under RBM 1, as chains are added",
    "objectives": "errors of a generation by size, backend and threads",
    "optimizers": "a generation by optimizer, type and number of variables",
    "other_margins": "answers that another margin would change",
    "other_measurements": "answers that another reading or error would change",
    "pairs": "slope and curvature around the starts",
    "parts": "a generation of LEA-MVD taken apart",
    "pictures": "digits that stacks give back, and weights: a row for each pixel",
    "probes": "linear classifiers of features",
    "rates": "errors by learning rate, on images that are held out",
    "rbms": "searches of RBMs from where training has ended",
    "registered": "every part of the claims by the registered rules",
    "retrodictions": "searches on slope and curvature, for inputs that were seen later",
    "rises": "errors after factors on the starts",
    "runs": "a row for each iteration or mark of each run, some left out",
    "split": "a generation of the paper's layers: optimizer and errors",
    "surrogates": "searches on slope and curvature alone",
    "training": "an epoch of CD, beside scikit-learn's",
}

TOP = """\
# What is recorded

Made by `python book/recorded.py`.

The long runs behind the book: {n_tables} tables under {n_names} names, {size:.1f} MB. Each name \
is a folder. It holds tables as CSV, with `.xz` compressed, and `provenance.json`: settings, \
commit, versions, processor, checksums.

```python
import pandas as pd

pd.read_csv("mnist_7x7/runs.csv.xz")  # in this folder
```

With leamvd-paper installed, \
`leamvd_paper.studies.results.read_recorded("mnist_7x7", "runs")` compares checksums too. \
`leamvd verify NAME` computes a sample again, `leamvd record NAME` all of it.

Minutes are those of all runs on one processor, as their rows or provenance say; a dash where \
neither does. A table feeds a figure whose numbers move when the table's do. Numbers of each \
figure are in `tests/figures/recorded`.

"""

ERRORS = (
    "Errors of RBMs are sums over all images of squared differences, of gray levels from 0 to 1."
)


class Entry:
    """What is recorded under a name, in words."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.words = NAMES[name]
        self.provenance = provenance(name)
        folder = results.ARCHIVE / name
        self.size = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
        hours = verify.processor_hours(name)
        self.minutes = f"{60 * hours:,.1f}" if hours else UNKNOWN
        self.tables = {}
        for file in sorted(self.provenance["sha256"]):
            table = file.partition(".")[0]
            self.tables[table] = read_recorded(name, table)
        self.pages = _pages(name)

    def feeds(self, table: str) -> list[str]:
        """Return the figures that a table feeds."""
        found = []
        for page in READ_BY.values():
            for figure, keys in page["figures"].items():
                if f"{self.name}/{table}" in keys:
                    found.append(figure)
        return found


def _pages(name: str) -> list[str]:
    """Return the pages that read what is recorded under a name, its own section's first; where
    there are none, the section that it belongs to.
    """
    readers = []
    for page, read in READ_BY.items():
        if any(key.startswith(f"{name}/") for key in read["reads"]):
            readers.append(page)
    own = set()
    for section in SECTIONS.values():
        modules = map(import_module, section.modules)
        named = section.name.replace("-", "_") == name  # linear_cost, which no call computes
        if named or any(name in getattr(module, "RECORDED", {}) for module in modules):
            own.add(section.path.stem)
    if not readers:
        return sorted(own)[:1]
    return sorted(readers, key=lambda page: (page not in own, page == FIRST_PAGE))


def entries() -> list[Entry]:
    """Return all that is recorded."""
    names = sorted(path.parent.name for path in results.ARCHIVE.glob("*/provenance.json"))
    return [Entry(name) for name in names]


def link(page: str, above: str) -> str:
    """Return a link to a page."""
    if page == FIRST_PAGE:
        return f"[the first page]({above}book/index.md)"
    return f"[{SECTIONS[page].name}]({above}notebooks/{page}.ipynb)"


def overview(all_entries: list[Entry], above: str, *, here: bool) -> list[str]:
    """Return a row for each name; `here` its heading is on the same page."""
    lines = ["| name | what it is | section | minutes | MB |", "|:--|:--|:--|--:|--:|"]
    for one in all_entries:
        name = f"[`{one.name}`](#{one.name})" if here else f"`{one.name}`"
        page = link(one.pages[0], above)
        lines.append(f"| {name} | {one.words} | {page} | {one.minutes} | {one.size:.2f} |")
    return lines


def columns(all_entries: list[Entry]) -> list[str]:
    """Return a row for each column, apart for tables where it is something else."""
    known: dict[str, dict[tuple[str, str], list[str]]] = {}
    for one in all_entries:
        for table, rows in one.tables.items():
            for column in rows:
                meanings = known.setdefault(column, {})
                tables = meanings.setdefault(described(column, table), [])
                if table not in tables:
                    tables.append(table)
    lines = ["| column | what it is | unit |", "|:--|:--|:--|"]
    for column in sorted(known):
        for (words, unit), tables in known[column].items():
            name = f"`{column}`"
            if len(known[column]) > 1:
                name += f", in {', '.join(tables)}"
            lines.append(f"| {name} | {words} | {unit} |")
    return lines


def about(one: Entry) -> list[str]:
    """Return the paragraphs about a name and its tables."""
    known = one.provenance
    command = f"`leamvd record {one.name}`"
    if "program" in known["settings"]:
        command = f"`python {known['settings']['program']} {known['settings']['arguments']}`"
    elif one.name not in verify.all_recorded():
        command = "none: it cannot be computed again"
    took = "time not recorded" if one.minutes == UNKNOWN else f"{one.minutes} minutes"
    pages = ", ".join(link(page, "../../") for page in one.pages)
    lines = [f"### {one.name}", "", f"{one.words[0].upper()}{one.words[1:]}.", ""]
    lines.append(f"- section: {pages}")
    lines.append(f"- command: {command}; {took}, {one.size:.2f} MB")
    lines.append(f"- computed at commit `{known['commit']}`, processor: {known['processor']}")
    if "note" in known:
        lines.append(f"- note: {known['note']}")
    for table, rows in one.tables.items():
        feeds = ", ".join(f"`{figure}`" for figure in one.feeds(table)) or "none"
        names = ", ".join(f"`{column}`" for column in rows)
        what = f"- **{table}**: {TABLES[table]}; {len(rows):,} rows"
        lines += [what, f"  - columns: {names}", f"  - figures: {feeds}"]
    return [*lines, ""]


def readme(all_entries: list[Entry]) -> str:
    """Return the text of ``notebooks/recorded/README.md``."""
    sizes: dict[str, Any] = {
        "n_tables": sum(len(one.tables) for one in all_entries),
        "n_names": len(all_entries),
        "size": sum(one.size for one in all_entries),
    }
    names = overview(all_entries, "../../", here=True)
    lines = [TOP.format(**sizes), "## Names", "", *names, "", "## Columns", ""]
    lines += [ERRORS, "", *columns(all_entries), "", "## Tables", ""]
    for one in all_entries:
        lines += about(one)
    return "\n".join(lines)


def page(all_entries: list[Entry]) -> str:
    """Return the text of the book's page."""
    lines = [
        "# What is recorded",
        "",
        "The tables behind this book lie in `notebooks/recorded`. `README.md` there has all"
        " columns, and the figures that each table feeds. Minutes are those of all runs on one"
        " processor, where they are known.",
        "",
        ":::{table}",
        ":class: recorded stacked",
        "",
        *overview(all_entries, "../", here=False),
        ":::",
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    every = entries()
    README.write_text(readme(every), encoding="utf-8")
    PAGE.write_text(page(every), encoding="utf-8")
