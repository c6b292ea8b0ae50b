"""Two runs on one page."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from prose import figures
from quick_runs import SMALL, execute, leamvd, view
from test_records import JUNK

from leamvd.analysis import intervals, statistics
from leamvd.analysis.comparison import last
from leamvd.book import runs, sections
from leamvd.studies import catalog, records


def reproduce(output: Path, *arguments: str) -> Path:
    result = leamvd("reproduce", *arguments, "--jobs", "1", "--output", str(output))
    assert result.exit_code == 0, result.output
    return view(output, sections.choose(sections.load(), arguments[:1])[0].stem)


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return results of three runs: a and b of one section, with seeds in common, and one of another section."""
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sections, "_execute", execute)
        a = reproduce(folder, *SMALL, "-p", "seeds=0-2", "-p", "population_size=8")
        b = reproduce(folder, *SMALL, "-p", "seeds=1-3", "-p", "population_size=9")
        reproduce(folder, "esd")
    a.rename(a.with_name("a"))
    shutil.copytree(b, b.with_name("b"))
    return folder


@pytest.fixture
def altered(output: Path, tmp_path: Path) -> Path:
    """Return the folder of a section with runs a and b, which a test may alter."""
    shutil.copytree(output, tmp_path / "results")
    return tmp_path / "results" / "03_mnist_7x7"


class Page:
    """What a reader gets: the rows of the tables, alternative texts, addresses."""

    def __init__(self, text: str) -> None:
        self.source, soup = text, BeautifulSoup(text, "html.parser")
        self.rows = [[cell.text.strip() for cell in row(["th", "td"])] for row in soup("tr")]
        self.alts = [image["alt"] for image in soup("img")]
        self.addresses = [tag.get("src") or tag["href"] for tag in soup(lambda tag: tag.get("src") or tag.get("href"))]


def compare(a: Path, b: Path) -> Page:
    result = leamvd("compare", str(a), str(b))
    assert result.exit_code == 0, result.output
    return Page(Path(result.stdout.strip()).read_text(encoding="utf-8"))


def test_the_page_says_what_differs_and_shows_errors_and_figures(output: Path) -> None:
    section = output / "03_mnist_7x7"
    page = compare(section / "a", section / "b")
    assert (section / "compare-a-b.html").is_file()
    rows = page.rows
    assert ["population_size", "8", "9"] in rows
    assert ["seeds", "0, 1, 2", "1, 2, 3"] in rows
    named = [row[0] for row in rows]
    assert "n_gen" not in named, "it is the same in both"
    assert "numpy" not in named

    tables = [records.run(catalog.section_study(runs.read(section / name).about), output) for name in ("a", "b")]
    errors, ratios = [intervals.errors(table) for table in tables], intervals.ratios(*tables)
    cells = [row for row in rows if row[0] in ("own", "shared")]
    assert len(cells) == len(ratios) == 2 * 2 * 2 * 3
    names, texts = ratios[["inputs", "layer", "method"]].astype(str), map(statistics.texts, errors)
    wanted = zip(names.to_numpy().tolist(), *texts, ratios["ratio"], strict=True)
    for row, (name, *both, ratio) in zip(cells, wanted, strict=True):
        assert row[:5] == [*name, *both]
        assert row[5].startswith(f"{ratio:.4g}")
        assert row[6:] == ["3, 3", "2"]
    assert last(tables[0])["seed"].nunique() == 3

    assert len(page.alts) == 3, "errors of both, and the figure of each"
    alt = figures("03_mnist_7x7")["fig-mnist-7x7-mean-field"].image.alt
    assert page.alts[1:] == [f"Run A: {alt}", f"Run B: {alt}"]

    # it opens alone
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    assert not re.search(r"https?:|@import|url\(|<script", page.source)
    assert str(output) not in page.source, "no path of this machine"
    assert "prefers-color-scheme: dark" in page.source


def test_one_run_made_twice_is_told_apart_by_its_folder_of_results(output: Path, tmp_path: Path) -> None:
    section, before = output / "03_mnist_7x7", set(output.rglob("*.html"))
    for other in ("laptop", "cluster"):
        shutil.copytree(output, tmp_path / other)
        page = compare(section / "a", tmp_path / other / "03_mnist_7x7" / "a")
        assert f"{output.name}/03_mnist_7x7/a" in page.source
        assert f"{other}/03_mnist_7x7/a" in page.source
    assert len(set(output.rglob("*.html")) - before) == 2, "neither page takes the other's place"


