"""What the figures of the sections on selection and directions plot is what the records hold."""

import dataclasses
from collections.abc import Iterator

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.figure import Figure

from leamvd.paper import search_directions, selection_pressure
from leamvd.paper.figures import search_directions as drawn_directions
from leamvd.paper.figures import selection_pressure as drawn_selection
from leamvd.paper.figures.style import BLUE, GREEN, PURPLE, VERMILION, logarithmic, new, plotted, shown

PLAN = search_directions.Plan(n_var=5, n_gen=14, seeds=(0, 1), n_populations=10)


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    yield
    plt.close("all")


def drawn(figure: Figure, panel: int, *columns: object) -> bool:
    """Whether one of a panel's arrays has these columns."""
    figure.canvas.draw()
    want = np.column_stack([np.asarray(column, dtype=float) for column in columns])
    arrays = [np.array(array, dtype=float) for array in plotted(figure)[panel]["arrays"] if array]
    return any(array.shape == want.shape and np.allclose(array, want, rtol=1e-6, equal_nan=True) for array in arrays)


def looks(figure: Figure, panel: int, legend: str) -> list[str]:
    """Return how the legend says that something is drawn, and how the lines with that label are."""
    axes = figure.axes[panel]
    entries = dict(*shown(figure)["legends"])
    drawn_like = [plotted(figure)[panel]["looks"][k] for k, line in enumerate(axes.lines) if line.get_label() == legend]
    return [entries[legend], *drawn_like]


def test_weights() -> None:
    table = selection_pressure.weights(6, [0.0, 2.0])
    figure = drawn_selection.weights(table)
    for _, own in table.groupby("method"):
        assert drawn(figure, 0, own["rank"], own["weight"])
    assert figure.axes[0].get_title().endswith("6")


def test_differences() -> None:
    nearest = selection_pressure.closest(6)
    table = selection_pressure.differences(selection_pressure.simulate(6, 2_000, 0), nearest)
    figure = drawn_selection.differences(table, nearest)
    for panel, (method, own) in enumerate(table.groupby("method", sort=False)):
        assert figure.axes[panel].get_title().startswith(f"{method}: closest exponent ")
        assert (", stated " in figure.axes[panel].get_title()) == (method in selection_pressure.STATED)
        assert drawn(figure, panel, own["rank"], own["simulated"])
        assert drawn(figure, panel, own["rank"], own["closest"])
        assert drawn(figure, panel, own["rank"], own["stated"]) == (method in selection_pressure.STATED)
        (bars,) = figure.axes[panel].collections
        ends = np.array([path.vertices for path in bars.get_paths()])
        np.testing.assert_allclose(ends[:, 0], own[["rank", "simulated"]] - [0, 2] * own[["error", "error"]].to_numpy())
        np.testing.assert_allclose(ends[:, 1], own[["rank", "simulated"]] + [0, 2] * own[["error", "error"]].to_numpy())
    assert figure.axes[-1].get_xlabel() == "rank (1 = best)"
    assert figure.get_supylabel() == "less the exact probability (percentage points)"


def test_pressure() -> None:
    table = selection_pressure.pressure([4, 8], [0.0, 1.0, 2.0])
    figure = drawn_selection.pressure(table)
    for panel, column in enumerate(("rank_share", "size_share")):
        for _, own in table.dropna().groupby("population_size"):
            assert drawn(figure, panel, own["exponent"], own[column])
    assert [axes.get_ylabel().split(" / ")[0] for axes in figure.axes] == ["expected rank", "effective sample size"]
    assert {axes.get_xlabel() for axes in figure.axes} == {"exponent"}
    binary = table[(table["method"] == selection_pressure.BINARY) & (table["population_size"] == 8)][
        "rank_share"
    ].item()
    assert drawn(figure, 0, [0, 1], [binary, binary])


@pytest.mark.parametrize("exponents", [[1.5], [0.0, 1.0, 1.5, 2.0, 3.0]])
def test_models(exponents: list[float]) -> None:
    points, rows = selection_pressure.normal_models(9, exponents, 0)
    figure = drawn_selection.models(points, rows)
    for panel, row in enumerate(rows.to_dict("records")):
        own = points[points["exponent"] == row["exponent"]]
        assert drawn(figure, panel, own["x1"], own["x2"])
        assert drawn(figure, panel, [row["mean1"]], [row["mean2"]])
        ellipses = [line for line in figure.axes[panel].lines if len(line.get_xdata()) == 100]
        for k, line in enumerate(ellipses, start=1):
            x, y = (np.asarray(a, dtype=float) for a in line.get_data())
            level = ((x - row["mean1"]) / row["std1"]) ** 2 + ((y - row["mean2"]) / row["std2"]) ** 2
            np.testing.assert_allclose(level, k**2)
        assert len(ellipses) == 2
    assert (figure.get_supxlabel(), figure.get_supylabel()) == ("$x_1$", "$x_2$")


