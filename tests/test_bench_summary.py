"""The summary of tables whose numbers follow from formulas, so that what it must say is known."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leamvd
from leamvd import bench
from leamvd.analysis.costs import growth
from leamvd.bench import Tables, networks, summary
from leamvd.bench import optimizers as run_optimizers
from leamvd.bench import parts as run_parts
from leamvd.book.sections import NOTEBOOKS
from leamvd.optimizers import directions, selection

BASELINES = {
    "pycma separable": ("float64", 9.5, 8.6),
    "evosax Open_ES": ("float32", 2.3, 1.9),
    "evosax Sep_CMA_ES": ("float32", 3.6, 2.7),
    "evosax CR_FM_NES": ("float32", 4.1, 5.0),
    "evotorch SNES": ("float32", 2.0, 2.6),
    "evotorch CMAES (separable)": ("float32", 3.0, 3.4),
}
"""By method: its dtype, its time over that of the normals, its memory over the population's, at a large n."""

NORMAL = {"float32": 5e-9, "float64": 8e-9}  # seconds for each number
OWN = {"float32": 0.18, "float64": 0.35}  # times the normals


def _cost(method, dtype, n, threads, seconds, populations, **other):
    """A row in which a generation takes `seconds` and the peak is `populations` of 24 n numbers."""
    size = 24 * n * np.dtype(dtype).itemsize
    normal, copy = 24 * n * NORMAL[dtype], 24 * n * 0.04 * NORMAL[dtype] * (1 + (dtype == "float64"))
    row = {
        "method": method, "package": method.split()[0], "version": "1.0", "dtype": dtype, "threads": threads, "n": n,
        "population_size": 24, "rounds": 7, "status": "ok", "compile_seconds": 0.5, "generation_seconds": seconds,
        "generation_low": 0.98 * seconds, "generation_high": 1.03 * seconds, "normal_seconds": normal,
        "copy_seconds": copy, "ratio_to_normal": seconds / normal, "ratio_to_copy": seconds / copy,
        "peak_bytes": populations * size, "population_bytes": size,
    }  # fmt: skip
    return row | other


def optimizers():
    rows = []
    for dtype, largest in (("float32", 8), ("float64", 7)):
        for n in (10**k for k in range(3, largest + 1)):
            seconds = 24 * n * NORMAL[dtype] * OWN[dtype]
            rows.append(_cost("leamvd", dtype, n, 1, seconds + 3e-5, 1.25))
            if 10**5 <= n <= 10**7:
                rows.append(_cost("leamvd", dtype, n, 2, seconds / 1.9 + 3e-5, 1.25))
    for method, (dtype, time, populations) in BASELINES.items():
        for n in (10**3, 10**4, 10**5, 10**6):
            rows.append(_cost(method, dtype, n, 1, 24 * n * NORMAL[dtype] * time + 4e-4, populations))
    for n in (100, 300, 1000, 2000, 4000):
        rows.append(_cost("pycma full", "float64", n, 1, 1e-8 * n**2, 40 * n**2 / (24 * n * 8)))
    gone = dict.fromkeys(("generation_seconds", "normal_seconds", "copy_seconds", "ratio_to_normal", "ratio_to_copy",
                          "generation_low", "generation_high", "compile_seconds", "peak_bytes"), np.nan)  # fmt: skip
    refused = "refused: CMA-ES with a full covariance matrix of n=30000 variables needs 28,800,000,000 bytes"
    rows.append(_cost("pycma full", "float64", 30_000, 1, 0, 1, **gone | {"status": refused}))
    return pd.DataFrame(rows)


