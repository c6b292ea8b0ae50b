"""The store: what is computed is computed once, whatever is killed, damaged or run beside."""

import contextlib
import dataclasses
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_studies import SMALL, same

from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.paper import campaign, records, versions
from leamvd.paper.campaign import Campaign
from leamvd.paper.pieces import Unit
from leamvd.paper.records import addresses, run, stack
from leamvd.paper.store import MANIFEST, RECORDS, WEIGHTS, DamageError, Store, address
from leamvd.paper.studies import Study, images

# The study in a process of its own; {hook} may make it kill itself.
PROGRAM = """
import dataclasses, os, pathlib, signal, sys, time
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd.paper import campaign, records, versions
from leamvd.paper.campaign import Campaign
from leamvd.paper.studies import Study
settings = {{"training": Training(n_elite=2, dtype="float64"), "reading": Reading(n_gen={n_gen}, population_size=8)}}
study = Study(n_images={n_images}, layers=(6, 5), methods=("cd", "lea-mvd"), seeds=(3,), **settings)
{hook}
print("started", flush=True)
records.run(study, sys.argv[1])
"""
# Half of what is written at this step is there, or all of it but the last step.
KILL = """
write_bytes, rename, steps = pathlib.Path.write_bytes, pathlib.Path.rename, iter(range(1000))
def write_half(self, content):
    if next(steps) == {at}:
        write_bytes(self, content[:len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
    return write_bytes(self, content)
def rename_or_not(self, target):
    if next(steps) == {at}:
        os.kill(os.getpid(), signal.SIGKILL)
    return rename(self, target)
pathlib.Path.write_bytes, pathlib.Path.rename = write_half, rename_or_not
"""
STEPS = 4  # of storing a unit: three files and the folder's name
TELL = """
from leamvd.paper import workers
advance = workers.advance
def told(task, *arguments, **options):
    with open(sys.argv[1] + ".computed", "a") as file:
        file.write(f"{os.getpid()} {task.method} {task.layer} {len(arguments[1])}\\n")
    time.sleep(0.3)
    return advance(task, *arguments, **options)
workers.advance = told
sys.stdin.readline()
"""


def program(folder: Path, n_gen: int = 2, n_images: int = 40, hook: str = "") -> list[str]:
    text = PROGRAM.format(n_gen=n_gen, n_images=n_images, hook=hook)
    return [sys.executable, "-c", text, str(folder)]


def stored(output: Path) -> dict[str, int]:
    """Return when each stored file was written."""
    store = output / "store"
    return {str(path.relative_to(store)): path.stat().st_mtime_ns for path in store.glob("[!.]*-layer*/*")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pd.DataFrame]:
    output = tmp_path_factory.mktemp("whole")
    return output, run(SMALL, output)


