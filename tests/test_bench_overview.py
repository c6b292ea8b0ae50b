"""The summary of tables whose numbers follow from formulas, so that what it must say is known."""

import re

import numpy as np
import pandas as pd
import pytest
from prose import CONTRIBUTING

import leamvd
from leamvd import bench
from leamvd.analysis import claims
from leamvd.analysis.costs import growth, slopes
from leamvd.bench import Tables, networks, overview, waiting
from leamvd.bench import optimizers as run_optimizers
from leamvd.bench import parts as run_parts
from leamvd.book.sections import NOTEBOOKS
from leamvd.optimizers import directions, selection

RECORDED = bench.read(NOTEBOOKS / "recorded" / "linear_cost")
REFUSED = "refused: CMA-ES with a full covariance matrix of n=30000 variables needs 28,800,000,000 bytes"


def powers(method="leamvd", dtype="float32", sizes=(10**4, 10**5, 10**6), time=1.0, memory=1.0, **other):
    """Rows whose time and peak memory are powers of n: 10 ns and 1.2 populations where they are linear."""
    n = np.array(sizes)
    seconds, population = 1e-8 * n**time, 24 * n * np.dtype(dtype).itemsize
    columns = {
        "method": method, "dtype": dtype, "threads": 1, "n": n, "population_size": 24, "status": "ok",
        "generation_seconds": seconds, "generation_low": 0.98 * seconds, "generation_high": 1.03 * seconds,
        "normal_seconds": 5e-9 * n, "ratio_to_normal": seconds / (5e-9 * n),
        "peak_bytes": 1.2 * population * n ** (memory - 1), "population_bytes": population,
    }  # fmt: skip
    return pd.DataFrame(columns | other)


def times(table, time, memory):
    """The rows with other costs, so many times those given."""
    scaled = table[["generation_seconds", "generation_low", "generation_high", "ratio_to_normal"]] * time
    return table.assign(**scaled, peak_bytes=table["peak_bytes"] * memory)


def optimizers():
    """LEA-MVD, a slow and a fast method, and the full matrix, which is refused."""
    sizes = (10**3, 10**4, 10**5, 10**6)
    own = [powers(dtype=dtype, sizes=(*sizes, 10**7)) for dtype in ("float32", "float64")]
    others = [times(powers("slow", "float64", sizes), 5, 4), times(powers("fast", sizes=sizes), 2, 3)]
    full = powers("pycma full", "float64", (1_000, 2_000, 4_000), time=2, memory=2)
    return pd.concat([*own, *others, full, full.tail(1).assign(n=30_000, status=REFUSED)], ignore_index=True)


def tables():
    """Tables of one or two rows each besides."""
    names = ("generation", "first_pass", "second_pass", "words", "normals", "perturbation")
    parts = {f"{name}_seconds": [x] for name, x in zip(names, (10.0, 3.0, 6.0, 1.0, 2.5, 0.5), strict=True)}
    split = {"optimizer_seconds": [1.0, 1.0], "objective_seconds": [3.0, 9.0]}
    objectives = RECORDED.objectives.iloc[:2].assign(
        backend=["numpy", "torch"], threads=1, flop=1e11, seconds=[2.0, 1.0], fraction_of_products=[0.9, 1.5]
    )
    return Tables(
        optimizers=optimizers(),
        parts=pd.DataFrame({"n": [1_000], "dtype": ["float32"]} | parts),
        objectives=objectives,
        training=RECORDED.training,
        split=pd.DataFrame(split),
        waiting=RECORDED.waiting,
        machine=RECORDED.machine,
    )


# ---- what people wait for


def test_what_people_wait_for_has_a_column_for_each_version_of_the_code() -> None:
    rows = [("old", "a section", 2, "ok", np.nan, 30.0), ("new", "a section", 2, "ok", 4.0, 20.0)]
    table = pd.DataFrame([*rows, ("new", "the book", 2, "ok", np.nan, 50.0)], columns=waiting.COLUMNS["waiting"])
    shown = overview.waiting(table)
    assert shown.to_dict("index") == {
        "a section": {"first table, new": 4.0, "end, old": 30.0, "end, new": 20.0},
        "the book": {
            "first table, new": pytest.approx(np.nan, nan_ok=True),
            "end, old": pytest.approx(np.nan, nan_ok=True),
            "end, new": 50.0,
        },
    }
    assert overview.waiting(table.iloc[:0]).empty


# ---- how costs grow


def test_slopes_are_the_exponents_and_stand_side_by_side():
    table = pd.concat([powers(time=1.1, memory=0.9), powers("pycma full", "float64", time=2.5)])
    rows = overview.slopes(table)
    assert list(rows) == ["method", "dtype", "sizes", "from n", "to n", "time", "memory"]
    assert rows["method"].tolist() == ["leamvd", "pycma full"]
    assert rows[["sizes", "from n", "to n"]].drop_duplicates().to_numpy().tolist() == [[3, 10**4, 10**6]]
    assert rows["time"].tolist() == pytest.approx([1.1, 2.5])
    assert rows["memory"].tolist() == pytest.approx([0.9, 1])


