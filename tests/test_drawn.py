"""Figures draw the columns that their axes and legends name: on small tables, by formulas of the
tables and not by saved copies.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import LineCollection, PathCollection, PolyCollection
from matplotlib.colors import same_color
from matplotlib.lines import Line2D
from scipy import stats

from figures import assert_methods_have_their_colors, assert_sound, assert_told_apart
from leamvd.networks.dbn import Training
from leamvd.optimizers.selection import fractional_tournament
from leamvd_paper.studies import (
    architectures,
    classification,
    error_measures,
    esd,
    explanation,
    linear_cost,
    longer_searches,
    minima,
    plots,
    readings,
    settings_map,
    stacks,
    two_directions,
)
from leamvd_paper.studies.statistics import interval
from leamvd_paper.studies.words import named

RNG = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def _ruled() -> Iterator[None]:
    """Hold what a test has drawn to the rules of all figures."""
    yield
    figures = [plt.figure(number) for number in plt.get_fignums()]
    plt.close("all")
    for figure in figures:
        assert_sound(figure)
        assert_methods_have_their_colors(figure)
        assert_told_apart(figure)


def made(*columns: str, **values: Any) -> pd.DataFrame:
    """Return a row for each combination of the values that are lists, with a random `mean` in its
    interval, and other random columns.
    """
    table = pd.DataFrame([*product(*values.values())], columns=[*values])
    for name in ("mean", *columns):
        table[name] = RNG.uniform(1, 2, len(table))
    return table.assign(low=table["mean"] - 0.1, high=table["mean"] + 0.2)


def of(table: pd.DataFrame, **labels: Any) -> pd.DataFrame:
    """Return the rows that have these values."""
    for name, value in labels.items():
        table = table[table[name] == value]
    return table


def labeled(ax: Axes, label: str) -> Line2D:
    """Return the line that is labeled so."""
    found = []
    for drawn, name in zip(*ax.get_legend_handles_labels(), strict=True):
        if name == label:
            found.append(drawn if isinstance(drawn, Line2D) else drawn.lines[0])
    (line,) = found
    return line


def curve(ax: Axes, label: str) -> Any:
    """Return the points of what is labeled so, shape (n, 2)."""
    return np.array(labeled(ax, label).get_xydata(), dtype=float)


def is_open(line: Line2D) -> bool:
    return line.get_markerfacecolor() in ("white", "none")


def assert_curve(ax: Axes, label: str, x: Any, y: Any) -> None:
    np.testing.assert_allclose(curve(ax, label), np.column_stack([x, y]), err_msg=label)


def assert_band(ax: Axes, label: str, low: Any, high: Any) -> None:
    """Assert that the band of a line's color has these ends."""
    color = labeled(ax, label).get_color()
    bands = [c for c in ax.collections if isinstance(c, PolyCollection)]
    (band,) = (c for c in bands if same_color(c.get_facecolor()[0, :3], color))
    corners = pd.DataFrame(band.get_paths()[0].vertices).groupby(0)[1]
    np.testing.assert_allclose(corners.agg(["min", "max"]), np.column_stack([low, high]))


def lines(ax: Axes) -> list[Line2D]:
    """Return the lines of data, without guides across the panel."""
    return [line for line in ax.lines if line.get_transform() is ax.transData]


def levels(ax: Axes, axis: str = "y") -> list[float]:
    """Return where guides across a panel stand."""
    along = ax.get_yaxis_transform() if axis == "y" else ax.get_xaxis_transform()
    get = Line2D.get_ydata if axis == "y" else Line2D.get_xdata
    guides = [line for line in ax.lines if line.get_transform() == along]
    return [float(np.asarray(get(line))[0]) for line in guides]


def scales(ax: Axes) -> str:
    return f"{ax.get_xscale()}, {ax.get_yscale()}"


def names_of(axis: Axis) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def segments(ax: Axes) -> list[Any]:
    """Return the ends of all error bars."""
    bars = [c for c in ax.collections if isinstance(c, LineCollection)]
    return [segment for c in bars for segment in c.get_segments()]


def dots(ax: Axes) -> list[Any]:
    return [c.get_offsets() for c in ax.collections if isinstance(c, PathCollection)]


# ---- several sections

STUDIES = ["mnist-7x7", "mnist-28x28"]
METHODS = ["lea-mvd:printed", "random"]
FINE_TUNED = "test error after fine-tuning, %"
PROBED = "test error of a linear probe, %"
LAYERS = {0: "pixels", 1: "RBM 1", 2: "RBM 2"}
# what draws, by which columns panels, lines and points are told apart, and both axes' labels
DRAWN = [
    (classification.plot_errors, ("study", "method", "epoch"), "epoch", FINE_TUNED),
    (
        classification.plot_probes,
        ("study", "method", "layer"),
        "x",
        "test error of a linear probe, %",
    ),
    (explanation.plot_scaling, ("", "kind", "n_var"), "variables", "fall of the error, %"),
    (architectures.plot_networks, ("", "method", "network"), "x", "wrong test images, %"),
    (plots.input_std, ("", "method", "layer"), "x", "standard deviation of the inputs"),
    (minima.plot_escapes, ("sigma0", "method", "n_var"), "variables", "searches that escape, %"),
]
VALUES = {
    "study": STUDIES,
    "sigma0": [0.01, 0.3],
    "method": METHODS,
    "kind": ["measured", "predicted", "one gradient step"],
    "epoch": [0, 1, 10],
    "layer": [0, 1, 2],
    "n_var": [2, 10, 50],
    "network": ["tangents", "signs", "any other"],
}


