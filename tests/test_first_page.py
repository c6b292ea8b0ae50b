"""The picture of the book's first page: its data and static figure are what the script makes of
what is recorded.
"""

import copy
import functools
import json
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup, NavigableString, Tag
from matplotlib.colors import to_hex
from py_mini_racer import MiniRacer

from figures import assert_sound, same_figure, text_of
from leamvd_paper.studies import error_measures, plots, settings_map
from leamvd_paper.studies.layers import last
from leamvd_paper.studies.results import read_recorded

BOOK = Path(__file__).parents[1] / "book"
SCRIPT = (BOOK / "static" / "first_page.js").read_text(encoding="utf-8")
TEXT = (BOOK / "static" / "first_page.json").read_text(encoding="utf-8")
DATA = json.loads(TEXT)
MADE = runpy.run_path(str(BOOK / "first_page.py"))
CHOICES = MADE["LABELS"] | {"printed": "LEA-MVD as printed"}  # a choice stands alone


@functools.cache
def computed() -> Any:
    """Return the data as the script makes it of what is recorded now."""
    return json.loads(MADE["data"]().to_json())


def test_data_and_figure_are_what_the_script_makes(file_regression: Any) -> None:
    for size, own in copy.deepcopy(computed()).items():
        side, accepted = MADE["SIZES"][size], DATA[size]
        drawn = [MADE["rows_of"](one.pop("digits"), side) for one in (own, accepted.copy())]
        # of another library's version the file may be another one
        np.testing.assert_array_equal(*drawn)
        assert own == {name: value for name, value in accepted.items() if name != "digits"}
    figure = MADE["figure"](pd.Series(computed()))
    assert_sound(figure)
    assert_accepted(figure, "first_page", file_regression)
    assert len(TEXT) < 40_000, "it stands in the page itself"


@pytest.mark.parametrize(
    ("size", "name", "cd", "n_seeds"),
    [
        ("small", "few_updates", "few_updates", 10),
        ("large", "few_updates_28x28", "mnist_28x28", 3),
    ],
)
def test_errors_are_geometric_means_over_pairs_of_runs(
    size: str, name: str, cd: str, n_seeds: int
) -> None:
    start, trained = read_recorded(name), read_recorded(cd)
    start = (
        start.query("n_images == 60_000 and momentum_epochs == 5 and features == 'own'")
        if cd == name
        else start
    )
    trained = start if cd == name else trained.query("inputs == 'own'")
    start = start.query("layer == 3 and method == 'start' and batches == 60").set_index("seed")
    trained = last(trained.query("layer == 3 and method == 'cd'").assign(inputs="own")).set_index(
        "seed"
    )
    over_cd = (start["mean_field"] / trained["mean_field"]).dropna()
    for over, pairs in (("CD", over_cd), ("constant", start["mean_field_ratio"])):
        assert len(pairs) == n_seeds
        assert computed()[size]["start"][over][4] == pytest.approx(
            np.prod(pairs) ** (1 / n_seeds), rel=5e-3
        )


def test_a_line_is_of_the_searches_of_its_method() -> None:
    runs = error_measures.tables().runs.query(MADE["WHICH"])
    runs = runs.query("layer == 3 and features == 'own'").sort_values("iteration")
    for name, method in (("lea-mvd", "lea-mvd"), ("printed", "lea-mvd:printed")):
        line = computed()["small"][name]
        for k, ratio in zip(line["batches"], line["constant"], strict=True):
            searches = runs[(runs["method"] == method) & (runs["batches"] == k)]
            ends = searches.groupby("seed")["mean_field_ratio"].last()
            assert ratio == pytest.approx(np.prod(ends) ** (1 / len(ends)), rel=1e-3)


def test_the_map_is_what_the_recorded_runs_answer(file_regression: Any) -> None:
    found = settings_map.recorded()
    figure = MADE["answers"](found, MADE["parts"](found))
    assert_sound(figure)
    (ax,) = figure.axes
    claims = [label.get_text().partition(",")[0] for label in ax.get_yticklabels()]
    assert [*dict.fromkeys(claims)] == [*(f"C{n}" for n in range(3, 11)), "C15"]
    untold = settings_map.untold(found.runs)
    assert len(ax.patches) == sum(protocol in untold for protocol, _ in settings_map.CELLS)
    assert_accepted(figure, "map", file_regression)