@pytest.fixture
def output(whole: tuple[Path, pd.DataFrame], tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole[0], tmp_path / "copy"))


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the units that are computed from now on."""
    names: list[str] = []
    begin = Campaign._begin

    def told(self: Campaign, unit: Unit, *arguments: Any) -> Any:
        before = len(self._running)
        begun = begin(self, unit, *arguments)
        names.extend([unit.name] * (len(self._running) > before))
        return begun

    monkeypatch.setattr(Campaign, "_begin", told)
    return names


def folder_of(output: Path, unit: Unit) -> Path:
    return output / "store" / addresses(SMALL, images(SMALL))[unit].name


CD, UPPER = Unit("cd", "own", 1, 3), Unit("lea-mvd", "shared", 2, 3)


# ---- what is there is used


def test_complete_units_are_read_and_not_computed(
    output: Path, whole: tuple[Path, pd.DataFrame], computed: list[str]
) -> None:
    pd.testing.assert_frame_equal(run(SMALL, output), whole[1], check_exact=True)
    assert computed == []
    shutil.rmtree(folder_of(output, UPPER))
    same(run(SMALL, output), whole[1])
    assert computed == [UPPER.name]


def test_what_is_stored_can_be_read_where_nothing_can_be_written(
    output: Path, whole: tuple[Path, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(output / "store" / "locks")

    def refused(*_: Any, **__: Any) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("write_bytes", "write_text", "rename", "touch"):
        monkeypatch.setattr(Path, name, refused)
    monkeypatch.setattr(tempfile, "mkdtemp", refused)
    monkeypatch.setattr(campaign.Store, "lock", refused)
    pd.testing.assert_frame_equal(run(SMALL, output), whole[1], check_exact=True)
    assert len(stack(SMALL, output, "cd", 3, 2)) == 2


@pytest.mark.parametrize(
    ("changes", "new"),
    [
        ({"seeds": (5, 3)}, {"seed5"}),
        ({"methods": ("lea-mvd", "random", "cd")}, {"random"}),
        ({"methods": ("lea-mvd", "lea-mvd:x0-excluded")}, {"x0-excluded"}),
        ({"methods": ("lea-mvd:default",)}, set()),
        ({"layers": (6,)}, set()),
        ({"layers": (6, 5, 4)}, {"layer3"}),
        ({"inputs": ("own",)}, set()),
        ({"section": "mnist-28x28"}, set()),
    ],
    ids=str,
)
def test_another_study_computes_what_it_adds(
    output: Path, computed: list[str], tmp_path: Path, changes: dict[str, Any], new: set[str]
) -> None:
    before = stored(output)
    study = dataclasses.replace(SMALL, **changes)
    table = run(study, output)
    assert computed == [unit.name for unit in study.units() if any(word in unit.name for word in new)]
    assert before.items() <= stored(output).items(), "nothing is deleted or written anew"
    assert set(table["section"]) == {study.section}
    assert set(table["method"]) == set(study.methods)
    same(table, run(study, tmp_path / "alone"))


def test_a_store_that_all_outputs_share(
    whole: tuple[Path, pd.DataFrame], computed: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(records.STORE, str(whole[0] / "store"))
    pd.testing.assert_frame_equal(run(SMALL, tmp_path / "other"), whole[1], check_exact=True)
    assert computed == []
    assert [path.name.split("-")[0] for path in (tmp_path / "other").iterdir()] == ["study"]
    assert len(stack(SMALL, tmp_path / "other", "lea-mvd", 3, 2)) == 2


# ---- what a unit depends on

UNITS = SMALL.units()
ABOVE, LEA = {unit for unit in UNITS if unit.layer == 2}, {unit for unit in UNITS if unit.method == "lea-mvd"}
DEPENDS: list[tuple[dict[str, Any], set[Unit]]] = [
    ({"n_elite": 3}, LEA),
    ({"sigma0": 0.2}, LEA),
    ({"x0": "batch"}, LEA),
    ({"x0_epochs": 2}, LEA),
    ({"x0": "none", "x0_limit": 0.2}, LEA),
    ({"dtype": "float32"}, set(UNITS)),
    ({"cd_steps": 2}, set(UNITS)),
    ({"persistent": True}, set(UNITS)),
    ({"batch_size": 50}, set(UNITS)),
    ({"learning_rate": 0.2}, set(UNITS)),
    ({"momentum": 0.6}, set(UNITS)),
    ({"final_momentum": 0.8}, set(UNITS)),
    ({"momentum_epochs": 1}, set(UNITS)),
    ({"weight_decay": 0.0}, set(UNITS)),
    ({"initial_weights": "uniform"}, set(UNITS)),
    ({"weight_scale": 0.2}, set(UNITS)),
    ({"exponent": 2.0}, LEA),
    ({"population_size": 9}, LEA),
    ({"n_gen": 3}, set(UNITS)),
    ({"features": "bits"}, ABOVE),
    ({"layers": (6, 4)}, ABOVE),
    ({"layers": (7, 5)}, set(UNITS)),
    ({"n_images": 41}, set(UNITS)),
    ({"side": 6}, set(UNITS)),
    ({"pooling": "center"}, set(UNITS)),
    ({"binarize": "threshold"}, set(UNITS)),
    ({"section": "mnist-28x28"}, set()),
]


def changed(changes: dict[str, Any]) -> Study:
    parts = {"training": SMALL.training, "reading": SMALL.reading}
    new: dict[str, Any] = {}
    for name, value in changes.items():
        owner = next((part for part in parts if hasattr(parts[part], name)), None)
        if owner:
            parts[owner] = dataclasses.replace(parts[owner], **{name: value})
        else:
            new[name] = value
    return dataclasses.replace(SMALL, **parts, **new)


@pytest.mark.parametrize(
    ("changes", "units"), DEPENDS, ids=lambda value: None if isinstance(value, set) else str(value)
)
def test_a_change_moves_what_depends_on_it(changes: dict[str, Any], units: set[Unit]) -> None:
    study = changed({"x0": "none"} if "x0_limit" in changes else {})
    before, after = addresses(study, images(study)), addresses(changed(changes), images(changed(changes)))
    moved = {unit for unit in UNITS if before[unit].name != after[unit].name}
    below = {unit for unit in UNITS if set(unit.below) & moved}
    assert moved == units
    assert below <= moved, "a layer is computed anew with those below it"


def test_every_setting_is_tried() -> None:
    # backend, device and precision: see test_torch_backend.py
    names = {field.name for field in dataclasses.fields(Training)} - {"backend", "device", "precision"}
    assert names <= {name for changes, _ in DEPENDS for name in changes}


def test_data_code_and_versions_matter_and_a_folders_name_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    data = images(SMALL)
    names = [addresses(SMALL, data), addresses(SMALL, data._replace(checksum="0" * 64))]
    monkeypatch.setattr(versions, "code", lambda: "other")
    names.append(addresses(SMALL, data))
    monkeypatch.setattr(versions, "version", lambda package: "0")
    names.append(addresses(SMALL, data))
    assert all(len({found[unit].name for found in names}) == len(names) for unit in UNITS)
    renamed = data._replace(name="copy", description=data.description.replace(data.name, "copy"))
    assert renamed.description != data.description
    assert addresses(SMALL, renamed) == names[-1]


def test_a_readings_content_matters_and_not_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = []
    for name, exponent in (("mine", 1.5), ("mine", 2.0), ("yours", 2.0)):
        Path(f"{name}.json").write_text(Reading(exponent=exponent, population_size=8).to_json())
        study = dataclasses.replace(SMALL, methods=(f"lea-mvd:{name}.json",), inputs=("own",), layers=(6,))
        found += [at.name for at in addresses(study, images(study)).values()]
    assert found[0] != found[1] == found[2]


def test_no_study_sees_the_address_of_another_unit() -> None:
    study = dataclasses.replace(SMALL, layers=(5, 5, 5), methods=("cd", "lea-mvd", "lea-mvd:printed"), seeds=(3, 4))
    found = addresses(study, images(study))
    assert len({at.name for at in found.values()}) == len(found)


# ---- damage


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def alter_a_number(path: Path) -> None:
    text = path.read_text()
    digit = text.rindex("1")
    path.write_text(f"{text[:digit]}2{text[digit + 1 :]}")


def swap(name: str) -> Callable[[Path, Path], None]:
    def swapped(a: Path, b: Path) -> None:
        (a / name).rename(a / "aside")
        (b / name).rename(a / name)
        (a / "aside").rename(b / name)

    return swapped


def swap_folders(a: Path, b: Path) -> None:
    a.rename(a.with_name("aside"))
    b.rename(a)
    a.with_name("aside").rename(b)


def copy_manifest(a: Path, b: Path) -> None:
    shutil.copy(a / MANIFEST, b / MANIFEST)


def edit_manifest(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path, Path], None]:
    def edited(a: Path, b: Path) -> None:
        manifest = json.loads((b / MANIFEST).read_text())
        edit(manifest)
        (b / MANIFEST).write_text(json.dumps(manifest))

    return edited


def replace_folder(a: Path, b: Path) -> None:
    shutil.rmtree(b)
    b.touch()


DAMAGES: dict[str, tuple[Callable[[Path, Path], object], int]] = {
    "records cut": (lambda a, b: cut(b / RECORDS), 1),
    "weights cut": (lambda a, b: cut(b / WEIGHTS), 1),
    "a number altered": (lambda a, b: alter_a_number(b / RECORDS), 1),
    "records of two units swapped": (swap(RECORDS), 2),
    "weights of two units swapped": (swap(WEIGHTS), 2),
    "two units swapped": (swap_folders, 2),
    "records empty": (lambda a, b: (b / RECORDS).write_bytes(b""), 1),
    "weights empty": (lambda a, b: (b / WEIGHTS).write_bytes(b""), 1),
    "records missing": (lambda a, b: (b / RECORDS).unlink(), 1),
    "weights missing": (lambda a, b: (b / WEIGHTS).unlink(), 1),
    "manifest missing": (lambda a, b: (b / MANIFEST).unlink(), 1),
    "manifest empty": (lambda a, b: (b / MANIFEST).write_bytes(b""), 1),
    "manifest cut": (lambda a, b: cut(b / MANIFEST), 1),
    "manifest of another unit": (copy_manifest, 1),
    "manifest is a list": (lambda a, b: (b / MANIFEST).write_text("[]"), 1),
    "manifest not in UTF-8": (lambda a, b: (b / MANIFEST).write_bytes(b"\xff"), 1),
    "manifest without a checksum": (edit_manifest(lambda m: m["sha256"].pop(RECORDS)), 1),
    "manifest with other settings": (edit_manifest(lambda m: m["depends_on"].update(seed=4)), 1),
    "a file in the folder's place": (replace_folder, 1),
    "an empty folder": (lambda a, b: [path.unlink() for path in b.iterdir()], 1),
}


@pytest.mark.parametrize(("damage", "units"), DAMAGES.values(), ids=DAMAGES)
def test_what_is_damaged_is_named_set_aside_and_computed_again(
    damage: Callable[[Path, Path], object],
    units: int,
    output: Path,
    whole: tuple[Path, pd.DataFrame],
    computed: list[str],
    capfd: pytest.CaptureFixture[str],
) -> None:
    names = [CD, UPPER][-units:]
    folders = [folder_of(output, unit) for unit in (CD, UPPER)]
    damage(*folders)
    damaged = [folder.name for folder in folders][-units:]
    before = {name: at for name, at in stored(output).items() if Path(name).parent.name not in damaged}
    same(run(SMALL, output), whole[1])
    assert computed == [unit.name for unit in names]
    assert before.items() <= stored(output).items(), "only the damaged units are computed again"
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(": ")[:2] for line in lines] == [["warning", name] for name in damaged]
    assert all(line.endswith("computed again") for line in lines)
    assert sorted(path.name for path in (output / "store" / "damaged").glob("*/*")) == sorted(damaged)
    same(run(SMALL, output), whole[1])
    assert (len(computed), capfd.readouterr().err) == (units, ""), "what was computed again is whole"


def test_damage_beneath_a_reader_is_an_error_that_names_it(output: Path) -> None:
    cut(folder_of(output, CD) / WEIGHTS)
    with pytest.raises(DamageError, match=rf"cd-layer1-seed3-\w{{16}}: {WEIGHTS} is not what was stored"):
        stack(SMALL, output, "cd", 3, 1)


def test_weights_that_would_run_code_are_refused(output: Path) -> None:
    at = addresses(SMALL, images(SMALL))[CD]
    np.savez(folder_of(output, CD) / WEIGHTS, W=np.array([print], dtype=object), b=np.zeros(1), c=np.zeros(1))
    store = Store(output / "store")
    files = {name: (folder_of(output, CD) / name).read_bytes() for name in (RECORDS, WEIGHTS)}
    store.set_aside(at)
    store.write(at, files)  # with a manifest that fits
    with pytest.raises(ValueError, match="allow_pickle=False"):
        stack(SMALL, output, "cd", 3, 1)


# ---- processes that are killed, or run beside each other


def test_killed_at_each_step_a_study_completes_to_the_same_records(
    whole: tuple[Path, pd.DataFrame], tmp_path: Path
) -> None:
    kills = 0
    while True:
        done = stored(tmp_path)
        # one unit is stored, and the next is killed at another step each time
        command = program(tmp_path, hook=KILL.format(at=STEPS + kills % STEPS))
        process = subprocess.run(command, capture_output=True, check=False)
        assert done.items() <= stored(tmp_path).items(), "a complete unit was computed again"
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL, process.stderr
        kills += 1
        assert kills <= len(UNITS)
    assert kills == len(UNITS) - 1
    same(run(SMALL, tmp_path), whole[1])
    assert list((tmp_path / "store").glob(".*")) == [], "what a killed process left is removed"


def test_killed_at_random_a_study_completes_to_the_same_records(tmp_path: Path) -> None:
    study = dataclasses.replace(SMALL, n_images=1000, reading=dataclasses.replace(SMALL.reading, n_gen=60))
    start = time.perf_counter()
    whole = run(study, tmp_path / "never killed")
    seconds = time.perf_counter() - start
    for wait in np.random.default_rng(os.getpid()).uniform(0, seconds / 2, 3):
        command = program(tmp_path / "killed", n_gen=60, n_images=1000)
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            assert process.stdout
            process.stdout.readline()
            time.sleep(wait)
            process.send_signal(signal.SIGKILL)
    same(run(study, tmp_path / "killed"), whole)


def test_two_processes_compute_every_unit_once(whole: tuple[Path, pd.DataFrame], tmp_path: Path) -> None:
    command = program(tmp_path / "shared", hook=TELL)
    both = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for process in both:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in both:
        process.communicate(timeout=120)
        assert process.returncode == 0
    lines = [line.split() for line in (tmp_path / "shared.computed").read_text().splitlines()]
    assert sorted(unit for _, *unit in lines) == sorted(
        [unit.trainer, str(unit.layer), str(len(unit.below))] for unit in UNITS
    )
    assert {int(pid) for pid, *_ in lines} == {process.pid for process in both}, "both have their share"
    same(run(SMALL, tmp_path / "shared"), whole[1])


def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    held = (
        "import sys; from leamvd.paper.store import Store, address\n"
        "with Store(sys.argv[1]).lock(address('unit', {})) as ours: print(ours, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", held, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "True\n"
        with Store(tmp_path).lock(address("unit", {})) as ours:
            assert not ours
        with Store(tmp_path).lock(address("other", {})) as ours:
            assert ours
        process.kill()
    with Store(tmp_path).lock(address("unit", {})) as ours:
        assert ours


def test_who_waits_says_for_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with contextlib.ExitStack() as others:
        for at in addresses(SMALL, images(SMALL)).values():
            others.enter_context(Store(tmp_path / "store").lock(at))
        monkeypatch.setattr(campaign.time, "sleep", lambda seconds: others.close())
        run(SMALL, tmp_path, progress=True)
    assert f"waiting for {CD.name}: it is computed elsewhere" in capsys.readouterr().err


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "known.json").write_text("before")
    monkeypatch.setattr(Path, "write_bytes", full := lambda *_, **__: (_ for _ in ()).throw(OSError(28, "No space")))
    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        Store(tmp_path).write(address("unit", {}), {RECORDS: b"1", WEIGHTS: b"2"})
    with pytest.raises(OSError, match="No space"):
        records.write(tmp_path / "known.json", "after")
    assert [path.name for path in tmp_path.iterdir()] == ["known.json"]
    assert (tmp_path / "known.json").read_text() == "before"
