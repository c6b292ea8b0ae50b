"""What ships: a finished study in its recorded form, and a sample of what is recorded computed again."""

import dataclasses
import functools
import io
import json
import lzma
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from leamvd._support import checks
from leamvd.campaign import archive, versions
from leamvd.campaign import run as campaign
from leamvd.campaign.archive import PICTURES, PROVENANCE, RUNS
from leamvd.campaign.jobs import Planned, Table, digest, made_with
from leamvd.campaign.store import place
from leamvd.campaign.tables import as_csv, read_table
from leamvd.campaign.verify import compare, sample
from leamvd.data.images import Images
from leamvd.data.mnist import DataError
from leamvd.experiments.local_models import GradientStep
from leamvd.experiments.stacks import FineTune, Mistakes
from leamvd.networks.torch_backend import Computation
from leamvd.studies import (
    architectures,
    backend_agreement,
    catalog,
    functions,
    longer_searches,
    minima,
    pictures,
    records,
)
from leamvd.studies.study import ONE_EPOCH, Classification, Study, images

LIMIT = 20_000_000
"""Bytes of everything that is recorded: it ships with the package."""

NOT_VERIFIED = {"linear_cost": "what it costs depends on the machine; `leamvd bench` measures this one"}
"""What is recorded and is no table of jobs, with the reason."""


class NotVerifiedError(RuntimeError):
    """Something recorded that cannot be computed, or not here; the message says why."""


class Verification(NamedTuple):
    """What a sample has shown."""

    changed: list[str]  # what is not here as it was: processor, versions, what computes the objective
    jobs: pd.DataFrame  # see `leamvd.campaign.verify.COLUMNS`


_Plan = Callable[[Any], tuple[list[Planned], Any]]
"""Plans what was recorded, given its provenance, and makes the provenance that it would have here."""


# ---- recording a study


def record(
    name: str,
    folder: Path,
    about: Mapping[str, Any],
    store: Path,
    *,
    replace: bool = False,
    extend: bool = False,
) -> Path:
    """Write what a section's study found to ``notebooks/recorded/NAME``, and return that folder.

    These are its tables, compressed; small pictures in the place of its weights, unless it measures stacks; and its
    provenance, which is enough to run it again. The same study gives the same bytes, in one run or in several with some
    of its seeds each, of which a later one extends what is recorded.

    `folder` is that of the run, `about` its ``run.json``, and `store` the one that holds its weights. A `ValueError`,
    a `FileExistsError` or a `leamvd.campaign.store.DamageError` says why something cannot be recorded.
    """
    if not re.fullmatch(r"[a-z0-9_]+", name):
        raise ValueError(f"the name must be lower-case letters, digits and underscores, got {name!r}")
    place = _free(name, again=replace or extend)
    if not catalog.has_study(about):
        raise ValueError(f"{folder} must be a run of a section with a study to be recorded, got {about['section']}")
    if about["parameters"]["dataset"] not in (None, "digits", "mnist"):
        got = about["parameters"]["dataset"]
        raise ValueError(f"dataset must be digits or mnist in a study that is to be recorded, got {got!r}")
    known, tables = records.read(folder)
    study = catalog.section_study(about)
    data = images(study)
    if records.fingerprint(records.provenance(study, data)) != records.fingerprint(known):
        raise ValueError(f"{folder} must be run again: other code, versions or data computed it")
    content = {f"{table}.csv.xz": _compressed(records.kept(rows)) for table, rows in tables.items()}
    if not isinstance(study, Classification):
        content[PICTURES] = _packed(pictures.pictures(study, store, data))
    known = {name: about[name] for name in ("section", "parameters")} | known
    if extend:
        known, content = _extended(name, study, known, content)
    known["sha256"] = {name: digest(file) for name, file in content.items()}
    _write(place, content, known)
    return place


def _free(name: str, *, again: bool) -> Path:
    """Return the folder of what is to be recorded; refuse one that is there, unless it may be written `again`."""
    folder = archive.folder(name)
    if not (versions.PACKAGE.parent / "_config.yml").is_file():
        raise ValueError(f"recording needs a clone of the repository, got an installed package: {folder.parent}")
    if folder.exists() and not again:
        raise FileExistsError(f"{name} is recorded already in {folder}: choose another name, or replace or extend it")
    return folder


