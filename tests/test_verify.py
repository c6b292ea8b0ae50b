"""Verifying what is recorded: six digits where nothing has changed, first iterations elsewhere."""

import functools
import json
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leamvd_paper import cli
from leamvd_paper.data.mnist import DataError
from leamvd_paper.studies import explanation, origin, results, stacks, verify
from leamvd_paper.studies.results import Recorded, Result, delayed

LABELS = ["layer", "method", "seed"]


def call(layer: int, method: str, seed: int, below: Result | None = None) -> Result:
    rng = np.random.default_rng([layer, seed, *method.encode()])
    ends = 100 + rng.normal(size=6)
    return Result(pd.DataFrame({"iteration": range(6), "error": ends, "seconds": rng.random(6)}))


@functools.cache
def table() -> pd.DataFrame:
    rows = [(n, m, s) for n in (1, 2) for m in ("cd", "lea-mvd") for s in range(20)]
    found = [call(*label).rows.assign(**dict(zip(LABELS, label, strict=True))) for label in rows]
    return pd.concat(found, ignore_index=True).assign(n_var=1549)


def here(layer: int = 2, seed: int = 0, factor: float = 1.0, since: int = 0) -> pd.DataFrame:
    """Return the rows of one call, those from an iteration on multiplied by a factor."""
    own = table().query("layer == @layer and method == 'cd' and seed == @seed")
    return own.assign(
        error=own["error"].where(own["iteration"] < since, factor * own["error"]), seconds=1.0
    )


def judged(own: pd.DataFrame, *, elsewhere: bool, recorded: pd.DataFrame | None = None) -> Any:
    found = verify.compare(
        table() if recorded is None else recorded, own, LABELS, elsewhere=elsewhere
    )
    assert list(found.columns) == verify.COLUMNS
    return found.iloc[0]


def test_six_digits_are_asked_for_where_nothing_has_changed_and_seconds_do_not_count() -> None:
    assert not judged(here(), elsewhere=False)["drifts"]
    assert not judged(here(factor=1 + 5e-7), elsewhere=False)["drifts"]
    drifted = judged(here(factor=1 + 2e-6, since=4), elsewhere=False)
    assert drifted["drifts"]
    assert (drifted["call"], drifted["digits"]) == ("2 cd 0", 5)
    assert drifted["number"].startswith("error, row")
    assert drifted["here"] / drifted["recorded"] == pytest.approx(1 + 2e-6, abs=1e-7)


@pytest.mark.parametrize(
    ("n_var", "factor", "drifts"),
    [
        (1549, 1 + 5e-6, False),
        (1549, 1 + 5e-5, True),
        (400_000, 1 + 5e-4, False),
        (400_000, 1.005, True),
    ],
)
def test_elsewhere_the_first_iterations_of_a_first_layer_have_no_such_room(
    n_var: int, factor: float, drifts: bool
) -> None:
    recorded = table().assign(n_var=n_var)
    for since, expected in ((0, drifts), (1, drifts), (2, False)):
        own = here(layer=1, factor=factor, since=since).assign(n_var=n_var)
        assert judged(own, elsewhere=True, recorded=recorded)["drifts"] == expected


def test_elsewhere_only_first_iterations_are_judged() -> None:
    later = judged(here(layer=1, factor=2.0, since=2), elsewhere=True)
    assert (later["judged by"], later["drifts"]) == ("first iterations", False)
    above = judged(here(layer=2, factor=2.0), elsewhere=True)
    assert (above["judged by"], above["digits"], above["drifts"]) == ("not judged", 0, False)
    assert judged(here(layer=2), elsewhere=True)["judged by"] == "digits"


