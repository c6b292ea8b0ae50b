"""Calls kept on disk and run in parallel; what is recorded."""

import dataclasses
import hashlib
import io
import os
import re
import subprocess
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as metadata_version
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tqdm import tqdm

from leamvd._support import sources
from leamvd._support.threads import thread_count
from leamvd.networks.dbn import Training
from leamvd.optimizers.reading import Reading
from leamvd_paper.studies import layers, readings, results
from leamvd_paper.studies.results import Call, Result, delayed, run_all

ROOT = Path(__file__).resolve().parents[1]


@dataclasses.dataclass(frozen=True)
class Settings:
    sizes: tuple[int, ...] = (2, 3)
    sigma: float = 0.5


COUNTED: list[int] = []


def number(n: int, settings: Settings = Settings()) -> Result:
    COUNTED.append(n)
    return Result(pd.DataFrame({"n": [n], "sum": [n + sum(settings.sizes)]}), {"x": np.arange(n)})


def doubled(below: Result, by: float = 2.0) -> Result:
    array = below.arrays["x"]
    array *= 2  # an argument can be written to
    return Result(
        pd.DataFrame({"total": [by * array.sum()], "name": ["a"], "threads": [thread_count(None)]})
    )


def fails(n: int) -> Result:
    raise ValueError(f"cannot compute {n}")


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(results.STORE, raising=False)
    COUNTED.clear()


def rows(call: Call, folder: Path, **where: Any) -> pd.DataFrame:
    return run_all([call], folder, **where)[call.key]


def test_equal_calls_have_equal_keys_whatever_their_settings_are_built_of() -> None:
    same = [
        delayed(number)(3),
        delayed(number)(n=np.int64(3), settings=Settings()),
        delayed(number)(3.0, Settings((2, 3), np.float32(0.5))),
        delayed(number)(3, dataclasses.replace(Settings(sigma=1), sigma=0.5)),
    ]
    assert len({call.key for call in same}) == 1
    others = [delayed(number)(4), delayed(number)(3, Settings((3, 2))), delayed(fails)(3)]
    assert len({call.key for call in (*same, *others)}) == 4
    assert (
        delayed(doubled)(same[0]).key
        == delayed(doubled)(same[1]).key
        != delayed(doubled)(others[0]).key
    )
    for nested in ([same[0]], {"a": (same[0],)}, Settings((same[0],))):
        with pytest.raises(ValueError, match="a call must be an argument"):
            delayed(number)(nested)


@dataclasses.dataclass(frozen=True)
class Others(Settings):
    """Settings of another kind with the same fields."""


def test_settings_that_differ_at_all_have_keys_of_their_own() -> None:
    """Also where they differ in their last bit, in their kind, or in what is empty."""
    least = np.nextafter(0.5, 1)
    several = [
        *(0, 1e-7, -1e-7, 5e-324, 0.5, least, 1 / 3, 0.333333, 1e22, 3, "3", "", None, True, False),
        *((), (3,), (3, 2), ((3,), 2), {}, {"a": 1}, {"a": None}, {"b": 1}),
        *(Settings(), Settings((2,)), Settings(sigma=least), Others(), Reading(), Training()),
        *(Reading(exponent=2.0), Training(weight_decay=0.0), Training(weight_decay=1e-7)),
    ]
    keys = [delayed(number)(value).key for value in several]
    for at, key in enumerate(keys):
        assert key not in keys[:at], several[at]
    assert delayed(number)((1,)).key == delayed(number)([np.float64(1.0)]).key
    open_or_written = Reading(), Reading().complete()
    assert open_or_written[0] != open_or_written[1]
    assert len({delayed(number)(reading).key for reading in open_or_written}) == 1


def test_what_needs_a_result_that_is_there_is_not_computed_again(tmp_path: Path) -> None:
    below = delayed(number)(3)
    call = delayed(doubled)(below)
    rows(call, tmp_path)
    COUNTED.clear()
    for path in tmp_path.rglob("number-*.npz"):
        path.unlink()
    assert {*run_all([call], tmp_path)} == {call.key}
    assert COUNTED == []


