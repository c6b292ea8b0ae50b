"""Every section run at the small scale, through papermill: arrays, tables and pasted numbers are those accepted."""

import json
from pathlib import Path

import accepted
import pytest

from leamvd.book import runs, sections

SECTIONS = sections.load()
FEWER: dict[str, dict[str, object]] = {accepted.MEASURED: {"methods": ["leamvd"], "sizes": [1_000, 10_000]}}
"""Of what is not compared, because seconds differ every time: that it ran is what can be said."""


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.stem)
def test_a_section_comes_out_as_accepted(
    section: sections.Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for threads in ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.setenv(threads, "1")  # two sections run at the same time, and threads would wait for each other
    run = runs.read(sections.run(section, {"profile": "quick"} | FEWER.get(section.name, {}), tmp_path))
    if section.name in FEWER:
        return
    entry, made = accepted.entries()[accepted.key(run.about)], accepted.figures(run.folder)
    assert sorted(made) == entry["figures"]
    for name, path in made.items():
        assert accepted.moved(accepted.place("quick") / f"{name}.json", path) == [], name
    told = accepted.told(json.loads((run.folder / section.path.name).read_text(encoding="utf-8")))
    assert told == {name: entry[name] for name in told}
