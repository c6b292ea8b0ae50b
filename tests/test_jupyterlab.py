"""A notebook as a reader sees it who opens it in JupyterLab: `make test-browser`, with the system's Chromium."""

import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any
from urllib.error import URLError

import pytest
from prose import ROOT

PROGRAM = shutil.which("chromium") or shutil.which("google-chrome")
MARKDOWN = ".jp-RenderedMarkdown"

pytestmark = [
    pytest.mark.skipif(PROGRAM is None and "CI" not in os.environ, reason="no Chromium"),
    pytest.mark.skipif(find_spec("playwright") is None, reason="no Playwright"),
    pytest.mark.skipif(find_spec("jupyterlab") is None, reason="no JupyterLab"),
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a copy of the notebooks and of the pages that they lead to."""
    folder = tmp_path_factory.mktemp("lab")
    for name in ("book", "notebooks"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("recorded", "static"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = [f"--port={port}", "--IdentityProvider.token=", "--no-browser", "--allow-root"]
    command, quiet = [sys.executable, "-m", "jupyterlab", *options], subprocess.DEVNULL
    with subprocess.Popen(command, cwd=folder, stdout=quiet, stderr=quiet) as lab:
        try:
            wait_for(f"http://127.0.0.1:{port}/api")
            yield f"http://127.0.0.1:{port}/doc/tree/notebooks"
        finally:
            lab.terminate()


def wait_for(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(address).close()
            return
        except URLError:
            assert time.monotonic() < deadline, "JupyterLab does not answer"
            time.sleep(0.2)


@pytest.fixture(scope="module")
def page(address: str) -> Iterator[Any]:
    """Show the first section."""
    from playwright import sync_api

    with sync_api.sync_playwright() as session:
        page = session.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"]).new_page()
        page.goto(f"{address}/01_esd.ipynb")
        page.wait_for_selector(f"{MARKDOWN} mjx-container", timeout=60_000)
        yield page


def test_a_reference_leads_to_its_figure(page: Any) -> None:
    caption = page.locator(MARKDOWN).get_by_text("How strongly each rank is selected")
    page.locator(MARKDOWN).get_by_role("link", name="Fig. 1.1").first.click()
    caption.wait_for()
    page.wait_for_function(
        "caption => { const { top } = caption.getBoundingClientRect(); return 0 < top && top < innerHeight }",
        arg=caption.element_handle(),
    )


def test_sentences_hold_numbers_references_and_tables(page: Any) -> None:
    page.set_viewport_size({"width": 1280, "height": 20_000})  # JupyterLab draws the cells that are seen
    page.locator(MARKDOWN, has_text="Table 1.1.").locator("table").wait_for()
    text = " ".join(" ".join(page.locator(MARKDOWN).all_inner_texts()).split())
    assert re.findall(r"\{\w+[:}]|`|:::|\]\(|data-myst|<span", text) == []
    for words in (
        "LEA-MVD (Valdez and Rojas-Domínguez, 2019) does not draw parents.",
        "the exponent that comes closest to it is 2.99.",
        "In Fig. 1.1 the circles of the binary tournament",
        "Fig. 1.1. How strongly each rank is selected",
        "one among the winners of others (item R19)",
        "Table 1.1. What the paper says of the exponent, and the answers.",
    ):
        assert words in text
    cells = page.locator(f"{MARKDOWN} table td").all_inner_texts()
    assert len(cells) == 9
    assert cells[-1] == "not reproduced"
