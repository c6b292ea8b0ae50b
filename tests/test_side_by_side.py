"""Two runs on one page, and a run repeated from run.json."""

import errno
import json
import os
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from quick_runs import SMALL, execute, leamvd, view

from leamvd import cli
from leamvd.book import reproduction, runs, sections
from leamvd.paper import intervals, records, reruns, studies
from leamvd.paper.comparison import final


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sections, "_execute", execute)


def reproduce(output: Path, *arguments: str) -> Path:
    result = leamvd("reproduce", *arguments, "--jobs", "1", "--output", str(output))
    assert result.exit_code == 0, result.output
    return Path(result.stdout.splitlines()[-1].partition(" s: ")[2])


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


class Page(HTMLParser):
    """What a reader gets: the rows of the tables, alternative texts, addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self.alts: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        given = {name: value or "" for name, value in attrs}
        self.addresses += [given[name] for name in ("src", "href") if name in given]
        if tag == "img":
            self.alts.append(given["alt"])
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] in ("td", "th"):
            self.rows[-1][-1] += data.strip()


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

    tables = []
    for name in ("a", "b"):
        parameters = runs.read(section / name).about["parameters"]
        study = studies.study("mnist-7x7", "quick", **studies.parameters(parameters))
        tables.append(records.run(study, output))
    errors, ratios = [intervals.errors(table) for table in tables], intervals.ratios(*tables)
    cells = [row for row in rows if row[0] in ("own", "shared")]
    assert len(cells) == len(ratios) == 2 * 2 * 2 * 3
    for row, (_, a), (_, b), (_, ratio) in zip(
        cells, errors[0].iterrows(), errors[1].iterrows(), ratios.iterrows(), strict=True
    ):
        assert row[:3] == [a["inputs"], str(a["layer"]), a["method"]]
        assert row[3:5] == [intervals.text(*end[["mean", "low", "high"]]) for end in (a, b)]
        assert row[5].startswith(f"{ratio['ratio']:.4g}")
        assert row[6:] == ["3, 3", "2"]
    assert final(tables[0])["seed"].nunique() == 3

    assert len(page.alts) == 3, "errors of both, and the figure of each"
    alt = next(
        cell["metadata"]["mystnb"]["image"]["alt"]
        for cell in json.loads((section / "b" / "03_mnist_7x7.ipynb").read_text())["cells"]
        if cell["metadata"].get("mystnb", {}).get("figure", {}).get("name") == "fig-mnist-7x7-mean-field"
    )
    assert page.alts[1:] == [f"Run A: {alt}", f"Run B: {alt}"]


def test_the_page_opens_alone(output: Path) -> None:
    section = output / "03_mnist_7x7"
    page = compare(section / "a", section / "b")
    assert all(address.startswith("data:image/png;base64,") for address in page.addresses)
    text = (section / "compare-a-b.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(", text)
    assert "script" not in page.tags
    assert str(output) not in text, "no path of this machine"
    assert "prefers-color-scheme: dark" in text


def test_one_run_made_twice_is_told_apart_by_its_folder_of_results(output: Path, tmp_path: Path) -> None:
    section, names = output / "03_mnist_7x7", set()
    for other in ("laptop", "cluster"):
        shutil.copytree(output, tmp_path / other)
        result = leamvd("compare", str(section / "a"), str(tmp_path / other / "03_mnist_7x7" / "a"))
        names.add(Path(result.stdout.strip()).name)
        text = Path(result.stdout.strip()).read_text(encoding="utf-8")
        assert f"{output.name}/03_mnist_7x7/a" in text
        assert f"{other}/03_mnist_7x7/a" in text
    assert len(names) == 2, "neither page takes the other's place"


def test_bold_is_what_leaves_one_out(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ratios = intervals.ratios

    def apart(a, b):  # type: ignore[no-untyped-def]
        table = ratios(a, b)
        table[["low", "ratio", "high"]] = [0.9, 1.05, 1.1]
        table.loc[5, ["low", "ratio", "high"]] = [0.9, 0.95, 1.1]
        table.loc[3, ["low", "ratio", "high"]] = [1.01, 1.2, 1.3]
        table.loc[7, ["low", "ratio", "high"]] = [0.7, 0.8, 0.99]
        return table

    monkeypatch.setattr(intervals, "ratios", apart)
    section = output / "03_mnist_7x7"
    result = leamvd("compare", str(section / "a"), str(section / "b"))
    text = Path(result.stdout.strip()).read_text(encoding="utf-8")
    assert re.findall(r'class="differs">([^<]+)<', text) == ["1.2 [1.01, 1.3]", "0.8 [0.7, 0.99]"]


def test_a_run_says_what_it_was_made_with(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = runs.read(output / "03_mnist_7x7" / "a").about["made_with"]
    assert made["numpy"] == np.__version__
    assert made | {"commit": ""} == runs.made_with() | {"commit": ""}
    monkeypatch.setattr(runs, "_PACKAGES", ("numpy", "no-such-package"))
    assert runs.made_with().keys() == {"code", "commit", "Python", "machine", "numpy"}


def test_latest_is_the_last_run(output: Path) -> None:
    section = output / "03_mnist_7x7"
    for latest in (section / "latest", section):
        assert runs.read(latest).folder == view(output).resolve()


def test_what_other_code_and_versions_made_is_named(output: Path, tmp_path: Path) -> None:
    shutil.copytree(output, tmp_path / "results")
    section = tmp_path / "results" / "03_mnist_7x7"
    path = section / "b" / "run.json"
    about = json.loads(path.read_text())
    about["made_with"] |= {"numpy": "0.1", "code": "<b>other</b>"}
    about["notebook"] = "other"
    path.write_text(json.dumps(about))
    rows = compare(section / "a", section / "b").rows
    made = runs.made_with()
    assert ["numpy", made["numpy"], "0.1"] in rows
    assert ["code", made["code"], "<b>other</b>"] in rows, "names are text, whatever they look like"
    assert any(row[0] == "notebook" and row[2] == "other" for row in rows)


def test_a_figure_of_one_run_alone_is_shown(output: Path, tmp_path: Path) -> None:
    shutil.copytree(output, tmp_path / "results")
    section = tmp_path / "results" / "03_mnist_7x7"
    figures = section / "b" / "figures"
    (figures / "mnist-7x7-mean-field.png").rename(figures / '<i>"mine".png')
    page = compare(section / "a", section / "b")
    assert page.alts[2] == 'Run B: <i>"mine"'
    text = (section / "compare-a-b.html").read_text(encoding="utf-8")
    assert "Run B has no such figure." in text
    assert "Run A has no such figure." in text


def test_a_section_without_errors_shows_its_figures(output: Path, tmp_path: Path) -> None:
    shutil.copytree(output, tmp_path / "results")
    esd = view(tmp_path / "results", "01_esd")
    shutil.copytree(esd, esd.with_name("b"))
    page = compare(esd, esd.with_name("b"))
    assert len(page.alts) == 2
    assert [row for row in page.rows if row[0] in ("own", "shared")] == []


def test_nonsense_is_refused_in_one_sentence(output: Path, tmp_path: Path) -> None:
    section = output / "03_mnist_7x7"
    (tmp_path / "run.json").write_text('{"section": "mnist-7x7"}')
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "run.json").write_text((section / "a" / "run.json").read_text()[:500])
    for other, message in (
        (output / "01_esd", "must be runs of one section, got mnist-7x7 and esd"),
        (section / "a", "must be two runs, got "),
        (output / "store", "is no run of a section: it has no run.json"),
        (tmp_path, "is not what a run of a section writes"),
        (tmp_path / "cut", "is not what a run of a section writes"),
        (tmp_path / "gone", "does not exist"),
    ):
        result = leamvd("compare", str(section / "a"), str(other))
        assert result.exit_code in (1, 2)
        assert message in result.stderr
        assert len(result.stderr.strip().splitlines()[-1:]) == 1
        assert "Traceback" not in result.output


def test_units_that_are_gone_or_altered_are_named(output: Path, tmp_path: Path) -> None:
    shutil.copytree(output, tmp_path / "results")
    section, store = tmp_path / "results" / "03_mnist_7x7", tmp_path / "results" / "store"
    known = reruns.provenance(section / "a", runs.read(section / "a").about)
    unit = store / known["units"]["lea-mvd-own-layer1-seed0"]
    content = {path.name: path.read_bytes() for path in unit.iterdir()}
    other = store / known["units"]["lea-mvd-own-layer1-seed1"] / "manifest.json"
    for name, changed, message in (
        ("records.csv", content["records.csv"].replace(b"1", b"2", 1), "records.csv is not what was stored"),
        ("manifest.json", other.read_bytes(), "manifest.json is altered, or another unit's"),
        ("manifest.json", content["manifest.json"][:50], "manifest.json is cut or altered"),
    ):
        (unit / name).write_bytes(changed)
        result = leamvd("compare", str(section / "a"), str(section / "b"))
        assert (result.exit_code, f"{unit.name}: {message}" in result.stderr) == (1, True), result.output
        (unit / name).write_bytes(content[name])
    shutil.rmtree(unit)
    assert f"{unit.name} is not in the store" in leamvd("compare", str(section / "a"), str(section / "b")).stderr
    for path in (section / "a").glob("study-*"):
        path.unlink()
    assert "must hold the file study-*.json" in leamvd("compare", str(section / "a"), str(section / "b")).stderr


def test_a_folder_that_cannot_be_written_to_is_one_sentence(output: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, text: str) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    monkeypatch.setattr(records, "write", full)
    section = output / "03_mnist_7x7"
    result = leamvd("compare", str(section / "a"), str(section / "b"))
    assert result.exit_code == 1
    assert re.fullmatch(r"Error: No space left on device: .*: make room on the disk, .*\n", result.stderr)


# ---- a run again


def test_a_run_is_repeated_from_its_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    (here / "mine").mkdir(parents=True)
    there.mkdir()
    monkeypatch.chdir(here)
    Path("mine/a.json").write_text('{"reset": "off"}')
    small = [text.replace("lea-mvd:x0-excluded", "lea-mvd:mine/a.json") for text in SMALL]
    place = reproduce(here / "results", *small, "-p", "seeds=2-3")
    shutil.copy(place / "run.json", there)
    table = reruns.table(*stored(place))
    shutil.rmtree(here)
    monkeypatch.chdir(there)
    result = leamvd("reproduce", "--from", "run.json", "--jobs", "1")
    assert result.exit_code == 0, result.output
    assert "warning" not in result.output
    again = view(there / "results")
    assert again.name == place.name
    assert (again / "mine" / "a.json").read_text() == '{"reset": "off"}'
    assert json.loads((again / "run.json").read_text()) == json.loads((there / "run.json").read_text())
    assert reruns.table(*stored(again)).drop(columns="seconds").equals(table.drop(columns="seconds"))
    assert sorted(path.name for path in there.iterdir()) == ["results", "run.json"]


def stored(place: Path):  # type: ignore[no-untyped-def]
    run = runs.read(place)
    known = reruns.provenance(run.folder, run.about)
    return known, reruns.units(known, records.store(run.folder.parents[1]))


def test_a_reading_named_by_its_full_path_is_taken_from_the_file(tmp_path: Path) -> None:
    full = tmp_path / "a.json"
    parameters = {"methods": ["cd", f"lea-mvd:{full}"], "reading": str(full), "n": 3}
    readings = {str(full): '{"reset": "off"}', "b.json": "{}"}
    full.write_text(readings[str(full)])
    assert reruns.relative(parameters, readings) == (parameters, {"b.json": "{}"}), "it is there as it was"
    for text in ("{}", None):
        full.unlink()
        if text:
            full.write_text(text)
        changed, kept = reruns.relative(parameters, readings)
        (name,) = set(kept) - {"b.json"}
        assert kept[name] == '{"reset": "off"}'
        assert changed == {"methods": ["cd", f"lea-mvd:{name}"], "reading": name, "n": 3}
        with reruns.in_place(kept):
            assert (
                studies.study("mnist-7x7", "quick", methods=changed["methods"]).reading_of(f"lea-mvd:{name}").reset
                == "off"
            )
        full.touch()


def test_a_folder_of_data_and_a_store_mean_what_they_mean_for_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LEAMVD_DATA_DIR", "mnist")
    monkeypatch.setenv(records.STORE, "store")
    with reruns.in_place({"a/b.json": "{}"}):
        assert Path("a/b.json").read_text() == "{}"
        assert os.environ["LEAMVD_DATA_DIR"] == str(tmp_path / "mnist")
        assert records.store("output").folder == Path("output/store"), "nothing is taken from another store"
    assert (os.environ["LEAMVD_DATA_DIR"], os.environ[records.STORE], Path.cwd()) == ("mnist", "store", tmp_path)


def edited(path: Path, target: Path, **members: object) -> Path:
    about = json.loads(path.read_text())
    for name, value in members.items():
        about[name] = {**about[name], **value} if isinstance(value, dict) else value
    target.write_text(json.dumps(about))
    return target


def test_what_is_not_as_it_was_is_said(output: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "run", lambda *_: tmp_path)
    monkeypatch.setattr(reproduction, "compute", lambda *_: None)
    about = json.loads((output / "03_mnist_7x7" / "a" / "run.json").read_text())
    (name,) = about["studies"]
    study = about["studies"][name] | {"checksum": "other"}
    path = edited(
        output / "03_mnist_7x7" / "a" / "run.json",
        tmp_path / "run.json",
        notebook="other",
        made_with={"numpy": "0.1", "code": "other", "commit": "other", "Python": "2.7"},
        studies={name: study},
    )
    lines = leamvd("reproduce", "--from", str(path)).stderr.splitlines()
    made = runs.made_with()
    assert [line.removeprefix(f"warning: not as in {path}: ") for line in lines] == [
        "another version of the notebook 03_mnist_7x7",
        f"code: other then, {made['code']} here",
        f"Python: 2.7 then, {made['Python']} here",
        f"numpy: 0.1 then, {made['numpy']} here",
        f"data: {study['data']} then, {study['data']} here, with other content",
    ]
    assert leamvd("reproduce", "--from", str(output / "03_mnist_7x7" / "a")).stderr == ""


@pytest.mark.parametrize(
    ("members", "arguments", "message"),
    [
        ({}, ("mnist-7x7",), "--from takes section and parameters from the run: leave out what else names them"),
        ({}, ("--profile", "quick"), "--from takes section and parameters"),
        ({}, ("-p", "n_gen=3"), "--from takes section and parameters"),
        ({}, ("--dataset", "digits"), "--from takes section and parameters"),
        ({"section": "mnist"}, (), "no section 'mnist'"),
        ({"parameters": {"n_gens": 3}}, (), "mnist-7x7 has no parameter 'n_gens'"),
        ({"parameters": {"n_gen": "3"}}, (), "n_gen must be int | None, got '3'"),
        ({"parameters": {"n_gen": 2.5}}, (), "n_gen must be int | None (>= 1), got '2.5'"),
        ({"parameters": {"n_elite": 24}}, (), "n_elite=24 clashes"),
        ({"parameters": {"dataset": "/no/such"}}, (), "PATH must exist), got '/no/such'"),
        ({"readings": {"../a.json": "{}"}}, (), "readings must be named relative to their folder, got '../a.json'"),
        ({"parameters": 3}, (), "is not what a run of a section writes"),
    ],
    ids=str,
)
def test_what_cannot_be_repeated_is_refused(
    members: dict[str, object],
    arguments: tuple[str, ...],
    message: str,
    output: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "run", lambda *_: pytest.fail("ran"))
    path = edited(output / "03_mnist_7x7" / "a" / "run.json", tmp_path / "run.json", **members)
    result = leamvd("reproduce", "--from", str(path), *arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.json"]