def objectives():
    rows = []
    for (v, h), part in zip(sum(networks.LAYERS.values(), ()), (0.93, 0.92, 0.95, 0.66, 0.63, 0.7), strict=True):
        flop = 4 * v * h * 10_000 * 24
        for backend, precision, threads, rate in (
            ("numpy", "float32", 1, 1.5e11), ("numpy", "float32", 2, 2.8e11), ("torch", "bfloat16", 2, 9e11),
        ):  # fmt: skip
            seconds = flop / rate / part
            rows.append(
                {
                    "n_visible": v, "n_hidden": h, "dtype": "float32", "backend": backend, "precision": precision,
                    "threads": threads, "device": "cpu", "n_images": 10_000, "population_size": 24, "rounds": 7,
                    "status": "ok", "seconds": seconds, "product_seconds": part * seconds,
                    "direct_seconds": 4 * seconds, "fraction_of_products": part, "speedup_over_direct": 4.0,
                    "flop": flop,
                }
            )  # fmt: skip
    return pd.DataFrame(rows)


def parts():
    names = ("generation", "first_pass", "second_pass", "words", "normals", "perturbation")
    seconds = {f"{name}_seconds": x for name, x in zip(names, (10.0, 3.0, 6.0, 1.0, 2.5, 0.5), strict=True)}
    rows = [(n, dtype) for n in (1_000, 1_000_000) for dtype in ("float32", "float64")]
    return pd.DataFrame([{"n": n, "dtype": dtype, "threads": 1, "rounds": 7} | seconds for n, dtype in rows])


def training():
    common = {"n_images": 60_000, "n_visible": 784, "n_hidden": 500, "batch_size": 100, "dtype": "float32", "rounds": 7}
    rows = [("leamvd", 1, 2.0, 1.7, 2.4), ("scikit-learn", 1, 4.8, 1.7, 1.0), ("scikit-learn", 2, 4.4, 1.1, 1.0)]
    names = ("trainer", "threads", "seconds", "product_seconds", "ratio_to_sklearn")
    table = pd.DataFrame([dict(zip(names, row, strict=True)) | common for row in rows])
    return table.assign(fraction_of_products=table["product_seconds"] / table["seconds"])


def split():
    rows = [
        (section, layer, n, 10_000, 2, 7, *spread(2e-8 * n + 5e-5), *spread(24 * 4e4 * n / 1.5e11))
        for section, sizes in (("mnist-7x7", (1_549, 960, 3_750)), ("mnist-28x28", (393_284, 251_000, 1_002_500)))
        for layer, n in enumerate(sizes, start=1)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=networks.COLUMNS["split"])


def spread(seconds):
    """Return a median and its quartiles."""
    return seconds, 0.9 * seconds, 1.2 * seconds


MACHINE = {
    "processor": "invented for the tests, not measured", "cores": 2, "memory_bytes": 24e9, "system": "Linux",
    "python": "3.11.7", "versions": {"leamvd": "0.1.0", "numpy": "2.0.0"}, "date": "2026-11-21", "commit": "0" * 12,
    "code": "0" * 16, "seconds": 600.0, "load": 0.1, "profile": "paper", "left_out": ["evotorch SNES"],
    "failures": {},
}  # fmt: skip


def tables(**changed):
    made = {f.__name__: f() for f in (optimizers, parts, objectives, training, split)}
    return Tables(**made | {"machine": MACHINE} | changed)


def powers(method="leamvd", dtype="float32", sizes=(10**4, 10**5, 10**6), time=1.0, memory=1.0, **other):
    """Rows whose time and peak memory are powers of n."""
    rows = [_cost(method, dtype, n, 1, 1e-8 * n**time, 1.2 * n ** (memory - 1)) for n in sizes]
    return pd.DataFrame(rows).assign(**other)


# ---- tables


def test_slopes_stand_side_by_side():
    rows = summary.slopes(pd.concat([powers(time=1.1, memory=0.9), powers("pycma full", "float64", time=2.5)]))
    assert list(rows) == ["method", "dtype", "sizes", "from n", "to n", "time", "memory"]
    assert rows["method"].tolist() == ["leamvd", "pycma full"]
    assert rows["time"].tolist() == pytest.approx([1.1, 2.5])
    assert rows["memory"].tolist() == pytest.approx([0.9, 1])


