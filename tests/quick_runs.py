"""Runs of the section mnist-7x7 that take a second: the study alone, without a kernel, and one figure."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from leamvd import cli
from leamvd.book import sections
from leamvd.campaign.store import STORE
from leamvd.figures import style
from leamvd.studies import catalog, records

SMALL = (
    "mnist-7x7", "-p", "layers=6,5", "-p", "methods=cd,lea-mvd,lea-mvd:x0-excluded", "-p", "n_images=40",
    "-p", "n_gen=2", "-p", "n_elite=2",
)  # fmt: skip


def execute(section: sections.Section, values: Mapping[str, object], work: Path, store: Path) -> None:
    """Do what the section's notebook does, as far as it matters here."""
    parameters = section.complete(values)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(STORE, str(store))
        if section.name in {name for name, _ in catalog.STUDIES}:
            records.run(catalog.study(section.name, str(parameters["profile"]), **catalog.parameters(parameters)), work)
    figure, axes = style.new()
    axes[0, 0].plot([0, 1])
    style.save(figure, "mnist-7x7-mean-field", work)
    shutil.copy(section.path, work)


def leamvd(*arguments: str) -> Result:
    return CliRunner().invoke(cli.main, arguments)


def view(output: Path, stem: str = "03_mnist_7x7") -> Path:
    """Return the folder that ``latest`` names."""
    return output / stem / (output / stem / "latest").read_text().strip()
