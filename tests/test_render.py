"""The book is built once from small executed notebooks; the pages it makes are then read as a browser would."""

import ast
import copy
import dataclasses
import json
import pkgutil
import re
from pathlib import Path
from urllib.parse import urlsplit

import nbformat
import pytest
import yaml
from nbformat.notebooknode import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from prose import PAGES as PROSE
from small_book import ROOT, Page, clone, drawn, glued, notebook
from sphinx_external_toc.parsing import parse_toc_yaml

import leamvd
from leamvd.book import render, sections
from leamvd.data.mnist import MNIST_SHA256
from leamvd.optimizers.reading import Reading

PAGES = list(parse_toc_yaml(ROOT / "_toc.yml"))
STEMS = [Path(page).name for page in PAGES if page.startswith("notebooks/")]
VERDICT = re.compile(r"c\d+-(as-printed|conclusion)(-corrected)?")

# Modules that a reader meets elsewhere, or not at all.
NOT_LISTED = {
    "networks.logistic", "optimizers.checkpoints", "optimizers.evaluation", "optimizers.lea_mvd",
    "optimizers.methods", "optimizers.minimize", "optimizers.reading", "optimizers.state",
}  # fmt: skip


SECTIONS = {section.stem: section for section in sections.load()}


def executed(stem: str) -> NotebookNode:
    """A notebook with a named figure, an equation and every value and label that the prose pages take from this one."""
    prose = "\n".join(PROSE.values())
    keys = set(re.findall(rf"notebooks/{stem}\.ipynb::([\w.-]+)", prose)) | {"gap"}
    keys |= set(re.findall(rf"\{{glue:any\}} ([\w-]+)\n:doc: \.\./notebooks/{stem}\.ipynb", prose))
    text = f"See {{numref}}`own-{stem}`, {{eq}}`here-{stem}`, {{eq}}`eq-weights` and {{glue:text}}`gap:.1f`."
    text += " It lacks {glue:text}`absent:.1f`, and {glue:text}`../notebooks/07_readings.ipynb::absent:.1f`."
    cells = [new_markdown_cell(f"# Section {stem}\n\n{text}\n\n$$\ny = x^2\n$$ (here-{stem})\n"), drawn(f"own-{stem}")]
    if stem == STEMS[0]:  # figures that pages cite may lie in any notebook
        cells += map(drawn, sorted(set(re.findall(r"\{numref\}`(?:[^`]*<)?(fig-[\w-]+)", prose))))
    cells += [glued(key, "'partly'" if VERDICT.fullmatch(key) else "0.25") for key in sorted(keys)]
    declared = {"tags": ["parameters", "hide-input"]}
    cells.append(new_code_cell(f"{stem} = 'declared'", execution_count=3, metadata=declared))
    bar = {"model_module": "@jupyter-widgets/controls", "model_name": "HTMLModel", "state": {}}
    state = {"state": {"bar": bar}, "version_major": 2, "version_minor": 0}
    made = {"exception": None, "parameters": {"profile": "quick"} | ({"seed": 7} if stem == STEMS[0] else {})}
    widgets = {"application/vnd.jupyter.widget-state+json": state}
    return notebook(cells, SECTIONS[stem].name, papermill=made, widgets=widgets)


def published(results: Path, **changed: NotebookNode) -> Path:
    """Write notebooks as runs of a results folder; those that are changed alone, or all."""
    for stem in STEMS:
        if not changed or f"_{stem}" in changed:
            for run in ("earlier", "last"):
                (results / stem / run).mkdir(parents=True, exist_ok=True)
            (results / stem / "earlier" / f"{stem}.ipynb").write_text("not the one to show")
            nbformat.write(changed.get(f"_{stem}", executed(stem)), results / stem / "last" / f"{stem}.ipynb")
            (results / stem / "latest").write_text("last\n")
            (results / stem / "last" / "figures").mkdir()
            (results / stem / "last" / "figures" / f"own-{stem}.json").write_text(json.dumps({"size": [540, 400]}))
    return results


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Page]:
    """Build over an earlier book that has a page which the new one lacks."""
    results, output = tmp_path_factory.mktemp("results"), tmp_path_factory.mktemp("book")
    (output / ".buildinfo").touch()
    (output / "stale.html").touch()
    index = render.render(published(results), output)
    assert index == output / "index.html"
    paths = [*index.parent.rglob("*.html")]
    html = [path for path in paths if not path.is_relative_to(output / "_static")]
    return {str(path.relative_to(output).with_suffix("")): Page(path) for path in html}


