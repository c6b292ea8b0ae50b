"""What theory says of the searches: jobs that measure and predict, and their tables, on cases with known answers."""

import dataclasses
import io

import numpy as np
import pandas as pd
import pytest
from threadpoolctl import threadpool_limits

from leamvd.analysis import explanation
from leamvd.analysis.explanation import GENERATIONS, QUALITIES
from leamvd.campaign import archive
from leamvd.campaign import run as campaign
from leamvd.campaign.jobs import packed, unpacked, with_needs
from leamvd.campaign.tables import read_table
from leamvd.data.images import Images
from leamvd.experiments import local_models
from leamvd.experiments.layers import rbm
from leamvd.experiments.local_models import REFERENCE, GradientStep, MeasurePairs, SearchSurrogate
from leamvd.networks.dbn import layer_input, layer_seed
from leamvd.networks.objective import ReconstructionObjective, error_and_gradient
from leamvd.optimizers import local_model
from leamvd.optimizers.reading import Reading
from leamvd.studies.study import ONE_EPOCH, Explanation, Study, images

SMALL = Explanation(
    n_images=60,
    layers=(6, 5),
    methods=("lea-mvd:sigma0=0.003", "lea-mvd:sigma0=0.3"),
    seeds=(0, 1),
    sigmas=(0.001, REFERENCE),
    n_pairs=8,
    training=dataclasses.replace(Study().training, dtype="float64"),
    reading=Reading(n_gen=14),
)


@pytest.fixture(scope="module")
def data():
    return images(SMALL)


@pytest.fixture(scope="module")
def planned(data):
    return SMALL.tables(Images.of(data))


@pytest.fixture(scope="module")
def results(planned, data, tmp_path_factory):
    jobs = [job for table in planned.values() for job in table.jobs.values()]
    return campaign.run(with_needs(jobs), tmp_path_factory.mktemp("store"), data=data, progress=False)


# ---- jobs


def test_pairs_are_measured_around_the_start_solution(planned, results, data) -> None:
    job = planned["pairs"].jobs["mnist-7x7", 2, 1]
    start, below = (rbm(results[need]) for need in job.needs)
    V = layer_input([below], data.train, seed=1)
    objective = ReconstructionObjective(V, 5)
    rows = planned["pairs"].of(results).query("layer == 2 and seed == 1")
    for row, sigma in zip(rows.itertuples(), SMALL.sigmas, strict=True):
        own = local_model.measure(objective, start.flat(), sigma=sigma, n_pairs=8, seed=layer_seed(1, 2))
        assert (row.value, row.slope, row.curvature) == pytest.approx((own.value, own.slope, own.curvature))
    assert np.array_equal(unpacked(results[job].arrays)["x0"], start.flat())


def test_a_gradient_step_goes_down_as_far_as_the_line_allows(planned, results, data, tmp_path) -> None:
    pairs = planned["pairs"].jobs["mnist-7x7", 1, 0]
    job = GradientStep(pairs=pairs)
    found = campaign.run([job], tmp_path, data=data, progress=False)[job]
    row = read_table(io.BytesIO(found.rows)).iloc[0]
    x0 = unpacked(results[pairs].arrays)["x0"]
    value, gradient = error_and_gradient(x0, data.train, 6)
    objective = ReconstructionObjective(data.train, 6)
    lengths = value / (gradient @ gradient) * np.linspace(0, 3, 301)
    along = objective(x0 - lengths[:, None] * gradient)
    assert row["first"] == pytest.approx(value)
    assert row["best"] == pytest.approx(along.min(), rel=1e-3)
    assert row["best"] < 0.95 * value
    assert row["nfev"] <= 20


def test_searches_start_where_the_pairs_were_measured(planned, results) -> None:
    runs = planned["runs"].of(results).query("iteration == 0")
    for row in planned["retrodictions"].of(results).query("iteration == 0").itertuples():
        own = runs.query(f"method == '{row.method}' and layer == {row.layer} and seed == {row.seed}")
        assert own["mean_field"].item() == pytest.approx(row.best, rel=1e-9)