def test_progress_counts_the_calls_that_are_computed_and_is_still_where_none_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bars = []
    still = []

    def noted(**given: Any) -> Any:
        still.append(given.get("disable", False))
        bars.append(tqdm(**({"disable": False} | given), file=io.StringIO()))
        return bars[-1]

    monkeypatch.setattr(results, "tqdm", noted)
    rows(delayed(number)(4), tmp_path)
    calls = [delayed(number)(n) for n in (3, 4)]
    run_all([*calls, delayed(doubled)(calls[0])], tmp_path, label="all of it")
    run_all(calls, tmp_path)
    assert [(bar.total, bar.n) for bar in bars] == [(1, 1), (2, 2), (0, 0)]
    assert still == [False, False, True]
    assert bars[1].desc.startswith("all of it")


def test_a_folder_of_results_may_be_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    rows(delayed(number)(3), Path("~/mine"))
    monkeypatch.setenv(results.STORE, "~/stored")
    rows(delayed(number)(4), Path("~/mine"))
    assert len([*tmp_path.glob("mine/*/*.npz")]) == len([*tmp_path.glob("stored/*/*.npz")]) == 1


def test_functions_of_one_name_in_two_modules_have_different_keys() -> None:
    twin = FunctionType(number.__code__, globals(), number.__name__, number.__defaults__)
    assert delayed(twin)(3).key == delayed(number)(3).key
    twin.__module__ = "elsewhere"
    assert delayed(twin)(3).key != delayed(number)(3).key


@dataclasses.dataclass(frozen=True)
class Computing:
    backend: str


def test_the_version_of_pytorch_is_in_the_keys_of_what_it_computes_and_of_what_needs_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def keys(installed: str | None) -> list[str]:
        def version(name: str) -> str:
            if name == "torch" and installed is None:
                raise PackageNotFoundError(name)
            return str(installed if name == "torch" else metadata_version(name))

        monkeypatch.setattr(results, "version", version)
        results.code.cache_clear()
        calls = [delayed(number)(3, settings=Computing(name)) for name in ("numpy", "torch")]
        return [
            results.code(),
            *(call.key for call in calls),
            *(delayed(doubled)(call).key for call in calls),
        ]

    without, old, new = map(keys, (None, "2.0", "2.1"))
    monkeypatch.undo()
    results.code.cache_clear()
    assert [a == b for a, b in zip(without, old, strict=True)] == [True, True, False, True, False]
    assert [a == b for a, b in zip(old, new, strict=True)] == [True, True, False, True, False]


@pytest.mark.parametrize(
    ("name", "value", "differ"),
    [
        ("features", "bits", [True, False]),
        ("n_gen", 7, [True, False]),
        ("layers", (30, 30), [False, False]),
        ("budget", 500, [False, True]),
        ("exponent", 2.0, [True, True]),
    ],
)
def test_keys_have_the_settings_that_decide_on_a_result(
    name: str, value: Any, differ: list[bool]
) -> None:
    study = readings.PROFILES["quick"]
    keys = [
        [
            {call.key for call in calls.values()}
            for calls in (layers.searches(own), readings.on_functions(own)[1])
        ]
        for own in (study, study.changed(**{name: value}))
    ]
    assert [before != after for before, after in zip(*keys, strict=True)] == differ


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_results_are_passed_on_and_kept(tmp_path: Path, n_jobs: int) -> None:
    below = delayed(number)(200_000)  # more than joblib sends as it is
    call = delayed(doubled)(below)
    found = rows(call, tmp_path, n_jobs=n_jobs)
    threads = max(1, thread_count(None) // n_jobs)
    assert found.to_dict("list") == {
        "total": [2 * 200_000 * 199_999],
        "name": ["a"],
        "threads": [threads],
    }
    COUNTED.clear()
    pd.testing.assert_frame_equal(rows(call, tmp_path), found)
    assert COUNTED == []


def test_a_call_that_is_asked_for_twice_or_needed_twice_is_computed_once(tmp_path: Path) -> None:
    below = delayed(number)(3)
    run_all(
        [below, delayed(number)(3), delayed(doubled)(below), delayed(doubled)(below, 3.0)], tmp_path
    )
    assert COUNTED == [3]


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda c: c[:-1], lambda c: bytes([c[0] ^ 1]) + c[1:]]
)
def test_what_is_damaged_is_computed_again(tmp_path: Path, damage: Any) -> None:
    call = delayed(number)(3)
    before = rows(call, tmp_path)
    (path,) = tmp_path.rglob("*.npz")
    path.write_bytes(damage(path.read_bytes()))
    pd.testing.assert_frame_equal(rows(call, tmp_path), before)
    assert COUNTED == [3, 3]


