"""Rerunning a sample of what is recorded, to see whether the same still comes out."""

import dataclasses
import hashlib
import json
import tempfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support import checks
from leamvd.paper import records, reruns
from leamvd.paper.comparison import MEASURES, final
from leamvd.paper.recording import PROVENANCE
from leamvd.paper.store import DamageError
from leamvd.paper.studies import Study, images

SIX_DIGITS = 1e-6
"""Relative difference up to which numbers are the same where the same versions run on the same kind of processor."""

COLUMNS = ["method", "inputs", "layer", "seed", "number", "recorded", "rerun", "difference", "allowed", "drifts"]
"""Of a verification: which of a unit's numbers differs most, from what to what, by how much, and by how much it may."""

NOT_RERUN = {
    "backend_agreement": "it is rerun as a whole, by leamvd.paper.backend_agreement.record, with MNIST and PyTorch",
    "linear_cost": "what it costs depends on the machine; `leamvd bench` measures this one",
}
"""What is recorded and is no study, with the reason."""

_UNIT, _CELL = ["method", "inputs", "layer", "seed"], ["method", "inputs", "layer"]
_LABELS = ("section", "reading", "seconds", *_UNIT)  # what is not compared


class NotRerunError(RuntimeError):
    """Something recorded that cannot be rerun, or not here; the message says why."""


class Verification(NamedTuple):
    """What rerunning a sample found."""

    changed: list[
        str
    ]  # what is not here as it was: processor architecture, versions, backend; with it, scatter decides
    units: pd.DataFrame  # see `COLUMNS`


def names() -> list[str]:
    """Return the names of everything that is recorded."""
    folder = records.recorded_folder("")
    return sorted(path.name for path in folder.glob("[!.]*") if path.is_dir())


def verify(name: str, *, units: int = 3, seed: int = 0) -> Verification:
    """Rerun a sample of the units of a recorded study, and compare.

    Where processor architecture, versions and backend are those of the record, all numbers of a unit must agree to six
    digits. Elsewhere rounding may send a search another way: there the final errors may differ by what two seeds of the
    same method differ by, in all but one of a thousand cases.

    Parameters
    ----------
    name : str
        Of the recorded folder.
    units : int
        How many are rerun: of each method, layer and kind of inputs one, those that cost least first; then another one.
    seed : int
        Of the choice of their seeds.

    Raises
    ------
    NotRerunError
        If it is no study, or its data are not here.
    leamvd.paper.store.DamageError
        If a recorded file is not what was recorded.
    """
    checks.integer("units", units, at_least=1)
    checks.integer("seed", seed, at_least=0)
    known = _provenance(name)
    table = records.recorded(name)
    with reruns.in_place(known["readings"]), tempfile.TemporaryDirectory(prefix="leamvd-verify-") as folder:
        try:
            study = reruns.section_study(known)
            data = images(study)
        except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise NotRerunError(f"{name}: {error}") from None
        if data.checksum != known["checksum"]:
            raise NotRerunError(f"{name}: it rests on {known['data']}, and what is here under this name is another")
        changed = _changed(known, records.provenance(study, data))
        compared = _scattered if changed else _same
        if changed and len(study.seeds) < 2:
            raise NotRerunError(f"{name}: one seed has no scatter to compare with, and {changed[0]}")
        rows = []
        for unit in _sample(table, units, seed):
            rows.append((*unit, *compared(table, unit, _rerun(study, unit, folder))))
    return Verification(changed, pd.DataFrame(rows, columns=COLUMNS))


def _provenance(name: str) -> dict[str, Any]:
    """Return the provenance of a recorded study, all of whose files are what was recorded."""
    checks.choice("name", name, names())
    if name in NOT_RERUN:
        raise NotRerunError(f"{name}: {NOT_RERUN[name]}")
    folder = records.recorded_folder(name)
    try:
        known: dict[str, Any] = json.loads((folder / PROVENANCE).read_text(encoding="utf-8"))
        for file, checksum in known["sha256"].items():
            if hashlib.sha256((folder / file).read_bytes()).hexdigest() != checksum:
                raise DamageError(f"{name}: {file} is not what was recorded")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamageError(f"{name}: {PROVENANCE} or a file that it names is missing or cut: {error}") from None
    return known