@pytest.mark.parametrize(("draw", "by", "x", "y"), DRAWN)
def test_axes_name_what_is_drawn_and_intervals_reach_from_low_to_high(
    draw: Any, by: tuple[str, str, str], x: str, y: str
) -> None:
    table = made(**{name: VALUES[name] for name in by if name})
    table = table.assign(inputs="own") if draw is plots.input_std else table
    unit = 1.0
    if draw is minima.plot_escapes:
        unit = 100.0
        table[["mean", "low", "high"]] /= 2.5
    shown = plots.numbers(draw(table)).fillna({"panel": ""} if by[0] else {})
    panel, series, along = by
    for key, rows in table.groupby([panel, series] if panel else [series]):
        found = shown[shown["series"] == named(str(key[-1]))]
        if panel:
            title = named(key[0]) if panel == "study" else f"σ0 = {key[0]:g}"
            found = found[found["panel"] == title]
        words = LAYERS if by[0] or along != "layer" else {k: f"RBM {k}" for k in LAYERS}
        places = rows[along].map(words) if along == "layer" else rows[along]
        assert found[x].tolist() == places.tolist()
        ends = unit * rows[["mean", "low", "high"]]
        np.testing.assert_allclose(found[[y, "low", "high"]], ends)


def test_a_color_of_signed_images_says_on_which_side_of_the_middle_they_are() -> None:
    levels = np.array([[0, 127.5], [127.5, 255]])[None]
    for signed, said in ((False, ["white", "gray", "black"]), (True, ["blue", "white", "red"])):
        # also in a row that has no such levels
        figure = plots.gray_images({"name": levels, "faint": levels / 10 + 90}, signed=signed)
        images = [image for ax in figure.axes for image in ax.images]
        for image, (value, word) in product(images, zip((0, 127.5, 255), said, strict=True)):
            red, green, blue, _ = image.cmap(image.norm(value))
            seen = "gray"
            if min(red, green, blue) > 0.9:
                seen = "white"
            elif max(red, green, blue) < 0.1:
                seen = "black"
            elif abs(red - blue) > 0.2:
                seen = "red" if red > blue else "blue"
            assert seen == word


def test_ticks_of_logarithmic_axes_say_where_they_stand(tmp_path: Path) -> None:
    figure, ((ax,),) = plots.panels(1, 1, height=3.0)
    ax.plot([0.02, 0.06], [1, 5_000])
    plots.log_scale(ax, "xy")
    picture = plots.save(figure, "ticks", tmp_path)
    assert picture.width == round(plots.PIXELS * plots.WIDTH)
    for axis, in_words in ((ax.xaxis, {0.02, 0.03, 0.04, 0.06}), (ax.yaxis, {1, 100, 1_000})):
        told = set()
        for minor in (False, True):
            places = axis.get_ticklocs(minor=minor)
            words = [label.get_text() for label in axis.get_ticklabels(minor=minor)]
            for place, word in zip(places, words, strict=True):
                if word:
                    assert float(word.replace(",", "")) == pytest.approx(place)
                    told.add(round(place, 9))
        assert in_words <= told


def test_each_method_and_reading_has_a_look_of_its_own() -> None:
    own = {name: color for name, color in plots.COLORS.items() if name != "no search"}
    assert len({*own.values()}) == len(own)
    assert len({*plots.STYLES.values(), "-."}) == len(plots.STYLES) + 1
    assert len({*map(tuple, plots.shades(6).tolist())}) == 6


# ---- Section 1


def test_weights_by_rank() -> None:
    table = esd.weights([5], [0.0, 1.5])
    (ax,) = esd.plot_weights(table).axes
    for method, rows in table.groupby("method"):
        assert_curve(ax, method, rows["rank"], rows["weight"])
    assert ax.get_title().endswith(" 5 individuals")
    best = table.loc[table["weight"].idxmax(), "rank"]
    assert (ax.get_xlabel(), ax.get_ylabel()) == (f"rank ({best} = best)", "weight")


def test_differences_are_from_the_exact_probability_in_points_of_a_percent() -> None:
    counts = esd.simulate(6, 1_000, seed=1)
    nearest = esd.closest(6)
    figure = esd.plot_differences(counts, nearest)
    assert figure.axes[-1].get_xlabel() == "rank (1 = best)"
    assert "percentage points" in figure.get_supylabel()
    for ax, (name, rows) in zip(figure.axes, counts.groupby("tournament", sort=False), strict=True):
        assert ax.get_title() == name
        found = curve(ax, "simulation ± 2 s.e.")
        assert found[:, 1] == pytest.approx(100 * (rows["share"] - rows["exact"]).to_numpy())
        (bars,) = (c for c in ax.collections if isinstance(c, LineCollection))
        heights = [np.ptp(segment[:, 1]) for segment in bars.get_segments()]
        assert heights == pytest.approx((4 * 100 * rows["error"]).tolist())
        for kind in ("stated", "closest"):
            exponent = nearest.loc[name, f"{kind} exponent"]
            if np.isfinite(exponent):
                weights = fractional_tournament(6, exponent)
                assert_curve(ax, f"{kind} exponent", rows["rank"], 100 * (weights - rows["exact"]))


