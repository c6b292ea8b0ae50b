"""Section 5: what is measured, and what the tables make of costs that are known."""

import itertools
import math
import mmap
import sys
import time
from typing import Any
from unittest import mock

import cma
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from figures import assert_methods_have_their_colors, assert_sound, faces_drawn, faces_said
from leamvd._support.threads import thread_count
from leamvd.optimizers.cma_es import CMAES
from leamvd_paper.studies import linear_cost
from leamvd_paper.studies.plots import COLORS
from leamvd_paper.studies.results import provenance, read_recorded


def costs(
    power: float, *, method: str = "lea-mvd", factor: float = 1.0, sizes: tuple[int, ...] = ()
) -> pd.DataFrame:
    """Return made measurements whose time and memory are proportional to a power of n; n normals
    take n / 1000 s.
    """
    n = np.array(sizes or (1_000, 10_000, 100_000, 1_000_000))
    seconds = factor * n**power / 1000
    columns = {
        "method": method,
        "dtype": "float64",
        "n": n,
        "threads": 1,
        "status": "ok",
        "generation_low": seconds / 2,
        "generation_seconds": seconds,
        "generation_high": seconds * 2,
        "normal_seconds": n / 1000,
        "peak_bytes": 300 * factor * n**power,
        "population_bytes": 100 * n,
    }
    return pd.DataFrame(columns)


@pytest.mark.parametrize("power", [1.0, 2.0, 0.5])
def test_a_slope_is_the_power_of_n(power: float) -> None:
    found = linear_cost.slopes(costs(power)).squeeze()
    assert found[["sizes", "from n", "to n"]].tolist() == [3, 10_000, 1_000_000]
    assert found[["time", "memory"]].tolist() == pytest.approx([power, power])


def test_the_last_decade_leaves_out_what_small_sizes_cost() -> None:
    table = costs(1.0)
    table.loc[table["n"] < 100_000, ["generation_seconds", "peak_bytes"]] = 1e9  # calls
    assert linear_cost.slopes(table)["time"].item() < 0
    found = linear_cost.slopes(table, last_decade=True).squeeze()
    assert (found["from n"], found["time"]) == (100_000, pytest.approx(1.0))


def test_one_size_has_no_slope_and_neither_has_what_failed() -> None:
    assert linear_cost.slopes(costs(1.0, sizes=(10_000,))).empty
    refused = costs(2.0).assign(status="refused: no room")
    assert linear_cost.slopes(refused).empty
    assert linear_cost.slopes(costs(2.0).assign(threads=2)).empty


def test_costs_are_compared_at_the_same_size_and_dtype() -> None:
    both = pd.concat(
        [costs(1.0), costs(1.0, method="sep-cma-es", factor=4.0), costs(2.0, method="cma-es")]
    )
    found = linear_cost.relative(both).set_index(["method", "n"])
    assert found.loc["sep-cma-es", [*linear_cost.BESIDE]].to_numpy() == pytest.approx(4.0)
    assert found.loc[("cma-es", 1_000), [*linear_cost.BESIDE]].tolist() == pytest.approx(
        [1_000, 1_000]
    )
    assert found.loc[("sep-cma-es", 1_000), ["time", "low", "high", "memory"]].tolist() == [
        4.0,
        2.0,
        8.0,
        12.0,
    ]
    single = pd.concat([costs(1.0), costs(1.0, method="sep-cma-es").assign(dtype="float32")])
    assert (
        linear_cost.relative(single)
        .query("method == 'sep-cma-es'")[[*linear_cost.BESIDE]]
        .isna()
        .all(axis=None)
    )


def test_works_take_turns_and_short_ones_are_repeated() -> None:
    done = []

    def work(name: str, seconds: float) -> float:
        done.append(name)
        return seconds

    works = {"long": lambda: work("long", 3.0), "short": lambda: work("short", 0.004)}
    found = linear_cost.alternate(works, rounds=2)
    assert done == ["long", "short", *2 * ["long", "short", "short", "short"]]
    assert found["long"].tolist() == [3.0, 3.0]
    assert found["short"] == pytest.approx(0.004)