def test_predictions_need_no_search(planned) -> None:
    def behind(job):
        return {job, *(other for need in job.needs for other in behind(need))}

    for job in planned["surrogates"].jobs.values():
        trainers = [(other.trainer, other.reading.n_gen) for other in behind(job) if hasattr(other, "trainer")]
        assert set(trainers) == {("cd", 1)}, "one epoch of contrastive divergence"
    above = [job for (_, _, layer, _), job in planned["retrodictions"].jobs.items() if layer == 2]
    assert all({"lea-mvd"} <= {getattr(one, "trainer", "") for one in behind(job)} for job in above)


def test_a_surrogate_search_sees_slope_and_curvature_alone(planned, results, data) -> None:
    """Where there is no slope nothing is better than the start; where there is no curvature, it always gets better."""
    job = planned["surrogates"].jobs["mnist-7x7", "lea-mvd:sigma0=0.3", 1, 0]
    pairs = results[job.pairs]
    table = pd.read_csv(io.BytesIO(pairs.rows))
    for changes, moved in (({"slope": 0.0}, False), ({"curvature": 0.0}, True)):
        rows = table.assign(**changes).to_csv(index=False).encode()
        steps = list(job.steps(data, [pairs._replace(rows=rows)], 0, {}))
        best = [row["best"] for step in steps for row in step.rows]
        assert len(best) == SMALL.reading.n_gen + 1
        assert (best[-1] < best[0]) == moved
        assert steps[-1].done


def test_a_surrogate_search_has_the_same_bits_on_any_number_of_threads(planned, results) -> None:
    job = planned["surrogates"].jobs["mnist-7x7", "lea-mvd:sigma0=0.3", 1, 0]
    x0 = np.random.default_rng(0).standard_normal(300_000).astype(np.float32)
    pairs = results[job.pairs]._replace(arrays=packed({"x0": x0}))
    job = dataclasses.replace(job, training=dataclasses.replace(job.training, dtype="float32", precision="float32"))
    found = []
    for threads in (1, 2):
        with threadpool_limits(threads):
            found.append([row["best"] for step in job.steps(None, [pairs], 0, {}) for row in step.rows])
    assert found[0] == found[1]


def test_slope_and_curvature_are_those_near_the_reference(results, planned) -> None:
    model = local_models.reference(results[planned["pairs"].jobs["mnist-7x7", 1, 0]])
    assert model.sigma == REFERENCE


def test_start_is_the_start_solution_of_searches(planned) -> None:
    job: MeasurePairs = planned["pairs"].jobs["mnist-7x7", 1, 0]
    assert (job.start.trainer, job.start.reading.n_gen) == ("cd", 1)
    assert SMALL.settings_of(ONE_EPOCH)[0].trainer == "cd"
    assert isinstance(planned["surrogates"].jobs["mnist-7x7", "lea-mvd:sigma0=0.3", 2, 1], SearchSurrogate)


@pytest.mark.parametrize(
    ("before", "after", "tolerance"),
    [("predictions", "explanation", 0), ("predictions_28x28", "explanation_28x28", 1e-6)],
)
def test_predictions_were_committed_before_their_searches(before: str, after: str, tolerance: float) -> None:
    """What a study holds beside its runs is what was recorded, and committed, before them.

    On large layers several BLAS threads had rounded the predictions; in the study there was one.
    """
    for table, by in (("pairs", ["sigma"]), ("surrogates", ["method", "iteration"])):
        first, then = (
            archive.read(name, table).sort_values(["layer", "seed", *by], ignore_index=True) for name in (before, after)
        )
        first = first[first["seed"].isin(then["seed"])].reset_index(drop=True)
        pd.testing.assert_frame_equal(first, then[first.columns], rtol=tolerance, atol=0)


# ---- tables