def assert_accepted(figure: Any, name: str, file_regression: Any) -> None:
    accepted = BOOK / "static" / "figures" / f"{name}.json"
    plots.plt.close(figure)
    file_regression.check(text_of(figure), fullpath=accepted, check_fn=same_figure)


def test_digits_are_those_of_the_recorded_pictures_in_16_levels() -> None:
    pictures = read_recorded("few_updates_28x28", "pictures").query(
        "kind == 'digit' and layers == 3"
    )
    rows = MADE["rows_of"](computed()["large"]["digits"], 28)
    cd = read_recorded("mnist_28x28", "pictures").query("kind == 'digit' and method == 'cd'")
    for row, layers in zip(rows[:2], (0, 3), strict=True):
        first = cd[(cd["layers"] == layers) & (cd["seed"] == 0)]["gray"].head(28**2)
        assert np.abs(row[:, :28] - first.to_numpy().reshape(28, 28)).max() <= MADE["STEP"] / 2
    assert len(rows) == 2 + len(computed()["large"]["start"]["batches"])
    for row, batches in zip(rows[2:], computed()["large"]["start"]["batches"], strict=True):
        gray = pictures.loc[pictures["batches"] == batches, "gray"].to_numpy().reshape(10, 28, 28)
        for i, digit in enumerate(gray):
            shown = row[:, 29 * i : 29 * i + 28].astype(int)
            assert np.abs(shown - digit).max() <= MADE["STEP"] / 2
            assert not (shown % MADE["STEP"]).any()


def test_lines_of_the_static_figure_are_the_errors_that_their_axes_name() -> None:
    figure = MADE["figure"](pd.Series(DATA))
    plots.plt.close(figure)
    above, below = (row.tolist() for row in np.reshape(figure.axes[:4], (2, 2)))
    for axes, over, words in ((above, "CD", "CD's"), (below, "constant", "constant's")):
        assert axes[0].get_ylabel() == f"error of RBM 3 / {words}"
        for ax, (size, side) in zip(axes, MADE["SIZES"].items(), strict=True):
            own = DATA[size]
            words_at = {text.get_text(): text.xy for text in ax.texts}
            curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
            for curve, name in zip(curves, [n for n in MADE["METHODS"] if n in own], strict=True):
                points = [*zip(own[name]["batches"], own[name][over], strict=True)]
                assert curve.get_xydata().tolist() == [[*point] for point in points]
                assert words_at.pop(MADE["LABELS"][name]) in points
            levels = {"CD": 1} if over == "CD" else {"CD": own["cd"], "constant": 1}
            assert {word: error for word, (_, error) in words_at.items()} == levels
            guides = [line.get_ydata()[0] for line in ax.lines if line not in curves]
            assert sorted(guides) == sorted(levels.values())
            assert over == "constant" or ax.get_title() == f"{side}×{side} pixels"
            assert ax.get_xscale() == ax.get_yscale() == "log"


def test_digits_of_the_static_figure_stand_at_their_names() -> None:
    marked = {}
    for size, side in MADE["SIZES"].items():
        # each row has the gray level of its number
        n_rows = 2 + len(DATA[size]["start"]["batches"])
        grays = np.repeat(MADE["STEP"] * np.arange(n_rows)[:, None], 10 * side**2, axis=1)
        marked[size] = DATA[size] | {"digits": MADE["picture"](grays)}
    figure = MADE["figure"](pd.Series(marked))
    names = [label.get_text() for label in figure.axes[-2].get_yticklabels()]
    assert len(names) == 5
    for size, ax in zip(marked, figure.axes[-2:], strict=True):
        batches = marked[size]["start"]["batches"]
        expected = {"original": 0, "CD": 1}
        expected |= {f"{k}, no search": 2 + i for i, k in enumerate(batches)}
        (shown,) = ax.images
        assert shown.get_cmap()(shown.norm(255))[:3] == (0, 0, 0), "black on white"
        assert ax.yaxis_inverted(), "the first row is above"
        assert shown.get_extent()[2:] == [5, 0]
        assert ax.get_yticks().tolist() == [0.5, 1.5, 2.5, 3.5, 4.5]
        parts = np.split(np.asarray(shown.get_array()), len(names))
        assert [part.max() / MADE["STEP"] for part in parts] == [expected[name] for name in names]
    plots.plt.close(figure)


