"""Results of a study, the same whether it is computed here or read from the archive."""

import dataclasses
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leamvd.campaign import archive
from leamvd.campaign.archive import PICTURES
from leamvd.campaign.store import place
from leamvd.experiments.stacks import ORIGINAL
from leamvd.networks.torch_backend import Computation
from leamvd.studies import pictures, records
from leamvd.studies.catalog import section_study
from leamvd.studies.study import Study, images


class Results(NamedTuple):
    """What a study has found, as pages draw and test it."""

    study: Study
    images: str  # name of the data set
    computation: Computation  # what its searches saw their errors by
    tables: Mapping[str, pd.DataFrame]  # by name; of "runs", rows of `leamvd.studies.study.COLUMNS`
    pictures: Mapping[str, NDArray[np.uint8]]  # see `leamvd.studies.pictures.pictures`

    @property
    def table(self) -> pd.DataFrame:
        """The rows of the runs."""
        return self.tables["runs"]

    def rows(self, kind: str, methods: Iterable[str]) -> dict[str, NDArray[np.uint8]]:
        """Return the pictures of a kind, "reconstructions" or "filters", of some methods and the originals, by name."""
        shown = {ORIGINAL, *methods}
        named = {name.partition("/")[2]: V for name, V in self.pictures.items() if name.startswith(f"{kind}/")}
        return {name: V for name, V in named.items() if name.partition(",")[0] in shown}


def run(study: Study, output: str | Path) -> Results:
    """Return the results of a study: what of it is not stored is computed; one that is recorded is read.

    What is computed is kept in the folder `output`, see `leamvd.studies.records.run`.
    """
    if study.archived:
        return _read(study)
    data = images(study)
    tables = records.tables(study, data, output)
    return Results(study, data.name, study.training.computation, tables, pictures.pictures(study, place(output), data))


def dataset(study: Study) -> str:
    """Return the name of the data set that a study is about."""
    return str(archive.provenance(study.archived)["study"]["dataset"]) if study.archived else images(study).name


def _read(wanted: Study) -> Results:
    """Return what is recorded of a study, on machines too that cannot compute it: without PyTorch, say.

    The archive may hold a larger study, with other inputs too.
    """
    name, known = wanted.archived, archive.provenance(wanted.archived)
    computation = Computation(*(known["study"]["training"][field] for field in Computation._fields))
    here = {"parameters": known["parameters"] | dict.fromkeys(Computation._fields)}
    study = dataclasses.replace(section_study(known | here), archived=name)
    names = [file.removesuffix(".csv.xz") for file in known["sha256"] if file != PICTURES]
    tables = {table: archive.read(name, table) for table in names}
    tables["runs"] = tables["runs"][tables["runs"]["inputs"].isin(wanted.inputs)]
    with np.load(archive.folder(name) / PICTURES, allow_pickle=False) as file:
        return Results(study, known["study"]["dataset"], computation, tables, dict(file))
