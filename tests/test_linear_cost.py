"""Section 5: what is measured, and what the tables make of costs that are known."""

import itertools
import math
import mmap
import sys
import time
from typing import Any

import cma
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from figures import assert_methods_have_their_colors, assert_sound, faces_drawn, faces_said
from leamvd._support.threads import thread_count
from leamvd.optimizers.cma_es import CMAES
from leamvd_paper.studies import linear_cost
from leamvd_paper.studies.results import provenance


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
