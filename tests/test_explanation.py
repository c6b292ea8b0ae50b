"""Section 10: what slope and curvature say of searches, on small runs and on tables with known
answers.
"""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from leamvd.networks.dbn import Training, layer_seed
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers import local_model
from leamvd_paper.studies import explanation
from leamvd_paper.studies.classification import random_stack
from leamvd_paper.studies.explanation import GENERATIONS, QUALITIES, SEARCH, Settings, Tables
from leamvd_paper.studies.layers import rbms
from leamvd_paper.studies.results import Result, read_recorded
from leamvd_paper.studies.statistics import interval

METHODS = ("lea-mvd:sigma0=0.01", "lea-mvd:sigma0=0.3")
MODEL = {
    "sigma": 0.01,
    "n_pairs": 5,
    "value": 9.0,
    "slope": 3.0,
    "curvature": 50.0,
    "scatter": 1.0,
    "lower": 0.5,
}
SMALL = {"n_images": 60, "layers": (6, 4), "seeds": (0, 1), "methods": METHODS, "n_gen": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("explanation"))


@pytest.fixture(scope="module")
def found(folder) -> Tables:
    return explanation.tables("quick", folder, **SMALL, n_pairs=5, sigmas=(0.005, 0.1))


def made(ends: dict[tuple[str, int, str], list[tuple[float, ...]]], column: str) -> pd.DataFrame:
    """Return runs with given values, one for each seed."""
    rows = [
        (study, layer, "own", method, seed, iteration, value)
        for (study, layer, method), runs in ends.items()
        for seed, values in enumerate(runs)
        for iteration, value in enumerate(values)
    ]
    return pd.DataFrame(rows, columns=[*SEARCH, "iteration", column])


# ---- what is computed


