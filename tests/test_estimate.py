"""What units cost: counted as what is then run, timed on this machine."""

import dataclasses
import io
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from click.testing import CliRunner
from small_studies import SMALL, TINY

from leamvd import cli
from leamvd._support.compile import Array
from leamvd.networks.dbn import Training
from leamvd.networks.rbm import n_parameters
from leamvd.optimizers.base import Optimizer
from leamvd.optimizers.reading import Reading
from leamvd.paper import estimate as module
from leamvd.paper import records, units
from leamvd.paper.estimate import Estimate, Generation, estimate
from leamvd.paper.pieces import Unit
from leamvd.paper.studies import Study, images, study
from leamvd.paper.units import Part, Task

TIMED = ("_features", "_errors", "_epoch", "_evaluation", "generation")

COUNTED = dataclasses.replace(
    TINY,
    methods=("cd", "lea-mvd", "cma-es", "sep-cma-es", "random"),
    seeds=(3,),
    reading=dataclasses.replace(TINY.reading, n_gen=7),
)


def tasks(study: Study) -> dict[Unit, Task]:
    return {unit: records.task(study, unit) for unit in study.units()}


def computed(study: Study) -> Iterator[tuple[Unit, Part]]:
    parts: dict[Unit, Part] = {}
    for unit, task in tasks(study).items():
        parts[unit] = units.advance(task, images(study), [parts[lower].arrays for lower in unit.below])
        yield unit, parts[unit]