def test_ellipses_of_one_and_two_standard_deviations_around_the_means() -> None:
    points = esd.population(9, seed=1)
    models = esd.normal_models(points, [0.5, 2.25])
    figure = esd.plot_models(points, models)
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("$x_1$", "$x_2$")
    for ax, (_, a, x1, x2, s1, s2) in zip(figure.axes, models.itertuples(), strict=False):
        assert ax.get_title() == f"exponent {a:g}"
        (colored,) = (c for c in ax.collections if isinstance(c, PathCollection))
        np.testing.assert_allclose(colored.get_array(), fractional_tournament(9, a))
        assert colored.get_clim() == (0, fractional_tournament(9, 2.25).max())
        np.testing.assert_allclose(dots(ax), [points.to_numpy()])
        one, two, mean, optimum = (np.array(line.get_xydata()) for line in lines(ax))
        np.testing.assert_allclose([mean, optimum], [[[x1, x2]], [[1, 1]]])
        for k, ellipse in ((1, one), (2, two)):
            away = (ellipse - [x1, x2]) / [s1, s2]
            np.testing.assert_allclose(np.hypot(*away.T), k)


# ---- Section 2


@pytest.fixture(scope="module")
def trace() -> pd.DataFrame:
    settings = two_directions.Settings(n_var=6, n_gen=20, seeds=(1, 2))
    return two_directions.trace(settings)


def test_a_run_is_that_of_the_first_seed_with_its_successes_and_failures(
    trace: pd.DataFrame,
) -> None:
    best, beta, std = two_directions.plot_steps(trace).axes
    run = of(trace, seed=1)
    for ax, column in ((best, "best"), (std, "std")):
        (line,) = lines(ax)
        np.testing.assert_allclose(line.get_xydata(), run[["generation", column]])
    assert (best.get_ylabel(), scales(best)) == ("best value", "linear, log")
    assert_curve(beta, r"$\beta_1$", run["generation"], run["beta1"])
    assert_curve(beta, r"$\beta_2$", run["generation"], run["beta2"])
    for name, rows in run.query("generation > 1").groupby("success"):
        marks = curve(beta, "success" if name else "failure")
        assert marks[:, 0].tolist() == rows["generation"].tolist()
        low, high = beta.get_ylim()
        assert low < marks[:, 1].max() < 0 < 3 < high, "below both curves, which end at 3"
    assert std.get_ylim()[0] == 0
    assert std.get_xlabel() == "generation"


def test_cosines_and_lengths_of_every_run(trace: pd.DataFrame) -> None:
    left, right = two_directions.plot_orthogonality(trace).axes
    assert left.get_ylabel() == "cosine with P"
    columns = {r"$C_{ani}$": "descent_path", r"$\hat C_{ani}$": "hat_path"}
    for label, column in columns.items():
        drawn = [line.get_ydata() for line in left.lines if line.get_label() == label]
        np.testing.assert_array_equal(np.concatenate(drawn), trace[column])
    drawn = [line.get_ydata() for line in lines(right)]
    np.testing.assert_array_equal(np.concatenate(drawn), trace["descent_length"])
    assert levels(right) == [1]
    assert left.get_ylim() == (-1, 1)
    for ax in (left, right):
        places = [line.get_xdata() for line in lines(ax)]
        assert all(x.tolist() == [*range(1, 21)] for x in map(np.asarray, places))


def test_resets_are_compared_by_the_best_value_over_the_first() -> None:
    names = [*two_directions.RESETS]
    table = made("std", "best", "relative", reading=names, seed=[4, 5], generation=[1, 2, 3])
    left, right = two_directions.plot_resets(table).axes
    assert right.get_ylabel() == "best value / first best value"
    assert scales(left) == scales(right) == "linear, log"
    for name, rows in of(table, seed=4).groupby("reading"):
        assert_curve(left, f"reset: {name}", rows["generation"], rows["std"])
    assert len(lines(left)) == len(names)
    runs = table.groupby(["reading", "seed"], sort=False)
    for ((name, _), rows), line in zip(runs, lines(right), strict=True):
        np.testing.assert_allclose(line.get_xydata(), rows[["generation", "relative"]])
        same = labeled(left, f"reset: {name}")
        assert (line.get_color(), line.get_linestyle()) == (same.get_color(), same.get_linestyle())
    assert left.get_title() == "seed 4"


