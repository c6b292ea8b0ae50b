"""`make regress` shows what moved and `make accept` takes it, on a clone of one small section."""

import json
import re
import shutil
from pathlib import Path

import accept
import accepted
import pytest
import regress
from click.testing import CliRunner, Result
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output, writes

from leamvd.book import sections
from leamvd.figures import style

CHANGELOG = """# Changelog

## [Unreleased]

### Added

- Something.

### Changed

- An earlier line.

### Fixed

- Another thing.

## [0.1.0]

### Changed

- Long ago.
"""


def draw(folder: Path, name: str, end: float = 2.0, title: str = "t") -> None:
    figure, axes = style.new(width=4, height=2)
    axes[0, 0].plot([0, 1, 2], [0, 1, end], label="cd")
    axes[0, 0].set_title(title)
    axes[0, 0].legend()
    style.save(figure, name, folder)


def notebook(numbers: dict[str, float]) -> str:
    """Return an executed notebook with a cell for each figure, whose output tells its number, and a table of them."""
    cells = [new_markdown_cell("# One", id="title")]
    tags = ["parameters", "hide-input"]
    cells.append(new_code_cell("seed: int = 1  # >= 0: of the run", metadata={"tags": tags}, execution_count=1, id="p"))
    for name in ("first", "second"):
        text = new_output("execute_result", data={"text/plain": f"{name} {numbers[name]}"}, execution_count=2)
        shown = {"figure": {"caption": name, "name": f"fig-{name}"}, "image": {"alt": f"A line, {name}."}}
        cells.append(new_code_cell(f"{name}()", metadata={"mystnb": shown}, outputs=[text], execution_count=2, id=name))
    table = new_output("execute_result", data={"text/plain": f"table {sorted(numbers.values())}"}, execution_count=3)
    cells.append(new_code_cell("table()", outputs=[table], execution_count=3, id="table"))
    content: str = writes(new_notebook(cells=cells, metadata={"leamvd": {"section": "one", "title": "One"}}))
    return content


def run(output: Path, commit: str, profile: str = "recorded", **numbers: float) -> Path:
    """Write a run of the section, whose figures end in these numbers."""
    numbers = {"first": 2.0, "second": 2.0} | numbers
    folder = output / "01_one" / f"{profile}-1"
    shutil.rmtree(folder, ignore_errors=True)
    for name, end in numbers.items():
        draw(folder, name, end)
    draw(folder, "timing-one", len(commit))
    (folder / "01_one.ipynb").write_text(notebook(numbers), encoding="utf-8")
    about = {"section": "one", "notebook": "0", "command": "leamvd reproduce one"}
    about["parameters"] = {"profile": profile, "seed": 1}
    about["made_with"] = {"code": "c", "commit": commit, "numpy": "2"}
    (folder / "run.json").write_text(json.dumps(about))
    (output / "01_one" / "latest").write_text(f"{profile}-1\n")
    return folder