def test_the_number_that_differs_most_is_told_with_both_values_and_its_digits() -> None:
    """Labels are compared as they are written; where 0 was recorded, what is there counts."""
    labels = ["rate", "method"]
    known = pd.DataFrame(
        {
            "rate": [0.1, 0.1, 0.01, 0.01],
            "method": ["cd", "cd", "cd", "lea-mvd"],
            "error": [5.0, 0.0, 7.0, -4.0],
            "best": [1.0, 2.0, 3.0, 8.0],
            "seconds": [1.0, 2.0, 3.0, 4.0],
        }
    )
    own = known.iloc[[3, 0, 1]].assign(seconds=0.0, more=9.0)
    own["error"] = [-4.0, 5.0, 2e-6]
    own["best"] = [8.4, 1.0, 2.000001]
    found = verify.compare(known, own, labels, elsewhere=False)
    assert found.to_dict("list") == {
        "call": ["0.01 lea-mvd", "0.1 cd"],
        "number": ["best, row 0", "error, row 1"],
        "recorded": [8.0, 0.0],
        "here": [8.4, 2e-6],
        "digits": [1, 5],
        "judged by": ["digits", "digits"],
        "drifts": [True, True],
    }
    same = verify.compare(known, known.iloc[:3], labels, elsewhere=True)
    assert same["digits"].tolist() == [16, 16]
    assert not same["drifts"].any()
    twice = verify.compare(known, known.iloc[3:].assign(best=-90.0), labels, elsewhere=False)
    assert twice["digits"].tolist() == [0], "more than as much as there is"


@pytest.mark.parametrize(("n_var", "drifts"), [(99_999, True), (100_000, False)])
def test_layers_have_room_for_bits_that_flip_from_a_hundred_thousand_variables_on(
    n_var: int, drifts: bool
) -> None:
    own = here(layer=1, factor=1 + 1e-4).assign(n_var=n_var)
    found = judged(own, elsewhere=True, recorded=table().assign(n_var=n_var))
    assert (found["judged by"], found["drifts"]) == ("first iterations", drifts)


def test_what_is_missing_drifts_unless_it_was_missing() -> None:
    assert judged(here().iloc[:-1], elsewhere=True)["drifts"]
    assert not judged(
        here().assign(best=np.nan), elsewhere=False, recorded=table().assign(best=np.nan)
    )["drifts"]


def test_a_sample_is_of_calls_that_need_least_and_of_labels_that_differ_in_more_than_the_seed() -> (
    None
):
    first = {(1, m, s): delayed(call)(1, m, s) for m in ("cd", "lea-mvd") for s in range(3)}
    above = {
        (2, m, s): delayed(call)(2, m, s, below=first[1, m, s])
        for m in ("cd", "lea-mvd")
        for s in range(3)
    }
    calls = {**above, **first}
    assert [*verify.sample(LABELS, calls, 1)] == [(1, "cd", 0)]
    assert len(verify.sample(LABELS, calls | {(3, "cd", 0): first[1, "cd", 0]}, 99)) == len(
        calls
    ), "one call, two labels"
    assert {(n, m) for n, m, _ in verify.sample(LABELS, calls, 4)} == {
        (n, m) for n in (1, 2) for m in ("cd", "lea-mvd")
    }


