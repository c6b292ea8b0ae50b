"""A search that was killed goes on from its file as if it had not been, and the file is whole at any moment."""

import errno
import io
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from problems import rastrigin
from test_evaluation import assert_same

from leamvd import LEAMVD, Reading, minimize
from leamvd.optimizers import checkpoints
from leamvd.optimizers.random_search import RandomSearch

X0 = np.linspace(-1, 1, 6)
CLIP, REFLECT = Reading(limits="clip"), Reading(limits="reflect")
SPECIAL = Reading(reset="initial", elites="reevaluate", step="sampled")


def point(x: Any) -> float:
    """Coarse, so that the search stagnates and is reset."""
    return round(float(rastrigin(x[None])[0]), 0)


class Killed(BaseException):
    """An end of a run at any call of the function, without a word to anybody."""


def killed_after(calls: int) -> Any:
    count = [0]

    def fun(x: Any) -> float:
        count[0] += 1
        if count[0] > calls:
            raise Killed
        return point(x)

    return fun


def run(fun: Any = point, **options: Any) -> Any:
    return minimize(fun, X0, **{"seed": 1, "n_gen": 40} | options)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"dtype": "float32"},
    {"reading": SPECIAL},
    {"reading": SPECIAL, "dtype": "float32"},
    {"reading": Reading(reset=0.3, descent_scale="normalized", limits="reflect"), "bounds": (-2, 2)},
    {"method": "random"},
    {"method": "random", "dtype": "float32", "bounds": (-2, 2)},
]


@pytest.mark.compiled
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("every", [1, 3])
def test_a_run_that_was_killed_again_and_again_is_the_same(options: dict[str, Any], every: int, tmp_path: Path) -> None:
    path, evaluated = tmp_path / "run.npz", 0
    plain = run(**options)
    given = options | {"checkpoint": path, "checkpoint_every": every}
    for calls in (130, 300, 90, 7, 200):
        with pytest.raises(Killed):
            run(killed_after(calls), **given)
        assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
        evaluated += calls
    assert_same(run(**given), plain)
    assert evaluated > 24 * 9
    assert_same(run(killed_after(0), **given), plain)  # finished: nothing is evaluated


@pytest.mark.parametrize(("every", "stored"), [(1, 24 + 6 * 20), (4, 24 + 3 * 20)])
def test_generations_that_are_stored_are_not_evaluated_again(every: int, stored: int, tmp_path: Path) -> None:
    called = []

    def fun(x: Any) -> float:
        called.append(x)
        return point(x)

    with pytest.raises(Killed):
        run(killed_after(150), n_gen=10, checkpoint=tmp_path / "run.npz", checkpoint_every=every)
    assert run(fun, n_gen=10, checkpoint=tmp_path / "run.npz").nfev == 204
    assert len(called) == 204 - stored


