"""The report on tables whose every number follows from a law, so that what it must say is known."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import leamvd
from leamvd.bench import Tables, report, sentences
from leamvd.optimizers import directions, selection

PEERS = {
    "pycma separable": ("float64", 9.5, 8.6),
    "evosax Open_ES": ("float32", 2.3, 1.9),
    "evosax Open_ES (compiled loop)": ("float32", 1.9, 1.9),
    "evosax Sep_CMA_ES": ("float32", 3.6, 2.7),
    "evosax CR_FM_NES": ("float32", 4.1, 5.0),
    "evotorch SNES": ("float32", 2.0, 2.6),
    "evotorch CMAES (separable)": ("float32", 3.0, 3.4),
    "pypop7 CDE": ("float64", 1.5, 2.2),
    "pypop7 LMCMA": ("float64", 1.9, 1.9),
    "pypop7 SNES": ("float64", 2.5, 3.3),
    "pypop7 SEPCMAES": ("float64", 2.5, 2.9),
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
    for method, (dtype, time, populations) in PEERS.items():
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
    for (v, h), part in zip(
        (*report.LARGE_SHAPES, *report.SMALL_SHAPES), (0.93, 0.92, 0.95, 0.66, 0.63, 0.7), strict=True
    ):
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


def probe():
    rows = [
        (trainer, seed, 5, "MNIST", 60_000, 500, 0.95, 0.94 + 0.001 * seed + above)
        for trainer, above in (("leamvd", 0.001), ("scikit-learn", 0.0)) for seed in range(5)
    ]  # fmt: skip
    names = "trainer", "seed", "epochs", "dataset", "n_images", "n_hidden", "train_accuracy", "test_accuracy"
    return pd.DataFrame(rows, columns=names)


def split():
    rows = [
        (section, "MNIST", layer, n, 10_000, 2, 2e-8 * n + 5e-5, 24 * 4e4 * n / 1.5e11)
        for section, sizes in (("mnist-7x7", (1_549, 960, 3_750)), ("mnist-28x28", (393_284, 251_000, 1_002_500)))
        for layer, n in enumerate(sizes, start=1)
    ]  # fmt: skip
    names = "section", "dataset", "layer", "n", "n_images", "threads", "optimizer_seconds", "objective_seconds"
    return pd.DataFrame(rows, columns=names)


MACHINE = {
    "processor": "invented for the tests, not measured", "cores": 2, "memory_bytes": 24e9, "system": "Linux",
    "python": "3.11.7", "versions": {"leamvd": "0.1.0", "numpy": "2.0.0"}, "date": "2026-11-21", "commit": "0" * 12,
    "code": "0" * 16, "seconds": 600.0, "load": 0.1, "profile": "paper", "left_out": ["pypop7 CDE"],
    "failures": {},
}  # fmt: skip


def tables(**changed):
    made = {f.__name__: f() for f in (optimizers, parts, objectives, training, probe, split)}
    return Tables(**made | {"machine": MACHINE} | changed)


def power_law(method="leamvd", dtype="float32", sizes=(10**4, 10**5, 10**6), time=1.0, memory=1.0, **other):
    """Rows whose time and peak memory are powers of n."""
    rows = [_cost(method, dtype, n, 1, 1e-8 * n**time, 1.2 * n ** (memory - 1)) for n in sizes]
    return pd.DataFrame(rows).assign(**other)


# ---- tables


def test_slopes_are_the_exponents_of_the_laws():
    laws = {"leamvd": (1.0, 1.0), "pycma full": (2.3, 2.0), "pypop7 CDE": (1.1, 0.9)}
    table = pd.concat(power_law(method, time=time, memory=memory) for method, (time, memory) in laws.items())
    fits = report.slopes(table).set_index("method")
    for method, (time, memory) in laws.items():
        assert fits.loc[method, "time"] == pytest.approx(time)
        assert fits.loc[method, "memory"] == pytest.approx(memory)
    assert set(fits["sizes"]) == {3}
    assert (fits["from n"].min(), fits["to n"].max()) == (10**4, 10**6)


def test_slopes_leave_out_small_n_threads_and_what_was_not_measured():
    extra = [
        power_law(sizes=(1000,)).assign(generation_seconds=1.0),
        power_law(sizes=(10**5,), threads=2).assign(generation_seconds=9.0),
        power_law(sizes=(10**7,), status="died (signal 9)").assign(generation_seconds=np.nan),
    ]
    fits = report.slopes(pd.concat([power_law(), *extra]))
    assert fits["time"].tolist() == [pytest.approx(1)]
    assert fits["sizes"].tolist() == [3]
    assert report.slopes(pd.concat([power_law(), *extra]), 1000)["sizes"].tolist() == [4]
    assert report.slopes(power_law(sizes=(10**4,))).empty  # no slope through one point


def test_ratios_keep_the_sizes_that_most_have_and_put_the_fastest_first():
    rows = report.ratios(optimizers())
    assert sorted(rows["n"].unique()) == [10**3, 10**4, 10**5, 10**6]
    order = list(rows["label"].unique())
    assert order[:2] == ["leamvd, float32", "leamvd, float64"]
    assert order[-2:] == ["pycma separable, float64", "pycma full, float64"]
    last = rows[rows["n"] == 10**6]["ratio_to_normal"]
    assert last.is_monotonic_increasing


def test_baselines_are_compared_in_their_own_dtype_at_the_largest_common_size():
    own = [power_law(dtype=dtype, sizes=(1000, 10_000, 100_000)) for dtype in ("float32", "float64")]
    baseline = power_law("pycma separable", "float64", sizes=(1000, 10_000))
    baseline["generation_seconds"] *= [2, 3]
    baseline["peak_bytes"] *= [4, 5]
    (row,) = report.baselines(pd.concat([*own, baseline])).to_dict("records")
    expected = {"method": "pycma separable", "dtype": "float64", "n": 10_000, "time": 3, "memory": 5}
    assert row == pytest.approx(expected)


def test_the_full_matrix_goes_on_with_the_square_to_where_it_is_refused():
    line = report.full_matrix(optimizers())
    assert line["n"].tolist() == [4000, 30_000]
    assert line["bytes"].tolist() == pytest.approx([40 * 4000**2, 40 * 30_000**2])
    assert report.full_matrix(optimizers().query("status == 'ok'")).empty
    assert report.full_matrix(power_law()).empty


def test_gaps_say_why():
    (row,) = report.gaps(optimizers()).to_dict("records")
    assert (row["method"], row["n"]) == ("pycma full", 30_000)
    assert row["why"].startswith("refused: CMA-ES with a full")


def test_shares_and_rates():
    parts = report.shares(pd.DataFrame({"optimizer_seconds": [1.0], "objective_seconds": [3.0]}))
    assert parts[["total_seconds", "percent"]].to_numpy().tolist() == [[4, 25]]
    rows = report.rates(objectives())
    assert rows["rate"].max() == pytest.approx(9e11 * 0.95)
    assert set(rows["place"]) == {"1 thread", "2 threads"}
    assert dict(zip(rows["n_hidden"], rows["limit"], strict=True)) == {500: 0.85, 2000: 0.85, 30: 0.6, 120: 0.6}
    card = objectives().assign(device="cuda", status=["ok"] * 3 + ["failed: MemoryError"] * 15)
    assert report.rates(card)["label"].tolist()[-1] == "torch bfloat16, cuda"
    assert len(report.rates(card)) == 3


# ---- targets


TIME, SLOPE, PARTS = "time / NumPy's normals", "slope of time", "fraction_of_products"
LARGEST = "n = 1,000,000 to 100,000,000, float32"


def met(**changed):
    return report.targets(tables(**changed)).set_index("target")["met"]


def test_every_target_is_met_in_the_invented_run():
    assert set(met()) == {"yes"}
    rows = report.targets(tables()).set_index("target")
    assert rows.loc["time / NumPy's normals, n = 1,000,000, float32", "reached"] == "0.180"
    assert rows.loc["peak memory / population, n = 1,000,000", "reached"] == "1.25 (float32), 1.25 (float64)"
    assert rows.loc["objective 500 × 2000 / its products", "reached"] == "95 % (1 thread), 95 % (2 threads)"
    assert rows.loc["contrastive divergence over scikit-learn", "reached"] == "2.40 (1 thread), 2.20 (2 threads)"
    assert rows.loc["linear probe, points above scikit-learn's", "reached"] == "+0.10 (5 seeds)"


def own(n, dtype, threads=1):
    return f"method == 'leamvd' and n == {n} and dtype == '{dtype}' and threads == {threads}"


@pytest.mark.parametrize(
    ("table", "rows", "column", "value", "target"),
    [
        ("optimizers", own(10**3, "float64"), "generation_seconds", 1.01e-4, "ask + tell, n = 1,000"),
        ("optimizers", own(10**4, "float32"), "ratio_to_normal", 0.41, f"{TIME}, n = 10,000, float32"),
        ("optimizers", own(10**7, "float64"), "ratio_to_normal", 0.61, f"{TIME}, n = 10,000,000, float64"),
        ("optimizers", own(10**8, "float32"), "peak_bytes", 1.36 * 96e8, "peak memory / population, n = 100,000,000"),
        ("optimizers", own(10**6, "float64", 2), "generation_seconds", 0.04, "two threads over one, n = 1,000,000"),
        ("optimizers", own(10**8, "float32"), "generation_seconds", 2.8, f"{SLOPE}, {LARGEST}"),
        ("optimizers", own(10**7, "float32"), "generation_seconds", 0.4, f"{SLOPE}, n = 10,000 to 10,000,000"),
        ("objectives", "n_visible == 784 and threads == 2", PARTS, 0.84, "objective 784 × 500 / its products"),
        ("objectives", "n_hidden == 120", PARTS, 0.59, "objective 30 × 120 / its products"),
        ("objectives", "n_visible == 49", "speedup_over_direct", 2.9, "objective 49 × 30 over NumPy's expression"),
        ("training", "trainer == 'leamvd'", "seconds", 2.21, "contrastive divergence over scikit-learn"),
        ("training", "trainer == 'leamvd'", PARTS, 0.79, "contrastive divergence / its products"),
        ("probe", "trainer == 'leamvd'", "test_accuracy", 0.93, "linear probe, points above scikit-learn's"),
    ],
)  # fmt: skip
def test_one_value_beyond_its_limit_is_one_target_missed(table, rows, column, value, target):
    changed = getattr(tables(), table)
    changed.loc[changed.query(rows).index, column] = value
    answers = met(**{table: changed})
    assert answers[target] == "no"
    # time that grows beyond one limit may break the slopes through the same point, and nothing else
    assert all("slope" in name or "two threads" in name for name in answers[answers == "no"].index.drop(target))


def test_a_size_that_died_is_a_target_missed_and_says_why():
    changed = optimizers()
    where = changed.query(own(10**8, "float32")).index
    changed.loc[where, ["status", "generation_seconds", "peak_bytes"]] = ("died (signal 9)", np.nan, np.nan)
    rows = report.targets(tables(optimizers=changed)).set_index("target")
    row = rows.loc["slope of time, n = 1,000,000 to 100,000,000, float32"]
    assert (row["reached"], row["met"]) == ("died (signal 9)", "no")
    assert rows.loc["peak memory / population, n = 100,000,000", "met"] == "–"


def test_what_was_not_measured_is_neither_met_nor_missed():
    empty = {name: getattr(tables(), name).iloc[:0] for name in Tables._fields if name != "machine"}
    rows = report.targets(tables(**empty))
    assert len(rows) == len(report.targets(tables()))
    assert set(rows["met"]) == set(rows["reached"]) == {"–"}


def test_what_limits_a_generation():
    cause = report.targets(tables()).set_index("target")["limited by"]
    assert cause["ask + tell, n = 1,000"] == "interpreter (columns take 42 %)"
    assert cause["time / NumPy's normals, n = 1,000,000, float32"] == "random numbers (a copy takes 22 %)"
    slow = optimizers().assign(ratio_to_copy=1.25)
    cause = report.targets(tables(optimizers=slow)).set_index("target")["limited by"]
    assert cause["time / NumPy's normals, n = 1,000,000, float32"] == "memory traffic (a copy takes 80 %)"
    alone = report.targets(tables(optimizers=optimizers().query("n == 1000"))).set_index("target")["limited by"]
    assert alone["ask + tell, n = 1,000"] == "–"
    assert cause["objective 30 × 30 / its products"] == "BLAS (products take 63 %)"


# ---- claims


def test_c1_needs_both_slopes_in_every_dtype():
    def answer(**laws):
        return report.c1(pd.concat(power_law(dtype=dtype, **law) for dtype, law in laws.items())).answer

    assert answer(float32={}, float64={}) == "holds"
    assert answer(float32={}, float64={"time": 1.06}) == "does not hold"
    assert answer(float32={"memory": 0.94}, float64={}) == "does not hold"
    assert answer(float32={"sizes": (1000, 10_000, 100_000)}) == "open"
    assert report.c1(optimizers()).text == (
        "Slopes of time and of peak memory in double logarithmic scale from n = 10,000 on: float32 0.988 and 1.000 "
        "(5 sizes up to n = 100,000,000); float64 0.994 and 1.000 (4 sizes up to n = 10,000,000)."
    )


def test_c2_asks_for_the_square_and_says_what_the_paper_leaves_out():
    verdict = report.c2(optimizers())
    assert verdict.answer == "holds"
    assert "from n = 1,000 to 4,000, peak memory grows with slope 2.00 and time with 2.00" in verdict.text
    assert "At n = 30,000 it is refused: CMA-ES with a full covariance matrix" in verdict.text
    assert "with a diagonal one CMA-ES is linear too (slopes 1.00 and 1.00), at 27.1 times LEA-MVD's" in verdict.text
    sizes = (1000, 2000, 4000)
    alone = report.c2(power_law("pycma full", "float64", sizes, time=2.5, memory=1.5))
    assert alone.answer == "does not hold"
    assert alone.text.endswith("slope 1.50 and time with 2.50.")
    assert report.c2(power_law("pycma full", "float64", sizes[:2], memory=2.0)).answer == "open"


# ---- sentences


def test_sentences_carry_the_numbers():
    assert sentences.time(optimizers()) == (
        "A generation of LEA-MVD takes 2.16 s at n = 100,000,000 in float32 and 672 ms at n = 10,000,000 in float64. "
        "Of the others in float32 evosax Open_ES (compiled loop) is the fastest, with 10.6 times the time at "
        "n = 1,000,000. Of the others in float64 pypop7 CDE is the fastest, with 4.29 times the time at n = 1,000,000."
    )
    assert "pypop7 LMCMA is the leanest, with 1.52 times the memory" in sentences.memory(optimizers())
    assert "At n = 30,000 it is refused" in sentences.memory(optimizers())
    every = "leamvd, float32 (at every n), leamvd, float64 (at every n)."
    assert sentences.ratio(optimizers()) == f"Quicker than NumPy draws the normal samples alone: {every}"
    assert "With 10,000 images (MNIST) and 2 threads the optimizer takes between 0.312 %" in sentences.split(split())
    text = sentences.objective(objectives())
    assert "numpy float32, 1 thread: 92 to 95 % for the large shapes, 63 to 70 % for the small shapes" in text
    assert "leamvd 2 s with 1 thread" in sentences.training(training(), probe())
    assert "leamvd 94.30 %, scikit-learn 94.20 %" in sentences.training(training(), probe())
    text = sentences.setting(tables())
    assert "2 cores, 24 GB, Linux; Python 3.11.7, leamvd 0.1.0, numpy 2.0.0; code of commit 000000000000." in text
    assert "Profile *paper*, 10 minutes; load average before: 0.1. Not installed: pypop7 CDE." in text


def test_sentences_where_some_are_quicker_at_some_sizes_or_none_is():
    table = optimizers()
    at = table.query("method == 'pypop7 CDE' and n == 10_000").index
    table.loc[at, "ratio_to_normal"] = 0.5
    assert "pypop7 CDE, float64 (at n = 10,000)" in sentences.ratio(table)
    assert sentences.ratio(table.assign(ratio_to_normal=2.0)).endswith("alone: none.")


SENTENCES = {
    "time": ("optimizers",), "memory": ("optimizers",), "ratio": ("optimizers",), "split": ("split",),
    "objective": ("objectives",), "training": ("training", "probe"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "needs"), SENTENCES.items())
def test_a_table_without_rows_is_no_error(name, needs):
    assert getattr(sentences, name)(*(getattr(tables(), table).iloc[:0] for table in needs))


def test_a_small_run_leaves_the_claims_open():
    small = optimizers().query("n <= 10_000")
    assert report.c1(small).answer == report.c1(small.iloc[:0]).answer == "open"
    assert "fewer" in report.c1(small).text
    assert report.c2(small.query("n <= 1000")).answer == "open"
    table = sentences.shown(report.slopes(small))
    assert table.empty
    assert list(table) == ["dtype", "sizes", "from n", "to n", "time", "memory"]


def test_a_shown_table_has_no_numbers_of_rows():
    table = sentences.shown(report.baselines(optimizers()))
    assert (table.index.name, table.columns.name) == (None, "method")  # one header line
    assert table.loc["pycma separable"].tolist() == ["float64", "1,000,000", "27.1", "6.88"]


def test_a_listed_table_is_markdown():
    table = pd.DataFrame({"target": ["a | b"], "met": ["yes"]})
    assert sentences.listed(table.iloc[:0]) == "None."
    assert sentences.listed(table) == "| target | met |\n| --- | --- |\n| a \\| b | yes |"


# ---- the page on many machines


PAGE = (Path(__file__).parent.parent / "book" / "scale.md").read_text(encoding="utf-8")


def test_scale_follows_from_the_largest_run():
    values = report.scale(tables())
    seconds = 24 * NORMAL["float32"] * OWN["float32"] + 3e-13
    assert values["scale-n"] == 10**8
    assert values["scale-nanoseconds"] == pytest.approx(1e9 * seconds)
    assert values["scale-bytes"] == pytest.approx(1.25 * 24 * 4)
    assert values["scale-operations"] == pytest.approx(seconds * 0.95 * 1.5e11 / 24)
    assert values["scale-seconds-1e10"] == pytest.approx(seconds * 1e10 / 64)
    assert all(map(np.isnan, report.scale(tables(optimizers=optimizers().iloc[:0])).values()))
    pasted = set(re.findall(r"05_linear_cost\.ipynb::([\w-]+)", PAGE))
    assert pasted == set(values)


def test_the_page_divides_what_the_report_divides():
    rows = re.findall(r"\* - \$10\^(?:\{(\d+)\}|(\d))\$\n  - (\d+)\n  - ([\d.]+) ([GT])B\n  - ([\d.]+) GB\n", PAGE)
    shards = {f"1e{long or short}": int(k) for long, short, k, *_ in rows}
    assert shards == report.SHARDS
    for (_, _, k, whole, unit, part), n in zip(rows, map(float, shards), strict=True):
        total = 4 * (24 + 5) * n
        assert float(whole) * {"G": 1e9, "T": 1e12}[unit] == pytest.approx(total, rel=5e-3)
        assert float(part) * 1e9 == pytest.approx(total / int(k), rel=5e-3)


def test_inner_products_of_shards_add_up():
    """What the page wants all-reduced is all that pass one has to say beyond a column."""
    rng, n, cut, ir = np.random.default_rng(3), 5000, 2048, np.array([1, 5, 9, 20])
    X, order = rng.normal(size=(24, n)), rng.permutation(24)
    vectors = rng.normal(size=(5, n))
    weights = selection.fractional_tournament(24, 1.5)

    def scan(columns):
        part = np.ascontiguousarray(X[:, columns])
        return directions.scan(part, order, weights, ir, directions.Vectors(*vectors[:, columns].copy()))

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