def use(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """Let a clone take the place of this one."""
    patch.setattr(sections, "NOTEBOOKS", folder / "notebooks")
    patch.setattr(accepted, "FIGURES", folder / "figures")
    patch.setattr(accepted, "RUNS", folder / "accepted.json")
    patch.setattr(accept, "CHANGELOG", folder / "CHANGELOG.md")
    return folder


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Accept a first run, in a clone of its own."""
    folder = tmp_path_factory.mktemp("first")
    for name in ("notebooks", "figures"):
        (folder / "clone" / name).mkdir(parents=True)
    with pytest.MonkeyPatch.context() as patch:
        clone = use(folder / "clone", patch)
        (clone / "notebooks" / "01_one.ipynb").write_text(notebook({"first": 0, "second": 0}), encoding="utf-8")
        (clone / "accepted.json").write_text("{}")
        (clone / "CHANGELOG.md").write_text(CHANGELOG)
        run(folder / "results", "aaaaaaaaaaaa")
        assert take(folder / "results", reason="first").exit_code == 0
    return folder


@pytest.fixture(autouse=True)
def clone(first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a copy of it, beside the results."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    return use(tmp_path / "clone", monkeypatch)


def take(results: Path, **options: str) -> Result:
    given = [text for name, value in options.items() for text in (f"--{name}", value)]
    return CliRunner().invoke(accept.main, [*given, "--results", str(results)])


def look(results: Path) -> tuple[Result, str]:
    page = results.parent / "page.html"
    shown = CliRunner().invoke(regress.main, [str(results), "--page", str(page)])
    return shown, page.read_text(encoding="utf-8")


def test_nothing_moved(tmp_path: Path) -> None:
    shown, page = look(tmp_path / "results")
    assert (shown.exit_code, shown.output.splitlines()[0]) == (0, "None of 2 figures moved.")
    assert "None of 2 figures moved." in page
    assert "<img" not in page


def test_a_figure_that_moved_is_shown_with_what_moved_and_both_runs(tmp_path: Path) -> None:
    folder = run(tmp_path / "results", "bbbbbbbbbbbb+", second=2.5)
    draw(folder, "third", 7.0)
    shown, page = look(tmp_path / "results")
    assert shown.exit_code == 1
    assert shown.output.splitlines()[:3] == [
        "1 of 3 figures moved, 1 new.",
        "second: axes 1 ('t'): 1 of 6 numbers moved; largest relative change 25 % (2 became 2.5)",
        "third: This figure is new.",
    ]
    assert 'id="first"' not in page
    assert re.findall(r'alt="([^"]+)"', page) == [
        "Expected: A line, second.", "Actual: A line, second.", "Difference: A line, second.", "Actual: third",
    ]  # fmt: skip
    assert len(set(re.findall(r'src="data:image/png;base64,([^"]+)"', page))) == 4
    assert not re.search(r'(src|href)="(?!data:|#)', page), "the page needs no other file"
    assert '<th scope="row">commit</th><td>aaaaaaaaaaaa</td><td>bbbbbbbbbbbb+</td>' in page
    assert '<th scope="row">seed</th><td>1</td><td>1</td>' in page
    assert "numpy" not in page, "what is the same in both is left out"


def test_a_missing_figure_is_named_until_it_is_taken_away(tmp_path: Path, clone: Path) -> None:
    folder = run(tmp_path / "results", "bbbbbbbbbbbb")
    for ending in (".json", ".png"):
        (folder / "figures" / "first").with_suffix(ending).unlink()
    shown, page = look(tmp_path / "results")
    assert shown.exit_code == 1
    assert "first: This figure is missing" in shown.output
    assert "Expected: A line, first." in page
    assert take(tmp_path / "results", figure="first", reason="nobody needs it").exit_code == 0
    assert accepted.names("recorded") == {"second": "one"}
    assert sorted(path.name for path in accepted.FIGURES.iterdir()) == ["second.json", "second.png"]
    assert look(tmp_path / "results")[0].exit_code == 0


def test_sections_that_are_not_compared_are_named(tmp_path: Path, clone: Path) -> None:
    shutil.copy(clone / "notebooks" / "01_one.ipynb", clone / "notebooks" / "02_two.ipynb")
    shown, page = look(tmp_path / "results")
    assert "no run of them in an accepted profile: 02_two." in shown.output
    assert "no run of them in an accepted profile: 02_two" in page
    run(tmp_path / "paper", "bbbbbbbbbbbb", "paper", first=3.0)
    (tmp_path / "empty").mkdir()
    for results in ("paper", "empty"):
        refused = CliRunner().invoke(regress.main, [str(tmp_path / results)])
        assert (refused.exit_code, "hold no run that is compared" in refused.output) == (2, True)


def test_pixels_alone_move_a_figure(tmp_path: Path) -> None:
    folder = run(tmp_path / "results", "bbbbbbbbbbbb")
    shutil.copy(accepted.FIGURES / "first.png", folder / "figures" / "second.png")  # the same picture
    assert look(tmp_path / "results")[0].exit_code == 0
    draw(tmp_path / "other", "first", title="a much longer title")
    shutil.copy(tmp_path / "other" / "figures" / "first.png", folder / "figures" / "second.png")
    shown, _ = look(tmp_path / "results")
    assert re.search(r"second: pixels: \d.* gray levels apart \(RMS\), where 2 are allowed", shown.output)


def outputs(clone: Path) -> dict[str, str]:
    cells = json.loads((clone / "notebooks" / "01_one.ipynb").read_text())["cells"]
    return {cell["id"]: "".join(cell["outputs"][0]["data"]["text/plain"]) for cell in cells if cell.get("outputs")}


def test_one_figure_is_taken_with_its_reason_and_its_notebooks_numbers(tmp_path: Path, clone: Path) -> None:
    run(tmp_path / "results", "bbbbbbbbbbbb", first=3.0, second=4.0)
    done = take(tmp_path / "results", figure="second", reason="The step is\n longer, at last.")
    assert done.exit_code == 0, done.output
    shown, page = look(tmp_path / "results")
    assert shown.output.splitlines()[0] == "1 of 2 figures moved."
    assert 'id="first"' in page
    (entry,) = accepted.entries().values()
    assert (entry["run"]["made_with"]["commit"], entry["figures"]) == ("bbbbbbbbbbbb", ["first", "second"])
    assert outputs(clone) == {"first": "first 2.0", "second": "second 4.0", "table": "table [3.0, 4.0]"}
    changed = (
        "- An earlier line.\n- Figures and numbers of one: first.\n- Figure `second`: The step is longer, at last.\n"
    )
    told = (clone / "CHANGELOG.md").read_text()
    assert f"{changed}\n### Fixed\n" in told
    assert told.replace(changed.partition("\n")[2], "") == CHANGELOG
    assert take(tmp_path / "results", figure="first", reason="too").exit_code == 0
    assert look(tmp_path / "results")[0].exit_code == 0


def test_of_a_quick_run_arrays_and_what_it_tells_are_taken(tmp_path: Path, clone: Path) -> None:
    before = (clone / "notebooks" / "01_one.ipynb").read_bytes()
    folder = run(tmp_path / "quick", "bbbbbbbbbbbb", "quick", first=3.0)
    assert take(tmp_path / "quick", reason="a second scale").exit_code == 0
    assert [path.name for path in sorted(accepted.place("quick").iterdir())] == ["first.json", "second.json"]
    entries = accepted.entries()
    assert [*entries] == ["quick one", "recorded one"]
    assert entries["quick one"]["texts"] == ["first 3.0", "second 2.0", "table [2.0, 3.0]"]
    assert (clone / "notebooks" / "01_one.ipynb").read_bytes() == before
    assert look(tmp_path / "quick")[0].exit_code == look(tmp_path / "results")[0].exit_code == 0
    draw(folder, "second", 7.0)
    shown, page = look(tmp_path / "quick")
    assert shown.output.splitlines()[0] == "1 of 2 figures moved."
    assert re.findall(r'alt="([^"]+)"', page) == ["Actual: A line, second."], "of this scale no picture is accepted"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"figure": "first"}, "Error: a REASON is needed"),
        ({"reason": "  "}, "Error: a REASON is needed"),
        ({"figure": "zzz", "reason": "r"}, "Error: no figure is named 'zzz'; there are first, second\n"),
    ],
)
def test_what_is_refused_changes_nothing(options: dict[str, str], message: str, tmp_path: Path, clone: Path) -> None:
    run(tmp_path / "results", "bbbbbbbbbbbb", first=3.0)
    before = {path: path.read_bytes() for path in clone.rglob("*.*")}
    done = take(tmp_path / "results", **options)
    assert done.exit_code == 1
    assert done.output.startswith(message)
    assert len(done.output.splitlines()) == 1
    assert {path: path.read_bytes() for path in clone.rglob("*.*")} == before


def test_printed_lines_are_one_text_however_they_arrive() -> None:
    lines = [new_output("stream", text=f"{n}\n") for n in (1, 2)]
    shown = [new_output("display_data", data={"text/plain": "a"}) for _ in range(2)]
    split = new_notebook(
        cells=[new_code_cell("", outputs=[*lines, *shown, lines[0]]), new_code_cell("", outputs=lines)]
    )
    assert accepted.told(split)["texts"] == ["1\n2\n", "a", "a", "1\n", "1\n2\n"]


def test_a_run_of_another_notebook_is_refused(tmp_path: Path, clone: Path) -> None:
    path = clone / "notebooks" / "01_one.ipynb"
    path.write_text(path.read_text().replace("# One", "# One, edited since"))
    done = take(tmp_path / "results", reason="r")
    assert (done.exit_code, "01_one has been edited since its run" in done.output) == (1, True)
    assert "edited since" in path.read_text()


def test_a_changelog_without_a_place_for_changes_gets_one() -> None:
    told = accept.changelog("# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n", "Figure `a`: moved.")
    assert told == "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n\n### Changed\n\n- Figure `a`: moved.\n"