def test_settings_take_effect_and_bad_ones_are_refused(found) -> None:
    assert found.pairs["sigma"].unique().tolist() == [0.005, 0.1]
    assert set(found.pairs["n_pairs"]) == {5}
    assert found.runs["iteration"].max() == SMALL["n_gen"]
    assert set(found.runs["method"]) == set(METHODS)
    for wrong in ({"sigmas": (0.0,)}, {"n_pairs": 1}, {"methods": ("cma-es",)}, {"seeds": ()}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            explanation.tables("quick", **wrong)
    with pytest.raises(ValueError, match="n_pairs"):
        explanation.tables("recorded", n_pairs=30)
    pairs = pd.DataFrame({"sigma": [0.004, 0.019]})
    assert explanation.near_reference(pairs)["sigma"].tolist() == [0.019], (
        "nearest to 0.01 by its logarithm"
    )


def test_searches_start_where_the_pairs_were_measured(found) -> None:
    for predicted in (found.surrogates, found.retrodictions):
        first = predicted[predicted["iteration"] == 0].set_index(SEARCH)["best"]
        start = found.runs[found.runs["iteration"] == 0].set_index(SEARCH)["mean_field"]
        own = (
            first.index
            if predicted is found.retrodictions
            else first[first.index.get_level_values("layer") == 1].index
        )
        np.testing.assert_allclose(first[own], start[own], rtol=1e-9)


def test_predictions_need_no_search(folder) -> None:
    def behind(call):
        return [call, *(other for need in call.needs for other in behind(need))]

    planned = explanation.plan(explanation.PROFILES["quick"].changed(**SMALL))
    for name, trainers in (("surrogates", {"cd"}), ("retrodictions", {"cd", "lea-mvd"})):
        columns, calls = planned[name]
        upper = [call for label, call in calls.items() if label[columns.index("layer")] == 2]
        used = [
            other.arguments
            for call in upper
            for other in behind(call)
            if "trainer" in other.arguments
        ]
        assert {own["trainer"] for own in used} == trainers
        assert {own["reading"].n_gen for own in used if own["trainer"] == "cd"} == {1}


def test_starts_on_shared_inputs_stand_on_what_their_searches_stand_on() -> None:
    changes = SMALL | {"inputs": ("own", "shared")}
    planned = explanation.plan(explanation.PROFILES["quick"].changed(**changes))
    columns, searches = planned["runs"]
    method = columns.index("method")
    below = {}
    for label, call in searches.items():
        if "shared" in label and 2 in label[: columns.index("inputs")]:
            below[label[:method] + label[method + 1 :]] = call.arguments["below"].key
    assert below
    for name in ("pairs", "gradient_steps", "rises"):
        starts = planned[name][1]
        found = {label: starts[label].arguments["start"].arguments["below"].key for label in below}
        assert found == below, name


def test_predictions_have_the_settings_of_their_searches() -> None:
    methods = ("lea-mvd:sigma0=0.01+reset=off", "lea-mvd:perturbation=added")
    study = explanation.PROFILES["quick"].changed(**SMALL | {"methods": methods})
    planned = explanation.plan(study)
    _, searches = planned["runs"]
    for name in ("surrogates", "retrodictions"):
        _, calls = planned[name]
        assert calls.keys() == searches.keys()
        for label, call in calls.items():
            search = searches[label].arguments
            assert call.arguments["training"] == search["training"]
            assert call.arguments["reading"] == search["reading"]


def test_pairs_are_drawn_by_the_seed_of_their_layer() -> None:
    study = explanation.PROFILES["quick"].changed(**SMALL)
    stack = random_stack((49, 6, 4), "0.1", "float64", seed=0)
    top = explanation._last_layer(stack, study.images, "probabilities", 3)
    assert top.seed == layer_seed(3, 2)
    rows = explanation.pairs(stack, study.images, "probabilities", 3, (0.1,), 4).rows
    known = local_model.measure(top.objective, top.x0, sigma=0.1, n_pairs=4, seed=layer_seed(3, 2))
    assert rows["slope"].item() == known.slope


def test_retrodictions_stand_on_what_the_search_has_made_of_the_layer_right_below() -> None:
    changes = SMALL | {"layers": (6, 5, 4), "seeds": (0,), "methods": METHODS[:1]}
    planned = explanation.plan(explanation.PROFILES["quick"].changed(**changes))
    columns, searches = planned["runs"]
    at = columns.index("layer")
    for label, call in planned["retrodictions"][1].items():
        start = call.arguments["around"].arguments["start"]
        if label[at] > 1:
            below = start.arguments["below"]
            assert below.key == searches[label].arguments["below"].key, label
        assert (start.arguments["n_hidden"], call.arguments["layer"]) == (label[3], label[at])


def test_a_surrogate_is_its_layers_search_along_its_seeds_direction() -> None:
    """Of the step size nearest to 0.01; f(x0) + slope y_1 + curvature |y|^2 /
    (2 n) in plain NumPy.
    """
    pairs = Result(pd.DataFrame([MODEL | {"sigma": 0.1, "slope": 1.0}, MODEL]), {"x0": np.ones(20)})
    study = Settings().changed(dtype="float64", n_gen=5)
    opt = study.training.optimizer(
        "lea-mvd", np.ones(20), reading=study.reading, seed=layer_seed(3, 2)
    )
    direction, best = np.random.default_rng(3).standard_normal(20), [9.0]
    for _ in range(5):
        Y = (X := opt.ask()) - 1
        opt.tell(
            X, 9 + 3 * Y @ direction / np.linalg.norm(direction) + 50 / 40 * (Y**2).sum(axis=1)
        )
        best.append(opt.best_fun)
    found = explanation.surrogate(pairs, 2, 3, study.training, study.reading).rows["best"]
    assert found.tolist() == pytest.approx(best)
    assert best[-1] < 8.5


def test_a_surrogate_has_the_same_bits_on_any_number_of_threads() -> None:
    x0 = np.random.default_rng(0).standard_normal(300_000).astype(np.float32)
    ends, study = [], Settings().changed(n_gen=3)
    for threads in (1, 2):
        with threadpool_limits(threads):
            pairs = Result(pd.DataFrame([MODEL]), {"x0": x0})
            ends.append(
                explanation.surrogate(pairs, 1, 0, study.training, study.reading)
                .rows["best"]
                .tolist()
            )
    assert ends[0] == ends[1]


def around_a_first_layer(table: str) -> tuple[pd.Series, np.ndarray, np.ndarray]:
    """Return what a table of the plan has of a first layer, its images and its start solution."""
    study = explanation.PROFILES["quick"].changed(**SMALL).on_disk()
    columns, calls = explanation.plan(study)[table]
    call = next(call for label, call in calls.items() if label[columns.index("layer")] == 1)
    (start,) = call.needs
    trained = start.function(**start.arguments)
    row = call.function(**call.arguments | {"start": trained}).rows.iloc[0]
    return row, study.images.load("float64").train, rbms(trained)[0].flat()


def test_a_gradient_step_ends_at_the_lowest_point_of_its_line() -> None:
    row, V, x0 = around_a_first_layer("gradient_steps")
    error, h = ReconstructionObjective(V, 6), 1e-5 * np.eye(len(x0))
    (value,), gradient = error(x0[None]), (error(x0 + h) - error(x0 - h)) / 2e-5
    lengths = value / (gradient @ gradient) * np.linspace(0, 3, 301)
    along = error(x0 - lengths[:, None] * gradient)
    assert row["first"] == pytest.approx(value)
    assert row["best"] == pytest.approx(along.min(), rel=1e-3)
    assert row["nfev"] <= 20


@pytest.mark.parametrize(("end", "tolerance"), [("", 0), ("_28x28", 1e-6)])
def test_predictions_were_recorded_before_their_searches(end: str, tolerance: float) -> None:
    """On large layers several BLAS threads had rounded the predictions; in the later study there
    was one.
    """
    for table, by in (("pairs", ["sigma"]), ("surrogates", ["method", "iteration"])):
        first, then = (
            read_recorded(f"{name}{end}", table).sort_values(
                ["layer", "seed", *by], ignore_index=True
            )
            for name in ("predictions", "explanation")
        )
        pd.testing.assert_frame_equal(first, then[first.columns], rtol=tolerance, atol=0)


# ---- tables


def test_theory_of_pairs() -> None:
    model = local_model.LocalModel(0.1, 10, 20.0, 3.0, 50.0, 10.0, 0.5)
    found = explanation.step_sizes(pd.DataFrame([model])).iloc[0]
    assert found["step_size"] == pytest.approx(2 * 1.94767 * 3 / 50, rel=1e-5)
    assert found["scatter_share"] == 0.2
    for name, value in QUALITIES.items():
        assert found[f"gain {name}"] == pytest.approx(100 * value * 3**2 / (2 * 50) / 20)
    assert QUALITIES["paper"] == pytest.approx(local_model.quality(np.arange(24, 0, -1) ** 1.5)), (
        "Eq. 1"
    )


def test_generations_compound() -> None:
    assert explanation.PAPER.reading.n_gen - 1 == GENERATIONS, "all but the first, which is drawn"
    table = pd.DataFrame({"study": "a", "layer": 1, "inputs": "own", "sigma": [0.01, 0.01, 0.3]})
    gains = {"gain paper": [1.0, 4.0, 3.0], "gain best": [200.0, 200.0, 1.0]}  # geometric means
    found = explanation.reach(table.assign(**gains)).loc["a", 1, "own"]
    assert found["paper mean"] == pytest.approx(100 * (1 - 0.98**GENERATIONS))
    assert found["best mean"] == 100, (
        "an error cannot fall below zero, and other step sizes do not count"
    )


def test_predicted_beside_measured() -> None:
    one, other = "lea-mvd:sigma0=0.01", "lea-mvd:sigma0=0.3+reset=off"
    still, ends = (
        [(10, 10)] * 3,
        {
            "runs": [(10, 11, 8), (10, 5, 6), (10, 10, 10, 10, 7)],
            "before": [(10, -5), (10, 9), (10, 10)],
        },
    )
    runs, before, after = (
        made({("a", 1, one): own, ("a", 1, other): still}, column)
        for own, column in ((ends["runs"], "mean_field"), (ends["before"], "best"), (still, "best"))
    )
    both = explanation.predicted_and_measured(
        Tables(pd.DataFrame(), before, after, runs)
    ).set_index("method")
    assert both["measured"].tolist() == pytest.approx([30, 0])
    assert both.loc[one, ["low", "high"]].tolist() == pytest.approx(
        [30 - 24.841, 30 + 24.841], rel=1e-4
    )
    assert both["predicted"].tolist() == pytest.approx([110 / 3, 0]), (
        "100 where a surrogate falls below zero"
    )
    assert both.loc[one, ["share predicted", "share retrodicted", "share measured"]].tolist() == [
        2 / 3,
        0,
        1,
    ]
    assert both[["sigma0", "reset"]].values.tolist() == [[0.01, True], [0.3, False]]
    few = Tables(pd.DataFrame(), *(table[table["seed"] < 2] for table in (before, after, runs)))
    ends = explanation.predicted_and_measured(few)[["low", "high"]]
    assert ends.isna().all(axis=None), "two runs say nothing of their scatter"


def test_predictions_are_scored_over_the_settings_that_all_last_steps_have() -> None:
    """abs ln((p + 0.1) / (m + 0.1)) is ln 2 for predicted 0.1 and measured 0.3 or 0, and 0 where
    both are equal.
    """
    one, off, alone = (
        "lea-mvd:sigma0=0.01",
        "lea-mvd:sigma0=0.01+perturbation=off",
        "lea-mvd:sigma0=0.3",
    )

    def ends(*falls: float) -> list[tuple[float, float]]:
        return [(100.0, 100.0 - fall) for fall in falls]

    runs = {
        ("a", 1, one): ends(0.3, 0.3, 0, 0.1),
        ("a", 1, off): ends(0.3, 0, 0.3),
        ("a", 1, alone): ends(9, 9, 9),
    }
    said = {label: ends(*[0.1] * len(own)) for label, own in runs.items()}
    measured = Tables(pd.DataFrame(), made(said, "best"), pd.DataFrame(), made(runs, "mean_field"))
    entry, other = explanation.scored(measured).to_dict("records")
    assert (entry["noise"], entry["searches"], other["noise"], other["searches"]) == (
        "entry",
        3,
        "off",
        3,
    )
    for row in (entry, other):
        assert row["right"] == row["left"] == pytest.approx(2 / 3)
        assert [row["low"], row["error"], row["high"]] == pytest.approx([np.log(2)] * 3)
        assert row["measured"] == pytest.approx(0.2)
        assert row["predicted"] == pytest.approx(0.1)
    runs["a", 1, off] = ends(0.1, 0.1, 0.3)
    uneven = explanation.scored(measured._replace(runs=made(runs, "mean_field"))).iloc[1]
    assert uneven[["low", "error", "high"]].tolist() == pytest.approx([0, 0, np.log(2)])


def test_factors_raise_a_layers_error_by_what_many_more_draws_say() -> None:
    row, V, x0 = around_a_first_layer("rises")
    objective, rng = ReconstructionObjective(V, 6), np.random.default_rng(5)
    hit = rng.random((2_000, len(x0))) < 0.02
    rises = 100 * (
        objective(x0 * np.where(hit, rng.uniform(0.5, 1.5, hit.shape), 1)) / objective(x0[None]) - 1
    )
    assert abs(row["rise"] - rises.mean()) < 5 * rises.std() / np.sqrt(72)
    assert abs(row["lower"] - (rises < 0).mean()) < 5 * 0.5 / np.sqrt(72)


def test_when_searches_leave_their_start() -> None:
    left = (7, 1, 8, np.inf)
    runs = made(
        {("a", 1, "lea-mvd"): [[10.0 if i < at else 9.0 - i for i in range(9)] for at in left]},
        "mean_field",
    )
    assert explanation.falls(runs, "mean_field")["left"].tolist() == [*left]


def test_which_recorded_searches_should_have_left_their_start() -> None:
    """Runs whose pairs are not measured do not count, nor do other methods, nor the first layer
    twice.
    """
    still, falls = (10.0, 10.0), (10.0, 9.0)
    ends = {("a", 1, "lea-mvd"): [falls, falls, still], ("a", 2, "lea-mvd"): [falls, still, still]}
    runs = made(ends | {("a", 2, "cd"): [falls] * 3}, "mean_field").drop(columns="study")
    said = made({("a", 1, "lea-mvd"): [falls, still], ("a", 2, "lea-mvd"): [still, still]}, "best")
    found = explanation.left_as_said(said, {"a": pd.concat([runs, runs.assign(inputs="shared")])})
    assert found.loc["a", 1, "own"].to_dict() == {"said": 1, "left": 2, "right": 1, "runs": 2}
    assert found.loc["a", 2, "own"].to_dict() == {"said": 0, "left": 1, "right": 1, "runs": 2}
    assert len(found) == 2


def test_the_fall_that_is_needed() -> None:
    """By last errors, not by the lowest; on shared inputs of layers above the first, and beside CD
    alone.
    """
    ends = {("", 2, "cd"): [(9e4, 1e4, 2e4), (9e4, 1e4, 4e4)]}
    ends |= {("", 2, "lea-mvd"): [(8e4, 6e4, 7e4), (12e4, 9e4, 10.5e4)]}
    runs = made(ends, "mean_field").assign(n_images=20_000)
    runs = pd.concat([runs, *(runs.assign(inputs="shared", layer=layer) for layer in (1, 2))])
    for study, below in (("mnist-7x7", ["cd"]), ("mnist-28x28", ["cd", "5,000"])):
        found = explanation.needed(study, runs).set_index("below")
        assert found["inputs"].tolist() == ["own"] * len(below) + ["shared"]
        found = found[found["inputs"] == "own"]
        assert found.index.tolist() == below
        assert found["fell"].tolist() == pytest.approx([12.5] * len(found))
        needed = found.loc["cd", "needed"]
        assert needed == pytest.approx(100 * (1 - np.sqrt(2e4 * 4e4 / (8e4 * 12e4))))
        assert found.loc["cd", "low"] < needed < found.loc["cd", "high"]
    assert found.loc["5,000", "needed"] == pytest.approx(
        100 * (1 - 20_000 / np.sqrt(8e4 * 12e4))
    ), "twice, 20,000 images"


def test_what_is_needed_is_out_of_reach_beyond_the_furthest() -> None:
    asked = [("x", 60.0, 60.0, 50.0), ("y", 0.0, 90.0, 85.0), ("z", 0.0, 80.0, 70.0)]
    needed = pd.DataFrame(asked, columns=["below", "fell", "needed", "low"]).assign(
        study="a", layer=1, inputs="own"
    )
    place = pd.MultiIndex.from_tuples([("a", 1, "own")], names=explanation.LAYER)
    bound = pd.DataFrame({"best high": [50.0], "paper mean": [20.0]}, place)
    found = explanation.answers(needed, bound, 2.0)
    assert found["furthest"].tolist() == pytest.approx([75] * 3), "the half of a half is left"
    assert found["answer"].tolist() == ["reached", "out of reach", "not reached"]
    both = pd.DataFrame(
        {"study": "a", "layer": 1, "inputs": "own", "sigma0": [0.1, 0.2], "measured": [36.0, 5.0]}
    )
    assert explanation.times_faster(bound, both) == pytest.approx(2), "36 % is 20 % twice"


def test_falls_of_ever_larger_layers_are_those_of_the_best_setting() -> None:
    pairs = pd.DataFrame(
        {"n_hidden": [5, 5, 9, 9], "seed": [0, 1, 0, 1], "n_var": [50, 50, 90, 90], "value": 100.0}
    )
    ends = {(5, "a"): (90, 80), (5, "b"): (95, 95), (9, "a"): (100, 100), (9, "b"): (70, -10)}
    rows = [
        (n, method, seed, end) for (n, method), own in ends.items() for seed, end in enumerate(own)
    ]
    searches = pd.DataFrame(rows, columns=["n_hidden", "method", "seed", "best"])
    steps = pairs.assign(best=[50.0, 40, 30, 20])
    found = explanation.scaling(
        pairs, searches, searches.rename(columns={"best": "mean_field"}), steps
    )
    means = found.pivot(index="n_var", columns="kind", values="mean")
    assert means["measured"].tolist() == means["predicted"].tolist() == pytest.approx([15, 65])
    assert means["one gradient step"].tolist() == pytest.approx([55, 75])


def test_searches_without_factors_are_of_the_size_that_is_said() -> None:
    tables = explanation.with_last_steps(explanation.recorded())
    first = tables.runs.query("layer == 1")
    for noise in ("entry", "off", "added"):
        rows = first[explanation._setting(first, "perturbation", "entry") == noise]
        sizes = rows.groupby("study")["n_visible"].unique()
        assert {study: n.tolist() for study, n in sizes.items()} == {
            "mnist-7x7": [49],
            "mnist-28x28": [784],
        }


def test_summary_compares_with_the_recorded_run_of_the_same_settings(found) -> None:
    assert "ratio" not in explanation.summary(found, "quick", **SMALL)
    runs = read_recorded("explanation").assign(study="mnist-7x7")
    same = explanation.summary(found._replace(runs=runs), "paper", seeds=(0, 1))
    assert same["ratio"].tolist() == pytest.approx([1] * len(same))


def test_factors_of_a_rise_are_of_equation_14(monkeypatch) -> None:
    """Of three populations, on 2 % of the numbers, between 0.5 and 1.5; the error is a made one."""
    x0 = np.linspace(1, 2, 20_000)
    seen = []

    def error(X: np.ndarray) -> np.ndarray:
        seen.append(X / x0)
        values = np.full(len(X), 60.0)
        values[: len(X) // 4] = 40.0
        values[-1] = 50.0  # as at the start, which is not lower
        return values if len(X) > 1 else np.full(1, 50.0)

    top = explanation.Top(np.zeros((5, 3)), error, x0, 3)
    monkeypatch.setattr(explanation, "_last_layer", lambda *_: top)
    row = explanation.rises(Result(pd.DataFrame()), Settings().images, "bits", 0).rows.iloc[0]
    assert [len(factors) for factors in seen] == [1, 24, 24, 24]
    assert (seen[0] == 1).all()
    assert row["rise"] == pytest.approx(100 * ((6 * 40 + 17 * 60 + 50) / 24 / 50 - 1))
    assert row["lower"] == 1 / 4
    populations = seen[1:]
    drawn = np.concatenate(populations)
    hit = drawn[np.abs(drawn - 1) > 1e-9]
    assert len(hit) / drawn.size == pytest.approx(0.02, rel=0.05)
    assert (hit.min(), hit.max()) == pytest.approx((0.5, 1.5), abs=0.01)
    assert (hit.mean(), hit.std()) == pytest.approx((1, 1 / np.sqrt(12)), abs=0.01)
    assert len({population.tobytes() for population in populations}) == 3


def test_runs_with_other_settings_are_not_compared_with_recorded_ones(monkeypatch, found) -> None:
    method = "lea-mvd:sigma0=0.1"
    runs = made({("mnist-7x7", 1, method): [(9.0, 4.0), (9.0, 2.0)]}, "mean_field")
    runs = runs.assign(n_images=10, sampled=1.0, mean_field_ratio=1.0, sampled_ratio=1.0)
    half = runs.assign(mean_field=runs["mean_field"] / 2)
    quarter = runs.assign(mean_field=runs["mean_field"] / 4)
    known = {"explanation": half, "explanation_28x28": quarter}
    monkeypatch.setattr(explanation, "read_recorded", known.get)
    table = found._replace(runs=runs)
    for profile, ratio in (("paper", 2), ("paper-28x28", 4)):
        ratios = explanation.summary(table, profile, seeds=(0,)).set_index("measure")["ratio"]
        assert ratios.to_dict() == pytest.approx({"mean_field": ratio, "sampled": 1})
        for changes in ({"n_gen": 40}, {"sigmas": (0.01,)}, {"n_images": 5_000}):
            assert "ratio" not in explanation.summary(table, profile, **changes)


def test_the_recorded_summary_is_of_the_small_images(found) -> None:
    runs = made({("mnist-7x7", 1, "lea-mvd"): [(9.0, 4.0), (9.0, 2.0)]}, "mean_field")
    large = made({("mnist-28x28", 1, "lea-mvd"): [(90.0, 80.0)] * 2}, "mean_field")
    table = pd.concat([runs, large]).assign(n_images=10_000)
    table = table.assign(sampled=table["mean_field"], mean_field_ratio=1.0, sampled_ratio=1.0)
    rows = explanation.summary(found._replace(runs=table))
    assert rows["mean"].tolist() == [3, 3]


def test_pairs_say_how_many_variables_and_images_they_are_of() -> None:
    images = Settings(layers=(6, 4)).changed(n_images=60).images
    stack = random_stack((49, 6, 4), "0.1", "float64", seed=0)
    around = explanation.pairs(stack, images, "probabilities", 3, (0.3, 0.1), 4)
    assert around.rows["sigma"].tolist() == [0.3, 0.1]
    assert {*around.rows["n_images"]} == {60}
    assert {*around.rows["n_var"]} == {6 * 4 + 6 + 4}
    assert around.arrays["x0"].tolist() == rbms(stack)[1].flat().tolist()


def test_the_step_size_nearest_to_the_reference_may_be_two() -> None:
    pairs = pd.DataFrame({"sigma": [0.1, 0.02, 0.005, 0.02, 1e-4], "row": range(5)})
    assert explanation.near_reference(pairs)["row"].tolist() == [1, 2, 3]
    alone = pd.DataFrame({"sigma": [3.0]})
    assert len(explanation.near_reference(alone)) == 1


def test_on_shared_inputs_what_is_retrodicted_is_what_is_predicted() -> None:
    changes = SMALL | {"inputs": ("own", "shared"), "sigmas": (0.2, 0.4), "n_pairs": 3}
    planned = explanation.plan(explanation.PROFILES["quick"].changed(**changes))
    columns, predicted = planned["surrogates"]
    _, retrodicted = planned["retrodictions"]
    assert predicted.keys() == retrodicted.keys()
    for label, call in retrodicted.items():
        one = dict(zip(columns, label, strict=True))
        same = call.key == predicted[label].key
        assert same == (one["inputs"] == "shared" or one["layer"] == 1)
        around = call.arguments["around"].arguments
        assert around["n_pairs"] == 3
        assert around["sigmas"] == ((0.2, 0.4) if same else (explanation.REFERENCE,))
        _, around_start = planned["pairs"]
        start = (*label[: columns.index("method")], one["seed"])
        assert predicted[label].arguments["around"].key == around_start[start].key


def test_settings_of_methods_are_columns_beside_falls() -> None:
    methods = {
        "lea-mvd": (Training.sigma0, "entry", True),
        "lea-mvd:perturbation=off+sigma0=0.3": (0.3, "off", True),
        "lea-mvd:reset=off+perturbation=added": (Training.sigma0, "added", False),
        "lea-mvd:reset=0.1+sigma0=0.01": (0.01, "entry", True),
    }
    ends = {("a", 2, method): [(10, 9), (10, 10), (10, 8)] for method in methods}
    ends |= {("b", 1, "lea-mvd"): [(10, 4), (10, 2), (10, 6)]}
    after = {label: [(10, 10 - at) for at in (3, 0, 0)] for label in ends}
    before = {label: [(10, 10 - at) for at in (1, 2, 0)] for label in ends}
    both = explanation.predicted_and_measured(
        Tables(
            pd.DataFrame(),
            made(before, "best"),
            made(after, "best").sample(frac=1, random_state=1),
            made(ends, "mean_field").sample(frac=1, random_state=2),
        )
    )
    told = both[both["study"] == "a"].set_index("method")[["sigma0", "noise", "reset"]]
    assert {method: (*row,) for method, row in told.T.items()} == methods
    other = both[both["study"] == "b"].iloc[0]
    ends = interval(pd.Series([60.0, 80.0, 40.0]))
    assert other[["measured", "low", "high"]].tolist() == pytest.approx([*ends])
    assert other[["predicted", "retrodicted"]].tolist() == pytest.approx([10, 10])
    shares = ["share measured", "share predicted", "share retrodicted"]
    assert other[shares].tolist() == pytest.approx([1, 2 / 3, 1 / 3])
    assert {*both["runs"]} == {3}


def test_what_can_be_reached_has_the_interval_of_its_gains_in_each_layer() -> None:
    rows = pd.DataFrame([*product(("a",), (2, 1), ("own", "shared"), (0, 1, 2))])
    rows = rows.set_axis([*explanation.LAYER, "seed"], axis=1).assign(sigma=0.01)
    rng = np.random.default_rng(4)
    for name in QUALITIES:
        rows[f"gain {name}"] = rng.uniform(0.1, 2, len(rows))
    found = explanation.reach(rows)
    for label, group in rows.groupby(explanation.LAYER):
        for name in QUALITIES:
            gains = np.exp(interval(np.log(group[f"gain {name}"])))
            known = [100 * (1 - (1 - gain / 100) ** GENERATIONS) for gain in gains]
            columns = [f"{name} {end}" for end in ("mean", "low", "high")]
            assert found.loc[label, columns].tolist() == pytest.approx(known)


def test_what_is_just_within_reach_is_not_out_of_it() -> None:
    needed = pd.DataFrame({"fell": [0.0, 0.0], "needed": 90.0, "low": [75.0, 75.001]})
    needed = needed.assign(study="a", layer=1, inputs="own")
    place = pd.MultiIndex.from_tuples([("a", 1, "own")], names=explanation.LAYER)
    bound = pd.DataFrame({"best high": [50.0], "paper mean": [20.0]}, place)
    found = explanation.answers(needed, bound, 2.0)
    assert found["answer"].tolist() == ["not reached", "out of reach"]


def test_falls_of_layers_have_the_interval_of_their_best_setting() -> None:
    pairs = pd.DataFrame({"n_hidden": 5, "seed": [1, 0, 2], "n_var": 50, "value": [50.0, 100, 10]})
    rows = [("a", 0, 90.0), ("a", 1, 40.0), ("a", 2, 6.0), ("b", 2, 9.0), ("b", 0, 95.0)]
    searches = pd.DataFrame([*rows, ("b", 1, 50.0)], columns=["method", "seed", "best"])
    searches = searches.assign(n_hidden=5)
    found = explanation.scaling(
        pairs, searches, searches.rename(columns={"best": "mean_field"}), pairs.assign(best=1.0)
    )
    ends = interval(pd.Series([10.0, 20, 40]))
    for kind in ("measured", "predicted"):
        row = found[found["kind"] == kind].squeeze()
        assert (row["n_var"], row["method"], row["runs"]) == (50, "a", 3)
        assert row[["mean", "low", "high"]].tolist() == pytest.approx([*ends])


def test_the_interval_of_a_median_is_over_seeds_and_of_95_percent() -> None:
    """Settings of a seed err alike; medians of 17 seeds have a known bootstrap distribution."""
    rows = pd.DataFrame([*product(range(1, 18), "abc")], columns=["error", "setting"])
    rows = rows.assign(seed=30 - rows["error"])
    n = np.arange(1, 18)
    below = stats.binom.sf(8, 17, n / 17)  # that 9 of 17 or more are among the first n
    known = [n[below >= 0.025][0], n[below >= 0.975][0]]
    assert [*explanation._median_interval(rows)] == known
    assert known != [n[below >= 0.05][0], n[below >= 0.95][0]]


def test_a_surrogate_spends_its_whole_budget_though_a_search_would_have_stopped() -> None:
    pairs = Result(pd.DataFrame([MODEL]), {"x0": np.ones(20)})
    study = Settings().changed(dtype="float64", n_gen=9, sigma0=1e-9, reset="off")
    study = study.changed(perturbation="off")
    rows = explanation.surrogate(pairs, 1, 0, study.training, study.reading).rows
    assert rows["iteration"].tolist() == [*range(10)]
    assert rows["best"][0] == MODEL["value"]


def test_of_searches_the_end_ships_and_of_other_tables_all_rows() -> None:
    rows = pd.DataFrame({"iteration": [2, 0, 1, 2], "row": range(4)})
    assert explanation._at_the_end(rows)["row"].tolist() == [0, 3]
    assert len(explanation._at_the_end(rows[["row"]])) == 4