def test_a_slope_is_fitted_by_least_squares_of_logarithms():
    table = powers(sizes=(10, 100, 1000)).assign(generation_seconds=[1.0, 10.0, 1000.0])
    assert slopes(table, ["method"], "generation_seconds")["slope"].item() == pytest.approx(1.5)


@pytest.mark.parametrize("nothing", [0.0, np.nan])
def test_a_cost_of_nothing_is_no_point_of_its_line(nothing):
    """A peak of 0 bytes, say: the allocator had them already."""
    table = powers(sizes=(10**4, 10**5, 10**6, 10**7)).assign(peak_bytes=[nothing, 1.0, 1e2, 1e4])
    (row,) = slopes(table, ["method", "dtype"], "peak_bytes").to_dict("records")
    assert (row["sizes"], row["from n"], row["to n"]) == (3, 10**5, 10**7)
    assert row["slope"] == pytest.approx(2)
    (row,) = slopes(table[:2], ["method", "dtype"], "peak_bytes").to_dict("records")
    assert np.isnan(row["slope"]), "one point has no slope"


def test_growth_leaves_out_small_n_threads_and_what_was_not_measured():
    extra = [
        powers(sizes=(1000,)).assign(generation_seconds=1.0),
        powers(sizes=(10**5,), threads=2).assign(generation_seconds=9.0),
        powers(sizes=(10**7,), status="died (signal 9)"),
    ]
    rows = growth(pd.concat([powers(), *extra]))
    assert rows["cost"].tolist() == ["time", "memory"]
    assert rows["slope"].tolist() == pytest.approx([1, 1])
    assert rows["sizes"].tolist() == [3, 3]


# ---- tables


def test_ratios_keep_the_ends_of_the_sizes_that_most_have_and_put_the_fastest_first():
    rows = overview.ratios(optimizers())
    assert rows["n"].tolist() == [10**3, 10**6] * 4
    order = list(rows["label"].unique())  # the full matrix was measured at one of them
    assert order == ["leamvd, float32", "leamvd, float64", "fast, float32", "slow, float64"]
    assert rows["time"].tolist() == pytest.approx([2, 2, 2, 2, 4, 4, 10, 10])
    assert rows["memory"].tolist() == pytest.approx([1.2, 1.2, 1.2, 1.2, 3.6, 3.6, 4.8, 4.8])
    np.testing.assert_allclose(rows["low"], 0.98 * rows["time"])
    np.testing.assert_allclose(rows["high"], 1.03 * rows["time"])


def test_baselines_are_compared_in_their_own_dtype_at_the_largest_common_size():
    own = [powers(dtype=dtype, sizes=(1000, 10_000, 100_000)) for dtype in ("float32", "float64")]
    baseline = times(powers("pycma separable", "float64", sizes=(1000, 10_000)), 3, 5)
    rows = overview.baselines(pd.concat([baseline, *own]))
    assert rows["method"].tolist() == ["leamvd", "leamvd", "pycma separable"]
    assert rows["n"].tolist() == [100_000, 100_000, 10_000]
    assert rows["time / LEA-MVD's"].tolist() == pytest.approx([1, 1, 3])
    assert rows["memory / LEA-MVD's"].tolist() == pytest.approx([1, 1, 5])
    assert rows["seconds"].tolist() == pytest.approx([1e-3, 1e-3, 3e-4])
    assert rows["MB"].tolist() == pytest.approx([1.2 * 9.6, 1.2 * 19.2, 5 * 1.2 * 1.92])
    assert rows["time / normals"].tolist() == pytest.approx([2, 2, 6])


def test_the_full_matrix_goes_on_with_the_square_to_where_it_is_refused():
    line = overview.full_matrix(optimizers())
    assert line["n"].tolist() == [4000, 30_000]
    assert line["bytes"].tolist() == pytest.approx([1.2 * 24 * 8 * n**2 for n in (4_000, 30_000)])
    assert overview.full_matrix(optimizers().query("status == 'ok'")).empty
    (row,) = overview.gaps(optimizers()).to_dict("records")
    assert (row["method"], row["n"], row["why"]) == ("pycma full", 30_000, REFUSED)


def test_parts_shares_rates_and_epochs():
    parts = overview.parts(tables().parts)
    assert list(parts) == ["n = 1,000, float32"]
    assert parts.iloc[:, 0].tolist() == pytest.approx([30, 10, 15, 5, 30, 10]), "they add up to a generation"
    assert overview.shares(tables().split)["percent"].tolist() == [25, 10]
    rows = overview.rates(tables().objectives)
    assert rows["GFLOP/s"].tolist() == [50, 100]
    assert rows["% of the products' rate"].tolist() == [90, 150]
    assert len(overview.rates(tables().objectives.assign(status=["ok", "failed: MemoryError"]))) == 1
    training = RECORDED.training
    assert len(overview.epochs(training)) == (training["n_images"] == 60_000).sum() < len(training)