def _changed(known: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return what a rounding depends on and is not as it was, but for this package: that is what is verified."""
    facts = []
    for about in (known, here):
        training = about["study"]["training"]
        computation = {name: training[name] for name in ("backend", "device", "precision")}
        facts.append({"machine": about["machine"], **computation, **about["versions"], "leamvd": None})
    then, now = facts
    return [
        f"{name} was {then.get(name, 'none')} and is {now.get(name, 'none')}"
        for name in then | now
        if then.get(name) != now.get(name)
    ]


def _sample(table: pd.DataFrame, units: int, seed: int) -> list[tuple[str, str, int, int]]:
    """Return method, inputs, layer and seed of what is rerun."""
    last = final(table)
    cost = last["n_var"] * last["n_images"] * last["products"]
    last = last.assign(cost=cost.groupby([last[name] for name in ("method", "inputs", "seed")]).cumsum())  # by layer
    twice = (last["inputs"] != last["inputs"].iloc[0]) & ((last["layer"] == 1) | (last["method"] == "cd"))
    shuffled = last[~twice].sample(frac=1, random_state=np.random.default_rng(seed))
    turn = shuffled.groupby(_CELL).cumcount()
    chosen = shuffled.assign(turn=turn).sort_values(["turn", "cost", *_UNIT]).head(units)
    return [(str(m), str(i), int(n), int(s)) for m, i, n, s in chosen[_UNIT].itertuples(index=False)]


def _rerun(study: Study, unit: tuple[str, str, int, int], folder: str) -> pd.DataFrame:
    method, inputs, layer, seed = unit
    layers = study.layers[:layer]
    own = dataclasses.replace(study, methods=(method,), inputs=(inputs,), layers=layers, seeds=(seed,))
    return _rows(records.run(own, folder, progress=True), unit)


def _rows(table: pd.DataFrame, unit: tuple[str, str, int, int]) -> pd.DataFrame:
    """Return the numbers of a unit that are compared."""
    own = table[(table[_UNIT] == list(unit)).all(axis=1)]
    return own.drop(columns=[*_LABELS]).set_index("iteration")


def _same(table: pd.DataFrame, unit: tuple[str, str, int, int], again: pd.DataFrame) -> tuple[Any, ...]:
    """Compare all numbers of a unit, to six digits."""
    recorded, rerun = (rows.sort_index(ascending=False) for rows in _rows(table, unit).align(again))
    difference = (rerun - recorded).abs() / recorded.abs().where(recorded != 0, 1)
    values = difference.fillna(np.inf).to_numpy()  # NaN: not there
    i, j = divmod(int(values.argmax()), values.shape[1])  # among equals, of the last iteration
    place = f"{recorded.columns[j]}, iteration {recorded.index[i]}"
    found = float(values[i, j])
    return place, recorded.iloc[i, j], rerun.iloc[i, j], found, SIX_DIGITS, found > SIX_DIGITS


def _scattered(table: pd.DataFrame, unit: tuple[str, str, int, int], again: pd.DataFrame) -> tuple[Any, ...]:
    """Compare the final errors of a unit with those of the same seed, in units of what seeds scatter by."""
    last = final(table)
    cell = last[(last[_CELL] == list(unit[:3])).all(axis=1)]
    found = []
    for name in MEASURES:
        recorded, rerun = cell.loc[cell["seed"] == unit[3], name].item(), again[name].iloc[-1]
        scatter = float(np.log(cell[name]).std())
        allowed = max(SIX_DIGITS, float(stats.t.ppf(0.9995, len(cell) - 1)) * np.sqrt(2) * scatter)
        difference = abs(float(np.log(rerun / recorded)))
        found.append((name, recorded, rerun, difference, allowed, not difference <= allowed))
    return max(found, key=lambda row: row[3] / row[4])