def test_every_page_of_the_contents_exists_and_can_be_searched_and_no_stale_one(pages: dict[str, Page]) -> None:
    assert set(PAGES) <= set(pages)
    assert "stale" not in pages
    assert "book/index.html" in pages["index"].html, "the page to open leads to the root"
    index = (pages["index"].path.parent / "searchindex.js").read_text(encoding="utf-8")
    assert all(f'"{word}"' in index for word in (*PAGES, "tournament"))


def test_nothing_is_fetched_from_a_network(pages: dict[str, Page]) -> None:
    remote = re.compile(r"^(https?:)?//")
    for page in pages.values():
        assert "http" not in page.scripts
        for load in page.loads:
            assert load.startswith("data:") or (not remote.match(load) and page.target(load)[0].is_file()), load
    for style in (pages["index"].path.parent / "_static").rglob("*.css"):
        assert not re.search(r"(url\(|@import)\s*['\"]?\s*(https?:)?//", style.read_text(encoding="utf-8")), style


def test_mathematics_is_drawn_by_a_local_mathjax(pages: dict[str, Page]) -> None:
    for name in ("book/index", "book/method", *(f"notebooks/{stem}" for stem in STEMS)):
        page = pages[name]
        (script,) = [page.target(load)[0] for load in page.loads if "mathjax" in load]
        assert script.stat().st_size > 500_000
        assert any((script.parent / "output/chtml/fonts/woff-v2").glob("MathJax_Main-Regular.woff"))


def test_equations_and_figures_are_numbered_and_cited_by_number(pages: dict[str, Page]) -> None:
    delimiters = re.findall(r"^\$\$.*$", PROSE["method"], flags=re.MULTILINE)
    labels = [label.removeprefix("$$ (").removesuffix(")") for label in delimiters[1::2]]
    assert delimiters == [part for label in labels for part in ("$$", f"$$ ({label})")]  # each has a label
    assert {f"equation-{label}" for label in labels} <= pages["book/method"].ids
    for number, stem in enumerate(STEMS, start=1):
        text = " ".join(pages[f"notebooks/{stem}"].text.split())
        assert f"See Fig. {number}.1, ({number}.1), ({labels.index('eq-weights') + 1}) and 0.2." in text
        assert f"Fig. {number}.1 Weights of the digits." in text
        assert "It lacks –, and –." in text, "what a run does not have is a dash"


def test_a_figure_says_what_makes_it_and_links_what_it_plots(pages: dict[str, Page]) -> None:
    for section in sections.load():
        page = pages[f"notebooks/{section.stem}"]
        label = f"own-{section.stem}".replace("_", "-")
        figure = re.search(rf'<figure [^>]* id="{label}">.*?</figure>', page.html, flags=re.DOTALL)
        assert figure
        told = " ".join(re.sub("<[^>]+>", "", figure[0]).split())
        given = " -p seed=7" if section.stem == STEMS[0] else ""
        assert f"Made by leamvd reproduce {section.name}{given}. Data of this figure." in told
        (link,) = [link for link in page.links if link.endswith(f"own-{section.stem}.json")]
        assert json.loads(page.target(link)[0].read_text()) == {"size": [540, 400]}


def test_a_page_warns_where_a_number_is_of_another_run(pages: dict[str, Page]) -> None:
    """Here all are; and none is where the notebooks are the clone's own, see test_first_page.py."""
    pasting = {page for page, text in PROSE.items() if ".ipynb::" in text or "{glue:any}" in text}
    assert "index" in pasting
    for page in PROSE:
        assert ("Another run" in pages[f"book/{page}"].text) == (page in pasting), page
    assert "leamvd reproduce verdicts" in pages["book/index"].text