def _extended(
    name: str, study: Study, known: dict[str, Any], content: Mapping[str, bytes]
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return a run's provenance and files with those of a recorded study, of other seeds, before them."""
    if isinstance(study, Classification):
        raise ValueError(f"{name} measures stacks, and cannot be extended: replace it")
    before = archive.checked(name)
    earlier, here = _common(before), _common(known)
    if other := [key for key in here if earlier[key] != here[key]]:
        raise ValueError(f"{name} can be extended by other seeds of the same study alone, and {other[0]} differs")
    first, more = before["study"]["seeds"], known["study"]["seeds"]
    if both := [seed for seed in more if seed in first]:
        raise ValueError(f"{name} has the seed {both[0]} already")
    if min(more) < max(first):
        raise ValueError(
            f"{name} has seeds up to {max(first)}, and can be extended by later ones alone, got {min(more)}"
        )
    seeds = [*first, *more]
    usual = list(catalog.STUDIES[study.section, known["parameters"]["profile"]].seeds)
    known |= {
        "study": known["study"] | {"seeds": seeds},
        "parameters": known["parameters"] | {"seeds": None if seeds == usual else seeds},
        **{
            name: ", ".join(dict.fromkeys(one for about in (before, known) for one in str(about[name]).split(", ")))
            for name in ("commit", "machine")
        },
    }
    extended = {}
    for file in (file for file in content if file != PICTURES):
        table = file.removesuffix(".csv.xz")
        rows = pd.concat([archive.read(name, table), read_table(io.BytesIO(lzma.decompress(content[file])))])
        extended[file] = _compressed(study.in_order(rows) if file == RUNS else rows)
    with np.load(archive.folder(name) / PICTURES) as old, np.load(io.BytesIO(content[PICTURES])) as new:
        shown = pictures.joined(dict(old), dict(new))
    return known, {**extended, PICTURES: _packed(shown)}


def _common(known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a study's provenance that its runs with other seeds share."""
    parts = {name: {**known[name], "seeds": None} for name in ("study", "parameters")}
    own = ("section", "methods", "data", "checksum", "code", "versions", "python")
    return {name: known[name] for name in own} | parts


def _compressed(table: pd.DataFrame) -> bytes:
    return lzma.compress(as_csv(table).encode(), preset=9)


def _packed(arrays: Mapping[str, NDArray[np.uint8]]) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def _write(place: Path, content: Mapping[str, bytes], known: Any) -> None:
    """Write a folder so that it is there whole or not at all; an earlier one stays until then."""
    files = {**content, PROVENANCE: (json.dumps(known, indent=2) + "\n").encode()}
    others = (path for path in place.parent.rglob("*") if path.is_file() and place not in path.parents)
    size = sum(path.stat().st_size for path in others) + sum(map(len, files.values()))
    if size > LIMIT:
        raise ValueError(f"all that is recorded must be at most {LIMIT:,} bytes, with {place.name} it is {size:,}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{place.name}-", dir=place.parent) as scratch:
        new, earlier = Path(scratch, "new"), Path(scratch, "earlier")
        new.mkdir()
        for name, file in files.items():
            (new / name).write_bytes(file)
        try:
            if place.exists():
                place.rename(earlier)
            new.rename(place)
        except BaseException:
            if not place.exists() and earlier.exists():
                earlier.rename(place)
            raise


# ---- searches that belong to no section's study


def _searches(
    planned: Callable[..., list[Planned]], usual: Mapping[str, Any], known: Mapping[str, Any]
) -> tuple[list[Planned], Any]:
    """Plan what a provenance says of a plan, or the usual one."""
    plan = {name: known.get(name, value) for name, value in usual.items()}
    return _with_makers(planned(**plan), **plan)


def _with_makers(parts: list[Planned], **about: Any) -> tuple[list[Planned], Any]:
    """Return what is planned, and its provenance: what is known of it, its images, and what its jobs are made with."""
    jobs = [job for part in parts for table in part.tables.values() for job in table.jobs.values()]
    seen = dict.fromkeys(part.data.description for part in parts if part.data is not None)
    return parts, {**about, "data": "; ".join(seen), **made_with(jobs)}


def _of_study(parts: list[Planned], study: Study) -> tuple[list[Planned], Any]:
    """Return likewise what is planned of a study, or of several that are alike, of which it is the first."""
    return _with_makers(parts, study=records.provenance(study, parts[0].data)["study"])


def _functions(known: Mapping[str, Any]) -> tuple[list[Planned], Any]:
    study = catalog.STUDIES["readings", "paper"]
    methods = {method: records.settings(study, method) for method in functions.applicable(study.methods)}
    parts, found = _searches(functools.partial(functions.planned, study), functions.PLANS["paper"], known)
    return parts, {"methods": methods, "seeds": study.seeds, **found}


def _agreement(compared: Sequence[Study]) -> tuple[list[Planned], Any]:
    parts, known = [], []
    for study in compared:
        data = images(study)
        parts.append(Planned({"runs": backend_agreement.searches(study, data)}, data))
        own = backend_agreement.by_search(study).items()
        known.append({search: records.provenance(one, data) for search, one in own})
    return parts, known


def _ends(name: str, value: int, table: Table) -> Table:
    """Return the table of one of several studies: a label more says which, and of each job the last row is kept."""
    jobs = {(value, *label): job for label, job in table.jobs.items()}
    return Table((name, *table.labels), jobs, table.line, ends=True)


def _image_sets(_: Any) -> tuple[list[Planned], Any]:
    parts = []
    for study in catalog.IMAGE_SETS:
        data = images(study)
        runs = study.tables(Images.of(data))["runs"]
        parts.append(Planned({"runs": _ends("image_set", study.image_set, runs)}, data))
    return _of_study(parts, catalog.IMAGE_SETS[0])


def _scaling(*names: str) -> tuple[list[Planned], Any]:
    parts, data = [], images(catalog.SCALING[0])  # which all of them have
    for study in catalog.SCALING:
        every = study.tables(Images.of(data))
        steps = {label: GradientStep(pairs=pairs) for label, pairs in study.pairs(Images.of(data)).items()}
        every["gradient_steps"] = dataclasses.replace(every["pairs"], jobs=steps)
        tables = {name: _ends("n_hidden", study.layers[0], every[name]) for name in names}
        parts.append(Planned(tables, data))
    return _of_study(parts, catalog.SCALING[0])


def _predictions(profile: str) -> tuple[list[Planned], Any]:
    study = catalog.study("explanation", profile)
    data = images(study)
    every = study.tables(Images.of(data))
    tables = {name: every[name] for name in ("pairs", "surrogates")}
    return _of_study([Planned(tables, data)], study)


def _starts(_: Any) -> tuple[list[Planned], Any]:
    parts = []
    for study in catalog.START_SOLUTIONS:
        data = images(study)
        by_inputs = {inputs: study.pairs(Images.of(data), inputs) for inputs in study.inputs}
        pairs = {(inputs, *label): job for inputs, own in by_inputs.items() for label, job in own.items()}
        searches = {label: study.surrogate(job, "lea-mvd") for label, job in pairs.items()}
        planned = Table(("inputs", "study", "layer", "seed"), pairs, "iteration")
        parts.append(Planned({"pairs": planned, "surrogates": dataclasses.replace(planned, jobs=searches)}, data))
    return _of_study(parts, catalog.START_SOLUTIONS[0])


def _mistakes(profile: str, **changes: Any) -> tuple[list[Planned], Any]:
    study = catalog.study("classification", profile, scales=(), **changes)
    data = images(study)
    runs = study.tables(Images.of(data))["runs"]
    jobs = {(study.size, *label): Mistakes(tuned=job) for label, job in runs.jobs.items() if isinstance(job, FineTune)}
    table = Table(("study", *runs.labels), jobs, "image")
    return _of_study([Planned({"runs": table}, data)], study)


SEARCHES: dict[str, _Plan] = {
    "readings_functions": _functions,
    "longer_searches": lambda known: _searches(longer_searches.planned, longer_searches.PLANS["paper"], known),
    "preset_development": lambda known: _searches(longer_searches.planned, longer_searches.DEVELOPMENT, known),
    "preset_judged": lambda known: _searches(longer_searches.planned, longer_searches.JUDGED, known),
    "backend_agreement": lambda _: _agreement(backend_agreement.FIRST_LAYER),
    "backend_agreement_above": lambda _: _agreement(backend_agreement.ABOVE),
    "mistakes": lambda _: _mistakes("paper", methods=(ONE_EPOCH, "cd", "lea-mvd")),
    "mistakes_28x28": lambda _: _mistakes("paper-28x28", methods=(ONE_EPOCH, "cd")),
    "starts": _starts,
    "image_sets": _image_sets,
    "preset_networks": lambda known: _searches(architectures.planned, architectures.JUDGED, known),
    "local_minima": lambda known: _searches(minima.planned, minima.PLANS["paper"], known),
    "architectures": lambda known: _searches(architectures.planned, architectures.PLANS["paper"], known),
    "predictions": lambda _: _predictions("paper"),
    "scaling_predictions": lambda _: _scaling("pairs", "surrogates"),
    "scaling": lambda _: _scaling("runs", "gradient_steps"),
    "predictions_28x28": lambda _: _predictions("paper-28x28"),
}
"""What is recorded of searches that belong to no section's study: what plans them and makes their provenance, by what
a provenance says of the plan, or by the usual one."""


def record_searches(name: str, output: str | Path, *, n_jobs: int | None = 1, replace: bool = False) -> Path:
    """Compute one of `SEARCHES`, which no notebook does, and write it to ``notebooks/recorded/NAME``.

    The store is in the folder `output`: what was stopped goes on from there. For `n_jobs` see `leamvd.campaign.run`.
    What is recorded already is a `FileExistsError`, unless it is to be replaced.
    """
    folder = _free(name, again=replace)
    parts, known = SEARCHES[checks.choice("name", name, tuple(SEARCHES))]({})
    found = campaign.run_planned(parts, place(output), label=name, n_jobs=n_jobs)
    content = {f"{table}.csv": as_csv(rows).encode() for table, rows in found.items()}
    _write(folder, content, known)
    return folder


# ---- verifying


def names() -> list[str]:
    """Return the names of everything that is recorded."""
    return sorted(path.name for path in archive.folder("").glob("[!.]*") if path.is_dir())


def verify(name: str, *, jobs: int = 3, seed: int | None = None) -> Verification:
    """Compute a sample of the jobs behind each recorded table, and compare, see `leamvd.campaign.verify`.

    A `NotVerifiedError` says what is no table of jobs, or why its data are not here; a
    `leamvd.campaign.store.DamageError` which recorded file is not what was recorded.
    """
    checks.choice("name", name, names())
    if name in NOT_VERIFIED:
        raise NotVerifiedError(f"{name}: {NOT_VERIFIED[name]}")
    found = []
    try:
        known = archive.provenance(name) if name in SEARCHES else archive.checked(name)
        plan: _Plan = SEARCHES.get(name, _study)
        parts, here = plan(known)
    except (ImportError, OSError, ValueError, DataError) as error:
        raise NotVerifiedError(f"{name}: {error}") from None
    changed = _changed(known, here)
    try:
        with tempfile.TemporaryDirectory(prefix="leamvd-verify-") as folder:
            for part in parts:
                chosen = {table: sample(whole, jobs, seed) for table, whole in part.tables.items()}
                computed = campaign.run_tables(chosen, folder, data=part.data, label=name)
                for table, whole in part.tables.items():
                    recorded, rows = archive.read(name, table), computed[table]
                    if "section" in rows:
                        recorded, rows = recorded[recorded["section"].isin(rows["section"])], records.kept(rows)
                    found.append(
                        compare(
                            recorded, rows, labels=whole.labels, line=whole.line, elsewhere=bool(changed),
                            ignored=["section", "reading", "study", "seconds"],
                        )
                    )  # fmt: skip
    except ImportError as error:
        raise NotVerifiedError(f"{name}: {error}") from None
    return Verification(changed, pd.concat(found, ignore_index=True))


def _study(known: Mapping[str, Any]) -> tuple[list[Planned], Any]:
    study = catalog.section_study(known)
    data = images(study)
    if data.checksum != known["checksum"]:
        raise ValueError(f"it rests on {known['data']}, and what is here under this name is another")
    return [Planned(study.tables(Images.of(data)), data)], records.provenance(study, data)


def _changed(known: Any, here: Any) -> list[str]:
    """Return what a rounding depends on and is not as it was, except this package: that is what is verified."""
    facts = []
    for about in (known, here):
        own = about[0]["numpy float32"] if isinstance(about, list) else about  # of the agreement of backends
        training = own.get("study", {}).get("training", {})
        computation = {name: training[name] for name in Computation._fields if name in training}
        facts.append({"machine": own.get("machine"), **computation, **own["versions"]})
    then, now = facts
    return [
        f"{name} was {then[name] or 'not recorded'} and is {now[name]}"
        for name in sorted(then.keys() & now.keys())
        if then[name] != now[name]
    ]
