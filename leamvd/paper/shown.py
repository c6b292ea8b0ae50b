"""What a section leads with: a recorded study, or the reader's own run in its place."""

import dataclasses
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leamvd.networks.torch_backend import Computation
from leamvd.paper import claims, comparison, intervals, pictures, records, reruns, rules, studies
from leamvd.paper.recording import PICTURES, PROVENANCE
from leamvd.paper.studies import Study, images

LEADING = {"mnist-7x7": ["mnist_7x7"], "mnist-28x28": ["mnist_28x28", "mnist_28x28_fewer"]}
"""Recorded studies of a section; it leads with the first that is there."""

SETTINGS = ("mnist_28x28_fewer", "mnist_28x28_variants")
"""Recorded studies of one set of images, whose searches differ in their settings."""

METHODS = ("cd", "lea-mvd", "cma-es")
"""The paper's."""

CLAIMS = {"mnist-7x7": ["C3", "C4", "C5", "C10"], "mnist-28x28": ["C6", "C7", "C8", "C9"]}
"""What a section answers."""


ENDS = ("mean_field", "test_mean_field")
"""Errors that are shown at the last iteration: on training and on test images."""


class Shown(NamedTuple):
    """A study that has been run, as figures and tables need it."""

    recorded: str | None  # its name, or None: the reader's own
    study: Study
    images: str  # name of the data set
    computation: Computation  # what its searches saw their errors by
    table: pd.DataFrame  # records; the seconds are `leamvd.paper.comparison.timed`
    pictures: Mapping[str, NDArray[np.uint8]]  # see `leamvd.paper.pictures.pictures`

    @property
    def title(self) -> str:
        """The line above every figure."""
        return comparison.label(self.study, self.images, self.table)

    @property
    def setting(self) -> pd.DataFrame:
        """What was run, see `leamvd.paper.comparison.setting`."""
        return comparison.setting(self.study, self.images, self.table, self.computation)

    def curves(self, measure: str) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return bands and runs of a measure over the iterations: of a recorded study, of the paper's `METHODS`."""
        return intervals.bands(self._drawn, measure), comparison.runs(self._drawn, measure)

    @property
    def work(self) -> pd.DataFrame:
        """Bands of the mean-field error on the last kind of inputs, of the same methods as `curves`."""
        return intervals.bands(self._drawn[self._drawn["inputs"] == self.study.inputs[-1]], "mean_field")

    @property
    def ends(self) -> tuple[pd.DataFrame, dict[str, pd.DataFrame]]:
        """Errors with intervals, and runs by measure, at the last iteration of all methods: `ENDS`."""
        last = comparison.final(self.table)
        return intervals.errors(last, ENDS), {measure: comparison.runs(last, measure) for measure in ENDS}

    @property
    def printed(self) -> Mapping[tuple[str, int], float]:
        """Errors that the paper prints for this experiment, by method and layer."""
        return rules.PRINTED if self.study.section == "mnist-28x28" else {}

    def rows(self, kind: str) -> dict[str, NDArray[np.uint8]]:
        """Return the pictures of a kind, "reconstructions" or "filters", of the same methods as `curves`, by name."""
        named = {name.partition("/")[2]: rows for name, rows in self.pictures.items() if name.startswith(f"{kind}/")}
        chosen = {pictures.ORIGINAL, *METHODS}
        return {name: rows for name, rows in named.items() if not self.recorded or name.partition(",")[0] in chosen}

    @property
    def _drawn(self) -> pd.DataFrame:
        return self.table[self.table["method"].isin(METHODS)] if self.recorded else self.table


def recorded(name: str) -> Shown:
    """Return a study that ships with the notebooks, on machines too that cannot compute it: without PyTorch, say."""
    folder = records.recorded_folder(name)
    known = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
    computation = Computation(*(known["study"]["training"][field] for field in Computation._fields))
    here = {"parameters": known["parameters"] | dict.fromkeys(Computation._fields)}
    with reruns.in_place(known["readings"]):
        study = reruns.section_study(known | here)
    with np.load(folder / PICTURES, allow_pickle=False) as file:
        shown = dict(file)
    return Shown(name, study, known["study"]["dataset"], computation, _timed(records.recorded(name)), shown)


def own(study: Study, table: pd.DataFrame, output: str | Path) -> Shown:
    """Return a study that has been run here, given its records and their folder."""
    data = images(study)
    shown = pictures.pictures(study, output, data)
    return Shown(None, study, data.name, study.training.computation, _timed(table), shown)


def _timed(table: pd.DataFrame) -> pd.DataFrame:
    return comparison.timed(table, *(records.recorded("linear_cost", name) for name in ("objectives", "training")))