def test_digits_of_7x7_pixels_are_those_of_the_method_and_the_mini_batches_of_their_row() -> None:
    """After an epoch, of 600 mini-batches, LEA-MVD has the stack of the paper's runs."""
    own = computed()["small"]
    few = pd.concat([read_recorded("few_updates", "pictures"), recorded_searches("pictures")])
    few = few.query(MADE["WHICH"])
    paper = read_recorded("mnist_7x7", "pictures").query("method == 'lea-mvd'")
    digits = pd.concat([few, paper.assign(batches=600)]).query("kind == 'digit' and seed == 0")
    rows = [("cd", 0, 0), ("cd", 0, 3)]
    for name, method in MADE["METHODS"].items():
        rows += [("start" if name == "start" else method, k, 3) for k in own[name]["batches"]]
    shown = MADE["rows_of"](own["digits"], 7)
    for row, (method, batches, layers) in zip(shown, rows, strict=True):
        of_row = (digits["method"] == method) & (digits["batches"] == batches)
        gray = digits.loc[of_row & (digits["layers"] == layers), "gray"].to_numpy()
        for i, digit in enumerate(gray.reshape(10, 7, 7)):
            part = row[:, 8 * i : 8 * i + 7].astype(int)
            assert np.abs(part - digit).max() <= MADE["STEP"] / 2, (method, batches)


def recorded_searches(table: str) -> pd.DataFrame:
    return read_recorded("few_updates_searched", table)


def test_the_level_of_cd_is_its_error_over_that_of_a_constant_image() -> None:
    ends = last(read_recorded("few_updates").query(MADE["WHICH"] + " and features == 'own'"))
    large = read_recorded("mnist_28x28").query("inputs == 'own' and seed in [0, 1, 2]")
    for size, runs in (("small", ends), ("large", last(large))):
        ratios = runs.query("method == 'cd' and layer == 3")["mean_field_ratio"]
        assert computed()[size]["cd"] == pytest.approx(np.exp(np.log(ratios).mean()), rel=1e-3)


