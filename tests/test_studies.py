import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
from pandas.testing import assert_frame_equal
from small_studies import TINY

from leamvd.book.reproduction import STUDIED
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.paper import studies, units
from leamvd.paper.records import run
from leamvd.paper.studies import STUDIES


def test_profiles_are_the_papers_numbers_and_a_smaller_scale() -> None:
    for (section, profile), study in STUDIES.items():
        assert study == studies.study(section, profile)
        if section in ("classification", "readings"):
            continue
        assert study.dataset == ("digits" if profile == "quick" else "mnist")
        assert study.inputs == (("own",) if profile == "variants" else ("own", "shared"))
        if profile == "paper":
            assert study.n_images == {"error-measures": 2_000}.get(section)
            assert len(study.seeds) == {"mnist-7x7": 30, "mnist-28x28": 12, "error-measures": 1}[section]
            assert study.reading == Reading(n_gen=50)
            assert (study.reading.population_size, study.training.n_elite, study.training.sigma0) == (24, 4, 0.1)
        sizes = (study.side**2, *study.layers)
        small = section == "mnist-7x7" or (section, profile) == ("error-measures", "quick")
        assert sizes == ((49, 30, 30, 120) if small else (784, 500, 500, 2000))


def test_sections_with_studies_are_known_without_importing_them() -> None:
    assert set(STUDIED) == {section for section, _ in STUDIES}


def test_stacks_that_are_measured_are_those_of_the_experiments() -> None:
    for profile, section, seeds in (("paper", "mnist-7x7", 30), ("paper-28x28", "mnist-28x28", 12)):
        measured, base = STUDIES["classification", profile], STUDIES[section, "paper"]
        assert isinstance(measured, studies.Classification)
        given = {"section": section, "methods": base.methods, "inputs": base.inputs, "seeds": base.seeds}
        assert dataclasses.replace(measured.stacks, **given) == base
        assert measured.seeds == tuple(range(seeds))
        assert len(measured.measurements()) == 3 * 5 * seeds


def test_changes_go_to_the_study_its_training_or_its_reading() -> None:
    changes = {"layers": [4], "seeds": [1, 2], "n_gen": 7, "exponent": 2.0, "dtype": "float32", "n_images": None}
    changed = studies.study("mnist-7x7", "quick", **changes)
    base = STUDIES["mnist-7x7", "quick"]
    training = dataclasses.replace(base.training, dtype="float32")
    reading = dataclasses.replace(base.reading, n_gen=7, exponent=2.0)
    assert changed == dataclasses.replace(base, layers=(4,), seeds=(1, 2), training=training, reading=reading)
    assert studies.study("mnist-7x7", "quick", layers=None) == base
    given = studies.study("mnist-7x7", "quick", reading=Reading(ties="newest"), training=Training(n_elite=2), n_gen=7)
    assert given.reading == Reading(ties="newest", n_gen=7)
    assert given.training == Training(n_elite=2)
    fields = [field.name for part in (studies.Classification, Training, Reading) for field in dataclasses.fields(part)]
    assert len(set(fields)) == len(fields), "a change must have one place to go to"


def test_parameters_of_a_notebook() -> None:
    namespace = {
        "profile": "quick", "section": "mnist-7x7", "output": "results", "n_gen": 7, "seeds": [1], "dtype": "float32",
        "exponent": None, "np": np, "reading": Reading(), "x0_in_population": False,
    }  # fmt: skip
    found = studies.parameters(namespace)
    assert found == {"n_gen": 7, "seeds": [1], "dtype": "float32", "x0_in_population": False}
    changed = studies.study("mnist-7x7", "quick", **found)
    assert (changed.reading.n_gen, changed.reading.x0_in_population, changed.seeds) == (7, False, (1,))