def test_addresses_and_buttons_are_there_where_the_configuration_has_an_address(pages: dict[str, Page]) -> None:
    """Of the small book, which has both, see test_small_book.py."""
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    html = "".join(page.html for page in pages.values())
    links = [link for page in pages.values() for link in page.links]
    assert bool(re.search(r"og:(url|image)|rel=.canonical", html)) == bool(config["html"]["baseurl"])
    assert any(re.search(r"mybinder\.org|colab\.research|/edit/", link) for link in links) == bool(
        config["repository"]["url"]
    )


def test_nothing_is_left_unresolved(pages: dict[str, Page]) -> None:
    for name in PAGES:
        assert not re.search(
            r"\?\?|\{(numref|eq|ref|doc|term|cite:\w|glue:\w+|py:\w+)\}|```|:::|:name:", pages[name].text
        ), name


def test_links_lead_to_pages_and_places_that_exist(pages: dict[str, Page]) -> None:
    by_path = {page.path.resolve(): page for page in pages.values()}
    n_links = 0
    for page in pages.values():
        for link in page.links:
            if urlsplit(link).scheme:
                continue
            path, fragment = page.target(link)
            assert path.is_file(), f"{page.path}: {link}"
            if fragment and path.resolve() in by_path:
                assert fragment in by_path[path.resolve()].ids, f"{page.path}: {link}"
            n_links += 1
    assert n_links > 100


def test_parameters_are_folded_and_cells_that_only_glue_are_left_out(pages: dict[str, Page]) -> None:
    for stem in STEMS:
        page = pages[f"notebooks/{stem}"]
        assert f"{stem} = 'declared'" in page.folded
        assert "draw()" in page.text
        assert "draw()" not in page.folded
        assert "glue()" not in page.text


def test_every_image_says_what_it_shows(pages: dict[str, Page]) -> None:
    shown = [image for page in pages.values() for image in page.images]
    assert len([image for image in shown if image["alt"] == "A black square."]) >= len(STEMS)
    assert [image for image in shown if not (image.get("alt") or "").strip()] == []


def test_the_page_of_items_lists_every_option_of_a_reading() -> None:
    rows = re.findall(r"\* - (?:\(item-r\d+\)=\n    )?([RC]\d+)\n  - `(\w+)`\n  - `(.+)`\n  - (.+)\n", PROSE["items"])
    assert [row[:2] for row in rows] == [tuple(line.split()[:2]) for line in str(Reading()).splitlines()]
    fields = [Reading.__dataclass_fields__[name] for _, name, _, _ in rows]
    printed = Reading.printed()
    for (_, name, default, others), field in zip(rows, fields, strict=True):
        assert ast.literal_eval(default) == field.default
        for value in map(ast.literal_eval, re.findall(r"`([^`]+)`", others)):
            assert value != field.default
            dataclasses.replace(Reading(), **{name: value})  # an option that the constructor takes
        bold = [ast.literal_eval(value) for value in re.findall(r"\*\*`(.+?)`\*\*", others)]
        assert bold == ([] if getattr(printed, name) == field.default else [getattr(printed, name)])


def test_the_page_lists_the_checksums_of_mnist() -> None:
    listed = re.findall(r"^`(\S+\.gz)`\n: `(\w{64})`$", PROSE["run_it_yourself"], re.MULTILINE)
    assert dict(listed) == MNIST_SHA256


def test_the_librarys_page_lists_its_modules_once() -> None:
    listed = re.findall(r"automodule:: leamvd\.([\w.]+)$", PROSE["api"], flags=re.MULTILINE)
    modules = {module.name.removeprefix("leamvd.") for module in pkgutil.walk_packages(leamvd.__path__, "leamvd.")}
    library = {name for name in modules if name.startswith(("optimizers.", "networks."))}
    assert sorted(listed) == sorted(library - NOT_LISTED | {"data.images", "data.mnist"})