def test_scene_2d() -> None:
    scene = search_directions.scene(PLAN, 2, 4, 2)
    figure = drawn_directions.scene_2d(*scene)
    points, v = scene.points, scene.vectors
    assert drawn(figure, 0, points["x1"], points["x2"])
    assert drawn(figure, 1, points["rank"][1:], points["projection"][1:])
    for name in ("toward", "away", "P"):
        assert drawn(figure, 4, [0, v.loc[name, "x1"]], [0, v.loc[name, "x2"]])
    for name in ("v toward", "v away"):
        assert drawn(figure, 4, [v.loc[name, "x1"]], [v.loc[name, "x2"]])
    for _, own in scene.slices.groupby("direction"):
        assert drawn(figure, 5, own["distance"], 100 * own["change"])
    # toward the best is blue, as printed vermilion and P green wherever they are drawn; legends stand below
    colors = {"toward": BLUE, "away": VERMILION, "P": GREEN}
    for panel, names in ((6, ("toward", "away", "P", "v toward", "v away")), (7, ("P", "toward", "away"))):
        legend = plotted(figure)[panel]["legend"]
        assert [look.split()[0] for _, look in legend] == [colors[name.removeprefix("v ")] for name in names]
        assert ["best" in text for text, _ in legend] == ["toward" in name for name in names]
    assert [axes.get_xlabel() for axes in figure.axes if axes.axison] == [
        "$x_1$", "rank (2 = second best)", "step in $x_1$", "distance from the mean"
    ]  # fmt: skip


def test_scene_3d_draws_opposite_steps() -> None:
    scene = search_directions.scene(PLAN, 3, 4, 2)
    figure = drawn_directions.scene_3d(scene.points, scene.vectors, scene.numbers, scene.label)
    mean = scene.vectors.loc["mean"].to_numpy()
    ends = []
    for panel in figure.axes[:2]:
        lines = [np.array(line.get_data_3d()).T for line in panel.lines]  # type: ignore[attr-defined]
        steps = [line[1] - line[0] for line in lines if line.shape == (2, 3)]
        assert len(steps) == 3
        np.testing.assert_allclose([np.linalg.norm(step) for step in steps], scene.numbers["norm of sigma"])
        assert any(np.allclose(line, mean) for line in lines)
        ends.append(steps[1])
    np.testing.assert_allclose(ends[0], -ends[1])  # mu_ani is negative here
    assert scene.numbers["mu_ani"] < 0


def test_a_scene_without_a_path_can_be_drawn() -> None:
    scene = search_directions.scene(PLAN, 2, 1, 0)
    assert not scene.vectors.loc["P"].any()
    assert drawn(drawn_directions.scene_2d(*scene), 4, [0, 0], [0, 0])


def test_runs() -> None:
    trace = search_directions.trace(PLAN)
    figure = drawn_directions.orthogonality(trace, "sphere")
    steps = drawn_directions.steps(trace, "sphere")
    for _, own in trace.groupby("seed"):
        assert drawn(figure, 0, own["generation"], own["descent_path"])
        assert drawn(figure, 1, own["generation"], own["descent_length"])
    own = trace[trace["seed"] == 0]
    for panel, column in ((0, "best"), (1, "beta1"), (1, "beta2"), (2, "std")):
        assert drawn(steps, panel, own["generation"], own[column])
    assert [axes.get_ylabel() for axes in steps.axes] == ["best value", "step sizes", "$\\|\\sigma\\| / \\sqrt{n}$"]
    assert looks(figure, 0, "$C_{ani}$") == [f"{BLUE} - None {BLUE}"] * 2
    assert looks(figure, 0, "$\\hat C_{ani}$") == [f"{VERMILION} - None {VERMILION}"] * 2
    assert drawn(figure, 0, *figure.axes[0].lines[0].get_data())
    np.testing.assert_array_equal(figure.axes[0].lines[0].get_ydata(), own["descent_path"])
    np.testing.assert_array_equal(figure.axes[0].lines[1].get_ydata(), own["hat_path"])
    for success in (True, False):
        marks = own[(own["generation"] > 1) & (own["success"] == success)]["generation"]
        assert drawn(steps, 1, marks, np.full(len(marks), -0.2))