def test_a_link_is_followed_and_stays_one(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    link = tmp_path / "link.npz"
    link.symlink_to(Path("disk", "run.npz"))  # which is not there yet
    for n_gen in (3, 6):
        run(n_gen=n_gen, checkpoint=link)
        assert link.is_symlink()
        assert [file.name for file in tmp_path.rglob("*.npz")] == ["link.npz", "run.npz"]
    assert_same(run(killed_after(0), n_gen=6, checkpoint=tmp_path / "disk" / "run.npz"), run(n_gen=6))


@pytest.mark.parametrize("moment", ["write", "replace"])
def test_a_full_disk_leaves_the_earlier_checkpoint_whole(
    moment: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "run.npz"
    run(n_gen=3, checkpoint=path)
    before = path.read_bytes()

    def full(target: Any, *_: Any, **__: Any) -> None:
        if moment == "write":
            target.write(b"half of")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(*((checkpoints.np, "savez") if moment == "write" else (Path, "replace")), full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        run(checkpoint=path)
    assert caught.value.result.nit == 4  # type: ignore[attr-defined]
    assert "what it held before is still there" in caught.value.__notes__[0]
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]
    monkeypatch.undo()
    assert_same(run(checkpoint=path), run())


def test_what_a_killed_write_left_is_removed_if_it_can_be_and_nothing_else(tmp_path: Path) -> None:
    for name in (".run[1].npz.0a.partial", ".run1.npz.0a.partial", "other"):
        (tmp_path / name).write_text("half of", encoding="utf-8")
    kept = {".run1.npz.0a.partial", "other", ".run[1].npz.0b.partial"}
    (tmp_path / ".run[1].npz.0b.partial").mkdir()
    for _ in range(2):
        run(n_gen=2, checkpoint=tmp_path / "run[1].npz")
    assert {file.name for file in tmp_path.iterdir()} == {"run[1].npz"} | kept


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"seed": 2}, "seed=1, got seed=2"),
        ({"dtype": "float32"}, "dtype='float64', got dtype='float32'"),
        ({"method": "random"}, "method='LEAMVD', got method='RandomSearch'"),
        ({"population_size": 30}, "population_size=24, got population_size=30"),
        ({"n_elite": 3}, "n_elite=4, got n_elite=3"),
        ({"sigma0": 0.2}, "sigma0=0.1, got sigma0=0.2"),
        ({"reading": Reading(limits="clip", reset="off")}, r"reading.reset=1.0, got reading.reset='off'"),
        (
            {"bounds": (-2, 3), "reading": CLIP},
            r"high='\(2.0, .* SHA-256 .*', got high='\(3.0, 3.0, 3.0, ...; 6 numbers",
        ),
        (
            {"bounds": (-3, 2), "reading": CLIP},
            r"low='\(-2.0, .* SHA-256 .*', got low='\(-3.0, -3.0, -3.0, ...; 6 numb",
        ),
        ({"bounds": (-2, 2), "reading": REFLECT}, "reading.limits='clip', got reading.limits='reflect'"),
        ({"bounds": None, "reading": Reading(limits="first")}, "reading.limits='clip', got reading.limits='first'"),
        ({"x0": X0 + 1e-9}, r"x0='\(-1.0, -0.6, .*', got x0='\(-0.999999999, -0.59"),
    ],
)
def test_a_checkpoint_of_other_arguments_is_refused(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    given = {"x0": X0, "bounds": (-2, 2), "seed": 1, "n_gen": 2, "checkpoint": path}
    minimize(point, **given)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"is of a search with {message}"):
        minimize(killed_after(0), **given | changes)
    assert path.read_bytes() == before


def test_limits_may_change_and_the_seed_may_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    assert run(n_gen=4, checkpoint=path).reason == "n_gen"
    result = run(n_gen=9, sigma_min=0, reading=Reading(n_gen=3), checkpoint=path)
    assert_same(result, run(n_gen=9))
    assert_same(run(n_gen=9, checkpoint=path, seed=None), result)
    fresh = minimize(point, X0, n_gen=4, checkpoint=tmp_path / "other.npz")
    again = minimize(point, X0, n_gen=8, checkpoint=tmp_path / "other.npz")
    assert_same(again, minimize(point, X0, n_gen=8, seed=fresh["seed"]))


@pytest.mark.parametrize("limit", [{"max_nfev": 300}, {"max_stagnation": 4}, {"target": 30.0}])
def test_limits_count_what_was_before_the_checkpoint(limit: dict[str, Any], tmp_path: Path) -> None:
    plain = run(**limit)
    assert plain.nit > 3
    for generations in (2, plain.nit - 1):
        path = tmp_path / f"{generations}.npz"
        run(n_gen=generations, checkpoint=path)
        for _ in range(2):
            assert_same(run(**limit, checkpoint=path), plain)


def test_a_search_that_nan_has_ended_goes_on(tmp_path: Path) -> None:
    values = [1e6] * 44 + [np.nan] * 20
    result = run(lambda x: values.pop(0), checkpoint=tmp_path / "nan.npz")
    assert (result.reason, result.nit) == ("nan", 3)
    again = run(checkpoint=tmp_path / "nan.npz")
    assert (again.reason, again.nit, again.n_nan) == ("n_gen", 40, 20)
    np.testing.assert_array_equal(again.history.best[:3], 1e6)
    assert again.fun < 1e3