def test_a_generation_in_the_plane() -> None:
    settings = two_directions.Settings(n_var=6, n_gen=20, seeds=(1,))
    scene = two_directions.scene(settings, 2, generation=4, seed=2)
    points, vectors, numbers, slices = scene
    plane, projections, shift, change = two_directions.plot_flat(scene).axes
    found = dots(plane)
    np.testing.assert_allclose(found[0], points[["x1", "x2"]])
    np.testing.assert_allclose(found[1], points.loc[points["in_u"], ["x1", "x2"]])
    assert_curve(plane, "best", points["x1"][:1], points["x2"][:1])
    (feet,) = (line for line in lines(plane) if line.get_marker() == ".")
    np.testing.assert_allclose(feet.get_xydata(), points[["f1", "f2"]])
    for ax in (plane, shift):
        stems = {tuple(np.ravel(line.get_xydata())) for line in lines(ax)}
        assert {(*arrow.xyann, *arrow.xy) for arrow in ax.texts} <= stems
        assert {tuple(arrow.xyann) for arrow in ax.texts} == {
            tuple(points.loc[0, ["x1", "x2"]]) if ax is plane else (0.0, 0.0)
        }
    best = points.loc[0, ["x1", "x2"]].to_numpy(dtype=float)
    for name in (two_directions.PATH, two_directions.TOWARD):
        start, end = curve(plane, name)
        step = vectors.loc[name].to_numpy(dtype=float)
        np.testing.assert_allclose(start, best)
        length = numbers["norm of sigma"]
        np.testing.assert_allclose(end - start, length * step / np.linalg.norm(step))
    for name in (two_directions.PATH, two_directions.TOWARD, two_directions.AWAY):
        np.testing.assert_allclose(curve(shift, name), [[0, 0], vectors.loc[name]])
    between = [line.get_xydata() for line in lines(shift) if line.get_linestyle() == ":"]
    others = (two_directions.V_TOWARD, two_directions.V_AWAY)
    ends = [(two_directions.TOWARD, others[0]), (two_directions.AWAY, others[1])]
    for (from_step, on_it), line in zip(ends, between, strict=True):
        first, second = vectors.loc[[from_step, two_directions.PATH]].to_numpy()
        np.testing.assert_allclose(line, [first, second])
        along = (vectors.loc[on_it].to_numpy() - first) / (second - first)
        np.testing.assert_allclose(along, numbers["beta_2"])
    rays = [line.get_xydata() for line in lines(plane) if line.get_color() == "0.8"]
    pairs = points[["x1", "x2", "f1", "f2"]].to_numpy().reshape(-1, 2, 2)
    np.testing.assert_allclose(rays, pairs)
    for ax in (plane, projections):
        colored = next(c for c in ax.collections if c.get_array() is not None)
        ranks = points["rank"] if ax is plane else points["rank"][1:]
        np.testing.assert_array_equal(colored.get_array(), ranks)
    assert plane.get_title() == numbers.name
    assert shift.get_title().endswith(f"= {numbers['beta_2']:.2g}")
    assert_curve(plane, "weighted mean", *vectors.loc[["mean"]].to_numpy().T)
    np.testing.assert_allclose(dots(projections), [points[1:][["rank", "projection"]]])
    assert f"({points['rank'].iloc[1]} = second best)" in projections.get_xlabel()
    assert levels(projections) == [numbers["mu_ani"]]
    (band,) = projections.patches
    ends = numbers["mu_ani"] + numbers["sigma_ani"] * np.array([-1, 1])
    np.testing.assert_allclose(np.array(band.get_bbox())[:, 1], ends)
    for name in (two_directions.V_TOWARD, two_directions.V_AWAY):
        assert_curve(shift, name, *vectors.loc[[name]].to_numpy().T)
    assert change.get_title() == "change of f, %"
    assert levels(change) == [0]
    for line in lines(change):
        np.testing.assert_array_equal(line.get_xdata(), slices["distance"])
    drawn = {line.get_color(): line.get_ydata() for line in lines(change)}
    kinds = (two_directions.TOWARD, two_directions.AWAY, two_directions.PATH)
    for color, name in zip(("BLUE", "VERMILION", "GREEN"), kinds, strict=True):
        np.testing.assert_allclose(drawn[getattr(two_directions, color)], 100 * slices[name])


def test_signs_stand_in_the_row_of_their_shift_beside_one_half() -> None:
    shifts = [two_directions.PATH, two_directions.V_TOWARD, two_directions.V_AWAY]
    functions = ["sphere", "ellipsoid"]
    table = made(function=functions, generation=[1, 5, 9], shift=shifts)
    axes = two_directions.plot_signs(table).axes
    assert axes[0].yaxis_inverted()
    assert [label.get_text() for label in axes[0].get_yticklabels()] == [
        *map(plots.typeset, shifts)
    ]
    for ax, function in zip(axes, functions, strict=True):
        assert ax.get_title() == function
        assert levels(ax, "x") == [50]
        assert ax.get_xlabel() == "% in which f falls"
        for generation in (1, 5, 9):
            rows = of(table, function=function, generation=generation)
            found = curve(ax, f"generation {generation}")
            np.testing.assert_allclose(found[:, 0], rows["mean"])
            assert found[:, 1].round().tolist() == [0, 1, 2]
        bars = [c.get_segments() for c in ax.collections if isinstance(c, LineCollection)]
        ends = [segment[:, 0].tolist() for segments in bars for segment in segments]
        expected = of(table, function=function)[["low", "high"]].to_numpy()
        np.testing.assert_allclose(sorted(ends), sorted(expected.tolist()))


# ---- Sections 3 to 6


def of_runs(methods: list[str]) -> pd.DataFrame:
    """Return a table of runs as `made`, whose sums are over 20,000 and 4,000 images."""
    kinds = {"inputs": ["own", "shared"], "layer": [1, 2], "method": methods}
    table = made("mean_field", "test_mean_field", **kinds, seed=[0, 1], iteration=[0, 1, 2])
    counts = {"n_images": 20_000, "n_test_images": 4_000}
    return table.assign(**counts, passes=1.0, seconds=1.0)