def test_a_reading_of_its_own_wins_over_the_studys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text('{"population_size": 20, "n_gen": 30, "x0_in_population": true}')
    own = Reading(n_gen=4, exponent=2.0, ties="newest", x0_in_population=False, elites="reevaluate")
    study = dataclasses.replace(TINY, methods=("cd", "lea-mvd"), reading=own)
    for method in ("cd", "lea-mvd", "cma-es", "lea-mvd:default"):
        assert study.reading_of(method) == own
    assert study.reading_of("lea-mvd:x0-excluded") == own
    printed = dataclasses.replace(Reading.printed(), n_gen=4, exponent=2.0, ties="newest")
    assert study.reading_of("lea-mvd:printed") == printed
    mine = dataclasses.replace(own, population_size=20, n_gen=30, x0_in_population=True)
    assert study.reading_of("lea-mvd:mine.json") == mine
    assert study.reading_of("random:mine.json") == mine


def test_settings_behind_a_colon_are_the_methods_own() -> None:
    own = Reading(n_gen=4, exponent=2.0, ties="newest")
    methods = (
        "cd", "cd:momentum=0+persistent=true+n_gen=9", "cma-es:sigma0=0.03", "random:x0=batch",
        "lea-mvd:sigma0=1+reset=off+x0_in_population=false", "lea-mvd:reset=2+initial_weights=uniform+n_elite=3",
    )  # fmt: skip
    study = dataclasses.replace(TINY, methods=methods, reading=own, training=Training(n_elite=2, learning_rate=0.2))
    _, cd, cma, random, free, late = methods
    given = study.training
    assert [study.training_of(method) for method in ("cd", "lea-mvd", "lea-mvd:printed")] == [given] * 3
    assert study.training_of(cd) == dataclasses.replace(given, momentum=0.0, persistent=True)
    assert study.reading_of(cd) == dataclasses.replace(own, n_gen=9)
    assert (study.training_of(cma), study.reading_of(cma)) == (dataclasses.replace(given, sigma0=0.03), own)
    assert study.training_of(random) == dataclasses.replace(given, x0="batch")
    assert study.training_of(free) == dataclasses.replace(given, sigma0=1.0)
    assert repr(study.training_of(free).sigma0) == "1.0", "one way to write it, in addresses too"
    assert study.reading_of(free) == dataclasses.replace(own, reset="off", x0_in_population=False)
    assert study.training_of(late) == dataclasses.replace(given, initial_weights="uniform", n_elite=3)
    assert study.reading_of(late) == dataclasses.replace(own, reset=2.0)


def test_a_method_with_its_own_settings_runs_them(tmp_path: Path) -> None:
    methods = ("cd", "cd:momentum=0+n_gen=3", "lea-mvd", "lea-mvd:sigma0=0.01", "lea-mvd:momentum=0")
    study = dataclasses.replace(TINY, layers=(3, 2), methods=methods, seeds=(3,))
    table = run(study, tmp_path / "together")
    readings = table.groupby("method")["reading"].first()
    assert readings[["cd", "cd:momentum=0+n_gen=3", "lea-mvd"]].tolist() == ["none", "momentum=0+n_gen=3", "default"]
    for name, changes in (("lea-mvd:sigma0=0.01", {"sigma0": 0.01}), ("cd:momentum=0+n_gen=3", {"momentum": 0.0})):
        method, _, _ = name.partition(":")
        reading = dataclasses.replace(study.reading, n_gen=3 if method == "cd" else study.reading.n_gen)
        training = dataclasses.replace(study.training, **changes)
        alone = dataclasses.replace(study, methods=(method,), inputs=("own",), training=training, reading=reading)
        both = [rows[rows["inputs"] == "own"] for rows in (table, run(alone, tmp_path / "alone"))]
        mine, its = (rows.loc[rows["method"].isin([name, method]), [*units.COLUMNS]] for rows in both)
        mine = mine[table.loc[mine.index, "method"] == name]
        assert_frame_equal(*(x.drop(columns="seconds").reset_index(drop=True) for x in (mine, its)))
    starts = table[(table["layer"] == 1) & (table["iteration"] == 0)].groupby("method")["mean_field"].first()
    assert starts["lea-mvd"] == starts["lea-mvd:sigma0=0.01"] != starts["lea-mvd:momentum=0"], "of the start solution"
    shared = table[(table["inputs"] == "shared") & (table["layer"] == 2)].groupby("method")["input_std"].first()
    assert len(set(shared.drop("cd:momentum=0+n_gen=3"))) == 1, "the study's contrastive divergence makes shared inputs"