def test_cma_es_takes_the_mean_from_one_decomposition_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # a clock that stands still but for decompositions
    sampler, now = cma.sampler.GaussFullSampler, [0.0]
    decompose = sampler._decompose_C

    def slow(self: Any) -> None:
        now[0] += 6.0
        decompose(self)

    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    monkeypatch.setattr(sampler, "_decompose_C", slow)
    opt = CMAES(np.ones(300), seed=0)
    assert [linear_cost.generation(opt) for _ in range(4)] == [
        0.0,
        2.0,
        2.0,
        2.0,
    ], "three generations each"
    assert (opt.generation, opt.decomposition_gap) == (12, 3)
    assert CMAES(np.ones(300), diagonal=True).decomposition_gap == 1


def test_a_peak_is_of_what_was_held_at_once() -> None:
    def work() -> None:
        for _ in range(3):
            np.ones(5_000_000)  # 40 MB, freed each time

    peak = linear_cost.peak_bytes(work)
    assert 35e6 < peak < 60e6 if sys.platform == "linux" else math.isnan(peak)


@pytest.mark.skipif(sys.platform != "linux", reason="of /proc")
def test_memory_is_counted_in_bytes() -> None:
    assert linear_cost._memory("VmRSS") % mmap.PAGESIZE == 0, "of whole pages"


def test_each_optimizer_has_the_dtype_that_its_row_names() -> None:
    for method, dtypes in linear_cost.DTYPES.items():
        for dtype in dtypes:
            X = linear_cost.optimizer(method, 10, dtype).ask()
            assert (np.shape(X), np.asarray(X).dtype) == ((24, 10), dtype)


