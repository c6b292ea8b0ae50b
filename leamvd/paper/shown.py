"""What a section leads with: a recorded study, or the reader's own run in its place."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leamvd.paper import comparison, pictures, records, reruns, studies
from leamvd.paper.recording import PICTURES, PROVENANCE
from leamvd.paper.studies import Study, images

LEADING = {"mnist-7x7": ["mnist_7x7"], "mnist-28x28": ["mnist_28x28", "mnist_28x28_fewer"]}
"""Recorded studies of a section; it leads with the first that is there."""

METHODS = ("cd", "lea-mvd", "cma-es")
"""The paper's."""


class Shown(NamedTuple):
    """A study that has been run, as figures and tables need it."""

    recorded: str | None  # its name, or None: the reader's own
    study: Study
    images: str  # name of the data set
    table: pd.DataFrame
    pictures: Mapping[str, NDArray[np.uint8]]  # see `leamvd.paper.pictures.pictures`

    @property
    def title(self) -> str:
        """The line above every figure."""
        return comparison.label(self.study, self.images, self.table)

    @property
    def setting(self) -> pd.DataFrame:
        """What was run, see `leamvd.paper.comparison.setting`."""
        return comparison.setting(self.study, self.images, self.table)

    @property
    def curves(self) -> pd.DataFrame:
        """The records that are drawn over the iterations: of a recorded study those of the paper's `METHODS`."""
        return self.table[self.table["method"].isin(METHODS)] if self.recorded else self.table

    def rows(self, kind: str) -> dict[str, NDArray[np.uint8]]:
        """Return the pictures of a kind, "reconstructions" or "filters", of the same methods as `curves`, by name."""
        named = {name.partition("/")[2]: rows for name, rows in self.pictures.items() if name.startswith(f"{kind}/")}
        chosen = {pictures.ORIGINAL, *METHODS}
        return {name: rows for name, rows in named.items() if not self.recorded or name.partition(",")[0] in chosen}


def recorded(name: str) -> Shown:
    """Return a study that ships with the notebooks."""
    folder = records.recorded_folder(name)
    known = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    with reruns.in_place(known["readings"]):
        study = reruns.section_study(known)
    with np.load(folder / PICTURES, allow_pickle=False) as file:
        return Shown(name, study, known["study"]["dataset"], records.recorded(name), dict(file))


def own(study: Study, table: pd.DataFrame, output: str | Path) -> Shown:
    """Return a study that has been run here, given its records and their folder."""
    data = images(study)
    return Shown(None, study, data.name, table, pictures.pictures(study, output, data))


def lead(study: Study, table: pd.DataFrame, output: str | Path) -> Shown:
    """Return what a section leads with: a recorded study if `study`, whose records are given, is the quick one."""
    there = [name for name in LEADING[study.section] if records.recorded_folder(name).is_dir()]
    quick = study == studies.STUDIES[study.section, "quick"]
    return recorded(there[0]) if quick and there else own(study, table, output)