def test_a_search_that_ended_by_the_callback_is_still_over(tmp_path: Path) -> None:
    def callback(intermediate_result: Any) -> bool:
        return bool(intermediate_result.nit == 3)

    result = run(callback=callback, checkpoint=tmp_path / "callback.npz", checkpoint_every=50)
    assert (result.reason, result.nit) == ("callback", 3)
    assert_same(run(killed_after(0), callback=callback, checkpoint=tmp_path / "callback.npz"), result)
    assert run(checkpoint=tmp_path / "callback.npz").nit == 40


@pytest.mark.skipif(time.get_clock_info("monotonic").resolution > 1e-6, reason="several generations fit in a tick")
def test_time_is_that_of_one_call_and_each_makes_progress(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    for generation in range(1, 6):
        result = run(n_gen=5, checkpoint=path, checkpoint_every=100, max_seconds=1e-9)
        assert (result.reason, result.nit) == ("max_seconds", generation)
    assert_same(run(n_gen=5, checkpoint=path), run(n_gen=5))


def test_a_class_of_ones_own_goes_on_from_the_file(tmp_path: Path) -> None:
    class Own(LEAMVD):
        pass

    given: dict[str, Any] = {"checkpoint": tmp_path / "run.npz"}
    with pytest.raises(Killed):
        minimize(killed_after(150), method=Own(X0, seed=1, n_gen=20), **given)
    assert_same(minimize(point, method=Own(X0, seed=1, n_gen=20), **given), run(n_gen=20))


def test_an_optimizer_that_is_given_goes_on_from_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    with pytest.raises(Killed):
        minimize(killed_after(150), method=LEAMVD(X0, seed=1, n_gen=20), checkpoint=path)
    result = minimize(point, method=LEAMVD(X0, seed=1, n_gen=20), checkpoint=path)
    assert_same(result, run(n_gen=20))
    opt = LEAMVD(X0, seed=1, n_gen=20)
    minimize(point, method=opt, max_nfev=50)
    with pytest.raises(ValueError, match=r"must be an optimizer at generation 0, where .* began, got .*generation=2"):
        minimize(point, method=opt, checkpoint=path)
    later = tmp_path / "later.npz"
    with pytest.raises(Killed):
        minimize(killed_after(70), method=pickle.loads(pickle.dumps(opt)), checkpoint=later)
    continued: Any = minimize(point, method=pickle.loads(pickle.dumps(opt)), checkpoint=later)
    assert_same(continued, minimize(point, method=opt))
    assert len(continued.history.best) == 18


def flipped(path: Path) -> bytes:
    """Return the file with one bit changed in an array, which has a checksum; the archive's own bytes have none."""
    whole = path.read_bytes()
    place = whole.index(b"NUMPY") + 12
    return whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :]