def test_ratios_keep_the_ends_of_the_sizes_that_most_have_and_put_the_fastest_first():
    rows = summary.ratios(optimizers())
    assert sorted(rows["n"].unique()) == [10**3, 10**6]
    order = list(rows["label"].unique())
    assert order[:2] == ["leamvd, float32", "leamvd, float64"]
    assert order[-1] == "pycma separable, float64"
    assert "pycma full, float64" not in order  # which was measured at one of them
    last = rows[rows["n"] == 10**6].set_index("label")
    assert last["time"].is_monotonic_increasing
    assert last.loc["evosax Sep_CMA_ES, float32", ["time", "memory"]].tolist() == pytest.approx([3.6, 2.7], rel=1e-2)
    np.testing.assert_allclose(last["low"], 0.98 * last["time"])
    np.testing.assert_allclose(last["high"], 1.03 * last["time"])


def test_baselines_are_compared_in_their_own_dtype_at_the_largest_common_size():
    own = [powers(dtype=dtype, sizes=(1000, 10_000, 100_000)) for dtype in ("float32", "float64")]
    baseline = powers("pycma separable", "float64", sizes=(1000, 10_000))
    baseline["generation_seconds"] *= [2, 3]
    baseline["peak_bytes"] *= [4, 5]
    rows = summary.baselines(pd.concat([baseline, *own]))
    assert rows["method"].tolist() == ["leamvd", "leamvd", "pycma separable"]
    assert rows["n"].tolist() == [100_000, 100_000, 10_000]
    assert rows["time / LEA-MVD's"].tolist() == pytest.approx([1, 1, 3])
    assert rows["memory / LEA-MVD's"].tolist() == pytest.approx([1, 1, 5])
    assert rows["seconds"].tolist() == pytest.approx([1e-3, 1e-3, 3e-4])
    assert rows["MB"].tolist() == pytest.approx([1.2 * 9.6, 1.2 * 19.2, 5 * 1.2 * 1.92])
    assert rows["time / normals"].tolist() == pytest.approx(
        [1e-8 / 24 / NORMAL[d] for d in ("float32", *2 * ["float64"])]
    )


def test_the_full_matrix_goes_on_with_the_square_to_where_it_is_refused():
    line = summary.full_matrix(optimizers())
    assert line["n"].tolist() == [4000, 30_000]
    assert line["bytes"].tolist() == pytest.approx([40 * 4000**2, 40 * 30_000**2])
    assert summary.full_matrix(optimizers().query("status == 'ok'")).empty
    assert summary.full_matrix(powers()).empty


def test_gaps_say_why():
    (row,) = summary.gaps(optimizers()).to_dict("records")
    assert (row["method"], row["n"]) == ("pycma full", 30_000)
    assert row["why"].startswith("refused: CMA-ES with a full")


def test_shares_and_rates():
    shares = summary.shares(pd.DataFrame({"optimizer_seconds": [1.0], "objective_seconds": [3.0]}))
    assert shares["percent"].tolist() == [25]
    rows = summary.rates(objectives())
    assert rows["GFLOP/s"].max() == pytest.approx(900 * 0.95)
    assert rows["% of the products' rate"].tolist()[:4] == pytest.approx([93, 93, 93, 92])
    assert len(summary.rates(objectives().assign(status=["ok"] * 3 + ["failed: MemoryError"] * 15))) == 3


def test_parts_add_up_to_a_generation():
    rows = summary.parts(parts())
    assert list(rows)[:2] == ["n = 1,000, float32", "n = 1,000, float64"]
    assert rows["n = 1,000, float32"].tolist() == pytest.approx([30, 10, 15, 5, 30, 10])
    assert rows.sum().tolist() == pytest.approx([100] * 4)


def test_epochs_are_those_on_most_images():
    small = training().assign(n_images=10_000, n_visible=49, n_hidden=30, seconds=0.1)
    rows = summary.epochs(pd.concat([training(), small]))
    assert rows["seconds of an epoch"].tolist() == [2.0, 4.8, 4.4]
    assert rows["seconds of its products"].tolist() == [1.7, 1.7, 1.1]


