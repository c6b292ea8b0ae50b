"""Rerunning a sample of what is recorded, to see whether the same still comes out."""

import dataclasses
import io
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from leamvd._support import checks
from leamvd.paper import pretraining, recording, records, reruns, tasks
from leamvd.paper.comparison import MEASURES, final
from leamvd.paper.datasets import Dataset
from leamvd.paper.pieces import MEASUREMENTS, Measurement
from leamvd.paper.store import WEIGHTS
from leamvd.paper.studies import Classification, Study, images
from leamvd.paper.units import read_table

SIX_DIGITS = 1e-6
"""Relative difference up to which numbers are the same where the same versions run on the same kind of processor."""

COLUMNS = ["method", "inputs", "layer", "seed", "number", "recorded", "rerun", "difference", "allowed", "drifts"]
"""Of a verification: which of a unit's numbers differs most, from what to what, by how much, and by how much it may.

Of what is measured of a stack, `inputs` says what it is, and `layer` how many layers of the stack it needs.
"""

NOT_RERUN = {
    "backend_agreement": "it is rerun as a whole, by leamvd.paper.backend_agreement.record, with MNIST and PyTorch",
    "linear_cost": "what it costs depends on the machine; `leamvd bench` measures this one",
    "longer_searches": "it is rerun as a whole, by python -m leamvd.paper.longer_searches, in an hour",
    "readings_functions": "it is rerun as a whole, by python -m leamvd.paper.readings, in ten minutes",
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
    with reruns.in_place(known["readings"]), tempfile.TemporaryDirectory(prefix="leamvd-verify-") as folder:
        try:
            study = reruns.section_study(known)
            data = images(study)
        except (ImportError, OSError, RuntimeError, TypeError, ValueError) as error:
            raise NotRerunError(f"{name}: {error}") from None
        if data.checksum != known["checksum"]:
            raise NotRerunError(f"{name}: it rests on {known['data']}, and what is here under this name is another")
        changed = _changed(known, records.provenance(study, data))
        if changed and len(study.seeds) < 2:
            raise NotRerunError(f"{name}: one seed has no scatter to compare with, and {changed[0]}")
        if isinstance(study, Classification):
            rows = _measurements(name, study, data, units, seed, bool(changed), folder)
        else:
            rows = _layers(records.recorded(name), study, units, seed, bool(changed), folder)
    return Verification(changed, pd.DataFrame(rows, columns=COLUMNS))


def _provenance(name: str) -> dict[str, Any]:
    """Return the provenance of a recorded study, all of whose files are what was recorded."""
    checks.choice("name", name, names())
    if name in NOT_RERUN:
        raise NotRerunError(f"{name}: {NOT_RERUN[name]}")
    return recording.provenance(name)


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


def _layers(
    table: pd.DataFrame, study: Study, units: int, seed: int, elsewhere: bool, folder: str
) -> list[tuple[Any, ...]]:
    """Rerun layers, and compare each with its record."""
    rows = []
    for unit in _sample(table, units, seed):
        recorded, again = _rows(table, unit), _rerun(study, unit, folder)
        found = _scattered(_cell(table, unit), unit[3], again, np.log) if elsewhere else _same(recorded, again)
        rows.append((*unit, *found))
    return rows


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
    return _rows(recording.kept(study.section, records.run(own, folder, progress=True)), unit)


def _rows(table: pd.DataFrame, unit: tuple[str, str, int, int]) -> pd.DataFrame:
    """Return the numbers of a unit that are compared."""
    own = table[(table[_UNIT] == list(unit)).all(axis=1)]
    return own.drop(columns=[*_LABELS]).set_index("iteration")


def _cell(table: pd.DataFrame, unit: tuple[str, str, int, int]) -> pd.DataFrame:
    """Return the final errors of a unit and of the other seeds, by seed."""
    last = final(table)
    return last[(last[_CELL] == list(unit[:3])).all(axis=1)].set_index("seed")[list(MEASURES)]


def _same(recorded: pd.DataFrame, again: pd.DataFrame) -> tuple[Any, ...]:
    """Compare all numbers of a unit, to six digits."""
    recorded, rerun = (rows.sort_index(ascending=False) for rows in recorded.align(again))
    difference = (rerun - recorded).abs() / recorded.abs().where(recorded != 0, 1)
    values = difference.fillna(np.inf).to_numpy()  # NaN: not there
    i, j = divmod(int(values.argmax()), values.shape[1])  # among equals, of the last iteration
    place = f"{recorded.columns[j]}, {recorded.index.name} {recorded.index[i]}"
    found = float(values[i, j])
    return place, recorded.iloc[i, j], rerun.iloc[i, j], found, SIX_DIGITS, found > SIX_DIGITS


def _scattered(
    cell: pd.DataFrame, seed: int, again: pd.DataFrame, scale: Callable[[Any], Any] = lambda value: value
) -> tuple[Any, ...]:
    """Compare a unit's final numbers with those of its record, on a scale, by what seeds scatter by there."""
    found = []
    for name in cell:
        recorded, rerun = cell[name].loc[seed], again[name].iloc[-1]
        scatter = float(scale(cell[name]).std())
        allowed = max(SIX_DIGITS, float(stats.t.ppf(0.9995, len(cell) - 1)) * np.sqrt(2) * scatter)
        difference = abs(float(scale(rerun) - scale(recorded)))
        found.append((name, recorded, rerun, difference, allowed, not difference <= allowed))
    return max(found, key=lambda row: row[3] / row[4])


# ---- measurements of stacks

_INDEX = {"fine-tuning": "epoch", "probe": "layer", "likelihood": "iteration"}
_FINAL = {"fine-tuning": "test_error", "probe": "test_error", "likelihood": "log_likelihood"}


def _measurements(
    name: str, study: Classification, data: Dataset, units: int, seed: int, elsewhere: bool, folder: str
) -> list[tuple[Any, ...]]:
    """Measure stacks again, those of random weights first, and compare with the record."""
    tables = [records.recorded(name, table) for table in pretraining.Measured._fields]
    pieces, turns, order = study.measurements(), Counter[tuple[str, str]](), {}
    for i in np.random.default_rng(seed).permutation(len(pieces)):
        piece = pieces[i]
        turns[piece.what, piece.method] += 1
        turn = turns[piece.what, piece.method]
        order[piece] = (turn, piece.scale is None, MEASUREMENTS.index(piece.what), piece.method)  # by cost
    rows = []
    for piece in sorted(order, key=order.__getitem__)[:units]:
        again = {piece: _measured_again(study, piece, data, folder)}
        place = list(_INDEX).index(piece.what)
        then, now = (
            table[table["method"] == piece.method].drop(columns=[*pretraining.KEY[:2], "seconds"])
            for table in (tables[place], pretraining.table(study, again, piece.what))
        )
        index, number = _INDEX[piece.what], _FINAL[piece.what]
        own, now = (each[each["seed"] == piece.seed].set_index(index).drop(columns="seed") for each in (then, now))
        last = then[then[index] == then[index].max()].set_index("seed")[[number]]
        found = _scattered(last, piece.seed, now) if elsewhere else _same(own, now)
        rows.append((piece.method, piece.what, piece.layers, piece.seed, *found))
    return rows


def _measured_again(study: Classification, piece: Measurement, data: Dataset, folder: str) -> pd.DataFrame:
    below = []
    if piece.below:
        layers = study.layers[: piece.layers]
        stacks = dataclasses.replace(study.stacks, methods=(piece.method,), seeds=(piece.seed,), layers=layers)
        records.run(stacks, folder, progress=True)
        at, store = records.addresses(stacks, data), records.store(folder)
        below = [store.read(at[unit])[WEIGHTS] for unit in piece.below]
    part = tasks.advance(records.task(study, piece), data, below)
    return read_table(io.BytesIO(part.records))