def test_a_file_that_gives_population_and_generations_is_run_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text(Reading(population_size=20, n_gen=30).to_json())
    methods = tuple(f"{method}:mine.json" for method in ("lea-mvd", "cma-es", "sep-cma-es", "random"))
    study = dataclasses.replace(TINY, layers=(3,), inputs=("own",), seeds=(3,), methods=("cd", "lea-mvd", *methods))
    table = run(study, tmp_path / "results")
    known = json.loads(next(tmp_path.glob("results/study-*.json")).read_text())["methods"]
    for method, rows in table.groupby("method"):
        size, n_gen = (20, 30) if ":" in str(method) else (8, 2)
        assert rows["iteration"].tolist() == list(range(n_gen + 1))
        if method != "cd":
            new = size - 2 if str(method).startswith("lea-mvd") else size  # two elites keep their values
            assert rows["evaluations"].tolist() == [0, *(size + new * i for i in range(n_gen))]
            assert known[method]["population_size"] == size
        assert known[method]["n_gen"] == n_gen


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"layers": []}, "layers must be one or more values, got"),
        ({"layers": [3, 0]}, "layers must be an integer >= 1, got 0"),
        ({"methods": ["cd", "cd"]}, "methods must be one or more values, all different"),
        ({"methods": ["adam"]}, "methods must be one of 'cd'"),
        ({"methods": ["lea-mvd:unheard"]}, "reading must be"),
        ({"methods": ["cd:printed"]}, "'cd' has none"),
        ({"methods": ["cd:sigma0=1"]}, "a setting in methods, 'cd:sigma0=1', must be one of 'cd_steps'"),
        ({"methods": ["random:exponent=1"]}, "a setting in methods, .* must be one of .* got 'exponent'"),
        ({"methods": ["lea-mvd:dtype=float64"]}, "a setting in methods, .* must be one of .* got 'dtype'"),
        ({"methods": ["lea-mvd:reset=never"]}, "reset must be a number, got .never."),
        ({"methods": ["cma-es:sigma0=-1"]}, "sigma0 must be a finite number > 0, got -1"),
        ({"methods": ["cma-es:sigma0=1+sigma0=2"]}, "methods must give a setting once, got sigma0 twice"),
        ({"methods": ["lea-mvd:population_size=4"]}, "n_elite=4 clashes with population_size=4"),
        ({"inputs": ["both"]}, "inputs must be one of"),
        ({"seeds": [-1]}, "seeds must be an integer >= 0"),
        ({"features": "both"}, "features must be one of"),
        ({"n_elite": 24}, "n_elite=24 clashes with population_size=24"),
        ({"population_size": 4, "n_elite": 1}, "n_descent_rows=4 clashes with population_size=4"),
        ({"dataset": "nowhere"}, "nowhere"),
        ({"n_images": 10_000}, "n_train must be at most the 1437 images"),
    ],
)
def test_errors_come_before_any_work(changes: dict[str, object], message: str, tmp_path: Path) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError), match=message):
        run(studies.study("mnist-7x7", "quick", **changes), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_unknown_names() -> None:
    with pytest.raises(ValueError, match="section must be one of"):
        studies.study("mnist-9x9", "quick")
    with pytest.raises(ValueError, match="profile must be one of 'quick', 'paper'"):
        studies.study("mnist-7x7", "slow")
    with pytest.raises(TypeError, match="n_layers"):
        studies.study("mnist-7x7", "quick", n_layers=3)


def test_readings_from_files_have_names_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").mkdir()
    for name in ("mine.json", "a/mine.json", "a-mine.json"):
        Path(name).write_text(Reading(exponent=2.0).to_json())
    methods = ("lea-mvd", "lea-mvd:mine.json", "lea-mvd:a/mine.json", "cma-es:mine.json")
    units = dataclasses.replace(TINY, methods=methods).units()
    names = {unit.name for unit in units}
    assert len(names) == len(units)
    assert "lea-mvd-a-mine-own-layer1-seed3" in names
    assert not any("/" in name or ":" in name for name in names)
    with pytest.raises(ValueError, match="differ in more than the signs"):
        dataclasses.replace(TINY, methods=("lea-mvd:a/mine.json", "lea-mvd:a-mine.json"))
