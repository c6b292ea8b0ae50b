"""The store: whole or nothing, and what is damaged is named."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from counting_jobs import ALONE, ONE, TWO
from test_campaign import WHOLE, alter, cut, file_in_its_place, link_to_nothing, remove

from leamvd.campaign import archive, tables, versions
from leamvd.campaign.jobs import key, packed, unpacked
from leamvd.campaign.run import run
from leamvd.campaign.store import ARRAYS, CHECKPOINTS, DAMAGED, MANIFEST, ROWS, DamageError, Store

HALF = WHOLE[ALONE]._replace(iteration=3, done=False)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    for job in (ONE, TWO):
        store.write(job, WHOLE[job])
    return store


def place(store: Store, job: Any = ONE) -> Path:
    return store.folder / key(job)


def test_what_is_stored_is_read(store: Store) -> None:
    assert ONE in store
    assert ALONE not in store
    assert store.read(ONE) == WHOLE[ONE]
    assert store.checkpoint(ALONE) == (None, [])
    store.write(ALONE, HALF)
    assert store.checkpoint(ALONE) == (HALF, [])
    assert ALONE not in store, "a checkpoint is no result"
    store.write(ALONE, HALF._replace(iteration=10))
    assert [path.name for path in (store.folder / CHECKPOINTS).iterdir()] == [f"{key(ALONE)}-iteration10"]
    store.write(ALONE, WHOLE[ALONE])
    assert store.read(ALONE) == WHOLE[ALONE]
    assert list((store.folder / CHECKPOINTS).iterdir()) == []


def edited(edit: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    def damage(place: Path) -> None:
        manifest = json.loads((place / MANIFEST).read_text())
        edit(manifest)
        (place / MANIFEST).write_text(json.dumps(manifest))

    return damage


def written(content: bytes) -> Callable[[Path], object]:
    return lambda place: (place / MANIFEST).write_bytes(content)


def swapped(place: Path) -> None:
    other = place.with_name(key(TWO))
    aside = place.with_name("aside")
    other.rename(aside), place.rename(other), aside.rename(place)


DAMAGES: dict[str, tuple[Callable[[Path], object], str]] = {
    **{f"{name} cut": (lambda place, name=name: cut(place, name), rf"{name} is not what was stored")
       for name in (ROWS, ARRAYS)},
    **{f"{name} altered": (lambda place, name=name: alter(place, name), rf"{name} is not what was stored")
       for name in (ROWS, ARRAYS)},
    **{f"{name} missing": (lambda place, name=name: remove(place, name), rf"{name} is missing")
       for name in (ROWS, ARRAYS, MANIFEST)},
    "manifest cut": (lambda place: cut(place, MANIFEST), f"{MANIFEST} is cut or altered"),
    "manifest is a list": (written(b"[]"), f"{MANIFEST} is cut or altered"),
    "manifest too deep": (written(b"[" * 100_000), f"{MANIFEST} is cut or altered"),
    "manifest with a word for checksums": (edited(lambda known: known.update(sha256="no")), "is cut or altered"),
    "manifest without a checksum": (edited(lambda known: known["sha256"].pop(ROWS)), f"{ROWS} is not what was stored"),
    "manifest of another seed": (edited(lambda known: known["depends_on"].update(number=9)), "or another job's"),
    "two results swapped": (swapped, "is altered, or another job's"),
    "a file in its place": (lambda place: file_in_its_place(place, ""), f"{ROWS} is missing"),
    "a link to nothing": (lambda place: link_to_nothing(place, ""), f"{ROWS} is missing"),
}  # fmt: skip


@pytest.mark.parametrize(("damage", "words"), DAMAGES.values(), ids=DAMAGES)
def test_damage_is_named_set_aside_and_computed_again(
    damage: Callable[[Path], object], words: str, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(place(store))
    assert ONE in store, "what is damaged is not free"
    with pytest.raises(DamageError, match=f"^{key(ONE)}: .*{words}"):
        store.read(ONE)
    told = type("Told", (), {"iteration": lambda self, job: None})()
    assert run([ONE], store.folder, data=told, progress=False) == {ONE: WHOLE[ONE]}
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"warning: {key(ONE)}: ")
    assert line.endswith("set aside in the store's folder damaged, and computed again")
    (aside,) = (store.folder / DAMAGED).glob("*/*")
    assert aside.name == key(ONE)
    assert store.read(ONE) == WHOLE[ONE]


def test_a_damaged_checkpoint_is_set_aside_and_an_earlier_one_is_used(store: Store) -> None:
    store.write(ALONE, HALF)
    earlier = store.folder / CHECKPOINTS / f"{key(ALONE)}-iteration3"
    kept = {path.name: path.read_bytes() for path in earlier.iterdir()}
    store.write(ALONE, HALF._replace(iteration=4))
    cut(earlier.with_name(f"{key(ALONE)}-iteration4"), ARRAYS)
    earlier.mkdir()  # as it is after a kill before earlier ones are removed
    for name, content in kept.items():
        (earlier / name).write_bytes(content)
    found, (damage,) = store.checkpoint(ALONE)
    assert found == HALF
    assert str(damage) == f"{key(ALONE)}-iteration4: {ARRAYS} is not what was stored"


def test_arrays_that_would_run_code_are_refused() -> None:
    with pytest.raises(ValueError, match="allow_pickle=False"):
        unpacked(packed({"W": np.array([print], dtype=object)}))


KILLED = """
import os, pathlib, signal, sys
from counting_jobs import *
from leamvd.campaign.store import Store
from test_campaign import WHOLE
for at in range(5):
    if not (child := os.fork()):
        steps = iter(range(9))
        def write(path, content, write=pathlib.Path.write_bytes):
            dies = next(steps) == at
            write(path, content[:len(content) // 2] if dies else content)
            dies and os.kill(os.getpid(), signal.SIGKILL)
        def rename(path, target, rename=pathlib.Path.rename):
            next(steps) == at and os.kill(os.getpid(), signal.SIGKILL)
            return rename(path, target)
        pathlib.Path.write_bytes, pathlib.Path.rename = write, rename
        Store(sys.argv[1]).write(ALONE, WHOLE[ALONE])
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(code, ALONE in Store(sys.argv[1]), sum(path.name[0] == "." for path in pathlib.Path(sys.argv[1]).iterdir()))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process that can be killed")
def test_a_write_that_is_killed_at_any_step_leaves_nothing_that_counts(store: Store) -> None:
    run = subprocess.run(
        [sys.executable, "-c", KILLED, str(store.folder)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    killed = f"{-signal.SIGKILL} False 1"
    assert run.stdout.splitlines() == [killed] * 4 + ["0 True 0"], run.stderr
    assert store.read(ALONE) == WHOLE[ALONE]


def test_what_is_stored_can_be_read_where_nothing_can_be_written(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("write_bytes", "rename", "mkdir"):
        monkeypatch.setattr(Path, name, refused)
    monkeypatch.setattr(Store, "lock", refused)
    assert run([TWO, ONE], store.folder, progress=False) == {TWO: WHOLE[TWO], ONE: WHOLE[ONE]}


# ---- tables


def test_a_file_that_cannot_be_written_whole_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        path.touch()
        raise OSError(28, "No space left on device")

    (tmp_path / "known.json").write_text("before")
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space"):
        tables.write_whole(tmp_path / "known.json", "after")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["before"]


def test_tables_are_read_back_to_the_bit(tmp_path: Path) -> None:
    words = np.random.default_rng(0).integers(0, 2**64, 100_000, dtype=np.uint64)
    small = (words >> np.uint64(12)).view(np.float64)  # denormals
    special = [np.inf, -np.inf, np.nan, 0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1, 1 / 3]
    numbers = np.concatenate([words.view(np.float64), small, special])
    assert (abs(small) < np.finfo(np.float64).tiny).all()
    table = pd.DataFrame({"number": numbers, "count": np.arange(len(numbers)), "method": "lea-mvd:printed"})
    tables.write_table(tmp_path / "t.csv", table)
    read = tables.read_table(tmp_path / "t.csv")
    pd.testing.assert_frame_equal(read, table, check_exact=True)
    there = ~np.isnan(numbers)
    ours = read["number"].to_numpy()
    assert np.array_equal(ours.view(np.uint64)[there], numbers.view(np.uint64)[there]), "-0.0 is not 0.0"


def test_recorded_tables_ship_with_the_notebooks() -> None:
    folder = archive.folder("backend_agreement")
    assert folder == versions.PACKAGE.parent / "notebooks" / "recorded" / "backend_agreement"
    assert archive.exists("backend_agreement")
    assert not archive.exists("nothing")
    table = archive.read("backend_agreement")
    assert table.to_csv(index=False) == (folder / "runs.csv").read_text(encoding="utf-8")
    assert not archive.read("linear_cost", "training").empty
    with pytest.raises(FileNotFoundError, match="nothing"):
        archive.read("nothing")