def shipped(section: str) -> Shown | None:
    """Return the recorded study that a section's prose is about; None where none is there."""
    return next((recorded(name) for name in LEADING[section] if records.is_recorded(name)), None)


def lead(study: Study, table: pd.DataFrame, output: str | Path) -> Shown:
    """Return what a section leads with: a recorded study if `study`, whose records are given, is the quick one."""
    quick = study == studies.STUDIES[study.section, "quick"]
    return (shipped(study.section) if quick else None) or own(study, table, output)


def by_images(lead: Shown) -> pd.DataFrame:
    """Return test errors with their intervals, a column for each number of training images that is recorded (E11)."""
    there = [recorded(name) for name in LEADING[lead.study.section] if records.is_recorded(name)] or [lead]
    tables = {f"{own.table['n_images'].iloc[0]:,} training images": intervals.errors(own.table, ENDS) for own in there}
    return intervals.side_by_side(tables, "test_mean_field")


def variants() -> pd.DataFrame:
    """Return what searches with other settings make of their start solutions, on each method's own inputs.

    Returns
    -------
    DataFrame
        Of the recorded `SETTINGS`, of the seeds that all of them have. A row for each layer and method but contrastive
        divergence, which has no start solution: the mean-field error per 10,000 images of the start solution and at the
        end, and by how many percent it has fallen; means over runs, the last with its 95 % interval, `low` and `high`.
    """
    tables = [records.recorded(name) for name in SETTINGS]
    seeds = set.intersection(*(set(table["seed"]) for table in tables))
    both = pd.concat(tables)
    both = both[(both["inputs"] == "own") & (both["method"] != "cd") & both["seed"].isin(seeds)]
    both = both.assign(error=comparison.scaled(both, "mean_field")).sort_values(["layer", "iteration"], kind="stable")
    rows = {}
    for cell, runs in both.groupby(["layer", "method"], sort=False):
        errors = runs.groupby("seed")["error"]
        first, last = errors.first(), errors.last()
        low, fallen, high = intervals.interval((100 * (1 - last / first)).to_numpy())
        rows[cell] = {"start": first.mean(), "end": last.mean(), "fallen, %": fallen, "low": low, "high": high}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["layer", "method"])


def quoted(lead: Shown) -> dict[str, float | str]:
    """Return what the prose of a section may quote: of its recorded study, or of `lead` where none is there.

    Returns
    -------
    dict of str to float or str
        `leamvd.paper.comparison.quoted`; "runs", "n-images", "data"; "passes-cd-2" and "seconds-cd-2", the mean-field
        error per 10,000 images of contrastive divergence in RBM 2 on the last kind of inputs at equal passes and
        seconds, and so on; "searches", those of LEA-MVD in all layers on all inputs, and "improved", how many of them
        ended below their start solution. At 28 x 28 pixels "fallen-lea-mvd-sigma0-0.01-3", of `variants` in RBM 3, and
        "risen-...", the same with the other sign, and so on.
    """
    told = shipped(lead.study.section) or lead
    found: dict[str, float | str] = dict(comparison.quoted(told.table))
    found |= {"runs": len(told.study.seeds), "n-images": int(told.table["n_images"].iloc[0]), "data": told.images}
    once = (told.table["inputs"] == told.study.inputs[0]) | (told.table["layer"] > 1)  # RBM 1 has one kind of inputs
    searches = told.table[once & (told.table["method"] == "lea-mvd")].groupby(["inputs", "layer", "seed"])["mean_field"]
    found |= {"searches": len(searches), "improved": int((searches.last() < searches.first()).sum())}
    equal = comparison.equal(told.table).loc[told.study.inputs[-1]]
    for (layer, budget), errors in equal.iterrows():  # type: ignore[misc]
        found |= {f"{budget}-{method}-{layer}": comparison.six_digits(error) for method, error in errors.items()}
    if lead.study.section == "mnist-28x28":
        for layer, method, fallen in variants()["fallen, %"].reset_index().itertuples(index=False):
            name, percent = f"{re.sub('[:=]', '-', method)}-{layer}", comparison.six_digits(fallen)
            found |= {f"fallen-{name}": percent, f"risen-{name}": -percent}
    return found


def answered(lead: Shown) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the answers to the claims of a section, and the tests that they rest on, see `leamvd.paper.claims.table`.

    They rest on what is recorded; the reader's own run takes the place of study A or D where all but its seeds is as in
    that study.
    """
    section, tables = lead.study.section, claims.recorded()
    study = studies.STUDIES[section, "paper"]
    if lead.recorded is None and lead.study == dataclasses.replace(study, seeds=lead.study.seeds):
        tables[LEADING[section][0]] = lead.table
    rows = claims.evidence(tables)
    return claims.answers(rows).loc[CLAIMS[section]], claims.table(rows[rows["claim"].isin(CLAIMS[section])])