def test_resets_are_marked_and_drawn() -> None:
    table = search_directions.resets(dataclasses.replace(PLAN, n_var=40))
    figure = drawn_directions.resets(table, "ellipsoid")
    for (_, seed), own in table.groupby(["reading", "seed"]):
        assert drawn(figure, 1, own["generation"], own["relative"])
        if seed == 0:
            assert drawn(figure, 0, own["generation"], own["std"])
    # each reading has its own color and style, in the legend and in both panels
    styles = {"1": (VERMILION, "-"), "initial": (PURPLE, "--"), "off": (BLUE, ":")}
    for reading, (color, line_style) in styles.items():
        style = f"{color} {line_style} None {color}"
        runs = table[table["reading"] == reading].groupby("seed")
        for panel, column in ((0, "std"), (1, "relative")):
            assert looks(figure, panel, f"reset = {reading}") == [style, style]
            shown = [line for line, look in zip(figure.axes[panel].lines, plotted(figure)[panel]["looks"], strict=True)
                     if look == style]  # fmt: skip
            expected = [own[column].tolist() for _, own in runs][: len(shown)]
            assert [np.asarray(line.get_ydata()).tolist() for line in shown] == expected
            assert len(shown) == (1, 2)[panel]
    assert figure.axes[0].get_ylabel() == "$\\|\\sigma\\| / \\sqrt{n}$"
    assert figure.axes[1].get_ylabel() == "best value / first best value"
    one = table[table["reading"] == "1"]
    steps = drawn_directions.steps(one, "ellipsoid")
    (generation,) = one[(one["seed"] == 0) & one["reset"]]["generation"]
    assert drawn(steps, 2, [generation, generation], [0, 1])


def test_signs() -> None:
    table = search_directions.signs(search_directions.shifts(PLAN, search_directions.FUNCTIONS.values(), [1, 3]))
    figure = drawn_directions.signs(table, 5)
    for panel, (function, own) in enumerate(table.groupby("function", sort=False)):
        assert figure.axes[panel].get_title() == f"{function}, n = 5"
        shown = [x for line in figure.axes[panel].lines[:2] for x in np.asarray(line.get_xdata()).tolist()]
        assert sorted(shown) == sorted(own["lower"])
        assert figure.axes[panel].get_xlabel() == "% in which f falls"
        names = [text.get_text().replace("$C_{ani}$", "C_ani") for text in figure.axes[0].get_yticklabels()]
        for line, (_, rows) in zip(figure.axes[panel].lines, own.groupby("generation"), strict=False):
            places = np.asarray(line.get_ydata(), dtype=float)
            assert [names[round(place)] for place in places] == list(rows["shift"])
            np.testing.assert_array_equal(line.get_xdata(), rows["lower"])
        ends = [end[:, 0].tolist() for bar in figure.axes[panel].collections for end in bar.get_segments()]
        np.testing.assert_allclose(sorted(ends), sorted(own[["low", "high"]].to_numpy().tolist()))


@pytest.mark.parametrize(
    ("ends", "most", "ticks"),
    [
        ((0.4, 2.2), 6, [0.5, 1, 2]),
        ((0.02, 30.0), 4, [0.1, 1, 10]),  # 1, 2 and 5 of each decade would be nine
        ((24_500, 56_000), 6, [30_000, 40_000, 50_000]),  # and here one
        ((1_700, 4_100), 3, [2_000, 4_000]),
    ],
)
def test_a_logarithmic_axis_has_few_plain_ticks(ends: tuple[float, float], most: int, ticks: list[float]) -> None:
    _, axes = new(width=4.0)
    axes[0, 0].set(xscale="log", xlim=ends)
    logarithmic(axes[0, 0].xaxis, most)
    shown = [tick for tick in axes[0, 0].get_xticks() if ends[0] <= tick <= ends[1]]
    assert shown == pytest.approx(ticks)
    assert axes[0, 0].xaxis.get_major_formatter()(ticks[0]) == f"{ticks[0]:,g}"