def test_machine_says_what_it_was_measured_on():
    rows = summary.machine(tables())["measured on"]
    assert rows["processor"] == "invented for the tests, not measured, 2 cores, 24.0 GB"
    assert rows["versions"] == "leamvd 0.1.0, numpy 2.0.0"
    assert rows["run"] == "paper profile, 10.0 minutes, load 0.1 before"
    assert rows["made by"] == "leamvd bench --profile paper"
    assert rows["not installed"] == "evotorch SNES"
    assert summary.machine(tables(machine=MACHINE | {"left_out": []})).loc["not installed"].item() == "–"


# ---- numbers for pages


def test_numbers_are_those_of_the_tables():
    values = summary.numbers(tables())
    assert values["parts-random-least"] == values["parts-random-most"] == pytest.approx(25)
    percent = summary.shares(split())["percent"]
    assert (values["split-least"], values["split-most"]) == pytest.approx((percent.min(), percent.max()), rel=1e-5)
    assert (values["objective-least"], values["objective-most"]) == pytest.approx((63, 95))
    assert (values["c1"], values["c2"]) == ("reproduced", "reproduced")
    assert 0.95 < values["c1-least"] < values["c1-most"] < 1.05
    assert values["c2-least"] == values["c2-most"] == pytest.approx(2)


def test_the_others_are_compared_with_ours_in_their_dtype():
    values = summary.numbers(tables())
    assert (values["others-small-n"], values["others-n"]) == (10**3, 10**6)
    time = [part / OWN[dtype] for dtype, part, _ in BASELINES.values()]
    assert (values["others-time-least"], values["others-time-most"]) == pytest.approx((min(time), max(time)), rel=1e-2)
    assert (values["others-memory-least"], values["others-memory-most"]) == pytest.approx((1.9 / 1.25, 8.6 / 1.25))
    small = [(24e3 * NORMAL[d] * part + 4e-4) / (24e3 * NORMAL[d] * OWN[d] + 3e-5) for d, part, _ in BASELINES.values()]
    assert values["others-small-least"] == pytest.approx(min(small), rel=1e-5)
    assert 0.8 < values["others-slope-least"] < values["others-slope-most"] < 1
    own = growth(tables().optimizers).query("method == 'leamvd' and cost == 'time'")["slope"]
    assert [values["own-slope-least"], values["own-slope-most"]] == pytest.approx([own.min(), own.max()], rel=1e-5)
    assert values["full-n"] == 4_000, "30,000 are refused"


def test_the_objectives_numbers_are_of_numpy_alone():
    rows = objectives()
    rows.loc[rows["backend"] == "torch", "fraction_of_products"] = 1.5
    assert summary.numbers(tables(objectives=rows))["objective-most"] == pytest.approx(95)


def test_what_was_not_measured_is_nan_or_no_row():
    empty = tables(**{name: getattr(tables(), name).iloc[:0] for name in Tables._fields if name != "machine"})
    values = summary.numbers(empty)
    assert (values.pop("c1"), values.pop("c2")) == ("not yet run", "not yet run")
    assert all(map(np.isnan, values.values()))
    for made in (summary.slopes, summary.baselines, summary.gaps, summary.ratios, summary.full_matrix):
        assert made(empty.optimizers).empty


def test_the_first_page_pastes_pycmas_methods_and_the_fastest_other():
    own = [powers(dtype=dtype, sizes=(1000, 10_000)) for dtype in ("float32", "float64")]
    others = {"pycma separable": 4, "pycma full": 9, "slow": 3, "fast": 2}
    made = [powers(name, "float64", sizes=(1000, 10_000)) for name in others]
    for table, factor in zip(made, others.values(), strict=True):
        table["generation_seconds"] *= factor
        table["peak_bytes"] *= factor + 0.5
    found = summary.beside(pd.concat([*own, *made]))
    assert found == {
        "other": "fast", "other-n": 10_000, "other-time": 2, "other-memory": 2.5,
        "sep-cma-es-n": 10_000, "sep-cma-es-time": 4, "sep-cma-es-memory": 4.5,
        "cma-es-n": 10_000, "cma-es-time": 9, "cma-es-memory": 9.5,
    }  # fmt: skip