def only(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let what is named take a second, and all else nothing."""
    for other in TIMED[:-1]:
        monkeypatch.setattr(module, other, lambda *_, seconds=float(other == name): seconds)
    seconds, real = float(name == "generation"), module.generation

    def generation(*arguments: Any) -> Generation:
        asked = real(*arguments)
        return asked._replace(start=0.0, seconds=seconds, decomposition=float(name == "decomposition"))

    monkeypatch.setattr(module, "generation", generation)


def counted(study: Study, monkeypatch: pytest.MonkeyPatch, name: str) -> dict[Unit, float]:
    data, known = images(study), tasks(study)
    with monkeypatch.context() as patch:
        only(patch, name)
        sizes = {unit: module._sizes(unit, known, data) for unit in known}
        return {unit: module._unit(task, sizes[unit], len(data.train), len(data.test)) for unit, task in known.items()}


@pytest.mark.parametrize(
    "study",
    [
        COUNTED,
        dataclasses.replace(COUNTED, reading=dataclasses.replace(COUNTED.reading, elites="reevaluate")),
        dataclasses.replace(COUNTED, training=Training(n_elite=2, x0="none", batch_size=16)),
        dataclasses.replace(COUNTED, training=Training(n_elite=2, x0="batch", batch_size=16)),
    ],
    ids=["epochs", "reevaluate", "none", "batch"],
)
def test_what_is_counted_is_what_is_run(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = {unit: units.read_table(io.BytesIO(part.records)).iloc[-1] for unit, part in computed(study)}
    evaluations = counted(study, monkeypatch, "_evaluation")
    epochs = counted(study, monkeypatch, "_epoch")
    generations = counted(study, monkeypatch, "generation")
    features = counted(study, monkeypatch, "_features")
    for unit, last in ran.items():
        assert evaluations[unit] == last["evaluations"], unit
        assert epochs[unit] == pytest.approx(last["passes"] - last["evaluations"]), unit
        assert generations[unit] == (0 if unit.method == "cd" else 7), unit
        assert features[unit] == unit.layer - 1


def test_recorded_errors_are_counted_between_never_and_always_new(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0
    real = units.reconstruction_errors

    def counting(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        return real(*arguments, **options)

    monkeypatch.setattr(units, "reconstruction_errors", counting)
    expected = counted(COUNTED, monkeypatch, "_errors")
    made: dict[Unit, int] = {}
    for unit, _ in computed(COUNTED):
        made[unit] = calls - sum(made.values())
        if unit.method == "cd":
            assert expected[unit] == made[unit], "before the first epoch and after each, on both sets of images"
        else:
            assert 2 <= made[unit] <= 2 * expected[unit]
    assert sum(expected.values()) / 2 < sum(made.values()) < 2 * sum(expected.values())


@pytest.mark.parametrize("n_gen", [2, 9, 40])
def test_decompositions_are_counted_as_pycma_makes_them(n_gen: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from cma.sampler import GaussFullSampler

    study = dataclasses.replace(
        COUNTED, methods=("cma-es",), inputs=("own",), layers=(12,), reading=Reading(n_gen=n_gen, population_size=8)
    )
    expected = counted(study, monkeypatch, "decomposition")
    made, real = 0, GaussFullSampler._decompose_C

    def counting(*arguments: Any) -> Any:
        nonlocal made
        made += 1
        return real(*arguments)

    monkeypatch.setattr(GaussFullSampler, "_decompose_C", counting)
    for unit, _ in computed(study):
        assert expected[unit] == made
    assert made > 0 or n_gen < 40


def test_a_large_problem_is_extrapolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed with fewer variables or images is what would have been timed with all, by a clock of our own."""
    training, reading = Training(), Reading(population_size=8)
    gaps = {}
    for name in ("all", "fewer"):
        for timed in TIMED:
            getattr(module, timed).cache_clear()
        gaps[name] = module.generation("cma-es", 300, training, reading).gap
        monkeypatch.setattr(module, "_MATRIX", 200)
    assert gaps["fewer"] == pytest.approx(gaps["all"], rel=0.02)

    now = 0.0

    def work(count: int) -> None:
        nonlocal now
        now += 1e-6 * count

    tried = []

    def prepare(count: int) -> Any:
        tried.append(count)
        return lambda: work(count)

    monkeypatch.setattr(module, "time", type("Clock", (), {"perf_counter": staticmethod(lambda: now)}))
    assert module._on_images(prepare, 1000, 600) == pytest.approx(600e-6)
    assert tried == [600]
    assert module._on_images(prepare, 1000, 10_000_000) == pytest.approx(10)
    assert tried[1:] == [1000, 4000, 16_000, 64_000, 256_000]
    assert now < 2


def test_units_wait_for_those_below_and_for_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three, other = (
        Unit("cd", "own", 1, 0), Unit("cd", "own", 2, 0), Unit("cd", "own", 3, 0), Unit("lea-mvd", "own", 1, 0)
    )  # fmt: skip
    seconds = {one: 3.0, two: 2.0, three: 1.0, other: 4.0}
    assert module._span(seconds, 1) == 10
    monkeypatch.setattr(module, "_START", 0.0)
    assert module._span(seconds, 2) == 6, "layers of a stack one after the other, the other method beside them"
    assert module._span({two: 2.0, other: 4.0}, 2) == 4, "the layer below is stored"
    assert module._span({}, 2) == 0
    monkeypatch.setattr(module, "_START", 5.0)
    assert (module._span(seconds, 2), module._span(seconds, 1)) == (11, 10), "several processes have to start"


@pytest.mark.parametrize("seed", range(20))
def test_the_span_is_that_of_a_process_after_another(seed: int) -> None:
    """Against the definition: the free process takes the first of those units that it can begin the earliest."""
    rng = np.random.default_rng(seed)
    units = [Unit(method, "own", layer, s) for method in "abc" for s in range(4) for layer in (1, 2, 3)]
    seconds = {units[i]: float(rng.integers(1, 6)) for i in rng.permutation(len(units))[:30]}
    free, left, ends = [module._START] * 3, list(seconds), {}
    while left:
        now = free.pop(free.index(min(free)))
        starts = [max([now, *(ends.get(low, np.inf) for low in unit.below if low in seconds)]) for unit in left]
        unit = left.pop(int(np.argmin(starts)))
        ends[unit] = min(starts) + seconds[unit]
        free.append(ends[unit])
    assert module._span(seconds, 3) == max(ends.values())


def test_parts_of_the_time_on_several_processes() -> None:
    one, two, three = (Unit("cd", "own", layer, 0) for layer in (1, 2, 3))
    known = Estimate({one: 6.0, two: 2.0}, 4.0, 0, 0)
    assert [known.share(unit) for unit in (one, two, three)] == [3, 1, 0]
    assert Estimate({}, 0.0, 0, 0).share(one) == 0


def test_nothing_is_timed_for_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records.compute(SMALL, tmp_path, jobs=1)
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(module, "_fastest", lambda *_: pytest.fail("timed"))
    assert records.expected(SMALL, tmp_path) == ({}, 0, 0, 0)
    more = dataclasses.replace(SMALL, seeds=(3, 4))
    monkeypatch.setattr(module, "_fastest", lambda *_: 1.0)
    assert {unit.seed for unit in records.expected(more, tmp_path).seconds} == {4}
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.compiled
def test_it_comes_true(monkeypatch: pytest.MonkeyPatch) -> None:
    study = dataclasses.replace(
        SMALL, n_images=400, layers=(30, 30), methods=("cd", "lea-mvd", "cma-es"), inputs=("own",),
        reading=Reading(n_gen=10), training=Training(),
    )  # fmt: skip
    monkeypatch.setattr(module.time, "perf_counter", time.process_time)  # others are at work here
    monkeypatch.setattr(module, "thread_count", lambda _: 1)
    with module._threads(1):
        for _ in computed(study):
            pass  # loads what is needed
        expected = estimate(tasks(study), set(), images(study), jobs=1)
        start = time.process_time()
        for _ in computed(study):
            pass
        took = time.process_time() - start
    assert took / 2.5 < expected.total < took * 2.5


def test_memory_and_disk_are_those_of_the_arrays(tmp_path: Path) -> None:
    study = dataclasses.replace(
        SMALL, n_images=1000, side=14, layers=(60,), methods=("cd", "lea-mvd", "cma-es", "random"), inputs=("own",)
    )
    study = dataclasses.replace(study, layers=(6,), reading=Reading(n_gen=2, population_size=24))
    known = tasks(study)
    for unit, task in known.items():
        units.advance(task, images(study), [])  # imports
        tracemalloc.start()
        data = images(study)
        tracemalloc.reset_peak()
        part = units.advance(task, data, [])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        sizes = module._sizes(unit, known, data)
        assert peak / 2.5 < module._memory(task, sizes, data) < 2.5 * peak, unit
        stored = len(part.records) + len(part.arrays)
        assert stored / 1.5 < module._disk(task, sizes, 1.0) - module._MANIFEST_BYTES < 1.5 * stored, unit
    n = n_parameters(784, 500)
    large = Task("cma-es", 1, 500, 0, "probabilities", Training(), Reading())
    assert module._memory(large, [784, 500], data) > 32 * n**2


def test_threads_are_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    numba.set_num_threads(numba.config.NUMBA_NUM_THREADS)  # whatever other tests have left
    allowed = numba.get_num_threads()
    assert allowed > 1
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "7")
    with module._threads(1):
        assert (os.environ["LOKY_MAX_CPU_COUNT"], numba.get_num_threads()) == ("1", 1)
    assert (os.environ["LOKY_MAX_CPU_COUNT"], numba.get_num_threads()) == ("7", allowed)
    monkeypatch.delenv("LOKY_MAX_CPU_COUNT")
    with module._threads(1):
        pass
    assert "LOKY_MAX_CPU_COUNT" not in os.environ


