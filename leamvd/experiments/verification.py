"""Computing a sample of what is recorded again, to see whether the same still comes out."""

import tempfile
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import pandas as pd

from leamvd._support import checks
from leamvd.campaign import archive, versions
from leamvd.campaign import run as campaign
from leamvd.campaign.jobs import Job, rows
from leamvd.campaign.verify import compare, sample
from leamvd.data.images import Dataset, Images
from leamvd.experiments import backend_agreement, functions, longer_searches, records
from leamvd.experiments.layers import TrainLayer
from leamvd.experiments.studies import STUDIES, Classification, Layer, images, section_study

NOT_VERIFIED = {"linear_cost": "what it costs depends on the machine; `leamvd bench` measures this one"}
"""What is recorded and is no table of jobs, with the reason."""


class NotVerifiedError(RuntimeError):
    """Something recorded that cannot be computed, or not here; the message says why."""


class Verification(NamedTuple):
    """What a sample has shown."""

    changed: list[str]  # what is not here as it was: processor, versions, what computes the objective
    jobs: pd.DataFrame  # see `leamvd.campaign.verify.COLUMNS`


class _Recorded(NamedTuple):
    """A recorded table, and how it is computed."""

    table: pd.DataFrame
    labeled: Mapping[Any, Job]  # those that cost least first
    compute: Callable[[Mapping[Any, Job], str], pd.DataFrame]  # the rows of some of these jobs, given a folder
    lines: list[str]  # columns that name a line of a job


def names() -> list[str]:
    """Return the names of everything that is recorded."""
    return sorted(path.name for path in archive.folder("").glob("[!.]*") if path.is_dir())


def verify(name: str, *, jobs: int = 3, seed: int = 0) -> Verification:
    """Compute a sample of the jobs behind a recorded table, and compare, see `leamvd.campaign.verify.compare`.

    Parameters
    ----------
    name : str
        Of the recorded folder.
    jobs : int
        How many are computed of each table, those that cost least first.
    seed : int
        Of the choice of their seeds.

    Raises
    ------
    NotVerifiedError
        If it is no table of jobs, or its data are not here.
    leamvd.campaign.store.DamageError
        If a recorded file is not what was recorded.
    """
    checks.choice("name", name, names())
    if name in NOT_VERIFIED:
        raise NotVerifiedError(f"{name}: {NOT_VERIFIED[name]}")
    try:
        changed, tables = _READ.get(name, _study)(name)
        found = []
        with tempfile.TemporaryDirectory(prefix="leamvd-verify-") as folder:
            for recorded in tables:
                here = recorded.compute(sample(recorded.labeled, jobs, seed), folder)
                labels = list(next(iter(recorded.labeled))._fields)
                found.append(
                    compare(
                        recorded.table, here, labels=labels, index=recorded.lines, elsewhere=bool(changed),
                        ignored=["section", "reading", "study", "seconds"],
                    )
                )  # fmt: skip
    except (ImportError, OSError, TypeError, ValueError) as error:
        raise NotVerifiedError(f"{name}: {error}") from None
    return Verification(changed, pd.concat(found, ignore_index=True))


def _study(name: str) -> tuple[list[str], list[_Recorded]]:
    """Return a recorded study: its layers, or what was measured of its stacks."""
    known = archive.checked(name)
    study = section_study(known)
    data = images(study)
    if data.checksum != known["checksum"]:
        raise NotVerifiedError(f"{name}: it rests on {known['data']}, and what is here under this name is another")
    changed = _changed(known, records.provenance(study, data))
    if isinstance(study, Classification):
        return changed, list(_measurements(name, study, data))

    def compute(chosen: Mapping[Layer, Job], folder: str) -> pd.DataFrame:
        found = campaign.run(chosen.values(), folder, data=data, label=name)
        return records.kept(study.section, records.table(study, chosen, found))

    labeled = study.jobs(Images.of(data))
    once: dict[TrainLayer, Layer] = {}  # of own and shared inputs that are the same, one
    for label, job in labeled.items():
        once.setdefault(job, label)
    cheap = sorted(once, key=lambda job: (sum(one.n_hidden for one in (*job.below, job)), job.trainer == "cma-es"))
    return changed, [_Recorded(archive.read(name), {once[job]: job for job in cheap}, compute, ["iteration"])]