def test_a_call_that_fails_loses_nothing_that_is_finished(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot compute 5"):
        run_all([delayed(number)(3), delayed(fails)(5), delayed(number)(4)], tmp_path)
    COUNTED.clear()
    rows(delayed(number)(3), tmp_path)
    assert COUNTED == []


def test_what_another_process_finishes_meanwhile_is_taken(tmp_path: Path) -> None:
    def busy() -> Result:
        return Result(rows(delayed(number)(3), tmp_path))

    run_all([delayed(busy)(), delayed(number)(3)], tmp_path)
    assert COUNTED == [3]


def every_kind(n: int) -> Result:
    columns = {
        "text": ["", "rastrigin, n = 1000: σ0"],
        "number": [1e-300, np.nan],
        "count": [2**60 + 1, 0],
        "small": np.array([0.1, np.inf], np.float32),
        "met": [True, False],
    }
    arrays = {"W1": np.eye(n, dtype=np.float32), "b": np.arange(n), "rows": np.empty((0, 2))}
    return Result(pd.DataFrame(columns, index=[5, 5]), arrays)


def seen(kept: Result) -> Result:
    own = every_kind(3).arrays
    same = [*kept.arrays] == [*own]
    for name, array in kept.arrays.items():
        same = same and array.dtype == own[name].dtype and np.array_equal(array, own[name])
    return Result(kept.rows.assign(same=same))


def test_what_is_read_from_disk_is_what_was_computed(tmp_path: Path) -> None:
    """What was computed in this call is handed on as it is, and what is there as it is read."""
    call = delayed(every_kind)(3)
    rows(call, tmp_path)
    found = rows(delayed(seen)(call), tmp_path)
    assert found.pop("same").all()
    expected = every_kind(3).rows.reset_index(drop=True)
    for table in (found, rows(call, tmp_path)):
        pd.testing.assert_frame_equal(
            table, expected, check_exact=True, check_dtype=False, check_names=True
        )
        for name in ("number", "count", "small", "met"):
            assert table[name].dtype == expected[name].dtype


@pytest.mark.parametrize("values", [["a", None], ["a", 1]])
def test_a_column_that_would_be_read_as_another_is_refused(
    values: list[Any], tmp_path: Path
) -> None:
    def told() -> Result:
        return Result(pd.DataFrame({"told": values}, dtype=object))

    with pytest.raises(ValueError, match="told of a result must hold numbers or texts alone"):
        rows(delayed(told)(), tmp_path)


def test_what_is_half_written_has_no_name_of_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_bytes
    monkeypatch.setattr(Path, "write_bytes", lambda path, content: write(path, content[:99]) / 0)
    with pytest.raises(ZeroDivisionError):
        rows(delayed(number)(3), tmp_path)
    assert [*tmp_path.rglob("[!.]*.npz")] == []


@pytest.mark.parametrize(
    ("changed", "again"), [("code", 1), ("version", 1), ("get_host_cpu_name", 1), ("n_jobs", 0)]
)
def test_results_lie_in_a_folder_of_what_decides_on_them(
    changed: str, again: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(results.STORE, str(tmp_path / "store"))
    rows(delayed(number)(3), tmp_path)
    if changed == "version":
        monkeypatch.setattr(results, "code", results.code.__wrapped__)  # which is not remembered
    if again:
        monkeypatch.setattr(results, changed, lambda *_: "another")
    rows(delayed(number)(3), tmp_path / changed, n_jobs=2 if changed == "n_jobs" else 1)
    assert len([*tmp_path.rglob("*.npz")]) == len([*tmp_path.glob("store/*")]) == 1 + again


def test_a_process_of_ours_ends_with_the_one_that_asks_and_that_one_follows_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    followed: list[int] = []
    monkeypatch.setattr(results.children, "follow", followed.append)
    below = Result(pd.DataFrame({"n": [3]}), {"x": np.arange(3)})
    call = delayed(doubled)(delayed(number)(3), 5.0)
    for parent, told in ((os.getpid(), []), (os.getppid(), [os.getppid()])):
        followed.clear()
        key, found = results._compute(call, [None, below], results.code(), parent, 1)
        assert followed == told
        assert (key, found.rows["threads"].tolist()) == (call.key, [1])
        kept = results._compute(call, [found, below], results.code(), parent, 1)[1]
        assert kept is found, "which another process has computed"


def test_a_worker_that_has_another_code_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "code", lambda: "another")
    with pytest.raises(RuntimeError, match="other code"):
        run_all([delayed(number)(n) for n in (1, 2)], tmp_path, n_jobs=2)


def test_the_digest_of_the_code_sees_what_can_change_a_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digests = []
    for package in (results.leamvd, results.leamvd_paper):
        monkeypatch.setattr(package, "__file__", str(tmp_path / package.__name__ / "__init__.py"))
    paper = "leamvd_paper"
    for folder in ("leamvd", f"{paper}/book", f"{paper}/studies"):
        (tmp_path / folder).mkdir(parents=True)
    names = ("cli.py", "__main__.py", "book/render.py", "studies/plots.py")
    same = [f"{paper}/{name}" for name in names]
    for file, text in (
        ("leamvd/a.py", '"""A."""\nx = 1\n'),
        ("leamvd/a.py", '"""B."""\n\nx = 1  # one\n'),
        *((name, "x = 2\n") for name in same),
        (f"{paper}/studies/a.py", "x = 3\n"),
    ):
        (tmp_path / file).write_text(text)
        digests.append(results.code.__wrapped__())
    assert len(set(digests[:-1])) == 1
    assert digests[-1] != digests[0]


def test_each_file_of_the_packages_that_does_not_only_show_is_in_the_digest_of_the_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []
    for package in (results.leamvd, results.leamvd_paper):
        folder = Path(package.__file__).parent
        files = {path.relative_to(folder.parent).as_posix() for path in folder.rglob("*.py")}
        assert {*sources.read(folder)} == files
        names += files

    def digest(changed: str) -> str:
        texts = {name: f"x = {int(name == changed)}" for name in names}
        monkeypatch.setattr(results.sources, "read", lambda _: texts)
        return results.code.__wrapped__()

    same = {name for name in names if digest(name) == digest("none")}
    book = {name for name in names if name.startswith("leamvd_paper/book/")}
    shows = {f"leamvd_paper/{name}" for name in ("__main__.py", "cli.py", "studies/plots.py")}
    assert same == shows | book


def test_tables_have_the_columns_that_name_a_call_first(tmp_path: Path) -> None:
    plan = {"runs": (["method", "n"], {("a", 7): delayed(number)(3), ("b", 8): delayed(number)(4)})}
    found = results.tables(plan, tmp_path)["runs"]
    expected = pd.DataFrame({"method": ["a", "b"], "n": [7, 8], "sum": [8, 9]})
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


@pytest.mark.parametrize("package", ["leamvd", "notebooks/leamvd_paper"])
def test_what_is_recorded_needs_a_commit_of_both_packages(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "NOTEBOOKS", tmp_path / "notebooks")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=A", "-c", "user.email=a@b.c"]
    code = tmp_path / package / "one.py"
    shown = tmp_path / "notebooks" / "one.ipynb"
    for file in (code, shown):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("1")
    for words in ("init -q", "add .", "commit -q -m one"):
        subprocess.run([*git, *words.split()], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    shown.write_text("2")
    assert results.committed() == head.stdout[:12], "a notebook does not compute"
    code.write_text("2")
    with pytest.raises(ValueError, match=r"one\.py"):
        results.committed()


def test_what_is_recorded_is_read_as_it_was_written_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ARCHIVE", tmp_path)
    table = pd.DataFrame({"x": np.random.default_rng(0).normal(size=9), "name": list("abcdefghi")})
    results.write_recorded("one", {"runs": table}, {"sizes": [2, 3]}, "0123456789ab")
    pd.testing.assert_frame_equal(results.read_recorded("one"), table, check_exact=True)
    known = results.provenance("one")
    assert (known["settings"], known["commit"], known["code"]) == (
        {"sizes": [2, 3]},
        "0123456789ab",
        results.code(),
    )
    with pytest.raises(ValueError, match="what is recorded must be one of 'one', got 'two'"):
        results.read_recorded("two")
    several = {"runs": table[:2], "other": table[2:3].reset_index(drop=True)}
    for _ in range(2):
        results.write_recorded("several", several, {}, "0123456789ab")
    for name, own in several.items():
        pd.testing.assert_frame_equal(results.read_recorded("several", name), own)
    path = tmp_path / "one" / "runs.csv.xz"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(ValueError, match="is not what was recorded"):
        results.read_recorded("one")


@pytest.mark.parametrize("file", ["runs.csv", "runs.csv.xz"])
def test_what_is_recorded_anew_takes_the_place_of_what_was_there(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ARCHIVE", tmp_path)
    place = tmp_path / "one"
    place.mkdir()
    (place / file).touch()
    for value in (1, 2):
        table = pd.DataFrame({"x": [value]})
        results.write_recorded("one", {"runs": table}, {}, "0123456789ab")
        assert {path.name for path in place.iterdir()} == {file, "provenance.json"}
        pd.testing.assert_frame_equal(results.read_recorded("one"), table)


@pytest.mark.parametrize("value", [0, 0.0, False, "", (), 3], ids=repr)
def test_what_is_recorded_takes_no_change_but_none(value: Any) -> None:
    results.refuse({"n_gen": None, "weight_decay": None})
    with pytest.raises(ValueError, match="weight_decay"):
        results.refuse({"n_gen": None, "weight_decay": value})


NEVER_NULL = {"n_gen", "layers", "seeds", "n_images", "learning_rate", "methods"}

FOLDERS = sorted(path.name for path in results.ARCHIVE.iterdir() if path.is_dir())

# their dates are their worth
PREDICTIONS = {"predictions", "predictions_28x28", "scaling_predictions", "starts"}


@pytest.mark.parametrize("name", FOLDERS)
def test_provenance_has_one_format_and_every_recorded_file_is_what_was_recorded(name: str) -> None:
    known, folder = results.provenance(name), results.ARCHIVE / name
    assert {*known} - {"history", "note", "brought_by"} == {
        "settings",
        "code",
        "commit",
        "versions",
        "processor",
        "sha256",
    }
    assert ("brought_by" in known) == (name in PREDICTIONS)
    assert re.fullmatch("[0-9a-f]{12}", known["commit"]), "a commit, and a tree without changes"
    assert known["processor"]
    assert "unknown" not in known["processor"] or known["note"]
    assert {*known["sha256"]} == {path.name for path in folder.iterdir()} - {"provenance.json"}
    for file, digest in known["sha256"].items():
        assert hashlib.sha256((folder / file).read_bytes()).hexdigest() == digest
    parts = [known["settings"]]
    for part in parts:  # which grows
        parts += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []
        assert not isinstance(part, dict) or not any(
            part[key] is None for key in NEVER_NULL & part.keys()
        )


@pytest.fixture(scope="module")
def history() -> set[str]:
    """Return the first twelve digits of all commits up to the one that is checked out."""
    try:
        asked = "--show-toplevel", "--is-shallow-repository"
        top, shallow = git("rev-parse", *asked).decode().splitlines()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no git, or no clone")
    if Path(top).resolve() != ROOT or shallow != "false":
        pytest.skip("the history is not whole")
    return {line[:12] for line in git("rev-list", "HEAD").decode().splitlines()}


def git(*arguments: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(ROOT), *arguments], capture_output=True, check=True
    ).stdout


@pytest.mark.parametrize("name", FOLDERS)
def test_what_is_recorded_names_a_commit_of_the_history(name: str, history: set[str]) -> None:
    assert results.provenance(name)["commit"] in history


@pytest.mark.parametrize("name", sorted(PREDICTIONS))
def test_a_prediction_is_as_it_was_in_the_commit_that_brought_it(
    name: str, history: set[str]
) -> None:
    known = results.provenance(name)
    brought = known["brought_by"]
    assert brought in history
    for file, digest in known["sha256"].items():
        path = f"notebooks/recorded/{name}/{file}"
        assert hashlib.sha256(git("show", f"{brought}:{path}")).hexdigest() == digest
        assert (
            brought
            == git("log", "--format=%H", "--diff-filter=AM", "--", path).decode().split()[0][:12]
        )