SHORT = ("-p", "n_images=40", "-p", "layers=6,5", "-p", "n_gen=2", "-p", "methods=cd,lea-mvd", "-p", "seeds=3,4")


def test_a_dry_run_shows_what_is_left_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run", lambda *_: pytest.fail("ran"))
    monkeypatch.chdir(tmp_path)
    command = ["reproduce", "mnist-7x7", *SHORT, "--dry-run"]
    result = CliRunner().invoke(cli.main, command)
    assert result.exit_code == 0, result.output
    lines = result.output.splitlines()
    assert lines[0].startswith(
        "03_mnist_7x7: Images of 7×7 pixels: LEA-MVD, CMA-ES and contrastive divergence (expected"
    )
    table = {line.split(", ")[0]: line.split()[-4:] for line in lines[2:4]}
    assert table["cd"][:2] == ["4", "0"]
    assert table["lea-mvd"][:2] == ["6", "0"]
    for part in ("\nnotebook  ", "\nmemory: ", "\ndisk: ", "\ndevice: numpy on cpu\n"):
        assert part in result.output
    assert list(tmp_path.iterdir()) == []

    half = study("mnist-7x7", "quick", n_images=40, layers=(6, 5), n_gen=2, methods=("cd", "lea-mvd"), seeds=(3,))
    records.compute(half, tmp_path / "results", jobs=1)
    lines = CliRunner().invoke(cli.main, command).output.splitlines()
    table = {line.split(", ")[0]: line.split()[-4:] for line in lines[2:4]}
    assert table["cd"][:2] == ["4", "2"]
    assert table["lea-mvd"][:2] == ["6", "3"]