def made(values: dict[tuple[str, int, str], list[tuple[float, float]]], column: str) -> pd.DataFrame:
    """Return runs that begin and end at given values, one for each seed."""
    return pd.DataFrame(
        [
            {"study": study, "layer": layer, "method": method, "seed": seed, "iteration": iteration, column: value}
            for (study, layer, method), runs in values.items()
            for seed, ends in enumerate(runs)
            for iteration, value in enumerate(ends)
        ]
    )


def test_theory_of_a_row_of_pairs() -> None:
    numbers = {
        "sigma": 0.1,
        "n_pairs": 10,
        "slope": 3.0,
        "curvature": 50.0,
        "scatter": 10.0,
        "value": 20.0,
        "lower": 0.5,
    }
    table = pd.DataFrame([numbers])
    found = explanation.pairs(table).iloc[0]
    model = local_model.LocalModel(0.1, 10, 20.0, 3.0, 50.0, 10.0, 0.5)
    assert found["step_size"] == pytest.approx(model.step_size(24))
    assert found["scatter_share"] == 0.2
    for name, value in QUALITIES.items():
        assert found[f"{name} gain, %"] == pytest.approx(100 * model.gain(value) / 20)


def test_the_papers_weights_are_those_of_equation_1() -> None:
    weights = np.arange(24, 0, -1) ** 1.5
    assert QUALITIES["paper"] == pytest.approx(local_model.quality(weights))
    assert QUALITIES["best"] == pytest.approx(local_model.quality(local_model.order_statistics(24)))


def test_generations_compound() -> None:
    rows = [
        {
            "study": "a",
            "layer": 1,
            "inputs": "own",
            "seed": s,
            "sigma": 0.01,
            "paper gain, %": 2.0,
            "best gain, %": 200.0,
        }
        for s in (0, 1)
    ]
    found = explanation.reach(pd.DataFrame(rows), 0.01).loc["a", 1, "own"]
    assert found["paper, mean"] == pytest.approx(100 * (1 - 0.98**GENERATIONS))
    assert found["best, mean"] == 100, "an error cannot fall below zero"


def test_predicted_beside_measured() -> None:
    method, other = "lea-mvd:sigma0=0.01", "lea-mvd:sigma0=0.3+reset=off"
    runs = made({("a", 1, method): [(10, 8), (10, 6)], ("a", 1, other): [(10, 10), (10, 10)]}, "mean_field")
    before = made({("a", 1, method): [(10, -5), (10, 9)], ("a", 1, other): [(10, 9), (10, 10)]}, "best")
    after = made({("a", 1, method): [(10, 5), (10, 5)], ("a", 1, other): [(10, 10), (10, 10)]}, "best")
    found = explanation.predicted_and_measured(before, after, runs).set_index("method")
    assert found["measured"].tolist() == pytest.approx([30, 0])
    assert found[["low", "high"]].isna().all(axis=None), "two runs say nothing of their scatter"
    more = made({("a", 1, method): [(10, 8), (10, 6), (10, 7)]}, "mean_field")
    low, high = explanation.predicted_and_measured(before, after, more)[["low", "high"]].iloc[0]
    assert (low, high) == pytest.approx((30 - 4.3027 * 10 / 3**0.5, 30 + 4.3027 * 10 / 3**0.5), rel=1e-4)
    assert found["predicted"].tolist() == pytest.approx([55, 5]), "100 where a surrogate falls below zero"
    assert found["retrodicted"].tolist() == pytest.approx([50, 0])
    assert found["share predicted"].tolist() == [1, 0.5]
    assert found["share measured"].tolist() == [1, 0]
    assert found["generation predicted"].tolist() == pytest.approx([1, np.nan], nan_ok=True), "half of them never"
    assert found["sigma0"].tolist() == [0.01, 0.3]
    assert found["reset"].tolist() == [True, False]