def test_learning_is_a_mean_over_runs_in_the_panel_of_its_layer_and_inputs() -> None:
    table = of_runs(["cd", "lea-mvd"])
    start = of(of_runs(["start"]), iteration=0)
    figure = stacks.plot_learning(pd.concat([start, table]), "mean_field", "asked", constant=True)
    assert figure.get_supylabel() == "asked"
    assert {ax.get_xlabel() for ax in figure.axes} == {"", "epoch or generation"}
    for ax, (layer, inputs) in zip(figure.axes, product((1, 2), ("own", "shared")), strict=True):
        assert ax.get_title() == f"RBM {layer}, {inputs} inputs"
        here = of(table.query("iteration > 0"), layer=layer, inputs=inputs)
        runs = [line.get_ydata() for line in lines(ax) if line.get_linewidth() == 0.4]
        sums = [run["mean_field"] for _, run in here.groupby(["method", "seed"])]
        np.testing.assert_allclose(runs, np.array(sums) / 2)
        for method, rows in here.groupby("method"):
            of_seeds = rows.groupby("iteration")["mean_field"]
            means = of_seeds.mean() / 2
            assert_curve(ax, named(method), means.index, means)
            half = stats.t.ppf(0.975, 1) * of_seeds.std() / np.sqrt(2) / 2
            assert_band(ax, named(method), means - half, means + half)
            color = labeled(ax, named(method)).get_color()
            own = [line for line in lines(ax) if same_color(line.get_color(), color)]
            thin = [line.get_xydata()[:, 0] for line in own if line.get_linewidth() == 0.4]
            np.testing.assert_array_equal(thin, [[1, 2], [1, 2]])
            assert labeled(ax, named(method)).get_linewidth() > 1, "means are thick"
        level = of(start, layer=layer, inputs=inputs)["mean_field"].mean() / 2
        assert curve(ax, "start")[0, 1] == pytest.approx(level)
        assert levels(ax) == pytest.approx([level, 1])
        assert scales(ax) == "linear, log"


def test_ends_stand_in_the_row_of_their_method() -> None:
    methods = ["cd", "lea-mvd", "random"]
    table = of_runs(methods)
    figure = stacks.plot_ends(table, "asked")
    assert figure.get_supxlabel() == "asked"
    figure.draw_without_rendering()
    scales = {"mean_field": 2, "test_mean_field": 0.4}
    for ax, (layer, inputs) in zip(figure.axes, product((1, 2), ("own", "shared")), strict=True):
        assert ax.get_title() == f"RBM {layer}, {inputs} inputs"
        assert ax.yaxis_inverted()
        ends = of(table, layer=layer, inputs=inputs, iteration=2)
        expected = []
        for at, method in enumerate(methods):
            rows = of(ends, method=method)
            expected += [(rows[name].mean() / scale, at) for name, scale in scales.items()]
        points = [line.get_xydata()[0] for line in lines(ax) if line.get_marker() == "o"]
        found = sorted((x, round(y)) for x, y in points)
        middles = [np.mean(segment[:, 0]) for segment in segments(ax)]
        np.testing.assert_allclose(sorted(middles), sorted(x for x, _ in points))
        heights = sorted(y for _, y in points)
        assert min(np.diff(heights)) > 0.2, "no two marks lie on each other"
        np.testing.assert_allclose(found, sorted(expected))
        ticks = [line.get_xydata() for line in lines(ax) if line.get_marker() == "|"]
        at = {round(x, 9): round(y) for x, y in np.concatenate(ticks).tolist()}
        for name, scale in scales.items():
            places = ends["method"].map(methods.index).tolist()
            assert [at[x] for x in (ends[name] / scale).round(9)] == places
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == [
        *map(named, methods)
    ]


def test_standard_deviations_of_inputs_are_those_of_the_first_kind() -> None:
    table = made(inputs=["own", "shared"], layer=[1, 2], method=["cd", "lea-mvd"])
    (ax,) = plots.input_std(table).axes
    assert ax.get_ylim()[0] == 0
    assert names_of(ax.xaxis) == ["RBM 1", "RBM 2"]
    for method in ("cd", "lea-mvd"):
        rows = of(table, method=method, inputs="own")
        assert_curve(ax, named(method), rows["layer"], rows["mean"])


def test_a_cross_stands_where_the_matrix_would_need_the_memory_of_n_squared() -> None:
    measured = made("generation_seconds", "peak_bytes", method=["cma-es"], n=[100, 1_000])
    for end in ("low", "high"):
        measured[f"generation_{end}"] = measured["generation_seconds"]
    refused = pd.DataFrame({"method": "cma-es", "n": [10_000, 99_000], "status": "refused: memory"})
    table = pd.concat([measured.assign(status="ok"), refused]).assign(threads=1, dtype="float64")
    _, memory = linear_cost.plot_growth(table).axes
    peak = 100 * measured["peak_bytes"].iloc[-1]
    (cross,) = (line for line in lines(memory) if line.get_marker() == "x")
    np.testing.assert_allclose(cross.get_xydata(), [[10_000, peak]])
    (word,) = memory.texts
    assert (word.get_text(), word.xy) == ("refused", pytest.approx((10_000, peak)))


def test_effects_stand_in_the_row_of_their_alternative() -> None:
    methods = ["lea-mvd:reset=off", "lea-mvd:sigma0=0.01", "lea-mvd:path=off"]
    problems = [f"RBM {layer}" for layer in range(1, 8)]  # more than there are colors
    table = made("ratio", problem=problems, method=methods)
    table = table.assign(item="R13", different=True, same=False)
    (ax,) = readings.plot_effects(table).axes
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_xscale()) == ("final error over the default's", "log")
    ticks = ax.get_yticks()
    for label, method in zip(ax.get_yticklabels(), methods, strict=True):
        words = named(method).removeprefix("LEA-MVD, ")
        assert label.get_text().split() == ["R13", *words.split()]
    points = [line.get_xydata() for line in lines(ax) if line.get_marker() == "o"]
    rows = {x: methods[np.abs(ticks - y).argmin()] for x, y in np.concatenate(points).tolist()}
    assert rows == dict(zip(table["ratio"], table["method"], strict=True))
    heights = [y for line in lines(ax) for y in line.get_ydata()]
    for at in ticks:
        around = [y for y in heights if abs(y - at) < 0.5]
        assert np.mean(around) == pytest.approx(at), "in the middle of the marks of its row"