def test_sections_without_studies_are_estimated_for_their_parameters(tmp_path: Path) -> None:
    def seconds(*settings: str) -> float:
        command = ["reproduce", *settings, "--dry-run", "--output", str(tmp_path / "none")]
        result = CliRunner().invoke(cli.main, command)
        assert result.exit_code == 0, result.output
        number, unit = result.output.rpartition("in all")[2].split()
        return float(number) * {"s": 1, "min": 60, "h": 3600, "days": 86400}[unit]

    assert seconds("esd", "-p", "n_tournaments=20000000") > seconds("esd", "-p", "n_tournaments=1000")
    assert seconds("directions", "-p", "n_populations=100000") > 3 * seconds("directions", "-p", "n_populations=10")
    assert seconds("directions", "-p", "n_gen=10000") > 3 * seconds("directions", "-p", "n_gen=20")
    measured = ("linear-cost", "-p", "source=measured")
    assert seconds(*measured) > seconds(*measured, "-p", "methods=leamvd") > seconds("linear-cost")
    assert list(tmp_path.iterdir()) == []


def test_methods_that_cost_the_same_are_timed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    own = ("sigma0=0.01", "x0=none", "x0=batch", "initial_weights=uniform+weight_scale=0.2", "learning_rate=0.5")
    crossed = (*TINY.methods, *(f"lea-mvd:{setting}" for setting in own), "cd:weight_scale=0.01", "cd:learning_rate=0")
    study = dataclasses.replace(TINY, training=Training(n_elite=2, dtype="float64", batch_size=16))
    timed = []
    for methods in (TINY.methods, crossed):
        for name in TIMED:
            getattr(module, name).cache_clear()
        given = dataclasses.replace(study, methods=methods)
        estimate(tasks(given), set(), images(given), jobs=2)
        timed.append([getattr(module, name).cache_info().misses for name in TIMED])
    assert timed[0] == timed[1]
    different = dataclasses.replace(study, methods=(*TINY.methods, "cd:batch_size=7"))
    estimate(tasks(different), set(), images(different), jobs=2)
    assert module._epoch.cache_info().misses > timed[0][TIMED.index("_epoch")]


def test_points_that_are_kept_in_a_box_are_timed_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = set()
    real = Training.optimizer

    def optimizer(self: Training, method: str, x0: Array, *, reading: Reading, seed: int) -> Optimizer:
        seen.add((self.x0, reading.limits))
        return real(self, method, x0, reading=reading, seed=seed)

    monkeypatch.setattr(Training, "optimizer", optimizer)
    methods = ("lea-mvd:x0=none+limits=clip", "lea-mvd:x0=none")
    given = dataclasses.replace(TINY, methods=methods, training=Training(n_elite=2))
    estimate(tasks(given), set(), images(given), jobs=1)
    assert ("none", "clip") in seen
    assert ("epochs", "first") in seen, "elsewhere the start solution costs nothing, and is timed once"


def test_torch_is_not_imported_where_it_computes_nothing(tmp_path: Path) -> None:
    program = (
        "import sys; from click.testing import CliRunner; from leamvd import cli;"
        f"result = CliRunner().invoke(cli.main, {['reproduce', 'mnist-7x7', *SHORT, '--dry-run']});"
        "print(result.exit_code, 'torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout == "0 False\n"


@pytest.mark.parametrize("cost", [1e-9, 1e-6, 1e-4], ids=["all", "fewer images", "fewer rows"])
def test_few_images_and_rows_say_what_all_would(cost: float, monkeypatch: pytest.MonkeyPatch) -> None:
    now, asked = 0.0, 0

    class Objective:
        def __init__(self, V: Array, n_hidden: int, **options: Any) -> None:
            self.count = len(V)

        def __call__(self, X: Array) -> None:
            nonlocal now, asked
            now += cost * self.count * len(X)
            asked = max(asked, self.count * len(X))

    monkeypatch.setattr(module, "time", type("Clock", (), {"perf_counter": staticmethod(lambda: now)}))
    monkeypatch.setattr(module, "thread_count", lambda _: 2)
    monkeypatch.setattr(module, "ReconstructionObjective", Objective)
    module._evaluation.cache_clear()
    found = module._evaluation((9, 5), Training(), 24, 20_000)
    module._evaluation.cache_clear()
    assert found == pytest.approx(20_000 * cost)
    assert asked == {1e-9: 24 * 20_000, 1e-6: 24 * 8192, 1e-4: 2 * 2048}[cost]


def test_an_epoch_of_fine_tuning_is_timed_without_what_comes_before_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    def slow_to_begin(*arguments: Any, epochs: int, **options: Any) -> Iterator[None]:
        time.sleep(0.2)
        yield from [None] * epochs

    monkeypatch.setattr(module, "fine_tune", slow_to_begin)
    assert module._backpropagation.__wrapped__((4, 3), "float32", 4_000) < 0.2
