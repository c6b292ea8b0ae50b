"""Small runs and what is recorded of them: of layers, and of what was measured of stacks."""

import dataclasses
import hashlib
import json
import lzma
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from leamvd.campaign import archive
from leamvd.campaign.store import STORE
from leamvd.studies import catalog, records
from leamvd.studies.recording import record
from leamvd.studies.study import Classification, Study

GIVEN = {
    "mnist-7x7": {
        "layers": [6, 5], "methods": ["cd", "lea-mvd", "lea-mvd:x0-excluded"], "seeds": [0, 1, 2, 3], "n_images": 40,
        "n_gen": 2, "n_elite": 2, "population_size": 8,
    },
    "classification": {
        "layers": [6, 5], "seeds": [0, 1, 2], "n_images": 60, "n_gen": 2, "scales": ["0.1"], "epochs": 2,
        "n_chains": 10, "n_temperatures": 5,
    },
    "explanation": {
        "layers": [6, 5], "methods": ["lea-mvd:sigma0=0.01"], "seeds": [0, 1, 2, 3], "n_images": 40, "n_gen": 2,
        "sigmas": [0.003, 0.01], "n_pairs": 2,
    },
}  # fmt: skip
"""Parameters by section."""


@dataclasses.dataclass
class Run:
    """A section's run as the command line leaves it."""

    output: Path
    about: dict[str, Any]  # its run.json

    @classmethod
    def of(cls, output: Path, section: str, **changes: object) -> "Run":
        """Run the study of a section, with changed parameters."""
        parameters = {"profile": "quick", "dataset": None, **GIVEN[section], **changes}
        made = cls(output, {"section": section, "parameters": parameters})
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(STORE, str(output / "store"))
            if isinstance(made.study, Classification):
                records.measure(made.study, made.folder)
            else:
                records.run(made.study, made.folder)
        return made

    @property
    def folder(self) -> Path:
        return self.output / hashlib.sha256(json.dumps(self.about).encode()).hexdigest()[:8]

    @property
    def study(self) -> Study:
        return catalog.section_study(self.about)

    def record(self, name: str, **how: bool) -> Path:
        return record(name, self.folder, self.about, self.output / "store", **how)


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def edit(path: Path, **changes: object) -> None:
    """Change members of a JSON file, and members of those that are objects."""
    about = json.loads(path.read_text())
    for name, value in changes.items():
        about[name] = {**about[name], **value} if isinstance(value, dict) else value
    path.write_text(json.dumps(about))


def rewrite(name: str, table: pd.DataFrame, which: str = "runs") -> None:
    """Write another recorded table, with the checksum that belongs to it."""
    content = lzma.compress(table.to_csv(index=False).encode())
    (archive.folder(name) / f"{which}.csv.xz").write_bytes(content)
    checksum = {f"{which}.csv.xz": hashlib.sha256(content).hexdigest()}
    edit(archive.folder(name) / "provenance.json", sha256=checksum)