def test_a_shade_holds_the_rows_of_every_other_item() -> None:
    methods = {"lea-mvd:reset=off": "R13", "lea-mvd:path=off": "R5", "lea-mvd:descent=off": "R5"}
    table = made("ratio", problem=["RBM 1"], method=[*methods])
    table = table.assign(item=table["method"].map(methods), different=True, same=False)
    (ax,) = readings.plot_effects(table).axes
    (shade,) = ax.patches
    low, high = np.array(shade.get_bbox())[:, 1]
    first, *others = ax.get_yticks()
    assert first < low < min(others) < max(others) < high


def test_work_is_counted_by_the_column_that_an_axis_names() -> None:
    methods = ["cd", "lea-mvd"]
    table = made("passes", "seconds", layer=[1, 2], method=methods, iteration=[0, 1, 2])
    figure = stacks.plot_work(table.assign(inputs="shared"), "error")
    assert figure.get_supylabel() == "error"
    names = [ax.get_xlabel() for ax in figure.axes[-3:]]
    budgets = [{"iterations": "iteration"}.get(name, name) for name in names]
    for ax, (layer, budget) in zip(figure.axes, product((1, 2), budgets), strict=True):
        for method in methods:
            rows = of(table.query("iteration > 0"), layer=layer, method=method)
            assert_curve(ax, named(method), rows[budget], rows["mean"])
            ends = rows.sort_values(budget)
            assert_band(ax, named(method), ends["low"], ends["high"])
        assert scales(ax) == f"{'linear' if budget == 'iteration' else 'log'}, log"
    assert figure.axes[3].get_title(loc="left") == "RBM 2, shared inputs"


def test_starts_have_their_errors_above_and_their_ratios_below() -> None:
    measures = ("error", "ratio")
    table = made(*measures, method=["no search", "lea-mvd"], layer=[1, 2, 3], batches=[1, 10])
    cd = made(*measures, method=["cd"], layer=[1, 2, 3], batches=[0])
    table = pd.concat([table, cd]).drop(columns=["mean", "low", "high"])
    for name in measures:
        table[f"{name} low"] = table[name] - 0.1
        table[f"{name} high"] = table[name] + 0.3
    axes = error_measures.plot_starts(table).axes
    said = [(ax.get_title(), ax.get_xlabel(), ax.get_ylabel()) for ax in axes]
    below = "mini-batches of the start"
    assert said == [
        ("RBM 2", "", "error / CD's"),
        ("RBM 3", "", ""),
        ("", below, "error / constant image's"),
        ("", below, ""),
    ]
    for ax, (name, layer) in zip(axes, product(measures, (2, 3)), strict=True):
        rows = of(table, layer=layer).set_index("method")
        for method in ("no search", "lea-mvd"):
            own = rows.loc[method]
            assert_curve(ax, named(method), own["batches"], own[name])
            assert_band(ax, named(method), own[f"{name} low"], own[f"{name} high"])
        assert levels(ax) == [rows.loc["cd", name]] + [1] * (name == "ratio")
        assert scales(ax) == "log, log"


# ---- Sections 8, 10, 11 and 12


@pytest.mark.parametrize(
    ("draw", "column"),
    [(classification.plot_errors, "epoch"), (classification.plot_probes, "layer")],
)
def test_test_errors_by_epoch_and_by_layer(draw: Any, column: str) -> None:
    studies = ["mnist-7x7", "mnist-28x28"]
    table = made(study=studies, method=["cd", "random-1"], **{column: [0, 1, 2]})
    for ax, study in zip(draw(table).axes, studies, strict=True):
        assert ax.get_title() == named(study)
        for method in ("cd", "random-1"):
            rows = of(table, study=study, method=method)
            found = curve(ax, named(method))
            np.testing.assert_allclose(found[:, 1], rows["mean"])
            np.testing.assert_allclose(found[:, 0], rows[column], atol=0.2)
        assert scales(ax) == "linear, log"


def test_step_sizes_are_geometric_means_over_runs() -> None:
    table = made("step_size", study=STUDIES, layer=[2, 1, 3], sigma=[0.01, 0.1], seed=[0, 1])
    axes = explanation.plot_step_sizes(table).axes
    for ax, study in zip(axes, STUDIES, strict=True):
        assert (ax.get_title(), ax.get_ylabel()) == (named(study), "σ*")
        for layer, rows in of(table, study=study).groupby("layer"):
            logs = interval(np.log(rows["step_size"]).groupby(rows["sigma"]))
            mean, low, high = np.exp([*logs])
            assert_curve(ax, f"RBM {layer}", [0.01, 0.1], mean)
            assert_band(ax, f"RBM {layer}", low, high)
        assert levels(ax, "x") == [Training.sigma0]
        assert levels(ax, "x") == labeled(ax, "the paper's σ0").get_xdata()[:1]
        (equal,) = (line for line in ax.lines if line.get_label() == "both equal")
        for x, y in (equal.get_xy1(), equal.get_xy2()):
            assert x == y
        assert scales(ax) == "log, log"
    assert axes[-1].get_xlabel() == "step size of the pairs"