def test_the_recorded_run_can_be_read():
    tables = bench.read(NOTEBOOKS / "recorded" / "linear_cost")
    for name, columns in (run_optimizers.COLUMNS | run_parts.COLUMNS | networks.COLUMNS).items():
        assert set(columns) <= set(getattr(tables, name))
    values = summary.numbers(tables)
    assert (values.pop("c1"), values.pop("c2")) == ("reproduced", "reproduced")
    assert not any(map(np.isnan, values.values()))
    assert len(summary.baselines(tables.optimizers)) == 14


# ---- the page on many machines


PAGE = (Path(__file__).parent.parent / "book" / "scale.md").read_text(encoding="utf-8")


def test_scale_follows_from_the_largest_run():
    values = summary.numbers(tables())
    seconds = 24 * NORMAL["float32"] * OWN["float32"] + 3e-13
    assert values["scale-n"] == 10**8
    assert values["scale-nanoseconds"] == pytest.approx(1e9 * seconds, rel=1e-5)
    assert values["scale-bytes"] == pytest.approx(1.25 * 24 * 4)
    assert values["scale-operations"] == pytest.approx(seconds * 0.95 * 1.5e11 / 24, rel=1e-5)
    assert values["scale-seconds-1e10"] == pytest.approx(seconds * 1e10 / 64, rel=1e-5)
    pasted = set(re.findall(r"05_linear_cost\.ipynb::([\w-]+)", PAGE))
    assert pasted == {name for name in values if name.startswith("scale-")}


def test_the_page_divides_what_the_summary_divides():
    rows = re.findall(r"\* - \$10\^(?:\{(\d+)\}|(\d))\$\n  - (\d+)\n  - ([\d.]+) ([GT])B\n  - ([\d.]+) GB\n", PAGE)
    shards = {f"1e{long or short}": int(k) for long, short, k, *_ in rows}
    assert shards == summary.SHARDS
    for (_, _, k, whole, unit, part), n in zip(rows, map(float, shards), strict=True):
        total = 4 * (24 + 5) * n
        assert float(whole) * {"G": 1e9, "T": 1e12}[unit] == pytest.approx(total, rel=5e-3)
        assert float(part) * 1e9 == pytest.approx(total / int(k), rel=5e-3)


def test_inner_products_of_shards_add_up():
    """What the page wants all-reduced is all that pass one has to say beyond a column."""
    rng, n, cut, ir = np.random.default_rng(3), 5000, 2048, np.array([1, 5, 9, 20])
    X, order = rng.normal(size=(24, n)), rng.permutation(24)
    vectors = rng.normal(size=(3, n))  # x_best and C of the generation before, P
    weights = selection.fractional_tournament(24, 1.5)

    def scan(columns):
        previous, descent, path = (v[columns].copy() for v in vectors)
        part = np.ascontiguousarray(X[:, columns])
        mean, std = np.empty((2, part.shape[1]))
        own = directions.Vectors(mean=mean, std=std, path=path, descent=descent, previous=previous)
        return directions.scan(part, order, weights, ir, own)

    whole, left, right = (scan(columns) for columns in (slice(None), slice(cut), slice(cut, None)))
    for name in ("rows", "path_path", "path_descent", "descent_descent", "std_square"):
        np.testing.assert_allclose(
            getattr(left, name) + getattr(right, name), getattr(whole, name), rtol=1e-9, atol=1e-9
        )
    assert max(left.std_max, right.std_max) == whole.std_max
    assert whole.rows.shape == (24, len(ir) + 2)


def test_eight_vectors_are_a_checkpoint():
    """The rows that are not elites matter to nothing: the page's checkpoint leaves them out."""
    opts = [leamvd.LEAMVD(np.ones(300), seed=5, n_gen=20) for _ in range(2)]
    for _ in range(5):
        X = opts[0].ask()
        opts[0].tell(X, (X**2).sum(axis=1))
    state = opts[0].state
    population = state.population.copy()
    population[opts[0].n_elite :] = 7.0
    opts[1].state = state._replace(population=population)
    for _ in range(3):
        X, Y = (opt.ask() for opt in opts)
        np.testing.assert_array_equal(X, Y)
        for opt in opts:
            opt.tell(X.copy(), (X**2).sum(axis=1))