def test_when_searches_leave_their_start() -> None:
    """A search is off whichever side it errs to; those that should move at once, or never, and do not, do not count."""

    def searches(column: str, *left: int | None) -> pd.DataFrame:
        falls = ([10.0 if at is None or i < at else 9.0 - i for i in range(9)] for at in left)
        return made({("a", 1, "lea-mvd"): list(falls)}, column)

    runs = searches("mean_field", 7, 3, 8, 1, 5, None)
    assert explanation.falls(runs, "mean_field")["left"].tolist() == [7, 3, 8, 1, 5, np.inf]
    off = explanation.generations_off(searches("best", 4, 5, 2, 1, None, 6), runs)
    assert off.to_dict() == {"off": {"a": 3}}


def test_which_recorded_searches_should_have_left_their_start() -> None:
    """Runs whose pairs are not measured do not count, nor do other methods, nor the first layer twice."""
    still, falls = (10.0, 10.0), (10.0, 9.0)
    layers = {("a", 1, "lea-mvd"): [falls, falls, still], ("a", 2, "lea-mvd"): [falls, still, still]}
    own = made(layers | {("a", 2, "cd"): [falls] * 3}, "mean_field").drop(columns="study")
    runs = pd.concat([own.assign(inputs=inputs) for inputs in ("own", "shared")])
    said = made({("a", 1, "lea-mvd"): [falls, still], ("a", 2, "lea-mvd"): [falls, falls]}, "best").assign(inputs="own")
    found = explanation.retrodicted(said, {"a": runs})
    assert found.loc["a", 1, "own"].to_dict() == {"retrodicted": 1, "left": 2, "right": 1, "runs": 2}
    assert found.loc["a", 2, "own"].to_dict() == {"retrodicted": 2, "left": 1, "right": 1, "runs": 2}
    assert len(found) == 2


def test_the_fall_that_is_needed() -> None:
    ends = {"cd": [(9e4, 2e4), (9e4, 3e4)], "lea-mvd": [(8e4, 7e4), (12e4, 10.5e4)]}
    table = made({("a", 2, method): runs for method, runs in ends.items()}, "mean_field").assign(n_images=20_000)
    both = pd.concat([table.assign(inputs=inputs, layer=layer) for inputs in ("own", "shared") for layer in (1, 2)])
    for study, below in (("mnist-7x7", ["cd"]), ("mnist-28x28", ["cd", "5,000"])):
        found = explanation.needed(study, both).set_index(["layer", "inputs", "below"])
        assert sorted(found.index) == sorted([(1, "own", "cd"), (2, "shared", "cd"), *((2, "own", b) for b in below)])
        assert found["fell"].tolist() == pytest.approx([12.5] * len(found))
        against_cd = found.xs("cd", level="below")
        assert against_cd["needed"].tolist() == pytest.approx([75] * 3)
        assert (against_cd["low"] <= 75).all()
        assert (against_cd["high"] >= 75).all()
    printed = found.loc[2, "own", "5,000"]
    assert printed["needed"] == pytest.approx(100 * (1 - 20_000 / np.sqrt(8e4 * 12e4))), "twice 5,000 of 10,000 images"


def test_what_is_needed_is_out_of_reach_beyond_the_largest_misfit_alone() -> None:
    needed = pd.DataFrame(
        [("a", 1, "own", "x", 60.0, 55.0, 50.0, 60.0), ("a", 1, "own", "y", 0.0, 90.0, 85.0, 95.0),
         ("a", 1, "own", "z", 0.0, 80.0, 70.0, 90.0), ("a", 2, "shared", "z", 0.0, 80.0, 70.0, 90.0)],
        columns=["study", "layer", "inputs", "below", "fell", "needed", "low", "high"],
    )  # fmt: skip
    reach = pd.DataFrame(
        {"best, high": [50.0], "paper, mean": [20.0]},
        pd.MultiIndex.from_tuples([("a", 1, "own")], names=["study", "layer", "inputs"]),
    )
    found = explanation.judged(needed, reach, 2.0)
    assert found["furthest"].tolist()[:3] == pytest.approx([75.0] * 3), "the half of a half is left"
    assert found["answer"].tolist() == ["reached", "out of reach", "not reached", "not reached"]
    both = pd.DataFrame({"study": "a", "layer": 1, "sigma0": [0.1, 0.2], "measured": [36.0, 5.0]})
    row = explanation.misfit(reach, both).loc["a", 1]
    assert row["misfit"] == pytest.approx(2), "36 % is 20 % twice"
    assert (row["sigma0"], row["measured"]) == (0.1, 36)