def _measurements(name: str, study: Classification, data: Dataset) -> Iterator[_Recorded]:
    """Yield the tables of what was measured of stacks, those of random weights first."""
    index = {"runs": "epoch", "probes": "layer", "likelihoods": "iteration"}
    for table, labeled in study.measurements(Images.of(data)).items():

        def compute(chosen: Mapping[Any, Job], folder: str, table: str = table) -> pd.DataFrame:
            found = campaign.run(chosen.values(), folder, data=data, label=name)
            return records.measured(study, table, chosen, found)

        cheap = dict(sorted(labeled.items(), key=lambda item: len(item[1].needs)))
        yield _Recorded(archive.read(name, table), cheap, compute, [index[table]])


def _functions(name: str) -> tuple[list[str], list[_Recorded]]:
    known = archive.provenance(name)
    study, plan = STUDIES["readings", "paper"], {"sizes": known["sizes"], "budget": known["budget"]}
    labeled = functions.jobs(study, **plan)

    def compute(chosen: Mapping[functions.Search, Job], folder: str) -> pd.DataFrame:
        return functions.table(chosen, campaign.run(chosen.values(), folder, label=name))

    data = images(study)
    runs = functions.follow_jobs(study, data, n_var=plan["sizes"][0], budget=plan["budget"])

    def follow(chosen: Mapping[functions.Followed, Job], folder: str) -> pd.DataFrame:
        return rows(chosen, campaign.run(chosen.values(), folder, data=data, label=name))

    return _changed(known, _here()), [
        _Recorded(archive.read(name), labeled, compute, ["n_var"]),
        _Recorded(archive.read(name, "directions"), runs, follow, ["generations"]),
    ]


def _longer(name: str) -> tuple[list[str], list[_Recorded]]:
    known = archive.provenance(name)
    data = longer_searches.images()
    chosen = {field: known[field] for field in ("problems", "methods", "seeds")}
    labeled = longer_searches.jobs(data, **chosen)

    def compute(chosen: Mapping[longer_searches.Search, Job], folder: str) -> pd.DataFrame:
        found = campaign.run(chosen.values(), folder, data=data, label=name)
        return longer_searches.table(known["problems"], chosen, found)

    return _changed(known, _here()), [_Recorded(archive.read(name), labeled, compute, ["mark"])]


def _agreement(name: str) -> tuple[list[str], list[_Recorded]]:
    """Return the runs whose objective several backends have computed, a table for each study."""
    tables = []
    for study in backend_agreement.STUDIES:
        data = images(study)
        labeled = backend_agreement.jobs(study, data)

        def compute(chosen: Mapping[Any, Job], folder: str, data: Dataset = data) -> pd.DataFrame:
            return backend_agreement.table(chosen, campaign.run(chosen.values(), folder, data=data, label=name))

        recorded = archive.read(name)
        tables.append(_Recorded(recorded[recorded["section"] == study.section], labeled, compute, ["iteration"]))
    return _changed(archive.provenance(name)[0]["numpy float32"], _here()), tables


_READ: dict[str, Callable[[str], tuple[list[str], list[_Recorded]]]] = {
    "readings_functions": _functions,
    "longer_searches": _longer,
    "backend_agreement": _agreement,
}


def _here() -> dict[str, Any]:
    module = records.LAYERS
    return {"versions": versions.packages(module, ("cma", "scikit-learn"))} | versions.machine()


def _changed(known: Mapping[str, Any], here: Mapping[str, Any]) -> list[str]:
    """Return what a rounding depends on and is not as it was, except this package: that is what is verified."""
    facts = []
    for about in (known, here):
        training = about.get("study", {}).get("training", {})
        computation = {name: training[name] for name in ("backend", "device", "precision") if name in training}
        facts.append({"machine": about.get("machine"), **computation, **about["versions"]})
    then, now = facts
    return [
        f"{name} was {then[name] or 'not recorded'} and is {now[name]}"
        for name in sorted(then.keys() & now.keys())
        if then[name] != now[name]
    ]