def test_curves_of_the_static_figure_have_the_marks_and_colors_of_the_page() -> None:
    figure = MADE["figure"](pd.Series(DATA))
    plots.plt.close(figure)
    css = (BOOK / "static" / "first_page.css").read_text(encoding="utf-8")
    signs = {"o": "●", "D": "◆", "s": "■"}
    colors = {}
    for k, ax in enumerate(figure.axes[:4]):
        over = ("CD", "constant")[k // 2]
        own = DATA[[*MADE["SIZES"]][k % 2]]
        names = [name for name in MADE["METHODS"] if name in own]
        curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
        words = {text.get_text(): text for text in ax.texts}
        for curve, name in zip(curves, names, strict=True):
            sign = FORM.find("input", value=name).parent.b.text
            assert signs[curve.get_marker()] == sign, "as the choices have"
            colors.setdefault(name, curve.get_color())
            assert curve.get_color() == colors[name] == words[MADE["LABELS"][name]].get_color()
        low, high = ax.get_ylim()
        values = [value for name in names for value in own[name][over]]
        assert low < min([*values, own["cd"]]) <= max([*values, own["cd"], 1]) < high
        assert ax.get_ylim() == figure.axes[2 * (k // 2)].get_ylim(), "sizes can be compared"
        assert bool(ax.get_xlabel()) == (k > 1)
    assert to_hex(colors["start"]) == "#000000"
    (color,) = {colors["lea-mvd"], colors["printed"]}
    assert f"--own: {to_hex(color)};" in css, "the page's, by daylight"
    for row in (figure.axes[:2], figure.axes[2:4]):
        left, right = (
            any(one.label1.get_visible() for one in ax.yaxis.get_major_ticks()) for ax in row
        )
        assert (left, right) == (True, False), "numbers stand once"


def test_digits_of_28x28_pixels_are_means_of_four_and_black_where_they_are_dark() -> None:
    side = 28
    n_rows = 2 + len(DATA["large"]["start"]["batches"])
    grays = np.tile(np.arange(10).repeat(side**2), (n_rows, 1)) * MADE["STEP"]
    grays[:, ::2] = 0
    found = DATA["large"] | {"digits": MADE["picture"](grays)}
    figure, ax = plots.plt.subplots()
    MADE["_digits"](ax, found, side)
    plots.plt.close(figure)
    (shown,) = ax.images
    assert (shown.norm.vmin, shown.norm.vmax) == (0, 255)
    first = np.asarray(shown.get_array())[:14]
    assert first[0, 1 : 10 * 29 // 2 : 29].tolist() == [
        round(MADE["STEP"] * n / 2) for n in (0, 2, 4, 6, 8)
    ]
    assert {*MADE["rows_of"](found["digits"], side)[0, :, 28]} == {0}, "nothing between digits"


# ---- what a reader sees, drawn by the script in a page without a browser

FORM = BeautifulSoup(
    (BOOK / "static" / "first_page.html").read_text(encoding="utf-8"), "html.parser"
).form
assert FORM is not None
SHOWN = """
function drawn() {
  return JSON.stringify({
    words: root_.querySelector("p").textContent, name: root_.querySelector(".chosen").textContent,
    said: controls_.batches.getAttribute("aria-valuetext"),
    chart: root_.querySelector("svg").innerHTML, style: controls_.batches.getAttribute("style"),
    rows: root_.querySelectorAll("canvas").map((canvas) => canvas.ink), hidden: root_.hidden,
  });
}
function shown(method, k) {
  controls_.method.value = method;
  controls_.batches.value = String(Math.log(k));
  root_.oninput();
  return drawn();
}
"""


def as_tree(tag: Tag) -> list[Any]:
    attributes = {
        name: " ".join(value) if isinstance(value, list) else value
        for name, value in tag.attrs.items()
    }
    text = "".join(part for part in tag.children if isinstance(part, NavigableString)).strip()
    return [
        tag.name,
        attributes,
        text,
        [as_tree(part) for part in tag.children if isinstance(part, Tag)],
    ]


@pytest.fixture(scope="module")
def page() -> Iterator[MiniRacer]:
    """The page in which the script has run, and its pictures have arrived."""
    with MiniRacer() as engine:
        engine.eval((BOOK.parent / "tests" / "page_stub.js").read_text(encoding="utf-8"))
        engine.eval(
            f"const root_ = built({json.dumps(as_tree(FORM))}), data_ = {{ textContent:"
            f" {json.dumps(TEXT)} }}"
        )
        engine.eval(
            "document.getElementById = (id) => ({ 'first-page': root_, 'first-page-data': data_"
            " })[id]"
        )
        engine.eval(
            "const [batches, method] = ['batches', 'method'].map((name) =>"
            " root_.querySelector(`[name=${name}]`))"
        )
        engine.eval("const controls_ = root_.elements = { batches, method }")
        engine.eval(f"{{ {SCRIPT} }}")
        engine.eval(SHOWN)
        engine.eval("for (const picture of Image.every) picture.load()")
        engine.eval("const opening_ = drawn()")
        yield engine


def test_the_page_opens_with_what_its_controls_say(page: MiniRacer) -> None:
    opening = json.loads(page.eval("opening_"))
    method = FORM.select_one("[name=method][checked]")["value"]
    slider = FORM.select_one("[name=batches]")
    k = round(np.exp(float(slider["value"])))
    assert k in error_measures.BATCHES
    assert np.exp(float(slider["max"])) == pytest.approx(error_measures.BATCHES[-1], rel=1e-3)
    assert opening == json.loads(page.eval(f"shown({json.dumps(method)}, {k})"))
    assert opening["hidden"] is False


def errors_in_words(error: float, ratio: float) -> str:
    """Return what is said of two ratios: below one in hundredths, else in two digits."""
    said = [f"{x:.2f} of" if x < 1 else f"{float(f'{x:.2g}'):g} times" for x in (error, ratio)]
    return f"{said[0]} CD’s error, {said[1]} a constant image’s"


@pytest.mark.parametrize("batches", error_measures.BATCHES)
@pytest.mark.parametrize("method", MADE["METHODS"])
def test_the_page_says_and_gives_back_what_is_chosen(
    page: MiniRacer, method: str, batches: int
) -> None:
    shown = json.loads(page.eval(f"shown({json.dumps(method)}, {1.1 * batches})"))
    label = FORM.find("input", value=method).parent
    assert label.text.split(maxsplit=1)[1] == shown["name"] == CHOICES[method]
    words = [f"{batches} mini-batch{'es' * (batches > 1)}"]
    for i, (size, side) in enumerate(MADE["SIZES"].items()):
        lines = {name: DATA[size][name] for name in MADE["METHODS"] if name in DATA[size]}
        rows = [(name, k) for name, line in lines.items() for k in line["batches"]]
        there = (method, batches) in rows
        said, chosen = "not run", []
        if there:
            at = lines[method]["batches"].index(batches)
            said = errors_in_words(lines[method]["CD"][at], lines[method]["constant"][at])
            chosen = [2 + rows.index((method, batches))]
        words.append(f"{side}×{side} pixels: {said}")
        width, digits = 10 * side + 9, DATA[size]["digits"]
        expected = [
            [[digits, 0, row * side, width, side, 0, 0, width, side] for row in own]
            for own in ([0], [1], chosen)
        ]
        assert shown["rows"][i::2] == expected, (
            "the originals, those of CD, and the chosen ones or none"
        )
    assert shown["words"] == shown["said"] == f"{'. '.join(words)}."


def test_a_click_takes_the_nearest_number_of_mini_batches_and_the_address_keeps_it(
    page: MiniRacer,
) -> None:
    page.eval(
        "root_.querySelector('svg').getBoundingClientRect = function () {"
        " return { left: 30, top: 0, width: this.size[0], height: this.size[1] }; }"
    )
    chart = BeautifulSoup(json.loads(page.eval('shown("start", 60)'))["chart"], "html.parser")
    for size in MADE["SIZES"]:
        marks = chart.select_one(f"g.{size} g.start").select("path.mark")
        for k, mark in zip(DATA[size]["start"]["batches"], marks, strict=True):
            x = float(re.findall(r"[\d.]+", mark["transform"])[0])
            for near in (30 + x - 4, 30 + x + 4):
                page.eval(f"root_.querySelector('svg').onclick({{ clientX: {near} }})")
                position = page.eval("controls_.batches.valueAsNumber")
                assert np.exp(position) == pytest.approx(k, rel=1e-3)
                assert page.eval("history.address") == f"#k={k}&method=start"
                assert json.loads(page.eval("drawn()"))["words"].startswith(f"{k} mini-batch")


def test_an_arrow_key_takes_the_next_number_of_mini_batches(page: MiniRacer) -> None:
    page.eval('shown("start", 1)')
    batches = DATA["small"]["start"]["batches"]
    turns = {"ArrowUp": 1, "ArrowRight": 2, "ArrowDown": 1, "ArrowLeft": 0}
    for key, at in {"ArrowLeft": 0, **turns}.items():
        page.eval(f"controls_.batches.onkeydown({{ key: '{key}', preventDefault() {{}} }})")
        assert np.exp(page.eval("controls_.batches.valueAsNumber")) == pytest.approx(batches[at])


def test_the_address_leads_back_to_what_was_chosen(page: MiniRacer) -> None:
    page.eval('shown("start", 60)')
    page.eval("location.hash = '#k=10&method=printed'")
    page.eval(f"{{ {SCRIPT} }}")
    page.eval("for (const picture of Image.every) picture.load(); location.hash = ''")
    assert page.eval("controls_.method.value") == "printed"
    assert json.loads(page.eval("drawn()"))["words"].startswith("10 mini-batches. ")


@pytest.mark.parametrize("width", [400, 500])  # one below the other, and side by side
@pytest.mark.parametrize("method", MADE["METHODS"])
def test_the_charts_of_the_page_show_the_errors_at_their_axes(
    page: MiniRacer, method: str, width: int
) -> None:
    k = 60
    page.eval(f"root_.querySelector('svg').size[0] = {width}")
    shown = json.loads(page.eval(f"shown({json.dumps(method)}, {k})"))
    chart = BeautifulSoup(shown["chart"], "html.parser")
    titles = [text.text for text in chart.select("text.title")]
    assert titles == [f"{side}×{side} pixels" for side in MADE["SIZES"].values()]
    signs = {name: FORM.find("input", value=name).parent.b.text for name in MADE["METHODS"]}
    sizes = chart.find_all("g", recursive=False)
    downs = [float(re.findall(r",([\d.]+)\)", part["transform"])[0]) for part in sizes]
    assert (downs[1] > 300) == (width < 420)
    assert len(chart.select("text.tick")) == (16 if width < 420 else 8), "once where there is room"
    ends = []
    for size, part in zip(MADE["SIZES"], sizes, strict=True):
        own, rule = DATA[size], part.select_one("path.rule")
        ticks = [
            text for text in part.find_all("text", recursive=False) if "title" not in text["class"]
        ]
        spots = [float(tick["x"]) for tick in ticks]
        logs = [np.log(float(tick.text)) for tick in ticks]
        assert len(ticks) == 3
        across = np.polyfit(spots, logs, 1)
        for over, of, left, panel in zip(
            ("CD", "constant"),
            ("CD", "a constant image"),
            (part if downs[1] else sizes[0]).find_all("g", recursive=False),
            part.find_all("g", recursive=False),
            strict=True,
        ):
            assert left.find("text", class_="").text == f"error of RBM 3 over {of}’s"
            ticks = left.select("text.tick")
            heights = [float(tick["y"]) for tick in ticks]
            logs = [np.log(float(tick.text)) for tick in ticks]
            slope, start = np.polyfit(heights, logs, 1)
            levels = [
                float(y)
                for y in re.findall(r"M[\d.]+,([\d.]+)H", panel.select_one("path.axis")["d"])
            ]
            assert slope < 0 < across[0], "up and to the right is more"
            assert abs(-start / slope - levels[0]) < 6, "the word 1 stands beside the line at 1"
            frame = re.findall(r"[\d.]+", panel.select_one("path.axis")["d"])[:4]
            west, north, south, east = map(float, frame)
            expected = [1, own["cd"]][: len(levels)]
            assert np.exp(slope * (np.array(levels) - levels[0])) == pytest.approx(expected)
            assert len(levels) == (1 if over == "CD" else 2)
            words = panel.find_all("text", recursive=False)
            names = [text for text in words if text.text in ("CD", "constant")]
            assert [text.text for text in names] == [over, "CD"][: len(levels)]
            for text, level in zip(names, levels, strict=True):
                assert abs(float(text["y"]) - level) <= 14, "a word stands at its level"
                assert west < float(text["x"]) < east
            curves = panel.select("g.curve")
            assert {curve["class"][1] for curve in curves} == own.keys() & {*MADE["METHODS"]}
            assert method not in own or curves[-1]["class"][1] == method, (
                "the chosen one lies on top"
            )
            for curve in curves:
                name, line = curve["class"][1], own[curve["class"][1]]
                marks = curve.select("path.mark")
                places = [re.findall(r"[\d.]+", mark["transform"]) for mark in marks]
                x, y = np.array(places, dtype=float).T
                assert west < x.min() < x.max() < east
                assert north < y.min() < y.max() < south
                assert np.exp(np.polyval(across, x)) == pytest.approx(line["batches"])
                assert np.exp(slope * (y - levels[0])) == pytest.approx(line[over])
                assert re.findall(r"[\d.]+", curve.path["d"]) == [
                    number for place in places for number in place
                ]
                shape = "●" if "a" in marks[0]["d"] else "■" if "H" in marks[0]["d"] else "◆"
                assert shape == signs[name], "marks are those that the choices have"
                (word,) = curve("text")
                assert word.text == MADE["LABELS"][name]
                gaps = np.hypot(x - float(word["x"]), y - float(word["y"]))
                assert gaps.min() < 25, "a curve has its name beside a mark"
                if name == "start":
                    ends.append((x[0], x[-1]))
        places = [float(place) for place in re.findall(r"M([\d.]+)", rule["d"])]
        assert np.exp(np.polyval(across, places)) == pytest.approx([k, k]), "in both panels"
    start, length = map(float, re.findall(r"([\d.]+)px", shown["style"]))
    css = (BOOK / "static" / "first_page.css").read_text(encoding="utf-8")
    (thumb,) = {float(size) for size in re.findall(r"thumb \{\s+width: (\d+)px", css)}
    slider = (start + thumb / 2, start + length - thumb / 2)
    assert slider == pytest.approx(ends[0]), "the thumb stands below the marks of its ends"