def test_falls_are_shown_as_measured_beside_as_predicted() -> None:
    settings = {"layer": [1, 2], "reset": [True, False], "noise": ["entry", "off"]}
    table = made("measured", "predicted", **settings, sigma0=[0.1, 0.01])
    kinds = {
        "reset and factor": (True, "entry"),
        "no reset": (False, "entry"),
        "no factor": (True, "off"),
    }
    axes = iter(explanation.plot_falls(table).axes)
    for layer in (1, 2):
        left = next(axes)
        right = next(axes)
        assert left.get_title() == f"RBM {layer}, measured fall, %"
        assert right.get_title() == f"RBM {layer}, predicted fall, %"
        for (name, (reset, noise)), line in zip(kinds.items(), lines(right), strict=True):
            rows = of(table, layer=layer, reset=reset, noise=noise)
            rows = rows.sort_values("sigma0")
            assert_curve(left, name, rows["sigma0"], rows["measured"])
            assert_band(left, name, *rows.sort_values("sigma0")[["low", "high"]].to_numpy().T)
            np.testing.assert_allclose(line.get_xydata(), rows[["sigma0", "predicted"]])
            assert line.get_color() == next(
                drawn.get_color() for drawn in left.lines if drawn.get_label() == name
            )
        assert scales(left) == scales(right) == "log, linear"
    assert left.get_xlabel() == right.get_xlabel() == "σ0"


def test_falls_of_ever_larger_layers() -> None:
    kinds = ["measured", "predicted", "one gradient step"]
    table = made(kind=kinds, n_var=[10, 100, 1_000])
    (ax,) = explanation.plot_scaling(table).axes
    for kind, rows in table.groupby("kind"):
        assert_curve(ax, kind, rows["n_var"], rows["mean"])
    assert scales(ax) == "log, linear"
    assert ax.get_ylim()[0] == 0


def test_networks_stand_in_their_column_and_the_start_as_a_line() -> None:
    networks = ["tangents", "signs"]
    methods = ["lea-mvd", "random", "random:sigma0=0.1"]
    table = made(network=networks, method=["start", *methods])
    (ax,) = architectures.plot_networks(table).axes
    assert [label.get_text() for label in ax.get_xticklabels()] == networks
    for method in methods:
        rows = of(table, method=method)
        found = curve(ax, named(method))
        np.testing.assert_allclose(found[:, 1], rows["mean"])
        np.testing.assert_allclose(found[:, 0], [0, 1], atol=0.2)
        assert is_open(labeled(ax, named(method))) == (":" in method)
    (start,) = (c for c in ax.collections if c.get_label() == "start")
    heights = [segment[0, 1] for segment in start.get_segments()]
    assert [segment[:, 0].mean() for segment in start.get_segments()] == pytest.approx([0, 1])
    assert heights == of(table, method="start")["mean"].tolist()
    assert scales(ax) == "linear, log"


def test_longer_searches_are_geometric_means_at_their_marks() -> None:
    problems = ["sphere, n = 10", "rastrigin, n = 10", "ackley, n = 10"]
    methods = ["lea-mvd", "random"]
    table = made("best", problem=problems, method=methods, mark=[1, 10], seed=[0, 1])
    *axes, empty = longer_searches.plot_longer(table).axes
    assert not empty.axison
    assert axes[2].get_xlabel() == "evaluations for each variable"
    for ax, problem in zip(axes, problems, strict=True):
        assert ax.get_title() == problem
        for method in methods:
            rows = of(table, problem=problem, method=method)
            logs = np.log(rows["best"]).groupby(rows["mark"]).mean()
            assert_curve(ax, named(method), [1, 10], np.exp(logs))
        assert scales(ax) == "log, log"


def test_ratios_to_separable_cma_es_are_geometric_means_functions_without_many_minima_first() -> (
    None
):
    problems = ["rastrigin, n = 10", "sphere, n = 10"]
    marks = [*longer_searches.EARLY]
    methods = [*longer_searches.DRAWN, "cd"]
    table = made("ratio", problem=problems, method=methods, mark=marks, seed=[0, 1])
    figure = longer_searches.plot_used(table)
    axes = figure.axes
    assert figure.get_supylabel() == "best value / that of separable CMA-ES"
    assert axes[0].get_xlabel() == "evaluations for\neach variable"
    assert [ax.get_title() for ax in axes[:2]] == ["sphere\nn = 10", "rastrigin\nn = 10"]
    assert axes[0].get_xticks().tolist() == marks
    for ax, problem in zip(axes, problems[::-1], strict=False):
        assert levels(ax) == [1]
        assert scales(ax) == "log, log"
        for method in longer_searches.DRAWN:
            rows = of(table, problem=problem, method=method)
            logs = np.log(rows["ratio"]).groupby(rows["mark"]).mean()
            assert_curve(ax, named(method), marks, np.exp(logs))


# ---- Section 13

CELLS = [("0.1/0.1", 5), ("0.1/0.1", 600), ("guide", 600)]
OF_CELLS = {"cell": CELLS, "seed": [0, 1]}


def of_cells(*columns: str, **values: Any) -> pd.DataFrame:
    """Return a table as `made`, of some cells."""
    table = made(*columns, **OF_CELLS, **values)
    table[settings_map.CELL] = table["cell"].tolist()
    return table


def assert_columns(ax: Axes, label: str, rows: pd.DataFrame, value: str) -> None:
    """Assert that geometric means of rows stand in the columns of their cells."""
    found = curve(ax, label)
    means = np.exp(np.log(rows[value]).groupby(rows["cell"].map(CELLS.index)).mean())
    assert found[:, 0].round().tolist() == means.index.tolist()
    np.testing.assert_allclose(found[:, 1], means)


def assert_ticks(ax: Axes, label: str, rows: pd.DataFrame, value: str) -> None:
    """Assert that a tick of the series' color stands for each row, where its mean stands."""
    line = labeled(ax, label)
    places = dict(zip(line.get_xdata().round(), line.get_xdata(), strict=True))
    ticks = [other for other in lines(ax) if other.get_marker() == "_"]
    found = []
    for other in ticks:
        if same_color(other.get_color(), line.get_color()):
            found += [tuple(point) for point in other.get_xydata().round(9).tolist()]
    for cell, height in zip(rows["cell"].map(CELLS.index), rows[value], strict=True):
        assert (round(places[cell], 9), round(height, 9)) in found