@pytest.mark.parametrize("altered", [False, True])
def test_a_recorded_number_that_was_altered_is_found(
    altered: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = {"runs": (LABELS, {(1, "cd", seed): delayed(call)(1, "cd", seed) for seed in range(4)})}
    monkeypatch.setattr(results, "ARCHIVE", tmp_path)
    monkeypatch.setattr(verify, "all_recorded", lambda: {"small": Recorded([], lambda: plan)})
    found = results.tables(plan, tmp_path / "calls")["runs"]
    found.loc[2, "error"] += altered
    results.write_recorded("small", {"runs": found}, [], "0123456789ab")
    changed, rows = verify.verify("small", tmp_path / "calls")
    assert changed == []
    assert rows["drifts"].tolist() == [altered]
    with pytest.raises(SystemExit, match=str(int(altered))):
        cli.main(["verify", "small", "--output", str(tmp_path), "--jobs", "1"])
    known = results.provenance("small") | {"processor": "another", "versions": {"numpy": "1.0"}}
    assert [text.partition(" was ")[0] for text in verify.differences(known)] == [
        "the processor",
        "numpy",
    ]


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return what adds a name to those that are recorded, and records it in an empty archive."""
    known: dict[str, Recorded] = {}
    monkeypatch.setattr(results, "ARCHIVE", tmp_path / "archive")
    monkeypatch.setattr(verify, "all_recorded", lambda: known)

    def record(name: str, settings: Any = (), function: Callable[..., Result] = call) -> None:
        plan = {
            "runs": (
                LABELS,
                {(1, "cd", seed): delayed(function)(1, "cd", seed) for seed in range(2)},
            )
        }
        known[name] = Recorded(
            [settings], lambda: plan, keep=lambda rows: rows.query("iteration >= 4")
        )
        if function is call:
            rows = results.tables(plan, tmp_path / "calls")["runs"].query("iteration >= 4")
            results.write_recorded(name, {"runs": rows}, [[]], "0123456789ab")

    return record


def ends(*arguments: str) -> int:
    """Return the exit status of a command."""
    with pytest.raises(SystemExit) as raised:
        cli.main([*arguments, "--jobs", "1"])
    return int(raised.value.code or 0)


def without_data(layer: int, method: str, seed: int) -> Result:
    raise DataError("no images")


def test_verifying_fails_where_settings_are_others_or_nothing_was_compared(
    tmp_path: Path, small: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    place = "--output", str(tmp_path)
    small("as it was")
    small("changed", settings=[3])
    small("without data", function=without_data)
    results.write_recorded("without data", {}, [[]], "0123456789ab")
    assert ends("verify", "as it was", "without data", *place) == 0, "the others were compared"
    assert "1 of 2 compared" in capsys.readouterr().out
    assert ends("verify", "changed", "as it was", *place) == 1
    assert "3" in capsys.readouterr().out.partition("those of the code\n")[2].splitlines()[0]
    assert ends("verify", "without data", *place) == 1
    assert "0 of 1 compared" in capsys.readouterr().out


def test_a_report_has_what_was_recorded_what_computed_and_each_number_whatever_comes_out(
    tmp_path: Path, small: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small("same")
    then = results.provenance("same")["processor"]
    for module in (results, verify):
        monkeypatch.setattr(module, "get_host_cpu_name", lambda: "abacus")
    for name, more in {"drifted": 1.0, "missing": np.nan}.items():
        small(name)
        rows = results.read_recorded(name)
        rows["error"] += more
        results.write_recorded(name, {"runs": rows}, [[]], "0123456789ab")
    small("changed", settings=[3])
    small("without data", function=without_data)
    results.write_recorded("without data", {}, [[]], "0123456789ab")
    names = ["same", "drifted", "missing", "changed", "without data"]
    path = tmp_path / "second_run.json"
    path.write_text("an earlier one", encoding="utf-8")
    assert ends("verify", *names, "--output", str(tmp_path), "--report", str(path)) == 1
    text = path.read_text(encoding="utf-8")
    report = json.loads(text, parse_constant=pytest.fail)  # NaN is no JSON
    assert report["processor"] == "abacus"
    assert report["versions"]["numpy"] == np.__version__
    assert report["python"] == platform.python_version()
    assert [*report["names"]] == names
    for name, own in report["names"].items():
        known = results.provenance(name)
        assert own["recorded"] == {key: known[key] for key in known if key != "sha256"}
    assert report["names"]["same"]["differences"] == [f"the processor was {then} and is abacus"]
    (same,) = report["names"]["same"]["calls"]
    assert {*same} == {*verify.COLUMNS}
    assert (same["recorded"], same["digits"], same["drifts"]) == (same["here"], 16, False)
    (drifted,) = report["names"]["drifted"]["calls"]
    assert drifted["recorded"] == pytest.approx(drifted["here"] + 1, rel=1e-12)
    assert (drifted["digits"], drifted["drifts"]) == (2, True), "1 of about 100"
    (missing,) = report["names"]["missing"]["calls"]
    assert (missing["recorded"], missing["drifts"]) == (None, True)
    assert report["names"]["changed"]["other settings"]
    assert report["names"]["without data"]["not verified"] == "DataError"
    assert str(tmp_path) not in text
    assert platform.node() not in text
    assert [one.name for one in tmp_path.glob("*second_run*")] == [path.name], "no half of one"


def test_a_report_has_all_digits_of_its_numbers(tmp_path: Path) -> None:
    """Ends of long searches are as small as 1e-30, and differ in their last digits."""
    numbers = [1 / 3, 1.2345678901234567e-9, 7.523456789012345e-32, 25_086.123456789012, np.inf]
    rows = pd.DataFrame({"recorded": numbers, "digits": 16, "drifts": [True, False] * 2 + [True]})
    path = tmp_path / "report.json"
    verify.write_report(path, {"mnist_7x7": {"calls": rows}})
    report = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    found = report["names"]["mnist_7x7"]["calls"]
    assert [row["recorded"] for row in found] == [*numbers[:-1], None]
    assert [row["drifts"] for row in found] == rows["drifts"].tolist()


def test_hours_are_those_of_each_run_to_its_end_or_those_that_provenance_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's rows count its seconds from its begin; those of probes go on from layer to layer."""
    monkeypatch.setattr(results, "ARCHIVE", tmp_path)
    usual = dict.fromkeys(verify.RUN, "a")
    runs = [usual | {"seconds": seconds} for seconds in (100.0, 7.0, 300.0)]
    for name in verify.RUN:  # each of another run
        other = "b" if name != "layer" else np.nan  # what is not known is also one
        runs.append(usual | {name: other, "seconds": 1_000.0})
    runs = [row | {"iteration": at} for at, row in enumerate(runs)]
    layers = [{"layer": n, "method": "cd", "seed": 0, "seconds": 100.0 * n} for n in (1, 2, 3)]
    seeds = [{"layer": 3, "method": "cd", "seed": 1, "seconds": 40.0}]
    tables = {
        "runs": pd.DataFrame(runs),
        "probes": pd.DataFrame(layers + seeds),
        "pictures": pd.DataFrame({"layer": [1]}),
    }
    results.write_recorded("probes", tables, [[]], "0123456789ab")
    several = 300 + 1_000 * len(verify.RUN) + 340
    assert verify.processor_hours("probes") == pytest.approx(several / 3600)
    layers_alone = {"layers": pd.DataFrame(layers)}
    for settings, seconds in (({"sizes": [2]}, 600), ({"seconds": 7_200}, 7_200)):
        results.write_recorded("others", layers_alone, settings, "0123456789ab")
        assert verify.processor_hours("others") == pytest.approx(seconds / 3600)
    results.write_recorded("none", {"pictures": tables["pictures"]}, {}, "0123456789ab")
    assert verify.processor_hours("none") == 0


def test_one_number_that_drifts_is_enough(tmp_path: Path, small: Callable[..., None]) -> None:
    small("one")
    rows = results.read_recorded("one")
    rows.loc[rows["seed"] == 1, "error"] += 1
    results.write_recorded("one", {"runs": rows}, [[]], "0123456789ab")
    place = "--output", str(tmp_path)
    assert ends("verify", "one", *place) == 0, "the first call is as it was"
    assert ends("verify", "one", "--calls", "2", *place) == 1


def test_what_is_recorded_anew_are_the_rows_that_ship(
    tmp_path: Path, small: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    small("one")
    before = results.provenance("one")
    (results.ARCHIVE / "one" / "provenance.json").unlink()
    monkeypatch.setattr(results, "committed", lambda: "fedcba987654")
    assert ends("record", "one", "--output", str(tmp_path)) == 0
    found = results.read_recorded("one")
    assert found["iteration"].tolist() == [4, 5] * 2
    assert found["error"].tolist() == [
        value for seed in range(2) for value in call(1, "cd", seed).rows["error"][4:]
    ]
    assert results.provenance("one") == before | {"commit": "fedcba987654"}


@pytest.mark.parametrize(
    ("processor", "changed"),
    [
        ("zen", []),
        ("unknown", ["the processor was unknown and is zen"]),
        ("unknown, zen", ["the processor was unknown, zen and is zen"]),
    ],
)
def test_a_processor_is_the_same_where_it_computed_everything(
    processor: str, changed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify, "get_host_cpu_name", lambda: "zen")
    assert verify.differences({"processor": processor, "versions": None}) == changed


@pytest.mark.parametrize("name", [*results.PACKAGES, results.TORCH])
def test_another_version_than_the_one_that_is_recorded_is_named(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ARCHIVE", tmp_path)
    monkeypatch.setattr(results, "code", lambda: "")
    monkeypatch.setattr(results, "version", lambda package: "1")
    results.write_recorded("one", {}, [], "0123456789ab")
    known = results.provenance("one")
    assert verify.differences(known) == []
    monkeypatch.setattr(results, "version", lambda package: "2" if package == name else "1")
    assert verify.differences(known) == [f"{name} was 1 and is 2"]


def test_every_recorded_folder_but_three_is_computed_by_a_section() -> None:
    names = {path.name for path in results.ARCHIVE.iterdir() if path.is_dir()}
    assert names == {*verify.all_recorded(), "linear_cost", "second_program", "verdicts"}
    with pytest.raises(ValueError, match="got 'linear_cost'"):
        verify.recorded("linear_cost")


@pytest.mark.parametrize(
    "name",
    [
        "architectures",
        "carries",
        "explanation_28x28",
        "last_step_minima",
        "origin",
        "preset_again",
        "scaling",
    ],
)
def test_calls_have_the_arguments_that_their_labels_name(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origin, "SEEDS", (3,))
    compared = set()
    for columns, calls in verify.recorded(name).plan().values():
        for label, call in calls.items():
            for column, value in zip(columns, label, strict=True):
                if column in call.arguments:
                    compared.add(column)
                    assert str(call.arguments[column]) == str(value), (column, label)
    assert compared > {"seed"}


@pytest.fixture
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take MNIST and torch away."""
    monkeypatch.setenv("LEAMVD_DATA_DIR", "nowhere")
    monkeypatch.setitem(sys.modules, "torch", None)


@pytest.mark.usefixtures("_bare")
def test_the_code_has_the_settings_of_all_that_is_recorded() -> None:
    assert {
        name: found for name in verify.all_recorded() if (found := verify.changed_settings(name))
    } == {}


@pytest.mark.usefixtures("_bare")
@pytest.mark.parametrize(
    ("section", "name", "change", "told"),
    [
        (
            stacks,
            "mnist_7x7",
            {"learning_rate": 0.5},
            "methods.cd.training.learning_rate was 0.1 and is 0.5",
        ),
        (stacks, "mnist_7x7", {"n_gen": 13}, "methods.cd.reading.n_gen was 50 and is 13"),
        (stacks, "mnist_7x7", {"layers": (31, 31, 99)}, "layers[0] was 30 and is 31"),
        (stacks, "mnist_7x7", {"exponent": 2}, "methods.lea-mvd.reading.exponent was 1.5 and is 2"),
        (
            stacks,
            "mnist_28x28_controls",
            {"methods": ("cd:n_gen=1",)},
            "methods.lea-mvd:printed was ",
        ),
        (
            explanation,
            "explanation",
            {"n_images": 7_000},
            "[0].images.n_images was 10000 and is 7000",
        ),
        (
            explanation,
            "predictions",
            {"seeds": range(6)},
            "[0].seeds was [0, 1, 2, 3, 4] and is [0, 1, 2, 3, 4, 5]",
        ),
    ],
)
def test_a_changed_setting_is_named(
    section: Any, name: str, change: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = section.RECORDED[name]
    several = isinstance(own.settings, list | tuple)
    settings = (own.settings[0].changed(**change),) if several else own.settings.changed(**change)
    monkeypatch.setitem(section.RECORDED, name, own._replace(settings=settings))
    assert any(one.startswith(told) for one in verify.changed_settings(name))


def test_a_new_field_with_its_default_and_what_is_not_known_are_no_changes() -> None:
    usual = {"new": 1.0, "newer": (2, 3)}
    then = {"n": 3, "unknown": None, "list": [1, {"a": 1}]}
    now = {"n": 3, "unknown": 5, "list": [1, {"a": 1, "new": 1}], "newer": [2, 3]}
    assert list(results.changes(then, now, usual)) == []
    later = now | {"n": 4, "list": [1, {"a": 1, "new": 2}], "added": 0}
    assert [one.split(" ")[0] for one in results.changes(then, later, usual)] == [
        "n",
        "list[1].new",
        "added",
    ]


@pytest.mark.skipif(
    not os.environ.get("LEAMVD_DATA_DIR"), reason="needs MNIST: set LEAMVD_DATA_DIR"
)
@pytest.mark.parametrize("name", ["mnist_7x7", "readings_functions", "longer_searches"])
def test_the_smallest_recorded_calls_come_out_again(name: str, tmp_path: Path) -> None:
    _, found = verify.verify(name, tmp_path)
    assert not found["drifts"].any(), found