def rewritten(**changes: Any) -> Callable[[Path], bytes]:
    """Return what rewrites a checkpoint with other arrays; None: without."""

    def write(path: Path) -> bytes:
        with np.load(path) as file:
            arrays = {name: array for name, array in (dict(file) | changes).items() if array is not None}
        with io.BytesIO() as written:
            np.savez(written, allow_pickle=True, **arrays)
            return written.getvalue()

    return write


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        *((lambda path, content=content: content, "") for content in (b"", b"half of", b"PK\x03\x04", b"\x93NUMPY")),
        (lambda path: path.read_bytes()[: path.stat().st_size // 2], ""),
        (flipped, ""),
        (rewritten(header=None), ""),
        (rewritten(header=np.array([{}], dtype=object)), "Object arrays cannot be loaded"),
        (rewritten(**{"state.mean": None}), "its state has"),
        (rewritten(**{"state.other": np.zeros(3)}), "its state has"),
        (rewritten(**{"history.best": np.zeros(1)}), "the columns of its history differ in length"),
    ],
)
def test_a_file_that_is_no_checkpoint_is_refused_and_left_as_it_is(
    damage: Callable[[Path], bytes], message: str, tmp_path: Path
) -> None:
    path = tmp_path / "run.npz"
    run(n_gen=2, checkpoint=path)
    path.write_bytes(content := damage(path))
    with pytest.raises(ValueError, match=rf"checkpoint='.*run.npz' cannot be read as one \({message}"):
        run(killed_after(0), checkpoint=path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("name", ["missing/run.npz", "file/run.npz", "x" * 300])
def test_a_place_that_cannot_be_written_to_is_named_before_anything_runs(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises((OSError, ValueError), match="checkpoint"):
        run(killed_after(0), checkpoint=tmp_path / name)
    with pytest.raises(ValueError, match=r"cannot be read as one .*(directory|denied)"):
        run(killed_after(0), checkpoint=tmp_path)


# ---- two searches and one file

WAITING = """
import sys, time
import leamvd
def fun(x):
    print("runs", flush=True)
    time.sleep(600)
leamvd.minimize(fun, [0.0] * 6, checkpoint=sys.argv[1])
"""
RUNS = r"checkpoint is that of a search that runs now: wait for its end, or name another file: '.*run\.npz'"


def test_the_file_of_another_process_is_refused_until_that_one_ends(tmp_path: Path) -> None:
    path = tmp_path / "run.npz"
    run(n_gen=3, checkpoint=path)
    before = path.read_bytes()
    command = [sys.executable, "-c", WAITING.replace("[0.0] * 6", f"{X0.tolist()}, seed=1"), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "runs\n"
        try:
            with pytest.raises(BlockingIOError, match=RUNS):
                run(killed_after(0), checkpoint=path)
            assert path.read_bytes() == before
        finally:
            process.kill()
    assert_same(run(checkpoint=path), run())
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


def test_the_file_of_a_search_of_this_process_is_refused(tmp_path: Path) -> None:
    def within(x: Any) -> float:
        with pytest.raises(BlockingIOError, match=RUNS):
            run(killed_after(0), checkpoint=tmp_path / "run.npz")
        return point(x)

    assert_same(run(within, n_gen=2, checkpoint=tmp_path / "run.npz"), run(n_gen=2))


def test_what_held_the_file_is_closed_at_the_end(tmp_path: Path) -> None:
    with checkpoints.Checkpoint(tmp_path / "run.npz") as saved:
        os.fstat(saved._lock)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(saved._lock)


@pytest.mark.skipif(sys.platform == "win32", reason="files that are open cannot be removed there")
def test_a_lock_on_a_file_that_is_removed_meanwhile_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    lock, flock, removed = tmp_path / "lock", fcntl.flock, []

    def end_first(descriptor: int, how: int) -> None:
        if not removed:
            removed.append(lock.unlink())
        flock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", end_first)
    first = checkpoints._lock(lock)
    with pytest.raises(BlockingIOError):
        checkpoints._lock(lock)
    os.close(first)
    os.close(checkpoints._lock(lock))


@pytest.mark.skipif(sys.platform == "win32", reason="has locks everywhere")
def test_a_file_system_without_locks_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def flock(*_: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", flock)
    assert_same(run(n_gen=3, checkpoint=tmp_path / "run.npz"), run(n_gen=3))


def test_pycmas_optimizers_have_no_checkpoints(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"checkpoint must be None for <CMAES.*a pickle, which is not safe to load"):
        run(killed_after(0), method="cma-es", checkpoint=tmp_path / "run.npz")
    assert list(tmp_path.iterdir()) == []


def test_a_random_search_between_ask_and_tell_is_set_whole(tmp_path: Path) -> None:
    run(n_gen=3, method="random", checkpoint=tmp_path / "run.npz")
    opt = RandomSearch(X0, seed=1, n_gen=6)
    opt.ask()
    assert_same(minimize(point, method=opt, checkpoint=tmp_path / "run.npz"), run(n_gen=6, method="random"))