def test_bold_is_what_leaves_one_out(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = intervals.ratios

    def apart(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
        table = ratios(a, b)
        table[["low", "ratio", "high"]] = [0.9, 1.05, 1.1]
        table.loc[5, ["low", "ratio", "high"]] = [0.9, 0.95, 1.1]
        table.loc[3, ["low", "ratio", "high"]] = [1.01, 1.2, 1.3]
        table.loc[7, ["low", "ratio", "high"]] = [0.7, 0.8, 0.99]
        return table

    monkeypatch.setattr(intervals, "ratios", apart)
    section = output / "03_mnist_7x7"
    page = compare(section / "a", section / "b")
    assert re.findall(r'class="differs">([^<]+)<', page.source) == ["1.2 [1.01, 1.3]", "0.8 [0.7, 0.99]"]


def test_a_run_says_what_it_was_made_with(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = runs.read(output / "03_mnist_7x7" / "a").about["made_with"]
    assert made["numpy"] == np.__version__
    assert made | {"commit": ""} == runs.made_with(made["data"]) | {"commit": ""}
    monkeypatch.setattr(runs, "_PACKAGES", ("numpy", "no-such-package"))
    assert runs.made_with().keys() == {"code", "archive", "commit", "Python", "machine", "numpy"}


def test_latest_is_the_last_run(output: Path) -> None:
    section = output / "03_mnist_7x7"
    for latest in (section / "latest", section):
        assert runs.read(latest).folder == view(output).resolve()


def test_what_other_code_and_versions_made_is_named_and_a_figure_of_one_run_alone_shown(altered: Path) -> None:
    path = altered / "b" / "run.json"
    about = json.loads(path.read_text())
    about["made_with"] |= {"numpy": "0.1", "code": "<b>other</b>"}
    path.write_text(json.dumps(about | {"notebook": "other"}))
    picture = altered / "b" / "figures" / "mnist-7x7-mean-field.png"
    picture.rename(picture.with_name('<i>"mine".png'))
    page, made = compare(altered / "a", altered / "b"), runs.made_with()
    assert ["numpy", made["numpy"], "0.1"] in page.rows
    assert ["code", made["code"], "<b>other</b>"] in page.rows, "names are text, whatever they look like"
    assert any(row[0] == "notebook" and row[2] == "other" for row in page.rows)
    assert page.alts[2] == 'Run B: <i>"mine"'
    assert "Run B has no such figure." in page.source
    assert "Run A has no such figure." in page.source


def test_a_section_without_errors_shows_its_figures(altered: Path) -> None:
    esd = view(altered.parent, "01_esd")
    shutil.copytree(esd, esd.with_name("b"))
    page = compare(esd, esd.with_name("b"))
    assert len(page.alts) == 2
    assert [row for row in page.rows if row[0] in ("own", "shared")] == []


def refusal(section: Path, other: Path) -> str:
    """Return the one sentence with which a comparison ends."""
    result = leamvd("compare", str(section / "a"), str(other))
    assert result.exit_code in (1, 2)
    assert isinstance(result.exception, SystemExit), result.exception
    assert result.stderr.strip().count("\n") == (3 if result.exit_code == 2 else 0), "usage and an error"
    return result.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ("../01_esd", "must be runs of one section, got mnist-7x7 and esd"),
        ("a", "must be two runs, got "),
        ("../store", "is no run of a section: it has no run.json"),
        ("b/03_mnist_7x7.ipynb", "is no run of a section: it has no run.json"),
        ("gone", "does not exist"),
    ],
)
def test_what_is_no_other_run_is_refused(output: Path, other: str, message: str) -> None:
    assert message in refusal(output / "03_mnist_7x7", output / "03_mnist_7x7" / other)


@pytest.mark.parametrize(
    "text",
    [*JUNK, "\x00\xff", '{"section": "mnist-7x7"}', {"section": 3}, {"notebook": None}, {"parameters": []},
     {"made_with": "x"}, {"parameters": {"profile": ["quick"]}}],
    ids=lambda text: str(text)[:30],
)  # fmt: skip
def test_a_malformed_run_is_refused(output: Path, tmp_path: Path, text: str | dict[str, object]) -> None:
    if isinstance(text, dict):
        text = json.dumps(json.loads((output / "03_mnist_7x7" / "a" / "run.json").read_text()) | text)
    (tmp_path / "run.json").write_text(text, encoding="latin-1")
    members = "section, notebook, command, parameters, made_with"
    with pytest.raises(runs.NoRunError, match=rf"run\.json is not what a run of a section writes: {members}$"):
        runs.read(tmp_path)


def test_damage_is_one_sentence(altered: Path) -> None:
    """All that can be damaged is in test_records.py."""
    (path,) = (altered / "b").glob("study-*.csv.gz")
    path.write_bytes(path.read_bytes()[:-1])
    assert refusal(altered, altered / "b").endswith(f"{path.name} is not what was written")
