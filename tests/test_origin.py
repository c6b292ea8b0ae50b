"""Section 7: searches whose last step and standard deviations are others,
against their formulas.
"""

from itertools import pairwise
from typing import Any

import cma
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color
from scipy import stats

import reference
from figures import assert_sound, assert_told_apart
from leamvd import LEAMVD, Reading
from leamvd.networks.contrastive_divergence import ContrastiveDivergence
from leamvd.networks.dbn import layer_seed
from leamvd.networks.objective import ReconstructionObjective
from leamvd.optimizers.state import State
from leamvd_paper.data import images
from leamvd_paper.data.functions import FUNCTIONS, ellipsoid
from leamvd_paper.studies import origin, verify
from leamvd_paper.studies.benchmarks import Function, Moved
from leamvd_paper.studies.layers import Images
from leamvd_paper.studies.origin import NOISES, OFF, PRINTED, SPREADS, Varied
from leamvd_paper.studies.results import read_recorded
from leamvd_paper.studies.words import named

N, SEED, SIZE = 2_000, 3, 0.7


def varied(noise: str, spread: str = PRINTED, n_var: int = N, **given: Any) -> Varied:
    reading = Reading(reset="off", **given)
    x0 = np.linspace(-1, 2, n_var)
    return Varied(x0, noise=noise, spread=spread, size=SIZE, sigma0=0.3, seed=SEED, reading=reading)


def generations(opt: LEAMVD, count: int) -> list[tuple[Any, State]]:
    """Return candidates and states."""
    found = []
    for _ in range(count):
        X = opt.ask().copy()
        opt.tell(X, ellipsoid(X - 1))
        found.append((X, opt.state))
    return found


@pytest.mark.parametrize(
    ("noise", "last"), [(origin.FACTOR, "entry"), (origin.ADDED, "added"), (OFF, "off")]
)
def test_what_the_library_has_is_the_librarys(noise: str, last: Any) -> None:
    own = LEAMVD(
        np.linspace(-1, 2, N),
        sigma0=0.3,
        seed=SEED,
        reading=Reading(reset="off", perturbation=last),
    )
    for (theirs, _), (mine, _) in zip(
        generations(own, 6), generations(varied(noise), 6), strict=True
    ):
        np.testing.assert_array_equal(theirs, mine)


def test_noises_end_a_generation_as_their_names_say() -> None:
    """The second generation, after a first that is the same for all."""
    (_, before), (plain, _) = generations(varied(OFF), 2)
    factors = np.array([reference.factors(SEED, 2, row, N) for row in range(4, 24)])
    expected = {
        origin.FACTOR: plain * factors,
        origin.ABOUT_MEAN: before.mean + (plain - before.mean) * factors,
        origin.ADDED: plain + 0.3 * (factors - 1),
        **{f"{origin.SPARSE}, {k:g}": plain + k * SIZE * (factors - 1) for k in origin.SIZES},
    }
    for noise, X in expected.items():
        np.testing.assert_allclose(
            generations(varied(noise), 2)[1][0], X, atol=1e-12, err_msg=noise
        )
    for noise in (f"{origin.DENSE}, 3", f"{origin.SPARSE}, 3"):
        step = generations(varied(noise), 2)[1][0] - plain
        assert step.std() == pytest.approx(3 * SIZE * np.sqrt(0.02 / 12), rel=0.05), (
            "a factor's at a size of 1"
        )
        assert abs(step.mean()) < 5 * step.std() / np.sqrt(step.size)
    assert (step != 0).mean() == pytest.approx(0.02, rel=0.1)