def test_what_was_not_installed_is_said():
    for methods, said in (([], "–"), (["evotorch SNES", "evosax Open_ES"], "evotorch SNES, evosax Open_ES")):
        found = RECORDED._replace(machine=RECORDED.machine | {"left_out": methods})
        assert overview.machine(found).loc["not installed"].item() == said


# ---- numbers for pages


def test_numbers_are_those_of_the_tables():
    values = overview.numbers(tables())
    known = {
        "c1": "reproduced", "c1-least": 1, "c1-most": 1, "c2": "reproduced", "c2-least": 2, "c2-most": 2,
        "parts-random-least": 25, "parts-random-most": 25, "split-least": 10, "split-most": 25,
        "objective-least": 90, "objective-most": 90, "full-n": 4_000, "own-slope-least": 1, "own-slope-most": 1,
        "others-slope-least": 1, "others-slope-most": 1, "others-n": 10**6, "others-small-n": 10**3,
        "others-time-least": 2, "others-time-most": 5, "others-memory-least": 3, "others-memory-most": 4,
        "others-small-least": 2, "scale-n": 10**7, "scale-nanoseconds": 10, "scale-bytes": 1.2 * 24 * 4,
        "scale-operations": 1e-8 * 1e11 / 24, "scale-seconds-1e9": 1.25, "scale-seconds-1e10": 100 / 64,
        "scale-seconds-1e11": 1000 / 512,
    }  # fmt: skip
    assert values == {name: x if isinstance(x, str) else pytest.approx(x, rel=1e-5) for name, x in known.items()}


def test_what_was_not_measured_is_nan_or_no_row():
    empty = Tables(*(table.iloc[:0] for table in RECORDED[:-1]), RECORDED.machine)
    values = overview.numbers(empty)
    assert (values.pop("c1"), values.pop("c2")) == ("not yet run", "not yet run")
    assert all(map(np.isnan, values.values()))
    for made in (overview.slopes, overview.baselines, overview.gaps, overview.ratios, overview.full_matrix):
        assert made(empty.optimizers).empty


def test_the_first_page_pastes_pycmas_methods_and_the_fastest_other():
    own = [powers(dtype=dtype, sizes=(1000, 10_000)) for dtype in ("float32", "float64")]
    others = {"pycma separable": 4, "pycma full": 9, "slow": 3, "fast": 2}
    made = [powers(name, "float64", sizes=(1000, 10_000)) for name in others]
    made = [times(table, factor, factor + 0.5) for table, factor in zip(made, others.values(), strict=True)]
    found = overview.quoted(pd.concat([*own, *made]))
    assert found == {
        "other": "fast", "other-n": 10_000, "other-time": 2, "other-memory": 2.5,
        "sep-cma-es-n": 10_000, "sep-cma-es-time": 4, "sep-cma-es-memory": 4.5,
        "cma-es-n": 10_000, "cma-es-time": 9, "cma-es-memory": 9.5,
    }  # fmt: skip


def test_the_recorded_run_can_be_read_and_answers_both_claims():
    for name, columns in (run_optimizers.COLUMNS | run_parts.COLUMNS | networks.COLUMNS).items():
        assert set(columns) <= set(getattr(RECORDED, name))
    values = overview.numbers(RECORDED)
    assert (values.pop("c1"), values.pop("c2")) == ("reproduced", "reproduced")
    assert not any(map(np.isnan, values.values()))
    rows = claims.evidence({"linear_cost": RECORDED.optimizers}).query("claim == 'C1'")
    assert rows["effect"].between(0.97, 1.02).all()


# ---- what CONTRIBUTING.md says of speed and of many machines


def test_what_takes_the_time_is_as_recorded():
    values, text = overview.numbers(RECORDED), re.sub(r"\s+", " ", CONTRIBUTING)
    for name, words in (("parts-random", "% of a generation"), ("objective", "% of the rate of the products alone")):
        assert f" {values[f'{name}-least']:.0f} to {values[f'{name}-most']:.0f} {words}" in text


def test_the_table_divides_what_the_summary_divides():
    line = r"^\| 10\^(\d+) \| (\d+) \| ([\d.]+) ([GT])B \| ([\d.]+) GB \| ([\d.]+) \|$"
    rows = re.findall(line, CONTRIBUTING, re.MULTILINE)
    values = overview.numbers(RECORDED)
    assert {f"1e{power}": int(k) for power, k, *_ in rows} == overview.SHARDS
    for power, k, whole, unit, part, seconds in rows:
        total = 4 * (24 + 5) * float(f"1e{power}")
        assert float(whole) * {"G": 1e9, "T": 1e12}[unit] == pytest.approx(total, rel=5e-3)
        assert float(part) * 1e9 == pytest.approx(total / int(k), rel=5e-3)
        assert seconds == f"{values[f'scale-seconds-1e{power}']:.1f}"


def test_inner_products_of_shards_add_up():
    """What is to be all-reduced is all that pass one has to say beyond a column."""
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
    """The rows that are not elites matter to nothing: a checkpoint leaves them out."""
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