def assert_apart(ax: Axes, labels: list[str]) -> None:
    """Assert that series stand beside each other, around the middle of their column."""
    at = np.array([curve(ax, label)[0, 0] for label in labels])
    assert len({*np.diff(at).round(9)}) == 1
    assert (abs(at - at.round().mean()) < 0.5).all()
    assert np.mean(at) == pytest.approx(round(np.mean(at)))


def named_columns(ax: Axes) -> list[str]:
    return [label.get_text() for label in ax.get_xticklabels()]


def test_answers_stand_in_the_row_of_their_claim_and_in_the_column_of_their_cell() -> None:
    words = [*settings_map.LOOKS]
    rows = pd.MultiIndex.from_product([["C3", "C4"], ["printed", "default"]])
    columns = pd.MultiIndex.from_tuples(CELLS)
    found = pd.DataFrame(RNG.choice(words, (4, 3)), rows, columns)
    found.iloc[0, 0] = ""
    figure = settings_map.plot_answers(found, ["guide"])
    (ax,) = figure.axes
    assert named_columns(ax) == ["5*", "600", "600"]
    said = [label.get_text() for label in ax.get_yticklabels()]
    assert said == ["C3, printed", "C3, default", "C4, printed", "C4, default"]
    assert ax.yaxis_inverted()
    drawn = {}
    for word in {*found.to_numpy().flat} - {""}:
        for x, y in curve(ax, word).astype(int).tolist():
            drawn[x, y] = word
    there = {(x, y): found.iloc[y, x] for x, y in product(range(3), range(4)) if (x, y) != (0, 0)}
    assert drawn == there
    spans = [np.array(patch.get_bbox())[:, 0].tolist() for patch in ax.patches]
    assert spans == [[1.5, 2.5]], "of the one protocol that is marked"


def test_ends_of_a_cell_stand_in_its_column() -> None:
    methods = ["start", "lea-mvd", "lea-mvd:printed"]
    table = of_cells("ratio", layer=[2, 3], method=methods)
    figure = settings_map.plot_ends(table)
    axes = figure.axes
    assert figure.get_supylabel() == "error / CD's"
    for ax, layer in zip(axes, (2, 3), strict=True):
        assert ax.get_title() == f"RBM {layer}"
        for method in methods:
            rows = of(table, layer=layer, method=method)
            assert_columns(ax, named(method), rows, "ratio")
            assert_ticks(ax, named(method), rows, "ratio")
            assert is_open(labeled(ax, named(method))) == (":" in method)
        assert levels(ax) == [1]
        assert_apart(ax, [*map(named, methods)])
        assert ax.get_yscale() == "log"
        assert ax.get_xlim() == (-0.5, 2.5)
    assert named_columns(axes[-1]) == ["5*", "600", "600"]
    assert levels(axes[-1], "x") == [1.5, 2.5], "between protocols"
    assert {text.get_text(): text.xy[0] for text in axes[-1].texts} == {
        "N(0, 0.1)\nrate 0.1": 0.5,
        "guide": 2,
    }


def test_protocols_are_named_by_their_weights_and_rate() -> None:
    for protocol in settings_map.CROSSED:
        scale, _, rate = protocol.partition("/")
        star = "*" if float(rate) == settings_map.NOBODYS else ""
        assert settings_map.protocol_words(protocol) == f"N(0, {scale})\nrate {rate}{star}"


def test_networks_of_a_cell_stand_in_its_column_and_random_ones_are_levels() -> None:
    searched = of_cells("test_error", method=["start", "lea-mvd"], weights=["trained"])
    as_large = of_cells("test_error", method=["lea-mvd"], weights=["random"])
    trained = of_cells("test_error", method=["cd"], weights=["trained"])
    trained = trained.drop_duplicates(["protocol", "seed"]).assign(batches=0)
    alone = made("test_error", method=["random-1"], weights=["random"], seed=[0, 1])
    alone = alone.assign(protocol="any", batches=0)
    table = pd.concat([trained, searched, as_large, alone]).drop(columns="cell")
    (ax,) = settings_map.plot_networks(table).axes
    assert ax.get_ylabel() == "test error, %"
    for method in ("start", "lea-mvd"):
        rows = of(searched, method=method).eval("percent = 100 * test_error")
        assert_columns(ax, named(method), rows, "percent")
        assert_ticks(ax, named(method), rows, "percent")
    assert_apart(ax, ["CD", "start", "LEA-MVD", "random as LEA-MVD"])
    assert ax.get_yscale() == "log"
    marks = {label: labeled(ax, label).get_marker() for label in ("LEA-MVD", "random as LEA-MVD")}
    assert marks == {"LEA-MVD": "o", "random as LEA-MVD": "s"}
    assert_columns(ax, "random as LEA-MVD", as_large.eval("percent = 100 * test_error"), "percent")
    cd = np.exp(np.log(100 * trained["test_error"]).groupby(trained["protocol"]).mean())
    heights = cd[["0.1/0.1", "0.1/0.1", "guide"]].tolist()
    assert curve(ax, "CD")[:, 1].tolist() == pytest.approx(heights)
    (level,) = (y for y in levels(ax))
    assert level == pytest.approx(np.exp(np.log(100 * alone["test_error"]).mean()))