@pytest.mark.parametrize("method", ["lea-mvd", "sep-cma-es", "cma-es"])
def test_each_method_is_measured(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock whose looks are further and further apart: look k is at k^2 seconds.

    A round has looks k and k + 1 around `ask`, k + 2 for the objective, k + 3 and k + 4 around
    `tell`: 4 k + 8 seconds. Then k + 5 and k + 6 are around the normals, 2 k + 11 seconds, and the
    next of seven rounds begins at k + 7.
    """
    clock, einsum = itertools.count(), np.einsum
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(clock) ** 2))
    monkeypatch.setattr(np, "einsum", lambda *given: next(clock) and einsum(*given))
    monkeypatch.setattr(linear_cost, "NORMALS", 100)  # five rows of 24
    row = linear_cost.measure(method, 20, "float64").rows.squeeze()
    low, middle, high = row[["generation_low", "generation_seconds", "generation_high"]]
    assert (middle - low, high - middle) == (
        1.5 * 28,
        1.5 * 28,
    ), "quartiles of seven: one and a half rounds apart"
    assert row["normal_seconds"] == pytest.approx((middle / 2 + 7) * 24 / 5)
    assert (row["status"], row["population_bytes"]) == ("ok", 24 * 20 * 8)


def test_what_is_measured_runs_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = []
    work = lambda _: threads.append(thread_count(None)) or 1.0  # noqa: E731
    monkeypatch.setattr(linear_cost, "generation", work)
    row = linear_cost.measure("lea-mvd", 5, "float64").rows.squeeze()
    assert {*threads} == {row["threads"]} == {1}


def test_a_run_measures_what_it_is_asked_for(tmp_path) -> None:
    found = linear_cost.tables("quick", tmp_path, methods=["lea-mvd"], sizes=[10, 4_000])
    own = found.optimizers[["method", "dtype", "n"]].to_numpy().tolist()
    assert own == [["lea-mvd", dtype, n] for dtype in ("float32", "float64") for n in (10, 4_000)]
    again = linear_cost.tables("quick", tmp_path, methods=["lea-mvd"], sizes=[10, 4_000])
    pd.testing.assert_frame_equal(found.optimizers, again.optimizers)
    ends = linear_cost.summary(found)
    assert ends["n"].tolist() == [4_000, 4_000]
    assert (ends["memory / population"] > 0.9).all() or sys.platform != "linux", (
        "it holds its population"
    )


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"profile": "large"}, "profile"),
        ({"methods": ["adam"]}, "methods"),
        ({"sizes": [10, 0]}, "sizes"),
        ({"profile": "recorded", "sizes": [10]}, "sizes"),
    ],
)
def test_settings_are_refused_before_anything_is_measured(given: dict, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        linear_cost.tables(**{"profile": "quick"} | given)


def test_what_is_recorded_says_what_it_was_measured_on() -> None:
    assert linear_cost.tables().optimizers["n"].max() == 100_000_000
    known = provenance("linear_cost")
    assert {"processor", "versions"} <= known.keys()
    assert {"date", "cores"} <= known["settings"].keys()


def test_what_is_proportional_to_n_rises_at_45_degrees() -> None:
    growth = linear_cost.plot_growth(costs(1.0))
    growth.draw_without_rendering()
    for ax in growth.axes:
        (line,) = ax.lines
        ends = ax.transData.transform(line.get_xydata()[[0, -1]])
        right, up = ends[1] - ends[0]
        assert up == pytest.approx(right)
    plt.close("all")


def test_bars_of_time_reach_to_its_quartiles_and_memory_has_none() -> None:
    table = costs(1.0)
    figure = linear_cost.plot_growth(table)
    plt.close(figure)
    time, memory = figure.axes
    assert [ax.get_ylabel() for ax in (time, memory)] == ["time, seconds", "memory, bytes"]
    assert time.get_xlabel() == memory.get_xlabel() == "variables $n$"
    assert not memory.collections
    (bars,) = time.collections
    ends = [segment[:, 1] for segment in bars.get_segments()]
    np.testing.assert_allclose(ends, table[["generation_low", "generation_high"]])


def test_markers_of_figures_look_as_captions_say() -> None:
    both = pd.concat([costs(1.0), costs(1.0, factor=3).assign(dtype="float32")])
    said = faces_said("05_linear_cost", "costs-growth")
    growth = linear_cost.plot_growth(both)
    assert_sound(growth)
    assert_methods_have_their_colors(growth)
    for ax, cost in zip(growth.axes, linear_cost.COSTS.values(), strict=True):
        lines = {
            dtype: line[["n", cost]].to_numpy(dtype=float) for dtype, line in both.groupby("dtype")
        }
        assert faces_drawn(ax) == {
            tuple(line.ravel()): said[dtype] for dtype, line in lines.items()
        }
    plt.close("all")


def test_a_summary_is_of_each_methods_largest_size_by_its_time() -> None:
    slow = costs(1.0, method="sep-cma-es", factor=4.0, sizes=(1_000, 100_000))
    quick = costs(1.0, factor=2.0, sizes=(100_000, 1_000))
    single = costs(1.0, factor=8.0, sizes=(1_000, 10_000)).assign(dtype="float32")
    refused = costs(2.0, method="cma-es", sizes=(9_000_000,)).assign(status="refused: no room")
    whole = pd.concat([slow, quick, single, refused])
    found = linear_cost.summary(linear_cost.Tables(whole, whole, whole), profile="quick")
    expected = {
        "method": ["lea-mvd", "sep-cma-es", "lea-mvd"],
        "dtype": ["float64", "float64", "float32"],
        "n": [100_000, 100_000, 10_000],
        "generation_seconds": [200.0, 400.0, 80.0],
        "peak_bytes": [6e7, 1.2e8, 2.4e7],
        "time / normals": [2.0, 4.0, 8.0],
        "memory / population": [6.0, 12.0, 24.0],
        "time / LEA-MVD's": [1.0, 2.0, 1.0],
        "memory / LEA-MVD's": [1.0, 2.0, 1.0],
    }
    pd.testing.assert_frame_equal(found, pd.DataFrame(expected), check_dtype=False)


def test_slopes_of_each_method_and_dtype_are_in_the_order_of_the_table() -> None:
    whole = pd.concat(
        [
            costs(1.0, method="sep-cma-es", sizes=(9_999, 10_000, 20_000)),
            costs(2.0, sizes=(40_000, 10_000)),
            costs(0.5, sizes=(10_000, 99_999, 100_000)).assign(dtype="float32"),
        ]
    )
    whole["peak_bytes"] **= 2
    found = linear_cost.slopes(whole)
    assert found.iloc[:, :5].to_numpy().tolist() == [
        ["sep-cma-es", "float64", 2, 10_000, 20_000],
        ["lea-mvd", "float64", 2, 10_000, 40_000],
        ["lea-mvd", "float32", 3, 10_000, 100_000],
    ]
    assert found["time"].tolist() == pytest.approx([1, 2, 0.5])
    assert found["memory"].tolist() == pytest.approx([2, 4, 1])
    ends = linear_cost.slopes(whole, at_least=20_000, last_decade=True)
    assert ends.iloc[:, 1:5].to_numpy().tolist() == [["float32", 2, 99_999, 100_000]]


def test_a_plan_has_a_measurement_of_each_method_dtype_and_size() -> None:
    columns, calls = linear_cost.planned("quick")["optimizers"]
    expected = set()
    for method, sizes in linear_cost.SIZES["quick"].items():
        expected |= {*itertools.product([method], sizes, linear_cost.DTYPES[method])}
    assert {*calls} == expected
    for label, call in calls.items():
        assert call.function is linear_cost.measure
        assert call.arguments == dict(zip(columns, label, strict=True))
    some = linear_cost.planned("paper", methods=["cma-es", "lea-mvd"], sizes=[7])["optimizers"][1]
    assert [*some] == [
        ("cma-es", 7, "float64"),
        ("lea-mvd", 7, "float32"),
        ("lea-mvd", 7, "float64"),
    ]
    for given in ({"methods": []}, {"sizes": []}, {"methods": 2 * ["cma-es"]}, {"sizes": [9, 9]}):
        with pytest.raises(ValueError, match=next(iter(given))):
            linear_cost.planned("quick", **given)


@pytest.mark.parametrize("method", ["lea-mvd", "sep-cma-es", "cma-es"])
def test_all_methods_start_alike(method: str) -> None:
    X = np.asarray(linear_cost.optimizer(method, 500, "float64").ask())
    # the start itself may be in the first population
    steps = X[np.any(X != 1, axis=1)] - 1
    assert len(steps) >= 23
    assert steps.std() == pytest.approx(0.1, rel=0.05)
    assert abs(steps.mean()) < 5 * 0.1 / np.sqrt(steps.size)
    np.testing.assert_array_equal(X, linear_cost.optimizer(method, 500, "float64").ask())


def test_separable_cma_es_has_a_diagonal_matrix_and_keeps_no_files() -> None:
    opt = linear_cost.optimizer("sep-cma-es", 5, "float64")
    assert opt.opts["CMA_diagonal"] is True
    assert opt.opts["popsize"] == opt.popsize == 24
    assert opt.opts["verb_log"] == 0


def test_a_generation_is_told_the_values_of_the_sphere() -> None:
    class Told:
        def ask(self) -> list[list[float]]:
            return [[1.0, 2.0], [3.0, -4.0], [0.0, 0.0]]

        def tell(self, X: Any, F: Any) -> None:
            self.told = (X, F)

    opt = Told()
    assert linear_cost.generation(opt) >= 0
    assert opt.told == (opt.ask(), [5.0, 25.0, 0.0])


def test_a_size_is_measured_after_three_generations_at_that_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, drawn, make = [], [], linear_cost.optimizer

    def optimizer(method: str, n: int, dtype: str) -> Any:
        begun.append([method, n, dtype])
        return make(method, 3, dtype)

    class Numbers:
        def standard_normal(self, *, dtype: Any, out: np.ndarray) -> None:
            drawn.append((out.shape, np.dtype(dtype)))

    ran = []
    monkeypatch.setattr(linear_cost, "optimizer", optimizer)
    monkeypatch.setattr(linear_cost, "generation", lambda opt: ran.append(opt) or 1.0)
    monkeypatch.setattr(linear_cost, "peak_bytes", lambda work: [work(), 77.0][1])
    monkeypatch.setattr(np.random, "default_rng", lambda seed: Numbers())
    monkeypatch.setattr(np, "empty", lambda shape, dtype=float: np.zeros(shape, dtype))
    monkeypatch.setattr(linear_cost, "NORMALS", 2_000_002)
    row = linear_cost.measure("lea-mvd", 1_000_001, "float32").rows.squeeze()
    assert begun == [["lea-mvd", 1_000_000, "float32"], ["lea-mvd", 1_000_001, "float32"]]
    # three of each, one that tells how often it is repeated, and seven rounds
    assert [len({*map(id, ran[:3])}), len(ran)] == [1, 3 + 3 + 8]
    assert len({*map(id, ran[3:])}) == 1, "of the optimizer whose memory was measured"
    assert {*drawn} == {((2, 1_000_001), np.dtype("float32"))}
    assert row["peak_bytes"] == 77
    assert row["population_bytes"] == 24 * 1_000_001 * 4
    assert row["generation_seconds"] == 1


@pytest.mark.parametrize(("before", "peak"), [(10.0, 5.0), (5.0, np.nan), (4.0, np.nan)])
def test_a_peak_is_above_what_was_there_or_not_known(
    before: float, peak: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"VmRSS": before, "VmHWM": 15.0 if before == 10 else 5.0 if before == 5 else 3.0}
    monkeypatch.setattr(linear_cost, "_memory", known.__getitem__)
    monkeypatch.setattr(linear_cost.Path, "write_text", lambda *_: None)
    monkeypatch.setattr(linear_cost.ctypes, "CDLL", mock.Mock())
    done = []
    found = linear_cost.peak_bytes(lambda: done.append(1))
    np.testing.assert_equal(found, peak)
    assert done == [1]


@pytest.mark.parametrize("error", [OSError, AttributeError, TypeError])
def test_where_memory_cannot_be_read_it_is_not_a_number_and_the_work_is_done(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linear_cost.ctypes, "CDLL", mock.Mock(side_effect=error))
    done = []
    assert math.isnan(linear_cost.peak_bytes(lambda: done.append(1)))
    assert done == [1]


def test_a_work_that_takes_no_time_is_still_done() -> None:
    done = []
    found = linear_cost.alternate({"one": lambda: done.append(1) or 0.01})
    assert (len(done), len(found["one"])) == (1 + 7, 7)


def test_every_profile_has_the_recorded_tables_that_it_does_not_measure(tmp_path: Any) -> None:
    found = linear_cost.tables("quick", tmp_path, methods=["lea-mvd"], sizes=[3])
    recorded = linear_cost.tables()
    for name in ("parts", "split"):
        known = read_recorded("linear_cost", name)
        for tables in (found, recorded):
            pd.testing.assert_frame_equal(getattr(tables, name), known)
    assert {*linear_cost.DTYPES} <= {*recorded.optimizers["method"]}
    for given in ({"methods": ["lea-mvd"]}, {"sizes": [3]}):
        with pytest.raises(ValueError, match=next(iter(given))):
            linear_cost.tables("recorded", **given)


def test_growth_is_drawn_thick_in_its_color_or_thin_and_gray() -> None:
    whole = pd.concat([costs(1.0, factor=3), costs(2.0, method="adam", sizes=(1_000, 10_000))])
    whole = pd.concat([whole, costs(3.0).assign(threads=2), costs(3.0).assign(status="failed")])
    figure = linear_cost.plot_growth(whole.sample(frac=1, random_state=1))
    for ax, cost in zip(figure.axes, linear_cost.COSTS.values(), strict=True):
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        other, own = sorted(ax.lines, key=lambda line: len(line.get_xdata()))
        for line, factor, power in ((own, 3, 1.0), (other, 1, 2.0)):
            n = np.array([1_000, 10_000, 100_000, 1_000_000][: len(line.get_xdata())])
            table = costs(power, factor=factor, sizes=tuple(n))
            np.testing.assert_allclose(line.get_xydata(), table[["n", cost]])
        assert own.get_color() == COLORS["lea-mvd"]
        assert other.get_color() == "0.6"
        assert own.get_linewidth() > other.get_linewidth()
        assert own.get_markersize() > other.get_markersize()
        assert own.get_zorder() > other.get_zorder()
        assert not ax.texts, "nothing is refused"
    told = [text.get_text() for text in figure.legends[0].texts]
    assert told == ["others", "LEA-MVD"]
    plt.close("all")