def test_falls_of_ever_larger_layers_are_those_of_the_best_setting() -> None:
    pairs = pd.DataFrame({"n_hidden": [5, 5, 9, 9], "seed": [0, 1, 0, 1], "n_var": [50, 50, 90, 90], "value": 100.0})
    ends = {(5, "a"): (90, 80), (5, "b"): (95, 95), (9, "a"): (100, 100), (9, "b"): (70, -10)}
    searches = pd.DataFrame(
        [(n, method, seed, end) for (n, method), own in ends.items() for seed, end in enumerate(own)],
        columns=["n_hidden", "method", "seed", "best"],
    )
    steps = pairs.assign(best=[50.0, 40, 30, 20])
    found = explanation.scaling(pairs, searches, searches.rename(columns={"best": "mean_field"}), steps)
    for kind in ("measured", "predicted"):
        assert found[kind]["mean"].to_dict() == pytest.approx({50: 15, 90: 65}), (
            "100 where a surrogate falls below zero"
        )
        assert found[kind]["method"].to_dict() == {50: "a", 90: "b"}
    assert found["one gradient step"]["mean"].to_dict() == pytest.approx({50: 55, 90: 75})
    assert (found["measured"]["runs"] == 2).all()


def test_predictions_of_larger_layers_were_recorded_before_their_searches() -> None:
    first = archive.read("scaling_predictions", "pairs").set_index(["n_hidden", "seed"])["value"]
    steps = archive.read("scaling", "gradient_steps").set_index(["n_hidden", "seed"])
    assert steps["first"].to_dict() == pytest.approx(first.to_dict(), rel=1e-5), "from the same start solutions"
    assert set(archive.read("scaling")["n_hidden"]) == set(first.index.get_level_values("n_hidden"))


def test_what_prose_quotes_of_two_studies() -> None:
    methods = [f"lea-mvd:sigma0={sigma0}" for sigma0 in (0.003, 0.01, 0.1)]
    falls = {"a": (20, 30, 0), "b": (5, 0, 8)}
    places = {(study, 1, m): fall for study, own in falls.items() for m, fall in zip(methods, own, strict=True)}
    runs = made({place: [(100, 100 - fall)] * 2 for place, fall in places.items()}, "mean_field")
    half = made({place: [(100, 100 - fall / 2)] * 2 for place, fall in places.items()}, "best")
    wrong = made({place: [(100, 90)] * 2 for place in places}, "best")
    both = explanation.predicted_and_measured(wrong, half, runs)
    slope = 0.006 * 50 / (2 * 1.94767)  # a step of 0.006, half of which is 0.003
    model = {"n_pairs": 10, "value": 9.0, "slope": slope, "curvature": 50.0, "scatter": 5.0, "lower": 0.5}
    rows = [{"study": study, "layer": 1, "seed": s, "sigma": 0.01} | model for study in falls for s in (0, 1)]
    table = pd.DataFrame(rows)
    table.loc[table["study"] == "b", "slope"] *= 10
    found = explanation.quoted(explanation.pairs(table), both, 0.01)
    assert (found["step-1"], found["large-step-1"]) == pytest.approx((0.006, 0.06), rel=1e-4)
    assert (found["best-1"], found["best-sigma0-1"]) == (30, 0.01)
    assert (found["large-best-1"], found["large-best-sigma0-1"]) == (8, 0.1)
    assert (found["half-1"], found["half-sigma0-1"]) == (20, 0.003)
    assert (found["large-half-1"], found["large-half-sigma0-1"]) == (0, 0.01)
    assert (found["default-1"], found["misfit-1"], found["scatter-1"]) == (0, 2, 0.1)
    assert (found["predicted"], found["retrodicted"], found["settings"]) == (4, 6, 6)
