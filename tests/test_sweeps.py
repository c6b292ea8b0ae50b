"""Several values of a parameter: the plan, the runs, and their errors side by side."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from quick_runs import SMALL, leamvd

from leamvd.analysis import intervals, statistics
from leamvd.book import reproduction, sections, side_by_side, summary
from leamvd.campaign.tables import read_table
from leamvd.figures import comparison as draw
from leamvd.figures.style import COLORS, plotted
from leamvd.studies import catalog, records


def plan(*settings: str, names: tuple[str, ...] = ("mnist-7x7",)) -> list[list[dict[str, object]]]:
    chosen = sections.choose(sections.load(), names)
    pairs = [(setting.partition("=")[0], setting.partition("=")[2]) for setting in settings]
    return [values for _, values in sections.requested(chosen, pairs)]


def test_a_sweep_is_the_product_of_what_takes_one_value() -> None:
    quick = {"profile": "quick"}
    (values,) = plan("population_size=12,24", "seeds=0,1", "dtype=float32,float64", "x0=none")
    assert values == [
        {**quick, "population_size": n, "seeds": [0, 1], "dtype": dtype, "x0": "none"}
        for n in (12, 24)
        for dtype in ("float32", "float64")
    ]
    assert plan("methods=cd,lea-mvd") == [[{**quick, "methods": ["cd", "lea-mvd"]}]], "a list keeps its meaning"
    assert plan() == [[quick]]
    assert plan("profile=paper") == [[{"profile": "paper"}]]
    assert plan("n_gen=None,5") == [[{**quick, "n_gen": None}, {**quick, "n_gen": 5}]]
    two = [{**quick, "dtype": dtype} for dtype in ("float32", "float64")]
    assert plan("dtype=float32,float64", names=("esd", "mnist-7x7")) == [[quick], two], "without it one runs once"


def test_a_path_with_a_comma_is_a_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a,b").mkdir()
    monkeypatch.chdir(tmp_path)
    assert plan("dataset=a,b") == [[{"profile": "quick", "dataset": str(tmp_path / "a,b")}]]


def test_a_sweep_ends_with_a_comparison_and_carries_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "run", lambda *_: pytest.fail("a notebook ran"))
    command = ("reproduce", *SMALL, "-p", "seeds=0-1", "-p", "population_size=8,9", "-p", "x0_epochs=1,2")
    command = (*command, "--jobs", "1", "--output", str(tmp_path))
    compute, ran = reproduction.compute, []

    def stopped(*given: Any) -> int:
        ran.append(given)
        if len(ran) > 2:
            raise KeyboardInterrupt
        return compute(*given)

    with monkeypatch.context() as patch:
        patch.setattr(reproduction, "compute", stopped)
        assert leamvd(*command).exit_code == 130
    assert not list(tmp_path.glob("03_mnist_7x7/*"))
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("store/*/rows.csv")}
    assert before
    result = leamvd(*command)
    assert result.exit_code == 0, result.output
    assert all(path.stat().st_mtime_ns == time for path, time in before.items()), "what is stored is not computed again"
    assert "contrastive divergence, population_size=9, x0_epochs=2\n" in result.stdout

    (folder,) = tmp_path.glob("03_mnist_7x7/*")
    assert folder.name.startswith("sweep-digits-quick-x0_epochs=1,2-population_size=8,9-n_images=40")
    assert result.stdout.endswith(f"{folder}\n  summary.csv\n  figures/sweep.png\n")
    table = read_table(folder / "summary.csv")
    assert list(table.columns[:3]) == ["population_size", "x0_epochs", "measure"]
    assert len(table) == 4 * 2 * 2 * 2 * 3
    about = json.loads((folder / "run.json").read_text())
    assert {name: about["parameters"][name] for name in ("population_size", "x0_epochs")} == {
        "population_size": [8, 9], "x0_epochs": [1, 2],
    }  # fmt: skip
    for (n, epochs), own in table.groupby(["population_size", "x0_epochs"], sort=False):
        given = {"layers": (6, 5), "methods": ("cd", "lea-mvd", "lea-mvd:x0-excluded"), "n_images": 40, "n_gen": 2}
        given |= {"n_elite": 2, "seeds": (0, 1), "population_size": n, "x0_epochs": epochs}
        wanted = intervals.errors(records.stored(catalog.study("mnist-7x7", "quick", **given), tmp_path))
        pd.testing.assert_frame_equal(own[wanted.columns].reset_index(drop=True), wanted, check_exact=True)
    one = table.query("population_size == 8 and x0_epochs == 2 and measure == 'mean_field' and layer == 2")
    row = next(line for line in result.stdout.splitlines() if re.match(r" *own +2 +cd", line))
    assert statistics.text(*one.iloc[0][["mean", "low", "high"]]) in row

    shown = json.loads((folder / "figures" / "sweep.json").read_text())
    assert shown["titles"][0] == "scikit-learn digits (bars: 95 % intervals over seeds)"
    assert {axes["title"].partition("\n")[2] for axes in shown["axes"]} == {"x0_epochs=1", "x0_epochs=2"}
    assert [axes["ticks"][0] for axes in shown["axes"][-2:]] == [["8", "9"]] * 2

    monkeypatch.setattr(reproduction, "compute", lambda *_: pytest.fail("computed"))
    again = leamvd(*command)
    assert "finished before" in again.stdout
    assert row in again.stdout
    assert not (tmp_path / "03_mnist_7x7" / "latest").exists(), "that is a run"


def test_each_section_is_compared_by_its_own_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = []

    def sweep(section: sections.Section, sets: Any, data: Any, *_: object) -> tuple[Path, pd.DataFrame]:
        compared.append((section.stem, [one["n_gen"] for one in sets], len(data)))
        return tmp_path, pd.DataFrame()

    monkeypatch.setattr(side_by_side, "sweep", sweep)
    monkeypatch.setattr(summary, "printed", lambda _: "")
    monkeypatch.setattr(reproduction, "compute", lambda *_: 0)
    result = leamvd("reproduce", "mnist-7x7", "mnist-28x28", "-p", "n_gen=2,3", "--output", str(tmp_path))
    assert result.exit_code == 0, result.output
    assert compared == [(stem, [2, 3], 2) for stem in ("03_mnist_7x7", "04_mnist_28x28")]


def test_a_sweep_plots_every_mean_and_its_interval() -> None:
    cells = [
        (n, "own", layer, method, 10.0 * layer + i, 9.0 * layer + i, 12.0 * layer + i)
        for i, n in enumerate(("12", "24"))
        for layer in (1, 2)
        for method in ("cd", "lea-mvd:printed")
    ]
    table = pd.DataFrame(cells, columns=["population_size", "inputs", "layer", "method", "mean", "low", "high"])
    table.loc[table["method"] == "cd", ["low", "high"]] = float("nan")  # one seed
    figure = draw.sweep(table, ["population_size"], "some digits")
    for layer, axes, panel in zip((1, 2), figure.axes, plotted(figure), strict=True):
        assert panel["title"] == f"RBM {layer}, own inputs"
        assert panel["labels"][0] == "population_size"
        cd, printed = axes.lines
        assert list(cd.get_ydata()) == list(printed.get_ydata()) == [10.0 * layer, 10.0 * layer + 1]
        assert [line.get_color() for line in (cd, printed)] == [COLORS["cd"], COLORS["lea-mvd"]]
        assert [line.get_linestyle() for line in (cd, printed)] == ["-", ":"]
        assert all(abs(x - wanted) < 0.5 for x, wanted in zip(printed.get_xdata(), (0, 1), strict=True))
        alone, bars = axes.collections
        assert [sorted(path.vertices[:, 1]) for path in bars.get_paths()] == [
            [9.0 * layer + i, 12.0 * layer + i] for i in (0, 1)
        ]
        assert [sorted(path.vertices[:, 1]) for path in alone.get_paths()] == [[10.0 * layer + i] * 2 for i in (0, 1)]


def test_names_are_shown_as_they_are() -> None:
    row = ("$b$", "$c$", "own", 1, "lea-mvd:$a$.json", 1.0, 0.5, 1.5)
    table = pd.DataFrame([row], columns=["dataset", "device", "inputs", "layer", "method", "mean", "low", "high"])
    figure = draw.sweep(table, ["dataset", "device"], "some digits")
    assert figure.axes[0].get_title() == "RBM 1, own inputs\ndevice=" + r"\$c\$"
    assert plotted(figure)[0]["ticks"][0] == [r"\$b\$"]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [r"lea-mvd:\$a\$.json"]


def test_many_methods_of_a_sweep_are_told_apart_and_leave_room_for_panels() -> None:
    methods = ["cd", "lea-mvd", *(f"lea-mvd:reset={i}" for i in range(9))]
    cells = [(n, "own", 1, method, 10.0, 9.0, 12.0) for n in ("12", "24") for method in methods]
    table = pd.DataFrame(cells, columns=["population_size", "inputs", "layer", "method", "mean", "low", "high"])
    figure = draw.sweep(table, ["population_size"], "digits")
    figure.draw_without_rendering()
    lines = [bars.lines[0] for bars in figure.axes[0].containers]
    looks = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in lines}
    assert len(looks) == len(methods)
    (legend,) = figure.legends
    assert legend.get_window_extent().y1 < figure.axes[0].get_tightbbox().y0