def output_of(kind: str) -> NotebookNode:
    return new_output("display_data", data={kind: "pixels"})


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (lambda nb: nb.metadata.papermill.update(exception=True), "run ended with an exception"),
        (lambda nb: nb.cells[1].outputs.append(new_output("error", ename="E", evalue="'x'")), "cell 2 .* E: 'x'"),
        (lambda nb: nb.cells[1].update(execution_count=None), "cell 2 was not executed"),
        (lambda nb: nb.cells[1].metadata.mystnb.pop("image"), "cell 2 shows an image without"),
        (lambda nb: nb.cells[1].metadata.mystnb.image.update(alt="  "), "cell 2 shows an image without"),
        *((lambda nb, kind=kind: nb.cells[-1].update(outputs=[output_of(kind)]), "shows an image without")
          for kind in ("image/jpeg", "image/svg+xml", "image/gif")),
    ],
)  # fmt: skip
def test_a_notebook_that_should_not_be_shown_is_refused(tmp_path: Path, fault, message: str) -> None:
    faulty = executed(STEMS[1])
    sound = copy.deepcopy(faulty)
    fault(faulty)
    for name, content in (("sound", sound), ("faulty", faulty)):
        nbformat.write(content, tmp_path / f"{name}.ipynb")
    render.check(tmp_path / "sound.ipynb")
    with pytest.raises(ValueError, match=rf"faulty\.ipynb cannot be shown: .*{message}"):
        render.check(tmp_path / "faulty.ipynb")


def test_a_warning_fails_the_build_and_keeps_the_earlier_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = "# A page\n\n{numref}`nowhere-at-all` {py:func}`leamvd.nothing`\n"
    clone(tmp_path / "clone", monkeypatch, index, {"book/other": "# Another page\n"})
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / ".buildinfo").touch()
    with pytest.raises(RuntimeError, match="undefined label: 'nowhere-at-all'") as caught:
        render.render(None, tmp_path / "book")
    assert "py:func reference target not found: leamvd.nothing" in str(caught.value), "seen by nitpicking alone"
    assert (tmp_path / "book" / ".buildinfo").is_file()


def test_other_files_in_the_output_are_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileExistsError, match="output must be a new or empty folder"):
        render.render(output=tmp_path)
    assert (tmp_path / "thesis.tex").is_file()


def test_results_without_notebooks_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=rf"results must hold runs of {STEMS[0]}, "):
        render.render(tmp_path, tmp_path / "book")


def test_results_take_the_place_of_the_clones_own_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, results, output = tmp_path / "clone", tmp_path / "results", tmp_path / "output"
    clone(own, monkeypatch, "", {f"notebooks/{stem}": executed(stem) for stem in STEMS})
    faulty = executed(STEMS[1])
    faulty.cells[1].execution_count = None
    published(results, **{f"_{STEMS[1]}": faulty})
    with pytest.raises(ValueError, match=rf"results/{STEMS[1]}/last/{STEMS[1]}\.ipynb cannot be shown"):
        render.render(results, output)
    nbformat.write(faulty, own / "notebooks" / f"{STEMS[1]}.ipynb")
    (results / STEMS[1]).rename(results / STEMS[2])
    (results / STEMS[2] / "last" / f"{STEMS[1]}.ipynb").rename(results / STEMS[2] / "last" / f"{STEMS[2]}.ipynb")
    for given in (results, None):
        with pytest.raises(ValueError, match=rf"notebooks/{STEMS[1]}\.ipynb cannot be shown"):
            render.render(given, output)


def test_a_book_takes_the_place_of_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which stays where a build fails, or is killed; nothing is left beside either."""

    def build(sources: Path, notebooks: list[Path], work: Path) -> Path:
        assert [path.name for path in (tmp_path / "book").iterdir()] == [".buildinfo"], "until the new one is whole"
        (work / "html").mkdir()
        (work / "html" / "new").touch()
        return work / "html"

    (tmp_path / "book").mkdir()
    (tmp_path / "book" / ".buildinfo").touch()
    with monkeypatch.context() as patch:
        patch.setattr(render, "_build", lambda *_: (_ for _ in ()).throw(RuntimeError("no")))
        with pytest.raises(RuntimeError, match="no"):
            render.render(None, tmp_path / "book")
    assert [path.name for path in (tmp_path / "book").iterdir()] == [".buildinfo"]
    monkeypatch.setattr(render, "_build", build)
    render.render(None, tmp_path / "book")
    assert [path.name for path in tmp_path.iterdir()] == ["book"]
    assert [path.name for path in (tmp_path / "book").iterdir()] == ["new"]


def test_rendering_needs_a_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leamvd, "__file__", str(tmp_path / "leamvd" / "__init__.py"))
    with pytest.raises(FileNotFoundError, match="needs the pages of a clone"):
        render.render(output=tmp_path / "book")
