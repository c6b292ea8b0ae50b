"""The second program, which its author wrote from the paper and the list of items alone."""

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest

from leamvd_paper.data import images
from leamvd_paper.studies import readings
from leamvd_paper.studies.results import provenance, read_recorded

FOLDER = Path(__file__).parent / "second_program"


@pytest.fixture(scope="module")
def second() -> ModuleType:
    spec = importlib.util.spec_from_file_location("second", FOLDER / "second.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_shares_no_code_with_this_edition() -> None:
    source = (FOLDER / "second.py").read_text(encoding="utf-8")
    assert "import leamvd" not in source
    assert "from leamvd" not in source
    assert len(source.splitlines()) <= 300


def test_its_main_direction_is_that_of_a_singular_value_decomposition(second: ModuleType) -> None:
    rng = np.random.default_rng(0)
    U = rng.standard_normal((4, 60)) + rng.standard_normal(60)
    P = rng.standard_normal(60)
    free = U - np.outer(U @ P, P) / (P @ P)
    best = np.linalg.svd(free)[2][0]
    found = second.main_direction(U, P)
    np.testing.assert_allclose(found, best * np.sign(free.sum(axis=0) @ best), atol=1e-9)


@pytest.mark.skipif("LEAMVD_DATA_DIR" not in os.environ, reason="needs MNIST")
def test_what_is_recorded_comes_out_again_on_the_images_of_the_recorded_readings(
    second: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "images.txt").write_bytes((FOLDER / "images.txt").read_bytes())
    (tmp_path / "mnist").symlink_to(Path(os.environ["LEAMVD_DATA_DIR"]).resolve())
    monkeypatch.setattr(second, "HERE", tmp_path)
    pixels = second.load_images()
    ours = images.load("mnist", side=7, n_train=10_000)
    np.testing.assert_allclose(pixels, ours.train, atol=1e-6)
    found = second.contrastive_divergence(pixels, 30, 50, second.stream(3, 0, "cd"))
    recorded = read_recorded("second_program").query("method == 'cd' and layer == 1 and seed == 3")
    error = second.reconstruction_error(found, pixels, 30)
    assert error == pytest.approx(recorded["mean_field"].iloc[0], rel=0.01), "rounding adds up"


def test_the_recorded_rows_are_those_of_thirty_seeds_of_this_file() -> None:
    table = read_recorded("second_program")
    counts = table.groupby(["inputs", "method"])["layer"].agg(["nunique", "size"])
    assert counts["nunique"].to_dict() == {
        ("own", "cd"): 3,
        ("own", "lea-mvd"): 3,
        ("own", "lea-mvd:printed"): 3,
        ("shared", "cd"): 2,
        ("shared", "lea-mvd"): 2,
    }
    assert counts.eval("size == 30 * nunique").all()
    printed = provenance("second_program")["settings"]
    assert (FOLDER.parent.parent / printed["program"]).is_file()


@pytest.mark.parametrize(
    ("layer", "factor", "spread", "agree"),
    [
        (1, 1.0, 0.01, "yes"),
        (2, 1.04, 0.001, "yes"),
        (1, 1.06, 0.001, "no"),
        (3, 1.06, 0.001, "yes"),
        (3, 0.88, 0.001, "no"),
        (1, 1.0, 0.5, "undecided"),
        (3, 1.5, 0.3, "no"),
    ],
)
def test_two_programs_agree_where_the_interval_of_their_ratio_lies_within_the_bounds(
    layer: int, factor: float, spread: float, agree: str
) -> None:
    rng = np.random.default_rng(0)
    logs = rng.standard_normal((2, 30)) * spread
    logs -= logs.mean(axis=1, keepdims=True)
    cell = {"inputs": "own", "method": "cd", "layer": layer}
    seeds = np.arange(30)
    theirs = pd.DataFrame(cell | {"seed": seeds, "mean_field": factor * np.exp(logs[0])})
    ours = pd.DataFrame(cell | {"seed": seeds, "iteration": 50, "mean_field": np.exp(logs[1])})
    early = ours.assign(iteration=40, mean_field=1e9)
    other = ours.assign(method="lea-mvd", mean_field=1e9)
    found = readings.agreement(theirs, pd.concat([early, ours, other])).iloc[0]
    assert found["agree"] == agree
    assert found["ratio"] == pytest.approx(factor)
    assert found["low"] < found["ratio"] < found["high"]