def test_normal_noise_is_drawn_anew_in_each_generation_and_seed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What it adds to the candidates of a generation without noise, in units of its deviation."""
    regenerate = LEAMVD._regenerate
    plain: list[Any] = []

    def noted(opt: LEAMVD, place: Any) -> None:
        regenerate(opt, place)
        plain.append(opt._X[opt.n_elite :].copy())

    monkeypatch.setattr(LEAMVD, "_regenerate", noted)
    steps = []
    reading = Reading(reset="off", perturbation_share=0.5)
    given = {"noise": f"{origin.DENSE}, 0.3", "spread": PRINTED, "size": SIZE, "reading": reading}
    for seed in (SEED, SEED + 1):
        plain.clear()
        opt = Varied(np.linspace(-1, 2, N), sigma0=0.3, seed=seed, **given)
        found = [X for X, _ in generations(opt, 4)][-len(plain) :]
        assert len(plain) == 3
        unit = 0.3 * SIZE * np.sqrt(0.5 / 12)
        steps += [((X - x) / unit).ravel() for X, x in zip(found, plain, strict=True)]
    assert stats.kstest(np.concatenate(steps), "norm").pvalue > 1e-3
    np.testing.assert_allclose(np.corrcoef(steps), np.eye(6), atol=5 / np.sqrt(len(steps[0])))


@pytest.mark.parametrize("descent", ["orthogonal", "off"])
@pytest.mark.parametrize("spread", SPREADS)
def test_standard_deviations_are_about_the_point_that_their_names_say(
    spread: str, descent: Any
) -> None:
    found = [state for _, state in generations(varied(OFF, spread, 50, descent=descent), 8)]
    G = reference.esd(24, 1.5)
    for before, state in pairwise(found):
        v = before.beta2 * before.path
        if descent != "off":
            v = v + (1 - before.beta2) * abs(before.descent_mean) * before.descent
        points = {origin.BEFORE: before.mean, origin.CENTER: before.mean + before.beta1 * v}
        about = points.get(spread, state.mean)
        square = (
            G @ (state.population - about) ** 2 / (1 - G @ G if spread == origin.UNBIASED else 1)
        )
        np.testing.assert_allclose(state.std, np.sqrt(square), rtol=1e-9)
        assert state.std_norm == pytest.approx(np.linalg.norm(state.std))


def test_a_rotated_ellipsoid_is_an_ellipsoid() -> None:
    start, objective = origin.centered("rotated ellipsoid", 10, SEED)
    H = np.array(
        [[(objective(a + b) - objective(a - b)) / 4 for a in np.eye(10)] for b in np.eye(10)]
    )
    np.testing.assert_allclose(np.linalg.eigvalsh(H), np.logspace(0, 2, 10), rtol=1e-9)
    assert np.abs(H - np.diag(np.diag(H))).max() > 1
    assert start.tolist() == origin.centered("sphere", 10, SEED)[0].tolist()


@pytest.mark.compiled
@pytest.mark.parametrize("noise", [OFF, origin.ADDED, origin.ABOUT_X0, origin.FACTOR])
def test_the_place_of_the_optimum_matters_to_factors_alone(noise: str) -> None:
    ends = [
        origin.search("rastrigin", 10, c, 1.0, origin.FORMER, noise, SEED, PRINTED, 4).rows
        for c in (1.0, 64.0)
    ]
    assert ends[0]["evaluations"].tolist() == ends[1]["evaluations"].tolist() == [1000]
    same = bool(np.isclose(*(rows["best"][0] for rows in ends), rtol=1e-3))
    assert same is (noise != origin.FACTOR)


def test_factors_about_the_start_are_factors_where_it_is_the_origin() -> None:
    start, objective = origin.centered("sphere", 10, SEED)
    own = LEAMVD(np.zeros(10), sigma0=0.3, sigma_min=0, n_gen=1000, seed=SEED)
    while own.nfev + own.n_candidates <= 1000:
        X = own.ask()
        own.tell(X, objective(X + start))
    found = origin.search("sphere", 10, 7.0, 1.0, "lea-mvd", origin.ABOUT_X0, SEED, PRINTED, 4)
    assert found.rows["best"][0] == pytest.approx(own.best_fun, rel=1e-9)


@pytest.mark.parametrize(("c", "scale"), [(7.0, 1.0), (0.5, 3.0)])
def test_constant_noise_is_in_units_of_the_numbers_of_the_start_solution(
    c: float, scale: float
) -> None:
    start, objective = origin.centered("sphere", 10, SEED)
    x0 = c + scale * start
    given = {"sigma0": 0.3 * scale, "n_elite": 4, "sigma_min": 0, "n_gen": 1000, "seed": SEED}
    noise, size = f"{origin.SPARSE}, 1", np.linalg.norm(x0) / np.sqrt(10)
    own = Varied(x0, noise=noise, spread=PRINTED, size=size, reading=Reading(), **given)
    while own.nfev + own.n_candidates <= 1000:
        X = own.ask()
        own.tell(X, objective(X - c))
    found = origin.search("sphere", 10, c, scale, "lea-mvd", noise, SEED, PRINTED, 4)
    assert found.rows["best"][0] == pytest.approx(own.best_fun, rel=1e-9)


def test_the_baseline_has_the_population_of_its_authors() -> None:
    """Of 12 in 20 variables, which 2,000 evaluations hold 166 times."""
    size = cma.CMAEvolutionStrategy(np.ones(20), 0.3, {"verbose": -9}).popsize
    found = origin.search("sphere", 20, 1.0, 1.0, origin.BASELINE, OFF, SEED, PRINTED, 4)
    assert found.rows["evaluations"].tolist() == [2_000 // size * size] != [2_000 // 7 * 7]


def test_factors_about_the_start_move_a_layer_from_it() -> None:
    small = Images(n_images=60)
    rows = origin.about_start(small, 5, 0.01, SEED).rows
    V = images.load("digits", side=7, n_train=60, dtype="float32").train
    start = ContrastiveDivergence(V, 5, seed=layer_seed(SEED, 1)).epoch().flat()
    objective, seed = ReconstructionObjective(V, 5), layer_seed(SEED, 1)
    first = LEAMVD(np.zeros_like(start), sigma0=0.01, seed=seed, dtype="float32").ask()
    assert rows["mean_field"][0] == objective(start[None])[0]
    assert rows["mean_field"][1] == objective(start + first).min()
    assert rows["iteration"].tolist() == list(range(51))
    assert (np.diff(rows["mean_field"]) <= 0).all()
    assert rows["mean_field"].iloc[-1] < rows["mean_field"][0]


def test_a_moved_problem_is_the_same_elsewhere() -> None:
    (x0, plain), (moved, objective) = (
        Function("ackley", 7).start(2),
        Moved("ackley", 7, by=64.0).start(2),
    )
    np.testing.assert_array_equal(moved, x0 + 64)
    np.testing.assert_allclose(objective(moved[None]), plain(x0[None]), rtol=1e-12)
    assert str(Moved("ackley", 7)) == "ackley, n = 7, moved by 64"


def test_a_part_carries_a_search_that_ends_higher_without_it() -> None:
    rows = [
        ("sphere", 1.0, PRINTED, 4, noise, directions, seed, value * (1 + seed))
        for (noise, directions), value in {
            **{(noise, "both"): 2.0 for noise in NOISES},
            **{(noise, "none"): 5.0 for noise in NOISES},
            (OFF, "both"): 60.0,
        }.items()
        for seed in range(3)
    ]
    columns = ["function", "c", "std", "n_elite", "noise", "directions", "seed", "best"]
    table = pd.DataFrame(rows, columns=columns)
    ends = origin.medians(table, ["noise", "directions"]).iloc[0]
    assert ends[["median", "low", "high"]].tolist() == [4.0, 3.0, 5.0]
    other = table.assign(c=10.0, best=table["best"].where(table["noise"] != origin.FACTOR, 15.0))
    found = origin.carries(pd.concat([table, other])).set_index(["part", "noise"])
    assert found.loc["noise", origin.FACTOR].tolist() == [2, 1, 8, 30], "120 over 15 and over 4"
    assert found.loc["directions", origin.ADDED].tolist() == [2, 0, 2.5, 2.5]
    assert found.loc["directions", OFF]["most"] == pytest.approx(1 / 12)
    without = found.loc["noise, without directions", origin.FACTOR].tolist()
    assert without == [2, 0, pytest.approx(10 / 15), 1], "10 over 15 and over 10"
    assert len(found) == 3 * len(NOISES)
    tenfold = table.replace({"best": {60.0: 20.0, 120.0: 40.0, 180.0: 60.0}})
    carried = origin.carries(tenfold).query("part == 'noise'").set_index("noise")
    assert carried["carries"].tolist() == [1] * (len(NOISES) - 1) + [0], "ten times are enough"
    assert carried["most"].tolist() == [10] * (len(NOISES) - 1) + [1]


def test_the_plans_are_those_of_the_rules() -> None:
    places, parts = (origin.RECORDED[name].plan()["runs"][1] for name in ("origin", "carries"))
    assert len(parts) == 2 * 2 * 11 * 4 * 2 * 2 * 10
    for (_, _, noise, spread, n_elite, directions, _), call in parts.items():
        own = call.arguments
        assert (own["noise"], own["spread"], own["n_elite"]) == (noise, spread, n_elite)
        assert ("path=off+descent=off" in own["method"]) == (directions == "none")
        assert (own["n_var"], own["scale"]) == (100, 1)
    for (*_, seed), call in places.items():
        own = call.arguments
        assert (own["spread"], own["n_elite"], own["seed"]) == (PRINTED, 4, seed)
    ((_, layers),) = origin.RECORDED["about_start"].plan().values()
    for (layer, seed), call in layers.items():
        own = call.arguments
        assert (layer, own["seed"], own["n_hidden"], own["sigma0"]) == (1, seed, 500, 0.01)
    for entry in origin.RECORDED.values():
        assert len(verify.sample(*entry.plan()["runs"], 1)) == 1
    assert {label[0] for label in places} == {"sphere", "rotated ellipsoid", "rastrigin"}
    assert {label[4] for label in places if label[3] == origin.FACTOR and label[1] < 1000} == {
        0,
        0.1,
        1,
        10,
        100,
    }
    assert all(FUNCTIONS[name](np.zeros((1, 3))) == 0 for name in ("sphere", "rastrigin"))


def test_places_are_decades_apart_beyond_the_smallest_and_intervals_are_quartiles() -> None:
    table = read_recorded("origin")
    figure = origin.plot_places(table, "sphere", 100)
    plt.close(figure)
    assert_sound(figure)
    assert_told_apart(figure)
    rows = table.query("function == 'sphere' and n_var == 100 and scale == 1")
    for ax, method in zip(figure.axes, (origin.DEFAULT, origin.SMALL), strict=True):
        ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        assert [float(label.get_text()) for at, label in ticks if at in origin.PLACES] == [
            *origin.PLACES
        ]
        separable = rows[rows["method"].str.startswith(origin.BASELINE)]
        (level,) = (line for line in ax.lines if line.get_label() == named(origin.BASELINE))
        assert {*level.get_ydata()} == {separable.groupby("noise")["best"].median().iloc[0]}
        assert ax.get_title() == named(method).removeprefix("LEA-MVD, ")
        assert ax.get_xlabel() == "place of the optimum"
        at = ax.transData.transform([(c, 1.0) for c in origin.PLACES])[:, 0]
        assert np.diff(at)[1:] == pytest.approx(np.full(3, np.diff(at)[1])), "0.1, 1, 10 and 100"
        assert 0 < at[1] - at[0] < at[2] - at[1], "zero is near"
        ends = origin.medians(rows[rows["method"] == method], ["noise", "c"])
        colors = {line.get_label(): line.get_color() for line in ax.lines}
        spans = {area.get_facecolor(): area.get_window_extent() for area in ax.patches}
        (band,) = ax.collections
        factor = ends[ends["noise"] == origin.FACTOR]
        assert same_color(band.get_facecolor()[0, :3], colors[origin.FACTOR])
        edges = {*zip(*band.get_paths()[0].vertices.T, strict=True)}
        assert {
            *zip(factor["c"], factor["low"], strict=True),
            *zip(factor["c"], factor["high"], strict=True),
        } <= edges
        for noise in (OFF, origin.ADDED, origin.ABOUT_X0):
            own = ends[ends["noise"] == noise]
            (span,) = (box for color, box in spans.items() if same_color(color[:3], colors[noise]))
            quartiles = ax.transData.inverted().transform([(0, span.y0), (0, span.y1)])[:, 1]
            assert quartiles == pytest.approx([own["low"].median(), own["high"].median()])
